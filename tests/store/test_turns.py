"""Turns on a real store: saved, grown, forgotten, erased, restored, migrated."""

from __future__ import annotations

import sqlite3

import pytest

from backstory.memory import terms
from backstory.memory.turn import ANSWER, ASKED, COMPLETE, INTERRUPTED, OPEN
from backstory.memory.turn import pieces as pieces_of
from backstory.recall.answer import answer as search
from backstory.recall.index import Index
from backstory.store import life, memories, queue, removal, sessions, turns, vectors
from backstory.store.keep import build_on
from tests.helpers.brief import Told

NOW = 1_790_000_000_000


@pytest.fixture
def told(db: sqlite3.Connection, project: str) -> Told:
    return Told(db, project)


def pieces(db: sqlite3.Connection, turn_id: str = "") -> list[tuple[int, int, str]]:
    """(row, part, text), of one turn or of all."""
    query = (
        "SELECT p.row, p.part, p.text FROM turn_pieces p JOIN memories m ON m.row = p.turn"
        " WHERE ? IN ('', m.id) ORDER BY p.row"
    )
    return [(row["row"], row["part"], row["text"]) for row in db.execute(query, (turn_id,))]


def assert_indexed(db: sqlite3.Connection) -> None:
    """The keyword index says the same as what it indexes."""
    db.execute("INSERT INTO memories_fts (memories_fts, rank) VALUES ('integrity-check', 1)")


def found(db: sqlite3.Connection, project: str, query: str) -> list[str]:
    return [hit.memory.id for hit in search(Index(None), db, project, query, now=NOW).hits]


def with_vectors(db: sqlite3.Connection) -> None:
    """A vector for every line."""
    number = vectors.ensure_model(db, "m", 2)
    rows = [row["row"] for row in db.execute("SELECT row FROM memory_lines")]
    vectors.put(db, number, "memory_lines", [(row, b"\x01\x02") for row in rows])


def with_vector(db: sqlite3.Connection) -> set[int]:
    return {row["row"] for row in db.execute("SELECT row FROM vectors")}


# --- saved --------------------------------------------------------------------------------------------------


def test_a_turn_is_read_as_it_was_saved(db: sqlite3.Connection, told: Told) -> None:
    commit = ["abc1234", "mend", ["a.py"]]
    turn_id = told.turn(
        "s1", "mend the door", "Mended.", at=NOW, edited=["a.py"], commits=[commit], branch="main"
    )
    (turn,) = turns.of_session(db, "s1")
    assert (turn.id, turn.session_id, turn.state, turn.started_at) == (turn_id, "s1", COMPLETE, NOW)
    assert (turn.asked, turn.answer, turn.edited, turn.branch) == (
        "mend the door",
        "Mended.",
        ["a.py"],
        "main",
    )
    memory = memories.get(db, turn_id, NOW)
    assert memory is not None
    assert (memory.kind, memory.sector, memory.tier, memory.source) == (
        "turn",
        "episodic",
        "project",
        "session",
    )
    assert (memory.title, memory.files, memory.row) == ("mend the door", ("a.py",), turn.row)
    assert_indexed(db)


def test_of_a_turn_that_grows_only_what_is_new_is_written(db: sqlite3.Connection, told: Told) -> None:
    told.turn("s1", "mend the door", "It was the hinge. " * 40, at=NOW, edited=["a.py"])
    before = pieces(db)
    with_vectors(db)
    (turn,) = turns.of_session(db, "s1")
    turn.answer += "\n\nAnd the lock."
    turns.save(db, turn, told.session("s1"))
    after = pieces(db)
    assert [(part, text) for _, part, text in after] == pieces_of(turn)
    kept = [piece for piece in after if piece in before]
    assert kept == before[: len(kept)]
    assert [part for _, part, _ in kept][:2] == [ASKED, ANSWER]
    assert min(row for row, _, _ in after[len(kept) :]) > max(row for row, _, _ in before)
    assert with_vector(db) == {row for row, _, _ in kept}  # the vectors of removed pieces go
    assert_indexed(db)


