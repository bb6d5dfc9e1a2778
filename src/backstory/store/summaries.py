"""What each session came to, in eight fields."""

from __future__ import annotations

import json

from backstory.store.file.connection import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection, Row

    from backstory.model import Summary


def put(
    db: Connection, session_id: str, project_id: str, summary: Summary, made_by: str, memory_id: str, now: int
) -> None:
    """Keep the latest word on a session; `sessions.summary` has it as one text."""
    text = str(summary)
    db.execute(
        "INSERT INTO session_summaries (session_id, project_id, request, investigated, learned, completed,"
        " next_steps, files_read, files_edited, notes, summary, made_by, memory_id, created_at_epoch,"
        " updated_at_epoch) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?14)"
        " ON CONFLICT (session_id) DO UPDATE SET request = ?3, investigated = ?4, learned = ?5,"
        " completed = ?6, next_steps = ?7, files_read = ?8, files_edited = ?9, notes = ?10, summary = ?11,"
        " made_by = ?12, memory_id = ?13, updated_at_epoch = ?14",
        (
            session_id,
            project_id,
            summary.request,
            summary.investigated,
            summary.learned,
            summary.completed,
            summary.next_steps,
            json.dumps(summary.files_read, ensure_ascii=False),
            json.dumps(summary.files_edited, ensure_ascii=False),
            summary.notes,
            text,
            made_by,
            memory_id,
            now,
        ),
    )
    db.execute("UPDATE sessions SET summary = ? WHERE id = ?", (text, session_id))


def get(db: Connection, session_id: str) -> Summary | None:
    """What the session came to, unless the user forgot it."""
    row = db.execute(
        "SELECT s.* FROM session_summaries s JOIN memories m ON m.id = s.memory_id"
        " WHERE s.session_id = ? AND m.deleted_at IS NULL",
        (session_id,),
    ).fetchone()
    return _summary(row) if row else None


def made_by(db: Connection, session_id: str) -> str | None:
    """Which synthesizer made a session's summary."""
    row = db.execute("SELECT made_by FROM session_summaries WHERE session_id = ?", (session_id,)).fetchone()
    return str(row["made_by"]) if row else None


def memory_of(db: Connection, session_id: str) -> str | None:
    """The living memory that holds a session's summary."""
    row = db.execute(
        "SELECT m.id FROM session_summaries s JOIN memories m ON m.id = s.memory_id"
        " WHERE s.session_id = ? AND m.deleted_at IS NULL AND m.valid_until IS NULL",
        (session_id,),
    ).fetchone()
    return str(row["id"]) if row else None


def _summary(row: Row) -> Summary:
    from backstory.model import Summary

    lists = {name: tuple(json.loads(row[name])) for name in ("files_read", "files_edited")}
    return value(Summary, row, **lists)
