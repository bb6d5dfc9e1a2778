"""Two servers on one project and somebody who edits CLAUDE.md meanwhile: nothing is lost, torn or doubled.

BACKSTORY_SOAK_WRITES says how many writes there are at least; `make chaos` does 10,000.
"""

from __future__ import annotations

import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from itertools import count
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError

from backstory.claude_md.write import dynamic
from backstory.model import Node
from backstory.store import nodes
from backstory.store import views as stored
from backstory.store.file.connection import connect
from tests.helpers.chaos import assert_sound, eventually
from tests.helpers.mcp_client import Server, assert_a_sentence, serving

pytestmark = pytest.mark.slow

WRITES = int(os.environ.get("BACKSTORY_SOAK_WRITES", "300"))
THREADS = 4
EDITED = 30  # looks at CLAUDE.md to an edit of it
THEIRS = b"# Harbour\r\n\r\nBoats are blue here.\r\n\r\n```\r\n# DOCMEM Dynamic\r\n```\r\n"
ROOT = "harbour"

# A person with an editor that replaces the file, or a shell that appends to it; says what it has done.
EDITOR = """
import os, sys, time
path, numbers = sys.argv[1], iter(range(10_000))
for line in sys.stdin:
    number = next(numbers)
    words = b"person %d\\r\\n" % number
    if number % 2:
        end = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.write(end, words)
        os.close(end)
    else:
        with open(path, "rb") as file:
            text = file.read()
        with open(path + ".swp", "wb") as file:
            file.write(words + text)
        os.rename(path + ".swp", path)
    print(number, flush=True)
"""


def node(content: str, target: str, mode: str = "append-child") -> dict[str, object]:
    return {
        "target_id": target,
        "content": content,
        "mode": mode,
        "context_type": "note",
        "context_name": "boat",
        "context_value": "",
    }


class Branch:
    """What a branch should be like that only one thread changes."""

    def __init__(self, top: str) -> None:
        self.top = top
        self.parent: dict[str, str] = {}
        self.children: dict[str, list[str]] = {top: []}
        self.text: dict[str, str] = {}

    def put(self, node_id: str, target: str, mode: str) -> None:
        parent = target if mode == "append-child" else self.parent[target]
        siblings = self.children[parent]
        at = len(siblings) if mode == "append-child" else siblings.index(target) + (mode == "after")
        siblings.insert(at, node_id)
        self.parent[node_id] = parent
        self.children.setdefault(node_id, [])

    def take(self, node_id: str) -> None:
        self.children[self.parent.pop(node_id)].remove(node_id)

    def below(self, node_id: str) -> list[str]:
        """The node and all below it, depth-first."""
        found, waiting = [], [node_id]
        while waiting:
            found.append(waiting.pop())
            waiting.extend(reversed(self.children[found[-1]]))
        return found


