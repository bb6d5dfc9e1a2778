"""Decisions that the user takes by answering: to advice that gave a reason, or to an open question."""

from __future__ import annotations

import re

from backstory.model import Observation
from backstory.synthesis.rules.decisions import BECAUSE, CLAUSE, FEW_NAMES, FOR_IT, LONGEST, are_in
from backstory.synthesis.rules.finding import Finding
from backstory.synthesis.rules.phrases import phrases
from backstory.synthesis.rules.prompts import without_acks
from backstory.synthesis.rules.prose import without_lead
from backstory.synthesis.rules.turns import Turn
from backstory.synthesis.rules.words import (
    TEXT_CHARS,
    blocks,
    concepts,
    prompt_lines,
    sentence,
    sentences,
    shorten,
    title,
    together,
)

MANY = 6  # words; less is an answer that needs no remembering


def consented(turn: Turn) -> list[Finding]:
    """What the user settled with an answer."""
    item = turn.prompt_item
    said = [one for line in prompt_lines(turn.prompt) for one in sentences(line)]
    if item is None or not said or turn.prompt.lstrip().startswith(("/", "<")):
        return []
    if advised := _agreed_to(turn.prompt, turn.before):
        advice, reasons = advised
        head = title(f"Decided: {_I_WOULD.sub('', without_lead(advice))}")
        parts = [*reasons[:3], advice, f"The user agreed: {shorten(said[0], 120)}"]
    elif ruled := _ruled(said, turn.before):
        words, about = ruled
        handled = [one for one in said[:4] if _HANDLE.match(one) and len(one.split()) > 2]
        head = title(f"Decided: {without_acks((handled or said)[0])}")
        parts = [f"The user: {words}", f"It was about: {shorten(about, 240)}"]
    else:
        return []
    text = together([sentence(one) for one in parts], TEXT_CHARS + 80)
    observation = Observation("decision", head, text, concepts=concepts((head, text)), cites=(item,))
    return [Finding(observation, item)]


_I_WOULD = re.compile(r"^(?:so |and |but )?(?:i'd|i would) (?:therefore |then |still |just |rather )*", re.I)
_CONSENT = re.compile(
    r"(?:(?:uff|ah|oh|hm+|ok(?:ay)?|yes|yep|yeah|good|great|fine|right|sure|agreed|alright|perfect|cool|nice"
    r"|thanks?|makes sense|sounds (?:good|right|reasonable|fair)|fair enough|good point|convinced|deal|then"
    r"|i agree|you're right|that works|works for me|fine (?:by|with) me|ok with me|i'm fine with that|so|and"
    r"|(?:let's |please |just )?(?:leave|keep) (?:it|that|them)(?: (?:like (?:that|this)|as (?:it"
    r"|they) (?:is|are)"
    r"|that way|so|there|in))?|(?:let's |we )?(?:do|go (?:with|for)|use|take|stick (?:with"
    r"|to)) (?:that|it|this"
    r"|your (?:proposal|suggestion|recommendation|version|way|variant))|as you (?:say|suggest|propose)"
    r"|like you (?:say|said|suggest)|do (?:it )?(?:that|it) way|go ahead|let's do (?:it"
    r"|that))\b[\s,.!:;-]*){1,6}",
    re.I,
)
_SETTLES = phrases(r"""
    leave | keep | agreed? | deal | convinced
    | (?:do|go with|go for|use|take|stick with) (?:that|it|this|your \w+)
    | as you (?:say|suggest|propose) | like you (?:say|said|suggest) | makes sense
    | sounds (?:good|right|fair) | fine (?:by|with) me | works for me | fair enough | good point
    | you're right | let's do (?:it|that)
""")
_ADVICE = re.compile(
    r"\b(?:i'd|i would|we should|you should|i recommend|i suggest|i propose|my (?:advice|recommendation"
    r"|suggestion) is(?: to)?|better to) (?:(?:rather|therefore|then|still|just|to|not|strongly) ){0,3}"
    r"(?:keep|leav|us(?:e|ing)\b|stay|tak(?:e|ing)\b|go(?:ing)? (?:with|for)\b|choos|pick|stick|prefer|avoid"
    r"|do(?:ing)? without|drop|wait|postpon|stor|put)",
    re.I,
)


