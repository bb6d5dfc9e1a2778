"""Which session fits a new branch, and which turns of a session are worth telling. Pure."""

from __future__ import annotations

import math
import re
from itertools import pairwise

from backstory.memory import turn as turns_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from backstory.memory.turn import Turn

FEW_WORDS = 4  # `commit`, `yes please`, `1`
SHORT, LONG = 60, 600  # characters of an answer
STEM = 6  # characters of a word; endings differ
ROW = 3  # words of a branch's name that stand together
BY_CHANCE = 0.5  # texts

_COMMON = frozenset(
    "also better bug bugs change changes fixed found from improve into issue make this update with".split()
)
_NO_OWNERS = frozenset(
    "bug bugfix build chore ci docs feat feature features fix hotfix perf refactor release test".split()
)


def owner(branch: str | None) -> str:
    """`anna` of `anna/fix-the-login`; of `fix/the-login` nobody knows it."""
    before, slash, _ = (branch or "").partition("/")
    return before if slash and before not in _NO_OWNERS else ""


def name_of(branch: str | None) -> re.Pattern[str] | None:
    """What finds the words of a branch's name, without its owner: three in a row, `ent-64`, and how
    single ones begin."""
    parts = re.split(r"[\W_]+", ((branch or "").partition("/")[2] or branch or "").lower())
    telling = {part for part in parts if len(part) > 3 and not part.isdigit() and part not in _COMMON}
    rows = [parts[at : at + ROW] for at in range(len(parts) - ROW + 1)]
    words = [r"[\W_]+".join(map(re.escape, row)) for row in rows if telling.intersection(row)]
    words += [f"{name}-?{at}(?!\\d)" for name, at in pairwise(parts) if name.isalpha() and at.isdigit()]
    words += [
        re.escape(part.removesuffix("ness").removesuffix("ing").rstrip("s")[:STEM])
        for part in parts
        if part in telling
    ]
    return re.compile(f"(?<![^\\W_])(?:{'|'.join(words)})") if words else None


def fitting(name: re.Pattern[str], said: Iterable[tuple[str, str]]) -> list[str]:
    """Of texts with what they are of: what fits the name, best first. A text fits where it has words in a
    row, the number of a ticket, or so many words that hardly one would have them by chance."""
    hits: dict[str, list[set[str]]] = {}
    for key, text in said:
        hits.setdefault(key, []).append(set(name.findall(text.lower())))
    having = [word for words in hits.values() for word in set().union(*words)]
    share = {word: having.count(word) / len(hits) for word in having}
    scores: dict[str, tuple[bool, int]] = {}
    for key, texts in hits.items():
        for words in texts:
            by_chance = math.prod([share[word] for word in words], start=len(hits))
            is_sure = any(map(_is_sure, words))
            if is_sure or (len(words) > 1 and by_chance < BY_CHANCE):
                scores[key] = max(scores.get(key, (False, 0)), (is_sure, len(words)))
    return sorted(scores, key=lambda key: scores[key], reverse=True)


def _is_sure(hit: str) -> bool:
    """A row of words, or a ticket."""
    return not hit.isalnum() or (hit[0].isalpha() and hit[-1].isdigit())


def is_telling(turn: Turn) -> bool:
    """Of those before there were turns, only the prompt is known."""
    return bool(turn.answer or turn.commits or turn.edited or turn.state != turns_of.COMPLETE)


def says_something(turn: Turn) -> bool:
    """More than `hello` or `/review`."""
    return len(turn.asked.split()) >= FEW_WORDS


def is_slight(turn: Turn) -> bool:
    """`thanks`, `push`, a short answer for which nothing was done."""
    if turn.edited or turn.choices or turn.plans:
        return False
    if not says_something(turn):
        return len(turn.answer) < LONG
    return turn.state == turns_of.COMPLETE and not turn.commits and len(turn.answer) < SHORT


def worth_telling(said: Sequence[Turn]) -> list[Turn]:
    """Those that say where a session stands, oldest first. What a slight one committed was done in the turn
    before it; of those that ask the same the last stands for all."""
    kept: list[Turn] = []
    for turn in filter(is_telling, said):
        again = bool(kept) and turn.asked == kept[-1].asked
        if kept and (again or is_slight(turn)):
            before = kept[-1]
            if again:
                turn.edited = list(dict.fromkeys([*before.edited, *turn.edited]))
                turn.answer = turn.answer or before.answer
                kept[-1] = turn
            kept[-1].commits = [*before.commits, *turn.commits]
        elif not is_slight(turn):
            kept.append(turn)
    return kept or [turn for turn in said if is_telling(turn)]
