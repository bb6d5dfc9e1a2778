"""MCP servers that are forked off a process which has imported what they need.

Nearly all of a server's start is importing `mcp`, most of a second, and tests start hundreds. Here one
process of a run (`keep_ready`) imports it once. `stand_in` is what a client starts in the server's place: it
hands over its environment, its folder and its open files, passes signals on, and ends as the server does. So
the server that a test speaks to is a process of its own, and dies with its stand-in. Tests of the start
itself start Python.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from io import TextIOWrapper

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
MOST_FILES = 16


def stand_in(address: str, pid_file: str, arguments: list[str]) -> None:
    line = socket.socket(socket.AF_UNIX)
    line.connect(address)
    listed = [int(name) for name in os.listdir("/proc/self/fd")]
    files = [file for file in listed if file != line.fileno() and _is_open(file)]
    asked = json.dumps([arguments, dict(os.environ), pid_file, files])
    folder = os.open(".", os.O_RDONLY)  # open, because it may have been deleted
    socket.send_fds(line, [asked.encode() + b"\n"], [folder, *files])
    for number in PASSED_ON:
        signal.signal(number, lambda number, _: line.send(bytes([number])))
    for file in files:
        os.close(file)
    code = os.waitstatus_to_exitcode(int.from_bytes(line.recv(4), "little"))
    if code < 0:
        if -code in PASSED_ON:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _is_open(file: int) -> bool:
    try:
        os.fstat(file)
    except OSError:  # the folder that listed them
        return False
    return True


def keep_ready(address: str) -> list[str]:
    """Fork a server for each stand-in that connects, as long as standard input is open. Returns in the
    server, with its arguments."""
    waiting = socket.socket(socket.AF_UNIX)
    waiting.bind(address)
    waiting.listen(64)
    print("ready", flush=True)  # noqa: T201
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the guards
    while True:
        ready, _, _ = select.select([waiting, sys.stdin], [], [])
        if waiting not in ready:
            os._exit(0)
        line, _ = waiting.accept()
        if os.fork() == 0:
            waiting.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return _guard(line)
        line.close()


def _guard(line: socket.socket) -> list[str]:
    """Start the server, and stay between it and its stand-in."""
    raw, files, _, _ = socket.recv_fds(line, 1 << 16, MOST_FILES)
    while not raw.endswith(b"\n"):
        part = line.recv(1 << 16)
        if not part:
            os._exit(1)  # the stand-in was killed before it had said anything
        raw += part
    arguments, environment, pid_file, places = json.loads(raw)
    pid = os.fork()
    if pid == 0:
        line.close()
        _become(environment, pid_file, places, files)
        return list(arguments)
    for file in files:
        os.close(file)
    ended = os.pidfd_open(pid)
    while ended not in select.select([line.fileno(), ended], [], [])[0]:
        number = line.recv(1)
        os.kill(pid, number[0] if number else signal.SIGKILL)
        if not number:
            break
    _, status = os.waitpid(pid, 0)
    with suppress(OSError):  # the stand-in was killed
        line.send(status.to_bytes(4, "little"))
    os._exit(0)


def _become(environment: dict[str, str], pid_file: str, places: list[int], files: list[int]) -> None:
    """Be what the stand-in was started as."""
    os.setsid()
    folder, *handed = files
    os.fchdir(folder)
    os.close(folder)
    above = max(*places, *handed) + 1
    copies = [os.dup2(file, above + number) for number, file in enumerate(handed)]
    for file in handed:
        os.close(file)
    for copy, place in zip(copies, places, strict=True):
        os.dup2(copy, place)
        os.close(copy)
    # Python remembers of a stream whether it can be sought in; these may be files of another kind.
    for number, (name, mode) in enumerate((("stdin", "rb"), ("stdout", "wb"), ("stderr", "wb"))):
        old = getattr(sys, name)
        raw = os.fdopen(number, mode, closefd=False)
        setattr(sys, name, TextIOWrapper(raw, old.encoding, old.errors, line_buffering=old.line_buffering))
    os.environ.clear()
    os.environ.update(environment)
    with open(pid_file, "w") as note:
        note.write(str(os.getpid()))


if __name__ == "__main__":
    if sys.argv[1] == "stand-in":
        stand_in(sys.argv[2], sys.argv[3], sys.argv[4:])
    else:
        import gc
        from importlib import import_module

        from backstory.surfaces.cli.main import main

        for name in ("surfaces.mcp.start", "surfaces.mcp.server", "recall.search", "recall.index"):
            import_module(f"backstory.{name}")
        gc.freeze()  # so that servers leave the memory that they share alone
        sys.argv = keep_ready(sys.argv[2])
        main()
