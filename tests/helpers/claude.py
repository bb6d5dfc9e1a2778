"""Runs the real Claude Code, offline, in a home of its own.

    env = environment(tmp_path / "home", model.url)
    result = run("please remember this", cwd=project, env=env, plugin_dir=REPOSITORY)
    assert result.code == 0 and result.text == "done"

The program is the one bundled in the `claude-agent-sdk` wheel, so a test needs no installation and
meets a known version. It talks to nothing but the model at the given address (see scripted_model).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

Json = dict[str, Any]

TIMEOUT = 60.0
GRACE = 3.0
SERVERS = ("memory",)
NO_SERVERS = ()


@dataclass(frozen=True, slots=True)
class Result:
    code: int
    stdout: str
    stderr: str
    timed_out: bool

    @property
    def messages(self) -> list[Json]:
        """The stream-json messages; lines that are not JSON are left out."""
        parsed = []
        for line in self.stdout.splitlines():
            with suppress(ValueError):
                parsed.append(json.loads(line))
        return [message for message in parsed if isinstance(message, dict)]

    @property
    def init(self) -> Json:
        """What the session started with: tools, mcp_servers, plugins, ..."""
        return next(m for m in self.messages if m.get("type") == "system" and m.get("subtype") == "init")

    @property
    def text(self) -> str:
        """The last answer."""
        return next((str(m["result"]) for m in reversed(self.messages) if "result" in m), "")


def binary() -> Path:
    """The program itself. Where it is missing the tests fail: skipped, they would show nothing."""
    spec = find_spec("claude_agent_sdk")
    assert spec is not None and spec.origin is not None, "no Claude Code here; make test installs it"
    return Path(spec.origin).parent / "_bundled" / "claude"


def environment(home: Path, model_url: str) -> dict[str, str]:
    """A new one and not a copy of ours: a developer's CLAUDE_*, BACKSTORY_* or XDG_* would leak in."""
    tmp = home / "tmp"
    tmp.mkdir(parents=True, exist_ok=True)
    return {
        "PATH": os.environ["PATH"],
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        "HOME": str(home),
        "TMPDIR": str(tmp),
        "CLAUDE_CODE_TMPDIR": str(tmp),
        "ANTHROPIC_BASE_URL": model_url,
        "ANTHROPIC_API_KEY": "test-key",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "CLAUDE_CODE_MCP_STARTUP_WAIT_MS": "10000",  # a busy machine starts our servers late
        "BUN_JSC_useDFGJIT": "0",  # a session is over before optimised code has paid for its compiling
        "BACKSTORY_SYNTHESIZER": "local",  # the worker would take the steps scripted for the session
        "BACKSTORY_WORKER_IDLE_SECONDS": "0",
        "IS_SANDBOX": "1",  # root may skip permissions only in a sandbox; containers run tests as root
    }


def run(
    prompt: str,
    *,
    cwd: Path,
    env: Mapping[str, str],
    plugin_dir: Path | None = None,
    servers: Sequence[str] = SERVERS,
    extra: Sequence[str] = (),
    timeout: float = TIMEOUT,
) -> Result:
    """One turn, one session: `claude -p PROMPT`."""
    with _started([*_session(plugin_dir, servers, extra), "--", prompt], cwd, env, timeout) as claude:
        claude.close_stdin()
        claude.lines.extend(claude.stdout)
    return claude.result()


def converse(
    prompts: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    plugin_dir: Path | None = None,
    servers: Sequence[str] = SERVERS,
    extra: Sequence[str] = (),
    timeout: float = TIMEOUT,
) -> Result:
    """One session of several turns. Slash commands such as /compact and /clear work too."""
    command = [*_session(plugin_dir, servers, extra), "--input-format", "stream-json"]
    with _started(command, cwd, env, timeout) as claude:
        for prompt in prompts:
            claude.send({"type": "user", "message": {"role": "user", "content": prompt}})
            # Prompts that arrive during a turn may be folded into it, so wait for this one's result.
            for line in claude.stdout:
                claude.lines.append(line)
                if '"type":"result"' in line:
                    break
        claude.close_stdin()
        claude.lines.extend(claude.stdout)
    return claude.result()


