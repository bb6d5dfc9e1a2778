"""Which memory a folder sees: a repository is known by its root commits and its remote, wherever it lies.

`first`: what the brief of the very first session there could tell. `later`: what is found once a session was
there and its events are stored. The repositories are real.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from backstory import paths
from backstory.intake import checkouts
from backstory.store import projects
from backstory.store.file import backup
from backstory.store.file.connection import connect, transaction
from tests.helpers.chaos import NOW, drain, event, prompt, put, rows, run_hook, settle
from tests.helpers.forged_git import git

HOME, AWAY = "the memory of the first checkout", ""
URL = "https://forge.example/team/app.git"


class World:
    """A data folder, and repositories beside each other."""

    def __init__(self, data: Path, folder: Path) -> None:
        self.data = data
        self.folder = folder
        self.now = NOW
        self.home = folder / "home"

    def repository(self, name: str = "home", *, form: str = "sha1") -> Path:
        made = self.folder / name
        made.mkdir()
        git(made, "init", "-q", "-b", "main", f"--object-format={form}")
        return made

    def commit(self, at: Path, text: str = "first") -> None:
        self.now += 1000
        stamp = f"{self.now // 1000} +0000"
        (at / "file").write_text(text)
        git(at, "add", ".")
        git(at, "-c", "commit.gpgsign=false", "commit", "-q", f"--date={stamp}", "-m", text)

    def copy(self, source: Path | str, name: str, *options: str) -> Path:
        git(self.folder, "clone", "-q", *options, str(source), name)
        return self.folder / name

    def lived(self, at: Path, words: str) -> None:
        """A session in this folder, drained, and the worker was there."""
        self.now += 60_000
        common = {"session_id": f"s-{self.now}", "cwd": str(at)}
        put(self.data, prompt(words, **common), at=self.now)
        put(self.data, event("Stop", last_assistant_message="Done.", **common), at=self.now + 1)
        drain(self.data, now=self.now + 2)
        settle(self.data, now=self.now + 2)

    def sees(self, at: Path) -> str:
        """What was asked in the first session of the project that this folder is taken for."""
        db = connect(str(self.data / "backstory.db"))
        try:
            known = projects.id_at(db, paths.place(str(at)))
            row = db.execute(
                "SELECT user_prompt FROM sessions WHERE project_id = ? ORDER BY started_at", (known,)
            ).fetchone()
            return row[0] if row else AWAY
        finally:
            db.close()

    def say(self, at: Path, whose: Path) -> None:
        """A person says that a folder is the project of another."""
        db = connect(str(self.data / "backstory.db"))
        with transaction(db):
            known = projects.id_at(db, paths.place(str(whose)))
            assert known is not None
            projects.attach(db, paths.place(str(at)), known, self.now, said_by="user")
        db.close()


@pytest.fixture
def world(data: Path, tmp_path: Path) -> World:
    (tmp_path / "world").mkdir()
    return World(data, tmp_path / "world")


def _ready(world: World, *, remote: str = "", form: str = "sha1") -> Path:
    """The first checkout, with two commits, and a session that remembers something."""
    home = world.repository(form=form)
    world.commit(home, "first")
    world.commit(home, "second")
    if remote:
        git(home, "remote", "add", "origin", remote)
    world.lived(home, HOME)
    return home


def _origin(world: World) -> Path:
    """A bare repository that the first checkout is pushed to."""
    git(world.folder, "init", "-q", "--bare", "-b", "main", "origin.git")
    home = _ready(world, remote=str(world.folder / "origin.git"))
    git(home, "push", "-q", "origin", "main")
    return world.folder / "origin.git"


def _move(world: World, name: str = "elsewhere") -> Path:
    world.home.rename(world.folder / name)
    return world.folder / name


# --- the cases ----------------------------------------------------------------------------------------------


def moved(world: World) -> Path:
    _ready(world)
    return _move(world)


def moved_with_a_remote(world: World) -> Path:
    _ready(world, remote=URL)
    return _move(world)


def moved_and_packed(world: World) -> Path:
    git(_ready(world), "gc", "-q")
    return _move(world)


def moved_with_sha256(world: World) -> Path:
    _ready(world, form="sha256")
    return _move(world)


def copied_and_the_first_one_deleted(world: World) -> Path:
    home = _ready(world, remote=URL)
    shutil.copytree(home, world.folder / "copy")
    shutil.rmtree(home)
    return world.folder / "copy"


def copied_without_a_remote(world: World) -> Path:
    shutil.copytree(_ready(world), world.folder / "copy")
    return world.folder / "copy"


def copied_without_a_remote_and_the_first_one_deleted(world: World) -> Path:
    copy = copied_without_a_remote(world)
    shutil.rmtree(world.home)
    return copy


def cloned_from_the_same_origin(world: World) -> Path:
    return world.copy(_origin(world), "clone")


def cloned_after_others_pushed(world: World) -> Path:
    origin = _origin(world)
    other = world.copy(origin, "other")
    for number in range(3):
        world.commit(other, f"other {number}")
    git(other, "push", "-q")
    return world.copy(origin, "clone")


def cloned_from_the_folder(world: World) -> Path:
    return world.copy(_ready(world), "clone")


def cloned_from_the_folder_that_has_a_remote(world: World) -> Path:
    return world.copy(_ready(world, remote=URL), "clone")


def cloned_over_another_protocol(world: World) -> Path:
    clone = world.copy(_ready(world, remote=URL), "clone")
    git(clone, "remote", "set-url", "origin", "git@forge.example:Team/App")
    return clone


def cloned_again_at_the_same_path(world: World) -> Path:
    origin = _origin(world)
    shutil.rmtree(world.home)
    return world.copy(origin, "home")


def cloned_on_a_branch(world: World) -> Path:
    origin = _origin(world)
    git(world.home, "switch", "-qc", "side")
    world.commit(world.home, "side")
    git(world.home, "push", "-q", "origin", "side")
    return world.copy(origin, "clone", "-b", "side")


def cloned_shallow(world: World) -> Path:
    return world.copy(f"file://{_origin(world)}", "clone", "--depth=1")


def cloned_shallow_one_commit_later(world: World) -> Path:
    origin = _origin(world)
    world.commit(world.home, "third")
    git(world.home, "push", "-q", "origin", "main")
    return world.copy(f"file://{origin}", "clone", "--depth=1")


def cloned_shallow_much_later(world: World) -> Path:
    origin = _origin(world)
    for text in ("third", "fourth"):
        world.commit(world.home, text)
    git(world.home, "push", "-q", "origin", "main")
    return world.copy(f"file://{origin}", "clone", "--depth=1")


def cloned_shallow_much_later_and_deepened(world: World) -> Path:
    clone = cloned_shallow_much_later(world)
    world.lived(clone, "asked in the shallow clone")
    assert world.sees(clone) == "asked in the shallow clone"
    git(clone, "fetch", "-q", "--unshallow")
    return clone


def a_worktree(world: World) -> Path:
    git(_ready(world), "worktree", "add", "-q", "-b", "side", str(world.folder / "side"))
    return world.folder / "side"


def a_worktree_of_a_moved_repository(world: World) -> Path:
    _ready(world)
    git(_move(world), "worktree", "add", "-q", "-b", "side", str(world.folder / "side"))
    return world.folder / "side"


def a_fork_with_another_remote(world: World) -> Path:
    clone = world.copy(_origin(world), "fork")
    git(clone, "remote", "set-url", "origin", "https://forge.example/somebody/app.git")
    return clone


def a_fork_in_the_place_of_the_first_one(world: World) -> Path:
    fork = a_fork_with_another_remote(world)
    shutil.rmtree(world.home)
    return fork.rename(world.home)


def a_remote_that_was_renamed(world: World) -> Path:
    home = _ready(world, remote=URL)
    git(home, "remote", "set-url", "origin", "https://forge.example/company/app.git")
    return home


def from_a_template_with_a_remote_of_its_own(world: World) -> Path:
    made = world.copy(_ready(world, remote=URL), "made")
    git(made, "remote", "set-url", "origin", "https://forge.example/team/made.git")
    return made


def from_a_template_without_a_remote(world: World) -> Path:
    made = world.copy(_ready(world, remote=URL), "made")
    git(made, "remote", "remove", "origin")
    return made


def without_a_remote_where_two_projects_fit(world: World) -> Path:
    fork = a_fork_with_another_remote(world)
    world.lived(fork, "asked in the fork")
    third = world.copy(fork, "third")
    git(third, "remote", "remove", "origin")
    return third


def two_roots_cloned(world: World) -> Path:
    origin = _origin(world)
    git(world.home, "switch", "-q", "--orphan", "other")
    world.commit(world.home, "another beginning")
    git(world.home, "switch", "-q", "main")
    git(world.home, "merge", "-q", "--allow-unrelated-histories", "-s", "ours", "other", "-m", "both")
    git(world.home, "push", "-q", "origin", "main")
    world.lived(world.home, "asked with two roots")
    return world.copy(origin, "clone")


def two_roots_moved(world: World) -> Path:
    two_roots_cloned(world)
    shutil.rmtree(world.folder / "clone")
    return _move(world)


def two_roots_of_which_one_is_the_first_project_s(world: World) -> Path:
    """Another repository that took the history of the first one in."""
    _ready(world, remote=URL)
    big = world.repository("big")
    world.commit(big, "big")
    git(big, "fetch", "-q", str(world.home), "main")
    git(big, "merge", "-q", "--allow-unrelated-histories", "-s", "ours", "FETCH_HEAD", "-m", "both")
    return big


def without_commits(world: World) -> Path:
    world.lived(world.repository(), HOME)
    return world.home


def without_commits_and_moved(world: World) -> Path:
    world.lived(world.repository(), HOME)
    return _move(world)


def with_its_first_commit(world: World) -> Path:
    world.lived(world.repository(), HOME)
    world.commit(world.home)
    return world.home


def with_its_first_commit_and_moved(world: World) -> Path:
    with_its_first_commit(world)
    world.lived(world.home, "asked after the first commit")
    return _move(world)


def a_folder_without_git(world: World) -> Path:
    world.home.mkdir()
    world.lived(world.home, HOME)
    return world.home


def a_folder_without_git_moved(world: World) -> Path:
    a_folder_without_git(world)
    return _move(world)


def a_folder_that_came_under_git(world: World) -> Path:
    a_folder_without_git(world)
    git(world.home, "init", "-q", "-b", "main")
    world.commit(world.home)
    return world.home


def another_repository_in_its_place(world: World) -> Path:
    _ready(world)
    shutil.rmtree(world.home)
    other = world.repository()
    world.commit(other, "something else")
    return other


def a_shared_clone(world: World) -> Path:
    """It has no objects of its own: a `.git` could name anybody's."""
    return world.copy(_origin(world), "clone", "--shared")


