"""The command line: what doctor finds."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from backstory import paths
from backstory.surfaces.cli import doctor
from tests.conftest import HOOK, Run
from tests.helpers.embedder import loaded_embedder  # noqa: F401  for all tests here

pytestmark = pytest.mark.slow


@pytest.fixture
def project(project: str) -> Path:
    return Path(project)


def test_doctor_finds_everything_in_order_but_the_missing_client(project: Path, data: Path, run: Run) -> None:
    done = run("doctor", "--json")
    checks = {check["name"]: check for check in json.loads(done.out)}
    names = "python,data folder,disk,settings,canary,database,backup,search,spool"
    ours = [*names.split(","), "capture"]
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


def test_doctor_says_that_an_erasing_was_not_finished(project: Path, data: Path, run: Run) -> None:
    run("add", "stays")
    (data / "erasing").touch()
    level, told = check_of("database")
    assert (level, told.endswith("→ backstory erase")) == ("warn", True)


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
