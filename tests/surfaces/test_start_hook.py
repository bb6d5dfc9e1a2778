"""The start of a session: a line for the user, a brief for the model. And our own tools, which ask nobody."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from backstory import dirty
from backstory.clients import claude_code
from backstory.store.file import backup, recovery
from backstory.surfaces import hook
from tests.helpers.asked import earlier_sessions, now_ms
from tests.helpers.chaos import Json, Ran, event, put, rows, run_hook
from tests.helpers.claude_md_project import TEMPLATE
from tests.helpers.managed_file import git, owned

TOOL = "mcp__plugin_backstory_memory__"


@pytest.fixture(autouse=True)
def no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKSTORY_SYNTHESIZER", "off")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "api"
    folder.mkdir()
    return folder


@pytest.fixture
def remembered(data: Path, place: Path) -> Path:
    earlier_sessions(data, place)
    backup.make(str(data), now_ms())
    return place


def start(project: Path, source: str = "startup", **more: str) -> Ran:
    payload = event("SessionStart", session_id="s2", source=source, cwd=str(project))
    env = {**os.environ, claude_code.SESSION_ID: "s2", claude_code.PROJECT_DIR: str(project), **more}
    ran = run_hook(payload, "start", env=env, cwd=project)
    assert (ran.code, ran.stderr) == (0, b"")
    return ran


def transcripts(home: Path, project: Path, *names: str) -> None:
    folder = Path(claude_code.transcripts_folder(str(home / ".claude"), str(project)))
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("never read")


# --- the line -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_line_counts_what_is_remembered_and_told_and_the_model_has_the_brief(
    data: Path, remembered: Path
) -> None:
    ran = start(remembered)
    (told,) = rows(data, "SELECT * FROM tellings")
    assert ran.line == f"backstory: 11 sessions remembered, {told['tokens']} tokens told"
    assert ran.context.startswith("<backstory ") and told["text"] == ran.context
    assert (told["session_id"], told["moment"]) == ("s2", "start")
    assert rows(data, "SELECT 1 FROM told_memories")


@pytest.mark.slow
@pytest.mark.parametrize("source", ["clear", "resume"])
def test_after_clear_and_resume_it_is_the_same(source: str, data: Path, remembered: Path) -> None:
    ran = start(remembered, source)
    assert "11 sessions remembered" in ran.line and ran.context
    assert [row["moment"] for row in rows(data, "SELECT moment FROM tellings")] == ["start"]


@pytest.mark.slow
def test_after_a_compaction_the_line_says_only_what_was_told(data: Path, remembered: Path) -> None:
    ran = start(remembered, "compact")
    assert ran.line == f"backstory: {-(-len(ran.context) // 4)} tokens told"
    assert [row["moment"] for row in rows(data, "SELECT moment FROM tellings")] == ["compact"]


@pytest.mark.slow
def test_after_a_compaction_nothing_is_said_where_nothing_is_told(data: Path, place: Path) -> None:
    assert start(place, "compact").silent


@pytest.mark.slow
def test_quiet_there_is_no_line_but_the_brief(data: Path, remembered: Path) -> None:
    ran = start(remembered, BACKSTORY_DISPLAY="quiet")
    assert ran.line == "" and ran.context
    put(data, b"no JSON")
    assert start(remembered, BACKSTORY_DISPLAY="quiet").line.startswith("backstory: 1 event of the last day")


@pytest.mark.slow
def test_after_a_recovery_the_line_offers_backfill_until_it_is_acknowledged(
    data: Path, remembered: Path
) -> None:
    (data / "backstory.db").write_bytes(b"garbage" * 1000)
    ran = start(remembered)
    assert "is damaged" in ran.line and not ran.context, "the worker sees to it"
    recovery.verify(str(data), now_ms())
    ran = start(remembered)
    day = time.strftime("%Y-%m-%d", time.localtime(backup.listed(str(data))[0].at / 1000))
    assert ran.line == (
        f"backstory: the database was damaged and is restored; `backstory backfill --since {day}` brings back"
        " what Claude Code has of the rest; `backstory doctor` says more, and `backstory backup now` ends"
        " this note"
    )
    assert ran.context, "and the model has the brief"
    recovery.acknowledge(str(data))
    assert "11 sessions remembered" in start(remembered).line


@pytest.mark.slow
def test_on_the_first_day_the_line_says_what_backfill_would_read(home: Path, data: Path, place: Path) -> None:
    assert start(place).line == "backstory: nothing remembered here yet"
    transcripts(home, place, "s2.jsonl", "a.jsonl", "b.jsonl", "agent-x", "memory")
    line = start(place).line
    assert line == "backstory: nothing remembered here yet; backstory backfill would read 2 earlier sessions"


@pytest.mark.slow
def test_on_the_first_day_the_line_says_how_to_call_what_is_not_on_the_path(
    data: Path, place: Path, tmp_path: Path
) -> None:
    plugin_data = tmp_path / "plugin-data"
    (plugin_data / "setup.lock").mkdir(parents=True)  # nothing is set up by a test
    (plugin_data / "setup.command").write_text("/plugins/data/x/venv/bin/backstory\n")
    python = plugin_data / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    line = start(place, **{claude_code.PLUGIN_DATA: str(plugin_data)}).line
    assert line.endswith("nothing remembered here yet; the command is /plugins/data/x/venv/bin/backstory")


@pytest.mark.slow
def test_what_is_remembered_already_is_not_offered(home: Path, data: Path, remembered: Path) -> None:
    transcripts(home, remembered, "walrus.jsonl", "old.jsonl")
    assert start(remembered).line.endswith(" told; backstory backfill would read an earlier session")
    with sqlite3.connect(data / "backstory.db") as db:
        db.execute("UPDATE sessions SET started_at = started_at - 2 * 86400000")
    assert "backfill" not in start(remembered).line, "that was yesterday"


@pytest.mark.slow
def test_a_store_of_a_newer_backstory_is_named_with_what_to_do(data: Path, remembered: Path) -> None:
    with sqlite3.connect(data / "backstory.db") as db:
        db.execute("PRAGMA user_version = 999")
    assert start(remembered).line.endswith("upgrade backstory")


@pytest.mark.slow
def test_that_nothing_can_be_captured_is_said_also_to_who_wants_no_line(data: Path, remembered: Path) -> None:
    shutil.rmtree(data / "spool" / "tmp")
    (data / "spool" / "tmp").symlink_to("/proc")  # a folder in which nobody can write
    ran = start(remembered, BACKSTORY_DISPLAY="quiet")
    assert ran.line.startswith("backstory: what happens is not captured") and "backstory doctor" in ran.line


@pytest.mark.slow
def test_while_it_is_set_up_the_line_says_so(data: Path, place: Path, tmp_path: Path) -> None:
    plugin_data = tmp_path / "plugin-data"
    plugin_data.mkdir()
    python = Path(os.environ["PATH"].split(":")[0])  # of the tests; no backstory is beside it
    env = {claude_code.PLUGIN_DATA: str(plugin_data), "PATH": f"{python}:/usr/bin:/bin"}
    (plugin_data / "setup.lock").mkdir()  # nothing is set up by a test
    assert start(place, **env).line.startswith("backstory is being set up in the background (250 MB, ")
    (plugin_data / "setup.status").write_text(
        "could not be set up (no network); the next session tries again\n"
    )
    assert start(place, **env).line == (
        "backstory could not be set up (no network); the next session tries again"
    )
    without = tmp_path / "tools"
    without.mkdir()
    for tool in ("sh", "cat", "mv", "mkdir"):
        (without / tool).symlink_to(f"/bin/{tool}")
    ran = start(place, **env | {"PATH": str(without)})
    assert "could not be set up" in ran.line and not ran.context


# --- our own tools ------------------------------------------------------------------------------------------


def about_to_use(tool: str, given: object, **more: object) -> Json:
    server = tool.removeprefix("mcp__plugin_backstory_").partition("__")[0]
    asked = {
        "tool_name": tool,
        "tool_input": given,
        "mcp_server": {"name": f"plugin:backstory:{server}", "source": "plugin"},
    }
    return event("PreToolUse", **{**asked, **more})


READ = [
    *("memory_search memory_timeline docs_search docmem_find docmem_serialize docmem_structure".split()),
    *("docmem_get_root docmem_expand_to_length docmem_list docmem_query_nodes docmem_search".split()),
    "docmem_export",
]
WRITE = [
    *("memory_add memory_reinforce memory_deemphasize memory_supersede memory_delete docmem_create".split()),
    *("docmem_create_node docmem_add_summary docmem_view docs_ingest docmem_import".split()),
]
NEVER = (
    "docmem_delete docmem_update_content docmem_update_context docmem_move_node docmem_copy_node x".split()
)


@pytest.mark.parametrize("tool", [*READ, *WRITE, *NEVER])
@pytest.mark.parametrize("permissions", ["ask", "read", "write"])
def test_which_tools_of_ours_ask_nobody(tool: str, permissions: str) -> None:
    expected = permissions != "ask" and (tool in READ or (tool in WRITE and permissions == "write"))
    assert hook.may_use(tool, {"content": "x"}, permissions) == expected


@pytest.mark.parametrize(
    ("tool", "given", "expected"),
    [
        ("memory_delete", {"memory_id": "m", "hard": False}, True),
        ("memory_delete", {"memory_id": "m", "hard": True}, False),
        ("memory_delete", {"memory_id": "m", "hard": "yes"}, False),
        ("memory_delete", {"memory_id": "m", "hard": 1}, False),
        ("docs_ingest", {"path": "a.md"}, False),
        ("docs_ingest", {"url": "https://example.org"}, False),
        ("docs_ingest", {"content": "x", "path": None, "url": None}, True),
        ("docs_ingest", {"content": "x", "path": ""}, False),
        ("docs_ingest", {"content": "x", "title": "of another, which it would replace"}, False),
        ("docmem_import", {"content": "x", "format": "md"}, True),
        ("docmem_import", {"path": "x.md", "format": "md"}, False),
        ("docmem_export", {"root_id": "r", "format": "md", "path": "x.md"}, False),
    ],
)
def test_what_erases_or_leads_out_of_the_store_is_left_to_the_client(
    tool: str, given: Json, expected: bool
) -> None:
    assert hook.may_use(tool, given, "write") == expected


ODD: list[Any] = [
    [],
    None,
    event("PostToolUse", **about_to_use(TOOL + "memory_search", {}) | {"hook_event_name": "PostToolUse"}),
    about_to_use(TOOL + "memory_search", [1]),
    about_to_use(TOOL + "memory_search", {}, tool_name=["x"]),
    about_to_use("mcp__plugin_backstory_evil__memory_search", {}),
    about_to_use("mcp__plugin_backstory_memory_x__memory_search", {}),
    about_to_use("mcp__memory__memory_search", {}),
    about_to_use(TOOL + "other__memory_search", {}),
    about_to_use(TOOL + "memory_search", {}, mcp_server=None),
    about_to_use(
        TOOL + "memory_search", {}, mcp_server={"name": "plugin_backstory_memory", "source": "project"}
    ),
    about_to_use(
        TOOL + "memory_search", {}, mcp_server={"name": "plugin:backstory:memory", "source": "project"}
    ),
]


@pytest.mark.parametrize("payload", ODD, ids=range(len(ODD)))
def test_of_an_odd_payload_or_another_s_server_nothing_is_said(payload: object) -> None:
    use = claude_code.own_tool(payload)
    assert use is None or not hook.may_use(*use, "write")


@pytest.mark.slow
def test_a_tool_of_ours_is_allowed_through_hook_sh_and_nothing_is_captured(data: Path) -> None:
    ran = run_hook(about_to_use(TOOL + "memory_search", {"query": "x"}), "allow")
    answer = json.loads(ran.stdout)["hookSpecificOutput"]
    assert (answer["hookEventName"], answer["permissionDecision"]) == ("PreToolUse", "allow")
    for payload in (about_to_use(TOOL + "docmem_delete", {"id": "x"}), b"", b"no JSON", b"[" * 50_000):
        assert run_hook(payload, "allow").silent
    asking = {**os.environ, "BACKSTORY_PERMISSIONS": "ask"}
    assert run_hook(about_to_use(TOOL + "memory_search", {}), "allow", env=asking).silent
    assert not (data / "spool").exists()


# --- worktrees and clones -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_worktree_of_an_initialised_project_is_tracked_from_its_first_session_on(
    data: Path, place: Path, tmp_path: Path
) -> None:
    (place / "CLAUDE.md").write_text("# api\n")
    git(place, "init", "-q")
    git(place, "add", ".")
    git(place, "commit", "-q", "-m", "begin")
    git(place, "worktree", "add", "-q", str(tmp_path / "fix"), "-b", "fix")
    start(tmp_path / "fix")
    assert not (tmp_path / "fix" / dirty.NAME).exists()
    dirty.create(str(place))
    start(tmp_path / "fix")
    assert (tmp_path / "fix" / dirty.NAME).read_bytes() == b""
    assert git(tmp_path / "fix", "status", "--porcelain") == ""


@pytest.mark.slow
def test_a_clone_whose_sections_are_ours_is_tracked_from_its_first_session_on(
    data: Path, place: Path, tmp_path: Path
) -> None:
    text = TEMPLATE.replace("patterns -->\n", f"patterns -->\n{owned('Tests first.')}")
    (place / "CLAUDE.md").write_text(text)
    git(place, "init", "-q")
    git(place, "add", ".")
    git(place, "commit", "-q", "-m", "begin")
    git(tmp_path, "clone", "-q", str(place), "clone")
    start(tmp_path / "clone")
    assert (tmp_path / "clone" / dirty.NAME).exists()
    assert git(tmp_path / "clone", "status", "--porcelain") == ""
