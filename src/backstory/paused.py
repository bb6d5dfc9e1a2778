"""Where capture is paused. hook.sh reads the same file: no file, nothing is paused."""

from __future__ import annotations

import os

FILE = "paused"  # in the data folder: the folders that are paused, one a line, or `*`
MOST_BYTES = 1_000_000


def is_paused(folder: str, at: str) -> bool:
    """Whether a folder, or one above it, is paused."""
    try:
        with open(os.path.join(folder, FILE), encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read(MOST_BYTES).splitlines()
    except OSError:
        return False
    here = os.path.join(os.path.realpath(at), "")
    return any(line == "*" or (line and here.startswith(os.path.join(line, ""))) for line in lines)
