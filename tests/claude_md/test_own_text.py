"""What a person's own text covers."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from backstory.claude_md.own_text import MOST_BYTES, MOST_FILES, OwnText, imported, is_same_text, own_text
from backstory.claude_md.read.documents import is_to_be_told
from backstory.claude_md.read.obligations import TOPICS

COMMANDS = "## Build Commands\n- Build: `make all`\n- Test: `make check`, `pytest`\n- Lint: `ruff check`"
FOLDERS = "- `src/api/`: serves\n- `src/web/`: shows\n- `docs/`, with `utils`"


def covers(name: str, body: str, text: str) -> str:
    return OwnText([text.encode()]).covers(name, body, "walrus")


@pytest.mark.parametrize(
    "text",
    [
        "Run make all, then make check.",
        "```sh\nmake check\nruff check\n```",
        "Before a commit: `ruff  check` and\n`make\ncheck`",
    ],
)
def test_commands_that_a_person_names_cover_the_section(text: str) -> None:
    assert covers("build-commands", COMMANDS, text) == "2 of 3 commands and paths are there"


@pytest.mark.parametrize(
    "text",
    [
        "# Build Commands\n\nAsk Jo; they are in the wiki. " + "Really, ask Jo about that. " * 9,
        "remake all of it, make checks, and ruff checks",
        "Only `make all`.",
        "",
    ],
)
def test_other_words_do_not(text: str) -> None:
    assert covers("build-commands", COMMANDS, text) == ""


def test_the_files_that_a_command_comes_from_do_not_count() -> None:
    body = "- Test: `make check` (from `Makefile`, `ci.yml`), `make more`, `make all`"
    assert covers("build-commands", body, "The Makefile and ci.yml; run make check and make all.") == (
        "2 of 3 commands and paths are there"
    )
    assert covers("build-commands", body, "The Makefile and ci.yml.") == ""


def test_of_few_commands_all_must_be_there() -> None:
    assert covers("build-commands", "`make check`, `make all`", "Run make check.") == ""
    assert covers("build-commands", "`make check`, `make all`", "Run make check, make all.")


def test_a_word_that_is_also_english_counts_only_as_code() -> None:
    assert covers("build-commands", "- Build: `make`", "Please make sure") == ""
    assert covers("build-commands", "- Build: `make`", "Run `make`") == "1 of 1 commands and paths are there"


@pytest.mark.parametrize(
    "text", ["```\nsrc/\n  api/   serves\n  web/   shows\n```", "See src/api/main.go and `./src/web`."]
)
def test_paths_are_found_in_prose_and_in_trees(text: str) -> None:
    assert covers("architecture", FOLDERS, text) == "2 of 3 commands and paths are there"


def test_prose_is_covered_by_a_part_of_its_kind() -> None:
    style = "## Code Conventions\n- Style: indented with 4 spaces"
    text = "# Code Style\n\n" + "Three spaces, never tabs, and no line longer than this. " * 3
    assert covers("conventions", style, text) == "it has a part `Code Style`"
    assert covers("conventions", style, "# Code Style\n\nNice.\n") == ""
    assert covers("conventions", style, "```\n# Code Style\n```\n" + "words " * 50) == ""


def test_what_a_project_is_is_covered_by_a_sentence_that_says_so() -> None:
    said = "Keeps walruses well fed. Written in Python."
    assert covers("project-description", said, "**Walrus** is a program.") == "it says what walrus is"
    assert covers("project-description", said, "This file provides guidance to agents.") == ""


def test_how_files_change_is_covered_by_nothing() -> None:
    assert covers("git-insights", "- `a.py` and `b/c.py` change together", "# Git Insights\n`a.py`") == ""
    commits = "## Git Insights\n- Commits: Messages follow Conventional Commits, `type: subject`."
    assert covers("git-insights", commits, "We use Conventional Commits.") != ""
    assert covers("git-insights", commits, "We use Python.") == ""
    assert covers("git-insights", f"{commits}\n- `a.py` and `b.py` change together", "commit messages") == ""


def test_own_text_is_that_of_all_files_that_the_client_reads_but_not_ours(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / "docs").mkdir()
    (tmp_path / "CLAUDE.md").write_text(
        "<!-- AUTO-MANAGED: patterns -->\n`make ours`\n<!-- END AUTO-MANAGED -->\nSee @docs/how.md\n"
    )
    (tmp_path / ".claude" / "CLAUDE.md").write_text("make nested\n")
    (tmp_path / "docs" / "how.md").write_text("make imported\n@../CLAUDE.md @how.md @/etc/passwd @~/x\n")
    (tmp_path / "AGENTS.md").write_text("make agents\n")
    own = own_text(str(tmp_path), "")
    for command, there in (("nested", 1), ("imported", 1), ("agents", 1), ("ours", 0)):
        assert bool(own.covers("build-commands", f"`make {command}`", "walrus")) == bool(there), command


def test_nothing_outside_of_the_project_is_read(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "out.md").write_text("make secret\n")
    (project / "link.md").symlink_to(tmp_path / "out.md")
    os.mkfifo(project / "pipe.md")
    (project / "CLAUDE.md").write_text("@../out.md @link.md @pipe.md\n")
    assert own_text(str(project), "").covers("build-commands", "`make secret`", "walrus") == ""


def test_of_endless_imports_few_are_read(tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").write_text("@0.md\n")
    for number in range(50):
        (tmp_path / f"{number}.md").write_text(f"make n{number}\n@{number + 1}.md\n")
    own = own_text(str(tmp_path), "")
    assert own.covers("build-commands", f"`make n{MOST_FILES - 2}`", "walrus")
    assert not own.covers("build-commands", "`make n49`", "walrus")


@pytest.mark.parametrize("piece", ["`", "# a\n", "make al", "walrus is ", "@a/", "```\n", "src/api/"])
def test_hostile_text_is_looked_into_quickly(piece: str) -> None:
    text = (piece * (MOST_BYTES // len(piece))).encode()
    began = time.monotonic()
    own = OwnText([text])
    for name, body in (("build-commands", COMMANDS), ("architecture", FOLDERS), ("conventions", "- Style")):
        own.covers(name, body, "walrus")
    imported(text)
    assert time.monotonic() - began < 5


def test_a_copy_with_another_heading_is_the_same_text() -> None:
    copy = b"# AGENTS.md\n\nRun make.\n\nTest it.\n"
    assert is_same_text(b"# CLAUDE.md\r\n\r\nRun make.\r\nTest it.\r\n", copy)
    assert not is_same_text(b"# Mine\n\nNo squid.\n", copy)
    assert not is_same_text(b"# Mine\n", b"\n")


def test_a_part_about_commands_with_commands_of_its_own_covers_those_that_are_found() -> None:
    text = "# Development\n\n```sh\ntask prqlc:test\n```\n\n" + "Use the tiers, and nothing else. " * 4
    assert covers("build-commands", COMMANDS, text) == "it has a part `Development`"


def test_a_longer_text_has_introduced_its_project() -> None:
    assert covers("project-description", "Feeds walruses.", "How to work here. " * 80)
    assert not covers("project-description", "Feeds walruses.", "How to work here.")


@pytest.mark.parametrize("unit", ["PR ", "target `a` ", "before issue ", "AI\n"])
def test_what_a_long_text_speaks_of_is_found_in_no_time(unit: str) -> None:
    text = OwnText([(unit * (200_000 // len(unit))).encode()])
    began = time.process_time()
    for topic in TOPICS.values():
        text.says(topic)
    is_to_be_told("`" + "|" * 200_000)
    assert time.process_time() - began < 2  # quadratic takes minutes
