"""What git knows of a project: its last commits, and what changed since a moment.

Git is run, but not as the repository wants it. A repository's configuration names programs: for filters, file
system events, diffs, hooks, signatures, transports, and more with each version of git; a list of what to
switch off would never be complete (the names of filters are free). So none of it is in force. Git says where
the parts of the repository lie, which runs nothing, and refuses where it belongs to somebody else. Then it
works in a git folder of ours, with a configuration of ours, that borrows the objects, the index and the list
of what is ignored. Attributes may name a filter there, but none is defined; objects that a partial clone
left out stay missing, since no remote is known.

A `.git`, or a link in one, may name the repository of somebody else, whose history is not for this project's
CLAUDE.md. So only a git folder is read that is the checkout's own, and of it nothing that lies elsewhere, and
HEAD is what `paths` says. Objects may come from elsewhere (a clone with `--shared` does that): who names a
commit has to know its id.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from tempfile import TemporaryDirectory

from backstory import log, paths
from backstory.claude_md.read import files, history, languages
from backstory.model import Insights

SECONDS = 10.0  # for each command; then what it has said by now must do
MOST_ASKED = 500  # paths in one command
MOST_BYTES = 32_000_000  # of its answer
SLACK_MS = 20  # a file's time comes from a clock that ticks in such steps

# What a repository may say about its files without naming a program: of the file system it lies on.
SETTINGS = "filemode symlinks ignorecase precomposeunicode trustctime checkstat autocrlf eol excludesfile"
BORROWED = ("index", "shallow", "info/exclude")
FIELDS = ("%H", "%h", "%cs", "%an", "%ae", "%s", "%b")


def insights(root: str, most: int = 1_000) -> Insights | None:
    """What the last commits say about a project. None: there are none, or no git to ask."""
    with _opened(root) as git:
        commits = git.commits(most) if git and git.head else []
    real = os.path.realpath(root)
    return history.insights(commits, lambda path: _is_written(os.path.join(real, path))) if commits else None


def changed_since(root: str, head: str | None, since: int) -> list[str] | None:
    """The files that differ from those of an earlier commit, or were touched since a time (in ms), whoever
    did it: committed, uncommitted, new, deleted. None: this is no work tree, or there is no git.

    The time decides where the commit is not known (any more), and about what was there already: a file that
    nobody touched since is the same as it was, though it may be committed only now.
    """
    with _opened(root) as git:
        if git is None:
            return None
        found = {*git.committed(head, since), *git.uncommitted()}
    whole = (os.path.join(root, name) for name in found)
    return sorted(path for path in whole if touched(path) >= since - SLACK_MS)


def ignored(root: str, names: Sequence[str]) -> set[str]:
    """Those of these paths, as seen from the root, that git would not list if they were there."""
    if not names:
        return set()
    with _opened(root) as git:
        return set(git.ignored(names)) if git else set()


def _is_written(path: str) -> bool:
    """Whether a file is there, and not made by a program."""
    head = files.read(path, 2_000)
    return head is not None and not languages.generated(head)


@dataclass(frozen=True, slots=True)
class _Git:
    """Git in a folder of ours, about the repository that a root is in."""

    command: tuple[str, ...]
    environment: dict[str, str]
    folder: str  # ours
    top: str  # of the work tree
    prefix: str  # from there to the root, with `/` at its end; empty where they are one
    head: str | None

    def commits(self, most: int) -> list[history.Commit]:
        """The last commits below the root that are no merges, newest first."""
        asked = ["log", "-z", f"-n{most}", "--no-merges", "--no-mailmap", "--encoding=UTF-8"]
        asked += [f"--format={'%x00'.join(FIELDS)}", "--name-status"]
        # Renames are found by reading files, and a partial clone does not have them all.
        for renames in ("-M", "--no-renames"):
            out, code = self._say(*asked, renames, "-l200", str(self.head), "--", *self._below())
            commits = list(history.parse(out, self.prefix))
            if code <= 0:
                break
        return commits if code == 0 else commits[:-1]  # the last one may have been cut

    def committed(self, head: str | None, since: int) -> list[str]:
        if self.head is None or head == self.head:
            return []
        asked = ["diff-tree", "-r", "-z", "--name-only", "--no-renames"]
        if head and re.fullmatch("[0-9a-f]{40,64}", head):
            out, code = self._say(*asked, head, self.head, "--", *self._below())
            if code == 0:
                return self._names(out)
        # A merge brings what others committed long ago; it is the merge that changed something here.
        asked = ["log", "-z", "--format=", "--name-only", "--no-renames", "--first-parent", "-m"]
        out, _ = self._say(*asked, f"--max-age={since // 1000}", self.head, "--", *self._below())
        return self._names(out)

    def uncommitted(self) -> list[str]:
        """What differs from the last commit in the work tree.

        A submodule is a repository of its own, with a configuration of its own: nobody looks inside.
        """
        asked = ["status", "--porcelain", "-z", "--untracked-files=all", "--no-renames"]
        asked += ["--ignore-submodules=all", "--", *self._below()]
        out, code = self._say(*asked, GIT_WORK_TREE=self.top)
        if code:
            log.write("warning", f"git could not tell all that changed in {paths.text(self.top)}")
        return self._names(b"\0".join(entry[3:] for entry in out.split(b"\0")))

    def ignored(self, names: Sequence[str]) -> list[str]:
        # One that leads out would make it refuse them all.
        below = f"./{self.prefix}"
        asked = [below + name for name in names[:MOST_ASKED] if ".." not in name and "\0" not in name]
        command = ("--no-literal-pathspecs", "-c", "core.quotePath=false", "check-ignore", "--no-index", "--")
        out, _ = self._say(*command, *asked, GIT_WORK_TREE=self.top)
        return [os.fsdecode(name)[len(below) :] for name in out.split(b"\n") if name]

    def _names(self, out: bytes) -> list[str]:
        """The paths in an answer, from the root."""
        names = (os.fsdecode(name) for name in out.split(b"\0")[:-1] if name)
        return [name[len(self.prefix) :].rstrip("/") for name in names if name.startswith(self.prefix)]

    def _below(self) -> list[str]:
        return [self.prefix] if self.prefix else []

    def _say(self, *asked: str, **environment: str) -> tuple[bytes, int]:
        inside = environment.get("GIT_WORK_TREE", self.folder)
        return _output((*self.command, *asked), {**self.environment, **environment}, inside)


@contextmanager
def _opened(root: str) -> Iterator[_Git | None]:
    """Git for the work tree that a root is in; None where there is none, or no git."""
    real, program = os.path.realpath(root), _program()
    if program is None or not (at := _places(program, real)):
        yield None
        return
    with TemporaryDirectory(prefix="backstory-git-") as folder:
        _furnish(folder, at)
        command = (program, "--no-pager", "--no-optional-locks", "--literal-pathspecs")
        environment = _environment(
            GIT_DIR=folder,
            GIT_OBJECT_DIRECTORY=at["objects"],
            GIT_CONFIG_NOSYSTEM="1",
            GIT_CONFIG_GLOBAL=os.devnull,
            GIT_ATTR_NOSYSTEM="1",
        )
        prefix = os.path.relpath(real, at["top"])
        prefix = "" if prefix == os.curdir else f"{prefix}/"
        yield _Git(
            (*command, *_settings(program, real, at["top"])),
            environment,
            folder,
            at["top"],
            prefix,
            at["head"] or None,
        )


def _program() -> str | None:
    """Git from a folder that PATH names in full: a relative one may be the repository's own."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return shutil.which("git", path=os.pathsep.join(filter(os.path.isabs, folders)) or os.devnull)


