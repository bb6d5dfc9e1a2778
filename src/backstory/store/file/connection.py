"""Opening the one SQLite file, migrations, transactions, and what SQLite's errors are to other rooms.

A migration is a numbered SQL file. Two processes may start on an empty folder at the same moment: each takes
the write lock, looks at the version again, and does only what is still missing.
"""

from __future__ import annotations

import os
import sqlite3
import time

from backstory import paths
from backstory.errors import Busy, Damaged, SchemaTooNew, SchemaTooOld, StoreError, Unavailable
from backstory.store.file import disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeVar

    T = TypeVar("T")

Connection = sqlite3.Connection  # other rooms take the name from here; sqlite3 is imported in the store only
BUSY_SECONDS = 10
TABLES = "SELECT name, sql FROM sqlite_master WHERE type = 'table'"
MIGRATIONS = os.path.join(os.path.dirname(__file__), "migrations")


def connect(path: str, hurry: float | None = None) -> Connection:
    """An up-to-date store. Transactions are explicit: `with transaction(db):`. Who is in a `hurry` waits so
    many seconds for a lock and no longer, and does not bring a store with data up to date."""
    try:
        db = _open(path, BUSY_SECONDS if hurry is None else hurry)
    except (sqlite3.DatabaseError, UnicodeDecodeError, OSError) as error:
        raise refusal(path, error) from error
    try:
        _expect_known(db, path)
        if hurry is not None and 0 < version(db) < latest():
            raise StoreError(f"{path} is about to be brought up to date; try again in a moment")
        migrate(db, path)
    except sqlite3.DatabaseError as error:
        db.close()
        raise refusal(path, error) from error
    except BaseException:
        db.close()
        raise
    return db


def look_into(path: str, why_not: StoreError) -> Connection:
    """An up-to-date store in a folder that cannot be written, to read. Where no log is beside it nobody has
    it open, and SQLite need not make the files by which it would tell others that it reads."""
    if os.path.exists(path) and disk.is_read_only(os.path.dirname(path)) and (db := as_it_is(path)):
        return db
    raise why_not


def as_it_is(path: str) -> Connection | None:
    """A store to read, for who writes nothing: it is neither made nor brought up to date. None where there is
    none of this version."""
    from backstory.store.file import backup

    if not os.path.exists(path):
        return None
    try:
        db = backup.read_only(path, is_alone=not os.path.exists(f"{path}-wal"))
        try:
            if version(db) == latest():
                db.row_factory = sqlite3.Row
                return db
        except BaseException:
            db.close()
            raise
        db.close()
    except sqlite3.DatabaseError:
        pass
    return None


