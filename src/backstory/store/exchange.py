"""What an export holds, as rows of the store: out, and in again.

store/families.py says for each table how it stands in an export; the columns are the schema's. A line is a
row, with what belongs to it alone inside: a session has its prompts and its summary, a memory its turn and
who used it, a document its chunks.

Rows come in by id. A row that is here already is replaced by a newer one and left alone by any other. What a
line must look like is checked in intake/imports.py, before anything is stored.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from backstory.errors import BadInput
from backstory.memory.kinds import OBSERVATIONS
from backstory.memory.turn import COMPLETE
from backstory.store import documents, families, forgetting, projects, redaction, turns
from backstory.store.families import Family, Line
from backstory.store.file.connection import Connection, marks, transaction
from backstory.store.life import APART

Values = dict[str, Any]

VERSION = 2
NEW, KNOWN, CHANGED, LEFT = "new", "known", "changed", "left"  # what comes of a line; left: not taken in
# What others refer to, and where the ids are that an export has.
EXPORTED = {"sessions": "temp.exported_sessions", "memories": "temp.exported_memories"}


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str  # TEXT, INTEGER or REAL, as the schema says
    is_required: bool  # never null
    is_json: bool = False
    refers: str = ""  # to which table, by id


@dataclass(frozen=True, slots=True)
class Part:
    """A table as it stands in lines: those of its type, or inside those of its owner."""

    family: Family
    line: Line
    columns: list[Column]
    key: list[str]
    inside: list[Part]
    owner: tuple[str, str]  # (column, that of the line's own row): of what stands inside
    needed: Values  # what an empty row must have besides

    @property
    def table(self) -> str:
        return self.family.table

    @property
    def order(self) -> str:
        """The order of the store's own numbers. Who takes the lines in gives new ones in the order of the
        lines, so a second export has the same order."""
        numbers = [name for name in self.line.numbers if name in ("number", "row", "id")]
        return ", ".join(numbers[:1] or self.key)


Parts = dict[str, Part]


def types() -> list[str]:
    """The types of lines, in the order in which they stand in a file."""
    lines = (family.line for family in families.FAMILIES if isinstance(family.line, Line))
    return [line.name for line in lines if not line.inside]


def parts(db: Connection) -> Parts:
    """What a line has in each part: the columns of the schema without those left out. Of an archived memory
    also those of a memory; the project of a node is named by its id, as in all other lines."""
    found: Parts = {}
    for family in families.FAMILIES:
        if isinstance(line := family.line, Line):
            owners = families.owners(db, family.table, _table(line.outside)) if line.inside else [("", "")]
            found[line.name] = _part(db, family, line, owners[0])
            if line.inside:
                found[line.outside].inside.append(found[line.name])
    own = found["archived"].columns
    own += [one for one in found["memory"].columns if one.name not in {column.name for column in own}]
    return found


def _table(name: str) -> str:
    return next(
        family.table
        for family in families.FAMILIES
        if isinstance(family.line, Line) and family.line.name == name
    )


def _part(db: Connection, family: Family, line: Line, owner: tuple[str, str]) -> Part:
    left_out = {*line.numbers, *line.computed, *line.left_out, owner[0]}
    (sql,) = db.execute("SELECT sql FROM sqlite_master WHERE name = ?", (family.table,)).fetchone()
    to_projects = dict(families.owners(db, family.table, "projects"))
    refers = {column: table for table in EXPORTED for column, _ in families.owners(db, family.table, table)}
    columns, needed = [], {}
    for row in db.execute(f"PRAGMA table_xinfo({family.table})"):
        name, is_required = row["name"], bool(row["notnull"] or row["pk"])
        if to_projects.get(name) == "number":
            columns.append(Column("project_id", "TEXT", True))
        elif name not in left_out:
            is_json = f"json_valid({name})" in sql
            columns.append(Column(name, row["type"], is_required, is_json, refers.get(name, "")))
            continue
        if row["notnull"] and row["dflt_value"] is None:
            needed[name] = 0 if row["type"] == "INTEGER" else "{}"
    return Part(family, line, columns, families.key(db, family.table), [], owner, needed)


def encode(line: Mapping[str, Any]) -> bytes:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() + b"\n"


# --- out ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is exported; without any of these, all."""

    project_id: str | None = None
    since: int | None = None
    with_turns: bool = True

    @property
    def is_all(self) -> bool:
        return self.project_id is None and self.since is None and self.with_turns


