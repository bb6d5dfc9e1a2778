"""A hook payload becomes an event: checked once, made safe to store, trusted afterwards.

Every text in an event has been through `clean`: recalled text taken out, secrets and private parts redacted,
nothing in it that SQLite could not hold. Only the working folder stays as it is, since it says which project
this is.
"""

from __future__ import annotations

import json

from backstory.errors import BadPayload
from backstory.safety.clean import TEXT_LIMIT, clean, excerpt, storable

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
SAYING = {"Stop": "last_assistant_message", "PostCompact": "compact_summary"}
RESULT_FIELDS = ("tool_response", "tool_result", "tool_output")  # the client's own name first
RESULT_LIMIT = 10_000  # characters of JSON; more is not a memory
PROMPT_LIMIT = 100_000
ROOM = 24_000  # characters of a tool's input or result that are looked at; a trace shows a few hundred
PATH_LIMIT = 4_096
ID_LIMIT = 200
CHANGE_LIMIT = 2_000  # characters of a text that was written or replaced, for synthesis
EXCERPT_LIMIT = 4_000  # of any one string in a result that is too large to be a memory
EXCERPT_ROOM = 8_000  # of such a result altogether

# What the client repeats of a file's text in the result of an edit. The file has it, so it is not counted.
# (NotebookEdit spells them with underscores.)
ECHOED = frozenset(
    "content originalFile oldString newString structuredPatch edits"
    " new_source old_source original_file updated_file".split()
)
ECHOED_INPUT = frozenset("content old_string new_string edits new_source".split())
ECHOING_TOOLS = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})


class Event:
    """One thing that happened in a session. A plain class: dataclasses are too slow to load for a hook."""

    __slots__ = (
        "agent",
        "at",
        "changes",
        "cwd",
        "error",
        "excerpt",
        "key",
        "name",
        "prompt",
        "result",
        "said",
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
        self.agent = ""  # the type of the subagent in which it happened
        self.prompt: str | None = None
        self.tool: str | None = None
        self.tool_input: dict[str, object] = {}
        self.result: object = None
        self.too_large = False  # the result was over the limit and is not here
        self.excerpt: object = None  # what is shown of it to synthesis
        self.changes: dict[str, object] = {}  # what an edit wrote and replaced, cut in the middle
        self.error: str | None = None
        self.said: str | None = None  # the assistant's last message, or the summary of a compaction


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
        session_id=_id(payload, "session_id"),
        cwd=_path(payload),
    )
    agent = payload.get("agent_type")
    event.agent = clean(agent, 80) if isinstance(agent, str) else ""
    if name == "UserPromptSubmit":
        event.prompt = clean(_text(payload, "prompt", empty=True), PROMPT_LIMIT)
        event.key = _key(event, payload, "prompt_id")
    if name in SAYING:
        said = payload.get(SAYING[name])
        event.said = excerpt(said, TEXT_LIMIT) if isinstance(said, str) else ""
    if name in TOOL_EVENTS:
        _read_tool_use(event, payload)
    return event


def _excerpt_of(part: object, limit: int, room: list[int]) -> object:
    """A value of JSON with every text in it cut, as far as the room goes."""
    room[0] -= 8
    if isinstance(part, str):
        cut = excerpt(part, max(0, min(limit, room[0])))
        room[0] -= len(cut)
        return cut
    if isinstance(part, dict):
        return {
            clean(name, ID_LIMIT): _excerpt_of(inner, limit, room)
            for name, inner in part.items()
            if room[0] > 0
        }
    if isinstance(part, list):
        return [_excerpt_of(inner, limit, room) for inner in part if room[0] > 0]
    return part


def _read_tool_use(event: Event, payload: dict[str, object]) -> None:
    event.tool = _id(payload, "tool_name")
    tool_input = payload.get("tool_input")
    if not isinstance(tool_input, dict):
        raise BadPayload("tool_input is not an object")
    echoes = event.tool in ECHOING_TOOLS
    event.tool_input = _clean_dict(_without(ECHOED_INPUT, tool_input) if echoes else tool_input)
    if echoes:
        written = {name: part for name, part in tool_input.items() if name in ECHOED_INPUT}
        changes = _excerpt_of(written, CHANGE_LIMIT, [EXCERPT_ROOM])
        event.changes = changes if isinstance(changes, dict) else {}
    event.key = _key(event, payload, "tool_use_id")
    if event.name == "PostToolUseFailure":
        event.error = clean(_text(payload, "error", empty=True))
        return
    field = next((field for field in RESULT_FIELDS if field in payload), None)
    if field is None:
        raise BadPayload("tool_response is missing")
    result = payload[field]
    if echoes and isinstance(result, dict):
        result = _without(ECHOED, result)
    size = len(json.dumps(result, ensure_ascii=False, separators=(",", ":")))
    event.too_large = size > RESULT_LIMIT
    if event.too_large:
        event.excerpt = _excerpt_of(result, EXCERPT_LIMIT, [EXCERPT_ROOM])
    else:
        event.result = _clean_dict({"": result})[""]


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


def _id(payload: dict[str, object], field: str) -> str:
    return clean(_text(payload, field), ID_LIMIT)


def _key(event: Event, payload: dict[str, object], field: str) -> str:
    """By the client's own id, so that two registrations of the plugin store an event once. An id that cannot
    be kept as it is would no longer tell events apart; then the spool's name does."""
    if field not in payload:
        return event.key
    found = _id(payload, field)
    return f"{event.session_id}:{found}:{event.name}" if found == payload[field] else event.key


def _path(payload: dict[str, object]) -> str:
    path = storable(_text(payload, "cwd"))
    if len(path) > PATH_LIMIT:
        raise BadPayload(f"cwd has {len(path):,} characters")
    if not path.startswith("/"):
        raise BadPayload("cwd is not an absolute path")
    return path


def _clean_dict(given: dict[str, object]) -> dict[str, object]:
    """The same with every text in it clean, as far as the room goes."""
    room = ROOM

    def visit(part: object) -> object:
        nonlocal room
        room -= 8
        if isinstance(part, str):
            cleaned = clean(part, min(TEXT_LIMIT, max(0, room)))
            room -= len(part)
            return cleaned
        if isinstance(part, dict):
            return {clean(name, ID_LIMIT): visit(inner) for name, inner in part.items() if room > 0}
        if isinstance(part, list):
            return [visit(inner) for inner in part if room > 0]
        return part

    return {clean(name, ID_LIMIT): visit(part) for name, part in given.items() if room > 0}


def _without(fields: frozenset[str], given: dict[str, object]) -> dict[str, object]:
    return {name: part for name, part in given.items() if name not in fields}
