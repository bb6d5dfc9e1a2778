"""What becomes of the observations that a synthesizer made."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from backstory.model import Batch, Findings, Observation
from backstory.store import life
from backstory.store.file.connection import connect, transaction
from backstory.synthesis.local import Local
from tests.helpers.chaos import MINUTE, NOW, bash, event, prompt
from tests.helpers.worker_desk import END, FIX, STOP, TOLD, Desk, Scripted, edit


@pytest.mark.parametrize(
    ("kind", "text", "importance", "sector"),
    [
        ("decision", "Totals are kept in cents.", 0.7, "semantic"),
        ("bugfix", "The sum was rounded twice.", 0.6, "procedural"),
        ("feature", "Invoices have a due date.", 0.6, "semantic"),
        ("refactor", "The parser lives in a module of its own.", 0.6, "semantic"),
        ("discovery", "The API counts pages from zero.", 0.6, "semantic"),
        ("discovery", "To release, first run make dist, then upload the wheel.", 0.6, "procedural"),
        ("preference", "Tabs, never spaces.", 0.6, "emotional"),
    ],
)
def test_a_kind_decides_what_an_observation_is_worth_and_for(
    kind: str, text: str, importance: float, sector: str, desk: Desk
) -> None:
    desk.happened(edit(), STOP)
    desk.observed(Findings((Observation(kind, "A title", text, concepts=("money",)),)))
    (found,) = desk.memories(kind)
    assert (found["importance"], found["salience"], found["sector"]) == (importance, importance, sector)
    assert (found["tier"], json.loads(found["concepts"])) == ("project", ["money"])


def test_an_observation_is_found_by_its_title_at_once(desk: Desk) -> None:
    desk.happened(edit(), STOP)
    desk.observed(Findings((FIX,)))
    assert len(desk.rows("SELECT rowid FROM memories_fts WHERE memories_fts MATCH 'lost cent rounded'")) == 1


def test_the_files_of_an_observation_are_kept_from_the_root_with_what_was_in_them(
    desk: Desk, tmp_path: Path
) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "invoice.py").write_text("x = 1\n")
    found = replace(FIX, files=(f"{root}/invoice.py", "invoice.py", "gone.py"))
    desk.happened({**edit(), "cwd": str(root)}, {**STOP, "cwd": str(root)})
    desk.observed(Findings((found,)))
    (fix,) = desk.memories("bugfix")
    assert json.loads(fix["files"]) == ["invoice.py", "gone.py"]
    first, second = json.loads(fix["hashes"])
    assert first and second is None


def test_what_is_known_already_in_nearly_these_words_is_reinforced_instead(desk: Desk) -> None:
    desk.happened(edit(), STOP)
    desk.observed(Findings((FIX,)))
    desk.happened(edit(), STOP, session="session-2")
    desk.observed(Findings((replace(FIX, text="the sum is rounded now and not each line"),)))
    (fix,) = desk.memories("bugfix")
    assert fix["content"] == FIX.text
    assert fix["salience"] == pytest.approx(0.6 + 0.1 * 0.4)
    links = desk.rows("SELECT session_id, usage_type FROM session_memories WHERE memory_id = ?", fix["id"])
    assert {(row["session_id"], row["usage_type"]) for row in links} == {
        ("session-1", "created"),
        ("session-2", "reinforced"),
    }


def test_another_number_is_another_fact(desk: Desk) -> None:
    desk.happened(edit(), STOP)
    one = Observation("discovery", "The port", "The server listens on port 8080.")
    desk.observed(Findings((one, replace(one, text="The server listens on port 8081."))))
    assert len(desk.memories("discovery")) == 2


def test_the_traces_that_an_observation_rests_on_are_reinforced(desk: Desk) -> None:
    desk.happened(bash("pytest -q"), bash("ls"), STOP)

    def citing(batch: Batch) -> Findings:
        first = batch.items[0].id
        return Findings((replace(FIX, cites=(first, first, batch.items[2].id, 9_999)),))

    desk.observed(citing)
    assert desk.trace("pytest")["salience"] == pytest.approx(0.3 + 0.2 * 0.7)
    assert desk.trace("ls")["salience"] == 0.3
    links = desk.rows(
        "SELECT usage_type FROM session_memories WHERE memory_id = ?", desk.trace("pytest")["id"]
    )
    assert {row["usage_type"] for row in links} == {"created", "reinforced"}


def test_a_trace_of_an_earlier_batch_can_be_cited_and_a_forgotten_one_is_left_alone(desk: Desk) -> None:
    desk.happened(bash("pytest -q"), bash("rm -rf build"), STOP)
    desk.observed(Findings())
    with closing(connect(str(desk.data / "backstory.db"))) as db, transaction(db):
        life.forget(db, desk.trace("rm")["id"], None, NOW)
    desk.happened(bash("make"), STOP)
    desk.observed(lambda batch: Findings((replace(FIX, cites=tuple(item.id for item in batch.earlier)),)))
    assert desk.trace("pytest")["salience"] == pytest.approx(0.44)
    assert desk.trace("rm")["salience"] == 0.3


@pytest.mark.parametrize(("mode", "said_by"), [("claude", "model"), ("local", "rule")])
def test_what_replaces_an_older_one_says_who_said_so(mode: str, said_by: str, desk: Desk) -> None:
    old = Observation("decision", "Money is a float", "Amounts in the invoice are floats for now.")
    desk.happened(edit(), STOP)
    desk.observed(Findings((old,)))
    old_id = desk.memories("decision")[0]["id"]
    new = Observation("decision", "Money is cents", "Amounts are integers.", supersedes=(old_id, "mem_gone"))
    desk.happened(edit(), STOP)
    desk.local.replies = [Findings((new,))]
    desk.work(Scripted("claude", Findings((new,))), mode=mode)
    before, after = desk.memories("decision")
    assert before["valid_until"] == NOW and after["valid_until"] is None
    replaced = "SELECT * FROM memory_relationships WHERE relationship_type = 'SUPERSEDES'"
    told = [
        {name: row[name] for name in ("source_id", "target_id", "relationship_type", "said_by")}
        for row in desk.rows(replaced)
    ]
    assert told == [
        {
            "source_id": after["id"],
            "target_id": old_id,
            "relationship_type": "SUPERSEDES",
            "said_by": said_by,
        }
    ]


def test_what_was_forgotten_meanwhile_is_not_superseded(desk: Desk) -> None:
    old = Observation("decision", "Money is a float", "Amounts are floats.")
    desk.happened(edit(), STOP)
    desk.observed(Findings((old,)))
    old_id = desk.memories("decision")[0]["id"]
    with closing(connect(str(desk.data / "backstory.db"))) as db, transaction(db):
        life.forget(db, old_id, None, NOW)
    desk.happened(edit(), STOP)
    desk.observed(Findings((replace(FIX, supersedes=(old_id,)),)))
    assert len(desk.memories("bugfix")) == 1
    assert desk.rows("SELECT * FROM memory_relationships WHERE relationship_type = 'SUPERSEDES'") == []


def test_a_preference_about_the_user_holds_in_every_project(desk: Desk) -> None:
    desk.happened(prompt("always use tabs, in every project"), STOP)
    wish = Observation("preference", "Tabs", "The user wants tabs.", files=("a.py",), is_global=True)
    desk.observed(Findings((wish,)))
    (found,) = desk.memories("preference")
    assert (found["project_id"], found["tier"], found["files"], found["session_id"]) == (
        "global",
        "global",
        "[]",
        "session-1",
    )


@pytest.mark.parametrize(("mode", "said_by"), [("claude", "model"), ("local", "rule")])
def test_an_observation_builds_on_the_turn_of_what_it_cites(mode: str, said_by: str, desk: Desk) -> None:
    desk.happened(prompt("why is a cent lost?"), bash("pytest -q"), STOP)
    desk.observed(Findings())
    desk.now += MINUTE
    desk.happened(prompt("mend it"), edit(), STOP)

    def citing(batch: Batch) -> Findings:
        first = replace(FIX, title="the first turn", cites=(batch.earlier[1].id,))
        return Findings((first, replace(FIX, title="this turn", text="Rounded once.")))

    desk.local.replies = [citing]
    desk.observed(citing, mode=mode)
    asked = {row["id"]: row["title"] for row in desk.memories("turn")}
    found = {row["id"]: row["title"] for row in desk.memories("bugfix")}
    links = desk.rows("SELECT * FROM memory_relationships WHERE relationship_type = 'BUILDS_ON'")
    assert {(found[row["source_id"]], asked[row["target_id"]], row["said_by"]) for row in links} == {
        ("the first turn", "why is a cent lost?", said_by),
        ("this turn", "mend it", said_by),
    }


def test_an_observation_says_where_its_words_come_from(desk: Desk) -> None:
    desk.happened(edit(), STOP)
    desk.observed(Findings((FIX, replace(FIX, kind="decision", source="user")), TOLD))
    sources = [desk.memories(kind)[0]["source"] for kind in ("bugfix", "decision", "summary")]
    assert sources == ["model", "user", "session"]


def test_what_the_rules_found_of_a_session_is_stored_once_however_often_it_goes_on(desk: Desk) -> None:
    def work() -> None:
        desk.work(mode="local")

    desk.local = Local()  # type: ignore[assignment]
    done = bash("git commit -am x", stdout="[main 1a2b3c4] Fix the total of a cart")
    desk.happened(prompt("never use pip here, we use uv"), edit(), done, STOP)
    work()
    desk.now += MINUTE
    desk.happened(event("Stop", last_assistant_message="The docs are new.", stop_hook_active=True))
    work()
    desk.now += MINUTE
    desk.happened(prompt("and now the docs"), bash("make docs"), STOP, END)
    work()
    kept = [
        (row["kind"], row["title"], row["source"], row["access_count"])
        for kind in ("preference", "bugfix")
        for row in desk.memories(kind)
    ]
    assert kept == [
        ("preference", "Never use pip here, we use uv", "user", 0),
        ("bugfix", "Fix the total of a cart", "repository", 0),
    ]
    (summary,) = desk.rows("SELECT request, completed FROM session_summaries")
    assert summary["completed"].startswith("Fix the total of a cart.")


def test_what_the_user_forgot_is_not_found_again(desk: Desk) -> None:
    desk.local = Local()  # type: ignore[assignment]
    desk.happened(prompt("never use pip here, we use uv"), STOP)
    desk.work(mode="local")
    with closing(connect(str(desk.data / "backstory.db"))) as db, transaction(db):
        life.forget(db, desk.memories("preference")[0]["id"], None, NOW)
    desk.happened(bash("make"), event("Stop", last_assistant_message="Made.", stop_hook_active=True))
    desk.work(mode="local")
    assert [row["deleted_at"] for row in desk.memories("preference")] == [NOW]
