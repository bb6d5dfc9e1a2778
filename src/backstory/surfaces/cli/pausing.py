"""What is paused: in the store, and in a file that the hooks look into before they keep anything.

The file `paused` in the data folder has a folder a line, whole and real, or `*` for all of them; it is there
only while something is paused. It follows the store, which has the last word: what a hook keeps all the same,
in a folder that nobody knew, is not stored.
"""

from __future__ import annotations

import os
from contextlib import suppress

from backstory import log
from backstory.errors import BadInput
from backstory.store import projects
from backstory.store.file.connection import Connection, transaction
from backstory.whole_file import whole_file

NAME = "paused"


def pause(home: str, db: Connection, project_id: str | None, now: int) -> None:
    """A project, or with None everything, until `resume`."""
    with transaction(db):
        projects.pause(db, project_id, now)
    refresh(home, db)


def resume(home: str, db: Connection, project_id: str | None, now: int) -> None:
    """A project, or with None whatever was paused."""
    with transaction(db):
        projects.resume(db, project_id, now)
    refresh(home, db)


def refresh(home: str, db: Connection) -> bool:
    """Let the file say what the store says; False where it does not."""
    path = os.path.join(home, NAME)
    lines = sorted({line for project_id, *_ in projects.paused(db) for line in _lines(db, project_id)})
    if lines == _read(path):
        return True
    try:
        if lines:
            with whole_file(path, replaces=True, mode=0o600) as file:
                file.write("".join(f"{line}\n" for line in lines).encode())
        else:
            os.unlink(path)
    except (BadInput, OSError) as error:
        log.write("warning", f"hooks do not know what is paused: {error}")
        return False
    return True


def told(db: Connection, project_id: str | None = None) -> str | None:
    """What is paused and how to go on, in a sentence; with a project, only as far as it concerns that."""
    found = [one for one in projects.paused(db) if project_id is None or one[0] in (None, project_id)]
    if not found:
        return None
    names = ", ".join(name for _, name, _ in found)
    every = any(one[0] is None for one in found) or len(found) > 1
    return f"{names} paused: nothing is kept until `backstory resume{' --all' if every else ''}`"


def _lines(db: Connection, project_id: str | None) -> list[str]:
    if project_id is None:
        return ["*"]
    found = []
    for location, root in projects.folders(db, project_id):
        found += [os.path.realpath(one) for one in (root, *_work_trees(location))]
    return [one for one in found if one.isprintable()]  # a line is a line


def _work_trees(common: str) -> list[str]:
    """The linked work trees of a repository."""
    try:
        names = os.listdir(os.path.join(common, "worktrees"))
    except OSError:
        return []
    found = []
    for name in names:
        with suppress(OSError, UnicodeDecodeError):
            pointer = os.path.join(common, "worktrees", name, "gitdir")
            if os.path.isfile(pointer):
                with open(pointer, encoding="utf-8") as file:
                    found.append(
                        os.path.dirname(os.path.join(common, "worktrees", name, file.readline().strip()))
                    )
    return found


def _read(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()
    except (OSError, UnicodeDecodeError):
        return []
