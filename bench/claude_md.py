"""What `backstory init` finds out about real projects, and how long init and sync take on a large one.

The projects are well-known packages of five languages, fetched by this script and never committed. What a
careful reader finds in each was written down by hand, before there was anything to detect it, in
`init_expected/`: languages, frameworks, package managers, commands, workspaces, subtrees and patterns, a fact
a line. `backstory init --dry-run --json` is run on each as a user would, and its facts are compared; but for
commands and subtrees, which were written down for every script that a manifest has: what a developer runs and
which folders are worth a file, is judged by readers (newcomer.py).

Then a git repository of 10,000 files is made, and init and sync (after 20 changes) are timed as whole
processes, beside bare Python and beside reading every file once.
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
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import real_packages
import report
from report import Budget
from rich.console import Console
from rich.table import Table

EXPECTED = Path(__file__).parent / "init_expected"
PRECISION, RECALL = 0.9, 0.8
FILES, CHANGED = 10_000, 20
COMMITS = 100  # fewer in a short run, where they would take longer than what is measured
WARM_UP = 1  # rounds
INIT_SECONDS, SYNC_SECONDS = 3.0, 2.0
NOT_COMPARED = frozenset("install build run test one check lint format generate migrate docs subtree".split())
BARE_PYTHON, READING = "bare Python", "reading every file once"
INIT, SYNC, SYNC_ALL = "init", f"sync after {CHANGED} changes", f"sync --all after {CHANGED} changes"

SOURCES = {
    "py": """\
import os

import click

LIMIT_NUMBER = 10


class OrderServiceNUMBER:
    def load_order(self) -> str:
        return "order"
""",
    "ts": """\
import fs from 'node:fs';
import { thing } from 'thing';

export class OrderServiceNUMBER {
  loadOrder(): string {
    return 'order';
  }
}
""",
    "go": """\
package part

import "fmt"

type OrderServiceNUMBER struct{}

func LoadOrderNUMBER() {
\tfmt.Println("order")
}
""",
    "rs": """\
use std::fmt;

pub struct OrderServiceNUMBER;

pub fn load_order_NUMBER() -> usize {
    let total = 3;
    total
}
""",
    "java": """\
package part;

public class OrderServiceNUMBER {
    static final int MAX_ORDERS = 3;

