"""Everything that writes, killed at any instant: what was acknowledged is there afterwards, and once."""

from __future__ import annotations

import json
import os
import random
import re
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from backstory.claude_md.write import dynamic, managed, sections, writer
from backstory.intake.drain import drain as drain_spool
from backstory.store import nodes
from backstory.store.file import backup, connection
from backstory.store.file.connection import connect
from backstory.surfaces import worker
from backstory.surfaces.cli import main as cli
from backstory.surfaces.mcp import start
from chaos.shots import Say, Shooting
from tests.conftest import HOOK
from tests.helpers.backups import with_a_toy
from tests.helpers.chaos import (
    MINUTE,
    SOURCE,
    Json,
    assert_sound,
    bash,
    drain,
    event,
    put,
    rows,
    spooled,
)
from tests.helpers.claude_md_project import TEMPLATE
from tests.helpers.processes import EACH

NEW_STORE = 60  # rounds after which a new one is begun: what is asked of one that is large takes long
EVENTS = 30  # that a drain finds
REQUESTS = 8  # that a server is asked at once
WORDS = (
    "anchor barley candle dune ember falcon glacier harbour island jacket kettle ladder marble needle orchard"
    " pepper quarry ribbon saddle timber urchin velvet walnut yarrow zephyr"
).split()


@dataclass(slots=True)
class Row:
    work: str
    shots: int = 0
    kills: int = 0  # that hit it at work
    acknowledged: int = 0
    lost: int = 0
    twice: int = 0
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)  # what was lost, or stood there twice

    def lose(self, what: object) -> None:
        self.lost += 1
        self.notes.append(f"lost: {what}")

    def see_twice(self, what: object, times: int = 1) -> None:
        self.twice += times
        self.notes.append(f"twice: {what}")

    def compare(self, expected: set[str], counted: Mapping[str, int]) -> None:
        """What was acknowledged, and how often each thing is there."""
        for one in sorted(expected - counted.keys()):
            self.lose(one)
        for one, times in counted.items():
            if times > 1:
                self.see_twice(one, times - 1)


def now_ms() -> int:
    return int(time.time() * 1000)


@contextmanager
def at_home(data: Path, **variables: str) -> Iterator[None]:
    """For what is forked here, that is the data folder."""
    data.mkdir(parents=True, mode=0o700, exist_ok=True)
    mine = {
        "BACKSTORY_HOME": str(data),
        "BACKSTORY_SYNTHESIZER": "local",
        "BACKSTORY_WORKER_IDLE_SECONDS": "0",
        **variables,
    }
    before = {name: os.environ.get(name) for name in mine}
    os.environ.update(mine)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def text_of(dice: random.Random) -> str:
    """A sentence like no other: what is nearly the same as something known would be taken for that."""
    return " ".join([*dice.choices(WORDS, k=12), uuid.UUID(int=dice.getrandbits(128)).hex])


def _enough(row: Row, shooting: Shooting, wanted: int) -> bool:
    row.shots, row.kills = shooting.shots, shooting.kills
    assert shooting.shots <= 20 + 4 * wanted, f"{row.work}: the shots miss"
    return shooting.kills >= wanted


def _stores(row: Row, shooting: Shooting, folder: Path, wanted: int) -> Iterator[tuple[Path, Iterator[int]]]:
    """Data folders, and the rounds for each; what comes after the rounds is done with a whole store."""
    number = 0

    def rounds() -> Iterator[int]:
        for at in range(NEW_STORE):
            if _enough(row, shooting, wanted):
                return
            yield at

    while not _enough(row, shooting, wanted):
        number += 1
        data = folder / f"{row.work.replace(' ', '-').replace('.', '-')}-{number}"
        with at_home(data):
            yield data, rounds()
            assert_sound(data)
        shutil.rmtree(data)


# --- capture and the drain ----------------------------------------------------------------------------------


