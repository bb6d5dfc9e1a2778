"""What happened around a memory."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from backstory.errors import BadInput, NotFound
from backstory.recall.timeline import timeline
from backstory.store import life
from tests.helpers.search import NOW, add


def test_the_timeline_shows_what_happened_before_and_after(db: sqlite3.Connection, project: str) -> None:
    ids = [
        add(db, project, f"step {number}", "s1" if number < 3 else "s2", now=NOW + number)
        for number in range(6)
    ]
    life.forget(db, ids[1], None, NOW)
    told = timeline(db, ids[3], 2, 1, NOW)
    assert [memory.id for memory in (*told.before, told.anchor, *told.after)] == [
        ids[0],
        ids[2],
        ids[3],
        ids[4],
    ]
    assert [session.id for session in told.sessions] == ["s1", "s2"]
    alone = timeline(db, ids[3], 0, 0, NOW)
    assert (alone.before, alone.after) == ((), ())


def test_the_timeline_goes_by_time_and_not_by_when_it_was_stored(
    db: sqlite3.Connection, project: str
) -> None:
    late = add(db, project, "stored first", now=NOW + 10)
    early = add(db, project, "happened first", now=NOW)
    told = timeline(db, late, 5, 5, NOW)
    assert [memory.id for memory in told.before] == [early]


def test_the_timeline_does_not_leave_the_project(
    db: sqlite3.Connection, project: str, tmp_path: Path
) -> None:
    (tmp_path / "web").mkdir()
    add(db, str(tmp_path / "web"), "elsewhere")
    told = timeline(db, add(db, project, "here"), 5, 5, NOW)
    assert (told.before, told.after) == ((), ())


def test_a_timeline_around_nothing_or_too_long_is_refused(db: sqlite3.Connection, project: str) -> None:
    with pytest.raises(NotFound, match="there is no memory"):
        timeline(db, "mem_nothing", 1, 1, NOW)
    memory_id = add(db, project, "here")
    for before, after in ((-1, 0), (0, 51)):
        with pytest.raises(BadInput, match="between 0 and 50"):
            timeline(db, memory_id, before, after, NOW)
