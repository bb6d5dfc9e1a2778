"""The store's door: what it drains, what its errors are to other rooms, and what it leaves behind."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from backstory import locks
from backstory.errors import Busy, Damaged, StoreError, Unavailable
from backstory.store import projects
from backstory.store.file.connection import (
    Connection,
    is_fault_of_the_store,
    may_be_unavailable,
    transaction,
)
from backstory.store.open import open_store

pytestmark = pytest.mark.usefixtures("store_made_anew")
NOW = 1_790_000_000_000


def nothing(_: Connection) -> None:
    pass


def write(db: Connection) -> None:
    with transaction(db):
        db.execute("UPDATE projects SET name = name")


@contextmanager
def somebody_writing(data: Path) -> Iterator[None]:
    with closing(sqlite3.connect(data / "backstory.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@pytest.fixture
def made(data: Path) -> Path:
    with open_store(str(data), now=NOW, drain=nothing):
        pass
    return data


def is_in_use(data: Path) -> bool:
    lock = locks.try_to_take(str(data / "store.lock"))
    if lock is not None:
        os.close(lock)
    return lock is None


def test_the_store_is_drained_before_anybody_reads_it(data: Path) -> None:
    seen: list[Connection] = []
    with open_store(str(data), now=NOW, drain=seen.append) as db:
        assert seen == [db]
        assert projects.every(db) is not None
        assert is_in_use(data)
    assert seen == [db]
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        db.execute("SELECT 1")
    assert not is_in_use(data)


def test_a_drain_that_fails_leaves_neither_a_connection_nor_a_lock(made: Path) -> None:
    seen: list[Connection] = []

    def fail(db: Connection) -> None:
        seen.append(db)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        open_store(str(made), now=NOW, drain=fail)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        seen[0].execute("SELECT 1")
    assert not is_in_use(made)


def test_who_is_in_a_hurry_gets_the_store_undrained_while_others_write(made: Path) -> None:
    with somebody_writing(made):
        with open_store(str(made), now=NOW, drain=write, hurried=True) as db:
            assert db.execute("SELECT count(*) FROM projects").fetchone()[0] >= 0
        with (
            pytest.raises(Busy, match="was busy"),
            open_store(str(made), now=NOW, drain=nothing, hurried=True) as db,
        ):
            write(db)


def test_who_is_in_a_hurry_waits_for_no_lock(made: Path) -> None:
    with closing(sqlite3.connect(made / "backstory.db")) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        since = time.monotonic()
        with pytest.raises(StoreError, match="try again"):
            open_store(str(made), now=NOW, drain=nothing, hurried=True)
        assert time.monotonic() - since < 5
        other.execute("ROLLBACK")


def test_what_sqlite_cannot_do_now_is_unavailable_and_says_what_to_do(made: Path) -> None:
    with (
        pytest.raises(Unavailable, match=r"^the disk is full: .* takes no more; make room and try") as caught,
        open_store(str(made), now=NOW, drain=nothing) as db,
    ):
        db.execute("PRAGMA max_page_count = 1")  # as many as there are
        db.execute("CREATE TABLE more AS SELECT randomblob(10000000)")
    assert not isinstance(caught.value, Busy)


def test_a_statement_that_does_not_fit_is_a_store_error_but_not_one_that_passes(made: Path) -> None:
    with pytest.raises(StoreError) as caught, open_store(str(made), now=NOW, drain=nothing) as db:
        db.execute("INSERT INTO projects (id) VALUES (NULL)")
    assert type(caught.value) is StoreError
    assert isinstance(caught.value.__cause__, sqlite3.IntegrityError)


def test_a_damaged_database_is_damaged_to_who_is_in_a_hurry_and_recovered_for_others(made: Path) -> None:
    (made / "backstory.db").write_bytes(b"no database at all" * 1_000)
    with pytest.raises(Damaged, match="is damaged"):
        open_store(str(made), now=NOW, drain=nothing, hurried=True)
    with (opened := open_store(str(made), now=NOW, drain=nothing)) as db:
        assert db.execute("SELECT count(*) FROM memories").fetchone()[0] == 0
    assert opened.recovered is not None
    assert "damaged" in opened.recovered.sentence()


def test_who_can_go_on_without_learns_of_it_inside_the_store(made: Path) -> None:
    with somebody_writing(made), open_store(str(made), now=NOW, drain=nothing, hurried=True) as db:
        with pytest.raises(Busy, match=r"^database is locked$"), may_be_unavailable():
            write(db)
        assert projects.every(db) is not None
        with pytest.raises(sqlite3.IntegrityError), may_be_unavailable():
            raise sqlite3.IntegrityError("ours")


@pytest.mark.parametrize(
    ("error", "is_fault"),
    [
        (sqlite3.OperationalError("database or disk is full"), True),
        (sqlite3.DatabaseError("database disk image is malformed"), True),
        (sqlite3.IntegrityError("NOT NULL constraint failed"), False),
        (sqlite3.InterfaceError("bad parameter"), False),
        (ValueError("an odd event"), False),
    ],
)
def test_only_what_is_no_events_fault_keeps_a_batch_in_the_spool(error: Exception, is_fault: bool) -> None:
    assert is_fault_of_the_store(error) is is_fault
