"""A tree about a walrus in the store that the commands use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from sqlite3 import Connection

from backstory import paths
from backstory.docmem.tree import Made
from backstory.model import Project
from backstory.store import projects
from backstory.store.file.connection import connect, transaction

THEN = 1_750_000_000_000


@contextmanager
def opened(data: Path, folder: str) -> Iterator[tuple[Connection, Project]]:
    """The store that the commands use, and the project of a folder in it."""
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    with closing(connect(str(data / "backstory.db"))) as db:
        with transaction(db):
            known = projects.ensure(db, paths.place(folder), THEN)
        yield db, projects.by_id(db, known)


def note(name: str, text: str, parent: int | None = 0, node_id: str | None = None, **given: bool) -> Made:
    return Made(node_id, parent, text, ("note", name, ""), **given)


HANDBOOK = [
    Made("handbook", None, "How to keep a walrus", ("root", "handbook", "")),
    Made("feeding1", 0, "Three meals a day", ("summary", "feeding", "2")),
    note("morning", "Herring at six.\nNever later.", 1, "morning1"),
    note("evening", "Squid, if there is any", 1, "evening1"),
    note("sleep", "It sleeps on ice", 0, "sleeping", readonly=True),
]
