"""How long a search takes, and what a store weighs, at ten thousand memories, a hundred thousand, a million.

A store of each size is filled through the store's own functions with sentences out of the documentation of
what is installed here, its vectors are made by the default embedder, and it is kept in the temporary folder
for the next run. Then the MCP server is asked questions as a model asks them, built from sentences that no
memory has. The modes take turns, and so do, on the same store and with the same question, what they are
measured against: plain FTS5 with BM25, and a multiplication with all vectors as floats.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import sqlite3
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import asdict, dataclass
from typing import Any

import anyio
import numpy as np
import report
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import CallToolResult, TextContent
from recall_quality import STOPWORDS, Unchanged, any_word
from report import Budget
from rich.console import Console
from rich.table import Table

from backstory import paths
from backstory.memory import terms
from backstory.memory.kinds import SECTORS
from backstory.memory.turn import COMPLETE, TYPED, Turn
from backstory.recall.embedders.protocol import unit
from backstory.recall.embedders.static import Static
from backstory.recall.index import Index
from backstory.store import memories, projects, sessions, turns
from backstory.store.file.connection import connect, transaction

SIZES = (10_000, 100_000, 1_000_000)
WORDS = 89  # in a memory, on average
SESSION = 40  # memories in one
TRACES = 0.3
# kind: how often among the rest
KINDS = {"turn": 60, "note": 10, "decision": 10, "bugfix": 10, "discovery": 5, "summary": 5}
BATCH = 2_000  # memories a transaction
PAST_MS = 20 * 24 * 3600 * 1000  # older traces might fade and be put away, and the store would shrink
HELD_OUT = 40  # every so many-th sentence is kept for questions
OPENINGS = (
    "How do we",
    "Why does it say",
    "When did we decide about",
    "What do we know about",
    "Where is it that",
)
LIMIT = 10
MODES = ("hybrid", "keyword", "semantic")
BY_ID, PLAIN, BRUTE = "one memory by its id", "plain FTS5 BM25", "float32 matmul"
SEARCH_BUDGETS = {100_000: 30.0, 1_000_000: 150.0}  # ms, p50 of the hybrid mode
LIST_BUDGET = 1.0  # s
SERVER_BUDGET = {100_000: 200.0}  # MB
INSTALL_BUDGET = 250.0  # MB


@dataclass(frozen=True, slots=True)
class Row:
    size: int
    case: str
    samples: int
    p50_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True)
class Place:
    """A kept store."""

    size: int
    home: str
    project: str
    questions: list[str]
    made: dict[str, float]


def main() -> int:
    options = _options()
    figures: dict[str, Any] = {"numpy": np.__version__, "sizes": []}
    console = report.console(options)
    budgets = []
    for size in options.sizes:
        with Unchanged():
            found = anyio.run(_measure, _place(size, options), options.samples)
        figures["sizes"].append(found)
        budgets += _budgets(size, found)
        if options.json != "-":
            _show(console, found)
    if options.budget_install:
        figures["install"] = _install()
        budgets += _install_budgets(figures["install"])
    return report.tell("recall_speed", options, figures, budgets, lambda _: None)  # shown size by size


def _options() -> argparse.Namespace:
    parser = report.options(__doc__)
    parser.add_argument(
        "--sizes", metavar="N,N", help="memories [10000,100000,1000000; none with --budget-install]"
    )
    parser.add_argument(
        "--samples", type=int, default=120, help="searches in each mode; a third of it at 1 M [120]"
    )
    parser.add_argument("--fresh", action="store_true", help="fill the stores anew")
    parser.add_argument("--dir", help="where the stores are kept [the system's temporary folder]")
    parser.add_argument(
        "--budget-install", action="store_true", help="install into a new environment and weigh it"
    )
    options = parser.parse_args()
    if options.sizes is None:
        options.sizes = () if options.budget_install else SIZES
    else:
        options.sizes = tuple(int(size) for size in options.sizes.split(",") if size)
    return options


# --- a store to search in -----------------------------------------------------------------------------------


def _place(size: int, options: argparse.Namespace) -> Place:
    home, project, told = report.keep("store", size, options, _fill)
    return Place(size, home, project, told["questions"], told["made"])


def _fill(size: int, home: str, project: str) -> dict[str, Any]:
    os.makedirs(project)
    generator = random.Random(size)  # noqa: S311  the same memories in every run
    sentences = _sentences(min(size * WORDS, 20_000_000))
    held_out = sentences[::HELD_OUT]
    del sentences[::HELD_OUT]
    with closing(connect(paths.database(home))) as db:
        spent = words = 0.0
        done, now = 0, int(time.time() * 1000)
        texts = _texts(sentences, generator)
        while done < size:
            batch = [next(texts) for _ in range(min(BATCH, size - done))]
            words += sum(terms.count_words(text) for text in batch)
            prepared = [_memory(text, generator) for text in batch]
            started = time.perf_counter()
            with transaction(db):
                _store(db, project, prepared, done, size, now)
            spent += time.perf_counter() - started
            done += len(batch)
        index = Index(Static())
        found = projects.at(db, paths.place(project))
        started = time.perf_counter()
        left = index.fill(db, index.corpus(db, memories, found))
        filled = time.perf_counter() - started
        assert left == 0, f"{left} vectors were not made"
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    made = {
        "inserts_per_second": round(size / spent),
        "vectors_per_second": round(size / filled),
        "words": round(words / size, 1),
        "sentences": len(sentences),
    }
    questions = [_question(sentence, generator) for sentence in generator.choices(held_out, k=1_000)]
    return {"made": made, "questions": questions}


def _memory(text: str, generator: random.Random) -> dict[str, Any]:
    """What a memory is made of, made before the clock runs."""
    if generator.random() < TRACES:
        name = f"src/{generator.choice(text.split()).strip('.,:;()').lower()}.py"
        told = f"Tool: Bash\nCommand: pytest {name}\nOutput: {text}"
        return {
            "kind": "tool",
            "sector": "episodic",
            "tier": "session",
            "content": told,
            "importance": 0.3,
            "files": [name],
        }
    (kind,) = generator.choices(list(KINDS), list(KINDS.values()))
    if kind == "turn":
        return {"kind": kind, "content": text}
    return {
        "kind": kind,
        "sector": generator.choice(SECTORS),
        "tier": "project",
        "content": text,
        "importance": 0.5,
        "content_hash": hashlib.sha256(text.encode()).hexdigest(),
        "simhash": generator.getrandbits(64) - (1 << 63),  # nobody looks at it here: it only takes its room
    }


def _store(
    db: sqlite3.Connection, project: str, prepared: list[dict[str, Any]], done: int, size: int, now: int
) -> None:
    """One session after the other, the last of them still going on."""
    place = paths.place(project)
    project_id = projects.ensure(db, place, now - PAST_MS)
    for number, memory in enumerate(prepared, done):
        at = now - PAST_MS + PAST_MS * number // size
        session_id = f"bench-{number // SESSION}"
        if number % SESSION == 0:
            if number:
                sessions.end(db, f"bench-{number // SESSION - 1}", at)
            sessions.start(db, session_id, project_id, project, place, at)
        if memory["kind"] == "turn":
            turn = Turn(session_id, at)
            asked, _, turn.answer = memory["content"].partition(". ")
            turn.prompts, turn.state = [[asked, TYPED]], COMPLETE
            turns.save(db, turn, project_id)
        else:
            memories.add(db, project_id=project_id, session_id=session_id, now=at, **memory)


def _sentences(words: int) -> list[str]:
    """English sentences out of the docstrings and manuals of what is installed, shuffled."""
    found: dict[str, None] = {}
    count = 0
    files = sorted(_documentation())
    random.Random(0).shuffle(files)  # noqa: S311
    for path in files:
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read(2_000_000)
        except (OSError, UnicodeDecodeError):
            continue
        parts = re.findall(r'"""(.*?)"""', text, re.DOTALL) if path.endswith(".py") else [text]
        for part in parts:
            for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z])|\n\s*\n", part):
                line = " ".join(sentence.split())
                if SENTENCE.fullmatch(line) and line not in found and _is_english(line):
                    found[line] = None
                    count += line.count(" ") + 1
        if count >= words:
            break
    return list(found)


def _is_english(line: str) -> bool:
    """Most of it is plain words, and some of those are the ones that every sentence has."""
    words = line[:-1].split(" ")
    plain = sum(word.isalpha() and word.islower() for word in words)
    return len(words) > 5 and plain / len(words) > 0.7 and not STOPWORDS.isdisjoint(words)


SENTENCE = re.compile(r"[A-Z][\w ,;:'`./()-]{25,300}[.!?]", re.ASCII)


def _documentation() -> Iterator[str]:
    for above in {sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")}:
        for folder, _, names in os.walk(above):
            yield from (
                os.path.join(folder, name) for name in names if name.endswith((".py", ".md", ".rst", ".txt"))
            )


def _texts(sentences: list[str], generator: random.Random) -> Iterator[str]:
    """Texts of WORDS words on average: a few sentences that stood together, then a few others."""
    while True:
        wanted = min(600.0, generator.lognormvariate(4.13, 0.65))
        text: list[str] = []
        length = 0
        while length < wanted:
            at = generator.randrange(len(sentences))
            for sentence in sentences[at : at + 3]:
                text.append(sentence)
                length += len(sentence.split())
                if length >= wanted:
                    break
        yield " ".join(text)


def _question(sentence: str, generator: random.Random) -> str:
    words = sentence.rstrip(".!?").split()
    start = generator.randrange(max(1, len(words) - 8))
    return f"{generator.choice(OPENINGS)} {' '.join(words[start : start + 8])}?"


# --- measuring ----------------------------------------------------------------------------------------------


async def _measure(place: Place, samples: int) -> dict[str, Any]:
    samples = max(1, samples // 3) if place.size >= 1_000_000 else samples
    starting = max(1, min(5, samples // 10))  # each is a process that has to load everything
    questions = iter(place.questions)
    starts, firsts = [], []
    for _ in range(starting):
        started = time.perf_counter()
        async with _server(place) as (client, _pid):
            await client.list_tools()
            starts.append(time.perf_counter() - started)
            firsts.append(await _timed(client, next(questions), "hybrid"))
    alone = [_cold(place, next(questions)) for _ in range(starting)]
    async with _server(place) as (client, pid):
        times = await _warm(client, place, questions, samples)
        weight = _resident(pid)
    rows = [Row(place.size, case, len(spent), *report.middle(spent)) for case, spent in times.items()]
    return {
        "memories": place.size,
        **place.made,
        "rows": [asdict(row) for row in rows],
        "tools_list_s": round(statistics.median(starts), 3),
        "first_search_ms": round(statistics.median(firsts), 1),
        "cli_search_ms": round(statistics.median(alone), 1),
        **weight,
        **_weight(place),
    }


async def _warm(
    client: ClientSession, place: Place, questions: Iterator[str], samples: int
) -> dict[str, list[float]]:
    """Every round asks one question in every way, in a new order; three rounds warm up and do not count."""
    plain, brute = _plain(place), _brute(place)
    with _reading(place) as db:
        ids = [found for (found,) in db.execute("SELECT id FROM memories ORDER BY row DESC LIMIT 500")]
    times: dict[str, list[float]] = {case: [] for case in (*MODES, BY_ID, PLAIN, BRUTE)}
    order = list(times)
    shuffle = random.Random(0)  # noqa: S311  the same order in every run
    for sample in range(-3, samples):
        question = next(questions)
        shuffle.shuffle(order)
        for case in order:
            if case in MODES:
                spent = await _timed(client, question, case)
            elif case == BY_ID:
                spent = await _timed(client, ids[sample], "hybrid")
            else:
                started = time.perf_counter()
                (plain if case == PLAIN else brute)(question)
                spent = (time.perf_counter() - started) * 1000
            if sample >= 0:
                times[case].append(spent)
    return times


async def _timed(client: ClientSession, question: str, mode: str) -> float:
    started = time.perf_counter()
    reply = await client.call_tool("memory_search", {"query": question, "limit": LIMIT, "mode": mode})
    spent = (time.perf_counter() - started) * 1000
    assert isinstance(reply, CallToolResult)
    (block,) = reply.content
    assert isinstance(block, TextContent)
    if reply.is_error or "ID: " not in block.text or "no vector yet" in block.text:
        raise SystemExit(f"{question!r} was answered with {block.text[:300]!r}")
    return spent


def _reading(place: Place) -> closing[sqlite3.Connection]:
    """Only as long as it is needed: while somebody else has the store open, closing it costs the server less
    than it does in life."""
    return closing(sqlite3.connect(f"file:{paths.database(place.home)}?mode=ro", uri=True))


def _plain(place: Place) -> Callable[[str], None]:
    def find(question: str) -> None:
        match = any_word(question)
        ranked = "SELECT rowid FROM memories_fts WHERE memories_fts MATCH ? ORDER BY rank LIMIT ?"
        with _reading(place) as db:  # a new one each time, as the server does it
            db.execute(ranked, (match, LIMIT)).fetchall()

    return find


def _brute(place: Place) -> Callable[[str], None]:
    """All vectors as floats, times the question's."""
    embedder = Static()
    with _reading(place) as db:
        joined = b"".join(vector for (vector,) in db.execute("SELECT vector FROM vectors ORDER BY row"))
    table = np.frombuffer(joined, np.int8).reshape(-1, embedder.dimension).astype(np.float32)
    for at in range(0, len(table), 100_000):
        table[at : at + 100_000] = unit(table[at : at + 100_000])

    def find(question: str) -> None:
        near = table @ embedder.embed([question])[0]
        best = np.argpartition(near, -LIMIT)[-LIMIT:]
        best[np.argsort(-near[best])]

    return find


