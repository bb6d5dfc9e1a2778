"""Which lines fit a query: of memories (asked by recall/answer.py), documents, nodes (docmem/search.py).

The keyword index says which lines each word is in, the vectors how near each line is in meaning, and
recall/rank.py makes one score of both. Where there is no embedder, words alone decide, and the answer says
so.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from backstory import log, paths
from backstory.errors import BadInput, EmbedderAway, Unavailable
from backstory.memory import terms
from backstory.memory.kinds import KINDS, SECTORS, TIERS
from backstory.memory.salience import DAY_MS
from backstory.memory.turn import ANSWER, CHOICE
from backstory.model import (
    MODES,
    DocumentAnswer,
    DocumentHit,
    Filters,
    Part,
    Project,
)
from backstory.recall import rank
from backstory.recall.corpus import DELETED, SUPERSEDED, Corpus, Source
from backstory.recall.index import Index
from backstory.recall.nearness import Column, Floats, Ints
from backstory.store import documents, memories, projects
from backstory.store import lines as stored_lines
from backstory.store.file.connection import Connection, may_be_unavailable

NO_FILTERS = Filters()
DEFAULT_LIMIT, MAX_LIMIT = 10, 100
MAX_QUERY = 2_000
POOL = 5  # times the limit: so many of the best are looked at for salience, recency and sector
COMMON = 20_000  # lines; a pair of words that are in more says little and takes long
MOST_LINES = 2_000  # that have a word which is looked for unasked
UNFINISHED = 20  # words that the beginning of one may stand for
SHORTEST_STEM = 4
MOST_PIECES = 12  # of a turn that are shown
WORTH_BEST, WORTH_FIRST, WORTH_CHOICE = 1.0, 0.5, 0.5  # of a piece beside its words
SURE = 8  # deviations above the nearness of unrelated texts: see Index.floor
PATIENCE = 0.05  # seconds a search may spend on making vectors that are missing


class Scored(NamedTuple):
    row: int  # of a piece, its turn's
    score: float
    parts: list[Part]
    line: int = -1  # the one that decided


class Covered(NamedTuple):
    covers: float  # so much of the query
    pieces: tuple[tuple[int, float], ...]  # (row, worth) of a turn's that fit, the best first
    bm25: float = 0.0  # of the whole turn


class TurnFit(NamedTuple):
    row: int
    bm25: float  # by the logarithm of how many turns there are, so that it means the same in every store
    covers: float  # so much of the query, by weight


class Ranking(NamedTuple):
    best: list[Scored]
    notice: str | None
    waiting: int
    covered: Callable[[int], Covered]  # by the line that decided; with the index's lock in hand


@dataclass(frozen=True, slots=True)
class _Asked:
    """The query as the embedder sees it."""

    vector: Floats | None = None  # None: words alone decide
    floor: float = 0.0  # cosines below it may be chance
    sure: float = 2.0  # a line that is so near is about the same, whatever its words
    weight: float = 0.0  # the share of meaning in the score
    notice: str | None = None
    waiting: int = 0  # lines without a vector


def search_documents(
    index: Index,
    db: Connection,
    cwd: str,
    query: str,
    *,
    mode: str = "hybrid",
    limit: int = 5,
    patience: float = PATIENCE,
) -> DocumentAnswer:
    """The chunks of this project's documents that fit the query best."""
    query = checked(query, mode, limit)
    project = projects.at(db, paths.place(cwd))
    best, notice, waiting, _ = ranked(index, db, documents, project, query, mode, limit, patience)
    known = documents.at(db, [one.row for one in best])
    hits = tuple(
        DocumentHit(known[one.row], one.score, tuple(one.parts), _gone(known[one.row].document.source_path))
        for one in best
        if one.row in known
    )
    return DocumentAnswer(hits, notice, waiting)


def _gone(path: str | None) -> str | None:
    return f"{path} is gone" if path and not os.path.lexists(path) else None


def living(corpus: Corpus) -> Column:
    there: Column = (corpus.column("state") & DELETED) == 0
    return there


def ranked(
    index: Index,
    db: Connection,
    source: Source,
    project: Project | None,
    query: str,
    mode: str,
    count: int,
    patience: float,
    wanted: Callable[[Corpus], Column] = living,
    *,
    everywhere: bool = False,
) -> Ranking:
    """The best of the wanted lines of a project, and what there is to say about how they were found."""
    with index.lock:
        corpus = index.corpus(db, source, project, everywhere=everywhere)
    asked = _ask(index, db, corpus, query, mode, patience)
    with index.lock:
        best, covered = _top(db, corpus, query, asked, wanted(corpus), count)
    return Ranking(best, asked.notice, asked.waiting, covered)


