"""Whether a model used what it was told, and what it found out again that was known. Pure.

What a model thought cannot be seen. What can be checked is what it did next, in the turn in which it was told
or the one after that:

    id        it named the id of a told memory in a tool call
    file      it opened a file of a told memory that its session had not touched and the prompt did not name
    perhaps   a rare word of the memories, not in the prompt, is in its commands, searches or answer

Even a file may have been opened without being told of; that is why these are counted apart, and why nothing
here is called a saving.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

ID, FILE, PERHAPS, NONE, TOO_EARLY, TOO_LATE = "id", "file", "perhaps", "none", "too early", "too late"
SIGNS = (ID, FILE, PERHAPS, NONE, TOO_EARLY, TOO_LATE)
MOST_WORDS = 40  # that are looked up
SHORTEST_ERROR, SHORTEST_SEARCH = 20, 6

_WORD = re.compile(r"[A-Za-z_][\w-]{5,60}")  # shorter ones are rarely rare
# What every telling has around its memories: the marks, the sentence on how to see one whole, the headings.
_OURS = re.compile(r"^(?:</?backstory\b.*|.*\bmemory_search with an id\b.*|[A-Z][\w, ]*:)$", re.MULTILINE)
_LABELS = frozenset("answered assistant backstory commits edited failed failing uncommitted".split())
_VARIES = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Done:
    """What a session did in the turn after it was told something."""

    files: frozenset[str]  # that it read or edited
    named: str  # what stands in its tool calls: commands, patterns, queries, ids
    touched: frozenset[str]  # memories that it reinforced, superseded or forgot
    prompt: str
    answer: str


def sign_of_use(
    ids: Sequence[str],
    files: Iterable[str],
    text: str,
    done: Done | None,
    known_files: frozenset[str],
    is_rare: Callable[[str], bool],
    *,
    has_ended: bool = False,
) -> tuple[str, str]:
    """(one of SIGNS, what shows it). `files` are those of the told memories, `known_files` those that the
    session had touched before, which may have ended."""
    if done is None:
        return TOO_LATE if has_ended else TOO_EARLY, ""
    for memory_id in ids:
        if memory_id in done.touched or memory_id in done.named:
            return ID, memory_id
    if file := opened(files, done, known_files):
        return FILE, file
    said, asked = f"{done.named}\n{done.answer}", done.prompt.casefold()
    words = dict.fromkeys(
        word
        for word in _WORD.findall(_OURS.sub("", text))
        if word in said and word not in _LABELS and word.casefold() not in asked
    )
    for word in list(words)[:MOST_WORDS]:
        if is_rare(word):
            return PERHAPS, word
    return NONE, ""


def opened(files: Iterable[str], done: Done, known_files: frozenset[str]) -> str | None:
    """The first of these files that was opened though neither the prompt named it nor the session knew it."""
    for file in files:
        if file in done.files and file not in known_files and file.rpartition("/")[2] not in done.prompt:
            return file
    return None


# --- found again --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Worked:
    """Of a turn: what went wrong in it, and what the model searched for."""

    id: str
    session_id: str
    started_at: int
    ended_at: int
    failed: list[str]  # errors
    mended: list[str]  # errors of checks that passed later
    searched: list[str]


@dataclass(frozen=True, slots=True)
class Again:
    """Something that a session came upon though an earlier one had it, and was told nothing about."""

    what: str  # error, search
    text: str
    session_id: str
    turn: str
    known: str  # the earlier turn


@dataclass(slots=True)
class _Known:
    """The turns that had an error or a search: all by their ids, and the last ones of two sessions."""

    ids: set[str] = field(default_factory=set)
    last: Worked | None = None
    of_another: Worked | None = None  # than the last

    def add(self, turn: Worked) -> None:
        if self.last is not None and self.last.session_id != turn.session_id:
            self.of_another = self.last
        self.ids.add(turn.id)
        self.last = turn

    def earlier(self, turn: Worked) -> Worked | None:
        """The last one of another session."""
        last = self.last
        return last if last is not None and last.session_id != turn.session_id else self.of_another


def found_again(
    turns: Iterable[Worked],
    since: int,
    was_told: Callable[[str, int], set[str]],
    session_id: str | None = None,
) -> list[Again]:
    """`turns` of one project, the oldest first, also those from before `since`: they are what was known.
    `was_told`: the memories that a session was told until then. Each thing counts once a session."""
    errors: defaultdict[str, _Known] = defaultdict(_Known)
    searches: defaultdict[str, _Known] = defaultdict(_Known)
    found: dict[tuple[str, str, str], Again] = {}
    for turn in turns:
        if turn.started_at >= since and session_id in (None, turn.session_id):
            told = was_told(turn.session_id, turn.ended_at)
            for what, known, keys in (
                ("error", errors, error_lines([*turn.failed, *turn.mended])),
                ("search", searches, searched(turn.searched)),
            ):
                for key, text in keys.items():
                    earlier = known[key].earlier(turn) if key in known else None
                    if earlier and not any(one in known[key].ids for one in told):
                        again = Again(what, text, turn.session_id, turn.id, earlier.id)
                        found.setdefault((what, key, turn.session_id), again)
        for key in error_lines(turn.mended):
            errors[key].add(turn)
        for key in searched(turn.searched):
            searches[key].add(turn)
    return list(found.values())


def error_lines(errors: Iterable[str]) -> dict[str, str]:
    """Lines of errors, by what stays the same of them; numbers do not."""
    lines = (" ".join(line.split()) for error in errors for line in error.split(" / "))
    return {_VARIES.sub("#", line): line for line in lines if len(line) >= SHORTEST_ERROR}


def searched(patterns: Iterable[str]) -> dict[str, str]:
    """Searches that say something; `**/*.py` is a look around."""
    return {
        pattern.strip().casefold(): pattern
        for pattern in patterns
        if len(re.sub(r"[\W_]+", "", pattern)) >= SHORTEST_SEARCH and not pattern.startswith("**")
    }
