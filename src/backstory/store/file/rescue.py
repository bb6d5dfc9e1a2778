"""What SQLite still reads of a damaged database, into a sound one.

The damaged file is newer than the backup it is merged into, so where both have a row the damaged file's is
right: a memory that was forgotten since stays forgotten. A row that only the backup has was deleted since,
or lies where SQLite cannot read. It is taken for deleted only where SQLite finds nothing wrong with the table
and an index of it, which lies on other pages.
"""

from __future__ import annotations

import sqlite3

from backstory.ids import derived
from backstory.store.file import disk
from backstory.store.file.connection import marks, own_tables, version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Row = tuple[object, ...]

# What is wrong with a place in a file: also a text that is none, and SQL that is quoted though it is no text.
UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError)
DERIVED = (
    "line_changes",  # what running processes have yet to read again; they meet another file anyway
    "docmem_servers",  # what running processes say of themselves
    "docmem_views",
)
YEAR_2100 = 4_102_444_800_000  # no time of ours is later
ZEROES = "\0" * 4  # no text has these, but a page that lost some sectors has

# A session whose row is lost, by what it left.
SESSIONS_LEFT = """
INSERT OR IGNORE INTO sessions (id, project_id, number, status, started_at, last_event_at)
SELECT session_id, project_id, max(thread), 'interrupted', min(created_at), max(updated_at)
FROM memories WHERE session_id NOT IN (SELECT id FROM sessions) GROUP BY session_id
"""

# What tables have to say of each other, after rows of two files came together.
AGREEMENTS = (
    ("turn_pieces", "DELETE FROM turn_pieces WHERE turn NOT IN (SELECT row FROM memories)"),
    ("edited_files", "DELETE FROM edited_files WHERE turn NOT IN (SELECT row FROM memories)"),
    ("archived_memories", "DELETE FROM archived_memories WHERE id IN (SELECT id FROM memories)"),
    (
        "vectors",
        "DELETE FROM vectors WHERE length(vector) <> (SELECT dimension FROM models WHERE number = model)",
    ),
    *(
        (  # a row number is never used again, though the project's counter be lost
            table,
            "UPDATE projects SET last_memory = max(last_memory, coalesce("
            f" (SELECT max(row) & 4294967295 FROM {table} WHERE row >> 32 = number), 0))",
        )
        for table in ("memories", "turn_pieces", "document_chunks", "docmem_nodes")
    ),
)


class Rescued:
    __slots__ = ("broken", "rows")

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}  # by table: new, changed or deleted since the backup
        self.broken: list[str] = []  # tables of which a part is missing, as far as can be told


def schema_of(wreck: sqlite3.Connection) -> int | None:
    """None where SQLite reads nothing at all of the file."""
    try:
        wreck.execute("PRAGMA cell_size_check = ON")  # a page that makes no sense is refused as a whole
        own_tables(wreck)
        return version(wreck)
    except UNREADABLE as error:
        if disk.is_of_the_surroundings(error):
            raise
        return None


def merge(wreck: sqlite3.Connection, db: sqlite3.Connection) -> Rescued:
    """What can be read of the wreck into the store."""
    rescued = Rescued()
    db.execute("PRAGMA foreign_keys = OFF")  # rows come table by table
    db.execute("CREATE TEMPORARY TABLE backed_up AS SELECT key FROM events")
    tables = own_tables(db)
    for table in tables:
        if table not in DERIVED:
            db.execute("BEGIN")
            _Table(wreck, db, table).merge(rescued)
            db.execute("COMMIT")
    db.execute("BEGIN")
    if "turns" in tables:
        db.execute(SESSIONS_LEFT)
    _drop_orphans(db)
    if "docmem_nodes" in tables:
        for (project,) in db.execute("SELECT DISTINCT project FROM docmem_nodes").fetchall():
            _replant(db, project)
    for table, agreement in AGREEMENTS:
        if table in tables:
            db.execute(agreement)
    if rescued.broken and "transcripts" in tables:
        _let_backfill_bring(db, rescued.broken)
    db.execute("COMMIT")
    return rescued


