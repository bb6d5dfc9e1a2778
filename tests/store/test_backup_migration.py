"""Migrations, tried with one that is new to a store with rows: whole or not done, and after a backup."""

from __future__ import annotations

import resource
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from backstory.errors import StoreError
from backstory.store.file import backup, connection
from backstory.store.file.connection import connect
from backstory.surfaces.opened import open_drained
from tests.helpers.backups import database, names, path_of, root_page, spoil
from tests.helpers.chaos import (
    FORK,
    NOW,
    PYTHON,
    SOURCE,
    Json,
    assert_sound,
    contents,
    exit_code_of_a_fork,
    rows,
    start,
)

pytestmark = pytest.mark.usefixtures("no_worker")


def test_before_a_migration_there_is_a_backup_of_the_schema_before(old: Path) -> None:
    connect(path_of(old)).close()
    (made,) = backup.listed(str(old))
    before, now = connection.latest() - 1, connection.latest()
    assert (made.reason, made.schema) == (f"before-{now}", before)
    assert made.name.endswith(f"Z-before-{now}.db")
    assert rows(old, "PRAGMA user_version") == [{"user_version": connection.latest()}]
    connect(path_of(old)).close()
    assert len(backup.listed(str(old))) == 1


def test_a_store_without_anything_in_it_needs_no_backup_before_a_migration(old: Path) -> None:
    with closing(sqlite3.connect(path_of(old))) as db:
        db.executescript("PRAGMA foreign_keys = ON; DELETE FROM projects;")
    connect(path_of(old)).close()
    assert rows(old, "PRAGMA user_version") == [{"user_version": connection.latest()}]
    assert backup.listed(str(old)) == []


OPEN = """
import sys
sys.path.insert(0, sys.argv[1])
from backstory.store.file import connection
connection.MIGRATIONS = sys.argv[3]
sys.stdin.read()
connection.connect(sys.argv[2] + "/backstory.db").close()
"""


def test_processes_that_migrate_at_once_make_one_backup(old: Path) -> None:
    running = [start(OPEN, str(old), connection.MIGRATIONS) for _ in range(5)]
    for process in running:
        assert process.stdin
        process.stdin.close()
    for process in running:
        assert process.stderr
        with process:
            assert process.stderr.read() == b""
            assert process.wait(timeout=60) == 0
    assert [one.schema for one in backup.listed(str(old))] == [connection.latest() - 1]
    assert rows(old, "PRAGMA user_version") == [{"user_version": connection.latest()}]


KILLED = f"""
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from backstory.store.file import backup, connection
connection.MIGRATIONS = sys.argv[3]
{FORK}
left = float(line)
def step():
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
real = connection._open
def opened(path, busy):
    db = real(path, busy)
    db.set_progress_handler(step, 5)
    return db
connection._open = opened
connection.connect(sys.argv[2] + "/backstory.db").close()
"""


def test_a_migration_killed_at_any_moment_is_done_or_not_begun(old: Path, tmp_path: Path) -> None:
    before, newest, data = state(old), connection.latest(), tmp_path / "killed"
    ended = []
    with start(KILLED, str(data), connection.MIGRATIONS) as process:
        for nth in range(1, 20_000, 23):
            shutil.copytree(old, data)
            code = exit_code_of_a_fork(process, nth)
            assert code in (0, -9)
            (at,) = rows(data, "PRAGMA user_version")
            tables = {row["name"] for row in rows(data, "SELECT name FROM sqlite_master")}
            assert at["user_version"] == newest - 1 + ("toys" in tables)
            assert state(data) == before
            connect(path_of(data)).close()
            assert rows(data, "SELECT memory_id, toy FROM toys ORDER BY 1") == TOYS
            assert_sound(data)
            shutil.rmtree(data)
            ended.append(at["user_version"])
            if code == 0:
                break
        assert process.stdin
        process.stdin.close()
    assert ended[-1] == newest
    assert ended.count(newest - 1) > 20


TOYS = [{"memory_id": f"mem_{number}", "toy": f"toy of mem_{number}"} for number in (1, 2, 3)]


def state(data: Path) -> list[Json]:
    return rows(
        data, "SELECT row, id, project_id, session_id, content, created_at FROM memories ORDER BY row"
    )


def test_an_older_backstory_refuses_what_a_newer_one_migrated(old: Path) -> None:
    connect(path_of(old)).close()
    newer = connection.MIGRATIONS
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from backstory.store.file.connection import connect\nconnect(sys.argv[2])"
    )
    ran = subprocess.run(
        [PYTHON, "-I", "-S", "-c", program, SOURCE, path_of(old)], capture_output=True, text=True, check=False
    )
    knows = f"is at schema {connection.latest()}, this backstory knows {connection.latest() - 1}; upgrade"
    assert "SchemaTooNew: " in ran.stderr and knows in ran.stderr
    assert newer == connection.MIGRATIONS
    assert rows(old, "SELECT memory_id, toy FROM toys ORDER BY 1") == TOYS


def test_a_migration_is_refused_where_no_backup_can_be_made(old: Path) -> None:
    def too_small() -> None:  # no file may grow beyond half of the store
        half = database(old).stat().st_size // 2
        resource.setrlimit(resource.RLIMIT_FSIZE, (half, half))

    program = (
        "import signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); sys.path.insert(0, sys.argv[1])\n"
        "from backstory.store.file import connection\nconnection.MIGRATIONS = sys.argv[3]\n"
        "connection.connect(sys.argv[2])"
    )
    ran = subprocess.run(
        [PYTHON, "-I", "-S", "-c", program, SOURCE, path_of(old), connection.MIGRATIONS],
        preexec_fn=too_small,
        capture_output=True,
        text=True,
        check=False,
    )
    before = connection.latest() - 1
    assert f"StoreError: schema {before} is brought up to date only after a backup" in ran.stderr
    assert rows(old, "PRAGMA user_version") == [{"user_version": before}]
    assert names(old) == []
    connect(path_of(old)).close()  # when there is room
    assert rows(old, "PRAGMA user_version") == [{"user_version": connection.latest()}]


def test_a_full_disk_is_named_as_what_keeps_a_store_from_its_migration(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: str, target: str, *, is_live: bool) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(backup, "copy", full)
    with pytest.raises(StoreError, match=r"only after a backup: .* the disk is full: .* make room"):
        connect(path_of(old))
    assert rows(old, "PRAGMA user_version") == [{"user_version": connection.latest() - 1}]


def test_a_store_found_damaged_at_its_migration_is_recovered_first(old: Path) -> None:
    backup.make(str(old), NOW)
    spoil(old, root_page(old, "sessions"))
    with open_drained(str(old), now=NOW) as db:
        assert connection.version(db) == connection.latest()
    assert sorted(contents(old)) == ["old note 1", "old note 2", "old note 3"]
    assert_sound(old)
