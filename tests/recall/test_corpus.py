"""The arrays that search works on, held against a model that is written down as plainly as possible."""

from __future__ import annotations

import math
import random
import shutil
import sqlite3
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from backstory.errors import EmbedderAway
from backstory.intake.note import keep
from backstory.memory import terms
from backstory.model import Project
from backstory.paths import Place
from backstory.recall import nearness, rank
from backstory.recall.answer import answer as search
from backstory.recall.corpus import Corpus
from backstory.recall.embedders.protocol import quantise, unit
from backstory.recall.index import Index
from backstory.recall.nearness import Vectors
from backstory.store import documents, life, memories, projects, removal, sessions, vectors
from backstory.store.file.connection import connect, transaction

NOW = 1_800_000_000_000
PLACE = Place("/x/api", "api", "/x/api", None, None)
DIMENSION = 3
THREADS = (None, "s1", "s2", "s3")


class Words:
    """An embedder without a model: texts are near when they share words."""

    weight = 0.5

    def __init__(self, name: str = "words:1", dimension: int = 70) -> None:
        self.id = name
        self.dimension = dimension
        self.asked: list[str] = []
        self.meanwhile: Callable[[], object] = lambda: None  # what others do while this one thinks

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += texts
        self.meanwhile()
        rows = np.zeros((len(texts), self.dimension), np.float32)
        for at, text in enumerate(texts):
            for word in terms.words(text.lower()):
                seed = zlib.crc32(f"{self.id} {word}".encode())
                rows[at] += np.random.default_rng(seed).standard_normal(self.dimension).astype(np.float32)
        return unit(rows)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store with a project, the global one and three sessions."""
    path = tmp_path_factory.mktemp("template") / "backstory.db"
    db = connect(str(path))
    with transaction(db):
        project_id = projects.ensure(db, PLACE, NOW)
        projects.ensure_global(db, NOW)
        for session in THREADS:
            if session:
                sessions.start(db, session, project_id, "/x/api", PLACE, NOW)
    db.execute("PRAGMA journal_mode = DELETE")
    db.close()
    return path


@pytest.fixture
def store(template: Path, tmp_path: Path) -> Iterator[Callable[[], sqlite3.Connection]]:
    """Connections to one store, which this test has for itself."""
    path = tmp_path / "backstory.db"
    shutil.copy(template, path)
    opened: list[sqlite3.Connection] = []

    def more() -> sqlite3.Connection:
        opened.append(connect(str(path)))
        return opened[-1]

    yield more
    for db in opened:
        db.close()


def here(db: sqlite3.Connection) -> Project:
    project = projects.at(db, PLACE)
    assert project is not None
    return project


def add(
    db: sqlite3.Connection,
    text: str,
    session: str | None = None,
    *,
    kind: str = "note",
    author: str | None = None,
    owner: str | None = None,
) -> str:
    with transaction(db):
        return memories.add(
            db,
            project_id=owner or here(db).id,
            session_id=session,
            kind=kind,
            sector="semantic",
            tier="project",
            content=text,
            author=author,
            importance=0.5,
            now=NOW,
        )


# --- against a naive model ----------------------------------------------------------------------------------


@dataclass
class Line:
    """What is true of one memory."""

    id: str
    row: int
    thread: str | None
    text: str
    author: str | None
    state: int = 0
    vector: bytes | None = None


@dataclass
class Told:
    """What a corpus says of one line, in terms of rows."""

    thread: frozenset[int]
    windows: frozenset[frozenset[int]]
    before: int
    after: int
    state: int
    words: float
    asks: float
    author: str | None
    thread_words: float
    window_words: tuple[float, ...]
    cosine: float | None


QUERY = np.array([0.6, 0.0, 0.8], np.float32)


def naive(lines: list[Line]) -> dict[int, Told]:
    """What should be said of these lines, which were seen in this order."""
    threads: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        if line.thread:
            threads[line.thread].append(line)
    told = {}
    for line in lines:
        whole = threads[line.thread] if line.thread else []
        at = next((place for place, one in enumerate(whole) if one is line), 0)
        begins = [begin for begin in (at // 3 * 3, at // 3 * 3 - 3) if begin >= 0] if whole else []
        members = [whole[begin : begin + 6] for begin in begins]
        cosine = None
        if line.vector:
            vector = np.frombuffer(line.vector, np.int8).astype(np.float64)
            cosine = float(vector @ QUERY / max(float(np.linalg.norm(vector)), 1e-9))
        told[line.row] = Told(
            thread=frozenset(one.row for one in whole),
            windows=frozenset(frozenset(one.row for one in window) for window in members),
            before=whole[at - 1].row if at > 0 else -1,
            after=whole[at + 1].row if at + 1 < len(whole) else -1,
            state=line.state,
            words=terms.count_words(line.text),
            asks=float(line.text.endswith("?")),
            author=line.author,
            thread_words=sum(terms.count_words(one.text) for one in whole),
            window_words=tuple(
                sorted(float(sum(terms.count_words(one.text) for one in window)) for window in members)
            ),
            cosine=cosine,
        )
    return told


def told_by(corpus: Corpus) -> dict[int, Told]:
    """The same, as the arrays have it."""
    names = "row thread author words question state window window_before before after".split()
    column = {name: corpus.column(name).tolist() for name in names}
    rows = column["row"]
    thread, window = defaultdict(set), defaultdict(set)
    for line, row in enumerate(rows):
        thread[column["thread"][line]].add(row)
        for name in ("window", "window_before"):
            window[column[name][line]].add(row)
    there = corpus.vectors.there[: corpus.size].tolist()
    cosines = corpus.vectors.cosines(QUERY, corpus.size).tolist() if any(there) else []
    told = {}
    for line, row in enumerate(rows):
        of = column["thread"][line]
        inside = [at for name in ("window", "window_before") if (at := column[name][line]) >= 0]
        told[row] = Told(
            thread=frozenset(thread[of] if of >= 0 else ()),
            windows=frozenset(frozenset(window[at]) for at in inside),
            before=rows[column["before"][line]] if column["before"][line] >= 0 else -1,
            after=rows[column["after"][line]] if column["after"][line] >= 0 else -1,
            state=column["state"][line],
            words=column["words"][line],
            asks=column["question"][line],
            author=corpus.names[column["author"][line]] if column["author"][line] >= 0 else None,
            thread_words=float(corpus.threads["words"][of]) if of >= 0 else 0,
            window_words=tuple(sorted(float(corpus.windows["words"][at]) for at in inside)),
            cosine=cosines[line] if there[line] else None,
        )
    return told


def assert_told(corpus: Corpus, lines: list[Line]) -> None:
    expected, said = naive(lines), told_by(corpus)
    assert list(said) == list(expected)
    for row, one in expected.items():
        other = said[row]
        if one.cosine is not None:
            assert other.cosine == pytest.approx(one.cosine, abs=1e-4)
            one.cosine = other.cosine
        assert other == one
    assert corpus.vectors.count == sum(line.vector is not None for line in lines)
    living = [line.row for line in lines if not line.state & 1 and line.vector is None]
    assert corpus.without_vector().tolist() == living


@dataclass
class World:
    """Two writers, and a corpus that is kept up to date by a third connection."""

    writers: list[sqlite3.Connection]
    reader: sqlite3.Connection
    model: int
    owner: Project
    alive: list[Line] = field(default_factory=list)
    seen: list[Line] = field(default_factory=list)  # by the corpus, in its order
    at: int = 0

    def __post_init__(self) -> None:
        self.corpus = Corpus(memories, [projects.rows(self.owner.number)])

    def do(self, step: tuple[str, int, int, int]) -> None:
        what, writer, first, second = step
        db = self.writers[writer % 2]
        if what == "refresh":
            self.refresh()
        elif what == "add":
            self.add(db, first, second)
        elif self.alive:
            self.change(
                db, what, self.alive[first % len(self.alive)], self.alive[second % len(self.alive)], second
            )

    def add(self, db: sqlite3.Connection, first: int, second: int) -> None:
        text = "word " * (1 + first % 5) + ("why?" if second % 3 == 0 else "so")
        author = (None, "user", "Anna")[second % 3]
        session = THREADS[first % len(THREADS)]
        kind = "tool" if second % 7 == 6 else "note"
        memory_id = add(db, text, session, kind=kind, author=author)
        row = db.execute("SELECT row FROM memories WHERE id = ?", (memory_id,)).fetchone()["row"]
        self.alive.append(Line(memory_id, row, None if kind == "tool" else session, text, author))

    def change(self, db: sqlite3.Connection, what: str, line: Line, other: Line, number: int) -> None:
        if what == "erase":
            removal.erase_memory(db, line.id, NOW)
            line.state, line.vector = 3, None
            self.alive.remove(line)
            return
        with transaction(db):
            if what == "forget":
                life.forget(db, line.id, None, NOW)
                line.state |= 1
            elif what == "restore" and line.state:
                life.restore(db, line.id, None, NOW)
                line.state = line.state & 2 if line.state & 1 else 0  # what was done last is undone
            elif what == "supersede" and line is not other:
                db.execute("UPDATE memories SET valid_until = ? WHERE id = ?", (NOW, line.id))
                line.state |= 2
            elif what == "vector":
                line.vector = bytes([1 + number % 100, number % 7, 255 - number % 90])
                vectors.put(db, self.model, "memories", [(line.row, line.vector)])
            elif what == "rewrite":
                db.execute("UPDATE memories SET content = content || ' ' WHERE id = ?", (line.id,))
                line.vector = None

    def refresh(self) -> None:
        self.corpus.refresh(self.reader, self.model, DIMENSION)
        held = {line.row for line in self.seen}
        self.seen += [line for line in self.alive if line.row not in held]
        assert_told(self.corpus, self.seen)
        fresh = Corpus(memories, self.corpus.ranges)
        fresh.refresh(self.reader, self.model, DIMENSION)
        assert_told(fresh, self.alive)


STEP = st.tuples(
    st.sampled_from(
        "add add add add add forget restore erase supersede vector vector rewrite refresh".split()
    ),
    st.integers(0, 1),
    st.integers(0, 40),
    st.integers(0, 40),
)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(STEP, max_size=40))
def test_the_arrays_say_what_a_naive_model_says_and_what_a_new_corpus_says(
    template: Path, tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int, int]]
) -> None:
    path = tmp_path_factory.mktemp("world") / "backstory.db"
    shutil.copy(template, path)
    opened = [connect(str(path)) for _ in range(3)]
    try:
        world = World(opened[:2], opened[2], vectors.ensure_model(opened[0], "m", DIMENSION), here(opened[0]))
        for step in steps:
            world.do(step)
        world.refresh()
    finally:
        for db in opened:
            db.close()


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7, 9, 10, 13])
@pytest.mark.parametrize("step", [1, 2, 3, 5, 100])
def test_windows_are_six_lines_every_three_however_they_arrive(
    store: Callable[[], sqlite3.Connection], count: int, step: int
) -> None:
    db = store()
    corpus = Corpus(memories, [projects.rows(here(db).number)])
    for number in range(count):
        add(db, f"line {number}", "s1")
        if number % step == 0:
            corpus.refresh(db, None, 0)
    corpus.refresh(db, None, 0)
    inside: dict[int, list[int]] = defaultdict(list)
    for line in range(count):
        for name in ("window", "window_before"):
            if corpus.column(name)[line] >= 0:
                inside[int(corpus.column(name)[line])].append(line)
    expected = [list(range(begin, min(count, begin + 6))) for begin in range(0, count, 3)]
    assert sorted(inside.values()) == expected
    assert corpus.windows.size == len(expected)


def test_lines_of_the_project_and_global_ones_are_one_corpus(store: Callable[[], sqlite3.Connection]) -> None:
    db = store()
    index = Index(None)
    first = add(db, "the walrus here")
    assert index.corpus(db, memories, here(db)).size == 1
    everywhere = add(db, "the walrus everywhere", owner=projects.GLOBAL)
    later = add(db, "the walrus later")
    corpus = index.corpus(db, memories, here(db))
    ids = {row["row"]: row["id"] for row in db.execute("SELECT row, id FROM memories")}
    assert {ids[row] for row in corpus.rows.tolist()} == {first, everywhere, later}
    assert len(corpus.postings(db, '"walrus"')) == 3


def test_chunks_of_documents_and_memories_do_not_mix(store: Callable[[], sqlite3.Connection]) -> None:
    db = store()
    index = Index(Words())
    add(db, "the walrus sleeps")
    with transaction(db):
        documents.put(
            db,
            project_id=here(db).id,
            title="Guide",
            source_path=None,
            source_url=None,
            kind="md",
            checksum="x",
            chunks=documents.prepared([("Guide", "feed the walrus"), ("Guide", "feed the heron")]),
            now=NOW,
        )
    add(db, "the heron stands")
    for source, size in ((memories, 2), (documents, 2)):
        corpus = index.corpus(db, source, here(db))
        assert index.fill(db, corpus) == 0
        assert (corpus.size, corpus.vectors.count) == (size, size)
        again = Index(Words()).corpus(db, source, here(db))
        assert (again.size, again.vectors.count) == (size, size)


def test_an_empty_corpus_answers_everything_with_nothing(store: Callable[[], sqlite3.Connection]) -> None:
    db = store()
    for corpus in (Corpus(memories, []), Corpus(memories, [projects.rows(7)])):
        corpus.refresh(db, None, 0)
        assert corpus.size == 0
        assert len(corpus.postings(db, '"a"')) == len(corpus.without_vector()) == 0
        scores = rank.by_words(corpus, [corpus.postings(db, '"a"')], [])
        assert len(scores.lines) == 0


# --- BM25 ---------------------------------------------------------------------------------------------------


Text = list[str]  # as its words


def has(text: Text, phrase: Text) -> bool:
    return any(text[at : at + len(phrase)] == phrase for at in range(len(text)))


def bm25(spaces: list[list[Text]], query: list[Text]) -> list[float]:
    """BM25 as a textbook has it, divided by its best. A space is some lines; how often a phrase is in it is
    the number of lines it is in."""
    lengths = [sum(map(len, space)) for space in spaces]
    mean = max(1.0, sum(lengths) / len(spaces))
    scores = [0.0] * len(spaces)
    for phrase in query:
        counts = [sum(has(line, phrase) for line in space) for space in spaces]
        found = sum(count > 0 for count in counts)
        rarity = math.log(1 + (len(spaces) - found + 0.5) / (found + 0.5)) if found else 0.0
        for at, tf in enumerate(counts):
            scores[at] += rarity * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * lengths[at] / mean))
    best = max(scores)
    return [score / best if best > 0 else 0.0 for score in scores]


@pytest.mark.parametrize("seed", range(4))
def test_the_words_of_lines_windows_and_threads_score_as_in_the_textbook(
    store: Callable[[], sqlite3.Connection], seed: int
) -> None:
    db = store()
    chance = random.Random(seed)  # noqa: S311
    vocabulary = "walrus heron otter seal whale crab gull".split()
    texts = [[chance.choice(vocabulary) for _ in range(chance.randint(1, 9))] for _ in range(40)]
    owners = [chance.choice(THREADS) for _ in texts]
    for text, owner in zip(texts, owners, strict=True):
        add(db, " ".join(text), owner)
    corpus = Corpus(memories, [projects.rows(here(db).number)])
    corpus.refresh(db, None, 0)
    asked = [["walrus"], ["seal"], ["walrus", "seal"]]
    postings = [corpus.postings(db, f'"{" ".join(phrase)}"') for phrase in asked]
    scores = rank.by_words(corpus, postings[:2], postings[2:])

    assert scores.lines.tolist() == pytest.approx(bm25([[text] for text in texts], asked), abs=1e-5)
    threads = [[at for at, one in enumerate(owners) if one == owner] for owner in THREADS if owner]
    windows = [thread[at : at + 6] for thread in threads for at in range(0, len(thread), 3)]
    for spaces, values, columns in (
        (threads, scores.threads, ("thread",)),
        (windows, scores.windows, ("window", "window_before")),
    ):
        expected = bm25([[texts[line] for line in space] for space in spaces], asked[:2])
        for line in range(len(texts)):
            best = max((expected[at] for at, space in enumerate(spaces) if line in space), default=0.0)
            found = max(float(values[corpus.column(name)[line]]) for name in columns)
            assert found == pytest.approx(best, abs=1e-5)


# --- nearness -----------------------------------------------------------------------------------------------


def clustered(count: int, dimension: int, seed: int = 1) -> NDArray[np.float32]:
    """Vectors in clusters that all lean the same way, as those of static models do."""
    chance = np.random.default_rng(seed)
    lean = chance.standard_normal(dimension)
    centres = chance.standard_normal((60, dimension))
    found = (
        lean + 1.2 * centres[chance.integers(0, 60, count)] + 0.9 * chance.standard_normal((count, dimension))
    )
    unit: NDArray[np.float32] = (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)
    return unit


def overlap(
    held: Vectors, values: NDArray[np.float32], queries: NDArray[np.float32], among: NDArray[np.bool_]
) -> float:
    """Which share of the ten nearest is found, against comparing all of them."""
    exact = quantise(values).astype(np.float32)
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    shares = []
    for query in queries:
        found = np.where(among, held.cosines(query, len(values)), -2)
        true = np.where(among, exact @ query, -2)
        shares.append(len(set(np.argsort(-found)[:10].tolist()) & set(np.argsort(-true)[:10].tolist())) / 10)
    return float(np.mean(shares))


def held(values: NDArray[np.float32], lines: NDArray[np.int32]) -> Vectors:
    made = Vectors(values.shape[1])
    made.room(len(values))
    made.put(lines, quantise(values)[lines].tobytes())
    return made


@pytest.mark.parametrize("dimension", [256, 384, 100, 70])
def test_the_prefilter_finds_nearly_all_that_comparing_everything_finds(
    monkeypatch: pytest.MonkeyPatch, dimension: int
) -> None:
    monkeypatch.setattr(nearness, "EXACT_BELOW", 100)
    values = clustered(5_000, dimension)
    lines = np.arange(len(values), dtype=np.int32)
    everywhere = np.ones(len(values), np.bool_)
    assert overlap(held(values, lines), values, clustered(30, dimension, seed=1)[:30], everywhere) >= 0.95


def test_the_prefilter_is_not_misled_by_lines_without_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearness, "EXACT_BELOW", 100)
    values = clustered(5_000, 256)
    lines = np.arange(0, len(values), 2, dtype=np.int32)
    made = held(values, lines)
    among = made.there[: len(values)].copy()
    assert overlap(made, values, values[1:60:2], among) >= 0.95
    cosines = made.cosines(values[1], len(values))
    assert np.ptp(cosines[~among]) == 0  # they get the mean


def test_the_prefilter_is_as_good_when_the_vectors_come_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first search may see a handful of vectors, and the rest is made in the background."""
    monkeypatch.setattr(nearness, "EXACT_BELOW", 100)
    values = clustered(5_000, 256)
    made = held(values, np.arange(len(values) - 100, len(values), dtype=np.int32))
    made.cosines(values[0], len(values))
    for start in range(0, len(values), 1_000):
        some = np.arange(start, start + 1_000, dtype=np.int32)
        made.put(some, quantise(values)[some].tobytes())
        made.cosines(values[0], len(values))
    assert overlap(made, values, values[:30], np.ones(len(values), np.bool_)) >= 0.95


