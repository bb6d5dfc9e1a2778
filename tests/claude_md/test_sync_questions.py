"""What `backstory sync` shows and asks, and what goes wrong."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path

import pytest

from backstory import dirty
from backstory.claude_md import sync
from tests.conftest import Run
from tests.helpers.claude_md_project import (
    BACKSTORY,
    NEW_COMMAND,
    change,
    section,
    snapshot,
    write,
)
from tests.helpers.terminal import at_terminal

pytestmark = pytest.mark.slow


@pytest.fixture
def project(fixed_project: Path) -> Path:
    return fixed_project


def test_without_a_terminal_the_difference_is_shown_and_nothing_written(run: Run, ready: Path) -> None:
    change(ready, "pyproject.toml", NEW_COMMAND)
    before = snapshot(ready)
    ran = run("sync")
    assert ran.code == 1
    assert "+- Lint: `ruff check`" in ran.out
    assert "--yes writes it" in ran.err
    assert "\x1b" not in ran.out
    ran = run("sync", "--json")
    assert ran.code == 1
    assert ran.json["files"][0]["sections"]["build-commands"] == "would be written"
    assert snapshot(ready) == before


def test_a_person_sees_the_difference_in_colours_and_says_yes(ready: Path) -> None:
    change(ready, "pyproject.toml", NEW_COMMAND)
    code, seen = at_terminal(ready, "sync", turns=(("Write this?", "y\n"),))
    assert code == 0, seen
    assert "\x1b[32m+- Lint: `ruff check`" in seen
    assert "Written: " in seen
    assert "`ruff check`" in section(ready, "build-commands")


@pytest.mark.parametrize(("answer", "code"), [("n\n", 1), ("\x03", 130)])
def test_who_does_not_say_yes_gets_nothing_written(ready: Path, answer: str, code: int) -> None:
    change(ready, "pyproject.toml", NEW_COMMAND)
    before = snapshot(ready)
    ended, seen = at_terminal(ready, "sync", turns=(("Write this?", answer),))
    assert (ended, "Nothing was written." in seen) == (code, True), seen
    assert snapshot(ready) == before


@pytest.mark.parametrize("command", [["sync"], ["sync", "--yes", "--json"], ["claude-md", "status"]])
def test_where_nothing_is_initialised_that_is_said_and_what_to_do(
    run: Run, project: Path, command: list[str]
) -> None:
    ran = run(*command)
    assert (ran.code, ran.out) == (1, "")
    assert "`backstory init`" in ran.err


def test_a_list_that_came_with_a_clone_is_no_reason_to_write(run: Run, project: Path) -> None:
    write(project, {dirty.NAME: "/etc/passwd\n", "CLAUDE.md": "# Mine\n"})
    ran = run("sync", "--yes")
    assert ran.code == 1
    assert "`backstory init` adds them" in ran.err
    assert (project / "CLAUDE.md").read_text() == "# Mine\n"


def test_a_folder_below_stands_for_its_project(
    run: Run, ready: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(ready, "pyproject.toml", NEW_COMMAND)
    monkeypatch.chdir(ready / "walrus")
    assert run("sync", "--yes", "--json").json["files"][0]["path"] == "CLAUDE.md"


def test_syncs_at_once_wait_for_each_other(ready: Path) -> None:
    for number in range(4):
        change(ready, f"kitchen_{number}/__init__.py", f'"""Kitchen number {number}."""\n')
    several = [
        subprocess.Popen([BACKSTORY, "sync", "--yes", "--json"], cwd=ready, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    told = [json.loads(one.communicate(timeout=120)[0]) for one in several]
    assert [one.returncode for one in several] == [0, 0, 0]
    assert sorted(len(one["dirty"]) for one in told) == [0, 0, 4]
    text = section(ready, "architecture")
    assert all(f"Kitchen number {number}" in text for number in range(4))


def test_a_sync_waits_for_another_and_says_so_in_the_end(data: Path, project: Path) -> None:
    data.mkdir(parents=True)
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with sync.alone(str(data), str(project)):
            entered.set()
            leave.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert entered.wait(30)
        with (
            pytest.raises(Exception, match="another sync of this project"),
            sync.alone(str(data), str(project), 0.1),
        ):
            pass
        with sync.alone(str(data), str(project) + "-2", 0.1):
            pass  # another project's
    finally:
        leave.set()
        thread.join()
