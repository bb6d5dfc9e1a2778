"""What the tests of the worker share: seeing every process that came of one, and workers to be killed.

Whoever detaches itself would be init's to look after, and out of sight. `Household` asks the kernel to hand
such orphans to the test instead, so that nothing which a test started can hide.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.helpers.chaos import SECONDS, SOURCE, Json, eventually, rows

PR_SET_CHILD_SUBREAPER = 36


def stat(pid: int) -> tuple[int, str] | None:
    """(parent, state) of a process; None when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:  # a Path takes three times as long
            text = file.read().decode(errors="replace")
    except OSError:
        return None
    state, parent = text.rpartition(")")[2].split()[:2]
    return int(parent), state


def children(pid: int) -> list[int]:
    """Its children, zombies too."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [child for child in pids if (found := stat(child)) and found[0] == pid]


def descendants(pid: int) -> list[int]:
    found = children(pid)
    return found + [one for child in found for one in descendants(child)]


def is_running(pid: int) -> bool:
    found = stat(pid)
    return found is not None and found[1] != "Z"


def command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def listening(pid: int) -> list[str]:
    """The sockets of a process that wait for somebody to connect, and those for datagrams."""
    inodes = set()
    with suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                target = os.readlink(f"/proc/{pid}/fd/{name}")
                if target.startswith("socket:["):
                    inodes.add(target[8:-1])
    found = []
    for table in ("tcp", "tcp6", "udp", "udp6"):
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[9] in inodes and (fields[3] == "0A" or table.startswith("udp")):
                    found.append(f"{table} {fields[1]}")
    return found


def holders(path: Path) -> list[int]:
    """Processes that have a file open, or one that belongs to it."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            for handle in os.listdir(f"/proc/{name}/fd"):
                with suppress(OSError):
                    if os.readlink(f"/proc/{name}/fd/{handle}").startswith(str(path)):
                        found.append(int(name))
    return sorted(set(found) - {os.getpid()})


class Household:
    """All that the test started and all that came of it."""

    def __init__(self) -> None:
        self._before = set(children(os.getpid()))

    def orphans(self) -> list[int]:
        """Those that detached themselves, and whose parents have left; the dead among them are buried, as
        init would do."""
        living = []
        for pid in children(os.getpid()):
            if pid in self._before:
                continue
            found = stat(pid)
            if found and found[1] == "Z":
                with suppress(ChildProcessError):  # a Popen has waited for it just now
                    os.waitpid(pid, os.WNOHANG)
            elif found:
                living.append(pid)
        return living

    def workers(self) -> list[int]:
        return [pid for pid in self.orphans() if "backstory.surfaces import worker" in command(pid)]

    def is_empty(self, seconds: float = SECONDS) -> bool:
        return eventually(lambda: not self.orphans(), seconds)

    def end(self) -> None:
        """Nothing of a failed test stays behind."""
        for pid in self.orphans():
            for one in (*descendants(pid), pid):
                with suppress(ProcessLookupError):
                    os.kill(one, signal.SIGKILL)
        eventually(lambda: not self.orphans(), 5)


@contextmanager
def household() -> Iterator[Household]:
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    house = Household()
    try:
        yield house
    finally:
        house.end()
        libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


# --- workers ------------------------------------------------------------------------------------------------

# A synthesizer that finds one thing in every item, so that whatever is seen twice or not at all shows.
EACH = """
import asyncio, os, signal, sys
sys.path.insert(0, sys.argv[1])
from dataclasses import dataclass
from backstory.model import Findings, Observation, Spent, Summary
from backstory.surfaces import worker
from backstory.synthesis import runner as within

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

class Each:
    name = "local"
    seconds = 0.0
    async def observe(self, batch):
        await asyncio.sleep(self.seconds)
        found = [
            Observation("discovery", f"Item {item.id}", f"Item {item.id} is a {item.tool}.", cites=(item.id,))
            for item in batch.items
        ]
        told = Summary("r", "", "", f"{len(batch.items)} items", "", (), (), "")
        spent = Spent("each", 1, len(batch.items), 0, 0, 0, 0.0)
        return Findings(tuple(found), told if batch.wants_summary else None, spent)
    async def close(self, session_id=None):
        pass

worker.Local = Each
"""
GO = """
worker.main()
"""


