"""Live views of several servers, and of several processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from backstory.claude_md.write import writer
from backstory.docmem import expand, tree, views
from backstory.docmem.views import Views
from backstory.errors import BackstoryError
from backstory.surfaces import view_files
from tests.helpers.chaos import SOURCE
from tests.helpers.live_views import Desk

NOTE = ("note", "", "")


# --- several servers ----------------------------------------------------------------------------------------


def test_two_servers_show_the_union_most_recently_touched_last(desk: Desk) -> None:
    desk.trees("one", "two", "three")
    first, second = desk.server("one", session="s1"), desk.server("two", session="s2")
    desk.add(first, "three")

    assert list(desk.shown()) == ["one", "two", "three"]

    desk.add(second, "one")  # shown by both: once, at its latest touch
    assert list(desk.shown()) == ["two", "three", "one"]
    desk.remove(second, "one")
    assert list(desk.shown()) == ["one", "two", "three"]
    desk.remove(first, "one")
    assert list(desk.shown()) == ["two", "three"]


def test_two_folders_with_one_file_show_the_union_in_it(desk: Desk) -> None:
    (desk.folder / ".git").mkdir()
    (desk.folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    inside = desk.folder / "inside"
    inside.mkdir()
    (inside / "CLAUDE.md").symlink_to("../CLAUDE.md")
    desk.trees("one", "two")
    page = desk.put("one", "before")
    first, second = desk.server("one"), Views(str(desk.data), str(inside), "s2")

    desk.add(second, "two")
    assert list(desk.shown()) == ["one", "two"]
    desk.change(page, "after")
    assert list(desk.shown()) == ["one", "two"] and "after" in desk.text()
    desk.start(folder=inside)
    assert list(desk.shown()) == ["one", "two"]
    desk.clear(first)
    assert list(desk.shown()) == ["two"]


def test_a_server_that_ends_takes_its_views_and_leaves_those_of_others(desk: Desk) -> None:
    desk.trees("one", "two")
    first, second = desk.server("one", "two", session="s1"), desk.server("two", session="s2")

    desk.clear(first)

    assert list(desk.shown()) == ["two"]
    assert not first.is_used
    assert len(os.listdir(desk.data / "servers")) == 1
    desk.clear(second)
    assert desk.text() == "# Mine\n"
    assert os.listdir(desk.data / "servers") == []
    assert desk.rows("SELECT * FROM docmem_servers") == []
    desk.clear(second)


def test_a_server_that_ends_is_gone_from_the_store_also_when_the_file_cannot_be_written(desk: Desk) -> None:
    desk.trees("one")
    server = desk.server("one")
    desk.file.chmod(0o444)

    with pytest.raises(BackstoryError):
        desk.clear(server)

    assert desk.rows("SELECT * FROM docmem_servers") == []
    assert not server.is_used


def test_a_server_that_never_showed_anything_ends_without_a_trace(desk: Desk) -> None:
    before = desk.stat()
    desk.clear(desk.server())
    assert desk.stat() == before


def test_a_server_that_starts_leaves_the_views_of_living_ones_and_nothing_else(desk: Desk) -> None:
    desk.trees("one", "two")
    desk.file.write_text("# Mine\n\n# DOCMEM Dynamic\n\n## gone\n\nof a server that was killed\n")
    desk.start()
    assert desk.text() == "# Mine\n"

    desk.server("one")
    desk.start()
    assert list(desk.shown()) == ["one"]


def test_a_start_without_a_claude_md_or_with_one_that_cannot_be_written(desk: Desk) -> None:
    desk.file.chmod(0o444)
    with pytest.raises(BackstoryError):
        desk.start()
    desk.file.unlink()
    desk.start()
    assert not desk.file.exists()


def test_the_list_in_memory_is_the_one_that_counts_when_a_backup_is_restored(desk: Desk) -> None:
    desk.trees("one", "two", "three")
    server = desk.server("one", "two", "three")
    desk.db.execute("DELETE FROM docmem_views WHERE node_id = 'one'")
    desk.add(server, "three")
    assert desk.mirror() == list(desk.shown()) == ["one", "two", "three"]

    desk.db.execute("DELETE FROM docmem_servers")
    desk.remove(server, "two")
    assert desk.mirror() == list(desk.shown()) == ["one", "three"]


def test_a_server_whose_lock_file_was_removed_is_alive_again_at_its_next_view(desk: Desk) -> None:
    desk.trees("one", "two")
    server = desk.server("one")
    for name in os.listdir(desk.data / "servers"):
        os.unlink(desk.data / "servers" / name)
    desk.start()
    assert desk.text() == "# Mine\n"

    desk.add(server, "two")
    desk.start()
    assert list(desk.shown()) == ["one", "two"]


# --- several processes --------------------------------------------------------------------------------------

SERVER = """
import sys
sys.path[:0] = sys.argv[1:3]
from pathlib import Path
from tests.helpers.live_views import Desk

