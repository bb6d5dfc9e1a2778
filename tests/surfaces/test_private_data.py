"""The data folder is for its owner alone, whatever the umask, and no file in it is written through a link."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backstory import locks, log, paths
from backstory.claude_md.write import backups
from backstory.docmem import outbox
from backstory.errors import BackstoryError
from backstory.store.file import backup, recovery
from backstory.surfaces import worker
from backstory.surfaces.cli import doctor, install
from tests.conftest import Run
from tests.helpers.chaos import NOW, drain, event, failures, log_text, put, run_hook

SHELF = "backups/claude-md/a-CLAUDE.md-1"


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def open_to_others(data: Path) -> list[str]:
    return [str(path) for path in (data, *data.rglob("*")) if not path.is_symlink() and mode(path) & 0o077]


# --- folders ------------------------------------------------------------------------------------------------


def test_whatever_the_umask_all_that_commands_write_is_for_its_owner_alone(
    data: Path, project: str, run: Run, open_umask: None
) -> None:
    Path(project, "go.mod").write_text("module example.org/walrus\n\ngo 1.22\n")
    Path(project, "CLAUDE.md").write_text("# Mine\n")
    os.utime(Path(project, "CLAUDE.md"), (1, 1))
    log.write("warning", "first of all")
    assert run("add", "a walrus").code == 0
    assert run("config", "log.level", "debug").code == 0
    assert run("init", "--yes").code == 0
    assert run("backup", "now").code == 0
    run_hook(b"no payload")
    drain(data, now=NOW)
    install.lay_out(str(data / "plugin"))

    assert len(failures(data)) == 1
    assert list((data / "backups" / "claude-md").rglob("*.md"))
    laid_out = str(data / "plugin")  # what was installed for everybody may be read by everybody
    assert [path for path in open_to_others(data) if not path.startswith(laid_out)] == []
    assert {mode(path) for path in (data, *data.parents[:2])} == {0o700}


@pytest.mark.parametrize("opened", [0o755, 0o750, 0o777, 0o711])
def test_a_data_folder_that_others_can_read_is_closed_when_the_store_is_opened(
    opened: int, data: Path, run: Run
) -> None:
    data.mkdir(parents=True)
    data.chmod(opened)
    run("add", "a walrus")
    assert mode(data) == 0o700


@pytest.mark.slow
def test_a_data_folder_that_others_can_read_is_closed_by_a_hook(data: Path) -> None:
    data.mkdir(parents=True)
    data.chmod(0o755)
    assert run_hook(event("SessionEnd", reason="other"), "end").silent
    assert mode(data) == 0o700


def test_a_folder_that_is_not_for_us_alone_stays_open_and_doctor_and_the_log_say_so(
    home: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)  # as /tmp
    home.chmod(0o755)
    for folder, kept in ((shared, 0o1777), (home, 0o755)):
        monkeypatch.setenv("BACKSTORY_HOME", str(folder))
        worker.run(str(folder))
        check = doctor._data_folder(str(folder))
        assert (check.level, mode(folder)) == ("warn", kept)
        assert check.finding == f"{folder} is open to others"
        assert check.advice.startswith("set BACKSTORY_HOME to a folder for backstory alone")
        assert log_text(folder).count(f"{folder} is open to others") == 1


# --- links --------------------------------------------------------------------------------------------------


def refuse(data: Path) -> None:
    put(data, b"no payload", name="bad")
    drain(data, now=NOW)
    assert failures(data)["bad"].startswith("not JSON")


def work(data: Path) -> None:
    worker.run(str(data))


def fail_to_back_up(data: Path) -> None:
    (data / "backups").write_text("in the way")
    backup.make(str(data), NOW)


def rotate(data: Path) -> None:
    log._rotate(paths.log_file(str(data)))


WRITES: dict[str, Callable[[Path], object]] = {
    "spool/failed/bad.reason": refuse,
    "logs/backstory.log": lambda data: log.write("error", "a line"),
    "logs/backstory.log.lock": rotate,
    "worker.lock": work,
    "backup.failed": fail_to_back_up,
    "recovered.txt": lambda data: recovery._note(str(data), NOW, "a sentence"),
    f"{SHELF}/making": lambda data: backups.back_up(str(data / SHELF), b"text", bytes, NOW),
    f"{SHELF}/written": lambda data: backups.note(str(data / SHELF), "/x", b"text"),
    "outbox/.session": lambda data: outbox.put(str(data), "session", "text"),
    "store.lock": lambda data: locks.take(str(data / "store.lock"), ""),
    "plugin/interpreter.new": lambda data: install.lay_out(str(data / "plugin")),
    "plugin/.claude-plugin/plugin.json.new": lambda data: install.lay_out(str(data / "plugin")),
}


@pytest.mark.parametrize("is_there", [True, False], ids=["a file", "no file"])
@pytest.mark.parametrize("name", WRITES)
def test_no_file_is_written_through_a_link(name: str, is_there: bool, data: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    if is_there:
        elsewhere.write_text("mine")
        os.utime(elsewhere, (1, 1))
    (data / name).parent.mkdir(parents=True)
    (data / name).symlink_to(elsewhere)
    try:
        WRITES[name](data)
    except (BackstoryError, OSError):
        pass
    assert elsewhere.exists() is is_there
    assert not is_there or (elsewhere.read_text(), elsewhere.stat().st_mtime) == ("mine", 1)


def test_the_worker_command_says_which_link_to_remove(run: Run, data: Path, tmp_path: Path) -> None:
    data.mkdir(parents=True, exist_ok=True)
    (data / "worker.lock").symlink_to(tmp_path / "elsewhere")
    ran = run("worker")
    lock = data / "worker.lock"
    assert (ran.code, ran.err) == (3, f"backstory: {lock} is a link; remove it, and try again\n")
