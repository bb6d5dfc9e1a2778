"""`backstory backfill`: the sessions that Claude Code kept before backstory was there."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import click

from backstory import config, errors, locks, paths
from backstory.capture import transcripts
from backstory.capture.transcripts import File, Transcript
from backstory.clients import claude_transcript
from backstory.intake import checkouts
from backstory.intake.backfill import Done, Places, backfill, is_running
from backstory.model import now_ms
from backstory.store import sessions
from backstory.store import transcripts as stored
from backstory.store.file.connection import Connection, unhurried
from backstory.surfaces.cli import common
from backstory.surfaces.cli.common import prints
from backstory.surfaces.opened import ANSWER_SECONDS, open_drained
from backstory.surfaces.shapes import WHOLE, Column, Line, Reply, Shown, Table, number_of, size, when

LISTED = 20  # projects, files with unreadable lines
NOT_READ = {
    "read_before": "remembered already",
    "left_out": "left out by --since or --project",
    "older_copies": "older copies of the same",
    "without_session": "without a session in it",
}
# What a model is shown of a megabyte of transcripts, and what it answers, in tokens; and what a million of
# them cost with the default model. The first was measured on 29 public sessions, the others are guesses.
SHOWN_PER_MB, ANSWERED_PER_MB = 27_000, 2_600
USD_SHOWN, USD_ANSWERED = 1.0, 5.0
MADE = (
    Column("sessions", right=True, style=lambda row: ""),
    Column("turns", right=True),
    Column("memories", right=True),
    Column("project", lambda row: row["root"], least=20, style=lambda row: "cyan"),
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What there is to read, and what not."""

    top: str
    chosen: list[Transcript]
    not_read: dict[str, int]  # how many, by the reasons of NOT_READ
    running: int  # of the chosen

    @property
    def size(self) -> int:
        return sum(one.size for one in self.chosen)


