"""What the tests of exports and imports start from."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.rich_store import new_store, rich


@pytest.fixture
def full(tmp_path: Path, data: Path) -> Iterator[sqlite3.Connection]:
    """A store with some of everything."""
    (tmp_path / "api").mkdir()
    (tmp_path / "web").mkdir()
    db = new_store(tmp_path, "full")
    rich(db, data, tmp_path / "api", tmp_path / "web")
    yield db
    db.close()
