"""`backstory forget` by session, project, time and text: what is shown first is what is hidden, nobody is
told of it afterwards, and undoing brings back exactly that."""

from __future__ import annotations

import io
import json
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backstory.intake.note import keep
from backstory.recall import brief
from backstory.recall.answer import answer as search
from backstory.recall.index import Index
from backstory.store import forgetting, life
from backstory.store.file.connection import connect, own_tables, tuples
from backstory.store.forgetting import Conditions
from backstory.surfaces import worker
from tests.conftest import Run
from tests.helpers.chaos import bash, drain, event, prompt, put, rows
from tests.helpers.mcp_client import Server
from tests.helpers.memory_desk import Desk
from tests.helpers.turn_payloads import commit, edit, happened

NOW = int(time.time() * 1000)
HOUR = 3_600_000
DAY = 24 * HOUR
BOOKKEEPING = {"line_changes", "vectors", "forgettings"}  # what processes hold in RAM, and the list of these


@pytest.fixture
def home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BACKSTORY_EMBEDDER", "off")
    return home


@pytest.fixture
def stored(data: Path, project: str, tmp_path: Path) -> Path:
    """Three sessions, observed; a session of another project; notes, one of them global."""
    (tmp_path / "web").mkdir()
    file = f"{project}/tank.py"
    happened(
        data, project, "feed the walrus", edit(file), commit("feed it"), session="old", at=NOW - 30 * DAY
    )
    happened(data, project, "paint the door", bash("ls", "walrus.txt"), session="mid", at=NOW - 10 * DAY)
    happened(data, project, "Is the WALRUS asleep?", edit(file), session="new", at=NOW - 2 * HOUR)
    happened(data, project, "and the otter?", commit("an otter"), session="new", at=NOW - HOUR)
    happened(data, tmp_path / "web", "a walrus elsewhere", session="web", at=NOW - 5 * DAY)
    drain(data, NOW)
    worker.run(str(data))
    with closing(opened(data)) as db:
        keep(db, project, "walruses eat clams", now=NOW - 20 * DAY)
        keep(db, project, "the user likes walruses", now=NOW - 3 * DAY, is_global=True)
    return data


def opened(data: Path) -> Any:
    return connect(str(data / "backstory.db"))


def dump(data: Path) -> dict[str, list[Any]]:
    """All that is stored, but for what no reader sees, and but for when a memory changed last: to be hidden
    and brought back are changes, of which a store that imports it has to know."""
    with closing(opened(data)) as db:
        tables = [name for name in own_tables(db) if name not in BOOKKEEPING]
        columns = dict.fromkeys(tables, "*")
        of_memories = [row["name"] for row in db.execute("PRAGMA table_info(memories)")]
        columns["memories"] = ", ".join(name for name in of_memories if name != "updated_at")
        found = {
            name: sorted(map(repr, tuples(db).execute(f"SELECT {columns[name]} FROM {name}")))  # noqa: S608
            for name in tables
        }
        words = tuples(db).execute("SELECT term, doc, cnt FROM memories_terms").fetchall()
    return found | {"words": words}


def told(data: Path, project: str, run: Run) -> str:
    """What people and models are told: searches, the brief, lists of memories and sessions, each whole."""
    said = [run(*command).out for command in (("list",), ("list", "--kind", "tool"), ("spend",))]
    said += [run("search", *words, "--limit", "100", "--superseded").out for words in (["walrus"], ["door"])]
    said.append(run("search", "walrus", "--kind", "tool").out)
    for session in run("sessions", "--json").json if run("sessions").code == 0 else ():
        said.append(json.dumps(run("sessions", session["id"], "--json").json))
    with closing(opened(data)) as db:
        said.append(brief.brief(db, project, "next", "startup", 2_000).text)
        hits = search(Index(None), db, project, "walrus", now=NOW, limit=100).hits
    said += [run("timeline", hit.memory.id, "--before", "50", "--after", "50").out for hit in hits]
    return "\n".join(said)


