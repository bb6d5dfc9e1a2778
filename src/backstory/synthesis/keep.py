"""From findings to memories, in the caller's transaction: all of a batch is stored, or nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from backstory.blob import blob_id
from backstory.errors import BackstoryError
from backstory.ids import derived
from backstory.memory.kinds import IMPORTANCE, SAID_BY
from backstory.memory.sector import classify_observation
from backstory.model import Batch, Findings, Observation, Summary
from backstory.store import life, memories, sessions, summaries
from backstory.store.file.connection import Connection
from backstory.store.keep import build_on, keep_memory, wording

CITED = 0.2  # what being cited adds to a trace
MAX_FILES = 40


def keep(
    db: Connection, batch: Batch, findings: Findings, by: str, now: int, *, is_past: bool = False
) -> list[str]:
    """Store what was found; the ids of the observations, new or known already. In the past, files were not
    what they are now."""
    traces = {item.id: item.memory_id for item in (*batch.earlier, *batch.items)}
    kept = []
    for observation in findings.observations:
        memory_id = _keep_observation(db, batch, observation, by, now, is_past)
        kept.append(memory_id)
        _cite(db, batch.session.id, [traces.get(number) for number in observation.cites], now)
    if findings.summary:
        _keep_summary(db, batch, findings.summary, by, now, is_past)
    if is_past:  # once, when all of it is stored
        return kept
    session = sessions.by_ids(db, [batch.session.id]).get(batch.session.id)
    if session and session.status != "active":  # now: it may have ended while the model was at it
        life.promote(db, session.id, now)
    return kept


def _keep_observation(
    db: Connection, batch: Batch, observation: Observation, by: str, now: int, is_past: bool
) -> str:
    session_id, kind = batch.session.id, observation.kind
    files, hashes = _files(batch.project.root, () if observation.is_global else observation.files, is_past)
    memory_id, _ = keep_memory(
        db,
        wording(observation.text, observation.title),
        project_id=batch.project.id,
        session_id=session_id,
        kind=kind,
        sector=classify_observation(kind, observation.text),
        importance=IMPORTANCE[kind],
        now=now,
        happened_at=batch.items[-1].at,  # not when somebody came to look at it
        is_global=observation.is_global,
        files=files,
        hashes=hashes,
        concepts=observation.concepts,
        source=observation.source,
    )
    for turn_id in [observation.turn] if observation.turn else _turns(batch, observation):
        build_on(db, memory_id, turn_id, SAID_BY[by], now)
    _supersede(db, observation.supersedes, memory_id, session_id, by, now)
    return memory_id


def _turns(batch: Batch, observation: Observation) -> list[str]:
    """The turns of the items that an observation cites; where it cites none, that of the last one."""
    cited = [item for item in (*batch.earlier, *batch.items) if item.id in observation.cites]
    times = [item.at for item in cited or batch.items[-1:]]
    spans = [(turn.id, turn.started_at, turn.ended_at) for turn in batch.turns]
    return [turn_id for turn_id, first, last in spans if any(first <= at <= last for at in times)]


def _supersede(db: Connection, old: Sequence[str], new: str, session_id: str, by: str, now: int) -> None:
    for one in old:
        try:
            life.supersede(db, life.living(db, one), new, session_id, now, SAID_BY[by], confidence=0.8)
        except BackstoryError:
            continue  # forgotten or replaced since the batch was put together


def _cite(db: Connection, session_id: str, cited: Iterable[str | None], now: int) -> None:
    for memory_id in dict.fromkeys(cited):
        try:
            if memory_id is not None:
                life.reinforce(db, life.living(db, memory_id), CITED, session_id, now)
        except BackstoryError:
            continue  # forgotten meanwhile


def _keep_summary(db: Connection, batch: Batch, summary: Summary, by: str, now: int, is_past: bool) -> None:
    """The latest word on the session, and the memory by which it is found: always the same one."""
    content = f"Session Summary:\n{summary}"
    session_id = batch.session.id
    files, hashes = _files(batch.project.root, summary.files_edited, is_past)
    memory_id = summaries.memory_of(db, session_id)
    if memory_id:
        memories.rewrite(db, memory_id, content, files, hashes, now)
        memories.link(db, session_id, memory_id, "updated", now)
    else:
        memory_id = memories.add(
            db,
            memory_id=memories.unused(db, derived("summary", session_id)),
            project_id=batch.project.id,
            session_id=session_id,
            kind="summary",
            sector="reflective",
            tier="project",
            content=content,
            files=files,
            hashes=hashes,
            importance=IMPORTANCE["summary"],
            source="session",
            now=batch.items[-1].at,
        )
    summaries.put(db, session_id, batch.project.id, summary, by, memory_id, now)


def inside(path: str, root: str) -> str:
    """A path as people say it: from the project's root, where it lies below."""
    plain = os.path.normpath(path)
    return plain.removeprefix(root + os.sep) if root else plain


def _files(root: str, files: Sequence[str], is_past: bool) -> tuple[list[str], list[str | None]]:
    found = list(dict.fromkeys(inside(file, root) for file in files))[:MAX_FILES]
    is_known = bool(root) and not is_past
    return found, [blob_id(os.path.join(root, file)) if is_known else None for file in found]
