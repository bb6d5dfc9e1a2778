"""A store that is told things, and briefs from it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from typing import Any

from backstory import paths
from backstory.blob import blob_id
from backstory.model import Summary
from backstory.recall import brief
from backstory.store import memories, projects, sessions, summaries

NOW = 1_790_000_000_000  # 2026-09-21

HOUR = 3_600_000

TOKENS = 1_500


class Told:
    """A store that is told things, and briefs from it."""

    def __init__(self, db: sqlite3.Connection, project: str) -> None:
        self.db = db
        self.project = project

    def session(self, session_id: str, at: int = NOW, branch: str | None = None, cwd: str = "") -> str:
        place = paths.place(cwd or self.project)
        place.branch = branch
        project_id = projects.ensure(self.db, place, at)
        sessions.start(self.db, session_id, project_id, cwd or self.project, place, at)
        return project_id

    def memory(
        self,
        kind: str,
        content: str,
        *,
        title: str | None = None,
        session: str = "earlier",
        at: int = NOW,
        importance: float = 0.6,
        files: Sequence[str] = (),
        everywhere: bool = False,
        cwd: str = "",
        action: str | None = None,
    ) -> str:
        project_id = sessions.project_of(self.db, session) or self.session(session, at, cwd=cwd)
        root = cwd or self.project
        return memories.add(
            self.db,
            project_id=projects.ensure_global(self.db, at) if everywhere else project_id,
            session_id=session,
            kind=kind,
            sector="semantic",
            tier="global" if everywhere else "project",
            content=content,
            action=action,
            title=title,
            importance=importance,
            files=files,
            hashes=[blob_id(os.path.join(root, file)) for file in files],
            now=at,
        )

    def summary(self, session_id: str, at: int = NOW, branch: str | None = None, **fields: str) -> str:
        self.session(session_id, at, branch)
        names = ("request", "investigated", "learned", "completed", "next_steps", "notes")
        told = Summary(
            files_read=(),
            files_edited=("src/summed_up.py",),
            **{name: fields.get(name, "") for name in names},
        )
        memory_id = self.memory("summary", f"Session Summary:\n{told}", session=session_id, at=at)
        project_id = sessions.project_of(self.db, session_id)
        assert project_id
        summaries.put(self.db, session_id, project_id, told, "local", memory_id, at)
        return memory_id

    def said(self, session_id: str, text: str, at: int = NOW) -> str:
        """A prompt, as a drain leaves it."""
        self.session(session_id, at)
        sessions.keep_prompt(self.db, session_id, text, at)
        return self.memory("prompt", text, session=session_id, at=at, importance=0.3)

    def brief(
        self,
        source: str = "startup",
        session: str = "present",
        tokens: float = TOKENS,
        cwd: str = "",
    ) -> brief.Brief:
        return brief.brief(self.db, cwd or self.project, session, source, tokens)

    def lines(self, source: str = "startup", **options: Any) -> list[str]:
        return self.brief(source, **options).text.splitlines()


def under(heading: str, lines: list[str]) -> list[str]:
    """The lines of a section."""
    at = lines.index(f"{heading}:") + 1
    rest = lines[at:]
    return rest[: next(n for n, line in enumerate([*rest, ""]) if not line.startswith("- "))]
