"""From the spool into the store, one transaction a batch.

A payload is removed only after its transaction is on disk. A drain killed before that leaves everything as it
was; killed after, the next drain finds the events in the ledger and only tidies up. Several drains may run at
once: the write lock orders them and the ledger keeps them from storing anything twice.

What changed in an initialised project is listed there as well (dirty.py), before its payload goes.
"""

from __future__ import annotations

import os
import time

from backstory import dirty, log, paths
from backstory.blob import blob_id
from backstory.capture import spool
from backstory.capture.event import read_event
from backstory.clients.canonical import NOTIFICATION, PROMPT, SESSION_END, SESSION_START, WEB
from backstory.errors import BadPayload
from backstory.intake import checkouts
from backstory.intake import turn as turns_of_events
from backstory.intake.item import item_of
from backstory.intake.trace import trace
from backstory.store import events, life, memories, projects, queue, sessions, turns
from backstory.store.file.connection import Connection, is_fault_of_the_store, savepoint, transaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from backstory.clients.canonical import Event
    from backstory.memory.turn import Turn

    Progress = Callable[[int, int], None]  # so many of so many are stored

BATCH_EVENTS = 250
BATCH_BYTES = 16_000_000
LEARN_SECONDS = 1.0  # for the history of a checkout that is new
HURRIED_EVENTS = 25  # a batch where somebody waits: small enough to stop in time
HURRIED_BYTES = 200_000  # to read, clean and redact a megabyte takes a sixth of a second


class Drained:
    __slots__ = ("failed", "left", "stored")

    def __init__(self) -> None:
        self.stored = 0  # events new to the store
        self.failed = 0  # payloads put aside
        self.left = 0  # still waiting when the time was up


def drain(
    db: Connection,
    folder: str,
    *,
    now: int,
    seconds: float | None = None,
    progress: Progress | None = None,
    hurried: bool = False,
) -> Drained:
    """Store what is waiting, oldest first; with `seconds`, stop after the batch in which they end. `hurried`
    makes it small batches, and leaves what is too large for one."""
    done = Drained()
    deadline = None if seconds is None else time.monotonic() + seconds
    salvaged = spool.salvage(folder, now)
    if salvaged:
        log.write("warning", f"took over {salvaged} payloads left in tmp by hooks that were killed")
    waiting = spool.waiting(folder)
    total = len(waiting)
    while batch := _take(waiting, hurried):
        _store(db, folder, batch, done)
        if progress:
            progress(total - len(waiting), total)
        if deadline is not None and time.monotonic() >= deadline:
            break
    done.left = len(waiting)
    if not hurried:
        checkouts.learn(db, now, LEARN_SECONDS)
    if sessions.any_silent(db, now):
        with transaction(db):
            sessions.mark_interrupted(db, now)
            turns.close_silent(db, now)
    return done


def _take(waiting: list[spool.Spooled], hurried: bool) -> list[spool.Spooled]:
    events, most = (HURRIED_EVENTS, HURRIED_BYTES) if hurried else (BATCH_EVENTS, BATCH_BYTES)
    size = count = 0
    for payload in waiting[:events]:
        size += payload.size
        if size > most and (count or hurried):
            break
        count += 1
    batch = waiting[:count]
    del waiting[:count]
    return batch


class _Prepared:
    """An event with all that can be known of it without the write lock, which others wait for."""

    __slots__ = ("changed", "event", "files", "hashes", "item", "name", "place", "trace")

    def __init__(
        self,
        name: str,
        event: Event,
        places: dict[str, paths.Place],
        blobs: dict[str, str | None],
        roots: dict[str, str | None],
    ) -> None:
        self.name = name  # of its payload
        self.event = event
        self.trace = trace(event.use)
        self.item = item_of(event)  # for the queue
        files = self.trace.files if self.trace else []
        # Whoever reads this later may look from another folder.
        self.files = [os.path.normpath(os.path.join(event.cwd, file)) for file in files]
        for file in self.files:
            if file not in blobs:
                blobs[file] = blob_id(file)
        self.hashes = [blobs[file] for file in self.files]
        if event.cwd not in places:
            places[event.cwd] = paths.place(event.cwd)
        self.place = places[event.cwd]
        # (root, path), for lists of dirty files. As the paths came: one that was redacted leads nowhere, and
        # the list stays in the project, where the file of that name lies.
        self.changed = dirty.listed(event.changed, roots) if event.changed else []


