"""`backstory stats` and `backstory why`: what was captured, what a model was told and why, and what it did
with that. What cannot be known is said, and nothing is called a saving: how a session would have gone without
memory cannot be known."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

import click

from backstory import errors, paths
from backstory.clients import claude_code
from backstory.memory import usage
from backstory.model import Memory, Session, TellingRecord
from backstory.store import life, memories, projects, sessions, stats, tellings, turns
from backstory.store.file.connection import Connection
from backstory.surfaces.cli import common, output
from backstory.surfaces.cli.common import json_option, project_option, store

DAY_MS = 24 * 3_600_000
EXAMPLES = 3
MOMENTS = {
    tellings.START: "at a session's start",
    tellings.COMPACT: "after a compaction",
    tellings.PROMPT: "at a prompt",
    tellings.FILE: "at a file",
    tellings.FAILURE: "at a failing test",
    tellings.SUBAGENT: "to a subagent",
    tellings.SEARCH: "when it searched",
}
SIGNS = {
    usage.ID: "named by its id in what the model did next",
    usage.FILE: "a file of it was opened next, which nobody had named",
    usage.PERHAPS: "perhaps: a rare word of it came back",
    usage.NONE: "no sign of it in what came next",
    usage.TOO_EARLY: "nothing came after it yet",
}
UNKNOWN = (
    "What cannot be known: whether a file would have been opened anyway, whether a model read what it was"
    " told and left no sign, and how long a session would have taken without."
)


@click.command("stats")
@project_option
@click.option("--everywhere", is_flag=True, help="All projects, not only this one.")
@click.option("--session", "session", metavar="ID", help="Only this session.")
@click.option(
    "--days", default=30, show_default=True, type=click.IntRange(1, 3660), help="How many days back."
)
@json_option
def command(project: str, everywhere: bool, session: str | None, days: int, as_json: bool) -> None:
    """Count what was captured, told and used, and what it cost.

    Used means a fact that can be checked: the model named a told memory's id, or opened a file of it that
    nobody had named, in the same turn or the next. `backstory why ID` shows each case."""
    with store() as (db, now):
        session_id = common.session_id(db, session) if session else None
        here = None if everywhere or session_id else projects.at(db, paths.place(project))
        if not (everywhere or session_id or here):
            raise errors.NotFound(common.nothing(db, "Nothing is stored of this folder.", project))
        since = 0 if session_id else now - days * DAY_MS
        name = here.name if here else f"session {session_id}" if session_id else "all projects"
        with common.busy("counting"):
            counted = count(db, since, here.id if here else None, session_id)
    counted = {"of": name, "days": None if session_id else days, **counted}
    output.as_json(counted) if as_json else _print(counted)


def count(
    db: Connection, since: int, project_id: str | None, session_id: str | None = None
) -> dict[str, Any]:
    """All figures; without a project, of all of them."""
    sizes: defaultdict[str, list[int]] = defaultdict(list)  # by moment
    signs: defaultdict[str, Counter[str]] = defaultdict(Counter)
    by_chance = 0
    for telling in tellings.since(db, since, project_id, session_id):
        done, before = stats.done_after(db, telling)
        sizes[telling.moment].append(telling.tokens)
        signs[telling.moment][_sign_of(db, telling, done, before)[0]] += 1
        by_chance += bool(done and usage.opened(stats.files_of_others(db, telling), done, before))
    by_moment = {
        moment: {
            "times": len(sizes[moment]),
            "tokens": sum(sizes[moment]),
            "median": int(median(sizes[moment])),
            "signs": {sign: signs[moment][sign] for sign in usage.SIGNS},
        }
        for moment in MOMENTS
        if moment in sizes
    }
    again = _again(db, since, project_id, session_id)
    return {
        "captured": stats.captured(db, since, project_id, session_id),
        "told": by_moment,
        "file_by_chance": by_chance,
        "again": {
            what: {"times": len(found), "examples": [asdict(one) for one in found[:EXAMPLES]]}
            for what in ("error", "search")
            for found in [[one for one in again if one.what == what]]
        },
    }


def _again(db: Connection, since: int, project_id: str | None, session_id: str | None) -> list[usage.Again]:
    if session_id:
        project_id = sessions.project_of(db, session_id)
    chosen = [project_id] if project_id else [project.id for project in projects.every(db)]
    by_session: defaultdict[str, list[TellingRecord]] = defaultdict(list)
    for telling in tellings.since(db, 0, project_id):
        by_session[telling.session_id].append(telling)

    def was_told(session: str, until: int) -> set[str]:
        before = (telling for telling in by_session[session] if telling.at <= until)
        return {memory_id for telling in before for memory_id in telling.memory_ids}

    return [
        again
        for chosen_id in chosen
        for again in usage.found_again(stats.worked(db, chosen_id), since, was_told, session_id)
    ]


def _sign_of(
    db: Connection, telling: TellingRecord, done: usage.Done | None, before: frozenset[str]
) -> tuple[str, str]:
    """The sign that a model used what it was told, and what shows it."""
    files = stats.files_of(db, telling)
    return usage.sign_of_use(
        telling.memory_ids, files, telling.text, done, before, lambda word: stats.is_rare(db, word)
    )


def _print(counted: dict[str, Any]) -> None:
    from backstory.surfaces.cli import terminal

    out = terminal.console()
    period = "" if counted["days"] is None else f", last {output.number_of(counted['days'], 'day', 'days')}"
    click.echo(f"{output.visible(counted['of'])}{period}\n")
    captured = counted["captured"]
    names = {
        "sessions": "session",
        "turns": "turn",
        "events": "event",
        "facts": "fact",
        "notes": "note",
    }
    found = ", ".join(output.number_of(captured[many], one, many) for many, one in names.items())
    click.echo(f"Captured: {found}\n")
    if not counted["told"]:
        click.echo("Told: nothing yet. A session is told something at its start, and where it searches.")
        return
    rows = []
    for moment, figures in counted["told"].items():
        signs = figures["signs"]
        rows.append(
            {
                "told": MOMENTS[moment],
                "times": f"{figures['times']:,}",
                "tokens": f"{figures['tokens']:,}",
                "median": f"{figures['median']:,}",
                "by id": str(signs[usage.ID]),
                "file": str(signs[usage.FILE]),
                "perhaps": str(signs[usage.PERHAPS]),
                "no sign": str(signs[usage.NONE]),
            }
        )
    right = {"times", "tokens", "median", "by id", "file", "perhaps", "no sign"}
    terminal.table(out, rows, right, ("perhaps", "median", "no sign"))
    total = sum(figures["tokens"] for figures in counted["told"].values())
    signs = Counter[str]()
    for figures in counted["told"].values():
        signs.update(figures["signs"])
    many = sum(signs.values())
    click.echo(
        f"\nTold {output.number_of(many, 'text', 'texts')}, about {total:,} tokens. Of these"
        f" {signs[usage.ID]} were named by id and of {signs[usage.FILE]} a file was opened next that nobody"
        f" had named ({counted['file_by_chance']}, had as many other turns been told);"
        f" {signs[usage.PERHAPS]} perhaps, {signs[usage.NONE]} without a sign, {signs[usage.TOO_EARLY]} too"
        " new to say."
    )
    _print_again(counted["again"])
    click.echo(f"\n{UNKNOWN}")


def _print_again(again: dict[str, Any]) -> None:
    for what, sentence in (
        ("error", "that an earlier session had met and mended, and nothing was told about"),
        ("search", "that an earlier session had made, and nothing was told about"),
    ):
        found = again[what]
        if found["times"]:
            many = {"error": "errors", "search": "searches"}[what]
            click.echo(f"\nFound again: {output.number_of(found['times'], what, many)} {sentence}:")
        for one in found["examples"] if found["times"] else ():
            click.echo(
                f"  {output.one_line(one['text'], 80)}  (session {one['session_id'][:8]}; {one['known']})"
            )


# --- why ----------------------------------------------------------------------------------------------------


@click.command()
@click.argument("known", metavar="[ID]", required=False)
@project_option
@json_option
def why(known: str | None, project: str, as_json: bool) -> None:
    """Show where a memory comes from, and who was told of it.

    When and why a model was told is shown as well. ID is a memory, a session, or the number of a telling;
    without one, the session that this command is run in."""
    given = known or claude_code.session_id(os.environ)
    if not given:
        raise errors.BadInput("say what: a memory's id, a session's id or a telling's number")
    with store() as (db, now):
        if given.isdecimal() and len(given) < 10 and (telling := tellings.by_number(db, int(given))):
            plain = _plain(db, telling)
            return output.as_json(plain) if as_json else _print_telling(plain)
        if session_id := _session(db, given, is_here=known is None):
            found = [_plain(db, telling) for telling in tellings.since(db, 0, session_id=session_id)]
            return output.as_json(found) if as_json else _print_session(session_id, found)
        memory = memories.get(db, common.memory_id(db, given, project, anywhere=True), now)
        if memory is None:
            raise errors.NotFound(f"{given} is archived; `backstory restore {given}` brings it back")
        about = _origin(db, memory)
        about["told"] = [_plain(db, telling) for telling in tellings.of_memory(db, memory.id)]
    return output.as_json(about) if as_json else _print_memory(memory, about)


def _session(db: Connection, given: str, *, is_here: bool) -> str | None:
    """The session that is meant; one of which nothing is stored yet may have been told something."""
    if is_here or tellings.since(db, 0, session_id=given):
        return given
    found = [one.id for one in sessions.starting_with(db, given)] if len(given) > 3 else []
    return common.only("session", given, found, "backstory sessions") if found else None


def _plain(db: Connection, telling: TellingRecord) -> dict[str, Any]:
    sign, shown_by = _sign_of(db, telling, *stats.done_after(db, telling))
    return {**asdict(telling), "sign": sign, "shown_by": shown_by}


def _origin(db: Connection, memory: Memory) -> dict[str, Any]:
    turn = memory.id if memory.kind == "turn" else turns.holding(db, memory)
    of_session = sessions.by_ids(db, [memory.session_id]) if memory.session_id else {}
    session: Session | None = next(iter(of_session.values()), None)
    return {
        "id": memory.id,
        "kind": memory.kind,
        "source": memory.source,
        "created_at": memory.created_at,
        "session_id": memory.session_id,
        "session_started_at": session.started_at if session else None,
        "turn": turn,
        "built_on": [
            target
            for source, how, target in life.relations(db, memory.id)
            if how == "BUILDS_ON" and source == memory.id
        ],
    }


SOURCES = {
    "user": "you said it",
    "assistant": "the model noted it",
    "tool": "it is the trace of a tool use",
    "web": "it comes from a web page",
    "repository": "it comes from the repository",
    "model": "a model observed it in the session",
    "session": "it is what happened in the session",
}


def _print_memory(memory: Memory, about: dict[str, Any]) -> None:
    click.echo(f"{memory.id}  {memory.kind}  {output.one_line(memory.title or memory.content, 100)}")
    came = f"{SOURCES.get(memory.source, memory.source)}, {output.when(memory.created_at)}"
    if memory.session_id:
        came += f", in session {output.visible(memory.session_id)}"
    if about["turn"] and about["turn"] != memory.id:
        came += f", turn {about['turn']}"
    click.echo(f"From: {came}")
    if about["built_on"]:
        click.echo(f"Rests on: {', '.join(about['built_on'])}")
    if not about["told"]:
        click.echo("Told: never, since tellings are noted")
    for telling in about["told"]:
        click.echo(f"Told: {_line(telling)}, session {output.visible(telling['session_id'][:8])}")
        click.echo(f"      {_sign(telling)}")


def _print_session(session_id: str, found: Sequence[dict[str, Any]]) -> None:
    if not found:
        raise errors.NotFound(
            f"Nothing was told in session {output.visible(session_id)}, or it was forgotten."
        )
    click.echo(f"Session {output.visible(session_id)}:")
    for line in _session_lines(found):
        click.echo(line)
    click.echo("`backstory why NUMBER` shows a text whole, `backstory why ID` what is known of a memory.")


def session_lines(db: Connection, found: Sequence[TellingRecord]) -> list[str]:
    """What a session was told, for a model that is asked about it."""
    return _session_lines([_plain(db, telling) for telling in found])


def _session_lines(found: Sequence[dict[str, Any]]) -> list[str]:
    total = sum(telling["tokens"] for telling in found)
    lines = [f"It was told {output.number_of(len(found), 'text', 'texts')}, about {total:,} tokens:"]
    for telling in found:
        lines += [
            _line(telling),
            f"      {', '.join(telling['memory_ids'][:8]) or 'no memory'}{_more(telling)}",
        ]
        lines.append(f"      {_sign(telling)}")
    return lines


def _print_telling(telling: dict[str, Any]) -> None:
    click.echo(f"{_line(telling)}, session {output.visible(telling['session_id'])}")
    click.echo(f"Memories: {', '.join(telling['memory_ids']) or 'none'}")
    click.echo(f"Used: {_sign(telling)}")
    erased = "(what it told was forgotten or erased, and is not shown)"
    click.echo(f"\n{output.visible(telling['text']) or erased}")


def _line(telling: dict[str, Any]) -> str:
    about = f" {output.one_line(telling['about'], 60)!r}" if telling["about"] else ""
    figures = ", ".join(f"{name} {_figure(value)}" for name, value in telling["reason"].items())
    because = f" because: {output.one_line(figures, 120)}" if figures else ""
    moment = f"#{telling['id']}  {output.when(telling['at'])}  {MOMENTS[telling['moment']]}{about}"
    return f"{moment}, {telling['tokens']:,} tokens{because}"


def _figure(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def _more(telling: dict[str, Any]) -> str:
    return f" and {len(telling['memory_ids']) - 8} more" if len(telling["memory_ids"]) > 8 else ""


def _sign(telling: dict[str, Any]) -> str:
    shown = f" ({output.one_line(telling['shown_by'], 80)})" if telling["shown_by"] else ""
    return SIGNS[telling["sign"]] + shown


COMMANDS = (command, why)
