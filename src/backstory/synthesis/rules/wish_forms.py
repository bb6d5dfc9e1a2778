"""The forms that a standing wish has: how a clause begins, and what else must be true of it.

'Always run the linter' is one, 'always the same error' is not; 'don't ever push' is one, 'don't change any
code yet' is not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from backstory.synthesis.rules.phrases import phrases
from backstory.synthesis.rules.standing_rules import PROJECT, SCOPE, is_rule

SHORT = 10  # words of a plain statement


# --- how long it holds --------------------------------------------------------------------------------------

_STANDING = phrases(rf"""
    from now on | going forward | from here on | always | never | ever | any ?more | everywhere | anywhere
    | again | as a rule | by convention | our convention | in general
    | without (?:asking|telling|my|checking) | unless i | on your own | by yourself | all the time
    | every time | each time | whenever you | before (?:you )?(?:commit|push|merg|releas|deploy)\w*
    | in commit messages? | in commits? | in (?:our )?(?:tests|comments|production) | in our code | {SCOPE}
""")
_STRONG = phrases(rf"""
    {SCOPE} | only | always | never | everywhere | not \w+ | instead of | rather than | by convention
    | no (?!problem|idea|worries)\w+ | convention(?:al|s)? | for (?:all|every(?:thing)?|each|any|new)
    | style | strictly | policy | standard
""")
_HERE = re.compile(r"\bhere\b(?! to\b)|\bin our\b", re.I)
_FOR_NOW = phrases(r"""
    yet | for now | right now | just now | at the moment | for the moment | today | tonight | this time
    | this once | first step | until i | before i | i just want | just want | in this case
    | for this (?:one|case|task|feature|pr)
    | in this (?:pr|commit|file|function|step|task|branch|change|session|test|class|method|pull request)
