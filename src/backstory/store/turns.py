"""Turns, and the pieces they are found by. What a turn is made of is said in memory/turn.py."""

from __future__ import annotations

import json

from backstory.memory import terms
from backstory.memory import turn as turns
from backstory.store import memories, projects, sessions
from backstory.store.file.connection import marks, transaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from sqlite3 import Connection, Row

    from backstory.memory.turn import Turn

IMPORTANCE = 0.6
TITLE = 100  # characters
SILENT_MS = sessions.SILENT_MS


def latest(db: Connection, session_id: str, at: int | None = None) -> Turn | None:
    """The turn that a session is in, or was in last; or was in at that time."""
    row = db.execute(
        f"{_SELECT} WHERE t.session_id = ?1 AND (?2 IS NULL OR t.started_at <= ?2)"
        " ORDER BY t.started_at DESC, t.row DESC LIMIT 1",
        (session_id, at),
    ).fetchone()
    return _turn(row) if row else None


def of_session(db: Connection, session_id: str, last: int = 1_000) -> list[Turn]:
    """The last turns of a session that nobody forgot, oldest first."""
    rows = db.execute(
        f"{_SELECT} WHERE t.session_id = ? AND m.deleted_at IS NULL AND m.valid_until IS NULL"
        " ORDER BY t.started_at DESC, t.row DESC LIMIT ?",
        (session_id, last),
    ).fetchall()
    return [_turn(row) for row in reversed(rows)]


def by_ids(db: Connection, ids: Sequence[str]) -> dict[str, Turn]:
    rows = db.execute(f"{_SELECT} WHERE m.id IN ({marks(ids)})", list(ids))
    return {row["id"]: _turn(row) for row in rows}


def holding(db: Connection, memory_id: str) -> str | None:
    """The id of the turn that a memory belongs to."""
    row = db.execute(f"SELECT ({memories.TURN}) AS turn FROM memories WHERE id = ?", (memory_id,)).fetchone()
    return row["turn"] if row else None


def save(db: Connection, turn: Turn, project_id: str) -> None:
    """Store a turn as it is now, with its memory and its pieces. What comes late to a turn that was forgotten
    is forgotten with it."""
    content, title = turns.told(turn), turn.asked[:TITLE] or None
    if turn.row is None:
        turn.row = memories.row_of(db, turn.id)
    if turn.row is None:
        turn.id = memories.add(
            db,
            memory_id=turn.id,
            project_id=project_id,
            session_id=turn.session_id,
            kind="turn",
            sector="episodic",
            tier="project",
            title=title,
            content=content,
            files=turn.edited,
            importance=IMPORTANCE,
            source="session",
            now=turn.started_at,
        )
        turn.row = memories.row_of(db, turn.id)
        db.execute("UPDATE memories SET updated_at = ? WHERE row = ?", (turn.ended_at, turn.row))
        _forget_with_its_session(db, turn)
        _take(db, turn)
    else:
        db.execute(
            "UPDATE memories SET title = ?, content = ?, files = ?, updated_at = max(updated_at, ?),"
            " words = ? WHERE row = ?",
            (
                title,
                content,
                json.dumps(turn.edited, ensure_ascii=False),
                turn.ended_at,
                terms.count_words(content),
                turn.row,
            ),
        )
    db.execute(
        "INSERT INTO turns (row, session_id, state, started_at, ended_at, record) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (row) DO UPDATE SET state = excluded.state, started_at = excluded.started_at,"
        " ended_at = excluded.ended_at, record = excluded.record",
        (turn.row, turn.session_id, turn.state, turn.started_at, turn.ended_at, turn.record()),
    )
    put_pieces(db, turn, project_id)
    forget_late(db, turn.id)


def forget_late(db: Connection, turn_id: str) -> None:
    """What came to a turn that was forgotten is forgotten with it."""
    row = db.execute("SELECT deleted_at FROM memories WHERE id = ?", (turn_id,)).fetchone()
    if row is not None and row["deleted_at"] is not None:
        from backstory.store import forgetting  # mostly nothing is, and a hook that drains loads little

        forgetting.forget_late(db, turn_id, row["deleted_at"])


def _forget_with_its_session(db: Connection, turn: Turn) -> None:
    """Where the turn began before that."""
    found = db.execute(
        "SELECT min(at) FROM forgotten_sessions WHERE session_id = ? AND at >= ?",
        (turn.session_id, turn.started_at),
    )
    at: int | None = found.fetchone()[0]
    if at is not None:
        db.execute("UPDATE memories SET deleted_at = ? WHERE row = ?", (at, turn.row))


