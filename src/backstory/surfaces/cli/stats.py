"""`backstory stats` and `backstory why`: what was captured, what a model was told and why, and what it did
with that. What cannot be known is said, and nothing is called a saving: nobody knows how a session would have
gone without."""

from __future__ import annotations

import os
from collections import Counter
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
    told = tellings.since(db, since, project_id, session_id)
    signs, by_chance = [], 0
    for one in told:
        done, before = stats.done_after(db, one)
        signs.append(_sign_of(db, one, done, before)[0])
        by_chance += bool(done and usage.opened(stats.files_of_others(db, one), done, before))
    by_moment = {}
    for moment in MOMENTS:
        of_moment = [
            (one.tokens, sign) for one, sign in zip(told, signs, strict=True) if one.moment == moment
        ]
        if of_moment:
            sizes = [size for size, _ in of_moment]
            by_moment[moment] = {
                "times": len(sizes),
                "tokens": sum(sizes),
                "median": int(median(sizes)),
                "signs": {sign: [one for _, one in of_moment].count(sign) for sign in usage.SIGNS},
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
    chosen = [project_id] if project_id else [one.id for one in projects.every(db)]
    told: dict[str, list[TellingRecord]] = {}
    for one in tellings.since(db, 0, project_id):
        told.setdefault(one.session_id, []).append(one)

    def was_told(session: str, until: int) -> set[str]:
        return {known for one in told.get(session, ()) if one.at <= until for known in one.memory_ids}

    return [
        again
        for one in chosen
        for again in usage.found_again(stats.worked(db, one), since, was_told, session_id)
    ]


def used(db: Connection, told: TellingRecord) -> tuple[str, str]:
    """The sign that a model used what it was told, and what shows it."""
    return _sign_of(db, told, *stats.done_after(db, told))


def _sign_of(
    db: Connection, told: TellingRecord, done: usage.Done | None, before: frozenset[str]
) -> tuple[str, str]:
    files = stats.files_of(db, told)
    return usage.sign_of_use(
        told.memory_ids, files, told.text, done, before, lambda word: stats.is_rare(db, word)
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
        about, lines = explained(db, given, project, now, is_here=known is None)
    if as_json:
        return output.as_json(about)
    if not about:
        raise errors.NotFound(lines[0])
    return click.echo("\n".join(lines))


def explained(
    db: Connection, given: str, project: str, now: int, *, is_here: bool = False
) -> tuple[Any, list[str]]:
    """What is known of a telling, a session or a memory, for a script and as lines."""
    if given.isdecimal() and len(given) < 10 and (telling := tellings.by_number(db, int(given))):
        told = _told(db, telling)
        return told, _telling_lines(told)
    if session_id := _session(db, given, is_here=is_here):
        found = [_told(db, one) for one in tellings.since(db, 0, session_id=session_id)]
        return found, _lines_of_session(session_id, found)
    memory = memories.get(db, common.memory_id(db, given, project, anywhere=True), now)
    if memory is None:
        raise errors.NotFound(f"{given} is archived; `backstory restore {given}` brings it back")
    about = _origin(db, memory)
    about["told"] = [_told(db, one) for one in tellings.of_memory(db, memory.id)]
    return about, _memory_lines(memory, about)


def _session(db: Connection, given: str, *, is_here: bool) -> str | None:
    """The session that is meant; one of which nothing is stored yet may have been told something."""
    if is_here or tellings.since(db, 0, session_id=given):
        return given
    found = [one.id for one in sessions.starting_with(db, given)] if len(given) > 3 else []
    return common.only("session", given, found, "backstory sessions") if found else None


def _told(db: Connection, one: TellingRecord) -> dict[str, Any]:
    sign, shown_by = used(db, one)
    return {**asdict(one), "sign": sign, "shown_by": shown_by}


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


def _memory_lines(memory: Memory, about: dict[str, Any]) -> list[str]:
    lines = [f"{memory.id}  {memory.kind}  {output.one_line(memory.title or memory.content, 100)}"]
    came = f"{SOURCES.get(memory.source, memory.source)}, {output.when(memory.created_at)}"
    if memory.session_id:
        came += f", in session {output.visible(memory.session_id)}"
    if about["turn"] and about["turn"] != memory.id:
        came += f", turn {about['turn']}"
    lines.append(f"From: {came}")
    if about["built_on"]:
        lines.append(f"Rests on: {', '.join(about['built_on'])}")
    if not about["told"]:
        lines.append("Told: never, since tellings are noted")
    for one in about["told"]:
        lines.append(f"Told: {_line(one)}, session {output.visible(one['session_id'][:8])}")
        lines.append(f"      {_sign(one)}")
    return lines


def _lines_of_session(session_id: str, found: Sequence[dict[str, Any]]) -> list[str]:
    if not found:
        return [f"Nothing was told in session {output.visible(session_id)}, or it was forgotten."]
    more = "`backstory why NUMBER` shows a text whole, `backstory why ID` what is known of a memory."
    return [f"Session {output.visible(session_id)}:", *_session_lines(found), more]


def session_lines(db: Connection, found: Sequence[TellingRecord]) -> list[str]:
    """What a session was told, for a model that is asked about it."""
    return _session_lines([_told(db, one) for one in found])


def _session_lines(found: Sequence[dict[str, Any]]) -> list[str]:
    total = sum(one["tokens"] for one in found)
    lines = [f"It was told {output.number_of(len(found), 'text', 'texts')}, about {total:,} tokens:"]
    for one in found:
        lines += [_line(one), f"      {', '.join(one['memory_ids'][:8]) or 'no memory'}{_more(one)}"]
        lines.append(f"      {_sign(one)}")
    return lines


def _telling_lines(one: dict[str, Any]) -> list[str]:
    gone = "(what it told was forgotten or erased, and is not shown)"
    return [
        f"{_line(one)}, session {output.visible(one['session_id'])}",
        f"Memories: {', '.join(one['memory_ids']) or 'none'}",
        f"Used: {_sign(one)}",
        f"\n{output.visible(one['text']) or gone}",
    ]


def _line(one: dict[str, Any]) -> str:
    about = f" {output.one_line(one['about'], 60)!r}" if one["about"] else ""
    figures = ", ".join(f"{name} {_figure(value)}" for name, value in one["reason"].items())
    because = f" because: {output.one_line(figures, 120)}" if figures else ""
    told = f"#{one['id']}  {output.when(one['at'])}  {MOMENTS[one['moment']]}{about}"
    return f"{told}, {one['tokens']:,} tokens{because}"


def _figure(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def _more(one: dict[str, Any]) -> str:
    return f" and {len(one['memory_ids']) - 8} more" if len(one["memory_ids"]) > 8 else ""


def _sign(one: dict[str, Any]) -> str:
    shown = f" ({output.one_line(one['shown_by'], 80)})" if one["shown_by"] else ""
    return SIGNS[one["sign"]] + shown


COMMANDS = (command, why)
