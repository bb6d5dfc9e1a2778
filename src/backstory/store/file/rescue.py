"""What can still be read of a damaged database, into a sound one.

The damaged file is newer than the backup it is merged into, so where both have a row the damaged file's is
right: a memory that was forgotten since stays forgotten. A row that only the backup has was deleted since,
or lay on a page that is lost. It is taken for deleted only where all pages of the table are in order and an
index of it, which lies on other pages, has the same rows.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
from contextlib import closing, suppress
from typing import NamedTuple

from backstory.store.file import swap
from backstory.store.file.connection import apply, latest, marks, own_tables
from backstory.store.file.pages import MAGIC, Pages, header

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Row = list[object]

DERIVED = (
    "line_changes",  # what running processes have yet to read again; they meet another file anyway
    "docmem_servers",  # what running processes say of themselves
    "docmem_views",
)
STORED_AS: dict[str, type] = {"INTEGER": int, "TEXT": str, "REAL": float, "BLOB": bytes}
YEAR_2100 = 4_102_444_800_000  # no time of ours is later


class Column(NamedTuple):
    name: str
    kind: type
    default: str  # SQL
    key: int  # its place in the primary key, from 1; 0: none


class Rescued:
    __slots__ = ("broken", "rows")

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}  # by table: new, changed or deleted since the backup
        self.broken: list[str] = []  # tables of which a part is missing, as far as can be told


class Wreck:
    """A damaged file, as a copy with a header that is right and with what was in its log."""

    __slots__ = ("_scratch", "pages", "roots", "schema")

    def __init__(self, path: str, scratch: str, page_size: int | None) -> None:
        """The page size is as its own header says, where nobody knows better."""
        self._scratch = scratch
        swap.remove(scratch)  # what a kill left in the way
        for end in ("", "-wal"):
            if os.path.exists(path + end):
                _copy(path + end, scratch + end)
        with open(scratch, "r+b") as file:
            head = file.read(18)
            size = page_size or int.from_bytes(head[16:18], "big")
            if page_size is None and (not head.startswith(MAGIC) or size < 512 or size & size - 1):
                size = 4096
            count = max(1, os.path.getsize(scratch) // size)
            file.truncate(count * size)
            file.seek(0)
            file.write(header(size, count))
        with closing(sqlite3.connect(scratch)) as db, suppress(sqlite3.DatabaseError, UnicodeDecodeError):
            db.execute("SELECT 1 FROM sqlite_master").fetchone()  # to close it then brings the log in
        self.pages = Pages(scratch, size)
        entries = [row for _, row in self.pages.table(1) if len(row) == 5]
        self.roots = {
            str(name): root for _, name, _, root, _ in entries if isinstance(root, int) and root > 0
        }
        self.schema = _schema({(name, sql) for _, name, _, _, sql in entries})

    def close(self) -> None:
        self.pages.close()
        swap.remove(self._scratch)


def _copy(path: str, target: str) -> None:
    """By another process: only SQLite opens these files in ours. What the disk cannot read becomes zeroes."""
    copy = ["dd", f"if={path}", f"of={target}", "bs=4096", "conv=noerror,sync"]
    ran = subprocess.run(copy, check=False, capture_output=True, env={**os.environ, "LC_ALL": "C"})
    if b"No space left" in ran.stderr:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), target)


def _schema(entries: set[tuple[object, object]]) -> int | None:
    """The one that has most of these tables. The number in the header may be as wrong as anything."""
    best, most = None, 1
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for number in range(1, latest() + 1):
            apply(db, upto=number)
            tables = set(db.execute("SELECT name, sql FROM sqlite_master WHERE sql > ''"))
            if len(entries & tables) >= most:
                best, most = number, len(entries & tables)
    return best


def merge(wreck: Wreck, db: sqlite3.Connection) -> Rescued:
    """What the wreck has into the store, which is at the same schema."""
    rescued = Rescued()
    made = db.execute("SELECT name, rootpage FROM sqlite_master WHERE rootpage > 0").fetchall()
    taken = set(wreck.roots.values())
    # Where the wreck does not say where a table begins, it is where it was when the backup was made.
    roots = {name: wreck.roots.get(name, 0 if root in taken else root) for name, root in made}
    tables = own_tables(db)
    db.execute("PRAGMA foreign_keys = OFF")  # rows come table by table
    for table in tables:
        if table not in DERIVED:
            db.execute("BEGIN")
            _merge_table(wreck.pages, roots, db, table, rescued)
            db.execute("COMMIT")
    db.execute("BEGIN")
    _drop_orphans(db)
    if "docmem_nodes" in tables:
        for (project,) in db.execute("SELECT DISTINCT project FROM docmem_nodes").fetchall():
            _replant(db, project)
    if "turn_pieces" in tables:
        db.execute("DELETE FROM turn_pieces WHERE turn NOT IN (SELECT row FROM memories)")
    if "edited_files" in tables:
        db.execute("DELETE FROM edited_files WHERE turn NOT IN (SELECT row FROM memories)")
    if "vectors" in tables:
        db.execute("DELETE FROM archived_memories WHERE id IN (SELECT id FROM memories)")  # they came back
        db.execute(  # these can be made again
            "DELETE FROM vectors WHERE length(vector) <> (SELECT dimension FROM models WHERE number = model)"
        )
    for table in ("memories", "turn_pieces", "document_chunks", "docmem_nodes"):
        if table in tables:  # a row number is never used again, though the project's counter be lost
            db.execute(
                "UPDATE projects SET last_memory = max(last_memory, coalesce("
                f" (SELECT max(row) & 4294967295 FROM {table} WHERE row >> 32 = number), 0))"
            )
    db.execute("COMMIT")
    return rescued


def _merge_table(
    pages: Pages, roots: dict[str, int], db: sqlite3.Connection, table: str, rescued: Rescued
) -> None:
    columns = [column.name for column in _columns(db, table)]
    names, count = ", ".join(columns), 0
    key = [name for _, name in sorted((one.key, one.name) for one in _columns(db, table) if one.key)]
    places = [columns.index(name) for name in key]
    this = " AND ".join(f"{name} = ?" for name in key)
    links = {
        columns.index(name): f"SELECT 1 FROM {parent} WHERE {target} = ?"
        for _, _, parent, name, target, *_ in db.execute(f"PRAGMA foreign_key_list({table})")
        if parent != table
    }
    targets = {
        link[4]
        for other in own_tables(db)
        for link in db.execute(f"PRAGMA foreign_key_list({other})")
        if link[2] == table
    }

    def put(row: Row) -> bool:
        name = [row[at] for at in places]
        # Not an upsert: its way with conflicts would be forced on the triggers.
        ours = db.execute(f"SELECT {names} FROM {table} WHERE {this}", name).fetchone()
        if ours is None:
            db.execute(f"INSERT INTO {table} ({names}) VALUES ({marks(columns)})", row)
            return True
        differs = [at for at, value in enumerate(row) if ours[at] != value]
        for at in differs:  # a row keeps the name that others call it by, and refers to what there is
            is_orphan = at in links and row[at] and not db.execute(links[at], (row[at],)).fetchone()
            if is_orphan or columns[at] in targets:
                raise sqlite3.IntegrityError
        if differs:
            changes = ", ".join(f"{columns[at]} = ?" for at in differs)
            db.execute(f"UPDATE {table} SET {changes} WHERE {this}", [*(row[at] for at in differs), *name])
        return bool(differs)

    seen, refused = set(), []
    faults = pages.faults
    for row in _rows(pages, roots[table], db, table):
        seen.add(tuple(row[at] for at in places))
        try:
            count += put(row)
        except sqlite3.IntegrityError:
            refused.append(row)
    is_sound = pages.faults == faults
    witness = _keys_in_an_index(pages, roots, db, table, key)
    missing = [name for name in db.execute(f"SELECT {', '.join(key)} FROM {table}") if name not in seen]
    if is_sound and seen and witness == seen:
        for name in missing:
            count += db.execute(f"DELETE FROM {table} WHERE {this}", name).rowcount
        missing = []
    for row in refused:  # another row had its name until now
        try:
            count += put(row)
        except sqlite3.IntegrityError:
            is_sound = False
    rescued.rows[table] = count
    if missing or not is_sound or witness not in (seen, None):
        rescued.broken.append(table)


def _keys_in_an_index(
    pages: Pages, roots: dict[str, int], db: sqlite3.Connection, table: str, key: list[str]
) -> set[tuple[object, ...]] | None:
    """The keys of the rows of a table, as the first index says that has them; None where none does."""
    is_number = [one.kind for one in _columns(db, table) if one.key] == [int]
    for _, index, _, _, is_partial in db.execute(f"PRAGMA index_list({table})").fetchall():
        columns = [row[2] for row in db.execute(f"PRAGMA index_xinfo({index})")]
        if columns[-1] is None and is_number:
            columns[-1] = key[0]  # the number of the row
        if not is_partial and set(key) <= set(columns) and index in roots:
            places = [columns.index(name) for name in key]
            faults = pages.faults
            rows = [row for row in pages.index(roots[index]) if len(row) == len(columns)]
            return {tuple(row[at] for at in places) for row in rows} if pages.faults == faults else None
    return None


def _rows(pages: Pages, root: int, db: sqlite3.Connection, table: str) -> Iterator[Row]:
    """Those that are what the table may hold. One from before a column was added has its default."""
    columns = _columns(db, table)
    has_rowid = not any(row[1] == table and row[4] for row in db.execute("PRAGMA main.table_list"))
    # Without row numbers, those of the key come first.
    order = list(columns) if has_rowid else sorted(columns, key=lambda one: one.key or len(columns))
    number = next((at for at, one in enumerate(order) if one.key and one.kind is int), None)
    defaults = [db.execute(f"SELECT {one.default}").fetchone()[0] for one in order]
    back = [order.index(column) for column in columns]
    numbered = pages.table(root) if has_rowid else ((None, row) for row in pages.index(root))
    for rowid, stored in numbered:
        row = [*stored, *defaults[len(stored) :]]
        if has_rowid and number is not None:
            row[number] = rowid
        if len(row) == len(order) and all(map(_is_plausible, row, order)):
            yield [row[at] for at in back]
        else:
            pages.faults += 1


def _is_plausible(value: object, column: Column) -> bool:
    if value is None:
        return True
    if column.name.endswith("_at") and not (isinstance(value, int) and 0 <= value < YEAR_2100):
        return False
    return isinstance(value, column.kind) or (column.kind is float and isinstance(value, int))


def _drop_orphans(db: sqlite3.Connection) -> None:
    """What refers to a row that is lost: without the reference where that may be, else not at all."""
    changed = 1
    while changed:
        changed = 0
        for table in own_tables(db):
            for link in db.execute(f"PRAGMA foreign_key_list({table})").fetchall():
                parent, name, target, on_delete = link[2], link[3], link[4], link[6]
                if parent == table:
                    continue  # nodes of a tree: what hangs below a lost one is not lost
                lost = (
                    f"{name} IS NOT NULL AND NOT EXISTS"
                    f" (SELECT 1 FROM {parent} parent WHERE parent.{target} = {table}.{name})"
                )
                change = (
                    f"UPDATE {table} SET {name} = NULL" if on_delete == "SET NULL" else f"DELETE FROM {table}"
                )
                changed += db.execute(f"{change} WHERE {lost}").rowcount


def _replant(db: sqlite3.Connection, project: int) -> None:
    """Nodes whose parent is lost go to the end of their tree; where its root is lost too they are roots. What
    follows from a node's place is found out anew: rows of two files may share one, or lead in a circle."""
    from backstory.gist import tokens
    from backstory.store import nodes

    found = db.execute(
        "SELECT id, parent_id, order_value, root_id, size, hash, token_count, row FROM docmem_nodes"
        " WHERE project = ? ORDER BY parent_id, order_value, row",
        (project,),
    ).fetchall()
    parent: dict[str, str | None] = {row[0]: row[1] for row in found}
    order: dict[str, float] = {row[0]: row[2] for row in found}
    root: dict[str, str] = {row[0]: row[3] for row in found}
    below: dict[str | None, list[str]] = {}
    for name, above in parent.items():
        below.setdefault(above, []).append(name)
    for name in _astray(parent, below):
        parent[name] = root[name] if root[name] in parent and parent[root[name]] is None else None
        siblings = below.setdefault(parent[name], [])
        order[name] = order[siblings[-1]] + 1.0 if siblings and parent[name] else 1.0
        siblings.append(name)
    for above, siblings in below.items():
        if above is not None and len({order[name] for name in siblings}) < len(siblings):
            order.update((name, float(number)) for number, name in enumerate(siblings, 1))
    read = _with_all_below(below.get(None, []), below)
    size = dict.fromkeys(read, 1)
    for name in read:
        above = parent[name]
        root[name] = name if above is None else root[above]
    for name in reversed(read):
        if (above := parent[name]) is not None:
            size[above] += size[name]
    for name, *was, row in found:
        kind, called, value, text = db.execute(
            "SELECT context_type, context_name, context_value, text FROM docmem_nodes WHERE row = ?", (row,)
        ).fetchone()
        new_hash = nodes.digest(parent[name], (kind, called, value), text, order[name])
        new = [parent[name], order[name], root[name], size[name], new_hash, tokens(text)]
        if new != was:
            db.execute(
                "UPDATE docmem_nodes SET parent_id = ?, order_value = ?, root_id = ?, size = ?, hash = ?,"
                " token_count = ? WHERE row = ?",
                (*new, row),
            )


def _astray(parent: dict[str, str | None], below: dict[str | None, list[str]]) -> list[str]:
    """Nodes that no root leads to, but for those below other such nodes: taken out of `below`."""
    lost = [above for above in below if above is not None and above not in parent]
    astray = [name for above in lost for name in below.pop(above)]
    apart = set(parent).difference(_with_all_below([*below.get(None, ()), *astray], below))
    while apart:  # they lead in a circle
        name, trail = min(apart), set[str]()
        while name not in trail:
            trail.add(name)
            name = parent[name] or ""
        below[parent[name]].remove(name)
        astray.append(name)
        apart.difference_update(_with_all_below([name], below))
    return astray


def _with_all_below(tops: list[str], below: dict[str | None, list[str]]) -> list[str]:
    """A parent before its children."""
    met = list(tops)
    for name in met:  # it grows on the way
        met += below.get(name, ())
    return met


def _columns(db: sqlite3.Connection, table: str) -> list[Column]:
    """Those that are stored."""
    return [
        Column(name, STORED_AS[kind], default or "NULL", key)
        for _, name, kind, _, default, key, is_computed in db.execute(f"PRAGMA table_xinfo({table})")
        if not is_computed
    ]
