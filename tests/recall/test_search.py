"""Finding by words and by meaning, on a real store."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.errors import BadInput, Busy, EmbedderAway
from backstory.intake.note import keep
from backstory.memory.kinds import SECTORS
from backstory.model import Answer, Filters, Hit
from backstory.recall import rank
from backstory.recall.answer import answer as search
from backstory.recall.embedders.protocol import Patient
from backstory.recall.embedders.static import Static
from backstory.recall.index import Index
from backstory.recall.search import search_documents
from backstory.store import life, memories
from backstory.store.file import connection
from backstory.store.file.connection import connect
from backstory.surfaces.mcp import memory as mcp_memory
from tests.helpers.search import DAY, NOW, add, found, texts


def part(hit: Hit, name: str) -> float:
    return next((part.value for part in hit.parts if part.name == name), 0.0)


def test_any_word_of_the_query_may_match_and_more_of_them_rank_higher(
    db: sqlite3.Connection, project: str
) -> None:
    keep(db, project, "postgres needs a restart", now=NOW)
    keep(db, project, "postgres locks time out after five seconds", now=NOW)
    keep(db, project, "the colour of the button", now=NOW)
    assert found(db, project, "why do postgres locks hang") == [
        "postgres locks time out after five seconds",
        "postgres needs a restart",
    ]


def test_scores_fall_and_the_best_is_not_always_one(db: sqlite3.Connection, project: str) -> None:
    keep(db, project, "redis cache warm-up", now=NOW)
    keep(db, project, "redis", now=NOW)
    scores = [hit.score for hit in search(Index(None), db, project, "redis cache", now=NOW).hits]
    assert len(scores) == 2
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)


def test_word_forms_and_accents_do_not_matter(db: sqlite3.Connection, project: str) -> None:
    keep(db, project, "The Café migrations failed", now=NOW)
    assert found(db, project, "migration cafe") == ["The Café migrations failed"]


def test_a_query_of_nothing_but_stopwords_still_searches(db: sqlite3.Connection, project: str) -> None:
    keep(db, project, "to be or not to be", now=NOW)
    assert found(db, project, "to be") == ["to be or not to be"]


def test_the_id_of_a_memory_finds_that_memory(db: sqlite3.Connection, project: str) -> None:
    kept = keep(db, project, "only by its id", now=NOW)
    assert found(db, project, kept.memory.id) == ["only by its id"]
    assert found(db, project, "mem_doesnotexist") == []


def test_a_query_that_only_looks_like_an_id_is_words(db: sqlite3.Connection, project: str) -> None:
    keep(db, project, "fixed the mem_leak in the parser", now=NOW)
    assert found(db, project, "mem_leak in the parser") == ["fixed the mem_leak in the parser"]


def test_deleted_and_superseded_memories_are_left_out(db: sqlite3.Connection, project: str) -> None:
    for column in ("deleted_at", "valid_until"):
        kept = keep(db, project, f"walrus {column}", now=NOW)
        db.execute(f"UPDATE memories SET {column} = ? WHERE id = ?", (NOW - 1, kept.memory.id))  # noqa: S608
        # Who asks for one by its id means that one, also when something newer replaced it.
        assert bool(found(db, project, kept.memory.id)) == (column == "valid_until")
    keep(db, project, "walrus lives", now=NOW)
    assert found(db, project, "walrus") == ["walrus lives"]


def test_a_sector_filters(db: sqlite3.Connection, project: str) -> None:
    keep(db, project, "heron one", now=NOW, sector="procedural")
    keep(db, project, "heron two", now=NOW, sector="emotional")
    assert found(db, project, "heron", "emotional") == ["heron two"]


def test_one_project_does_not_see_another(db: sqlite3.Connection, project: str, tmp_path: Path) -> None:
    keep(db, project, "otter in api", now=NOW)
    (tmp_path / "web").mkdir()
    assert found(db, str(tmp_path / "web"), "otter") == []


def test_a_folder_without_memories_finds_nothing_and_becomes_no_project(
    db: sqlite3.Connection, tmp_path: Path
) -> None:
    assert found(db, str(tmp_path), "anything") == []
    assert db.execute("SELECT count(*) FROM projects").fetchone()[0] == 0


@pytest.mark.parametrize(
    ("query", "sector", "limit", "says"),
    [
        ("", None, 10, "no words"),
        ("?!", None, 10, "no words"),
        ("x" * 3000, None, 10, "longer than"),
        ("x", "cosmic", 10, "one of episodic"),
        ("x", None, 0, "between 1 and 100"),
        ("x", None, 1_000_000, "between 1 and 100"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(
    db: sqlite3.Connection, project: str, query: str, sector: str | None, limit: int, says: str
) -> None:
    with pytest.raises(BadInput, match=says):
        search(Index(None), db, project, query, now=NOW, filters=Filters(sector=sector), limit=limit)


@pytest.mark.slow
@settings(max_examples=200)
@given(st.text(min_size=1, max_size=60))
def test_no_query_breaks_the_search(db: sqlite3.Connection, project: str, query: str) -> None:
    keep(db, project, 'a "quoted" NEAR(x) AND col:umn* text', now=NOW)
    try:
        search(Index(None), db, project, query, now=NOW)
    except BadInput:
        pass


def test_the_same_note_twice_is_one_memory_reinforced(db: sqlite3.Connection, project: str) -> None:
    first = keep(db, project, "use port 8080", now=NOW)
    again = keep(db, project, "  use port 8080\n", now=NOW)
    other = keep(db, project, "use port 8081", now=NOW)
    assert (first.is_new, again.is_new, other.is_new) == (True, False, True)
    assert first.memory.id == again.memory.id
    assert again.memory.salience > first.memory.salience


def test_a_note_is_redacted_before_it_is_stored(db: sqlite3.Connection, project: str) -> None:
    kept = keep(
        db, project, "db is at postgres://app:s3cr3tpw@db/main <private>and the pin</private>", now=NOW
    )
    assert "s3cr3tpw" not in kept.memory.content
    assert "the pin" not in kept.memory.content
    assert "postgres://app:" in kept.memory.content


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"content": "  \n"}, "empty"),
        ({"content": "\0"}, "nothing is left"),
        ({"content": "<private>all of it</private>"}, "nothing is left"),
        ({"content": "x" * 20_001}, "20,001 characters"),
        ({"sector": "cosmic"}, "one of"),
        ({"importance": 1.5}, "between 0 and 1"),
        ({"importance": float("nan")}, "between 0 and 1"),
        ({"tags": ["x"] * 21}, "at most 20 tags"),
        ({"tags": [""]}, "1 to 60"),
    ],
)
def test_a_bad_note_is_refused_with_what_to_do(
    db: sqlite3.Connection, project: str, changes: dict[str, object], says: str
) -> None:
    values: dict[str, object] = {"content": "fine"} | changes
    with pytest.raises(BadInput, match=says):
        keep(db, project, now=NOW, **values)  # type: ignore[arg-type]


# --- by meaning ---------------------------------------------------------------------------------------------


NOTES = (
    "we store the sessions in a relational database",
    "the login page shows an error when the password is wrong",
    "bread is baked on Sundays",
    "the deployment runs every night on the build server",
)


def test_hybrid_finds_what_means_the_same_in_other_words(
    db: sqlite3.Connection, project: str, static: Static
) -> None:
    for text in NOTES:
        keep(db, project, text, now=NOW)
    index = Index(static)
    assert found(db, project, "authentication fails") == []
    for mode in ("hybrid", "semantic"):
        answer = search(index, db, project, "sign in failed credentials", now=NOW, mode=mode)
        assert texts(answer)[0] == NOTES[1]
        assert answer.notice is None
        assert part(answer.hits[0], "meaning") > 0


def test_words_and_meaning_together_beat_either(db: sqlite3.Connection, project: str, static: Static) -> None:
    for text in (*NOTES, "server racks are heavy"):
        keep(db, project, text, now=NOW)
    (best, *_) = search(Index(static), db, project, "nightly release on the server", now=NOW).hits
    assert best.memory.content == NOTES[3]
    assert part(best, "words") > 0
    assert part(best, "meaning") > 0


@pytest.mark.parametrize("query", ["xyzzy plugh", "qwertzuiop", "zzzz yyyy"])
def test_a_nonsense_query_finds_nothing(
    db: sqlite3.Connection, project: str, static: Static, query: str
) -> None:
    for text in NOTES:
        keep(db, project, text, now=NOW)
    assert texts(search(Index(static), db, project, query, now=NOW)) == []


def test_the_keyword_mode_asks_no_embedder(db: sqlite3.Connection, project: str) -> None:
    keep(db, project, NOTES[0], now=NOW)
    answer = search(Index(Away()), db, project, "database", now=NOW, mode="keyword")
    assert (texts(answer), answer.notice) == ([NOTES[0]], None)


class Away:
    """An embedder that cannot be reached."""

    id, dimension, weight = "away", 8, 0.5

    def embed(self, texts: object) -> Any:
        raise EmbedderAway("the model is not there; install it")


@pytest.mark.parametrize("mode", ["hybrid", "semantic"])
def test_without_an_embedder_words_decide_and_the_answer_says_so(
    db: sqlite3.Connection, project: str, mode: str
) -> None:
    for text in NOTES:
        keep(db, project, text, now=NOW)
    off = search(Index(None), db, project, "database", now=NOW, mode=mode)
    assert texts(off) == [NOTES[0]]
    assert off.notice is not None
    assert off.notice.startswith("Searched by words only: the embedder is switched off")
    away = search(Index(Away()), db, project, "database", now=NOW, mode=mode)
    assert (texts(away), away.notice) == (
        [NOTES[0]],
        "Searched by words only: the model is not there; install it.",
    )


def test_a_memory_without_a_vector_is_found_by_its_words_and_gets_its_vector_later(
    db: sqlite3.Connection, project: str, static: Static, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backstory.recall.index.FILL_BATCH", 2)
    for text in NOTES:
        keep(db, project, text, now=NOW)
    index = Index(static)
    first = search(index, db, project, "relational sessions", now=NOW, patience=0)
    assert texts(first)[0] == NOTES[0]  # the oldest is the last to get one
    assert first.waiting == 2
    assert first.notice == "2 of 4 have no vector yet and were searched by words only."
    later = search(index, db, project, "relational sessions", now=NOW, patience=0)
    assert (later.waiting, later.notice) == (0, None)
    assert part(later.hits[0], "meaning") > 0


def test_an_empty_project_answers_with_nothing(db: sqlite3.Connection, project: str, static: Static) -> None:
    index = Index(static)
    for mode in ("hybrid", "semantic", "keyword"):
        assert search(index, db, project, "anything", now=NOW, mode=mode) == Answer(())
        assert search_documents(index, db, project, "anything", mode=mode).hits == ()
    life.forget(db, keep(db, project, "the only one", now=NOW).memory.id, None, NOW)
    for mode in ("hybrid", "semantic", "keyword"):
        assert search(index, db, project, "only one", now=NOW, mode=mode).hits == ()


def test_a_project_without_sessions_is_searched_without_a_warning(
    db: sqlite3.Connection, project: str
) -> None:
    """Nothing in it forms a thread, so there are no windows to take the mean of."""
    keep(db, project, "the walrus sleeps", now=NOW)
    assert found(db, project, "walrus") == ["the walrus sleeps"]


def test_a_mode_that_is_none_is_refused(db: sqlite3.Connection, project: str) -> None:
    with pytest.raises(BadInput, match="one of hybrid, semantic, keyword"):
        search(Index(None), db, project, "x", now=NOW, mode="psychic")


# --- what a score is made of --------------------------------------------------------------------------------


def test_the_explanation_adds_up_to_the_score(db: sqlite3.Connection, project: str, static: Static) -> None:
    conversation = [
        ("user", "where do we keep the database password?"),
        ("assistant", "the database password is in the vault"),
        ("user", "thanks, and the backup of the database?"),
        ("assistant", "it runs at night on the build server"),
    ]
    for author, text in conversation:
        add(db, project, text, "s1", author=author)
    add(db, project, "the database is postgres", tags=["database"])
    for query in ("database password", "what did I ask about the database?", "backup"):
        for mode in ("hybrid", "semantic", "keyword"):
            answer = search(Index(static), db, project, query, now=NOW, mode=mode)
            assert answer.hits
            for hit in answer.hits:
                # A part that would be shown as 0.00 is left out.
                assert sum(one.value for one in hit.parts) == pytest.approx(hit.score, abs=0.004)
                assert len({one.name for one in hit.parts}) == len(hit.parts)


def test_the_id_explains_itself(db: sqlite3.Connection, project: str) -> None:
    memory_id = keep(db, project, "the walrus sleeps", now=NOW).memory.id
    (hit,) = search(Index(None), db, project, f" {memory_id}\n", now=NOW).hits
    assert ([(one.name, one.value) for one in hit.parts], hit.score) == ([("id", 1.0)], 1.0)


@given(st.floats(0, 3), st.floats(0, 0.99), st.sampled_from(SECTORS), st.floats(-10, 5000))
def test_worth_lifts_a_score_by_15_percent_at_most_and_never_lowers_it(
    score: float, present: float, sector: str, age: float
) -> None:
    parts = rank.lift(score, present, sector, age)
    assert {one.name for one in parts} <= {"salience", "recency", "sector"}
    assert all(0 <= one.value <= 0.05 * score + 1e-12 for one in parts)
    assert sum(one.value for one in parts) <= 0.15 * score + 1e-12


def test_a_score_below_zero_is_not_lifted() -> None:
    assert sum(one.value for one in rank.lift(-0.1, 0.9, "reflective", 0)) == 0


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"importance": 0.9}, {"importance": 0.1}),
        ({"now": NOW}, {"now": NOW - 200 * DAY, "importance": 0.5}),
        ({"sector": "reflective"}, {"sector": "episodic"}),
    ],
    ids=["salience", "recency", "sector"],
)
def test_worth_orders_what_fits_equally_well(
    db: sqlite3.Connection, project: str, better: dict[str, Any], worse: dict[str, Any]
) -> None:
    first = add(db, project, "the walrus sleeps below the pier", **better)
    second = add(db, project, "the walrus sleeps beside the door", **worse)
    hits = search(Index(None), db, project, "walrus sleeps", now=NOW).hits
    assert [hit.memory.id for hit in hits] == [first, second]


def test_worth_does_not_put_what_fits_badly_above_what_fits_well(
    db: sqlite3.Connection, project: str
) -> None:
    good = add(db, project, "walrus tusk length", now=NOW - 900 * DAY, importance=0.01, sector="episodic")
    add(db, project, "walrus and otter", importance=1.0, sector="reflective")
    add(db, project, "the otter plays", importance=1.0, sector="reflective")
    hits = search(Index(None), db, project, "walrus tusk length", now=NOW).hits
    assert hits[0].memory.id == good


# --- who, and what stands around ----------------------------------------------------------------------------


NAMES = ["Caroline", "Melanie", "user", "assistant"]


@pytest.mark.parametrize(
    ("query", "is_conversation", "meant"),
    [
        ("What did Caroline paint?", False, ["Caroline"]),
        ("what did caroline paint?", False, ["Caroline"]),
        ("Did Melanie tell Caroline?", False, ["Caroline", "Melanie"]),
        ("What did Mel paint?", False, ["Melanie"]),
        ("What did mel paint?", False, []),
        ("Mel painted what?", False, []),  # the first word has its capital anyway
        ("What did Me paint?", False, []),
        ("What did I say?", True, ["user"]),
        ("what is my plan", True, ["user"]),
        ("what did we decide", True, ["user"]),
        ("what did we decide", False, []),
        ("what you recommended", True, ["assistant"]),
        ("remind me of my plan", True, ["assistant"]),
        ("our conversation about bread", True, ["assistant"]),
        ("our conversation about bread", False, []),
        ("What did Caroline tell me about my plan?", True, ["Caroline"]),
        ("Did Caroline and Melanie say what the user said and the assistant said?", True, []),  # everybody
        ("user table migration", True, []),  # an ordinary word
        ("what did the user ask for?", False, ["user"]),
        ("the user wants tabs", False, ["user"]),
        ("the plan", True, []),
    ],
)
def test_whom_a_query_is_about(query: str, is_conversation: bool, meant: list[str]) -> None:
    found = rank.authors_meant(query, NAMES, is_conversation)
    assert sorted(NAMES[number] for number in found) == meant


def test_where_there_is_one_author_nobody_is_meant() -> None:
    assert rank.authors_meant("what did Anna say", ["Anna"], True) == set()
    assert rank.authors_meant("what did Anna say", [], True) == set()


def test_a_name_of_several_words_is_meant_by_any_of_them() -> None:
    names = ["Anna Maria Berg", "Jo"]
    assert rank.authors_meant("what did berg say", names, False) == {0}
    assert rank.authors_meant("what did jo say", names, False) == {1}


def test_the_names_of_authors_are_taken_out_of_what_is_embedded() -> None:
    assert rank.without_names("What did Caroline paint?", NAMES) == "What did paint"
    assert rank.without_names("Caroline", NAMES) == "Caroline"  # or nothing would be left


def test_what_the_named_author_said_ranks_first(db: sqlite3.Connection, project: str, static: Static) -> None:
    for who in ("Anna", "Ben", "Carl"):
        add(db, project, f"[2026-11-15] {who}: my favourite colour is grey", "s1")
    for who in ("Anna", "Ben", "Carl"):
        (best, *_) = search(Index(static), db, project, f"favourite colour of {who}", now=NOW).hits
        assert best.memory.author == who
        assert part(best, "author") == pytest.approx(rank.AUTHOR / rank.BEST)


def test_pronouns_mean_nobody_where_hardly_anything_was_said_by_anybody(
    db: sqlite3.Connection, project: str
) -> None:
    add(db, project, "please feed the walrus", "s1", author="user")
    add(db, project, "[2026-11-15] Anna: the walrus was fed", "s1")
    query = "when did we feed the walrus"
    hits = search(Index(None), db, project, query, now=NOW).hits
    assert {hit.memory.author for hit in hits if part(hit, "author")} == {"user"}
    for number in range(5):
        add(db, project, f"Tool: Bash number {number}", "s1", kind="tool")
    hits = search(Index(None), db, project, query, now=NOW).hits
    assert not any(part(hit, "author") for hit in hits)


def test_the_answer_ranks_above_the_question(db: sqlite3.Connection, project: str, static: Static) -> None:
    add(db, project, "good morning everybody", "s1", author="user")
    add(db, project, "which port does the staging server listen on?", "s1", author="user")
    add(db, project, "it is 8443 since last week", "s1", author="assistant")
    add(db, project, "great, let us have lunch", "s1", author="user")
    for text in NOTES:
        keep(db, project, text, now=NOW)
    hits = search(Index(static), db, project, "staging server port?", now=NOW).hits
    order = [hit.memory.content for hit in hits]
    assert "it is 8443 since last week" not in order  # it shares no word: nothing to show for it
    add(db, project, "which port does the mail server listen on?", "s2", author="user")
    add(db, project, "the mail server has port 25", "s2", author="assistant")
    order = texts(search(Index(static), db, project, "port of the mail server", now=NOW))
    answer, question = "the mail server has port 25", "which port does the mail server listen on?"
    assert order.index(answer) < order.index(question)


def test_a_question_lends_to_what_follows_it_and_only_in_its_own_thread(
    db: sqlite3.Connection, project: str
) -> None:
    add(db, project, "which walrus port is it?", "s1", author="a")
    follows = add(db, project, "the port is 8080", "s1", author="b")
    elsewhere = add(db, project, "the port was 9090 once", "s2", author="b")
    hits = {hit.memory.id: hit for hit in search(Index(None), db, project, "walrus port", now=NOW).hits}
    assert part(hits[follows], "neighbours") > 0
    assert part(hits[elsewhere], "neighbours") == 0
    assert part(hits[follows], "window") > 0


# --- words --------------------------------------------------------------------------------------------------


def test_an_unfinished_last_word_finds_those_that_begin_so(db: sqlite3.Connection, project: str) -> None:
    keep(db, project, "the configuration lives in the vault", now=NOW)
    assert found(db, project, "where is the confi") == ["the configuration lives in the vault"]
    assert found(db, project, "confi") == ["the configuration lives in the vault"]
    assert found(db, project, "where is the zonfi") == []
    assert found(db, project, "confi yesterday") == []  # only the last word is still being typed
    assert found(db, project, "confi ") == []  # and this one is finished


def test_an_unfinished_word_after_a_name_is_the_last_word_too(db: sqlite3.Connection, project: str) -> None:
    keep(db, project, "the configuration lives in the vault", now=NOW)
    assert found(db, project, "parseArgs confi") == ["the configuration lives in the vault"]


def test_two_words_side_by_side_count_more_than_apart(db: sqlite3.Connection, project: str) -> None:
    keep(db, project, "limit every retry of a failing request", now=NOW)
    keep(db, project, "the retry limit of a failing request", now=NOW)
    assert found(db, project, "retry limit")[0] == "the retry limit of a failing request"


@pytest.mark.parametrize("kind", ["note", "tool"])
def test_what_stands_in_no_session_is_not_outranked_by_a_line_that_shares_one_word(
    db: sqlite3.Connection, project: str, static: Static, kind: str
) -> None:
    """It has no thread and no window, which is no fault of its own."""
    add(db, project, "please have a look at the table in the kitchen", "s1", author="user")
    add(db, project, "lunch is at noon", "s1", author="user")
    add(db, project, "the migration adds a column to the user table", kind=kind, sector="episodic")
    add(db, project, "some table of the last episode", "s1", sector="episodic")
    for index in (Index(None), Index(static)):
        for filters in (Filters(sector="episodic"), Filters(kind=kind)):
            best = texts(search(index, db, project, "table migration", now=NOW, filters=filters))[0]
            assert best == "the migration adds a column to the user table"


# How the model's tools behave while somebody else writes


@pytest.fixture
def busy(data: Path, project: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A store with a note in it, whose write lock another process does not give back."""
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", project)
    monkeypatch.setattr(connection, "BUSY_SECONDS", 0.1)
    mcp_memory.memory_add("the walrus is awake")
    other = connect(str(data / "backstory.db"))
    other.execute("BEGIN IMMEDIATE")
    yield
    other.close()
    for thread in threading.enumerate():  # vectors are made there, in this test's home
        if "_fill_all" in thread.name:
            thread.join(10)


