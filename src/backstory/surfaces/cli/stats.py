"""`backstory stats` and `backstory why`: what was captured, what a model was told and asked for, what it all
cost; and of each text when and why it was told."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import click

from backstory import errors, paths
from backstory.clients import claude_code
from backstory.model import Memory, Session, TellingRecord
from backstory.safety import fence
from backstory.store import life, memories, projects, sessions, spend, stats, tellings, turns
from backstory.store.file.connection import Connection
from backstory.surfaces.cli import common
from backstory.surfaces.cli.common import prints, project_option, store
from backstory.surfaces.shapes import WRAP, Line, Reply, Shown, number_of, one_line, when

DAY_MS = 24 * 3_600_000
RECALL = "recall"  # what answered a search that the user typed; the others are tools of the model
MOMENTS = {
    tellings.START: "at the start of a session",
    tellings.COMPACT: "after the conversation was compacted",
    tellings.PROMPT: "with a prompt",
    tellings.FILE: "about a file that it opened",
    tellings.FAILURE: "about a test that failed",
    tellings.SEARCH: "because it searched",
}


@click.command("stats")
@project_option
@click.option("--everywhere", is_flag=True, help="All projects, not only this one.")
@click.option("--session", "session", metavar="ID", help="Only this session.")
@click.option(
    "--days", default=30, show_default=True, type=click.IntRange(1, 3660), help="How many days back."
)
@prints
def command(project: str, everywhere: bool, session: str | None, days: int) -> Reply:
    """Count what was captured, told, asked and spent.

    `backstory why` shows each text that was told, and why."""
    with store() as (db, now):
        session_id = common.session_id(db, session) if session else None
        here = None if everywhere or session_id else projects.at(db, paths.place(project))
        if not (everywhere or session_id or here):
            raise errors.NotFound(common.nothing(db, "Nothing is stored of this folder.", project))
        since = 0 if session_id else now - days * DAY_MS
        name = here.name if here else f"session {session_id}" if session_id else "all projects"
        with common.busy("counting"):
            counted = count(db, since, here.id if here else None, session_id)
    value = {"of": name, "days": None if session_id else days, **counted}
    return Reply(value, _shown(value))


def count(
    db: Connection, since: int, project_id: str | None, session_id: str | None = None
) -> dict[str, Any]:
    """All figures; without a project, of all of them."""
    chosen = (since, project_id, session_id)
    told = tellings.counts(db, *chosen)
    asked = told.pop(tellings.SEARCH, {"times": 0, "tokens": 0})
    return {
        "captured": stats.captured(db, *chosen),
        "told": {moment: told[moment] for moment in MOMENTS if moment in told},
        "asked": asked,
        "spent": {"usd": spend.since(db, *chosen)},
    }


def _shown(counted: dict[str, Any]) -> Iterator[Shown]:
    period = "" if counted["days"] is None else f", last {number_of(counted['days'], 'day', 'days')}"
    yield f"{counted['of']}{period}"
    yield ""
    captured = counted["captured"]
    yield (
        f"Captured: {number_of(captured['sessions'], 'session', 'sessions')} with"
        f" {number_of(captured['turns'], 'turn', 'turns')} (a prompt and all that was done for it), from"
        f" {number_of(captured['events'], 'event', 'events')} that Claude Code reported."
    )
    yield (
        f"Learned from them: {number_of(captured['facts'], 'fact', 'facts')} (decisions, fixes,"
        f" preferences); noted on request: {number_of(captured['notes'], 'note', 'notes')}."
    )
    yield ""
    told, asked = counted["told"], counted["asked"]
    if told:
        many, tokens = (sum(one[figure] for one in told.values()) for figure in ("times", "tokens"))
        yield f"Told the model {number_of(many, 'text', 'texts')} unasked, about {tokens:,} tokens:"
    else:
        yield "Told: nothing yet. A session is told something at its start."
    for moment, figures in told.items():
        what = number_of(figures["times"], "brief", "briefs") if moment == tellings.START else None
        each = f", about {figures['tokens']:,} tokens"
        yield Line((f"  {what or format(figures['times'], ',')} {MOMENTS[moment]}{each}",), WRAP, 4)
    yield (
        f"Asked: it searched {number_of(asked['times'], 'time', 'times')}, and was answered about"
        f" {asked['tokens']:,} tokens."
    )
    yield ""
    yield f"Spent: ${counted['spent']['usd']:,.4f} on the model that writes memories."


# --- why ----------------------------------------------------------------------------------------------------


@click.command()
@click.argument("known", metavar="[ID]", required=False)
@project_option
@prints
def why(known: str | None, project: str) -> Reply:
    """Show where a memory comes from, and who was told of it.

    When and why a model was told is shown as well. ID is a memory, a session, or the number of a telling;
    without one, the session that this command is run in, else the last one of this project."""
    with store() as (db, now):
        given = known or claude_code.session_id(os.environ) or _last_session(db, project)
        about, lines = explained(db, given, project, now, is_here=not known)
    if not about:
        return Reply(about, no=lines[0])
    return Reply(about, [Line((line,), WRAP, 6) for line in lines])


def explained(
    db: Connection, given: str, project: str, now: int, *, is_here: bool = False
) -> tuple[Any, list[str]]:
    """What is known of a telling, a session or a memory, for a script and as lines."""
    number = given.removeprefix("#")
    if number.isdecimal() and len(number) < 10 and (telling := tellings.by_number(db, int(number))):
        return telling, _telling_lines(telling)
    if number != given:
        raise errors.NotFound(
            f"There is no telling {given}; `backstory why SESSION` lists those of a session."
        )
    if session_id := _session(db, given, is_here=is_here):
        found = list(tellings.since(db, 0, session_id=session_id))
        return found, _lines_of_session(session_id, found)
    memory = memories.get(db, common.memory_id(db, given, project, anywhere=True), now)
    if memory is None:
        raise errors.NotFound(f"{given} is archived; `backstory restore {given}` brings it back")
    about = _origin(db, memory)
    about["told"] = list(tellings.of_memory(db, memory.id))
    return about, _memory_lines(memory, about)


def _last_session(db: Connection, project: str) -> str:
    here = projects.at(db, paths.place(project))
    for session in sessions.recent(db, here.id, 1) if here else []:
        return session.id
    sentence = "No sessions here yet. They appear with the first Claude Code session."
    raise errors.NotFound(common.nothing(db, sentence, project))


def _session(db: Connection, given: str, *, is_here: bool) -> str | None:
    """The session that is meant; one of which nothing is stored yet may have been told something."""
    if is_here or tellings.since(db, 0, session_id=given):
        return given
    found = [one.id for one in sessions.starting_with(db, given)] if len(given) > 3 else []
    return common.only("session", given, found, "backstory sessions") if found else None


def _origin(db: Connection, memory: Memory) -> dict[str, Any]:
    turn = memory.id if memory.kind == "turn" else turns.holding(db, memory.id)
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
    lines = [f"{memory.id}  {memory.kind}  {one_line(memory.title or memory.content, 100)}"]
    came = f"{SOURCES.get(memory.source, memory.source)}, {when(memory.created_at)}"
    if memory.session_id:
        came += f", in session {memory.session_id}"
    if about["turn"] and about["turn"] != memory.id:
        came += f", turn {about['turn']}"
    lines.append(f"From: {came}")
    if about["built_on"]:
        lines.append(f"Rests on: {', '.join(about['built_on'])}")
    if not about["told"]:
        lines.append("Told: never")
    for one in about["told"]:
        lines.append(f"Told: {_line(one)}, session {one.session_id[:8]}")
        lines += [f"      {line}" for line in _reasons(one, memory.id)]
    return lines


def _lines_of_session(session_id: str, found: Sequence[TellingRecord]) -> list[str]:
    if not found:
        return [f"Nothing was told in session {session_id}, or it was forgotten."]
    more = "`backstory why NUMBER` shows a text whole, `backstory why ID` what is known of a memory."
    return [f"Session {session_id}:", *session_lines(found), more]


def session_lines(found: Sequence[TellingRecord]) -> list[str]:
    """What a session was told."""
    total = sum(telling.tokens for telling in found)
    lines = [f"It was told {number_of(len(found), 'text', 'texts')}, about {total:,} tokens:"]
    for one in found:
        lines += [_line(one), f"      {', '.join(one.memory_ids[:8]) or 'no memory'}{_more(one)}"]
        lines += [f"      {line}" for line in _reasons(one)]
    return lines


def _telling_lines(one: TellingRecord) -> list[str]:
    lines = [
        f"{_line(one)}, session {one.session_id}",
        f"Memories: {', '.join(one.memory_ids) or 'none'}",
    ]
    lines += [line[:1].upper() + line[1:] for line in _reasons(one)]
    erased = "(what it told was forgotten or erased, and is not shown)"
    return [*lines, "", *(fence.unfenced(one.text) or erased).splitlines()]


def _line(one: TellingRecord) -> str:
    about = f" '{one_line(one.about, 60)}'" if one.about else ""
    moment = "with a search of yours" if one.reason.get("tool") == RECALL else MOMENTS[one.moment]
    return f"#{one.id}  {when(one.at)}  {moment}{about}, {one.tokens:,} tokens"


def _reasons(one: TellingRecord, memory_id: str | None = None) -> list[str]:
    """Why it was told, in plain words; with an id, only of that memory. --json has the figures."""
    reason, moment = one.reason, one.moment
    earlier = _earlier(reason)
    if moment == tellings.FILE:
        return [f"because the file was edited there{earlier}"]
    if moment == tellings.FAILURE:
        return [f"because this test failed before and passed there{earlier}"]
    if reason.get("tool") == RECALL:
        return ["because you asked (/backstory:recall)"]
    if moment == tellings.SEARCH:
        asked = f"with {one_line(str(reason['tool']), 60)}" if "tool" in reason else ""
        return [f"because the model asked {asked}".rstrip()]
    if moment != tellings.PROMPT:
        return []
    lines = []
    for known, figures in reason.items():
        if isinstance(figures, dict) and memory_id in (None, known):
            where = "on this branch" if figures.get("branch") else "in a session of yours"
            covers = figures.get("covers")
            words = f"; its words cover {covers * 100:.0f} % of the prompt" if covers else ""
            whose = f"{known}: " if memory_id is None and len(reason) > 1 else ""
            lines.append(f"{whose}because it was made {where}{_earlier(figures)}{words}")
    return lines


def _earlier(figures: dict[str, Any]) -> str:
    days = figures.get("days")
    if not isinstance(days, int | float):
        return ""
    return f", {number_of(round(days), 'day', 'days')} earlier" if days >= 1 else ", within a day"


def _more(telling: TellingRecord) -> str:
    return f" and {len(telling.memory_ids) - 8} more" if len(telling.memory_ids) > 8 else ""