def hidden(data: Path) -> tuple[int, int]:
    """(turns, other memories) that are forgotten."""
    found = rows(data, "SELECT kind FROM memories WHERE deleted_at IS NOT NULL")
    turns = sum(row["kind"] == "turn" for row in found)
    return turns, len(found) - turns


CONDITIONS = {
    "session": (["--session", "old"], ["feed it"], ["door", "asleep", "otter"]),
    "project": (["--project", "."], ["feed it", "door", "otter", "clams"], ["likes walruses"]),
    "before": (["--before", "8d"], ["feed it", "paint", "clams"], ["asleep", "otter"]),
    "match": (["--match", "wALRUs"], ["feed it", "clams", "asleep"], ["otter", "likes walruses"]),
    "kind": (["--kind", "note"], ["clams"], ["feed it", "door", "asleep"]),
    "before and match": (["--before", "8d", "--match", "Walrus"], ["feed it", "clams"], ["door", "asleep"]),
    "match and kind": (["--match", "walrus", "--kind", "turn"], ["feed it", "asleep"], ["clams", "door"]),
    "session and match": (["--session", "new", "--match", "walrus"], ["asleep"], ["feed it", "otter"]),
    "all projects": (["--all-projects", "--match", "walrus"], ["feed it", "likes walruses"], ["door"]),
}


@pytest.mark.parametrize(("given", "gone", "stays"), CONDITIONS.values(), ids=CONDITIONS)
def test_what_is_shown_first_is_what_is_hidden_and_undoing_brings_back_exactly_that(
    given: list[str], gone: list[str], stays: list[str], stored: Path, project: str, run: Run
) -> None:
    before, said = dump(stored), told(stored, project, run)
    before = dump(stored)  # to ask for a list changes nothing, but a search counts what it showed
    shown = run("forget", *given, "--dry-run", "--json").json
    assert dump(stored) == before
    done = run("forget", *given, "--yes", "--json").json
    counts = ("sessions", "turns", "memories", "kinds", "stays")
    assert {name: shown[name] for name in counts} == {name: done[name] for name in counts}
    assert hidden(stored) == (shown["turns"], shown["memories"])
    now_said = told(stored, project, run)
    for word in gone:
        assert word in said and word not in now_said, word
    for word in stays:
        assert word in now_said, word
    assert run("forget", "--undo").out.startswith("Brought back: ")
    assert dump(stored) == before