def _take(db: Connection, turn: Turn) -> None:
    """What was stored before its turn, or lost it in a recovery, is of the turn of its time."""
    for table, of_time in (
        ("memories", "kind = 'tool' AND created_at"),
        ("prompts", "created_at"),
        ("observation_queue", "created_at_epoch"),
    ):
        db.execute(
            f"UPDATE {table} SET turn = ? WHERE session_id = ? AND turn IS NULL"
            f" AND {of_time} BETWEEN ? AND ?",
            (turn.id, turn.session_id, turn.started_at, turn.ended_at),
        )


def give(db: Connection, memory_id: str, turn_id: str | None) -> None:
    db.execute("UPDATE memories SET turn = ? WHERE id = ? AND turn IS NULL", (turn_id, memory_id))


def mend_pieces(db: Connection) -> None:
    """Those of all turns, where some may be missing."""
    for row in db.execute(f"{_SELECT} ORDER BY t.row").fetchall():
        put_pieces(db, _turn(row), row["project_id"])


def leave(db: Connection, turn: Turn) -> None:
    """The turn says nothing and is not stored, so what was of it is of none."""
    for table in ("memories", "prompts", "observation_queue"):
        db.execute(f"UPDATE {table} SET turn = NULL WHERE turn = ?", (turn.id,))


def put_pieces(db: Connection, turn: Turn, project_id: str) -> None:
    """Only what is new is written: most of a turn that goes on stays as it was."""
    wanted = turns.pieces(turn, projects.root_of(db, project_id))
    had = db.execute("SELECT row, part, text FROM turn_pieces WHERE turn = ? ORDER BY row", (turn.row,))
    kept = 0
    gone: list[int] = []
    for row in had:
        if not gone and kept < len(wanted) and (row["part"], row["text"]) == wanted[kept]:
            kept += 1
        else:
            gone.append(row["row"])
    db.execute(f"DELETE FROM turn_pieces WHERE row IN ({marks(gone)})", gone)
    new = wanted[kept:]
    if not new:
        return
    first = projects.next_row(db, project_id, len(new))
    db.executemany(
        "INSERT INTO turn_pieces (row, turn, thread, part, text, words, terms)"
        " VALUES (?1, ?2, (SELECT number FROM sessions WHERE id = ?3), ?4, ?5, ?6, ?7)",
        [
            (
                first + place,
                turn.row,
                turn.session_id,
                part,
                text,
                terms.count_words(text),
                # Its day is found with the first piece; in all of them it would say nothing.
                terms.index_terms(text) if place + kept else terms.line_terms(text, "turn", turn.started_at),
            )
            for place, (part, text) in enumerate(new)
        ],
    )


def texts(db: Connection, rows: Sequence[int]) -> dict[int, tuple[int, str]]:
    """(part, text) of pieces by their row."""
    found = db.execute(f"SELECT row, part, text FROM turn_pieces WHERE row IN ({marks(rows)})", list(rows))
    return {row["row"]: (row["part"], row["text"]) for row in found}


def close(db: Connection, session_id: str) -> None:
    """The session is over, and so is the turn that it was in."""
    turn = latest(db, session_id)
    if turn is not None and turn.state == turns.OPEN:
        row = db.execute("SELECT project_id FROM memories WHERE id = ?", (turn.id,)).fetchone()
        turn.state = turns.INTERRUPTED
        save(db, turn, row["project_id"])


def close_silent(db: Connection, now: int) -> None:
    """Sessions and turns of which nothing was heard for a day were interrupted: Claude Code says nothing when
    it dies."""
    if not sessions.any_silent(db, now):
        return
    with transaction(db):
        db.execute(
            "UPDATE sessions SET status = 'interrupted', ended_at = last_event_at"
            " WHERE status = 'active' AND last_event_at < ?",
            (now - SILENT_MS,),
        )
        silent = f"{_SELECT} WHERE t.state = 'open' AND t.ended_at < ?"
        for row in db.execute(silent, (now - SILENT_MS,)).fetchall():
            turn = _turn(row)
            turn.state = turns.INTERRUPTED
            save(db, turn, row["project_id"])


_SELECT = "SELECT t.*, m.id, m.project_id FROM turns t JOIN memories m ON m.row = t.row"


def _turn(row: Row) -> Turn:
    turn = turns.Turn(row["session_id"], row["started_at"])
    turn.row, turn.id, turn.state, turn.ended_at = row["row"], row["id"], row["state"], row["ended_at"]
    turn.read_record(row["record"])
    return turn
