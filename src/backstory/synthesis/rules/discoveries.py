"""What was found out: the cause of something, or facts that somebody asked for.

Only what was looked up counts. An answer out of the model's head is no discovery, however long, and a
proposal is no fact.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from backstory.model import Item, Observation
from backstory.synthesis.rules.finding import Finding
from backstory.synthesis.rules.phrases import phrases
from backstory.synthesis.rules.prose import (
    SHORTEST,
    is_cause,
    is_next,
    is_proposal,
    is_strong_cause,
    is_talk,
    without_lead,
)
from backstory.synthesis.rules.turns import LOOKING, Turn, inside, text_of
from backstory.synthesis.rules.words import (
    TEXT_CHARS,
    concepts,
    marked_blocks,
    sentence,
    sentences,
    telling,
    title,
    together,
)

MOST = 3
ENOUGH = 4  # points that make a paragraph a discovery
WHOLE = 160  # characters of an answer that says more than yes or no
SHORT, LONG = 50, 80  # characters; less is an answer, not a finding, the more so if it gives no cause
ROOM = TEXT_CHARS + 160  # an answer to one question may have several parts
LOOKED_AT = 60  # tool uses of a turn whose words count as evidence

_RESEARCH = phrases(r"""
    look (?:into|at|up) | have a look | find out | investigat\w+ | research | compare | figure out
    | analy[sz]e | why | check (?:whether|if|how|why|what|which)
    | how (?:does|do|is|are|come|many|much|long|big|fast) | what (?:does|do|is|are|happens|limits?|would)
    | what's | which | where (?:does|do|is|are) | is there | are there | dig into | explore | understand
    | explain | read (?:up|the|through) | measure | benchmark | profile | track down | try | experiment
    | can't | cannot | doesn't | fails? | failing | error | wrong | broken