""")

# --- the forms of a wish ------------------------------------------------------------------------------------

_ALWAYS = re.compile(
    r"(?P<who>you (?:should|must) |we (?:should |must |want to )?|make sure (?:to |you |that you |we )"
    r"|be sure to |i (?:want|need) you to |i'd like you to |i (?=(?:always|never) want)|remember to "
    r"|(?:tests?|code) (?:should|must) )?"
    r"(?:always|never(?: ever)?|only ever) (?:really |actually |just |directly )?(?P<verb>[a-z'-]{2,20})\b",
    re.I,
)
_NO_VERB = frozenset(
    "be mind seen had been got was were is are a an the this that these those it its happy sure ready worked"
    " knew thought heard wrong right so in on at to of for and or but if when as with ending too has have did"
    " does my your happen understood understand saw see know remember forget get gotten tried wanted felt"
    " really quite true false null none again good nice great bad hard easy better worse fun possible useful"
    " interesting important worth more less up down there here like done written gone taken given known made"
    " first last green red".split()
)
_TELLING_VERBS = frozenset(  # 'we never find out' complains
    "get see have had need wonder forget know find end seem run hit notice struggle got saw found hear"
    " thought assumed wanted planned meant intended think believe hope want did".split()
)
_FROM_NOW = re.compile(
    r"(?:from now on|going forward|from here on(?: out)?|as a (?:general )?rule|for future reference)\b", re.I
)
_SOMETIME = re.compile(
    r"(?:in (?:the )?future|next time|when(?:ever)? you(?!'re| are| have| get| finish| think| can| see"
    r"| start)|every time you|each time you|after (?:every|each|any)|before (?:you |every |each "
    r"|any )?(?:commit|push|merg|releas|deploy)\w*)\b[^.!?]{0,80}?[, ]"
    r"(?:please|pls|don't|do not|never|always|use|run|ask|write|add|keep|put|make|check|prefer|commit|tell"
    r"|show|start|stop|skip|leave|name)\b",
    re.I,
)
_WE = re.compile(
    r"(?:here,? |in this (?:repo(?:sitory)?|project|code ?base|team|house),? |at \w+,? |note that |because "
    r"|since |as )?we"
    r"(?: (?P<how>only|all|just|strictly|always|generally|usually|normally|really|exclusively))?(?:'re"
    r"| are)? "
    r"(?P<verb>use|using|follow|stick (?:to|with)|prefer|require|avoid|write|keep|name|commit|deploy|squash"
    r"|format|target|support|run|test|pin|put|do(?! not)|don't|do not|never|always|like|work|release|branch"
    r"|rebase|merge|call|want|allow|expect)\b",
    re.I,
)
_WE_STATES = frozenset("use follow prefer require avoid never always".split()) | {"stick to", "stick with"}
_WE_REFUSES = re.compile(
    r"(?:do not|don't) (?!know|have|see|get|need|understand|care|really|think|remember|want to (?:know|see)"
    r"|mind)\w+",
    re.I,
)
_DONT = re.compile(
    r"(?:don't|do not|dont|(?:stop|quit)(?= \w+ing\b)|avoid|refrain from|you don't (?:have|need) to"
    r"|no need to)\s+"
    r"(?P<what>(?!forget\b|worry\b)\S.*)",
    re.I,
)
_THAT = re.compile(
    r"(?:do(?:ing)?|use|using|change|touch)?\s*(?:that|this|it|so|them|these|those)\b"
    r"(?:\s+(?:again|any ?more|please))?\W*$|(?:chang|touch|modify|edit|delet|remov|mov|break)(?:e"
    r"|ing)? (?:anything|any|the|my|this|that|it|other)\b",
    re.I,
)
_STYLE = (
    r"(?:emojis?|(?:inline |code |obvious )?comments|docstrings|abbreviations|print statements|semicolons"
    r"|(?:wildcard|star) imports|mocks|default exports|type: ?ignores?|co-author\w*|globals?|any types?"
    r"|classes|inheritance|(?:new |external )?dependencies|third[- ]party \w+|bare excepts?|magic numbers"
    r"|todos?|summaries|markdown files|readmes?|orms?|force[- ]push(?:es|ing)?|one-letter names)"
)
_HABIT = re.compile(
    r"(?:us|add|writ|put|creat|includ|introduc|mock|catch|end)(?:e|t?ing)?\s+(?:any |more |new |so many "
    r"|all these )?"
    rf"{_STYLE}\b",
    re.I,
)
_I = re.compile(
    r"i (?:really |strongly |generally |usually |personally |absolutely |much |just )?"
    r"(?P<verb>prefer|hate|dislike|can't stand|cannot stand|don't (?:really )?like|do not like|never want"
    r"|always want|don't want|do not want|like)\s+(?P<what>\S.*)|i'm (?P<fan>not a (?:big |great )?fan of"
    r"|no fan of|allergic to)\s+(?P<thing>\S.*)",
    re.I,
)
_ONE_THING = re.compile(
    r"(?:this|that|it|these|those|them|when|how|what|both|the|your|an?|b|option|you to|having to|my (?:life"
    r"|job)|to (?:see|know|understand|be|find|get|do|have|look|check|say|think))\b",
    re.I,
)
_LASTING = phrases(rf"ever | anywhere | any ?more | in (?:our )?(?:tests|comments|production) | {SCOPE}")
_LIKED = re.compile(r"(?:my|short|small|concise|explicit|plain|simple)\s+\w", re.I)
_PREFER = re.compile(r"prefer (?!(?:this|that|it)\b)\S.{2,120}? (?:over|to|instead of|rather than) \S", re.I)
_REMEMBER = re.compile(
    r"(?:(?:remember|for the record|note for (?:the )?(?:future|later))(?: that|[,:])"
    r"|keep in mind,? (?:that )?we)\s+"
    r"(?!when\b|the time|how\b|what\b|where\b|me\b|it\b|this\b|that\b)\S+ \S+ \S",
    re.I,
)
_USE_NOT = re.compile(r"use \S.{0,60}?(?:,? not |,? instead of |,? rather than |,? never )\S", re.I)
_USE = re.compile(r"use \S", re.I)
_EVERYWHERE = phrases(
    rf"everywhere | from now on | any ?more | throughout | in (?:our )?(?:tests"
    rf"|comments) | {SCOPE}"
)
_EVERY = re.compile(
    r"(?:all|every|each|any|new) (?:\w+ ){0,2}(?:commits?|tests?|endpoints?|functions?|modules?|migrations?"
    r"|prs?|files?|pull requests?|changes?|features?|releases?|branch(?:es)?|class(?:es)?|methods?|apis?"
    r"|quer(?:y|ies)|strings?|components?|dates?|times?|timestamps?|amounts?|prices?|money|ids?|routes?"
    r"|handlers?|models?|commands?|scripts?|hooks?|errors?|logs?|imports?|variables?|names?) (?:must|has to"
    r"|have to|needs?(?: to)?|should|go(?:es)?|gets?|come with) (?!fail|broken|red|wrong|missing|gone"
    r"|slow|lost)\w+",
    re.I,
)
_THINGS = re.compile(
    r"(?:all |our |the )?(?:commit messages?|commits|branch(?:es| names)|(?:file|variable|test"
    r"|branch) names?|comments|docstrings|migrations|prs|pull requests|releases|changelogs?|tests) (?:should"
    r"|must|have to|need to|go|belong|live|start with|are (?:written|named|always|squashed|kept)) (?!pass"
    r"|fail|work|be (?:green|fixed|ok)|run|now)\w",
    re.I,
)
_EACH_TIME = re.compile(
    r"(?:run|use|add|write|update|check|format|lint|commit|test|ask|tell|show|bump)\b.{1,80}?\b"
    r"(?:(?:after|before|with|for) (?:every|each)|every time|each time|whenever)\b",
    re.I,
)
_ASK_FIRST = re.compile(
    r"(?:ask|check with|tell) me (?:first )?before (?:you )?\w+|ask before (?:you )?\w+",
    re.I,
)
_NOBODY = re.compile(
    r"(?:nobody|no one|no-one) (?:should |may |is allowed to )?(?:push|merge|commit|deploy|touch"
    r"|edit)(?:e?s)?\b",
    re.I,
)
_STICK = re.compile(r"stick to (?!the plan|that|this|it|the topic)\S+ \S", re.I)
_OUR_RULE = re.compile(
    r"(?:our|the(?= .{0,40}\b(?:here|in this)\b)) (?:\w+ ){0,2}"
    r"(?:convention|rule|policy|standard|house style|style guide|guideline)s?\b.{0,40}?\b(?:is|are|says?"
    r"|that)\b",
    re.I,
)
_IN_THIS = re.compile(
    rf"in (?:this|our) {PROJECT},? (?:we|use|never|always|all|every|don't|no|please|tests?)\b(?P<rest>.*)",
    re.I,
)
_ANSWER = re.compile(
    r"(?:always |only )(?:answer|reply|respond|talk|speak|explain)\b|(?:answer|reply|respond|talk|speak"
    r"|write)(?: to me| me)? in "
    r"(?:german|english|french|spanish|italian|portuguese|dutch|polish|russian|chinese|japanese)\b"
    r"|keep (?:your |all )?(?:answers|replies|responses|explanations|summaries|messages|commit messages"
    r"|commits|prs|functions|diffs) \w+|call me (?!when|back|if|later)\w+",
    re.I,
)
_NO = re.compile(
    r"no (?P<what>(?:[\w/-]+ ){0,3}?[\w/-]+)(?P<after> (?:in|inside|within|for) .*|\s*[,.;!].*|\s*(?:please"
    r"|pls|ever)?\W*$)",
    re.I,
)
_NO_IDIOM = re.compile(
    r"(?:please|pls|thanks|wait|problem|idea|worries|need|rush|hurry|way|change|matter|one|more questions"
    r"|doubt|reason|luck|clue)\b",
    re.I,
)
_DEPENDENCIES = re.compile(
    r"(?:new |more |extra |external |third[- ]party |runtime |additional )?(?:dependenc(?:y|ies)|deps"
    r"|libraries|packages|frameworks)$",
    re.I,
)
_KEEP_OUT = re.compile(
    r"\b(?:keep|stay|without|no|fewer|zero|avoid)\b[^.?!]{0,40}\b(?:dependenc(?:y|ies)|deps"
    r"|third[- ]party)\b",
    re.I,
)
# 'ascii only, the printer has no other signs': what is needed, and what of the surroundings makes it so
_ONLY = re.compile(
    r"(?!(?:the|this|that|these|those|it|its|my|your|his|her|on|in|at|for|when|if|since|from|with|to|not|and"
    r"|or|is|are|was|happens?|one|first|last|show|fix|change|read|look|check|do|run|test|can|could|a|an)\b)"
    r"(?:[\w.+#/-]+ ){1,4}only(?:,? (?:please|pls))?\s*(?:[,;–—-]|because|since|as)\s*"
    r"(?P<why>(?!no\b|not\b)\S.*)",
    re.I,
)
_MUST_RUN = re.compile(
    r"(?:it |this |that |everything |all of it |the (?:code|script|tool|app|service|build) )?(?:has to"
    r"|have to|must|needs? to) (?:run|work|build|compile|start|fit|install)"
    r" (?:on|in|with|under|inside|without|from|offline)\b"
    r"[^.?!]{2,80}?,? (?:so|therefore)\s+"
    r"(?!(?:please|pls|can|could|check|make|fix|add|change|test|look|try)\b)\S",
    re.I,
)
_SURROUNDINGS = phrases(r"""
    no \w+ | not | \w+n't | nothing | cannot | there's | there is | only | must | has to | have to | still
    | old(?:er)? | requires? | supports?
