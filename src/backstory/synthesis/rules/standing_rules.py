"""Rules that are stated rather than asked for: 'tests here never sleep', 'raw SQL is a no go in handlers'.

No list of wordings can hold them all. What they have in common: they speak of things in general, not of one
thing; they say what must, may or may not be; and they say that it holds beyond the task, by naming the
place ('in this repo'), the time ('next time', 'always') or the rule itself ('house rule: ...').
"""

from __future__ import annotations

import re

from backstory.synthesis.rules.phrases import phrases

PROJECT = r"(?:repo(?:sitory)?|project|code ?base|team|company|monorepo|workspace|house|shop)"
SCOPE = (
    r"(?:in|for|across|throughout|inside) (?:this|our|the|my|all(?: of)?(?: our| the)?|every) "
    rf"(?:whole |entire )?{PROJECT}"
)
_PLACE = rf"(?:here(?! (?:to|and there)\b)|{SCOPE}|(?:in|for|across) (?:all )?(?:of )?our \w+)"
# what is spoken of is not one thing that lies on the table
_GENERAL = (
    r"(?!(?:the|this|that|these|those|it|its|it's|there|what|which|who|some\w*|your|my|his|her|he|she|they"
    r"|you|we|i|i'm|i've|one of|and|or|if|when|as|because|only|also|then|but|so|maybe|perhaps|not|still"
    r"|yet|just|nobody knows|wait|look|see|is|are|was|were|am|got|get|people|users?|customers?|someone"
    r"|add|fix|implement|create|build|generate|make|ensure|let|please|pls|can|could|a|an)\b)"
)
_MUST = (
    r"(?:must(?:n't)?|never|always|only|don't|doesn't|do not|does not|has to|have to|needs? to|should(?:n't)?"
    r"|may not|cannot|can't|forbidden|banned|taboo|verboten|off[- ]limits|mandatory|required"
    r"|(?:not|isn't|aren't) (?:allowed|permitted|ok|okay|wanted|welcome|acceptable)|an? no[- ]?go|an? must"
    r"|by hand|exclusively|without exceptions?|no exceptions)"
)
_STATES = r"(?:is|are|gets?|goes|go|lives?|belongs?|stays?|uses?|follows?|starts?|ends?|comes?|has|have)"
# said of things that do not go well, or that are only told of
_TELLS = phrases(r"""
    fail(?:s|ed|ing|ure)? | pass(?:es|ed|ing)? | broken? | breaks? | slow(?:er|ly)? | wrong | missing | red
    | green | flaky | work(?:s|ed|ing)? | crash\w* | bugs? | errors? out | strange | weird | why | confus\w+
    | problem | issue | maybe | perhaps | probably | i think | i guess | seems? | apparently | wonder
    | get here | got here | be here | know | knows | knew | understand | on my machine | some (?:are|do|don't)
    | but some | a mess | outdated | as (?:they|it) (?:are|is) | untouched | unchanged
""")
_DEV = phrases(r"""
    code | commits? | tests? | mocks? | globals? | imports? | exports? | comments? | docstrings? | prints?
    | print statements? | console\.log | logging | logs? | raw sql | sql | force[- ]push\w* | push(?:es|ing)?
    | merge\w* | rebas\w+ | branch(?:es)? | secrets? | credentials? | passwords in | types? | any
    | type: ignore | dependenc(?:y|ies) | packages? | librar(?:y|ies) | frameworks? | orms? | migrations?
    | singletons? | inheritance | classes | functions? | monkey ?patch\w* | magic numbers? | todos?
    | abbreviations? | snake_?case | camel_?case | indent\w* | tabs | spaces | semicolons? | emojis?
    | warnings | exceptions | feature flags? | env(?:ironment)? (?:vars?|variables?) | prs? | pull requests?
    | changelog\w* | releases? | deploy\w* | names? | sleep\w* | threads? | eval | regex\w* | macros?
    | jquery | css | styles | inline styles? | answers | explanations | summar(?:y|ies)
""")

