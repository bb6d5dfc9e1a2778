"""What happened around a memory."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from backstory.errors import BadInput, NotFound
from backstory.recall.timeline import timeline
from backstory.store import life
from backstory.store.keep import build_on
from tests.helpers.brief import Told
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


# --- turn by turn -------------------------------------------------------------------------------------------


def test_what_belongs_to_a_turn_is_not_told_beside_it(told: Told) -> None:
    first = told.turn("s1", "one", at=NOW, ended_at=NOW + 10)
    told.memory("tool", "Tool: Bash\nCommand: ls", session="s1", at=NOW + 5)
    build_on(told.db, told.memory("discovery", "found in it", session="s1", at=NOW + 10), first, "rule", NOW)
    between = told.memory("note", "between them", session="s1", at=NOW + 15)
    elsewhere = told.memory("note", "of another session", session="s2", at=NOW + 16)
    second = told.turn("s1", "two", at=NOW + 20)
    line = timeline(told.db, between, 5, 5, NOW)
    assert [memory.id for memory in line.entries] == [first, between, elsewhere, second]
    assert line.turn is None
    assert [session.id for session in line.sessions] == ["s1", "s2"]


def test_an_anchor_within_a_turn_is_told_with_its_turn(told: Told) -> None:
    before = told.turn("s1", "one", at=NOW, ended_at=NOW + 5)
    turn = told.turn("s1", "two", at=NOW + 10, ended_at=NOW + 20)
    trace = told.memory("tool", "Tool: Bash\nCommand: ls", session="s1", at=NOW + 15)
    after = told.turn("s1", "three", at=NOW + 30)
    line = timeline(told.db, trace, 1, 1, NOW)
    assert (line.anchor.id, line.turn and line.turn.id) == (trace, turn)
    assert [memory.id for memory in line.entries] == [before, turn, after]


def test_a_turn_is_an_anchor_itself(told: Told) -> None:
    ids = [
        told.turn("s1", text, at=NOW + at, ended_at=NOW + at + 5) for at, text in ((0, "one"), (10, "two"))
    ]
    line = timeline(told.db, ids[1], 3, 3, NOW)
    assert (line.anchor.id, line.turn) == (ids[1], None)
    assert [memory.id for memory in line.entries] == ids


def test_what_was_in_a_forgotten_turn_is_told_by_itself(told: Told) -> None:
    turn = told.turn("s1", "one", at=NOW, ended_at=NOW + 10)
    note = told.memory("note", "found in it", session="s1", at=NOW + 5)
    last = told.turn("s1", "two", at=NOW + 20)
    life.forget(told.db, turn, None, NOW)
    assert [memory.id for memory in timeline(told.db, last, 5, 5, NOW).entries] == [note, last]
    assert timeline(told.db, note, 0, 0, NOW).turn is None
