"""The MCP server `docmem`: how it starts and ends, and what it does about a store in trouble."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from backstory import paths
from backstory.claude_md.write.dynamic import END
from backstory.docmem import tree
from backstory.errors import StoreError
from backstory.store import projects
from backstory.store.file import backup, recovery
from backstory.store.file.connection import transaction
from backstory.surfaces.mcp import live
from backstory.surfaces.opened import open_drained
from tests.helpers.chaos import Json, assert_sound, bash, put, rows
from tests.helpers.docmem_desk import node, shown
from tests.helpers.mcp_client import MCP, Reply, Server, Wire, assert_a_sentence, environment, serving

pytestmark = pytest.mark.slow

# --- docmem_view: the beginning and the end of a server -----------------------------------------------------


MINE = b"# Mine\n\nBoats are blue.\n"


class House:
    """A project with a CLAUDE.md and a tree, for servers that come and go."""

    def __init__(self, folder: Path) -> None:
        self.data, self.project = folder / "data", folder / "project"
        self.project.mkdir()
        self.file = self.project / "CLAUDE.md"
        self.file.write_bytes(MINE)

    def wire(self) -> Wire:
        return Wire(self.data, self.project, server="docmem", cwd=self.project)

    @contextmanager
    def server(self, session_id: str = "a-session") -> Iterator[Server]:
        with serving(self.data, self.project, session_id, server="docmem", cwd=self.project) as server:
            yield server

    @contextmanager
    def showing(self) -> Iterator[Wire]:
        """A server that shows a tree."""
        with self.wire() as wire:
            wire.shake_hands()
            assert wire.call("docmem_create", '{"root_id": "notes"}')
            added = wire.call("docmem_view", '{"action": "add", "node_id": "notes"}')
            assert added and not added.is_error, added
            assert shown(self.file.read_bytes()) == ["notes"]
            yield wire

    def left_in_the_store(self) -> list[Json]:
        return rows(self.data, "SELECT * FROM docmem_servers")

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Somebody writes to the store, and takes long."""
        with closing(sqlite3.connect(self.data / "backstory.db", isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            yield
            db.execute("ROLLBACK")


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def ended(wire: Wire, seconds: float = 5) -> tuple[int, float]:
    started = time.monotonic()
    code = wire.process.wait(seconds)
    return code, time.monotonic() - started


def test_a_start_removes_what_is_left_in_the_file_before_initialize_is_answered(house: House) -> None:
    house.file.write_bytes(MINE + b"\n# DOCMEM Dynamic\n\n## old\n\nsomething old\n" + END + b"\n")
    with house.wire() as wire:
        wire.shake_hands()
        assert house.file.read_bytes() == MINE


def test_a_start_answers_nothing_before_it_has_cleaned_up(house: House) -> None:
    house.file.write_bytes(MINE + b"\n# DOCMEM Dynamic\n\n## old\n")
    house.data.mkdir()
    with open(house.data / "claude-md.lock", "w") as lock, house.wire() as wire:
        fcntl.flock(lock, fcntl.LOCK_EX)
        is_free = threading.Event()

        def let_go() -> None:
            is_free.set()
            fcntl.flock(lock, fcntl.LOCK_UN)

        later = threading.Timer(2, let_go)  # a start takes one or two, and waits two at most
        later.start()
        wire.shake_hands()
        assert is_free.is_set()
        assert house.file.read_bytes() == MINE
        later.join()


def test_a_start_does_not_wait_for_ever_for_somebody_who_changes_a_claude_md(house: House) -> None:
    house.file.write_bytes(MINE + b"\n# DOCMEM Dynamic\n\n## old\n")
    house.data.mkdir()
    with open(house.data / "claude-md.lock", "w") as lock, house.wire() as wire:
        fcntl.flock(lock, fcntl.LOCK_EX)
        started = time.monotonic()
        wire.shake_hands()
        assert time.monotonic() - started < 6, "two seconds, and what a start takes"


def test_a_start_while_the_store_is_busy_leaves_what_others_show(house: House) -> None:
    with house.showing():
        house.file.write_bytes(house.file.read_bytes().replace(b"## notes", b"## stale"))
        with house.busy(), house.wire() as wire:
            wire.shake_hands()
            assert shown(house.file.read_bytes()) == ["notes"]


def test_a_start_removes_a_section_of_another_program_with_all_below_it(house: House) -> None:
    house.file.write_bytes(MINE + b"\n# DOCMEM Dynamic\n\n## old\n\nsomething old\n")
    with house.wire() as wire:
        wire.shake_hands()
        assert house.file.read_bytes() == MINE


@pytest.mark.parametrize("there", ["nothing", "a folder", "a pipe", "not readable", "a link to nowhere"])
def test_a_start_without_a_claude_md_of_use_goes_on(house: House, there: str) -> None:
    house.file.unlink()
    if there == "a folder":
        house.file.mkdir()
    elif there == "a pipe":
        os.mkfifo(house.file)
    elif there == "not readable":
        house.file.write_bytes(MINE + b"\n# DOCMEM Dynamic\n")
        house.file.chmod(0o000)
    elif there == "a link to nowhere":
        house.file.symlink_to(house.project / "nowhere")
    with house.wire() as wire:
        wire.shake_hands()
        reply = wire.call("docmem_list", "{}")
        assert reply and not reply.is_error


def test_a_start_without_the_store_cleans_up_all_the_same(house: House) -> None:
    house.file.write_bytes(MINE + b"\n# DOCMEM Dynamic\n\n## old\n")
    house.data.mkdir()
    (house.data / "backstory.db").write_bytes(b"this is no database" * 100)
    with house.wire() as wire:
        wire.shake_hands()
        assert house.file.read_bytes() == MINE


def test_a_start_in_a_folder_that_is_gone_says_so_when_asked(house: House, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
    env = {**os.environ, **environment(house.data, house.project, "s")}
    view = {"name": "docmem_view", "arguments": {"action": "add", "node_id": "notes"}}
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": view},
    ]
    with subprocess.Popen(
        ["sh", "-c", script, "sh", str(gone), *MCP, "docmem"],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin and process.stdout
        for line in lines:
            process.stdin.write(json.dumps(line).encode() + b"\n")
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.stdin.close()
        assert process.wait(10) == 0
    said = answers[1]["result"]
    assert said["isError"]
    assert said["content"][0]["text"] == "the current folder is gone; start a new session in one that exists"


def test_the_section_goes_when_stdin_ends(house: House) -> None:
    with house.showing() as wire:
        assert wire.hang_up() < 2
        assert wire.process.returncode == 0
        assert house.file.read_bytes() == MINE
    assert house.left_in_the_store() == []
    assert (house.data / "stderr").read_text() == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_section_goes_at_a_signal(
    house: House, number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    with house.showing() as wire:
        wire.process.send_signal(number)
        code, seconds = ended(wire)
        assert code == -number
        assert house.file.read_bytes() == MINE
    with capsys.disabled():
        print(f"\n{number.name}: gone after {1000 * seconds:.0f} ms")  # noqa: T201
    assert seconds < 1, "0.2 s is the aim; the client kills after half a second"
    assert house.left_in_the_store() == []
    assert (house.data / "stderr").read_text() == ""


def test_signals_one_after_the_other_as_the_client_sends_them(house: House) -> None:
    with house.showing() as wire:
        wire.process.send_signal(signal.SIGINT)
        time.sleep(0.005)
        wire.process.send_signal(signal.SIGTERM)
        code, _ = ended(wire)
        assert code in (-signal.SIGINT, -signal.SIGTERM)
        assert house.file.read_bytes() == MINE


def test_the_section_goes_at_a_signal_though_the_store_is_busy(house: House) -> None:
    with house.showing() as wire, house.busy():
        wire.process.send_signal(signal.SIGINT)
        _, seconds = ended(wire)
        assert house.file.read_bytes() == MINE
        assert seconds < 2
    with house.server() as server:  # which tidies up what could not be written down
        server.ask("docmem_view", action="add", node_id="notes")
        assert shown(house.file.read_bytes()) == ["notes"]
        assert len(house.left_in_the_store()) == 1


def test_an_end_while_the_store_is_busy_leaves_what_others_show(house: House) -> None:
    with house.showing() as wire:
        with house.server("another session") as other:
            other.ask("docmem_create", root_id="plans")
            other.ask("docmem_view", action="add", node_id="plans")
            with house.busy():
                wire.process.send_signal(signal.SIGINT)
                ended(wire)
                assert shown(house.file.read_bytes()) == ["plans"]
        assert house.file.read_bytes() == MINE


def test_an_end_waits_a_moment_for_a_busy_store(house: House) -> None:
    with house.showing() as wire, house.busy():
        wire.process.send_signal(signal.SIGINT)
        _, seconds = ended(wire)
        assert seconds > 0.2


def test_a_project_that_was_moved_is_cleaned_where_it_is_now(house: House) -> None:
    moved = house.project.with_name("moved")
    with house.showing() as wire:
        house.project.rename(moved)
        reply = wire.call("docmem_view", '{"action": "add", "node_id": "notes"}')
        assert reply and f"there is no CLAUDE.md in {house.project} " in reply.text
        wire.hang_up()
    assert (moved / "CLAUDE.md").read_bytes() == MINE
    assert house.left_in_the_store() == []


def test_no_view_is_added_after_the_end(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call may still be under way when a signal has come and the section is gone."""
    monkeypatch.setenv("BACKSTORY_HOME", str(house.data))
    monkeypatch.chdir(house.project)
    monkeypatch.setattr(live, "_views", [])
    monkeypatch.setattr(live, "_is_over", threading.Event())
    with open_drained(str(house.data), now=1) as db:
        with transaction(db):
            project_id = projects.ensure(db, paths.place(str(house.project)), 1)
        here = projects.by_id(db, project_id)
        tree.create(db, here, root_id="notes", now=1)
        live.show(db, here, "add", "notes", 1)
        assert shown(house.file.read_bytes()) == ["notes"]

        live.end()

        with pytest.raises(StoreError, match="the server is ending"):
            live.show(db, here, "add", "notes", 1)
    assert house.file.read_bytes() == MINE


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("docmem_view", {"action": "add", "node_id": "notes"}),
        ("docmem_create_node", node("a heron")),
    ],
)
@pytest.mark.parametrize("how", ["SIGINT", "the end of stdin"])
def test_the_section_goes_though_a_call_waits_for_a_busy_store(
    house: House, tool: str, given: Json, how: str
) -> None:
    with house.showing() as wire, house.busy():
        call = f'{{"name": "{tool}", "arguments": {json.dumps(given)}}}'
        assert wire.request("tools/call", call, seconds=0.6) is None
        if how == "SIGINT":
            wire.process.send_signal(signal.SIGINT)
        else:
            assert wire.process.stdin
            wire.process.stdin.close()
        _, seconds = ended(wire)
        assert house.file.read_bytes() == MINE
        assert seconds < 3


def test_the_section_goes_in_the_middle_of_many_calls(house: House) -> None:
    """Whatever they are doing: none puts it back."""
    for _ in range(2):
        with house.showing() as wire:
            made = [node(f"heron {number}") for number in range(40)]
            for number, given in enumerate(made):
                tool = "docmem_view" if number % 2 else "docmem_create_node"
                arguments = {"action": "add", "node_id": "notes"} if number % 2 else given
                call = {"name": tool, "arguments": arguments}
                request = {"jsonrpc": "2.0", "id": 100 + number, "method": "tools/call", "params": call}
                wire.write(json.dumps(request))
            time.sleep(0.1)
            wire.process.send_signal(signal.SIGINT)
            ended(wire)
            assert house.file.read_bytes() == MINE
        with closing(sqlite3.connect(house.data / "backstory.db")) as db:
            db.execute("DELETE FROM docmem_nodes")
            db.commit()
    assert_sound(house.data)


def test_after_a_kill_the_next_start_cleans_up(house: House) -> None:
    with house.showing() as wire:
        wire.kill()
    assert shown(house.file.read_bytes()) == ["notes"]
    assert len(house.left_in_the_store()) == 1
    with house.server("another session") as server:
        assert house.file.read_bytes() == MINE
        assert house.left_in_the_store() == []
        assert "notes" in server.ask("docmem_structure", node_id="notes")


def test_after_a_kill_the_session_is_told_that_its_views_ended(house: House) -> None:
    with house.showing() as wire:
        wire.kill()
    with house.server():
        assert house.file.read_bytes() == MINE
        assert (
            "## notes\\n\\nThis view ended with its server" in (house.data / "outbox/a-session").read_text()
        )
    assert house.left_in_the_store() == []
    assert os.listdir(house.data / "outbox") == []


def test_what_waits_for_a_server_that_was_killed_goes_though_its_section_is_gone(house: House) -> None:
    with house.showing() as wire:
        assert wire.call("docmem_create_node", json.dumps(node("a heron")))
        wire.kill()
    assert os.listdir(house.data / "outbox") == ["a-session"]
    house.file.write_bytes(MINE)  # `git checkout CLAUDE.md`
    with house.server("another session"):
        assert os.listdir(house.data / "outbox") == os.listdir(house.data / "servers") == []


def test_two_servers_show_what_both_of_them_show(house: House) -> None:
    def text() -> bytes:
        return house.file.read_bytes()

    with house.server("one") as one:
        one.ask("docmem_create", root_id="notes")
        one.ask("docmem_create", root_id="plans")
        one.ask("docmem_view", action="add", node_id="notes")
        with house.server("two") as two:
            assert shown(text()) == ["notes"], "a start leaves alone what living servers show"
            two.ask("docmem_view", action="add", node_id="plans")
            assert shown(text()) == ["notes", "plans"]
            two.ask("docmem_view", action="add", node_id="notes")
            assert shown(text()) == ["plans", "notes"], "once, where it was touched last"
            one.ask("docmem_create_node", **node("a plan", "plans"))
            assert b"a plan" in text()
            two.ask("docmem_create_node", **node("a heron"))
            assert b"a heron" in text()
            assert "it was not shown" in one.ask("docmem_view", action="remove", node_id="plans")
            one.ask("docmem_view", action="remove", node_id="notes")
            assert shown(text()) == ["plans", "notes"], "the other one still shows it"
            one.ask("docmem_view", action="add", node_id="notes")
        assert shown(text()) == ["notes"]
    assert text() == MINE


# --- the store ----------------------------------------------------------------------------------------------


def test_a_store_that_is_busy_for_long_says_so_and_nothing_changed(house: House) -> None:
    replies: list[Reply] = []
    with house.server() as server:
        server.ask("docmem_create", root_id="notes")
        server.ask("docmem_view", action="add", node_id="notes")
        before = house.file.read_bytes()
        calls: list[tuple[str, Json]] = [
            ("docmem_create_node", node("a heron")),
            ("docmem_view", {"action": "remove", "node_id": "notes"}),
        ]
        with house.busy():
            threads = [
                threading.Thread(
                    target=lambda tool, given: replies.append(server.call(tool, **given)), args=call
                )
                for call in calls
            ]
            for thread in threads:
                thread.start()
            assert "notes" in server.ask("docmem_list"), "reading goes on"
            for thread in threads:
                thread.join()
        assert len(replies) == 2
        for reply in replies:
            assert reply.is_error
            assert_a_sentence(reply.text)
            assert "busy" in reply.text
            assert "try again in a moment" in reply.text
        assert house.file.read_bytes() == before
        assert server.ask("docmem_serialize", node_id="notes") == "docmem_serialize:\n"
        server.ask("docmem_view", action="remove", node_id="notes")
        assert house.file.read_bytes() == MINE


def test_a_store_that_cannot_be_used_says_what_to_do(house: House, tmp_path: Path) -> None:
    house.data.write_text("a file where the data folder should be")
    with serving(
        tmp_path / "elsewhere",
        house.project,
        server="docmem",
        cwd=house.project,
        env={"BACKSTORY_HOME": str(house.data)},
    ) as server:
        for tool, given in (
            ("docmem_list", {}),
            ("docmem_create", {"root_id": "notes"}),
            ("docmem_view", {"action": "add", "node_id": "notes"}),
        ):
            assert "set BACKSTORY_HOME to a folder of yours" in server.refusal(tool, **given)


def test_a_damaged_store_is_recovered_with_its_trees(house: House) -> None:
    with house.server() as server:
        server.ask("docmem_create", root_id="notes")
        server.ask("docmem_create_node", **node("a heron"))
    backup.make(str(house.data), int(time.time() * 1000))
    with open(house.data / "backstory.db", "r+b") as file:
        file.write(b"walrus" * 2_000)
    with house.server() as server:
        first = server.call("docmem_list")
        if first.is_error:
            assert_a_sentence(first.text)
            assert "Ask again" in first.text
        assert "notes root:notes:" in server.ask("docmem_list")
        assert server.ask("docmem_serialize", node_id="notes") == "docmem_serialize:\na heron"


def test_a_database_that_was_replaced_is_noticed(house: House) -> None:
    now = int(time.time() * 1000)
    with house.server() as server:
        server.ask("docmem_create", root_id="notes")
        server.ask("docmem_create_node", **node("the heron of before"))
        server.ask("docmem_view", action="add", node_id="notes")
        made = backup.make(str(house.data), now)
        server.ask("docmem_create", root_id="plans")
        server.ask("docmem_create_node", **node("the walrus of after"))
        assert "walrus" in server.ask("docmem_search", query="walrus")
        recovery.restore(str(house.data), made.path, now)
        assert "plans" not in server.ask("docmem_list")
        assert "the walrus" not in server.ask("docmem_search", query="walrus")
        assert "heron" in server.ask("docmem_search", query="heron")
        server.ask("docmem_create_node", **node("an egret"))
        assert b"an egret" in house.file.read_bytes()
        assert b"walrus" not in house.file.read_bytes()
        assert shown(house.file.read_bytes()) == ["notes"]
    assert house.file.read_bytes() == MINE


def test_what_was_captured_is_stored_on_the_way(house: House) -> None:
    """As with every reader: the spool does not wait for the other server."""
    house.data.mkdir()
    put(house.data, bash("echo walrus", cwd=str(house.project)))
    with house.server() as server:
        server.ask("docmem_list")
    assert rows(house.data, "SELECT * FROM memories")


def test_half_of_a_surrogate_pair_gets_an_answer(house: House) -> None:
    with house.showing() as wire:
        given = json.dumps(node("The walrus HALF sleeps")).replace("HALF", r"\ud83e")
        reply = wire.call("docmem_create_node", given, seconds=5)
        assert reply and not reply.is_error
        assert "The walrus \ufffd sleeps" in house.file.read_text()