def test_what_does_not_change_is_not_written_again(db: sqlite3.Connection, told: Told) -> None:
    told.turn("s1", "mend the door", "Mended.", at=NOW)
    before, changes = pieces(db), db.execute("SELECT max(seq) FROM line_changes").fetchone()[0]
    (turn,) = turns.of_session(db, "s1")
    turn.state = INTERRUPTED
    turns.save(db, turn, told.session("s1"))
    assert pieces(db) == before
    assert db.execute("SELECT max(seq) FROM line_changes").fetchone()[0] == changes
    assert turns.of_session(db, "s1")[0].state == INTERRUPTED


def test_the_day_of_a_turn_is_found_with_its_first_piece_only(db: sqlite3.Connection, told: Told) -> None:
    told.turn("s1", "mend the door", "Mended. " * 100, at=NOW)
    (first, *others) = db.execute("SELECT text, terms FROM turn_pieces ORDER BY row").fetchall()
    assert first["terms"] == terms.line_terms(first["text"], "turn", NOW)
    assert others
    for piece in others:
        assert piece["terms"] == terms.index_terms(piece["text"])


def test_rows_of_pieces_and_of_memories_are_never_the_same(db: sqlite3.Connection, told: Told) -> None:
    for number in range(3):
        told.turn("s1", f"prompt {number}", "Answered. " * 100, at=NOW + number)
        told.memory("note", f"note {number}", session="s1")
    rows = [row[0] for row in db.execute("SELECT row FROM memories UNION ALL SELECT row FROM turn_pieces")]
    assert len(rows) == len(set(rows))


# --- asked for ----------------------------------------------------------------------------------------------


def test_the_latest_turn_may_be_that_of_a_time(db: sqlite3.Connection, told: Told) -> None:
    first, second = (told.turn("s1", text, at=NOW + at) for text, at in (("one", 0), ("two", 10)))
    told.turn("s2", "elsewhere", at=NOW + 99)
    asked = {at: turn.id if (turn := turns.latest(db, "s1", at)) else None for at in (None, NOW + 9, NOW - 1)}
    assert asked == {None: second, NOW + 9: first, NOW - 1: None}


def test_the_turns_of_a_session_are_those_that_nobody_forgot(db: sqlite3.Connection, told: Told) -> None:
    ids = [told.turn("s1", f"prompt {number}", at=NOW + number) for number in range(4)]
    life.forget(db, ids[1], None, NOW)
    life.supersede(db, ids[2], told.memory("note", "newer"), None, NOW, said_by="user")
    assert [turn.id for turn in turns.of_session(db, "s1")] == [ids[0], ids[3]]
    assert [turn.id for turn in turns.of_session(db, "s1", last=1)] == [ids[3]]
    assert set(turns.by_ids(db, ids)) == set(ids)


def test_traces_facts_and_the_summary_of_a_session_belong_to_a_turn_and_notes_to_none(
    db: sqlite3.Connection, told: Told
) -> None:
    first = told.turn("s1", "mend", at=NOW, ended_at=NOW + 10)
    trace = told.memory("tool", "Tool: Bash", session="s1", at=NOW + 10)
    second = told.turn("s1", "and paint", at=NOW + 20)
    fact, last = (told.memory("discovery", text, session="s1", at=NOW + 20) for text in ("a", "b"))
    for memory_id, turn_id in (fact, first), (last, first), (last, second):
        build_on(db, memory_id, turn_id, "rule", NOW)
    summary = told.summary("s1", request="mend", at=NOW + 25)
    note = told.memory("note", "in it", session="s1", at=NOW + 10)
    held = [turns.holding(db, one) for one in (trace, fact, last, summary, note, first)]
    assert held == [first, first, second, second, None, None]
    life.forget(db, second, None, NOW)
    assert [turns.holding(db, one) for one in (trace, last)] == [first, first]


