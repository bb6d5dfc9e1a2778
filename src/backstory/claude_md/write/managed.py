"""Sections of ours in CLAUDE.md, written so that no edit of a person's is ever overwritten.

A three-way merge: what stands in the section, what we want there, and what we ever wrote there. Two texts are
the same here if only line ends, trailing blanks or blank lines around them differ; git and editors change
those by themselves.

    in the file                             outcome
    the new text already                    unchanged
    nothing, or a text that we once wrote   written
    anything else: a person edited it       offered; kept, where that very text was turned down before
    no such section, or an unsound one      skipped
    a model's prose, and a program writes   skipped: it was set while the program waited for an answer

What we wrote is known by its digest, for the project and the place of the file in its work tree: a worktree,
or a branch with an older text of ours, is no edit. The digest is noted before the file is written, because
after a kill between the two our own text would look like a person's. With CLAUDE.md's lock in hand the store
is only read, which waits for nobody: a docmem server that ends is in a hurry to get that lock.

A text that a model hands back as it found it stays whose it was. What a program computes from the project and
finds there word for word is ours, also where another store knew about it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from backstory import paths
from backstory.claude_md.write import sections, writer
from backstory.claude_md.write.sections import Problem
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
    is_edited: bool  # by a person: it is no text that we ever wrote
    offered: str | None  # a text that waits for somebody to take it or turn it down
    behind: tuple[str, ...] = ()  # files that changed, and a model has yet to look whether it is still true

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


class _Unnoted(Exception):
    """Texts are about to be written that nobody would know for ours."""


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
) -> str:
    """Give a section a new text; the outcome. NotFound or BadInput where no sound section has that name."""
    outcome = put_many(db, data, path, {name: body}, author=author, now=now, root=root)[name]
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
) -> dict[str, str]:
    """Give several sections of a file new texts, all in one write; the outcome for each.

    `root` is the project's folder, if the file is not registered yet: else the top of its
    work tree. Where there is no file, one begins as `create`. What else is to be done to it in the same
    write, like adding sections, is done by `prepare`, before the sections get their texts; it is called more
    than once.
    """
    file, top = _managed(db, path, root)
    new = {name: sections.cleaned(body) for name, body in texts.items()}
    outcomes: dict[str, str] = {}
    noted: set[str] = set()

    def change(text: bytes) -> bytes:
        text = prepare(text)
        there = {found.name: sections.body(text, found) for found in sections.parse(text).sections}
        for name, body in new.items():
            outcomes[name] = _outcome(db, file, name, there.get(name), body, author)
        written = {name for name, outcome in outcomes.items() if outcome == WRITTEN}
        if not written <= noted:
            noted.update(written)
            raise _Unnoted
        for name in written:
            text = sections.with_section(text, name, new[name])
        return text

    theirs = partial(_theirs, db, file)
    while True:
        try:
            has_file = writer.rewrite(path, top, data, change, theirs=theirs, now=now, create=create)
            break
        except _Unnoted:
            digests = {name: _digest(new[name]) for name in noted}
            with transaction(db):
                file.project = file.project or _project(db, top, now)
                claude_files.note(db, file.project, file.place, digests, author, now)
    if not has_file:
        raise _no_file(path)
    if set(outcomes.values()) != {SKIPPED}:
        with transaction(db):
            file.project = file.project or _project(db, top, now)
            _record(db, file, new, outcomes, author, now)
    return outcomes


def accept(db: Connection, data: str, path: str, name: str, now: int, *, root: str | None = None) -> None:
    """Write what is offered over a person's text, which somebody decided. A backup keeps that text."""
    file, top = _managed(db, path, root)
    text, author = _offer(db, file, name)
    with transaction(db):
        claude_files.note(db, file.project, file.place, {name: _digest(text)}, author, now)

    def change(found: bytes) -> bytes:
        body = sections.body(found, sections.sound(found, name))
        if sections.same(body, text):
            return found
        if _author(db, file, name, body):
            raise _no_offer(file, name)  # it was made for another branch
        return sections.with_section(found, name, text)

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
            claude_files.refuse(db, file.path, name, _digest(record.offered))
        elif not is_settled:
            raise _no_offer(file, name)


def is_refused(db: Connection, path: str, name: str, text: str) -> bool:
    """Has somebody turned down this text for a section?"""
    return claude_files.is_refused(db, os.path.realpath(path), name, _digest(text))


