"""Whether work was a bugfix, a feature or a refactoring: by commit, request, report and edits."""

from __future__ import annotations

import re
from collections.abc import Sequence

from backstory.synthesis.rules.phrases import phrases
from backstory.synthesis.rules.turns import BEFORE, TESTS_FIRST, Edit, Unit
from backstory.synthesis.rules.words import sentences

READ = 2_000  # characters of a text that are weighed
MOVED_LINES = 3
GROWTH = 150  # characters
SENTENCE = 4  # words; less is a name, not something that happens

_PREFIX = re.compile(r"(?P<type>[a-z]{2,12})(?:\([^()\n]{1,60}\))?!?:\s+(?P<rest>\S.*)", re.I)
_TYPES = {
    **dict.fromkeys(("feat", "feature"), "feature"),
    **dict.fromkeys(("fix", "bugfix", "hotfix", "bug"), "bugfix"),
    **dict.fromkeys(("refactor", "perf"), "refactor"),
    **dict.fromkeys("docs doc chore style ci build test tests release deps lint revert".split(), ""),
}
_NOTHING = re.compile(
    r"(?:merge|wip|tmp|temp|checkpoint|revert|bump|release|whitespace|save|(?:initial|first) (?:commit"
    r"|import))\b|(?:fixup|squash|amend)!|v?\d+\.\d+|(?:fix(?:ed|es)? )?(?:an? |some )?typos?\b|(?:stuff"
    r"|update|changes?|fix)$|(?:update|edit|tweak) (?:the )?(?:readme|changelog|docs?)\b|(?:run "
    r"|apply )?(?:black|ruff|prettier|lint(?:er|ing)?|format(?:ting)?)\b.{0,20}$",
    re.I,
)

