"""The command line, as a person or a script uses it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY, Run
from tests.helpers.commands import BACKSTORY, backstory


@pytest.fixture
def project(project: str) -> Path:
    return Path(project)


@pytest.mark.slow
def test_finding_nothing_is_exit_code_one_and_says_so(project: Path) -> None:
    done = backstory("search", "zebra", cwd=project)
    assert (done.returncode, done.stdout) == (1, "")
    assert "No memories found" in done.stderr
    as_json = backstory("search", "zebra", "--json", cwd=project)
    assert (as_json.returncode, json.loads(as_json.stdout)) == (1, [])


@pytest.mark.parametrize(
    "args",
    [
        ("search",),
        ("search", "x", "--limit", "0"),
        ("add", "x", "--sector", "y"),
        ("nonsense",),
        ("add", " "),
    ],
)
def test_wrong_use_is_exit_code_two(args: tuple[str, ...], project: Path, run: Run) -> None:
    done = run(*args)
    assert done.code == 2
    assert done.err


def test_a_fault_of_ours_is_exit_code_three_and_in_the_log(project: Path, data: Path) -> None:
    (data / "backstory.db").mkdir(parents=True)
    done = backstory("search", "x", cwd=project)
    assert done.returncode == 3
    assert "cannot be used" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_every_command_explains_itself(project: Path, run: Run) -> None:
    commands = (
        "search show timeline add reinforce deemphasize forget restore supersede prune docs reindex"
        " sessions backup install uninstall doctor mcp"
    ).split()
    overview = run("help", "--all").out
    for command in commands:
        assert command in overview
        assert run(command, "--help").code == 0
    for command in ("ingest", "search", "list", "show", "remove"):
        assert run("docs", command, "--help").code == 0


def test_every_command_that_prints_is_known_to_capture() -> None:
    """What our own commands print in a shell must not be remembered again."""
    from backstory.intake.trace import PRINTING_COMMANDS
    from backstory.surfaces.cli.main import cli

    prints_none = {"install", "uninstall", "mcp", "worker", "config", "help"}
    assert set(cli.commands) - prints_none == PRINTING_COMMANDS


def test_the_docs_name_every_command(run: Run) -> None:
    text = (REPOSITORY / "docs" / "reference" / "commands.md").read_text()
    listed = re.findall(r"^  (\S+)  +\S", run("help", "--all").out.partition("Remember:")[2], re.M)
    assert len(listed) > 30
    for name in listed:
        assert f"## backstory {name}\n" in text


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    from backstory.surfaces.cli.groups import EVERY
    from backstory.surfaces.cli.main import cli

    for name, (_, about) in EVERY.items():
        assert cli.commands[name].get_short_help_str(limit=200).startswith(about.rstrip(".")), name


def test_a_command_loads_only_what_it_needs() -> None:
    code = """
import sys
from backstory.surfaces.cli.main import _run, cli
sys.argv = ["backstory", *sys.argv[1:]]
_run(cli)
print(*(name for name in sys.modules if name.startswith("backstory.") or name == "rich"))
"""

    def loaded(*command: str) -> set[str]:
        ran = subprocess.run(
            [sys.executable, "-c", code, *command], capture_output=True, text=True, check=True
        )
        return set(ran.stdout.splitlines()[-1].split())

    surface = "backstory.surfaces.cli"
    assert {f"{surface}.groups"} == {name for name in loaded("--help") if name.startswith(f"{surface}.")} - {
        f"{surface}.main"
    }
    listed = loaded("list")
    assert f"{surface}.memories" in listed
    assert not {f"{surface}.terminal", f"{surface}.backfill", "backstory.recall.index", "rich"} & listed


def test_help_lists_commands_by_group_each_in_a_whole_line(run: Run) -> None:
    overview = run("--help").out
    titles = re.findall(r"^(\w[\w. ]+):$", overview, re.M)
    assert titles == ["Options", "Remember", "Look", "Projects", "CLAUDE.md", "Trees and documents", "Care"]
    assert "reindex" not in overview and "..." not in overview.partition("Remember:")[2]
    assert "backstory help --all" in overview
    assert "  reindex  " in run("help", "--all").out
    assert run("help", "docs", "list").out == run("docs", "list", "--help").out
    lost = run("help", "docs", "lost")
    assert lost.code == 2 and "no command docs lost" in lost.err


def test_without_any_home_the_cli_says_what_to_set(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    done = backstory("sessions", cwd=project)
    assert done.returncode == 2
    assert "set HOME or BACKSTORY_HOME to an absolute path" in done.stderr


def demo(*args: str) -> str:
    command = [sys.executable, str(REPOSITORY / "demo" / "run.py"), *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.mark.slow
def test_the_demo_shows_a_search_that_finds_what_was_captured() -> None:
    shown = demo()
    assert "13 events captured" in shown
    assert "Bearer [redacted:token]" in shown
    answer = shown.split("$ backstory search")[1]
    assert "KeyError" in answer or "Sign in ignores the case" in answer


@pytest.mark.slow
def test_nothing_in_the_demo_is_canned(tmp_path: Path) -> None:
    """Edit the sample session, and the demo tells the other story."""
    sample = (REPOSITORY / "demo" / "session.jsonl").read_text()
    changed = tmp_path / "session.jsonl"
    changed.write_text(sample.replace("Sign in ignores the case", "Pelicans ignore the weather"))
    shown = demo("--sample", str(changed), "--query", "pelicans")
    assert "Pelicans ignore the weather" in shown.split("$ backstory search")[1]
    assert "Sign in ignores the case" not in shown
    assert "No memories found" not in shown


@pytest.mark.slow
def test_bash_completes_commands_and_options(project: Path) -> None:
    """As docs/install.md has it."""
    folder = os.path.dirname(BACKSTORY)
    script = f"""
        PATH={folder}:$PATH
        eval "$(_BACKSTORY_COMPLETE=bash_source backstory)"
        complete -p backstory
        try() {{
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
            _backstory_completion backstory
            echo "${{COMPREPLY[@]}}"
        }}
        try backstory statu
        try backstory claude-md s
        try backstory search --mod
        try backstory config recall.p
        try backstory config recall.prompt o
        try backstory config unset disp
    """
    assert "_BACKSTORY_COMPLETE=bash_source backstory" in (REPOSITORY / "docs" / "install.md").read_text()
    shown = subprocess.run(["bash", "-c", script], cwd=project, capture_output=True, text=True, check=True)
    _, *found = shown.stdout.splitlines()
    assert [sorted(line.split()) for line in found] == [
        ["status", "statusline"],
        ["section", "status"],
        ["--mode"],
        ["recall.prompt"],
        ["off", "on"],
        ["display"],
    ]
