"""The life of a memory on a real store: used, faded, replaced, forgotten, brought back, archived."""

from __future__ import annotations

import json
import math
import sqlite3
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.errors import BadInput, NotFound
from backstory.intake.note import keep
from backstory.memory import salience
from backstory.model import Memory
from backstory.paths import place
from backstory.recall.answer import answer as search
from backstory.recall.index import Index
from backstory.store import life, memories, projects, removal, sessions, vectors
from backstory.store.file.connection import transaction
from tests.helpers.brief import Told

NOW = 1_800_000_000_000
DAY = salience.DAY_MS


def note(db: sqlite3.Connection, project: str, text: str, **more: Any) -> str:
    return keep(db, project, text, **({"now": NOW} | more)).memory.id


def trace(db: sqlite3.Connection, project: str, text: str = "Tool: Bash", **more: Any) -> str:
    """A trace of session `s1`."""
    here = place(project)
    values: dict[str, Any] = {
        "session_id": "s1",
        "kind": "tool",
        "sector": "episodic",
        "tier": "session",
        "content": text,
        "importance": 0.3,
        "now": NOW,
    } | more
    with transaction(db):
        project_id = projects.ensure(db, here, NOW)
        if values["session_id"]:
            sessions.start(db, values["session_id"], project_id, project, here, NOW)
        return memories.add(db, project_id=project_id, **values)


def known(db: sqlite3.Connection, memory_id: str, now: int = NOW) -> Memory:
    found = memories.get(db, memory_id, now)
    assert found is not None
    return found


def found(db: sqlite3.Connection, project: str, query: str, index: Index | None = None) -> list[str]:
    return [hit.memory.id for hit in search(index or Index(None), db, project, query, now=NOW).hits]


def columns(db: sqlite3.Connection, memory_id: str) -> dict[str, object]:
    return dict(db.execute("SELECT * FROM memories WHERE id = ?", (memory_id,)).fetchone())


def links(db: sqlite3.Connection, memory_id: str) -> set[str]:
    query = "SELECT usage_type FROM session_memories WHERE memory_id = ?"
    return {row["usage_type"] for row in db.execute(query, (memory_id,))}


# --- salience -----------------------------------------------------------------------------------------------


def test_reinforcing_closes_a_part_of_the_gap_to_one(db: sqlite3.Connection, project: str) -> None:
    memory_id = trace(db, project, importance=0.5)
    life.reinforce(db, memory_id, 0.1, "s1", NOW)
    stored = columns(db, memory_id)
    assert stored["salience"] == pytest.approx(0.55)
    assert (stored["access_count"], stored["last_accessed"]) == (1, NOW)
    assert known(db, memory_id).salience == pytest.approx(0.55 + 0.45 * 0.02 * math.log(2))
    assert links(db, memory_id) == {"created", "reinforced"}


def test_what_a_search_found_is_strengthened_but_for_what_was_erased_meanwhile(
    db: sqlite3.Connection, project: str
) -> None:
    memory_id = trace(db, project, importance=0.5)
    life.recall(db, ["mem_000000000000", memory_id], "s1", NOW)
    assert columns(db, memory_id)["salience"] == pytest.approx(0.5 + salience.RECALLED * 0.5)
    assert links(db, memory_id) == {"created", "recalled"}


def test_reinforcing_starts_from_what_is_left(db: sqlite3.Connection, project: str) -> None:
    memory_id = trace(db, project, importance=0.5)
    later = NOW + 30 * DAY
    left = 0.5 * math.exp(-0.02 * 30 / 0.6)
    life.reinforce(db, memory_id, 0.1, None, later)
    assert columns(db, memory_id)["salience"] == pytest.approx(left + 0.1 * (1 - left))


@pytest.mark.parametrize("amount", [0, -0.1, 1.01, math.nan, math.inf])
def test_an_amount_that_makes_no_sense_is_refused(
    db: sqlite3.Connection, project: str, amount: float
) -> None:
    memory_id = trace(db, project)
    before = columns(db, memory_id)
    for change in (life.reinforce, life.deemphasize):
        with pytest.raises(BadInput, match="above 0 and at most 1"):
            change(db, memory_id, amount, None, NOW)
    assert columns(db, memory_id) == before


