"""Bringing the CLAUDE.md files of a project up to date with what changed in it.

    prepare     what each section that can be computed would say now; nothing is written yet
    carry_out   writes those that differ, takes the changes that were seen off the list, and notes up to
                where that was

Whoever does both is `alone` with the project meanwhile. Else two could have read the same line of the list,
and the slower one would take away a change of the same file that came later, which nobody has seen.

Every section of ours is computed anew, whatever changed: a change may be taken back, come with a checkout, or
bear on what nobody thought of. Only what git and the documentation say is left until somebody asks for
everything: it moves by itself. What a model wrote is not computed. It is told which of its sections a change
bears on, again and again until it has seen to them; changes are known from the list of changed files, and
from git, or without git from the times of files, if they were made outside of Claude Code.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from backstory import dirty, locks, paths
from backstory.claude_md.affected import affected, bears_on
from backstory.claude_md.learn import Practices, Progress, learn, texts_of
from backstory.claude_md.read import git
from backstory.claude_md.read.files import walk
from backstory.claude_md.read.references import references
from backstory.claude_md.write import compose, managed, sections
from backstory.errors import BackstoryError, NotFound
from backstory.store import claude_files, projects
from backstory.store.claude_files import ManagedFile
from backstory.store.file.connection import Connection, transaction

MOST_GONE = 1_000  # files that are noted as gone
MOST_BEHIND = 100  # files that a section keeps in mind
ONLY_WITH_ALL = frozenset(("git-insights", "best-practices"))  # they change though the project does not
SECONDS = 30.0  # a sync that asks somebody may take longer; the next one then says so
NOT_INITIALISED = (
    "{folder} is not initialised; `backstory init` writes its CLAUDE.md and tracks what changes."
)


@dataclass(frozen=True, slots=True)
class Change:
    """What one section would say now."""

    path: str
    name: str
    old: str
    new: str
    outcome: str  # written, unchanged, offered or kept, as far as can be told before
    is_new: bool = False  # the file does not have it yet


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
    places: dict[str, str]  # of the files that changes bear on, also of the root's where that is gone
    lines: tuple[str, ...]  # of the list of changed files, each as often as it is there
    outside: tuple[str, ...]  # what else changed
    gone: frozenset[str]  # what was gone at the last sync already
    changes: tuple[Change, ...]
    prose: tuple[Prose, ...]
    waiting: tuple[tuple[str, str], ...]  # file and section of each offer that was made before
    lacking: tuple[tuple[str, str], ...]  # file and section of what there is to say, and never was said
    troubles: tuple[Trouble, ...]
    head: str | None  # git's commit
    at: int

    def told(self, path: str) -> str:
        """A path as people read it: as seen from the root."""
        return paths.text(path.removeprefix(self.root.rstrip("/") + "/"))


def root_of(cwd: str) -> str:
    """The initialised project that a folder is in."""
    found = dirty.root_of(cwd)
    if found is None:
        raise NotFound(NOT_INITIALISED.format(folder=paths.text(paths.checkout(cwd))))
    return found


@contextmanager
def alone(data: str, root: str, seconds: float = SECONDS) -> Iterator[None]:
    """One sync of a project at a time."""
    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
    busy = "another sync of this project is under way, or waits for an answer; try again after it"
    handle = locks.take(os.path.join(data, "syncs", name), busy, seconds)
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
    now: int,
    practices: Practices | None = None,
    progress: Progress | None = None,
) -> Prepared:
    """What a sync would do. With `everything`, also what only that renews, and sections are added that had
    nothing to say when the file was made."""
    files = managed_files(db, root)
    if not files:
        raise NotFound(
            f"No CLAUDE.md in {paths.text(root)} has sections of backstory's; `backstory init` adds them."
        )
    lines = dirty.read(root)
    head = paths.place(root).head
    outside = changed_outside(root, files, lines)
    there = [file for file in files if os.path.isfile(file.path)]
    # Where a module's file is gone, the next one above is the nearest; the root's has nothing in its place.
    places = {file.path: _seen_as(file) for file in files if file in there or file.template == "root"}
    touched = affected((*lines, *outside), root, list(places.values()))
    troubles = [trouble for file in files if file not in there for trouble in _gone(file)]
    states = dict(_states(db, there, troubles))
    prose: list[Prose] = []
    waiting: list[tuple[str, str]] = []
    wanted: dict[ManagedFile, list[managed.SectionState]] = {}
    for file, state in states.items():
        troubles += [Trouble(file.path, problem.line, problem.said) for problem in state.problems]
        because = touched.get(_seen_as(file), {})
        wanted[file] = []
        for one in state.sections:
            if one.name not in compose.names(file.template):
                continue
            if one.author == "model":
                new = [path for path in because.get(one.name, ()) if _is_news(file, os.path.join(root, path))]
                why = tuple(dict.fromkeys((*one.behind, *new)))
                if why or everything:
                    prose.append(Prose(file.path, one.name, why))
            elif everything or one.name not in ONLY_WITH_ALL or _names_what_is_gone(one, root):
                wanted[file].append(one)
            if one.offered is not None:
                waiting.append((file.path, one.name))
    changes: list[Change] = []
    lacking: list[Change] = []
    if there:
        names = {one.name for found in wanted.values() for one in found}
        names |= set(sections.NAMES) - (set() if everything else ONLY_WITH_ALL)
        known = learn(root, wanted=names, practices=practices, progress=progress)
        for file, state in states.items():
            texts = texts_of(known, "" if file.template == "root" else os.path.dirname(file.place))
            changes += _changes(db, root, file, wanted[file], texts)
            if not state.problems:
                lacking += _lacking(db, file, {one.name for one in state.sections}, texts)
    if everything:
        changes, lacking = changes + lacking, []
    offered = {(change.path, change.name) for change in changes if change.outcome == managed.OFFERED}
    return Prepared(
        root,
        tuple(file.path for file in there),
        places,
        tuple(lines),
        tuple(outside),
        frozenset().union(*(file.gone for file in files)),
        tuple(changes),
        tuple(prose),
        tuple(one for one in waiting if one not in offered),
        tuple((change.path, change.name) for change in lacking),
        tuple(troubles),
        head,
        now,
    )


def _states(
    db: Connection, files: Iterable[ManagedFile], troubles: list[Trouble]
) -> Iterator[tuple[ManagedFile, managed.FileState]]:
    for file in files:
        try:
            yield file, managed.state(db, file.path)
        except BackstoryError as error:  # the others can do without it
            troubles.append(Trouble(file.path, None, str(error)))


def _names_what_is_gone(one: managed.SectionState, root: str) -> bool:
    """Does it name a file that changes often, and is not there any more?"""
    if one.name != "git-insights":
        return False
    said = "\n".join(line for line in one.body.split("\n") if "- Changed most" in line or "together" in line)
    return any(not os.path.lexists(os.path.join(root, path)) for path in references(said, (root,)))


def _changes(
    db: Connection,
    root: str,
    file: ManagedFile,
    states: Iterable[managed.SectionState],
    texts: Mapping[str, str],
) -> Iterator[Change]:
    records = claude_files.sections(db, file.path)
    for state in states:
        name = state.name
        text = texts.get(name)
        if text is None and name in compose.ALWAYS_COMPUTABLE:
            text = compose.nothing(file.template, name)
        if text is None:
            continue  # without git, or offline, nobody can tell: what was said then stays
        if name == "patterns":
            text = compose.settled(state.body, text, lambda path: os.path.lexists(os.path.join(root, path)))
        new = sections.cleaned(text)
        if sections.same(state.body, new):
            outcome = managed.UNCHANGED
        elif not state.is_edited:
            outcome = managed.WRITTEN
        elif managed.is_refused(db, file.path, name, new):
            outcome = managed.KEPT
        elif state.offered is not None and sections.same(state.offered, new):
            continue  # it waits already
        elif state.offered is None and name in records and sections.same(records[name].written, new):
            continue  # only the person has changed it since, and so there is nothing to say
        else:
            outcome = managed.OFFERED
        yield Change(file.path, name, state.body, new, outcome)


def _lacking(
    db: Connection, file: ManagedFile, there: Collection[str], texts: Mapping[str, str]
) -> Iterator[Change]:
    """The sections that a file never had. One that it had was removed by somebody."""
    had = claude_files.sections(db, file.path)
    for name, text in texts.items():
        if name not in there and name not in had:
            yield Change(file.path, name, "", sections.cleaned(text), managed.WRITTEN, is_new=True)


def changed_outside(root: str, files: Iterable[ManagedFile], lines: Iterable[str]) -> list[str]:
    """What changed since the last sync and is not in the list. Without git, what is gone cannot be told."""
    found: dict[str, None] = {}
    # One that had troubles, or was away with its branch, may be behind the others.
    last = {(file.head, file.synced_at): file for file in files if os.path.isfile(file.path)}
    for (head, since), file in last.items():
        if since is None:
            continue
        changed = git.changed_since(root, head, since)
        if changed is None:
            changed = [os.path.join(root, one.path) for one in walk(root).files]
        found |= dict.fromkeys(path for path in changed if _is_news(file, path))
    listed = set(lines)
    return [path for path in found if path not in listed and dirty.inside(path, root)]


def _is_news(file: ManagedFile, path: str) -> bool:
    """Did it change since the last sync of a managed file? Of what is gone, no time tells."""
    if not os.path.lexists(path):
        return path not in file.gone
    return git.touched(path) >= (file.synced_at or 0) - git.SLACK_MS


def _seen_as(file: ManagedFile) -> str:
    """The place of a file as far as it says what the file is about: the root's may be a link to elsewhere."""
    return os.path.basename(file.place) if file.template == "root" else file.place


