"""Sections of ours in CLAUDE.md, written so that no edit of a person's is ever overwritten.

Whose a section is, its ownership line says (`sections`): by whom of ours, and the digest of what they wrote.
The line is written with the text in one step, and goes with the file wherever that goes. A section without
one may be from an older backstory, whose store kept the digests: only then is the store asked.

A new text is merged, by lines, with what stands there and what we wrote last (the base). Two texts are the
same here if only line ends, trailing blanks or blank lines around them differ; git and editors change those
by themselves.

    in the file                               outcome
    the new text already                      unchanged
    nothing, or a text that we wrote          written
    an edit by a person, elsewhere than ours  written: both changes. The line has the digest of the new text
                                              without the person's, which is the base of the next merge
    any other edit by a person                offered; kept, where that very text was turned down before
    a conflict that git left, all our texts   written
    no such section, or an unsound one        skipped
    a model's prose, and a program writes     skipped: it was set while the program waited for an answer

The text of a base is in the store; where another machine wrote it, in git's history of the file.

A text that a model hands back as it found it stays whose it was. So does what of a person's it hands back
within a text of its own. What a program computes from the project and finds there word for word is ours.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from backstory import paths
from backstory.claude_md.read import git
from backstory.claude_md.write import merge, sections, writer
from backstory.claude_md.write.sections import Ownership, Problem
from backstory.errors import BadInput, NotFound
from backstory.gist import tokens
from backstory.store import claude_files, projects
from backstory.store.claude_files import ManagedFile
from backstory.store.file.connection import Connection, transaction

WRITTEN, UNCHANGED, OFFERED, KEPT, SKIPPED = "written", "unchanged", "offered", "kept", "skipped"
LISTING = "`backstory claude-md section list` shows what there is"

Change = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class SectionState:
    name: str
    body: str
    author: str | None  # of our text in it, or under a person's edit: program, model; None: nothing of ours
    is_edited: bool  # by a person: it is no text that we wrote
    offered: str | None = None  # a text that waits for somebody to take it or turn it down
    behind: tuple[str, ...] = ()  # files that changed, and a model has yet to look whether it is still true
    is_conflict: bool = False  # git left both sides of a merge in it
    owner: Ownership | None = None  # its ownership line
    base: str | None = None  # what we wrote last, under a person's edit, if it is known
    exact: str = ""  # the body with what cannot be shown, as `sections.body` has it

    @property
    def lines(self) -> int:
        return self.body.count("\n") + 1 if self.body else 0

    @property
    def tokens(self) -> int:
        return tokens(self.body)


@dataclass(frozen=True, slots=True)
class FileState:
    path: str
    lines: int
    tokens: int
    sections: tuple[SectionState, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a section for which there is a new text."""

    outcome: str
    text: str  # what it says then
    base: str | None = None  # what of that is ours; None: the section stays as it is, with its line
    author: str = ""


def decide(state: SectionState, new: str, author: str) -> Decision:
    """What becomes of a section. `new` is a text as a section can have it."""
    there = state.exact
    if sections.same(there, new):
        if state.is_edited:
            return Decision(UNCHANGED, there, new if author == "program" else None, author)
        return Decision(UNCHANGED, there, there, state.author or author)
    if state.is_edited:
        return _merged(state, new, author)
    if state.author == "model" and author == "program":
        return Decision(SKIPPED, there)
    return Decision(WRITTEN, new, new, author)


def _merged(state: SectionState, new: str, author: str) -> Decision:
    """The same for one that a person edited."""
    there, offered = state.exact, Decision(OFFERED, new)
    base = new if state.owner and state.owner.digest == sections.short(new) else state.base
    if base is None or (state.author == "model" and author == "program"):
        return offered
    merged = merge.merge(base, new, there)
    if merged is not None and sections.same(merged, there):
        return Decision(UNCHANGED, there, new, author)
    if merged is None or not sections.same(merged, sections.harmless(merged)):
        return offered  # to make a person's text harmless would be to change it
    if author == "model" and sections.same(merged, new):
        # It was handed what the person wrote, and hands it back: that is still the person's.
        ours = merge.merge(there, base, new)
        return offered if ours is None else Decision(WRITTEN, new, ours, author)
    return Decision(WRITTEN, merged, new, author)