def test_what_is_visible_falls_by_exactly_the_amount(db: sqlite3.Connection, project: str) -> None:
    memory_id = trace(db, project, importance=0.6)
    life.deemphasize(db, memory_id, 0.2, "s1", NOW)
    assert known(db, memory_id).salience == pytest.approx(0.4)
    assert links(db, memory_id) == {"created", "updated"}
    life.deemphasize(db, memory_id, 0.2, None, NOW)
    assert known(db, memory_id).salience == pytest.approx(0.2)


def test_it_falls_by_exactly_the_amount_after_a_while_too(db: sqlite3.Connection, project: str) -> None:
    memory_id = trace(db, project, importance=0.9)
    later = NOW + 10 * DAY
    before = known(db, memory_id, later).salience
    life.deemphasize(db, memory_id, 0.3, None, later)
    assert known(db, memory_id, later).salience == pytest.approx(before - 0.3)


@pytest.mark.parametrize("uses", [1, 5, 100])
def test_it_falls_by_exactly_the_amount_however_often_it_was_used(
    db: sqlite3.Connection, project: str, uses: int
) -> None:
    memory_id = trace(db, project, importance=0.5)
    for _ in range(uses):
        life.reinforce(db, memory_id, 0.001, None, NOW)
    before = known(db, memory_id).salience
    life.deemphasize(db, memory_id, 0.2, None, NOW)
    assert known(db, memory_id).salience == pytest.approx(before - 0.2, abs=1e-9)


def test_it_never_falls_below_the_floor(db: sqlite3.Connection, project: str) -> None:
    memory_id = trace(db, project, importance=0.5)
    for _ in range(3):
        life.deemphasize(db, memory_id, 1, None, NOW)
        assert known(db, memory_id).salience == pytest.approx(0.05)
    life.reinforce(db, memory_id, 0.5, None, NOW)
    assert known(db, memory_id).salience > 0.5


@pytest.mark.slow
@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.sampled_from(["up", "down"]), st.floats(0.001, 1), st.integers(0, 400)), max_size=12
    )
)
def test_whatever_happens_salience_stays_in_its_bounds(
    db: sqlite3.Connection, project: str, steps: list[tuple[str, float, int]]
) -> None:
    memory_id, now = trace(db, project), NOW
    for way, amount, days in steps:
        now += days * DAY
        before = known(db, memory_id, now).salience
        (life.reinforce if way == "up" else life.deemphasize)(db, memory_id, amount, None, now)
        after = known(db, memory_id, now).salience
        assert 0.05 <= after <= 0.99
        assert after >= before - 1e-9 if way == "up" else after <= before + 1e-9


def test_salience_decays_when_it_is_read_and_the_stored_value_stays(
    db: sqlite3.Connection, project: str
) -> None:
    memory_id = trace(db, project, importance=0.5)
    readings = [known(db, memory_id, NOW + days * DAY).salience for days in (0, 10, 10, 20, 10_000)]
    assert readings[1] == readings[2] == pytest.approx(0.5 * math.exp(-0.2 / 0.6))
    assert readings[3] == pytest.approx(0.5 * math.exp(-0.4 / 0.6))
    assert readings[4] == 0.05
    assert columns(db, memory_id)["salience"] == 0.5


def test_promotion_takes_what_was_reinforced_and_leaves_the_rest(
    db: sqlite3.Connection, project: str
) -> None:
    used, unused = trace(db, project, "used"), trace(db, project, "unused")
    for _ in range(6):
        life.reinforce(db, used, 0.2, "s1", NOW)
    life.promote(db, "s1", NOW)
    assert (known(db, used).tier, known(db, unused).tier) == ("project", "session")


# --- forgotten, erased, restored ----------------------------------------------------------------------------


def test_what_is_forgotten_is_in_no_answer_until_it_is_restored(db: sqlite3.Connection, project: str) -> None:
    index = Index(None)
    memory_id = note(db, project, "the walrus sleeps at noon")
    assert found(db, project, "walrus", index) == [memory_id]
    life.forget(db, memory_id, None, NOW + 5)
    assert known(db, memory_id).deleted_at == NOW + 5
    assert found(db, project, "walrus", index) == found(db, project, memory_id, index) == []
    life.forget(db, memory_id, None, NOW + 9)
    assert known(db, memory_id).deleted_at == NOW + 5
    life.restore(db, memory_id, None, NOW + 10)
    assert known(db, memory_id).deleted_at is None
    assert found(db, project, "walrus", index) == [memory_id]


