"""The user's standing wishes, in the user's own words.

A wish counts where a clause begins with it: 'we use tabs', 'never push', 'please always ask'. In 'I always
get confused' or 'isn't that always slow?' the same words describe. What is meant for this task only ('don't
change any code yet') is no standing wish.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from recollect.model import Observation
from recollect.synthesis.rules.finding import Finding
from recollect.synthesis.rules.phrases import phrases
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
SHORT = 10  # words of a plain statement

_PROJECT = (
    r"(?:repo(?:sitory)?|project|code ?base|code|team|company|package|app|product|monorepo|house|workspace)"
)
_SCOPE = (
    r"(?:in|for|across|throughout|of|inside) (?:this|our|the|my|all(?: of)?(?: our| the)?|every) "
    rf"(?:whole |entire )?{_PROJECT}"
)

# --- clauses ------------------------------------------------------------------------------------------------

_FILLERS = re.compile(
    r"(?:(?:ok(?:ay)?|oh|ah|and|but|so|also|well|hey|btw|by the way|fyi|no|nope|yes|yeah|please|pls|thanks?"
    r"|thx"
    r"|cool|great|nice|super|perfect|good|right|in general|generally|general(?: rule| note)?|one more thing"
    r"|one thing"
    r"|another thing|important|reminder|rule|note|ps|just|ok then|oh and"
    r"|great find[^,.!]{0,40})\b[,:.!]{0,3}\s+){1,5}",
    re.I,
)
_CLAUSE = re.compile(
    r"[,;:]\s+|\s+[-–—]{1,2}\s+|\s+\(|[.!?]\s+|\s+(?:but|and|so|because|since|as|that)\s+"
    r"(?=(?:please |pls |then )?(?:always|never|we |i |don't|do not|dont|stop |avoid |from now|in this |no "
    r"|use |keep "
    r"|prefer ))",
    re.I,
)
_QUESTION = re.compile(
    r"(?:can|could|should|shall|would|will|why|what|how|is|isn't|are|aren't|do(?! not)|does|did|don't you"
    r"|didn't"
    r"|doesn't|when (?!you)|where|who|which|have|has|was|were|am|may|might)\b",
    re.I,
)
_TAG = re.compile(r"\b(?:right|correct|no|or|or not|isn't it|don't we|aren't we|ok|okay)\W*\?\s*$", re.I)
_REQUEST = re.compile(r"(?:can|could|would|will) you\b|please (?:fix|change|add|do|reword|update)\b", re.I)
_REASON = re.compile(r"(?:it|they|that|this|because|since|otherwise|so that|reason)\b", re.I)
_RULES = re.compile(
    r".{0,80}\b(?:rules?|conventions?|guidelines?|preferences|standards|principles)\b.{0,60}:\s*$", re.I
)

# --- how long it holds --------------------------------------------------------------------------------------

_STANDING = phrases(rf"""
    from now on | going forward | from here on | always | never | ever | any ?more | everywhere
    | anywhere | again
    | by default | as a rule | by convention | our convention | in general
    | without (?:asking|telling|my|checking)
    | unless i | on your own | by yourself | all the time | every time | each time | when(?:ever)? you
    | before (?:you )?(?:commit|push|merg|releas|deploy)\w* | in commit messages? | in commits?
    | in (?:the |our )?(?:tests|comments|docs|production|code) | {_SCOPE}
""")
_STRONG = phrases(rf"""
    {_SCOPE} | only | always | never | everywhere | not \w+ | instead of | rather than | by convention
    | no (?!problem|idea|worries)\w+ | convention(?:al|s)? | for (?:all|every(?:thing)?|each|any|new) | style
    | strictly | policy | standard
""")
_HERE = re.compile(r"\bhere\b(?! to\b)|\bin our\b", re.I)
_FOR_NOW = phrases(r"""
    yet | for now | right now | just now | at the moment | for the moment | today | tonight | this time
    | this once
    | first step | until i | before i | i just want | just want
    | in this (?:pr|commit|file|function|step|task|branch|change|session|test|class|method|pull request)
