"""Coming back from a backup: because somebody asks for it, or because the database is damaged.

The new database is built beside the old one and put in its place when it is whole, so whatever is killed or
fails before that changes nothing. The old one is set aside, never deleted.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing, suppress

from backstory import locks, log, paths
from backstory.errors import Damaged, SchemaTooNew, StoreError, Unavailable
from backstory.store.file import backup, rescue, swap
from backstory.store.file.connection import apply, latest, transaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from backstory.store.file.backup import Backup


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
        was = f"the database was damaged ({self.reason})"
        did = f"the backup of {_when(self.backup.at)} was restored" if self.backup else "there was no backup"
        read = {"memories": ("memory", "memories"), "docmem_nodes": ("node", "nodes")}
        rows = {names: self.rescued.rows.get(table, 0) for table, names in read.items()}
        told = [f"{count:,} {one if count == 1 else many}" for (one, many), count in rows.items() if count]
        number = " and ".join(told) or "nothing"
        if not self.rescued.broken:
            lost = "everything in the damaged file could be read and was taken over, nothing is lost"
        elif self.backup:
            lost = f"{number} newer than it could be read from the damaged file; what else is newer is lost"
        else:
            lost = f"{number} could be read from the damaged file; what else was stored is lost"
        return f"{was}; {did}; {lost}. The damaged file is kept as {self.aside}"


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
            raise _failed(folder, error) from error
    log.write("warning", f"{path} was restored; what was there before is kept as {swap.aside(folder, at)}")
    return swap.aside(folder, at)


def verify(folder: str, now: int) -> Recovery | None:
    """After an unclean stop: recover if SQLite finds something wrong with the file."""
    handle = swap.share(folder)
    try:
        wrong = _what_is_wrong(folder)
    finally:
        os.close(handle)
    return recover(folder, now) if wrong else None


def recover(folder: str, now: int) -> Recovery | None:
    """Restore the newest good backup, with all that can still be read of what is newer. None when nothing is
    wrong: another process was faster."""
    with swap.alone(folder):
        try:
            wrong = _what_is_wrong(folder)
            done = _rebuilt(folder, now, wrong) if wrong else _reindexed(folder)
        except (sqlite3.Error, OSError) as error:
            raise _failed(folder, error) from error
    if done:
        log.write("error", done.sentence())
    return done


def notice(folder: str) -> str | None:
    """What recoveries had to say that nobody has acknowledged yet."""
    try:
        with open(_notice(folder), encoding="utf-8") as file:
            return file.read().strip() or None
    except FileNotFoundError:
        return None


def acknowledge(folder: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(_notice(folder))


def _what_is_wrong(folder: str) -> str | None:
    path = paths.database(folder)
    if not os.path.exists(path):
        return None
    if os.path.getsize(path) == 0:
        return "it is empty" if backup.listed(folder) else None
    schema, fault = backup.quick_check(path)
    _expect_known(path, schema)
    return fault or None


def _rebuilt(folder: str, now: int, reason: str) -> Recovery:
    made = swap.making(folder)
    used = _newest_good(folder, made)
    with closing(sqlite3.connect(made, isolation_level=None)) as db:
        if used is None:
            os.chmod(made, 0o600)
        db.execute("PRAGMA synchronous = OFF")  # it is synced when it is whole
        db.execute("PRAGMA foreign_keys = ON")  # as whenever a migration runs
        path, backup_path = paths.database(folder), used.path if used else None
        with closing(rescue.Wreck(path, made + ".scratch", backup_path)) as wreck:
            _expect_known(path, wreck.schema or 0)
            apply(db, upto=wreck.schema)
            rescued = rescue.merge(wreck, db)
        db.execute("PRAGMA foreign_keys = ON")
        apply(db)
    backup.check(made)
    at = swap.free(folder, now)
    done = Recovery(reason, used, swap.aside(folder, at), rescued)
    _note(folder, at, done.sentence())  # from the next line on it is sure to happen
    swap.put(folder, made, at)
    return done


def _newest_good(folder: str, made: str) -> Backup | None:
    """The newest backup that is in order, copied."""
    for one in backup.listed(folder):
        try:
            _expect_usable(one.path)
        except SchemaTooNew:
            raise  # the store was of a newer backstory, which loses less of it
        except (StoreError, sqlite3.Error, OSError) as error:
            log.write("error", f"a backup cannot be used: {one.path}: {error}")
            continue
        try:
            _copied(one.path, made)  # a disk that is full must not pass for backups that are bad
            return one
        except Damaged as error:
            log.write("error", f"a backup cannot be used: {error}")
            swap.making(folder)
    return None


def _expect_usable(path: str) -> None:
    _expect_known(path, backup.check(path))


def _copied(path: str, made: str) -> None:
    backup.copy(path, made)
    backup.check(made)


def _expect_known(path: str, schema: int) -> None:
    if schema > latest():
        raise SchemaTooNew(
            f"{path} is at schema {schema}, this backstory knows {latest()}; upgrade backstory"
        )


def _reindexed(folder: str) -> Recovery | None:
    """Where the file is sound, the damage that somebody met is in a keyword index, which can be made anew."""
    path = paths.database(folder)
    if not os.path.exists(path):
        return None
    reason = ""
    with closing(sqlite3.connect(path, timeout=locks.SECONDS, isolation_level=None)) as db:
        made = "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE % USING fts5 (%'"
        for (index,) in db.execute(made).fetchall():
            try:
                db.execute(f"INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', 1)")
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError as error:
                reason = f"{index}: {error}"
                with transaction(db):
                    db.execute(f"INSERT INTO {index} ({index}) VALUES ('rebuild')")
    return Recovery(reason, None, "", rescue.Rescued()) if reason else None


def _note(folder: str, at: int, sentence: str) -> None:
    handle = os.open(_notice(folder), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    with open(handle, "w", encoding="utf-8") as file:
        file.write(f"{_when(at)}: {sentence}\n")


def _notice(folder: str) -> str:
    return os.path.join(folder, "recovered.txt")


def _when(at: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at / 1000))


def _failed(folder: str, error: Exception) -> StoreError:
    kind = Unavailable if isinstance(error, sqlite3.OperationalError) else StoreError
    if "full" in str(error) or getattr(error, "errno", 0) == 28:
        return kind(f"the disk is too full to restore a backup in {folder} ({error}); make room")
    return kind(f"no backup could be restored in {folder} ({error}); mend that and try again")
