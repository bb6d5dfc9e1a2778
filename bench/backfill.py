"""How long `backstory backfill` takes for a gigabyte of transcripts, and how much memory.

The transcripts of a folder (~/.claude/projects, yours or public ones) are copied until there are enough, each
copy with ids of its own: sessions, entries, prompts, messages and tool uses. Then the command runs on them as
a user runs it, with a new store. Beside it, in the same run: to read the same lines and parse them as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import report
from report import Budget
from rich.console import Console
from rich.table import Table

import backstory

SECONDS = 180  # for a gigabyte
MEGABYTES = 500  # of memory
ENOUGH = 100  # megabytes of transcripts that say something about a gigabyte
LONG_AGO = 86_400
UUID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
OTHER_ID = re.compile(rb"\b(?:toolu|msg|req)_\w+")


def main() -> int:
    options = _options()
    with tempfile.TemporaryDirectory(prefix="backstory-bench-", dir=options.dir) as folder:
        top = Path(folder) / "projects"
        files, size = _copied(Path(options.folder), top, options.megabytes * 1_000_000)
        if not files:
            raise SystemExit(f"no transcript in {options.folder}")
        parse_s, lines = _parse(top)
        seconds, peak, done = _backfill(top, Path(folder) / "home")
    rows = [
        {"case": "backstory backfill", "seconds": round(seconds, 1), "mb_s": round(size / 1e6 / seconds, 1)},
        {"case": "read and json.loads", "seconds": round(parse_s, 1), "mb_s": round(size / 1e6 / parse_s, 1)},
    ]
    figures = {
        "megabytes": round(size / 1e6),
        "files": files,
        "lines": lines,
        "peak_mb": round(peak / 1e6),
        **{name: done[name] for name in ("sessions", "turns", "memories", "events")},
        "rows": rows,
    }
    budgets = [  # of less, most of the time is the start of two processes
        Budget("seconds for a gigabyte", "below", SECONDS, round(seconds / size * 1e9, 1), "s"),
        Budget("memory of all processes", "below", MEGABYTES, round(peak / 1e6), "MB"),
    ]
    if options.megabytes < ENOUGH:
        budgets = []
    return report.tell("backfill", options, figures, budgets, lambda console: _show(console, figures))


def _options() -> argparse.Namespace:
    parser = report.options(__doc__)
    parser.add_argument("folder", metavar="FOLDER", help="transcripts, also in folders below it")
    parser.add_argument("--megabytes", metavar="N", type=int, default=1_000, help="how many [1000]")
    parser.add_argument("--dir", metavar="FOLDER", help="where to put them, in a folder that is removed")
    return parser.parse_args()


def _copied(source: Path, to: Path, enough: int) -> tuple[int, int]:
    """Files and bytes."""
    files = size = copy = 0
    found = sorted(source.rglob("*.jsonl"))
    while found and size < enough:
        for path in found:
            inside = to / f"{copy:03}" / path.relative_to(source).parent
            inside.mkdir(parents=True, exist_ok=True)
            target = inside / _fresh(path.name.encode(), copy).decode()
            with path.open("rb") as lines, target.open("wb") as out:
                out.writelines(_fresh(line, copy) for line in lines)
            then = time.time() - LONG_AGO  # no session goes on
            os.utime(target, (then, then))
            files, size = files + 1, size + target.stat().st_size
            if size >= enough:
                break
        copy += 1
    return files, size


def _fresh(text: bytes, copy: int) -> bytes:
    """The same with other ids, and with the same ones for the same copy."""
    mark = b"%04x" % copy
    return OTHER_ID.sub(lambda one: one[0] + mark, UUID.sub(lambda one: one[0][:-4] + mark, text))


def _parse(top: Path) -> tuple[float, int]:
    started, lines = time.perf_counter(), 0
    for path in sorted(top.rglob("*.jsonl")):
        with path.open("rb") as file:
            for line in file:
                lines += 1
                try:
                    json.loads(line)
                except ValueError:
                    continue
    return time.perf_counter() - started, lines


def _backfill(top: Path, home: Path) -> tuple[float, int, dict[str, Any]]:
    """Seconds, the most memory that all its processes had at a time, and what it says."""
    env = {
        "PATH": os.defpath,
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.path.dirname(os.path.dirname(backstory.__file__)),
        "BACKSTORY_HOME": str(home),
    }
    home.mkdir()
    started = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "backstory", "backfill", "--from", str(top), "--json"],
        cwd=home,
        env=env,
        stdout=subprocess.PIPE,
    ) as process:
        peaks = [0]
        watcher = threading.Thread(target=_watch, args=(process, peaks))
        watcher.start()
        out, _ = process.communicate()
        watcher.join()
    if process.returncode:
        raise SystemExit(f"backstory backfill ended with {process.returncode}")
    return time.perf_counter() - started, peaks[0], json.loads(out)


def _watch(process: subprocess.Popen[bytes], peaks: list[int]) -> None:
    while process.poll() is None:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        try:
            pids = [process.pid, *map(int, children.read_text().split())]
        except OSError:
            break
        peaks[0] = max(peaks[0], sum(map(_memory, pids)))
        time.sleep(0.05)


def _memory(pid: int) -> int:
    try:
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0


def _show(console: Console, figures: dict[str, Any]) -> None:
    table = Table(
        "case", "seconds", "MB/s", title=f"{figures['megabytes']:,} MB in {figures['files']:,} files"
    )
    for row in figures["rows"]:
        table.add_row(row["case"], f"{row['seconds']:,}", f"{row['mb_s']:,}")
    table.caption = (
        f"{figures['sessions']:,} sessions, {figures['turns']:,} turns, {figures['events']:,} events;"
        f" at most {figures['peak_mb']:,} MB of memory"
    )
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