def _cold(place: Place, question: str) -> float:
    """A search at the terminal: a process that starts, loads, searches and ends."""
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-P", "-m", "backstory", "search", "--project", place.project, "--json", question],
        env={**os.environ, "HOME": place.home, "BACKSTORY_HOME": place.home},
        capture_output=True,
        text=True,
        check=False,
    )
    spent = (time.perf_counter() - started) * 1000
    if done.returncode or not json.loads(done.stdout):
        raise SystemExit(f"backstory search ended with {done.returncode}: {done.stderr}")
    return spent


@asynccontextmanager
async def _server(place: Place) -> AsyncIterator[tuple[ClientSession, int | None]]:
    """A server as Claude Code starts it, in the session that is going on; and its process id, on Linux."""
    env = {
        "HOME": place.home,
        "BACKSTORY_HOME": place.home,
        "CLAUDE_PROJECT_DIR": place.project,
        "CLAUDE_CODE_SESSION_ID": f"bench-{(place.size - 1) // SESSION}",
    }
    how = StdioServerParameters(
        command=sys.executable, args=["-P", "-m", "backstory", "mcp", "memory"], env=env, cwd=place.project
    )
    before = _children()
    # The default is the stderr of mcp's import: whoever captures a run would not see what the server says.
    async with stdio_client(how, sys.stderr) as (read, write), ClientSession(read, write) as client:
        await client.initialize()
        yield client, next(iter(_children() - before), None)


