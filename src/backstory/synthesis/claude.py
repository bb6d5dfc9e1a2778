"""The synthesizer that asks a model, through the user's own Claude Code: by the Agent SDK where that is
installed (claude_sdk.py), else by `claude -p` (claude_process.py).

For each session there is a model session: a Claude Code in the background, in an empty folder, without the
user's settings, hooks, plugins, CLAUDE.md or tools, with two tools of ours instead. It stays between batches,
so that the model knows what it has stored; when it has read much, it is ended, and the next one starts from
the summary.

A message is one request, because a turn is limited to one: after a reply with tool calls Claude Code would
send everything again only to hear that the model is done. What was wrong with a reply is said in one more
message.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from backstory import paths
from backstory.errors import BackstoryError, BadInput
from backstory.model import Batch, Findings, Observation, Spent, Summary
from backstory.synthesis import prompt
from backstory.synthesis.claude_process import ProcessClient
from backstory.synthesis.claude_reply import Client, Reply, Start, Tool
from backstory.synthesis.protocol import Away, Malformed

MODEL = "haiku"  # the alias: what it stands for is the client's to know, and a gateway's to change
TIMEOUT = 120.0
HISTORY_TOKENS = 3_000  # measured by bench/synthesis_cost.py: more costs more than it lets the model remember
MOST_SESSIONS = 3  # each is a Claude Code in RAM
CHARS_A_TOKEN = 4
SDK = "claude_agent_sdk"

# What Claude Code tells the processes that it starts: none of it is true of a session of ours.
NOT_OURS = frozenset(
    "CLAUDECODE CLAUDE_CODE_ENTRYPOINT CLAUDE_CODE_SESSION_ID CLAUDE_CODE_CHILD_SESSION CLAUDE_CODE_SSE_PORT"
    " CLAUDE_ENV_FILE CLAUDE_PLUGIN_DATA CLAUDE_PLUGIN_ROOT CLAUDE_PROJECT_DIR".split()
)
QUIET = {
    "BACKSTORY_WORKER": "1",  # every hook and server of ours looks at this first
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",  # nor does an @path in an item become the file's text
    "CLAUDE_CODE_DISABLE_THINKING": "1",
    "MAX_THINKING_TOKENS": "0",
    "CLAUDE_CODE_EFFORT_LEVEL": "low",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "8192",
    "CLAUDE_CODE_MAX_RETRIES": "0",  # the queue waits better than a process does
    "ENABLE_CLAUDEAI_MCP_SERVERS": "false",
    "ENABLE_TOOL_SEARCH": "false",
}

OR_RULES = ", or go by rules: backstory config synthesizer local"
UPDATE = f"update Claude Code (claude update){OR_RULES}"
LOGIN = "log in with `claude`, or set ANTHROPIC_API_KEY"


def find_cli(env: Mapping[str, str]) -> str | None:
    """The user's own `claude`, else the one that the SDK brings along."""
    ours = [
        os.path.realpath(folder)
        for folder in (os.path.dirname(paths.__file__), paths.data_folder(env))
        if folder
    ]
    for folder in env.get("PATH", "").split(os.pathsep):
        program = os.path.join(folder, "claude")
        if not os.path.isabs(folder) or not os.path.isfile(program) or not os.access(program, os.X_OK):
            continue
        if not any(os.path.realpath(program).startswith(each + os.sep) for each in ours):
            return program
    sdk = importlib.util.find_spec(SDK)
    bundled = os.path.join(os.path.dirname(sdk.origin), "_bundled", "claude") if sdk and sdk.origin else ""
    return bundled if os.path.isfile(bundled) else None


def available(env: Mapping[str, str]) -> Away | None:
    """Why the model cannot be asked, as far as that can be known without asking it."""
    if find_cli(env) is None:
        return Away("missing", f"there is no claude on PATH; install Claude Code{OR_RULES}")
    return None


