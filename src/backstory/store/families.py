"""What the store holds: one row for each table, and what is to be known of it beside the schema.

    project ──┬─▶ sessions ──┬─▶ prompts, items of the queue, summary
              │              └─▶ memories ──▶ turns ──▶ pieces; traces, prompts and items that are of a turn
              ├─▶ documents ──▶ chunks
              └─▶ trees, CLAUDE.md files, tellings, ...

What owns a row is said by the references of the schema. `owners` is for those that the schema leaves out,
because the row may be there before its owner, or after it.

Whatever is done to all that belongs to something goes through this list: forgetting and undoing, erasing,
moving to another project, redaction, export and import. A new table is one new row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from backstory.store.file.connection import Connection, tuples


@dataclass(frozen=True, slots=True)
class Family:
    table: str
    hidden: str = ""  # the column with the moment at which a row was forgotten; '': it has none of its own
    changed: str = ""  # the column with the time of its last change: to be hidden is one, and to come back
    at: str = ""  # the column with the time at which it happened
    looked: tuple[str, ...] = ()  # the columns in which a text is looked for
    owners: Mapping[str, str] = field(default_factory=dict)  # column -> table, beside the schema's references
    with_project: bool = False  # it cannot be hidden: erased with all of its project, and not before
    names: tuple[str, ...] = ()  # texts that say which it is, as ids do: stored as they are, never redacted
    numbered: bool = False  # its rows are of the numbers of their project, which search looks at as a range


FAMILIES: list[Family] = [
    Family("projects", names=("name", "root", "roots", "remote")),
    Family("checkouts", names=("root", "mark")),
    Family("pauses"),
    Family("sessions", at="last_event_at", names=("branch", "cwd")),  # hidden by rows of forgotten_sessions
    Family("forgotten_sessions"),
    Family("prompts", hidden="forgotten_at", at="created_at", looked=("prompt",)),
    Family("events"),
    Family("transcripts"),
    Family("transcript_entries"),
    Family(
        "memories",
        hidden="deleted_at",
        changed="updated_at",
        at="created_at",
        looked=("title", "content"),
        numbered=True,
    ),
    Family("turns", at="ended_at", looked=("record",)),
    Family("turn_pieces", numbered=True),
    Family("edited_files"),
    Family("session_memories"),
    Family("memory_relationships"),
    Family("archived_memories"),
    Family("documents", with_project=True, names=("source_path",)),
    Family("document_chunks", looked=("heading", "content"), numbered=True),
    Family("docmem_nodes", with_project=True, looked=("context_name", "text"), numbered=True),
    Family("docmem_servers", names=("folder",)),
    Family("docmem_views"),
    Family("models"),
    Family("vectors"),
    Family("line_changes"),
    Family(
        "observation_queue",
        hidden="forgotten_at",
        at="created_at_epoch",
        looked=("tool_input", "tool_output"),
    ),
    Family("session_summaries"),
    Family("spend"),
    Family(
        "tellings", at="at", looked=("about", "text"), owners={"session_id": "sessions"}, with_project=True
    ),
    Family("told_memories"),
    Family("forgettings"),
    Family("erased_spans"),
    Family("retention_runs"),
    Family("claude_files", names=("place",)),
    Family("claude_sections"),
    Family("claude_texts"),
]


def of(table: str) -> Family:
    return next(family for family in FAMILIES if family.table == table)


def hiding() -> list[Family]:
    """Those whose rows can be forgotten one by one; memories first, because others go with them."""
    return sorted((family for family in FAMILIES if family.hidden), key=lambda one: one.table != "memories")


def owners(db: Connection, table: str, owner: str) -> list[tuple[str, str]]:
    """(column, column of the owner that it has) of each reference from a table to another one."""
    rows = tuples(db).execute(
        'SELECT "from", "to" FROM pragma_foreign_key_list(?1) WHERE "table" = ?2 AND id IN'
        " (SELECT id FROM pragma_foreign_key_list(?1) GROUP BY id HAVING count(*) = 1)",
        (table, owner),
    )
    named = of(table).owners.items()
    return [*rows.fetchall(), *((column, "id") for column, its in named if its == owner)]


def owned(db: Connection, owner: str) -> Iterator[tuple[str, str, str]]:
    """(table, column, column of the owner) of each reference to a table."""
    for family in FAMILIES:
        for column, key in owners(db, family.table, owner):
            yield family.table, column, key


def is_in_key(db: Connection, table: str, column: str) -> bool:
    """Is the column a part of what a row is known by?"""
    rows = db.execute("SELECT 1 FROM pragma_table_info(?) WHERE name = ? AND pk > 0", (table, column))
    return rows.fetchone() is not None


def project_of(db: Connection, table: str, alias: str) -> str:
    """SQL for the id of the project that a row is of: its own, or that of its session."""
    for column, key in owners(db, table, "projects"):
        own = f"{alias}.{column}"
        return own if key == "id" else f"(SELECT id FROM projects WHERE {key} = {own})"
    for column, _ in owners(db, table, "sessions"):
        return f"(SELECT project_id FROM sessions WHERE id = {alias}.{column})"
    return "NULL"


def has_text(family: Family, alias: str) -> str:
    """SQL: is the text that is looked for in one of its columns? See `look_for` in store/forgetting.py."""
    columns = ", ".join(f"{alias}.{column}" for column in family.looked)
    return f"has_text({columns})" if columns else "0"
