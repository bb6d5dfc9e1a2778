"""Redaction of what is stored already, when the table of secrets has learnt a shape that it did not know.

The schema says what there is to look at, so no table of a later migration can be forgotten, and older backups
are read as they are: every TEXT column is redacted that is not in `KEPT` or `PLACES`. What is
computed from a text (hashes, words, keyword index, vectors) follows it.

First everything is looked at, without a lock. Then the rows that were found are read again and rewritten,
some at a time, so that others may write in between: a kill leaves the rest for the next run.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from backstory.blob import digest
from backstory.errors import Damaged
from backstory.memory import terms
from backstory.store import nodes, turns
from backstory.store.file import backup
from backstory.store.file.connection import Connection, transaction
from backstory.store.keep import wording

Redact = Callable[[str], str]
Progress = Callable[[int, int], None]  # so many of so many rows were looked at
Values = dict[str, Any]

MARKER = re.compile(r"\[redacted:([a-z-]+)\]")
PAGE = 500  # rows read at a time
BATCH = 100  # rows rewritten in a transaction
AROUND = 60  # characters of an excerpt on each side
LONGEST_CONTEXT = 24  # of a node: its schema says so

# What is never redacted, with the reason.
KEPT = {
    "ids that others refer to": "archived_memories.id archived_memories.project_id claude_sections.name"
    " claude_texts.name docmem_nodes.id docmem_nodes.parent_id docmem_nodes.root_id docmem_servers.id"
    " docmem_servers.session_id docmem_views.node_id docmem_views.server_id document_chunks.document_id"
    " documents.id documents.project_id events.name events.session_id memories.id"
    " memories.project_id memories.session_id memory_relationships.source_id memory_relationships.target_id"
    " models.id observation_queue.lease observation_queue.memory_id observation_queue.session_id projects.id"
    " prompts.session_id session_memories.memory_id session_memories.session_id session_summaries.memory_id"
    " session_summaries.project_id session_summaries.session_id sessions.id sessions.project_id"
    " spend.session_id turns.session_id",
    "words that the schema or we choose": "claude_files.template claude_sections.author"
    " claude_sections.offered_by claude_texts.author documents.kind memories.action memories.kind"
    " memories.sector memories.source memories.tier memory_relationships.relationship_type"
    " memory_relationships.said_by observation_queue.action observation_queue.processed_by"
    " observation_queue.tool_name session_memories.usage_type session_summaries.made_by sessions.status"
    " sessions.synthesizer spend.model turns.state",
    "digests": "claude_files.head claude_sections.refused claude_texts.digest docmem_nodes.hash"
    " docmem_views.offered docmem_views.seen documents.checksum memories.content_hash memories.hashes"
    " sessions.head",
    "computed from a text beside it": "docmem_nodes.terms document_chunks.terms memories.terms"
    " turn_pieces.terms",
}
# Which project, checkout or document it is: stored as it came, on the way in as well. Looked at, and named.
PLACES = (
    "claude_files.path claude_files.place claude_sections.path claude_texts.place docmem_servers.folder"
    " documents.source_path projects.identity projects.name projects.root sessions.branch sessions.cwd"
)
NO_CHECK = "claude_files.gone claude_sections.behind"  # JSON, though their tables do not say so

# What a row is called when people are told of it, where that is not its id.
_NAMED = {
    "turns": "(SELECT m.id FROM memories m WHERE m.row = t.row)",
    "turn_pieces": "(SELECT m.id FROM memories m WHERE m.row = t.turn)",
    "prompts": "t.session_id",
    "session_summaries": "t.session_id",
    "observation_queue": "t.session_id",
    "document_chunks": "t.document_id",
    "docmem_views": "t.node_id",
    "docmem_servers": "t.folder",
    "claude_files": "t.path",
    "claude_sections": "t.path || ' ' || t.name",
    "claude_texts": "t.place || ' ' || t.name",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A row with something in it that the present table redacts."""

    table: str
    key: tuple[Any, ...]
    id: str  # what people know it by
    kinds: tuple[str, ...]
    excerpt: str  # of the redacted text
    is_place: bool = False  # named, not changed


