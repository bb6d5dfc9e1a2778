"""Any sentence model in ONNX, from a folder or from the hub, run on the processor.

The files say how: `tokenizer.json` how to cut text, `1_Pooling/config.json` how token states become one
vector, the model itself which inputs it wants. What is cached is used without asking the hub: a start must
not depend on the network.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backstory.errors import BadInput, EmbedderAway
from backstory.recall.embedders import protocol

BATCH = 32
LONGEST = 512  # tokens
THREADS = 2  # a memory does not take the whole machine
MODELS = ("model.onnx", "onnx/model.onnx")
TOKENIZER = "tokenizer.json"
POOLING = "1_Pooling/config.json"
LENGTHS = (("sentence_bert_config.json", "max_seq_length"), ("tokenizer_config.json", "model_max_length"))
WANTED = [*MODELS, *(f"{model}_data" for model in MODELS), TOKENIZER, POOLING, *(name for name, _ in LENGTHS)]
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
EXTRA = "install backstory with its onnx extra"


class Onnx:
    weight = protocol.TRANSFORMER_WEIGHT

    def __init__(self, source: str) -> None:
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # else it warns whenever a process is forked
        runtime = _runtime()  # before a download that would be in vain
        local = _folder(source)
        folder = local or _from_hub(source)
        self.id = "onnx:" + (os.path.basename(local.rstrip("/")) if local else source)
        model = _model(folder)
        if model is None:
            raise EmbedderAway(f"{folder} holds no {' or '.join(MODELS)}; choose a model that has one")
        self._tokenizer = _tokenizer(folder)
        self._session = _session(runtime, model)
        self._inputs = {each.name: each.type for each in self._session.get_inputs()}
        if "input_ids" not in self._inputs or not self._inputs.keys() <= set(INPUTS):
            raise EmbedderAway(
                f"{model} asks for {', '.join(self._inputs)}; choose a sentence model that takes input_ids,"
                " attention_mask and token_type_ids"
            )
        names = [each.name for each in self._session.get_outputs()]
        told = ("sentence_embedding", "token_embeddings", "last_hidden_state")
        self._output = next((name for name in told if name in names), names[0])
        self._pooling = "" if self._output == told[0] else _pooling(folder)
        self.dimension = self._run(["dimension"]).shape[1]

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return protocol.rows(texts, self.dimension, self._in_batches)

    def _in_batches(self, texts: list[str]) -> NDArray[np.float32]:
        """Texts of like length together, so that little of the work is padding."""
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        result = np.empty((len(texts), self.dimension), dtype=np.float32)
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            result[batch] = self._run([texts[place] for place in batch])
        return result

    def _run(self, texts: list[str]) -> NDArray[np.float32]:
        encodings = self._tokenizer.encode_batch_fast(texts)
        mask = np.array([each.attention_mask for each in encodings], dtype=np.int64)
        given = {
            "input_ids": np.array([each.ids for each in encodings], dtype=np.int64),
            "attention_mask": mask,
            "token_type_ids": np.array([each.type_ids for each in encodings], dtype=np.int64),
        }
        feed = {
            name: given[name].astype(np.int32 if kind == "tensor(int32)" else np.int64)
            for name, kind in self._inputs.items()
        }
        try:
            (output,) = self._session.run([self._output], feed)
        except Exception as error:  # onnxruntime's errors have no base of their own
            raise EmbedderAway(f"{self.id} cannot be run ({_line(error)}); choose another model") from error
        vectors = np.asarray(output, dtype=np.float32)
        if vectors.ndim == 3:
            vectors = pool(vectors, mask, self._pooling)
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            raise EmbedderAway(f"{self.id} does not give one vector a text; choose a sentence model")
        return vectors


def check(source: str) -> None:
    """A folder is named from the root or from home: what lies in the current one is not the user's choice."""
    if not _folder(source) and not re.fullmatch(r"(?![.-])[\w.-]+(/(?![.-])[\w.-]+)?", source, re.ASCII):
        raise BadInput(
            f"embedder names the model {source[:80]!r}; give its whole path, like ~/models/name, or its name"
            " on the hub, like sentence-transformers/all-MiniLM-L6-v2"
        )


