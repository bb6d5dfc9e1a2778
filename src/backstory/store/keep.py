"""One way to keep a memory: store it, or reinforce the one that says the same already."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from backstory.ids import derived, new_id
from backstory.memory import likeness, salience
from backstory.store import life, memories, projects
from backstory.store.file.connection import Connection, marks


class Wording(NamedTuple):
    """What a memory says, and by what another one that says the same is found."""

    title: str | None
    content: str
    whole: str
    content_hash: str
    simhash: int


def wording(content: str, title: str | None = None) -> Wording:
    """Takes its time with a long text, so it is called before the store is locked."""
    whole = content if title is None else f"{title}\n{content}"
    return Wording(title, content, whole, hashlib.sha256(whole.encode()).hexdigest(), likeness.simhash(whole))


def keep_memory(
    db: Connection,
    says: Wording,
    *,
    project_id: str,
    session_id: str | None,
    kind: str,
    sector: str,
    importance: float,
    now: int,
    happened_at: int | None = None,
    is_global: bool = False,
    files: Sequence[str] = (),
    hashes: Sequence[str | None] = (),
    tags: Sequence[str] = (),
    concepts: Sequence[str] = (),
    source: str,
) -> tuple[str, bool]:
    """The memory's id, and whether it is new. One of the user's own, a global one, is about no file."""
    owner = projects.ensure_global(db, now) if is_global else project_id
    known = known_as(db, owner, kind, says)
    if known:
        life.reinforce(db, known, salience.REINFORCED, session_id, now)
        return known, False
    made_in = derived(kind, session_id, says.content_hash) if session_id else new_id()
    memory_id = memories.add(
        db,
        memory_id=memories.unused(db, made_in),
        project_id=owner,
        session_id=session_id,
        kind=kind,
        sector=sector,
        tier="global" if is_global else "project",
        title=says.title,
        content=says.content,
        concepts=concepts,
        files=() if is_global else files,
        hashes=() if is_global else hashes,
        tags=tags,
        importance=importance,
        content_hash=says.content_hash,
        simhash=says.simhash,
        source=source,
        now=now if happened_at is None else happened_at,
    )
    return memory_id, True


def known_as(db: Connection, owner: str, kind: str, says: Wording) -> str | None:
    """The living memory of a project that says this already, in these words or very nearly these."""
    return memories.same(db, owner, kind, says.content_hash) or _nearly_same(db, owner, kind, says)


def build_on(db: Connection, memory_id: str, turn_id: str, said_by: str, now: int) -> None:
    """A memory rests on a turn, where that is still there."""
    db.execute(
        "INSERT INTO memory_relationships (source_id, target_id, relationship_type, said_by, created_at)"
        " SELECT ?1, id, 'BUILDS_ON', ?3, ?4 FROM memories WHERE id = ?2 AND id <> ?1 ON CONFLICT DO NOTHING",
        (memory_id, turn_id, said_by, now),
    )


def titles(db: Connection, session_id: str, kinds: Sequence[str]) -> frozenset[tuple[str, str]]:
    """(kind, title) of all that a session made or said again, also of what was forgotten since."""
    rows = db.execute(
        "SELECT DISTINCT m.kind, m.title FROM session_memories s JOIN memories m ON m.id = s.memory_id"
        " WHERE s.session_id = ? AND s.usage_type IN ('created', 'reinforced')"
        f" AND m.kind IN ({marks(kinds)})",
        (session_id, *kinds),
    )
    return frozenset((row["kind"], row["title"] or "") for row in rows)


def _nearly_same(db: Connection, owner: str, kind: str, says: Wording) -> str | None:
    for memory_id, text in memories.alike(db, owner, kind, likeness.bands(says.simhash)):
        if likeness.is_near(says.whole, text):
            return memory_id
    return None
