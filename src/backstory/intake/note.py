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
from backstory.store.keep import keep_memory, wording

MAX_CONTENT = 20_000
MAX_TAGS, MAX_TAG = 20, 60
MAX_FILES = 10


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
    weight = IMPORTANCE["note"] if importance is None else importance
    check(content, sector, tags, weight)
    text = clean(content.strip(), MAX_CONTENT).strip()
    if not re.sub(r"\[redacted:[a-z-]+\]", "", text).strip():
        raise BadInput("nothing is left of it without what is private or secret; say it without that")
    says, labels = wording(text), [clean(tag) for tag in tags]
    sector = sector or classify(text)
    place = paths.place(cwd)
    checkout = paths.checkout(cwd)
    files = [] if is_global else files_named(text, checkout)
    hashes = [blob_id(os.path.join(checkout, file)) for file in files]
    with transaction(db):
        project_id = projects.ensure(db, place, now)
        if session_id and sessions.project_of(db, session_id) is None:
            sessions.start(db, session_id, project_id, cwd, place, now)
        memory_id, is_new = keep_memory(
            db,
            says,
            project_id=project_id,
            session_id=session_id,
            kind="note",
            sector=sector,
            importance=weight,
            now=now,
            is_global=is_global,
            files=files,
            hashes=hashes,
            tags=labels,
            source=source,
        )
        if not is_new:
            memories.add_tags(db, memory_id, labels, importance)
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
