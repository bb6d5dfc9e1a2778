"""A session as turns, and what was worked on in each.

The items are folded once, oldest first. Nothing here looks ahead: what a turn came to is known when it ends,
and stays the same whatever follows, so a session may be cut into batches anywhere.

Edits collect until they are committed. A check that fails is remembered together with what had been edited
when it was first seen to fail: nothing (it was broken before), only tests (they were written first), or the
code itself (work in progress, not a bug).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from backstory.model import Item
from backstory.store.queue import CHECKPOINT, COMPACT, FINALIZE, PROMPT
from backstory.synthesis.rules import commands
from backstory.synthesis.rules.commands import Check, Commit, Shell
from backstory.synthesis.rules.prompts import is_request

LOOKING = frozenset({"read", "shell", "web", "agent", "mcp"})  # actions

BEFORE, TESTS_FIRST, OWN = "before", "tests first", "own"

_TEST = re.compile(
    r"(?:^|/)(?:tests?|specs?|__tests__|testing|fixtures)/|(?:^|/)(?:test_|tests?\.(?:sh|py|js|ts|rb|pl|go|rs|php|lua|c|cpp|sql)$)|_test\.\w+$|\.(?:test|spec)\.\w+$"
    r"|conftest\.py$|Tests?\.(?:java|cs|kt|swift|php)$|_spec\.rb$"
)
_DOC = re.compile(
    r"\.(?:md|rst|adoc)$|(?:^|/)(?:LICENSE|CHANGELOG|README|NOTICE)[^/]*$"
    r"|(?<!requirements)(?<!constraints)(?<!CMakeLists)\.txt$",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Edit:
    item: int
    file: str  # from the root
    is_new: bool
    taken: str  # what was there before, as far as it is known
    put: str
    moved: bool = False

    @property
    def is_test(self) -> bool:
        return bool(_TEST.search(self.file))

    @property
    def is_doc(self) -> bool:
        return bool(_DOC.search(self.file))

    @property
    def is_code(self) -> bool:
        return not self.is_test and not self.is_doc


@dataclass(frozen=True, slots=True)
class Failure:
    name: str  # of the test, or the command
    is_test: bool
    error: str
    item: int
    seen: str  # BEFORE, TESTS_FIRST or OWN
    only: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fixed:
    failure: Failure
    item: int  # where it passed


@dataclass(frozen=True, slots=True)
class Unit:
    """Edits that belong together, with the commit that holds them, if there is one."""

    edits: tuple[Edit, ...]
    older: tuple[Edit, ...]  # told of at the end of an earlier turn, but committed only with these
    fixed: tuple[Fixed, ...]
    commit: Commit | None = None
    commit_item: int | None = None
    follows: bool = False  # there was a commit before in this session
    broken: bool = False  # the last run of the tests failed
    began: str = ""  # what was asked when the first of these edits was made, if in an earlier turn


@dataclass(slots=True)
class Turn:
    prompt: str  # what the user said, "" where nothing is known of it
    prompt_item: int | None
    request: str  # what this is about: the prompt, or the one that it only said yes to
    before: str  # the assistant's last message before this turn
    asked_before: str = ""  # what it was about until then
    said: str = ""  # and at its end
    end: int | None = None  # the item that ended it; None: it goes on
    ended: bool = False  # by the assistant; otherwise the user broke in or the session was left
    units: list[Unit] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    recovered: bool = False  # something failed and then passed, and nothing was edited for it
    failing: tuple[Failure, ...] = ()  # tests that failed when they last ran

    @property
    def edited(self) -> bool:
        return any(unit.edits for unit in self.units)


@dataclass(slots=True)
class _State:
    root: str
    pending: list[Edit] = field(default_factory=list)
    told: list[Edit] = field(default_factory=list)
    open: dict[str, Failure] = field(default_factory=dict)
    fixed: list[Fixed] = field(default_factory=list)
    committed: bool = False
    broken: bool = False
    began: str = ""


def turns(items: Iterable[Item], root: str, *, over: bool = False) -> list[Turn]:
    """`over`: nothing more will come, so the last turn has ended as well."""
    found: list[Turn] = []
    state = _State(root)
    turn: Turn | None = None
    before, request = "", ""
    for item in items:
        if item.tool == PROMPT:
            if turn is not None and turn.end is None:
                _close(turn, state, item.id)
            prompt = text_of(item.input.get("prompt"))
            asked_before, request = request, prompt if is_request(prompt) or not request else request
            turn = Turn(prompt, item.id, request, before, asked_before)
            found.append(turn)
            continue
        if item.tool in (CHECKPOINT, COMPACT):
            continue
        if turn is None or turn.end is not None:  # a hook of the user's may have sent the assistant on
            if item.tool == FINALIZE and turn is not None:
                before = _last_words(item) or before
                continue
            turn = Turn("", None, request, before)
            found.append(turn)
        if item.tool == FINALIZE:
            turn.said, turn.ended = _last_words(item), True
            _close(turn, state, item.id)
            before = turn.said or before
            continue
        turn.items.append(item)
        if not state.pending and not state.told:
            state.began = turn.request
        _take(item, turn, state)
    if over and turn is not None and turn.end is None and turn.items:
        _close(turn, state, turn.items[-1].id)
    return found


def _take(item: Item, turn: Turn, state: _State) -> None:
    if item.is_edit:
        if not item.failed:
            state.pending += _edits(item, state.root)
    elif item.action == "shell":
        done = commands.read(item.input, item.output)
        _take_bash(item, done, turn, state)


def _take_bash(item: Item, done: Shell, turn: Turn, state: _State) -> None:
    if done.all_gone:
        state.pending.clear()
    elif done.gone:
        state.pending = [edit for edit in state.pending if not _is_gone(edit.file, done.gone, state.root)]
    for path in done.changed:
        file = inside(path, state.root)
        if file and not is_made(file) and not _is_gone(file, done.gone, state.root):
            state.pending.append(Edit(item.id, file, False, "", "", done.moved))
    if done.check:
        _checked(item, done.check, turn, state)
    for commit in done.commits:
        _committed(item, commit, turn, state)


def _checked(item: Item, check: Check, turn: Turn, state: _State) -> None:
    if check.is_tests:
        state.broken = not check.passed
    if not check.passed:
        seen = _seen(state)
        for name, error in zip(check.names, check.errors, strict=True):
            if name not in state.open:
                failure = Failure(name, check.is_tests, error, item.id, seen, check.only)
                state.open[name] = failure
    if not check.passed and not check.is_whole:
        return
    still = set() if check.passed else set(check.names)
    for name, failure in list(state.open.items()):
        same = failure.is_test if check.is_tests else name == check.key
        if same and name not in still and _covers(check, failure):
            del state.open[name]
            state.fixed.append(Fixed(failure, item.id))
            turn.recovered = turn.recovered or (failure.seen == BEFORE and not state.pending)


def _seen(state: _State) -> str:
    if any(edit.is_code for edit in state.pending):
        return OWN
    return TESTS_FIRST if any(edit.is_test for edit in state.pending) else BEFORE


def _covers(check: Check, failure: Failure) -> bool:
    """A run of some tests says nothing about the others."""
    if not check.only or check.only == failure.only:
        return True
    return any(path in failure.name or failure.name.partition("::")[0] in path for path in check.only)


def _committed(item: Item, commit: Commit, turn: Turn, state: _State) -> None:
    edits, fixed = tuple(state.pending), tuple(state.fixed)
    last = turn.units[-1] if turn.units else None
    if commit.amends and last is not None and last.commit:  # the same commit, better
        turn.units[-1] = replace(
            last, edits=(*last.edits, *edits), fixed=(*last.fixed, *fixed), commit=commit, commit_item=item.id
        )
    else:
        began = state.began if state.began != turn.request else ""
        turn.units.append(
            Unit(edits, tuple(state.told), fixed, commit, item.id, follows=state.committed, began=began)
        )
    state.pending.clear()
    state.told.clear()
    state.fixed.clear()
    state.committed = True


def _close(turn: Turn, state: _State, end: int) -> None:
    """What is left uncommitted is a unit as well, if it is finished; else it waits for the next turn."""
    turn.end = end
    turn.failing = tuple(one for one in state.open.values() if one.is_test and state.broken)
    finished = not state.broken and not _is_open(turn.said)
    if state.pending and (turn.ended or state.fixed) and (finished or _has_mended(turn, state)):
        turn.units.append(Unit(tuple(state.pending), (), tuple(state.fixed), follows=state.committed))
        state.told += state.pending
        state.pending = []
        state.fixed = []
    elif not state.pending:
        state.fixed = []


def short_name(test: str) -> str:
    return test.rsplit("::", 1)[-1].split(" (", 1)[0]


def _has_mended(turn: Turn, state: _State) -> bool:
    """Some of the tests that failed at first pass now, by name, and those that do not failed before: the
    rest is for another turn, whatever is asked about it."""
    left = [one for one in state.open.values() if one.is_test]
    mended = [one.failure for one in state.fixed if one.failure.is_test and one.failure.seen == BEFORE]
    named = any(short_name(one.name) in turn.said for one in mended)
    return named and all(one.seen == BEFORE for one in left)


_ASKS = re.compile(
    r"\b(?:shall i|should i|do you want me|would you like|want me to|may i|ok(?:ay)? (?:with|for) you"
    r"|let me know"
    r" (?:if|whether|which) (?:i should|that's|you'd)|which (?:one|of)|go ahead)\b[^?]{0,200}\?\s*$",
    re.I,
)
_PLANS = re.compile(r"\s*(?:\*\*)?(?:the|my|here(?:'s| is) (?:the|my)) (?:plan|proposal|idea)\b", re.I)
_STUCK = re.compile(
    r"\b(?:still (?:fails?|failing|broken|red)|(?:could not|couldn't|can't|cannot) (?:fix|finish|reproduce"
    r"|get)|not (?:fixed|finished|working|done) yet|i(?:'m| am) stuck)\b",
    re.I,
)


def _is_open(said: str) -> bool:
    """A plan, a question that must be answered first, or work that did not get there."""
    return bool(_PLANS.match(said) or _ASKS.search(said[-400:]) or _STUCK.search(said[:4_000]))


def _edits(item: Item, root: str) -> list[Edit]:
    file = inside(item.path, root) if item.path else ""
    if not file:
        return []
    output = item.output if isinstance(item.output, dict) else {}
    is_new = output.get("created") is True
    changes = item.input.get("edits")
    if isinstance(changes, list):
        pairs = [
            (text_of(one.get("old")), text_of(one.get("new"))) for one in changes if isinstance(one, dict)
        ]
    else:
        put = item.input.get("new") or item.input.get("content")
        pairs = [(text_of(item.input.get("old")), text_of(put))]
    return [Edit(item.id, file, is_new, taken, put) for taken, put in pairs[:20]]


_MADE = re.compile(
    r"(?:^|/)(?:__pycache__|node_modules|\.git|dist|build|target|out|\.?venv|env|coverage|htmlcov|\.nyc_output"
    r"|\.(?:pytest|mypy|ruff|hypothesis|gradle|next|nuxt|turbo|parcel-cache|tox|nox|eggs|cache|terraform)(?:_cache)?"
    r"|[^/]+\.egg-info|vendor|tmp|logs?)/"
    r"|(?:^|/)(?:package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|bun\.lockb?|poetry\.lock"
    r"|uv\.lock|pdm\.lock|Pipfile\.lock|Cargo\.lock|Gemfile\.lock|composer\.lock|go\.sum|flake\.lock"
    r"|\.coverage[^/]*|coverage\.xml|\.DS_Store)$"
    r"|\.(?:py[cod]|class|o|obj|so|dll|dylib|exe|log|tmp|swp|min\.js|min\.css|map|sqlite3?|db)$"
)


def is_made(file: str) -> bool:
    """Whether a program makes this file, so that its change is nobody's edit."""
    return bool(_MADE.search(file))


def _is_gone(file: str, gone: Sequence[str], root: str) -> bool:
    for path in gone:
        place = (inside(path, root) if path.startswith("/") else os.path.normpath(path)).rstrip("/*")
        if place and (file == place or file.startswith(place + "/")):
            return True
    return False


def inside(path: str, root: str) -> str:
    """The path from the project's root; "" where it lies elsewhere, as scratch files do."""
    plain = os.path.normpath(path)
    if not os.path.isabs(plain):
        return "" if plain.startswith("..") else plain
    return plain.removeprefix(root + os.sep) if root and plain.startswith(root + os.sep) else ""


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _last_words(item: Item) -> str:
    return text_of(item.output.get("last_message")) if isinstance(item.output, dict) else ""
