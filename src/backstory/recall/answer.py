"""What a search answers: the memories that fit best, each once, with all that is shown of it. One call for
each surface, which then only formats."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from backstory import ids, paths
from backstory.blob import stale
from backstory.memory import likeness
from backstory.memory.turn import PASTED, TITLE, TRACE, Turn, commit_line
from backstory.model import Answer, Excerpt, Filters, Hit, Memory, Part, Project
from backstory.recall import excerpt, rank
from backstory.recall.corpus import DELETED, SUPERSEDED, Corpus
from backstory.recall.index import Index
from backstory.recall.nearness import Column
from backstory.recall.search import (
    DEFAULT_LIMIT,
    NO_FILTERS,
    PATIENCE,
    POOL,
    Covered,
    Scored,
    checked,
    lifted,
    passing,
    ranked,
)
from backstory.store import life, memories, projects, sessions, turns
from backstory.store.file.connection import Connection

ROOM = (2_000, 700)  # characters of a turn: of the best hit, of the others


def answer(
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
    everywhere: bool = False,
    room: tuple[int, int] = ROOM,
) -> Answer:
    """What fits the query best of this folder's project and of the user's global memories, or `everywhere`.
    The id of a memory finds that one, superseded or not, with its relations. The turn that asks is no answer
    to itself."""
    query = checked(query, mode, limit, filters)
    project = projects.at(db, paths.place(cwd))
    is_id = query.strip().startswith(ids.MEMORY_PREFIX)
    named = memories.get(db, query.strip(), now) if is_id else None
    here = (project.id if project else "", projects.GLOBAL)
    if named and not named.deleted_at and (everywhere or named.project_id in here):
        best = [(Scored(named.row, 1.0, [Part("id", 1.0)]), named)]
        hits = _hits(db, best, [Covered(1.0, ())], cwd, project, room)
        return Answer(hits, by_id=True, relations=tuple(life.relations(db, named.id)))
    if ids.is_memory_id(query.strip()):
        return Answer(())  # of another project, or erased: its letters are no words

    own = turns.latest(db, asking) if asking else None
    traces = filters.kind == "tool" or filters.sector == "episodic"

    def wanted(corpus: Corpus, *, traces: bool = traces) -> Column:
        unwanted = DELETED if include_superseded else DELETED | SUPERSEDED
        column: Column = (corpus.column("state") & unwanted) == 0
        if not traces:
            column &= corpus.column("part") != TRACE
        if filters != NO_FILTERS:
            column &= passing(db, corpus, filters)
        if own is not None:  # what is being asked just now is no answer to it
            column &= corpus.without_turn(own.row or 0)
        return column

    look = partial(ranked, index, db, memories, project, query, mode, limit * POOL, patience)
    ranking = look(wanted, everywhere=everywhere)
    if not ranking.best and not traces:
        ranking = look(partial(wanted, traces=True), everywhere=everywhere)
    labels = memories.labels(db, [scored.row for scored in ranking.best], now)
    best = _each_once(db, labels, lifted(labels, ranking.best, now), limit, now)
    with index.lock:
        covered = [ranking.covered(scored.line) for scored, _ in best]
    fits = mode == "semantic" or not best or any(fit.covers >= rank.FITS for fit in covered)
    hits = _hits(db, best, covered, cwd, project, room)
    return Answer(hits, ranking.notice, ranking.waiting, fits=fits)


def _each_once(
    db: Connection, labels: Mapping[int, memories.Label], pool: list[Scored], limit: int, now: int
) -> list[tuple[Scored, Memory]]:
    """The best, without those that say what another one says already: a fact or a summary that was made of a
    turn which is a hit as well, and a note that says nearly the same as a better one."""
    made_of = life.built_on(db, [label.id for label in labels.values() if label.source != "model"])
    of_turns = {label.id: label.session_id for label in labels.values() if label.kind == "turn"}
    sessions_shown = set(of_turns.values())
    new = []
    for scored in pool:
        label = labels[scored.row]
        is_summary = label.kind == "summary" and label.session_id in sessions_shown
        if made_of.get(label.id) not in of_turns and not is_summary:
            new.append(scored)
    best: list[tuple[Scored, Memory]] = []
    for start in range(0, len(new), limit):
        known = memories.at(db, [scored.row for scored in new[start : start + limit]], now)
        for scored in new[start : start + limit]:
            memory = known.get(scored.row)  # None: erased a moment ago
            if memory and not _says_the_same(memory, [other for _, other in best]):
                best.append((scored, memory))
            if len(best) == limit:
                return best
    return best


def _says_the_same(memory: Memory, others: list[Memory]) -> bool:
    """Only what was written down can be written down twice; and most differ at a glance."""
    if memory.kind in ("turn", "tool"):
        return False
    words = set(memory.content.split())
    for other in others:
        if other.kind not in ("turn", "tool"):
            theirs = set(other.content.split())
            alike = len(words & theirs) * 2 >= min(len(words), len(theirs))
            if alike and likeness.is_near(_whole(memory), _whole(other)):
                return True
    return False


def _whole(memory: Memory) -> str:
    return f"{memory.title or ''}\n{memory.content}"


# --- what is shown of a hit ---------------------------------------------------------------------------------


def _hits(
    db: Connection,
    best: list[tuple[Scored, Memory]],
    covered: list[Covered],
    cwd: str,
    project: Project | None,
    room: tuple[int, int],
) -> tuple[Hit, ...]:
    chosen = [memory for _, memory in best]
    known = sessions.by_ids(db, sorted({memory.session_id for memory in chosen if memory.session_id}))
    successors = life.successors(db, [memory.id for memory in chosen if memory.valid_until])
    related = life.related(db, [memory.id for memory in chosen])
    texts = turns.texts(db, [row for fit in covered for row, _ in fit.pieces])
    records = turns.by_ids(db, [memory.id for memory in chosen if memory.kind == "turn"])
    root = paths.checkout(cwd)
    here = (project.id if project else "", projects.GLOBAL)
    hits: list[Hit] = []
    for (scored, memory), fit in zip(best, covered, strict=True):
        other = None if memory.project_id in here else projects.by_id(db, memory.project_id)
        turn = records.get(memory.id)
        pieces = [excerpt.Piece(row, *texts[row]) for row, _ in fit.pieces if row in texts]
        hits.append(
            Hit(
                memory=memory,
                score=scored.score,
                parts=tuple(scored.parts),
                session=known.get(memory.session_id or ""),
                superseded_by=successors.get(memory.id),
                related=related.get(memory.id, 0),
                # Files of another project are looked at where that lies.
                stale=stale(memory, other.root if other else root),
                asked=turn.asked[:TITLE] if turn and fit.pieces else "",
                excerpt=_excerpt(memory, turn, pieces, room[bool(hits)]) if turn else None,
                project=other,
            )
        )
    return tuple(hits)


def _excerpt(memory: Memory, turn: Turn, pieces: list[excerpt.Piece], room: int) -> Excerpt:
    if not pieces:  # found by its id: there is nothing to fit
        asked, *rest = excerpt.in_short(memory.content, room).split("\n")
        return Excerpt(asked, tuple(rest))
    is_pasted = bool(turn.prompts) and all(source == PASTED for _, source in turn.prompts)
    commits = [commit_line(commit) for commit in turn.commits]
    return excerpt.of_turn(turn.asked[:TITLE], pieces, commits, room, is_pasted=is_pasted)