""")
_PROBLEM = phrases(
    r"bugs? | broken | fail(?:s|ed|ing) | errors? | wrong | crash\w* | breaks? | why | slow | doesn't "
    r"| not working"
)

# --- the forms of a wish ------------------------------------------------------------------------------------

_ALWAYS = re.compile(
    r"(?P<who>you (?:should|must|can) |we (?:should |must |want to )?|make sure (?:to |you |that you |we )"
    r"|be sure to "
    r"|i (?:want|need) you to |i'd like you to |i (?=(?:always|never) want)|remember to |(?:tests?"
    r"|code) (?:should|must) )?"
    r"(?:always|never(?: ever)?|only ever) (?P<verb>[a-z'-]{2,20})\b",
    re.I,
)
_NO_VERB = frozenset(
    "mind seen had been got was were is are a an the this that these those it its happy sure ready worked"
    " knew thought heard wrong right so in on at to of for and or but if when as with ending too has have did"
    " does my your happen understood understand saw see know remember forget get gotten tried wanted felt"
    " really quite true false null none again".split()
)
_TELLING_VERBS = frozenset(  # 'we never find out' complains
    "get see have had need wonder forget know find end seem run hit notice struggle got saw found hear"
    " thought assumed wanted planned meant intended think believe hope want did".split()
)
_FROM_NOW = re.compile(
    r"(?:from now on|going forward|from here on(?: out)?|as a (?:general )?rule|for future reference)\b", re.I
)
_SOMETIME = re.compile(
    r"(?:in (?:the )?future|next time|by default|when(?:ever)? you|every time you|each time you"
    r"|after (?:you|every|each|any)"
    r"|before (?:you |every |each |any )?(?:commit|push|merg|releas|deploy)\w*)\b[^.!?]{0,80}?[, ]"
    r"(?:please|pls|don't|do not|never|always|use|run|ask|write|add|keep|put|make|check|prefer|commit|tell"
    r"|show|start"
    r"|stop|skip|leave|name)\b",
    re.I,
)
_WE = re.compile(
    r"(?:here,? |in this (?:repo(?:sitory)?|project|code ?base|team|house),? |at \w+,? |note that |because "
    r"|since |as )?we"
    r"(?: (?P<how>only|all|just|strictly|always|generally|usually|normally|really|exclusively))?(?:'re"
    r"| are)? "
    r"(?P<verb>use|using|follow|stick (?:to|with)|prefer|require|avoid|write|keep|name|commit|deploy|squash"
    r"|format"
    r"|target|support|run|test|pin|put|do(?! not)|don't|do not|never|always|like|work|release|branch|rebase"
    r"|merge|call"
    r"|want|allow|expect)\b",
    re.I,
)
_WE_STATES = frozenset("use follow prefer require avoid never always".split()) | {"stick to", "stick with"}
_WE_REFUSES = re.compile(
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
    r"(?:do(?:ing)?|use|using|change|touch)?\s*(?:that|this|it|so|them|these|those)\b"
    r"(?:\s+(?:again|any ?more|please))?\W*$",
    re.I,
)
_HABIT = re.compile(
    r"(?:us|add|writ|put|creat|includ|introduc|mock|catch|end)(?:e|t?ing)?\s+(?:any |more |new |so many "
    r"|all these )?"
    r"(?:emojis?|(?:inline |code |obvious )?comments|docstrings|abbreviations|print statements|semicolons"
    r"|(?:wildcard|star) imports|mocks|default exports|type: ?ignore|co-author\w*|globals?|any types?"
    r"|classes|inheritance"
    r"|(?:new |external )?dependencies|third[- ]party \w+|bare excepts?|magic numbers|todos?|summar(?:y|ies)"
    r"|markdown files|readmes?)\b",
    re.I,
)
_I = re.compile(
    r"i (?:really |strongly |generally |usually |personally |absolutely |much |just )?"
    r"(?P<verb>prefer|hate|dislike|can't stand|cannot stand|don't (?:really )?like|do not like|never want"
    r"|always want"
    r"|don't want|do not want|want|like)\s+(?P<what>\S.*)",
    re.I,
)
_ONE_THING = re.compile(
    r"(?:this|that|it|these|those|them|when|how|what|both|the|your|an?|b|option|you to|having to|my (?:life"
    r"|job)"
    r"|to (?:see|know|understand|be|find|get|do|have|look|check|say|think))\b",
    re.I,
)
_LIKED = re.compile(r"(?:my|short|small|concise|explicit|plain|simple)\s+\w", re.I)
_PREFER = re.compile(r"prefer (?!(?:this|that|it)\b)\S.{2,120}? (?:over|to|instead of|rather than) \S", re.I)
_REMEMBER = re.compile(
    r"(?:remember|keep in mind|bear in mind|for the record|note for (?:the )?(?:future|later))[,:]?\s+"
    r"(?:(?:that|to)\s+)?(?!when\b|the time|how\b|what\b|where\b|me\b|it\b|this\b|that\b)\S+ \S+ \S",
    re.I,
)
_USE_NOT = re.compile(r"use \S.{0,60}?(?:,? not |,? instead of |,? rather than |,? never )\S", re.I)
_EVERY = re.compile(
    r"(?:all|every|each|any|new) (?:\w+ ){0,2}(?:commits?|tests?|endpoints?|functions?|modules?|migrations?"
    r"|prs?|files?"
    r"|pull requests?|changes?|features?|releases?|branch(?:es)?|class(?:es)?|methods?|apis?|quer(?:y|ies)"
    r"|strings?"
    r"|components?|dates?|times?|timestamps?|amounts?|prices?|money|ids?|routes?|handlers?|models?"
    r"|commands?|scripts?"
    r"|hooks?|errors?|logs?|imports?|variables?|names?) (?:must|has to|have to|needs?(?: to)?|should|are|is"
    r"|go(?:es)?"
    r"|gets?|come with) (?!fail|broken|red|wrong|missing|gone|slow|lost)\w+",
    re.I,
)
_OUR_RULE = re.compile(
    r"(?:our|the(?= .{0,40}\b(?:here|in this)\b)) (?:\w+ ){0,2}"
    r"(?:convention|rule|policy|standard|house style|style guide|guideline)s?\b.{0,40}?\b(?:is|are|says?"
    r"|that)\b",
    re.I,
)
_IN_THIS = re.compile(
    rf"in this {_PROJECT},? (?:we|use|never|always|all|every|don't|no|please|tests?)\b(?P<rest>.*)", re.I
)
_ANSWER = re.compile(
    r"(?:always |only )?(?:answer|reply|respond|talk|speak|explain(?: things)?)(?: to me| me)? (?:in"
    r"|with) \w+"
    r"|keep (?:your |the |all )?(?:answers?|replies|responses?|explanations?|summar(?:y|ies)|messages?"
    r"|commit messages?"
    r"|commits|prs|functions|diffs) \w+|call me \w+|be (?:more )?(?:brief|concise|terse)\b",
    re.I,
)
_NO = re.compile(
    r"no (?P<what>(?:[\w/-]+ ){0,3}?[\w/-]+)(?P<after> (?:in|inside|within|for) .*|\s*[,.;!].*|\s*(?:please"
    r"|pls|ever)?\W*$)",
    re.I,
)
_NO_IDIOM = re.compile(
    r"(?:problem|idea|worries|need|rush|hurry|way|change|matter|one|more questions|doubt|reason|luck|clue)\b",
    re.I,
)
_DEPENDENCIES = re.compile(
    r"(?:new |more |extra |external |third[- ]party |runtime |additional )?(?:dependenc(?:y|ies)|deps"
    r"|libraries|packages"
    r"|frameworks)$",
    re.I,
)

_ABOUT_USER = phrases(r"""
    answers? | repl(?:y|ies) | respon(?:d|ses?) | explanations? | explain | summar(?:y|ies|ise|ize)
    | tone | ask me
    | in (?:german|english|french|spanish|italian|portuguese|dutch|polish|russian|chinese|japanese)
    | tell me | call me
    | show me | talk to me | bullet points? | emojis? | small talk | concise | verbose | apologi[sz]e
    | flatter\w*
    | wall of text | to the point | speak | brief | terse
