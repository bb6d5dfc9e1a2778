"""Giving a project its CLAUDE.md: saying which files would change and how, doing so.

    plan        what would be done, by file; nothing is written yet
    carry_out   does it: first everything is looked at that could refuse, then the files are written, and last
                of all the list of changed files is made, which is what makes a project an initialised one

Where there is an AGENTS.md, the sections live there, for all agents to read, and CLAUDE.md imports it; unless
CLAUDE.md says the same already. A section that a person's own text covers is left out (`own_text`), and so is
one that they switched off (`settings`) or removed; who asks for it gets it. What happens to a file that is
there already and has no sections of ours is a person's choice:

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
from functools import partial

from backstory import dirty, paths
from backstory.claude_md.learn import NOTHING, Learned, texts_of
from backstory.claude_md.own_text import NAMES, OwnText, imported, is_same_text, own_text
from backstory.claude_md.sync import managed_files, marked
from backstory.claude_md.write import compose, dynamic, managed, sections, settings, writer
from backstory.claude_md.write.settings import Settings
from backstory.errors import BadInput, Conflict, NotFound
from backstory.store import claude_files, projects
from backstory.store.file.connection import Connection, transaction

CHOICES = ("merge", "migrate", "backup", "cancel")
MOST_SUBTREES = 10
IMPORT = b"@AGENTS.md"
OF_ITS_OWN = frozenset(("module-description", "conventions"))  # a file is proposed for one of these
OFF, REMOVED, COVERED = "it is switched off", "somebody removed it", "your text covers it"

CANCELLED = "Cancelled; nothing was written."
NOT_FOUND = (
    "Nothing was found that {name} could say; after init, `backstory claude-md section set {name} --add`"
    " gives it a text."
)


@dataclass(frozen=True, slots=True)
class Choices:
    """What a person wants of the sections. A section is (folder, name), without a folder in every file."""

    off: frozenset[tuple[str | None, str]] = frozenset()
    on: frozenset[tuple[str | None, str]] = frozenset()
    commands: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)  # see settings.with_choices


AS_IT_IS = Choices()


def _names(chosen: Collection[tuple[str | None, str]], folder: str) -> list[str]:
    """Of these sections those that are meant for the file of a folder."""
    return [name for where, name in chosen if where in (None, folder)]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A section that could be written, and is not."""

    text: str
    why: str  # OFF, REMOVED or COVERED
    how: str = ""  # it is covered


@dataclass(frozen=True, slots=True)
class Planned:
    """What is to happen to one file."""

    path: str
    folder: str  # from the root, which is ""
    action: str  # create, add, adjust, keep, import, or one of CHOICES
    title: str
    texts: dict[str, str]  # section -> body: those that will be written
    # Those that are there word for word: a colleague's store knew that they are ours, and this one will.
    found: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, LeftOut] = field(default_factory=dict)
    taken_out: tuple[str, ...] = ()  # sections that are there, as we write them, and are not wanted
    staying: tuple[str, ...] = ()  # the same, but with another text in them, which may be a person's
    settings: Settings = field(default_factory=Settings)  # as the file will have them

    @property
    def template(self) -> str:
        return _template(self.folder)

    def left_for(self, why: str) -> list[str]:
        return [name for name, left in self.left_out.items() if left.why == why]


# The plan.


def proposed(known: Learned) -> list[str]:
    """The folders that are worth a file: what it would say is not seen with a look at the folder."""
    folders = known.survey.subtrees[:MOST_SUBTREES]
    return [folder for folder in folders if not OF_ITS_OWN.isdisjoint(texts_of(known, folder))]


def undecided(root: str, folders: Sequence[str]) -> list[str]:
    """The files in these folders that are there and have nothing of ours: somebody must choose."""
    return [path for folder in ("", *folders) if (path := hand_written(root, folder))]