def test_only_open_turns_of_the_silent_are_closed(db: sqlite3.Connection, told: Told) -> None:
    told.turn("s1", "old", at=NOW - turns.SILENT_MS - 1, state=OPEN)
    told.turn("s2", "young", at=NOW - turns.SILENT_MS, state=OPEN)
    told.turn("s3", "done", at=NOW - turns.SILENT_MS - 1)
    turns.close_silent(db, NOW)
    assert [turns.of_session(db, name)[0].state for name in ("s1", "s2", "s3")] == [
        INTERRUPTED,
        OPEN,
        COMPLETE,
    ]
    assert_indexed(db)


# --- forgotten, erased, restored ----------------------------------------------------------------------------


@pytest.fixture
def queued(db: sqlite3.Connection, told: Told) -> str:
    """A turn between two others, each with what its session keeps of it."""
    ids = []
    for number, word in enumerate(("walrus", "heron", "otter")):
        at = NOW + number * 100
        ids.append(told.turn("s1", f"feed the {word}", f"The {word} was fed.", at=at, ended_at=at + 50))
        queue.put(db, "s1", "PROMPT", "{}", "{}", at, None, turn=ids[-1])
        queue.put(db, "s1", "Bash", "{}", "{}", at + 50, None, "shell", ids[-1])
    queue.done(db, [3], "local", NOW + 300)  # the heron's prompt was observed
    return ids[1]


def skipped(db: sqlite3.Connection) -> list[str | None]:
    return [row["skipped"] for row in db.execute("SELECT skipped FROM observation_queue ORDER BY id")]


def waiting(db: sqlite3.Connection) -> list[int]:
    query = "SELECT id FROM observation_queue WHERE processed_at_epoch IS NULL ORDER BY id"
    return [row["id"] for row in db.execute(query)]


def test_a_forgotten_turn_is_in_no_answer_and_nobody_observes_it(
    db: sqlite3.Connection, project: str, queued: str
) -> None:
    index = Index(None)
    assert len(search(index, db, project, "heron", now=NOW).hits) == 1
    life.forget(db, queued, None, NOW + 400)
    assert search(index, db, project, "heron", now=NOW).hits == ()
    assert len(search(index, db, project, "walrus", now=NOW).hits) == 1
    assert skipped(db) == [None, None, queue.FORGOTTEN, queue.FORGOTTEN, None, None]
    assert waiting(db) == [1, 2, 5, 6]


def test_a_restored_turn_is_found_and_waits_where_it_was_not_observed(
    db: sqlite3.Connection, project: str, queued: str
) -> None:
    index = Index(None)
    life.forget(db, queued, None, NOW + 400)
    assert search(index, db, project, "heron", now=NOW).hits == ()
    life.restore(db, queued, None, NOW + 500)
    assert [hit.memory.id for hit in search(index, db, project, "heron", now=NOW).hits] == [queued]
    assert skipped(db) == [None] * 6
    assert waiting(db) == [1, 2, 4, 5, 6]
    assert_indexed(db)


@pytest.fixture
def derived(db: sqlite3.Connection, told: Told) -> list[str]:
    """A turn, and what was made of it: a trace, a fact, and the summary of its session."""
    at = NOW
    turn = told.turn("s2", "feed the heron", "The heron was fed.", at=at, ended_at=at + 50)
    trace = told.memory("tool", "Tool: Bash\nCommand: feed heron", session="s2", at=at + 10)
    fact = told.memory("feature", "Feed the heron", session="s2", at=at + 50)
    db.execute(
        "INSERT INTO memory_relationships (source_id, target_id, relationship_type, said_by, created_at)"
        " VALUES (?, ?, 'BUILDS_ON', 'rule', ?)",
        (fact, turn, at),
    )
    summary = told.summary("s2", request="feed the heron", at=at + 60)
    told.memory("note", "the zoo opens at nine", session="s2", at=at + 20)
    return [turn, trace, fact, summary]