@pytest.mark.usefixtures("busy")
def test_a_busy_store_still_answers_and_only_forgets_to_note_it(data: Path) -> None:
    assert "the walrus is awake" in mcp_memory.memory_search("walrus")
    assert "a reply was not noted" in (data / "logs" / "backstory.log").read_text()


@pytest.mark.usefixtures("busy")
def test_a_busy_store_tells_the_model_to_try_again() -> None:
    with pytest.raises(Busy, match=r"was busy for .*; try again in a moment"):
        mcp_memory.memory_add("the walrus sleeps")


def test_the_tools_name_the_sectors_that_there_are() -> None:
    assert get_args(mcp_memory.Sector) == SECTORS


# --- an unfinished word -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "beginning", ["datab", "databas", "migrati", "migratio", "authentica", "authenticatio", "kube"]
)
def test_the_beginning_of_a_last_word_finds_it(
    db: sqlite3.Connection, project: str, tmp_path: Path, beginning: str
) -> None:
    (tmp_path / "other").mkdir()
    for number in range(30):
        keep(
            db,
            str(tmp_path / "other"),
            f"kubea{'abcdefghij'[number % 10]}{'xyz'[number // 10]} note",
            now=NOW,
        )
    keep(db, project, "the database migrations need authentication in kubernetes", now=NOW)
    answer = search(Index(None), db, project, f"what about the {beginning}", now=NOW, mode="keyword")
    assert len(answer.hits) == 1


