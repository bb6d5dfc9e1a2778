"""The lines of a project as numpy arrays, kept in step with the store.

A line is a memory, a piece of a turn, or a chunk of a document. Lines of one container (what a session left,
a document's chunks) form a thread; six consecutive ones, every three lines, are a window; pieces have their
turn in place of windows. What search asks of the keyword index is only which lines a word is in: windows,
turns and threads are counted up from that, so they need no index of their own.

Everything here is append-only apart from state and vectors, so keeping up with other processes costs what is
new, not what there is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from backstory.recall.nearness import Column, Ints, Vectors, room
from backstory.store import lines, vectors
from backstory.store.file.connection import Connection

WINDOW_STRIDE = 3  # a window is two strides long
DELETED, SUPERSEDED = 1, 2


class Source(Protocol):
    """A table family of lines: the modules store.memories, store.documents and store.nodes."""

    TABLE: str  # whose keyword index has them
    LINES: str  # the table or view that has all of them

    def lines(self, db: Connection, first: int, last: int) -> str: ...
    def authors(self, db: Connection, first: int, last: int) -> list[tuple[int, str]]: ...
    def texts(self, db: Connection, rows: Iterable[int]) -> list[tuple[int, str]]: ...


class Corpus:
    def __init__(self, source: Source, ranges: list[tuple[int, int]]) -> None:
        self.source = source
        self.ranges = ranges
        self.size = 0
        self.removed = 0  # lines that the store has no longer; they still count in lengths and windows
        self.names: list[str] = []  # of authors
        self._columns: dict[str, Column] = {
            "row": np.zeros(0, np.int64),
            "thread": np.zeros(0, np.int32),  # -1: none
            "author": np.zeros(0, np.int16),  # -1: nobody
            "words": np.zeros(0, np.float32),
            "question": np.zeros(0, np.float32),
            "state": np.zeros(0, np.uint8),
            "part": np.zeros(0, np.uint8),  # of a turn: see memory/turn.py
            "turn": np.zeros(0, np.int32),  # -1: none
            "window": np.zeros(0, np.int32),  # the later of the two it is in; -1: none
            "window_before": np.zeros(0, np.int32),
            "before": np.zeros(0, np.int32),  # its neighbours in the thread; -1: none
            "after": np.zeros(0, np.int32),
        }
        self.threads = Lengths("lines", "last", "window", "window_before")
        self.windows = Lengths()
        self.turns = Lengths("row", "first", "last")
        self._lengths: Column | None = None
        self.vectors = Vectors(0)
        self._thread_numbers: dict[int, int] = {}
        self._turn_numbers: dict[int, int] = {}
        # From a row, counted from the first of its range, to its line.
        self._index: list[Column] = [np.zeros(0, np.int32) for _ in ranges]
        self._seen = [first - 1 for first, _ in ranges]
        self._change = -1
        self._model: int | None = None
        self._vector_seq = 0

    def column(self, name: str) -> Column:
        return self._columns[name][: self.size]

    @property
    def rows(self) -> NDArray[np.int64]:
        return self.column("row")

    def memories(self, lines: Ints) -> NDArray[np.int64]:
        """The row of the memory that each of these lines stands for: its turn's, or its own."""
        turn = self.column("turn")[lines]
        return np.where(turn >= 0, np.append(self.turns["row"], 0)[turn], self.rows[lines])

    def without_turn(self, row: int) -> Column:
        """Which lines are not of that turn."""
        others: Column = self.column("turn") != self._turn_numbers.get(row, -2)
        return others

    def pieces(self, turn: int) -> Ints:
        """The lines of a turn that are still there, in their order."""
        first, last = self.turns["first"][turn], self.turns["last"][turn] + 1
        mine = self.column("turn")[first:last] == turn
        there = (self.column("state")[first:last] & DELETED) == 0
        lines: Ints = (np.flatnonzero(mine & there) + first).astype(np.int32)
        return lines

    def relative_length(self) -> Column:
        """Each line's length in words, 1 being the mean."""
        if self._lengths is None or len(self._lengths) != self.size:
            self._lengths = _relative(self.column("words"))
        return self._lengths

    def refresh(self, db: Connection, model: int | None, dimension: int) -> None:
        """Take in what was written since the last time. `model` is whose vectors count."""
        newest = lines.last_change(db)
        if self._change < 0:
            self._change = newest  # nothing is held yet that could have changed
        for number, (_, last) in enumerate(self.ranges):
            self._append(number, self.source.lines(db, self._seen[number] + 1, last), db)
        if newest > self._change:
            self._reread(db, lines.changed(db, self._change))
            self._change = newest
        self._read_vectors(db, model, dimension)

    def locate(self, number: int, offsets: NDArray[np.int64]) -> Ints:
        """The lines at these places of a range; rows that came after the last refresh are left out."""
        index = self._index[number]
        found = index[offsets[offsets < len(index)]]
        return found[found >= 0]

    def lines_at(self, rows: list[int]) -> Ints:
        found = [np.zeros(0, np.int32)]
        for number, (first, last) in enumerate(self.ranges):
            offsets = np.array([row - first for row in rows if first <= row <= last], np.int64)
            found.append(self.locate(number, offsets))
        return np.concatenate(found)

    def among(self, number: int, rows: str) -> Ints:
        """The lines of a range that have these rows, given as '1,2,3'."""
        return self.locate(number, _numbers(rows) - self.ranges[number][0])

    def postings(self, db: Connection, match: str, most: int = -1) -> Ints:
        """The lines in which an FTS5 expression matches; at most so many of each range."""
        found = [
            self.locate(number, _numbers(lines.postings(db, self.source.TABLE, match, first, last, most)))
            for number, (first, last) in enumerate(self.ranges)
        ]
        return found[0] if len(found) == 1 else np.concatenate([np.zeros(0, np.int32), *found])

    def is_conversation(self) -> bool:
        """Is most of it said by somebody? Where hardly anything is, `we` in a query means nobody."""
        return self.size > 0 and float((self.column("author") >= 0).mean()) > 0.5

    def without_vector(self) -> NDArray[np.int64]:
        """Rows of living lines that have no vector of the current model yet."""
        if self.vectors.count == self.size:
            return np.zeros(0, np.int64)
        missing = ~self.vectors.there[: self.size] & ((self.column("state") & DELETED) == 0)
        rows: NDArray[np.int64] = self.rows[missing]
        return rows

    def _append(self, number: int, text: str, db: Connection) -> None:
        if not text:
            return
        new = _numbers(text).reshape(-1, 7)
        start, count = self.size, len(new)
        first = self.ranges[number][0]
        self._columns = {name: room(array, start + count) for name, array in self._columns.items()}
        self.vectors.room(start + count)
        self.size = start + count
        place = slice(start, start + count)
        self._columns["row"][place] = new[:, 0]
        self._columns["author"][place] = -1
        for at, name in enumerate(("part", "words", "question", "state"), 3):
            self._columns[name][place] = new[:, at]
        offsets = new[:, 0] - first
        index = room(self._index[number], int(offsets[-1]) + 1, fill=-1)
        index[offsets] = np.arange(start, start + count, dtype=np.int32)
        self._index[number] = index
        for row, author in self.source.authors(db, self._seen[number] + 1, int(new[-1, 0])):
            if author not in self.names:
                self.names.append(author)
            self._columns["author"][index[row - first]] = self.names.index(author)
        self._seen[number] = int(new[-1, 0])
        is_piece = new[:, 2] >= 0
        self._join_threads(start, np.where(is_piece, -1, new[:, 1]))
        self._columns["turn"][place] = -1
        if is_piece.any():
            self._join_turns(np.flatnonzero(is_piece) + start, new[is_piece, 1], new[is_piece, 2])

    def _join_turns(
        self, lines: NDArray[np.int64], threads: NDArray[np.int64], turns: NDArray[np.int64]
    ) -> None:
        """Put new pieces into their turns, and these into threads."""
        words = self._columns["words"][lines]
        known = self.turns.size
        turn = _local(self._turn_numbers, turns)
        self.turns.room(len(self._turn_numbers))
        self.turns["first"][known:] = self.size
        self.turns["row"][turn] = turns
        np.minimum.at(self.turns["first"], turn, lines)
        np.maximum.at(self.turns["last"], turn, lines)
        self._columns["turn"][lines] = turn
        np.add.at(self.turns["words"], turn, words)
        within = threads >= 0
        thread = self._local_threads(threads[within])
        self._columns["thread"][lines[within]] = thread
        np.add.at(self.threads["words"], thread, words[within])

    def _local_threads(self, numbers: NDArray[np.int64]) -> Ints:
        """Their places here; new ones get one, and have no line yet."""
        local = _local(self._thread_numbers, numbers)
        known = self.threads.size
        self.threads.room(len(self._thread_numbers))
        for name in ("last", "window", "window_before"):
            self.threads[name][known:] = -1
        return local

    def _join_threads(self, start: int, numbers: NDArray[np.int64]) -> None:
        """Put new lines at the end of their threads, and into windows."""
        count = len(numbers)
        for name in ("thread", "window", "window_before", "before", "after"):
            self._columns[name][start : start + count] = -1
        grouped = np.argsort(numbers, kind="stable")
        grouped = grouped[numbers[grouped] >= 0]
        if not len(grouped):
            return
        lines = (grouped + start).astype(np.int32)
        distinct, first, size = np.unique(numbers[grouped], return_index=True, return_counts=True)
        local = self._local_threads(distinct)
        had = self.threads["lines"][local]  # lines these threads had before
        thread = np.repeat(local, size)
        position = np.arange(len(lines)) - np.repeat(first, size) + np.repeat(had, size)

        # A window begins with every third line; a line is in that one and in the one before.
        begun = -(-had // WINDOW_STRIDE)  # windows these threads had before
        begins = -(-(had + size) // WINDOW_STRIDE) - begun
        base = self.windows.size + np.concatenate([[0], np.cumsum(begins)[:-1]])
        self.windows.room(self.windows.size + int(begins.sum()))

        def window_of(order: NDArray[np.int64]) -> Ints:
            """The window of that order in the thread, be it new or one that was there."""
            fresh = order - np.repeat(begun, size)
            found = np.repeat(base, size) + fresh
            found = np.where(fresh == -1, self.threads["window"][thread], found)
            found = np.where(fresh == -2, self.threads["window_before"][thread], found)
            return np.where(order < 0, -1, found).astype(np.int32)

        order = position // WINDOW_STRIDE
        window, window_before = window_of(order), window_of(order - 1)
        before = np.concatenate([[-1], lines[:-1]])
        before[first] = self.threads["last"][local]
        self._columns["thread"][lines] = thread
        self._columns["window"][lines] = window
        self._columns["window_before"][lines] = window_before
        self._columns["before"][lines] = before
        has_before = before >= 0
        self._columns["after"][before[has_before]] = lines[has_before]
        words = self._columns["words"][lines]
        np.add.at(self.threads["words"], thread, words)
        np.add.at(self.windows["words"], window, words)
        np.add.at(self.windows["words"], window_before[window_before >= 0], words[window_before >= 0])
        ends = first + size - 1
        self.threads["lines"][local] = had + size
        self.threads["last"][local] = lines[ends]
        self.threads["window"][local] = window[ends]
        self.threads["window_before"][local] = window_before[ends]

    def _reread(self, db: Connection, changed: list[int]) -> None:
        lines = self.lines_at(changed)
        for line, row in zip(lines.tolist(), self.rows[lines].tolist(), strict=True):
            text = self.source.lines(db, row, row)
            if text:
                for name, value in zip(("words", "question", "state"), _numbers(text)[4:], strict=True):
                    self._columns[name][line] = value
            else:  # its words still count in lengths and windows, but not in a turn that goes on
                self._columns["state"][line] = DELETED | SUPERSEDED
                self.removed += 1
                if (turn := int(self._columns["turn"][line])) >= 0:
                    self.turns.shorten(turn, float(self._columns["words"][line]))
            self._lengths = None
            rows, vector = vectors.page(db, self._model, row, row) if self._model is not None else ([], b"")
            self.vectors.forget(line)
            if rows:
                self.vectors.put(np.array([line], np.int32), vector)

    def _read_vectors(self, db: Connection, model: int | None, dimension: int) -> None:
        if dimension != self.vectors.dimension or model != self._model:
            self.vectors = Vectors(dimension)
            self.vectors.room(self.size)
            self._model = model
            self._vector_seq = 0
        if model is None:
            return
        newest = vectors.last_seq(db)
        if newest == self._vector_seq:
            return
        for first, last in self.ranges:
            if self._vector_seq:
                rows, joined = vectors.after(db, self._vector_seq, model, first, last)
                self._put_vectors(rows, joined)
                continue
            at = first
            while True:
                rows, joined = vectors.page(db, model, at, last)
                if not rows:
                    break
                self._put_vectors(rows, joined)
                at = rows[-1] + 1
        self._vector_seq = newest

    def _put_vectors(self, rows: list[int], joined: bytes) -> None:
        """Vectors of chunks are none of the memories' business: the rows tell which are ours."""
        if not rows:
            return
        number = next(n for n, (first, last) in enumerate(self.ranges) if first <= rows[0] <= last)
        offsets = np.array(rows, np.int64) - self.ranges[number][0]
        index = self._index[number]
        line = (
            np.where(offsets < len(index), index[np.minimum(offsets, len(index) - 1)], -1)
            if len(index)
            else None
        )
        if line is None:
            return
        every = np.frombuffer(joined, np.int8).reshape(len(rows), -1)
        self.vectors.put(line[line >= 0], every[line >= 0].tobytes() if (line < 0).any() else joined)


class Lengths:
    """Windows, turns or threads: how many words each has, and what else is known of them."""

    def __init__(self, *columns: str) -> None:
        self.size = 0
        self._columns: dict[str, Column] = {name: np.zeros(0, np.int64) for name in columns}
        self._columns["words"] = np.zeros(0, np.float32)
        self._relative: Column | None = None

    def __getitem__(self, name: str) -> Column:
        return self._columns[name][: self.size]

    def room(self, size: int) -> None:
        self._columns = {name: room(array, size) for name, array in self._columns.items()}
        self.size = size
        self._relative = None

    def shorten(self, place: int, words: float) -> None:
        self._columns["words"][place] -= words
        self._relative = None

    def relative(self) -> Column:
        """Each one's length in words, 1 being the mean."""
        if self._relative is None:
            self._relative = _relative(self["words"])
        return self._relative


def _local(numbers: dict[int, int], found: NDArray[np.int64]) -> Ints:
    """The places of these in our own arrays; new ones get the next."""
    for one in dict.fromkeys(found.tolist()):
        numbers.setdefault(one, len(numbers))
    return np.array([numbers[one] for one in found.tolist()], np.int32)


def _relative(words: Column) -> Column:
    relative: Column = words / max(float(words.mean()), 1.0) if len(words) else words
    return relative


def _numbers(text: str) -> NDArray[np.int64]:
    return np.fromstring(text, dtype=np.int64, sep=",") if text else np.zeros(0, np.int64)
