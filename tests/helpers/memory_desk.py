"""A project at the MCP server `memory` for one test, and words of its answers."""

from __future__ import annotations

import re
import sqlite3
import time
from pathlib import Path

from backstory.intake.note import keep
from backstory.store.file.connection import connect
from tests.helpers.chaos import Json, rows
from tests.helpers.mcp_client import Server

SECTORS = ["episodic", "semantic", "procedural", "emotional", "reflective"]
NOTHING = "No memories found."
MINUTE = 60_000


class Desk:
    """A server and a project for one test. `ask` and its like speak to the server; `note` writes beside."""

    def __init__(self, server: Server, data: Path, link: Path, project: Path) -> None:
        self.server = server
        self.data = data
        self.link = link
        self.ask, self.refusal, self.call = server.ask, server.refusal, server.call
        self.add, self.search = server.add, server.search
        self.sit_at(project)

    def sit_at(self, project: Path) -> None:
        """From now on the server works for this project."""
        project.mkdir(parents=True, exist_ok=True)
        beside = self.link.with_suffix(".new")
        beside.symlink_to(project)
        beside.replace(self.link)
        self.project = project

    def note(self, content: str, at: int | None = None, **how: object) -> str:
        """A memory that came from elsewhere, at some time."""
        now = int(time.time() * 1000) if at is None else at
        with store(self.data) as db:
            return keep(db, str(self.project), content, now=now, **how).memory.id  # type: ignore[arg-type]

    def rows(self, sql: str, *values: object) -> list[Json]:
        return rows(self.data, sql, *values)

    def salience(self, memory_id: str) -> float:
        found = re.search(r"salience: (\d\.\d\d)", self.ask("memory_search", query=memory_id))
        assert found
        return float(found[1])


class store:
    def __init__(self, data: Path) -> None:
        self.db = connect(str(data / "backstory.db"))

    def __enter__(self) -> sqlite3.Connection:
        return self.db

    def __exit__(self, *_: object) -> None:
        self.db.close()
