"""Work that was done: commits, fixes, edits. One finding for each thing, told in the words of those who did
it: the subject of the commit and the assistant's last message, not a list of edits."""

from __future__ import annotations

import re
from collections.abc import Sequence

from recollect.model import Observation
from recollect.synthesis.rules.finding import Finding
from recollect.synthesis.rules.prose import (
    all_telling,
    is_cause,
    is_change,
    is_strong_cause,
    telling_sentences,
)
from recollect.synthesis.rules.shell import Commit
from recollect.synthesis.rules.turns import (
    BEFORE,
    TESTS_FIRST,
    Edit,
    Fixed,
    Turn,
    Unit,
    is_request,
    without_acks,
)
from recollect.synthesis.rules.words import (
    TEXT_CHARS,
    blocks,
    clean,
    concepts,
    is_list,
    prompt_lines,
    sentence,
    sentences,
    telling,
    title,
    together,
)

MOST_FILES = 12
SUBSTANTIAL = 300  # characters of new text that are more than a touch
FEW_EDITS = 3

_PREFIX = re.compile(r"(?P<type>[a-z]{2,12})(?:\([^()\n]{1,60}\))?!?:\s+(?P<rest>\S.*)", re.I)
_TYPES = {
    "feat": "feature", "feature": "feature", "fix": "bugfix", "bugfix": "bugfix", "hotfix": "bugfix",
    "bug": "bugfix", "refactor": "refactor", "perf": "refactor", "docs": "", "doc": "", "chore": "", "style": "",
    "ci": "", "build": "", "test": "", "tests": "", "release": "", "deps": "", "lint": "", "revert": "",
}  # fmt: skip
_NOTHING = re.compile(
    r"(?:merge\b|wip\b|tmp\b|temp\b|fixup!|squash!|amend!|checkpoint\b|revert\b|(?:initial|first) (?:commit"
    r"|import)\b"
    r"|bump\b|release\b|v?\d+\.\d+|(?:fix(?:ed|es)? )?(?:a )?typos?\b|(?:update|edit"
    r"|tweak) (?:the )?(?:readme|changelog|docs?)\b"
    r"|(?:run |apply )?(?:black|ruff|prettier|lint(?:er|ing)?|format(?:ting)?)\b.{0,20}$|whitespace\b"
    r"|save\b|stuff$|update$|changes?$|fix$)",
    re.I,
)
# What the words speak for, and how much. The first words of a commit say most.
_VERBS = (
    ("bugfix", 4, re.compile(r"(?:fix(?:e[sd]|ing)?|resolve[sd]?|correct(?:s|ed)?|repair(?:s|ed)?"
        r"|hotfix)\b", re.I)),
    ("bugfix", 2, re.compile(r"(?:prevent|avoid|stop|guard|handle|don't|do not|no longer|never)\b", re.I)),
    ("bugfix", 2, re.compile(r".{0,80}\bno longer\b", re.I)),
    ("feature", 4, re.compile(r"(?:add|implement|introduce|support|allow|create|enable|provide|offer)(?:s"
        r"|ed)?\b|new\b", re.I)),
    ("refactor", 4, re.compile(
        r"(?:refactor|move|extract|rename|split|simplify|inline|reorgani[sz]e|restructure|clean|tidy|dedupe"
        r"|deduplicate"
        r"|unify|decouple|rewrite|modernis|modernize|flatten|isolate|consolidate)(?:s|e?d|ing)?\b", re.I)),
    ("refactor", 2, re.compile(r"(?:remove|drop|replace|convert|migrate|switch|port|use)(?:s|e?d)?\b"
             r"|.{0,80}\bno more\b", re.I)),
)  # fmt: skip
_ASKED = (
    ("bugfix", 2, re.compile(
        r"\b(?:bugs?|broken?|fail(?:s|ed|ing|ure)?|errors?|wrong(?:ly)?|crash(?:es|ed|ing)?|exceptions?"
        r"|traceback|stack ?trace|red"
        r"|doesn't|does not|don't work|not working|isn't|off by|regression|flak[ey]\w*|hangs?|stuck"
        r"|leak(?:s|ing|ed)?|incorrect"
        r"|supposed to|find out (?:why|where)|figure out why|why (?:is|does|do|are|am)|sometimes|twice"
        r"|missing|lost|loses|slow"
        r"|stopped working|no longer|complain\w*|reports? that|support says|500|nan|segfault|deadlock"
        r"|race)\b", re.I)),
    ("feature", 2, re.compile(
        r"\b(?:add|implement|create|build|support(?! says)|introduce|i'd like|i would like|i want|we need"
        r"|can we have|new (?:command|option|flag"
        r"|endpoint|page|feature|field|button|module|api|setting)|an? (?:option|flag|setting|parameter)"
        r"|should (?:also )?be able|make it possible"
        r"|allow|enable|extend)\b", re.I)),
    ("refactor", 2, re.compile(
        r"\b(?:refactor(?:ing)?|move|split|rename|extract|clean ?up|get rid of|restructure|simplify"
        r"|reorgani[sz]e|tidy|dedup\w*"
        r"|convert|migrate|rewrite|untangle|kitchen sink|too (?:long|big)|replace|port)\b", re.I)),
    ("refactor", 3, re.compile(r"\b(?:no|without(?: any| a)?) change(?:s|d)? (?:in|of|to) behaviou?r"
             r"|behaviou?r (?:must|should) (?:not change|stay)|same behaviou?r"
             r"|no behaviou?r(?:al)? change", re.I)),
)  # fmt: skip
_REPORTED = (
    ("bugfix", 2, re.compile(r"\b(?:found it|root cause|(?:the )?(?:cause|culprit|bug|problem|issue) (?:was"
        r"|is)|(?:fixed|the fix)\b)", re.I)),
    ("feature", 1, re.compile(r"\b(?:added|implemented|now supports?|new (?:command|option|flag|endpoint)"
        r"|is in[:.,]|works now|you can now)", re.I)),
    ("refactor", 1, re.compile(r"\b(?:moved|extracted|renamed|split|refactored|simplified"
             r"|no change in behaviou?r|down to|lives? in)\b", re.I)),
)  # fmt: skip
_CORRECTION = re.compile(
    r"(?:no|nope|wrong|not like that|undo|revert|actually|instead|hm+ no|that's not)\b", re.I
)


