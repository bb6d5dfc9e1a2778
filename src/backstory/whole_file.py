"""A file that a user asked for, written at once."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

from backstory.errors import BadInput
from backstory.ids import new_id


@contextmanager
def whole_file(path: str, *, replaces: bool = False, mode: int | None = None) -> Iterator[IO[bytes]]:
    """To write a file that is there whole or not at all; another one only gives way where it is to be
    replaced. Without a `mode` it has that of the one it replaces, or what is usual."""
    beside = os.path.join(os.path.dirname(path), new_id(".backstory_"))
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        with open(os.open(beside, flags, 0o666 if mode is None else mode), "wb") as made:
            if mode is None and replaces and os.path.exists(path):
                os.fchmod(made.fileno(), stat.S_IMODE(os.stat(path).st_mode))
            yield made
            made.flush()
            os.fsync(made.fileno())
        (os.replace if replaces else os.link)(beside, path)  # a link fails where a file has come meanwhile
    except FileExistsError as error:
        raise BadInput(f"{path} is there already; name a new file, or remove that one first") from error
    except OSError as error:
        raise BadInput(f"{path} cannot be written ({error.strerror}); name another file") from error
    finally:
        with suppress(OSError):  # mostly it is not there any more
            os.unlink(beside)
