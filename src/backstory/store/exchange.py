"""What an export holds, as rows of the store: out, and in again.

`PARTS` says for each table what of it is exported; the columns themselves are the schema's. A line of an
export is a row, with what belongs to it alone inside: a session has its prompts and its summary, a memory its
turn and who used it, a document its chunks. Numbers of the store's own, and what is computed from a text, are
made anew on the way in.

Rows come in by id. A row that is here already is replaced by a newer one and left alone by any other. What a
line must look like is checked in intake/imports.py, before anything is stored.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from backstory.errors import BadInput
from backstory.memory.kinds import OBSERVATIONS
from backstory.memory.turn import COMPLETE, FIELDS
from backstory.store import documents, life, projects, redaction, turns
from backstory.store.file.connection import Connection, marks

Values = dict[str, Any]

VERSION = 2
NEW, KNOWN, CHANGED, LEFT = "new", "known", "changed", "left"  # what comes of a line; left: not taken in
JSON_COLUMNS = frozenset("tags concepts files hashes files_read files_edited record".split())

_NUMBER = "a number of this store's own"
_COMPUTED = "computed from the text"
_OF_SESSION = "its session has it"


@dataclass(frozen=True, slots=True)
class Part:
    """A table, and which columns are not exported, with the reason."""

    table: str
    left_out: Mapping[str, str] = field(default_factory=dict)


PARTS = {
    "project": Part("projects", {"number": _NUMBER, "identity": "the id again", "last_memory": _NUMBER}),
    "checkout": Part("checkouts"),
    "session": Part("sessions", {"number": _NUMBER}),
    "session.prompts": Part("prompts", {"id": _NUMBER, "session_id": _OF_SESSION}),
    "session.forgotten": Part("forgotten_sessions", {"session_id": _OF_SESSION}),
    "session.summary_fields": Part(
        "session_summaries", {"id": _NUMBER, "session_id": _OF_SESSION, "project_id": _OF_SESSION}
    ),
    "memory": Part(
        "memories",
        {
            "row": _NUMBER,
            "thread": _NUMBER,
            "is_deleted": "deleted_at says it",
            **dict.fromkeys(("content_hash", "simhash", "words", "question", "terms"), _COMPUTED),
        },
    ),
    "memory.turn_fields": Part("turns", {"row": _NUMBER, "session_id": "its memory has it"}),
    "memory.uses": Part("session_memories", {"memory_id": "its memory has it"}),
    "archived": Part("archived_memories", {"memory": "its fields stand in the line, as those of a memory"}),
    "relation": Part("memory_relationships"),
    "document": Part("documents", {"number": _NUMBER}),
    "document.chunks": Part(
        "document_chunks",
        {
            "row": _NUMBER,
            "thread": _NUMBER,
            "document_id": "its document has it",
            "words": _COMPUTED,
            "terms": _COMPUTED,
        },
    ),
    "node": Part(
        "docmem_nodes",
        {
            "row": _NUMBER,
            "project": "a number of this store's own; project_id stands for it",
            **dict.fromkeys(("token_count", "hash", "size", "words", "terms"), _COMPUTED),
        },
    ),
}
LINES = [name for name in PARTS if "." not in name]  # in the order in which they stand in a file


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str  # TEXT, INTEGER or REAL, as the schema says
    is_required: bool  # never null


def columns(db: Connection) -> dict[str, list[Column]]:
    """What a line has in each part, in order: the columns of the schema without those left out."""
    found = {name: _columns(db, part) for name, part in PARTS.items()}
    found["archived"] = [*found["archived"], *(one for one in found["memory"] if one.name != "id")]
    found["archived"] = list({one.name: one for one in found["archived"]}.values())
    found["node"].insert(0, Column("project_id", "TEXT", True))
    return found


def _columns(db: Connection, part: Part) -> list[Column]:
    return [
        Column(row["name"], row["type"], bool(row["notnull"] or row["pk"]))
        for row in db.execute(f"PRAGMA table_xinfo({part.table})")
        if row["name"] not in part.left_out
    ]


def encode(line: Mapping[str, Any]) -> bytes:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() + b"\n"


# --- out ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is exported; without any of these, all."""

    project_id: str | None = None
    since: int | None = None
    with_turns: bool = True


