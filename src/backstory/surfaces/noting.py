"""Noting what a model was told, for `backstory why` and `stats`."""

from __future__ import annotations

from collections.abc import Sequence

from backstory import log, paths
from backstory.errors import BackstoryError
from backstory.gist import tokens
from backstory.safety.clean import clean
from backstory.store import life, projects, sessions, tellings
from backstory.store.file.connection import (
    Connection,
    may_be_unavailable,
    transaction,
    unhurried,
    wait_at_most,
)

LONGEST_QUERY = 200  # characters that are kept of one
PATIENCE = 0.3  # seconds that a reply may be late for this


def project_of(db: Connection, session_id: str, folder: str) -> str | None:
    """The project of a session; of one that is not stored yet, the project at its folder."""
    return sessions.project_of(db, session_id) or projects.id_at(db, paths.place(folder))


def note_search(
    db: Connection,
    folder: str,
    session_id: str | None,
    tool: str,
    query: str,
    text: str,
    ids: Sequence[str],
    now: int,
    *,
    recalled: bool = False,
) -> None:
    """What a search was answered with; memories that it recalled are worth more from now on. That a store is
    too busy for it, or a disk slow, is no reason to withhold the reply."""
    try:
        unhurried(db)
        wait_at_most(db, PATIENCE)
        project_id = project_of(db, session_id, folder) if session_id else None
        about = clean(query, LONGEST_QUERY)
        with may_be_unavailable(), transaction(db):
            if recalled:
                life.recall(db, ids, session_id, now)
            if session_id and project_id:
                reason = {"tool": tool, "found": len(ids)}
                tellings.note(
                    db,
                    session_id,
                    project_id,
                    tellings.SEARCH,
                    text,
                    ids,
                    tokens=tokens(text),
                    at=now,
                    about=about,
                    reason=reason,
                )
    except (BackstoryError, OSError) as error:
        log.write("warning", f"a reply was not noted: {error}")