def state(db: Connection, path: str, *, root: str | None = None) -> FileState:
    """A file and its sections as they are now."""
    file, _ = _managed(db, path, root)
    text = read(path)
    parsed = sections.parse(text)
    records = claude_files.sections(db, file.path)
    behind = claude_files.behind(db, file.path)
    found = []
    for section in parsed.sections:
        body, record = sections.body(text, section), records.get(section.name)
        author = _author(db, file, section.name, body)
        is_edited = bool(body) and author is None
        offered = record.offered if record and author is None else None
        if offered is not None and sections.same(offered, body):
            offered = None  # somebody put it there by hand
        if is_edited and record and record.written:
            author = record.author
        late = behind.get(section.name, ())
        found.append(SectionState(section.name, sections.readable(body), author, is_edited, offered, late))
    whole = text.decode(errors="replace")
    lines = whole.count("\n") + (not whole.endswith("\n") and whole != "")
    return FileState(file.path, lines, tokens(whole), tuple(found), parsed.problems)


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
        raise BadInput(f"{paths.text(path)} is larger than 10 MB, which is no CLAUDE.md any more; shorten it")
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
    template = "subtree" if "/" in place else "root"
    return ManagedFile(real, here.number if here else 0, place, template, None, None), top


def _project(db: Connection, root: str, now: int) -> int:
    return projects.by_id(db, projects.ensure(db, paths.place(root), now)).number


def _outcome(db: Connection, file: ManagedFile, name: str, there: str | None, new: str, author: str) -> str:
    if there is None:
        return SKIPPED
    if sections.same(there, new):
        return UNCHANGED
    made_by = _author(db, file, name, there)
    if made_by == "model" and author == "program":
        return SKIPPED
    return WRITTEN if made_by or not there else OFFERED


def _author(db: Connection, file: ManagedFile, name: str, body: str) -> str | None:
    """Who of ours made the text of a section; None: a person did, or there is none."""
    if not body:
        return None
    found = claude_files.author(db, file.project, file.place, name, _digest(body))
    if found is None:  # of a damaged store the one table may be saved and the other not
        record = claude_files.sections(db, file.path).get(name)
        found = record.author if record and sections.same(record.written, body) else None
    return found


def _record(
    db: Connection, file: ManagedFile, new: Mapping[str, str], outcomes: dict[str, str], author: str, now: int
) -> None:
    """Put down what has happened; an offer that was turned down before becomes `kept`."""
    if claude_files.get(db, file.path) is None:
        claude_files.register(db, file.project, file.path, file.place, file.template)
    records = claude_files.sections(db, file.path)
    for name, outcome in outcomes.items():
        text, digest = new[name], _digest(new[name])
        if author == "model":
            claude_files.caught_up(db, file.path, name)
        if outcome == WRITTEN:
            claude_files.wrote(db, file.path, name, text, author, now)
        elif outcome == OFFERED:
            if not claude_files.offer(db, file.path, name, text, digest, author, now):
                outcomes[name] = KEPT
        elif outcome == UNCHANGED:
            known = _author(db, file, name, text)
            if known is None and author == "program" and text:
                claude_files.note(db, file.project, file.place, {name: digest}, author, now)
                known = author
            record = records.get(name)
            if known and not (record and record.offered is None and record.written == text):
                claude_files.wrote(db, file.path, name, text, known, now)


def _offer(db: Connection, file: ManagedFile, name: str) -> tuple[str, str]:
    """What is offered for a section, and by whom."""
    record = claude_files.sections(db, file.path).get(name)
    if record is None or record.offered is None:
        raise _no_offer(file, name)
    return record.offered, record.offered_by or record.author


def _theirs(db: Connection, file: ManagedFile, text: bytes) -> bytes:
    """What of a file is worth a backup: all but the texts that we wrote. A section that a person edited is
    theirs."""
    return sections.theirs(text, lambda name, body: _author(db, file, name, body) is not None)


def _digest(text: str) -> str:
    return hashlib.sha256(sections.canonical(text).encode("utf-8", "surrogateescape")).hexdigest()


def _no_offer(file: ManagedFile, name: str) -> NotFound:
    return NotFound(f"Nothing is offered for {name} in {file.place}; {LISTING}.")


def _no_file(path: str) -> NotFound:
    return NotFound(f"There is no {paths.text(path)}; `backstory init` makes one.")
