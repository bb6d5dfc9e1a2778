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
from backstory.safety import fence
from backstory.store import life, memories, projects, sessions, stats, tellings, turns
from backstory.store.file.connection import Connection
from backstory.surfaces.cli import common, output
from backstory.surfaces.cli.common import json_option, project_option, store

DAY_MS = 24 * 3_600_000
EXAMPLES = 3
RECALL = "recall"  # what answered a search that the user typed; the others are tools of the model
MOMENTS = {
    tellings.START: "at the start of a session",
    tellings.COMPACT: "after the conversation was compacted",
    tellings.PROMPT: "with a prompt",
    tellings.FILE: "about a file that it opened",
    tellings.FAILURE: "about a test that failed",
    tellings.SUBAGENT: "with the task of a subagent",
    tellings.SEARCH: "because it searched",
}
SIGNS = {
    usage.ID: "for certain: the model named its id",
    usage.FILE: "probably: the model then opened a file that only the memory named",
    usage.PERHAPS: "perhaps: a rare word of it came back in what the model did or answered",
    usage.NONE: "no sign of it in what came next",
    usage.TOO_EARLY: "too new to say: no turn has ended since",
    usage.TOO_LATE: "nothing to see: the session ended, and no turn came after it",
}
UNKNOWN = (
    "What cannot be known: whether the model would have opened a file anyway, whether it read a text and left"
    " no sign, and how the session would have gone without memory."
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

    Used is what can be checked in the same turn or the next: the model named a told memory's id, or opened a
    file that only the memory named. `backstory why ID` shows each case."""
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
    return usage.sign_of_use(
        telling.memory_ids,
        stats.files_of(db, telling),
        telling.text,
        done,
        before,
        lambda word: stats.is_rare(db, word),
        has_ended=done is None and _has_ended(db, telling.session_id),
    )


def _has_ended(db: Connection, session_id: str) -> bool:
    session = sessions.by_ids(db, [session_id]).get(session_id)
    return session is not None and session.ended_at is not None


def _print(counted: dict[str, Any]) -> None:
    period = "" if counted["days"] is None else f", last {output.number_of(counted['days'], 'day', 'days')}"
    output.say(f"{output.visible(counted['of'])}{period}\n")
    captured, number_of = counted["captured"], output.number_of
    output.say(
        f"Captured: {number_of(captured['sessions'], 'session', 'sessions')} with"
        f" {number_of(captured['turns'], 'turn', 'turns')} (a prompt and all that was done for it), from"
        f" {number_of(captured['events'], 'event', 'events')} that Claude Code reported."
    )
    output.say(
        f"Learned from them: {number_of(captured['facts'], 'fact', 'facts')} (decisions, fixes,"
        f" preferences); noted on request: {number_of(captured['notes'], 'note', 'notes')}.\n"
    )
    told = counted["told"]
    if not told:
        output.say("Told: nothing yet. A session is told something at its start, and where it searches.")
        return
    many, tokens = (sum(one[figure] for one in told.values()) for figure in ("times", "tokens"))
    output.say(f"Told the model {number_of(many, 'text', 'texts')}, about {tokens:,} tokens:")
    for moment, figures in told.items():
        what = number_of(figures["times"], "brief", "briefs") if moment == tellings.START else None
        each = f", about {figures['tokens']:,} tokens"
        output.say(f"  {what or format(figures['times'], ',')} {MOMENTS[moment]}{each}", indent=4)
    signs = Counter[str]()
    for figures in told.values():
        signs.update(figures["signs"])
    output.say("\nUsed, as far as what the model did in that turn or the next one shows:")
    for sign, sentence in SIGNS.items():
        if signs[sign] or sign not in (usage.TOO_EARLY, usage.TOO_LATE):
            chance = f" (by chance alone one would expect about {counted['file_by_chance']})"
            output.say(f"  {signs[sign]:,} {sentence}{chance if sign == usage.FILE else ''}", indent=4)
    _print_again(counted["again"])
    output.say(f"\n{UNKNOWN}")


def _print_again(again: dict[str, Any]) -> None:
    if any(found["times"] for found in again.values()):
        output.say("\nFound again although memory knew it, because the session was not told:")
    for what, many, sentence in (
        ("error", "errors", "that an earlier session had met and mended"),
        ("search", "searches", "that an earlier session had made"),
    ):
        found = again[what]
        if found["times"]:
            examples = ", for example" if found["times"] > len(found["examples"]) else ""
            output.say(f"  {output.number_of(found['times'], what, many)} {sentence}{examples}:", indent=4)
        for one in found["examples"]:
            text = output.one_line(one["text"], 80)
            output.say(f"    {text}  (in session {one['session_id'][:8]}; known from {one['known']})")


# --- why ----------------------------------------------------------------------------------------------------


@click.command()
@click.argument("known", metavar="[ID]", required=False)
@project_option
@json_option
def why(known: str | None, project: str, as_json: bool) -> None:
    """Show where a memory comes from, and who was told of it.

    When and why a model was told is shown as well. ID is a memory, a session, or the number of a telling;
    without one, the session that this command is run in, else the last one of this project."""
    with store() as (db, now):
        given = known or claude_code.session_id(os.environ) or _last_session(db, project)
        about, lines = explained(db, given, project, now, is_here=not known)
    if as_json:
        return output.as_json(about)
    if not about:
        raise errors.NotFound(lines[0])
    for line in lines:
        output.say(line, indent=6)
    return None


def explained(
    db: Connection, given: str, project: str, now: int, *, is_here: bool = False
) -> tuple[Any, list[str]]:
    """What is known of a telling, a session or a memory, for a script and as lines."""
    number = given.removeprefix("#")
    if number.isdecimal() and len(number) < 10 and (telling := tellings.by_number(db, int(number))):
        told = _plain(db, telling)
        return told, _telling_lines(told)
    if number != given:
        raise errors.NotFound(
            f"There is no telling {given}; `backstory why SESSION` lists those of a session."
        )
    if session_id := _session(db, given, is_here=is_here):
        found = [_plain(db, one) for one in tellings.since(db, 0, session_id=session_id)]
        return found, _lines_of_session(session_id, found)
    memory = memories.get(db, common.memory_id(db, given, project, anywhere=True), now)
    if memory is None:
        raise errors.NotFound(f"{given} is archived; `backstory restore {given}` brings it back")
    about = _origin(db, memory)
    about["told"] = [_plain(db, one) for one in tellings.of_memory(db, memory.id)]
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
        lines += [f"      {line}" for line in (*_reasons(one, memory.id), _sign(one))]
    return lines


def _lines_of_session(session_id: str, found: Sequence[dict[str, Any]]) -> list[str]:
    if not found:
        return [f"Nothing was told in session {output.visible(session_id)}, or it was forgotten."]
    more = "`backstory why NUMBER` shows a text whole, `backstory why ID` what is known of a memory."
    return [f"Session {output.visible(session_id)}:", *_session_lines(found), more]


def session_lines(db: Connection, found: Sequence[TellingRecord]) -> list[str]:
    """What a session was told, for a model that is asked about it."""
    return _session_lines([_plain(db, telling) for telling in found])


def _session_lines(found: Sequence[dict[str, Any]]) -> list[str]:
    total = sum(telling["tokens"] for telling in found)
    lines = [f"It was told {output.number_of(len(found), 'text', 'texts')}, about {total:,} tokens:"]
    for one in found:
        lines += [_line(one), f"      {', '.join(one['memory_ids'][:8]) or 'no memory'}{_more(one)}"]
        lines += [f"      {line}" for line in (*_reasons(one), _sign(one))]
    return lines


def _telling_lines(one: dict[str, Any]) -> list[str]:
    lines = [
        f"{_line(one)}, session {output.visible(one['session_id'])}",
        f"Memories: {', '.join(one['memory_ids']) or 'none'}",
    ]
    lines += [line[:1].upper() + line[1:] for line in (*_reasons(one), _sign(one))]
    erased = "(what it told was forgotten or erased, and is not shown)"
    return [*lines, "", *(output.visible(fence.unfenced(one["text"])) or erased).splitlines()]


def _line(one: dict[str, Any]) -> str:
    about = f" '{output.one_line(one['about'], 60)}'" if one["about"] else ""
    moment = "with a search of yours" if one["reason"].get("tool") == RECALL else MOMENTS[one["moment"]]
    return f"#{one['id']}  {output.when(one['at'])}  {moment}{about}, {one['tokens']:,} tokens"


def _reasons(one: dict[str, Any], memory_id: str | None = None) -> list[str]:
    """Why it was told, in plain words; with an id, only of that memory. --json has the figures."""
    reason, moment = one["reason"], one["moment"]
    earlier = _earlier(reason)
    if moment == tellings.FILE:
        return [f"because the file was edited there{earlier}"]
    if moment == tellings.FAILURE:
        return [f"because this test failed before and passed there{earlier}"]
    if reason.get("tool") == RECALL:
        return ["because you asked (/backstory:recall)"]
    if moment == tellings.SEARCH:
        asked = f"with {output.one_line(str(reason['tool']), 60)}" if "tool" in reason else ""
        return [f"because the model asked {asked}".rstrip()]
    if moment not in (tellings.PROMPT, tellings.SUBAGENT):
        return []
    said = "prompt" if moment == tellings.PROMPT else "task"
    lines = []
    for known, figures in reason.items():
        if isinstance(figures, dict) and memory_id in (None, known):
            where = "on this branch" if figures.get("branch") else "in a session of yours"
            covers = figures.get("covers")
            words = f"; its words cover {covers * 100:.0f} % of the {said}" if covers else ""
            whose = f"{known}: " if memory_id is None and len(reason) > 1 else ""
            lines.append(f"{whose}because it was made {where}{_earlier(figures)}{words}")
    return lines


def _earlier(figures: dict[str, Any]) -> str:
    days = figures.get("days")
    if not isinstance(days, int | float):
        return ""
    return f", {output.number_of(round(days), 'day', 'days')} earlier" if days >= 1 else ", within a day"


def _more(telling: dict[str, Any]) -> str:
    return f" and {len(telling['memory_ids']) - 8} more" if len(telling["memory_ids"]) > 8 else ""


def _sign(one: dict[str, Any]) -> str:
    shown = f" ({output.one_line(one['shown_by'], 80)})" if one["shown_by"] else ""
    is_known = one["sign"] in (usage.ID, usage.FILE, usage.PERHAPS)
    return f"{'used ' if is_known else ''}{SIGNS[one['sign']]}{shown}"


COMMANDS = (command, why)
