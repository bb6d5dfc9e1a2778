"""What the tests of briefs and of search start from."""

from __future__ import annotations

import sqlite3

import pytest

from backstory.recall.embedders.static import Static
from tests.helpers.brief import Told


@pytest.fixture
def told(db: sqlite3.Connection, project: str) -> Told:
    return Told(db, project)


@pytest.fixture(scope="module")
def static() -> Static:
    return Static()
