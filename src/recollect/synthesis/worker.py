"""The worker: takes what waits in the queue, has it understood, stores what came of it.

One a store, kept single by a lock that its surface holds. It is a loop: drain the spool, start a task for
each session that is due (three at most), wait a moment. A task claims a batch under a lease, asks a
synthesizer, and stores findings, cost and 'observed' in one transaction. Whatever ends it before that leaves
the batch to be claimed again.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from sqlite3 import Connection, OperationalError

from recollect import log
from recollect.errors import StoreError
from recollect.model import OBSERVATIONS, Batch, Findings, Item, Memory, Spent, Summary
from recollect.store import memories, projects, queue, sessions, spend, summaries
from recollect.store.connection import transaction
from recollect.synthesis.keep import files_of, inside, keep
from recollect.synthesis.protocol import Away, Malformed, Synthesizer

AT_ONCE = 3
POLL_SECONDS = 0.25
RETRY_IS_WORTH = 20  # times the idle time: who leaves before the model is back leaves the next brief empty
PATIENCE_MS = 10 * 60_000  # how long `auto` waits for a model that is away before the rules do it
KNOWN = 20  # observations shown to a synthesizer as perhaps replaced
KNOWN_LOOKED_AT = 400


@dataclass(frozen=True, slots=True)
class Settings:
    synthesizer: str  # auto, claude, local, off
    daily_usd: float
    idle_seconds: float


class Worker:
    def __init__(
        self,
        store: Callable[[], AbstractContextManager[Connection]],  # opening it drains the spool
        settings: Settings,
        *,
        local: Synthesizer,
        claude: Synthesizer | None,
        missing: str = "",  # why there is no claude
        clean: Callable[[str], str] = str,  # what comes back is redacted like all that comes in
        clock: Callable[[], int] = lambda: int(time.time() * 1000),
    ) -> None:
        self._store = store
        self._settings = settings
        self._local = local
        self._claude = claude
        self._missing = missing
        self._clean = clean
        self._clock = clock
        self._running: dict[str, asyncio.Task[None]] = {}
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
            if self._settings.synthesizer == "off":
                queue.give_up(db, now)
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

    def _start_what_is_due(self) -> bool:
        """Whether there is something to stay for."""
        with self._store() as db:
            if self._settings.synthesizer == "off":
                return False
            due = [one for one in queue.due(db, self._clock()) if one not in self._running]
            retry = queue.next_try(db)
        for session_id in due[: AT_ONCE - len(self._running)]:
            self._running[session_id] = asyncio.create_task(self._work(session_id))
        worth_waiting = self._settings.idle_seconds * RETRY_IS_WORTH * 1000
        return bool(self._running) or (retry is not None and retry - self._clock() < worth_waiting)

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
        ids: list[int] = []
        try:
            with self._store() as db:
                with transaction(db):
                    items = queue.claim(db, session_id, self._clock())
                ids = [item.id for item in items]
                batch = self._batch(db, session_id, items) if items else None
            if batch:
                await self._observe(batch, ids)
        except asyncio.CancelledError:
            with self._store() as db, transaction(db):
                queue.release(db, ids)
            raise
        except Exception as error:  # noqa: BLE001  a fault of ours must not take the other sessions down
            log.crash("worker")
            if isinstance(error, StoreError) and isinstance(error.__cause__, OperationalError):
                self._store_is_away(ids)
            else:
                self._failed(ids, f"{type(error).__name__}: {error}")
        finally:
            self._running.pop(session_id, None)

    def _store_is_away(self, ids: list[int]) -> None:
        """Locked or full: that is no batch's fault, and to try at once again is no use. The next hook starts
        another worker."""
        self._stop.set()
        try:
            with self._store() as db, transaction(db):
                queue.release(db, ids)
        except StoreError:
            pass  # who takes over finds the lease

    def _batch(self, db: Connection, session_id: str, items: Sequence[Item]) -> Batch | None:
        """What a synthesizer needs to know; None where nothing happened since the last summary."""
        ids = [item.id for item in items]
        over = queue.is_over(db, session_id, self._clock())
        wants_summary = any(item.tool in queue.MARKS for item in items) or (
            over and not queue.more_waits(db, session_id, ids)
        )
        is_new = any(item.tool not in queue.MARKS for item in items)
        if not is_new and not queue.unsummarised(db, session_id):
            with transaction(db):
                queue.done(db, ids, self._local.name, self._clock())
            return None
        session = sessions.by_ids(db, [session_id])[session_id]
        project = projects.by_id(db, session.project_id)
        recent = memories.standing(db, project.id, OBSERVATIONS, KNOWN_LOOKED_AT, self._clock())
        return Batch(
            session=session,
            project=project,
            items=tuple(items),
            earlier=tuple(queue.earlier(db, session_id)),
            summary=summaries.get(db, session_id),
            known=tuple(about_the_same(recent, items, project.root)),
            wants_summary=wants_summary,
        )

    async def _observe(self, batch: Batch, ids: list[int]) -> None:
        """Ask the model where it may be asked; else, and where it fails, the rules do it, and say why."""
        if self._settings.synthesizer == "local":
            return await self._by_rules(batch, ids)
        if reason := self._over_the_cap():
            return await self._by_rules(batch, ids, reason)
        try:
            if self._claude is None:
                raise Away("missing", self._missing)
            findings = await self._claude.observe(batch)
        except Away as away:
            self._spent(batch, away.spent)
            if self._settings.synthesizer == "auto" and self._waited_enough(batch, away):
                return await self._by_rules(batch, ids, str(away))
            with self._store() as db, transaction(db):
                at_least = int((away.retry_after or 0) * 1000)
                until = queue.defer(db, ids, str(away), self._clock(), at_least)
            log.write("warning", f"the model is away ({away}); {len(ids)} items wait until {_time(until)}")
        except Exception as error:  # noqa: BLE001  whatever the model or its client did, it was an attempt
            if isinstance(error, Malformed):
                self._spent(batch, error.spent)
            else:
                log.crash("worker")
            if self._failed(ids, str(error), give_up=self._settings.synthesizer == "claude"):
                await self._by_rules(batch, ids, f"the model failed three times: {error}")
        else:
            self._keep(batch, findings, ids, self._claude.name)

    def _over_the_cap(self) -> str:
        cap = self._settings.daily_usd
        with self._store() as db:
            spent = spend.since(db, midnight(self._clock()))
        return f"the daily cap of ${cap:.2f} is reached (${spent:.2f} spent today)" if spent >= cap else ""

    def _waited_enough(self, batch: Batch, away: Away) -> bool:
        """A login does not come back by itself; a network does, mostly soon."""
        back = self._clock() + int((away.retry_after or 0) * 1000)
        return away.reason in ("auth", "missing") or back - batch.items[-1].at > PATIENCE_MS

    async def _by_rules(self, batch: Batch, ids: list[int], reason: str = "") -> None:
        if reason:
            log.write("warning", f"observed by rules, not by the model: {reason}")
        self._keep(batch, await self._local.observe(batch), ids, self._local.name, reason)

    def _keep(self, batch: Batch, findings: Findings, ids: list[int], by: str, trouble: str = "") -> None:
        """In one transaction: a kill leaves the batch observed, with its findings, or waiting."""
        now = self._clock()
        findings = _cleaned(findings, self._clean)
        if findings.summary:
            findings = replace(findings, summary=_with_real_files(findings.summary, batch))
        with self._store() as db, transaction(db):
            keep(db, batch, findings, by, now)
            if findings.spent:
                spend.add(db, batch.session.id, findings.spent, now)
            queue.done(db, ids, by, now, trouble or None)
        log.write("debug", f"{len(ids)} items observed by {by}: {len(findings.observations)} observations")

    def _spent(self, batch: Batch, spent: Spent | None) -> None:
        """A call that came to nothing costs as well."""
        if spent:
            with self._store() as db, transaction(db):
                spend.add(db, batch.session.id, spent, self._clock())

    def _failed(self, ids: list[int], trouble: str, *, give_up: bool = True) -> bool:
        """Skip those that have had all their attempts; whether they are left to the caller instead."""
        log.write("warning", f"{len(ids)} items could not be observed: {trouble}")
        with self._store() as db, transaction(db):
            exhausted = queue.fail(db, ids, trouble)
            if give_up:
                queue.skip(db, exhausted, trouble, self._clock())
        return bool(exhausted) and not give_up


def about_the_same(known: Iterable[Memory], items: Sequence[Item], root: str) -> list[Memory]:
    """Those that share a file or at least two telling words with what happened, the most alike first."""
    files = {inside(path, root) for item in items if isinstance(path := item.input.get("file_path"), str)}
    words = _words(" ".join(_texts(items)))
    scored = []
    for memory in known:
        shared = len(words & _words(f"{memory.title or ''} {memory.content}"))
        score = shared + 3 * len(files & set(memory.files))
        if score >= 2:
            scored.append((score, memory.created_at, memory.id, memory))
    scored.sort(key=lambda one: one[:3], reverse=True)
    return [memory for *_, memory in scored[:KNOWN]]


def _texts(items: Sequence[Item]) -> Iterable[str]:
    for item in items:
        for part in (item.input, item.output):
            if isinstance(part, dict):
                yield from (text for text in part.values() if isinstance(text, str))


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"[a-z0-9_]{4,40}", text.lower()) if word not in _COMMON}


_COMMON = frozenset(
    "this that with from have been were they will would should could into when then than".split()
)


def _cleaned(findings: Findings, clean: Callable[[str], str]) -> Findings:
    """Nothing that a model says is stored unseen, though it was told no secret."""
    observations = tuple(
        replace(one, title=clean(one.title), text=clean(one.text), concepts=tuple(map(clean, one.concepts)))
        for one in findings.observations
    )
    summary = findings.summary
    if summary:
        summary = replace(
            summary,
            request=clean(summary.request),
            investigated=clean(summary.investigated),
            learned=clean(summary.learned),
            completed=clean(summary.completed),
            next_steps=clean(summary.next_steps),
            notes=clean(summary.notes),
        )
    return replace(findings, observations=observations, summary=summary)


def _with_real_files(summary: Summary, batch: Batch) -> Summary:
    """Which files were read and edited is known from the tool uses; a model would have to guess."""
    read, edited = files_of((*batch.earlier, *batch.items), batch.project.root)
    before = batch.summary
    if before:
        read = tuple(dict.fromkeys((*before.files_read, *read)))
        edited = tuple(dict.fromkeys((*before.files_edited, *edited)))
    return replace(summary, files_read=read, files_edited=edited)


def midnight(now: int) -> int:
    """When the day began, where the user is."""
    day = time.localtime(now / 1000)
    return int(time.mktime((day.tm_year, day.tm_mon, day.tm_mday, 0, 0, 0, 0, 0, -1)) * 1000)


def _time(at: int) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at / 1000))
