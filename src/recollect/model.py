"""The values that recall hands to the surfaces. Times are milliseconds since 1970, UTC, everywhere.

Hooks never load this file: dataclasses cost more than a hook may take. What capture hands to intake is the
plain class in capture/event.py.
"""

from __future__ import annotations

from dataclasses import dataclass

SECTORS = ("episodic", "semantic", "procedural", "emotional", "reflective")


@dataclass(frozen=True, slots=True)
class Project:
    id: str
    number: int
    name: str
    root: str


@dataclass(frozen=True, slots=True)
class Session:
    id: str
    project_id: str
    status: str
    started_at: int
    last_event_at: int
    ended_at: int | None
    user_prompt: str | None
    branch: str | None
    head: str | None
    summary: str | None
    memories: int = 0


@dataclass(frozen=True, slots=True)
class Memory:
    id: str
    project_id: str
    session_id: str | None
    kind: str
    sector: str
    tier: str
    title: str | None
    content: str
    tags: tuple[str, ...]
    files: tuple[str, ...]
    importance: float
    salience: float  # as it is now: decayed since it was last accessed
    access_count: int
    created_at: int
    valid_until: int | None
    deleted_at: int | None


@dataclass(frozen=True, slots=True)
class Hit:
    memory: Memory
    score: float  # 1 is the best of this answer
    session: Session | None
