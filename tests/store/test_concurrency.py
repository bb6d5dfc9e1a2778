"""Several servers, hooks and commands on one store at once: nothing is lost, doubled or overlooked.

BACKSTORY_SOAK_SECONDS says how long they all work at once; a release gets 30.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError

from backstory.intake.note import keep
from backstory.store import life, removal
from backstory.store.file.connection import connect, transaction
from tests.helpers.chaos import (
    Json,
    assert_sound,
    bash,
    contents,
    event,
    eventually,
    log_text,
    prompt,
    rows,
    run_hook,
    spooled,
)
from tests.helpers.mcp_client import Server, Wire, ids, serving

pytestmark = pytest.mark.slow

SOAK_SECONDS = float(os.environ.get("BACKSTORY_SOAK_SECONDS", "3"))
NOTHING = "No memories found."


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server, Path, Path]]:
    """Two servers of two sessions on one project, as two terminals would have them."""
    folder = tmp_path_factory.mktemp("pair")
    (folder / "project").mkdir()
    with two(folder / "data", folder / "project") as (one, other):
        yield one, other, folder / "data", folder / "project"


@contextmanager
def two(data: Path, project: Path) -> Iterator[tuple[Server, Server]]:
    with ExitStack() as stack:
        yield (
            stack.enter_context(serving(data, project, "session-one")),
            stack.enter_context(serving(data, project, "session-two")),
        )


@contextmanager
def changing(data: Path) -> Iterator[sqlite3.Connection]:
    """A transaction of another process, such as a command in a terminal."""
    db = connect(str(data / "backstory.db"))
    try:
        with transaction(db):
            yield db
    finally:
        db.close()


def now() -> int:
    return int(time.time() * 1000)


def word() -> str:
    """One that nobody used before; letters only, so that it is one word however it is read."""
    return "w" + "".join(chr(ord("a") + digit % 16) for digit in uuid.uuid4().bytes)


# --- all at once --------------------------------------------------------------------------------------------


class Worker:
    """Adds, and asks the other server for it at once; what it was told is kept for the reckoning."""

    def __init__(self, name: str, own: Server, other: Server) -> None:
        self.name, self.own, self.other = name, own, other
        self.acknowledged: dict[str, str] = {}  # content -> id
        self.odd: list[str] = []
        self.calls: Counter[str] = Counter()
        self.slowest = 0.0

    def turn(self) -> None:
        unique = word()
        content = f"{self.name} noted {unique} about the walrus, note {len(self.acknowledged)}"
        made = re.match(r"Memory created: (mem_\w+) ", self._ask(self.own, "memory_add", content=content))
        if not made:
            return
        self.acknowledged[content] = made[1]
        for server in (self.other, self.own):
            found = self._ask(server, "memory_search", query=unique)
            if ids(found)[:1] != [made[1]]:
                self.odd.append(f"{unique} was added and is not found first: {found[:300]}")
        if len(self.acknowledged) % 5 == 0:
            self._ask(self.own, "memory_search", query="what do we know of the walrus", limit=20)
            self._ask(self.own, "memory_timeline", anchor_id=made[1])
            self._ask(self.other, "memory_reinforce", memory_id=made[1])
        if len(self.acknowledged) % 10 == 0:
            text = f"# {unique}\n\nA document about {unique} and the walrus."
            self._ask(self.own, "docs_ingest", content=text, title=f"{self.name} {unique}")
            if unique not in self._ask(self.other, "docs_search", query=unique):
                self.odd.append(f"{unique} was ingested and is not found")

    def _ask(self, server: Server, tool: str, **arguments: object) -> str:
        started = time.monotonic()
        reply = server.call(tool, **arguments)
        self.slowest = max(self.slowest, time.monotonic() - started)
        self.calls[tool] += 1
        if reply.is_error or "locked" in reply.text:
            self.odd.append(f"{tool}: {reply.text}")
        return reply.text


class Hooks:
    """A session that goes on meanwhile: tool uses, prompts, ends of turns, each a run of hook.sh."""

    def __init__(self, data: Path, project: Path) -> None:
        self.env = {**os.environ, "BACKSTORY_HOME": str(data)}
        self.common = {"cwd": str(project), "session_id": "session-three"}
        self.commands: list[str] = []
        self.prompts: list[str] = []
        self.stops = 0
        self.odd: list[str] = []

    def turn(self) -> None:
        self.prompts.append(f"please look after the walrus {word()}")
        self._run(prompt(self.prompts[-1], **self.common), "drain")
        for _ in range(4):
            self.commands.append(f"echo {word()}")
            self._run(bash(self.commands[-1], **self.common))
        self.stops += 1
        self._run(event("Stop", **self.common), "drain")

    def _run(self, payload: Json, *how: str) -> None:
        ran = run_hook(payload, *how, env=self.env)
        if ran.code or not ran.silent:
            self.odd.append(f"hook: {ran}")


def until(deadline: float, turn: Callable[[], None]) -> None:
    while time.monotonic() < deadline:
        turn()


def test_concurrent_sessions_lose_nothing_double_nothing_and_are_never_locked_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, project = tmp_path / "data", tmp_path / "project"
    project.mkdir()
    hooks = Hooks(data, project)
    with two(data, project) as (one, other):
        workers = [Worker("One", one, other), Worker("Two", other, one)]
        deadline = time.monotonic() + SOAK_SECONDS
        with ThreadPoolExecutor(3) as pool:
            turns = [*(worker.turn for worker in workers), hooks.turn]
            runs = [pool.submit(until, deadline, turn) for turn in turns]
            for run in runs:
                run.result(SOAK_SECONDS + 60)
        one.ask("memory_search", query="walrus")  # takes in what the last hook left
    calls = sum((worker.calls for worker in workers), Counter[str]())
    with capsys.disabled():
        told = ", ".join(f"{count} {tool}" for tool, count in sorted(calls.items()))
        hooked = len(hooks.commands) + len(hooks.prompts) + hooks.stops
        slowest = max(worker.slowest for worker in workers)
        print(f"\n{SOAK_SECONDS:g} s: {told}; {hooked} hooks; slowest call {slowest:.2f} s")  # noqa: T201

    assert [*hooks.odd, *(line for worker in workers for line in worker.odd)] == []
    assert all(len(worker.acknowledged) >= 3 for worker in workers)
    assert len(hooks.commands) >= 4

    for worker, session_id in zip(workers, ("session-one", "session-two"), strict=True):
        kept = rows(
            data, "SELECT id, content FROM memories WHERE session_id = ? AND kind = 'note'", session_id
        )
        assert {row["content"]: row["id"] for row in kept} == worker.acknowledged
        assert len(kept) == len(worker.acknowledged)
    traces = rows(data, "SELECT content FROM memories WHERE kind = 'tool'")
    assert Counter(row["content"] for row in traces) == Counter(
        f"Tool: Bash\nCommand: {command}" for command in hooks.commands
    )
    prompts = rows(data, "SELECT prompt FROM prompts")
    assert Counter(row["prompt"] for row in prompts) == Counter(hooks.prompts)
    events = Counter(row["name"] for row in rows(data, "SELECT name FROM events"))
    assert events == {
        "PostToolUse": len(hooks.commands),
        "UserPromptSubmit": len(hooks.prompts),
        "Stop": hooks.stops,
    }
    assert [spooled(data, part) for part in ("new", "tmp", "failed")] == [[], [], []]

    assert rows(data, "PRAGMA journal_mode") == [{"journal_mode": "wal"}]
    assert_sound(data)
    db = sqlite3.connect(data / "backstory.db")
    db.execute("INSERT INTO document_chunks_fts (document_chunks_fts, rank) VALUES ('integrity-check', 1)")
    db.close()
    said = log_text(data) + (data / "stderr").read_text()
    assert "locked" not in said
    assert "ERROR" not in said


def test_a_second_connection_of_a_process_does_not_take_the_locks_of_the_first(tmp_path: Path) -> None:
    """Whoever closes a file gives up all locks of the process on it, however it had been opened. Another
    process that comes and goes would then believe to be the last, and clear away the log that is in use."""
    path = str(tmp_path / "backstory.db")
    program = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT * FROM projects').close()"
    first = connect(path)
    first.execute("SELECT * FROM projects").close()
    second = connect(path)
    subprocess.run([sys.executable, "-c", program, path], check=True)
    assert os.path.exists(path + "-wal")
    second.close()
    subprocess.run([sys.executable, "-c", program, path], check=True)
    assert os.path.exists(path + "-wal")
    first.close()


# --- what one process does, the other sees ------------------------------------------------------------------

Pair = tuple[Server, Server, Path, Path]


def test_a_server_finds_what_the_other_added_a_moment_ago(pair: Pair) -> None:
    one, other, _, _ = pair
    for number in range(10):
        by, of = (one, other) if number % 2 else (other, one)
        unique = word()
        memory = by.add(f"The {unique} is kept, entry {number}")
        for mode in ("keyword", "hybrid", "semantic"):
            assert memory in of.search(unique if mode != "semantic" else f"the {unique} is kept", mode=mode)


def test_a_server_finds_by_meaning_what_the_other_added(pair: Pair) -> None:
    one, other, _, _ = pair
    other.search("anything")
    memory = one.add("Rotate the login credentials every ninety days")
    assert other.search("how often do passwords change")[:1] == [memory]
    one.ask("memory_delete", memory_id=memory, hard=True)


def test_a_server_sees_what_another_process_added_deleted_and_restored(pair: Pair) -> None:
    one, other, data, project = pair
    unique = word()
    db = connect(str(data / "backstory.db"))
    memory = keep(db, str(project), f"The {unique} from a terminal", now=now()).memory.id
    db.close()
    for server in (one, other):
        assert server.search(unique, mode="keyword") == [memory]
    with changing(data) as db:
        life.forget(db, memory, None, now())
    for server in (one, other):
        for query in (unique, memory):
            assert server.ask("memory_search", query=query, mode="keyword") == NOTHING
    with changing(data) as db:
        life.restore(db, memory, None, now())
    for server in (one, other):
        assert server.search(unique, mode="keyword") == [memory]
    with closing(connect(str(data / "backstory.db"))) as db:
        removal.erase_memory(db, memory, now())
    for server in (one, other):
        assert server.ask("memory_search", query=unique, mode="keyword") == NOTHING
        assert "there is no memory" in server.refusal("memory_timeline", anchor_id=memory)


def test_a_server_sees_what_the_other_deleted_and_superseded(pair: Pair) -> None:
    one, other, data, _ = pair
    unique = word()
    old, new, wrong = (one.add(f"The {unique} has the {kind} form") for kind in ("round", "square", "flat"))
    assert set(other.search(unique, mode="keyword")) == {old, new, wrong}
    one.ask("memory_delete", memory_id=wrong)
    one.ask("memory_supersede", old_memory_id=old, new_memory_id=new)
    for mode in ("hybrid", "semantic", "keyword"):
        assert other.search(unique, mode=mode)[:1] == [new]
        assert not {old, wrong} & set(other.search(unique, mode=mode))
    both = other.ask("memory_search", query=unique, mode="keyword", include_superseded=True)
    assert set(ids(both)) == {old, new}
    assert f"ID: {old}\n⚠️ SUPERSEDED by: {new}\n" in both
    with changing(data) as db:
        life.restore(db, old, None, now())
    assert set(other.search(unique, mode="keyword")) == {old, new}
    assert "there is no memory" not in other.ask("memory_supersede", old_memory_id=new, new_memory_id=old)
    assert one.search(unique, mode="keyword") == [old]


def test_a_server_that_knew_a_memory_finds_it_again_when_it_comes_back_from_the_archive(pair: Pair) -> None:
    one, other, data, _ = pair
    unique = word()
    memory = one.add(f"The {unique} goes and comes back")
    assert other.search(unique, mode="keyword") == [memory]
    with changing(data) as db:
        life.archive(db, [memory], now())
    assert other.ask("memory_search", query=unique, mode="keyword") == NOTHING
    with changing(data) as db:
        life.restore(db, memory, None, now())
    for server in (one, other):
        assert server.search(memory) == [memory]
        assert server.search(unique, mode="keyword") == [memory]


def test_a_server_that_never_knew_a_memory_finds_it_when_it_comes_back_from_the_archive(
    tmp_path: Path,
) -> None:
    data, unique = tmp_path / "data", word()
    db = connect(str(data / "backstory.db"))
    memory = keep(db, str(tmp_path), f"The {unique} goes and comes back", now=now()).memory.id
    keep(db, str(tmp_path), "Something that was added later", now=now())
    with transaction(db):
        life.archive(db, [memory], now())
    with serving(data, tmp_path) as server:
        assert server.ask("memory_search", query=unique, mode="keyword") == NOTHING
        with transaction(db):
            life.restore(db, memory, None, now())
        assert server.search(unique, mode="keyword") == [memory]
    db.close()


def test_a_server_sees_documents_that_the_other_took_in_and_replaced(pair: Pair) -> None:
    one, other, _, _ = pair
    first, second, title = word(), word(), word()
    one.ask("docs_ingest", content=f"# Rules\n\nThe {first} counts.", title=title)
    assert first in other.ask("docs_search", query=first)
    one.ask("docs_ingest", content=f"# Rules\n\nThe {second} counts.", title=title)
    assert first not in other.ask("docs_search", query=first)
    assert second in other.ask("docs_search", query=second)


def test_a_memory_added_by_both_at_once_is_one_memory(pair: Pair) -> None:
    one, other, data, _ = pair
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            content = f"Both say that {word()} is so"
            replies = list(
                pool.map(lambda to, say=content: to.ask("memory_add", content=say), [one, other] * 4)
            )
            assert len({re.findall(r"mem_\w+", reply)[0] for reply in replies}) == 1
            assert Counter(reply.split(":")[0] for reply in replies) == {
                "Memory created": 1,
                "Memory reinforced": 7,
            }
            assert len(rows(data, "SELECT 1 FROM memories WHERE content = ?", content)) == 1


def test_many_calls_at_once_on_one_server_are_all_answered(pair: Pair) -> None:
    one, _, _, _ = pair

    def work(number: int) -> bool:
        unique = word()
        memory = one.add(f"The {unique} is kept, call {number}")
        return one.search(unique)[:1] == [memory]

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(48)))


# --- sessions stay apart ------------------------------------------------------------------------------------


def test_sessions_stay_apart_by_their_id(pair: Pair) -> None:
    one, other, data, _ = pair
    unique = word()
    made = {
        "session-one": one.add(f"The {unique} of the first"),
        "session-two": other.add(f"The {unique} of the second"),
    }
    for session_id, memory in made.items():
        (known,) = rows(data, "SELECT session_id FROM memories WHERE id = ?", memory)
        assert known["session_id"] == session_id
    assert one.search(unique)
    links = {
        (row["session_id"], row["memory_id"], row["usage_type"])
        for row in rows(data, "SELECT * FROM session_memories")
        if row["memory_id"] in made.values()
    }
    first, second = made.values()
    assert links == {
        ("session-one", first, "created"),
        ("session-two", second, "created"),
        ("session-one", first, "recalled"),  # the one that searched, and nobody else
        ("session-one", second, "recalled"),
    }
    other.ask("memory_reinforce", memory_id=first)
    reinforced = rows(
        data, "SELECT * FROM session_memories WHERE usage_type = 'reinforced' AND memory_id = ?", first
    )
    assert [row["session_id"] for row in reinforced] == ["session-two"]
    assert rows(data, "SELECT id, status FROM sessions ORDER BY id") == [
        {"id": "session-one", "status": "active"},
        {"id": "session-two", "status": "active"},
    ]
    assert len(rows(data, "SELECT DISTINCT project_id FROM sessions")) == 1


# --- life and death of a server -----------------------------------------------------------------------------

LISTENING, IN_USE_BY_UDP = "0A", "07"


def ports(pid: int) -> list[str]:
    """The local addresses at which a process listens, as the kernel writes them."""
    sockets = set()
    for handle in Path(f"/proc/{pid}/fd").iterdir():
        try:
            sockets.update(re.findall(r"^socket:\[(\d+)\]$", os.readlink(handle)))
        except OSError:
            continue  # closed meanwhile
    found = []
    for protocol, state in (
        ("tcp", LISTENING),
        ("tcp6", LISTENING),
        ("udp", IN_USE_BY_UDP),
        ("udp6", IN_USE_BY_UDP),
    ):
        table = Path(f"/proc/{pid}/net/{protocol}")
        for line in table.read_text().splitlines()[1:] if table.exists() else []:
            fields = line.split()
            if fields[3] == state and fields[9] in sockets:
                found.append(f"{protocol} {fields[1]}")
    return found


def test_a_server_opens_no_port(pair: Pair) -> None:
    with socket.create_server(("127.0.0.1", 0)):
        assert len(ports(os.getpid())) == 1  # they would be seen
    for server in pair[:2]:
        server.add(f"The {word()} needs no port")
        server.search("port")
        server.ask("docs_ingest", content="No port is needed.", title="Ports")
        server.ask("docs_search", query="port")
        assert ports(server.pid) == []


@pytest.mark.parametrize("after", [5, 12, 20])
def test_a_server_killed_in_the_middle_loses_nothing_that_it_acknowledged(tmp_path: Path, after: int) -> None:
    """Four callers, so that some call is always under way when the signal comes."""
    data = tmp_path / "data"
    acknowledged: dict[str, str] = {}
    tried: list[str] = []
    stopped: list[BaseException] = []

    def add_until_it_dies(server: Server) -> None:
        while True:
            content = f"The {word()} must not be lost"
            tried.append(content)
            try:
                acknowledged[content] = server.add(content)
            except MCPError as closed:
                stopped.append(closed)
                return

    with serving(data, tmp_path) as server:
        callers = [threading.Thread(target=add_until_it_dies, args=(server,)) for _ in range(4)]
        for caller in callers:
            caller.start()
        assert eventually(lambda: len(acknowledged) >= after)
        os.kill(server.pid, signal.SIGKILL)
        for caller in callers:
            caller.join(30)
    assert len(stopped) == 4
    stored = Counter(contents(data))
    assert set(acknowledged) <= set(stored) <= set(tried)
    assert set(stored.values()) == {1}
    assert_sound(data)
    with serving(data, tmp_path) as server:
        content, memory = list(acknowledged.items())[-1]
        assert server.search(content.split()[1])[:1] == [memory]


def test_a_server_ends_when_its_client_hangs_up_and_leaves_no_process(tmp_path: Path) -> None:
    with Wire(tmp_path / "data", tmp_path, cold=True) as wire:
        wire.shake_hands()
        assert wire.call("memory_add", '{"content": "The walrus sleeps"}')
        assert wire.call("memory_search", '{"query": "walrus"}', seconds=30)
        assert wire.hang_up() < 2
        assert wire.process.returncode == 0
    assert (tmp_path / "data" / "stderr").read_text() == ""


def test_a_server_ends_when_its_client_never_says_a_word(tmp_path: Path) -> None:
    with Wire(tmp_path / "data", tmp_path, cold=True) as wire:
        wire.hang_up()  # it has hardly started, so this takes as long as a start
        assert wire.process.returncode == 0
    assert (tmp_path / "data" / "stderr").read_text() == ""


def test_a_server_ends_in_the_middle_of_making_vectors(tmp_path: Path) -> None:
    """They are made in a thread; whoever comes next makes the rest."""
    data = tmp_path / "data"
    document = " ".join(f"The walrus number {number} swims." for number in range(60_000))
    (tmp_path / "walruses.md").write_text(document)
    with Wire(data, tmp_path) as wire:
        wire.shake_hands()
        made = wire.call("docs_ingest", '{"path": "walruses.md"}', seconds=60)
        assert made
        assert not made.is_error
        assert wire.hang_up() < 2
        assert wire.process.returncode == 0
    assert (data / "stderr").read_text() == ""
    assert_sound(data)
    with serving(data, tmp_path) as server:
        assert "[1] walruses.md (" in server.ask("docs_search", query="59999")


def test_a_server_that_is_told_to_stop_stops(tmp_path: Path) -> None:
    with Wire(tmp_path / "data", tmp_path) as wire:
        wire.shake_hands()
        assert wire.call("memory_add", '{"content": "The walrus sleeps"}')
        wire.process.send_signal(signal.SIGTERM)
        wire.process.wait(10)
    assert contents(tmp_path / "data") == ["The walrus sleeps"]
    assert_sound(tmp_path / "data")