@dataclass(frozen=True, slots=True)
class _Table:
    name: str
    keys: tuple[str, ...]
    texts: tuple[str, ...]
    lists: frozenset[str]  # those of the texts that are JSON
    places: tuple[str, ...]


# --- looking ------------------------------------------------------------------------------------------------


def look(db: Connection, redact: Redact, progress: Progress | None = None) -> list[Finding]:
    """All rows that `redact` would change. Nothing is written: `db` may be open for reading only."""
    db.row_factory = sqlite3.Row
    tables = _tables(db)
    total = sum(db.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0] for table in tables)
    found: list[Finding] = []
    done = 0
    for table in tables:
        for row in _rows(db, table):
            found += _findings(db, table, row, redact)
            done += 1
            if progress and (done % PAGE == 0 or done == total):
                progress(done, total)
    return found


def look_into(path: str, redact: Redact, progress: Progress | None = None) -> int:
    """How many rows of a backup hold something that `redact` would change."""
    try:
        with closing(backup.read_only(path)) as db:
            return len(look(db, redact, progress))
    except sqlite3.Error as error:
        raise Damaged(f"{path} cannot be read ({error})") from error


def _tables(db: Connection) -> list[_Table]:
    """Turns come first: each is saved as a whole, with the memory and the pieces that are made of it."""
    left_out = {column for columns in (*KEPT.values(), PLACES) for column in columns.split()}
    found = []
    for row in db.execute("PRAGMA main.table_list").fetchall():
        name = row["name"]
        if row["type"] != "table" or name.startswith("sqlite_"):
            continue
        columns = db.execute(f"PRAGMA table_xinfo({name})").fetchall()
        (sql,) = db.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).fetchone()
        by_key = sorted((column["pk"], column["name"]) for column in columns if column["pk"])
        texts = [column["name"] for column in columns if column["type"] == "TEXT" and not column["hidden"]]
        found.append(
            _Table(
                name=name,
                keys=tuple(key for _, key in by_key) or ("rowid",),
                texts=tuple(text for text in texts if f"{name}.{text}" not in left_out),
                lists=frozenset(
                    text
                    for text in texts
                    if f"json_valid({text})" in sql or f"{name}.{text}" in NO_CHECK.split()
                ),
                places=tuple(text for text in texts if f"{name}.{text}" in PLACES.split()),
            )
        )
    found = [table for table in found if table.texts or table.places]
    return sorted(found, key=lambda table: table.name != "turns")


def _rows(db: Connection, table: _Table) -> Iterator[sqlite3.Row]:
    """Every row, a page at a time: nobody's write waits for us, and no old state is held on to."""
    select, order = _select(table), ", ".join(f"t.{key}" for key in table.keys)
    after: tuple[Any, ...] = ()
    while True:
        where = f"WHERE ({order}) > ({', '.join('?' * len(after))})" if after else ""
        page = db.execute(f"{select} {where} ORDER BY {order} LIMIT {PAGE}", after).fetchall()
        yield from page
        if len(page) < PAGE:
            return
        after = _key(table, page[-1])


def _select(table: _Table) -> str:
    hidden = "t.rowid AS rowid, " if table.keys == ("rowid",) else ""
    return f"SELECT {hidden}t.*, {_NAMED.get(table.name, 'NULL')} AS named FROM {table.name} t"


def _key(table: _Table, row: sqlite3.Row) -> tuple[Any, ...]:
    return tuple(row[key] for key in table.keys)


