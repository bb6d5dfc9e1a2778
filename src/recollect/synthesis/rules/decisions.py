"""Decisions: the user's, in a prompt, and those that the assistant says it took.

What the assistant proposes is none until the user agrees, and 'let's go with that' only where it can be told
what 'that' is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from recollect.model import Observation
from recollect.synthesis.rules.finding import Finding
from recollect.synthesis.rules.phrases import phrases
from recollect.synthesis.rules.prose import is_next, is_proposal, without_lead
from recollect.synthesis.rules.turns import Turn
from recollect.synthesis.rules.words import (
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
TERSE = 80  # characters of a decision that nobody understands without the question

_LEAD = re.compile(
    r"(?:(?:ok(?:ay)?|oh|ah|and|but|so|well|hey|yes|yeah|yep|right|alright|fine|good|great|cool|nice|perfect"
    r"|sure|thanks?|thx|hm+|convinced|agreed|deal|makes sense|sounds good|then|decided|decision|good point"
    r"|fair(?: enough)?|you(?:'ve| have) convinced me|i'm convinced)\b[,:.!]{0,3}\s+){1,6}",
    re.I,
)
_CLAUSE = re.compile(r"[,;:]\s+|\s+(?:-|–|—|and|so|but|then)\s+")
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
    r"|adopt|standardi[sz]e on)\s+(?P<object>\S.*))",
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
    r"(?:we|i)(?:'ve| have)?(?: now| finally| just| already)? (?:decided|agreed|opted"
    r"|settled) (?P<what>\S+ \S.*)|(?:we|i)(?:'ve| have)?(?: now| finally| just| already)? (?:chose|switched"
    r"|moved|migrated) "
    r"(?=.{0,120}\b(?:over|instead of|rather than|from)\b)\S+ \S",
    re.I,
)
_SWITCHING = re.compile(
    r"(?:we're|we are|i'm|i am) (?:now )?(?:switching|moving|migrating) (?:over )?(?:from|to) \S", re.I
)
_KEEP = re.compile(
    r"(?:keep|use|drop|leave|stick with|stay with|take|switch to|stay on) (?P<what>\S.*)", re.I
)
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
    r"^we(?:'ve| have)? (?:now |finally |already )?(?:decided|agreed) (?:to|on|that|for)?\s*"
    r"|(?<=\w) then(?=[,.]|$)|,? (?:please|pls)(?=[.!]*$)",
    re.I,
)
_THEN = re.compile(
    r"(?:(?:ok(?:ay)?|fine|good|alright|right|yes|sounds good"
    r"|fine by me)[,.]? )?(?P<what>[\w.+#-]{2,30}(?: [\w.+#-]{2,30}){0,2})"
    r" then[.!]?$",
    re.I,
)
_SHORT_ANSWER = 6  # words
_GOES_ON = re.compile(r"(?:and|because|since|that|it|so)\b", re.I)
_TASK = re.compile(r"(?:can|could|would|will) you\b|please\b", re.I)
_FOR_IT = phrases(r"""
    because | since | as it | as we | so that | to avoid | reason | is made for | doesn't need | no need
    | simpler | faster | safer | enough | fewer | less | already | easier | cheaper | decides | would break
    | can't see