Names = dict[str, list[str]]  # by part: the fields of a line


def total(db: Connection) -> int:
    """About how many lines an export of everything has."""
    counts = (db.execute(f"SELECT count(*) FROM {PARTS[name].table}").fetchone()[0] for name in LINES)
    return sum(counts)


# Which sessions and memories belong to an export. A session comes with what is exported of it, and a memory
# with the summary that it stands for, so that no line refers to what is not there.
_SESSIONS = """
SELECT id FROM sessions s WHERE (:project IS NULL OR project_id = :project) AND (:since IS NULL
    OR last_event_at >= :since
    OR EXISTS (SELECT 1 FROM memories m WHERE m.session_id = s.id AND m.updated_at >= :since))"""
_MEMORIES = """
SELECT id FROM memories WHERE (:project IS NULL OR project_id = :project) AND (:turns OR kind <> 'turn')
    AND (:since IS NULL OR updated_at >= :since OR id IN (
        SELECT memory_id FROM session_summaries WHERE session_id IN temp.exported_sessions))"""

# Which rows of each table. The order is that of the store's own numbers. Who takes the lines in gives new
# ones in the order of the lines, so a second export has the same order. The + keeps SQLite from taking rows
# in another order and sorting them: it reads a table as long as it is, and holds nothing.
_WHICH = {
    "project": ":project IS NULL OR id = :project ORDER BY number",
    "checkout": ":project IS NULL OR project_id = :project ORDER BY path",
    "session": "+id IN temp.exported_sessions ORDER BY number",
    "memory": "+id IN temp.exported_memories ORDER BY row",
    "archived": "(:project IS NULL OR project_id = :project) AND (:since IS NULL OR archived_at >= :since)"
    " ORDER BY id",
    "relation": "+source_id IN temp.exported_memories AND +target_id IN temp.exported_memories"
    " ORDER BY source_id, target_id, relationship_type",
    "document": "(:project IS NULL OR project_id = :project) AND (:since IS NULL OR updated_at >= :since)"
    " ORDER BY number",
    # Of a tree that changed all nodes: it is taken in as a whole.
    "node": "(:project IS NULL OR project_id = :project) AND (:since IS NULL OR EXISTS ("
    "SELECT 1 FROM docmem_nodes o WHERE o.project = n.project AND o.root_id = n.root_id"
    " AND o.updated_at >= :since)) ORDER BY row",
}
_NODES = "(SELECT n.*, p.id AS project_id FROM docmem_nodes n JOIN projects p ON p.number = n.project) n"


def export(db: Connection, chosen: Chosen) -> Iterator[Values]:
    """The lines of an export but for the first and the last one, all as of one moment."""
    given = {"project": chosen.project_id, "since": chosen.since, "turns": chosen.with_turns}
    db.execute("BEGIN")  # what others write from now on is not seen
    try:
        for name, ids in ("exported_sessions", _SESSIONS), ("exported_memories", _MEMORIES):
            db.execute(f"CREATE TEMP TABLE {name} (id TEXT PRIMARY KEY)")
            db.execute(f"INSERT INTO temp.{name} {ids}", given)
        names = {part: [column.name for column in found] for part, found in columns(db).items()}
        for name in LINES:
            table = _NODES if name == "node" else PARTS[name].table
            for row in db.execute(f"SELECT * FROM {table} WHERE {_WHICH[name]}", given):
                whole = _WHOLE[name](db, chosen, names, row) if name in _WHOLE else _values(names[name], row)
                yield {"type": name, **whole}
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _session(db: Connection, chosen: Chosen, names: Names, row: sqlite3.Row) -> Values:
    line = _values(names["session"], row) | {"prompts": []}
    if chosen.with_turns:
        line["prompts"] = _inside(db, names, "session.prompts", "session_id = ? ORDER BY id", row["id"])
    else:
        line["user_prompt"] = None  # it is the first of them
    for prompt in line["prompts"]:
        prompt["turn"] = _among(db, "exported_memories", prompt["turn"])
    line["forgotten"] = _inside(db, names, "session.forgotten", "session_id = ? ORDER BY at", row["id"])
    summary = next(iter(_inside(db, names, "session.summary_fields", "session_id = ?", row["id"])), None)
    if summary:
        summary["memory_id"] = _among(db, "exported_memories", summary["memory_id"])
    return line | {"summary_fields": summary}


