"""The queue of what waits to be observed: who may take what, and what becomes of it.

A worker claims the waiting items of one session under a lease. Every item ends as observed or as skipped with
the reason; until then it waits, whatever happens to the worker.

    waiting ── claim ──▶ leased ── done ─────▶ observed
       ▲                  │  │
       │ defer, give_back ┘  └── fail, three times ──▶ skipped
       └── the lease runs out, or a new worker takes over
"""

from __future__ import annotations

import json

from backstory.store.file.connection import marks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from sqlite3 import Connection, Row

    from backstory.model import Item

PROMPT, COMPACT, CHECKPOINT, FINALIZE = "PROMPT", "COMPACT", "CHECKPOINT", "FINALIZE"
FORGOTTEN = "it was forgotten"
MARKS = (CHECKPOINT, FINALIZE)  # a moment at which the session's summary is wanted

ATTEMPTS = 3
LEASE_MS = 10 * 60_000
BATCH_CHARS = 32_000  # about 8,000 tokens; as much waiting makes a batch before the turn has ended
BATCH_ITEMS = 100
SILENT_MS = 10 * 60_000  # a session without a sign of life for so long is looked at as it is
FIRST_WAIT_MS, LONGEST_WAIT_MS = 5_000, 3_600_000
KEPT_MS = 7 * 24 * 3_600_000


def put(
    db: Connection,
    session_id: str,
    tool: str,
    given: str,
    result: str,
    at: int,
    memory_id: str | None,
    action: str | None = None,
    turn: str | None = None,
) -> None:
    """Add an item; input and output are JSON with canonical names (clients/canonical.py)."""
    db.execute(
        "INSERT INTO observation_queue (session_id, turn, tool_name, tool_input, tool_output, size,"
        " memory_id, created_at_epoch, action) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (session_id, turn, tool, given, result, len(given) + len(result), memory_id, at, action),
    )


def due(db: Connection, now: int, synthesizer: str) -> list[str]:
    """Sessions that are worth a batch now, longest waiting first: a turn or the session has ended, enough has
    come together, or nobody will add to it. `synthesizer` is for those that have none of their own."""
    rows = db.execute(
        "SELECT q.session_id, min(q.created_at_epoch) AS oldest FROM observation_queue q"
        " JOIN sessions s ON s.id = q.session_id WHERE q.processed_at_epoch IS NULL"
        " AND coalesce(s.synthesizer, :synthesizer) <> 'off' GROUP BY q.session_id"
        " HAVING max(q.leased_until) <= :now AND max(q.not_before) <= :now"
        " AND (max(q.tool_name IN ('FINALIZE', 'CHECKPOINT')) OR sum(q.size) >= :chars"
        f" OR count(*) >= :items OR {_OVER}) ORDER BY oldest",
        {
            "now": now,
            "chars": BATCH_CHARS,
            "items": BATCH_ITEMS,
            "silent": now - SILENT_MS,
            "synthesizer": synthesizer,
        },
    )
    return [row["session_id"] for row in rows]


def next_try(db: Connection) -> int | None:
    """When the first of those that have to wait for the model may be tried again."""
    row = db.execute(
        "SELECT min(not_before) AS soonest FROM observation_queue"
        " WHERE processed_at_epoch IS NULL AND waits > 0"
    ).fetchone()
    return None if row["soonest"] is None else int(row["soonest"])


def is_over(db: Connection, session_id: str, now: int) -> bool:
    """Nothing more is expected of the session: it ended, fell silent, or another one began after it."""
    row = db.execute(
        f"SELECT {_OVER} AS over FROM sessions s WHERE s.id = :id",
        {"id": session_id, "silent": now - SILENT_MS},
    ).fetchone()
    return bool(row and row["over"])


_OVER = (
    "(s.status <> 'active' OR s.last_event_at < :silent OR EXISTS (SELECT 1 FROM sessions later"
    " WHERE later.project_id = s.project_id AND later.started_at > s.last_event_at))"
)


def claim(db: Connection, session_id: str, now: int, lease: str) -> list[Item]:
    """Lease the oldest waiting items of a session: those of a turn, up to the mark at its end, or of a long
    one as many as make a batch. A claim is an attempt.

    In the middle of a turn the newest item stays: should the session die, something is left to ask for its
    summary.
    """
    rows = db.execute(
        "SELECT id, size, tool_name FROM observation_queue WHERE session_id = ?1"
        " AND processed_at_epoch IS NULL AND leased_until <= ?2 AND not_before <= ?2"
        " ORDER BY created_at_epoch, id LIMIT ?3",
        (session_id, now, BATCH_ITEMS + 1),
    ).fetchall()
    if not any(row["tool_name"] in MARKS for row in rows) and not is_over(db, session_id, now):
        rows = rows[:-1] or rows
    ids: list[int] = []
    size = 0
    for row in rows[:BATCH_ITEMS]:
        size += row["size"]
        if ids and size > BATCH_CHARS:
            break
        ids.append(row["id"])
        if row["tool_name"] in MARKS:
            break
    db.execute(
        "UPDATE observation_queue SET leased_until = ?, lease = ?, attempts = attempts + 1"
        f" WHERE id IN ({marks(ids)})",
        (now + LEASE_MS, lease, *ids),
    )
    claimed = db.execute(
        f"SELECT * FROM observation_queue WHERE id IN ({marks(ids)}) ORDER BY created_at_epoch, id", ids
    )
    return [_item(row) for row in claimed]


