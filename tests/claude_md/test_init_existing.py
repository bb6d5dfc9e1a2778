"""`backstory init` where a CLAUDE.md or an AGENTS.md is there already."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from backstory import dirty
from backstory.claude_md import init
from backstory.claude_md.own_text import imported
from backstory.claude_md.write import dynamic, sections
from tests.conftest import Run
from tests.helpers.claude_md_project import MINE, commit, make, names, run_git, snapshot, text, write

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make(tmp_path / "walrus")


# --- a CLAUDE.md that is there ------------------------------------------------------------------------------


def test_merging_adds_sections_at_the_end_and_changes_nothing_else(run: Run, project: Path) -> None:
    (project / "CLAUDE.md").write_text(MINE)
    assert run("init", "--yes", "--offline").code == 0
    made = text(project)
    assert made.startswith(MINE + "\n<!-- AUTO-MANAGED: project-description -->\n")
    assert "build-commands" in names(project)
    assert "<!-- MANUAL -->" not in made


def test_migrating_keeps_the_old_text_byte_for_byte_as_the_manual_part(run: Run, project: Path) -> None:
    old = MINE.encode().replace(b"\n", b"\r\n") + b"\xff no line break at the end"
    (project / "CLAUDE.md").write_bytes(old)
    assert run("init", "--existing", "migrate", "--offline").code == 0
    made = (project / "CLAUDE.md").read_bytes()
    assert made.startswith(b"# Project: walrus\r\n")
    assert b"<!-- MANUAL -->\r\n" + old + b"\n<!-- END MANUAL -->" in made
    assert b"Custom Notes" not in made
    assert "patterns" in names(project)


@pytest.mark.parametrize(
    "old",
    [
        "<!-- MANUAL -->\nmine\n<!-- END MANUAL -->\n",
        "<!-- AUTO-MANAGED: tides -->\nx\n<!-- END AUTO-MANAGED -->\n",
        "mine\n<!-- END MANUAL -->\nmore\n",
        "mine\n```sh\nmake\n",
    ],
)
def test_what_cannot_be_a_manual_part_is_not_migrated(run: Run, project: Path, old: str) -> None:
    (project / "CLAUDE.md").write_text(old)
    before = snapshot(project)
    ran = run("init", "--existing", "migrate", "--offline")
    assert ran.code == 2
    assert "choose merge or backup" in ran.err
    assert snapshot(project) == before


def test_a_backup_lies_beside_the_new_file(run: Run, project: Path) -> None:
    (project / "CLAUDE.md").write_text(MINE)
    (project / "CLAUDE.md").chmod(0o600)
    (project / "CLAUDE.md.backup").write_text("an earlier one")
    ran = run("init", "--existing", "backup", "--offline", "--no-subtrees")
    assert ran.code == 0
    assert (project / "CLAUDE.md.backup").read_text() == "an earlier one"
    assert (project / "CLAUDE.md.backup.2").read_text() == MINE
    assert (project / "CLAUDE.md.backup.2").stat().st_mode & 0o777 == 0o600, "read by nobody else"
    assert "CLAUDE.md (6 sections), the old one is CLAUDE.md.backup.2" in ran.out
    assert text(project).startswith("# Project: walrus\n")
    assert "squid" not in text(project)


def test_a_link_to_nowhere_is_named(run: Run, project: Path) -> None:
    (project / "CLAUDE.md").symlink_to("gone.md")
    ran = run("init", "--yes", "--offline")
    assert ran.code == 2
    assert "is a link to gone.md, which is not there; move it away" in ran.err
    assert not (project / ".claude").exists()


def test_cancelling_writes_nothing(run: Run, project: Path, data: Path) -> None:
    (project / "CLAUDE.md").write_text(MINE)
    before = snapshot(project)
    ran = run("init", "--existing", "cancel")
    assert (ran.code, "nothing was written" in ran.err) == (1, True)
    assert snapshot(project) == before
    assert not data.exists()


@pytest.mark.parametrize("existing", ["migrate", "backup"])
def test_a_file_with_sections_of_ours_is_never_begun_afresh(run: Run, project: Path, existing: str) -> None:
    run("init", "--yes", "--offline", "--no-subtrees")
    old = text(project).replace("Add your custom notes here.", "No *squid*.")
    (project / "CLAUDE.md").write_text(old)
    ran = run("init", "--existing", existing, "--offline", "--no-subtrees")
    assert (ran.code, text(project)) == (0, old), ran.err
    said = (
        f"CLAUDE.md has sections of backstory's already: what was missing was added, instead of {existing}."
    )
    assert said in ran.out
    assert not (project / "CLAUDE.md.backup").exists()


def test_cancelling_writes_nothing_whatever_is_there(run: Run, project: Path) -> None:
    empty = snapshot(project)
    assert run("init", "--existing", "cancel", "--offline", "--no-subtrees").code == 1
    assert snapshot(project) == empty
    run("init", "--yes", "--offline", "--no-subtrees")
    write(project, {"CLAUDE.md": "<!-- AUTO-MANAGED: patterns -->\n<!-- END AUTO-MANAGED -->\n"})
    before = snapshot(project)
    ran = run("init", "--existing", "cancel", "--offline", "--no-subtrees")
    assert (ran.code, "nothing was written" in ran.err) == (1, True)
    assert snapshot(project) == before


def test_an_empty_file_is_as_good_as_none(run: Run, project: Path) -> None:
    (project / "CLAUDE.md").write_text("\n")
    told = run("init", "--yes", "--offline", "--json").json
    assert told["files"][0]["action"] == "create"
    assert text(project).startswith("# Project: walrus\n")


def test_markers_that_are_not_sound_are_reported_and_nothing_is_written(run: Run, project: Path) -> None:
    (project / "CLAUDE.md").write_text("mine\n<!-- AUTO-MANAGED: patterns -->\nno end\n")
    before = snapshot(project)
    ran = run("init", "--yes", "--offline")
    assert ran.code == 2
    assert "CLAUDE.md line 2: section patterns has no end" in ran.err
    assert snapshot(project) == before


@pytest.mark.parametrize("existing", ["merge", "migrate", "backup"])
def test_docmems_section_stays_the_last_one(run: Run, project: Path, existing: str) -> None:
    (project / "CLAUDE.md").write_bytes(dynamic.with_views(MINE.encode(), [("handbook", "How to keep it")]))
    assert run("init", "--existing", existing, "--offline").code == 0
    made = (project / "CLAUDE.md").read_bytes()
    assert made.endswith(b"\n" + dynamic.section([("handbook", "How to keep it")]))
    assert made.count(b"# DOCMEM Dynamic") == 1
    assert "patterns" in names(project)
    assert sections.parse(made).problems == ()
    rest = dynamic.without(made)
    assert (MINE.encode() in rest) == (existing != "backup")
    if existing == "backup":
        assert MINE.encode() in (project / "CLAUDE.md.backup").read_bytes()


def test_a_second_init_changes_nothing(run: Run, project: Path) -> None:
    run("init", "--yes", "--offline")
    before = snapshot(project)
    ran = run("init", "--yes", "--offline", "--json")
    assert ran.code == 0
    assert {file["action"] for file in ran.json["files"]} == {"keep"}
    assert snapshot(project) == before


def test_a_second_init_adds_what_is_missing_and_nothing_else(
    run: Run, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("init", "--yes", "--offline", "--no-subtrees")
    made = (project / "CLAUDE.md").read_bytes()
    (section,) = [one for one in sections.parse(made).sections if one.name == "architecture"]
    cut = made[: section.start] + b"My own words.\n" + made[section.stop :]
    (project / "CLAUDE.md").write_bytes(cut)
    (project / dirty.NAME).unlink()
    monkeypatch.setenv("BACKSTORY_HOME", str(tmp_path / "another"))  # of which nobody removed it
    told = run("init", "--yes", "--offline", "--no-subtrees", "--json").json
    (file,) = told["files"]
    assert (file["path"], file["action"], file["sections"]) == ("CLAUDE.md", "add", ["architecture"])
    assert file["text"]["architecture"] in text(project)
    added = (project / "CLAUDE.md").read_bytes()
    (section,) = [one for one in sections.parse(added).sections if one.name == "architecture"]
    assert added[: section.start] + added[section.stop :].removeprefix(b"\n") == cut
    assert (project / dirty.NAME).exists()


def test_a_section_that_somebody_removed_is_not_added_again(run: Run, project: Path) -> None:
    run("init", "--yes", "--offline", "--no-subtrees")
    made = (project / "CLAUDE.md").read_bytes()
    (section,) = [one for one in sections.parse(made).sections if one.name == "patterns"]
    (project / "CLAUDE.md").write_bytes(made[: section.start] + made[section.stop :])
    before = snapshot(project)
    for options in (["--dry-run"], ["--yes"]):
        ran = run("init", "--offline", "--no-subtrees", *options)
        assert "left out, since somebody removed it: patterns" in ran.out
        assert snapshot(project) == before
    told = run("init", "--yes", "--offline", "--no-subtrees", "--json").json
    assert (told["files"][0]["action"], told["files"][0]["removed"]) == ("keep", ["patterns"])
    with (project / "CLAUDE.md").open("a") as file:
        file.write("\n<!-- AUTO-MANAGED: patterns -->\n<!-- END AUTO-MANAGED -->\n")
    assert run("init", "--yes", "--offline", "--no-subtrees").code == 0
    assert sections.get((project / "CLAUDE.md").read_bytes(), "patterns").startswith("## Detected Patterns")


def test_sections_that_a_colleague_committed_are_ours_too(
    run: Run, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("init", "--yes", "--offline", "--no-subtrees")
    commit(project, "docs: describe the project")
    run_git(tmp_path, "clone", "-q", str(project), "clone")
    clone = tmp_path / "clone"
    monkeypatch.chdir(clone)
    monkeypatch.setenv("BACKSTORY_HOME", str(tmp_path / "another"))
    told = run("init", "--yes", "--offline", "--no-subtrees", "--json").json
    assert [file["action"] for file in told["files"]] == ["keep"]
    assert run_git(clone, "status", "--porcelain") == ""
    with (clone / "pyproject.toml").open("a") as file:
        file.write("[tool.ruff]\nline-length = 100\n")
    told = run("sync", "--yes", "--json").json
    assert told["files"][0]["sections"]["build-commands"] == "written"
    assert "`ruff check`" in text(clone)


def test_lines_in_the_list_survive_a_second_init(run: Run, project: Path) -> None:
    run("init", "--yes", "--offline")
    dirty.append(str(project), [str(project / "walrus" / "a.py")])
    run("init", "--yes", "--offline")
    assert dirty.read(str(project)) == [str(project / "walrus" / "a.py")]


# --- AGENTS.md ----------------------------------------------------------------------------------------------


def test_sections_live_in_agents_md_and_claude_md_imports_it(run: Run, project: Path) -> None:
    (project / "AGENTS.md").write_text(MINE)
    told = run("init", "--yes", "--offline", "--no-subtrees", "--json").json
    assert [(file["path"], file["action"]) for file in told["files"]] == [
        ("AGENTS.md", "merge"),
        ("CLAUDE.md", "import"),
    ]
    assert text(project, "AGENTS.md").startswith(MINE)
    assert "patterns" in names(project, "AGENTS.md")
    assert text(project) == "@AGENTS.md\n"


def test_a_claude_md_beside_agents_md_gets_one_line(run: Run, project: Path) -> None:
    (project / "AGENTS.md").write_text("for all\n")
    (project / "CLAUDE.md").write_text(MINE)
    assert run("init", "--yes", "--offline").code == 0
    assert text(project) == "@AGENTS.md\n\n" + MINE


@pytest.mark.parametrize("line", ["@AGENTS.md", "See @AGENTS.md for more", "- @./AGENTS.md"])
def test_a_claude_md_that_imports_it_already_stays(run: Run, project: Path, line: str) -> None:
    (project / "AGENTS.md").write_text("for all\n")
    (project / "CLAUDE.md").write_text(f"# Mine\n{line}\n")
    assert run("init", "--yes", "--offline").code == 0
    assert text(project) == f"# Mine\n{line}\n"
    assert names(project) == []


@pytest.mark.parametrize(
    "line", ["`@AGENTS.md`", "```\n@AGENTS.md\n```", "me@AGENTS.md", "\\@AGENTS.md", "@AGENTS.md.old"]
)
def test_what_imports_nothing_is_no_import(line: str) -> None:
    assert "AGENTS.md" not in imported(f"a\n{line}\nb\n".encode())
    assert init.with_import(f"{line}\n".encode()) == f"@AGENTS.md\n\n{line}\n".encode()


def test_the_import_keeps_the_files_line_breaks_and_mark() -> None:
    assert init.with_import(b"\xef\xbb\xbfa\r\nb\r\n") == b"\xef\xbb\xbf@AGENTS.md\r\n\r\na\r\nb\r\n"
    assert init.with_import(b"") == b"@AGENTS.md\n"
    assert init.with_import(init.with_import(b"a\n")) == init.with_import(b"a\n")


@pytest.mark.parametrize(("link", "file"), [("CLAUDE.md", "AGENTS.md"), ("AGENTS.md", "CLAUDE.md")])
def test_a_link_from_one_to_the_other_stays(run: Run, project: Path, link: str, file: str) -> None:
    (project / file).write_text(MINE)
    (project / link).symlink_to(file)
    told = run("init", "--yes", "--offline", "--no-subtrees", "--json").json
    assert [one["action"] for one in told["files"]] == ["merge"]
    assert (project / link).is_symlink()
    assert "patterns" in names(project, file)


def test_sections_that_are_in_claude_md_stay_there_when_an_agents_md_comes(run: Run, project: Path) -> None:
    run("init", "--yes", "--offline")
    (project / "AGENTS.md").write_text("for all\n")
    before = snapshot(project)
    assert run("init", "--yes", "--offline").code == 0
    assert snapshot(project) == before


@pytest.mark.parametrize("title", ["# CLAUDE.md\n", ""])
def test_an_agents_md_with_the_same_text_is_not_imported(run: Run, project: Path, title: str) -> None:
    (project / "AGENTS.md").write_text(MINE)
    (project / "CLAUDE.md").write_text(title + MINE)
    told = run("init", "--yes", "--offline", "--no-subtrees", "--json").json
    assert [(file["path"], file["action"]) for file in told["files"]] == [("CLAUDE.md", "merge")]
    assert text(project).startswith(title + MINE)
    assert "@AGENTS.md" not in text(project)
    assert text(project, "AGENTS.md") == MINE
    before = snapshot(project)
    assert run("init", "--yes", "--offline", "--no-subtrees").code == 0
    assert snapshot(project) == before


def test_an_agents_md_that_a_claude_md_elsewhere_imports_is_not_imported_again(
    run: Run, project: Path
) -> None:
    write(project, {"AGENTS.md": "for all\n", ".claude/CLAUDE.md": "@../AGENTS.md\n"})
    told = run("init", "--yes", "--offline", "--no-subtrees", "--json").json
    assert [(file["path"], file["action"]) for file in told["files"]] == [("AGENTS.md", "merge")]
    assert text(project, ".claude/CLAUDE.md") == "@../AGENTS.md\n"
    assert not (project / "CLAUDE.md").exists()
    write(project, {"CLAUDE.md": MINE})
    assert run("init", "--yes", "--offline", "--no-subtrees").code == 0
    assert text(project) == MINE


# --- .claude/CLAUDE.md --------------------------------------------------------------------------------------


def test_a_claude_md_in_its_folder_is_the_projects(run: Run, project: Path) -> None:
    write(project, {".claude/CLAUDE.md": MINE})
    told = run("init", "--yes", "--offline", "--no-subtrees", "--json").json
    assert [(file["path"], file["action"]) for file in told["files"]] == [(".claude/CLAUDE.md", "merge")]
    assert not (project / "CLAUDE.md").exists()
    assert "- `walrus/`: Feeds walruses" in text(project, ".claude/CLAUDE.md")
    with (project / "pyproject.toml").open("a") as file:
        file.write("[tool.ruff]\nline-length = 100\n")
    told = run("sync", "--yes", "--json").json
    assert told["files"][0]["path"] == ".claude/CLAUDE.md"
    assert "`ruff check`" in text(project, ".claude/CLAUDE.md")
    assert run("claude-md", "section", "get", "build-commands").out.startswith("## Build Commands")


def test_a_claude_md_in_its_folder_imports_agents_md_from_above(run: Run, project: Path) -> None:
    write(project, {".claude/CLAUDE.md": MINE, "AGENTS.md": "for all\n"})
    assert run("init", "--yes", "--offline", "--no-subtrees").code == 0
    assert text(project, ".claude/CLAUDE.md") == "@../AGENTS.md\n\n" + MINE
    assert not (project / "CLAUDE.md").exists()
    before = snapshot(project)
    assert run("init", "--yes", "--offline", "--no-subtrees").code == 0
    assert snapshot(project) == before


# --- what a person's own text covers ------------------------------------------------------------------------

COMMANDS = "`pip install -e .`, `python -m build`, `pytest`, `pytest tests/feeding_test.py::test_it_is_fed`"
OWN = f"# Walrus\n\n## Commands\n\n{COMMANDS}\n"


def test_a_section_that_a_persons_text_covers_is_left_out_and_said_so(run: Run, project: Path) -> None:
    (project / "CLAUDE.md").write_text(OWN)
    ran = run("init", "--dry-run", "--no-subtrees")
    how = r"([1-9]) of \1 commands and paths are there"
    assert re.search(rf"left out, since your text covers it: build-commands \({how}\)", ran.out)
    told = run("init", "--yes", "--offline", "--no-subtrees", "--json").json
    assert re.fullmatch(how, told["files"][0]["covered"].pop("build-commands"))
    assert "build-commands" not in names(project)
    assert "architecture" in names(project)
    told = run("sync", "--all", "--offline", "--yes", "--json").json
    assert (told["lacking"], "build-commands" in names(project)) == ([], False)


def test_a_covered_section_is_written_for_who_asks(run: Run, project: Path) -> None:
    (project / "CLAUDE.md").write_text(OWN)
    assert run("init", "--yes", "--offline", "--no-subtrees", "--section", "build-commands").code == 0
    assert "build-commands" in names(project)


def test_text_in_what_claude_md_imports_covers_too(run: Run, project: Path) -> None:
    write(project, {"CLAUDE.md": "See @docs/how.md\n", "docs/how.md": OWN})
    run("init", "--yes", "--offline", "--no-subtrees")
    assert "build-commands" not in names(project)


def test_a_text_that_is_put_away_covers_nothing(run: Run, project: Path) -> None:
    (project / "CLAUDE.md").write_text(OWN)
    run("init", "--existing", "backup", "--offline", "--no-subtrees")
    assert "build-commands" in names(project)


def test_where_all_is_covered_nothing_is_written(run: Run, project: Path) -> None:
    own = (
        f"# Walrus\n\nWalrus is a program.\n\n{COMMANDS}; `walrus/`, `tusks/`, `tests/`,"
        " `tests/feeding_test.py`, `*_test.py`. Meals are in `feeding_0.py`, `feeding_1.py` and so on to"
        " `feeding_10.py` and `feeding_11.py`. Functions are `camelCase`, classes `PascalCase`.\n"
    )
    (project / "CLAUDE.md").write_text(own)
    ran = run("init", "--yes", "--offline", "--no-subtrees", "--off", "git-insights")
    assert ran.code == 0
    assert text(project) == own + "\n<!-- backstory: off git-insights -->\n"
    assert dirty.root_of(str(project)) == str(project)


# --- folders ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["CLAUDE.md", "AGENTS.md"])
def test_a_file_that_a_person_wrote_in_a_folder_gets_nothing_unasked(
    run: Run, monorepo: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(monorepo)
    write(monorepo, {f"packages/api/{name}": MINE})
    ran = run("init", "--dry-run")
    assert "packages/api  stays as a person wrote it; --subtree packages/api adds sections" in ran.out
    told = run("init", "--yes", "--offline", "--json").json
    assert told["by_hand"] == ["packages/api"]
    assert text(monorepo, f"packages/api/{name}") == MINE
    assert (monorepo / "packages" / "web" / "CLAUDE.md").exists()
    assert run("init", "--yes", "--offline", "--subtree", "packages/api").code == 0
    assert "module-description" in names(monorepo, f"packages/api/{name}")
