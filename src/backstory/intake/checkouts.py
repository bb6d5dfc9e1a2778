"""Whose a checkout is: the drain walks through its history once, and notes what it found.

Never where somebody waits for a session to start. A history that takes long is left to the worker.
"""

from __future__ import annotations

import os
import time

from backstory import log, paths
from backstory.errors import Unavailable
from backstory.store import projects
from backstory.store.file.connection import may_be_unavailable, transaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from backstory.store.file.connection import Connection

AT_ONCE = 20


def learn(
    db: Connection,
    now: int,
    seconds: float,
    *,
    until: float | None = None,
    slow: bool = False,
    most: int | None = AT_ONCE,
) -> None:
    """Look at the checkouts that nobody has looked at, so many seconds at each, and no more of them after
    `until` (as time.monotonic says); with `slow` also at those that took longer before. While others write,
    that can wait."""
    try:
        with may_be_unavailable():
            for path, root in projects.unread(db, -1 if most is None else most, slow=slow):
                left = seconds if until is None else min(seconds, until - time.monotonic())
                if left <= 0:
                    break
                _look(db, path, root, now, left, slow)
    except Unavailable:
        pass


def _look(db: Connection, path: str, root: str, now: int, seconds: float, slow: bool) -> None:
    place = paths.place(root) if os.path.isdir(root) else None
    if place is None or place.location != path:
        with transaction(db):
            projects.note_mark(db, path, projects.GONE)
        return
    roots: tuple[str, ...] | None = ()
    if place.common and place.head and not place.is_shallow:
        from backstory import git  # it loads a good deal, and most drains have nothing to learn

        roots = git.root_commits(root, seconds)
    with transaction(db):
        if roots is None:
            log.write("info", f"the history of {root} could not be read; it is known by its path")
            projects.note_mark(db, path, place.mark if slow else projects.SLOW)
            return
        move = projects.settle(db, place, roots, now)
        if move is None:
            return
        source, target, sessions = move
        from backstory.store import moving  # it is slow to load, and seldom needed

        if sessions is None:
            moving.merge(db, source, target)
        else:
            moving.move_sessions(db, sessions, target)
        log.write("info", f"{root} is {target}, not {source} as it was thought; its sessions went along")
