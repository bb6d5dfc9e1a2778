"""What Claude Code remembers by itself, as notes: MEMORY.md and the files about topics beside it.

They are only read. A text that is known already, in these words or nearly these, is reinforced, as any note.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from backstory import paths
from backstory.errors import BadInput, NotFound
from backstory.intake import note
from backstory.markdown import fences
from backstory.memory.turn import cut_up
from backstory.store import projects
from backstory.store.file.connection import Connection, transaction
from backstory.store.keep import known_as

TAG = "claude-memory"
INDEX = "MEMORY.md"
LARGEST = 1_000_000  # bytes of a file
MOST_FILES = 1_000
PIECE = 1_500  # characters of a note
SHORTEST = 12  # what has fewer says nothing by itself

_HEADING = re.compile(r"^(#{1,6})[ \t]+(.+?)[ \t]*#*$", re.MULTILINE)
_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]+")
_ONLY_A_LINK = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]+\[[^\]]*\]\(<?([^)>#]+)>?[^)]*\)")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_SAID = re.compile(r"^(?:name|title|description)[ \t]*:[ \t]*(.+?)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Taken:
    files: int
    new: int
    known: int
    skipped: tuple[str, ...]  # files that were not read, with the reason


def take_in(db: Connection, folder: str, project: str, *, now: int, dry_run: bool = False) -> Taken:
    """Notes of the project, one an entry: all of them or none."""
    files, skipped = _files(folder)
    names = {name for name, _ in files}
    notes = []
    for name, text in files:
        for entry in entries(name, text, names):
            with suppress(BadInput):  # it is empty, or nothing but a secret
                notes.append(note.prepare(project, entry, tags=(TAG,)))
    if dry_run:
        here = projects.at(db, paths.place(project))
        known = sum(here is not None and bool(known_as(db, here.id, "note", one.says)) for one in notes)
    else:
        with transaction(db):
            known = sum(not note.put(db, one, now=now, source="assistant").is_new for one in notes)
    return Taken(len(files), len(notes) - known, known, tuple(skipped))


def _files(folder: str) -> tuple[list[tuple[str, str]], list[str]]:
    """(name, text) of the files, MEMORY.md first. A link that leads out of the folder is not followed."""
    try:
        listed = sorted(name for name in os.listdir(folder) if name.endswith(".md"))
    except OSError as error:
        raise NotFound(
            f"{folder} cannot be read ({error.strerror}); name the folder that has {INDEX}"
        ) from error
    if not listed:
        raise NotFound(f"there is no {INDEX} and no other .md file in {folder}")
    found: list[tuple[str, str]] = []
    skipped: list[str] = []
    for name in sorted(listed, key=lambda name: name != INDEX)[:MOST_FILES]:
        path = paths.inside(os.path.realpath(folder), name)
        if not path or not os.path.isfile(path):
            skipped.append(f"{name}: leads out of the folder, or is no file")
        elif os.path.getsize(path) > LARGEST:
            skipped.append(f"{name}: has more than {LARGEST:,} bytes")
        else:
            with open(path, encoding="utf-8-sig", errors="replace") as file:
                found.append((name, file.read().replace("\r\n", "\n")))
    skipped += [f"{name}: there are more than {MOST_FILES:,} files" for name in listed[MOST_FILES:]]
    return found, skipped


def entries(name: str, text: str, files: set[str]) -> Iterator[str]:
    """The notes of a file. A short one about a topic is one note; a longer one is cut at its headings, and
    MEMORY.md at the items of its lists too. What only points to a file that is read as well is left out."""
    front = _FRONT_MATTER.match(text)
    about = " — ".join(said.strip("\"'") for said in _SAID.findall(front[1])) if front else ""
    body = text[front.end() :] if front else text
    if name != INDEX and len(about) + len(body) < PIECE:
        yield "\n".join(filter(None, (about, body.strip())))
        return
    for headings, part in _sections(body):
        above = " > ".join(filter(None, (about, *headings)))
        for piece in _items(part, files) if name == INDEX else [part]:
            for cut in cut_up(piece, PIECE) if len(piece) > PIECE else [piece.strip()]:
                if len(cut) >= SHORTEST:
                    yield f"{above}\n{cut}" if above else cut


def _sections(body: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """(headings above it, text) of each part; what looks like a heading in fenced code is none."""
    code = [(start, stop) for start, _, _, stop in fences(body)]
    above: list[tuple[int, str]] = []
    at = 0
    for heading in _HEADING.finditer(body):
        fence = bisect_right(code, (heading.start(), len(body))) - 1
        if fence >= 0 and heading.start() < code[fence][1]:
            continue
        yield tuple(title for _, title in above), body[at : heading.start()]
        level = len(heading[1])
        above = [*(entry for entry in above if entry[0] < level), (level, heading[2])]
        at = heading.end() + 1
    yield tuple(title for _, title in above), body[at:]


def _items(part: str, files: set[str]) -> Iterator[str]:
    """Items of lists with what stands below them, and the paragraphs between."""
    piece: list[str] = []
    for line in [*part.splitlines(), ""]:
        begins = bool(_ITEM.match(line)) or not line.strip()
        if begins and piece:
            link = _ONLY_A_LINK.match(piece[0])
            if not (link and os.path.normpath(link[1]) in files):
                yield "\n".join(piece)
            piece = []
        if line.strip():
            piece.append(line)
