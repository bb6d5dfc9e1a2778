"""Bringing the CLAUDE.md files of a project up to date with what changed in it.

    prepare     what each section that can be computed would say now; nothing is written yet
    carry_out   writes those that differ, takes the changes that were seen off the list, and notes up to
                where that was

Whoever does both is `alone` with the project meanwhile. Else two could have read the same line of the list,
and the slower one would take away a change of the same file that came later, which nobody has seen.

Every section of ours is computed anew, whatever changed: a change may be taken back, come with a checkout, or
bear on what nobody thought of. Only what git and the documentation say is left until somebody asks for
everything: it moves by itself. What a model wrote is not computed. It is told which of its sections rest on
facts that have changed (basis.py), again and again until it has seen to them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from backstory import dirty, locks, paths
from backstory.claude_md import basis
from backstory.claude_md.affected import bears_on
from backstory.claude_md.basis import Facts
from backstory.claude_md.learn import LATE, Learned, Practices, learn, texts_of
from backstory.claude_md.own_text import own_text
from backstory.claude_md.read import git
from backstory.claude_md.read.files import ProjectFiles, read, walk
from backstory.claude_md.read.references import references
from backstory.claude_md.write import compose, managed, sections, settings, writer
from backstory.errors import BackstoryError, NotFound
from backstory.store import claude_files, projects
from backstory.store.claude_files import ManagedFile
from backstory.store.file.connection import Connection, transaction

MOST_GONE = 1_000  # files that are noted as gone
MOST_BEHIND = 100  # facts that a section keeps in mind
MOST_BELOW = 200  # files called CLAUDE.md or AGENTS.md that are looked into
ONLY_WITH_ALL = frozenset(("git-insights", "best-practices"))  # they change though the project does not
PATIENCE = 30.0  # seconds; a sync that asks somebody may take longer; the next one then says so
CONFLICT = (
    "git left a merge conflict in section {name}, with text that is not computed; resolve it in the file, or"
    " `backstory claude-md section set {name}` gives it a new text"
)
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
    merged: str | None = None  # what will stand there, where a person's edit is kept


@dataclass(frozen=True, slots=True)
class Prose:
    """A section that a model wrote, and which facts have changed that it rests on."""

    path: str
    name: str
    because: tuple[str, ...]  # empty: none, as far as anybody can tell
    facts: Facts | None = None  # now; None: of what it is about nobody can tell
    stored: Facts | None = None  # what the store knows
    is_edited: bool = False  # by a person


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
    prose: tuple[Prose, ...]  # that is behind; with everything, all of it
    waiting: tuple[tuple[str, str], ...]  # file and section of each offer that was made before
    lacking: tuple[tuple[str, str], ...]  # file and section of what there is to say, and never was said
    troubles: tuple[Trouble, ...]
    head: str | None  # git's commit
    at: int
    by_model: tuple[Prose, ...] = ()  # all that there is

    def told(self, path: str) -> str:
        """A path as people read it: as seen from the root."""
        return paths.text(path.removeprefix(self.root.rstrip("/") + "/"))


def root_of(db: Connection, cwd: str) -> str:
    """The initialised project that a folder is in. One that came initialised, with a clone or as a worktree,
    gets its list of changed files."""
    found = dirty.adopt(cwd, partial(claude_files.get, db))
    if found is None:
        raise NotFound(NOT_INITIALISED.format(folder=paths.text(paths.checkout(cwd))))
    return found


@contextmanager
def alone(data: str, root: str, seconds: float = PATIENCE) -> Iterator[None]:
    """One sync of a project at a time."""
    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
    busy = "another sync of this project is under way, or waits for an answer; try again after it"
    handle = locks.take(os.path.join(data, "syncs", name), busy, seconds)
    try:
        yield
    finally:
        os.close(handle)


def managed_files(db: Connection, root: str, project: ProjectFiles | None = None) -> list[ManagedFile]:
    """Those of this work tree: that have sections with ownership lines, and that the store knows, also where
    these are gone. `project` is what lies in it, where that is known."""
    here = projects.at(db, paths.place(root))
    number = here.number if here else 0
    top = os.path.realpath(root)
    known = {
        file.path: file
        for file in (claude_files.listed(db, number) if here else ())
        if file.path == os.path.join(top, file.place)
    }
    for path, template in marked(top, project or walk(top)):
        place = os.path.relpath(path, top)
        known.setdefault(path, ManagedFile(path, number, place, template, None, None))
    return sorted(known.values(), key=lambda file: (file.place.count("/"), file.path))


def marked(top: str, project: ProjectFiles) -> Iterator[tuple[str, str]]:
    """The files with ownership lines, and their templates: at the top, and where git would list them. What is
    in a repository of its own, like a submodule, belongs to that."""
    names = [os.path.join(top, name) for name in dirty.TOP_FILES]
    below = [
        os.path.join(top, file.path)
        for file in project.files
        if os.path.basename(file.path) in dirty.NEVER and file.path not in dirty.TOP_FILES
    ]
    below.sort(key=lambda path: path.count("/"))
    for path in (*names, *below[:MOST_BELOW]):
        real = os.path.realpath(path)
        text = read(real, writer.LARGEST) if real.startswith(os.path.join(top, "")) else None
        if text and sections.has_ownership(text):
            yield real, "root" if path in names else "subtree"


def prepare(
    db: Connection,
    root: str,
    *,
    everything: bool,
    now: int,
    practices: Practices | None = None,
) -> Prepared:
    """What a sync would do. With `everything`, also what only that renews, and sections are added that had
    nothing to say when the file was made."""
    project = walk(root)
    files = managed_files(db, root, project)
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
    troubles = [trouble for file in files if file not in there for trouble in _gone(file)]
    states = dict(_states(db, root, there, troubles))
    by_model: dict[ManagedFile, list[managed.SectionState]] = {}
    prose: list[Prose] = []
    waiting: list[tuple[str, str]] = []
    wanted: dict[ManagedFile, list[managed.SectionState]] = {}
    chosen = {file: settings.read(managed.read(file.path)) for file in states}
    for file, state in states.items():
        troubles += [Trouble(file.path, problem.line, problem.said) for problem in state.problems]
        wanted[file], by_model[file] = [], []
        for one in state.sections:
            if one.name not in compose.names(file.template) or one.name in chosen[file].off:
                continue
            if one.author == "model":
                by_model[file].append(one)
            elif everything or one.name not in ONLY_WITH_ALL or _is_spoilt(one, root):
                wanted[file].append(one)
            if one.offered is not None:
                waiting.append((file.path, one.name))
    changes: list[Change] = []
    lacking: list[Change] = []
    if there:
        names = {one.name for found in wanted.values() for one in found}
        names |= set(sections.NAMES) - (set() if everything else ONLY_WITH_ALL)
        known = learn(root, wanted=names, practices=practices, project=project)
        modules = _modules(files)
        if known.is_cut:  # what is true must not go because it was not seen
            troubles.append(Trouble(there[0].path, None, f"stays as it is, since the project {LATE}"))
        for file, state in () if known.is_cut else states.items():
            folder = _folder(file)
            texts = texts_of(known, folder, chosen[file], elsewhere=modules)
            prose += _prose(db, file, by_model[file], known, texts)
            computable = {*compose.ALWAYS_COMPUTABLE, *(("git-insights",) if known.insights else ())}
            changes += _changes(db, root, file, wanted[file], texts, computable)
            if not state.problems:
                left_alone = {*chosen[file].off, *(one.name for one in state.sections)}
                own = own_text(root, folder)
                lacking += (
                    change
                    for change in _lacking(db, file, left_alone, texts)
                    if not own.covers(change.name, change.new, known.survey.name)
                )
    if everything:
        changes, lacking = changes + lacking, []
    offered = {(change.path, change.name) for change in changes if change.outcome == managed.OFFERED}
    troubles += _conflicts(states.values(), changes)
    return Prepared(
        root,
        tuple(file.path for file in there),
        places,
        tuple(lines),
        tuple(outside),
        frozenset().union(*(file.gone for file in files)),
        tuple(changes),
        tuple(one for one in prose if one.because or everything),
        tuple(one for one in waiting if one not in offered),
        tuple((change.path, change.name) for change in lacking),
        tuple(troubles),
        head,
        now,
        tuple(prose),
    )


def _states(
    db: Connection, root: str, files: Iterable[ManagedFile], troubles: list[Trouble]
) -> Iterator[tuple[ManagedFile, managed.FileState]]:
    for file in files:
        try:
            yield file, managed.state(db, file.path, root=root)
        except BackstoryError as error:  # the others can do without it
            troubles.append(Trouble(file.path, None, str(error)))


def _folder(file: ManagedFile) -> str:
    """The folder of the project that a file is about."""
    return "" if file.template == "root" else os.path.dirname(file.place)


def _modules(files: Iterable[ManagedFile]) -> list[str]:
    """The folders that speak for themselves: with a file of their own that is there and has sections."""
    return [
        _folder(file)
        for file in files
        if file.template != "root" and sections.has_known(read(file.path, writer.LARGEST) or b"")
    ]


def _prose(
    db: Connection,
    file: ManagedFile,
    states: Iterable[managed.SectionState],
    known: Learned,
    texts: Mapping[str, str],
) -> Iterator[Prose]:
    """What a model wrote, and why it is behind. The ownership line has a digest of the facts it rests on, the
    store has the facts themselves. Where neither says anything, it is taken to rest on what is there now."""
    recorded = claude_files.facts(db, file.path)
    for one in states:
        now = basis.facts(one.name, known, _folder(file), texts) if one.name in basis.KNOWN else None
        stored, line = recorded.get(one.name), one.owner.facts if one.owner else None
        because: tuple[str, ...] = ()
        if now is not None and line and (stored is None or line != basis.digest(stored)):
            because = () if line == basis.digest(now) else basis.unnamed(one.body, now)
        elif now is not None and stored is not None:
            because = basis.difference(stored, now)
        yield Prose(file.path, one.name, because, now, stored, one.is_edited)


def facts_now(db: Connection, root: str, path: str, name: str) -> Facts | None:
    """What a text that is written into a section now rests on; None: of that nobody can tell."""
    real = os.path.realpath(path)
    file = claude_files.get(db, real)
    folder = _folder(file) if file else os.path.dirname(os.path.relpath(real, os.path.realpath(root)))
    if name not in basis.KNOWN or dirty.root_of(root) is None:
        return None
    try:
        known = learn(root, wanted={name})
    except NotFound:
        return None
    if known.is_cut:
        return None
    chosen = settings.read(read(real, writer.LARGEST) or b"")
    modules = _modules(managed_files(db, root))
    return basis.facts(name, known, folder, texts_of(known, folder, chosen, elsewhere=modules))


def rest_on(db: Connection, path: str, name: str, facts: Facts | None, now: int) -> None:
    """A model has written a section with these facts before it."""
    if facts is not None:
        with transaction(db):
            claude_files.based_on(db, os.path.realpath(path), name, facts, now)


def keep(db: Connection, data: str, path: str, name: str, *, root: str, now: int) -> None:
    """Turn down what is offered for a section; or somebody has found it true that is behind, and it rests on
    what is there now."""
    is_behind = name in claude_files.behind(db, os.path.realpath(path))
    managed.keep(db, path, name, root=root)
    if is_behind and (facts := facts_now(db, root, path, name)) is not None:
        digests = {name: basis.digest(facts)}
        managed.put_many(db, data, path, {}, author="model", now=now, root=root, facts=digests)
        rest_on(db, path, name, facts, now)


def _is_spoilt(one: managed.SectionState, root: str) -> bool:
    """Does it name files that change together, of which one is gone? Or has git left a conflict in it?"""
    if one.name != "git-insights":
        return one.is_conflict
    said = "\n".join(line for line in one.body.split("\n") if line.endswith("change together"))
    is_gone = any(not os.path.lexists(os.path.join(root, path)) for path in references(said, (root,)))
    return is_gone or one.is_conflict


def _conflicts(files: Iterable[managed.FileState], changes: Iterable[Change]) -> Iterator[Trouble]:
    """The conflicts that git left in sections, and that computing these anew does not resolve."""
    done = (managed.WRITTEN, managed.UNCHANGED)
    resolved = {(change.path, change.name) for change in changes if change.outcome in done}
    for file in files:
        for one in file.sections:
            if one.is_conflict and one.name in sections.NAMES and (file.path, one.name) not in resolved:
                yield Trouble(file.path, None, CONFLICT.format(name=one.name))


def _changes(
    db: Connection,
    root: str,
    file: ManagedFile,
    states: Iterable[managed.SectionState],
    texts: Mapping[str, str],
    computable: Collection[str],
) -> Iterator[Change]:
    records = claude_files.sections(db, file.path)
    for state in states:
        name = state.name
        text = texts.get(name)
        if text is None and name in computable:
            text = compose.nothing(file.template, name)
        if text is None:
            continue  # without git, or offline, nobody can tell: what was said then stays
        if name == "patterns":
            said = state.body if state.base is None else state.base
            text = compose.settled(said, text, lambda path: os.path.lexists(os.path.join(root, path)))
        new = sections.cleaned(text)
        found = managed.decide(state, new, "program")
        outcome = found.outcome
        if outcome == managed.OFFERED:
            if managed.is_refused(db, file.path, name, new):
                outcome = managed.KEPT
            elif state.offered is not None and sections.same(state.offered, new):
                continue  # it waits already
            elif state.owner or state.is_conflict:
                pass
            elif name in records and sections.same(records[name].written, new):
                continue  # only the person has changed it since, and so there is nothing to say
        merged = found.text if outcome == managed.WRITTEN and found.text != new else None
        yield Change(file.path, name, state.body, new, outcome, merged=merged)


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
    unusable = {trouble.path for trouble in prepared.troubles}
    for path in prepared.files:
        if claude_files.get(db, path) is None:
            template = "subtree" if "/" in prepared.places[path] else "root"
            managed.register(db, prepared.root, path, template, now)
        changes = [change for change in prepared.changes if change.path == path]
        new = [(change.name, "") for change in changes if change.is_new]
        try:
            if changes or path not in unusable:  # without any, ownership lines that are missing are added
                outcomes[path] = managed.put_many(
                    db,
                    data,
                    path,
                    {change.name: change.new for change in changes},
                    author="program",
                    now=now,
                    root=prepared.root,
                    prepare=lambda text, new=new: sections.with_new(text, new),  # type: ignore[misc]
                )
        except BackstoryError as error:
            refused.append(Trouble(path, None, str(error)))
    late = {trouble.path for trouble in (*prepared.troubles, *refused)}
    late |= {path for path, names in outcomes.items() if managed.SKIPPED in names.values()}
    with transaction(db):
        for one in prepared.by_model:
            if one.because:
                claude_files.fell_behind(db, one.path, one.name, one.because[:MOST_BEHIND], now)
                continue
            claude_files.caught_up(db, one.path, one.name)
            known = claude_files.facts(db, one.path).get(one.name)
            if one.facts is not None and one.stored == known != one.facts:  # no model has set it meanwhile
                claude_files.based_on(db, one.path, one.name, one.facts, now)
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


def sync(
    db: Connection, data: str, root: str, *, now: int, ask: Callable[[Sequence[Prose]], None] | None = None
) -> None:
    """Bring everything up to date that can be computed. `ask` is called with all prose that is behind, once
    for each state of the facts, whichever session syncs; and with none, where nothing is behind."""
    with alone(data, root):
        prepared = prepare(db, root, everything=False, now=now)
        _, refused = carry_out(db, data, prepared, now=now)
        behind = [one for one in prepared.prose if not one.is_edited]
        with transaction(db):
            digests = [(one, basis.digest(one.facts or ())) for one in behind]
            news = ask and [claude_files.ask(db, one.path, one.name, digest) for one, digest in digests]
            if ask and (any(news or ()) or not behind):
                ask(behind)
    if troubles := (*prepared.troubles, *refused):
        raise BackstoryError("; ".join(f"{prepared.told(one.path)}: {one.said}" for one in troubles))
