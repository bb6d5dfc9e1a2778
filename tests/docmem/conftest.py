"""What the tests of trees begin with."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from backstory.docmem import tree
from backstory.docmem.exchange import import_document
from backstory.docmem.tree import Made
from backstory.model import Node, Project
from backstory.store import nodes
from tests.helpers import exchange
from tests.helpers.live_views import Desk
from tests.helpers.trees import NOTE, NOW, assert_trees_sound, project_at


@pytest.fixture
def api(db: sqlite3.Connection, project: str) -> Iterator[Project]:
    yield project_at(db, project)
    assert_trees_sound(db)


@pytest.fixture
def grown(db: sqlite3.Connection, api: Project) -> dict[str, str]:
    """The ids of a tree's nodes by their text: main > (a > (a1, a2, a3), b, c > c1)."""
    made = [Made("main", None, "main", NOTE), Made(None, 0, "a", NOTE)]
    made += [Made(None, 1, text, NOTE) for text in ("a1", "a2", "a3")]
    made += [Made(None, 0, "b", NOTE), Made(None, 0, "c", NOTE), Made(None, 6, "c1", NOTE)]
    tree.build(db, api, made, now=NOW)
    return {one.text: one.id for one in nodes.subtree(db, api.number, "main")}


@pytest.fixture
def desk(data: Path, tmp_path: Path) -> Iterator[Desk]:
    with Desk(data, tmp_path / "api") as made:
        yield made


@pytest.fixture
def take_in(db: sqlite3.Connection, api: Project) -> exchange.Take:
    """`take_in("# A", "md")` imports a document."""

    def take(
        text: str, format: str, root_id: str | None = None, name: str = "doc", into: Project = api
    ) -> Node:
        root = import_document(db, into, text, format, root_id, name, exchange.NOW).root
        assert_trees_sound(db)
        return root

    return take