def total(db: Connection) -> int:
    """About how many lines an export of everything has."""
    counts = (db.execute(f"SELECT count(*) FROM {_table(name)}").fetchone()[0] for name in types())
    return sum(counts)


def export(db: Connection, chosen: Chosen) -> Iterator[Values]:
    """The lines of an export but for the first and the last one, all as of one moment."""
    given = {"project": chosen.project_id, "since": chosen.since, "turns": chosen.with_turns}
    db.execute("BEGIN")  # what others write from now on is not seen
    try:
        every = parts(db)
        for table, exported in EXPORTED.items():
            part = next(one for one in every.values() if one.table == table)
            db.execute(f"CREATE TEMP TABLE {exported.partition('.')[2]} (id TEXT PRIMARY KEY)")
            db.execute(f"INSERT INTO {exported} SELECT id FROM {table} WHERE {_which(db, part)}", given)
        for name in types():
            part = every[name]
            # The + keeps SQLite from taking rows in another order and sorting them.
            which = f"+id IN {EXPORTED[part.table]}" if part.table in EXPORTED else _which(db, part)
            for row in db.execute(f"SELECT * FROM {part.table} WHERE {which} ORDER BY {part.order}", given):
                yield {"type": name, **_line(db, chosen, part, row)}
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _which(db: Connection, part: Part) -> str:
    """Which rows of a table belong to an export: no line refers to what is not there."""
    project = "id" if part.table == "projects" else families.project_of(db, part.table, part.table)
    clauses = [] if project == "NULL" else [f"(:project IS NULL OR {project} = :project)"]
    clauses += [f"(:since IS NULL OR {part.line.since})"] if part.line.since else []
    clauses += [f"(:turns OR NOT {part.line.asked})"] if part.line.asked else []
    clauses += [f"+{one.name} IN {EXPORTED[one.refers]}" for one in _needing(part)]
    return " AND ".join(clauses or ["true"])


def _needing(part: Part) -> list[Column]:
    return [column for column in part.columns if column.refers and column.is_required]


def _line(db: Connection, chosen: Chosen, part: Part, row: sqlite3.Row) -> Values:
    line = _values(db, chosen, part, _archived(db, row) if part.line.name == "archived" else row)
    if part.line.name == "session" and not chosen.with_turns:
        line["user_prompt"] = None  # it is the first of them
    for one in part.inside:
        needed = "".join(f" AND {column.name} IN {EXPORTED[column.refers]}" for column in _needing(one))
        where = f"{one.owner[0]} = ?{needed} AND (? OR NOT ({one.line.asked or 0})) ORDER BY {one.order}"
        found = [
            _values(db, chosen, one, inner)
            for inner in db.execute(
                f"SELECT * FROM {one.table} WHERE {where}", (row[one.owner[1]], chosen.with_turns)
            )
        ]
        if one.line.name == "memory.turn_fields":
            if row["kind"] == "turn":
                line[one.line.inside] = found[0] if found else _lost(row["created_at"])
        else:
            line[one.line.inside] = next(iter(found), None) if one.line.is_one else found
    return line


def _lost(at: int) -> Values:
    """Of a turn whose record was lost with a part of the file."""
    return {"state": COMPLETE, "started_at": at, "ended_at": at, "left_open_at": None, "record": {}}


