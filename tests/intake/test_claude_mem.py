"""Databases of claude-mem, taken in: one that its own published package made, and others made by hand."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import pytest

from backstory.errors import BadInput
from backstory.intake import claude_mem
from backstory.intake.imports import Import, import_lines
from backstory.store.claude_mem import opened
from tests.conftest import REAL_HOME, REPOSITORY
from tests.helpers.rich_store import assert_sound, dump, exported, lines_of

PACKAGE, BUN = "claude-mem@13.15.3", "bun@1.2"
CACHE = Path(tempfile.gettempdir()) / "backstory-tests-claude-mem-13.15.3"
AT = 1_800_000_000_000

# The tables as they are today, without what we do not read, and as they were when sessions had other names.
TODAY = """
CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY AUTOINCREMENT, content_session_id TEXT NOT NULL,
    memory_session_id TEXT UNIQUE, project TEXT NOT NULL, platform_source TEXT NOT NULL DEFAULT 'claude',
    user_prompt TEXT, started_at TEXT NOT NULL, started_at_epoch INTEGER NOT NULL, completed_at TEXT,
    completed_at_epoch INTEGER, status TEXT NOT NULL DEFAULT 'active');
CREATE TABLE observations (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL,
    project TEXT NOT NULL, text TEXT, type TEXT NOT NULL, title TEXT, subtitle TEXT, facts TEXT,
    narrative TEXT, concepts TEXT, files_read TEXT, files_modified TEXT, prompt_number INTEGER,
    created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL, content_hash TEXT, merged_into_project TEXT);
CREATE TABLE session_summaries (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL,
    project TEXT NOT NULL, request TEXT, investigated TEXT, learned TEXT, completed TEXT, next_steps TEXT,
    files_read TEXT, files_edited TEXT, notes TEXT, prompt_number INTEGER, created_at TEXT NOT NULL,
    created_at_epoch INTEGER NOT NULL, merged_into_project TEXT);
CREATE TABLE user_prompts (id INTEGER PRIMARY KEY AUTOINCREMENT, session_db_id INTEGER,
    content_session_id TEXT NOT NULL, prompt_number INTEGER NOT NULL, prompt_text TEXT NOT NULL,
    created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL);
"""
BEFORE = """
CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY AUTOINCREMENT, claude_session_id TEXT UNIQUE NOT NULL,
    sdk_session_id TEXT UNIQUE, project TEXT NOT NULL, user_prompt TEXT, started_at TEXT NOT NULL,
    started_at_epoch INTEGER NOT NULL, completed_at TEXT, completed_at_epoch INTEGER, status TEXT NOT NULL);
CREATE TABLE observations (id INTEGER PRIMARY KEY AUTOINCREMENT, sdk_session_id TEXT NOT NULL,
    project TEXT NOT NULL, text TEXT NOT NULL, type TEXT NOT NULL, created_at TEXT NOT NULL,
    created_at_epoch INTEGER NOT NULL);
CREATE TABLE session_summaries (id INTEGER PRIMARY KEY AUTOINCREMENT, sdk_session_id TEXT UNIQUE NOT NULL,
    project TEXT NOT NULL, request TEXT, investigated TEXT, learned TEXT, completed TEXT, next_steps TEXT,
    files_read TEXT, files_edited TEXT, notes TEXT, created_at TEXT NOT NULL,
    created_at_epoch INTEGER NOT NULL);
