"""What a model is told unasked: at the first prompt, at a file, at a failing test.

Most of the time that is nothing: a memory that does not help costs attention every time it is told. Each of
these has a gate, and what a gate cannot decide is not told. bench/telling.py measures them on real sessions.

This runs in the memory server, which has the index in RAM. Hooks do not load it: what they look into are the
lists of store/known.py.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from backstory import paths
from backstory.memory import failing_tests, terms
from backstory.memory import turn as turns_of
from backstory.memory.salience import DAY_MS
from backstory.recall.brief import asked, cut, day, done_lines, gist, plain, room_for, room_of, unmarked
from backstory.safety import fence
from backstory.safety.clean import clean
from backstory.store import known, projects, sessions, tellings, turns

if TYPE_CHECKING:
    from backstory.memory.turn import Turn
    from backstory.model import Project
    from backstory.recall.index import Index
    from backstory.store.file.connection import Connection

PROMPT_TOKENS, FILE_TOKENS = 350, 150  # with the fence around them
ASKED = 120  # characters of what was asked
COMMITS = 120  # characters of all commits
SHORTEST = 40  # characters of a piece that still say something
APART = " [...] "

QUERY = 600  # characters of a prompt that are searched for
FEWEST_WORDS = 3  # that are not generic
POOL = 20  # hits that are looked at
ITEMS = 2  # of them that are told
DAYS = known.DAYS  # so long ago at most a session was that is continued
LETTERS = 4  # of a word that a prompt and a file's turn must share
SHARED = 2  # such words
LOOKED_UP = 20  # of them
SESSION = 2  # tellings about files and failures in a session
BESIDE = (tellings.FILE, tellings.FAILURE)

# They are in every other prompt, and say what is to be done rather than with what.
GENERIC = frozenset(
    "add address again all apply ask branch bug build change changed changes check code comment comments"
    " commit commits continue create describe diff done explain feedback file files fix fixed fixes"
    " fixing get give go good great help here implement instead issue issues latest let lets like line"
    " lines lint local look looks main make merge merged need new next now ok okay one only open pass"
    " plan please pr problem prs pull push rebase remaining remove review reviews run see show still sure"
    " take task tell test tests thanks thing things think try understand update use using want work works"
    " write yes".split()
)


@dataclass(frozen=True, slots=True)
class Telling:
    """A text for the model, fenced, and where it comes from."""

    moment: str  # as store/tellings.py names them
    text: str
    ids: tuple[str, ...]
    about: str = ""
    reason: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gate:
    """What a turn must be, to be told unasked: nearly the best fit of all, and of this branch, which a prompt
    most likely continues, or the user's own of the last days. One from elsewhere must fit better."""

    of_best: float = 0.9  # of the best fit of all turns
    bm25: float = 1.75  # by the logarithm of how many turns there are
    covers: float = 0.35  # so much of the prompt, by weight
    bm25_elsewhere: float = 2.5
    covers_elsewhere: float = 0.6


GATE = Gate()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A turn that a prompt finds, and the figures that decide whether it is told."""

    turn: Turn
    bm25: float
    of_best: float  # its BM25, by that of the best turn
    covers: float
    days: float
    is_own: bool
    on_branch: bool
    is_told: bool  # to this session, already

    def passes(self, gate: Gate) -> bool:
        if self.of_best < gate.of_best:
            return False
        if self.on_branch:
            return self.bm25 >= gate.bm25 and self.covers >= gate.covers
        fits = self.bm25 >= gate.bm25_elsewhere and self.covers >= gate.covers_elsewhere
        return fits and self.is_own and self.days <= DAYS

    def figures(self) -> dict[str, object]:
        return {
            "bm25": round(self.bm25, 2),
            "of_best": round(self.of_best, 2),
            "covers": round(self.covers, 2),
            "days": round(self.days, 1),
            "own": self.is_own,
            "branch": self.on_branch,
        }


# --- at a prompt --------------------------------------------------------------------------------------------


def at_prompt(
    index: Index,
    db: Connection,
    cwd: str,
    session_id: str,
    prompt: str,
    now: int,
    others: Collection[str] = (),
) -> Telling | None:
    """What earlier sessions know about the session's first substantive prompt, if it passes the gate.
    `others` are sessions of other people, where the store has any."""
    if not is_substantive(prompt) or not _is_first(db, session_id, prompt):
        return None
    found = candidates(index, db, cwd, session_id, prompt, now, others)
    return _telling(prompt, chosen(found))


def is_substantive(prompt: str) -> bool:
    """A person's words, and enough of them that say what it is about."""
    text = prompt.strip()
    if text.startswith(("<", "/", "#", turns_of.PLAN_PROMPT)):
        return False
    spoken = {word.lower() for word in terms.words(_said(prompt))}
    telling = (word for word in spoken if len(word) > 1 and not word.isdigit())
    return len({*telling} - terms.STOPWORDS - GENERIC) >= FEWEST_WORDS


def _said(prompt: str) -> str:
    return " ".join(prompt[: 4 * QUERY].split())[:QUERY]


