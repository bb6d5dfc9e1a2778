"""How the CLI prints what it found out about a project and what became of its CLAUDE.md, under the same rules
as output.py."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click
from rich.text import Text

from recollect import paths
from recollect.claude_md.compose import Known
from recollect.claude_md.init import CHOICES, Planned
from recollect.claude_md.status import FileStatus, Status
from recollect.claude_md.sync import Prepared
from recollect.surfaces.cli import sections
from recollect.surfaces.cli.output import console, lately, number_of, one_line, table, visible

MOST_LISTED = 20
MOST_PATTERNS = 12
ACTIONS = {
    "create": "is made",
    "merge": "gets sections at its end",
    "migrate": "is made anew, with the old text as its manual part",
    "backup": "is made anew; the old one is kept beside it",
    "add": "gets the sections that are missing",
    "keep": "stays as it is",
    "import": "gets a first line that imports AGENTS.md",
}


# --- init ---------------------------------------------------------------------------------------------------


def known(found: Known) -> None:
    """What was found out about a project, a row each."""
    survey = found.survey
    rows: list[tuple[str, str]] = [
        ("project", survey.name),
        ("about", survey.description),
        ("languages", ", ".join(f"{name} {share:.0%}" for name, share in survey.languages)),
        ("frameworks", ", ".join(survey.frameworks)),
        ("packages", ", ".join(survey.managers)),
    ]
    for role in ("build", "test", "lint", "run"):
        rows.append((role, ", ".join(one.line for one in survey.commands if one.role == role)))
    rows.append(("workspaces", _some(survey.workspaces)))
    for pattern in found.patterns[:MOST_PATTERNS]:
        said = f"{pattern.subject}: {pattern.value}" if pattern.subject else pattern.value
        rows.append((pattern.type, f"{said} ({pattern.confidence:.0%} of {pattern.cases:,})"))
    if found.insights:
        rows.append(("hot files", _some([path for path, _ in found.insights.hot])))
        rows += [("commits", habit) for habit in found.insights.habits]
        rows += [("decided", said) for _, _, said in found.insights.decisions[:3]]
    rows += [("practice", line.removeprefix("- ")) for line in (found.practices or "").splitlines()]
    _rows(rows)
    if not found.tree.whole:
        click.echo("There are more files than were looked at.", err=True)


def choose(proposed: Sequence[str]) -> list[str]:
    """Ask which folders get a CLAUDE.md of their own."""
    if not proposed:
        return []
    click.echo("\nThese folders are worth a CLAUDE.md of their own:", err=True)
    for number, path in enumerate(proposed, 1):
        click.echo(f"{number:>3}  {one_line(path)}", err=True)
    while True:
        given = click.prompt("Which? all, none, or numbers like 1,3", default="all", err=True).strip().lower()
        if given in ("all", "none"):
            return list(proposed) if given == "all" else []
        numbers = [int(word) for word in re.findall(r"\d{1,4}", given)]
        if numbers and re.fullmatch(r"[\d\s,]+", given) and all(0 < one <= len(proposed) for one in numbers):
            return [proposed[one - 1] for one in dict.fromkeys(numbers)]
        click.echo(f"There are numbers from 1 to {len(proposed)}.", err=True)


def decide(existing: Sequence[str]) -> str:
    """Ask what becomes of files that are there."""
    names = ", ".join(one_line(paths.text(path)) for path in existing)
    click.echo(
        f"\n{names} {'is' if len(existing) == 1 else 'are'} there already:\n"
        "  merge    add sections at the end, and change nothing else\n"
        "  migrate  a new file, with all of the old text as its manual part\n"
        "  backup   a new file; the old one is kept as .backup\n"
        "  cancel   write nothing",
        err=True,
    )
    return str(click.prompt("Which?", type=click.Choice(CHOICES), default="merge", err=True))


def planned(plan: Iterable[Planned], root: str) -> None:
    rows = [
        {
            "file": one_line(paths.text(os.path.relpath(one.path, root))),
            "what happens": ACTIONS[one.action],
            "sections": ", ".join(one.texts) or "-",
        }
        for one in plan
    ]
    out = console()
    out.print()
    table(out, rows, (), ("sections",), last=20)


def done(is_dry: bool) -> None:
    if is_dry:
        click.echo("\nNothing was written.")
    else:
        click.echo("\nChanges are tracked from now on; `recollect status` shows what is pending.")


# --- sync ---------------------------------------------------------------------------------------------------


def prepared(found: Prepared) -> None:
    """What changed in the project, and what changes in CLAUDE.md for it."""
    changed = list(dict.fromkeys(found.told(path) for path in (*found.lines, *found.outside)))
    if changed:
        click.echo(f"{number_of(len(changed), 'file', 'files')} changed: {_some(changed)}")
    for change in found.changes:
        if change.outcome != "unchanged":
            name = f"{found.told(change.path)}: {change.name}"
            suffix = " (offered, since a person edited it)" if change.outcome == "offered" else ""
            sections.show(sections.difference(change.old, change.new, name, name + suffix))
    for trouble in found.troubles:
        line = f":{trouble.line}" if trouble.line else ""
        click.echo(visible(f"{paths.text(found.told(trouble.path))}{line}: {trouble.said}"), err=True)


def synced(found: Prepared, outcomes: Mapping[str, Mapping[str, str]]) -> None:
    said: dict[str, list[str]] = {}
    for path, names in outcomes.items():
        for name, outcome in names.items():
            said.setdefault(outcome, []).append(f"{name} in {paths.text(found.told(path))}")
    for outcome, how in (
        ("written", "Written"),
        ("offered", "Offered, since a person edited it (`recollect claude-md section diff NAME` shows it)"),
        ("kept", "Left as a person wants it"),
    ):
        if outcome in said:
            click.echo(visible(f"{how}: {', '.join(said[outcome])}"))
    for one in found.prose:
        why = f": {_some(one.because)} changed" if one.because else ""
        click.echo(visible(f"Prose to look at: {one.name} in {paths.text(found.told(one.path))}{why}"))
    if not {"written", "offered"} & said.keys() and not found.prose:
        click.echo("CLAUDE.md is up to date.")


# --- status -------------------------------------------------------------------------------------------------


def status(found: Status, on_stop: str, now: int) -> None:
    pending = number_of(len(found.pending), "file", "files") if found.pending else "nothing"
    last = lately(found.synced_at, now) if found.synced_at else "never"
    _rows([("pending", pending), ("last sync", last), ("on stop", on_stop)])
    out = console()
    for path in found.pending[:MOST_LISTED]:
        out.print(Text(f"  {one_line(paths.text(path))}"))
    if len(found.pending) > MOST_LISTED:
        out.print(Text(f"  and {len(found.pending) - MOST_LISTED:,} more", style="dim"))
    for file in found.files:
        out.print()
        _file(file, found.root)
    if found.pending:
        click.echo("\n`recollect sync` brings CLAUDE.md up to date.")


def _file(file: FileStatus, root: str) -> None:
    out = console()
    name = one_line(paths.text(os.path.relpath(file.path, root)))
    if file.state is None:
        out.print(
            Text(name, style="bold").append("  is gone; `recollect init` makes it again", style="yellow")
        )
        return
    size = (
        f"{number_of(file.state.lines, 'line', 'lines')}, {number_of(file.state.tokens, 'token', 'tokens')}"
    )
    out.print(Text(name, style="bold").append(f"  {size}", style="dim"))
    rows = []
    for one in file.state.sections:
        state = [
            *(["edited by hand"] if one.is_edited else []),
            *(["a new text is offered"] if one.offered is not None else []),
            *(["unknown name"] if one.name in file.unknown else []),
        ]
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
        out.print(
            Text(f"{stale.section} names {one_line(stale.reference)}, which is not there", style="yellow")
        )
    for problem in file.state.problems:
        out.print(Text(f"line {problem.line}: {visible(problem.said)}", style="yellow"))


def plain_status(found: Status, on_stop: str) -> dict[str, Any]:
    return {
        "root": paths.text(found.root),
        "pending": [paths.text(path) for path in found.pending],
        "synced_at": found.synced_at,
        "on_stop": on_stop,
        "files": [
            {
                **(
                    sections.plain(file.state)
                    if file.state
                    else {"lines": 0, "tokens": 0, "sections": [], "problems": []}
                ),
                "file": paths.text(os.path.relpath(file.path, found.root)),
                "there": file.state is not None,
                "template": file.template,
                "synced_at": file.synced_at,
                "unknown": list(file.unknown),
                "stale": [{"section": one.section, "reference": one.reference} for one in file.stale],
            }
            for file in found.files
        ],
    }


def _some(things: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(one_line(paths.text(thing)) for thing in things[:most])
    return shown + (f" and {len(things) - most:,} more" if len(things) > most else "")


def _rows(rows: Iterable[tuple[str, str]]) -> None:
    out = console()
    for name, value in rows:
        words = " ".join(visible(value).split())
        if words:
            out.print(Text(f"{name:>12}  ", style="dim").append(words, style="not dim default"))
