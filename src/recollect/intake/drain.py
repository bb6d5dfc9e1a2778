"""From the spool into the store, one transaction a batch.

A payload is removed only after its transaction is on disk. A drain killed before that leaves everything as it
was; killed after, the next drain finds the events in the ledger and only tidies up. Several drains may run at
once: the write lock orders them and the ledger keeps them from storing anything twice.
"""

from __future__ import annotations

import sqlite3
import time

from recollect import log, paths
from recollect.capture import spool
from recollect.capture.event import TOOL_EVENTS, Event, read_event
from recollect.errors import BadPayload, StoreError
from recollect.intake import trace
from recollect.store import events, memories, projects, sessions
from recollect.store.connection import advice, connect, transaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Progress = Callable[[int, int], None]  # so many of so many are stored

BATCH_EVENTS = 250
BATCH_BYTES = 16_000_000
NOT_THE_USER = "<task-notification>"  # a background agent's report arrives as if it were a prompt


class Drained:
    __slots__ = ("failed", "left", "stored")

    def __init__(self) -> None:
        self.stored = 0  # events new to the store
        self.failed = 0  # payloads put aside
        self.left = 0  # still waiting when the time was up


def open_store(
    folder: str, *, now: int, seconds: float | None = None, progress: Progress | None = None
) -> sqlite3.Connection:
    """The store, with everything in it that was captured before now: whoever reads opens it like this."""
    path = paths.database(folder)
    db = connect(path)
    try:
        done = drain(db, paths.spool(folder), now=now, seconds=seconds, progress=progress)
    except sqlite3.DatabaseError as error:
        db.close()
        raise StoreError(advice(path, error)) from error
    except BaseException:
        db.close()
        raise
    if done.stored or done.failed or done.left:
        log.write("debug", f"drained {done.stored} events; {done.failed} put aside, {done.left} left waiting")
    return db


def drain(
    db: sqlite3.Connection,
    folder: str,
    *,
    now: int,
    seconds: float | None = None,
    progress: Progress | None = None,
) -> Drained:
    """Store what is waiting, oldest first; with `seconds`, stop after the batch in which they end."""
    done = Drained()
    deadline = None if seconds is None else time.monotonic() + seconds
    rescued = spool.salvage(folder, now)
    if rescued:
        log.write("warning", f"took over {rescued} payloads left in tmp by hooks that were killed")
    queue = spool.waiting(folder)
    total = len(queue)
    while queue:
        batch = _take(queue)
        _store(db, folder, batch, done)
        if progress:
            progress(total - len(queue), total)
        if deadline is not None and time.monotonic() >= deadline:
            break
    done.left = len(queue)
    if sessions.any_silent(db, now):
        with transaction(db):
            sessions.mark_interrupted(db, now)
    return done


def _take(queue: list[spool.Waiting]) -> list[spool.Waiting]:
    size = count = 0
    for payload in queue[:BATCH_EVENTS]:
        size += payload.size
        if count and size > BATCH_BYTES:
            break
        count += 1
    batch = queue[:count]
    del queue[:count]
    return batch


def _store(db: sqlite3.Connection, folder: str, batch: list[spool.Waiting], done: Drained) -> None:
    found: list[tuple[str, Event]] = []
    settled: list[str] = []
    bad: list[tuple[str, str]] = []
    for payload in batch:
        try:
            raw = spool.read(folder, payload.name)
        except PermissionError as error:  # a session under sudo left it; those behind it are readable
            bad.append((payload.name, f"may not be read: {error.strerror}"))
            continue
        if raw is None:
            continue
        try:
            found.append((payload.name, read_event(raw, spool_name=payload.name, at=payload.at)))
        except BadPayload as error:
            bad.append((payload.name, str(error)))
    with transaction(db):
        for name, event in found:
            db.execute("SAVEPOINT event")
            try:
                done.stored += _remember(db, event)
                settled.append(name)
            except Exception as error:  # one odd event must not hold up those behind it
                if _is_fault_of_the_store(error):
                    raise
                db.execute("ROLLBACK TO event")
                bad.append((name, f"could not be stored: {type(error).__name__}: {error}"))
            db.execute("RELEASE event")
    for name in settled:
        spool.remove(folder, name)
    for name, reason in bad:
        spool.fail(folder, name, reason)
        log.write("warning", f"payload {name} put aside in {folder}/failed: {reason}")
    done.failed += len(bad)


def _is_fault_of_the_store(error: Exception) -> bool:
    """Locked, full, damaged: no event's fault, so the whole batch stays in the spool for the next drain."""
    return isinstance(error, sqlite3.OperationalError) or type(error) is sqlite3.DatabaseError


def _remember(db: sqlite3.Connection, event: Event) -> bool:
    if not events.first_time(db, event.key, event.name, event.session_id, event.at):
        return False
    project_id = sessions.project_of(db, event.session_id)
    if project_id is None:
        place = paths.place(event.cwd)
        project_id = projects.ensure(db, place, event.at)
        sessions.start(db, event.session_id, project_id, event.cwd, place, event.at)
    if event.name in ("UserPromptSubmit", "SessionStart"):
        sessions.reopen(db, event.session_id, event.at)
    sessions.touch(db, event.session_id, event.at)
    if event.prompt and not event.prompt.startswith(NOT_THE_USER):
        sessions.keep_prompt(db, event.session_id, event.prompt, event.at)
    elif event.name in TOOL_EVENTS:
        _remember_tool_use(db, event, project_id)
    elif event.name == "SessionEnd":
        sessions.end(db, event.session_id, event.at)
        memories.promote(db, event.session_id, event.at)
    return True


def _remember_tool_use(db: sqlite3.Connection, event: Event, project_id: str) -> None:
    if event.too_large or trace.is_ours(event):
        return
    memories.add(
        db,
        project_id=project_id,
        session_id=event.session_id,
        kind="tool",
        sector="episodic",
        tier="session",
        content=trace.describe(event),
        files=trace.files_of(event),
        importance=trace.importance_of(event),
        now=event.at,
    )
