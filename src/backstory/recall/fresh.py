"""Is what a memory says about files still so? Each file's content was noted when the memory was made."""

from __future__ import annotations

import os

from backstory.blob import blob_id
from backstory.model import Memory


def stale(memory: Memory, root: str) -> tuple[str, ...]:
    """`src/auth.py changed since` or `src/auth.py is gone`, for each file of which that is true."""
    found = []
    for path, known in zip(memory.files, memory.hashes, strict=False):
        if known is None:
            continue  # it was not there then, or nothing to compare
        full = os.path.join(root, path)
        if not os.path.lexists(full):
            found.append(f"{_short(full, root)} is gone")
        elif (now := blob_id(full)) is not None and now != known:
            found.append(f"{_short(full, root)} changed since")
    return tuple(found)


def gone(path: str | None) -> str | None:
    return f"{path} is gone" if path and not os.path.lexists(path) else None


def _short(path: str, root: str) -> str:
    return os.path.relpath(path, root) if path.startswith(root + os.sep) else path
