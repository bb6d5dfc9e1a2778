"""Whose a section is goes with the file: clones, pulls, renames, worktrees, merges; and what a person and the
program change in different places is both kept."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from backstory import dirty, paths
from backstory.claude_md.write import sections
from backstory.store import claude_files, projects
from backstory.store.file.connection import connect, transaction
from tests.conftest import Run
from tests.helpers.claude_md_project import (
    NEW_COMMAND,
    change,
    commit,
    make,
    run_git,
    section,
    snapshot,
    write,
)
from tests.helpers.managed_file import NOW, Desk, git, owned

pytestmark = pytest.mark.slow

FIVE = "## Commands\n- one\n- two\n- three\n- four\n- five"


@pytest.fixture
def project(fixed_project: Path) -> Path:
    return fixed_project


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Go to a folder on a colleague's machine, whose store knows nothing."""

    def go(folder: Path) -> None:
        monkeypatch.setenv("BACKSTORY_HOME", str(tmp_path / "another"))
        monkeypatch.chdir(folder)

    return go


def states(run: Run) -> dict[str, tuple[str | None, bool, bool]]:
    """Who wrote each section, whether a person edited it, whether git left a conflict in it."""
    listed = run("claude-md", "section", "list", "--json").json["sections"]
    return {one["name"]: (one["author"], one["edited"], one["conflict"]) for one in listed}


def all_ours(run: Run) -> bool:
    return {(author, edited) for author, edited, _ in states(run).values()} == {("program", False)}


def edit(project: Path, old: str, new: str) -> None:
    """What a person does."""
    path = project / "CLAUDE.md"
    text = path.read_bytes()
    assert old.encode() in text
    path.write_bytes(text.replace(old.encode(), new.encode(), 1))


def clone(project: Path, to: Path) -> Path:
    run_git(project.parent, "clone", "-q", str(project), str(to))
    return to


# --- the line -----------------------------------------------------------------------------------------------


def test_each_section_that_init_writes_says_who_wrote_it_and_what(run: Run, ready: Path) -> None:
    text = (ready / "CLAUDE.md").read_bytes()
    found = sections.parse(text).sections
    assert len(found) > 4
    for one in found:
        body = sections.body(text, one)
        assert text[one.body_start :].startswith(owned(body).encode())
        assert "backstory:" not in run("claude-md", "section", "get", one.name).out


def test_a_model_that_hands_back_the_line_too_does_not_write_it_twice(run: Run, ready: Path) -> None:
    text = owned("Fish in.", "program")
    assert run("claude-md", "section", "set", "architecture", stdin=text).code == 0
    assert section(ready, "architecture") == "Fish in."
    line = owned("Fish in.", "model").replace(" -->", ", facts [0-9a-f]{12} -->")
    begin, end = "<!-- AUTO-MANAGED: architecture -->\n", "<!-- END AUTO-MANAGED -->\n"
    assert len(re.findall(f"{begin}{line}{end}", (ready / "CLAUDE.md").read_text())) == 1


def test_what_a_text_was_written_on_stands_in_its_line_until_another_is_written(desk: Desk) -> None:
    from backstory.claude_md.write import managed

    given = (desk.db, str(desk.data), str(desk.file), "patterns")
    assert managed.put(*given, "Prose.", author="model", now=NOW, facts="8c1d2e3f4a5b") == "written"
    owner = desk.state().owner
    assert owner is not None
    assert (owner.author, owner.facts) == ("model", "8c1d2e3f4a5b")
    assert ", facts 8c1d2e3f4a5b -->\nProse.\n" in desk.file.read_text()
    assert desk.put("Prose.") == "unchanged"
    assert desk.state().owner == owner
    assert managed.put(*given, "Prose.", author="model", now=NOW, facts="0" * 12) == "unchanged"
    assert ", facts 000000000000 -->\nProse.\n" in desk.file.read_text()
    assert desk.put("More prose.") == "written"
    owner = desk.state().owner
    assert owner is not None
    assert owner.facts is None


# --- where the file goes ------------------------------------------------------------------------------------


def test_a_clone_on_a_colleagues_machine_knows_what_is_ours_without_init(
    run: Run, ready: Path, tmp_path: Path, elsewhere: Callable[[Path], None]
) -> None:
    run("claude-md", "section", "set", "architecture", stdin="Fish in, walrus out.\n")
    edit(ready, "- Test: `pytest`", "- Test: `pytest -x`")
    commit(ready, "docs: say more")
    elsewhere(clone(ready, tmp_path / "clone"))
    assert run("sync", "--yes").code == 0
    assert (tmp_path / "clone" / dirty.NAME).exists()
    found = states(run)
    assert found.pop("architecture") == ("model", False, False)
    assert found.pop("build-commands") == ("program", True, False)
    assert set(found.values()) == {("program", False, False)}