""")
_ABOUT_PROJECT = phrases(rf"""
    {_SCOPE} | here | we | our | commits? | tests? | code | files? | functions? | branch | docs?
    | readme | repo
    | project | codebase | release | comments
""")


@dataclass(frozen=True, slots=True)
class _Said:
    """A clause to its sentence's end, and what it stands in."""

    text: str
    project: str
    asks: bool  # the prompt asks something or tells of a problem; then 'we use' may only describe

    def stands(self) -> bool:
        return bool(_STANDING.search(self.text) or _HERE.search(self.text))


def _orders(match: re.Match[str], said: _Said) -> bool:
    verb, who = match["verb"].lower(), (match["who"] or "").lower().strip()
    describes = verb in _NO_VERB or verb.endswith(("ing", "n't")) or (verb.endswith("ed") and verb != "need")
    if verb.endswith("s") and not verb.endswith(("ss", "us", "as", "is")):
        describes = True  # 'always fails' tells, 'always fail' asks
    return not describes and not (who == "we" and verb in _TELLING_VERBS)


def _is_custom(match: re.Match[str], said: _Said) -> bool:
    verb = match["verb"].lower()
    if verb in ("don't", "do not"):
        return bool(_WE_REFUSES.match(said.text, match.start("verb"))) and (not said.asks or said.stands())
    if verb in ("want", "like"):
        return bool(_STANDING.search(said.text))
    strictly = (match["how"] or "").lower() in ("only", "strictly", "always", "exclusively")
    if strictly or _STRONG.search(said.text[match.end() :]) or (_HERE.search(said.text) and not said.asks):
        return True
    return verb in _WE_STATES and not said.asks and len(said.text.split()) <= SHORT


def _is_taste(match: re.Match[str], said: _Said) -> bool:
    verb, what = match["verb"].lower(), match["what"]
    if verb in ("never want", "always want"):
        return True
    if verb in ("don't want", "do not want", "want"):
        return bool(_STANDING.search(said.text)) and not _ONE_THING.match(what.removeprefix("you to "))
    if verb == "like":
        return bool(_LIKED.match(what))
    return not _ONE_THING.match(what) or bool(_STANDING.search(said.text))


