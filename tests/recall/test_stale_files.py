"""Is it still so? What a search says about memories whose files changed."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from pathlib import Path

from backstory.blob import LARGEST, blob_id
from backstory.intake.note import keep
from backstory.recall.answer import answer as search
from backstory.recall.index import Index
from backstory.store.file.connection import connect
from tests.helpers.search import NOW, add


def stale(db: sqlite3.Connection, project: str, query: str = "walrus") -> tuple[str, ...]:
    (hit,) = search(Index(None), db, project, query, now=NOW).hits
    return hit.stale


def test_a_note_knows_when_its_files_changed(db: sqlite3.Connection, project: str) -> None:
    source = Path(project, "src")
    source.mkdir()
    (source / "auth.py").write_text("one")
    keep(db, project, "the walrus lives in src/auth.py", now=NOW)
    assert stale(db, project) == ()
    (source / "auth.py").write_text("two")
    assert stale(db, project) == ("src/auth.py changed since",)
    (source / "auth.py").write_text("one")
    assert stale(db, project) == ()
    (source / "auth.py").unlink()
    assert stale(db, project) == ("src/auth.py is gone",)


def test_a_trace_knows_when_its_files_changed(db: sqlite3.Connection, project: str) -> None:
    file = Path(project, "auth.py")
    file.write_text("one")
    for path in (str(file), "auth.py"):
        add(db, project, "walrus", kind="tool", files=[path], hashes=[blob_id(str(file))])
    file.write_text("two")
    hits = search(Index(None), db, project, "walrus", now=NOW).hits
    assert [hit.stale for hit in hits] == [("auth.py changed since",)] * 2


def test_a_file_that_was_too_large_or_not_there_is_not_judged(db: sqlite3.Connection, project: str) -> None:
    large = Path(project, "large.bin")
    with open(large, "wb") as file:
        file.truncate(LARGEST + 1)
    hashes = [blob_id(str(large)), blob_id(f"{project}/none.py")]
    assert hashes == [None, None]
    add(db, project, "walrus", files=[str(large), "none.py"], hashes=hashes)
    large.write_bytes(b"small now")
    assert stale(db, project) == ()


def test_a_file_outside_of_the_project_is_named_whole(
    db: sqlite3.Connection, project: str, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text("one")
    add(db, project, "walrus", kind="tool", files=[str(outside)], hashes=[blob_id(str(outside))])
    assert stale(db, project) == ()
    outside.write_text("two")
    assert stale(db, project) == (f"{outside} changed since",)


def test_a_note_takes_no_file_from_outside_of_its_project(
    db: sqlite3.Connection, project: str, tmp_path: Path
) -> None:
    (tmp_path / "outside.py").write_text("x")
    os.symlink(tmp_path / "outside.py", Path(project, "link.py"))
    kept = keep(db, project, f"see ../outside.py, link.py and {tmp_path}/outside.py and nothing.py", now=NOW)
    assert kept.memory.files == ()


def test_a_file_replaced_by_a_folder_or_a_pipe_does_not_hang(db: sqlite3.Connection, project: str) -> None:
    file = Path(project, "a.py")
    file.write_text("one")
    add(db, project, "walrus", files=["a.py"], hashes=[blob_id(str(file))])
    file.unlink()
    os.mkfifo(file)
    assert stale(db, project) in ((), ("a.py changed since",))


def test_a_global_note_says_nothing_about_the_files_of_another_project(
    db: sqlite3.Connection, project: str, tmp_path: Path
) -> None:
    Path(project, "auth.py").write_text("one")
    keep(db, project, "I like the walrus in auth.py", now=NOW, is_global=True)
    (tmp_path / "web").mkdir()
    assert stale(db, str(tmp_path / "web")) == ()
    (tmp_path / "web" / "auth.py").write_text("another file of that name")
    assert stale(db, str(tmp_path / "web")) == ()


def test_a_path_as_seen_from_a_folder_of_the_project_is_found_again(
    db: sqlite3.Connection, project: str, data: Path
) -> None:
    """The client's lists of files are as seen from the session's folder, which may lie below the root."""
    from tests.helpers.chaos import drain, put, tool_use

    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    inner = Path(project, "backend")
    inner.mkdir()
    (inner / "auth.py").write_text("one")
    put(data, tool_use("Grep", {"pattern": "walrus"}, {"filenames": ["./auth.py"]}, cwd=str(inner)))
    drain(data)
    store = connect(str(data / "backstory.db"))
    try:
        assert stale(store, project) == ()
    finally:
        store.close()
