"""A damaged database comes back: real files, really damaged, and processes that meet the damage at once."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from backstory import locks
from backstory.errors import SchemaTooNew, StoreError
from backstory.intake.note import keep
from backstory.recall.answer import answer as search
from backstory.recall.index import Index
from backstory.store import life, removal
from backstory.store.file import backup, connection, recovery
from backstory.store.file.connection import connect, transaction
from backstory.surfaces.opened import open_drained
from tests.conftest import Run
from tests.helpers.backups import (
    AFTER,
    BEFORE,
    PAGE,
    capture,
    database,
    half,
    mode,
    names,
    path_of,
    root_page,
    spoil,
    spoil_pages_of,
    store,
    store_in_the_log,
    stored,
    write_at,
)
from tests.helpers.chaos import (
    DAY,
    NOW,
    assert_sound,
    at_once,
    bash,
    contents,
    event,
    log_text,
    prompt,
    put,
    rows,
    run_hook,
    spooled,
    turns_of,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_worker")]


# --- a damaged database comes back --------------------------------------------------------------------------


def middle(data: Path) -> None:
    size = database(data).stat().st_size
    third = size // 3 // PAGE * PAGE
    write_at(database(data), third, os.urandom(third))


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
def damaged(request: pytest.FixtureRequest, two_days: Path) -> Path:
    """A store with a backup, events after it, and one that still waits in the spool; then it is damaged."""
    capture(two_days, "echo waiting")
    DAMAGE[request.param](two_days)
    return two_days


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


def test_a_hook_brings_a_damaged_store_back_from_backup_and_spool(damaged: Path) -> None:
    wreck = database(damaged).read_bytes()
    ran = run_hook(prompt("go on"), "drain")
    assert (ran.code, ran.silent) == (0, True)
    if recovery.notice(str(damaged)) is None:  # nothing of what a drain reads was hit
        recovery.verify(str(damaged), NOW)
    with open_drained(str(damaged), now=NOW):
        pass
    assert_back(damaged, wreck)


def test_a_search_brings_a_damaged_store_back_from_backup_and_spool(damaged: Path, run: Run) -> None:
    wreck = database(damaged).read_bytes()
    ran = run("search", "before-7", "--project", "/")
    assert "Traceback" not in ran.err
    if recovery.notice(str(damaged)) is None:
        recovery.verify(str(damaged), NOW)
    else:
        assert "the database was damaged" in ran.err
    with open_drained(str(damaged), now=NOW):
        pass
    assert_back(damaged, wreck)


def test_doctor_brings_a_damaged_store_back_and_says_so_until_it_is_acknowledged(
    damaged: Path, run: Run
) -> None:
    wreck = database(damaged).read_bytes()

    def check() -> dict[str, Any]:
        found = {one["name"]: one for one in run("doctor", "--json").json}
        assert found["database"]["level"] == "ok"
        assert found["canary"]["level"] == "ok"
        return dict(found["backup"])

    said = check()
    assert_back(damaged, wreck)
    assert said["level"] == "warn"
    assert "the database was damaged" in said["finding"]
    assert "backstory backup now" in said["advice"]
    assert check() == said
    made = run("backup", "now")
    assert made.code == 0
    assert "the database was damaged" in made.err
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


def test_one_bad_page_loses_only_what_was_on_it(two_days: Path) -> None:
    on_it = spoil_pages_of(two_days, AFTER[70])
    assert 2 <= len(on_it) <= 20
    done = recovery.verify(str(two_days), NOW)
    assert done is not None
    assert set(stored(two_days)) == {*BEFORE, *AFTER} - on_it
    assert done.rescued.rows["memories"] == len(AFTER) - len(on_it)
    assert f"{len(AFTER) - len(on_it)} memories newer than it" in done.sentence()
    assert_sound(two_days)


def test_several_bad_pages_lose_only_what_was_on_them(two_days: Path) -> None:
    on_them = spoil_pages_of(two_days, AFTER[10], AFTER[60], AFTER[61], AFTER[140])
    recovery.verify(str(two_days), NOW)
    assert set(stored(two_days)) == {*BEFORE, *AFTER} - on_them


def test_where_sqlite_reads_every_table_nothing_is_lost(data: Path) -> None:
    """Forgotten stays forgotten, erased stays erased, and what changed since the backup stays changed."""
    (data / "api").mkdir(parents=True)
    ids = []
    with open_drained(str(data), now=NOW) as db:
        for word in ("keep", "forget", "erase", "reinforce"):
            ids.append(keep(db, str(data / "api"), f"a note to {word}", now=NOW).memory.id)
    backup.make(str(data), NOW)
    with open_drained(str(data), now=NOW) as db, transaction(db):
        life.forget(db, ids[1], None, NOW)
        life.reinforce(db, ids[3], 0.5, None, NOW)
    with open_drained(str(data), now=NOW) as db:
        removal.erase_memory(db, ids[2], NOW)
    store(data, *AFTER)
    before = everything(path_of(data))
    write_at(database(data), 32, b"\xcc\xc2\xea\x1c\xfa\xe8\x0a\xbe")  # which pages are free
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


def test_what_is_only_in_the_log_of_a_damaged_database_is_rescued_too(one_day: Path) -> None:
    store_in_the_log(one_day, *AFTER)
    assert (one_day / "backstory.db-wal").stat().st_size > 0
    spoil_pages_of(one_day, BEFORE[70])
    done = recovery.verify(str(one_day), NOW)
    assert done is not None
    assert set(stored(one_day)) == {*BEFORE, *AFTER}  # those of the bad page are in the backup
    assert [name.partition(".db")[2] for name in names(one_day, "set-aside")] == ["", "-shm", "-wal"]


def test_a_project_whose_page_is_gone_gets_its_counter_back(two_days: Path) -> None:
    spoil(two_days, root_page(two_days, "projects"))
    capture(two_days, "echo waiting")
    with open_drained(str(two_days), now=NOW) as db:
        assert recovery.notice(str(two_days))
        highest = db.execute("SELECT max(row) & 4294967295 AS row FROM memories").fetchone()["row"]
        assert db.execute("SELECT last_memory FROM projects").fetchone()["last_memory"] >= highest
    assert set(stored(two_days)) == {*BEFORE, *AFTER, "echo waiting"}
    assert spooled(two_days, "failed") == []
    assert_sound(two_days)


def a_turn(data: Path, asked: str) -> None:
    """Stored, with many pieces."""
    put(data, prompt(asked))
    put(data, event("Stop", last_assistant_message=f"about {asked}: {'many words ' * 200}"))
    with open_drained(str(data), now=NOW):
        pass


def test_the_pieces_of_turns_count_where_a_counter_comes_back(one_day: Path) -> None:
    a_turn(one_day, "where is the walrus?")
    spoil(one_day, root_page(one_day, "projects"))
    a_turn(one_day, "and the heron?")
    assert recovery.notice(str(one_day))
    assert [turn.asked for turn in turns_of(one_day)] == ["where is the walrus?", "and the heron?"]
    (highest,) = rows(one_day, "SELECT max(row) & 4294967295 AS row FROM turn_pieces")
    assert rows(one_day, "SELECT last_memory AS row FROM projects") == [highest]
    assert spooled(one_day, "failed") == []
    assert_sound(one_day)


def test_pieces_of_a_turn_that_is_lost_go_with_it(one_day: Path) -> None:
    a_turn(one_day, "where is the walrus?")
    spoil(one_day, root_page(one_day, "memories"))
    recovery.verify(str(one_day), NOW)
    assert turns_of(one_day) == []
    assert rows(one_day, "SELECT text FROM turn_pieces") == []
    assert_sound(one_day)


def test_a_session_whose_row_is_lost_is_made_anew_by_what_it_left(one_day: Path) -> None:
    put(one_day, bash("echo orphan", session_id="session-2"))
    with open_drained(str(one_day), now=NOW):
        pass
    spoil(one_day, root_page(one_day, "sessions"))
    recovery.verify(str(one_day), NOW)
    assert "echo orphan" in stored(one_day)
    (found,) = rows(one_day, "SELECT session_id FROM memories WHERE content LIKE '%orphan%'")
    assert found["session_id"] == "session-2"
    assert rows(one_day, "SELECT status FROM sessions WHERE id = 'session-2'") == [{"status": "interrupted"}]
    assert_sound(one_day)


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
    assert "`backstory backfill` brings back what Claude Code's transcripts have" in said
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


def test_without_a_backup_the_tables_count_and_not_the_number_of_the_schema(data: Path) -> None:
    store(data, *BEFORE)
    write_at(database(data), 60, (1).to_bytes(4, "big"))
    write_at(database(data), 32, b"\xcc\xc2\xea\x1c\xfa\xe8\x0a\xbe")
    before = len(rows(data, "SELECT key FROM events")), len(rows(data, "SELECT * FROM observation_queue"))
    recovery.verify(str(data), NOW)
    assert set(stored(data)) == set(BEFORE)
    after = len(rows(data, "SELECT key FROM events")), len(rows(data, "SELECT * FROM observation_queue"))
    assert after == before == (len(BEFORE), len(BEFORE))


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


OPEN = """
import sys
sys.path.insert(0, sys.argv[1])
from backstory.surfaces.opened import open_drained
from backstory.store.file import recovery
# the line
with open_drained(sys.argv[2], now=1_800_000_000_000) as db:
    assert db.execute("SELECT count(*) FROM memories").fetchone()[0] >= int(sys.argv[3])