class Claude:
    name = "claude"

    def __init__(self, env: Mapping[str, str], model: str = MODEL, timeout: float = TIMEOUT) -> None:
        self._env = env
        self._model = model
        self._timeout = timeout
        self._sessions: dict[str, _Session] = {}  # the one used last is the last
        self._asking: set[str] = set()

    async def observe(self, batch: Batch) -> Findings:
        """Ask the model about a batch. Whatever goes wrong, its session is ended: the next starts afresh."""
        desk = _Desk(batch)
        self._asking.add(batch.session.id)
        try:
            async with asyncio.timeout(self._timeout):
                await self._ask(desk)
        except TimeoutError:
            await self.close(batch.session.id)
            said = f"the model did not answer within {self._timeout:g} s; it is asked again later"
            raise Away("network", said, spent=desk.spent) from None
        except BaseException:
            await self.close(batch.session.id)
            raise
        finally:
            self._asking.discard(batch.session.id)
        return Findings(tuple(desk.observations.values()), desk.summary, desk.spent)

    async def close(self, session_id: str | None = None) -> None:
        """End the Claude Code of one session, or all of them. It is awaited to the end even when whoever
        called is cancelled meanwhile: a child that nobody waits for stays as a zombie."""
        ids = list(self._sessions) if session_id is None else [session_id]
        sessions = [self._sessions.pop(each) for each in ids if each in self._sessions]
        ending = asyncio.gather(*(session.end() for session in sessions))
        cancelled = False
        while not ending.done():
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError:
                cancelled = True
        if cancelled:
            raise asyncio.CancelledError

    async def _ask(self, desk: _Desk) -> None:
        session = await self._session(desk.batch)
        text, session.shown = prompt.message(desk.batch, session.shown)
        desk.shown, session.desk = session.shown, desk
        problems = await self._turn(session, desk, text)
        if problems:
            problems = await self._turn(session, desk, prompt.correction(problems, desk.batch))
        if problems and not desk.will_do:
            raise Malformed(f"the model's reply could not be used twice: {problems[0]}", spent=desk.spent)

    async def _turn(self, session: _Session, desk: _Desk, text: str) -> list[str]:
        """One message and the reply to it. What was wrong with the reply comes back."""
        reply = Reply()
        try:
            await session.turn(text, reply)
        except (BackstoryError, TimeoutError):
            raise
        except Exception as error:  # the SDK raises bare ones, too
            raise Malformed(
                f"Claude Code ended in the middle: {session.why(error)}", spent=desk.spent
            ) from error
        finally:
            desk.spent = _sum(desk.spent, session.spent(reply))
        if reply.error:
            raise _away(reply, self._model, desk.spent)
        return desk.missing(reply)

    async def _session(self, batch: Batch) -> _Session:
        session = self._sessions.get(batch.session.id)
        if session is not None and session.history > HISTORY_TOKENS * CHARS_A_TOKEN:
            await self.close(batch.session.id)
            session = None
        if session is not None:
            self._sessions[batch.session.id] = self._sessions.pop(batch.session.id)
            return session
        if away := available(self._env):
            raise away
        idle = [session_id for session_id in self._sessions if session_id not in self._asking]
        for session_id in idle[: max(0, len(self._sessions) + 1 - MOST_SESSIONS)]:
            await self.close(session_id)
        session = self._sessions[batch.session.id] = _Session(self._env, self._model, self._timeout)
        await session.start()
        return session


class _Desk:
    """Where the two tools put what the model stores of a batch."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.shown = prompt.Shown()
        self.observations: dict[str, Observation] = {}  # by title: said again, it was meant better
        self.summary: Summary | None = None
        self.spent: Spent | None = None

    def store_observation(self, arguments: Mapping[str, Any]) -> str:
        found = prompt.observation(arguments, self.batch, self.shown)
        known = found.title.lower() in self.observations
        if not known and len(self.observations) >= prompt.MOST_OBSERVATIONS:
            raise BadInput(f"{prompt.MOST_OBSERVATIONS} are stored of this message; no more are taken")
        self.observations[found.title.lower()] = found
        return "stored"

    def store_summary(self, arguments: Mapping[str, Any]) -> str:
        found = prompt.summary(arguments)
        if not self.batch.wants_summary:
            return "not needed now"
        self.summary = found
        return "stored"

    @property
    def will_do(self) -> bool:
        """Something was found, and what had to be is there: one bad call besides does not undo the rest."""
        return self.summary is not None if self.batch.wants_summary else bool(self.observations)

    def missing(self, reply: Reply) -> list[str]:
        """What is wrong with the reply, for the model to put right."""
        problems = list(reply.refused)
        if self.batch.wants_summary and self.summary is None:
            problems.append(f"{prompt.SUMMARY} was not called")
        elif not reply.calls and not self.will_do and not prompt.says_nothing(reply.text):
            said = f"{prompt.tidy(reply.text)[:80]!r}" if reply.text.strip() else "empty"
            problems.append(f"the reply was {said}: neither a tool call nor {prompt.NOTHING}")
        return problems


class _Session:
    """A Claude Code that runs beside one of the user's."""

    def __init__(self, env: Mapping[str, str], model: str, timeout: float) -> None:
        self.model = model
        self.shown = prompt.Shown()
        self.desk: _Desk | None = None
        self.history = 0  # characters
        self.usd = 0.0
        self.stderr: list[str] = []
        self._busy = False
        self._client = self._connection(env, timeout)

    async def start(self) -> None:
        try:
            await self._client.start()
        except Exception as error:  # bare ones as well
            raise Away("missing", f"Claude Code does not start: {self.why(error)}; {UPDATE}") from error

    async def turn(self, text: str, reply: Reply) -> None:
        self._busy = True
        self.history += len(text)
        await self._client.turn(text, reply)
        self.history += reply.history
        self._busy = False

    async def end(self) -> None:
        await self._client.end(self._busy)

    def spent(self, reply: Reply) -> Spent:
        """What the reply cost. The client counts dollars over the whole session, tokens by the message."""
        seen = [reply.total] if reply.total is not None else list(reply.usage.values())
        usd = 0.0
        if reply.usd is not None:
            usd, self.usd = max(0.0, reply.usd - self.usd), reply.usd
        return Spent(
            model=reply.model or self.model,
            requests=max(1, len(reply.usage)) + reply.tries,
            input_tokens=_tokens(seen, "input_tokens"),
            cache_read_tokens=_tokens(seen, "cache_read_input_tokens"),
            cache_write_tokens=_tokens(seen, "cache_creation_input_tokens"),
            output_tokens=_tokens(seen, "output_tokens"),
            usd=usd,
        )

    def why(self, error: Exception) -> str:
        said = self.stderr[-1] if self.stderr else str(error).partition("\n")[0]
        return prompt.tidy(said)[:200] or type(error).__name__

    def _connection(self, env: Mapping[str, str], timeout: float) -> Client:
        tools = (
            Tool(
                prompt.OBSERVATION,
                prompt.OBSERVATION_HELP,
                prompt.OBSERVATION_SCHEMA,
                self._answer(lambda desk, arguments: desk.store_observation(arguments)),
            ),
            Tool(
                prompt.SUMMARY,
                prompt.SUMMARY_HELP,
                prompt.SUMMARY_SCHEMA,
                self._answer(lambda desk, arguments: desk.store_summary(arguments)),
            ),
        )
        program = find_cli(env) or "claude"
        start = Start(program, self.model, _quiet_folder(env), environment(env, timeout), tools, self._note)
        if importlib.util.find_spec(SDK) is None:
            return ProcessClient(start)
        from backstory.synthesis.claude_sdk import SdkClient

        return SdkClient(start)

    def _answer(
        self, store: Callable[[_Desk, Mapping[str, Any]], str]
    ) -> Callable[[Mapping[str, Any]], tuple[str, bool]]:
        def answer(arguments: Mapping[str, Any]) -> tuple[str, bool]:
            try:
                return store(self.desk, arguments) if self.desk else "", False
            except BadInput as error:
                return str(error), True

        return answer

    def _note(self, line: str) -> None:
        self.stderr = [*self.stderr[-9:], line[:500]]