def test_below_the_limit_every_cosine_is_exact() -> None:
    values = clustered(300, 70)
    made = held(values, np.arange(300, dtype=np.int32))
    exact = quantise(values).astype(np.float32)
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    assert made.cosines(values[3], 300) == pytest.approx(exact @ values[3], abs=1e-5)


def test_a_vector_that_is_forgotten_or_replaced_counts_no_more() -> None:
    values = clustered(200, 70)
    made = held(values, np.arange(200, dtype=np.int32))
    made.forget(5)
    made.put(np.array([7], np.int32), quantise(values[8:9]).tobytes())
    cosines = made.cosines(values[8], 200)
    assert cosines[7] == cosines[8]
    assert not made.there[5]
    assert made.count == 199


def test_no_vectors_at_all_are_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in (1_000, 10):
        monkeypatch.setattr(nearness, "EXACT_BELOW", limit)
        empty = Vectors(70)
        empty.room(500)
        assert empty.cosines(clustered(1, 70)[0], 500).tolist() == [0.0] * 500


# --- making vectors -----------------------------------------------------------------------------------------


def test_another_model_makes_the_vectors_anew_and_tells_how_far_it_is(
    store: Callable[[], sqlite3.Connection],
) -> None:
    db = store()
    for number in range(300):
        add(db, f"walrus number {number}")
    first = Index(Words("words:1"))
    assert first.fill(db, first.corpus(db, memories, here(db))) == 0
    assert vectors.counts(db) == [("words:1", 300)]

    other = Index(Words("words:2", dimension=50))
    corpus = other.corpus(db, memories, here(db))
    assert corpus.vectors.count == 0  # the old ones cannot be compared
    assert len(corpus.postings(db, '"walrus"')) == 300  # but words still find
    told: list[tuple[int, int]] = []
    assert other.fill(db, corpus, progress=lambda done, of: told.append((done, of))) == 0
    assert told == [(256, 300), (300, 300)]
    assert vectors.counts(db) == [("words:1", 0), ("words:2", 300)]
    assert corpus.vectors.count == 300
    assert Index(Words("words:1")).corpus(db, memories, here(db)).vectors.count == 0