def _memory(db: Connection, chosen: Chosen, names: Names, row: sqlite3.Row) -> Values:
    line = _values(names["memory"], _known(db, row))
    if row["kind"] == "turn":
        line["turn_fields"] = _turn(db, names, row)
    used = "memory_id = ? AND session_id IN temp.exported_sessions ORDER BY session_id, usage_type"
    return line | {"uses": _inside(db, names, "memory.uses", used, row["id"])}


def _turn(db: Connection, names: Names, row: sqlite3.Row) -> Values:
    for turn in _inside(db, names, "memory.turn_fields", "row = ?", row["row"]):
        record = turn["record"]  # of what an older backstory noted, nobody reads the rest
        return turn | {"record": {name: record[name] for name in record if name in FIELDS}}
    at = row["created_at"]
    return {"state": COMPLETE, "started_at": at, "ended_at": at, "record": {}, "left_open_at": None}


def _archived(db: Connection, chosen: Chosen, names: Names, row: sqlite3.Row) -> Values:
    memory = json.loads(row["memory"])
    if any(name not in memory for name in names["memory"]):  # it is older than a column
        memory = _defaults(db) | memory
    return _values(names["archived"], memory | _known(db, row))


def _defaults(db: Connection) -> Values:
    """What a column of memories has where nobody said."""
    columns = db.execute("PRAGMA table_xinfo(memories)")
    defaults = ", ".join(f"{column['dflt_value'] or 'NULL'} AS {column['name']}" for column in columns)
    return dict(db.execute(f"SELECT {defaults}").fetchone())


def _document(db: Connection, chosen: Chosen, names: Names, row: sqlite3.Row) -> Values:
    chunks = _inside(db, names, "document.chunks", "document_id = ? ORDER BY row", row["id"])
    return _values(names["document"], row) | {"chunks": chunks}


# Lines that are more than the columns of their row.
_WHOLE = {"session": _session, "memory": _memory, "archived": _archived, "document": _document}


def _inside(db: Connection, names: Names, part: str, where: str, owner: object) -> list[Values]:
    rows = db.execute(f"SELECT * FROM {PARTS[part].table} WHERE {where}", (owner,))
    return [_values(names[part], row) for row in rows]


def _values(names: Sequence[str], row: sqlite3.Row | Values) -> Values:
    return {name: json.loads(row[name]) if name in JSON_COLUMNS else row[name] for name in names}


def _known(db: Connection, row: sqlite3.Row) -> Values:
    """The row without what it refers to and the export does not have."""
    values = dict(row)
    for name, table in ("session_id", "exported_sessions"), ("turn", "exported_memories"):
        values[name] = _among(db, table, values[name])
    return values


def _among(db: Connection, table: str, known: str | None) -> str | None:
    found = known and db.execute(f"SELECT 1 FROM temp.{table} WHERE id = ?", (known,)).fetchone()
    return known if found else None


# --- what the schema says of a line -------------------------------------------------------------------------


