"""Finding by words, on a real store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp.server.mcpserver.exceptions import ToolError

from recollect.errors import BadInput
from recollect.intake.note import keep
from recollect.model import SECTORS
from recollect.recall.search import match_expression, search
from recollect.store import connection
from recollect.store.connection import connect
from recollect.surfaces import mcp_memory

NOW = 1_800_000_000_000


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    store = connect(str(tmp_path / "recollect.db"))
    yield store
    store.close()


@pytest.fixture
def project(tmp_path: Path) -> str:
    (tmp_path / "api").mkdir()
    return str(tmp_path / "api")


def found(db: sqlite3.Connection, project: str, query: str, sector: str | None = None) -> list[str]:
    return [hit.memory.content for hit in search(db, project, query, now=NOW, sector=sector)]


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


def test_scores_fall_from_one(db: sqlite3.Connection, project: str) -> None:
    keep(db, project, "redis cache warm-up", now=NOW)
    keep(db, project, "redis", now=NOW)
    scores = [hit.score for hit in search(db, project, "redis cache", now=NOW)]
    assert scores[0] == 1.0
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
        assert found(db, project, kept.memory.id) == []
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
        search(db, project, query, now=NOW, sector=sector, limit=limit)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=200)
@given(st.text(min_size=1, max_size=60))
def test_no_query_breaks_the_search(db: sqlite3.Connection, project: str, query: str) -> None:
    keep(db, project, 'a "quoted" NEAR(x) AND col:umn* text', now=NOW)
    try:
        search(db, project, query, now=NOW)
    except BadInput:
        pass


def test_the_expression_quotes_words_and_drops_stopwords() -> None:
    assert match_expression("How do I fix the OR NEAR bug?") == '"fix" OR "near" OR "bug"'


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


# How the model's tools behave while somebody else writes


@pytest.fixture
def busy(data: Path, project: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A store with a note in it, whose write lock another process does not give back."""
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", project)
    monkeypatch.setattr(connection, "BUSY_SECONDS", 0.1)
    mcp_memory.memory_add("the walrus is awake")
    other = connect(str(data / "recollect.db"))
    other.execute("BEGIN IMMEDIATE")
    yield
    other.close()


@pytest.mark.usefixtures("busy")
def test_a_busy_store_still_answers_and_only_forgets_to_note_it(data: Path) -> None:
    assert "the walrus is awake" in mcp_memory.memory_search("walrus")
    assert "a recall was not noted" in (data / "logs" / "recollect.log").read_text()


@pytest.mark.usefixtures("busy")
def test_a_busy_store_tells_the_model_to_try_again() -> None:
    with pytest.raises(ToolError, match=r"was busy for .*; try again in a moment"):
        mcp_memory.memory_add("the walrus sleeps")


def test_the_tools_name_the_sectors_that_there_are() -> None:
    assert get_args(mcp_memory.Sector) == SECTORS
