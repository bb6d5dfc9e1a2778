"""What the rules find in a session that was over before it was captured: turn by turn, as when it went on."""

from __future__ import annotations

from backstory.memory.kinds import OBSERVATIONS
from backstory.model import Batch, Item, Memory
from backstory.store import memories, projects, queue, sessions, summaries, turns
from backstory.store.file.connection import Connection
from backstory.store.keep import titles
from backstory.synthesis.batch import KNOWN_LOOKED_AT, cleaned, with_real_files
from backstory.synthesis.keep import keep
from backstory.synthesis.local import Local, observe

MOST_TURNS = 10_000  # of a session
BEFORE = 30  # turns that the rules look at for one of them; with all of them, a long session takes minutes


def observe_past(db: Connection, session_id: str) -> None:
    """In the caller's transaction, with the session's own times."""
    session = sessions.by_ids(db, [session_id]).get(session_id)
    every = turns.of_session(db, session_id, MOST_TURNS)
    if session is None or not every:
        return
    project = projects.by_id(db, session.project_id)
    stored = set(titles(db, session_id, OBSERVATIONS))
    known: list[Memory] = []
    if stored:
        standing = memories.standing(db, project.id, OBSERVATIONS, KNOWN_LOOKED_AT, session.last_event_at)
        known = [memory for memory in standing if memory.session_id == session_id]
    for number, turn in enumerate(every, 1):
        is_last = number == len(every)
        marks = [
            Item(0, session_id, queue.FINALIZE, {}, {}, at, None) for at in (turn.started_at, turn.ended_at)
        ]
        batch = Batch(
            session=session,
            project=project,
            items=tuple(marks),
            earlier=(),
            summary=summaries.get(db, session_id) if is_last else None,
            known=tuple(known),
            wants_summary=is_last,
            turns=tuple(every[:number] if is_last else every[max(0, number - BEFORE) : number]),
            stored=frozenset(stored),
        )
        findings = with_real_files(cleaned(observe(batch)), batch)
        if findings.observations or findings.summary:
            kept = keep(db, batch, findings, Local.name, turn.ended_at, is_past=True)
            stored.update((one.kind, one.title) for one in findings.observations)
            new = [memories.get(db, memory_id, turn.ended_at) for memory_id in kept]
            known += [memory for memory in new if memory is not None]
