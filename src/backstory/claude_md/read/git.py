"""What git knows of a project: its last commits, what changed since a moment, which variables code reads.

How git is run, and why so carefully, is in backstory/git.py.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress

from backstory import log, paths
from backstory.claude_md.read import files, history, languages
from backstory.git import Git, opened
from backstory.model import Insights

MOST_ASKED = 500  # paths in one command
MOST_VERSIONS = 50  # of a file
LARGEST_VERSION = 1_000_000  # bytes
SECONDS_FOR_VERSIONS = 3.0
MOST_VARIABLES, SECONDS_FOR_VARIABLES = 40, 2.0
VARIABLE = re.compile(r"[A-Za-z_]\w{0,60}", re.ASCII)
READING = ('"{}"', "'{}'", "env.{}")
SLACK_MS = 20  # a file's time comes from a clock that ticks in such steps
FIELDS = ("%H", "%h", "%cs", "%an", "%ae", "%s", "%b")


def insights(root: str, most: int = 1_000) -> Insights | None:
    """What the last commits say about a project. None: there are none, or no git to ask."""
    with opened(root) as git:
        commits = _commits(git, most) if git and git.head else []
    real = os.path.realpath(root)
    return history.insights(commits, lambda path: _is_written(os.path.join(real, path))) if commits else None


def changed_since(root: str, head: str | None, since: int) -> list[str] | None:
    """The files that differ from those of an earlier commit, or were touched since a time (in ms), whoever
    did it: committed, uncommitted, new, deleted. None: this is no work tree, or there is no git.

    The time decides where the commit is not known (any more), and about what was there already: a file that
    nobody touched since is the same as it was, though it may be committed only now.
    """
    with opened(root) as git:
        if git is None:
            return None
        found = {*_committed(git, head, since), *_uncommitted(git)}
    whole = (os.path.join(root, name) for name in found)
    return sorted(path for path in whole if touched(path) >= since - SLACK_MS)


def ignored(root: str, names: Sequence[str]) -> set[str]:
    """Those of these paths, as seen from the root, that git would not list if they were there."""
    if not names:
        return set()
    with opened(root) as git:
        return set(_ignored(git, names)) if git else set()


def variables_read(root: str, names: Collection[str]) -> set[str] | None:
    """Those of these variables that code of the project names as it would to read them. Empty where git
    cannot tell; None where that would take too long."""
    names = [name for name in sorted(names) if VARIABLE.fullmatch(name)][:MOST_VARIABLES]
    asked = {form.format(name): name for name in names for form in READING}
    if not asked:
        return set()
    with opened(root) as git:
        if git is None:
            return set()
        words = [option for word in asked for option in ("-e", word)]
        command = ("grep", "-I", "-z", "-o", "-w", "-F", "--full-name", *words, "--", *_below(git))
        out, code = git.say(*command, seconds=SECONDS_FOR_VARIABLES, GIT_WORK_TREE=git.top)
        if code < 0:
            return None
    hits = (os.fsdecode(line).partition("\0") for line in out.split(b"\n"))
    return {asked[word] for path, _, word in hits if word in asked and languages.language_of(path)}


def versions(path: str) -> Iterator[bytes]:
    """What a file said before: both sides of a merge that is under way, and what was committed, newest
    first."""
    with opened(os.path.dirname(path)) as git:
        if git is None:
            return
        place = git.prefix + os.path.basename(path)
        asked = [f":{stage}:{place}" for stage in (2, 3, 1)]
        if git.head:
            out, _ = git.say("rev-list", f"-n{MOST_VERSIONS}", git.head, "--", place)
            asked += [f"{commit}:{place}" for commit in out.decode("ascii", "replace").split()]
        until = time.monotonic() + SECONDS_FOR_VERSIONS
        for name in asked:
            if time.monotonic() > until:
                return
            text, code = git.say("cat-file", "blob", name)
            if code == 0 and len(text) <= LARGEST_VERSION:
                yield text


def _is_written(path: str) -> bool:
    """Whether a file is there, and not made by a program."""
    head = files.read(path, 2_000)
    return head is not None and not languages.generated(head)


def _commits(git: Git, most: int) -> list[history.Commit]:
    """The last commits below the root that are no merges, newest first."""
    asked = ["log", "-z", f"-n{most}", "--no-merges", "--no-mailmap", "--encoding=UTF-8"]
    asked += [f"--format={'%x00'.join(FIELDS)}", "--name-status"]
    # Renames are found by reading files, and a partial clone does not have them all.
    for renames in ("-M", "--no-renames"):
        out, code = git.say(*asked, renames, "-l200", str(git.head), "--", *_below(git))
        commits = list(history.parse(out, git.prefix))
        if code <= 0:
            break
    return commits if code == 0 else commits[:-1]  # the last one may have been cut


def _committed(git: Git, head: str | None, since: int) -> list[str]:
    if git.head is None or head == git.head:
        return []
    asked = ["diff-tree", "-r", "-z", "--name-only", "--no-renames"]
    if head and re.fullmatch("[0-9a-f]{40,64}", head):
        out, code = git.say(*asked, head, git.head, "--", *_below(git))
        if code == 0:
            return _names(git, out)
    # A merge brings what others committed long ago; it is the merge that changed something here.
    asked = ["log", "-z", "--format=", "--name-only", "--no-renames", "--first-parent", "-m"]
    out, _ = git.say(*asked, f"--max-age={since // 1000}", git.head, "--", *_below(git))
    return _names(git, out)


def _uncommitted(git: Git) -> list[str]:
    """What differs from the last commit in the work tree.

    A submodule is a repository of its own, with a configuration of its own: nobody looks inside.
    """
    asked = ["status", "--porcelain", "-z", "--untracked-files=all", "--no-renames"]
    asked += ["--ignore-submodules=all", "--", *_below(git)]
    out, code = git.say(*asked, GIT_WORK_TREE=git.top)
    if code:
        log.write("warning", f"git could not tell all that changed in {paths.text(git.top)}")
    return _names(git, b"\0".join(entry[3:] for entry in out.split(b"\0")))


def _ignored(git: Git, names: Sequence[str]) -> list[str]:
    # One that leads out would make it refuse them all.
    below = f"./{git.prefix}"
    asked = [below + name for name in names[:MOST_ASKED] if ".." not in name and "\0" not in name]
    command = ("--no-literal-pathspecs", "-c", "core.quotePath=false", "check-ignore", "--no-index", "--")
    out, _ = git.say(*command, *asked, GIT_WORK_TREE=git.top)
    return [os.fsdecode(name)[len(below) :] for name in out.split(b"\n") if name]


def _names(git: Git, out: bytes) -> list[str]:
    """The paths in an answer, from the root."""
    names = (os.fsdecode(name) for name in out.split(b"\0")[:-1] if name)
    return [name[len(git.prefix) :].rstrip("/") for name in names if name.startswith(git.prefix)]


def _below(git: Git) -> list[str]:
    return [git.prefix] if git.prefix else []


def touched(path: str) -> int:
    """When a file last changed, in ms. Of one that is gone: when something last went from its folder."""
    with suppress(OSError):
        status = os.lstat(path)
        return max(status.st_mtime_ns, status.st_ctime_ns) // 1_000_000
    folder = os.path.dirname(path)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return os.stat(folder).st_mtime_ns // 1_000_000