def _values(db: Connection, chosen: Chosen, part: Part, row: sqlite3.Row | Values) -> Values:
    values = {}
    for column in part.columns:
        value = row["project" if column.name == "project_id" and part.line.name == "node" else column.name]
        if column.is_json:
            value = json.loads(value)
        elif column.refers and value is not None and not chosen.is_all:
            among = f"SELECT 1 FROM {EXPORTED[column.refers]} WHERE id = ?"
            value = value if db.execute(among, (value,)).fetchone() else None
        values[column.name] = value
    if part.line.name == "node":
        (values["project_id"],) = db.execute(
            "SELECT id FROM projects WHERE number = ?", (row["project"],)
        ).fetchone()
    return values


def _archived(db: Connection, row: sqlite3.Row) -> Values:
    """An archived memory as one row; it may be older than a column of memories."""
    columns = db.execute("PRAGMA table_xinfo(memories)")
    defaults = ", ".join(f"{column['dflt_value'] or 'NULL'} AS {column['name']}" for column in columns)
    memory: Values = json.loads(row["memory"])
    return dict(db.execute(f"SELECT {defaults}").fetchone()) | memory | dict(row)


# --- what the schema says of a line -------------------------------------------------------------------------


class Scratch:
    """The tables of the store, empty and in RAM: whether they take a row is asked there first."""

    __slots__ = ("_db",)

    def __init__(self, db: Connection) -> None:
        self._db = sqlite3.connect(":memory:", isolation_level=None)
        for part in parts(db).values():
            (sql,) = db.execute("SELECT sql FROM sqlite_master WHERE name = ?", (part.table,)).fetchone()
            self._db.execute(sql)
        self._db.execute("BEGIN")  # a commit for each row would take longer than the row

    def close(self) -> None:
        self._db.close()

    def refusal(self, part: Part, values: Values) -> str | None:
        """Why the store would not take this row."""
        row = part.needed | values
        if part.line.name == "node":
            del row["project_id"]
        try:
            _insert(self._db, part.table, row)
            self._db.execute(f"DELETE FROM {part.table}")
        except (sqlite3.Error, OverflowError) as error:
            return " ".join(str(error).split())
        return None


# --- in: what a line is to this store -----------------------------------------------------------------------


@dataclass(slots=True)
class Tree:
    """A tree of a file: when each node changed, and how many are below it with itself."""

    updated: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Merge:
    """What the lines of a file are to this store."""

    parts: Parts
    attach: bool = False  # folders and repositories that a new project names are its own
    match: bool = True  # a project of a repository that is here already is that one
    trees: dict[tuple[str, str], Tree] = field(default_factory=dict)
    counts: dict[str, Counter[str]] = field(default_factory=dict)  # by type: new, known, changed, left
    projects: dict[str, str] = field(default_factory=dict)  # id in the file -> id here
    matched: dict[str, str] = field(default_factory=dict)  # id here -> new, known, or the same repository
    names: dict[str, str] = field(default_factory=dict)  # id here -> name
    memories: Counter[str] = field(default_factory=Counter)  # id here -> new and changed ones
    attached: list[str] = field(default_factory=list)  # folders
    unattached: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)  # folders that are another project's here
    trees_left: list[str] = field(default_factory=list)
    trees_changed: list[tuple[str, str]] = field(default_factory=list)  # (project here, root)
    _begun: set[tuple[str, str]] = field(default_factory=set)
    _standing: dict[tuple[str, str], str] = field(default_factory=dict)  # of a tree

    def here(self, line: Values) -> str:
        """The project of a line, as it is called here."""
        project_id: str = line["project_id"]
        return self.projects.get(project_id, project_id)


def is_empty(db: Connection) -> bool:
    """Nothing is remembered here and no folder is known, as on a new machine."""
    return db.execute("SELECT 1 FROM checkouts UNION ALL SELECT 1 FROM memories LIMIT 1").fetchone() is None


def meet(db: Connection, merge: Merge, line: Values) -> str:
    """What a line is to this store. Nothing is written, but it is noted."""
    standing = _MEET.get(line["type"], _meet_row)(db, merge, line)
    merge.counts.setdefault(line["type"], Counter())[standing] += 1
    if line["type"] == "memory" and standing in (NEW, CHANGED):
        merge.memories[merge.here(line)] += 1
    return standing


