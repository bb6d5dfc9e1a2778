"""What the two ways to a model share: what a model session is started with, and what came back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from backstory.synthesis import prompt

SERVER = "memory"


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    help: str
    schema: dict[str, Any]
    answer: Callable[[Mapping[str, Any]], tuple[str, bool]]  # what is said, and whether it is a refusal


@dataclass(frozen=True, slots=True)
class Start:
    """A Claude Code without tools but ours, settings, plugins or a transcript."""

    program: str
    model: str
    folder: str
    env: Mapping[str, str]
    tools: tuple[Tool, ...]
    note: Callable[[str], None]  # a line of stderr

    @property
    def allowed(self) -> list[str]:
        return [f"mcp__{SERVER}__{tool.name}" for tool in self.tools]


@dataclass(slots=True)
class Reply:
    """What came back for one message, as far as it came."""

    text: str = ""
    calls: int = 0
    refused: list[str] = field(default_factory=list)
    error: str = ""  # as the client names it: rate_limit, authentication_failed, ...
    status: int | None = None
    said: str = ""
    resets_at: float | None = None
    model: str = ""
    usage: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # of each answer
    total: Mapping[str, Any] | None = None
    usd: float | None = None  # of the model session so far
    tries: int = 0
    history: int = 0  # characters that the answers add to the session

    def refuse(self, content: Any) -> None:
        self.refused.append(prompt.tidy(_words(content))[:300])

    def answer(
        self,
        model: str,
        message_id: str | None,
        usage: Mapping[str, Any] | None,
        texts: Sequence[str],
        calls: Sequence[Any],
    ) -> None:
        self.model = model
        self.usage[message_id or ""] = usage or {}
        self.text += "\n".join(texts)
        self.calls += len(calls)
        self.history += sum(map(len, texts)) + sum(len(str(call)) for call in calls)

    def end(self, subtype: str, is_error: bool, result: str | None) -> None:
        if is_error and subtype == "success" and not self.error:
            self.error, self.said = "unknown", result or ""


class Client(Protocol):
    async def start(self) -> None: ...

    async def turn(self, text: str, reply: Reply) -> None: ...

    async def end(self, is_busy: bool) -> None: ...


def _words(content: Any) -> str:
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")


def message(text: str) -> dict[str, Any]:
    """A message that is taken as it stands: no slash command, no @path in it means anything."""
    content = {"role": "user", "content": text}
    return {"type": "user", "message": content, "parent_tool_use_id": None, "client_composed": True}