""")

_CHOSE = re.compile(
    r"\b(?:i|we)(?:'ve| have)?(?: deliberately| therefore| also)? (?:chose|chosen|opted|decided|picked"
    r"|settled|went)\b",
    re.I,
)
_INSTEAD = re.compile(
    r"\b(?:i|we)(?:'ve| have)?(?: deliberately)? (?:used?|kept|made|put|left|wrote|took|implemented|stayed)\b"
    r"[^.]{1,200}?\b(?:instead of|rather than|over)\b",
    re.I,
)
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
    for what, words in decisions(turn.prompt, turn.before):
        reasons = [sentence(one) for one in _reasons(what, turn.before)]
        terse = len(words) < TERSE and (not reasons or len(what.split()) <= 3)
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


def decisions(prompt: str, before: str) -> Iterator[tuple[str, str]]:
    """(what was decided, the words it was decided in); one a prompt, since the rest is about the same."""
    if answer := _answer(prompt, before):
        yield answer, prompt.strip()
        return
    said = [one for line in prompt_lines(prompt) for one in sentences(line)]
    for place, one in enumerate(said):
        if len(one) > LONGEST or one.endswith("?"):
            continue
        what = _decision(one, before)
        if what:
            after = [more for more in said[place + 1 : place + 3] if _goes_on(more)]
            yield what, " ".join([one, *after])
            return


def _answer(prompt: str, before: str) -> str:
    """'SQLite', to 'SQLite or Redis?'; with the question, since nobody knows it in a month."""
    then = _THEN.match(prompt.strip())
    if then and is_proposal(before) and _are_in(then["what"], before) and not _VAGUE.match(then["what"]):
        return then["what"]
    words = prompt.split()
    asked = [one for block in blocks(before)[-2:] for one in sentences(block)][-1:]
    if not words or len(words) > _SHORT_ANSWER or not asked or not asked[0].endswith("?") or "?" in prompt:
        return ""
    named = telling(prompt) - _POLITE
    if " or " in asked[0] and named and named <= telling(asked[0]):
        return f"{_ASIDES.sub('', prompt.strip()).rstrip('.!')} ({asked[0]})"
    return ""


def _are_in(names: str, text: str) -> bool:
    return all(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text[:4_000], re.I) for name in names.split())


_POLITE = frozenset("yes okay sure then take think thanks prefer rather".split())


def _goes_on(more: str) -> bool:
    return bool(_GOES_ON.match(more)) and not more.endswith("?") and not _TASK.search(more)


def _decision(said: str, before: str) -> str:
    starts = [0, *(match.end() for match in _CLAUSE.finditer(said))]
    agrees = bool(_AGREES.match(said)) and is_proposal(before)
    for start in starts[:CLAUSES]:
        rest = said[start:]
        lead = _LEAD.match(rest)
        rest = rest[lead.end() :] if lead else rest
        if _ASKING.match(rest):
            continue
        for form, what in _FORMS:
            if (match := form.match(rest)) and (form is not _KEEP or agrees):
                if chosen := what(match, rest, before):
                    return _ASIDES.sub("", chosen)
                break
    return ""


def _chosen(match: re.Match[str], rest: str, before: str) -> str:
    """By its name: 'the second one' is looked up in what was offered."""
    what = match["what"]
    named = match.groupdict().get("object") or what
    if not _VAGUE.match(named):
        return what
    ordinal = _ORDINAL.match(named)
    if not ordinal:
        return ""
    offered = _offered(before)
    place = _PLACES[(ordinal["place"] or ordinal["sign"] or ordinal["letter"]).lower()]
    return title(sentences(offered[place])[0]) if place < len(offered) else ""


def _is_choice(rest: str, before: str) -> bool:
    """'let's use a dropdown' may be a task; a decision is against something, or for what was offered."""
    return bool(_AGAINST.search(rest) or _WHY.search(rest) or _FOR_IT.search(rest)) or is_proposal(before)


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


_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str, str], str]], ...] = (
    (_GO, _chosen),
    (_LETS, lambda match, rest, before: _chosen(match, rest, before) if _is_choice(rest, before) else ""),
    (_IT_IS, lambda match, rest, before: "" if _VAGUE.match(match["what"]) else rest),
    (_DECIDED, lambda match, rest, before: "" if rest.rstrip(".! ").endswith("yet") else rest),
    (_SWITCHING, lambda match, rest, before: rest),
    (_KEEP, _agreed),
)


def _reasons(what: str, before: str) -> list[str]:
    """What was said for it before; if nothing was, what was said of it."""
    words = telling(what)
    said = [one for block in blocks(before) for one in sentences(block) if not one.endswith("?")]
    for_it = [one for one in said if _FOR_IT.search(one) and telling(one) & words]
    name = what.split("(", maxsplit=1)[0].strip(" .!")
    return for_it[:2] or [one for one in said if not is_proposal(one) and _are_in(name, one)][:1]


def chosen_by_assistant(turn: Turn) -> list[Finding]:
    """'I went with X rather than Y because ...', said of work that was really done."""
    if turn.end is None or not turn.ended or not turn.items:
        return []
    found = []
    for one in (one for block in blocks(turn.said) for one in sentences(block)):
        if len(one) > LONGEST or one.endswith("?") or is_next(one) or is_proposal(one):
            continue
        if (_CHOSE.search(one) and _ALTERNATIVE.search(one)) or (_INSTEAD.search(one) and _WHY.search(one)):
            text = sentence(without_lead(one))
            observation = Observation(
                "decision", title(text), text, concepts=concepts((text,)), cites=(turn.end,)
            )
            found.append(Finding(observation, turn.end))
    return found[:2]
