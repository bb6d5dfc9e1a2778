"""`backstory docmem`: the views of running servers follow what is done here."""

from __future__ import annotations

import fcntl
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from backstory.docmem import tree, views
from backstory.model import Node
from backstory.store.file.connection import connect, transaction
from backstory.surfaces import view_files
from backstory.surfaces.cli import common
from tests.conftest import Run
from tests.helpers.handbook import THEN, opened

OWN = b"# Rules\r\nno final line end"


@pytest.fixture
def viewed(handbook: Node, data: Path, project: str) -> Iterator[Path]:
    """The CLAUDE.md in which a running server shows the handbook."""
    file = Path(project, "CLAUDE.md")
    file.write_bytes(OWN)
    server = views.Views(str(data), project, "session-1")

    with opened(data, project) as (db, here):
        view_files.add(db, server, here, "handbook", THEN, threading.Event())
        assert b"## handbook" in file.read_bytes()
        yield file
        view_files.clear(db, server, THEN)


def test_what_is_deleted_here_leaves_the_views_of_running_servers(run: Run, viewed: Path) -> None:
    assert b"Herring" in viewed.read_bytes()
    ran = run("docmem", "delete", "feeding1", "--yes")
    assert (ran.code, ran.err) == (0, "")
    text = viewed.read_bytes()
    assert b"Herring" not in text
    assert b"It sleeps on ice" in text
    assert run("docmem", "delete", "handbook", "--yes").code == 0
    assert viewed.read_bytes() == OWN


def test_the_model_is_told_at_its_next_prompt_what_was_deleted_here(
    run: Run, viewed: Path, data: Path
) -> None:
    run("docmem", "delete", "feeding1", "--yes")
    assert "feeding1" in (data / "outbox" / "session-1").read_text()


def test_an_import_leaves_views_of_other_trees_as_they_are(run: Run, viewed: Path) -> None:
    before = viewed.read_bytes()
    ran = run("docmem", "import", "-", "--format", "txt", "--root-id", "other", stdin="hello")
    assert (ran.code, ran.err) == (0, "")
    assert viewed.read_bytes() == before


def test_an_edit_stands_though_a_view_could_not_follow_it(run: Run, viewed: Path) -> None:
    viewed.chmod(0o400)
    ran = run("docmem", "delete", "feeding1", "--yes")
    assert (ran.code, ran.out) == (0, "Deleted: feeding1 (3 nodes)\n")
    assert "a view could not be refreshed" in ran.err
    assert str(viewed) in ran.err
    viewed.chmod(0o600)


@pytest.mark.slow
def test_who_waits_for_a_busy_store_lets_others_write_claude_md(
    run: Run, viewed: Path, data: Path, project: str
) -> None:
    with opened(data, project) as (db, here):
        tree.update_content(db, here, "evening1", "Nothing but krill", now=THEN)
    is_busy, longest = threading.Event(), 0.0

    def write_for_long() -> None:
        nonlocal longest
        with closing(connect(str(data / "backstory.db"))) as db, transaction(db):
            is_busy.set()
            began = free = time.monotonic()
            while time.monotonic() < began + 1.5:
                with open(data / "claude-md.lock") as lock, suppress(BlockingIOError):
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    free = time.monotonic()
                longest = max(longest, time.monotonic() - free)
                time.sleep(0.001)

    writer = threading.Thread(target=write_for_long)
    writer.start()
    is_busy.wait()
    with opened(data, project) as (db, here):
        common.refresh_views(db, here, ["handbook"], THEN)
    writer.join()
    assert b"Nothing but krill" in viewed.read_bytes()
    assert longest < 0.75