def pool(states: NDArray[np.float32], mask: NDArray[np.int64], how: str) -> NDArray[np.float32]:
    """One vector a text from one a token: the first (`cls`), or the mean of those that are no padding."""
    if how == "cls":
        return states[:, 0]
    shares = (mask / np.maximum(mask.sum(axis=1, keepdims=True), 1)).astype(np.float32)
    means: NDArray[np.float32] = np.einsum("ntd,nt->nd", states, shares)
    return means


def _folder(source: str) -> str | None:
    return os.path.expanduser(source) if source.startswith(("/", "~")) else None


def _model(folder: str) -> str | None:
    paths = (os.path.join(folder, name) for name in MODELS)
    return next((path for path in paths if os.path.isfile(path)), None)


def _runtime() -> Any:
    try:
        import onnxruntime  # type: ignore[import-untyped]
    except ImportError as error:
        raise EmbedderAway(f"onnxruntime cannot be imported ({error}); {EXTRA}") from error
    return onnxruntime


def _from_hub(name: str) -> str:
    """The cached files if they are all there, else a download."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise EmbedderAway(f"huggingface_hub cannot be imported ({error}); {EXTRA}") from error
    try:
        folder = snapshot_download(name, allow_patterns=WANTED, local_files_only=True)
        if _model(folder) and os.path.isfile(os.path.join(folder, TOKENIZER)):
            return folder
    except Exception:  # noqa: BLE001, S110  whatever is the matter with the cache, the hub has the files
        pass
    try:
        return snapshot_download(name, allow_patterns=WANTED)
    except Exception as error:  # network, disk or hub: its errors have no base of their own
        raise EmbedderAway(
            f"the model {name} cannot be fetched from the hub ({_line(error)}); check its name and the"
            " network, or give a folder"
        ) from error


def _tokenizer(folder: str) -> Any:
    path = os.path.join(folder, TOKENIZER)
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise EmbedderAway(f"tokenizers cannot be imported ({error}); {EXTRA}") from error
    try:
        tokenizer = Tokenizer.from_file(path)
    except Exception as error:  # tokenizers raises nothing more precise
        raise EmbedderAway(f"{path} cannot be read ({_line(error)}); fetch the model again") from error
    padding = tokenizer.padding or next(
        (
            {"pad_id": number, "pad_token": token}
            for token in ("[PAD]", "<pad>")
            if (number := tokenizer.token_to_id(token)) is not None
        ),
        {},
    )
    known = {name: padding[name] for name in ("pad_id", "pad_type_id", "pad_token") if name in padding}
    tokenizer.enable_padding(direction="right", **known)  # to the longest of a batch, whatever the file says
    tokenizer.enable_truncation(_length(folder))
    return tokenizer


def _session(runtime: Any, path: str) -> Any:
    options = runtime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.log_severity_level = 3  # errors: its warnings are for those who make models
    try:
        return runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no base of their own
        raise EmbedderAway(f"{path} cannot be loaded ({_line(error)}); fetch the model again") from error


def _pooling(folder: str) -> str:
    """A flag a way (`pooling_mode_cls_token`), or in newer files the way's name (`pooling_mode`)."""
    config = _json(folder, POOLING)
    flags = (
        re.fullmatch(r"pooling_mode_(\w+?)(_tokens?)?", name) for name, on in config.items() if on is True
    )
    told: set[str] = {flag[1] for flag in flags if flag} | {str(config.get("pooling_mode", "mean"))}
    told = told - {"mean"} or {"mean"}
    if told not in ({"cls"}, {"mean"}):
        raise EmbedderAway(
            f"{folder} pools by {', '.join(sorted(told))}; choose a model that takes cls or mean"
        )
    return told.pop()


def _length(folder: str) -> int:
    """Some files say 1e30 and mean that they do not know."""
    told = [_json(folder, name).get(key) for name, key in LENGTHS]
    return int(
        min([number for number in told if isinstance(number, int | float) and number >= 1] + [LONGEST])
    )


def _json(folder: str, name: str) -> dict[str, Any]:
    path = os.path.join(folder, name)
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise EmbedderAway(f"{path} cannot be read ({error}); fetch the model again") from error
    return found if isinstance(found, dict) else {}


def _line(error: Exception) -> str:
    """An error's first line, at a length that fits a log."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
