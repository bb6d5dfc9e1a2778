"""The store on real files: opening, migrating, remembering."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.docmem import tree
from backstory.errors import SchemaTooNew, StoreError
from backstory.memory import salience
from backstory.paths import Place
from backstory.store import documents, life, memories, nodes, projects, sessions
from backstory.store.file import connection
from backstory.store.file.connection import connect, transaction

NOW = 1_800_000_000_000
DAY = salience.DAY_MS

pytestmark = pytest.mark.usefixtures("store_made_anew")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store" / "backstory.db")


@pytest.fixture
def db(path: str) -> Iterator[sqlite3.Connection]:
    store = connect(path)
    yield store
    store.close()


def a_place(name: str = "api") -> Place:
    return Place(location=f"/x/{name}/.git", name=name, root=f"/x/{name}", branch="main", head="abc")


def a_session(db: sqlite3.Connection, session_id: str = "s1", place: Place | None = None) -> str:
    place = place or a_place()
    project_id = projects.ensure(db, place, NOW)
    sessions.start(db, session_id, project_id, place.root, place, NOW)
    return project_id


def a_memory(db: sqlite3.Connection, project_id: str, content: str = "use tabs", **changes: object) -> str:
    values: dict[str, object] = {
        "project_id": project_id,
        "session_id": "s1",
        "kind": "tool",
        "sector": "episodic",
        "tier": "session",
        "content": content,
        "now": NOW,
        "importance": 0.3,
    }
    return memories.add(db, **(values | changes))  # type: ignore[arg-type]


def test_the_file_is_private_and_in_wal_mode(db: sqlite3.Connection, path: str) -> None:
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(path + "-wal").st_mode) == 0o600
    assert db.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert db.execute("PRAGMA synchronous").fetchone()[0] == 2  # FULL
    assert db.execute("PRAGMA foreign_keys").fetchone()[0] == 1


def test_the_tables_have_the_names_and_columns_that_others_rely_on(db: sqlite3.Connection) -> None:
    def columns(table: str) -> set[str]:
        return {row["name"] for row in db.execute(f"PRAGMA table_xinfo({table})")}

    assert {
        "id",
        "project_id",
        "session_id",
        "sector",
        "tier",
        "salience",
        "is_deleted",
        "valid_until",
    } <= columns("memories")
    assert {"id", "project_id", "started_at", "ended_at", "summary", "status", "branch", "head"} <= columns(
        "sessions"
    )
    assert {"session_id", "memory_id", "usage_type"} <= columns("session_memories")
    assert {"source_id", "target_id", "relationship_type"} <= columns("memory_relationships")
    assert {"id", "project_id", "title", "source_path", "source_url", "checksum"} <= columns("documents")


def test_every_table_is_strict(db: sqlite3.Connection) -> None:
    loose = [
        row["name"]
        for row in db.execute("PRAGMA table_list")
        if row["type"] == "table" and not row["strict"] and not row["name"].startswith("sqlite_")
    ]
    assert loose == []


def test_a_newer_schema_is_refused_with_what_to_do(db: sqlite3.Connection, path: str) -> None:
    db.execute("PRAGMA user_version = 99")
    with pytest.raises(SchemaTooNew, match=r"schema 99, this backstory knows \d+; upgrade backstory"):
        connect(path)


def test_a_damaged_file_is_an_error_that_says_so(tmp_path: Path) -> None:
    broken = tmp_path / "backstory.db"
    broken.write_bytes(b"not a database at all" * 100)
    with pytest.raises(StoreError, match="damaged"):
        connect(str(broken))


def test_a_migration_that_fails_leaves_the_store_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / "0001_good.sql").write_text("CREATE TABLE first (a INTEGER) STRICT;")
    (folder / "0002_bad.sql").write_text("CREATE TABLE second (a INTEGER) STRICT;\nCREATE NONSENSE;")
    db = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    monkeypatch.setattr(connection, "MIGRATIONS", str(folder))
    with pytest.raises(sqlite3.OperationalError):
        connection.migrate(db, "x.db")
    assert connection.version(db) == 1
    tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master")}
    assert tables == {"first"}
    db.close()


def test_a_transaction_that_raises_changes_nothing(db: sqlite3.Connection) -> None:
    with pytest.raises(ZeroDivisionError), transaction(db):
        projects.ensure(db, a_place(), NOW)
        raise ZeroDivisionError
    assert projects.at(db, a_place()) is None


def test_a_project_is_one_range_of_rows(db: sqlite3.Connection) -> None:
    first, second = a_session(db), a_session(db, "s2", a_place("web"))
    for project_id in (first, second, first):
        a_memory(db, project_id)
    rows = [row["row"] for row in db.execute("SELECT row FROM memories ORDER BY row")]
    assert rows == [1 << 32 | 1, 1 << 32 | 2, 2 << 32 | 1]


def test_a_row_is_never_used_again(db: sqlite3.Connection) -> None:
    project_id = a_session(db)
    a_memory(db, project_id)
    db.execute("DELETE FROM memories")
    a_memory(db, project_id)
    assert db.execute("SELECT row FROM memories").fetchone()["row"] == (1 << 32 | 2)


def test_the_keyword_index_follows_every_change(db: sqlite3.Connection) -> None:
    memory_id = a_memory(db, a_session(db), "the zebra crosses")

    def found(word: str) -> int:
        return len(
            db.execute("SELECT rowid FROM memories_fts WHERE memories_fts MATCH ?", (word,)).fetchall()
        )

    assert (found("zebra"), found("lion")) == (1, 0)
    db.execute("UPDATE memories SET content = 'the lion sleeps' WHERE id = ?", (memory_id,))
    assert (found("zebra"), found("lion")) == (0, 1)
    db.execute("DELETE FROM memories WHERE id = ?", (memory_id,))
    assert found("lion") == 0
    db.execute("INSERT INTO memories_fts (memories_fts) VALUES ('integrity-check')")


def test_is_deleted_follows_deleted_at(db: sqlite3.Connection) -> None:
    memory_id = a_memory(db, a_session(db))
    db.execute("UPDATE memories SET deleted_at = ? WHERE id = ?", (NOW, memory_id))
    assert db.execute("SELECT is_deleted FROM memories").fetchone()["is_deleted"] == 1


def test_a_new_memory_is_linked_to_the_session_that_made_it(db: sqlite3.Connection) -> None:
    memory_id = a_memory(db, a_session(db))
    links = [
        tuple(row) for row in db.execute("SELECT session_id, memory_id, usage_type FROM session_memories")
    ]
    assert links == [("s1", memory_id, "created")]


def test_reinforcing_has_diminishing_returns_and_is_linked(db: sqlite3.Connection) -> None:
    memory_id = a_memory(db, a_session(db), importance=0.5)
    seen = [0.5]
    for _ in range(40):
        life.reinforce(db, memory_id, 0.2, "s1", NOW)
        memory = memories.get(db, memory_id, NOW)
        assert memory is not None
        seen.append(memory.salience)
    steps = [after - before for before, after in pairwise(seen)]
    assert seen[-1] <= salience.CEILING
    assert steps[0] > steps[3] > steps[6] >= 0
    links = db.execute("SELECT usage_type FROM session_memories ORDER BY usage_type").fetchall()
    assert [row["usage_type"] for row in links] == ["created", "reinforced"]


def test_reading_does_not_compound_the_decay(db: sqlite3.Connection) -> None:
    memory_id = a_memory(db, a_session(db), importance=0.5)
    later = NOW + 30 * DAY
    readings = {memories.get(db, memory_id, later).salience for _ in range(5)}  # type: ignore[union-attr]
    assert len(readings) == 1
    assert db.execute("SELECT salience FROM memories").fetchone()["salience"] == 0.5


def test_salience_decays_as_the_table_says() -> None:
    # d = s * exp(-lambda * days / (importance + .1)); episodic .02, ten days, importance .5
    assert salience.decayed(0.5, "episodic", 0.5, NOW, NOW + 10 * DAY) == pytest.approx(
        0.5 * 2.718281828 ** (-1 / 3)
    )
    assert salience.decayed(0.5, "emotional", 0.5, NOW, NOW + 10 * DAY) > 0.47
    assert salience.decayed(0.5, "episodic", 0.5, NOW, NOW - DAY) == 0.5  # a clock that went back


@given(
    st.floats(0, 1),
    st.sampled_from(sorted(salience.DECAY_PER_DAY)),
    st.floats(0, 1),
    st.integers(0, 5000),
    st.integers(0, 10_000),
)
def test_salience_stays_in_its_bounds_and_only_falls_with_time(
    stored: float, sector: str, importance: float, days: int, accesses: int
) -> None:
    first = salience.present(salience.decayed(stored, sector, importance, NOW, NOW + days * DAY), accesses)
    later = salience.present(
        salience.decayed(stored, sector, importance, NOW, NOW + (days + 1) * DAY), accesses
    )
    assert salience.FLOOR <= later <= first + 1e-12 <= salience.CEILING + 1e-12


def test_promotion_takes_what_is_above_the_line_and_nothing_else(db: sqlite3.Connection) -> None:
    project_id = a_session(db)
    kept = a_memory(db, project_id, "worthy", importance=0.71)
    left = a_memory(db, project_id, "just not", importance=0.7)
    gone = a_memory(db, project_id, "deleted", importance=0.9)
    db.execute("UPDATE memories SET deleted_at = ? WHERE id = ?", (NOW, gone))
    life.promote(db, "s1", NOW)
    tiers = {row["id"]: row["tier"] for row in db.execute("SELECT id, tier FROM memories")}
    assert tiers == {kept: "project", left: "session", gone: "session"}


def test_after_a_clear_the_session_that_began_at_once_is_meant(db: sqlite3.Connection) -> None:
    project_id, place = a_session(db), a_place()
    assert sessions.following(db, "s1") == "s1"  # it has not ended
    sessions.end(db, "s1", NOW + 10)
    assert sessions.following(db, "s1") == "s1"  # nothing came after
    sessions.start(db, "later", project_id, place.root, place, NOW + 60_000)
    assert sessions.following(db, "s1") == "s1"  # somebody else's
    sessions.start(db, "s2", project_id, place.root, place, NOW + 20)
    sessions.end(db, "s2", NOW + 30)
    sessions.start(db, "s3", project_id, place.root, place, NOW + 40)
    assert sessions.following(db, "s1") == "s3"
    assert sessions.following(db, "unheard of") == "unheard of"


def test_purging_a_session_leaves_nothing_of_it_and_all_of_the_rest(db: sqlite3.Connection) -> None:
    project_id = a_session(db)
    a_session(db, "s2")
    a_memory(db, project_id)
    other = a_memory(db, project_id, session_id="s2")
    sessions.keep_prompt(db, "s1", "hello", NOW)
    sessions.purge(db, "s1")
    assert [row["id"] for row in db.execute("SELECT id FROM memories")] == [other]
    assert sessions.count(db) == 1
    assert db.execute("SELECT count(*) FROM prompts").fetchone()[0] == 0
    assert projects.at(db, a_place()) is not None
    sessions.purge(db, "s2")
    assert projects.at(db, a_place()) is None


def a_document(
    db: sqlite3.Connection, project_id: str, text: str = "the walrus sleeps", **more: object
) -> str:
    values: dict[str, object] = {
        "project_id": project_id,
        "title": "Guide",
        "source_path": None,
        "source_url": None,
        "kind": "md",
        "checksum": text,
        "chunks": documents.prepared([("Guide", text)]),
        "now": NOW,
    }
    return documents.put(db, **(values | more))  # type: ignore[arg-type]


def test_memories_and_chunks_share_one_row_of_numbers(db: sqlite3.Connection) -> None:
    project_id = a_session(db)
    a_memory(db, project_id)
    a_document(db, project_id)
    a_memory(db, project_id)
    chunk = db.execute("SELECT row FROM document_chunks").fetchone()["row"]
    rows = [row["row"] for row in db.execute("SELECT row FROM memories ORDER BY row")]
    assert [row & 0xFFFFFFFF for row in (rows[0], chunk, rows[1])] == [1, 2, 3]


def test_a_document_that_is_removed_takes_its_words_along(db: sqlite3.Connection) -> None:
    document = a_document(db, a_session(db))
    documents.remove(db, document)
    assert documents.starting_with(db, document) == []
    query = "SELECT count(*) FROM document_chunks_fts WHERE document_chunks_fts MATCH 'walrus'"
    assert db.execute(query).fetchone()[0] == 0
    db.execute("INSERT INTO document_chunks_fts (document_chunks_fts, rank) VALUES ('integrity-check', 1)")


def test_purging_a_session_leaves_a_project_its_documents(db: sqlite3.Connection) -> None:
    document = a_document(db, a_session(db))
    a_memory(db, projects.at(db, a_place()).id)  # type: ignore[union-attr]
    sessions.purge(db, "s1")
    assert [one.id for one in documents.starting_with(db, document)] == [document]


def test_purging_a_session_leaves_a_project_its_trees(db: sqlite3.Connection) -> None:
    a_session(db)
    here = projects.at(db, a_place())
    assert here is not None
    tree.create(db, here, root_id="notes", now=NOW)
    sessions.purge(db, "s1")
    assert [root.id for root in nodes.roots(db, here.number)] == ["notes"]


def test_purging_a_session_leaves_a_project_what_was_archived_of_others(db: sqlite3.Connection) -> None:
    project_id = a_session(db)
    a_session(db, "s2")
    old = a_memory(db, project_id, session_id="s2")
    life.archive(db, [old], NOW)
    db.execute("DELETE FROM sessions WHERE id = 's2'")
    sessions.purge(db, "s1")
    assert life.archived(db, old) is not None


def test_purging_a_session_takes_along_what_was_archived_of_it(db: sqlite3.Connection) -> None:
    project_id = a_session(db)
    a_session(db, "s2")
    old = a_memory(db, project_id, "an old secret")
    life.archive(db, [old], NOW)
    sessions.purge(db, "s1")
    assert life.archived(db, old) is None


def test_every_session_has_a_number_of_its_own(db: sqlite3.Connection) -> None:
    for name in ("s1", "s2", "s3"):
        a_session(db, name)
    numbers = [row["number"] for row in db.execute("SELECT number FROM sessions")]
    assert len(set(numbers)) == 3
    assert None not in numbers


def test_traces_are_no_part_of_the_conversation_of_their_session(db: sqlite3.Connection) -> None:
    project_id = a_session(db)
    a_memory(db, project_id)
    a_memory(db, project_id, kind="note")
    threads = {row["kind"]: row["thread"] for row in db.execute("SELECT kind, thread FROM memories")}
    number = db.execute("SELECT number FROM sessions").fetchone()["number"]
    assert threads == {"tool": None, "note": number}


def test_a_memory_in_somebody_s_words_knows_who_and_whether_it_asks(db: sqlite3.Connection) -> None:
    a_memory(db, a_session(db), "[2026-11-15] Anna: which port is it?", kind="note")
    row = db.execute("SELECT author, question, words FROM memories").fetchone()
    assert tuple(row) == ("Anna", 1, 4)


def test_the_beginning_of_an_id_finds_living_and_archived_memories(db: sqlite3.Connection) -> None:
    project_id = a_session(db)
    ids = [a_memory(db, project_id) for _ in range(3)]
    life.archive(db, ids[:1], NOW)
    for memory_id in ids:
        assert memories.starting_with(db, memory_id[:12]) == [(memory_id, project_id)]
    assert memories.starting_with(db, "mem_") == [(memory_id, project_id) for memory_id in sorted(ids)]
    assert memories.starting_with(db, "mem_!") == []


def test_a_transaction_whose_references_do_not_hold_at_its_end_is_undone(db: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.IntegrityError), transaction(db):
        db.execute("PRAGMA defer_foreign_keys = ON")
        db.execute("INSERT INTO prompts (session_id, prompt, created_at) VALUES ('nobody', 'x', 1)")
    assert not db.in_transaction
    assert db.execute("SELECT count(*) FROM prompts").fetchone()[0] == 0
