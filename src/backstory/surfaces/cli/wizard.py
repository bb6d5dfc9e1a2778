"""The wizard of `backstory init`: at a terminal, a person sees what would be written, switches sections off,
corrects commands, chooses folders, and then says yes or no. Nothing is written before that."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from backstory import errors
from backstory.claude_md.init import CANCELLED, CHOICES, OFF, Choices, Planned, draft, hand_written, proposed
from backstory.claude_md.learn import Learned
from backstory.claude_md.read.commands.roles import COMMAND_ROLES
from backstory.claude_md.write import compose, sections, settings
from backstory.claude_md.write.settings import AS_FOUND, NO_COMMAND
from backstory.gist import tokens
from backstory.surfaces.cli import claude_md_output as shown
from backstory.surfaces.cli import terminal
from backstory.surfaces.cli.output import visible
from backstory.surfaces.cli.sections import difference

SIDE_BY_SIDE = 120  # columns; in fewer, a line has no room in a half
YES, NO = ("y", "yes", "write"), ("n", "no", "q", "quit", "leave")
PROMPT = "Write this? y, n, or: look, off, on, command, subtrees, existing, help"
NO_NEWS = "Nothing has to be written. Change something? n, or: off, on, command, subtrees, help"
AS_IT_STANDS = "is there, and stays as it is"
HELP = """\
  y                    write it
  n                    leave; nothing is written
  look                 show the text again
  off 3, off patterns  leave a section out, by its number or name; `on 3` puts it back
  command test         correct the command of a role; or at once: command test = make check
  subtrees             choose the folders that get a CLAUDE.md of their own
  existing             choose what becomes of a CLAUDE.md that is there
Sections that are off and corrected commands are kept as comments in the file, for whoever works with it."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a person has chosen so far."""

    folders: tuple[str, ...]
    existing: str | None
    choices: Choices


@dataclass(frozen=True, slots=True)
class _Row:
    """A section in the list."""

    folder: str
    name: str
    text: str
    is_on: bool
    note: str = ""


Plan = Callable[[Wishes], list[Planned]]


def talk(root: str, known: Learned, wishes: Wishes, plan: Plan) -> list[Planned]:
    """What is to be done in the end. NotFound where a person wants nothing of it."""
    planned = plan(wishes)
    look(planned, root)
    _list(planned, root)
    while True:
        is_news = any(one.action != "keep" for one in planned)
        word, _, rest = _answer(PROMPT if is_news else NO_NEWS).partition(" ")
        if not rest and word.lower() in (YES if is_news else (*YES, *NO, "")):
            return planned
        if not rest and word.lower() in NO:
            raise errors.NotFound("Nothing was written.")
        if word.lower() in ("l", "look"):
            look(planned, root)
            continue
        try:
            changed = _changed(root, known, wishes, planned, word.lower(), rest.strip())
            if changed is None:
                unknown = "" if word.lower() in ("help", "h", "?") else "That was not understood.\n"
                click.echo(unknown + HELP, err=True)
                continue
            if changed.existing != "cancel":
                planned, wishes = plan(changed), changed
        except (errors.BadInput, errors.NotFound) as error:
            click.echo(visible(str(error)), err=True)
            continue
        if changed.existing == "cancel":
            raise errors.NotFound(CANCELLED)
        _list(planned, root)


def _changed(
    root: str, known: Learned, wishes: Wishes, planned: Sequence[Planned], word: str, rest: str
) -> Wishes | None:
    """The wishes after an answer; None: it is none that is known."""
    rows = list(_rows(planned))
    choices = wishes.choices
    if re.fullmatch(r"[\d,]+", word):
        for row in _picked(rows, f"{word} {rest}"):
            choices = _switched(choices, row, is_on=not row.is_on)
        return replace(wishes, choices=choices)
    if word in ("off", "on"):
        for row in _picked(rows, rest):
            choices = _switched(choices, row, is_on=word == "on")
        return replace(wishes, choices=choices)
    if word in ("command", "c"):
        corrected = _corrected(known, planned, rest)
        return replace(wishes, choices=replace(choices, commands={**choices.commands, **corrected}))
    if word in ("subtrees", "s"):
        places = tuple(dict.fromkeys((*proposed(known), *wishes.folders)))
        by_hand = [folder for folder in places if hand_written(root, folder)]
        folders = shown.choose(places, known.survey.subtree_reasons, by_hand)
        return replace(wishes, folders=tuple(folders))
    if word in ("existing", "e"):
        files = [one.path for one in planned if one.action in CHOICES]
        if not files:
            raise errors.BadInput("No file is there that backstory has not written to already.")
        return replace(wishes, existing=shown.decide([shown.file_name(path, root) for path in files]))
    return None


def _picked(rows: Sequence[_Row], said: str) -> list[_Row]:
    """The sections that numbers and names stand for."""
    words = re.split(r"[,\s]+", said.strip().lower())
    picked: list[_Row] = []
    for word in filter(None, words):
        if word.isdigit():
            number = int(word[:6])
            found = list(rows[number - 1 : number]) if number else []
        else:
            found = [row for row in rows if row.name == word]
        if not found:
            raise errors.BadInput(f"No section in the list is called {word[:80]!a}.")
        picked += found
    if not picked:
        raise errors.BadInput("Say which: a number or a name from the list.")
    return picked


def _switched(choices: Choices, row: _Row, *, is_on: bool) -> Choices:
    here: set[tuple[str | None, str]] = {(row.folder, row.name)}
    everywhere = here | {(None, row.name)}
    if is_on:
        return replace(choices, on=choices.on | here, off=choices.off - everywhere)
    return replace(choices, on=choices.on - everywhere, off=choices.off | here)