def put(
    db: Connection,
    data: str,
    path: str,
    name: str,
    body: str,
    *,
    author: str,
    now: int,
    root: str | None = None,
    facts: str | None = None,
    add: bool = False,
) -> str:
    """Give a section a new text; the outcome. One that is missing is added if that is wanted. NotFound or
    BadInput where no sound section has that name."""
    given = {name: facts} if facts else {}
    new = [(name, "")] if add else []
    outcome = put_many(
        db,
        data,
        path,
        {name: body},
        author=author,
        now=now,
        root=root,
        prepare=lambda text: sections.with_new(text, new),
        facts=given,
    )[name]
    if outcome == SKIPPED:
        sections.with_section(read(path), name, "")  # says what is wrong
        if author == "model":  # nobody's prose is in its way
            raise BadInput(f"{name} was changed in {paths.text(path)} at the same moment; try again")
    return outcome


def put_many(
    db: Connection,
    data: str,
    path: str,
    texts: Mapping[str, str],
    *,
    author: str,
    now: int,
    root: str | None = None,
    create: bytes | None = None,
    prepare: Change = bytes,
    facts: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Give several sections of a file new texts, all in one write; the outcome for each.

    `root` is the project's folder, if the file is not registered yet: else the top of its
    work tree. Where there is no file, one begins as `create`. What else is to be done to it in the same
    write, like adding sections, is done by `prepare`, before the sections get their texts; it is called more
    than once. `facts` are digests of what a model's texts were written on, for the ownership lines. Sections
    of an older backstory get their lines too.
    """
    file, top = _managed(db, path, root)
    new = {name: sections.cleaned(body) for name, body in texts.items()}
    known = _written(db, file, read(path)) if os.path.isfile(path) else {}
    decisions: dict[str, Decision] = {}

    def change(text: bytes) -> bytes:
        decisions.clear()
        changed = _with_conflicts_apart(prepare(text))
        states = {one.name: one for one in _states(db, file, changed, known)}
        is_changed = False
        for name, state in states.items():
            if name not in new and name not in sections.NAMES:
                continue  # whatever it says of itself, we did not write it
            found = decide(state, new[name], author) if name in new else Decision(UNCHANGED, state.exact)
            decisions[name] = found
            owner = _owner(state, found, (facts or {}).get(name))
            if found.outcome == WRITTEN:
                changed, is_changed = sections.with_section(changed, name, found.text, owner), True
            elif owner and found.outcome == UNCHANGED and owner != state.owner:
                changed, is_changed = sections.with_owner(changed, name, owner), True
        return changed if is_changed else prepare(text)

    theirs = partial(_theirs, db, file)
    if not writer.rewrite(path, top, data, change, theirs=theirs, now=now, create=create):
        raise _no_file(path)
    decided = {name: decisions.get(name, Decision(SKIPPED, "")) for name in new}
    outcomes = {name: found.outcome for name, found in decided.items()}
    if set(outcomes.values()) - {SKIPPED}:
        with transaction(db):
            file.project = file.project or _project(db, top, now)
            _record(db, file, new, decided, outcomes, author, now)
    return outcomes


def _owner(state: SectionState, found: Decision, facts: str | None) -> Ownership | None:
    """The ownership line that a section gets; None: the one it has, or none."""
    is_theirs = state.owner is None and (state.is_edited or state.is_conflict)
    if not found.text or (found.base is None and is_theirs):
        return None
    if found.base is not None:
        author, digest = found.author, sections.short(found.base)
    elif state.owner:
        author, digest = state.owner.author, state.owner.digest
    else:
        author, digest = state.author or "", sections.short(state.exact)
    before = state.owner.facts if state.owner and found.outcome == UNCHANGED else None
    return Ownership(author, digest, (facts or before) if author == "model" else None)


def accept(db: Connection, data: str, path: str, name: str, now: int, *, root: str | None = None) -> None:
    """Write what is offered over a person's text, which somebody decided. A backup keeps that text."""
    file, top = _managed(db, path, root)
    text, author = _offer(db, file, name)
    owner = Ownership(author, sections.short(text))

    def change(found: bytes) -> bytes:
        found = _with_conflicts_apart(found)
        sections.sound(found, name)
        state = next(one for one in _states(db, file, found, {}) if one.name == name)
        if sections.same(state.exact, text):
            return sections.with_owner(found, name, owner) if text else found
        if state.exact and not state.is_edited:
            raise _no_offer(file, name)  # it was made for another branch
        return sections.with_section(found, name, text, owner)

    theirs = partial(_theirs, db, file)
    if not writer.rewrite(path, top, data, change, theirs=theirs, now=now):
        raise _no_file(path)
    with transaction(db):
        claude_files.wrote(db, file.path, name, text, author, now)


def keep(db: Connection, path: str, name: str, *, root: str | None = None) -> None:
    """Turn down what is offered. The section stays a person's, and that text is not offered again. Where
    nothing is, a section that is behind stays as it is, since it is still true."""
    file, _ = _managed(db, path, root)
    with transaction(db):
        is_settled = claude_files.caught_up(db, file.path, name)
        record = claude_files.sections(db, file.path).get(name)
        if record and record.offered is not None:
            claude_files.refuse(db, file.path, name, sections.digest(record.offered))
        elif not is_settled:
            raise _no_offer(file, name)


def is_refused(db: Connection, path: str, name: str, text: str) -> bool:
    """Has somebody turned down this text for a section?"""
    return claude_files.is_refused(db, os.path.realpath(path), name, sections.digest(text))


def state(db: Connection, path: str, *, root: str | None = None) -> FileState:
    """A file and its sections as they are now."""
    file, _ = _managed(db, path, root)
    text = read(path)
    parted = _with_conflicts_apart(text)
    problems = sections.parse(parted).problems and sections.parse(text).problems
    if problems and (conflict := merge.first_conflict(text)):
        said = "git left a merge conflict here, with markers of sections in it; resolve it, and sync"
        problems = (Problem(conflict, said), *problems)
    records = claude_files.sections(db, file.path)
    behind = claude_files.behind(db, file.path)
    found = []
    for one in _states(db, file, parted, _written(db, file, parted)):
        record = records.get(one.name)
        is_open = record is not None and (one.is_edited or not one.exact)
        offered = record.offered if record and is_open else None
        if offered is not None and sections.same(offered, one.exact):
            offered = None  # somebody put it there by hand
        author = record.author if record and record.written and one.is_edited else None
        found.append(
            replace(one, author=one.author or author, offered=offered, behind=behind.get(one.name, ()))
        )
    whole = text.decode(errors="replace")
    lines = whole.count("\n") + (not whole.endswith("\n") and whole != "")
    return FileState(file.path, lines, tokens(whole), tuple(found), problems)


def register(db: Connection, root: str, path: str, template: str, now: int) -> None:
    """A file of the project at root is ours, made by this template: root or subtree."""
    file, top = _managed(db, path, root, is_known=False)
    with transaction(db):
        claude_files.register(db, _project(db, top, now), file.path, file.place, template)


def read(path: str) -> bytes:
    """The file. NotFound where there is none."""
    if not os.path.isfile(path):  # a pipe would keep us waiting
        raise _no_file(path)
    try:
        with open(path, "rb") as file:
            text = file.read(writer.LARGEST + 1)
    except OSError as error:
        raise BadInput(
            f"{paths.text(path)} cannot be read ({error.strerror}); mend that and try again"
        ) from error
    if len(text) > writer.LARGEST:
        raise BadInput(f"{paths.text(path)} is larger than 1 MB, which is no CLAUDE.md any more; shorten it")
    return text


def _managed(
    db: Connection, path: str, root: str | None, *, is_known: bool = True
) -> tuple[ManagedFile, str]:
    """What is known of a file, and the folder that its place is seen from. Project 0: of no project yet."""
    real = os.path.realpath(path)
    try:
        real.encode()
    except UnicodeEncodeError as error:
        raise BadInput(f"the name of {path!a} is not UTF-8, and cannot be kept in mind; rename it") from error
    if is_known and (known := claude_files.get(db, real)):
        return known, real.removesuffix("/" + known.place)
    top = os.path.realpath(root or paths.checkout(os.path.dirname(real)))
    if os.path.commonpath([real, top]) != top:
        raise BadInput(f"{paths.text(path)} is outside of the project {top}; name a file in it")
    place = os.path.relpath(real, top)
    here = projects.at(db, paths.place(top))
    template = "root" if os.path.dirname(place) in ("", ".claude") else "subtree"
    return ManagedFile(real, here.number if here else 0, place, template, None, None), top


def _project(db: Connection, root: str, now: int) -> int:
    return projects.by_id(db, projects.ensure(db, paths.place(root), now)).number


def _states(
    db: Connection, file: ManagedFile, text: bytes, written: Mapping[str, str]
) -> Iterator[SectionState]:
    """The sections as the file has them; `written` are texts of ours by their digests, see `_written`."""
    for section in sections.parse(text).sections:
        body, owners = sections.body(text, section), sections.owners(text, section)
        is_whole = [one.digest for one in owners] == [sections.short(body)]
        is_conflict = not is_whole and bool(body) and (merge.is_conflict(body) or len(owners) > 1)
        owner, base = None, None
        if not body:
            author, is_edited = None, False
        elif is_conflict:
            ours = [written[one.digest] for one in owners if one.digest in written]
            author = max((one.author for one in owners), key=("program", "model").index, default=None)
            between = text[section.body_start : section.body_stop]
            sides = [sections.unowned(side) for side in merge.sides(between)] or [body]
            is_edited = len(ours) < max(len(owners), 1) or not merge.is_made_of(sides, ours)
        elif owners:
            owner = owners[0]
            author, is_edited = owner.author, not is_whole
            base = written.get(owner.digest) if is_edited else None
        else:
            author = _recorded_author(db, file, section.name, body)
            is_edited = author is None
        shown = sections.readable(body)
        yield SectionState(
            section.name,
            shown,
            author,
            is_edited,
            is_conflict=is_conflict,
            owner=owner,
            base=base if shown == body else None,
            exact=body,
        )


def _written(db: Connection, file: ManagedFile, text: bytes) -> dict[str, str]:
    """The texts of ours that a merge needs, by their digests in ownership lines: what is under edits and in
    conflicts. They are looked for in the conflicts, in the store, and in what git has of the file."""
    text = _with_conflicts_apart(text)
    wanted: dict[str, set[str]] = {}
    found: dict[str, str] = {}

    def look(name: str, body: str) -> None:
        if (digest := sections.short(body)) in wanted.get(name, ()):
            found[digest] = body
            wanted[name].remove(digest)

    for section in sections.parse(text).sections:
        body, owners = sections.body(text, section), sections.owners(text, section)
        if body and [one.digest for one in owners] != [sections.short(body)]:
            wanted[section.name] = {one.digest for one in owners}
            for side in merge.sides(text[section.body_start : section.body_stop]):
                look(section.name, sections.unowned(side))
    if any(wanted.values()):
        for name, record in claude_files.sections(db, file.path).items():
            look(name, record.written)
    if any(wanted.values()):
        past: dict[str, list[tuple[str, str]]] = {name: [] for name in wanted}  # the newest first
        for version in git.versions(file.path):
            for section in sections.parse(version).sections:
                body, owners = sections.body(version, section), sections.owners(version, section)
                look(section.name, body)
                if section.name in wanted and len(owners) == 1:
                    past[section.name].append((owners[0].digest, body))
            if not any(wanted.values()):
                break
        for name, versions in past.items():
            for ours in _without_edits(versions) if wanted[name] else ():
                look(name, ours)
    return found


def _without_edits(versions: Sequence[tuple[str, str]]) -> Iterator[str]:
    """What we wrote into versions of a section that have a person's edits merged into them, which nobody ever
    committed as such: what changed since the version before, without the edits that this one had already. The
    digest in its ownership line proves it. `versions` are digests and bodies, the newest first."""
    base, before = "", ""
    for digest, body in reversed(versions):
        ours = body if sections.short(body) == digest else base
        if sections.short(ours) != digest:
            ours = merge.merge(before, base, body) or ""
        if sections.short(ours) == digest:
            yield ours
            base, before = ours, body


def _with_conflicts_apart(text: bytes) -> bytes:
    """A file as git left it, with conflicts that do not keep us from finding our sections."""
    problems = sections.parse(text).problems if merge.first_conflict(text) else ()
    if not problems:
        return text
    parted = merge.apart(text)
    return parted if len(sections.parse(parted).problems) < len(problems) else text


def _recorded_author(db: Connection, file: ManagedFile, name: str, body: str) -> str | None:
    """Who of ours made the text of a section, by the record of an older backstory, which wrote no ownership
    lines; None: a person did."""
    found = claude_files.author(db, file.project, file.place, name, sections.digest(body))
    if found is None:
        record = claude_files.sections(db, file.path).get(name)
        found = record.author if record and sections.same(record.written, body) else None
    return found


def _record(
    db: Connection,
    file: ManagedFile,
    new: Mapping[str, str],
    decided: Mapping[str, Decision],
    outcomes: dict[str, str],
    author: str,
    now: int,
) -> None:
    """Put down what has happened; an offer that was turned down before becomes `kept`."""
    if claude_files.get(db, file.path) is None:
        claude_files.register(db, file.project, file.path, file.place, file.template)
    records = claude_files.sections(db, file.path)
    for name, found in decided.items():
        record = records.get(name)
        if author == "model":
            claude_files.caught_up(db, file.path, name)
        if found.outcome == OFFERED:
            if not claude_files.offer(
                db, file.path, name, new[name], sections.digest(new[name]), author, now
            ):
                outcomes[name] = KEPT
        elif found.base is not None:
            base = sections.readable(found.base)
            is_known = record and record.offered is None and sections.same(record.written, base)
            if found.outcome == WRITTEN or (base and not is_known):
                claude_files.wrote(db, file.path, name, base, found.author, now)


def _offer(db: Connection, file: ManagedFile, name: str) -> tuple[str, str]:
    """What is offered for a section, and by whom."""
    record = claude_files.sections(db, file.path).get(name)
    if record is None or record.offered is None:
        raise _no_offer(file, name)
    return record.offered, record.offered_by or record.author


def _theirs(db: Connection, file: ManagedFile, text: bytes) -> bytes:
    """What of a file is worth a backup: all but the texts that we wrote. A section that a person edited is
    theirs."""
    ours = {one.name for one in _states(db, file, text, {}) if one.exact and not one.is_edited}
    return sections.theirs(text, lambda section: section.name in ours)


def _no_offer(file: ManagedFile, name: str) -> NotFound:
    return NotFound(f"Nothing is offered for {name} in {file.place}; {LISTING}.")


def _no_file(path: str) -> NotFound:
    return NotFound(f"There is no {paths.text(path)}; `backstory init` makes one.")
