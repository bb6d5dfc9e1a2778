"""Forgetting many memories at once, and undoing that.

    choose ──▶ hide ──▶ undo            all of it in one transaction: a kill leaves it done or not begun
                 │
                 └────▶ sweep           for good: store/removal.py

All that one forgetting hides has one moment, which no other has: so undoing it brings back exactly that, also
after other things were forgotten, and leaves forgotten what was forgotten before. To erase is to hide first.
What is chosen stands in temporary tables of the connection. Which tables there are, what owns their rows and
how they are hidden is said in store/families.py; what follows from a moment in a row is done by triggers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from backstory.errors import NotFound
from backstory.store import families, projects, sessions
from backstory.store.families import Family
from backstory.store.file.connection import Connection, marks, transaction, tuples

DAY_MS = 24 * 3_600_000
ERASED_AFTER_MS = 30 * DAY_MS  # what retention forgot
RUNS = 30  # of retention that are remembered


@dataclass(frozen=True, slots=True)
class Conditions:
    """All that are given must hold. Without a project it is all projects, and what is global."""

    ids: tuple[str, ...] = ()
    project_id: str | None = None
    session_id: str | None = None  # all that it made, also what is global
    before: int | None = None
    match: str | None = None  # in a title or content; of a turn, anywhere in its record
    kind: str | None = None
    is_retention: bool = False  # whole sessions only; notes, and what is global, stay

    @property
    def is_whole(self) -> bool:
        """Does it choose sessions, and not only things in them?"""
        return not (self.ids or self.match or self.kind)

    @property
    def is_whole_project(self) -> bool:
        return self.is_whole and self.project_id is not None and self.before is None

    @property
    def place(self) -> tuple[str | None, str | None, int | None]:
        return self.project_id, self.session_id, self.before


@dataclass(frozen=True, slots=True)
class Preview:
    sessions: int
    turns: int
    kinds: dict[str, int]  # of the other memories
    archived: int = 0  # of what is only erased, never forgotten
    documents: int = 0
    trees: int = 0
    waiting: int = 0  # in the queue, or said, and in no memory
    tellings: int = 0  # texts told to a model that hold what is looked for; only erased
    lines: list[tuple[str, str, int, str]] = field(default_factory=list)  # id, kind, when, text of some
    stays: dict[str, int] = field(default_factory=dict)  # what the same conditions fit, and is left

    @property
    def memories(self) -> int:
        return sum(self.kinds.values())

    @property
    def is_empty(self) -> bool:
        found = self.sessions + self.turns + self.memories + self.archived + self.waiting + self.tellings
        return not (found or self.documents or self.trees)


@dataclass(frozen=True, slots=True)
class Forgetting:
    id: int
    at: int
    said_by: str  # user, retention
    conditions: Conditions
    sessions: int
    turns: int
    memories: int
    erasing: str | None


# --- choosing -----------------------------------------------------------------------------------------------


def preview(db: Connection, wanted: Conditions, *, hard: bool = False, shown: int = 10) -> Preview:
    """What a forgetting would hide, or with `hard` an erasing remove."""
    choose(db, wanted, hard=hard)
    rows = tuples(db).execute(
        f"SELECT m.kind, count(*) FROM {_CHOSEN} GROUP BY m.kind ORDER BY count(*) DESC, m.kind"
    )
    kinds = dict(rows.fetchall())
    lines = tuples(db).execute(
        f"SELECT m.id, m.kind, m.created_at, coalesce(m.title || ': ', '') || m.content FROM {_CHOSEN}"
        " ORDER BY m.kind = 'tool', m.created_at DESC, m.row DESC LIMIT ?",
        (shown,),
    )
    in_archive, values = archived(wanted)
    told = holding(db, families.of("tellings"))
    owner = wanted.project_id if hard and wanted.is_whole_project else None
    return Preview(
        sessions=_count(db, "temp.chosen_sessions"),
        turns=kinds.pop("turn", 0),
        kinds=kinds,
        archived=_count(db, f"archived_memories a WHERE {in_archive}", values) if hard else 0,
        documents=_count(db, "documents WHERE project_id = ?", [owner]),
        trees=_count(db, _ROOTS, [owner]),
        waiting=sum(_count(db, f"temp.chosen_{family.table}") for family in families.hiding()[1:]),
        tellings=_count(db, f"tellings q WHERE {told}", wanted.place) if hard and wanted.match else 0,
        lines=lines.fetchall(),
        stays={what: number for what, number in _stays(db, wanted, hard) if number},
    )


_ROOTS = "docmem_nodes WHERE parent_id IS NULL AND project = (SELECT number FROM projects WHERE id = ?)"


def _stays(db: Connection, wanted: Conditions, hard: bool) -> Iterator[tuple[str, int]]:
    """What fits as well, or belongs to the same, and is left as it is."""
    if wanted.ids or wanted.is_retention:
        return
    if wanted.project_id is not None and wanted.match:
        clauses, values = _memories(Conditions(before=wanted.before, match=wanted.match, kind=wanted.kind))
        counted = tuples(db).execute(
            f"SELECT m.project_id = '{projects.GLOBAL}', count(*) FROM memories m"
            f" WHERE {' AND '.join(clauses)} AND m.project_id <> ? AND m.deleted_at IS NULL GROUP BY 1",
            [*values, wanted.project_id],
        )
        for is_global, number in counted.fetchall():
            whose = "global memories" if is_global else "memories of other projects"
            yield f"{whose} with the text", number
    elif wanted.project_id is not None:
        of_all = "memories WHERE project_id = ? AND deleted_at IS NULL"
        yield "global memories", _count(db, of_all, [projects.GLOBAL])
    if wanted.session_id is None and wanted.kind is None and not (hard and wanted.is_whole_project):
        found, one = [wanted.project_id], "1" if wanted.match is None else None
        text = one or (
            "EXISTS (SELECT 1 FROM document_chunks c WHERE c.document_id = d.id"
            f" AND {families.has_text(families.of('document_chunks'), 'c')})"
        )
        of_project = "(?1 IS NULL OR d.project_id = ?1)"
        yield "documents", _count(db, f"documents d WHERE {of_project} AND {text}", found)
        text = (one and "n.parent_id IS NULL") or families.has_text(families.of("docmem_nodes"), "n")
        of_project = "(?1 IS NULL OR n.project = (SELECT number FROM projects WHERE id = ?1))"
        what = "trees" if one else "nodes of trees"
        yield what, _count(db, f"docmem_nodes n WHERE {of_project} AND {text}", found)
    if not hard:
        clause, values = archived(wanted)
        yield "archived traces", _count(db, f"archived_memories a WHERE {clause}", values)


def choose(db: Connection, wanted: Conditions, *, hard: bool = False, hidden_at: int | None = None) -> None:
    """Fill the temporary tables: the sessions that go whole, the rows of memories, and of whatever else can
    be hidden. Who erases chooses also what was forgotten before, who restores what was `hidden_at` a moment.
    """
    empty_tables(db)
    if wanted.match:
        look_for(db, wanted.match)

    def alive(family: Family, alias: str) -> str:
        at = "IS NULL" if hidden_at is None else f"= {hidden_at}"
        return "1" if hard else f"{alias}.{family.hidden} {at}"

    first, *others = families.hiding()
    may_go = f"(?1 IS NULL OR m.project_id = ?1) AND {alive(first, 'm')}"
    if wanted.is_retention:
        may_go += f" AND m.kind <> 'note' AND m.tier <> 'global' AND m.project_id <> '{projects.GLOBAL}'"
    else:
        clauses, values = _memories(wanted)
        db.execute(f"{_INTO} memories m WHERE {' AND '.join(clauses)} AND {alive(first, 'm')}", values)
    if wanted.is_whole:
        _choose_sessions(db, wanted, hard)
        of_sessions = "m.session_id IN temp.chosen_sessions"
        db.execute(f"{_INTO} memories m WHERE {of_sessions} AND {may_go}", (wanted.project_id,))
    for part in _PARTS:
        of_chosen = f"temp.chosen_memories c JOIN memories t ON t.row = c.key AND t.kind = 'turn' JOIN {part}"
        db.execute(f"{_INTO} {of_chosen} WHERE {may_go}", (wanted.project_id,))
    if wanted.before is not None and not wanted.match:
        db.execute(f"DELETE FROM temp.chosen_memories WHERE {_STILL_HELD.format('key')}")
    for family in others:
        _choose_owned(db, family, wanted, alive(family, "q"))


_CHOSEN = "temp.chosen_memories c JOIN memories m ON m.row = c.key"
_INTO = "INSERT OR IGNORE INTO temp.chosen_memories SELECT m.row FROM"
# What was said long ago and again since, in a turn that stays, is not old: what builds on several turns goes
# with the last of them.
_STILL_HELD = (
    "EXISTS (SELECT 1 FROM memories o JOIN memory_relationships r ON r.source_id = o.id"
    " AND r.relationship_type = 'BUILDS_ON' JOIN memories other ON other.id = r.target_id"
    " WHERE o.row = {0} AND other.kind = 'turn' AND other.deleted_at IS NULL"
    " AND other.row NOT IN temp.chosen_memories)"
)
# What else says what a turn t says: its traces, what builds on it, and the summary of its session.
_BUILDS_ON = (
    "memory_relationships r ON r.target_id = t.id AND r.relationship_type = 'BUILDS_ON'"
    " JOIN memories m ON m.id = r.source_id"
)
_SUMS_UP = "session_summaries y ON y.session_id = t.session_id JOIN memories m ON m.id = y.memory_id"
_PARTS = ("memories m ON m.turn = t.id", f"{_BUILDS_ON} AND NOT {_STILL_HELD.format('m.row')}", _SUMS_UP)


def empty_tables(db: Connection) -> None:
    tables = [f"chosen_{family.table} (key INTEGER PRIMARY KEY)" for family in families.hiding()]
    for made in (*tables, "chosen_sessions (id TEXT PRIMARY KEY)"):
        db.execute(f"CREATE TEMPORARY TABLE IF NOT EXISTS {made}")
        db.execute(f"DELETE FROM temp.{made.partition(' ')[0]}")


def look_for(db: Connection, text: str) -> None:
    """`has_text(a, b)`: is it in one of them? Case does not count, in any script; SQLite's own LIKE knows
    only ASCII. Of JSON also each text in it is looked at, without its escapes."""
    wanted = text.casefold()

    def has_text(*texts: str | None) -> bool:
        there = [part for part in texts if part]
        if wanted in "\n".join(there).casefold():
            return True
        escaped = (part for part in there if part[0] in "{[" and "\\" in part)
        return any(wanted in one.casefold() for part in escaped for one in _strings(part))

    db.create_function("has_text", -1, has_text, deterministic=True)


def _strings(text: str) -> Iterator[str]:
    try:
        values = [json.loads(text)]
    except ValueError:  # it only looks like JSON
        return
    for value in values:  # grows while it is walked
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            values += [*value, *value.values()]
        elif isinstance(value, list):
            values += value


def _choose_sessions(db: Connection, wanted: Conditions, hard: bool) -> None:
    db.execute(
        "INSERT INTO temp.chosen_sessions SELECT s.id FROM sessions s WHERE (?1 IS NULL OR s.project_id = ?1)"
        " AND (?2 IS NULL OR s.id = ?2) AND (?3 IS NULL OR s.last_event_at < ?3)"
        f" AND ({'1' if hard else sessions.SHOWN})",
        wanted.place,
    )


def _memories(wanted: Conditions) -> tuple[list[str], list[object]]:
    """Memories that fit, for `FROM memories m`."""
    # Of a turn, that it was over by then.
    ended = "coalesce((SELECT t.ended_at FROM turns t WHERE t.row = m.row), m.created_at)"
    clauses, values = _given(wanted, "m.id", "m.project_id", "m.session_id", "m.kind", ended)
    if wanted.match:
        in_record = families.has_text(families.of("turns"), "t")
        clauses.append(
            f"({families.has_text(families.of('memories'), 'm')} OR m.kind = 'turn'"
            f" AND EXISTS (SELECT 1 FROM turns t WHERE t.row = m.row AND {in_record}))"
        )
    return clauses or ["1"], values


def _given(
    wanted: Conditions, memory: str, project: str, session: str, kind: str, at: str
) -> tuple[list[str], list[object]]:
    """The conditions that are given, on these columns."""
    pairs = {
        f"{project} = ?": wanted.project_id,
        f"{session} = ?": wanted.session_id,
        f"{kind} = ?": wanted.kind,
        f"{at} < ?": wanted.before,
    }
    clauses = [clause for clause, value in pairs.items() if value is not None]
    values: list[object] = [value for value in pairs.values() if value is not None]
    if wanted.ids:
        clauses.append(f"{memory} IN ({marks(wanted.ids)})")
        values += wanted.ids
    return clauses, values


def _choose_owned(db: Connection, family: Family, wanted: Conditions, alive: str) -> None:
    """What is of a chosen memory or session, and what holds the text itself."""
    insert = f"INSERT OR IGNORE INTO temp.chosen_{family.table} SELECT q.rowid FROM {family.table} q"
    whose = []
    for column, _ in families.owners(db, family.table, "sessions"):
        whose.append(f"q.{column} IN temp.chosen_sessions")
    for column, _ in families.owners(db, family.table, "memories"):
        whose.append(f"q.{column} IN (SELECT m.id FROM {_CHOSEN})")
    if whose:
        db.execute(f"{insert} WHERE {alive} AND ({' OR '.join(whose)})")
    elif wanted.is_whole and not wanted.is_retention:  # it is of a project, and of nothing in it
        db.execute(f"{insert} WHERE {alive} AND {_within(db, family)}", wanted.place)
    if wanted.match and wanted.kind in (None, "turn"):
        db.execute(f"{insert} WHERE {alive} AND {holding(db, family)}", wanted.place)


def holding(db: Connection, family: Family) -> str:
    """SQL: which rows q hold the text that is looked for; given project, session and time, or null."""
    return f"{_within(db, family)} AND {families.has_text(family, 'q')}"


def _within(db: Connection, family: Family) -> str:
    project = families.project_of(db, family.table, "q")
    session = next((f"q.{one}" for one, _ in families.owners(db, family.table, "sessions")), "NULL")
    at = f"q.{family.at}" if family.at else "NULL"
    return f"(?1 IS NULL OR {project} = ?1) AND (?2 IS NULL OR {session} = ?2) AND (?3 IS NULL OR {at} < ?3)"


def archived(wanted: Conditions) -> tuple[str, list[object]]:
    """Traces in the archive that fit, or are of a chosen turn, for `FROM archived_memories a`."""
    fields = (f"a.memory ->> '{name}'" for name in ("kind", "created_at"))
    clauses, values = _given(wanted, "a.id", "a.project_id", "a.session_id", *fields)
    if wanted.match:
        clauses.append("has_text(a.memory ->> 'title', a.memory ->> 'content')")
    if wanted.is_retention:
        clauses.append("a.session_id IN temp.chosen_sessions AND a.memory ->> 'kind' = 'tool'")
    of_turns = f"a.turn IN (SELECT m.id FROM {_CHOSEN})"
    return f"({' AND '.join(clauses or ['1'])} OR {of_turns})", values


def _count(db: Connection, of: str, values: Sequence[object] = ()) -> int:
    return int(db.execute(f"SELECT count(*) FROM {of}", list(values)).fetchone()[0])


# --- forgetting ---------------------------------------------------------------------------------------------


def forget(db: Connection, wanted: Conditions, now: int, said_by: str = "user") -> Forgetting | None:
    """Hide all that fits, in a transaction of its own; None where there is nothing."""
    with transaction(db):
        seen = preview(db, wanted, shown=0)
        if not (seen.sessions or seen.turns or seen.memories or seen.waiting):
            return None
        at = moment(db, now)
        hide(db, at)
        return note(db, wanted, at, (seen.sessions, seen.turns, seen.memories), said_by)


def forget_memory(db: Connection, memory_id: str, now: int) -> None:
    """One memory, and of a turn all that is of it, in a transaction of the caller; nothing is noted: it is
    brought back by its id."""
    choose(db, Conditions(ids=(memory_id,)))
    hide(db, moment(db, now))


def forget_late(db: Connection, turn_id: str, at: int) -> None:
    """What came to a turn after it was forgotten is forgotten with it."""
    for family in families.hiding():
        for column, _ in families.owners(db, family.table, "memories"):
            db.execute(
                f"UPDATE {family.table} SET {family.hidden} = ?1 WHERE {column} = ?2"
                f" AND {family.hidden} IS NULL",
                (at, turn_id),
            )


def forget_with_turns(db: Connection, ids: Sequence[str]) -> None:
    """What came in with turns that are forgotten here is forgotten with them, unless it came back since."""
    for family in families.hiding():
        unless = f" AND {family.table}.{family.changed} < o.deleted_at" if family.changed else ""
        for column, _ in families.owners(db, family.table, "memories"):
            db.execute(
                f"UPDATE {family.table} SET {family.hidden} = o.deleted_at FROM memories o"
                f" WHERE o.id = {family.table}.{column} AND {family.table}.{family.hidden} IS NULL{unless}"
                " AND o.kind = 'turn' AND o.deleted_at IS NOT NULL"
                " AND o.id IN (SELECT value FROM json_each(?))",
                (json.dumps(list(ids)),),
            )


def show_of(db: Connection, turn_id: str, hidden_at: int) -> None:
    """What was forgotten with a turn that another store brought back, and is in no line of its own."""
    for family in families.hiding()[1:]:
        for column, _ in families.owners(db, family.table, "memories"):
            db.execute(
                f"UPDATE {family.table} SET {family.hidden} = NULL"
                f" WHERE {column} = ? AND {family.hidden} = ?",
                (turn_id, hidden_at),
            )


def moment(db: Connection, now: int) -> int:
    """A time that no forgetting has had, and no memory was forgotten at."""
    row = db.execute(
        "SELECT max(?1, 1 + coalesce((SELECT max(at) FROM forgettings), 0),"
        " 1 + coalesce((SELECT max(deleted_at) FROM memories WHERE deleted_at >= ?1), 0))",
        (now,),
    ).fetchone()
    return int(row[0])


def note(
    db: Connection,
    wanted: Conditions,
    at: int,
    counts: tuple[int, int, int],
    said_by: str = "user",
    erasing: str | None = None,
) -> Forgetting:
    """Let it be known that all with this moment was hidden together."""
    given = {name: value for name, value in asdict(wanted).items() if value}
    made = db.execute(
        "INSERT INTO forgettings (at, said_by, conditions, sessions, turns, memories, erasing)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (at, said_by, json.dumps(given, ensure_ascii=False), *counts, erasing),
    )
    return Forgetting(int(made.lastrowid or 0), at, said_by, wanted, *counts, erasing)


def hide(db: Connection, at: int, *, hard: bool = False) -> None:
    """All that is chosen is forgotten at this moment."""
    for family in families.hiding():
        changed = f", {family.changed} = max({family.changed}, ?1)" if family.changed else ""
        alive = "1" if hard else f"{family.hidden} IS NULL"
        db.execute(
            f"UPDATE {family.table} SET {family.hidden} = ?1{changed}"
            f" WHERE rowid IN temp.chosen_{family.table} AND {alive}",
            (at,),
        )
    db.execute(
        "INSERT INTO forgotten_sessions (session_id, at) SELECT id, ? FROM temp.chosen_sessions", (at,)
    )


def listed(db: Connection) -> list[Forgetting]:
    """All that can be undone, the latest first."""
    rows = db.execute("SELECT * FROM forgettings WHERE erasing IS NULL ORDER BY at DESC")
    return [_forgetting(row) for row in rows]


def erasing(db: Connection) -> list[Forgetting]:
    """What was begun to be erased, and is not finished."""
    return [_forgetting(row) for row in db.execute("SELECT * FROM forgettings WHERE erasing IS NOT NULL")]


def _forgetting(row: Any) -> Forgetting:
    given = json.loads(row["conditions"])
    if "ids" in given:
        given["ids"] = tuple(given["ids"])
    values = {name: row[name] for name in ("id", "at", "said_by", "sessions", "turns", "memories", "erasing")}
    return Forgetting(conditions=Conditions(**given), **values)


def undo(db: Connection, now: int, number: int | None = None) -> Forgetting:
    """Bring back what one forgetting hid, the last one or a certain one, in a transaction of its own."""
    with transaction(db):
        found = [one for one in listed(db) if number is None or one.id == number]
        if not found:
            which = f"there is no forgetting {number}" if number is not None else "nothing was forgotten"
            raise NotFound(f"{which} that could be undone; `backstory forget --list` shows what can")
        one = found[0]
        _leave_to_others(db, one.at)
        _show(db, f"= {one.at}", now)
        db.execute("DELETE FROM forgotten_sessions WHERE at = ?", (one.at,))
        db.execute("DELETE FROM forgettings WHERE id = ?", (one.id,))
    return one


def restore_memory(db: Connection, memory_id: str, hidden_at: int, now: int) -> None:
    """Bring back one memory, with all that was forgotten with it at this moment because it is of it; what
    tells of a turn that stays forgotten stays as well."""
    choose(db, Conditions(ids=(memory_id,)), hidden_at=hidden_at)
    for part in (_BUILDS_ON, _SUMS_UP):
        db.execute(
            f"DELETE FROM temp.chosen_memories WHERE key IN (SELECT m.row FROM memories t JOIN {part}"
            " WHERE t.kind = 'turn' AND t.deleted_at IS NOT NULL AND t.row NOT IN temp.chosen_memories"
            " AND m.row IN temp.chosen_memories AND m.id <> ?)",
            (memory_id,),
        )
    _show(db, f"= {hidden_at} AND rowid IN temp.chosen_{{0}}", now)


def _show(db: Connection, hidden: str, now: int) -> None:
    for family in families.hiding():
        changed = f", {family.changed} = max({family.changed} + 1, {now})" if family.changed else ""
        which = f"{family.hidden} {hidden.format(family.table)}"
        db.execute(f"UPDATE {family.table} SET {family.hidden} = NULL{changed} WHERE {which}")


def _leave_to_others(db: Connection, at: int) -> None:
    """What is of a memory that was forgotten at another moment stays hidden with that; so does what tells of
    such a turn, if it tells of no other."""
    for family in families.hiding():
        for column, _ in families.owners(db, family.table, "memories"):
            db.execute(
                f"UPDATE {family.table} SET {family.hidden} = o.deleted_at FROM memories o"
                f" WHERE o.id = {family.table}.{column} AND {family.table}.{family.hidden} = ?1"
                " AND o.deleted_at <> ?1",
                (at,),
            )
    for part, all_of in (_BUILDS_ON, "min(coalesce(t.deleted_at <> ?1, 0))"), (_SUMS_UP, "1"):
        db.execute(
            "UPDATE memories SET deleted_at = theirs.at FROM (SELECT m.row,"
            f" max(nullif(t.deleted_at, ?1)) AS at FROM memories t JOIN {part}"
            f" WHERE t.kind = 'turn' AND m.deleted_at = ?1 GROUP BY m.row HAVING {all_of}) theirs"
            " WHERE memories.row = theirs.row AND theirs.at IS NOT NULL",
            (at,),
        )


# --- retention ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    """What retention did on one day."""

    at: int
    days: float
    sessions: int
    memories: int
    erased: int


def last_run(db: Connection) -> Run | None:
    row = db.execute("SELECT * FROM retention_runs ORDER BY at DESC LIMIT 1").fetchone()
    return Run(**dict(row)) if row else None


def retention_due(db: Connection, now: int) -> bool:
    """Once a day. One from the future is a clock that was wrong."""
    last = last_run(db)
    return last is None or not 0 <= now - last.at < DAY_MS


def retain(db: Connection, days: float, now: int) -> Forgetting | None:
    """Forget sessions whose last event is older than so many days; what was forgotten so a month ago is
    marked to be erased."""
    wanted = Conditions(before=now - int(days * DAY_MS), is_retention=True)
    done = forget(db, wanted, now, "retention")
    with transaction(db):
        db.execute(
            "UPDATE forgettings SET erasing = 'store'"
            " WHERE said_by = 'retention' AND erasing IS NULL AND at < ?",
            (now - ERASED_AFTER_MS,),
        )
    return done


def note_run(db: Connection, run: Run) -> None:
    with transaction(db):
        db.execute(
            "INSERT OR REPLACE INTO retention_runs (at, days, sessions, memories, erased)"
            " VALUES (?, ?, ?, ?, ?)",
            (run.at, run.days, run.sessions, run.memories, run.erased),
        )
        db.execute(
            "DELETE FROM retention_runs WHERE at NOT IN"
            " (SELECT at FROM retention_runs ORDER BY at DESC LIMIT ?)",
            (RUNS,),
        )
