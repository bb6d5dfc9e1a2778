"""A database of claude-mem as lines of an export: the rest is as for any other (intake/imports.py).

Ids are derived from claude-mem's own, so the same row is the same memory however often it is imported.
claude-mem calls a project after its folder and does not say where that lies, so no folder is attached. Its
sessions get names of their own too: a session of Claude Code that goes on belongs to the project it is in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from backstory.ids import derived
from backstory.memory import turn as turns
from backstory.memory.kinds import IMPORTANCE, OBSERVATIONS
from backstory.memory.sector import classify_observation
from backstory.memory.turn import LONGEST, Turn
from backstory.model import Summary
from backstory.safety.clean import clean_whole, without_middle
from backstory.store import claude_mem
from backstory.store.claude_mem import Row
from backstory.store.exchange import Values
from backstory.store.file.connection import Connection

TAG = "claude-mem"
TITLE, TITLE_OF_TURN = 300, 100  # characters
MOST_FILES = 10
IMPORTANCE_OF_TURN = 0.6
KINDS = {"change": "feature"}  # a change of anything; what else is not ours is a discovery
SECONDS_UNTIL = 100_000_000_000  # smaller times are not milliseconds


def lines(db: Connection) -> Iterator[tuple[str, Values]]:
    """What the database holds, each line with the table and row that it comes from."""
    for name, at in sorted(_projects(db).items()):
        yield f"project {name!r}", _project(name, at)
    sessions: dict[object, Row] = {}  # by claude-mem's second name for them
    asked: dict[tuple[str, int], str] = {}  # (session, number of the prompt) -> its turn
    for row in claude_mem.rows(db, "sdk_sessions"):
        sessions[row["memory_session_id"]] = row
        prompts = _prompts(db, row)
        yield f"sdk_sessions {row['id']}", _session(db, row, prompts)
        for prompt, until in prompts:
            line = _turn(row, prompt, until)
            asked[_session_id(row), prompt["prompt_number"]] = line["id"]
            yield f"user_prompts {prompt['id']}", line
    relations: list[tuple[str, Values]] = []
    for table, made in (("observations", _observation), ("session_summaries", _summary)):
        for row in claude_mem.rows(db, table):
            session = sessions.get(row["memory_session_id"])
            line = made(row, session)
            yield f"{table} {row['id']}", line
            turn = asked.get((_session_id(session), row["prompt_number"])) if session else None
            if turn and table == "observations":
                relations.append((f"{table} {row['id']}", _built_on(line, turn)))
    yield from relations


def _projects(db: Connection) -> dict[str, int]:
    """The names of the projects, and when the first thing in each was."""
    began: dict[str, int] = {}
    for table in ("sdk_sessions", "observations", "session_summaries"):
        for row in claude_mem.rows(db, table):
            name = _project_name(row)
            at = _at(row["started_at_epoch" if table == "sdk_sessions" else "created_at_epoch"])
            began[name] = min(at, began.get(name, at))
    return began


def _project(name: str, at: int) -> Values:
    return {
        "type": "project",
        "id": _project_id(name),
        "name": _text(name)[:200] or TAG,
        "root": "",
        "created_at": at,
        "roots": "",
        "remote": "",
        "paused_at": None,
    }


def _session(db: Connection, row: Row, asked: list[tuple[Row, int]]) -> Values:
    prompts = [
        (_text(prompt["prompt_text"]), _at(prompt["created_at_epoch"]), _turn_id(row, prompt))
        for prompt, _ in asked
    ]
    started = _at(row["started_at_epoch"])
    summaries = list(_of_session(db, "session_summaries", row))
    times = [started, _at(row["completed_at_epoch"]), *(at for _, at, _ in prompts)]
    times += [_at(one["created_at_epoch"]) for one in summaries]
    latest = max(summaries, key=lambda one: (_at(one["created_at_epoch"]), one["id"]), default=None)
    # Nobody goes on with an active one here.
    status = row["status"] if row["status"] in ("completed", "failed") else "interrupted"
    return {
        "type": "session",
        "id": _session_id(row),
        "project_id": _project_id(_project_name(row)),
        "cwd": None,
        "user_prompt": prompts[0][0] if prompts else _text(row["user_prompt"]) or None,
        "branch": None,
        "head": None,
        "status": status,
        "started_at": started,
        "last_event_at": max(times),
        "opened_at": started,
        "ended_at": _at(row["completed_at_epoch"]) or max(times),
        "summary": str(_fields(latest)) if latest else None,
        "synthesizer": None,
        "attended": 1,
        "prompts": [
            {"turn": turn, "prompt": text, "created_at": at, "forgotten_at": None}
            for text, at, turn in prompts
        ],
        "forgotten": [],
        "summary_fields": _summary_fields(latest) if latest else None,
    }


def _summary_fields(row: Row) -> Values:
    fields, at = _fields(row), _at(row["created_at_epoch"])
    return {
        **asdict(fields),
        "files_read": list(fields.files_read),
        "files_edited": list(fields.files_edited),
        "summary": str(fields),
        "made_by": "claude",
        "memory_id": _memory_id("summary", row, str(fields)),
        "created_at_epoch": at,
        "updated_at_epoch": at,
    }


def _fields(row: Row) -> Summary:
    said = {
        name: _text(row[name]) for name in ("request", "investigated", "learned", "completed", "next_steps")
    }
    files = {name: tuple(_list(row[name])) for name in ("files_read", "files_edited")}
    return Summary(**said, **files, notes=_text(row["notes"]))  # type: ignore[arg-type]


def _turn(session: Row, prompt: Row, until: int) -> Values:
    """What was asked; claude-mem keeps no answers."""
    text, at = _text(prompt["prompt_text"]), _at(prompt["created_at_epoch"])
    turn = Turn(_session_id(session), at)
    turn.prompts = [[text, turns.came_from(text)]]
    turn.ended_at, turn.state = max(at, until), turns.COMPLETE
    return _memory(
        _turn_id(session, prompt),
        session,
        session,
        at,
        kind="turn",
        sector="episodic",
        importance=IMPORTANCE_OF_TURN,
        title=turn.asked[:TITLE_OF_TURN] or None,
        content=turns.told(turn),
        source="session",
        turn_fields={
            "state": turn.state,
            "started_at": at,
            "ended_at": turn.ended_at,
            "record": json.loads(turn.record()),
            "left_open_at": None,
        },
    )


def _turn_id(session: Row, prompt: Row) -> str:
    named = prompt | {"memory_session_id": _session_id(session)}
    return _memory_id("prompt", named, _text(prompt["prompt_text"]))


def _observation(row: Row, session: Row | None) -> Values:
    kind = row["type"] if row["type"] in OBSERVATIONS else KINDS.get(row["type"], "discovery")
    facts = "\n".join(f"- {fact}" for fact in _list(row["facts"]))
    said = (row["subtitle"], row["narrative"] or row["text"], facts)
    content = "\n\n".join(text for text in map(_text, said) if text) or _text(row["title"])
    files = list(dict.fromkeys((*_list(row["files_modified"]), *_list(row["files_read"]))))[:MOST_FILES]
    return _memory(
        _memory_id("observation", row, content),
        row,
        session,
        _at(row["created_at_epoch"]),
        kind=kind,
        sector=classify_observation(kind, content),
        importance=IMPORTANCE[kind],
        title=_text(row["title"])[:TITLE] or None,
        content=content,
        source="model",
        tags=[TAG, *([_text(row["type"])] if row["type"] != kind else [])],
        concepts=_list(row["concepts"]),
        files=files,
    )


def _summary(row: Row, session: Row | None) -> Values:
    text = str(_fields(row))
    return _memory(
        _memory_id("summary", row, text),
        row,
        session,
        _at(row["created_at_epoch"]),
        kind="summary",
        sector="reflective",
        importance=IMPORTANCE["summary"],
        title=None,
        content=f"Session Summary:\n{text}",
        source="session",
        tags=[TAG],
        files=_list(row["files_edited"])[:MOST_FILES],
    )


def _memory(
    memory_id: str, row: Row, session: Row | None, at: int, *, importance: float, **fields: Any
) -> Values:
    """The line of a memory of the row's project; what its `fields` do not say is as for any new one."""
    session_id = _session_id(session) if session else None
    return {
        "type": "memory",
        "id": memory_id,
        "project_id": _project_id(_project_name(row)),
        "session_id": session_id,
        "tier": "project",
        "tags": [],
        "concepts": [],
        "files": [],
        "hashes": [None] * len(fields.get("files", ())),
        "importance": importance,
        "salience": importance,
        "access_count": 0,
        "created_at": at,
        "updated_at": at,
        "last_accessed": at,
        "valid_from": None,
        "valid_until": None,
        "deleted_at": None,
        "author": None,
        "action": None,
        "turn": None,
        "times": 1,
        "uses": [{"session_id": session_id, "usage_type": "created", "created_at": at}] if session_id else [],
        **fields,
    }


