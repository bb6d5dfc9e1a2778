"""`backstory init --verify`: shows the commands that were found, asks, runs those that a person wants, and
says which of them were seen to work. No option answers for the person, and nobody but a person at a terminal
is asked."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from backstory import errors, paths
from backstory.claude_md import verify
from backstory.claude_md.learn import Learned, commands_of
from backstory.claude_md.verify import Check, Outcome
from backstory.surfaces.cli.output import one_line, visible
from backstory.surfaces.cli.wizard import Plan, Wishes

SHOWN = 2_000  # characters of an output, as JSON
LINES = 5  # of the output of what did not work
NEEDS_A_PERSON = (
    "--verify runs commands of this repository, which only a person at a terminal can agree to: --yes does"
    " not, and nobody is here to ask; run `backstory init --verify` in a terminal, or leave --verify out"
)
ABOUT = """\
Each gets {seconds:g} s, no input, and of your variables only those by which tools are found; what it leaves
running is killed. It can read and change your files. Those without a * run only if you name them: they may
serve for ever, install, rewrite files or change a database."""
MARKS = {
    verify.WORKS: ("✓", "seen to work", "green"),
    verify.FAILED: ("✗", "starts, and fails", "yellow"),
    verify.TIMED_OUT: ("…", "starts, and did not end in time", "yellow"),
    verify.NOT_FOUND: ("✗", "not found", "red"),
    verify.USAGE_ERROR: ("✗", "is called wrongly", "red"),
}


def require_a_person() -> None:
    """Refuse wherever a program may be the one that asks."""
    is_worker = os.environ.get("BACKSTORY_WORKER") == "1"
    if is_worker or not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        raise errors.BadInput(NEEDS_A_PERSON)


def verified(
    root: str, known: Learned, wishes: Wishes, plan: Plan, seconds: float
) -> tuple[Wishes, list[dict[str, Any]]]:
    """Ask which commands of the files that are planned are to be run, and run them: the wishes after that,
    and what was seen, as JSON. It is all said on stderr."""
    files = [one for one in plan(wishes) if one.action != "import"]
    found = verify.checks({one.folder: commands_of(known, one.folder, one.settings) for one in files})
    if not found:
        click.echo("\nThere is no command to verify.", err=True)
        return wishes, []
    outcomes = []
    for outcome in verify.run(root, _wanted(found, seconds), os.environ, seconds=seconds, began=_began):
        _show(outcome)
        outcomes.append(outcome)
    commands = {**wishes.choices.commands, **_corrections(outcomes, found)}
    return replace(wishes, choices=replace(wishes.choices, commands=commands)), _plain(outcomes, found)


def _wanted(found: Sequence[Check], seconds: float) -> list[Check]:
    click.echo("\n--verify runs these commands. THIS RUNS CODE OF THIS REPOSITORY, as you:", err=True)
    for number, check in enumerate(found, 1):
        mark = "*" if check.is_marked else " "
        source = check.command.source or "a comment in CLAUDE.md, or --command"
        where = f"in {check.folder or 'the project'}, from {source}"
        click.echo(
            f"{number:>3}{mark} {check.command.role:<8} {check.command.line}   ({visible(where)})", err=True
        )
    click.echo(ABOUT.format(seconds=seconds), err=True)
    while True:
        given = str(click.prompt("Run them? y for those with a *, numbers like 1,3, or n", "n", err=True))
        given = given.strip().lower()
        if given in ("y", "yes"):
            return [check for check in found if check.is_marked]
        if given in ("n", "no", "none", ""):
            return []
        numbers = [int(word) for word in re.findall(r"\d{1,4}", given)]
        if re.fullmatch(r"[\d\s,]+", given) and all(0 < one <= len(found) for one in numbers):
            return [found[one - 1] for one in dict.fromkeys(numbers)]
        click.echo(f"There are numbers from 1 to {len(found)}.", err=True)


def _began(check: Check) -> None:
    click.echo(f"… {check.command.line}", err=True)


def _show(outcome: Outcome) -> None:
    mark, said, colour = MARKS[outcome.state]
    code = "" if outcome.code is None else f"exit {outcome.code}, "
    line = f"{mark} {said}: {outcome.check.command.line}  ({code}{outcome.seconds:g} s)"
    click.secho(line, fg=colour, err=True)
    if outcome.state != verify.WORKS:
        for tail in outcome.tail.rstrip().splitlines()[-LINES:]:
            click.echo(f"    {one_line(tail)}", err=True)


def _corrections(outcomes: Sequence[Outcome], found: Sequence[Check]) -> dict[str, tuple[str, ...]]:
    """The commands of the project's file that are left, of each role that has one which could not start;
    where a person wants that. It may only be missing here, so they must say so."""
    bad = [one.check for one in outcomes if not one.is_started and not one.check.folder]
    if not bad:
        return {}
    names = ", ".join(check.command.line for check in bad)
    click.echo(f"\nCould not start: {names}. What is not installed here may well work for others.", err=True)
    if not click.confirm("Leave that out of the file, for everybody?", err=True):
        return {}
    rest = [check.command for check in found if not check.folder and check not in bad]
    roles = {check.command.role for check in bad}
    return {role: tuple(command.line for command in rest if command.role == role) for role in roles}


def _plain(outcomes: Sequence[Outcome], found: Sequence[Check]) -> list[dict[str, Any]]:
    """Every command, as JSON."""
    by_check = {(one.check.folder, one.check.command.line): one for one in outcomes}
    told = []
    for check in found:
        outcome = by_check.get((check.folder, check.command.line))
        told.append(
            {
                "role": check.command.role,
                "command": check.command.line,
                "folder": paths.text(check.folder),
                "source": check.command.source,
                "state": outcome.state if outcome else verify.NOT_RUN,
                "started": outcome.is_started if outcome else None,
                "code": outcome.code if outcome else None,
                "seconds": outcome.seconds if outcome else None,
                "tail": outcome.tail[-SHOWN:] if outcome else "",
            }
        )
    return told