"""


def test_of_processes_that_meet_the_damage_at_once_one_recovers(one_day: Path) -> None:
    capture(one_day, "echo waiting")
    database(one_day).write_bytes(b"garbage" * 1000)
    assert at_once(OPEN, 5, str(one_day), str(len(BEFORE))) == [0] * 5
    assert Counter(stored(one_day)) == Counter([*BEFORE, "echo waiting"])
    assert len([name for name in names(one_day, "set-aside") if name.endswith(".db")]) == 1
    assert (recovery.notice(str(one_day)) or "").count("was damaged") == 1


def test_nobody_replaces_the_database_while_somebody_uses_it(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(data, "echo one")
    made = backup.make(str(data), NOW)
    monkeypatch.setattr(locks, "SECONDS", 0.1)
    with open_drained(str(data), now=NOW), pytest.raises(StoreError, match="try again"):
        recovery.restore(str(data), made.path, NOW)
    recovery.restore(str(data), made.path, NOW)


# --- damage that is met later -------------------------------------------------------------------------------


def test_a_reader_that_meets_the_damage_is_told_what_was_done_and_may_ask_again(two_days: Path) -> None:
    spoil_pages_of(two_days, AFTER[70])
    asked = "SELECT content FROM memories WHERE content LIKE '%-140 %'"
    with (
        pytest.raises(StoreError, match=r"the backup of .* was restored; .* Ask again"),
        open_drained(str(two_days), now=NOW) as db,
    ):
        db.execute(asked).fetchall()
    with open_drained(str(two_days), now=NOW) as db:
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
