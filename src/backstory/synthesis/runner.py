"""The worker: takes what waits in the queue, has it observed, stores what came of it.

One a store, kept single by a lock that its surface holds. It is a loop: drain the spool, start a task for
each session that is due (three at most), wait a moment. A task claims a batch under a lease, asks a
synthesizer, and stores findings, cost and 'observed' in one transaction. Whatever ends it before that leaves
the batch to be claimed again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field

from backstory import log
from backstory.errors import StoreError, Unavailable
from backstory.ids import new_id
from backstory.model import Batch, Findings, Spent
from backstory.safety.clean import clean
from backstory.store import queue, spend
from backstory.store.file.connection import Connection, transaction
from backstory.synthesis.batch import cleaned, put_together, with_real_files
from backstory.synthesis.keep import keep
from backstory.synthesis.protocol import Away, Malformed, Synthesizer

AT_ONCE = 3
POLL_SECONDS = 0.25
RETRY_IS_WORTH = 20  # times the idle time: who leaves before the model is back leaves the next brief empty
PATIENCE_MS = 10 * 60_000  # how long `auto` waits for a model that is away before the rules do it


@dataclass(frozen=True, slots=True)
class Settings:
    synthesizer: str  # auto, claude, local, off
    daily_usd: float
    idle_seconds: float


class LeaseLost(Exception):
    """What was claimed is not ours any more, or not there."""


@dataclass(slots=True)
class Claim:
    lease: str
    ids: list[int] = field(default_factory=list)


class Worker:
    def __init__(
        self,
        store: Callable[[], AbstractContextManager[Connection]],  # opening it drains the spool
        settings: Settings,
        *,
        local: Synthesizer,
        claude: Synthesizer | None,
        missing: str = "",  # why there is no claude
        clock: Callable[[], int] = lambda: int(time.time() * 1000),
    ) -> None:
        self._store = store
        self._settings = settings
        self._local = local
        self._claude = claude
        self._missing = missing
        self._clock = clock
        self._running: dict[str, asyncio.Task[None]] = {}
        self._owed: list[tuple[str, Spent]] = []  # what could not be booked yet
        self._logged: set[str] = set()  # why the model was not asked
        self._stop = asyncio.Event()

    def stop(self) -> None:
        """End soon: model sessions are ended and leases given back."""
        self._stop.set()

    @property
    def stopped(self) -> bool:
        """It ended because it had to, and not for want of work."""
        return self._stop.is_set()

    async def run(self) -> None:
        """Until there has been nothing to do for the idle time, or `stop`."""
        now = self._clock()
        with self._store() as db, transaction(db):
            queue.take_over(db, now)
            queue.tidy(db, now)
            queue.give_up(db, now, self._settings.synthesizer)
        quiet_since = time.monotonic()
        try:
            while not self._stop.is_set():
                if self._start_what_is_due():
                    quiet_since = time.monotonic()
                elif time.monotonic() - quiet_since >= self._settings.idle_seconds:
                    break
                await self._wait()
        finally:
            for task in self._running.values():
                task.cancel()
            await asyncio.gather(*self._running.values(), return_exceptions=True)
            await self._local.close()
            if self._claude:
                await self._claude.close()
            with suppress(StoreError):  # what could not be booked when it was spent
                self._book()

    def _start_what_is_due(self) -> bool:
        """Whether there is something to stay for."""
        with self._store() as db:
            found = queue.due(db, self._clock(), self._settings.synthesizer)
            due = [one for one in found if one not in self._running]
            retry = queue.next_try(db)
        for session_id in due[: AT_ONCE - len(self._running)]:
            self._running[session_id] = asyncio.create_task(self._work(session_id))
        worth_waiting = self._settings.idle_seconds * RETRY_IS_WORTH * 1000
        return bool(self._running) or (retry is not None and 0 <= retry - self._clock() < worth_waiting)

    async def _wait(self) -> None:
        stopped = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait(
                {stopped, *self._running.values()},
                timeout=POLL_SECONDS,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            stopped.cancel()

    async def _work(self, session_id: str) -> None:
        """One batch, from claim to memories. Nothing that goes wrong here ends the worker."""
        claim = Claim(new_id("lease_"))
        try:
            batch = self._claimed(session_id, claim)
            if batch:
                await self._observe(batch, claim)
        except asyncio.CancelledError:
            self._give_back(claim)
            raise
        except LeaseLost:
            log.write("info", "what was being observed was forgotten or replaced meanwhile; the rest waits")
            self._give_back(claim)
        except Exception as error:  # noqa: BLE001  a fault of ours must not take the other sessions down
            log.crash("worker")
            if isinstance(error, Unavailable):
                # Locked or full: no batch's fault, and to try again at once is no use. The next hook starts
                # another worker.
                self._stop.set()
                self._give_back(claim)
            else:
                self._failed(claim, f"{type(error).__name__}: {error}")
        finally:
            self._running.pop(session_id, None)

    def _claimed(self, session_id: str, claim: Claim) -> Batch | None:
        """A batch under a lease; None where nothing happened since the last summary."""
        now = self._clock()
        with self._store() as db:
            with transaction(db):
                items = queue.claim(db, session_id, now, claim.lease)
            claim.ids = [item.id for item in items]
            if any(item.tool not in queue.MARKS for item in items) or queue.unsummarised(db, session_id):
                return put_together(db, session_id, items, now)
            with transaction(db):
                queue.done(db, claim.ids, self._local.name, now)
        return None

    @contextmanager
    def _held(self, claim: Claim) -> Iterator[Connection]:
        """A transaction about what was claimed, if it still is."""
        with self._store() as db, transaction(db):
            if not queue.holds(db, claim.ids, claim.lease):
                raise LeaseLost
            yield db

    def _give_back(self, claim: Claim) -> None:
        """Where the store cannot be had, whoever takes over finds the lease."""
        with suppress(StoreError), self._store() as db, transaction(db):
            queue.give_back(db, claim.lease)

    async def _observe(self, batch: Batch, claim: Claim) -> None:
        """Ask the model where it may be asked; else, and where it fails, the rules do it, and say why."""
        mode = batch.session.synthesizer or self._settings.synthesizer
        if mode == "local":
            return await self._by_rules(batch, claim)
        if reason := self._over_the_cap():
            return await self._by_rules(batch, claim, reason)
        try:
            if self._claude is None:
                raise Away("missing", self._missing)
            findings = await self._claude.observe(batch)
        except Away as away:
            self._book(batch, away.spent)
            if mode == "auto" and self._waited_enough(away, claim):
                return await self._by_rules(batch, claim, clean(str(away)))
            self._defer(away, claim)
        except Exception as error:  # noqa: BLE001  whatever the model or its client did, it was an attempt
            self._book(batch, error.spent if isinstance(error, Malformed) else None)
            trouble = clean(str(error) or type(error).__name__)
            if self._failed(claim, trouble, give_up=mode == "claude"):
                await self._by_rules(batch, claim, f"the model failed three times: {trouble}")
        else:
            self._keep(batch, findings, claim, self._claude.name)

    def _over_the_cap(self) -> str:
        cap = self._settings.daily_usd
        if not cap:
            return "with spend.daily_usd 0 the model is never asked"
        with self._store() as db:
            spent = spend.since(db, midnight(self._clock()))
        return f"the daily cap of ${cap:.2f} is reached (${spent:.2f} spent today)" if spent >= cap else ""

    def _waited_enough(self, away: Away, claim: Claim) -> bool:
        """A login does not come back by itself; a network does, mostly soon."""
        if away.reason in ("auth", "missing"):
            return True
        now = self._clock()
        with self._store() as db:
            since = queue.away_since(db, claim.ids) or now
        return now + int((away.retry_after or 0) * 1000) - since > PATIENCE_MS

    def _defer(self, away: Away, claim: Claim) -> None:
        trouble = clean(str(away))
        with self._held(claim) as db:
            at_least = int((away.retry_after or 0) * 1000)
            until = queue.defer(db, claim.ids, trouble, self._clock(), at_least)
        log.write(
            "warning", f"the model is away ({trouble}); {len(claim.ids)} items wait until {_time(until)}"
        )

    async def _by_rules(self, batch: Batch, claim: Claim, reason: str = "") -> None:
        if reason and reason not in self._logged:
            self._logged.add(reason)
            log.write("warning", f"observed by rules, not by the model: {reason}")
        self._keep(batch, await self._local.observe(batch), claim, self._local.name, reason)

    def _keep(self, batch: Batch, findings: Findings, claim: Claim, by: str, trouble: str = "") -> None:
        """In one transaction: a kill leaves the batch observed, with its findings, or waiting."""
        self._book(batch, findings.spent)
        findings = with_real_files(cleaned(findings), batch)
        now = self._clock()  # once: items that were done after their summary would look new to it
        with self._held(claim) as db:
            keep(db, batch, findings, by, now)
            queue.done(db, claim.ids, by, now, trouble or None)
        number = len(findings.observations)
        log.write("debug", f"{len(claim.ids)} items observed by {by}: {number} observations")

    def _book(self, batch: Batch | None = None, spent: Spent | None = None) -> None:
        """Before anything else: the money is gone whatever becomes of the answer."""
        if batch and spent:
            self._owed.append((batch.session.id, spent))
        if self._owed:
            with self._store() as db, transaction(db):
                for session_id, cost in self._owed:
                    spend.add(db, session_id, cost, self._clock())
            self._owed.clear()

    def _failed(self, claim: Claim, trouble: str, *, give_up: bool = True) -> bool:
        """Skip those that have had all their attempts; whether they are left to the caller instead."""
        trouble = clean(trouble)
        log.write("warning", f"{len(claim.ids)} items could not be observed: {trouble}")
        with self._held(claim) as db:
            exhausted = queue.fail(db, claim.ids, trouble)
            if give_up:
                queue.skip(db, exhausted, trouble, self._clock())
        return bool(exhausted) and not give_up


def midnight(now: int) -> int:
    """When the day began, where the user is."""
    day = time.localtime(now / 1000)
    return int(time.mktime((day.tm_year, day.tm_mon, day.tm_mday, 0, 0, 0, 0, 0, -1)) * 1000)


def _time(at: int) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at / 1000))
