"""A tiny ONNX model with a tokenizer of three words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "red", "green", "blue"]

STATES = np.random.default_rng(2).normal(size=(len(VOCABULARY), 4)).astype(np.float32)


def states(*tokens: str) -> NDArray[np.float32]:
    return STATES[[VOCABULARY.index(token) for token in ("[CLS]", *tokens, "[SEP]")]]


def length_one(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    return cast("NDArray[np.float32]", vector / np.linalg.norm(vector))


def lay_out(
    folder: Path,
    *,
    inputs: Sequence[str] = ("input_ids", "attention_mask"),
    pooled: bool = False,
    kind: str = "INT64",
    model: str = "model.onnx",
    files: dict[str, object] | None = None,
    table: NDArray[np.float32] = STATES,
) -> Path:
    """A model whose token states are rows of a table, with a tokenizer of three words."""
    from onnx import TensorProto, checker, helper, numpy_helper, save
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    ids = getattr(TensorProto, kind)
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])]
    outputs = [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["n", "t", 4])]
    tables = [numpy_helper.from_array(table, "table")]
    if pooled:
        nodes.append(
            helper.make_node("ReduceMax", ["last_hidden_state", "axes"], ["sentence_embedding"], keepdims=0)
        )
        outputs.append(helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, ["n", 4]))
        tables.append(numpy_helper.from_array(np.array([1], dtype=np.int64), "axes"))
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, ids, ["n", "t"]) for name in inputs],
        outputs,
        tables,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    checker.check_model(made)
    (folder / model).parent.mkdir(parents=True, exist_ok=True)
    save(made, str(folder / model))

    tokenizer = Tokenizer(
        models.WordLevel({word: at for at, word in enumerate(VOCABULARY)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.enable_padding(length=128)  # some files do; it must not be taken over
    tokenizer.save(str(folder / "tokenizer.json"))
    for name, content in (files or {}).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content))
    return folder
