"""What running servers show of trees, and what their models have seen of it.

A view's `shown` and `seen` are compared node by node, by a stamp that changes whenever the node is to be told
again. What a stamp is, docmem/outbox.py knows.
"""

from __future__ import annotations

import json
import sqlite3

from backstory.store.file.connection import refusal, transaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from sqlite3 import Connection

MOMENT_MS = 200

Block = tuple[str, str, str]  # node, what is shown of it, stamp
Stamps = dict[str, str]  # node -> stamp


class ViewServer:
    """A process that shows views, or did when it was last heard of."""

    __slots__ = ("folder", "id", "project", "session_id")

    def __init__(self, id: str, project: int, folder: str, session_id: str) -> None:
        self.id = id
        self.project = project
        self.folder = folder
        self.session_id = session_id  # in which it was started; after `/clear` another one follows


class View:
    """A node that a server shows."""

    __slots__ = ("gone", "node_id", "offered", "seen", "server_id", "shown", "touched")

    def __init__(
        self,
        touched: int,
        server_id: str,
        node_id: str,
        shown: list[Block] | str,
        seen: Stamps,
        offered: Stamps | None,
    ) -> None:
        self.touched = touched
        self.server_id = server_id
        self.node_id = node_id
        self.shown = [] if isinstance(shown, str) else shown
        self.gone = shown if isinstance(shown, str) else ""  # why, if it is: the model is still to be told
        self.seen = seen
        self.offered = offered  # None: nothing of it waits for the next prompt


class translated:
    """`with translated(db):` what SQLite refuses becomes a StoreError that says what to do, while the store
    stays open."""

    __slots__ = ("_db",)

    def __init__(self, db: Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, sqlite3.DatabaseError):
            raise refusal(self._db.execute("PRAGMA database_list").fetchone()["file"], error) from error


class at_once(transaction):
    """`with at_once(db):` is a transaction for who holds a lock that others are in a hurry to get: where the
    store stays busy for longer than a moment, it is a StoreError."""

    __slots__ = ()

    def __enter__(self) -> None:
        patience = self._db.execute("PRAGMA busy_timeout").fetchone()[0]
        self._db.execute(f"PRAGMA busy_timeout = {MOMENT_MS}")
        try:
            with translated(self._db):
                super().__enter__()
        finally:
            self._db.execute(f"PRAGMA busy_timeout = {patience}")


# --- servers ------------------------------------------------------------------------------------------------


def register(db: Connection, server: ViewServer, now: int) -> None:
    db.execute(
        "INSERT INTO docmem_servers (id, project, folder, session_id, started_at) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET project = excluded.project",
        (server.id, server.project, server.folder, server.session_id, now),
    )


def unregister(db: Connection, server_id: str) -> None:
    """The server and its views."""
    db.execute("DELETE FROM docmem_servers WHERE id = ?", (server_id,))


def servers(db: Connection, project: int | None = None) -> list[ViewServer]:
    """All that are known, or those of a project; some of them may be dead."""
    rows = db.execute(
        "SELECT id, project, folder, session_id FROM docmem_servers WHERE ?1 IS NULL OR project = ?1"
        " ORDER BY started_at, id",
        (project,),
    )
    return [ViewServer(*row) for row in rows]


# --- views --------------------------------------------------------------------------------------------------


def of(db: Connection, server_ids: Iterable[str]) -> list[View]:
    """The views of these servers, most recently touched last."""
    rows = db.execute(
        "SELECT touched, server_id, node_id, shown, seen, offered FROM docmem_views"
        " WHERE server_id IN (SELECT value FROM json_each(?)) ORDER BY touched",
        (json.dumps(list(server_ids)),),
    )
    return [
        View(
            row["touched"],
            row["server_id"],
            row["node_id"],
            _shown(row["shown"]),
            dict(json.loads(row["seen"])),
            dict(json.loads(row["offered"])) if row["offered"] else None,
        )
        for row in rows
    ]


def folders_to_refresh(db: Connection, project: int, roots: Collection[str]) -> set[str]:
    """Where servers of this project show something of these trees, or of a node that is gone, or where a
    refresh was broken off before the model could be told."""
    rows = db.execute(
        "SELECT DISTINCT s.folder FROM docmem_servers s JOIN docmem_views v ON v.server_id = s.id"
        " LEFT JOIN docmem_nodes n ON n.project = s.project AND n.id = v.node_id WHERE s.project = ?1"
        " AND iif(json_type(v.shown) = 'text', v.offered IS NULL, n.id IS NULL"
        " OR n.root_id IN (SELECT value FROM json_each(?2)) OR v.offered IS NULL AND instr(v.seen, '\"?\"'))",
        (project, json.dumps(list(roots))),
    )
    return {row["folder"] for row in rows}


def touch(db: Connection, server_id: str, node_id: str, shown: list[Block], seen: Stamps) -> int:
    """A view that comes last, new or known; its place."""
    drop(db, server_id, node_id)
    made = db.execute(
        "INSERT INTO docmem_views (server_id, node_id, shown, seen) VALUES (?, ?, ?, ?)",
        (server_id, node_id, json.dumps(shown), _pairs(seen)),
    )
    return int(made.lastrowid or 0)


def show(db: Connection, view: View, shown: list[Block]) -> None:
    """What is shown now, in its place."""
    view.shown, view.gone = shown, ""
    db.execute("UPDATE docmem_views SET shown = ? WHERE touched = ?", (json.dumps(shown), view.touched))


def end(db: Connection, view: View, why: str) -> None:
    """Nothing is shown any more, and the model is to be told why."""
    view.shown, view.gone = [], why
    db.execute("UPDATE docmem_views SET shown = ? WHERE touched = ?", (json.dumps(why), view.touched))


def take_over(db: Connection, view: View, server_id: str) -> None:
    """Let another server be the one whose model is told about it."""
    db.execute(
        "UPDATE OR IGNORE docmem_views SET server_id = ?, offered = NULL WHERE touched = ?",
        (server_id, view.touched),
    )


def note(db: Connection, view: View) -> None:
    """What the model has seen, and what waits for it."""
    offered = None if view.offered is None else _pairs(view.offered)
    db.execute(
        "UPDATE docmem_views SET seen = ?, offered = ? WHERE touched = ?",
        (_pairs(view.seen), offered, view.touched),
    )


def drop(db: Connection, server_id: str, node_id: str) -> None:
    db.execute("DELETE FROM docmem_views WHERE server_id = ? AND node_id = ?", (server_id, node_id))


def _shown(text: str) -> list[Block] | str:
    found = json.loads(text)
    return found if isinstance(found, str) else [(node, block, stamp) for node, block, stamp in found]


def _pairs(stamps: Stamps) -> str:
    return json.dumps(list(stamps.items()))
