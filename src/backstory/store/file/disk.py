"""A disk that is full, and files and folders that may not be used: the one place that knows what those errors
look like, and what to say about them.

SQLite says 'disk I/O error' of a disk that is too full for its shared memory, and does not tell a file that
cannot be written from a folder that cannot. So the folder is asked, by writing into it.
"""

from __future__ import annotations

import errno
import os
import sqlite3

from backstory import paths

FULL = (errno.ENOSPC, errno.EDQUOT)
FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR)
ROOM = 64 * 1024  # bytes: twice what SQLite needs to open a store
SQLITE_FORBIDDEN = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)
OF_THE_DISK = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, *SQLITE_FORBIDDEN)
SURROUNDINGS = (*OF_THE_DISK, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)


def unusable(error: BaseException | None, home: str) -> str | None:
    """What to do about it, where a full disk or something that may not be used is what an error comes from.
    `home` is the data folder."""
    home = os.path.abspath(home)
    while error is not None:
        if isinstance(error, OSError):
            named = error.filename2 or error.filename
            place = os.path.abspath(os.fsdecode(named)) if isinstance(named, str | bytes) else None
            if error.errno in FULL:
                return _full(place, home)
            if error.errno == errno.ELOOP and place:
                return f"{place} is a link; remove it, and try again"
            if error.errno in FORBIDDEN:
                return _forbidden(error, place or home, home)
        elif isinstance(error, sqlite3.Error) and _code(error) in OF_THE_DISK:
            return _of_sqlite(error, home)
        error = error.__cause__
    return None


def is_read_only(home: str) -> bool:
    refused = _refused(home)
    return refused is not None and refused.errno in FORBIDDEN


def is_of_the_surroundings(error: BaseException) -> bool:
    """A disk, a permission, a lock: that says nothing about what is in a file."""
    return isinstance(error, OSError) or (isinstance(error, sqlite3.Error) and _code(error) in SURROUNDINGS)


def sentence(error: OSError, home: str, place: str = "") -> str:
    """The same, of any error of the data folder, or of a place in it."""
    way_out = "mend that, or set BACKSTORY_HOME to a folder of yours"
    return unusable(error, home) or f"{place or home} cannot be used ({error.strerror}); {way_out}"


def existing(path: str) -> str:
    """The path itself, or what there is of the way to it."""
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return path


def _of_sqlite(error: sqlite3.Error, home: str) -> str | None:
    if refused := _refused(home):
        return unusable(refused, home)
    if _code(error) == sqlite3.SQLITE_FULL:
        return _full(home, home)
    for end in ("", "-wal", "-shm"):
        file = paths.database(home) + end
        if os.path.exists(file) and not os.access(file, os.W_OK):
            return _forbidden(error, file, home)
    return None


def _full(place: str | None, home: str) -> str | None:
    if place is None:  # what was printed may have met it as well, on another disk
        if (refused := _refused(home)) is None or refused.errno not in FULL:
            return None
        place = home
    at = home if _is_inside(place, home) else os.path.dirname(place)
    return f"the disk is full: {at} takes no more; make room and try again"


def _forbidden(error: Exception, place: str, home: str) -> str:
    at, is_ours = existing(place), _is_inside(place, home)
    if at != place and not os.path.isdir(at):
        way_out = "set BACKSTORY_HOME to a folder of yours" if is_ours else "name a place in one that is"
        return f"{at} is no folder; {way_out}"
    if is_ours and getattr(error, "errno", 0) == errno.EROFS:
        at = existing(home)
    while at not in ("/", home) and os.access(at, os.W_OK):
        at = os.path.dirname(at)  # it was not the file but its folder
    reason = error.strerror if isinstance(error, OSError) else error
    way_out = ", or set BACKSTORY_HOME to a folder of yours" if is_ours else ""
    return f"{at} cannot be written ({reason}); make it writable{way_out}"


def _refused(home: str) -> OSError | None:
    """What comes of writing a little into the data folder."""
    path = os.path.join(home, f".probe-{os.getpid()}")
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        return None
    except OSError as error:
        return error
    try:
        os.write(handle, bytes(ROOM))
        wrote = os.fstat(handle).st_size
        return None if wrote == ROOM else OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
    except OSError as error:
        error.filename = path
        return error
    finally:
        os.close(handle)
        os.unlink(path)


def _is_inside(path: str, home: str) -> bool:
    return os.path.commonpath((home, path)) == home


def _code(error: sqlite3.Error) -> int:
    by_itself = sqlite3.SQLITE_FULL if "disk is full" in str(error) else 0  # Python sets no code then
    return getattr(error, "sqlite_errorcode", by_itself) & 0xFF
