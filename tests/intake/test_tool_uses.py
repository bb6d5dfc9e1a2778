"""What a memory of a tool use says, which files it names, and what it is worth."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers.chaos import NOW, Json, bash, drain, event, put, rows, tool_use
from tests.helpers.traces import remembered


def read_result(path: str, text: str) -> Json:
    lines = text.count("\n") + 1
    file = {"filePath": path, "content": text, "numLines": lines, "startLine": 1, "totalLines": lines}
    return {"type": "text", "file": file}


LONG_COMMAND = "echo " + "x" * 300

FORMATS: dict[str, tuple[Json, str]] = {
    "Read": (
        tool_use("Read", {"file_path": "/p/a.txt"}, read_result("/p/a.txt", "alpha\n")),
        "Tool: Read\nRead file: /p/a.txt",
    ),
    "Write": (
        tool_use(
            "Write",
            {"file_path": "/p/a.txt", "content": "alpha\n"},
            {"type": "create", "filePath": "/p/a.txt", "content": "alpha\n", "structuredPatch": []},
        ),
        "Tool: Write\nWrote file: /p/a.txt",
    ),
    "Edit": (
        tool_use(
            "Edit",
            {"file_path": "/p/a.txt", "old_string": "alpha", "new_string": "ALPHA", "replace_all": False},
            {"filePath": "/p/a.txt", "oldString": "alpha", "newString": "ALPHA", "originalFile": "alpha\n"},
        ),
        "Tool: Edit\nEdited file: /p/a.txt",
    ),
    "NotebookEdit": (
        tool_use("NotebookEdit", {"notebook_path": "/p/n.ipynb", "new_source": "2"}, {"old_source": "1"}),
        "Tool: NotebookEdit\nEdited file: /p/n.ipynb",
    ),
    "Bash": (bash("echo hi", stdout="hi"), "Tool: Bash\nCommand: echo hi\nOutput: hi"),
    "Bash, stdout then stderr": (
        bash("echo hi; echo err >&2", stdout="hi\n", stderr="err\n"),
        "Tool: Bash\nCommand: echo hi; echo err >&2\nOutput: hi\nerr",
    ),
    "Bash, only stderr": (bash("x", stderr="err"), "Tool: Bash\nCommand: x\nOutput: err"),
    "Bash, no output": (bash("true"), "Tool: Bash\nCommand: true"),
    "Bash, with a plain string for a result": (
        tool_use("Bash", {"command": "ls"}, "a\nb"),
        "Tool: Bash\nCommand: ls\nOutput: a\nb",
    ),
    "Bash, a long command": (bash(LONG_COMMAND), f"Tool: Bash\nCommand: {LONG_COMMAND[:200]}"),
    "Bash, 499 characters": (bash("x", stdout="o" * 499), f"Tool: Bash\nCommand: x\nOutput: {'o' * 499}"),
    "Bash, 500 characters": (bash("x", stdout="o" * 500), "Tool: Bash\nCommand: x"),
    "Bash, both together 500": (bash("x", stdout="o" * 250, stderr="e" * 249), "Tool: Bash\nCommand: x"),
    "Grep": (
        tool_use(
            "Grep",
            {"pattern": "ALPHA", "output_mode": "content"},
            {"mode": "content", "numFiles": 0, "filenames": [], "content": "a.txt:1:ALPHA", "numLines": 1},
        ),
        "Tool: Grep\nPattern: ALPHA",
    ),
    "Glob": (
        tool_use("Glob", {"pattern": "*.txt"}, {"filenames": ["a.txt"], "numFiles": 1, "truncated": False}),
        "Tool: Glob\nPattern: *.txt",
    ),
    "anything else": (
        tool_use("ToolSearch", {"query": "select:x", "max_results": 5}, {"matches": ["x"]}),
        'Tool: ToolSearch\nInput: {"query":"select:x","max_results":5}',
    ),
    "anything else, long": (
        tool_use("Agent", {"prompt": "é" * 400}, {"isAsync": True, "status": "async_launched"}),
        f'Tool: Agent\nInput: {{"prompt":"{"é" * 289}',
    ),
    "a failed command": (
        event(
            "PostToolUseFailure",
            tool_name="Bash",
            tool_input={"command": "echo out; exit 3"},
            tool_use_id="toolu_e1389446c1704de08b09c8e0",
            error="Exit code 3\nout\nbad",
            is_interrupt=False,
        ),
        "Tool: Bash\nCommand: echo out; exit 3\nFailed: Exit code 3\nout\nbad",
    ),
    "a failed Read": (
        event(
            "PostToolUseFailure",
            tool_name="Read",
            tool_input={"file_path": "/p/nope.txt"},
            error="File does not exist.",
        ),
        "Tool: Read\nRead file: /p/nope.txt\nFailed: File does not exist.",
    ),
}


@pytest.mark.parametrize(("payload", "expected"), FORMATS.values(), ids=FORMATS.keys())
def test_a_tool_use_is_described_in_two_or_three_lines(payload: Json, expected: str, data: Path) -> None:
    assert remembered(data, payload) == expected


FILES: dict[str, tuple[Json, list[str]]] = {
    "file_path": (tool_use("Read", {"file_path": "/p/a.txt"}, {}), ["/p/a.txt"]),
    "notebook_path": (tool_use("NotebookEdit", {"notebook_path": "/p/n.ipynb"}, {}), ["/p/n.ipynb"]),
    "path": (tool_use("Grep", {"pattern": "x", "path": "/p"}, {"filenames": []}), ["/p"]),
    "both": (tool_use("Custom", {"path": "/p", "file_path": "/p/a"}, {}), ["/p", "/p/a"]),
    "a list of files": (
        tool_use("Glob", {"pattern": "*"}, ["/p/a", "b", "c/d", 7]),
        ["/p/a", "/somewhere/project/c/d"],
    ),
    "the client's list": (
        tool_use("Glob", {"pattern": "*"}, {"filenames": ["p/a"]}),
        ["/somewhere/project/p/a"],
    ),
    "each once": (tool_use("Grep", {"path": "/p"}, ["/p", "/q", "/q"]), ["/p", "/q"]),
    "ten of many": (tool_use("Glob", {}, [f"/f{n}" for n in range(30)]), [f"/f{n}" for n in range(10)]),
    "none": (bash("cat /etc/passwd", stdout="/srv/x"), []),
    "of odd types": (tool_use("Custom", {"file_path": 7, "path": ["/a"]}, {"filenames": "no/list"}), []),
}


@pytest.mark.parametrize(("payload", "expected"), FILES.values(), ids=FILES.keys())
def test_the_files_of_a_tool_use_are_those_it_names(payload: Json, expected: list[str], data: Path) -> None:
    put(data, payload)
    drain(data)
    (found,) = rows(data, "SELECT files FROM memories")
    assert json.loads(found["files"]) == expected


def test_edits_commits_and_failures_weigh_more_than_looking_around(data: Path) -> None:
    failed = event("PostToolUseFailure", tool_name="Bash", tool_input={"command": "c"}, error="no")
    for number, payload in enumerate(
        (bash("ls"), tool_use("Edit", {"file_path": "/a"}, {}), bash("git commit -m x"), failed)
    ):
        put(data, payload, at=NOW - 10 + number)
    drain(data)
    found = rows(data, "SELECT importance, salience FROM memories ORDER BY created_at")
    assert [row["importance"] for row in found] == [0.3, 0.4, 0.4, 0.4]
    assert [row["salience"] for row in found] == [0.3, 0.4, 0.4, 0.4]


def test_a_memory_is_found_by_the_keyword_index_at_once(data: Path) -> None:
    put(data, bash("pytest", stdout="ZeroDivisionError in ledger"))
    drain(data)
    found = rows(data, "SELECT rowid FROM memories_fts WHERE memories_fts MATCH 'zerodivisionerror ledger'")
    assert len(found) == 1
