"""From the spool into the store: every event once, whatever it looks like and whoever is killed meanwhile."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstory import paths
from backstory.errors import StoreError
from backstory.intake.drain import BATCH_EVENTS
from backstory.intake.drain import drain as drain_spool
from backstory.store import life
from backstory.store.file.connection import connect, transaction
from backstory.surfaces.opened import open_drained
from tests.conftest import REPOSITORY
from tests.helpers.chaos import (
    DAY,
    DRAIN,
    GO,
    MINUTE,
    NOW,
    PYTHON,
    SOURCE,
    Json,
    assert_sound,
    bash,
    contents,
    drain,
    event,
    failures,
    hook_program,
    log_text,
    prompt,
    put,
    rows,
    run_hook,
    spooled,
    start,
    suicidal,
    suicidal_at_statement,
    tool_use,
)

CHAOS_ROUNDS = int(os.environ.get("BACKSTORY_CHAOS_ROUNDS", "25"))
CHAOS_SEED = int(os.environ.get("BACKSTORY_CHAOS_SEED", str(random.SystemRandom().randrange(10**6))))


def commands(data: Path) -> list[str]:
    """The Bash commands remembered, oldest first."""
    lines = [text.splitlines()[1] for text in contents(data)]
    return [line.removeprefix("Command: ") for line in lines if line.startswith("Command: ")]


def remembered(data: Path, payload: Json) -> str | None:
    """What the one memory says that a payload makes; None where it makes none."""
    put(data, payload)
    drain(data)
    assert spooled(data) == []
    found = contents(data)
    assert len(found) <= 1
    return found[0] if found else None


def without(payload: Json, field: str) -> Json:
    return {name: value for name, value in payload.items() if name != field}


# --- payloads that cannot be read ---------------------------------------------------------------------------

GOOD = bash("true")
UNREADABLE: dict[str, tuple[Json | bytes, str]] = {
    "empty": (b"", "empty payload"),
    "blank": (b" \n\n ", "empty payload"),
    "cut off": (b'{"session_id": "a', "not JSON"),
    "two objects": (b"{}{}", "not JSON"),
    "not UTF-8": (b'{"session_id": "\xff\xfe\xff"}', "not JSON"),
    "binary junk": (bytes(range(256)), "not JSON"),
    "a list": (b"[1, 2]", "not a JSON object but list"),
    "a string": (b'"hello"', "not a JSON object but str"),
    "null": (b"null", "not a JSON object but NoneType"),
    "an empty object": (b"{}", "hook_event_name is missing"),
    "an unknown event": (event("PreBreakfast"), "unknown event 'PreBreakfast'"),
    "an event of lone surrogates": (event("\ud800"), "unknown event"),
    "no hook_event_name": (without(GOOD, "hook_event_name"), "hook_event_name is missing"),
    "no session_id": (without(GOOD, "session_id"), "session_id is missing"),
    "no cwd": (without(GOOD, "cwd"), "cwd is missing"),
    "no tool_name": (without(GOOD, "tool_name"), "tool_name is missing"),
    "no tool_input": (without(GOOD, "tool_input"), "tool_input is not an object"),
    "no tool_response": (without(GOOD, "tool_response"), "tool_response is missing"),
    "no prompt": (without(prompt("x"), "prompt"), "prompt is missing"),
    "no error": (event("PostToolUseFailure", tool_name="Bash", tool_input={}), "error is missing"),
    "hook_event_name is a number": (
        {**GOOD, "hook_event_name": 1},
        "hook_event_name is not a string but int",
    ),
    "session_id is null": ({**GOOD, "session_id": None}, "session_id is not a string but NoneType"),
    "session_id is empty": ({**GOOD, "session_id": ""}, "session_id is empty"),
    "cwd is a list": ({**GOOD, "cwd": ["/"]}, "cwd is not a string but list"),
    "cwd is empty": ({**GOOD, "cwd": ""}, "cwd is empty"),
    "cwd is relative": ({**GOOD, "cwd": "src"}, "cwd is not an absolute path"),
    "tool_name is an object": ({**GOOD, "tool_name": {}}, "tool_name is not a string but dict"),
    "tool_input is a string": ({**GOOD, "tool_input": "ls"}, "tool_input is not an object"),
    "tool_use_id is a number": ({**GOOD, "tool_use_id": 7}, "tool_use_id is not a string but int"),
    "prompt is a number": (prompt("x", prompt=3.5), "prompt is not a string but float"),
    "prompt_id is null": (prompt("x", prompt_id=None), "prompt_id is not a string but NoneType"),
    "an integer of 5,000 digits": (b'{"session_id": ' + b"9" * 5000 + b"}", "not JSON"),
    "nested 100,000 deep": (b"[" * 100_000, "nested too deep"),
}


@pytest.mark.parametrize(("payload", "reason"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_payload_that_cannot_be_read_is_put_aside_with_its_reason_and_nothing_else_suffers(
    payload: Json | bytes, reason: str, data: Path
) -> None:
    put(data, bash("echo before"), at=NOW - 3)
    name = put(data, payload, at=NOW - 2)
    raw = (data / "spool" / "new" / name).read_bytes()
    put(data, bash("echo behind"), at=NOW - 1)

    done = drain(data)

    assert (done.stored, done.failed, done.left) == (2, 1, 0)
    assert commands(data) == ["echo before", "echo behind"]
    assert spooled(data) == []
    assert failures(data)[name].startswith(reason)
    assert (data / "spool" / "failed" / name).read_bytes() == raw
    (line,) = log_text(data).splitlines()
    assert "WARNING" in line
    assert name in line
    assert reason in line


@pytest.mark.usefixtures("real_python")
def test_the_hook_itself_ends_well_and_silently_on_a_payload_that_cannot_be_read(data: Path) -> None:
    run_hook(bash("echo before"))
    ran = run_hook(b"{not json", "end")

    assert ran.code == 0
    assert ran.silent
    assert commands(data) == ["echo before"]
    assert len(failures(data)) == 1


def nested(depth: int) -> bytes:
    shell = json.dumps(tool_use("Custom", {"x": "HERE"}, "ok"))
    return shell.replace('"HERE"', "[" * depth + "]" * depth).encode()


ODD: dict[str, Json | bytes] = {
    "lone surrogates everywhere": bash("echo \ud800", stdout="\udfff", session_id="s\udc00", cwd="/x\ud800"),
    "lone surrogates as raw bytes": b'{"a": "\xed\xa0\x80", ' + json.dumps(bash("echo x")).encode()[1:],
    "NUL characters everywhere": bash(
        "echo \0", stdout="\0\0", session_id="s\0", cwd="/x\0y", tool_use_id="t\0"
    ),
    "nothing but a NUL": bash("\0", session_id="\0", tool_use_id="\0"),
    "a NUL as field name": tool_use("Custom", {"\0": "\0", "\ud800": 1}, None),
    "nested 100 deep": nested(100),
    "nested 450 deep": nested(450),
    "nested 980 deep": nested(980),
    "nested 1,000 deep": nested(1000),
    "nested 5,000 deep": nested(5000),
    "huge integers": tool_use("Custom", {"n": 10**4000, "m": -(2**70)}, {"n": 2**64}),
    "numbers JSON does not have": b'{"nan": NaN, "inf": -Infinity, ' + json.dumps(bash("x")).encode()[1:],
    "a 5 MB input": tool_use("Custom", {"text": "x" * 5_000_000}, "ok"),
    "half a million strings in a tree": tool_use("Custom", {"a": [["x"] * 500] * 1000}, "ok"),
    "50,000 strings": tool_use("Custom", {"list": ["what is the password of the token"] * 50_000}, "ok"),
    "a 5 MB result": bash("cat big", stdout="x" * 5_000_000),
    "a 5 MB prompt": prompt("please " * 700_000),
    "a 5 MB name": bash("x", tool_name="T" * 5_000_000),
    "a 1 MB session_id": bash("x", session_id="s" * 1_000_000),
    "a path longer than any file system allows": bash("x", cwd="/" + "d/" * 5_000),
    "a path of 1 MB": bash("x", cwd="/" + "d/" * 500_000),
    "a field name a thousand times": tool_use("Custom", {f"k{n}": n for n in range(1000)}, {}),
    "the future": event("SessionEnd", reason="other"),
}


@pytest.mark.parametrize("payload", ODD.values(), ids=ODD.keys())
def test_an_odd_payload_is_stored_or_put_aside_and_holds_up_nothing(
    payload: Json | bytes, data: Path
) -> None:
    put(data, payload, at=NOW - 2)
    put(data, bash("echo behind", session_id="another"), at=NOW - 1)

    done = drain(data)

    assert done.stored + done.failed == 2
    assert done.stored >= 1
    assert spooled(data) == []
    behind = rows(data, "SELECT content FROM memories WHERE session_id = 'another'")
    assert [row["content"] for row in behind] == ["Tool: Bash\nCommand: echo behind"]
    assert_sound(data)


@pytest.mark.parametrize("name", ["lone surrogates everywhere", "NUL characters everywhere", "huge integers"])
def test_odd_characters_and_numbers_are_no_reason_to_forget(name: str, data: Path) -> None:
    put(data, ODD[name])
    assert drain(data).stored == 1
    assert len(contents(data)) == 1


def test_a_folder_that_cannot_be_looked_at_holds_up_nothing(data: Path, tmp_path: Path) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / ".git").write_bytes(b"gitdir: a\0b\n")
    for place in ("good", "bad", "good"):
        put(data, bash(f"echo in {place}", cwd=str(tmp_path / place)))
    assert drain(data).stored == 3
    assert spooled(data) == []


def test_an_error_nobody_thought_of_puts_one_payload_aside(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stumble(folder: str) -> paths.Place:
        if folder == "/odd":
            raise ZeroDivisionError("nobody thought of this")
        return real(folder)

    real = paths.place
    monkeypatch.setattr(paths, "place", stumble)
    put(data, bash("echo odd", cwd="/odd"), at=NOW - 2)
    put(data, bash("echo behind"), at=NOW - 1)
    done = drain(data)
    assert (done.stored, done.failed) == (1, 1)
    assert "ZeroDivisionError: nobody thought of this" in next(iter(failures(data).values()))


def test_a_payload_that_may_not_be_read_holds_up_nothing(data: Path) -> None:
    name = put(data, bash("echo secret"), at=NOW - 2)
    (data / "spool" / "new" / name).chmod(0)
    put(data, bash("echo behind"), at=NOW - 1)
    command = [PYTHON, "-I", "-S", "-c", DRAIN + GO, SOURCE, str(data)]
    if os.geteuid() == 0:  # permissions do not bind root, unless it gives up the right to ignore them
        if shutil.which("setpriv") is None:
            pytest.skip("running as root, and setpriv is not installed")
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]

    assert subprocess.run(command, check=True, capture_output=True).stderr == b""

    assert commands(data) == ["echo behind"]
    assert failures(data) == {name: "may not be read: Permission denied"}


def test_a_failed_folder_that_somebody_removed_is_made_again(data: Path) -> None:
    name = put(data, b"junk")
    put(data, bash("echo behind"))
    (data / "spool" / "failed").rmdir()

    drain(data)

    assert set(failures(data)) == {name}
    assert commands(data) == ["echo behind"]


def test_an_event_that_the_store_refuses_leaves_nothing_behind_and_can_be_tried_again(data: Path) -> None:
    db = connect(str(data / "backstory.db"))
    db.execute(
        "CREATE TRIGGER refused BEFORE INSERT ON session_memories WHEN new.session_id = 'refused'"
        " BEGIN SELECT raise(ABORT, 'not this one'); END"
    )
    put(data, bash("echo before"), at=NOW - 3)
    name = put(data, bash("echo refused", session_id="refused", cwd="/refused"), at=NOW - 2)
    put(data, bash("echo behind"), at=NOW - 1)
    drain(data)

    assert failures(data) == {name: "could not be stored: IntegrityError: not this one"}
    assert commands(data) == ["echo before", "echo behind"]
    assert len(rows(data, "SELECT 1 FROM events")) == 2
    assert len(rows(data, "SELECT 1 FROM sessions")) == len(rows(data, "SELECT 1 FROM projects")) == 1

    db.execute("DROP TRIGGER refused")
    db.close()
    os.rename(data / "spool" / "failed" / name, data / "spool" / "new" / name)
    drain(data)
    assert commands(data) == ["echo before", "echo refused", "echo behind"]


def test_a_payload_that_cannot_be_put_aside_holds_up_nothing(data: Path) -> None:
    put(data, b"{broken", at=NOW - 2)
    put(data, bash("echo behind"), at=NOW - 1)
    shutil.rmtree(data / "spool" / "failed", ignore_errors=True)
    (data / "spool" / "failed").write_text("a file where the folder should be")
    drain(data)
    assert commands(data) == ["echo behind"]
    assert len(spooled(data)) == 1  # it stays, and the next drain tries again
    assert "could not be put aside" in log_text(data)


def test_others_do_not_wait_while_large_payloads_are_read(data: Path) -> None:
    """The write lock is for storing. What is slow about a payload is over before it is taken."""
    text = "the password of the token is a secret\n" * 60_000
    for number in range(12):
        given = {"text": text, "list": [text[:4_000]] * 500}
        put(data, tool_use("Custom", given, "ok", tool_use_id=f"t{number}"))
    locked: list[float] = []

    def watch(statement: str) -> None:
        if statement in ("BEGIN IMMEDIATE", "COMMIT"):
            locked.append(time.monotonic())

    db = connect(str(data / "backstory.db"))
    db.set_trace_callback(watch)
    started = time.monotonic()
    drain_spool(db, str(data / "spool"), now=NOW)
    whole = time.monotonic() - started
    db.close()
    assert locked[1] - locked[0] < max(0.2, whole / 5)


def test_what_is_not_a_payload_is_left_alone(data: Path) -> None:
    put(data, bash("true"))
    folder = data / "spool" / "new" / "a folder"
    folder.mkdir()
    (data / "spool" / "new" / "a link").symlink_to("/etc/passwd")

    drain(data)

    assert spooled(data) == ["a folder", "a link"]
    assert len(contents(data)) == 1


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
    drain(data)
    assert commands(data) == ["echo again", "echo again"]


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
    "between a reason and its payload": suicidal("rename", 1),
    "between two payloads put aside": suicidal("rename", 2),
    "just before the last commit": suicidal_at_statement("COMMIT", 2),
}


@pytest.mark.parametrize("program", INSTANTS.values(), ids=INSTANTS.keys())
def test_a_drain_killed_at_this_very_instant_is_simply_done_again(program: str, data: Path) -> None:
    connect(str(data / "backstory.db")).close()
    good, bad = fill(data, SMALL)
    put(data, bash("echo silent since", session_id="silent"), at=int(time.time() * 1000) - 2 * DAY)

    with start(program, str(data)) as victim:
        _, said = victim.communicate(timeout=30)
    assert victim.returncode == -signal.SIGKILL, said

    drain(data, now=int(time.time() * 1000))
    assert_each_once(data, good | {"echo silent since"}, bad)
    assert rows(data, "SELECT status FROM sessions WHERE id = 'silent'") == [{"status": "interrupted"}]


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
    with start(suicidal("rename", 1), str(data)) as victim:
        victim.communicate(timeout=30)

    assert spooled(data) == [name]
    assert spooled(data, "failed") == [f"{name}.reason"]
    drain(data)
    assert set(failures(data)) == {name}
    assert spooled(data) == []


def test_drains_killed_at_random_instants_store_every_event_exactly_once(data: Path) -> None:
    generator = random.Random(CHAOS_SEED)  # noqa: S311 - to be repeated
    good: set[str] = set()
    bad: set[str] = set()
    killed = progressed = 0
    longest = 0.3
    for number in range(CHAOS_ROUNDS):
        more = fill(data, 300, f"round-{number}")
        good |= more[0]
        bad |= more[1]
        before = len(spooled(data))
        with start(DRAIN + GO, str(data)) as victim:
            started = time.monotonic()
            try:
                victim.wait(timeout=generator.uniform(0, longest))
                longest = time.monotonic() - started  # so that most are hit while they work
            except subprocess.TimeoutExpired:
                os.kill(victim.pid, signal.SIGKILL)
                killed += 1
            victim.communicate(timeout=30)
        progressed += 0 < len(spooled(data)) < before

    assert killed > 0
    drain(data)
    print(f"seed {CHAOS_SEED}: {killed} of {CHAOS_ROUNDS} killed, {progressed} of them amid the unlinks")  # noqa: T201
    assert_each_once(data, good, bad)


# --- together -----------------------------------------------------------------------------------------------


def at_once(programs: Sequence[str], data: Path) -> None:
    """Start them all, and let them go when all stand at the line, with everything imported."""
    wait = "sys.stdout.write('.'); sys.stdout.flush(); sys.stdin.read()"
    running = [start(program.replace("# the line", wait), str(data)) for program in programs]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.read(1) == b"."
    for process in running:
        assert process.stdin is not None
        process.stdin.close()
    for process in running:
        assert process.stdout is not None
        assert process.stderr is not None
        with process:
            assert process.stderr.read() == b""
            assert process.wait(timeout=60) == 0


def test_four_drains_at_once_store_every_event_exactly_once(data: Path) -> None:
    connect(str(data / "backstory.db")).close()
    good, bad = fill(data, 1000)

    at_once([DRAIN + GO] * 4, data)

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


@pytest.mark.parametrize("attempt", range(5))
def test_eight_processes_that_create_the_store_at_once_make_one(
    attempt: int, data: Path, tmp_path: Path
) -> None:
    at_once([CREATE] * 8, data)

    alone = tmp_path / "alone"
    connect(str(alone / "backstory.db")).close()
    schema = "SELECT type, name, sql FROM sqlite_master ORDER BY type, name"
    assert rows(data, schema) == rows(alone, schema)
    assert rows(data, "PRAGMA user_version") == rows(alone, "PRAGMA user_version")
    assert rows(data, "PRAGMA journal_mode") == [{"journal_mode": "wal"}]
    assert_sound(data)


@pytest.mark.parametrize("attempt", range(3))
def test_eight_drains_on_an_empty_folder_create_one_store_with_every_event_in_it(
    attempt: int, data: Path
) -> None:
    good, bad = fill(data, 40)
    at_once([DRAIN + GO] * 8, data)
    assert_each_once(data, good, bad)


def test_a_store_that_cannot_be_opened_says_so_at_once(data: Path) -> None:
    connect(str(data / "backstory.db")).close()
    (data / "backstory.db-wal").mkdir()
    started = time.monotonic()
    with pytest.raises(StoreError):
        connect(str(data / "backstory.db"))
    assert time.monotonic() - started < 3


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


def test_a_payload_taken_over_keeps_its_time(data: Path) -> None:
    put(data, bash("echo old"), at=NOW - 5 * MINUTE, into="tmp")
    drain(data)
    assert rows(data, "SELECT created_at FROM memories") == [{"created_at": NOW - 5 * MINUTE}]


# --- what capture promises ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("real_python")
def test_capture_is_silent(data: Path) -> None:
    for payload, args in (
        (event("SessionStart", source="startup"), ("start",)),
        (prompt("fix it"), ("drain",)),
        (bash("make"), ()),
        (event("Stop", stop_hook_active=False), ("drain",)),
        (event("SessionEnd", reason="other"), ("end",)),
    ):
        ran = run_hook(payload, *args)
        assert (ran.code, ran.stdout, ran.stderr) == (0, b"", b"")
    assert commands(data) == ["make"]


def test_a_memory_is_linked_to_the_session_that_created_it(data: Path) -> None:
    put(
        data,
        tool_use("Write", {"file_path": "/test/new.ts"}, "ok", session_id="test-session-link"),
        at=NOW - 5,
    )
    drain(data)
    (memory,) = rows(data, "SELECT id, session_id, sector, tier, kind FROM memories")
    assert {**memory, "id": ""} == {
        "id": "",
        "session_id": "test-session-link",
        "sector": "episodic",
        "tier": "session",
        "kind": "tool",
    }
    assert rows(data, "SELECT * FROM session_memories") == [
        {
            "session_id": "test-session-link",
            "memory_id": memory["id"],
            "usage_type": "created",
            "created_at": NOW - 5,
        }
    ]


def compact(size: int) -> str:
    """A string whose compact JSON has this many characters."""
    return "ü" * (size - 2)


@pytest.mark.parametrize("field", ["tool_response", "tool_result", "tool_output"])
@pytest.mark.parametrize(("size", "kept"), [(9_999, True), (10_000, True), (10_001, False), (500_000, False)])
def test_a_result_over_10_000_characters_makes_no_memory(
    size: int, kept: bool, field: str, data: Path
) -> None:
    payload = without(tool_use("Read", {"file_path": "/big.txt"}, None), "tool_response")
    payload[field] = compact(size)
    assert (remembered(data, payload) is not None) == kept
    assert len(rows(data, "SELECT 1 FROM events")) == 1, "it happened all the same"


BIG = "line of a file\n" * 5_000
ECHOES: list[tuple[str, Json, Json]] = [
    (
        "Write",
        {"file_path": "/big.txt", "content": BIG},
        {
            "type": "create",
            "filePath": "/big.txt",
            "content": BIG,
            "structuredPatch": [],
            "originalFile": None,
        },
    ),
    (
        "Edit",
        {"file_path": "/big.txt", "old_string": BIG, "new_string": "b", "replace_all": False},
        {
            "filePath": "/big.txt",
            "oldString": BIG,
            "newString": BIG,
            "originalFile": BIG,
            "structuredPatch": [{"oldStart": 1, "oldLines": 9, "newStart": 1, "newLines": 9, "lines": [BIG]}],
            "userModified": False,
            "replaceAll": False,
        },
    ),
    (
        "NotebookEdit",
        {"notebook_path": "/big.ipynb", "cell_id": "c1", "new_source": BIG},
        {
            "new_source": BIG,
            "cell_type": "code",
            "edit_mode": "replace",
            "notebook_path": "/big.ipynb",
            "original_file": BIG,
            "updated_file": BIG,
            "old_source": BIG,
        },
    ),
]


@pytest.mark.parametrize(("tool", "given", "result"), ECHOES, ids=[echo[0] for echo in ECHOES])
def test_the_echo_of_file_text_does_not_count(tool: str, given: Json, result: Json, data: Path) -> None:
    found = remembered(data, tool_use(tool, given, result))
    assert found is not None
    assert "line of a file" not in found


def test_what_an_edit_says_besides_the_echo_does_count(data: Path) -> None:
    assert remembered(data, tool_use("Edit", {"file_path": "/a"}, {"filePath": "/a", "note": BIG})) is None


def test_text_that_is_no_echo_counts_in_other_tools(data: Path) -> None:
    assert remembered(data, tool_use("Custom", {}, {"content": BIG})) is None


def test_the_end_of_a_session_promotes_what_is_above_0_7_and_not_what_is_at_0_7(data: Path) -> None:
    for number in range(4):
        put(data, bash(f"echo {number}"), at=NOW - 10)
    put(data, bash("echo other", session_id="session-2"), at=NOW - 10)
    drain(data)
    db = connect(str(data / "backstory.db"))
    with transaction(db):
        for number, salience in enumerate((0.69, 0.7, 0.7001, 0.95)):
            db.execute(
                "UPDATE memories SET salience = ?, last_accessed = ? WHERE content LIKE ?",
                (salience, NOW, f"%echo {number}"),
            )
        db.execute(
            "UPDATE memories SET salience = 0.99, last_accessed = ? WHERE content LIKE '%other'", (NOW,)
        )
    db.close()

    put(data, event("Stop"), at=NOW - 1)
    drain(data)
    assert rows(data, "SELECT 1 FROM memories WHERE tier = 'project'") == []
    put(data, event("SessionEnd", reason="other"), at=NOW)
    drain(data)

    tiers = rows(data, "SELECT content, tier FROM memories ORDER BY content")
    assert {row["content"].rsplit(" ", 1)[1]: row["tier"] for row in tiers} == {
        "0": "session",
        "1": "session",
        "2": "project",
        "3": "project",
        "other": "session",
    }


def test_a_reinforced_memory_outlives_its_session(data: Path) -> None:
    put(data, bash("echo important"), at=NOW - 10)
    drain(data)
    db = connect(str(data / "backstory.db"))
    with transaction(db):
        (memory_id,) = db.execute("SELECT id FROM memories").fetchone()
        for _ in range(10):
            life.reinforce(db, memory_id, 0.2, "session-1", NOW)
    db.close()
    put(data, event("SessionEnd", reason="other"), at=NOW)
    drain(data)
    assert rows(data, "SELECT tier FROM memories") == [{"tier": "project"}]


# --- what the user said, and what the files were ------------------------------------------------------------


def test_a_prompt_of_three_words_becomes_a_memory_of_the_user(data: Path) -> None:
    put(data, prompt("mend the door"), at=NOW)
    drain(data)
    (found,) = rows(data, "SELECT * FROM memories")
    assert (found["kind"], found["author"], found["content"]) == ("prompt", "user", "mend the door")
    assert (found["sector"], found["tier"], found["question"]) == ("episodic", "session", 0)
    (session,) = rows(data, "SELECT number FROM sessions")
    assert found["thread"] == session["number"]
    links = rows(data, "SELECT session_id, usage_type FROM session_memories")
    assert links == [{"session_id": "session-1", "usage_type": "created"}]


@pytest.mark.parametrize("said", ["yes", "go on", "ok!", "👍 👍 👍"])
def test_a_shorter_prompt_stays_with_the_session_and_becomes_no_memory(said: str, data: Path) -> None:
    put(data, prompt(said), at=NOW)
    drain(data)
    assert contents(data) == []
    assert rows(data, "SELECT prompt FROM prompts") == [{"prompt": said}]


def test_a_prompt_in_chinese_needs_no_spaces_to_become_a_memory(data: Path) -> None:
    put(data, prompt("修复登录错误"), at=NOW)
    drain(data)
    assert contents(data) == ["修复登录错误"]


def test_a_prompt_that_asks_is_known_to_ask(data: Path) -> None:
    put(data, prompt("which port is it?\n"), at=NOW)
    drain(data)
    assert rows(data, "SELECT question FROM memories") == [{"question": 1}]


def test_a_long_prompt_is_kept_whole_and_found_by_its_beginning(data: Path) -> None:
    text = "many words " * 1_000
    put(data, prompt(text), at=NOW)
    drain(data)
    assert rows(data, "SELECT prompt FROM prompts") == [{"prompt": text}]
    assert contents(data) == [text[:4_000]]


def test_the_report_of_a_background_agent_becomes_no_memory_of_the_user(data: Path) -> None:
    put(data, prompt("<task-notification>the agent is done with it"), at=NOW)
    drain(data)
    assert contents(data) == []


def test_a_drain_that_reads_files_and_prompts_loads_nothing_slow(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text("x = 1")
    put(data, tool_use("Read", {"file_path": str(file)}, {}, cwd=str(tmp_path)))
    put(data, prompt("what does maxRetryCount do?"))
    put(data, event("SessionEnd", reason="other"))
    program = f"{hook_program()}; print('\\n'.join(sys.modules))"
    ran = subprocess.run(
        [PYTHON, "-I", "-S", "-c", program, SOURCE, "drain"], capture_output=True, text=True, check=True
    )
    assert len(contents(data)) == 2
    assert "null" not in rows(data, "SELECT hashes FROM memories WHERE kind = 'tool'")[0]["hashes"]
    heavy = "contextlib dataclasses hashlib logging numpy pathlib subprocess threading typing _hashlib _ssl"
    assert sorted(set(ran.stdout.split()) & set(heavy.split())) == []


def git_hash(path: Path) -> str:
    return subprocess.run(
        ["git", "hash-object", "--no-filters", str(path)], capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.mark.parametrize("content", [b"", b"x = 1\n", b"\x00\xff" * 70_000, "größe\r\n".encode()])
def test_a_trace_keeps_what_git_would_call_its_file(content: bytes, data: Path, tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_bytes(content)
    put(data, tool_use("Read", {"file_path": str(file)}, {}, cwd=str(tmp_path)))
    drain(data)
    (found,) = rows(data, "SELECT files, hashes FROM memories")
    assert json.loads(found["files"]) == [str(file)]
    assert json.loads(found["hashes"]) == [git_hash(file)]


def test_a_file_that_is_missing_too_large_or_no_file_has_no_hash(data: Path, tmp_path: Path) -> None:
    large, pipe = tmp_path / "large", tmp_path / "pipe"
    with open(large, "wb") as file:
        file.truncate(4_000_001)
    os.mkfifo(pipe)
    for path in (tmp_path / "gone", large, pipe, tmp_path):
        put(data, tool_use("Read", {"file_path": str(path)}, {}, cwd=str(tmp_path)))
    put(data, tool_use("Read", {"file_path": "/a\0b"}, {}, cwd=str(tmp_path)))
    drain(data)
    assert {row["hashes"] for row in rows(data, "SELECT hashes FROM memories")} == {"[null]"}
    assert failures(data) == {}


def test_the_same_name_in_two_folders_is_two_files(data: Path, tmp_path: Path) -> None:
    """Paths in the client's lists are as seen from the session's folder; one batch may hold several."""
    for name in ("one", "two"):
        (tmp_path / name / "src").mkdir(parents=True)
        (tmp_path / name / "src" / "main.py").write_text(name)
        payload = tool_use("Glob", {"pattern": "*"}, {"filenames": ["src/main.py"]}, cwd=str(tmp_path / name))
        put(data, payload | {"session_id": name})
    drain(data)
    found = rows(data, "SELECT session_id, hashes FROM memories ORDER BY session_id")
    assert {row["session_id"]: json.loads(row["hashes"]) for row in found} == {
        name: [git_hash(tmp_path / name / "src" / "main.py")] for name in ("one", "two")
    }


@pytest.mark.usefixtures("real_python")
def test_after_the_end_of_a_session_nobody_holds_the_store_open(data: Path) -> None:
    run_hook(bash("make"))
    run_hook(event("SessionEnd", reason="other"), "end")

    # Neither -wal nor -shm: whoever closes last takes them away. (Looking into the store would do so too.)
    assert [path.name for path in data.glob("backstory.db*")] == ["backstory.db"]
    assert commands(data) == ["make"]
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("no /proc here to look into")
    holders = []
    for process in os.listdir("/proc"):
        try:
            handles = os.listdir(f"/proc/{process}/fd") if process.isdigit() else []
            targets = [os.readlink(f"/proc/{process}/fd/{handle}") for handle in handles]
        except OSError:
            continue  # gone meanwhile
        holders += [process for target in targets if target.startswith(str(data))]
    assert holders == []


def test_sessions_that_run_side_by_side_keep_their_memories_apart(data: Path) -> None:
    for number in range(6):
        session = f"session-{number % 2}"
        put(
            data, bash(f"echo {number}", session_id=session, cwd=f"/projects/{session}"), at=NOW - 10 + number
        )
    put(data, prompt("zero", session_id="session-0", cwd="/projects/session-0"), at=NOW - 20)
    put(data, event("SessionEnd", session_id="session-1", cwd="/projects/session-1"), at=NOW - 1)
    drain(data)

    found = rows(data, "SELECT session_id, content, project_id FROM memories ORDER BY created_at")
    assert [(row["session_id"], row["content"][-1]) for row in found] == [
        (f"session-{number % 2}", str(number)) for number in range(6)
    ]
    assert len({row["project_id"] for row in found}) == 2
    links = rows(
        data,
        "SELECT 1 FROM session_memories l JOIN memories m ON m.id = l.memory_id"
        " WHERE l.session_id <> m.session_id",
    )
    assert links == []
    assert rows(data, "SELECT id, status, user_prompt FROM sessions ORDER BY id") == [
        {"id": "session-0", "status": "active", "user_prompt": "zero"},
        {"id": "session-1", "status": "completed", "user_prompt": None},
    ]


# --- the life of a session ----------------------------------------------------------------------------------


def the_session(data: Path) -> Json:
    (found,) = rows(data, "SELECT status, started_at, last_event_at, ended_at FROM sessions")
    return found


def test_a_session_that_is_silent_for_a_day_was_interrupted(data: Path) -> None:
    put(data, bash("make"), at=NOW)
    drain(data, now=NOW + DAY)
    assert the_session(data)["status"] == "active"
    drain(data, now=NOW + DAY + 1)
    assert the_session(data) == {
        "status": "interrupted",
        "started_at": NOW,
        "last_event_at": NOW,
        "ended_at": NOW,
    }


@pytest.mark.parametrize(
    "sign_of_life", [prompt("go on"), bash("ls"), event("SessionStart", source="resume")]
)
def test_an_interrupted_session_that_shows_a_sign_of_life_is_active(sign_of_life: Json, data: Path) -> None:
    put(data, bash("make"), at=NOW)
    drain(data, now=NOW + 2 * DAY)
    put(data, sign_of_life, at=NOW + 2 * DAY)
    drain(data, now=NOW + 2 * DAY + 5)
    assert the_session(data) == {
        "status": "active",
        "started_at": NOW,
        "last_event_at": NOW + 2 * DAY,
        "ended_at": None,
    }


def test_a_prompt_after_the_end_reopens_the_session(data: Path) -> None:
    put(data, event("SessionEnd", reason="clear"), at=NOW)
    drain(data)
    assert the_session(data)["status"] == "completed"
    put(data, prompt("one more thing"), at=NOW + 1)
    drain(data)
    assert the_session(data) == {
        "status": "active",
        "started_at": NOW,
        "last_event_at": NOW + 1,
        "ended_at": None,
    }


def test_a_prompt_from_before_the_end_that_comes_late_does_not_reopen_it(data: Path) -> None:
    put(data, event("SessionEnd", reason="clear"), at=NOW)
    drain(data)
    put(data, prompt("late"), at=NOW - 1)
    drain(data)
    assert the_session(data) == {
        "status": "completed",
        "started_at": NOW - 1,
        "last_event_at": NOW,
        "ended_at": NOW,
    }


def test_a_session_that_ended_long_ago_stays_completed(data: Path) -> None:
    put(data, event("SessionEnd", reason="other"), at=NOW)
    drain(data, now=NOW + 10 * DAY)
    assert the_session(data)["status"] == "completed"


LIVES: dict[str, list[Json]] = {
    "is open": [
        event("SessionStart", source="startup"),
        prompt("first"),
        bash("echo 1"),
        bash("echo 2"),
        event("Stop"),
        prompt("second"),
    ],
    "ended": [
        event("SessionStart", source="startup"),
        prompt("first"),
        bash("echo 1"),
        prompt("second"),
        bash("echo 2"),
        event("Stop"),
        event("SessionEnd", reason="other"),
    ],
    "ended and was resumed": [
        prompt("first"),
        bash("echo 1"),
        event("SessionEnd", reason="other"),
        event("SessionStart", source="resume"),
        prompt("second"),
        bash("echo 2"),
    ],
    "ended with a straggler": [
        event("SessionStart", source="startup"),
        prompt("first"),
        event("SessionEnd", reason="other"),
        bash("echo 1"),
        event("SubagentStop"),
    ],
    "ended, straggled and was resumed": [
        prompt("first"),
        event("SessionEnd", reason="other"),
        bash("echo 1"),
        prompt("second"),
        event("SessionEnd", reason="other"),
        event("SubagentStop"),
    ],
    "ended twice": [
        prompt("first"),
        event("SessionEnd", reason="other"),
        event("SessionStart", source="resume"),
        bash("echo 1"),
        event("SessionEnd", reason="other"),
    ],
}


def outcome(life: Sequence[Json], batches: Sequence[Sequence[int]]) -> tuple[list[Json], ...]:
    """What the store says after the events of a life arrived in these batches. Their times never change."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        for batch in batches:
            for number in batch:
                put(data, life[number], at=NOW + number, name=f"event-{number}")
            drain(data, now=NOW + 100)
        return (
            rows(data, "SELECT * FROM sessions"),
            rows(data, "SELECT session_id, prompt, created_at FROM prompts ORDER BY created_at"),
            rows(
                data,
                "SELECT session_id, content, tier, files, importance, salience, created_at"
                " FROM memories ORDER BY created_at",
            ),
            rows(data, "SELECT session_id, usage_type, created_at FROM session_memories ORDER BY created_at"),
        )


