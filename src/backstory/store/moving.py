"""From one project to another: what two checkouts of a repository gathered apart, or sessions that were kept
in the wrong place.

A project is a range of row numbers, and search looks at a range. So what moves gets new rows, and with them
its words in the keyword index (by triggers) and its vectors. Ids stay. What names its project, and how it
belongs to it, is said in store/families.py. Each function expects to run inside a transaction.
"""

from __future__ import annotations

import json

from backstory.store import families, nodes, projects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from sqlite3 import Connection

    from backstory.model import Node

GIVEN = "IN (SELECT value FROM json_each(?))"


def merge(db: Connection, source: str, target: str, *, said_by: str = "rule") -> None:
    """All of a project becomes part of another, with its checkouts; the project itself is gone."""
    first, second = (projects.by_id(db, one) for one in (source, target))
    for root in nodes.roots(db, first.number):
        if nodes.is_taken(db, second.number, root.id):
            _rename_root(db, first.number, second.number, root.id)
    for family in families.FAMILIES:
        if family.numbered:
            _renumber(db, family.table, "row BETWEEN ? AND ?", projects.rows(first.number), target)
    for table, column, key in families.owned(db, "projects"):
        known = column in families.key(db, table)  # what both have is there once
        db.execute(
            f"UPDATE {'OR IGNORE' if known else ''} {table} SET {column} = ? WHERE {column} = ?",
            (getattr(second, key), getattr(first, key)),
        )
    if said_by == "user":  # whatever git says of them
        db.execute("UPDATE checkouts SET said_by = 'user' WHERE project_id = ?", (target,))
    db.execute("DELETE FROM projects WHERE id = ?", (source,))


def move_sessions(db: Connection, session_ids: Sequence[str], target: str) -> None:
    """Sessions, with all that was made in them for their project. What is global stays so."""
    given = [json.dumps(list(session_ids))]
    which = f"session_id {GIVEN} AND project_id <> '{projects.GLOBAL}'"
    of_turns = f"turn IN (SELECT row FROM memories WHERE {which})"
    _renumber(db, "turn_pieces", of_turns, given, target)
    _renumber(db, "memories", which, given, target)
    other = projects.by_id(db, target)
    for table, column, key in families.owned(db, "projects"):
        for session, _ in [("id", "")] if table == "sessions" else families.owners(db, table, "sessions"):
            db.execute(
                f"UPDATE {table} SET {column} = ? WHERE {session} {GIVEN} AND {column} <> ?",
                (getattr(other, key), *given, projects.GLOBAL),
            )


def _renumber(db: Connection, table: str, which: str, values: Sequence[object], target: str) -> None:
    """New rows in the target's range, in the same order. A vector gets a new seq: processes that hold the
    lines in RAM read them by that, and drop the old ones."""
    (count,) = db.execute(f"SELECT count(*) FROM {table} WHERE {which}", list(values)).fetchone()
    db.execute("CREATE TEMPORARY TABLE IF NOT EXISTS moved (old INTEGER PRIMARY KEY, new INTEGER NOT NULL)")
    db.execute("DELETE FROM temp.moved")
    db.execute(
        f"INSERT INTO temp.moved SELECT row, {projects.next_row(db, target, count)} - 1 + row_number()"
        f" OVER (ORDER BY row) FROM {table} WHERE {which}",
        list(values),
    )
    db.execute(
        "INSERT INTO vectors (row, model, vector) SELECT new, model, vector"
        " FROM vectors JOIN temp.moved ON row = old ORDER BY row"
    )
    db.execute("DELETE FROM vectors WHERE row IN (SELECT old FROM temp.moved)")
    db.execute("INSERT OR REPLACE INTO line_changes (row) SELECT old FROM temp.moved")
    db.execute(f"UPDATE {table} SET row = new FROM temp.moved WHERE row = old")


def _rename_root(db: Connection, first: int, second: int, root_id: str) -> None:
    """A tree whose name is taken gets a number. What is right below it says so in its hash."""
    number = 2
    while any(nodes.is_taken(db, one, _numbered(root_id, number)) for one in (first, second)):
        number += 1
    new_id = _numbered(root_id, number)
    children = list(nodes.children(db, first, root_id))
    db.execute("PRAGMA defer_foreign_keys = ON")
    db.execute(
        "UPDATE docmem_nodes SET root_id = ?1, id = iif(id = root_id, ?1, id)"
        " WHERE project = ?2 AND root_id = ?3",
        (new_id, first, root_id),
    )
    db.executemany(
        "UPDATE docmem_nodes SET parent_id = ?, hash = ? WHERE row = ?",
        [(new_id, _hash(new_id, child), child.row) for child in children],
    )
    db.execute(
        "UPDATE docmem_views SET node_id = ? WHERE node_id = ? AND server_id IN"
        " (SELECT id FROM docmem_servers WHERE project = ?)",
        (new_id, root_id, first),
    )


def _hash(parent_id: str, node: Node) -> str:
    context = (node.context_type, node.context_name, node.context_value)
    return nodes.digest(parent_id, context, node.text, node.order_value)


def _numbered(root_id: str, number: int) -> str:
    end = f"-{number}"
    return root_id[: 24 - len(end)] + end
