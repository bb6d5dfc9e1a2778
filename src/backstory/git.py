"""Git, run for what its files do not say: a repository's history.

Git is run, but not as the repository wants it. A repository's configuration names programs: for filters, file
system events, diffs, hooks, signatures, transports, and more with each version of git; a list of what to
switch off would never be complete (the names of filters are free). So none of it is in force. Git says where
the parts of the repository lie, which runs nothing, and refuses where it belongs to somebody else. Then it
works in a git folder of ours, with a configuration of ours, that borrows the objects, the index and the list
of what is ignored. Attributes may name a filter there, but none is defined; objects that a partial clone
left out stay missing, since no remote is known.

A `.git`, or a link in one, may name the repository of somebody else, whose history is not this project's. So
only a git folder is read that is the checkout's own, and of it nothing that lies elsewhere, and HEAD is what
`paths` says. Objects may come from elsewhere (a clone with `--shared` does that): who names a
commit has to know its id.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory

from backstory import git_objects, paths

SECONDS = 10.0  # for each command; then what it has said by now must do
MOST_BYTES = 32_000_000  # of its answer
MOST_ROOTS = 100  # commits without parents; nobody has more by accident

# What a repository may say about its files without naming a program: of the file system it lies on.
SETTINGS = "filemode symlinks ignorecase precomposeunicode trustctime checkstat autocrlf eol excludesfile"
BORROWED = ("index", "shallow", "info/exclude")


@dataclass(frozen=True, slots=True)
class Git:
    """Git in a folder of ours, about the repository that a root is in."""

    command: tuple[str, ...]
    environment: dict[str, str]
    folder: str  # ours
    objects: str
    top: str  # of the work tree
    prefix: str  # from there to the root, with `/` at its end; empty where they are one
    head: str | None

    def say(self, *asked: str, seconds: float | None = None, **environment: str) -> tuple[bytes, int]:
        """What git says and how it ended: below 0 it was cut short, above it failed."""
        inside = environment.get("GIT_WORK_TREE", self.folder)
        return _output((*self.command, *asked), {**self.environment, **environment}, inside, seconds)


def root_commits(root: str, seconds: float) -> tuple[str, ...] | None:
    """The commits without parents in the history of HEAD, in order: what a repository has in common with all
    its clones. None: there are none, git did not get there in time, or the repository does not have them."""
    with opened(root) as git:
        if git is None or git.head is None:
            return None
        out, code = git.say("rev-list", "--max-parents=0", git.head, seconds=seconds)
        found = sorted(set(out.decode("ascii", "replace").split()))
        if code or not 0 < len(found) <= MOST_ROOTS:
            return None
        return tuple(found) if all(git_objects.commit(git.objects, one) for one in found) else None


@contextmanager
def opened(root: str) -> Iterator[Git | None]:
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
        yield Git(
            (*command, *_settings(program, real, at["top"])),
            environment,
            folder,
            at["objects"],
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


def _output(
    command: tuple[str, ...], environment: dict[str, str], folder: str, seconds: float | None = None
) -> tuple[bytes, int]:
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
    timer = threading.Timer(seconds or SECONDS, process.kill)
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
