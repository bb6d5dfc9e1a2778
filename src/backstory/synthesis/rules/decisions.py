"""Decisions: the user's, in a prompt, and those that the assistant says it took.

What the assistant proposes is none until the user agrees, and 'let's go with that' only where it can be told
what 'that' is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from backstory.model import Observation
from backstory.synthesis.rules.finding import Finding
from backstory.synthesis.rules.kinds import PROBLEM
from backstory.synthesis.rules.phrases import phrases
from backstory.synthesis.rules.prompts import without_acks
from backstory.synthesis.rules.prose import is_next, is_proposal, without_lead
from backstory.synthesis.rules.turns import Turn
from backstory.synthesis.rules.words import (
    TEXT_CHARS,
    blocks,
    clean,
    concepts,
    prompt_lines,
    sentence,
    sentences,
    shorten,
    telling,
    title,
    together,
)

LONGEST = 400  # characters of a sentence; what is longer is pasted, not said
CLAUSES = 12
SAYS_MORE = 8  # words: 'let's do that, but ..., because ...'
TERSE = 80  # characters of a decision that nobody understands without the question

_LEAD = re.compile(
    r"(?:(?:ok(?:ay)?|oh|ah|and|but|so|well|hey|yes|yeah|yep|right|alright|fine|good|great|cool|nice|perfect"
    r"|sure|thanks?|thx|hm+|convinced|agreed|deal|makes sense|sounds good|then|decided|decision|good point"
    r"|fair(?: enough)?|you(?:'ve| have) convinced me|i'm convinced)\b[,:.!]{0,3}\s+){1,6}",
    re.I,
)
CLAUSE = re.compile(r"[,;:]\s+|\s+(?:-|–|—|and|so|but|then)\s+")
_AGREES = re.compile(
    r"(?:ok(?:ay)? )?(?:agreed|yes|yep|yeah|deal|right|fine|convinced|makes sense|sounds good|good point"
    r"|ok(?:ay)?)\b",
    re.I,
)
_ASKING = re.compile(r"(?:can|could|would|will|should|shall|do|does|is|are|why|what|how|if|or)\b", re.I)

_GO = re.compile(
    r"(?:let's|lets|let us|we'll|we will|i'll|i will|we're|we are|i'm|i am|i think we(?:'ll| should)"
    r"|then)?\s*"
    r"(?:just )?(?:(?:go(?:ing)?|went|stick(?:ing)?|stay(?:ing)?) (?:with|for)|settl(?:e|ing) (?:on|for))\s+"
    r"(?P<what>\S.*)",
    re.I,
)
_LETS = re.compile(
    r"(?:let's|lets|let us|we'll|we will|we're going to|we are going to) (?:just |rather )?"
    r"(?P<what>(?:use|do|switch (?:to|from)|move (?:to|from)|migrate (?:to|from)|keep|drop|pick|choose|take"
    r"|adopt|standardi[sz]e on|stay (?:on|with)|leave|skip|support|store|put|postpone|target|limit|ignore"
    r"|accept|not)\s+(?P<object>\S.*))",
    re.I,
)
_IT_IS = re.compile(
    r"(?P<what>(?!(?:so|here|there|yes|no|i|it|then|what|whatever|where|tell|that|this|as|how|who"
    r"|the problem)\b)[\w.+#/`-]{2,40}"
    r"(?: (?!(?:it|that|what|how|is|as|where|why|who|think|if)\b)[\w.+#/`-]{1,40}){0,4}) it is(?= then"
    r"|\s*[,.;:!]|\s*$)",
    re.I,
)
_DECIDED = re.compile(
    r"(?:we|i)(?:'ve| have)?(?: now| finally| just| already| all)? (?:decided|agreed|opted"
    r"|settled):? (?P<what>\S+ \S.*)|(?:we|i)(?:'ve| have)?(?: now| finally| just| already)? (?:chose"
    r"|switched|moved|migrated) (?=.{0,160}\b(?:over|instead of|rather than|from|because|since|so that)\b)"
    r"\S+ \S",
    re.I,
)
_SWITCHING = re.compile(
    r"(?:we're|we are|i'm|i am) (?:now )?(?:switching|moving|migrating) (?:over )?(?:from|to) \S", re.I
)
_KEEP = re.compile(
    r"(?:keep|use|drop|leave|stick with|stay with|take|switch to|stay on) (?P<what>\S.*)", re.I
)
# what becomes of something, and when
_WHEN = (
    r"(?:v?\d+\.[\dx]\S*|v\d+|(?:the )?next (?:major|minor|release|version)\b.{0,20}"
    r"|(?:the )?(?:\w+ )?release"
    r"|(?:next )?(?:spring|summer|autumn|winter|year|quarter)|q[1-4]|further notice|then)\b"
)
_FATE = re.compile(
    r"(?!(?:why|what|how|if|when|it|this|that|i|he|she"
    r"|there)\b)(?P<what>[^,;:.?!]{2,60}?) (?:stays?|remains?|goes"
    r" away|go away|dies|is (?:going|gone|dropped|removed|deprecated|frozen|kept|replaced)|gets? (?:dropped"
    r"|removed|replaced|rewritten)|will (?:be (?:dropped|removed|replaced|kept|deprecated|rewritten)|go"
    r"|stay|remain))\b[^.?!]{0,60}?"
    rf"\b(?:in|with|until|till|as of|from|by|after|before) {_WHEN}",
    re.I,
)
_RATHER = re.compile(
    r"(?:please |pls |rather |better )?(?:use|keep|store|put|return|take|prefer|make|write|send"
    r"|load|run|build"
    r"|call|read|do it|we need|we want|i want) (?P<what>\S.*)",
    re.I,
)
BECAUSE = phrases(r"""
    because | since | so that | to avoid | otherwise | in case | that way | which (?:is|means|makes) | too \w+
    | doesn't | can't | won't | the reason
