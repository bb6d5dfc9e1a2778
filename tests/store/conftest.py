"""What the tests of backups and recovery start from."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from backstory.store.file import connection
from tests.helpers.backups import path_of
from tests.helpers.chaos import NOW


@pytest.fixture
def no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKSTORY_SYNTHESIZER", "off")  # it would make backups of its own


@pytest.fixture
def old(data: Path) -> Path:
    """A store at schema 2 with a session and three notes."""
    data.mkdir(parents=True)
    db = sqlite3.connect(path_of(data), isolation_level=None)
    connection.apply(db, upto=2)
    db.execute("INSERT INTO projects VALUES (1, 'prj_api', '/x/api', 'api', '/x/api', 3, ?)", (NOW,))
    db.execute(
        "INSERT INTO sessions (id, project_id, started_at, last_event_at, number)"
        " VALUES ('s', 'prj_api', ?, ?, 1)",
        (NOW, NOW),
    )
    for number in range(1, 4):
        db.execute(
            "INSERT INTO memories (row, id, project_id, session_id, kind, sector, tier, content, salience,"
            " created_at, updated_at, last_accessed) VALUES (?, ?, 'prj_api', 's', 'note', 'semantic',"
            " 'project', ?, 0.5, ?, ?, ?)",
            (1 << 32 | number, f"mem_{number}", f"old note {number}", NOW, NOW, NOW),
        )
    db.close()
    return data