def is_there(db: Connection, table: str, known: str) -> bool:
    """Is there such a project, session or memory, be it archived?"""
    return db.execute(f"SELECT 1 FROM {table} WHERE id = ?", (known,)).fetchone() is not None


def kind_of(db: Connection, memory_id: str) -> str | None:
    """What kind of memory is here under this id, be it archived?"""
    row = db.execute(
        "SELECT kind FROM memories WHERE id = ?1"
        " UNION ALL SELECT memory ->> 'kind' FROM archived_memories WHERE id = ?1",
        (memory_id,),
    ).fetchone()
    return str(row["kind"]) if row else None


def superseding(db: Connection) -> Iterator[tuple[str, str]]:
    """(new, old) of all memories here that supersede others."""
    rows = db.execute(
        "SELECT source_id, target_id FROM memory_relationships WHERE relationship_type = 'SUPERSEDES'"
    )
    return ((row["source_id"], row["target_id"]) for row in rows)


def _stored(db: Connection, part: Part, line: Values) -> sqlite3.Row | None:
    """The row that is here already."""
    where = " AND ".join(f"{name} = ?" for name in part.key)
    values = [line[name] for name in part.key]
    row: sqlite3.Row | None = db.execute(f"SELECT * FROM {part.table} WHERE {where}", values).fetchone()
    return row


def _meet_row(db: Connection, merge: Merge, line: Values) -> str:
    part = merge.parts[line["type"]]
    row = _stored(db, part, line)
    other = {"memory": "archived_memories", "archived": "memories"}.get(line["type"])
    if row is None:
        return KNOWN if other and is_there(db, other, line["id"]) else NEW
    if "project_id" in line and row["project_id"] != merge.here(line):
        return KNOWN  # it was moved here, and stays where it is
    return CHANGED if _is_newer(part, line, row) or _tells_turn(part, line, row) else KNOWN


def _tells_turn(part: Part, line: Values, row: sqlite3.Row) -> bool:
    """Does it say of which turn a row is that came with a file without turns?"""
    return part.table == "memories" and row["turn"] is None and line["turn"] is not None


def _meet_relation(db: Connection, merge: Merge, line: Values) -> str:
    """What is archived here has no relations."""
    ends = (line["source_id"], line["target_id"])
    if any(is_there(db, "archived_memories", one) for one in ends):
        return LEFT
    return _meet_row(db, merge, line)


def _is_newer(part: Part, line: Values, row: Mapping[str, Any] | sqlite3.Row | None) -> bool:
    """Is it a later version than the row that is here, if there is one?"""
    versions = ([one[name] for name in part.line.newer] for one in (line, row) if one is not None)
    return row is None or next(versions) > next(versions)


def _meet_session(db: Connection, merge: Merge, line: Values) -> str:
    """It has changed also where only its summary is a newer one, or it came without what was asked."""
    standing = _meet_row(db, merge, line)
    asked = db.execute("SELECT 1 FROM prompts WHERE session_id = ?", (line["id"],)).fetchone()
    if standing == KNOWN and (_newer_summary(db, merge, line) or (line["prompts"] and not asked)):
        (project_id,) = db.execute("SELECT project_id FROM sessions WHERE id = ?", (line["id"],)).fetchone()
        return CHANGED if project_id == merge.here(line) else KNOWN
    return standing


def _newer_summary(db: Connection, merge: Merge, line: Values) -> bool:
    query = "SELECT * FROM session_summaries WHERE session_id = ?"
    part, summary = merge.parts["session.summary_fields"], line["summary_fields"]
    return bool(summary) and _is_newer(part, summary, db.execute(query, (line["id"],)).fetchone())