""")
_LETTER = r"[1-4a-d](?=\s*(?:[.,;!]|$|please\b|pls\b|then\b))"
_VAGUE = re.compile(
    r"(?:it|that|this|them|those|these|both|your|on|me|with it|going|first|a (?:look|break)|an eye|in mind"
    r"|(?:option|variant|number|plan)\b|the (?:tests?|debugger|first|second|third|fourth|last|former|latter"
    r"|other"
    rf"|one|plan|idea|proposal|suggestion|same|next|flow))\b|{_LETTER}",
    re.I,
)
_ORDINAL = re.compile(
    rf"(?:the )?(?:(?P<place>first|second|third|fourth)\b|(?:option|variant|number|plan) (?P<sign>[1-4a-d])\b"
    rf"|(?P<letter>{_LETTER}))",
    re.I,
)
_PLACES = {"first": 0, "second": 1, "third": 2, "fourth": 3} | {
    sign: place % 4 for place, sign in enumerate("1234abcd")
}
_OFFER = re.compile(r"(?:[-*•]|\d{1,2}[.)])\s+|\*{0,2}(?:Option )?[A-D1-4]\*{0,2}[.):]", re.I)
_UNTIL = phrases(
    r"until | till | because | since | so that | for (?:now|the) | instead | as long as | in \w+ | with"
)
_ASIDES = re.compile(
    r"^we(?:'ve| have)? (?:now |finally |already )?(?:decided|agreed)(?::| to| on| that| for)?\s*"
    r"|(?<=\w) then(?=[,.]|$)|,? (?:please|pls)(?=[.!]*$)",
    re.I,
)
_SHORT_ANSWER = 6  # words
_GOES_ON = re.compile(r"(?:and|because|since|that|it|so)\b", re.I)
_TASK = re.compile(r"(?:can|could|would|will) you\b|please\b", re.I)
FOR_IT = phrases(r"""
    because | since | as it | as we | so that | to avoid | reason | is made for | doesn't need | no need
    | simpler | faster | safer | enough | fewer | less | already | easier | cheaper | decides | would break
    | can't see