class _Table:
    """One table of both files."""

    def __init__(self, wreck: sqlite3.Connection, db: sqlite3.Connection, name: str) -> None:
        self._wreck, self._db, self._name = wreck, db, name
        stored = {row[1] for row in wreck.execute(f"PRAGMA table_info({name})")}
        columns = db.execute(f"PRAGMA table_info({name})").fetchall()
        self._key = [row[1] for row in sorted(columns, key=lambda row: row[5]) if row[5]]
        self._columns = [row[1] for row in columns if row[1] in stored]
        self._names = ", ".join(self._columns)
        self._this = " AND ".join(f"{column} = ?" for column in self._key)
        self._links = {
            row[3]: f"SELECT 1 FROM {row[2]} WHERE {row[4]} = ?"
            for row in db.execute(f"PRAGMA foreign_key_list({name})")
            if row[2] != name
        }
        self._targets = {
            row[4]
            for other in own_tables(db)
            for row in db.execute(f"PRAGMA foreign_key_list({other})")
            if row[2] == name
        }
        has_rowid = not any(row[1] == name and row[4] for row in wreck.execute("PRAGMA main.table_list"))
        self._place = ["rowid"] if has_rowid else self._key
        self._indexes = [
            row[1]
            for row in wreck.execute(f"PRAGMA index_list({name})").fetchall()
            if not row[4] and (has_rowid or row[3] != "pk")  # of all rows, and not the table itself
        ]
        self._faults = 0

    def merge(self, rescued: Rescued) -> None:
        if not set(self._key) <= set(self._columns):  # the damaged file has no such table any more
            rescued.broken.append(self._name)
            return
        count, seen, refused = 0, set(), []
        for row in self._rows():
            seen.add(self._key_of(row))
            try:
                count += self._put(row)
            except sqlite3.IntegrityError:
                refused.append(row)
        is_sound = not self._faults and self._is_sound()
        keys = self._db.execute(f"SELECT {', '.join(self._key)} FROM {self._name}")
        missing = [key for key in keys if key not in seen]
        if is_sound and seen and self._indexes:
            self._db.executemany(f"DELETE FROM {self._name} WHERE {self._this}", missing)
            count, missing = count + len(missing), []
        for row in refused:  # another row had its name until now
            try:
                count += self._put(row)
            except sqlite3.IntegrityError:
                is_sound = False
        rescued.rows[self._name] = count
        if missing or not is_sound:
            rescued.broken.append(self._name)

    def _is_sound(self) -> bool:
        try:
            verdict = self._wreck.execute(f"PRAGMA integrity_check({self._name})").fetchone()
        except UNREADABLE:
            return False
        return bool(verdict[0] == "ok")

    def _key_of(self, row: Row) -> Row:
        return tuple(row[self._columns.index(column)] for column in self._key)

    def _put(self, row: Row) -> bool:
        """Whether that changed anything."""
        key = self._key_of(row)
        # Not an upsert: its way with conflicts would be forced on the triggers.
        ours = self._db.execute(f"SELECT {self._names} FROM {self._name} WHERE {self._this}", key).fetchone()
        if ours is None:
            values = marks(self._columns)
            self._db.execute(f"INSERT INTO {self._name} ({self._names}) VALUES ({values})", row)
            return True
        differs = {
            column: value for column, value, own in zip(self._columns, row, ours, strict=True) if value != own
        }
        for column, value in differs.items():
            # A row keeps the name that others call it by, and refers to what there is.
            query = self._links.get(column) if value else None
            if column in self._targets or (query and not self._db.execute(query, (value,)).fetchone()):
                raise sqlite3.IntegrityError
        if differs:
            changes = ", ".join(f"{column} = ?" for column in differs)
            self._db.execute(
                f"UPDATE {self._name} SET {changes} WHERE {self._this}", [*differs.values(), *key]
            )
        return bool(differs)

    def _rows(self) -> Iterator[Row]:
        """Those that can be read. SQLite stops at the first place that it cannot read; so the reading begins
        anew at each row that is known to be there, and at last from the end."""
        seen: set[Row] = set()
        yield from self._stretch(seen)
        if not self._faults:
            return
        for place in sorted(self._places(), key=repr):
            if place not in seen:
                yield from self._stretch(seen, place)
        yield from self._stretch(seen, way="DESC")

    def _stretch(self, seen: set[Row], since: Row | None = None, way: str = "ASC") -> Iterator[Row]:
        """From one place on, until there is an unreadable one or one that was `seen`."""
        size, place = len(self._place), ", ".join(self._place)
        order = ", ".join(f"{column} {way}" for column in self._place)
        sign = ">="
        for limit in ("", "LIMIT 1"):  # Python holds a row back where SQLite cannot read the one behind it
            where = f"WHERE ({place}) {sign} ({marks(self._place)})" if since else ""
            query = f"SELECT {place}, {self._names} FROM {self._name} {where} ORDER BY {order} {limit}"
            try:
                for row in self._wreck.execute(query, since or ()):
                    since, sign = row[:size], ">" if way == "ASC" else "<"
                    if since in seen:
                        return
                    seen.add(since)
                    if all(map(_is_plausible, self._columns, row[size:])):
                        yield row[size:]
                    else:
                        self._faults += 1
                return
            except UNREADABLE:
                self._faults += 1

    def _places(self) -> set[Row]:
        """Of all rows that an index of the damaged file has, or the backup."""
        query = f"SELECT {', '.join(self._place)} FROM {self._name}"
        places = set(self._db.execute(query))
        for index in self._indexes:
            try:
                places.update(self._wreck.execute(f"{query} INDEXED BY {index}"))
            except UNREADABLE:
                continue
        return places


