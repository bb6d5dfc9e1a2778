"""What the brief at a session's start reads: what stands in a project, its last sessions, a session's thread.

The user waits for this, so nothing here walks the traces: every question is asked of an index, and none
brings more than a bounded number of rows. Rows stay rows, because values would cost a hook the dataclasses.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from sqlite3 import Connection, Row

NEWEST = 500  # memories of a kind that are looked at
LOOKED_AT = 2_000  # tool uses of a session, where its edits are looked for
TEXT = 1_500  # characters of any text; a line of the brief has far less room

_ALIVE = "m.deleted_at IS NULL AND m.valid_until IS NULL"


def project_at(db: Connection, identity: str) -> str | None:
    row = db.execute("SELECT id FROM projects WHERE identity = ?", (identity,)).fetchone()
    return str(row["id"]) if row else None


def newest(db: Connection, project_id: str, kind: str) -> list[Row]:
    """What ranking needs to know of the newest living memories of a kind, with the branch they came from."""
    return db.execute(
        "SELECT m.id, m.kind, m.session_id, m.sector, m.importance, m.salience, m.access_count,"
        " m.last_accessed, m.created_at, s.branch FROM memories m LEFT JOIN sessions s ON s.id = m.session_id"
        # The condition on kinds is the index's own.
        " WHERE m.project_id = ? AND m.kind = ? AND m.kind NOT IN ('tool', 'prompt')"
        f" AND {_ALIVE} ORDER BY m.created_at DESC, m.row DESC LIMIT ?",
        (project_id, kind, NEWEST),
    ).fetchall()


def told(db: Connection, ids: Sequence[str]) -> dict[str, Row]:
    """What these memories say, and about which files."""
    rows = db.execute(
        f"SELECT id, title, substr(content, 1, {TEXT}) AS content, files, hashes, created_at FROM memories"
        " WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(ids)),),
    )
    return {row["id"]: row for row in rows}


# What a session was asked for and what it came to; where nobody has summed it up, the first thing that the
# user said in it. What was forgotten is not told, nor is a prompt of which no memory is left.
_CAME_TO = (
    f"SELECT s.id, s.started_at, s.branch, substr(y.request, 1, {TEXT}) AS request,"
    f" substr(y.learned, 1, {TEXT}) AS learned, substr(y.completed, 1, {TEXT}) AS completed,"
    f" substr(y.next_steps, 1, {TEXT}) AS next_steps, y.files_edited, y.memory_id AS summary_id,"
    f" substr(p.content, 1, {TEXT}) AS prompt, p.id AS prompt_id"
    " FROM sessions s LEFT JOIN session_summaries y ON y.session_id = s.id"
    " LEFT JOIN memories m ON m.id = y.memory_id"
    " LEFT JOIN memories p ON y.id IS NULL AND p.id = (SELECT m.id FROM prompts q JOIN memories m"
    " ON m.session_id = q.session_id AND m.created_at = q.created_at AND m.kind = 'prompt'"
    f" WHERE q.session_id = s.id AND {_ALIVE} ORDER BY q.created_at, q.id LIMIT 1)"
    f" WHERE (m.id IS NOT NULL AND {_ALIVE} OR p.id IS NOT NULL)"
)


def last_sessions(db: Connection, project_id: str, but: str, limit: int) -> list[Row]:
    """The last sessions of a project that something can be said of, newest first."""
    return db.execute(
        f"{_CAME_TO} AND s.project_id = ? AND s.id <> ? ORDER BY s.started_at DESC, s.rowid DESC LIMIT ?",
        (project_id, but, limit),
    ).fetchall()


def summary_of(db: Connection, session_id: str) -> Row | None:
    """What a session came to so far."""
    row: Row | None = db.execute(f"{_CAME_TO} AND s.id = ? AND y.id IS NOT NULL", (session_id,)).fetchone()
    return row


def prompts(db: Connection, session_id: str, last: int) -> list[Row]:
    """What the user said in a session: the first of it and the last, oldest first. `yes` and `go on` are no
    memories, and say nothing here either."""
    said = (
        f"SELECT m.id, substr(m.content, 1, {TEXT}) AS content, q.created_at, q.id AS number FROM prompts q"
        " JOIN memories m ON m.session_id = q.session_id AND m.created_at = q.created_at"
        f" AND m.kind = 'prompt' WHERE q.session_id = ?1 AND {_ALIVE}"
    )
    return db.execute(
        f"SELECT * FROM ({said} ORDER BY q.created_at, q.id LIMIT 1) UNION"
        f" SELECT * FROM ({said} ORDER BY q.created_at DESC, q.id DESC LIMIT ?2) ORDER BY created_at, number",
        (session_id, last),
    ).fetchall()


def edited(db: Connection, session_id: str, limit: int) -> list[str]:
    """The files that a session edited, the latest first. The queue has every edit of the last days; of those
    before, the traces are left."""
    rows = db.execute(
        "SELECT file FROM (SELECT file, at FROM (SELECT q.tool_input ->> 'path' AS file,"
        " q.created_at_epoch AS at FROM observation_queue q"
        " LEFT JOIN memories m ON m.id = q.memory_id WHERE q.session_id = ?1"
        " AND q.action IN ('edit', 'write')"
        " AND q.tool_output ->> 'error' IS NULL AND m.deleted_at IS NULL"
        " ORDER BY q.created_at_epoch DESC LIMIT ?3)"
        " UNION ALL SELECT files ->> 0, created_at FROM (SELECT m.files, m.created_at FROM memories m"
        " WHERE m.session_id = ?1 AND m.action IN ('edit', 'write') AND m.deleted_at IS NULL"
        " AND instr(m.content, char(10) || 'Failed: ') = 0 ORDER BY m.created_at DESC LIMIT ?3))"
        " WHERE typeof(file) = 'text' GROUP BY file ORDER BY max(at) DESC, file LIMIT ?2",
        (session_id, limit, LOOKED_AT),
    )
    return [row["file"] for row in rows]


def note(db: Connection, session_id: str, ids: Sequence[str], now: int) -> None:
    """These memories were shown to the session. One that was erased a moment ago has nothing to link."""
    db.execute(
        "INSERT INTO session_memories (session_id, memory_id, usage_type, created_at)"
        " SELECT s.id, m.id, 'recalled', ?3 FROM sessions s, json_each(?2) shown"
        " JOIN memories m ON m.id = shown.value WHERE s.id = ?1"
        " ON CONFLICT DO UPDATE SET created_at = excluded.created_at",
        (session_id, json.dumps(list(ids)), now),
    )
