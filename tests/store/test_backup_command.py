"""`backstory backup`, and what doctor says about backups."""

from __future__ import annotations

import fcntl
import json
import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from backstory.store.file import backup, connection
from tests.helpers.backups import BEFORE, backstory, database, names, store, stored
from tests.helpers.chaos import DAY, NOW, bash, put

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_worker")]


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