data, folder, session, *names = sys.argv[3:]
with Desk(Path(data), Path(folder)) as desk:
    server = desk.server(*names, session=session)
    print("ready", flush=True)
    for line in sys.stdin:
        what, *rest = line.split()
        if what == "add":
            desk.add(server, *rest)
        elif what == "change":
            desk.change(*rest)
        elif what == "end":
            desk.clear(server)
        print("done", flush=True)
"""


class Process:
    """A server of its own, told what to do over stdin."""

    def __init__(self, desk: Desk, session: str, *names: str) -> None:
        command = [sys.executable, "-c", SERVER, SOURCE, str(Path(__file__).parents[2]), str(desk.data)]
        self._process = subprocess.Popen(
            [*command, str(desk.folder), session, *names],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ready(self) -> None:
        assert self._process.stdout
        assert self._process.stdout.readline() in ("ready\n", "done\n")

    def do(self, *words: str) -> None:
        assert self._process.stdin
        print(*words, file=self._process.stdin, flush=True)
        self.ready()

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(10)
        for stream in (self._process.stdin, self._process.stdout):
            assert stream
            stream.close()


@contextmanager
def processes(desk: Desk, *given: tuple[str, ...]) -> Iterator[list[Process]]:
    started = [Process(desk, *arguments) for arguments in given]
    try:
        for process in started:
            process.ready()
        yield started
    finally:
        for process in started:
            process.kill()


def test_servers_in_processes_of_their_own_show_the_union_and_refresh_each_other(desk: Desk) -> None:
    desk.trees("one", "two")
    page = desk.put("two", "before")
    with processes(desk, ("s1", "one")) as (first,):
        server = desk.server("two", session="s2")
        assert list(desk.shown()) == ["one", "two"]

        first.do("change", page, "after")
        assert "after" in desk.text()
        assert "after" in str(desk.waiting("s2")) and desk.waiting("s1") is None

        first.do("add", "two")
        assert list(desk.shown()) == ["one", "two"]
        desk.clear(server)
        assert list(desk.shown()) == ["one", "two"]
        first.do("end")
        assert desk.text() == "# Mine\n"


@pytest.mark.parametrize("how", ["an edit", "an edit of another tree", "an add", "a start", "an end"])
def test_a_server_that_was_killed_is_noticed_and_its_views_go(how: str, desk: Desk) -> None:
    desk.trees("one", "two", "three")
    server = desk.server("two", session="s2")
    with processes(desk, ("s1", "one")) as (first,):
        desk.put("one", "something new")
        assert desk.waiting("s1")
        first.kill()
        assert list(desk.shown()) == ["two", "one"]

        if how == "an edit":
            desk.put("two", "text")
        elif how == "an edit of another tree":
            desk.put("three", "text")
        elif how == "an add":
            desk.add(server, "two")
        elif how == "a start":
            desk.start()
        else:
            desk.clear(server)

    assert list(desk.shown()) == ([] if how == "an end" else ["two"])
    assert desk.waiting("s1") is None, "nobody is there to be told"
    assert len(os.listdir(desk.data / "servers")) == len(desk.rows("SELECT * FROM docmem_servers"))
    assert len(os.listdir(desk.data / "servers")) == (how != "an end")


def test_a_session_whose_server_was_killed_is_told_that_its_views_ended(desk: Desk) -> None:
    desk.trees("one", "two", "three")
    with processes(desk, ("s1", "one", "two", "three")) as (first,):
        desk.put("one", "this was not told")
        desk.delete("three")
        first.kill()

        server = desk.start("s1")

    assert desk.text() == "# Mine\n"
    said = str(desk.waiting())
    for name in ("one", "two"):
        assert f"## {name}\n\nThis view ended with its server; docmem_view add shows it again." in said
    assert "## three\n\nThis node was deleted" in said and "this was not told" not in said

    desk.start("another")
    desk.add(server, "two")
    said = str(desk.consume())
    assert "## one" in said and "## two" not in said
    desk.refresh("two")
    assert [row["node_id"] for row in desk.rows("SELECT node_id FROM docmem_views")] == ["two"]
    assert desk.consume() is None
    desk.clear(server)
    assert desk.rows("SELECT * FROM docmem_servers") == []


def test_what_a_killed_server_left_beside_claude_md_is_seen_without_the_store(desk: Desk) -> None:
    desk.trees("one")
    assert not views.is_anything_left(str(desk.data))
    with processes(desk, ("s1", "one")) as (first,):
        assert not views.is_anything_left(str(desk.data)), "it lives"
        first.kill()
        assert views.is_anything_left(str(desk.data))
    desk.start()
    assert not views.is_anything_left(str(desk.data))
    (desk.data / "outbox").mkdir()
    (desk.data / "outbox" / "s1").write_text("{}")
    assert views.is_anything_left(str(desk.data))
    desk.start()
    assert not views.is_anything_left(str(desk.data))


def test_the_dead_of_another_folder_are_left_to_those_who_work_there(desk: Desk) -> None:
    desk.trees("one", "two")
    elsewhere = desk.folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "CLAUDE.md").write_text("# There\n")
    with processes(desk, ("s1", "one")) as (first,):
        first.kill()
        desk.start(folder=elsewhere)
    assert list(desk.shown()) == ["one"], "its file was not theirs to change"
    desk.start()
    assert desk.text() == "# Mine\n"


@pytest.mark.slow
def test_edits_of_three_processes_at_once_end_in_a_file_that_shows_them_all(desk: Desk) -> None:
    desk.trees("one", "two", "three")
    names = ("one", "two", "three")
    pages = {name: desk.put(name, "0") for name in names}
    with processes(desk, *((f"s{name}", name) for name in names)) as servers:

        def work(server: Process, name: str) -> None:
            others = [other for other in names if other != name]
            for number in range(1, 9):
                server.do("change", pages[others[number % 2]], f"{name}-{number}")
                server.do("add", others[number % 2])

        threads = [
            threading.Thread(target=work, args=(server, name))
            for server, name in zip(servers, names, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert desk.shown() == {
            name: expand.expand(desk.db, desk.project.number, desk.node(name), 10_000)
            for name in desk.shown()
        }
        assert set(desk.shown()) == set(names)


def test_threads_of_one_server_lose_no_view(desk: Desk) -> None:
    names = [f"tree{number}" for number in range(8)]
    desk.trees(*names)
    server = desk.server()
    failed: list[BaseException] = []

    def work(name: str) -> None:
        try:
            with desk.another_connection() as db:
                desk.add(server, name, db)
                page = tree.add(db, desk.project, name, f"text of {name}", NOTE, "append-child", now=desk.now)
                view_files.refresh(db, str(desk.data), desk.project, [page.root_id], desk.now)
        except BaseException as error:  # noqa: BLE001  a thread has nobody to tell
            failed.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not failed
    assert sorted(desk.mirror()) == names
    assert list(desk.shown()) == desk.mirror()
    assert all(f"text of {name}" in text for name, text in desk.shown().items())


def test_the_file_is_locked_before_the_store(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or else two servers could wait for each other. And the store stays locked until the file is written,
    so that nobody writes an older state over a newer one."""
    desk.trees("one")
    seen = []
    alone, put = writer.alone, writer.put_views

    @contextmanager
    def looking(folder: str, data: str, now: int) -> Iterator[bool]:
        with alone(folder, data, now) as is_there:
            seen.append(desk.is_locked())
            yield is_there

    def putting(*given: Any, **how: Any) -> bool:
        found = put(*given, **how)
        seen.append(desk.is_locked())
        return found

    monkeypatch.setattr(writer, "alone", looking)
    monkeypatch.setattr(writer, "put_views", putting)
    server = desk.server("one")
    tree.add(desk.db, desk.project, "one", "text", NOTE, "append-child", now=desk.now)
    desk.refresh("one")
    desk.clear(server)
    desk.start("s2")

    assert seen == [False, True] * 4
    assert not desk.is_locked()
