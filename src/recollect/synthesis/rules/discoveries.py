"""What was found out: the cause of something, or facts that somebody asked for.

Only what was looked up counts. An answer out of the model's head is no discovery, however long, and a
proposal is no fact.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from recollect.model import Observation
from recollect.synthesis.rules.finding import Finding
from recollect.synthesis.rules.prose import (
    is_cause,
    is_next,
    is_proposal,
    is_strong_cause,
    is_talk,
    without_lead,
)
from recollect.synthesis.rules.turns import LOOKING, Turn, inside, text_of
from recollect.synthesis.rules.words import (
    TEXT_CHARS,
    blocks,
    concepts,
    sentence,
    sentences,
    telling,
    title,
    together,
)

MOST = 3
ENOUGH = 4  # points that make a paragraph a discovery
SHORT = 80  # characters; less is an answer, not a finding

_RESEARCH = re.compile(
    r"\b(?:look (?:into|at|up)|have a look|find out|investigat\w+|research|compare|figure out"
    r"|check (?:whether|if|how|why|what|which)|analy[sz]e|why|how (?:does|do|is|are|come|many|much|long|big"
    r"|fast)"
    r"|what (?:does|do|is|are|happens|limits?|would)|which|where (?:does|do|is|are)|is there|are there"
    r"|dig into|explore|understand|explain|read (?:up|the|through)|measure|benchmark|profile|track down"
    r"|can't|cannot|doesn't|fails?|failing|error|wrong|broken)\b",
    re.I,
)
_LEFT = re.compile(
    r"\b(?:anything (?:left|else)|what(?:'s| is) (?:left|next|missing)|status|summar\w+|what did (?:we"
    r"|you))\b",
    re.I,
)
_NEGATIVE = re.compile(
    r"(?:no\b|nope|nothing|none|neither|they are fine|it(?:'s| is) fine|all good|yes\b)", re.I
)
_NUMBER = re.compile(
    r"\b\d[\d.,]*\s?(?:ms|s|seconds?|minutes?|hours?|days?|kb|mb|gb|mib|gib|%|requests?|rows?|lines?|times"
    r"|x|characters|bytes|tokens?|connections?)\b|\bmilliseconds?\b|\bv?\d+\.\d+(?:\.\d+)?\b",
    re.I,
)
_LIMIT = re.compile(
    r"\b(?:limit(?:s|ed)?|at most|at least|only (?:works|supports?|accepts?|since|from|with|if|when|one"
    r"|the)|requires?|needs|must|cannot|can't|not supported|deprecated|ignores?|silently|default(?:s)?"
    r"|undocumented|expires?|times? out)\b",
    re.I,
)
_NAME = re.compile(
    r"`[^`\n]{2,80}`|\b[\w-]+\.(?:py|js|ts|tsx|go|rs|rb|java|toml|ya?ml|json|md|conf|ini|sh|sql|env|lock|c"
    r"|h|cpp)\b|\b\w+\(\)|\b\w+=\w+"
)
_SUBJECT = re.compile(r"(?:[A-Z][\w ]{1,40})[.:]\s+(?=\S)")
_ASIDE = re.compile(
    r"(?:nothing was changed|i (?:did not|didn't|haven't) (?:change|touch)|the .{0,40} (?:is|was) deleted"
    r"|next steps?|recommendation|my (?:suggestion|recommendation)|suggest)",
    re.I,
)


def discovered(turn: Turn, work: Sequence[Finding], root: str) -> list[Finding]:
    if turn.end is None or not turn.ended or not turn.said or not looked(turn):
        return []
    asked = turn.prompt or turn.request
    if _LEFT.search(asked[:2_000]):
        return []
    if work or turn.edited:
        return _surprises(turn, work, root)
    if not _RESEARCH.search(asked[:2_000]):
        return []
    evidence = _evidence(turn)
    scored = []
    for place, block in enumerate(_paragraphs(turn.said)):
        points = _points(block, evidence, telling(asked))
        if points >= ENOUGH:
            scored.append((points, -place, block))
    best = sorted(scored, reverse=True)[:MOST]
    return [_finding(turn, block, root) for _, _, block in sorted(best, key=lambda one: -one[1])]


def looked(turn: Turn) -> int:
    """How often something was looked up in this turn."""
    bash = sum(1 for item in turn.items if item.tool == "Bash")
    return sum(1 for item in turn.items if item.tool in LOOKING or item.tool.startswith("mcp__")) + bash


def _paragraphs(said: str) -> list[str]:
    """The blocks of a message; the items of a list belong to the sentence that announces it."""
    found: list[str] = []
    for block in blocks(said):
        if found and found[-1].endswith(":") and len(found[-1]) < 200:
            found[-1] = f"{found[-1]} {block}"
        else:
            found.append(block)
    return found


def _points(block: str, evidence: set[str], asked: set[str]) -> int:
    facts = _facts(block)
    text = " ".join(facts)
    if len(text) < SHORT or _NEGATIVE.match(block) or _ASIDE.match(block):
        return 0
    points = min(2, len(_NAME.findall(text)))
    points += 2 if is_strong_cause(text) else 1 if is_cause(text) else 0
    points += min(2, len(_NUMBER.findall(text)))
    points += 1 if _LIMIT.search(text) else 0
    points += 1 if len(telling(text) & evidence) >= 3 else 0
    points += 1 if telling(text) & asked else 0
    points -= 3 if is_proposal(block) else 0
    return points


def _facts(block: str) -> list[str]:
    return [
        without_lead(one)
        for one in sentences(block)
        if not one.endswith("?")
        and not is_talk(one)
        and not is_next(one)
        and not is_proposal(one)
        and not _ASIDE.match(one)
    ]


def _evidence(turn: Turn) -> set[str]:
    """Words of what was read and printed in this turn."""
    found: set[str] = set()
    for item in turn.items[-60:]:
        path = item.input.get("file_path")
        if isinstance(path, str):
            found |= telling(path)
        output = item.output
        if isinstance(output, dict):
            file = output.get("file")
            for value in (*output.values(), *(file.values() if isinstance(file, dict) else ())):
                found |= telling(text_of(value)[:3_000])
    return found


def _finding(turn: Turn, block: str, root: str) -> Finding:
    assert turn.end is not None
    facts = _facts(block)
    head = _head(facts)
    text = together((sentence(one) for one in facts), TEXT_CHARS + 80)
    files = _files(turn, block)
    cites = tuple(item.id for item in turn.items if _path(item.input) in files)
    observation = Observation(
        "discovery",
        title(head),
        text,
        files=tuple(inside(file, root) or file for file in files),
        concepts=concepts((head, text)),
        cites=(*cites[:10], turn.end),
    )
    return Finding(
        observation,
        turn.end,
        learned=together([sentence(one) for one in facts if is_cause(one)][:2] or [sentence(head)], 300),
    )


def _head(facts: Sequence[str]) -> str:
    """The sentence that says most: a cause first, then one with names and numbers in it."""

    def weight(place: int, one: str) -> tuple[int, int]:
        points = (
            3 * is_strong_cause(one) + is_cause(one) + bool(_NAME.search(one)) + bool(_NUMBER.search(one))
        )
        return points - 2 * bool(_ANAPHORA.match(one)) - (len(one) < 30), -place

    best = max(range(len(facts)), key=lambda place: weight(place, facts[place]))
    return facts[best]


def _files(turn: Turn, block: str) -> list[str]:
    """The files of this turn that the paragraph names."""
    return [
        path
        for path in dict.fromkeys(_path(item.input) for item in turn.items)
        if path and path.rsplit("/", 1)[-1] in block
    ][:10]


def _path(given: dict[str, object]) -> str:
    path = given.get("file_path")
    return path if isinstance(path, str) else ""


_ANAPHORA = re.compile(r"(?:so|it|this|that|they|these|those|which|therefore|then|also)\b", re.I)
_SURPRISE = re.compile(
    r"\b(?:turns out|turned out|gotcha|caveat|beware|undocumented|surpris\w+|note that|worth knowing"
    r"|interesting(?:ly)?)\b",
    re.I,
)


def _surprises(turn: Turn, work: Sequence[Finding], root: str) -> list[Finding]:
    """Beside work that was done: only what is said to be surprising, and is not what the work was about."""
    told = {
        word
        for finding in work
        for word in telling(f"{finding.observation.title} {finding.observation.text}")
    }
    files = {file for finding in work for file in finding.observation.files}
    found = []
    for block in _paragraphs(turn.said):
        facts = [
            one for one in _facts(block) if _SURPRISE.search(one) and (is_cause(one) or _LIMIT.search(one))
        ]
        if (
            facts
            and len(telling(" ".join(facts)) & told) <= 2
            and not any(file.rsplit("/", 1)[-1] in block for file in files)
        ):
            found.append(_finding(turn, " ".join(facts), root))
    return found[:1]
