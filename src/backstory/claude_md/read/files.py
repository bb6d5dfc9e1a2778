"""The files of a project, as git would list them, without what others wrote and what tools made."""

from __future__ import annotations

import math
import os
import re
import stat
import time
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from itertools import islice

from backstory import paths
from backstory.claude_md.read.ignore import Rules

MOST = 200_000  # files and folders; a project beyond that is not read to the end
DEEPEST = 64  # folders in each other
SECONDS = 20.0  # a hundred thousand files take two; what is hostile could take hours

VENDORED = frozenset(
    b"""node_modules bower_components jspm_packages third_party third-party thirdparty 3rdparty _vendor Pods
    Carthage .venv venv .virtualenv site-packages .tox .nox .eggs __pycache__ .mypy_cache .pytest_cache
    .ruff_cache .gradle .bundle .terraform .next .nuxt .svelte-kit .yarn .pnpm-store _build htmlcov
    .git .hg .svn .bzr""".split()
)
OF_OTHERS = frozenset(b"third_party third-party thirdparty 3rdparty _vendor vendor Pods Carthage".split())
AT_THE_TOP = frozenset((b"debian", b".pc"))  # what a distribution added
OUTPUT = frozenset((b"dist", b"build", b"target"))  # where a manifest stands beside them
VENDORING = frozenset((b"go.mod", b"composer.json", b"Gemfile", b"package.json"))  # beside a vendor/
RELEASED = re.compile(rb"[a-z][\w.-]*?-v?\d+\.\d+\.\d+(?:[.-](?:dist|min))?", re.IGNORECASE)
MADE = frozenset((b"pyvenv.cfg", b"CACHEDIR.TAG"))  # a folder with one of these can be made again
MANIFESTS = frozenset(
    b"""package.json pyproject.toml setup.py setup.cfg Cargo.toml go.mod pom.xml build.gradle
    build.gradle.kts composer.json Gemfile CMakeLists.txt""".split()
)


@dataclass(frozen=True, slots=True)
class File:
    path: str  # from the root, with `/`; bytes that are no UTF-8 are kept as Python keeps them
    size: int


class Deadline:
    """When files are no longer read, and whether that left something out."""

    __slots__ = ("at", "is_missed")

    def __init__(self, at: float = math.inf) -> None:
        self.at = at
        self.is_missed = False

    def is_over(self) -> bool:
        """For who would go on if it were not."""
        is_over = time.monotonic() > self.at
        self.is_missed = self.is_missed or is_over
        return is_over


@dataclass(frozen=True, slots=True, eq=False)
class ProjectFiles:
    root: str
    files: tuple[File, ...]  # sorted by path
    whole: bool = True  # False where there was more than we look at
    vendored: tuple[
        str, ...
    ] = ()  # folders of other people's code that git has, and that are not among the files
    deadline: Deadline = field(default_factory=Deadline)

    def text(self, path: str, most: int = 1_000_000) -> str | None:
        """What a file says; None where it is no plain file inside the root, too large, not readable, or
        the deadline is over."""
        if self.deadline.is_over():
            return None
        real = os.path.realpath(os.path.join(self.root, path))
        if not real.startswith(os.path.join(self.root, "")):
            return None
        content = read(real, most + 1)
        if content is None or len(content) > most:
            return None
        return content.decode("utf-8-sig", "replace")

    def without(self, folders: Collection[str]) -> ProjectFiles:
        """All of it but what is in these folders; itself where there are none."""
        starts = tuple(folder.rstrip("/") + "/" for folder in folders)
        if not starts:
            return self
        files = tuple(file for file in self.files if not file.path.startswith(starts))
        return replace(self, files=files)

    def below(self, folder: str) -> ProjectFiles:
        """The part of it in a folder, seen from there."""
        start = folder.rstrip("/") + "/"
        files = (
            File(file.path[len(start) :], file.size) for file in self.files if file.path.startswith(start)
        )
        root = os.path.join(self.root, folder.rstrip("/"))
        return replace(self, root=root, files=tuple(files), vendored=())


