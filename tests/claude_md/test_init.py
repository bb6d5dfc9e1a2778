"""`backstory init`, in real projects."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from backstory import dirty
from backstory.claude_md.learn import learn
from backstory.claude_md.read import patterns, practices
from backstory.claude_md.read.files import ProjectFiles, walk
from backstory.claude_md.write import compose, sections
from tests.conftest import Run
from tests.helpers.claude_md_project import (
    BACKSTORY,
    FILES,
    MINE,
    NOTICE,
    make,
    names,
    run_git,
    section,
    snapshot,
    text,
    write,
)

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make(tmp_path / "walrus")


# --- a project without anything -----------------------------------------------------------------------------


def test_a_project_gets_a_claude_md_and_is_tracked_from_then_on(run: Run, project: Path) -> None:
    ran = run("init", "--yes", "--offline")
    assert ran.code == 0, ran.err
    assert NOTICE in ran.out
    made = text(project)
    assert made.startswith(
        "# Project: walrus\n\n<!-- AUTO-MANAGED: project-description -->\n<!-- backstory: by"
    )
    assert section(project, "project-description").startswith("Keeps walruses well fed.")
    assert names(project) == [
        "project-description",
        "build-commands",
        "architecture",
        "conventions",
        "patterns",
        "git-insights",
    ]
    assert "- Test: `pytest`" in made
    assert "- `walrus/`: Feeds walruses, and counts the fish" in made
    assert "- Names: functions and methods `camelCase`" in made
    assert "- `tusks/size.py` and `walrus/feeding_1.py` change together" in made
    assert made.endswith("<!-- END MANUAL -->\n")
    assert dirty.root_of(str(project)) == str(project)
    assert (project / dirty.NAME).read_bytes() == b""


def test_git_does_not_show_the_list_of_changed_files(run: Run, project: Path) -> None:
    run("init", "--yes", "--offline", "--no-subtrees")
    assert run_git(project, "status", "--porcelain").split() == ["??", "CLAUDE.md"]


def test_what_was_found_is_shown_before(run: Run, project: Path) -> None:
    ran = run("init", "--yes", "--offline")
    for said in ("Python", "Flask", "pytest", "camelCase", "CLAUDE.md  is made"):
        assert said in ran.out
    assert "\x1b" not in ran.out


def test_the_findings_are_json_on_request(run: Run, project: Path) -> None:
    told = run("init", "--yes", "--offline", "--json").json
    assert told["root"] == str(project)
    assert told["written"] is True
    assert told["survey"]["name"] == "walrus"
    assert ["Python", 1.0] in told["survey"]["languages"]
    found = [(one["role"], one["line"], one["source"]) for one in told["survey"]["commands"]]
    assert ("test", "pytest", "pyproject.toml") in found
    assert told["patterns"]["naming"]
    assert any(one["value"] == "camelCase" for one in told["pattern_list"])
    assert told["insights"] is not None
    assert told["files"][0]["path"] == "CLAUDE.md"
    assert told["files"][0]["action"] == "create"
    assert "build-commands" in told["files"][0]["sections"]


def test_a_dry_run_writes_nothing_at_all(run: Run, project: Path, data: Path) -> None:
    before = snapshot(project)
    ran = run("init", "--dry-run")
    assert ran.code == 0
    assert "CLAUDE.md  is made" in ran.out
    assert ran.out.endswith("Nothing was written.\n")
    told = run("init", "--dry-run", "--json").json
    assert told["written"] is False
    assert snapshot(project) == before
    assert not (project / ".claude").exists()
    assert not data.exists()


def test_a_folder_inside_of_a_work_tree_stands_for_the_whole(run: Run, project: Path) -> None:
    ran = run("init", "--yes", "--offline", "--json", "--project", "walrus")
    assert ran.json["root"] == str(project)
    assert (project / "CLAUDE.md").exists()
    assert not (project / "walrus" / "CLAUDE.md").exists()


def test_without_git_the_current_folder_is_the_project(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = make(tmp_path / "bare", git=False)
    monkeypatch.chdir(bare)
    ran = run("init", "--yes", "--offline")
    assert ran.code == 0
    assert "git-insights" not in names(bare)
    assert "project-description" in names(bare)
    assert dirty.root_of(str(bare)) == str(bare)


def test_where_no_git_is_installed_the_rest_is_done(
    run: Run, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run("init", "--yes", "--offline").code == 0
    assert "git-insights" not in names(project)


def test_nothing_of_the_repository_is_executed(run: Run, project: Path, tmp_path: Path) -> None:
    ran = tmp_path / "was-run"
    write(
        project,
        {
            "setup.py": f"open({str(ran)!r}, 'w')\n",
            "noxfile.py": f"open({str(ran)!r}, 'w')\n",
            "conftest.py": f"open({str(ran)!r}, 'w')\n",
            "Makefile": f"X := $(shell touch {ran})\ntest:\n\ttouch {ran}\n",
        },
    )
    run_git(project, "config", "core.fsmonitor", f"touch {ran}")
    run_git(project, "config", "diff.external", f"touch {ran}")
    assert run("init", "--yes", "--offline").code == 0
    assert not ran.exists()


# --- subtrees -----------------------------------------------------------------------------------------------


def test_folders_worth_one_get_a_claude_md_of_their_own(
    run: Run, monorepo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(monorepo)
    assert run("init", "--yes", "--offline").code == 0
    assert "- `packages/api/`: The api of it" in text(monorepo)
    for name in ("api", "web"):
        made = text(monorepo, f"packages/{name}/CLAUDE.md")
        assert made.startswith(f"# Module: packages/{name}\n\n<!-- AUTO-MANAGED: module-description -->\n")
        said = section(monorepo, "module-description", f"packages/{name}/CLAUDE.md")
        assert said.startswith(f"The {name} of it.")
        assert made.endswith("<!-- MANUAL -->\n## Module Notes\n<!-- END MANUAL -->\n")


def test_a_folder_says_which_commands_its_own_manifest_has(
    run: Run, monorepo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(
        monorepo,
        {
            "packages/api/package.json": json.dumps(
                {"name": "api", "scripts": {"dev": "vite", "test": "vitest"}}
            )
        },
    )
    monkeypatch.chdir(monorepo)
    assert run("init", "--yes", "--offline").code == 0
    said = sections.get((monorepo / "packages/api/CLAUDE.md").read_bytes(), "module-description")
    assert (
        "After `cd packages/api`:\n- Run: `npm run dev` (from `packages/api/package.json`)\n- Test: `npm "
        in said
    )


def test_the_code_is_read_once_for_all_files(
    run: Run, monorepo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(monorepo)
    begun: list[str] = []
    read = patterns.read

    def counted(tree: ProjectFiles, *given: object) -> patterns.Evidence:
        begun.append(tree.root)
        return read(tree, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(patterns, "read", counted)
    assert len(run("init", "--yes", "--offline", "--json").json["files"]) == 3
    assert begun == [str(monorepo)]


def test_one_may_say_which_folders(run: Run, monorepo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(monorepo)
    told = run("init", "--dry-run", "--json", "--no-subtrees").json
    assert [file["path"] for file in told["files"]] == ["CLAUDE.md"]
    told = run("init", "--dry-run", "--json", "--subtree", "packages/web/").json
    assert [file["path"] for file in told["files"]] == ["CLAUDE.md", "packages/web/CLAUDE.md"]
    told = run("init", "--dry-run", "--json").json
    assert len(told["files"]) == 3


@pytest.mark.parametrize("given", ["nowhere", "..", ".", "/", "package.json", "\udcff"])
def test_a_folder_that_is_none_is_refused(run: Run, project: Path, given: str) -> None:
    ran = run("init", "--yes", "--subtree", given)
    assert ran.code == 2
    assert "is no folder in" in ran.err
    assert not (project / "CLAUDE.md").exists()


@pytest.mark.parametrize("given", [".git", ".git/hooks", ".claude", "node_modules/left", "made"])
def test_a_folder_that_is_not_the_projects_own_is_refused(run: Run, project: Path, given: str) -> None:
    write(project, {".gitignore": "/made/\n", "made/a.py": "", "node_modules/left/a.js": "", ".claude/a": ""})
    ran = run("init", "--yes", "--offline", "--subtree", given)
    assert ran.code == 2
    assert not list(project.rglob("CLAUDE.md"))


def test_a_folder_that_is_named_twice_counts_once(run: Run, project: Path) -> None:
    ran = run("init", "--yes", "--offline", "--json", "--subtree", "walrus", "--subtree", "./walrus/")
    assert ran.code == 0, ran.err
    assert [file["path"] for file in ran.json["files"]] == ["CLAUDE.md", "walrus/CLAUDE.md"]
    assert dirty.root_of(str(project)) == str(project)


def test_a_link_that_leads_out_is_no_folder_of_the_project(run: Run, project: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (project / "out").symlink_to(tmp_path / "elsewhere")
    assert run("init", "--yes", "--subtree", "out").code == 2
    assert not (tmp_path / "elsewhere" / "CLAUDE.md").exists()


def test_subtrees_and_none_at_once_is_wrong_use(run: Run) -> None:
    ran = run("init", "--yes", "--subtree", "walrus", "--no-subtrees")
    assert (ran.code, "leave one of them out" in ran.err) == (2, True)


# --- what goes wrong ----------------------------------------------------------------------------------------


def test_where_nobody_can_be_asked_one_must_say_what_is_wanted(run: Run, project: Path, data: Path) -> None:
    before = snapshot(project)
    ran = run("init")
    assert ran.code == 2
    for said in ("--yes", "--existing", "--dry-run"):
        assert said in ran.err
    assert snapshot(project) == before
    assert not data.exists()


def test_an_empty_folder_has_nothing_to_say(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    ran = run("init", "--yes", "--offline")
    assert ran.code == 1
    assert "run it again when there is code" in ran.err
    assert list((tmp_path / "empty").iterdir()) == []


def test_a_home_is_no_project(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home, FILES)
    monkeypatch.chdir(home)
    ran = run("init", "--yes", "--offline")
    assert ran.code == 2
    assert "is no project" in ran.err
    assert not (home / "CLAUDE.md").exists()


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is(run: Run, project: Path) -> None:
    (project / "lib").mkdir()
    (project / "lib" / "__init__.py").write_text('"""What others need too."""\n')
    (project / "lib").chmod(0o555)
    before = snapshot(project)
    try:
        ran = run("init", "--yes", "--offline", "--subtree", "lib")
    finally:
        (project / "lib").chmod(0o755)
    assert ran.code == 2
    assert "cannot be written" in ran.err
    assert "chmod" in ran.err
    assert snapshot(project) == before


def test_a_file_that_cannot_be_written_is_refused_before_anything_is(run: Run, project: Path) -> None:
    (project / "walrus" / "CLAUDE.md").write_text(MINE)
    (project / "walrus" / "CLAUDE.md").chmod(0o444)
    before = snapshot(project)
    ran = run("init", "--yes", "--offline", "--subtree", "walrus")
    assert ran.code == 2
    assert "chmod u+w" in ran.err
    assert snapshot(project) == before


def test_a_claude_md_that_leads_out_of_the_project_is_refused(
    run: Run, project: Path, tmp_path: Path
) -> None:
    (tmp_path / "theirs.md").write_text(MINE)
    (project / "CLAUDE.md").symlink_to(tmp_path / "theirs.md")
    ran = run("init", "--yes", "--offline")
    assert ran.code == 2
    assert "outside of the project" in ran.err
    assert (tmp_path / "theirs.md").read_text() == MINE
    assert not (project / ".claude").exists()


@pytest.mark.parametrize("name", ["CLAUDE.md", "AGENTS.md"])
def test_nothing_of_a_file_outside_is_shown(name: str, run: Run, project: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("the walrus costs nine millions\n")
    (project / name).symlink_to(tmp_path / "secret")
    for given in (["--dry-run"], ["--dry-run", "--existing", "migrate"]):
        ran = run("init", "--offline", "--no-subtrees", *given)
        assert "nine millions" not in ran.out + ran.err
        assert (ran.code, "outside of the project" in ran.err) == (2, True)


@pytest.mark.parametrize("what", ["folder", "pipe"])
def test_a_claude_md_that_is_no_file_is_refused(run: Run, project: Path, what: str) -> None:
    path = project / "CLAUDE.md"
    path.mkdir() if what == "folder" else os.mkfifo(path)
    ran = run("init", "--yes", "--offline")
    assert ran.code == 2
    assert "is no file" in ran.err
    assert not (project / ".claude").exists()


def test_a_claude_folder_that_is_a_file_is_refused_before_anything_is_written(
    run: Run, project: Path
) -> None:
    (project / ".claude").write_text("")
    ran = run("init", "--yes", "--offline")
    assert ran.code == 2
    assert ".claude" in ran.err
    assert not (project / "CLAUDE.md").exists()


@pytest.mark.parametrize("name", [".claude", dirty.NAME])
def test_a_list_that_would_lie_outside_is_refused_before_anything_is_written(
    run: Run, project: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (project / name).parent.mkdir(exist_ok=True)
    (project / name).symlink_to(tmp_path / "elsewhere")
    ran = run("init", "--yes", "--offline")
    assert (ran.code, "leads out of the project" in ran.err) == (2, True)
    assert not (project / "CLAUDE.md").exists()
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_secret_in_a_description_does_not_get_into_claude_md(run: Run, project: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    write(project, {"pyproject.toml": f'[project]\nname = "walrus"\ndescription = "Key {secret} here"\n'})
    assert run("init", "--yes", "--offline").code == 0
    assert secret not in text(project)
    assert "[redacted:" in text(project)


def test_text_of_the_repository_cannot_drive_the_terminal(run: Run, project: Path) -> None:
    write(
        project,
        {"pyproject.toml": '[project]\nname = "w\\u001b[2Jx"\ndescription = "a\\u001b[31mb\\u009b2J"\n'},
    )
    ran = run("init", "--yes", "--offline")
    assert ran.code == 0
    assert not {"\x1b", "\x9b"} & set(ran.out + text(project))


# --- the parts ----------------------------------------------------------------------------------------------


def test_a_kill_between_two_files_is_made_good_by_the_next_init(
    run: Run, monorepo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(monorepo)
    run("init", "--yes", "--offline", "--no-subtrees")
    (monorepo / dirty.NAME).unlink()
    blank = compose.skeleton("subtree", "packages/api", compose.names("subtree"))
    (monorepo / "packages" / "api" / "CLAUDE.md").write_bytes(blank)
    told = run("init", "--yes", "--offline", "--json").json
    assert [file["action"] for file in told["files"]] == ["keep", "add", "create"]
    assert "The api of it." in text(monorepo, "packages/api/CLAUDE.md")


def test_what_nobody_asked_for_is_not_computed(project: Path) -> None:
    known = learn(str(project), wanted=["build-commands"])
    assert (known.patterns, known.insights, known.practices) == ((), None, None)
    assert walk(str(project)).files == known.project.files


def test_every_command_explains_itself(run: Run) -> None:
    for command in ("init", "sync", "status"):
        ran = run(command, "--help")
        assert ran.code == 0
        assert "--json" in ran.out
        assert "--project DIR" in ran.out


def test_the_page_of_practices_comes_from_the_setting_and_offline_is_left_out(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_CLAUDE_MD_PRACTICES_URL", "http://127.0.0.1:9/none")
    ran = run("init", "--yes")  # nobody answers there, and a private address is never asked
    assert ran.code == 0
    assert "best-practices left out: " in ran.err
    assert "best-practices" not in names(project)
    assert "best-practices left out" not in run("init", "--yes", "--offline").err
    monkeypatch.setenv("BACKSTORY_CLAUDE_MD_PRACTICES_URL", "")
    assert run("init", "--yes").code == 0
    assert "best-practices" not in names(project)


def test_what_the_documentation_advises_is_shown_and_written(
    run: Run, project: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "https://docs.claude.com/en/docs/walrus"
    monkeypatch.setenv("BACKSTORY_CLAUDE_MD_PRACTICES_URL", url)
    page = "# Best practices\n\n- Run the tests before you commit, and fix what fails first.\n"
    survey = learn(str(project), wanted=["build-commands"]).survey
    now = int(time.time() * 1000)
    assert practices.practices(url, lambda _: page, str(data), survey, now)  # asked once a week, so not now
    ran = run("init", "--yes", "--no-subtrees")
    assert "Run the tests before you commit" in ran.out
    assert sections.get((project / "CLAUDE.md").read_bytes(), "best-practices").startswith(
        "## Best Practices\n- Run the tests before you commit"
    )
    before = snapshot(project)
    assert run("sync", "--all", "--offline", "--yes").code == 0  # nobody can tell now: what it says stays
    assert snapshot(project) == before


def test_a_project_that_cannot_be_written_stays_as_it_is(run: Run, project: Path) -> None:
    before = snapshot(project)
    project.chmod(0o555)
    try:
        ran = run("init", "--yes", "--offline")
    finally:
        project.chmod(0o755)
    assert (ran.code, "chmod u+wx" in ran.err) == (2, True)
    assert snapshot(project) == before


def test_init_runs_as_a_program(project: Path, home: Path) -> None:
    done = subprocess.run(
        [BACKSTORY, "init", "--yes", "--offline"], cwd=project, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
