"""The command line: folders that are gone or cannot be used."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from backstory.store.file.connection import connect
from tests.conftest import Run
from tests.helpers.commands import BACKSTORY, backstory


@pytest.fixture
def project(project: str) -> Path:
    return Path(project)


def test_a_folder_that_is_gone_is_said_so(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = ["sh", "-c", f"rmdir '{gone}'; {BACKSTORY} sessions"]
    ran = subprocess.run(script, cwd=gone, capture_output=True, text=True, check=False)
    assert (ran.returncode, "the current folder is gone" in ran.stderr) == (2, True)


@pytest.mark.slow
def test_a_folder_that_cannot_be_used_is_not_called_our_fault(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_HOME", "/dev/null/nowhere")
    ran = backstory("search", "x", cwd=project)
    assert ran.returncode == 3
    assert "set BACKSTORY_HOME to a folder of yours" in ran.stderr
    line = next(
        line for line in backstory("doctor", cwd=project).stdout.splitlines() if "data folder" in line
    )
    assert line.startswith("✗")


def bound(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """As somebody whom permissions bind; root has to give up the right to ignore them first."""
    command = [BACKSTORY, *args]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("running as root, and setpriv is not installed")
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


COMMANDS_THAT_WRITE = (
    ["config", "log.level", "debug"],
    ["worker"],
    ["add", "a walrus"],
    ["backup", "now"],
    ["backup", "restore", "latest", "--yes"],
)


@pytest.mark.slow
def test_a_data_folder_that_cannot_be_written_is_named_with_what_to_do(
    project: Path, data: Path, run: Run
) -> None:
    run("add", "a walrus")
    run("backup", "now")
    data.chmod(0o500)
    try:
        for command in COMMANDS_THAT_WRITE:
            ran = bound(*command, cwd=project)
            assert (command, ran.returncode, ran.stdout) == (command, 3, "")
            assert ran.stderr.startswith(f"backstory: {data} cannot be written (")
            assert ran.stderr.endswith("; make it writable, or set BACKSTORY_HOME to a folder of yours\n")
            assert "Errno" not in ran.stderr
        for reading in (["search", "walrus"], ["list"], ["worker", "--status"]):
            assert bound(*reading, cwd=project).returncode == 0
        told = bound("doctor", cwd=project).stdout
    finally:
        data.chmod(0o700)
    assert "`backstory doctor`" not in told
    assert "Error" not in told


@pytest.mark.parametrize("name", ["backstory.db", "backstory.db-shm"])
def test_a_file_of_the_database_that_cannot_be_written_is_named_and_not_its_folder(
    name: str, project: Path, data: Path, run: Run
) -> None:
    run("add", "a walrus")
    with closing(connect(str(data / "backstory.db"))):
        (data / name).chmod(0o400)
        ran = bound("add", "another", cwd=project)
    assert ran.returncode == 3
    assert f"{data}/{name} cannot be written (" in ran.stderr


@pytest.mark.slow
def test_what_is_no_folder_is_named_by_every_command(
    project: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.setenv("BACKSTORY_HOME", "/dev/null/nowhere")
    for command in (*COMMANDS_THAT_WRITE, ["search", "walrus"], ["config"], ["backup", "list"]):
        ran = run(*command)
        if command[:2] != ["backup", "restore"]:  # there is none
            assert (command, ran.code, ran.out) == (command, 3, "")
            assert "/dev/null" in ran.err
            assert "set BACKSTORY_HOME to a folder of yours" in ran.err
        assert "Errno" not in ran.err
    told = run("doctor").out
    assert "Errno" not in told
    assert "Error" not in told
