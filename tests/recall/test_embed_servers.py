"""Embedding by real servers, a model fetched from a hub, and the settings that choose among them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from backstory import config
from backstory.errors import BadInput, EmbedderAway
from backstory.recall.embedders import choose as embedders
from backstory.recall.embedders import remote, static
from backstory.recall.embedders.protocol import Embedder
from tests.helpers.onnx_model import lay_out, length_one, states

pytestmark = pytest.mark.slow

KEY = "sk-the-key-that-nobody-may-see"

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