def test_the_same_model_in_another_dimension_is_another_model(
    store: Callable[[], sqlite3.Connection],
) -> None:
    db = store()
    add(db, "the walrus sleeps")
    for dimension in (70, 30, 70):
        index = Index(Words("same", dimension))
        corpus = index.corpus(db, memories, here(db))
        assert corpus.vectors.count == 0
        assert index.fill(db, corpus) == 0
        assert corpus.vectors.count == 1


def test_a_fill_that_runs_out_of_time_says_how_many_are_left(store: Callable[[], sqlite3.Connection]) -> None:
    db = store()
    for number in range(300):
        add(db, f"walrus number {number}")
    index = Index(Words())
    corpus = index.corpus(db, memories, here(db))
    assert index.fill(db, corpus, seconds=0) == 44
    assert corpus.vectors.there[44:300].all()  # the newest first
    assert not corpus.vectors.there[:44].any()
    assert index.fill(db, corpus, seconds=0) == 0


def test_forgotten_lines_need_no_vector_until_they_are_restored(
    store: Callable[[], sqlite3.Connection],
) -> None:
    db = store()
    memory_id = add(db, "the walrus sleeps")
    life.forget(db, memory_id, None, NOW)
    index = Index(Words())
    corpus = index.corpus(db, memories, here(db))
    assert len(corpus.without_vector()) == 0
    life.restore(db, memory_id, None, NOW)
    assert len(index.corpus(db, memories, here(db)).without_vector()) == 1