def hand_written(root: str, folder: str) -> str | None:
    """The file of a folder, where a person has made one, without sections of ours."""
    path, _ = _target(root, folder)
    text = _text(path)
    return path if text is not None and text.strip() and not sections.has_known(text) else None


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
    choices: Choices = AS_IT_IS,
) -> list[Planned]:
    """What is to be done; `existing` says what becomes of a file that has nothing of ours yet. A section that
    a file had (see `recorded`) and has no more was removed by somebody, and is not added again."""
    for folder in folders:
        if not known.project.below(folder).files:
            raise BadInput(f"{paths.text(folder)} has no files of this project; leave it out")
    top = os.path.realpath(root)
    ours = (path for path, template in marked(top, known.project) if template == "subtree")
    elsewhere = {os.path.dirname(os.path.relpath(path, top)) for path in ours}
    planned: list[Planned] = []
    for folder in (*reversed(folders), ""):  # the root's leaves to the others what these say
        path, importer = _target(root, folder)
        before = had.get(os.path.realpath(path), ())
        one = _planned(root, path, folder, known, existing, before, choices, elsewhere)
        if folder and one.action == "create" and not one.texts:
            continue  # all that it could say is said already
        if one.texts or sections.has_known(_text(path) or b""):
            elsewhere.add(folder)
        imports = [Planned(importer, folder, "import", one.title, {})] if importer else []
        planned = [one, *imports, *planned]
    for wanted in sorted(_names(choices.on, "")):
        if not any(wanted in {*one.texts, *one.found, *_section_names(one.path)} for one in planned):
            raise NotFound(NOT_FOUND.format(name=wanted))
    is_at_rest = all(one.action == "keep" for one in planned) and dirty.root_of(root) == root
    if existing == "cancel" and not is_at_rest:
        raise NotFound(CANCELLED)
    return planned


def _planned(
    root: str,
    path: str,
    folder: str,
    known: Learned,
    existing: str | None,
    had: Collection[str],
    choices: Choices,
    elsewhere: Collection[str],
) -> Planned:
    text = _text(path) or b""
    before = settings.read(text)
    on = _names(choices.on, folder)
    commands = {} if folder else choices.commands
    after = settings.with_choices(before, (), on, commands)
    texts = texts_of(known, folder, after, elsewhere=elsewhere)
    off = set(_names(choices.off, folder))
    if folder:  # what nobody would write there need not be switched off
        off &= {*texts, *_section_names(path)}
    after = settings.with_choices(after, off, on, {})
    if not texts and not folder:
        raise NotFound(NOTHING.format(root=paths.text(root)))
    title = sections.redacted(folder or known.survey.name)
    is_ours = sections.has_known(text)
    is_replaced = not is_ours and existing == "backup"
    had = had if is_ours else ()  # a file that begins afresh has all of them
    parsed = sections.parse(b"" if is_replaced else text)
    bodies = {section.name: sections.body(text, section) for section in parsed.sections}
    own = own_text(root, folder, without=(path,) if is_replaced else ())
    left_out = {
        name: left
        for name, body in texts.items()
        if name not in on and (left := _left_out(name, body, bodies, had, after, own, known.survey.name))
    }
    missing = {name: body for name, body in texts.items() if not bodies.get(name) and name not in left_out}
    if not text.strip():
        return Planned(path, folder, "create", title, missing, left_out=left_out, settings=after)
    if existing in ("migrate", "backup") and not is_ours and not missing:  # nothing in place of the old text
        return Planned(path, folder, "keep", title, {}, left_out=left_out, settings=before)
    if existing in ("migrate", "backup") and not is_ours:
        if existing == "migrate":
            _migrated(path, text, folder, title, texts)  # refuses what cannot be
        return Planned(path, folder, existing, title, missing, left_out=left_out, settings=after)
    if parsed.problems:
        why = f"line {parsed.problems[0].line}: {parsed.problems[0].said}"
        raise BadInput(f"{paths.text(path)} {why}; then run backstory init again")
    if not is_ours:
        action = "merge" if missing or before != after else "keep"
        return Planned(path, folder, action, title, missing, left_out=left_out, settings=after)
    found = {
        name: body
        for name, body in texts.items()
        if bodies.get(name) and sections.same(bodies[name], sections.cleaned(body))
    }
    ours = {section.name for section in parsed.sections if _is_untouched(text, section)}
    taken_out = tuple(name for name in after.off if name in found or name in ours)
    renewed = ours - found.keys()  # it is behind
    renewed |= {"build-commands"} & bodies.keys() if before.commands != after.commands else set()
    texts = missing | {name: texts[name] for name in renewed & texts.keys() - set(after.off)}
    action = "add" if missing else "adjust" if texts or taken_out or before != after else "keep"
    found = {name: body for name, body in found.items() if name not in taken_out}
    staying = tuple(name for name in after.off if bodies.get(name) and name not in taken_out)
    return Planned(path, folder, action, title, texts, found, left_out, taken_out, staying, after)


