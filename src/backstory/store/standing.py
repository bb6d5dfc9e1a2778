"""What the brief at a session's start reads: what stands in a project, its last sessions, a session's thread.

The user waits for this, so nothing here walks the traces: every question is asked of an index, and none
brings more than a bounded number of rows. Values are plain classes: a hook does not load dataclasses.
"""

from __future__ import annotations

import json

from backstory.store.file.connection import tuples

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from backstory.store.file.connection import Connection

NEWEST = 500  # memories of a kind that are looked at
LOOKED_AT = 2_000  # tool uses of a session, where its edits are looked for
TEXT = 1_500  # characters of any text; a line of the brief has far less room

_ALIVE = "m.deleted_at IS NULL AND m.valid_until IS NULL"


class Standing:
    """What ranking needs to know of a memory."""

    __slots__ = (
        *("access_count", "branch", "created_at", "id", "importance"),
        *("kind", "last_accessed", "salience", "sector", "session_id"),
    )

    def __init__(
        self,
        id: str,
        kind: str,
        session_id: str | None,
        sector: str,
        importance: float,
        salience: float,
        access_count: int,
        last_accessed: int,
        created_at: int,
        branch: str | None,
    ) -> None:
        self.id = id
        self.kind = kind
        self.session_id = session_id
        self.sector = sector
        self.importance = importance
        self.salience = salience  # as stored
        self.access_count = access_count
        self.last_accessed = last_accessed
        self.created_at = created_at
        self.branch = branch


class Content:
    """What a memory says, and about which files."""

    __slots__ = ("content", "created_at", "files", "hashes", "id", "title")

    def __init__(
        self, id: str, title: str | None, content: str, files: str, hashes: str, created_at: int
    ) -> None:
        self.id = id
        self.title = title
        self.content = content
        self.files: list[str] = json.loads(files)
        self.hashes: list[str | None] = json.loads(hashes)
        self.created_at = created_at


class Outcome:
    """What a session was asked for and what it came to; without a summary, its first prompt."""

    __slots__ = (
        *("branch", "completed", "files_edited", "learned", "next_steps"),
        *("prompt", "prompt_id", "request", "started_at", "summary_id"),
    )

    def __init__(
        self,
        started_at: int,
        branch: str | None,
        request: str | None,
        learned: str | None,
        completed: str | None,
        next_steps: str | None,
        files_edited: str | None,
        summary_id: str | None,
        prompt: str | None,
        prompt_id: str | None,
    ) -> None:
        self.started_at = started_at
        self.branch = branch
        self.request = request
        self.learned = learned
        self.completed = completed
        self.next_steps = next_steps
        self.files_edited: list[str] = json.loads(files_edited or "[]")
        self.summary_id = summary_id
        self.prompt = prompt
        self.prompt_id = prompt_id


def project_at(db: Connection, identity: str) -> str | None:
    row = db.execute("SELECT id FROM projects WHERE identity = ?", (identity,)).fetchone()
    return str(row["id"]) if row else None


def newest(db: Connection, project_id: str, kind: str) -> list[Standing]:
    """The newest living memories of a kind, with the branch they came from."""
    rows = tuples(db).execute(
        "SELECT m.id, m.kind, m.session_id, m.sector, m.importance, m.salience, m.access_count,"
        " m.last_accessed, m.created_at, s.branch FROM memories m LEFT JOIN sessions s ON s.id = m.session_id"
        # The condition on kinds is the index's own.
        " WHERE m.project_id = ? AND m.kind = ? AND m.kind NOT IN ('tool', 'prompt')"
        f" AND {_ALIVE} ORDER BY m.created_at DESC, m.row DESC LIMIT ?",
        (project_id, kind, NEWEST),
    )
    return [Standing(*row) for row in rows]


def told(db: Connection, ids: Sequence[str]) -> dict[str, Content]:
    """What these memories say, by id."""
    rows = tuples(db).execute(
        f"SELECT id, title, substr(content, 1, {TEXT}) AS content, files, hashes, created_at FROM memories"
        " WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(ids)),),
    )
    return {row[0]: Content(*row) for row in rows}


# The columns of an Outcome. What was forgotten is not told, nor is a prompt of which no memory is left.
_OUTCOME = (
    f"SELECT s.started_at, s.branch, substr(y.request, 1, {TEXT}) AS request,"
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


def last_sessions(db: Connection, project_id: str, but: str, limit: int) -> list[Outcome]:
    """The last sessions of a project that something can be said of, newest first."""
    rows = tuples(db).execute(
        f"{_OUTCOME} AND s.project_id = ? AND s.id <> ? ORDER BY s.started_at DESC, s.rowid DESC LIMIT ?",
        (project_id, but, limit),
    )
    return [Outcome(*row) for row in rows]


def summary_of(db: Connection, session_id: str) -> Outcome | None:
    """What a session came to so far."""
    row = tuples(db).execute(f"{_OUTCOME} AND s.id = ? AND y.id IS NOT NULL", (session_id,)).fetchone()
    return Outcome(*row) if row else None


def prompts(db: Connection, session_id: str, last: int) -> list[tuple[str, str]]:
    """(id, text) of what the user said in a session: the first of it and the last, oldest first.
    `yes` and `go on` are no memories, and say nothing here either."""
    said = (
        f"SELECT m.id, substr(m.content, 1, {TEXT}) AS content, q.created_at, q.id AS number FROM prompts q"
        " JOIN memories m ON m.session_id = q.session_id AND m.created_at = q.created_at"
        f" AND m.kind = 'prompt' WHERE q.session_id = ?1 AND {_ALIVE}"
    )
    rows = db.execute(
        f"SELECT * FROM ({said} ORDER BY q.created_at, q.id LIMIT 1) UNION"
        f" SELECT * FROM ({said} ORDER BY q.created_at DESC, q.id DESC LIMIT ?2) ORDER BY created_at, number",
        (session_id, last),
    )
    return [(row["id"], row["content"]) for row in rows]


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
