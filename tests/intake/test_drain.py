"""From the spool into the store: every event once, whatever it looks like and whoever is killed meanwhile."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from backstory.errors import StoreError
from backstory.intake.drain import BATCH_EVENTS
from backstory.store.file.connection import connect, transaction
from backstory.surfaces import opened
from backstory.surfaces.cli.common import store
from backstory.surfaces.mcp import memory, tool_context
from backstory.surfaces.opened import open_drained
from tests.conftest import REPOSITORY
from tests.helpers.chaos import (
    DRAIN,
    GO,
    MINUTE,
    NOW,
    PYTHON,
    SOURCE,
    assert_sound,
    at_once,
    bash,
    contents,
    drain,
    failures,
    hook_program,
    log_text,
    prompt,
    put,
    rows,
    spooled,
    start,
    suicidal,
    suicidal_at_statement,
)
from tests.helpers.traces import commands, without

# --- once and only once -------------------------------------------------------------------------------------


def test_a_tool_use_that_was_spooled_twice_is_stored_once(data: Path) -> None:
    twice = bash("echo once")
    for _ in range(2):
        put(data, twice)
    assert drain(data).stored == 1
    put(data, twice)
    assert drain(data).stored == 0

    assert commands(data) == ["echo once"]
    assert spooled(data) == []


def test_a_tool_use_and_its_failure_are_two_events(data: Path) -> None:
    used = bash("make")
    failed = {
        **without(used, "tool_response"),
        "hook_event_name": "PostToolUseFailure",
        "error": "Exit code 2",
    }
    put(data, used, at=NOW - 2)
    put(data, failed, at=NOW - 1)
    drain(data)
    assert contents(data) == ["Tool: Bash\nCommand: make", "Tool: Bash\nCommand: make\nFailed: Exit code 2"]


def test_the_same_id_in_two_sessions_is_two_events(data: Path) -> None:
    """Some proxies number the tool uses of every session from zero."""
    put(data, bash("echo one", tool_use_id="call_0", session_id="a"))
    put(data, bash("echo two", tool_use_id="call_0", session_id="b"))
    assert drain(data).stored == 2


def test_ids_that_cannot_be_kept_as_they_are_still_tell_events_apart(data: Path) -> None:
    for number in "12":
        put(data, bash(f"echo long {number}", tool_use_id="i" * 300 + number))
        put(data, bash(f"echo secret {number}", tool_use_id="ghp_" + number * 36))
    assert drain(data).stored == 4


def test_a_prompt_that_was_spooled_twice_is_kept_once(data: Path) -> None:
    said = prompt("once")
    for _ in range(2):
        put(data, said)
    put(data, prompt("once"))  # said again by the user: another prompt_id
    drain(data)
    assert [row["prompt"] for row in rows(data, "SELECT prompt FROM prompts")] == ["once", "once"]


def test_the_same_file_drained_twice_is_stored_once(data: Path) -> None:
    for payload in (without(bash("echo no id"), "tool_use_id"), without(prompt("no id"), "prompt_id")):
        name = put(data, payload)
        path = data / "spool" / "new" / name
        raw = path.read_bytes()
        assert drain(data).stored == 1
        path.write_bytes(raw)  # as if it had never been removed
        assert drain(data).stored == 0
    assert commands(data) == ["echo no id"]
    assert len(rows(data, "SELECT 1 FROM prompts")) == 1


def test_two_payloads_without_ids_are_two_events(data: Path) -> None:
    for _ in range(2):
        put(data, without(bash("echo again"), "tool_use_id"))
    assert drain(data).stored == 2
    assert rows(data, "SELECT times FROM memories") == [{"times": 2}]  # of the same in one session


# --- killed -------------------------------------------------------------------------------------------------


SMALL = 8  # events in the deterministic killings, every fourth of them unreadable


def fill(data: Path, count: int, prefix: str = "event") -> tuple[set[str], set[str]]:
    """(commands of the good ones, names of the unreadable ones)."""
    good, bad = set(), set()
    for number in range(count):
        if number % 4 == 3:
            bad.add(put(data, f"junk {prefix} {number}".encode()))
        else:
            good.add(f"echo {prefix}-{number}")
            put(data, bash(f"echo {prefix}-{number}"))
    return good, bad


def assert_each_once(data: Path, good: set[str], bad: set[str]) -> None:
    assert Counter(commands(data)) == Counter(good)
    assert set(failures(data)) == bad
    assert spooled(data) == []
    assert rows(data, "SELECT count(*) AS n FROM events") == [{"n": len(good)}]
    created = rows(data, "SELECT memory_id FROM session_memories WHERE usage_type = 'created'")
    assert len(created) == len(good)
    assert_sound(data)


INSTANTS = {
    "before the first event": suicidal_at_statement("SAVEPOINT part", 1),
    "in the midst of an event": suicidal_at_statement("INSERT INTO session_memories", 2),
    "between two events": suicidal_at_statement("SAVEPOINT part", 4),
    "just before the commit": suicidal_at_statement("COMMIT", 1),
    "after the commit, before the first unlink": suicidal("unlink", 1),
    "between two unlinks": suicidal("unlink", 3),
    "after the last unlink, before the first reason": suicidal("open", 1),
    "between a reason and its payload": suicidal("open", 2),
    "after a payload was put aside, before it is removed": suicidal("utime", 1),
    "between two payloads put aside": suicidal("open", 3),
}


@pytest.mark.parametrize("program", INSTANTS.values(), ids=INSTANTS.keys())
def test_a_drain_killed_at_this_very_instant_is_simply_done_again(program: str, data: Path) -> None:
    connect(str(data / "backstory.db")).close()
    good, bad = fill(data, SMALL)

    with start(program, str(data)) as victim:
        _, said = victim.communicate(timeout=30)
    assert victim.returncode == -signal.SIGKILL, said

    drain(data, now=int(time.time() * 1000))
    assert_each_once(data, good, bad)


def test_a_drain_killed_between_commit_and_unlink_has_stored_everything_already(data: Path) -> None:
    good, _ = fill(data, 3)
    with start(suicidal("unlink", 1), str(data)) as victim:
        victim.communicate(timeout=30)

    assert len(spooled(data)) == 3
    assert set(commands(data)) == good
    assert drain(data).stored == 0
    assert spooled(data) == []


def test_a_drain_killed_before_its_commit_has_stored_nothing(data: Path) -> None:
    fill(data, 3)
    with start(suicidal_at_statement("COMMIT", 1), str(data)) as victim:
        victim.communicate(timeout=30)

    assert len(spooled(data)) == 3
    assert contents(data) == []
    assert drain(data).stored == 3


def test_a_drain_killed_between_the_reason_and_the_payload_puts_it_aside_the_next_time(data: Path) -> None:
    name = put(data, b"junk")
    with start(suicidal("open", 2), str(data)) as victim:
        victim.communicate(timeout=30)

    assert spooled(data) == [name]
    assert spooled(data, "failed") == [f"{name}.reason"]
    drain(data)
    assert set(failures(data)) == {name}
    assert spooled(data) == []


# --- together -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_four_drains_at_once_store_every_event_exactly_once(data: Path) -> None:
    connect(str(data / "backstory.db")).close()
    good, bad = fill(data, 1000)

    assert at_once(DRAIN + GO, 4, str(data)) == [0] * 4

    assert "locked" not in log_text(data)
    assert_each_once(data, good, bad)


def test_a_reader_is_not_held_up_by_a_drain(data: Path) -> None:
    put(data, bash("echo stored"))
    drain(data)
    writer = connect(str(data / "backstory.db"))
    with transaction(writer):
        assert commands(data) == ["echo stored"]
    writer.close()


CREATE = """
import sys
sys.path.insert(0, sys.argv[1])
from backstory.store.file.connection import connect
# the line
connect(sys.argv[2] + "/backstory.db").close()
"""


@pytest.mark.slow
@pytest.mark.parametrize("attempt", range(5))
def test_eight_processes_that_create_the_store_at_once_make_one(
    attempt: int, data: Path, tmp_path: Path
) -> None:
    assert at_once(CREATE, 8, str(data)) == [0] * 8

    alone = tmp_path / "alone"
    connect(str(alone / "backstory.db")).close()
    schema = "SELECT type, name, sql FROM sqlite_master ORDER BY type, name"
    assert rows(data, schema) == rows(alone, schema)
    assert rows(data, "PRAGMA user_version") == rows(alone, "PRAGMA user_version")
    assert rows(data, "PRAGMA journal_mode") == [{"journal_mode": "wal"}]
    assert_sound(data)


@pytest.mark.slow
@pytest.mark.parametrize("attempt", range(3))
def test_eight_drains_on_an_empty_folder_create_one_store_with_every_event_in_it(
    attempt: int, data: Path
) -> None:
    good, bad = fill(data, 40)
    assert at_once(DRAIN + GO, 8, str(data)) == [0] * 8
    assert_each_once(data, good, bad)


def test_a_store_that_cannot_be_opened_says_so_at_once(data: Path) -> None:
    connect(str(data / "backstory.db")).close()
    (data / "backstory.db-wal").mkdir()
    started = time.monotonic()
    with pytest.raises(StoreError):
        connect(str(data / "backstory.db"))
    assert time.monotonic() - started < 3


@pytest.mark.slow
def test_a_backlog_beyond_the_time_is_left_for_the_next_drain(data: Path) -> None:
    good, bad = fill(data, BATCH_EVENTS + 20)
    program = DRAIN + GO.replace("now=", "seconds=0, now=")
    with start(program, str(data)) as process:
        process.communicate(timeout=30)

    assert len(spooled(data)) == 20
    drain(data)
    assert_each_once(data, good, bad)


def test_a_damaged_store_loses_nothing_that_is_waiting(data: Path) -> None:
    put(data, bash("echo waiting"))
    (data / "backstory.db").write_bytes(b"this is not a database, it only lies where one should be" * 100)
    with pytest.raises(StoreError, match="damaged"):
        drain(data)
    (data / "backstory.db").unlink()
    drain(data)
    assert commands(data) == ["echo waiting"]


# --- left behind in tmp/ ------------------------------------------------------------------------------------


def test_what_a_killed_hook_left_behind_is_taken_over_after_a_minute_and_not_before(data: Path) -> None:
    put(data, bash("echo old"), at=NOW - MINUTE, into="tmp")
    half = put(data, b'{"half', at=NOW - MINUTE - 1, into="tmp")
    young = put(data, bash("echo young"), at=NOW - MINUTE + 1, into="tmp")

    drain(data)

    assert commands(data) == ["echo old"]
    assert set(failures(data)) == {half}
    assert spooled(data, "tmp") == [young]
    assert "took over 2 payloads" in log_text(data)

    drain(data, now=NOW + 1)
    assert sorted(commands(data)) == ["echo old", "echo young"]


def test_a_reader_takes_over_what_a_killed_hook_left_behind(data: Path) -> None:
    put(data, bash("echo old"), at=NOW - MINUTE, into="tmp")
    assert spooled(data) == []
    with open_drained(str(data), now=NOW):
        assert commands(data) == ["echo old"]


def test_a_payload_taken_over_keeps_its_time(data: Path) -> None:
    put(data, bash("echo old"), at=NOW - 5 * MINUTE, into="tmp")
    drain(data)
    assert rows(data, "SELECT created_at FROM memories") == [{"created_at": NOW - 5 * MINUTE}]


# --- the hook's process -------------------------------------------------------------------------------------


def test_a_store_of_a_newer_backstory_is_left_alone_and_the_log_says_so(data: Path) -> None:
    put(data, bash("echo waiting"))
    connect(str(data / "backstory.db")).close()
    db = sqlite3.connect(data / "backstory.db")
    db.execute("CREATE TABLE of_a_later_version (id TEXT)")
    db.execute("PRAGMA user_version = 9999")
    db.close()

    with start(hook_program(), "drain") as hook:
        assert hook.communicate(timeout=30) == (b"", b"")
    assert hook.returncode == 0
    assert len(spooled(data)) == 1
    assert "schema 9999" in log_text(data)
    assert log_text(data).count("\n") == 1


def test_the_data_folder_of_a_drain_is_for_its_owner_alone(data: Path) -> None:
    put(data, bash("make"))
    put(data, b"junk")
    os.chmod(data, 0o700)
    subprocess.run(
        ["sh", "-c", 'umask 022; exec "$@"', "sh", PYTHON, "-I", "-S", "-c", hook_program(), SOURCE, "drain"],
        check=True,
    )
    for path in data.rglob("*"):
        if path.name not in (*spooled(data, "failed"), "spool") or path.suffix == ".reason":
            assert path.stat().st_mode & 0o077 == 0, path


# --- where somebody waits -----------------------------------------------------------------------------------


def test_who_is_in_a_hurry_takes_little_and_leaves_what_is_large(data: Path) -> None:
    for number in range(5):
        put(data, bash(f"make {number}", stdout="x" * 90_000))
    with open_drained(str(data), now=NOW, seconds=0, hurried=True):
        assert len(spooled(data)) == 3
    with open_drained(str(data), now=NOW):
        pass
    put(data, bash("make all", stdout="x" * 600_000))
    with open_drained(str(data), now=NOW, seconds=0, hurried=True):
        assert len(spooled(data)) == 1
    with open_drained(str(data), now=NOW):
        pass
    assert spooled(data) == []


# --- the benchmark ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_benchmark_measures_the_drain_against_bare_inserts() -> None:
    ran = subprocess.run(
        [sys.executable, REPOSITORY / "bench" / "drain_throughput.py", "--events", "400", "--json", "-"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode in (0, 1), ran.stderr
    report: dict[str, Any] = json.loads(ran.stdout)
    assert report["events"] == 400
    assert {row["case"] for row in report["rows"]} == {"drain", "bare inserts"}
    for row in report["rows"]:
        assert row["events_per_second"] > 0
    assert report["stored"] == 400
    (budget,) = report["budgets"]
    assert budget["limit"] == 1000
    assert budget["measured"] > 100  # generous: other tests run beside this one
    assert report["ratio_to_bare_inserts"] > 0


def test_a_call_waits_for_no_backlog_and_says_that_there_is_one(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tool_context, "ANSWER_SECONDS", 0)
    monkeypatch.setattr(opened, "ANSWER_SECONDS", 0)
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(tmp_path))
    for number in range(3 * BATCH_EVENTS):
        put(data, prompt(f"look for heron {number}", session_id=f"s{number}"))
    assert "(500 captured events are still being taken in; " in memory.memory_search("heron", mode="keyword")
    with store():
        assert "backstory: 250 captured events are still being taken in" in capsys.readouterr().err
    assert "captured events" not in memory.memory_search("heron", mode="keyword")
    assert spooled(data) == []
