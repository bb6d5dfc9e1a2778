"""Forgetting many memories at once, undoing that, and erasing for good.

    choose ──▶ hide ──▶ undo            all of it in one transaction: a kill leaves it done or not begun
                 │
                 └────▶ sweep           in chunks, so that others may write in between; a kill leaves the rest
                                        hidden and marked as `erasing`, for the next run

All that one forgetting hides has one moment, which no other has: so undoing it brings back exactly that, also
after other things were forgotten, and leaves forgotten what was forgotten before. To erase is to hide first.
What is chosen stands in temporary tables of the connection.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from sqlite3 import DatabaseError
from typing import Any

from backstory.errors import BadInput, Damaged, NotFound
from backstory.store import projects, queue, sessions, tellings
from backstory.store.file import backup
from backstory.store.file.connection import Connection, marks, own_tables, transaction, tuples, unhurried

CHUNK = 500  # memories that are erased at a time
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
        "SELECT m.kind, count(*) FROM temp.chosen c JOIN memories m ON m.row = c.row GROUP BY m.kind"
        " ORDER BY count(*) DESC, m.kind"
    )
    kinds = dict(rows.fetchall())
    lines = tuples(db).execute(
        "SELECT m.id, m.kind, m.created_at, coalesce(m.title || ': ', '') || m.content FROM temp.chosen c"
        " JOIN memories m ON m.row = c.row ORDER BY m.kind = 'tool', m.created_at DESC, m.row DESC LIMIT ?",
        (shown,),
    )
    archived, of_archived = _archived(wanted)
    owner = wanted.project_id if hard and wanted.is_whole_project else None
    return Preview(
        sessions=_count(db, "temp.chosen_sessions"),
        turns=kinds.pop("turn", 0),
        kinds=kinds,
        archived=_count(db, f"archived_memories a WHERE {archived}", of_archived) if hard else 0,
        documents=_count(db, "documents WHERE project_id = ?", [owner]),
        trees=_count(db, _ROOTS, [owner]),
        waiting=_count(db, "temp.chosen_items") + _count(db, "temp.chosen_prompts"),
        tellings=tellings.count_holding(db, *_of(wanted)) if hard and wanted.match else 0,
        lines=lines.fetchall(),
        stays={what: number for what, number in _stays(db, wanted, hard).items() if number},
    )


_ROOTS = (
    "docmem_nodes WHERE parent_id IS NULL AND project = (SELECT number FROM projects WHERE projects.id = ?)"
)


def _stays(db: Connection, wanted: Conditions, hard: bool) -> dict[str, int]:
    """What fits as well, or belongs to the same, and is left as it is."""
    if wanted.ids or wanted.is_retention:
        return {}
    stays = {}
    if wanted.project_id is not None and wanted.match:
        clauses, values = _memories(Conditions(before=wanted.before, match=wanted.match, kind=wanted.kind))
        counted = tuples(db).execute(
            f"SELECT m.project_id = '{projects.GLOBAL}', count(*) FROM memories m"
            f" WHERE {' AND '.join(clauses)} AND m.project_id <> ? AND m.deleted_at IS NULL GROUP BY 1",
            [*values, wanted.project_id],
        )
        for is_global, number in counted.fetchall():
            whose = "global memories" if is_global else "memories of other projects"
            stays[f"{whose} with the text"] = number
    elif wanted.project_id is not None:
        stays["global memories"] = _count(
            db, "memories WHERE project_id = ? AND deleted_at IS NULL", [projects.GLOBAL]
        )
    if wanted.session_id is None and wanted.kind is None and not (hard and wanted.is_whole_project):
        of_project = "(?1 IS NULL OR project_id = ?1)"
        text = "1" if wanted.match is None else "EXISTS (SELECT 1 FROM document_chunks c WHERE c.document_id"
        text += "" if wanted.match is None else " = documents.id AND has_text(c.heading, c.content))"
        found = [wanted.project_id]
        stays["documents"] = _count(db, f"documents WHERE {of_project} AND {text}", found)
        text = "parent_id IS NULL" if wanted.match is None else "has_text(context_name, text)"
        numbered = "(?1 IS NULL OR project = (SELECT number FROM projects WHERE projects.id = ?1))"
        what = "trees" if wanted.match is None else "nodes of trees"
        stays[what] = _count(db, f"docmem_nodes WHERE {numbered} AND {text}", found)
    if not hard:
        clause, values = _archived(wanted)
        stays["archived traces"] = _count(db, f"archived_memories a WHERE {clause}", values)
    return stays


def choose(db: Connection, wanted: Conditions, *, hard: bool = False) -> None:
    """Fill the temporary tables: the rows of memories, the sessions that go whole, and what is of no memory:
    items of the queue and prompts. Who erases chooses also what was forgotten before."""
    _empty_tables(db)
    if wanted.match:
        _look_for(db, wanted.match)
    alive = "1" if hard else "m.deleted_at IS NULL"
    may_go = f"(?1 IS NULL OR m.project_id = ?1) AND {alive}"
    if wanted.is_retention:
        may_go += f" AND m.kind <> 'note' AND m.tier <> 'global' AND m.project_id <> '{projects.GLOBAL}'"
    else:
        clauses, values = _memories(wanted)
        db.execute(f"{_INTO} WHERE {' AND '.join(clauses)} AND {alive}", values)
    if wanted.is_whole:
        _choose_sessions(db, wanted, hard)
        db.execute(f"{_INTO} WHERE m.session_id IN {_SESSIONS} AND {may_go}", (wanted.project_id,))
    for made_of in _MADE_OF:
        db.execute(f"{made_of} AND {may_go}", (wanted.project_id,))
    if wanted.before is not None and not wanted.match:
        db.execute(_STILL_HOLDS)
    _choose_what_waits(db, wanted, hard)


_CHOSEN = {
    "chosen": "row INTEGER",
    "chosen_sessions": "id TEXT",
    "chosen_items": "id INTEGER",
    "chosen_prompts": "id INTEGER",
}
_SESSIONS = "(SELECT id FROM temp.chosen_sessions)"
_INTO = "INSERT OR IGNORE INTO temp.chosen SELECT m.row FROM memories m"
# What else says what a turn says: see made_of in store/turns.py.
_MADE_OF = (
    "INSERT OR IGNORE INTO temp.chosen SELECT m.row FROM temp.chosen c JOIN turns t ON t.row = c.row"
    " JOIN memories m ON m.session_id = t.session_id AND m.created_at BETWEEN t.started_at AND t.ended_at"
    " AND m.kind = 'tool' WHERE 1",
    "INSERT OR IGNORE INTO temp.chosen SELECT m.row FROM temp.chosen c JOIN turns t ON t.row = c.row"
    " JOIN memories turn ON turn.row = t.row JOIN memory_relationships r ON r.target_id = turn.id"
    " AND r.relationship_type = 'BUILDS_ON' JOIN memories m ON m.id = r.source_id WHERE 1",
    "INSERT OR IGNORE INTO temp.chosen SELECT m.row FROM temp.chosen c JOIN turns t ON t.row = c.row"
    " JOIN session_summaries y ON y.session_id = t.session_id JOIN memories m ON m.id = y.memory_id WHERE 1",
)
# What was said long ago and again since, in a turn that stays, is not old.
_STILL_HOLDS = (
    "DELETE FROM temp.chosen WHERE row IN (SELECT m.row FROM temp.chosen c JOIN memories m ON m.row = c.row"
    " JOIN memory_relationships r ON r.source_id = m.id AND r.relationship_type = 'BUILDS_ON'"
    " JOIN memories turn ON turn.id = r.target_id WHERE turn.deleted_at IS NULL"
    " AND turn.row NOT IN (SELECT row FROM temp.chosen))"
)
# What a session keeps of the time of its chosen turns, and of those that go whole.
_IN_TURNS = (
    "{0}.session_id IN (SELECT id FROM temp.chosen_sessions) OR EXISTS (SELECT 1 FROM turns t"
    " JOIN temp.chosen c ON c.row = t.row WHERE t.session_id = {0}.session_id"
    " AND {0}.{1} BETWEEN t.started_at AND t.ended_at)"
)


def _empty_tables(db: Connection) -> None:
    for name, key in _CHOSEN.items():
        db.execute(f"CREATE TEMPORARY TABLE IF NOT EXISTS {name} ({key} PRIMARY KEY)")
        db.execute(f"DELETE FROM temp.{name}")


def _look_for(db: Connection, text: str) -> None:
    """`has_text(a, b)`: is it in one of them? Case does not count, in any script; SQLite's own LIKE knows
    only ASCII. `has_text_json` looks at each text of a JSON value, without its escapes."""
    wanted = text.casefold()

    def has_text(*texts: str | None) -> bool:
        return wanted in "\n".join(filter(None, texts)).casefold()

    def has_text_json(*values: str | None) -> bool:
        return any(has_text(part) for value in values if value for part in _strings(json.loads(value)))

    db.create_function("has_text", -1, has_text, deterministic=True)
    db.create_function("has_text_json", -1, has_text_json, deterministic=True)


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [part for pair in value.items() for one in pair for part in _strings(one)]
    return [part for one in value for part in _strings(one)] if isinstance(value, list) else []


def _choose_sessions(db: Connection, wanted: Conditions, hard: bool) -> None:
    db.execute(
        "INSERT INTO temp.chosen_sessions SELECT s.id FROM sessions s WHERE (?1 IS NULL OR s.project_id = ?1)"
        " AND (?2 IS NULL OR s.id = ?2) AND (?3 IS NULL OR s.last_event_at < ?3)"
        f" AND ({'1' if hard else sessions.SHOWN})",
        (wanted.project_id, wanted.session_id, wanted.before),
    )


def _memories(wanted: Conditions) -> tuple[list[str], list[object]]:
    """Memories that fit, for `FROM memories m`."""
    # Of a turn, that it was over by then.
    ended = "coalesce((SELECT t.ended_at FROM turns t WHERE t.row = m.row), m.created_at)"
    clauses, values = _given(wanted, "m.id", "m.project_id", "m.session_id", "m.kind", ended)
    if wanted.match:
        clauses.append(
            "(has_text(m.title, m.content) OR m.kind = 'turn'"
            " AND EXISTS (SELECT 1 FROM turns t WHERE t.row = m.row AND has_text_json(t.record)))"
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


def _choose_what_waits(db: Connection, wanted: Conditions, hard: bool) -> None:
    """Items of the queue and prompts: those of what was chosen, and those that hold the text themselves."""
    of_memory = " OR q.memory_id IN (SELECT m.id FROM temp.chosen c JOIN memories m ON m.row = c.row)"
    in_item = "has_text_json(q.tool_input, q.tool_output)"
    for into, table, at, shown, also, texts in (
        ("items", "observation_queue", "created_at_epoch", "q.skipped IS NULL", of_memory, in_item),
        ("prompts", "prompts", "created_at", "q.forgotten_at IS NULL", "", "has_text(q.prompt)"),
    ):
        insert = (
            f"INSERT OR IGNORE INTO temp.chosen_{into} SELECT q.id FROM {table} q"
            " JOIN sessions s ON s.id = q.session_id"
        )
        alive = "1" if hard else shown
        db.execute(f"{insert} WHERE {alive} AND ({_IN_TURNS.format('q', at)}{also})")
        if wanted.match and wanted.kind in (None, "turn"):
            db.execute(
                f"{insert} WHERE {alive} AND (?1 IS NULL OR s.project_id = ?1) AND (?2 IS NULL OR s.id = ?2)"
                f" AND (?3 IS NULL OR q.{at} < ?3) AND {texts}",
                (wanted.project_id, wanted.session_id, wanted.before),
            )


def _archived(wanted: Conditions) -> tuple[str, list[object]]:
    """Traces in the archive that fit, for `FROM archived_memories a`."""
    fields = (f"a.memory ->> '{name}'" for name in ("kind", "created_at"))
    clauses, values = _given(wanted, "a.id", "a.project_id", "a.session_id", *fields)
    if wanted.match:
        clauses.append("has_text(a.memory ->> 'title', a.memory ->> 'content')")
    if wanted.is_retention:
        clauses.append(f"a.session_id IN {_SESSIONS} AND a.memory ->> 'kind' = 'tool'")
    return " AND ".join(clauses or ["1"]), values


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
        _hide(db, at, hard=False)
        return note(db, wanted, at, (seen.sessions, seen.turns, seen.memories), said_by)


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


def _hide(db: Connection, at: int, *, hard: bool) -> None:
    """All that is chosen is forgotten at this moment. Whatever changes is undone by `undo`."""
    alive = "1" if hard else "deleted_at IS NULL"
    db.execute(
        "UPDATE memories SET deleted_at = ?1, updated_at = max(updated_at, ?1)"  # or no import would know
        f" WHERE row IN (SELECT row FROM temp.chosen) AND {alive}",
        (at,),
    )
    db.execute(
        "UPDATE turns SET state = 'interrupted', left_open_at = ? WHERE state = 'open'"  # see turns.interrupt
        " AND row IN (SELECT row FROM temp.chosen)",
        (at,),
    )
    db.execute(
        "UPDATE observation_queue SET skipped = ?, forgotten_at = ?,"
        " processed_at_epoch = coalesce(processed_at_epoch, ?2)"
        " WHERE id IN (SELECT id FROM temp.chosen_items)",
        (queue.FORGOTTEN, at),
    )
    db.execute("UPDATE prompts SET forgotten_at = ? WHERE id IN (SELECT id FROM temp.chosen_prompts)", (at,))
    db.execute(
        "INSERT INTO forgotten_sessions (session_id, at) SELECT id, ? FROM temp.chosen_sessions", (at,)
    )
    db.execute(
        "UPDATE sessions SET summary = NULL WHERE id IN (SELECT y.session_id FROM temp.chosen c"
        " JOIN memories m ON m.row = c.row JOIN session_summaries y ON y.memory_id = m.id)"
    )
    sessions.note_first_prompts(db, _touched(db, at))


def _touched(db: Connection, at: int) -> list[str]:
    """The sessions in which something was hidden at this moment."""
    rows = tuples(db).execute(
        "SELECT session_id FROM prompts WHERE forgotten_at = ?1"
        " UNION SELECT session_id FROM forgotten_sessions WHERE at = ?1",
        (at,),
    )
    return [row[0] for row in rows]


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
        touched = _touched(db, one.at)
        db.execute(
            "UPDATE sessions SET summary = y.summary FROM session_summaries y JOIN memories m"
            " ON m.id = y.memory_id WHERE m.deleted_at = ? AND y.session_id = sessions.id",
            (one.at,),
        )
        db.execute(
            "UPDATE turns SET left_open_at = NULL, state = iif(state = 'interrupted' AND NOT EXISTS"
            " (SELECT 1 FROM turns later WHERE later.session_id = turns.session_id"
            " AND later.started_at > turns.started_at), 'open', state) WHERE left_open_at = ?",
            (one.at,),
        )
        db.execute(
            "UPDATE memories SET deleted_at = NULL, updated_at = max(updated_at + 1, ?) WHERE deleted_at = ?",
            (now, one.at),
        )
        db.execute(
            f"UPDATE observation_queue SET {queue.REMEMBERED} WHERE forgotten_at = ? AND skipped = ?",
            (one.at, queue.FORGOTTEN),
        )
        db.execute("UPDATE prompts SET forgotten_at = NULL WHERE forgotten_at = ?", (one.at,))
        db.execute("DELETE FROM forgotten_sessions WHERE at = ?", (one.at,))
        db.execute("DELETE FROM forgettings WHERE id = ?", (one.id,))
        sessions.note_first_prompts(db, touched)
    return one


def _leave_to_others(db: Connection, at: int) -> None:
    """What else says what a turn says stays hidden with a turn that was forgotten at another moment."""
    others = (
        "SELECT t.session_id, t.started_at, t.ended_at, m.id, m.deleted_at AS at FROM memories m"
        " JOIN turns t ON t.row = m.row WHERE m.deleted_at IS NOT NULL AND m.deleted_at <> ?1"
    )
    within = "q.session_id = other.session_id AND q.{} BETWEEN other.started_at AND other.ended_at"
    for made_of in (
        f"JOIN memories q ON q.kind = 'tool' AND {within.format('created_at')}",
        "JOIN memory_relationships r ON r.target_id = other.id AND r.relationship_type = 'BUILDS_ON'"
        " JOIN memories q ON q.id = r.source_id",
        "JOIN session_summaries y ON y.session_id = other.session_id JOIN memories q ON q.id = y.memory_id",
    ):
        db.execute(
            "UPDATE memories SET deleted_at = theirs.at FROM (SELECT q.row, max(other.at) AS at"
            f" FROM ({others}) other {made_of} WHERE q.deleted_at = ?1 GROUP BY q.row) theirs"
            " WHERE memories.row = theirs.row",
            (at,),
        )
    db.execute(
        "UPDATE observation_queue SET forgotten_at = theirs.at FROM (SELECT q.id, max(other.at) AS at"
        f" FROM ({others}) other JOIN observation_queue q ON {within.format('created_at_epoch')}"
        " WHERE q.forgotten_at = ?1 GROUP BY q.id) theirs WHERE observation_queue.id = theirs.id",
        (at,),
    )


# --- erasing ------------------------------------------------------------------------------------------------


def begin_erasing(
    db: Connection, wanted: Conditions, now: int, *, everywhere: bool = False
) -> tuple[Forgetting, Preview]:
    """Hide all that fits, also what was hidden before, and note that it is to be erased: from now on there
    is no way back. `sweep` removes it. What has no hidden state is removed at once."""
    with transaction(db):
        seen = preview(db, wanted, hard=True, shown=0)
        at = moment(db, now)
        _hide(db, at, hard=True)
        _drop_what_cannot_hide(db, wanted)
        counts = seen.sessions, seen.turns, seen.memories
        return note(db, wanted, at, counts, erasing="everywhere" if everywhere else "store"), seen


def _of(wanted: Conditions) -> tuple[str | None, str | None, int | None]:
    return wanted.project_id, wanted.session_id, wanted.before


def _drop_what_cannot_hide(db: Connection, wanted: Conditions) -> None:
    clause, values = _archived(wanted)
    ids = tuples(db).execute(f"SELECT a.id FROM archived_memories a WHERE {clause}", values).fetchall()
    tellings.blank(db, [row[0] for row in ids])
    db.execute(f"DELETE FROM archived_memories AS a WHERE {clause}", values)
    if wanted.match:
        tellings.blank_holding(db, *_of(wanted))
    if wanted.is_whole_project:
        db.execute("DELETE FROM tellings WHERE project_id = ?", (wanted.project_id,))
        db.execute("DELETE FROM documents WHERE project_id = ?", (wanted.project_id,))
        db.execute(
            "DELETE FROM docmem_nodes WHERE project = (SELECT number FROM projects WHERE id = ?)",
            (wanted.project_id,),
        )


def sweep(db: Connection, one: Forgetting) -> int:
    """Remove what was hidden at that moment: memories with their words, vectors and links, what their
    sessions keep of turns, whole sessions. How many memories they were."""
    unhurried(db)
    done = 0
    while True:
        with transaction(db):
            _empty_tables(db)
            added = db.execute(
                "INSERT INTO temp.chosen SELECT row FROM memories WHERE deleted_at = ? LIMIT ?",
                (one.at, CHUNK),
            )
            _erase_chosen(db, one.at)
        if not added.rowcount:
            break
        done += added.rowcount
    with transaction(db):
        _empty_tables(db)
        # One that went on, or of which something was forgotten apart and may come back, stays.
        db.execute(
            "INSERT INTO temp.chosen_sessions SELECT f.session_id FROM forgotten_sessions f WHERE f.at = ?"
            " AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.session_id = f.session_id)"
            " AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.session_id = f.session_id"
            " AND m.kind <> 'note' AND m.tier <> 'global')",
            (one.at,),
        )
        _erase_sessions(db, one.at)
        db.execute("DELETE FROM prompts WHERE forgotten_at = ?", (one.at,))
        db.execute("DELETE FROM observation_queue WHERE forgotten_at = ?", (one.at,))
        db.execute("DELETE FROM forgotten_sessions WHERE at = ?", (one.at,))
        if one.conditions.is_retention:  # told to sessions of which nothing else was ever stored
            db.execute(
                "DELETE FROM tellings WHERE at < ? AND session_id NOT IN (SELECT id FROM sessions)",
                (one.conditions.before,),
            )
    return done


def erase_memory(db: Connection, memory_id: str, now: int) -> None:
    """One memory; what its text left elsewhere is for who goes on with it (surfaces/erasing.py)."""
    one, _ = begin_erasing(db, Conditions(ids=(memory_id,)), now)
    sweep(db, one)


def done_erasing(db: Connection, one: Forgetting) -> None:
    """Nothing is left of it, so nothing tells of it: neither its own words nor an earlier forgetting that
    has lost all it hid, or was looking for the same text."""
    with transaction(db):
        db.execute("DELETE FROM forgettings WHERE id = ?", (one.id,))
        db.execute(
            "DELETE FROM forgettings WHERE"
            " NOT EXISTS (SELECT 1 FROM memories m WHERE m.deleted_at = forgettings.at)"
            " AND NOT EXISTS (SELECT 1 FROM forgotten_sessions f WHERE f.at = forgettings.at)"
            " AND NOT EXISTS (SELECT 1 FROM prompts WHERE forgotten_at = forgettings.at)"
            " AND NOT EXISTS (SELECT 1 FROM observation_queue WHERE forgotten_at = forgettings.at)"
        )
        if one.conditions.match:
            _look_for(db, one.conditions.match)
            db.execute(
                "UPDATE forgettings SET conditions = json_set(conditions, '$.match', '[erased]')"
                " WHERE has_text(conditions ->> 'match')"
            )


def erase_in_copy(db: Connection, one: Forgetting, ids: Sequence[str], session_ids: Sequence[str]) -> bool:
    """Remove the same from a backup, at this version's schema and used by nobody else: what fits the
    conditions there, and what had these ids. Whether there was anything."""
    wanted = one.conditions
    with transaction(db):
        choose(db, wanted, hard=True)
        db.execute(
            f"{_INTO} WHERE m.id IN (SELECT value FROM json_each(?))",
            (json.dumps(list(ids)),),
        )
        db.execute(
            "INSERT OR IGNORE INTO temp.chosen_sessions SELECT id FROM sessions"
            " WHERE id IN (SELECT value FROM json_each(?))",
            (json.dumps(list(session_ids)),),
        )
        clause, values = _archived(wanted)
        archived = _count(db, f"archived_memories a WHERE {clause}", values)
        found = archived or any(_count(db, f"temp.{name}") for name in _CHOSEN)
        _drop_what_cannot_hide(db, wanted)
        db.execute("DELETE FROM prompts WHERE id IN (SELECT id FROM temp.chosen_prompts)")
        db.execute("DELETE FROM observation_queue WHERE id IN (SELECT id FROM temp.chosen_items)")
        _erase_chosen(db, one.at)
        _erase_sessions(db, one.at)
    return bool(found)


def _erase_chosen(db: Connection, at: int) -> None:
    ids = "(SELECT m.id FROM temp.chosen c JOIN memories m ON m.row = c.row)"
    of_turns = "FROM temp.chosen c JOIN turns t ON t.row = c.row"
    touched = tuples(db).execute(f"SELECT DISTINCT t.session_id {of_turns} WHERE t.session_id IS NOT NULL")
    session_ids = [row[0] for row in touched]
    db.execute(
        "INSERT INTO erased_spans (session_id, first_at, last_at, at) SELECT t.session_id, t.started_at,"
        # Until the next prompt, where it was going on.
        " iif((t.state = 'open' OR t.left_open_at IS NOT NULL) AND NOT EXISTS (SELECT 1 FROM turns later"
        " WHERE later.session_id = t.session_id AND later.started_at > t.started_at), NULL, t.ended_at), ?1"
        f" {of_turns} WHERE t.session_id IS NOT NULL"
        " ON CONFLICT DO UPDATE SET at = max(at, ?1), last_at ="
        " iif(last_at IS NULL OR excluded.last_at IS NULL, NULL, max(last_at, excluded.last_at))",
        (at,),
    )
    for table, when in ("prompts", "created_at"), ("observation_queue", "created_at_epoch"):
        db.execute(
            f"DELETE FROM {table} WHERE id IN (SELECT q.id {of_turns} JOIN {table} q"
            f" ON q.session_id = t.session_id AND q.{when} BETWEEN t.started_at AND t.ended_at)"
        )
    db.execute(f"DELETE FROM observation_queue WHERE memory_id IN {ids}")
    db.execute(
        "UPDATE sessions SET summary = NULL WHERE id IN"
        f" (SELECT session_id FROM session_summaries WHERE memory_id IN {ids})"
    )
    db.execute(f"DELETE FROM session_summaries WHERE memory_id IN {ids}")
    tellings.erase_chosen(db)
    db.execute("DELETE FROM memories WHERE row IN (SELECT row FROM temp.chosen)")
    sessions.note_first_prompts(db, session_ids)


def _erase_sessions(db: Connection, at: int) -> None:
    """With their prompts, items and summaries. Only that there were such sessions is kept, by their ids."""
    db.execute(f"DELETE FROM erased_spans WHERE session_id IN {_SESSIONS}")
    db.execute(
        "INSERT INTO erased_spans (session_id, first_at, last_at, at)"
        " SELECT id, 0, NULL, ? FROM temp.chosen_sessions",
        (at,),
    )
    db.execute(
        f"DELETE FROM archived_memories WHERE session_id IN {_SESSIONS} AND memory ->> 'kind' <> 'note'"
    )
    db.execute(f"DELETE FROM tellings WHERE session_id IN {_SESSIONS}")
    db.execute(f"DELETE FROM sessions WHERE id IN {_SESSIONS}")


def hidden_ids(db: Connection, at: int) -> tuple[list[str], list[str]]:
    """The ids of memories and of sessions that were hidden at a moment: by them a backup is known."""
    ids = tuples(db).execute("SELECT id FROM memories WHERE deleted_at = ?", (at,)).fetchall()
    whole = tuples(db).execute("SELECT session_id FROM forgotten_sessions WHERE at = ?", (at,)).fetchall()
    return [row[0] for row in ids], [row[0] for row in whole]


def is_held(path: str, wanted: Conditions, ids: Sequence[str], session_ids: Sequence[str]) -> bool:
    """Does a backup, at whatever schema, hold any of these, or the text that was looked for?"""
    queries: list[tuple[str, object]] = [
        ("memories WHERE id IN (SELECT value FROM json_each(?))", json.dumps(list(ids))),
        ("sessions WHERE id IN (SELECT value FROM json_each(?))", json.dumps(list(session_ids))),
    ]
    if wanted.match:
        of_project = "(?1 IS NULL OR project_id = ?1)"
        queries += [
            (f"memories WHERE {of_project} AND has_text(title, content)", wanted.project_id),
            (
                f"prompts p JOIN sessions s ON s.id = p.session_id WHERE {of_project} AND has_text(p.prompt)",
                wanted.project_id,
            ),
        ]
    try:
        with backup.read_only(path) as db:
            _look_for(db, wanted.match or "")
            if wanted.match and "tellings" in own_tables(db):  # it may be older than they are
                of_project = "(?1 IS NULL OR project_id = ?1)"
                queries.append((f"tellings WHERE {of_project} AND has_text(about, text)", wanted.project_id))
            found = (db.execute(f"SELECT 1 FROM {of} LIMIT 1", (value,)).fetchone() for of, value in queries)
            return any(found)
    except DatabaseError as error:
        raise Damaged(f"{path} cannot be read ({error})") from error


def erase_project(db: Connection, project_id: str, now: int) -> None:
    """A whole project with all that is its own, documents, trees and its name among it; what is global
    stays. In a transaction of the caller; the caller compacts the store (surfaces/erasing.py)."""
    if project_id == projects.GLOBAL:
        raise BadInput("what is global belongs to no project; forget single memories by their ids")
    choose(db, Conditions(project_id=project_id), hard=True)
    _drop_what_cannot_hide(db, Conditions(project_id=project_id))
    _erase_chosen(db, now)
    _erase_sessions(db, now)
    db.execute("DELETE FROM projects WHERE id = ?", (project_id,))


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
