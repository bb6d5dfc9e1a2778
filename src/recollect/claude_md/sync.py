"""Bringing the CLAUDE.md files of a project up to date with what changed in it.

    prepare     which sections the changes bear on, and what those would say now; nothing is written yet
    carry_out   writes them, takes the changes that were seen off the list, and notes up to where that was

Whoever does both holds the project's `turn` meanwhile. Else two could have read the same line of the list,
and the slower one would take away a change of the same file that came later, which nobody has seen.

A change is known from the list of changed files, or from git, if it was made outside of Claude Code. Without
git the times of files tell, though not of those that are gone: then every section is looked at. So it is with
a CLAUDE.md that changed itself, by a checkout or a pull. What a model wrote is not computed anew: it is told
which of its sections a change bears on, again and again until it has seen to them.
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
from recollect.claude_md.tree import walk
from recollect.errors import NotFound, RecollectError
from recollect.store import claude_files, projects, swap
from recollect.store.claude_files import ManagedFile
from recollect.store.connection import transaction

MOST_BEHIND = 100  # files that a section keeps in mind
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
    outcome: str  # written, unchanged, offered or kept, as far as can be told before


@dataclass(frozen=True, slots=True)
class Prose:
    """A section that a model wrote, and what changed since that it may be about."""

    path: str
    name: str
    because: tuple[str, ...]  # from the root


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
    waiting: tuple[tuple[str, str], ...]  # file and section of each offer that was made before
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
    """What a sync would do. With `everything`, every section is looked at, whatever changed; else what git
    knows is not, which moves with every commit."""
    files = managed_files(db, root)
    if not files:
        raise NotFound(
            f"No CLAUDE.md in {paths.text(root)} has sections of recollect's; `recollect init` adds them."
        )
    lines = dirty.read(root)
    head = paths.place(root).head
    outside, is_whole = changed_outside(root, files, lines)
    touched = affected((*lines, *outside), root, [_seen_as(file) for file in files])
    changes: list[Change] = []
    prose: list[Prose] = []
    there: list[str] = []
    waiting: list[tuple[str, str]] = []
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
        every = everything or not is_whole or _was_changed(db, file, state)
        wanted[file] = {}
        for one in state.sections:
            if one.name not in compose.names(file.template):
                continue
            if one.author == "model":
                why = tuple(dict.fromkeys((*one.behind, *because.get(one.name, ()))))
                if why or everything:
                    prose.append(Prose(file.path, one.name, why))
            elif everything or (one.name != "git-insights" and (every or one.name in because)):
                wanted[file][one.name] = one
            if one.offered is not None:
                waiting.append((file.path, one.name))
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
                changes += _changes(db, root, file, states, texts, clean)
    new = {(change.path, change.name) for change in changes if change.outcome == managed.OFFERED}
    return Prepared(
        root,
        tuple(there),
        tuple(lines),
        tuple(outside),
        tuple(changes),
        tuple(prose),
        tuple(one for one in waiting if one not in new),
        tuple(troubles),
        head,
        now,
    )


def _was_changed(db: Connection, file: ManagedFile, state: managed.FileState) -> bool:
    """Has somebody changed our sections in a file, since they were last looked at?"""
    if not _is_touched(file.path, file.synced_at or 0):
        return False
    records = claude_files.sections(db, file.path)
    return any(
        one.name not in records or not sections.same(records[one.name].written, one.body)
        for one in state.sections
        if one.name in sections.NAMES
    )


def _changes(
    db: Connection,
    root: str,
    file: ManagedFile,
    states: Mapping[str, managed.SectionState],
    texts: Mapping[str, str],
    clean: Clean,
) -> Iterator[Change]:
    records = claude_files.sections(db, file.path)
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
        elif not state.is_edited:
            outcome = managed.WRITTEN
        elif managed.is_refused(db, file.path, name, new):
            outcome = managed.KEPT
        elif state.offered is None and name in records and sections.same(records[name].written, new):
            continue  # only the person has changed it since, and so there is nothing to say
        else:
            outcome = managed.OFFERED
        yield Change(file.path, name, state.body, new, outcome)


def changed_outside(root: str, files: Iterable[ManagedFile], lines: Iterable[str]) -> tuple[list[str], bool]:
    """What changed since the last sync and is not in the list; and whether that is all, which only git can
    tell."""
    last = [file for file in files if file.synced_at is not None]
    if not last:
        return [], True
    first = min(last, key=lambda file: file.synced_at or 0)
    since = first.synced_at or 0
    found = git.changed_since(root, first.head, since)
    is_whole = found is not None
    if found is None:
        found = [os.path.join(root, file.path) for file in walk(root).files]
        found = [path for path in found if _is_touched(path, since)]
    listed = set(lines)
    return [path for path in found if path not in listed and dirty.belongs(path, root)], is_whole


def _is_touched(path: str, since: int) -> bool:
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return max(status.st_mtime_ns, status.st_ctime_ns) // 1_000_000 >= since - git.SLACK_MS


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
    with transaction(db):  # first: the list forgets what it is about
        for one in prepared.prose:
            if one.because:
                claude_files.fell_behind(db, one.path, one.name, one.because[-MOST_BEHIND:], now)
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