def _places(program: str, root: str) -> dict[str, str] | None:
    """Where the parts of a repository lie, and what HEAD is. Asking for that runs nothing of it."""
    top, git, common = paths.git_folders(root)
    if git is None or common is None:
        return None
    asked = ["rev-parse", "--path-format=absolute", "--show-toplevel", "--show-object-format"]
    for name in ("objects", *BORROWED):
        asked += ["--git-path", name]
    out, code = _output((program, *asked), _environment(), root)
    said = os.fsdecode(out).split("\n")[:-1]
    names = ("top", "format", "objects", *BORROWED)
    # A configuration may claim any folder as the work tree, the home of who looks at it for example.
    if code or len(said) != len(names) or os.path.realpath(said[0]) != top:
        return None
    at = dict(zip(names, said, strict=True))
    for name in ("objects", *BORROWED):
        at[name] = paths.inside(git, at[name]) or paths.inside(common, at[name])
    if not (at["objects"] and at["index"]):
        return None
    return {**at, "head": paths.place(root).head or ""}


def _settings(program: str, root: str, top: str) -> list[str]:
    pattern = rf"^core\.({SETTINGS.replace(' ', '|')})$"
    out, _ = _output((program, "config", "-z", "--get-regexp", pattern), _environment(), root)
    settings: list[str] = []
    for entry in out.split(b"\0")[:-1]:
        name, equals, value = os.fsdecode(entry).partition("\n")
        is_file = os.path.isfile(os.path.join(top, os.path.expanduser(value)))
        if name != "core.excludesfile" or is_file:  # a pipe would keep git waiting
            settings += ["-c", f"{name}={value if equals else 'true'}"]
    return settings


