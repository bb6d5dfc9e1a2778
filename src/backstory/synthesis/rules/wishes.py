"""The user's standing wishes, in the user's own words.

A wish counts where a clause begins with it: 'we use tabs', 'never push', 'please always ask'. In 'I always
get confused' or 'isn't that always slow?' the same words describe. What is meant for this task only ('don't
change any code yet') is no standing wish.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from backstory.model import Observation
from backstory.synthesis.rules.finding import Finding
from backstory.synthesis.rules.phrases import phrases
from backstory.synthesis.rules.standing_rules import BACK, SCOPE, STAYS, WITHOUT
from backstory.synthesis.rules.turns import Turn
from backstory.synthesis.rules.wish_forms import Said, is_wish
from backstory.synthesis.rules.words import (
    TEXT_CHARS,
    concepts,
    prompt_lines,
    sentence,
    sentences,
    title,
    together,
)

MOST = 8  # of one prompt
SHORT_TITLE = 70  # characters
LONGEST = 400  # characters of a sentence; what is longer is pasted, not said

_FILLERS = re.compile(
    r"(?:(?:ok(?:ay)?|oh|ah|and|but|so|also|well|hey|btw|by the way|fyi|no|nope|yes|yeah|please|pls|thanks?"
    r"|thx|cool|great|nice|super|perfect|good|right|in general|generally|general(?: rule| note)?"
    r"|one more thing|one thing|another thing|important|reminder|rule|note|ps|just|ok then|oh and"
    r"|great find[^,.!]{0,40})\b[,:.!]{0,3}\s+){1,5}",
    re.I,
)
_CLAUSE = re.compile(
    r"[,;:]\s+|\s+[-–—]{1,2}\s+|\s+\(|[.!?]\s+|\s+(?:but|and|so|because|since|as|that)\s+"
    r"(?=(?:please |pls |then )?(?:always|never|we |we'd |i |i'd |don't|do not|dont|stop |avoid |from now"
    r"|in this |no |use |keep |prefer ))",
    re.I,
)
_QUESTION = re.compile(
    r"(?:can|could|should|shall|would|will|why|what|how|is|isn't|are|aren't|do(?! not)|does|did|don't you"
    r"|didn't|doesn't|when (?!you)|where|who|which|have|has|was|were|am|may|might)\b",
    re.I,
)
_WOULD_YOU = re.compile(
    r"(?:can|could|would|will) you (?:please |pls )?(?=(?:always|never|stop \w{2,20}ing|not) )", re.I
)
_TAG = re.compile(r"\b(?:right|correct|no|or|or not|isn't it|don't we|aren't we|ok|okay)\W*\?\s*$", re.I)
_REQUEST = re.compile(r"(?:can|could|would|will) you\b|please (?:fix|change|add|do|reword|update)\b", re.I)
_REASON = re.compile(r"(?:it|they|that|this|because|since|otherwise|so that|reason)\b", re.I)
_RULES = re.compile(
    r".{0,80}\b(?:rules?|conventions?|guidelines?|preferences|standards|principles)\b.{0,60}:\s*$", re.I
)

_PROBLEM = phrases(r"""
    bugs? | broken | fail(?:s|ed|ing) | errors? | problems? | wrong | crash\w* | breaks?
    | why (?:is|are|does|do|did|was|can|won) | slow | doesn't | not working
""")
_ORDERS = phrases(r"""
    write (?!commit) | add | implement | create | fix | show me | give me | help | generate | build
    | explain | can you | could you
