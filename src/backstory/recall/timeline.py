"""What happened around a memory: turn by turn, and by itself what belongs to none."""

from __future__ import annotations

from dataclasses import dataclass

from backstory.errors import BadInput, NotFound
from backstory.model import Memory, Session
from backstory.store import memories, sessions, turns
from backstory.store.file.connection import Connection

MAX_DEPTH = 50


@dataclass(frozen=True, slots=True)
class Timeline:
    anchor: Memory
    turn: Memory | None  # that the anchor belongs to
    before: tuple[Memory, ...]  # oldest first
    after: tuple[Memory, ...]
    sessions: tuple[Session, ...]  # that these come from, oldest first

    @property
    def entries(self) -> tuple[Memory, ...]:
        """One after the other; the anchor, or its turn in place of it, among them."""
        return (*self.before, self.turn or self.anchor, *self.after)


def timeline(db: Connection, anchor_id: str, before: int, after: int, now: int) -> Timeline:
    for name, depth in (("depth_before", before), ("depth_after", after)):
        if not 0 <= depth <= MAX_DEPTH:
            raise BadInput(f"{name} is {depth}; it must be between 0 and {MAX_DEPTH}")
    anchor = memories.get(db, anchor_id, now)
    if anchor is None:
        raise NotFound(f"there is no memory {anchor_id[:60]!r}; a search shows the ids there are")
    held_by = None if anchor.kind == "turn" else turns.holding(db, anchor_id)
    turn = memories.get(db, held_by, now) if held_by else None
    earlier, later = memories.around(db, turn or anchor, before, after, now)
    shown = (*earlier, anchor, *later)
    known = sessions.by_ids(db, sorted({memory.session_id for memory in shown if memory.session_id}))
    in_order = sorted(known.values(), key=lambda session: (session.started_at, session.id))
    return Timeline(anchor, turn, tuple(earlier), tuple(later), tuple(in_order))
