"""The command line: what doctor finds."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from backstory import paths
from backstory.model import Spent
from backstory.store import queue, spend
from backstory.store.file.connection import connect, transaction
from backstory.surfaces.cli import doctor
from tests.conftest import HOOK, Run
from tests.helpers.commands import hook, tool_use
from tests.helpers.embedder import loaded_embedder  # noqa: F401  for all tests here

pytestmark = pytest.mark.slow


@pytest.fixture
def project(project: str) -> Path:
    return Path(project)


def test_doctor_finds_everything_in_order_but_the_missing_client(project: Path, data: Path, run: Run) -> None:
    done = run("doctor", "--json")
    checks = {check["name"]: check for check in json.loads(done.out)}
    names = "python,data folder,disk,settings,canary,database,backup,retention,search,spool"
    ours = [*names.split(","), "capture", "worker", "synthesis"]
    assert list(checks) == [*ours, "Claude Code", "plugin"]
    good = [name for name, check in checks.items() if check["level"] == "ok"]
    assert good == ours
    assert "not on PATH" in checks["Claude Code"]["finding"]
    assert done.code == 1


def test_the_canary_leaves_nothing_behind(project: Path, run: Run) -> None:
    run("add", "stays")
    run("doctor")
    assert run("search", "canary echo").code == 1
    assert run("search", "stays").code == 0


def test_the_canary_does_not_take_a_real_project_with_it(
    project: Path, data: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    """The data folder may lie inside a repository; the memories of that repository are not the canary's."""
    monkeypatch.setenv("BACKSTORY_HOME", str(project / "data"))
    subprocess.run(["git", "init", "-q"], check=True)
    run("add", "precious")
    run("doctor")
    assert run("search", "precious").code == 0


def test_the_canary_does_not_take_the_documents_of_a_project_with_it(
    project: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_HOME", str(project / "data"))
    subprocess.run(["git", "init", "-q"], check=True)
    (project / "guide.md").write_text("# Guide\n\nfeed the walrus")
    run("docs", "ingest", "guide.md")
    run("doctor")
    assert len(run("docs", "list", "--json").json) == 1


@pytest.mark.parametrize("inside", [False, True], ids=["in a terminal", "in a session"])
def test_the_canary_arrives_though_the_project_here_is_paused(
    project: Path, run: Run, monkeypatch: pytest.MonkeyPatch, inside: bool
) -> None:
    if inside:
        monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(project))
    run("pause")
    checks = {check["name"]: check for check in run("doctor", "--json").json}
    assert checks["canary"]["level"] == "ok"
    assert "paused" in checks["capture"]["finding"]