""")
_LEFT = phrases(r"""
    anything (?:left|else) | what(?:'s| is) (?:left|next|missing) | status | summar\w+ | what did (?:we|you)
""")
_ANSWERS = re.compile(
    r"(?:no|nope|nothing|none|neither|they are fine|it(?:'s| is) fine|all good)\b",
    re.I,
)
_ASIDE = re.compile(
    r"(?:nothing was changed|ruled out|it(?:'s not| is not| isn't)|not the|i (?:also )?(?:checked|looked"
    r"|ruled)|i (?:did not|didn't|haven't) (?:change|touch)|the .{0,40} (?:is|was) deleted"
    r"|i (?:could not|couldn't|can't|cannot|don't) (?:find|see|tell|know)"
    r"|next steps?|(?:my )?(?:suggestion|recommendation)|suggest)",
    re.I,
)
_ANAPHORA = re.compile(r"(?:so|it|this|that|they|these|those|which|therefore|then|also)\b", re.I)
_SURPRISE = phrases(r"""
    turns out | turned out | gotcha | beware | undocumented | surpris\w+ | worth knowing
    | interesting(?:ly)?
""")
_LIMIT = phrases(r"""
    limit(?:s|ed)? | at most | at least | only (?:works|supports?|accepts?|since|from|with|if|when|one|the)
    | requires? | needs | must | cannot | can't | not supported | deprecated | ignores? | silently
    | defaults? | undocumented | expires? | times? out
""")
_CONDITION = phrases(r"when | if | whenever | unless | until | as soon as | only after | every time | while")
_NUMBER = re.compile(
    r"\b\d[\d.,]{0,20}\s?(?:ms|s|seconds?|minutes?|hours?|days?|kb|mb|gb|mib|gib|%|requests?|rows?|lines?"
    r"|times|x|characters|bytes|tokens?|connections?)(?!\w)|\bmilliseconds?\b"
    r"|\bv?\d{1,6}\.\d{1,6}(?:\.\d{1,6})?\b",
    re.I,
)
_NAME = re.compile(
    r"`[^`\n]{2,80}`|\b[\w-]{1,60}\.(?:py|js|ts|tsx|go|rs|rb|java|toml|ya?ml|json|md|conf|ini|sh|sql|env|txt"
    r"|cfg|xml|css|html|lock|c|h|cpp)\b|\b\w{1,60}\(\)|\b\w{1,60}=\w"
)


def discovered(turn: Turn, work: Sequence[Finding], root: str) -> list[Finding]:
    """`work` are the findings about what was done in the turn."""
    if turn.end is None or not turn.ended or not any(_looks(item) for item in turn.items):
        return []
    asked = (turn.prompt or turn.request)[:2_000]
    if _LEFT.search(asked):
        return []
    if work or turn.edited:
        return _surprises(turn, turn.end, work, root)
    if not _RESEARCH.search(asked) and "?" not in asked:
        return _lessons(turn, turn.end, root) if turn.recovered else []
    question = telling(asked)
    told = [
        (_points(block, turn, question), place, block, is_topic)
        for place, (block, is_topic) in enumerate(_paragraphs(turn.said))
    ]
    facts = sorted((one for one in told if one[0] >= ENOUGH), reverse=True)
    topics = [one for one in facts if one[3]]
    best = topics[:MOST] if len(topics) > 1 else facts[: _questions(asked)]
    return [_finding(turn, turn.end, block, root) for _, _, block, _ in sorted(best, key=lambda one: one[1])]


_ASKED = re.compile(
    r"(?:^|[.?!:,;]\s+|\b(?:and|or|but|also)\s+)(?:and |or |also )?(?:what|why|how|which|where|when|who"
    r"|is|are|does|do|did|has|have|will|whether|can (?!you\b)\w+|could (?!you\b)\w+)\b",
    re.I | re.M,
)


_TASKS = phrases(r"""
    look (?:into|at|up) | find out | figure out | investigate | research | compare | check | measure
    | benchmark | profile | explain | tell me | analy[sz]e
""")


def _questions(asked: str) -> int:
    """How many things were asked: the answer to one question is one discovery, however long it is."""
    found = len(_ASKED.findall(asked)) if "?" in asked else len(_TASKS.findall(asked))
    return min(MOST, max(1, found))


def _lessons(turn: Turn, end: int, root: str) -> list[Finding]:
    """Something failed and then passed though nothing was edited: what was missing, where the end says so."""
    for block, _ in _paragraphs(turn.said):
        facts = [one for one in _facts(block) if is_cause(one) and (_NAME.search(one) or _LIMIT.search(one))]
        if facts:
            return [_finding(turn, end, " ".join(facts), root)]
    return []


def _looks(item: Item) -> bool:
    return item.action in LOOKING


def _paragraphs(said: str) -> list[tuple[str, bool]]:
    """The paragraphs of a message, and whether each has a name of its own. What stands under such a name is
    a thing by itself; a list without names is one paragraph, with the sentence that announces it."""
    found: list[tuple[str, bool]] = []
    listing = False
    for block, is_item, is_topic in marked_blocks(said):
        last = found[-1][0] if found else ""
        if is_item and not is_topic and (listing or last.endswith(":")):
            # 'Two causes:' says nothing by itself
            says = listing or len(last) >= LONG or _NUMBER.search(last) or _NAME.search(last)
            found[-1] = (f"{last} {_stop(block)}" if says else _stop(block), found[-1][1])
        else:
            found.append((_stop(block) if is_item else block, is_topic))
        listing = is_item and not is_topic
    return found


def _stop(item: str) -> str:
    return item if item[-1] in ".!?:" else f"{item}."


def _points(block: str, turn: Turn, question: set[str]) -> int:
    """Names, numbers, limits and causes make a fact; so do words that were seen or asked for."""
    facts = _facts(block)
    text = " ".join(facts)
    if len(text) < (SHORT if is_strong_cause(text) else LONG) or _ANSWERS.match(block) or _ASIDE.match(block):
        return 0
    words = telling(text)
    points = min(2, len(_NAME.findall(text))) + min(2, len(_NUMBER.findall(text)))
    points += 2 if is_strong_cause(text) else 1 if is_cause(text) else 0
    points += bool(_LIMIT.search(text)) + bool(words & question) + bool(_CONDITION.search(text))
    points += len(text) >= WHOLE and turn.said.lstrip("*_# ").startswith(block[:20])
    proposals = sum(is_proposal(one) for one in sentences(block))
    points -= 3 if proposals >= len(facts) else 2 * (proposals > 0)
    if points == ENOUGH - 1:  # looking for it takes a while
        points += len(words & _evidence(turn)) >= 3
    return points


def _facts(block: str) -> list[str]:
    found = []
    for one in sentences(block):
        empty = len(one) < SHORTEST or one.endswith(("?", ":")) or is_talk(one) or bool(_ASIDE.match(one))
        if not (empty or is_next(one) or is_proposal(one)):
            found.append(without_lead(one))
    return found


def _evidence(turn: Turn) -> set[str]:
    """Words of what was read and printed in this turn."""
    found: set[str] = set()
    for item in turn.items[-LOOKED_AT:]:
        found |= telling(item.path)
        for value in item.output.values() if isinstance(item.output, dict) else ():
            found |= telling(text_of(value)[:3_000])
    return found


def _finding(turn: Turn, end: int, block: str, root: str) -> Finding:
    facts = _facts(block)
    head = max(facts, key=lambda one: _weight(one) + (one is facts[0]))
    kept = set(together(sorted(map(sentence, facts), key=lambda one: -_weight(one)), ROOM).split())
    text = together((sentence(one) for one in facts if set(sentence(one).split()) <= kept), ROOM)
    named = [item for item in turn.items if item.path and item.path.rsplit("/", 1)[-1] in block]
    files = dict.fromkeys(inside(item.path, root) or item.path for item in named)
    observation = Observation(
        kind="discovery",
        title=title(head),
        text=text,
        files=tuple(files)[:10],
        concepts=concepts((head, text)),
        cites=(*(item.id for item in named[:10]), end),
    )
    causes = [sentence(one) for one in facts if is_cause(one)]
    return Finding(observation, end, learned=together(causes[:2] or [sentence(head)], 300))


def _weight(one: str) -> int:
    """How well a sentence stands for its paragraph: a cause first, then names and numbers."""
    points = 3 * is_strong_cause(one) + is_cause(one) + bool(_NAME.search(one)) + bool(_NUMBER.search(one))
    return points - 4 * bool(_ANAPHORA.match(one)) - (len(one) < 30)


def _surprises(turn: Turn, end: int, work: Sequence[Finding], root: str) -> list[Finding]:
    """Beside work that was done: only what is said to be surprising, and is not what the work was about."""
    told = {word for one in work for word in telling(f"{one.observation.title} {one.observation.text}")}
    names = [file.rsplit("/", 1)[-1] for one in work for file in one.observation.files]
    for block, _ in _paragraphs(turn.said):
        facts = [
            one for one in _facts(block) if _SURPRISE.search(one) and (is_cause(one) or _LIMIT.search(one))
        ]
        about_work = len(telling(" ".join(facts)) & told) > 2 or any(name in block for name in names)
        if facts and not about_work:
            return [_finding(turn, end, " ".join(facts), root)]
    return []