def _is_untouched(text: bytes, section: sections.Section) -> bool:
    """Is it as the program wrote it once, by the line in it?"""
    wrote = [one.digest for one in sections.owners(text, section) if one.author == "program"]
    return wrote == [sections.short(sections.body(text, section))]


def _template(folder: str) -> str:
    return "subtree" if folder else "root"


def _section_names(path: str) -> list[str]:
    """The sections that a file has."""
    return [section.name for section in sections.parse(_text(path) or b"").sections]


def _left_out(
    name: str,
    text: str,
    bodies: Mapping[str, str],
    had: Collection[str],
    chosen: Settings,
    own: OwnText,
    project: str,
) -> LeftOut | None:
    """Why a section is not written that could be; whoever put its markers there wants it."""
    if name in chosen.off:
        return LeftOut(text, OFF)
    if name in bodies:
        return None
    if name in had:
        return LeftOut(text, REMOVED)
    if name == "build-commands" and chosen.commands:
        return None  # who corrects a command wants it to be said
    how = own.covers(name, text, project)
    return LeftOut(text, COVERED, how) if how else None


def draft(one: Planned) -> tuple[bytes, bytes]:
    """What a file says, and what it will say."""
    old = _text(one.path) or b""
    if one.action == "import":
        return old, with_import(old, _import_line(one.path))
    new = _laid_out(one, old, compose.skeleton(one.template, one.title, one.texts))
    for name, body in one.texts.items():
        new = sections.with_section(new, name, sections.cleaned(body))
    return old, new


def _target(root: str, folder: str) -> tuple[str, str | None]:
    """The file of a folder that has our sections, or will; and the CLAUDE.md that has yet to import it."""
    claude, others = _claude_md(root, folder)
    agents = os.path.join(root, folder, "AGENTS.md")
    for path in (claude, agents):
        writer.within(path, os.path.realpath(path), root)
    if not os.path.lexists(agents):
        return claude, None
    there = _text(claude)
    if there is None:
        return agents, claude
    if os.path.realpath(claude) == os.path.realpath(agents):
        return (agents if os.path.islink(claude) else claude), None
    said = _text(agents) or b""
    read = [(path, _text(path) or b"") for path in (claude, *others)]
    is_imported = any(_imports(path, text, agents) for path, text in read)
    would_be_twice = not is_imported and any(is_same_text(text, said) for _, text in read)
    if would_be_twice or (sections.has_known(there) and not sections.has_known(said)):
        return claude, None
    return agents, None if is_imported else claude


def _claude_md(root: str, folder: str) -> tuple[str, list[str]]:
    """The CLAUDE.md of a folder, and what Claude Code reads there besides: at the root, it may also lie in
    .claude/."""
    names = [name for name in NAMES if name.endswith("CLAUDE.md") and (not folder or "/" not in name)]
    there = [path for name in names if os.path.lexists(path := os.path.join(root, folder, name))]
    ours = [path for path in there if sections.has_known(_text(path) or b"")]
    claude = [*ours, *there, os.path.join(root, folder, names[0])][0]
    return claude, [path for path in there if path != claude]


def _imports(path: str, text: bytes, target: str) -> bool:
    """Does a file show another one, by an import or as a link to it?"""
    shown = {os.path.join(os.path.dirname(path), place) for place in imported(text)} | {path}
    return os.path.realpath(target) in map(os.path.realpath, shown)


def _text(path: str) -> bytes | None:
    """What a file says; None where there is none."""
    if not os.path.lexists(path):
        return None
    if not os.path.isfile(path):
        why = "is no file that can be read"
        if os.path.islink(path) and not os.path.exists(path):
            why = f"is a link to {paths.text(os.readlink(path))}, which is not there"
        raise BadInput(f"{paths.text(path)} {why}; move it away, and try again")
    return managed.read(path)


