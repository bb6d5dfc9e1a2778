"""Schema 6: what was queued and traced in Claude Code's own names is read as what is stored now."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backstory.capture.event import read_event
from backstory.clients import claude_code
from backstory.intake.item import item_of
from backstory.store.file import connection
from tests.helpers.chaos import NOW, event, tool_use

Json = dict[str, Any]

# (tool, input, output) as the queue had them before: texts of files were left out of the outputs
QUEUED: list[tuple[str, Json, object]] = [
    ("Read", {"file_path": "/p/a"}, {"type": "text", "file": {"filePath": "/p/a", "numLines": 1}}),
    ("Read", {"file_path": "/p/b"}, {"type": "text", "file": "odd"}),
    ("Read", {"file_path": "/p/c"}, [{"type": "text", "text": "x"}]),
    ("Edit", {"file_path": "/p/a", "old_string": 'a "old_string": b', "new_string": "c"}, {"x": 1}),
    ("MultiEdit", {"file_path": "/p/m", "edits": [{"old_string": "a", "new_string": "b"}, 7]}, {}),
    ("NotebookEdit", {"notebook_path": "/p/n", "cell_id": "c", "new_source": "x"}, {"error": ""}),
    ("Write", {"file_path": "/p/w", "content": "x"}, {"type": "create", "filePath": "/p/w"}),
    ("Write", {"file_path": "/p/v", "content": "x"}, {"type": "update", "filePath": "/p/v"}),
    ("Write", {"file_path": "/p/u", "content": "x"}, "text"),
    ("Bash", {"command": "ls"}, {"stdout": 'say "stdout": 1', "stderr": "", "interrupted": False}),
    ("Bash", {"command": "sed"}, {"stdout": "", "bashEditDiff": {"files": [], "changedFiles": ["/p/a"]}}),
    ("Bash", {"command": "sed"}, "text"),
    ("WebFetch", {"url": "http://a/", "prompt": "what"}, {"result": "x"}),
    ("AskUserQuestion", {"questions": []}, {"answers": {"Which?": "A"}}),
    ("ExitPlanMode", {}, {"plan": "# Plan"}),
    ("Agent", {"description": "look", "prompt": "x"}, {"content": [{"type": "text", "text": "x"}]}),
    ("Skill", {"skill": "verify"}, {"success": True}),
    ("mcp__x__y", {"file_path": "/p/a"}, [{"type": "text", "text": "1"}]),
    ("Novelty", {"stdout": 1}, {"stdout": "x", "file": {"filePath": "/p"}}),
]  # fmt: skip


@pytest.fixture
def old(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A store at schema 5, with a session."""
    db = sqlite3.connect(tmp_path / "backstory.db", isolation_level=None)
    db.row_factory = sqlite3.Row
    connection.apply(db, upto=5)
    db.execute("INSERT INTO projects VALUES (1, 'prj', '/p', 'p', '/p', 0, 0)")
    db.execute(
        "INSERT INTO sessions (id, project_id, status, cwd, started_at)"
        " VALUES ('s', 'prj', 'active', '/p', 0)"
    )
    yield db
    db.close()


def enqueue(db: sqlite3.Connection, at: int, tool: str, given: object, output: object) -> None:
    texts = [json.dumps(part, separators=(",", ":"), ensure_ascii=False) for part in (given, output)]
    db.execute(
        "INSERT INTO observation_queue (session_id, tool_name, tool_input, tool_output, size,"
        " created_at_epoch) VALUES ('s', ?, ?, ?, 0, ?)",
        (tool, *texts, at),
    )