def killed(
    prompt: str,
    when: Callable[[], bool],
    *,
    cwd: Path,
    env: Mapping[str, str],
    plugin_dir: Path | None = None,
    servers: Sequence[str] = SERVERS,
    timeout: float = TIMEOUT,
) -> None:
    """One turn that is ended by SIGKILL, together with all that Claude Code has started in its group."""
    with _started([*_session(plugin_dir, servers, ()), "--", prompt], cwd, env, timeout) as claude:
        claude.close_stdin()
        while not when() and claude.process.poll() is None:
            time.sleep(0.02)
        os.killpg(claude.process.pid, signal.SIGKILL)


def cli(*args: str, env: Mapping[str, str], cwd: Path | None = None, timeout: float = TIMEOUT) -> Result:
    """A command of Claude Code that is no session: cli("plugin", "list", "--json", env=env)."""
    # Not in HOME: there the user's settings would be the project's as well.
    with _started(list(args), cwd or Path(env["TMPDIR"]), env, timeout) as claude:
        claude.close_stdin()
        claude.lines.extend(claude.stdout)
    return claude.result()


def _session(plugin_dir: Path | None, servers: Sequence[str], extra: Sequence[str]) -> list[str]:
    plugin = ["--plugin-dir", str(plugin_dir)] if plugin_dir else []
    stream = ["--output-format", "stream-json", "--verbose"]
    return ["-p", "--dangerously-skip-permissions", *stream, *plugin, *without_other_servers(servers), *extra]


def without_other_servers(servers: Sequence[str]) -> list[str]:
    """Options for a session with these of the plugin's MCP servers, as a user may deny the others. Each of
    them takes longer than the session itself, so tests start the ones that they use."""
    denied = [{"serverName": f"plugin:backstory:{name}"} for name in SERVERS if name not in servers]
    return ["--settings", json.dumps({"deniedMcpServers": denied})] if denied else []


class _Claude:
    """A running Claude Code and what it has printed so far."""

    def __init__(self, process: subprocess.Popen[str], stderr: IO[str]) -> None:
        assert process.stdin is not None and process.stdout is not None
        self.process, self.stdin, self.stdout, self.stderr = process, process.stdin, process.stdout, stderr
        self.lines: list[str] = []
        self.errors = ""
        self.timed_out = False

    def send(self, message: Json) -> None:
        with suppress(BrokenPipeError):  # it ended early; its exit code and stderr say why
            self.stdin.write(json.dumps(message) + "\n")
            self.stdin.flush()

    def close_stdin(self) -> None:
        with suppress(BrokenPipeError):
            self.stdin.close()

    def stop(self) -> None:
        # Asked first: hooks run in sessions of their own, out of a group signal's reach, and only
        # Claude Code can end them. Then the whole group, so that nothing keeps our pipes open.
        self.timed_out = self.process.poll() is None
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(GRACE)
            os.killpg(self.process.pid, signal.SIGKILL)

    def result(self) -> Result:
        return Result(self.process.returncode, "".join(self.lines), self.errors, self.timed_out)


@contextmanager
def _started(args: list[str], cwd: Path, env: Mapping[str, str], timeout: float) -> Iterator[_Claude]:
    program = binary()
    # A file for stderr: nobody reads that pipe while the turns are going on.
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as stderr:
        process = subprocess.Popen(
            [str(program), *args],
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        claude = _Claude(process, stderr)
        clock = threading.Timer(timeout, claude.stop)
        clock.start()
        try:
            yield claude
            process.wait()
        finally:
            clock.cancel()
            if process.poll() is None:
                claude.stop()
                process.wait()
            claude.close_stdin()
            claude.stdout.close()
            stderr.seek(0)
            claude.errors = stderr.read()
