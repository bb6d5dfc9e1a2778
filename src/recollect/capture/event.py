"""A hook payload becomes an event: checked once, made safe to store, trusted afterwards.

Every string in an event has been through `clean`: recalled text taken out, secrets and private parts
redacted, nothing in it that SQLite could not hold. What comes later cannot store a secret by mistake, because
it never sees one.
"""

from __future__ import annotations

import json

from recollect import fence
from recollect.capture.redact import redact
from recollect.errors import BadPayload

EVENTS = frozenset(
    {
        "SessionStart",
        "UserPromptSubmit",
        "PostToolUse",
        "PostToolUseFailure",
        "PreCompact",
        "PostCompact",
        "Stop",
        "SubagentStop",
        "SessionEnd",
    }
)
TOOL_EVENTS = frozenset({"PostToolUse", "PostToolUseFailure"})
RESULT_FIELDS = ("tool_response", "tool_result", "tool_output")  # the client's own name first
RESULT_LIMIT = 10_000  # characters of JSON; more is not a memory
TEXT_LIMIT = 8_000  # of any one string; no memory shows that much of a trace
PROMPT_LIMIT = 100_000
PARTS_LIMIT = 2_000  # strings, numbers and containers of a tool's input or result
PATH_LIMIT = 4_096
CUT_MARGIN = 4_000  # redaction sees this much beyond a cut, so that no cut leaves half a secret

# What the client repeats of a file's text in the result of an edit. The file has it, so it is not counted.
# (NotebookEdit spells them with underscores.)
ECHOED = frozenset(
    "content originalFile oldString newString structuredPatch edits"
    " new_source old_source original_file updated_file".split()
)
ECHOING_TOOLS = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})


class Event:
    """One thing that happened in a session. A plain class: dataclasses are too slow to load for a hook."""

    __slots__ = (
        "at",
        "cwd",
        "error",
        "key",
        "name",
        "prompt",
        "result",
        "session_id",
        "too_large",
        "tool",
        "tool_input",
    )

    def __init__(
        self,
        *,
        key: str,
        name: str,
        at: int,
        session_id: str,
        cwd: str,
    ) -> None:
        self.key = key  # draining the same event twice stores it once
        self.name = name
        self.at = at
        self.session_id = session_id
        self.cwd = cwd
        self.prompt: str | None = None
        self.tool: str | None = None
        self.tool_input: dict[str, object] = {}
        self.result: object = None
        self.too_large = False  # the result was over the limit and is not here
        self.error: str | None = None


def read_event(raw: bytes, *, spool_name: str, at: int) -> Event:
    """The event in a payload, or BadPayload with the reason."""
    try:
        return _read(_parse(raw), spool_name, at)
    except RecursionError as error:
        raise BadPayload("nested too deep") from error


def _read(payload: dict[str, object], spool_name: str, at: int) -> Event:
    name = _text(payload, "hook_event_name")
    if name not in EVENTS:
        raise BadPayload(f"unknown event {clean(name, 80)!r}")
    event = Event(
        key=spool_name,
        name=name,
        at=at,
        session_id=clean(_text(payload, "session_id")),
        cwd=_path(payload),
    )
    if name == "UserPromptSubmit":
        event.prompt = clean(_text(payload, "prompt", empty=True), PROMPT_LIMIT)
        if "prompt_id" in payload:
            event.key = f"{_storable(_text(payload, 'prompt_id'))}:{name}"
    if name in TOOL_EVENTS:
        _read_tool_use(event, payload)
    return event


def clean(text: str, limit: int = TEXT_LIMIT) -> str:
    """Text that may be stored."""
    window = _storable(text[: limit + CUT_MARGIN])
    return redact(fence.remove(window))[:limit]


def _read_tool_use(event: Event, payload: dict[str, object]) -> None:
    event.tool = clean(_text(payload, "tool_name"))
    tool_input = _clean(payload.get("tool_input"))
    if not isinstance(tool_input, dict):
        raise BadPayload("tool_input is not an object")
    event.tool_input = tool_input
    if "tool_use_id" in payload:
        event.key = f"{_storable(_text(payload, 'tool_use_id'))}:{event.name}"
    if event.name == "PostToolUseFailure":
        event.error = clean(_text(payload, "error", empty=True))
        return
    field = next((field for field in RESULT_FIELDS if field in payload), None)
    if field is None:
        raise BadPayload("tool_response is missing")
    result = _without_echo(payload[field]) if event.tool in ECHOING_TOOLS else payload[field]
    size = len(json.dumps(result, ensure_ascii=False, separators=(",", ":")))
    event.too_large = size > RESULT_LIMIT
    event.result = None if event.too_large else _clean(result)


def _parse(raw: bytes) -> dict[str, object]:
    try:
        payload = json.loads(raw)
    except ValueError as error:
        raise BadPayload(f"not JSON: {error}" if raw.strip() else "empty payload") from error
    if not isinstance(payload, dict):
        raise BadPayload(f"not a JSON object but {type(payload).__name__}")
    return payload


def _text(payload: dict[str, object], field: str, *, empty: bool = False) -> str:
    if field not in payload:
        raise BadPayload(f"{field} is missing")
    value = payload[field]
    if not isinstance(value, str):
        raise BadPayload(f"{field} is not a string but {type(value).__name__}")
    if not value and not empty:
        raise BadPayload(f"{field} is empty")
    return value


def _path(payload: dict[str, object]) -> str:
    path = _storable(_text(payload, "cwd"))
    if len(path) > PATH_LIMIT:
        raise BadPayload(f"cwd has {len(path):,} characters")
    return path


def _clean(value: object) -> object:
    """The value with every string in it clean; of more parts than anyone will read, only the first."""
    left = PARTS_LIMIT

    def visit(part: object) -> object:
        nonlocal left
        left -= 1
        if isinstance(part, str):
            return clean(part)
        if isinstance(part, dict):
            return {_storable(name): visit(inner) for name, inner in part.items() if left > 0}
        if isinstance(part, list):
            return [visit(inner) for inner in part if left > 0]
        return part

    return visit(value)


def _without_echo(result: object) -> object:
    if not isinstance(result, dict):
        return result
    return {name: part for name, part in result.items() if name not in ECHOED}


def _storable(text: str) -> str:
    """JSON can spell half a surrogate pair and NUL; SQLite's text can hold neither."""
    if text.isascii():
        return text.replace("\0", "") if "\0" in text else text
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
