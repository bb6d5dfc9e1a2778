"""Copies of the store, made while others write to it.

One a day, one before every migration, and those that somebody asks for, in `backups/`:

    backstory-20261116T012345Z.db             the time is UTC, so that names sort
    backstory-20261116T012345Z-before-3.db    what was there before migration 3
    backstory-20261116T012345Z-manual.db      somebody asked for it

A backup gets its name only after it was opened and found in order. Coming back from one is in
store/file/recovery.py.
"""

from __future__ import annotations

import os
import re
import sqlite3

from backstory import locks, paths
from backstory.errors import Damaged, NotFound, StoreError
from backstory.store.file import disk, swap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Literal

DAY_MS = 24 * 3600 * 1000
DAILY, WEEKLY, BEFORE, MANUAL = 7, 4, 3, 5  # how many are kept
PAGES = 1_000  # a step: between two of them a signal gets through
UNFINISHED = ".making"
FAILED = "backup.failed"  # in the data folder; its time is when
RETRY_MS = 3600 * 1000
JSON = re.compile(r"json_valid\((\w+)\)")
MAGIC = b"SQLite format 3\0"  # how a database begins
NAME = re.compile(r"backstory-(\d{8}T\d{6}Z)(?:-(before-\d+|manual))?\.db")


class Backup:
    __slots__ = ("at", "name", "path", "reason")

    def __init__(self, path: str, at: int, reason: str) -> None:
        self.path = path
        self.name = os.path.basename(path)
        self.at = at
        self.reason = reason  # daily, before-3, manual or set aside

    @property
    def size(self) -> int:
        return os.path.getsize(self.path)

    @property
    def schema(self) -> int | None:
        return schema_of(self.path)


def schema_of(path: str) -> int | None:
    """As the header says; None where there is no database in it any more."""
    with open(path, "rb") as file:
        head = file.read(100)
    return int.from_bytes(head[60:64], "big") if head.startswith(MAGIC) else None


class alone:
    """`with alone(folder):` nobody else makes or removes backups. A migration keeps it until it is done."""

    __slots__ = ("_folder", "_handle")

    def __init__(self, folder: str) -> None:
        self._folder = _place(folder)

    def __enter__(self) -> None:
        busy = "another process makes a backup; try again in a moment"
        try:
            self._handle = locks.take(os.path.join(self._folder, ".lock"), busy)
        except OSError as error:
            raise _refused(self._folder, error) from error

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        os.close(self._handle)


def make(folder: str, now: int, reason: str = "daily") -> Backup:
    """Copy the store as it is now. Whatever keeps the copy from being good is an error, and leaves none."""
    try:
        with alone(folder):
            made = make_alone(folder, now, reason)
    except StoreError:
        _note_failure(folder, now)
        raise
    _note_failure(folder, None)
    return made


def _note_failure(folder: str, at: int | None) -> None:
    """So that not every hook tries again."""
    path = os.path.join(folder, FAILED)
    try:
        if at is None:
            os.unlink(path)
        else:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600))
            os.utime(path, (at / 1000, at / 1000))
    except OSError:
        pass


def _failed_lately(folder: str, now: int) -> bool:
    try:
        at = os.stat(os.path.join(folder, FAILED)).st_mtime * 1000
    except OSError:
        return False
    return abs(now - at) < RETRY_MS


def make_alone(folder: str, now: int, reason: str) -> Backup:
    place, database = _place(folder), paths.database(folder)
    if not os.path.exists(database):
        raise NotFound(f"there is no store in {folder} yet; it comes with the first Claude Code session")
    _tidy(place)
    suffix = "" if reason == "daily" else f"-{reason}"
    path = _named(place, now, suffix)
    while os.path.exists(path):
        now += 1_000
        path = _named(place, now, suffix)
    try:
        copy(database, path + UNFINISHED, is_live=True)
        try:
            check(path + UNFINISHED)
        except Damaged as error:
            check(database)  # a copy is as good as what was copied
            raise StoreError(f"{place}: {error}; is the disk in order? try again") from error
        swap.sync(path + UNFINISHED)
        os.rename(path + UNFINISHED, path)
        swap.sync(place)
    except (sqlite3.Error, OSError) as error:
        raise _refused(place, error) from error
    finally:
        _tidy(place)
    return Backup(path, now, reason)


def due(folder: str, now: int) -> bool:
    """Is it a day since the last daily one? Cheap. One from the future is a clock that was wrong."""
    if not os.path.exists(paths.database(folder)) or _failed_lately(folder, now):
        return False
    after, before = swap.stamp(now - DAY_MS), swap.stamp(now + DAY_MS)
    names = (NAME.fullmatch(name) for name in _names(_place(folder)))
    return not any(parts and not parts[2] and after < parts[1] < before for parts in names)


