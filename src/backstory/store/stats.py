"""What there is to count: what was captured."""

from __future__ import annotations

from backstory.memory.kinds import OBSERVATIONS
from backstory.store.file.connection import Connection, tuples
from backstory.store.sessions import SHOWN

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
