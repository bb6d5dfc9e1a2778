"""What a sentence of the assistant's last message is: a cause, a change, a next step, or talk."""

from __future__ import annotations

import re

from recollect.synthesis.rules.words import blocks, sentences

_TALK = re.compile(
    r"(?:(?:all )?done|found it|fixed|sure|ok(?:ay)?|great|perfect|good|yes|no|you're (?:right|welcome)"
    r"|green again"
    r"|all set|finished|here (?:is|are|'s) what .{0,40}|here you go|got it|noted|there (?:were|are|was) \w+ "
    r"(?:separate |different |small )?(?:problems?|issues?|things?|causes?)|(?:one|two"
    r"|three) (?:small )?things?)"
    r"[ .!:,]*(?:\d+ (?:tests? )?passed)?[.!: ]*$",
    re.I,
)
_LEAD = re.compile(
    r"(?:(?:all )?done|found it|fixed(?: it)?|sure|ok(?:ay)?|great|perfect|yes|good(?: news| catch| point)?"
    r"|noted|got it|you're right"
    r"|in short|tl;?dr|summary|result)\s*[.!:,–—-]+\s+",
    re.I,
)
_TESTS_PASS = re.compile(
    r"\b(?:tests?|suite|checks?|everything|build|ci)\b.{0,40}\b(?:pass(?:es|ed|ing)?|green|ok|clean"
    r"|succeeds?)\b"
    r"|\b\d+ (?:tests? )?(?:pass(?:ed)?|green)\b|^(?:it(?:'s| is) |and )?(?:not )?(?:committed|pushed)\b"
    r"|\bno force push\b|\bnothing (?:was|is|has been) (?:pushed|changed|committed)\b|\bnot committed\b"
    r"|^(?:same|all) .{0,30}(?:green|pass)",
    re.I,
)
_CAUSE = re.compile(
    r"\b(?:because|since|due to|caused? by|root cause|(?:the |a )?(?:cause|culprit|reason|problem|bug"
    r"|issue) (?:was|is)"
    r"|turns? out|turned out|so that|instead of|otherwise|which (?:means?|is why|made|broke|caused)"
    r"|means? that"
    r"|that(?:'s| is) why|therefore|never \w+ed|didn't|did not|was(?:n't| not)|were(?:n't| not)?|used to"
    r"|used the"
    r"|compared|assumed|expected|missing|forgot|leak\w*|race|stale|expired?|twice|wrong(?:ly)?|only (?:if"
    r"|when|for|the|on))\b"
    r"|, so\b",
    re.I,
)
_STRONG_CAUSE = re.compile(
    r"\b(?:because|root cause|(?:the )?(?:actual |real |underlying )?(?:cause|culprit|reason) (?:was|is|for"
    r"|:)|due to"
    r"|caused by|turns? out|turned out|that(?:'s| is) why|which is why|is (?:only|not) supported"
    r"|requires? (?:at least )?v?\d"
    r"|the (?:problem|bug|issue) (?:was|is)|comes? from)\b",
    re.I,
)
_CHANGE = re.compile(
    r"\b(?:now|no longer|instead|changed|replaced|moved|added|removed|renamed|extracted|split|fixed|rewrote"
    r"|introduced|switched|made|takes?|is in|are in|lives? in|works)\b",
    re.I,
)
_NEXT = re.compile(
    r"\b(?:next (?:steps?|up|would|week|time)|remaining|still (?:to (?:do|be)|open|missing|needs?|accepts?"
    r"|has|have|uses?|lying|left)"
    r"|to-?do|you (?:may|might) want|you(?:'ll| will) (?:need|have|want) to|i can (?:also "
    r"|then )?\w+ .{0,120}\bif you"
    r"|let me know|tell me if|if you (?:like|want|wish|prefer)|would you like|shall i|should i|want me to"
    r"|not (?:yet|done|committed|implemented|covered)|yet\b|left to do|(?:is|are) left\b|follow-?up"
    r"|later on|in the next"
    r"|next (?:major|minor)|(?:needs?|have|has) to be \w+ed|need to be|remember (?:to|that)|don't forget"
    r"|out of scope"
    r"|i(?:'d| would) (?:remove|add|do|move|split|suggest|recommend)|i suppose you want|when you (?:start"
    r"|deploy|upgrade|merge))\b",
    re.I,
)
_FIRST_IDEA = re.compile(
    r"\b(?:my first (?:idea|guess|attempt|thought)|at first|first i (?:tried|thought)|i (?:first )?tried)\b",
    re.I,
)
_PROPOSES = re.compile(
    r"\b(?:i'd|i would|we'd|we would|you'd|you would|you could|we could|i could|i(?:'d)? (?:suggest"
    r"|recommend|propose)"
    r"|recommend(?:ation|ed)?|suggest(?:ion)?s?|should (?:we|i|you)|shall|options?|if you want|my take"
    r"|lean towards"
    r"|would (?:be|need|have|take|cost|make|also))\b",
    re.I,
)


def is_talk(text: str) -> bool:
    return bool(_TALK.match(text))


def without_lead(text: str) -> str:
    """'Done: `turnover()` adds up Decimals now' without the 'Done'."""
    lead = _LEAD.match(text)
    return text[lead.end() :] if lead else text


def is_cause(text: str) -> bool:
    return bool(_CAUSE.search(text))


def is_strong_cause(text: str) -> bool:
    return bool(_STRONG_CAUSE.search(text))


def is_change(text: str) -> bool:
    return bool(_CHANGE.search(text))


def is_next(text: str) -> bool:
    return bool(_NEXT.search(text))


def is_proposal(text: str) -> bool:
    return bool(_PROPOSES.search(text))


def is_about_passing(text: str) -> bool:
    return bool(_TESTS_PASS.search(text))


def telling_sentences(block: str) -> list[str]:
    """Those that say something of the work: no talk, no questions, no next steps, no 'all tests pass'."""
    found = []
    for one in sentences(block):
        bare = without_lead(one)
        if (
            len(bare) >= 20
            and not bare.endswith(("?", ":"))
            and not is_talk(bare)
            and not is_next(bare)
            and not is_about_passing(bare)
            and not _FIRST_IDEA.search(bare)
        ):
            found.append(bare)
    return found


def all_telling(said: str) -> list[str]:
    return [one for block in blocks(said) for one in telling_sentences(block)]
