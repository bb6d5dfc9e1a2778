"""Giving a project its CLAUDE.md: saying which files would change and how, doing so.

    plan        what would be done, by file; nothing is written yet
    carry_out   does it: first everything is looked at that could refuse, then the files are written, and last
                of all the list of changed files is made, which is what makes a project an initialised one

Where there is an AGENTS.md, the sections live there, for all agents to read, and CLAUDE.md imports it. What
happens to a file that is there already and has no sections of ours is a person's choice:

    merge       sections are added at its end
    migrate     the new file has all of the old one, byte for byte, as its manual part
    backup      the old file is kept beside it, the new one begins afresh
    cancel      nothing happens
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from backstory import dirty, paths
from backstory.claude_md.learn import NOTHING, Learned, texts_of
from backstory.claude_md.sync import managed_files
from backstory.claude_md.write import compose, dynamic, managed, sections, writer
from backstory.errors import BadInput, Conflict, NotFound
from backstory.store import claude_files, projects
from backstory.store.file.connection import Connection, transaction

CHOICES = ("merge", "migrate", "backup", "cancel")
MOST_SUBTREES = 10
IMPORT = b"@AGENTS.md"

CANCELLED = "Cancelled; nothing was written."


@dataclass(frozen=True, slots=True)
class Planned:
    """What is to happen to one file."""

    path: str
    template: str  # root or subtree
    action: str  # create, add, keep, import, or one of CHOICES
    title: str
    texts: dict[str, str]  # section -> body: those that will be written
    # Those that are there word for word: a colleague's store knew that they are ours, and this one will.
    found: dict[str, str] = field(default_factory=dict)
    removed: tuple[str, ...] = ()  # sections that were there, and somebody wants no more


# The plan.


def undecided(root: str, folders: Sequence[str]) -> list[str]:
    """The files in these folders that are there and have nothing of ours: somebody must choose."""
    found = []
    for folder in ("", *folders):
        path, _ = _target(root, folder)
        text = _text(path)
        if text is not None and text.strip() and not _has_sections(text):
            found.append(path)
    return found


def recorded(db: Connection, root: str) -> dict[str, frozenset[str]]:
    """The sections that each file of a project had at some time."""
    here = projects.at(db, paths.place(root))
    files = claude_files.listed(db, here.number) if here else ()
    return {file.path: frozenset(claude_files.sections(db, file.path)) for file in files}


def plan(
    root: str,
    known: Learned,
    folders: Sequence[str],
    existing: str | None,
    had: Mapping[str, Collection[str]],
) -> list[Planned]:
    """What is to be done; `existing` says what becomes of a file that has nothing of ours yet. A section that
    a file had (see `recorded`) and has no more was removed by somebody, and is not added again."""
    planned = []
    for folder in folders:
        if not known.project.below(folder).files:
            raise BadInput(f"{paths.text(folder)} has no files of this project; leave it out")
    for folder in ("", *folders):
        template = "subtree" if folder else "root"
        path, importer = _target(root, folder)
        texts = texts_of(known, folder)
        if not texts:
            raise NotFound(NOTHING.format(root=paths.text(root)))
        title = sections.redacted(folder or known.survey.name)
        before = had.get(os.path.realpath(path), ())
        planned.append(_planned(path, template, title, texts, existing, before))
        if importer:
            planned.append(Planned(importer, template, "import", title, {}))
    is_at_rest = all(one.action == "keep" for one in planned) and dirty.root_of(root) == root
    if existing == "cancel" and not is_at_rest:
        raise NotFound(CANCELLED)
    return planned


def _planned(
    path: str, template: str, title: str, texts: dict[str, str], existing: str | None, had: Collection[str]
) -> Planned:
    text = _text(path)
    if text is None or not text.strip():
        return Planned(path, template, "create", title, texts)
    if existing in ("migrate", "backup") and not _has_sections(text):
        if existing == "migrate":
            _migrated(path, text, template, title, texts)  # refuses what cannot be
        return Planned(path, template, existing, title, texts)
    parsed = sections.parse(text)
    if parsed.problems:
        problem = parsed.problems[0]
        raise BadInput(
            f"{paths.text(path)} line {problem.line}: {problem.said}; then run backstory init again"
        )
    bodies = {section.name: sections.body(text, section) for section in parsed.sections}
    if not _has_sections(text):
        return Planned(path, template, "merge", title, texts)
    removed = tuple(name for name in texts if name in had and name not in bodies)
    missing = {name: body for name, body in texts.items() if not bodies.get(name) and name not in removed}
    found = {
        name: body
        for name, body in texts.items()
        if bodies.get(name) and sections.same(bodies[name], sections.cleaned(body))
    }
    return Planned(path, template, "add" if missing else "keep", title, missing, found, removed)


def draft(one: Planned) -> tuple[bytes, bytes]:
    """What a file says, and what it will say."""
    old = _text(one.path) or b""
    if one.action == "import":
        return old, with_import(old)
    new = _laid_out(one, old, compose.skeleton(one.template, one.title, one.texts))
    for name, body in one.texts.items():
        new = sections.with_section(new, name, sections.cleaned(body))
    return old, new


def _target(root: str, folder: str) -> tuple[str, str | None]:
    """The file of a folder that has our sections, or will; and the CLAUDE.md that has yet to import it."""
    claude, agents = (os.path.join(root, folder, name) for name in ("CLAUDE.md", "AGENTS.md"))
    for path in (claude, agents):
        writer.within(path, os.path.realpath(path), root)
    if not os.path.lexists(agents):
        return claude, None
    there = _text(claude)
    if there is None:
        return agents, claude
    if os.path.realpath(claude) == os.path.realpath(agents):
        return (agents if os.path.islink(claude) else claude), None
    if _has_sections(there) and not _has_sections(_text(agents) or b""):
        return claude, None
    return agents, None if imports(there) else claude


def _text(path: str) -> bytes | None:
    """What a file says; None where there is none."""
    if not os.path.lexists(path):
        return None
    if not os.path.isfile(path):
        raise BadInput(f"{paths.text(path)} is no file that can be read; move it away, and try again")
    return managed.read(path)


def _has_sections(text: bytes) -> bool:
    return any(section.name in sections.NAMES for section in sections.parse(text).sections)


def imports(text: bytes) -> bool:
    """Does a CLAUDE.md import the AGENTS.md beside it? Not by an example in a code fence or in backticks."""
    kept, at = [], 0
    for start, stop in dynamic.layout(text).fences:
        kept.append(text[at:start])
        at = stop
    plain = re.sub(rb"`[^`\n]*`", b"", b"".join((*kept, text[at:])))
    return re.search(rb"(?<![\w\\])@(?:\./)?AGENTS\.md(?![\w/.-])", plain) is not None


# Doing it.


def carry_out(
    db: Connection, data: str, root: str, planned: Sequence[Planned], *, now: int
) -> dict[str, str]:
    """Write the files, and begin to track what changes: where the old texts are that were kept beside."""
    kept: dict[str, str] = {}
    for one in planned:
        if one.action != "keep":
            _refuse_early(one.path, root, data, now)
    _refuse_the_list_early(root)
    head = paths.place(root).head
    for one in planned:
        if one.action == "import":
            writer.rewrite(one.path, root, data, with_import, now=now, create=b"")
            continue
        if one.texts or one.found:
            blank = compose.skeleton(one.template, one.title, one.texts)
            managed.put_many(
                db,
                data,
                one.path,
                {**one.found, **one.texts},
                author="program",
                now=now,
                root=root,
                create=blank,
                prepare=_preparing(one, blank, kept),
            )
        managed.register(db, root, one.path, one.template, now)
        with transaction(db):
            claude_files.synced(db, os.path.realpath(one.path), head, now)
    _forget_those_gone(db, root)
    dirty.create(root)
    return kept


def _preparing(one: Planned, blank: bytes, kept: dict[str, str]) -> Callable[[bytes], bytes]:
    def prepare(text: bytes) -> bytes:
        if text.strip() and one.action == "backup":
            kept[one.path] = _keep_beside(one.path, text)
        return _laid_out(one, text, blank)

    return prepare


def _laid_out(one: Planned, text: bytes, blank: bytes) -> bytes:
    """A file with all sections that it will have, the new ones empty."""
    if not text.strip():
        return blank
    if one.action == "migrate":
        return _migrated(one.path, text, one.template, one.title, one.texts)
    if one.action == "backup":
        return blank + _shown(text)
    if one.action == "create":
        if text != blank:
            raise Conflict(f"{paths.text(one.path)} was made by somebody else meanwhile; try again")
        return text
    return sections.with_new(text, [(name, "") for name in one.texts])


def _migrated(path: str, text: bytes, template: str, title: str, texts: Collection[str]) -> bytes:
    parsed = sections.parse(text)
    if b"\0" in text:
        raise BadInput(f"{paths.text(path)} is no UTF-8 text; save it as such, or choose backup")
    if parsed.sections or parsed.manual or parsed.problems:
        line = parsed.problems[0].line if parsed.problems else 0
        why = f"line {line}: {parsed.problems[0].said}" if line else "it has markers of its own"
        raise BadInput(f"{paths.text(path)} cannot become a manual part ({why}); choose merge or backup")
    return compose.skeleton(template, title, texts, dynamic.without(text)) + _shown(text)


def _shown(text: bytes) -> bytes:
    """docmem's section, which stays the last one in the file."""
    cuts = dynamic.layout(text).sections
    return b"\n" + b"".join(text[cut.start : cut.stop] for cut in cuts) if cuts else b""


