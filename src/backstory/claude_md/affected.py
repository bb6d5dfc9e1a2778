"""Which CLAUDE.md files a changed path bears on: the one at the root, the nearest one above it, and, of a
folder, all of those in it. Pure."""

from __future__ import annotations

import os
from collections.abc import Sequence


def bears_on(path: str, root: str, places: Sequence[str]) -> list[str]:
    """The managed files, by their places (`CLAUDE.md`, `api/CLAUDE.md`); none for a path outside."""
    above = root.rstrip("/") + "/"
    if not (path + "/").startswith(above):
        return []
    below = (path + "/").removeprefix(above).rstrip("/")
    nearest = max((one for one in map(os.path.dirname, places) if _is_in(below, one)), key=len, default="")
    return [
        place
        for place in places
        if (folder := os.path.dirname(place)) in ("", nearest) or _is_in(folder, below)
    ]


def _is_in(path: str, folder: str) -> bool:
    return not folder or f"{path}/".startswith(f"{folder}/")