def _corrected(known: Learned, planned: Sequence[Planned], said: str) -> dict[str, tuple[str, ...] | None]:
    """The role that is meant, and a person's command for it: none, or None for what was found. Empty where
    they leave it as it is."""
    if "=" in said:
        role, line = settings.command(said)
        return {role: settings.meant(line)}
    chosen = next((one.settings for one in planned if not one.folder), settings.Settings())
    role = said.lower()
    if not role:
        _commands(known, chosen, COMMAND_ROLES)
        role = _answer("Of which role? (empty: of none)").lower()
        if not role:
            return {}
    if role not in COMMAND_ROLES:
        raise errors.BadInput(f"No role is called {role[:80]!a}; the roles are {', '.join(COMMAND_ROLES)}.")
    if said:
        _commands(known, chosen, [role])
    hint = f"empty: leave it as it is, {NO_COMMAND}: there is none, {AS_FOUND}: as it was found"
    line = settings.command_line(_answer(f"The command to {role} ({hint})"))
    if not line:
        return {}
    return {role: settings.meant(line)}


def _answer(question: str) -> str:
    return str(click.prompt(question, default="", show_default=False, err=True)).strip()


def _commands(known: Learned, chosen: settings.Settings, roles: Sequence[str]) -> None:
    """What was found for roles, and by which evidence."""
    for role in roles:
        own = [f"{line} (set in the file)" for line in chosen.commands.get(role, ())]
        found = [f"{one.line} (from {one.source})" for one in known.survey.commands if one.role == role]
        for line in own or found or ["nothing"]:
            click.echo(f"{role:>10}  {visible(sections.redacted(line))}", err=True)


def _rows(planned: Sequence[Planned]) -> Iterator[_Row]:
    """Every section that a file will have, or has, or could have."""
    for one in planned:
        if one.action == "import":
            continue
        there = {**one.found, **one.texts}
        old = draft(one)[0]
        has = {section.name: sections.body(old, section) for section in sections.parse(old).sections}
        for name in dict.fromkeys((*compose.names(one.template), *(has.keys() & set(sections.NAMES)))):
            if name in there:
                yield _Row(one.folder, name, there[name], is_on=True)
            elif left := one.left_out.get(name):
                note = f"{left.why}: {left.how}" if left.how else left.why
                yield _Row(one.folder, name, left.text, is_on=False, note=note)
            elif has.get(name) and name not in one.taken_out:
                is_on = name not in one.settings.off
                yield _Row(one.folder, name, has[name], is_on, AS_IT_STANDS if is_on else OFF)


def _list(planned: Sequence[Planned], root: str) -> None:
    """Each file with its sections, numbered, and their sizes."""
    out = terminal.console()
    number = 0
    for one in planned:
        rows = list(_rows([one]))
        size = tokens(draft(one)[1].decode(errors="replace"))
        out.print()
        line = Text(shown.file_name(one.path, root), style="cyan")
        out.print(line.append(f"  {shown.ACTIONS[one.action]}; {size:,} tokens", style="default"))
        for row in rows:
            number += 1
            mark = "on " if row.is_on else "off"
            size = tokens(sections.cleaned(row.text))
            said = f"{number:>3}  {mark}  {row.name:<20} {size:>5,} tokens"
            note = f"  {visible(row.note)}" if row.note else ""
            out.print(Text(said, style="default" if row.is_on else "dim").append(note, style="dim"))
        for name in one.staying:
            note = "its text is not the program's; take it out by hand"
            out.print(Text(f"     {name} is switched off, but stays: {note}", style="yellow"))


# Showing.


def look(planned: Sequence[Planned], root: str) -> None:
    """The text of new files, and what changes in those that are there; at a terminal in a pager, where it is
    long."""
    out = terminal.console()
    if not sys.stdout.isatty():
        for one in planned:
            _show(out, one, root)
        return
    with out.capture() as page:
        for one in planned:
            _show(out, one, root)
    text = page.get()
    if text.count("\n") > out.height - 2:
        flags = os.environ.setdefault("LESS", "FRX")  # as git does; without R, less shows colours as codes
        click.echo_via_pager(text, color=out.color_system is not None and "r" in flags.lower())
    else:
        click.echo(text, nl=False)


def _show(out: Console, one: Planned, root: str) -> None:
    old, new = (text.decode(errors="replace").rstrip("\n") for text in draft(one))
    if old == new:
        return
    name = shown.file_name(one.path, root)
    out.print()
    if not old.strip() or one.action == "backup":
        out.print(Text(f"{name}:", style="bold"))
        out.print(Text(visible(new)), soft_wrap=True)
    elif out.is_terminal and out.width >= SIDE_BY_SIDE:
        out.print(_side_by_side(old.split("\n"), new.split("\n"), name))
    else:
        terminal.difference(out, difference(old, new, name, name))


def _side_by_side(old: Sequence[str], new: Sequence[str], name: str) -> Table:
    """Both texts, a line beside what becomes of it; only where something changes."""
    from difflib import SequenceMatcher
    from itertools import zip_longest

    table = Table(box=None, padding=(0, 1), expand=True, header_style="bold")
    table.add_column(f"{name} as it is", ratio=1, overflow="fold")
    table.add_column(f"{name} as it will be", ratio=1, overflow="fold")
    for number, group in enumerate(SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(3)):
        if number:
            table.add_row(Text("⋯", style="dim"), Text("⋯", style="dim"))
        for kind, old_from, old_to, new_from, new_to in group:
            left, right = ("default", "default") if kind == "equal" else ("red", "green")
            for before, after in zip_longest(old[old_from:old_to], new[new_from:new_to], fillvalue=""):
                table.add_row(Text(visible(before), style=left), Text(visible(after), style=right))
    return table