def test_the_preview_counts_by_kind_and_shows_the_first_ten_lines(stored: Path, run: Run) -> None:
    shown = run("forget", "--project", ".", "--dry-run").out.splitlines()
    assert shown[0].startswith("To forget: 3 sessions, 4 turns, ")
    assert "note 1" in shown[0] and "tool " in shown[0] and "summary 3" in shown[0]
    assert len([line for line in shown if line.startswith("  mem_")]) == 10
    assert shown[11].startswith("  and ")
    assert "Stays: 1 global memory" in shown
    matched = run("forget", "--match", "walrus", "--dry-run").out
    assert "Stays: 1 global memory with the text; --all-projects covers that" in matched
    assert "of other projects with the text; --all-projects" in matched


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("", 1)])
def test_at_a_terminal_it_asks(
    answer: str, code: int, stored: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(io, "StringIO", Terminal)
    assert run("forget", "--session", "old", stdin=answer).code == code
    assert (run("sessions", "old").code == 0) == bool(code)


def test_a_forgotten_session_is_in_no_list_and_cannot_be_told(stored: Path, run: Run) -> None:
    assert run("forget", "--session", "old", "--yes").code == 0
    assert "old" not in {session["id"] for session in run("sessions", "--json").json}
    assert run("sessions", "old").code == 1
    again = run("forget", "--session", "old", "--yes")
    assert again.code == 1 and "There is no session old" in again.err


def test_forgettings_are_listed_and_undone_in_any_order(stored: Path, run: Run) -> None:
    (note,) = [one["id"] for one in run("list", "--kind", "note", "--json").json if "clams" in one["content"]]
    run("forget", note)
    with_note = dump(stored)
    run("forget", "--session", "old", "--yes")
    run("forget", "--session", "mid", "--yes")
    with_both = run("forget", "--list", "--json").json
    assert [one["conditions"] for one in with_both] == [
        {"session_id": "mid"},
        {"session_id": "old"},
        {"ids": [note]},
    ]
    assert "session mid" in run("forget", "--list").out
    second = with_both[1]["id"]
    run("forget", "--match", "clams", "--all-projects", "--yes")
    assert run("forget", "--undo", str(second)).code == 0
    assert run("sessions", "old").code == 0 and run("sessions", "mid").code == 1
    assert run("forget", "--undo").code == 0
    assert dump(stored) == with_note  # what was forgotten before stays forgotten
    assert run("forget", "--undo").code == 0
    assert run("list", "--forgotten").code == 1
    nothing = run("forget", "--undo")
    assert nothing.code == 1 and "`backstory forget --list` shows" in nothing.err


def test_a_session_forgotten_twice_stays_hidden_until_both_are_undone(
    stored: Path, project: str, run: Run
) -> None:
    run("forget", "--session", "new", "--yes")
    happened(stored, project, "a third thing", session="new", at=NOW + HOUR)
    assert "a third thing" in run("sessions", "new").out  # what is new is new
    assert "otter" not in run("sessions", "new").out
    run("forget", "--session", "new", "--yes")
    first = run("forget", "--list", "--json").json[1]["id"]
    run("forget", "--undo", str(first))
    assert "otter" in run("sessions", "new").out and "a third thing" not in run("sessions", "new").out
    run("forget", "--undo")
    assert "a third thing" in run("sessions", "new").out


def test_what_comes_late_to_a_forgotten_session_is_forgotten_with_it(
    data: Path, project: str, run: Run
) -> None:
    happened(data, project, "feed the walrus", answer=None, session="s", at=NOW - HOUR)
    drain(data, NOW)
    before = dump(data)
    assert run("forget", "--session", "s", "--yes").code == 0
    said = {"session_id": "s", "cwd": project}
    put(data, bash("cat walrus.txt", "tusks") | said, at=NOW + 1_000)
    put(data, event("Stop", last_assistant_message="the walrus is fed") | said, at=NOW + 2_000)
    assert run("sessions").code == 1
    assert run("list", "--kind", "tool").code == 1
    assert not rows(data, "SELECT 1 FROM observation_queue WHERE processed_at_epoch IS NULL")
    run("forget", "--undo")
    assert "the walrus is fed" in run("sessions", "s").out
    assert len(dump(data)["memories"]) == len(before["memories"]) + 1


def test_a_prompt_from_before_that_is_stored_after_it_is_forgotten_too(
    data: Path, project: str, run: Run
) -> None:
    happened(data, project, "feed the walrus", session="s", at=NOW - HOUR)
    run("forget", "--session", "s", "--yes")
    happened(data, project, "and brush it", session="s", at=NOW - HOUR // 2)
    assert run("list").code == 1 and run("sessions").code == 1
    happened(data, project, "now the otter", session="s", at=int(time.time() * 1000) + 5_000)
    listed = run("list", "--json").json
    assert [one["title"] for one in listed] == ["now the otter"]
    assert run("sessions", "--json").json[0]["user_prompt"] == "now the otter"


def test_an_open_turn_that_is_brought_back_goes_on(data: Path, project: str, run: Run) -> None:
    happened(data, project, "feed the walrus", answer=None, session="s", at=NOW - HOUR)
    drain(data, NOW)
    before = dump(data)
    run("forget", "--match", "walrus", "--yes")
    run("forget", "--undo")
    assert dump(data) == before
    put(data, event("Stop", session_id="s", cwd=project, last_assistant_message="fed"), at=NOW)
    (turn,) = run("sessions", "s", "--json").json["turns"]
    assert (turn["state"], turn["answer"]) == ("complete", "fed")


def test_a_match_is_found_in_prompts_and_in_what_only_waits(data: Path, project: str, run: Run) -> None:
    large = "x" * 12_000 + ' the "Wälrus" said '
    happened(data, project, 'say "Wälrus" \\ again', bash("ls", "hm"), session="s", at=NOW - HOUR)
    happened(data, project, "something else", bash("make", large), session="s2", at=NOW - HOUR)
    drain(data, NOW)
    assert run("forget", "--match", '"WÄLRUS" \\ A', "--dry-run", "--json").json["turns"] == 1
    run("forget", "--match", '"wÄlrus"', "--yes")
    waiting = rows(data, "SELECT tool_output FROM observation_queue WHERE skipped IS NULL")
    assert waiting and not any("lrus" in json.loads(json.dumps(row["tool_output"])) for row in waiting)
    assert run("forget", "--match", "w.lrus", "--yes").code == 1  # no pattern


def test_only_what_was_hidden_and_brought_back_has_changed(stored: Path, run: Run) -> None:
    before = changed(stored)
    run("forget", "--session", "old", "--yes")
    of_old = {row["id"] for row in rows(stored, "SELECT id FROM memories WHERE deleted_at IS NOT NULL")}
    hidden_then = changed(stored)
    run("forget", "--undo")
    assert of_old
    for one, at in changed(stored).items():
        assert (before[one] < hidden_then[one] < at) if one in of_old else (before[one] == at)


def changed(data: Path) -> dict[str, int]:
    return {row["id"]: row["updated_at"] for row in rows(data, "SELECT id, updated_at FROM memories")}


def test_a_store_that_imports_it_forgets_and_brings_back_as_well(
    stored: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, there = str(tmp_path / "all.jsonl"), str(tmp_path / "there")

    def carry(source: str, to: str) -> None:
        monkeypatch.setenv("BACKSTORY_HOME", source)
        assert run("export", file, "--force").code == 0
        monkeypatch.setenv("BACKSTORY_HOME", to)
        assert run("import", file).code == 0

    carry(str(stored), there)
    assert run("search", "clams").code == 0  # used there, before it is forgotten here
    monkeypatch.setenv("BACKSTORY_HOME", str(stored))
    assert run("forget", "--match", "clams", "--yes").code == 0
    carry(there, str(stored))
    assert "clams" not in run("list").out
    carry(str(stored), there)
    assert "clams" not in run("list").out
    monkeypatch.setenv("BACKSTORY_HOME", str(stored))
    assert run("forget", "--undo").code == 0
    carry(there, str(stored))
    assert "clams" in run("list").out
    carry(str(stored), there)
    assert "clams" in run("list").out


def test_what_comes_late_does_not_make_a_forgotten_turn_look_older(
    data: Path, project: str, run: Run
) -> None:
    """Or a store that has it from before would bring it back."""
    happened(data, project, "feed the walrus", answer=None, session="s", at=NOW - HOUR)
    drain(data, NOW)
    run("forget", "--session", "s", "--yes")
    late = bash("ls", "tusks") | {"session_id": "s", "cwd": project}
    put(data, late, at=NOW - HOUR)
    drain(data, NOW)
    (turn,) = rows(data, "SELECT updated_at, deleted_at FROM memories WHERE kind = 'turn'")
    assert turn["updated_at"] >= turn["deleted_at"]


def test_one_of_them_can_be_restored_alone(stored: Path, run: Run) -> None:
    run("forget", "--session", "new", "--yes")
    (asleep,) = [
        one["id"]
        for one in run("list", "--forgotten", "--json").json
        if one["title"] == "Is the WALRUS asleep?"
    ]
    assert run("restore", asleep).code == 0
    told_of = run("sessions", "new").out
    assert "asleep" in told_of and "otter" not in told_of
    run("forget", asleep)
    run("forget", "--undo", str(run("forget", "--list", "--json").json[1]["id"]))
    assert "otter" in run("sessions", "new").out and "asleep" not in run("sessions", "new").out


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        ([], 2, "say what to forget: an ID, or --session, --project, --before, --match or --kind"),
        (["--all-projects", "--yes"], 2, "say what to forget"),
        (["--session", "nobody"], 1, "`backstory sessions` shows ids"),
        (["--project", ".", "--all-projects"], 2, "contradict each other"),
        (["--session", "web", "--project", "."], 2, "is of another project"),
        (["--match", "  "], 2, "no text to look for"),
        (["--before", "soon"], 2, "is no time; write 2026-11-15, or 7d"),
        (["--undo", "--session", "old"], 2, "go with no id and no condition"),
        (["--undo", "--list"], 2, "go with no id and no condition"),
        (["--undo", "last one"], 2, "is no number; `backstory forget --list`"),
        (["--undo", "77"], 1, "there is no forgetting 77"),
        (["mem_x", "--match", "x"], 2, "an ID goes with no condition"),
        (["--match", "nothing has this", "--yes"], 1, "Nothing fits; nothing was forgotten"),
    ],
)
def test_wrong_use_says_what_to_do(given: list[str], code: int, says: str, stored: Path, run: Run) -> None:
    before = dump(stored)
    ran = run("forget", *given)
    assert ran.code == code and says in ran.err
    assert dump(stored) == before


def test_several_ids_are_forgotten_and_brought_back_together(project: str, run: Run) -> None:
    ids = [
        run("add", f"note {number} about {word}").id for number, word in enumerate(("ice", "fish", "tusks"))
    ]
    assert run("forget", *ids[:2]).out.count("Memory forgotten: ") == 2
    assert [one["id"] for one in run("list", "--json").json] == ids[2:]
    assert run("forget", ids[0], ids[2]).code == 1  # the first is forgotten already
    assert [one["id"] for one in run("list", "--json").json] == ids[2:]
    run("forget", "--undo")
    assert len(run("list", "--json").json) == 3


def test_a_killed_forgetting_has_not_begun(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = dump(stored)
    with closing(opened(stored)) as db:
        monkeypatch.setattr(forgetting, "note", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            forgetting.forget(db, Conditions(session_id="old"), NOW)
    assert dump(stored) == before


def test_traces_that_were_forgotten_are_not_archived(stored: Path, run: Run) -> None:
    run("forget", "--session", "old", "--yes")
    with closing(opened(stored)) as db:
        life.prune(db, NOW + 900 * DAY)
        (left,) = db.execute(
            "SELECT count(*) FROM memories WHERE session_id = 'old' AND kind = 'tool'"
        ).fetchone()
    assert left


@pytest.mark.slow
def test_a_model_is_told_nothing_of_it(memory_server: tuple[Server, Path, Path], tmp_path: Path) -> None:
    desk = Desk(*memory_server, tmp_path / "asked")
    at = int(time.time() * 1000) - HOUR
    happened(desk.data, desk.project, "feed the walrus", session="gone", at=at)
    happened(desk.data, desk.project, "brush the walrus", session="there", at=at + 60_000)
    (there,) = [one for one in desk.search("walrus brush") if "brush" in desk.ask("memory_search", query=one)]
    with closing(opened(desk.data)) as db:
        assert forgetting.forget(db, Conditions(session_id="gone"), at + HOUR)
    for answer in (desk.ask("memory_search", query="walrus"), desk.ask("memory_timeline", anchor_id=there)):
        assert "brush" in answer and "feed" not in answer
    with closing(opened(desk.data)) as db:
        forgetting.undo(db, at + 2 * HOUR)
    assert "feed" in desk.ask("memory_timeline", anchor_id=there)


def test_who_sets_a_retention_is_told_what_goes(run: Run, project: str, data: Path) -> None:
    old = int(time.time() * 1000) - 100 * 24 * 3_600_000
    common = {"session_id": "s-old", "cwd": project}
    put(data, prompt("count the walruses", **common), at=old)
    put(data, event("Stop", last_assistant_message="Seven.", **common), at=old + 1)
    assert "1 session is older now" in run("config", "retention.days", "30").err
    assert run("config", "retention.days", "300").err == ""
    assert run("config", "retention.days", "0").err == ""
    assert "walruses" in run("search", "walruses").out
