"""A small project with a history, for the tests of CLAUDE.md, and a person at a terminal."""

from __future__ import annotations

import atexit
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from backstory import dirty
from backstory.claude_md.write import sections

BACKSTORY = os.path.join(os.path.dirname(sys.executable), "backstory")
# Forks a command for each order: to start Python and import all that takes longer than what a command does.
AT_TERMINALS = """
import json, os, signal, sys
from backstory.claude_md import init, status, sync
from backstory.claude_md.read import parse_pool
from backstory.surfaces.cli import claude_md_output, terminal
from backstory.surfaces.cli.main import main

def run(place, folder, environment, arguments):
    os.setsid()
    theirs = os.open(place, os.O_RDWR)  # who leads a session gets the terminal it opens
    print(os.getpid(), flush=True)
    for number in range(3):
        os.dup2(theirs, number)
    os.close(theirs)
    sys.stdin, sys.stdout, sys.stderr = (open(number, "rw"[number > 0], buffering=1) for number in range(3))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs the tests may ignore it
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["backstory", *arguments]
    main()

parse_pool.CHILDREN = 1  # the projects are small
while line := sys.stdin.readline():
    child = os.fork()
    if not child:
        run(*json.loads(line))
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
GIT = ("git", "-c", "user.name=W", "-c", "user.email=w@example.org", "-c", "init.defaultBranch=main")

FILES = {
    "pyproject.toml": """\
[build-system]
requires = ["hatchling"]

[project]
name = "walrus"
description = "Keeps walruses well fed."
dependencies = ["flask"]

[tool.pytest.ini_options]
testpaths = ["tests"]
""",
    "README.md": "# Walrus\n\nKeeps walruses.\n",
    "walrus/__init__.py": '"""Feeds walruses, and counts the fish."""\n',
    "tests/test_feeding.py": "def test_it_is_fed():\n    assert True\n",
}
MODULE = '''\
"""How number {number} is fed."""

import os

import flask

MOST_FISH = 3


class FishBucket:
    def take_fish(self) -> str:
        return "herring"


def feed_walrus(count: int) -> str:
    return os.sep + "fish" * count
'''
# A small file with sections that nobody has filled yet.
TEMPLATE = """# api

<!-- AUTO-MANAGED: build-commands -->
<!-- END AUTO-MANAGED -->

<!-- AUTO-MANAGED: patterns -->
<!-- END AUTO-MANAGED -->

<!-- MANUAL -->
Mine.
<!-- END MANUAL -->
"""
MINE = "# My notes\n\nDo not feed it *squid*.\n\n```sh\nmake\n```\n"
NOTICE = "Changes are tracked from now on"
NEW_COMMAND = "\n[tool.ruff]\nline-length = 100\n"


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def make(root: Path, *, git: bool = True) -> Path:
    """A Python project, committed."""
    if git:
        shutil.copytree(Path(_committed().name, "walrus"), root, symlinks=True, dirs_exist_ok=True)
    else:
        _lay(root)
    return root


def _lay(root: Path) -> None:
    write(root, FILES)
    write(root, {f"walrus/feeding_{number}.py": MODULE.format(number=number) for number in range(12)})
    write(root, {f"tests/test_feeding_{number}.py": FILES["tests/test_feeding.py"] for number in range(6)})


@cache
def _committed() -> TemporaryDirectory[str]:
    """The project with its history, made once: a copy takes a tenth of the time."""
    kept = TemporaryDirectory(prefix="walrus-")
    root = Path(kept.name, "walrus")
    _lay(root)
    run_git(root, "init", "-q")
    shutil.rmtree(root / ".git" / "hooks", ignore_errors=True)  # samples
    commit(root, "feat: keep walruses")
    for number in range(6):
        for name in ("feeding_0", "feeding_1"):
            with open(root / "walrus" / f"{name}.py", "a") as file:
                file.write(f"# meal {number}\n")
        commit(root, f"fix: serve meal {number} in time")
    return kept


def run_git(root: Path, *command: str) -> str:
    done = subprocess.run([*GIT, "-C", str(root), *command], capture_output=True, text=True, check=True)
    return done.stdout


def commit(root: Path, message: str) -> None:
    run_git(root, "add", "-A")
    run_git(root, "commit", "-qm", message)


def snapshot(root: Path) -> dict[str, bytes]:
    """Every file of a folder but git's own."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(root).parts
    }


def at_terminal(
    cwd: Path, *command: str, turns: tuple[tuple[str, str], ...] = (), columns: int = 100
) -> tuple[int, str]:
    """The exit code, and what a person sees who waits for a text and then types, turn by turn."""
    terminals = _terminals()
    assert terminals.stdin
    assert terminals.stdout
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns)}
    terminals.stdin.write(json.dumps([os.ttyname(theirs), str(cwd), environment, command]) + "\n")
    terminals.stdin.flush()
    process = int(terminals.stdout.readline())
    os.close(theirs)
    try:
        seen = _conversation(ours, list(turns))
    except BaseException:
        os.kill(process, signal.SIGKILL)
        raise
    finally:
        code = int(terminals.stdout.readline())
        os.close(ours)
    return code, seen


@cache
def _terminals() -> subprocess.Popen[str]:
    program, pipe = [sys.executable, "-c", AT_TERMINALS], subprocess.PIPE
    started = subprocess.Popen(program, stdin=pipe, stdout=pipe, text=True, cwd="/")
    atexit.register(started.communicate)
    return started


def _conversation(terminal: int, waiting: list[tuple[str, str]]) -> str:
    seen = ""
    while True:
        if waiting and waiting[0][0] in seen.rpartition("\0")[2]:
            seen += "\0"  # what was seen before answers no later question
            typed = waiting.pop(0)[1]
            if not typed.endswith("\n"):
                time.sleep(0.3)  # Ctrl-C between a prompt and the reading of it is lost
            os.write(terminal, typed.encode())
        assert select.select([terminal], [], [], 60)[0], seen
        try:
            part = os.read(terminal, 65_536)
        except OSError:  # nobody has the terminal any more
            break
        if not part:
            break
        seen += part.decode("utf-8", "replace")
    return seen.replace("\0", "")


def text(project: Path, name: str = "CLAUDE.md") -> str:
    return (project / name).read_text("utf-8")


def names(project: Path, name: str = "CLAUDE.md") -> list[str]:
    return [section.name for section in sections.parse((project / name).read_bytes()).sections]


def change(project: Path, name: str, added: str, *, listed: bool = True) -> None:
    """What somebody does, a moment before anything else: what was just done is looked at twice."""
    path = project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(added)
    if listed:
        dirty.append(str(project), [str(path)])
    time.sleep(0.05)


def section(project: Path, name: str, file: str = "CLAUDE.md") -> str:
    return sections.get((project / file).read_bytes(), name)
