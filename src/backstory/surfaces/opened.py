"""The store as every surface opens it: drained first."""

from __future__ import annotations

from backstory import log, paths
from backstory.capture import spool
from backstory.intake.drain import BATCH_EVENTS, drain
from backstory.store.open import open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from backstory.intake.drain import Progress
    from backstory.store.file.connection import Connection

ANSWER_SECONDS = 2.0  # of a drain that somebody waits for; the next one goes on


def open_drained(
    folder: str,
    *,
    now: int,
    seconds: float | None = None,
    progress: Progress | None = None,
    hurried: bool = False,
) -> open_store:
    """`with open_drained(folder, now=now) as db:`; see there. `seconds` and `progress` are the drain's."""

    def drain_spool(db: Connection) -> None:
        if spool.is_empty(paths.spool(folder)):
            return
        done = drain(db, paths.spool(folder), now=now, seconds=seconds, progress=progress, hurried=hurried)
        if done.stored or done.failed or done.left:
            log.write(
                "debug", f"drained {done.stored} events; {done.failed} put aside, {done.left} left waiting"
            )

    return open_store(folder, now=now, drain=drain_spool, hurried=hurried)


def backlog(folder: str) -> str | None:
    """What to tell who asks while many events wait; a few may have come this moment."""
    left = len(spool.waiting(paths.spool(folder)))
    if left < BATCH_EVENTS:
        return None
    return f"{left:,} captured events are still being taken in; ask again later for what they tell"