class Scratch:
    """The tables of the store, empty and in RAM: whether they take a row is asked there first."""

    __slots__ = ("_db", "_needed")

    def __init__(self, db: Connection) -> None:
        self._db = sqlite3.connect(":memory:", isolation_level=None)
        self._needed: dict[str, Values] = {}
        for part in PARTS.values():
            (sql,) = db.execute("SELECT sql FROM sqlite_master WHERE name = ?", (part.table,)).fetchone()
            self._db.execute(sql)
            self._needed[part.table] = {
                row["name"]: 0 if row["type"] == "INTEGER" else "{}"
                for row in db.execute(f"PRAGMA table_xinfo({part.table})")
                if row["notnull"] and row["dflt_value"] is None and row["name"] in part.left_out
            }
        self._db.execute("BEGIN")  # a commit for each row would take longer than the row

    def close(self) -> None:
        self._db.close()

    def refusal(self, name: str, values: Values) -> str | None:
        """Why the store would not take this row."""
        table = PARTS[name].table
        row = self._needed[table] | values
        if name == "node":
            del row["project_id"]
        try:
            _insert(self._db, table, row)
            self._db.execute(f"DELETE FROM {table}")
        except (sqlite3.Error, OverflowError) as error:
            return " ".join(str(error).split())
        return None


# --- in -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Tree:
    """A tree of a file: when each node changed, and how many are below it with itself."""

    updated: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Merge:
    """What the lines of a file are to this store."""

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

    def again(self) -> Merge:
        """The same before anything was looked at: what the store says is asked again under its lock."""
        return Merge(self.attach, self.match, self.trees)


def is_empty(db: Connection) -> bool:
    """Nothing is remembered here and no folder is known, as on a new machine."""
    return db.execute("SELECT 1 FROM checkouts UNION ALL SELECT 1 FROM memories LIMIT 1").fetchone() is None


def meet(db: Connection, merge: Merge, line: Values) -> str:
    """What a line is to this store. Nothing is written, but it is noted."""
    met, _ = _TAKEN[line["type"]]
    standing = met(db, merge, line)
    merge.counts.setdefault(line["type"], Counter())[standing] += 1
    if line["type"] == "memory" and standing in (NEW, CHANGED):
        merge.memories[_here(merge, line)] += 1
    return standing


def known(db: Connection, name: str, known_id: str) -> bool:
    """Is there such a project, session or memory, be it archived?"""
    rows = db.execute(f"SELECT 1 FROM {PARTS[name].table} WHERE id = ?", (known_id,))
    return rows.fetchone() is not None


def superseding(db: Connection) -> Iterator[tuple[str, str]]:
    """(new, old) of all memories here that supersede others."""
    rows = db.execute(
        "SELECT source_id, target_id FROM memory_relationships WHERE relationship_type = 'SUPERSEDES'"
    )
    return ((row["source_id"], row["target_id"]) for row in rows)


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
    row = db.execute("SELECT project_id FROM checkouts WHERE path = ?", (line["path"],)).fetchone()
    if row and row["project_id"] == _here(merge, line):
        return KNOWN
    if row:
        merge.taken.append(line["root"])
        return LEFT
    if not merge.attach:
        merge.unattached.append(line["root"])
        return LEFT
    merge.attached.append(line["root"])
    return NEW


def _meet_session(db: Connection, merge: Merge, line: Values) -> str:
    row = _session_here(db, line)
    if row is None:
        return NEW
    if row["project_id"] != _here(merge, line):
        return KNOWN
    return CHANGED if any(_newer(row, line)) else KNOWN


def _session_here(db: Connection, line: Values) -> sqlite3.Row | None:
    row: sqlite3.Row | None = db.execute(
        "SELECT s.project_id, s.last_event_at, coalesce(y.updated_at_epoch, -1) AS summarised_at"
        " FROM sessions s LEFT JOIN session_summaries y ON y.session_id = s.id WHERE s.id = ?",
        (line["id"],),
    ).fetchone()
    return row


def _newer(row: sqlite3.Row, line: Values) -> tuple[bool, bool]:
    """Whether more happened in a session than is known here, and whether its summary is a newer one."""
    summary = line["summary_fields"]
    is_newer_summary = bool(summary) and summary["updated_at_epoch"] > row["summarised_at"]
    return line["last_event_at"] > row["last_event_at"], is_newer_summary


