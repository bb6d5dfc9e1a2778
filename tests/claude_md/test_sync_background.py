"""`backstory sync` in the background."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from sqlite3 import Connection

import pytest

from backstory import dirty
from backstory.claude_md import sync
from backstory.store.file.connection import connect
from backstory.surfaces.cli import claude_md
from tests.conftest import Run
from tests.helpers.claude_md_project import NEW_COMMAND, change, run_git, section

pytestmark = pytest.mark.slow


@pytest.fixture
def project(fixed_project: Path) -> Path:
    return fixed_project


@contextmanager
def opened(data: Path) -> Iterator[Connection]:
    with closing(connect(str(data / "backstory.db"))) as db:
        yield db


def test_in_the_background_what_can_be_computed_is(ready: Path, data: Path) -> None:
    change(ready, "pyproject.toml", NEW_COMMAND)
    claude_md.background(str(ready))
    assert "`ruff check`" in section(ready, "build-commands")
    assert dirty.read(str(ready)) == []


def test_in_the_background_nothing_surfaces(
    project: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    claude_md.background(str(project))
    claude_md.background("/nowhere/at/all")
    assert capsys.readouterr() == ("", "")
    assert "backstory init" in (data / "logs" / "backstory.log").read_text()


def test_in_a_workers_own_session_nothing_is_done(
    ready: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(ready, "pyproject.toml", NEW_COMMAND)
    monkeypatch.setenv("BACKSTORY_WORKER", "1")
    claude_md.background(str(ready))
    assert len(dirty.read(str(ready))) == 1


def test_the_background_needs_no_terminal_and_no_streams(ready: Path, data: Path) -> None:
    change(ready, "pyproject.toml", NEW_COMMAND)
    code = f"from backstory.surfaces.cli.claude_md import background; background({str(ready)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
        cwd="/",
    )
    assert done.returncode == 0
    assert "`ruff check`" in section(ready, "build-commands")


def test_a_sync_notes_when_and_at_which_commit_it_was(run: Run, ready: Path, data: Path) -> None:
    change(ready, "pyproject.toml", NEW_COMMAND)
    began = int(time.time() * 1000)
    run("sync", "--yes")
    with opened(data) as db:
        (file,) = sync.managed_files(db, str(ready))
    assert file.synced_at is not None
    assert began - 1_000 < file.synced_at <= time.time() * 1000
    assert file.head == run_git(ready, "rev-parse", "HEAD").strip()
