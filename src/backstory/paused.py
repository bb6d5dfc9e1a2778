"""The file `paused` in the data folder: the folders where nothing is captured, one a line, or `*` for all.

It is there only while something is paused. hook.sh reads it too, surfaces/cli/pausing.py writes it.
"""

from __future__ import annotations

import os

MOST_BYTES = 1_000_000


def path(data: str) -> str:
    return os.path.join(data, "paused")


def folders(data: str) -> list[str]:
    try:
        with open(path(data), encoding="utf-8", errors="surrogateescape") as file:
            return file.read(MOST_BYTES).splitlines()
    except OSError:
        return []


def is_paused(data: str, folder: str) -> bool:
    """Whether a folder, or one above it, is paused."""
    here = os.path.join(os.path.realpath(folder), "")
    return any(line == "*" or (line and here.startswith(os.path.join(line, ""))) for line in folders(data))
