"""The wizard of `backstory init`, at a real terminal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from backstory.claude_md.write import sections
from tests.conftest import Run
from tests.helpers.claude_md_project import MINE, make, names, section, snapshot, text, write
from tests.helpers.terminal import at_terminal

pytestmark = pytest.mark.slow

INIT = ("init", "--offline", "--no-subtrees")
ASKED = "Write this?"
COMMANDS = "`pip install -e .`, `python -m build`, `pytest tests/feeding_test.py::test_it_is_fed`"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make(tmp_path / "walrus")


def plain(seen: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen).replace("\r\n", "\n")


def talk(
    project: Path, *answers: str, options: tuple[str, ...] = INIT, columns: int = 100
) -> tuple[int, str]:
    code, seen = at_terminal(
        project, *options, turns=tuple((ASKED, f"{answer}\n") for answer in answers), columns=columns
    )
    return code, plain(seen)


def test_sections_are_listed_with_their_sizes(project: Path) -> None:
    _, seen = talk(project, "n")
    assert re.search(r"^CLAUDE.md  is made; \d+ tokens$", seen, re.MULTILINE)
    assert re.search(r"^  2  on   build-commands +\d+ tokens$", seen, re.MULTILINE)


def test_sections_are_switched_off_by_number_and_name_and_on_again(project: Path) -> None:
    code, seen = talk(project, "look", "off 2, 3", "off patterns", "on build-commands", "6", "y")
    assert code == 0, seen
    assert seen.count("- `walrus/`: Feeds walruses") == 2
    assert names(project) == ["project-description", "build-commands", "conventions"]
    assert "<!-- backstory: off architecture, patterns, git-insights -->" in text(project)
    assert re.search(r"^  3  off  architecture +\d+ tokens  it is switched off$", seen, re.MULTILINE)


def test_a_command_is_corrected_after_its_evidence_was_shown(project: Path) -> None:
    corrected = ((ASKED, "command test\n"), ("The command to test", "make check\n"))
    removed = ((ASKED, "command\n"), ("Of which role?", "build\n"), ("The command to build", "none\n"))
    code, seen = at_terminal(project, *INIT, turns=(*corrected, *removed, (ASKED, "y\n")))
    assert code == 0, seen
    assert "test  pytest (from pyproject.toml)" in seen
    assert "test  make check (set in the file)" in seen
    assert "- Test: `make check`" in section(project, "build-commands")
    assert "Build: " not in section(project, "build-commands")
    assert "<!-- backstory: command test = make check -->" in text(project)


def test_a_correction_is_taken_back(project: Path) -> None:
    turns = ((ASKED, "command test = make check\n"), (ASKED, "command test\n"), ("The command to", ".\n"))
    code, seen = at_terminal(project, *INIT, turns=(*turns, (ASKED, "y\n")))
    assert code == 0, seen
    assert "- Test: `pytest`" in section(project, "build-commands")
    assert "backstory: command" not in text(project)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("off 77", "No section in the list is called '77'."),
        ("off nonsense", "No section in the list is called 'nonsense'."),
        ("off", "Say which"),
        ("command deploy = x", "the roles are"),
        ("command tset", "No role is called 'tset'; the roles are install"),
        ("command test = a --> b", "a command is one line"),
        ("existing", "No file is there"),
        ("what", "command test = make check"),
        ("", "leave; nothing is written"),
    ],
)
def test_what_cannot_be_done_is_said_and_asked_again(project: Path, answer: str, said: str) -> None:
    before = snapshot(project)
    code, seen = talk(project, answer, "n")
    assert (code, said in seen) == (1, True), seen
    assert "Traceback" not in seen
    assert snapshot(project) == before


def test_nothing_is_written_before_a_person_says_so(project: Path, data: Path) -> None:
    before = snapshot(project)
    code, seen = talk(project, "off patterns", "command test = make check", "leave")
    assert (code, "Nothing was written." in seen) == (1, True)
    assert snapshot(project) == before
    assert not (data / "backstory.db").exists()


def test_what_becomes_of_the_file_can_be_chosen_again(project: Path) -> None:
    (project / "CLAUDE.md").write_text(MINE)
    turns = (("Which?", "backup\n"), (ASKED, "existing\n"), ("Which?", "merge\n"), (ASKED, "y\n"))
    code, seen = at_terminal(project, *INIT, turns=turns)
    assert code == 0, seen
    assert text(project).startswith(MINE)
    assert not (project / "CLAUDE.md.backup").exists()


def test_who_cancels_leaves_the_wizard_and_nothing_is_written(project: Path) -> None:
    (project / "CLAUDE.md").write_text(MINE)
    before = snapshot(project)
    turns = (("Which?", "merge\n"), (ASKED, "existing\n"), ("Which?", "cancel\n"))
    code, seen = at_terminal(project, *INIT, turns=turns)
    assert (code, "Cancelled; nothing was written." in seen) == (1, True), seen
    assert snapshot(project) == before


def test_an_empty_answer_about_a_command_leaves_it_as_it_is(project: Path) -> None:
    no_role = ((ASKED, "command\n"), ("Of which role?", "\n"))
    no_text = ((ASKED, "command test\n"), ("The command to test (empty: leave it as it is", "\n"))
    code, seen = at_terminal(project, *INIT, turns=(*no_role, *no_text, (ASKED, "y\n")), columns=120)
    assert code == 0, seen
    assert "- Test: `pytest`" in section(project, "build-commands")
    assert "backstory: command" not in text(project)


def test_a_section_that_a_person_edited_is_listed_and_can_be_switched_off(run: Run, project: Path) -> None:
    run("init", "--yes", "--offline", "--no-subtrees")
    path = project / "CLAUDE.md"
    path.write_bytes(sections.with_section(path.read_bytes(), "patterns", "Mine."))
    turns = (("Change something?", "off patterns\n"), (ASKED, "y\n"))
    code, seen = at_terminal(project, *INIT, turns=turns)
    assert code == 0, seen
    assert re.search(
        r"^  \d  on   patterns +2 tokens  is there, and stays as it is$", plain(seen), re.MULTILINE
    )
    assert "<!-- backstory: off patterns -->" in text(project)
    assert section(project, "patterns") == "Mine."


def test_a_section_that_a_persons_text_covers_can_be_had(project: Path) -> None:
    (project / "CLAUDE.md").write_text(f"Run {COMMANDS}.\n")
    turns = (("Which?", "merge\n"), (ASKED, "on build-commands\n"), (ASKED, "y\n"))
    code, seen = at_terminal(project, *INIT, turns=turns, columns=120)
    assert code == 0, seen
    assert re.search(r"your text covers it: ([1-9]) of \1 commands and paths are there", seen)
    assert "build-commands" in names(project)


def test_in_an_initialised_project_a_person_can_still_change_something(run: Run, project: Path) -> None:
    run("init", "--yes", "--offline", "--no-subtrees")
    before = snapshot(project)
    code, seen = at_terminal(project, *INIT, turns=(("Change something?", "n\n"),))
    assert (code, snapshot(project)) == (0, before), seen
    turns = (("Change something?", "off patterns\n"), (ASKED, "y\n"))
    code, seen = at_terminal(project, *INIT, turns=turns)
    assert code == 0, seen
    assert "patterns" not in names(project)


def test_folders_can_be_chosen_again(monorepo: Path) -> None:
    write(monorepo, {"packages/api/CLAUDE.md": MINE})
    turns = (
        ("Which?", "none\n"),
        (ASKED, "subtrees\n"),
        ("Which?", "all\n"),
        (ASKED, "off architecture\n"),
        (ASKED, "y\n"),
    )
    code, seen = at_terminal(monorepo, "init", "--offline", turns=turns)
    assert code == 0, seen
    assert re.search(r"packages/api  an application .+  has one written by hand, which stays", plain(seen))
    assert text(monorepo, "packages/api/CLAUDE.md") == MINE
    assert (monorepo / "packages" / "web" / "CLAUDE.md").exists()
