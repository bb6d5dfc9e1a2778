"""Which project a folder belongs to, checked against what git itself says."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from backstory.paths import checkout, data_folder, place
from tests.helpers import forged_git
from tests.helpers.forged_git import FORGERIES, git


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return forged_git.repository(tmp_path / "api")


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return forged_git.victim(tmp_path_factory.mktemp("others") / "victim")


def test_identity_is_the_git_common_directory(repository: Path) -> None:
    (repository / "src" / "deep").mkdir(parents=True)
    found = place(str(repository / "src" / "deep"))
    assert found.location == os.path.realpath(repository / ".git")
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
    assert place(str(other)).location == place(str(repository)).location
    assert place(str(other)).name == "api"
    assert place(str(other)).branch == "side"
    assert place(str(other)).head == git(other, "rev-parse", "HEAD")


def test_a_submodule_is_a_project_of_its_own(repository: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "submodule", "add", "-q", str(repository), "part")
    expected = os.path.realpath(
        os.path.join(outer / "part", git(outer / "part", "rev-parse", "--git-common-dir"))
    )
    assert place(str(outer / "part")).location == expected
    assert place(str(outer / "part")).location != place(str(outer)).location


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
    assert first.location != second.location


def test_outside_git_the_real_path_counts_and_symlinks_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert place(str(tmp_path / "link")).location == os.path.realpath(tmp_path / "real")


def test_a_name_that_is_not_utf_8_is_the_identity_of_no_other_folder(tmp_path: Path) -> None:
    names = (
        b"a\xe9b\\xe9",
        b"a\\xe9b\xe9",
        b"a\xe9b\xe9",
        b"a\\xe9b\\xe9",
        "aéb\\xe9".encode(),
        b"\xe9",
        b"xe9",
    )
    folders = (os.fsdecode(os.path.join(os.fsencode(tmp_path), name)) for name in names)
    identities = [place(folder).location for folder in folders]
    assert len(set(identities)) == len(names)
    assert identities[3:5] == [f"{tmp_path}/a\\xe9b\\xe9", f"{tmp_path}/aéb\\xe9"]  # as they always were
    for identity in identities:
        identity.encode()  # can be stored


def test_a_folder_that_is_gone_is_still_a_place(tmp_path: Path) -> None:
    assert place(str(tmp_path / "gone")).name == "gone"


def test_a_pipe_in_the_place_of_git_s_files_keeps_nobody_waiting(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "trap").mkdir()
    os.mkfifo(tmp_path / "trap" / ".git")
    assert place(str(tmp_path / "trap")).location == os.path.realpath(tmp_path / "trap")
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
        assert place(str(tmp_path / name)).location == os.path.realpath(tmp_path / name)


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_git_shows_nothing_of_the_repository_that_it_names(
    forgery: str, victim: Path, tmp_path: Path
) -> None:
    evil = tmp_path / "theirs" / "evil"
    evil.mkdir(parents=True)
    FORGERIES[forgery](evil, victim)
    found = place(str(evil))
    assert Path(found.location).is_relative_to(tmp_path)
    assert all(Path(top).is_relative_to(tmp_path) for top in (found.root, *found.tops))
    assert checkout(str(evil)) == str(evil)
    assert found.head is None
    assert found.branch in (None, "x", forged_git.BRANCH if forgery == "commondir" else None)


def test_a_git_folder_that_another_user_put_above_a_project_does_not_count(tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a folder away")
    shared = forged_git.repository(tmp_path / "shared")
    ours = shared / "ours" / "project"
    ours.mkdir(parents=True)
    os.chown(shared / ".git", 12345, 12345)
    assert place(str(ours)).location == checkout(str(ours)) == str(ours)
    assert place(str(shared)).location == str(shared)
    # Who is root in a container works on what the user outside owns, all of it.
    os.chown(ours, 12345, 12345)
    assert place(str(ours)).location == str(shared / ".git")


def test_a_folder_called_worktrees_does_not_make_its_parent_a_repository(tmp_path: Path) -> None:
    evil = tmp_path / "worktrees"
    (evil / ".git").mkdir(parents=True)
    for name, text in (("HEAD", "ref: refs/heads/x"), ("commondir", "../.."), ("gitdir", f"{evil}/.git")):
        (evil / ".git" / name).write_text(text)
    assert place(str(evil)).location == str(evil / ".git")


@pytest.mark.parametrize(
    "ref",
    ["../../secret", "refs/../../../secret", "{}/secret", "refs/heads/a\x1b[2Jb", "refs/heads/.invalid"],
)
def test_a_ref_that_git_would_not_make_is_no_branch_and_no_way_to_a_file(
    ref: str, repository: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("0123456789" * 4)
    (repository / ".git" / "HEAD").write_text(f"ref: {ref.format(tmp_path)}\n")
    found = place(str(repository))
    assert (found.branch, found.head) == (None, None)


@pytest.mark.parametrize("where", ["HEAD", "refs/heads/main", "packed-refs", "refs/heads"])
def test_a_head_is_a_commit_s_id_of_this_repository_or_nothing(
    where: str, repository: Path, tmp_path: Path
) -> None:
    dot_git, secret = repository / ".git", tmp_path / "secret"
    (dot_git / "refs" / "heads" / "main").unlink()
    if where == "refs/heads":  # a link to a folder in which somebody keeps a key
        (dot_git / "refs" / "heads").rmdir()
        secret.mkdir()
        (secret / "main").write_text("0123456789" * 4)
        (dot_git / where).symlink_to(secret)
    else:
        (dot_git / where).unlink(missing_ok=True)
        (dot_git / where).write_text("root:x:0:0:root:/root:/bin/bash refs/heads/main\n")
    assert place(str(repository)).head is None


def test_a_worktree_belongs_to_its_repository_however_its_path_is_spelled(
    repository: Path, tmp_path: Path
) -> None:
    other, link = tmp_path / "elsewhere", tmp_path / "link"
    git(repository, "worktree", "add", "-q", "-b", "side", str(other))
    link.symlink_to(tmp_path)
    assert place(str(link / "elsewhere")).location == str(repository / ".git")
    # As git writes them from 2.48 on with worktree.useRelativePaths.
    (other / ".git").write_text("gitdir: ../api/.git/worktrees/elsewhere\n")
    (repository / ".git" / "worktrees" / "elsewhere" / "gitdir").write_text("../../../../elsewhere/.git\n")
    assert git(other, "rev-parse", "--abbrev-ref", "HEAD") == "side"
    assert (place(str(other)).location, place(str(other)).branch) == (str(repository / ".git"), "side")


def test_a_worktree_that_was_moved_belongs_to_its_repository(repository: Path, tmp_path: Path) -> None:
    other, moved, by_hand = (tmp_path / name for name in ("other", "moved", "by-hand"))
    git(repository, "worktree", "add", "-q", "-b", "side", str(other))
    git(repository, "worktree", "move", str(other), str(moved))
    assert place(str(moved)).location == str(repository / ".git")
    moved.rename(by_hand)
    assert place(str(by_hand)).location == str(by_hand)
    git(by_hand, "worktree", "repair")
    assert place(str(by_hand)).location == str(repository / ".git")


@pytest.mark.parametrize("bare", ["api.git", "project/.bare"])
def test_worktrees_of_a_bare_repository_share_it(bare: str, repository: Path, tmp_path: Path) -> None:
    common = tmp_path / bare
    git(tmp_path, "clone", "-q", "--bare", str(repository), str(common))
    for name in ("one", "two"):
        git(common, "worktree", "add", "-q", "-b", name, str(common.parent / name))
        found = place(str(common.parent / name))
        assert (found.location, found.branch, found.root) == (str(common), name, str(common))
    if common.name == ".bare":  # the folder around it is often made a part of it
        (common.parent / ".git").write_text("gitdir: ./.bare\n")
        assert place(str(common.parent)).location == str(common)


def test_a_submodule_and_its_worktrees_are_one_project(repository: Path, tmp_path: Path) -> None:
    outer = forged_git.repository(tmp_path / "outer")
    git(outer, "submodule", "add", "-q", str(repository), "libs/part")
    git(outer / "libs" / "part", "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    common = str(outer / ".git" / "modules" / "libs" / "part")
    part, side = place(str(outer / "libs" / "part")), place(str(tmp_path / "side"))
    assert (part.location, part.name, part.branch) == (common, "part", "main")
    assert part.root == str(outer / "libs" / "part")
    assert (side.location, side.name, side.branch) == (common, "part", "side")
    git(outer / "libs" / "part", "sparse-checkout", "init")  # core.worktree goes to config.worktree
    assert "worktree =" not in Path(common, "config").read_text()
    assert place(str(outer / "libs" / "part")).location == common


def test_a_git_folder_elsewhere_counts_once_it_names_its_checkout(tmp_path: Path) -> None:
    apart = tmp_path / "apart #1.git"
    git(tmp_path, "init", "-q", "-b", "main", "--separate-git-dir", str(apart), "here")
    found = place(str(tmp_path / "here"))
    assert (found.location, found.root, found.branch) == (str(tmp_path / "here"),) * 2 + (None,)
    git(tmp_path / "here", "config", "core.worktree", "../here")
    found = place(str(tmp_path / "here"))
    assert (found.location, found.root, found.branch) == (str(apart), str(tmp_path / "here"), "main")


@pytest.mark.parametrize("name", ["plain", 'with "quotes"', "with #1; and more", "back\\slash", " blanks "])
def test_a_folder_s_name_in_git_s_config_is_read_as_git_wrote_it(name: str, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--separate-git-dir", str(tmp_path / "apart"), name)
    git(tmp_path / name, "config", "core.worktree", str(tmp_path / name))
    assert place(str(tmp_path / name)).location == str(tmp_path / "apart")


@pytest.mark.parametrize(
    ("env", "folder"),
    [
        ({"HOME": "/h", "BACKSTORY_HOME": "/ours"}, "/ours"),
        ({"HOME": "/h", "BACKSTORY_HOME": "ours"}, None),
        ({"HOME": "/h", "BACKSTORY_HOME": "~/ours"}, None),
        ({"HOME": "/h", "XDG_DATA_HOME": "data"}, "/h/.local/share/backstory"),
        ({"HOME": "h"}, None),
    ],
)
def test_no_folder_of_data_depends_on_the_folder_that_one_is_in(
    env: dict[str, str], folder: str | None
) -> None:
    assert data_folder(env) == folder


def test_large_files_of_a_repository_keep_nobody_waiting(repository: Path) -> None:
    head = place(str(repository)).head
    packed = repository / ".git" / "packed-refs"
    with open(packed, "wb") as file:
        file.write(b"\n" * 20_000_000)
    with open(repository / ".git" / "config", "ab") as file:
        file.write(b"\n" * 20_000_000)
    started = time.process_time()
    assert place(str(repository)).head == head
    (repository / ".git" / "refs" / "heads" / "main").unlink()
    assert place(str(repository)).head is None
    packed.write_text(f"# pack-refs with: peeled fully-peeled sorted\n{head} refs/heads/main\n")
    assert place(str(repository)).head == head
    assert time.process_time() - started < 2
