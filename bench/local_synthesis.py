"""Regression tests of the synthesizer that needs no model, on scripted sessions of the real Claude Code.

Each session of bench/sessions gets a data folder of its own. Its payloads go into the spool as hooks leave
them, and after every Stop the real `backstory worker` runs, with the local synthesizer, as it does in life.
Then what is in the store is held against `name.expected.json`: the observations that should be there, and
words that the fields of the summary should have. Nothing may be missing, and nothing be there besides.

This says whether what worked still works. How good it is, only sessions of strangers tell: real_sessions.py.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import report
from report import Budget
from rich.console import Console
from rich.table import Table

from backstory import paths
from backstory.memory.kinds import OBSERVATIONS
from backstory.model import Memory, Summary
from backstory.store import memories, queue, summaries
from backstory.surfaces.opened import open_drained

HERE = Path(__file__).resolve().parent / "sessions"
AT_ONCE = 2  # sessions
PATIENCE = 120  # seconds for one run of the worker

Payload = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    session: str
    found: int
    missing: list[str]
    superfluous: list[str]
    summary_lacks: list[str]
    slowest_s: float  # run of the worker


def main() -> int:
    options = _options()
    files = sorted(HERE.glob("*.jsonl"))
    if options.names:
        files = [file for file in files if file.stem in options.names]
    if not files:
        raise SystemExit(
            f"no such session; there are: {' '.join(file.stem for file in HERE.glob('*.jsonl'))}"
        )
    with ThreadPoolExecutor(AT_ONCE) as pool:
        rows = list(pool.map(lambda file: row_of(file, at_once=options.at_once), files))
    figures = {
        "fed": "at once" if options.at_once else "Stop by Stop",
        "sessions": [asdict(row) for row in rows],
    }
    budgets = [
        Budget(name, "at most", 0, sum(len(getattr(row, name)) for row in rows))
        for name in ("missing", "superfluous", "summary_lacks")
    ]
    return report.tell("local_synthesis", options, figures, budgets, lambda console: _show(console, rows))


def _options() -> argparse.Namespace:
    parser = report.options(__doc__)
    parser.add_argument("names", nargs="*", metavar="SESSION", help="only these [all]")
    parser.add_argument("--at-once", action="store_true", help="one run of the worker for a whole session")
    return parser.parse_args()


def row_of(file: Path, *, at_once: bool) -> Row:
    wanted = json.loads(file.with_suffix(".expected.json").read_text(encoding="utf-8"))
    payloads = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    with tempfile.TemporaryDirectory(prefix="backstory-bench-") as home:
        slowest = _replay(home, payloads, at_once=at_once)
        found, summary = _remembered(home, payloads[0]["session_id"])
    missing, superfluous = compared(wanted["observations"], found)
    lacks = lacking(wanted.get("summary", {}), summary)
    return Row(file.stem, len(found), missing, superfluous, lacks, round(slowest, 2))


def compared(wanted: Sequence[Payload], found: Sequence[Memory]) -> tuple[list[str], list[str]]:
    """What is missing and what is superfluous; each observation stands for one that is wanted."""
    missing, left = [], list(found)
    for one in wanted:
        right = next((memory for memory in left if _is(memory, one)), None)
        if right is None:
            missing.append(str(one))
        else:
            left.remove(right)
    return missing, [f"{memory.kind}: {memory.title} | {memory.content}" for memory in left]


def _is(memory: Memory, wanted: Payload) -> bool:
    said = f"{memory.title}\n{memory.content}".lower()
    return (
        memory.kind == wanted["kind"]
        and all(any(word.lower() in said for word in group) for group in wanted["says"])
        and all(any(f"/{file}".endswith(f"/{end}") for file in memory.files) for end in wanted["files"])
    )


def lacking(wanted: dict[str, list[list[str]]], summary: Summary | None) -> list[str]:
    """Fields of the summary that have none of the words of a group."""

    def says(name: str, group: Sequence[str]) -> bool:
        value = getattr(summary, name) if summary else ""
        said = (value if isinstance(value, str) else "\n".join(value)).lower()
        return any(word.lower() in said for word in group)

    return [
        f"{name}: {'/'.join(group)}"
        for name, groups in wanted.items()
        for group in groups
        if not says(name, group)
    ]


# --- living it again ----------------------------------------------------------------------------------------


def _replay(home: str, payloads: Sequence[Payload], *, at_once: bool) -> float:
    """Feed a session to the worker, as if it had ended just now. Returns the longest run's seconds."""
    spool = Path(paths.spool(home))
    for folder in ("tmp", "new", "failed"):
        (spool / folder).mkdir(parents=True)
    # A session of last spring would count as interrupted between its turns.
    shift = int(time.time() * 1000) - payloads[-1]["at"]
    slowest = 0.0
    for turn in [list(enumerate(payloads))] if at_once else _turns(payloads):
        for number, payload in turn:
            kept = {name: value for name, value in payload.items() if name != "at"}
            at_ns = (payload["at"] + shift) * 1_000_000
            path = spool / "tmp" / f"{number:05}"
            path.write_text(json.dumps(kept), encoding="utf-8")
            os.utime(path, ns=(at_ns, at_ns))
            path.rename(spool / "new" / path.name)
        started = time.perf_counter()
        _work(home)
        slowest = max(slowest, time.perf_counter() - started)
    if left := [path for folder in ("new", "failed") for path in (spool / folder).iterdir()]:
        raise SystemExit(f"{len(left)} payloads were not stored: {', '.join(path.name for path in left)}")
    return slowest