def worked(turn: Turn, told: Sequence[Finding]) -> list[Finding]:
    """The findings of a turn that has ended; `told` are those of the session before it."""
    if turn.end is None:
        return []
    found: list[Finding] = []
    units = [part for unit in turn.units for part in _parts(unit, turn)]
    for unit in units:
        finding = _finding(unit, turn, [*told, *found], alone=len(units) == 1)
        if finding:
            found.append(finding)
    return found


def _finding(unit: Unit, turn: Turn, told: Sequence[Finding], *, alone: bool) -> Finding | None:
    if not _is_worth_telling(unit, turn):
        return None
    assert turn.end is not None
    asked = turn.request or turn.prompt
    words = _words_of(unit, turn, alone=alone)
    kind = kind_of(unit, asked, turn.said, words)
    if kind == "":
        return None
    heading = _heading(unit, words, asked)
    if not heading:
        return None
    files = tuple(dict.fromkeys(edit.file for edit in sorted((*unit.edits, *_same_work(unit)), key=_weight)))
    text = _text(kind, heading, unit, words, asked)
    cites = dict.fromkeys(edit.item for edit in unit.edits)
    cites |= dict.fromkeys(item for fixed in unit.fixed for item in (fixed.failure.item, fixed.item))
    if unit.commit_item is not None:
        cites[unit.commit_item] = None
    observation = Observation(
        kind=kind,
        title=heading,
        text=text,
        files=files[:MOST_FILES],
        concepts=concepts((heading, text), [edit.file for edit in unit.edits if edit.is_code]),
        cites=tuple(sorted(cites)),
    )
    replaced = _replaced(unit, turn, observation, told)
    learned = together([one for one in words if is_cause(one)][:2], 300)
    return Finding(observation, turn.end, replaced, learned)


