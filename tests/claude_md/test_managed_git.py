"""Sections in a repository: what branches, merges and worktrees do to what is ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstory.store import claude_files, projects
from tests.helpers.claude_md_project import TEMPLATE
from tests.helpers.managed_file import Desk, git


@pytest.fixture
def repository(desk: Desk) -> Desk:
    git(desk.file.parent, "init", "-q", "-b", "main")
    git(desk.file.parent, "add", ".")
    git(desk.file.parent, "commit", "-q", "-m", "begin")
    return desk


def commit(desk: Desk) -> None:
    git(desk.file.parent, "commit", "-q", "-a", "-m", "next")


def test_an_older_text_of_ours_that_comes_back_with_a_branch_is_no_edit(repository: Desk) -> None:
    folder = repository.file.parent
    repository.put("Of main.")
    commit(repository)
    git(folder, "switch", "-q", "-c", "feature")
    repository.put("Of the feature, computed.", author="program")
    repository.put("Of the feature.")
    commit(repository)
    git(folder, "switch", "-q", "main")
    assert repository.body() == "Of main."
    assert repository.facts() == ("model", False, None)
    assert repository.put("Of main, later.") == "written"
    commit(repository)
    git(folder, "switch", "-q", "feature")
    assert repository.facts() == ("model", False, None)
    git(folder, "checkout", "-q", "HEAD~1", "--", "CLAUDE.md")
    assert repository.body() == "Of main."
    git(folder, "checkout", "-q", "HEAD", "--", "CLAUDE.md")
    assert repository.put("Of the feature, later.") == "written"


def test_an_edit_on_one_branch_is_none_on_another(repository: Desk) -> None:
    folder = repository.file.parent
    repository.put("Ours.")
    commit(repository)
    git(folder, "switch", "-q", "-c", "feature")
    repository.write("By hand.")
    commit(repository)
    assert repository.put("New.") == "offered"
    git(folder, "switch", "-q", "main")
    assert repository.put("New.") == "written"
    commit(repository)
    git(folder, "switch", "-q", "feature")
    assert repository.put("Newer.") == "offered"
    assert repository.body() == "By hand."


def test_a_checkout_that_converts_line_ends_is_no_edit(repository: Desk) -> None:
    folder = repository.file.parent
    repository.put("One.\nTwo.")
    commit(repository)
    git(folder, "config", "core.autocrlf", "true")
    repository.file.unlink()
    git(folder, "checkout", "-q", "--", "CLAUDE.md")
    assert b"One.\r\nTwo.\r\n" in repository.file.read_bytes()
    assert repository.facts() == ("model", False, None)
    assert repository.put("Three.\nFour.") == "written"
    assert b"Three.\r\nFour.\r\n" in repository.file.read_bytes()
    commit(repository)
    assert "\r" not in git(folder, "show", "HEAD:CLAUDE.md")


def test_a_worktree_knows_what_was_written_in_another(repository: Desk, tmp_path: Path) -> None:
    repository.put("Ours.", author="program")
    commit(repository)
    git(repository.file.parent, "worktree", "add", "-q", str(tmp_path / "fix"))
    there = Desk(repository.db, repository.data, tmp_path / "fix" / "CLAUDE.md")
    assert there.facts() == ("program", False, None)
    assert there.put("Of the fix.") == "written"
    assert repository.body() == "Ours."
    there.write("By hand.")
    assert there.put("New.") == "offered"
    assert repository.state().offered is None
    assert repository.put("New.") == "written"
    there.accept()
    assert (there.body(), repository.body()) == ("New.", "New.")
    listed = claude_files.listed(repository.db, projects.every(repository.db)[0].number)
    assert [(file.path, file.place) for file in listed] == [
        (str(repository.file), "CLAUDE.md"),
        (str(there.file), "CLAUDE.md"),
    ]


def test_files_of_a_repository_are_told_apart_by_their_place(repository: Desk) -> None:
    below = repository.file.parent / "web"
    below.mkdir()
    (below / "CLAUDE.md").write_text(TEMPLATE)
    repository.put("Ours.")
    there = Desk(repository.db, repository.data, below / "CLAUDE.md")
    there.write("Ours.")
    assert there.put("New.") == "offered"
    listed = claude_files.listed(repository.db, projects.every(repository.db)[0].number)
    assert [(file.place, file.template) for file in listed] == [
        ("CLAUDE.md", "root"),
        ("web/CLAUDE.md", "subtree"),
    ]
