"""A worker on a real store, with a synthesizer that says what it was told to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from backstory.model import Batch, Findings, Observation, Spent, Summary
from backstory.surfaces.opened import open_drained
from backstory.synthesis.protocol import Away
from backstory.synthesis.runner import Settings, Worker
from tests.helpers.chaos import NOW, Json, event, put, rows, tool_use

ROOT = "/somewhere/project"

TOLD = Summary(
    request="Find the lost cent",
    investigated="invoice.py",
    learned="Rounding happens twice",
    completed="The sum is rounded once",
    next_steps="Release",
    files_read=("made/up.py",),
    files_edited=("made/up/too.py",),
    notes="",
)

COST = Spent("haiku", 1, 1_000, 200, 300, 50, 0.25)

FIX = Observation("bugfix", "Fixed the lost cent", "The sum is rounded now, and not each line.")

Reply = Findings | BaseException | Callable[[Batch], Findings]


class Scripted:
    """A synthesizer that says what it was told to, and then nothing of note."""

    def __init__(self, name: str, *replies: Reply, seconds: float = 0.0) -> None:
        self.name = name
        self.replies = list(replies)
        self.seconds = seconds
        self.batches: list[Batch] = []
        self.closed: list[str | None] = []
        self.at_once: list[list[str]] = []  # which sessions it was at, each time one began
        self._busy: list[str] = []

    async def observe(self, batch: Batch) -> Findings:
        self.batches.append(batch)
        self._busy.append(batch.session.id)
        self.at_once.append(sorted(self._busy))
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self._busy.remove(batch.session.id)
        reply: Reply = self.replies.pop(0) if self.replies else Findings()
        if isinstance(reply, BaseException):
            raise reply
        found = reply(batch) if callable(reply) else reply
        return found if batch.wants_summary else replace(found, summary=None)

    async def close(self, session_id: str | None = None) -> None:
        self.closed.append(session_id)


@dataclass
class Desk:
    data: Path
    now: int = NOW
    tick: int = 0  # milliseconds that pass between two looks at the clock
    local: Scripted = field(default_factory=lambda: Scripted("local"))

    def happened(self, *payloads: Json, session: str = "session-1", at: int | None = None) -> None:
        """A millisecond apart, the last one now."""
        last = self.now if at is None else at
        for number, payload in enumerate(payloads):
            put(self.data, {**payload, "session_id": session}, at=last - len(payloads) + 1 + number)

    def clock(self) -> int:
        self.now += self.tick
        return self.now

    def worker(self, claude: Scripted | None, mode: str, daily_usd: float, missing: str = "") -> Worker:
        return Worker(
            lambda: open_drained(str(self.data), now=self.now, seconds=2.0),
            Settings(mode, daily_usd, 0.0),
            local=self.local,
            claude=claude,
            missing=missing,
            clock=self.clock,
        )

    def work(
        self,
        claude: Scripted | None = None,
        *,
        mode: str = "claude",
        daily_usd: float = 1.0,
        missing: str = "",
    ) -> None:
        """Until nothing is due."""

        async def bounded() -> None:
            async with asyncio.timeout(20):
                await self.worker(claude, mode, daily_usd, missing).run()

        asyncio.run(bounded())

    def observed(self, *findings: Reply, mode: str = "claude") -> Scripted:
        """What happened, seen by a model that answers like this."""
        model = Scripted("claude", *findings)
        self.work(model, mode=mode)
        return model

    def rows(self, sql: str, *values: object) -> list[Json]:
        return rows(self.data, sql, *values)

    def memories(self, kind: str) -> list[Json]:
        return self.rows("SELECT * FROM memories WHERE kind = ? ORDER BY row", kind)

    def queue(self, *fields: str) -> list[tuple[Any, ...]]:
        found = self.rows("SELECT * FROM observation_queue ORDER BY created_at_epoch, id")
        return [tuple(row[field] for field in fields) for row in found]

    def trace(self, command: str) -> Json:
        (row,) = self.rows("SELECT * FROM memories WHERE content LIKE ?", f"%Command: {command}%")
        return row


STOP = event("Stop", last_assistant_message="The cent is back.")

END = event("SessionEnd", reason="other")


def edit(file: str = f"{ROOT}/shop/invoice.py") -> Json:
    return tool_use("Edit", {"file_path": file, "old_string": "a", "new_string": "b"}, {"filePath": file})


RATE = Away(
    "rate", "the model takes no more requests now; it is asked again later", spent=replace(COST, usd=0.01)
)

NETWORK = Away("network", "the model cannot be reached; it is asked again later")

AUTH = Away("auth", "Claude Code may not ask the model; log in with `claude`")
