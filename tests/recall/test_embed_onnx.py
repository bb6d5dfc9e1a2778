"""Embedding with a real (tiny) ONNX model."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from backstory.errors import EmbedderAway
from backstory.recall.embedders import onnx
from tests.helpers.onnx_model import STATES, lay_out, length_one, states


@pytest.mark.parametrize("model", ["model.onnx", "onnx/model.onnx"])
def test_token_states_are_pooled_to_their_mean(model: str, tmp_path: Path) -> None:
    embedder = onnx.Onnx(str(lay_out(tmp_path / "tiny", model=model)))
    assert (embedder.id, embedder.dimension, embedder.weight) == ("onnx:tiny", 4, 0.6)
    found = embedder.embed(["red", "green blue red", "", "unheard of"])
    np.testing.assert_allclose(found[0], length_one(states("red").mean(axis=0)), atol=1e-6)
    np.testing.assert_allclose(found[1], length_one(states("green", "blue", "red").mean(axis=0)), atol=1e-6)
    assert not found[2].any()
    np.testing.assert_allclose(found[3], length_one(states("[UNK]", "[UNK]").mean(axis=0)), atol=1e-6)


@pytest.mark.parametrize(
    "config",
    [{"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, {"pooling_mode": "cls"}],
)
def test_the_first_token_is_taken_where_the_files_say_so(config: object, tmp_path: Path) -> None:
    embedder = onnx.Onnx(str(lay_out(tmp_path / "tiny", files={"1_Pooling/config.json": config})))
    np.testing.assert_allclose(embedder.embed(["red", "green blue"]), [length_one(STATES[2])] * 2, atol=1e-6)


def test_a_sentence_embedding_is_taken_as_it_is(tmp_path: Path) -> None:
    embedder = onnx.Onnx(str(lay_out(tmp_path / "tiny", pooled=True)))
    np.testing.assert_allclose(embedder.embed(["red"])[0], length_one(states("red").max(axis=0)), atol=1e-6)


@pytest.mark.parametrize("inputs", [["input_ids"], ["input_ids", "token_type_ids", "attention_mask"]])
@pytest.mark.parametrize("kind", ["INT32", "INT64"])
def test_a_model_is_fed_what_it_declares(inputs: list[str], kind: str, tmp_path: Path) -> None:
    embedder = onnx.Onnx(str(lay_out(tmp_path / "tiny", inputs=inputs, kind=kind)))
    np.testing.assert_allclose(embedder.embed(["red"])[0], length_one(states("red").mean(axis=0)), atol=1e-6)


@pytest.mark.parametrize(
    ("files", "tokens"),
    [
        ({}, 512),
        ({"tokenizer_config.json": {"model_max_length": 1e30}}, 512),
        ({"sentence_bert_config.json": {"max_seq_length": 4}}, 4),
        (
            {
                "sentence_bert_config.json": {"max_seq_length": None},
                "tokenizer_config.json": {"model_max_length": 6},
            },
            6,
        ),
    ],
)
def test_a_long_text_is_cut_at_the_model_s_length(
    files: dict[str, object], tokens: int, tmp_path: Path
) -> None:
    embedder = onnx.Onnx(str(lay_out(tmp_path / "tiny", files=files)))
    cut = states(*["red"] * (tokens - 2)).mean(axis=0)
    np.testing.assert_allclose(embedder.embed(["red " * 25_000])[0], length_one(cut), atol=1e-5)


def test_onnx_batches_give_what_single_texts_give(tmp_path: Path) -> None:
    embedder = onnx.Onnx(str(lay_out(tmp_path / "tiny")))
    texts = [" ".join(["red", "green", "blue"][: 1 + number % 3] * (1 + number % 7)) for number in range(100)]
    alone = [embedder.embed([text])[0] for text in texts]
    np.testing.assert_allclose(embedder.embed(texts), alone, atol=1e-6)


def test_a_folder_without_a_model_or_a_tokenizer_says_so(tmp_path: Path) -> None:
    with pytest.raises(EmbedderAway, match=r"holds no model\.onnx or onnx/model\.onnx; choose"):
        onnx.Onnx(str(tmp_path / "nowhere"))
    (lay_out(tmp_path / "tiny") / "tokenizer.json").unlink()
    with pytest.raises(EmbedderAway, match=r"tokenizer\.json cannot be read"):
        onnx.Onnx(str(tmp_path / "tiny"))


def test_models_that_cannot_be_used_say_so(tmp_path: Path) -> None:
    broken = lay_out(tmp_path / "broken")
    (broken / "model.onnx").write_bytes(b"no model at all")
    with pytest.raises(EmbedderAway, match=r"model\.onnx cannot be loaded"):
        onnx.Onnx(str(broken))
    with pytest.raises(EmbedderAway, match="asks for input_ids, position_ids; choose a sentence model"):
        onnx.Onnx(str(lay_out(tmp_path / "odd", inputs=["input_ids", "position_ids"])))
    endless = lay_out(tmp_path / "endless", table=STATES * np.float32("nan"))
    with pytest.raises(EmbedderAway, match="does not give one vector a text"):
        onnx.Onnx(str(endless))
    (lay_out(tmp_path / "torn") / "tokenizer_config.json").write_text("{")
    with pytest.raises(EmbedderAway, match=r"tokenizer_config\.json cannot be read"):
        onnx.Onnx(str(tmp_path / "torn"))
    pooling: dict[str, object] = {"1_Pooling/config.json": {"pooling_mode_lasttoken": True}}
    with pytest.raises(EmbedderAway, match="pools by lasttoken; choose"):
        onnx.Onnx(str(lay_out(tmp_path / "last", files=pooling)))


@pytest.mark.parametrize("module", ["onnxruntime", "tokenizers"])
def test_without_the_extra_it_says_what_to_install(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = lay_out(tmp_path / "tiny")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(EmbedderAway, match=f"{module} .*; install backstory with its onnx extra"):
        onnx.Onnx(str(folder))
