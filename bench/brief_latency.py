"""How long a session waits for its brief: the whole SessionStart hook, with stores of different sizes.

The hook runs as Claude Code runs it: `sh hook.sh start`, the payload through a pipe, until it exits. Every
round runs each case once, in a new order, with an empty shell and a bare Python among them. A store has as
many sessions, traces, turns, observations and summaries beside each other as months of work leave, in a
project under git whose files went on changing; it is kept in the temporary folder for the next run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import report
from hook_latency import BARE_PYTHON, BASELINE, Case, _run, _Times
from recall_quality import Unchanged
from recall_speed import BATCH, _sentences, _texts
from report import Budget
from rich.console import Console
from rich.table import Table

from backstory import paths
from backstory.blob import blob_id
from backstory.memory.kinds import OBSERVATIONS
from backstory.memory.turn import COMPLETE, TYPED, Turn
from backstory.model import Summary
from backstory.store import life, memories, projects, queue, sessions, summaries, turns
from backstory.store.file import backup
from backstory.store.file.connection import connect, transaction
from backstory.surfaces.cli import install

SIZES = (0, 10_000, 100_000)
SESSION = 250  # memories in one: 100,000 are 400 sessions, each with a summary
OBSERVED = 5  # observations a session: 2,000 at 100,000 memories
PROMPTS = 15  # each begins a turn
ANSWER = 5  # sentences of one
SUPERSEDED = 0.1  # of the observations
PAST_MS = 180 * 24 * 3600 * 1000
FILES = 200
CHANGED = 40  # of the files, since
LIMIT_MS = 150.0
WARM_UP = 2  # rounds: compiled files, the store, the page cache
START, COMPACT = "start", "compact"


@dataclass(frozen=True, slots=True)
class Row:
    case: str
    memories: int | None
    p50_ms: float
    p95_ms: float
    over_python_ms: float  # of the p50 above a bare Python's


@dataclass(frozen=True, slots=True)
class Store:
    size: int
    home: str
    project: str
    last_session: str | None

    def payload(self, source: str, session_id: str) -> bytes:
        given = {
            "session_id": session_id,
            "transcript_path": "",
            "cwd": self.project,
            "hook_event_name": "SessionStart",
            "source": source,
        }
        return json.dumps(given).encode()


def main() -> int:
    options = _options()
    own = tempfile.TemporaryDirectory(prefix="backstory-bench-", dir=options.dir, ignore_cleanup_errors=True)
    with own as folder, Unchanged():
        python = os.path.realpath(sys.executable)
        hook = _plugin(os.path.join(folder, "plugin"), python)
        stores = [_copy(_kept(size, options), folder) for size in options.sizes]
        weights = {store.size: _check(store, hook) for store in stores}
        times = _measure(stores, hook, python, options.samples)
    rows = _rows(times)
    at_most = [row for row in rows if row.memories == max(options.sizes)]
    budgets = [
        Budget(f"{row.case}, {row.memories:,} memories", "below", LIMIT_MS, row.p50_ms, "ms")
        for row in at_most
    ]
    figures = {
        "samples": options.samples,
        "brief_characters": weights,
        "rows": [asdict(row) for row in rows],
    }
    return report.tell(
        "brief_latency",
        options,
        figures,
        budgets,
        lambda console: _show(console, rows, weights, options.samples),
    )


def _options() -> argparse.Namespace:
    parser = report.options(__doc__)
    parser.add_argument("--sizes", metavar="N,N", help="memories in the stores [0,10000,100000]")
    parser.add_argument("--samples", type=int, default=60, help="of each case [60]")
    parser.add_argument("--fresh", action="store_true", help="fill the stores anew")
    parser.add_argument("--dir", help="where the stores are [the system's temporary folder]")
    options = parser.parse_args()
    given = options.sizes.split(",") if options.sizes else SIZES
    options.sizes = tuple(int(size) for size in given)
    return options


# --- a store to start in ------------------------------------------------------------------------------------


def _kept(size: int, options: argparse.Namespace) -> Store:
    home, project, told = report.keep("brief", size, options, _fill)
    return Store(size, home, project, told["last_session"])


def _copy(kept: Store, folder: str) -> Store:
    """What the hooks write must not stay in a kept store. The day's backup is there already: otherwise the
    first hook would have one made, and whoever makes it is busy beside the others."""
    home = os.path.join(folder, f"home-{kept.size}")
    shutil.copytree(kept.home, home)
    if kept.size:
        backup.make(home, int(time.time() * 1000))
    return Store(kept.size, home, kept.project, kept.last_session)


def _fill(size: int, home: str, project: str) -> dict[str, Any]:
    os.makedirs(home)
    files = _work_tree(project)
    if not size:
        return {"last_session": None}
    generator = random.Random(size)  # noqa: S311  the same memories in every run
    texts = _texts(_sentences(min(size * 60, 3_000_000)), generator)
    with closing(connect(paths.database(home))) as db:
        now = int(time.time() * 1000)
        place = paths.place(project)
        with transaction(db):
            project_id = projects.ensure(db, place, now - PAST_MS)
        numbers = iter(range(0, size, SESSION))
        while some := list(islice(numbers, max(1, BATCH // SESSION))):
            with transaction(db):
                for number in some:
                    at = now - PAST_MS + PAST_MS * number // size
                    count = min(SESSION, size - number)
                    last = f"bench-{number}"
                    _session(db, last, count, at, project_id, place, project, files, texts, generator)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for name in files[:CHANGED]:
        with open(os.path.join(project, name), "a", encoding="utf-8") as file:
            file.write("# and then it was changed\n")
    return {"last_session": last}


def _work_tree(project: str) -> list[str]:
    """A folder under git as backstory sees it, and its files."""
    os.makedirs(os.path.join(project, ".git", "refs", "heads"))
    with open(os.path.join(project, ".git", "HEAD"), "w", encoding="utf-8") as file:
        file.write("ref: refs/heads/main\n")
    os.makedirs(os.path.join(project, "src"))
    names = [f"src/module_{number}.py" for number in range(FILES)]
    for name in names:
        with open(os.path.join(project, name), "w", encoding="utf-8") as file:
            file.write(f"# {name}\n" * 400)
        os.utime(os.path.join(project, name), (0, 0))  # older than any memory
    return names


def _session(
    db: Any,
    session_id: str,
    count: int,
    at: int,
    project_id: str,
    place: paths.Place,
    project: str,
    files: list[str],
    texts: Iterator[str],
    generator: random.Random,
) -> None:
    """A session: prompts, tool uses, what was learned of them, and what it came to."""
    place.branch = generator.choice(("main", "main", "main", "feature/export", "fix/login"))
    sessions.start(db, session_id, project_id, project, place, at)

    def add(kind: str, sector: str, at: int, content: str, **rest: Any) -> str:
        tier = "session" if kind == "tool" else "project"
        return memories.add(
            db,
            project_id=project_id,
            session_id=session_id,
            kind=kind,
            sector=sector,
            tier=tier,
            content=content,
            now=at,
            **rest,
        )

    observed: list[str] = []
    for event in range(count - OBSERVED - 1):
        when, text, file = at + event * 1_000, next(texts), generator.choice(files)
        path = os.path.join(project, file)
        if event % (SESSION // PROMPTS) == 0:
            _turn(db, session_id, project_id, when, place.branch, text, texts, generator.sample(files, 3))
        elif event % 5 == 1:
            told = f"Tool: Edit\nEdited file: {path}"
            given = {"path": path, "old": text, "new": text}
            trace = add("tool", "episodic", when, told, importance=0.4, files=[path], action="edit")
            queue.put(db, session_id, "Edit", json.dumps(given), '{"path": "x"}', when, trace, "edit")
        else:
            told = f"Tool: Bash\nCommand: pytest {file}\nOutput: {text}"
            add("tool", "episodic", when, told, importance=0.3)
    over = at + count * 1_000
    for _ in range(min(OBSERVED, count - 1)):
        named = generator.sample(files, 2)
        observed.append(
            add(
                generator.choice((*OBSERVATIONS, "note")),
                generator.choice(("semantic", "procedural", "emotional")),
                over,
                next(texts)[:300],
                title=next(texts)[:60],
                importance=generator.choice((0.5, 0.6, 0.7)),
                files=named,
                hashes=[blob_id(os.path.join(project, name)) for name in named],
            )
        )
    for old in observed[1:]:
        if generator.random() < SUPERSEDED:
            life.supersede(db, old, observed[0], session_id, over, "rule")
    summary = Summary(
        request=next(texts)[:120],
        investigated=next(texts)[:200],
        learned=next(texts)[:200],
        completed=next(texts)[:200],
        next_steps=next(texts)[:150],
        files_read=(),
        files_edited=tuple(generator.sample(files, 3)),
        notes="",
    )
    memory_id = add("summary", "reflective", over, f"Session Summary:\n{summary}", importance=0.7)
    summaries.put(db, session_id, project_id, summary, "local", memory_id, over)
    queue.done(db, [item.id for item in queue.claim(db, session_id, over, "lease")], "local", over)
    sessions.touch(db, session_id, over)
    sessions.end(db, session_id, over)


def _turn(
    db: Any,
    session_id: str,
    project_id: str,
    at: int,
    branch: str | None,
    asked: str,
    texts: Iterator[str],
    files: list[str],
) -> None:
    """One with an answer of some paragraphs, as they are."""
    sessions.keep_prompt(db, session_id, asked, at)
    turn = Turn(session_id, at)
    turn.prompts, turn.branch, turn.state = [[asked, TYPED]], branch, COMPLETE
    turn.answer = "\n\n".join(islice(texts, ANSWER))
    turn.edited, turn.read = files, files
    turn.commits = [["1a2b3c4d", asked[:60], files]]
    turns.save(db, turn, project_id)


# --- measuring ----------------------------------------------------------------------------------------------


def _plugin(root: str, python: str) -> str:
    """hook.sh of a plugin laid out for this run, with an interpreter that is no shim."""
    install.lay_out(root)
    with open(os.path.join(root, "interpreter"), "w", encoding="utf-8") as file:
        file.write(python + "\n")
    return os.path.join(root, "src", "backstory", "plugin", "hooks", "hook.sh")


def _env(store: Store) -> dict[str, str]:
    """Without a synthesizer, or the hook would start a worker that nobody waits for."""
    home = os.path.dirname(store.home)
    return {
        "PATH": os.environ["PATH"],
        "HOME": home,
        "BACKSTORY_HOME": store.home,
        "BACKSTORY_SYNTHESIZER": "off",
        "BACKSTORY_WORKER_IDLE_SECONDS": "0",  # a first backup is due in a new store, and is waited for
    }


def _check(store: Store, hook: str) -> int:
    """How many characters the brief has. A fast hook that says nothing would be no feat."""
    done = subprocess.run(
        ["sh", hook, "start"],
        input=store.payload("startup", "bench-check"),
        env=_env(store),
        capture_output=True,
        timeout=60,
        check=True,
    )
    told = str(json.loads(done.stdout).get("hookSpecificOutput", {}).get("additionalContext", ""))
    if bool(store.size) != told.startswith("<backstory "):
        raise SystemExit(f"with {store.size:,} memories the hook printed {done.stdout[:200]!r}")
    return len(told)


def _measure(
    stores: list[Store], hook: str, python: str, samples: int
) -> dict[tuple[str, int | None], _Times]:
    """By case and memories."""
    env = _env(stores[0])
    payload = stores[0].payload("startup", "bench")
    order: list[tuple[Case, Store | None]] = [
        (Case(BASELINE, ["sh", "-c", "cat >/dev/null"], env), None),
        (Case(BARE_PYTHON, [python, "-I", "-S", "-c", "pass"], env), None),
    ]
    for store in stores:
        order.append((Case(START, ["sh", hook, "start"], _env(store), speaks=None), store))
        if store.last_session:
            order.append((Case(COMPACT, ["sh", hook, "start"], _env(store), speaks=None), store))
    times = {(case.name, where.size if where else None): _Times() for case, where in order}
    shuffle = random.Random(0)  # noqa: S311 - the same order in every run
    for sample in range(-WARM_UP, samples):
        shuffle.shuffle(order)
        for case, where in order:
            given = payload
            if where and case.name == COMPACT:
                given = where.payload("compact", where.last_session or "")
            elif where:
                given = where.payload("startup", f"start-{sample}")
            exited, _ = _run(case, given)
            if sample >= 0:
                times[case.name, where.size if where else None].exited.append(exited)
    return times


def _rows(times: dict[tuple[str, int | None], _Times]) -> list[Row]:
    python = statistics.median(times[BARE_PYTHON, None].exited)
    rows = []
    for (case, size), found in times.items():
        p50, p95 = report.middle(found.exited)
        rows.append(Row(case, size, p50, p95, round(p50 - python, 2)))
    return sorted(rows, key=lambda row: (-1 if row.memories is None else row.memories, row.case))


def _show(console: Console, rows: list[Row], weights: dict[int, int], samples: int) -> None:
    table = Table("case", "memories", "brief, characters", "p50 ms", "p95 ms", "ms above bare Python")
    for row in rows:
        size = "" if row.memories is None else f"{row.memories:,}"
        weight = f"{weights[row.memories]:,}" if row.case == START and row.memories is not None else ""
        above = f"{row.over_python_ms:.2f}" if row.memories is not None else ""
        table.add_row(row.case, size, weight, f"{row.p50_ms:.2f}", f"{row.p95_ms:.2f}", above)
    table.caption = f"{samples} samples each, interleaved"
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