def _meet_project(db: Connection, merge: Merge, line: Values) -> str:
    row = db.execute("SELECT id, name FROM projects WHERE id = ?", (line["id"],)).fetchone()
    how = KNOWN
    if row is None and line["roots"] and merge.match:
        row = db.execute(
            "SELECT id, name FROM projects WHERE roots = ? AND remote = ? ORDER BY number",
            (line["roots"], line["remote"]),
        ).fetchone()
        how = "the same repository"
    here = row["id"] if row else line["id"]
    merge.projects[line["id"]] = here
    merge.matched[here] = how if row else NEW
    merge.names[here] = row["name"] if row else line["name"]
    return KNOWN if row else NEW


def _meet_checkout(db: Connection, merge: Merge, line: Values) -> str:
    row = _stored(db, merge.parts["checkout"], line)
    if row and row["project_id"] == merge.here(line):
        return KNOWN
    if row or not merge.attach:
        (merge.taken if row else merge.unattached).append(line["root"])
        return LEFT
    merge.attached.append(line["root"])
    return NEW


def _meet_node(db: Connection, merge: Merge, line: Values) -> str:
    """What its tree is. Two versions of a tree are not mixed: a newer one that has all the nodes of the one
    here takes its place, any other is left."""
    tree = (line["project_id"], line["root_id"])
    if tree not in merge._standing:
        merge._standing[tree] = _meet_tree(db, merge, *tree)
        if merge._standing[tree] == LEFT:
            merge.trees_left.append(line["root_id"])
        elif merge._standing[tree] == CHANGED:
            merge.trees_changed.append((merge.here(line), line["root_id"]))
    return merge._standing[tree]


def _meet_tree(db: Connection, merge: Merge, project_id: str, root_id: str) -> str:
    updated = merge.trees[project_id, root_id].updated
    rows = db.execute(
        "SELECT id, root_id, updated_at FROM docmem_nodes WHERE project ="
        " (SELECT number FROM projects WHERE id = ?1)"
        " AND (root_id = ?2 OR id IN (SELECT value FROM json_each(?3)))",
        (merge.projects.get(project_id, project_id), root_id, json.dumps(list(updated))),
    ).fetchall()
    if not rows:
        return NEW
    if any(one["root_id"] != root_id for one in rows):
        return LEFT
    had = {one["id"]: one["updated_at"] for one in rows}
    if had == updated or max(had.values()) >= max(updated.values()):
        return KNOWN
    return CHANGED if had.keys() <= updated.keys() else LEFT


_MEET = {
    "project": _meet_project,
    "checkout": _meet_checkout,
    "session": _meet_session,
    "node": _meet_node,
    "relation": _meet_relation,
}


# --- in: storing --------------------------------------------------------------------------------------------


def prepare(line: Values) -> Values:
    """The line with what is computed from its texts: slow, so it is done before the store is locked."""
    computed: object = {}
    if line["type"] in ("memory", "archived"):
        kind = line["kind"]
        is_hashed = kind in (*OBSERVATIONS, "note") or (kind == "tool" and line["session_id"])
        given = {**line, "content_hash": is_hashed or None}
        unless = {"content_hash": None, "simhash": None, "terms": ""}
        computed = {**unless, **redaction.computed("memories", given)}
    elif line["type"] == "node":
        computed = redaction.computed("docmem_nodes", line)
    elif line["type"] == "document":
        computed = documents.prepared((chunk["heading"], chunk["content"]) for chunk in line["chunks"])
    return line | {"computed": computed}


@contextmanager
def taking_in(db: Connection) -> Iterator[None]:
    """A transaction for all lines. At its end everything that one refers to must be there."""
    try:
        with transaction(db):
            yield
    except sqlite3.IntegrityError as error:
        raise _refused("the file", error) from error


def _refused(where: str, error: Exception) -> BadInput:
    return BadInput(f"{where}: the store does not take it ({error}); nothing was imported, try again")


def begin(db: Connection) -> None:
    """Nodes may come before those they stand below; all are there at the end."""
    db.execute("PRAGMA defer_foreign_keys = ON")


