"""Folders whose `.git` says that they belong to somebody else's repository."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

BRANCH = "acquisition-of-walrus"


def git(folder: Path, *args: str) -> str:
    settings = ("user.name=t", "user.email=t@example.org", "protocol.file.allow=always")
    command = ["git", *(part for one in settings for part in ("-c", one)), *args]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def repository(folder: Path, branch: str = "main") -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", branch)
    (folder / "file").write_text("x")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


def victim(folder: Path) -> Path:
    """A repository with a linked worktree beside it, on a branch whose name is nobody's business."""
    made = repository(folder, BRANCH)
    git(made, "worktree", "add", "-q", "-b", f"{BRANCH}-2", str(folder.with_name("linked")))
    return made


def _files(folder: Path, **texts: str) -> None:
    folder.mkdir(parents=True)
    for name, text in texts.items():
        (folder / name).write_text(f"{text}\n")


def _pointer(evil: Path, target: Path) -> None:
    (evil / ".git").write_text(f"gitdir: {target}\n")


def _commondir(evil: Path, victim: Path) -> None:
    _files(evil / ".git", HEAD=f"ref: refs/heads/{BRANCH}", commondir=str(victim / ".git"))


def _commondir_that_says_it_is_a_worktree(evil: Path, victim: Path) -> None:
    _files(evil / ".git", HEAD="ref: refs/heads/x", commondir=str(victim / ".git"), gitdir=str(evil / ".git"))


def _commondir_root(evil: Path, victim: Path) -> None:
    _files(evil / ".git", HEAD="ref: refs/heads/x", commondir="/", gitdir=str(evil / ".git"))


def _file(evil: Path, victim: Path) -> None:
    _pointer(evil, victim / ".git")


def _link(evil: Path, victim: Path) -> None:
    (evil / ".git").symlink_to(victim / ".git")


def _link_to_a_folder_of_links(evil: Path, victim: Path) -> None:
    (evil / ".git").mkdir()
    for name in ("HEAD", "refs", "config"):
        (evil / ".git" / name).symlink_to(victim / ".git" / name)


def _file_to_a_worktree(evil: Path, victim: Path) -> None:
    _pointer(evil, victim / ".git" / "worktrees" / "linked")


def _link_to_the_file_of_a_worktree(evil: Path, victim: Path) -> None:
    (evil / ".git").symlink_to(victim.with_name("linked") / ".git")


def _worktree_of_its_own_making(evil: Path, victim: Path) -> None:
    made = evil.with_name("made") / "worktrees" / "evil"
    _files(made, HEAD="ref: refs/heads/x", commondir=str(victim / ".git"), gitdir=str(evil / ".git"))
    _pointer(evil, made)


def _worktree_of_its_own_making_by_a_link(evil: Path, victim: Path) -> None:
    made = evil.with_name("made") / "worktrees" / "evil"
    _files(made, HEAD="ref: refs/heads/x", commondir="../..", gitdir=str(evil / ".git"))
    for name in ("HEAD", "refs", "config"):
        (evil.with_name("made") / name).symlink_to(victim / ".git" / name)
    _pointer(evil, made)


def _config_of_its_own_making(evil: Path, victim: Path) -> None:
    made = evil.with_name("made")
    config = f"[core]\n\tworktree = {evil}"
    _files(made, HEAD="ref: refs/heads/x", commondir=str(victim / ".git"), config=config)
    _pointer(evil, made)


FORGERIES: dict[str, Callable[[Path, Path], None]] = {
    forge.__name__.strip("_").replace("_", " "): forge
    for forge in (
        _commondir,
        _commondir_that_says_it_is_a_worktree,
        _commondir_root,
        _file,
        _link,
        _link_to_a_folder_of_links,
        _file_to_a_worktree,
        _link_to_the_file_of_a_worktree,
        _worktree_of_its_own_making,
        _worktree_of_its_own_making_by_a_link,
        _config_of_its_own_making,
    )
}
