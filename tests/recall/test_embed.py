"""Embedders: the real table, a real (tiny) ONNX model, real servers; and patience with all of them."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from backstory import config
from backstory.errors import BadInput, EmbedderAway
from backstory.recall.embedders import choose as embedders
from backstory.recall.embedders import onnx, remote, static
from backstory.recall.embedders import protocol as embed
from backstory.recall.embedders.protocol import Embedder, Patient

KEY = "sk-the-key-that-nobody-may-see"
TEXTS = [
    "the cat sat",
    "def migrate(db: Connection) -> None: ...",
    "Grüße aus 東京 🎉, <s> and </s>",
    "one\ntwo\tthree  four",
    "A Word " * 300,
]


# static


@pytest.fixture(scope="module")
def words() -> static.Static:
    return static.Static()


def test_what_means_the_same_is_nearer(words: static.Static) -> None:
    cat, kitten, database = words.embed(["the cat sat", "a kitten", "database migration"])
    assert cat @ kitten > cat @ database + 0.2


def test_the_static_vectors_are_those_of_wordllama(words: static.Static) -> None:
    root = logging.getLogger()
    before = root.level, list(root.handlers)
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer
    from wordllama.inference import WordLlamaInference  # type: ignore[import-untyped]

    root.level, root.handlers = before  # its import sets up logging for everybody
    spec = find_spec("wordllama")
    assert spec is not None and spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0])
    theirs = WordLlamaInference(
        load_file(folder / "weights" / "l2_supercat_256.safetensors")["embedding.weight"],
        Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json")),
    )
    np.testing.assert_allclose(words.embed(TEXTS), theirs.embed(TEXTS, norm=True), atol=1e-6)


def test_static_vectors_say_where_they_come_from(words: static.Static) -> None:
    assert (words.id, words.dimension, words.weight) == ("static:wordllama-l2_supercat_256", 256, 0.5)
    assert words.embed(TEXTS).dtype == np.float32
    assert words.embed([]).shape == (0, 256)


def test_rows_have_length_one_and_blank_texts_are_zeros(words: static.Static) -> None:
    lengths = np.linalg.norm(words.embed(["", "x", " \n", *TEXTS]), axis=1)
    np.testing.assert_allclose(lengths, [0, 1, 0, 1, 1, 1, 1, 1], atol=1e-6)


def test_a_batch_gives_what_its_texts_give_alone(words: static.Static) -> None:
    many = [f"{text} {number}" for number in range(400) for text in TEXTS]
    np.testing.assert_array_equal(words.embed(many)[::57], [words.embed([text])[0] for text in many[::57]])


@pytest.mark.parametrize(
    "text", ["word " * 20_000, "x" * 100_000, "\n" * 99_999 + "x", "é\x00\ud800" * 33_000]
)
def test_a_text_of_100_kb_is_embedded(text: str, words: static.Static) -> None:
    started = time.monotonic()
    assert np.linalg.norm(words.embed([text, "short"]), axis=1) == pytest.approx([1, 1], abs=1e-6)
    assert time.monotonic() - started < 5


def test_all_of_a_long_text_counts(words: static.Static, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = words.embed(TEXTS)
    monkeypatch.setattr(static, "BATCH_TOKENS", 7)
    np.testing.assert_allclose(words.embed(TEXTS), at_once, atol=1e-6)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=()))))
def test_any_text_whatsoever_is_embedded(texts: list[str]) -> None:
    vectors = SHARED.embed(texts)
    assert vectors.shape == (len(texts), 256)
    assert np.isfinite(vectors).all()


SHARED = Patient(static.Static)


def test_importing_it_imports_nothing_heavy_and_using_it_not_wordllama() -> None:
    code = """if True:
        import sys
        from backstory.recall.embedders import choose as embedders
        from backstory.recall.embedders import protocol as embed
        heavy = {"tokenizers", "onnxruntime", "wordllama", "urllib", "huggingface_hub"}
        assert not heavy & set(sys.modules), heavy & set(sys.modules)
        make = embedders.chosen({})
        assert make().embed(["x"]).shape == (1, 256)
        assert heavy & set(sys.modules) <= {"tokenizers"}, heavy & set(sys.modules)
    """
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 64,
        b"\x02\0\0\0\0\0\0\0{}",
        b"\x02\0\0\0\0\0\0\0[]",
        (70).to_bytes(8, "little")
        + b'{"embedding.weight":{"dtype":"F16","shape":[4,4],"data_offsets":[0,32]}}'[:70],
        (72).to_bytes(8, "little")
        + b'{"embedding.weight":{"dtype":"F16","shape":[4,4],"data_offsets":[0,32]}}',
        (72).to_bytes(8, "little")
        + b'{"embedding.weight":{"dtype":"F32","shape":[4,4],"data_offsets":[0,64]}}'
        + bytes(64),
    ],
)
def test_a_broken_table_is_an_error_that_names_it(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    path.write_bytes(content)
    with pytest.raises(EmbedderAway, match=r"weights\.safetensors cannot be read .* install backstory again"):
        static.table(str(path))


@pytest.mark.parametrize("module", ["tokenizers", "wordllama"])
def test_without_its_packages_it_says_what_to_install(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if module == "tokenizers":
        monkeypatch.setitem(sys.modules, module, None)
    else:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(EmbedderAway, match=f"{module} .*install backstory again.*or set embedder to off"):
        static.Static()


# quantise


def test_quantising_keeps_directions_and_zeros() -> None:
    exact = np.random.default_rng(1).normal(size=(50, 256)).astype(np.float32)
    small = embed.quantise(np.vstack([exact, np.zeros((1, 256), np.float32)]))
    assert small.dtype == np.int8
    assert set(np.abs(small[:-1].astype(int)).max(axis=1)) == {127}
    assert not small[-1].any()
    near = np.sum(embed.unit(exact) * embed.unit(small[:-1].astype(np.float32)), axis=1)
    assert near.min() > 0.999
    np.testing.assert_array_equal(embed.quantise(exact * 1e-20), small[:-1])
    assert embed.quantise(np.zeros((0, 256), np.float32)).shape == (0, 256)


# onnx


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


# servers


Reply = tuple[int, dict[str, str], bytes]


class Web:
    """A server on the loopback that answers what `reply` says and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str], Any]] = []
        self.reply: Callable[[str, Any], Reply] = lambda path, body: (404, {}, b"")
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                body = json.loads(raw) if raw else None
                web.asked.append((self.path, dict(self.headers), body))
                status, headers, content = web.reply(self.path, body)
                self.send_response(status)
                for name, value in ({"Content-Length": str(len(content))} | headers).items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    try:
                        self.wfile.write(content)
                    except ConnectionError:
                        pass  # it was given up

            do_GET = do_HEAD = do_POST

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=partial(self.server.serve_forever, 0.02))
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def web() -> Iterator[Web]:
    server = Web()
    yield server
    server.close()