def _built_on(memory: Values, turn: str) -> Values:
    return {
        "type": "relation",
        "source_id": memory["id"],
        "target_id": turn,
        "relationship_type": "BUILDS_ON",
        "said_by": "rule",
        "confidence": 1.0,
        "created_at": memory["created_at"],
    }


def _prompts(db: Connection, session: Row) -> list[tuple[Row, int]]:
    """The prompts of a session, each with the time of the last thing that came of it."""
    column = "session_db_id" if claude_mem.has(db, "user_prompts", "session_db_id") else "content_session_id"
    key = session["id"] if column == "session_db_id" else session["content_session_id"]
    prompts = list(claude_mem.rows(db, "user_prompts", column, key))
    latest: dict[object, int] = {}
    for table in ("observations", "session_summaries") if prompts else ():
        for row in _of_session(db, table, session):
            number, at = row["prompt_number"], _at(row["created_at_epoch"])
            latest[number] = max(at, latest.get(number, 0))
    starts = [_at(prompt["created_at_epoch"]) for prompt in prompts]
    found = []
    for prompt, at in zip(prompts, starts, strict=True):
        until = latest.get(prompt["prompt_number"], at)
        found.append((prompt, min([until, *(later - 1 for later in starts if later > at)])))
    return found


def _of_session(db: Connection, table: str, session: Row) -> Iterator[Row]:
    return claude_mem.rows(db, table, "memory_session_id", session["memory_session_id"])


