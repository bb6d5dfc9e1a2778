"""Running the commands that a CLAUDE.md would name, to see which of them start. This runs code of the
repository: only `backstory init --verify` does, after a person at a terminal has seen the commands and has
agreed.

Each command runs in a session of its own, with nothing to read, a time limit, and an environment that has
nothing but what tools are found by. Whatever it leaves behind is killed: its process group and, on Linux,
also what left that group, since it becomes a child of ours.

It runs as the user, so it can read what they can; HOME is theirs, because toolchains (rustup, nvm, Maven)
live there, and another one would hide no file, but make commands fail that work.
"""

from __future__ import annotations

import ctypes
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from backstory.claude_md.write import sections
from backstory.model import Command

SECONDS = 120.0
REST = 0.5  # seconds for the output of what has ended
GRACE = 5.0  # seconds for what was killed to be gone
TAIL = 8_000  # bytes of output that are kept
# Others may serve for ever, install, rewrite files or change a database.
HARMLESS_ROLES = frozenset(("build", "test", "one", "lint", "check"))
# Where tools live that are not found by PATH alone. Each names a folder, which is no secret.
FOLDERS = tuple(
    "ANDROID_HOME ASDF_DATA_DIR ASDF_DIR BUN_INSTALL CARGO_HOME CONDA_PREFIX DENO_DIR DOTNET_ROOT GEM_HOME"
    " GHCUP_INSTALL_BASE_PREFIX GOPATH GOROOT GRADLE_USER_HOME HEX_HOME JAVA_HOME MISE_DATA_DIR MIX_HOME"
    " NVM_DIR PNPM_HOME PYENV_ROOT RBENV_ROOT RUSTUP_HOME SDKMAN_DIR VIRTUAL_ENV VOLTA_HOME XDG_CACHE_HOME"
    " XDG_CONFIG_HOME XDG_DATA_HOME".split()
)
WORKS, FAILED, TIMED_OUT = "works", "failed", "timed out"
NOT_FOUND, USAGE_ERROR, NOT_RUN = "not found", "usage error", "not run"
SET_CHILD_SUBREAPER = 36  # Linux's number
_LANGUAGE = re.compile(r"[A-Za-z]{1,5}(?:_[A-Za-z]{2})?(?:\.[A-Za-z0-9-]{1,12})?(?:@[a-z]{1,10})?")
_USAGE = re.compile(
    r"^\s*usage:|unrecogni[sz]ed (?:option|argument|arguments|subcommand)|unknown (?:option|flag|command|task"
    r"|target|recipe|argument)|no such (?:option|command|subcommand|task|recipe)|invalid (?:option|choice)"
    r"|unexpected argument|missing script|no rule to make target|does not contain recipe|is not a task"
    r"|no makefile found|failed to spawn|the following arguments are required",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Check:
    """A command that can be run."""

    folder: str  # from the root, which is ""
    command: Command

    @property
    def is_marked(self) -> bool:
        """Is it run where nobody names it?"""
        return self.command.role in HARMLESS_ROLES


@dataclass(frozen=True, slots=True)
class Outcome:
    check: Check
    state: str
    code: int | None  # negative: the signal that ended it
    seconds: float
    tail: str  # of what it said, redacted

    @property
    def is_started(self) -> bool:
        return self.state in (WORKS, FAILED, TIMED_OUT)


def checks(folders: Mapping[str, Iterable[Command]]) -> list[Check]:
    """The commands of the file in each folder, each once: not those that the root leaves to another of these
    folders. One that cannot be shown as it is, or names something to fill in, is none."""
    found: dict[tuple[str, str], Check] = {}
    for folder, commands in folders.items():
        for command in commands:
            is_elsewhere = command.folder and command.folder in folders
            if not is_elsewhere and is_plain(command.line):
                found.setdefault((folder, command.line), Check(folder, command))
    return list(found.values())


def is_plain(line: str) -> bool:
    is_whole = not re.search(r"<[A-Za-z][\w -]*>|\[[A-Z_]+\]|…", line)
    return line.isprintable() and is_whole and sections.redacted(line) == line


def environment(of: Mapping[str, str], temporary: str) -> dict[str, str]:
    """What a command is given of the user's environment: how to find tools, and a language. No variable is
    taken that could have a secret in it."""
    path = [part for part in of.get("PATH", os.defpath).split(os.pathsep) if part.startswith("/")]
    folders = {name: of[name] for name in FOLDERS if name in of and os.path.isdir(of[name])}
    languages = {name: of[name] for name in ("LANG", "LC_ALL", "LC_CTYPE") if name in of}
    plain = {name: said for name, said in languages.items() if _LANGUAGE.fullmatch(said)}
    return {
        **folders,
        **plain,
        "PATH": os.pathsep.join(path),
        "HOME": of.get("HOME", "/"),
        "TMPDIR": temporary,
        "TERM": "dumb",
        "CI": "true",  # nobody is there to answer, or to watch
        "GIT_TERMINAL_PROMPT": "0",
    }


def run(
    root: str,
    wanted: Iterable[Check],
    of: Mapping[str, str],
    *,
    seconds: float = SECONDS,
    began: Callable[[Check], None] = lambda check: None,
) -> Iterator[Outcome]:
    """Run commands one after the other."""
    with tempfile.TemporaryDirectory(prefix="backstory-verify-", ignore_cleanup_errors=True) as temporary:
        for check in wanted:
            began(check)
            folder = os.path.join(root, check.folder)
            yield _outcome(check, *_run(check.command.line, folder, environment(of, temporary), seconds))


def _outcome(check: Check, code: int | None, seconds: float, output: bytes, is_all: bool) -> Outcome:
    text = sections.redacted(output.decode(errors="replace"))
    if code is None:
        state = TIMED_OUT
    elif code == 0:
        state = WORKS
    elif code in (126, 127):
        state = NOT_FOUND
    # Who is called wrongly says so and nothing else; a test that fails may say anything, but not first.
    elif is_all and _USAGE.search(text):
        state = USAGE_ERROR
    else:
        state = FAILED
    return Outcome(check, state, code, round(seconds, 1), text)


def _run(
    line: str, folder: str, variables: Mapping[str, str], seconds: float
) -> tuple[int | None, float, bytes, bool]:
    """Its exit code, if it ended in time; the seconds; the end of its output, and whether that is all."""
    shell = shutil.which("bash", path=variables["PATH"]) or "/bin/sh"
    began = time.monotonic()
    with _alone(), _ending_on_signals():
        before = _below(os.getpid())
        output = bytearray()
        process: subprocess.Popen[bytes] | None = None
        try:
            process = subprocess.Popen(
                [shell, "-c", line],
                cwd=folder,
                env=dict(variables),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            said = _follow(process, output, began + seconds)
            code = process.poll()
            took = time.monotonic() - began
        finally:
            _end(process, before)
    return code, took, bytes(output), said <= TAIL


def _follow(process: subprocess.Popen[bytes], output: bytearray, until: float) -> int:
    """Keep the end of what it says until it exits or its time is over; how much it said."""
    said = 0
    pipe = process.stdout
    while (now := time.monotonic()) < until:
        is_over = process.poll() is not None
        if is_over:
            until = min(until, now + REST)  # what it left behind may go on talking
        wait = 0.0 if is_over else min(0.1, until - now)
        if pipe and select.select([pipe], [], [], wait)[0]:
            part = os.read(pipe.fileno(), 65_536)
            said += len(part)
            output += part
            del output[:-TAIL]
            pipe = pipe if part else None
        elif is_over:
            break
        elif not pipe:
            time.sleep(wait)
    return said


def _end(process: subprocess.Popen[bytes] | None, before: frozenset[int]) -> None:
    """Kill what a command began and is still there."""
    if process:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
        if process.stdout:
            process.stdout.close()
    until = time.monotonic() + GRACE
    while (left := _below(os.getpid()) - before) and time.monotonic() < until:
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.01)


def _below(pid: int) -> frozenset[int]:
    """The processes that a process began, and those that these began; none where /proc does not tell."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if sys.platform == "linux" else ():
        if name.isdigit():
            with suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])  # its name may have brackets
                children.setdefault(parent, []).append(int(name))
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        new = [child for child in children.get(waiting.pop(), ()) if child not in found]
        found.update(new)
        waiting += new
    return frozenset(found)


@contextmanager
def _alone() -> Iterator[None]:
    """Whoever loses its parent becomes a child of ours, so that a daemon is found too."""
    if sys.platform != "linux":
        yield
        return
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@contextmanager
def _ending_on_signals() -> Iterator[None]:
    """A terminal that is closed ends us as Ctrl-C does: not before the command is ended."""

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    kept = {number: signal.signal(number, end) for number in (signal.SIGHUP, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