def _gone(file: ManagedFile) -> list[Trouble]:
    """A file of ours is not there. Where its folder is gone too, so is what it was about; but both may come
    back with a branch."""
    if os.path.isdir(os.path.dirname(file.path)):
        return [Trouble(file.path, None, "is gone; `backstory init` makes it again, or forgets it")]
    return []


def carry_out(
    db: Connection, data: str, prepared: Prepared, *, now: int
) -> tuple[dict[str, dict[str, str]], list[Trouble]]:
    """Write what has changed: what became of each section of each file, and which file refused. What bears on
    a file with troubles stays in the list, and so for the next sync."""
    outcomes: dict[str, dict[str, str]] = {path: {} for path in prepared.files}
    refused: list[Trouble] = []
    for path in prepared.files:
        changes = [change for change in prepared.changes if change.path == path]
        new = [(change.name, "") for change in changes if change.is_new]
        try:
            if changes:
                outcomes[path] = managed.put_many(
                    db,
                    data,
                    path,
                    {change.name: change.new for change in changes},
                    author="program",
                    now=now,
                    prepare=lambda text, new=new: sections.with_new(text, new),  # type: ignore[misc]
                )
        except BackstoryError as error:
            refused.append(Trouble(path, None, str(error)))
    late = {trouble.path for trouble in (*prepared.troubles, *refused)}
    late |= {path for path, names in outcomes.items() if managed.SKIPPED in names.values()}
    with transaction(db):  # first: the list forgets what it is about
        for one in prepared.prose:
            if one.because:
                claude_files.fell_behind(db, one.path, one.name, one.because[-MOST_BEHIND:], now)
    dirty.remove(prepared.root, data, _seen_to(prepared, late))
    changed = {*prepared.gone, *prepared.lines, *prepared.outside}
    gone = sorted(path for path in changed if not os.path.lexists(path))[:MOST_GONE]
    with transaction(db):
        for path in prepared.files:
            if path not in late:
                claude_files.synced(db, path, prepared.head, prepared.at, gone)
    return outcomes, refused


def _seen_to(prepared: Prepared, late: Collection[str]) -> list[str]:
    """The lines of the list that bear on no file which is still to be brought up to date."""
    places = list(prepared.places.values())
    behind = {place for path, place in prepared.places.items() if path in late}
    return [line for line in prepared.lines if behind.isdisjoint(bears_on(line, prepared.root, places))]


def sync(db: Connection, data: str, root: str, *, now: int) -> None:
    """Bring everything up to date that can be computed, and ask nobody."""
    with alone(data, root):
        prepared = prepare(db, root, everything=False, now=now)
        _, refused = carry_out(db, data, prepared, now=now)
    if troubles := (*prepared.troubles, *refused):
        raise BackstoryError("; ".join(f"{prepared.told(one.path)}: {one.said}" for one in troubles))