# Doing it.


def carry_out(
    db: Connection, data: str, root: str, planned: Sequence[Planned], *, now: int
) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Write the files, and begin to track what changes: where the old texts are that were kept beside, and
    which sections (path, name) were not written but offered, since a person edited them."""
    kept: dict[str, str] = {}
    offered: list[tuple[str, str]] = []
    for one in planned:
        if one.action != "keep":
            _refuse_early(one.path, root, data, now)
    _refuse_the_list_early(root)
    head = paths.place(root).head
    for one in planned:
        if one.action == "import":
            add = partial(with_import, line=_import_line(one.path))
            writer.rewrite(one.path, root, data, add, now=now, create=b"")
            continue
        if one.found or one.action != "keep":
            blank = compose.skeleton(one.template, one.title, one.texts)
            outcomes = managed.put_many(
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
            offered += [(one.path, name) for name, said in outcomes.items() if said == managed.OFFERED]
        managed.register(db, root, one.path, one.template, now)
        with transaction(db):
            claude_files.synced(db, os.path.realpath(one.path), head, now)
    _forget_those_gone(db, root)
    dirty.create(root)
    return kept, offered


def _preparing(one: Planned, blank: bytes, kept: dict[str, str]) -> Callable[[bytes], bytes]:
    def prepare(text: bytes) -> bytes:
        if text.strip() and one.action == "backup":
            kept[one.path] = _keep_beside(one.path, text)
        return _laid_out(one, text, blank)

    return prepare


def _laid_out(one: Planned, text: bytes, blank: bytes) -> bytes:
    """A file with all sections that it will have, the new ones empty, and with its settings."""
    if not text.strip():
        text = blank
    elif one.action == "migrate":
        text = _migrated(one.path, text, one.folder, one.title, one.texts)
    elif one.action == "backup":
        text = blank + _shown(text)
    elif one.action == "create":
        if text != blank:
            raise Conflict(f"{paths.text(one.path)} was made by somebody else meanwhile; try again")
    else:
        text = sections.with_new(_without(text, one.taken_out), [(name, "") for name in one.texts])
    return settings.write(text, one.settings)


def _without(text: bytes, names: Collection[str]) -> bytes:
    """The file without these sections, their markers, and the blank line after each."""
    kept, at = bytearray(), 0
    for section in sections.parse(text).sections:
        if section.name in names:
            kept += text[at : section.start]
            at = section.stop
            if blank := re.match(rb"[ \t]*\r?\n", text[at:]):
                at += blank.end()
    return bytes(kept + text[at:])


def _migrated(path: str, text: bytes, folder: str, title: str, texts: Collection[str]) -> bytes:
    parsed = sections.parse(text)
    if b"\0" in text:
        raise BadInput(f"{paths.text(path)} is no UTF-8 text; save it as such, or choose backup")
    if parsed.sections or parsed.manual or parsed.problems:
        line = parsed.problems[0].line if parsed.problems else 0
        why = f"line {line}: {parsed.problems[0].said}" if line else "it has markers of its own"
        raise BadInput(f"{paths.text(path)} cannot become a manual part ({why}); choose merge or backup")
    return compose.skeleton(_template(folder), title, texts, dynamic.without(text)) + _shown(text)


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
            mode = os.stat(path).st_mode & 0o777
            handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
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


def with_import(text: bytes, line: bytes = IMPORT) -> bytes:
    """A CLAUDE.md that imports AGENTS.md, in its first line."""
    if os.fsdecode(line[1:]) in imported(text):
        return text
    mark = b"\xef\xbb\xbf" if text.startswith(b"\xef\xbb\xbf") else b""
    rest = text[len(mark) :]
    crlf = rest.partition(b"\n")[0].endswith(b"\r")
    added = line + (b"\n\n" if rest.strip() else b"\n")
    return mark + (added.replace(b"\n", b"\r\n") if crlf else added) + rest


def _import_line(path: str) -> bytes:
    """Imports are seen from the file that has them."""
    is_inside = os.path.basename(os.path.dirname(path)) == ".claude"
    return b"@../AGENTS.md" if is_inside else IMPORT


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