def put(db: Connection, merge: Merge, line: Values, where: str, standing: str) -> None:
    """Take in one line that was prepared, inside a transaction. What another process stored since it was
    looked at is refused, what was removed since stays so."""
    standing = standing or merge._standing[line["project_id"], line["root_id"]]
    if standing not in (NEW, CHANGED):
        return
    if "project_id" in line and not is_there(db, "projects", merge.here(line)):
        raise BadInput(f"{where}: its project was removed meanwhile; nothing was imported, try again")
    try:
        _put(db, merge, line, standing)
    except sqlite3.IntegrityError as error:
        raise _refused(where, error) from error


def _put(db: Connection, merge: Merge, line: Values, standing: str) -> None:
    part = merge.parts[line["type"]]
    own = {column.name: line[column.name] for column in part.columns}
    if "project_id" in own:
        own["project_id"] = merge.here(line)
    row = own | _SPECIAL[line["type"]](db, merge, line, standing) if line["type"] in _SPECIAL else own
    if standing == NEW or line["type"] == "node":
        _insert(db, part.table, row)
    elif _is_newer(part, line, before := _stored(db, part, line)):
        unknown = {one.name for one in part.columns if one.refers and line[one.name] is None}
        _update(db, part.table, {name: row[name] for name in row if name not in unknown})  # of a part
        if before and row.get("deleted_at", 0) is None and before["deleted_at"] is not None:
            forgetting.show_of(db, line["id"], before["deleted_at"])
    elif before and _tells_turn(part, line, before):
        _update(db, part.table, {"id": row["id"], "turn": row["turn"]})
    if part.inside and (stored := _stored(db, part, own)):
        for one in part.inside:
            owner = {one.owner[0]: stored[one.owner[1]], "project_id": own.get("project_id")}
            rows: Any = line.get(one.line.inside) or []
            _put_inside(db, merge, line, one, owner, [rows] if one.line.is_one and rows else rows)


def _put_inside(
    db: Connection, merge: Merge, line: Values, part: Part, owner: Values, rows: Sequence[Values]
) -> None:
    """What stands inside of a line, beside what is here already."""
    if part.line.name == "document.chunks":
        db.execute("DELETE FROM document_chunks WHERE document_id = ?", (line["id"],))
        return documents.put_chunks(db, line["id"], owner["project_id"], line["computed"])
    if part.line.name == "session.summary_fields" and not _newer_summary(db, merge, line):
        return None
    names = {column.name for column in part.columns} | {part.owner[0]} | set(part.line.left_out)
    more = {name: value for name, value in owner.items() if name in names}
    if part.line.name == "memory.turn_fields":
        more["session_id"] = db.execute(
            "SELECT session_id FROM memories WHERE id = ?", (line["id"],)
        ).fetchone()[0]
    # A row without a number is known by its key. One with a number is known by what is never null in it.
    if not part.line.numbers or part.line.is_one:
        at = part.family.at
        latest = f"UPDATE SET {at} = max({at}, excluded.{at})" if at and at not in part.key else "NOTHING"
        how = ("OR REPLACE", "") if part.line.is_one else ("", f"ON CONFLICT DO {latest}")
        for row in rows:
            _insert(db, part.table, row | more, *how)
    else:
        known = [column.name for column in part.columns if column.is_required]
        here = f"SELECT {', '.join(known)} FROM {part.table} WHERE {part.owner[0]} = ?"
        had = Counter(tuple(row) for row in db.execute(here, (owner[part.owner[0]],)))
        for row in rows:
            if had[mark := tuple(row[name] for name in known)]:
                had[mark] -= 1
            else:
                _insert(db, part.table, row | more)
    if part.line.name == "memory.turn_fields" and rows:
        turns.put_pieces(db, turns.by_ids(db, [line["id"]])[line["id"]], owner["project_id"])
    if part.line.name == "session.summary_fields":
        db.execute("UPDATE sessions SET summary = ? WHERE id = ?", (line["summary"], line["id"]))


