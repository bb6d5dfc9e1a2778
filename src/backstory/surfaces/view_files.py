"""Live views in CLAUDE.md: docmem says what a file is to show, claude_md writes it.

    CLAUDE.md's lock -> a transaction -> the change, and what the file shows then (docmem/views.py)
    -> the file is written -> commit -> the lock is given back -> models are told

So the last writer writes the newest state. A server that ends is in a hurry to get that lock: a writer that
has it waits at most .2 s for the store, then gives the lock back and tries again.

A change of a server's own list needs the file. Everything else is done also where the file cannot be written,
and then the reason is raised.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from backstory import log
from backstory.claude_md.write import writer
from backstory.docmem import tree, views
from backstory.docmem.views import Update, Views
from backstory.errors import BackstoryError, Busy, StoreError
from backstory.model import Node, Project
from backstory.store.file.connection import BUSY_SECONDS, Connection
from backstory.store.views import at_once, translated

PAUSE_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Added:
    node: Node
    expansion: str
    views: int  # how many the server shows now
    has_file: bool  # else there is no CLAUDE.md, and nothing changed


@dataclass(frozen=True, slots=True)
class Removed:
    was_shown: bool
    views: int
    has_file: bool


class _NoFile(Exception):
    """There is no CLAUDE.md."""


def add(
    db: Connection, own: Views, project: Project, node_id: str, now: int, ending: threading.Event
) -> Added:
    """Show a node, or let it come last; not after the server's `ending`."""
    with own.alone:
        node = tree.node(db, project, node_id)
        try:
            with _both(db, own.data, own.folder, now, ending=ending, is_needed=True) as file:
                update = file.show(own.add(db, project, node_id, now))
        except _NoFile:
            return Added(node, views.expansion(db, project.number, node), own.count, has_file=False)
        own.keep(update)
        return Added(node, dict(update.shown)[node_id], own.count, has_file=True)


def remove(
    db: Connection, own: Views, project: Project, node_id: str, now: int, ending: threading.Event
) -> Removed:
    """Show a node no longer. One that is not shown is no matter."""
    with own.alone:
        present = own.present(db)
        if node_id not in present:
            return Removed(False, len(present), has_file=True)
        try:
            with _both(db, own.data, own.folder, now, ending=ending, is_needed=True) as file:
                update = file.show(own.remove(db, project, node_id, now))
        except _NoFile:
            return Removed(True, own.count, has_file=False)
        own.keep(update)
        return Removed(True, own.count, has_file=True)


def start(db: Connection, own: Views, now: int, patience: float = BUSY_SECONDS) -> None:
    """The server starts: CLAUDE.md shows nothing but the views of living servers, mostly none."""
    with own.alone, _both(db, own.data, own.folder, now, patience) as file:
        file.show(own.start(db, now))


def clear(db: Connection, own: Views, now: int, patience: float = BUSY_SECONDS) -> None:
    """The server ends: nothing of it stays, the views of others do."""
    with own.alone:
        if own.is_used:
            try:
                with _both(db, own.data, own.folder, now, patience) as file:
                    file.show(own.clear(db))
            finally:
                own.end()


def refresh(
    db: Connection,
    data: str,
    project: Project,
    roots: Collection[str],
    now: int,
    ending: threading.Event | None = None,
) -> None:
    """After an edit of these trees, by any process: the views of living servers follow, in their CLAUDE.md
    and for their models. At the server's `ending` a busy store is not waited for."""
    failures = []
    deadline = time.monotonic() + BUSY_SECONDS
    for folder in views.folders_to_refresh(db, data, project, roots):
        try:
            with _both(db, data, folder, now, deadline - time.monotonic(), ending=ending) as file:
                file.show(views.refresh(db, data, project, roots, folder))
        except BackstoryError as error:
            failures.append(error)
    if failures:
        raise failures[0]


class _File:
    """The CLAUDE.md of a folder, for us alone, as far as it is to be had. Who needs it is told why not."""

    def __init__(self, folder: str, data: str, now: int, *, is_needed: bool) -> None:
        self._folder, self._data, self._now = folder, data, now
        self._is_needed = is_needed
        self._is_there = False
        self.failure: BackstoryError | None = None
        self.sessions: Collection[str] = ()  # to be told

    def lock(self, locks: ExitStack) -> None:
        with self._noting_failure():
            self._is_there = locks.enter_context(writer.alone(self._folder, self._data, self._now))

    def show(self, update: Update) -> Update:
        self.sessions = update.sessions
        if self._is_there:
            with self._noting_failure():
                place = self._folder, self._data
                self._is_there = writer.put_views(*place, update.shown, self._now, is_alone=True)
        return update

    @contextmanager
    def _noting_failure(self) -> Iterator[None]:
        try:
            yield
        except BackstoryError as error:
            if self._is_needed:
                raise
            self.failure = error
        if self._is_needed and not self._is_there:
            raise _NoFile


@contextmanager
def _both(
    db: Connection,
    data: str,
    folder: str,
    now: int,
    patience: float = BUSY_SECONDS,
    *,
    ending: threading.Event | None = None,
    is_needed: bool = False,
) -> Iterator[_File]:
    """CLAUDE.md's lock, and then a transaction; after that, models are told. A change of the server's own
    list needs the file, and none comes after its `ending`."""
    deadline = time.monotonic() + patience
    with translated(db):
        while True:
            file = _File(folder, data, now, is_needed=is_needed)
            with ExitStack() as locks:
                file.lock(locks)
                is_ending = ending is not None and ending.is_set()
                if is_ending and is_needed:
                    raise StoreError("the server is ending; start a new session")
                try:
                    locks.enter_context(at_once(db))
                except Busy:
                    if is_ending or time.monotonic() + PAUSE_SECONDS > deadline:
                        raise
                else:
                    yield file
                    break
            time.sleep(PAUSE_SECONDS)
    try:
        views.tell(db, data, file.sessions)
    except StoreError as error:
        if not is_needed:
            raise
        log.write("warning", str(error))  # what was asked for is done; the next edit says it again
    if file.failure:
        raise file.failure
