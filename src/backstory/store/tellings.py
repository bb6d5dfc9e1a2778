"""What a model was told, when and why.

Hooks write here, so values are plain classes: a hook does not load dataclasses.
"""

from __future__ import annotations

import json

from backstory.store.file.connection import tuples

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from backstory.store.file.connection import Connection

# The moments at which a model is told something.
START, COMPACT, PROMPT, FILE, FAILURE, SUBAGENT, SEARCH = (
    "start compact prompt file failure subagent search".split()
)


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