_SCOPED = re.compile(
    rf"{_GENERAL}[^,.;:?!]{{2,60}}? {_PLACE}(?: (?:just|simply|really))? "
    rf"(?P<verb>{_MUST}|{_STATES})\b(?P<rest>.*)",
    re.I,
)
_PLAINLY = re.compile(
    r"\s*(?:\w+ly )?(?:not |all |always |never |only )?(?:\w+(?:ed|en)|set|kept|put)\b", re.I
)
_RULED = re.compile(rf"{_GENERAL}[^.;:?!]{{2,100}}?\b(?:{_MUST})\b", re.I)
_NOTHING = re.compile(r"(?:nothing|no \w+(?: \w+)?|nobody|no one) \w+[^.;?!]{1,60}\bwithout\b", re.I)
_UNIVERSAL = re.compile(rf"(?:all|every|each|any|no) [^.;:?!]{{2,80}}?\b(?:{_STATES}|{_MUST})\b", re.I)
_IN_PLACE = re.compile(rf"\b{_PLACE}(?!\w)", re.I)
_PREDICATE = re.compile(
    rf"{_GENERAL}(?P<what>[^,.;:?!]{{2,60}}?) (?:is|are)(?: an?)? (?:absolutely |strictly |simply )?"
    r"(?:forbidden|banned|taboo|verboten|off[- ]limits|mandatory|not (?:allowed|permitted|ok|okay|wanted)"
    r"|no[- ]?go|must|pet peeve)\b",
    re.I,
)
_LIVES = re.compile(
    rf"{_GENERAL}[^,.;:?!]{{2,60}}? (?:lives?|goes|go|belongs?|stays?|come) (?:in|into|to|next|under|through"
    r"|with|before|after|on)\b[^.?!]{2,80}?\b(?:only|never|always|not in|not \w+)\b",
    re.I,
)