def a_claim(world: World) -> Path:
    """An unpacked folder that says the same of itself as the first one, in every file but the objects."""
    home = _ready(world, remote=URL)
    evil = world.folder / "evil"
    shutil.copytree(home, evil)
    shutil.rmtree(evil / ".git" / "objects")
    (evil / ".git" / "objects").mkdir()
    return evil


def a_claim_with_files_of_the_right_names(world: World) -> Path:
    evil = a_claim(world)
    for sha in git(world.home, "rev-list", "--all").split():
        path = evil / ".git" / "objects" / sha[:2] / sha[2:]
        path.parent.mkdir(exist_ok=True)
        shutil.copy(next(iter((world.home / ".git" / "objects").glob("??/*"))), path)
    return evil


def a_claim_to_be_shallow(world: World) -> Path:
    evil = a_claim(world)
    (evil / ".git" / "shallow").write_text(git(world.home, "rev-parse", "HEAD") + "\n")
    return evil


def a_claim_that_borrows_the_objects(world: World) -> Path:
    evil = a_claim(world)
    (evil / ".git" / "objects" / "info").mkdir()
    (evil / ".git" / "objects" / "info" / "alternates").write_text(f"{world.home}/.git/objects\n")
    return evil


def a_claim_that_links_to_the_objects(world: World) -> Path:
    evil = a_claim(world)
    (evil / ".git" / "objects").rmdir()
    (evil / ".git" / "objects").symlink_to(world.home / ".git" / "objects")
    return evil


