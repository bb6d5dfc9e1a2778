"""Whose a checkout is: the worker has git walk through its history once, and notes what it found."""

from __future__ import annotations

import os

from backstory import log, paths
from backstory.errors import Unavailable
from backstory.store import projects
from backstory.store.file.connection import may_be_unavailable, transaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from backstory.store.file.connection import Connection

AT_ONCE = 20
SECONDS = 60.0  # for a history; of one that takes longer the path must do


def learn(db: Connection, now: int, *, most: int | None = AT_ONCE) -> None:
    """Look at the checkouts that nobody has looked at. While others write, that can wait."""
    try:
        with may_be_unavailable():
            for path, root in projects.unread(db, -1 if most is None else most):
                _look(db, path, root, now)
    except Unavailable:
        pass


def _look(db: Connection, path: str, root: str, now: int) -> None:
    place = paths.place(root) if os.path.isdir(root) else None
    if place is None or place.location != path:
        with transaction(db):
            projects.note_mark(db, path, projects.GONE)
        return
    roots: tuple[str, ...] | None = ()
    if place.common and place.head and not place.is_shallow:
        from backstory import git

        roots = git.root_commits(root, SECONDS)
    with transaction(db):
        if roots is None:
            log.write("info", f"the history of {root} could not be read; it is known by its path")
            projects.note_mark(db, path, place.mark)
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
