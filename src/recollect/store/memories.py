"""Memories: storing, finding and strengthening them."""

from __future__ import annotations

import json

from recollect.ids import new_id
from recollect.store import projects, salience

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from sqlite3 import Connection, Row

    from recollect.model import Memory


def add(
    db: Connection,
    *,
    project_id: str,
    session_id: str | None,
    kind: str,
    sector: str,
    tier: str,
    content: str,
    now: int,
    importance: float,
    files: Sequence[str] = (),
    tags: Sequence[str] = (),
    content_hash: str | None = None,
) -> str:
    """Store a new memory, linked to the session that made it. Its salience at birth is its importance."""
    memory_id = new_id()
    db.execute(
        "INSERT INTO memories (row, id, project_id, session_id, kind, sector, tier, content, tags, files,"
        " importance, salience, created_at, updated_at, last_accessed, content_hash)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            projects.next_row(db, project_id),
            memory_id,
            project_id,
            session_id,
            kind,
            sector,
            tier,
            content,
            _list(tags),
            _list(files),
            importance,
            importance,
            now,
            now,
            now,
            content_hash,
        ),
    )
    link(db, session_id, memory_id, "created", now)
    return memory_id


def link(db: Connection, session_id: str | None, memory_id: str, usage_type: str, now: int) -> None:
    """Note what a session did with a memory. A session we never heard of has nothing to link."""
    db.execute(
        "INSERT INTO session_memories (session_id, memory_id, usage_type, created_at)"
        " SELECT id, ?2, ?3, ?4 FROM sessions WHERE id = ?1"
        " ON CONFLICT DO UPDATE SET created_at = excluded.created_at",
        (session_id, memory_id, usage_type, now),
    )


def same(db: Connection, project_id: str, kind: str, content_hash: str) -> str | None:
    """The living memory with exactly this content."""
    row = db.execute(
        "SELECT id FROM memories WHERE content_hash = ? AND project_id = ? AND kind = ?"
        " AND deleted_at IS NULL AND valid_until IS NULL",
        (content_hash, project_id, kind),
    ).fetchone()
    return str(row["id"]) if row else None


def reinforce(
    db: Connection,
    memory_id: str,
    amount: float,
    session_id: str | None,
    now: int,
    usage_type: str = "reinforced",
) -> None:
    """Strengthen a memory from what it is worth now."""
    row = db.execute("SELECT * FROM memories WHERE id = ?", (memory_id,)).fetchone()
    stored = salience.reinforced(_decayed(row, now), amount)
    db.execute(
        "UPDATE memories SET salience = ?, access_count = access_count + 1, last_accessed = ? WHERE id = ?",
        (stored, now, memory_id),
    )
    link(db, session_id, memory_id, usage_type, now)


def promote(db: Connection, session_id: str, now: int) -> None:
    """At a session's end, what turned out to matter stays with the project."""
    rows = db.execute(
        "SELECT * FROM memories WHERE session_id = ? AND tier = 'session' AND deleted_at IS NULL",
        (session_id,),
    )
    worthy = [(now, row["id"]) for row in rows if _present(row, now) > salience.PROMOTED_ABOVE]
    db.executemany("UPDATE memories SET tier = 'project', updated_at = ? WHERE id = ?", worthy)


def get(db: Connection, memory_id: str, now: int) -> Memory | None:
    row = db.execute("SELECT * FROM memories WHERE id = ?", (memory_id,)).fetchone()
    return _memory(row, now) if row else None


def living(db: Connection, memory_id: str, project_id: str, now: int) -> Memory | None:
    """A memory of this project that is neither deleted nor superseded."""
    row = db.execute(
        "SELECT * FROM memories WHERE id = ? AND project_id = ? AND deleted_at IS NULL"
        " AND (valid_until IS NULL OR valid_until > ?)",
        (memory_id, project_id, now),
    ).fetchone()
    return _memory(row, now) if row else None


def count(db: Connection) -> int:
    return int(db.execute("SELECT count(*) FROM memories").fetchone()[0])


def of_session(db: Connection, session_id: str, now: int) -> list[Memory]:
    rows = db.execute(
        "SELECT * FROM memories WHERE session_id = ? AND deleted_at IS NULL ORDER BY created_at, row",
        (session_id,),
    )
    return [_memory(row, now) for row in rows]


def by_words(
    db: Connection, match: str, *, project_number: int, sector: str | None, limit: int, now: int
) -> list[tuple[Memory, float]]:
    """Living memories of a project that match an FTS5 expression, with BM25 scores, best first."""
    first, last = projects.rows(project_number)
    rows = db.execute(
        "SELECT m.*, -bm25(memories_fts) AS score"
        " FROM memories_fts JOIN memories m ON m.row = memories_fts.rowid"
        " WHERE memories_fts MATCH ? AND memories_fts.rowid BETWEEN ? AND ?"
        " AND m.deleted_at IS NULL AND (m.valid_until IS NULL OR m.valid_until > ?)"
        " AND (?5 IS NULL OR m.sector = ?5)"
        " ORDER BY score DESC, m.row DESC LIMIT ?6",
        (match, first, last, now, sector, limit),
    )
    return [(_memory(row, now), row["score"]) for row in rows]


def _list(items: Sequence[str]) -> str:
    return json.dumps(list(items), ensure_ascii=False)


def _decayed(row: Row, now: int) -> float:
    return salience.decayed(row["salience"], row["sector"], row["importance"], row["last_accessed"], now)


def _present(row: Row, now: int) -> float:
    return salience.present(_decayed(row, now), row["access_count"])


def _memory(row: Row, now: int) -> Memory:
    from recollect.model import Memory

    return Memory(
        id=row["id"],
        project_id=row["project_id"],
        session_id=row["session_id"],
        kind=row["kind"],
        sector=row["sector"],
        tier=row["tier"],
        title=row["title"],
        content=row["content"],
        tags=tuple(json.loads(row["tags"])),
        files=tuple(json.loads(row["files"])),
        importance=row["importance"],
        salience=_present(row, now),
        access_count=row["access_count"],
        created_at=row["created_at"],
        valid_until=row["valid_until"],
        deleted_at=row["deleted_at"],
    )
