"""Commits of a git repository, read as files: `commit` is how a repository proves that it has one.

Anybody can write the id of a commit into a `.git`, or make a file of that name. Who has the commit itself has
bytes of which the id is the digest. Git is not run: it trusts the names of its files, takes objects from
wherever a repository says, and a hook cannot afford it.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

LARGEST = 200_000  # bytes that are unpacked for a commit, deltas included; real ones take a few hundred
DEEPEST = 60  # deltas of deltas; git makes 50 by default
MOST_PACKS = 500
COMMIT, OFFSET_DELTA, REFERENCE_DELTA = 1, 6, 7  # types of objects in a pack
DIGESTS = {40: "sha1", 64: "sha256"}  # by the length of an id


def commit(objects: str, commit_id: str) -> bytes | None:
    """The text of a commit that lies in this folder of objects; None where it does not, or is something else.
    Objects that are borrowed from another repository do not count."""
    if len(commit_id) not in DIGESTS or commit_id.strip("0123456789abcdef"):
        return None
    objects = os.path.realpath(objects)
    try:
        found = _loose(objects, commit_id) or _packed(objects, bytes.fromhex(commit_id))
    except (OSError, ValueError, IndexError):  # not what git writes
        return None
    return found if found is not None and _digest(found, commit_id) else None


def _digest(text: bytes, commit_id: str) -> bool:
    import hashlib  # only where a repository is new to us

    whole = b"commit %d\0%b" % (len(text), text)
    return hashlib.new(DIGESTS[len(commit_id)], whole, usedforsecurity=False).hexdigest() == commit_id


def _loose(objects: str, commit_id: str) -> bytes | None:
    path = _own(objects, os.path.join(commit_id[:2], commit_id[2:]))
    if not path:
        return None
    with open(path, "rb") as file:
        whole = _inflated(file, [LARGEST])
    kind, _, text = whole.partition(b"\0")
    return text if kind.startswith(b"commit ") else None


def _packed(objects: str, wanted: bytes) -> bytes | None:
    folder = os.path.join(objects, "pack")
    names = os.listdir(folder) if os.path.isdir(folder) and not os.path.islink(folder) else []
    for name in sorted(name for name in names if name.endswith(".idx"))[:MOST_PACKS]:
        index = _own(objects, os.path.join("pack", name))
        pack = _own(objects, os.path.join("pack", f"{name[:-4]}.pack"))
        offset = _offset(index, wanted) if index and pack else None
        if offset is not None:
            with open(pack, "rb") as file:
                kind, text = _object(file, offset, index, len(wanted), DEEPEST, [LARGEST])
                return text if kind == COMMIT else None
    return None


def _own(objects: str, name: str) -> str:
    """A file of this repository; "" where there is none, or a link leads to another's."""
    path = os.path.join(objects, name)
    return path if os.path.isfile(path) and os.path.realpath(path) == path else ""


def _offset(index: str, wanted: bytes) -> int | None:
    """Where an object begins in the pack of an index (version 2: header, how many ids begin with up to each
    byte, the ids in order, their checksums, their offsets, those beyond 2 GB)."""
    with open(index, "rb") as file:
        if file.read(8) != b"\xfftOc\0\0\0\2":
            return None
        counts = file.read(1024)
        total = _number(counts[1020:])
        first = wanted[0]
        low = _number(counts[4 * first - 4 : 4 * first]) if first else 0
        high = _number(counts[4 * first : 4 * first + 4])
        size, ids = len(wanted), 8 + 1024
        if total * size > os.path.getsize(index):
            return None  # it is of another algorithm, or damaged
        while low < high:
            middle = (low + high) // 2
            file.seek(ids + middle * size)
            found = file.read(size)
            if found == wanted:
                offsets = ids + total * (size + 4)
                file.seek(offsets + middle * 4)
                offset = _number(file.read(4))
                if offset & 0x80000000:
                    file.seek(offsets + total * 4 + (offset & 0x7FFFFFFF) * 8)
                    offset = _number(file.read(8))
                return offset
            low, high = (middle + 1, high) if found < wanted else (low, middle)
    return None


def _object(
    file: BinaryIO, offset: int, index: str, size: int, depth: int, room: list[int]
) -> tuple[int, bytes]:
    """The type and the bytes of what begins at an offset of a pack. `size`: of an id; `room`: how many bytes
    it may still take to unpack it."""
    if depth < 0:
        raise ValueError("too many deltas")
    file.seek(offset)
    byte = file.read(1)[0]
    kind = byte >> 4 & 7
    while byte & 0x80:  # its size follows, which the stream says as well
        byte = file.read(1)[0]
    if kind == OFFSET_DELTA:
        byte = file.read(1)[0]
        back = byte & 0x7F
        while byte & 0x80:
            byte = file.read(1)[0]
            back = (back + 1) << 7 | byte & 0x7F
        base = offset - back
    elif kind == REFERENCE_DELTA:
        found = _offset(index, file.read(size))
        if found is None:
            raise ValueError("its base is elsewhere")
        base = found
    else:
        return kind, _inflated(file, room)
    delta = _inflated(file, room)
    if base < 0:
        raise ValueError("no such base")
    base_kind, text = _object(file, base, index, size, depth - 1, room)
    return base_kind, _patched(text, delta)


def _patched(base: bytes, delta: bytes) -> bytes:
    """What a delta makes of its base: pieces to copy from there, and new ones."""
    at = 0
    for _ in range(2):  # the sizes of both, of which nobody needs to know
        while delta[at] & 0x80:
            at += 1
        at += 1
    made = bytearray()
    while at < len(delta):
        code = delta[at]
        at += 1
        if code & 0x80:
            numbers = [0, 0]
            for bit in range(7):
                if code & 1 << bit:
                    numbers[bit >= 4] |= delta[at] << 8 * (bit if bit < 4 else bit - 4)
                    at += 1
            start, length = numbers[0], numbers[1] or 0x10000
            made += base[start : start + length]
        else:
            made += delta[at : at + code]
            at += code
        if len(made) > LARGEST:
            raise ValueError("too large")
    return bytes(made)


def _inflated(file: BinaryIO, room: list[int]) -> bytes:
    import zlib

    stream = zlib.decompressobj()
    made, end = b"", file.tell() + LARGEST
    while not stream.eof and file.tell() < end and (data := stream.unconsumed_tail or file.read(4096)):
        try:
            part = stream.decompress(data, LARGEST)
        except zlib.error as error:
            raise ValueError("not compressed by zlib") from error
        made += part
        room[0] -= len(part)
        if room[0] < 0:
            raise ValueError("too large")
    return made


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big")
