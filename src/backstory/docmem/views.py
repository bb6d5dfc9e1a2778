"""Live views: the nodes that running servers show in CLAUDE.md, and what their models are told of changes.

A server's list is in its memory, and mirrored in the store, so that whoever edits a tree can refresh the
views of all. A server is alive as long as it holds the lock on `servers/<its id>`; whoever finds that lock
free has met a dead one, whose views go. CLAUDE.md shows the views of all living servers whose file it is.

What changes the views is called in a transaction and returns an Update: what the file is to show then, and
who is to be told. `surfaces/view_files.py` begins that transaction with CLAUDE.md's lock in hand, writes the
file, commits, and calls `tell`. Nobody else can change the mirror meanwhile, so whoever writes last writes
the newest state. Where the file cannot be written, adding and removing change nothing.

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

import os
import threading
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from backstory import locks
from backstory.docmem import expand, outbox, tree
from backstory.errors import BadInput, StoreError
from backstory.ids import new_id
from backstory.model import Node, Project
from backstory.store import nodes, projects, sessions
from backstory.store import views as stored
from backstory.store.file import disk
from backstory.store.file.connection import Connection, transaction
from backstory.store.views import Block, ViewServer

BUDGET = 10_000  # tokens a view
STAMP = 16  # signs of a node's hash are enough to see that it changed

Shown = list[tuple[str, str]]  # (node id, expansion) of each view


@dataclass(frozen=True, slots=True)
class Update:
    shown: Shown  # what CLAUDE.md is to show
    sessions: set[str]  # whose models are to be told
    nodes: dict[str, int] = field(default_factory=dict)  # the server's own list, if it is about that


class Views:
    """The views of one server. Its threads share it."""

    def __init__(self, data: str, folder: str, session_id: str) -> None:
        self.data = data
        self.folder = os.path.realpath(folder)  # whose CLAUDE.md it is about
        self.alone = threading.Lock()  # for whoever changes it; taken before CLAUDE.md's lock
        self._session_id = session_id if outbox.is_name(session_id) else ""
        self._id = new_id("srv_")
        self._nodes: dict[str, int] = {}  # in their order, with their rows: a root's id may be used again
        self._alive: int | None = None  # what holds the lock

    @property
    def is_used(self) -> bool:
        """Is there anything to clear?"""
        return self._alive is not None

    @property
    def count(self) -> int:
        return len(self._nodes)

    def present(self, db: Connection) -> list[str]:
        """The nodes in the list that were not deleted."""
        there = nodes.at(db, list(self._nodes.values()))
        return [node_id for node_id, row in self._nodes.items() if row in there]

    # In a transaction.

    def start(self, db: Connection, now: int) -> Update:
        """The server starts: CLAUDE.md shows nothing but the views of living servers, mostly none."""
        self._take_over(db, now)
        living, here = _living(db, self.data, self.folder)
        _bury_unknown(self.data)
        return _update(db, self.data, living, here)

    def add(self, db: Connection, project: Project, node_id: str, now: int) -> Update:
        """Show a node, or let it come last."""
        row = tree.node(db, project, node_id).row
        return self._show(db, project, {**self._without(node_id), node_id: row}, node_id, now)

    def remove(self, db: Connection, project: Project, node_id: str, now: int) -> Update:
        """Show a node no longer."""
        return self._show(db, project, self._without(node_id), None, now)

    def clear(self, db: Connection) -> Update:
        """The server ends: nothing of it stays, the views of others do."""
        living, here = _living(db, self.data, self.folder)
        stored.unregister(db, self._id)
        return _update(db, self.data, living, here)

    # After it.

    def keep(self, update: Update) -> None:
        """A change of it is stored and written: this is the list from now on."""
        self._nodes = update.nodes

    def end(self) -> None:
        self._nodes = {}
        _remove(_lock_file(self.data, self._id))
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
            if server.session_id and not _is_alive(self.data, server.id)
            if sessions.following(db, server.session_id) == sessions.following(db, self._session_id)
        ]
        if not dead:
            return
        self._register(db, dead[-1].project, now)
        for view in stored.of(db, [server.id for server in dead]):
            if not view.gone:
                stored.end(db, view, outbox.ENDED)
            stored.take_over(db, view, self._id)

    def _register(self, db: Connection, project: int, now: int) -> None:
        server = ViewServer(self._id, project, _utf8(self.folder), self._session_id)
        self._hold()
        stored.register(db, server, now)

    def _without(self, node_id: str) -> dict[str, int]:
        return {known: row for known, row in self._nodes.items() if known != node_id}

    def _show(
        self, db: Connection, project: Project, wanted: dict[str, int], touched: str | None, now: int
    ) -> Update:
        """Let this be the list: its mirror, and what CLAUDE.md shows."""
        self._register(db, project.number, now)
        living, here = _living(db, self.data, self.folder)
        mirrored = self._mirror(db, project, wanted, touched)
        update = _update(db, self.data, living, here)
        return replace(update, nodes={node_id: wanted[node_id] for node_id in mirrored})

    def _mirror(
        self, db: Connection, project: Project, wanted: dict[str, int], touched: str | None
    ) -> Iterable[str]:
        """Let the store say the same as the list, without nodes that were deleted; those that are left."""
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
        path = _lock_file(self.data, self._id)
        if self._alive is not None and os.path.exists(path):
            return
        try:
            handle = locks.take(path, f"{path} is locked by another process; try again")
        except OSError as error:
            raise StoreError(disk.sentence(error, self.data, path)) from error
        if self._alive is not None:  # somebody removed the file that was locked
            os.close(self._alive)
        self._alive = handle


def folders_to_refresh(db: Connection, data: str, project: Project, roots: Collection[str]) -> list[str]:
    """Where something is to be done after an edit of these trees."""
    known = stored.servers(db, project.number)
    if not known:
        return []
    folders = stored.folders_to_refresh(db, project.number, roots)
    folders.update(server.folder for server in known if not _is_alive(data, server.id))
    return sorted(folders)


def refresh(db: Connection, data: str, project: Project, roots: Collection[str], folder: str) -> Update:
    """After an edit of these trees, by any process: the views of a folder's living servers follow. In a
    transaction."""
    living, here = _living(db, data, folder)
    _expand(db, project.number, here, roots)
    return _update(db, data, living, here)


def standing(db: Connection, data: str, folder: str) -> Shown:
    """What the CLAUDE.md of a folder is to show, for who can read the store but not write to it."""
    here = _here(stored.servers(db), folder)
    return _union(db, [server for server in here if _is_alive(data, server.id)])


def is_anything_left(data: str) -> bool:
    """Did a server that was killed leave something beside CLAUDE.md? Asking opens no store."""
    return bool(outbox.waiting(data)) or any(not _is_alive(data, server_id) for server_id in _locks(data))


def expansion(db: Connection, project: int, start: Node) -> str:
    """What a view of a node shows."""
    return _text(_expanded(db, project, start))


def _update(db: Connection, data: str, living: list[ViewServer], here: list[ViewServer]) -> Update:
    """What is to be done after the views of these servers have changed."""
    sessions = _settle(db, data, living, here)
    return Update(_union(db, here), sessions)


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


def tell(db: Connection, data: str, to_tell: Collection[str]) -> None:
    """Let wait for each of these sessions what its model has not seen for certain."""
    with stored.translated(db), transaction(db):
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


def _living(db: Connection, data: str, folder: str) -> tuple[list[ViewServer], list[ViewServer]]:
    """The servers that are alive, and those of them whose views this folder's file shows. What dead ones
    of the folder left behind goes."""
    known = stored.servers(db)
    living = [server for server in known if _is_alive(data, server.id)]
    for server in _here(known, folder):
        if server not in living:
            stored.unregister(db, server.id)
            _remove(_lock_file(data, server.id))
    return living, _here(living, folder)


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
    return locks.is_held(_lock_file(data, server_id))


def _lock_file(data: str, server_id: str) -> str:
    return os.path.join(data, "servers", server_id)


def _remove(file: str) -> None:
    with suppress(OSError):  # it says that a server is dead as long as it is there
        os.unlink(file)


def _utf8(folder: str) -> str:
    try:
        folder.encode()
    except UnicodeEncodeError as error:
        raise BadInput(
            f"the name of {folder!a} is not UTF-8, and other servers could not find it; rename it"
        ) from error
    return folder