def _findings(db: Connection, table: _Table, row: sqlite3.Row, redact: Redact) -> list[Finding]:
    key = _key(table, row)
    known = row["named"] or (row["id"] if "id" in row.keys() else " ".join(map(str, key)))  # noqa: SIM118
    found = []
    if changed := _changed(db, table, row, redact):
        found.append(Finding(table.name, key, redact(str(known)), *told(changed)))
    places = [(row[name], redact(row[name])) for name in table.places if row[name]]
    if places := [(before, after) for before, after in places if before != after]:
        found.append(Finding(table.name, key, redact(str(known)), *told(places), is_place=True))
    return found


def told(changed: Sequence[tuple[str, str]]) -> tuple[tuple[str, ...], str]:
    """The kinds of what was redacted, and an excerpt of the redacted text around the first of them."""
    kinds: Counter[str] = Counter()
    for before, after in changed:
        kinds += Counter(MARKER.findall(after)) - Counter(MARKER.findall(before))
    before, after = changed[0]
    same = next((at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), 0)
    begin = max(0, after.rfind("[redacted:", 0, same + len("[redacted:")))
    marker = MARKER.match(after, begin)
    end = marker.end() if marker else same
    return tuple(sorted(kinds)), after[max(0, begin - AROUND) : end + AROUND].strip()


# --- what a row becomes -------------------------------------------------------------------------------------


def _changed(db: Connection, table: _Table, row: sqlite3.Row, redact: Redact) -> list[tuple[str, str]]:
    """(before, after) of each text of a row that changes."""
    values = {name: row[name] for name in table.texts}
    changed = [(values[name], text) for name, text in _redacted(table, values, redact).items()]
    if table.name == "documents":
        changed += [pair for _, pair in _chunks(db, row["id"], redact)]
    return changed


def _redacted(table: _Table, values: Values, redact: Redact) -> dict[str, str]:
    """The texts of a row that change."""
    changed = {}
    for name, text in values.items():
        if not text or text in ("[]", "{}"):
            continue
        if table.name == "archived_memories":
            after = _archived(text, redact)
        elif name in table.lists:
            after = redacted_json(text, redact)
        else:
            after = redact(text)
        if name.startswith("context_") and len(after) > LONGEST_CONTEXT:
            after = "[redacted]"
        if after != text:
            changed[name] = after
    return changed


def redacted_json(text: str, redact: Redact) -> str:
    """JSON with its strings redacted, as JSON of the same shape."""
    try:
        before = json.loads(text)
        after = _together(_each(before, redact), redact)
    except (RecursionError, ValueError):  # nested too deep for Python, or cut off
        after, before = {"text": redact(text)}, {"text": text}
    return text if after == before else json.dumps(after, ensure_ascii=False)


def _each(value: Any, redact: Redact) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_each(part, redact) for part in value]
    if isinstance(value, dict):
        parts = [(redact(name), _each(part, redact)) for name, part in value.items()]
        return dict(parts)
    return value


def _together(value: Any, redact: Redact) -> Any:
    """Once more, because only beside its name does a value show what it is."""
    if not value or not isinstance(value, list | dict):
        return value
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    after = redact(text)
    if after == text:
        return value
    try:
        new = json.loads(after)
    except ValueError:  # a marker took a quote with it
        new = None
    if _is_alike(value, new):
        return new
    if isinstance(value, list):
        return [_together(part, redact) for part in value]
    return {key: part for name in value for key, part in _pair(name, value[name], redact).items()}


def _pair(name: str, value: Any, redact: Redact) -> Values:
    """A value with its name. A number is as good a password as a word."""
    said = str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
    if not isinstance(said, str):
        return {name: _together(value, redact)}
    text = json.dumps({name: said}, ensure_ascii=False)
    try:
        new = json.loads(redact(text))
    except ValueError:
        new = None
    return new if _is_alike({name: said}, new) and new != {name: said} else {name: value}


def _is_alike(value: Any, other: Any) -> bool:
    if type(value) is not type(other):
        return False
    if isinstance(value, dict):
        return len(value) == len(other) and all(map(_is_alike, value.values(), other.values()))
    if isinstance(value, list):
        return len(value) == len(other) and all(map(_is_alike, value, other))
    return True