""")

_CHOSE = re.compile(
    r"\b(?:i|we)(?:'ve| have)?(?: deliberately| therefore| also| intentionally)? (?:chose|chosen"
    r"|opted|decided"
    r"|picked|settled|went (?:with|for))\b",
    re.I,
)
_INSTEAD = re.compile(
    r"\b(?:i|we)(?:'ve| have)?(?: deliberately)? (?:used?|kept|made|put|left|wrote|took|implemented|stayed)\b"
    r"[^.]{1,200}?\b(?:instead of|rather than|over)\b",
    re.I,
)
_KEPT = re.compile(
    r"\b(?:i|we)(?:'ve| have)?(?: deliberately| intentionally| therefore)? (?:kept|left"
    r"|stayed (?:with|on)|did(?:n't"
    r"| not) (?:use|touch|change|remove|drop|move|rename|convert|make|add|put))\b",
    re.I,
)
_ON_PURPOSE = phrases(r"deliberately | on purpose | intentionally | by design | a conscious choice")
_OBVIOUS = phrases(r"""
    you asked | you said | you wanted | as (?:asked|requested|agreed|you|discussed) | nothing to do with
    | out of scope | not part of | unrelated | first (?:idea|thought|suspected|tried) | took it (?:back|out)
    | anything | any code | it yet
""")
_THAT = re.compile(r"\b(?:kept|left|chose|decided|did) (?:that|it|this|them|so|on it|for it)\b", re.I)
_AGAINST = phrases(r"over | instead of | rather than | against | not \w+ | from \w+ to | overkill")
_ALTERNATIVE = phrases(r"over | instead of | rather than | against")
_WHY = phrases(r"""
    because | since | so that | to avoid | as (?:it|the|that|we|this|they) | otherwise | for its
    | in order to | , so
""")


def decided(turn: Turn) -> list[Finding]:
    """What the user decided in this prompt."""
    if turn.prompt_item is None or turn.prompt.lstrip().startswith(("/", "<")):
        return []
    found = []
    for what, words in decisions(turn.prompt, turn.before, turn.asked_before):
        reasons = [sentence(one) for one in _reasons(what, turn.before)]
        terse = len(words) < TERSE and (not reasons or len(what.split()) <= 3)
        terse = terse or (not reasons and bool(_POINTS.search(what[:20])))
        if terse and turn.asked_before:
            reasons.append(sentence(f"It was about: {shorten(clean(turn.asked_before), 160)}"))
        text = together([sentence(f"The user: {words}"), *reasons], TEXT_CHARS)
        observation = Observation(
            kind="decision",
            title=title(f"Decided: {what}"),
            text=text,
            concepts=concepts((what, text)),
            cites=(turn.prompt_item,),
        )
        found.append(Finding(observation, turn.prompt_item))
    return found


def decisions(prompt: str, before: str, asked_before: str = "") -> Iterator[tuple[str, str]]:
    """(what was decided, the words it was decided in); one a prompt, since the rest is about the same."""
    if answer := _answer(prompt, before, asked_before):
        yield answer, prompt.strip()
        return
    said = [one for line in prompt_lines(prompt) for one in sentences(line)]
    for place, one in enumerate(said):
        if len(one) > LONGEST or one.endswith("?"):
            continue
        what = _forced(one) or _decision(one, before)
        if what:
            after = [more for more in said[place + 1 : place + 3] if _goes_on(more)]
            yield what, " ".join([one, *after])
            return


def _answer(prompt: str, before: str, asked_before: str = "") -> str:
    """'SQLite', to 'SQLite or Redis?', or to advice on them; with the question, since nobody knows it in a
    month."""
    first = (sentences(" ".join(prompt_lines(prompt))) or [""])[0]
    lead = _LEAD.match(first)
    named = _NAMED.sub("", first[lead.end() :] if lead else first).strip(" .!,")
    words = (telling(named) or {word for word in named.lower().split() if len(word) > 1}) - _POLITE
    if not words or len(named.split()) > _SHORT_ANSWER or "?" in first or _VAGUE.match(named):
        return ""
    asked = [one for block in blocks(before)[-2:] for one in sentences(block)][-1:]
    if asked and asked[0].endswith("?"):
        fits = " or " in asked[0] and words <= telling(asked[0]) and len(prompt.split()) <= _SHORT_ANSWER
        return f"{_ASIDES.sub('', prompt.strip()).rstrip('.!')} ({asked[0]})" if fits else ""
    offered = " or " in asked_before or len(_offered(before)) > 1 or bool(_THEN.search(first))
    weighed = offered and len(named.split()) <= FEW_NAMES
    weighed = weighed and (
        is_proposal(before) or bool(_THEN.search(first) and _COMPARED.search(asked_before))
    )
    return named if weighed and are_in(named, before) else ""


_POINTS = re.compile(r"\b(?:it|that|this|them)\b", re.I)
_NAMED = re.compile(
    r"^(?:the |rather |probably |i(?:'d| would) (?:say|take|prefer) |i think |definitely |clearly )+"
    r"|,? (?:then|please|pls|it is|sounds good|of course)[.!]?$",
    re.I,
)
_THEN = re.compile(r"\bthen[.!]?$", re.I)
FEW_NAMES = 3
_COMPARED = phrases(r"""
    vs | versus | for and against | pros and cons | compared? | (?:should|shall) (?:we|i|it) .{1,80} or
    | do we (?:use|want|need|take) | which .{1,40} (?:should|would|is better)
