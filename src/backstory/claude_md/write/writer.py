"""The one writer of CLAUDE.md, which is a person's file: nothing of theirs may ever get lost.

A change is made alone: one process at a time. The file is read, changed in memory, written beside itself
and renamed into place, so that whoever reads, and whoever comes after a kill, finds the old file or the new
one. Just before the rename it must still be the file that was read; else all of it is done again. Between
that look and the rename somebody may save another version. So old and new change places in one step, and
what comes out must be what was read, else they change back.

Who has the file open for writing would go on in the old one, which has no name any more. So nothing is
changed as long as somebody has, and what came out must not be open either. What can still be lost is the text
of who is at the file where that cannot be told: on a system other than Linux, on a file system without leases
or exchanges, in another user's file.

What somebody else wrote is backed up (`backups`) before it is replaced.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import TypeVar

from backstory import locks, paths
from backstory.claude_md.write import backups, dynamic
from backstory.claude_md.write.dynamic import Views
from backstory.errors import BackstoryError, BadInput, Conflict
from backstory.ids import new_id

NAME = "CLAUDE.md"
LARGEST = 1_000_000  # bytes; while a larger one is read, others wait
AT_FDCWD, NO_REPLACE, EXCHANGE = -100, 1, 2  # Linux's numbers
PATIENCE = 1.0  # seconds in which the file must come to rest
SETTLED = 0.02  # seconds; what changed later than that may be half written, and its time tells no more
CHANGES = "keeps changing; try again when it has come to rest"
IS_OPEN = "is open for writing in another program; close it there, and try again"

T = TypeVar("T")


class _Unsettled(Exception):
    """Somebody else is at the file just now."""


def put_views(
    folder: str, data: str, views: Views, now: int, *, seconds: float | None = None, is_alone: bool = False
) -> bool:
    """Show these views, (node id, expansion) each, in the CLAUDE.md of a folder. False: there is none.
    Whoever cannot wait for the others as long as usual says for how many seconds."""
    path, root, theirs = os.path.join(folder, NAME), paths.checkout(folder), dynamic.theirs
    change = partial(dynamic.with_views, views=views)
    return rewrite(path, root, data, change, theirs=theirs, now=now, seconds=seconds, is_alone=is_alone)


@contextmanager
def alone(folder: str, data: str, now: int) -> Iterator[bool]:
    """Nobody else of ours writes a CLAUDE.md meanwhile; that of this folder may be changed, and is at rest.
    False: there is none."""
    path, root = os.path.join(folder, NAME), paths.checkout(folder)
    if not os.path.lexists(path):
        yield False
        return
    with _alone(data, None):
        yield _patiently(path, lambda: _look(path, root, data, dynamic.theirs, now)) is not None


def has_views(folder: str) -> bool:
    """Does the CLAUDE.md of a folder have a section of ours? One that cannot be read has none."""
    path = os.path.join(folder, NAME)
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > LARGEST:
            return False
        with open(path, "rb") as file:
            return dynamic.has_section(file.read())
    except OSError:
        return False


def remove_leftover(folder: str, data: str, now: int) -> None:
    """A write that was killed may have left its file beside the CLAUDE.md of a folder; unless somebody writes
    just now, it goes."""
    path = os.path.join(folder, NAME)
    real = os.path.realpath(path)
    if os.path.lexists(_beside(real, data)):
        with suppress(BackstoryError, OSError), _alone(data, 0):
            _put_away(real, data, dynamic.theirs, now)


def rewrite(
    path: str,
    root: str,
    data: str,
    change: Callable[[bytes], bytes],
    *,
    theirs: Callable[[bytes], bytes] = bytes,
    now: int,
    seconds: float | None = None,
    create: bytes | None = None,
    is_alone: bool = False,
) -> bool:
    """Change a file of the project at root. False: there is no such file, and `change` was not called.

    `change` is called again where somebody else changed the file meanwhile. `theirs` says what of the file is
    not ours, and so is worth a backup. With `create`, a file that is not there is made of it, and changed.
    Who `is_alone` already waits for nobody.
    """
    if create is None and not os.path.lexists(path):
        return False

    def attempt() -> bool:
        seen = _look(path, root, data, theirs, now)
        if seen is None:
            if create is None:
                return False
            real = _place(path, root)
            _put_away(real, data, theirs, now)
            _make(path, real, data, _small(path, change(create)))
            return True
        real, text, status, shelf, is_ours = seen
        changed = change(text)
        if changed == text:
            return True
        _small(path, changed)
        if not is_ours:
            backups.back_up(shelf, text, theirs, now)
        _replace(path, real, data, status, changed, shelf, partial(_put_away, real, data, theirs, now))
        return True

    with nullcontext() if is_alone else _alone(data, seconds):
        return _patiently(path, attempt)


def _patiently(path: str, act: Callable[[], T]) -> T:
    deadline = time.monotonic() + PATIENCE
    while True:
        is_last = time.monotonic() > deadline  # begun after it: a machine that stood still proves nothing
        try:
            return act()
        except _Unsettled as what:
            if is_last:
                raise Conflict(f"{_name(path)} {what}") from None
        time.sleep(SETTLED)


def _look(
    path: str, root: str, data: str, theirs: Callable[[bytes], bytes], now: int
) -> tuple[str, bytes, os.stat_result, str, bool] | None:
    """The file at rest: where it is, its text and version, the shelf of its backups, whether it is as we left
    it. None where there is none."""
    _part(os.path.realpath(path), data)
    real = _target(path, root)
    if real is None:
        return None
    if _is_open(real):
        raise _Unsettled(IS_OPEN)
    text, status = _read(path, real)
    shelf = backups.shelf(data, real)
    is_ours = backups.noted(shelf) == backups.digest(text)
    if not is_ours and abs(time.time() - status.st_mtime) < SETTLED:
        raise _Unsettled(CHANGES)
    _put_away(real, data, theirs, now)
    return real, text, status, shelf, is_ours


@contextmanager
def _alone(data: str, seconds: float | None) -> Iterator[None]:
    busy = "another process is changing a CLAUDE.md; try again in a moment"
    try:
        handle = locks.take(os.path.join(data, "claude-md.lock"), busy, seconds)
    except OSError as error:
        raise backups.no_backup(data, error) from error
    try:
        yield
    finally:
        os.close(handle)


# The file.


def _target(path: str, root: str) -> str | None:
    """The file that a path leads to, if it may be changed; None where there is none."""
    try:
        real = os.path.realpath(path, strict=True)
        status, folder = os.stat(real), os.stat(os.path.dirname(real))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _refused(path, f"cannot be read ({error.strerror})") from error
    within(path, real, root)
    if os.path.islink(path) and not real.lower().endswith(".md"):
        raise BadInput(f"{_name(path)} is a link to {_name(real)}, which is no Markdown; remove the link")
    if not stat.S_ISREG(status.st_mode):
        raise BadInput(f"{_name(path)} is not a file that can be changed; put a plain text file in its place")
    if status.st_nlink > 1:
        raise BadInput(
            f"{_name(path)} has a second name (a hard link), and a change would part the two;"
            " make one of them a symbolic link to the other"
        )
    # Root may do anything; a file that nobody may read or write is meant to stay as it is all the same.
    if not (os.access(real, os.R_OK) and status.st_mode & 0o444):
        raise _refused(path, "cannot be read (permission denied)", f"chmod u+r {_name(real)}")
    if not (os.access(real, os.W_OK) and status.st_mode & 0o222):
        raise _refused(path, "cannot be written (permission denied)", f"chmod u+w {_name(real)}")
    if not (os.access(os.path.dirname(real), os.W_OK | os.X_OK) and folder.st_mode & 0o222):
        why = "cannot be replaced, because its folder cannot be written (permission denied)"
        raise _refused(path, why, f"chmod u+wx {_name(os.path.dirname(real))}")
    return real


def _place(path: str, root: str) -> str:
    """Where a file that is not there may be made."""
    if os.path.islink(path):
        raise _refused(path, "is a link that leads nowhere", "remove it, or make the file that it leads to")
    folder, name = os.path.split(path)
    try:
        real = os.path.join(os.path.realpath(folder, strict=True), name)
        mode = os.stat(os.path.dirname(real)).st_mode
    except OSError as error:
        raise _refused(path, f"cannot be made ({error.strerror})") from error
    within(path, real, root)
    if not (os.access(os.path.dirname(real), os.W_OK | os.X_OK) and mode & 0o222):
        why = "cannot be made, because its folder cannot be written (permission denied)"
        raise _refused(path, why, f"chmod u+wx {_name(os.path.dirname(real))}")
    return real


def within(path: str, real: str, root: str) -> None:
    """Refuse a path that leads out of its project."""
    top = os.path.realpath(root)
    if os.path.commonpath([real, top]) != top:
        raise BadInput(
            f"{_name(path)} leads to {_name(real)}, outside of the project {_name(top)},"
            " where backstory changes nothing; put a file in place of the link"
        )
    if ".git" in os.path.relpath(real, top).split(os.sep):
        raise BadInput(
            f"{_name(path)} leads to {_name(real)}, which is git's own; put a file in place of the link"
        )


def _small(path: str, text: bytes) -> bytes:
    if len(text) > LARGEST:
        raise BadInput(f"{_name(path)} would become larger than 1 MB; remove some of what it shows")
    return text


def _is_open(real: str) -> bool:
    """Is the file open for writing? Linux tells: nobody gets a lease to read such a file."""
    if sys.platform != "linux":
        return False
    try:
        handle = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            locks.lease(handle)
        finally:
            os.close(handle)
    except BlockingIOError:
        return _knows_leases(real)
    except OSError:
        pass  # it cannot be told: another user's file, or an odd file system
    return False


def _knows_leases(real: str) -> bool:
    """On some network drives no file gets one; then the answer says nothing about this one."""
    probe = os.path.join(os.path.dirname(real), new_id(".backstory_"))
    try:
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        handle = os.open(probe, os.O_RDONLY)
        try:
            locks.lease(handle)
        finally:
            os.close(handle)
    except OSError:
        return False
    finally:
        with suppress(OSError):
            os.unlink(probe)
    return True


def _read(path: str, real: str) -> tuple[bytes, os.stat_result]:
    """What is in the file, and which version of it that is."""
    try:
        # A pipe that was put there meanwhile must not keep us waiting.
        with open(os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            status = os.fstat(file.fileno())
            text = file.read(LARGEST + 1)
    except FileNotFoundError:
        raise _Unsettled(CHANGES) from None
    except OSError as error:
        raise _refused(path, f"cannot be read ({error.strerror})") from error
    if len(text) > LARGEST:
        raise BadInput(f"{_name(path)} is larger than 1 MB, which is no CLAUDE.md any more; shorten it")
    return text, status


def _replace(
    path: str,
    real: str,
    data: str,
    seen: os.stat_result,
    text: bytes,
    shelf: str,
    put_away: Callable[[], None],
) -> None:
    """Put text in the place of what was seen there, if it has not changed since."""
    made = _beside(real, data)
    try:
        with suppress(FileNotFoundError):
            os.unlink(made)
        try:
            with open(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(text)
                file.flush()
                with suppress(PermissionError):
                    os.chown(made, seen.st_uid, seen.st_gid)
                shutil.copystat(real, made)
                os.utime(made)
                os.fsync(file.fileno())
            backups.note(shelf, real, text)
            if _is_open(real):
                raise _Unsettled(IS_OPEN)
            if os.path.realpath(path) != real or _version(os.stat(real)) != _version(seen):
                raise _Unsettled(CHANGES)
            if not _exchange(made, real):
                os.replace(made, real)
            elif _is_open(made) or _version(os.stat(made))[:-1] != _version(seen)[:-1]:  # the last: renamed
                _exchange(made, real)
                put_away()  # somebody may have been faster again
                raise _Unsettled(CHANGES)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(made)
    except FileNotFoundError:
        raise _Unsettled(CHANGES) from None
    except OSError as error:
        raise _refused(path, f"cannot be written ({error.strerror})") from error


def _make(path: str, real: str, data: str, text: bytes) -> None:
    """Put text where no file is; not if there is one by now."""
    made = _beside(real, data)
    try:
        try:
            # The mode is what the person's umask says.
            with open(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            backups.note(backups.shelf(data, real), real, text)
            if not _rename(made, real, NO_REPLACE):
                os.link(made, real)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(made)
    except FileExistsError:
        raise _Unsettled(CHANGES) from None
    except OSError as error:
        remedy = "make an empty file of that name, and try again"
        raise _refused(path, f"cannot be made ({error.strerror})", remedy) from error


def _part(real: str, data: str) -> None:
    """A kill may have left both names to a file that was just made."""
    with suppress(OSError):
        if os.path.samefile(_beside(real, data), real):
            os.unlink(_beside(real, data))


def _put_away(real: str, data: str, theirs: Callable[[bytes], bytes], now: int) -> None:
    """Remove what a write left beside the file. It may be a version of somebody's that came out when
    ours came in; only ours, which the note names, needs no backup."""
    made, shelf = _beside(real, data), backups.shelf(data, real)
    try:
        with open(os.open(made, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            left = file.read(LARGEST)
        if backups.noted(shelf) != backups.digest(left):
            backups.back_up(shelf, left, theirs, now)
        os.unlink(made)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise _refused(made, f"cannot be removed ({error.strerror})") from error


def _exchange(one: str, other: str) -> bool:
    """Let two files change places in one step. False: this system cannot, or not on this disk."""
    return _rename(one, other, EXCHANGE)


def _rename(one: str, other: str, how: int) -> bool:
    import ctypes

    call = getattr(ctypes.CDLL(None), "renameat2", None)
    return call is not None and call(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), how) == 0


def _beside(real: str, data: str) -> str:
    """Where a new version is made. Always the same, so that what a kill leaves is removed by the next."""
    folder, name = os.path.split(real)
    mark = backups.digest(os.fsencode(os.path.realpath(data)))[:8]
    return os.path.join(folder, f".{name}.backstory-{mark}")


def _version(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _refused(path: str, why: str, remedy: str = "mend that and try again") -> BadInput:
    return BadInput(f"{_name(path)} {why}; {remedy}")


def _name(path: str) -> str:
    return paths.text(path)
