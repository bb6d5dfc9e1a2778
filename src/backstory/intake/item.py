"""What of an event goes into the queue for synthesis. Pure.

A memory of a tool use says that it happened; the queue keeps for a while what was in it, also of results that
are too large to be a memory.
"""

from __future__ import annotations

import json

from backstory.intake.trace import is_echo, is_ours
from backstory.safety.clean import without_middle
from backstory.safety.redact import redact
from backstory.store.queue import CHECKPOINT, COMPACT, FINALIZE, PROMPT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from backstory.capture.event import Event

BORING_TOOLS = frozenset({"Glob", "Grep", "ListMcpResourcesTool"})
PROMPT_LIMIT = 8_000
NOTIFICATION = "<task-notification>"


def is_notification(prompt: str) -> bool:
    """A background agent's report arrives as if it were a prompt."""
    return prompt.lstrip().startswith(NOTIFICATION)


def item_of(event: Event) -> tuple[str, str, str] | None:
    """(name, input, output) of the item in the queue, both as JSON; None where there is nothing to learn."""
    if event.tool is not None:
        return _tool_use(event)
    if event.prompt and not is_notification(event.prompt):
        return PROMPT, _json({"prompt": without_middle(event.prompt, PROMPT_LIMIT)}), "{}"
    if event.name == "PostCompact" and event.said:
        return COMPACT, _json({"summary": event.said}), "{}"
    if event.name == "PreCompact":
        return CHECKPOINT, "{}", "{}"
    if event.name == "Stop":
        return FINALIZE, "{}", _json({"last_assistant_message": event.said or ""})
    return None


def _tool_use(event: Event) -> tuple[str, str, str] | None:
    if event.tool is None or event.tool in BORING_TOOLS or is_ours(event) or is_echo(event):
        return None
    result = event.excerpt if event.too_large else event.result
    if event.error is not None:
        result = {"error": event.error}
    return event.tool, _json({**event.tool_input, **event.changes}), _json(result)


def _json(value: object) -> str:
    """Each text in it is clean. Once more, because only beside its name does a value show what it is."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:  # Python reads and writes NaN and Infinity; SQLite knows no such JSON
        value = json.loads(json.dumps(value), parse_constant=str)
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    clean = redact(text)
    if clean != text:
        try:
            json.loads(clean)
        except ValueError:  # a marker took a quote with it
            return json.dumps({"text": clean}, ensure_ascii=False)
    return clean
