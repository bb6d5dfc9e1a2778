"""What there is to count: what was captured, and what a session did after it was told something."""

from __future__ import annotations

import json
from collections.abc import Iterable

from backstory.memory.kinds import OBSERVATIONS
from backstory.memory.usage import Done, Worked
from backstory.model import TellingRecord
from backstory.store import turns
from backstory.store.file.connection import Connection, marks, tuples
from backstory.store.sessions import SHOWN

RARE = 8  # lines of the keyword index that have a rare word, at most
_OF = "(?2 IS NULL OR {0}.project_id = ?2) AND (?3 IS NULL OR {1} = ?3)"


def captured(
    db: Connection, since: int, project_id: str | None = None, session_id: str | None = None
) -> dict[str, int]:
    """How many sessions, turns, events, facts and notes, from then on."""
    given = (since, project_id, session_id)
    kinds = dict(
        tuples(db)
        .execute(
            "SELECT m.kind, count(*) FROM memories m WHERE m.created_at >= ?1 AND m.deleted_at IS NULL"
            f" AND m.kind <> 'tool' AND {_OF.format('m', 'm.session_id')} GROUP BY m.kind",
            given,
        )
        .fetchall()
    )
    of_sessions = f"FROM sessions s WHERE s.last_event_at >= ?1 AND {_OF.format('s', 's.id')} AND {SHOWN}"
    of_events = (
        "FROM events e JOIN sessions s ON s.id = e.session_id WHERE e.created_at >= ?1"
        f" AND {_OF.format('s', 's.id')} AND {SHOWN}"
    )
    sessions, events = (
        tuples(db).execute(f"SELECT count(*) {chosen}", given).fetchone()[0]
        for chosen in (of_sessions, of_events)
    )
    return {
        "sessions": sessions,
        "turns": kinds.get("turn", 0),
        "events": events,
        "facts": sum(kinds.get(kind, 0) for kind in OBSERVATIONS),
        "notes": kinds.get("note", 0),
    }


def worked(db: Connection, project_id: str) -> Iterable[Worked]:
    """The turns of a project that are not forgotten, the oldest first."""
    rows = tuples(db).execute(
        "SELECT m.id, t.session_id, t.started_at, t.ended_at, t.record ->> 'failed', t.record ->> 'passed',"
        " t.record ->> 'searched' FROM turns t JOIN memories m ON m.row = t.row WHERE m.project_id = ?"
        " AND m.deleted_at IS NULL AND t.session_id IS NOT NULL ORDER BY t.started_at, t.row",
        (project_id,),
    )
    for memory_id, session_id, started, ended, failed, passed, searched in rows:
        went_wrong, mended = ([error for _, error in json.loads(one or "[]")] for one in (failed, passed))
        patterns = json.loads(searched or "[]")
        yield Worked(memory_id, session_id, started, ended, went_wrong, mended, patterns)


def done_after(db: Connection, told: TellingRecord) -> tuple[Done | None, frozenset[str]]:
    """What its session did in the turn that it was told in, or in the next one; and the files that it had
    touched before."""
    row = (
        tuples(db)
        .execute(
            "SELECT m.id FROM turns t JOIN memories m ON m.row = t.row WHERE t.session_id = ?"
            " AND t.ended_at >= ? AND m.deleted_at IS NULL ORDER BY t.started_at LIMIT 1",
            (told.session_id, told.at),
        )
        .fetchone()
    )
    if row is None:
        return None, frozenset()
    turn = turns.by_ids(db, [row[0]])[row[0]]
    uses = tuples(db).execute(
        "SELECT content FROM memories WHERE session_id = ? AND kind = 'tool' AND created_at BETWEEN ? AND ?",
        (told.session_id, told.at, turn.ended_at),
    )
    asked = tuples(db).execute(
        "SELECT about FROM tellings WHERE session_id = ? AND moment = 'search' AND id <> ?"
        " AND at BETWEEN ? AND ?",
        (told.session_id, told.id, told.at, turn.ended_at),
    )
    touched = tuples(db).execute(
        "SELECT memory_id FROM session_memories WHERE session_id = ?"
        " AND usage_type IN ('reinforced', 'updated') AND created_at BETWEEN ? AND ?",
        (told.session_id, told.at, turn.ended_at),
    )
    done = Done(
        files=frozenset((*turn.read, *turn.edited)),
        named="\n".join(text for rows in (uses, asked) for (text,) in rows),
        touched=frozenset(memory_id for (memory_id,) in touched),
        prompt="\n".join(text for text, _ in turn.prompts),
        answer=turn.answer,
    )
    return done, _touched_before(db, told)


def _touched_before(db: Connection, told: TellingRecord) -> frozenset[str]:
    """By its earlier turns, and by what left a trace in this one."""
    rows = tuples(db).execute(
        "SELECT f.value FROM turns t, json_each(t.record, '$.edited') f"
        " WHERE t.session_id = ?1 AND t.ended_at < ?2"
        " UNION SELECT f.value FROM turns t, json_each(t.record, '$.read') f"
        " WHERE t.session_id = ?1 AND t.ended_at < ?2"
        " UNION SELECT f.value FROM memories m, json_each(m.files) f"
        " WHERE m.session_id = ?1 AND m.kind = 'tool' AND m.created_at < ?2",
        (told.session_id, told.at),
    )
    root = _root(db, told.project_id)
    return frozenset(path.removeprefix(root) for (path,) in rows)


def files_of(db: Connection, told: TellingRecord) -> list[str]:
    """The files of what was told, from the project's root, but for the one that it came with."""
    rows = tuples(db).execute(
        "SELECT DISTINCT f.value FROM memories m, json_each(m.files) f"
        f" WHERE m.id IN ({marks(told.memory_ids)})",
        list(told.memory_ids),
    )
    return _but_its_own(db, told, [file for (file,) in rows])


def files_of_others(db: Connection, told: TellingRecord) -> list[str]:
    """The files of as many turns that were not told: for each memory the last one before it of another
    session."""
    given = list(told.memory_ids)
    rows = tuples(db).execute(
        "WITH others AS (SELECT (SELECT o.row FROM memories o WHERE o.project_id = m.project_id"
        " AND o.kind = 'turn' AND o.created_at < m.created_at AND o.session_id IS NOT m.session_id"
        f" AND o.id NOT IN ({marks(given)}) ORDER BY o.created_at DESC LIMIT 1) AS row"
        f" FROM memories m WHERE m.id IN ({marks(given)}))"
        " SELECT DISTINCT f.value FROM others JOIN memories m ON m.row = others.row, json_each(m.files) f",
        [*given, *given],
    )
    return _but_its_own(db, told, [file for (file,) in rows])


def _but_its_own(db: Connection, told: TellingRecord, files: list[str]) -> list[str]:
    """Files from the project's root, but for the one that the telling came with."""
    root = _root(db, told.project_id)
    return [path for file in files if (path := file.removeprefix(root)) != told.about.removeprefix(root)]


def _root(db: Connection, project_id: str) -> str:
    row = tuples(db).execute("SELECT root FROM projects WHERE id = ?", (project_id,)).fetchone()
    return f"{row[0].rstrip('/')}/" if row and row[0] else "//"


def is_rare(db: Connection, word: str) -> bool:
    """Do only a few memories have this word?"""
    rows = tuples(db).execute(
        "SELECT count(*) FROM (SELECT 1 FROM memories_fts WHERE memories_fts MATCH ? LIMIT ?)",
        (f'"{word}"', RARE + 1),
    )
    return bool(rows.fetchone()[0] <= RARE)