""")


def are_in(names: str, text: str) -> bool:
    return all(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text[:4_000], re.I) for name in names.split())


_POLITE = frozenset("yes okay sure then take think thanks prefer rather".split())


def _goes_on(more: str) -> bool:
    return bool(_GOES_ON.match(more)) and not more.endswith("?") and not _TASK.search(more)


def _decision(said: str, before: str) -> str:
    starts = [0, *(match.end() for match in CLAUSE.finditer(said))]
    agrees = bool(_AGREES.match(said)) and is_proposal(before)
    for start in starts[:CLAUSES]:
        rest = said[start:]
        lead = _LEAD.match(rest)
        rest = rest[lead.end() :] if lead else rest
        if _ASKING.match(rest):
            continue
        for form, what in _FORMS:
            match = form.match(rest) if form is not _KEEP or agrees else None
            if match and (chosen := what(match, rest, before)):
                return _ASIDES.sub("", chosen)
    return ""


_MUST = (
    r"we(?:'re| are|'ll| will)? (?:have to|need to|must|can only|can't|cannot"
    r"|stuck (?=with|on))(?: \w+ly| just| all)? ?"
    r"(?:stay|stick|remain|keep|use(?! (?:it|that|this|them)\b)|support|target|upgrade|drop|with|on"
    r"|(?:go|move|switch|migrate) (?:to|off|from|with|for|back))\b"
)
_FORCED = re.compile(
    rf"(?=\S)(?P<why>[^?]{{15,250}}?)(?:,? so|,? therefore|,? that's why|;|,|\s[-–—])\s+{_MUST}"
    rf"|{_MUST}[^?]{{3,120}}?\b(?:because|since|until|as long as|due to)\b",
    re.I,
)
_WHY_NOT = phrases(r"""
    only | no \w+ | not | \w+n't | cannot | still | requires? | needs | must | because | since | until
    | breaks? | as long as | drops? | dropped | due to
""")


def _forced(said: str) -> str:
    """'The driver is only built for 3.11, so we have to stay on that': nobody chose it, but so it is."""
    bare = without_acks(said)
    forced = _FORCED.match(bare)
    return bare if forced and _WHY_NOT.search(forced["why"] or bare) else ""


def _chosen(match: re.Match[str], rest: str, before: str) -> str:
    """By its name: 'the second one' is looked up in what was offered."""
    what = match["what"]
    named = match.groupdict().get("object") or what
    if not _VAGUE.match(named):
        return what
    ordinal = _ORDINAL.match(named)
    if not ordinal:
        return rest if len(rest.split()) > SAYS_MORE and _WHY.search(rest) else ""
    offered = _offered(before)
    place = _PLACES[(ordinal["place"] or ordinal["sign"] or ordinal["letter"]).lower()]
    return title(sentences(offered[place])[0]) if place < len(offered) else ""


def _is_choice(rest: str, before: str) -> bool:
    """'let's use a dropdown' may be a task; a decision is against something, or for what was offered."""
    return bool(_AGAINST.search(rest) or _WHY.search(rest) or FOR_IT.search(rest)) or is_proposal(before)


