"""What only people ask about synthesis: who made what, and how much of it. Nothing here changes anything."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection


def made_by(db: Connection, session_id: str) -> str | None:
    """Which synthesizer made a session's summary."""
    row = db.execute("SELECT made_by FROM session_summaries WHERE session_id = ?", (session_id,)).fetchone()
    return str(row["made_by"]) if row else None


def observed(db: Connection, since: int) -> dict[str, int]:
    """How many items each synthesizer observed from a moment on; under 'skipped', what was given up."""
    rows = db.execute(
        "SELECT iif(skipped IS NULL, processed_by, 'skipped') AS by, count(*) AS number"
        " FROM observation_queue WHERE processed_at_epoch >= ? GROUP BY by ORDER BY by",
        (since,),
    )
    return {row["by"]: row["number"] for row in rows}
