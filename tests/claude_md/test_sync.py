"""`backstory sync`, in real projects."""

from __future__ import annotations

import json
import os
import shutil
import time
from functools import partial
from pathlib import Path

import pytest

from backstory import dirty
from backstory.claude_md import sync
from backstory.claude_md.learn import learn
from backstory.claude_md.read import files, git
from backstory.claude_md.write import managed, sections
from tests.conftest import Run
from tests.helpers.claude_md_project import (
    MODULE,
    NEW_COMMAND,
    change,
    commit,
    make,
    run_git,
    section,
    snapshot,
    write,
)

pytestmark = pytest.mark.slow


@pytest.fixture
def project(fixed_project: Path) -> Path:
    return fixed_project


# --- what changed -------------------------------------------------------------------------------------------


def test_a_changed_manifest_changes_the_build_commands(run: Run, ready: Path) -> None:
    change(ready, "pyproject.toml", NEW_COMMAND)
    ran = run("sync", "--yes", "--json")
    assert ran.code == 0, ran.err
    assert "`ruff check`" in section(ready, "build-commands")
    told = ran.json
    assert told["dirty"] == ["pyproject.toml"]
    assert told["outside"] == []
    (file,) = told["files"]
    assert file["path"] == "CLAUDE.md"
    assert file["sections"]["build-commands"] == "written"
    assert file["sections"]["architecture"] == "unchanged"
    assert (told["prose"], told["problems"]) == ([], [])


def test_only_what_differs_is_written_and_the_rest_of_the_file_stays(run: Run, ready: Path) -> None:
    before = (ready / "CLAUDE.md").read_bytes()
    change(ready, "pyproject.toml", NEW_COMMAND)
    run("sync", "--yes")
    after = (ready / "CLAUDE.md").read_bytes()
    assert sections.theirs(after) == sections.theirs(before)
    assert after != before


def test_a_sync_after_an_unrelated_edit_does_not_churn(run: Run, ready: Path) -> None:
    before = snapshot(ready)
    change(ready, "walrus/feeding_3.py", "\n\ndef feed_again(count: int) -> int:\n    return count\n")
    write(ready, {"walrus/feeding_99.py": MODULE.format(number=99)})
    commit(ready, "fix: feed it again")
    ran = run("sync", "--yes", "--json")
    assert set(ran.json["files"][0]["sections"].values()) == {"unchanged"}
    after = snapshot(ready)
    assert after["CLAUDE.md"] == before["CLAUDE.md"]
    assert dirty.read(str(ready)) == []


