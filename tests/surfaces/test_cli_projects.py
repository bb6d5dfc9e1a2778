"""The command line: projects, what a person says about them, and a search in all of them."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.helpers.chaos import event, prompt, put, settle
from tests.helpers.embedder import loaded_embedder  # noqa: F401  for all tests here
from tests.helpers.forged_git import git, repository
from tests.helpers.mcp_client import serving


@pytest.fixture
def other(tmp_path: Path) -> Path:
    made = tmp_path / "other"
    made.mkdir()
    return made


def lived(data: Path, folder: Path | str, words: str, session: str) -> None:
    common = {"session_id": session, "cwd": str(folder)}
    put(data, prompt(words, **common))
    put(data, event("Stop", last_assistant_message=f"Done: {words}", **common))


def names(run: Run) -> list[str]:
    return [one["name"] for one in run("projects", "--json").json]


def test_projects_are_listed_with_what_there_is_of_them(
    run: Run, project: str, other: Path, data: Path
) -> None:
    assert run("projects").code == 1
    run("add", "the heron stands in the pond")
    lived(data, other, "count the walruses", "s-other")
    listed = run("projects").out.splitlines()
    assert listed[0].split()[:6] == ["project", "id", "sessions", "turns", "memories", "size"]
    assert {line.split()[0] for line in listed[1:-1]} == {"other", Path(project).name}
    (one,) = (row for row in run("projects", "list", "--json").json if row["name"] == "other")
    assert (one["sessions"], one["turns"], one["memories"], one["paths"]) == (1, 1, 0, [str(other)])
    (shown,) = (line for line in listed if line.startswith("other"))
    assert shown.split()[2:5] == ["1", "1", "0"], "the table and the JSON count alike"
    other.rmdir()
    assert f"gone: {other}" in run("projects").out


def test_a_folder_that_is_no_project_yet_is_named_and_not_called_a_missing_project(
    run: Run, project: str
) -> None:
    for command in (("resume",), ("projects", "rename", ".", "new")):
        ran = run(*command)
        assert (ran.code, ran.err) == (
            1,
            f"backstory: {project} is no project yet; `backstory projects` lists them.\n",
        )
    assert "There is no project heron;" in run("projects", "rename", "heron", "new").err


def test_a_merge_says_what_goes_and_asks(run: Run, project: str, other: Path) -> None:
    run("add", "the heron stands in the pond")
    run("add", "the walrus sleeps", "--project", str(other))
    asked = run("projects", "merge", "other", ".")
    assert asked.code == 1
    assert "1 memory" in asked.err
    assert "Nothing was merged" in asked.err
    assert run("projects", "merge", "other", ".", "--yes").code == 0
    assert names(run) == [Path(project).name]
    assert "walrus" in run("search", "walrus").out
    assert "heron" in run("search", "heron", "--project", str(other)).out


def test_a_folder_that_was_merged_by_a_person_stays_whatever_git_says(
    run: Run, project: str, tmp_path: Path
) -> None:
    run("add", "the heron stands in the pond")
    code = repository(tmp_path / "code")
    run("add", "the walrus sleeps", "--project", str(code))
    run("projects", "merge", "code", ".", "--yes")
    git(code, "remote", "add", "origin", "https://forge.example/team/code.git")
    assert "heron" in run("search", "heron", "--project", str(code)).out


def test_sessions_are_split_off_by_their_ids_or_their_folder(
    run: Run, project: str, other: Path, data: Path
) -> None:
    lived(data, project, "count the walruses", "s-one")
    lived(data, f"{project}/deep", "count the herons", "s-two")
    (Path(project) / "deep").mkdir()
    run("projects", "merge", "deep", ".", "--yes")
    assert names(run) == [Path(project).name]
    assert run("projects", "split", "s-two").code == 2
    assert run("projects", "split", "--new", "birds").code == 2
    done = run("projects", "split", "--under", f"{project}/deep", "--new", "birds", "--yes", "--json").json
    assert done["moved"] == ["s-two"]
    assert sorted(names(run)) == sorted(["birds", Path(project).name])
    assert run("search", "herons").code == 1
    run("projects", "split", "s-two", "--to", ".", "--yes")
    assert "herons" in run("search", "herons").out


def test_a_folder_is_attached_by_a_person_s_word(run: Run, project: str, other: Path) -> None:
    run("add", "the heron stands in the pond")
    known = run("projects", "--json").json[0]["id"]
    refused = run("projects", "attach", str(other))
    assert refused.code == 2
    assert "--to PROJECT" in refused.err
    asked = run("projects", "attach", str(other), "--to", known)
    assert (asked.code, "Nothing was attached" in asked.err) == (1, True)
    assert run("projects", "attach", str(other), "--to", known, "--yes").code == 0
    assert "heron" in run("search", "heron", "--project", str(other)).out
    assert "already" in run("projects", "attach", str(other), "--to", known).out


def test_without_saying_which_it_is_the_one_with_the_same_remote(
    run: Run, data: Path, tmp_path: Path
) -> None:
    url = "https://forge.example/team/app.git"
    for name in ("one", "claims"):
        git(repository(tmp_path / name), "remote", "add", "origin", url)
        git(tmp_path / name, "commit", "-q", "--allow-empty", "--amend", "-m", name)
    run("add", "the heron stands in the pond", "--project", str(tmp_path / "one"))
    settle(data)
    assert run("search", "heron", "--project", str(tmp_path / "claims")).code == 1
    assert run("projects", "attach", str(tmp_path / "claims"), "--yes").code == 0
    assert "heron" in run("search", "heron", "--project", str(tmp_path / "claims")).out


def test_nothing_of_a_paused_project_is_stored(run: Run, project: str, data: Path) -> None:
    lived(data, project, "count the walruses", "s-one")
    assert run("pause").code == 0
    assert "paused" in run("projects").out
    lived(data, project, "count the secret herons", "s-one")
    lived(data, project, "count more secret herons", "s-two")
    assert run("search", "herons").code == 1
    with closing(sqlite3.connect(data / "backstory.db")) as db:
        assert not [line for line in db.iterdump() if "heron" in line]
    assert "walruses" in run("search", "walruses").out
    assert run("resume").code == 0
    lived(data, project, "count the storks", "s-three")
    assert "storks" in run("search", "storks").out
    assert run("search", "herons").code == 1


def test_sessions_turns_and_memories_are_counted_alike_everywhere(run: Run, project: str, data: Path) -> None:
    lived(data, project, "count the walruses", "s-one")
    lived(data, project, "count the secret herons", "s-two")
    lived(data, project, "count the storks", "s-three")
    run("add", "the heron stands in the pond")
    run("forget", "--session", "s-two", "--yes")
    (of_project,) = run("projects", "--json").json
    of_sessions = run("sessions", "--json").json
    of_all = run("status", "--json").json["memory"]
    assert [one["id"] for one in of_sessions] == ["s-three", "s-one"]
    for counted in (of_project, of_all):
        assert (counted["sessions"], counted["turns"], counted["memories"]) == (2, 2, 1)
    assert [(one["turns"], one["memories"]) for one in of_sessions] == [(1, 0), (1, 0)]
    assert "2 sessions, 2 turns, 1 memory" in run("status").out
    assert "s-one  active, 1 turn, 0 memories, 0 traces" in run("sessions", "s-one").out


def test_a_project_has_another_name(run: Run, project: str) -> None:
    run("add", "the heron stands in the pond")
    assert run("projects", "rename", ".", "  my \n birds ").code == 0
    assert names(run) == ["my birds"]
    assert run("projects", "rename", "my birds", " ").code == 2


@pytest.mark.parametrize("command", ["merge nothing .", "rename nothing x"])
def test_a_project_that_is_not_there_is_said_to_be_listed(command: str, run: Run) -> None:
    run("add", "the heron stands in the pond")
    said = run("projects", *command.split())
    assert said.code == 1
    assert "`backstory projects` lists them" in said.err


def test_two_projects_of_one_name_are_told_apart(run: Run, tmp_path: Path) -> None:
    for parent in ("a", "b"):
        (tmp_path / parent / "api").mkdir(parents=True)
        run("add", f"the {parent} heron", "--project", str(tmp_path / parent / "api"))
    said = run("projects", "rename", "api", "x")
    assert said.code == 2
    assert str(tmp_path / "a" / "api") in said.err
    assert run("projects", "rename", str(tmp_path / "a" / "api"), "x").code == 0


def test_a_search_everywhere_says_where_it_was_found(run: Run, project: str, other: Path) -> None:
    run("add", "the heron stands in the pond")
    run("add", "the walrus of the other project sleeps", "--project", str(other))
    assert run("search", "walrus").code == 1
    found = run("search", "walrus", "--everywhere")
    assert f"in other  {other}" in found.out
    (hit,) = run("search", "walrus", "--everywhere", "--json").json
    assert hit["project"]["root"] == str(other)
    own = run("search", "heron", "--everywhere").out
    assert "in " + Path(project).name not in own
    assert run("search", hit["id"], "--everywhere").code == 0
    assert run("search", hit["id"]).code == 1


@pytest.mark.slow
def test_a_model_searches_everywhere_only_where_the_user_allows_it(
    run: Run, project: str, other: Path, data: Path
) -> None:
    run("add", "the heron stands in the pond")
    run("add", "the walrus of the other project sleeps", "--project", str(other))
    with serving(data, Path(project)) as server:
        assert "knows no 'everywhere'" in server.refusal("memory_search", query="walrus", everywhere=True)
        assert server.search("walrus") == []
    for value, allowed in (("on", True), ("yes please", False), ("off", False)):
        with serving(data, Path(project), env={"BACKSTORY_RECALL_EVERYWHERE": value}) as server:
            assert server.search("walrus") == [], "only where it asks for it"
            if allowed:
                found = server.ask("memory_search", query="walrus", everywhere=True)
                assert "Project: other (another one)" in found
                assert len(server.search("walrus", everywhere=True)) == 1
            else:
                assert "knows no" in server.refusal("memory_search", query="walrus", everywhere=True)


def test_hostile_names_do_nothing_in_a_terminal(run: Run, tmp_path: Path) -> None:
    evil = tmp_path / "a\x1b[2Jb"
    evil.mkdir()
    run("add", "the heron", "--project", str(evil))
    for command in (("projects",), ("search", "heron", "--everywhere")):
        assert "\x1b[2J" not in run(*command).out


def test_the_latest_used_comes_first(run: Run, project: str, other: Path) -> None:
    run("add", "the heron")
    time.sleep(0.01)
    run("add", "the walrus", "--project", str(other))
    assert names(run) == ["other", Path(project).name]
    time.sleep(0.01)
    run("add", "the stork")
    assert names(run) == [Path(project).name, "other"]


def test_who_finds_nothing_in_a_folder_that_was_moved_is_told_how_to_attach_it(
    run: Run, tmp_path: Path
) -> None:
    old, new = tmp_path / "old" / "zoo", tmp_path / "new" / "zoo"
    old.mkdir(parents=True)
    run("add", "the heron stands in the pond", "--project", str(old))
    new.parent.mkdir()
    old.rename(new)
    known = run("projects", "--json").json[0]["id"]
    said = run("search", "heron", "--project", str(new))
    assert said.code == 1
    assert f"backstory projects attach --to {known}" in said.err
    assert run("projects", "attach", str(new), "--yes").code == 0
    assert "heron" in run("search", "heron", "--project", str(new)).out


def test_a_deleted_project_leaves_nothing_and_the_others_stay(
    run: Run, project: str, other: Path, data: Path
) -> None:
    run("add", "the heron stands in the pond")
    lived(data, other, "count the secret walruses", "s-other")
    run("add", "a walrus note", "--project", str(other))
    asked = run("projects", "delete", "other")
    assert (asked.code, "1 session" in asked.out) == (1, True)
    assert sorted(names(run)) == sorted(["other", Path(project).name])
    assert run("projects", "delete", "other", "--dry-run").code == 0
    done = run("projects", "delete", "other", "--yes")
    assert (done.code, "is deleted" in done.out) == (0, True)
    assert names(run) == [Path(project).name]
    for path in data.rglob("*"):
        assert not path.is_file() or b"walrus" not in path.read_bytes(), path
    lived(data, other, "count the secret walruses", "s-other")
    assert "heron" in run("search", "heron").out
    assert run("projects", "delete", "other", "--yes").code == 0, "a new one, of what came later"


def test_a_project_without_anything_in_it_is_deleted_too(run: Run, other: Path) -> None:
    made = run("add", "the heron", "--project", str(other)).id
    run("erase", made, "--project", str(other), "--yes")
    assert names(run) == ["other"]
    assert run("projects", "delete", "other", "--yes").code == 0
    assert run("projects").code == 1


def test_a_project_whose_folder_is_gone_is_named_by_that_or_its_name_or_id(
    run: Run, tmp_path: Path, data: Path
) -> None:
    for form in ("plain", "git"):
        gone = tmp_path / form / "zoo"
        repository(gone) if form == "git" else gone.mkdir(parents=True)
        lived(data, gone, f"count the {form} walruses", f"s-{form}")
        made = run("sessions", "--project", str(gone), "--json").json
        assert [one["id"] for one in made] == [f"s-{form}"]
        gone.rename(tmp_path / form / "elsewhere")
        known = next(one["id"] for one in run("projects", "--json").json if str(gone) in one["paths"])
        for named in (str(gone), known):
            assert "walruses" in run("search", "walruses", "--project", named).out
            assert f"s-{form}"[:8] in run("sessions", "--project", named).out
    assert "more than one project" in run("sessions", "--project", "zoo").err
    refused = run("search", "walruses", "--project", "nowhere")
    assert (refused.code, "no project is called so" in refused.err) == (2, True)


def test_a_memory_of_another_project_is_shown_but_not_changed_from_here(run: Run, other: Path) -> None:
    run("add", "the heron")
    made = run("add", "the walrus sleeps", "--project", str(other)).id
    assert "walrus sleeps" in run("show", made).out
    assert "walrus sleeps" in run("timeline", made).out
    refused = run("forget", made)
    assert (refused.code, "of another project" in refused.err) == (1, True)


def test_who_asks_for_a_session_as_if_it_were_a_memory_is_told(run: Run, project: str, data: Path) -> None:
    lived(data, project, "count the walruses", "abcdef12")
    assert "backstory sessions abcdef12" in run("show", "abcdef12").err


def test_a_folder_is_paused_before_its_first_session(run: Run, project: str, data: Path) -> None:
    assert run("pause").code == 0
    lived(data, project, "count the secret walruses", "s-one")
    assert run("search", "walruses").code == 1
    assert run("sessions").code == 1


def test_what_was_split_off_by_its_folder_is_what_that_folder_sees(
    run: Run, project: str, other: Path, data: Path
) -> None:
    lived(data, project, "count the herons", "s-one")
    lived(data, other, "count the walruses", "s-two")
    run("projects", "merge", "other", ".", "--yes")
    run("projects", "split", "--under", str(other), "--new", "zoo", "--yes")
    lived(data, other, "count the storks", "s-three")
    assert "walruses" in run("search", "walruses", "--project", str(other)).out
    assert "storks" in run("search", "storks", "--project", "zoo").out
    assert run("search", "storks").code == 1


def test_the_project_of_this_folder_is_marked(run: Run, project: str, other: Path) -> None:
    run("add", "the heron")
    run("add", "the walrus", "--project", str(other))
    marked = [line for line in run("projects").out.splitlines() if " * " in line]
    assert len(marked) == 1
    assert marked[0].startswith(Path(project).name)


def test_a_folder_that_is_no_project_is_told_of_those_there_are(run: Run, other: Path) -> None:
    run("add", "the walrus", "--project", str(other))
    for command in (("search", "walrus"), ("sessions",), ("list",)):
        said = run(*command).err
        assert "`backstory projects` lists" in said
        assert "--everywhere" in said


def paused_lines(data: Path) -> list[str]:
    file = data / "paused"
    return file.read_text().splitlines() if file.exists() else []


def test_hooks_find_every_folder_of_what_is_paused_and_nothing_once_it_is_resumed(
    run: Run, project: str, other: Path, data: Path, tmp_path: Path
) -> None:
    repository(tmp_path / "repo")
    git(tmp_path / "repo", "worktree", "add", str(tmp_path / "linked"))
    (tmp_path / "a link").symlink_to(other)
    assert run("pause", "--project", str(tmp_path / "repo")).code == 0
    assert run("pause", "--project", str(tmp_path / "a link")).code == 0
    assert paused_lines(data) == sorted(map(str, (tmp_path / "linked", other, tmp_path / "repo")))
    assert (data / "paused").stat().st_mode & 0o777 == 0o600
    run("pause", "--all")
    assert "*" in paused_lines(data)
    assert "`backstory resume --all`" in run("resume", "--project", "other").out, "all of it still is"
    assert paused_lines(data) == ["*", str(tmp_path / "linked"), str(tmp_path / "repo")]
    run("projects", "delete", "repo", "--yes")
    assert paused_lines(data) == ["*"]
    run("resume", "--all")
    assert not (data / "paused").exists()
    assert run("pause", "--all", "--project", ".").code == 2


def test_what_happened_during_a_pause_is_not_stored_afterwards_either(
    run: Run, project: str, data: Path
) -> None:
    """As it would be from a transcript, which knows nothing of a pause."""
    run("pause", "--all")
    during = int(time.time() * 1000)
    run("resume", "--all")
    common = {"session_id": "s-one", "cwd": project}
    put(data, prompt("count the secret herons", **common), at=during)
    put(data, prompt("count the storks", **common), at=during + 60_000)
    assert [one["prompt"] for one in run("sessions", "s-one", "--json").json["prompts"]] == [
        "count the storks"
    ]


def test_doctor_says_what_is_paused_and_mends_what_hooks_were_told(
    run: Run, project: str, data: Path
) -> None:
    run("pause")
    (data / "paused").write_text("/nowhere\n")
    (check,) = (one for one in run("doctor", "--json").json if one["name"] == "capture")
    assert check["level"] == "warn" and "api paused" in check["finding"]
    assert paused_lines(data) == [project]
