"""`backstory claude-md`: the sections of ours in a CLAUDE.md, for the model that writes their prose, and for
the person who decides about what is offered."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from backstory import dirty, errors, paths
from backstory.gist import tokens
from backstory.store import claude_files
from backstory.surfaces.cli.common import folder, prints, project_option, standard_input, store, typed
from backstory.surfaces.shapes import WHOLE, Column, Line, Raw, Reply, Table, done

if TYPE_CHECKING:
    from backstory.claude_md.write.managed import FileState, SectionState
    from backstory.store.file.connection import Connection

MOST_BYTES = 100_000
MOST_TOKENS = 900  # of a section, as the skill says; each session of each colleague pays for them

IMPORT = re.compile(rb"\s*@\S+\s*")
name_argument = click.argument("name", metavar="NAME", callback=lambda _, __, name: typed([name]))
in_option = click.option(
    "--in",
    "within",
    metavar="FILE",
    help="The file it is in.  [default: the CLAUDE.md at the top, or AGENTS.md where that has the sections]",
)


@click.group("claude-md")
def claude_md() -> None:
    """Parts of CLAUDE.md that backstory keeps true. `backstory init` adds them, `backstory sync` renews
    them."""


@claude_md.group()
def section() -> None:
    """A section is what stands between `<!-- AUTO-MANAGED: name -->` and its end.

    What a person edits in one stays: a new text is merged with it, line by line. Where both changed the same
    lines, it is not written but offered: `diff` shows it, `accept` takes it, `keep` turns it down. A section
    whose text somebody takes out is written anew.
    """


def _options(command: Callable[..., None]) -> Callable[..., None]:
    """What every command here has."""
    return in_option(project_option(command))


@section.command()
@name_argument
@_options
@prints
def get(name: str, within: str | None, project: str) -> Reply:
    """Print the text of a section."""
    from backstory.claude_md.write import managed, sections

    at = _target(project, within)
    text = sections.get(managed.read(at.path), name)
    # A model gets a text, changes it and sets it again: a pipe gets it as it is.
    return Reply({**_value(at, name), "text": text}, [Raw(f"{text}\n")])


@section.command("set")
@name_argument
@click.option(
    "--file", default="-", metavar="FILE", help="Where the text is.  [default: `-`, standard input]"
)
@click.option("--add", is_flag=True, help="Add the section where the file has none.")
@_options
@prints
def set_(name: str, file: str, add: bool, within: str | None, project: str) -> Reply:
    """Give a section a new text, in Markdown without the markers. `sync` then leaves it to you.

    Exit code 1 where a person has edited the section: then the text is offered to them instead.
    """
    from backstory.claude_md import basis, sync
    from backstory.claude_md.write import managed, sections, settings
    from backstory.safety.clean import clean_whole

    if name not in sections.NAMES:
        raise errors.BadInput(f"no section is called {name[:80]}; there are {', '.join(sections.NAMES)}")
    at = _target(project, within)
    text = _text(file)
    _, is_changed = clean_whole(text)
    with _store(at) as (db, now):
        facts = sync.facts_now(db, at.root, at.path, name)
        digest = None if facts is None else basis.digest(facts)
        if add and name in settings.read(managed.read(at.path)).off:
            raise errors.NotFound(
                f"{name} is switched off in {at.shown}, by a comment there; it is not added."
            )
        outcome = managed.put(
            db, folder(), at.path, name, text, author="model", now=now, root=at.root, facts=digest, add=add
        )
        sync.rest_on(db, at.path, name, facts, now)
    size, sentence = tokens(sections.cleaned(text)), []
    if outcome in ("written", "unchanged"):
        long = f"; {MOST_TOKENS} are enough for nearly every project" if size > MOST_TOKENS else ""
        sentence = [f"Section {outcome}: {name} in {at.shown} ({size:,} tokens{long})"]
    notes = ["Something private or secret in it was left out."] if is_changed else []
    why = {
        "offered": f"the new text is offered: {in_backticks('diff', name, at.within)} shows it.",
        "kept": "they have turned this very text down.",
    }.get(outcome)
    no = f"A person has edited {name} in {at.shown}, so it stays as it is; {why}" if why else ""
    return Reply({**_value(at, name), "outcome": outcome}, sentence, notes, no)


@section.command("list")
@_options
@prints
def list_sections(within: str | None, project: str) -> Reply:
    """List the sections of a file: who wrote each, its size, and whether a person edited it."""
    from backstory.claude_md.write import managed

    at = _target(project, within)
    with _store(at) as (db, _):
        state = managed.state(db, at.path, root=at.root)
    notes = [f"{at.shown}:{problem.line}: {problem.said}" for problem in state.problems]
    none = f"No sections in {at.shown}. `backstory init` adds them."
    return Reply(value_of(state), table(state), notes, "" if state.sections else none)


@section.command()
@name_argument
@_options
@prints
def diff(name: str, within: str | None, project: str) -> Reply:
    """Show how what is offered differs from the section, or else what a person changed in it.

    Exit code 1 where there is neither.
    """
    from backstory.claude_md.write import managed

    at = _target(project, within)
    with _store(at) as (db, _):
        found = managed.state(db, at.path, root=at.root)
        record = claude_files.sections(db, found.path).get(name)
    written = record.written if record else ""
    one = next((one for one in found.sections if one.name == name), None)
    if one is None:
        raise errors.NotFound(f"There is no sound section {name[:80]} in {at.shown}; {managed.LISTING}.")
    if one.offered is not None:
        old, new, names = one.body, one.offered, ("in the file", "offered")
    elif one.is_edited and (one.base or written):
        old, new, names = one.base or written, one.body, ("as it was written", "in the file")
    else:
        raise errors.NotFound(f"Nothing is offered for {name}, and nothing is known of an edit.")
    lines = difference(old, new, *names)
    value = {**_value(at, name), "offered": one.offered is not None, "diff": "\n".join(lines)}
    take, turn_down = (in_backticks(verb, name, at.within) for verb in ("accept", "keep"))
    notes = [f"{take} takes it, {turn_down} turns it down"] if one.offered is not None else []
    return Reply(value, coloured(lines), notes)


@section.command()
@name_argument
@_options
@prints
def accept(name: str, within: str | None, project: str) -> Reply:
    """Take what is offered for a section, in place of what a person wrote there. A backup keeps that."""
    from backstory.claude_md.write import managed

    at = _target(project, within)
    with _store(at) as (db, now):
        managed.accept(db, folder(), at.path, name, now, root=at.root)
    return _outcome("accepted", name, at)


@section.command()
@name_argument
@_options
@prints
def keep(name: str, within: str | None, project: str) -> Reply:
    """Turn down what is offered for a section. It is offered again only when it has become another text.

    Where nothing is offered, a section that is behind stays as it is: it is still true.
    """
    from backstory.claude_md import sync

    at = _target(project, within)
    with _store(at) as (db, now):
        sync.keep(db, folder(), at.path, name, root=at.root, now=now)
    return _outcome("kept", name, at)


def value_of(state: FileState) -> dict[str, Any]:
    return {
        "file": state.path,
        "lines": state.lines,
        "tokens": state.tokens,
        "sections": [
            {
                "name": one.name,
                "author": one.author,
                "lines": one.lines,
                "tokens": one.tokens,
                "edited": one.is_edited,
                "offered": one.offered is not None,
                "conflict": one.is_conflict,
                "behind": list(map(paths.text, one.behind)),
            }
            for one in state.sections
        ],
        "problems": [{"line": problem.line, "said": problem.said} for problem in state.problems],
    }


def table(state: FileState) -> list[Table]:
    columns = (
        Column("section", lambda one: one.name),
        Column("author", gives_way=3),
        Column("lines", right=True, gives_way=1),
        Column("tokens", right=True, gives_way=2),
        Column("state", _remarks),
    )
    return [Table(state.sections, columns)] if state.sections else []


def _remarks(one: SectionState) -> list[str]:
    """What is to be known of a section."""
    from backstory.claude_md.write.sections import NAMES

    edited = "edited by hand" if one.author else "not written by backstory"
    return [
        *(["merge conflict"] if one.is_conflict else [edited] if one.is_edited else []),
        *(["offered"] if one.offered is not None else []),
        *(["behind"] if one.behind else []),
        *(["unknown name"] if one.name not in NAMES else []),
    ]


def difference(old: str, new: str, old_name: str, new_name: str) -> list[str]:
    """What becomes of a text, line by line."""
    from difflib import unified_diff

    return list(unified_diff(old.split("\n"), new.split("\n"), old_name, new_name, lineterm=""))


def coloured(lines: Iterable[str]) -> Iterator[Line]:
    for number, line in enumerate(lines):
        style = "bold" if number < 2 else {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
        yield Line(((line, style),), WHOLE)


class _Target(NamedTuple):
    path: str
    root: str  # of the project
    shown: str  # as people see it
    within: str | None  # as it was named


def _target(project: str, within: str | None) -> _Target:
    """The file that is meant."""
    from backstory.claude_md.write import managed, sections

    here = os.path.realpath(project)
    root = dirty.root_of(here) or paths.checkout(here)
    if within is not None:
        path = os.path.abspath(within)
        real, top = os.path.realpath(path), os.path.realpath(root)
        inner, git, _ = paths.git_folders(os.path.dirname(real))
        is_submodule = git is not None and inner.startswith(os.path.join(top, ""))  # its own project
        if os.path.commonpath([real, top]) != top or is_submodule:
            raise errors.BadInput(
                f"{typed([within])[:300]} is outside of the project {paths.text(root)}; name a file in it,"
                " or say with --project which one is meant"
            )
    else:
        there = [path for name in dirty.TOP_FILES if os.path.isfile(path := os.path.join(root, name))]
        ours = [path for path in there if sections.parse(managed.read(path)).sections]
        # One that only imports another is not where anything is written.
        plain = [path for path in there if not IMPORT.fullmatch(managed.read(path))]
        path = [*ours, *plain, *there, os.path.join(root, dirty.TOP_FILES[0])][0]
    return _Target(path, root, paths.text(os.path.relpath(path, root)), within)


@contextmanager
def _store(at: _Target) -> Iterator[tuple[Connection, int]]:
    """The store. In a clone or a worktree of an initialised project, changes are tracked from now on."""
    with store() as (db, now):
        dirty.adopt(at.root, partial(claude_files.get, db))
        yield db, now


def _text(file: str) -> str:
    from backstory.recall.documents.file import read_file

    if file != "-":
        named = typed([file])[:300]
        raw = read_file(file, [os.sep], MOST_BYTES)[1]
    elif sys.stdin is None or sys.stdin.isatty():
        raise errors.BadInput("nothing says what to write; pipe the text into it, or name a file with --file")
    else:
        named = "standard input"
        raw = standard_input().read(MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise errors.BadInput(f"{named} has more than {MOST_BYTES:,} bytes; a section says less")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise errors.BadInput(f"{named} is not UTF-8; convert it") from error
    if not text.strip():
        raise errors.BadInput(f"there is no text in {named}; a section is emptied in its file, by hand")
    return text


def in_backticks(verb: str, name: str, within: str | None) -> str:
    """The command for a section, to be typed as it stands."""
    import shlex

    at = "" if within is None else f" --in {shlex.quote(typed([within]))}"
    return f"`backstory claude-md section {verb} {name}{at}`"


def _value(at: _Target, name: str) -> dict[str, Any]:
    return {"file": paths.text(at.path), "section": name}


def _outcome(outcome: str, name: str, at: _Target) -> Reply:
    return done(f"Section {outcome}: {name} in {at.shown}", **_value(at, name), outcome=outcome)