def _offered(before: str) -> list[str]:
    lines = [line.strip().lstrip("# ") for line in before.splitlines()]
    marked = [line for line in lines if _OFFER.match(line)]
    return [block for line in marked for block in blocks(line)[:1]]


def _agreed(match: re.Match[str], rest: str, before: str) -> str:
    """'keep them until 2.0', together with what they are."""
    what = match["what"]
    if not _VAGUE.match(what):
        return rest
    proposed = [block for block in blocks(before) if is_proposal(block)][-1:]
    subject = next((one for block in proposed for one in sentences(block)), "")
    says_more = len(what.split()) > 2 and _UNTIL.search(what)
    return f"{rest} ({title(without_lead(subject))})" if subject and says_more else ""


def _is_past(match: re.Match[str], rest: str, before: str) -> str:
    """'we moved to Node 20 and now the tests fail' tells where a problem comes from."""
    return "" if rest.rstrip(".! ").endswith("yet") or (PROBLEM.search(rest) and not match["what"]) else rest


_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str, str], str]], ...] = (
    (_GO, _chosen),
    (_LETS, lambda match, rest, before: _chosen(match, rest, before) if _is_choice(rest, before) else ""),
    (_IT_IS, lambda match, rest, before: "" if _VAGUE.match(match["what"]) else rest),
    (_DECIDED, _is_past),
    (_SWITCHING, lambda match, rest, before: rest),
    (_FATE, lambda match, rest, before: "" if PROBLEM.search(rest) else rest),
    (
        _RATHER,
        lambda match, rest, before: rest if _ALTERNATIVE.search(rest) and BECAUSE.search(rest) else "",
    ),
    (_KEEP, _agreed),
)


def _reasons(what: str, before: str) -> list[str]:
    """What was said for it before; if nothing was, what was said of it."""
    words = telling(what)
    said = [one for block in blocks(before) for one in sentences(block) if not one.endswith("?")]
    for_it = [one for one in said if FOR_IT.search(one) and telling(one) & words]
    name = what.split("(", maxsplit=1)[0].strip(" .!")
    return for_it[:2] or [one for one in said if not is_proposal(one) and are_in(name, one)][:1]


def chosen_by_assistant(turn: Turn) -> list[Finding]:
    """'I went with X rather than Y because ...', said of work that was really done."""
    if turn.end is None or not turn.ended or not turn.items:
        return []
    found = []
    for block in blocks(turn.said):
        before = ""
        for one in sentences(block):
            if _is_chosen(one):
                named = [before] if before and _THAT.search(one) else []  # 'I kept that because ...'
                text = together([sentence(without_lead(part)) for part in (*named, one)], TEXT_CHARS + 80)
                head = title(without_lead((named or [one])[0]))
                observation = Observation(
                    "decision", head, text, concepts=concepts((text,)), cites=(turn.end,)
                )
                found.append(Finding(observation, turn.end))
            before = one
    return found[:2]


def _is_chosen(one: str) -> bool:
    if len(one) > LONGEST or one.endswith("?") or is_next(one) or _OBVIOUS.search(one):
        return False
    why = bool(_WHY.search(one))
    if _CHOSE.search(one) and (why or _ALTERNATIVE.search(one)):
        return True
    if is_proposal(one) and not _KEPT.search(one):
        return False
    kept = _KEPT.search(one) and (why or _ON_PURPOSE.search(one))
    return bool(kept or (_INSTEAD.search(one) and why) or (_ON_PURPOSE.search(one) and why))
