"""What a file contains, in 40 characters: the id that git gives it as a blob, computed without git."""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from backstory.model import Memory

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


def stale(memory: Memory, root: str) -> tuple[str, ...]:
    """`src/auth.py changed since` or `src/auth.py is gone`, for each file of which that is true: each file's
    content was noted when the memory was made."""
    changes = []
    for path, known in zip(memory.files, memory.hashes, strict=False):
        if known is None:
            continue  # it was not there then, or nothing to compare
        full = os.path.join(root, path)
        name = os.path.relpath(full, root) if full.startswith(root + os.sep) else full
        if not os.path.lexists(full):
            changes.append(f"{name} is gone")
        elif (now := blob_id(full)) is not None and now != known:
            changes.append(f"{name} changed since")
    return tuple(changes)
