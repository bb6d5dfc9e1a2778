"""Embedders on a server: Ollama, and whatever speaks OpenAI's API.

The server is the user's choice, and so is the key that goes there and nowhere else: a redirect is an error,
a loopback address is never reached through a proxy, and what a server says when it refuses is not repeated,
because some quote the key.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from backstory.errors import BadInput, EmbedderAway
from backstory.recall.embedders import protocol

OLLAMA = "http://127.0.0.1:11434"
OPENAI = "https://api.openai.com/v1"
TIMEOUT = 20.0
BATCH = 64
LONGEST_TEXT = 8_000  # bytes. A token is a byte at least, and OpenAI refuses a text of more than 8191 tokens
LONGEST_ANSWER = 64 << 20


class Remote:
    weight = protocol.TRANSFORMER_WEIGHT

    def __init__(
        self, id: str, server: EmbeddingServer, model: str, vectors: Callable[[object], object]
    ) -> None:
        """Asks for one vector right away: only the server knows the dimension."""
        self.id = id
        self._server = server
        self._model = model
        self._vectors = vectors
        self.dimension = self._ask(["dimension"]).shape[1]

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return protocol.rows(texts, self.dimension, self._in_batches)

    def _in_batches(self, texts: list[str]) -> NDArray[np.float32]:
        batches = (texts[start : start + BATCH] for start in range(0, len(texts), BATCH))
        answers = [self._ask([_cut(text) for text in batch]) for batch in batches]
        if any(answer.shape[1] != self.dimension for answer in answers):
            raise EmbedderAway(
                f"{self.id} now gives vectors of another length than {self.dimension}: the model behind the"
                " name has changed; start backstory again"
            )
        return np.concatenate(answers)

    def _ask(self, texts: list[str]) -> NDArray[np.float32]:
        answer = self._server.post({"model": self._model, "input": texts})
        try:
            return numbers(self._vectors(answer), len(texts))
        except (ValueError, OverflowError) as error:
            raise EmbedderAway(
                f"{self._server.name} gave no usable vectors ({error}); check embedding.url and that"
                f" {self._model} is an embedding model"
            ) from error


def ollama(model: str, url: str = "", key: str = "", timeout: float = TIMEOUT) -> Remote:
    server = EmbeddingServer(
        (url or OLLAMA) + "/api/embed", key, timeout, unknown=f"fetch the model with: ollama pull {model}"
    )
    return Remote(f"ollama:{model}", server, model, _ollama_vectors)


def openai(model: str, url: str = "", key: str = "", timeout: float = TIMEOUT) -> Remote:
    server = EmbeddingServer(
        (url or OPENAI) + "/embeddings", key, timeout, unknown=f"check embedding.url and the model {model}"
    )
    return Remote(f"openai:{model}", server, model, _openai_vectors)


def check(url: str, key: str) -> None:
    """Settings that could not work, or would end up in an error message, are refused before they are used."""
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound or "@" in parts.netloc or parts.query or parts.fragment or not _plain(url):
        raise BadInput(f"embedding.url should look like {OLLAMA} or {OPENAI}, without a password or a query")
    if not _plain(key):
        raise BadInput("embedding.key has a space or a sign that no key has; copy it again")


def numbers(vectors: object, count: int) -> NDArray[np.float32]:
    """The vectors of an answer, if they are just that: one each, equally long, finite numbers."""
    if not isinstance(vectors, list) or len(vectors) != count:
        raise ValueError(f"not a list of {count} vectors")
    for vector in vectors:
        if not isinstance(vector, list) or not vector or len(vector) != len(vectors[0]):
            raise ValueError("not vectors of one length")
        if any(type(number) is not float and type(number) is not int for number in vector):
            raise ValueError("not numbers only")
    with np.errstate(over="ignore"):
        found = np.array(vectors, dtype=np.float64).astype(np.float32)
    if not np.isfinite(found).all():
        raise ValueError("not finite numbers only")
    return found


class EmbeddingServer:
    """One address to post JSON to, and all that can go wrong there."""

    def __init__(self, url: str, key: str, timeout: float, unknown: str) -> None:
        parts = urlsplit(url)
        self.name = f"{parts.scheme}://{parts.netloc}"
        self._url = url
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._timeout = timeout
        self._unknown = unknown
        no_proxies = urllib.request.ProxyHandler({})
        usual_proxies = urllib.request.ProxyHandler()
        proxies = no_proxies if _loopback(parts.hostname or "") else usual_proxies
        self._opener = urllib.request.build_opener(proxies, _NoRedirect)

    def post(self, body: object) -> object:
        request = urllib.request.Request(  # noqa: S310  `check` saw to it that this is http or https
            self._url, json.dumps(body).encode(), self._headers, method="POST"
        )
        ends = time.monotonic() + self._timeout
        try:
            with self._opener.open(request, timeout=self._timeout) as response:
                return json.loads(self._read(response, ends))
        except urllib.error.HTTPError as error:
            error.close()
            raise EmbedderAway(f"{self.name} {self._refusal(error.code)}") from None
        except TimeoutError as error:
            raise self._too_slow() from error
        except urllib.error.URLError as error:
            if isinstance(error.reason, TimeoutError):
                raise self._too_slow() from error
            raise self._unreachable(error.reason) from error
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from error
        except (ValueError, RecursionError) as error:  # not JSON, or not UTF-8, or brackets without end
            raise EmbedderAway(f"{self.name} did not answer in JSON; check embedding.url") from error

    def _read(self, response: http.client.HTTPResponse, ends: float) -> bytes:
        """The body, within the time for the whole: the socket's timeout starts anew with every byte."""
        body = bytearray()
        while piece := response.read1(1 << 16):
            body += piece
            if len(body) > LONGEST_ANSWER:
                raise EmbedderAway(f"{self.name} answered without end; check embedding.url")
            if time.monotonic() > ends:
                raise TimeoutError
        return bytes(body)

    def _refusal(self, status: int) -> str:
        if 300 <= status < 400:
            return f"redirects elsewhere (HTTP {status}), which is not followed; correct embedding.url"
        if status in (401, 403):
            return f"refuses the key (HTTP {status}); set embedding.key to one that it accepts"
        if status == 404:
            return f"has no such model or page (HTTP 404); {self._unknown}"
        if status == 429:
            return "is asked too often, or the account is used up (HTTP 429); wait, or look at the account"
        return f"answered HTTP {status}; look into its log, and try another model"

    def _too_slow(self) -> EmbedderAway:
        return EmbedderAway(f"{self.name} did not answer within {self._timeout:g} s; see what keeps it busy")

    def _unreachable(self, reason: object) -> EmbedderAway:
        return EmbedderAway(f"{self.name} cannot be reached ({reason}); start it, or correct embedding.url")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """None leaves the answer an error. The default would send the key along to wherever it says."""


def _ollama_vectors(answer: object) -> object:
    return answer.get("embeddings") if isinstance(answer, dict) else None


def _openai_vectors(answer: object) -> object:
    """In the order of `index`: the answer may come in another."""
    items = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        return None
    placed = [(item.get("index", place), item.get("embedding")) for place, item in enumerate(items)]
    found = {place: vector for place, vector in placed if isinstance(place, int)}
    return [found.get(place) for place in range(len(items))]


def _cut(text: str) -> str:
    return text.encode()[:LONGEST_TEXT].decode("utf-8", "ignore")


def _plain(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
