"""`backstory worker`, and what people see of one: does it run, what waits for it, what could it not do?"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import click

from backstory import config, errors, locks, paths
from backstory.model import now_ms
from backstory.store import forgetting, queue, spend
from backstory.store.file.connection import Connection
from backstory.store.forgetting import Run
from backstory.surfaces.cli import common, output
from backstory.surfaces.cli.common import prints
from backstory.surfaces.shapes import WRAP, Line, Reply, Shown, done, lately, number_of, plain, when

DAY_MS = 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class Chosen:
    """Who observes, as it is set and as it turns out."""

    setting: str
    uses: str | None  # claude, local; None where nobody does
    model: str | None
    program: str | None  # the Claude Code that asks it
    why: str | None = None  # why the model cannot be asked

    def __str__(self) -> str:
        if self.setting == "off":
            return "synthesizer off: nothing is observed"
        if self.setting == "local":
            return "synthesizer local: by rules, at no cost"
        if self.why is None:
            return f"synthesizer {self.setting}: claude, model {self.model}"
        return f"synthesizer {self.setting}: {f'by rules, because {self.why}' if self.uses else self.why}"


def synthesizer(env: Mapping[str, str]) -> Chosen:
    from backstory.synthesis.claude import available, find_cli

    setting = config.synthesizer(env)
    if setting in ("off", "local"):
        return Chosen(setting, None if setting == "off" else setting, None, None)
    model = config.setting("claude.model", env)
    if away := available(env):
        return Chosen(setting, "local" if setting == "auto" else None, model, None, str(away))
    return Chosen(setting, "claude", model, find_cli(env))


def what_is_sent(env: Mapping[str, str]) -> str:
    """In plain words: to whom, what, at what cost, and how to switch it off or on."""
    who = synthesizer(env)
    if who.setting == "off":
        return "memories: none are made of what is captured, and nothing is sent (synthesizer off)"
    if who.setting == "local":
        return "memories: made by rules; nothing is sent to a model (synthesizer local)"
    cap = config.number("spend.daily_usd", env)
    then = "" if who.uses == "claude" else f"; for now by rules, because {who.why}"
    return (
        f"memories: made by a small model ({who.model}) through your own Claude Code and its account. It is"
        " sent what you ask, what Claude answers and excerpts of tool uses, shortened and with secrets"
        f" redacted; nobody else is sent anything. At most ${cap:g} a day (backstory config spend.daily_usd)."
        f" Rules instead, and nothing sent: backstory config synthesizer local{then}"
    )


class Skipped(NamedTuple):
    reason: str
    items: int


class Trouble(NamedTuple):
    state: str  # waiting, or who observed in place of the model
    reason: str
    items: int
    at: int


@dataclass(frozen=True, slots=True)
class Queue:
    """What waits and why."""

    waiting: int  # items
    since: int | None
    due: int  # sessions that a worker would begin with now
    skipped: list[Skipped]
    troubles: list[Trouble]


def look(db: Connection, now: int) -> Queue:
    waiting, since = queue.waiting(db)
    due = queue.due(db, now, config.synthesizer(os.environ))
    skipped = [Skipped(*one) for one in queue.skipped(db)]
    return Queue(waiting, since, len(due), skipped, [Trouble(*one) for one in queue.troubles(db)])


def running(folder: str) -> int | None:
    """The pid of the worker that runs. The lock is tried only where a process has that pid: a worker that
    starts at that very moment would take the trial for another worker."""
    file = paths.worker_lock(folder)
    pid = locks.pid_in(file)
    return pid if pid is not None and _lives(pid) and locks.is_held(file) else None


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


@click.command()
@click.option("--status", is_flag=True, help="Only say whether one runs, what waits, and what went wrong.")
@prints
def worker(status: bool) -> Reply | None:
    """Make memories of what was captured, here and now.

    Hooks start a worker by themselves; one at a time is enough."""
    folder = common.folder()
    if status:
        with common.store() as (db, now):
            return _status(db, folder, now)
    if os.environ.get("BACKSTORY_WORKER") == "1":  # we were started by a worker's own model session
        return None
    from backstory.surfaces.worker import run

    announce(os.environ)
    began = now_ms()
    if not run(folder):
        raise errors.NotFound(another(folder))
    if not (common.is_script() or sys.stdout.isatty()):
        return None
    with common.store() as (db, _):
        return _worked(db, began)


def _status(db: Connection, folder: str, now: int) -> Reply:
    pid, seen = running(folder), look(db, now)
    setting = config.synthesizer(os.environ)
    kept = retention(db)
    value = {
        "running": pid is not None,
        "pid": pid,
        "synthesizer": setting,
        **plain(seen),
        "retention": kept,
    }
    shown: list[Shown] = []
    if setting == "off":
        off = "the synthesizer is off, nothing is observed; `backstory config synthesizer auto` turns it on"
        shown.append(Line(((off, "yellow"),), WRAP, 2))
    if pid:
        shown.append(Line(((f"a worker runs, process {pid}", "green"),)))
    else:
        hint = "" if setting == "off" else " (hooks start one when there is work)"
        shown.append(Line(("no worker runs", (hint, "dim"))))
    shown.append(waiting_told(seen))
    if kept.days:
        shown.append(f"retention is {retention_told(kept, now)}")
    return Reply(value, shown + [Line(((line, "yellow"),), WRAP, 2) for line in troubles_told(seen, now)])


class Retention(NamedTuple):
    days: float
    last: Run | None


def retention(db: Connection) -> Retention:
    return Retention(config.number("retention.days", os.environ), forgetting.last_run(db))


def retention_told(kept: Retention, now: int) -> str:
    """After how long sessions are forgotten by themselves, and what of that was done last."""
    if not kept.days:
        return ""
    if kept.last is None:
        return f"on, {kept.days:g} days; it was not needed yet"
    sessions = number_of(kept.last.sessions, "session", "sessions")
    memories = number_of(kept.last.memories, "memory", "memories")
    done = f"{sessions} with {memories} forgotten, {kept.last.erased:,} erased"
    return f"on, {kept.days:g} days; last {lately(kept.last.at, now)}: {done}"


def waiting_told(seen: Queue) -> str:
    if not seen.waiting or seen.since is None:
        return "nothing waits to be observed"
    some = f"{items(seen.waiting)} wait{'s' * (seen.waiting == 1)} since {when(seen.since)}"
    if not seen.due:
        return f"{some}, none is due yet"
    return f"{some}, {number_of(seen.due, 'session is', 'sessions are')} due now"


def troubles_told(seen: Queue, now: int) -> list[str]:
    """A line for whatever did not go as it should have."""
    lines = []
    for state, reason, number, at in seen.troubles:
        when = lately(at, now)
        if state == "waiting":
            lines.append(f"since {when}: {items(number)} could not be observed yet: {reason}")
        else:
            lines.append(f"{when}: {items(number)} observed by {state} instead of the model: {reason}")
    return lines + [f"{items(number)} skipped: {reason}" for reason, number in seen.skipped]


def model_trouble(seen: Queue, chosen: Chosen, now: int) -> str | None:
    """What the model could not do, where it is to be asked. What is known to be missing now is said already,
    and what is over is not what is wrong now."""
    for state, reason, number, at in seen.troubles if chosen.setting not in ("off", "local") else ():
        if reason != chosen.why and (state == "waiting" or at > now - DAY_MS):
            when, one = lately(at, now), number == 1
            waits = f"wait{'s' * one} since {when}"
            made = f"{'was' if one else 'were'} observed by {state}, last {when}"
            return f"{items(number)} {waits if state == 'waiting' else made}: {reason}"
    return None


def items(number: int) -> str:
    return number_of(number, "item", "items")


def announce(env: Mapping[str, str]) -> None:
    """To a person who waits for it: the idle time would look like a stall. A setting that makes no sense is
    refused here, before there is a worker to end badly."""
    chosen, idle = synthesizer(env), config.number("worker.idle_seconds", env)
    config.number("spend.daily_usd", env)
    if sys.stderr.isatty():
        click.echo(output.visible(f"{chosen}; ends after {idle:g} s without work, or with Ctrl-C"), err=True)


def another(folder: str) -> str:
    pid = running(folder)
    whose = f", process {pid}" if pid else ""
    return f"another worker is at it{whose}; `backstory worker --status` shows what waits for it"


def _worked(db: Connection, since: int) -> Reply:
    """What a worker did that began then."""
    observed, cost = queue.observed(db, since), spend.since(db, since)
    waiting, _ = queue.waiting(db)
    parts = [
        f"{items(number)} {by if by == 'skipped' else f'observed by {by}'}" for by, number in observed.items()
    ]
    parts += [f"${cost:.4f} spent"] if cost else []
    parts += [f"{items(waiting)} still wait{'s' * (waiting == 1)}"] if waiting else []
    return done("; ".join(parts) or "there was nothing to do", observed=observed, usd=cost, waiting=waiting)
