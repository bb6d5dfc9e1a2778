"""Finding memories and documents: surface -> here -> store.

The keyword index says which lines each word is in, the vectors how near each line is in meaning, and
recall/rank.py makes one score of both. Where there is no embedder, words alone decide, and the answer says
so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from sqlite3 import Connection, OperationalError

import numpy as np

from recollect import log, paths
from recollect.errors import BadInput, EmbedderAway
from recollect.model import (
    KINDS,
    MODES,
    SECTORS,
    TIERS,
    Answer,
    DocumentAnswer,
    DocumentHit,
    Hit,
    Memory,
    Part,
)
from recollect.recall import fresh, rank
from recollect.recall.corpus import DELETED, SUPERSEDED, Corpus
from recollect.recall.index import Index
from recollect.recall.nearness import Column, Ints
from recollect.store import documents, life, memories, projects, sessions, terms
from recollect.store.salience import DAY_MS

DEFAULT_LIMIT, MAX_LIMIT = 10, 100
MAX_QUERY = 2_000
POOL = 5  # times the limit: so many of the best are looked at for salience, recency and sector
COMMON = 20_000  # lines; a pair of words that are in more says little and takes long
PATIENCE = 0.05  # seconds a search may spend on making vectors that are missing


@dataclass(frozen=True, slots=True)
class Filters:
    sector: str | None = None
    kind: str | None = None
    tier: str | None = None
    session_id: str | None = None
    since: int | None = None
    until: int | None = None
    tags: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


NO_FILTERS = Filters()
Scored = tuple[int, float, list[Part]]  # row, score, parts


def search(
    index: Index,
    db: Connection,
    cwd: str,
    query: str,
    *,
    now: int,
    mode: str = "hybrid",
    limit: int = DEFAULT_LIMIT,
    filters: Filters = NO_FILTERS,
    include_superseded: bool = False,
    asking: str | None = None,
    patience: float = PATIENCE,
) -> Answer:
    """What fits the query best of this folder's project and of the user's global memories. The id of a memory
    finds that one, superseded or not. What the user said in the session that asks is no answer to it."""
    query = _storable(query)
    check(query, mode, limit, filters)
    project = projects.at(db, paths.place(cwd))
    named = memories.get(db, query.strip(), now)
    if (
        named
        and not named.deleted_at
        and named.project_id in (project.id if project else "", projects.GLOBAL)
    ):
        return Answer(_hits(db, [(named, 1.0, [Part("id", 1.0)])], paths.checkout(cwd)))
    with index.lock:
        corpus = index.corpus(db, memories, project)
        unwanted = DELETED if include_superseded else DELETED | SUPERSEDED

        def wanted() -> Column:
            fit: Column = (corpus.column("state") & unwanted) == 0
            if filters != NO_FILTERS:
                fit &= _passing(db, corpus, filters)
            if asking:
                fit &= ~_passing(db, corpus, Filters(kind="prompt", session_id=asking))
            return fit

        pool, notice, waiting = _best(index, db, corpus, query, mode, limit * POOL, patience, wanted)
    worth = memories.worth(db, [row for row, _, _ in pool], now)
    lifted: list[Scored] = []
    for row, score, parts in pool:
        if row in worth:  # else it was erased a moment ago
            salience, sector, created_at = worth[row]
            more = rank.lift(score, salience, sector, (now - created_at) / DAY_MS)
            lifted.append((row, score + sum(part.value for part in more), parts + more))
    lifted.sort(key=lambda one: (-one[1], -one[0]))
    known = memories.at(db, [row for row, _, _ in lifted[:limit]], now)
    best = [(known[row], score, parts) for row, score, parts in lifted[:limit] if row in known]
    return Answer(_hits(db, best, paths.checkout(cwd)), notice, waiting)


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
    query = _storable(query)
    check(query, mode, limit)
    project = projects.at(db, paths.place(cwd))
    with index.lock:
        corpus = index.corpus(db, documents, project)
        pool, notice, waiting = _best(
            index, db, corpus, query, mode, limit, patience, lambda: (corpus.column("state") & DELETED) == 0
        )
    known = documents.at(db, [row for row, _, _ in pool])
    hits = tuple(DocumentHit(known[row], score, tuple(parts)) for row, score, parts in pool if row in known)
    return DocumentAnswer(hits, notice, waiting)


def check(query: str, mode: str, limit: int, filters: Filters = NO_FILTERS) -> None:
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


def _best(
    index: Index,
    db: Connection,
    corpus: Corpus,
    query: str,
    mode: str,
    count: int,
    patience: float,
    wanted: Callable[[], Column],
) -> tuple[list[Scored], str | None, int]:
    """The best lines, what to say about the way they were found, and how many lines wait for a vector."""
    notice, waiting = None, 0
    words, meaning = rank.no_words(corpus), rank.no_meaning(corpus)
    floor, weight = 2.0, 0.0  # no cosine reaches 2
    if mode != "keyword" and corpus.size:
        try:
            waiting = _fill(index, db, corpus, patience)
            cosines = index.cosines(corpus, rank.without_names(query, corpus.names))
            floor, weight = (index.floor(), index.embedder.weight) if mode == "hybrid" else (0.0, 1.0)
            meaning = rank.by_meaning(cosines)
            if waiting:
                notice = f"{waiting:,} of {corpus.size:,} have no vector yet and were searched by words only."
        except EmbedderAway as away:
            notice = f"Searched by words only: {away}."
    if weight < 1:
        words = rank.by_words(corpus, *_postings(db, corpus, query))
    # A line must share a word with the query, or be nearer to it than chance explains.
    near = (meaning.cosines >= floor) & corpus.vectors.there[: corpus.size]
    lines = rank.promising(corpus, words, meaning, wanted() & ((words.lines > 0) | near))
    about = rank.authors_meant(query, corpus.names, corpus.is_conversation())
    scores = rank.fuse(corpus, lines, words, meaning, weight, about)
    total = scores.total
    top = np.arange(len(total)) if len(total) <= count else np.argpartition(-total, count)[:count]
    top = top[np.lexsort((-corpus.rows[lines[top]], -total[top]))]
    best = [(int(corpus.rows[lines[at]]), float(total[at]), scores.parts(int(at))) for at in top]
    return best, notice, waiting


def _postings(db: Connection, corpus: Corpus, query: str) -> tuple[list[Ints], list[Ints]]:
    """The lines that each word of the query is in, and each pair of words side by side."""
    found = {term: corpus.postings(db, term) for term in terms.query_terms(query)}
    last = terms.words(query)[-1].lower()
    if query[-1:].isalnum() and not len(found.get(f'"{last}"', "?")):  # nobody wrote it: an unfinished word
        longer = corpus.source.terms_from(db, last)
        found |= {term: corpus.postings(db, term) for term in longer}
    pairs = []
    for pair in terms.query_pairs(query):
        known = [len(found[f'"{word}"']) for word in pair if f'"{word}"' in found]
        if known and 0 < min(known) <= COMMON:
            pairs.append(corpus.postings(db, f'"{pair[0]} {pair[1]}"'))
    return list(found.values()), pairs


def _storable(query: str) -> str:
    """Half of a surrogate pair is no text, and nothing that is stored has one."""
    return query.encode("utf-8", "replace").decode()


def _fill(index: Index, db: Connection, corpus: Corpus, patience: float) -> int:
    try:
        return index.fill(db, corpus, patience)
    except OperationalError as error:  # somebody else writes: the next search makes them
        log.write("warning", f"vectors could not be stored: {error}")
        return len(corpus.without_vector())


def _passing(db: Connection, corpus: Corpus, filters: Filters) -> Column:
    passing = np.zeros(corpus.size, np.bool_)
    for number, (first, last) in enumerate(corpus.ranges):
        passing[corpus.among(number, memories.matching(db, first, last, **asdict(filters)))] = True
    return passing


def _hits(db: Connection, ranked: list[tuple[Memory, float, list[Part]]], root: str) -> tuple[Hit, ...]:
    known = sessions.by_ids(db, sorted({memory.session_id for memory, _, _ in ranked if memory.session_id}))
    successors = life.successors(db, [memory.id for memory, _, _ in ranked if memory.valid_until])
    related = life.related(db, [memory.id for memory, _, _ in ranked])
    return tuple(
        Hit(
            memory=memory,
            score=score,
            parts=tuple(parts),
            session=known.get(memory.session_id or ""),
            superseded_by=successors.get(memory.id),
            related=related.get(memory.id, 0),
            stale=fresh.stale(memory, root),
        )
        for memory, score, parts in ranked
    )