class Book:
    """What all threads were told, for the reckoning."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.created = 0
        self.deleted = 0  # nodes
        self.counted = Counter[str]()  # updates of each contested node that were acknowledged
        self.conflicts = 0
        self.arenas: list[str] = []  # nodes below which anybody adds, until somebody deletes them
        self.contested: list[str] = []


class Writer:
    """One thread of a model that works hard. Each turn is one write."""

    def __init__(self, name: str, server: Server, book: Book, seed: int) -> None:
        self.name, self.server, self.book = name, server, book
        self.random = random.Random(seed)  # noqa: S311
        self.writes = 0
        self.stale: dict[str, str] = {}  # a hash that a node once had
        self.branch = Branch(self.create(f"the branch of {name}", ROOT))
        self.shows = False  # its branch

    def create(self, content: str, target: str, mode: str = "append-child") -> str:
        made = created(self.server.ask("docmem_create_node", **node(content, target, mode)))
        with self.book.lock:
            self.book.created += 1
        return made

    def hash_of(self, node_id: str) -> tuple[str, str]:
        return found(self.server.ask("docmem_find", id=node_id))

    def turn(self) -> None:
        self.writes += 1
        turns = (self.add, self.update, self.move, self.delete, self.race, self.quarrel, self.view)
        (turn,) = self.random.choices(turns, (30, 20, 12, 6, 15, 10, 7))
        turn()

    def own(self) -> str | None:
        return self.random.choice(list(self.branch.parent)) if self.branch.parent else None

    def add(self) -> None:
        mode = self.random.choice(("append-child", "before", "after"))
        target = self.own()
        if target is None or self.random.random() < 0.2:
            mode, target = "append-child", self.branch.top
        text = f"{self.name} wrote {self.writes}\n## a line like a heading\n"
        made = self.create(text, target, mode)
        self.branch.put(made, target, mode)
        self.branch.text[made] = text

    def update(self) -> None:
        if (node_id := self.own()) is None:
            return self.add()
        text = f"{self.name} wrote {self.writes} over it"
        if node_id in self.stale and self.random.random() < 0.5:
            refused = self.server.refusal(
                "docmem_update_content", id=node_id, content="lost", expected_hash=self.stale[node_id]
            )
            assert "changed by someone else" in refused, refused
            return None
        before, _ = self.hash_of(node_id)
        given = {"expected_hash": before} if self.random.random() < 0.5 else {}
        self.server.ask("docmem_update_content", id=node_id, content=text, **given)
        self.stale[node_id] = before
        self.branch.text[node_id] = text
        return None

    def move(self) -> None:
        source, target = self.own(), self.own()
        if source is None or target is None:
            return self.add()
        mode = self.random.choice(("append-child", "before", "after"))
        given = {"source_id": source, "target_id": target, "mode": mode}
        if target in self.branch.below(source):
            self.server.refusal("docmem_move_node", **given)
            return None
        self.server.ask("docmem_move_node", **given)
        self.branch.take(source)
        self.branch.put(source, target, mode)
        return None

    def delete(self) -> None:
        if (node_id := self.own()) is None:
            return self.add()
        gone = self.branch.below(node_id)
        reply = self.server.ask("docmem_delete", id=node_id)
        assert reply.startswith(f"docmem_delete: deleted {node_id} ({len(gone)} node"), reply
        self.branch.take(node_id)
        for one in gone:
            self.branch.parent.pop(one, None)
            del self.branch.children[one], self.branch.text[one]
            self.stale.pop(one, None)
        with self.book.lock:
            self.book.deleted += len(gone)
        return None

    def race(self) -> None:
        """Count on from what was read; who reads the same number as another may not write the next."""
        node_id = self.random.choice(self.book.contested)
        seen, text = self.hash_of(node_id)
        time.sleep(self.random.uniform(0, 0.05))  # a model thinks
        given = {"id": node_id, "content": f"{int(text) + 1}", "expected_hash": seen}
        reply = self.server.call("docmem_update_content", **given)
        with self.book.lock:
            if not reply.is_error:
                self.book.counted[node_id] += 1
                return
            self.book.conflicts += 1
        assert_a_sentence(reply.text)
        assert "changed by someone else" in reply.text, reply.text

    def quarrel(self) -> None:
        """Below nodes that others delete."""
        with self.book.lock:
            arena = self.random.choice(self.book.arenas) if self.book.arenas else None
        if arena is None or self.random.random() < 0.15:
            made = self.create(f"an arena of {self.name} {self.writes}", ROOT)
            with self.book.lock:
                self.book.arenas.append(made)
            return
        if self.random.random() < 0.15:
            reply = self.server.call("docmem_delete", id=arena)
            with self.book.lock:
                if arena in self.book.arenas:
                    self.book.arenas.remove(arena)
                if not reply.is_error:
                    count = re.match(rf"docmem_delete: deleted {arena} \((\d+) node", reply.text)
                    assert count, reply.text
                    self.book.deleted += int(count[1])
                    return
        else:
            text = f"{self.name} came to {arena} as {self.writes}"
            reply = self.server.call("docmem_create_node", **node(text, arena))
            if not reply.is_error:
                with self.book.lock:
                    self.book.created += 1
                return
        assert_a_sentence(reply.text)
        assert "there is no node" in reply.text, reply.text

    def view(self) -> None:
        action = "remove" if self.shows else "add"
        reply = self.server.ask("docmem_view", action=action, node_id=self.branch.top)
        assert self.branch.top in reply.partition("\n")[0], repr(reply)
        self.shows = not self.shows


def created(reply: str) -> str:
    made = re.match(r"docmem_create_node: created ([a-z0-9]{8})\b", reply)
    assert made, reply
    return made[1]


def found(reply: str) -> tuple[str, str]:
    """A node's hash and text."""
    fields, _, text = reply.partition("\ntext:\n")
    said = re.search(r"^hash: (\S+)$", fields, re.MULTILINE)
    assert said, reply
    return said[1], text


