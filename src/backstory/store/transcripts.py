"""The transcripts that were read: what a second run need not read, and whose entries a fork repeats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from sqlite3 import Connection

from backstory.store import counts
from backstory.store.file.connection import tuples

BEGUN = -1  # the size of a file of which only a part was read so far


def read_so_far(db: Connection) -> dict[str, tuple[int, int]]:
    """path -> (size, time of its last change), as they were when they were read whole."""
    rows = tuples(db).execute("SELECT path, size, modified_ns FROM transcripts")
    return {path: (size, modified_ns) for path, size, modified_ns in rows}


def is_begun(db: Connection, session_id: str) -> bool:
    """Is what the store has of the session there because a transcript is being read?"""
    rows = db.execute("SELECT 1 FROM transcripts WHERE session_id = ? AND size = ?", (session_id, BEGUN))
    return rows.fetchone() is not None


def begin(db: Connection, session_id: str, paths: Iterable[str]) -> None:
    """These files are being read, and something in them was new."""
    db.executemany(
        "INSERT OR REPLACE INTO transcripts (path, size, modified_ns, session_id, read_at)"
        " VALUES (?, ?, 0, ?, 0)",
        [(path, BEGUN, session_id) for path in paths],
    )


def entries(db: Connection) -> Iterator[tuple[int, int]]:
    """(entry, its session), both as numbers."""
    yield from tuples(db).execute("SELECT uuid, session FROM transcript_entries")


def note(
    db: Connection,
    session_id: str,
    files: Iterable[tuple[str, int, int]],
    made: Iterable[tuple[int, int]],
    now: int,
) -> None:
    """These files (path, size, time of change) were read to their ends; these entries became events."""
    db.executemany(
        "INSERT OR REPLACE INTO transcripts (path, size, modified_ns, session_id, read_at)"
        " VALUES (?, ?, ?, ?, ?)",
        [(*file, session_id, now) for file in files],
    )
    db.executemany("INSERT OR IGNORE INTO transcript_entries (uuid, session) VALUES (?, ?)", made)


def made_of(db: Connection, session_ids: Sequence[str]) -> list[dict[str, object]]:
    """What these sessions left, a row a project: {name, root, sessions, turns, memories}."""
    db.execute("CREATE TEMP TABLE IF NOT EXISTS counted (id TEXT PRIMARY KEY)")
    db.execute("DELETE FROM counted")
    db.executemany("INSERT OR IGNORE INTO counted VALUES (?)", [(one,) for one in session_ids])
    rows = db.execute(
        f"SELECT p.name, p.root, count(DISTINCT s.id) AS sessions, {counts.SUMS}"
        " FROM counted c JOIN sessions s ON s.id = c.id JOIN projects p ON p.id = s.project_id"
        " LEFT JOIN memories m ON m.session_id = s.id GROUP BY p.id ORDER BY sessions DESC, p.root"
    )
    return [dict(row) for row in rows]
