"""What is paused: in the store, and in the file that hooks read before they keep anything (paused.py).

The file follows the store, which has the last word: what a hook spools all the same, in a folder that the
store did not know when the project was paused, is not stored.
"""

from __future__ import annotations

import os
from contextlib import suppress

from backstory import log, paused
from backstory.errors import BadInput
from backstory.store import projects
from backstory.store.file.connection import Connection, transaction
from backstory.whole_file import whole_file


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
    path = paused.path(home)
    lines = sorted({line for project_id, *_ in projects.paused(db) for line in _lines(db, project_id)})
    if lines == paused.folders(home):
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


def sentence(db: Connection, project_id: str | None = None) -> str | None:
    """What is paused and how to go on; with a project, only as far as it concerns that."""
    pauses = [pause for pause in projects.paused(db) if project_id is None or pause[0] in (None, project_id)]
    if not pauses:
        return None
    names = ", ".join(name for _, name, _ in pauses)
    every = any(paused_id is None for paused_id, *_ in pauses) or len(pauses) > 1
    return f"{names} paused: nothing is kept until `backstory resume{' --all' if every else ''}`"


def _lines(db: Connection, project_id: str | None) -> list[str]:
    if project_id is None:
        return ["*"]
    folders = []
    for location, root in projects.folders(db, project_id):
        folders += [os.path.realpath(folder) for folder in (root, *_work_trees(location))]
    return [folder for folder in folders if folder.isprintable()]  # a line break would be two folders


def _work_trees(common: str) -> list[str]:
    """The linked work trees of a repository."""
    try:
        names = os.listdir(os.path.join(common, "worktrees"))
    except OSError:
        return []
    folders = []
    for name in names:
        linked = os.path.join(common, "worktrees", name)
        pointer = os.path.join(linked, "gitdir")
        with suppress(OSError, UnicodeDecodeError):
            if os.path.isfile(pointer):
                with open(pointer, encoding="utf-8") as file:
                    folders.append(os.path.dirname(os.path.join(linked, file.readline().strip())))
    return folders
