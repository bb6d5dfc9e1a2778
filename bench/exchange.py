"""How long an export and an import take, and how much memory.

A store is filled with notes, traces, turns and relations; the commands run as processes of their own, so that
the most memory they ever had is theirs. Beside them, in the same run, what comes for free: every row of the
same tables read and written as SQL text, as the shell of SQLite does with `.dump`; and the same rows put into
a new store by plain INSERTs, without checks, redaction, or anything computed but the keyword index.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from typing import Any

import report
from report import Budget
from rich.console import Console
from rich.table import Table

from backstory import paths
from backstory.ids import new_id
from backstory.memory import turn as turns
from backstory.store import families, keep, memories, projects, sessions
from backstory.store import turns as stored_turns
from backstory.store.file.connection import connect, transaction

BACKSTORY = os.path.join(os.path.dirname(sys.executable), "backstory")
SESSION = 100  # memories in one
TABLES = [family.table for family in families.FAMILIES if isinstance(family.line, families.Line)]
MOST_RAM = 300  # MB
EXPORT, DRY_RUN, IMPORT, AGAIN = COMMANDS = "export", "import --dry-run", "import", "import of what is known"
WORDS = (
    "the session token expires before refresh so login fails with status in middleware while parser returns"
    " None for empty input cache invalidation order schema migration index query config path user error test"
    " build deploy retry queue walrus otter heron invoice cents rounding release branch commit review"
).split()


def main() -> int:
    parser = report.options(__doc__)
    parser.add_argument("--size", type=int, default=100_000, help="memories")
    parser.add_argument("--dir", help="where the stores lie")
    parser.add_argument("--fresh", action="store_true", help="fill the store again")
    given = parser.parse_args()
    home, _, _ = report.keep("exchange", given.size, given, fill)
    with tempfile.TemporaryDirectory(prefix="backstory-bench-", dir=given.dir) as folder:
        rows = measure(home, folder)
    least = {row["case"]: row for row in rows}
    budgets = [
        Budget(f"most memory of an {case}", "below", MOST_RAM, least[case]["peak_mb"], "MB")
        for case in (EXPORT, IMPORT)
    ]
    figures = {"memories": given.size, "results": rows}
    return report.tell("exchange", given, figures, budgets, lambda console: show(console, rows))


def fill(size: int, home: str, project: str) -> dict[str, Any]:
    """A third each of notes, traces and turns, in sessions."""
    chance = random.Random(0)  # noqa: S311 - the same in every run
    os.makedirs(home, mode=0o700)
    os.makedirs(project)
    place = paths.place(project)
    db = connect(paths.database(home))
    db.execute("PRAGMA synchronous = OFF")
    for first in range(0, size, 1_000):
        with transaction(db):
            project_id = projects.ensure(db, place, 1)
            for number in range(first, min(size, first + 1_000)):
                _add(db, chance, project_id, project, place, number)
    db.close()
    return {}


def _add(
    db: sqlite3.Connection,
    chance: random.Random,
    project_id: str,
    project: str,
    place: paths.Place,
    number: int,
) -> None:
    now = 1_700_000_000_000 + number * 60_000
    session_id = f"session-{number // SESSION}"
    sessions.start(db, session_id, project_id, project, place, now)
    text = " ".join(chance.choices(WORDS, k=60)) + f" {number}"
    if number % 3 == 0:
        says = keep.wording(text)
        memories.add(
            db,
            project_id=project_id,
            session_id=session_id,
            kind="note",
            sector="semantic",
            tier="project",
            content=text,
            importance=0.5,
            content_hash=says.content_hash,
            simhash=says.simhash,
            source="user",
            now=now,
        )
    elif number % 3 == 1:
        memories.add_trace(
            db, memory_id=new_id(), project_id=project_id, session_id=session_id,
            content=f"Tool: Bash\nCommand: {text}", importance=0.3, action="shell", source="tool",
            files=["src/auth.py"], hashes=[None], now=now,
        )  # fmt: skip
    else:
        turn = turns.Turn(session_id, now)
        turn.prompts, turn.answer, turn.state = [[text[:200], turns.TYPED]], text, turns.COMPLETE
        turn.edited = ["src/auth.py"]
        stored_turns.save(db, turn, project_id)
        sessions.keep_prompt(db, session_id, text[:200], now)


def measure(home: str, folder: str) -> list[dict[str, Any]]:
    file, other = os.path.join(folder, "all.jsonl"), os.path.join(folder, "other")
    rows = [_command(EXPORT, home, "export", file)]
    size = os.path.getsize(file) / 1e6
    rows.append(_command(DRY_RUN, other, "import", file, "--dry-run"))
    rows.append(_command(IMPORT, other, "import", file))
    rows.append(_command(AGAIN, other, "import", file))
    rows.append(
        _forked("every row as SQL text", lambda: _dump(paths.database(home), os.path.join(folder, "sql")))
    )
    rows.append(_forked("plain INSERTs", lambda: _copy(paths.database(home), os.path.join(folder, "copy"))))
    again = os.path.join(folder, "again.jsonl")
    _command(EXPORT, other, "export", again)
    with open(file, "rb") as one, open(again, "rb") as two:
        if one.read() != two.read():
            raise SystemExit("the second export is not the first one")
    for row in rows:
        row["file_mb"] = round(size, 1) if row["case"] in COMMANDS else None
    rows[-2]["file_mb"] = round(os.path.getsize(os.path.join(folder, "sql")) / 1e6, 1)
    return rows


def _command(case: str, home: str, *args: str) -> dict[str, Any]:
    env = {**os.environ, "BACKSTORY_HOME": home, "BACKSTORY_EMBEDDER": "off"}
    return _forked(
        case, lambda: subprocess.run([BACKSTORY, *args], env=env, check=True, stdout=subprocess.DEVNULL)
    )


def _forked(case: str, act: Any) -> dict[str, Any]:
    """In a process of its own: what it or its child had at most is asked for when it ends."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        started = time.perf_counter()
        act()
        seconds = time.perf_counter() - started
        whose = resource.RUSAGE_CHILDREN if case in COMMANDS else resource.RUSAGE_SELF
        used = resource.getrusage(whose)
        os.write(writer, f"{seconds} {used.ru_utime + used.ru_stime} {used.ru_maxrss}".encode())
        os._exit(0)
    os.waitpid(pid, 0)
    seconds, cpu, peak = map(float, os.read(reader, 100).split())
    os.close(reader)
    os.close(writer)
    figures = {"seconds": round(seconds, 1), "cpu_seconds": round(cpu, 1), "peak_mb": round(peak / 1024)}
    return {"case": case, **figures}


