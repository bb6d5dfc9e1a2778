"""A store of the version before, with rows in every table, opened by this one."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backstory.errors import StoreError
from backstory.intake.note import keep
from backstory.memory import terms
from backstory.memory.turn import COMPLETE, PASTED, PROMPT, Turn
from backstory.paths import Place
from backstory.recall.index import Index
from backstory.recall.search import search
from backstory.store import forgetting, memories, projects, sessions, turns
from backstory.store.file import connection
from backstory.store.file.connection import connect, transaction

pytestmark = pytest.mark.usefixtures("store_made_anew")

NOW = 1_800_000_000_000
FIRST = Path(connection.MIGRATIONS) / "0001_foundation.sql"
DUMP = {
    "projects": "SELECT number, id, name, root, created_at FROM projects ORDER BY number",
    "sessions": "SELECT id, project_id, cwd, user_prompt, branch, head, status, started_at, last_event_at,"
    " opened_at, ended_at, summary FROM sessions ORDER BY id",
    "prompts": "SELECT id, session_id, prompt, created_at FROM prompts ORDER BY id",
    "events": "SELECT * FROM events ORDER BY key",
    "memories": "SELECT row, id, project_id, session_id, kind, sector, tier, title, content, tags, concepts,"
    " files, importance, salience, access_count, created_at, updated_at, last_accessed, valid_from,"
    " valid_until, deleted_at, is_deleted, content_hash FROM memories WHERE kind <> 'turn' ORDER BY row",
    "links": "SELECT l.session_id, l.memory_id, l.usage_type, l.created_at FROM session_memories l"
    " JOIN memories m ON m.id = l.memory_id WHERE m.kind <> 'turn' ORDER BY 1, 2, 3",
}


COMMON: dict[str, Any] = {
    "project_id": "prj_api",
    "session_id": "s1",
    "kind": "note",
    "sector": "semantic",
    "tier": "project",
    "concepts": '["c"]',
    "files": '["src/auth.py"]',
    "importance": 0.4,
    "salience": 1 / 3,
    "access_count": 3,
    "created_at": NOW,
    "updated_at": NOW + 1,
    "last_accessed": NOW + 2,
    "content_hash": "h",
}
TRACE = {"kind": "tool", "sector": "episodic", "tier": "session"}
FIRST_ROW = 1 << 32
MEMORIES: list[dict[str, Any]] = [
    {"id": "mem_tool", **TRACE, "content": "Tool: Bash\nCommand: run maxRetryCount"},
    {"id": "mem_note", "content": "the walrus sleeps", "tags": '["sea"]'},
    {
        "id": "mem_alone",
        "session_id": None,
        "kind": "decision",
        "title": "Database",
        "content": "we use postgres",
    },
    {"id": "mem_deleted", "session_id": "s2", "content": "a deleted heron", "deleted_at": NOW + 9},
    {
        "id": "mem_old",
        "session_id": "s2",
        "kind": "summary",
        "content": "an old pelican",
        "valid_until": NOW + 9,
    },
    {"id": "mem_asks", "session_id": "s2", "content": "[2026-11-15] Anna: which port is it?"},
    {"id": "mem_web", "project_id": "prj_web", "session_id": "w1", "content": "the walrus of web"},
]
for _number, _memory in enumerate(MEMORIES, 1):
    _memory["row"] = 2 << 32 | 1 if _memory["id"] == "mem_web" else FIRST_ROW | _number


@pytest.fixture
def project(tmp_path: Path) -> str:
    (tmp_path / "api").mkdir()
    return str(tmp_path / "api")


@pytest.fixture
def path(tmp_path: Path, project: str) -> str:
    """A store at schema 1."""
    file = str(tmp_path / "backstory.db")
    db = sqlite3.connect(file, isolation_level=None)
    db.execute("PRAGMA foreign_keys = ON")
    db.executescript(FIRST.read_text())
    db.execute("PRAGMA user_version = 1")
    for number, (name, root, last) in enumerate([("api", project, 6), ("web", "/x/web", 1)], 1):
        db.execute(
            "INSERT INTO projects VALUES (?, ?, ?, ?, ?, ?, ?)",
            (number, f"prj_{name}", root, name, root, last, NOW),
        )
    opened = [("s1", "prj_api", "completed"), ("s2", "prj_api", "active"), ("w1", "prj_web", "active")]
    db.executemany(
        "INSERT INTO sessions (id, project_id, status, cwd, branch, head, started_at, user_prompt, summary)"
        " VALUES (?, ?, ?, '/x', 'main', 'abc', 1800000000000, 'mend the door', 'mended')",
        opened,
    )
    said = [
        ("s1", "where does getUserById live?\n", NOW + 2),
        ("s1", "go on", NOW + 1),
        ("s2", "please mend the database connection", NOW + 4),
        ("w1", "修复登录错误", NOW + 3),
        ("s2", "ok", NOW + 5),
        ("s2", "long words " * 900, NOW + 6),
    ]
    db.executemany("INSERT INTO prompts (session_id, prompt, created_at) VALUES (?, ?, ?)", said)
    db.execute("INSERT INTO events VALUES ('k', 'Stop', 's1', ?)", (NOW,))
    for memory in MEMORIES:
        values = COMMON | memory
        into = f"INSERT INTO memories ({', '.join(values)}) VALUES"
        db.execute(f"{into} ({', '.join('?' * len(values))})", list(values.values()))
    for session, memory_id, usage in [
        ("s1", "mem_tool", "created"),
        ("s1", "mem_note", "created"),
        ("s2", "mem_note", "recalled"),
        ("s2", "mem_note", "reinforced"),
        ("w1", "mem_web", "created"),
    ]:
        db.execute("INSERT INTO session_memories VALUES (?, ?, ?, ?)", (session, memory_id, usage, NOW))
    db.close()
    return file


@pytest.fixture
def db(path: str) -> Iterator[sqlite3.Connection]:
    store = connect(path)
    yield store
    store.close()


def dump(path: str) -> dict[str, list[tuple[object, ...]]]:
    db = sqlite3.connect(path)
    try:
        return {name: db.execute(query).fetchall() for name, query in DUMP.items()}
    finally:
        db.close()


def found(db: sqlite3.Connection, project: str, query: str) -> list[str]:
    return [hit.memory.content for hit in search(Index(None), db, project, query, now=NOW).hits]


def test_everything_is_there_as_it_was(path: str) -> None:
    before = dump(path)
    with closing(sqlite3.connect(path)) as old:
        places = old.execute("SELECT identity, id FROM projects ORDER BY id").fetchall()
    connect(path).close()
    assert dump(path) == before
    with closing(sqlite3.connect(path)) as new:
        assert new.execute("SELECT path, project_id FROM checkouts ORDER BY project_id").fetchall() == places
    assert {name for name, rows in before.items() if not rows} == set()


def test_the_file_is_sound_afterwards(db: sqlite3.Connection) -> None:
    assert connection.version(db) == connection.latest()
    assert [row[0] for row in db.execute("PRAGMA integrity_check")] == ["ok"]
    assert db.execute("PRAGMA foreign_key_check").fetchall() == []
    db.execute("INSERT INTO memories_fts (memories_fts, rank) VALUES ('integrity-check', 1)")


def test_the_schema_is_that_of_a_new_store(db: sqlite3.Connection, tmp_path: Path) -> None:
    fresh = connect(str(tmp_path / "fresh" / "backstory.db"))
    schema = "SELECT type, name, sql FROM sqlite_master ORDER BY type, name"
    assert [tuple(row) for row in db.execute(schema)] == [tuple(row) for row in fresh.execute(schema)]
    fresh.close()


def test_what_the_user_said_became_turns_in_the_order_it_was_said(db: sqlite3.Connection) -> None:
    rows = db.execute(
        "SELECT * FROM memories WHERE kind = 'turn' AND project_id = 'prj_api' ORDER BY row"
    ).fetchall()
    assert [row["content"] for row in rows] == [
        "asked: where does getUserById live?",
        "asked: please mend the database connection",
        "asked: " + ("long words " * 900)[:4000].strip(),
    ]
    assert [row["row"] for row in rows] == [FIRST_ROW | number for number in (7, 8, 9)]
    assert {row["source"] for row in rows} == {"session"}
    assert {(row["sector"], row["tier"], row["importance"]) for row in rows} == {("episodic", "project", 0.6)}
    for row in rows:
        turn = turns.by_ids(db, [row["id"]])[row["id"]]
        assert (turn.session_id, turn.state, turn.started_at) == (
            row["session_id"],
            COMPLETE,
            row["created_at"],
        )
        ((said, source),) = turn.prompts
        assert (said.strip(), source) == (row["content"].removeprefix("asked: "), PASTED)  # nobody knows who
        created = "SELECT usage_type FROM session_memories WHERE session_id = ? AND memory_id = ?"
        assert [tuple(link) for link in db.execute(created, (row["session_id"], row["id"]))] == [("created",)]


def test_a_short_prompt_is_found_as_if_a_drain_had_stored_its_turn(db: sqlite3.Connection) -> None:
    """In which thread, by which words of its own, and how long it is."""
    query = (
        "SELECT m.project_id, p.* FROM turn_pieces p JOIN memories m ON m.row = p.turn"
        " WHERE p.turn = ? ORDER BY p.row"
    )
    short = db.execute("SELECT * FROM memories WHERE kind = 'turn' AND length(content) < 300").fetchall()
    assert len(short) == 3
    for row in short:
        turn = Turn(row["session_id"], row["created_at"])
        turn.prompts, turn.state = [[row["content"].removeprefix("asked: "), PASTED]], COMPLETE
        turns.save(db, turn, row["project_id"])
        (migrated,) = db.execute(query, (row["row"],)).fetchall()
        (again,) = db.execute(query, (turn.row,)).fetchall()
        assert migrated["text"].strip() == again["text"]
        for column in ("project_id", "thread", "part", "words", "terms"):
            assert migrated[column] == again[column], column


def test_a_long_prompt_is_found_by_its_end_and_shown_with_it(db: sqlite3.Connection, project: str) -> None:
    (hit,) = search(Index(None), db, project, "long words", now=NOW).hits
    assert [piece.part for piece in hit.pieces] == [PROMPT]
    assert hit.asked == ("long words " * 900)[:300]


def test_an_old_note_in_somebody_s_words_knows_who_and_whether_it_asks(db: sqlite3.Connection) -> None:
    row = db.execute("SELECT * FROM memories WHERE id = 'mem_asks'").fetchone()
    assert (row["author"], row["question"]) == ("Anna", 1)


def test_old_and_new_are_found_by_words_and_by_parts_of_names(db: sqlite3.Connection, project: str) -> None:
    keep(db, project, "a new walrus called getSealById", now=NOW)
    assert set(found(db, project, "walrus")) == {"the walrus sleeps", "a new walrus called getSealById"}
    assert found(db, project, "retry")[0].endswith("maxRetryCount")
    assert found(db, project, "max_retry_count")[0].endswith("maxRetryCount")
    assert set(found(db, project, "user")) == {"asked: where does getUserById live?"}
    assert found(db, project, "seal") == ["a new walrus called getSealById"]
    assert found(db, project, "sea") == ["the walrus sleeps"]  # its tag
    assert found(db, project, "postgres") == ["we use postgres"]
    assert "we use postgres" in found(db, project, "Database")  # its title


def test_what_was_deleted_or_replaced_stays_so(db: sqlite3.Connection, project: str) -> None:
    assert found(db, project, "heron") == found(db, project, "pelican") == []


def test_a_prompt_in_chinese_is_found_by_a_part_of_it(db: sqlite3.Connection) -> None:
    (row,) = db.execute(
        "SELECT p.row FROM turn_pieces p JOIN memories m ON m.row = p.turn WHERE m.project_id = 'prj_web'"
    )
    match = " OR ".join(terms.query_terms("登录"))
    hits = db.execute("SELECT rowid FROM memories_fts WHERE memories_fts MATCH ?", (match,)).fetchall()
    assert [hit["rowid"] for hit in hits] == [row["row"]]


def test_new_rows_and_sessions_get_fresh_numbers(db: sqlite3.Connection, project: str) -> None:
    highest = db.execute(
        "SELECT max(p.row) FROM turn_pieces p JOIN memories m ON m.row = p.turn"
        " WHERE m.project_id = 'prj_api'"
    ).fetchone()[0]
    kept = keep(db, project, "one more", now=NOW)
    assert kept.memory.project_id == "prj_api"
    assert kept.memory.row == highest + 1
    with transaction(db):
        sessions.start(db, "new", "prj_api", project, Place("i", "n", "r", None, None), NOW)
    numbers = [row["number"] for row in db.execute("SELECT number FROM sessions")]
    assert len(set(numbers)) == 4
    assert None not in numbers


def test_traces_are_in_no_thread_and_the_rest_is_in_its_session_s(db: sqlite3.Connection) -> None:
    query = (
        "SELECT m.id, m.thread = s.number AS own FROM memories m LEFT JOIN sessions s ON s.id = m.session_id"
        " WHERE m.kind <> 'turn'"
    )
    own = {row["id"]: row["own"] for row in db.execute(query)}
    assert own == {
        "mem_tool": None,
        "mem_alone": None,
        **dict.fromkeys(("mem_note", "mem_deleted", "mem_old", "mem_asks", "mem_web"), 1),
    }


def test_an_empty_store_of_the_first_version_is_migrated_too(tmp_path: Path) -> None:
    file = tmp_path / "backstory.db"
    old = sqlite3.connect(file)
    old.executescript(FIRST.read_text() + "PRAGMA user_version = 1;")
    old.close()
    db = connect(str(file))
    assert memories.count(db) == 0
    assert projects.every(db) == []
    db.close()


OPEN = """
import sys
from backstory.store.file.connection import connect
sys.stdin.readline()
connect(sys.argv[1]).close()
"""


def test_processes_that_migrate_at_once_migrate_it_once(path: str) -> None:
    before = dump(path)
    running = [
        subprocess.Popen([sys.executable, "-c", OPEN, path], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    for process in running:
        assert process.stdin
        process.stdin.write(b"go\n")
        process.stdin.flush()
    for process in running:
        _, said = process.communicate(timeout=60)
        assert (process.returncode, said) == (0, b"")
    assert dump(path) == before
    db = connect(path)
    assert db.execute("SELECT count(*) FROM memories WHERE kind = 'turn'").fetchone()[0] == 4
    assert [row[0] for row in db.execute("PRAGMA integrity_check")] == ["ok"]
    db.close()


def everything(path: str) -> list[str]:
    db = sqlite3.connect(path)
    try:
        return list(db.iterdump())
    finally:
        db.close()


def test_a_migration_that_breaks_off_half_way_leaves_the_old_store_intact(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = everything(path)

    def broken(text: str) -> int:
        if text.startswith("we use"):
            raise ZeroDivisionError
        return 1

    with monkeypatch.context() as patched:
        patched.setattr(terms, "count_words", broken)
        with pytest.raises(StoreError, match="backstory doctor"):
            connect(path)
    db = sqlite3.connect(path)
    assert connection.version(db) == 1
    assert [row[0] for row in db.execute("PRAGMA integrity_check")] == ["ok"]
    db.close()
    assert everything(path) == before
    connect(path).close()  # and then it works


KILLED = """
import os, signal, sys
from backstory.memory import terms
from backstory.memory.turn import COMPLETE, PASTED, PROMPT, Turn
from backstory.store.file.connection import connect
def dies(text):
    os.kill(os.getpid(), signal.SIGKILL)