    String loadOrder() {
        return "order";
    }
}
""",
}


@dataclass(frozen=True, slots=True)
class Score:
    package: str
    expected: int
    found: int
    right: int
    missing: tuple[str, ...]
    wrong: tuple[str, ...]
    seconds: float

    @property
    def precision(self) -> float:
        return self.right / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        return self.right / self.expected if self.expected else 1.0


def main() -> int:
    given = _options()
    figures: dict[str, Any] = {}
    budgets: list[Budget] = []
    scores: list[Score] = []
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="backstory-bench-") as folder:
        if not given.speed_only:
            scores = _scores(given, Path(folder))
            figures |= _told(scores)
            budgets += [
                Budget("precision of init's facts", "at least", PRECISION, figures["precision"]),
                Budget("recall of init's facts", "at least", RECALL, figures["recall"]),
            ]
        if not given.quality_only:
            times = _times(Path(folder), given.files, given.rounds)
            p50 = {name: round(statistics.median(values), 2) for name, values in times.items()}
            figures |= {"files": given.files, "rounds": given.rounds, "p50_seconds": p50}
            budgets += [
                Budget(f"init on {given.files:,} files", "below", INIT_SECONDS, p50[INIT], "s"),
                Budget(SYNC, "below", SYNC_SECONDS, p50[SYNC], "s"),
                Budget(SYNC_ALL, "below", SYNC_SECONDS, p50[SYNC_ALL], "s"),
            ]
    return report.tell(
        "claude_md", given, figures, budgets, lambda console: _show(console, scores, times, given.verbose)
    )


def _options() -> argparse.Namespace:
    parser = report.options(__doc__)
    parser.add_argument("packages", nargs="*", help="only these of init_expected/  [all]")
    parser.add_argument("--dir", help="where fetched packages are kept  [the temporary folder]")
    parser.add_argument("--verbose", action="store_true", help="name every fact that is missing or wrong")
    parser.add_argument("--files", type=int, default=FILES, help=f"of the large project  [{FILES}]")
    parser.add_argument("--rounds", type=int, default=5, help="of init and sync  [5]")
    parser.add_argument("--unseen", action="store_true", help="packages that no detector was tuned for")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--quality-only", action="store_true")
    which.add_argument("--speed-only", action="store_true")
    return parser.parse_args()


# What init finds.


def _scores(given: argparse.Namespace, folder: Path) -> list[Score]:
    kept = Path(given.dir or os.path.join(tempfile.gettempdir(), f"backstory-bench-packages-{os.getuid()}"))
    scores = []
    for path in sorted((EXPECTED / "unseen" if given.unseen else EXPECTED).glob("*.json")):
        if given.packages and path.stem not in given.packages:
            continue
        expected = json.loads(path.read_text("utf-8"))
        fetched = real_packages.fetch(expected, kept)
        # Away from whatever repository the folder of fetched packages may be in.
        root = folder / "packages" / path.stem / fetched.name
        shutil.copytree(fetched, root, symlinks=True)
        began = time.perf_counter()
        told = _backstory(folder / "home", root, "init", "--dry-run", "--json", "--offline")
        scores.append(_score(path.stem, expected["facts"], facts(told), time.perf_counter() - began))
    return scores


def facts(told: dict[str, Any]) -> list[str]:
    """What init found out, a fact a line."""
    survey = told["survey"]
    found = [f"language: {name}" for name, _ in survey["languages"]]
    found += [f"framework: {name}" for name in survey["frameworks"]]
    found += [f"package manager: {name}" for name in survey["managers"]]
    found += [f"workspace: {path}" for path in survey["workspaces"]]
    return found + [_fact(pattern) for pattern in told["pattern_list"]]


def _fact(pattern: dict[str, Any]) -> str:
    named = {"naming": "naming ", "test": "tests ", "architecture": "architecture"}
    return f"{named.get(pattern['type'], '')}{pattern['subject']}: {pattern['value']}"


def _score(package: str, expected: Sequence[str], found: Sequence[str], seconds: float) -> Score:
    wanted = {fact for fact in expected if fact.partition(":")[0] not in NOT_COMPARED}
    got = set(found)
    return Score(
        package,
        len(wanted),
        len(got),
        len(wanted & got),
        tuple(sorted(wanted - got)),
        tuple(sorted(got - wanted)),
        round(seconds, 2),
    )


def _told(scores: Sequence[Score]) -> dict[str, Any]:
    right = sum(score.right for score in scores)
    return {
        "packages": [asdict(score) for score in scores],
        "facts_expected": sum(score.expected for score in scores),
        "facts_found": sum(score.found for score in scores),
        "facts_right": right,
        "precision": round(right / max(1, sum(score.found for score in scores)), 3),
        "recall": round(right / max(1, sum(score.expected for score in scores)), 3),
    }


# How long it takes.


def _times(folder: Path, files: int, rounds: int) -> dict[str, list[float]]:
    project = folder / "large"
    _make_project(project, files)
    times: dict[str, list[float]] = {name: [] for name in (BARE_PYTHON, READING, INIT, SYNC, SYNC_ALL)}
    chosen = random.Random(7)  # noqa: S311
    for turn in range(-WARM_UP, rounds):
        home = folder / f"home-{turn}"
        for leftover in ("CLAUDE.md", ".claude"):
            _remove(project / leftover)
        for found in project.rglob("CLAUDE.md"):
            found.unlink()
        measured = {
            BARE_PYTHON: _timed(subprocess.run, [sys.executable, "-I", "-S", "-c", "pass"], check=True),
            READING: _timed(_read_all, project),
            INIT: _timed(_backstory, home, project, "init", "--yes", "--json", "--offline"),
        }
        for name, options in ((SYNC, ()), (SYNC_ALL, ("--all",))):
            _edit(project, chosen, turn)
            measured[name] = _timed(_backstory, home, project, "sync", "--yes", "--json", *options)
        if turn >= 0:
            for name, seconds in measured.items():
                times[name].append(seconds)
    return times


def _make_project(project: Path, files: int) -> None:
    """Python, TypeScript, Go, Rust and Java in folders of fifty, with at most COMMITS commits."""
    project.mkdir()
    kinds = list(SOURCES)
    for number in range(files - 3):
        kind = kinds[number % len(kinds)]
        folder = project / "src" / f"part_{number // 50:03}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{_name(kind, number)}.{kind}").write_text(_source(kind, number), "utf-8")
    (project / "package.json").write_text(
        json.dumps({"name": "large", "scripts": {"build": "tsc", "test": "vitest"}})
    )
    (project / "pyproject.toml").write_text('[project]\nname = "large"\n[tool.pytest.ini_options]\n')
    (project / ".gitignore").write_text("node_modules/\n*.log\n")
    git = ("git", "-c", "user.name=bench", "-c", "user.email=bench@example.com", "-C", str(project))
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "feat: begin"], check=True)
    for number in range(min(COMMITS, files)):
        for at, path in enumerate(sorted((project / "src" / "part_000").iterdir())):
            if at % 5 == number % 5:
                with path.open("a") as file:
                    file.write("\n")
        subprocess.run([*git, "commit", "-qam", f"fix: number {number} of many"], check=True)


def _name(kind: str, number: int) -> str:
    return f"OrderService{number}" if kind == "java" else f"order_service_{number}"


def _source(kind: str, number: int) -> str:
    return SOURCES[kind].replace("NUMBER", str(number)) + _padding(kind, number)


def _padding(kind: str, number: int) -> str:
    """Real files are longer than a screen."""
    sign = "#" if kind == "py" else "//"
    return "".join(f"{sign} what step {line} of {number} is for\n" for line in range(40))


def _edit(project: Path, chosen: random.Random, turn: int) -> None:
    files = sorted(path for path in (project / "src").rglob("*.*") if path.name != "CLAUDE.md")
    for path in chosen.sample(files, CHANGED):
        with path.open("a", encoding="utf-8") as file:
            file.write(f"\n{'#' if path.suffix == '.py' else '//'} changed in turn {turn}\n")


def _read_all(project: Path) -> None:
    for folder, folders, names in os.walk(project):
        if ".git" in folders:
            folders.remove(".git")
        for name in names:
            Path(folder, name).read_bytes()


def _timed(call: Any, *given: Any, **options: Any) -> float:
    began = time.perf_counter()
    call(*given, **options)
    return time.perf_counter() - began


def _backstory(home: Path, project: Path, *arguments: str) -> dict[str, Any]:
    home.mkdir(parents=True, exist_ok=True)
    env = {"HOME": str(home), "PATH": os.environ["PATH"], "BACKSTORY_HOME": str(home / "data")}
    env["BACKSTORY_CLAUDE_MD_PRACTICES_URL"] = ""  # the network is measured by nobody
    command = [sys.executable, "-P", "-m", "backstory", *arguments]
    done = subprocess.run(command, cwd=project, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"backstory {' '.join(arguments)} failed in {project}:\n{done.stderr}")
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


# Telling it.


def _show(console: Console, scores: Sequence[Score], times: dict[str, list[float]], verbose: bool) -> None:
    if scores:
        table = Table("package", "expected", "found", "right", "precision", "recall", "seconds")
        for score in scores:
            table.add_row(
                score.package,
                str(score.expected),
                str(score.found),
                str(score.right),
                f"{score.precision:.2f}",
                f"{score.recall:.2f}",
                f"{score.seconds:.2f}",
            )
        console.print(table)
        console.print(_by_kind(scores))
    if verbose:
        for score in scores:
            for said, those in (("missing", score.missing), ("wrong", score.wrong)):
                for fact in those:
                    console.print(f"{score.package}: {said}: {fact}", highlight=False, markup=False)
    if times:
        table = Table("what", "p50 s", "worst s")
        for name, values in times.items():
            table.add_row(name, f"{statistics.median(values):.2f}", f"{max(values):.2f}")
        console.print(table)


def _by_kind(scores: Sequence[Score]) -> Table:
    missing = Counter(_kind(fact) for score in scores for fact in score.missing)
    wrong = Counter(_kind(fact) for score in scores for fact in score.wrong)
    table = Table("kind of fact", "missing", "wrong")
    for kind in sorted(missing | wrong):
        table.add_row(kind, str(missing[kind]), str(wrong[kind]))
    return table


def _kind(fact: str) -> str:
    head = fact.partition(":")[0]
    return head.split()[0] if head.split()[0] in ("naming", "imports", "tests", "quotes") else head


if __name__ == "__main__":
    sys.exit(main())
