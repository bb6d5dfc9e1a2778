"""Locks between processes: who has a file locked (flock) is alone with what the file stands for.

A lock ends when its descriptor is closed, so it ends with its process, however that ends. Every function that
takes one gives the descriptor; `os.close` gives the lock back. The files stay: a file that is removed while
others wait for it would be locked twice.

fcntl is imported by who needs it: a hook that finds nothing to do loads this module and no more.
"""

from __future__ import annotations

import os
import time

from backstory import paths
from backstory.errors import StoreError

SECONDS = 10.0  # as long as SQLite waits for a lock
PAUSE_SECONDS = 0.02  # between two tries


def take(path: str, busy: str, seconds: float | None = None, *, shared: bool = False) -> int:
    """Lock a file, which is made if it is not there. `shared`: together with all who share it. Where another
    process keeps it for so many seconds, a StoreError says that it is `busy`."""
    handle = _open(path)
    if not _wait_or_close(handle, SECONDS if seconds is None else seconds, shared):
        raise StoreError(busy)
    return handle


def try_to_take(path: str) -> int | None:
    """The same for who does not wait: None where another process has it."""
    handle = _open(path)
    return handle if _wait_or_close(handle, 0) else None


def is_held(path: str) -> bool:
    """Has a process this file locked for itself? Any number of processes may ask at the same moment."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    if _wait_or_close(handle, 0, shared=True):
        os.close(handle)
        return False
    return True


def wait(handle: int, seconds: float | None, *, shared: bool = False, pause: float = PAUSE_SECONDS) -> bool:
    """Lock an open file or folder; False where others keep it for so many seconds. None is any time."""
    import fcntl

    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    deadline = None if seconds is None else time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(handle, kind if deadline is None else kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if deadline is not None and time.monotonic() >= deadline:
                return False
        time.sleep(pause)


def write_pid(handle: int) -> bool:
    """Put our pid into a locked file. True where there was one: its process did not come to `clear_pid`."""
    was_killed = os.fstat(handle).st_size > 0
    clear_pid(handle)
    os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
    return was_killed


def clear_pid(handle: int) -> None:
    os.ftruncate(handle, 0)


def pid_in(path: str) -> int | None:
    try:
        with open(path, "rb") as file:
            text = file.read(20).strip()
    except FileNotFoundError:
        return None
    return int(text) if text.isdigit() else None


def lease(handle: int) -> None:
    """Take a lease to read an open file, and give it back: BlockingIOError where a process has the file open
    for writing, or where the file system knows no leases. Linux only."""
    import fcntl
    import signal

    # Who opens the file while we have the lease waits until it is given back, and we get a signal: SIGIO
    # would end us; SIGURG is ignored by all who do not ask for it.
    fcntl.fcntl(handle, fcntl.F_SETSIG, signal.SIGURG)
    fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_UNLCK)  # a forked process may keep it open


def _open(path: str) -> int:
    paths.make_folder(os.path.dirname(path))
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _wait_or_close(handle: int, seconds: float, shared: bool = False) -> bool:
    is_ours = False
    try:
        is_ours = wait(handle, seconds, shared=shared)
    finally:
        if not is_ours:
            os.close(handle)
    return is_ours
