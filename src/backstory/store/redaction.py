"""Redaction of what is stored already: secrets that came before the table of secrets had their shape.

The schema says what there is: every TEXT column is redacted but for ids, and for names (store/families.py),
so no column of a later migration can be forgotten, and older backups are read as they are. What is computed
from a text (hashes, words, keyword index, vectors) follows it.

First everything is read, without a lock. Then the rows with a secret are read again and rewritten, some at a
time, so that others may write in between: a kill leaves the rest for the next run.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from backstory.blob import digest
from backstory.errors import Damaged
from backstory.gist import tokens
from backstory.memory import terms
from backstory.store import families, nodes, turns
from backstory.store.file import backup
from backstory.store.file.connection import Connection, fts_indexes, own_tables, transaction, unhurried
from backstory.store.keep import wording

Redact = Callable[[str], str]
Values = dict[str, Any]
Pairs = list[tuple[str, str]]  # a text before and after

MARKER = re.compile(r"\[redacted:([a-z-]+)\]")
AROUND = 60  # characters of an excerpt on each side of a marker

# Ids and names say which project, checkout or document it is. They are stored as they are on the way in as
# well: reported, not changed. Nothing refers to the key of an event.
COLUMNS = """
SELECT name, pk, type = 'TEXT' AND NOT hidden AND name <> 'terms' AS is_text,
    name IN (SELECT value FROM json_each(?2)) OR substr(name, -3) = '_id' OR name IN (
        SELECT c.name FROM pragma_index_list(?1) i, pragma_index_info(i.name) c WHERE i."unique"
        UNION SELECT "from" FROM pragma_foreign_key_list(?1)) AND ?1 <> 'events' AS is_name
