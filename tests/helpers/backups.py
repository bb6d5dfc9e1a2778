"""Stores to back up, to damage and to be killed over."""

from __future__ import annotations

import gzip
import os
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from backstory.store.file import backup, connection
from backstory.store.file.connection import connect
from backstory.surfaces.opened import open_drained
from tests.conftest import REPOSITORY
from tests.helpers.chaos import FORK, NOW, bash, contents, exit_code_of_a_fork, put, rows, start

PAGE = 4096


def capture(data: Path, *commands: str) -> None:
    """Captured, and not stored yet."""
    for command in commands:
        put(data, bash(command))


def store(data: Path, *commands: str) -> None:
    """Captured and stored."""
    capture(data, *commands)
    with open_drained(str(data), now=NOW):
        pass


def with_backup(data: Path) -> None:
    """The store is there and has the day's backup, as in daily use: a hook that finds none waits for the
    disk, and starts a worker that makes the first one."""
    connect(path_of(data)).close()
    backup.make(str(data), int(time.time() * 1000))


DRAIN_AND_DIE = """
import os, sys
sys.path.insert(0, sys.argv[1])
from backstory.surfaces.opened import open_drained
opened = open_drained(sys.argv[2], now=1_800_000_000_000)
os.kill(os.getpid(), 9)
"""


def store_in_the_log(data: Path, *commands: str) -> None:
    """Stored by a process that was killed: it is in the write-ahead log only."""
    capture(data, *commands)
    with start(DRAIN_AND_DIE, str(data)) as process:
        process.communicate(timeout=60)
    assert (data / "backstory.db-wal").stat().st_size > 0


def many(prefix: str, count: int = 150) -> list[str]:
    """Commands that fill some pages."""
    return [f"echo {prefix}-{number} {'word ' * 30}".strip() for number in range(count)]


BEFORE, AFTER = many("before"), many("after")


def stored(data: Path) -> list[str]:
    return [text.split("\n")[1].removeprefix("Command: ") for text in contents(data)]


def database(data: Path) -> Path:
    return data / "backstory.db"


def path_of(data: Path) -> str:
    return str(database(data))


def names(data: Path, of: str = "backups") -> list[str]:
    place = data / of
    return sorted(path.name for path in place.iterdir() if path.name != ".lock") if place.exists() else []


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def write_at(path: Path, offset: int, what: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(what)


def root_page(data: Path, table: str) -> int:
    (found,) = rows(data, "SELECT rootpage FROM sqlite_master WHERE name = ?", table)
    return int(found["rootpage"])


def spoil(data: Path, page: int) -> None:
    write_at(database(data), (page - 1) * PAGE, b"\xa5" * PAGE)


def spoil_pages_of(data: Path, *commands: str) -> set[str]:
    """Spoil the pages on which the traces of these commands are; the commands that were on them."""
    whole = database(data).read_bytes()
    found = set()
    for command in commands:
        page = whole.index(f"Command: {command}".encode()) // PAGE
        on_it = whole[page * PAGE : (page + 1) * PAGE]
        found |= {one for one in (*BEFORE, *AFTER) if f"Command: {one}".encode() in on_it}
        spoil(data, page + 1)
    return found


KILLED = f"""
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from backstory.store.file import backup, recovery, swap
from backstory.surfaces.opened import open_drained
{FORK}
nth, calls = int(line), 0
def at_each_step(event, args):
    global calls
    paths = [os.fsdecode(arg) for arg in args if isinstance(arg, (str, bytes))]
    steps = ("os.rename", "os.link", "os.remove", "os.mkdir", "os.utime", "os.truncate", "sqlite3.connect")
    written = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)
    if (event in steps or written) and any(sys.argv[2] in path for path in paths):
        calls += 1
        if calls == nth:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(at_each_step)
"""


def killed_at_each_step(program: str, data: Path, *args: str) -> Iterator[int]:
    """Run it again and again, killed one step later each time, until it comes to its end."""
    with start(program, str(data), *args) as process:
        assert process.stdin and process.stderr
        for nth in range(1, 100):
            code = exit_code_of_a_fork(process, nth)
            if code not in (0, -9):
                process.stdin.close()
                raise AssertionError(process.stderr.read().decode())
            yield nth
            if code == 0:
                assert nth > 3  # else it was never killed
                return
    raise AssertionError("it does not end")


# --- other versions -----------------------------------------------------------------------------------------

TOY = """\
-- What a later step may do: a column, a table, and rows moved into it.
ALTER TABLE memories ADD COLUMN toy TEXT;
UPDATE memories SET toy = 'toy of ' || id;
CREATE TABLE toys (memory_id TEXT PRIMARY KEY, toy TEXT NOT NULL) STRICT;
INSERT INTO toys SELECT id, toy FROM memories;
"""


def with_a_toy(folder: Path) -> str:
    """The migrations, and one more."""
    made = folder / "migrations"
    shutil.copytree(connection.MIGRATIONS, made)
    (made / f"{connection.latest() + 1:04}_toy.sql").write_text(TOY)
    return str(made)


VERSION_0_1 = REPOSITORY / "tests" / "store" / "version_0_1"


def of_version_0_1(path: Path, schema: int = 12) -> Path:
    """A store as hooks and commands of backstory 0.1 made it; what `backstory export` of that wrote is beside
    it. Its schemas are told apart by the number alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.decompress((VERSION_0_1 / "backstory.db.gz").read_bytes()))
    write_at(path, 60, schema.to_bytes(4, "big"))
    return path


def half(data: Path) -> None:
    os.truncate(database(data), database(data).stat().st_size // 2)
