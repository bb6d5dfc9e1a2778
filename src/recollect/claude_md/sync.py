"""Bringing the CLAUDE.md files of a project up to date with what changed in it.

    prepare     which sections the changes bear on, and what those would say now; nothing is written yet
    carry_out   writes them, takes the changes that were seen off the list, and notes up to where that was

Whoever does both holds the project's `turn` meanwhile. Else two could have read the same line of the list,
and the slower one would take away a change of the same file that came later, which nobody has seen.

A change is known from the list of changed files, or from git, if it was made outside of Claude Code. What a
model wrote is not computed anew: it is told which of its sections a change bears on.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from sqlite3 import Connection

from recollect import dirty, paths
from recollect.claude_md import compose, git, managed, sections
from recollect.claude_md.affected import affected
from recollect.claude_md.init import Clean, Practices, Progress, learn, texts_of
from recollect.errors import NotFound, RecollectError
from recollect.store import claude_files, projects, swap
from recollect.store.claude_files import ManagedFile
from recollect.store.connection import transaction

SECONDS = 30.0  # a sync that asks somebody may take longer; the next one then says so
NOT_INITIALISED = (
    "{folder} is not initialised; `recollect init` writes its CLAUDE.md and tracks what changes."
)


@dataclass(frozen=True, slots=True)
class Change:
    """What one section would say now."""

    path: str
    name: str
    old: str
    new: str
    outcome: str  # written, unchanged or offered, as far as can be told before


@dataclass(frozen=True, slots=True)
class Prose:
    """A section that a model wrote, and what changed since that it may be about."""

    path: str
    name: str
    because: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trouble:
    """What keeps a section or a file from being brought up to date."""

    path: str
    line: int | None
    said: str


@dataclass(frozen=True, slots=True)
class Prepared:
    root: str
    files: tuple[str, ...]  # that are managed and there
    lines: tuple[str, ...]  # of the list of changed files, each as often as it is there
    outside: tuple[str, ...]  # what else changed
    changes: tuple[Change, ...]
    prose: tuple[Prose, ...]
    troubles: tuple[Trouble, ...]
    head: str | None  # git's commit
    at: int

    def told(self, path: str) -> str:
        """A path as people read it: as seen from the root."""
        return path.removeprefix(self.root.rstrip("/") + "/")


def root_of(cwd: str) -> str:
    """The initialised project that a folder is in."""
    found = dirty.root_of(cwd)
    if found is None:
        raise NotFound(NOT_INITIALISED.format(folder=paths.text(paths.checkout(cwd))))
    return found


@contextmanager
def turn(data: str, root: str, seconds: float = SECONDS) -> Iterator[None]:
    """One sync of a project at a time."""
    folder = os.path.join(data, "syncs")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
    handle = os.open(os.path.join(folder, name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    busy = "another sync of this project is under way, or waits for an answer; try again after it"
    swap.wait(handle, fcntl.LOCK_EX, seconds, busy)
    try:
        yield
    finally:
        os.close(handle)


def managed_files(db: Connection, root: str) -> list[ManagedFile]:
    """Those of this work tree, also where they are gone."""
    here = projects.at(db, paths.place(root))
    top = os.path.realpath(root)
    return [
        file
        for file in (claude_files.listed(db, here.number) if here else ())
        if file.path == os.path.join(top, file.place)
    ]


def prepare(
    db: Connection,
    root: str,
    *,
    everything: bool,
    clean: Clean,
    now: int,
    practices: Practices | None = None,
    progress: Progress | None = None,
) -> Prepared:
    """What a sync would do. With `everything`, every section is looked at, whatever changed."""
    files = managed_files(db, root)
    if not files:
        raise NotFound(
            f"No CLAUDE.md in {paths.text(root)} has sections of recollect's; `recollect init` adds them."
        )
    lines = dirty.read(root)
    head = paths.place(root).head
    outside = _outside(root, files, set(lines))
    touched = affected((*lines, *outside), root, [_seen_as(file) for file in files])
    changes: list[Change] = []
    prose: list[Prose] = []
    there: list[str] = []
    troubles: list[Trouble] = []
    wanted: dict[ManagedFile, dict[str, managed.SectionState]] = {}
    for file in files:
        if not os.path.isfile(file.path):
            troubles += _gone(db, file)
            continue
        there.append(file.path)
        state = managed.state(db, file.path)
        troubles += [Trouble(file.path, problem.line, problem.said) for problem in state.problems]
        because = touched.get(_seen_as(file), {})
        known = compose.names(file.template)
        chosen = [one for one in state.sections if one.name in known and (everything or one.name in because)]
        prose += [
            Prose(file.path, one.name, tuple(because.get(one.name, ())))
            for one in chosen
            if one.author == "model"
        ]
        wanted[file] = {one.name: one for one in chosen if one.author != "model"}
    if any(wanted.values()):
        found = learn(
            root,
            wanted={name for names in wanted.values() for name in names},
            practices=practices,
            progress=progress,
        )
        for file, states in wanted.items():
            if states:
                texts = texts_of(found, "" if file.template == "root" else os.path.dirname(file.place))
                changes += _changes(root, file, states, texts, clean)
    return Prepared(
        root,
        tuple(there),
        tuple(lines),
        tuple(outside),
        tuple(changes),
        tuple(prose),
        tuple(troubles),
        head,
        now,
    )


def _changes(
    root: str,
    file: ManagedFile,
    states: Mapping[str, managed.SectionState],
    texts: Mapping[str, str],
    clean: Clean,
) -> Iterator[Change]:
    for name, state in states.items():
        text = texts.get(name)
        if text is None and name in compose.ALWAYS_COMPUTABLE:
            text = compose.nothing(file.template, name)
        if text is None:
            continue  # without git, or offline, nobody can tell: what was said then stays
        if name == "patterns":
            text = compose.settled(state.body, text, lambda path: os.path.lexists(os.path.join(root, path)))
        new = sections.harmless(clean(text))
        if sections.same(state.body, new):
            outcome = managed.UNCHANGED
        else:
            outcome = managed.OFFERED if state.is_edited else managed.WRITTEN
        yield Change(file.path, name, state.body, new, outcome)


def _outside(root: str, files: Iterable[ManagedFile], listed: set[str]) -> list[str]:
    """What changed since the last sync, and is not in the list."""
    last = [file for file in files if file.synced_at is not None]
    if not last:
        return []
    first = min(last, key=lambda file: file.synced_at or 0)
    found = git.changed_since(root, first.head, first.synced_at or 0) or []
    return [path for path in found if path not in listed and dirty.belongs(path, root)]


def _seen_as(file: ManagedFile) -> str:
    """The place of a file as far as it says what the file is about: the root's may be a link to elsewhere."""
    return os.path.basename(file.place) if file.template == "root" else file.place