def _is_first(db: Connection, session_id: str, prompt: str) -> bool:
    """The prompt itself may be stored already, or not yet."""
    if tellings.count(db, session_id, tellings.PROMPT):
        return False
    before = [text for _, text in sessions.prompts(db, session_id) if is_substantive(text)]
    this = clean(prompt, 4 * QUERY).strip()[:QUERY] if before else ""  # as it would be stored
    return all(text.strip()[:QUERY] == this for text in before)


def candidates(
    index: Index,
    db: Connection,
    cwd: str,
    session_id: str,
    prompt: str,
    now: int,
    others: Collection[str] = (),
    told: Collection[str] | None = None,
) -> list[Candidate]:
    """The turns of other sessions that fit a prompt best, the best first."""
    from backstory.recall import search  # numpy with it: only where something is looked for
    from backstory.store import memories

    place = paths.place(cwd)
    project = projects.at(db, place)
    if project is None:
        return []
    fits = search.fitting_turns(index, db, project, search.checked(_said(prompt), "keyword", POOL), POOL)
    ids = memories.labels(db, [fit.row for fit in fits], now)
    found = turns.by_ids(db, [label.id for label in ids.values()])
    pairs = [(fit, found.get(ids[fit.row].id)) for fit in fits if fit.row in ids]
    # A question that is not answered yet, perhaps by a session beside this one, tells nothing.
    hits = [(fit, turn) for fit, turn in pairs if turn and turn.answer and turn.session_id != session_id]
    told = tellings.told(db, session_id) if told is None else told
    sources = {turn.session_id for _, turn in hits if turn.session_id}
    own = known.attended(db, sources).difference(others)
    here = known.on_branch(db, project, place.branch, sources) if place.branch else ()
    return [
        Candidate(
            turn=turn,
            bm25=fit.bm25,
            of_best=fit.bm25 / hits[0][0].bm25,
            covers=fit.covers,
            days=max(0, now - turn.ended_at) / DAY_MS,
            is_own=turn.session_id in own,
            on_branch=turn.session_id in here,
            is_told=turn.id in told,
        )
        for fit, turn in hits
    ]


def chosen(found: Sequence[Candidate], gate: Gate = GATE) -> list[Candidate]:
    """Of candidates, the best first: the first that pass. Where the session was told the best of them
    already, the next is no substitute."""
    passing = list(islice((candidate for candidate in found if candidate.passes(gate)), ITEMS))
    if passing and passing[0].is_told:
        return []
    return [candidate for candidate in passing if not candidate.is_told]


def _telling(about: str, passing: Sequence[Candidate]) -> Telling | None:
    if not passing:
        return None
    head = "From earlier sessions; memory_search with an id shows a memory whole."
    source = "backstory, with your prompt"
    room = (room_of(PROMPT_TOKENS) - room_for(fence.fence(head, source))) // len(passing) - 1
    items = [_item(candidate.turn, _fitting(candidate.turn, about), room) for candidate in passing]
    text = fence.fence("\n".join([head, *items]), source)
    reason = {candidate.turn.id: candidate.figures() for candidate in passing}
    return Telling(tellings.PROMPT, text, tuple(reason), cut(plain(clean(about, 4 * QUERY)), ASKED), reason)


def _fitting(turn: Turn, prompt: str) -> list[tuple[int, int, str]]:
    """The pieces of a turn that have words of a prompt, those with most of them first."""
    wanted = _telling_words(_said(prompt))
    having = [
        (-len(wanted & _telling_words(text)), at, part, text)
        for at, (part, text) in enumerate(turns_of.pieces(turn))
    ]
    return [(at, part, text) for number, at, part, text in sorted(having) if number]


def _item(turn: Turn, pieces: Sequence[tuple[int, int, str]], room: int) -> str:
    """`- 2026-03-01 [mem_...] asked: ...`, and below it of the answer what fits, and the commits. Of `pieces`
    (row, part, text) the best come first."""
    lines = [f"- {day(turn.started_at)} [{turn.id}] asked: {cut(asked(turn, ASKED), ASKED)}"]
    done = done_lines(turn.commits, [], COMMITS)
    room -= sum(room_for(line) + 3 for line in (*lines, *done))
    if answer := _answer(turn, pieces, room - len("answered: ")):
        lines.append(f"answered: {answer}")
    return "\n  ".join([*lines, *done])


def _answer(turn: Turn, pieces: Sequence[tuple[int, int, str]], room: int) -> str:
    """The pieces of the answer that fit, in their order, for as long as there is room."""
    kept: list[tuple[int, str]] = []
    left = room
    for row, part, text in pieces:
        said = plain(unmarked(text)) if part in (turns_of.ANSWER, turns_of.CHOICE) else ""
        if said and left >= SHORTEST and (not kept or room_for(said) <= left):
            kept.append((row, cut(said, left)))
            left -= room_for(kept[-1][1]) + len(APART)
    if not kept:
        return gist(turn.answer, room, bool(turn.closing)) if turn.answer and room >= SHORTEST else ""
    kept.sort()
    joined = kept[0][1]
    for (before, _), (row, said) in pairwise(kept):
        joined += (" " if row == before + 1 else APART) + said
    return joined