def environment(env: Mapping[str, str], timeout: float = TIMEOUT) -> dict[str, str]:
    """What a Claude Code of ours is started with. The SDK adds what this process was started with, so what
    must not reach it is emptied, not left out."""
    given = {name: value for name, value in env.items() if name not in NOT_OURS}
    emptied = {
        name: "" for name in NOT_OURS - {"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"} if os.environ.get(name)
    }
    # Should this process be killed, Claude Code finishes its request before it sees that nobody is there.
    patience = {"API_TIMEOUT_MS": str(round(timeout * 1000))}
    return {**given, **emptied, **QUIET, **patience}


def _quiet_folder(env: Mapping[str, str]) -> str:
    """A folder with nothing in it, always the same one: Claude Code notes every folder that it was in."""
    data = paths.data_folder(env)
    if data is None:
        raise Away("missing", "there is no folder for data; set HOME or BACKSTORY_HOME to an absolute path")
    folder = os.path.join(os.path.realpath(data), "quiet")
    paths.make_folder(folder)
    return folder


def _away(reply: Reply, model: str, spent: Spent | None) -> BackstoryError:
    """What a failed call means for the queue: wait, or give this batch up."""
    said = prompt.tidy(reply.said)[:200].rstrip(".") or reply.error
    status = reply.status or 0
    if reply.error in ("authentication_failed", "billing_error") or status in (401, 403):
        return Away("auth", f"Claude Code may not ask the model ({said}); {LOGIN}", spent=spent)
    if reply.error in ("rate_limit", "overloaded") or status in (429, 529):
        wait = max(0.0, reply.resets_at - time.time()) if reply.resets_at else None
        message = f"the model takes no more requests now ({said}); it is asked again later"
        return Away("rate", message, retry_after=wait, spent=spent)
    if reply.error == "model_not_found" or status == 404:
        message = f"there is no model {model!r} ({said}); set claude.model to another"
        return Away("missing", message, spent=spent)
    if reply.error == "server_error" or status >= 500:
        message = f"the model cannot be reached ({said}); it is asked again later"
        return Away("network", message, spent=spent)
    return Malformed(f"the model refused the request ({said})", spent=spent)


def _tokens(usage: list[Mapping[str, Any]], name: str) -> int:
    return sum(value for each in usage if isinstance(value := each.get(name), int))


def _sum(before: Spent | None, more: Spent) -> Spent:
    if before is None:
        return more
    return replace(
        more,
        requests=before.requests + more.requests,
        input_tokens=before.input_tokens + more.input_tokens,
        cache_read_tokens=before.cache_read_tokens + more.cache_read_tokens,
        cache_write_tokens=before.cache_write_tokens + more.cache_write_tokens,
        output_tokens=before.output_tokens + more.output_tokens,
        usd=before.usd + more.usd,
    )