def known(found: tuple[list[Json], ...]) -> tuple[list[Json], ...]:
    """Without the project's id, which is random in every store."""
    return ([without(row, "project_id") for row in found[0]], *found[1:])


def arrivals(count: int) -> st.SearchStrategy[list[list[int]]]:
    """Any order of arrival, drained in any batches."""
    return st.tuples(
        st.permutations(range(count)), st.lists(st.booleans(), min_size=count, max_size=count)
    ).map(lambda drawn: _cut(*drawn))


def _cut(order: Sequence[int], ends: Sequence[bool]) -> list[list[int]]:
    batches: list[list[int]] = [[]]
    for number, is_end in zip(order, ends, strict=True):
        batches[-1].append(number)
        if is_end:
            batches.append([])
    return [batch for batch in batches if batch]


@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES.keys())
@settings(max_examples=25, deadline=None)
@given(arrival=st.data())
def test_events_that_arrive_out_of_order_leave_the_same_behind(
    life: list[Json], arrival: st.DataObject
) -> None:
    in_order = known(outcome(life, [range(len(life))]))
    assert known(outcome(life, arrival.draw(arrivals(len(life))))) == in_order


def test_a_straggler_after_the_end_leaves_the_same_behind_in_any_order() -> None:
    life = [prompt("first"), event("SessionEnd", reason="other"), bash("echo straggler")]
    assert known(outcome(life, [[0, 2], [1]])) == known(outcome(life, [[0, 1, 2]]))


