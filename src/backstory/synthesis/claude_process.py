"""A model session by the user's own `claude -p`, where there is no Agent SDK.

It speaks as the SDK does: lines of JSON in both directions. Those of the type `control_request` are answered
by a `control_response`; by them Claude Code asks for our two tools, and calls them.
"""

from __future__ import annotations

import asyncio
import json
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from backstory.synthesis import prompt
from backstory.synthesis.claude_reply import SERVER, Reply, Start, Tool, message

GRACE = 2.0
LONGEST_LINE = 32_000_000  # bytes
NO_METHOD = -32601


class Ended(Exception):
    """Claude Code is gone, or refused to begin."""


class _Running(NamedTuple):
    process: Process
    stdin: StreamWriter
    stdout: StreamReader
    stderr: StreamReader


class ProcessClient:
    def __init__(self, start: Start) -> None:
        self._start = start
        self._starting: asyncio.Task[_Running] | None = None
        self._stderr: asyncio.Task[None] | None = None

    async def start(self) -> None:
        # Whoever is cancelled meanwhile ends it all the same: `end` waits for what was begun.
        self._starting = asyncio.create_task(_spawn(self._start))
        claude = await asyncio.shield(self._starting)
        self._stderr = asyncio.create_task(self._listen(claude))
        request = {"subtype": "initialize", "hooks": None}
        await self._send(claude, {"type": "control_request", "request_id": "first", "request": request})
        while (line := await self._line(claude)).get("type") != "control_response":
            await self._serve(claude, line)
        answer = line.get("response") or {}
        if answer.get("subtype") == "error":
            raise Ended(str(answer.get("error")))

    async def turn(self, text: str, reply: Reply) -> None:
        if self._starting is None:
            raise Ended("it was not started")
        claude = self._starting.result()
        await self._send(claude, message(text))
        is_over = False
        while not is_over:
            line = await self._line(claude)
            await self._serve(claude, line)
            take(line, reply)
            is_over = line.get("type") == "result"

    async def end(self, is_busy: bool) -> None:
        if self._starting is None:
            return
        try:
            claude = await self._starting
        except OSError:
            return  # it never was
        claude.stdin.close()  # without a turn under way that is enough
        # One that is busy would finish its turn first; it keeps no transcript that could be cut off.
        signals = (claude.process.terminate, claude.process.kill)
        for stop in signals if is_busy else (None, *signals):
            with suppress(ProcessLookupError):
                if stop:
                    stop()
            with suppress(TimeoutError):
                await asyncio.wait_for(claude.process.wait(), GRACE)
                break
        if self._stderr:
            await self._stderr

    async def _listen(self, claude: _Running) -> None:
        with suppress(ValueError):  # a line that is too long tells nothing
            async for line in claude.stderr:
                if said := line.decode("utf-8", "replace").strip():
                    self._start.note(said)

    async def _send(self, claude: _Running, value: Mapping[str, Any]) -> None:
        claude.stdin.write(json.dumps(value).encode() + b"\n")
        with suppress(ConnectionError):  # it is gone, as the end of what it says will tell
            await claude.stdin.drain()

    async def _line(self, claude: _Running) -> dict[str, Any]:
        while line := await claude.stdout.readline():
            with suppress(ValueError):  # what is no JSON is not for us
                value = json.loads(line)
                if isinstance(value, dict):
                    return value
        if self._stderr:  # why it is gone
            await asyncio.wait([self._stderr], timeout=GRACE)
        raise Ended("it ended by itself")

    async def _serve(self, claude: _Running, line: Mapping[str, Any]) -> None:
        if line.get("type") != "control_request":
            return
        request = line.get("request") or {}
        answer: dict[str, Any] = {"request_id": line.get("request_id")}
        if request.get("subtype") == "mcp_message":
            value = {"mcp_response": self._tools(request.get("message") or {})}
            answer |= {"subtype": "success", "response": value}
        else:  # whatever it asks for, such as a permission, is refused
            answer |= {"subtype": "error", "error": "not supported"}
        await self._send(claude, {"type": "control_response", "response": answer})

    def _tools(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """What an MCP server with our tools answers."""
        if asked.get("id") is None:  # a notification; only what carried it wants an answer
            return {"jsonrpc": "2.0", "result": {}}
        given = asked.get("params") or {}
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": asked["id"]}
        match asked.get("method"):
            case "initialize":
                answer["result"] = {
                    "protocolVersion": given.get("protocolVersion"),
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": SERVER, "version": "1.0.0"},
                }
            case "tools/list":
                answer["result"] = {
                    "tools": [
                        {"name": tool.name, "description": tool.help, "inputSchema": tool.schema}
                        for tool in self._start.tools
                    ]
                }
            case "tools/call" if tool := self._named(given.get("name")):
                said, is_refused = tool.answer(given.get("arguments") or {})
                answer["result"] = {"content": [{"type": "text", "text": said}], "isError": is_refused}
            case _:
                answer["error"] = {"code": NO_METHOD, "message": "not supported"}
        return answer

    def _named(self, name: object) -> Tool | None:
        return next((tool for tool in self._start.tools if tool.name == name), None)


async def _spawn(start: Start) -> _Running:
    server = {"mcpServers": {SERVER: {"type": "sdk", "name": SERVER}}}
    process = await asyncio.create_subprocess_exec(
        start.program,
        "-p",
        *("--input-format", "stream-json", "--output-format", "stream-json", "--verbose"),
        *("--model", start.model, "--system-prompt", prompt.SYSTEM, "--max-turns", "1"),
        *("--tools", "", "--allowedTools", ",".join(start.allowed)),
        *("--mcp-config", json.dumps(server), "--strict-mcp-config"),
        *("--setting-sources=", "--no-session-persistence"),
        cwd=start.folder,
        env={**start.env, "PWD": start.folder},
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        limit=LONGEST_LINE,
    )
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise Ended("it has no pipes")
    return _Running(process, process.stdin, process.stdout, process.stderr)


def take(line: Mapping[str, Any], reply: Reply) -> None:
    """Note what a line of the client says."""
    said = line.get("message") or {}
    content = said.get("content") if isinstance(said, dict) else None
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    texts = [str(block.get("text", "")) for block in blocks if block.get("type") == "text"]
    match line.get("type"), line.get("subtype"):
        case "assistant", _ if line.get("error"):
            reply.error, reply.said = str(line["error"]), " ".join(texts)
        case "assistant", _:
            calls = [block.get("input") for block in blocks if block.get("type") == "tool_use"]
            reply.answer(str(said.get("model", "")), said.get("id"), said.get("usage"), texts, calls)
        case "user", _:
            for block in blocks:
                if block.get("type") == "tool_result" and block.get("is_error"):
                    reply.refuse(block.get("content"))
        case "system", "api_retry":
            reply.tries += 1
        case "result", subtype:
            reply.total, reply.usd = line.get("usage") or {}, line.get("total_cost_usd")
            reply.status = line.get("api_error_status")
            reply.end(str(subtype), bool(line.get("is_error")), line.get("result"))
        case "rate_limit_event", _:
            reply.resets_at = (line.get("rate_limit_info") or {}).get("resetsAt")
