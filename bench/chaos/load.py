"""Many sessions at once: is anything lost, and how long does Claude Code wait for a hook meanwhile?

Beside the hooks, and as often in the same run, an empty shell is started in the same way: what a busy machine
adds, it adds to both. Drains and workers run as in life, because prompts and ends of turns start them.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from chaos.kills import accepted, counted, now_ms
from chaos.leftovers import MARK, eventually_none
from tests.conftest import HOOK
from tests.helpers.chaos import Json, assert_sound, bash, drain, event, prompt, rows, spooled

SESSIONS = 20
TURN = 60  # tool uses between a prompt and the end of the turn
EMPTY = 10  # starts of a hook to one of an empty shell
DIRECT_RATE = 1_000  # events a second
TICK = 0.01  # seconds
PRINTED = "The quick brown fox jumps over the lazy dog.\n" * 30
ENDED = 120.0  # seconds in which what was left in the background must have ended


@dataclass(slots=True)
class Row:
    load: str
    seconds: float
    events: int = 0
    rate: float = 0.0  # of hook starts or of events written, a second
    left: int = 0  # in the spool when the load ended
    lost: int = 0
    twice: int = 0
    hook_p50_ms: float = 0.0
    hook_p99_ms: float = 0.0
    empty_p99_ms: float = 0.0
    ratio: float = 0.0  # of the two p99
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Starts:
    """What a session saw."""

    commands: list[str] = field(default_factory=list)  # whose hooks said that all is well
    hooks: list[float] = field(default_factory=list)  # seconds, of tool uses
    empty: list[float] = field(default_factory=list)
    started: int = 0
    failed: int = 0


def run(folder: Path, seconds: float, tell: Callable[[str], None]) -> list[Row]:
    done = []
    for make in (many_hooks, many_events):
        row = make(folder / make.__name__, seconds)
        tell(
            f"{row.load}: {row.rate:,.0f} a second, {row.lost} lost, {row.twice} twice, p99 x {row.ratio:.1f}"
        )
        done.append(row)
    return done


def many_hooks(data: Path, seconds: float) -> Row:
    """Sessions that run one tool after the other, as fast as the machine starts hooks."""
    row = Row(f"hooks of {SESSIONS} sessions", seconds)
    mark = f"hooks-{os.getpid()}-{random.random()}"  # noqa: S311
    env = environment(data, mark)
    heard = []
    until = time.monotonic() + seconds
    for number in range(SESSIONS):
        read, write = os.pipe()
        if not os.fork():
            try:
                os.close(read)
                with os.fdopen(write, "w") as pipe:
                    json.dump(asdict(session(f"s{number}", env, until)), pipe)
            finally:
                os._exit(0)
        os.close(write)
        heard.append(read)
    starts = Starts()
    for read in heard:
        with os.fdopen(read) as pipe:
            _add(starts, Starts(**json.load(pipe)))
        os.wait()
    row.events = starts.started
    row.rate = starts.started / seconds
    _settle(row, data, mark, starts)
    return row


def session(name: str, env: Mapping[str, str], until: float) -> Starts:
    seen = Starts()
    number = 0
    while time.monotonic() < until:
        hook(env, "prompt", prompt(f"go on with {name} {number}", session_id=name), seen)
        for _ in range(TURN):
            if number and time.monotonic() >= until:
                break
            number += 1
            if number % EMPTY == 1:
                seen.empty.append(_start(["sh", "-c", ":"], env, b"")[0])
            use(env, f"echo {name}-{number}", name, seen)
        said = event("Stop", session_id=name, last_assistant_message=f"{number} done")
        hook(env, "stop", said, seen)
    return seen


def use(env: Mapping[str, str], command: str, name: str, seen: Starts) -> None:
    payload = bash(command, stdout=PRINTED, session_id=name)
    seconds, code = _start(["sh", str(HOOK)], env, json.dumps(payload).encode())
    seen.hooks.append(seconds)
    seen.started += 1
    seen.failed += code != 0
    if code == 0:
        seen.commands.append(command)


def hook(env: Mapping[str, str], mode: str, payload: Json, seen: Starts) -> None:
    _, code = _start(["sh", str(HOOK), mode], env, json.dumps(payload).encode())
    seen.started += 1
    seen.failed += code != 0


def _start(command: list[str], env: Mapping[str, str], raw: bytes) -> tuple[float, int]:
    """Until it has exited, with the payload in a pipe."""
    theirs, ours = os.pipe()
    actions = [
        (os.POSIX_SPAWN_DUP2, theirs, 0),
        (os.POSIX_SPAWN_CLOSE, ours),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    started = time.monotonic()
    pid = os.posix_spawnp(command[0], command, env, file_actions=actions)
    os.close(theirs)
    try:
        os.write(ours, raw)
    except BrokenPipeError:
        pass  # the empty shell does not read
    os.close(ours)
    _, status = os.waitpid(pid, 0)
    return time.monotonic() - started, os.waitstatus_to_exitcode(status)


def many_events(data: Path, seconds: float) -> Row:
    """Events that come faster than any machine starts hooks, written as hook.sh writes them; every second a
    prompt or the end of a turn, which starts a drain."""
    row = Row("events written", seconds)
    mark = f"events-{os.getpid()}-{random.random()}"  # noqa: S311
    env = environment(data, mark)
    seen = Starts()
    (data / "spool").mkdir(parents=True)
    read, write = os.pipe()
    started = time.monotonic()
    if not os.fork():
        try:
            os.write(write, str(_write(data, started, seconds)).encode())
        finally:
            os._exit(0)
    os.close(write)
    turns = 0
    while (passed := time.monotonic() - started) < seconds:
        name = f"h{turns % SESSIONS}"
        if passed > turns:
            turns += 1
            mode, said = ("prompt", prompt(f"go on {turns}", session_id=name))
            if turns % 2 == 0:
                mode, said = "stop", event("Stop", session_id=name, last_assistant_message="done")
            hook(env, mode, said, seen)
        use(env, f"echo beside-{seen.started}", name, seen)
        seen.empty.append(_start(["sh", "-c", ":"], env, b"")[0])
        time.sleep(0.05)
    with os.fdopen(read) as pipe:
        written = int(pipe.read())
    os.wait()
    row.rate = written / (time.monotonic() - started)
    row.events = written + seen.started
    seen.commands += [f"echo direct-{number}" for number in range(written)]
    _settle(row, data, mark, seen)
    return row


def _write(data: Path, started: float, seconds: float) -> int:
    written = 0
    while (passed := time.monotonic() - started) < seconds:
        while written < passed * DIRECT_RATE:
            accepted(
                data, bash(f"echo direct-{written}", stdout=PRINTED, session_id=f"s{written % SESSIONS}")
            )
            written += 1
        time.sleep(TICK)
    return written


def environment(data: Path, mark: str) -> dict[str, str]:
    data.mkdir(parents=True, exist_ok=True)
    # The interpreter itself: a version manager's would take longer than all the rest.
    (data.parent / "bin").mkdir(exist_ok=True)
    python = data.parent / "bin" / "python3"
    if not python.exists():
        python.symlink_to(os.path.realpath(sys.executable))
    return {
        "PATH": f"{python.parent}:/usr/bin:/bin",
        "HOME": str(data.parent),
        "BACKSTORY_HOME": str(data),
        "BACKSTORY_SYNTHESIZER": "local",
        "BACKSTORY_WORKER_IDLE_SECONDS": "0.2",
        "CLAUDE_PROJECT_DIR": str(data.parent),
        MARK: mark,
    }


def _add(starts: Starts, more: Starts) -> None:
    starts.commands += more.commands
    starts.hooks += more.hooks
    starts.empty += more.empty
    starts.started += more.started
    starts.failed += more.failed


def _settle(row: Row, data: Path, mark: str, seen: Starts) -> None:
    row.left = len(spooled(data))
    if running := eventually_none(mark, ENDED):
        row.notes.append(f"still running: {running}")
    drain(data, now=now_ms())
    found = counted(data)
    missing = set(seen.commands) - found.keys()
    row.lost = len(missing) + len(spooled(data, "failed")) + seen.failed + len(spooled(data))
    row.twice = sum(times - 1 for times in found.values())
    stored = rows(data, "SELECT count(*) AS n FROM events")[0]["n"]  # with prompts and ends of turns
    row.lost += max(0, row.events - stored - len(missing))
    row.twice += max(0, stored - row.events)
    row.notes += sorted(missing)[:5]
    assert_sound(data)
    shutil.rmtree(data)
    row.hook_p50_ms = _share(seen.hooks, 0.5)
    row.hook_p99_ms, row.empty_p99_ms = _share(seen.hooks, 0.99), _share(seen.empty, 0.99)
    row.ratio = round(row.hook_p99_ms / row.empty_p99_ms, 2)


def _share(seconds: list[float], share: float) -> float:
    ordered = sorted(seconds)
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000, 2)
