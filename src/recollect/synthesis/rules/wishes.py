"""The user's standing wishes, in the user's own words.

A wish counts where a clause begins with it: 'we use tabs', 'never push', 'please always ask'. In 'I always
get confused' or 'isn't that always slow?' the same words describe. What is meant for this task only ('don't
change any code yet') is no standing wish.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from recollect.model import Observation
from recollect.synthesis.rules.finding import Finding
from recollect.synthesis.rules.turns import Turn
from recollect.synthesis.rules.words import (
    TEXT_CHARS,
    concepts,
    prompt_lines,
    sentence,
    sentences,
    title,
    together,
)

MOST = 8  # of one prompt
LONGEST = 400  # characters of a sentence; what is longer is pasted, not said

_FILLERS = re.compile(
    r"(?:(?:ok(?:ay)?|oh|ah|and|but|so|also|well|hey|btw|by the way|fyi|no|nope|yes|yeah|please|pls|thanks?"
    r"|thx|cool|great|nice"
    r"|in general|generally|general(?: rule| note)?|one more thing|one thing|another thing|important"
    r"|reminder|rule|note|ps|p\.s|just|ok then|oh and"
    r"|super|perfect|good|right|great find[^,.!]{0,40})\b[,:.!]{0,3}\s+){1,5}",
    re.I,
)
_CLAUSE = re.compile(
    r"[,;:]\s+|\s+[-–—]{1,2}\s+|\s+\(|[.!?]\s+|\s+(?:but|and|so|because|since|as|that)\s+"
    r"(?=(?:please |pls |then )?(?:always|never|we |i |don't|do not|dont|stop |avoid |from now|in this |no "
    r"|use |keep |prefer ))",
    re.I,
)
_QUESTION = re.compile(
    r"(?:can|could|should|shall|would|will|why|what|how|is|isn't|are|aren't|do|does|did|don't you|didn't"
    r"|doesn't|when|where|who|which"
    r"|have|has|was|were|am|may|might)\b(?! not use)",
    re.I,
)
_TAG = re.compile(r"(?:right|correct|no|or|or not|isn't it|don't we|aren't we|ok|okay)\W*\?\s*$", re.I)

_SCOPE = (
    r"(?:in|for|across|throughout|of|inside) (?:this|our|the|my|all(?: of)?(?: our| the)?|every) "
    r"(?:whole |entire )?(?:repo(?:sitory)?|project|code ?base|code|team|company|package|app|product"
    r"|monorepo|house|workspace)\b"
)
_STANDING = re.compile(
    rf"\b(?:from now on|going forward|from here on|always|never|ever\b|any ?more|everywhere|anywhere"
    rf"|again\b|by default|as a rule"
    rf"|by convention|our convention|in general|without (?:asking|telling|my|checking)|unless i|on your own"
    rf"|by yourself|all the time"
    rf"|every time|each time|when(?:ever)? you|before (?:you )?(?:commit|push|merg|releas|deploy)\w*"
    rf"|in commit messages?|in commits?\b"
    rf"|in (?:the |our )?(?:tests|commit messages?|comments|docs|production|code)\b|{_SCOPE})",
    re.I,
)
_STRONG = re.compile(
    rf"\b(?:{_SCOPE}|only\b|always|never|everywhere|not \w+|instead of|rather than|no (?!problem|idea"
    rf"|worries)\w+|by convention|convention(?:al|s)?\b"
    r"|for (?:all|every(?:thing)?|each|any|new)\b|style\b|strictly|policy|standard)",
    re.I,
)
_HERE = re.compile(r"\bhere\b(?! to\b)|\bin our\b|\bat \w+ we\b", re.I)
_FOR_NOW = re.compile(
    r"\b(?:yet|for now|right now|just now|at the moment|for the moment|today|tonight|this time|this once"
    r"|first step"
    r"|in this (?:pr|commit|file|function|step|task|branch|change|session|test|class|method|pull request)"
    r"|until i|before i"
    r"|i just want|just want)\b",
    re.I,
)
_PROBLEM = re.compile(
    r"\b(?:bugs?|broken|fail(?:s|ed|ing)|errors?|wrong|crash\w*|why|slow|doesn't|not working)\b", re.I
)

_NO_VERB = frozenset(
    "mind seen had been got was were is are a an the this that these those it its happy sure ready worked thought knew heard"
    " wrong right so in on at to of for and or but if when as with ending too been had has have did does do's my your"
    " happen happens ends gets seems looks fails returns breaks shows works crashes needs takes gives says comes goes"
    " understood understand saw see know remember forget get gotten tried wanted felt really quite true false null none".split()
)
_DESCRIBES = frozenset(
    "get see have had need wonder forget know find end seem run hit notice noticed struggle struggled got saw found hear"
    " thought assumed wanted planned meant intended think believe hope want did".split()
)
_ALWAYS = re.compile(
    r"(?P<who>you (?:should|must|can) |we (?:should |must |want to )?|make sure (?:to |you |that you |we )"
    r"|be sure to "
    r"|i (?:want|need) you to |i'd like you to |i (?=(?:always|never) want)|remember to |tests? (?:should"
    r"|must) |code (?:should|must) )?"
    r"(?P<how>always|never(?: ever)?|only ever) (?P<verb>[a-z'-]{2,20})\b",
    re.I,
)
_FROM_NOW = re.compile(
    r"(?:from now on|going forward|from here on(?: out)?|as a (?:general )?rule|for future reference)\b", re.I
)
_LATER = re.compile(
    r"(?:in (?:the )?future|next time|by default|when(?:ever)? you|every time you|each time you"
    r"|before (?:you |every |each |any )?"
    r"(?:commit|push|merg|releas|deploy)\w*|after (?:you |every |each |any ))[^.!?]{0,80}?[, ]"
    r"(?:please|pls|don't|do not|never|always|use|run|ask|write|add|keep|put|make|check|prefer|commit|tell"
    r"|show|start|stop|skip|leave|name)\b",
    re.I,
)
_WE = re.compile(
    r"(?:here |in this (?:repo(?:sitory)?|project|code ?base|team|house),? |at \w+,? |note that |because "
    r"|since |as )?we"
    r"(?: (?:only|all|just|strictly|always|generally|usually|normally|really|exclusively))?(?:'re| are)? "
    r"(?P<verb>use|using|follow|stick (?:to|with)|prefer|require|avoid|write|keep|name|commit|deploy|squash"
    r"|format|target|support"
    r"|run|test|pin|put|do|don't|do not|never|always|like|work|release|branch|rebase|merge|call|want"
    r"|have (?:a rule|agreed|a convention)|allow|expect)\b",
    re.I,
)
_WE_PLAIN = frozenset(
    {"use", "follow", "stick to", "stick with", "prefer", "require", "avoid", "never", "always"}
)
_WE_DONT = re.compile(
    r"(?:do not|don't) (?!know|have|see|get|need|understand|care|really|think|remember|want to (?:know|see)"
    r"|mind)\w+",
    re.I,
)
_DONT = re.compile(
    r"(?:don't|do not|dont|stop|avoid|quit|refrain from|you don't (?:have|need) to"
    r"|no need to)\s+(?P<what>\S.*)",
    re.I,
)
_THAT = re.compile(
    r"(?:do(?:ing)?|use|using|change|touch)?\s*(?:that|this|it|so|them|these|those)\b(?:\s+(?:again"
    r"|any ?more|please))?\W*$",
    re.I,
)
_STYLE = re.compile(
    r"(?:us(?:e|ing)|add(?:ing)?|writ(?:e|ing)|put(?:ting)?|creat(?:e|ing)|includ(?:e|ing)|introduc(?:e"
    r"|ing)|mock(?:ing)?|catch(?:ing)?)\s+(?:any |more |new |so many )?"
    r"(?:emojis?|(?:inline |code |obvious )?comments|docstrings|abbreviations|print statements|semicolons"
    r"|wildcard imports|star imports|mocks"
    r"|default exports|type: ?ignore|co-author\w*|global(?:s| variables| state)|any types?|classes"
    r"|inheritance|new dependencies|dependencies|external \w+"
    r"|third[- ]party \w+|bare excepts?|magic numbers|todos?|summar(?:y|ies)|markdown files|readmes?)\b",
    re.I,
)
_I = re.compile(
    r"i (?:really |strongly |generally |usually |personally |absolutely |much |just )?(?P<verb>prefer|hate"
    r"|dislike|can't stand|cannot stand"
    r"|don't (?:really )?like|do not like|never want|always want|don't want|do not want|want"
    r"|like)\s+(?P<what>\S.*)",
    re.I,
)
_I_NOT = re.compile(
    r"(?:this|that|it|these|those|them|when|how|to (?:see|know|understand|be|find|get|do|have|look|check"
    r"|say|think)|the (?:first|second|third|former|latter|other|idea|look|way|old)|option"
    r"|a|b|your|my (?:life|job)|the|you to|an?|what|both|having to)\b",
    re.I,
)
_PREFER = re.compile(
    r"prefer(?!red|ence|ably) (?!(?:this|that|it)\b)\S.{2,120}? (?:over|to|instead of|rather than) \S", re.I
)
_REMEMBER = re.compile(
    r"(?:remember|keep in mind|bear in mind|for the record|note for (?:the )?(?:future|later)"
    r"|don't forget)[,:]?\s+"
    r"(?:(?:that|to)\s+)?(?!when\b|the time|how\b|what\b|where\b|me\b|it\b|this\b|that\b)\S.*",
    re.I,
)
_USE_NOT = re.compile(r"use \S.{0,60}?(?:,? not |,? instead of |,? rather than |,? never )\S", re.I)
_EVERY = re.compile(
    r"(?:all|every|each|any|new) (?:\w+ ){0,2}(?:commits?|tests?|endpoints?|functions?|modules?|migrations?"
    r"|prs?|pull requests?|files?|changes?"
    r"|features?|releases?|branch(?:es)?|class(?:es)?|methods?|apis?|quer(?:y|ies)|strings?|components?"
    r"|dates?|times?|timestamps?|amounts?|prices?|money"
    r"|ids?|routes?|handlers?|models?|commands?|scripts?|hooks?|errors?|logs?|imports?|variables?"
    r"|names?) (?:must|has to|have to|needs?(?: to)?"
    r"|should|are|is|go(?:es)?|gets?|come with) (?!fail|broken|red|wrong|missing|gone|slow|lost)\w+",
    re.I,
)
_OUR_RULE = re.compile(
    r"(?:our|the(?= .{0,40}\b(?:here|in this)\b)) (?:\w+ ){0,2}(?:convention|rule|policy|standard"
    r"|house style|style guide|guideline)s?\b.{0,40}?\b(?:is|are|says?|that)\b",
    re.I,
)
_ANSWERS = re.compile(
    r"(?:(?:always |only )?(?:answer|reply|respond|talk|speak|explain(?: things| it)?)(?: to me| me)? (?:in"
    r"|with) \w+"
    r"|keep (?:your |the |all )?(?:answers?|replies|responses?|explanations?|summar(?:y|ies)|messages?"
    r"|commit messages?|commits|prs|functions|diffs) \w+"
    r"|call me \w+|be (?:more )?(?:brief|concise|terse)\b.{0,40}\b(?:always|please|in your))",
    re.I,
)
_ABOUT_USER = re.compile(
    r"\b(?:answers?|repl(?:y|ies)|respon(?:d|ses?)|explanations?|explain|summar(?:y|ies|ise|ize)|tone"
    r"|in (?:german|english|french|spanish|italian"
    r"|portuguese|dutch|polish|russian|chinese|japanese)|ask me|tell me|call me|show me|talk to me"
    r"|bullet points?|emojis?|small talk|concise|verbose|apologi[sz]e"
    r"|flatter\w*|wall of text|to the point|speak)\b",
    re.I,
)
_ABOUT_PROJECT = re.compile(
    rf"\b(?:{_SCOPE}|here|we|our|commits?|tests?|code|files?|functions?|branch|docs?|readme|repo|project"
    rf"|codebase|release|comments)\b",
    re.I,
)
_RULES = re.compile(
    r".{0,80}\b(?:rules?|conventions?|guidelines?|preferences|standards|principles"
    r"|ground rules)\b.{0,60}:\s*$",
    re.I,
)
_REASON = re.compile(r"(?:it|they|that|this|because|since|otherwise|so that|reason)\b", re.I)
_REQUEST = re.compile(r"(?:can|could|would|will) you\b|please (?:fix|change|add|do|reword|update)\b", re.I)


def wished(turn: Turn, project: str) -> list[Finding]:
    if turn.prompt_item is None or turn.prompt.lstrip().startswith(("/", "<")):
        return []
    found: list[Finding] = []
    for wish, reason in wishes(turn.prompt, project):
        observation = Observation(
            kind="preference",
            title=title(wish),
            text=together([sentence(wish), sentence(reason)], TEXT_CHARS),
            concepts=concepts((wish, reason)),
            cites=(turn.prompt_item,),
            is_global=is_about_user(wish),
        )
        found.append(Finding(observation, turn.prompt_item))
        if len(found) == MOST:
            break
    return found


def wishes(prompt: str, project: str = "") -> Iterator[tuple[str, str]]:
    """(wish, reason) of each standing wish."""
    lines = prompt_lines(prompt)
    asks = "?" in prompt or bool(_PROBLEM.search(prompt[:2_000]))
    listing = False
    seen: set[str] = set()
    for line in lines:
        if _RULES.match(line[:200]):
            listing = True
            continue
        said = sentences(line)
        for place, one in enumerate(said):
            wish = _wish(one, project, asks) if len(one) <= LONGEST else ""
            if not wish and listing and place == 0 and 8 <= len(line) <= 200 and not line.endswith("?"):
                wish = line
            if wish and wish.lower() not in seen:
                seen.add(wish.lower())
                after = said[place + 1] if place + 1 < len(said) else ""
                gives_reason = _REASON.match(after) and not after.endswith("?") and not _REQUEST.search(after)
                yield wish, after if gives_reason and len(after) < 200 else ""


def _wish(said: str, project: str, asks: bool) -> str:
    """From where the wish begins to the end of the sentence; "" where there is none."""
    starts = [0, *(match.end() for match in _CLAUSE.finditer(said))]
    for place, start in enumerate(starts):
        rest = said[start:]
        end = starts[place + 1] - start if place + 1 < len(starts) else None
        clause = said[start:end] if end else rest
        if clause.rstrip().endswith("?") or _TAG.search(rest[-30:]):
            continue
        filler = _FILLERS.match(rest)
        for one in (rest, rest[filler.end() :]) if filler else (rest,):  # 'no' may be a filler, and may not
            if not _QUESTION.match(one) and _is_wish(one, project, asks):
                return _without_request(one)
    return ""


def _is_wish(rest: str, project: str, asks: bool) -> bool:
    if match := _ALWAYS.match(rest):
        return _orders(match)
    if _FROM_NOW.match(rest) or (_LATER.match(rest) and not rest.endswith("?")):
        return True
    if match := _WE.match(rest):
        return _is_custom(match, rest, asks)
    if match := _I.match(rest):
        return _is_liking(match, rest)
    if match := _DONT.match(rest):
        return _forbids(match["what"], rest)
    if _USE_NOT.match(rest):
        return bool(_STANDING.search(rest) or _HERE.search(rest)) and not _FOR_NOW.search(rest)
    if _PREFER.match(rest) or _OUR_RULE.match(rest) or _ANSWERS.match(rest) or _REMEMBER.match(rest):
        return not _FOR_NOW.search(rest) and len(rest.split()) >= 3
    if _EVERY.match(rest):
        return bool(_STANDING.search(rest) or _HERE.search(rest)) and not _FOR_NOW.search(rest)
    if re.match(
        r"in this (?:repo(?:sitory)?|project|code ?base|team|house),? (?:we|use|never|always|all|every"
        r"|don't|no|please|tests?)\b",
        rest,
        re.I,
    ):
        return not asks or bool(_STRONG.search(rest[15:]))
    return _forbids_here(rest, project) or bool(re.search(r"\bfrom now on\b", rest[:LONGEST], re.I))


def _orders(match: re.Match[str]) -> bool:
    verb, who = match["verb"].lower(), (match["who"] or "").lower().strip()
    if (
        verb in _NO_VERB
        or verb.endswith(("ing", "n't"))
        or (verb.endswith("ed") and verb not in ("need", "embed"))
    ):
        return False
    if verb.endswith("s") and not verb.endswith(("ss", "us", "as", "is")):
        return False  # 'always fails' tells, 'always fail' asks
    return not (who in ("we", "") and verb in _DESCRIBES)


def _is_custom(match: re.Match[str], rest: str, asks: bool) -> bool:
    verb = match["verb"].lower()
    if _FOR_NOW.search(rest):
        return False
    if verb in ("don't", "do not"):
        allowed = _WE_DONT.match(rest, match.start("verb"))
        return bool(allowed) and (not asks or bool(_STANDING.search(rest) or _HERE.search(rest)))
    if verb == "want" or verb == "like":
        return bool(_STANDING.search(rest))
    if _STRONG.search(rest[match.end() :]) or (_HERE.search(rest) and not asks):
        return True
    return verb in _WE_PLAIN and not asks and len(rest.split()) <= 10


def _is_liking(match: re.Match[str], rest: str) -> bool:
    verb, what = match["verb"].lower(), match["what"]
    if _FOR_NOW.search(rest):
        return False
    if verb in ("never want", "always want"):
        return True
    if verb in ("don't want", "do not want", "want"):
        return bool(_STANDING.search(rest)) and not _I_NOT.match(what.removeprefix("you to "))
    if verb == "like":
        return (
            bool(re.match(r"(?:my|short|small|concise|explicit|plain|simple)\b", what, re.I))
            and len(what.split()) >= 2
        )
    if _I_NOT.match(what) and not _STANDING.search(rest):
        return False
    return len(what.split()) >= 1


def _forbids(what: str, rest: str) -> bool:
    if _THAT.match(what) or _FOR_NOW.search(rest):
        return False
    return bool(_STANDING.search(rest) or _STYLE.match(what))


def _forbids_here(rest: str, project: str) -> bool:
    """'no dependencies in taskpile'; 'no new dependencies'."""
    match = re.match(
        r"no (?P<what>(?:[\w/-]+ ){0,3}?[\w/-]+)(?P<after> (?:in|inside|within|for) .*|\s*[,.;!].*"
        r"|\s*(?:please|pls|ever)?\W*$)",
        rest,
        re.I,
    )
    if not match or re.match(
        r"(?:problem|idea|worries|need|rush|hurry|way|change|matter|one|more questions|doubt|reason|luck"
        r"|clue)\b",
        match["what"],
        re.I,
    ):
        return False
    after = match["after"].strip()
    place = re.match(
        rf"(?:in|inside|within|for) (?:{re.escape(project)}|this (?:repo(?:sitory)?|project|code ?base|app"
        rf"|package)|our \w+|here|the (?:code ?base|repo|project|core)"
        r"|tests|commit messages?|production(?: code)?)(?:$|\W)"
        if project
        else r"(?:in|inside|within) (?:this (?:repo|project|code ?base|package)|our \w+|here)(?:$|\W)",
        after,
        re.I,
    )
    dependencies = re.match(
        r"(?:new |more |extra |external |third[- ]party |runtime |additional )?(?:dependenc(?:y|ies)|deps"
        r"|libraries|packages|frameworks)$",
        match["what"],
        re.I,
    )
    return bool(place or dependencies)


def _without_request(rest: str) -> str:
    """'we use tabs, can you fix that' ends before the request."""
    for mark in (". ", ", ", "; ", " and ", " so ", " - "):
        place = rest.find(mark)
        while place > 0:
            if _REQUEST.match(rest, place + len(mark)):
                return rest[:place]
            place = rest.find(mark, place + 1)
    return rest


def is_about_user(wish: str) -> bool:
    return bool(_ABOUT_USER.search(wish)) and not _ABOUT_PROJECT.search(wish)
