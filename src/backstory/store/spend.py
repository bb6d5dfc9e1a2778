"""What calls of a model cost: what the daily cap looks at, and `backstory spend`."""

from __future__ import annotations

from backstory.store.file.connection import fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection
    from typing import Any

    from backstory.model import Spent

_SUMS = (
    "sum(requests) AS requests, sum(input_tokens) AS input_tokens,"
    " sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens,"
    " sum(output_tokens) AS output_tokens, sum(usd) AS usd"
)


def add(db: Connection, session_id: str, spent: Spent, now: int) -> None:
    db.execute(
        "INSERT INTO spend (session_id, model, requests, input_tokens, cache_read_tokens,"
        " cache_write_tokens, output_tokens, usd, created_at)"
        " VALUES ((SELECT id FROM sessions WHERE id = ?), ?, ?, ?, ?, ?, ?, ?, ?)",
        (session_id, *fields(spent), now),
    )


def since(db: Connection, at: int, project_id: str | None = None, session_id: str | None = None) -> float:
    """US dollars spent from a moment on: for a project, for a session, or for all."""
    rows = db.execute(
        "SELECT coalesce(sum(usd), 0) FROM spend WHERE created_at >= ?1 AND (?3 IS NULL OR session_id = ?3)"
        " AND (?2 IS NULL OR session_id IN (SELECT id FROM sessions WHERE project_id = ?2))",
        (at, project_id, session_id),
    )
    return float(rows.fetchone()[0])


def by_day(db: Connection, since: int) -> list[dict[str, Any]]:
    """day (local time, YYYY-MM-DD), requests, tokens and usd, oldest first."""
    rows = db.execute(
        "SELECT strftime('%Y-%m-%d', created_at / 1000, 'unixepoch', 'localtime') AS day,"
        f" {_SUMS} FROM spend WHERE created_at >= ? GROUP BY day ORDER BY day",
        (since,),
    )
    return [dict(row) for row in rows]


def by_session(db: Connection, since: int, limit: int) -> list[dict[str, Any]]:
    """session_id (None where it is gone), project, started_at, request, tokens and usd; dearest first."""
    rows = db.execute(
        "SELECT spend.session_id, p.name AS project, s.started_at, s.user_prompt AS request,"
        f" max(spend.created_at) AS last_at, {_SUMS} FROM spend LEFT JOIN sessions s"
        " ON s.id = spend.session_id LEFT JOIN projects p ON p.id = s.project_id"
        " WHERE spend.created_at >= ? GROUP BY spend.session_id"
        " ORDER BY usd DESC, last_at DESC LIMIT ?",
        (since, limit),
    )
    return [dict(row) for row in rows]
