"""The first lines between a client and a server, answered without the mcp package, which takes most of a
second to import.

`server/discover`, `initialize`, `ping` and the first `tools/list` are answered here, from `listing.json`.
After that, or with the first line that is anything else, the package takes over, and is told of the handshake
as if it had answered itself. What is wrong with a line, too, the package's side says.
"""

from __future__ import annotations

import json

from backstory.surfaces.mcp import listing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

    from backstory.surfaces.mcp.listing import Json

LONGEST_LINE = 65_536  # bytes that the package is not needed for
METHOD_NOT_FOUND = -32601
REPLAYED = "backstory: the handshake"  # the id of a request whose answer the client has had
ENVELOPE = "io.modelcontextprotocol/protocolVersion"  # of requests that need no handshake
KNOWN = frozenset(("initialize", "ping", "tools/list", "tools/call"))


class Handshake:
    """How far a client has come, and what it was told."""

    __slots__ = ("client", "hello", "is_initialized", "is_short", "listing", "rest", "server")

    def __init__(self, server: str) -> None:
        self.server = server
        self.listing = listing.load()
        self.client = ""
        self.hello: Json | None = None  # what it said of itself
        self.is_initialized = False
        self.is_short: bool | None = None  # whether tools were left out; None: it has not asked yet
        self.rest = b""  # the line, or the beginning of one, that is not answered

    def meet(self, lines: BinaryIO, out: BinaryIO) -> bool:
        """Answer until it is the package's turn. False: the client has hung up."""
        while line := lines.readline(LONGEST_LINE):
            answer = self._answer(line) if line.endswith(b"\n") else None
            if answer is None:
                self.rest = line
                return True
            if answer:
                out.write(json.dumps({"jsonrpc": "2.0", **answer}).encode() + b"\n")
                out.flush()
            if self.is_short is not None:
                return True
        return False

    def replay(self) -> list[str]:
        """The handshake again, for the package."""
        if self.hello is None:
            return []
        lines: list[Json] = [{"id": REPLAYED, "method": "initialize", "params": self.hello}]
        if self.is_initialized:
            lines.append({"method": "notifications/initialized"})
        return [json.dumps({"jsonrpc": "2.0", **line}) for line in lines]

    def _answer(self, line: bytes) -> Json | None:
        """What to answer; nothing to a notification. None: the package is to do that."""
        message = _read(line)
        if message is None:
            return None
        method, params, number = message.get("method"), message.get("params", {}), message.get("id")
        if method == "notifications/initialized" and "id" not in message and self.hello:
            self.is_initialized = True
            return {}
        if type(number) not in (int, str) or not isinstance(method, str) or not isinstance(params, dict):
            return None
        if not self.hello and _is_unknown(method, params):
            error = {"code": METHOD_NOT_FOUND, "message": "Method not found", "data": method}
            return {"id": number, "error": error}
        result = self._result(method, params)
        return None if result is None else {"id": number, "result": result}

    def _result(self, method: str, params: Json) -> Json | None:
        if method == "ping":
            return {}
        if method == "initialize" and not self.hello:
            return self._initialize(params)
        if method == "tools/list" and self.hello and not params.get("cursor"):
            self.is_short = listing.is_short(self.server, self.client)
            return {"tools": listing.tools(self.listing, self.server, short=self.is_short)}
        return None

    def _initialize(self, params: Json) -> Json | None:
        client, wanted = params.get("clientInfo"), params.get("protocolVersion")
        if not isinstance(client, dict) or not isinstance(params.get("capabilities"), dict):
            return None
        name, version = client.get("name"), client.get("version")
        if not isinstance(wanted, str) or not isinstance(name, str) or not isinstance(version, str):
            return None
        known: list[str] = self.listing["protocol_versions"]
        agreed = wanted if wanted in known else known[-1]
        who = {"name": name, "version": version}
        self.client = name
        self.hello = {"protocolVersion": agreed, "capabilities": {}, "clientInfo": who}
        return {
            "protocolVersion": agreed,
            "capabilities": {"tools": {"listChanged": self.server == listing.BOTH}},
            "serverInfo": {"name": listing.NAMES[self.server], "version": self.listing["version"]},
            "instructions": self.listing["servers"][self.server]["instructions"],
        }


def _read(line: bytes) -> Json | None:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) and message.get("jsonrpc") == "2.0" else None


def _is_unknown(method: str, params: dict[str, Any]) -> bool:
    """Before the handshake nothing else is known, but for clients that need none. Those ask first with
    `server/discover`, and shake hands if that is unknown; without a handshake no server may send anything of
    its own accord, such as that there are more tools now."""
    meta = params.get("_meta")
    needs_no_handshake = isinstance(meta, dict) and ENVELOPE in meta and method != "server/discover"
    return not needs_no_handshake and method not in KNOWN
