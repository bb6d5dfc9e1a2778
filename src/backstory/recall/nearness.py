"""How near lines are to a text: int8 vectors, found by their signs where there are many.

256 bits are an eighth of 256 bytes to read. The signs are of what remains when the mean is taken away,
because static vectors all lean the same way; those that agree with the query's in most places are then
compared exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

EXACT_BELOW = 20_000  # lines; above, the signs choose whose cosine is worth computing
CANDIDATES, CANDIDATE_SHARE = 400, 0.06
SAMPLE = 512
SIGN_BLOCK = 65_536  # lines whose signs are compared at a time, for the same reason
BLOCK = 1_024  # lines at a time: they stay in the cache while they are turned into floats

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
Column = NDArray[Any]


class Vectors:
    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.count = 0  # lines that have one
        self.there: Column = np.zeros(0, np.bool_)
        self._values: Column = np.zeros((0, dimension), np.int8)
        self._norms: Column = np.zeros(0, np.float32)
        self._planes = np.zeros((-(-dimension // 64), 0), np.uint64)
        self._signed = 0  # so many of the first lines have their signs
        self._mean = np.zeros(dimension, np.float32)
        self._mean_of = 0  # so many lines had a vector when it was taken

    def room(self, size: int) -> None:
        self.there = room(self.there, size)
        self._values = room(self._values, size)
        self._norms = room(self._norms, size)

    def put(self, lines: Ints, joined: bytes) -> None:
        values = np.frombuffer(joined, np.int8).reshape(-1, self.dimension)
        self._values[lines] = values
        for at in range(0, len(lines), BLOCK):
            part = values[at : at + BLOCK].astype(np.float32)
            self._norms[lines[at : at + BLOCK]] = np.sqrt(np.einsum("ij,ij->i", part, part))
        self.count += int(np.count_nonzero(~self.there[lines]))
        self.there[lines] = True
        known = lines[lines < self._signed]
        if len(known) > BLOCK:
            self._signed = int(known.min())
        elif len(known):
            self._planes[:, known] = self._signs(known)

    def forget(self, line: int) -> None:
        self.count -= int(self.there[line])
        self.there[line] = False
        self._values[line] = 0
        self._norms[line] = 0

    def cosines(self, query: Floats, size: int) -> Floats:
        """How near each of the first `size` lines is to the query: exact for the nearest, about right for the
        rest. Lines without a vector get the mean."""
        if size <= EXACT_BELOW:
            found = self._exact(query, np.arange(size, dtype=np.int32))
        else:
            same = self._same_signs(query, size)
            sample = np.linspace(0, size - 1, SAMPLE).astype(np.int32)
            sample = sample[self.there[sample]]
            slope, offset = _line_through(same[sample].astype(np.float32), self._exact(query, sample))
            found = same * np.float32(slope) + np.float32(offset)
            near = _highest(same, max(CANDIDATES, int(size * CANDIDATE_SHARE)))
            found[near] = self._exact(query, near)
        there = self.there[:size]
        if self.count < size:
            found[~there] = found[there].mean() if there.any() else 0.0
        return found

    def _same_signs(self, query: Floats, size: int) -> Column:
        """How many of its signs each line has in common with the query."""
        self._sign(size)
        bits = _bits((query - self._mean)[None, :])[:, 0]
        same = np.zeros(size, np.uint16)
        for at in range(0, size, SIGN_BLOCK):
            part = same[at : at + SIGN_BLOCK]
            for plane, bit in zip(self._planes, bits, strict=True):
                part += np.bitwise_count(~(plane[at : at + len(part)] ^ bit))
        return same

    def _exact(self, query: Floats, lines: Ints) -> Floats:
        found = np.zeros(len(lines), np.float32)
        for at in range(0, len(lines), BLOCK):
            part = lines[at : at + BLOCK]
            found[at : at + BLOCK] = self._values[part].astype(np.float32) @ query
        norms = self._norms[lines]
        return np.divide(found, norms, out=np.zeros_like(found), where=norms > 0)

    def _sign(self, size: int) -> None:
        if self.count >= 2 * self._mean_of:  # the mean of a few says little about many
            sample = np.linspace(0, size - 1, 8 * SAMPLE).astype(np.int32)
            sample = sample[self.there[sample]]
            norms = np.maximum(self._norms[sample], 1e-9)[:, None]
            if len(sample):
                self._mean = (self._values[sample].astype(np.float32) / norms).mean(axis=0)
            self._mean_of, self._signed = max(self.count, 1), 0
        if self._signed >= size:
            return
        if self._planes.shape[1] < size:
            grown = np.zeros((len(self._planes), len(self._values)), np.uint64)
            grown[:, : self._signed] = self._planes[:, : self._signed]
            self._planes = grown
        for at in range(self._signed, size, BLOCK):
            end = min(size, at + BLOCK)
            self._planes[:, at:end] = self._signs(slice(at, end))
        self._signed = size

    def _signs(self, lines: Ints | slice) -> NDArray[np.uint64]:
        norms = np.maximum(self._norms[lines], 1e-9)[:, None]
        return _bits(self._values[lines].astype(np.float32) / norms - self._mean)


def room(array: Column, size: int, fill: int = 0) -> Column:
    """The same array with place for that many, and some to spare."""
    if size <= len(array):
        return array
    shape = (max(size, len(array) * 5 // 4, 64), *array.shape[1:])
    grown = np.full(shape, fill, array.dtype) if fill else np.zeros(shape, array.dtype)  # zeros cost nothing
    grown[: len(array)] = array
    return grown


def _bits(values: Column) -> NDArray[np.uint64]:
    """The signs of each row, 64 to a number, as planes: the first number of all rows, then the second."""
    packed = np.packbits(values > 0, axis=1)
    short = -packed.shape[1] % 8
    if short:
        packed = np.pad(packed, ((0, 0), (0, short)))
    return np.ascontiguousarray(packed.view(np.uint64).T)


def _highest(counts: Column, wanted: int) -> Ints:
    """The places of about so many of the highest counts; those that tie with the last come along."""
    often = np.bincount(counts)
    enough = np.flatnonzero(np.cumsum(often[::-1]) >= wanted)
    least = len(often) - 1 - int(enough[0]) if len(enough) else 0
    found: Ints = np.flatnonzero(counts >= least).astype(np.int32)
    return found


def _line_through(x: Floats, y: Floats) -> tuple[float, float]:
    if len(x) < 2 or not x.std():
        return 0.0, float(y.mean()) if len(y) else 0.0
    slope, offset = np.polyfit(x, y, 1)
    return float(slope), float(offset)