class Watcher:
    """Looks at CLAUDE.md and the outboxes all the time, and now and then lets a person edit the file."""

    def __init__(self, file: Path, data: Path) -> None:
        self.file, self.data = file, data
        self.over = threading.Event()
        self.looks = self.messages = self.edits = 0
        self.odd: list[str] = []

    def run(self) -> None:
        command = [sys.executable, "-I", "-S", "-c", EDITOR, str(self.file)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as editor:
            assert editor.stdin and editor.stdout
            while not self.over.is_set():
                if self.looks % EDITED == EDITED - 1:
                    editor.stdin.write(b"edit\n")
                    editor.stdin.flush()
                    editor.stdout.readline()
                    self.edits += 1
                self.look()
                self.listen()
                time.sleep(0.02)

    def look(self) -> None:
        self.looks += 1
        text = self.file.read_bytes()
        rest = dynamic.without(text)
        headers = text.count(b"\n# DOCMEM Dynamic\n")  # theirs has another end of line
        if headers != 1 or text.count(dynamic.END) != 1:
            self.odd.append(f"{headers} sections: {text!r}")
        if THEIRS not in rest:
            self.odd.append(f"what is the user's changed: {rest!r}")
        # A server that put its version in place and finds that a person wrote meanwhile takes it out again.
        if not eventually(lambda: self.found_edits() == set(range(self.edits))):
            self.odd.append(f"of {self.edits} edits there are {self.found_edits()}")

    def has_seen_enough(self) -> bool:
        return self.looks > 100 and self.edits > 3 and self.messages > 3

    def found_edits(self) -> set[int]:
        return people(dynamic.without(self.file.read_bytes()))

    def listen(self) -> None:
        """As the hook does at a prompt."""
        for name in ("session-one", "session-two"):
            taken = self.data / "outbox" / f"{name}.taken"
            try:
                os.rename(self.data / "outbox" / name, taken)
            except FileNotFoundError:
                continue
            said = json.loads(taken.read_text())
            if not isinstance(said, str) or not 0 < len(said) < 9_000:
                self.odd.append(f"{len(said)} characters for a prompt")
            self.messages += 1
            taken.unlink()


def people(text: bytes) -> set[int]:
    lines = re.findall(rb"^person (\d+)\r$", text, re.MULTILINE)
    assert len(lines) == len(set(lines)), "an edit is there twice"
    return set(map(int, lines))


@contextmanager
def two(data: Path, project: Path) -> Iterator[tuple[Server, Server]]:
    with ExitStack() as stack:
        yield (
            stack.enter_context(serving(data, project, "session-one", server="docmem", cwd=project)),
            stack.enter_context(serving(data, project, "session-two", server="docmem", cwd=project)),
        )


def test_two_servers_and_a_person_work_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    data, project = tmp_path / "data", tmp_path / "project"
    project.mkdir()
    file = project / "CLAUDE.md"
    file.write_bytes(THEIRS)
    book = Book()
    with two(data, project) as (one, other):
        one.ask("docmem_create", root_id=ROOT)
        book.contested = [created(one.ask("docmem_create_node", **node("0", ROOT))) for _ in range(2)]
        for server in (one, other):
            server.ask("docmem_view", action="add", node_id=ROOT)
        writers = [
            Writer(f"thread {number}", (one, other)[number % 2], book, number) for number in range(THREADS)
        ]
        watcher = Watcher(file, data)
        with ThreadPoolExecutor(THREADS + 1) as pool:
            watching = pool.submit(watcher.run)
            try:
                working = [pool.submit(work, writer, watcher) for writer in writers]
                for done in working:
                    done.result()
            finally:
                watcher.over.set()
            watching.result()

        assert watcher.odd == [], watcher.odd[:3]
        assert watcher.has_seen_enough() and book.conflicts > 3

        # The last word, when no person writes: what the file shows is what there is.
        other.ask("docmem_create_node", **node("the last word", ROOT))
        views = dict(shown(file.read_bytes()))
        assert set(views) == {ROOT, *(writer.branch.top for writer in writers if writer.shows)}
        for node_id, text in views.items():
            expanded = one.ask("docmem_expand_to_length", node_id=node_id, max_tokens=10_000)
            assert text == expanded.partition("\n")[2]
        assert b"the last word" in file.read_bytes()

    rest = file.read_bytes()
    assert not dynamic.has_section(rest)
    assert people(rest) == set(range(watcher.edits))
    assert re.sub(rb"(?m)^person \d+\r\n", b"", rest) == THEIRS
    assert not list((data / "servers").iterdir())

    reckon(data, book, writers)


def work(writer: Writer, watcher: Watcher) -> None:
    """Until all have done their part, some have met, and the watcher has seen enough; a fast machine writes
    more."""
    while writer.writes < WRITES // THREADS or writer.book.conflicts <= 3 or not watcher.has_seen_enough():
        assert writer.writes < 10 * WRITES, "nobody met anybody, or nothing is to be seen"
        writer.turn()


def test_a_server_that_is_killed_loses_nothing_and_its_views_go_with_the_next_edit(tmp_path: Path) -> None:
    """Three callers, so that a node, the mirror or the file is being written when the signal comes."""
    data, project = tmp_path / "data", tmp_path / "project"
    project.mkdir()
    file = project / "CLAUDE.md"
    file.write_bytes(THEIRS)
    made: dict[str, str] = {}
    with two(data, project) as (one, other):
        one.ask("docmem_create", root_id=ROOT)
        one.ask("docmem_view", action="add", node_id=ROOT)
        mine = created(other.ask("docmem_create_node", **node("it stays", ROOT)))
        other.ask("docmem_view", action="add", node_id=mine)

        def add_until_it_dies(name: str) -> None:
            for number in count():
                text = f"{name} wrote {number}"
                try:
                    made[text] = created(one.ask("docmem_create_node", **node(text, ROOT)))
                except MCPError:
                    return

        with ThreadPoolExecutor(3) as pool:
            callers = [pool.submit(add_until_it_dies, f"caller {number}") for number in range(3)]
            assert eventually(lambda: len(made) >= 10)
            os.kill(one.pid, signal.SIGKILL)
            for caller in callers:
                caller.result(30)
        left = file.read_bytes()
        assert dynamic.has_section(left) and dynamic.without(left) == THEIRS

        other.ask("docmem_update_content", id=mine, content="it stays so")
        (view,) = shown(file.read_bytes())
        assert view[0] == mine and "it stays so" in view[1]
        assert [path.name for path in project.iterdir()] == ["CLAUDE.md"]

    assert file.read_bytes() == THEIRS
    assert not list((data / "servers").iterdir())
    whole = sound(data)
    assert made.items() <= {one.text: one.id for one in whole}.items()


def shown(text: bytes) -> list[tuple[str, str]]:
    """What each view of the section shows."""
    section = text.partition(b"\n# DOCMEM Dynamic\n\n")[2].partition(dynamic.END)[0].decode()
    _, *parts = re.split(r"^## (harbour|[a-z0-9]{8})\n\n", section, flags=re.MULTILINE)
    return [(node_id, text[:-2]) for node_id, text in zip(parts[::2], parts[1::2], strict=True)]


def reckon(data: Path, book: Book, writers: list[Writer]) -> None:
    """Every write that was acknowledged is there, and none that was refused."""
    whole = sound(data)
    assert len(whole) == 1 + len(book.contested) + 1 + book.created - book.deleted
    assert "lost" not in {one.text for one in whole}
    by_id = {one.id: one for one in whole}
    for node_id in book.contested:
        assert int(by_id[node_id].text) == book.counted[node_id], "an update was lost"
    for writer in writers:
        branch = writer.branch
        start = whole.index(by_id[branch.top])
        found = whole[start : start + by_id[branch.top].size]
        assert [one.id for one in found] == branch.below(branch.top)
        assert [one.parent_id for one in found[1:]] == [branch.parent[one.id] for one in found[1:]]
        assert [one.text for one in found[1:]] == [branch.text[one.id] for one in found[1:]]


def sound(data: Path) -> list[Node]:
    """All nodes, in document order, once it is clear that they are one tree."""
    assert_sound(data)
    with closing(connect(str(data / "backstory.db"))) as db:
        (number,) = db.execute("SELECT number FROM projects").fetchone()
        whole = nodes.subtree(db, number, ROOT)
        assert nodes.count(db) == len(whole), "there are nodes that no root leads to"
        db.execute("INSERT INTO docmem_nodes_fts (docmem_nodes_fts, rank) VALUES ('integrity-check', 1)")
        assert stored.servers(db) == []
    sizes = Counter[str]()
    places = set()
    for one in reversed(whole):
        sizes[one.id] += 1
        if one.parent_id:
            sizes[one.parent_id] += sizes[one.id]
        places.add((one.parent_id, one.order_value))
        context = (one.context_type, one.context_name, one.context_value)
        assert one.hash == nodes.digest(one.parent_id, context, one.text, one.order_value)
        assert one.token_count == math.ceil(len(one.text) / 4)
        assert one.root_id == ROOT
    assert {one.id: one.size for one in whole} == sizes
    assert len(places) == len(whole), "two siblings at one place"
    return whole
