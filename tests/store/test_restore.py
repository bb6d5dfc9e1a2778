"""Restoring a backup, and processes that are really killed while they do."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstory.errors import Damaged, SchemaTooNew
from backstory.store.file import backup, connection, recovery
from backstory.store.file.connection import connect
from backstory.surfaces.opened import open_drained
from tests.helpers.backups import (
    AFTER,
    BEFORE,
    KILLED,
    capture,
    database,
    killed_at_each_step,
    many,
    names,
    path_of,
    spoil_pages_of,
    store,
    store_in_the_log,
    stored,
)
from tests.helpers.chaos import DAY, NOW, assert_sound, contents, start

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_worker")]


RESTORE = KILLED + "recovery.restore(sys.argv[2], sys.argv[3], 1_800_000_000_000)"

RECOVER = KILLED + "recovery.recover(sys.argv[2], 1_800_000_000_000)"


def test_a_restore_killed_at_any_step_leaves_the_old_store_or_the_new_one(data: Path) -> None:
    """Each whole: the log of the old one, if the new one met it, would fill it with pages from elsewhere."""
    store(data, "echo restored")
    made = backup.make(str(data), NOW)
    before = ["echo restored"]
    results = []
    for nth in killed_at_each_step(RESTORE, data, made.path):
        assert database(data).exists()
        with open_drained(str(data), now=NOW):
            pass  # whoever comes next finishes what was begun
        assert_sound(data)
        after = stored(data)
        assert after in (before, ["echo restored"])
        if after != before:
            assert set(before) <= all_set_aside(data)
        results.append(after == before)
        assert not list(data.glob("*.incoming*"))
        store(data, *many(f"round-{nth}", 30))
        before = [*stored(data), f"echo log-{nth}"]  # not read afterwards: that would empty the log
        store_in_the_log(data, before[-1])
    assert {True, False} <= set(results[1:])
    assert not list(data.glob("*.making*"))


def all_set_aside(data: Path) -> set[str]:
    found: set[str] = set()
    for name in names(data, "set-aside"):
        if name.endswith(".db"):
            db = backup.read_only(str(data / "set-aside" / name))
            found |= {
                row[0].split("\n")[1].removeprefix("Command: ")
                for row in db.execute("SELECT content FROM memories")
            }
            db.close()
    return found


def test_a_recovery_killed_at_any_step_is_done_again(data: Path) -> None:
    before, after = BEFORE[:40], AFTER[:40]
    store(data, *before)
    backup.make(str(data), NOW - DAY)
    store(data, *after)
    on_it = spoil_pages_of(data, after[20])
    assert 2 <= len(on_it) <= 20
    wreck = database(data).read_bytes()
    for _ in killed_at_each_step(RECOVER, data):
        assert database(data).exists()
        recovery.verify(str(data), NOW)
        assert set(stored(data)) == {*before, *after} - on_it
        assert_sound(data)
        assert any((data / "set-aside" / name).read_bytes() == wreck for name in names(data, "set-aside"))
        assert "was damaged" in (recovery.notice(str(data)) or "")
        for left in (data / "set-aside").iterdir():
            left.unlink()
        for left in data.glob("backstory.db-*"):
            left.unlink()
        recovery.acknowledge(str(data))
        database(data).write_bytes(wreck)


def test_what_is_set_aside_takes_its_log_along(data: Path) -> None:
    """A writer was killed: the last of what it stored is in the log only, and must not meet the new file."""
    store(data, "echo old")
    made = backup.make(str(data), NOW)
    store_in_the_log(data, "echo in the log")
    recovery.restore(str(data), made.path, NOW)
    assert stored(data) == ["echo old"]
    assert all_set_aside(data) == {"echo old", "echo in the log"}
    assert_sound(data)


HOLD = """
import sys
sys.path.insert(0, sys.argv[1])
from backstory.store.file.connection import connect
db = connect(sys.argv[2] + "/backstory.db")
db.execute("SELECT count(*) FROM memories").fetchone()
sys.stdout.write("."); sys.stdout.flush(); sys.stdin.read()
db.close()
"""


def test_who_kept_the_old_file_open_does_the_new_one_no_harm(data: Path) -> None:
    """As an MCP server does for its whole life. SQLite removes the log of a file by its name when the last
    one closes it, but not when the file has moved."""
    store(data, "echo old")
    made = backup.make(str(data), NOW)
    with start(HOLD, str(data)) as holder:
        assert holder.stdout
        assert holder.stdout.read(1) == b"."
        recovery.restore(str(data), made.path, NOW)
        writer = connect(path_of(data))
        capture(data, "echo new")
        with open_drained(str(data), now=NOW):
            pass
        assert (data / "backstory.db-wal").stat().st_size > 0
        holder.communicate(timeout=60)
        assert (data / "backstory.db-wal").stat().st_size > 0
        writer.execute("PRAGMA wal_checkpoint(PASSIVE)")
        writer.close()
    assert stored(data) == ["echo old", "echo new"]
    assert_sound(data)


def test_a_backup_that_is_damaged_or_of_a_newer_backstory_is_not_restored(data: Path) -> None:
    store(data, *BEFORE)
    made = backup.make(str(data), NOW)
    whole = Path(made.path).read_bytes()
    Path(made.path).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(Damaged):
        recovery.restore(str(data), made.path, NOW)
    newer = bytearray(whole)
    newer[60:64] = (99).to_bytes(4, "big")
    Path(made.path).write_bytes(newer)
    with pytest.raises(SchemaTooNew):
        recovery.restore(str(data), made.path, NOW)
    assert set(stored(data)) == set(BEFORE)
    assert not (data / "set-aside").exists()


def test_a_restored_store_of_an_older_schema_is_brought_up_to_date(old: Path) -> None:
    connect(path_of(old)).close()
    (made,) = backup.listed(str(old))
    recovery.restore(str(old), made.path, NOW)
    with open_drained(str(old), now=NOW) as db:
        assert connection.version(db) == connection.latest()
    assert len(contents(old)) == 3
