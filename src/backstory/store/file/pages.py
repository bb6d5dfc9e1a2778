"""The rows on the pages of a damaged database, read without SQLite, which stops at what is wrong.

The file is a list of pages of one size, and a table or an index is a tree of them: https://sqlite.org/fileformat2.html
Whatever cannot be what SQLite wrote is left out and counted, and the rest of the tree is read.
"""

from __future__ import annotations

import math
import mmap
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Row = list[object]

MAGIC = b"SQLite format 3\0"
HEADER = 100  # bytes before the tree on the first page
TABLE_LEAF, TABLE, INDEX_LEAF, INDEX = 13, 5, 10, 2
ZEROES = "\0" * 4  # no text has these, but a page that lost some sectors has


def header(size: int, count: int) -> bytes:
    """Of a database with so many pages of this size, which may have a log."""
    return struct.pack(">16sH6B4xI12xI8xI40x", MAGIC, size % 65536 or 1, 2, 2, 0, 64, 32, 32, count, 4, 1)


class Wrong(Exception):
    """What is there is not what SQLite wrote."""


class Pages:
    __slots__ = ("_count", "_data", "_size", "faults")

    def __init__(self, path: str, size: int) -> None:
        with open(path, "rb") as file:
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._size = size
        self._count = len(self._data) // size
        self.faults = 0

    def close(self) -> None:
        self._data.close()

    def table(self, root: int) -> Iterator[tuple[int, Row]]:
        """(rowid, values as they are stored), in the order of the pages."""
        last = None
        for page, cell in self._cells(root, (TABLE, TABLE_LEAF)):
            try:
                length, at = _varint(page, cell)
                rowid, at = _varint(page, at)
                self.faults += last is not None and rowid <= last
                last = rowid
                yield rowid, _values(self._payload(page, at, length, self._size - 35))
            except (Wrong, IndexError, struct.error, UnicodeDecodeError):
                self.faults += 1

    def index(self, root: int) -> Iterator[Row]:
        """The rows of an index, or of a table without row numbers."""
        for page, cell in self._cells(root, (INDEX, INDEX_LEAF)):
            try:
                length, at = _varint(page, cell)
                yield _values(self._payload(page, at, length, (self._size - 12) * 64 // 255 - 23))
            except (Wrong, IndexError, struct.error, UnicodeDecodeError):
                self.faults += 1

    def _cells(self, root: int, kinds: tuple[int, int]) -> Iterator[tuple[bytes, int]]:
        """Each page of a tree that has rows, with where a row is."""
        leaf = kinds[1]
        met: set[int] = set()
        waiting: list[tuple[bytes, int] | int] = [root]
        while waiting:
            entry = waiting.pop()
            if not isinstance(entry, int):
                yield entry
                continue
            if entry in met or not 0 < entry <= self._count:
                self.faults += 1
                continue
            met.add(entry)
            page = self._page(entry)
            begin = HEADER if entry == 1 else 0
            kind, count = page[begin], int.from_bytes(page[begin + 3 : begin + 5], "big")
            first = begin + (8 if kind == leaf else 12)
            if kind not in kinds or first + 2 * count > self._size:
                self.faults += 1
                continue
            cells = struct.unpack_from(f">{count}H", page, first)
            if kind == leaf:
                waiting += [(page, cell) for cell in reversed(cells)]
                continue
            waiting.append(int.from_bytes(page[begin + 8 : begin + 12], "big"))
            for cell in reversed(cells):
                if kind == INDEX:
                    waiting.append((page, cell + 4))
                waiting.append(int.from_bytes(page[cell : cell + 4], "big"))

    def _page(self, number: int) -> bytes:
        return self._data[(number - 1) * self._size : number * self._size]

    def _payload(self, page: bytes, at: int, length: int, most: int) -> bytes:
        """Of a row that is longer than `most`, the rest is on pages of its own."""
        if length <= most:
            return page[at : at + length]
        least = (self._size - 12) * 32 // 255 - 23
        here = least + (length - least) % (self._size - 4)
        at_end = at + (here if here <= most else least)
        if length > len(self._data):
            raise Wrong
        parts = [page[at:at_end]]
        following, missing = page[at_end : at_end + 4], length - (at_end - at)
        while missing > 0:
            number = int.from_bytes(following, "big")
            if not 1 < number <= self._count:
                raise Wrong
            page = self._page(number)
            following = page[:4]
            parts.append(page[4 : 4 + missing])
            missing -= len(parts[-1])
        return b"".join(parts)


def _values(record: bytes) -> Row:
    head, at = _varint(record, 0)
    values: Row = []
    begin = head
    while at < head:
        kind, at = _varint(record, at)
        length = _LENGTHS[kind] if 0 <= kind < 12 else (kind - 12) // 2
        if length < 0:
            raise Wrong
        part = record[begin : begin + length]
        begin += length
        if kind >= 12:
            values.append(_text(part) if kind % 2 else part)
        elif kind == 7:
            values.append(_real(part))
        elif kind == 0:
            values.append(None)
        else:
            values.append(kind - 8 if kind >= 8 else int.from_bytes(part, "big", signed=True))
    if at != head or begin != len(record):
        raise Wrong
    return values


_LENGTHS = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0, -1, -1)


def _real(part: bytes) -> float:
    value: float = struct.unpack(">d", part)[0]
    if not math.isfinite(value):
        raise Wrong
    return value


def _text(part: bytes) -> str:
    text = part.decode("utf-8")
    if ZEROES in text:
        raise Wrong
    return text


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of up to nine bytes, and where it ends."""
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    number = byte & 0x7F
    for step in range(1, 8):
        byte = data[at + step]
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            return number, at + step + 1
    number = number << 8 | data[at + 8]
    return number - (1 << 64) if number >= 1 << 63 else number, at + 9