def test_what_was_made_of_a_turn_is_forgotten_and_restored_with_it(
    db: sqlite3.Connection, project: str, derived: list[str]
) -> None:
    turn, _, fact, _ = derived
    life.forget(db, fact, None, NOW + 300)  # before, and by itself
    life.forget(db, turn, None, NOW + 400)
    assert found(db, project, "heron") == []
    assert len(found(db, project, "zoo")) == 1
    assert sessions.by_ids(db, ["s2"])["s2"].user_prompt is None
    life.restore(db, turn, None, NOW + 500)
    assert sessions.by_ids(db, ["s2"])["s2"].user_prompt == "feed the heron"
    gone = [row["id"] for row in db.execute("SELECT id FROM memories WHERE deleted_at IS NOT NULL")]
    assert gone == [fact]


def test_what_was_made_of_a_turn_is_erased_with_it(db: sqlite3.Connection, derived: list[str]) -> None:
    removal.erase_memory(db, derived[0], NOW)
    assert "heron" not in "".join(db.iterdump()).lower()


def test_an_erased_turn_is_gone_with_all_that_its_session_kept_of_it(
    db: sqlite3.Connection, project: str, queued: str
) -> None:
    with_vectors(db)
    removal.erase_memory(db, queued, NOW)
    assert found(db, project, "heron") == []
    assert memories.get(db, queued, NOW) is None
    assert [turn.asked for turn in turns.of_session(db, "s1")] == ["feed the walrus", "feed the otter"]
    assert [said for _, said in sessions.prompts(db, "s1")] == ["feed the walrus", "feed the otter"]
    assert [row["id"] for row in db.execute("SELECT id FROM observation_queue")] == [1, 2, 5, 6]
    assert with_vector(db) == {row for row, _, _ in pieces(db)}
    assert "heron" not in "".join(db.iterdump())
    assert_indexed(db)
    assert db.execute("PRAGMA foreign_key_check").fetchall() == []


def test_an_erased_turn_leaves_nothing_for_a_process_that_held_it(
    db: sqlite3.Connection, project: str, queued: str
) -> None:
    index = Index(None)
    assert len(search(index, db, project, "heron", now=NOW).hits) == 1
    removal.erase_memory(db, queued, NOW)
    assert search(index, db, project, "heron", now=NOW).hits == ()


def test_a_purged_session_takes_its_turns_along(db: sqlite3.Connection, told: Told, queued: str) -> None:
    told.turn("s2", "feed the seal", at=NOW)
    sessions.purge(db, "s1")
    assert [text for _, _, text in pieces(db)] == ["feed the seal"]
    assert db.execute("SELECT count(*) FROM turns").fetchone()[0] == 1
    assert_indexed(db)


def test_old_traces_are_archived_and_old_turns_are_not(db: sqlite3.Connection, told: Told) -> None:
    at = NOW - 400 * 24 * 3_600_000
    turn_id = told.turn("s1", "feed the walrus", at=at)
    trace = told.memory("tool", "Tool: Bash\nCommand: feed", session="s1", at=at, importance=0.3)
    db.execute("UPDATE memories SET tier = 'session' WHERE id = ?", (trace,))
    assert life.prune(db, NOW) == 1
    assert life.archived(db, trace) is not None
    assert [turn.id for turn in turns.of_session(db, "s1")] == [turn_id]
    assert len(sessions.prompts(db, "s1")) == 1


# --- traces that repeat -------------------------------------------------------------------------------------


def test_a_trace_that_repeats_in_its_session_is_counted(db: sqlite3.Connection, told: Told) -> None:
    def trace(session: str, content: str, at: int) -> str:
        return memories.add_trace(
            db,
            memory_id=f"mem_{session}{content[-2:]}{at}",
            project_id=told.session(session),
            session_id=session,
            content=content,
            importance=0.3,
            action="shell",
            source="tool",
            files=["a"],
            hashes=[str(at)],
            now=at,
        )

    first = trace("s1", "Tool: Bash\nCommand: ls", NOW)
    assert trace("s1", "Tool: Bash\nCommand: ls", NOW + 5) == first
    others = {trace("s1", "Tool: Bash\nCommand: ll", NOW), trace("s2", "Tool: Bash\nCommand: ls", NOW)}
    assert len({first, *others}) == 3
    memory = memories.get(db, first, NOW)
    assert memory is not None
    assert (memory.times, memory.created_at, memory.hashes) == (2, NOW, (str(NOW + 5),))
