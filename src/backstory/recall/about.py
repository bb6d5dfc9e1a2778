"""Who a query is about. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

SPEAKERS = ("user", "assistant")


def authors_meant(query: str, names: Sequence[str], is_conversation: bool) -> set[int]:
    """Which authors the query is about, as indexes of names; empty where it is about nobody or everybody."""
    found: set[int] = set()
    spoken = re.findall(r"\w+", query)
    for number, name in enumerate(names):
        if name in SPEAKERS:
            found |= {number} if _speaks(name, query) else set()
            continue
        for at, word in enumerate(spoken):
            parts = [part.lower() for part in (name, *name.split())]
            nickname = (
                at > 0 and word[0].isupper() and len(word) >= 3 and name.lower().startswith(word.lower())
            )
            if word.lower() in parts or nickname:
                found.add(number)
    if not found and is_conversation:
        found = {number for number, name in enumerate(names) if name == _pronoun(query)}
    return set() if len(found) == len(names) else found


def _speaks(role: str, query: str) -> bool:
    """`user` is an ordinary word: it is somebody only where it says or is asked something."""
    said = "said|says|asked|asks|told|wants?|wanted|prefers?|requested|mentioned|decided|likes?|dislikes?"
    pattern = rf"\b(?:did|does|by|from|has) (?:the )?{role}\b|\b{role} (?:{said})\b"
    return re.search(pattern, query, re.IGNORECASE) is not None


def without_names(query: str, names: Sequence[str]) -> str:
    """The query without the authors it names: a name has a meaning of its own that misleads."""
    parts = {part.lower() for name in names if name not in SPEAKERS for part in name.split()}
    kept = [word for word in re.findall(r"\w+", query) if word.lower() not in parts]
    return " ".join(kept) or query


def _pronoun(query: str) -> str | None:
    if re.search(
        r"\byou (?:told|recommended|suggested|said)\b|\bremind me\b|\bour conversation\b", query, re.I
    ):
        return "assistant"
    return "user" if re.search(r"\b(?:I|my|we)\b", query, re.I) else None
