"""From findings to memories, in the caller's transaction: all of a batch is stored, or nothing."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence

from backstory.blob import blob_id
from backstory.errors import BackstoryError
from backstory.memory import likeness, salience
from backstory.memory.sector import classify
from backstory.model import Batch, Findings, Item, Observation, Summary
from backstory.store import life, memories, projects, sessions, summaries
from backstory.store.file.connection import Connection

CITED = 0.2  # what being cited adds to a trace
IMPORTANCE = {"decision": 0.7, "summary": 0.7}
OTHERWISE = 0.6
SAID_BY = {"claude": "model", "local": "rule"}
MAX_FILES = 40
EDITING = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})


def keep(db: Connection, batch: Batch, findings: Findings, by: str, now: int) -> list[str]:
    """Store what was found; the ids of the observations, new or known already."""
    traces = {item.id: item.memory_id for item in (*batch.earlier, *batch.items)}
    kept = []
    for observation in findings.observations:
        memory_id = _keep_observation(db, batch, observation, by, now)
        kept.append(memory_id)
        _cite(db, batch.session.id, [traces.get(number) for number in observation.cites], now)
    if findings.summary:
        _keep_summary(db, batch, findings.summary, by, now)
    session = sessions.by_ids(db, [batch.session.id]).get(batch.session.id)
    if session and session.status != "active":  # now: it may have ended while the model was at it
        life.promote(db, session.id, now)
    return kept


def _keep_observation(db: Connection, batch: Batch, observation: Observation, by: str, now: int) -> str:
    """What is known already, in these words or nearly these, is reinforced instead."""
    session_id, kind = batch.session.id, observation.kind
    owner = projects.ensure_global(db, now) if observation.is_global else batch.project.id
    whole = f"{observation.title}\n{observation.text}"
    content_hash = hashlib.sha256(whole.encode()).hexdigest()
    simhash = likeness.simhash(whole)
    known = memories.same(db, owner, kind, content_hash) or _nearly(db, owner, kind, whole, simhash)
    if known:
        life.reinforce(db, known, salience.REINFORCED, session_id, now)
        _supersede(db, observation.supersedes, known, session_id, by, now)
        return known
    files, hashes = _files(batch.project.root, observation.files)
    memory_id = memories.add(
        db,
        project_id=owner,
        session_id=session_id,
        kind=kind,
        sector=sector(observation),
        tier="global" if observation.is_global else "project",
        title=observation.title,
        content=observation.text,
        concepts=observation.concepts,
        files=() if observation.is_global else files,
        hashes=() if observation.is_global else hashes,
        importance=IMPORTANCE.get(kind, OTHERWISE),
        content_hash=content_hash,
        simhash=simhash,
        now=batch.items[-1].at,  # when it happened, not when somebody came to look at it
    )
    _supersede(db, observation.supersedes, memory_id, session_id, by, now)
    return memory_id


def _supersede(db: Connection, old: Sequence[str], new: str, session_id: str, by: str, now: int) -> None:
    for one in old:
        try:
            life.supersede(db, life.living(db, one), new, session_id, now, SAID_BY[by], confidence=0.8)
        except BackstoryError:
            continue  # forgotten or replaced since the batch was put together


def _nearly(db: Connection, owner: str, kind: str, whole: str, simhash: int) -> str | None:
    for memory_id, text in memories.alike(db, owner, kind, likeness.bands(simhash)):
        if likeness.is_near(whole, text):
            return memory_id
    return None


def sector(observation: Observation) -> str:
    """What it is for. That it is told in the past tense, as findings are, does not make it an episode."""
    if observation.kind == "preference":
        return "emotional"
    told = classify(observation.text)
    if told in ("procedural", "reflective"):
        return told
    return "procedural" if observation.kind == "bugfix" else "semantic"


def _cite(db: Connection, session_id: str, cited: Iterable[str | None], now: int) -> None:
    for memory_id in dict.fromkeys(cited):
        try:
            if memory_id is not None:
                life.reinforce(db, life.living(db, memory_id), CITED, session_id, now)
        except BackstoryError:
            continue  # forgotten meanwhile


def _keep_summary(db: Connection, batch: Batch, summary: Summary, by: str, now: int) -> None:
    """The latest word on the session, and the memory by which it is found: always the same one."""
    content = f"Session Summary:\n{summary}"
    session_id = batch.session.id
    files, hashes = _files(batch.project.root, summary.files_edited)
    memory_id = summaries.memory_of(db, session_id)
    if memory_id:
        memories.rewrite(db, memory_id, content, files, hashes, now)
        memories.link(db, session_id, memory_id, "updated", now)
    else:
        memory_id = memories.add(
            db,
            project_id=batch.project.id,
            session_id=session_id,
            kind="summary",
            sector="reflective",
            tier="project",
            content=content,
            files=files,
            hashes=hashes,
            importance=IMPORTANCE["summary"],
            now=batch.items[-1].at,
        )
    summaries.put(db, session_id, batch.project.id, summary, by, memory_id, now)


def files_of(items: Sequence[Item], root: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What tool uses read and what they edited, as seen from the project's root."""
    read: dict[str, None] = {}
    edited: dict[str, None] = {}
    for item in items:
        path = item.input.get("file_path") or item.input.get("notebook_path")
        if not isinstance(path, str) or not path or item.failed:
            continue
        if item.tool in EDITING:
            edited[inside(path, root)] = None
        elif item.tool == "Read":
            read[inside(path, root)] = None
    return tuple(read), tuple(edited)


def inside(path: str, root: str) -> str:
    """A path as people say it: from the project's root, where it lies below."""
    plain = os.path.normpath(path)
    return plain.removeprefix(root + os.sep) if root else plain


def _files(root: str, files: Sequence[str]) -> tuple[list[str], list[str | None]]:
    found = list(dict.fromkeys(inside(file, root) for file in files))[:MAX_FILES]
    return found, [blob_id(os.path.join(root, file)) if root else None for file in found]
