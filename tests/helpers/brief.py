"""A store that is told things, and briefs from it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from typing import Any

from backstory import paths
from backstory.blob import blob_id
from backstory.memory.closing import closing
from backstory.memory.turn import COMPLETE, TYPED, Turn
from backstory.model import Summary
from backstory.recall import brief
from backstory.store import memories, projects, sessions, summaries, turns

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
        turn = turns.latest(self.db, session, at) if kind == "tool" else None
        return memories.add(
            self.db,
            project_id=projects.ensure_global(self.db, at) if everywhere else project_id,
            session_id=session,
            kind=kind,
            sector="semantic",
            tier="global" if everywhere else "project",
            content=content,
            action=action,
            turn=turn.id if turn else None,
            title=title,
            importance=importance,
            files=files,
            hashes=[blob_id(os.path.join(root, file)) for file in files],
            now=at,
        )

    def summary(
        self,
        session_id: str,
        at: int = NOW,
        branch: str | None = None,
        made_by: str = "local",
        **fields: str,
    ) -> str:
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
        summaries.put(self.db, session_id, project_id, told, made_by, memory_id, at)
        return memory_id

    def turn(
        self,
        session_id: str,
        asked: str | Sequence[str],
        answer: str = "",
        *,
        at: int = NOW,
        state: str = COMPLETE,
        **facts: Any,
    ) -> str:
        """A turn, as a drain leaves it. `branch` is also that of a session which starts with it."""
        project_id = self.session(session_id, at, facts.get("branch"))
        turn = Turn(session_id, at)
        turn.prompts = [[text, TYPED] for text in ([asked] if isinstance(asked, str) else asked)]
        turn.answer, turn.state, turn.closing = answer, state, closing(answer)
        for name, fact in facts.items():
            setattr(turn, name, fact)
        turns.save(self.db, turn, project_id)
        for text, _ in turn.prompts:
            sessions.keep_prompt(self.db, session_id, text, at, turn.id)
        return turn.id

    def said(self, session_id: str, text: str, at: int = NOW) -> str:
        """A prompt from before there were turns: nothing else is known."""
        return self.turn(session_id, text, at=at)

    def unattended(self, *session_ids: str) -> None:
        for session_id in session_ids:
            sessions.attend(self.db, session_id, False)

    def on_branch(self, name: str, head: str = "") -> None:
        git = os.path.join(self.project, ".git")
        os.makedirs(git, exist_ok=True)
        with open(os.path.join(git, "HEAD"), "w", encoding="utf-8") as file:
            file.write(f"ref: refs/heads/{name}\n")
        if head:
            os.makedirs(os.path.join(git, "refs", "heads"), exist_ok=True)
            with open(os.path.join(git, "refs", "heads", name), "w", encoding="utf-8") as file:
                file.write(f"{head}\n")

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
    return rest[: next(n for n, line in enumerate([*rest, ""]) if not line.startswith(("- ", "  ")))]