@pytest.mark.parametrize("command", ["sync --yes", "status", "claude-md status", "claude-md section list"])
def test_in_a_clone_changes_are_tracked_from_the_first_command_on(
    run: Run, ready: Path, tmp_path: Path, elsewhere: Callable[[Path], None], command: str
) -> None:
    copy = clone(ready, tmp_path / "clone")
    elsewhere(copy)
    before = snapshot(copy)
    assert run(*command.split()).code == 0
    assert snapshot(copy) == {**before, dirty.NAME: b""}
    assert run_git(copy, "status", "--porcelain") == ""


def test_a_clone_of_a_project_that_is_not_ours_is_left_alone(
    run: Run, project: Path, tmp_path: Path, elsewhere: Callable[[Path], None]
) -> None:
    write(
        project, {"CLAUDE.md": "<!-- AUTO-MANAGED: patterns -->\nby another tool\n<!-- END AUTO-MANAGED -->"}
    )
    commit(project, "docs: by another tool")
    elsewhere(clone(project, tmp_path / "clone"))
    ran = run("sync", "--yes")
    assert (ran.code, "backstory init" in ran.err) == (1, True)
    assert not (tmp_path / "clone" / ".claude").exists()


def test_who_deletes_the_list_is_not_tracked_again_by_looking(run: Run, ready: Path) -> None:
    (ready / dirty.NAME).unlink()
    for command in (["sync", "--yes"], ["claude-md", "status"]):
        assert "backstory init" in run(*command).err
    assert run("claude-md", "section", "list").code == 0
    assert not (ready / dirty.NAME).exists()


