"""What a model was told: kept with its figures, gone with what it told, moved with its project."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from backstory import paths
from backstory.intake.note import keep
from backstory.store import forgetting, life, moving, projects, removal, tellings
from backstory.store.file.connection import transaction
from backstory.store.forgetting import Conditions
from tests.helpers.chaos import DAY, MINUTE, NOW, bash, drain
from tests.helpers.turn_payloads import happened

WORD = "Zanzibarium"


@pytest.fixture
def db(data: Path, home: Path) -> sqlite3.Connection:
    from backstory.store.file.connection import connect

    data.mkdir(parents=True, exist_ok=True)
    return connect(str(data / "backstory.db"))


def noted(db: sqlite3.Connection, project: str, *ids: str, session: str = "s1", **given: object) -> int:
    """The number of a telling."""
    here = projects.at(db, paths.place(project))
    assert here
    values = {"moment": "prompt", "text": f"told of {WORD}", "at": NOW, "about": "a prompt", **given}
    with transaction(db):
        tellings.note(
            db, session, here.id, str(values["moment"]), str(values["text"]), ids, tokens=7,
            at=int(str(values["at"])), about=str(values["about"]), reason={"bm25": 2.5},
        )  # fmt: skip
    return max(one.id for one in tellings.since(db, 0))


def note(db: sqlite3.Connection, project: str, text: str) -> str:
    return keep(db, project, text, now=NOW - DAY).memory.id


def test_a_telling_is_read_with_its_figures_and_memories(db: sqlite3.Connection, project: str) -> None:
    known = note(db, project, "the walrus sleeps")
    number = noted(db, project, known, "mem_never")
    (told,) = tellings.of_memory(db, known)
    assert (told.id, told.memory_ids, told.reason, told.tokens) == (number, (known,), {"bm25": 2.5}, 7)
    assert tellings.by_number(db, number) == told
    assert [one.id for one in tellings.since(db, 0, session_id="s1")] == [number]
    assert tellings.since(db, NOW + 1) == tellings.since(db, 0, session_id="s2") == []


def test_a_text_is_not_shown_while_a_memory_in_it_is_forgotten(db: sqlite3.Connection, project: str) -> None:
    known = note(db, project, "the walrus sleeps")
    number = noted(db, project, known)
    with transaction(db):
        life.forget(db, known, None, NOW)
    told = tellings.by_number(db, number)
    assert told and not told.text
    with transaction(db):
        life.restore(db, known, None, NOW + 1)
    told = tellings.by_number(db, number)
    assert told and WORD in told.text


@pytest.mark.parametrize("archived", [False, True])
def test_a_memory_that_is_erased_takes_the_texts_that_told_it_along(
    db: sqlite3.Connection, project: str, archived: bool
) -> None:
    known, other = note(db, project, f"the {WORD} sleeps"), note(db, project, "the heron stands")
    with_it, without = noted(db, project, known, other), noted(db, project, other, text="of herons")
    if archived:
        with transaction(db):
            life.archive(db, [known], NOW)
    removal.erase_memory(db, known, NOW)
    told = {one.id: (one.text, one.memory_ids, one.tokens) for one in tellings.since(db, 0)}
    assert told == {with_it: ("", (other,), 7), without: ("of herons", (other,), 7)}
    assert WORD not in "\n".join(db.iterdump())


def test_a_text_that_holds_what_is_looked_for_goes_though_no_memory_of_it_does(
    db: sqlite3.Connection, project: str
) -> None:
    note(db, project, "the heron stands")
    noted(db, project, about=f"where is {WORD}?", moment="search")
    wanted = Conditions(match=WORD.upper())
    seen = forgetting.preview(db, wanted, hard=True)
    assert (seen.tellings, seen.memories, seen.is_empty) == (1, 0, False)
    one, _ = removal.begin_erasing(db, wanted, NOW)
    removal.sweep(db, one)
    removal.done_erasing(db, one)
    assert WORD not in "\n".join(db.iterdump())


def test_briefs_lose_their_text_with_anything_of_their_project_that_was_there(
    db: sqlite3.Connection, project: str, tmp_path: Path
) -> None:
    """They have lines about sessions, which are of no memory."""
    known = note(db, project, "the walrus sleeps")
    (tmp_path / "other").mkdir()
    note(db, str(tmp_path / "other"), "the stork")
    brief = noted(db, project, moment="start")
    before = noted(db, project, moment="start", at=NOW - 2 * DAY)
    elsewhere = noted(db, str(tmp_path / "other"), moment="start")
    removal.erase_memory(db, known, NOW)
    assert {one.id: bool(one.text) for one in tellings.since(db, 0)} == {
        brief: False,
        before: True,
        elsewhere: True,
    }


def test_what_was_told_in_a_turn_goes_with_it_and_a_sessions_with_the_session(
    db: sqlite3.Connection, data: Path, project: str
) -> None:
    happened(data, project, "first", bash("ls", "a"), session="s1", at=NOW)
    happened(data, project, "second", bash("ls -l", "a"), session="s1", at=NOW + 10 * MINUTE)
    happened(data, project, "third", session="s2", at=NOW + 20 * MINUTE)
    drain(data)
    in_first = noted(db, project, at=NOW + 3_500)
    in_second = noted(db, project, at=NOW + 10 * MINUTE + 100)
    in_other = noted(db, project, at=NOW + 20 * MINUTE, session="s2")
    (first,) = db.execute("SELECT id FROM memories WHERE kind = 'turn' AND title = 'first'").fetchone()
    removal.erase_memory(db, first, NOW + DAY)
    assert [one.id for one in tellings.since(db, 0)] == [in_second, in_other], in_first
    one, _ = removal.begin_erasing(db, Conditions(session_id="s2"), NOW + DAY)
    removal.sweep(db, one)
    assert [one.id for one in tellings.since(db, 0)] == [in_second]


def test_what_a_forgotten_session_was_told_is_not_told_of(
    db: sqlite3.Connection, data: Path, project: str
) -> None:
    happened(data, project, "first", session="s1", at=NOW)
    drain(data)
    number = noted(db, project)
    forgetting.forget(db, Conditions(session_id="s1"), NOW + DAY)
    assert tellings.since(db, 0) == [] and tellings.by_number(db, number) is None
    forgetting.undo(db, NOW + DAY + 1)
    assert len(tellings.since(db, 0)) == 1


def test_a_projects_tellings_move_with_it_and_with_a_session_and_go_with_it(
    db: sqlite3.Connection, data: Path, project: str, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    happened(data, project, "first", session="s1", at=NOW)
    drain(data)
    known = note(db, str(tmp_path / "other"), "the stork")
    number = noted(db, project, known)
    here, other = (projects.at(db, paths.place(place)) for place in (project, str(tmp_path / "other")))
    assert here and other
    with transaction(db):
        moving.move_sessions(db, ["s1"], other.id)
    assert [one.id for one in tellings.since(db, 0, other.id)] == [number]
    with transaction(db):
        moving.merge(db, other.id, here.id)
    assert [one.id for one in tellings.since(db, 0, here.id)] == [number]
    with transaction(db):
        removal.erase_project(db, here.id, NOW)
    assert db.execute("SELECT count(*) FROM tellings").fetchone()[0] == 0
    assert db.execute("SELECT count(*) FROM told_memories").fetchone()[0] == 0


def test_retention_takes_what_was_told_to_sessions_of_which_nothing_else_is_stored(
    db: sqlite3.Connection, project: str
) -> None:
    note(db, project, "the heron stands")
    noted(db, project, at=NOW - 100 * DAY)
    recent = noted(db, project, at=NOW)
    wanted = Conditions(before=NOW - 50 * DAY, is_retention=True)
    with transaction(db):
        one = forgetting.note(db, wanted, NOW, (0, 0, 0), "retention", "store")
    removal.sweep(db, one)
    assert [one.id for one in tellings.since(db, 0)] == [recent]


def test_what_told_a_trace_of_an_erased_turn_is_blank_wherever_the_trace_lay(
    data: Path, db: sqlite3.Connection, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where turn and trace are not removed in the same chunk."""
    monkeypatch.setattr(removal._remove_memories, "__defaults__", (1,))
    happened(data, project, "feed the walrus", answer=None)
    drain(data, NOW)  # the turn is older than its traces
    happened(data, project, (), bash("ls a", "1"), bash("ls b", "2"), answer=None, at=NOW - MINUTE + 5_000)
    drain(data, NOW)
    (turn,) = [row["id"] for row in db.execute("SELECT id FROM memories WHERE kind = 'turn'")]
    traces = [row["id"] for row in db.execute("SELECT id FROM memories WHERE turn = ?", (turn,))]
    for trace in traces:
        noted(db, project, trace, session="other")
    with transaction(db):
        life.archive(db, traces[:1], NOW)
    _, seen = one = removal.begin_erasing(db, Conditions(ids=(turn,)), NOW)
    removal.sweep(db, one[0])
    assert len(traces) == 2 and (seen.archived, seen.memories) == (1, 1)
    assert [told.text for told in tellings.since(db, 0, session_id="other")] == ["", ""]
    assert db.execute("SELECT count(*) FROM archived_memories").fetchone()[0] == 0
