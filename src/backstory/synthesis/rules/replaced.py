"""Which known decisions and preferences a new one replaces. A rule is sure of it in three cases only: the new
one names what it turns away from; it says the same with another number; it takes back what was said."""

from __future__ import annotations

import re
from collections.abc import Sequence

from backstory.model import Memory, Observation
from backstory.synthesis.rules.words import telling

KINDS = ("decision", "preference")
ALIKE = 0.6
READ = 1_000

_NAME = r"[`'\"]?([\w][\w.+#/@-]{0,40})[`'\"]?"
# what is turned away from
_REJECTED = tuple(
    re.compile(pattern, re.I)
    for pattern in (
        rf"\b(?:not|instead of|rather than|no more|no longer(?: use| using)?|stop using|drop(?:ping)?"
        rf"|dropped|over) (?:the |any )?{_NAME}",
        rf"\b(?:switch(?:ed|ing)?|mov(?:e|ed|ing)|migrat(?:e|ed|ing)|away) from (?:the )?{_NAME}",
        rf"\breplac(?:e|ed|ing) (?:the )?{_NAME} (?:with|by)\b",
        rf"\b(?:don't|do not|never) use {_NAME}",
    )
)
_EMPTY = frozenset(
    "the a an any it that this them we you using use to in on for yet more just only so".split()
)
_NEGATION = re.compile(
    r"\b(?:not|no|never|don't|do not|stop|avoid|without|no longer|any ?more|isn't|aren't|needn't)\b", re.I
)
_NUMBER = re.compile(r"\b\d[\w.]*\b")
_CHANGES = re.compile(
    r"\b(?:any ?more|no longer|from now on|instead|switch\w*|mov(?:e|ed|ing) (?:from|to)|migrat\w+|replac\w+"
    r"|drop\w*|now\b|changed|after all|it is)\b",
    re.I,
)


def replaced(now: Observation, known: Sequence[Memory]) -> list[str]:
    """The ids of those that it replaces."""
    return [memory.id for memory in known if replaces(now, memory.kind, memory.title or "", memory.content)]


def replaces(now: Observation, kind: str, title: str, text: str) -> bool:
    if now.kind not in KINDS or kind not in KINDS:
        return False
    said, was = f"{now.title}. {now.text}"[:READ], f"{title}. {text}"[:READ]
    return _replaces(said, rejected(said), was)


def rejected(said: str) -> set[str]:
    """The names of what is no longer wanted."""
    found = {match[1].rstrip(".").lower() for pattern in _REJECTED for match in pattern.finditer(said)}
    return {name for name in found if len(name) >= 2 and name not in _EMPTY}


def _replaces(said: str, gone: set[str], was: str) -> bool:
    if _in_order(said) == _in_order(was):
        return False  # the same again
    if gone:
        wanted = _names(was) - rejected(was)
        # it must have been for what is turned away from, not merely have named it
        return any(name in wanted and _was_for(was, name) for name in gone) and not _is_against(was, gone)
    words, old = _content(said), _content(was)
    alike = len(words & old) / max(1, min(len(words), len(old)))
    if alike < ALIKE or len(words & old) < 2:
        return False
    numbers = (set(_NUMBER.findall(said)), set(_NUMBER.findall(was)))
    if all(numbers) and numbers[0] != numbers[1]:
        return words == old or len(words ^ old) <= 2
    takes_back = bool(_NEGATION.search(said)) != bool(_NEGATION.search(was))
    return takes_back and bool(_CHANGES.search(said)) and alike >= 0.75


def _names(text: str) -> set[str]:
    return {name.rstrip(".").lower() for name in re.findall(r"[\w][\w+#/@-]{0,40}", text)}


def _was_for(was: str, name: str) -> bool:
    plain = re.escape(name)
    return bool(
        re.search(
            rf"\b(?:use|using|uses|with|prefer|chose|choose|go|keep|switch(?:ed)? to|on|run|always|by"
            rf"|in)\b[^.!?]{{0,40}}(?<![\w-]){plain}(?![\w-])"
            rf"|(?<![\w-]){plain}(?![\w-])[^.!?]{{0,30}}\bit is\b|decided: (?:use )?[`'\"]?{plain}(?![\w-])",
            was,
            re.I,
        )
    )


def _is_against(was: str, gone: set[str]) -> bool:
    return bool(rejected(was) & gone)


def _content(text: str) -> set[str]:
    return {word for word in telling(text) if not _NEGATION.fullmatch(word) and not word.isdigit()} - {
        "decided",
        "user",
    }


def _in_order(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
