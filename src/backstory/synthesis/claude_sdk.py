"""A model session by the Agent SDK, where the extra `claude` is installed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ResultMessage,
    SystemMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    create_sdk_mcp_server,
    tool,
)

from backstory.synthesis import prompt
from backstory.synthesis.claude_reply import SERVER, Reply, Start, Tool, message

GRACE = 2.0


class SdkClient:
    def __init__(self, start: Start) -> None:
        logging.getLogger("claude_agent_sdk").addHandler(logging.NullHandler())  # it prints what it raises
        tools = [tool(each.name, each.help, each.schema)(_answer(each)) for each in start.tools]
        options = ClaudeAgentOptions(
            cli_path=start.program,
            model=start.model,
            system_prompt=prompt.SYSTEM,
            tools=[],
            mcp_servers={SERVER: create_sdk_mcp_server(SERVER, "1.0.0", tools)},
            allowed_tools=start.allowed,
            setting_sources=[],
            max_turns=1,
            cwd=start.folder,
            env=dict(start.env),
            stderr=start.note,
            extra_args={"strict-mcp-config": None, "no-session-persistence": None},
        )
        self._client = ClaudeSDKClient(options)

    async def start(self) -> None:
        await self._client.connect()

    async def turn(self, text: str, reply: Reply) -> None:
        await self._client.query(_one(text))
        async for each in self._client.receive_response():
            take(each, reply)

    async def end(self, is_busy: bool) -> None:
        with suppress(Exception):  # it may be gone already
            if is_busy:  # else it would finish its turn first
                await asyncio.wait_for(self._client.interrupt(), GRACE)
        with suppress(Exception):
            await self._client.disconnect()


def _answer(of: Tool) -> Callable[[Any], Awaitable[dict[str, Any]]]:
    async def answer(arguments: Any) -> dict[str, Any]:
        said, is_refused = of.answer(arguments)
        return {"content": [{"type": "text", "text": said}], "is_error": is_refused}

    return answer


async def _one(text: str) -> AsyncIterator[dict[str, Any]]:
    yield message(text)


def take(message: Any, reply: Reply) -> None:
    """Note what a message of the client says."""
    match message:
        case AssistantMessage(error=str() as error):
            reply.error = error
            reply.said = " ".join(block.text for block in message.content if isinstance(block, TextBlock))
        case AssistantMessage():
            texts = [block.text for block in message.content if isinstance(block, TextBlock)]
            calls = [block.input for block in message.content if isinstance(block, ToolUseBlock)]
            reply.answer(message.model, message.message_id, message.usage, texts, calls)
        case UserMessage(content=list() as blocks):
            for block in blocks:
                if isinstance(block, ToolResultBlock) and block.is_error:
                    reply.refuse(block.content)
        case SystemMessage(subtype="api_retry"):
            reply.tries += 1
        case ResultMessage():
            reply.total, reply.usd = message.usage or {}, message.total_cost_usd
            reply.status = getattr(message, "api_error_status", None)
            reply.end(message.subtype, message.is_error, message.result)
        case _ if type(message).__name__ == "RateLimitEvent":  # newer than the oldest SDK we take
            reply.resets_at = message.rate_limit_info.resets_at