def test_the_canary_is_not_tried_where_the_data_folder_is_in_a_paused_project(
    project: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_HOME", str(project / "data"))
    run("pause")
    checks = {check["name"]: check for check in run("doctor", "--json").json}
    assert checks["canary"]["level"] == "warn"
    assert checks["canary"]["finding"].startswith("not tried: the data folder lies in a project that is")
    assert [name for name, check in checks.items() if check["level"] == "bad"] == ["Claude Code"]


def test_doctor_says_what_to_do_about_a_payload_that_failed(project: Path, data: Path, run: Run) -> None:
    subprocess.run(["sh", str(HOOK)], input=b"{broken", check=True)
    line = next(line for line in run("doctor").out.splitlines() if "spool  " in line)
    assert "1 payload could not be stored; the last: not JSON" in line
    assert f"look at {data}/spool/failed" in line


def test_doctor_sees_a_hook_that_cannot_write(project: Path, data: Path, run: Run) -> None:
    data.mkdir(parents=True)
    (data / "spool").write_text("a file where the folder should be")
    done = run("doctor", "--json")
    canary = next(check for check in json.loads(done.out) if check["name"] == "canary")
    assert canary["level"] == "bad"
    assert done.code == 1


def test_doctor_names_a_setting_that_nobody_reads(project: Path, data: Path, run: Run) -> None:
    data.mkdir(parents=True)
    (data / "config.toml").write_text('[log]\nlevell = "debug"\n')
    line = next(line for line in run("doctor").out.splitlines() if "settings" in line)
    assert "log.levell" in line


def test_doctor_reports_a_bad_setting(project: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setenv("BACKSTORY_LOG_LEVEL", "loud")
    line = next(line for line in run("doctor").out.splitlines() if "settings" in line)
    assert "one of debug, info, warning, error" in line


def test_doctor_names_every_bad_setting_once_wherever_it_comes_from(
    project: Path, data: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.delenv("BACKSTORY_SYNTHESIZER")
    monkeypatch.setenv("BACKSTORY_BRIEF_TOKENS", "x")
    data.mkdir(parents=True)
    (data / "config.toml").write_text(
        'synthesizer = "psychic"\nembedder = "crystal-ball"\n'
        '[log]\nlevel = "loud"\nlevell = 1\n[spend]\ndaily_usd = "much"\n'
    )
    told = run("doctor").out
    (line,) = [line for line in told.splitlines() if line.startswith("✗ settings")]
    assert "brief.tokens is 'x'; it should be a number like 1500, 0 or more (it comes from BACKSTORY_" in line
    for bad in ("'psychic'", "'crystal-ball'", "'loud'", "'much'", "log.levell"):
        assert (bad, told.count(bad), bad in line) == (bad, 1, True)
    (data / "config.toml").write_text("[log\n")
    assert run("doctor").out.count("correct it or move it away") == 1


def check_of(name: str) -> tuple[str, str]:
    """What doctor says about one part: (level, finding → advice)."""
    folder = paths.data_folder(os.environ)
    assert folder
    (found,) = [check for check in doctor.examine(folder, os.environ) if check.name == name]
    return found.level, f"{found.finding} → {found.advice}"


@pytest.fixture
def queued(
    project: Path, data: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> Iterator[sqlite3.Connection]:
    """A session s1 with four items in the queue, two days old."""
    hook(tool_use(project, "echo 1"))
    monkeypatch.chdir(project)
    run("sessions")
    db = connect(str(data / "backstory.db"))
    with transaction(db):
        db.execute("DELETE FROM observation_queue")
        for _ in range(4):
            queue.put(db, "s1", "Bash", "{}", "{}", int(time.time() * 1000) - 2 * 86_400_000, None)
    yield db
    db.close()


def ids_in(db: sqlite3.Connection) -> list[int]:
    return [row["id"] for row in db.execute("SELECT id FROM observation_queue ORDER BY id")]


def test_doctor_warns_when_something_due_has_waited_for_over_a_day(queued: sqlite3.Connection) -> None:
    level, told = check_of("worker")
    assert (level, "4 items wait since" in told, "none is due yet" in told) == ("ok", True, True)
    with transaction(queued):
        queue.put(queued, "s1", queue.FINALIZE, "{}", "{}", int(time.time() * 1000), None)
    level, told = check_of("worker")
    assert (level, "5 items wait since" in told) == ("warn", True)
    assert told.endswith("1 session is due now, after more than a day → backstory worker")


def test_doctor_warns_when_the_model_has_been_away_for_over_a_day(queued: sqlite3.Connection) -> None:
    with transaction(queued):
        queue.defer(queued, ids_in(queued), "no network; it is asked again later", int(time.time() * 1000))
    level, told = check_of("worker")
    assert (level, "after more than a day: no network" in told) == ("warn", True)


def test_doctor_lets_items_wait_where_synthesis_is_off(
    queued: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_SYNTHESIZER", "off")
    with transaction(queued):
        queue.put(queued, "s1", queue.FINALIZE, "{}", "{}", int(time.time() * 1000), None)
    level, told = check_of("worker")
    assert (level, "synthesis is off" in told) == ("ok", True)
    assert check_of("synthesis") == ("ok", "synthesizer off: nothing is observed → ")


def test_doctor_names_what_was_skipped_and_why(queued: sqlite3.Connection) -> None:
    now = int(time.time() * 1000)
    with transaction(queued):
        first, *others = ids_in(queued)
        queue.skip(queued, others, "the reply could not be used", now)
        queue.done(queued, [first], "local", now)
    level, told = check_of("worker")
    assert (level, "3 items skipped, 3 because: the reply could not be used" in told) == ("warn", True)


def test_doctor_says_who_observes_and_what_was_spent(
    queued: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert check_of("synthesis") == ("ok", "synthesizer local: by rules, at no cost → ")
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("BACKSTORY_SYNTHESIZER", "claude")
    now = int(time.time() * 1000)
    level, told = check_of("synthesis")
    assert (level, told) == (
        "ok",
        f"synthesizer claude: claude, model haiku by {program}; $0.00 of $1.00 spent today → ",
    )
    with transaction(queued):
        queue.done(queued, ids_in(queued)[:1], "local", now, "there is no model 'walrus'; set claude.model")
    level, told = check_of("synthesis")
    assert level == "warn"
    assert "1 item were observed by local" not in told
    clock = time.strftime("%H:%M", time.localtime(now / 1000))
    reason = "there is no model 'walrus'; set claude.model"
    assert f"1 item was observed by local, last today {clock}: {reason}" in told
    with transaction(queued):
        spend.add(queued, "s1", Spent("claude-haiku", 1, 1, 1, 1, 1, 1.25), now)
    level, told = check_of("synthesis")
    assert (level, "$1.25 of $1.00 spent today, the cap is reached" in told) == ("warn", True)
    assert told.endswith("rules observe until midnight; `backstory config spend.daily_usd 2` raises it")
    monkeypatch.setenv("BACKSTORY_SPEND_DAILY_USD", "0")
    level, told = check_of("synthesis")
    assert (level, "midnight" in told) == ("warn", False)
    assert "with spend.daily_usd 0 the model is never asked" in told


def test_doctor_tells_no_trouble_that_is_over_for_more_than_a_day(
    queued: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "claude").write_text("#!/bin/sh\n")
    (tmp_path / "claude").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("BACKSTORY_SYNTHESIZER", "claude")
    now, (first, second, *waiting) = int(time.time() * 1000), ids_in(queued)
    with transaction(queued):
        queue.done(queued, [first], "local", now - 25 * 3_600_000, "no login")
    assert check_of("synthesis")[0] == "ok"
    with transaction(queued):
        queue.done(queued, [second], "local", now - 3_600_000, "no network")
    level, told = check_of("synthesis")
    assert (level, "no network" in told, "no login" in told) == ("warn", True, False)
    with transaction(queued):  # they came two days ago, but they wait still
        queue.defer(queued, waiting, "the model is busy", now)
    assert "2 items wait since 20" in check_of("synthesis")[1]


def test_doctor_tells_a_missing_model_from_one_that_nobody_needs(
    project: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backstory.synthesis.claude.find_cli", lambda env: None)
    monkeypatch.setenv("BACKSTORY_SYNTHESIZER", "auto")
    level, told = check_of("synthesis")
    assert (level, "by rules, because there is no claude on PATH" in told) == ("ok", True)
    monkeypatch.setenv("BACKSTORY_SYNTHESIZER", "claude")
    level, told = check_of("synthesis")
    assert (level, "install Claude Code" in told) == ("warn", True)


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("BACKSTORY_SYNTHESIZER", "psychic", "one of auto, claude, local, off"),
        ("BACKSTORY_SPEND_DAILY_USD", "much", "a number like 1"),
    ],
)
def test_doctor_reports_settings_of_synthesis_that_make_no_sense(
    project: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, says: str
) -> None:
    monkeypatch.setenv(variable, value)
    level, told = check_of("settings")
    assert (level, says in told) == ("bad", True)
