"""What happened around a memory."""

from __future__ import annotations

from dataclasses import dataclass

from backstory.errors import BadInput, NotFound
from backstory.model import Memory, Session
from backstory.store import memories, sessions
from backstory.store.file.connection import Connection

MAX_DEPTH = 50


@dataclass(frozen=True, slots=True)
class Timeline:
    anchor: Memory
    before: tuple[Memory, ...]  # oldest first
    after: tuple[Memory, ...]
    sessions: tuple[Session, ...]  # that these come from, oldest first


def timeline(db: Connection, anchor_id: str, before: int, after: int, now: int) -> Timeline:
    for name, depth in (("depth_before", before), ("depth_after", after)):
        if not 0 <= depth <= MAX_DEPTH:
            raise BadInput(f"{name} is {depth}; it must be between 0 and {MAX_DEPTH}")
    anchor = memories.get(db, anchor_id, now)
    if anchor is None:
        raise NotFound(f"there is no memory {anchor_id[:60]!r}; a search shows the ids there are")
    earlier, later = memories.around(db, anchor, before, after, now)
    shown = (*earlier, anchor, *later)
    known = sessions.by_ids(db, sorted({memory.session_id for memory in shown if memory.session_id}))
    in_order = sorted(known.values(), key=lambda session: (session.started_at, session.id))
    return Timeline(anchor, tuple(earlier), tuple(later), tuple(in_order))
