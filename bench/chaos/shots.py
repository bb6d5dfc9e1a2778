"""Children that do a piece of work and are killed by SIGKILL while they do it.

A child is forked with everything imported, so that nearly all of its life is work. What it acknowledges goes
through a pipe, which outlives it; a byte that it shares with its parent says whether it was at work when the
signal came. A kill before the work or after it counts for nothing.

Half of the kills come after a time, anywhere in what the work was seen to take. The others come just before
a call into the system or into SQLite: first a kind of call is drawn, like unlink, then one of those that were
counted, so that what is quickly done is hit as often as what takes long. Now and then a child is spared, to
measure again.
"""

from __future__ import annotations

import json
import mmap
import os
import random
import select
import signal
import statistics
import sys
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

SPARED = 12  # one of so many is let go on to its end
HANGS = 60.0  # seconds
AT_WORK, DONE = 1, 2
MODULES = {"posix", "fcntl", "_io", "sqlite3"}
HARMLESS = {"stat", "lstat", "fstat", "listdir", "access", "fspath", "getpid", "read", "readline", "readlink"}

COUNTED = "counted: "  # in what a child says

Say = Callable[[str], None]
Work = Callable[[Say], None]
Call = tuple[str, int]  # its name, and which of those


class Shot(NamedTuple):
    said: list[str]  # what it acknowledged
    ended: bool  # its work was done before anything could hit it


class Shooting:
    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)  # noqa: S311  to be repeated
        self.shots = 0  # at which a child was to be killed
        self.kills = 0  # those that hit it at work
        self._runs = 0
        self._seconds = deque[float](maxlen=5)  # of the last that were spared
        self._calls: dict[str, int] = {}  # how many of each name
        self._shared = mmap.mmap(-1, mmap.PAGESIZE)

    def at(self, work: Work, beside: Callable[[], None] | None = None) -> Shot:
        """Let a child do this work; `beside` is done as long as it lives."""
        self._runs += 1
        if not self._seconds or self._runs % SPARED == 1:
            return self._spared(work, beside, counting=False)
        if not self._calls or self._runs % SPARED == 2:
            return self._spared(work, beside, counting=True)
        self.shots += 1
        if self.dice.random() < 0.5:
            after = self.dice.uniform(0, statistics.median(self._seconds))
            said, code = self._run(work, beside, after=after)
        else:
            name = self.dice.choice(sorted(self._calls))
            said, code = self._run(work, beside, call=(name, self.dice.randint(1, self._calls[name])))
        self.kills += code == -signal.SIGKILL and self._shared[0] == AT_WORK
        return Shot(said, ended=code == 0)

    def _spared(self, work: Work, beside: Callable[[], None] | None, *, counting: bool) -> Shot:
        started = time.monotonic()
        said, code = self._run(work, beside, call=("", 0) if counting else None)
        assert code == 0
        if counting:
            self._calls = json.loads(said.pop().removeprefix(COUNTED))
        else:
            self._seconds.append(time.monotonic() - started)
        return Shot(said, ended=True)

    def _run(
        self,
        work: Work,
        beside: Callable[[], None] | None,
        *,
        after: float | None = None,
        call: Call | None = None,
    ) -> tuple[list[str], int]:
        self._shared[0] = 0
        heard, saying = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(heard)
            self._live(work, saying, call)
        os.close(saying)
        _wait(pid, HANGS if after is None else after, beside)
        with os.fdopen(heard, "rb") as pipe:
            said = pipe.read().decode().splitlines()
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert code in (0, -signal.SIGKILL), "\n".join(said)
        assert code == 0 or after is not None or call is not None, "it hangs"
        return said, code

    def _live(self, work: Work, saying: int, call: Call | None) -> None:
        code = 1
        counted = Counter[str]()
        try:
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, 0)
            os.dup2(saying, 1)  # what it prints is what it acknowledges
            os.dup2(nothing, 2)
            sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115
            if call is not None:
                self._die_before(call, counted)
            self._shared[0] = AT_WORK
            work(lambda words: void(os.write(saying, words.encode() + b"\n")))
            code = 0
        except SystemExit as end:  # of a command
            code = 1 if end.code else 0
        except BaseException:  # noqa: BLE001  the parent tells of it
            os.write(saying, traceback.format_exc().encode())
        finally:
            self._shared[0] = DONE
            sys.setprofile(None)
            if call == ("", 0):
                os.write(saying, f"{COUNTED}{json.dumps(counted)}\n".encode())
            os._exit(code)

    def _die_before(self, target: Call, counted: Counter[str]) -> None:
        """Every call into the system that Python makes is one into C: of a function in posix or fcntl, or of
        an open file; SQLite is asked to make the others."""

        def watch(frame: FrameType, event: str, call: Any) -> None:
            if event == "c_call" and call.__name__ not in HARMLESS and self._shared[0] == AT_WORK:
                origin = getattr(call, "__module__", None) or type(call.__self__).__module__
                if origin in MODULES:
                    name = call.__name__
                    counted[name] += 1
                    if (name, counted[name]) == target:
                        os.kill(os.getpid(), signal.SIGKILL)

        sys.setprofile(watch)


def void(_: object) -> None:
    """For a lambda whose value nobody wants."""


def _wait(pid: int, seconds: float, beside: Callable[[], None] | None) -> None:
    """Until it has ended, or is to be killed."""
    handle = os.pidfd_open(pid)
    try:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if select.select([handle], [], [], 0 if beside else left)[0]:
                return
            if beside:
                beside()
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    finally:
        os.close(handle)
