"""How well a line fits a query: words, meaning, who said it, and what stands around it. Pure arithmetic.

    where there are turns:  prior * y + turn + .15 * thread             y = (1 - w) * words + w * meaning
    elsewhere:              y + f * ((.1 + .2 * asks_before) * y_before + .1 * y_after)
                            + .35 * A - .1 * asks + .3 * window + .3 * thread

divided by what a line that fits perfectly can reach. A memory that is no turn counts as one of a single
piece, so that all stand in one list. Elsewhere are conversations, documents and trees: A is 1 where the
line's author is one that the query is about; f is A where the query is about somebody, else 1. An answer
follows its question, so a question lends most of its score to the line after it. Each of words, window, turn
and thread is BM25 over which lines a word is in, divided by its best.

A turn covers so much of a query as the words weigh that are in it, rare ones most: below FITS it does not
answer it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from backstory.memory import turn
from backstory.model import Part
from backstory.recall.corpus import Corpus, Lengths
from backstory.recall.nearness import Column, Floats, Ints

K1, B = 1.2, 0.75
BEFORE, ASKED_BEFORE, AFTER = 0.1, 0.2, 0.1
AUTHOR, ASKS, WINDOW, THREAD = 0.35, 0.1, 0.3, 0.3
TURN, SESSION = 1.0, 0.15  # of a piece
PRIOR = np.ones(turn.FACTS + 1, np.float32)  # by part: where else the words stand, the answer may be as well
PRIOR[[turn.ASKED, turn.PROMPT, turn.COMPACTION]] = 0.8
PRIOR[[turn.PLAN, turn.FACTS]] = 0.9
BEST, BEST_PIECE = 1 + WINDOW + THREAD, 1 + TURN + SESSION
FITS = 0.49  # of the query's weight: of ten questions that nothing answers, nine stay below
FEW = 100  # turns and memories that say little about how rare a word is
ALONE = 0.5  # of how well a line fits by itself counts as its window and thread, where it has none
SHORT = 10  # words; what is much shorter matches anything, so its meaning counts less
LIFT = 0.05  # each of salience, recency and sector, so that together they move a score by 15 % at most
RECENT_DAYS = 30
SCORED = 20_000  # lines whose whole score is computed; where more are eligible, the best by either measure
SECTOR_WEIGHT = {"reflective": 1.2, "semantic": 1.1, "procedural": 1.0, "emotional": 0.9, "episodic": 0.8}


@dataclass(frozen=True, slots=True)
class Scores:
    """The parts of some lines' scores; `total` is their sum."""

    words: Floats
    meaning: Floats
    neighbours: Floats
    author: Floats
    asks: Floats
    window: Floats
    turn: Floats
    thread: Floats

    @property
    def total(self) -> Floats:
        total: Floats = self.words + self.meaning + self.neighbours + self.author
        total += self.asks + self.window + self.turn + self.thread
        return total

    def parts(self, place: int) -> list[Part]:
        named = {name: float(getattr(self, name)[place]) for name in self.__slots__}
        return [Part(name, value) for name, value in named.items() if abs(value) >= 0.0005]


@dataclass(frozen=True, slots=True)
class WordScores:
    """How well lines, windows, turns and threads fit by their words; 1 is the best of each. Windows, turns
    and threads have one more at the end, a 0, which is where the -1 of a line without any points."""

    lines: Floats
    alone: Floats  # of a line that is in no turn: as if it were one
    windows: Floats
    turns: Floats
    threads: Floats
    best_turn: float = 1.0  # the BM25 that 1 stands for among turns


@dataclass(frozen=True, slots=True)
class TurnFits:
    """Of every turn."""

    bm25: Floats
    covers: Floats  # so much of the query, by weight


@dataclass(frozen=True, slots=True)
class Meaning:
    """How near every line is, and the range of that."""

    cosines: Floats
    lowest: float
    highest: float


def no_words(corpus: Corpus) -> WordScores:
    spaces = (corpus.windows, corpus.turns, corpus.threads)
    lines, alone = _nothing(corpus.size), _nothing(corpus.size)
    windows, turns, threads = (_nothing(space.size + 1) for space in spaces)
    return WordScores(lines, alone, windows, turns, threads)


