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
class Line:
    """How the rows of a table stand in an export: as lines of a type, or (`session.prompts`) inside the lines
    of what owns them. Left out are columns, with the reason; numbers of this store, and what is computed from
    a text, are made anew on the way in."""

    name: str
    numbers: tuple[str, ...] = ()  # of this store's own
    computed: tuple[str, ...] = ()  # from the texts of the row
    left_out: Mapping[str, str] = field(default_factory=dict)
    since: str = ""  # SQL: it came or changed since then; '': there is no telling
    asked: str = ""  # SQL: it says what was asked, which may be left out
    newer: tuple[str, ...] = ()  # the columns that say which of two versions is the newer one
    is_one: bool = False  # inside: one or none, and no list

    @property
    def outside(self) -> str:
        """The type of the lines that it stands in."""
        return self.name.partition(".")[0]

    @property
    def inside(self) -> str:
        """The field that it is of its line; '': it is the line."""
        return self.name.partition(".")[2]


@dataclass(frozen=True, slots=True)
class Family:
    table: str
    line: Line | str  # a text: why it is not exported
    hidden: str = ""  # the column with the moment at which a row was forgotten; '': it has none of its own
    changed: str = ""  # the column with the time of its last change: to be hidden is one, and to come back
    at: str = ""  # the column with the time at which it happened
    looked: tuple[str, ...] = ()  # the columns in which a text is looked for
    owners: Mapping[str, str] = field(default_factory=dict)  # column -> table, beside the schema's references
    with_project: bool = False  # it cannot be hidden: erased with all of its project, and not before
    names: tuple[str, ...] = ()  # texts that say which it is, as ids do: stored as they are, never redacted
    numbered: bool = False  # its rows are of the numbers of their project, which search looks at as a range


FAMILIES: list[Family] = [  # lines stand in a file in this order
    Family(
        "projects",
        Line("project", ("number", "last_memory"), left_out={"identity": "the id again"}),
        names=("name", "root", "roots", "remote"),
    ),
    Family("checkouts", Line("checkout"), names=("root", "mark")),
    Family("pauses", "when hooks of this machine were to keep nothing; a project says that it is paused now"),
    Family(
        "sessions",  # hidden by rows of forgotten_sessions
        Line(
            "session",
            ("number",),
            # It comes with what is exported of it.
            since="last_event_at >= :since OR EXISTS (SELECT 1 FROM memories m"
            " WHERE m.session_id = sessions.id AND m.updated_at >= :since)",
            newer=("last_event_at",),
        ),
        at="last_event_at",
        names=("branch", "cwd"),
    ),
    Family(
        "prompts",
        Line("session.prompts", ("id",), asked="1"),
        hidden="forgotten_at",
        at="created_at",
        looked=("prompt",),
    ),
    Family("forgotten_sessions", Line("session.forgotten")),
    Family(
        "session_summaries",
        Line(
            "session.summary_fields",
            ("id",),
            left_out={"project_id": "its session has it"},
            newer=("updated_at_epoch",),
            is_one=True,
        ),
    ),
    Family("events", "which events of this machine's hooks were stored; elsewhere they never come again"),
    Family("transcripts", "which files of this machine were read"),
    Family("transcript_entries", "and what of them"),
    Family(
        "memories",
        Line(
            "memory",
            ("row", "thread"),
            ("content_hash", "simhash", "words", "question", "terms"),
            {"is_deleted": "deleted_at says it"},
            # It comes with the session whose summary it is.
            since="updated_at >= :since OR id IN (SELECT memory_id FROM session_summaries"
            " WHERE session_id IN temp.exported_sessions)",
            asked="kind = 'turn'",
            newer=("updated_at", "last_accessed"),
        ),
        hidden="deleted_at",
        changed="updated_at",
        at="created_at",
        looked=("title", "content"),
        numbered=True,
    ),
    Family(
        "turns",
        Line("memory.turn_fields", left_out={"session_id": "its memory has it"}, is_one=True),
        at="ended_at",
        looked=("record",),
    ),
    Family("turn_pieces", "made anew from the record of the turn", numbered=True),
    Family("edited_files", "made anew from the files of the turn"),
    Family("session_memories", Line("memory.uses"), at="created_at"),
    Family(
        "archived_memories",
        Line(
            "archived",
            left_out={"memory": "its fields stand in the line, as those of a memory"},
            since="archived_at >= :since",
        ),
    ),
    Family("memory_relationships", Line("relation")),
    Family(
        "documents",
        Line("document", ("number",), since="updated_at >= :since", newer=("updated_at",)),
        with_project=True,
        names=("source_path",),
    ),
    Family(
        "document_chunks",
        Line("document.chunks", ("row", "thread"), ("words", "terms")),
        looked=("heading", "content"),
        numbered=True,
    ),
    Family(
        "docmem_nodes",
        Line(
            "node",
            ("row",),
            ("token_count", "hash", "size", "words", "terms"),
            # Of a tree that changed all nodes: it is taken in as a whole.
            since="EXISTS (SELECT 1 FROM docmem_nodes o WHERE o.project = docmem_nodes.project"
            " AND o.root_id = docmem_nodes.root_id AND o.updated_at >= :since)",
        ),
        looked=("context_name", "text"),
        with_project=True,
        numbered=True,
    ),
    Family("docmem_servers", "running servers of this machine", names=("folder",)),
    Family("docmem_views", "what they show"),
    Family("models", "which embedders made the vectors"),
    Family("vectors", "made anew from the text, by whichever embedder is set"),
    Family("line_changes", "what running processes must read again"),
    Family(
        "observation_queue",
        "what waits for synthesis, and is gone some days after",
        hidden="forgotten_at",
        at="created_at_epoch",
        looked=("tool_input", "tool_output"),
    ),
    Family("spend", "what this machine paid for synthesis"),
    Family(
        "tellings",
        "what models were told on this machine",
        at="at",
        looked=("about", "text"),
        owners={"session_id": "sessions"},
        with_project=True,
    ),
    Family("told_memories", "and which memories that was"),
    Family("forgettings", "what can be undone here; each memory says that it is forgotten"),
    Family("erased_spans", "of which events nothing may be stored here"),
    Family("retention_runs", "what this store forgot by itself"),
    Family("claude_files", "CLAUDE.md files of this machine", names=("place",)),
    Family("claude_sections", "what was written into them last"),
    Family("claude_texts", "and before"),
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


def key(db: Connection, table: str) -> list[str]:
    """The columns by which a row is known: its id, or its primary key."""
    rows = tuples(db).execute("SELECT name, pk FROM pragma_table_info(?) ORDER BY pk", (table,)).fetchall()
    return ["id"] if ("id", 0) in rows else [name for name, place in rows if place]


def project_of(db: Connection, table: str, alias: str) -> str:
    """SQL for the id of the project that a row is of: its own, or that of its session."""
    for column, its in owners(db, table, "projects"):
        own = f"{alias}.{column}"
        return own if its == "id" else f"(SELECT id FROM projects WHERE {its} = {own})"
    for column, _ in owners(db, table, "sessions"):
        return f"(SELECT project_id FROM sessions WHERE id = {alias}.{column})"
    return "NULL"


def has_text(family: Family, alias: str) -> str:
    """SQL: is the text that is looked for in one of its columns? See `look_for` in store/forgetting.py."""
    columns = ", ".join(f"{alias}.{column}" for column in family.looked)
    return f"has_text({columns})" if columns else "0"