# --- no secret, whole or in part ---------------------------------------------------------------------------

SPLIT = "ghp_" + "9fKq2LmZx8Rv4TnYw7Bc3HdJ6sPa1GeUi5Qo"
HALVED: dict[str, Json] = {
    # What is cut off, and what redaction and fences take out before the cut, must not leave half a secret.
    "at the cut of a prompt": prompt("x " * (50_000 - 10) + SPLIT + " y" * 10_000),
    "at the end of the window": prompt("x " * (52_000 - 10) + SPLIT + " y" * 10_000),
    "moved to the cut by a fence": prompt(
        "<backstory>" + "z" * 60_000 + "</backstory> " + "x " * (22_000 - 10) + SPLIT + " y" * 90_000
    ),
    "moved to the cut by a private part": prompt(
        "<private>" + "z" * 60_000 + "</private> " + "x " * (22_000 - 10) + SPLIT + " y" * 90_000
    ),
    "in a command": bash("echo " + "x " * 90 + SPLIT),
    "in the input of any tool": tool_use("Custom", {"a": "x" * 280, "b": SPLIT}, "ok"),
    **{
        f"beside its name at the cut, {length} before it": tool_use(
            "Custom", {"q": "a " * (length // 2), "token": "qwertyuiopasdfghjkLZXCV8842xx"}, "ok"
        )
        for length in range(230, 300, 6)
    },
    "as a name": tool_use("Custom", {SPLIT: "x"}, "ok"),
    "as an id": bash("echo", tool_use_id=SPLIT),
    "as a session": bash("echo", session_id=SPLIT),
    "as a tool": tool_use(SPLIT, {}, "ok"),
}


@pytest.mark.parametrize("payload", HALVED.values(), ids=HALVED.keys())
def test_no_part_of_a_secret_reaches_the_store(payload: Json, data: Path) -> None:
    put(data, payload)
    assert drain(data).stored == 1
    for path in data.glob("backstory.db*"):
        for part in (SPLIT[:14], "qwertyuiop"):
            assert part.encode() not in path.read_bytes()


@pytest.mark.parametrize(
    "payload",
    [
        tool_use("Write", {"file_path": {"password": "hunter2xyz"}}, {}),
        tool_use("Bash", {"command": {"api_key": "hunter2xyz"}}, {"stdout": "", "stderr": ""}),
        tool_use("Bash", {"command": ["mysql", "--password", "hunter2xyz"]}, {"stdout": "", "stderr": ""}),
        tool_use("Custom", {"password": "hunter2xyz", "user": "ada"}, {}),
        tool_use("Grep", {"pattern": {"token": "hunter2xyz"}}, {}),
    ],
)
def test_a_value_beside_a_name_that_gives_it_away_is_redacted_whatever_its_type(
    payload: Json, data: Path
) -> None:
    content = remembered(data, payload)
    assert content is not None
    assert "hunter2xyz" not in content


# --- not the user's words, and not ours ---------------------------------------------------------------------

NOTIFICATION = (
    "<task-notification>\n<task-id>a70a12473b138a73d</task-id>\n<status>completed</status>\n"
    '<summary>Agent "sub job" finished</summary>\n<result>sub done</result>\n</task-notification>'
)


def test_the_report_of_a_background_agent_is_not_kept_as_the_user_s_words(data: Path) -> None:
    put(data, prompt(NOTIFICATION), at=NOW - 2)
    put(data, prompt("and what does <task-notification> mean?"), at=NOW - 1)
    drain(data)
    said = "and what does <task-notification> mean?"
    assert [row["prompt"] for row in rows(data, "SELECT prompt FROM prompts")] == [said]
    assert rows(data, "SELECT user_prompt FROM sessions") == [{"user_prompt": said}]


def test_the_first_thing_the_user_asked_for_stays_with_the_session(data: Path) -> None:
    for number, text in enumerate(("", "fix the login", "and the logout")):
        put(data, prompt(text), at=NOW - 10 + number)
    drain(data)
    assert rows(data, "SELECT user_prompt FROM sessions") == [{"user_prompt": "fix the login"}]


@pytest.mark.parametrize(
    "tool",
    [
        "mcp__plugin_backstory_memory__memory_search",
        "mcp__plugin_backstory_docmem__docmem_find",
        "mcp__backstory__x",
    ],
)
def test_our_own_tools_leave_no_trace(tool: str, data: Path) -> None:
    assert remembered(data, tool_use(tool, {"query": "login"}, [{"type": "text", "text": "old"}])) is None


def test_the_tools_of_others_do(data: Path) -> None:
    payload = tool_use("mcp__plugin_probe_echo__shout", {"t": "x"}, [{"type": "text", "text": "SHOUT"}])
    assert remembered(data, payload) == 'Tool: mcp__plugin_probe_echo__shout\nInput: {"t":"x"}'


@pytest.mark.parametrize(
    "command",
    [
        "backstory search login",
        "cd /x && backstory search login | head",
        "/opt/bin/backstory show mem_1",
        "BACKSTORY_HOME=/x backstory show mem_1",
        "uv run backstory search login",
        "if true; then sudo backstory doctor; fi",
        "cat ids | xargs -n1 backstory show",
        "python3 -m backstory search login",
        "echo $(backstory search login)",
        "echo a; backstory sessions",
    ],
)
def test_what_our_own_command_prints_is_not_remembered_again(command: str, data: Path) -> None:
    assert remembered(data, bash(command, stdout="an old memory")) == f"Tool: Bash\nCommand: {command}"


@pytest.mark.parametrize(
    "command", ["grep backstory setup.py", "ls backstory", "cd backstory && make search"]
)
def test_a_command_that_only_mentions_us_is_remembered_with_its_output(command: str, data: Path) -> None:
    assert remembered(data, bash(command, stdout="fine")) == f"Tool: Bash\nCommand: {command}\nOutput: fine"


def test_what_our_own_command_printed_before_it_failed_is_not_remembered_again(data: Path) -> None:
    failed = event(
        "PostToolUseFailure",
        tool_name="Bash",
        tool_input={"command": "backstory search login && false"},
        tool_use_id="toolu_1",
        error="Exit code 1\nan old memory",
    )
    assert "an old memory" not in str(remembered(data, failed))


RECALLED = '<backstory source="backstory memory_search" note="stored data">\nOLD MEMORY\n</backstory>'


def test_recalled_text_is_stripped_from_prompts(data: Path) -> None:
    put(data, prompt(f"before {RECALLED} after"), at=NOW - 2)
    put(data, prompt(f"shouted {RECALLED.upper()} and <backstory source=unclosed> OLD MEMORY"), at=NOW - 1)
    drain(data)
    assert [row["prompt"] for row in rows(data, "SELECT prompt FROM prompts ORDER BY created_at")] == [
        "before [recalled memory] after",
        "shouted [recalled memory] and [recalled memory]",
    ]


@pytest.mark.parametrize(
    "payload",
    [
        bash("cat notes", stdout=f"a {RECALLED} b"),
        bash(f"echo '{RECALLED}'", stdout="ok"),
        tool_use("Custom", {"text": RECALLED, "list": [{"deep": RECALLED}]}, {}),
        event(
            "PostToolUseFailure", tool_name="Bash", tool_input={"command": "x"}, error=f"Exit 1 {RECALLED}"
        ),
    ],
    ids=["output", "command", "input", "error"],
)
def test_recalled_text_is_stripped_from_tool_uses(payload: Json, data: Path) -> None:
    found = remembered(data, payload)
    assert found is not None
    assert "[recalled memory]" in found
    assert "OLD MEMORY" not in found


# --- what a memory of a tool use says -----------------------------------------------------------------------


def read_result(path: str, text: str) -> Json:
    lines = text.count("\n") + 1
    file = {"filePath": path, "content": text, "numLines": lines, "startLine": 1, "totalLines": lines}
    return {"type": "text", "file": file}


LONG_COMMAND = "echo " + "x" * 300
FORMATS: dict[str, tuple[Json, str]] = {
    "Read": (
        tool_use("Read", {"file_path": "/p/a.txt"}, read_result("/p/a.txt", "alpha\n")),
        "Tool: Read\nRead file: /p/a.txt",
    ),
    "Write": (
        tool_use(
            "Write",
            {"file_path": "/p/a.txt", "content": "alpha\n"},
            {"type": "create", "filePath": "/p/a.txt", "content": "alpha\n", "structuredPatch": []},
        ),
        "Tool: Write\nWrote file: /p/a.txt",
    ),
    "Edit": (
        tool_use(
            "Edit",
            {"file_path": "/p/a.txt", "old_string": "alpha", "new_string": "ALPHA", "replace_all": False},
            {"filePath": "/p/a.txt", "oldString": "alpha", "newString": "ALPHA", "originalFile": "alpha\n"},
        ),
        "Tool: Edit\nEdited file: /p/a.txt",
    ),
    "NotebookEdit": (
        tool_use("NotebookEdit", {"notebook_path": "/p/n.ipynb", "new_source": "2"}, {"old_source": "1"}),
        "Tool: NotebookEdit\nEdited file: /p/n.ipynb",
    ),
    "Bash": (bash("echo hi", stdout="hi"), "Tool: Bash\nCommand: echo hi\nOutput: hi"),
    "Bash, stdout then stderr": (
        bash("echo hi; echo err >&2", stdout="hi\n", stderr="err\n"),
        "Tool: Bash\nCommand: echo hi; echo err >&2\nOutput: hi\nerr",
    ),
    "Bash, only stderr": (bash("x", stderr="err"), "Tool: Bash\nCommand: x\nOutput: err"),
    "Bash, no output": (bash("true"), "Tool: Bash\nCommand: true"),
    "Bash, with a plain string for a result": (
        tool_use("Bash", {"command": "ls"}, "a\nb"),
        "Tool: Bash\nCommand: ls\nOutput: a\nb",
    ),
    "Bash, a long command": (bash(LONG_COMMAND), f"Tool: Bash\nCommand: {LONG_COMMAND[:200]}"),
    "Bash, 499 characters": (bash("x", stdout="o" * 499), f"Tool: Bash\nCommand: x\nOutput: {'o' * 499}"),
    "Bash, 500 characters": (bash("x", stdout="o" * 500), "Tool: Bash\nCommand: x"),
    "Bash, both together 500": (bash("x", stdout="o" * 250, stderr="e" * 249), "Tool: Bash\nCommand: x"),
    "Grep": (
        tool_use(
            "Grep",
            {"pattern": "ALPHA", "output_mode": "content"},
            {"mode": "content", "numFiles": 0, "filenames": [], "content": "a.txt:1:ALPHA", "numLines": 1},
        ),
        "Tool: Grep\nPattern: ALPHA",
    ),
    "Glob": (
        tool_use("Glob", {"pattern": "*.txt"}, {"filenames": ["a.txt"], "numFiles": 1, "truncated": False}),
        "Tool: Glob\nPattern: *.txt",
    ),
    "anything else": (
        tool_use("ToolSearch", {"query": "select:x", "max_results": 5}, {"matches": ["x"]}),
        'Tool: ToolSearch\nInput: {"query":"select:x","max_results":5}',
    ),
    "anything else, long": (
        tool_use("Agent", {"prompt": "é" * 400}, {"isAsync": True, "status": "async_launched"}),
        f'Tool: Agent\nInput: {{"prompt":"{"é" * 289}',
    ),
    "a failed command": (
        event(
            "PostToolUseFailure",
            tool_name="Bash",
            tool_input={"command": "echo out; exit 3"},
            tool_use_id="toolu_e1389446c1704de08b09c8e0",
            error="Exit code 3\nout\nbad",
            is_interrupt=False,
        ),
        "Tool: Bash\nCommand: echo out; exit 3\nFailed: Exit code 3\nout\nbad",
    ),
    "a failed Read": (
        event(
            "PostToolUseFailure",
            tool_name="Read",
            tool_input={"file_path": "/p/nope.txt"},
            error="File does not exist.",
        ),
        "Tool: Read\nRead file: /p/nope.txt\nFailed: File does not exist.",
    ),
}


@pytest.mark.parametrize(("payload", "expected"), FORMATS.values(), ids=FORMATS.keys())
def test_a_tool_use_is_described_in_two_or_three_lines(payload: Json, expected: str, data: Path) -> None:
    assert remembered(data, payload) == expected


FILES: dict[str, tuple[Json, list[str]]] = {
    "file_path": (tool_use("Read", {"file_path": "/p/a.txt"}, {}), ["/p/a.txt"]),
    "notebook_path": (tool_use("NotebookEdit", {"notebook_path": "/p/n.ipynb"}, {}), ["/p/n.ipynb"]),
    "path": (tool_use("Grep", {"pattern": "x", "path": "/p"}, {"filenames": []}), ["/p"]),
    "both": (tool_use("Custom", {"path": "/p", "file_path": "/p/a"}, {}), ["/p/a", "/p"]),
    "a list of files": (
        tool_use("Glob", {"pattern": "*"}, ["/p/a", "b", "c/d", 7]),
        ["/p/a", "/somewhere/project/c/d"],
    ),
    "the client's list": (
        tool_use("Glob", {"pattern": "*"}, {"filenames": ["p/a"]}),
        ["/somewhere/project/p/a"],
    ),
    "each once": (tool_use("Grep", {"path": "/p"}, ["/p", "/q", "/q"]), ["/p", "/q"]),
    "ten of many": (tool_use("Glob", {}, [f"/f{n}" for n in range(30)]), [f"/f{n}" for n in range(10)]),
    "none": (bash("cat /etc/passwd", stdout="/srv/x"), []),
    "of odd types": (tool_use("Custom", {"file_path": 7, "path": ["/a"]}, {"filenames": "no/list"}), []),
}


@pytest.mark.parametrize(("payload", "expected"), FILES.values(), ids=FILES.keys())
def test_the_files_of_a_tool_use_are_those_it_names(payload: Json, expected: list[str], data: Path) -> None:
    put(data, payload)
    drain(data)
    (found,) = rows(data, "SELECT files FROM memories")
    assert json.loads(found["files"]) == expected


def test_edits_commits_and_failures_weigh_more_than_looking_around(data: Path) -> None:
    failed = event("PostToolUseFailure", tool_name="Bash", tool_input={"command": "c"}, error="no")
    for number, payload in enumerate(
        (bash("ls"), tool_use("Edit", {"file_path": "/a"}, {}), bash("git commit -m x"), failed)
    ):
        put(data, payload, at=NOW - 10 + number)
    drain(data)
    found = rows(data, "SELECT importance, salience FROM memories ORDER BY created_at")
    assert [row["importance"] for row in found] == [0.3, 0.4, 0.4, 0.4]
    assert [row["salience"] for row in found] == [0.3, 0.4, 0.4, 0.4]


def test_a_memory_is_found_by_the_keyword_index_at_once(data: Path) -> None:
    put(data, bash("pytest", stdout="ZeroDivisionError in ledger"))
    drain(data)
    found = rows(data, "SELECT rowid FROM memories_fts WHERE memories_fts MATCH 'zerodivisionerror ledger'")
    assert len(found) == 1


# --- the hook's process -------------------------------------------------------------------------------------


def test_a_store_of_a_newer_backstory_is_left_alone_and_the_log_says_so(data: Path) -> None:
    put(data, bash("echo waiting"))
    connect(str(data / "backstory.db")).close()
    db = sqlite3.connect(data / "backstory.db")
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
    assert 0 < report["ratio_to_bare_inserts"] < 100
