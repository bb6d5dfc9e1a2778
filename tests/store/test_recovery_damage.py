"""Databases damaged in 1 to 200 places: each opens again by itself, with everything from its backup.

BACKSTORY_RECOVERY_VARIANTS=200 tries so many kinds of damage; `make chaos` does.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from backstory.errors import SchemaTooNew, StoreError
from backstory.recall.answer import answer as search
from backstory.recall.index import Index
from backstory.store.file import backup, recovery, rescue
from backstory.store.file.connection import latest
from backstory.surfaces.opened import open_drained
from tests.helpers.backups import (
    AFTER,
    BEFORE,
    PAGE,
    database,
    names,
    path_of,
    root_page,
    spoil_pages_of,
    stored,
    write_at,
)
from tests.helpers.chaos import DAY, NOW, PYTHON, SOURCE, assert_sound, log_text
from tests.helpers.damage import Table, contents_of, copied, fill, wreck
from tests.helpers.trees import assert_trees_sound

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_worker")]

# Each of these kept a store from being opened, or lost rows of the backup, in another way.
SHORT = (3, 6, 8, 15, 16, 29, 34, 50, 71, 80, 105, 114)
VARIANTS = range(int(os.environ.get("BACKSTORY_RECOVERY_VARIANTS", "0"))) or SHORT


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store in `data` that has content of all kinds, a backup and a log, and `project`."""
    place = tmp_path_factory.mktemp("full")
    (place / "project").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(place))
        patch.setenv("BACKSTORY_SYNTHESIZER", "off")
        fill(place / "data", place / "project")
    return place


def open_as_a_user_does(data: Path, project: Path) -> None:
    """Who meets damage is told to ask again; what nobody has met, a check finds."""
    for _ in range(2):
        try:
            found(data, project)
            break
        except StoreError as error:
            assert "Ask again" in str(error), error
    recovery.verify(str(data), NOW)


def found(data: Path, project: Path) -> int:
    with open_drained(str(data), now=NOW) as db:
        return len(search(Index(None), db, str(project), "walrus", now=NOW, mode="keyword", limit=5).hits)


def assert_whole(data: Path) -> None:
    assert_sound(data)
    with open_drained(str(data), now=NOW) as db:
        assert_trees_sound(db)
    before = contents_of(path_of(data)), names(data, "set-aside"), recovery.notice(str(data))
    assert recovery.verify(str(data), NOW) is None
    assert (contents_of(path_of(data)), names(data, "set-aside"), recovery.notice(str(data))) == before


def lost(
    backed_up: dict[str, Table], last: dict[str, Table], now: dict[str, Table]
) -> list[tuple[object, ...]]:
    """Rows that the backup has and nobody deleted. A vector is made again where it is missing."""
    return [
        (table, key)
        for table, rows in backed_up.items()
        for key in rows
        if table != "vectors" and key in last[table] and key not in now[table]
    ]


def is_read(data: Path) -> bool:
    """Whether SQLite reads the schema of the file that was damaged, and the tables by it."""
    damaged = [one.path for one in backup.set_aside(str(data))] or [path_of(data)]
    with closing(sqlite3.connect(f"file:{damaged[0]}?mode=ro", uri=True)) as db:
        try:
            return db.execute("SELECT name FROM sqlite_master").fetchone() is not None
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            return False


def test_whatever_is_damaged_the_store_opens_with_everything_from_its_backup(full: Path, data: Path) -> None:
    copied(full / "data", data)
    last, backed_up = contents_of(path_of(data)), contents_of(backup.listed(str(data))[0].path)
    new = rescued = 0
    failures = {}
    for number in VARIANTS:
        copied(full / "data", data)
        kinds = wreck(data, number)
        try:
            open_as_a_user_does(data, full / "project")
            assert_whole(data)
            now = contents_of(path_of(data))
            assert lost(backed_up, last, now) == []
            assert found(data, full / "project") == 5
            assert "rescue:" not in log_text(data)
        except Exception as error:  # noqa: BLE001  the others are looked at as well
            failures[number] = (kinds, repr(error))
        else:
            later = [
                (table, key)
                for table, rows in last.items()
                if table != "events"  # the ledger forgets what is to come from transcripts
                for key in rows
                if key not in backed_up[table]
            ]
            new += len(later) if is_read(data) else 0
            rescued += sum(key in now[table] for table, key in later)
    assert failures == {}
    assert rescued > new * 0.85  # of what is newer than the backup, where SQLite reads anything at all


