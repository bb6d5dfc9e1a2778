"""Putting another file in the place of the database, while nobody has it in hand.

Whoever uses the store shares a lock; whoever replaces the file is alone. Without it, a drain could store
events in a file that has just been set aside, and then remove their payloads.

    backstory.db.making      being built; worth nothing
    backstory.db.incoming    complete: from the moment it has this name it is the database, and whoever comes
                             next puts it in its place
    set-aside/               what was the database before, with its write-ahead log; never deleted
"""

from __future__ import annotations

import os
import time

from backstory import locks, paths
from backstory.errors import Unavailable
from backstory.store.file import disk

# What SQLite keeps beside a database, and would take for the next one's.
BESIDE = ("-wal", "-shm", "-journal")


def share(folder: str, seconds: float | None = None) -> int:
    """The lock of all who use the store. Closing the descriptor ends it."""
    while True:
        handle = _lock(folder, seconds, shared=True)
        if not os.path.exists(_incoming(folder)):
            return handle
        os.close(handle)  # somebody died half-way
        with alone(folder):
            pass


class alone:
    """`with alone(folder):` nobody else uses the store, and no swap is unfinished."""

    __slots__ = ("_folder", "_handle")

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        self._handle = _lock(self._folder)
        try:
            _finish(self._folder)
        except BaseException:
            os.close(self._handle)
            raise

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        os.close(self._handle)


def making(folder: str) -> str:
    """Where to build the new database. What an earlier attempt left there is gone."""
    path = paths.database(folder) + ".making"
    remove(path)
    return path


def remove(path: str, ends: tuple[str, ...] = ("", *BESIDE)) -> None:
    """A database that may be there, and what is beside it."""
    for end in ends:
        try:
            os.unlink(path + end)
        except FileNotFoundError:
            pass


def aside(folder: str, at: int) -> str:
    """Where a database is set aside at this time."""
    return os.path.join(folder, "set-aside", f"backstory-{stamp(at)}.db")


def free(folder: str, now: int) -> int:
    """The first second from now on in which nothing has been set aside."""
    while any(os.path.lexists(aside(folder, now) + end) for end in ("", *BESIDE)):
        now += 1_000
    return now


def put(folder: str, made: str, at: int) -> None:
    """What was made becomes the database, and the present one is set aside. Only for who is alone."""
    os.utime(made, (at // 1000, at // 1000))  # so that whoever finishes this knows where to
    sync(made)
    os.rename(made, _incoming(folder))
    sync(folder)
    _finish(folder)


def stamp(at: int) -> str:
    """A time for the name of a file: it sorts."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(at // 1000))


def sync(path: str) -> None:
    """On disk, also when the power goes."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _finish(folder: str) -> None:
    """Every step may be the last before a kill, and all may be done again."""
    path, incoming = paths.database(folder), _incoming(folder)
    try:
        target = aside(folder, int(os.stat(incoming).st_mtime) * 1000)
    except FileNotFoundError:
        return
    paths.make_folder(os.path.dirname(target))
    if os.path.lexists(path):
        try:
            os.link(path, target)  # not a rename: there is a database at any moment
        except FileExistsError:
            pass  # so far somebody had come
        except OSError:
            os.rename(path, target)  # a file system without links, or no file
    for end in BESIDE:  # the log goes before the database: the next one must never meet it
        if os.path.lexists(path + end):
            os.rename(path + end, target + end)
    os.replace(incoming, path)
    sync(folder)


def _incoming(folder: str) -> str:
    return paths.database(folder) + ".incoming"


def _lock(folder: str, seconds: float | None = None, *, shared: bool = False) -> int:
    busy = "another process is restoring the database, or uses it; try again in a moment"
    try:
        return locks.take(os.path.join(folder, "store.lock"), busy, seconds, shared=shared)
    except OSError as error:
        raise Unavailable(disk.sentence(error, folder)) from error
