"""Making backups, and which of them are kept."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.errors import Damaged, NotFound, StoreError
from backstory.store.file import backup, connection, swap
from backstory.store.file.backup import Backup
from backstory.store.file.connection import connect, transaction
from backstory.surfaces.opened import open_drained
from tests.helpers.backups import (
    KILLED,
    killed_at_each_step,
    many,
    mode,
    names,
    path_of,
    root_page,
    spoil,
    store,
)
from tests.helpers.chaos import DAY, NOW

pytestmark = pytest.mark.usefixtures("no_worker")


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
    with pytest.raises(StoreError, match=r"no backup could be made: the disk is full: .* make room"):
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
    writer = connect(path_of(data))
    writer.execute("PRAGMA synchronous = OFF")  # many changes
    written = 0
    for attempt in range(5):  # on a busy machine a copy may be made before anybody else has a turn
        made: list[Backup] = []
        now = NOW + attempt * 1000
        copying = threading.Thread(target=lambda made=made, now=now: made.append(backup.make(str(data), now)))
        before = written
        copying.start()
        deadline = time.monotonic() + 60
        while copying.is_alive() and time.monotonic() < deadline:
            with transaction(writer):
                writer.execute("INSERT INTO one VALUES (?)", (written,))
                writer.execute("INSERT INTO other VALUES (?)", (written,))
            written += 1
        assert not copying.is_alive()
        copying.join()
        with closing(sqlite3.connect(made[0].path)) as copy:
            both = "SELECT (SELECT count(*) FROM one), (SELECT count(*) FROM other)"
            one, other = copy.execute(both).fetchone()
        assert one == other
        # As it was when the copy began, not anew with every change.
        if is_early := written - before > 3 and one - before <= (written - before) // 2:
            break
    writer.close()
    assert is_early


BACK_UP = KILLED + "backup.make(sys.argv[2], 1_800_000_000_000)"


@pytest.mark.slow
def test_a_backup_killed_at_any_step_leaves_no_half_backup(data: Path) -> None:
    store(data, *many("event"))
    for _ in killed_at_each_step(BACK_UP, data):
        for one in backup.listed(str(data)):
            assert backup.examine(one.path) == (connection.latest(), "")
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


def test_a_column_that_is_no_json_is_found_and_an_empty_one_is_none(one_day: Path) -> None:
    """Who may only read a file has none of its constraints."""
    with closing(sqlite3.connect(path_of(one_day))) as db:
        db.execute("INSERT INTO docmem_servers VALUES ('srv', 1, '/x', '', 0)")
        db.execute(
            "INSERT INTO docmem_views (server_id, node_id, shown, seen) VALUES ('srv', 'n', '[]', '[]')"
        )
        db.commit()
        assert backup.examine(path_of(one_day))[1] == ""
        db.execute("PRAGMA ignore_check_constraints = ON")
        db.execute("UPDATE docmem_views SET seen = '[' || char(0) || ']'")
        db.commit()
    assert backup.examine(path_of(one_day))[1] == "seen in a row of docmem_views is no JSON"
