"""What `backstory init` shows and asks."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from backstory import dirty
from backstory.claude_md.write import sections
from tests.conftest import Run
from tests.helpers.claude_md_project import (
    BACKSTORY,
    MINE,
    NOTICE,
    make,
    names,
    snapshot,
    text,
    write,
)
from tests.helpers.terminal import at_terminal

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make(tmp_path / "walrus")


def test_a_person_is_asked_about_the_file_that_is_there_and_before_anything_is_written(project: Path) -> None:
    (project / "CLAUDE.md").write_text(MINE)
    code, seen = at_terminal(
        project, "init", "--offline", turns=(("Which?", "migrate\n"), ("Write this?", "y\n"))
    )
    assert code == 0, seen
    assert NOTICE in seen
    assert "\x1b[" in seen
    assert "<!-- MANUAL -->\n" + MINE + "<!-- END MANUAL -->" in text(project)


def test_a_person_chooses_among_the_folders(monorepo: Path) -> None:
    code, seen = at_terminal(
        monorepo, "init", "--offline", turns=(("Which?", "7\n"), ("Which?", "2\n"), ("Write this?", "y\n"))
    )
    assert code == 0, seen
    assert "Say all, none, or numbers from 1 to 2; Ctrl-C leaves, and nothing is written." in seen
    assert (monorepo / "packages" / "web" / "CLAUDE.md").exists()
    assert not (monorepo / "packages" / "api" / "CLAUDE.md").exists()


@pytest.mark.parametrize(("answer", "code"), [("n\n", 1), ("\x03", 130), ("\x04", 130)])
def test_who_does_not_say_yes_gets_nothing_written(project: Path, data: Path, answer: str, code: int) -> None:
    before = snapshot(project)
    ended, seen = at_terminal(project, "init", "--offline", turns=(("Write this?", answer),))
    assert ended == code, seen
    assert "Nothing was written." in seen
    assert snapshot(project) == before
    assert not (data / "backstory.db").exists()


def test_who_leaves_at_a_question_gets_nothing_written(project: Path, data: Path) -> None:
    (project / "CLAUDE.md").write_text(MINE)
    before = snapshot(project)
    ended, seen = at_terminal(project, "init", "--offline", turns=(("Which?", "\x03"),))
    assert ended == 130, seen
    assert "Nothing was written." in seen
    assert "Traceback" not in seen
    assert snapshot(project) == before
    assert not (data / "backstory.db").exists()


@pytest.mark.parametrize(("answer", "number"), [("y\n", 2), ("n\n", 0)])
def test_yes_and_no_are_answers_to_which_folders(monorepo: Path, answer: str, number: int) -> None:
    code, seen = at_terminal(
        monorepo, "init", "--offline", turns=(("Which?", answer), ("Write this?", "y\n"))
    )
    assert code == 0, seen
    assert len(list(monorepo.glob("packages/*/CLAUDE.md"))) == number


def test_the_text_is_shown_before_anybody_is_asked(project: Path) -> None:
    _, seen = at_terminal(project, "init", "--offline", turns=(("Write this?", "n\n"),))
    assert "- `walrus/`: Feeds walruses, and counts the fish" in seen
    (project / "CLAUDE.md").write_text(MINE)
    turns = (("Which?", "merge\n"), ("Write this?", "n\n"))
    _, seen = at_terminal(project, "init", "--offline", turns=turns)
    assert "\x1b[32m+## Build Commands" in seen
    assert "\x1b[31m-" not in seen


def test_a_dry_run_shows_the_text(run: Run, project: Path) -> None:
    out = run("init", "--dry-run", "--no-subtrees").out
    told = run("init", "--dry-run", "--no-subtrees", "--json").json
    run("init", "--yes", "--offline", "--no-subtrees")
    made = re.sub(r"<!-- backstory: by program, digest [0-9a-f]{12} -->\n", "", text(project))
    assert made in out
    assert "".join(told["files"][0]["text"].values()) == "".join(
        sections.get((project / "CLAUDE.md").read_bytes(), name) for name in names(project)
    )


def test_what_was_written_and_what_happens_next_is_said(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = run("init", "--yes", "--offline", "--no-subtrees")
    assert "\nWritten: CLAUDE.md (6 sections)\n" in ran.out
    assert "what can be computed is renewed in the background, and Claude is asked once where" in ran.out
    monkeypatch.setenv("BACKSTORY_CLAUDE_MD_ON_STOP", "agent")
    ran = run("init", "--yes", "--offline", "--no-subtrees")
    assert "Nothing had to be written.\n" in ran.out
    assert "After a turn that edits files, Claude is asked once to update it" in ran.out


def test_a_reader_that_leaves_keeps_nothing_from_being_written(project: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as nobody:
        subprocess.run([BACKSTORY, "init", "--yes", "--offline"], cwd=project, stdout=nobody, check=False)
    assert dirty.root_of(str(project)) == str(project)
    assert "patterns" in names(project)


@pytest.mark.parametrize("answer", [(), ("--project", ".")])
def test_json_asks_nothing(project: Path, answer: tuple[str, ...]) -> None:
    code, seen = at_terminal(project, "init", "--json", "--offline", *answer)
    assert (code, "--dry-run only shows" in seen) == (2, True)


def test_below_an_initialised_project_without_git_that_is_meant(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = make(tmp_path / "bare", git=False)
    monkeypatch.chdir(bare)
    run("init", "--yes", "--offline")
    monkeypatch.chdir(bare / "walrus")
    told = run("init", "--yes", "--offline", "--json").json
    assert told["root"] == str(bare)
    assert not (bare / "walrus" / ".claude").exists()


def test_a_secret_is_not_shown_either(run: Run, project: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    write(project, {"pyproject.toml": f'[project]\nname = "walrus"\ndescription = "Key {secret} here"\n'})
    for options in (["--dry-run"], ["--dry-run", "--json"], ["--yes", "--offline"]):
        ran = run("init", *options)
        assert ran.code == 0
        assert secret not in ran.out + ran.err
        assert "[redacted:" in ran.out


def test_in_a_narrow_terminal_all_sections_are_named(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, seen = at_terminal(project, "init", "--yes", "--offline", "--no-subtrees", columns=40)
    assert code == 0
    plain = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", seen).split())
    assert ", ".join(names(project)) in plain