""")
_WORK = phrases(r"""
    (?:please|pls) (?!always|never|don't|no|remember|keep|use|stop)\w+ | convert | refactor | rename | move
    | split | remove | replace | extend | clean up | update | change
""")

_ABOUT_USER = phrases(r"""
    answers? | repl(?:y|ies) | respon(?:d|ses?) | explanations? | explain | summar(?:y|ies|ise|ize) | tone
    | ask me | in (?:german|english|french|spanish|italian|portuguese|dutch|polish|russian|chinese|japanese)
    | tell me | call me | show me | talk to me | bullet points? | emojis? | small talk | concise | verbose
    | apologi[sz]e | flatter\w* | wall of text | to the point | speak | brief | terse
""")
_ABOUT_PROJECT = phrases(rf"""
    {SCOPE} | here | we | our | commits? | tests? | code | files? | functions? | branch | docs? | readme
    | repo | project | codebase | release | comments
""")


def wished(turn: Turn, project: str) -> list[Finding]:
    if turn.prompt_item is None or turn.prompt.lstrip().startswith(("/", "<")):
        return []
    found: list[Finding] = []
    for wish, reason in wishes(turn.prompt, project):
        observation = Observation(
            kind="preference",
            title=_heading(wish),
            text=together([sentence(wish), sentence(reason)], TEXT_CHARS),
            concepts=concepts((wish, reason)),
            cites=(turn.prompt_item,),
            is_global=is_about_user(wish),
        )
        found.append(Finding(observation, turn.prompt_item))
        if len(found) == MOST:
            break
    return found


def _heading(wish: str) -> str:
    """The wish in short: what follows a comma or a dash explains it mostly."""
    whole = _TRAILING_PLEASE.sub("", wish)
    if len(whole) > SHORT_TITLE and (cut := _EXPLAINS.search(whole)):
        return title(whole[: cut.start()])
    return title(whole)


_EXPLAINS = re.compile(r"(?<=[\w`)]{3})(?:,\s+(?!not\b|never\b|instead\b|rather\b)|\s[-–—]\s|;\s|\s\()")
_TRAILING_PLEASE = re.compile(r",?\s+(?:please|pls|ok|okay)(?=\W*$|,)", re.I)


def wishes(prompt: str, project: str = "") -> Iterator[tuple[str, str]]:
    """(wish, reason) of each standing wish."""
    asks = "?" in prompt or bool(_PROBLEM.search(prompt[:2_000]))
    orders = bool(_ORDERS.search(prompt[:2_000]))
    around = (asks, orders, orders or bool(_WORK.search(prompt[:2_000])))
    listing = False
    seen: set[str] = set()
    for line in prompt_lines(prompt):
        if _RULES.match(line[:200]):
            listing = True
            continue
        said = sentences(line)
        for place, one in enumerate(said):
            wish = _wish(one, project, *around) if len(one) <= LONGEST else ""
            if not wish and listing and place == 0 and 8 <= len(line) <= 200 and not line.endswith("?"):
                wish = line
            if not wish and (wish := _pointed_at(one, said[place - 1] if place else "")):
                known = any(one in wish.lower() or wish.lower() in one for one in seen)
                wish = "" if known else wish
            if wish and wish.lower() not in seen:
                seen.add(wish.lower())
                yield wish, _reason(said[place + 1] if place + 1 < len(said) else "")


def _pointed_at(sentence: str, before: str) -> str:
    """'..., that's how we do it here', 'Keep that in mind.': what was said just before is the wish."""
    for start in (0, *(match.end() for match in _CLAUSE.finditer(sentence))):
        stays = STAYS.match(sentence, start)
        if stays or BACK.match(sentence, start):
            meant = (sentence if stays and start else sentence[:start] if start else before).strip(" ,;:-–—(")
            meant = _ANNOUNCED.sub("", meant)
            filler = _FILLERS.match(meant)
            meant = meant[filler.end() :] if filler else meant
            plain = len(meant.split()) >= 3 and not meant.endswith("?") and not _QUESTION.match(meant)
            plain = plain and (not stays or bool(WITHOUT.search(meant)))
            return meant if plain and len(meant) <= LONGEST else ""
    return ""


_ANNOUNCED = re.compile(
    r"^[^:]{0,30}\b(?:request|thing|wish|note|remark|favou?r|point)s?\b[^:]{0,40}:\s+(?=\S+ \S)", re.I
)


def _reason(after: str) -> str:
    gives_one = (
        _REASON.match(after) and not after.endswith("?") and not _REQUEST.search(after) and len(after) < 200
    )
    return after if gives_one else ""


def _wish(sentence: str, project: str, asks: bool, orders: bool, works: bool) -> str:
    """From where the wish begins to the end of the sentence; "" where there is none."""
    starts = [0, *(match.end() for match in _CLAUSE.finditer(sentence))]
    for start, end in zip(starts, [*starts[1:], len(sentence)], strict=True):
        rest = sentence[start:]
        asked_for = _WOULD_YOU.match(rest)  # 'could you always run the tests before committing?' is a wish
        if asked_for:
            rest = rest[asked_for.end() :].rstrip("? ")
            rest = f"don't{rest[3:]}" if rest.startswith("not ") else rest
        elif sentence[start:end].rstrip().endswith("?") or _TAG.search(rest[-30:]):
            continue
        filler = _FILLERS.match(rest)
        for one in (rest, rest[filler.end() :]) if filler else (rest,):  # 'no' may be a filler, and may not
            if not _QUESTION.match(one) and is_wish(Said(one, project, asks, orders, works)):
                return _without_request(one)
    return ""


def _without_request(wish: str) -> str:
    """'we use tabs, can you fix that' ends before the request."""
    for match in re.finditer(r"[.,;]\s+|\s+(?:and|so|-)\s+", wish):
        if _REQUEST.match(wish, match.end()):
            return wish[: match.start()]
    return wish


def is_about_user(wish: str) -> bool:
    return bool(_ABOUT_USER.search(wish)) and not _ABOUT_PROJECT.search(wish)
