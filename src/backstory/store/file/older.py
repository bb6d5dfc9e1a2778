"""Stores of backstory 0.1 as files. It numbered its schema 1 to 12, and ours begins after that; no step leads
from there to here. They are refused with what to do (connection.py), and never changed.
"""

from __future__ import annotations

import os
import sqlite3

from backstory.store.file import backup
from backstory.store.file.connection import expect_ours, oldest, too_old

NOT_TOUCHED = "is of backstory 0.1 and was not looked into"
THEN = "delete it when its memory is imported"


def expect_file_ours(path: str) -> None:
    """As `expect_ours`, of a file that may be damaged."""
    try:
        with backup.read_only(path) as db:
            expect_ours(db, path)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        had_ours = any(_schema(one.path) >= oldest() for one in backup.listed(os.path.dirname(path)))
        if wrote(path) and not had_ours:
            raise too_old(path, _schema(path)) from error


def wrote(path: str) -> bool:
    """Did backstory 0.1 write that, as far as the header tells?"""
    return 0 < _schema(path) < oldest()


def _schema(path: str) -> int:
    return (os.path.isfile(path) and backup.schema_of(path)) or 0


def files(folder: str) -> list[str]:
    """Its stores and backups that are kept in the data folder."""
    found = []
    for place in (os.path.join(folder, "set-aside"), os.path.join(folder, "backups")):
        names = sorted(os.listdir(place)) if os.path.isdir(place) else []
        found += [os.path.join(place, name) for name in names if name.endswith(".db")]
    return [path for path in found if wrote(path)]
