"""`backstory backup`, and what doctor says about backups."""

from __future__ import annotations

import os
import re
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from backstory.store.file import backup, connection
from tests.conftest import Run
from tests.helpers.backups import BEFORE, database, names, store, stored
from tests.helpers.chaos import DAY, NOW, a_worker, bash, put

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_worker")]


def test_the_command_makes_lists_and_restores(data: Path, run: Run) -> None:
    store(data, "echo one")
    made = run("backup", "now")
    assert made.code == 0
    assert made.out.startswith("Backup made: ")
    store(data, "echo two")
    (one,) = run("backup", "list", "--json").json
    assert one["name"] in run("backup", "list").out
    assert (one["reason"], one["schema"]) == ("manual", connection.latest())
    assert one["size"] == os.path.getsize(one["path"])
    done = run("backup", "restore", "latest", "--yes")
    assert done.code == 0, done.err
    assert stored(data) == ["echo one"]
    (aside,) = names(data, "set-aside")
    assert aside in done.out
    assert aside in run("backup", "list").out
    told = run("backup", "list", "--json").json
    assert [(each["name"], each["reason"]) for each in told[1:]] == [(aside, "set aside")]
    undone = run("backup", "restore", str(data / "set-aside" / aside), "--yes", "--json")
    assert stored(data) == ["echo one", "echo two"]
    assert set(undone.json) == {"restored", "set_aside"}
    assert run("backup", "now", "--json").json["reason"] == "manual"


def test_any_file_in_the_folder_can_be_restored_by_its_name(data: Path, project: str, run: Run) -> None:
    store(data, "echo one")
    Path(backup.make(str(data), NOW).path).rename(Path(project) / "mine.db")
    store(data, "echo two")
    done = run("backup", "restore", "mine.db", "--yes")
    assert done.code == 0, done.err
    assert stored(data) == ["echo one"]


def test_a_backup_made_by_hand_takes_no_other_away_unsaid(data: Path, run: Run) -> None:
    store(data, "echo one")
    backup.make(str(data), int(time.time() * 1000) - 1_000)
    for number in range(6):
        made = run("backup", "now")
        assert (made.code, len(made.out.splitlines())) == (0, 2 if number == 5 else 1)
    gone = made.out.splitlines()[1].removeprefix("Removed, as newer ones are there: ")
    assert gone.endswith("-manual.db")
    assert gone not in names(data)
    assert sorted(one["reason"] for one in run("backup", "list", "--json").json) == [
        "daily",
        *["manual"] * 5,
    ]


def test_what_was_never_a_store_is_no_backup(data: Path, tmp_path: Path, run: Run) -> None:
    store(data, *BEFORE)
    whole = Path(backup.make(str(data), NOW).path).read_bytes()
    text, foreign, wreck = tmp_path / "passwd", tmp_path / "foreign.db", tmp_path / "wreck.db"
    text.write_text("root:x:0:0\n" * 100)
    db = sqlite3.connect(foreign)
    db.execute("CREATE TABLE walrus (teeth INTEGER)")
    db.close()
    for path in (text, foreign):
        refused = run("backup", "restore", str(path), "--yes")
        assert (refused.code, refused.out) == (2, "")
        assert "is no backup of backstory; `backstory backup list` shows them" in refused.err
    wreck.write_bytes(whole[: len(whole) // 2])
    refused = run("backup", "restore", str(wreck), "--yes")
    assert (refused.code, "is damaged (" in refused.err) == (3, True)
    assert refused.err.endswith("; `backstory backup list` shows others\n")
    assert set(stored(data)) == set(BEFORE)


def test_the_beginning_of_a_name_is_enough_unless_it_fits_two(data: Path, run: Run) -> None:
    store(data, "echo one")
    first, second = backup.make(str(data), NOW), backup.make(str(data), NOW + DAY)
    assert run("backup", "restore", "backstory-20270116", "--yes").code == 0
    assert run("backup", "restore", "20270115", "--yes").code == 0
    assert run("backup", "restore", second.name, "--yes").code == 0
    vague = run("backup", "restore", "2027", "--yes")
    assert (vague.code, first.name in vague.err) == (2, True)
    unknown = run("backup", "restore", "1999", "--yes")
    assert (unknown.code, "backstory backup list" in unknown.err) == (1, True)


def test_restoring_asks_first_and_nobody_to_ask_means_no(data: Path, run: Run) -> None:
    store(data, "echo one")
    backup.make(str(data), NOW)
    store(data, "echo two")
    for answer in ("", "n\n"):
        asked = run("backup", "restore", "latest", stdin=answer)
        assert (asked.code, asked.out) == (1, "")
        assert "Nothing was restored" in asked.err
    assert stored(data) == ["echo one", "echo two"]
    assert run("backup", "restore", "latest", stdin="y\n").code == 0
    assert stored(data) == ["echo one"]


def test_nothing_is_restored_while_a_worker_is_at_work(data: Path, run: Run) -> None:
    store(data, "echo one")
    backup.make(str(data), NOW)
    with a_worker(data):
        refused = run("backup", "restore", "latest", "--yes")
        assert refused.code == 1
        assert "a worker is at work (process 4711)" in refused.err
    assert run("backup", "restore", "latest", "--yes").code == 0


def test_without_backups_the_command_says_how_to_make_one(data: Path, run: Run) -> None:
    listed = run("backup", "list")
    assert (listed.code, "backstory backup now" in listed.err) == (1, True)
    assert run("backup", "list", "--json").json == []
    assert run("backup", "restore", "latest", "--yes").code == 1
    assert run("backup", "now").code == 1  # there is no store either


def test_a_store_can_be_restored_where_there_is_none(data: Path, run: Run) -> None:
    store(data, "echo one")
    backup.make(str(data), NOW)
    database(data).unlink()
    done = run("backup", "restore", "latest", "--yes", "--json")
    assert done.json["set_aside"] is None
    assert stored(data) == ["echo one"]


def test_a_store_that_lost_its_file_beside_backups_is_no_fresh_install(data: Path, run: Run) -> None:
    now = int(time.time() * 1000)
    for command in ("sessions", "list", "search"):
        fresh = run(command, *["walrus"] * (command == "search"))
        assert (fresh.code, "backup" in fresh.err) == (1, False)
    store(data, "echo one")
    full = backup.make(str(data), now - DAY)
    for path in data.glob("backstory.db*"):
        path.unlink()
    what = "the store is empty, and there is a backup of 20"
    for command in ("sessions", "list", "search"):
        ran = run(command, *["walrus"] * (command == "search"))
        assert (ran.code, ran.out, what in ran.err) == (1, "", True)
        assert "`backstory backup restore latest` brings it back" in ran.err
    found = run("doctor", "--json").json
    (check,) = [one for one in found if one["name"] == "backup"]
    assert (check["level"], check["advice"]) == ("warn", "`backstory backup restore latest` brings it back")
    assert re.search(r"the store is empty, but there is a backup of 20.* with \d\.\d MB", check["finding"])
    backup.make(str(data), now)  # of the empty one: the latest is not the one to restore
    assert f"`backstory backup restore {full.name}`" in run("sessions").err
    assert run("backup", "restore", full.name, "--yes").code == 0
    assert "backup" not in run("sessions").err  # nothing of this folder, but not empty


def test_doctor_says_how_old_the_newest_backup_is(data: Path, run: Run) -> None:
    now = int(time.time() * 1000)

    def check() -> dict[str, Any]:
        found = run("doctor", "--json").json
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
