"""Memories to be found, and what a search finds of them."""

from __future__ import annotations

import sqlite3
from typing import Any

from backstory.memory import salience
from backstory.model import Answer, Filters
from backstory.paths import place
from backstory.recall.answer import answer as search
from backstory.recall.index import Index
from backstory.store import memories, projects, sessions
from backstory.store.file.connection import transaction

NOW = 1_800_000_000_000

DAY = salience.DAY_MS


def found(
    db: sqlite3.Connection, project: str, query: str, sector: str | None = None, **filters: Any
) -> list[str]:
    """By words alone."""
    answer = search(Index(None), db, project, query, now=NOW, filters=Filters(sector=sector, **filters))
    return [hit.memory.content for hit in answer.hits]


def add(db: sqlite3.Connection, project: str, text: str, session: str | None = None, **more: Any) -> str:
    """A memory of any kind."""
    here = place(project)
    values: dict[str, Any] = {
        "kind": "note",
        "sector": "semantic",
        "tier": "project",
        "importance": 0.5,
        "now": NOW,
    } | more
    with transaction(db):
        project_id = projects.ensure(db, here, NOW)
        if session:
            sessions.start(db, session, project_id, project, here, NOW)
        return memories.add(db, project_id=project_id, session_id=session, content=text, **values)


def texts(answer: Answer) -> list[str]:
    return [hit.memory.content for hit in answer.hits]
