"""The mcp package's side of a server: it serves the calls, and what a client sends after the handshake."""

from __future__ import annotations

import asyncio
import inspect
import logging
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from importlib.metadata import version
from typing import Any

from anyio import move_on_after, to_thread
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.request_state import InvalidRequestState, RequestStateSecurity
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, ServerCapabilities, Tool, ToolAnnotations, ToolsCapability
from pydantic import ValidationError

from backstory import log
from backstory.errors import BackstoryError
from backstory.safety.fence import defuse
from backstory.safety.redact import redact
from backstory.store.file import disk
from backstory.surfaces.mcp import docmem, listing, live, memory, wire
from backstory.surfaces.mcp.ending import Ending
from backstory.surfaces.mcp.handshake import Handshake
from backstory.surfaces.mcp.tool_context import data_folder

ASKS_AGAIN_WITHIN = 2.0  # seconds, for a client that was told that there are more tools
MOST_SHOWN = 300_000  # characters; without a word from us Claude Code keeps replies above 50,000 in a file


def serve(handshake: Handshake, ending: Ending) -> None:
    """Answer on stdin and stdout until they close."""
    logging.basicConfig(handlers=[_ToOurLog()], level=logging.WARNING, force=True)
    if handshake.server != listing.MEMORY and not ending.also(live.end):
        return
    asyncio.run(server(handshake.server).talk(handshake, ending))


def server(name: str) -> ToolServer:
    told = {listing.MEMORY: memory.INSTRUCTIONS, listing.DOCMEM: docmem.INSTRUCTIONS}
    tools: dict[Callable[..., str], ToolAnnotations] = {}
    if name != listing.DOCMEM:
        tools |= memory.tools()
    if name != listing.MEMORY:
        tools |= docmem.tools()
    instructions = told.get(name, f"{memory.INSTRUCTIONS} {docmem.ALSO}")
    return ToolServer(name, instructions, tools, alone=docmem.alone(), whole=docmem.WHOLE)


class ToolServer(MCPServer):
    """Says in a sentence what is wrong with arguments that do not fit.

    Tools that run `alone` are called one after the other, as the calls came. Replies of `whole` tools reach
    the model as they are, though they be long; their callers bound them.
    """

    def __init__(
        self,
        server: str,
        instructions: str,
        tools: Mapping[Callable[..., str], ToolAnnotations],
        *,
        alone: Collection[Callable[..., str]] = (),
        whole: Collection[Callable[..., str]] = (),
    ) -> None:
        super().__init__(
            listing.NAMES[server],
            instructions=instructions,
            version=version("backstory"),
            request_state_security=RequestStateSecurity(codec=NoState()),
        )
        self._server = server
        self._parameters = {tool.__name__: list(inspect.signature(tool).parameters) for tool in tools}
        self._run_alone = {tool.__name__ for tool in alone}
        self._alone = asyncio.Lock()  # who waits first gets it first
        self._client = ""
        self._is_short = False  # were tools left out of what the client was told last?
        self._is_listed = asyncio.Event()  # has the client asked again, since it was told of more?
        for tool, notes in tools.items():
            description = " ".join((tool.__doc__ or "").split())
            meta = {"anthropic/maxResultSizeChars": MOST_SHOWN} if tool in whole else None
            self.tool(description=description, annotations=notes, meta=meta, structured_output=False)(tool)

    @property
    def capabilities(self) -> ServerCapabilities:
        """Only what there is: Claude Code adds tools of its own for resources, though there be none."""
        return ServerCapabilities(tools=ToolsCapability(list_changed=self._server == listing.BOTH))

    async def talk(self, handshake: Handshake, ending: Ending) -> None:
        async def refuse(error: JSONRPCError) -> None:
            await write.send(SessionMessage(error))

        self._client, self._is_short = handshake.client, bool(handshake.is_short)
        lines: Any = wire.requests(sys.stdin.buffer, refuse, ending.is_near, handshake)
        async with stdio_server(stdin=lines) as (read, write):
            server = self._lowlevel_server
            options = server.create_initialization_options()
            options.capabilities = self.capabilities
            await server.run(read, wire.Answers(write), options)

    async def list_tools(self) -> list[Tool]:
        self._is_short = await to_thread.run_sync(listing.is_short, self._server, self._client)
        listed = listing.tools(listing.load(), self._server, short=self._is_short)
        self._is_listed.set()
        return [Tool.model_validate(tool) for tool in listed]

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        known = self._parameters.get(name, list(arguments))
        try:
            for unknown in arguments.keys() - set(known):
                raise ToolError(f"{name} knows no {unknown[:60]!r}; it takes {', '.join(known)}")
            async with self._alone if name in self._run_alone else nullcontext():
                return await super().call_tool(name, arguments, context)
        except ToolError as error:
            said = _sentence(error.__cause__) or str(error).removeprefix(f"Error executing tool {name}: ")
            raise ToolError(defuse(said)) from error  # it may quote a file's name, a document, an argument
        finally:
            await self._tell_of_more(context)

    async def _tell_of_more(self, context: Any) -> None:
        """Once the project has a tree, tell the client to list the tools again.

        The answer to the call waits until it has: else the model calls a tool that the client does not know.
        """
        if self._is_short and context and await to_thread.run_sync(listing.has_tree):
            self._is_short = False
            self._is_listed.clear()
            await context.session.send_tool_list_changed()
            with move_on_after(ASKS_AGAIN_WITHIN):
                await self._is_listed.wait()


class NoState:
    """Our tools answer in one go, so no client has a state of ours to bring back."""

    def seal(self, payload: bytes) -> str:
        raise NotImplementedError("no tool of ours asks back")

    def unseal(self, token: str) -> bytes:
        raise InvalidRequestState("unknown")


def _sentence(error: BaseException | None) -> str | None:
    """What to tell of a refusal of ours; None: it says so itself."""
    if isinstance(error, ValidationError):
        return _of_arguments(error)
    if isinstance(error, OSError):
        return disk.unusable(error, data_folder()) or str(error)
    return str(error) if isinstance(error, BackstoryError) else None


def _of_arguments(error: ValidationError) -> str:
    every = error.errors(include_url=False)
    missing = [".".join(str(part) for part in one["loc"]) for one in every if one["type"] == "missing"]
    if missing:
        is_are, it = ("is", "it") if len(missing) == 1 else ("are", "them")
        return f"{', '.join(missing)} {is_are} missing; give {it} and call again"
    first: Mapping[str, Any] = every[0]
    # Of a parameter that may be one of several types, each is named as well.
    named = [str(part) for place, part in enumerate(first["loc"]) if place == 0 or isinstance(part, int)]
    where = ".".join(named) or "the arguments"
    given = "null" if first.get("input") is None else repr(first["input"])
    return f"{where} is {given[:60]}; {first['msg'][:1].lower()}{first['msg'][1:]}"


class _ToOurLog(logging.Handler):
    """What the mcp package has to say goes to our file: stdout is the protocol's."""

    def emit(self, record: logging.LogRecord) -> None:
        level = record.levelname.lower()
        cause = f": {record.exc_info[1]!r}" if record.exc_info else ""
        log.write(level if level in log.LEVELS else "error", redact(f"mcp: {record.getMessage()}{cause}"))
