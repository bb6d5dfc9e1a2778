"""What a person switches off and corrects, by options of `backstory init` and in the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstory.claude_md.read.commands.roles import COMMAND_ROLES
from backstory.claude_md.write import sections
from tests.conftest import Run
from tests.helpers.claude_md_project import commit, make, names, run_git, section, snapshot, text, write

pytestmark = pytest.mark.slow

INIT = ("init", "--yes", "--offline", "--no-subtrees")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make(tmp_path / "walrus")


def test_a_section_that_is_off_is_not_written_and_stays_off(run: Run, project: Path) -> None:
    ran = run(*INIT, "--off", "patterns", "--off", "git-insights")
    assert "left out, since it is switched off: patterns, git-insights" in ran.out
    assert "<!-- backstory: off patterns, git-insights -->\n" in text(project)
    assert not {"patterns", "git-insights"} & set(names(project))
    before = snapshot(project)
    assert run(*INIT).code == 0
    assert run("sync", "--all", "--offline", "--yes").code == 0
    assert snapshot(project) == before


def test_what_is_off_is_off_for_a_colleague_too(
    run: Run, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(*INIT, "--off", "patterns", "--command", "test=make check")
    commit(project, "docs: describe the project")
    run_git(tmp_path, "clone", "-q", str(project), "clone")
    monkeypatch.chdir(tmp_path / "clone")
    monkeypatch.setenv("BACKSTORY_HOME", str(tmp_path / "another"))
    told = run(*INIT, "--json").json
    assert (told["files"][0]["action"], told["files"][0]["off"]) == ("keep", ["patterns"])
    assert run("sync", "--all", "--offline", "--yes").code == 0
    assert run_git(tmp_path / "clone", "status", "--porcelain") == ""


def test_a_section_that_is_there_is_taken_out_and_can_come_back(run: Run, project: Path) -> None:
    run(*INIT)
    before = text(project)
    ran = run(*INIT, "--off", "patterns")
    assert "taken out: patterns" in ran.out
    assert "patterns" not in names(project)
    run(*INIT, "--section", "patterns")
    assert "patterns" in names(project)
    assert "backstory: off" not in text(project)
    assert sorted(before.split()) == sorted(text(project).split())


def test_what_is_off_is_kept_only_in_files_that_could_have_it(run: Run, project: Path) -> None:
    run(*INIT[:-1], "--subtree", "walrus", "--off", "git-insights", "--off", "architecture")
    assert "<!-- backstory: off architecture, git-insights -->\n" in text(project)
    assert "<!-- backstory: off architecture -->\n" in (project / "walrus" / "CLAUDE.md").read_text()


def test_a_section_that_nothing_was_found_for_cannot_be_asked_for(run: Run, project: Path) -> None:
    before = snapshot(project)
    ran = run(*INIT, "--section", "best-practices")
    assert (ran.code, snapshot(project)) == (1, before)
    assert "section set best-practices --add` gives it a text" in ran.err


def test_the_corrected_commands_are_those_that_are_shown(run: Run, project: Path) -> None:
    ran = run(*INIT, "--dry-run", "--command", "test=make check")
    rows = [line.split() for line in ran.out.splitlines() if line.startswith(" ")]
    assert next(row for row in rows if row[:1] == ["test"]) == ["test", "make", "check"]


def test_a_folder_that_was_named_and_gets_none_is_told(run: Run, project: Path) -> None:
    write(project, {"sea/__init__.py": ""})
    ran = run(*INIT[:-1], "--subtree", "sea")
    assert ran.code == 0 and "sea gets none: there is nothing left that it would say." in ran.err
    assert not (project / "sea" / "CLAUDE.md").exists()


def test_the_help_names_every_role(run: Run) -> None:
    assert f"The roles: {', '.join(COMMAND_ROLES)}." in " ".join(run("init", "--help").out.split())


def test_a_section_that_a_person_edited_is_not_taken_out(run: Run, project: Path) -> None:
    run(*INIT)
    edited = text(project).replace("## Detected Patterns", "## Detected Patterns\nMine.")
    (project / "CLAUDE.md").write_text(edited)
    ran = run(*INIT, "--off", "patterns")
    assert "switched off, but patterns stays" in ran.out
    assert text(project) == edited + "\n<!-- backstory: off patterns -->\n"
    run("sync", "--all", "--offline", "--yes")
    assert "Mine." in section(project, "patterns")


def test_a_corrected_command_replaces_what_is_found_for_good(run: Run, project: Path) -> None:
    run(*INIT, "--command", "test=make check", "--command", "build=")
    assert "- Test: `make check`" in section(project, "build-commands")
    assert "Build: " not in section(project, "build-commands")
    with (project / "pyproject.toml").open("a") as file:
        file.write("[tool.ruff]\nline-length = 100\n")
    run("sync", "--yes")
    assert "`ruff check`" in section(project, "build-commands")
    assert "- Test: `make check`" in section(project, "build-commands")
    assert "`pytest`" not in section(project, "build-commands")


def test_a_command_is_corrected_in_a_file_that_is_there(run: Run, project: Path) -> None:
    run(*INIT)
    told = run(*INIT, "--command", "test=make check", "--json").json
    assert (told["files"][0]["action"], told["files"][0]["commands"]) == ("adjust", {"test": ["make check"]})
    assert "- Test: `make check`" in section(project, "build-commands")


def test_a_corrected_command_is_offered_where_a_person_edited_the_section(run: Run, project: Path) -> None:
    run(*INIT)
    (project / "CLAUDE.md").write_text(text(project).replace("- Test: `pytest`", "- Test: `pytest -x`"))
    ran = run(*INIT, "--command", "test=make check")
    assert "build-commands in CLAUDE.md stays, since a person edited it" in ran.out
    assert "pytest -x" in section(project, "build-commands")
    assert "make check" in run("claude-md", "section", "diff", "build-commands").out


def test_hostile_settings_do_no_harm(run: Run, project: Path, tmp_path: Path) -> None:
    ran = tmp_path / "was-run"
    lines = [
        f"command test = touch {ran}; @/etc/passwd `x` <!-",
        "command build = $(touch x) </script><pre>",
        "command lint = <!-- END AUTO-MANAGED",
        "off build-commands-and-more, constructor, __class__",
    ]
    write(project, {"CLAUDE.md": "# Mine\n" + "".join(f"<!-- backstory: {line} -->\n" for line in lines)})
    assert run(*INIT).code == 0
    assert run("sync", "--all", "--offline", "--yes").code == 0
    assert not ran.exists()
    assert "build-commands" in names(project)
    body = section(project, "build-commands")
    assert "touch" in body
    assert " @/etc" not in body
    assert sections.parse((project / "CLAUDE.md").read_bytes()).problems == ()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--off", "nonsense"], "no section is called 'nonsense'; there are project-description"),
        (["--section", "x"], "no section is called 'x'"),
        (["--command", "deploy=x"], "the roles are"),
        (["--command", "test"], "is no ROLE=COMMAND"),
        (["--off", "patterns", "--section", "patterns"], "both name patterns"),
    ],
)
def test_what_cannot_be_meant_is_refused(run: Run, project: Path, options: list[str], said: str) -> None:
    before = snapshot(project)
    ran = run(*INIT, *options)
    assert (ran.code, said in ran.err) == (2, True), ran.err
    assert snapshot(project) == before