def test_without_a_backup_it_opens_with_what_could_be_read(full: Path, data: Path) -> None:
    failures = {}
    for number in VARIANTS[::4]:
        copied(full / "data", data)
        shutil.rmtree(data / "backups")
        kinds = wreck(data, number)
        try:
            open_as_a_user_does(data, full / "project")
            assert_whole(data)
            said = recovery.notice(str(data)) or ""
            assert not said or "there was no backup" in said or "keyword index" in said
        except Exception as error:  # noqa: BLE001
            failures[number] = (kinds, repr(error))
    assert failures == {}


# --- what only looks like something else --------------------------------------------------------------------


def header(offset: int, value: bytes) -> Callable[[Path], None]:
    return lambda data: write_at(database(data), offset, value)


def unreadable_sql(data: Path) -> None:
    at = database(data).read_bytes().index(b"CREATE TABLE spend (") + 20
    write_at(database(data), at, b"\xf1\x80\xff\xfe")


def unreadable_comment(data: Path) -> None:
    at = database(data).read_bytes().index(b"-- a process reads those after") + 10
    write_at(database(data), at, b"\xf1\x80\xff\xfe")


def unreadable_text(data: Path) -> None:
    at = database(data).read_bytes().index(f"Command: {AFTER[70]}".encode()) + 15
    write_at(database(data), at, b"\xff\xfe\xff")


ODD: dict[str, Callable[[Path], None]] = {
    "a schema that is not known yet": header(60, (8).to_bytes(4, "big")),
    "a schema from long ago": header(60, (2).to_bytes(4, "big")),
    "no schema": header(60, bytes(4)),
    "a schema below zero": header(60, b"\xff\xff\xff\xff"),
    "it must not be written": header(18, b"\x07"),
    "more free pages than there are": header(32, b"\xcc\xc2\xea\x1c\xfa\xe8\x0a\xbe"),
    "an unknown format": header(47, b"\x09"),
    "SQL that is no text": unreadable_sql,
    "a comment that is no text": unreadable_comment,
    "a text that is no text": unreadable_text,
}


@pytest.mark.parametrize("damage", ODD)
def test_damage_that_looks_like_something_else_is_mended(damage: str, two_days: Path) -> None:
    ODD[damage](two_days)
    with open_drained(str(two_days), now=NOW):
        pass
    if recovery.notice(str(two_days)) is None:
        recovery.verify(str(two_days), NOW)
    said = recovery.notice(str(two_days)) or ""
    assert "the database was damaged" in said
    read = {
        "a text that is no text": {*AFTER} - {AFTER[70]},
        "an unknown format": set(),
        "SQL that is no text": set(),
    }
    assert set(stored(two_days)) == {*BEFORE, *read.get(damage, AFTER)}
    assert_whole(two_days)


def test_a_reader_of_a_text_that_is_none_gets_the_store_recovered(two_days: Path) -> None:
    unreadable_text(two_days)
    with pytest.raises(StoreError, match="Ask again"), open_drained(str(two_days), now=NOW) as db:
        db.execute("SELECT content FROM memories").fetchall()
    assert_whole(two_days)


def test_a_store_of_a_newer_backstory_is_not_taken_for_damaged(two_days: Path) -> None:
    with closing(sqlite3.connect(path_of(two_days))) as db:
        db.execute("CREATE TABLE of_tomorrow (row INTEGER PRIMARY KEY)")
        db.execute(f"PRAGMA user_version = {latest() + 1}")
    for _ in range(2):
        with pytest.raises(SchemaTooNew, match="upgrade"):
            open_drained(str(two_days), now=NOW)
    assert names(two_days, "set-aside") == []
    assert set(stored(two_days)) == {*BEFORE, *AFTER}


