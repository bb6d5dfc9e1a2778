"""Commands of a repository, run after a person agreed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from backstory.claude_md import verify
from backstory.claude_md.verify import Check, Outcome
from backstory.model import Command

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"


def ran(root: Path, line: str, seconds: float = 20, variables: Mapping[str, str] = os.environ) -> Outcome:
    check = Check("", Command("test", line, "Makefile"))
    (outcome,) = verify.run(str(root), [check], variables, seconds=seconds)
    return outcome


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize(
    ("line", "state", "is_started"),
    [
        ("true", "works", True),
        ("echo before; exit 3", "failed", True),
        ("no-such-program --help", "not found", False),
        ("./README", "not found", False),
        ("ls --no-such-option", "usage error", False),
        ("make no-such-target", "usage error", False),
        ("for i in $(seq 5000); do echo line $i; done; echo usage: x; exit 1", "failed", True),
        ("sleep 60", "timed out", True),
    ],
)
def test_what_became_of_a_command_is_told(tmp_path: Path, line: str, state: str, is_started: bool) -> None:
    (tmp_path / "README").write_text("no program\n")
    outcome = ran(tmp_path, line, seconds=1 if line.startswith("sleep") else 20)
    assert (outcome.state, outcome.is_started) == (state, is_started), outcome


def test_a_command_runs_in_its_folder_with_nothing_to_read(tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    check = Check("web", Command("test", "pwd; cat; tty", "Makefile"))
    (outcome,) = verify.run(str(tmp_path), [check], os.environ)
    assert outcome.tail.split("\n")[:2] == [str(tmp_path / "web"), "not a tty"]


def test_only_the_end_of_the_output_is_kept_and_secrets_are_taken_out(tmp_path: Path) -> None:
    outcome = ran(tmp_path, f"head -c 3000000 /dev/zero | tr '\\0' x; echo; echo {TOKEN}; exit 1")
    assert len(outcome.tail) <= verify.TAIL + 100
    assert TOKEN not in outcome.tail
    assert "[redacted:" in outcome.tail


def test_secrets_are_not_in_its_environment(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    secrets = {
        "GITHUB_TOKEN": TOKEN,
        "AWS_SECRET_ACCESS_KEY": "abc",
        "SSH_AUTH_SOCK": "/run/agent",
        "DATABASE_URL": "postgres://me:pw@host/db",
        "LANG": TOKEN,
        "JAVA_HOME": TOKEN,
        "BASH_ENV": "/dev/null",
        "CARGO_HOME": str(tmp_path / "tools"),
        "PATH": f".:tools::{os.environ['PATH']}",
    }
    told = dict(
        line.partition("=")[::2]
        for line in ran(tmp_path, "env", variables={**os.environ, **secrets}).tail.splitlines()
    )
    assert told["PATH"] == os.environ["PATH"]
    assert told["CARGO_HOME"] == str(tmp_path / "tools")
    assert told["HOME"] == os.environ["HOME"]
    assert told["TERM"] == "dumb"
    allowed = {"PATH", "HOME", "TMPDIR", "TERM", "CI", "GIT_TERMINAL_PROMPT", "PWD", "SHLVL", "_"}
    assert told.keys() <= allowed | set(verify.FOLDERS) | {"LC_ALL", "LC_CTYPE"}
    assert "JAVA_HOME" not in told
    assert not os.path.exists(told["TMPDIR"])


@pytest.mark.parametrize(
    "program",
    [
        "sleep 1000 & echo $! > pid; sleep 1000",  # it forks, and hangs
        "sleep 1000 & echo $! > pid",  # it ends, and leaves a child
        "setsid sh -c 'echo $$ > pid; exec sleep 1000' & sleep 0.5",  # that has left its group
        "(setsid sh -c 'echo $$ > pid; exec sleep 1000' &) ; sleep 0.5; exit 1",  # a daemon
        "(setsid env -i sh -c 'trap \"\" TERM HUP; echo $$ > pid; sleep 1000; sleep 1000' &) ; sleep 0.5",
    ],
)
def test_what_a_command_leaves_running_is_gone_afterwards(tmp_path: Path, program: str) -> None:
    outcome = ran(tmp_path, program, seconds=2)
    assert outcome.seconds < 10
    assert not is_running(int((tmp_path / "pid").read_text()))


def test_a_child_that_was_there_before_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "100"]) as mine:
        ran(tmp_path, "true")
        assert mine.poll() is None
        mine.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_who_is_ended_in_the_middle_ends_the_command_too(tmp_path: Path, number: int) -> None:
    program = (
        "import os, sys; from backstory.claude_md.verify import *; from backstory.model import Command\n"
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "line = 'setsid sleep 1000 & echo $! > pid; sleep 1000'\n"
        "list(run(sys.argv[1], [Check('', Command('test', line, ''))], os.environ))"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stderr=subprocess.DEVNULL) as mine:
        pid = tmp_path / "pid"
        until = time.monotonic() + 30
        while not (pid.exists() and pid.read_text().strip()) and time.monotonic() < until:
            time.sleep(0.02)
        mine.send_signal(number)
        mine.wait(20)
    assert not is_running(int(pid.read_text()))


def test_only_commands_that_a_person_can_read_are_checked_and_none_twice() -> None:
    lines = [
        "make check",
        "make \x1b[8mx",
        "pytest <path>",
        f"TOKEN={TOKEN} make",
        "go test ./...",
    ]
    commands = [Command("test", line, "Makefile") for line in lines]
    commands += [Command("test", f"cd {part} && make check", "Makefile", part) for part in ("web", "worker")]
    found = verify.checks({"": commands, "web": commands[:1]})
    assert [(check.folder, check.command.line) for check in found] == [
        ("", "make check"),
        ("", "go test ./..."),
        ("", "cd worker && make check"),
        ("web", "make check"),
    ]


@pytest.mark.parametrize("role", ["run", "install", "format", "migrate"])
def test_what_may_serve_install_or_rewrite_is_not_marked(role: str) -> None:
    assert not Check("", Command(role, "make x", "")).is_marked
    assert Check("", Command("test", "make x", "")).is_marked