def test_the_vector_is_of_the_bare_text_without_date_and_author(
    store: Callable[[], sqlite3.Connection],
) -> None:
    db = store()
    embedder = Words()
    index = Index(embedder)
    add(db, "[2026-11-15] Anna: the walrus sleeps")
    index.fill(db, index.corpus(db, memories, here(db)))
    assert embedder.asked == ["the walrus sleeps"]


def test_the_global_project_has_each_of_its_lines_once(store: Callable[[], sqlite3.Connection]) -> None:
    db = store()
    add(db, "the walrus everywhere", owner=projects.GLOBAL)
    everywhere = next(project for project in projects.every(db) if project.id == projects.GLOBAL)
    index = Index(Words())
    corpus = index.corpus(db, memories, everywhere)
    assert corpus.size == 1
    assert index.fill(db, corpus) == 0
    assert len(corpus.without_vector()) == 0


@pytest.mark.parametrize("mode", ["hybrid", "semantic", "keyword"])
def test_a_line_that_is_added_in_the_middle_of_a_search_is_no_error(
    store: Callable[[], sqlite3.Connection], tmp_path: Path, mode: str
) -> None:
    db, other = store(), store()
    folder = str(tmp_path)
    keep(db, folder, "the walrus sleeps", now=NOW)
    embedder = Words()
    times = iter(range(1000))
    embedder.meanwhile = lambda: keep(other, folder, f"heron number {next(times)}", now=NOW)
    hits = search(Index(embedder), db, folder, "walrus", now=NOW, mode=mode).hits
    assert hits[0].memory.content == "the walrus sleeps"


