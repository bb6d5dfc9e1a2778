"""Git is asked about real repositories, and nothing that a repository names is run."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from backstory.claude_md.read.git import changed_since, insights
from backstory.model import Insights
from tests.helpers.forged_git import FORGERIES

NAMES = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main")
LONG_AGO = "2020-01-01T00:00:00Z"


def run_git(folder: Path, *args: str, check: bool = True, at: str | None = None) -> str:
    dates = {"GIT_COMMITTER_DATE": at, "GIT_AUTHOR_DATE": at} if at else {}
    said = subprocess.run(
        ["git", *NAMES, *args],
        cwd=folder,
        env={**os.environ, **dates},
        capture_output=True,
        timeout=60,
        check=check,
    )
    return said.stdout.decode("utf-8", "surrogateescape")


def write(repository: Path, **files: str) -> None:
    for name, text in files.items():
        put(repository, name.replace("__", "/") + ".py", text)


def put(repository: Path, path: str, text: str) -> Path:
    place = repository / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    return place


def commit(repository: Path, message: str, **files: str) -> str:
    write(repository, **files)
    run_git(repository, "add", "-A")
    run_git(repository, "commit", "-q", "--allow-empty", "-m", message)
    return run_git(repository, "rev-parse", "HEAD").strip()


def earlier() -> int:
    """A time that is over for certain, as far as file times can tell."""
    time.sleep(0.05)
    now = time.time_ns() // 1_000_000
    time.sleep(0.05)
    return now


def names(repository: Path, found: list[str] | None) -> list[str]:
    assert found is not None
    return [os.path.relpath(path, repository) for path in found]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    run_git(folder, "init", "-q")
    return folder


# What a repository would like to run.


def laid_with_traps(repository: Path, witness: Path) -> None:
    """Everything in a repository's configuration that names a program, and files that would have it run."""
    trap = put(repository.parent, "trap.sh", f'#!/bin/sh\necho "$0 $*" >> {witness}\ncat 2>/dev/null\n')
    trap.chmod(0o755)
    for hook in "post-index-change pre-commit post-checkout fsmonitor-watchman reference-transaction".split():
        (repository / ".git" / "hooks" / hook).unlink(missing_ok=True)
        (repository / ".git" / "hooks" / hook).symlink_to(trap)
    put(repository, ".gitattributes", "* filter=trap diff=trap merge=trap\n*.py filter=a=b\n")
    put(repository / ".git", "info/attributes", "*.txt filter=trap diff=trap\n")
    more = put(repository.parent, "more.config", f"[core]\n\tfsmonitor = {trap}\n")
    with open(repository / ".git" / "config", "a") as file:
        file.write(
            f"""
[core]
    fsmonitor = {trap}
    hooksPath = {repository}/.git/hooks
    pager = {trap}
    editor = {trap}
    sshCommand = {trap}
    gitProxy = {trap}
    askPass = {trap}
    alternateRefsCommand = {trap}
    untrackedCache = true
[pager]
    log = {trap}
    status = {trap}
    diff-tree = {trap}
    rev-parse = {trap}
    config = {trap}
[alias]
    log = !{trap}
    status = !{trap}
    diff-tree = !{trap}
    rev-parse = !{trap}
[diff]
    external = {trap}
[diff "trap"]
    command = {trap}
    textconv = {trap}
    cachetextconv = true
[filter "trap"]
    clean = {trap}
    smudge = {trap}
    process = {trap}
    required = true
[filter "a=b"]
    clean = {trap}
[merge "trap"]
    driver = {trap}
[log]
    showSignature = true
[gpg]
    program = {trap}
[gpg "ssh"]
    program = {trap}
    allowedSignersFile = /dev/null
[credential]
    helper = {trap}
[interactive]
    diffFilter = {trap}
[trailer "x"]
    command = {trap}
[remote "origin"]
    url = ext::{trap} %S
    promisor = true
    partialclonefilter = blob:none
    uploadpack = {trap}
    vcs = {trap}
[protocol "ext"]
    allow = always
[submodule]
    recurse = true
[status]
    submoduleSummary = true
[include]
    path = {more}
"""
        )