def _meet_memory(db: Connection, merge: Merge, line: Values) -> str:
    row = db.execute(
        "SELECT project_id, updated_at, last_accessed FROM memories WHERE id = ?", (line["id"],)
    ).fetchone()
    if row is None:
        return KNOWN if known(db, "archived", line["id"]) else NEW
    if row["project_id"] != _here(merge, line):
        return KNOWN  # it was moved here, and stays where it is
    is_newer = (line["updated_at"], line["last_accessed"]) > (row["updated_at"], row["last_accessed"])
    return CHANGED if is_newer else KNOWN


def _meet_archived(db: Connection, merge: Merge, line: Values) -> str:
    return KNOWN if any(known(db, name, line["id"]) for name in ("archived", "memory")) else NEW


def _meet_relation(db: Connection, merge: Merge, line: Values) -> str:
    row = db.execute(
        "SELECT 1 FROM memory_relationships WHERE source_id = ? AND target_id = ? AND relationship_type = ?",
        (line["source_id"], line["target_id"], line["relationship_type"]),
    ).fetchone()
    return KNOWN if row else NEW


def _meet_document(db: Connection, merge: Merge, line: Values) -> str:
    row = db.execute("SELECT project_id, updated_at FROM documents WHERE id = ?", (line["id"],)).fetchone()
    if row is None:
        return NEW
    is_newer = row["project_id"] == _here(merge, line) and line["updated_at"] > row["updated_at"]
    return CHANGED if is_newer else KNOWN


def _meet_node(db: Connection, merge: Merge, line: Values) -> str:
    """What its tree is. Two versions of a tree are not mixed: a newer one that has all the nodes of the one
    here takes its place, any other is left."""
    tree = (line["project_id"], line["root_id"])
    if tree not in merge._standing:
        merge._standing[tree] = _meet_tree(db, merge, *tree)
        if merge._standing[tree] == LEFT:
            merge.trees_left.append(line["root_id"])
        elif merge._standing[tree] == CHANGED:
            merge.trees_changed.append((_here(merge, line), line["root_id"]))
    return merge._standing[tree]


def _meet_tree(db: Connection, merge: Merge, project_id: str, root_id: str) -> str:
    updated = merge.trees[project_id, root_id].updated
    here = merge.projects.get(project_id, project_id)
    row = db.execute("SELECT number FROM projects WHERE id = ?", (here,)).fetchone()
    if row is None:
        return NEW
    rows = db.execute(
        "SELECT id, root_id, updated_at FROM docmem_nodes WHERE project = ?1"
        " AND (root_id = ?2 OR id IN (SELECT value FROM json_each(?3)))",
        (row["number"], root_id, json.dumps(list(updated))),
    ).fetchall()
    if not rows:
        return NEW
    if any(one["root_id"] != root_id for one in rows):
        return LEFT
    had = {one["id"]: one["updated_at"] for one in rows}
    if had == updated or max(had.values()) >= max(updated.values()):
        return KNOWN
    return CHANGED if had.keys() <= updated.keys() else LEFT


def _here(merge: Merge, line: Values) -> str:
    """The project of a line, as it is called here."""
    project_id: str = line["project_id"]
    return merge.projects.get(project_id, project_id)


# --- storing ------------------------------------------------------------------------------------------------


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


def begin(db: Connection) -> None:
    """Nodes may come before those they stand below; all are there at the end."""
    db.execute("PRAGMA defer_foreign_keys = ON")


def turns_by_time(db: Connection, session_ids: Sequence[str]) -> None:
    """What says of no turn that it is of it is of the one at its time: files of version 1 do not say."""
    given = json.dumps(list(session_ids))
    for table, which in ("prompts", "true"), ("memories", "kind = 'tool'"), ("archived_memories", "true"):
        at = "created_at" if table != "archived_memories" else "memory ->> 'created_at'"
        db.execute(
            f"UPDATE {table} SET turn = (SELECT m.id FROM turns t JOIN memories m ON m.row = t.row"
            f" WHERE t.session_id = {table}.session_id AND {table}.{at} BETWEEN t.started_at AND t.ended_at"
            " ORDER BY t.started_at DESC LIMIT 1) WHERE turn IS NULL"
            f" AND session_id IN (SELECT value FROM json_each(?)) AND {which}",
            (given,),
        )