@pytest.fixture
def elsewhere() -> Iterator[Web]:
    server = Web()
    server.reply = vectors
    yield server
    server.close()


def vector(text: str) -> list[float]:
    return [len(text), 1, 0.5]


def vectors(path: str, body: Any) -> Reply:
    """What Ollama or OpenAI would say; OpenAI's last vector comes first, as it is free to."""
    found = [vector(text) for text in body["input"]]
    if path == "/api/embed":
        return as_json({"model": body["model"], "embeddings": found})
    data = [{"index": at, "embedding": each} for at, each in enumerate(found)]
    return as_json({"object": "list", "data": data[::-1]})


def as_json(answer: object, status: int = 200) -> Reply:
    return status, {"Content-Type": "application/json"}, json.dumps(answer).encode()


def made(env: dict[str, str]) -> Embedder:
    make = embedders.chosen(env)
    assert make is not None
    return make()


def ollama(web: Web) -> Embedder:
    return remote.ollama("nomic-embed-text", web.url, timeout=5)


def openai(web: Web) -> Embedder:
    return remote.openai("text-embedding-3-small", f"{web.url}/v1", KEY, timeout=5)


BOTH = pytest.mark.parametrize("source", [ollama, openai])
Source = Callable[[Web], Embedder]


def test_ollama_is_asked_as_it_expects(web: Web) -> None:
    web.reply = vectors
    embedder = made(
        {"BACKSTORY_EMBEDDER": "ollama:nomic-embed-text", "BACKSTORY_EMBEDDING_URL": web.url + "/"}
    )
    assert (embedder.id, embedder.dimension, embedder.weight) == ("ollama:nomic-embed-text", 3, 0.6)
    embedder.embed(["red"])
    path, headers, body = web.asked[-1]
    assert (path, body) == ("/api/embed", {"model": "nomic-embed-text", "input": ["red"]})
    assert "Authorization" not in headers