def test_nothing_that_a_repository_names_is_run(repository: Path, tmp_path: Path) -> None:
    first = commit(repository, "Begin", a="1\n", b="2\n")
    for number in range(3):
        commit(repository, "Use a rather than b", a=f"{number} {number}\n" * 20, b=f"{number}\n")
    run_git(repository, "mv", "a.py", "c.py")
    commit(repository, "Rename", c="4\n" + "2 2\n" * 20)
    witness = tmp_path / "witness"
    laid_with_traps(repository, witness)
    same_size = put(repository, "b.py", "9\n")  # only its text tells that it differs: a filter is asked
    os.utime(same_size, (time.time() + 5, time.time() + 5))

    assert insights(str(repository)) is not None
    assert "b.py" in names(repository, changed_since(str(repository), first, 0))
    assert "b.py" in names(repository, changed_since(str(repository), None, 0))
    assert not witness.exists()

    # Git as anybody would call it does run them: the traps are live.
    run_git(repository, "status", check=False)
    run_git(repository, "log", "-p", "-1", check=False)
    ran = witness.read_text()
    assert len(ran.splitlines()) > 1


@pytest.mark.parametrize("name", ["clean", "process"])
def test_a_filter_whose_name_no_option_could_override_is_not_run(
    repository: Path, tmp_path: Path, name: str
) -> None:
    commit(repository, "Begin", a="1\n")
    witness = tmp_path / "witness"
    put(repository, ".gitattributes", "*.py filter=a=b.c\n")
    run_git(repository, "config", f"filter.a=b.c.{name}", f"echo ran >> {witness}; cat")
    os.utime(put(repository, "a.py", "2\n"), (1, 1))
    assert names(repository, changed_since(str(repository), None, 0)) == [".gitattributes", "a.py"]
    assert not witness.exists()
    run_git(repository, "status", check=False)
    assert witness.exists()


def test_the_configuration_of_a_submodule_and_of_a_nested_repository_is_left_alone(
    repository: Path, tmp_path: Path
) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    run_git(inner, "init", "-q")
    commit(inner, "Inner", a="1\n")
    run_git(repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "part")
    head = commit(repository, "Outer", b="1\n")
    witness = tmp_path / "witness"
    for folder in (repository / "part", shutil.copytree(inner, repository / "nested")):
        trap = f"sh -c 'echo {folder} >> {witness}'"
        run_git(folder, "config", "core.fsmonitor", trap)
        run_git(folder, "config", "filter.x.clean", trap)
        put(folder, ".gitattributes", "* filter=x\n")
        put(folder, "a.py", "2\n")

    assert insights(str(repository)) is not None
    assert names(repository, changed_since(str(repository), head, 0)) == ["nested"]
    assert not witness.exists()
    run_git(repository, "status", check=False)
    assert "part" in witness.read_text()