def test_a_pull_of_what_a_colleague_synced_is_no_edit(
    run: Run, ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = clone(ready, tmp_path / "clone")
    with monkeypatch.context() as there:
        there.setenv("BACKSTORY_HOME", str(tmp_path / "another"))
        there.chdir(copy)
        change(copy, "pyproject.toml", NEW_COMMAND, listed=False)
        assert run("sync", "--yes").code == 0
        commit(copy, "build: check with ruff")
    run_git(ready, "pull", "-q", str(copy), "HEAD")
    monkeypatch.chdir(ready)
    assert all_ours(run)
    change(ready, "Makefile", "lint:\n\tflake8\n")
    assert run("sync", "--yes", "--json").json["files"][0]["sections"]["build-commands"] == "written"


def test_a_rebase_over_a_sync_is_no_edit(run: Run, ready: Path) -> None:
    run_git(ready, "switch", "-q", "-c", "feature")
    change(ready, "kitchen/__init__.py", '"""Where fish is prepared."""\n')
    run("sync", "--yes")
    commit(ready, "feat: a kitchen")
    run_git(ready, "switch", "-q", "-")
    change(ready, "pyproject.toml", NEW_COMMAND)
    run("sync", "--yes")
    commit(ready, "build: check with ruff")
    run_git(ready, "switch", "-q", "feature")
    run_git(ready, "rebase", "-q", "-")
    assert all_ours(run)
    assert "ruff" in section(ready, "build-commands")
    assert "kitchen" in section(ready, "architecture")


def test_a_folder_that_is_renamed_keeps_what_is_whose(
    run: Run, ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(ready, "- Test: `pytest`", "- Test: `pytest -x`")
    commit(ready, "docs: stop at the first")
    moved = tmp_path / "sea lion"
    shutil.copytree(ready, moved, symlinks=True)
    monkeypatch.chdir(moved)
    found = states(run)
    assert found.pop("build-commands") == ("program", True, False)
    assert set(found.values()) == {("program", False, False)}
    change(moved, "Makefile", "run:\n\t./walrus\n")
    assert run("sync", "--yes", "--json").json["files"][0]["sections"]["build-commands"] in (
        "written",
        "offered",
    )
    assert "pytest -x" in section(moved, "build-commands")


def test_a_file_checked_out_with_crlf_is_no_edit(run: Run, ready: Path) -> None:
    run_git(ready, "config", "core.autocrlf", "true")
    (ready / "CLAUDE.md").unlink()
    run_git(ready, "checkout", "-q", "--", "CLAUDE.md")
    assert b"\r\n" in (ready / "CLAUDE.md").read_bytes()
    assert all_ours(run)
    change(ready, "pyproject.toml", NEW_COMMAND)
    run("sync", "--yes")
    text = (ready / "CLAUDE.md").read_bytes()
    assert b"ruff" in text
    assert text.count(b"\n") == text.count(b"\r\n")
    assert all_ours(run)


def test_an_editor_that_strips_blanks_and_adds_lines_makes_no_edit(run: Run, ready: Path) -> None:
    text = (ready / "CLAUDE.md").read_text()
    (ready / "CLAUDE.md").write_text(text.replace("\n<!-- END AUTO", "  \n\n\n<!-- END AUTO"))
    assert all_ours(run)


def test_blank_lines_of_a_formatter_make_no_edit_and_stay(run: Run, ready: Path) -> None:
    file = ready / "CLAUDE.md"
    text = file.read_text().replace("<!-- END AUTO", "\n<!-- END AUTO")
    formatted = re.sub(r"^((?:## |<!-- backstory: by).*)\n", r"\1\n\n", text, flags=re.MULTILINE)
    assert formatted.count("\n\n") > 10
    file.write_text(formatted)
    assert all_ours(run)
    assert run("sync", "--all", "--offline", "--yes").code == 0
    assert file.read_text() == formatted
    change(ready, "pyproject.toml", NEW_COMMAND)
    assert run("sync", "--all", "--offline", "--yes").code == 0
    assert all_ours(run) and file.read_text() != formatted
    made = file.read_text().partition("AUTO-MANAGED: build-commands -->\n")[2].partition("MANAGED")[0]
    assert re.fullmatch(r"<!-- .* -->\n\n## Build Commands\n\n(?:- .*\n)+\n<!-- END AUTO-", made)


def test_a_worktree_is_initialised_with_its_repository(
    run: Run, ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_git(ready, "worktree", "add", "-q", str(tmp_path / "fix"), "-b", "fix")
    monkeypatch.chdir(tmp_path / "fix")
    assert run("sync", "--yes").out == "Up to date: CLAUDE.md\n"
    assert run_git(tmp_path / "fix", "status", "--porcelain") == ""
    change(tmp_path / "fix", "pyproject.toml", NEW_COMMAND)
    assert run("sync", "--yes", "--json").json["root"] == str(tmp_path / "fix")
    assert "ruff" in section(tmp_path / "fix", "build-commands")
    assert "ruff" not in section(ready, "build-commands")


def test_a_worktree_whose_branch_has_no_claude_md_is_initialised_too(
    run: Run, ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = run_git(ready, "rev-list", "--max-parents=0", "HEAD").strip()
    run_git(ready, "worktree", "add", "-q", str(tmp_path / "old"), old)
    assert not (tmp_path / "old" / "CLAUDE.md").exists()
    monkeypatch.chdir(tmp_path / "old")
    assert "backstory init" in run("sync", "--yes").err
    assert (tmp_path / "old" / dirty.NAME).exists()


def test_a_worktree_of_a_project_whose_tracking_was_ended_is_not_tracked(
    run: Run, ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_git(ready, "worktree", "add", "-q", str(tmp_path / "fix"), "-b", "fix")
    assert dirty.adopt(str(tmp_path / "fix"), lambda path: True) == str(tmp_path / "fix")
    (tmp_path / "fix" / dirty.NAME).unlink()
    (ready / dirty.NAME).unlink()
    assert dirty.adopt(str(tmp_path / "fix"), lambda path: True) is None


def test_a_submodule_is_a_project_of_its_own(
    run: Run, ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    above = make(tmp_path / "above")
    run_git(above, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(ready), "walruses")
    commit(above, "feat: walruses")
    inner = above / "walruses"
    before = (inner / "CLAUDE.md").read_bytes()
    monkeypatch.chdir(above)
    assert "backstory init" in run("sync", "--yes").err
    assert run("init", "--yes", "--offline", "--no-subtrees").code == 0
    told = run("sync", "--all", "--offline", "--yes", "--json").json
    assert [file["path"] for file in told["files"]] == ["CLAUDE.md"]
    ran = run("claude-md", "section", "get", "patterns", "--in", "walruses/CLAUDE.md")
    assert (ran.code, "--project" in ran.err) == (2, True)
    assert (inner / "CLAUDE.md").read_bytes() == before
    monkeypatch.chdir(inner)
    told = run("sync", "--yes", "--json").json
    assert (told["root"], [file["path"] for file in told["files"]]) == (str(inner), ["CLAUDE.md"])
    assert (inner / "CLAUDE.md").read_bytes() == before


def test_managed_files_below_are_found_by_looking(
    run: Run, project: Path, tmp_path: Path, elsewhere: Callable[[Path], None]
) -> None:
    write(project, {"sea/__init__.py": '"""The sea."""\n', "sea/fish.py": "", "shore/CLAUDE.md": "# Mine\n"})
    assert run("init", "--yes", "--offline", "--subtree", "sea").code == 0
    commit(project, "feat: the sea")
    elsewhere(clone(project, tmp_path / "clone"))
    (tmp_path / "clone/sea/__init__.py").write_text('"""The ocean."""\n')
    told = run("sync", "--yes", "--json").json
    assert [file["path"] for file in told["files"]] == ["CLAUDE.md", "sea/CLAUDE.md"]
    assert "The ocean" in section(tmp_path / "clone", "module-description", "sea/CLAUDE.md")


def test_sections_in_the_claude_folder_are_found(
    run: Run, ready: Path, tmp_path: Path, elsewhere: Callable[[Path], None]
) -> None:
    (ready / ".claude").mkdir(exist_ok=True)
    (ready / "CLAUDE.md").rename(ready / ".claude/CLAUDE.md")
    commit(ready, "docs: put it away")
    elsewhere(clone(ready, tmp_path / "clone"))
    change(tmp_path / "clone", "pyproject.toml", NEW_COMMAND, listed=False)
    told = run("sync", "--yes", "--json").json
    assert [file["path"] for file in told["files"]] == [".claude/CLAUDE.md"]
    assert "ruff" in section(tmp_path / "clone", "build-commands", ".claude/CLAUDE.md")
    assert run("claude-md", "section", "get", "build-commands").code == 0


# --- both edited it -----------------------------------------------------------------------------------------


def test_edits_of_a_person_and_the_program_in_different_places_are_both_kept(desk: Desk) -> None:
    desk.put(FIVE, author="program")
    desk.edit("- one\n", "- one, by hand\n")
    assert desk.put(FIVE.replace("- five", "- five\n- six"), author="program") == "written"
    assert desk.body() == FIVE.replace("- one", "- one, by hand").replace("- five", "- five\n- six")
    assert desk.facts() == ("program", True, None)
    assert desk.put(FIVE.replace("- four", "- 4").replace("- five", "- five\n- six"), author="program") == (
        "written"
    )
    assert desk.body() == "## Commands\n- one, by hand\n- two\n- three\n- 4\n- five\n- six"
    assert desk.put(FIVE.replace("- one", "- 1"), author="program") == "offered"
    assert "by hand" in desk.body()


def test_what_a_person_added_stays_when_the_project_goes_back(desk: Desk) -> None:
    desk.put(FIVE, author="program")
    desk.edit("- one\n", "- one\n- by hand\n")
    desk.put(FIVE.replace("- five", "- 5"), author="program")
    assert desk.put(FIVE, author="program") == "written"
    assert desk.body() == FIVE.replace("- one", "- one\n- by hand")
    assert desk.put(FIVE, author="program") == "unchanged"


def test_what_a_person_edited_is_backed_up_before_it_is_merged(desk: Desk) -> None:
    desk.put(FIVE, author="program")
    desk.edit("- one\n", "- one, by hand\n")
    before = desk.file.read_bytes()
    desk.put(FIVE.replace("- five", "- 5"), author="program")
    assert before in [path.read_bytes() for path in desk.data.glob("backups/claude-md/*/*.md")]


def test_a_person_who_takes_the_edit_back_leaves_a_section_that_is_ours(desk: Desk) -> None:
    desk.put(FIVE, author="program")
    desk.edit("- one\n", "- one\n- by hand\n")
    desk.put(FIVE.replace("- five", "- 5"), author="program")
    desk.edit("- by hand\n", "")
    assert desk.facts() == ("program", False, None)


def test_what_a_person_wrote_in_advance_is_ours_once_it_is_computed(desk: Desk) -> None:
    desk.put(FIVE, author="program")
    desk.edit("- five\n", "- five\n- six\n")
    assert desk.put(FIVE + "\n- six", author="program") == "unchanged"
    assert desk.facts() == ("program", False, None)


def test_a_line_break_that_a_person_made_with_two_blanks_is_kept(desk: Desk) -> None:
    desk.put(FIVE, author="program")
    desk.edit("- one\n", "- one, by hand  \n  and more\n")
    assert desk.put(FIVE.replace("- five", "- 5"), author="program") == "written"
    assert b"- one, by hand  \n  and more\n" in desk.file.read_bytes()


def test_an_edit_that_would_be_made_harmless_is_not_merged(desk: Desk) -> None:
    """A person may import a file on purpose; a backslash before the `@` would end that."""
    desk.put(FIVE, author="program")
    desk.edit("- one\n", "- one\n\n@docs/rules.md\n\n")
    before = desk.file.read_bytes()
    assert desk.put(FIVE.replace("- five", "- 5"), author="program") == "offered"
    assert desk.file.read_bytes() == before


def test_a_model_that_builds_on_a_persons_edit_does_not_make_it_its_own(desk: Desk) -> None:
    desk.put(FIVE)
    desk.edit("- one\n", "- one, by hand\n")
    assert desk.put(desk.body().replace("- five", "- five\n- six")) == "written"
    assert desk.facts() == ("model", True, None)
    assert desk.put(FIVE.replace("- one", "- another one")) == "offered"
    assert "- one, by hand" in desk.body()


def test_an_edit_and_a_change_elsewhere_are_merged_by_sync(run: Run, ready: Path) -> None:
    edit(ready, "## Build Commands\n", "## Build Commands\nAsk the keeper first.\n\n")
    change(ready, "pyproject.toml", NEW_COMMAND)
    ran = run("sync", "--yes")
    assert "Written: build-commands" in ran.out
    assert "-Ask the keeper" not in ran.out
    assert "+- Lint: `ruff check`" in ran.out
    said = section(ready, "build-commands")
    assert said.startswith("## Build Commands\nAsk the keeper first.\n\n- ")
    assert "`ruff check`" in said
    assert states(run)["build-commands"] == ("program", True, False)
    assert run("sync", "--yes").out == "Up to date: CLAUDE.md\n"


def test_in_a_clone_the_base_of_a_merge_comes_from_gits_history(
    run: Run, ready: Path, tmp_path: Path, elsewhere: Callable[[Path], None]
) -> None:
    edit(ready, "## Build Commands\n", "## Build Commands\nAsk the keeper first.\n\n")
    commit(ready, "docs: ask the keeper")
    copy = clone(ready, tmp_path / "clone")
    elsewhere(copy)
    change(copy, "pyproject.toml", NEW_COMMAND, listed=False)
    assert run("sync", "--yes", "--json").json["files"][0]["sections"]["build-commands"] == "written"
    said = section(copy, "build-commands")
    assert "Ask the keeper first." in said
    assert "`ruff check`" in said


def test_in_a_clone_the_base_is_known_though_it_was_only_committed_with_an_edit_in_it(
    run: Run, ready: Path, tmp_path: Path, elsewhere: Callable[[Path], None]
) -> None:
    edit(ready, "## Build Commands\n", "## Build Commands\nAsk the keeper first.\n\n")
    commit(ready, "docs: ask the keeper")
    for text in ("lint:\n\tflake8\n", "lint:\n\tflake8\nrun:\n\t./walrus\n"):
        write(ready, {"Makefile": text})
        assert "Written: build-commands" in run("sync", "--yes").out
        commit(ready, "build: more of it")
    copy = clone(ready, tmp_path / "clone")
    elsewhere(copy)
    write(copy, {"Makefile": "lint:\n\tflake8\n"})
    assert run("sync", "--yes", "--json").json["files"][0]["sections"]["build-commands"] == "written"
    said = section(copy, "build-commands")
    assert "keeper first." in said
    assert "make run" not in said


def test_where_no_base_is_known_the_new_text_is_offered(
    run: Run, ready: Path, tmp_path: Path, elsewhere: Callable[[Path], None]
) -> None:
    edit(ready, "## Build Commands\n", "## Build Commands\nAsk the keeper first.\n\n")
    commit(ready, "docs: ask the keeper")
    run_git(tmp_path, "clone", "-q", "--depth=1", f"file://{ready}", "clone")
    copy = tmp_path / "clone"
    elsewhere(copy)
    change(copy, "pyproject.toml", NEW_COMMAND, listed=False)
    before = section(copy, "build-commands")
    assert run("sync", "--yes", "--json").json["files"][0]["sections"]["build-commands"] == "offered"
    assert section(copy, "build-commands") == before


# --- git's conflicts ----------------------------------------------------------------------------------------


def conflict(ready: Path, *, style: str = "merge") -> None:
    run_git(ready, "config", "merge.conflictStyle", style)
    with pytest.raises(subprocess.CalledProcessError):
        run_git(ready, "merge", "-q", "feature")
    assert "<<<<<<<" in (ready / "CLAUDE.md").read_text()


def diverge(run: Run, ready: Path, here: Callable[[], None], there: Callable[[], None]) -> None:
    """Two branches, each with a commit of its own."""
    main = run_git(ready, "branch", "--show-current").strip()
    run_git(ready, "switch", "-q", "-c", "feature")
    there()
    commit(ready, "feat: there")
    run_git(ready, "switch", "-q", main)
    here()
    commit(ready, "feat: here")


def synced(run: Run, ready: Path, **files: str) -> Callable[[], None]:
    def do() -> None:
        write(ready, {name.replace("__", "/").replace("_", "."): text for name, text in files.items()})
        assert run("sync", "--yes").code == 0

    return do


@pytest.mark.parametrize("style", ["merge", "diff3", "zdiff3"])
def test_a_conflict_of_two_syncs_is_resolved_by_computing_anew(run: Run, ready: Path, style: str) -> None:
    diverge(
        run,
        ready,
        synced(run, ready, Makefile="lint:\n\tflake8\n"),
        synced(run, ready, Makefile="run:\n\t./walrus\n"),
    )
    conflict(ready, style=style)
    assert states(run)["build-commands"] == ("program", False, True)
    assert "merge conflict" in run("claude-md", "status").out
    (ready / "Makefile").write_text("lint:\n\tflake8\nrun:\n\t./walrus\n")
    ran = run("sync", "--yes", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["files"][0]["sections"]["build-commands"] == "written"
    text = (ready / "CLAUDE.md").read_text()
    assert "<<<<<<<" not in text
    assert ">>>>>>>" not in text
    assert "make lint" in section(ready, "build-commands")
    assert "make run" in section(ready, "build-commands")
    assert all_ours(run)


def long_section(run: Run, ready: Path) -> None:
    """A section with so much text between its ends that git merges these by themselves."""
    for name in "abcdefgh":
        write(ready, {f"{name}/__init__.py": f'"""Holds {name}."""\n', f"{name}/x.py": ""})
    assert run("sync", "--yes").code == 0
    commit(ready, "feat: folders")


def test_texts_that_git_merged_itself_are_ours_though_no_digest_fits_them(run: Run, ready: Path) -> None:
    """Only the two ownership lines are in the conflict."""
    long_section(run, ready)
    diverge(
        run,
        ready,
        synced(run, ready, aa__a_proto="x"),
        synced(run, ready, walruses__a_proto="x"),
    )
    conflict(ready)
    text = (ready / "CLAUDE.md").read_text()
    start = text.index("AUTO-MANAGED: architecture")
    within = text[start : text.index("<!-- END", start)]
    assert within.count("<<<<<<<") == 1
    assert "`aa/`" in within
    assert "`walruses/`" in within
    assert states(run)["architecture"] == ("program", False, True)
    ran = run("sync", "--yes", "--json")
    assert (ran.code, ran.json["files"][0]["sections"]["architecture"]) == (0, "written")
    assert "<<<<<<<" not in (ready / "CLAUDE.md").read_text()
    assert "`aa/`" in section(ready, "architecture")
    assert "`walruses/`" in section(ready, "architecture")


def test_a_rebase_that_stops_at_a_section_is_resolved_too(run: Run, ready: Path) -> None:
    diverge(
        run,
        ready,
        synced(run, ready, Makefile="lint:\n\tflake8\n"),
        synced(run, ready, Makefile="run:\n\t./walrus\n"),
    )
    with pytest.raises(subprocess.CalledProcessError):
        run_git(ready, "rebase", "-q", "feature")
    (ready / "Makefile").write_text("lint:\n\tflake8\nrun:\n\t./walrus\n")
    assert run("sync", "--yes").code == 0
    run_git(ready, "add", "-A")
    run_git(ready, "-c", "core.editor=true", "rebase", "--continue")
    assert all_ours(run)
    assert set(run("sync", "--yes", "--json").json["files"][0]["sections"].values()) == {"unchanged"}


def test_a_merge_driver_that_keeps_both_sides_leaves_no_edit(run: Run, ready: Path) -> None:
    write(ready, {".gitattributes": "* merge=union\n"})
    commit(ready, "build: keep both")
    diverge(
        run,
        ready,
        synced(run, ready, Makefile="lint:\n\tflake8\n"),
        synced(run, ready, kitchen__a_proto="x", Makefile="run:\n\t./walrus\n"),
    )
    run_git(ready, "merge", "-q", "feature", "-m", "merge")
    assert run("sync", "--yes").code == 0
    assert all_ours(run)


def test_a_conflict_across_sections_is_resolved_in_each(run: Run, ready: Path) -> None:
    """Git makes one conflict of two that are no more than three lines apart: with the markers in it."""
    diverge(
        run,
        ready,
        synced(run, ready, Makefile="lint:\n\tflake8\n", kitchen__a_proto="x"),
        synced(run, ready, Makefile="format:\n\tblack .\n", pond__a_proto="x"),
    )
    for name in ("build-commands", "architecture"):
        assert section(ready, name)
    conflict(ready)
    text = (ready / "CLAUDE.md").read_text()
    assert sections.parse(text.encode()).problems, "the markers are in the conflict"
    (ready / "Makefile").write_text("lint:\n\tflake8\n")
    ran = run("sync", "--yes")
    assert ran.code == 0, ran.err
    assert "<<<<<<<" not in (ready / "CLAUDE.md").read_text()
    assert sections.parse((ready / "CLAUDE.md").read_bytes()).problems == ()
    assert all_ours(run)


def test_a_conflict_whose_sides_have_other_sections_is_named_with_its_line(run: Run, ready: Path) -> None:
    def added(name: str) -> Callable[[], None]:
        def do() -> None:
            text = f"\n<!-- AUTO-MANAGED: {name} -->\n{owned(name)}<!-- END AUTO-MANAGED -->\n"
            (ready / "CLAUDE.md").write_text((ready / "CLAUDE.md").read_text() + text)

        return do

    diverge(run, ready, added("best-practices"), added("module-description"))
    conflict(ready)
    text = (ready / "CLAUDE.md").read_text()
    line = text[: text.index("<<<<<<<")].count("\n") + 1
    assert f"line {line}: git left a merge conflict here" in run("claude-md", "status").out
    change(ready, "pyproject.toml", NEW_COMMAND)
    ran = run("sync", "--yes")
    assert (ran.code, f"CLAUDE.md:{line} git left a merge conflict here" in ran.err) == (1, True)
    assert "`ruff check`" in section(ready, "build-commands")
    assert (ready / "CLAUDE.md").read_text().partition("<<<<<<<")[2] == text.partition("<<<<<<<")[2]


def test_a_conflict_with_a_persons_lines_in_it_is_offered(run: Run, ready: Path) -> None:
    def by_hand() -> None:
        edit(ready, "- Test: `pytest`", "- Test: `pytest -x`, says the keeper")

    diverge(run, ready, synced(run, ready, Makefile="test:\n\ttox\n"), by_hand)
    conflict(ready)
    before = (ready / "CLAUDE.md").read_bytes()
    ran = run("sync", "--yes", "--json")
    assert ran.code == 1
    assert "merge conflict in section build-commands" in ran.err
    assert ran.json["files"][0]["sections"]["build-commands"] == "offered"
    assert b"says the keeper" in (ready / "CLAUDE.md").read_bytes()
    assert (ready / "CLAUDE.md").read_bytes() == before
    assert run("claude-md", "section", "accept", "build-commands").code == 0
    assert "<<<<<<<" not in (ready / "CLAUDE.md").read_text()
    assert all_ours(run)


def test_a_line_that_a_person_took_out_is_not_brought_back_by_a_conflict(run: Run, ready: Path) -> None:
    synced(run, ready, Makefile="test:\n\ttox\nlint:\n\tuvx flake8\n")()
    commit(ready, "feat: lint")
    kept = "- Lint: `make lint` (from `Makefile`)\n"

    def by_hand() -> None:
        edit(ready, kept, "")

    more = "test:\n\ttox\nlint:\n\tuvx flake8\nformat:\n\tblack .\n"
    diverge(run, ready, synced(run, ready, Makefile=more), by_hand)
    conflict(ready)
    assert run("sync", "--yes", "--json").json["files"][0]["sections"]["build-commands"] == "offered"


def test_an_edit_that_could_not_be_merged_is_no_offer_where_nothing_is_new(desk: Desk) -> None:
    desk.put("- a\n- b", author="program")
    desk.edit("- a", "- a\n- See @docs/x.md")
    assert desk.put("- a\n- b", author="program") == "unchanged"
    assert desk.state().offered is None


def test_many_sections_of_others_take_no_time(desk: Desk) -> None:
    facts = "0" * 12
    others = "".join(
        f"<!-- AUTO-MANAGED: s{number} -->\n<!-- backstory: by program, digest {sections.short('x')},"
        f" facts {facts} -->\nx\n<!-- END AUTO-MANAGED -->\n"
        for number in range(1_000)
    )
    desk.file.write_text(desk.file.read_text() + others)
    start = time.process_time()
    desk.put("New.", author="program")
    assert time.process_time() - start < 5  # 18 s, where the file was parsed again for each of them
    assert others in desk.file.read_text()


def test_a_line_that_a_person_adds_while_resolving_is_not_lost(run: Run, ready: Path) -> None:
    diverge(
        run,
        ready,
        synced(run, ready, Makefile="lint:\n\tflake8\n"),
        synced(run, ready, Makefile="run:\n\t./walrus\n"),
    )
    conflict(ready)
    edit(ready, "=======\n", "- by the keeper\n=======\n")
    (ready / "Makefile").write_text("lint:\n\tflake8\n")
    assert run("sync", "--yes", "--json").json["files"][0]["sections"]["build-commands"] == "offered"
    assert "by the keeper" in (ready / "CLAUDE.md").read_text()


def test_a_conflict_in_a_models_prose_is_named_and_left(run: Run, ready: Path) -> None:
    def prose(text: str) -> Callable[[], None]:
        def do() -> None:
            assert run("claude-md", "section", "set", "architecture", stdin=text).code == 0

        return do

    diverge(run, ready, prose("Fish in, walrus out.\n"), prose("Walrus in, fish out.\n"))
    conflict(ready)
    before = (ready / "CLAUDE.md").read_bytes()
    assert states(run)["architecture"] == ("model", False, True)
    ran = run("sync", "--yes", "--json")
    assert (ran.code, "merge conflict in section architecture" in ran.err) == (1, True)
    assert (ready / "CLAUDE.md").read_bytes() == before
    said = run("claude-md", "section", "get", "architecture").out
    assert "Fish in, walrus out.\n=======\nWalrus in, fish out." in said
    assert run("claude-md", "section", "set", "architecture", stdin="Fish in and out.\n").code == 0
    assert section(ready, "architecture") == "Fish in and out."
    assert run("sync", "--yes").code == 0


def test_a_conflict_between_a_models_prose_and_what_is_computed_is_left_to_the_model(
    run: Run, ready: Path
) -> None:
    def prose() -> None:
        assert run("claude-md", "section", "set", "build-commands", stdin="make, and hope.\n").code == 0

    diverge(run, ready, synced(run, ready, Makefile="lint:\n\tflake8\n"), prose)
    conflict(ready)
    before = (ready / "CLAUDE.md").read_bytes()
    ran = run("sync", "--yes")
    assert (ran.code, "merge conflict in section build-commands" in ran.err) == (1, True)
    assert (ready / "CLAUDE.md").read_bytes() == before


def test_a_conflict_in_a_persons_own_text_is_left_as_it_is(run: Run, ready: Path) -> None:
    def note(text: str) -> Callable[[], None]:
        return lambda: edit(ready, "Add your custom notes here.", text)

    diverge(run, ready, note("Feed at noon."), note("Feed at dawn."))
    conflict(ready)
    before = (ready / "CLAUDE.md").read_bytes()
    assert run("sync", "--yes").out == "Up to date: CLAUDE.md\n"
    assert (ready / "CLAUDE.md").read_bytes() == before
    change(ready, "pyproject.toml", NEW_COMMAND)
    assert run("sync", "--yes").code == 0
    after = (ready / "CLAUDE.md").read_bytes()
    assert b"<<<<<<< HEAD\nFeed at noon." in after
    assert sections.theirs(after) == sections.theirs(before)


# --- hostile, and old ---------------------------------------------------------------------------------------


def test_a_forged_line_hands_over_its_section_and_nothing_else(run: Run, ready: Path) -> None:
    path = ready / "CLAUDE.md"
    before = path.read_text()
    marker = "<!-- AUTO-MANAGED: build-commands -->\n"
    start = before.index(marker) + len(marker)
    stop = before.index("<!-- END", start)
    path.write_text(before[:start] + owned("Mine, it claims.") + before[stop:])
    assert run("sync", "--yes").code == 0
    assert path.read_text() == before


@pytest.mark.parametrize(
    "line",
    [
        "<!-- backstory: by nobody, digest 0123456789ab -->",
        "<!-- backstory: by program, digest 0123 -->",
        "<!-- backstory: by program, digest ../../etc/passwd -->",
        "    <!-- backstory: by program, digest 0123456789ab -->",
        "text <!-- backstory: by program, digest 0123456789ab -->",
    ],
)
def test_what_only_looks_like_an_ownership_line_is_text(desk: Desk, line: str) -> None:
    desk.write(f"{line}\nBy hand.")
    assert desk.state().owner is None
    assert desk.state().is_edited
    assert desk.put("Computed.", author="program") == "offered"


def test_ownership_lines_outside_of_sections_mean_nothing(desk: Desk) -> None:
    desk.file.write_text(owned("Mine.") + desk.file.read_text())
    before = desk.file.read_text()
    assert desk.put("Computed.", author="program") == "written"
    desk.put("", author="program")
    assert desk.file.read_text() == before


def legacy(desk: Desk, name: str = "patterns") -> None:
    """The file and the store as a backstory leaves them that writes no ownership lines."""
    text = desk.file.read_bytes()
    (found,) = [one for one in sections.parse(text).sections if one.name == name]
    (owner,) = sections.owners(text, found)
    body = sections.body(text, found)
    desk.file.write_bytes(text.replace(f"{owner.line}\n".encode(), b""))
    (here,) = projects.every(desk.db)
    with transaction(desk.db):
        desk.db.execute(
            "INSERT INTO claude_texts (project, place, name, digest, author, at) VALUES (?, ?, ?, ?, ?, ?)",
            (here.number, "CLAUDE.md", name, sections.digest(body), owner.author, NOW),
        )


def test_a_section_of_an_older_backstory_is_known_by_the_store_and_gets_its_line(desk: Desk) -> None:
    desk.put("Older.", author="program")
    legacy(desk)
    older = desk.file.read_bytes()
    desk.put("make", "build-commands", author="model")
    assert owned("Older.") in desk.file.read_text()
    desk.put("Newer.", author="program")
    desk.file.write_bytes(older)  # with a branch
    assert desk.facts() == ("program", False, None)
    assert desk.put("Newest.", author="program") == "written"
    assert owned("Newest.") in desk.file.read_text()
    assert desk.db.execute("SELECT count(*) FROM claude_texts").fetchone()[0] == 1


def test_an_edit_of_a_section_of_an_older_backstory_is_offered_a_new_text(desk: Desk) -> None:
    desk.put(FIVE, author="program")
    legacy(desk)
    desk.edit("- one\n", "- one, by hand\n")
    assert desk.facts() == ("program", True, None)
    assert desk.put(FIVE.replace("- five", "- 5"), author="program") == "offered"


def test_sync_adds_the_lines_that_an_older_backstory_did_not_write(run: Run, ready: Path, data: Path) -> None:
    run("claude-md", "section", "set", "architecture", stdin="Fish in, walrus out.\n")
    whole = (ready / "CLAUDE.md").read_bytes()
    with closing(connect(paths.database(str(data)))) as db:
        desk = Desk(db, data, ready / "CLAUDE.md")
        for one in sections.parse(whole).sections:
            legacy(desk, one.name)
        assert b"backstory:" not in desk.file.read_bytes()
    ran = run("sync", "--yes")
    assert ran.out == "Up to date: CLAUDE.md\n"
    without_facts, count = re.subn(rb", facts [0-9a-f]{12} -->", b" -->", whole)  # it knew of none
    assert ((ready / "CLAUDE.md").read_bytes(), count) == (without_facts, 1)


def test_texts_of_an_older_backstory_belong_to_their_project_and_place(desk: Desk) -> None:
    desk.put("Ours.")
    legacy(desk)
    (here,) = projects.every(desk.db)
    digest = sections.digest("Ours.")
    assert claude_files.author(desk.db, here.number, "CLAUDE.md", "patterns", digest) == "model"
    assert claude_files.author(desk.db, here.number, "web/CLAUDE.md", "patterns", digest) is None


def test_the_next_session_in_a_worktree_tracks_what_changes(desk: Desk, tmp_path: Path) -> None:
    folder = desk.file.parent
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "begin")
    git(folder, "worktree", "add", "-q", str(tmp_path / "fix"), "-b", "fix")
    assert dirty.adopt(str(tmp_path / "fix"), lambda path: False) is None
    dirty.create(str(folder))
    (tmp_path / "fix" / "deep").mkdir()
    assert dirty.adopt(str(tmp_path / "fix" / "deep"), lambda path: False) == str(tmp_path / "fix")
    assert dirty.root_of(str(tmp_path / "fix" / "deep")) == str(tmp_path / "fix")