def _session_id(row: Row) -> str:
    """Agents other than Claude Code may have sessions of the same name."""
    agent = row["platform_source"] or "claude"
    name = _text(row["content_session_id"] or row["memory_session_id"] or row["id"])
    return f"{TAG}-{name}"[:200] if agent == "claude" else f"{TAG}-{_text(agent)}-{name}"[:200]


def _memory_id(what: str, row: Row, content: str) -> str:
    return derived(TAG, what, str(row["memory_session_id"]), str(row["id"]), content)


def _project_id(name: str) -> str:
    return derived(TAG, name, prefix="prj_")


def _project_name(row: Row) -> str:
    return str(row.get("merged_into_project") or row["project"] or TAG)


def _at(epoch: object) -> int:
    at = int(epoch) if isinstance(epoch, int | float) and 0 < epoch < float("inf") else 0
    return at * 1000 if at < SECONDS_UNTIL else at


def _text(value: object) -> str:
    return clean_whole(without_middle(str(value), LONGEST))[0].strip() if value is not None else ""


def _list(value: object) -> list[str]:
    """A list as JSON; in some versions a single text."""
    try:
        told = json.loads(value) if isinstance(value, str) and value.strip() else []
    except (ValueError, RecursionError):
        told = [value]
    entries = told if isinstance(told, list) else [told]
    return [
        text for entry in entries if (text := _text(entry if isinstance(entry, str) else json.dumps(entry)))
    ]
