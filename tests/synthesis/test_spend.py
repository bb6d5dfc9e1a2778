"""The people's side of synthesis: what it cost, what is set, and what the worker is at."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import sqlite3
import stat
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backstory import config, paths
from backstory.model import Spent
from backstory.store import projects, queue, sessions
from backstory.store import spend as ledger
from backstory.store.file.connection import connect, transaction
from backstory.surfaces.cli import worker_status
from backstory.surfaces.cli.config import ABOUT, with_setting
from backstory.surfaces.cli.spend import BAR, bar, dollars, raises_it, short
from tests.conftest import REPOSITORY, Ran, Run

BACKSTORY = os.path.join(os.path.dirname(sys.executable), "backstory")
DAY = 24 * 3_600_000


def in_a_terminal(command: str, cwd: str, columns: int) -> str:
    script = ["script", "-qec", f"stty cols {columns}; {BACKSTORY} {command}", "/dev/null"]
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    return subprocess.run(
        script,
        cwd=cwd,
        env=env | {"TERM": "xterm", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout


def uncoloured(text: str) -> list[str]:
    return re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()


@pytest.fixture
def now() -> int:
    return int(time.time() * 1000)


@pytest.fixture
def store(data: Path, project: str, now: int) -> Iterator[sqlite3.Connection]:
    """The store that the commands see, with a session `abcdef01-2345`."""
    data.mkdir(parents=True, mode=0o700)
    db = connect(str(data / "backstory.db"))
    place = paths.place(project)
    with transaction(db):
        owner = projects.ensure(db, place, now)
        sessions.start(db, "abcdef01-2345", owner, project, place, now)
        sessions.keep_prompt(db, "abcdef01-2345", "close the walrus door\nplease", now)
    yield db
    db.close()


def spent(usd: float, requests: int = 1, sent: int = 1_000) -> Spent:
    return Spent("claude-haiku", requests, sent, 8 * sent, sent, 500, usd)


# --- what it cost -------------------------------------------------------------------------------------------


def test_where_nothing_was_spent_it_says_so_and_what_is_left(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = run("spend")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("$0.00 of $1.00 spent today, $1.00 left\nNothing was spent in the last 14 days")
    value = run("spend", "--json").json
    assert (len(value["days"]), sum(day["usd"] for day in value["days"])) == (14, 0)
    assert {name: value[name] for name in value if name != "days"} == {
        "cap": 1.0,
        "today": {"usd": 0.0, "left": 1.0},
        "sessions": [],
    }
    monkeypatch.setenv("BACKSTORY_SPEND_DAILY_USD", "0")
    assert "with spend.daily_usd 0 the model is never asked" in run("spend").out


def test_without_a_claude_status_says_what_is_missing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backstory.synthesis.claude.find_cli", lambda env: None)
    monkeypatch.setenv("BACKSTORY_SYNTHESIZER", "auto")
    assert "by rules, because there is no claude on PATH" in run("status").out
    assert run("status", "--json").json["synthesis"]["uses"] == "local"
    monkeypatch.setenv("BACKSTORY_SYNTHESIZER", "claude")
    assert "install Claude Code" in run("status").out
    assert run("status", "--json").json["synthesis"]["uses"] is None


def test_a_synthesizer_that_does_not_exist_is_wrong_use(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKSTORY_SYNTHESIZER", "psychic")
    ran = run("status")
    assert (ran.code, ran.out) == (2, "")
    assert "one of auto, claude, local, off" in ran.err


def test_the_ledger_is_told_by_day_and_by_session_to_the_last_token(
    run: Run, store: sqlite3.Connection, project: str, now: int
) -> None:
    place = paths.place(project)
    with transaction(store):
        owner = projects.ensure(store, place, now)
        sessions.start(store, "zyx-older", owner, project, place, now - 2 * DAY)
        ledger.add(store, "abcdef01-2345", spent(0.25, requests=2), now)
        ledger.add(store, "abcdef01-2345", spent(0.125), now)
        ledger.add(store, "zyx-older", spent(0.5), now - 2 * DAY)
        ledger.add(store, "zyx-older", spent(64.0), now - 40 * DAY)
    told = run("spend", "--days", "3", "--json").json
    assert [day["usd"] for day in told["days"]] == [0.5, 0.0, 0.375]
    assert told["days"][2] == {
        "day": time.strftime("%Y-%m-%d", time.localtime(now / 1000)),
        "requests": 3,
        "input_tokens": 2_000,
        "cache_read_tokens": 16_000,
        "cache_write_tokens": 2_000,
        "output_tokens": 1_000,
        "usd": 0.375,
    }
    assert [(one["session_id"], one["usd"]) for one in told["sessions"]] == [
        ("zyx-older", 0.5),
        ("abcdef01-2345", 0.375),
    ]
    assert told["sessions"][1]["project"] == "api"
    assert told["sessions"][1]["request"] == "close the walrus door\nplease"
    assert told["today"] == {"usd": 0.375, "left": 0.625}
    (only,) = run("spend", "--days", "3", "--sessions", "1", "--json").json["sessions"]
    assert only["session_id"] == "zyx-older"
    assert run("spend", "--days", "60", "--json").json["sessions"][0]["usd"] == 64.5
    for wrong in (("--days", "0"), ("--days", "many"), ("--sessions", "-1")):
        assert run("spend", *wrong).code == 2


def test_the_bar_of_a_day_is_as_long_as_the_day_was_dear(
    run: Run, store: sqlite3.Connection, now: int
) -> None:
    with transaction(store):
        ledger.add(store, "abcdef01-2345", spent(0.8), now - 2 * DAY)
        ledger.add(store, "abcdef01-2345", spent(0.4), now)
    ran = run("spend", "--days", "3")
    assert "\x1b" not in ran.out
    assert "$0.40 of $1.00 spent today, $0.60 left" in ran.out
    lines = ran.out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("day "))
    dear, empty, today, total = lines[at + 1 : at + 5]
    assert dear.count("█") == pytest.approx(2 * today.count("█"), abs=1)
    assert empty.split()[1:] == ["-"] * 5
    assert today.split()[:7] == ["today", "1", "10.0k", "80%", "500", "$0.4000", "40%"]
    assert total.split() == ["total", "2", "20.0k", "80%", "1.0k", "$1.2000"]
    assert re.search(r"^abcdef01 .* api .* \$1\.2000  close the walrus door · please$", ran.out, re.MULTILINE)


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_a_terminal_gets_colours_and_never_a_second_row(
    columns: int, store: sqlite3.Connection, project: str, now: int
) -> None:
    with transaction(store):
        ledger.add(store, "abcdef01-2345", spent(0.7), now)
        ledger.add(store, "abcdef01-2345", spent(0.1), now - DAY)
    seen = in_a_terminal("spend", project, columns)
    assert "\x1b[" in seen
    lines = uncoloured(seen)
    assert [line for line in lines if len(line) > columns] == []
    day_rows = [line for line in lines if re.match(r"\d{4}-\d\d-\d\d  |today ", line)]
    assert len(day_rows) == 14
    assert ("█" in day_rows[-1]) == (columns > 40)
    assert all("$0." in line for line in day_rows[-2:])
    (session,) = [line for line in lines if line.startswith("abcdef01 ")]
    assert "$0.8000" in session
    assert "close" in session


def test_a_cap_that_is_reached_and_what_raises_it_is_said(
    run: Run, store: sqlite3.Connection, now: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_SPEND_DAILY_USD", "0.5")
    with transaction(store):
        ledger.add(store, "abcdef01-2345", spent(0.75), now)
    ran = run("spend")
    assert "$0.75 of $0.50 spent today: the cap is reached" in ran.out
    assert "`backstory config spend.daily_usd 1` raises it" in ran.out
    assert "150%" in ran.out
    assert run("spend", "--json").json["today"] == {"usd": 0.75, "left": 0.0}


def test_of_what_fell_back_the_latest_comes_first_with_its_day(
    run: Run, store: sqlite3.Connection, now: int
) -> None:
    with transaction(store):
        for _ in range(5):
            queue.put(store, "abcdef01-2345", "Bash", "{}", "{}", now - 4 * DAY, None)
        queue.done(store, [1, 2, 3], "local", now - 3 * DAY, "no login")
        queue.done(store, [4], "local", now - 2 * DAY, "the daily cap is reached")
    day = time.strftime("%Y-%m-%d %H:%M", time.localtime((now - 2 * DAY) / 1000))
    lines = [line for line in run("worker", "--status").out.splitlines() if "instead of the model" in line]
    assert lines[0].startswith(f"{day}: 1 item observed by local")
    assert lines[1].endswith("3 items observed by local instead of the model: no login")
    troubles = run("worker", "--status", "--json").json["troubles"]
    assert [one["at"] for one in troubles] == [now - 2 * DAY, now - 3 * DAY]
    assert troubles == run("status", "--json").json["synthesis"]["troubles"]


def test_what_raises_the_cap_is_a_command_that_does() -> None:
    for spent_today, cap, wanted in ((1.0, 1.0, "2"), (0.75, 0.5, "1"), (8.0, 1.0, "9"), (0.1, 0.1, "1")):
        assert raises_it(spent_today, cap) == f"`backstory config spend.daily_usd {wanted}` raises it"


def test_what_was_spent_for_a_session_that_is_gone_still_counts(
    run: Run, store: sqlite3.Connection, now: int
) -> None:
    with transaction(store):
        ledger.add(store, "abcdef01-2345", spent(0.25), now)
        sessions.purge(store, "abcdef01-2345")
    assert run("spend", "--json").json["today"]["usd"] == 0.25
    assert re.search(r"^gone .* \$0\.2500  -$", run("spend").out, re.MULTILINE)


def test_what_was_spent_long_ago_is_not_called_nothing(run: Run, store: sqlite3.Connection, now: int) -> None:
    with transaction(store):
        ledger.add(store, "abcdef01-2345", spent(0.25), now - 30 * DAY)
    assert "Nothing was spent in the last 14 days; --days looks further back" in run("spend").out
    assert "$0.2500" in run("spend", "--days", "60").out


def test_a_day_begins_at_midnight_where_the_user_is(
    store: sqlite3.Connection, project: str, now: int
) -> None:
    ahead = 13 * 3_600_000
    midnight = (now + ahead) // DAY * DAY - ahead
    with transaction(store):
        ledger.add(store, "abcdef01-2345", spent(0.25), midnight)
        ledger.add(store, "abcdef01-2345", spent(0.5), midnight - 1)
    ran = subprocess.run(
        [BACKSTORY, "spend", "--days", "2", "--json"],
        env=os.environ | {"TZ": "XXX-13"},
        cwd=project,
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(ran.stdout)
    assert ([day["usd"] for day in told["days"]], told["today"]["usd"]) == ([0.5, 0.25], 0.25)


def test_nothing_that_was_asked_can_drive_the_terminal(run: Run, store: sqlite3.Connection, now: int) -> None:
    evil = "evil \x1b[2J\x1b]0;title\x07 [red]markup[/red] \x9b31m"
    with transaction(store):
        sessions.keep_prompt(store, "abcdef01-2345", evil, now - 1)
        ledger.add(store, "abcdef01-2345", spent(0.25), now)
        queue.put(store, "abcdef01-2345", "Bash", "{}", "{}", now, None)
        queue.defer(store, [1], evil, now)
    for command in (["spend"], ["spend", "--json"], ["worker", "--status"], ["worker", "--status", "--json"]):
        ran = run(*command)
        assert "evil" in ran.out
        for sign in "\x1b\x9b\x07":
            assert sign not in ran.out + ran.err
    assert "[red]markup[/red]" in run("spend").out


def test_a_bar_is_never_wider_than_its_room_and_something_is_never_nothing() -> None:
    drawn = [bar(value / 50, 1.0) for value in range(51)]
    assert drawn[0] == ""
    assert all(drawn[1:])
    assert max(map(len, drawn)) == len(drawn[-1]) == BAR
    assert [len(bar) for bar in drawn] == sorted(len(bar) for bar in drawn)
    assert bar(1.0, 0.0) == "▏"  # a request that cost nothing gives no scale


def test_numbers_are_short_to_read() -> None:
    assert [short(number) for number in (0, 999, 1_000, 45_210, 999_949, 999_999, 2_500_000)] == [
        "0",
        "999",
        "1.0k",
        "45.2k",
        "999.9k",
        "1.0M",
        "2.5M",
    ]
    assert [dollars(usd) for usd in (0, 0.0004, 0.25, 0.123456, 1, 1234.5)] == [
        "$0.00",
        "$0.0004",
        "$0.25",
        "$0.1235",
        "$1.00",
        "$1,234.50",
    ]


# --- the worker ---------------------------------------------------------------------------------------------


def fill(store: sqlite3.Connection, now: int) -> None:
    """Five items: one deferred, two that fell back, one skipped, one that waits for its turn to end."""
    with transaction(store):
        for _ in range(5):
            queue.put(store, "abcdef01-2345", "Bash", "{}", "{}", now, None)
        queue.defer(store, [1], "the network is away", now)
        queue.done(store, [2, 3], "local", now, "the daily cap is reached")
        queue.skip(store, [4], "the reply could not be used", now)


def test_the_status_says_what_waits_and_what_went_wrong(
    run: Run, store: sqlite3.Connection, now: int
) -> None:
    ran = run("worker", "--status")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "no worker runs (hooks start one when there is work)",
        "nothing waits to be observed",
    ]
    fill(store, now)
    told = run("worker", "--status").out
    assert re.search(r"^2 items wait since \d{4}-\d\d-\d\d \d\d:\d\d, none is due yet$", told, re.MULTILINE)
    assert "1 item skipped: the reply could not be used" in told
    as_json = run("worker", "--status", "--json").json
    assert as_json == {
        "running": False,
        "pid": None,
        "synthesizer": "local",
        "waiting": 2,
        "since": now,
        "due": 0,
        "skipped": [{"reason": "the reply could not be used", "items": 1}],
        "troubles": [
            {"state": "waiting", "reason": "the network is away", "items": 1, "at": now},
            {"state": "local", "reason": "the daily cap is reached", "items": 2, "at": now},
        ],
        "retention": {"days": 0, "last": None},
    }
    with transaction(store):
        queue.put(store, "abcdef01-2345", queue.FINALIZE, "{}", "{}", now, None)
        store.execute("UPDATE observation_queue SET not_before = 0")
    assert "3 items wait since" in run("worker", "--status").out
    assert "1 session is due now" in run("worker", "--status").out


def test_the_status_says_that_nobody_will_observe_anything(
    run: Run, store: sqlite3.Connection, now: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, now)
    monkeypatch.setenv("BACKSTORY_SYNTHESIZER", "off")
    told = run("worker", "--status").out.splitlines()
    off = "the synthesizer is off, nothing is observed; `backstory config synthesizer auto` turns it on"
    assert told[:2] == [off, "no worker runs"]
    assert told[2].startswith("2 items wait since")


HOLD = """
import fcntl, os, sys
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(lock, fcntl.LOCK_EX)
os.write(lock, f"{os.getpid()}\\n".encode())
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def other_worker(data: Path, store: sqlite3.Connection) -> Iterator[int]:
    """A process that holds the lock as a worker does."""
    command = [sys.executable, "-c", HOLD, paths.worker_lock(str(data))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as held:
        assert held.stdout
        assert held.stdout.readline() == "held\n"
        yield held.pid
        assert held.stdin
        held.stdin.close()


def test_a_worker_that_runs_is_named_and_no_second_one_starts(run: Run, other_worker: int) -> None:
    assert run("worker", "--status").out.startswith(f"a worker runs, process {other_worker}")
    told = run("worker", "--status", "--json").json
    assert (told["running"], told["pid"]) == (True, other_worker)
    ran = run("worker")
    assert (ran.code, ran.out) == (1, "")
    assert f"another worker is at it, process {other_worker}" in ran.err


def test_a_pid_that_a_killed_worker_left_behind_is_no_worker(data: Path, store: sqlite3.Connection) -> None:
    lock = Path(paths.worker_lock(str(data)))
    assert worker_status.running(str(data)) is None
    with subprocess.Popen(["true"]) as dead:
        dead.wait()
    lock.write_text(f"{dead.pid}\n")
    assert worker_status.running(str(data)) is None
    lock.write_text(f"{os.getpid()}\n")  # the number went to somebody else
    assert worker_status.running(str(data)) is None
    for strange in ("", "x", "9" * 20):
        lock.write_text(strange)
        assert worker_status.running(str(data)) is None


def test_asking_whether_one_runs_takes_no_lock_from_one_that_starts(
    data: Path, store: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two workers the file is empty, and that is when one starts."""
    Path(paths.worker_lock(str(data))).write_text("")
    monkeypatch.setattr(fcntl, "flock", lambda *_: pytest.fail("the lock was tried"))
    assert worker_status.running(str(data)) is None


def test_a_worker_within_a_worker_does_nothing(run: Run, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKSTORY_WORKER", "1")
    assert run("worker") == Ran(0, "", "")
    assert not data.exists()


def test_a_worker_that_could_not_work_as_set_does_not_begin(
    run: Run, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in (("BACKSTORY_SYNTHESIZER", "psychic"), ("BACKSTORY_SPEND_DAILY_USD", "much")):
        with monkeypatch.context() as patched:
            patched.setenv(variable, value)
            ran = run("worker")
        assert (ran.code, ran.out, value in ran.err) == (2, "", True)
    assert not data.exists()


def test_a_worker_ended_by_its_user_says_what_it_did_and_leaves_no_pid(
    store: sqlite3.Connection, data: Path, project: str, now: int
) -> None:
    """Ctrl-C, while it waits for more."""
    with transaction(store):
        queue.put(store, "abcdef01-2345", queue.FINALIZE, "{}", "{}", now, None)
    env = os.environ | {"BACKSTORY_WORKER_IDLE_SECONDS": "60"}
    command = [BACKSTORY, "worker", "--json"]
    with subprocess.Popen(command, cwd=project, env=env, stdout=subprocess.PIPE, text=True) as started:
        deadline = time.monotonic() + 30
        while queue.waiting(store)[0] and time.monotonic() < deadline:
            time.sleep(0.05)
        assert worker_status.running(str(data)) == started.pid
        started.send_signal(signal.SIGINT)
        said, _ = started.communicate(timeout=30)
    assert (started.returncode, json.loads(said)["observed"]) == (0, {"local": 1})
    assert worker_status.running(str(data)) is None
    assert Path(paths.worker_lock(str(data))).read_bytes() == b""


@pytest.mark.slow
def test_a_worker_in_the_foreground_observes_what_is_due_and_says_so(
    run: Run, store: sqlite3.Connection, project: str, now: int
) -> None:
    def queue_a_turn() -> None:
        command = {"command": "pytest tests/test_door.py"}
        with transaction(store):
            queue.put(
                store, "abcdef01-2345", "Bash", json.dumps(command), '{"output": "ok"}', now, None, "shell"
            )
            queue.put(store, "abcdef01-2345", queue.FINALIZE, "{}", "{}", now, None)

    queue_a_turn()
    ran = run("worker")
    assert (ran.code, ran.out, ran.err) == (0, "", "")  # nobody is there to read it
    assert queue.waiting(store)[0] == 0
    queue_a_turn()
    told = run("worker", "--json").json
    assert (told["observed"], told["usd"], told["waiting"]) == ({"local": 2}, 0, 0)
    queue_a_turn()
    seen = in_a_terminal("worker", project, 80)
    assert "2 items observed by local" in seen
    assert "there was nothing to do" in in_a_terminal("worker", project, 80)


# --- settings -----------------------------------------------------------------------------------------------


@pytest.fixture
def file(data: Path) -> Path:
    return data / "config.toml"


def test_every_setting_is_listed_with_its_value_and_where_that_comes_from(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(ABOUT) == {*config.DEFAULTS, *config.NUMBERS}
    monkeypatch.setenv("BACKSTORY_EMBEDDER", "off")
    run("config", "log.level", "debug")
    told = {one["name"]: one for one in run("config", "--json").json}
    assert list(told) == sorted(ABOUT)
    assert (told["log.level"]["value"], told["log.level"]["source"]) == ("debug", "config.toml")
    assert (told["embedder"]["value"], told["embedder"]["source"]) == ("off", "environment")
    assert (told["brief.tokens"]["value"], told["brief.tokens"]["source"]) == (1500, "default")
    assert told["claude.model"]["variable"] == "BACKSTORY_CLAUDE_MODEL"
    listed = run("config").out.splitlines()
    assert [line.split()[0] for line in listed] == sorted(ABOUT)
    (line,) = [line for line in listed if line.startswith("log.level")]
    assert line.split()[1:3] == ["debug", "config.toml"]
    assert line.endswith(ABOUT["log.level"])


@pytest.mark.slow
@pytest.mark.parametrize("columns", [50, 80, 200])
def test_a_terminal_of_any_width_shows_what_a_setting_does(columns: int, project: str) -> None:
    lines = uncoloured(in_a_terminal("config", project, columns))
    assert [line for line in lines if len(line) > columns] == []
    assert " ".join(" ".join(lines).split()).count("who observes: auto (the model, else rules)") == 1


def test_one_setting_is_told_alone_for_scripts(run: Run) -> None:
    assert run("config", "spend.daily_usd") == Ran(0, "1\n", "")
    assert run("config", "claude.model") == Ran(0, "haiku\n", "")
    assert run("config", "spend.daily_usd", "--json").json["value"] == 1


@pytest.mark.parametrize(
    ("name", "given", "stored"),
    [
        ("log.level", "debug", "debug"),
        ("synthesizer", "OFF", "off"),
        ("spend.daily_usd", "2.50", 2.5),
        ("spend.daily_usd", "0", 0),
        ("brief.tokens", "800", 800),
        ("claude.model", "claude-haiku-4-5@20251001", "claude-haiku-4-5@20251001"),
        ("docs.folders", '~/docs:/srv/a "quoted" place\\', '~/docs:/srv/a "quoted" place\\'),
        ("embedder", "ollama:nomic-embed-text", "ollama:nomic-embed-text"),
        ("embedding.url", "http://127.0.0.1:11434", "http://127.0.0.1:11434"),
        ("embedding.url", "", ""),
    ],
)
def test_a_setting_is_written_and_read_back(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch, name: str, given: str, stored: str | float
) -> None:
    for variable in ("BACKSTORY_SYNTHESIZER", "BACKSTORY_WORKER_IDLE_SECONDS"):
        monkeypatch.delenv(variable)  # what the suite sets for everybody wins over the file
    ran = run("config", name, given)
    assert (ran.code, ran.err) == (0, "")
    read: Any = tomllib.loads(file.read_text())
    for part in name.split("."):
        read = read[part]
    assert (read, type(read)) == (stored, type(stored))
    assert run("config", name, "--json").json["value"] == stored
    assert run("config", name, "--json").json["source"] == "config.toml"


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("log.level", "loud", "one of debug, info, warning, error"),
        ("synthesizer", "psychic", "one of auto, claude, local, off"),
        ("spend.daily_usd", "much", "a number like 1, 0 or more"),
        ("spend.daily_usd", "nan", "a number like 1, 0 or more"),
        ("spend.daily_usd", "-1", "spend.daily_usd is '-1'; it should be a number like 1, 0 or more"),
        ("--jsn", "x", "there is no setting '--jsn'"),
        ("worker.idle_seconds", "inf", "a number like 30, 0 or more"),
        ("claude.model", "", "a model's name, like haiku"),
        ("claude.model", "the small one", "a model's name, like haiku"),
        ("docs.folders", "docs", "give whole paths"),
        ("embedder", "crystal-ball", "it is one of static, off"),
        ("embedder", "onnx:../model", "give its whole path"),
        ("embedding.url", "ftp://example.org", "embedding.url should look like"),
        ("log.levl", "debug", "did you mean log.level?"),
        ("colour", "red", "there are brief.tokens, capture.ignore"),
        ("log", "debug", "there is no setting 'log'"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_is_allowed(
    run: Run, file: Path, name: str, given: str, says: str
) -> None:
    ran = run("config", name, given)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err
    assert not file.exists()


def test_the_file_is_the_users_alone_and_stays_what_it_was(run: Run, file: Path, data: Path) -> None:
    run("config", "log.level", "debug")
    assert (stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(data.stat().st_mode)) == (0o600, 0o700)
    file.chmod(0o640)
    elsewhere = data.parent / "dotfiles.toml"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    run("config", "log.level", "error")
    assert file.is_symlink()
    assert tomllib.loads(elsewhere.read_text()) == {"log": {"level": "error"}}
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o640
    assert sorted(os.listdir(data)) == ["config.toml"]


EDITS = [
    # name, value, before, after
    ("log.level", "debug", "", '[log]\nlevel = "debug"\n'),
    ("synthesizer", "off", "", 'synthesizer = "off"\n'),
    ("synthesizer", "off", "# mine", '# mine\nsynthesizer = "off"\n'),
    ("log.level", "debug", '[log]\nlevel = "info" # loud\n', '[log]\nlevel = "debug" # loud\n'),
    ("log.level", "debug", "[log]\nlevel='a # b'#c\n", '[log]\nlevel="debug"#c\n'),
    ("log.level", "debug", '  log . level  =  "info"\n', '  log . level  =  "debug"\n'),
    ("log.level", "debug", '["log"]\n"level" = "info"', '["log"]\n"level" = "debug"'),
    ("spend.daily_usd", 2, "[spend]\r\ndaily_usd = 1.0\r\n", "[spend]\r\ndaily_usd = 2\r\n"),
    ("spend.daily_usd", 0.5, "[spend]\r\n# cap\r\n", "[spend]\r\ndaily_usd = 0.5\r\n# cap\r\n"),
    (
        "log.level",
        "debug",
        "[other]\nlevel = 1\n[log] # here\n[last]\nlevel = 2\n",
        '[other]\nlevel = 1\n[log] # here\nlevel = "debug"\n[last]\nlevel = 2\n',
    ),
    (
        "embedder",
        "off",
        'a = 1\n\n# what the log tells\n[log]\nembedder = "no"\n',
        'a = 1\n\nembedder = "off"\n\n# what the log tells\n[log]\nembedder = "no"\n',
    ),
    (
        "log.level",
        "debug",
        'a = """\n[log]\nlevel = "x"\n"""\n[log]\nlevel = "y"\n',
        'a = """\n[log]\nlevel = "x"\n"""\n[log]\nlevel = "debug"\n',
    ),
    (
        "synthesizer",
        "off",
        'a = [\n[1],\n]\n\n[log]\nlevel = "y"\n',
        'a = [\n[1],\n]\n\nsynthesizer = "off"\n\n[log]\nlevel = "y"\n',
    ),
]


@pytest.mark.parametrize(("name", "value", "before", "after"), EDITS)
def test_a_change_touches_one_line_and_nothing_else(
    name: str, value: str | float, before: str, after: str
) -> None:
    assert with_setting(before, name, value) == after
    assert with_setting(after, name, value) == after


@pytest.mark.parametrize(
    "value", ["", 'a "b" \\ c', "tab\there", "line\nbreak", "é 漢 \u2028 \x85 \x7f \x01", "# no comment", "]"]
)
def test_any_text_can_be_written_and_replaced(value: str) -> None:
    text: str | None = "# mine\n[log]\nother = 1\n"
    for given in (value, "plain", value):
        text = with_setting(text or "", "log.level", given)
        assert text
        assert tomllib.loads(text) == {"log": {"other": 1, "level": given}}
        assert text.startswith("# mine\n[log]\n")


@pytest.mark.parametrize(
    "before",
    ['log = { level = "info" }\n', '[log]\nlevel = """\ninfo"""\n', 'log = "info"\n', "[[log]]\nlevel = 1\n"],
)
def test_what_cannot_be_edited_safely_is_left_alone(run: Run, file: Path, before: str) -> None:
    file.parent.mkdir(parents=True)
    file.write_text(before)
    ran = run("config", "log.level", "debug")
    assert (ran.code, ran.out) == (2, "")
    assert "change it there" in ran.err
    assert file.read_text() == before


@pytest.mark.parametrize("before", [b"[log\n", b"level = caf\xe9\n"])
def test_a_file_that_is_not_toml_is_left_alone(run: Run, file: Path, before: bytes) -> None:
    file.parent.mkdir(parents=True)
    file.write_bytes(before)
    for args in (["config"], ["config", "log.level"], ["config", "log.level", "debug"]):
        ran = run(*args)
        assert (ran.code, "correct it or move it away" in ran.err) == (2, True), args
    assert file.read_bytes() == before


def test_a_bad_value_in_the_file_is_shown_with_what_is_wrong(run: Run, file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.write_text('[log]\nlevel = "loud"\nlevell = 1\n[spend]\ndaily_usd = "much"\n')
    ran = run("config")
    assert ran.code == 0
    assert "log.level is 'loud'; it is one of debug" in ran.out
    assert "spend.daily_usd is 'much'" in ran.out
    assert "log.levell, which nobody reads" in ran.err
    told = {one["name"]: one for one in run("config", "--json").json}
    assert (told["log.level"]["value"], told["log.level"]["problem"] is None) == ("loud", False)
    asked = run("config", "log.level")
    assert (asked.code, asked.out) == (2, "loud\n")


def test_a_key_is_never_shown(run: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = run("config", "embedding.key", "-", stdin="sk-walrus-12345\n")
    assert ran == Ran(0, "embedding.key = ********\n", "")
    assert 'key = "sk-walrus-12345"' in file.read_text()
    said = [run("config"), run("config", "--json"), run("config", "embedding.key")]
    monkeypatch.setenv("BACKSTORY_EMBEDDING_KEY", "sk-walrus with a space")
    said += [run("config"), run("config", "embedding.key", "--json"), run("config", "embedding.key", "x y")]
    for one in said:
        assert "walrus" not in one.out + one.err
    assert said[2].out == "********\n"


def test_a_variable_that_wins_over_the_file_is_named(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_LOG_LEVEL", "error")
    ran = run("config", "log.level", "debug")
    assert (ran.code, ran.out) == (0, "log.level = debug\n")
    assert "BACKSTORY_LOG_LEVEL is set in your environment and wins" in ran.err
    assert tomllib.loads(file.read_text()) == {"log": {"level": "debug"}}


def test_the_docs_name_every_setting_and_its_variable() -> None:
    text = (REPOSITORY / "docs" / "reference" / "settings.md").read_text()
    for name in ABOUT:
        assert f"| `{name}` | `BACKSTORY_{name.upper().replace('.', '_')}` |" in text