def _is_worth_telling(unit: Unit, turn: Turn) -> bool:
    code = [edit for edit in unit.edits if edit.is_code]
    if unit.commit:
        subject = unit.commit.subject
        if _NOTHING.match(bare_subject(subject)):
            return False
        if not unit.edits:  # committed what an earlier turn told of, or what the user did alone
            told_already = unit.older or unit.follows or unit.commit.rewords
            return not told_already and _type(subject) in ("feature", "bugfix", "refactor")
        return bool(code or unit.fixed or any(edit.is_test for edit in unit.edits))
    if not code:
        return any(fixed.failure.seen == BEFORE for fixed in unit.fixed)
    if any(fixed.failure.seen == BEFORE for fixed in unit.fixed):
        return True
    if not turn.ended or not all_telling(turn.said):
        return False
    if len(code) >= FEW_EDITS or any(edit.is_new for edit in code) or len({edit.file for edit in code}) > 1:
        return True
    if sum(len(edit.put) for edit in code) >= SUBSTANTIAL:
        return True
    return is_strong_cause(turn.said) and _ASKED[0][2].search(turn.request) is not None


def kind_of(unit: Unit, asked: str, said: str, words: Sequence[str]) -> str:
    """By what speaks for each; "" for a commit that says itself that it is none of these."""
    points = {"bugfix": 0, "feature": 0, "refactor": 0}
    was_broken = any(fixed.failure.seen == BEFORE for fixed in unit.fixed)
    if unit.commit:
        kind = _type(unit.commit.subject)
        if kind:
            return kind
        if kind == "" and not was_broken:
            return ""
        for kind, weight, pattern in _VERBS:
            if pattern.match(bare_subject(unit.commit.subject)):
                points[kind] += weight
    for kind, weight, pattern in _ASKED:
        if pattern.search(asked[:2_000]):
            points[kind] += weight
    reported = " ".join(words) if words else said
    for kind, weight, pattern in _REPORTED:
        if pattern.search(reported[:2_000]) or (kind == "bugfix" and pattern.search(said[:200])):
            points[kind] += weight
    if was_broken:
        points["bugfix"] += 4
    elif any(fixed.failure.seen == TESTS_FIRST for fixed in unit.fixed):
        points["bugfix" if points["bugfix"] > points["feature"] else "feature"] += 1
    if _moved(unit.edits):
        points["refactor"] += 3
    elif any(edit.is_new and edit.is_code for edit in unit.edits):
        points["feature"] += 1
    most = max(points.values())
    if not most:
        return "refactor"
    return next(kind for kind in ("bugfix", "refactor", "feature") if points[kind] == most)


def _type(subject: str) -> str | None:
    """The kind that a conventional commit names; "" for one that is none of ours; None for free words."""
    prefix = _PREFIX.match(subject)
    return _TYPES.get(prefix["type"].lower()) if prefix else None


def bare_subject(subject: str) -> str:
    prefix = _PREFIX.match(subject)
    return prefix["rest"] if prefix and prefix["type"].lower() in _TYPES else subject


def _moved(edits: Sequence[Edit]) -> bool:
    """Lines that went out of one file and into another."""
    if any(edit.moved for edit in edits):
        return True
    taken: dict[str, set[str]] = {}
    put: dict[str, set[str]] = {}
    for edit in edits:
        taken.setdefault(edit.file, set()).update(_lines(edit.taken) - _lines(edit.put))
        put.setdefault(edit.file, set()).update(_lines(edit.put) - _lines(edit.taken))
    return any(
        len(lines & others) >= 3
        for file, lines in taken.items()
        for other, others in put.items()
        if other != file
    )


def _lines(text: str) -> set[str]:
    return {line.strip() for line in text[:4_000].splitlines() if len(line.strip()) > 8}


# --- what belongs together ----------------------------------------------------------------------------------


def _parts(unit: Unit, turn: Turn) -> list[Unit]:
    """Two bugs mended in a turn without a commit are two, where the assistant lists them by their files."""
    if unit.commit or not is_list(turn.said) or not any(fixed.failure.seen == BEFORE for fixed in unit.fixed):
        return [unit]
    places: dict[int, list[Edit]] = {}
    listed = [telling(block) for block in blocks(turn.said)]
    for edit in unit.edits:
        named = _names(edit)
        scores = [len(named & words) for words in listed]
        best = max(scores, default=0)
        if edit.is_code and best:
            places.setdefault(scores.index(best), []).append(edit)
    if len(places) < 2:
        return [unit]
    parts = []
    for place, edits in places.items():
        names = {name for edit in edits for name in _names(edit)} | listed[place]
        fixed = tuple(one for one in unit.fixed if telling(one.failure.name) & names)
        parts.append(Unit(tuple(edits), (), fixed or unit.fixed, follows=unit.follows))
    return parts


