"""What a file contains, in 40 characters: the id that git gives it as a blob, computed without git."""

from __future__ import annotations

import os
import stat

NOT_FILES = ("/proc/", "/sys/", "/dev/")  # what is there looks like a file, and some wait for ever
IN_MEMORY = "/dev/shm/"  # noqa: S108  plain files all the same
LARGEST = 4_000_000  # bytes; a file that is larger is not what a memory is about


def blob_id(path: str) -> str | None:
    """None for what is not there, not a plain file, or too large to read while somebody waits."""
    if path.startswith(NOT_FILES) and not path.startswith(IN_MEMORY):
        return None
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe would keep us waiting
        with open(opened, "rb") as file:
            about = os.fstat(opened)
            if not stat.S_ISREG(about.st_mode) or about.st_size > LARGEST:
                return None
            content = file.read(LARGEST + 1)
    except (OSError, ValueError):  # ValueError: a path with a NUL in it
        return None
    return digest(b"blob %d\0%b" % (len(content), content))


def digest(content: bytes) -> str:
    """No secret hangs on it."""
    # Here, because hashlib brings OpenSSL along, which costs a hook more than all its other work.
    try:
        from _sha1 import sha1  # type: ignore[import-not-found]
    except ImportError:
        from hashlib import sha1
    return str(sha1(content, usedforsecurity=False).hexdigest())
