"""Coming back from a backup: because somebody asks for it, or because the database is damaged.

The new database is built beside the old one and put in its place when it is whole, so whatever is killed or
fails before that changes nothing. The old one is set aside, never deleted.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing, suppress
from functools import cache

from backstory import log, paths
from backstory.errors import Damaged, SchemaTooNew, StoreError, Unavailable
from backstory.store.file import backup, disk, older, rescue, swap
from backstory.store.file.connection import (
    apply,
    fts_indexes,
    is_read_only_by_itself,
    latest,
    transaction,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from backstory.store.file.backup import Backup


MADE = "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite%'"


class Recovery:
    """What was wrong, what was done about it, and what is lost."""

    __slots__ = ("aside", "backup", "reason", "rescued")

    def __init__(self, reason: str, used: Backup | None, aside: str, rescued: rescue.Rescued) -> None:
        self.reason = reason
        self.backup = used
        self.aside = aside  # where the damaged file is kept; empty where it was mended in place
        self.rescued = rescued

    def sentence(self) -> str:
        if not self.aside:
            return f"the keyword index was damaged ({self.reason}); it was made anew, nothing is lost"
        used = f"the backup of {_when(self.backup.at)} was restored" if self.backup else "there was no backup"
        nouns = ("memories", "memory", "memories"), ("docmem_nodes", "node", "nodes")
        counts = ((self.rescued.rows.get(table, 0), one, many) for table, one, many in nouns)
        rows = [f"{count:,} {one if count == 1 else many}" for count, one, many in counts if count]
        number = " and ".join(rows) or "nothing"
        if not self.rescued.broken:
            lost = "everything in the damaged file could be read and was taken over, nothing is lost"
        elif self.backup:
            lost = (
                f"{number} newer than it could be read from the damaged file; {self.offer}; what else is"
                " newer is lost, and what was deleted since may be there again"
            )
        else:
            lost = f"{number} could be read from the damaged file; {self.offer}; what else was stored is lost"
        damage = f"the database was damaged ({self.reason})"
        return f"{damage}; {used}; {lost}. The damaged file is kept as {self.aside}"

    @property
    def offer(self) -> str:
        """How to get back what is lost, as far as Claude Code has it."""
        since = f" --since {_when(self.backup.at)[:10]}" if self.backup else ""
        return f"`backstory backfill{since}` brings back what Claude Code's transcripts have of the rest"


def restore(folder: str, path: str, now: int) -> str:
    """Put a backup, or any sound copy of a store, in the place of the database; where that is set aside."""
    with swap.alone(folder):
        made = swap.making(folder)
        try:
            _expect_usable(path)
            _copied(path, made)
            at = swap.free(folder, now)
            swap.put(folder, made, at)
        except (sqlite3.Error, OSError) as error:
            _clear(folder)
            raise _failed(folder, f"{path} could not be restored", error) from error
    log.write("warning", f"{path} was restored; what was there before is kept as {swap.aside(folder, at)}")
    return swap.aside(folder, at)


def verify(folder: str, now: int) -> Recovery | None:
    """After an unclean stop: recover if something is wrong with the file."""
    handle = swap.share(folder)
    try:
        wrong = _what_is_wrong(folder) or _damaged_indexes(paths.database(folder))
    except (sqlite3.Error, OSError) as error:
        raise _failed(folder, "it could not be checked", error) from error
    finally:
        os.close(handle)
    return recover(folder, now) if wrong else None


def recover(folder: str, now: int) -> Recovery | None:
    """Restore the newest good backup, with all that can still be read of what is newer. None when nothing is
    wrong: another process was faster."""
    with swap.alone(folder):
        try:
            wrong = _what_is_wrong(folder)
            recovery = _rebuilt(folder, now, wrong) if wrong else _reindexed(folder, now)
        except (sqlite3.Error, OSError) as error:
            _clear(folder)
            raise _failed(folder, "it is damaged and could not be replaced yet", error) from error
    if recovery:
        log.write("error", recovery.sentence())
    return recovery


def notice(folder: str) -> str | None:
    """What recoveries had to say that nobody has acknowledged yet."""
    try:
        with open(paths.recovered(folder), encoding="utf-8") as file:
            return file.read().strip() or None
    except FileNotFoundError:
        return None


def acknowledge(folder: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(paths.recovered(folder))


def _what_is_wrong(folder: str) -> str | None:
    path = paths.database(folder)
    if not os.path.exists(path):
        return None
    if os.path.getsize(path) == 0:
        return "it is empty" if backup.listed(folder) else None
    older.expect_file_ours(path)
    schema, fault = _examined(path)
    if schema > latest():  # or the header is damaged
        if not fault and not _has_our_tables(path):
            raise _too_new(path, schema)
        return fault or f"it says that it is at schema {schema}, and has the tables of {latest()}"
    return fault or _refusal_to_be_written(path)


def _refusal_to_be_written(path: str) -> str | None:
    with backup.opened(path) as db:
        try:
            db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if not is_read_only_by_itself(path, error):
                raise
            return "it says that it must not be written"
    return None


def _rebuilt(folder: str, now: int, reason: str) -> Recovery:
    made = swap.making(folder)
    used = _newest_good(folder, made)
    try:
        rescued = _merged(folder, made)
    except Exception as error:  # whatever is in the damaged file, the backup is good
        is_ours = isinstance(error, sqlite3.Error) and disk.is_of_the_surroundings(error)
        if is_ours or disk.unusable(error, folder):
            raise
        log.crash("rescue")
        swap.making(folder)
        if used:
            _copied(used.path, made)
        rescued = rescue.Rescued()
        rescued.broken.append("everything")
    with closing(_building(made)) as db:
        apply(db)
        if "turn_pieces" in rescued.broken:
            _mended_pieces(db)
        _mended_indexes(db)
    backup.check(made)
    at = swap.free(folder, now)
    recovery = Recovery(reason, used, swap.aside(folder, at), rescued)
    _note(folder, at, recovery.sentence())  # from the next line on it is sure to happen
    swap.put(folder, made, at)
    return recovery


def _clear(folder: str) -> None:
    """What was being built takes room that is needed."""
    with suppress(OSError):
        swap.making(folder)


def _merged(folder: str, made: str) -> rescue.Rescued:
    rescued = rescue.Rescued()
    path = paths.database(folder)
    with closing(_building(made)) as db, backup.read_only(path) as wreck:
        schema = rescue.schema_of(wreck)
        if schema is None:
            rescued.broken.append("everything")
            return rescued
        names = {row[0] for row in wreck.execute("SELECT name FROM sqlite_master")}
        is_its_own = 0 < schema <= latest() and _are_tables_of(schema, names)
        apply(db, upto=schema if is_its_own else latest())
        return rescue.merge(wreck, db)


def _building(made: str) -> sqlite3.Connection:
    db = sqlite3.connect(made, isolation_level=None)
    os.chmod(made, 0o600)
    db.execute("PRAGMA synchronous = OFF")  # it is synced when it is whole
    db.execute("PRAGMA foreign_keys = ON")  # as whenever a migration runs
    return db


def _newest_good(folder: str, made: str) -> Backup | None:
    """The newest backup that is in order, copied."""
    newer = None
    for candidate in backup.listed(folder):
        try:
            _expect_usable(candidate.path)
        except SchemaTooNew as error:
            if not _has_our_tables(candidate.path):
                raise  # the store was of a newer backstory, which loses less of it
            newer = error
            continue
        except (StoreError, sqlite3.Error, OSError) as error:
            log.write("error", f"a backup cannot be used: {candidate.path}: {error}")
            continue
        try:
            _copied(candidate.path, made)  # a disk that is full must not pass for backups that are bad
            return candidate
        except Damaged as error:
            log.write("error", f"a backup cannot be used: {error}")
            swap.making(folder)
    if newer:
        raise newer
    return None


def _expect_usable(path: str) -> None:
    older.expect_file_ours(path)
    schema, fault = _examined(path)
    if fault or not schema:
        raise backup.damage(path, fault)
    if schema > latest():
        raise _too_new(path, schema)


def _examined(path: str) -> tuple[int, str]:
    """(schema, what is wrong): also that it has tables which are not those of its schema."""
    schema, fault = backup.examine(path)
    if fault or schema > latest():
        return schema, fault
    are_its_own = _are_tables_of(schema, {name for name, _ in _tables_in(path)})
    return schema, "" if are_its_own else f"its tables are not those of schema {schema}"


def _are_tables_of(schema: int, names: set[str]) -> bool:
    ours = {name for name, _ in _tables_of(schema)}
    known = ours.union(name for name, _ in _tables_of(latest()))
    return known & names == ours


def _has_our_tables(path: str) -> bool:
    """Whatever schema it says that it has."""
    return _tables_in(path) == _tables_of(latest())


def _tables_in(path: str) -> set[tuple[str, str]]:
    with backup.read_only(path) as db:
        return set(db.execute(MADE))


@cache
def _tables_of(schema: int) -> set[tuple[str, str]]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        apply(db, upto=schema)
        return set(db.execute(MADE))


def _copied(path: str, made: str) -> None:
    backup.copy(path, made)
    backup.check(made)


def _too_new(path: str, schema: int) -> SchemaTooNew:
    return SchemaTooNew(f"{path} is at schema {schema}, this backstory knows {latest()}; upgrade backstory")


def _reindexed(folder: str, now: int) -> Recovery | None:
    """Where the file is sound, the damage that somebody met is in a keyword index, which can be made anew."""
    path = paths.database(folder)
    if not (faults := _damaged_indexes(path)):
        return None
    try:
        with backup.opened(path) as db:
            _mended_indexes(db)
    except sqlite3.DatabaseError as error:
        if disk.is_of_the_surroundings(error):
            raise
        return _rebuilt(folder, now, faults)
    return Recovery(faults, None, "", rescue.Rescued())


def _damaged_indexes(path: str) -> str:
    """What is wrong with the keyword indexes; '' where nothing is."""
    if not os.path.exists(path):
        return ""
    with backup.opened(path) as db:
        return "; ".join(f"{index}: {error}" for index, error in _index_faults(db))


def _index_faults(db: sqlite3.Connection) -> list[tuple[str, sqlite3.DatabaseError]]:
    faults = []
    for index in fts_indexes(db):
        try:
            db.execute(f"INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', 1)")
        except sqlite3.DatabaseError as error:
            if disk.is_of_the_surroundings(error):
                raise
            faults.append((index, error))
    return faults


def _mended_indexes(db: sqlite3.Connection) -> None:
    for index, _ in _index_faults(db):
        with transaction(db):
            db.execute(f"INSERT INTO {index} ({index}) VALUES ('rebuild')")


def _mended_pieces(db: sqlite3.Connection) -> None:
    from backstory.store import turns

    db.row_factory = sqlite3.Row
    with transaction(db):
        turns.mend_pieces(db)
    db.row_factory = None


def _note(folder: str, at: int, sentence: str) -> None:
    handle = os.open(paths.recovered(folder), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    with open(handle, "w", encoding="utf-8") as file:
        file.write(f"{_when(at)}: {sentence}\n")


def _when(at: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at / 1000))


def _failed(folder: str, what: str, error: Exception) -> StoreError:
    kind = Unavailable if disk.is_of_the_surroundings(error) else StoreError
    why = disk.unusable(error, folder) or f"{error}; mend that and try again"
    return kind(f"{paths.database(folder)}: {what}: {why}")
