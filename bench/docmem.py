"""How long trees take: an expansion, an insert and a view, in trees of a hundred thousand nodes.

A store with three trees is filled once and kept in the temporary folder: a flat one, whose nodes are all
below the root, a bushy one and a deep one. Every round does each thing once, in a new order, and beside it
what the same costs without backstory: reading the rows that an expansion shows, inserting a row that is safe
on the disk, replacing a file by another of that length. Then the MCP server is asked as a model asks it.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from itertools import cycle
from typing import Any

import anyio
import report
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import CallToolResult, TextContent
from recall_quality import Unchanged
from recall_speed import _question, _sentences
from report import Budget
from rich.console import Console
from rich.table import Table

from backstory import paths
from backstory.claude_md.write import writer
from backstory.docmem import expand, tree
from backstory.docmem.tree import Made
from backstory.model import Node, Project
from backstory.recall.embedders.static import Static
from backstory.recall.index import Index
from backstory.store import nodes, projects
from backstory.store.file.connection import connect, transaction

SIZE = 100_000
BUDGET = 10_000  # tokens of an expansion
BRANCHES = 12  # below each node of the bushy tree
CHAINS = 100  # below the root of the deep one
FLAT, BUSHY, DEEP = "flat", "bushy", "deep"
PLACES = ((FLAT, "append-child"), (FLAT, "after"), (BUSHY, "append-child"), (BUSHY, "before"))
SECTION = 40_000  # bytes
THEIRS = 10_000  # bytes of CLAUDE.md that are the user's
EXPAND_MS, INSERT_MS, REWRITE_MS = 50.0, 1.0, 10.0
READ, INSERT, REPLACE = "reading these rows", "one INSERT", "write, fsync, rename"
WARM_UP = 3  # rounds


@dataclass(frozen=True, slots=True)
class Row:
    case: str
    p50_ms: float
    p95_ms: float
    against: str = ""  # the baseline
    ratio: float | None = None  # of the p50 to the baseline's
    limit_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Store:
    home: str
    project: str
    questions: list[str]


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    run: Callable[[], object]
    against: str = ""
    limit_ms: float | None = None
    every: int = 1  # rounds: what is slow and has no budget is done now and then


def main() -> int:
    options = _options()
    own = tempfile.TemporaryDirectory(prefix="backstory-bench-", dir=options.dir, ignore_cleanup_errors=True)
    with own as folder, Unchanged():
        store = _copy(_kept(options), folder)
        with closing(connect(paths.database(store.home))) as db:
            cases = _cases(db, store, folder)
            times = _measure(cases, options.samples)
        rows = [_row(case, times) for case in cases]
        calls = anyio.run(_calls, store, options.samples)
    budgets = [
        Budget(row.case, "below", row.limit_ms, row.p50_ms, "ms") for row in rows if row.limit_ms is not None
    ]
    figures = {
        "nodes": options.size,
        "samples": options.samples,
        "rows": [asdict(row) for row in rows],
        "calls": [asdict(row) for row in calls],
    }
    return report.tell(
        "docmem", options, figures, budgets, lambda console: _show(console, rows, calls, options)
    )


def _options() -> argparse.Namespace:
    parser = report.options(__doc__)
    parser.add_argument("--size", type=int, default=SIZE, help=f"nodes in each tree [{SIZE}]")
    parser.add_argument("--samples", type=int, default=100, help="of each case [100]")
    parser.add_argument("--fresh", action="store_true", help="fill the store anew")
    parser.add_argument("--dir", help="where the store is [the system's temporary folder]")
    return parser.parse_args()


# --- trees --------------------------------------------------------------------------------------------------


def _kept(options: argparse.Namespace) -> Store:
    home, project, told = report.keep("trees", options.size, options, _fill)
    return Store(home, project, told["questions"])


def _copy(kept: Store, folder: str) -> Store:
    """What is inserted must not stay in a kept store."""
    home = os.path.join(folder, "home")
    shutil.copytree(kept.home, home)
    return Store(home, kept.project, kept.questions)


def _fill(size: int, home: str, project: str) -> dict[str, Any]:
    os.makedirs(project)
    generator = random.Random(size)  # noqa: S311  the same nodes in every run
    sentences = _sentences(size * 10)
    texts = cycle(sentences)
    with closing(connect(paths.database(home))) as db:
        now = int(time.time() * 1000)
        with transaction(db):
            projects.ensure(db, paths.place(project), now)
        found = _project(db, project)
        for shape in (FLAT, BUSHY, DEEP):
            made = [Made(shape, None, "", ("root", shape, ""))]
            made += [
                Made(None, _parent(shape, number, size), next(texts), ("memory", f"{shape} {number}", ""))
                for number in range(1, size)
            ]
            tree.build(db, found, made, now=now)
        index = Index(Static())
        left = index.fill(db, index.corpus(db, nodes, found))
        assert left == 0, f"{left} vectors were not made"
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return {"questions": [_question(sentence, generator) for sentence in generator.choices(sentences, k=500)]}


def _parent(shape: str, number: int, size: int) -> int:
    """Where the nodes of a tree are: the number of each one's parent, 0 for the root."""
    if shape == FLAT:
        return 0
    if shape == BUSHY:
        return (number - 1) // BRANCHES
    return max(0, number - min(CHAINS, size // 10))


def _project(db: sqlite3.Connection, project: str) -> Project:
    found = projects.at(db, paths.place(project))
    assert found is not None
    return found


# --- measuring ----------------------------------------------------------------------------------------------


def _cases(db: sqlite3.Connection, store: Store, folder: str) -> list[Case]:
    generator = random.Random(1)  # noqa: S311
    project = _project(db, store.project)
    trees = {shape: nodes.subtree(db, project.number, shape) for shape in (FLAT, BUSHY, DEEP)}
    return [
        *_expansions(db, project, trees),
        *_inserts(db, project, trees, folder, generator),
        *_rewrites(store, folder, generator),
        Case(
            "structure, bushy", lambda: expand.structure(nodes.subtree(db, project.number, BUSHY)), every=20
        ),
    ]


def _expansions(db: sqlite3.Connection, project: Project, trees: dict[str, list[Node]]) -> Iterator[Case]:
    for shape, (root, *_) in trees.items():
        rows = [node.row for node, _ in expand.shown(db, project.number, root, BUDGET)]
        read = f"{READ}, {shape}"
        yield Case(read, partial(nodes.at, db, rows))
        yield Case(
            f"expand to {BUDGET:,} tokens, {shape}",
            partial(
                lambda start: expand.expand(db, project.number, tree.node(db, project, start), BUDGET), shape
            ),
            read,
            EXPAND_MS,
        )


def _inserts(
    db: sqlite3.Connection,
    project: Project,
    trees: dict[str, list[Node]],
    folder: str,
    generator: random.Random,
) -> Iterator[Case]:
    targets = {shape: found[1:] for shape, found in trees.items()}

    def insert(shape: str, mode: str) -> None:
        node_id = FLAT if (shape, mode) == (FLAT, "append-child") else generator.choice(targets[shape]).id
        text = generator.choice(targets[shape]).text
        tree.add(db, project, node_id, text, ("memory", "bench", ""), mode, now=int(time.time() * 1000))

    yield Case(INSERT, _bare_insert(folder, trees[FLAT], generator))
    for shape, mode in PLACES:
        yield Case(f"insert {mode}, {shape}", partial(insert, shape, mode), INSERT, INSERT_MS)
    yield Case(f"insert append-child, {DEEP}", partial(insert, DEEP, "append-child"), INSERT)


def _bare_insert(folder: str, texts: Sequence[Node], generator: random.Random) -> Callable[[], None]:
    """A row of the same text, with one index, as safe on the disk when it is there as a node is."""
    db = sqlite3.connect(os.path.join(folder, "bare.db"), isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE nodes (row INTEGER PRIMARY KEY, parent TEXT, place REAL, text TEXT)")
    db.execute("CREATE INDEX by_place ON nodes (parent, place)")

    def insert() -> None:
        node = generator.choice(texts)
        given = (node.id, node.order_value, node.text)
        db.execute("INSERT INTO nodes (parent, place, text) VALUES (?, ?, ?)", given)

    return insert


def _rewrites(store: Store, folder: str, generator: random.Random) -> Iterator[Case]:
    at = os.path.join(folder, "checkout")
    os.makedirs(at)
    path = os.path.join(at, "CLAUDE.md")
    with open(path, "wb") as file:
        file.write(b"Boats are blue here.\n" * (THEIRS // 21))

    sections = cycle([[("harbour", _lines(generator))] for _ in range(8)])
    files = cycle([generator.randbytes(THEIRS + SECTION) for _ in range(8)])

    def replace() -> None:
        with open(path + ".new", "wb") as file:
            file.write(next(files))
            file.flush()
            os.fsync(file.fileno())
        os.rename(path + ".new", path + ".old")

    def rewrite() -> None:
        assert writer.put_views(at, store.home, next(sections), int(time.time() * 1000))

    yield Case(REPLACE, replace)
    yield Case("view rewritten, 40 KB", rewrite, REPLACE, REWRITE_MS)


def _lines(generator: random.Random) -> str:
    return "\n".join(f"{generator.getrandbits(64):016x} stands in a line" for _ in range(SECTION // 33))


def _measure(cases: Sequence[Case], samples: int) -> dict[str, list[float]]:
    """Every round runs every case once, in a new order, so that a busy machine is busy for all of them."""
    times: dict[str, list[float]] = {case.name: [] for case in cases}
    order = list(cases)
    shuffle = random.Random(0)  # noqa: S311  the same order in every run
    for sample in range(-WARM_UP, samples):
        shuffle.shuffle(order)
        for case in order:
            if sample % case.every:
                continue
            started = time.perf_counter()
            case.run()
            if sample >= 0:
                times[case.name].append((time.perf_counter() - started) * 1000)
    return times


def _row(case: Case, times: dict[str, list[float]]) -> Row:
    p50, p95 = report.middle(times[case.name], 3)
    ratio = None
    if case.against:
        ratio = round(p50 / report.middle(times[case.against], 6)[0], 1)
    return Row(case.name, p50, p95, case.against, ratio, case.limit_ms)


async def _calls(store: Store, samples: int) -> list[Row]:
    """The same through the server, as a model waits for it; the last two with a view that shows the node."""
    with open(os.path.join(store.project, "CLAUDE.md"), "wb") as file:
        file.write(b"Boats are blue here.\n" * (THEIRS // 21))
    generator = random.Random(2)  # noqa: S311
    context = {"context_type": "memory", "context_name": "bench", "context_value": ""}
    how = StdioServerParameters(
        command=sys.executable,
        args=["-P", "-m", "backstory", "mcp", "docmem"],
        env={
            "HOME": store.home,
            "BACKSTORY_HOME": store.home,
            "CLAUDE_PROJECT_DIR": store.project,
            "CLAUDE_CODE_SESSION_ID": "bench",
        },
        cwd=store.project,
    )
    # The default is the stderr of mcp's import: whoever captures a run would not see what the server says.
    async with stdio_client(how, sys.stderr) as (read, write), ClientSession(read, write) as client:
        await client.initialize()
        made = await _call(
            client, "docmem_create_node", target_id=BUSHY, content="x", mode="append-child", **context
        )
        node_id = made.split()[2]
        asked: dict[str, Callable[[], tuple[str, dict[str, object]]]] = {
            "docmem_find": lambda: ("docmem_find", {"id": node_id}),
            f"docmem_expand_to_length, {BUSHY}": lambda: (
                "docmem_expand_to_length",
                {"node_id": BUSHY, "max_tokens": BUDGET},
            ),
            f"docmem_search, {BUSHY}": lambda: (
                "docmem_search",
                {"query": generator.choice(store.questions), "root_id": BUSHY},
            ),
            f"docmem_create_node, {FLAT}": lambda: (
                "docmem_create_node",
                {"target_id": FLAT, "content": "A sentence.", "mode": "append-child", **context},
            ),
            f"docmem_update_content, {BUSHY}": lambda: (
                "docmem_update_content",
                {"id": node_id, "content": f"It is {generator.random()} now."},
            ),
        }
        times = await _asked(client, asked, samples)
        await _call(client, "docmem_view", action="add", node_id=BUSHY)
        viewed = {f"{name}, in a view": ask for name, ask in asked.items() if "update_content" in name}
        times |= await _asked(client, viewed, samples)
    return [Row(name, *report.middle(spent, 3)) for name, spent in times.items()]


async def _asked(
    client: ClientSession, asked: dict[str, Callable[[], tuple[str, dict[str, object]]]], samples: int
) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in asked}
    order = list(asked)
    shuffle = random.Random(0)  # noqa: S311
    for sample in range(-WARM_UP, samples):
        shuffle.shuffle(order)
        for name in order:
            tool, arguments = asked[name]()
            started = time.perf_counter()
            await _call(client, tool, **arguments)
            if sample >= 0:
                times[name].append((time.perf_counter() - started) * 1000)
    return times


async def _call(client: ClientSession, tool: str, **arguments: object) -> str:
    reply = await client.call_tool(tool, arguments)
    assert isinstance(reply, CallToolResult)
    (block,) = reply.content
    assert isinstance(block, TextContent)
    if reply.is_error or not block.text.startswith(tool):
        raise SystemExit(f"{tool} answered {block.text[:300]!r}")
    return block.text


def _show(console: Console, rows: list[Row], calls: list[Row], options: argparse.Namespace) -> None:
    table = Table("case", "p50 ms", "p95 ms", "x baseline", "of")
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.1f}"
        table.add_row(row.case, f"{row.p50_ms:.2f}", f"{row.p95_ms:.2f}", ratio, row.against)
    table.caption = f"trees of {options.size:,} nodes, {options.samples} samples each, interleaved"
    console.print(table)
    table = Table("tool call", "p50 ms", "p95 ms")
    for row in calls:
        table.add_row(row.case, f"{row.p50_ms:.2f}", f"{row.p95_ms:.2f}")
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