def read(path: str | bytes, most: int) -> bytes | None:
    """The beginning of a plain file. A pipe of that name keeps nobody waiting."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            return None
        most = min(most, status.st_size)
        content = os.read(file, most)
        while len(content) < most and (more := os.read(file, most - len(content))):
            content += more
    except OSError:
        return None
    finally:
        os.close(file)
    return content


def walk(root: str) -> ProjectFiles:
    """The files below a folder. Links are not followed; what cannot be read is left out."""
    top = os.path.join(os.fsencode(os.path.realpath(root)), b"")
    in_git, base, chain = _above(top)
    files: list[File] = []
    vendored: list[str] = []
    left = MOST
    whole = True
    until = time.monotonic() + SECONDS
    waiting = deque([(b"", chain)])  # from the top down: a list that is cut keeps its manifests
    while waiting and left and time.monotonic() < until:
        folder, chain = waiting.popleft()
        try:
            with os.scandir(top + folder) as found:
                entries = {entry.name: entry for entry in islice(found, left)}
                cut = next(found, None) is not None
        except OSError as error:
            whole = whole and isinstance(error, FileNotFoundError | PermissionError)
            continue
        if folder and (not MADE.isdisjoint(entries) or (in_git and b".git" in entries)):
            continue  # a cache, a virtual environment, a repository of its own
        left -= len(entries)
        whole = whole and not cut
        if b".gitignore" in entries or cut:
            chain = _with(chain, base + folder, top + folder + b".gitignore")
        unwanted = _unwanted(top, folder, entries)
        others = (name for name in OF_OTHERS & unwanted if name in entries)
        vendored += [
            os.fsdecode(folder + name)
            for name in others
            if not _ignored(chain, base + folder + name, name, folder=True)
        ]
        for name, entry in entries.items():
            path = folder + name
            if time.monotonic() > until:
                whole = False
                break
            try:
                is_folder = entry.is_dir(follow_symlinks=False)
                if (is_folder and name in unwanted) or _ignored(chain, base + path, name, folder=is_folder):
                    continue
                if is_folder and path.count(b"/") >= DEEPEST:
                    whole = False
                elif is_folder:
                    waiting.append((path + b"/", chain))
                elif entry.is_file(follow_symlinks=False):
                    files.append(File(os.fsdecode(path), entry.stat(follow_symlinks=False).st_size))
            except OSError:
                continue  # gone meanwhile
    files.sort(key=lambda file: file.path)
    return ProjectFiles(
        os.fsdecode(top[:-1]) or "/", tuple(files), whole and not waiting, tuple(sorted(vendored))
    )


def _unwanted(top: bytes, folder: bytes, names: Collection[bytes]) -> frozenset[bytes]:
    unwanted = VENDORED
    if folder:  # a release of somebody else's: bootstrap-4.3.1-dist
        unwanted |= {name for name in names if RELEASED.fullmatch(name)}
    if not folder or not MANIFESTS.isdisjoint(names):
        unwanted |= OUTPUT
    if not folder:
        unwanted |= AT_THE_TOP
    if b"vendor" in names and (not folder or not VENDORING.isdisjoint(names)):
        # A package of that name is the project's own: there are those that deal with vendors.
        is_package = os.path.lexists(top + folder + b"vendor/__init__.py")
        is_member = b"vendor/" in (read(top + folder + b"Cargo.toml", 100_000) or b"")
        unwanted |= set() if is_package or is_member else {b"vendor"}
    return unwanted


# How long the path of the file's folder is, and what the file says; the nearest folder's comes last.
_Chain = tuple[tuple[int, Rules], ...]


def _above(top: bytes) -> tuple[bool, bytes, _Chain]:
    """Whether a folder is in git, its path from the top of the work tree, and the rules that hold there.

    Somebody who asks about an ignored folder wants to know about it: then nothing above counts.
    """
    checkout, git, common = paths.git_folders(os.fsdecode(top))
    if git is None:
        return False, b"", ()
    work = os.path.join(os.fsencode(checkout), b"")
    chain = _with((), b"", os.path.join(os.fsencode(common), b"info", b"exclude")) if common else ()
    base = b""
    for name in top[len(work) :].split(b"/")[:-1]:
        chain = _with(chain, base, work + base + b".gitignore")
        if _ignored(chain, base + name, name, folder=True):
            return True, b"", ()
        base += name + b"/"
    return True, base, chain


def _with(chain: _Chain, folder: bytes, path: bytes) -> _Chain:
    content = read(path, 64_000) or b""  # long ones are cut after a line, and take their time even so
    rules = Rules(content if len(content) < 64_000 else content[: content.rfind(b"\n") + 1])
    return (*chain, (len(folder), rules)) if rules else chain


def _ignored(chain: _Chain, path: bytes, name: bytes, *, folder: bool) -> bool:
    for length, rules in reversed(chain):
        verdict = rules.ignored(path[length:], name, folder)
        if verdict is not None:
            return verdict
    return False
