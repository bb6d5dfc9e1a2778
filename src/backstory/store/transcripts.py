"""The transcripts that were read: what a second run need not read, and whose entries a fork repeats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from sqlite3 import Connection

from backstory.store.file.connection import tuples


def read_so_far(db: Connection) -> dict[str, tuple[int, int]]:
    """path -> (size, time of its last change), as they were when they were read whole."""
    rows = tuples(db).execute("SELECT path, size, modified_ns FROM transcripts")
    return {path: (size, modified_ns) for path, size, modified_ns in rows}


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
