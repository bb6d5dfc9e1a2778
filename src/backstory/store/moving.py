"""From one project to another: what two checkouts of a repository gathered apart, or sessions that were kept
in the wrong place.

A project is a range of row numbers, and search looks at a range. So what moves gets new rows, and with them
its words in the keyword index and its vectors. Ids stay. Each function expects to run inside a transaction.
"""

from __future__ import annotations

import json

from backstory.store import nodes, projects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from sqlite3 import Connection

    from backstory.model import Node

# Table -> its keyword index, the columns there, the columns they are taken from, and which rows it has.
WORDS = {
    "memories": ("memories_fts", "title, content, tags, files, terms", None, "kind <> 'turn'"),
    "turn_pieces": ("memories_fts", "content, terms", "text, terms", "true"),
    "document_chunks": ("document_chunks_fts", "heading, content, terms", None, "true"),
    "docmem_nodes": (
        "docmem_nodes_fts",
        "context_type, context_name, context_value, text, terms",
        None,
        "true",
    ),
}
GIVEN = "IN (SELECT value FROM json_each(?1))"
MOVED = "IN (SELECT old FROM temp.moved)"
NEW = "(SELECT new FROM temp.moved WHERE old = {})"


def merge(db: Connection, source: str, target: str, *, said_by: str = "rule") -> None:
    """All of a project becomes part of another, with its checkouts; the project itself is gone."""
    first, second = (projects.by_id(db, one).number for one in (source, target))
    _move_memories(db, "project_id", [source], target)
    chunks = "SELECT c.row FROM document_chunks c JOIN documents d ON d.id = c.document_id"
    _choose(db, f"{chunks} WHERE d.project_id {GIVEN}", [source], target)
    _move(db, "document_chunks", f"row = {NEW.format('row')}")
    for root in nodes.roots(db, first):
        if nodes.is_taken(db, second, root.id):
            _rename_root(db, first, second, root.id)
    _choose(db, f"SELECT row FROM docmem_nodes WHERE project {GIVEN}", [first], target)
    _move(db, "docmem_nodes", f"row = {NEW.format('row')}, project = {second}")
    for table in ("sessions", "session_summaries", "documents", "checkouts", "tellings", "pauses"):
        db.execute(f"UPDATE {table} SET project_id = ? WHERE project_id = ?", (target, source))
    if said_by == "user":  # whatever git says of them
        db.execute("UPDATE checkouts SET said_by = 'user' WHERE project_id = ?", (target,))
    for table in ("claude_files", "claude_texts", "docmem_servers"):
        db.execute(f"UPDATE OR IGNORE {table} SET project = ? WHERE project = ?", (second, first))
    db.execute("DELETE FROM projects WHERE id = ?", (source,))


def move_sessions(db: Connection, session_ids: Sequence[str], target: str) -> None:
    """Sessions, with all that was made in them for their project."""
    _move_memories(db, "session_id", session_ids, target)
    given = json.dumps(list(session_ids))
    for table, column in (
        ("sessions", "id"),
        ("session_summaries", "session_id"),
        ("tellings", "session_id"),
    ):
        db.execute(f"UPDATE {table} SET project_id = ?2 WHERE {column} {GIVEN}", (given, target))


def _move_memories(db: Connection, column: str, values: Sequence[str], target: str) -> None:
    """Memories with the pieces of turns, and archived ones. What is global stays so."""
    chosen = f"SELECT row FROM memories WHERE {column} {GIVEN} AND project_id <> '{projects.GLOBAL}'"
    _choose(db, f"{chosen} UNION ALL SELECT row FROM turn_pieces WHERE turn IN ({chosen})", values, target)
    rows = f"row = {NEW.format('row')}"
    _unindex(db, "memories")  # before its pieces have their new rows, which are of the same numbers
    _move(db, "turn_pieces", f"{rows}, turn = {NEW.format('turn')}", with_vectors=False)
    db.execute(f"UPDATE turns SET {rows} WHERE row {MOVED}")
    db.execute(f"UPDATE memories SET {rows}, project_id = ? WHERE row {MOVED}", (target,))
    _index(db, "memories")
    _move_vectors(db)
    db.execute(
        f"UPDATE archived_memories SET project_id = ?2 WHERE {column} {GIVEN}",
        (json.dumps(list(values)), target),
    )


def _choose(db: Connection, chosen: str, values: Sequence[str | int], target: str) -> None:
    """temp.moved: which rows go, and what each becomes, in the same order."""
    db.execute("PRAGMA defer_foreign_keys = ON")  # a turn's row is its memory's; until the transaction ends
    db.execute(
        "CREATE TEMPORARY TABLE IF NOT EXISTS moved (old INTEGER PRIMARY KEY, new INTEGER NOT NULL UNIQUE)"
    )
    db.execute("DELETE FROM temp.moved")
    given = json.dumps(list(values))
    count = db.execute(f"SELECT count(*) FROM ({chosen})", (given,)).fetchone()[0]
    db.execute(
        f"INSERT INTO temp.moved SELECT row, ?2 + row_number() OVER (ORDER BY row) - 1 FROM ({chosen})",
        (given, projects.next_row(db, target, count)),
    )


def _move(db: Connection, table: str, changes: str, *, with_vectors: bool = True) -> None:
    _unindex(db, table)
    db.execute(f"UPDATE {table} SET {changes} WHERE row {MOVED}")
    _index(db, table)
    if with_vectors:
        _move_vectors(db)


def _unindex(db: Connection, table: str) -> None:
    index, names, columns, which = WORDS[table]
    db.execute(
        f"INSERT INTO {index} ({index}, rowid, {names}) SELECT 'delete', row, {columns or names} FROM {table}"
        f" WHERE row {MOVED} AND {which}"
    )


def _index(db: Connection, table: str) -> None:
    index, names, columns, which = WORDS[table]
    db.execute(
        f"INSERT INTO {index} (rowid, {names}) SELECT row, {columns or names} FROM {table}"
        f" WHERE row IN (SELECT new FROM temp.moved) AND {which}"
    )


def _move_vectors(db: Connection) -> None:
    """A new seq each: processes that hold the lines in RAM read them by that, and drop the old ones."""
    db.execute(
        "INSERT INTO vectors (row, model, vector) SELECT new, model, vector"
        " FROM vectors JOIN temp.moved ON row = old ORDER BY row"
    )
    db.execute(f"DELETE FROM vectors WHERE row {MOVED}")
    db.execute("INSERT OR REPLACE INTO line_changes (row) SELECT old FROM temp.moved")


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
