"""What a memory is for, told from how it is written. Tables of cues with weights; no model is asked.

The text becomes a row of plain tokens. A cue is a phrase of one to four of them. Some cues count anywhere,
some only where a clause begins (an imperative, a shell command), some only shortly after a person ('the user
wants', not 'the parser wants'). Tense counts too: a past tense tells what happened, a present passive what
is. The weights add up by sector and the best sum wins. A text without cues, or in a language that the tables
do not know, is taken for a fact.

    User prefers TypeScript        'prefers'                              emotional
    The deploy failed at 14:00     a past tense, a time                   episodic
    To release, run make dist      begins with 'to', a clause with 'run'  procedural

Every token is looked up in dictionaries, so the time is linear in the length of the text.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Row = tuple[str, float, str]  # sector, weight, phrases

DEFAULT = "semantic"
HEAD_START = 0.9  # what the default has before any cue: a weak one alone does not lead away from it
LATER = 0.6  # a note says what it is in its first sentence; a cue after that counts for less
AT_MOST = 2  # how often one row of a table counts, so that a long text is not decided by its length

# A row: sector, weight, phrases. Capitals stand for a class of tokens: DAY of the week or month, DATE,
# TIME of day, REF an issue or a pull request (#12), FLAG an option (--force), CODE in backticks.
ANYWHERE = """
# What happened: when, and how it went.
episodic    2.0  yesterday | today | tonight | overnight | ago | recently | earlier | over the weekend
episodic    2.0  this morning | this afternoon | this evening | last night | last week | last month
episodic    2.0  last sprint | last year | last session | previous session | this session
episodic    1.5  on DAY | last DAY | since DAY | until DAY | by DAY | in DAY | on DATE | at TIME | at noon
episodic    1.0  TIME | DATE | DAY | REF | incident | outage | crashed | failed | broke | reverted
# Facts: what is, has, holds and does.
semantic    0.8  is | are | has | there is | there are | there's | can have | isn't | aren't
semantic    1.0  uses | contains | holds | returns | supports | represents | depends on | lives in | live in
semantic    1.0  points at | points to | belongs to | consists of | comes from | come from | refers to
semantic    1.0  extends | implements | requires | defaults to | imports | exports | expects | accepts
semantic    1.0  runs | stores | reads | writes | sends | caches | exposes | handles | inherits | matches
semantic    1.0  default | maximum | minimum | max | min | per | only | currently | version | nothing | still
semantic    2.0  decision | decided | we use | we chose | agreed on
# How to.
procedural  3.0  how to | steps | in order to | make sure | be sure to | don't forget | do not forget
procedural  2.5  remember to | way to | upgrade path | procedure | checklist | instructions | recipe
procedural  1.5  you | must | need to | needs to | should be | can be done | is done by | please
procedural  1.5  then | by running | by adding | by deleting | run CODE | with CODE | && | FLAG | otherwise
procedural  1.0  before | instead of | by hand | manually | so that | again | when adding | when changing
# What somebody likes, dislikes and feels.
emotional   3.5  prefer | prefers | preferred | preference | preferences | favourite | favorite
emotional   3.5  would rather | i'd rather | we'd rather | they'd rather | rather not | i'd prefer
emotional   3.5  hate | hates | hated | dislike | dislikes | disliked | love | loves | loved | can't stand
emotional   3.5  enjoy | enjoys | enjoyed | likes | favours | favors | fan of | fans of | sick of | tired of
emotional   3.0  annoyed | annoying | annoys | frustrated | frustrating | angry | upset | irritated | furious
emotional   3.0  happy | unhappy | glad | pleased | delighted | excited | proud | relieved | relief
emotional   3.0  worried | nervous | afraid | anxious | scared | uncomfortable | comfortable | concerned
emotional   3.0  disappointed | impressed | surprised | impatient | bored | satisfied | grateful | keen on
emotional   3.0  appreciate | appreciates | appreciated | bother | bothers | complained | complains | thanked
emotional   2.0  nightmare | awful | terrible | horrible | ugly | beautiful | elegant | honestly | wishes
# What was learned, and what keeps coming back.
reflective  4.0  in hindsight | in retrospect | looking back | lesson | lessons | learned that | learnt that
reflective  4.0  session summary | summary : | summary of | recap | retrospective | retro
reflective  4.0  postmortem | post-mortem | takeaway | takeaways | insight | insights | reflection :
reflective  4.0  conclusion | rule of thumb | tl;dr | tldr | wrap-up | in summary | to sum up
reflective  4.0  should have | would have | could have
reflective  3.0  root problem | root cause | real problem | real issue | real reason | bigger picture
reflective  3.0  deeper problem | deeper issue | underlying problem | underlying issue | fundamental problem
reflective  3.0  pattern : | same pattern | recurring | keeps being | keeps happening | again and again
reflective  3.0  every time | each time | over time | over the last | over the years
reflective  3.0  in the long run | as a whole | all along | next time
reflective  3.0  taught | turns out | realised | realized | underestimated | overestimated
reflective  3.0  mistake | mistakes | worked well | went well | went wrong | paid off | worth
reflective  2.0  tend to | tends to | in general | generally | overall | consistently | usually | in practice
reflective  2.0  explains why | is why | traces back | assumption | assumptions | progress : | more and more
"""

AT_A_START = """
# An imperative, of the text or of a clause: 'To release, run ...', 'then apply ...'
procedural  2.0  run | use | set | add | check | open | put | call | go | start | stop | restart | install
procedural  2.0  delete | remove | clear | create | write | copy | move | edit | change | bump | tag | push
procedural  2.0  pull | merge | rebase | commit | export | import | build | deploy | publish | release
procedural  2.0  revert | restore | upgrade | update | apply | configure | enable | disable | register
procedural  2.0  generate | regenerate | verify | ensure | avoid | keep | wrap | pass | read | ask | follow
procedural  2.0  try | log | skip | rotate | wait | choose | select | paste | attach | clone | fetch | send
procedural  2.0  download | upload | insert | replace | rename | split | click | press | type | define
procedural  2.0  test | debug | profile | measure | inspect | search | let | give | take | branch | store
procedural  2.0  always | never | don't | do not | to | for a | when adding | how
procedural  1.0  first | when | if | whenever | before | after | once | instead
# A command of a shell.
procedural  2.0  git | npm | npx | pnpm | yarn | pip | uv | cargo | docker | kubectl | make | pytest | helm
procedural  2.0  terraform | psql | redis-cli | curl | ssh | python | node | poetry | brew | apt | systemctl
procedural  2.0  ruff | mypy | bundle | rails | gradle | mvn | gh | sudo | cd | source | chmod | aws | gcloud
"""

AFTER_A_PERSON = """
emotional   3.0  like | liked | want | wants | wanted | care | cares | wish | wishes | trust | trusts
emotional   2.5  find | finds | feel | feels | felt | think | thinks | fear | fears | mind | minds | hope
reflective  2.5  learned | learnt | notice | realise | realize | tend | misjudged | assumed | keep
episodic    1.5  asked | reported | said | requested | noticed | tried | spent | mentioned | agreed
"""

PEOPLE = frozenset(
    "i i'm i'd i've we we're we've he she they they're user user's users team people client customer "
    "customers designer reviewer lead author manager developer developers colleague maintainer "
    "maintainers boss engineer engineers nobody everyone everybody someone somebody me us".split()
)
DAYS = frozenset(
    "monday tuesday wednesday thursday friday saturday sunday january february april june july august "
    "september october november december".split()
)

# Past tenses that do not end in -ed.
IRREGULAR = frozenset(
    "was were had did went took got ran broke came made found gave left lost sent wrote began kept met "
    "paid saw sold spent told thought threw won became brought built caught chose drew fell forgot knew "
    "said shook spoke stuck".split()
)
# Words in -ed that are no past tense, or describe far more often than they tell.
DESCRIBING = frozenset(
    "need speed feed seed embed shed indeed exceed proceed succeed hundred based shared nested embedded "
    "required supported distributed typed unused expected used named called allowed deprecated limited "
    "related reserved licensed".split()
)
ARTICLES = frozenset("the a an our its their this these no any every".split())  # 'the failed job': no news
PASSIVE = frozenset("is are be been being gets get".split())  # 'is handled by' is a fact
PAST: Row = ("episodic", 1.0, "the deploy failed")
PAST_AT_A_START: Row = ("episodic", 2.2, "fixed the login")
PRESENT_PASSIVE: Row = ("semantic", 1.0, "is stored")

# Small words of other languages that English does not have, and of English.
FOREIGN = frozenset(
    "und der das ist nicht mit wir ich ein eine wird für auf el los las que para una con por está nous "
    "les des une est pas avec pour dans il che non sono della het een niet voor wij och att är inte som "
    "ett nie się jest não uma com os em и не на в".split()
)
ENGLISH = frozenset("the a an of to in is and for with that it was were are on from by not we".split())

# Compiled when it is first used: whoever imports this file may never ask.
_SHAPES = (
    r"(?P<CODE>`[^`\n]*`)|(?P<DATE>\b\d{4}-\d\d-\d\d\b)|(?P<TIME>\b\d{1,2}:\d\d\b)|(?P<REF>#\d+)"
    r"|(?P<FLAG>(?<![\w-])--?[a-z][\w-]*)|(?P<NUM>\b\d+\b)"
    r"|(?P<word>&&|tl;dr|[^\W_][\w'/@-]*(?:[.:][\w/@-]+)*)|(?P<mark>[.!?;:,\n])"
)
_ENDS_A_SENTENCE = frozenset(".!?\n")
_OPENS_A_CLAUSE = frozenset((*_ENDS_A_SENTENCE, ";", ":", ",", "&&", "and", "then", "first", "please"))
_REACH = 3  # how many tokens after a person a verb may stand: 'I really don't like'
_LONGEST = 4  # tokens in a phrase


def _phrases(table: str) -> dict[str, Row]:
    """Every phrase of a table with its row."""
    found: dict[str, Row] = {}
    for line in table.splitlines():
        if line and not line.startswith("#"):
            sector, weight, phrases = line.split(maxsplit=2)
            row = (sector, float(weight), phrases)
            found.update(dict.fromkeys(phrases.split(" | "), row))
    return found


_ANYWHERE, _AT_A_START, _AFTER_A_PERSON = map(_phrases, (ANYWHERE, AT_A_START, AFTER_A_PERSON))


def classify(text: str) -> str:
    """The sector of a memory: episodic, semantic, procedural, emotional or reflective."""
    sums = dict.fromkeys(("semantic", "procedural", "episodic", "emotional", "reflective"), 0.0)
    sums[DEFAULT] = HEAD_START
    counted: dict[Row, int] = {}
    tokens = _tokens(text)
    for row, share in () if _is_foreign(tokens) else _cues(tokens):
        counted[row] = counted.get(row, 0) + 1
        if counted[row] <= AT_MOST:
            sums[row[0]] += row[1] * share
    return max(sums, key=sums.__getitem__)  # of equal sums the first, so the default before all others


def classify_observation(kind: str, text: str) -> str:
    """The same. That it is told in the past tense, as observations are, does not make it an episode."""
    if kind == "preference":
        return "emotional"
    sector = classify(text)
    if sector in ("procedural", "reflective"):
        return sector
    return "procedural" if kind == "bugfix" else "semantic"


def _tokens(text: str) -> list[str]:
    matches = re.finditer(_SHAPES, text.lower().replace("’", "'"))
    return [_token(match.lastgroup or "", match[0]) for match in matches]


def _token(group: str, found: str) -> str:
    if group not in ("word", "mark"):
        return group
    return "DAY" if found.removesuffix("'s").removesuffix("s") in DAYS else found


def _is_foreign(tokens: list[str]) -> bool:
    foreign = sum(token in FOREIGN for token in tokens)
    return foreign > sum(token in ENGLISH for token in tokens)


def _cues(tokens: list[str]) -> Iterator[tuple[Row, float]]:
    """The rows of the tables that speak, each with how much of its weight counts here."""
    share, person, before = 1.0, -_REACH - 1, "\n"
    for index, token in enumerate(tokens):
        starts = before in _OPENS_A_CLAUSE
        is_told = index - person <= _REACH
        for length in range(1, _LONGEST + 1):
            phrase = " ".join(tokens[index : index + length])
            if phrase in _ANYWHERE:
                yield _ANYWHERE[phrase], share
            if starts and phrase in _AT_A_START:
                yield _AT_A_START[phrase], share
            if is_told and phrase in _AFTER_A_PERSON:
                yield _AFTER_A_PERSON[phrase], share
        tense = _tense(token, before)
        if tense:
            yield tense, share
        if token in PEOPLE:
            person = index
        if token in _ENDS_A_SENTENCE:
            share = LATER
        before = token


def _tense(token: str, before: str) -> Row | None:
    """What the form of a verb tells."""
    if token in _ANYWHERE and _ANYWHERE[token][0] != "episodic":
        return None  # 'annoyed' has spoken already
    is_regular = token.endswith("ed") and len(token) > 4 and token.isalpha() and token not in DESCRIBING
    if is_regular and before in PASSIVE:
        return PRESENT_PASSIVE
    if before in ARTICLES or not (is_regular or token in IRREGULAR):
        return None
    return PAST_AT_A_START if before in _ENDS_A_SENTENCE else PAST
