"""Which turns edited a file, and which tests were mended: asked of an index."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from backstory import paths
from backstory.model import Project
from backstory.store import known, moving, projects, removal, turns
from backstory.store.file.connection import transaction
from tests.helpers.brief import HOUR, NOW, Told
from tests.helpers.chaos import DAY

FAILED = [["pytest", "FAILED tests/test_pay.py::test_refund - assert 1 == 2"]]


@pytest.fixture
def told(db: sqlite3.Connection, project: str) -> Told:
    return Told(db, project)


def here(told: Told) -> Project:
    found = projects.at(told.db, paths.place(told.project))
    assert found
    return found


def editing(told: Told, path: str) -> list[str]:
    return [turn_id for turn_id, _, _ in known.editing(told.db, here(told), path)]


def edited_files(db: sqlite3.Connection) -> list[tuple[str, int]]:
    return [tuple(row) for row in db.execute("SELECT path, turn FROM edited_files ORDER BY path, turn")]


def test_the_turns_that_edited_a_file_come_newest_first(told: Told) -> None:
    old = told.turn("s1", "paint the door", edited=["src/door.py"], at=NOW)
    new = told.turn("s2", "close the door", edited=["src/door.py", "src/lock.py"], at=NOW + HOUR)
    assert editing(told, "src/door.py") == [new, old]
    assert editing(told, "src/lock.py") == [new]
    assert editing(told, "src/wall.py") == []


def test_a_turn_that_goes_on_has_the_files_that_it_has_now(told: Told) -> None:
    turn_id = told.turn("s1", "paint the door", edited=["src/door.py"])
    turn = turns.by_ids(told.db, [turn_id])[turn_id]
    turn.edited = ["src/lock.py"]
    turns.save(told.db, turn, here(told).id)
    assert editing(told, "src/door.py") == []
    assert editing(told, "src/lock.py") == [turn_id]


def test_what_was_forgotten_edited_nothing_and_what_was_erased_leaves_no_path(told: Told) -> None:
    turn_id = told.turn("s1", "paint the door", edited=["src/door.py"])
    told.db.execute("UPDATE memories SET deleted_at = ? WHERE id = ?", (NOW, turn_id))
    assert editing(told, "src/door.py") == []
    removal.erase_memory(told.db, turn_id, NOW)
    assert edited_files(told.db) == []


def test_files_go_with_a_session_that_is_moved_to_another_project(told: Told, tmp_path: Path) -> None:
    turn_id = told.turn("s1", "paint the door", edited=["src/door.py"])
    (tmp_path / "web").mkdir()
    with transaction(told.db):
        other = projects.ensure(told.db, paths.place(str(tmp_path / "web")), NOW)
        moving.move_sessions(told.db, ["s1"], other)
    assert editing(told, "src/door.py") == []
    edits = known.editing(told.db, projects.by_id(told.db, other), "src/door.py")
    assert [one[0] for one in edits] == [turn_id]


def test_only_files_that_few_turns_edited_lately_are_listed_with_their_whole_path(told: Told) -> None:
    told.turn("s1", "old", edited=["src/old.py"], at=NOW - 8 * DAY)
    told.turn("s1", "door", edited=["src/door.py"], at=NOW - 2 * HOUR)
    for number in range(known.FEW + 1):
        told.turn("s2", f"hot {number}", edited=["src/hot.py"], at=NOW - HOUR + number)
    told.turn("s3", "lock", edited=["src/lock.py"], at=NOW)
    root = paths.place(told.project).root
    assert known.files(told.db, NOW) == [f"{root}/src/lock.py", f"{root}/src/door.py"]


def test_tests_that_passed_after_they_had_failed_are_listed(told: Told) -> None:
    told.turn("s1", "mend the refund", passed=FAILED)
    told.turn("s2", "still broken", failed=[["go test", "--- FAIL: TestOther (0s)"]])
    told.turn("s3", "mend the lint", passed=[["ruff check", "src/pay.py:1:1: F401 unused"]])
    assert known.tests(told.db, NOW) == ["tests/test_pay.py::test_refund"]
    assert known.tests(told.db, NOW + 8 * DAY) == []


def test_nothing_walks_the_turns(told: Told) -> None:
    told.turn("s1", "paint the door", edited=["src/door.py"], passed=FAILED)
    plans: list[str] = []

    def look(statement: str) -> None:
        if statement.startswith("SELECT"):
            rows = told.db.execute(f"EXPLAIN QUERY PLAN {statement}")
            plans.extend(row["detail"] for row in rows)

    asked: list[str] = []
    told.db.set_trace_callback(asked.append)
    known.files(told.db, NOW)
    known.tests(told.db, NOW)
    known.editing(told.db, here(told), "src/door.py")
    told.db.set_trace_callback(None)
    for statement in asked:
        look(statement)
    walked = [plan for plan in plans if plan.startswith("SCAN") and "INDEX" not in plan]
    assert not [plan for plan in walked if plan.split()[1] in ("t", "turns", "m", "memories", "e")]
    assert any("turns_mending" in plan for plan in plans)
    assert any("turns_by_time" in plan for plan in plans)