# --- at a file, at a failing test ---------------------------------------------------------------------------


def at_file(
    db: Connection, cwd: str, session_id: str, path: str, now: int, others: Collection[str] = ()
) -> Telling | None:
    """What the last turn that edited a rarely edited file came to, where the session touches it for the first
    time."""
    place = paths.place(cwd)
    project = projects.at(db, place)
    relative = _relative(os.path.join(cwd, path), place.tops)
    if project is None or not relative or not _has_room(db, session_id):
        return None
    edits = known.editing(db, project, relative)
    earlier = [edit for edit in edits if edit[1] != session_id]
    if not 0 < len(earlier) <= known.FEW or len(earlier) < len(edits):
        return None
    said = sessions.prompts(db, session_id)[-1:]
    for turn in _sources(db, session_id, earlier, now, others):
        about = _speaking(turn, os.path.basename(relative))
        # The file alone is a weak sign: what was done to it then has mostly nothing to do with what is asked
        # now. So the answer must name it, and the prompt at hand must have rare words of the turn.
        shared = _shared(db, project, said[0][1], turn, relative) if about and said else []
        if len(shared) >= SHARED and not known.is_touched(db, session_id, relative):
            head = f"{cut(plain(relative), ASKED)} was edited in an earlier session:"
            text = _beside(head, "about this file", turn, about)
            reason = {"edits": len(earlier), "days": _days(turn, now), "shared": shared}
            return Telling(tellings.FILE, text, (turn.id,), clean(relative), reason)
    return None


def _shared(db: Connection, project: Project, prompt: str, turn: Turn, path: str) -> list[str]:
    """Rare words that a prompt and a turn have in common, other than those of the file's path."""
    wanted = _telling_words(prompt[: 4 * QUERY]) - _telling_words(path)
    had = _telling_words("\n".join([text for text, _ in turn.prompts] + [turn.answer]))
    longest = sorted(wanted & had, key=lambda word: (-len(word), word))[:LOOKED_UP]
    return list(islice((word for word in longest if known.is_rare(db, project, word)), SHARED))


def _telling_words(text: str) -> set[str]:
    """The words of a text, and of the identifiers in it, that may say what it is about."""
    every = {term.strip('"*') for term in terms.query_terms(text)}
    return {word for word in every if len(word) >= LETTERS and not word.isdigit()} - GENERIC


def at_failure(
    db: Connection, cwd: str, session_id: str, output: str, now: int, others: Collection[str] = ()
) -> Telling | None:
    """How a named test that fails now was mended before."""
    names = failing_tests.names(output)
    project = projects.at(db, paths.place(cwd)) if names else None
    if project is None or not _has_room(db, session_id):
        return None
    for memory_id, source, at, mended in known.mending(db, project, now - DAYS * DAY_MS):
        name = next((name for name in names if name in mended), "")
        for turn in _sources(db, session_id, [(memory_id, source, at)], now, others) if name else ():
            head = f"{cut(plain(name), ASKED)} failed before, and passed in this turn:"
            text = _beside(head, "about this failure", turn, _speaking(turn, name))
            return Telling(tellings.FAILURE, text, (turn.id,), name, {"test": name, "days": _days(turn, now)})
    return None


def _has_room(db: Connection, session_id: str) -> bool:
    return sum(tellings.count(db, session_id, moment) for moment in BESIDE) < SESSION


def _sources(
    db: Connection,
    session_id: str,
    several: Sequence[tuple[str, str, int]],
    now: int,
    others: Collection[str],
) -> Iterator[Turn]:
    """Those of these turns (id, session, when it began) that may be told: the user's own of the last days, of
    sessions of which nothing was told like this, with an answer or a commit."""
    near = [one for one in several if one[1] != session_id and now - one[2] <= DAYS * DAY_MS]
    if not near:
        return
    own = known.attended(db, {source for _, source, _ in near}).difference(others)
    told, told_of = tellings.told(db, session_id), known.told_sessions(db, session_id, BESIDE)
    ids = [one for one, source, _ in near if source in own and source not in told_of and one not in told]
    found = turns.by_ids(db, ids)
    yield from (turn for one in ids if (turn := found.get(one)) and (turn.answer or turn.commits))


def _speaking(turn: Turn, name: str) -> list[tuple[int, int, str]]:
    """The pieces of an answer that name something."""
    pieces = enumerate(turns_of.pieces(turn))
    return [(at, part, text) for at, (part, text) in pieces if part == turns_of.ANSWER and name in text]


def _beside(head: str, source: str, turn: Turn, about: Sequence[tuple[int, int, str]]) -> str:
    source = f"backstory, {source}"
    room = room_of(FILE_TOKENS) - room_for(fence.fence(head, source)) - 1
    return fence.fence(f"{head}\n{_item(turn, about, room)}", source)


def _relative(path: str, tops: Sequence[str]) -> str:
    path = os.path.normpath(path)
    top = next((top for top in tops if path.startswith(top + os.sep)), None)
    return path.removeprefix(top + os.sep) if top else ""


def _days(turn: Turn, now: int) -> float:
    return round(max(0, now - turn.ended_at) / DAY_MS, 1)