def test_openai_is_asked_as_it_expects(web: Web) -> None:
    web.reply = vectors
    env = {
        "BACKSTORY_EMBEDDER": "openai:text-embedding-3-small",
        "BACKSTORY_EMBEDDING_URL": f"{web.url}/v1",
        "BACKSTORY_EMBEDDING_KEY": KEY,
    }
    embedder = made(env)
    assert (embedder.id, embedder.dimension, embedder.weight) == ("openai:text-embedding-3-small", 3, 0.6)
    embedder.embed(["red"])
    path, headers, body = web.asked[-1]
    assert (path, body) == ("/v1/embeddings", {"model": "text-embedding-3-small", "input": ["red"]})
    assert headers["Authorization"] == f"Bearer {KEY}"


@BOTH
def test_a_server_s_vectors_come_in_order_at_length_one(source: Source, web: Web) -> None:
    web.reply = vectors
    texts = ["x" * (1 + number % 90) for number in range(150)]
    found = source(web).embed(texts)
    wanted = [length_one(np.array(vector(text), dtype=np.float32)) for text in texts]
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    assert [len(body["input"]) for _, _, body in web.asked] == [1, 64, 64, 22]


@BOTH
def test_a_server_gets_only_texts_it_can_read(source: Source, web: Web) -> None:
    web.reply = vectors
    found = source(web).embed(["", "half \ud800 and \x00", " ", "é" * 100_000])
    assert [bool(row.any()) for row in found] == [False, True, False, True]
    assert web.asked[-1][2]["input"] == ["half ? and \x00", "é" * 4_000]


@BOTH
@pytest.mark.parametrize(
    ("status", "says"),
    [
        (400, "answered HTTP 400; look into its log"),
        (401, "refuses the key .HTTP 401.; set embedding.key"),
        (
            404,
            "has no such model or page .HTTP 404.; (fetch the model with: ollama pull nomic|check embedding)",
        ),
        (429, "is asked too often"),
        (500, "answered HTTP 500; look into its log"),
    ],
)
def test_a_refusal_says_what_to_do_and_never_the_key(
    status: int, says: str, source: Source, web: Web
) -> None:
    web.reply = lambda path, body: (status, {}, f"Incorrect API key provided: {KEY}".encode())
    with pytest.raises(EmbedderAway, match=f"^{web.url} {says}") as caught:
        source(web)
    assert KEY not in all_that_is_said(caught.value)


def all_that_is_said(error: BaseException | None) -> str:
    return f"{error!r} {all_that_is_said(error.__cause__ or error.__context__)}" if error else ""


@BOTH
@pytest.mark.parametrize(
    "answer",
    [
        [],
        {},
        None,
        3,
        {"embeddings": None, "data": [None]},
        {"embeddings": [], "data": []},
        {"embeddings": [[]], "data": [{"embedding": []}]},
        {"embeddings": [[1], [2]], "data": [{"embedding": [1]}, {"embedding": [2]}]},
        {"embeddings": [[1, "2"]], "data": [{"embedding": [1, "2"]}]},
        {"embeddings": [[1, True]], "data": [{"embedding": "AAAA"}]},
        {"embeddings": [[1, float("nan")]], "data": [{"embedding": [1, float("nan")]}]},
        {"embeddings": [[1, float("inf")]], "data": [{"embedding": [1, 1e39]}]},
        {"embeddings": [[1, 10**400]], "data": [{"embedding": [10**400]}]},
        {"embeddings": {"0": [1]}, "data": [{"embedding": [1], "index": 1}]},
        {"embeddings": "AAAA", "data": [{"embedding": [1], "index": []}]},
    ],
)
def test_an_answer_of_another_shape_is_refused(answer: object, source: Source, web: Web) -> None:
    web.reply = lambda path, body: as_json(answer)
    with pytest.raises(EmbedderAway, match=r"gave no usable vectors .*; check embedding.url and that"):
        source(web)


