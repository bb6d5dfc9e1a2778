"""One way to keep a memory: new ones are stored, known ones reinforced."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

from backstory.model import Memory
from backstory.paths import place
from backstory.store import life, memories, projects
from backstory.store.file.connection import transaction
from backstory.store.keep import keep_memory, wording

NOW = 1_800_000_000_000
TEXT = "Before a release, run the tests."


@pytest.fixture
def project_id(db: sqlite3.Connection, project: str) -> str:
    with transaction(db):
        return projects.ensure(db, place(project), NOW)


def keep(
    db: sqlite3.Connection, project_id: str, text: str = TEXT, title: str | None = None, **more: Any
) -> tuple[Memory, bool]:
    values: dict[str, Any] = {
        "session_id": None,
        "kind": "decision",
        "sector": "procedural",
        "importance": 0.5,
        "source": "user",
        "now": NOW,
    } | more
    with transaction(db):
        memory_id, is_new = keep_memory(db, wording(text, title), project_id=project_id, **values)
        memory = memories.get(db, memory_id, NOW)
    assert memory is not None
    return memory, is_new


def test_a_new_memory_is_stored_with_all_that_is_known_of_it(db: sqlite3.Connection, project_id: str) -> None:
    memory, is_new = keep(
        db,
        project_id,
        title="Releases",
        files=["Makefile"],
        hashes=["a" * 40],
        tags=["ci"],
        concepts=["release"],
        happened_at=NOW - 5,
    )
    assert is_new
    assert (memory.project_id, memory.tier, memory.kind) == (project_id, "project", "decision")
    assert (memory.title, memory.content, memory.source) == ("Releases", TEXT, "user")
    assert (memory.files, memory.hashes) == (("Makefile",), ("a" * 40,))
    assert (memory.tags, memory.concepts, memory.created_at) == (("ci",), ("release",), NOW - 5)


@pytest.mark.parametrize("again", [TEXT, "run tests before release"])
def test_what_is_known_in_nearly_these_words_is_reinforced(
    db: sqlite3.Connection, project_id: str, again: str
) -> None:
    first, _ = keep(db, project_id)
    second, is_new = keep(db, project_id, again)
    assert (second.id, second.content, is_new) == (first.id, TEXT, False)
    assert second.salience > first.salience
    assert memories.count(db) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"text": "After a release, run the tests."},
        {"title": "Before a deploy"},
        {"kind": "discovery"},
        {"is_global": True},
    ],
    ids=str,
)
def test_another_text_title_kind_or_owner_is_another_memory(
    db: sqlite3.Connection, project_id: str, other: dict[str, Any]
) -> None:
    first, _ = keep(db, project_id)
    second, is_new = keep(db, project_id, **other)
    assert is_new
    assert second.id != first.id


@pytest.mark.parametrize("title", [None, "Releases"])
def test_a_title_counts_as_a_part_of_what_is_said(
    db: sqlite3.Connection, project_id: str, title: str | None
) -> None:
    first, _ = keep(db, project_id, title=title)
    assert keep(db, project_id, title=title)[0].id == first.id


def test_what_was_forgotten_is_no_longer_known(db: sqlite3.Connection, project_id: str) -> None:
    first, _ = keep(db, project_id)
    with transaction(db):
        life.forget(db, first.id, None, NOW)
    assert keep(db, project_id)[1]


def test_a_global_memory_belongs_to_no_project_and_is_about_no_file(
    db: sqlite3.Connection, project_id: str
) -> None:
    memory, _ = keep(db, project_id, is_global=True, files=["Makefile"], hashes=[None])
    assert (memory.project_id, memory.tier) == (projects.GLOBAL, "global")
    assert (memory.files, memory.hashes) == ((), ())