class transaction:
    """`with transaction(db):` is BEGIN IMMEDIATE ... COMMIT.

    A deferred transaction that upgrades later is refused at once when somebody else writes, whatever the
    time-out.
    """

    __slots__ = ("_db",)

    def __init__(self, db: Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self._commit()
        elif self._db.in_transaction:  # SQLite rolls back by itself when the disk is full
            self._db.execute("ROLLBACK")

    def _commit(self) -> None:
        try:
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # references that were to hold at the end do not
                self._db.execute("ROLLBACK")
            raise


class savepoint:
    """`with savepoint(db):` undoes its part of a transaction when it raises, and lets the rest go on."""

    __slots__ = ("_db",)

    def __init__(self, db: Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("SAVEPOINT part")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._db.in_transaction:
            if kind is not None:
                self._db.execute("ROLLBACK TO part")
            self._db.execute("RELEASE part")


class may_be_unavailable:
    """`with may_be_unavailable():` is for who can go on without: what SQLite cannot do now is Unavailable,
    with SQLite's reason. Whatever else SQLite raises, `open_store` translates at its end."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, sqlite3.OperationalError):
            raise _kind(error)(str(error)) from error


def tuples(db: Connection) -> sqlite3.Cursor:
    """A cursor whose rows are plain tuples: for many rows that is faster."""
    cursor = db.cursor()
    cursor.row_factory = None
    return cursor


def value(kind: type[T], row: sqlite3.Row, **others: object) -> T:
    """A value of the model whose fields are columns of a row, but for these others."""
    fields: tuple[str, ...] = kind.__slots__  # type: ignore[attr-defined]
    return kind(**{name: others[name] if name in others else row[name] for name in fields})


def fields(value: object) -> list[object]:
    """What a value of the model has in its fields, in their order."""
    return [getattr(value, name) for name in value.__slots__]  # type: ignore[attr-defined]


def marks(values: Sequence[object]) -> str:
    """A question mark for each of these: what SQL has in their places."""
    return ", ".join("?" * len(values))


def unhurried(db: Connection) -> None:
    """What this connection writes from now on survives a kill; nobody waits until it survives a power cut."""
    db.execute("PRAGMA synchronous = NORMAL")


def wait_at_most(db: Connection, seconds: float) -> None:
    """For the locks of others, from now on: for what is not worth more."""
    db.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")


def sqlite_version() -> str:
    return sqlite3.sqlite_version


def has_fts5() -> bool:
    db = sqlite3.connect(":memory:")
    try:
        db.execute("CREATE VIRTUAL TABLE probe USING fts5 (text)")
    except sqlite3.OperationalError:
        return False
    finally:
        db.close()
    return True


def own_tables(db: Connection) -> list[str]:
    """Those with rows of their own, in the order they were made."""
    ours = {row[1] for row in db.execute("PRAGMA main.table_list") if row[2] == "table"}
    made = db.execute("SELECT name FROM main.sqlite_master WHERE type = 'table' ORDER BY rowid")
    return [row[0] for row in made if row[0] in ours and not row[0].startswith("sqlite_")]


def fts_indexes(db: Connection) -> list[str]:
    made = "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE % USING fts5 (%'"
    return [row[0] for row in db.execute(made)]


def version(db: Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def latest() -> int:
    return max(number for number, _ in _migrations())


def oldest() -> int:
    """The first that this backstory knows."""
    return _migrations()[0][0]


def _expect_known(db: Connection, path: str) -> None:
    at = version(db)
    if at > latest():
        raise SchemaTooNew(f"{path} is at schema {at}, this backstory knows {latest()}; upgrade backstory")
    expect_ours(db, path)


def expect_ours(db: Connection, path: str) -> None:
    """Raise where only backstory 0.1 can read it. The number may be damaged: then the tables are today's."""
    at = version(db)
    if not 0 < at < oldest():
        return
    ours = sqlite3.connect(":memory:", isolation_level=None)
    try:
        apply(ours)
        if set(map(tuple, db.execute(TABLES))) != set(ours.execute(TABLES)):
            raise too_old(path, at)
    finally:
        ours.close()


def too_old(path: str, schema: int) -> SchemaTooOld:
    import shlex

    folder, name = os.path.split(path)
    where = "backstory 0.1 (docs/troubleshooting.md: where it is)"
    if path != paths.database(folder):
        return SchemaTooOld(
            f"run `backstory backup restore {shlex.quote(path)}` and `backstory export memory.jsonl`"
            f" with {where} and BACKSTORY_HOME set to an empty folder, then `backstory import memory.jsonl`"
            f" with this one: that backup is at schema {schema}, of 0.1"
        )
    return SchemaTooOld(
        f"run `backstory export memory.jsonl` with {where},"
        f" `cd {shlex.quote(folder)} && mkdir -p set-aside && mv {name}* set-aside/`,"
        " `backstory import --attach memory.jsonl` with this one:"
        f" the store is at schema {schema}, of 0.1. Capture goes on meanwhile"
    )


def migrate(db: Connection, path: str) -> None:
    newest = latest()
    at = version(db)
    if at == newest:
        return
    if at == 0 or db.execute("SELECT 1 FROM projects LIMIT 1").fetchone() is None:
        apply(db)
        return
    from backstory.store.file import backup  # for a store that is up to date nobody needs it

    home = os.path.dirname(path)
    with backup.alone(home):
        at = version(db)
        if at == newest:
            return  # another process won
        try:
            backup.make_alone(home, int(time.time() * 1000), f"before-{at + 1}")
        except StoreError as error:
            raise type(error)(f"schema {at} is brought up to date only after a backup: {error}") from error
        apply(db)


def apply(db: Connection, upto: int | None = None) -> None:
    """The migrations that are missing, or those of them up to a number."""
    for number, file in _migrations():
        if upto is not None and number > upto:
            break
        with transaction(db):
            if version(db) >= number:
                continue  # another process won
            with open(os.path.join(MIGRATIONS, file), encoding="utf-8") as script:
                for statement in _statements(script.read()):
                    db.execute(statement)
            db.execute(f"PRAGMA user_version = {number}")


def _open(path: str, busy: float) -> Connection:
    paths.make_folder(os.path.dirname(path))
    is_new = not os.path.exists(path)
    if not is_new and os.path.getsize(path) == 0:
        from backstory.store.file import backup

        if backup.listed(os.path.dirname(path)):  # to SQLite it is a new database, and the log goes as well
            raise Damaged(f"{path} is empty, though there are backups of it; `backstory doctor` restores one")
    # Nobody but SQLite may ever open this file: closing it would end the locks of all connections of the
    # process, which is how POSIX locks are, and another process would take the log away from under them.
    db = sqlite3.connect(path, timeout=busy, isolation_level=None)
    db.row_factory = sqlite3.Row
    try:
        if is_new:
            os.chmod(path, 0o600)  # its -wal and -shm files get the same mode
        _use_wal(db, busy)
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        db.close()
        raise
    return db


def _use_wal(db: Connection, busy: float) -> None:
    """The switch to WAL happens once in a store's life and does not wait for locks by itself."""
    deadline = time.monotonic() + busy
    while True:
        try:
            if db.execute("PRAGMA journal_mode = WAL").fetchone()[0] == "wal":
                return
        except sqlite3.OperationalError as error:
            is_lock = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PROTOCOL)
            if not is_lock or time.monotonic() > deadline:
                raise
        if time.monotonic() > deadline:
            raise sqlite3.OperationalError("the file system does not support write-ahead logging")
        time.sleep(0.01)


def _migrations() -> list[tuple[int, str]]:
    return sorted((int(file[:4]), file) for file in os.listdir(MIGRATIONS) if file.endswith(".sql"))


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def is_damage(error: object) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return isinstance(error, Damaged) or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def may_be_damage(path: str, error: BaseException | None) -> bool:
    """Is it worth a look at the whole file? SQL that every store understands is an error where the tables are
    not what they were, and a text may be none any more."""
    is_sql = getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_ERROR
    is_text = isinstance(error, sqlite3.OperationalError) and "decode to UTF-8" in str(error)
    is_place = isinstance(error, IndexError)  # a row's number led outside of its project
    return is_damage(error) or is_sql or is_text or is_place or is_read_only_by_itself(path, error)


def is_read_only_by_itself(path: str, error: BaseException | None) -> bool:
    """A header can say that a file must not be written, though everybody may."""
    if getattr(error, "sqlite_errorcode", 0) != sqlite3.SQLITE_READONLY:
        return False
    return disk.unusable(error, os.path.dirname(path)) is None


def is_busy(error: object) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return isinstance(error, Busy) or code == sqlite3.SQLITE_BUSY


def is_fault_of_the_store(error: Exception) -> bool:
    """Locked, full, damaged: not the fault of what was to be stored."""
    return isinstance(error, sqlite3.OperationalError) or type(error) is sqlite3.DatabaseError


def refusal(path: str, error: Exception, *, is_sound: bool = False) -> StoreError:
    """What other rooms are told. A file that was looked at whole `is_sound`, whatever the error is like."""
    is_unreadable = isinstance(error, UnicodeDecodeError)  # SQLite quotes SQL that it cannot parse
    if is_damage(error) or is_unreadable or (not is_sound and may_be_damage(path, error)):
        return Damaged(
            f"{path} is damaged ({error}); `backstory doctor` restores a backup and says what is lost"
        )
    return _kind(error)(advice(path, error))


def _kind(error: Exception) -> type[StoreError]:
    if is_damage(error):
        return Damaged
    if is_busy(error):
        return Busy
    return Unavailable if isinstance(error, sqlite3.OperationalError) else StoreError


def advice(path: str, error: Exception) -> str:
    """What to do about a database that cannot be used. Whatever it is, the spool keeps what is captured."""
    if isinstance(error, OSError):
        return disk.sentence(error, os.path.dirname(path), path)
    if what_to_do := disk.unusable(error, os.path.dirname(path)):
        return what_to_do
    if "locked" in str(error):
        return f"{path} was busy for {BUSY_SECONDS} s ({error}); try again in a moment"
    return f"{path} cannot be used ({error}); `backstory doctor` looks closer"