def a_claim_whose_packs_are_a_link(world: World) -> Path:
    evil = a_claim(world)
    git(world.home, "gc", "-q")
    (evil / ".git" / "objects" / "pack").symlink_to(world.home / ".git" / "objects" / "pack")
    return evil


def a_claim_whose_objects_are_links(world: World) -> Path:
    evil = a_claim(world)
    for folder in (world.home / ".git" / "objects").glob("??"):
        (evil / ".git" / "objects" / folder.name).symlink_to(folder)
    return evil


def a_claim_whose_packs_are_linked_files(world: World) -> Path:
    evil = a_claim(world)
    git(world.home, "gc", "-q")
    (evil / ".git" / "objects" / "pack").mkdir()
    for file in (world.home / ".git" / "objects" / "pack").iterdir():
        (evil / ".git" / "objects" / "pack" / file.name).symlink_to(file)
    return evil


def a_claim_to_be_shallow_with_a_known_parent(world: World) -> Path:
    home = _ready(world, remote=URL)
    evil = world.repository("evil")
    world.commit(evil, "evil")
    text = git(evil, "cat-file", "commit", "HEAD").replace("author", f"parent {_head(home)}\nauthor", 1)
    made = git(evil, "hash-object", "-t", "commit", "-w", "--literally", str(_file(world, text)))
    (evil / ".git" / "shallow").write_text(f"{made}\n")
    git(evil, "update-ref", "refs/heads/main", made)
    git(evil, "remote", "add", "origin", URL)
    return evil


