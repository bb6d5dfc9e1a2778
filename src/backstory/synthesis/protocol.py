"""What a synthesizer is: items of a session in, observations and a summary out. There are two, `claude` and
`local`; the worker knows only this."""

from __future__ import annotations

from typing import Protocol

from backstory.errors import BackstoryError
from backstory.model import Batch, Findings, Spent


class Synthesizer(Protocol):
    @property
    def name(self) -> str: ...

    async def observe(self, batch: Batch) -> Findings:
        """Understand a batch, or raise Away or Malformed."""
        ...

    async def close(self, session_id: str | None = None) -> None:
        """End what is kept running for one session, or for all."""
        ...


class Away(BackstoryError):
    """The model cannot be asked now. That is not the batch's fault, and no attempt at it."""

    def __init__(
        self, reason: str, message: str, *, retry_after: float | None = None, spent: Spent | None = None
    ) -> None:
        super().__init__(message)
        self.reason = reason  # rate, network, auth, missing
        self.retry_after = retry_after  # seconds, where the model said so
        self.spent = spent


class Malformed(BackstoryError):
    """The reply could not be used, not even the second one."""

    def __init__(self, message: str, *, spent: Spent | None = None) -> None:
        super().__init__(message)
        self.spent = spent