terms.index_terms = dies
connect(sys.argv[1])
"""


def test_a_migration_that_is_killed_half_way_leaves_the_old_store_intact(path: str) -> None:
    before = everything(path)
    ran = subprocess.run([sys.executable, "-c", KILLED, path], capture_output=True, check=False)
    assert ran.returncode == -9
    assert everything(path) == before
    connect(path).close()
    assert len(dump(path)["memories"]) == 7


def test_what_was_forgotten_before_there_were_forgettings_stays_so(tmp_path: Path, project: str) -> None:
    (tmp_path / "eight").mkdir()
    path = str(tmp_path / "eight" / "backstory.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as old:
        connection.apply(old, upto=8)
        old.execute(
            "INSERT INTO projects (id, identity, name, root, created_at) VALUES ('p', 'p', 'api', ?, 0)",
            (project,),
        )
        old.execute("INSERT INTO sessions (id, project_id, started_at, number) VALUES ('s', 'p', 0, 1)")
        old.execute("INSERT INTO prompts (session_id, prompt, created_at) VALUES ('s', 'hello', 5)")
        old.execute(
            "INSERT INTO memories (row, id, project_id, session_id, kind, sector, tier, content, salience,"
            " created_at, updated_at, last_accessed, deleted_at)"
            " VALUES (1, 'mem_1', 'p', 's', 'note', 'semantic', 'project', 'gone', 0.5, 0, 0, 0, 7)"
        )
    with closing(connect(path)) as db:
        assert [one.id for one in sessions.recent(db, "p", 5)] == ["s"]
        assert sessions.prompts(db, "s") == [(5, "hello")]
        assert forgetting.listed(db) == []
        assert forgetting.forget(db, forgetting.Conditions(session_id="s"), 7)
        forgetting.undo(db, 8)
        assert db.execute("SELECT deleted_at FROM memories").fetchone()[0] == 7
