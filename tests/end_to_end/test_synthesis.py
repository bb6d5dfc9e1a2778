"""From a session to the next one's brief, with the real Claude Code on both sides: the session itself and, in
the background, the worker's."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backstory.safety.fence import TAG
from backstory.synthesis import prompt
from tests.conftest import REPOSITORY
from tests.end_to_end.test_memory import BIN, git, repository
from tests.helpers.claude import NO_SERVERS, Json, Result, converse, environment, killed, run
from tests.helpers.scripted_model import ScriptedModel, say, text_of, together, use

OBSERVE, SUMMARISE = f"mcp__memory__{prompt.OBSERVATION}", f"mcp__memory__{prompt.SUMMARY}"
USERS_OWN = "the user keeps llamas"  # in ~/.claude/CLAUDE.md
PROJECTS_OWN = "this project is about lanterns"  # in the project's CLAUDE.md
SECONDS = 60.0

BUGGY = "def total(prices):\n    return sum(prices) + 1\n"
FIXED = "def total(prices):\n    return sum(prices)\n"
CHECK = f"{sys.executable} -c 'import cart; assert cart.total([2, 3]) == 5, cart.total([2, 3])'"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = repository(tmp_path / "shop")
    (folder / "cart.py").write_text(BUGGY)
    (folder / "CLAUDE.md").write_text(PROJECTS_OWN)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "a shop")
    return folder


@pytest.fixture
def env(home: Path) -> dict[str, str]:
    (home / ".claude").mkdir()
    (home / ".claude" / "CLAUDE.md").write_text(USERS_OWN)
    variables = environment(home, "")
    variables["PATH"] = os.pathsep.join((str(BIN), variables["PATH"]))
    return variables


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as scripted:
        yield scripted


def fixing(project: Path) -> list[Any]:
    """A session that meets a bug and mends it."""
    file = str(project / "cart.py")
    return [
        use("Bash", command=CHECK),
        use("Read", file_path=file),
        use("Edit", file_path=file, old_string="sum(prices) + 1", new_string="sum(prices)"),
        use("Bash", command=CHECK),
        say("Fixed: `total` added one to every sum, so each cart cost a cent too much. The check passes."),
    ]


def of_the_worker(model: ScriptedModel) -> list[Json]:
    return [body for body in model.requests if prompt.SYSTEM[:60] in text_of(body.get("system", ""))]


def of_the_user(model: ScriptedModel) -> list[Json]:
    return [body for body in model.requests if body not in of_the_worker(model)]


def rows(data: Path, sql: str, *values: object) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(data / "backstory.db", timeout=10)) as db:
        return db.execute(sql, values).fetchall()


def wait_until_observed(data: Path, sessions: int = 1) -> None:
    """All that was queued is observed and each session has its summary."""
    deadline = time.monotonic() + SECONDS
    state: object = None
    while time.monotonic() < deadline:
        state = rows(data, "SELECT tool_name, processed_by, skipped, trouble FROM observation_queue")
        made = rows(data, "SELECT count(*) FROM session_summaries")[0][0]
        if state and made >= sessions and all(row[1] for row in state):
            return
        time.sleep(0.1)
    raise AssertionError(f"not observed in time: {state}")


def wait_until_no_worker(data: Path) -> None:
    import fcntl

    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        with (data / "worker.lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.05)
                continue
            return
    raise AssertionError("the worker does not leave")


def ask(words: str, project: Path, env: dict[str, str], model: ScriptedModel) -> Result:
    at = env | {"ANTHROPIC_BASE_URL": model.url}
    result = run(words, cwd=project, env=at, plugin_dir=REPOSITORY, servers=NO_SERVERS)
    assert result.code == 0, result.stderr
    return result


def briefs(body: Json) -> str:
    """What stands in our fence, in a request."""
    whole = json.dumps(body, ensure_ascii=False)
    start = whole.find(f"<{TAG} ")
    return whole[start : whole.find(f"</{TAG}>", start)] if start >= 0 else ""


@pytest.mark.client
def test_a_session_starts_with_what_the_model_made_of_the_one_before(
    data: Path, project: Path, env: dict[str, str], model: ScriptedModel
) -> None:
    env["BACKSTORY_SYNTHESIZER"] = "claude"
    model.when(
        together(
            use(
                OBSERVE,
                kind="bugfix",
                title="Carts cost a cent too much",
                text="total() in cart.py added one to every sum; the addition is gone.",
                files=["cart.py"],
                concepts=["cart", "rounding"],
                items=[2, 4],
            ),
            use(
                SUMMARISE,
                request="Find out why carts cost a cent too much",
                investigated="cart.py",
                learned="total() added one",
                completed="Removed the addition; the check passes",
                next_steps="Add a test for empty carts",
                notes="",
            ),
        ),
        offers=OBSERVE,
    )
    model.when(*fixing(project), anywhere="a cent too much, why")
    model.when(say("Good morning."), anywhere="what is open?")
    ask("every cart costs a cent too much, why", project, env, model)
    assert (project / "cart.py").read_text() == FIXED
    wait_until_observed(data)
    wait_until_no_worker(data)

    assert rows(data, "SELECT kind, title, tier FROM memories WHERE kind = 'bugfix'") == [
        ("bugfix", "Carts cost a cent too much", "project")
    ]
    request, edited, made_by = rows(data, "SELECT request, files_edited, made_by FROM session_summaries")[0]
    assert request == "Find out why carts cost a cent too much"
    assert (json.loads(edited), made_by) == (["cart.py"], "claude")
    assert rows(data, "SELECT count(*) FROM memories WHERE content LIKE 'Session Summary:%'") == [(1,)]
    assert rows(data, "SELECT count(*), sum(input_tokens) > 0 FROM spend") == [(1, 1)]

    ask("what is open?", project, env, model)
    first = next(body for body in of_the_user(model) if "what is open?" in json.dumps(body))
    told = briefs(first)
    assert "Carts cost a cent too much" in told
    assert "Add a test for empty carts" in told
    assert rows(data, "SELECT id FROM memories WHERE kind = 'bugfix'")[0][0] in told


@pytest.mark.client
def test_the_workers_own_session_fires_none_of_our_hooks_and_loads_nobodys_instructions(
    data: Path, project: Path, env: dict[str, str], model: ScriptedModel, home: Path
) -> None:
    env["BACKSTORY_SYNTHESIZER"] = "claude"
    model.when(
        use(SUMMARISE, request="Lanterns", completed="Lit them", next_steps=""), offers=OBSERVE, repeat=True
    )
    model.when(say("lit"), anywhere="light the lanterns please")
    # Installed for the user, as people have it: only then would the worker's Claude Code load it as well.
    installed = env | {"ANTHROPIC_BASE_URL": model.url}
    from tests.helpers.claude import binary, cli

    assert cli("plugin", "marketplace", "add", str(REPOSITORY), env=installed).code == 0
    assert cli("plugin", "install", "backstory@backstory", env=installed).code == 0
    assert binary().exists()
    result = run("light the lanterns please", cwd=project, env=installed, servers=NO_SERVERS)
    assert result.code == 0, result.stderr
    wait_until_observed(data)
    wait_until_no_worker(data)

    session = str(result.init["session_id"])
    assert {row[0] for row in rows(data, "SELECT id FROM sessions")} == {session}
    assert {row[0] for row in rows(data, "SELECT session_id FROM events")} == {session}
    asked = of_the_worker(model)
    assert asked
    assert USERS_OWN in json.dumps(of_the_user(model)) and PROJECTS_OWN in json.dumps(of_the_user(model))
    for body in asked:
        whole = json.dumps(body)
        assert USERS_OWN not in whole and PROJECTS_OWN not in whole
        assert {tool["name"] for tool in body["tools"]} == {OBSERVE, SUMMARISE}
    kept = [path.name for path in (home / ".claude" / "projects").glob("*quiet*")]
    assert kept == [], "the worker's conversations are not the user's"


@pytest.mark.client
def test_without_a_model_the_rules_tell_the_next_session_what_was_fixed(
    data: Path, project: Path, env: dict[str, str], model: ScriptedModel, tmp_path: Path
) -> None:
    env["BACKSTORY_SYNTHESIZER"] = "local"
    env["PATH"] = os.pathsep.join(
        folder for folder in env["PATH"].split(os.pathsep) if not (Path(folder) / "claude").exists()
    )
    model.when(*fixing(project), anywhere="a cent too much, why")
    model.when(say("Good morning."), anywhere="what is open?")
    ended = time.time()
    ask("every cart costs a cent too much, why", project, env, model)
    wait_until_observed(data)
    stopped = rows(data, "SELECT max(created_at_epoch) FROM observation_queue WHERE tool_name = 'FINALIZE'")
    observed = rows(data, "SELECT max(processed_at_epoch) FROM observation_queue")
    assert observed[0][0] - stopped[0][0] < 5_000, "the rules are done within five seconds of a Stop"
    assert ended * 1000 < observed[0][0]
    wait_until_no_worker(data)
    assert of_the_worker(model) == []
    ((turn, files),) = rows(data, "SELECT id, files FROM memories WHERE kind = 'turn'")
    assert json.loads(files) == ["cart.py"]
    request, edited = rows(data, "SELECT request, files_edited FROM session_summaries")[0]
    assert (request.rstrip("."), edited) == ("every cart costs a cent too much, why", '["cart.py"]')

    ask("what is open?", project, env, model)
    first = next(body for body in of_the_user(model) if "what is open?" in json.dumps(body))
    told = briefs(first)
    assert turn in told
    assert "every cart costs a cent too much" in told
    assert "`total` added one to every sum" in told


@pytest.mark.client
def test_what_a_killed_claude_code_left_is_picked_up_by_the_next_session(
    data: Path, project: Path, env: dict[str, str], model: ScriptedModel
) -> None:
    file = str(project / "cart.py")
    mend = use("Edit", file_path=file, old_string="sum(prices) + 1", new_string="sum(prices)")
    model.when(mend, say("Mended.").after(20), anywhere="mend the cart please")
    model.when(say("Good morning."), anywhere="what happened?")
    env["ANTHROPIC_BASE_URL"] = model.url
    asked = "mend the cart please, it adds one too much"
    killed(
        asked,
        lambda: len(model.requests) > 1,
        cwd=project,
        env=env,
        plugin_dir=REPOSITORY,
        servers=NO_SERVERS,
    )
    assert (project / "cart.py").read_text() == FIXED
    ask("what happened?", project, env, model)
    wait_until_observed(data, sessions=2)
    wait_until_no_worker(data)
    found = rows(data, "SELECT request, files_edited FROM session_summaries ORDER BY id")
    assert (found[0][0].lower().rstrip("."), found[0][1]) == (asked, '["cart.py"]')


@pytest.mark.client
def test_after_a_compaction_the_session_is_told_its_own_thread(
    data: Path, project: Path, env: dict[str, str], model: ScriptedModel
) -> None:
    env["BACKSTORY_SYNTHESIZER"] = "local"
    model.when(*fixing(project), anywhere="a cent too much, why", offers="Edit")
    model.when(say("It was about carts."), anywhere="Your task is to create a detailed summary")
    model.when(say("Going on."), anywhere="go on where we were")
    result = converse(
        ["every cart costs a cent too much, why", "/compact", "go on where we were"],
        cwd=project,
        env=env | {"ANTHROPIC_BASE_URL": model.url},
        plugin_dir=REPOSITORY,
        servers=NO_SERVERS,
    )
    assert result.code == 0, result.stderr
    after = next(body for body in model.requests if "go on where we were" in json.dumps(body))
    told = briefs(after)
    assert "every cart costs a cent too much" in told
    assert "cart.py" in told
    wait_until_no_worker(data)
    marks = {row[0] for row in rows(data, "SELECT tool_name FROM observation_queue")}
    assert {"CHECKPOINT", "COMPACT", "FINALIZE"} <= marks


@pytest.mark.client
def test_a_first_session_is_told_nothing(
    data: Path, project: Path, env: dict[str, str], model: ScriptedModel
) -> None:
    model.when(say("hello"), anywhere="hello there friend")
    ask("hello there friend", project, env, model)
    assert all(briefs(body) == "" for body in of_the_user(model))
    wait_until_no_worker(data)
