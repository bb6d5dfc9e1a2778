"""Kills, load, nonsense and leftovers: what backstory loses, stores twice, trips over or leaves behind.

Kills: processes at work on the spool, the queue, notes, migrations, backups, CLAUDE.md and trees get SIGKILL
at any instant; a kill counts where it came amid the work. Acknowledged is what the process had said before:
a payload in spool/new, a printed id, a reply, a returned call. Load: 20 sessions at once. Fuzz: nonsense for
whatever reads what others wrote. Leftovers: what runs or listens after sessions of the real Claude Code.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import report
from report import Budget
from rich.console import Console
from rich.table import Table

from chaos import fuzz, kills, leftovers, load
from tests.conftest import LEAKING

KILLS, SECONDS, INPUTS, SESSIONS = 2_400, 60.0, 1_000_000, 10
WANTED = 2_000  # kills
AMID = 50  # per cent of the shots that must hit
HOOKS = 150  # starts a second
EVENTS = 950  # written a second, of the thousand that are wanted
SHORT = 0.002
PARTS = ("kills", "load", "fuzz", "leftovers")


def main() -> int:
    given = _options()
    tell = _teller(given)
    with tempfile.TemporaryDirectory(
        prefix="backstory-chaos-", dir=given.dir, ignore_cleanup_errors=True
    ) as place:
        folder = Path(os.path.realpath(place))
        figures: dict[str, Any] = {"scale": given.scale, "seed": given.seed}
        with _apart(folder):
            gc.freeze()  # so that forks leave the memory that they share alone
            if "kills" in given.parts:
                made = kills.run(folder, round(KILLS * given.scale), given.seed, tell)
                figures["kills"] = [asdict(row) for row in made]
            if "load" in given.parts:
                figures["load"] = [
                    asdict(row) for row in load.run(folder, max(0.5, SECONDS * given.scale), tell)
                ]
            if "fuzz" in given.parts:
                inputs = round(INPUTS * given.scale)
                figures["fuzz"] = [asdict(row) for row in fuzz.run(folder, inputs, given.seed, tell)]
            if "leftovers" in given.parts and (sessions := round(SESSIONS * given.scale)):
                figures["leftovers"] = asdict(leftovers.run(folder, sessions, tell))
    return report.tell("chaos", given, figures, _budgets(figures), lambda console: _show(console, figures))


def _options() -> argparse.Namespace:
    parser = report.options(__doc__)
    short = os.environ.get("BACKSTORY_CHAOS") == "short"
    parser.add_argument(
        "--scale",
        type=float,
        default=SHORT if short else 1.0,
        help=f"share of {KILLS:,} kills, 2 x {SECONDS:.0f} s of load, {INPUTS:,} inputs and {SESSIONS}"
        f" sessions [1; {SHORT} with BACKSTORY_CHAOS=short]",
    )
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="only these")
    parser.add_argument("--dir", help="another disk")
    return parser.parse_args()


def _teller(given: argparse.Namespace) -> Callable[[str], None]:
    """What is done so far, for who waits at a terminal."""
    started = time.monotonic()
    console = Console(stderr=True)

    def tell(words: str) -> None:
        if console.is_terminal:
            console.print(f"{time.monotonic() - started:6.0f} s  {words}", highlight=False)

    return tell


@contextmanager
def _apart(folder: Path) -> Iterator[None]:
    """A home of its own, and no settings of who runs this."""
    before = dict(os.environ)
    for name in [name for name in os.environ if name.startswith(LEAKING)]:
        del os.environ[name]
    os.environ["HOME"] = str(folder)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _budgets(figures: dict[str, Any]) -> list[Budget]:
    scale = figures["scale"]
    found = []
    if rows := figures.get("kills"):
        killed, shots = (sum(row[name] for row in rows) for name in ("kills", "shots"))
        found += [
            Budget("kills amid the work", "at least", WANTED * scale, killed),
            Budget("share of the shots", "at least", AMID, round(100 * killed / shots), "%"),
        ]
    if rows := figures.get("load"):
        for name, least, row in zip(("hook starts", "events written"), (HOOKS, EVENTS), rows, strict=True):
            found.append(Budget(name, "at least", least, round(row["rate"]), "a second"))
    every = [*figures.get("kills", ()), *figures.get("load", ())]
    if every:
        for name in ("lost", "twice"):
            found.append(Budget(name, "at most", 0, sum(row[name] for row in every)))
    if rows := figures.get("fuzz"):
        inputs = sum(row["inputs"] for row in rows)
        found.append(Budget("fuzz inputs", "at least", INPUTS * scale, inputs))
        found.append(Budget("crashes", "at most", 0, sum(row["crashes"] for row in rows)))
        found.append(
            Budget(f"inputs that took {fuzz.LIMIT:g} s", "at most", 0, sum(row["slow"] for row in rows))
        )
    if row := figures.get("leftovers"):
        found.append(
            Budget("processes of ours at a time", "at least", 3, row["seen"])
        )  # else nothing was shown
        found.append(Budget("processes left", "at most", 0, row["processes"]))
        found.append(Budget("ports left", "at most", 0, row["ports"]))
    return found


def _show(console: Console, figures: dict[str, Any]) -> None:
    table = Table("", "what", "how much", "acknowledged", "lost", "twice", "besides")
    notes: list[str] = []
    for row in figures.get("kills", ()):
        hit = f"{100 * row['kills'] / row['shots']:.0f} % amid the work"
        table.add_row("kills", row["work"], f"{row['kills']:,}", *_counts(row, row["acknowledged"]), hit)
        notes += row["notes"]
    for row in figures.get("load", ()):
        much, wait = f"{row['rate']:,.0f} / s", f"p99 {row['hook_p99_ms']:.0f} ms, x {row['ratio']:.1f}"
        table.add_row("load", row["load"], much, *_counts(row, row["events"]), wait)
        notes += row["notes"]
    for row in figures.get("fuzz", ()):
        said = f"{row['crashes']} crashes, {row['slowest_ms']:.0f} ms"
        table.add_row("fuzz", row["target"], f"{row['inputs']:,}", "", "", "", said)
        notes += row["notes"]
    if row := figures.get("leftovers"):
        much, said = f"{row['killed']} killed", f"{row['processes']} processes, {row['ports']} ports"
        table.add_row("left over", f"{row['sessions']} sessions", much, "", "", "", said)
        notes += row["notes"]
    console.print(table)
    console.print(
        f"seed {figures['seed']}; besides: the share of the shots that came amid the work; the p99 of a hook,"
        " and as a multiple of an empty shell's; the slowest input; what runs or listens after sessions",
        highlight=False,
    )
    for note in notes[:20]:
        console.print(note, markup=False, highlight=False)


def _counts(row: dict[str, Any], acknowledged: int) -> tuple[str, str, str]:
    return f"{acknowledged:,}", f"{row['lost']:,}", f"{row['twice']:,}"


if __name__ == "__main__":
    sys.exit(main())
