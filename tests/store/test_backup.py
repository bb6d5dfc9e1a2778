"""Backups, and coming back from them: real files, really damaged, and processes that are really killed."""

from __future__ import annotations

import fcntl
import json
import os
import re
import resource
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory import paths
from backstory.docmem import tree
from backstory.errors import Damaged, NotFound, SchemaTooNew, StoreError
from backstory.intake.note import keep
from backstory.model import Project
from backstory.recall.index import Index
from backstory.recall.search import search
from backstory.store import life, nodes, projects
from backstory.store.file import backup, connection, recovery, swap
from backstory.store.file.backup import Backup
from backstory.store.file.connection import connect, transaction
from backstory.surfaces.opened import open_drained
from tests.helpers.chaos import (
    DAY,
    NOW,
    PYTHON,
    SOURCE,
    assert_sound,
    bash,
    contents,
    log_text,
    prompt,
    put,
    rows,
    run_hook,
    spooled,
    start,
)
from tests.helpers.trees import assert_trees_sound

BACKSTORY = os.path.join(os.path.dirname(sys.executable), "backstory")
PAGE = 4096


@pytest.fixture(autouse=True)
def no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKSTORY_SYNTHESIZER", "off")  # it would make backups of its own


def backstory(*args: str, cwd: Path | None = None, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BACKSTORY, *args],
        cwd=cwd or Path("/"),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def capture(data: Path, *commands: str) -> None:
    """Captured, and not stored yet."""
    for command in commands:
        put(data, bash(command))


def store(data: Path, *commands: str) -> None:
    """Captured and stored."""
    capture(data, *commands)
    with open_drained(str(data), now=NOW):
        pass


DRAIN_AND_DIE = """
import os, sys
sys.path.insert(0, sys.argv[1])
from backstory.surfaces.opened import open_drained
opened = open_drained(sys.argv[2], now=1_800_000_000_000)
os.kill(os.getpid(), 9)
"""


def store_in_the_log(data: Path, *commands: str) -> None:
    """Stored by a process that was killed: it is in the write-ahead log only."""
    capture(data, *commands)
    with start(DRAIN_AND_DIE, str(data)) as process:
        process.communicate(timeout=60)
    assert (data / "backstory.db-wal").stat().st_size > 0


def many(prefix: str, count: int = 150) -> list[str]:
    """Commands that fill some pages."""
    return [f"echo {prefix}-{number} {'word ' * 30}".strip() for number in range(count)]


BEFORE, AFTER = many("before"), many("after")


def stored(data: Path) -> list[str]:
    return [text.split("\n")[1].removeprefix("Command: ") for text in contents(data)]


def database(data: Path) -> Path:
    return data / "backstory.db"


def path_of(data: Path) -> str:
    return str(database(data))


