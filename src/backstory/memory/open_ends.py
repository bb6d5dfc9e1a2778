"""What a turn leaves open. Pure.

A check that fails and files that nobody committed are facts. What the assistant asked or offered last is a
reading of its words, and the next prompt answers it: whoever wants that asks about a session's last turn.
"""

from __future__ import annotations

import itertools
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from backstory.memory.turn import Turn

LINE = 240  # characters
MOST_STEPS, MOST_FAILING, MOST_FILES = 4, 3, 4
BARE, ABOUT = 70, 120
ASKED = "asked: "
CLOSING = 4_000  # characters of an answer in which its end is looked for

_FENCED = re.compile(r"^```.*?^```[^\n]*$|^```.*\Z", re.M | re.S)
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
_CHECK = re.compile(r"test|spec\b|build|compile|check|lint|vet\b|mypy|tsc\b|ruff|tox\b|make\b|\bci\b", re.I)
_MISUSE = re.compile(r"unknown (?:flag|option)|command not found|no such file|usage:", re.I)


def open_ends(turn: Turn) -> list[str]:
    """A plain line for each thing that is open after a turn; its assistant's last question first."""
    lines = closing(turn.answer)
    if lines and len(lines[-1]) < BARE and lines[-1].startswith(ASKED) and turn.asked:
        lines[-1] = f"{lines[-1]} (on: {_short(turn.asked, ABOUT)})"  # 'Which option?' says nothing alone
    failing = [one for check, one in turn.failing.items() if _CHECK.search(check) and _is_open(one, turn)]
    lines += [
        _short(f"failing: {command}" + (f": {error}" if error else ""))
        for command, error in failing[-MOST_FAILING:]
    ]
    if files := turn.uncommitted:
        more = f" and {len(files) - MOST_FILES} more" if len(files) > MOST_FILES else ""
        lines.append(f"uncommitted: {', '.join(files[:MOST_FILES])}{more}")
    return lines


def _is_open(failure: list[str], turn: Turn) -> bool:
    """What failed before a turn that committed did not matter; nor does a command that was mistyped."""
    return (failure in turn.failed or not turn.commits) and not _MISUSE.search(failure[1])


def closing(answer: str) -> list[str]:
    """What an answer names as next, and the question or the offer at its end."""
    text = _FENCED.sub("", answer[-CLOSING:]).strip()
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


def _short(text: str, most: int = LINE) -> str:
    return text if len(text) <= most else text[: most - 2].rsplit(" ", 1)[0] + " …"
