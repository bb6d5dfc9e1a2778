"""The specification's acceptance list for the hook scripts, line by line, each on real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from backstory.store import life
from backstory.store.file.connection import connect, transaction
from backstory.synthesis.prompt import OBSERVATION, SUMMARY, SYSTEM
from tests.conftest import HOOK, REPOSITORY
from tests.helpers.chaos import (
    SECONDS,
    Json,
    bash,
    contents,
    event,
    eventually,
    log_text,
    prompt,
    rows,
    run_hook,
    spooled,
)
from tests.helpers.claude import environment, run
from tests.helpers.processes import (
    Household,
    awaited_pid,
    descendants,
    holders,
    household,
    is_running,
    queue_of,
    settled,
    stat,
    worker_pid,
)
from tests.helpers.scripted_model import ScriptedModel, say, text_of, together, use

STOP = event("Stop", last_assistant_message="The cent is back.")
END = event("SessionEnd", reason="other")
OBSERVE, SUMMARISE = f"mcp__memory__{OBSERVATION}", f"mcp__memory__{SUMMARY}"
TOLD = together(
    use(OBSERVE, kind="bugfix", title="The lost cent", text="The sum is rounded now.", items=[1]),
    use(SUMMARISE, request="Find the cent", learned="It was rounding", completed="Mended", next_steps=""),
)


@pytest.fixture
def house() -> Iterator[Household]:
    with household() as found:
        yield found


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as scripted:
        yield scripted


def model_env(home: Path, model: ScriptedModel, idle_seconds: str = "0") -> dict[str, str]:
    """The worker has the Agent SDK and its Claude Code, and asks the scripted model."""
    path = f"{os.path.dirname(sys.executable)}:/usr/bin:/bin"
    mine = {"BACKSTORY_SYNTHESIZER": "claude", "BACKSTORY_WORKER_IDLE_SECONDS": idle_seconds, "PATH": path}
    return {**environment(home, model.url), **mine}


def in_the_background(payload: Json, mode: str, env: dict[str, str]) -> None:
    """As Claude Code runs a hook: nobody waits for what it leaves behind."""
    raw = json.dumps(payload).encode()
    ran = subprocess.run(
        ["sh", str(HOOK), mode], input=raw, env=env, capture_output=True, timeout=SECONDS, check=True
    )
    assert ran.stdout == ran.stderr == b""


def test_post_tool_use_captures_tool_observations_silently(data: Path) -> None:
    ran = run_hook(bash("pytest -q", stdout="2 passed"))
    assert ran.code == 0 and ran.silent, "no context pollution"
    run_hook(STOP, "drain")
    assert contents(data)[0] == "Tool: Bash\nCommand: pytest -q\nOutput: 2 passed"
    assert [row["tool_name"] for row in queue_of(data)] == ["Bash", "FINALIZE"]


def test_post_tool_use_links_memories_to_sessions_with_usage_type(data: Path) -> None:
    run_hook(bash("make", session_id="mine"))
    run_hook(prompt("what else is there?", session_id="another"), "drain")
    found = rows(
        data,
        "SELECT l.session_id, l.usage_type, m.session_id AS made_in FROM session_memories l"
        " JOIN memories m ON m.id = l.memory_id WHERE m.kind = 'tool'",
    )
    assert found == [{"session_id": "mine", "usage_type": "created", "made_in": "mine"}]


def test_post_tool_use_skips_tool_results_over_10_kb(data: Path) -> None:
    """No memory is made of them. What they were is still queued, cut, for synthesis to look at."""
    assert run_hook(bash("cat large", stdout="x" * 10_001)).silent
    run_hook(bash("cat small", stdout="x" * 400))
    run_hook(prompt("what else is there?"), "drain")
    assert [text.splitlines()[1] for text in contents(data) if text.startswith("Tool:")] == [
        "Command: cat small"
    ]
    large = next(row for row in queue_of(data) if "cat large" in row["tool_input"])
    assert large["memory_id"] is None and "of 10,001 characters left out" in large["tool_output"]


@pytest.mark.client
def test_stop_hook_generates_session_summary_using_claude_agent_sdk(
    home: Path, data: Path, house: Household, model: ScriptedModel
) -> None:
    model.when(TOLD, offers=OBSERVE)
    env = model_env(home, model)
    run_hook(prompt("why do invoices lose a cent?"), "drain", env=env)
    run_hook(bash("pytest -q", stdout="2 passed"), env=env)
    in_the_background(STOP, "drain", env)
    assert eventually(lambda: settled(data)), log_text(data)
    (summary,) = rows(data, "SELECT * FROM session_summaries")
    assert (summary["request"], summary["learned"], summary["completed"]) == (
        "Find the cent",
        "It was rounding",
        "Mended",
    )
    assert summary["made_by"] == "claude"
    (memory,) = rows(data, "SELECT * FROM memories WHERE kind = 'summary'")
    assert memory["content"].startswith("Session Summary:\n") and memory["sector"] == "reflective"
    (session,) = rows(data, "SELECT summary, status FROM sessions")
    assert "It was rounding" in session["summary"] and session["status"] == "active"
    (asked,) = [body for body in model.requests if SYSTEM[:60] in text_of(body.get("system", ""))]
    assert "cc_entrypoint=sdk-py" in text_of(asked["system"]), "it is the Agent SDK that asks"
    assert "The cent is back." in text_of(asked["messages"])
    assert house.is_empty()


@pytest.mark.client
def test_stop_hook_respects_abort_for_cleanup_sigterm_during_a_summary(
    home: Path, data: Path, house: Household, model: ScriptedModel
) -> None:
    model.when(say("too late").after(60), TOLD, offers=OBSERVE)
    env = model_env(home, model, idle_seconds="60")
    run_hook(bash("pytest -q"), env=env)
    in_the_background(STOP, "drain", env)
    assert eventually(lambda: bool(model.requests)), log_text(data)
    worker = awaited_pid(data)
    family = descendants(worker)
    assert family, "a Claude Code thinks about the summary"
    os.kill(worker, signal.SIGTERM)
    assert house.is_empty(15), "it ends the model session and itself"
    assert [pid for pid in family if is_running(pid)] == []
    assert rows(data, "SELECT * FROM session_summaries") == []
    assert {(row["attempts"], row["leased_until"], row["processed_by"]) for row in queue_of(data)} == {
        (0, 0, None)
    }
    run_hook(END, "end", env=model_env(home, model))
    assert eventually(lambda: settled(data)), "the next hook starts another"
    assert [row["completed"] for row in rows(data, "SELECT * FROM session_summaries")] == ["Mended"]
    assert house.is_empty()


def test_session_end_hook_promotes_valuable_memories_to_project_tier(data: Path) -> None:
    run_hook(bash("echo valuable"))
    run_hook(bash("echo ordinary"))
    run_hook(prompt("what else is there?"), "drain")
    with closing(connect(str(data / "backstory.db"))) as db, transaction(db):
        (found,) = db.execute("SELECT id FROM memories WHERE content LIKE '%valuable%'").fetchall()
        for _ in range(2):
            life.reinforce(db, found["id"], 0.4, "session-1", int(time.time() * 1000))
    run_hook(END, "end")
    tiers = rows(data, "SELECT content, tier, salience FROM memories WHERE kind = 'tool' ORDER BY row")
    assert [(row["tier"], row["salience"] > 0.7) for row in tiers] == [("project", True), ("session", False)]
    assert rows(data, "SELECT status FROM sessions") == [{"status": "completed"}]


def test_session_end_hook_closes_database_connections(data: Path, house: Household) -> None:
    for number in range(3):
        run_hook(bash(f"make {number}"))
    run_hook(STOP, "drain")
    run_hook(END, "end")
    assert house.is_empty()
    assert holders(data / "backstory.db") == []
    assert not (data / "backstory.db-wal").exists(), "the last connection closed takes the log along"
    assert settled(data) and spooled(data) == []


@pytest.mark.client
def test_no_zombie_processes_after_session_end(
    home: Path, data: Path, house: Household, model: ScriptedModel, tmp_path: Path
) -> None:
    """A whole session of the real Claude Code with our plugin, and the worker's own one behind it."""
    model.when(TOLD, offers=OBSERVE, repeat=True)
    model.when(use("Bash", command="echo stripes"), say("painted"), anywhere="paint the zebra")
    env = model_env(home, model, idle_seconds="3")
    project = tmp_path / "zoo"
    project.mkdir()
    result = run("paint the zebra", cwd=project, env=env, plugin_dir=REPOSITORY)
    assert result.code == 0 and result.text == "painted", result.stderr
    assert eventually(lambda: settled(data)), log_text(data)
    worker = worker_pid(data)
    assert worker is not None, "it is idle now"
    assert [pid for pid in descendants(worker) if (stat(pid) or (0, ""))[1] == "Z"] == []
    assert house.is_empty(), "nothing of the session is left"
    assert holders(data / "backstory.db") == []
    assert [row["made_by"] for row in rows(data, "SELECT made_by FROM session_summaries")] == ["claude"]
    assert (data / "worker.lock").read_bytes() == b""
