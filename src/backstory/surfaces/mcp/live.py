"""The live views of this server, from a clean CLAUDE.md before its first answer to a clean one at its end.

The end is in a hurry: the client kills whoever takes longer than half a second. So where the store stays
busy, CLAUDE.md is put in order all the same: whose views belong there can be read at any time, and that this
server is gone, others see by its lock.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from functools import partial

from backstory import log, paths
from backstory.claude_md.write import writer
from backstory.clients import claude_code
from backstory.docmem import views
from backstory.docmem.views import Views
from backstory.errors import BackstoryError, BadInput, Busy, StoreError
from backstory.model import Project, now_ms
from backstory.store.file.connection import Connection
from backstory.store.open import open_store
from backstory.surfaces import view_files
from backstory.surfaces.mcp.tool_context import data_folder
from backstory.surfaces.opened import open_drained

START_SECONDS = 1.0  # for putting CLAUDE.md in order before the first answer
END_SECONDS = 0.25  # the same at the end
LAST_SECONDS = 1.0  # then for doing so without writing to the store; after that there is no other way

_making = threading.Lock()
_views: list[Views] = []
_is_over = threading.Event()


def begin() -> None:
    """What a server that was killed left behind goes; what living ones show stays."""
    try:
        known = _known()
        writer.remove_leftover(known.folder, data_folder(), now_ms())
        if not writer.has_views(known.folder) and not views.is_anything_left(data_folder()):
            return
    except (BackstoryError, OSError) as error:
        log.write("warning", f"what a former server left behind stays: {error}")
        return
    if not _works(partial(_with_store, view_files.start, known, START_SECONDS), START_SECONDS):
        _works(partial(_show_the_others, known.folder), LAST_SECONDS)


def end() -> None:
    """What this server shows goes."""
    _is_over.set()
    if not _views or not _views[0].is_used:
        return
    known = _views[0]
    places = {known.folder, _folder_by_now(known.folder)}
    if _works(partial(_with_store, view_files.clear, known, END_SECONDS), END_SECONDS):
        places.remove(known.folder)
    else:
        known.let_go()
    for folder in places:
        _works(partial(_show_the_others, folder), LAST_SECONDS)


def show(db: Connection, here: Project, action: str, node_id: str, now: int) -> str:
    """Add or remove a view."""
    known = _known()
    none = f"there is no CLAUDE.md in {paths.text(known.folder)}"
    if action == "remove":
        gone = view_files.remove(db, known, here, node_id, now, _is_over)
        if not gone.has_file:
            return f"docmem_view: removed nothing, {node_id} stays as it was: {none}"
        if not gone.was_shown:
            name = node_id[:60] if node_id.isprintable() else ascii(node_id[:60])
            return f"docmem_view: removed {name} (it was not shown; {_count(gone.views)} in CLAUDE.md)"
        return f"docmem_view: removed {node_id} ({_count(gone.views)} left in CLAUDE.md)"
    added = view_files.add(db, known, here, node_id, now, _is_over)
    if not added.has_file:
        said = f"showed {node_id} here only, since {none} that it could be added to"
    else:
        said = f"added {added.node.metadata} ({_count(added.views)} in CLAUDE.md)"
    return f"docmem_view: {said}\n\n{added.expansion}"


def refresh(db: Connection, here: Project, root_id: str) -> str | None:
    """After an edit of a tree, whoever shows it shows it as it is now; else, what to tell about it."""
    try:
        view_files.refresh(db, data_folder(), here, [root_id], now_ms(), _is_over)
    except (BackstoryError, OSError) as error:
        return f"The views in CLAUDE.md could not be refreshed: {error}"
    return None


def _with_store(act: Callable[[Connection, Views, int, float], None], known: Views, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            with _hurried_store() as db:
                return act(db, known, now_ms(), deadline - time.monotonic())
        except Busy:
            if time.monotonic() + view_files.PAUSE_SECONDS > deadline:
                raise
        time.sleep(view_files.PAUSE_SECONDS)


def _show_the_others(folder: str) -> None:
    """Without writing to the store, which somebody may keep busy; where it cannot even be read, nothing."""
    try:
        opened = _hurried_store()
    except StoreError:
        writer.put_views(folder, data_folder(), [], now_ms())
        return
    with opened as db, writer.alone(folder, data_folder(), now_ms()) as is_there:
        if is_there:
            shown = views.standing(db, data_folder(), folder)
            writer.put_views(folder, data_folder(), shown, now_ms(), is_alone=True)


def _hurried_store() -> open_store:
    return open_drained(data_folder(), now=now_ms(), seconds=0, hurried=True)


def _works(way: Callable[[], object], seconds: float) -> bool:
    """Did it work, and in time?"""
    done = threading.Event()

    def go() -> None:
        try:
            way()
            done.set()
        except Exception as error:  # noqa: BLE001  there is another way, or nobody left to be told
            log.write("warning", f"the views in CLAUDE.md: {error}")

    thread = threading.Thread(target=go, daemon=True)
    thread.start()
    thread.join(seconds)
    return done.is_set()


def _known() -> Views:
    with _making:
        if not _views:
            _views.append(Views(data_folder(), _folder(), claude_code.session_id(os.environ)))
        return _views[0]


def _folder() -> str:
    """Whose CLAUDE.md this is about."""
    try:
        return os.getcwd()
    except FileNotFoundError as error:
        raise BadInput("the current folder is gone; start a new session in one that exists") from error


def _folder_by_now(before: str) -> str:
    """Somebody may have moved it."""
    try:
        return os.path.realpath(os.getcwd())
    except FileNotFoundError:
        return before


def _count(number: int) -> str:
    return f"{number} {'view' if number == 1 else 'views'}"
