"""A note: something a person or a model wants remembered, in their own words."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from backstory import paths
from backstory.blob import blob_id
from backstory.errors import BadInput
from backstory.memory.kinds import IMPORTANCE, SECTORS
from backstory.memory.sector import classify
from backstory.model import Memory
from backstory.safety.clean import clean
from backstory.store import memories, projects, sessions
from backstory.store.file.connection import Connection, transaction
from backstory.store.keep import Wording, keep_memory, wording

MAX_CONTENT = 20_000
MAX_TAGS, MAX_TAG = 20, 60
MAX_FILES = 10


@dataclass(frozen=True, slots=True)
class Ready:
    cwd: str
    place: paths.Place
    says: Wording
    sector: str
    tags: list[str]
    importance: float | None  # None: nobody said
    is_global: bool
    files: list[str]
    hashes: list[str | None]


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
    db: Connection,
    cwd: str,
    content: str,
    *,
    now: int,
    session_id: str | None = None,
    sector: str | None = None,
    tags: Sequence[str] = (),
    importance: float | None = None,
    is_global: bool = False,
    source: str = "assistant",
) -> Kept:
    """Remember a note for this folder's project, or for all of the user's. One that is known already, in
    these words or very nearly these, is reinforced instead. `source`: whose words these are."""
    ready = prepare(cwd, content, sector=sector, tags=tags, importance=importance, is_global=is_global)
    with transaction(db):
        return put(db, ready, now=now, session_id=session_id, source=source)


def prepare(
    cwd: str,
    content: str,
    *,
    sector: str | None = None,
    tags: Sequence[str] = (),
    importance: float | None = None,
    is_global: bool = False,
) -> Ready:
    """A note, checked and cleaned: what takes its time, and needs no store."""
    check(content, sector, tags, IMPORTANCE["note"] if importance is None else importance)
    text = clean(content.strip(), MAX_CONTENT).strip()
    if not re.sub(r"\[redacted:[a-z-]+\]", "", text).strip():
        raise BadInput("nothing is left of it without what is private or secret; say it without that")
    checkout = paths.checkout(cwd)
    files = [] if is_global else files_named(text, checkout)
    return Ready(
        cwd,
        paths.place(cwd),
        wording(text),
        sector or classify(text),
        [clean(tag) for tag in tags],
        importance,
        is_global,
        files,
        [blob_id(os.path.join(checkout, file)) for file in files],
    )


def put(db: Connection, ready: Ready, *, now: int, session_id: str | None = None, source: str) -> Kept:
    """Store a note, inside a transaction."""
    project_id = projects.ensure(db, ready.place, now)
    if session_id and sessions.project_of(db, session_id) is None:
        sessions.start(db, session_id, project_id, ready.cwd, ready.place, now)
    memory_id, is_new = keep_memory(
        db,
        ready.says,
        project_id=project_id,
        session_id=session_id,
        kind="note",
        sector=ready.sector,
        importance=IMPORTANCE["note"] if ready.importance is None else ready.importance,
        now=now,
        is_global=ready.is_global,
        files=ready.files,
        hashes=ready.hashes,
        tags=ready.tags,
        source=source,
    )
    if not is_new:
        memories.add_tags(db, memory_id, ready.tags, ready.importance)
    memory = memories.get(db, memory_id, now)
    assert memory is not None  # noqa: S101  it was stored a line ago, in the same transaction
    return Kept(memory, is_new)


def files_named(text: str, root: str) -> list[str]:
    """The project's files that a text names, as seen from the root."""
    found: list[str] = []
    for word in dict.fromkeys(re.findall(r"[\w@.+/-]++", text)):
        path = word.rstrip("@.+/-")
        if "." not in path and "/" not in path:
            continue  # a word, not a path
        full = os.path.normpath(os.path.join(root, path))
        # By its spelling first: a path that leads elsewhere may lead to a disk that does not answer.
        if not full.startswith(root + os.sep) or not os.path.realpath(full).startswith(root + os.sep):
            continue
        if os.path.isfile(full) and (inside := os.path.relpath(full, root)) not in found:
            found.append(inside)
    return found[:MAX_FILES]


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
