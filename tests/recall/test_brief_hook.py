"""The hook that prints the brief."""

from __future__ import annotations

import json
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from backstory.intake.note import keep
from backstory.store.file import backup
from backstory.store.file.connection import connect
from backstory.surfaces.opened import open_drained
from tests.conftest import HOOK
from tests.helpers.brief import NOW
from tests.helpers.chaos import Ran, event, log_text, run_hook

pytestmark = pytest.mark.slow


@pytest.fixture
def remembered(data: Path, tmp_path: Path) -> Path:
    """A store with something to tell, and the folder of its project."""
    project = tmp_path / "shop"
    project.mkdir()
    with open_drained(str(data), now=NOW) as db:
        keep(db, str(project), "Lanterns hang in the north hall.", now=NOW)
    return project


def start(project: Path) -> Ran:
    return run_hook(event("SessionStart", source="startup", cwd=str(project)), "start")


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
    assert (ran.code, ran.stdout) == (0, b"")
    assert "no brief" in log_text(data)
    assert b"north hall" in start(remembered).stdout


@pytest.mark.parametrize("payload", [b"", b"no JSON", b"[]", b"{}", b'{"cwd": 7, "session_id": []}'])
def test_whatever_comes_in_a_session_starts(payload: bytes, remembered: Path) -> None:
    ran = run_hook(payload, "start")
    assert (ran.code, ran.stdout, ran.stderr) == (0, b"", b"")