def holds(db: Connection, ids: Sequence[int], lease: str) -> bool:
    """Is all of the claim still what it was? Meanwhile a part may have been forgotten, the session be gone,
    or a backup have taken the store's place, where the same numbers mean something else."""
    row = db.execute(
        "SELECT count(*) FROM observation_queue WHERE lease = ? AND processed_at_epoch IS NULL"
        f" AND id IN ({marks(ids)})",
        (lease, *ids),
    ).fetchone()
    return int(row[0]) == len(ids)


def give_back(db: Connection, lease: str) -> None:
    """Whatever is left of a claim waits again; it was no attempt."""
    db.execute(
        "UPDATE observation_queue SET leased_until = 0, attempts = max(0, attempts - 1)"
        " WHERE lease = ? AND leased_until > 0 AND processed_at_epoch IS NULL",
        (lease,),
    )


def more_waits(db: Connection, session_id: str, ids: Sequence[int]) -> bool:
    """Is there more of the session than these?"""
    row = db.execute(
        "SELECT 1 FROM observation_queue WHERE session_id = ? AND processed_at_epoch IS NULL"
        f" AND id NOT IN ({marks(ids)}) LIMIT 1",
        (session_id, *ids),
    ).fetchone()
    return row is not None


def earlier(db: Connection, session_id: str, limit: int = 2_000) -> list[Item]:
    """What was observed of a session before, oldest first."""
    rows = db.execute(
        "SELECT * FROM observation_queue WHERE session_id = ? AND processed_at_epoch IS NOT NULL"
        " AND skipped IS NULL ORDER BY created_at_epoch DESC, id DESC LIMIT ?",
        (session_id, limit),
    ).fetchall()
    return [_item(row) for row in reversed(rows)]


def unsummarised(db: Connection, session_id: str) -> bool:
    """Was anything observed after the session's summary was made?"""
    row = db.execute(
        "SELECT 1 FROM observation_queue WHERE session_id = ?1 AND processed_by IS NOT NULL"
        " AND tool_name NOT IN ('FINALIZE', 'CHECKPOINT') AND processed_at_epoch > coalesce("
        " (SELECT updated_at_epoch FROM session_summaries WHERE session_id = ?1), 0) LIMIT 1",
        (session_id,),
    ).fetchone()
    return row is not None


def done(db: Connection, ids: Sequence[int], by: str, now: int, trouble: str | None = None) -> None:
    """They were observed; `trouble` says why not by the model, where it should have been."""
    db.execute(
        "UPDATE observation_queue SET processed_at_epoch = ?, processed_by = ?, trouble = ?,"
        f" leased_until = 0 WHERE skipped IS NULL AND id IN ({marks(ids)})",
        (now, by, trouble, *ids),
    )


def defer(db: Connection, ids: Sequence[int], trouble: str, now: int, at_least_ms: int = 0) -> int:
    """The model is away: try again later, each time twice as late. No attempt either. Returns when."""
    row = db.execute(
        f"SELECT max(waits) AS waits FROM observation_queue WHERE id IN ({marks(ids)})", ids
    ).fetchone()
    waits = row["waits"] or 0
    wait = max(at_least_ms, min(FIRST_WAIT_MS << min(waits, 20), LONGEST_WAIT_MS))
    db.execute(
        "UPDATE observation_queue SET leased_until = 0, attempts = max(0, attempts - 1), waits = ?,"
        " not_before = ?, trouble = ?,"
        f" away_since = coalesce(away_since, ?) WHERE id IN ({marks(ids)})",
        (waits + 1, now + wait, trouble, now, *ids),
    )
    return now + wait


def away_since(db: Connection, ids: Sequence[int]) -> int | None:
    """Since when these wait for the model."""
    row = db.execute(
        f"SELECT min(away_since) AS since FROM observation_queue WHERE id IN ({marks(ids)})", ids
    ).fetchone()
    return None if row["since"] is None else int(row["since"])


