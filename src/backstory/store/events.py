"""The ledger of stored events: what makes draining twice harmless."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection


def first_time(db: Connection, key: str, name: str, session_id: str, at: int) -> bool:
    """Record an event; False when it was recorded before."""
    added = db.execute(
        "INSERT INTO events (key, name, session_id, created_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (key, name, session_id, at),
    )
    return added.rowcount == 1