def _gone(db: Connection, file: ManagedFile) -> list[Trouble]:
    """A file of ours is not there. Where its folder is gone too, so is what it was about."""
    if os.path.isdir(os.path.dirname(file.path)):
        return [Trouble(file.path, None, "is gone; `recollect init` makes it again, or forgets it")]
    with transaction(db):
        claude_files.remove(db, file.path)
    return []


def carry_out(
    db: Connection, data: str, prepared: Prepared, *, clean: Clean, now: int
) -> tuple[dict[str, dict[str, str]], list[Trouble]]:
    """Write what has changed: what became of each section of each file, and which file refused. Where one
    did, the list stays as it is, so that the next sync tries again."""
    outcomes: dict[str, dict[str, str]] = {path: {} for path in prepared.files}
    troubles: list[Trouble] = []
    for path in prepared.files:
        texts = {change.name: change.new for change in prepared.changes if change.path == path}
        try:
            if texts:
                outcomes[path] = managed.put_many(
                    db, data, path, texts, author="program", clean=clean, now=now
                )
        except RecollectError as error:
            troubles.append(Trouble(path, None, str(error)))
    if troubles:
        return outcomes, troubles
    dirty.remove(prepared.root, data, list(prepared.lines))
    with transaction(db):
        for path in prepared.files:
            claude_files.synced(db, path, prepared.head, prepared.at)
    return outcomes, troubles


def sync(db: Connection, data: str, root: str, *, clean: Clean, now: int) -> None:
    """Bring everything up to date that can be computed, and ask nobody."""
    with turn(data, root):
        prepared = prepare(db, root, everything=False, clean=clean, now=now)
        _, troubles = carry_out(db, data, prepared, clean=clean, now=now)
    if troubles:
        raise RecollectError("; ".join(trouble.said for trouble in troubles))