def _more_of_project(db: Connection, merge: Merge, line: Values, standing: str) -> Values:
    is_its_own = merge.attach or line["id"] == projects.GLOBAL
    return {"identity": line["id"]} | ({} if is_its_own else {"roots": "", "remote": ""})


def _more_of_session(db: Connection, merge: Merge, line: Values, standing: str) -> Values:
    if standing != NEW:
        return {}
    (number,) = db.execute("SELECT coalesce(max(number), 0) + 1 FROM sessions").fetchone()
    return {"number": number}


def _more_of_memory(db: Connection, merge: Merge, line: Values, standing: str) -> Values:
    more: Values = line["computed"]
    if standing == NEW:
        more |= {"row": projects.next_row(db, merge.here(line))}
    return more if line["session_id"] is None else more | {"thread": _thread(db, line)}


def _more_of_archived(db: Connection, merge: Merge, line: Values, standing: str) -> Values:
    return {**line["computed"], "thread": _thread(db, line)}


def _thread(db: Connection, line: Values) -> int | None:
    """As `memories.add` does it."""
    if line["kind"] in ("tool", "turn") or line["tier"] == "global":
        return None
    row = db.execute("SELECT number FROM sessions WHERE id = ?", (line["session_id"],)).fetchone()
    return int(row["number"]) if row else None


def _more_of_node(db: Connection, merge: Merge, line: Values, standing: str) -> Values:
    project_id, root_id = merge.here(line), line["root_id"]
    (number,) = db.execute("SELECT number FROM projects WHERE id = ?", (project_id,)).fetchone()
    if standing == CHANGED and (project_id, root_id) not in merge._begun:
        merge._begun.add((project_id, root_id))  # with its first node the old ones go
        db.execute("DELETE FROM docmem_nodes WHERE project = ? AND root_id = ?", (number, root_id))
    size = merge.trees[line["project_id"], root_id].sizes[line["id"]]
    row = projects.next_row(db, project_id)
    return {**line["computed"], "project": number, "row": row, "size": size}


_SPECIAL = {
    "project": _more_of_project,
    "session": _more_of_session,
    "memory": _more_of_memory,
    "archived": _more_of_archived,
    "node": _more_of_node,
}


def _row(table: str, values: Values) -> Values:
    """As the table has it: lists and records as JSON, of an archived memory all but its keys together."""
    row = {
        name: json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value
        for name, value in values.items()
    }
    if table == "docmem_nodes":
        row.pop("project_id", None)
    if table == "archived_memories" and "kind" in row:
        apart = {name: row.pop(name) for name in (*APART, "archived_at")}
        row = apart | {"memory": json.dumps(row)}
    return row


def _insert(db: Connection, table: str, values: Values, how: str = "", conflict: str = "") -> None:
    row = _row(table, values)
    names = f"({', '.join(row)}) VALUES ({marks(list(row))})"
    db.execute(f"INSERT {how} INTO {table} {names} {conflict}", list(row.values()))


def _update(db: Connection, table: str, values: Values) -> None:
    row = _row(table, values)
    columns = ", ".join(f"{name} = ?" for name in row)
    db.execute(f"UPDATE {table} SET {columns} WHERE id = ?", [*row.values(), row["id"]])


def turns_by_time(db: Connection, session_ids: Sequence[str]) -> None:
    """What says of no turn that it is of it is of the one at its time: files of version 1 do not say."""
    for table, which in ("prompts", "true"), ("memories", "kind = 'tool'"), ("archived_memories", "true"):
        at = "created_at" if table != "archived_memories" else "memory ->> 'created_at'"
        db.execute(
            f"UPDATE {table} SET turn = (SELECT m.id FROM turns t JOIN memories m ON m.row = t.row"
            f" WHERE t.session_id = {table}.session_id AND {table}.{at} BETWEEN t.started_at AND t.ended_at"
            " ORDER BY t.started_at DESC LIMIT 1) WHERE turn IS NULL"
            f" AND session_id IN (SELECT value FROM json_each(?)) AND {which}",
            (json.dumps(list(session_ids)),),
        )