# Forks workers that have everything imported: most of a worker's time is Python's start. The parent in
# between leaves at once, so that the worker is an orphan and thereby the child of the test that keeps a
# household. claude_agent_sdk takes longer to import than all the rest, and most workers never ask Claude: it
# is imported for the first that does, before the fork, so that the next ones have it.
WORKER_FORKS = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from backstory.surfaces import worker
for line in sys.stdin:
    program, args, env = json.loads(line)
    if env.get("BACKSTORY_SYNTHESIZER") == "claude":
        import claude_agent_sdk
    parent_in_between = os.fork()
    if parent_in_between:
        os.waitpid(parent_in_between, 0)
        os.write(1, b"\\n")
        continue
    pid = os.fork()
    if pid:
        os.write(1, b"%d" % pid)
        os._exit(0)
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    os.environ.clear()
    os.environ.update(env)
    sys.argv[2:] = args
    exec(program, {"__name__": "__main__"})
    break
"""


class ForkedWorker:
    """To be used like a Popen."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._handle = os.pidfd_open(pid)

    def wait(self, seconds: float = SECONDS) -> int:
        if self.returncode is None:
            assert select.select([self._handle], [], [], seconds)[0], f"it still runs after {seconds} s"
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def end(self) -> None:
        self.kill()
        self.wait()
        os.close(self._handle)


class WorkerForks:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @contextmanager
    def started(
        self, program: str, *args: str, env: Mapping[str, str] | None = None
    ) -> Iterator[ForkedWorker]:
        """In a session of its own, as hooks start it. It is gone afterwards, whatever became of the test."""
        worker = self._fork(program, args, env)
        try:
            yield worker
        finally:
            worker.end()

    def run(
        self, program: str = EACH + GO, env: Mapping[str, str] | None = None, seconds: float = SECONDS
    ) -> int:
        """To its end; the exit code, negative where a signal ended it."""
        with self.started(program, env=env) as worker:
            return worker.wait(seconds)

    def _fork(self, program: str, args: Sequence[str], env: Mapping[str, str] | None) -> ForkedWorker:
        assert self._process.stdin and self._process.stdout
        request = [program, args, dict(os.environ if env is None else env)]
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        return ForkedWorker(int(self._process.stdout.readline()))


@contextmanager
def worker_forks() -> Iterator[WorkerForks]:
    """To be opened before the household, which would count it otherwise."""
    command = [sys.executable, "-I", "-X", "utf8", "-c", WORKER_FORKS, SOURCE]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield WorkerForks(process)


def worker_pid(data: Path) -> int | None:
    """The worker that says that it runs, if it does."""
    with suppress(OSError, ValueError):
        pid = int((data / "worker.lock").read_text())
        return pid if is_running(pid) else None
    return None


def awaited_pid(data: Path, seconds: float = SECONDS) -> int:
    assert eventually(lambda: worker_pid(data) is not None, seconds), "no worker runs"
    pid = worker_pid(data)
    assert pid is not None
    return pid


def settled(data: Path) -> bool:
    """Was there something in the queue, and does nothing wait in it?"""
    found = queue_of(data)
    return bool(found) and all(row["processed_at_epoch"] is not None for row in found)


def queue_of(data: Path) -> list[Json]:
    """What is or was in the queue, oldest first; nothing as long as there is no store."""
    with suppress(sqlite3.OperationalError):
        return rows(data, "SELECT * FROM observation_queue ORDER BY created_at_epoch, id")
    return []
