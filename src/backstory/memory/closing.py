"""What an answer leaves open: the steps it names as next, and the question or the offer at its end. Pure.

This is a reading of the assistant's words. It is made once, where a turn ends: its expressions take longer to
compile than a session's start may wait.
"""

from __future__ import annotations

import itertools
import re

from backstory.markdown import without_fences

LINE = 240  # characters
MOST_STEPS = 4
BARE = 70  # characters; a shorter question says little without the sentence before
ASKED = "asked: "
CLOSING = 4_000  # characters of an answer in which its end is looked for

_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,2}[.)])\s+")
_SENTENCE = re.compile(r"(?<=[.!?])[\"')*_]*\s+(?=[\"'(*_`]*[A-Z])")
_STEPS = re.compile(
    r"^(?:#{1,6} |\*\*|[-*] )?(?:what(?:'s| is) (?:next|left|still missing)|still (?:to do|open|missing)"
    r"|(?:suggested |possible )?next(?: steps?)?|remaining(?: (?:items?|work|tasks?|steps?|todos?|issues?))?"
    r"|left to do|to-?dos?|not (?:yet done|done yet)|open (?:questions?|points?|items?)|follow-?ups?)\b"
    r"[^\n:]{0,30}?(?::\*{0,2}|\*\*:?|(?<=[a-z])$)[ \t]*",
    re.I | re.M,
)
_OFFER = re.compile(
    r"(?:(?:do you )?want me to|would you like|shall (?:i|we)|should (?:i|we)|next,? (?:i|we)\b|i can also"
    r"|let me know (?:if|whether|when) you(?:'d| would)? (?:want|like)"
    r"|if you(?:'d| would)? (?:want|like),? i can)",
    re.I,
)
_EMPTY = re.compile(
    r"anything else|something else|(?:any|have|other) (?:more |further )?questions|questions\?|what else"
    r"|what would you like|what(?:'s| is) next\?|what do you want to (?:do|work)|how can i help|make sense\?"
    r"|^(?:ready|sound(?:s)? good|ok(?:ay)?|good|right|correct|thoughts)\b[^.]{0,20}\?",
    re.I,
)
_HANDING_IN = re.compile(
    r"\b(?:commit|push|merge|amend|rebase)(?:ted|ing)?\b(?=\W*$|\s+(?:this|these|those|it|them|that|the|and"
    r"|now|your|all|both|everything|changes|what|or|to|a|as|with|first)\b)"
    r"|\b(?:create|make|open|raise|write)\b(?: (?:a|the|new|draft))* (?:pr|pull request|commit)\b",
    re.I,
)


def closing(answer: str) -> list[str]:
    """What an answer names as next, and the question or the offer at its end."""
    text = without_fences(answer)[-CLOSING:].strip()
    return list(dict.fromkeys([*_steps(text), *_question(text)]))


def _steps(text: str) -> list[str]:
    """Below the answer's last heading, or on the line itself."""
    headings = [found for found in _STEPS.finditer(text) if found.start() == _line_start(text, found.start())]
    if not headings:
        return []
    after = text[headings[-1].end() :]
    if re.search(r"^#{1,6} ", after, re.M):
        return []
    line, _, rest = after.partition("\n")
    below = itertools.takewhile(_ITEM.match, rest.strip("\n").splitlines())
    named = [line] if _plain(line) else [_ITEM.sub("", one, count=1) for one in below]
    plain = [one for one in map(_plain, named) if len(one) > 8 and not one.endswith(("?", ":"))]
    return [_short(f"next: {one}") for one in plain[:MOST_STEPS] if not _is_idle(one)]


def _question(text: str) -> list[str]:
    """The last paragraph's, together with a list that it is asked about."""
    blocks = [block for block in re.split(r"\n\s*\n", text) if block.strip(" \n-*_")]
    if not blocks:
        return []
    lines = blocks[-1].splitlines()
    listed: list[str] = []
    while len(lines) > 1 and _ITEM.match(lines[-1]):
        listed.insert(0, lines.pop())
    if _ITEM.match(lines[-1]) or lines[-1].startswith(("#", "|", ">")):
        return []
    sentences = [_plain(one) for one in _SENTENCE.split(lines[-1])]
    if listed:
        asked = _plain(" ".join([sentences[-1], *listed]))
        return [_short(f"{ASKED}{asked}")] if _asks(sentences[-1]) and not _is_idle(asked) else []
    for place in range(len(sentences) - 1, max(len(sentences) - 4, -1), -1):
        sentence = sentences[place]
        if _asks(sentence):
            before = f"{sentences[place - 1]} " if place and len(sentence) < BARE else ""
            return [] if _is_idle(sentence) else [_short(f"{ASKED}{before}{sentence}")]
    return []


def _asks(sentence: str) -> bool:
    return sentence.endswith("?") or bool(_OFFER.match(sentence))


def _is_idle(sentence: str) -> bool:
    """Politeness, or whether to hand in what is done."""
    return bool(_EMPTY.search(sentence) or _HANDING_IN.search(sentence))


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _plain(text: str) -> str:
    return " ".join(re.sub(r"\*\*|__|^#{1,6} ", "", text).split())


def _short(text: str) -> str:
    return text if len(text) <= LINE else text[: LINE - 2].rsplit(" ", 1)[0] + " …"
