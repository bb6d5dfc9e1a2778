"""The database of claude-mem, read and never written.

Its schema has changed many times, so each table is asked for its columns. What a column is called in the
older ones stands in `ALIASES`; one that is not there is null.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from backstory.errors import BadInput
from backstory.store.file import backup
from backstory.store.file.connection import Connection

Row = dict[str, Any]

TABLES = {
    "sdk_sessions": (
        *("id", "content_session_id", "memory_session_id", "project", "platform_source", "user_prompt"),
        *("started_at_epoch", "completed_at_epoch", "status"),
    ),
    "user_prompts": (
        *("id", "session_db_id", "content_session_id", "prompt_number", "prompt_text", "created_at_epoch"),
    ),
    "observations": (
        *("id", "memory_session_id", "project", "merged_into_project", "type", "title", "subtitle", "text"),
        *("narrative", "facts", "concepts", "files_read", "files_modified", "prompt_number"),
        "created_at_epoch",
    ),
    "session_summaries": (
        *("id", "memory_session_id", "project", "merged_into_project", "request", "investigated", "learned"),
        *("completed", "next_steps", "files_read", "files_edited", "notes", "prompt_number"),
        "created_at_epoch",
    ),
}
ALIASES = {"content_session_id": "claude_session_id", "memory_session_id": "sdk_session_id"}


@contextmanager
def opened(path: str) -> Iterator[Connection]:
    """As of one moment. Where a log is beside it, claude-mem may be at work, and SQLite reads with it; where
    none is, SQLite makes no file of its own there either."""
    try:
        with backup.read_only(path, is_alone=not os.path.exists(f"{path}-wal")) as db:
            db.row_factory = sqlite3.Row
            db.execute("BEGIN")
            schema = {row["name"]: row["type"] for row in db.execute("SELECT name, type FROM sqlite_master")}
            have = {name for name, kind in schema.items() if kind == "table"}
            if strange := [name for name in TABLES if schema.get(name, "table") != "table"]:
                raise BadInput(f"{path}: {strange[0]} is no table, as it is in databases of claude-mem")
            if not {"sdk_sessions", "observations"} <= have:
                what = (
                    "a store of backstory: `backstory backup restore` takes one"
                    if "memories" in have
                    else "none"
                )
                raise BadInput(f"{path} is no database of claude-mem but {what}; name its claude-mem.db")
            yield db
    except sqlite3.DatabaseError as error:
        raise BadInput(f"{path} cannot be read ({error}); stop claude-mem's worker and try again") from error


def rows(db: Connection, table: str, where: str = "", value: object = None) -> Iterator[Row]:
    """The rows of a table in the order of their ids, with every column of TABLES. `where` is a column that
    must have the value; no row has None."""
    have = {row["name"] for row in db.execute(f"PRAGMA table_info({table})")}
    named = {name: name if name in have else ALIASES.get(name, "") for name in TABLES[table]}
    if not have or (where and named[where] not in have):
        return
    columns = ", ".join(f"{old if old in have else 'NULL'} AS {name}" for name, old in named.items())
    condition = f"WHERE {named[where]} = ?" if where else ""
    for row in db.execute(
        f"SELECT {columns} FROM {table} {condition} ORDER BY id", (value,) if where else ()
    ):
        yield dict(row)


def has(db: Connection, table: str, column: str) -> bool:
    return any(row["name"] == column for row in db.execute(f"PRAGMA table_info({table})"))
