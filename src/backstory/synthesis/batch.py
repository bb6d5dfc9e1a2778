"""What a synthesizer is given, and what is done to its answer before it is stored."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from backstory.memory.kinds import OBSERVATIONS
from backstory.model import Batch, Findings, Item, Memory
from backstory.safety.clean import clean
from backstory.store import memories, projects, queue, sessions, summaries, turns
from backstory.store.file.connection import Connection
from backstory.store.keep import titles
from backstory.synthesis.keep import inside

KNOWN = 20  # observations shown to a synthesizer as perhaps replaced
KNOWN_LOOKED_AT = 400


def put_together(db: Connection, session_id: str, items: Sequence[Item], now: int) -> Batch:
    """What a synthesizer needs to know of the items that were claimed."""
    session = sessions.by_ids(db, [session_id])[session_id]
    project = projects.by_id(db, session.project_id)
    recent = memories.standing(db, project.id, OBSERVATIONS, KNOWN_LOOKED_AT, now)
    recent += memories.standing(db, projects.GLOBAL, OBSERVATIONS, KNOWN_LOOKED_AT, now)
    # A session that is looked at late does not know better than what came after it.
    earlier = [memory for memory in recent if memory.created_at <= items[-1].at]
    ids = [item.id for item in items]
    ends = queue.is_over(db, session_id, now) and not queue.more_waits(db, session_id, ids)
    return Batch(
        session=session,
        project=project,
        items=tuple(items),
        earlier=tuple(queue.earlier(db, session_id)),
        summary=summaries.get(db, session_id),
        known=tuple(about_the_same(earlier, items, project.root)),
        wants_summary=ends or any(item.tool in queue.MARKS for item in items),
        turns=tuple(turns.of_session(db, session_id)),
        stored=titles(db, session_id, OBSERVATIONS),
    )


def about_the_same(known: Iterable[Memory], items: Sequence[Item], root: str) -> list[Memory]:
    """Those that share a file or at least two telling words with what happened, the most alike first."""
    files = {inside(item.path, root) for item in items if item.path}
    words = _words(" ".join(_texts(items)))
    scored = []
    for memory in known:
        shared = len(words & _words(f"{memory.title or ''} {memory.content}"))
        score = shared + 3 * len(files & set(memory.files))
        if score >= 2:
            scored.append((score, memory.created_at, memory.id, memory))
    scored.sort(key=lambda one: one[:3], reverse=True)
    return [memory for *_, memory in scored[:KNOWN]]


def _texts(items: Sequence[Item]) -> Iterable[str]:
    for item in items:
        for part in (item.input, item.output):
            if isinstance(part, dict):
                yield from (text for text in part.values() if isinstance(text, str))


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"[a-z0-9_]{4,40}", text.lower()) if word not in _COMMON}


_COMMON = frozenset(
    "this that with from have been were they will would should could into when then than".split()
)


def cleaned(findings: Findings) -> Findings:
    """Nothing that a model says is stored unseen, though it was told no secret."""
    observations = tuple(
        replace(one, title=clean(one.title), text=clean(one.text), concepts=tuple(map(clean, one.concepts)))
        for one in findings.observations
    )
    summary = findings.summary
    if summary:
        summary = replace(
            summary,
            request=clean(summary.request),
            investigated=clean(summary.investigated),
            learned=clean(summary.learned),
            completed=clean(summary.completed),
            next_steps=clean(summary.next_steps),
            notes=clean(summary.notes),
        )
    return replace(findings, observations=observations, summary=summary)


def with_real_files(findings: Findings, batch: Batch) -> Findings:
    """Which files were read and edited is known from the turns; a model would have to guess. What an earlier
    summary knew of turns that are not there any more stays."""
    if findings.summary is None:
        return findings
    read = [file for turn in batch.turns for file in turn.read]
    edited = [file for turn in batch.turns for file in turn.edited]
    if before := batch.summary:
        read, edited = [*before.files_read, *read], [*before.files_edited, *edited]
    summary = replace(
        findings.summary,
        files_read=tuple(dict.fromkeys(read)),
        files_edited=tuple(dict.fromkeys(edited)),
    )
    return replace(findings, summary=summary)
