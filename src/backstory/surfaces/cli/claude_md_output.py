"""How the CLI prints what it found out about a project and what became of its CLAUDE.md, under the same rules
as output.py."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import click
from rich.text import Text

from backstory import paths
from backstory.claude_md.init import CHOICES, COVERED, OFF, REMOVED, Planned
from backstory.claude_md.learn import UNCORRECTED
from backstory.claude_md.read.commands.roles import COMMAND_ROLES
from backstory.claude_md.status import FileStatus, Status
from backstory.claude_md.sync import Prepared, Trouble
from backstory.claude_md.write.compose import Known
from backstory.claude_md.write.sections import redacted
from backstory.claude_md.write.settings import Settings
from backstory.surfaces.cli import sections
from backstory.surfaces.cli.output import lately, number_of, one_line, visible
from backstory.surfaces.cli.terminal import console, facts, table

MOST_LISTED = 20
MOST_PATTERNS = 12
ACTIONS = {
    "create": "is made",
    "merge": "gets sections at its end",
    "migrate": "is made anew, with the old text as its manual part",
    "backup": "is made anew; the old one is kept beside it",
    "add": "gets the sections that are missing",
    "adjust": "is changed as you asked",
    "keep": "stays as it is",
    "import": "gets a first line that imports AGENTS.md",
}

BY_A_MODEL = (
    "A program finds only what files state; in Claude Code, /backstory:memory-init has the code read and adds"
    " what else a newcomer needs."
)
LOOKED_AT = "/backstory:memory-sync has it looked at."
AFTER_A_TURN = {
    "agent": "After a turn that edits files, Claude is asked once to update it;"
    " `backstory config claude_md.on_stop auto` asks it only where text that it wrote is behind.",
    "auto": "After a turn that edits files, what can be computed is renewed in the background, and Claude is"
    " asked once where text that it wrote is behind; `backstory config claude_md.on_stop off` stops that.",
    "off": "Nothing more happens by itself; `backstory config claude_md.on_stop auto` renews it after a turn"
    " that edits files.",
}


# --- init ---------------------------------------------------------------------------------------------------


def known(found: Known, chosen: Settings = UNCORRECTED) -> None:
    """What was found out about a project, a row each; commands as somebody has corrected them."""
    survey = found.survey
    commands = chosen.corrected(survey.commands)
    rows: list[tuple[str, str]] = [
        ("project", survey.name),
        ("about", survey.description),
        ("languages", ", ".join(f"{name} {share:.0%}" for name, share in survey.languages)),
        ("frameworks", ", ".join(survey.frameworks)),
        ("packages", ", ".join(survey.managers)),
    ]
    for role in COMMAND_ROLES:
        rows.append((role, ", ".join(one.line for one in commands if one.role == role)))
    rows.append(("workspaces", _some(survey.workspaces)))
    shown = [pattern for pattern in found.patterns if pattern.type != "architecture"]  # in no section
    for pattern in shown[:MOST_PATTERNS]:
        said = f"{pattern.subject}: {pattern.value}" if pattern.subject else pattern.value
        rows.append((pattern.type, f"{said} ({pattern.confidence:.0%} of {pattern.cases:,})"))
    if found.insights:
        rows.append(("hot files", _some([path for path, _ in found.insights.hot])))
        rows += [("commits", habit) for habit in found.insights.habits]
        rows += [("decided", said) for _, _, said in found.insights.decisions[:3]]
    rows += [("practice", line.removeprefix("- ")) for line in (found.practices or "").splitlines()]
    facts(console(), ((name, redacted(value)) for name, value in rows))
    if not found.project.whole:
        click.echo("There are more files than were looked at.", err=True)


def choose(proposed: Sequence[str], reasons: Mapping[str, str], by_hand: Collection[str] = ()) -> list[str]:
    """Ask which folders get a CLAUDE.md of their own. One that a person wrote stays unless it is named."""
    if not proposed:
        return []
    click.echo("\nThese folders are worth a CLAUDE.md of their own:", err=True)
    for number, path in enumerate(proposed, 1):
        why = f"  {one_line(redacted(reasons[path]))}" if path in reasons else ""
        hand = "  has one written by hand, which stays unless you name its number" if path in by_hand else ""
        click.echo(f"{number:>3}  {one_line(path)}{why}{hand}", err=True)
    everything = [path for path in proposed if path not in by_hand]
    while True:
        usual = "all" if everything else "none"
        given = click.prompt("Which? all, none, or numbers like 1,3", default=usual, err=True)
        given = given.strip().lower() or usual
        if given in ("all", "y", "yes"):
            return everything
        if given in ("none", "n", "no"):
            return []
        numbers = [int(word) for word in re.findall(r"\d{1,4}", given)]
        if numbers and re.fullmatch(r"[\d\s,]+", given) and all(0 < one <= len(proposed) for one in numbers):
            return [proposed[one - 1] for one in dict.fromkeys(numbers)]
        click.echo(
            f"Say all, none, or numbers from 1 to {len(proposed)}; Ctrl-C leaves, and nothing is written.",
            err=True,
        )


def decide(existing: Sequence[str]) -> str:
    """Ask what becomes of files that are there."""
    names = ", ".join(existing)
    click.echo(
        f"\n{names} {'is' if len(existing) == 1 else 'are'} there already:\n"
        "  merge    add sections at the end, and change nothing else\n"
        "  migrate  a new file, with all of the old text as its manual part\n"
        "  backup   a new file; the old one is kept as .backup\n"
        "  cancel   write nothing",
        err=True,
    )
    return str(click.prompt("Which?", type=click.Choice(CHOICES), default="merge", err=True))


def confirm() -> bool:
    return click.confirm("Write this?", err=True)


def planned(plan: Iterable[Planned], root: str, by_hand: Iterable[str] = ()) -> None:
    """What happens to each file. However narrow a terminal, all of it is shown."""
    out = console()
    out.print()
    for one in plan:
        line = Text(file_name(one.path, root), style="cyan").append(
            f"  {ACTIONS[one.action]}", style="default"
        )
        if one.texts:
            line.append(f": {', '.join(one.texts)}", style="default")
        out.print(line)
        for said in _left_out(one):
            out.print(Text(f"  {said}", style="dim"))
    for folder in by_hand:
        note = f"stays as a person wrote it; --subtree {shlex.quote(folder)} adds sections"
        out.print(Text(one_line(folder), style="cyan").append(f"  {visible(note)}", style="dim"))


def without_file(folders: Iterable[str], plan: Iterable[Planned]) -> None:
    """The folders that somebody named, and that get no file all the same."""
    for folder in sorted({*folders} - {one.folder for one in plan}):
        click.echo(f"{one_line(folder)} gets none: there is nothing left that it would say.", err=True)


def _left_out(one: Planned) -> Iterator[str]:
    """What is not written that could be, and why."""
    if removed := one.left_for(REMOVED):
        back = "where its two markers are put back, init fills it"
        yield f"left out, since somebody removed it: {', '.join(removed)}; {back}"
    if off := one.left_for(OFF):
        yield f"left out, since it is switched off: {', '.join(off)}"
    if covered := one.left_for(COVERED):
        each = ", ".join(f"{name} ({visible(redacted(one.left_out[name].how))})" for name in covered)
        yield f"left out, since your text covers it: {each}; --section NAME adds it all the same"
    if one.taken_out:
        yield f"taken out: {', '.join(one.taken_out)}"
    if one.staying:
        stays = "its text is not the program's, so take it out by hand"
        yield f"switched off, but {', '.join(one.staying)} stays: {stays}"
    for role, lines in one.settings.commands.items():
        yield f"your command to {role}: {visible(', '.join(lines)) or 'none'}"


def done(
    plan: Sequence[Planned],
    root: str,
    kept: Mapping[str, str],
    offered: Iterable[tuple[str, str]],
    existing: str | None,
    on_stop: str,
) -> None:
    """What was written, and what happens from now on."""
    ours = [file_name(one.path, root) for one in plan if one.action in ("add", "keep")]
    if ours and existing in ("migrate", "backup"):
        have = f"{', '.join(ours)} {'has' if len(ours) == 1 else 'have'} sections of backstory's already"
        click.echo(f"\n{have}: what was missing was added, instead of {existing}.")
    said = []
    for one in plan:
        if one.action != "keep":
            number = f" ({number_of(len(one.texts), 'section', 'sections')})" if one.texts else ""
            beside = f", the old one is {file_name(kept[one.path], root)}" if one.path in kept else ""
            said.append(f"{file_name(one.path, root)}{number}{beside}")
    click.echo(f"\nWritten: {'; '.join(said)}" if said else "\nNothing had to be written.")
    for path, section in offered:
        diff = f"`backstory claude-md section diff {section}` shows the new text"
        click.echo(f"{section} in {file_name(path, root)} stays, since a person edited it; {diff}.")
    if said:
        click.echo(BY_A_MODEL)
    click.echo("Changes are tracked from now on; `backstory claude-md status` shows what is pending.")
    click.echo(AFTER_A_TURN[on_stop])


def file_name(path: str, root: str) -> str:
    return one_line(paths.text(os.path.relpath(path, root)))


# --- sync ---------------------------------------------------------------------------------------------------


def prepared(found: Prepared) -> None:
    """What changed in the project, and what changes in CLAUDE.md for it."""
    changed = list(dict.fromkeys(found.told(path) for path in (*found.lines, *found.outside)))
    if changed:
        click.echo(f"{number_of(len(changed), 'file', 'files')} changed: {_some(changed)}")
    for change in found.changes:
        if change.outcome in ("written", "offered"):
            name = f"{found.told(change.path)}: {change.name}"
            suffix = " (offered, since a person edited it)" if change.outcome == "offered" else ""
            new = change.new if change.merged is None else change.merged
            sections.show(sections.difference(change.old, new, name, name + suffix))


def synced(found: Prepared, outcomes: Mapping[str, Mapping[str, str]], is_troubled: bool) -> None:
    said: dict[str, list[str]] = {}
    for path, names in outcomes.items():
        for name, outcome in names.items():
            how = f" ({_diff(found, path, name)} shows it)" if outcome == "offered" else ""
            said.setdefault(outcome, []).append(f"{name} in {found.told(path)}{how}")
    for outcome, how in (
        ("written", "Written"),
        ("offered", "Offered, since a person edited it"),
        ("kept", "Left as a person wants it"),
        ("skipped", "Left to the model, which wrote it meanwhile"),
    ):
        if outcome in said:
            click.echo(visible(f"{how}: {', '.join(said[outcome])}"))
    for one in found.prose:
        how = ", and what it is about changed" if one.because else ""
        why = f" ({_some(one.because)})" if one.because else ""
        name = f"{one.name} in {found.told(one.path)}"
        click.echo(visible(f"Written by Claude{how}: {name}{why}"))
    if found.prose:
        click.echo(LOOKED_AT)
    if found.waiting:
        waits = number_of(len(found.waiting), "offer waits", "offers wait")
        click.echo(visible(f"{waits}: {', '.join(_diff(found, *one) for one in found.waiting)}"))
    if found.lacking:
        more = ", ".join(f"{name} to {found.told(path)}" for path, name in found.lacking)
        click.echo(visible(f"`backstory sync --all` would add {more}."))
    if not (is_troubled or {"written", "offered", "skipped"} & said.keys() or found.prose or found.waiting):
        click.echo(visible(f"Up to date: {_some([found.told(path) for path in found.files])}"))


def _diff(found: Prepared, path: str, name: str) -> str:
    told = found.told(path)
    within = "" if "/" not in told else f" --in {shlex.quote(told)}"
    return f"`backstory claude-md section diff {name}{within}`"


def complaint(found: Prepared, troubles: Iterable[Trouble], *more: str) -> str:
    """What keeps files from being brought up to date, in one line."""
    said = []
    for one in troubles:
        line = f":{one.line}" if one.line else ""
        name = found.told(one.path)
        said.append(one.said if name in one.said else f"{name}{line} {one.said}")
    return visible("; ".join((*said, *more)))


# --- status -------------------------------------------------------------------------------------------------


def status(found: Status, behind: Sequence[tuple[str, str]], on_stop: str, now: int) -> None:
    changed = [*found.pending, *(f"{path} (outside of Claude Code)" for path in found.outside)]
    pending = number_of(len(changed), "file", "files") if changed else "nothing"
    last = lately(found.synced_at, now) if found.synced_at else "never"
    out = console()
    would = ", ".join(f"{name} of {one_line(path)}" for path, name in behind) or "nothing"
    facts(
        out,
        [("pending", pending), ("to write", would), ("last sync", last), ("on stop", on_stop)],
    )
    for path in changed[:MOST_LISTED]:
        out.print(Text(f"  {one_line(paths.text(path))}"))
    if len(changed) > MOST_LISTED:
        out.print(Text(f"  and {len(changed) - MOST_LISTED:,} more", style="dim"))
    for file in found.files:
        out.print()
        _file(file, found.root)
    if behind or changed:
        click.echo("\n`backstory sync` brings CLAUDE.md up to date.")
    states = [one for file in found.files if file.state for one in file.state.sections]
    if any(one.offered is not None for one in states):
        click.echo("\nOffered: `backstory claude-md section diff NAME` shows it, then `accept` or `keep`.")
    if any(one.behind for one in states):
        click.echo(f"\nBehind: what Claude wrote this about has changed. {LOOKED_AT}")


def _file(file: FileStatus, root: str) -> None:
    out = console()
    shown = file_name(file.path, root)
    if file.state is None:
        gone = "  is gone, or cannot be read; `backstory init` makes it, or says why"
        out.print(Text(shown, style="bold").append(gone, style="yellow"))
        return
    lines = number_of(file.state.lines, "line", "lines")
    tokens = number_of(file.state.tokens, "token", "tokens")
    out.print(Text(shown, style="bold").append(f"  {lines}, {tokens}", style="dim"))
    rows = []
    for one in file.state.sections:
        state = [*sections.said(one), *(["unknown name"] if one.name in file.unknown else [])]
        rows.append(
            {
                "section": visible(one.name),
                "author": one.author or "-",
                "tokens": f"{one.tokens:,}",
                "state": ", ".join(state) or "-",
            }
        )
    if rows:
        table(out, rows, {"tokens"}, ("tokens", "author"))
    for stale in file.stale:
        said = f"{stale.section} names {one_line(stale.reference)}, which is not there"
        out.print(Text(said, style="yellow"))
    for line in file.misread:
        said = f"line {line}: begins like a setting of backstory's and is none; it stays as it is"
        out.print(Text(said, style="yellow"))
    for problem in file.state.problems:
        out.print(Text(f"line {problem.line}: {visible(problem.said)}", style="yellow"))


def plain_status(found: Status, on_stop: str) -> dict[str, Any]:
    gone = {"lines": 0, "tokens": 0, "sections": [], "problems": []}
    return {
        "root": paths.text(found.root),
        "pending": [paths.text(path) for path in found.pending],
        "outside": [paths.text(path) for path in found.outside],
        "synced_at": found.synced_at,
        "on_stop": on_stop,
        "files": [
            {
                **(sections.plain(file.state) if file.state else gone),
                "file": paths.text(os.path.relpath(file.path, found.root)),
                "there": file.state is not None,
                "template": file.template,
                "synced_at": file.synced_at,
                "unknown": list(file.unknown),
                "misread": list(file.misread),
                "stale": [{"section": one.section, "reference": one.reference} for one in file.stale],
            }
            for file in found.files
        ],
    }


def _some(things: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(one_line(paths.text(thing)) for thing in things[:most])
    return shown + (f" and {len(things) - most:,} more" if len(things) > most else "")