def _head(at: Path) -> str:
    return git(at, "rev-parse", "HEAD")


def _file(world: World, text: str) -> Path:
    (world.folder / "commit").write_text(text + "\n")
    return world.folder / "commit"


def another_history_beside_the_root_commit(world: World) -> Path:
    """The root commit is public, so anybody can put it into a repository."""
    home = _ready(world, remote=URL)
    evil = world.repository("evil")
    world.commit(evil, "evil")
    root = git(home, "rev-list", "--max-parents=0", "HEAD")
    text = git(home, "cat-file", "commit", root)
    assert git(evil, "hash-object", "-t", "commit", "-w", "--literally", str(_file(world, text))) == root
    git(evil, "remote", "add", "origin", URL)
    return evil


class Case(NamedTuple):
    arrange: Callable[[World], Path]
    first: str
    later: str


CASES = [
    Case(moved, HOME, HOME),
    Case(moved_with_a_remote, HOME, HOME),
    Case(moved_and_packed, HOME, HOME),
    Case(moved_with_sha256, HOME, HOME),
    Case(copied_and_the_first_one_deleted, HOME, HOME),
    Case(copied_without_a_remote, AWAY, "new"),
    Case(copied_without_a_remote_and_the_first_one_deleted, AWAY, HOME),
    Case(cloned_from_the_same_origin, HOME, HOME),
    Case(cloned_after_others_pushed, HOME, HOME),
    Case(cloned_from_the_folder, HOME, HOME),
    Case(cloned_from_the_folder_that_has_a_remote, HOME, HOME),
    Case(cloned_over_another_protocol, HOME, HOME),
    Case(cloned_again_at_the_same_path, HOME, HOME),
    Case(cloned_on_a_branch, HOME, HOME),
    Case(cloned_shallow, HOME, HOME),
    Case(cloned_shallow_one_commit_later, AWAY, "new"),  # who knows a commit's id does not have it
    Case(cloned_shallow_much_later, AWAY, "new"),
    Case(cloned_shallow_much_later_and_deepened, "asked in the shallow clone", HOME),
    Case(a_worktree, HOME, HOME),
    Case(a_worktree_of_a_moved_repository, HOME, HOME),
    Case(a_fork_with_another_remote, AWAY, "new"),
    Case(a_fork_in_the_place_of_the_first_one, AWAY, "new"),
    Case(a_remote_that_was_renamed, HOME, HOME),
    Case(from_a_template_with_a_remote_of_its_own, AWAY, "new"),
    Case(from_a_template_without_a_remote, AWAY, HOME),  # the rule: one of the two without a remote
    Case(without_a_remote_where_two_projects_fit, AWAY, "new"),
    Case(two_roots_cloned, HOME, HOME),
    Case(two_roots_moved, HOME, HOME),
    Case(two_roots_of_which_one_is_the_first_project_s, AWAY, "new"),
    Case(without_commits, HOME, HOME),
    Case(without_commits_and_moved, AWAY, "new"),
    Case(with_its_first_commit, HOME, HOME),
    Case(with_its_first_commit_and_moved, HOME, HOME),
    Case(a_folder_without_git, HOME, HOME),
    Case(a_folder_without_git_moved, AWAY, "new"),
    Case(a_folder_that_came_under_git, HOME, HOME),
    Case(another_repository_in_its_place, AWAY, "new"),
    Case(a_shared_clone, AWAY, "new"),
    Case(a_claim, AWAY, "new"),
    Case(a_claim_with_files_of_the_right_names, AWAY, "new"),
    Case(a_claim_to_be_shallow, AWAY, "new"),
    Case(a_claim_that_borrows_the_objects, AWAY, "new"),
    Case(a_claim_that_links_to_the_objects, AWAY, "new"),
    Case(a_claim_whose_packs_are_a_link, AWAY, "new"),
    Case(a_claim_whose_objects_are_links, AWAY, "new"),
    Case(a_claim_whose_packs_are_linked_files, AWAY, "new"),
    Case(a_claim_to_be_shallow_with_a_known_parent, AWAY, "new"),
    Case(another_history_beside_the_root_commit, HOME, "new"),  # until its history is known
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.arrange.__name__)
def test_which_memory_a_folder_sees(case: Case, world: World) -> None:
    at = case.arrange(world)
    first = world.sees(at)
    world.lived(at, "new")
    assert (first, world.sees(at)) == (case.first, case.later)


