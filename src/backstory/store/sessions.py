"""Sessions and what the user said in them.

Events may be stored late or out of order, so every change here compares times instead of trusting order.
"""

from __future__ import annotations

import json

from backstory.memory.turn import OWN_COMMAND, SPACES
from backstory.store import counts
from backstory.store.file.connection import marks, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from sqlite3 import Connection, Row

    from backstory.model import Session
    from backstory.paths import Place

SILENT_MS = 24 * 3600 * 1000
CLEARING_MS = 2_000


def project_of(db: Connection, session_id: str) -> str | None:
    row = db.execute("SELECT project_id FROM sessions WHERE id = ?", (session_id,)).fetchone()
    return str(row["project_id"]) if row else None


def folder_of(db: Connection, session_id: str) -> str | None:
    """Where it was started."""
    row = db.execute("SELECT cwd FROM sessions WHERE id = ?", (session_id,)).fetchone()
    return str(row["cwd"]) if row else None


def start(db: Connection, session_id: str, project_id: str, cwd: str, place: Place, now: int) -> None:
    db.execute(
        "INSERT INTO sessions (id, project_id, cwd, branch, head, started_at, last_event_at, number)"
        " SELECT ?, ?, ?, ?, ?, ?, ?, coalesce(max(number), 0) + 1 FROM sessions WHERE true"
        " ON CONFLICT (id) DO NOTHING",
        (session_id, project_id, cwd, place.branch, place.head, now, now),
    )


def touch(db: Connection, session_id: str, at: int) -> None:
    """Something happened. An interrupted session was only thought dead, so a sign of life revives it."""
    db.execute(
        "UPDATE sessions SET started_at = min(started_at, ?1), last_event_at = max(last_event_at, ?1),"
        " ended_at = iif(status = 'interrupted' AND last_event_at < ?1, NULL, ended_at),"
        " status = iif(status = 'interrupted' AND last_event_at < ?1, 'active', status)"
        " WHERE id = ?2",
        (at, session_id),
    )


def reopen(db: Connection, session_id: str, at: int) -> None:
    """A prompt or a resume after the end goes on with the session; one from before the end does not."""
    db.execute(
        "UPDATE sessions SET opened_at = max(opened_at, ?2),"
        " status = iif(coalesce(ended_at, ?2) <= ?2, 'active', status),"
        " ended_at = iif(ended_at <= ?2, NULL, ended_at) WHERE id = ?1",
        (session_id, at),
    )


def end(db: Connection, session_id: str, at: int) -> None:
    """Ended, unless something newer has been seen already."""
    db.execute(
        "UPDATE sessions SET status = 'completed', ended_at = ?1 WHERE id = ?2 AND opened_at <= ?1"
        " AND (status = 'interrupted' OR coalesce(ended_at, 0) <= ?1)",
        (at, session_id),
    )


def any_silent(db: Connection, now: int) -> bool:
    """Is there anything to mark? Asking takes no lock, and mostly the answer is no."""
    found = db.execute(
        "SELECT 1 FROM sessions WHERE status = 'active' AND last_event_at < ? LIMIT 1", (now - SILENT_MS,)
    )
    return found.fetchone() is not None


def choose(db: Connection, session_id: str, synthesizer: str) -> None:
    """The session wants to be observed like this, whatever the settings say."""
    db.execute(
        "UPDATE sessions SET synthesizer = ?1 WHERE id = ?2 AND synthesizer IS NOT ?1",
        (synthesizer, session_id),
    )


def attend(db: Connection, session_id: str, attended: bool) -> None:
    """Whether a person is there, as the client says now. Mostly that is known, and asking takes no lock."""
    found = db.execute("SELECT 1 FROM sessions WHERE id = ? AND attended <> ?", (session_id, attended))
    if found.fetchone():
        db.execute("UPDATE sessions SET attended = ? WHERE id = ?", (attended, session_id))


def following(db: Connection, session_id: str) -> str:
    """The session that this one has become. `/clear` ends a session and begins another at once, in the same
    folder, and a server that was started for the first lives on with its id."""
    for _ in range(1000):
        row = db.execute(
            "SELECT next.id FROM sessions this JOIN sessions next ON next.project_id = this.project_id"
            " AND next.cwd IS this.cwd AND next.id <> this.id"
            " AND next.started_at BETWEEN this.ended_at AND this.ended_at + ?"
            " WHERE this.id = ? ORDER BY next.started_at LIMIT 1",
            (CLEARING_MS, session_id),
        ).fetchone()
        if row is None:
            break
        session_id = row["id"]
    return session_id


def keep_prompt(db: Connection, session_id: str, prompt: str, at: int, turn: str | None = None) -> int:
    """The number of what the user said."""
    row = db.execute(
        "INSERT INTO prompts (session_id, turn, prompt, created_at) VALUES (?, ?, ?, ?) RETURNING id",
        (session_id, turn, prompt, at),
    ).fetchone()
    return int(row["id"])


def has_said(db: Connection, session_id: str, prompt: str) -> bool:
    row = db.execute("SELECT 1 FROM prompts WHERE session_id = ? AND prompt = ?", (session_id, prompt))
    return row.fetchone() is not None


def prompts_like(db: Connection, session_id: str, prompt: str, at: int, within: int) -> list[int]:
    """The numbers of what the user said at about that time in the same words, the nearest first."""
    rows = db.execute(
        "SELECT id FROM prompts WHERE session_id = ?1 AND created_at BETWEEN ?2 - ?3 AND ?2 + ?3"
        " AND prompt = ?4 ORDER BY abs(created_at - ?2), id",
        (session_id, at, within, prompt),
    )
    return [int(row["id"]) for row in rows]


