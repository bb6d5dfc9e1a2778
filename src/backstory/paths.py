"""Where backstory keeps its data, and which project a folder belongs to.

The rule for the data folder is the same here and in plugin/hooks/hook.sh; a test runs both side by side.
Where not even a home is known, the plugin's scripts name one that the client gave them.
Git is read as files, never run: a hook cannot afford a process, and a repository's own configuration must
not decide what runs.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def data_folder(env: Mapping[str, str]) -> str | None:
    """The folder that holds everything; None where not even a home is known."""
    if home := env.get("BACKSTORY_HOME"):
        return home
    if data := env.get("XDG_DATA_HOME"):
        return os.path.join(data, "backstory")
    if home := env.get("HOME"):
        return os.path.join(home, ".local", "share", "backstory")
    return None


def database(folder: str) -> str:
    return os.path.join(folder, "backstory.db")


def spool(folder: str) -> str:
    return os.path.join(folder, "spool")


def worker_lock(folder: str) -> str:
    return os.path.join(folder, "worker.lock")


def log_file(folder: str) -> str:
    return os.path.join(folder, "logs", "backstory.log")


class Place:
    """A folder seen as a project: what identifies it, what to call it, and git's state there."""

    __slots__ = ("branch", "head", "identity", "name", "root", "tops")

    def __init__(
        self,
        identity: str,
        name: str,
        root: str,
        branch: str | None,
        head: str | None,
        tops: tuple[str, ...] = (),
    ) -> None:
        self.identity = identity
        self.name = name
        self.root = root
        self.branch = branch
        self.head = head
        # The top of the work tree that the folder is in, which may be a linked one: as it is, as it was
        # spelled on the way there, and the root.
        self.tops = tuple(dict.fromkeys((*tops, root)))


def place(cwd: str) -> Place:
    """The project that a folder belongs to.

    Identity is the git common directory, so that worktrees share one memory and two folders called `api` do
    not; outside git it is the real path.
    """
    folder = os.path.realpath(cwd)
    at = folder
    while True:
        if git := _git_folder(at):
            common = _common_folder(git)
            root = os.path.dirname(common) if os.path.basename(common) == ".git" else common
            name = os.path.basename(root).removesuffix(".git")
            branch, head = _head(git, common)
            return Place(
                identity=text(common),
                name=text(name or root),
                root=text(root),
                branch=branch,
                head=head,
                tops=(text(at), text(_as_spelled(cwd, folder[len(at) :]))),
            )
        parent = os.path.dirname(at)
        if parent == at:
            folder = text(folder)
            tops = (text(_as_spelled(cwd, "")),)
            return Place(folder, os.path.basename(folder) or folder, folder, None, None, tops)
        at = parent


def _as_spelled(cwd: str, below: str) -> str:
    path = os.path.normpath(cwd)
    return path[: len(path) - len(below)] if path.endswith(below) else path


def checkout(cwd: str) -> str:
    """The top of the work tree that a folder is in: of a linked one its own. Outside git, the folder."""
    at = folder = os.path.realpath(cwd)
    while _git_folder(at) is None:
        parent = os.path.dirname(at)
        if parent == at:
            return folder
        at = parent
    return at


def _git_folder(folder: str) -> str | None:
    dot_git = os.path.join(folder, ".git")
    if os.path.isfile(os.path.join(dot_git, "HEAD")):
        return os.path.realpath(dot_git)
    pointer = _line(dot_git)  # a worktree's or a submodule's .git is a file: "gitdir: <path>"
    if pointer and pointer.startswith("gitdir: "):
        target = os.path.realpath(os.path.join(folder, pointer.removeprefix("gitdir: ")))
        if os.path.isfile(os.path.join(target, "HEAD")):
            return target
    return None


def _common_folder(git: str) -> str:
    common = _line(os.path.join(git, "commondir"))
    return os.path.realpath(os.path.join(git, common)) if common else git


def _head(git: str, common: str) -> tuple[str | None, str | None]:
    head = _line(os.path.join(git, "HEAD"))
    if not head or not head.startswith("ref: "):
        return None, head or None
    ref = head.removeprefix("ref: ")
    branch = ref.removeprefix("refs/heads/")
    commit = _line(os.path.join(git, ref)) or _line(os.path.join(common, ref)) or _packed(common, ref)
    return branch, commit


def _packed(common: str, ref: str) -> str | None:
    path = os.path.join(common, "packed-refs")
    if not os.path.isfile(path):
        return None
    try:
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                commit, _, name = line.rstrip("\n").partition(" ")
                if name == ref:
                    return commit
    except OSError:
        pass
    return None


def text(path: str) -> str:
    """A path as text that can be stored: a name that is not UTF-8 stays distinct from every other."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _line(path: str) -> str | None:
    if not os.path.isfile(path):
        return None  # a pipe of that name would keep us waiting for ever
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline(4096).strip().replace("\0", "")
    except OSError:
        return None