@BOTH
@pytest.mark.parametrize("content", [b"", b"<html>", b"\xff\xfe", b"[" * 200_000])
def test_an_answer_that_is_no_json_is_refused(content: bytes, source: Source, web: Web) -> None:
    web.reply = lambda path, body: (200, {}, content)
    with pytest.raises(EmbedderAway, match="did not answer in JSON"):
        source(web)


@BOTH
@pytest.mark.parametrize("lengths", [[4, 4], [3, 4]])
def test_vectors_of_another_length_than_before_are_refused(
    lengths: list[int], source: Source, web: Web
) -> None:
    web.reply = vectors
    embedder = source(web)
    found = [[1.0] * length for length in lengths]
    web.reply = lambda path, body: as_json(
        {"embeddings": found, "data": [{"embedding": each} for each in found]}
    )
    with pytest.raises(EmbedderAway, match=r"another length than 3|not vectors of one length"):
        embedder.embed(["red", "green"])


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_refused_and_the_key_stays_here(status: int, web: Web, elsewhere: Web) -> None:
    web.reply = lambda path, body: (status, {"Location": f"{elsewhere.url}/v1/embeddings"}, b"")
    with pytest.raises(EmbedderAway, match=f"redirects elsewhere .HTTP {status}., which is not followed"):
        openai(web)
    assert len(web.asked) == 1
    assert not elsewhere.asked


def test_a_slow_server_is_given_up(web: Web) -> None:
    done = threading.Event()
    web.reply = lambda path, body: as_json(done.wait(10))
    started = time.monotonic()
    try:
        with pytest.raises(EmbedderAway, match=r"did not answer within 0.2 s"):
            remote.openai("m", web.url, KEY, timeout=0.2)
    finally:
        done.set()
    assert time.monotonic() - started < 5


def test_a_server_that_drips_is_given_up() -> None:
    """Each byte comes in time; the whole does not."""

    def drip(listener: socket.socket) -> None:
        client, _ = listener.accept()
        with client:
            client.recv(1 << 16)
            client.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
            for _ in range(100):
                try:
                    client.sendall(b" ")
                except OSError:
                    return
                time.sleep(0.05)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,))
        thread.start()
        started = time.monotonic()
        with pytest.raises(EmbedderAway, match=r"did not answer within 0.3 s"):
            remote.openai("m", f"http://127.0.0.1:{listener.getsockname()[1]}", KEY, timeout=0.3)
        assert time.monotonic() - started < 3
        thread.join()


def test_nobody_there_is_an_error_that_says_to_start_it() -> None:
    server = Web()
    server.reply = vectors
    embedder = ollama(server)
    server.close()
    with pytest.raises(EmbedderAway, match=r"cannot be reached \(.*refused.*\); start it"):
        embedder.embed(["red"])


def test_the_loopback_is_never_reached_through_a_proxy(
    web: Web, elsewhere: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    web.reply = vectors
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, elsewhere.url)
    openai(web)
    remote.openai("m", web.url.replace("127.0.0.1", "localhost"), KEY)
    assert not elsewhere.asked
    elsewhere.reply = lambda path, body: vectors("/embeddings", body)
    assert remote.openai("m", "http://embeddings.invalid").dimension == 3
    assert [path for path, _, _ in elsewhere.asked] == ["http://embeddings.invalid/embeddings"]


# the hub


COMMIT = "1" * 40


def hub(folder: Path) -> Callable[[str, Any], Reply]:
    """The four calls of the hub's API that a download takes."""
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}

    def reply(path: str, body: Any) -> Reply:
        path = path.partition("?")[0]
        if path == "/api/models/acme/tiny/revision/main":
            return as_json({"id": "acme/tiny", "sha": COMMIT, "siblings": [{"rfilename": n} for n in files]})
        if path == f"/api/models/acme/tiny/tree/{COMMIT}":
            return as_json(
                [{"type": "file", "path": n, "size": p.stat().st_size, "oid": "0"} for n, p in files.items()]
            )
        name = path.removeprefix(f"/acme/tiny/resolve/{COMMIT}/")
        if name in files:
            return 200, {"ETag": f'"{name}"', "X-Repo-Commit": COMMIT}, files[name].read_bytes()
        return 404, {"X-Error-Code": "RepoNotFound"}, b""

    return reply


