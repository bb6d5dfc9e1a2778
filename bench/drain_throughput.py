"""How many events a second go from the spool into the store, durably.

A deterministic mix of tool uses on real source code, prompts and turns is written into a spool, then drained
as in production (synchronous=FULL, one transaction a batch). Beside it, in the same run and on the same disk,
the least that could be done at all: read each file, json.loads, one INSERT an event, one transaction a batch.
The two take turns, so that whatever else the machine does hits both.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import random
import sqlite3
import sys
import sysconfig
import tempfile
import time
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import report
from report import Budget
from rich.console import Console
from rich.table import Table

from backstory.intake.drain import BATCH_EVENTS, drain
from backstory.store.file.connection import connect

ROUNDS = 5
BUDGET = 1_000  # events a second
SESSION = 60  # events in one
# tool or event: how often in a hundred. Roughly what a day of work looks like.
MIX = {
    "Read": 32,
    "Bash": 27,
    "Edit": 15,
    "Grep": 8,
    "Write": 5,
    "Glob": 3,
    "mcp__plugin_tracker_issues__list": 3,
    "PostToolUseFailure": 3,
    "UserPromptSubmit": 2,
    "Stop": 2,
}
WORDS = (
    "the session token expires before refresh so login fails with status 401 in middleware while "
    "parser returns None for empty input cache invalidation order schema migration index query "
    "def class import return async await self config path user error test build deploy retry queue"
).split()


@dataclass(frozen=True, slots=True)
class Row:
    case: str
    events_per_second: int
    megabytes_per_second: float


def main() -> int:
    options = _options()
    generator = random.Random(0)  # noqa: S311 - the same events in every run
    seconds = {"drain": 0.0, "bare inserts": 0.0}
    stored = size = number = 0
    with tempfile.TemporaryDirectory(prefix="backstory-bench-", dir=options.dir) as folder:
        spool_folder = os.path.join(folder, "spool")
        os.makedirs(os.path.join(spool_folder, "new"))
        db = connect(os.path.join(folder, "backstory.db"))
        bare = _bare(os.path.join(folder, "bare.db"))
        for round_number in range(ROUNDS):
            count = options.events * (round_number + 1) // ROUNDS - number
            size += _fill(spool_folder, folder, generator, number, count)
            number += count
            # The drain removes the files, so the other one goes first; nothing of it is left to profit from
            # but the page cache, and that the files are in already.
            seconds["bare inserts"] += _insert(bare, spool_folder)
            started = time.perf_counter()
            done = drain(db, spool_folder, now=int(time.time() * 1000))
            seconds["drain"] += time.perf_counter() - started
            stored += done.stored
        db.close()
        bare.close()
    if stored != options.events:
        raise SystemExit(f"{options.events} events were spooled, {stored} stored: the figures mean nothing")
    return _report(options, seconds, stored, size)


def _options() -> argparse.Namespace:
    parser = report.options(__doc__)
    parser.add_argument("--events", type=int, default=5_000, help="how many [5000]")
    parser.add_argument("--dir", help="a folder on the disk to measure [the system's temporary folder]")
    return parser.parse_args()


def _fill(spool_folder: str, cwd: str, generator: random.Random, first: int, count: int) -> int:
    size = 0
    kinds = generator.choices(list(MIX), list(MIX.values()), k=count)
    for number, kind in enumerate(kinds, first):
        raw = json.dumps(_event(kind, number, cwd, generator)).encode()
        with open(os.path.join(spool_folder, "new", f"{number:08}"), "wb") as file:
            file.write(raw)
        size += len(raw)
    return size


def _event(kind: str, number: int, cwd: str, generator: random.Random) -> dict[str, Any]:
    payload: dict[str, Any] = {
        "session_id": f"bench-{number // SESSION}",
        "transcript_path": f"{cwd}/.claude/projects/bench/bench-{number // SESSION}.jsonl",
        "cwd": cwd,
        "permission_mode": "default",
        "hook_event_name": "PostToolUse",
    }
    if kind == "UserPromptSubmit":
        return {**payload, "hook_event_name": kind, "prompt": _text(generator, 30), "prompt_id": f"p{number}"}
    if kind == "Stop":
        return {**payload, "hook_event_name": kind, "last_assistant_message": _text(generator, 80)}
    payload["tool_use_id"] = f"toolu_{number}"
    path = f"{cwd}/src/{generator.choice(WORDS)}/{generator.choice(WORDS)}.py"
    if kind == "PostToolUseFailure":
        payload |= {"hook_event_name": kind, "tool_name": "Bash", "error": _text(generator, 60)}
        return {**payload, "tool_input": {"command": f"pytest {path}"}}
    given, result = _tool_use(kind, path, generator)
    return {**payload, "tool_name": kind, "tool_input": given, "tool_response": result}


def _tool_use(kind: str, path: str, generator: random.Random) -> tuple[dict[str, Any], Any]:
    """(input, response) in the client's shapes."""
    length = min(8_000, int(generator.lognormvariate(4.5, 1.2)))  # words: 90 in the middle, rarely thousands
    text = _source(generator, length * 6)
    given: dict[str, Any] = {"file_path": path}
    result: Any
    match kind:
        case "Read":
            file = {"filePath": path, "content": text, "numLines": length // 8, "startLine": 1}
            result = {"type": "text", "file": file}
        case "Write":
            given["content"] = text
            result = {"type": "create", "filePath": path, "content": text, "structuredPatch": []}
        case "Edit":
            given |= {"old_string": _source(generator, 400), "new_string": _source(generator, 500)}
            result = {
                "filePath": path,
                "oldString": given["old_string"],
                "newString": given["new_string"],
                "originalFile": text,
            }
        case "Bash":
            given = {"command": f"make {_text(generator, 4)}", "description": _text(generator, 5)}
            result = {"stdout": text, "stderr": "", "interrupted": False}
        case "Grep" | "Glob":
            given = {"pattern": generator.choice(WORDS), "path": os.path.dirname(path)}
            found = [f"src/{generator.choice(WORDS)}.py" for _ in range(length % 30)]
            result = {"filenames": found, "numFiles": len(found)}
        case _:
            given = {"query": _text(generator, 6)}
            result = [{"type": "text", "text": text}]
    return given, result


@cache
def _sources() -> str:
    """Real code, since redaction looks at every word of it: the standard library, network modules and all."""
    folder = sysconfig.get_path("stdlib")
    names = ["http", "urllib", "asyncio", "email", "unittest", "json", "importlib"]
    paths = [path for name in names for path in sorted(glob.glob(os.path.join(folder, name, "*.py")))]
    texts = []
    for path in [
        *paths,
        *(os.path.join(folder, f"{name}.py") for name in ("smtplib", "ftplib", "netrc", "ssl")),
    ]:
        with open(path, encoding="utf-8") as file:
            texts.append(file.read())
    return "\n".join(texts)


def _source(generator: random.Random, length: int) -> str:
    text = _sources()
    start = generator.randrange(len(text) - length)
    return text[start : start + length]


def _text(generator: random.Random, words: int) -> str:
    return " ".join(generator.choices(WORDS, k=words))


def _bare(path: str) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE events (key TEXT PRIMARY KEY, name TEXT, session_id TEXT, payload TEXT)")
    return db


def _insert(db: sqlite3.Connection, spool_folder: str) -> float:
    started = time.perf_counter()
    names = sorted(os.listdir(os.path.join(spool_folder, "new")))
    for first in range(0, len(names), BATCH_EVENTS):
        db.execute("BEGIN IMMEDIATE")
        for name in names[first : first + BATCH_EVENTS]:
            with open(os.path.join(spool_folder, "new", name), "rb") as file:
                raw = file.read()
            event = json.loads(raw)
            db.execute(
                "INSERT INTO events VALUES (?, ?, ?, ?)",
                (name, event["hook_event_name"], event["session_id"], raw.decode()),
            )
        db.execute("COMMIT")
    return time.perf_counter() - started


def _report(options: argparse.Namespace, seconds: dict[str, float], stored: int, size: int) -> int:
    rows = [
        Row(case, round(options.events / spent), round(size / 1e6 / spent, 1))
        for case, spent in seconds.items()
    ]
    rate = rows[0].events_per_second
    budget = Budget("drained, durable", "at least", BUDGET, rate, "events/s")
    figures = {
        "events": options.events,
        "stored": stored,
        "megabytes": round(size / 1e6, 1),
        "rows": [asdict(row) for row in rows],
        "ratio_to_bare_inserts": round(seconds["drain"] / seconds["bare inserts"], 2),
    }

    def show(console: Console) -> None:
        table = Table("case", "events/s", "MB/s", "time x bare")
        for row in rows:
            cost = seconds[row.case] / seconds["bare inserts"]
            table.add_row(
                row.case, f"{row.events_per_second:,}", f"{row.megabytes_per_second}", f"{cost:.2f}"
            )
        table.caption = f"{options.events:,} events, {size / 1e6:.1f} MB"
        console.print(table)

    return report.tell("drain_throughput", options, figures, [budget], show)


if __name__ == "__main__":
    sys.exit(main())