def _agreed_to(prompt: str, before: str) -> tuple[str, list[str]] | None:
    """'Good, leave it.' to 'X would be shorter, but ..., so I'd leave it like that': what was advised, with
    the reasons that were given. Advice without a reason is a matter of taste, and work is not advised but
    offered."""
    consent = _CONSENT.match(prompt.strip())
    first = (sentences(" ".join(prompt_lines(prompt))) or [""])[0]
    if not consent or not _SETTLES.search(consent[0]) or first.endswith("?"):
        return None
    for block in reversed(blocks(before)):
        said = [one for one in sentences(block) if not one.endswith("?")]
        advice = [one for one in said if _ADVICE.search(one)]
        if advice and any(BECAUSE.search(one) or FOR_IT.search(one) or " but " in one for one in said):
            return advice[-1], [one for one in said if one != advice[-1]]
    return None


_OPEN = re.compile(
    r"\b(?:what|which|how|or|where|should (?!i\b)\w+|do you want (?!me\b)\w+|would you (?!like me))\b", re.I
)
_HANDLE = re.compile(
    r"(?:please |pls |just |then |so |ok |yes |no |let's |we |we'll |and )*(?:skip|ignore|keep"
    r"|leave|drop|use|take"
    r"|make it|delete|remove|disable|disallow|allow|mark|accept|reject|raise|fail|return|store|put"
    r"|round|treat"
    r"|default to|go|stay|stick|wait|postpone|both|neither|the former|the latter)\b",
    re.I,
)
_GIVEN = phrases(r"""
    because | since | as (?:it|we|they|that) | so that | otherwise | anyway | for now | until | till | too
    | in case | gets? \w+ed | will be | going to | we'll | nobody | no one | never | only
    | that's (?:old|ok|enough) | doesn't matter | not worth | good enough | the reason
""")


def _ruled(said: list[str], before: str) -> tuple[str, str] | None:
    """The assistant asked how something is to be; the user says how, and why or for how long."""
    asked = [(block, one) for block in blocks(before)[-2:] for one in sentences(block) if one.endswith("?")]
    if not asked or not said:
        return None
    about, question = asked[-1]
    told = [one for one in said[:4] if not one.endswith("?") and len(one) <= LONGEST]
    explained = bool(told) and bool(_ON_PURPOSE_ASKED.search(question)) and bool(_YES_OR_NO.match(told[0]))
    if explained and len(told[0].split()) >= MANY:
        return " ".join(told), about
    if not _OPEN.search(question):
        return None
    orders = [
        one
        for one in told
        if any(_HANDLE.match(one, start) for start in (0, *(m.end() for m in CLAUSE.finditer(one))))
    ]
    words = " ".join(told)
    picked = bool(told) and _picks(told[0], about)
    if not (orders or picked) or len(words.split()) < MANY or not _GIVEN.search(words):
        return None
    return words, about


_ON_PURPOSE_ASKED = phrases(
    r"on purpose | intended | intentional(?:ly)? | deliberate(?:ly)? | by design | meant to"
)
_YES_OR_NO = re.compile(r"(?:yes|yep|yeah|no|nope|it is|it's|that's)\b", re.I)


def _picks(answer: str, about: str) -> bool:
    """'14, the auditors want two weeks', to '7 or 14, which is right?'"""
    name = re.split(r"[,;:.!]\s", answer, maxsplit=1)[0].strip()
    return len(name.split()) <= FEW_NAMES and len(name) < len(answer) - 1 and are_in(name, about)