# How much each speaks for a kind. A commit says what it is with its first words.
_BEGINS = (
    ("bugfix", 4, r"(?:fix(?:e[sd]|ing)?|resolve[sd]?|correct(?:s|ed)?|repair(?:s|ed)?|hotfix)\b"),
    ("bugfix", 2, r"(?:prevent|avoid|stop|guard|handle)(?:s|e?d)?\b"),
    ("bugfix", 1, r"(?:don't|do not|no longer|never)\b|.{0,80}\bno longer\b"),
    ("feature", 4, r"(?:add|implement|introduce|support|allow|create|enable|provide|offer)(?:s|e?d)?\b"
                   r"|new\b"),
    ("refactor", 4, r"(?:refactor|move|extract|rename|split|simplify|inline|reorgani[sz]e|restructure|clean"
             r"|tidy"
                    r"|dedupe|deduplicate|unify|decouple|rewrite|moderni[sz]e|flatten|isolate"
                    r"|consolidate)(?:s|e?d|ing)?\b"),
    ("refactor", 2, r"(?:remove|drop|replace|convert|migrate|switch|port|use|upgrade|update)(?:s|e?d)?\b"
             r"|.{0,80}\bno more\b"),
)  # fmt: skip
BEGINS = tuple((kind, weight, re.compile(pattern, re.I)) for kind, weight, pattern in _BEGINS)
_BROKEN = r"""
    bugs? | bugfix | fix(?:e[sd])? | broken? | fail(?:s|ed|ing|ures?)? | errors? | wrong(?:ly)? | exceptions?
    | crash(?:es|ed|ing)? | traceback | stack ?trace | doesn't work | does not work | don't work | not working
    | regression | flak[ey]\w* | incorrect | supposed to | off by | stopped working | segfault | deadlock
    | leak(?:s|ing|ed)? | hangs? | stuck | race | loses | dies
    | find out (?:why|where) | figure out why | why (?:is|does|do|are|am) | complain\w* | reports? that
    | (?:than|what) (?:it|they|we|i) should
    | should (?:be|have|say|show|return)\b.{1,80}? but (?:it |they |i )?(?:is|are|has|have|says?|shows?|gets?)
    | (?:has|have|shows|gets|got|counts|is|are|was|takes|costs|sends|see) (?:\w+ )?(?:double|twice)
    | since (?:we|i) (?!need|want|us|decid|agree|support|allow|plann|lik)\w+ed
    | since (?:we|i) (?:ran|went|put|set|took) | how come
    | since (?:the|last|this|yesterday's) (?:upgrade|update|release|deploy\w*|merge|migration|refactor\w*)
"""
_ODD = r"""
    too (?:much|many|few|little|late|early|long|often) | why\W*$ | red
    | doesn't | does not | isn't | sometimes | twice | missing | lost | slow | no longer
"""
BROKEN = phrases(_BROKEN)
PROBLEM = phrases(f"{_BROKEN} | {_ODD}")
_ASKED = (
    ("bugfix", 1, BROKEN),
    ("bugfix", 1, PROBLEM),
    ("feature", 1, phrases(r"""
        let's have | could we have | would be (?:nice|cool|good|great|handy|useful) | configurable | optional
        | it should also | should (?:honou?r|support|accept|offer|understand|know) | i need an? | we want
    """)),
    ("feature", 2, re.compile(
        r"(?:^|[.!?,;:]\s+|\b(?:please|pls|you|we|to|and|also|now|then|let's|should)\s+)"
        r"(?:add|implement|create|build|write|introduce|extend|allow|enable)\b",
        re.I | re.M,
    )),
    ("feature", 1, phrases(r"""
        add | implement | support for | i'd like | i would like | i want | we need
        | can we have | new (?:command|option|flag|endpoint|page|feature|field|button|module|api|setting)
        | an? (?:option|flag|setting|parameter) | should (?:also )?be able | make it possible
    """)),
    ("refactor", 2, phrases(r"""
        refactor(?:ing)? | move | split | rename | extract | clean ?up | get rid of | restructure | simplify
        | tidy | reorgani[sz]e | break (?:it|this|that|them|\S+) up | break up | kitchen sink | untangle
        | faster | speed (?:it |this |that |things )?up | performance | optimi[sz]e
        | into (?:smaller|several|separate) | \d+ lines | spaghetti | a mess | duplicated? | modernis\w+
        | keep the (?:public )?(?:api|interface) | dedup\w* | convert | migrate | rewrite
        | too (?:long|big) | replace | port | copies of the same | copy[- ]?past\w+ | copied
        | hard[- ]?coded | get (?:\S+ ){1,6}?out of
        | (?:fold|merge|combine|unify|collapse|turn) (?:\S+ ){1,6}?into (?:one|a single)
    """)),
    ("refactor", 3, phrases(r"""
        (?:no|without(?: any| a)?) changes? (?:in|of|to) behaviou?r | same behaviou?r
        | no behaviou?r(?:al)? changes? | behaviou?r (?:must|should) (?:not change|stay)\b.*
        | byte for byte | (?:must|should|has to) (?:stay|remain|do|be) (?:exactly )?(?:the same|identical)
    """)),
)  # fmt: skip
_REPORTED = (
    ("bugfix", 2, phrases(r"found it | root cause | (?:cause|culprit|bug|problem|issue) (?:was|is) | fixed "
        r"| the fix")),
    ("feature", 1, phrases(r"""
        added | implemented | now supports? | new (?:command|option|flag|endpoint) | is in[:.,] | works now
        | you can now
    """)),
    ("refactor", 1, phrases(r"""
        moved | extracted | renamed | split | refactored | simplified | no change in behaviou?r | down to
        | lives? in | is now (?:two|three|four|five|six|\d+) (?:files|modules|classes|functions)
    """)),
    ("refactor", 2, phrases(r"""
        nothing (?:outside|else|visible) changes | same behaviou?r | no behaviou?r\w* changes?
        | (?:behaviou?r|output|interface|api) (?:is|stays) (?:the same|unchanged|identical|as it was)
        | re-export(?:s|ed)? | purely mechanical | tests (?:are|stay) (?:untouched|unchanged)
        | (?:two|three|four|five|six|\d+) \w+ are (?:now one|one now) | identical (?:output|results?)
        | (?:are|is|all) (?:byte for byte |still |now )?identical | nothing else (?:has )?changed
        | (?:results?|outputs?) (?:is|are|stays?) the same
    """)),
)  # fmt: skip

# why something went wrong is told in the past
_WAS_WRONG = phrases(r"""
    (?:was|were|had|did|didn't|\w+ed)\b[^.]{1,200}?\b(?:so|because|since|which|and then|twice|instead)
    | (?:because|since|as)\b[^.]{1,120}?\b(?:was|were|had|did|didn't|\w+ed) | never \w+ed | forgot
""")

_PAST = phrases(r"was | were | had | did | didn't | never \w+ed | kept | forgot | lost | took")
_IS_NOW = phrases("now | no longer | again")
_WANTS = phrases(r"""
    should | want | need | please | pls | let's | make | set | use | change | move | turn | get | put | give
    | do | show me | instead | could (?:we|you) | can we
    | can you (?!check|look|have a look|see|find|fix|tell)\w+
    | refactor | split | rename | extract | convert | rewrite | replace | clean | go on | continue
""")


