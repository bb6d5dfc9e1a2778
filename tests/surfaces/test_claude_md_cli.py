"""`backstory claude-md section`, as a model, a script or a person uses it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from backstory.claude_md.write import sections as parts
from tests.conftest import Run
from tests.helpers.claude_md_project import TEMPLATE
from tests.helpers.managed_file import owned
from tests.helpers.terminal import seen_at_terminal

BACKSTORY = os.path.join(os.path.dirname(sys.executable), "backstory")
COMMANDS = ("get", "set", "list", "diff", "accept", "keep")
EVIL = "\x1b[2J\x9b1m\x07\u202e"


@pytest.fixture
def section(run: Run) -> Run:
    return partial(run, "claude-md", "section")


@pytest.fixture
def file(project: str) -> Path:
    path = Path(project, "CLAUDE.md")
    path.write_text(TEMPLATE)
    return path


def body(file: Path, name: str = "patterns") -> str:
    return parts.get(file.read_bytes(), name)


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


@pytest.fixture
def offered(section: Run, file: Path) -> Path:
    section("set", "patterns", stdin="Tests first.")
    edit(file, "Tests first.", "Tests first, mostly.")
    assert section("set", "patterns", stdin="Tests last.").code == 1
    return file


def in_a_shell(command: str, cwd: str | Path) -> subprocess.CompletedProcess[bytes]:
    line = command.replace("backstory", BACKSTORY)
    return subprocess.run(["sh", "-c", line], cwd=cwd, capture_output=True, timeout=60, check=False)


# --- get and set --------------------------------------------------------------------------------------------


def test_a_section_is_set_from_standard_input_and_got_back(section: Run, file: Path) -> None:
    ran = section("set", "patterns", "--file", "-", stdin="Tests first.\n\n- always\n")
    assert (ran.code, ran.out, ran.err) == (0, "Section written: patterns in CLAUDE.md (6 tokens)\n", "")
    written = owned("Tests first.\n\n- always", "model")
    assert file.read_text() == TEMPLATE.replace("patterns -->\n", f"patterns -->\n{written}")
    ran = section("get", "patterns")
    assert (ran.code, ran.out) == (0, "Tests first.\n\n- always\n")


@pytest.mark.slow
def test_what_is_got_and_set_again_stays_the_same(project: str, file: Path) -> None:
    text = "family \U0001f468\u200d\U0001f469\u200d\U0001f467 and\u00a0blank\n"
    edit(file, "patterns -->\n", f"patterns -->\n{text}")
    before = file.read_bytes()
    ran = in_a_shell(
        "backstory claude-md section get patterns | backstory claude-md section set patterns", project
    )
    assert (ran.returncode, ran.stdout) == (0, b"Section unchanged: patterns in CLAUDE.md (6 tokens)\n")
    assert file.read_bytes() == before


def test_a_section_is_set_from_a_file(section: Run, file: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.md"
    text.write_bytes(b"\xef\xbb\xbfTests first.\r\n")
    ran = section("set", "patterns", "--file", str(text), "--json")
    assert ran.json == {"file": str(file), "section": "patterns", "outcome": "written"}
    assert body(file) == "Tests first."
    ran = section("get", "patterns", "--json")
    assert ran.json == {"file": str(file), "section": "patterns", "text": "Tests first."}


def test_a_secret_is_left_out_and_said_to_be(section: Run, file: Path) -> None:
    ran = section("set", "patterns", stdin="The token is ghp_" + "Ab1" * 12)
    assert ran.code == 0
    assert "left out" in ran.err
    assert "Ab1Ab1" not in file.read_text()
    assert section("set", "build-commands", stdin="make\0 all").err == ""


def test_markers_in_a_text_are_only_text(section: Run, file: Path) -> None:
    said = "<!-- END AUTO-MANAGED -->\n<!-- AUTO-MANAGED: conventions -->\n@/etc/passwd\n"
    assert section("set", "patterns", stdin=said).code == 0
    found = section("list", "--json").json
    assert [one["name"] for one in found["sections"]] == ["build-commands", "patterns"]
    assert found["problems"] == []
    assert "\n@/etc" not in file.read_text()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "there is no text in standard input"),
        (" \n\t\n", "there is no text in standard input"),
        ("x" * 100_001, "more than 100,000 bytes"),
        ("é" * 50_001, "more than 100,000 bytes"),
    ],
)
def test_no_text_and_too_much_text_are_refused(section: Run, file: Path, given: str, said: str) -> None:
    ran = section("set", "patterns", stdin=given)
    assert ran.code == 2
    assert said in ran.err
    assert file.read_text() == TEMPLATE


def test_what_is_not_utf_8_or_no_file_is_refused(
    project: str, section: Run, file: Path, tmp_path: Path
) -> None:
    ran = in_a_shell("printf '\\377\\n' | backstory claude-md section set patterns", project)
    assert (ran.returncode, b"standard input is not UTF-8" in ran.stderr) == (2, True)
    text = tmp_path / "text.md"
    text.write_bytes(b"\xff")
    assert section("set", "patterns", "--file", str(text)).code == 2
    text.write_bytes(b"x" * 100_001)
    assert section("set", "patterns", "--file", str(text)).code == 2
    assert section("set", "patterns", "--file", str(tmp_path / "none")).code == 1
    assert section("set", "patterns", "--file", str(tmp_path)).code == 2
    assert file.read_text() == TEMPLATE


@pytest.mark.slow
def test_nobody_waits_at_a_terminal_for_a_text(project: str, file: Path) -> None:
    ran = in_a_shell(
        "script -qec 'backstory claude-md section set patterns; echo code $?' /dev/null </dev/null", project
    )
    assert b"pipe the text into it" in ran.stdout
    assert b"code 2" in ran.stdout
    ran = in_a_shell("backstory claude-md section set patterns <&-", project)
    assert (ran.returncode, b"pipe the text into it" in ran.stderr) == (2, True)
    assert file.read_text() == TEMPLATE


def test_only_sections_that_backstory_knows_are_set(section: Run, file: Path) -> None:
    edit(file, "AUTO-MANAGED: patterns", "AUTO-MANAGED: own-notes")
    ran = section("set", "own-notes", stdin="x")
    assert ran.code == 2
    assert "no section is called own-notes; there are project-description, build-commands" in ran.err
    assert section("get", "own-notes").code == 0


def test_a_section_that_is_not_there_is_not_made(section: Run, file: Path) -> None:
    for command in ("get", "set", "diff", "accept", "keep"):
        ran = section(command, "conventions", stdin="x")
        assert ran.code == 1, command
        assert "conventions" in ran.err
    assert file.read_text() == TEMPLATE


def test_a_section_that_costs_much_is_said_to(section: Run, file: Path) -> None:
    ran = section("set", "patterns", stdin="Tests come first, before all else. " * 200)
    assert ran.code == 0 and "tokens; 900 are enough for nearly every project)" in ran.out
    assert file.read_text().count("before all else") == 200


def test_a_section_that_is_not_there_is_added_if_that_is_said(section: Run, file: Path) -> None:
    ran = section("set", "conventions", "--add", stdin="Be brief.\n")
    assert (ran.code, ran.out) == (0, "Section written: conventions in CLAUDE.md (3 tokens)\n")
    added = f"<!-- AUTO-MANAGED: conventions -->\n{owned('Be brief.', 'model')}<!-- END AUTO-MANAGED -->\n"
    assert file.read_text().count(added) == 1
    assert file.read_text().replace(f"{added}\n", "") == TEMPLATE
    assert section("get", "conventions").out == "Be brief.\n"
    file.write_text(TEMPLATE + "<!-- backstory: off conventions -->\n")
    assert section("set", "conventions", "--add", stdin="Be brief.\n").code == 1
    assert "Be brief" not in file.read_text()


def test_a_section_is_added_to_the_file_that_another_one_imports(section: Run, project: str) -> None:
    Path(project, "CLAUDE.md").write_text("@AGENTS.md\n")
    Path(project, "AGENTS.md").write_text("# Ours\n")
    assert section("set", "architecture", "--add", stdin="Two parts.\n").code == 0
    assert Path(project, "CLAUDE.md").read_text() == "@AGENTS.md\n"
    assert "Two parts." in Path(project, "AGENTS.md").read_text()


# --- which file ---------------------------------------------------------------------------------------------


def test_without_a_file_it_says_what_makes_one(section: Run, project: str) -> None:
    for command in (["get", "patterns"], ["set", "patterns"], ["list"], ["diff", "patterns"]):
        ran = section(*command, stdin="x")
        assert (ran.code, "backstory init" in ran.err) == (1, True)
    assert os.listdir(project) == []


def test_the_sections_may_be_in_agents_md(section: Run, project: str, file: Path) -> None:
    agents = file.with_name("AGENTS.md")
    file.rename(agents)
    file.write_text("@AGENTS.md\n")
    ran = section("set", "patterns", stdin="Tests first.")
    assert ran.out == "Section written: patterns in AGENTS.md (3 tokens)\n"
    assert body(agents) == "Tests first."
    assert file.read_text() == "@AGENTS.md\n"


def test_from_a_folder_below_the_file_at_the_top_is_meant(
    section: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = file.parent / "src" / "web"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert section("list").code == 1
    subprocess.run(["git", "init", "-q"], cwd=file.parent, check=True)
    assert section("set", "patterns", stdin="Tests first.").code == 0
    assert body(file) == "Tests first."


def test_outside_git_an_initialised_folder_is_the_top(
    section: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file.parent / ".claude").mkdir()
    (file.parent / ".claude" / ".dirty-files").touch()
    below = file.parent / "src"
    below.mkdir()
    (below / "CLAUDE.md").write_text(TEMPLATE)
    monkeypatch.chdir(below)
    assert section("set", "patterns", stdin="Above.").code == 0
    ran = section("set", "patterns", "--in", "CLAUDE.md", stdin="Below.")
    assert ran.out == "Section written: patterns in src/CLAUDE.md (2 tokens)\n"
    assert (body(file), body(below / "CLAUDE.md")) == ("Above.", "Below.")
    assert len(section("list", "--json").json["sections"]) == 2


def test_another_project_can_be_named(
    section: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = section("set", "patterns", "--project", "api", stdin="x")
    assert (ran.code, body(file)) == (0, "x")
    ran = section("set", "patterns", "--project", "api", "--in", "api/CLAUDE.md", stdin="y")
    assert (ran.code, body(file)) == (0, "y")


def test_a_file_outside_the_project_is_refused(section: Run, file: Path, tmp_path: Path) -> None:
    outside = tmp_path / "CLAUDE.md"
    outside.write_text(TEMPLATE)
    (file.parent / "LINK.md").symlink_to(outside)
    for within in ("../CLAUDE.md", str(outside), "LINK.md"):
        for command in (["set", "patterns"], ["get", "patterns"], ["list"], ["accept", "patterns"]):
            ran = section(*command, "--in", within, stdin="x")
            assert (ran.code, "outside of the project" in ran.err) == (2, True), (within, command)
    assert outside.read_text() == TEMPLATE
    file.unlink()
    file.symlink_to(outside)
    assert section("set", "patterns", stdin="x").code == 2
    assert outside.read_text() == TEMPLATE


# --- offers -------------------------------------------------------------------------------------------------


def test_a_text_for_a_section_that_a_person_edited_is_offered(section: Run, offered: Path) -> None:
    before = offered.read_text()
    ran = section("set", "patterns", stdin="Tests last.")
    assert (ran.code, ran.out) == (1, "")
    assert (
        "A person has edited patterns in CLAUDE.md, so it stays as it is; the new text is offered" in ran.err
    )
    assert "`backstory claude-md section diff patterns` shows it" in ran.err
    ran = section("set", "patterns", "--json", stdin="Tests last.")
    assert (ran.code, ran.json["outcome"]) == (1, "offered")
    assert offered.read_text() == before


def test_what_is_offered_is_shown_as_a_diff(section: Run, offered: Path) -> None:
    ran = section("diff", "patterns")
    assert ran.code == 0
    assert ran.out == "--- in the file\n+++ offered\n@@ -1 +1 @@\n-Tests first, mostly.\n+Tests last.\n"
    assert "`backstory claude-md section accept patterns` takes it" in ran.err
    told = section("diff", "patterns", "--json").json
    assert told == {
        "file": str(offered),
        "section": "patterns",
        "offered": True,
        "diff": ran.out.rstrip("\n"),
    }


def test_an_offer_is_taken(section: Run, offered: Path, data: Path) -> None:
    ran = section("accept", "patterns")
    assert (ran.code, ran.out) == (0, "Section accepted: patterns in CLAUDE.md\n")
    assert body(offered) == "Tests last."
    kept = [path.read_text() for path in data.glob("backups/claude-md/*/*.md")]
    assert any("Tests first, mostly." in text for text in kept)
    ran = section("accept", "patterns")
    assert (ran.code, "Nothing is offered" in ran.err) == (1, True)


def test_an_offer_is_turned_down(section: Run, offered: Path) -> None:
    ran = section("keep", "patterns", "--json")
    assert (ran.code, ran.json) == (0, {"file": str(offered), "section": "patterns", "outcome": "kept"})
    ran = section("set", "patterns", stdin="Tests last.")
    assert (ran.code, "turned this very text down" in ran.err) == (1, True)
    assert section("keep", "patterns").code == 1
    assert body(offered) == "Tests first, mostly."


def test_without_an_offer_the_diff_shows_what_a_person_changed(section: Run, offered: Path) -> None:
    section("keep", "patterns")
    ran = section("diff", "patterns")
    assert ran.out.splitlines()[:2] == ["--- as it was written", "+++ in the file"]
    assert ran.out.splitlines()[3:] == ["-Tests first.", "+Tests first, mostly."]
    assert section("diff", "patterns", "--json").json["offered"] is False
    edit(offered, "Tests first, mostly.", "Tests first.")
    ran = section("diff", "patterns")
    assert (ran.code, ran.out) == (1, "")


def test_a_file_that_was_named_is_named_in_what_to_do_next(section: Run, file: Path) -> None:
    below = file.parent / "web ui"
    below.mkdir()
    (below / "CLAUDE.md").write_text(TEMPLATE.replace("patterns -->\n", "patterns -->\nBy hand.\n"))
    ran = section("set", "patterns", "--in", "web ui/CLAUDE.md", stdin="x")
    assert "`backstory claude-md section diff patterns --in 'web ui/CLAUDE.md'`" in ran.err
    ran = section("diff", "patterns", "--in", "web ui/CLAUDE.md")
    assert "keep patterns --in 'web ui/CLAUDE.md'`" in ran.err


# --- list ---------------------------------------------------------------------------------------------------


def test_the_list_says_whose_each_section_is(section: Run, offered: Path) -> None:
    ran = section("list")
    assert ran.err == ""
    assert [line.split(maxsplit=4) for line in ran.out.splitlines()] == [
        ["section", "author", "lines", "tokens", "state"],
        ["build-commands", "-", "0", "0", "-"],
        ["patterns", "model", "1", "5", "edited by hand, offered"],
    ]


def test_the_list_has_problems_and_foreign_sections(section: Run, file: Path) -> None:
    edit(file, "AUTO-MANAGED: patterns", "AUTO-MANAGED: own-notes")
    file.write_text(file.read_text() + "<!-- END AUTO-MANAGED -->\n")
    ran = section("list")
    assert "own-notes" in ran.out
    assert ran.err.startswith("CLAUDE.md:12: this ends no section")
    told = section("list", "--json").json
    assert told["problems"] == [{"line": 12, "said": ran.err.partition(": ")[2].strip()}]
    assert told["file"] == str(file)
    assert (told["lines"], told["tokens"]) == (12, -(-len(file.read_text()) // 4))
    assert told["sections"][1] == {
        "name": "own-notes",
        "author": None,
        "lines": 0,
        "tokens": 0,
        "edited": False,
        "offered": False,
        "conflict": False,
        "behind": [],
    }


def test_a_file_without_sections_says_what_adds_them(section: Run, file: Path) -> None:
    file.write_text("# api\n")
    ran = section("list")
    assert (ran.code, ran.out) == (1, "")
    assert "No sections in CLAUDE.md. `backstory init` adds them." in ran.err
    ran = section("list", "--json")
    assert (ran.code, ran.json["sections"]) == (1, [])


# --- what is printed ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_at_a_terminal_control_characters_are_visible_and_diffs_coloured(project: str, file: Path) -> None:
    edit(file, "patterns -->\n", f"patterns -->\nBy hand {EVIL}\n")
    shown = seen_at_terminal("claude-md section get patterns", project)
    assert shown.strip() == r"By hand \x1b[2J\x9b1m\x07\u202e"
    in_a_shell("echo New | backstory claude-md section set patterns", project)
    shown = seen_at_terminal("claude-md section diff patterns", project)
    assert r"\x1b[2J" in shown
    assert re.search(r"\x1b\[32m\+New", shown)
    assert "\u202e" not in shown
    in_pipe = in_a_shell("backstory claude-md section diff patterns", project)
    assert b"\x1b" not in in_pipe.stdout
