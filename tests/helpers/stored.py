"""All that a store holds, in a form in which two stores can be compared."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from backstory.store.file.connection import own_tables

# Numbers that say in which order something was stored, when it was read, and a project's random id.
LEFT_OUT = {"row", "number", "thread", "turn", "last_memory", "read_at", "identity", "numbers"}
NUMBERED = {"prompts", "session_summaries", "observation_queue", "spend"}  # their `id` is one of those
INDEXES = ("memories_fts", "line_changes", "sqlite_sequence", "memories_terms")


def contents(data: Path) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of each table, sorted."""
    with closing(sqlite3.connect(data / "backstory.db")) as db:
        roots = dict(db.execute("SELECT id, root FROM projects"))
        found: dict[str, list[tuple[Any, ...]]] = {}
        for table in own_tables(db):
            if table.startswith(INDEXES):
                continue
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            kept = [name for name in columns if name not in LEFT_OUT and (name, table) not in _numbered()]
            query = f"SELECT {', '.join(kept)} FROM {table}"  # noqa: S608  names of our own tables
            rows = db.execute(query).fetchall() if kept else []
            plain = [tuple(roots.get(value, value) for value in row) for row in rows]
            found[table] = sorted(plain, key=repr)
        return found


def _numbered() -> set[tuple[str, str]]:
    return {("id", table) for table in NUMBERED}


def differing(
    one: dict[str, list[Any]], other: dict[str, list[Any]]
) -> dict[str, tuple[list[Any], list[Any]]]:
    """table -> (rows that only the first has, rows that only the second has)"""
    found = {}
    for table in one.keys() | other.keys():
        first, second = one.get(table, []), other.get(table, [])
        only = [row for row in first if row not in second], [row for row in second if row not in first]
        if any(only) or len(first) != len(second):
            found[table] = only
    return found
