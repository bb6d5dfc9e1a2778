"""What the rules that need no model make of recorded sessions, against what a colleague would want to find.

Each session of bench/sessions gets a data folder of its own. Its payloads go into the spool as hooks leave
them, and after every Stop the real `backstory worker` runs, with the local synthesizer, as it does in life.
Then the observations in the store are held against those that `name.expected.json` asks for: an observation
is right where its kind agrees and it says all that is asked for, and it is right only once. Whatever else was
stored is superfluous.

precision: how many of the observations are right    recall: how many of those asked for are there

The rules were written with the sessions in bench/sessions in view, and later with those in held_out and in
unseen, one after the other; how each did before it was opened is in bench/README.md. Nobody who writes rules
has seen those in fresh.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
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
GROUPS = {"dev": "", "held out": "held_out", "unseen": "unseen", "fresh": "fresh"}  # and the folder of each
TARGETS = {"precision": 0.8, "recall": 0.6}
AT_ONCE = 2  # sessions
PATIENCE = 120  # seconds for one run of the worker

Payload = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Expected:
    """An observation that should be there: of one of these kinds, with a word out of each group."""

    kinds: tuple[str, ...]
    says: tuple[tuple[str, ...], ...]
    files: tuple[str, ...] = ()

    def __str__(self) -> str:
        words = ", ".join("/".join(group) for group in self.says)
        return f"{'/'.join(self.kinds)}: {words}{''.join(f' [{file}]' for file in self.files)}"


@dataclass(frozen=True, slots=True)
class Found:
    """An observation that is there."""

    kind: str
    title: str
    text: str
    files: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}: {self.title} | {' '.join(self.text.split())}"


@dataclass(frozen=True, slots=True)
class Score:
    name: str
    group: str
    expected: int
    found: int
    right: int
    needles: int  # words that the summary should have
    needles_there: int
    slowest_s: float  # run of the worker
    missed: list[str] = field(default_factory=list)
    superfluous: list[str] = field(default_factory=list)
    summary_lacks: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Row:
    case: str
    expected: int
    found: int
    right: int
    precision: float | None  # None: nothing was found
    recall: float | None  # None: nothing was asked for
    needles: int
    needles_there: int


def main() -> int:
    options = _options()
    files = [file for folder in GROUPS.values() for file in sorted((HERE / folder).glob("*.jsonl"))]
    if options.names:
        files = [file for file in files if file.stem in options.names]
    if not files:
        raise SystemExit(
            f"no such session; there are: {' '.join(file.stem for file in HERE.rglob('*.jsonl'))}"
        )
    with ThreadPoolExecutor(AT_ONCE) as pool:
        scores = list(pool.map(lambda file: score(file, at_once=options.at_once), files))
    opened = {"dev": True, "held out": options.held_out, "unseen": options.unseen, "fresh": options.fresh}
    scores = [one if opened[one.group] else _sealed(one) for one in scores]
    rows = _rows(scores)
    figures = {
        "fed": "at once" if options.at_once else "Stop by Stop",
        "sessions": [asdict(one) for one in scores],
        "rows": [asdict(row) for row in rows],
    }
    return report.tell(
        "local_synthesis",
        options,
        figures,
        _budgets(rows[-1]),
        lambda console: _show(console, scores, rows, verbose=options.verbose),
    )


def _options() -> argparse.Namespace:
    parser = report.options(__doc__)
    parser.add_argument("names", nargs="*", metavar="SESSION", help="only these [all]")
    parser.add_argument("--at-once", action="store_true", help="one run of the worker for a whole session")
    parser.add_argument(
        "--verbose", action="store_true", help="show what was missed and what was superfluous"
    )
    parser.add_argument(
        "--held-out",
        action="store_true",
        help="show that of the held-out sessions too",
    )
    parser.add_argument("--unseen", action="store_true", help="and that of the unseen ones")
    parser.add_argument(
        "--fresh", action="store_true", help="and that of the fresh ones; who has seen it may change no rule"
    )
    return parser.parse_args()


def score(file: Path, *, at_once: bool) -> Score:
    wanted = json.loads(file.with_suffix(".expected.json").read_text(encoding="utf-8"))
    payloads = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    with tempfile.TemporaryDirectory(prefix="backstory-bench-") as home:
        slowest = _replay(home, payloads, at_once=at_once)
        found, summary = _remembered(home, payloads[0]["session_id"])
    expected = [_expected(each) for each in wanted["observations"]]
    pairs = match(expected, found)
    needles = [(name, tuple(group)) for name, groups in wanted.get("summary", {}).items() for group in groups]
    lacks = [
        f"{name}: {'/'.join(group)}" for name, group in needles if not summary_says(summary, name, group)
    ]
    return Score(
        name=file.stem,
        group=next(group for group, folder in GROUPS.items() if file.parent == HERE / folder),
        expected=len(expected),
        found=len(found),
        right=len(pairs),
        needles=len(needles),
        needles_there=len(needles) - len(lacks),
        slowest_s=round(slowest, 2),
        missed=[str(each) for place, each in enumerate(expected) if place not in pairs],
        superfluous=[str(each) for place, each in enumerate(found) if place not in pairs.values()],
        summary_lacks=lacks,
    )


# --- judging ------------------------------------------------------------------------------------------------


def is_right(expected: Expected, found: Found) -> bool:
    said = f"{found.title}\n{found.text}".lower()
    return (
        found.kind in expected.kinds
        and all(any(word.lower() in said for word in group) for group in expected.says)
        and all(any(f"/{file}".endswith(f"/{end}") for file in found.files) for end in expected.files)
    )


def match(expected: Sequence[Expected], found: Sequence[Found]) -> dict[int, int]:
    """Which found observation stands for which expected one, by place; as many pairs as there can be."""
    taken: dict[int, int] = {}  # found: expected

    def assign(wanted: int, tried: set[int]) -> bool:
        for place, one in enumerate(found):
            if place not in tried and is_right(expected[wanted], one):
                tried.add(place)
                if place not in taken or assign(taken[place], tried):
                    taken[place] = wanted
                    return True
        return False

    for wanted in range(len(expected)):
        assign(wanted, set())
    return {wanted: place for place, wanted in taken.items()}


def summary_says(summary: Summary | None, name: str, group: Iterable[str]) -> bool:
    value = getattr(summary, name) if summary else ""
    said = (value if isinstance(value, str) else "\n".join(value)).lower()
    return any(word.lower() in said for word in group)


def _expected(given: dict[str, Any]) -> Expected:
    kinds = tuple(given["kinds"]) if "kinds" in given else (given["kind"],)
    if unknown := set(kinds) - set(OBSERVATIONS):
        raise SystemExit(f"no kind of observation: {', '.join(sorted(unknown))}")
    return Expected(kinds, tuple(tuple(group) for group in given["says"]), tuple(given.get("files", ())))


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


def _remembered(home: str, session_id: str) -> tuple[list[Found], Summary | None]:
    now = int(time.time() * 1000)
    with open_drained(home, now=now) as db:
        waiting, _ = queue.waiting(db)
        skipped = queue.skipped(db)
        if waiting or skipped:
            raise SystemExit(f"{session_id}: {waiting} events were never observed; given up: {skipped}")
        kept = [one for one in memories.of_session(db, session_id, now) if _counts(one)]
        return [Found(one.kind, one.title or "", one.content, one.files) for one in kept], summaries.get(
            db, session_id
        )


def _counts(memory: Memory) -> bool:
    return memory.kind in OBSERVATIONS and memory.valid_until is None


# --- reporting ----------------------------------------------------------------------------------------------


def _rows(scores: Sequence[Score]) -> list[Row]:
    """One a session, then the sums: of every group, those the rules were written for first, and of all."""
    sums = [(group, [one for one in scores if one.group == group]) for group in GROUPS]
    return [_row(one.name, [one]) for one in scores] + [
        _row(name, some) for name, some in (*sums, ("all", list(scores)))
    ]


def _row(case: str, scores: Sequence[Score]) -> Row:
    expected, found, right = (
        sum(getattr(one, name) for one in scores) for name in ("expected", "found", "right")
    )
    return Row(
        case,
        expected,
        found,
        right,
        round(right / found, 3) if found else None,
        round(right / expected, 3) if expected else None,
        sum(one.needles for one in scores),
        sum(one.needles_there for one in scores),
    )


def _sealed(score: Score) -> Score:
    return replace(score, missed=[], superfluous=[], summary_lacks=[])


def _budgets(together: Row) -> list[Budget]:
    """Where nothing was found there is no precision, and where nothing was asked for no recall."""
    measured = {"precision": together.precision, "recall": together.recall}
    return [
        Budget(name, "at least", TARGETS[name], value)
        for name, value in measured.items()
        if value is not None
    ]


def _show(console: Console, scores: Sequence[Score], rows: Sequence[Row], *, verbose: bool) -> None:
    table = Table("session", "asked", "found", "right", "prec.", "recall", "summary")
    table.columns[0].no_wrap = True
    sessions = len(scores)
    for place, row in enumerate(rows):
        shown = [f"{value:.2f}" if value is not None else "-" for value in (row.precision, row.recall)]
        counts = [str(row.expected), str(row.found), str(row.right)]
        if place == sessions:
            table.add_section()
        table.add_row(row.case, *counts, *shown, f"{row.needles_there}/{row.needles}")
    table.caption = f"slowest run of the worker: {max(one.slowest_s for one in scores):.1f} s"
    console.print(table)
    if verbose:
        for one in scores:
            _show_details(console, one)


def _show_details(console: Console, score: Score) -> None:
    parts = (
        ("missed", score.missed),
        ("superfluous", score.superfluous),
        ("summary lacks", score.summary_lacks),
    )
    if any(lines for _, lines in parts):
        console.print(f"\n[bold]{score.name}[/]")
    for name, lines in parts:
        for line in lines:
            console.print(f"  {name}: {line}", markup=False, highlight=False)


if __name__ == "__main__":
    sys.exit(main())
