"""A store from before projects were known by their repositories: nothing is lost on the way, however often it
is killed, and a repository that is moved afterwards keeps its memory.

BACKSTORY_MIGRATION_MEMORIES and _KILLS make it a large one; -s shows how long it took.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from backstory import paths
from backstory.store import projects
from backstory.store.file import connection
from backstory.store.file.connection import connect
from tests.helpers.backups import path_of
from tests.helpers.chaos import NOW, drain, rows, start
from tests.helpers.forged_git import git, repository

MEMORIES = int(os.environ.get("BACKSTORY_MIGRATION_MEMORIES", "400"))
KILLS = int(os.environ.get("BACKSTORY_MIGRATION_KILLS", "4"))
BEFORE = 7  # the last schema in which a project was a path
OPEN = """
import sys
sys.path.insert(0, sys.argv[1])
from backstory.store.file.connection import connect
sys.stdout.write("up\\n")
sys.stdout.flush()
connect(sys.argv[2] + "/backstory.db").close()
"""
DUMP = {
    "memories": "SELECT row, id, project_id, session_id, kind, content, salience FROM memories ORDER BY row",
    "sessions": "SELECT id, project_id, cwd, started_at, last_event_at FROM sessions ORDER BY id",
    "turns": "SELECT * FROM turns ORDER BY row",
    "pieces": "SELECT * FROM turn_pieces ORDER BY row",
    "found": "SELECT count(*) FROM memories_fts WHERE memories_fts MATCH 'walrus'",
    "links": "SELECT * FROM session_memories ORDER BY 1, 2, 3",
    "projects": "SELECT number, id, name, root, last_memory, created_at FROM projects ORDER BY number",
}


def dump(path: str) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(path)) as db:
        return {name: db.execute(sql).fetchall() for name, sql in DUMP.items()}


@pytest.fixture
def old(data: Path, tmp_path: Path) -> Path:
    """Five projects of the old kind, three of which are repositories that are there."""
    data.mkdir(parents=True)
    folders = [repository(tmp_path / name) for name in ("a", "b", "c")]
    for number, folder in enumerate(folders):
        git(folder, "commit", "-q", "--allow-empty", "--amend", "-m", f"number {number}")
    places = [str(folder / ".git") for folder in folders] + ["/gone/repository/.git", "/gone/folder"]
    with closing(sqlite3.connect(path_of(data), isolation_level=None)) as db:
        connection.apply(db, upto=BEFORE)
        db.execute("BEGIN")
        for number, place in enumerate(places, 1):
            root = place.removesuffix("/.git")
            values = (number, f"prj_{number}", place, Path(root).name, root, MEMORIES, NOW)
            db.execute("INSERT INTO projects VALUES (?, ?, ?, ?, ?, ?, ?)", values)
            db.execute(
                "INSERT INTO sessions (id, project_id, cwd, started_at, last_event_at, number)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (f"s{number}", f"prj_{number}", root, NOW, NOW + number, number),
            )
        for number in range(MEMORIES):
            project = number % len(places) + 1
            db.execute(
                "INSERT INTO memories (row, id, project_id, session_id, content, created_at, updated_at,"
                " last_accessed, kind, sector, tier, salience)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'note', 'semantic', 'project', 0.5)",
                (
                    project << 32 | number // len(places) + 1,
                    f"mem_{number:012d}",
                    f"prj_{project}",
                    f"s{project}",
                    f"walrus {number} sleeps on floe {number * 7919 % 1000}",
                    NOW,
                    NOW,
                    NOW,
                ),
            )
            link = (f"s{project}", f"mem_{number:012d}", "created", NOW)
            db.execute("INSERT INTO session_memories VALUES (?, ?, ?, ?)", link)
        db.execute("COMMIT")
    return data


def test_a_migration_that_is_killed_again_and_again_loses_nothing(old: Path) -> None:
    before = dump(path_of(old))
    began = time.perf_counter()
    whole = old.parent / "timed"
    shutil.copytree(old, whole)
    connect(path_of(whole)).close()
    took = time.perf_counter() - began
    print(f"\n{MEMORIES:,} memories: migrated in {took:.2f} s, a backup included")  # noqa: T201
    rng = random.Random(7)  # noqa: S311  the same in every run
    for _ in range(KILLS):
        process = start(OPEN, str(old))
        assert process.stdout
        with process:
            process.stdout.readline()
            time.sleep(rng.uniform(0, took))
            process.kill()
            process.communicate()
        assert dump(path_of(old)) == before
    connect(path_of(old)).close()
    assert dump(path_of(old)) == before
    assert len(rows(old, "SELECT * FROM checkouts")) == 5
    assert rows(old, "PRAGMA integrity_check") == [{"integrity_check": "ok"}]
    assert rows(old, "PRAGMA foreign_key_check") == []


def test_repositories_of_an_old_store_keep_their_memory_when_they_move_later(
    old: Path, tmp_path: Path
) -> None:
    drain(old)  # as the first hook after the upgrade does
    learned = rows(old, "SELECT id, roots <> '' AS known FROM projects ORDER BY number")
    assert [row["known"] for row in learned] == [1, 1, 1, 0, 0]
    (tmp_path / "a").rename(tmp_path / "moved")
    db = connect(path_of(old))
    assert projects.id_at(db, paths.place(str(tmp_path / "moved"))) == "prj_1"
    assert projects.id_at(db, paths.place(str(tmp_path / "b"))) == "prj_2"
    db.close()