def accepted(data: Path, payload: Json | bytes) -> str:
    """As hook.sh does it: written, then renamed into new/, and with that it is accepted."""
    name = put(data, payload, into="tmp")
    os.rename(data / "spool" / "tmp" / name, data / "spool" / "new" / name)
    return name


def hooks(folder: Path, wanted: int, seed: int) -> Row:
    """hook.sh itself. What it has not accepted yet may be lost, or be accepted later."""
    row, dice = Row("hook.sh"), random.Random(seed)  # noqa: S311
    data = folder / "hooks"
    seconds, expected, offered = 0.01, set[str](), set[str]()
    with at_home(data):
        while row.kills < wanted:
            assert row.shots <= 20 + 6 * wanted, "the shots miss"
            command = f"echo {text_of(dice)}"
            raw = json.dumps(bash(command)).encode()
            started = time.monotonic()
            hook = subprocess.Popen(["sh", str(HOOK)], stdin=subprocess.PIPE, start_new_session=True)
            assert hook.stdin
            hook.stdin.write(raw)
            hook.stdin.close()
            spare = row.shots % 10 == 9
            try:
                hook.wait(None if spare else dice.uniform(0, seconds))
                seconds = time.monotonic() - started
            except subprocess.TimeoutExpired:
                os.killpg(hook.pid, signal.SIGKILL)  # with cat and mv
                hook.wait()
            row.shots += 1
            if hook.returncode == 0:
                expected.add(command)
            else:
                row.kills += 1
                offered.add(command)
        there = {read_command(data / "spool" / "new" / name) for name in spooled(data)}
        row.acknowledged = len(there)
        if expected - there:
            row.lose(f"{len(expected - there)} hooks said that all is well, and it is not in the spool")
        drain(data, now=now_ms() + 2 * MINUTE)  # takes over what is in tmp/
        found = counted(data)
        row.compare(there, found)
        for one in set(found) - expected - offered:
            row.see_twice(f"nobody ever sent {one}")
        assert_sound(data)
    shutil.rmtree(data)
    return row


def counted(data: Path) -> Counter[str]:
    """How often each command was stored. The same one in the same session is a memory that has come again."""
    found = Counter[str]()
    for one in rows(data, "SELECT content, times FROM memories WHERE kind = 'tool'"):
        found[one["content"].split("\n")[1].removeprefix("Command: ")] += one["times"]
    return found


def read_command(path: Path) -> str:
    return str(json.loads(path.read_bytes())["tool_input"]["command"])


