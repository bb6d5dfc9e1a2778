"""What the MCP servers have in common: the store for a call, the index, the warm-up, refusals in a sentence.

The store is opened for a call and closed after it; one idle connection stays open, so that no call is the
last to close, which would write the log back into the database. What is kept is the index, which takes in
what other processes wrote. What is slow to import is imported by the first call, or by the warm-up before it,
so that the list of tools is there at once.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, ToolAnnotations
from pydantic import ValidationError

from backstory import config, log, paths
from backstory.clients import claude_code
from backstory.errors import BackstoryError, StoreError
from backstory.model import now_ms
from backstory.safety.fence import defuse
from backstory.safety.redact import redact
from backstory.store import documents, life, memories, nodes, projects, sessions
from backstory.store.file import disk
from backstory.store.file.connection import Connection, connect, transaction
from backstory.store.open import open_store
from backstory.surfaces.mcp import wire
from backstory.surfaces.mcp.ending import Ending, after
from backstory.surfaces.opened import ANSWER_SECONDS, open_drained

if TYPE_CHECKING:
    from backstory.recall.index import Index

MOST_SHOWN = 300_000  # characters; without a word from us Claude Code keeps replies above 50,000 in a file
WARM_UP_SECONDS = 1.0  # after the start: the handshake comes first

_making = threading.Lock()
_kept_open: dict[str, tuple[int, Connection]] = {}  # which file, by its inode
_indexes: list[Index] = []


class ToolServer(MCPServer):
    """Says in a sentence what is wrong with arguments that do not fit.

    Tools that run `alone` are called one after the other, as the calls came. Replies of `whole` tools reach
    the model as they are, though they be long; their callers bound them.
    """

    def __init__(
        self,
        name: str,
        instructions: str,
        tools: Mapping[Callable[..., str], ToolAnnotations],
        *,
        alone: Collection[Callable[..., str]] = (),
        whole: Collection[Callable[..., str]] = (),
    ) -> None:
        super().__init__(name, instructions=instructions, version=version("backstory"))
        self._parameters = {tool.__name__: list(inspect.signature(tool).parameters) for tool in tools}
        self._run_alone = {tool.__name__ for tool in alone}
        self._alone = asyncio.Lock()  # who waits first gets it first
        self._at_end: Callable[[], None] | None = None
        for tool, notes in tools.items():
            description = " ".join((tool.__doc__ or "").split())
            meta = {"anthropic/maxResultSizeChars": MOST_SHOWN} if tool in whole else None
            self.tool(description=description, annotations=notes, meta=meta, structured_output=False)(tool)

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        known = self._parameters.get(name, list(arguments))
        try:
            for unknown in arguments.keys() - set(known):
                raise ToolError(f"{name} knows no {unknown[:60]!r}; it takes {', '.join(known)}")
            async with self._alone if name in self._run_alone else nullcontext():
                return await super().call_tool(name, arguments, context)
        except ToolError as error:
            cause = error.__cause__
            said = str(error).removeprefix(f"Error executing tool {name}: ")
            if isinstance(cause, ValidationError):
                said = _sentence(cause)
            raise ToolError(defuse(said)) from error  # it may quote a file's name, a document, an argument

    async def run_stdio_async(self) -> None:
        async def refuse(error: JSONRPCError) -> None:
            await write.send(SessionMessage(error))

        lines: Any = wire.requests(sys.stdin.buffer, refuse, self._at_end)
        async with stdio_server(stdin=lines) as (read, write):
            server = self._lowlevel_server
            await server.run(read, write, server.create_initialization_options())

    def serve(
        self,
        *,
        first: Callable[[], None] | None = None,
        beside: Callable[[], None] | None = None,
        last: Callable[[], None] | None = None,
    ) -> None:
        """Answer on stdin and stdout until they close. `first` is done before anything is answered, `beside`
        in a thread once the handshake is over, and `last` at the end, whatever brings it but a kill."""
        logging.basicConfig(handlers=[_ToOurLog()], level=logging.WARNING, force=True)
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # asyncio would wait for a thread that waits for input
        if first:
            first()
        ending = Ending(last) if last else None
        self._at_end = ending.is_near if ending else None
        if beside:
            after(WARM_UP_SECONDS, beside)
        try:
            self.run("stdio")
        finally:
            if ending:
                ending.wait()


@contextmanager
def store() -> Iterator[tuple[Connection, int]]:
    """The store and the time, for one call."""
    now = now_ms()
    try:
        folder = data_folder()
        opened = open_drained(folder, now=now, seconds=ANSWER_SECONDS)
        with opened as db:
            if not opened.is_read_only:
                _keep_up(folder)
            yield db, now
    except BackstoryError as error:
        raise ToolError(str(error)) from error
    except OSError as error:
        raise ToolError(disk.unusable(error, folder) or str(error)) from error


@contextmanager
def undrained() -> Iterator[Connection]:
    """The store as it can be had at once, for who must not wait."""
    folder = data_folder()
    with open_store(folder, now=now_ms(), drain=lambda _: None, hurried=True) as db:
        _keep_up(folder)
        yield db


def data_folder() -> str:
    found = paths.data_folder(os.environ)
    if found is None:
        raise StoreError(
            "backstory has no data folder; set HOME or BACKSTORY_HOME to an absolute path, then start anew"
        )
    return found


def _keep_up(folder: str) -> None:
    """Hold the store open. Once another file has taken its place (a backup was restored), what was learned
    from the old one is not true any more."""
    path = paths.database(folder)
    with _making:
        file = os.stat(path).st_ino
        if folder in _kept_open and _kept_open[folder][0] != file:
            del _kept_open[folder]
            _indexes.clear()
        if folder not in _kept_open:
            _kept_open[folder] = file, connect(path)


@contextmanager
def changing(memory_id: str) -> Iterator[tuple[Connection, str, int]]:
    """One memory of this project, for a change in one transaction."""
    with store() as (db, now), transaction(db):
        yield db, life.known(db, memory_id.strip(), scope(db)), now


def scope(db: Connection) -> list[str]:
    """The projects whose memories this server may touch: its own, and the global one."""
    here = projects.at(db, paths.place(project()))
    return [here.id, projects.GLOBAL] if here else [projects.GLOBAL]


def readable(db: Connection) -> list[str]:
    """The projects that a model may read: where the user allows it, all of them."""
    if config.may_recall_everywhere(os.environ):
        return [one.id for one in projects.every(db)]
    return scope(db)


def project() -> str:
    return claude_code.project_folder(os.environ)


def session(db: Connection) -> str | None:
    session_id = claude_code.session_id(os.environ)
    return sessions.following(db, session_id) if session_id else None


def index() -> Index:
    """One for the life of the server; the settings are read when it is first needed."""
    from backstory.recall.index import Index

    with _making:
        if not _indexes:
            _indexes.append(Index.configured())
        return _indexes[0]


def fill_in_background(db: Connection) -> None:
    """Make the vectors that are missing, beside the calls."""
    here = projects.at(db, paths.place(project()))
    index().fill_in_background(_connection, (memories, documents, nodes), here)


def warm_up() -> None:
    """Load what the first search would have to wait for, and put away what faded."""
    try:
        with store() as (db, now):
            here = projects.at(db, paths.place(project()))
            with index().lock:
                index().corpus(db, memories, here)
            life.prune(db, now)
            fill_in_background(db)
    except Exception as error:  # noqa: BLE001  the first search will meet it again, and say so
        log.write("warning", f"warm-up: {error}")


@contextmanager
def _connection() -> Iterator[Connection]:
    with store() as (db, _):
        yield db


def _sentence(error: ValidationError) -> str:
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
