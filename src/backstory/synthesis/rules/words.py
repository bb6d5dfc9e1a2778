"""Words of a text: on one line, short, and the ones that say something."""

from __future__ import annotations

import re

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[\"'(*`]*[A-Z\d])")
_MARKUP = re.compile(r"\*\*|__|^#{1,6} |^[ \t]*(?:[-*+•]|\d{1,2}[.)]) ", re.M)
_LINK = re.compile(r"\[([^\]\n]{1,200})\]\([^)\n]{1,500}\)")
_COMMON = frozenset(
    "a an the this that these those it its is are was be and or of to in on at for with from by as so we i"
    " you your my our me us do does did can could would should will please now then also just not no yes ok"
    " okay go ahead all have has let lets make sure thanks thank sounds good looks great here there".split()
)


def line(text: str) -> str:
    """On one line, without markup and signs that no reader sees."""
    plain = _LINK.sub(r"\1", _MARKUP.sub("", text))
    return " ".join("".join(sign if sign.isprintable() else " " for sign in plain).split())


def shorten(text: str, most: int) -> str:
    """At most so long: whole sentences where one fits, else whole words."""
    if len(text) <= most:
        return text
    end = max((found.start() for found in _SENTENCE.finditer(text[: most + 1])), default=0)
    if end > most // 2:
        return text[:end]
    return text[: most - 1].rsplit(" ", 1)[0].rstrip(" ,;:") + "…"


def sentences(text: str) -> list[str]:
    return [one for one in _SENTENCE.split(text) if one]


def telling(text: str) -> set[str]:
    return {word for word in re.findall(r"[\w'-]+", text.lower()) if word not in _COMMON}