def _is_plausible(column: str, value: object) -> bool:
    if column.endswith("_at") and value is not None:
        return isinstance(value, int) and 0 <= value < YEAR_2100
    return not (isinstance(value, str) and ZEROES in value)


def _drop_orphans(db: sqlite3.Connection) -> None:
    """What refers to a row that is lost: without the reference where that may be, else not at all."""
    changed = 1
    while changed:
        changed = 0
        for table in own_tables(db):
            required = {row[1] for row in db.execute(f"PRAGMA table_info({table})") if row[3] or row[5]}
            for link in db.execute(f"PRAGMA foreign_key_list({table})").fetchall():
                parent, name, target = link[2], link[3], link[4]
                if parent == table == "docmem_nodes":
                    continue  # what hangs below a lost one is not lost
                lost = (
                    f"{name} IS NOT NULL AND NOT EXISTS"
                    f" (SELECT 1 FROM {parent} parent WHERE parent.{target} = {table}.{name})"
                )
                change = f"DELETE FROM {table}" if name in required else f"UPDATE {table} SET {name} = NULL"
                changed += db.execute(f"{change} WHERE {lost}").rowcount


def _let_backfill_bring(db: sqlite3.Connection, broken: list[str]) -> None:
    """What happened since the backup and is not there may come again, from transcripts: the ledger would take
    it for stored. An event is there with its turn; and where traces or prompts are lost, only with its trace
    (what was said before is not said again: intake/remember.py)."""
    is_whole = not {"memories", "prompts"}.intersection(broken)
    gone = []
    for key, session_id, has_turn in db.execute(
        "SELECT key, session_id, EXISTS (SELECT 1 FROM turns t WHERE t.session_id = e.session_id"
        " AND e.created_at BETWEEN t.started_at AND t.ended_at)"
        " FROM events e WHERE key NOT IN temp.backed_up"
    ):
        trace = "SELECT 1 FROM memories WHERE id = ?", (derived("tool", session_id, key),)
        if not has_turn or not (is_whole or db.execute(*trace).fetchone()):
            gone.append((key,))
    db.executemany("DELETE FROM events WHERE key = ?", gone)
    db.execute("DELETE FROM transcripts")  # each is read again; what is in the ledger is not stored again


# The node that no root leads to: one whose parent is lost, or else one of a circle.
ASTRAY = """
WITH RECURSIVE reached AS (
    SELECT id FROM docmem_nodes WHERE project = ?1 AND parent_id IS NULL
    UNION SELECT n.id FROM reached r JOIN docmem_nodes n ON n.project = ?1 AND n.parent_id = r.id
)
SELECT row, (SELECT id FROM reached WHERE id = root_id) FROM docmem_nodes
WHERE project = ?1 AND id NOT IN reached
ORDER BY parent_id IN (SELECT id FROM docmem_nodes WHERE project = ?1), parent_id, order_value, row LIMIT 1
"""


def _replant(db: sqlite3.Connection, project: int) -> None:
    """Nodes whose parent is lost go to the end of their tree; where its root is lost too they are roots. What
    follows from a node's place is found out anew: rows of two files may share one, or lead in a circle."""
    from backstory.gist import tokens
    from backstory.store import nodes

    while astray := db.execute(ASTRAY, (project,)).fetchone():
        db.execute(
            "UPDATE docmem_nodes SET parent_id = ?2, order_value = coalesce((SELECT max(order_value)"
            " FROM docmem_nodes WHERE project = ?1 AND parent_id = ?2), 0) + 1 WHERE row = ?3",
            (project, astray[1], astray[0]),
        )
    db.execute("UPDATE docmem_nodes SET order_value = 1 WHERE project = ? AND parent_id IS NULL", (project,))
    for (parent_id,) in db.execute(
        "SELECT DISTINCT parent_id FROM docmem_nodes WHERE project = ? AND parent_id IS NOT NULL"
        " GROUP BY parent_id, order_value HAVING count(*) > 1",
        (project,),
    ).fetchall():
        nodes.renumber(db, project, parent_id)
    rows = db.execute(
        "SELECT row, id, parent_id, order_value, context_type, context_name, context_value, text,"
        " root_id, hash, token_count, size FROM docmem_nodes WHERE project = ?",
        (project,),
    ).fetchall()
    parents = {row[1]: row[2] for row in rows}
    size, roots = dict.fromkeys(parents, 0), dict(parents)
    for name in parents:
        above: str | None = name
        while above is not None:
            size[above] += 1
            roots[name], above = above, parents[above]
    for row, name, parent_id, order, kind, called, value, text, *derived_before in rows:
        new_hash = nodes.digest(parent_id, (kind, called, value), text, order)
        derived_now = [roots[name], new_hash, tokens(text), size[name]]
        if derived_now != derived_before:
            db.execute(
                "UPDATE docmem_nodes SET root_id = ?, hash = ?, token_count = ?, size = ? WHERE row = ?",
                (*derived_now, row),
            )