def put(
    db: Connection, merge: Merge, line: Values, where: str, made_ready: Callable[[Values], Values]
) -> None:
    """Take in one line, inside a transaction. One that was not prepared is `made_ready`, if it is needed."""
    standing = meet(db, merge, line)
    if standing not in (NEW, CHANGED):
        return
    if "project_id" in line and not known(db, "project", _here(merge, line)):
        raise BadInput(f"{where}: its project was removed meanwhile; nothing was imported, try again")
    ready = line if "computed" in line else made_ready(line)
    try:
        _, put_line = _TAKEN[line["type"]]
        put_line(db, merge, ready, standing)
    except sqlite3.IntegrityError as error:
        raise BadInput(f"{where}: the store does not take it ({error}); nothing was imported") from error


def _put_project(db: Connection, merge: Merge, line: Values, standing: str) -> None:
    values = _own(line) | {"identity": line["id"]}
    if not merge.attach and line["id"] != projects.GLOBAL:
        values |= {"roots": "", "remote": ""}
    _insert(db, "projects", values)


def _put_checkout(db: Connection, merge: Merge, line: Values, standing: str) -> None:
    _insert(db, "checkouts", _own(line) | {"project_id": _here(merge, line)})


def _put_session(db: Connection, merge: Merge, line: Values, standing: str) -> None:
    session_id, project_id = line["id"], _here(merge, line)
    is_newer = is_newer_summary = True
    had: Counter[tuple[str, int]] = Counter()
    if standing == NEW:
        (number,) = db.execute("SELECT coalesce(max(number), 0) + 1 FROM sessions").fetchone()
        _insert(db, "sessions", _own(line) | {"project_id": project_id, "number": number})
    else:
        row = _session_here(db, line)
        assert row is not None  # noqa: S101  it was found a line ago, in the same transaction
        is_newer, is_newer_summary = _newer(row, line)
        if is_newer:
            _update(db, "sessions", _own(line) | {"project_id": project_id})
        elif is_newer_summary:
            db.execute("UPDATE sessions SET summary = ? WHERE id = ?", (line["summary"], session_id))
        said = db.execute("SELECT prompt, created_at FROM prompts WHERE session_id = ?", (session_id,))
        had.update((row["prompt"], row["created_at"]) for row in said)
    for prompt in line["prompts"]:
        key = (prompt["prompt"], prompt["created_at"])
        if had[key]:
            had[key] -= 1
        else:
            _insert(db, "prompts", prompt | {"session_id": session_id})
    for hidden in line["forgotten"]:
        db.execute("INSERT OR IGNORE INTO forgotten_sessions VALUES (?, ?)", (session_id, hidden["at"]))
    if line["summary_fields"] and is_newer_summary:
        owner = {"session_id": session_id, "project_id": project_id}
        _insert(db, "session_summaries", line["summary_fields"] | owner, "OR REPLACE")


def _put_memory(db: Connection, merge: Merge, line: Values, standing: str) -> None:
    project_id = _here(merge, line)
    values = _own(line) | line["computed"] | {"project_id": project_id, "thread": _thread(db, line)}
    if standing == NEW:
        _insert(db, "memories", values | {"row": projects.next_row(db, project_id)})
    else:
        if line["session_id"] is None:  # an export of a part may not know it
            del values["session_id"], values["thread"]
        _update(db, "memories", values)
    if line["kind"] == "turn":
        stored = db.execute("SELECT row, session_id FROM memories WHERE id = ?", (line["id"],)).fetchone()
        row, session_id = stored["row"], stored["session_id"]
        db.execute("DELETE FROM turns WHERE row = ?", (row,))
        _insert(db, "turns", line["turn_fields"] | {"row": row, "session_id": session_id})
        turns.put_pieces(db, turns.by_ids(db, [line["id"]])[line["id"]], project_id)
    db.executemany(
        "INSERT INTO session_memories (session_id, memory_id, usage_type, created_at) VALUES (?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET created_at = max(created_at, excluded.created_at)",
        [(use["session_id"], line["id"], use["usage_type"], use["created_at"]) for use in line["uses"]],
    )


