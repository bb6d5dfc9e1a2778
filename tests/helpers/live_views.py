"""What the tests of live views share: a project with a CLAUDE.md, servers that show its trees, and a model
that only knows what it was told."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from backstory import paths
from backstory.claude_md.write import dynamic
from backstory.docmem import tree
from backstory.docmem.views import Views
from backstory.model import Node
from backstory.store import nodes, projects
from backstory.store.file.connection import connect, transaction
from backstory.surfaces import view_files
from backstory.surfaces.view_files import Added, Removed

NOW = 1_800_000_000_000
NOT_YET = threading.Event()  # the end of a server
HEADER, END = f"{dynamic.HEADER.decode()}\n\n", f"{dynamic.END.decode()}\n"


class Desk:
    """A project, its trees, and whoever edits them; the clock goes on by a second an edit."""

    def __init__(self, data: Path, folder: Path) -> None:
        self.data = data
        self.folder = folder
        self.file = folder / "CLAUDE.md"
        self.now = NOW
        folder.mkdir(exist_ok=True)
        if not self.file.exists():
            self.file.write_text("# Mine\n")
        self.open()
        with transaction(self.db):
            project_id = projects.ensure(self.db, paths.place(str(folder)), NOW)
        self.project = projects.by_id(self.db, project_id)

    def open(self) -> None:
        self.db = connect(str(self.data / "backstory.db"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.db.close()

    @contextmanager
    def another_connection(self) -> Iterator[sqlite3.Connection]:
        db = connect(str(self.data / "backstory.db"))
        try:
            yield db
        finally:
            db.close()

    def is_locked(self) -> bool:
        """Is somebody writing to the store?"""
        db = sqlite3.connect(self.data / "backstory.db", timeout=0, isolation_level=None)
        try:
            db.execute("BEGIN IMMEDIATE")
            db.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return True
        finally:
            db.close()
        return False

    # Servers, and what they show.

    def server(self, *node_ids: str, session: str = "s1") -> Views:
        server = Views(str(self.data), str(self.folder), session)
        for node_id in node_ids:
            self.add(server, node_id)
        return server

    def start(self, session: str = "another", folder: Path | None = None) -> Views:
        """A server that starts where others may have been killed."""
        server = Views(str(self.data), str(folder or self.folder), session)
        view_files.start(self.db, server, self.now)
        return server

    def add(self, server: Views, node_id: str, db: sqlite3.Connection | None = None) -> Added:
        return view_files.add(db or self.db, server, self.project, node_id, self.now, NOT_YET)

    def remove(self, server: Views, node_id: str) -> Removed:
        return view_files.remove(self.db, server, self.project, node_id, self.now, NOT_YET)

    def clear(self, server: Views) -> None:
        view_files.clear(self.db, server, self.now)

    def text(self) -> str:
        return self.file.read_text()

    def shown(self) -> dict[str, str]:
        return shown_in(self.text())

    def stat(self) -> tuple[int, int]:
        found = self.file.stat()
        return found.st_ino, found.st_mtime_ns

    def mirror(self) -> list[str]:
        """What the store says is shown, in its order."""
        found = self.rows("SELECT node_id FROM docmem_views WHERE json_type(shown)='array' ORDER BY touched")
        return [row["node_id"] for row in found]

    def rows(self, sql: str) -> list[Any]:
        return self.db.execute(sql).fetchall()

    # Edits, each followed by a refresh, as the surfaces do it.

    def trees(self, *names: str) -> None:
        for name in names:
            tree.create(self.db, self.project, root_id=name, now=self.now)

    def put(self, target: str, text: str, mode: str = "append-child") -> str:
        node = tree.add(self.db, self.project, target, text, ("note", "", ""), mode, now=self._later())
        self.refresh(node.root_id)
        return node.id

    def change(self, node_id: str, text: str) -> None:
        node = tree.update_content(self.db, self.project, node_id, text, now=self._later())
        self.refresh(node.root_id)

    def move(self, source: str, target: str, mode: str = "before") -> None:
        node = tree.move(self.db, self.project, source, target, mode, now=self._later())
        self.refresh(node.root_id)

    def delete(self, node_id: str) -> None:
        root_id = self.node(node_id).root_id
        tree.delete(self.db, self.project, node_id)
        self.refresh(root_id)

    def refresh(self, *roots: str) -> None:
        view_files.refresh(self.db, str(self.data), self.project, roots, self.now)

    def node(self, node_id: str) -> Node:
        return tree.node(self.db, self.project, node_id)

    def texts(self, node_id: str) -> dict[str, str]:
        """What stands in a tree, by node."""
        return {node.id: node.text for node in nodes.subtree(self.db, self.project.number, node_id)}

    def _later(self) -> int:
        self.now += 1_000
        return self.now

    # The outbox.

    def waiting(self, session: str = "s1") -> str | None:
        """What waits for the next prompt of a session, as the model would read it."""
        path = self.data / "outbox" / session
        return json.loads(path.read_text()) if path.exists() else None

    def consume(self, session: str = "s1") -> str | None:
        """Take it as the hook does, in fewer milliseconds."""
        path = self.data / "outbox" / session
        left = sorted(path.parent.glob(f"{session}.*"))
        claim = path.with_name(f"{session}.claim")
        if path.exists():
            path.rename(claim)
        elif left:
            claim = left[0]
        else:
            return None
        said: str = json.loads(claim.read_text())
        for file in {claim, *left}:
            os.unlink(file)
        return said


def shown_in(text: str) -> dict[str, str]:
    """Node id -> expansion, as CLAUDE.md has them."""
    if HEADER not in text:
        return {}
    _, _, section = text.partition(HEADER)
    section, end, after = section.partition(END)
    assert end and not after
    found = {}
    for part in f"\n\n{section}".split("\n\n## ")[1:]:
        node_id, _, expansion = part.partition("\n\n")
        found[node_id] = expansion.rstrip("\n")
    return found


def context_of(line: str) -> str:
    """What Claude Code takes from the output of a hook."""
    said = json.loads(line)
    assert list(said) == ["hookSpecificOutput"] and line.count("\n") == 1
    assert said["hookSpecificOutput"]["hookEventName"] == "UserPromptSubmit"
    context: str = said["hookSpecificOutput"]["additionalContext"]
    return context


class Model:
    """A model that shows one view. It knows of a tree what it was told, and nothing else."""

    def __init__(self, expansion: str) -> None:
        self.knows: dict[str, str] = {}
        self._read(expansion.split("\n\n"))

    def hear(self, context: str | None) -> None:
        if context is None:
            return
        first, *lines, last = context.split("\n")
        assert first.startswith('<backstory source="backstory docmem"') and last == "</backstory>"
        _, _, view = "\n".join(lines).partition("\n\n## ")
        _, *parts = view.split("\n\n")
        if parts == ["This node was deleted, and its view is gone."]:
            self.knows = {}
            return
        self._read(parts)

    def _read(self, parts: list[str]) -> None:
        for part in parts:
            if part.startswith("No longer shown: "):
                for node_id in part.removeprefix("No longer shown: ").removesuffix(".").split(", "):
                    self.knows.pop(node_id, None)
            elif not part.startswith("["):
                metadata, _, text = part.partition("\n")
                self.knows[metadata.split(" ")[0]] = text