FROM pragma_table_xinfo(?1) ORDER BY NOT pk, pk, cid"""
ROW_OF_MEMORY = {"turns": "t.row", "turn_pieces": "t.turn"}  # a turn is known by its memory's id


@dataclass(frozen=True, slots=True)
class Finding:
    """A row with something in it that is redacted now."""

    table: str
    key: tuple[Any, ...]
    what: str  # for people: a piece is of a turn, a chunk is of a document
    id: str
    kinds: list[str]
    excerpt: str  # of the redacted text
    is_name: bool  # reported, not changed


@dataclass(frozen=True, slots=True)
class _Table:
    keys: tuple[str, ...]
    texts: list[str]
    names: list[str]  # and ids
    select: str


Tables = dict[str, _Table]


def find(db: Connection, redact: Redact) -> list[Finding]:
    """All rows that `redact` would change. Nothing is written: `db` may be open for reading only."""
    db.row_factory = sqlite3.Row
    findings: list[Finding] = []
    tables = _tables(db)
    for name, table in tables.items():
        for row in map(dict, db.execute(table.select)):
            texts = [(row[text], after) for text, after in _redacted(tables, name, row, redact).items()]
            if name == "documents":
                texts += [(chunk["content"], after) for chunk, after in _chunks(db, row["id"], redact)]
            named = [row[text] for text in table.names if row[text]]
            names = [(text, after) for text in named if (after := redact(text)) != text]
            for pairs, is_name in (texts, False), (names, True):
                if pairs:
                    findings.append(_finding(name, table, row, pairs, redact(str(row["label"])), is_name))
    return findings


def count(path: str, redact: Redact) -> int:
    """How many rows of a backup have something in them that `redact` would change."""
    try:
        with backup.read_only(path) as db:
            return len(find(db, redact))
    except sqlite3.Error as error:
        raise Damaged(f"{path} cannot be read ({error})") from error


def _tables(db: Connection) -> Tables:
    """Turns and documents come first: what is a whole secret there is cut in their pieces and chunks."""
    tables = {}
    named = {family.table: family.names for family in families.FAMILIES}
    for name in own_tables(db):
        columns = db.execute(COLUMNS, (name, json.dumps(named.get(name, ())))).fetchall()
        keys = tuple(column["name"] for column in columns if column["pk"]) or ("rowid",)
        texts = [column["name"] for column in columns if column["is_text"] and not column["is_name"]]
        names = [column["name"] for column in columns if column["is_text"] and column["is_name"]]
        label = f"t.{(*names, *keys)[0]}"
        if name in ROW_OF_MEMORY:
            label = f"(SELECT m.id FROM memories m WHERE m.row = {ROW_OF_MEMORY[name]})"
        hidden = "t.rowid, " if keys == ("rowid",) else ""
        tables[name] = _Table(keys, texts, names, f"SELECT {hidden}t.*, {label} AS label FROM {name} t")
    return dict(sorted(tables.items(), key=lambda table: table[0] not in ("turns", "documents")))


def _finding(name: str, table: _Table, row: Values, pairs: Pairs, label: str, is_name: bool) -> Finding:
    is_turn = name == "turn_pieces" or (name, row.get("kind")) == ("memories", "turn")
    what = "turns" if is_turn else "documents" if name == "document_chunks" else name.replace("_", " ")
    kinds = sorted({kind for pair in pairs for kind in _new_kinds(*pair)})
    after = pairs[0][1]
    marker = after.find(f"[redacted:{_new_kinds(*pairs[0])[0]}]")
    excerpt = after[max(0, marker - AROUND) : marker + 2 * AROUND].strip()
    return Finding(name, tuple(row[key] for key in table.keys), what, label, kinds, excerpt, is_name)


def _new_kinds(before: str, after: str) -> list[str]:
    return list(Counter(MARKER.findall(after)) - Counter(MARKER.findall(before))) or ["secret"]


# --- what a text becomes ------------------------------------------------------------------------------------


def redacted(text: str, redact: Redact) -> str:
    """A text without its secrets. JSON stays JSON of the same shape."""
    try:
        before = json.loads(text) if text.startswith(("{", "[", '"')) else None
        value = _each(before, lambda part: redact(part) if isinstance(part, str) else part, redact)
    except (ValueError, RecursionError):
        before = None
    if before is None:
        return redact(text)
    apart = _compact(value)
    together = redact(apart)

    def replaced(part: Any, follows: str = r"(?![\w.:])") -> Any:
        """Some values, and names, show only beside others what they are."""
        same = re.compile(rf"(?<![\w.]){re.escape(_compact(part))}{follows}")
        is_there = len(same.findall(apart)) == len(same.findall(together))
        return part if is_there else f"[redacted:{_new_kinds(apart, together)[0]}]"

    if together != apart:
        value = _each(value, replaced, lambda name: replaced(name, ":"))
    end = text[len(text.rstrip()) :]
    return text if value == before else _compact(value, ensure_ascii="\\u" in text) + end


def _each(value: Any, change: Callable[[Any], Any], rename: Callable[[str], Any]) -> Any:
    if isinstance(value, list):
        return [_each(part, change, rename) for part in value]
    if isinstance(value, dict):
        return {rename(name): _each(part, change, rename) for name, part in value.items()}
    return change(value)


def _compact(value: Any, ensure_ascii: bool = False) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, separators=(",", ":"))


def redacted_parts(parts: Sequence[str], redact: Redact) -> list[str]:
    """Parts of one text. Of a secret that is in more than one of them, whole lines are replaced."""
    whole = "\n".join(parts)
    after = redact(whole)
    changed = Counter(whole.split("\n")) - Counter(after.split("\n"))
    marker = f"[redacted:{_new_kinds(whole, after)[0]}]"
    new = {line: alone if (alone := redact(line)) != line else marker for line in changed if line.strip()}
    texts = ("\n".join(new.get(line, line) for line in part.split("\n")) for part in parts)
    return [redact(re.sub(rf"({re.escape(marker)})(\n\1)+", marker, text)) for text in texts]


def _chunks(db: Connection, document_id: str, redact: Redact) -> list[tuple[Values, str]]:
    """The chunks of a document that change, each with its new content."""
    select = "SELECT * FROM document_chunks WHERE document_id = ? ORDER BY row"
    chunks = [dict(row) for row in db.execute(select, (document_id,))]
    contents = redacted_parts([chunk["content"] for chunk in chunks], redact)
    return [pair for pair in zip(chunks, contents, strict=True) if pair[0]["content"] != pair[1]]


def _redacted(tables: Tables, table: str, row: Values, redact: Redact) -> dict[str, str]:
    """The texts of a row that change."""
    changed = {}
    for name in tables[table].texts:
        text = after = str(row.get(name) or "")  # an archived memory may be older than a column
        if (table, name) == ("archived_memories", "memory"):  # a row of memories as JSON
            memory = json.loads(text)
            if texts := _redacted(tables, "memories", memory, redact):
                whole = memory | texts | {"session_id": row["session_id"]}
                after = json.dumps(memory | texts | computed("memories", whole))
        elif text and text not in ("[]", "{}"):
            after = redacted(text, redact)
        if name.startswith("context_") and len(after) > 24:  # its schema allows no more
            after = "[redacted]"
        if after != text:
            changed[name] = after
    return changed


def computed(table: str, row: Values) -> Values:
    """What is computed from the texts of a row."""
    if table == "memories":
        content, kind = row["content"], row["kind"]
        bare, at = terms.bare(content), row["updated_at" if kind == "summary" else "created_at"]
        values: Values = {"words": terms.count_words(bare), "question": int(terms.is_question(bare))}
        if kind != "turn":  # its pieces have them
            values["terms"] = terms.line_terms(content, kind, at)
        if row["content_hash"] and kind == "tool":
            values["content_hash"] = digest(f"{row['session_id']}\n{content}".encode())
        elif row["content_hash"]:
            *_, values["content_hash"], values["simhash"] = wording(content, row["title"])
        return values
    if table == "docmem_nodes":
        context = row["context_type"], row["context_name"], row["context_value"]
        words, indexed = nodes.indexed(context, row["text"])
        new_hash = nodes.digest(row["parent_id"], context, row["text"], row["order_value"])
        return {"hash": new_hash, "token_count": tokens(row["text"]), "words": words, "terms": indexed}
    if table == "observation_queue":
        return {"size": len(row["tool_input"]) + len(row["tool_output"])}
    if table in ("document_chunks", "turn_pieces"):
        text = row["text"] if table == "turn_pieces" else f"{row['heading']}\n{row['content']}"
        return {"words": terms.count_words(text), "terms": terms.index_terms(text)}
    return {}


# --- rewriting ----------------------------------------------------------------------------------------------


def rewrite(db: Connection, findings: Sequence[Finding], redact: Redact) -> None:
    """Redact these rows, as they are now."""
    unhurried(db)
    tables = _tables(db)
    for finding in findings:
        if not finding.is_name:
            with transaction(db):
                _rewrite(db, tables, finding.table, finding.key, redact)


def _rewrite(db: Connection, tables: Tables, name: str, key: tuple[Any, ...], redact: Redact) -> None:
    where = " AND ".join(f"t.{column} = ?" for column in tables[name].keys)
    row = dict(db.execute(f"{tables[name].select} WHERE {where}", key).fetchone() or ())
    if not row:  # another process removed it
        return
    label = row.pop("label")
    if name == "documents":
        for chunk, content in _chunks(db, row["id"], redact):
            _update(db, "document_chunks", chunk, {"content": content}, "row = ?", (chunk["row"],))
    texts = _redacted(tables, name, row, redact)
    if texts:
        _update(db, name, row, texts, where, key)
    if name == "turns" and texts:  # its memory and its pieces are made of its record
        (owner,) = db.execute("SELECT project_id FROM memories WHERE id = ?", (label,)).fetchone()
        turns.save(db, turns.by_ids(db, [label])[label], owner)
        pieces = db.execute("SELECT row FROM turn_pieces WHERE turn = ?", key).fetchall()
        for table, row_key in ("memories", key), *(("turn_pieces", tuple(piece)) for piece in pieces):
            _rewrite(db, tables, table, row_key, redact)


def _update(
    db: Connection, table: str, row: Values, texts: dict[str, str], where: str, key: tuple[Any, ...]
) -> None:
    values = texts | computed(table, row | texts)
    columns = ", ".join(f"{column} = ?" for column in values)
    db.execute(f"UPDATE OR REPLACE {table} AS t SET {columns} WHERE {where}", (*values.values(), *key))


def compact(db: Connection) -> bool:
    """Let nothing of the old texts stay in the keyword indexes, in free pages or in the log. False: another
    process reads an old state, so the log stays."""
    for name in fts_indexes(db):
        db.execute(f"INSERT INTO {name} ({name}) VALUES ('optimize')")
    db.execute("VACUUM")
    return not db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
