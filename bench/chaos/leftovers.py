"""Sessions of the real Claude Code, some of them killed: what still runs afterwards, and what still listens?

Whatever a session starts inherits its environment, and a variable there marks it, whoever its parent is by
then.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.conftest import REPOSITORY
from tests.helpers import claude
from tests.helpers.claude_terminal import at_terminal
from tests.helpers.processes import command, listening
from tests.helpers.scripted_model import ScriptedModel, say, use

MARK = "BACKSTORY_CHAOS_MARK"
IDLE = "2"  # seconds that a worker waits for more
LOOKS = 5
SECONDS = 60.0  # in which all must have ended
TEXT = "look at the tests please"

Amid = Callable[[], bool]
Way = Callable[[Path, dict[str, str], Amid], None]


@dataclass(slots=True)
class Row:
    sessions: int = 0
    killed: int = 0
    seen: int = 0  # processes of ours that ran meanwhile: else there would be nothing to find
    processes: int = 0
    ports: int = 0
    waited: float = 0.0  # seconds, after the last session
    notes: list[str] = field(default_factory=list)


def marked(mark: str) -> list[int]:
    """The processes with this mark, but for this one."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if wanted in file.read().split(b"\0"):
                    found.append(int(name))
        except OSError:  # it has ended, or is another user's
            continue
    return [pid for pid in found if pid != os.getpid()]


def eventually_none(mark: str, seconds: float) -> list[str]:
    """What runs though it had so many seconds to end. A program that is just being started has no environment
    for a moment, so there is none where none was seen several times."""
    deadline = time.monotonic() + seconds
    unseen = 0
    while unseen < LOOKS and time.monotonic() < deadline:
        unseen = 0 if (found := marked(mark)) else unseen + 1
        time.sleep(0.2)
    return [f"{pid} {command(pid)[:200]}" for pid in found] if unseen < LOOKS else []


def run(folder: Path, sessions: int, tell: Callable[[str], None], ways: Sequence[Way] | None = None) -> Row:
    row, ways = Row(), ways or WAYS
    mark = f"sessions-{os.getpid()}-{time.time_ns()}"
    project = folder / "project"
    project.mkdir(parents=True)
    (project / "CLAUDE.md").write_text("# Rules\n")
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    for number in range(sessions):
        way = ways[number % len(ways)]
        with ScriptedModel(BASH, BASH, VIEW, say("done").after(0 if way in ENDING else 30)) as model:
            env = claude.environment(folder / "home", model.url)
            # Where `backstory` is found the plugin's servers are it; else it would be set up first.
            env["PATH"] = f"{os.path.dirname(sys.executable)}:{env['PATH']}"
            env |= {"BACKSTORY_WORKER_IDLE_SECONDS": IDLE, MARK: mark}
            way(project, env, partial(_is_amid, row, model, mark))
        row.sessions += 1
        row.killed += way not in ENDING
        row.seen = max(row.seen, len(_ours(mark)))
        tell(f"session {row.sessions}: {way.__name__.replace('_', ' ')}")
    started = time.monotonic()
    row.notes = eventually_none(mark, SECONDS)
    row.waited = round(time.monotonic() - started, 1)
    row.processes = len(row.notes)
    ports = [f"{pid} listens at {port}" for pid in marked(mark) for port in listening(pid)]
    row.ports = len(ports)
    row.notes += ports
    return row


BASH = use("Bash", command="echo one; sleep 0.2")
VIEW = use("mcp__plugin_backstory_memory__docmem_create", root_id="harbour")


def _is_amid(row: Row, model: ScriptedModel, mark: str) -> bool:
    """The third step was asked for: hooks ran, and servers run."""
    row.seen = max(row.seen, len(_ours(mark)))
    return sum(bool(body.get("tools")) for body in model.requests) > 3


def _ours(mark: str) -> list[int]:
    return [pid for pid in marked(mark) if "backstory" in command(pid) and "claude" not in command(pid)[:200]]


def to_its_end(project: Path, env: dict[str, str], amid: Amid) -> None:
    assert claude.run(TEXT, cwd=project, env=env, plugin_dir=REPOSITORY).code == 0


def killed_with_its_group(project: Path, env: dict[str, str], amid: Amid) -> None:
    claude.killed(TEXT, amid, cwd=project, env=env, plugin_dir=REPOSITORY)


def left_by_exit(project: Path, env: dict[str, str], amid: Amid) -> None:
    with at_terminal(cwd=project, env=env, plugin_dir=REPOSITORY, servers=claude.SERVERS) as client:
        client.type(TEXT)
        client.wait(amid)
        client.leave()


def killed_alone(project: Path, env: dict[str, str], amid: Amid) -> None:
    """What it started is left without it."""
    with at_terminal(cwd=project, env=env, plugin_dir=REPOSITORY, servers=claude.SERVERS) as client:
        client.type(TEXT)
        client.wait(amid)
        client.process.kill()
        client.process.wait(SECONDS)


def hung_up(project: Path, env: dict[str, str], amid: Amid) -> None:
    """By what a terminal sends that is closed."""
    with at_terminal(cwd=project, env=env, plugin_dir=REPOSITORY, servers=claude.SERVERS) as client:
        client.type(TEXT)
        client.wait(amid)
        os.killpg(client.process.pid, signal.SIGHUP)
        client.process.wait(SECONDS)


WAYS = [to_its_end, killed_with_its_group, killed_alone, hung_up, left_by_exit]
ENDING = (to_its_end, left_by_exit)