""")


@dataclass(frozen=True, slots=True)
class Said:
    """A clause to its sentence's end, and what it stands in."""

    text: str
    project: str
    asks: bool  # the prompt asks something or tells of a problem; then 'we use' may only describe
    orders: bool  # it wants something done; then a plain 'we use' may be the background of it

    works: bool  # or changed; then 'tests stay as they are' is meant for this time

    def stands(self) -> bool:
        return bool(_STANDING.search(self.text) or _HERE.search(self.text))


def _orders(match: re.Match[str], said: Said) -> bool:
    verb, who = match["verb"].lower(), (match["who"] or "").lower().strip()
    describes = verb in _NO_VERB or verb.endswith(("ing", "n't")) or (verb.endswith("ed") and verb != "need")
    if verb.endswith("s") and not verb.endswith(("ss", "us", "as", "is")):
        describes = True  # 'always fails' tells, 'always fail' asks
    return not describes and not (who == "we" and verb in _TELLING_VERBS)


def _is_custom(match: re.Match[str], said: Said) -> bool:
    verb = match["verb"].lower()
    if verb in ("don't", "do not"):
        return bool(_WE_REFUSES.match(said.text, match.start("verb"))) and (not said.asks or said.stands())
    if verb in ("want", "like"):
        return bool(_STANDING.search(said.text))
    strictly = (match["how"] or "").lower() in ("only", "strictly", "always", "exclusively")
    if strictly or _STRONG.search(said.text[match.end() :]) or (_HERE.search(said.text) and not said.asks):
        return True
    return verb in _WE_STATES and not (said.asks or said.orders) and len(said.text.split()) <= SHORT