def _turns(payloads: Sequence[Payload]) -> list[list[tuple[int, Payload]]]:
    """(number, payload) up to each Stop; what comes after the last one is a turn as well."""
    turns: list[list[tuple[int, Payload]]] = [[]]
    for number, payload in enumerate(payloads):
        turns[-1].append((number, payload))
        if payload["hook_event_name"] == "Stop":
            turns.append([])
    return [turn for turn in turns if turn]


def _work(home: str) -> None:
    env = {
        "PATH": os.defpath,  # no claude on it: nothing here may ask a model
        "HOME": home,
        "LANG": "C.UTF-8",
        "BACKSTORY_HOME": home,
        "BACKSTORY_SYNTHESIZER": "local",
        "BACKSTORY_WORKER_IDLE_SECONDS": "0",
    }
    done = subprocess.run(
        [sys.executable, "-m", "backstory", "worker"],
        cwd=home,
        env=env,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"backstory worker ended with {done.returncode}: {done.stderr.strip()[-2000:]}")


def _remembered(home: str, session_id: str) -> tuple[list[Memory], Summary | None]:
    now = int(time.time() * 1000)
    with open_drained(home, now=now) as db:
        waiting, _ = queue.waiting(db)
        skipped = queue.skipped(db)
        if waiting or skipped:
            raise SystemExit(f"{session_id}: {waiting} events were never observed; given up: {skipped}")
        made = memories.of_session(db, session_id, now)
        kept = [one for one in made if one.kind in OBSERVATIONS and one.valid_until is None]
        return kept, summaries.get(db, session_id)


def _show(console: Console, rows: Sequence[Row]) -> None:
    table = Table("session", "found", "missing", "superfluous", "summary lacks")
    table.columns[0].no_wrap = True
    for row in rows:
        wrong = (row.missing, row.superfluous, row.summary_lacks)
        table.add_row(row.session, str(row.found), *(str(len(lines)) for lines in wrong))
    table.caption = f"slowest run of the worker: {max(row.slowest_s for row in rows):.1f} s"
    console.print(table)
    for row in rows:
        for line in (*row.missing, *row.superfluous, *row.summary_lacks):
            console.print(f"{row.session}: {line}", markup=False, highlight=False)


if __name__ == "__main__":
    sys.exit(main())