def fitting_turns(index: Index, db: Connection, project: Project, query: str, count: int) -> list[TurnFit]:
    """The turns of a project that fit a query best by its words, the best first. The words that many lines
    have are left out: looking them up takes longest, and they say least."""
    with index.lock:
        corpus = index.corpus(db, memories, project)
        found = [corpus.postings(db, term, MOST_LINES + 1) for term in terms.query_terms(query)]
        if not corpus.turns.size:
            return []
        fits = rank.turns_by_words(corpus, [lines for lines in found if len(lines) <= MOST_LINES])
        state, size = corpus.column("state"), math.log(1 + max(corpus.turns.size, 2))
        best: list[TurnFit] = []
        for turn in np.argsort(-fits.bm25, kind="stable")[: 2 * count].tolist():
            lines = corpus.pieces(turn)
            if fits.bm25[turn] > 0 and len(lines) and not (state[lines] & SUPERSEDED).any():
                figures = float(fits.bm25[turn]) / size, float(fits.covers[turn])
                best.append(TurnFit(int(corpus.turns["row"][turn]), *figures))
    return best[:count]


def checked(query: str, mode: str, limit: int, filters: Filters = NO_FILTERS) -> str:
    """The query, where it can be answered. Half of a surrogate pair is no text, and nothing that is stored
    has one."""
    query = query.encode("utf-8", "replace").decode()
    if not terms.words(query):
        raise BadInput("the query has no words; ask for something like 'database migration'")
    if len(query) > MAX_QUERY:
        raise BadInput(f"the query is longer than {MAX_QUERY:,} characters; a sentence is enough")
    for name, value, possible in (
        ("mode", mode, MODES),
        ("sector", filters.sector, SECTORS),
        ("kind", filters.kind, KINDS),
        ("tier", filters.tier, TIERS),
    ):
        if value is not None and value not in possible:
            raise BadInput(f"there is no {name} {value[:40]!r}; it is one of {', '.join(possible)}")
    if not 1 <= limit <= MAX_LIMIT:
        raise BadInput(f"limit is {limit}; it must be between 1 and {MAX_LIMIT}")
    return query


def _ask(index: Index, db: Connection, corpus: Corpus, query: str, mode: str, patience: float) -> _Asked:
    """Ask the embedder about the query, after making vectors that are missing. It may be slow or away, so
    nothing is locked meanwhile; where there is none, words alone must do."""
    if mode == "keyword" or not corpus.size:
        return _Asked()
    try:
        waiting = _fill(index, db, corpus, patience)
        vector = index.embedder.embed([rank.without_names(query, corpus.names)])[0]
        floor, weight = (index.floor(), index.embedder.weight) if mode == "hybrid" else (0.0, 1.0)
        sure = index.floor(SURE)
    except EmbedderAway as away:
        return _Asked(notice=f"Searched by words only: {away}.")
    notice = f"{waiting:,} of {corpus.size:,} have no vector yet and were searched by words only."
    return _Asked(vector, floor, sure, weight, notice if waiting else None, waiting)


def _top(
    db: Connection, corpus: Corpus, query: str, asked: _Asked, wanted: Column, count: int
) -> tuple[list[Scored], Callable[[int], Covered]]:
    """The best of the wanted lines. Each shares a word with the query or is nearer than chance explains."""
    if asked.vector is not None and len(asked.vector) == corpus.vectors.dimension:
        weight, meaning = asked.weight, rank.by_meaning(corpus.vectors.cosines(asked.vector, corpus.size))
        near = (meaning.cosines >= asked.floor) & corpus.vectors.there[: corpus.size]
    else:
        weight, meaning, near = 0.0, rank.no_meaning(corpus), np.zeros(corpus.size, np.bool_)
    terms, pairs = _postings(db, corpus, query)
    words = rank.by_words(corpus, terms, pairs) if weight < 1 else rank.no_words(corpus)
    lines = rank.promising(corpus, words, meaning, wanted & ((words.lines > 0) | near))
    authors = rank.authors_meant(query, corpus.names, corpus.is_conversation())
    scores = rank.fuse(corpus, lines, words, meaning, weight, authors)
    total, rows = scores.total, corpus.memories(lines)
    _, first = np.unique(rows[order := np.lexsort((-rows, -total))], return_index=True)
    top = order[np.sort(first)[:count]]  # of the lines of a turn the best one decides
    best = [Scored(int(rows[at]), float(total[at]), scores.parts(at), int(lines[at])) for at in top.tolist()]

    telling = rank.weights(corpus, terms)
    marked = [_marked(corpus.size, found) for found in terms]

    def covered(line: int) -> Covered:
        found = _covered(corpus, line, marked, telling)
        if (turn := int(corpus.column("turn")[line])) >= 0:
            found = found._replace(bm25=float(words.turns[turn]) * words.best_turn)
        return found._replace(covers=1.0) if meaning.cosines[line] >= asked.sure else found

    return best, covered


