"""The synthesizer that needs no model: it takes from the records of turns what their structure says.

It is asked about the new items of a session, and looks at the turns that they belong to. What was stored of
the session before is not found again, wherever the batches are cut and however often a turn goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from backstory.memory.turn import OPEN
from backstory.model import Batch, Findings, Memory, Observation
from backstory.store.queue import MARKS
from backstory.synthesis.rules.facts import ARROW, commits, decisions
from backstory.synthesis.rules.preferences import preferences
from backstory.synthesis.rules.summary import summarise


class Local:
    name = "local"

    async def observe(self, batch: Batch) -> Findings:
        return observe(batch)

    async def close(self, session_id: str | None = None) -> None:
        """Nothing is kept running."""


def observe(batch: Batch) -> Findings:
    found: dict[tuple[str, str], Observation] = {}
    for observation in _found(batch):
        name = (observation.kind, observation.title)
        if observation.kind == "decision" or name not in found:  # of plans with one title the latest holds
            found[name] = observation
    new = []
    for observation in found.values():
        earlier = _decided_before(observation, batch)
        if earlier or (observation.kind, observation.title) not in batch.stored:
            new.append(replace(observation, supersedes=earlier))
    return Findings(tuple(new), summarise(batch) if batch.wants_summary else None)


def _found(batch: Batch) -> Iterator[Observation]:
    """What the turns of the batch came to, as soon as each has ended."""
    over = _is_over(batch)
    ended = [turn for turn in batch.turns if turn.state != OPEN or over]
    # A mark adds nothing to a turn, but may be the first to find that it has ended.
    new = {id(turn) for turn in ended if turn.ended_at >= batch.items[0].at or turn is batch.turns[-1]}
    attended = batch.session.attended
    for number, turn in enumerate(ended, 1):
        if id(turn) in new:
            for observation in preferences(turn) if attended else ():
                yield replace(observation, turn=turn.id, source="user")
            for observation, source in decisions(ended[:number], attended=attended):
                yield replace(observation, turn=turn.id, source=source)
    for turn, observation in commits(ended):
        if id(turn) in new:
            yield replace(observation, turn=turn.id, source="repository")


def _is_over(batch: Batch) -> bool:
    """The summary is wanted though no turn ended: the session has, without a word."""
    marked = any(item.tool in MARKS for item in batch.items)
    return batch.wants_summary and (not marked or batch.session.status != "active")


def _decided_before(observation: Observation, batch: Batch) -> tuple[str, ...]:
    """The same question, answered otherwise in this session, or an earlier plan of the same title."""
    question, arrow, _ = observation.title.partition(ARROW)
    is_answer = bool(arrow) and observation.source == "user"

    def is_replaced(memory: Memory) -> bool:
        title = memory.title or ""
        if is_answer:
            return title != observation.title and title.startswith(question + ARROW)
        return title == observation.title and memory.content != observation.text

    earlier = [memory for memory in batch.known if memory.session_id == batch.session.id]
    return tuple(memory.id for memory in earlier if observation.kind == "decision" and is_replaced(memory))
