"""Live views: the nodes that running servers show in CLAUDE.md, and what their models are told of changes.

A server's list is in its memory, and mirrored in the store, so that whoever edits a tree can refresh the
views of all. A server is alive as long as it holds the lock on `servers/<its id>`; whoever finds that lock
free has met a dead one, whose views go. CLAUDE.md shows the views of all living servers whose file it is.

Locks are always taken in this order: the list of a server (threads), CLAUDE.md (processes), the store. What
CLAUDE.md is to show is read from the store inside its lock and in the transaction that changes it, which is
committed after the file was written: nobody else can change the mirror meanwhile, so whoever writes last
writes the newest state. Where the file cannot be written, adding and removing change nothing.

Why nothing that a model should be told is lost, whatever is killed when:

1. A first transaction brings the views up to date, and settles what was offered. Where the model may have
   seen one or another state of a node, or is about to, its stamp becomes UNKNOWN. Killed before, nothing has
   changed, and the next refresh finds the same to do. Killed after, the next one finds UNKNOWN stamps though
   nothing was offered, and goes on from there.
2. In a second transaction the file is written, and then it is put down what it offers. Killed between the
   two, it waits or was told already; the stamps are still UNKNOWN, so the next refresh tells it again.
3. The hook takes the file by renaming it, prints it, and removes it. Only when neither name is there, what
   was offered counts as seen. A hook that is killed before leaves what it took, which the next prompt prints.

Whoever looks at the outbox or writes it does so in a transaction that writes, so one after the other. The
hook does not, but all it can do is to turn 'it waits' into 'it was told', and the stamps hold for both.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from sqlite3 import Connection

from backstory import log
from backstory.docmem import expand, outbox, tree
from backstory.errors import BackstoryError, BadInput, StoreError
from backstory.ids import new_id
from backstory.model import Node, Project
from backstory.store import nodes, projects, sessions
from backstory.store import views as stored
from backstory.store.file import swap
from backstory.store.file.connection import transaction
from backstory.store.views import Block, ViewServer

BUDGET = 10_000  # tokens a view
STAMP = 16  # signs of a node's hash are enough to see that it changed

Shown = list[tuple[str, str]]  # (node id, expansion) of each view
Write = Callable[[str, Callable[[], Shown]], bool]
"""Rewrites the CLAUDE.md of a folder with the views that the function gives. That is called inside the file's
lock, maybe more than once; where there is no file, not at all. Raises BackstoryError where it cannot."""


@dataclass(frozen=True, slots=True)
class Viewed:
    node: Node
    expansion: str
    views: int  # how many the server shows now
    has_file: bool  # else there is no CLAUDE.md, and nothing changed


@dataclass(frozen=True, slots=True)
class Removed:
    was_shown: bool
    views: int
    has_file: bool


class Views:
    """The views of one server. Its threads share it."""

    def __init__(self, data: str, folder: str, session_id: str) -> None:
        self._data = data
        self.folder = os.path.realpath(folder)  # whose CLAUDE.md it is about
        self._session_id = session_id if outbox.is_name(session_id) else ""
        self._id = new_id("srv_")
        self._nodes: dict[str, int] = {}  # in their order, with their rows: a root's id may be used again
        self._alive: int | None = None  # what holds the lock
        self._turn = threading.Lock()

    @property
    def is_used(self) -> bool:
        """Is there anything to clear?"""
        return self._alive is not None

    def start(self, db: Connection, write: Write, now: int) -> None:
        """The server starts: CLAUDE.md shows nothing but the views of living servers, mostly none."""
        with self._turn:
            self._take_over(db, now)
            _rewrite(db, self._data, self.folder, write, lambda _: _bury_unknown(self._data))

    def add(self, db: Connection, project: Project, node_id: str, write: Write, now: int) -> Viewed:
        """Show a node, or let it come last."""
        with self._turn:
            node = tree.node(db, project, node_id)
            wanted = {**self._without(node_id), node_id: node.row}
            shown = self._show(db, project, wanted, node_id, write, now)
            blocks = _expanded(db, project.number, node) if shown is None else shown[node_id]
            return Viewed(node, _text(blocks), len(self._nodes), shown is not None)

    def remove(self, db: Connection, project: Project, node_id: str, write: Write, now: int) -> Removed:
        """Show a node no longer. One that is not shown is no matter."""
        with self._turn:
            there = nodes.at(db, list(self._nodes.values()))
            present = [known for known, row in self._nodes.items() if row in there]
            if node_id not in present:
                return Removed(False, len(present), True)
            shown = self._show(db, project, self._without(node_id), None, write, now)
            return Removed(True, len(self._nodes), shown is not None)

    def clear(self, db: Connection, write: Write) -> None:
        """The server ends: nothing of it stays, the views of others do."""
        with self._turn:
            if self._alive is None:
                return
            try:
                _rewrite(db, self._data, self.folder, write, lambda _: stored.unregister(db, self._id))
            finally:
                self._nodes = {}
                _remove(_lock_file(self._data, self._id))
                self.let_go()

    def let_go(self) -> None:
        """Be dead to others from now on. This waits for nobody."""
        handle, self._alive = self._alive, None
        if handle is not None:
            os.close(handle)

    def _take_over(self, db: Connection, now: int) -> None:
        """A server of this session was killed: its model is still to be told that its views are gone."""
        dead = [
            server
            for server in _here(stored.servers(db), self.folder)
            if server.session_id and not _is_alive(self._data, server.id)
            if sessions.following(db, server.session_id) == sessions.following(db, self._session_id)
        ]
        if not dead:
            return
        with transaction(db):
            self._hold()
            stored.register(db, self._as_server(dead[-1].project), now)
            for view in stored.of(db, [server.id for server in dead]):
                if not view.gone:
                    stored.end(db, view, outbox.ENDED)
                stored.take_over(db, view, self._id)

    def _as_server(self, project: int) -> ViewServer:
        return ViewServer(self._id, project, _utf8(self.folder), self._session_id)

    def _without(self, node_id: str) -> dict[str, int]:
        return {known: row for known, row in self._nodes.items() if known != node_id}

    def _show(
        self,
        db: Connection,
        project: Project,
        wanted: dict[str, int],
        touched: str | None,
        write: Write,
        now: int,
    ) -> dict[str, list[Block]] | None:
        """Let this be the list, its mirror, and what CLAUDE.md shows: what is shown of each node. None, and
        nothing of that, where there is no CLAUDE.md."""
        server = self._as_server(project.number)
        shown: dict[str, list[Block]] | None = None
        to_tell: set[str] = set()

        def change() -> Shown:
            nonlocal shown
            begin()
            if touched:
                wanted[touched] = tree.node(db, project, touched).row  # it may have been deleted just now
            self._hold()
            stored.register(db, server, now)
            living = _living(db, self._data, self.folder)
            here = _here(living, self.folder)
            shown = self._mirror(db, project, wanted, touched)
            to_tell.update(_settle(db, self._data, living, here))
            return _union(db, here)

        with stored.turn(db) as begin:
            if not write(self.folder, change):
                begin.undo()  # the file may have gone at the last moment
                return None
        if shown is not None:
            self._nodes = {node_id: wanted[node_id] for node_id in shown}
            try:
                _tell(db, self._data, to_tell)
            except StoreError as error:
                log.write("warning", str(error))  # what was asked for is done; the next edit says it again
        return shown

    def _mirror(
        self, db: Connection, project: Project, wanted: dict[str, int], touched: str | None
    ) -> dict[str, list[Block]]:
        """Let the store say the same as the list, without nodes that were deleted; what is shown of each."""
        known = {view.node_id: view for view in stored.of(db, [self._id])}
        shown = {}
        for node_id, row in wanted.items():
            node = nodes.get(db, project.number, node_id)
            if node and node.row == row:
                shown[node_id] = _expanded(db, project.number, node)
            elif node_id in known:
                first, last = projects.rows(project.number)
                stored.end(db, known[node_id], outbox.DELETED if first <= row <= last else outbox.ELSEWHERE)
        for node_id, old in known.items():
            is_removed = node_id in self._nodes and node_id not in wanted
            if is_removed or (not old.gone and node_id not in shown):
                stored.drop(db, self._id, node_id)
        last = 0
        for node_id, blocks in shown.items():
            view = known.get(node_id)
            if view is None or node_id == touched:
                last = stored.touch(db, self._id, node_id, blocks, outbox.stamps(blocks))
            elif view.touched < last:  # another database came in between: a backup was restored
                seen = view.seen if view.offered is None else outbox.either(view.seen, view.offered)
                last = stored.touch(db, self._id, node_id, blocks, seen)
            else:
                last = view.touched
                if view.shown != blocks:
                    stored.show(db, view, blocks)
        return shown

    def _hold(self) -> None:
        """Be alive to others. They look, and tidy up, in transactions that write, and this is in one."""
        path = _lock_file(self._data, self._id)
        if self._alive is not None and os.path.exists(path):
            return
        try:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StoreError(
                f"{os.path.dirname(path)} cannot be written ({error.strerror}); mend that, and call again"
            ) from error
        swap.wait(handle, fcntl.LOCK_EX, swap.SECONDS, f"{path} is locked by another process; try again")
        if self._alive is not None:  # somebody removed the file that was locked
            os.close(self._alive)
        self._alive = handle


def refresh(db: Connection, data: str, project: Project, roots: Collection[str], write: Write) -> None:
    """After an edit of these trees, by any process: the views of living servers follow, in their CLAUDE.md
    and for their models. Where a file cannot be written the rest is done, and then the reason is raised."""
    known = stored.servers(db, project.number)
    if not known:
        return
    folders = stored.folders_to_refresh(db, project.number, roots)
    folders.update(server.folder for server in known if not _is_alive(data, server.id))
    failures = []
    for folder in sorted(folders):
        try:
            _rewrite(db, data, folder, write, lambda here: _expand(db, project.number, here, roots))
        except BackstoryError as error:
            failures.append(error)
    if failures:
        raise failures[0]


def standing(db: Connection, data: str, folder: str) -> Shown:
    """What the CLAUDE.md of a folder is to show, for who can read the store but not write to it."""
    here = _here(stored.servers(db), folder)
    return _union(db, [server for server in here if _is_alive(data, server.id)])


def is_anything_left(data: str) -> bool:
    """Did a server that was killed leave something beside CLAUDE.md? Asking opens no store."""
    return bool(outbox.waiting(data)) or any(not _is_alive(data, server_id) for server_id in _locks(data))


def _rewrite(
    db: Connection, data: str, folder: str, write: Write, change: Callable[[list[ViewServer]], None]
) -> None:
    """Change something about the servers of a folder, then its CLAUDE.md, then tell the models. Where the
    file is not to be had the rest is done all the same, and then the reason is raised."""
    to_tell: set[str] = set()
    failure, is_done = None, False

    def views() -> Shown:
        nonlocal is_done
        is_done = False
        begin()
        living = _living(db, data, folder)
        here = _here(living, folder)
        change(here)
        to_tell.update(_settle(db, data, living, here))
        is_done = True
        return _union(db, here)

    with stored.turn(db) as begin:
        try:
            write(folder, views)
        except BackstoryError as error:
            failure = error
        if not is_done:
            views()
    _tell(db, data, to_tell)
    if failure:
        raise failure


# --- what is shown ------------------------------------------------------------------------------------------


def _union(db: Connection, here: Iterable[ViewServer]) -> Shown:
    """What these servers show, most recently touched last; what two of them show, once."""
    views: dict[str, str] = {}
    for view in stored.of(db, [server.id for server in here]):
        if not view.gone:
            views.pop(view.node_id, None)
            views[view.node_id] = _text(view.shown)
    return list(views.items())


def _expand(db: Connection, project: int, here: Iterable[ViewServer], roots: Collection[str]) -> None:
    """The views of these trees as they are now."""
    done: dict[str, list[Block]] = {}
    for view in stored.of(db, [server.id for server in here if server.project == project]):
        if view.gone:
            continue
        node = nodes.get(db, project, view.node_id)
        if node is None:
            stored.end(db, view, outbox.DELETED)
        elif node.root_id in roots:
            if node.id not in done:
                done[node.id] = _expanded(db, project, node)
            stored.show(db, view, done[node.id])


def _expanded(db: Connection, project: int, start: Node) -> list[Block]:
    """An expansion in blocks; where it is cut, the first of them says so."""
    shown = expand.shown(db, project, start, BUDGET)
    cut = [(outbox.CUT, line, f"{len(shown)}/{start.size}") for line in expand.partial(start, len(shown))]
    return cut + [(node.id, text, node.hash[:STAMP]) for node, text in shown]


def _text(blocks: Iterable[Block]) -> str:
    return "\n\n".join(text for _, text, _ in blocks)


# --- what the model is told ---------------------------------------------------------------------------------


def _by_session(db: Connection, servers: Iterable[ViewServer]) -> dict[str, list[ViewServer]]:
    """Servers by the session in which their models are told something. After `/clear` that is another one."""
    found: dict[str, list[ViewServer]] = {}
    for server in servers:
        found.setdefault(sessions.following(db, server.session_id), []).append(server)
    return found


def _settle(db: Connection, data: str, living: Iterable[ViewServer], here: Iterable[ViewServer]) -> set[str]:
    """Put down for the sessions of these servers what their models have seen for certain; the sessions."""
    groups, found = _by_session(db, living), set(_by_session(db, here))
    waiting = outbox.waiting(data)
    is_astray = not waiting <= groups.keys()  # in a session that has become another: it may be about any view
    for session_id in found:
        is_nobody = not outbox.is_name(session_id)
        is_consumed = is_nobody or not (is_astray or session_id in waiting)
        for view in stored.of(db, [server.id for server in groups[session_id]]):
            if is_nobody:
                view.offered = outbox.stamps(view.shown)
            if view.gone and view.offered == {} and is_consumed:
                stored.drop(db, view.server_id, view.node_id)
                continue
            if view.offered is not None:
                view.seen = view.offered if is_consumed else outbox.either(view.seen, view.offered)
            view.seen = outbox.either(view.seen, outbox.stamps(view.shown))
            view.offered = None
            stored.note(db, view)
    return found


def _tell(db: Connection, data: str, to_tell: Collection[str]) -> None:
    """Let wait for each of these sessions what its model has not seen for certain."""
    with transaction(db):
        groups = _by_session(db, [one for one in stored.servers(db) if _is_alive(data, one.id)])
        for session_id in filter(outbox.is_name, to_tell):
            views = stored.of(db, [server.id for server in groups.get(session_id, ())])
            if any(view.offered is not None for view in views):
                continue  # somebody was faster, and told this as well
            changes = outbox.changes(views)
            if changes:
                outbox.put(data, session_id, outbox.told(changes))
            else:
                outbox.withdraw(data, session_id)
            told = {change.node_id for change in changes}
            for view in views:
                if view.gone or view.node_id in told:
                    view.offered = outbox.stamps(view.shown)
                    stored.note(db, view)
        outbox.sweep(data, groups)


# --- who is alive -------------------------------------------------------------------------------------------


def _living(db: Connection, data: str, folder: str) -> list[ViewServer]:
    """The servers that are alive. What dead ones of this folder left behind goes."""
    known = stored.servers(db)
    living = [server for server in known if _is_alive(data, server.id)]
    for server in _here(known, folder):
        if server not in living:
            stored.unregister(db, server.id)
            _remove(_lock_file(data, server.id))
    return living


def _here(servers: Iterable[ViewServer], folder: str) -> list[ViewServer]:
    """Those who show their views in the same CLAUDE.md, which may be a link in one of two folders."""
    file = _claude_md(folder)
    return [server for server in servers if _claude_md(server.folder) == file]


def _claude_md(folder: str) -> str:
    return os.path.realpath(os.path.join(folder, "CLAUDE.md"))


def _bury_unknown(data: str) -> None:
    """Locks of servers that died before anybody knew them."""
    for server_id in _locks(data):
        if not _is_alive(data, server_id):
            _remove(_lock_file(data, server_id))


def _locks(data: str) -> list[str]:
    folder = _lock_file(data, "")
    return os.listdir(folder) if os.path.isdir(folder) else []


def _is_alive(data: str, server_id: str) -> bool:
    try:
        handle = os.open(_lock_file(data, server_id), os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: others may look at the same moment
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _lock_file(data: str, server_id: str) -> str:
    return os.path.join(data, "servers", server_id)


def _remove(file: str) -> None:
    try:
        os.unlink(file)
    except OSError:
        pass  # it says that a server is dead as long as it is there


def _utf8(folder: str) -> str:
    try:
        folder.encode()
    except UnicodeEncodeError as error:
        raise BadInput(
            f"the name of {folder!a} is not UTF-8, and other servers could not find it; rename it"
        ) from error
    return folder