def _keep_beside(path: str, text: bytes) -> str:
    """Keep what a file says as `CLAUDE.md.backup`, or the first number after it that is free; the name."""
    number = 1
    while True:
        name = f"{path}.backup" + (f".{number}" if number > 1 else "")
        try:
            handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            if os.path.isfile(name) and managed.read(name) == text:
                return name  # by an attempt before this one
            number += 1
            continue
        except OSError as error:
            why = f"cannot be made ({error.strerror}); mend that and try again"
            raise BadInput(f"{paths.text(name)} {why}") from error
        with open(handle, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        return name


def with_import(text: bytes) -> bytes:
    """A CLAUDE.md that imports AGENTS.md, in its first line."""
    if imports(text):
        return text
    mark = b"\xef\xbb\xbf" if text.startswith(b"\xef\xbb\xbf") else b""
    rest = text[len(mark) :]
    crlf = rest.partition(b"\n")[0].endswith(b"\r")
    added = IMPORT + (b"\n\n" if rest.strip() else b"\n")
    return mark + (added.replace(b"\n", b"\r\n") if crlf else added) + rest


def _refuse_early(path: str, root: str, data: str, now: int) -> None:
    """What would refuse the last of several files is better known before the first is written."""
    if os.path.lexists(path):
        writer.rewrite(path, root, data, bytes, now=now)
    _writable(os.path.dirname(os.path.realpath(path)))


def _refuse_the_list_early(root: str) -> None:
    real, name = os.path.realpath(os.path.join(root, dirty.NAME)), paths.text(os.path.join(root, dirty.NAME))
    if not real.startswith(os.path.realpath(root).rstrip("/") + "/"):
        raise BadInput(f"{name} leads out of the project; remove the link, and try again")
    _writable(os.path.dirname(real))
    if os.path.lexists(real) and not os.path.isfile(real):
        raise BadInput(f"{name} is no plain file; move it away, and try again")


def _writable(folder: str) -> None:
    if not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    name = paths.text(folder)
    if not os.path.isdir(folder):
        raise BadInput(f"{name} is no folder; move it away, and try again")
    if not (os.access(folder, os.W_OK | os.X_OK) and os.stat(folder).st_mode & 0o222):
        raise BadInput(f"{name} cannot be written (permission denied); chmod u+wx {name}, and try again")


def _forget_those_gone(db: Connection, root: str) -> None:
    """A file of ours that somebody has removed; who wants one there again has just said so."""
    for file in managed_files(db, root):
        if not os.path.lexists(file.path):
            with transaction(db):
                claude_files.remove(db, file.path)