def test_what_is_erased_is_gone_with_all_that_belonged_to_it(db: sqlite3.Connection, project: str) -> None:
    index = Index(None)
    memory_id = note(db, project, "the walrus sleeps", session_id="s1")
    other = note(db, project, "the heron stands")
    life.supersede(db, other, memory_id, "s1", NOW, said_by="user")
    row = known(db, memory_id).row
    vectors.put(db, vectors.ensure_model(db, "m", 2), "memories", [(row, b"\x01\x02")])
    assert found(db, project, "walrus", index) == [memory_id]
    removal.erase_memory(db, memory_id, NOW)
    assert found(db, project, "walrus", index) == []
    assert memories.get(db, memory_id, NOW) is None
    counts = {
        table: db.execute(f"SELECT count(*) FROM {table} WHERE {what} = ?", (value,)).fetchone()[0]  # noqa: S608
        for table, what, value in (
            ("vectors", "row", row),
            ("session_memories", "memory_id", memory_id),
            ("memory_relationships", "source_id", memory_id),
        )
    }
    assert set(counts.values()) == {0}
    query = "SELECT count(*) FROM memories_fts WHERE memories_fts MATCH 'walrus'"
    assert db.execute(query).fetchone()[0] == 0
    db.execute("INSERT INTO memories_fts (memories_fts, rank) VALUES ('integrity-check', 1)")
    assert known(db, other).valid_until == NOW  # only a restore makes it current again


def test_what_was_said_in_an_erased_turn_is_not_kept_by_its_session_either(
    db: sqlite3.Connection, project: str
) -> None:
    told = Told(db, project)
    erased = told.turn("s1", "where does the walrus sleep? " * 300, at=NOW)
    told.turn("s1", "and the heron?", at=NOW + 1)
    removal.erase_memory(db, erased, NOW)
    assert sessions.prompts(db, "s1") == [(NOW + 1, "and the heron?")]
    assert sessions.by_ids(db, ["s1"])["s1"].user_prompt == "and the heron?"


def test_an_unknown_id_or_one_of_another_project_is_not_found(db: sqlite3.Connection, project: str) -> None:
    memory_id = note(db, project, "the walrus sleeps")
    own = known(db, memory_id).project_id
    assert life.known(db, memory_id) == life.known(db, memory_id, [own, "global"]) == memory_id
    with pytest.raises(NotFound, match="there is no memory"):
        life.known(db, memory_id, ["prj_other"])
    with pytest.raises(NotFound, match="a search shows the ids"):
        life.known(db, "mem_nothing")


# --- superseded ---------------------------------------------------------------------------------------------


def test_the_latest_word_of_a_chain_is_what_superseded_all_of_it(
    db: sqlite3.Connection, project: str
) -> None:
    ids = [note(db, project, f"the port is {port}", session_id="s1") for port in (8080, 8081, 8082)]
    life.supersede(db, ids[0], ids[1], "s1", NOW, said_by="user")
    life.supersede(db, ids[1], ids[2], "s1", NOW + 1, said_by="model", confidence=0.5)
    assert life.successors(db, ids) == {ids[0]: ids[2], ids[1]: ids[2]}
    assert [known(db, one).valid_until for one in ids] == [NOW, NOW + 1, None]
    assert found(db, project, "port") == [ids[2]]
    assert life.related(db, ids) == {ids[0]: 1, ids[1]: 2, ids[2]: 1}
    assert life.relations(db, ids[0]) == [(ids[1], "SUPERSEDES", ids[0])]
    assert "updated" in links(db, ids[0]) & links(db, ids[1])


def test_a_cycle_is_refused_however_long(db: sqlite3.Connection, project: str) -> None:
    ids = [note(db, project, f"the port is {port}") for port in (8080, 8081, 8082, 8083)]
    with pytest.raises(BadInput, match="cannot supersede itself"):
        life.supersede(db, ids[0], ids[0], None, NOW, said_by="user")
    for old, new in pairwise(ids):
        life.supersede(db, old, new, None, NOW, said_by="user")
    for new in ids[:-1]:
        with pytest.raises(BadInput, match=f"restore {new} first"):
            life.supersede(db, ids[-1], new, None, NOW, said_by="user")
    assert known(db, ids[-1]).valid_until is None


