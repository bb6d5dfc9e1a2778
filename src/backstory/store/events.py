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


def is_erased(db: Connection, session_id: str, at: int, *, begins: bool, within: int = 0) -> bool:
    """Does an event belong to what was erased for good? What was erased while it went on ends with the first
    event after it that `begins` a turn. An event may be known to have come so much earlier: `within`."""
    row = db.execute(
        "SELECT first_at, last_at, at FROM erased_spans WHERE session_id = ?1 AND first_at <= ?2 + ?3"
        " AND coalesce(last_at, ?2) >= ?2 LIMIT 1",
        (session_id, at, within),
    ).fetchone()
    if row is None:
        return False
    if row["last_at"] is None and begins and at > row["at"]:
        db.execute(
            "UPDATE erased_spans SET last_at = ? WHERE session_id = ? AND first_at = ?",
            (at - 1, session_id, row["first_at"]),
        )
        return False
    return True
