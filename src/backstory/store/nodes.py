"""Nodes of docmem trees: the SQL. What an operation may do is in docmem/tree.py.

A node's `project` is `projects.number`; ids are unique in a project. Whoever writes here is in a transaction,
and keeps `size` right with `grow`.
"""

from __future__ import annotations

import json

from backstory.memory import terms
from backstory.store.file.connection import fields, tuples

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from sqlite3 import Connection

    from backstory.model import Node

    Context = tuple[str, str, str]
    Indexed = tuple[int, str]  # words, and what the keyword index has beside them


def digest(parent_id: str | None, context: Context, text: str, order_value: float) -> str:
    """What a node's hash is: of its place, context and text."""
    from base64 import b64encode
    from hashlib import sha512

    whole = "|".join((parent_id or "", *context, text, repr(order_value)))
    return b64encode(sha512(whole.encode()).digest()).decode()


def indexed(context: Context, text: str) -> Indexed:
    """What the keyword index needs to know of a node."""
    whole = f"{' '.join(context)}\n{text}"
    return terms.count_words(whole), terms.index_terms(whole)


# --- reading ------------------------------------------------------------------------------------------------


def get(db: Connection, project: int, node_id: str) -> Node | None:
    return next(_nodes(db, f"{_SELECT} WHERE n.project = ? AND n.id = ?", (project, node_id)), None)


def roots(db: Connection, project: int) -> list[Node]:
    where = "WHERE n.project = ? AND n.parent_id IS NULL ORDER BY n.created_at, n.id"
    return list(_nodes(db, f"{_SELECT} {where}", (project,)))


def children(db: Connection, project: int, node_id: str, *, last_first: bool = False) -> Iterator[Node]:
    """In their order, or from the last to the first; no more are read than are asked for."""
    way = "DESC" if last_first else "ASC"
    where = f"WHERE n.project = ? AND n.parent_id = ? ORDER BY n.order_value {way}, n.row {way}"
    return _nodes(db, f"{_SELECT} {where}", (project, node_id))


def path(db: Connection, project: int, node_id: str) -> list[Node]:
    """The way to a node: its root first, itself last."""
    return list(
        _nodes(
            db,
            f"WITH RECURSIVE {_UP} {_SELECT} JOIN up ON n.row = up.row ORDER BY up.height DESC",
            (project, node_id),
        )
    )


def subtree(db: Connection, project: int, node_id: str) -> list[Node]:
    """A node and all below it, as they are read: depth-first."""
    return list(
        _nodes(
            db,
            # Of what waits, the deepest is next: a child of the node before, or of the nearest above it. A
            # join with the rows that this finds would not keep their order.
            f"WITH RECURSIVE below AS (SELECT 0 AS depth, {_COLUMNS} FROM docmem_nodes n"
            " WHERE n.project = ?1 AND n.id = ?2"
            f" UNION ALL SELECT below.depth + 1, {_COLUMNS} FROM below JOIN docmem_nodes n"
            " ON n.project = ?1 AND n.parent_id = below.id ORDER BY depth DESC, order_value, row)"
            f" SELECT {_COLUMNS} FROM below n",
            (project, node_id),
        )
    )


def at(db: Connection, rows: Sequence[int]) -> dict[int, Node]:
    where = "WHERE n.row IN (SELECT value FROM json_each(?))"
    return {node.row: node for node in _nodes(db, f"{_SELECT} {where}", (json.dumps(list(rows)),))}


def starting_with(db: Connection, project: int, prefix: str) -> list[Node]:
    where = "WHERE n.project = ?1 AND n.id >= ?2 AND n.id < ?2 || char(1114111) ORDER BY n.id LIMIT 5"
    return list(_nodes(db, f"{_SELECT} {where}", (project, prefix)))


def rows_of_tree(db: Connection, project: int, root_id: str) -> str:
    """The rows of a tree as '1,2,3'."""
    found = db.execute(
        "SELECT group_concat(row) FROM docmem_nodes WHERE project = ? AND root_id = ?", (project, root_id)
    ).fetchone()[0]
    return found or ""


def count(db: Connection) -> int:
    return int(db.execute("SELECT count(*) FROM docmem_nodes").fetchone()[0])


def has_tree(db: Connection, project_id: str) -> bool:
    found = db.execute(
        "SELECT 1 FROM docmem_nodes WHERE project = (SELECT number FROM projects WHERE id = ?) LIMIT 1",
        (project_id,),
    )
    return found.fetchone() is not None


def totals(db: Connection, project: int) -> dict[str, tuple[int, int]]:
    """Of each tree, by its root's id: how many tokens it has, and when it last changed."""
    rows = db.execute(
        "SELECT root_id, sum(token_count), max(updated_at) FROM docmem_nodes WHERE project = ?"
        " GROUP BY root_id",
        (project,),
    )
    return {row[0]: (row[1], row[2]) for row in rows}


def is_taken(db: Connection, project: int, node_id: str) -> bool:
    found = db.execute("SELECT 1 FROM docmem_nodes WHERE project = ? AND id = ?", (project, node_id))
    return found.fetchone() is not None


def beside(
    db: Connection, project: int, parent_id: str, order: float, *, later: bool, without: int | None = None
) -> float | None:
    """The order value of the next child on one side of a place; `without` is the row of one that is about to
    leave."""
    than, way = (">", "ASC") if later else ("<", "DESC")
    row = db.execute(
        f"SELECT order_value FROM docmem_nodes WHERE project = ? AND parent_id = ? AND order_value {than} ?"
        f" AND row IS NOT ? ORDER BY order_value {way} LIMIT 1",
        (project, parent_id, order, without),
    ).fetchone()
    return float(row["order_value"]) if row else None


