"""The files of a project, as git would list them, without what others wrote and what tools made."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from recollect import paths
from recollect.claude_md.ignore import Rules

MOST = 200_000  # files and folders; a tree beyond that is not read to the end

VENDORED = frozenset(
    b"""node_modules bower_components jspm_packages vendor third_party third-party _vendor Pods Carthage
    .venv venv .virtualenv virtualenv site-packages .tox .nox .eggs __pycache__ .mypy_cache .pytest_cache
    .ruff_cache .gradle .bundle .terraform .next .nuxt .svelte-kit .yarn .pnpm-store _build htmlcov
    .git .hg .svn .bzr""".split()
)
AT_THE_TOP = frozenset((b"debian", b".pc"))  # what a distribution added
OUTPUT = frozenset((b"dist", b"build", b"target"))  # where a manifest stands beside them
MADE = frozenset((b"pyvenv.cfg", b"CACHEDIR.TAG"))  # a folder with one of these can be made again
MANIFESTS = frozenset(
    b"""package.json pyproject.toml setup.py setup.cfg Cargo.toml go.mod pom.xml build.gradle
    build.gradle.kts composer.json Gemfile CMakeLists.txt""".split()
)


@dataclass(frozen=True, slots=True)
class File:
    path: str  # from the root, with `/`; bytes that are no UTF-8 are kept as Python keeps them
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    root: str
    files: tuple[File, ...]  # sorted by path
    whole: bool = True  # False where there was more than we look at

    def text(self, path: str, most: int = 1_000_000) -> str | None:
        """What a file says; None where it is no plain file inside the root, too large, or not readable."""
        real = os.path.realpath(os.path.join(self.root, path))
        if not real.startswith(os.path.join(self.root, "")):
            return None
        content = read(real, most + 1)
        if content is None or len(content) > most:
            return None
        return content.decode("utf-8-sig", "replace")


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
        content = os.read(file, min(most, status.st_size + 1))
        while len(content) < most and (more := os.read(file, most - len(content))):
            content += more
    except OSError:
        return None
    finally:
        os.close(file)
    return content


def walk(root: str, progress: Callable[[int], None] | None = None) -> Tree:
    """The files below a folder. Links are not followed; what cannot be read is left out."""
    top = os.fsencode(os.path.realpath(root))
    base, chain = _above(top)
    files: list[File] = []
    seen = 0
    waiting = deque([(b"", chain)])  # from the top down: a tree that is cut keeps its manifests
    while waiting and seen < MOST:
        folder, chain = waiting.popleft()
        try:
            with os.scandir(os.path.join(top, folder)) as found:
                entries = {entry.name: entry for entry in found}
        except OSError:
            continue
        if folder and (not MADE.isdisjoint(entries) or (base is not None and b".git" in entries)):
            continue  # a cache, a virtual environment, a repository of its own
        if b".gitignore" in entries:
            chain = _with(chain, (base or b"") + folder, os.path.join(top, folder, b".gitignore"))
        output = not folder or not MANIFESTS.isdisjoint(entries)
        for name, entry in entries.items():
            seen += 1
            path = folder + name
            try:
                if entry.is_dir(follow_symlinks=False):
                    if (
                        name in VENDORED
                        or (output and name in OUTPUT)
                        or (not folder and name in AT_THE_TOP)
                        or name.endswith(b".egg-info")
                        or _ignored(chain, (base or b"") + path + b"/", name + b"/")
                    ):
                        continue
                    waiting.append((path + b"/", chain))
                elif entry.is_file(follow_symlinks=False) and not _ignored(chain, (base or b"") + path, name):
                    files.append(File(os.fsdecode(path), entry.stat(follow_symlinks=False).st_size))
            except OSError:
                continue  # gone meanwhile
            if progress and seen % 500 == 0:
                progress(len(files))
    files.sort(key=lambda file: file.path)
    if progress:
        progress(len(files))
    return Tree(os.fsdecode(top), tuple(files), whole=seen < MOST)


# How long the path of the file's folder is, and what the file says; the nearest folder's comes last.
_Chain = tuple[tuple[int, Rules], ...]


def _above(top: bytes) -> tuple[bytes | None, _Chain]:
    """Where a folder lies in its work tree (None outside git), and the rules that hold above it.

    Somebody who asks about an ignored folder wants to know about it: then nothing above counts.
    """
    work = os.fsencode(paths.checkout(os.fsdecode(top)))
    if not os.path.lexists(os.path.join(work, b".git")):
        return None, ()
    git = os.fsencode(paths.place(os.fsdecode(work)).identity)
    chain = _with((), b"", os.path.join(git, b"info", b"exclude"))
    base = b""
    for name in os.path.relpath(top, work).split(b"/") if top != work else ():
        chain = _with(chain, base, os.path.join(work, base, b".gitignore"))
        base += name + b"/"
        if _ignored(chain, base, name + b"/"):
            return b"", ()
    return base, chain


def _with(chain: _Chain, folder: bytes, path: bytes) -> _Chain:
    content = read(path, 1_000_000)
    rules = Rules(content) if content else None
    return (*chain, (len(folder), rules)) if rules else chain


def _ignored(chain: _Chain, path: bytes, name: bytes) -> bool:
    for length, rules in reversed(chain):
        verdict = rules.ignored(path[length:], name)
        if verdict is not None:
            return verdict
    return False