def test_what_was_forgotten_supersedes_nothing(db: sqlite3.Connection, project: str) -> None:
    """Else both would be out of every answer."""
    old, new = note(db, project, "the port is 8080"), note(db, project, "the port is 8081")
    life.forget(db, new, None, NOW)
    with pytest.raises(NotFound, match=f"backstory restore {new}"):
        life.supersede(db, old, new, None, NOW, said_by="user")
    assert known(db, old).valid_until is None


def test_superseding_twice_changes_nothing(db: sqlite3.Connection, project: str) -> None:
    old, new = note(db, project, "the port is 8080"), note(db, project, "the port is 8081")
    for at in (NOW, NOW + 5):
        life.supersede(db, old, new, None, at, said_by="user")
    assert known(db, old).valid_until == NOW
    assert len(life.relations(db, old)) == 1


def test_what_is_restored_is_current_and_superseded_by_nothing(db: sqlite3.Connection, project: str) -> None:
    ids = [note(db, project, f"the port is {port}") for port in (8080, 8081, 8082)]
    life.supersede(db, ids[0], ids[1], None, NOW, said_by="user")
    life.supersede(db, ids[1], ids[2], None, NOW, said_by="user")
    life.restore(db, ids[0], None, NOW)
    assert life.successors(db, ids) == {ids[1]: ids[2]}
    assert set(found(db, project, "port")) == {ids[0], ids[2]}
    life.supersede(db, ids[2], ids[0], None, NOW, said_by="user")  # and may replace what came after
    assert found(db, project, "port") == [ids[0]]


def test_the_same_words_again_do_not_wake_what_was_superseded(db: sqlite3.Connection, project: str) -> None:
    old, new = note(db, project, "the port is 8080"), note(db, project, "the port is 8081")
    life.supersede(db, old, new, None, NOW, said_by="user")
    again = keep(db, project, "the port is 8080", now=NOW)
    assert again.is_new
    assert again.memory.id != old


# --- archived -----------------------------------------------------------------------------------------------

OLD = NOW - 300 * DAY


def test_only_old_faded_traces_of_sessions_are_stale(db: sqlite3.Connection, project: str) -> None:
    stale = trace(db, project, "old and faded", now=OLD)
    trace(db, project, "young", now=NOW - 29 * DAY)
    trace(db, project, "promoted", now=OLD, tier="project")
    Told(db, project).turn("s1", "a prompt", at=OLD)
    trace(db, project, "a note", now=OLD, kind="note")
    used = trace(db, project, "came back to", now=OLD)
    life.reinforce(db, used, 0.5, None, NOW - 20 * DAY)
    worth = trace(db, project, "old, but worth much", now=NOW - 31 * DAY, importance=0.9)
    assert known(db, worth).salience > salience.FADED_BELOW
    cited = trace(db, project, "cited", now=OLD)
    life.supersede(db, cited, note(db, project, "something newer"), None, NOW, said_by="rule")
    assert life.faded(db, NOW) == [stale]


def test_what_is_old_and_not_stale_does_not_hide_what_is(db: sqlite3.Connection, project: str) -> None:
    for number in range(3):
        trace(db, project, f"worth much {number}", now=NOW - 31 * DAY, importance=1.0)
    stale = trace(db, project, "old and faded", now=OLD)
    assert life.faded(db, NOW, limit=2) == [stale]


def full_trace(
    db: sqlite3.Connection, project: str, text: str = 'Command: feed the wálrus 🦭 "quoted"'
) -> str:
    """A trace with something in every column."""
    memory_id = trace(
        db,
        project,
        text,
        now=OLD,
        importance=1 / 3,
        files=["src/getUserById.py", "b"],
        hashes=["0" * 40, None],
        tags=["ä", "b"],
        author="Anna",
        content_hash="abc",
        simhash=-(2**63) + 12345,
    )
    life.reinforce(db, memory_id, 0.1234567, "s1", OLD + 1)
    db.execute(
        "UPDATE memories SET title = 'A title', concepts = '[\"c\"]', valid_from = 1, salience = 0.1 + 0.2"
        " WHERE id = ?",
        (memory_id,),
    )
    return memory_id


def test_what_is_archived_is_out_of_search_and_kept_whole(db: sqlite3.Connection, project: str) -> None:
    index = Index(None)
    memory_id = full_trace(db, project)
    before = columns(db, memory_id)
    assert found(db, project, "walrus", index) == [memory_id]
    life.archive(db, [memory_id], NOW)
    assert found(db, project, "walrus", index) == []
    assert memories.get(db, memory_id, NOW) is None
    archived = life.archived(db, memory_id)
    assert archived is not None
    assert archived.pop("archived_at") == NOW
    lists = {name: json.loads(str(before[name])) for name in ("tags", "concepts", "files", "hashes")}
    assert archived == {name: value for name, value in (before | lists).items() if name != "is_deleted"}


