"""The command line: memories are found, listed, added, changed and forgotten."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from backstory.store import life
from backstory.store.file.connection import connect
from tests.conftest import Run
from tests.helpers.commands import hook, tool_use
from tests.helpers.embedder import loaded_embedder  # noqa: F401  for all tests here


@pytest.fixture
def project(project: str) -> Path:
    return Path(project)


@pytest.mark.slow
def test_search_sees_what_was_captured_a_moment_ago(project: Path, run: Run) -> None:
    hook(tool_use(project, "pytest tests/test_login.py"))
    done = run("search", "login")
    assert done.code == 0
    assert "Command: pytest tests/test_login.py · Output: fine" in done.out


@pytest.mark.slow
def test_search_prints_json_for_scripts(project: Path, run: Run) -> None:
    hook(tool_use(project, "make deploy"))
    found: list[dict[str, Any]] = json.loads(run("search", "deploy", "--json").out)
    assert found[0]["content"] == "Tool: Bash\nCommand: make deploy\nOutput: fine"
    assert found[0]["score"] > 0
    assert sum(found[0]["parts"].values()) == pytest.approx(found[0]["score"], abs=0.005)


@pytest.mark.slow
def test_a_note_is_added_shown_and_found(project: Path, run: Run) -> None:
    added = run("add", "we use port 8080", "--tag", "infra", "--importance", "0.9")
    assert added.out.startswith("Memory created: mem_")
    memory_id = added.out.split()[2]
    shown = run("show", memory_id).out
    assert "we use port 8080" in shown
    assert "infra" in shown
    assert memory_id in run("search", "port").out
    again = run("add", "-", stdin="we use port 8080\n")
    assert again.out.startswith(f"Memory reinforced: {memory_id} (new salience: ")
    assert json.loads(run("show", memory_id, "--json").out)["tags"] == ["infra"]


@pytest.mark.slow
def test_an_unknown_memory_or_session_is_not_found(project: Path, run: Run) -> None:
    for command in ("show", "sessions"):
        done = run(command, "nope")
        assert (done.code, done.out) == (1, "")
        assert "nope" in done.err


@pytest.mark.slow
def test_paths_are_shown_as_seen_from_the_project(project: Path, run: Run) -> None:
    payload = tool_use(project, "x") | {
        "tool_name": "Read",
        "tool_input": {"file_path": f"{project}/src/auth.py"},
    }
    hook(payload | {"tool_response": {}})
    assert "Read file: src/auth.py" in run("search", "auth").out


# --- one command after the other, in this process: starting one takes longer than what it does -------------


@pytest.mark.slow
def test_search_takes_every_filter(run: Run, project: Path) -> None:
    (project / "auth.py").write_text("x")
    hook(tool_use(project, "feed walrus", "abc-session"))
    run("add", "the walrus lives in auth.py", "--tag", "sea", "--tag", "north", "--sector", "semantic")
    note, trace = "the walrus lives in auth.py", "Tool: Bash\nCommand: feed walrus\nOutput: fine"

    def found(*filters: str) -> list[str]:
        ran = run("search", "walrus", "--json", *filters)
        assert ran.code == (0 if ran.json else 1)
        return sorted(hit["content"] for hit in ran.json)

    assert found() == found("--mode", "hybrid") == found("--mode", "keyword") == [note]  # traces on request
    assert note in found("--mode", "semantic")
    assert found("--sector", "semantic") == found("--kind", "note") == found("--tier", "project") == [note]
    assert found("--sector", "episodic") == found("--kind", "tool") == found("--tier", "session") == [trace]
    assert found("--tag", "sea") == found("--tag", "NORTH", "--tag", "sea") == [note]
    assert found("--tag", "south") == []
    assert found("--file", "auth.py") == [note]
    assert found("--session", "abc") == [trace]  # the beginning of its id is enough
    assert found("--since", "1h") == found("--since", "2020-01-01") == [note]
    assert found("--kind", "tool", "--since", "1h") == [trace]
    assert found("--until", "2020-01-01") == found("--until", "2d") == []
    assert len(found("--limit", "1")) == 1
    assert found("--project", str(project)) == [note]
    assert found("--superseded") == [note]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--since", "last spring"), "7d for seven days ago"),
        (("--until", "99999999999w"), "is no time"),
        (("--limit", "101"), "between 1 and 100"),
        (("--kind", "idea"), "'idea' is not one of"),
        (("--mode", "psychic"), "'psychic' is not one of"),
        (("--project", "/nowhere/at/all"), "is no folder, and no project is called so"),
    ],
)
def test_a_filter_that_makes_no_sense_is_wrong_use(run: Run, args: tuple[str, ...], says: str) -> None:
    ran = run("search", "walrus", *args)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err


def test_a_session_that_is_not_there_is_not_found(run: Run) -> None:
    ran = run("search", "walrus", "--session", "nope")
    assert (ran.code, "There is no session nope" in ran.err) == (1, True)


def test_a_search_explains_its_scores_when_asked(run: Run) -> None:
    run("add", "the walrus sleeps")
    assert "words +" not in run("search", "walrus").out
    explained = run("search", "walrus", "--explain").out
    for part in ("words +", "salience +", "recency +", "sector +"):
        assert part in explained
    hit = run("search", "walrus", "--json").json[0]
    assert sum(hit["parts"].values()) == pytest.approx(hit["score"], abs=0.005)
    assert {"superseded_by", "related", "stale", "id", "content", "salience"} <= set(hit)


def test_a_search_says_when_files_changed_since(run: Run, project: Path) -> None:
    (project / "auth.py").write_text("one")
    memory_id = run("add", "the walrus lives in auth.py").id
    (project / "auth.py").write_text("two")
    assert "auth.py changed since" in run("search", "walrus").out
    assert "auth.py changed since" in run("show", memory_id).out
    assert run("show", memory_id, "--json").json["stale"] == ["auth.py changed since"]


def test_a_search_without_an_embedder_says_so_beside_the_answer(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_EMBEDDER", "off")
    run("add", "the walrus sleeps")
    ran = run("search", "walrus", "--json")
    assert (ran.code, len(ran.json)) == (0, 1)
    assert ran.err.startswith("Searched by words only: the embedder is switched off")
    refused = run("reindex")
    assert refused.code != 0
    assert "switched off" in refused.err
    monkeypatch.setenv("BACKSTORY_EMBEDDER", "crystal-ball")
    refused = run("search", "walrus")
    assert (refused.code, "it is one of static, off" in refused.err) == (2, True)


def test_the_beginning_of_an_id_is_enough_with_or_without_its_prefix(run: Run) -> None:
    memory_id = run("add", "the walrus sleeps").id
    for short in (memory_id, memory_id[:10], memory_id[4:10]):
        assert run("show", short, "--json").json["id"] == memory_id
    run("add", "the heron stands")
    vague = run("show", "mem_")
    assert vague.code == 2
    assert "more than one memory starts with mem_" in vague.err
    for nothing in ("", "mem_zzzzzzzzzzzz", "%", "nope"):
        ran = run("show", nothing)
        assert (ran.code, ran.out) == (1, "")
        assert "`backstory search` shows ids" in ran.err


def test_a_note_for_all_projects_is_found_in_all(run: Run, tmp_path: Path) -> None:
    made = run("add", "I prefer short walrus names", "--global", "--json").json
    assert (made["created"], made["tier"], made["project_id"]) == (True, "global", "global")
    (tmp_path / "web").mkdir()
    elsewhere = run("search", "walrus", "--project", str(tmp_path / "web"), "--json").json
    assert [hit["id"] for hit in elsewhere] == [made["id"]]
    again = run("add", "I prefer short walrus names", "--global", "--json").json
    assert (again["created"], again["id"]) == (False, made["id"])


def test_a_memory_is_reinforced_and_deemphasized(run: Run) -> None:
    memory_id = run("add", "the walrus sleeps").id
    up = run("reinforce", memory_id)
    assert up.out.startswith(f"Memory reinforced: {memory_id} (new salience: 0.5")
    more = run("reinforce", memory_id[:12], "--amount", "1", "--json").json
    assert (more["done"], more["id"], more["access_count"]) == ("reinforced", memory_id, 2)
    assert more["salience"] == pytest.approx(0.99)
    fresh = run("add", "the heron stands").id
    down = run("deemphasize", fresh, "--json").json
    assert (down["done"], down["salience"]) == ("de-emphasized", pytest.approx(0.3, abs=0.001))
    assert run("deemphasize", fresh, "--amount", "1").out.endswith("(new salience: 0.05)\n")


@pytest.mark.parametrize("command", ["reinforce", "deemphasize"])
@pytest.mark.parametrize("amount", ["0", "-1", "1.5", "nan", "much"])
def test_an_amount_that_makes_no_sense_is_wrong_use(run: Run, command: str, amount: str) -> None:
    memory_id = run("add", "the walrus sleeps").id
    ran = run(command, memory_id, "--amount", amount)
    assert (ran.code, ran.out) == (2, "")
    assert "must be above 0 and at most 1" in ran.err or "is not a valid float" in ran.err


def test_a_memory_is_forgotten_and_restored(run: Run) -> None:
    memory_id = run("add", "the walrus sleeps").id
    assert run("forget", memory_id).out.startswith(f"Memory forgotten: {memory_id}")
    assert run("search", "walrus").code == 1
    assert "forgotten" in run("show", memory_id).out
    assert run("restore", memory_id).out.startswith(f"Memory restored: {memory_id}")
    assert run("search", "walrus").code == 0
    assert run("forget", memory_id, "--json").json["deleted_at"] is not None
    assert run("restore", memory_id, "--json").json["deleted_at"] is None


@pytest.mark.parametrize("command", ["show", "timeline", "reinforce", "deemphasize", "forget", "restore"])
def test_an_id_that_is_not_there_is_not_found_by_any_command(run: Run, command: str) -> None:
    ran = run(command, "mem_nothing")
    assert (ran.code, ran.out) == (1, "")
    assert "There is no memory mem_nothing; `backstory search` shows ids." in ran.err
    assert run(command).code == 2


def test_one_memory_supersedes_another(run: Run) -> None:
    old, new = run("add", "the walrus port is 8080").id, run("add", "the walrus port is 8081").id
    assert run("supersede", old, new).out == f"Memory {old} superseded by {new}\n"
    assert [hit["id"] for hit in run("search", "walrus", "--json").json] == [new]
    shown = run("search", "walrus", "--superseded").out
    assert f"superseded by {new}" in shown
    relations = run("show", old, "--json").json["relations"]
    assert relations == [{"source": new, "relation": "SUPERSEDES", "target": old}]
    assert f"{new} SUPERSEDES {old}" in run("show", old).out
    cycle = run("supersede", new, old)
    assert (cycle.code, f"restore {old} first" in cycle.err) == (2, True)
    assert run("supersede", old, old).code == 2
    assert run("supersede", old, "nope").code == 1
    assert run("supersede", old).code == 2
    assert run("supersede", old, new, "--json").json == {"superseded": old, "by": new}
    run("restore", old)
    assert run("search", "8080", "--json").json[0]["superseded_by"] is None


def test_the_timeline_marks_the_memory_and_names_the_sessions(run: Run, project: Path) -> None:
    for number in range(3):
        hook(tool_use(project, f"step {number}", f"s{number}"))
    hook(
        {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "cwd": str(project), "prompt": "why not"}
    )
    memory_id = run("search", "step 1", "--json").json[0]["id"]
    lines = run("timeline", memory_id).out.splitlines()
    assert [line.strip()[:4] for line in lines if "Command: step 1" in line] == [">>> "]
    assert sum(line.startswith("session s") for line in lines) == 3
    assert "why not" in next(line for line in lines if line.startswith("session s1"))
    told = run("timeline", memory_id[:12], "--before", "1", "--after", "0", "--json").json
    assert told["anchor"]["id"] == memory_id
    assert (len(told["before"]), len(told["after"])) == (1, 0)
    assert {session["id"] for session in told["sessions"]} == {"s0", "s1"}
    too_long = run("timeline", memory_id, "--before", "51")
    assert (too_long.code, "between 0 and 50" in too_long.err) == (2, True)


@pytest.fixture
def faded(run: Run, project: Path, data: Path) -> str:
    """The id of a trace that nobody came back to for years."""
    hook(tool_use(project, "feed walrus"))
    memory_id: str = run("search", "walrus", "--json").json[0]["id"]
    db = connect(str(data / "backstory.db"))
    db.execute("UPDATE memories SET created_at = 1000, last_accessed = 1000, files = '[\"a.py\"]'")
    db.close()
    return memory_id


def test_faded_traces_are_archived_and_can_be_restored(run: Run, faded: str) -> None:
    kept = run("add", "a walrus note").id
    assert run("prune", "--dry-run").out == "1 trace would be archived\n"
    assert run("prune", "--dry-run", "--json").json == {"archived": 0, "faded": 1}
    assert run("prune").out == "1 trace archived\n"
    assert run("prune", "--json").json == {"archived": 0, "faded": 0}
    assert [hit["id"] for hit in run("search", "walrus", "--json").json] == [kept]
    shown = run("show", faded)
    assert "archived" in shown.out
    assert f"backstory restore {faded}" in shown.out
    assert "feed walrus" in shown.out
    refused = run("reinforce", faded)
    assert (refused.code, f"backstory restore {faded}" in refused.err) == (1, True)
    assert run("restore", faded[:12]).out.startswith(f"Memory restored: {faded}")
    assert [hit["id"] for hit in run("search", "walrus", "--kind", "tool", "--json").json] == [faded]


def test_an_archived_memory_has_the_same_types_in_json(run: Run, faded: str) -> None:
    before = run("show", faded, "--json").json
    run("prune")
    archived = run("show", faded[4:10], "--json").json
    assert archived["id"] == faded
    assert archived["archived_at"] > 0
    same = {name for name in ("tags", "files", "hashes", "content", "kind") if archived[name] == before[name]}
    assert same == {"tags", "files", "hashes", "content", "kind"}


def test_an_archived_memory_is_removed_for_good_like_any_other(run: Run, faded: str, data: Path) -> None:
    run("prune")
    removed = run("erase", faded, "--yes")
    db = connect(str(data / "backstory.db"))
    still_there = life.archived(db, faded)
    db.close()
    assert (removed.code, still_there) == (0, None)


def test_reindex_makes_the_vectors_that_are_missing_and_only_those(run: Run, project: Path) -> None:
    run("add", "the walrus sleeps")
    run("add", "I prefer short names", "--global")
    (project / "guide.md").write_text("# Guide\n\nfeed the walrus")
    run("docs", "ingest", "guide.md")
    made = run("reindex", "--json").json
    assert made["made"] == 3
    assert made["model"].startswith("static:")
    assert run("reindex").out.startswith("0 vectors made by static:")


def test_memories_are_listed_newest_first_and_forgotten_ones_on_request(run: Run) -> None:
    first = run("add", "the walrus sleeps", "--tag", "sea").id
    second = run("add", "the heron stands").id
    assert run("list", "--forgotten").err.startswith("backstory: Nothing of the kind is forgotten here")
    assert [one["id"] for one in run("list", "--json").json] == [second, first]
    assert run("list", "--tag", "sea").out.split()[0] == first
    run("forget", first)
    assert [one["id"] for one in run("list", "--json").json] == [second]
    assert [one["id"] for one in run("list", "--forgotten", "--json").json] == [first]
    empty = run("list", "--kind", "summary")
    assert (empty.code, empty.out) == (1, "")


def test_a_list_says_that_there_are_more(run: Run) -> None:
    for number in range(4):
        run("add", f"walrus {'abcd'[number] * 9} number {number}")
    assert run("list").err == ""
    assert run("list", "--limit", "4").err == ""
    for options in ((), ("--json",)):
        ran = run("list", "--limit", "3", *options)
        assert (ran.code, ran.err) == (0, "3 of 4; --limit shows more\n")
        assert ran.out.count("mem_") >= 3
    assert run("list", "--limit", "1", "--kind", "decision").err.startswith("backstory: No memories")


def test_an_id_of_another_project_is_not_touched_from_here(run: Run, project: Path) -> None:
    other = project.parent / "other"
    other.mkdir()
    theirs = run("add", "the walrus sleeps", "--project", str(other)).id
    ours = run("add", "the heron stands").id
    for command in (("forget", theirs), ("reinforce", theirs[:10]), ("supersede", theirs, ours)):
        ran = run(*command)
        assert (ran.code, f"add --project {other}" in ran.err) == (1, True)
    assert run("forget", theirs, "--project", str(other)).code == 0
