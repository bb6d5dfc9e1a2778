"""Decisions: the user's, in a prompt, and those that the assistant says it took."""

from __future__ import annotations

import re
from collections.abc import Iterator

from recollect.model import Observation
from recollect.synthesis.rules.finding import Finding
from recollect.synthesis.rules.prose import is_next, is_proposal, without_lead
from recollect.synthesis.rules.turns import Turn
from recollect.synthesis.rules.words import (
    TEXT_CHARS,
    blocks,
    concepts,
    prompt_lines,
    sentence,
    sentences,
    telling,
    title,
    together,
)

MOST = 3
LONGEST = 400

_LEAD = re.compile(
    r"(?:(?:ok(?:ay)?|oh|ah|and|but|so|well|hey|yes|yeah|yep|right|alright|fine|good|great|cool|nice"
    r"|perfect|sure|thanks?|thx|hm+"
    r"|convinced|agreed|deal|makes sense|sounds good|then|decided|decision|good point|fair(?: enough)?"
    r"|you(?:'ve| have) convinced me|i'm convinced)"
    r"\b[,:.!]{0,3}\s+){1,6}",
    re.I,
)
_AGREES = re.compile(
    r"(?:ok(?:ay)? )?(?:agreed|yes|yep|yeah|deal|right|fine|convinced|makes sense|sounds good|good point"
    r"|ok(?:ay)?)\b",
    re.I,
)
_GO = re.compile(
    r"(?:let's|lets|let us|we'll|we will|i'll|i will|we're|we are|i'm|i am|i think we(?:'ll| should)"
    r"|then)?\s*(?:just )?"
    r"(?:go(?:ing)?|stick(?:ing)?|settle|settling|stay(?:ing)?|went) (?:with|for|on)\s+(?P<what>\S.*)",
    re.I,
)
_LETS = re.compile(
    r"(?:let's|lets|let us|we'll|we will|we're going to|we are going to) (?:just |rather )?(?P<verb>use"
    r"|switch to|switch from|move to|move from|migrate to"
    r"|keep|drop|pick|choose|take|adopt|standardi[sz]e on)\s+(?P<what>\S.*)",
    re.I,
)
_IT_IS = re.compile(
    r"(?P<what>(?!what|that|this|as|how|who|so|here|there|yes|no|i |it"
    r"|then)[\w.+#/`-]{2,40}(?: (?!it )[\w.+#/`-]{1,40}){0,4}) it is(?=$|[\s,.;:!])(?! (?:a|the|not|so|very"
    r"|too|still|just)\b)",
    re.I,
)
_DECIDED = re.compile(
    r"(?:we|i)(?:'ve| have)?(?: now| finally| just| already)? (?:decided|agreed|chose|opted|settled|picked"
    r"|switched|moved|migrated)"
    r" (?P<what>\S.*)",
    re.I,
)
_SWITCHING = re.compile(
    r"(?:we're|we are|i'm|i am) (?:now )?(?:switching|moving|migrating) (?:over )?(?P<what>(?:from|to) \S.*)",
    re.I,
)
_KEEP = re.compile(
    r"(?P<verb>keep|use|drop|leave|stick with|stay with|take|switch to|remove|stay on) (?P<what>\S.*)", re.I
)
_VAGUE = re.compile(
    r"(?:it|that|this|them|those|these|both|the (?:first|second|third|last|former|latter|other|one|plan"
    r"|idea|proposal|suggestion|same|next|flow)"
    r"|your|option|a look|a break|plan|that one|this one|on|me|with it|\d\b|[a-d]\b|going|an eye|in mind"
    r"|the tests?|the debugger|first)\b",
    re.I,
)
_ORDINAL = re.compile(
    r"(?:the )?(?:option |variant |number |plan |#)?(?P<which>first|second|third|fourth|[1-4]"
    r"|[a-d])\b(?: (?:one|option|variant|approach|idea))?",
    re.I,
)
_PLACES = {
    "first": 0,
    "1": 0,
    "a": 0,
    "second": 1,
    "2": 1,
    "b": 1,
    "third": 2,
    "3": 2,
    "c": 2,
    "fourth": 3,
    "4": 3,
    "d": 3,
}
_UNTIL = re.compile(
    r"\b(?:until|till|because|since|so that|for (?:now|the)|instead|as long as|in \w+|with)\b", re.I
)
_ASKING = re.compile(r"(?:can|could|would|will|should|shall|do|does|is|are|why|what|how|if|or)\b", re.I)
_REASON = re.compile(
    r"\b(?:because|since|as it|as we|so that|to avoid|reason|is made for|doesn't need|no need|simpler"
    r"|faster|safer|enough|fewer|less|already|easier|cheaper|decides|would break|can't see)\b",
    re.I,
)
_TASK = re.compile(r"(?:can|could|would|will) you\b|please\b", re.I)

_CHOSE = re.compile(
    r"\b(?:i|we)(?:'ve| have)?(?: deliberately| therefore| also)? (?:chose|chosen|opted|decided|picked"
    r"|settled|went) (?:to |for |on |with |against )?",
    re.I,
)
_INSTEAD = re.compile(
    r"\b(?:i|we)(?:'ve| have)?(?: deliberately)? (?:used?|kept|made|put|left|wrote|took|implemented"
    r"|stayed)\b.{1,200}?\b(?:instead of|rather than|over)\b",
    re.I,
)
_WHY = re.compile(
    r"\b(?:because|since|so that|to avoid|as (?:it|the|that|we|this|they)|otherwise|for its|in order to)\b"
    r"|: |, so\b",
    re.I,
)
_AGAINST = re.compile(r"\b(?:over|instead of|rather than|against)\b", re.I)


