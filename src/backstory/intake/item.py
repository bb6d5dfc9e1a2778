"""What of an event goes into the queue for synthesis. Pure.

A memory of a tool use says that it happened; the queue keeps for a while what was in it, also of results that
are too large to be a memory.
"""

from __future__ import annotations

import json

from backstory.clients import canonical
from backstory.intake.trace import is_echo
from backstory.memory.turn import is_own_command
from backstory.safety.clean import without_middle
from backstory.safety.redact import redact_together
from backstory.store.queue import CHECKPOINT, COMPACT, FINALIZE, PROMPT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from backstory.clients.canonical import Event, Use

QUEUED_LIMIT = 8_000  # characters of a prompt, an answer or a summary


def item_of(event: Event) -> tuple[str, str, str] | None:
    """(name, input, output) of the item in the queue, both as JSON; None where there is nothing to learn."""
    if event.use:
        return _tool_use(event.use)
    if event.kind == canonical.PROMPT and event.text and not is_own_command(event.text):
        return PROMPT, _json({"prompt": without_middle(event.text, QUEUED_LIMIT)}), "{}"
    if event.kind == canonical.COMPACTION and event.text:
        return COMPACT, _json({"summary": without_middle(event.text, QUEUED_LIMIT)}), "{}"
    if event.kind == canonical.COMPACTION_START:
        return CHECKPOINT, "{}", "{}"
    if event.kind == canonical.TURN_END:
        return FINALIZE, "{}", _json({"last_message": without_middle(event.text, QUEUED_LIMIT)})
    return None


def _tool_use(use: Use) -> tuple[str, str, str] | None:
    if use.action == canonical.SEARCH or use.is_ours or is_echo(use):
        return None
    result = use.excerpt if use.too_large else use.result
    if use.error is not None:
        result = {"error": use.error}
    return use.tool, _json({**use.given, **use.written}), _json(result)


def _json(value: object) -> str:
    """Each text in it is clean. Once more, because only beside its name does a value show what it is."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:  # Python reads and writes NaN and Infinity; SQLite knows no such JSON
        value = json.loads(json.dumps(value), parse_constant=str)
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    clean = redact_together(text)
    if clean != text:
        try:
            json.loads(clean)
        except ValueError:  # a marker took a quote with it
            return json.dumps({"text": clean}, ensure_ascii=False)
    return clean
