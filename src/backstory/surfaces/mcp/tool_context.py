"""What a call of a tool needs: the store, the project, the index; and the warm-up before the first call.

The store is opened for a call and closed after it; one idle connection stays open, so that no call is the
last to close, which would write the log back into the database. What is kept is the index, which takes in
what other processes wrote. Nothing here imports the mcp package, so it can be used beside its import.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from backstory import config, log, paths
from backstory.clients import claude_code
from backstory.errors import StoreError
from backstory.model import now_ms
from backstory.store import documents, life, memories, nodes, projects, sessions
from backstory.store.file.connection import Connection, connect, transaction
from backstory.store.open import open_store
from backstory.surfaces.opened import ANSWER_SECONDS, open_drained

if TYPE_CHECKING:
    from backstory.recall.index import Index

_making = threading.Lock()
_kept_open: dict[str, tuple[int, Connection]] = {}  # which file, by its inode
_indexes: list[Index] = []


@contextmanager
def store() -> Iterator[tuple[Connection, int]]:
    """The store and the time, for one call."""
    now, folder = now_ms(), data_folder()
    opened = open_drained(folder, now=now, seconds=ANSWER_SECONDS)
    with opened as db:
        if not opened.is_read_only:
            _keep_up(folder)
        yield db, now


@contextmanager
def undrained() -> Iterator[Connection]:
    """The store as it can be had at once, for who must not wait."""
    folder = data_folder()
    with open_store(folder, now=now_ms(), drain=lambda _: None, hurried=True) as db:
        _keep_up(folder)
        yield db


def data_folder() -> str:
    found = paths.data_folder(os.environ)
    if found is None:
        raise StoreError(
            "backstory has no data folder; set HOME or BACKSTORY_HOME to an absolute path, then start anew"
        )
    return found


def _keep_up(folder: str) -> None:
    """Hold the store open. Once another file has taken its place (a backup was restored), what was learned
    from the old one is not true any more."""
    path = paths.database(folder)
    with _making:
        file = os.stat(path).st_ino
        if folder in _kept_open and _kept_open[folder][0] != file:
            del _kept_open[folder]
            _indexes.clear()
        if folder not in _kept_open:
            _kept_open[folder] = file, connect(path)


@contextmanager
def changing(memory_id: str) -> Iterator[tuple[Connection, str, int]]:
    """One memory of this project, for a change in one transaction."""
    with store() as (db, now), transaction(db):
        yield db, life.known(db, memory_id.strip(), scope(db)), now


def scope(db: Connection) -> list[str]:
    """The projects whose memories this server may touch: its own, and the global one."""
    here = projects.at(db, paths.place(project()))
    return [here.id, projects.GLOBAL] if here else [projects.GLOBAL]


def readable(db: Connection) -> list[str]:
    """The projects that a model may read: where the user allows it, all of them."""
    if config.may_recall_everywhere(os.environ):
        return [one.id for one in projects.every(db)]
    return scope(db)


def project() -> str:
    return claude_code.project_folder(os.environ)


def session(db: Connection) -> str | None:
    session_id = claude_code.session_id(os.environ)
    return sessions.following(db, session_id) if session_id else None


def index() -> Index:
    """One for the life of the server; the settings are read when it is first needed."""
    from backstory.recall.index import Index

    with _making:
        if not _indexes:
            _indexes.append(Index.configured())
        return _indexes[0]


def fill_in_background(db: Connection) -> None:
    """Make the vectors that are missing, beside the calls."""
    here = projects.at(db, paths.place(project()))
    index().fill_in_background(_connection, (memories, documents, nodes), here)


def warm_up(ready: Callable[[], None] = lambda: None) -> None:
    """Load what the first search would have to wait for, say that we are `ready`, and put away what faded,
    which can take a while."""
    try:
        with store() as (db, now):
            here = projects.at(db, paths.place(project()))
            with index().lock:
                index().corpus(db, memories, here)
            ready()
            life.prune(db, now)
            fill_in_background(db)
    except Exception as error:  # noqa: BLE001  the first search will meet it again, and say so
        log.write("warning", f"warm-up: {error}")


@contextmanager
def _connection() -> Iterator[Connection]:
    with store() as (db, _):
        yield db
