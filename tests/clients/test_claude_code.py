"""Payloads of Claude Code, as the present client sends them, become canonical events and actions."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from backstory.clients import canonical, claude_code
from backstory.errors import BadPayload
from backstory.store import queue
from backstory.store.file.connection import connect
from tests.helpers.growth import assert_linear

Json = dict[str, Any]
HERE = {"session_id": "s1", "transcript_path": "/t/s1.jsonl", "cwd": "/p", "prompt_id": "q1"}
TOOL = {**HERE, "permission_mode": "default", "tool_use_id": "u1", "duration_ms": 5}


def read(name: str, **fields: object) -> canonical.Event:
    return claude_code.read({**HERE, "hook_event_name": name, **fields})


def used(tool: str, given: Json, response: object) -> canonical.Use:
    fields = {**TOOL, "tool_name": tool, "tool_input": given, "tool_response": response}
    event = claude_code.read({**fields, "hook_event_name": "PostToolUse"})
    assert event.kind == canonical.TOOL_USE and event.id == "u1" and event.use
    return event.use


def failed(tool: str, given: Json, error: str) -> canonical.Use:
    fields = {**TOOL, "tool_name": tool, "tool_input": given, "error": error, "is_interrupt": False}
    event = claude_code.read({**fields, "hook_event_name": "PostToolUseFailure"})
    assert event.kind == canonical.TOOL_FAILURE and event.id == "u1" and event.use
    return event.use


# --- events -------------------------------------------------------------------------------------------------

EVENTS: list[tuple[str, Json, Json]] = [
    ("SessionStart", {"source": "resume"}, {"kind": canonical.SESSION_START, "source": "resume", "id": None}),
    ("UserPromptSubmit", {"prompt": "mend it"}, {"kind": canonical.PROMPT, "text": "mend it", "id": "q1"}),
    ("UserPromptSubmit", {"prompt": ""}, {"kind": canonical.PROMPT, "text": ""}),
    (
        "UserPromptSubmit",
        {"prompt": "\n <task-notification>\n<task-id>7</task-id> done"},
        {"kind": canonical.NOTIFICATION, "id": "q1"},
    ),
    ("PreCompact", {"trigger": "manual"}, {"kind": canonical.COMPACTION_START, "text": ""}),
    ("PostCompact", {"compact_summary": "so far"}, {"kind": canonical.COMPACTION, "text": "so far"}),
    (
        "Stop",
        {"stop_hook_active": False, "last_assistant_message": "Done."},
        {"kind": canonical.TURN_END, "text": "Done.", "id": "q1", "is_sent_on": False},
    ),
    ("Stop", {"stop_hook_active": True}, {"kind": canonical.TURN_END, "text": "", "is_sent_on": True}),
    ("SubagentStop", {"agent_id": "a1"}, {"agent": "a1"}),
    (
        "SubagentStop",
        {"agent_id": "a1", "agent_type": "Explore", "last_assistant_message": "found it"},
        {"kind": canonical.SUBAGENT_END, "agent": "Explore", "text": ""},
    ),
    ("SubagentStop", {"agent_type": ""}, {"kind": canonical.SUBAGENT_END, "agent": ""}),
    ("SessionEnd", {"reason": "clear"}, {"kind": canonical.SESSION_END}),
]


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        ("<analysis>\nhm\n</analysis>\n<summary>\n1. All user messages:\n - a\n2. So:\n b", "2. So:\n b"),
        ("thoughts\nSummary:\nso far", "so far"),
        ("<analysis>never ends", "<analysis>never ends"),
        ("so far", "so far"),
    ],
)
def test_a_summary_of_a_compaction_is_kept_without_thoughts_and_messages(summary: str, expected: str) -> None:
    assert claude_code.without_messages(summary) == expected


def test_to_look_for_thoughts_takes_time_in_proportion() -> None:
    assert_linear(claude_code.without_messages, "<analysis>" * 2_000, "<analysis>" * 8_000)


@pytest.mark.parametrize(("name", "fields", "expected"), EVENTS)
def test_a_payload_is_a_canonical_event(name: str, fields: Json, expected: Json) -> None:
    event = read(name, **fields)
    assert (event.name, event.session_id, event.cwd, event.use) == (name, "s1", "/p", None)
    assert {slot: getattr(event, slot) for slot in expected} == expected


def test_every_event_of_the_client_is_read() -> None:
    assert {name for name, *_ in EVENTS} | {"PostToolUse", "PostToolUseFailure"} == set(claude_code.EVENTS)
    assert {event for event in canonical.EVENTS if event != canonical.NOTIFICATION} == set(
        claude_code.EVENTS.values()
    )


def test_a_turn_that_was_sent_on_says_so() -> None:
    assert claude_code.is_sent_on({"stop_hook_active": True})
    assert not claude_code.is_sent_on({"stop_hook_active": False})
    assert not any(map(claude_code.is_sent_on, ({}, None, [True], "stop_hook_active")))


@pytest.mark.parametrize(
    ("tool", "result", "text"),
    [
        ("ExitPlanMode", {"plan": "# Plan", "isAgent": False}, "# Plan"),
        ("ExitPlanMode", {"plan": "# Plan", "isAgent": True}, ""),
        ("ExitPlanMode", {"plan": 7}, ""),
        ("ExitPlanMode", "approved", ""),
        ("TodoWrite", {"plan": "# Plan"}, ""),
    ],
)
def test_only_an_approved_plan_is_said(tool: str, result: object, text: str) -> None:
    given = {"tool_name": tool, "tool_input": {}, "tool_response": result, "tool_use_id": "u1"}
    assert read("PostToolUse", **given).text == text


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"hook_event_name": "PreBreakfast"}, "unknown event 'PreBreakfast'"),
        ({"hook_event_name": "ghp_0123456789abcdefghij"}, "unknown event"),
        ({"hook_event_name": "user: bob\npass: swordfish"}, "unknown event"),
        ({"session_id": ""}, "session_id is empty"),
        ({"cwd": "p"}, "cwd is not an absolute path"),
        ({"cwd": "/" + "x" * 5_000}, "cwd has 5,001 characters"),
        ({"tool_name": 7}, "tool_name is not a string but int"),
        ({"tool_input": "ls"}, "tool_input is not an object"),
        ({"tool_use_id": ""}, "tool_use_id is empty"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(changes: Json, reason: str) -> None:
    good = {**TOOL, **claude_code.shell_use("s1", "/p", "u1", "ls", "")}
    assert claude_code.read(good).use
    with pytest.raises(BadPayload, match=f"^{reason}$"):
        claude_code.read({**good, **changes})


def test_older_names_of_a_result_are_understood_and_none_at_all_is_refused() -> None:
    good = {**TOOL, "hook_event_name": "PostToolUse", "tool_name": "X", "tool_input": {}}
    for field in ("tool_response", "tool_result", "tool_output"):
        use = claude_code.read({**good, field: "r"}).use
        assert use and use.result == "r"
    with pytest.raises(BadPayload, match=r"^tool_response is missing$"):
        claude_code.read(good)


# --- tools --------------------------------------------------------------------------------------------------

QUESTION = {"question": "Which one?", "header": "One", "options": [{"label": "A", "description": "a"}]}
TOOLS: list[tuple[str, Json, object, Json]] = [
    (
        "Read",
        {"file_path": "/p/a.txt"},
        {"type": "text", "file": {"filePath": "/p/a.txt", "content": "two\n", "numLines": 2, "startLine": 1}},
        {
            "action": "read",
            "path": "/p/a.txt",
            "result": {"type": "text", "path": "/p/a.txt", "content": "two\n", "lines": 2, "startLine": 1},
        },
    ),
    (
        "Read",
        {"file_path": "/p/n.ipynb"},
        {"type": "notebook", "file": {"filePath": "/p/n.ipynb", "cells": [{"source": "x=1"}]}},
        {
            "action": "read",
            "result": {"type": "notebook", "path": "/p/n.ipynb", "cells": [{"source": "x=1"}]},
        },
    ),
    ("Read", {"file_path": "/p/a"}, {"file": "odd"}, {"action": "read", "result": {"file": "odd"}}),
    ("NotebookRead", {"notebook_path": "/p/n.ipynb"}, {}, {"action": "read", "path": "/p/n.ipynb"}),
    (
        "Edit",
        {"file_path": "/p/w.py", "old_string": "a=1", "new_string": "a=2", "replace_all": False},
        {
            "filePath": "/p/w.py",
            "oldString": "a=1",
            "newString": "a=2",
            "originalFile": "a=1\n",
            "structuredPatch": [{"lines": ["-a=1", "+a=2"]}],
            "userModified": False,
        },
        {
            "action": "edit",
            "path": "/p/w.py",
            "given": {"path": "/p/w.py", "replace_all": False},
            "written": {"old": "a=1", "new": "a=2"},
            "result": {"filePath": "/p/w.py", "userModified": False},
        },
    ),
    (
        "MultiEdit",
        {"file_path": "/p/w.py", "edits": [{"old_string": "a", "new_string": "b"}, 7]},
        {"filePath": "/p/w.py", "edits": [{"old_string": "a"}]},
        {
            "action": "edit",
            "path": "/p/w.py",
            "written": {"edits": [{"old": "a", "new": "b"}, 7]},
            "result": {"filePath": "/p/w.py"},
        },
    ),
    (
        "NotebookEdit",
        {"notebook_path": "/p/n.ipynb", "cell_id": "c1", "new_source": "x=2"},
        {"new_source": "x=2", "old_source": "x=1", "original_file": "{}", "updated_file": "{}", "error": ""},
        {
            "action": "edit",
            "path": "/p/n.ipynb",
            "given": {"path": "/p/n.ipynb", "cell_id": "c1"},
            "written": {"content": "x=2"},
            "result": {"error": ""},
        },
    ),
    ("NotebookEdit", {"file_path": "/p/n.ipynb"}, {}, {"action": "edit", "path": None}),
    (
        "Write",
        {"file_path": "/p/w.py", "content": "a=1\n"},
        {"type": "create", "filePath": "/p/w.py", "content": "a=1\n", "structuredPatch": []},
        {
            "action": "write",
            "path": "/p/w.py",
            "written": {"content": "a=1\n"},
            "result": {"type": "create", "filePath": "/p/w.py", "created": True},
        },
    ),
    (
        "Write",
        {"file_path": "/p/w.py", "content": "a=1\n"},
        {"type": "update", "filePath": "/p/w.py"},
        {"action": "write", "result": {"type": "update", "filePath": "/p/w.py"}},
    ),
    (
        "Bash",
        {"command": "echo fine", "description": "Say so"},
        {"stdout": "fine\n", "stderr": "\na warning", "interrupted": False, "isImage": False},
        {
            "action": "shell",
            "command": "echo fine",
            "output": "fine\na warning",
            "exit_status": 0,
            "was_reset": False,
            "result": {"output": "fine\n", "errors": "\na warning", "interrupted": False, "isImage": False},
        },
    ),
    (
        "Bash",
        {"command": "sleep 1; echo done", "run_in_background": True},
        {"stdout": "", "stderr": "", "interrupted": False, "backgroundTaskId": "b7"},
        {"action": "shell", "output": "", "exit_status": None},
    ),
    (
        "Bash",
        {"command": "grep -r x ."},
        {"stdout": "", "stderr": "", "returnCodeInterpretation": "No matches found"},
        {"action": "shell", "exit_status": None},
    ),
    (
        "Bash",
        {"command": "cd / && ls"},
        {"stdout": "bin", "stderr": "\nShell cwd was reset to /p"},
        {"action": "shell", "was_reset": True},
    ),
    (
        "Bash",
        {"command": "sed -i s/a/b/ a.py"},
        {"stdout": "", "stderr": "", "bashEditDiff": {"files": [], "changedFiles": ["/p/a.py"]}},
        {
            "action": "shell",
            "result": {"output": "", "errors": "", "diff": {"files": []}, "changed": ["/p/a.py"]},
        },
    ),
    ("Bash", {"command": ["rm", "a"]}, "text", {"action": "shell", "command": None, "output": "text"}),
    ("Grep", {"pattern": "x", "path": "src"}, {"filenames": ["a.py"]}, {"action": "search", "path": "src"}),
    ("Glob", {"pattern": "*"}, {"filenames": ["a"]}, {"action": "search", "result": {"found_files": ["a"]}}),
    ("ListMcpResourcesTool", {}, [], {"action": "search"}),
    ("WebFetch", {"url": "http://a/", "prompt": "what"}, {"result": "that"}, {"action": "web"}),
    ("WebSearch", {"query": "sqlite wal"}, {"results": []}, {"action": "web"}),
    (
        "AskUserQuestion",
        {"questions": [QUESTION]},
        {"questions": [QUESTION], "answers": {"Which one?": "A"}},
        {"action": "ask", "result": {"questions": [QUESTION], "answers": {"Which one?": "A"}}},
    ),
    ("ExitPlanMode", {}, {"plan": "# Plan"}, {"action": "plan", "result": {"plan": "# Plan"}}),
    ("TaskCreate", {"subject": "x"}, {"task": {"id": "1"}}, {"action": "plan"}),
    ("TaskUpdate", {"taskId": "1"}, {"success": True}, {"action": "plan"}),
    ("TaskList", {}, {"tasks": []}, {"action": "other"}),
    ("Agent", {"subagent_type": "Explore"}, {"content": []}, {"action": "agent", "is_ours": False}),
    ("Task", {"subagent_type": "backstory:memory-updater"}, {}, {"action": "agent", "is_ours": True}),
    ("Agent", {"subagent_type": "backstory:memory-updater"}, {}, {"action": "agent", "is_ours": True}),
    ("Skill", {"skill": "verify"}, {"success": True}, {"action": "other", "is_ours": False}),
    ("Skill", {"skill": "backstory:memory-processor"}, {}, {"action": "other", "is_ours": True}),
    ("ToolSearch", {"query": "select:mcp__backstory__x"}, {}, {"action": "other", "is_ours": True}),
    ("ToolSearch", {"query": "select:Read"}, {}, {"action": "other", "is_ours": False}),
    ("mcp__x__y", {"file_path": "/p/a"}, [{"text": "1"}], {"action": "mcp", "paths": ["/p/a"]}),
    ("mcp__plugin_backstory_memory__memory_add", {}, "ok", {"action": "mcp", "is_ours": True}),
    ("mcp__backstory__memory_add", {}, "ok", {"action": "mcp", "is_ours": True}),
    ("mcp__game__set_backstory", {}, "ok", {"action": "mcp", "is_ours": False}),
    ("mcp__npc_backstory__get", {}, "ok", {"action": "mcp", "is_ours": False}),
    ("Edit", {"file_path": "/a", "path": "/b"}, {}, {"action": "edit", "path": "/a"}),
    ("Edit", {"path": "/b", "file_path": "/a"}, {}, {"action": "edit", "path": "/a"}),
    ("Novelty", {"stdout": 1}, {"stdout": "x"}, {"action": "other", "result": {"stdout": "x"}}),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "given", "response", "expected"), TOOLS)
def test_a_tool_is_a_canonical_action(tool: str, given: Json, response: object, expected: Json) -> None:
    use = used(tool, given, response)
    assert (use.tool, use.error) == (tool, None)
    assert {slot: getattr(use, slot) for slot in expected} == expected


@pytest.mark.parametrize(
    ("tool", "given", "error", "expected"),
    [
        ("Bash", {"command": "exit 3"}, "Exit code 3\nhi", {"action": "shell", "exit_status": 3}),
        ("Bash", {"command": "x"}, "Exit code 127", {"exit_status": 127}),
        ("Bash", {"command": "x"}, "Command timed out after 2m", {"exit_status": None}),
        ("Bash", {"command": "x"}, "Exit code unknown", {"exit_status": None}),
        ("Bash", {"command": "x"}, "Exit code " + "7" * 5_000, {"exit_status": None}),
        ("Bash", {"command": "x"}, "7", {"exit_status": None}),
        ("Read", {"file_path": "/p/no"}, "File does not exist.", {"action": "read", "path": "/p/no"}),
        ("Edit", {"file_path": "/p/a", "old_string": "x"}, "not found", {"written": {"old": "x"}}),
        ("WebFetch", {"url": "http://a/"}, "Exit code 1", {"action": "web", "exit_status": None}),
    ],
)
def test_a_failure_has_an_error_and_no_result(tool: str, given: Json, error: str, expected: Json) -> None:
    use = failed(tool, given, error)
    assert (use.error, use.result) == (error, None)
    assert {slot: getattr(use, slot) for slot in expected} == expected


def test_what_our_agent_does_is_ours_whatever_the_tool() -> None:
    payload = {**TOOL, **claude_code.shell_use("s1", "/p", "u1", "git log", "x")}
    mine = claude_code.read({**payload, "agent_type": "backstory:memory-updater"}).use
    other = claude_code.read({**payload, "agent_type": "Explore"}).use
    assert mine and other and mine.is_ours and not other.is_ours


def test_a_payload_that_changes_no_file_is_known_without_parsing() -> None:
    def raw(tool: str, name: str = "PostToolUse") -> bytes:
        return f'{{"hook_event_name": "{name}", "tool_name": "{tool}"}}'.encode()

    may = {tool for tool in claude_code.TOOLS if claude_code.may_change_files(raw(tool))}
    assert may == {"Edit", "MultiEdit", "NotebookEdit", "Write", "Bash"}
    assert not claude_code.may_change_files(raw("Edit", "PreToolUse"))


# --- the rest -----------------------------------------------------------------------------------------------


def test_the_environment_says_which_session_and_project_this_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert claude_code.session_id({"CLAUDE_CODE_SESSION_ID": "s1"}) == "s1"
    assert claude_code.session_id({}) == ""
    assert claude_code.project_folder({"CLAUDE_PROJECT_DIR": "/p"}) == "/p"
    assert claude_code.project_folder({"CLAUDE_PROJECT_DIR": ""}) == str(tmp_path)


def test_the_store_takes_every_action_and_no_other(tmp_path: Path) -> None:
    db = connect(str(tmp_path / "backstory.db"))
    db.execute("PRAGMA foreign_keys = OFF")
    for action in canonical.ACTIONS:
        queue.put(db, "s", "tool", "{}", "{}", 0, None, action)
    with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
        queue.put(db, "s", "tool", "{}", "{}", 0, None, "guess")
    db.close()
