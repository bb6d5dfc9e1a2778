"""What can still be read of a damaged database, into a sound one.

The damaged file is newer than the backup it is merged into, so where both have a row the damaged file's is
right: a memory that was forgotten since stays forgotten. A table that can be read whole is taken as it is,
and what was deleted from it is deleted; of any other, what lay on bad pages stays as the backup had it.
"""

from __future__ import annotations

import os
import sqlite3

from backstory.store.file import swap
from backstory.store.file.backup import read_only
from backstory.store.file.connection import marks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Row = tuple[object, ...]

DERIVED = (
    "line_changes",  # what running processes have yet to read again; they meet another file anyway
    "docmem_servers",  # what running processes say of themselves
    "docmem_views",
)
LARGEST = 2**63 - 1
SMALLEST = -(2**63)
MANY = 200  # rows read at once


class Rescued:
    __slots__ = ("broken", "rows")

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}  # by table: new, changed or deleted since the backup
        self.broken: list[str] = []  # tables of which a part could not be read


class Wreck:
    """A damaged file, as far as it can be opened."""

    __slots__ = ("_scratch", "db", "is_patched", "schema")

    def __init__(self, path: str, scratch: str, backup: str | None) -> None:
        self._scratch = scratch
        self.is_patched = False
        self.db = sqlite3.connect(":memory:")  # until there is something better
        self.schema: int | None = None  # None where nothing can be read
        swap.remove(scratch)  # what a kill left in the way
        if os.path.getsize(path) > 0:  # SQLite would remove the log of an empty one
            self._open(path)
        if self.schema is None and backup is not None:
            self.is_patched = True
            _with_first_page_of(backup, path, scratch)
            self._open(scratch)

    def _open(self, path: str) -> None:
        self.db.close()
        self.db = read_only(path)
        try:
            # SQLite then also reads a file that is shorter than it says.
            self.db.execute("PRAGMA writable_schema = ON")
            self.db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            self.schema = int(self.db.execute("PRAGMA user_version").fetchone()[0]) or None
        except sqlite3.DatabaseError:
            pass

    def close(self) -> None:
        self.db.close()
        swap.remove(self._scratch)


def merge(wreck: Wreck, db: sqlite3.Connection) -> Rescued:
    """What the wreck has into the store, which is at the same schema."""
    done = Rescued()
    theirs: set[str] = set()
    if wreck.schema is not None:
        theirs = {row[0] for row in wreck.db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    db.execute("PRAGMA foreign_keys = OFF")  # rows come table by table
    for table in _tables(db):
        if table in DERIVED:
            continue
        is_sound = table in theirs and _is_sound(wreck.db, table)
        if not is_sound:
            done.broken.append(table)
        if is_sound or (table in theirs and not wreck.is_patched):  # else who knows what is where
            db.execute("BEGIN")
            done.rows[table] = _merge_table(wreck.db, db, table, is_sound)
            db.execute("COMMIT")
    db.execute("BEGIN")
    _drop_orphans(db)
    if "docmem_nodes" in _tables(db):
        for (project,) in db.execute("SELECT DISTINCT project FROM docmem_nodes").fetchall():
            _replant(db, project)
    if "turn_pieces" in _tables(db):
        db.execute("DELETE FROM turn_pieces WHERE turn NOT IN (SELECT row FROM memories)")
    for table in ("memories", "turn_pieces", "document_chunks", "docmem_nodes"):
        if table in _tables(db):  # a row number is never used again, though the project's counter be lost
            db.execute(
                "UPDATE projects SET last_memory = max(last_memory, coalesce("
                f" (SELECT max(row) & 4294967295 FROM {table} WHERE row >> 32 = number), 0))"
            )
    db.execute("COMMIT")
    return done


def _merge_table(wreck: sqlite3.Connection, db: sqlite3.Connection, table: str, is_sound: bool) -> int:
    known = _columns(wreck, table)
    columns = [name for name in _columns(db, table) if name in known]
    key = _key(db, table)
    places = [columns.index(name) for name in key]
    this = " AND ".join(f"{name} = ?" for name in key)
    listed = ", ".join(key)
    rows = _by_number if _has_rowid(db, table) else _from_both_ends
    done = 0
    if is_sound:  # what is gone goes first: another row may have its name by now
        db.execute(f"CREATE TEMP TABLE seen ({listed}, PRIMARY KEY ({listed})) WITHOUT ROWID")
        for row in rows(wreck, table, key, key):
            db.execute(f"INSERT OR IGNORE INTO seen VALUES ({marks(key)})", row)
        same = " AND ".join(f"seen.{name} = {table}.{name}" for name in key)
        gone = f"DELETE FROM {table} WHERE NOT EXISTS (SELECT 1 FROM temp.seen WHERE {same})"
        done += db.execute(gone).rowcount
        db.execute("DROP TABLE temp.seen")
    for row in rows(wreck, table, columns, key):
        name = [row[at] for at in places]
        # Not an upsert: its way with conflicts would be forced on the triggers.
        ours = db.execute(f"SELECT {', '.join(columns)} FROM {table} WHERE {this}", name).fetchone()
        differs = [at for at, value in enumerate(row) if ours and ours[at] != value]
        try:
            if ours is None:
                db.execute(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks(columns)})", row)
            elif differs:
                changes = ", ".join(f"{columns[at]} = ?" for at in differs)
                db.execute(
                    f"UPDATE {table} SET {changes} WHERE {this}", [*(row[at] for at in differs), *name]
                )
        except sqlite3.IntegrityError:
            continue  # what a bad page made of it, or another row has its name by now
        done += ours is None or bool(differs)
    return done


