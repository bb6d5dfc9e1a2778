"""What a sentence of the assistant's last message is: a cause, a change, a next step, or talk."""

from __future__ import annotations

import re

from backstory.synthesis.rules.phrases import phrases
from backstory.synthesis.rules.words import blocks, sentences

STATUS_WORDS = 8  # in a sentence that only says that something is done
SHORTEST = 20  # characters; what is shorter says nothing

_TALK = re.compile(
    r"(?:(?:all )?done|found it|fixed|sure|ok(?:ay)?|great|perfect|good|yes|no|you're (?:right|welcome)"
    r"|green again|all set|finished|here (?:is|are|'s) what .{0,40}|here you go|got it|noted|there (?:were"
    r"|are|was) \w+ (?:separate |different |small )?(?:problem|issue|thing|cause|bug)s?|(?:one|two"
    r"|three) (?:small )?things?)[ .!:,]*(?:\d+ (?:tests? )?passed)?[.!: ]*$",
    re.I,
)
_LEAD = re.compile(
    r"(?:(?:all )?done|found it|fixed(?: it)?|sure|ok(?:ay)?|great|perfect|yes|good(?: news| catch| point)?"
    r"|noted|got it|you're right|in short|tl;?dr|summary|result)\s*[.!:,–—-]+\s+",
    re.I,
)
_PASSING = phrases(r"""
    (?:tests?|suite|checks?|everything|build|ci) .{0,40}\b(?:pass(?:es|ed|ing)?|green|ok|clean|succeeds?)
    | \d+ (?:tests? )?(?:pass(?:ed|ing)?|green) | no force push | not committed
    | nothing (?:was|is|has been) (?:pushed|changed|committed)
""")
_COMMITTED = re.compile(
    r"(?:(?:it(?:'s| is) |and )?(?:not )?(?:committed|pushed)\b|(?:same|all) .{0,30}(?:green|pass))", re.I
)
_CAUSE = phrases(r"""
    because | since | due to | caused? by | root cause | turns? out | turned out | so that | instead of
    | (?:cause|culprit|reason|problem|bug|issue) (?:was|is) | otherwise
    | which (?:means?|is why|made|broke|caused) | means? that | that(?:'s| is) why | therefore | never \w+ed
    | didn't | did not | was(?:n't| not)? | were(?:n't| not)? | used to | used the | compared | assumed
    | expected | missing | forgot | leak\w* | race | stale | expired? | twice | wrong(?:ly)?
    | only (?:if|when|for|the|on) | , so
""")
_STRONG_CAUSE = phrases(r"""
    because | root cause | (?:actual |real |underlying )?(?:cause|culprit|reason) (?:was|is|for) | due to
    | caused by | turns? out | turned out | that(?:'s| is) why | which is why | is (?:only|not) supported
    | requires? (?:at least )?v?\d\S* | the (?:problem|bug|issue) (?:was|is) | comes? from
""")
_CHANGE = phrases(r"""
    now | no longer | instead | changed | replaced | moved | added | removed | renamed | extracted | split
    | fixed | rewrote | introduced | switched | made | takes? | is in | are in | lives? in | works
    | converted
""")
_NEXT = phrases(r"""
    next (?:steps?|up|would|week|time|major|minor) | remaining | to-?do | left to do
    | (?:is|are) left(?! out| alone| as)
    | follow-?up | still (?:to (?:do|be)|open|missing|needs?|accepts?|has|have|uses?|lying|left)
    | you (?:may|might) want | (?:you|i|we)(?:'ll| will) (?:need|have|want) to
    | i can (?:also |then )?\w+ .{0,120}\bif you | let me know | tell me if
    | if you (?:like|want|wish|prefer) | would you like | shall i | should i | want me to
    | not (?:done|implemented|covered) | yet | later on | in the next | remember (?:to|that) | don't forget
    | out of scope | i(?:'d| would) (?:remove|add|do|move|split|suggest|recommend) | i suppose you want
    | when you (?:start|deploy|upgrade|merge)
""")
_TRIED = phrases(
    r"my first (?:idea|guess|attempt|thought) | at first | first i (?:tried|thought) | i (?:first )?tried"
)
_PROPOSES = phrases(r"""
    (?:i'd|i would) (?!call|say|guess|expect|think|bet)
    | we'd | we would | you'd | you would | you could | we could | i could | suggest(?:ion)?s?
    | i propose | recommend(?:ation|ed)? | should (?:we|i|you) | shall | options? | if you want | my take
    | lean towards | would (?:be|need|have|take|cost|make|also)
""")


_STATUS = frozenset(
    "done fixed found reproduced committed pushed merged works working ready finished green clean both all"
    " and it is it's now again everything that's the a an i've i have too as asked requested well ok okay"
    " good great sure yes same change changes here there in place up running passed pass passes tests"
    " test".split()
)


def is_talk(text: str) -> bool:
    words = re.findall(r"[\w']+", text[:120].lower())
    return bool(_TALK.match(text)) or (0 < len(words) <= STATUS_WORDS and _STATUS.issuperset(words))


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
    """'All tests pass, committed.'"""
    return bool(_COMMITTED.match(text) or _PASSING.search(text))


def telling_sentences(block: str) -> list[str]:
    """Those that say something of the work: no talk, no questions, no next steps, no 'all tests pass'."""
    found = []
    for one in sentences(block):
        bare = without_lead(one)
        empty = len(bare) < SHORTEST or bare.endswith(("?", ":")) or is_talk(bare)
        if not (empty or is_next(bare) or is_about_passing(bare) or _TRIED.search(bare)):
            found.append(bare)
    return found


def all_telling(said: str) -> list[str]:
    return [one for block in blocks(said) for one in telling_sentences(block)]