def test_what_waits_is_as_if_it_were_queued_now(old: sqlite3.Connection) -> None:
    for at, queued in enumerate(QUEUED):
        enqueue(old, at, *queued)

    connection.apply(old)

    rows = old.execute("SELECT * FROM observation_queue ORDER BY created_at_epoch").fetchall()
    for row, (tool, given, output) in zip(rows, QUEUED, strict=True):
        raw = json.dumps(tool_use(tool, given, output)).encode()
        now = read_event(raw, spool_name="x", at=NOW)
        item = item_of(now)
        assert item and now.use
        assert (row["tool_name"], row["action"]) == (tool, now.use.action)
        assert json.loads(row["tool_input"]) == json.loads(item[1])
        assert json.loads(row["tool_output"]) == json.loads(item[2])


def test_a_failure_and_the_marks_stay_what_they_were(old: sqlite3.Connection) -> None:
    enqueue(old, 1, "Bash", {"command": "make"}, {"error": "Exit code 2"})
    enqueue(old, 2, "PROMPT", {"prompt": 'what is "file_path":?'}, {})
    enqueue(old, 3, "COMPACT", {"summary": "so far"}, {})
    enqueue(old, 4, "CHECKPOINT", {}, {})
    enqueue(old, 5, "FINALIZE", {}, {"last_assistant_message": "Done."})

    connection.apply(old)

    rows = old.execute("SELECT * FROM observation_queue ORDER BY created_at_epoch").fetchall()
    assert [
        (row["action"], json.loads(row["tool_input"]), json.loads(row["tool_output"])) for row in rows
    ] == [
        ("shell", {"command": "make"}, {"error": "Exit code 2"}),
        (None, {"prompt": 'what is "file_path":?'}, {}),
        (None, {"summary": "so far"}, {}),
        (None, {}, {}),
        (None, {}, {"last_message": "Done."}),
    ]
    stop = read_event(
        json.dumps(event("Stop", last_assistant_message="Done.")).encode(), spool_name="x", at=NOW
    )
    item = item_of(stop)
    assert item and json.loads(item[2]) == {"last_message": "Done."}


def test_traces_get_their_action(old: sqlite3.Connection) -> None:
    traces = {tool: f"Tool: {tool}\nInput: x" for tool in (*claude_code.TOOLS, "mcp__x__y", "Novelty")}
    traces |= {"a failed one": "Tool: Edit\nEdited file: /p/Edit\nFailed: no", "a lone line": "Tool: Edit"}
    for number, (name, content) in enumerate(traces.items()):
        old.execute(
            "INSERT INTO memories (row, id, project_id, session_id, kind, sector, tier, content, files,"
            " salience, created_at, updated_at, last_accessed) VALUES (?1, ?2, 'prj', 's', 'tool',"
            " 'episodic', 'session', ?3, ?4, 0.3, ?1, ?1, ?1)",
            (1 << 32 | number, name, content, json.dumps([f"/p/{name}"])),
        )

    connection.apply(old)

    found = {row["id"]: row["action"] for row in old.execute("SELECT id, action FROM memories")}
    assert found == {
        **{
            tool: claude_code.tool_use(tool, {}, {}).action
            for tool in (*claude_code.TOOLS, "mcp__x__y", "Novelty")
        },
        "a failed one": "edit",
        "a lone line": "other",
    }


def test_a_trace_that_was_archived_has_its_action_too(old: sqlite3.Connection) -> None:
    traces = {
        "a": "Tool: Edit\nEdited file: /p/a",
        "b": "Tool: mcp__x__y\nInput: {}",
        "c": "Tool: New\nInput: {}",
    }
    for name, content in traces.items():
        memory = json.dumps({"kind": "tool", "content": content})
        old.execute("INSERT INTO archived_memories VALUES (?, 'prj', 0, ?)", (name, memory))
    note = json.dumps({"kind": "note", "content": "Tool: Edit\nis a name"})
    old.execute("INSERT INTO archived_memories VALUES ('d', 'prj', 0, ?)", (note,))
    connection.apply(old)
    rows = old.execute("SELECT memory ->> 'action' FROM archived_memories ORDER BY id").fetchall()
    assert [row[0] for row in rows] == ["edit", "mcp", "other", None]
