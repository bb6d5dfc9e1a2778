"""The backup before a migration, and a migration that is refused without one."""

from __future__ import annotations

import resource
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
from tests.helpers.chaos import NOW, PYTHON, SOURCE, assert_sound, contents, rows, start

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
