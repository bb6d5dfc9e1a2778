"""The live views of this server, from a clean CLAUDE.md before its first answer to a clean one at its end.

The end is in a hurry: the client kills whoever takes longer than half a second. So nobody here waits for the
store with CLAUDE.md's lock in hand; whoever finds it busy lets go of both and tries again. And where the
store is busy at the end, the section goes all the same; that this server is gone, others see by its lock.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from functools import partial
from sqlite3 import Connection
from typing import TypeVar

from recollect import log, paths
from recollect.claude_md import writer
from recollect.docmem import views
from recollect.docmem.views import Shown, Views
from recollect.errors import BadInput, RecollectError, StoreError
from recollect.intake.drain import open_store
from recollect.model import Project
from recollect.store import views as stored
from recollect.store.connection import BUSY_SECONDS, is_busy
from recollect.surfaces.mcp.server import data_folder

START_SECONDS = 2.0  # that the first answer waits for a store that is busy
END_SECONDS = 0.5  # for each of the two ways to take the section out
PAUSE_SECONDS = 0.05

Result = TypeVar("Result")

_making = threading.Lock()
_views: list[Views] = []
_is_over = threading.Event()


def begin() -> None:
    """What was left in CLAUDE.md by a server that was killed goes; what living ones show stays."""
    try:
        folder = _folder()
        if not writer.has_views(folder):
            return
        try:
            _in_turn(lambda db: views.clean_up(db, data_folder(), folder, _put), START_SECONDS)
        except RecollectError as error:
            log.write("warning", f"the views of a former server go without the store: {error}")
            _put(folder, list)
    except (RecollectError, OSError) as error:
        log.write("warning", f"the views of a former server stay: {error}")


def end() -> None:
    """What this server shows goes. Either way may be stuck behind somebody, so nobody waits for long."""
    _is_over.set()
    if _views and not _works(_clear, END_SECONDS):
        _works(partial(_put, _folder(), list), END_SECONDS)


def show(here: Project, action: str, node_id: str) -> str:
    """Add or remove a view."""
    known = _known()
    none = f"there is no CLAUDE.md in {paths.text(_folder())}"
    if action == "remove":
        gone = _in_turn(lambda own: known.remove(own, here, node_id, _put_ours, _now()))
        if not gone.has_file:
            return f"docmem_view: {none}, so nothing changed"
        if not gone.was_shown:
            return f"docmem_view: removed nothing; {node_id[:60]!r} is not shown ({_count(gone.views)})"
        return f"docmem_view: removed {node_id} ({_count(gone.views)} left in CLAUDE.md)"
    added = _in_turn(lambda own: known.add(own, here, node_id, _put_ours, _now()))
    if not added.has_file:
        said = f"showed {node_id} here only, since {none} that it could be added to"
    else:
        said = f"added {added.node.metadata} ({_count(added.views)} in CLAUDE.md)"
    return f"docmem_view: {said}\n\n{added.expansion}"


def refresh(db: Connection, here: Project, root_id: str) -> str | None:
    """After an edit of a tree, whoever shows it shows it as it is now; else, what to tell about it."""
    if not stored.servers(db, here.number):
        return None
    try:
        _in_turn(lambda own: views.refresh(own, data_folder(), here, [root_id], _put))
    except (RecollectError, OSError) as error:
        return f"The views in CLAUDE.md could not be refreshed: {error}"
    return None


def _in_turn(act: Callable[[Connection], Result], patience: float = BUSY_SECONDS) -> Result:
    deadline = time.monotonic() + patience
    while True:
        try:
            with open_store(data_folder(), now=_now(), seconds=0, hurried=True) as db:
                return act(db)
        except StoreError as error:
            if not is_busy(error.__cause__) or _is_over.is_set() or time.monotonic() > deadline:
                raise
        time.sleep(PAUSE_SECONDS)


def _put(folder: str, shown: Callable[[], Shown]) -> bool:
    return writer.put_views(folder, data_folder(), shown, _now())


def _put_ours(folder: str, shown: Callable[[], Shown]) -> bool:
    """For a change of this server's own views: none comes after the end."""

    def still() -> Shown:
        if _is_over.is_set():
            raise StoreError("the server is ending; start a new session")
        return shown()

    return _put(folder, still)


def _clear() -> None:
    _in_turn(lambda db: _known().clear(db, _put))


def _works(way: Callable[[], object], seconds: float) -> bool:
    """Did it work, and in time?"""
    done = threading.Event()

    def go() -> None:
        try:
            way()
            done.set()
        except Exception as error:  # noqa: BLE001  there is another way, or nobody left to be told
            log.write("warning", f"the end of a server: {error}")

    thread = threading.Thread(target=go, daemon=True)
    thread.start()
    thread.join(seconds)
    return done.is_set()


def _known() -> Views:
    with _making:
        if not _views:
            _views.append(Views(data_folder(), _folder(), os.environ.get("CLAUDE_CODE_SESSION_ID", "")))
        return _views[0]


def _folder() -> str:
    """Whose CLAUDE.md this is about."""
    try:
        return os.getcwd()
    except FileNotFoundError as error:
        raise BadInput("the current folder is gone; start a new session in one that exists") from error


def _now() -> int:
    return int(time.time() * 1000)


def _count(number: int) -> str:
    return f"{number} {'view' if number == 1 else 'views'}"
