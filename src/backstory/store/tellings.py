"""What a model was told, when and why.

Hooks write here, so values are plain classes: a hook does not load dataclasses.
"""

from __future__ import annotations

import json

from backstory.store import sessions
from backstory.store.file.connection import tuples

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from backstory.model import TellingRecord
    from backstory.store.file.connection import Connection

# The moments at which a model is told something.
START, COMPACT, PROMPT, FILE, FAILURE, SEARCH = "start compact prompt file failure search".split()


def note(
    db: Connection,
    session_id: str,
    project_id: str,
    moment: str,
    text: str,
    ids: Sequence[str],
    *,
    tokens: int,
    at: int,
    about: str = "",
    reason: Mapping[str, object] | None = None,
) -> None:
    """A memory that was erased a moment ago has nothing to link."""
    (number,) = (
        tuples(db)
        .execute(
            "INSERT INTO tellings (session_id, project_id, at, moment, about, reason, tokens, text)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
            (session_id, project_id, at, moment, about, json.dumps(reason or {}), tokens, text),
        )
        .fetchone()
    )
    db.execute(
        "INSERT OR IGNORE INTO told_memories (telling_id, memory_id)"
        " SELECT ?, m.id FROM json_each(?) told JOIN memories m ON m.id = told.value",
        (number, json.dumps(list(ids))),
    )


def told(db: Connection, session_id: str) -> set[str]:
    """The memories that a session knows already."""
    rows = tuples(db).execute(
        "SELECT DISTINCT t.memory_id FROM tellings s JOIN told_memories t ON t.telling_id = s.id"
        " WHERE s.session_id = ?",
        (session_id,),
    )
    return {memory_id for (memory_id,) in rows}


def count(db: Connection, session_id: str, moment: str) -> int:
    rows = tuples(db).execute(
        "SELECT count(*) FROM tellings WHERE session_id = ? AND moment = ?", (session_id, moment)
    )
    return int(rows.fetchone()[0])


def total(db: Connection, *, session_id: str | None = None, since: int = 0) -> tuple[int, int]:
    """How many texts were told, and how many tokens they are: to one session, or since then to all."""
    which = "session_id = ?" if session_id is not None else "at >= ?"
    rows = tuples(db).execute(
        f"SELECT count(*), coalesce(sum(tokens), 0) FROM tellings WHERE {which}",
        (session_id if session_id is not None else since,),
    )
    texts, tokens = rows.fetchone()
    return int(texts), int(tokens)


# --- reading ------------------------------------------------------------------------------------------------

_SELECT = (
    "SELECT t.*, coalesce((SELECT json_group_array(m.memory_id) FROM told_memories m"
    " WHERE m.telling_id = t.id), '[]') AS ids, EXISTS (SELECT 1 FROM told_memories f JOIN memories m"
    " ON m.id = f.memory_id WHERE f.telling_id = t.id AND m.deleted_at IS NOT NULL) AS is_forgotten"
    " FROM tellings t"
)
# What was told to a session that was forgotten is not told of either; see sessions.SHOWN.
_SHOWN = f"NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = t.session_id AND NOT {sessions.SHOWN})"
_CHOSEN = (
    f"t.at >= ?1 AND (?2 IS NULL OR t.project_id = ?2) AND (?3 IS NULL OR t.session_id = ?3) AND {_SHOWN}"
)


def counts(
    db: Connection, at: int, project_id: str | None = None, session_id: str | None = None
) -> dict[str, dict[str, int]]:
    """How often something was told at each moment, and how many tokens that was; chosen as in `since`."""
    rows = tuples(db).execute(
        f"SELECT t.moment, count(*), sum(t.tokens) FROM tellings t WHERE {_CHOSEN} GROUP BY t.moment",
        (at, project_id, session_id),
    )
    return {moment: {"times": times, "tokens": tokens} for moment, times, tokens in rows}


def since(
    db: Connection, at: int, project_id: str | None = None, session_id: str | None = None
) -> list[TellingRecord]:
    """What was told from then on: of a project, of a session, or of all; the oldest first."""
    return _read(db, _CHOSEN, (at, project_id, session_id))


def of_memory(db: Connection, memory_id: str) -> list[TellingRecord]:
    told_it = "t.id IN (SELECT telling_id FROM told_memories WHERE memory_id = ?)"
    return _read(db, f"{told_it} AND {_SHOWN}", (memory_id,))


def by_number(db: Connection, number: int) -> TellingRecord | None:
    return next(iter(_read(db, f"t.id = ? AND {_SHOWN}", (number,))), None)


def _read(db: Connection, where: str, values: Sequence[object]) -> list[TellingRecord]:
    from backstory.model import TellingRecord

    rows = db.execute(f"{_SELECT} WHERE {where} ORDER BY t.at, t.id", values)
    return [
        TellingRecord(
            id=row["id"],
            session_id=row["session_id"],
            project_id=row["project_id"],
            at=row["at"],
            moment=row["moment"],
            about=row["about"],
            reason=json.loads(row["reason"]),
            tokens=row["tokens"],
            text="" if row["is_forgotten"] else row["text"],
            memory_ids=tuple(json.loads(row["ids"])),
        )
        for row in rows
    ]


# --- erasing ------------------------------------------------------------------------------------------------

# Their texts have lines about whole sessions, which are of no memory.
_OF_SESSIONS = "(moment IN ('start', 'compact') OR reason ->> 'tool' = 'memory_timeline')"


def erase_chosen(db: Connection) -> None:
    """Memories are about to be erased (temp.chosen_memories of store/removal.py): what was told in an
    erased turn goes; what told one of them elsewhere loses its text."""
    db.execute(
        "DELETE FROM tellings WHERE id IN (SELECT s.id FROM temp.chosen_memories c"
        " JOIN turns t ON t.row = c.key JOIN tellings s ON s.session_id = t.session_id"
        " AND s.at >= t.started_at AND s.at < coalesce((SELECT min(later.started_at) FROM turns later"
        " WHERE later.session_id = t.session_id AND later.started_at > t.started_at), s.at + 1))"
    )
    db.execute(
        "UPDATE tellings SET text = '' FROM (SELECT m.project_id, min(m.created_at) AS at"
        " FROM temp.chosen_memories c JOIN memories m ON m.row = c.key WHERE m.kind <> 'tool'"
        " GROUP BY m.project_id) erased"
        f" WHERE erased.project_id = tellings.project_id AND erased.at <= tellings.at AND {_OF_SESSIONS}"
    )
    of_chosen = "FROM temp.chosen_memories c JOIN memories m ON m.row = c.key"
    rows = tuples(db).execute(
        f"SELECT m.id {of_chosen} UNION ALL SELECT a.id {of_chosen} JOIN archived_memories a ON a.turn = m.id"
    )
    blank(db, [memory_id for (memory_id,) in rows])


def blank(db: Connection, ids: Sequence[str]) -> None:
    """These memories are erased: so is every text that told one of them."""
    given = "IN (SELECT value FROM json_each(?))"
    db.execute(
        "UPDATE tellings SET text = '' WHERE id IN"
        f" (SELECT telling_id FROM told_memories WHERE memory_id {given})",
        (json.dumps(list(ids)),),
    )
    db.execute(f"DELETE FROM told_memories WHERE memory_id {given}", (json.dumps(list(ids)),))
