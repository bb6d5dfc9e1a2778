"""The hook that prints the brief."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from backstory.clients import claude_code
from backstory.intake.note import keep
from backstory.recall.brief import LEFT_OFF_LAST
from backstory.store import sessions
from backstory.store.file import backup
from backstory.store.file.connection import connect
from backstory.surfaces.opened import open_drained
from tests.conftest import HOOK
from tests.helpers.brief import NOW, under
from tests.helpers.chaos import Ran, event, log_text, prompt, rows, run_hook, tool_use

pytestmark = pytest.mark.slow


@pytest.fixture
def remembered(data: Path, tmp_path: Path) -> Path:
    """A store with something to tell, and the folder of its project."""
    project = tmp_path / "shop"
    project.mkdir()
    with open_drained(str(data), now=NOW) as db:
        keep(db, str(project), "Lanterns hang in the north hall.", now=NOW)
    return project


def environment(attended: str | None) -> dict[str, str]:
    """As the client's hooks have it."""
    return dict(os.environ) | ({} if attended is None else {claude_code.ATTENDED: attended})


def start(project: Path, attended: str | None = None) -> Ran:
    payload = event("SessionStart", source="startup", cwd=str(project))
    return run_hook(payload, "start", env=environment(attended))


def test_a_session_that_starts_while_others_write_is_told_all_the_same_and_at_once(
    remembered: Path, data: Path
) -> None:
    assert b"north hall" in start(remembered).stdout
    with closing(connect(str(data / "backstory.db"))) as other:
        other.execute("BEGIN IMMEDIATE")
        held = event("SessionStart", source="startup", cwd=str(remembered))
        ran = subprocess.run(
            ["sh", str(HOOK), "start"],
            input=json.dumps(held).encode(),
            capture_output=True,
            check=True,
            timeout=8,
        )
        other.execute("ROLLBACK")
    assert b"north hall" in ran.stdout
    assert "no brief" not in log_text(data)


def test_a_damaged_or_older_store_is_left_to_the_worker_and_told_the_next_time(
    remembered: Path, data: Path
) -> None:
    backup.make(str(data), NOW)
    (data / "backstory.db").write_bytes(b"no database" * 1_000)
    ran = start(remembered)
    assert (ran.code, ran.context) == (0, "")
    assert ran.line.startswith("backstory: nothing is told: ")
    assert "no brief" in log_text(data)
    assert b"north hall" in start(remembered).stdout


@pytest.mark.parametrize("payload", [b"", b"no JSON", b"[]", b"{}", b'{"cwd": 7, "session_id": []}'])
def test_whatever_comes_in_a_session_starts(payload: bytes, remembered: Path) -> None:
    ran = run_hook(payload, "start")
    assert (ran.code, ran.stdout, ran.stderr) == (0, b"", b"")


# --- whether a person is there ------------------------------------------------------------------------------


def attended(data: Path) -> list[int]:
    return [row["attended"] for row in rows(data, "SELECT attended FROM sessions ORDER BY number")]


@pytest.mark.parametrize(
    ("value", "expected"), [("0", 0), ("1", 1), ("", 1), ("00", 1), ("no", 1), (None, 1)]
)
def test_a_session_is_unattended_only_where_the_client_says_so(
    value: str | None, expected: int, remembered: Path, data: Path
) -> None:
    start(remembered, value)
    assert attended(data) == [expected]


def test_the_prompt_of_a_session_says_it_as_well_and_who_goes_on_with_it_attends_it(
    remembered: Path, data: Path
) -> None:
    start(remembered)
    env = environment("0") | {claude_code.SESSION_ID: "session-1"}
    run_hook(prompt("triage the issues", cwd=str(remembered)), "prompt", env=env)
    assert attended(data) == [0]
    run_hook(prompt("go on", cwd=str(remembered)), "prompt", env=env | {claude_code.ATTENDED: "1"})
    assert attended(data) == [1]


def test_what_is_known_is_not_written_again(remembered: Path, data: Path) -> None:
    start(remembered)
    with (
        closing(connect(str(data / "backstory.db"))) as db,
        closing(connect(str(data / "backstory.db"))) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        sessions.attend(db, "session-1", True)  # else it would wait for the other
        sessions.attend(db, "unheard of", False)
        other.execute("ROLLBACK")
        sessions.attend(db, "session-1", False)
    assert attended(data) == [0]


def test_the_brief_has_what_was_asked_and_done_in_a_session_that_was_killed(
    remembered: Path, data: Path
) -> None:
    """Nothing is heard of its end: no Stop, no SessionEnd."""
    here = {"cwd": str(remembered), "session_id": "killed"}
    edit = {"file_path": f"{remembered}/src/client.py", "old_string": "a", "new_string": "b"}
    run_hook(prompt("port the client to async", **here), "prompt")
    run_hook(tool_use("Edit", edit, {"filePath": edit["file_path"]}, **here), "event")
    lines = start(remembered).context.splitlines()
    asked, interrupted, edited = under(LEFT_OFF_LAST, lines)
    assert asked.endswith("] asked: port the client to async")
    assert interrupted == "  interrupted, or still under way"
    assert edited == "  edited: src/client.py"
