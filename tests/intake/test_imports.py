"""An export taken in again: the same store, or nothing at all."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from backstory.recall.answer import answer as search
from backstory.recall.index import Index
from backstory.store import exchange, life
from backstory.store.families import FAMILIES
from backstory.store.file.connection import transaction
from tests.helpers.chaos import NOW
from tests.helpers.rich_store import (
    Json,
    assert_sound,
    dump,
    exported,
    lines_of,
    new_store,
    taken_in,
    written,
)
from tests.helpers.trees import assert_trees_sound


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    db = new_store(tmp_path, "empty")
    yield db
    db.close()


def test_an_export_that_is_taken_in_is_exported_as_the_same_bytes(
    full: sqlite3.Connection, empty: sqlite3.Connection
) -> None:
    raw = exported(full)
    done = taken_in(empty, raw)
    assert done.redacted == 0
    assert exported(empty) == raw
    assert {line["type"] for line in lines_of(raw)} == set(exchange.types())
    assert_sound(empty)
    assert_trees_sound(empty)


def test_what_is_computed_is_what_it_was(full: sqlite3.Connection, empty: sqlite3.Connection) -> None:
    taken_in(empty, exported(full))
    for table, columns in {
        "memories": "id, content_hash, simhash, words, question, terms, thread",
        "docmem_nodes": "id, text, token_count, hash, size, words, terms",
        "document_chunks": "document_id, content, words, terms",
        "turn_pieces": "part, text, words, terms",
        "turns": "session_id, state, record",
        "session_summaries": "session_id, project_id, memory_id",
    }.items():
        query = f"SELECT {columns} FROM {table} ORDER BY {columns}"  # noqa: S608
        assert [*map(tuple, empty.execute(query))] == [*map(tuple, full.execute(query))] != [], table


def test_a_turn_that_lost_its_record_is_taken_in_again(
    full: sqlite3.Connection, empty: sqlite3.Connection
) -> None:
    """As a recovery may leave it."""
    with transaction(full):
        full.execute("DELETE FROM turns")
    taken_in(empty, exported(full))
    assert empty.execute("SELECT count(*) FROM turns WHERE state = 'complete'").fetchone()[0] > 0


def test_what_was_imported_is_found(
    full: sqlite3.Connection, empty: sqlite3.Connection, tmp_path: Path
) -> None:
    taken_in(empty, exported(full))
    for query in ("walrus sleeps invoice", "rounded twice"):
        hits = [
            [hit.memory.id for hit in search(Index(None), db, str(tmp_path / "api"), query, now=NOW).hits]
            for db in (full, empty)
        ]
        assert hits[0] == hits[1] != []


def test_an_archived_trace_that_was_imported_comes_back(
    full: sqlite3.Connection, empty: sqlite3.Connection
) -> None:
    taken_in(empty, exported(full))
    (known,) = empty.execute("SELECT id FROM archived_memories").fetchone()
    for db in (full, empty):
        with transaction(db):
            life.restore(db, known, None, NOW + 99)
    assert exported(empty) == exported(full)
    assert_sound(empty)


def test_importing_twice_changes_nothing(full: sqlite3.Connection, empty: sqlite3.Connection) -> None:
    raw = exported(full)
    taken_in(empty, raw)
    before = dump(empty)
    done = taken_in(empty, raw)
    assert dump(empty) == before
    assert {what for counts in done.counts.values() for what in counts} == {exchange.KNOWN}
    taken_in(full, raw)
    assert exported(full) == raw


def test_a_dry_run_counts_what_an_import_does_and_writes_nothing(
    full: sqlite3.Connection, empty: sqlite3.Connection
) -> None:
    raw = exported(full)
    before = dump(empty)
    would = taken_in(empty, raw, dry_run=True)
    assert dump(empty) == before
    assert would.counts == taken_in(empty, raw).counts
    assert taken_in(empty, raw, dry_run=True).counts == taken_in(empty, raw).counts


def of_version_1(line: Json) -> Json:
    """The line as a backstory wrote it that noted no turn beside traces and prompts."""
    line.pop("turn", None)
    if "turn_fields" in line:
        line["turn"] = line.pop("turn_fields")
    for prompt in line.get("prompts", ()):
        del prompt["turn"]
    return line


def test_a_file_of_version_1_is_read_and_its_traces_and_prompts_get_their_turns_by_the_times(
    full: sqlite3.Connection, empty: sqlite3.Connection
) -> None:
    raw = exported(full)
    assert {line["type"] for line in lines_of(raw) if line.get("turn")} == {"memory", "archived"}
    assert any(prompt["turn"] for line in lines_of(raw) for prompt in line.get("prompts", ()))
    old = written(map(of_version_1, lines_of(raw))).replace(b'"version":2', b'"version":1', 1)
    *lines, end = old.splitlines(keepends=True)
    last = json.loads(end)
    del last["sha256"]
    done = taken_in(empty, b"".join([*lines, json.dumps(last).encode()]))
    assert done.redacted == 0
    assert exported(empty) == raw
    assert_sound(empty)


def test_every_column_of_the_schema_is_exported_or_left_out_with_a_reason(db: sqlite3.Connection) -> None:
    parts = exchange.parts(db)
    for family in FAMILIES:
        if isinstance(family.line, str):
            assert family.line, family.table
            continue
        part = parts[family.line.name]
        schema = {row["name"] for row in db.execute(f"PRAGMA table_xinfo({family.table})")}
        left_out = {*part.line.numbers, *part.line.computed, *part.line.left_out, part.owner[0]} - {""}
        assert left_out <= schema, family.table
        exported = {column.name for column in part.columns}
        renamed = {"project"} if family.table == "docmem_nodes" else set()  # its id is exported
        assert schema - left_out - renamed <= exported, family.table
        assert all(part.line.left_out.values())


def test_the_fields_of_version_2_are_these(db: sqlite3.Connection) -> None:
    """A migration that adds a column must say what an older file without it means: raise VERSION, and let
    the reader fill it in."""
    told = {
        name: " ".join(column.name for column in part.columns) for name, part in exchange.parts(db).items()
    }
    owned = "id project_id session_id turn "
    memory = (
        f"{owned}kind sector tier source action times title content tags concepts files"
        " hashes importance salience access_count created_at updated_at last_accessed valid_from valid_until"
        " deleted_at author"
    )
    assert exchange.VERSION == 2
    assert told == {
        "project": "id name root roots remote created_at paused_at",
        "checkout": "path project_id root mark said_by seen_at",
        "session": "id project_id cwd user_prompt branch head status attended synthesizer started_at"
        " last_event_at opened_at ended_at summary",
        "session.prompts": "turn prompt created_at forgotten_at",
        "session.forgotten": "at",
        "session.summary_fields": "request investigated learned completed next_steps files_read files_edited"
        " notes summary made_by memory_id created_at_epoch updated_at_epoch",
        "memory": memory,
        "memory.turn_fields": "state started_at ended_at left_open_at record",
        "memory.uses": "session_id usage_type created_at",
        "archived": f"id project_id session_id turn archived_at {memory.removeprefix(owned)}",
        "relation": "source_id target_id relationship_type said_by confidence created_at",
        "document": "id project_id title source_path source_url kind checksum created_at updated_at",
        "document.chunks": "heading content",
        "node": "project_id id parent_id root_id text order_value context_type context_name context_value"
        " readonly created_at updated_at",
    }