def _forbids(match: re.Match[str], said: _Said) -> bool:
    what = match["what"]
    return not _THAT.match(what) and bool(_STANDING.search(said.text) or _HABIT.match(what))


def _excludes(match: re.Match[str], said: _Said) -> bool:
    """'no dependencies in taskpile'; 'no new dependencies'."""
    if _NO_IDIOM.match(match["what"]):
        return False
    places = [r"this (?:repo(?:sitory)?|project|code ?base|app|package)", r"our \w+", "here"]
    places += [r"the (?:code ?base|repo|project|core)", "tests", "commit messages?", "production(?: code)?"]
    places += [re.escape(said.project)] if said.project else []
    here = re.match(rf"\s*(?:in|inside|within|for) (?:{'|'.join(places)})(?:$|\W)", match["after"], re.I)
    return bool(here or _DEPENDENCIES.match(match["what"]))


# Each form, and what else must be true of a clause that begins with it. The first that fits decides.
_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], _Said], bool]], ...] = (
    (_ALWAYS, _orders),
    (_FROM_NOW, lambda match, said: True),
    (_SOMETIME, lambda match, said: True),
    (_WE, _is_custom),
    (_I, _is_taste),
    (_DONT, _forbids),
    (_USE_NOT, lambda match, said: said.stands()),
    (_PREFER, lambda match, said: True),
    (_OUR_RULE, lambda match, said: True),
    (_ANSWER, lambda match, said: True),
    (_REMEMBER, lambda match, said: True),
    (_EVERY, lambda match, said: said.stands()),
    (_IN_THIS, lambda match, said: not said.asks or bool(_STRONG.search(match["rest"]))),
    (_NO, _excludes),
    (re.compile(r".{1,300}?\b(?:from now on|going forward)\b", re.I), lambda match, said: True),
)


def wished(turn: Turn, project: str) -> list[Finding]:
    if turn.prompt_item is None or turn.prompt.lstrip().startswith(("/", "<")):
        return []
    found: list[Finding] = []
    for wish, reason in wishes(turn.prompt, project):
        observation = Observation(
            kind="preference",
            title=title(_TRAILING_PLEASE.sub("", wish)),
            text=together([sentence(wish), sentence(reason)], TEXT_CHARS),
            concepts=concepts((wish, reason)),
            cites=(turn.prompt_item,),
            is_global=is_about_user(wish),
        )
        found.append(Finding(observation, turn.prompt_item))
        if len(found) == MOST:
            break
    return found


_TRAILING_PLEASE = re.compile(r",?\s+(?:please|pls|ok|okay)(?=\W*$|,)", re.I)


def wishes(prompt: str, project: str = "") -> Iterator[tuple[str, str]]:
    """(wish, reason) of each standing wish."""
    asks = "?" in prompt or bool(_PROBLEM.search(prompt[:2_000]))
    listing = False
    seen: set[str] = set()
    for line in prompt_lines(prompt):
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
                yield wish, _reason(said[place + 1] if place + 1 < len(said) else "")


def _reason(after: str) -> str:
    gives_one = (
        _REASON.match(after) and not after.endswith("?") and not _REQUEST.search(after) and len(after) < 200
    )
    return after if gives_one else ""


def _wish(sentence: str, project: str, asks: bool) -> str:
    """From where the wish begins to the end of the sentence; "" where there is none."""
    starts = [0, *(match.end() for match in _CLAUSE.finditer(sentence))]
    for start, end in zip(starts, [*starts[1:], len(sentence)], strict=True):
        rest = sentence[start:]
        if sentence[start:end].rstrip().endswith("?") or _TAG.search(rest[-30:]):
            continue
        filler = _FILLERS.match(rest)
        for one in (rest, rest[filler.end() :]) if filler else (rest,):  # 'no' may be a filler, and may not
            if not _QUESTION.match(one) and _is_wish(_Said(one, project, asks)):
                return _without_request(one)
    return ""


def _is_wish(said: _Said) -> bool:
    for form, holds in _FORMS:
        if match := form.match(said.text):
            return not _FOR_NOW.search(said.text) and holds(match, said)
    return False


def _without_request(wish: str) -> str:
    """'we use tabs, can you fix that' ends before the request."""
    for match in re.finditer(r"[.,;]\s+|\s+(?:and|so|-)\s+", wish):
        if _REQUEST.match(wish, match.end()):
            return wish[: match.start()]
    return wish


def is_about_user(wish: str) -> bool:
    return bool(_ABOUT_USER.search(wish)) and not _ABOUT_PROJECT.search(wish)