def kind_of(unit: Unit, asked: str, said: str, words: Sequence[str]) -> str:
    """`words` are those sentences of what was said that are about the unit. "" for a commit that says of
    itself that it is none of these."""
    named = commit_type(unit.commit.subject) if unit.commit else None
    if named:
        return named
    if named == "" and not was_broken(unit):
        return ""
    points = {"bugfix": 0, "refactor": 0, "feature": 0}  # where they are even, the first wins
    for kind, weight in _evidence(unit, asked[:READ], said[:200], " ".join(words)[:READ] or said[:READ]):
        points[kind] += weight
    if not was_broken(unit) and any(fixed.failure.seen == TESTS_FIRST for fixed in unit.fixed):
        # tests of their own are written for what is new, a test more for what was wrong
        edits = (*unit.older, *unit.edits)
        new = any(edit.is_new and edit.is_test for edit in edits)
        points["bugfix" if points["bugfix"] > points["feature"] + new else "feature"] += 1 + new
    if not any(points.values()):
        return "feature"  # it does something that it did not do before
    return max(points, key=lambda kind: points[kind])


def _evidence(unit: Unit, asked: str, opening: str, reported: str) -> list[tuple[str, int]]:
    subject = bare_subject(unit.commit.subject) if unit.commit else ""
    found = [(kind, weight) for kind, weight, pattern in BEGINS if subject and pattern.match(subject)]
    found += [(kind, weight) for kind, weight, pattern in _ASKED if pattern.search(asked)]
    found += [(kind, weight) for kind, weight, pattern in _REPORTED if pattern.search(reported)]
    if _REPORTED[0][2].search(opening) and not _REPORTED[0][2].search(reported):
        found.append(("bugfix", 2))  # 'Found it.' stands before the sentences about each unit
    if was_broken(unit):
        found.append(("bugfix", 4))
    elif _went_wrong(asked, reported):
        found.append(("bugfix", 2))  # somebody saw it go wrong, and now it is known why
    edits = (*unit.older, *unit.edits)
    if moved(edits):
        found.append(("refactor", 3))
    elif any(edit.is_new and edit.is_code for edit in edits) or _has_grown(edits):
        found.append(("feature", 1))
    return found


def _went_wrong(asked: str, reported: str) -> bool:
    """The user reports what went wrong, or only tells what happens, and the assistant tells how it came."""
    if any(kind == "feature" and pattern.search(asked) for kind, _, pattern in _ASKED):
        return False
    if BROKEN.search(asked) and _WAS_WRONG.search(reported):
        return True
    was = (sentences(reported) or [""])[0]
    only_tells = len(asked.split()) >= SENTENCE and not _WANTS.search(asked)
    return only_tells and bool(_PAST.search(was)) and bool(_IS_NOW.search(reported))


def _has_grown(edits: Sequence[Edit]) -> bool:
    code = [edit for edit in edits if edit.is_code]
    return sum(len(edit.put) for edit in code) > 2 * sum(len(edit.taken) for edit in code) + GROWTH


def was_broken(unit: Unit) -> bool:
    """Something failed before anything was edited, and passes now."""
    return any(fixed.failure.seen == BEFORE for fixed in unit.fixed)


def commit_type(subject: str) -> str | None:
    """The kind that a conventional commit names; "" for one that is none of ours; None for free words."""
    prefix = _PREFIX.match(subject)
    return _TYPES.get(prefix["type"].lower()) if prefix else None


def bare_subject(subject: str) -> str:
    prefix = _PREFIX.match(subject)
    return prefix["rest"] if prefix and prefix["type"].lower() in _TYPES else subject


def says_nothing(subject: str) -> bool:
    """Merges, work in progress, versions, typos."""
    return bool(_NOTHING.match(bare_subject(subject)))


def moved(edits: Sequence[Edit]) -> bool:
    """Lines went out of one file and into another."""
    if any(edit.moved for edit in edits):
        return True
    taken: dict[str, set[str]] = {}
    put: dict[str, set[str]] = {}
    for edit in edits:
        old, new = _lines(edit.taken), _lines(edit.put)
        taken.setdefault(edit.file, set()).update(old - new)
        put.setdefault(edit.file, set()).update(new - old)
    everywhere: dict[str, set[str]] = {}
    for file, lines in put.items():
        for line in lines:
            everywhere.setdefault(line, set()).add(file)
    return any(
        sum(1 for line in lines if everywhere.get(line, set()) - {file}) >= MOVED_LINES
        for file, lines in taken.items()
    )


def _lines(text: str) -> set[str]:
    return {line.strip() for line in text[:4_000].splitlines() if len(line.strip()) > 8}