def _dump(path: str, file: str) -> None:
    db = sqlite3.connect(path)
    with open(file, "w", encoding="utf-8") as target:
        for table in TABLES:
            for row in db.execute(f"SELECT * FROM {table}"):  # noqa: S608
                values = ", ".join(_literal(value) for value in row)
                target.write(f"INSERT INTO {table} VALUES ({values});\n")  # noqa: S608


def _literal(value: object) -> str:
    return (
        "NULL"
        if value is None
        else "'" + value.replace("'", "''") + "'"
        if isinstance(value, str)
        else repr(value)
    )


def _copy(path: str, folder: str) -> None:
    os.makedirs(folder)
    db = connect(paths.database(folder))
    db.execute("ATTACH ? AS there", (path,))
    db.execute("PRAGMA foreign_keys = OFF")
    with transaction(db):
        for table in (
            "projects",
            "checkouts",
            "sessions",
            "prompts",
            "memories",
            "turns",
            "turn_pieces",
            "session_memories",
        ):
            names = [row["name"] for row in db.execute(f"PRAGMA table_xinfo({table})") if not row["hidden"]]
            columns = ", ".join(names)
            db.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM there.{table}")  # noqa: S608
    db.close()
    shutil.rmtree(folder)


def show(console: Console, rows: list[dict[str, Any]]) -> None:
    table = Table("case", "seconds", "of the processor", "file, MB", "most memory, MB")
    for row in rows:
        named = ("case", "seconds", "cpu_seconds", "file_mb", "peak_mb")
        table.add_row(*("" if row[name] is None else str(row[name]) for name in named))
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