def _thread(db: Connection, line: Values) -> int | None:
    """As `memories.add` does it."""
    if line["kind"] in ("tool", "turn") or line["tier"] == "global":
        return None
    row = db.execute("SELECT number FROM sessions WHERE id = ?", (line["session_id"],)).fetchone()
    return int(row["number"]) if row else None


def _put_archived(db: Connection, merge: Merge, line: Values, standing: str) -> None:
    """The row as it was, for `life.restore`, which gives it its number."""
    project_id = _here(merge, line)
    memory = _stored(_own(line)) | line["computed"] | {"project_id": project_id, "thread": _thread(db, line)}
    values = {name: memory.pop(name) for name in (*life.APART, "archived_at")}
    _insert(db, "archived_memories", values | {"memory": json.dumps(memory)})


def _put_relation(db: Connection, merge: Merge, line: Values, standing: str) -> None:
    _insert(db, "memory_relationships", _own(line))


def _put_document(db: Connection, merge: Merge, line: Values, standing: str) -> None:
    project_id = _here(merge, line)
    values = _own(line) | {"project_id": project_id}
    if standing == NEW:
        _insert(db, "documents", values)
    else:
        db.execute("DELETE FROM document_chunks WHERE document_id = ?", (line["id"],))
        _update(db, "documents", values)
    documents.put_chunks(db, line["id"], project_id, line["computed"])


def _put_node(db: Connection, merge: Merge, line: Values, standing: str) -> None:
    project_id, tree = _here(merge, line), merge.trees[line["project_id"], line["root_id"]]
    (number,) = db.execute("SELECT number FROM projects WHERE id = ?", (project_id,)).fetchone()
    if standing == CHANGED and (project_id, line["root_id"]) not in merge._begun:
        merge._begun.add((project_id, line["root_id"]))  # with its first node the old ones go
        db.execute("DELETE FROM docmem_nodes WHERE project = ? AND root_id = ?", (number, line["root_id"]))
    values = _own(line) | line["computed"]
    del values["project_id"]
    more = {"project": number, "row": projects.next_row(db, project_id), "size": tree.sizes[line["id"]]}
    _insert(db, "docmem_nodes", values | more)


# Of each type: what a line is to this store, and how it is taken in.
_TAKEN = {
    "project": (_meet_project, _put_project),
    "checkout": (_meet_checkout, _put_checkout),
    "session": (_meet_session, _put_session),
    "memory": (_meet_memory, _put_memory),
    "archived": (_meet_archived, _put_archived),
    "relation": (_meet_relation, _put_relation),
    "document": (_meet_document, _put_document),
    "node": (_meet_node, _put_node),
}
_INSIDE = ("type", "computed", "prompts", "forgotten", "summary_fields", "turn_fields", "uses", "chunks")


def _own(line: Values) -> Values:
    """The columns of a line's own row."""
    return {name: value for name, value in line.items() if name not in _INSIDE}


def _stored(values: Values) -> Values:
    return {
        name: json.dumps(value, ensure_ascii=False) if name in JSON_COLUMNS else value
        for name, value in values.items()
    }


def _insert(db: Connection, table: str, values: Values, how: str = "") -> None:
    row = _stored(values)
    names = f"({', '.join(row)})"
    db.execute(f"INSERT {how} INTO {table} {names} VALUES ({marks(list(row))})", list(row.values()))


def _update(db: Connection, table: str, values: Values) -> None:
    row = _stored(values)
    columns = ", ".join(f"{name} = ?" for name in row)
    db.execute(f"UPDATE {table} SET {columns} WHERE id = ?", [*row.values(), row["id"]])