def redacted_apart(parts: Sequence[str], redact: Redact) -> list[str]:
    """Parts of one text: a secret may begin in one of them and end in another."""
    whole = "\n".join(parts)
    after = redact(whole)
    if after == whole:
        return [redact(part) for part in parts]
    found = [""] * len(parts)
    ends: list[int] = []  # of each part in the whole, with the line's end
    for part in parts:
        ends.append((ends[-1] if ends else 0) + len(part) + 1)
    # What is left of the whole stands in it in the same order. Wherever it is found, none of it is a secret.
    pieces = re.split(f"({MARKER.pattern.replace('(', '(?:')})", after)
    at = number = 0
    for literal, marker in zip(pieces[::2], [*pieces[1::2], ""], strict=True):
        begin = whole.find(literal, at)
        if begin < 0:
            return [redact(part) for part in parts]
        at = begin + len(literal)
        while begin < at:
            while begin >= ends[number]:
                number += 1
            found[number] += whole[begin : min(at, ends[number] - 1)]
            begin = ends[number]
        while marker and at >= ends[number]:
            number += 1
        found[number] += marker
    return [redact(text) or ("[redacted]" if part else "") for text, part in zip(found, parts, strict=True)]


def _chunks(db: Connection, document_id: str, redact: Redact) -> list[tuple[sqlite3.Row, tuple[str, str]]]:
    """The chunks of a document that change, each with (before, after)."""
    rows = db.execute(
        "SELECT * FROM document_chunks WHERE document_id = ? ORDER BY row", (document_id,)
    ).fetchall()
    after = redacted_apart([row["content"] for row in rows], redact)
    return [
        (row, (row["content"], text)) for row, text in zip(rows, after, strict=True) if row["content"] != text
    ]


# --- rewriting ----------------------------------------------------------------------------------------------


def rewrite(
    db: Connection, findings: Sequence[Finding], redact: Redact, now: int, progress: Progress | None = None
) -> set[tuple[int, str]]:
    """Redact these rows. Returns (project, root) of the trees that changed."""
    tables = {table.name: table for table in _tables(db)}
    todo = [found for found in findings if not found.is_place]
    trees: set[tuple[int, str]] = set()
    for first in range(0, len(todo), BATCH):
        with transaction(db):
            for found in todo[first : first + BATCH]:
                trees |= _rewrite(db, tables, found.table, found.key, redact, now)
        if progress:
            progress(min(first + BATCH, len(todo)), len(todo))
    return trees


def _rewrite(
    db: Connection, tables: dict[str, _Table], name: str, key: tuple[Any, ...], redact: Redact, now: int
) -> set[tuple[int, str]]:
    """Read a row again and redact it: others may have changed or removed it since."""
    table = tables[name]
    where = " AND ".join(f"t.{column} = ?" for column in table.keys)
    row = db.execute(f"{_select(table)} WHERE {where}", key).fetchone()
    if row is None:
        return set()
    if name == "documents":
        for chunk, (_, text) in _chunks(db, row["id"], redact):
            _replace(db, "document_chunks", {**_plain(chunk), "content": text})
    values: Values = _redacted(table, {text: row[text] for text in table.texts}, redact)
    if not values:
        return set()
    if name == "events":  # its key is an id that nobody refers to, and its payload is long gone
        db.execute("DELETE FROM events WHERE key = ?", key)
        return set()
    new = {**_plain(row), **values}
    if name == "memories":
        values |= _of_memory(new)
    elif name == "docmem_nodes":
        values |= _of_node(new) | {"updated_at": now}
    elif name == "observation_queue":
        values["size"] = len(new["tool_input"]) + len(new["tool_output"])
    elif name in ("turn_pieces", "document_chunks"):  # no trigger follows an update of these
        _replace(db, name, new)
        return set()
    sets = ", ".join(f"{column} = ?" for column in values)
    db.execute(
        f"UPDATE {name} AS t SET {sets} WHERE {where}",
        (*values.values(), *key),
    )
    if name == "turns":
        _save_turn(db, tables, row, redact, now)
    return {(row["project"], row["root_id"])} if name == "docmem_nodes" else set()