def _marked(size: int, lines: Ints) -> Column:
    marked = np.zeros(size, np.bool_)
    marked[lines] = True
    return marked


def _covered(corpus: Corpus, line: int, words: Sequence[Column], telling: Sequence[float]) -> Covered:
    """How much of the query a hit covers and, of a turn, what its pieces are worth. `words` says of each word
    of the query which lines it is in."""
    turn = int(corpus.column("turn")[line])
    lines = np.array([line], np.int32) if turn < 0 else corpus.pieces(turn)
    worth, covered = np.zeros(len(lines), np.float32), 0.0
    for marked, weight in zip(words, telling, strict=True):
        has = marked[lines]
        worth[has] += np.float32(weight)
        covered += weight * bool(has.any())
    covers = covered / total if (total := sum(telling)) else 1.0
    if turn < 0:
        return Covered(covers, ())
    part = corpus.column("part")[lines]
    worth *= rank.PRIOR[part]
    worth += WORTH_BEST * (lines == line) + WORTH_CHOICE * (part == CHOICE)
    if (answer := np.flatnonzero(part == ANSWER)).size:
        worth[answer[0]] += WORTH_FIRST
    order = np.argsort(-worth, kind="stable")
    chosen = order[:MOST_PIECES].tolist()
    return Covered(covers, tuple((int(corpus.rows[lines[at]]), float(worth[at])) for at in chosen))


def lifted(labels: Mapping[int, memories.Label], pool: list[Scored], now: int) -> list[Scored]:
    """What memories are worth re-orders those that fit about equally well. One that was erased a moment ago
    has no label."""
    lifted = []
    for one in pool:
        if label := labels.get(one.row):
            more = rank.lift(one.score, label.salience, label.sector, (now - label.created_at) / DAY_MS)
            score = one.score + sum(part.value for part in more)
            lifted.append(one._replace(score=score, parts=one.parts + more))
    return sorted(lifted, key=lambda one: (-one.score, -one.row))


def _postings(db: Connection, corpus: Corpus, query: str) -> tuple[list[Ints], list[Ints]]:
    """The lines that each word of the query is in, and each pair of words side by side."""
    found = {term: corpus.postings(db, term) for term in terms.query_terms(query)}
    last = terms.words(query)[-1].lower()
    if query[-1:].isalnum() and not len(found.get(f'"{last}"', "?")):  # nobody wrote it: an unfinished word
        found |= _unfinished(db, corpus, last)
    pairs = []
    for pair in terms.query_pairs(query):
        known = [len(found[f'"{word}"']) for word in pair if f'"{word}"' in found]
        # With a stopword in it, a pair is long to look up and says less.
        if known and 0 < min(known) <= (COMMON if len(known) == 2 else COMMON // 10):
            pairs.append(corpus.postings(db, f'"{pair[0]} {pair[1]}"'))
    return list(found.values()), pairs


def _unfinished(db: Connection, corpus: Corpus, beginning: str) -> dict[str, Ints]:
    """The words of this corpus that begin like this, and the lines they are in. The keyword index knows stems
    only, so one that the beginning has outgrown counts as well: `migrati` has outgrown `migrat`."""
    table, found = corpus.source.TABLE, dict[str, Ints]()
    stems = stored_lines.terms_from(db, table, beginning)
    for length in range(len(beginning) - 1, SHORTEST_STEM - 1, -1):
        stems += stored_lines.terms_from(db, table, beginning[:length], whole=True)
    for stem in stems:
        if len(found) < UNFINISHED and len(lines := corpus.postings(db, f'"{stem}"*')):
            found[stem] = lines
    return found


def _fill(index: Index, db: Connection, corpus: Corpus, patience: float) -> int:
    try:
        with may_be_unavailable():
            return index.fill(db, corpus, patience)
    except Unavailable as error:  # another process writes: the next search makes them
        log.write("warning", f"vectors could not be stored: {error}")
        return len(corpus.without_vector())


def passing(db: Connection, corpus: Corpus, filters: Filters) -> Column:
    passing = np.zeros(corpus.size, np.bool_)
    for number, (first, last) in enumerate(corpus.ranges):
        passing[corpus.among(number, memories.matching(db, first, last, filters))] = True
    return passing