def test_an_embedder_that_fails_in_the_middle_of_a_search_is_no_error(
    store: Callable[[], sqlite3.Connection], tmp_path: Path
) -> None:
    db, other = store(), store()
    folder = str(tmp_path)
    keep(db, folder, "the walrus sleeps", now=NOW)
    embedder = Words()

    def fail_at_the_query() -> None:
        if "walrus" in embedder.asked:
            raise EmbedderAway("the server is down")
        keep(other, folder, "the heron stands", now=NOW)

    embedder.meanwhile = fail_at_the_query
    answer = search(Index(embedder), db, folder, "walrus", now=NOW)
    assert [hit.memory.content for hit in answer.hits] == ["the walrus sleeps"]
    assert answer.notice == "Searched by words only: the server is down."


def test_an_embedder_that_comes_back_in_the_middle_of_a_search_is_no_error(
    store: Callable[[], sqlite3.Connection], tmp_path: Path
) -> None:
    class Returning(Words):
        away = 1

        @property
        def id(self) -> str:
            self.away -= 1
            if self.away >= 0:
                raise EmbedderAway("the server is down")
            return "words:1"

        @id.setter
        def id(self, value: str) -> None: ...

    db = store()
    folder = str(tmp_path)
    life.forget(db, keep(db, folder, "the walrus sleeps", now=NOW).memory.id, None, NOW)
    assert search(Index(Returning()), db, folder, "walrus", now=NOW).hits == ()


def test_a_store_that_is_locked_is_searched_without_the_vectors_that_are_missing(
    store: Callable[[], sqlite3.Connection], tmp_path: Path
) -> None:
    db, other = store(), store()
    folder = str(tmp_path)
    keep(db, folder, "the walrus sleeps", now=NOW)
    db.execute("PRAGMA busy_timeout = 50")
    other.execute("BEGIN IMMEDIATE")
    answer = search(Index(Words()), db, folder, "walrus", now=NOW)
    assert [hit.memory.content for hit in answer.hits] == ["the walrus sleeps"]
    assert answer.waiting == 1
    other.execute("ROLLBACK")
    assert search(Index(Words()), db, folder, "walrus", now=NOW).waiting == 0