MOVED_AWAY = (
    a_fork_in_the_place_of_the_first_one,
    without_commits_and_moved,
    a_folder_without_git_moved,
    another_repository_in_its_place,
)
ALONE = [case.arrange for case in CASES if case.later == "new" and case.arrange not in MOVED_AWAY]


@pytest.mark.parametrize("arrange", ALONE, ids=lambda arrange: arrange.__name__)
def test_a_person_s_word_attaches_any_folder(arrange: Callable[[World], Path], world: World) -> None:
    at = arrange(world)
    world.say(at, world.home)
    world.lived(at, "new")
    assert world.sees(at) == HOME


def test_what_two_checkouts_of_one_repository_gathered_is_one_memory(world: World) -> None:
    clone = cloned_shallow_much_later_and_deepened(world)
    assert len(rows(world.data, "SELECT id FROM projects")) == 2
    world.lived(clone, "asked when it was deep")
    (project,) = rows(world.data, "SELECT id, roots, remote FROM projects")
    asked = rows(world.data, "SELECT user_prompt, project_id FROM sessions ORDER BY started_at")
    assert [row["user_prompt"] for row in asked] == [
        HOME,
        "asked in the shallow clone",
        "asked when it was deep",
    ]
    assert {row["project_id"] for row in asked} == {project["id"]}
    assert project["roots"] == git(world.home, "rev-list", "--max-parents=0", "HEAD")
    assert project["remote"] == str(world.folder / "origin.git")
    assert {row["mark"] is None for row in rows(world.data, "SELECT mark FROM checkouts")} == {False}


def test_another_history_changes_nothing_of_the_project_and_takes_its_session_along(world: World) -> None:
    evil = another_history_beside_the_root_commit(world)
    before = rows(world.data, "SELECT id, roots, remote, root FROM projects")
    world.lived(evil, "asked by a stranger")
    after = rows(world.data, "SELECT id, roots, remote, root FROM projects ORDER BY number")
    assert after[:1] == before
    told = rows(world.data, "SELECT user_prompt FROM sessions WHERE project_id = ?", before[0]["id"])
    assert [row["user_prompt"] for row in told] == [HOME]
    assert world.sees(world.copy(world.home, "clone")) == HOME
    assert world.sees(evil) == "asked by a stranger"


def test_a_history_that_takes_too_long_is_asked_for_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []
    monkeypatch.setattr("backstory.git.root_commits", lambda root, seconds: asked.append(seconds))
    _ready(world)
    world.lived(world.home, "again")
    assert asked == [checkouts.SECONDS]
    assert rows(world.data, "SELECT count(*) AS n FROM projects WHERE roots <> ''") == [{"n": 0}]


def test_a_drain_does_not_walk_through_a_history(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(root: str, seconds: float) -> None:
        raise AssertionError("somebody waits for this")

    home = world.repository()
    world.commit(home)
    monkeypatch.setattr("backstory.git.root_commits", never)
    put(world.data, prompt("go", cwd=str(home)), at=NOW)
    drain(world.data)
    assert rows(world.data, "SELECT mark FROM checkouts") == [{"mark": None}]


@pytest.mark.slow
def test_a_hook_starts_the_worker_that_looks_at_a_new_checkout(world: World) -> None:
    home = world.repository()
    world.commit(home)
    connect(str(world.data / "backstory.db")).close()
    backup.make(str(world.data), int(time.time() * 1000))  # else the worker comes for that
    more = {"BACKSTORY_SYNTHESIZER": "off", "BACKSTORY_WORKER_IDLE_SECONDS": "0"}
    run_hook(prompt("go", cwd=str(home)), "prompt", env={**os.environ, **more}, cwd=home)
    roots = git(home, "rev-list", "--max-parents=0", "HEAD")
    assert rows(world.data, "SELECT roots FROM projects") == [{"roots": roots}]
