"""A three-way merge by lines, and what git leaves where it could not merge.

`merge` takes what we wrote last, what we want now and what stands there. Changes of the same lines are a
conflict; lines that one side adds beside lines that the other edits, each in its place, are not. difflib
finds which lines are the same; that two of them are compared with a third is all that is done here.

Git puts both versions of a conflict between marks. Where two conflicts are no more than three lines apart,
git makes one of them; so a conflict in two sections next to each other has their markers in it, once for each
version. `apart` gives each section its own conflict again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from backstory.claude_md.write import sections

MOST_LINES = 1_000  # of a section; comparing hostile ones takes the square of that

_MARK = re.compile(rb"^(?P<sign>[<|=>])(?P=sign){6}(?: [^\n]*|\r?)$", re.MULTILINE)
_OUTER = re.compile(r"^(?:<{7}|>{7})(?: .*|)$", re.MULTILINE)
_ANY = re.compile(r"([<|=>])\1{6}(?: .*|)")


def merge(base: str, ours: str, theirs: str) -> str | None:
    """A text with both changes; None where they are in each other's way. Lines that differ only in blanks at
    their end are the same, and are taken as they stand in `theirs`."""
    old, new, there = (text.split("\n") for text in (base, ours, theirs))
    if max(len(old), len(new), len(there)) > MOST_LINES:
        return None
    in_new, in_there = _matches(old, new), _matches(old, there)
    merged: list[str] = []
    at = at_new = at_there = 0
    for number in sorted(in_new.keys() & in_there.keys()):
        stop_new, stop_there = in_new[number], in_there[number]
        before, wanted, found = old[at:number], new[at_new:stop_new], there[at_there:stop_there]
        if _same(before, found):
            merged += found if _same(before, wanted) else wanted
        elif _same(before, wanted) or _same(wanted, found):
            merged += found
        elif (both := _beside(before, wanted, found) or _beside(before, found, wanted)) is not None:
            merged += both
        else:
            return None
        merged += there[stop_there : stop_there + 1]
        at, at_new, at_there = number + 1, stop_new + 1, stop_there + 1
    return "\n".join(merged)


def _beside(before: list[str], adding: list[str], changing: list[str]) -> list[str] | None:
    """Both, where one side only adds lines before or after those that the other edits, line for line."""
    many = len(before)
    if not many or len(changing) != many:  # who writes a part anew may not want what is added to it
        return None
    if _same(adding[:many], before):
        return changing + adding[many:]
    return adding[:-many] + changing if _same(adding[-many:], before) else None


def _matches(one: Sequence[str], other: Sequence[str]) -> dict[int, int]:
    """Which line of the other is the same as a line of the one, by their numbers, both in order. So are the
    ends of the two."""
    blocks = SequenceMatcher(None, _ended(one), _ended(other)).get_matching_blocks()
    return {a + i: b + i for a, b, size in blocks for i in range(size)} | {len(one): len(other)}


def _same(one: Sequence[str], other: Sequence[str]) -> bool:
    return _ended(one) == _ended(other)


def _ended(lines: Sequence[str]) -> list[str]:
    return [line.rstrip(" \t\r") for line in lines]


# --- git's conflicts ----------------------------------------------------------------------------------------


def is_conflict(body: str) -> bool:
    """Has git left a conflict, or a part of one, in the body of a section?"""
    return _OUTER.search(body) is not None


def is_made_of(sides: Iterable[str], texts: Sequence[str]) -> bool:
    """Are the sides of a conflict made of these texts alone? Then no line is of another, and none that all
    texts have is missing: who took that out was a person."""
    known = [{*_lines(text)} for text in texts]
    common = set.intersection(*known)
    return all({*_lines(side)} <= set.union(*known) and common <= {*_lines(side)} for side in sides)


def _lines(text: str) -> Iterator[str]:
    return (line for line in _ended(text.split("\n")) if line and not _ANY.fullmatch(line))


def first_conflict(text: bytes) -> int | None:
    """The line where git's first conflict begins."""
    found = next(_conflicts(text), None)
    return text.count(b"\n", 0, found.start) + 1 if found else None


def sides(text: bytes) -> Iterator[bytes]:
    """A text that has conflicts, as each side of them has it."""
    conflicts = list(_conflicts(text))
    for side in (0, -1) if conflicts else ():
        made, at = bytearray(), 0
        for conflict in conflicts:
            made += text[at : conflict.start] + conflict.versions[side]
            at = conflict.stop
        yield bytes(made + text[at:])


@dataclass(frozen=True, slots=True)
class _Conflict:
    marks: tuple[bytes, ...]  # the lines `<<<<<<<`, perhaps `|||||||`, `=======`, `>>>>>>>`
    versions: tuple[bytes, ...]  # what is between them
    start: int
    stop: int


def apart(text: bytes) -> bytes:
    """A file in which no conflict has markers of sections in it, if both versions have the same ones."""
    made, at = bytearray(), 0
    for conflict in _conflicts(text):
        made += text[at : conflict.start] + _parted(conflict, text)
        at = conflict.stop
    return bytes(made + text[at:])


def _parted(conflict: _Conflict, text: bytes) -> bytes:
    markers = [sections.marker_lines(version) for version in conflict.versions]
    if not markers[0] or any(each != markers[0] for each in markers):
        return text[conflict.start : conflict.stop]
    pieces = [_between(version, markers[0]) for version in conflict.versions]
    made = bytearray()
    for number, versions in enumerate(zip(*pieces, strict=True)):
        if versions[0] == versions[-1]:
            made += versions[0]
        else:
            made += b"".join(mark + piece for mark, piece in zip(conflict.marks, versions, strict=False))
            made += conflict.marks[-1]
        made += markers[0][number] if number < len(markers[0]) else b""
    return bytes(made)


def _between(version: bytes, markers: Sequence[bytes]) -> list[bytes]:
    pieces = []
    for marker in markers:
        start = 0 if version.startswith(marker) else version.index(b"\n" + marker) + 1
        pieces.append(version[:start])
        version = version[start + len(marker) :]
    return [*pieces, version]


def _conflicts(text: bytes) -> Iterator[_Conflict]:
    """Those that are whole: each mark once, in order."""
    found: list[re.Match[bytes]] = []
    for mark in _MARK.finditer(text):
        found = [mark] if mark["sign"] == b"<" else [*found, mark]
        signs = b"".join(one["sign"] for one in found)
        if signs in (b"<=>", b"<|=>"):
            yield _conflict(text, found)
        if not b"<|=".startswith(signs) and signs != b"<=":
            found = []


def _conflict(text: bytes, found: Sequence[re.Match[bytes]]) -> _Conflict:
    ends = [min(one.end() + 1, len(text)) for one in found]
    marks = tuple(text[one.start() : end] for one, end in zip(found, ends, strict=True))
    versions = tuple(text[end : after.start()] for end, after in zip(ends, found[1:], strict=False))
    return _Conflict(marks, versions, found[0].start(), ends[-1])
