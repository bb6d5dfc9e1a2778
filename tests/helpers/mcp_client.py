"""The MCP server as a process of its own, spoken to over stdio, from plain functions.

`serving` is the official client. Tests share a server where they can: its project is where CLAUDE_PROJECT_DIR
leads at each call, so a link there gives every test a project of its own. `Wire` sends lines as they are, for
what the official client would not send. Both have the server forked (`forked_server`), unless it is to be
`cold`: started as Claude Code starts it.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import CallToolResult, TextContent, Tool

from tests.helpers.chaos import SECONDS

MCP = [sys.executable, "-P", "-m", "backstory", "mcp"]
COMMAND = [*MCP, "memory"]
SAYS_ITS_PID = 'echo $$ >"$0" && exec "$@"'
FORKED = Path(__file__).with_name("forked_server.py")


@dataclass(frozen=True, slots=True)
class Reply:
    text: str
    is_error: bool


class Server:
    """A running server. Threads may share one: several calls may be under way at once."""

    def __init__(self, portal: BlockingPortal, client: ClientSession, pid: int) -> None:
        self._portal = portal
        self._client = client
        self.pid = pid

    def call(self, tool: str, **arguments: object) -> Reply:
        result = self._portal.call(self._client.call_tool, tool, arguments)
        assert isinstance(result, CallToolResult)
        (block,) = result.content
        assert isinstance(block, TextContent)
        return Reply(block.text, bool(result.is_error))

    def ask(self, tool: str, **arguments: object) -> str:
        """The answer to a call that should work."""
        reply = self.call(tool, **arguments)
        assert not reply.is_error, reply.text
        return reply.text

    def refusal(self, tool: str, **arguments: object) -> str:
        """What a call is told that should not work: one sentence, nothing of our insides."""
        reply = self.call(tool, **arguments)
        assert reply.is_error, reply.text
        assert_a_sentence(reply.text)
        return reply.text

    def add(self, content: str, **arguments: object) -> str:
        """Add a memory that is new; its id."""
        text = self.ask("memory_add", content=content, **arguments)
        made = re.fullmatch(r"Memory created: (mem_\w+) \(sector: \w+, salience: \d\.\d\d\)", text)
        assert made, text
        return made[1]

    def search(self, query: str, **arguments: object) -> list[str]:
        """The ids that a search finds, best first."""
        return ids(self.ask("memory_search", query=query, **arguments))

    def tools(self) -> list[Tool]:
        return self._portal.call(self._client.list_tools).tools

    @property
    def instructions(self) -> str:
        return self._client.instructions or ""


def processor_time(pid: int) -> float:
    """Seconds that a process has had so far, as Linux tells."""
    with open(f"/proc/{pid}/stat") as file:
        user, system = file.read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def ids(reply: str) -> list[str]:
    return re.findall(r"^ID: (\S+)$", reply, re.MULTILINE)


def assert_a_sentence(text: str) -> None:
    assert text.strip()
    assert len(text.splitlines()) == 1, text
    assert len(text) < 500, text
    for inside in ("Traceback", "Exception", 'File "', "pydantic", "sqlite3", "site-packages"):
        assert inside not in text


@contextmanager
def serving(
    data: Path,
    project: Path,
    session_id: str = "a-session",
    env: Mapping[str, str] | None = None,
    *,
    server: str = "memory",
    cwd: Path | None = None,
    cold: bool = False,
) -> Iterator[Server]:
    """`cwd` is where it is started, the data folder unless told; only docmem cares, which writes there."""
    data.mkdir(parents=True, exist_ok=True)
    said = data / f"pid.{os.urandom(4).hex()}"
    command, *args = _command(server, str(said), cold)
    how = StdioServerParameters(
        command=command,
        args=args,
        env={**environment(data, project, session_id), **(env or {})},
        cwd=cwd or data,
    )
    with ExitStack() as stack:
        errors = stack.enter_context(open(data / "stderr", "a"))
        portal = stack.enter_context(start_blocking_portal())
        read, write = stack.enter_context(portal.wrap_async_context_manager(stdio_client(how, errors)))
        client = ClientSession(read, write)
        stack.enter_context(portal.wrap_async_context_manager(client))
        portal.call(client.initialize)
        yield Server(portal, client, int(said.read_text()))


def _command(server: str, pid_file: str, cold: bool = False) -> list[str]:
    if cold or not hasattr(os, "pidfd_open"):
        return ["sh", "-c", SAYS_ITS_PID, pid_file, *MCP, *server.split()]
    python = os.path.realpath(sys.executable)
    forked = [python, "-I", "-S", str(FORKED), "stand-in", _ready(), pid_file]
    return [*forked, "backstory", "mcp", *server.split()]


@cache
def _ready() -> str:
    """Where servers are to be had, for the rest of the run."""
    folder = tempfile.mkdtemp()  # short: the address of a socket has at most 107 characters
    address = os.path.join(folder, "servers")
    source = subprocess.Popen(
        [sys.executable, "-P", str(FORKED), "keep-ready", address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd="/",
    )
    assert source.stdin and source.stdout and source.stdout.readline() == b"ready\n"

    def end() -> None:
        source.communicate()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return address


@cache
def forked_backstory() -> str:
    """A folder for PATH with a `backstory` whose MCP servers are forked, for sessions of the real client: a
    server takes longer to start than the session itself. All else is done by the one that is installed."""
    installed = os.path.join(os.path.dirname(sys.executable), "backstory")
    if not hasattr(os, "pidfd_open"):
        return os.path.dirname(installed)
    python, address = os.path.realpath(sys.executable), _ready()
    forked = [python, "-I", "-S", str(FORKED), "stand-in", address, os.devnull, "backstory"]
    folder = Path(address).with_name("bin")
    folder.mkdir()
    program = folder / "backstory"
    run = f'[ "$1" = mcp ] && exec {shlex.join(forked)} "$@"\nexec {shlex.quote(installed)} "$@"\n'
    program.write_text(f"#!/bin/sh\n{run}")
    program.chmod(0o755)
    return str(folder)


def environment(data: Path, project: Path, session_id: str) -> dict[str, str]:
    return {
        "HOME": str(data / "no-home"),
        "BACKSTORY_HOME": str(data),
        "CLAUDE_PROJECT_DIR": str(project),
        "CLAUDE_CODE_SESSION_ID": session_id,
    }


class Wire:
    """A server to which lines are written as they are."""

    def __init__(
        self,
        data: Path,
        project: Path,
        *,
        server: str = "memory",
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        cold: bool = False,
    ) -> None:
        data.mkdir(parents=True, exist_ok=True)
        self._said = data / f"pid.{os.urandom(4).hex()}"
        # Whoever descends from the server holds the writing end: at end of file all are gone.
        self.witness, held = os.pipe()
        with open(data / "stderr", "a") as errors:
            self.process = subprocess.Popen(
                _command(server, str(self._said), cold),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **environment(data, project, "a-session"), **(env or {})},
                cwd=cwd,
                pass_fds=(held,),
            )
        os.close(held)
        self._number = 0
        self._heard = b""

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        for end in (self.process.stdin, self.process.stdout):
            if end and not end.closed:
                end.close()
        os.close(self.witness)

    @property
    def pid(self) -> int:
        return int(self._said.read_text())

    def shake_hands(self) -> None:
        who = {"name": "a test", "version": "1"}
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": who}
        assert self.request("initialize", json.dumps(hello)) is not None
        self.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}')

    def call(self, tool: str, arguments: str, seconds: float = SECONDS) -> Reply | None:
        """Call a tool with arguments in JSON, or what somebody might take for it; None: no answer."""
        answer = self.request("tools/call", f'{{"name": "{tool}", "arguments": {arguments}}}', seconds)
        if answer is None:
            return None
        if "error" in answer:
            return Reply(answer["error"]["message"], is_error=True)
        (block,) = answer["result"]["content"]
        return Reply(block["text"], answer["result"]["isError"])

    def request(self, method: str, params: str, seconds: float = SECONDS) -> dict[str, Any] | None:
        self._number += 1
        self.write(f'{{"jsonrpc": "2.0", "id": {self._number}, "method": "{method}", "params": {params}}}')
        deadline = time.monotonic() + seconds
        nameless = None  # an answer to a line so odd that nobody knows which
        while line := self._line(deadline):
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == self._number:
                return answer
            if "error" in answer and answer.get("id") is None:
                nameless = answer
        return nameless

    def _line(self, deadline: float) -> bytes | None:
        assert self.process.stdout
        while b"\n" not in self._heard:  # what has been read is out of select's sight
            if not select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))[0]:
                return None
            part = os.read(self.process.stdout.fileno(), 65_536)
            assert part, "the server has ended"
            self._heard += part
        line, _, self._heard = self._heard.partition(b"\n")
        return line

    def answer(self, line: bytes, seconds: float = SECONDS) -> dict[str, Any] | None:
        """What is said next after a line, whichever request it answers."""
        self.write(line)
        return self.heard(seconds)

    def heard(self, seconds: float = SECONDS) -> dict[str, Any] | None:
        said = self._line(time.monotonic() + seconds)
        answer: dict[str, Any] | None = json.loads(said) if said else None
        return answer

    def write(self, line: str | bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write((line.encode() if isinstance(line, str) else line) + b"\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        """By SIGKILL; the server is gone afterwards, with all it started."""
        self.process.kill()
        self.process.wait()
        assert select.select([self.witness], [], [], 20)[0], "what the server started outlives it"

    def hang_up(self) -> float:
        """Close the server's stdin and wait until it is gone with all it started; how long that took."""
        assert self.process.stdin
        started = time.monotonic()
        self.process.stdin.close()
        assert select.select([self.witness], [], [], 20)[0], "the server outlives its client"
        self.process.wait(20)
        return time.monotonic() - started
