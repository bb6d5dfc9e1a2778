"""What the benchmarks share: budgets, how figures are told, and stores that are filled once and kept."""

from __future__ import annotations

import argparse
import hashlib
import json
import operator
import os
import platform
import shutil
import sqlite3
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from backstory.store.file.connection import MIGRATIONS

HOLDS = {"below": operator.lt, "at most": operator.le, "at least": operator.ge}


@dataclass(frozen=True, slots=True)
class Budget:
    name: str
    bound: str  # one of HOLDS
    limit: float
    measured: float
    unit: str = ""

    @property
    def passed(self) -> bool:
        return bool(HOLDS[self.bound](self.measured, self.limit))


def options(about: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", metavar="FILE", help="write the figures there as JSON; - is stdout")
    return parser


def console(given: argparse.Namespace) -> Console:
    return Console(stderr=given.json == "-")


def tell(
    benchmark: str,
    given: argparse.Namespace,
    figures: dict[str, Any],
    budgets: Sequence[Budget],
    show: Callable[[Console], None],
) -> int:
    """As tables, as JSON or as both; the exit code says whether every budget was met."""
    report = {
        "benchmark": benchmark,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        **figures,
        "budgets": [
            {
                "name": budget.name,
                "bound": budget.bound,
                "limit": budget.limit,
                "measured": budget.measured,
                "unit": budget.unit,
                "passed": budget.passed,
            }
            for budget in budgets
        ],
    }
    if given.json == "-":
        print(json.dumps(report, indent=2))
    else:
        show(console(given))
        if budgets:
            _show_budgets(console(given), budgets)
        if given.json:
            with open(given.json, "w", encoding="utf-8") as file:
                json.dump(report, file, indent=2)
    return 0 if all(budget.passed for budget in budgets) else 1


def _show_budgets(console: Console, budgets: Sequence[Budget]) -> None:
    table = Table("budget", "limit", "measured", "")
    for budget in budgets:
        limit, measured = (
            f"{value:,.10g} {budget.unit}".rstrip() for value in (budget.limit, budget.measured)
        )
        verdict = "[green]met[/]" if budget.passed else "[red]missed[/]"
        table.add_row(budget.name, f"{budget.bound} {limit}", measured, verdict)
    console.print(table)


def middle(values: Sequence[float], digits: int = 2) -> tuple[float, float]:
    """The median and the 95th percentile."""
    ordered = sorted(values)
    p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    return round(statistics.median(ordered), digits), round(p95, digits)


def keep(
    name: str, size: int, given: argparse.Namespace, fill: Callable[[int, str, str], dict[str, Any]]
) -> tuple[str, str, dict[str, Any]]:
    """(home, project, what `fill` told) of a store of that size, filled now or by an earlier run."""
    above = given.dir or tempfile.gettempdir()
    folder = os.path.join(above, f"backstory-bench-{name}-{os.getuid()}-{_schema()}-{size}")
    home, project, note = (os.path.join(folder, part) for part in ("home", "project", "made.json"))
    if given.fresh or not os.path.exists(note):
        shutil.rmtree(folder, ignore_errors=True)
        console(given).print(f"filling a store with {size:,} memories ...", highlight=False)
        told = fill(size, home, project)
        with open(note, "w", encoding="utf-8") as file:
            json.dump(told, file)
    with open(note, encoding="utf-8") as file:
        return home, project, json.load(file)


def _schema() -> str:
    """Names what makes a store: one that was kept by another backstory is no use."""
    digest = hashlib.sha256()
    for name in sorted(os.listdir(MIGRATIONS)):
        with open(os.path.join(MIGRATIONS, name), "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()[:8]