def _is_taste(match: re.Match[str], said: Said) -> bool:
    verb, what = (match["verb"] or "dislike").lower(), match["what"] or match["thing"]
    if verb in ("never want", "always want"):
        return True
    if verb in ("don't want", "do not want"):
        return bool(_LASTING.search(said.text)) and not _ONE_THING.match(what)
    if verb == "like":
        return bool(_LIKED.match(what))
    return not _ONE_THING.match(what) or bool(_STANDING.search(said.text))


def _forbids(match: re.Match[str], said: Said) -> bool:
    what = match["what"]
    return not _THAT.match(what) and bool(_STANDING.search(said.text) or _HABIT.match(what))


def _excludes(match: re.Match[str], said: Said) -> bool:
    """'no dependencies in taskpile'; 'no new dependencies'."""
    if _NO_IDIOM.match(match["what"]):
        return False
    places = [r"this (?:repo(?:sitory)?|project|code ?base|app|package)", r"our \w+", "here"]
    places += [r"the (?:code ?base|repo|project|core)", "tests", "commit messages?", "production(?: code)?"]
    places += [re.escape(said.project)] if said.project else []
    here = re.match(rf"\s*(?:in|inside|within|for) (?:{'|'.join(places)})(?:$|\W)", match["after"], re.I)
    if _KEEP_OUT.search(match["after"]):
        return True
    return bool(here or _DEPENDENCIES.match(match["what"]) or re.fullmatch(_STYLE, match["what"], re.I))


# Each form, and what else must be true of a clause that begins with it. The first that fits decides.
_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], Said], bool]], ...] = (
    (_ALWAYS, _orders),
    (_FROM_NOW, lambda match, said: True),
    (_SOMETIME, lambda match, said: True),
    (_WE, _is_custom),
    (_I, _is_taste),
    (_DONT, _forbids),
    (_USE_NOT, lambda match, said: said.stands()),
    (_USE, lambda match, said: bool(_EVERYWHERE.search(said.text))),
    (_PREFER, lambda match, said: True),
    (_OUR_RULE, lambda match, said: True),
    (_ANSWER, lambda match, said: True),
    (_REMEMBER, lambda match, said: True),
    (_EVERY, lambda match, said: said.stands() or not (said.asks or said.orders)),
    (_THINGS, lambda match, said: not (said.asks or said.works)),
    (_EACH_TIME, lambda match, said: True),
    (_ASK_FIRST, lambda match, said: True),
    (_NOBODY, lambda match, said: not said.asks),
    (_STICK, lambda match, said: True),
    (_IN_THIS, lambda match, said: not said.asks or bool(_STRONG.search(match["rest"]))),
    (_NO, _excludes),
    (_ONLY, lambda match, said: not said.asks and bool(_SURROUNDINGS.search(match["why"]))),
    (_MUST_RUN, lambda match, said: not said.asks),
    (re.compile(r".{1,300}?\b(?:from now on|going forward)\b", re.I), lambda match, said: True),
)


def is_wish(said: Said) -> bool:
    if _FOR_NOW.search(said.text):
        return False
    for form, holds in _FORMS:
        if match := form.match(said.text):
            if holds(match, said):
                return True
            break
    return is_rule(said.text, asks=said.asks, orders=said.works)