"""


def insert(db: sqlite3.Connection, table: str, **values: Any) -> None:
    marks = ", ".join("?" * len(values))
    db.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", list(values.values()))  # noqa: S608


def made_by_hand(path: Path, schema: str = TODAY) -> None:
    db = sqlite3.connect(path)
    db.executescript(schema)
    content, memory = (
        ("content_session_id", "memory_session_id")
        if schema == TODAY
        else ("claude_session_id", "sdk_session_id")
    )
    for number, project in enumerate(("api", "web"), 1):
        started = {"started_at": "x", "started_at_epoch": AT}
        named = {content: f"s{number}", memory: f"m{number}"}
        insert(db, "sdk_sessions", **named, project=project, user_prompt="why?", **started, status="active")
        made = {memory: f"m{number}", "project": project, "created_at": "x"}
        said = {
            "facts": '["one", "two"]',
            "narrative": "It is rounded twice.",
            "title": "Cents",
            "prompt_number": 1,
        }
        for place, kind in enumerate(("decision", "change", "bugfix", "security_note")):
            more = said if schema == TODAY else {}
            insert(
                db,
                "observations",
                **made,
                type=kind,
                text=f"text {kind}",
                created_at_epoch=AT + place,
                **more,
            )
        more = {"prompt_number": 1} if schema == TODAY else {}
        insert(
            db, "session_summaries", **made, request="Find it", learned="Twice", created_at_epoch=AT + 9,
            files_edited='["a.py"]', files_read="b.py", **more,
        )  # fmt: skip
        if schema == TODAY:
            asked = {"content_session_id": f"s{number}", "prompt_number": 1, "created_at": "x"}
            insert(db, "user_prompts", session_db_id=number, prompt_text="why?", created_at_epoch=AT, **asked)
    db.commit()
    db.close()


def take(db: sqlite3.Connection, path: Path, **options: Any) -> Import:
    with opened(str(path)) as foreign:
        return import_lines(db, claude_mem.lines(foreign), attach=False, named=str(path), **options)


def kinds(db: sqlite3.Connection) -> dict[str, int]:
    return dict(map(tuple, db.execute("SELECT kind, count(*) FROM memories GROUP BY kind")))


def test_every_row_becomes_a_memory_of_its_project(db: sqlite3.Connection, tmp_path: Path) -> None:
    made_by_hand(tmp_path / "claude-mem.db")
    done = take(db, tmp_path / "claude-mem.db")
    assert kinds(db) == {"turn": 2, "decision": 2, "feature": 2, "bugfix": 2, "discovery": 2, "summary": 2}
    assert done.counts["session"] == {"new": 2}
    assert done.counts["relation"] == {"new": 8}  # each observation and the prompt that it came of
    names = [
        (row["name"], row["root"]) for row in db.execute("SELECT name, root FROM projects ORDER BY name")
    ]
    assert names == [("api", ""), ("web", "")]
    assert db.execute("SELECT count(*) FROM checkouts").fetchone()[0] == 0
    bugfix = next(line for line in lines_of(exported(db)) if line.get("kind") == "bugfix")
    assert (bugfix["title"], bugfix["content"]) == ("Cents", "It is rounded twice.\n\n- one\n- two")
    assert (bugfix["source"], bugfix["tags"], bugfix["created_at"]) == ("model", ["claude-mem"], AT + 2)
    session = next(line for line in lines_of(exported(db)) if line["type"] == "session")
    assert session["summary_fields"]["learned"] == "Twice"
    assert session["summary_fields"]["files_read"] == ["b.py"]
    assert [prompt["prompt"] for prompt in session["prompts"]] == ["why?"]
    assert_sound(db)


def test_rows_without_the_name_of_a_project_come_in_too(db: sqlite3.Connection, tmp_path: Path) -> None:
    made_by_hand(tmp_path / "claude-mem.db")
    foreign = sqlite3.connect(tmp_path / "claude-mem.db")
    for table in ("sdk_sessions", "observations", "session_summaries"):
        foreign.execute(f"UPDATE {table} SET project = '' WHERE project = 'web'")  # noqa: S608
    foreign.execute("UPDATE observations SET merged_into_project = 'shop' WHERE project = 'api' AND id = 1")
    foreign.commit()
    foreign.close()
    done = take(db, tmp_path / "claude-mem.db")
    assert done.counts["memory"] == {"new": 12}
    told = db.execute("SELECT name, created_at FROM projects ORDER BY name")
    assert [tuple(row) for row in told] == [("api", AT), ("claude-mem", AT), ("shop", AT)]


def test_importing_it_twice_changes_nothing(db: sqlite3.Connection, tmp_path: Path) -> None:
    made_by_hand(tmp_path / "claude-mem.db")
    take(db, tmp_path / "claude-mem.db")
    before = dump(db)
    again = take(db, tmp_path / "claude-mem.db")
    assert dump(db) == before
    assert {what for counts in again.counts.values() for what in counts} == {"known"}


def test_an_older_schema_is_read_as_far_as_it_goes(db: sqlite3.Connection, tmp_path: Path) -> None:
    made_by_hand(tmp_path / "old.db", BEFORE)
    take(db, tmp_path / "old.db")
    assert kinds(db) == {"decision": 2, "feature": 2, "bugfix": 2, "discovery": 2, "summary": 2}
    contents = {row["content"] for row in db.execute("SELECT content FROM memories WHERE kind = 'bugfix'")}
    assert contents == {"text bugfix"}


def test_a_session_that_goes_on_is_not_taken_for_that_of_claude_mem(
    db: sqlite3.Connection, tmp_path: Path
) -> None:
    made_by_hand(tmp_path / "claude-mem.db")
    take(db, tmp_path / "claude-mem.db")
    assert [row["id"] for row in db.execute("SELECT id FROM sessions ORDER BY id")] == [
        "claude-mem-s1",
        "claude-mem-s2",
    ]


def test_a_secret_is_left_out(db: sqlite3.Connection, tmp_path: Path) -> None:
    made_by_hand(tmp_path / "claude-mem.db")
    foreign = sqlite3.connect(tmp_path / "claude-mem.db")
    secret = "export GITHUB_TOKEN=ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    foreign.execute("UPDATE observations SET narrative = ?", (secret,))
    foreign.commit()
    foreign.close()
    take(db, tmp_path / "claude-mem.db")
    assert b"a1B2c3D4" not in exported(db)


def test_nothing_is_written_where_it_lies(db: sqlite3.Connection, tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    made_by_hand(folder / "claude-mem.db")
    writer = sqlite3.connect(folder / "claude-mem.db")
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("UPDATE observations SET title = 'in the log'")
    writer.commit()  # it stays open, as that of a worker
    files = {
        path: hashlib.sha256(path.read_bytes()).digest()
        for path in folder.glob("*")
        if "-shm" not in path.name
    }
    take(db, folder / "claude-mem.db")
    assert {path: hashlib.sha256(path.read_bytes()).digest() for path in files} == files
    assert db.execute("SELECT count(*) FROM memories WHERE title = 'in the log'").fetchone()[0] == 8
    writer.close()
    (folder / "claude-mem.db-shm").unlink(missing_ok=True)
    take(db, folder / "claude-mem.db")
    assert [path.name for path in folder.glob("*")] == ["claude-mem.db"]


def test_another_database_is_refused(db: sqlite3.Connection, tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE t (x)").connection.close()
    (tmp_path / "torn.db").write_bytes(b"SQLite format 3\0" + bytes(4096))
    for name in ("other.db", "torn.db", "backstory.db"):
        with pytest.raises(BadInput):
            take(db, tmp_path / name)


# --- made by claude-mem itself ------------------------------------------------------------------------------


def npm(*args: str) -> None:
    """As the user who runs the tests would call it: a registry is named in the home."""
    env = {**os.environ, "HOME": REAL_HOME, "npm_config_cache": str(CACHE / "npm")}
    ran = subprocess.run(
        ["npm", *args], cwd=CACHE, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    if ran.returncode:
        pytest.skip(f"npm gives us no {args[-1]}: {ran.stderr.strip()[-200:]}")


@pytest.fixture
def theirs(tmp_path: Path) -> tuple[Path, dict[str, int]]:
    """A database, and how many rows its tables have."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed here")
    code = CACHE / "package" / "plugin" / "sqlite" / "SessionStore.js"
    bun = CACHE / "node_modules" / ".bin" / "bun"
    CACHE.mkdir(exist_ok=True)
    if not code.exists():
        npm("pack", PACKAGE)
        with tarfile.open(next(CACHE.glob("claude-mem-*.tgz"))) as packed:
            packed.extractall(CACHE, filter="data")
    if not bun.exists():
        npm("install", "--prefix", str(CACHE), BUN)
    path = tmp_path / "claude-mem.db"
    script = REPOSITORY / "tests" / "helpers" / "claude_mem_store.js"
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "CLAUDE_MEM_DATA_DIR": str(tmp_path / "data")}
    ran = subprocess.run(
        [bun, script, code, path], env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return path, json.loads(ran.stdout.splitlines()[-1])


@pytest.mark.slow
def test_a_database_that_claude_mem_made_is_imported_whole(
    theirs: tuple[Path, dict[str, int]], db: sqlite3.Connection
) -> None:
    path, counts = theirs
    assert min(counts.values()) >= 2
    done = take(db, path)
    found = kinds(db)
    assert done.counts["session"] == {"new": counts["sdk_sessions"]}
    assert found.pop("turn") == counts["user_prompts"]
    assert found.pop("summary") == counts["session_summaries"]
    assert sum(found.values()) == counts["observations"]
    assert set(found) == {"decision", "bugfix", "feature", "refactor", "discovery"}
    before = dump(db)
    take(db, path)
    assert dump(db) == before
    assert_sound(db)


def test_a_database_that_would_never_end_is_refused(db: sqlite3.Connection, tmp_path: Path) -> None:
    path = tmp_path / "claude-mem.db"
    made_by_hand(path)
    other = sqlite3.connect(path)
    other.execute("ALTER TABLE user_prompts RENAME TO real_prompts")
    other.execute(
        "CREATE VIEW user_prompts AS WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n)"
        " SELECT id, 'x' AS prompt_text FROM n"
    )
    other.commit()
    other.close()
    with pytest.raises(BadInput, match="user_prompts is no table"):
        take(db, path)


def test_odd_values_are_taken_as_far_as_they_go(db: sqlite3.Connection, tmp_path: Path) -> None:
    path = tmp_path / "claude-mem.db"
    made_by_hand(path)
    other = sqlite3.connect(path)
    other.execute("UPDATE observations SET facts = ?, narrative = ?", ("[" * 100_000, "word " * 300_000))
    other.execute("UPDATE observations SET created_at_epoch = 9e999 WHERE id = 1")
    other.commit()
    other.close()
    before = kinds(db)
    take(db, path)
    assert kinds(db) != before
    assert db.execute("SELECT max(length(content)) FROM memories").fetchone()[0] < 250_000