def embedded_in_a_process(name: str, home: Path, url: str) -> str:
    code = f"""if True:
        from backstory.errors import EmbedderAway
        from backstory.recall.embedders.onnx import Onnx
        try:
            embedder = Onnx({name!r})
            print(embedder.id, embedder.embed(["red"]).tolist())
        except EmbedderAway as away:
            print(away)
    """
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "HF_ENDPOINT": url}
    return subprocess.run(
        [sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True, timeout=60, check=True
    ).stdout


def test_a_model_is_fetched_from_the_hub_once(web: Web, home: Path, tmp_path: Path) -> None:
    source = lay_out(tmp_path / "source", model="onnx/model.onnx", files={"unwanted.bin": "x"})
    web.reply = hub(source)
    first = embedded_in_a_process("acme/tiny", home, web.url)
    wanted = length_one(states("red").mean(axis=0)).tolist()
    assert first.startswith("onnx:acme/tiny [[")
    np.testing.assert_allclose(json.loads(first.split(" ", 1)[1]), [wanted], atol=1e-6)
    assert not [path for path, _, _ in web.asked if "unwanted" in path]

    web.asked.clear()
    assert embedded_in_a_process("acme/tiny", home, web.url) == first
    assert not web.asked
    said = embedded_in_a_process("acme/huge", home, web.url)
    assert said.startswith("the model acme/huge cannot be fetched from the hub (")
    assert "check its name" in said


# patience


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Moody:
    """An embedder at the outer boundary: away whenever `down` is set."""

    id, dimension, weight = "moody", 2, 0.5

    def __init__(self) -> None:
        self.down = False
        self.made = 0
        self.asked = 0

    def make(self) -> Embedder:
        self.made += 1
        if self.down:
            raise EmbedderAway("the server is down; start it")
        return self

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += 1
        if self.down:
            raise EmbedderAway("the server is down; start it")
        return np.ones((len(texts), self.dimension), np.float32)


def test_an_embedder_is_made_once_and_on_first_use() -> None:
    moody = Moody()
    patient: Embedder = Patient(moody.make)
    assert moody.made == 0
    assert (patient.id, patient.dimension, patient.weight) == ("moody", 2, 0.5)
    assert patient.embed(["x", "y"]).shape == (2, 2)
    assert moody.made == 1


def test_the_wait_doubles_up_to_five_minutes_and_starts_anew_after_success() -> None:
    clock, moody = Clock(), Moody()
    patient = Patient(moody.make, clock)
    moody.down = True
    for tries, wait in enumerate([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300], start=1):
        with pytest.raises(EmbedderAway, match=r"^the server is down; start it$"):
            patient.embed(["x"])
        for moment in (0, wait - 0.5):
            clock.now += moment
            with pytest.raises(
                EmbedderAway, match=rf"start it; tried again in {wait if not moment else 1} s$"
            ):
                patient.embed(["x"])
        assert moody.made == tries
        clock.now += 0.5
    moody.down = False
    patient.embed(["x"])
    moody.down = True
    for wait in (1, 2):
        with pytest.raises(EmbedderAway, match=r"start it$"):
            patient.embed(["x"])
        with pytest.raises(EmbedderAway, match=f"tried again in {wait} s"):
            assert patient.id
        clock.now += wait
    moody.down = False
    assert patient.embed(["x"]).shape == (1, 2)


def test_a_failure_that_many_threads_meet_counts_once() -> None:
    clock, moody = Clock(), Moody()
    patient = Patient(moody.make, clock)
    patient.embed(["x"])
    together = threading.Barrier(4)
    plain = moody.embed

    def at_once(texts: Sequence[str]) -> NDArray[np.float32]:
        together.wait(10)
        return plain(texts)

    def one_failure() -> None:
        with pytest.raises(EmbedderAway):
            patient.embed(["x"])

    moody.embed = at_once  # type: ignore[method-assign]
    moody.down = True
    in_threads(4, one_failure)
    with pytest.raises(EmbedderAway, match="tried again in 1 s"):
        patient.embed(["x"])


def test_threads_share_one_embedder() -> None:
    moody = Moody()

    def slowly() -> Embedder:
        time.sleep(0.1)
        return moody.make()

    patient = Patient(slowly)
    in_threads(8, lambda: patient.embed(["x"]))
    assert (moody.made, moody.asked) == (1, 8)


def test_a_search_does_not_wait_for_a_download(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "LOADING", 0.05)
    moody, begun, arrived = Moody(), threading.Event(), threading.Event()

    def download() -> Embedder:
        begun.set()
        assert arrived.wait(10)
        return moody.make()

    patient = Patient(download)
    background = threading.Thread(target=lambda: patient.embed(["x"]))
    background.start()
    assert begun.wait(10)
    with pytest.raises(EmbedderAway, match="still being loaded"):
        patient.embed(["x"])
    arrived.set()
    background.join()
    assert patient.embed(["x"]).shape == (1, 2)


def test_what_waiting_cannot_mend_is_not_waited_for() -> None:
    def impossible() -> Embedder:
        raise BadInput("no such thing")

    patient = Patient(impossible)
    for _ in range(2):
        with pytest.raises(BadInput):
            patient.embed(["x"])


def in_threads(count: int, work: Callable[[], object]) -> None:
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  whatever it is, the test shall see it
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# settings


def test_static_is_the_default_and_off_is_none(home: Path) -> None:
    assert embedders.chosen({}) is static.Static
    assert embedders.chosen({"BACKSTORY_EMBEDDER": "off"}) is None


def test_the_embedder_is_set_at_the_top_of_the_file(data: Path) -> None:
    data.mkdir(parents=True)
    env = {"BACKSTORY_HOME": str(data)}
    (data / "config.toml").write_text('embedder = "off"\n[embedding]\nurl = ""\nkey = ""\n')
    assert embedders.chosen(env) is None
    assert config.unknown(env) == []
    (data / "config.toml").write_text('[embedder]\nurl = "x"\n')
    assert config.unknown(env) == ["embedder.url"]
    with pytest.raises(BadInput, match="embedder should be a string like 'static'"):
        embedders.chosen(env)


@pytest.mark.parametrize("said", ["Static", "static:x", "onnx", "onnx:", "ollama:", "openai", "hal:9000"])
def test_an_unknown_embedder_lists_the_possible_ones(said: str) -> None:
    with pytest.raises(
        BadInput, match=r"it is one of static, off, onnx:<folder or hub name>, ollama:<model>"
    ):
        embedders.chosen({"BACKSTORY_EMBEDDER": said})


def test_a_model_s_folder_is_named_from_the_root_or_from_home(home: Path) -> None:
    lay_out(home / "models" / "tiny")
    assert made({"BACKSTORY_EMBEDDER": "onnx:~/models/tiny"}).id == "onnx:tiny"
    assert made({"BACKSTORY_EMBEDDER": f"onnx:{home}/models/tiny/"}).id == "onnx:tiny"
    for said in ("./tiny", "../tiny", "models/tiny/onnx", ".", "a b"):
        with pytest.raises(BadInput, match="give its whole path"):
            embedders.chosen({"BACKSTORY_EMBEDDER": f"onnx:{said}"})


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "ftp://host", "host:11434", "http://", "http://user:word@host", "http://host/?key=word",
     "http://host:word", "http://[::1", "http://host/a b", "http://host/\n"],
)  # fmt: skip
def test_an_address_that_cannot_work_is_refused_without_repeating_it(url: str) -> None:
    env = {"BACKSTORY_EMBEDDER": "openai:m", "BACKSTORY_EMBEDDING_URL": url}
    with pytest.raises(BadInput, match=r"embedding\.url should look like") as caught:
        embedders.chosen(env)
    assert "word" not in str(caught.value).replace("password", "")


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "schlüssel"])
def test_a_key_that_cannot_be_one_is_refused_without_repeating_it(key: str) -> None:
    with pytest.raises(BadInput, match=r"embedding\.key has a space") as caught:
        embedders.chosen({"BACKSTORY_EMBEDDER": "openai:m", "BACKSTORY_EMBEDDING_KEY": key})
    assert key not in str(caught.value)


def test_the_environment_s_key_goes_to_openai_only(web: Web) -> None:
    env = {"BACKSTORY_EMBEDDER": "openai:m", "OPENAI_API_KEY": f"{KEY}\n"}
    asked = cast("partial[Embedder]", embedders.chosen(env))
    assert asked.args == ("m", "https://api.openai.com/v1", KEY)
    web.reply = vectors
    made(env | {"BACKSTORY_EMBEDDING_URL": web.url})
    assert "Authorization" not in web.asked[-1][1]