def fail(db: Connection, ids: Sequence[int], trouble: str) -> list[int]:
    """The attempt came to nothing. Returns those that have had all their attempts; they stay leased, for the
    caller to decide what becomes of them."""
    db.execute(f"UPDATE observation_queue SET trouble = ? WHERE id IN ({marks(ids)})", (trouble, *ids))
    spent = _exhausted(db, ids)
    others = [one for one in ids if one not in spent]
    db.execute(f"UPDATE observation_queue SET leased_until = 0 WHERE id IN ({marks(others)})", others)
    return spent


def _exhausted(db: Connection, ids: Sequence[int]) -> list[int]:
    rows = db.execute(
        f"SELECT id FROM observation_queue WHERE attempts >= ? AND id IN ({marks(ids)})", (ATTEMPTS, *ids)
    )
    return [row["id"] for row in rows]


def skip(db: Connection, ids: Sequence[int], reason: str, now: int) -> None:
    db.execute(
        "UPDATE observation_queue SET processed_at_epoch = ?, skipped = ?, leased_until = 0"
        f" WHERE id IN ({marks(ids)})",
        (now, reason, *ids),
    )


def take_over(db: Connection, now: int) -> None:
    """A new worker is the only one, so whatever is leased belonged to one that died. What took three workers
    down with it is not tried a fourth time."""
    db.execute("UPDATE observation_queue SET leased_until = 0 WHERE leased_until > 0")
    db.execute(
        "UPDATE observation_queue SET processed_at_epoch = ?,"
        " skipped = 'the worker ended three times while it was at it'"
        " WHERE processed_at_epoch IS NULL AND attempts >= ?",
        (now, ATTEMPTS),
    )


def tidy(db: Connection, now: int) -> None:
    """What was observed is kept for a week: a later observation may cite it."""
    db.execute("DELETE FROM observation_queue WHERE processed_at_epoch < ?", (now - KEPT_MS,))


def give_up(db: Connection, now: int, synthesizer: str) -> None:
    """Where nobody is to observe anything, nothing waits for longer than a week."""
    db.execute(
        "UPDATE observation_queue SET processed_at_epoch = ?1, skipped = 'the synthesizer was off'"
        " WHERE processed_at_epoch IS NULL AND created_at_epoch < ?2 AND session_id IN"
        " (SELECT id FROM sessions WHERE coalesce(synthesizer, ?3) = 'off')",
        (now, now - KEPT_MS, synthesizer),
    )


def waiting(db: Connection) -> tuple[int, int | None]:
    """How many items wait, and since when."""
    row = db.execute(
        "SELECT count(*) AS number, min(created_at_epoch) AS oldest FROM observation_queue"
        " WHERE processed_at_epoch IS NULL"
    ).fetchone()
    return row["number"], row["oldest"]


def observed(db: Connection, since: int) -> dict[str, int]:
    """How many items each synthesizer observed from a moment on; under 'skipped', what was given up."""
    rows = db.execute(
        "SELECT iif(skipped IS NULL, processed_by, 'skipped') AS by, count(*) AS number"
        " FROM observation_queue WHERE processed_at_epoch >= ? AND skipped IS NOT ? GROUP BY by ORDER BY by",
        (since, FORGOTTEN),
    )
    return {row["by"]: row["number"] for row in rows}


def skipped(db: Connection) -> list[tuple[str, int]]:
    """(reason, how many) of what was given up in the last week."""
    rows = db.execute(
        "SELECT skipped, count(*) AS number FROM observation_queue WHERE skipped <> ?"
        " GROUP BY skipped ORDER BY number DESC, skipped",
        (FORGOTTEN,),
    )
    return [(row["skipped"], row["number"]) for row in rows]


def troubles(db: Connection) -> list[tuple[str, str, int, int]]:
    """(what became of them, why, how many, when): 'waiting' for the model since then, or last observed then
    by 'local' in its place. What waits still is trouble now, so it comes first; then the latest."""
    rows = db.execute(
        "SELECT coalesce(processed_by, 'waiting') AS state, trouble, count(*) AS number,"
        " coalesce(max(processed_at_epoch), min(created_at_epoch)) AS at"
        " FROM observation_queue WHERE trouble IS NOT NULL AND skipped IS NULL"
        " GROUP BY state, trouble ORDER BY state = 'waiting' DESC, at DESC, trouble"
    )
    return [(row["state"], row["trouble"], row["number"], row["at"]) for row in rows]


def _item(row: Row) -> Item:
    from backstory.model import Item

    return Item(
        id=row["id"],
        session_id=row["session_id"],
        tool=row["tool_name"],
        input=json.loads(row["tool_input"]),
        output=json.loads(row["tool_output"]),
        at=row["created_at_epoch"],
        memory_id=row["memory_id"],
        action=row["action"],
    )