@click.command("backfill")
@click.option(
    "--from",
    "top",
    metavar="FOLDER",
    help="Where they lie; only transcripts you trust.  [default: ~/.claude/projects]",
)
@click.option("--since", metavar="WHEN", help="Only sessions that went on after: 2026-11-15, today, or 7d.")
@click.option("--project", metavar="DIR", help="Only the sessions of that project.")
@click.option("--dry-run", is_flag=True, help="Only say what would be read.")
@click.option("--with-model", is_flag=True, help="Let the worker show it to a model too; asks first.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@prints
def command(
    top: str | None, since: str | None, project: str | None, dry_run: bool, with_model: bool, yes: bool
) -> Reply:
    """Remember the sessions of which Claude Code has transcripts.

    They become sessions and turns. What is remembered already is not read twice, and a run that was ended
    goes on where it was. Nothing is sent to a model without --with-model. Vectors follow with the first
    search, or `backstory reindex`."""
    home, now = common.folder(), now_ms()
    folder = _folder(top)
    after = common.moment(since, now) if since else None
    lock = locks.try_to_take(os.path.join(home, "backfill.lock"))
    if lock is None:
        raise errors.NotFound("another backfill is at work; wait for it, or end it, and try again")
    try:
        with open_drained(home, now=now) as db:
            with common.busy("looking for transcripts"):
                plan = _plan(db, folder, after, project, now)
            if project and plan.not_read["left_out"] and not plan.chosen and not plan.not_read["read_before"]:
                raise errors.NotFound(f"No session was in {project}; --dry-run alone lists the folders.")
            if dry_run or not plan.chosen:
                return _planned(plan, with_model)
            if with_model and not _may_ask_the_model(plan, yes):
                raise errors.NotFound("Nothing was read; without --with-model nothing is sent to a model.")
            done = _run(db, plan, with_model, now)
            checkouts.learn(db, now, most=None)
            made = stored.made_of(db, done.sessions)
    finally:
        os.close(lock)
    return _reply(plan, done, made, with_model)


def _folder(top: str | None) -> str:
    folder = os.path.abspath(top) if top else claude_transcript.folder(os.environ)
    if folder is None or not os.path.isdir(folder):
        there = folder or "~/.claude/projects"
        raise errors.NotFound(
            f"There is no folder {there}; --from FOLDER names the one with the transcripts."
        )
    return os.path.realpath(folder)


def _plan(db: Connection, folder: str, after: int | None, project: str | None, now: int) -> Plan:
    every, empty = transcripts.found(folder)
    found = transcripts.without_older_copies(every)
    known = stored.read_so_far(db)
    new = [one for one in found if not all(_is_read(file, known) for file in one.files)]
    places = Places()
    chosen = [
        one
        for one in new
        if (after is None or one.last >= after) and (project is None or _is_of(one, project, places))
    ]
    not_read = {
        "read_before": len(found) - len(new),
        "left_out": len(new) - len(chosen),
        "older_copies": len(every) - len(found),
        "without_session": len(empty),
    }
    return Plan(folder, chosen, not_read, running=sum(is_running(db, one, now) for one in chosen))


def _is_read(file: File, known: dict[str, tuple[int, int]]) -> bool:
    return known.get(file.path) == (file.size, file.modified_ns)


def _is_of(transcript: Transcript, project: str, places: Places) -> bool:
    """Is it a session of the project in that folder, which may be on another machine?"""
    folder = os.path.abspath(claude_transcript.posix(project))
    if transcript.cwd == folder or transcript.cwd.startswith(f"{folder}/"):
        return True
    here = places.of(folder, folder).location
    return os.path.isdir(folder) and places.of(transcript.cwd, transcript.cwd).location == here


def _may_ask_the_model(plan: Plan, yes: bool) -> bool:
    if (setting := config.synthesizer(os.environ)) in ("off", "local"):
        raise errors.BadInput(
            f"synthesizer is {setting}, so no model is asked;"
            " `backstory config synthesizer auto` changes that"
        )
    return yes or common.sure(f"{_price_in_words(plan)} Go on?")


def _price_in_words(plan: Plan) -> str:
    cap = config.number("spend.daily_usd", os.environ)
    usd, sessions = _price(plan), number_of(len(plan.chosen), "session", "sessions")
    sentence = f"The model would be shown {sessions}, for about ${usd:,.2f}."
    if usd > cap:
        sentence += f" The cap is ${cap:,.2f} a day, and what goes beyond it is left to rules;"
        sentence += f" `backstory config spend.daily_usd {math.ceil(usd)}` raises it."
    return sentence


def _price(plan: Plan) -> float:
    """Dollars."""
    return plan.size / 1e6 * (SHOWN_PER_MB * USD_SHOWN + ANSWERED_PER_MB * USD_ANSWERED) / 1e6


def _run(db: Connection, plan: Plan, with_model: bool, now: int) -> Done:
    from backstory.synthesis.past import observe_past

    unhurried(db)  # a power cut may cost the last sessions; the next run reads them again
    try:
        with common.bar("reading", plan.size, of_bytes=True) as progress:
            return backfill(
                db,
                plan.chosen,
                now=now,
                with_model=with_model,
                observe=(lambda _: None) if with_model else (lambda session_id: observe_past(db, session_id)),
                progress=progress,
            )
    except KeyboardInterrupt:
        click.echo("Ended. What is stored stays; `backstory backfill` goes on with the rest.", err=True)
        raise


def _planned(plan: Plan, with_model: bool) -> Reply:
    folders = Counter(one.cwd for one in plan.chosen).most_common()
    since = min((one.first for one in plan.chosen), default=None)
    value = {
        "folder": plan.top,
        "sessions": len(plan.chosen),
        "bytes": plan.size,
        "since": since,
        "folders": [{"folder": cwd, "sessions": number} for cwd, number in folders],
        **plan.not_read,
        "running": plan.running,
        "usd": round(_price(plan), 2) if with_model else 0,
    }
    if since is None:
        return Reply(value, [" ".join([f"Nothing new in {plan.top}.", *_skipped(plan)])])
    sessions = number_of(len(plan.chosen), "session", "sessions")
    shown: list[Shown] = [
        f"{sessions} since {when(since)[:10]}, {size(plan.size)}, would be read from {plan.top}:",
        *(Line((f"  {number:>6,}  {cwd}",), WHOLE) for cwd, number in folders[:LISTED]),
        *_more(len(folders), "folders"),
        *_skipped(plan),
    ]
    return Reply(value, [*shown, _price_in_words(plan)] if with_model else shown)


def _skipped(plan: Plan) -> list[str]:
    why = ", ".join(f"{number:,} {NOT_READ[why]}" for why, number in plan.not_read.items() if number)
    return [f"Not read: {why}."] if why else []


def _more(number: int, what: str) -> list[str]:
    return [f"  and {number - LISTED:,} more {what}; --json lists all"] if number > LISTED else []


def _reply(plan: Plan, done: Done, made: Sequence[dict[str, Any]], with_model: bool) -> Reply:
    value = {
        "sessions": len(done.sessions),
        **{name: sum(row[name] for row in made) for name in ("turns", "memories")},
        "events": done.events,
        "projects": made,
        "known": done.known,
        "running": done.running,
        **plan.not_read,
        "unreadable": done.unreadable,
        "not_stored": done.odd,
    }
    return Reply(value, [*_remembered(done, made), *_not_remembered(plan, done, with_model)])


def _remembered(done: Done, made: Sequence[dict[str, Any]]) -> Iterator[Shown]:
    yield (
        f"Remembered {number_of(len(done.sessions), 'session', 'sessions')} with"
        f" {number_of(sum(row['turns'] for row in made), 'turn', 'turns')} and"
        f" {number_of(sum(row['memories'] for row in made), 'other memory', 'other memories')}."
    )
    if made:
        yield Table(made[:LISTED], MADE)
    yield from _more(len(made), "projects")
    if any(not os.path.isdir(str(row["root"])) for row in made):
        yield (
            "Some of these folders are not there. If one was moved, its memory comes along with:"
            " backstory projects merge OLD NEW"
        )


def _not_remembered(plan: Plan, done: Done, with_model: bool) -> Iterator[Shown]:
    """What was left out, and what still comes."""
    if done.known:
        captured = number_of(done.known, "session was", "sessions were")
        yield f"{captured} captured when they went on; nothing in them is new."
    if done.running:
        yield f"{number_of(done.running, 'session goes', 'sessions go')} on, and will be read again."
    yield from _skipped(plan)
    for path, number in done.unreadable.most_common(LISTED):
        yield f"{number_of(number, 'line', 'lines')} could not be read in {path}"
    if done.odd:
        yield f"{number_of(done.odd, 'event', 'events')} could not be stored; the log says why."
    if with_model:
        yield "The worker shows them to the model, within the daily cap; `backstory spend` tells the cost."


def offer(home: str) -> str | None:
    """One line about the sessions that are not remembered. Files are counted, and one of them is looked into;
    to read them all takes minutes."""
    folder = claude_transcript.folder(os.environ)
    if folder is None or not os.path.isdir(folder):
        return None
    known: dict[str, tuple[int, int]] = {}
    captured: set[str] = set()
    if os.path.exists(paths.database(home)):
        with open_drained(home, now=now_ms(), seconds=ANSWER_SECONDS) as db:
            known, captured = stored.read_so_far(db), sessions.ids(db)
    new = [
        file
        for file in transcripts.files(os.path.realpath(folder))
        if file.path not in known
        and not claude_transcript.is_of_subagent(file.path)
        and os.path.basename(file.path).removesuffix(".jsonl") not in captured
    ]
    if not new:
        return None
    oldest = transcripts.look_into(min(new, key=lambda file: (file.modified_ns, file.path)))
    since = f" (since {when(oldest.first)[:10]})" if oldest else ""
    earlier = number_of(len(new), "earlier session", "earlier sessions")
    return f"{earlier} of Claude Code{since} can be remembered too: backstory backfill"
