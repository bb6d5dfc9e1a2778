"""A store of backstory 0.1: refused, kept, and moved as the sentence says."""

from __future__ import annotations

import re
import sqlite3
import subprocess
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from backstory.errors import BackstoryError, SchemaTooOld
from backstory.store.file import backup, connection, older, recovery
from backstory.store.file.connection import connect
from backstory.surfaces.cli.common import lost
from backstory.surfaces.opened import open_drained
from tests.helpers.backups import (
    VERSION_0_1,
    database,
    names,
    of_version_0_1,
    path_of,
    root_page,
    spoil,
    store,
    write_at,
)
from tests.helpers.chaos import NOW, bash, contents, event, prompt, rows, run_hook, spooled
from tests.helpers.commands import backstory
from tests.helpers.mcp_client import serving

pytestmark = pytest.mark.usefixtures("no_worker")

COMMANDS = "run `backstory export memory.jsonl` with backstory 0.1"


@pytest.fixture
def of_before(data: Path) -> Path:
    of_version_0_1(database(data))
    return data


def digests(data: Path) -> dict[str, str]:
    return {str(path): sha256(path.read_bytes()).hexdigest() for path in data.rglob("*.db")}


@pytest.mark.parametrize("schema", range(1, 13))
def test_it_is_refused_with_what_to_do_and_stays_as_it_is(data: Path, schema: int) -> None:
    of_version_0_1(database(data), schema)
    before = digests(data)
    for use in (
        lambda: connect(path_of(data)),
        lambda: connect(path_of(data), hurry=0.1),
        lambda: open_drained(str(data), now=NOW),
        lambda: recovery.verify(str(data), NOW),
        lambda: recovery.recover(str(data), NOW),
    ):
        with pytest.raises(SchemaTooOld, match=f"^{COMMANDS}.*at schema {schema}, of 0.1"):
            use()
    assert digests(data) == before


def test_one_that_is_damaged_as_well_is_left_to_backstory_0_1(of_before: Path) -> None:
    spoil(of_before, root_page(of_before, "memories"))
    before = digests(of_before)
    with pytest.raises(SchemaTooOld):
        open_drained(str(of_before), now=NOW)
    write_at(database(of_before), 100, b"\xff" * 200)  # nobody knows its tables
    with pytest.raises(SchemaTooOld):
        open_drained(str(of_before), now=NOW)
    assert set(digests(of_before)) == set(before)
    assert names(of_before, "set-aside") == []


@pytest.mark.parametrize("has_backup", [True, False])
def test_a_store_of_today_whose_header_says_an_old_schema_is_recovered(data: Path, has_backup: bool) -> None:
    store(data, "echo one", "echo two")
    if has_backup:
        backup.make(str(data), NOW)
    with closing(sqlite3.connect(path_of(data))) as db:
        db.execute("PRAGMA user_version = 5")
    with open_drained(str(data), now=NOW) as db:
        assert connection.version(db) == connection.latest()
    assert len(contents(data)) == 2


def test_a_backup_of_it_is_no_backup_of_this_store(data: Path) -> None:
    store(data, "echo one")
    old = of_version_0_1(data / "backups" / "backstory-20270101T000000Z.db")
    with pytest.raises(SchemaTooOld, match=f"^run `backstory backup restore {old}` and `backstory export "):
        recovery.restore(str(data), str(old), NOW)
    database(data).write_bytes(b"garbage" * 1000)
    done = recovery.recover(str(data), NOW)
    assert done is not None and done.backup is None
    with closing(connect(path_of(data))) as db:
        assert lost(db, str(data)) is None
    assert older.files(str(data)) == [str(old)]


@pytest.mark.slow
def test_who_moves_it_as_told_has_everything_and_what_was_captured_meanwhile(
    of_before: Path, tmp_path: Path
) -> None:
    project = tmp_path / "api"
    project.mkdir()
    with closing(sqlite3.connect(path_of(of_before))) as db:
        before = counts(db)
    assert before["memories"] == 25
    here = {"cwd": str(project), "session_id": "s9"}
    started = run_hook(event("SessionStart", source="startup", **here), "start")
    assert started.line.startswith(f"backstory: nothing is told: {COMMANDS}")
    for payload, *mode in (
        (prompt("what does the heron eat", **here), "prompt"),
        (bash("echo heron", "fish", **here),),
        (event("Stop", stop_hook_active=False, last_assistant_message="fish", **here), "stop"),
    ):
        assert run_hook(payload, *mode).silent
    waiting = spooled(of_before)
    assert len(waiting) == 4
    assert spooled(of_before, "failed") == []

    refused = backstory("search", "walrus", cwd=project)
    assert refused.returncode == 3
    assert refused.stderr.startswith(f"backstory: {COMMANDS}")
    (aside,) = re.findall(r"`(cd [^`]+)`", refused.stderr)
    subprocess.run(["sh", "-c", aside], check=True)
    assert older.files(str(of_before)) == [str(of_before / "set-aside" / "backstory.db")]
    moved = backstory("import", "--attach", str(VERSION_0_1 / "memory.jsonl"), cwd=project)
    assert moved.returncode == 0, moved.stderr

    assert spooled(of_before) == []
    with closing(sqlite3.connect(path_of(of_before))) as db:
        after = counts(db)
    more = {"projects": 1, "checkouts": 1, "sessions": 1, "prompts": 1, "memories": 2, "turns": 1}
    assert after == {table: many + more.get(table, 0) for table, many in before.items()}
    found = rows(of_before, "SELECT kind FROM memories WHERE content LIKE '%heron%' ORDER BY kind")
    assert [one["kind"] for one in found] == ["tool", "turn"]
    told = backstory("search", "rounded twice", "--everywhere", cwd=project)
    assert "It was rounded twice; it is rounded once now." in told.stdout


def counts(db: sqlite3.Connection) -> dict[str, int]:
    tables = (
        "projects checkouts sessions prompts memories turns memory_relationships documents document_chunks"
        " docmem_nodes session_summaries"
    )
    return {name: db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables.split()}  # noqa: S608


@pytest.mark.slow
def test_doctor_says_it_once_and_the_server_with_each_call(of_before: Path, tmp_path: Path) -> None:
    doctor = backstory("doctor", "--claude", "/nowhere", cwd=tmp_path)
    assert doctor.stdout.count(COMMANDS) == 1
    assert "not checked, for the reason of canary above" in doctor.stdout
    with serving(of_before, tmp_path) as server:
        for _ in range(2):
            assert server.refusal("memory_search", query="walrus").startswith(COMMANDS)


def test_it_says_what_to_do_where_the_folder_has_a_name_with_a_space(tmp_path: Path) -> None:
    path = of_version_0_1(tmp_path / "my data" / "backstory.db")
    with pytest.raises(BackstoryError) as refused:
        connect(str(path))
    (aside,) = re.findall(r"`(cd [^`]+)`", str(refused.value))
    subprocess.run(["sh", "-c", aside], check=True)
    assert (path.parent / "set-aside" / "backstory.db").exists()
    connect(str(path)).close()  # it starts anew
