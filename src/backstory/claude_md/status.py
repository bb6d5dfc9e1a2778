"""How far the CLAUDE.md files of a project are behind it: what changed since, what a person edited in our
sections, and what these name that is not there any more."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from backstory import dirty, log
from backstory.claude_md import sync
from backstory.claude_md.read import git
from backstory.claude_md.read.files import OUTPUT, VENDORED, walk
from backstory.claude_md.read.references import references
from backstory.claude_md.write import managed, sections, settings
from backstory.errors import BackstoryError
from backstory.store.file.connection import Connection

ANY_NAME = re.compile(r"[A-Z]{3,}(?=/|[-_][a-z])|(?<=[a-z0-9][-_.])[A-Z]{3,}")  # and not README.md


@dataclass(frozen=True, slots=True)
class Stale:
    """A section names something that is not there."""

    section: str
    reference: str


@dataclass(frozen=True, slots=True)
class FileStatus:
    path: str
    template: str
    synced_at: int | None
    state: managed.FileState | None  # None: the file is gone, or cannot be read
    unknown: tuple[str, ...]  # sections of a name that is not ours
    stale: tuple[Stale, ...]
    misread: tuple[int, ...]  # lines that begin like a setting of ours, and are none


@dataclass(frozen=True, slots=True)
class Status:
    root: str
    pending: tuple[str, ...]  # changed since the last sync, each once, as seen from the root
    outside: tuple[str, ...]  # the same, by somebody else than Claude Code
    synced_at: int | None
    files: tuple[FileStatus, ...]


def status(db: Connection, root: str) -> Status:
    above = root.rstrip("/") + "/"
    lines = dirty.read(root)
    managed_files = sync.managed_files(db, root)
    outside = sync.changed_outside(root, managed_files, lines)

    @cache
    def listed() -> tuple[str, ...]:
        return tuple(file.path for file in walk(root).files)

    @cache
    def names() -> frozenset[str]:
        folders = {part for path in listed() for part in path.split("/")[:-1]}
        return frozenset((*map(os.path.basename, listed()), *(f"{part}/" for part in folders)))

    def is_there(reference: str, folder: str) -> bool:
        if any(os.path.lexists(os.path.join(at, reference)) for at in (folder, root)):
            return True
        return (
            _is_made(reference)
            or ("/" not in reference.rstrip("/") and reference in names())
            or _stands_for_some(reference, listed())
        )

    def stale(found: Iterable[managed.SectionState], folder: str) -> Iterator[Stale]:
        gone = [
            Stale(one.name, reference)
            for one in found
            if one.name in sections.NAMES
            for reference in references(one.body, (folder, root))
            if not is_there(reference, folder)
        ]
        # What git does not list is made by some command, and may be there or not.
        below = os.path.relpath(folder, os.path.realpath(root))
        places: dict[Stale, set[str]] = {}
        for one in gone:
            spellings = (one.reference.rstrip("/"), os.path.normpath(os.path.join(below, one.reference)))
            # A rule may be about folders only.
            places[one] = {*spellings, *(f"{path}/" for path in spellings)}
        unlisted = git.ignored(root, sorted(set().union(*places.values())))
        return (one for one in gone if unlisted.isdisjoint(places[one]))

    files = []
    for file in managed_files:
        folder = os.path.dirname(file.path)
        if not os.path.isdir(folder):
            continue  # it may come back with a branch
        try:
            state = managed.state(db, file.path, root=root) if os.path.isfile(file.path) else None
        except BackstoryError as error:
            log.write("warning", str(error))
            state = None
        found = state.sections if state else ()
        files.append(
            FileStatus(
                file.path,
                file.template,
                file.synced_at,
                state,
                tuple(one.name for one in found if one.name not in sections.NAMES),
                tuple(stale(found, folder)),
                tuple(settings.misread(managed.read(file.path))) if state else (),
            )
        )
    last = [file.synced_at for file in files if file.synced_at is not None]
    return Status(
        root,
        tuple(dict.fromkeys(line.removeprefix(above) for line in lines)),
        tuple(path.removeprefix(above) for path in outside),
        max(last) if last else None,
        tuple(files),
    )


def _stands_for_some(reference: str, files: Iterable[str]) -> bool:
    """Does a word in capitals stand for any name, as in `cmd-NAME.c`? Then there are files of that form."""
    start, *others = map(re.escape, ANY_NAME.split(reference))
    if not others:
        return False
    # A name is as short as can be, and no other is tried: a hostile path would take hours.
    inner = "".join(f"(?>[^/]+?{piece})" for piece in others[:-1])
    pattern = re.compile(rf"(?:^|/){start}{inner}[^/]+{others[-1].rstrip('/')}(?:/|$)")
    return any(pattern.search(path) for path in files)


def _is_made(reference: str) -> bool:
    """Is it in a folder that tools fill?"""
    parts = os.fsencode(reference).split(b"/")
    return parts[0] in OUTPUT or not VENDORED.isdisjoint(parts)