def _names(edit: Edit) -> set[str]:
    return telling(edit.file.rsplit("/", 1)[-1].split(".", 1)[0])


def _same_work(unit: Unit) -> list[Edit]:
    """Of what was told of before, that which this commit goes on with."""
    files = {edit.file for edit in unit.edits}
    return list(unit.older) if files & {edit.file for edit in unit.older} else []


def _replaced(
    unit: Unit, turn: Turn, now: Observation, told: Sequence[Finding]
) -> tuple[tuple[int, str], ...]:
    """A commit of work that went on includes what was told of its first half; a correction undoes it."""
    older = {edit.item for edit in unit.older}
    corrects = bool(_CORRECTION.match(without_acks(turn.prompt)[:60])) or bool(
        unit.commit and unit.commit.amends
    )
    found = []
    for finding in told:
        was = finding.observation
        if was.kind not in ("bugfix", "feature", "refactor") or finding.done_by == turn.end:
            continue
        same_files = set(was.files) & set(now.files)
        continued = set(was.cites) & older and (was.kind == now.kind or was.kind != "bugfix")
        if same_files and (continued or (corrects and _is_latest(finding, told))):
            found.append(finding.key)
    return tuple(found)


def _is_latest(finding: Finding, told: Sequence[Finding]) -> bool:
    works = [one for one in told if one.observation.kind in ("bugfix", "feature", "refactor")]
    return bool(works) and works[-1] is finding


# --- in words -----------------------------------------------------------------------------------------------


def _words_of(unit: Unit, turn: Turn, *, alone: bool) -> list[str]:
    """The sentences of the last message that are about this unit."""
    if not turn.said:
        return []
    listed = blocks(turn.said)
    if alone or len(listed) < 2:
        return all_telling(turn.said)
    about = {name for edit in unit.edits for name in _names(edit)}
    about |= telling(unit.commit.subject) if unit.commit else set()
    about |= {word for fixed in unit.fixed for word in telling(fixed.failure.name)}
    scores = [len(about & telling(block)) for block in listed]
    best = max(scores)
    if not best:
        return []
    return telling_sentences(listed[scores.index(best)])


def _heading(unit: Unit, words: Sequence[str], asked: str) -> str:
    if unit.commit:
        return title(bare_subject(unit.commit.subject))
    if words:
        changes = [one for one in words if is_change(one)]
        return title((changes or list(words))[0])
    wish = _wish(asked)
    failed = _failed(unit.fixed)
    return title(wish or failed)


def _wish(asked: str) -> str:
    """What was asked for, in a sentence."""
    for line in prompt_lines(asked):
        for one in sentences(line):
            bare = without_acks(one)
            if is_request(bare) and len(bare) >= 15:
                return bare
    return ""


def _text(kind: str, heading: str, unit: Unit, words: Sequence[str], asked: str) -> str:
    body = [one for line in blocks(unit.commit.body) for one in sentences(line)] if unit.commit else []
    causes = [one for one in words if is_cause(one)]
    changes = [one for one in words if is_change(one)]
    if kind == "bugfix":
        chosen = [*causes[:1], *changes[:1], *words[:2], *body[:2]]
    else:
        chosen = [*words[:2], *body[:2]]
    ordered = [one for one in (*words, *body) if one in chosen]
    parts = [
        sentence(one)
        for one in dict.fromkeys(ordered)
        if title(one) != heading or len(one) > len(heading) + 20
    ]
    if kind == "bugfix" and (failed := _failed(unit.fixed)):
        parts.append(sentence(f"Failed before: {failed}"))
    if not parts and (wish := _wish(asked)):
        parts.append(sentence(f"Asked for: {wish}"))
    return together(parts, TEXT_CHARS) or sentence(heading)


def _failed(fixed: Sequence[Fixed]) -> str:
    first = next((one.failure for one in fixed if one.failure.seen == BEFORE), None)
    first = first or next((one.failure for one in fixed if one.failure.seen == TESTS_FIRST), None)
    if first is None:
        return ""
    name = first.name.rsplit("::", 1)[-1] if first.name != "tests" else ""
    return clean(": ".join(part for part in (name, first.error) if part))[:200]


def _weight(edit: Edit) -> int:
    return 0 if edit.is_code else 1 if edit.is_test else 2


def is_wip(commit: Commit) -> bool:
    return bool(_NOTHING.match(bare_subject(commit.subject)))