def _by_number(db: sqlite3.Connection, table: str, columns: list[str], _: list[str]) -> Iterator[Row]:
    """In the order of their numbers; after a bad page with the first number that can be found again."""
    query = f"SELECT rowid, {', '.join(columns)} FROM {table} WHERE rowid >= ? ORDER BY rowid LIMIT ?"
    at = SMALLEST
    while True:
        for many in (MANY, 1):  # a row alone may be read where it cannot together with the one behind it
            try:
                found = db.execute(query, (at, many)).fetchall()
                break
            except sqlite3.DatabaseError:
                continue
        else:
            behind = _behind(db, table, columns, at)
            if behind is None:
                return
            at = behind
            continue
        yield from (row[1:] for row in found)
        if len(found) < many or found[-1][0] == LARGEST:
            return
        at = found[-1][0] + 1


def _behind(db: sqlite3.Connection, table: str, columns: list[str], bad: int) -> int | None:
    """The least number behind a bad one from which on can be read: in steps that double, and then back."""
    query = f"SELECT rowid, {', '.join(columns)} FROM {table} WHERE rowid >= ? ORDER BY rowid LIMIT 1"

    def is_readable(at: int) -> bool:
        try:
            db.execute(query, (at,)).fetchall()
        except sqlite3.DatabaseError:
            return False
        return True

    step, good = 1, bad
    while not is_readable(good := min(bad + step, LARGEST)):
        if good == LARGEST:
            return None
        step *= 2
    while good - bad > 1:
        middle = (bad + good) // 2
        if is_readable(middle):
            good = middle
        else:
            bad = middle
    return good


def _from_both_ends(db: sqlite3.Connection, table: str, columns: list[str], key: list[str]) -> Iterator[Row]:
    """From the first row and from the last, each up to a bad page: in between are no numbers to try."""
    for direction in ("ASC", "DESC"):
        order = ", ".join(f"{name} {direction}" for name in key)
        try:
            yield from db.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY {order}")
            return
        except sqlite3.DatabaseError:
            continue


def _drop_orphans(db: sqlite3.Connection) -> None:
    """What refers to a row that is lost: without the reference where that may be, else not at all."""
    changed = 1
    while changed:
        changed = 0
        for table in _tables(db):
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
    from backstory.store import nodes

    found = db.execute(
        "SELECT id, parent_id, order_value, root_id, size, row FROM docmem_nodes WHERE project = ?"
        " ORDER BY parent_id, order_value, row",
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
        if was == [parent[name], order[name], root[name], size[name]]:
            continue
        kind, called, value, text = db.execute(
            "SELECT context_type, context_name, context_value, text FROM docmem_nodes WHERE row = ?", (row,)
        ).fetchone()
        new_hash = nodes.digest(parent[name], (kind, called, value), text, order[name])
        db.execute(
            "UPDATE docmem_nodes SET parent_id = ?, order_value = ?, root_id = ?, size = ?, hash = ?"
            " WHERE row = ?",
            (parent[name], order[name], root[name], size[name], new_hash, row),
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


def _with_first_page_of(backup: str, path: str, scratch: str) -> None:
    """A copy of a file whose first page is gone, with that of a backup: it says where the tables begin, and
    they stay where they are."""
    import subprocess

    for end in ("", "-wal"):
        if os.path.exists(path + end):  # by another process: only SQLite opens these files in ours
            subprocess.run(["cp", "--", path + end, scratch + end], check=True, capture_output=True)
    with open(backup, "rb") as file:
        head = file.read(100)
        size = int.from_bytes(head[16:18], "big")
        page = bytearray(head + file.read(size - 100))
    with open(scratch, "r+b") as file:
        page[28:32] = (os.path.getsize(scratch) // size).to_bytes(4, "big")
        file.write(page)


def _is_sound(db: sqlite3.Connection, table: str) -> bool:
    try:
        return bool(db.execute(f"PRAGMA quick_check({table})").fetchone()[0] == "ok")
    except sqlite3.DatabaseError:
        return False


def _tables(db: sqlite3.Connection) -> list[str]:
    """Those with rows of their own, in the order they were made."""
    ours = {row[1] for row in db.execute("PRAGMA main.table_list") if row[2] == "table"}
    made = db.execute("SELECT name FROM main.sqlite_master WHERE type = 'table' ORDER BY rowid")
    return [row[0] for row in made if row[0] in ours and not row[0].startswith("sqlite_")]


def _columns(db: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in db.execute(f"PRAGMA table_xinfo({table})") if not row[6]]  # hidden: generated


def _key(db: sqlite3.Connection, table: str) -> list[str]:
    found = [(row[5], row[1]) for row in db.execute(f"PRAGMA table_info({table})") if row[5]]
    return [name for _, name in sorted(found)]


def _has_rowid(db: sqlite3.Connection, table: str) -> bool:
    return not any(row[1] == table and row[4] for row in db.execute("PRAGMA main.table_list"))