def test_missing_objects_are_not_fetched(repository: Path, tmp_path: Path) -> None:
    """As in a partial clone: the files of old commits are missing, and the remote would run a program."""
    for number in range(4):
        commit(repository, f"Change {number}", a=f"{number}\n" * 30, b=f"{number}\n" * 30)
    run_git(repository, "mv", "a.py", "c.py")
    commit(repository, "Rename", c="0\n" + "3\n" * 30)
    blob = run_git(repository, "rev-parse", "HEAD~1:a.py").strip()
    (repository / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    witness = tmp_path / "witness"
    for name, value in (
        ("extensions.partialClone", "origin"),
        ("core.repositoryFormatVersion", "1"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", f"ext::sh -c echo% ran% >>{witness}"),
        ("protocol.ext.allow", "always"),
    ):
        run_git(repository, "config", name, value)
    found = insights(str(repository))
    assert found
    assert found.hot == (("b.py", 4),)  # a.py is gone, and without the missing file nobody knows where to
    assert not witness.exists()
    run_git(repository, "log", "-p", check=False)
    assert witness.exists()


def test_the_environment_does_not_lead_git_elsewhere(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a hook of git, which is started with GIT_DIR set."""
    commit(repository, "Begin", a="1\n")
    other = tmp_path / "other"
    other.mkdir()
    run_git(other, "init", "-q")
    witness = tmp_path / "witness"
    trap = f"sh -c 'echo ran >> {witness}'"
    for name, value in {
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(other / "index"),
        "GIT_EXTERNAL_DIFF": trap,
        "GIT_PAGER": trap,
        "GIT_SSH_COMMAND": trap,
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": trap,
        "GIT_TRACE": str(witness),
    }.items():
        monkeypatch.setenv(name, value)
    put(repository, "b.py", "1\n")
    assert insights(str(repository)) is not None
    assert names(repository, changed_since(str(repository), None, 0)) == ["a.py", "b.py"]
    assert not witness.exists()


def test_a_program_called_git_in_the_repository_is_not_run(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(repository, "Begin", a="1\n")
    witness = tmp_path / "witness"
    put(repository, "git", f"#!/bin/sh\necho ran >> {witness}\n").chmod(0o755)
    monkeypatch.chdir(repository)
    monkeypatch.setenv("PATH", f".::{os.environ['PATH']}")
    assert insights(str(repository)) is not None
    monkeypatch.setenv("PATH", ".")
    assert insights(str(repository)) is None
    assert not witness.exists()


def test_a_work_tree_that_a_configuration_claims_is_not_looked_at(repository: Path, tmp_path: Path) -> None:
    commit(repository, "Begin", a="1\n")
    put(tmp_path, "home/secret.txt", "x")
    run_git(repository, "config", "core.worktree", str(tmp_path / "home"))
    assert changed_since(str(repository), None, 0) is None
    assert insights(str(repository)) is None


def test_a_repository_of_somebody_else_is_refused_as_git_does(repository: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a folder away")
    commit(repository, "Begin", a="1\n")
    for place in (repository, repository / ".git"):
        os.chown(place, 12345, 12345)
    assert insights(str(repository)) is None
    assert changed_since(str(repository), None, 0) is None
    run_git(repository, "config", "--global", "safe.directory", str(repository))
    assert insights(str(repository)) is not None


# A `.git` that names the repository of somebody else.


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a linked worktree, of which everything may be told only at home."""
    folder = tmp_path_factory.mktemp("others") / "victim"
    folder.mkdir()
    run_git(folder, "init", "-q")
    for number in range(3):
        commit(folder, f"feat(walrus): buy it rather than rent it, {number}", deal=f"{number}\n")
    run_git(folder, "worktree", "add", "-q", "-b", "side", str(folder.with_name("linked")))
    assert insights(str(folder)) is not None
    return folder


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_git_tells_nothing_of_the_repository_that_it_names(
    forgery: str, victim: Path, tmp_path: Path
) -> None:
    evil = tmp_path / "theirs" / "evil"
    evil.mkdir(parents=True)
    FORGERIES[forgery](evil, victim)
    put(evil, "deal.py", "1\n")
    assert insights(str(evil)) is None
    assert "deal.py" not in names(evil, changed_since(str(evil), None, 0) or [])


@pytest.mark.parametrize(
    "links",
    ["objects refs", "objects refs/heads", "objects refs/heads/main", "objects packed-refs"],
)
def test_links_in_a_git_folder_tell_nothing_of_another_repository(
    links: str, victim: Path, tmp_path: Path
) -> None:
    victim, evil = shutil.copytree(victim, tmp_path / "victim"), tmp_path / "evil"
    if "packed-refs" in links:
        run_git(victim, "pack-refs", "--all")
    run_git(tmp_path, "init", "-q", str(evil))
    for name in links.split():
        place = evil / ".git" / name
        shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
        place.symlink_to(victim / ".git" / name)
    assert run_git(evil, "log", "--format=%s").startswith("feat(walrus)")  # git itself does tell
    assert insights(str(evil)) is None


@pytest.mark.parametrize("name", ["index", "sharedindex"])
def test_no_index_of_another_repository_tells_what_it_holds(name: str, victim: Path, tmp_path: Path) -> None:
    victim, evil = shutil.copytree(victim, tmp_path / "victim"), tmp_path / "evil"
    run_git(tmp_path, "init", "-q", str(evil))
    if name == "sharedindex":
        run_git(victim, "update-index", "--split-index")
        shutil.copy(victim / ".git" / "index", evil / ".git" / "index")
    for path in (victim / ".git").glob(f"{name}*"):
        (evil / ".git" / path.name).symlink_to(path)
    assert "deal.py" in run_git(evil, "status", "--porcelain")
    assert changed_since(str(evil), None, 0) in (None, [])


def test_a_clone_that_shares_the_objects_of_another_is_read(repository: Path, tmp_path: Path) -> None:
    for number in range(3):
        commit(repository, "Begin", a=f"{number}\n")
    run_git(tmp_path, "clone", "-q", "--shared", str(repository), "clone")
    found = insights(str(tmp_path / "clone"))
    assert found
    assert found.hot == (("a.py", 3),)


# What there may be instead of a repository.


def test_without_a_repository_there_is_nothing_to_tell(tmp_path: Path) -> None:
    assert insights(str(tmp_path)) is None
    assert changed_since(str(tmp_path), None, 0) is None
    assert insights(str(tmp_path / "gone")) is None


def test_without_git_there_is_nothing_to_tell(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(repository, "Begin", a="1\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert insights(str(repository)) is None
    assert changed_since(str(repository), None, 0) is None
    monkeypatch.setenv("PATH", "")
    assert insights(str(repository)) is None


def test_a_repository_without_commits_has_only_new_files(repository: Path) -> None:
    write(repository, a="1\n", b="2\n")
    run_git(repository, "add", "a.py")
    assert insights(str(repository)) is None
    assert names(repository, changed_since(str(repository), None, 0)) == ["a.py", "b.py"]
    assert names(repository, changed_since(str(repository), "0" * 40, 0)) == ["a.py", "b.py"]


def test_a_bare_repository_and_a_broken_one_tell_nothing(tmp_path: Path) -> None:
    run_git(tmp_path, "init", "-q", "--bare", "bare.git")
    assert insights(str(tmp_path / "bare.git")) is None
    assert changed_since(str(tmp_path / "bare.git"), None, 0) is None
    run_git(tmp_path, "init", "-q", "broken")
    put(tmp_path / "broken", ".git/config", "[[[ what is this")
    assert insights(str(tmp_path / "broken")) is None
    assert changed_since(str(tmp_path / "broken"), None, 0) is None


def test_a_git_that_hangs_is_left(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(repository, "Begin", a="1\n")
    os.mkfifo(repository / ".gitignore")  # git opens it, and waits
    monkeypatch.setattr("backstory.git.SECONDS", 0.5)
    start = time.monotonic()
    head = commit_id(repository)
    assert names(repository, changed_since(str(repository), head, 0)) == []
    assert insights(str(repository)) is not None
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("name", ["core.excludesFile", "info/exclude", "index"])
def test_a_pipe_in_the_place_of_what_git_reads_keeps_nobody_waiting(name: str, repository: Path) -> None:
    commit(repository, "Begin", a="1\n")
    pipe = repository / ".git" / "pipe" if name.startswith("core") else repository / ".git" / name
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    if name.startswith("core"):
        run_git(repository, "config", name, str(pipe))
    start = time.monotonic()
    changed_since(str(repository), None, 0)
    assert time.monotonic() - start < 2


def commit_id(repository: Path) -> str:
    return run_git(repository, "rev-parse", "HEAD").strip()


# What changed.


def test_whatever_changed_since_a_commit_is_found(repository: Path) -> None:
    commit(
        repository, "Begin", kept="1\n", edited="1\n", staged="1\n", gone="1\n", removed="1\n", sub__x="1\n"
    )
    head = commit(repository, "Before", edited="2\n")
    since = earlier()
    commit(repository, "After", committed="1\n", sub__x="2\n")
    write(repository, edited="3\n", staged="2\n", new="1\n", deep__er__new="1\n")
    run_git(repository, "add", "staged.py")
    (repository / "gone.py").unlink()
    run_git(repository, "rm", "-q", "removed.py")
    found = changed_since(str(repository), head, since)
    expected = "committed deep/er/new edited gone new removed staged sub/x".split()
    assert names(repository, found) == [f"{name}.py" for name in expected]
    assert all(os.path.isabs(path) for path in found or [])


def test_a_change_that_was_there_already_is_none(repository: Path) -> None:
    head = commit(repository, "Begin", a="1\n", b="1\n")
    write(repository, a="2\n", new="1\n")
    (repository / "b.py").unlink()
    since = earlier()
    assert names(repository, changed_since(str(repository), head, since)) == []
    write(repository, a="3\n")
    assert names(repository, changed_since(str(repository), head, since)) == ["a.py"]


def test_a_file_that_was_moved_here_with_its_old_time_is_new(repository: Path, tmp_path: Path) -> None:
    head = commit(repository, "Begin", a="1\n")
    old = put(tmp_path, "old.py", "1\n")
    os.utime(old, (1_000_000, 1_000_000))
    since = earlier()
    old.rename(repository / "old.py")
    (repository / "a.py").rename(repository / "b.py")
    assert names(repository, changed_since(str(repository), head, since)) == ["a.py", "b.py", "old.py"]


def test_a_folder_that_is_gone_is_noticed(repository: Path) -> None:
    head = commit(repository, "Begin", sub__deep__a="1\n", b="1\n")
    since = earlier()
    shutil.rmtree(repository / "sub")
    assert names(repository, changed_since(str(repository), head, since)) == ["sub/deep/a.py"]


def test_a_commit_that_is_gone_is_replaced_by_the_time(repository: Path) -> None:
    commit(repository, "Old", a="1\n")
    run_git(repository, "commit", "-q", "--amend", "--no-edit", "--reset-author", at=LONG_AGO)
    commit(repository, "New", b="1\n")
    since = (int(time.time()) - 3600) * 1000
    for head in (None, "f" * 40, "--output=/tmp/x", "main", ""):
        assert names(repository, changed_since(str(repository), head, since)) == ["b.py"]


def test_what_a_merge_brings_is_new_however_old_it_is(repository: Path) -> None:
    commit(repository, "Begin", a="1\n")
    run_git(repository, "checkout", "-q", "-b", "side")
    write(repository, side="1\n")
    run_git(repository, "add", "-A")
    run_git(repository, "commit", "-q", "-m", "Side", at=LONG_AGO)
    run_git(repository, "checkout", "-q", "main")
    since = (int(time.time()) - 3600) * 1000
    run_git(repository, "commit", "-q", "--amend", "--no-edit", "--reset-author", at=LONG_AGO)
    run_git(repository, "merge", "-q", "--no-ff", "--allow-unrelated-histories", "-m", "Merge", "side")
    assert names(repository, changed_since(str(repository), None, since)) == ["side.py"]


def test_ignored_files_are_no_changes(repository: Path, home: Path) -> None:
    head = commit(repository, "Begin", a="1\n")
    put(repository, ".gitignore", "*.log\n")
    put(repository, ".git/info/exclude", "/local.txt\n")
    put(home, ".config/git/ignore", "*.swp\n")
    for name in ("x.log", "local.txt", "y.swp", "z.txt"):
        put(repository, name, "1")
    assert names(repository, changed_since(str(repository), head, 0)) == [".gitignore", "z.txt"]
    put(home, "mine", "z.txt\n")
    run_git(repository, "config", "--global", "core.excludesFile", "~/mine")
    assert names(repository, changed_since(str(repository), head, 0)) == [".gitignore", "y.swp"]


def test_modes_that_a_file_system_cannot_keep_are_no_changes(repository: Path) -> None:
    head = commit(repository, "Begin", a="1\n")
    (repository / "a.py").chmod(0o755)
    assert names(repository, changed_since(str(repository), head, 0)) == ["a.py"]
    run_git(repository, "config", "core.fileMode", "false")
    assert names(repository, changed_since(str(repository), head, 0)) == []


ODD = [
    "with space.py",
    "quo'te\".py",
    "ünïcode.py",
    "tab\there.py",
    "new\nline.py",
    "-dash.py",
    ":(top)x.py",
    "a -> b",
]


def test_odd_names_come_as_they_are(repository: Path) -> None:
    head = commit(repository, "Begin")
    odd = [*ODD, os.fsdecode(b"latin-\xe4.py")]
    for name in odd:
        put(repository, name, "1\n")
    assert sorted(names(repository, changed_since(str(repository), head, 0))) == sorted(odd)
    commit(repository, "Odd")
    assert sorted(names(repository, changed_since(str(repository), head, 0))) == sorted(odd)


def test_a_root_below_the_top_tells_what_is_below_it(repository: Path) -> None:
    head = commit(repository, "Begin", top="1\n", part__a="1\n")
    for number in range(3):
        commit(repository, f"Change {number}", top=f"{number}\n", part__a=f"{number}!\n", party="1\n")
    put(repository, "part/new.py", "1\n")
    put(repository, "other.py", "1\n")
    root = repository / "part"
    assert names(root, changed_since(str(root), head, 0)) == ["a.py", "new.py"]
    found = insights(str(root))
    assert found and [path for path, _ in found.hot] == ["a.py"]


def test_asking_changes_nothing_in_the_repository(repository: Path) -> None:
    head = commit(repository, "Begin", a="1\n")
    os.utime(repository / "a.py", (1, 1))  # git status would like to note that in the index

    def state() -> dict[str, int]:
        return {str(path): path.lstat().st_mtime_ns for path in repository.rglob("*")}

    before = state()
    changed_since(str(repository), head, 0)
    insights(str(repository))
    assert state() == before


# Other kinds of work trees.


def test_a_linked_work_tree_has_changes_of_its_own(repository: Path, tmp_path: Path) -> None:
    head = commit(repository, "Begin", a="1\n")
    run_git(repository, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    put(tmp_path / "side", "b.py", "1\n")
    put(repository, "c.py", "1\n")
    assert names(tmp_path / "side", changed_since(str(tmp_path / "side"), head, 0)) == ["b.py"]
    assert names(repository, changed_since(str(repository), head, 0)) == ["c.py"]
    for number in range(3):
        commit(tmp_path / "side", f"Change {number}", a=f"{number}{number}\n")
    found = insights(str(tmp_path / "side"))
    assert found and found.hot == (("a.py", 4),)


def test_a_submodule_is_a_project_like_any_other(repository: Path, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    run_git(inner, "init", "-q")
    head = commit(inner, "Inner", a="1\n")
    run_git(repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "part")
    put(repository, "part/b.py", "1\n")
    assert names(repository / "part", changed_since(str(repository / "part"), head, 0)) == ["b.py"]
    assert insights(str(repository / "part")) is not None


def test_a_shallow_clone_tells_what_it_has(repository: Path, tmp_path: Path) -> None:
    for number in range(6):
        head = commit(repository, f"Change {number}", a=f"{number}\n")
    run_git(tmp_path, "clone", "-q", "--depth", "4", f"file://{repository}", "clone")
    found = insights(str(tmp_path / "clone"))
    assert found and found.hot == (("a.py", 4),)
    assert names(tmp_path / "clone", changed_since(str(tmp_path / "clone"), head, 0)) == []


@pytest.mark.parametrize("kind", ["split index", "alternates", "sha256", "packed", "detached"])
def test_other_layouts_are_read_as_well(repository: Path, tmp_path: Path, kind: str) -> None:
    if kind == "sha256":
        repository = tmp_path / "long"
        repository.mkdir()
        run_git(repository, "init", "-q", "--object-format=sha256")
    for number in range(3):
        head = commit(repository, f"Change {number}", a=f"{number}\n")
    if kind == "split index":
        run_git(repository, "update-index", "--split-index")
        assert list((repository / ".git").glob("sharedindex.*"))
    if kind == "alternates":
        run_git(tmp_path, "clone", "-q", "--shared", str(repository), "clone")
        repository = tmp_path / "clone"
    if kind == "packed":
        run_git(repository, "gc", "-q")
    if kind == "detached":
        run_git(repository, "checkout", "-q", "--detach")
    put(repository, "b.py", "1\n")
    assert names(repository, changed_since(str(repository), head, 0)) == ["b.py"]
    found = insights(str(repository))
    assert found and found.hot == (("a.py", 3),)


# Insights, as far as git has a part in them; the rest is in test_claude_md_history.py.


def test_a_renamed_file_keeps_its_history(repository: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(50))
    for number in range(3):
        commit(repository, f"Change {number}", old=f"{text}{number}\n")
    run_git(repository, "mv", "old.py", "new.py")
    commit(repository, "Rename", new=f"{text}renamed\n")
    commit(repository, "Another of that name", old="1\n")
    found = insights(str(repository))
    assert found and found.hot == (("new.py", 4),)


def test_files_that_are_gone_or_made_by_a_program_are_not_hot(repository: Path) -> None:
    for number in range(4):
        commit(
            repository,
            f"Change {number}",
            kept=f"{number}\n",
            gone=f"{number}\n",
            made=f"# Generated by protoc. DO NOT EDIT.\n{number}\n",
        )
    (repository / "gone.py").unlink()
    found = insights(str(repository))
    assert found and found.hot == (("kept.py", 4),)
    assert found.together == ()


def test_only_so_many_commits_are_looked_at(repository: Path) -> None:
    for number in range(6):
        commit(repository, f"Change {number}", a=f"{number}\n")
    found = insights(str(repository), most=4)
    assert found and found.hot == (("a.py", 4),)


def test_a_message_in_any_encoding_is_one_line_of_text(repository: Path) -> None:
    put(repository, "message", "x").write_bytes(
        b"Use caf\xe9 instead of tea\x1b[31m\x07\n\nBetter\x01 because of \xe9.\n"
    )
    run_git(repository, "add", "-A")
    run_git(repository, "commit", "-q", "-F", "message")
    found = insights(str(repository))
    assert found and len(found.decisions) == 1
    text = found.decisions[0][2]
    assert text.isprintable() and text.startswith("Use caf") and "instead of tea" in text
    assert "Better because of" in text


def grown(repository: Path, commits: int, files: int) -> None:
    """A long history, by way of fast-import: a commit at a time would take a minute."""
    lines = []
    for number in range(commits):
        lines.append(
            f"commit refs/heads/main\ncommitter Ada <ada@example.org> {1_700_000_000 + number} +0000\n"
            f"data <<END\nfeat(api): add part {number}\n\nBecause {number}.\nEND\n"
        )
        for file in range(5):
            path = f"src/module_{(number * 7 + file * 13) % files}.py"
            lines.append(f"M 644 inline {path}\ndata <<END\n{number}\nEND\n")
    subprocess.run(
        ["git", "fast-import", "--quiet"], cwd=repository, input="\n".join(lines).encode(), check=True
    )
    run_git(repository, "checkout", "-q", "-f", "main")


@pytest.mark.slow
def test_a_thousand_commits_take_less_than_a_second(repository: Path) -> None:
    """Of processor time, that of git included: other processes share the machine."""
    grown(repository, 1_200, 300)
    started = sum(os.times()[:4])
    found = insights(str(repository))
    assert sum(os.times()[:4]) - started < 1
    assert isinstance(found, Insights) and len(found.hot) == 10


def test_an_endless_answer_is_cut(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grown(repository, 100, 50)
    monkeypatch.setattr("backstory.git.MOST_BYTES", 10_000)
    found = insights(str(repository))
    assert found and found.hot