def drains(folder: Path, wanted: int, seed: int) -> Row:
    """The drain as hooks and readers run it, of a spool in which every sixth payload cannot be read."""
    row, shooting = Row("drain"), Shooting(seed)
    for data, rounds in _stores(row, shooting, folder, wanted):
        good, bad = set[str](), set[str]()
        connect(str(data / "backstory.db")).close()

        def work(say: Say, data: Path = data) -> None:
            with closing(connect(str(data / "backstory.db"))) as db:
                drain_spool(db, str(data / "spool"), now=now_ms())

        for _ in rounds:
            for number in range(EVENTS - len(spooled(data)) // 2):
                if number % 6 == 5:
                    bad.add(accepted(data, f"junk {shooting.dice.random()}".encode()))
                else:
                    command = f"echo {text_of(shooting.dice)}"
                    good.add(command)
                    accepted(data, bash(command))
            shooting.at(work)
        drain(data, now=now_ms())
        row.acknowledged += len(good) + len(bad)
        row.compare(good, counted(data))
        row.compare(bad, Counter(spooled(data, "failed")))
        if left := spooled(data):
            row.lose(f"{len(left)} payloads stay in the spool")
        keys = rows(data, "SELECT count(*) AS n FROM events")[0]["n"]
        if keys > len(good):
            row.see_twice(f"{keys} events of {len(good)}")
    return row


# --- the worker ---------------------------------------------------------------------------------------------


def workers(folder: Path, wanted: int, seed: int) -> Row:
    """The worker with its drain, its claim, a synthesizer that finds one thing in each item, and its backup.
    More comes in while it works. What has ended two workers is done by one that is not killed: the third
    would rightly be taken for the item's fault."""
    row, shooting = Row("worker"), Shooting(seed)
    for data, rounds in _stores(row, shooting, folder, wanted):
        sent = 0

        def send(session: str, data: Path = data) -> None:
            nonlocal sent
            uses = [bash(f"echo {text_of(shooting.dice)}", session_id=session) for _ in range(3)]
            for payload in (*uses, event("Stop", session_id=session, last_assistant_message="done")):
                accepted(data, payload)
                sent += 1

        def work(say: Say, data: Path = data) -> None:
            sys.argv = ["", SOURCE]
            exec(EACH, {})  # noqa: S102  ours
            worker.run(str(data))

        late: list[str] = []

        def meanwhile(late: list[str] = late) -> None:
            if late:
                send(late.pop())
            time.sleep(0.0005)

        send("first")
        killed = 0
        for number in rounds:
            for part in range(3):
                send(f"session-{number}-{part}")
            late.append(f"late-{number}")
            before = shooting.kills
            shooting.at(work, meanwhile)
            late.clear()
            killed += shooting.kills > before
            if killed == 2 or not shooting.kills > before:
                _to_its_end(work)
                killed = 0
        _to_its_end(work)
        row.acknowledged += sent
        _count_items(row, data, sent)
    return row


def _to_its_end(work: Callable[[Say], None]) -> None:
    pid = os.fork()
    if not pid:
        try:
            work(lambda _: None)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


def _count_items(row: Row, data: Path, sent: int) -> None:
    queued = rows(data, "SELECT id, processed_by, skipped FROM observation_queue")
    if len(queued) < sent:
        row.lose(f"{sent - len(queued)} of {sent} payloads never came to the queue")
    elif len(queued) > sent:
        row.see_twice("items of the queue", len(queued) - sent)
    found = rows(data, "SELECT title, access_count FROM memories WHERE kind = 'discovery'")
    row.compare({f"Item {item['id']}" for item in queued}, Counter(one["title"] for one in found))
    for one in found:  # one that is stored again is reinforced
        if one["access_count"]:
            row.see_twice(one["title"])
    for item in queued:
        if item["skipped"] or item["processed_by"] != "local":
            row.lose(f"item {item['id']}: {item['skipped']}")


# --- a note -------------------------------------------------------------------------------------------------


def notes(folder: Path, wanted: int, seed: int) -> Row:
    """`backstory add`: it printed the id, or it is asked again, as a person would."""
    row, shooting = Row("backstory add"), Shooting(seed)
    project = folder / "notes-project"
    project.mkdir()
    for data, rounds in _stores(row, shooting, folder, wanted):
        expected: dict[str, str] = {}
        connect(str(data / "backstory.db")).close()
        for _ in rounds:
            text = text_of(shooting.dice)

            def work(say: Say, text: str = text) -> None:
                os.chdir(project)
                sys.argv = ["backstory", "add", text]
                cli.main()

            said = shooting.at(work).said
            if not (found := _id_in(said)):
                for _ in range(2):  # the first may have been stored all the same
                    said, _code = shooting._run(work, None)
                    found = _id_in(said) or found
            if found:
                expected[text] = found
        row.acknowledged += len(expected)
        stored = rows(data, "SELECT id, content FROM memories WHERE kind = 'note'")
        row.compare(set(expected), Counter(one["content"] for one in stored))
        by_id = {one["id"] for one in stored}
        for one in set(expected.values()) - by_id:
            row.lose(f"{one}, which was printed")
    return row


def _id_in(said: list[str]) -> str | None:
    found = re.search(r"\bmem_[0-9a-z]{12}\b", " ".join(said))
    return found[0] if found else None


# --- migrations and backups ---------------------------------------------------------------------------------

MEMORIES = 200
STATE = "SELECT id, content, created_at FROM memories WHERE kind IN ('tool', 'note') ORDER BY id"
PROMPTS = "SELECT session_id, prompt, created_at FROM prompts ORDER BY id"


def is_sound(path: str) -> bool:
    with closing(sqlite3.connect(path)) as db:
        return bool(db.execute("PRAGMA quick_check").fetchall() == [("ok",)])


def migrations(folder: Path, wanted: int, seed: int) -> Row:
    """From today's schema to one with a step more, with its backup before."""
    row, shooting = Row("migration"), Shooting(seed)
    old, today = folder / "old", connection.MIGRATIONS
    _store(old)
    before = rows(old, STATE), rows(old, PROMPTS)
    connection.MIGRATIONS = with_a_toy(folder)
    number = 0
    while not _enough(row, shooting, wanted):
        number += 1
        data = folder / f"migrated-{number}"
        shutil.copytree(old, data)

        def work(say: Say, data: Path = data) -> None:
            connect(str(data / "backstory.db")).close()
            say("opened")

        with at_home(data):
            ended = shooting.at(work).ended
            connect(str(data / "backstory.db")).close()
            assert_sound(data)
            row.acknowledged += len(before[0]) + len(before[1])
            after = rows(data, STATE), rows(data, PROMPTS)
            for was, now in zip(before, after, strict=True):
                row.compare({str(one) for one in was}, Counter(map(str, now)))
            toys = {one["memory_id"] for one in rows(data, "SELECT memory_id FROM toys")}
            for one in {one["id"] for one in before[0]} - toys:
                row.lose(f"the toy of {one}")
            good = [one for one in backup.listed(str(data)) if is_sound(one.path)]
            if not good or (ended and len(good) > 1):
                row.lose(f"{len(good)} good backups of {old.name}")
        shutil.rmtree(data)
    connection.MIGRATIONS = today
    return row


def _store(data: Path) -> None:
    dice = random.Random(7)  # noqa: S311
    with closing(connect(str(data / "backstory.db"))) as db:
        db.execute(
            "INSERT INTO projects (number, id, identity, name, root, last_memory, created_at)"
            " VALUES (1, 'prj_a', 'prj_a', 'a', '/a', ?, 1)",
            (MEMORIES,),
        )
        db.execute("BEGIN")
        for session in range(MEMORIES // 20):
            db.execute(
                "INSERT INTO sessions (id, number, project_id, status, cwd, branch, head, started_at,"
                " user_prompt) VALUES (?, ?, 'prj_a', 'completed', '/a', 'main', 'abc', ?, 'mend it')",
                (f"s{session}", session, session * 1000),
            )
            said = f"please {text_of(dice)}"
            values = (f"s{session}", said, session * 1000 + 1)
            db.execute("INSERT INTO prompts (session_id, prompt, created_at) VALUES (?, ?, ?)", values)
        for memory_number in range(MEMORIES):
            db.execute(
                "INSERT INTO memories (row, id, project_id, session_id, kind, sector, tier, content,"
                " importance, salience, created_at, updated_at, last_accessed, content_hash) VALUES"
                " (?, ?, 'prj_a', ?, ?, 'episodic', 'session', ?, .4, .5, ?, ?, ?, 'h')",
                (
                    1 << 32 | memory_number + 1,
                    f"mem_{memory_number:012}",
                    f"s{memory_number // 20}",
                    "tool" if memory_number % 2 else "note",
                    f"Tool: Bash\nCommand: {text_of(dice)}",
                    *(memory_number // 20 * 1000 + 2,) * 3,
                ),
            )
        db.execute("COMMIT")


def backups(folder: Path, wanted: int, seed: int) -> Row:
    """`backup.make` and `prune`, as the worker and `backstory backup now` do them."""
    row, shooting = Row("backup"), Shooting(seed)
    for data, rounds in _stores(row, shooting, folder, wanted):
        shutil.rmtree(data)
        _store(data)
        for number in rounds:
            command = f"echo {text_of(shooting.dice)}"
            accepted(data, bash(command))
            drain(data, now=now_ms())
            whole = {one["content"] for one in rows(data, STATE)}

            def work(say: Say, data: Path = data, now: int = number * 2000) -> None:
                made = backup.make(str(data), 1_700_000_000_000 + now, "manual")
                say(made.name)
                backup.prune(str(data))

            said = shooting.at(work).said
            row.acknowledged += len(said)
            listed = backup.listed(str(data))
            if said and said[0] not in {one.name for one in listed}:
                row.lose(f"{said[0]}, which was made")
            for one in listed[:1]:
                if not is_sound(one.path):
                    row.lose(f"{one.name} is damaged")
                with closing(sqlite3.connect(one.path)) as db:
                    found = Counter(content for _, content, _ in db.execute(STATE))
                row.compare(whole if said else set(), found)
    return row


# --- CLAUDE.md ----------------------------------------------------------------------------------------------

WRITES = 4  # of one child
LINES = 40  # that every version of our text has


def version(number: int) -> str:
    return f"- version {number}\n" * LINES


def shown(text: bytes) -> tuple[int, int] | None:
    """Which version of the view and which of the section a file shows; -1 is none. None: it is not whole."""
    found = []
    view = text.partition(b"## ab12cd34\n")[2].partition(dynamic.END)[0]
    section = text.partition(b": patterns -->")[2].partition(b"<!-- END")[0]
    for part in (view, section):
        said = re.findall(rb"- version (\d+)\n", part)
        if len(set(said)) > 1 or len(said) not in (0, LINES):
            return None
        found.append(int(said[0]) if said else -1)
    return found[0], found[1]


def claude_files(folder: Path, wanted: int, seed: int) -> Row:
    """Views and sections are written in turn, a person edits the file between the rounds, and somebody reads
    it all the time: it is whole at each instant, and what is not ours is as it was."""
    row, shooting = Row("CLAUDE.md"), Shooting(seed)
    project = folder / "claude-project"
    (project / ".git").mkdir(parents=True)
    file = project / "CLAUDE.md"
    for data, rounds in _stores(row, shooting, folder, wanted):
        file.write_bytes(TEMPLATE.encode() + b"\r\nA person's, \xff and \xe2\x82\xac.\r\n")
        connect(str(data / "backstory.db")).close()
        acknowledged = [-1, -1]
        number = 0
        for at in rounds:
            file.write_bytes(b"A person's line %d.\n" % at + file.read_bytes())
            theirs = sections.theirs(file.read_bytes())

            def work(say: Say, first: int = number, data: Path = data) -> None:
                writer.SETTLED = 0.001  # who edits the file has done so
                with closing(connect(str(data / "backstory.db"))) as db:
                    for one in range(first, first + WRITES):
                        if one % 2:
                            writer.put_views(str(project), str(data), [("ab12cd34", version(one))], 0)
                        else:
                            body = {"patterns": version(one)}
                            managed.put_many(db, str(data), str(file), body, author="model", now=0)
                        say(str(one))

            def look(theirs: bytes = theirs) -> None:
                text = file.read_bytes()
                if sections.theirs(text) != theirs:
                    row.lose("a person's text")
                if shown(text) is None:
                    row.lose("a whole file")

            for one in map(int, shooting.at(work, look).said):
                acknowledged[1 - one % 2] = one
                row.acknowledged += 1
            look()
            there = shown(file.read_bytes()) or (-1, -1)
            if there[0] < acknowledged[0] or there[1] < acknowledged[1]:
                row.lose(f"versions {acknowledged} were written, {there} are there")
            if file.read_bytes().count(dynamic.HEADER) > 1:
                row.see_twice("our section")
            number += WRITES
        shooting._run(work, None)
        if set(os.listdir(project)) != {".git", "CLAUDE.md"}:
            row.see_twice(f"files beside it: {os.listdir(project)}")
        file.unlink()
    return row


# --- the MCP servers ----------------------------------------------------------------------------------------


class Forked:
    """A server that was forked off this process, asked by lines of JSON."""

    def __init__(self, serve: Callable[[], None], project: Path) -> None:
        theirs, ours = os.pipe()
        heard, says = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            try:
                for end in (ours, heard):
                    os.close(end)
                os.dup2(theirs, 0)
                os.dup2(says, 1)
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                os.chdir(project)
                os.environ["CLAUDE_PROJECT_DIR"] = str(project)
                # Both names, as at the start of Python: what replaces the one relies on the other.
                sys.stdin = sys.__stdin__ = os.fdopen(0)  # type: ignore[misc]
                sys.stdout = os.fdopen(1, "w")
                serve()
            finally:
                os._exit(0)
        os.close(theirs)
        os.close(says)
        self._asked, self._heard, self._rest = ours, heard, b""
        self._number = 0
        client = {"name": "chaos", "version": "0"}
        known = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        self.send({"id": "init", "method": "initialize", "params": known})
        assert self.answers(1), "the server does not answer"
        self.send({"method": "notifications/initialized"})

    def send(self, message: Json) -> None:
        os.write(self._asked, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def call(self, name: str, **arguments: object) -> int:
        self._number += 1
        params = {"name": name, "arguments": arguments}
        self.send({"id": self._number, "method": "tools/call", "params": params})
        return self._number

    def answers(self, count: int, seconds: float = 20.0) -> list[Json]:
        """So many, or those that come in time."""
        deadline = time.monotonic() + seconds
        found: list[Json] = []
        while len(found) < count:
            line, newline, rest = self._rest.partition(b"\n")
            if newline:
                self._rest = rest
                if "id" in (message := json.loads(line)):
                    found.append(message)
            elif select.select([self._heard], [], [], max(0, deadline - time.monotonic()))[0]:
                part = os.read(self._heard, 65_536)
                if not part:
                    break
                self._rest += part
            else:
                break
        return found

    def end(self, number: int) -> list[Json]:
        """Kill it, or let it end; what it had still said."""
        if number:
            os.kill(self.pid, number)
        os.close(self._asked)
        found = self.answers(sys.maxsize)
        os.waitpid(self.pid, 0)
        os.close(self._heard)
        return found


def _served(
    row: Row,
    folder: Path,
    wanted: int,
    seed: int,
    serve: Callable[[], None],
    begin: Callable[[Forked], None],
    request: Callable[[str], tuple[str, dict[str, Any]]],
    check: Callable[[Path, Path, Json], None],
) -> Row:
    """A server is asked many things at once and killed before it has answered all."""
    dice = random.Random(seed)  # noqa: S311
    project = folder / f"{row.work}-project"
    (project / ".git").mkdir(parents=True)
    seconds = 0.2
    while row.kills < wanted:
        data = folder / f"{row.work}-{row.shots}"
        with at_home(data):
            connect(str(data / "backstory.db")).close()
            texts: dict[str, str] = {}  # with the reply
            for at in range(NEW_STORE // 3):
                if row.kills >= wanted:
                    break
                assert row.shots <= 20 + 4 * wanted, "the shots miss"
                server = Forked(serve, project)
                begin(server)
                asked = {}
                started = time.monotonic()
                for _ in range(REQUESTS):
                    text = text_of(dice)
                    name, arguments = request(text)
                    asked[server.call(name, **arguments)] = text
                spare = at % 10 == 0
                heard = server.answers(REQUESTS, 20.0 if spare else dice.uniform(0, seconds))
                if spare:
                    seconds = time.monotonic() - started
                heard += server.end(0 if spare else signal.SIGKILL)
                for answer in heard:
                    if "result" in answer and answer["id"] in asked and not answer["result"].get("isError"):
                        texts[asked[answer["id"]]] = answer["result"]["content"][0]["text"]
                if not spare:
                    row.shots += 1
                    row.kills += len(heard) < REQUESTS
            row.acknowledged += len(texts)
            assert_sound(data)
            check(data, project, texts)
        shutil.rmtree(data)
    return row


def memory_adds(folder: Path, wanted: int, seed: int) -> Row:
    row = Row("memory_add")

    def check(data: Path, project: Path, texts: Json) -> None:
        stored = rows(data, "SELECT id, content FROM memories WHERE kind = 'note'")
        row.compare(set(texts), Counter(one["content"] for one in stored))
        for reply in texts.values():
            if _id_in([reply]) not in {one["id"] for one in stored}:
                row.lose(reply)

    return _served(
        row,
        folder,
        wanted,
        seed,
        lambda: start.serve("memory"),
        lambda server: None,
        lambda text: ("memory_add", {"content": text}),
        check,
    )


TREE = "harbour"
THEIRS = b"# Harbour\r\n\r\nBoats are blue here. \xff\r\n"


def docmem_writes(folder: Path, wanted: int, seed: int) -> Row:
    """Nodes are added to a tree that the server shows in CLAUDE.md."""
    row = Row("docmem")

    def begin(server: Forked) -> None:
        (server_project / "CLAUDE.md").touch()
        server.call("docmem_create", root_id=TREE)  # refused where it is there
        server.call("docmem_view", action="add", node_id=TREE)
        assert len(server.answers(2)) == 2

    def request(text: str) -> tuple[str, dict[str, Any]]:
        context = {"context_type": "note", "context_name": "", "context_value": ""}
        node = {"target_id": TREE, "mode": "append-child", "content": text}
        return "docmem_create_node", {**node, **context}

    def check(data: Path, project: Path, texts: Json) -> None:
        left = (project / "CLAUDE.md").read_bytes()
        if dynamic.without(left) != THEIRS:
            row.lose("a person's text")
        Forked(lambda: start.serve("docmem"), project).end(0)  # the next server removes what is left
        if (project / "CLAUDE.md").read_bytes() != THEIRS:
            row.see_twice(f"a view whose server is gone: {(project / 'CLAUDE.md').read_bytes()[:300]!r}")
        with closing(connect(str(data / "backstory.db"))) as db:
            (number,) = db.execute("SELECT number FROM projects").fetchone()
            whole = nodes.subtree(db, number, TREE)
            if nodes.count(db) != len(whole):
                row.lose("nodes that no root leads to")
        row.compare(set(texts), Counter(one.text for one in whole[1:]))
        places = Counter((one.parent_id, one.order_value) for one in whole)
        for place, times in places.items():
            if times > 1:
                row.see_twice(place)

    server_project = folder / "docmem-project"
    server_project.mkdir()
    (server_project / "CLAUDE.md").write_bytes(THEIRS)
    return _served(row, folder, wanted, seed, lambda: start.serve("docmem"), begin, request, check)


# (what is killed, its share of all kills): those that are quick to kill are killed more often
ROWS: list[tuple[Callable[[Path, int, int], Row], float]] = [
    (hooks, 0.1),
    (drains, 0.2),
    (workers, 0.1),
    (notes, 0.1),
    (memory_adds, 0.1),
    (migrations, 0.1),
    (backups, 0.1),
    (claude_files, 0.1),
    (docmem_writes, 0.1),
]


def run(folder: Path, kills: int, seed: int, tell: Callable[[str], None], processes: int = 2) -> list[Row]:
    with ProcessPoolExecutor(processes, get_context("fork")) as pool:
        waiting = [pool.submit(_row, at, folder, kills, seed) for at in range(len(ROWS))]
        done = [one.result() for one in waiting]
    for row in done:
        tell(f"killed {row.work}: {row.kills} of {row.shots} at work, {row.seconds:.0f} s")
    return done


def _row(at: int, folder: Path, kills: int, seed: int) -> Row:
    kill, share = ROWS[at]
    place = folder / f"{kill.__name__}-{at}"
    place.mkdir(parents=True)
    started = time.monotonic()
    row = kill(place, max(2, round(kills * share)), seed)
    row.seconds = round(time.monotonic() - started, 1)
    shutil.rmtree(place)
    return row