_ORDER = (
    r"(?:(?:please|pls|just|only|and|also|but)\s+){0,3}(?:use|run|ask|write|give|show|tell|keep|put|make sure"
    r"|check|prefer|commit|start|skip|leave|name|send|explain|test|format|answer|let|wait|stop|don't|do not"
    r"|dont|no|be|try|mention|include|avoid|push|open|split|squash|document|look|read|update|bump|warn"
    r"|propose|quote|link|say|think|stick)\b"
)
_ORDERED = re.compile(_ORDER, re.I)
_AT_TIMES = phrases(r"""
    next time | in (?:the )?future | from now on | going forward | every (?:single )?time | each time
    | without exceptions? | no exceptions | whenever | as a rule | for all future \w+
""")
_LAST_WORD = re.compile(
    r"(?:,|\s[-–—])\s*(?:and |please |pls )?(?:always|ever|never|every time|each time|without exceptions?"
    r"|no exceptions|every single time)[\s.!]*(?:please|pls|ok|okay)?\W*$",
    re.I,
)
_SUBJECT = re.compile(rf"{_GENERAL}\w+ \w+ \w+", re.I)
_LABEL = re.compile(
    r"(?:(?:a|an|the|my|our|one|new|another|house|general|basic|golden|team|standing|project|coding|simple"
    r"|important)\s+){0,3}(?:rules?|conventions?|polic(?:y|ies)|guidelines?|preferences?|standard"
    r"|rule of thumb)(?: of mine| here| for you| for this \w+| in this \w+)?\s*[:–—-]\s+(?P<rule>\S+ \S.*)"
    r"|for (?:the future|next time|future reference|later)\s*[:,–—-]\s+(?P<later>\S+ \S.*)",
    re.I,
)
_SHOP = re.compile(r"we(?:'re| are) an? [\w.+#-]+(?: \w+)? (?:shop|house|team|company|project|only)\b", re.I)
_OURS = re.compile(
    r"our (?!(?:users?|customers?|clients?|boss|support|people|visitors"
    r"|sales)\b)(?:\w+[ -]){0,3}?\w+ "
    r"(?:(?:are|is|use|have|go|live|start|end|follow|get|come) (?:always|never|all"
    r"|only|strictly|exclusively)|(?:always|never|only|must|should|have to|need to|may not|don't|do not))\b",
    re.I,
)
_RATHER = re.compile(
    r"(?:i(?:'d| would) (?:rather|prefer)(?: it)?(?: if| that| when)? you|i(?:'d| would) (?:appreciate|like)"
    r" it if you|i(?:'d| would) (?:rather|prefer) not (?:to )?(?:have|see)|i (?:want|need|expect) you to"
    r" (?:always|never|ask|check|tell|stop|run|explain))\b(?P<rest>.*)",
    re.I,
)
_ANY = phrases(
    r"any(?:thing)? | every(?:thing)? | all | always | never | before | without | whenever | first | each"
)
_STOP = re.compile(
    r"(?:please |pls )?(?:stop|quit) (?:always |constantly )?(?:summari[sz]|explain|apologi[sz]|add"
    r"|ask|commit"
    r"|creat|reformat|us|tell|repeat|thank|prais|flatter|writ|generat|comment|mention|put|wrap|renam|touch"
    r"|guess|start|end|mock)t?ing\b(?! (?:it|that|this|here)\b)(?! the )",
    re.I,
)
_NO_MORE = re.compile(r"(?:please |pls )?no more (?P<what>[\w -]{3,40})", re.I)
# of files, tests, commits in general one says only how they should be
_ARTEFACTS = re.compile(
    r"(?:all |every |new |any |each |our )?(?:(?!the |this |that |these |those |my |your |last "
    r"|some )[\w/.-]+ )"
    r"{0,2}?(?:code|files?|tests?|functions?|methods?|classes|modules|components|commits?|(?:commit"
    r"|log|error)"
    r" messages|logs|migrations?|branch(?:es)?|names|identifiers|comments|docstrings|constants|imports|types"
    r"|endpoints|handlers|controllers|queries|prs|pull requests|releases|configs?|configuration|secrets"
    r"|scripts|dependencies|fixtures|schemas|timestamps|dates)"
    r"(?: (?!that\b|which\b)[\w/.-]+){0,5}? (?:must|should|are|is|live|lives|go|goes|get|gets|stay|stays|need"
    r"|needs|belong|start|end|have to|has to|never|always|don't|come|use|uses) (?!been\b|now\b|still\b|too\b"
    r"|there\b|also\b|be able\b|pass|fail|done|in the\b)\w",
    re.I,
)
_DONT_MANNER = re.compile(
    r"(?:please |pls )?(?:don't|dont|do not|never) (?:always |ever )?(?:explain|reformat"
    r"|summari[sz]e|apologi[sz]e"
    r"|repeat|lecture|thank|praise|guess|invent|assume|over-?engineer|restate|flatter|pad|hide|swallow"
    r"|abbreviate|hard-?code|gold-?plate)\b",
    re.I,
)
_USUALLY = re.compile(
    r"i (?:usually|normally|generally|typically|always) (?:want|like|prefer|need|expect|read|use)\b"
    r"|i (?:don't|do not|never) want any\b.{2,80}\b(?:without|unless)\b"
    r"|i (?:work|develop|code|am|live) (?:on|in|with) \S.{0,60}?,? so\b|i'm on \S.{0,40}?,? so\b",
    re.I,
)
_KEEP_TO = re.compile(
    r"(?:let's |we |please |pls )*(?:keep|stick|adhere|hold) to (?!the plan|that|this|it)\S", re.I
)
_RATHER_THAN = re.compile(
    r"(?P<one>[\w-]+(?: [\w-]+)?), (?:don't|do not|never|not) (?P<other>[\w-]+)[.!]?(?: only| please)?$", re.I
)
_MAY = re.compile(
    r"you (?:don't (?:have|need) to|do not (?:have|need) to|needn't|can|may|should) (?:always |just |first )?"
    r"(?:ask|check with|confirm|wait for|tell|show|warn)\b.{0,60}\b(?:before|when|for|each|every"
    r"|any|whenever)",
    re.I,
)
_FOND = re.compile(
    r"i (?:really |generally |usually )?(?:like|love|want|need)(?: my| our| to have)? (?P<what>[\w -]{3,40})",
    re.I,
)
_KEPT_SMALL = phrases(r"small | short | simple | explicit | plain | flat | separate | one \w+ each | boring")

