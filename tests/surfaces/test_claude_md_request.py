"""`backstory claude-md request`, which a skill has a model run. What the real client lets through to it is in
tests/end_to_end/test_unasked.py."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from backstory.errors import BadInput
from backstory.surfaces.cli import request
from backstory.surfaces.cli.main import cli
from tests.conftest import Run
from tests.end_to_end.test_memory import git
from tests.end_to_end.test_memory import repository as new_repository
from tests.helpers.chaos import prompt, put
from tests.helpers.claude_md_project import TEMPLATE

BACKSTORY = os.path.join(os.path.dirname(sys.executable), "backstory")
SET = 'claude-md section set patterns\nThe tower\'s "lamp".\n\tIt guides `boats` for $0 ^J.\n'

Shell = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = new_repository(tmp_path / "harbour")
    (folder / "a.py").write_text("x = 1\n")
    (folder / "CLAUDE.md").write_text(TEMPLATE)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "A harbour")
    return folder


@pytest.fixture
def shell(repository: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A shell of a session in the repository, as the client starts one: with more than the one command."""
    put(data, prompt("set it up") | {"session_id": "s1", "cwd": str(repository)})
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "s1")

    def run(line: str, cwd: Path = repository) -> subprocess.CompletedProcess[str]:
        command = ["bash", "-c", f"{line.replace('@', f'{BACKSTORY} claude-md request')}\ntrue $?; pwd"]
        return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=True)

    return run


def here(request: str) -> str:
    return f"@ <<'END'\n{request}\nEND"


def test_a_request_that_stands_in_the_command_is_carried_out(shell: Shell, repository: Path) -> None:
    assert "Section written: patterns in CLAUDE.md" in shell(here(SET)).stdout
    assert SET.partition("\n")[2].strip() in (repository / "CLAUDE.md").read_text()
    assert "The tower's" in shell(here("backstory claude-md section get patterns")).stdout
    assert '"author": "model"' in shell(here("claude-md section list --json")).stdout


@pytest.mark.parametrize(
    "line", ["@ < r", "cat r | @", '@ <<< "$(cat r)"', "@ <<E\n$(cat r)\nE", "@ </dev/null"]
)
def test_a_request_from_elsewhere_is_refused(shell: Shell, repository: Path, line: str) -> None:
    (repository / "r").write_text(SET)
    done = shell(line)
    assert "here-document, no file and no pipe" in done.stderr
    assert (repository / "CLAUDE.md").read_text() == TEMPLATE


@pytest.mark.parametrize(
    "line",
    [
        "claude-md section set patterns --file a.py",
        "claude-md section set patterns --project ../other",
        "claude-md section accept patterns",
        "init --project ../other --yes",
        "sync --project=../other --yes",
        "claude-md request",
        "config synthesizer local",
        "--help",
        "init --help",
        "init 'unclosed",
        "no command at all",
        "",
    ],
)
def test_what_leads_elsewhere_cannot_be_requested(line: str) -> None:
    with pytest.raises((BadInput, click.UsageError)):
        request._command(cli, line)


@pytest.mark.parametrize("place", ["../other/CLAUDE.md", "a.py", "linked/CLAUDE.md"])
def test_a_section_is_set_in_no_other_file(shell: Shell, repository: Path, place: str) -> None:
    shutil.copytree(repository, repository.parent / "other")
    (repository / "linked").symlink_to(repository.parent / "other")
    assert shell(here(SET.replace("\n", f" --in {place}\n", 1))).stderr.startswith("backstory: ")
    for folder in (repository, repository.parent / "other"):
        assert (folder / "CLAUDE.md").read_text() == TEMPLATE
    assert (repository / "a.py").read_text() == "x = 1\n"


def test_only_the_project_of_the_session_is_worked_on_and_its_worktrees(
    shell: Shell, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "src").mkdir()
    assert "Section written" in shell(here(SET), repository / "src").stdout
    git(repository, "worktree", "add", "--quiet", str(repository.parent / "tree"))
    assert "Section written" in shell(here(SET), repository.parent / "tree").stdout
    git(repository.parent, "clone", "--quiet", str(repository), "clone")
    for folder in ("clone", "."):
        place = repository.parent / folder
        assert (
            f"is not the project of this session; go back to {repository}" in shell(here(SET), place).stderr
        )
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "s2")
    assert "this session is not known" in shell(here(SET)).stderr


def test_a_claude_md_that_leads_out_of_the_project_is_neither_read_nor_written(
    shell: Shell, repository: Path
) -> None:
    elsewhere = repository.parent / "theirs.md"
    (repository / "CLAUDE.md").rename(elsewhere)
    (repository / "CLAUDE.md").symlink_to(elsewhere)
    for line in ("claude-md section get patterns", "init --yes --offline", SET):
        assert "leads out of the project" in shell(here(line)).stderr
    assert elsewhere.read_text() == TEMPLATE


def test_who_types_it_at_a_terminal_is_told_what_it_is_for(run: Run) -> None:
    ran = run("claude-md", "request", stdin=SET)
    assert (ran.code, "does not stand in the command" in ran.err) == (2, True)
    assert run("claude-md", "request").code == 2


def test_a_command_line_is_the_same_where_only_ps_tells_it() -> None:
    """As on macOS."""
    command = ["sh", "-c", "echo ready; read line; : für 'immer'"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline()
        there, listed = request._process(process.pid), request._listed(process.pid)
        process.kill()
    assert there[0] == listed[0] == os.getpid()
    assert listed[1].split() == there[1].replace(b"\0", b" ").split()
