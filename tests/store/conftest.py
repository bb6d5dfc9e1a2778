"""What the tests of backups and recovery start from."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from backstory.store.file import backup, connection
from backstory.store.file.connection import connect
from tests.helpers.backups import AFTER, BEFORE, path_of, store, with_a_toy
from tests.helpers.chaos import DAY, NOW


@pytest.fixture
def no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKSTORY_SYNTHESIZER", "off")  # it would make backups of its own


# Both are made once and copied: many tests damage one.


@pytest.fixture(scope="session")
def made_stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stores")


@pytest.fixture
def one_day(data: Path, made_stores: Path) -> Path:
    """A store with the commands of `BEFORE`, and its backup."""
    made = made_stores / "one-day"
    if not made.exists():
        store(data, *BEFORE)
        backup.make(str(data), NOW - DAY)
        shutil.copytree(data, made)
    else:
        shutil.copytree(made, data)
    return data


@pytest.fixture
def two_days(one_day: Path, made_stores: Path) -> Path:
    """The same with the commands of `AFTER`, which are in no backup."""
    made = made_stores / "two-days"
    if not made.exists():
        store(one_day, *AFTER)
        shutil.copytree(one_day, made)
    else:
        shutil.rmtree(one_day)
        shutil.copytree(made, one_day)
    return one_day


@pytest.fixture
def old(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with a session and three notes, to which one more migration is new."""
    with closing(connect(path_of(data))) as db:
        db.execute(
            "INSERT INTO projects (number, id, identity, name, root, last_memory, created_at)"
            " VALUES (1, 'prj_api', 'prj_api', 'api', '/x/api', 3, ?)",
            (NOW,),
        )
        db.execute(
            "INSERT INTO sessions (id, project_id, started_at, last_event_at, number)"
            " VALUES ('s', 'prj_api', ?, ?, 1)",
            (NOW, NOW),
        )
        for number in range(1, 4):
            db.execute(
                "INSERT INTO memories (row, id, project_id, session_id, kind, sector, tier, content,"
                " salience, created_at, updated_at, last_accessed)"
                " VALUES (?, ?, 'prj_api', 's', 'note', 'semantic', 'project', ?, 0.5, ?, ?, ?)",
                (1 << 32 | number, f"mem_{number}", f"old note {number}", NOW, NOW, NOW),
            )
    monkeypatch.setattr(connection, "MIGRATIONS", with_a_toy(tmp_path))
    return data
