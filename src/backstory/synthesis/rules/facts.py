"""Commits, answered questions and approved plans of a session's turns, as observations.

What kind of change a commit is, its own first words say; where they do not, it is none. A wrong memory costs
more than ten that are missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from backstory.markdown import without_fences
from backstory.memory.turn import PLAN_PROMPT, TYPED, Turn
from backstory.model import Observation
from backstory.synthesis.rules.words import line, sentences, shorten, telling

TITLE, TEXT = 150, 400
ASKED, ANSWERED, ERROR = 120, 160, 140
REASONS = 4  # turns before a commit in which its reason is looked for
ANSWER = 160  # characters of an answer that settles something
GOAL = 320
SHORT = 60  # characters of an answer in a title
ON = 90  # characters of what a question was about
CHANGE = 6  # telling words of a step that stands for a plan
UNCLEAR = 5  # a question with fewer telling words needs to be told with what it was about

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
    # What was moved, simplified, consolidated or removed may have been behaviour.
    **dict.fromkeys(("refactor", "rename", "extract"), "refactor"),
}
_TYPED = re.compile(r"([a-z]+)(?:\(([^)\n]{0,60})\))?!?: +", re.I)
_LABEL = re.compile(r"(?::\w+:|\[[^\]\n]{1,40}\]|[A-Z]{2,10}-\d+:?|\(?#\d+\)?:?|[^\w\s`\"'(\[]+)\s+")
_SCOPE = re.compile(r"([\w./@-]{2,40}): +")
_TRAILER = re.compile(r"\s*\((?:#\d+|[A-Z]{2,10}-\d+)\)\s*$")
_WITH_TESTS = re.compile(
    r"[,;]? (?:and|with|plus|\+|&) (?:(?:add|update|fix|new|more|unit) )*tests?\b.*$", re.I
)
_LINTERS = (
    r"lint\w*|nolint\S*|noqa|golangci\S*|eslint|prettier|gofmt|rustfmt|ruff|mypy|staticcheck|errcheck|clippy"
    r"|formatting|whitespace|indentation"
)
_LINT = re.compile(rf"\b(?:{_LINTERS})\b", re.I)
_NO_CHANGE_OF_CODE = re.compile(
    r"\b(?:tests?|testing|specs?|assertions?|coverage|flak[ey]\w*|mocks?|fixtures?|benchmarks?|docs?"
    r"|documentation|readme|changelog|comments?|docstrings?|typos?|spelling|wording|adrs?|architecture|todos?"
    r"|(?:implementation|design) (?:plan|doc)|licen[cs]e|gitignore|dependabot|renovate|ci|github actions?"
    r"|import paths?|imports|compil\w+|build (?:errors?|failures?)|t\.[A-Z]\w+"
    r"|pre-commit|merge conflicts?|feedback|(?:pr|code) review|address(?:es|ed)? .*\breview|nits?|suggestions"
    rf"|findings|wip|\w+\.(?:md|rst|txt|lock)|{_LINTERS})\b",
    re.I,
)
# Parts of a program that nobody uses by themselves: a step, or the repair of one.
_PART = re.compile(r"\b(?:helpers?|functions?|fields?|methods?|structs?|wrappers?|stubs?|missing)\b", re.I)
_TEST = re.compile(
    r"(?:^|/)(?:tests?|__tests__|specs?|e2e\w*|integration_test\w*|testdata)/"
    r"|(?:^|/)test_[^/]*$|[._-](?:test|spec)\.\w+$|_test\.\w+$",
    re.I,
)
_NO_CODE = re.compile(rf"{_TEST.pattern}|(?:^|/)(?:docs?|\.github)/|\.(?:md|rst|txt)$", re.I)
_CRASH = re.compile(r"handles?\b.*\b(?:crash|panic|nil|null|race|deadlock|overflow|leak)", re.I)


def kind_of(subject: str, files: Sequence[str] = ()) -> tuple[str, str] | None:
    """(kind, what was changed) of a commit; None where its subject does not say, or it changed no code. What
    it says that it is about stays before it."""
    rest = _TRAILER.sub("", subject.strip())
    rest = _LABEL.sub("", rest, count=1) if _LABEL.match(rest) else rest
    kind = scope = ""
    if typed := _TYPED.match(rest):
        name, scope = typed[1].lower(), typed[2] or ""
        if name in _TYPES:
            kind, rest = _TYPES[name], rest[typed.end() :]
        elif scope or name in _NOTHING:
            return None
        if _NO_CHANGE_OF_CODE.search(scope):
            return None
    if not kind:
        if scoped := _SCOPE.match(rest):
            scope, rest = scoped[1], rest[scoped.end() :]
        verb = re.match(r"[A-Za-z-]+", rest)
        kind = _VERBS.get(_stem(verb[0].lower()), "") if verb else ""
        kind = kind or ("bugfix" if _CRASH.match(rest) else "")
    point = line(rest).rstrip(".")
    if not kind or not _says_it(kind, point):
        return None
    # Of one that says its type, others may have edited the code, but not beside tests alone.
    if files and all(map((_TEST if typed else _NO_CODE).search, files)):
        return None
    return kind, f"{scope}: {point}" if scope else point


def _says_it(kind: str, point: str) -> bool:
    """Whether it is that kind of change, of code, and whole."""
    bare = _WITH_TESTS.sub("", point)
    if len(telling(bare)) < 3 or _NO_CHANGE_OF_CODE.search(bare):
        return False
    words = re.findall(r"\w+", bare.lower())
    if kind == "refactor":
        return all(_VERBS.get(word, kind) == kind for word in words)  # and nothing else besides
    return kind != "feature" or not _PART.search(bare)


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
    subjects = [str(subject) for turn in turns for _, subject, _ in turn.commits]
    reverted = {named[1] for subject in subjects if (named := _REVERT.fullmatch(subject))}
    for turn in turns:
        since = [*since[-REASONS:], turn]
        for _, subject, files in turn.commits:
            names = [str(file) for file in files] if isinstance(files, list) else []
            if subject not in reverted and (found := kind_of(str(subject), names)):
                kind, point = found
                point = point if _SCOPE.match(point) else point[:1].upper() + point[1:]
                passed = [one for each in since for one in each.passed] if len(turn.commits) == 1 else []
                text = _because(point, since, passed if kind == "bugfix" else [])
                if all(map(_NO_CODE.search, names)):
                    names = []  # others edited the code, such as a program or a subagent
                yield turn, Observation(kind, shorten(point, TITLE), text, tuple(names))
        if turn.commits:
            since = []


_REVERT = re.compile(r'Revert "(.+)"')


def _because(point: str, turns: Sequence[Turn], passed: Sequence[Sequence[str]]) -> str:
    """The point, and what was said about the same when it was asked for and when it was done."""
    asked = [line(text) for turn in turns for text, source in turn.prompts if source == TYPED]
    said = [one for part in turns[-1].answer[:2_000].splitlines() for one in sentences(line(part))]
    errors = [line(one) for _, error in passed for one in error.split(" / ") if _NAMED.search(one)]
    errors = [one for one in errors if len(_parts(one) & _parts(point)) > 1]
    parts = [f"{point}."]
    parts += [f"asked: {shorten(one, ASKED)}" for one in asked if _is_about(one, point)][-1:]
    parts += [f"failed, then passed: {shorten(one, ERROR)}" for one in errors[-1:]]
    parts += [f"answered: {shorten(one, ANSWERED)}" for one in said if _is_about(one, point)][:1]
    return shorten(" ".join(parts), TEXT)


def _is_about(said: str, point: str) -> bool:
    """The same words, and more than that it is to be handed in, or was."""
    subject, words = telling(point) - _VERBS.keys(), telling(said)
    is_more = not words - _VERBS.keys() <= subject
    return len(words & subject) >= max(2, len(subject) / 2) and is_more and not _HANDED_IN.search(said)


def _parts(text: str) -> set[str]:
    """Words, also those that a name is made of."""
    words = telling(re.sub(r"(?<=[a-z])(?=[A-Z])|[_-]", " ", text))
    return {word.removesuffix("s") for word in words if len(word) > 2} - _SAYS_LITTLE - _VERBS.keys()


_SAYS_LITTLE = frozenset("what which where when how why who new use only into test error fail failed".split())
_HANDED_IN = re.compile(
    r"\b(?:commit(?:ted|s)?|push(?:ed)?|merged?)\b.{0,20}(?:$|[:`]|\bas\b|\bthis\b|\band\b)"
    r"|:$|[|]|```|#\d|\b[0-9a-f]{7,40}\b|\bsummary\b",
    re.I,
)
_NAMED = re.compile(r"\bFAIL(?:ED)?\b|\w(?:Error|Exception): |\bpanic: ")  # no linter's and no compiler's


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


def decisions(turns: Sequence[Turn], *, attended: bool = True) -> Iterator[tuple[Observation, str]]:
    """What the user answered in the last of the turns, and the plans that the user approved there; and whose
    words these are."""
    for question, answer in turns[-1].choices if attended else ():
        asked, said = line(question), re.sub(r"\s*\(recommended\)", "", line(answer), flags=re.I)
        if _NUMBERED.match(said):
            said = said.partition(": ")[2]
        if not said or not settles(question, answer) or _LINT.search(asked):
            continue
        about = _about(asked, said, turns, attended=attended)
        chosen, _, offered = said.partition(": ")  # how it was offered are the assistant's words
        title = f"{shorten(asked, TITLE - SHORT)}{ARROW}{shorten(chosen, SHORT)}"
        text = f"Asked: {asked} " if len(asked) > TITLE - SHORT else ""
        text += f"The user chose: {chosen}" + (f" (offered as: {offered})" if offered else "")
        text = shorten(text, TEXT - ON)
        yield Observation("decision", title, f"{text} (on: {about})" if about else text), "user"
    for plan in approved_plans(turns[-1], attended=attended):
        title, goal = plan_title(plan)
        says = goal and len(telling(title)) > 1  # without it, only the reason for the plan is known
        if says and not _NO_CHANGE_OF_CODE.search(title) and not _REVIEW.match(title):
            yield Observation("decision", title, shorten(f"Approved plan: {goal}", TEXT)), "assistant"


_NUMBERED = re.compile(r"(?:option|approach|alternative|choice)? ?(?:[A-Z]|\d)(?:: |$)", re.I)


def _about(asked: str, said: str, turns: Sequence[Turn], *, attended: bool) -> str:
    """What the question was about: what was typed, or the title of an approved plan, with most of its words.
    A word that is shared by chance with another turn is not enough; a question that says little by itself is
    about what was typed before it."""
    words = _parts(f"{asked} {said.partition(': ')[0]}")
    best, about = 0, ""
    for turn in turns:
        plans = [plan_title(plan)[0] for plan in approved_plans(turn, attended=attended)]
        typed = [line(text) for text, source in turn.prompts if source == TYPED]
        for text in (*plans, *typed):
            shared = len(words & _parts(text))
            if shared >= max(best, 1 if turn is turns[-1] else 2):
                best, about = shared, text
    if not about and len(telling(asked)) < UNCLEAR:
        told = [line(text) for turn in turns for text, source in turn.prompts if source == TYPED]
        about = next((text for text in reversed(told) if len(telling(text)) > 2), "")
    return shorten(about, ON)


_REVIEW = re.compile(r"(?:review|analysis|investigation|summary|findings)\b", re.I)
_OPEN = re.compile(r"[?\n]|https?://")


def settles(question: str, answer: str) -> bool:
    """Whether an answer says what is to be, and not only how to go on."""
    said, _, described = answer.strip().partition(": ")
    if not said or len(said) > ANSWER or len(described) > 2 * ANSWER or _OPEN.search(answer.strip()):
        return False
    if _SETTLES_NOTHING.fullmatch(said):
        return False
    return not _PROCEDURE.search(line(question))


def approved_plans(turn: Turn, *, attended: bool) -> list[str]:
    """Also the one that Claude Code begins a session with after its approval: it has a title and sections."""
    is_done = attended and bool(turn.edited or turn.commits)
    prompts = [text for text, _ in turn.prompts if is_done and text.startswith(PLAN_PROMPT)]
    given = [text.removeprefix(PLAN_PROMPT).lstrip(": \n") for text in prompts]
    return [*turn.plans, *(plan for plan in given if _PLAN_MODE.match(plan))]


_PLAN_MODE = re.compile(r"# \S.*\n(?s:.*?)^## \S(?s:.*?)^## \S", re.M)
_GOALS, _CHANGES, _WHY = (
    re.compile(rf"^#{{2,3}} (?:the )?(?:{names})\b.*\n", re.I | re.M)
    for names in (
        r"goals?|objectives?|summary|overview|(?:\w+ )?(?:solution|decision|approach)",
        r"(?:\w+ )?(?:changes?|fix(?:es)?|steps|implementation|plan|design)",
        "context|problem|background",
    )
)
_STEP = re.compile(r"^#{3,4} (?:(?:step|phase|part) )?(?:[A-Z]|\d+)[.:)][ :]*(.+)$", re.I | re.M)
_FILE = re.compile(r"`[^`]*[/.][^`]*`|\([^)]*\)|\bfiles?\b|\b\d+\b|[:—–-]", re.I)


def plan_title(plan: str) -> tuple[str, str]:
    """(title, what is done and why) of a plan, in its own words."""
    lines = [one for one in plan.splitlines() if one.strip()]
    head = re.sub(
        r"^(?:implementation )?plan\b[:\s-]*|\s*[-–:]?\s*(?:implementation )?plan$",
        "",
        line(lines[0]),
        flags=re.I,
    )
    body = plan.partition("\n")[2] if lines[0].startswith("#") else plan
    body = without_fences(body, "\n\n```\n\n")
    if len(telling(head)) < 2:
        head = next((line(one) for one in lines[1:] if len(telling(line(one))) > 2), line(lines[0]))
    why, changes = _section(body, _WHY), _section(body, _CHANGES, "##? ")
    done = _words_of(_section(body, _GOALS)) or _steps(body) or _words_of(changes, least=CHANGE)
    done = shorten(done if done or why else _words_of(body), GOAL)
    reason = f" Why: {_words_of(why)}" if done and _words_of(why) else ""
    return shorten(head, TITLE), f"{done}{reason}" if done or why else head


def _section(plan: str, heading: re.Pattern[str], below: str = "#") -> str:
    found = heading.search(plan)
    return re.split(rf"^{below}", plan[found.end() :], maxsplit=1, flags=re.M)[0] if found else ""


def _words_of(section: str, least: int = 0) -> str:
    """Its first paragraph with so many telling words, and the list that it announces; no heading, code or
    table."""
    parts = [part.strip() for part in re.split(r"\n\s*\n|\n(?=#)|(?<=\n)(?=#)", section) if part.strip()]
    is_text = [not part.startswith(("#", "```", "|", "---")) for part in parts]
    for number, part in enumerate(parts):
        words = line(part)
        is_trivial = least and (len(telling(words)) < least or _NO_CHANGE_OF_CODE.search(words))
        if is_text[number] and not is_trivial:
            if words.endswith(":") and any(is_text[number + 1 : number + 2]):
                words = f"{words} {line(parts[number + 1])}"
            return words.rstrip(":") if words.endswith((".", "!")) else f"{words.rstrip(':')}."
    return ""


def _steps(plan: str) -> str:
    """The headings of its steps, where they say more than a file's name."""
    steps = [line(found).rstrip(".:") for found in _STEP.findall(plan)]
    told = [
        one for one in steps if len(telling(_FILE.sub(" ", one))) > 2 and not _NO_CHANGE_OF_CODE.search(one)
    ]
    return "; ".join(told) + "." if len(told) > 1 else ""
