"""Which project a folder belongs to, checked against what git itself says."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from backstory.paths import place


def git(folder: Path, *args: str) -> str:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *args]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "api"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "file").write_text("x")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


def test_identity_is_the_git_common_directory(repository: Path) -> None:
    (repository / "src" / "deep").mkdir(parents=True)
    found = place(str(repository / "src" / "deep"))
    assert found.identity == os.path.realpath(repository / ".git")
    assert (found.name, found.root) == ("api", os.path.realpath(repository))


def test_branch_and_head_are_what_git_says(repository: Path) -> None:
    found = place(str(repository))
    assert (found.branch, found.head) == ("main", git(repository, "rev-parse", "HEAD"))


def test_head_is_found_in_packed_refs(repository: Path) -> None:
    git(repository, "pack-refs", "--all")
    assert not (repository / ".git" / "refs" / "heads" / "main").exists()
    assert place(str(repository)).head == git(repository, "rev-parse", "HEAD")


def test_a_branch_name_keeps_its_slashes(repository: Path) -> None:
    git(repository, "checkout", "-qb", "fix/login")
    assert place(str(repository)).branch == "fix/login"


def test_a_detached_head_has_no_branch(repository: Path) -> None:
    git(repository, "checkout", "-q", "--detach")
    found = place(str(repository))
    assert (found.branch, found.head) == (None, git(repository, "rev-parse", "HEAD"))


def test_worktrees_share_one_identity_and_keep_their_own_branch(repository: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    git(repository, "worktree", "add", "-q", "-b", "side", str(other))
    assert place(str(other)).identity == place(str(repository)).identity
    assert place(str(other)).name == "api"
    assert place(str(other)).branch == "side"
    assert place(str(other)).head == git(other, "rev-parse", "HEAD")


def test_a_submodule_is_a_project_of_its_own(repository: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(repository), "part")
    expected = os.path.realpath(
        os.path.join(outer / "part", git(outer / "part", "rev-parse", "--git-common-dir"))
    )
    assert place(str(outer / "part")).identity == expected
    assert place(str(outer / "part")).identity != place(str(outer)).identity


def test_the_tops_of_a_place_are_its_work_tree_as_it_is_and_as_it_was_spelled(
    repository: Path, tmp_path: Path
) -> None:
    (repository / "src").mkdir()
    other, link = tmp_path / "elsewhere", tmp_path / "link"
    git(repository, "worktree", "add", "-q", "-b", "side", str(other))
    link.symlink_to(repository)
    assert place(str(repository / "src")).tops == (str(repository),)
    assert place(str(link / "src")).tops == (str(repository), str(link))
    assert place(str(other)).tops == (str(other), str(repository))
    outside = tmp_path / "outside"
    outside.symlink_to(tmp_path)
    assert place(str(outside)).tops == (str(outside), str(tmp_path))


def test_two_folders_of_one_name_are_two_projects(tmp_path: Path) -> None:
    for parent in ("a", "b"):
        (tmp_path / parent / "api").mkdir(parents=True)
    first, second = place(str(tmp_path / "a" / "api")), place(str(tmp_path / "b" / "api"))
    assert first.name == second.name == "api"
    assert first.identity != second.identity


def test_outside_git_the_real_path_counts_and_symlinks_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert place(str(tmp_path / "link")).identity == os.path.realpath(tmp_path / "real")


def test_a_folder_that_is_gone_is_still_a_place(tmp_path: Path) -> None:
    assert place(str(tmp_path / "gone")).name == "gone"


def test_a_pipe_in_the_place_of_git_s_files_keeps_nobody_waiting(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "trap").mkdir()
    os.mkfifo(tmp_path / "trap" / ".git")
    assert place(str(tmp_path / "trap")).identity == os.path.realpath(tmp_path / "trap")
    (repository / ".git" / "packed-refs").unlink(missing_ok=True)
    (repository / ".git" / "refs" / "heads" / "main").unlink()
    os.mkfifo(repository / ".git" / "refs" / "heads" / "main")
    (repository / ".git" / "packed-refs").unlink(missing_ok=True)
    os.mkfifo(repository / ".git" / "packed-refs")
    assert place(str(repository)).branch == "main"


def test_an_empty_git_folder_or_a_broken_pointer_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / "odd" / ".git").mkdir(parents=True)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / ".git").write_text("gitdir: /nowhere\n")
    for name in ("odd", "broken"):
        assert place(str(tmp_path / name)).identity == os.path.realpath(tmp_path / name)
