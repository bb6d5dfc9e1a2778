"""`backstory` at a real terminal. It is forked: starting Python takes longer than what a command does."""

from __future__ import annotations

import atexit
import json
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import termios
import time
from functools import cache
from pathlib import Path

# Forks a command for each order, and says its pid and its exit code.
PROGRAM = """
import json, os, signal, sys
from importlib import import_module
from backstory.claude_md.read import parse_pool
from backstory.surfaces.cli.main import cli, main

for name in "claude_md.init claude_md.status claude_md.sync recall.search recall.embedders.static".split():
    import_module(f"backstory.{name}")
for name in ("claude_md_output", "terminal"):
    import_module(f"backstory.surfaces.cli.{name}")
list(cli.commands.values())  # which loads them
parse_pool.CHILDREN = 1  # the projects are small: to start another costs more than it saves

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

while line := sys.stdin.readline():
    child = os.fork()
    if not child:
        run(*json.loads(line))
        sys.exit()
    sys.stdin.readline()  # until then its pid is its own, though it may have ended
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def at_terminal(
    cwd: Path | str, *command: str, turns: tuple[tuple[str, str], ...] = (), columns: int = 100
) -> tuple[int, str]:
    """The exit code, and what a person sees who waits for a text and then types, turn by turn."""
    terminals = _terminals()
    assert terminals.stdin
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    environment["TERM"] = "xterm-256color"
    terminals.stdin.write(json.dumps([os.ttyname(theirs), str(cwd), environment, command]) + "\n")
    terminals.stdin.flush()
    process = _number(terminals)
    os.close(theirs)
    try:
        seen = _conversation(ours, list(turns))
    except BaseException:
        os.kill(process, signal.SIGKILL)
        raise
    finally:
        terminals.stdin.write("\n")
        terminals.stdin.flush()
        code = _number(terminals)
        os.close(ours)
    return code, seen


def seen_at_terminal(command: str, cwd: Path | str, columns: int = 80) -> str:
    """What a terminal of that width is sent."""
    return at_terminal(cwd, *shlex.split(command), columns=columns)[1]


def plain_lines(command: str, cwd: Path | str, columns: int) -> list[str]:
    return re.sub(r"\x1b\[[0-9;]*m", "", seen_at_terminal(command, cwd, columns)).splitlines()


@cache
def _terminals() -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    started = subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=pipe, stdout=pipe, text=True, cwd="/")
    atexit.register(started.communicate)
    return started


def _number(terminals: subprocess.Popen[str]) -> int:
    assert terminals.stdout
    assert select.select([terminals.stdout], [], [], 60)[0], "the command does not start, or does not end"
    return int(terminals.stdout.readline())


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
