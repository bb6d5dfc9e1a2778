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
from backstory.capture import ignore, spool
from backstory.capture.event import REASON_LIMIT, read_event, redacted_payload
from backstory.errors import BadInput, BadPayload
from backstory.intake.item import item_of
from backstory.intake.remember import Prepared, remember
from backstory.intake.trace import trace
from backstory.safety.clean import clean
from backstory.store.file.connection import Connection, transaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from backstory.capture.ignore import Ignored
    from backstory.clients.canonical import Event

    Progress = Callable[[int, int], None]  # so many of so many are stored

BATCH_EVENTS = 250
BATCH_BYTES = 16_000_000
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
    try:
        ignored = ignore.configured(os.environ) if waiting else ignore.ALWAYS
    except BadInput as error:  # what is not to be kept cannot be known, so nothing is taken until it can
        log.write("error", f"nothing is taken from the spool: {error}")
        done.left = total
        return done
    while batch := _take(waiting, hurried):
        _store(db, folder, batch, done, ignored)
        if progress:
            progress(total - len(waiting), total)
        if deadline is not None and time.monotonic() >= deadline:
            break
    done.left = len(waiting)
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


def _prepared(
    name: str,
    event: Event,
    places: dict[str, paths.Place],
    blobs: dict[str, str | None],
    roots: dict[str, str | None],
) -> Prepared:
    if event.cwd not in places:
        places[event.cwd] = paths.place(event.cwd)
    prepared = Prepared(event, places[event.cwd], trace(event.use), item_of(event))
    prepared.name = name
    for file in prepared.files:
        if file not in blobs:
            blobs[file] = blob_id(file)
    prepared.hashes = [blobs[file] for file in prepared.files]
    # As the paths came: one that was redacted leads nowhere, and the list stays in the project, where the
    # file of that name lies.
    prepared.changed = dirty.listed(event.changed, roots) if event.changed else []
    return prepared


def _store(db: Connection, folder: str, batch: list[spool.Spooled], done: Drained, ignored: Ignored) -> None:
    found: list[Prepared] = []
    bad: list[tuple[str, str]] = []
    places: dict[str, paths.Place] = {}
    blobs: dict[str, str | None] = {}
    roots: dict[str, str | None] = {}
    lists: dict[str, list[str]] = {}  # root -> what changed there
    for payload in batch:
        try:
            raw = spool.read(folder, payload.name)
            if raw is not None:
                event = read_event(raw, spool_name=payload.name, at=payload.at, ignored=ignored)
                found.append(_prepared(payload.name, event, places, blobs, roots))
        except BadPayload as error:
            bad.append((payload.name, str(error)))
        except PermissionError as error:  # a session under sudo left it; those behind it are readable
            bad.append((payload.name, f"may not be read: {error.strerror}"))
        except OSError as error:  # a disk that fails may work again: it stays in new/
            log.write("error", f"payload {payload.name} could not be read: {error}")
        except Exception as error:  # noqa: BLE001  one odd payload must not hold up those behind it
            bad.append((payload.name, f"could not be understood: {type(error).__name__}: {error}"))
    with transaction(db):
        new, known, odd = remember(db, found)
        for prepared in new:
            for root, path in prepared.changed:
                lists.setdefault(root, []).append(path)
        _list(lists)  # before the ledger knows them: a change may be listed twice, but is never missing
    done.stored += len(new)
    for prepared in (*new, *known):
        spool.remove(folder, prepared.name)
    bad += [(prepared.name, reason) for prepared, reason in odd]
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
    reason = clean(reason, REASON_LIMIT)  # it may quote the payload
    try:
        spool.fail(folder, name, reason, _redacted(folder, name))
    except OSError as error:  # it stays in new/, and the next drain tries again
        log.write("error", f"payload {name} could not be put aside ({error}): {reason}")
        return False
    log.write("warning", f"payload {name} put aside in {folder}/failed: {reason}")
    return True


def _redacted(folder: str, name: str) -> str | None:
    """What may be kept of a payload; None where it may not be read."""
    try:
        return redacted_payload(spool.read(folder, name) or b"")
    except PermissionError:
        return None
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001  it must not hold up those behind it
        log.write("error", f"nothing is kept of payload {name}: {type(error).__name__}")
        return ""