def _children() -> set[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            return {int(child) for child in file.read().split()}
    except OSError:
        return set()


def _resident(pid: int | None) -> dict[str, float]:
    """MB that a process holds: all, and the part that is its own and not a file's."""
    if pid is None:
        return {}
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        found = dict(re.findall(r"^(\w+): +(\d+) kB$", file.read(), re.MULTILINE))
    return {
        "server_mb": round(int(found["Rss"]) / 1024, 1),
        "server_anonymous_mb": round(int(found["Anonymous"]) / 1024, 1),
    }


def _weight(place: Place) -> dict[str, float]:
    size = os.path.getsize(paths.database(place.home))
    with _reading(place) as db:
        text = db.execute("SELECT sum(length(CAST(content AS BLOB))) FROM memories").fetchone()[0]
    return {
        "database_mb": round(size / 1e6, 1),
        "bytes_a_memory": round(size / place.size),
        "text_bytes_a_memory": round(text / place.size),
    }


# --- the install --------------------------------------------------------------------------------------------


def _install() -> dict[str, Any]:
    """MB of a new environment with backstory in it, and whether it finds by meaning without a network."""
    repository = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with tempfile.TemporaryDirectory(prefix="backstory-bench-") as folder:
        environment = os.path.join(folder, "environment")
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        python = os.path.join(environment, "bin", "python")
        pip = [python, "-m", "pip", "-qq", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", repository], check=True)
        home = {"PATH": os.environ["PATH"], "HOME": folder, "BACKSTORY_HOME": os.path.join(folder, "home")}
        away = {f"{scheme}_proxy": "http://127.0.0.1:9" for scheme in ("http", "https", "all")}
        ours = [python, "-P", "-m", "backstory"]
        for command in (
            ["add", "The physician cured her illness"],
            ["search", "--mode", "semantic", "doctor"],
        ):
            done = subprocess.run(
                [*ours, *command],
                cwd=folder,
                env={**home, **away},
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise SystemExit(f"backstory {command[0]} ended with {done.returncode}: {done.stderr}")
        found = "physician" in done.stdout and "words only" not in done.stderr
        whole = _disk(environment)
        subprocess.run([*pip, "uninstall", "--yes", "pip", "setuptools"], check=True)
        return {
            "with_pip_mb": round(whole, 1),
            "without_pip_mb": round(_disk(environment), 1),
            "finds_by_meaning_offline": found,
        }


def _disk(folder: str) -> float:
    """MB that a folder takes on disk."""
    found = [os.path.join(above, name) for above, _, names in os.walk(folder) for name in names]
    return sum(os.lstat(path).st_blocks * 512 for path in found) / 1e6


# --- telling ------------------------------------------------------------------------------------------------


def _budgets(size: int, found: dict[str, Any]) -> list[Budget]:
    p50 = {row["case"]: row["p50_ms"] for row in found["rows"]}
    wanted = [("tools/list after a start", "s", LIST_BUDGET, found["tools_list_s"])]
    if size in SEARCH_BUDGETS:
        wanted.append(("memory_search, warm, p50", "ms", SEARCH_BUDGETS[size], p50["hybrid"]))
    if size in SERVER_BUDGET and "server_mb" in found:
        wanted.append(("server in RAM", "MB", SERVER_BUDGET[size], found["server_mb"]))
    return [
        Budget(f"{name}, {size:,} memories", "below", limit, measured, unit)
        for name, unit, limit, measured in wanted
    ]


def _install_budgets(found: dict[str, Any]) -> list[Budget]:
    return [
        Budget("install", "below", INSTALL_BUDGET, found["with_pip_mb"], "MB"),
        Budget("install without pip itself", "below", INSTALL_BUDGET, found["without_pip_mb"], "MB"),
        Budget("finds by meaning offline", "at least", 1, int(found["finds_by_meaning_offline"])),
    ]


def _show(console: Console, found: dict[str, Any]) -> None:
    table = Table("case", "samples", "p50 ms", "p95 ms", title=f"{found['memories']:,} memories")
    for row in found["rows"]:
        table.add_row(row["case"], str(row["samples"]), f"{row['p50_ms']:.1f}", f"{row['p95_ms']:.1f}")
    console.print(table)
    table = Table("and", "")
    for key, name in NAMES.items():
        if key in found:
            table.add_row(name, f"{found[key]:,}")
    console.print(table)


NAMES = {
    "tools_list_s": "start to tools/list, s",
    "first_search_ms": "first search, right after the start, ms",
    "cli_search_ms": "backstory search, a whole process, ms",
    "server_mb": "server after the searches, MB",
    "server_anonymous_mb": "  of that its own, MB",
    "database_mb": "database, MB",
    "bytes_a_memory": "bytes a memory",
    "text_bytes_a_memory": "  of that its text",
    "words": "words a memory",
    "sentences": "different sentences",
    "inserts_per_second": "memories stored a second",
    "vectors_per_second": "vectors made a second",
}


if __name__ == "__main__":
    sys.exit(main())
