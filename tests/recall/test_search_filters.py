"""Which memories a search looks at: filters, other projects, superseded ones."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from backstory.errors import BadInput
from backstory.intake.note import keep
from backstory.model import Filters
from backstory.recall.answer import answer as search
from backstory.recall.embedders.static import Static
from backstory.recall.index import Index
from backstory.store import life
from tests.helpers.search import DAY, NOW, add, found, texts

# --- filters ------------------------------------------------------------------------------------------------


def filled(db: sqlite3.Connection, project: str) -> None:
    add(
        db,
        project,
        "walrus trace",
        "s1",
        kind="tool",
        sector="episodic",
        tier="session",
        files=["/x/src/a.py"],
    )
    add(db, project, "walrus line", "s2", sector="episodic", tier="session", author="user")
    add(db, project, "walrus note", tags=["Sea", "north"], now=NOW - 10 * DAY, files=["src/a.py"])
    add(db, project, "walrus decision", kind="decision", tags=["sea"], files=["src/ba.py"])


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, ["decision", "line", "note"]),
        ({"sector": "episodic"}, ["line", "trace"]),
        ({"kind": "tool"}, ["trace"]),
        ({"tier": "session"}, ["line"]),
        ({"tier": "global"}, []),
        ({"tags": ("sea",)}, ["decision", "note"]),
        ({"tags": ("SEA", "North")}, ["note"]),
        ({"tags": ("se",)}, []),
        ({"files": ("src/a.py",)}, ["note"]),
        ({"files": ("a.py",)}, ["note"]),
        ({"files": ("/x/src/a.py",)}, ["note"]),
        ({"files": ("src/a.py",), "kind": "tool"}, ["trace"]),
        ({"files": ("a.py",), "sector": "episodic"}, ["trace"]),
        ({"files": ("/x/src/a.py",), "tier": "session"}, ["trace"]),  # nothing else passes
        ({"files": ("/x/src/aa.py",)}, []),
        ({"files": ("src/ba.py", "nothing.py")}, ["decision"]),
        ({"files": ("%",)}, []),
        ({"session_id": "s1"}, ["trace"]),
        ({"session_id": "nobody"}, []),
        ({"since": NOW - DAY}, ["decision", "line"]),
        ({"until": NOW - DAY}, ["note"]),
        ({"since": NOW - 10 * DAY, "until": NOW - 10 * DAY}, ["note"]),
        ({"since": NOW, "until": NOW - 1}, []),
        ({"kind": "note", "tags": ("sea",), "files": ("a.py",), "until": NOW}, ["note"]),
        ({"kind": "note", "session_id": "s1"}, []),
    ],
)
def test_each_filter_leaves_out_the_rest(
    db: sqlite3.Connection, project: str, filters: dict[str, Any], expected: list[str]
) -> None:
    filled(db, project)
    assert (
        sorted(text.removeprefix("walrus ") for text in found(db, project, "walrus", **filters)) == expected
    )


@pytest.mark.parametrize(("name", "value"), [("kind", "idea"), ("tier", "galaxy"), ("sector", "x")])
def test_a_filter_that_names_nothing_is_refused(
    db: sqlite3.Connection, project: str, name: str, value: str
) -> None:
    with pytest.raises(BadInput, match=f"there is no {name} '{value}'; it is one of"):
        search(Index(None), db, project, "x", now=NOW, filters=Filters(**{name: value}))  # type: ignore[arg-type]


def test_a_filter_is_no_way_to_another_project(db: sqlite3.Connection, project: str, tmp_path: Path) -> None:
    filled(db, project)
    (tmp_path / "web").mkdir()
    assert found(db, str(tmp_path / "web"), "walrus", session_id="s1") == []


# --- other projects -----------------------------------------------------------------------------------------


def test_global_memories_are_found_in_every_project_and_others_in_none(
    db: sqlite3.Connection, project: str, tmp_path: Path, static: Static
) -> None:
    (tmp_path / "web").mkdir()
    web = str(tmp_path / "web")
    mine = keep(db, project, "the walrus of this project", now=NOW)
    everywhere = keep(db, project, "I prefer short walrus names", now=NOW, is_global=True)
    assert everywhere.memory.tier == "global"
    for index in (Index(None), Index(static)):
        answer = search(index, db, web, "walrus", now=NOW)
        assert texts(answer) == ["I prefer short walrus names"]
        assert search(index, db, web, mine.memory.id, now=NOW).hits == ()
        assert len(search(index, db, web, everywhere.memory.id, now=NOW).hits) == 1
        assert len(search(index, db, project, "walrus", now=NOW).hits) == 2
    assert found(db, web, "walrus", tier="global") == ["I prefer short walrus names"]
    keep(db, web, "the walrus of web", now=NOW)
    assert sorted(found(db, web, "walrus")) == ["I prefer short walrus names", "the walrus of web"]


def test_the_same_global_note_from_two_projects_is_one(
    db: sqlite3.Connection, project: str, tmp_path: Path
) -> None:
    (tmp_path / "web").mkdir()
    first = keep(db, project, "I prefer tabs over spaces", now=NOW, is_global=True)
    again = keep(db, str(tmp_path / "web"), "I prefer tabs over spaces", now=NOW, is_global=True)
    here = keep(db, project, "I prefer tabs over spaces", now=NOW)
    assert (again.is_new, again.memory.id) == (False, first.memory.id)
    assert here.is_new


# --- superseded ---------------------------------------------------------------------------------------------


def test_superseded_memories_are_in_the_answer_when_asked_for(db: sqlite3.Connection, project: str) -> None:
    old = keep(db, project, "the walrus port is 8080", now=NOW).memory.id
    new = keep(db, project, "the walrus port is 8081", now=NOW).memory.id
    life.supersede(db, old, new, None, NOW, said_by="user")
    index = Index(None)
    assert [hit.memory.id for hit in search(index, db, project, "walrus", now=NOW).hits] == [new]
    both = search(index, db, project, "walrus", now=NOW, include_superseded=True).hits
    said = {hit.memory.id: (hit.superseded_by, hit.related) for hit in both}
    assert said == {old: (new, 1), new: (None, 1)}
    (by_id,) = search(index, db, project, old, now=NOW).hits
    assert by_id.superseded_by == new
    life.forget(db, old, None, NOW)
    both = search(index, db, project, "walrus", now=NOW, include_superseded=True).hits
    assert [hit.memory.id for hit in both] == [new]