_CONTRAST = re.compile(
    r"[,;] (?:but|i want|i'd like|we want|can|could|please|how|why|add|implement|fix|reject|show)\b", re.I
)
_ASIDE = re.compile(r"\s[-–—]\s(?!(?:always|never|ever|every)\b)|;\s")

BACK = re.compile(
    r"(?:so |and |please |pls |but )*(?:(?:keep|bear|have) (?:that|this|it) in mind\b"
    r"|remember (?:that|this|it)"
    r"(?: (?:for|when|next|please|from)\b|[\s.!,]*$)|(?:that|this)(?:'s| is| was)(?: just| simply| always)?"
    r" (?:how we (?:do|work|write|name|handle|like)|the way we|what we (?:do|use|agreed)"
    r"|(?:the|a|our|an old|my) (?:house |team |general |coding )?"
    r"(?:rule|convention|policy|standard|house style|guideline|custom|habit)s?\b)"
    r"|(?:don't|do not) forget (?:that|this)[\s.!,]*$|(?:that|this)(?:'s| is) (?:non[- ]negotiable"
    r"|important to us)"
    r"|respect (?:that|this)\b)",
    re.I,
)

# of what is so already; a rule only where it speaks of more than one thing
STAYS = re.compile(
    r"(?:(?:we|i)(?:'d| would)?(?: very much| really)? (?:want|like|prefer|need|intend|plan)(?: to)? |let's )"
    r"(?:please )?(?:keep|leave) (?:it|them) (?:that way|like that|so)\b",
    re.I,
)
WITHOUT = phrases("no \\w+ | never | always | only | without | every | zero")


def is_rule(text: str, *, asks: bool, orders: bool) -> bool:
    """Whether a clause, to the end of its sentence, states a rule."""
    if label := _LABEL.match(text):
        return not (label["rule"] or label["later"]).rstrip().endswith("?")
    clause = _ASIDE.split(text[:300], maxsplit=1)[0]
    if _TELLS.search(clause):
        return False
    told_only = not (asks or orders) and bool(_ARTEFACTS.match(clause)) and not _CONTRAST.search(clause)
    return told_only or _holds_here(clause, asks) or _holds_on(clause) or _is_manner(clause)


def _holds_here(text: str, asks: bool) -> bool:
    if scoped := _SCOPED.match(text):
        if re.fullmatch(_STATES, scoped["verb"], re.I):
            plain = not asks and not _CONTRAST.search(text)
            return plain and bool(_PLAINLY.match(scoped["rest"]) or re.search(SCOPE, text, re.I))
        return True
    if _IN_PLACE.search(text) and (_RULED.match(text) or _NOTHING.match(text)):
        return True
    if not asks and re.search(SCOPE, text, re.I) and _UNIVERSAL.match(text):
        return True
    predicate = _PREDICATE.match(text)
    return bool(predicate and (_DEV.search(predicate["what"]) or _IN_PLACE.search(text)))


def _holds_on(text: str) -> bool:
    orders = bool(_ORDERED.match(text))
    if orders and _AT_TIMES.search(text):
        return True
    return bool(_LAST_WORD.search(text)) and (orders or bool(_SUBJECT.match(text)))


def _is_manner(text: str) -> bool:
    """How the assistant should work, or how things are done."""
    if any(form.match(text) for form in (_SHOP, _OURS, _STOP, _MAY, _DONT_MANNER, _USUALLY, _KEEP_TO)):
        return True
    if rather := _RATHER.match(text):
        return bool(_ANY.search(rather["rest"]))
    fond = _FOND.match(text)
    if fond and not _KEPT_SMALL.search(text):
        return False
    # these are about how one works only where they name something of the trade
    trade = fond or _RATHER_THAN.match(text) or _LIVES.match(text) or _NO_MORE.match(text)
    return bool(trade and _DEV.search(trade[0]))
