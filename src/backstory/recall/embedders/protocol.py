"""What every embedder promises, and what to do while one is away.

An embedder turns texts into directions: unit-length vectors whose dot product says how near two texts are.
Where they come from (`static`, `onnx`, `remote`) is chosen in `embedders`; nobody else needs to know. A
search works without any of them, on words alone, so every way in which one can fail is the one error
`EmbedderAway`, and `Patient` keeps a server that is down from being asked again and again.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from backstory.errors import EmbedderAway

STATIC_WEIGHT = 0.5
TRANSFORMER_WEIGHT = 0.6  # it reads sentences, not only words, and deserves more of a say

FIRST_WAIT = 1.0
LONGEST_WAIT = 300.0
LOADING = 5.0  # how long to wait for another thread's load; a first download takes longer than a search may


class Embedder(Protocol):
    @property
    def id(self) -> str:
        """Model and source, stored beside the vectors: those of two embedders cannot be compared."""

    @property
    def dimension(self) -> int: ...

    @property
    def weight(self) -> float:
        """The vectors' share when they are mixed with the words' ranking."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit-length row a text; a blank text is a row of zeros. Raises EmbedderAway."""


class Patient:
    """An embedder that is made on first use and, after a failure, left alone for a while.

    The wait doubles with each failure. Meanwhile every call fails at once, with the reason, so that a search
    does not sit out a timeout each time. One lock guards the state, not the embedding itself: a search need
    not wait for a batch in the background.
    """

    def __init__(self, make: Callable[[], Embedder], clock: Callable[[], float] = time.monotonic) -> None:
        self._make = make
        self._clock = clock
        self._lock = threading.Lock()
        self._embedder: Embedder | None = None
        self._reason = ""
        self._next_try = -math.inf
        self._wait = FIRST_WAIT

    @property
    def is_loaded(self) -> bool:
        """Whether asking anything of it costs no time."""
        return self._embedder is not None

    @property
    def id(self) -> str:
        return self._loaded().id

    @property
    def dimension(self) -> int:
        return self._loaded().dimension

    @property
    def weight(self) -> float:
        return self._loaded().weight

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        embedder = self._loaded()
        try:
            rows = embedder.embed(texts)
        except EmbedderAway as away:
            with self._lock:
                if self._embedder is embedder:  # else another thread met the same failure and counted it
                    self._embedder = None
                    self._put_off(away)
            raise
        self._wait = FIRST_WAIT
        return rows

    def _loaded(self) -> Embedder:
        if (ready := self._embedder) is not None:
            return ready
        if not self._lock.acquire(timeout=LOADING):
            raise EmbedderAway("the embedder is still being loaded; ask again in a minute")
        try:
            if self._embedder is None:
                left = self._next_try - self._clock()
                if left > 0:
                    raise EmbedderAway(f"{self._reason}; tried again in {math.ceil(left)} s")
                try:
                    self._embedder = self._make()
                except EmbedderAway as away:
                    self._put_off(away)
                    raise
            return self._embedder
        finally:
            self._lock.release()

    def _put_off(self, away: EmbedderAway) -> None:
        self._reason = str(away)
        self._next_try = self._clock() + self._wait
        self._wait = min(self._wait * 2, LONGEST_WAIT)


def rows(
    texts: Sequence[str], dimension: int, some: Callable[[list[str]], NDArray[np.float32]]
) -> NDArray[np.float32]:
    """What `embed` promises, given a function for clean texts with something in them.

    Half a surrogate pair has no UTF-8, which is all that tokenizers and servers speak; an empty text is
    refused by some servers.
    """
    clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
    told = [place for place, text in enumerate(clean) if text.strip()]
    result = np.zeros((len(clean), dimension), dtype=np.float32)
    if told:
        result[told] = unit(some([clean[place] for place in told]))
    return result


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each row at length 1; zeros stay zeros."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))[:, np.newaxis]
    lengths[lengths == 0] = 1
    result = np.empty_like(vectors)
    np.divide(vectors, lengths, out=result, casting="same_kind")
    return result


def quantise(vectors: NDArray[np.float32]) -> NDArray[np.int8]:
    """A quarter of the bytes: each row scaled so that its largest number is 127. Only directions survive."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
    largest[largest == 0] = 1
    result: NDArray[np.int8] = np.rint(vectors / largest * 127).astype(np.int8)
    return result
