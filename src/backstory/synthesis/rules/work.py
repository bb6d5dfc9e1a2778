"""Work that was done: commits, fixes, edits. One finding for each thing, told in the words of those who did
it: the subject of the commit and the assistant's last message, not a list of edits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from backstory.model import Observation
from backstory.synthesis.rules.commands import Commit
from backstory.synthesis.rules.finding import Finding
from backstory.synthesis.rules.kinds import (
    BEGINS,
    PROBLEM,
    bare_subject,
    commit_type,
    kind_of,
    says_nothing,
    was_broken,
)
from backstory.synthesis.rules.prompts import is_request, without_acks
from backstory.synthesis.rules.prose import (
    all_telling,
    is_cause,
    is_change,
    telling_sentences,
)
from backstory.synthesis.rules.turns import (
    BEFORE,
    TESTS_FIRST,
    Edit,
    Fixed,
    Turn,
    Unit,
    short_name,
)
from backstory.synthesis.rules.words import (
    TEXT_CHARS,
    blocks,
    clean,
    concepts,
    is_list,
    marked_blocks,
    prompt_lines,
    sentence,
    sentences,
    telling,
    title,
    together,
)

MOST_FILES = 12
SUBSTANTIAL = 200  # characters of new text that are more than a touch
FEW_EDITS = 3
LONG_NAME = 60
WORK = ("bugfix", "feature", "refactor")

_I_DID = re.compile(r"(?:i(?:'ve| have)?|we(?:'ve| have)?) (?=\w+ed\b)", re.I)
_ANAPHORA = re.compile(r"(?:so|it|this|that|they|these|those|which|both)\b", re.I)
_CORRECTION = re.compile(
    r"(?:no|nope|wrong|not like that|undo|revert|actually|instead|hm+ no|that's not)\b", re.I
)


def worked(turn: Turn, told: Sequence[Finding]) -> list[Finding]:
    """The findings of a turn that has ended; `told` are those of the session before it."""
    if turn.end is None:
        return []
    found: list[Finding] = []
    units = [part for unit in _joined(turn.units) for part in _parts(unit, turn)]
    for unit in units:
        finding = _finding(unit, turn, turn.end, [*told, *found], alone=len(units) == 1)
        if finding:
            found.append(finding)
    return found


def _finding(unit: Unit, turn: Turn, end: int, told: Sequence[Finding], *, alone: bool) -> Finding | None:
    asked = turn.request or turn.prompt
    words = _words_of(unit, turn, alone=alone)
    wanted = f"{unit.began}\n{asked}" if unit.began else asked
    kind = kind_of(unit, wanted, turn.said, words) if _is_worth_telling(unit, turn) else ""
    heading = _heading(unit, words, asked)
    if not kind or not heading:
        return None
    edits = sorted((*unit.edits, *_same_work(unit)), key=_weight)
    text = _text(kind, heading, unit, words, asked)
    if kind == "feature" and (whole := _detail_of(unit, heading, text, turn, told)):
        return _with_detail(whole, unit, text, end)
    observation = Observation(
        kind=kind,
        title=heading,
        text=text,
        files=tuple(dict.fromkeys(edit.file for edit in edits))[:MOST_FILES],
        concepts=concepts((heading, text), [edit.file for edit in unit.edits if edit.is_code]),
        cites=_cites(unit),
    )
    causes = [one for one in words if is_cause(one)]
    learned = together([*(words[:1] if kind == "bugfix" else ()), *causes[:2]], 300)
    return Finding(observation, end, _replaced(unit, turn, observation, told), learned)


def _cites(unit: Unit) -> tuple[int, ...]:
    items = {edit.item for edit in unit.edits}
    items |= {item for fixed in unit.fixed for item in (fixed.failure.item, fixed.item)}
    return tuple(sorted(items | ({unit.commit_item} if unit.commit_item is not None else set())))


def _is_worth_telling(unit: Unit, turn: Turn) -> bool:
    return _is_real_commit(unit, unit.commit) if unit.commit else _is_substantial(unit, turn)


def _is_real_commit(unit: Unit, commit: Commit) -> bool:
    if says_nothing(commit.subject):
        return False
    if not unit.edits:  # committed what an earlier turn told of, or what the user did alone
        told_already = unit.older or unit.follows or commit.rewords
        return not told_already and commit_type(commit.subject) in WORK
    return bool(unit.fixed) or any(edit.is_code for edit in unit.edits)


def _is_substantial(unit: Unit, turn: Turn) -> bool:
    """More than a touch, or the cure of something that was broken; and the assistant says what it was."""
    code = [edit for edit in unit.edits if edit.is_code]
    if was_broken(unit) and (code or all_telling(turn.said)):
        return True
    if code and any(fixed.failure.seen == TESTS_FIRST for fixed in unit.fixed):
        return True
    if not code or not turn.ended or not all_telling(turn.said):
        return False
    many = len(code) >= FEW_EDITS or len({edit.file for edit in code}) > 1
    much = any(edit.is_new for edit in code) or sum(len(edit.put) for edit in code) >= SUBSTANTIAL
    explained = any(is_cause(one) for one in all_telling(turn.said)) and PROBLEM.search(turn.request[:2_000])
    return many or much or bool(explained)


# --- what belongs together ----------------------------------------------------------------------------------


def _joined(units: Sequence[Unit]) -> list[Unit]:
    """The commits of a turn that go on with each other are one piece of work, by the name of the largest. Two
    bugs are two, and so are things that have nothing in common."""
    found: list[Unit] = []
    for unit in units:
        last = found[-1] if found else None
        if (
            last
            and last.commit
            and unit.commit
            and unit.edits
            and _goes_on(last, last.commit, unit, unit.commit)
        ):
            main = max(last, unit, key=lambda one: sum(len(edit.put) for edit in one.edits if edit.is_code))
            found[-1] = replace(
                main,
                edits=(*last.edits, *unit.edits),
                older=(*last.older, *unit.older),
                fixed=(*last.fixed, *unit.fixed),
                follows=last.follows,
            )
        else:
            found.append(unit)
    return found


def _goes_on(last: Unit, before: Commit, unit: Unit, commit: Commit) -> bool:
    if was_broken(last) or was_broken(unit) or says_nothing(before.subject):
        return False
    if not any(edit.is_code for edit in unit.edits):
        return True  # tests or documentation of it
    subjects = telling(bare_subject(before.subject)) & telling(bare_subject(commit.subject))
    files = {edit.file for edit in last.edits if edit.is_code} & {
        edit.file for edit in unit.edits if edit.is_code
    }
    return len(subjects) >= 2 or (bool(files) and bool(subjects))


def _parts(unit: Unit, turn: Turn) -> list[Unit]:
    """Two bugs mended together are two, where the assistant lists them by the tests that failed; without a
    commit that names them, also where it lists them by their files."""
    if not is_list(turn.said) or not was_broken(unit):
        return [unit]
    if parts := _by_test(unit, turn):
        return parts
    if unit.commit:
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


def _by_test(unit: Unit, turn: Turn) -> list[Unit]:
    parts = []
    for block in (block for block, is_item, _ in marked_blocks(turn.said) if is_item):
        fixed = [one for one in unit.fixed if one.failure.is_test and short_name(one.failure.name) in block]
        if fixed and telling_sentences(block):
            named = [edit for edit in unit.edits if edit.is_code and _names(edit) & telling(block)]
            edits = tuple(named or unit.edits)
            parts.append(replace(unit, edits=edits, fixed=tuple(fixed), commit=None))
    return parts if len(parts) > 1 else []


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
    corrects = bool(_CORRECTION.match(turn.prompt.lstrip()[:60])) or bool(unit.commit and unit.commit.amends)
    found = []
    for finding in told:
        was = finding.observation
        if was.kind not in WORK or finding.done_by == turn.end:
            continue
        same_files = set(was.files) & set(now.files)
        continued = set(was.cites) & older and (was.kind == now.kind or was.kind != "bugfix")
        if same_files and (continued or (corrects and _is_latest(finding, told))):
            found.append(finding.key)
    return tuple(found)


def _detail_of(unit: Unit, heading: str, text: str, turn: Turn, told: Sequence[Finding]) -> Finding | None:
    """The feature that this touches up: told of last, in the same files, about the same; this is small."""
    works = [one for one in told if one.observation.kind in WORK and one.done_by != turn.end]
    code = [edit for edit in unit.edits if edit.is_code]
    if not works or works[-1].observation.kind != "feature" or not unit.commit or not unit.follows:
        return None
    was = works[-1].observation
    small = sum(len(edit.put) for edit in code) < SUBSTANTIAL and not any(edit.is_new for edit in code)
    inside = {edit.file for edit in code} <= set(was.files)
    alike = telling(f"{heading} {text}") & telling(f"{was.title} {was.text}")
    own = any(kind == "feature" and form.match(heading) for kind, _, form in BEGINS)
    return works[-1] if small and inside and len(alike) >= 2 and not own else None


def _with_detail(whole: Finding, unit: Unit, text: str, end: int) -> Finding:
    was = whole.observation
    observation = replace(
        was,
        text=together([was.text, text], 2 * TEXT_CHARS),
        files=tuple(dict.fromkeys((*was.files, *(edit.file for edit in unit.edits))))[:MOST_FILES],
        cites=tuple(sorted({*was.cites, *_cites(unit)})),
    )
    return Finding(observation, end, (whole.key, *whole.replaces), whole.learned)


def _is_latest(finding: Finding, told: Sequence[Finding]) -> bool:
    works = [one for one in told if one.observation.kind in WORK]
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
        plain = [one for one in words if not _ANAPHORA.match(one)] or list(words)
        return title(_I_DID.sub("", next((one for one in plain if is_change(one)), plain[0])))
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
        chosen = [*causes[:2], *changes[:1], *words[:2], *body[:2]]
    else:
        chosen = [*words[:3], *body[:2]]
    ordered = [one for one in (*words, *body) if one in chosen]
    bare = {one: _I_DID.sub("", one) for one in ordered}
    parts = [
        sentence(one) for one in bare if title(bare[one]) != heading or len(bare[one]) > len(heading) + 20
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
    name = short_name(first.name)
    program = not first.is_test and len(name) > LONG_NAME  # that is no name
    name = "" if name == "tests" or program else name
    return clean(": ".join(part for part in (name, first.error) if part))[:200]


def _weight(edit: Edit) -> int:
    return 0 if edit.is_code else 1 if edit.is_test else 2