def test_a_keyword_search_does_not_wait_for_an_embedder_that_loads(
    db: sqlite3.Connection, project: str
) -> None:
    keep(db, project, "the walrus sleeps", now=NOW)
    loading = threading.Event()
    ready = threading.Event()

    def slow() -> Static:
        loading.set()
        ready.wait(10)
        return Static()

    index = Index(Patient(slow))
    path = db.execute("PRAGMA database_list").fetchone()["file"]

    def hybrid() -> None:
        with closing(connect(path)) as own:
            search(index, own, project, "walrus", now=NOW)

    thread = threading.Thread(target=hybrid)
    thread.start()
    try:
        assert loading.wait(5)
        started = time.monotonic()
        assert len(search(index, db, project, "walrus", now=NOW, mode="keyword").hits) == 1
        assert time.monotonic() - started < 2
    finally:
        ready.set()
        thread.join()


def test_near_duplicates_and_authors_are_looked_up_by_index(db: sqlite3.Connection) -> None:
    """SQLite once walked the whole project instead, with the write lock held."""
    plans = []
    db.set_trace_callback(lambda sql: plans.append(sql) if sql.startswith("SELECT") else None)
    memories.alike(db, "p", "note", (1, 2, 3, 4))
    memories.authors(db, 0, 1)
    db.set_trace_callback(None)
    told = " ".join(
        str(row["detail"]) for sql in plans for row in db.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()
    )
    for index in (
        "memories_band_1",
        "memories_band_2",
        "memories_band_3",
        "memories_band_4",
        "memories_said",
    ):
        assert index in told
