"""A scripted stand-in for the Messages API, on loopback, for tests that run the real Claude Code.

    with ScriptedModel(use("Write", file_path="/tmp/x", content="hi"), say("done")) as model:
        model.when(say("a title"), system="Summarize this conversation", repeat=True)
        ...                         # point ANTHROPIC_BASE_URL at model.url
        assert "remembered" in model.said()

A script is a list of steps; each request takes the next one. The steps given to the constructor answer
the main conversation, that is any request which offers tools: Claude Code also asks small side questions
without tools, and those must not eat a step. `when` adds a rule that is consulted before, for
subagents and side questions. A request that nothing answers gets UNSCRIPTED, so that a script which
is too short shows in the assertion and not as a hang.
"""

from __future__ import annotations

import json
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

Json = dict[str, Any]

UNSCRIPTED = "(nothing scripted for this request)"


@dataclass(frozen=True, slots=True)
class Step:
    """One reply of the model: content blocks, or an HTTP error."""

    blocks: tuple[Json, ...] = ()
    status: int = 200
    error: str = ""
    delay: float = 0.0
    ready: Callable[[], object] | None = None  # called before the reply, to wait for something
    usage: Mapping[str, int] = field(default_factory=dict)

    def after(self, seconds: float) -> Step:
        return replace(self, delay=seconds)

    def once(self, ready: Callable[[], object]) -> Step:
        return replace(self, ready=ready)

    def costing(self, **tokens: int) -> Step:
        """say("x").costing(input_tokens=9, output_tokens=2)"""
        return replace(self, usage=tokens)


def say(text: str) -> Step:
    return Step(({"type": "text", "text": text},))


def use(tool: str, /, **arguments: Any) -> Step:
    return Step(({"type": "tool_use", "name": tool, "input": arguments},))


def together(*steps: Step) -> Step:
    """Several blocks in one reply: together(say("two at once"), use("Read", ...), use("Read", ...))."""
    return Step(tuple(block for step in steps for block in step.blocks))


def fail(status: int = 529, kind: str = "overloaded_error") -> Step:
    return Step(status=status, error=kind)


@dataclass(slots=True)
class Rule:
    steps: list[Step]
    repeat: bool = False
    system: str = ""
    last_user: str = ""
    anywhere: str = ""
    offers: str | None = None  # a tool's name; "*" is any tool at all

    def matches(self, body: Json) -> bool:
        tools = {tool.get("name") for tool in body.get("tools") or ()}
        users = [m["content"] for m in body.get("messages", ()) if m.get("role") == "user"]
        return (
            bool(self.steps)
            and self.system in text_of(body.get("system", ""))
            and self.last_user in text_of(users[-1] if users else "")
            and self.anywhere in json.dumps(body, ensure_ascii=False)
            and (self.offers is None or self.offers in tools or (self.offers == "*" and bool(tools)))
        )

    def take(self) -> Step:
        return self.steps[0] if self.repeat and len(self.steps) == 1 else self.steps.pop(0)


def text_of(content: Any) -> str:
    """The words in a message's content, tool results included."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(map(text_of, content))
    if isinstance(content, dict):
        return text_of(content.get("text") or content.get("content"))
    return ""


class ScriptedModel:
    def __init__(self, *steps: Step) -> None:
        self._lock = threading.Lock()
        self._main = Rule(list(steps), offers="*")
        self._rules: list[Rule] = []
        self._requests: list[Json] = []
        self._server = _Server(("127.0.0.1", 0), partial(_Handler, self))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> ScriptedModel:
        # The default poll of half a second would be paid at the end of every test.
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def when(
        self,
        *steps: Step,
        system: str = "",
        last_user: str = "",
        anywhere: str = "",
        offers: str | None = None,
        repeat: bool = False,
    ) -> None:
        """Answer matching requests with these steps; earlier rules win. repeat: the last step for ever."""
        with self._lock:
            self._rules.append(Rule(list(steps), repeat, system, last_user, anywhere, offers))

    @property
    def requests(self) -> list[Json]:
        """The bodies sent to /v1/messages so far, oldest first."""
        with self._lock:
            return list(self._requests)

    def said(self) -> str:
        """Everything that reached the model, as one text to search.

        Injected context travels as a system message or as user text, depending on the model's name."""
        return "\n".join(json.dumps(body, ensure_ascii=False) for body in self.requests)

    def results(self, tool: str) -> list[str]:
        """What came back from each use of a tool, oldest first."""
        blocks = [
            block
            for body in self.requests
            for message in body.get("messages", ())
            if isinstance(message["content"], list)
            for block in message["content"]
        ]
        uses = [block["id"] for block in blocks if block["type"] == "tool_use" and block["name"] == tool]
        results = {block["tool_use_id"]: block for block in blocks if block["type"] == "tool_result"}
        return [text_of(results[use]) for use in dict.fromkeys(uses) if use in results]

    def answer(self, body: Json) -> Step:
        with self._lock:
            self._requests.append(body)
            for rule in (*self._rules, self._main):
                if rule.matches(body):
                    return rule.take()
        return say(UNSCRIPTED)


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client that was killed, or gave up waiting, is part of some tests.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, model: ScriptedModel, *connection: Any) -> None:
        self.model = model
        super().__init__(*connection)  # handles the requests before it returns

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._send_json(200, {})

    def do_GET(self) -> None:
        self._send_json(200, {"data": [], "has_more": False, "first_id": None, "last_id": None})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        body = json.loads(raw or b"{}")
        path = self.path.partition("?")[0]
        if path == "/v1/messages/count_tokens":
            return self._send_json(200, {"input_tokens": len(raw) // 4})
        if path != "/v1/messages":
            return self._send_error(404, "not_found_error")
        step = self.model.answer(body)
        time.sleep(step.delay)
        if step.ready:
            step.ready()
        if step.error:
            return self._send_error(step.status, step.error)
        message = _message(step, body, len(raw))
        if body.get("stream"):
            self._send_events(_events(message))
        else:
            self._send_json(200, message)

    def _send_error(self, status: int, kind: str) -> None:
        self._send_json(status, {"type": "error", "error": {"type": kind, "message": "scripted"}})

    def _send_json(self, status: int, value: Json) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _send_events(self, events: Iterator[Json]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in events:
            data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.write(b"0\r\n\r\n")


def _message(step: Step, body: Json, size: int) -> Json:
    blocks = [
        {**block, "id": f"toolu_{uuid.uuid4().hex[:24]}"} if block["type"] == "tool_use" else block
        for block in step.blocks
    ]
    uses_a_tool = any(block["type"] == "tool_use" for block in blocks)
    usage = {"input_tokens": size // 4, "output_tokens": 20}
    return {
        "id": f"msg_{uuid.uuid4().hex[:24]}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "scripted"),
        "content": blocks,
        "stop_reason": "tool_use" if uses_a_tool else "end_turn",
        "stop_sequence": None,
        "usage": {**usage, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, **step.usage},
    }


def _events(message: Json) -> Iterator[Json]:
    """The message as the stream of events that a client puts together again."""
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(message["content"]):
        empty, delta = _pieces(block)
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ending, "usage": message["usage"]}
    yield {"type": "message_stop"}


def _pieces(block: Json) -> tuple[Json, Json]:
    """A block's empty beginning, and what is added to it."""
    if block["type"] == "text":
        return {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
    arguments = json.dumps(block["input"])
    return {**block, "input": {}}, {"type": "input_json_delta", "partial_json": arguments}