def no_meaning(corpus: Corpus) -> Meaning:
    return Meaning(_nothing(corpus.size), 0.0, 0.0)


def by_words(corpus: Corpus, terms: Sequence[Ints], pairs: Sequence[Ints]) -> WordScores:
    """BM25 of lines, windows, turns and threads from the lines that each word and each pair is in."""
    found = no_words(corpus)
    length = corpus.relative_length()
    for lines in (*terms, *pairs):
        found.lines[lines] += _rarity(corpus.size, len(lines)) * (K1 + 1) / (1 + _norm(length[lines]))
    window, window_before = corpus.column("window"), corpus.column("window_before")
    thread = corpus.column("thread")
    for lines in terms:
        _count_up(found.threads, corpus.threads, thread[lines])
        if not corpus.turns.size:
            _count_up(found.windows, corpus.windows, np.concatenate([window[lines], window_before[lines]]))
    best = [_best(scores) for scores in (found.lines, found.windows, found.threads)]
    best_turn = _score_turns(corpus, terms, found) if corpus.turns.size else np.float32(1)
    return WordScores(
        lines=found.lines / best[0],
        alone=found.alone / best_turn,
        windows=found.windows / best[1],
        turns=found.turns / best_turn,
        threads=found.threads / best[2],
        best_turn=float(best_turn),
    )


def _score_turns(corpus: Corpus, terms: Sequence[Ints], found: WordScores) -> np.float32:
    """BM25 of turns, and of the memories that are none; the best of all."""
    turn_of, is_alone, words = corpus.column("turn"), _alone(corpus), corpus.column("words")
    of = corpus.turns.size + int(np.count_nonzero(is_alone))
    norm = _norm(corpus.turns.relative())
    share = np.float32(1 / max(float(corpus.turns["words"].mean()), 1.0))
    for lines in terms:
        within = turn_of[lines]
        alone = lines[is_alone[lines]]
        often = np.bincount(within[within >= 0], minlength=corpus.turns.size)
        there = np.flatnonzero(often)
        times = often[there].astype(np.float32)
        rarity = _rarity(of, len(there) + len(alone))
        found.turns[there] += rarity * (K1 + 1) * times / (times + norm[there])
        found.alone[alone] += rarity * (K1 + 1) / (1 + _norm(words[alone] * share))
    return max(_best(found.turns), _best(found.alone))


def turns_by_words(corpus: Corpus, terms: Sequence[Ints]) -> TurnFits:
    """How well each turn fits by its words alone. `terms` are the lines that each word is in."""
    turn_of, is_alone, size = corpus.column("turn"), _alone(corpus), corpus.turns.size
    of = size + int(np.count_nonzero(is_alone))
    norm = _norm(corpus.turns.relative())
    bm25, covers, total = _nothing(size), _nothing(size), 0.0
    for lines in terms:
        within = turn_of[lines]
        often = np.bincount(within[within >= 0], minlength=size)
        there = np.flatnonzero(often)
        number = len(there) + int(np.count_nonzero(is_alone[lines]))
        times = often[there].astype(np.float32)
        bm25[there] += _rarity(of, number) * (K1 + 1) * times / (times + norm[there])
        weight = _weight(of, number)
        covers[there] += np.float32(weight)
        total += weight
    return TurnFits(bm25, covers / np.float32(total or 1.0))


def by_meaning(cosines: Floats) -> Meaning:
    return Meaning(cosines, float(cosines.min()), float(cosines.max()))