def test_where_a_project_takes_too_long_to_read_its_sections_stay_and_that_is_said(
    run: Run, ready: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (ready / "CLAUDE.md").read_bytes()
    monkeypatch.setattr(sync, "learn", partial(learn, seconds=-1))
    ran = run("sync", "--yes")
    assert ran.code == 1
    assert "CLAUDE.md stays as it is, since the project was not read whole" in ran.err
    assert (ready / "CLAUDE.md").read_bytes() == before


def test_where_a_project_is_not_seen_whole_its_sections_stay(
    run: Run, ready: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (ready / "CLAUDE.md").read_bytes()
    monkeypatch.setattr(files, "MOST", 12)  # entries of folders
    ran = run("sync", "--yes")
    assert (ran.code, "was not read whole" in ran.err) == (1, True)
    assert (ready / "CLAUDE.md").read_bytes() == before


def test_where_git_takes_too_long_the_sections_stay(
    run: Run, ready: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (ready / "CLAUDE.md").read_bytes()
    monkeypatch.setattr(git, "variables_read", lambda *_: None)
    assert run("sync", "--yes").code == 1
    assert (ready / "CLAUDE.md").read_bytes() == before


def test_a_new_folder_shows_in_the_architecture(run: Run, ready: Path) -> None:
    change(ready, "kitchen/__init__.py", '"""Where fish is prepared."""\n')
    run("sync", "--yes")
    assert "- `kitchen/`: Where fish is prepared" in section(ready, "architecture")


def test_what_was_changed_outside_of_claude_code_is_known_from_git(run: Run, ready: Path) -> None:
    change(ready, "pyproject.toml", NEW_COMMAND, listed=False)
    told = run("sync", "--yes", "--json").json
    assert (told["dirty"], told["outside"]) == ([], ["pyproject.toml"])
    assert "`ruff check`" in section(ready, "build-commands")
    assert run("sync", "--yes", "--json").json["outside"] == []


def test_what_was_committed_elsewhere_and_pulled_is_known_from_git(run: Run, ready: Path) -> None:
    change(ready, "pyproject.toml", NEW_COMMAND, listed=False)
    commit(ready, "build: check with ruff")
    old = time.time() - 1_000  # as a checkout may leave them
    os.utime(ready / "pyproject.toml", (old, old))
    told = run("sync", "--yes", "--json").json
    assert told["outside"] == ["pyproject.toml"]
    assert "`ruff check`" in section(ready, "build-commands")


def test_claude_md_itself_is_no_change(run: Run, ready: Path) -> None:
    with (ready / "CLAUDE.md").open("a") as file:
        file.write("\nMine.\n")
    told = run("sync", "--yes", "--json").json
    assert (told["dirty"], told["outside"]) == ([], [])
    assert (ready / "CLAUDE.md").read_text().endswith("\nMine.\n")


def test_without_changes_nothing_is_done(run: Run, ready: Path) -> None:
    before = snapshot(ready)
    ran = run("sync")
    assert (ran.code, ran.out) == (0, "Up to date: CLAUDE.md\n")
    assert snapshot(ready) == before


def test_all_looks_at_every_section_whatever_changed(run: Run, ready: Path) -> None:
    told = run("sync", "--all", "--offline", "--yes", "--json").json
    assert set(told["files"][0]["sections"]) == {
        "project-description",
        "build-commands",
        "architecture",
        "conventions",
        "patterns",
        "git-insights",
    }


def test_what_the_hooks_captured_is_drained_first(run: Run, ready: Path, data: Path) -> None:
    write(ready, {"pyproject.toml": (ready / "pyproject.toml").read_text() + NEW_COMMAND})
    payload = {
        "hook_event_name": "PostToolUse",
        "session_id": "0a3f7c52-1111-4222-8333-444455556666",
        "transcript_path": "/nowhere",
        "cwd": str(ready),
        "tool_name": "Edit",
        "tool_use_id": "toolu_01",
        "tool_input": {"file_path": str(ready / "pyproject.toml"), "old_string": "a", "new_string": "b"},
        "tool_response": {"filePath": str(ready / "pyproject.toml")},
    }
    folder = data / "spool" / "new"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "0001").write_text(json.dumps(payload))
    assert run("sync", "--yes", "--json").json["dirty"] == ["pyproject.toml"]


def test_a_folder_that_was_removed_as_a_whole_counts(run: Run, ready: Path) -> None:
    change(ready, "kitchen/__init__.py", '"""Where fish is prepared."""\n')
    run("sync", "--yes")
    (ready / "kitchen" / "__init__.py").unlink()
    (ready / "kitchen").rmdir()
    dirty.append(str(ready), [str(ready / "kitchen"), str(ready / "kitchen" / "__init__.py")])
    run("sync", "--yes")
    assert "kitchen" not in section(ready, "architecture")


@pytest.mark.parametrize("listed", [True, False])
def test_a_change_that_is_taken_back_is_noticed(run: Run, ready: Path, listed: bool) -> None:
    before = section(ready, "build-commands")
    change(ready, "pyproject.toml", NEW_COMMAND, listed=listed)
    run("sync", "--yes")
    assert section(ready, "build-commands") != before
    run_git(ready, "checkout", "-q", "--", "pyproject.toml")
    assert run("sync", "--yes").code == 0
    assert section(ready, "build-commands") == before


def test_a_new_file_that_is_gone_again_is_noticed(run: Run, ready: Path) -> None:
    before = section(ready, "architecture")
    write(ready, {"kitchen/__init__.py": '"""Where fish is prepared."""\n'})
    run("sync", "--yes")
    assert section(ready, "architecture") != before
    shutil.rmtree(ready / "kitchen")
    run("sync", "--yes")
    assert section(ready, "architecture") == before


def test_what_no_name_gives_away_is_noticed(run: Run, ready: Path) -> None:
    change(ready, "harbour/ships.proto", "message Ship {}\n")
    run("sync", "--yes")
    assert "- `harbour/`: Protocol Buffers definitions" in section(ready, "architecture")


def test_what_git_knows_is_looked_at_when_it_names_what_is_gone(run: Run, ready: Path) -> None:
    assert "`walrus/feeding_1.py`" in section(ready, "git-insights")
    (ready / "walrus" / "feeding_1.py").unlink()
    dirty.append(str(ready), [str(ready / "walrus" / "feeding_1.py")])
    run("sync", "--yes")
    assert section(ready, "git-insights") == "## Git Insights\nNothing that the files show."


def test_what_was_synced_and_then_committed_is_no_change(run: Run, ready: Path) -> None:
    prose = "## Architecture Overview\nFish come in, walruses come out.\n"
    run("claude-md", "section", "set", "architecture", stdin=prose)
    change(ready, "kitchen/fish.py", "\n# more\n")
    assert run("sync", "--yes", "--json").json["prose"] != []
    run("claude-md", "section", "keep", "architecture")
    commit(ready, "fix: feed it more")
    told = run("sync", "--yes", "--json").json
    assert (told["outside"], told["prose"]) == ([], [])


# --- the list -----------------------------------------------------------------------------------------------


def test_exactly_what_was_seen_is_taken_off_the_list(
    run: Run, ready: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(ready, "pyproject.toml", NEW_COMMAND)
    put_many = managed.put_many

    def meanwhile(*given: object, **named: object) -> dict[str, str]:
        dirty.append(str(ready), [str(ready / "pyproject.toml"), str(ready / "later.py")])
        return put_many(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(managed, "put_many", meanwhile)
    assert run("sync", "--yes").code == 0
    assert dirty.read(str(ready)) == [str(ready / "pyproject.toml"), str(ready / "later.py")]


def test_where_a_file_cannot_be_written_the_list_stays(run: Run, ready: Path) -> None:
    change(ready, "pyproject.toml", NEW_COMMAND)
    (ready / "CLAUDE.md").chmod(0o444)
    ran = run("sync", "--yes", "--json")
    assert ran.code == 1
    assert "chmod u+w" in ran.err
    assert ran.json["problems"][0]["file"] == "CLAUDE.md"
    assert len(dirty.read(str(ready))) == 1
    (ready / "CLAUDE.md").chmod(0o644)
    assert run("sync", "--yes").code == 0
    assert dirty.read(str(ready)) == []
    assert "`ruff check`" in section(ready, "build-commands")


def test_lines_that_are_no_paths_of_the_project_do_no_harm(run: Run, ready: Path) -> None:
    (ready / dirty.NAME).write_bytes(
        b"/etc/passwd\n../../x\n\xff\xfe\n# comment\n" + bytes(ready) + b"/a b'c.py\n"
    )
    told = run("sync", "--yes", "--json")
    assert told.code == 0
    assert "a b'c.py" in told.json["dirty"]
    assert dirty.read(str(ready)) == []


def test_a_name_that_is_no_utf_8_is_told_in_plain_text(run: Run, ready: Path) -> None:
    run("claude-md", "section", "set", "architecture", stdin="Fish in, walrus out.\n")
    change(ready, "walrus/\udcff/a.py", "")
    ran = run("sync", "--yes", "--json")
    ran.out.encode()
    assert ran.json["dirty"] == ["walrus/\\xff/a.py"]
    assert ran.json["prose"][0]["because"] == ["+ `walrus/\\xff/`"]


def test_where_a_file_refused_nothing_is_said_to_be_written(run: Run, ready: Path) -> None:
    change(ready, "pyproject.toml", NEW_COMMAND)
    (ready / "CLAUDE.md").chmod(0o444)
    told = run("sync", "--yes", "--json").json
    assert told["files"][0]["sections"] == {}


def test_what_a_model_writes_meanwhile_is_left_to_it(
    run: Run, ready: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(ready, "kitchen/__init__.py", '"""Where fish is prepared."""\n')
    put_many = managed.put_many

    def meanwhile(*given: object, **named: object) -> dict[str, str]:
        with monkeypatch.context() as real:
            real.setattr(managed, "put_many", put_many)
            run("claude-md", "section", "set", "architecture", stdin="Fish in, walrus out.\n")
        return put_many(*given, **named)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(managed, "put_many", meanwhile)
        ran = run("sync", "--yes")
    assert "Left to the model, which wrote it meanwhile: architecture in CLAUDE.md" in ran.out
    assert section(ready, "architecture") == "Fish in, walrus out."
    assert run("sync", "--yes", "--json").json["prose"] == [], "the kitchen was there when it was written"


# --- a CLAUDE.md that changed, and no git -------------------------------------------------------------------


def test_an_older_claude_md_that_was_checked_out_is_noticed(run: Run, ready: Path) -> None:
    change(ready, "pyproject.toml", NEW_COMMAND)
    run("sync", "--yes")
    commit(ready, "build: check with ruff")
    run("sync", "--yes")
    run_git(ready, "checkout", "-q", "HEAD~1", "--", "CLAUDE.md")
    assert "`ruff check`" not in section(ready, "build-commands")
    assert run("sync", "--yes", "--json").json["files"][0]["sections"]["build-commands"] == "written"
    assert "`ruff check`" in section(ready, "build-commands")


def test_what_a_colleague_synced_and_we_pulled_is_nobodys_edit(
    run: Run, ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_git(tmp_path, "clone", "-q", str(ready), "clone")
    clone = tmp_path / "clone"
    monkeypatch.chdir(clone)
    with monkeypatch.context() as elsewhere:  # a colleague, whose store is not ours
        elsewhere.setenv("BACKSTORY_HOME", str(tmp_path / "another"))
        assert run("sync", "--yes").out == "Up to date: CLAUDE.md\n"
        change(clone, "pyproject.toml", NEW_COMMAND)
        assert run("sync", "--yes").code == 0
        commit(clone, "build: check with ruff")
    monkeypatch.chdir(ready)
    run_git(ready, "pull", "-q", str(clone), "HEAD")
    assert "edited by hand" not in run("claude-md", "status").out
    assert run("sync", "--yes", "--json").json["files"][0]["sections"]["build-commands"] == "unchanged"


@pytest.fixture
def bare(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An initialised project without git."""
    root = make(tmp_path / "bare", git=False)
    old = time.time() - 1_000
    for path in root.rglob("*"):
        os.utime(path, (old, old))
    time.sleep(0.05)
    monkeypatch.chdir(root)
    assert run("init", "--yes", "--offline", "--no-subtrees").code == 0
    return root


def test_without_git_the_times_of_files_tell_what_changed(run: Run, bare: Path) -> None:
    assert run("sync", "--yes", "--json").json["outside"] == []
    time.sleep(0.05)
    change(bare, "pyproject.toml", NEW_COMMAND, listed=False)
    told = run("sync", "--yes", "--json").json
    assert told["outside"] == ["pyproject.toml"]
    assert "`ruff check`" in section(bare, "build-commands")


def test_without_git_a_file_that_is_gone_is_noticed_by_what_is_said_of_it(run: Run, bare: Path) -> None:
    write(bare, {"kitchen/__init__.py": '"""Where fish is prepared."""\n'})
    run("sync", "--yes")
    assert "kitchen" in section(bare, "architecture")
    (bare / "kitchen" / "__init__.py").unlink()
    (bare / "kitchen").rmdir()
    run("sync", "--yes")
    assert "kitchen" not in section(bare, "architecture")


def test_what_git_knows_is_looked_at_only_with_all(run: Run, ready: Path) -> None:
    before = section(ready, "git-insights")
    for number in range(9):
        for name in ("walrus/feeding_7.py", "tusks/age.py"):
            change(ready, name, f"# {number}\n", listed=False)
        commit(ready, f"fix: serve dinner {number}")
    assert "git-insights" not in run("sync", "--yes", "--json").json["files"][0]["sections"]
    assert section(ready, "git-insights") == before
    run("sync", "--all", "--offline", "--yes")
    assert "`tusks/age.py` and `walrus/feeding_7.py`" in section(ready, "git-insights")


# --- subtrees -----------------------------------------------------------------------------------------------


@pytest.fixture
def with_ui(project: Path) -> Path:
    """A project with an application in a folder, which has commands of its own."""
    package = {"name": "ui", "scripts": {"dev": "vite", "test": "vitest", "lint": "eslint ."}}
    parts = {f"ui/src/part_{number}.ts": "export const x = 'a';\n" for number in range(25)}
    write(project, {"ui/package.json": json.dumps(package), **parts})
    commit(project, "feat: a window")
    return project


def test_a_sync_right_after_init_writes_nothing(run: Run, with_ui: Path) -> None:
    assert run("init", "--yes", "--offline").code == 0
    assert "npm run dev" not in section(with_ui, "build-commands")
    assert "- Run: `npm run dev`" in section(with_ui, "module-description", "ui/CLAUDE.md")
    before = snapshot(with_ui)
    for options in ((), ("--all", "--offline")):
        told = run("sync", "--yes", "--json", *options).json
        assert (told["lacking"], told["prose"]) == ([], [])
    assert run("init", "--yes", "--offline").code == 0
    assert snapshot(with_ui) == before


def test_a_sync_right_after_init_writes_nothing_in_a_monorepo(
    run: Run, monorepo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(monorepo)
    assert len(run("init", "--yes", "--offline", "--json").json["files"]) == 3
    before = snapshot(monorepo)
    for options in ((), ("--all", "--offline")):
        assert run("sync", "--yes", *options).out.startswith("Up to date: ")
    assert snapshot(monorepo) == before


def test_the_root_leaves_a_folders_commands_to_its_file_also_where_init_is_not_told_of_it(
    run: Run, with_ui: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("init", "--yes", "--offline")
    commit(with_ui, "docs: describe the project")
    run_git(tmp_path, "clone", "-q", str(with_ui), "clone")
    monkeypatch.chdir(tmp_path / "clone")
    monkeypatch.setenv("BACKSTORY_HOME", str(tmp_path / "another"))
    assert run("init", "--yes", "--offline", "--no-subtrees", "--command", "test=make check").code == 0
    assert "npm run dev" not in section(tmp_path / "clone", "build-commands")
    assert "Written" not in run("sync", "--yes").out


def test_a_folder_without_a_file_of_ours_is_told_of_in_the_roots(run: Run, with_ui: Path) -> None:
    run("init", "--yes", "--offline")
    (with_ui / "ui" / "CLAUDE.md").unlink()
    run("sync", "--yes")
    said = section(with_ui, "build-commands")
    assert "npm run dev" in said
    run("claude-md", "section", "set", "build-commands", stdin="## Build Commands\nAs always.\n")
    assert run("sync", "--yes", "--json").json["prose"] == []


def test_the_root_has_the_commands_of_a_folder_whose_file_is_not_made(run: Run, with_ui: Path) -> None:
    own = "Ui is a window. `npm install`, `npm run dev`, `npm test`, `npm run lint`; `src/` has `part_0.ts`,"
    named = ", ".join(f"`part_{number}.ts`" for number in range(25))
    write(with_ui, {"CLAUDE.md": f"# Walrus\n\n{own} {named}, `cd ui`\n"})
    run("init", "--yes", "--offline", "--section", "build-commands", "--subtree", "ui")
    assert not (with_ui / "ui" / "CLAUDE.md").exists(), "all that it could say is said already"
    assert "npm run dev" in section(with_ui, "build-commands")


def test_prose_about_commands_that_a_person_corrected_is_not_behind(run: Run, ready: Path) -> None:
    assert run("init", "--yes", "--offline", "--no-subtrees", "--command", "test=make check").code == 0
    run("claude-md", "section", "set", "build-commands", stdin="## Build Commands\n`make check` tests.\n")
    assert run("sync", "--yes", "--json").json["prose"] == []


def test_a_change_is_told_of_in_the_nearest_module_and_the_root(run: Run, project: Path) -> None:
    fish, shore = '"""What swims there."""\n', '"""Where walruses sleep."""\n'
    write(project, {"sea/__init__.py": '"""The sea."""\n', "sea/fish.py": fish, "shore/__init__.py": shore})
    commit(project, "feat: sea and shore")
    run("init", "--yes", "--offline", "--subtree", "sea", "--subtree", "shore")
    change(project, "sea/__init__.py", "# more\n")
    write(project, {"sea/__init__.py": '"""The deep sea."""\n'})
    told = run("sync", "--yes", "--json").json
    looked = {file["path"]: file["sections"] for file in told["files"]}
    assert looked["shore/CLAUDE.md"] == {"module-description": "unchanged"}
    assert looked["sea/CLAUDE.md"] == {"module-description": "written", "architecture": "unchanged"}
    assert section(project, "module-description", "sea/CLAUDE.md") == "The deep sea."
    assert "- `sea/`: The deep sea" in section(project, "architecture")


def test_a_modules_file_that_is_gone_does_not_repeat_what_changed(run: Run, project: Path) -> None:
    write(project, {"sea/__init__.py": '"""The sea."""\n'})
    commit(project, "feat: the sea")
    run("init", "--yes", "--offline", "--subtree", "sea")
    (project / "sea" / "CLAUDE.md").unlink()
    time.sleep(0.05)
    change(project, "sea/__init__.py", "# more\n")
    change(project, "pyproject.toml", NEW_COMMAND, listed=False)
    ran = run("sync", "--yes", "--json")
    assert (ran.code, ran.json["dirty"], ran.json["outside"]) == (1, ["sea/__init__.py"], ["pyproject.toml"])
    ran = run("sync", "--yes", "--json")
    assert (ran.code, ran.json["dirty"], ran.json["outside"]) == (1, [], [])


def test_only_what_bears_on_a_file_with_troubles_stays_in_the_list(run: Run, project: Path) -> None:
    write(project, {"sea/__init__.py": '"""The sea."""\n'})
    run("init", "--yes", "--offline", "--subtree", "sea")
    with (project / "sea" / "CLAUDE.md").open("a") as file:
        file.write("<!-- END AUTO-MANAGED -->\n")
    change(project, "sea/__init__.py", "# more\n")
    change(project, "pyproject.toml", NEW_COMMAND)
    assert run("sync", "--yes").code == 1
    assert dirty.read(str(project)) == [str(project / "sea" / "__init__.py")]


def test_a_module_that_is_gone_is_no_problem(run: Run, project: Path) -> None:
    write(project, {"sea/__init__.py": '"""The sea."""\n'})
    run("init", "--yes", "--offline", "--subtree", "sea")
    for path in (project / "sea").iterdir():
        path.unlink()
    (project / "sea").rmdir()
    change(project, "pyproject.toml", NEW_COMMAND)
    told = run("sync", "--yes", "--json").json
    assert told["problems"] == []
    assert [file["path"] for file in told["files"]] == ["CLAUDE.md"]


def test_each_worktree_has_its_own(
    run: Run, ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_git(ready, "worktree", "add", "-q", str(tmp_path / "other"), "-b", "other")
    other = tmp_path / "other"
    before = (ready / "CLAUDE.md").read_bytes()
    monkeypatch.chdir(other)
    assert run("sync", "--yes").out == "Up to date: CLAUDE.md\n"
    change(other, "pyproject.toml", NEW_COMMAND)
    told = run("sync", "--yes", "--json").json
    assert told["root"] == str(other)
    assert told["files"][0]["sections"]["build-commands"] == "written"
    assert (ready / "CLAUDE.md").read_bytes() == before


def test_sections_that_had_nothing_to_say_at_first_come_with_all(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "young"
    write(root, {"README.md": "# Young\n\nYoung is a program that is still small.\n"})
    monkeypatch.chdir(root)
    assert run("init", "--yes", "--offline").code == 0
    assert b"conventions" not in (root / "CLAUDE.md").read_bytes()
    make(root, git=False)
    before = (root / "CLAUDE.md").read_bytes()
    ran = run("sync", "--yes")
    assert "`backstory sync --all` would add" in ran.out
    assert "conventions to CLAUDE.md" in ran.out
    assert b"AUTO-MANAGED: conventions" not in (root / "CLAUDE.md").read_bytes()
    told = run("sync", "--all", "--offline", "--yes", "--json").json
    assert told["files"][0]["sections"]["conventions"] == "written"
    assert "camelCase" in section(root, "conventions")
    lines = iter(sections.theirs((root / "CLAUDE.md").read_bytes()).splitlines())
    assert all(line in lines for line in sections.theirs(before).splitlines()), (
        "all of it stays, in its order"
    )
    assert run("sync", "--yes", "--json").json["lacking"] == []


# --- what comes to rest -------------------------------------------------------------------------------------


def test_a_module_that_was_away_with_its_branch_is_brought_up_to_date_again(run: Run, project: Path) -> None:
    run_git(project, "branch", "old")
    write(project, {"sea/__init__.py": '"""The sea."""\n', "sea/fish.py": ""})
    assert run("init", "--yes", "--offline", "--subtree", "sea").code == 0
    commit(project, "feat: the sea")
    for branch in ("old", "-"):
        run_git(project, "checkout", "-q", branch)
        assert run("sync", "--yes").code in (0, 1)  # the old branch has no CLAUDE.md at all
    (project / "sea/__init__.py").write_text('"""The ocean."""\n')
    assert run("sync", "--yes").code == 0
    assert "The ocean" in section(project, "module-description", "sea/CLAUDE.md")
    (project / "sea").rename(project.parent / "sea")
    assert [one["file"] for one in run("claude-md", "status", "--json").json["files"]] == ["CLAUDE.md"]


def test_what_is_gone_is_told_once_though_our_own_write_touches_its_folder(run: Run, ready: Path) -> None:
    run("claude-md", "section", "set", "build-commands", stdin="make, and hope.\n")
    (ready / "pyproject.toml").unlink()
    time.sleep(0.05)
    (prose,) = run("sync", "--yes", "--json").json["prose"]
    assert "- `pytest`" in prose["because"] and not any(one.startswith("+") for one in prose["because"])
    for text in ("Only hope.\n", "Hope, again.\n"):
        time.sleep(0.05)
        run("claude-md", "section", "set", "build-commands", stdin=text)
        told = run("sync", "--yes", "--json").json
        assert (told["prose"], told["outside"]) == ([], [])


def test_a_module_in_trouble_keeps_no_other_file_behind(run: Run, project: Path) -> None:
    write(project, {"sea/__init__.py": '"""The sea."""\n', "sea/fish.py": ""})
    assert run("init", "--yes", "--offline", "--subtree", "sea").code == 0
    commit(project, "feat: the sea")
    run("claude-md", "section", "set", "architecture", stdin="Fish in, walrus out.\n")
    broken = project / "sea/CLAUDE.md"
    broken.write_text(broken.read_text().replace("<!-- END AUTO-MANAGED -->\n", "", 1))
    change(project, "sea/deep/fish.py", "x = 1\n")
    first = run("sync", "--yes", "--json")
    assert (first.code, [one["section"] for one in first.json["prose"]]) == (1, ["architecture"])
    time.sleep(0.05)
    run("claude-md", "section", "set", "architecture", stdin="Fish in, a fuller walrus out.\n")
    again = run("sync", "--yes", "--json")
    assert (again.code, again.json["prose"]) == (1, [])
    assert dirty.read(str(project)) == [str(project / "sea/deep/fish.py")]


@pytest.mark.parametrize("text", ["# Walrus\n".encode("utf-16"), b"x" * 1_000_001], ids=["UTF-16", "1 MB"])
def test_a_file_that_cannot_be_used_is_trouble_and_stops_no_other(
    run: Run, project: Path, text: bytes
) -> None:
    write(project, {"sea/__init__.py": '"""The sea."""\n', "sea/fish.py": ""})
    assert run("init", "--yes", "--offline", "--subtree", "sea").code == 0
    (project / "sea/CLAUDE.md").write_bytes(text)
    change(project, "pyproject.toml", NEW_COMMAND)
    change(project, "sea/fish.py", "x = 1\n")
    done = run("sync", "--yes", "--json")
    assert (done.code, [one["file"] for one in done.json["problems"]]) == (1, ["sea/CLAUDE.md"])
    assert "ruff check" in section(project, "build-commands")
    assert dirty.read(str(project)) == [str(project / "sea/fish.py")]
    assert run("status").code == 0


def test_a_dry_run_shows_what_a_sync_would_write_and_writes_nothing(run: Run, ready: Path) -> None:
    change(ready, "pyproject.toml", NEW_COMMAND)
    before = (ready / "CLAUDE.md").read_bytes()
    ran = run("sync", "--dry-run", "--yes")
    assert ran.code == 0
    assert "ruff check" in ran.out
    assert ran.out.endswith("Nothing was written.\n")
    (file,) = run("sync", "--dry-run", "--json").json["files"]
    assert file["sections"]["build-commands"] == "would be written"
    assert (ready / "CLAUDE.md").read_bytes() == before


def test_status_names_what_a_sync_would_write_though_no_change_is_known(run: Run, ready: Path) -> None:
    old = (ready / "CLAUDE.md").read_bytes()
    change(ready, "pyproject.toml", NEW_COMMAND)
    assert run("sync", "--yes").code == 0
    assert run("claude-md", "status", "--json").json["to_write"] == []
    (ready / "CLAUDE.md").write_bytes(old)  # as `git stash` does
    found = run("claude-md", "status", "--json").json
    assert found["to_write"] == [{"file": "CLAUDE.md", "section": "build-commands"}]
    assert "build-commands of CLAUDE.md" in run("claude-md", "status").out
