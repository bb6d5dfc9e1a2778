"""A file that a user asked for, written at once."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

from backstory.errors import BadInput
from backstory.ids import new_id

HANDLES = "/proc/self/fd"


@contextmanager
def whole_file(path: str, *, replaces: bool = False, mode: int | None = None) -> Iterator[IO[bytes]]:
    """To write a file that is there whole or not at all; another one only gives way where it is to be
    replaced. Without a `mode` it has that of the one it replaces, or what is usual."""
    beside = os.path.join(os.path.dirname(path), new_id(".backstory_"))
    try:
        with open(_opened(beside, 0o666 if mode is None else mode), "wb") as made:
            if mode is None and replaces and os.path.exists(path):
                os.fchmod(made.fileno(), stat.S_IMODE(os.stat(path).st_mode))
            yield made
            made.flush()
            os.fsync(made.fileno())
            is_named = os.fstat(made.fileno()).st_nlink > 0
            if not is_named:
                _name(made.fileno(), beside if replaces else path)
        if replaces:
            os.replace(beside, path)
        elif is_named:
            os.link(beside, path)  # fails where a file has come meanwhile
    except FileExistsError as error:
        raise BadInput(f"{path} is there already; name a new file, or remove that one first") from error
    except OSError as error:
        raise BadInput(f"{path} cannot be written ({error.strerror}); name another file") from error
    finally:
        with suppress(OSError):  # mostly it is not there any more
            os.unlink(beside)


def _opened(beside: str, mode: int) -> int:
    """Without a name where there can be such files, so that nothing is left of one whose writer is killed."""
    flags = os.O_WRONLY | os.O_CLOEXEC
    try:
        os.stat(HANDLES)
        return os.open(os.path.dirname(beside) or ".", flags | os.O_TMPFILE, mode)
    except (AttributeError, OSError):  # on macOS there are none, nor in every file system
        return os.open(beside, flags | os.O_CREAT | os.O_EXCL, mode)


def _name(handle: int, path: str) -> None:
    # With a folder, which an absolute path makes no use of, Python has the system follow the link.
    os.link(f"{HANDLES}/{handle}", path, src_dir_fd=handle, follow_symlinks=True)