def prune(folder: str) -> list[str]:
    """Remove what is not needed any more; its names."""
    with alone(folder):
        _tidy(_place(folder))
        found = listed(folder)
        keep = set(kept(found))
        gone = [one for one in found if one not in keep]
        for one in gone:
            os.unlink(one.path)
    return [one.name for one in gone]


def kept(found: Sequence[Backup], size: Callable[[Backup], int] | None = None) -> list[Backup]:
    """The newest of each of the last seven days that have one and of the last four weeks; of those before a
    migration the last three, of those somebody asked for the last five. And the largest of the last four
    weeks, whatever it is: a store that lost its content is backed up like any other."""
    size = size or _size
    newest = sorted(found, key=lambda one: one.at, reverse=True)
    daily = [one for one in newest if one.reason == "daily"]
    manual = [one for one in newest if one.reason == "manual"]
    before = [one for one in newest if one.reason not in ("daily", "manual")]
    keep = newest[:1] + before[:BEFORE] + manual[:MANUAL]
    for days, many in ((1, DAILY), (7, WEEKLY)):
        periods: dict[int, Backup] = {}
        for one in daily:
            # The first of January 1970 was a Thursday; weeks begin on Monday.
            periods.setdefault((one.at // DAY_MS + 3) // days, one)
        keep += list(periods.values())[:many]
    recent = [one for one in newest if one.at > newest[0].at - WEEKLY * 7 * DAY_MS]
    keep += sorted(recent, key=lambda one: (size(one), one.at))[-1:]
    return list(dict.fromkeys(keep))


def _size(one: Backup) -> int:
    try:
        return one.size
    except OSError:  # its owner removed it
        return 0


def listed(folder: str) -> list[Backup]:
    """All there are, newest first, as far as their names tell."""
    return _stores_in(_place(folder), "daily")


def set_aside(folder: str) -> list[Backup]:
    """What was the database before another was restored: no backup, but as good as one to restore."""
    return _stores_in(os.path.dirname(swap.aside(folder, 0)), "set aside")


def _stores_in(place: str, reason: str) -> list[Backup]:
    found = []
    for name in _names(place):
        if (parts := NAME.fullmatch(name)) and (at := _time(parts[1])) is not None:
            found.append(Backup(os.path.join(place, name), at, parts[2] or reason))
    return sorted(found, key=lambda one: (one.at, one.name), reverse=True)


def with_memories(folder: str) -> Backup | None:
    """The newest one in which something is remembered."""
    for one in listed(folder):
        try:
            with read_only(one.path) as db:
                if db.execute("SELECT 1 FROM memories LIMIT 1").fetchone():
                    return one
        except sqlite3.Error:  # damaged; there may be another
            continue
    return None


def only_in_the_database(folder: str) -> int:
    """How long a time, in milliseconds, of what was captured is in no backup."""
    newest = next(iter(listed(folder)), None)
    with read_only(paths.database(folder)) as db:
        began, last = db.execute(
            "SELECT (SELECT min(created_at) FROM projects), (SELECT max(last_event_at) FROM sessions)"
        ).fetchone()
    return max(0, (last or 0) - (newest.at if newest else began or last or 0))


def copy(source: str, target: str, *, is_live: bool = False) -> None:
    """All that is committed in one database, as a new file that needs nothing beside it."""
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    # Who may only read cannot tidy up the log of a database in use.
    with opened(source) if is_live else read_only(source) as origin, opened(target) as made:
        made.execute("PRAGMA synchronous = OFF")  # it is synced when it is whole
        # Reading holds nobody up, and keeps what others write meanwhile out of the copy.
        origin.execute("BEGIN")
        origin.execute("SELECT 1 FROM sqlite_master").fetchone()
        origin.backup(made, pages=PAGES)
        made.execute("PRAGMA journal_mode = DELETE")


def rewritten(folder: str, one: Backup, change: Callable[[sqlite3.Connection], bool]) -> bool:
    """Change a backup: a copy is changed and checked, and takes its place. False: there was nothing to do.
    For who is `alone`."""
    made = os.path.join(_place(folder), one.name + UNFINISHED)
    _tidy(_place(folder))
    try:
        copy(one.path, made)
        with opened(made) as db:
            db.row_factory = sqlite3.Row
            db.execute("PRAGMA foreign_keys = ON")
            if not change(db):
                return False
        check(made)
        swap.sync(made)
        swap.remove(one.path, swap.BESIDE)  # of what was set aside: the copy has what is in it
        os.rename(made, one.path)
        swap.sync(os.path.dirname(one.path))
    finally:
        _tidy(_place(folder))
    return True


def last_day(folder: str, holding: Sequence[Backup], now: int) -> int | None:
    """When the last of these is removed by itself, if there is a new backup of the store as it is every day;
    None: not within a year, for only newer ones of their kind take the place of those somebody asked for."""
    left = listed(folder)
    sizes = {one.path: _size(one) for one in left}
    size_now = os.path.getsize(paths.database(folder))
    for day in range(1, 366):
        new = Backup(f"day-{day}", now + day * DAY_MS, "daily")
        sizes[new.path] = size_now
        left = kept([*left, new], lambda one: sizes[one.path])
        if not any(one.path in {held.path for held in holding} for one in left):
            return new.at
    return None


def examine(path: str) -> tuple[int, str]:
    """(schema, what is wrong) of a database; '' where nothing is. As slow as to read all of it."""
    schema = 0
    try:
        with read_only(path) as db:
            schema = int(db.execute("PRAGMA user_version").fetchone()[0])
            return schema, _fault(db)
    except (sqlite3.DatabaseError, UnicodeDecodeError, MemoryError) as error:
        if disk.is_of_the_surroundings(error):
            raise
        if isinstance(error, UnicodeDecodeError):  # SQLite quotes what it cannot parse
            return schema, "its schema is no text"
        return schema, str(error).partition(" with text ")[0]


def _fault(db: sqlite3.Connection) -> str:
    verdict = str(db.execute("PRAGMA integrity_check(1)").fetchone()[0])
    if verdict != "ok":
        return " ".join(verdict.removeprefix("*** in database main ***").split())
    free, pages = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("freelist_count", "page_count"))
    if not 0 <= free < pages:  # SQLite looks at this only when it needs a page
        return f"it says that {free} of its {pages} pages are free"
    for table, *_ in db.execute("PRAGMA foreign_key_check"):
        return f"a row of {table} refers to one that is not there"
    for kind, name, *_, sql in db.execute("SELECT * FROM sqlite_master").fetchall():
        if kind == "table" and "_fts" not in name and "_terms" not in name:
            for _ in db.execute(f"SELECT * FROM {name}"):
                pass  # every text has to be one
            for column in JSON.findall(sql or ""):  # who may only read has no constraints
                wrong = f"{column} IS NOT NULL AND NOT json_valid({column})"
                if db.execute(f"SELECT 1 FROM {name} WHERE {wrong} LIMIT 1").fetchone():
                    return f"{column} in a row of {name} is no JSON"
    return ""


def check(path: str) -> None:
    """Refuse a database in which something is wrong, or nothing at all."""
    schema, fault = examine(path)
    if fault or not schema:
        raise damage(path, fault)


def damage(path: str, fault: str) -> Damaged:
    fault = fault or "there is nothing in it"
    return Damaged(f"{path} is damaged ({fault}); `backstory doctor` looks closer")


def is_store(path: str) -> bool:
    """Is that a database of backstory, be it damaged?"""
    with open(path, "rb") as file:
        if file.read(16) != MAGIC:
            return False
    try:
        with read_only(path) as db:
            return db.execute("SELECT 1 FROM sqlite_master WHERE name = 'memories'").fetchone() is not None
    except sqlite3.DatabaseError:
        return True


class Closing(sqlite3.Connection):
    """`with` closes it. (contextlib, which could do that, is too slow to load for a hook.)"""

    def __exit__(self, kind: object, error: object, trace: object) -> Literal[False]:
        self.close()
        return False


def opened(name: str, *, uri: bool = False) -> Closing:
    return sqlite3.connect(name, locks.SECONDS, uri=uri, isolation_level=None, factory=Closing)


def read_only(path: str, *, is_alone: bool = False) -> Closing:
    """A connection that leaves file and log as they are. Where it `is_alone`, SQLite takes no locks."""
    name = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    mode = "mode=ro&immutable=1" if is_alone else "mode=ro"
    return opened(f"file:{name}?{mode}", uri=True)


def _place(folder: str) -> str:
    return os.path.join(folder, "backups")


def _names(place: str) -> list[str]:
    try:
        return os.listdir(place)
    except OSError:  # not there, or no folder; making one will say what is wrong
        return []


def _named(place: str, at: int, suffix: str) -> str:
    return os.path.join(place, f"backstory-{swap.stamp(at)}{suffix}.db")


def _time(stamp: str) -> int | None:
    from datetime import datetime

    try:
        return int(datetime.fromisoformat(stamp).timestamp()) * 1000
    except ValueError:
        return None


def _tidy(place: str) -> None:
    """Who is `alone` is the only one who makes a backup: what is unfinished was left by a kill."""
    for name in os.listdir(place):
        if name.startswith("backstory-") and UNFINISHED in name:
            os.unlink(os.path.join(place, name))


def _refused(place: str, error: Exception) -> StoreError:
    why = disk.unusable(error, os.path.dirname(place)) or f"{place} ({error}); mend that and try again"
    return StoreError(f"no backup could be made: {why}")