def promising(corpus: Corpus, words: WordScores, meaning: Meaning, eligible: Column) -> Ints:
    """The lines whose score is worth computing: where there are very many, those that are among the best by
    words or by meaning, and what stands beside them."""
    lines: Ints = np.flatnonzero(eligible).astype(np.int32)
    if len(lines) <= SCORED:
        return lines
    best = [
        lines[np.argpartition(-values[lines], SCORED // 10)[: SCORED // 10]]
        for values in (words.lines, meaning.cosines)
    ]
    chosen = np.unique(np.concatenate(best))
    beside = np.concatenate([corpus.column("before")[chosen], corpus.column("after")[chosen]])
    beside = beside[beside >= 0]
    found: Ints = np.unique(np.concatenate([chosen, beside[eligible[beside]]]))
    return found


def fuse(
    corpus: Corpus, lines: Ints, words: WordScores, meaning: Meaning, weight: float, about: set[int]
) -> Scores:
    """The scores of these lines. `weight` is the share of meaning; `about` are the authors that the query is
    about."""

    share = np.float32(weight)

    def fits(at: Ints) -> Column:
        return (1 - share) * words.lines[at] + share * _meant(corpus, meaning, at)

    thread = corpus.column("thread")[lines]
    nothing = _nothing(len(lines))
    if corpus.turns.size:
        turn_of = corpus.column("turn")[lines]
        prior = PRIOR[corpus.column("part")[lines]] / np.float32(BEST_PIECE)
        whole = np.where(turn_of >= 0, words.turns[turn_of], words.alone[lines])
        return Scores(
            words=prior * (1 - share) * words.lines[lines],
            meaning=prior * share * _meant(corpus, meaning, lines),
            neighbours=nothing,
            author=nothing,
            asks=nothing,
            window=nothing,
            turn=np.float32(TURN / BEST_PIECE) * whole,
            thread=np.float32(SESSION / BEST_PIECE) * words.threads[thread],
        )
    before, after = corpus.column("before")[lines], corpus.column("after")[lines]
    question = corpus.column("question")
    author = np.isin(corpus.column("author")[lines], list(about)).astype(np.float32)
    around = _where(before, lambda at: (BEFORE + ASKED_BEFORE * question[at]) * fits(at))
    around += _where(after, lambda at: AFTER * fits(at))
    window, window_before = corpus.column("window")[lines], corpus.column("window_before")[lines]
    # A trace stands in no thread. Without anything in place of it, whatever was said and shares half of the
    # words would come before the trace that has them all.
    alone = np.where(thread < 0, np.float32(ALONE) * fits(lines), np.float32(0))
    in_window = alone + np.maximum(words.windows[window], words.windows[window_before])
    scale = np.float32(1 / BEST)
    return Scores(
        words=scale * (1 - share) * words.lines[lines],
        meaning=scale * share * _meant(corpus, meaning, lines),
        neighbours=scale * (around * author if about else around),
        author=scale * np.float32(AUTHOR) * author,
        asks=scale * np.float32(-ASKS) * question[lines],
        window=scale * np.float32(WINDOW) * in_window,
        turn=nothing,
        thread=scale * np.float32(THREAD) * (alone + words.threads[thread]),
    )


def lift(score: float, salience: float, sector: str, age_days: float) -> list[Part]:
    """What a memory is worth re-orders those that fit about equally well."""
    weights = SECTOR_WEIGHT.values()
    sector_share = (SECTOR_WEIGHT[sector] - min(weights)) / (max(weights) - min(weights))
    worth = {
        "salience": salience,
        "recency": math.exp(-max(0.0, age_days) / RECENT_DAYS),
        "sector": sector_share,
    }
    return [Part(name, max(0.0, score) * LIFT * share) for name, share in worth.items() if share > 0]


def weights(corpus: Corpus, terms: Sequence[Ints]) -> list[float]:
    """How much each word of a query tells, by how few turns and memories it is in. One that is nowhere tells
    most: who asks for it is not answered without it. `terms` are the lines that each is in."""
    turn_of, alone = corpus.column("turn"), _alone(corpus)
    of = corpus.turns.size + int(np.count_nonzero(alone))
    found = []
    for lines in terms:
        within = np.bincount(turn_of[lines] + 1, minlength=1)[1:]
        number = int(np.count_nonzero(within)) + int(np.count_nonzero(alone[lines]))
        found.append(_weight(of, number))
    return found


def _weight(of: int, number: int) -> float:
    return math.log(1 + (of + FEW - number) / (number + 1))


def _alone(corpus: Corpus) -> Column:
    """Which lines are a memory of their own; what a tool left is part of a turn, or next to nothing."""
    alone: Column = (corpus.column("turn") < 0) & (corpus.column("part") != turn.TRACE)
    return alone


def _meant(corpus: Corpus, meaning: Meaning, lines: Ints) -> Floats:
    """0 for the farthest line, 1 for the nearest, less for lines that say next to nothing."""
    if meaning.highest <= meaning.lowest:
        return _nothing(len(lines))
    spread = (meaning.cosines[lines] - meaning.lowest) / (meaning.highest - meaning.lowest)
    says = 1 - np.exp(-corpus.column("words")[lines] / SHORT)
    meant: Floats = spread * says * corpus.vectors.there[lines]
    return meant


def _count_up(scores: Floats, spaces: Lengths, within: Ints) -> None:
    """Add the BM25 of one word, given the places of the lines it is in; its frequency is their number."""
    often = np.bincount(within + 1, minlength=spaces.size + 1)[1:].astype(np.float32)
    rarity = _rarity(spaces.size, int(np.count_nonzero(often)))
    scores[:-1] += rarity * (K1 + 1) * often / (often + _norm(spaces.relative()))


def _norm(relative_length: Floats) -> Floats:
    return np.float32(K1 * (1 - B)) + np.float32(K1 * B) * relative_length


def _rarity(of: int, found: int) -> np.float32:
    return np.float32(math.log(1 + (of - found + 0.5) / (found + 0.5)) if found else 0.0)


def _best(scores: Floats) -> np.float32:
    """The highest, to divide by."""
    best = float(scores.max()) if len(scores) else 0.0
    return np.float32(best if best > 0 else 1.0)


def _nothing(count: int) -> Floats:
    return np.zeros(count, np.float32)


def _where(places: Ints, value: Callable[[Ints], Column]) -> Floats:
    """The values at these places; 0 where there is no place."""
    found = _nothing(len(places))
    there = places >= 0
    found[there] = value(places[there])
    return found


# --- who a query is about -----------------------------------------------------------------------------------

SPEAKERS = ("user", "assistant")


def authors_meant(query: str, names: Sequence[str], is_conversation: bool) -> set[int]:
    """Which authors the query is about, as indexes of names; empty where it is about nobody or everybody."""
    found: set[int] = set()
    spoken = re.findall(r"\w+", query)
    for number, name in enumerate(names):
        if name in SPEAKERS:
            found |= {number} if _speaks(name, query) else set()
            continue
        for at, word in enumerate(spoken):
            parts = [part.lower() for part in (name, *name.split())]
            nickname = (
                at > 0 and word[0].isupper() and len(word) >= 3 and name.lower().startswith(word.lower())
            )
            if word.lower() in parts or nickname:
                found.add(number)
    if not found and is_conversation:
        found = {number for number, name in enumerate(names) if name == _pronoun(query)}
    return set() if len(found) == len(names) else found


def _speaks(role: str, query: str) -> bool:
    """`user` is an ordinary word: it is somebody only where it says or is asked something."""
    said = "said|says|asked|asks|told|wants?|wanted|prefers?|requested|mentioned|decided|likes?|dislikes?"
    pattern = rf"\b(?:did|does|by|from|has) (?:the )?{role}\b|\b{role} (?:{said})\b"
    return re.search(pattern, query, re.IGNORECASE) is not None


def without_names(query: str, names: Sequence[str]) -> str:
    """The query without the authors it names: a name has a meaning of its own that misleads."""
    parts = {part.lower() for name in names if name not in SPEAKERS for part in name.split()}
    kept = [word for word in re.findall(r"\w+", query) if word.lower() not in parts]
    return " ".join(kept) or query


def _pronoun(query: str) -> str | None:
    if re.search(
        r"\byou (?:told|recommended|suggested|said)\b|\bremind me\b|\bour conversation\b", query, re.I
    ):
        return "assistant"
    return "user" if re.search(r"\b(?:I|my|we)\b", query, re.I) else None