def test_what_is_restored_from_the_archive_is_the_same_in_every_column(
    db: sqlite3.Connection, project: str
) -> None:
    memory_id = full_trace(db, project)
    before = columns(db, memory_id)
    life.archive(db, [memory_id], NOW)
    life.restore(db, memory_id, "s1", NOW + 7)
    after = columns(db, memory_id)
    assert after.pop("last_accessed") == NOW + 7  # or it would be stale again tomorrow
    assert after.pop("row") != before.pop("row")  # so that a process that has seen all up to now sees it too
    del before["last_accessed"]
    assert after == before
    assert life.archived(db, memory_id) is None
    assert "created" in links(db, memory_id)
    assert life.faded(db, NOW + DAY) == []
    db.execute("INSERT INTO memories_fts (memories_fts, rank) VALUES ('integrity-check', 1)")


def test_what_is_restored_from_the_archive_is_found_by_a_new_process(
    db: sqlite3.Connection, project: str
) -> None:
    memory_id = full_trace(db, project)
    note(db, project, "something newer")
    life.archive(db, [memory_id], NOW)
    life.restore(db, memory_id, None, NOW)
    for query in ("walrus", "feed", "src/getUserById.py", memory_id):
        assert found(db, project, query) == [memory_id]


@pytest.mark.parametrize("was_held", [True, False], ids=["held it before", "began after it was archived"])
def test_what_is_restored_from_the_archive_is_found_by_a_process_that_runs(
    db: sqlite3.Connection, project: str, was_held: bool
) -> None:
    index = Index(None)
    memory_id = full_trace(db, project)
    note(db, project, "something newer")
    if was_held:
        assert found(db, project, "walrus", index) == [memory_id]
    life.archive(db, [memory_id], NOW)
    assert found(db, project, "walrus", index) == []
    life.restore(db, memory_id, None, NOW)
    assert found(db, project, "walrus", index) == [memory_id]


def test_a_forgotten_trace_that_was_archived_comes_back_when_it_is_restored(
    db: sqlite3.Connection, project: str
) -> None:
    memory_id = full_trace(db, project)
    life.forget(db, memory_id, None, OLD + 2)
    life.archive(db, [memory_id], NOW)
    life.restore(db, memory_id, None, NOW)
    assert known(db, memory_id).deleted_at is None
    assert found(db, project, "walrus") == [memory_id]


def test_a_trace_whose_session_is_gone_can_be_restored(db: sqlite3.Connection, project: str) -> None:
    memory_id = full_trace(db, project)
    note(db, project, "so that the project stays")
    life.archive(db, [memory_id], NOW)
    db.execute("DELETE FROM sessions WHERE id = 's1'")
    life.restore(db, memory_id, None, NOW)
    assert known(db, memory_id).session_id is None


def test_archiving_in_two_rounds_takes_all_and_nothing_else(db: sqlite3.Connection, project: str) -> None:
    ids = [trace(db, project, f"number {number}", now=OLD) for number in range(7)]
    kept = trace(db, project, "young")
    done = []
    while stale := life.faded(db, NOW, limit=3):
        life.archive(db, stale, NOW)
        done += stale
    assert done == ids
    assert [row["id"] for row in db.execute("SELECT id FROM memories")] == [kept]
    assert db.execute("SELECT count(*) FROM archived_memories").fetchone()[0] == 7


def test_what_two_processes_archive_at_once_is_archived_once(db: sqlite3.Connection, project: str) -> None:
    memory_id = full_trace(db, project)
    life.archive(db, [memory_id, memory_id, "mem_gone00000000"], NOW)
    assert life.archived(db, memory_id) is not None


def test_what_was_superseded_and_then_forgotten_is_superseded_still_when_restored(
    db: sqlite3.Connection, project: str
) -> None:
    old, new = note(db, project, "port 8080"), note(db, project, "port 8081")
    life.supersede(db, old, new, None, NOW, said_by="user")
    life.forget(db, old, None, NOW)
    life.restore(db, old, None, NOW)
    assert columns(db, old)["deleted_at"] is None
    assert columns(db, old)["valid_until"] is not None