def _store(db: Connection, folder: str, batch: list[spool.Spooled], done: Drained) -> None:
    found: list[_Prepared] = []
    settled: list[str] = []
    bad: list[tuple[str, str]] = []
    places: dict[str, paths.Place] = {}
    blobs: dict[str, str | None] = {}
    roots: dict[str, str | None] = {}
    lists: dict[str, list[str]] = {}  # root -> what changed there
    for payload in batch:
        try:
            raw = spool.read(folder, payload.name)
            if raw is not None:
                event = read_event(raw, spool_name=payload.name, at=payload.at)
                found.append(_Prepared(payload.name, event, places, blobs, roots))
        except BadPayload as error:
            bad.append((payload.name, str(error)))
        except PermissionError as error:  # a session under sudo left it; those behind it are readable
            bad.append((payload.name, f"may not be read: {error.strerror}"))
        except OSError as error:  # a disk that fails may work again: it stays in new/
            log.write("error", f"payload {payload.name} could not be read: {error}")
        except Exception as error:  # noqa: BLE001  one odd payload must not hold up those behind it
            bad.append((payload.name, f"could not be understood: {type(error).__name__}: {error}"))
    with transaction(db):
        going_on = _Turns(db)
        for prepared in found:
            try:
                with savepoint(db):
                    is_new = _remember(db, prepared)
                    if is_new:
                        going_on.take(prepared)
                done.stored += is_new
                settled.append(prepared.name)
                for root, path in prepared.changed if is_new else ():
                    lists.setdefault(root, []).append(path)
            except Exception as error:  # one odd event must not hold up those behind it
                if is_fault_of_the_store(error):
                    raise  # the whole batch stays in the spool for the next drain
                bad.append((prepared.name, f"could not be stored: {type(error).__name__}: {error}"))
        going_on.save()
        _list(lists)  # before the ledger knows them: a change may be listed twice, but is never missing
    for name in settled:
        spool.remove(folder, name)
    done.failed += sum(_put_aside(folder, name, reason) for name, reason in bad)


def _list(lists: dict[str, list[str]]) -> None:
    for root, changed in lists.items():
        try:
            dirty.append(root, changed)
        except FileNotFoundError:
            pass  # the project is not initialised any more
        except OSError as error:
            log.write("warning", f"changes not noted in {root}/{dirty.NAME}: {error}")


def _put_aside(folder: str, name: str, reason: str) -> bool:
    try:
        spool.fail(folder, name, reason)
    except OSError as error:  # it stays in new/, and the next drain tries again
        log.write("error", f"payload {name} could not be put aside ({error}): {reason}")
        return False
    log.write("warning", f"payload {name} put aside in {folder}/failed: {reason}")
    return True


def _remember(db: Connection, prepared: _Prepared) -> bool:
    event, place = prepared.event, prepared.place
    if not events.first_time(db, event.key, event.name, event.session_id, event.at):
        return False
    if events.is_erased(db, event.session_id, event.at, begins=event.kind in turns_of_events.BEGINNING):
        return False
    project_id = known = sessions.project_of(db, event.session_id)
    if project_id is None:
        project_id = projects.ensure(db, place, event.at)
    if projects.is_paused(db, project_id):
        return False  # only that it was there is noted, or a later reading of the transcript would store it
    if known is None:
        sessions.start(db, event.session_id, project_id, event.cwd, place, event.at)
    if event.kind in (PROMPT, NOTIFICATION, SESSION_START):
        sessions.reopen(db, event.session_id, event.at)
    sessions.touch(db, event.session_id, event.at)
    memory_id = _memory(db, prepared, project_id)
    if prepared.item:
        action = event.use.action if event.use else None
        queue.put(db, event.session_id, *prepared.item, event.at, memory_id, action)
    if event.kind == SESSION_END:
        sessions.end(db, event.session_id, event.at)
        life.promote(db, event.session_id, event.at)
    return True


def _memory(db: Connection, prepared: _Prepared, project_id: str) -> str | None:
    """What a prompt or a tool use leaves behind at once; turns gather the rest."""
    event = prepared.event
    if event.kind == PROMPT and event.text:
        sessions.keep_prompt(db, event.session_id, event.text, event.at)
    elif event.use and prepared.trace:
        return memories.add_trace(
            db,
            project_id=project_id,
            session_id=event.session_id,
            content=prepared.trace.content,
            files=prepared.files,
            hashes=prepared.hashes,
            importance=prepared.trace.importance,
            action=event.use.action,
            source="web" if event.use.action == WEB else "tool",
            now=event.at,
        )
    return None


class _Turns:
    """The turns that the events of a batch belong to: each is read once and written once."""

    __slots__ = ("_db", "_latest", "_touched")

    def __init__(self, db: Connection) -> None:
        self._db = db
        self._latest: dict[str, Turn | None] = {}  # by session
        self._touched: dict[int, Turn] = {}

    def take(self, prepared: _Prepared) -> None:
        event, session_id = prepared.event, prepared.event.session_id
        if session_id not in self._latest:
            self._latest[session_id] = turns.latest(self._db, session_id)
        turn = self._latest[session_id]
        is_late = turn is not None and event.at < turn.started_at
        if is_late:
            turn = self._at(session_id, event.at)
        turn = turns_of_events.take(turn, event, prepared.place)
        if turn is not None:
            self._touched[id(turn)] = turn
        if not is_late:
            self._latest[session_id] = turn

    def _at(self, session_id: str, at: int) -> Turn | None:
        """The turn that a session was in at that time, be it stored or of this batch."""
        found = [turn for turn in self._touched.values() if turn.session_id == session_id]
        stored = turns.latest(self._db, session_id, at)
        if stored is not None and all(turn.row != stored.row for turn in found):
            found.append(stored)
        return max(
            (turn for turn in found if turn.started_at <= at), key=lambda turn: turn.started_at, default=None
        )

    def save(self) -> None:
        for turn in self._touched.values():
            project_id = sessions.project_of(self._db, turn.session_id)
            if project_id is not None and turn.says_something:
                turns.save(self._db, turn, project_id)