def _furnish(folder: str, at: dict[str, str]) -> None:
    """Make a git folder with the state of a repository and none of its configuration."""
    os.makedirs(os.path.join(folder, "refs"))
    os.makedirs(os.path.join(folder, "info"))
    version = 0 if at["format"] == "sha1" else 1
    settings = f"[core]\nrepositoryformatversion = {version}\nbare = true\n"
    if version:
        settings += f"[extensions]\nobjectFormat = {at['format']}\n"
    for name, text in (("config", settings), ("HEAD", f"{at['head'] or 'ref: refs/heads/none'}\n")):
        with open(os.path.join(folder, name), "w", encoding="ascii") as file:
            file.write(text)
    for name in BORROWED:
        if os.path.isfile(at[name]):  # a pipe would keep git waiting
            os.symlink(at[name], os.path.join(folder, name))
    beside = os.path.dirname(at["index"])
    for name in os.listdir(beside):
        # A split index has a part in a file of its own.
        if name.startswith("sharedindex.") and os.path.isfile(path := paths.inside(beside, name)):
            os.symlink(path, os.path.join(folder, name))


def _environment(**more: str) -> dict[str, str]:
    """Ours without what would lead git elsewhere: it may be started by a hook of git, which sets all that."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    never = {"GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
    return {**kept, "LC_ALL": "C", **never, **more}


def _output(command: tuple[str, ...], environment: dict[str, str], folder: str) -> tuple[bytes, int]:
    """What a command says and how it ended: below 0 it was cut short, above it failed."""
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except (OSError, ValueError):  # no such folder, or a name that no program can be given
        return b"", 1
    timer = threading.Timer(SECONDS, process.kill)
    timer.start()
    try:
        with process:
            out = process.stdout.read(MOST_BYTES) if process.stdout else b""
            is_cut = len(out) == MOST_BYTES
            if is_cut:
                process.kill()
    finally:
        timer.cancel()
    return out, -1 if is_cut else process.returncode


def touched(path: str) -> int:
    """When a file last changed, in ms. Of one that is gone: when something last went from its folder."""
    with suppress(OSError):
        status = os.lstat(path)
        return max(status.st_mtime_ns, status.st_ctime_ns) // 1_000_000
    folder = os.path.dirname(path)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return os.stat(folder).st_mtime_ns // 1_000_000