def names(data: Path, of: str = "backups") -> list[str]:
    place = data / of
    return sorted(path.name for path in place.iterdir() if path.name != ".lock") if place.exists() else []


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def write_at(path: Path, offset: int, what: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(what)


def root_page(data: Path, table: str) -> int:
    (found,) = rows(data, "SELECT rootpage FROM sqlite_master WHERE name = ?", table)
    return int(found["rootpage"])


def spoil(data: Path, page: int) -> None:
    write_at(database(data), (page - 1) * PAGE, b"\xa5" * PAGE)


def spoil_pages_of(data: Path, *commands: str) -> set[str]:
    """Spoil the pages on which the traces of these commands are; the commands that were on them."""
    whole = database(data).read_bytes()
    found = set()
    for command in commands:
        page = whole.index(f"Command: {command}".encode()) // PAGE
        on_it = whole[page * PAGE : (page + 1) * PAGE]
        found |= {one for one in (*BEFORE, *AFTER) if f"Command: {one}".encode() in on_it}
        spoil(data, page + 1)
    return found


# --- making them --------------------------------------------------------------------------------------------


def test_a_backup_is_the_whole_store_in_one_private_file(data: Path) -> None:
    store(data, "echo one", "echo two")
    keeping = connect(path_of(data))  # so that there is a write-ahead log with something in it
    store(data, "echo three")
    made = backup.make(str(data), NOW)
    keeping.close()
    assert [path.name for path in data.glob("backstory.db*")] == ["backstory.db"]
    assert made.name == "backstory-20270115T080000Z.db"
    assert names(data) == [made.name]
    assert (mode(data / "backups"), mode(Path(made.path))) == (0o700, 0o600)
    assert made.schema == connection.latest()
    copy = sqlite3.connect(made.path)
    assert [row[0] for row in copy.execute("PRAGMA integrity_check")] == ["ok"]
    assert copy.execute("PRAGMA journal_mode").fetchone()[0] == "delete"
    assert copy.execute("SELECT count(*) FROM memories").fetchone()[0] == 3
    copy.close()
    assert names(data) == [made.name]  # reading it left nothing beside it


def test_two_backups_in_one_second_are_two(data: Path) -> None:
    store(data, "echo one")
    assert backup.make(str(data), NOW).path != backup.make(str(data), NOW).path
    assert len(names(data)) == 2


def test_without_a_store_there_is_nothing_to_back_up(data: Path) -> None:
    with pytest.raises(NotFound, match="no store"):
        backup.make(str(data), NOW)
    assert names(data) == []


def test_a_damaged_store_makes_no_backup(data: Path) -> None:
    store(data, *many("event"))
    spoil(data, root_page(data, "memories"))
    with pytest.raises(Damaged):
        backup.make(str(data), NOW)
    assert names(data) == []


def test_a_backup_that_fails_its_check_is_not_kept(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that writes something else than it is told."""
    store(data, *many("event"))
    real = backup.copy

    def spoilt(source: str, target: str, *, is_live: bool) -> None:
        real(source, target, is_live=is_live)
        os.truncate(target, os.path.getsize(target) // 2)

    monkeypatch.setattr(backup, "copy", spoilt)
    with pytest.raises(StoreError, match="is the disk in order") as raised:
        backup.make(str(data), NOW)
    assert not isinstance(raised.value, Damaged)  # the store itself is sound
    assert names(data) == []


def test_a_full_disk_makes_no_backup_and_says_so(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store(data, "echo one")

    def full(source: str, target: str, *, is_live: bool) -> None:
        Path(target).write_bytes(b"half")
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(backup, "copy", full)
    with pytest.raises(StoreError, match=r"too full for a backup.*make room"):
        backup.make(str(data), NOW)
    assert names(data) == []


def test_writers_go_on_while_a_backup_is_made_and_it_holds_what_belongs_together(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_drained(str(data), now=NOW) as db:
        db.execute("CREATE TABLE bulk (text TEXT)")
        db.execute(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)"
            " INSERT INTO bulk SELECT hex(randomblob(5000)) FROM n"
        )
        db.execute("CREATE TABLE one (i INTEGER)")
        db.execute("CREATE TABLE other (i INTEGER)")
    monkeypatch.setattr(backup, "PAGES", 2)  # slow
    made: list[Backup] = []
    copying = threading.Thread(target=lambda: made.append(backup.make(str(data), NOW)))
    writer = connect(path_of(data))
    writer.execute("PRAGMA synchronous = OFF")  # many changes
    written = 0
    copying.start()
    deadline = time.monotonic() + 60
    while copying.is_alive() and time.monotonic() < deadline:
        with transaction(writer):
            writer.execute("INSERT INTO one VALUES (?)", (written,))
            writer.execute("INSERT INTO other VALUES (?)", (written,))
        written += 1
    ended = not copying.is_alive()
    copying.join()
    writer.close()
    assert ended
    assert written > 3
    copy = sqlite3.connect(made[0].path)
    both = copy.execute("SELECT (SELECT count(*) FROM one), (SELECT count(*) FROM other)").fetchone()
    copy.close()
    assert both[0] == both[1]
    assert both[0] <= written // 2  # as it was when the copy began, not anew with every change


KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from backstory.store.file import backup, recovery, swap
from backstory.surfaces.opened import open_drained

nth, calls = int(sys.argv[3]), 0
def at_each_step(event, args):
    global calls
    paths = [os.fsdecode(arg) for arg in args if isinstance(arg, (str, bytes))]
    steps = ("os.rename", "os.link", "os.remove", "os.mkdir", "os.utime", "os.truncate", "sqlite3.connect")
    written = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)
    if (event in steps or written) and any(sys.argv[2] in path for path in paths):
        calls += 1
        if calls == nth:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(at_each_step)
"""
BACK_UP = KILLED + "backup.make(sys.argv[2], 1_800_000_000_000)"
RESTORE = KILLED + "recovery.restore(sys.argv[2], sys.argv[4], 1_800_000_000_000)"
RECOVER = KILLED + "recovery.recover(sys.argv[2], 1_800_000_000_000)"


def killed_at_each_step(program: str, data: Path, *args: str) -> Iterator[int]:
    """Run it again and again, killed one step later each time, until it comes to its end."""
    for nth in range(1, 100):
        with start(program, str(data), str(nth), *args) as process:
            _, said = process.communicate(timeout=60)
        assert process.returncode in (0, -9), said
        yield nth
        if process.returncode == 0:
            assert nth > 3  # else it was never killed
            return
    raise AssertionError("it does not end")


def test_a_backup_killed_at_any_step_leaves_no_half_backup(data: Path) -> None:
    store(data, *many("event"))
    for _ in killed_at_each_step(BACK_UP, data):
        for one in backup.listed(str(data)):
            assert backup.check(one.path) == connection.latest()
            os.unlink(one.path)
    (data / "backups" / "backstory-20270115T080000Z.db.making").write_bytes(b"half")
    backup.make(str(data), NOW + DAY)
    assert names(data) == ["backstory-20270116T080000Z.db"]  # what a kill left is gone


# --- when, and for how long ---------------------------------------------------------------------------------


def test_a_backup_is_due_once_a_day(data: Path) -> None:
    folder = str(data)
    assert not backup.due(folder, NOW)  # there is nothing yet
    store(data, "echo one")
    assert backup.due(folder, NOW)
    backup.make(folder, NOW)
    assert not backup.due(folder, NOW + DAY - 1000)
    assert backup.due(folder, NOW + DAY)
    backup.make(folder, NOW + DAY, "before-9")
    assert backup.due(folder, NOW + DAY)  # that one was for another reason
    backup.make(folder, NOW + 400 * DAY)  # while the clock was wrong
    assert backup.due(folder, NOW + DAY)


def daily(at: int) -> Backup:
    return Backup(f"backstory-{swap.stamp(at)}.db", at, "daily")


def test_seven_daily_and_four_weekly_ones_are_kept() -> None:
    monday = 1_799_625_600_000  # 2027-01-11, 00:00
    assert time.gmtime(monday // 1000).tm_wday == 0
    found: list[Backup] = []
    for day in range(60):  # up to a Thursday
        found = backup.kept([*found, daily(monday + day * DAY + 3600_000)])
    days = sorted((one.at - monday) // DAY for one in found)
    assert days == [41, 48, *range(53, 60)]  # Sundays; that of the third week, 55, is among the daily ones


def test_the_largest_of_the_last_four_weeks_outlives_a_store_that_was_emptied() -> None:
    """A new and empty store is backed up as well, on the same day and on those that follow."""
    sizes = {NOW: 90_000_000}

    def left(found: list[Backup]) -> list[Backup]:
        return backup.kept(found, size=lambda one: sizes.get(one.at, 300_000))

    found = left([daily(NOW), daily(NOW + 3_600_000)])
    assert [one.at for one in found] == [NOW + 3_600_000, NOW]
    for day in range(1, 28):
        found = left([*found, daily(NOW + day * DAY)])
        assert NOW in {one.at for one in found}, day
    found = left([*found, daily(NOW + 29 * DAY)])
    assert NOW not in {one.at for one in found}


def test_the_last_five_that_somebody_asked_for_are_kept_and_take_no_days_place(data: Path) -> None:
    store(data, "echo one")
    daily_one = backup.make(str(data), NOW)
    asked_for = [backup.make(str(data), NOW + hour * 3_600_000, "manual") for hour in range(1, 8)]
    assert asked_for[0].name == "backstory-20270115T090000Z-manual.db"
    assert sorted(backup.prune(str(data))) == sorted(one.name for one in asked_for[:2])
    left = backup.listed(str(data))
    assert [one.name for one in left] == [one.name for one in reversed([daily_one, *asked_for[2:]])]
    assert {one.reason for one in left} == {"daily", "manual"}
    assert backup.due(str(data), NOW + DAY)  # only the one that comes by itself counts for the day


moments = st.integers(0, 200 * 24).map(lambda hour: NOW + hour * 3600_000)


@given(st.lists(moments, unique=True), st.lists(moments, max_size=6, unique=True), st.integers(0, 10))
def test_what_is_kept_follows_the_calendar(days: list[int], before: list[int], odd: int) -> None:
    found = [daily(at) for at in days] + [Backup(f"{at}-before-2.db", at, "before-2") for at in before]

    def size(one: Backup) -> int:
        return one.at % (odd + 1)

    keep = backup.kept(found, size)
    assert len(keep) == len(set(keep))
    if found:
        assert max(found, key=lambda one: one.at).at in {one.at for one in keep}
    kept_daily = {one.at for one in keep if one.reason == "daily"}
    for period, most in ((lambda at: at // DAY, 7), (week, 4)):
        latest = {period(at): at for at in sorted(days)}
        for wanted in sorted(latest)[-most:]:
            assert latest[wanted] in kept_daily
    assert len(kept_daily) <= 7 + 4 + 1
    kept_before = {one.at for one in keep if one.reason != "daily"}
    assert set(sorted(before)[-3:]) <= kept_before
    assert len(kept_before) <= 3 + 1
    if found:
        since = max(one.at for one in found) - 28 * DAY
        assert max(map(size, keep)) >= max(size(one) for one in found if one.at > since)
    assert backup.kept(keep, size) == keep  # pruning twice removes nothing more


def week(at: int) -> int:
    from datetime import UTC, datetime

    year, number, _ = datetime.fromtimestamp(at / 1000, UTC).isocalendar()
    return year * 100 + number


def test_pruning_removes_what_is_not_needed_and_nothing_else(data: Path) -> None:
    store(data, "echo one")
    for day in range(40):
        backup.make(str(data), NOW + day * DAY)
    (data / "backups" / "mine.db").write_bytes(b"not of backstory")
    (data / "backups" / "backstory-99999999T999999Z.db").write_bytes(b"no such time")
    gone = backup.prune(str(data))
    left = [one.name for one in backup.listed(str(data))]
    assert left == [one.name for one in backup.kept(backup.listed(str(data)))]
    assert len(gone) + len(left) == 40
    assert {"mine.db", "backstory-99999999T999999Z.db"} <= set(names(data))
    assert not set(gone) & set(names(data))


# --- before a migration -------------------------------------------------------------------------------------


@pytest.fixture
def old(data: Path) -> Path:
    """A store at schema 2 with a session and three notes."""
    data.mkdir(parents=True)
    db = sqlite3.connect(path_of(data), isolation_level=None)
    connection.apply(db, upto=2)
    db.execute("INSERT INTO projects VALUES (1, 'prj_api', '/x/api', 'api', '/x/api', 3, ?)", (NOW,))
    db.execute(
        "INSERT INTO sessions (id, project_id, started_at, last_event_at, number)"
        " VALUES ('s', 'prj_api', ?, ?, 1)",
        (NOW, NOW),
    )
    for number in range(1, 4):
        db.execute(
            "INSERT INTO memories (row, id, project_id, session_id, kind, sector, tier, content, salience,"
            " created_at, updated_at, last_accessed) VALUES (?, ?, 'prj_api', 's', 'note', 'semantic',"
            " 'project', ?, 0.5, ?, ?, ?)",
            (1 << 32 | number, f"mem_{number}", f"old note {number}", NOW, NOW, NOW),
        )
    db.close()
    return data


def test_before_a_migration_there_is_a_backup_of_the_schema_before(old: Path) -> None:
    connect(path_of(old)).close()
    (made,) = backup.listed(str(old))
    assert (made.reason, made.schema) == ("before-3", 2)
    assert made.name.endswith("Z-before-3.db")
    assert rows(old, "PRAGMA user_version") == [{"user_version": connection.latest()}]
    connect(path_of(old)).close()
    assert len(backup.listed(str(old))) == 1


def test_a_store_without_anything_in_it_needs_no_backup_before_a_migration(data: Path) -> None:
    data.mkdir(parents=True)
    db = sqlite3.connect(path_of(data), isolation_level=None)
    connection.apply(db, upto=1)
    db.close()
    connect(path_of(data)).close()
    assert backup.listed(str(data)) == []


OPEN = """
import sys
sys.path.insert(0, sys.argv[1])
from backstory.store.file.connection import connect
sys.stdin.read()
connect(sys.argv[2] + "/backstory.db").close()
"""


def test_processes_that_migrate_at_once_make_one_backup(old: Path) -> None:
    running = [start(OPEN, str(old)) for _ in range(5)]
    for process in running:
        assert process.stdin
        process.stdin.close()
    for process in running:
        assert process.stderr
        with process:
            assert process.stderr.read() == b""
            assert process.wait(timeout=60) == 0
    assert [one.schema for one in backup.listed(str(old))] == [2]
    assert rows(old, "PRAGMA user_version") == [{"user_version": connection.latest()}]


def test_a_migration_is_refused_where_no_backup_can_be_made(old: Path) -> None:
    def too_small() -> None:  # no file may grow beyond half of the store
        half = database(old).stat().st_size // 2
        resource.setrlimit(resource.RLIMIT_FSIZE, (half, half))

    program = (
        "import signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); sys.path.insert(0, sys.argv[1])\n"
        "from backstory.store.file.connection import connect\nconnect(sys.argv[2])"
    )
    ran = subprocess.run(
        [PYTHON, "-I", "-S", "-c", program, SOURCE, path_of(old)],
        preexec_fn=too_small,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "StoreError: schema 2 is brought up to date only after a backup" in ran.stderr
    assert rows(old, "PRAGMA user_version") == [{"user_version": 2}]
    assert names(old) == []
    connect(path_of(old)).close()  # when there is room
    assert rows(old, "PRAGMA user_version") == [{"user_version": connection.latest()}]


def test_a_full_disk_is_named_as_what_keeps_a_store_from_its_migration(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: str, target: str, *, is_live: bool) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(backup, "copy", full)
    with pytest.raises(StoreError, match=r"only after a backup: the disk is too full .* make room"):
        connect(path_of(old))
    assert rows(old, "PRAGMA user_version") == [{"user_version": 2}]


def test_a_store_found_damaged_at_its_migration_is_recovered_first(old: Path) -> None:
    backup.make(str(old), NOW)
    spoil(old, root_page(old, "sessions"))
    with open_drained(str(old), now=NOW) as db:
        assert connection.version(db) == connection.latest()
    assert sorted(contents(old)) == ["old note 1", "old note 2", "old note 3"]
    assert_sound(old)


# --- a damaged database comes back --------------------------------------------------------------------------


def middle(data: Path) -> None:
    size = database(data).stat().st_size
    third = size // 3 // PAGE * PAGE
    write_at(database(data), third, os.urandom(third))


def half(data: Path) -> None:
    os.truncate(database(data), database(data).stat().st_size // 2)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "pages in the middle overwritten": middle,
    "the header overwritten": lambda data: write_at(database(data), 0, b"#" * 100),
    "the first page overwritten": lambda data: write_at(database(data), 0, os.urandom(PAGE)),
    "truncated to half": half,
    "truncated to 100 bytes": lambda data: os.truncate(database(data), 100),
    "truncated to nothing": lambda data: os.truncate(database(data), 0),
    "overwritten with something else": lambda data: database(data).write_bytes(b"no database " * 9999),
}


@pytest.fixture(params=DAMAGE)
def damaged(request: pytest.FixtureRequest, data: Path) -> Path:
    """A store with a backup, events after it, and one that still waits in the spool; then it is damaged."""
    store(data, *BEFORE)
    backup.make(str(data), NOW - DAY)
    store(data, *AFTER)
    capture(data, "echo waiting")
    DAMAGE[request.param](data)
    return data


def assert_back(data: Path, wreck: bytes) -> None:
    """Backup and spool are there whole, each event once, and the damaged file is kept as it was."""
    assert_sound(data)
    found = Counter(stored(data))
    assert set(found) >= {*BEFORE, "echo waiting"}
    assert set(found) <= {*BEFORE, *AFTER, "echo waiting"}
    assert set(found.values()) == {1}
    assert spooled(data) == []
    (aside,) = (name for name in names(data, "set-aside") if name.endswith(".db"))
    assert (data / "set-aside" / aside).read_bytes() == wreck
    assert (mode(data / "set-aside"), mode(data / "set-aside" / aside)) == (0o700, 0o600)
    assert mode(database(data)) == 0o600
    said = recovery.notice(str(data))
    assert said is not None
    assert "the database was damaged" in said
    assert aside in said
    assert "the database was damaged" in log_text(data)
    lost = set(AFTER) - set(found)
    if lost:
        assert "what else is newer is lost" in said
    else:
        assert "is lost" in said


@pytest.mark.usefixtures("real_python")
def test_a_hook_brings_a_damaged_store_back_from_backup_and_spool(damaged: Path) -> None:
    wreck = database(damaged).read_bytes()
    ran = run_hook(prompt("go on"), "drain")
    assert (ran.code, ran.silent) == (0, True)
    if recovery.notice(str(damaged)) is None:  # nothing of what a drain reads was hit
        recovery.verify(str(damaged), NOW)
    with open_drained(str(damaged), now=NOW) as db:
        db.execute("DELETE FROM memories WHERE kind = 'prompt'")
    assert_back(damaged, wreck)


def test_a_search_brings_a_damaged_store_back_from_backup_and_spool(damaged: Path) -> None:
    wreck = database(damaged).read_bytes()
    ran = backstory("search", "before-7", "--project", "/")
    assert "Traceback" not in ran.stderr
    if recovery.notice(str(damaged)) is None:
        recovery.verify(str(damaged), NOW)
    else:
        assert "the database was damaged" in ran.stderr
    with open_drained(str(damaged), now=NOW):
        pass
    assert_back(damaged, wreck)


def test_doctor_brings_a_damaged_store_back_and_says_so_until_it_is_acknowledged(damaged: Path) -> None:
    wreck = database(damaged).read_bytes()

    def check() -> dict[str, Any]:
        found = {one["name"]: one for one in json.loads(backstory("doctor", "--json").stdout)}
        assert found["database"]["level"] == "ok"
        assert found["canary"]["level"] == "ok"
        return dict(found["backup"])

    said = check()
    assert_back(damaged, wreck)
    assert said["level"] == "warn"
    assert "the database was damaged" in said["finding"]
    assert "backstory backup now" in said["advice"]
    assert check() == said
    made = backstory("backup", "now")
    assert made.returncode == 0
    assert "the database was damaged" in made.stderr
    assert check()["level"] == "ok"
    assert names(damaged, "set-aside") != []


def test_after_an_unclean_stop_a_database_that_fails_its_check_is_recovered(damaged: Path) -> None:
    wreck = database(damaged).read_bytes()
    done = recovery.verify(str(damaged), NOW)
    assert done is not None
    assert done.backup is not None
    assert done.backup.at == NOW - DAY
    with open_drained(str(damaged), now=NOW):
        pass
    assert_back(damaged, wreck)
    assert recovery.verify(str(damaged), NOW) is None


def test_a_sound_database_is_left_alone(data: Path) -> None:
    store(data, "echo one")
    backup.make(str(data), NOW)
    store(data, "echo two")
    assert recovery.verify(str(data), NOW) is None
    assert recovery.recover(str(data), NOW) is None
    assert sorted(stored(data)) == ["echo one", "echo two"]
    assert not (data / "set-aside").exists()


def test_one_bad_page_loses_only_what_was_on_it(data: Path) -> None:
    store(data, *BEFORE)
    backup.make(str(data), NOW - DAY)
    store(data, *AFTER)
    on_it = spoil_pages_of(data, AFTER[70])
    assert 2 <= len(on_it) <= 20
    done = recovery.verify(str(data), NOW)
    assert done is not None
    assert set(stored(data)) == {*BEFORE, *AFTER} - on_it
    assert done.rescued.rows["memories"] == len(AFTER) - len(on_it)
    assert f"{len(AFTER) - len(on_it)} memories newer than it" in done.sentence()
    assert_sound(data)


def test_several_bad_pages_lose_only_what_was_on_them(data: Path) -> None:
    store(data, *BEFORE)
    backup.make(str(data), NOW - DAY)
    store(data, *AFTER)
    on_them = spoil_pages_of(data, AFTER[10], AFTER[60], AFTER[61], AFTER[140])
    recovery.verify(str(data), NOW)
    assert set(stored(data)) == {*BEFORE, *AFTER} - on_them


def test_where_only_the_first_page_is_gone_nothing_is_lost(data: Path) -> None:
    """Forgotten stays forgotten, erased stays erased, and what changed since the backup stays changed."""
    (data / "api").mkdir(parents=True)
    ids = []
    with open_drained(str(data), now=NOW) as db:
        for word in ("keep", "forget", "erase", "reinforce"):
            ids.append(keep(db, str(data / "api"), f"a note to {word}", now=NOW).memory.id)
    backup.make(str(data), NOW)
    with open_drained(str(data), now=NOW) as db, transaction(db):
        life.forget(db, ids[1], None, NOW)
        life.erase(db, ids[2])
        life.reinforce(db, ids[3], 0.5, None, NOW)
    store(data, *AFTER)
    before = everything(path_of(data))
    write_at(database(data), 0, os.urandom(PAGE))
    done = recovery.verify(str(data), NOW)
    assert done is not None
    assert "nothing is lost" in done.sentence()
    assert everything(path_of(data)) == before
    assert_sound(data)


def everything(path: str) -> dict[str, list[tuple[object, ...]]]:
    db = sqlite3.connect(path)
    try:
        made = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        tables = [row[0] for row in db.execute(made) if "_fts" not in row[0]]
        keep = [name for name in tables if not name.startswith("sqlite_") and name != "line_changes"]
        return {name: sorted(db.execute(f"SELECT * FROM {name}"), key=repr) for name in keep}  # noqa: S608
    finally:
        db.close()


def test_what_is_only_in_the_log_of_a_damaged_database_is_rescued_too(data: Path) -> None:
    store(data, *BEFORE)
    backup.make(str(data), NOW - DAY)
    store_in_the_log(data, *AFTER)
    assert (data / "backstory.db-wal").stat().st_size > 0
    spoil_pages_of(data, BEFORE[70])
    done = recovery.verify(str(data), NOW)
    assert done is not None
    assert set(stored(data)) == {*BEFORE, *AFTER}  # those of the bad page are in the backup
    assert [name.partition(".db")[2] for name in names(data, "set-aside")] == ["", "-shm", "-wal"]


def test_a_project_whose_page_is_gone_gets_its_counter_back(data: Path) -> None:
    store(data, *BEFORE)
    backup.make(str(data), NOW - DAY)
    store(data, *AFTER)
    spoil(data, root_page(data, "projects"))
    capture(data, "echo waiting")
    with open_drained(str(data), now=NOW) as db:
        assert recovery.notice(str(data))
        highest = db.execute("SELECT max(row) & 4294967295 AS row FROM memories").fetchone()["row"]
        assert db.execute("SELECT last_memory FROM projects").fetchone()["last_memory"] >= highest
    assert set(stored(data)) == {*BEFORE, *AFTER, "echo waiting"}
    assert spooled(data, "failed") == []
    assert_sound(data)


def test_a_memory_whose_session_is_lost_stays_and_its_links_go(data: Path) -> None:
    store(data, *BEFORE)
    backup.make(str(data), NOW - DAY)
    put(data, bash("echo orphan", session_id="session-2"))
    with open_drained(str(data), now=NOW):
        pass
    spoil(data, root_page(data, "sessions"))
    recovery.verify(str(data), NOW)
    assert "echo orphan" in stored(data)
    (found,) = rows(data, "SELECT session_id FROM memories WHERE content LIKE '%orphan%'")
    assert found["session_id"] is None
    assert_sound(data)


# Trees: what hangs below a lost node is not lost.


@pytest.fixture
def planted(data: Path) -> tuple[Path, Project]:
    """A store with a tree `main`, and a backup of it."""
    with open_drained(str(data), now=NOW) as db:
        with transaction(db):
            number = projects.ensure(db, paths.place("/"), NOW)
        project = projects.by_id(db, number)
        tree.create(db, project, root_id="main", now=NOW)
    backup.make(str(data), NOW - DAY)
    return data, project


def grow(data: Path, project: Project, *new: tuple[str, str]) -> list[str]:
    """Nodes as (target, text), each so long that it has a page to itself; their ids. A target may be the text
    of an earlier one."""
    made: dict[str, str] = {}
    with open_drained(str(data), now=NOW) as db:
        for target, text in new:
            whole = text + " " * (3_000 - len(text))
            one = tree.add(
                db, project, made.get(target, target), whole, ("note", text, ""), "append-child", now=NOW
            )
            made[text] = one.id
    return list(made.values())


def lose(data: Path, text: str) -> None:
    """Spoil the page that this node is on."""
    spoil(data, database(data).read_bytes().index(f"{text} ".encode() + b" " * 100) // PAGE + 1)


def recovered(data: Path, project: Project, *root_ids: str) -> list[list[tuple[str, int]]]:
    """Recover; the trees, each node as (name, depth), depth-first."""
    assert recovery.verify(str(data), NOW) is not None
    assert_sound(data)
    with open_drained(str(data), now=NOW) as db:
        assert_trees_sound(db)
        assert {one.id for one in nodes.roots(db, project.number)} >= set(root_ids)
        return [
            [
                (one.context_name, len(nodes.path(db, project.number, one.id)) - 1)
                for one in nodes.subtree(db, project.number, root.id)
            ]
            for root in nodes.roots(db, project.number)
        ]


def test_nodes_whose_parent_is_lost_go_to_the_end_of_their_tree(planted: tuple[Path, Project]) -> None:
    data, project = planted
    grow(
        data,
        project,
        ("main", "lost"),
        ("lost", "first"),
        ("first", "below"),
        ("lost", "second"),
        ("main", "last"),
    )
    lose(data, "lost")
    assert recovered(data, project, "main") == [
        [("main", 0), ("last", 1), ("first", 1), ("below", 2), ("second", 1)]
    ]


def test_nodes_whose_root_is_lost_become_roots_with_all_below_them(planted: tuple[Path, Project]) -> None:
    data, project = planted
    with open_drained(str(data), now=NOW) as db:
        tree.create(db, project, root_id="other", text="other" + " " * 3_000, now=NOW)
    ids = grow(data, project, ("other", "one"), ("other", "two"), ("two", "below"), ("below", "deeper"))
    lose(data, "other")
    found = recovered(data, project, "main", ids[0], ids[1])
    assert sorted(found) == [[("main", 0)], [("one", 0)], [("two", 0), ("below", 1), ("deeper", 2)]]


def test_rows_of_two_files_that_lead_in_a_circle_are_put_back_into_their_tree(
    planted: tuple[Path, Project],
) -> None:
    data, project = planted
    upper, lower, _, other = grow(
        data, project, ("main", "upper"), ("upper", "lower"), ("lower", "leaf"), ("main", "other")
    )
    backup.make(str(data), NOW - DAY + 1_000)
    with open_drained(str(data), now=NOW) as db:
        tree.move(db, project, lower, other, "before", now=NOW)
        tree.move(db, project, upper, lower, "append-child", now=NOW)
    lose(data, "lower")  # the backup has it below upper, and the file has upper below it
    (found,) = recovered(data, project, "main")
    assert sorted(name for name, _ in found) == ["leaf", "lower", "main", "other", "upper"]


def test_nodes_of_two_files_never_share_a_place(planted: tuple[Path, Project]) -> None:
    data, project = planted
    _, gone, _ = grow(data, project, ("main", "one"), ("main", "gone"), ("one", "lost"))
    backup.make(str(data), NOW - DAY + 1_000)
    with open_drained(str(data), now=NOW) as db:
        tree.delete(db, project, gone)
    grow(data, project, ("main", "new"), ("main", "more"))  # where the other was
    lose(data, "lost")
    assert recovered(data, project, "main") == [
        [("main", 0), ("one", 1), ("lost", 2), ("gone", 1), ("new", 1), ("more", 1)]
    ]


def test_who_lost_something_is_told_how_many_nodes_are_saved(planted: tuple[Path, Project]) -> None:
    data, project = planted
    grow(data, project, ("main", "one"), ("main", "lost"), ("main", "two"))
    lose(data, "lost")
    done = recovery.verify(str(data), NOW)
    assert done is not None
    assert re.search(r"\d nodes newer than it could be read", done.sentence()), done.sentence()


def test_a_row_number_of_a_node_is_never_used_again(planted: tuple[Path, Project]) -> None:
    data, project = planted
    (node,) = grow(data, project, ("main", "one"))
    spoil(data, root_page(data, "projects"))
    recovered(data, project, "main")
    (below,) = grow(data, project, (node, "two"))
    rows_of = {row["id"]: row["row"] for row in rows(data, "SELECT id, row FROM docmem_nodes")}
    assert rows_of[below] > rows_of[node]


def test_views_of_running_servers_are_nothing_to_rescue(planted: tuple[Path, Project]) -> None:
    data, project = planted
    grow(data, project, ("main", "one"))
    spoil(data, root_page(data, "docmem_views"))
    done = recovery.verify(str(data), NOW)
    assert done is not None
    assert "nothing is lost" in done.sentence()


def test_a_damaged_newest_backup_gives_way_to_the_one_before(data: Path) -> None:
    store(data, *BEFORE)
    good = backup.make(str(data), NOW - 2 * DAY)
    for number, damage in enumerate((b"", b"no database", Path(good.path).read_bytes()[: 30 * PAGE])):
        made = backup.make(str(data), NOW - DAY + number * 1000)
        Path(made.path).write_bytes(damage)
    capture(data, "echo waiting")
    database(data).write_bytes(b"garbage" * 1000)
    with open_drained(str(data), now=NOW):
        pass
    assert Counter(stored(data)) == Counter([*BEFORE, "echo waiting"])
    assert log_text(data).count("a backup cannot be used") == 3
    assert good.name in names(data)


def test_without_a_backup_a_new_store_begins_and_the_spool_is_not_lost(data: Path) -> None:
    capture(data, "echo waiting")
    database(data).write_bytes(b"garbage" * 1000)
    with open_drained(str(data), now=NOW) as db:
        assert connection.version(db) == connection.latest()
    assert stored(data) == ["echo waiting"]
    said = recovery.notice(str(data))
    assert said is not None
    assert "there was no backup; nothing could be read" in said
    assert mode(database(data)) == 0o600
    assert_sound(data)


def test_without_a_backup_what_can_be_read_is_rescued(data: Path) -> None:
    store(data, *BEFORE)
    on_it = spoil_pages_of(data, BEFORE[70])
    done = recovery.verify(str(data), NOW)
    assert done is not None
    assert set(stored(data)) == set(BEFORE) - on_it
    assert f"{len(BEFORE) - len(on_it)} memories could be read" in done.sentence()
    assert_sound(data)


def test_a_backup_of_the_schema_before_is_brought_up_to_date_first(old: Path) -> None:
    backup.make(str(old), NOW - DAY)
    connect(path_of(old)).close()
    for made in backup.listed(str(old)):
        if made.reason != "daily":
            os.unlink(made.path)
    store(old, *AFTER)
    spoil_pages_of(old, AFTER[70])
    done = recovery.verify(str(old), NOW)
    assert done is not None
    assert done.rescued.rows["memories"] > 100
    assert {"old note 1", "old note 2", "old note 3"} < set(contents(old))
    assert rows(old, "PRAGMA user_version") == [{"user_version": connection.latest()}]
    assert_sound(old)


def test_a_backup_that_cannot_be_read_does_not_keep_an_older_one_from_being_restored(data: Path) -> None:
    store(data, *BEFORE)
    good = backup.make(str(data), NOW)
    (data / "backups" / "backstory-20270116T080000Z.db").mkdir()
    database(data).write_bytes(b"garbage" * 1000)
    done = recovery.recover(str(data), NOW)
    assert done is not None and done.backup is not None
    assert done.backup.name == good.name
    assert stored(data) == BEFORE
    assert "a backup cannot be used" in log_text(data)


def test_a_memory_that_moved_to_another_row_since_the_backup_is_not_lost(data: Path) -> None:
    """One that was archived and came back has a new row; its old one must go before it comes."""
    store(data, "echo moved", "echo stayed")
    backup.make(str(data), NOW)
    with open_drained(str(data), now=NOW) as db:
        (found,) = db.execute("SELECT id, row FROM memories WHERE content LIKE '%moved%'").fetchall()
        with transaction(db):
            life.archive(db, [found["id"]], NOW)
        with transaction(db):
            life.restore(db, found["id"], None, NOW)
        (now,) = db.execute("SELECT row FROM memories WHERE id = ?", (found["id"],)).fetchone()
        assert now != found["row"]
    spoil(data, root_page(data, "spend"))
    done = recovery.recover(str(data), NOW)
    assert done is not None and done.rescued.broken == ["spend"]
    assert sorted(stored(data)) == ["echo moved", "echo stayed"]
    assert_sound(data)


def test_a_damaged_store_of_a_newer_backstory_is_left_to_it(data: Path) -> None:
    store(data, *BEFORE)
    db = sqlite3.connect(path_of(data))
    db.execute("PRAGMA user_version = 99")
    db.close()
    made = backup.make(str(data), NOW)
    database(data).write_bytes(b"garbage" * 1000)
    with pytest.raises(SchemaTooNew, match=r"schema 99.*upgrade"):
        recovery.recover(str(data), NOW)
    assert database(data).read_bytes() == b"garbage" * 1000
    assert Path(made.path).exists()


AT_ONCE = """
import sys
sys.path.insert(0, sys.argv[1])
from backstory.surfaces.opened import open_drained
from backstory.store.file import recovery
sys.stdout.write("."); sys.stdout.flush(); sys.stdin.read()
with open_drained(sys.argv[2], now=1_800_000_000_000) as db:
    print(db.execute("SELECT count(*) FROM memories").fetchone()[0])
"""


def test_of_processes_that_meet_the_damage_at_once_one_recovers(data: Path) -> None:
    store(data, *BEFORE)
    backup.make(str(data), NOW - DAY)
    capture(data, "echo waiting")
    database(data).write_bytes(b"garbage" * 1000)
    running = [start(AT_ONCE, str(data)) for _ in range(5)]
    for process in running:
        assert process.stdout
        assert process.stdout.read(1) == b"."
    for process in running:
        assert process.stdin
        process.stdin.close()
    for process in running:
        assert process.stdout
        assert process.stderr
        with process:
            assert process.stderr.read() == b""
            assert int(process.stdout.read()) >= len(BEFORE)
            assert process.wait(timeout=60) == 0
    assert Counter(stored(data)) == Counter([*BEFORE, "echo waiting"])
    assert len([name for name in names(data, "set-aside") if name.endswith(".db")]) == 1
    assert (recovery.notice(str(data)) or "").count("was damaged") == 1


def test_nobody_replaces_the_database_while_somebody_uses_it(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(data, "echo one")
    made = backup.make(str(data), NOW)
    monkeypatch.setattr(swap, "SECONDS", 0.1)
    with open_drained(str(data), now=NOW), pytest.raises(StoreError, match="try again"):
        recovery.restore(str(data), made.path, NOW)
    recovery.restore(str(data), made.path, NOW)


# --- damage that is met later -------------------------------------------------------------------------------


def test_a_reader_that_meets_the_damage_is_told_what_was_done_and_may_ask_again(data: Path) -> None:
    store(data, *BEFORE)
    backup.make(str(data), NOW - DAY)
    store(data, *AFTER)
    spoil_pages_of(data, AFTER[70])
    asked = "SELECT content FROM memories WHERE content LIKE '%-140 %'"
    with (
        pytest.raises(StoreError, match=r"the backup of .* was restored; .* Ask again"),
        open_drained(str(data), now=NOW) as db,
    ):
        db.execute(asked).fetchall()
    with open_drained(str(data), now=NOW) as db:
        assert len(db.execute(asked).fetchall()) == 2


def test_a_damaged_keyword_index_is_made_anew_and_nothing_is_lost(data: Path) -> None:
    (data / "api").mkdir(parents=True)
    with open_drained(str(data), now=NOW) as db:
        for number in range(50):
            keep(db, str(data / "api"), f"the walrus number {number} likes {number * 7}", now=NOW)
        db.execute("UPDATE memories_fts_data SET block = x'00112233445566778899' WHERE id > 1000")

    def find() -> int:
        with open_drained(str(data), now=NOW) as db:
            return len(search(Index(None), db, str(data / "api"), "walrus", now=NOW, limit=100).hits)

    with pytest.raises(StoreError, match=r"keyword index was damaged .* nothing is lost. Ask again"):
        find()
    assert find() == 50
    assert not (data / "set-aside").exists()
    assert_sound(data)


# --- restoring ----------------------------------------------------------------------------------------------


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
    store(data, *BEFORE)
    backup.make(str(data), NOW - DAY)
    store(data, *AFTER)
    on_it = spoil_pages_of(data, AFTER[70])
    wreck = database(data).read_bytes()
    for _ in killed_at_each_step(RECOVER, data):
        assert database(data).exists()
        recovery.verify(str(data), NOW)
        assert set(stored(data)) == {*BEFORE, *AFTER} - on_it
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


# --- the command --------------------------------------------------------------------------------------------


def test_the_command_makes_lists_and_restores(data: Path) -> None:
    store(data, "echo one")
    made = backstory("backup", "now")
    assert made.returncode == 0
    assert made.stdout.startswith("Backup made: ")
    store(data, "echo two")
    (one,) = json.loads(backstory("backup", "list", "--json").stdout)
    assert one["name"] in backstory("backup", "list").stdout
    assert (one["reason"], one["schema"]) == ("manual", connection.latest())
    assert one["size"] == os.path.getsize(one["path"])
    done = backstory("backup", "restore", "latest", "--yes")
    assert done.returncode == 0, done.stderr
    assert stored(data) == ["echo one"]
    (aside,) = names(data, "set-aside")
    assert aside in done.stdout
    assert aside in backstory("backup", "list").stdout
    told = json.loads(backstory("backup", "list", "--json").stdout)
    assert [(each["name"], each["reason"]) for each in told[1:]] == [(aside, "set aside")]
    undone = backstory("backup", "restore", str(data / "set-aside" / aside), "--yes", "--json")
    assert stored(data) == ["echo one", "echo two"]
    assert set(json.loads(undone.stdout)) == {"restored", "set_aside"}
    assert json.loads(backstory("backup", "now", "--json").stdout)["reason"] == "manual"


def test_any_file_in_the_folder_can_be_restored_by_its_name(data: Path, tmp_path: Path) -> None:
    store(data, "echo one")
    Path(backup.make(str(data), NOW).path).rename(tmp_path / "mine.db")
    store(data, "echo two")
    done = backstory("backup", "restore", "mine.db", "--yes", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert stored(data) == ["echo one"]


def test_a_backup_made_by_hand_takes_no_other_away_unsaid(data: Path) -> None:
    store(data, "echo one")
    backup.make(str(data), int(time.time() * 1000) - 1_000)
    for number in range(6):
        made = backstory("backup", "now")
        assert (made.returncode, len(made.stdout.splitlines())) == (0, 2 if number == 5 else 1)
    gone = made.stdout.splitlines()[1].removeprefix("Removed, as newer ones are there: ")
    assert gone.endswith("-manual.db")
    assert gone not in names(data)
    assert sorted(one["reason"] for one in json.loads(backstory("backup", "list", "--json").stdout)) == [
        "daily",
        *["manual"] * 5,
    ]


def test_what_was_never_a_store_is_no_backup(data: Path, tmp_path: Path) -> None:
    store(data, *BEFORE)
    whole = Path(backup.make(str(data), NOW).path).read_bytes()
    text, foreign, wreck = tmp_path / "passwd", tmp_path / "foreign.db", tmp_path / "wreck.db"
    text.write_text("root:x:0:0\n" * 100)
    db = sqlite3.connect(foreign)
    db.execute("CREATE TABLE walrus (teeth INTEGER)")
    db.close()
    for path in (text, foreign):
        refused = backstory("backup", "restore", str(path), "--yes")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "is no backup of backstory; `backstory backup list` shows them" in refused.stderr
    wreck.write_bytes(whole[: len(whole) // 2])
    refused = backstory("backup", "restore", str(wreck), "--yes")
    assert (refused.returncode, "is damaged (" in refused.stderr) == (3, True)
    assert refused.stderr.endswith("; `backstory backup list` shows others\n")
    assert set(stored(data)) == set(BEFORE)


def test_the_beginning_of_a_name_is_enough_unless_it_fits_two(data: Path) -> None:
    store(data, "echo one")
    first, second = backup.make(str(data), NOW), backup.make(str(data), NOW + DAY)
    assert backstory("backup", "restore", "backstory-20270116", "--yes").returncode == 0
    assert backstory("backup", "restore", "20270115", "--yes").returncode == 0
    assert backstory("backup", "restore", second.name, "--yes").returncode == 0
    vague = backstory("backup", "restore", "2027", "--yes")
    assert (vague.returncode, first.name in vague.stderr) == (2, True)
    unknown = backstory("backup", "restore", "1999", "--yes")
    assert (unknown.returncode, "backstory backup list" in unknown.stderr) == (1, True)


def test_restoring_asks_first_and_nobody_to_ask_means_no(data: Path) -> None:
    store(data, "echo one")
    backup.make(str(data), NOW)
    store(data, "echo two")
    for answer in ("", "n\n"):
        asked = backstory("backup", "restore", "latest", stdin=answer)
        assert (asked.returncode, asked.stdout) == (1, "")
        assert "Nothing was restored" in asked.stderr
    assert stored(data) == ["echo one", "echo two"]
    assert backstory("backup", "restore", "latest", stdin="y\n").returncode == 0
    assert stored(data) == ["echo one"]


@contextmanager
def a_worker(data: Path) -> Iterator[None]:
    handle = os.open(data / "worker.lock", os.O_RDWR | os.O_CREAT, 0o600)
    os.write(handle, b"4711\n")
    fcntl.flock(handle, fcntl.LOCK_EX)
    yield
    os.close(handle)


def test_nothing_is_restored_while_a_worker_is_at_work(data: Path) -> None:
    store(data, "echo one")
    backup.make(str(data), NOW)
    with a_worker(data):
        refused = backstory("backup", "restore", "latest", "--yes")
        assert refused.returncode == 1
        assert "a worker is at work (process 4711)" in refused.stderr
    assert backstory("backup", "restore", "latest", "--yes").returncode == 0


def test_without_backups_the_command_says_how_to_make_one(data: Path) -> None:
    listed = backstory("backup", "list")
    assert (listed.returncode, "backstory backup now" in listed.stderr) == (1, True)
    assert json.loads(backstory("backup", "list", "--json").stdout) == []
    assert backstory("backup", "restore", "latest", "--yes").returncode == 1
    assert backstory("backup", "now").returncode == 1  # there is no store either


def test_a_store_can_be_restored_where_there_is_none(data: Path) -> None:
    store(data, "echo one")
    backup.make(str(data), NOW)
    database(data).unlink()
    done = backstory("backup", "restore", "latest", "--yes", "--json")
    assert json.loads(done.stdout)["set_aside"] is None
    assert stored(data) == ["echo one"]


def test_a_store_that_lost_its_file_beside_backups_is_no_fresh_install(data: Path, tmp_path: Path) -> None:
    now = int(time.time() * 1000)
    for command in ("sessions", "list", "search"):
        fresh = backstory(command, *["walrus"] * (command == "search"), cwd=tmp_path)
        assert (fresh.returncode, "backup" in fresh.stderr) == (1, False)
    store(data, "echo one")
    full = backup.make(str(data), now - DAY)
    for path in data.glob("backstory.db*"):
        path.unlink()
    what = "the store is empty, and there is a backup of 20"
    for command in ("sessions", "list", "search"):
        ran = backstory(command, *["walrus"] * (command == "search"), cwd=tmp_path)
        assert (ran.returncode, ran.stdout, what in ran.stderr) == (1, "", True)
        assert "`backstory backup restore latest` brings it back" in ran.stderr
    found = json.loads(backstory("doctor", "--json").stdout)
    (check,) = [one for one in found if one["name"] == "backup"]
    assert (check["level"], check["advice"]) == ("warn", "`backstory backup restore latest` brings it back")
    assert re.search(r"the store is empty, but there is a backup of 20.* with \d\.\d MB", check["finding"])
    backup.make(str(data), now)  # of the empty one: the latest is not the one to restore
    assert f"`backstory backup restore {full.name}`" in backstory("sessions").stderr
    assert backstory("backup", "restore", full.name, "--yes").returncode == 0
    assert "backup" not in backstory("sessions", cwd=tmp_path).stderr  # nothing of this folder, but not empty


def test_doctor_says_how_old_the_newest_backup_is(data: Path) -> None:
    now = int(time.time() * 1000)

    def check() -> dict[str, Any]:
        found = json.loads(backstory("doctor", "--json").stdout)
        return dict(next(one for one in found if one["name"] == "backup"))

    assert "none yet" in check()["finding"]
    for days in (9, 0):
        put(data, bash(f"echo {days} days ago"), at=now - days * DAY)
    late = check()
    assert (late["level"], late["finding"], late["advice"]) == (
        "warn",
        "there is none",
        "backstory backup now",
    )
    backup.make(str(data), now - 8 * DAY)
    assert check()["level"] == "warn"
    backup.make(str(data), now - DAY)
    fine = check()
    assert fine["level"] == "ok"
    assert fine["finding"].startswith("2 backups, the newest of 20")