def starting_with(db: Connection, prefix: str, *, forgotten: bool = False) -> list[Session]:
    """Sessions by their id, or by the beginning of it: nobody types 36 characters. The `forgotten` ones too
    are for who erases them."""
    rows = db.execute(
        f"{_SELECT} WHERE substr(s.id, 1, ?) = ? AND (? OR {SHOWN}) ORDER BY s.id LIMIT 5",
        (len(prefix), prefix, forgotten),
    )
    return [_session(row) for row in rows]


def under(db: Connection, folder: str) -> list[str]:
    """Those that began in a folder, or below it."""
    rows = db.execute(
        "SELECT id FROM sessions WHERE substr(cwd || '/', 1, length(?1)) = ?1 ORDER BY number",
        (f"{folder.rstrip('/')}/",),
    )
    return [row["id"] for row in rows]


def by_ids(db: Connection, session_ids: list[str]) -> dict[str, Session]:
    rows = db.execute(f"{_SELECT} WHERE s.id IN ({marks(session_ids)})", session_ids)
    return {row["id"]: _session(row) for row in rows}


def recent(db: Connection, project_id: str, limit: int) -> list[Session]:
    rows = db.execute(
        f"{_SELECT} WHERE s.project_id = ? AND {SHOWN} ORDER BY s.started_at DESC LIMIT ?",
        (project_id, limit),
    )
    return [_session(row) for row in rows]


def prompts(db: Connection, session_id: str) -> list[tuple[int, str]]:
    """(when, what) the user said, as far as nobody forgot it."""
    return _prompts(db, session_id, _REMEMBERED)


def own_commands(db: Connection, session_id: str) -> list[tuple[int, str]]:
    """(when, what) the user typed to run a command of backstory's; all else here leaves that out."""
    return _prompts(db, session_id, _OWN_COMMAND)


def _prompts(db: Connection, session_id: str, condition: str) -> list[tuple[int, str]]:
    rows = db.execute(
        f"SELECT created_at, prompt FROM prompts p WHERE session_id = ? AND {condition}"
        " ORDER BY created_at, id",
        (session_id,),
    )
    return [(row["created_at"], row["prompt"]) for row in rows]


def cut_own_commands(db: Connection, session_id: str, typed: str) -> None:
    """Of commands with these words behind them keep the command alone: the note has the words now, and where
    it is erased they must not stay here."""
    rows = db.execute(
        f"SELECT id, prompt FROM prompts p WHERE session_id = ? AND {_OWN_COMMAND}", (session_id,)
    ).fetchall()
    db.executemany(
        "UPDATE prompts SET prompt = ? WHERE id = ?",
        [(row["prompt"].split()[0], row["id"]) for row in rows if typed in row["prompt"]],
    )


def ids(db: Connection) -> set[str]:
    return {row["id"] for row in db.execute("SELECT id FROM sessions")}


def count(db: Connection) -> int:
    return int(db.execute("SELECT count(*) FROM sessions").fetchone()[0])


def last_event(db: Connection) -> int | None:
    at = db.execute("SELECT max(last_event_at) FROM sessions").fetchone()[0]
    return None if at is None else int(at)


def remembered(db: Connection, project_id: str, but: str = "") -> tuple[int, int | None]:
    """How many (other) sessions of a project left a turn, and when the first of them began."""
    count, first = db.execute(
        "SELECT count(*), min(s.started_at) FROM sessions s WHERE s.project_id = ? AND s.id <> ? AND EXISTS"
        " (SELECT 1 FROM turns t JOIN memories m ON m.row = t.row"
        " WHERE t.session_id = s.id AND m.deleted_at IS NULL)",
        (project_id, but),
    ).fetchone()
    return int(count), first


def unknown(db: Connection, session_ids: Sequence[str]) -> int:
    """How many of these the store has nothing of."""
    rows = db.execute(
        "SELECT count(*) FROM json_each(?) j"
        " WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = j.value)",
        (json.dumps(list(session_ids)),),
    )
    return int(rows.fetchone()[0])


def purge(db: Connection, session_id: str) -> None:
    """Remove a session with all it made, and its project if nothing else is in it."""
    project_id = project_of(db, session_id)
    db.execute("DELETE FROM events WHERE session_id = ?", (session_id,))
    db.execute("DELETE FROM memories WHERE session_id = ?", (session_id,))
    db.execute("DELETE FROM archived_memories WHERE session_id = ?", (session_id,))
    db.execute("DELETE FROM sessions WHERE id = ?", (session_id,))
    db.execute(
        "DELETE FROM projects WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM sessions WHERE project_id = ?1)"
        " AND NOT EXISTS (SELECT 1 FROM memories WHERE project_id = ?1)"
        " AND NOT EXISTS (SELECT 1 FROM archived_memories WHERE project_id = ?1)"
        " AND NOT EXISTS (SELECT 1 FROM documents WHERE project_id = ?1)"
        " AND NOT EXISTS (SELECT 1 FROM docmem_nodes WHERE project = projects.number)",
        (project_id,),
    )


SHOWN = counts.SESSION
_OWN_COMMAND = f"ltrim(p.prompt, '{SPACES}') GLOB '{OWN_COMMAND}*'"
_REMEMBERED = f"p.forgotten_at IS NULL AND NOT {_OWN_COMMAND}"
_SELECT = (
    f"SELECT s.*, {counts.of_session(counts.TURN)} AS turns, {counts.of_session(counts.MEMORY)} AS memories"
    " FROM sessions s"
)


def _session(row: Row) -> Session:
    from backstory.model import Session

    return value(Session, row)
