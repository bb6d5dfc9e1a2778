"""Noting what a model was told where it asked: the replies of searches. What was told unasked is noted by who
told it."""

from __future__ import annotations

from collections.abc import Sequence

from backstory import log, paths
from backstory.errors import BackstoryError
from backstory.model import tokens
from backstory.safety.clean import clean
from backstory.store import projects, tellings
from backstory.store.file.connection import (
    Connection,
    may_be_unavailable,
    transaction,
    unhurried,
    wait_at_most,
)

ABOUT = 200  # characters of a query
PATIENCE = 0.3  # seconds that a reply may be late for this


def note_search(
    db: Connection,
    folder: str,
    session_id: str | None,
    tool: str,
    query: str,
    text: str,
    ids: Sequence[str],
    now: int,
) -> str:
    """The text, as it goes to the model. That a store is too busy to note it is no reason to withhold it."""
    try:
        here = projects.at(db, paths.place(folder))
        if here and session_id:
            with may_be_unavailable():
                unhurried(db)
                wait_at_most(db, PATIENCE)
                with transaction(db):
                    tellings.note(
                        db,
                        session_id,
                        here.id,
                        tellings.SEARCH,
                        text,
                        ids,
                        tokens=tokens(text),
                        at=now,
                        about=clean(query, ABOUT),
                        reason={"tool": tool, "found": len(ids)},
                    )
    except (BackstoryError, OSError) as error:
        log.write("warning", f"a reply was not noted: {error}")
    return text
