"""Commits, answered questions and approved plans of a session's turns, as observations.

What kind of change a commit is, its own first words say; where they do not, it is none. A wrong memory costs
more than ten that are missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from backstory.memory.turn import PLAN_PROMPT, TYPED, Turn
from backstory.model import Observation
from backstory.synthesis.rules.words import line, sentences, shorten, telling

TITLE, TEXT = 150, 400
ASKED, ANSWERED, ERROR = 120, 160, 140
REASONS = 4  # turns before a commit in which its reason is looked for
ANSWER = 160  # characters of an answer that settles something
GOAL = 320
SHORT = 60  # characters of an answer in a title

ARROW = " → "

# --- commits ------------------------------------------------------------------------------------------------

_TYPES = {
    **dict.fromkeys(("feat", "feature"), "feature"),
    **dict.fromkeys(("fix", "bugfix", "hotfix"), "bugfix"),
    **dict.fromkeys(("refactor", "perf"), "refactor"),
}
_VERBS = {
    **dict.fromkeys(("add", "implement", "support", "introduce"), "feature"),
    **dict.fromkeys(("fix", "bugfix", "hotfix", "repair", "correct", "prevent"), "bugfix"),
    # What was moved, simplified or removed may have been behaviour.
    **dict.fromkeys(("refactor", "rename", "extract", "consolidate", "deduplicate"), "refactor"),
}
_TYPED = re.compile(r"([a-z]+)(?:\(([^)\n]{0,60})\))?!?: +", re.I)
_LABEL = re.compile(r"(?::\w+:|\[[^\]\n]{1,40}\]|[A-Z]{2,10}-\d+:?|\(?#\d+\)?:?|[^\w\s`\"'(\[]+)\s+")
_SCOPE = re.compile(r"[\w./@-]{2,40}: +")
_TRAILER = re.compile(r"\s*\((?:#\d+|[A-Z]{2,10}-\d+)\)\s*$")
_WITH_TESTS = re.compile(
    r"[,;]? (?:and|with|plus|\+|&) (?:(?:add|update|fix|new|more|unit) )*tests?\b.*$", re.I
)
_NO_CHANGE_OF_CODE = re.compile(
    r"\b(?:tests?|testing|specs?|assertions?|coverage|flak[ey]\w*|mocks?|fixtures?|benchmarks?|docs?"
    r"|documentation|readme|changelog|comments?|docstrings?|typos?|spelling|wording|adrs?|architecture|todos?"
    r"|(?:implementation|design) (?:plan|doc)|licen[cs]e|lint\w*|golangci\S*|eslint|prettier|gofmt|rustfmt"
    r"|ruff|mypy|formatting|whitespace|indentation|gitignore|dependabot|renovate|ci|github actions?"
    r"|pre-commit|merge conflicts?|feedback|(?:pr|code) review|address(?:es|ed)? .*\breview|nits?|suggestions"
    r"|findings|wip|\w+\.(?:md|rst|txt|lock))\b",
    re.I,
)
_NO_CODE = re.compile(
    r"(?:^|/)(?:tests?|__tests__|specs?|docs?|e2e\w*|integration_test\w*|testdata|\.github)/"
    r"|(?:^|/)test_[^/]*$|[._-](?:test|spec)\.\w+$|_test\.\w+$|\.(?:md|rst|txt)$",
    re.I,
)
_CRASH = re.compile(r"handles?\b.*\b(?:crash|panic|nil|null|race|deadlock|overflow|leak)", re.I)


def kind_of(subject: str, files: Sequence[str] = ()) -> tuple[str, str] | None:
    """(kind, what was changed) of a commit; None where its subject does not say, or it changed no code."""
    rest = _TRAILER.sub("", subject.strip())
    rest = _LABEL.sub("", rest, count=1) if _LABEL.match(rest) else rest
    kind = ""
    if typed := _TYPED.match(rest):
        name, scope = typed[1].lower(), typed[2] or ""
        if name in _TYPES:
            kind, rest = _TYPES[name], rest[typed.end() :]
        elif scope or name in _NOTHING:
            return None
        if _NO_CHANGE_OF_CODE.search(scope):
            return None
    if not kind:
        rest = _SCOPE.sub("", rest, count=1) if _SCOPE.match(rest) else rest
        verb = re.match(r"[A-Za-z-]+", rest)
        kind = _VERBS.get(_stem(verb[0].lower()), "") if verb else ""
        kind = kind or ("bugfix" if _CRASH.match(rest) else "")
    point = line(rest).rstrip(".")
    bare = _WITH_TESTS.sub("", point)
    if not kind or len(telling(bare)) < 3 or _NO_CHANGE_OF_CODE.search(bare):
        return None
    if files and not typed and all(_NO_CODE.search(file) for file in files):
        return None
    return kind, point


_NOTHING = frozenset("docs doc test tests chore ci style build bump deps release merge revert wip".split())


def _stem(verb: str) -> str:
    for end in ("ies", "es", "ed", "ing", "s", "d"):
        for stem in (verb.removesuffix(end), verb.removesuffix(end) + "e"):
            if verb.endswith(end) and stem in _VERBS:
                return stem
    return verb


def commits(turns: Sequence[Turn]) -> Iterator[tuple[Turn, Observation]]:
    """One for each commit of the turns; the turns since the commit before it are its reason."""
    since: list[Turn] = []
    for turn in turns:
        since = [*since[-REASONS:], turn]
        for _, subject, files in turn.commits:
            names = [str(file) for file in files] if isinstance(files, list) else []
            if found := kind_of(str(subject), names):
                kind, point = found[0], found[1][:1].upper() + found[1][1:]
                passed = [one for each in since for one in each.passed] if len(turn.commits) == 1 else []
                text = _because(point, since, passed if kind == "bugfix" else [])
                if all(map(_NO_CODE.search, names)):
                    names = []  # others edited the code, such as a program or a subagent
                yield turn, Observation(kind, shorten(point, TITLE), text, tuple(names))
        if turn.commits:
            since = []


def _because(point: str, turns: Sequence[Turn], passed: Sequence[Sequence[str]]) -> str:
    """The point, and what was said about the same when it was asked for and when it was done."""
    asked = [line(text) for turn in turns for text, source in turn.prompts if source == TYPED]
    said = sentences(line(turns[-1].answer)[:2_000])
    errors = [line(": ".join(one)) for one in passed if _NAMED.search(one[-1])]
    parts = [f"{point}."]
    parts += [f"asked: {shorten(one, ASKED)}" for one in asked if _is_about(one, point)][-1:]
    parts += [f"failed, then passed: {shorten(one, ERROR)}" for one in errors[-1:]]
    parts += [f"answered: {shorten(one, ANSWERED)}" for one in said if _is_about(one, point)][:1]
    return shorten(" ".join(parts), TEXT)


def _is_about(said: str, point: str) -> bool:
    """The same words, and more than that it is to be handed in, or was."""
    return len(telling(said) & telling(point) - _VERBS.keys()) > 1 and not _HANDED_IN.search(said)


_HANDED_IN = re.compile(
    r"\b(?:commit(?:ted|s)?|push(?:ed)?|merged?)\b.{0,20}(?:$|[:`]|\bas\b|\bthis\b|\band\b)"
    r"|:$|[|]|```|\b[0-9a-f]{7,40}\b|\bsummary\b",
    re.I,
)
_NAMED = re.compile(r"[a-z][A-Z]|\w_\w|\.\w+:\d|Error: ")  # an error that names something


# --- what the user settled ----------------------------------------------------------------------------------

_SETTLES_NOTHING = re.compile(
    r"\W*(?:other|yes|no|yep|nope|ok|okay|sure|correct|both|all|none|neither|either|skip|cancel|continue|proceed"
    r"|go ahead|go on|do it|looks? good|lgtm|sounds good|works|fine|agreed|approved?|not sure|i don'?t know"
    r"|you decide|up to you|whatever|don'?t care|stop|later|done|start\b.*)\W*(?:please|\(recommended\))?\W*",
    re.I,
)
_PROCEDURE = re.compile(
    r"what would you like|what(?:'s| is| should (?:i|we) do) next|\bready\b|\bproceed\b|\bcontinue\b"
    r"|\bgo ahead\b|shall (?:i|we) (?:commit|start|begin)|\bplans?\b|\bPRs?\b|pull request|\bpush\b"
    r"|\bfixups?\b|(?:be|should i|want me to|shall i|how to|like to) (?:re-?)?commit|clarify|what do you mean"
    r"|more to discuss|looks? (?:right|good|ok)|sounds? (?:right|good)|capture"
    r"|\bwh(?:ich|at) .{0,40}\breview\b"
    r"|^(?:are there|is there|any|anything|does (?:this|that)|do (?:these|those)|is (?:this|that)|can you"
    r"|could you)\b",
    re.I,
)


def decisions(turn: Turn, *, attended: bool = True) -> Iterator[tuple[Observation, str]]:
    """What the user answered, and the plans that the user approved; and whose words these are."""
    for question, answer in turn.choices:
        asked, said = line(question), re.sub(r"\s*\(recommended\)", "", line(answer), flags=re.I)
        if settles(question, answer):
            title = f"{shorten(asked, TITLE - SHORT)}{ARROW}{shorten(said, SHORT)}"
            text = shorten(f"The user was asked: {asked} Answered: {said}", TEXT)
            yield Observation("decision", title, text), "user"
    for plan in approved_plans(turn, attended=attended):
        title, goal = plan_title(plan)
        if len(telling(title)) > 1 and not _NO_CHANGE_OF_CODE.search(title) and not _REVIEW.match(title):
            yield Observation("decision", title, shorten(f"Approved plan: {goal}", TEXT)), "assistant"


_REVIEW = re.compile(r"(?:review|analysis|investigation|summary|findings)\b", re.I)
_OPEN = re.compile(r"[?\n]|https?://")


def settles(question: str, answer: str) -> bool:
    """Whether an answer says what is to be, and not only how to go on."""
    said = answer.strip()
    if not said or len(said) > ANSWER or _OPEN.search(said) or _SETTLES_NOTHING.fullmatch(said):
        return False
    return not _PROCEDURE.search(line(question))


def approved_plans(turn: Turn, *, attended: bool) -> list[str]:
    """Also the one that Claude Code begins a session with after its approval: it has a title and sections."""
    prompts = [text for text, _ in turn.prompts if attended and text.startswith(PLAN_PROMPT)]
    given = [text.removeprefix(PLAN_PROMPT).lstrip(": \n") for text in prompts]
    return [*turn.plans, *(plan for plan in given if _PLAN_MODE.match(plan))]


_PLAN_MODE = re.compile(r"# \S.*\n(?s:.*?)^## \S(?s:.*?)^## \S", re.M)
_GOALS = [
    re.compile(rf"^#{{2,3}} (?:the )?(?:{names})\b.*\n+", re.I | re.M)
    for names in ("goals?|solution|decision|approach|summary|overview", "context|problem|background")
]


def plan_title(plan: str) -> tuple[str, str]:
    """(title, goal) of a plan, in its own words."""
    lines = [one for one in plan.splitlines() if one.strip()]
    head = re.sub(
        r"^(?:implementation )?plan\b[:\s-]*|\s*[-–:]?\s*(?:implementation )?plan$",
        "",
        line(lines[0]),
        flags=re.I,
    )
    body = plan.partition("\n")[2] if lines[0].startswith("#") else plan
    if len(telling(head)) < 2:
        head = next((line(one) for one in lines[1:] if len(telling(line(one))) > 2), line(lines[0]))
    goal = next((body[found.end() :] for form in _GOALS if (found := form.search(body))), body)
    parts = re.split(r"\n\s*\n|\n(?=#)", goal)
    told = [line(part) for part in parts if part.strip() and not part.startswith(("#", "```", "|", "---"))]
    goal = " ".join(told[:2]) if told and told[0].endswith(":") else next(iter(told), "")
    return shorten(head, TITLE), shorten(goal, GOAL) or head
