"""Commands at a real terminal of a given width, forked: starting Python takes longer than what they do."""

from __future__ import annotations

import atexit
import json
import os
import pty
import re
import select
import shlex
import subprocess
import sys
import termios
from functools import cache
from pathlib import Path

PROGRAM = """
import json, os, sys
from backstory.recall import search
from backstory.recall.embedders import static
from backstory.surfaces.cli.main import main
from rich import table

def run(place, folder, environment, arguments):
    os.setsid()
    terminal = os.open(place, os.O_RDWR)  # who leads a session gets the terminal it opens
    for number in range(3):
        os.dup2(terminal, number)
    os.close(terminal)
    sys.stdin, sys.stdout, sys.stderr = (open(number, "rw"[number > 0], buffering=1) for number in range(3))
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
    os.waitpid(child, 0)
    print(flush=True)
"""


def seen_at_terminal(command: str, cwd: Path | str, columns: int = 80) -> str:
    """What a terminal of that width is sent."""
    terminals = _terminals()
    assert terminals.stdin and terminals.stdout
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    order = [os.ttyname(theirs), str(cwd), env | {"TERM": "xterm-256color"}, shlex.split(command)]
    terminals.stdin.write(json.dumps(order) + "\n")
    terminals.stdin.flush()
    seen = b""
    while (
        ours in select.select([ours, terminals.stdout.fileno()], [], [], 60)[0]
    ):  # until the command has ended
        seen += os.read(ours, 65_536)
    assert terminals.stdout.readline()
    os.write(theirs, b"\0")  # the end: this process has the terminal open as well
    while not seen.endswith(b"\0"):
        seen += os.read(ours, 65_536)
    os.close(theirs)
    os.close(ours)
    return seen[:-1].decode()


def plain_lines(command: str, cwd: Path | str, columns: int) -> list[str]:
    return re.sub(r"\x1b\[[0-9;]*m", "", seen_at_terminal(command, cwd, columns)).splitlines()


@cache
def _terminals() -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    started = subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=pipe, stdout=pipe, text=True, cwd="/")
    atexit.register(started.communicate)
    return started
