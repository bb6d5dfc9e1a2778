"""Items of the queue, written as what Claude Code's tools are given and answer."""

from __future__ import annotations

from typing import Any

from backstory.clients import claude_code
from backstory.model import Item
from backstory.store.queue import CHECKPOINT, COMPACT, FINALIZE, PROMPT


def item(
    tool: str, given: dict[str, Any], output: Any, *, id: int = 0, session_id: str = "s1", at: int = 0
) -> Item:
    memory_id = f"trace{id}"
    if tool in (PROMPT, COMPACT, CHECKPOINT, FINALIZE):
        return Item(id, session_id, tool, given, output, at, memory_id)
    use = claude_code.tool_use(tool, given, output)
    return Item(id, session_id, tool, {**use.given, **use.written}, use.result, at, memory_id, use.action)
