"""Lists of phrases as one pattern, so that a rule's vocabulary can be read."""

from __future__ import annotations

import re


def phrases(listed: str) -> re.Pattern[str]:
    """A pattern for any of these, as whole words and in any case. They are separated by a bar that stands
    between spaces; each may be a small pattern itself."""
    parts = [part.strip() for part in re.split(r"\s\|\s", " ".join(listed.split()))]
    # \b between two signs that are no letters is no boundary, so it is asked for only where a letter stands
    return re.compile(
        "|".join(f"{_edge(part[0])}(?:{part}){_edge(part[-1])}" for part in parts if part), re.I
    )


def _edge(sign: str) -> str:
    return r"\b" if sign.isalnum() or sign in "()?*+}" else ""
