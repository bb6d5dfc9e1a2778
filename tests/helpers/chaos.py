"""What the capture and drain tests share: payloads in the client's shapes, a spool to put them in, processes
to drain it with, and a way to kill those at a chosen instant.

Everything here is real: files, sh, SQLite, SIGKILL. The killing is done by the victim itself (`suicidal`), so
that it happens between two given system calls and not roughly there.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import select
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backstory.intake.drain import Drained
from backstory.intake.drain import drain as intake_drain
from backstory.memory.turn import Turn
from backstory.store import turns
from backstory.store.file.connection import connect
from backstory.surfaces import worker
from tests.conftest import HOOK, REPOSITORY

Json = dict[str, Any]

NOW = 1_800_000_000_000  # the fake clock of tests that need one, in milliseconds
MINUTE = 60_000
DAY = 24 * 3600 * 1000
CWD = "/somewhere/project"
PYTHON = os.path.realpath(sys.executable)  # not a version manager's shim
SOURCE = str(REPOSITORY / "src")
SECONDS = 45.0  # for whatever a test waits for; nothing should take as long, however busy the machine is


# --- payloads, as Claude Code 2.1 sends them ----------------------------------------------------------------


def event(name: str, **fields: object) -> Json:
    base = {
        "session_id": "session-1",
        "transcript_path": "/somewhere/.claude/projects/-somewhere-project/session-1.jsonl",
        "cwd": CWD,
        "permission_mode": "default",
        "hook_event_name": name,
    }
    return {**base, **fields}


def tool_use(tool: str, tool_input: object, tool_response: object, **fields: object) -> Json:
    return event(
        "PostToolUse",
        **{
            "tool_name": tool,
            "tool_input": tool_input,
            "tool_response": tool_response,
            "tool_use_id": f"toolu_{uuid.uuid4().hex[:24]}",
            "duration_ms": 27,
            **fields,
        },
    )


def bash(command: str, stdout: str = "", stderr: str = "", **fields: object) -> Json:
    response = {
        "stdout": stdout,
        "stderr": stderr,
        "interrupted": False,
        "isImage": False,
        "noOutputExpected": False,
    }
    return tool_use("Bash", {"command": command, "description": "a command"}, response, **fields)


def prompt(text: str, **fields: object) -> Json:
    return event("UserPromptSubmit", **{"prompt": text, "prompt_id": str(uuid.uuid4()), **fields})


# --- the spool ----------------------------------------------------------------------------------------------


def put(
    data: Path, payload: Json | bytes, *, at: int | None = None, name: str = "", into: str = "new"
) -> str:
    """A payload as the hook would have left it; the file's time is the event's."""
    for part in ("tmp", "new", "failed"):
        if not os.path.isdir(f"{data}/spool/{part}"):
            (data / "spool" / part).mkdir(parents=True, mode=0o700, exist_ok=True)
    name = name or str(uuid.uuid4())
    path = f"{data}/spool/{into}/{name}"
    with open(path, "wb") as file:
        file.write(payload if isinstance(payload, bytes) else json.dumps(payload).encode())
    if at is not None:
        os.utime(path, ns=(at * 1_000_000, at * 1_000_000))
    return name


def spooled(data: Path, part: str = "new") -> list[str]:
    folder = data / "spool" / part
    return sorted(os.listdir(folder)) if folder.is_dir() else []


def failures(data: Path) -> dict[str, str]:
    """Payload name -> reason; every payload has a reason and every reason a payload."""
    names = spooled(data, "failed")
    payloads = {name for name in names if not name.endswith(".reason")}
    assert {name.removesuffix(".reason") for name in names if name.endswith(".reason")} == payloads
    folder = data / "spool" / "failed"
    return {name: (folder / f"{name}.reason").read_text().strip() for name in payloads}


def log_text(data: Path) -> str:
    path = data / "logs" / "backstory.log"
    return path.read_text() if path.exists() else ""


# --- draining and looking -----------------------------------------------------------------------------------


def drain(data: Path, now: int = NOW) -> Drained:
    db = connect(str(data / "backstory.db"))
    try:
        return intake_drain(db, str(data / "spool"), now=now)
    finally:
        db.close()


def settle(data: Path, now: int = NOW) -> None:
    """What the worker does before it looks for items."""
    with closing(connect(str(data / "backstory.db"))) as db:
        worker.settle(db, now)


def rows(data: Path, sql: str, *values: object) -> list[Json]:
    db = sqlite3.connect(data / "backstory.db")
    try:
        db.row_factory = sqlite3.Row
        return [dict(row) for row in db.execute(sql, values)]
    finally:
        db.close()


def contents(data: Path) -> list[str]:
    """What traces and notes say, oldest first."""
    memories = "SELECT content FROM memories WHERE kind <> 'turn' ORDER BY created_at, row"
    return [row["content"] for row in rows(data, memories)]


def turns_of(data: Path, session_id: str = "session-1") -> list[Turn]:
    """The turns of a session, oldest first."""
    db = connect(str(data / "backstory.db"))
    try:
        return turns.of_session(db, session_id)
    finally:
        db.close()


def assert_sound(data: Path) -> None:
    """SQLite finds nothing wrong, and the keyword index says the same as the table it indexes."""
    db = sqlite3.connect(data / "backstory.db")
    try:
        assert [row[0] for row in db.execute("PRAGMA integrity_check")] == ["ok"]
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
        db.execute("INSERT INTO memories_fts (memories_fts, rank) VALUES ('integrity-check', 1)")
    finally:
        db.close()


# --- processes ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ran:
    code: int
    stdout: bytes
    stderr: bytes
    seconds: float  # until the hook itself was gone

    @property
    def silent(self) -> bool:
        return not self.stdout and not self.stderr

    @property
    def line(self) -> str:
        """What the user is shown."""
        return str(json.loads(self.stdout or b"{}").get("systemMessage", ""))

    @property
    def context(self) -> str:
        """What the model is told."""
        answer = json.loads(self.stdout or b"{}").get("hookSpecificOutput", {})
        return str(answer.get("additionalContext", ""))


def run_hook(
    payload: Json | bytes,
    *args: str,
    env: Mapping[str, str] | None = None,
    shell: Sequence[str] = ("sh",),
    script: Path = HOOK,
    cwd: Path | None = None,
) -> Ran:
    """Run hook.sh to its end, and wait until what it started in the background is gone as well."""
    # Whoever descends from the hook holds the writing end, detached or not: at end of file all are gone.
    witness, held = os.pipe()
    try:
        started = time.monotonic()
        with subprocess.Popen(
            [*shell, str(script), *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=None if env is None else dict(env),
            cwd=cwd,
            pass_fds=(held,),
        ) as hook:
            os.close(held)
            held = -1
            raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
            stdout, stderr = hook.communicate(raw, timeout=SECONDS)
            seconds = time.monotonic() - started
        assert select.select([witness], [], [], SECONDS)[0], "the hook's background process does not end"
        assert os.read(witness, 1) == b""
    finally:
        os.close(witness)
        if held >= 0:
            os.close(held)
    return Ran(hook.returncode, stdout, stderr, seconds)


@contextmanager
def a_worker(data: Path) -> Iterator[None]:
    """As if one were at work: hooks start no other."""
    handle = os.open(data / "worker.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.write(handle, b"4711\n")
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def hook_program() -> str:
    """The very program that hook.sh hands to Python."""
    found = re.search(r"^run='([^']+)'$", HOOK.read_text(), re.MULTILINE)
    assert found, "hook.sh starts Python in another way now"
    return found[1]


def start(program: str, *args: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Python as hook.sh starts it, with another program."""
    return subprocess.Popen(
        [PYTHON, "-I", "-S", "-c", program, SOURCE, *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=None if env is None else dict(env),
    )


DRAIN = """
import os, signal, sys, time
sys.path.insert(0, sys.argv[1])
from backstory.intake.drain import drain
from backstory.memory.turn import Turn
from backstory.store import turns
from backstory.store.file.connection import connect

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

folder = sys.argv[2]
# the line
db = connect(folder + "/backstory.db")
"""
GO = """
drain(db, folder + "/spool", now=int(time.time() * 1000))
db.close()
"""


def suicidal(call: str, nth: int) -> str:
    """A drain that kills itself just before the nth call of a function of `os` with a path in the spool."""
    return f"""{DRAIN}
real, calls = os.{call}, 0
def counted(*args, **how):
    global calls
    calls += "/spool/" in str(args[0])
    if calls == {nth}:
        die()
    return real(*args, **how)
os.{call} = counted
{GO}"""


def suicidal_at_statement(statement: str, nth: int) -> str:
    """A drain that kills itself when SQLite is about to run the nth statement that starts like this."""
    return f"""{DRAIN}
seen = 0
def traced(sql):
    global seen
    seen += sql.startswith({statement!r})
    if seen == {nth}:
        die()
db.set_trace_callback(traced)
{GO}"""


# What follows this is done by a new process for every line that is read, so that Python starts only once; its
# exit code is written.
FORK = """
for line in sys.stdin:
    child = os.fork()
    if not child:
        break
    os.write(1, b"%d\\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
else:
    sys.exit()
"""


def exit_code_of_a_fork(process: subprocess.Popen[bytes], line: float) -> int:
    assert process.stdin and process.stdout
    process.stdin.write(b"%r\n" % line)
    process.stdin.flush()
    return int(process.stdout.readline())


AT_THE_LINE = """
import os, signal
running = []
for _ in range({count}):
    child = os.fork()
    if not child:
        os.write(1, b".")
        sys.stdin.read()
        signal.alarm(60)  # ends one that hangs
        break
    running.append(child)
else:
    print(*[os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in running])
    sys.exit()
"""


def at_once(program: str, count: int, *args: str) -> list[int]:
    """Fork as many processes where the program says `# the line`, with everything imported, and let them go
    on when all are there; their exit codes."""
    with start(program.replace("# the line", AT_THE_LINE.format(count=count)), *args) as process:
        assert process.stdout
        assert process.stdout.read(count) == b"." * count
        codes, errors = process.communicate()
    assert errors == b""
    return [int(code) for code in codes.split()]


def eventually(condition: Callable[[], bool], seconds: float = SECONDS) -> bool:
    """Looks less often as time goes by: looking takes processor time from what is waited for."""
    started = time.monotonic()
    while not condition():
        waited = time.monotonic() - started
        if waited > seconds:
            return False
        time.sleep(min(max(0.005, waited / 20), 0.1))
    return True