def _save_turn(db: Connection, tables: dict[str, _Table], row: sqlite3.Row, redact: Redact, now: int) -> None:
    """Its memory and its pieces are made of its record: a secret is whole in there only."""
    owner = db.execute("SELECT project_id FROM memories WHERE row = ?", (row["row"],)).fetchone()
    turns.save(db, turns.by_ids(db, [row["named"]])[row["named"]], owner["project_id"])
    _rewrite(db, tables, "memories", (row["row"],), redact, now)
    for piece in db.execute("SELECT row FROM turn_pieces WHERE turn = ?", (row["row"],)).fetchall():
        _rewrite(db, tables, "turn_pieces", (piece["row"],), redact, now)


def _plain(row: sqlite3.Row) -> Values:
    return {name: row[name] for name in row.keys() if name not in ("named", "rowid")}  # noqa: SIM118


def _replace(db: Connection, table: str, line: Values) -> None:
    """The triggers take the old words and the vector away, and tell other processes."""
    said = f"{line['heading']}\n{line['content']}" if table == "document_chunks" else line["text"]
    line["words"] = sum(map(terms.count_words, said.split("\n", 1)))
    day = re.search(r"(?:^| )(\d{8} \w+ \d{4})$", line["terms"])  # of the first piece of a turn
    line["terms"] = " ".join(filter(None, (terms.index_terms(said), day and day[1])))
    db.execute(f"DELETE FROM {table} WHERE row = ?", (line["row"],))
    db.execute(
        f"INSERT INTO {table} ({', '.join(line)}) VALUES ({', '.join('?' * len(line))})", list(line.values())
    )


def _of_memory(row: Values) -> Values:
    """What is computed from the text of a memory."""
    content, kind = row["content"], row["kind"]
    if kind == "turn":
        return {"words": terms.count_words(content)}
    bare = terms.bare(content)
    at = row["updated_at" if kind == "summary" else "created_at"]
    values: Values = {
        "words": terms.count_words(bare),
        "question": int(terms.is_question(bare)),
        "terms": terms.line_terms(content, kind, at),
    }
    if kind == "tool" and row["content_hash"]:
        values["content_hash"] = digest(f"{row['session_id']}\n{content}".encode())
    elif row["content_hash"]:
        says = wording(content, row["title"])
        values |= {"content_hash": says.content_hash, "simhash": says.simhash}
    return values


def _of_node(row: Values) -> Values:
    from backstory.model import tokens

    context = row["context_type"], row["context_name"], row["context_value"]
    words, known = nodes.indexed(context, row["text"])
    return {
        "hash": nodes.digest(row["parent_id"], context, row["text"], row["order_value"]),
        "token_count": tokens(row["text"]),
        "words": words,
        "terms": known,
    }


def _archived(text: str, redact: Redact) -> str:
    """A memory that was archived is a whole row as JSON, whose lists are JSON again."""
    row = json.loads(text)
    texts = {name: row.get(name) for name in ("title", "content", "author")}
    changed = {name: redact(said) for name, said in texts.items() if said}
    for name in ("tags", "concepts", "files"):
        changed[name] = redacted_json(row[name], redact)
    new = {**row, **changed}
    return text if new == row else json.dumps({**new, **_of_memory(new)})


def compact(db: Connection) -> bool:
    """Nothing of what was replaced stays: not in the keyword indexes, nor in free pages, nor in the log.
    False: another process reads an old state, so the log stays until it has read it."""
    for row in db.execute(
        "SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE % USING fts5 (%'"
    ).fetchall():
        db.execute(f"INSERT INTO {row['name']} ({row['name']}) VALUES ('optimize')")
    db.execute("VACUUM")
    (is_busy, *_) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not is_busy