def between(db: Connection, project: int, parent_id: str, first: float, last: float) -> list[Node]:
    """The children from one order value to another, both included."""
    where = "WHERE n.project = ? AND n.parent_id = ? AND n.order_value BETWEEN ? AND ? ORDER BY n.order_value"
    return list(_nodes(db, f"{_SELECT} {where}", (project, parent_id, first, last)))


def known(db: Connection, row: int) -> Indexed:
    """What `indexed` said of this node."""
    found = db.execute("SELECT words, terms FROM docmem_nodes WHERE row = ?", (row,)).fetchone()
    return found["words"], found["terms"]


# --- writing ------------------------------------------------------------------------------------------------


def insert(db: Connection, project: int, node: Node, known: Indexed) -> None:
    """A new node, whose parent is there."""
    db.execute(
        "INSERT INTO docmem_nodes (project, id, row, parent_id, root_id, text, order_value, token_count,"
        " context_type, context_name, context_value, readonly, hash, size, created_at, updated_at, words,"
        " terms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (project, *fields(node), *known),
    )


def rewrite(db: Connection, node: Node, known: Indexed) -> None:
    """The node with other text or another context."""
    db.execute(
        "UPDATE docmem_nodes SET text = ?, token_count = ?, context_type = ?, context_name = ?,"
        " context_value = ?, hash = ?, updated_at = ?, words = ?, terms = ? WHERE row = ?",
        (
            node.text,
            node.token_count,
            node.context_type,
            node.context_name,
            node.context_value,
            node.hash,
            node.updated_at,
            *known,
            node.row,
        ),
    )


def place(db: Connection, placed: Iterable[Node]) -> None:
    """Nodes that are elsewhere now: below another parent, or with another order value."""
    db.executemany(
        "UPDATE docmem_nodes SET parent_id = ?, order_value = ?, hash = ?, updated_at = ? WHERE row = ?",
        ((node.parent_id, node.order_value, node.hash, node.updated_at, node.row) for node in placed),
    )


def renumber(db: Connection, project: int, parent_id: str, without: int | None = None) -> None:
    """The children anew: 1.0, 2.0, ...; `without` is the row of one that is about to leave."""
    found = tuples(db).execute(
        "SELECT row, order_value, context_type, context_name, context_value, text FROM docmem_nodes"
        " WHERE project = ? AND parent_id = ? AND row IS NOT ? ORDER BY order_value, row",
        (project, parent_id, without),
    )
    db.executemany(
        "UPDATE docmem_nodes SET order_value = ?, hash = ? WHERE row = ?",
        (
            (float(number), digest(parent_id, (kind, name, value), text, float(number)), row)
            for number, (row, was, kind, name, value, text) in enumerate(found.fetchall(), 1)
            if was != number
        ),
    )


def grow(db: Connection, project: int, node_id: str, by: int) -> None:
    """So many nodes more (or less) are below this one, and so below all above it."""
    db.execute(
        f"UPDATE docmem_nodes SET size = size + ?3 WHERE row IN (WITH RECURSIVE {_UP} SELECT row FROM up)",
        (project, node_id, by),
    )


def remove(db: Connection, rows: Iterable[int]) -> None:
    """These nodes, children before their parents."""
    db.executemany("DELETE FROM docmem_nodes WHERE row = ?", ((row,) for row in rows))


# What search holds in RAM, as in store/memories.py.


def lines(db: Connection, first: int, last: int) -> str:
    """A node is in no thread: what is near it is in the tree."""
    return str(
        db.execute(
            "SELECT coalesce(group_concat(row || ',-1,-1,0,' || words || ',0,0'), '') FROM"
            " (SELECT row, words FROM docmem_nodes INDEXED BY docmem_nodes_as_lines"
            " WHERE row BETWEEN ? AND ? ORDER BY row)",
            (first, last),
        ).fetchone()[0]
    )


def authors(db: Connection, first: int, last: int) -> list[tuple[int, str]]:
    """A node has none."""
    return []


def texts(db: Connection, rows: Iterable[int]) -> list[tuple[int, str]]:
    """What the vector of each node is made of. A name that is only the id again means nothing."""
    found = db.execute(
        "SELECT row, nullif(context_name, id) AS name, context_value, text FROM docmem_nodes"
        " WHERE row IN (SELECT value FROM json_each(?))",
        (json.dumps(list(rows)),),
    )
    return [(row["row"], f"{row['name'] or ''} {row['context_value']}\n{row['text']}") for row in found]


TABLE = "docmem_nodes"
LINES = TABLE

# In the order of the fields of model.Node.
_COLUMNS = (
    "n.id, n.row, n.parent_id, n.root_id, n.text, n.order_value, n.token_count, n.context_type,"
    " n.context_name, n.context_value, n.readonly, n.hash, n.size, n.created_at, n.updated_at"
)
_SELECT = f"SELECT {_COLUMNS} FROM docmem_nodes n"
_UP = (
    "up (row, parent_id, height) AS ("
    " SELECT row, parent_id, 0 FROM docmem_nodes WHERE project = ?1 AND id = ?2"
    " UNION ALL SELECT p.row, p.parent_id, up.height + 1"
    " FROM up JOIN docmem_nodes p ON p.project = ?1 AND p.id = up.parent_id)"
)


def _nodes(db: Connection, query: str, values: tuple[object, ...]) -> Iterator[Node]:
    from backstory.model import Node

    for row in tuples(db).execute(query, values):
        yield Node(*(*row[:10], row[10] == 1, *row[11:]))  # readonly is a bool