def decided(turn: Turn) -> list[Finding]:
    """What the user decided in this prompt."""
    if turn.prompt_item is None or turn.prompt.lstrip().startswith(("/", "<")):
        return []
    found = []
    for what, words in decisions(turn.prompt, turn.before):
        reason = _reason(what, turn.before)
        text = together([sentence(f"The user: {words}"), *(sentence(one) for one in reason)], TEXT_CHARS)
        observation = Observation(
            kind="decision",
            title=title(f"Decided: {what}"),
            text=text,
            concepts=concepts((what, text)),
            cites=(turn.prompt_item,),
        )
        found.append(Finding(observation, turn.prompt_item))
        if len(found) == MOST:
            break
    return found


def decisions(prompt: str, before: str) -> Iterator[tuple[str, str]]:
    """(what was decided, the words it was decided in)."""
    said = [one for line in prompt_lines(prompt) for one in sentences(line)]
    for place, one in enumerate(said):
        if len(one) > LONGEST or one.endswith("?"):
            continue
        what = _decision(one, before)
        if what:
            after = [more for more in said[place + 1 : place + 3] if _goes_on(more)]
            yield what, " ".join([one, *after])
            return  # the rest of the prompt is about the same


def _goes_on(more: str) -> bool:
    return (
        bool(re.match(r"(?:and|because|since|that|it|so)\b", more, re.I))
        and not more.endswith("?")
        and not _TASK.search(more)
    )


def _decision(said: str, before: str) -> str:
    for start in _starts(said):
        rest = said[start:]
        lead = _LEAD.match(rest)
        rest = rest[lead.end() :] if lead else rest
        if _ASKING.match(rest):
            continue
        what = _what(rest, before, agrees=bool(_AGREES.match(said)))
        if what:
            return what
    return ""


def _starts(said: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer(r"[,;:]\s+|\s+(?:-|–|—|and|so|but|then)\s+", said))][
        :12
    ]


def _what(rest: str, before: str, *, agrees: bool) -> str:
    if match := _GO.match(rest):
        return _named(match["what"], "", before)
    if match := _LETS.match(rest):
        return _named(match["what"], match["verb"], before)
    if match := _IT_IS.match(rest):
        return rest if not _VAGUE.match(match["what"]) else ""
    if match := _DECIDED.match(rest):
        return rest if len(match["what"].split()) >= 2 and not rest.rstrip().endswith("yet") else ""
    if _SWITCHING.match(rest):
        return rest
    if agrees and is_proposal(before) and (match := _KEEP.match(rest)):
        what = match["what"]
        if not _VAGUE.match(what) or (len(what.split()) >= 3 and _UNTIL.search(what)):
            return _with_subject(f"{match['verb']} {what}", what, before)
    return ""


def _named(what: str, verb: str, before: str) -> str:
    """What was chosen, by its name: 'the second one' is looked up in what was offered."""
    chosen = f"{verb} {what}" if verb else what
    if not _VAGUE.match(what):
        return chosen
    if (match := _ORDINAL.match(what)) and (offered := _offered(before)):
        place = _PLACES[match["which"].lower()]
        if place < len(offered):
            return title(sentences(offered[place])[0])
    return ""


def _offered(before: str) -> list[str]:
    lines = [line.strip() for line in before.splitlines()]
    marked = [
        line for line in lines if re.match(r"(?:[-*•]|\d{1,2}[.)]|\*{0,2}(?:Option )?[A-D1-4][.):])\s*", line)
    ]
    return [block for line in marked for block in blocks(line)[:1]]


def _with_subject(chosen: str, what: str, before: str) -> str:
    """'keep them until 2.0' together with what they are."""
    if not _VAGUE.match(what):
        return chosen
    subject = next((one for block in _proposing(before) for one in sentences(block)), "")
    return f"{chosen} ({title(without_lead(subject))})" if subject else ""


def _proposing(before: str) -> list[str]:
    return [block for block in blocks(before) if is_proposal(block)][-1:]


def _reason(what: str, before: str) -> list[str]:
    """What was said for it before."""
    words = telling(what)
    found = []
    for block in blocks(before):
        for one in sentences(block):
            if _REASON.search(one) and not one.endswith("?") and telling(one) & words:
                found.append(one)
    return found[:2]


def chosen_by_assistant(turn: Turn) -> list[Finding]:
    """'I went with X rather than Y because ...', said of work that was really done."""
    if turn.end is None or not turn.ended or not turn.items:
        return []
    found = []
    for block in blocks(turn.said):
        for one in sentences(block):
            if len(one) > LONGEST or one.endswith("?") or is_next(one) or is_proposal(one):
                continue
            chose = _CHOSE.search(one) and _AGAINST.search(one)
            if chose or (_INSTEAD.search(one) and _WHY.search(one)):
                bare = without_lead(one)
                text = sentence(bare)
                observation = Observation(
                    "decision", title(bare), text, concepts=concepts((text,)), cites=_cites(turn)
                )
                found.append(Finding(observation, turn.end))
    return found[:2]


def _cites(turn: Turn) -> tuple[int, ...]:
    return (turn.end,) if turn.end is not None else ()
