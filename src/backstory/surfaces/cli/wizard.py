"""The wizard of `backstory init`: at a terminal, a person sees what would be written, switches sections off,
corrects commands, chooses folders, and then says yes or no. Nothing is written before that."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import click

from backstory import errors
from backstory.claude_md.init import CANCELLED, CHOICES, OFF, Choices, Planned, draft, hand_written, proposed
from backstory.claude_md.learn import Learned
from backstory.claude_md.read.commands.roles import COMMAND_ROLES
from backstory.claude_md.write import compose, sections, settings
from backstory.claude_md.write.settings import AS_FOUND, NO_COMMAND
from backstory.gist import tokens
from backstory.surfaces.cli.claude_md_output import ACTIONS, NOTHING_WRITTEN, file_name, texts
from backstory.surfaces.cli.common import tell
from backstory.surfaces.shapes import WHOLE, WRAP, Line, Shown, one_line

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

EXISTING = """\
  merge    add sections at the end, and change nothing else
  migrate  a new file, with all of the old text as its manual part
  backup   a new file; the old one is kept as .backup
  cancel   write nothing"""


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
    tell(*texts(planned, root), *_listed(planned, root))
    while True:
        is_news = any(one.action != "keep" for one in planned)
        word, _, rest = _answer(PROMPT if is_news else NO_NEWS).partition(" ")
        if not rest and word.lower() in (YES if is_news else (*YES, *NO, "")):
            return planned
        if not rest and word.lower() in NO:
            raise errors.NotFound(NOTHING_WRITTEN)
        if word.lower() in ("l", "look"):
            tell(*texts(planned, root))
            continue
        try:
            changed = _changed(root, known, wishes, planned, word.lower(), rest.strip())
            if changed is None:
                tell(*([] if word.lower() in ("help", "h", "?") else ["That was not understood."]), HELP)
                continue
            if changed.existing != "cancel":
                planned, wishes = plan(changed), changed
        except (errors.BadInput, errors.NotFound) as error:
            tell(str(error))
            continue
        if changed.existing == "cancel":
            raise errors.NotFound(CANCELLED)
        tell(*_listed(planned, root))


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
        folders = choose(places, known.survey.subtree_reasons, by_hand)
        return replace(wishes, folders=tuple(folders))
    if word in ("existing", "e"):
        files = [one.path for one in planned if one.action in CHOICES]
        if not files:
            raise errors.BadInput("No file is there that backstory has not written to already.")
        return replace(wishes, existing=decide(files, root))
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
        tell(
            *(
                Line((f"{role:>10}  {sections.redacted(line)}",), WHOLE)
                for line in own or found or ["nothing"]
            )
        )


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


def _listed(planned: Sequence[Planned], root: str) -> Iterator[Shown]:
    """Each file with its sections, numbered, and their sizes."""
    number = 0
    for one in planned:
        size = tokens(draft(one)[1].decode(errors="replace"))
        yield ""
        yield Line(((file_name(one.path, root), "cyan"), f"  {ACTIONS[one.action]}; {size:,} tokens"))
        for row in _rows([one]):
            number += 1
            mark, style = ("on ", "") if row.is_on else ("off", "dim")
            size = tokens(sections.cleaned(row.text))
            said = f"{number:>3}  {mark}  {row.name:<20} {size:>5,} tokens"
            yield Line(("", (said, style), (f"  {row.note}" if row.note else "", "dim")), WRAP, 10)
        for name in one.staying:
            note = "its text is not the program's; take it out by hand"
            yield Line(("", (f"     {name} is switched off, but stays: {note}", "yellow")), WRAP, 5)


def choose(proposed: Sequence[str], reasons: Mapping[str, str], by_hand: Collection[str]) -> list[str]:
    """Ask which folders get a CLAUDE.md of their own. One that a person wrote stays unless it is named."""
    if not proposed:
        return []
    tell("\nThese folders are worth a CLAUDE.md of their own:")
    for number, path in enumerate(proposed, 1):
        why = f"  {one_line(sections.redacted(reasons[path]))}" if path in reasons else ""
        hand = "  has one written by hand, which stays unless you name its number" if path in by_hand else ""
        tell(Line((f"{number:>3}  {one_line(path)}{why}{hand}",), WHOLE))
    everything = [path for path in proposed if path not in by_hand]
    usual = "all" if everything else "none"
    while True:
        answer = click.prompt("Which? all, none, or numbers like 1,3", default=usual, err=True)
        answer = answer.strip().lower() or usual
        if answer in ("all", *YES):
            return everything
        if answer in ("none", *NO[:2]):
            return []
        numbers = [int(word) for word in re.findall(r"\d{1,4}", answer)]
        if numbers and re.fullmatch(r"[\d\s,]+", answer) and all(0 < one <= len(proposed) for one in numbers):
            return [proposed[one - 1] for one in dict.fromkeys(numbers)]
        leaves = "Ctrl-C leaves, and nothing is written."
        tell(f"Say all, none, or numbers from 1 to {len(proposed)}; {leaves}")


def decide(existing: Sequence[str], root: str) -> str:
    """Ask what becomes of files that are there."""
    names = ", ".join(file_name(path, root) for path in existing)
    tell(f"\n{names} {'is' if len(existing) == 1 else 'are'} there already:", EXISTING)
    return str(click.prompt("Which?", type=click.Choice(CHOICES), default="merge", err=True))
