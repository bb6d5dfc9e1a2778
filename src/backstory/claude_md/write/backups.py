"""Backups of CLAUDE.md files: what somebody else wrote, kept before `writer` replaces it.

The last ten different texts of each file are kept. Where only our own part of it differs from the newest
backup, that one is replaced, else a program that formats the file after each of our writes would flush the
rest:

    backups/claude-md/api-CLAUDE.md-1f0c2a9b7d3e/
        000017-20261116T012345Z.md     the file as it was
        written                        the digest of what we wrote last, and where: that needs no backup
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable

from backstory import paths
from backstory.errors import StoreError
from backstory.store.file import disk, swap

KEPT = 10  # backups of a file


def shelf(data: str, real: str) -> str:
    """The folder with the backups of a file."""
    folder, name = os.path.split(real)
    readable = re.sub(r"[^\w.-]+", "_", f"{os.path.basename(folder)}-{name}", flags=re.ASCII)[:60]
    mark = digest(os.fsencode(real))[:12]
    return os.path.join(data, "backups", "claude-md", f"{readable}-{mark}")


def back_up(shelf: str, text: bytes, theirs: Callable[[bytes], bytes], now: int) -> None:
    try:
        paths.make_folder(shelf)
        names = sorted(name for name in os.listdir(shelf) if re.fullmatch(r"\d{6}-\w+\.md", name))
        # A number, because a clock may be wrong.
        number = int(names[-1][:6]) + 1 if names else 1
        former = None
        if names:
            with open(os.path.join(shelf, names[-1]), "rb") as file:
                newest = file.read()
            if newest == text:
                return
            if theirs(newest) == theirs(text):
                former = os.path.join(shelf, names.pop())
                number -= 1
        made = os.path.join(shelf, "making")
        with open(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if former:
            os.rename(made, former)
            made = former
        os.rename(made, os.path.join(shelf, f"{number:06}-{swap.stamp(now)}.md"))
        swap.sync(shelf)
        for name in names[: 1 - KEPT]:
            os.unlink(os.path.join(shelf, name))
    except OSError as error:
        raise no_backup(shelf, error) from error


def note(shelf: str, real: str, text: bytes) -> None:
    """What will have been written. It comes before: a note that is too new only costs a backup too many."""
    try:
        paths.make_folder(shelf)
        # Always as long as before. A file that is cut first is sent to the disk at once by some systems.
        with open(os.open(_note_in(shelf), os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600), "wb") as file:
            file.write(f"{digest(text)}\n".encode() + os.fsencode(real) + b"\n")
    except OSError as error:
        raise no_backup(shelf, error) from error


def noted(shelf: str) -> str:
    """The digest of what was written last."""
    try:
        with open(_note_in(shelf), "rb") as file:
            return file.readline().decode("ascii", "replace").strip()
    except OSError:
        return ""


def _note_in(shelf: str) -> str:
    return os.path.join(shelf, "written")


def digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def no_backup(place: str, error: OSError) -> StoreError:
    return StoreError(f"no CLAUDE.md is changed without a backup: {disk.sentence(error, place)}")
