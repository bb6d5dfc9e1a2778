"""What is counted, and how: the same for every list, dashboard and report.

    session   one that is shown: not forgotten, or gone on with since
    turn      what was asked, and what came of it
    memory    any other one: a note, an observation, a summary
    trace     what a single tool use left

What was forgotten counts nowhere. These are conditions: `s` is a row of sessions, `m` one of memories.
"""

from __future__ import annotations

LIVING = "m.deleted_at IS NULL"
TURN = f"m.kind = 'turn' AND {LIVING}"
MEMORY = f"m.kind NOT IN ('turn', 'tool') AND {LIVING}"
TRACE = f"m.kind = 'tool' AND {LIVING}"
SESSION = (
    "(NOT EXISTS (SELECT 1 FROM forgotten_sessions f WHERE f.session_id = s.id) OR EXISTS (SELECT 1"
    " FROM turns t JOIN memories m ON m.row = t.row WHERE t.session_id = s.id AND m.deleted_at IS NULL))"
)
SUMS = ", ".join(
    f"coalesce(sum({condition}), 0) AS {name}"
    for name, condition in (("turns", TURN), ("memories", MEMORY), ("traces", TRACE))
)


def of_session(condition: str) -> str:
    """How many of a session, as a column of a query for sessions."""
    return f"(SELECT count(*) FROM memories m WHERE m.session_id = s.id AND {condition})"
