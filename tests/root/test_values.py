"""The root files: the log, the settings, ids."""

from __future__ import annotations

import multiprocessing
import os
import stat
from pathlib import Path

import pytest

from backstory import config, ids, log
from backstory.errors import BadInput


def test_a_log_line_is_one_line_with_a_level(data: Path) -> None:
    log.write("warning", "first\nsecond\tthird")
    lines = (data / "logs" / "backstory.log").read_text().splitlines()
    assert len(lines) == 1
    assert "WARNING" in lines[0]
    assert lines[0].endswith("first second third")
    assert stat.S_IMODE((data / "logs" / "backstory.log").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("level", "written"), [("debug", 3), ("info", 2), ("warning", 1), ("error", 0), ("?", 2)]
)
def test_the_level_decides_what_is_written(
    level: str, written: int, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_LOG_LEVEL", level)
    for each in ("debug", "info", "warning"):
        log.write(each, "x")
    path = data / "logs" / "backstory.log"
    assert len(path.read_text().splitlines() if path.exists() else []) == written


def test_the_log_rotates_and_keeps_three(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "ROTATE_BYTES", 2_000)
    for number in range(400):
        log.write("info", f"line {number} " + "x" * 50)
    names = sorted(os.listdir(data / "logs"))
    assert names == [
        "backstory.log",
        "backstory.log.1",
        "backstory.log.2",
        "backstory.log.3",
        "backstory.log.lock",
    ]
    assert all((data / "logs" / name).stat().st_size <= 2_200 for name in names)


def _write_many(number: int) -> None:
    for line in range(300):
        log.write("info", f"process {number} line {line} end")


def test_several_processes_do_not_mix_their_lines(data: Path) -> None:
    with multiprocessing.get_context("fork").Pool(4) as pool:
        pool.map(_write_many, range(4))
    lines = (data / "logs" / "backstory.log").read_text().splitlines()
    assert len(lines) == 1200
    assert all(line.endswith(" end") for line in lines)


def test_a_crash_is_one_line_that_says_where(data: Path) -> None:
    try:
        int("x")
    except ValueError:
        log.crash("test")
    line = (data / "logs" / "backstory.log").read_text()
    assert "test: ValueError: invalid literal" in line
    assert "test_values.py:" in line


def test_a_log_that_cannot_be_written_is_no_failure(data: Path) -> None:
    data.parent.mkdir(parents=True)
    data.write_text("a file where the folder should be")
    log.write("error", "x")


def test_the_environment_wins_over_the_file_and_the_file_over_the_default(data: Path) -> None:
    env = {"BACKSTORY_HOME": str(data)}
    assert config.setting("log.level", env) == "info"
    data.mkdir(parents=True)
    (data / "config.toml").write_text('[log]\nlevel = "debug"\n')
    assert config.setting("log.level", env) == "debug"
    assert config.setting("log.level", env | {"BACKSTORY_LOG_LEVEL": "error"}) == "error"


@pytest.mark.parametrize(
    ("text", "says"),
    [("[log", "cannot be read"), ("[log]\nlevel = 3", "should be a string"), ("log = 1", "info")],
)
def test_a_bad_settings_file_is_an_error_that_names_it(text: str, says: str, data: Path) -> None:
    data.mkdir(parents=True)
    (data / "config.toml").write_text(text)
    env = {"BACKSTORY_HOME": str(data)}
    if says == "info":
        assert config.setting("log.level", env) == "info"
        return
    with pytest.raises(BadInput, match=says):
        config.setting("log.level", env)


def test_ids_are_short_and_do_not_repeat() -> None:
    made = {ids.new_id() for _ in range(10_000)}
    assert len(made) == 10_000
    assert all(len(each) == 16 and each.startswith("mem_") for each in made)
