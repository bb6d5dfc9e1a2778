"""The lines that an MCP client sends, looked at before the mcp package sees them.

The package drops what it cannot read, and the client waits for an answer that never comes. Here every line
that is no request is answered with an error: for the id that it names, as far as it can be made out.

JavaScript may send half of a surrogate pair, of an emoji cut in two, as `\\ud83e`. It is no text, and becomes
the sign for what cannot be shown.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any, BinaryIO, Self

from anyio import to_thread
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError
from pydantic_core import from_json

from backstory.surfaces.mcp.handshake import REPLAYED, Handshake

LONGEST_LINE = 32_000_000  # bytes: a document of 10 MB, its letters escaped
MOST_VALUES = 100_000  # in one line; a sensible call has fewer than 50

_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_CROWDED = re.compile(rb'(?s:(?:(?:[^"\[{,]++|' + _STRING + rb")*+[\[{,]){%d})" % MOST_VALUES)
_SURROGATE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)
# Of a request only the params nest, so its id is among the plain members before them or after them.
_PLAIN = rb'\s*"\w{1,20}"\s*:\s*(?:"[^"\\]{0,200}"|[\w.+-]{1,40})\s*'
_ID = rb'\s*"id"\s*:\s*(-?[0-9]{1,18}|"[^"\\]{1,200}")\s*'
_ID_FIRST = re.compile(rb"[^{]{0,9}\{(?:" + _PLAIN + rb",)*?" + _ID + rb"[,}]")
_ID_LAST = re.compile(rb"[{,]" + _ID + rb"(?:," + _PLAIN + rb")*\}\s*\Z")
_NEAR = 2_000  # bytes from either end


async def requests(
    lines: BinaryIO,
    refuse: Callable[[JSONRPCError], Awaitable[None]],
    at_end: Callable[[], None],
    handshake: Handshake,
) -> AsyncIterator[str]:
    """The lines that are messages of JSON-RPC, after the handshake; `at_end` is called when there are no
    more."""
    for said in handshake.replay():
        yield said
    begun = handshake.rest
    while line := await to_thread.run_sync(_line, begun, lines):
        begun = b""
        if len(line) > LONGEST_LINE:
            refusal: JSONRPCError | None = await to_thread.run_sync(_skipped, line, lines)
        else:
            refusal = refused(line := mended(line.rstrip()))
        if refusal:
            await refuse(refusal)
        else:
            yield line.decode("utf-8", "replace")
    at_end()


def _line(begun: bytes, lines: BinaryIO) -> bytes:
    return begun if begun.endswith(b"\n") else begun + lines.readline(LONGEST_LINE + 1 - len(begun))


class Answers:
    """Where the package's answers go, but the one to a handshake that the client has had."""

    def __init__(self, out: Any) -> None:
        self._out = out

    async def send(self, answer: SessionMessage) -> None:
        if getattr(answer.message, "id", None) != REPLAYED:
            await self._out.send(answer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)

    async def __aenter__(self) -> Self:
        await self._out.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        ended: bool | None = await self._out.__aexit__(*error)
        return ended


def mended(line: bytes) -> bytes:
    if b"\\ud" not in line and b"\\uD" not in line:
        return line
    return _SURROGATE.sub(lambda escape: rb"\ufffd" if escape[1] else escape[0], line)


def refused(line: bytes) -> JSONRPCError | None:
    """What to answer to a line that is no message of JSON-RPC; None: it is one."""
    if _CROWDED.match(line):
        return _error(line, INVALID_REQUEST, f"a request holds at most {MOST_VALUES:,} values; send fewer")
    try:
        message = from_json(line.decode("utf-8", "replace"))
    except ValueError as error:  # also where it is nested too deeply
        reason = str(error)[:200]
        return _error(line, PARSE_ERROR, f"the line cannot be read as JSON ({reason}); correct it")
    given = message.get("id", 0) if isinstance(message, dict) else None
    is_id = isinstance(given, int | str) and not isinstance(given, bool)
    with suppress(ValidationError):
        jsonrpc_message_adapter.validate_python(message, by_name=False)
        if is_id:  # with another id it would pass as a notification
            return None
    reason = (
        'the line is no request of JSON-RPC 2.0; send one object with jsonrpc "2.0", an id that is a whole'
        " number or a text, a method, and params that are an object"
    )
    given = given if is_id and "id" in message else None
    return JSONRPCError(jsonrpc="2.0", id=given, error=ErrorData(code=INVALID_REQUEST, message=reason))


def _skipped(start: bytes, lines: BinaryIO) -> JSONRPCError:
    """Read to the end of a line that is too long, and keep no more of it than may hold its id."""
    near = start = start[:_NEAR]
    while part := lines.readline(1 << 20):
        near = (near + part)[-_NEAR:]
        if part.endswith(b"\n"):
            break
    reason = f"the line has more than {LONGEST_LINE:,} bytes; put the text into a file and name its path"
    return _error(start + near, INVALID_REQUEST, reason)


def _error(line: bytes, code: int, reason: str) -> JSONRPCError:
    member = _ID_FIRST.match(line[:_NEAR]) or _ID_LAST.search(line[-_NEAR:])
    given = from_json(member[1].decode("utf-8", "replace")) if member else None
    return JSONRPCError(jsonrpc="2.0", id=given, error=ErrorData(code=code, message=reason))
