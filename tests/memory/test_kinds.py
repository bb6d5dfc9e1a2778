"""What follows from a memory's kind."""

from __future__ import annotations

import sqlite3

import pytest

from backstory.memory.kinds import IMPORTANCE, KINDS, OBSERVATIONS, SECTORS, SOURCES, TIERS
from backstory.memory.sector import classify, classify_observation


def test_whatever_is_kept_by_its_words_has_an_importance() -> None:
    assert set(IMPORTANCE) == {*OBSERVATIONS, "summary", "note"} == set(KINDS) - {"tool", "turn"}
    assert all(0 < weight < 1 for weight in IMPORTANCE.values())


def test_the_store_takes_these_kinds_tiers_sectors_and_sources(db: sqlite3.Connection) -> None:
    (made,) = db.execute("SELECT sql FROM sqlite_master WHERE name = 'memories'").fetchone()
    for known in (KINDS, TIERS, SECTORS, SOURCES):
        assert all(f"'{name}'" in made for name in known), known


@pytest.mark.parametrize(
    ("kind", "text", "sector"),
    [
        ("preference", "Run the tests before a release", "emotional"),
        ("bugfix", "The upload failed yesterday", "procedural"),
        ("decision", "The upload failed yesterday", "semantic"),
        ("discovery", "To release, run make dist", "procedural"),
        ("bugfix", "In hindsight the cache was a mistake", "reflective"),
    ],
)
def test_an_observation_is_no_episode(kind: str, text: str, sector: str) -> None:
    assert classify_observation(kind, text) == sector


def test_the_example_would_be_an_episode_otherwise() -> None:
    assert classify("The upload failed yesterday") == "episodic"