def test_a_backup_whose_header_says_a_newer_schema_gives_way_to_the_one_before(two_days: Path) -> None:
    good = backup.listed(str(two_days))[0]
    newer = backup.make(str(two_days), NOW - DAY // 2)
    write_at(Path(newer.path), 60, (4711).to_bytes(4, "big"))
    database(two_days).write_bytes(b"garbage" * 1000)
    done = recovery.recover(str(two_days), NOW)
    assert done is not None and done.backup is not None
    assert done.backup.name == good.name
    assert set(stored(two_days)) == set(BEFORE)


# --- what is taken for deleted ------------------------------------------------------------------------------


def empty(data: Path, *names_of_trees: str) -> None:
    """Sound pages with no rows."""
    for name in names_of_trees:
        page = (root_page(data, name) - 1) * PAGE
        kind = 13 if database(data).read_bytes()[page] in (5, 13) else 10
        write_at(database(data), page, bytes([kind]) + b"\0\0\0\0\x10\0\0")


def test_rows_are_not_deleted_because_a_table_looks_empty(two_days: Path) -> None:
    empty(two_days, "memories", "sqlite_autoindex_memories_1")
    recovery.verify(str(two_days), NOW)
    assert set(stored(two_days)) == set(BEFORE)
    assert "what else is newer is lost" in (recovery.notice(str(two_days)) or "")
    assert_whole(two_days)


def test_rows_are_not_deleted_because_a_page_says_that_it_has_fewer(two_days: Path) -> None:
    page = database(two_days).read_bytes().index(f"Command: {BEFORE[70]}".encode()) // PAGE * PAGE
    write_at(database(two_days), page + 3, b"\0\1")  # one row
    recovery.verify(str(two_days), NOW)
    assert set(stored(two_days)) == {*BEFORE, *AFTER}
    assert_whole(two_days)


def test_a_row_of_the_backup_stays_where_the_damaged_file_calls_it_otherwise(two_days: Path) -> None:
    """One bit of a memory's id: what refers to it must not go."""
    before = contents_of(path_of(two_days))["session_memories"]
    whole = database(two_days).read_bytes()
    at = whole.rindex(b"mem_", 0, whole.index(f"Command: {BEFORE[70]}".encode()))
    write_at(database(two_days), at + 5, bytes([whole[at + 5] ^ 1]))
    recovery.verify(str(two_days), NOW)
    assert contents_of(path_of(two_days))["session_memories"] == before
    assert_whole(two_days)


# --- what is not the file's fault ---------------------------------------------------------------------------


def test_where_the_rescue_itself_fails_the_backup_is_restored_and_the_loss_told(
    two_days: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil_pages_of(two_days, AFTER[70])
    monkeypatch.setattr(rescue, "AGREEMENTS", (("memories", "DELETE FROM nowhere"),))
    with pytest.raises(StoreError, match="Ask again"), open_drained(str(two_days), now=NOW) as db:
        db.execute("SELECT content FROM memories").fetchall()
    assert set(stored(two_days)) == set(BEFORE)
    assert "nothing newer than it could be read" in (recovery.notice(str(two_days)) or "")
    assert "rescue: OperationalError" in log_text(two_days)
    assert_whole(two_days)


ON_A_FULL_DISK = """
import hashlib, json, os, shutil, subprocess, sys
sys.path.insert(0, sys.argv[1])
store, disk = sys.argv[2:4]
size = sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(store) for name in names)
mount = ["mount", "-t", "tmpfs", "-o", f"size={(size >> 10) + int(sys.argv[4])}k,mode=700", "none", disk]
said = subprocess.run(mount, capture_output=True)
if said.returncode:
    sys.exit("refused: " + said.stderr.decode())
shutil.copytree(store, disk, dirs_exist_ok=True)
from backstory.store.file import recovery
def files():
    found = [os.path.join(at, name) for at, _, names in os.walk(disk) for name in names]
    kept = [path for path in found if not path.endswith((".lock", ".log", "-shm")) and os.path.getsize(path)]
    return {path: hashlib.sha256(open(path, "rb").read()).hexdigest() for path in kept}
before, error = files(), ""
try:
    recovery.recover(disk, 1_800_000_000_000)
except Exception as raised:
    error = f"{type(raised).__name__}: {raised}"
print(json.dumps([error, before == files()]))
"""


@pytest.mark.parametrize("room", [100, 1_000], ids=["for no copy", "for a copy of the backup"])
def test_a_full_disk_is_named_and_nothing_changes(room: int, two_days: Path, tmp_path: Path) -> None:
    spoil_pages_of(two_days, AFTER[70])
    disk = tmp_path / "disk"
    disk.mkdir()
    program = [PYTHON, "-I", "-S", "-c", ON_A_FULL_DISK, SOURCE, str(two_days), str(disk), str(room)]
    ran = subprocess.run(["unshare", "-rm", *program], capture_output=True, text=True, check=False)
    if ran.stderr.startswith(("unshare:", "refused:")):
        pytest.skip(f"no disk of our own here: {ran.stderr.strip()}")
    assert ran.returncode == 0, ran.stderr
    error, is_unchanged = json.loads(ran.stdout)
    assert "could not be replaced yet: the disk is full" in error
    assert is_unchanged
