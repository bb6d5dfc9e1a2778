"""A note: something a person or a model wants remembered, in their own words."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from recollect import paths
from recollect.capture.event import clean
from recollect.errors import BadInput
from recollect.model import SECTORS, Memory
from recollect.store import memories, projects, salience, sessions
from recollect.store.connection import transaction

MAX_CONTENT = 20_000
MAX_TAGS, MAX_TAG = 20, 60
DEFAULT_SECTOR = "semantic"
DEFAULT_IMPORTANCE = 0.5


@dataclass(frozen=True, slots=True)
class Kept:
    memory: Memory
    is_new: bool  # False: the same was known already and has been reinforced

    def __str__(self) -> str:
        memory = self.memory
        if self.is_new:
            return f"Memory created: {memory.id} (sector: {memory.sector}, salience: {memory.salience:.2f})"
        return f"Memory reinforced: {memory.id} (new salience: {memory.salience:.2f})"


def keep(
    db: sqlite3.Connection,
    cwd: str,
    content: str,
    *,
    now: int,
    session_id: str | None = None,
    sector: str | None = None,
    tags: Sequence[str] = (),
    importance: float | None = None,
) -> Kept:
    """Remember a note for this folder's project; one that is known already is reinforced instead."""
    weight = DEFAULT_IMPORTANCE if importance is None else importance
    check(content, sector, tags, weight)
    text = clean(content.strip(), MAX_CONTENT).strip()
    if not re.sub(r"\[redacted:[a-z-]+\]", "", text).strip():
        raise BadInput("nothing is left of it without what is private or secret; say it without that")
    content_hash = hashlib.sha256(text.encode()).hexdigest()
    place = paths.place(cwd)
    with transaction(db):
        project_id = projects.ensure(db, place, now)
        if session_id and sessions.project_of(db, session_id) is None:
            sessions.start(db, session_id, project_id, cwd, place, now)
        known = memories.same(db, project_id, "note", content_hash)
        if known:
            memories.reinforce(db, known, salience.REINFORCED, session_id, now)
        memory_id = known or memories.add(
            db,
            project_id=project_id,
            session_id=session_id,
            kind="note",
            sector=sector or DEFAULT_SECTOR,
            tier="project",
            content=text,
            tags=[clean(tag) for tag in tags],
            importance=weight,
            content_hash=content_hash,
            now=now,
        )
        memory = memories.get(db, memory_id, now)
    assert memory is not None  # noqa: S101  it was stored a line ago, in the same transaction
    return Kept(memory, is_new=known is None)


def check(content: str, sector: str | None, tags: Sequence[str], importance: float) -> None:
    if not content.strip():
        raise BadInput("the content is empty; write down what should be remembered")
    if len(content) > MAX_CONTENT:
        raise BadInput(
            f"the content has {len(content):,} characters, a memory holds {MAX_CONTENT:,}; keep the essence"
        )
    if sector is not None and sector not in SECTORS:
        raise BadInput(f"there is no sector {sector[:40]!r}; it is one of {', '.join(SECTORS)}")
    if not 0 <= importance <= 1:
        raise BadInput(f"importance is {importance}; it must be between 0 and 1")
    if len(tags) > MAX_TAGS or any(not tag.strip() or len(tag) > MAX_TAG for tag in tags):
        raise BadInput(f"at most {MAX_TAGS} tags, each with 1 to {MAX_TAG} characters")
