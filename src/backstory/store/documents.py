"""Documents and their chunks: reference texts, kept apart from memories."""

from __future__ import annotations

import json

from backstory.ids import new_id
from backstory.memory import terms
from backstory.store import projects
from backstory.store.file.connection import marks, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from sqlite3 import Connection, Row

    from backstory.model import Chunk, Document

    Prepared = tuple[str, str, int, str]


def prepared(chunks: Iterable[tuple[str, str]]) -> list[Prepared]:
    """Chunks, (heading path, text) each, with what the index needs: found out before the write lock."""
    return [
        (
            heading,
            text,
            terms.count_words(heading) + terms.count_words(text),
            terms.index_terms(f"{heading}\n{text}"),
        )
        for heading, text in chunks
    ]


def put(
    db: Connection,
    *,
    project_id: str,
    title: str | None,
    source_path: str | None,
    source_url: str | None,
    kind: str,
    checksum: str,
    chunks: Sequence[Prepared],
    now: int,
    replaces: str | None = None,
) -> str:
    """Store a document with its chunks in place of an older version of it."""
    document_id = replaces or new_id("doc_")
    if replaces:
        db.execute("DELETE FROM document_chunks WHERE document_id = ?", (replaces,))
        db.execute(
            "UPDATE documents SET title = ?, kind = ?, checksum = ?, updated_at = ? WHERE id = ?",
            (title, kind, checksum, now, replaces),
        )
    else:
        db.execute(
            "INSERT INTO documents (id, project_id, title, source_path, source_url, kind, checksum,"
            " created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8)",
            (document_id, project_id, title, source_path, source_url, kind, checksum, now),
        )
    put_chunks(db, document_id, project_id, chunks)
    return document_id


def put_chunks(db: Connection, document_id: str, project_id: str, chunks: Sequence[Prepared]) -> None:
    """The chunks of a document that has none yet."""
    first = projects.next_row(db, project_id, len(chunks))
    (thread,) = db.execute("SELECT number FROM documents WHERE id = ?", (document_id,)).fetchone()
    db.executemany(
        "INSERT INTO document_chunks (row, document_id, thread, heading, content, words, terms)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        ((row, document_id, thread, *chunk) for row, chunk in enumerate(chunks, first)),
    )


def same_source(
    db: Connection, project_id: str, *, path: str | None, url: str | None, title: str | None, checksum: str
) -> Document | None:
    """The document that came from there. Text that was handed over goes by its title, or by what it says."""
    where = {"source_path": path, "source_url": url}
    column = next((name for name, value in where.items() if value is not None), None)
    if column:
        row = db.execute(
            f"{_SELECT} WHERE d.project_id = ? AND d.{column} = ?", (project_id, where[column])
        ).fetchone()
    else:
        row = db.execute(
            f"{_SELECT} WHERE d.project_id = ? AND (d.title = ? OR d.checksum = ?)"
            " AND d.source_path IS NULL AND d.source_url IS NULL ORDER BY d.title = ? DESC",
            (project_id, title, checksum, title),
        ).fetchone()
    return _document(row) if row else None


def count(db: Connection) -> int:
    """How many chunks there are."""
    return int(db.execute("SELECT count(*) FROM document_chunks").fetchone()[0])


def listed(db: Connection, project_id: str) -> list[Document]:
    rows = db.execute(f"{_SELECT} WHERE d.project_id = ? ORDER BY d.updated_at DESC, d.id", (project_id,))
    return [_document(row) for row in rows]


def starting_with(db: Connection, prefix: str) -> list[Document]:
    rows = db.execute(
        f"{_SELECT} WHERE d.id >= ?1 AND d.id < ?1 || char(1114111) ORDER BY d.id LIMIT 5", (prefix,)
    )
    return [_document(row) for row in rows]


def chunks(db: Connection, document_id: str) -> list[tuple[str, str]]:
    """(heading path, text) of each chunk, in order."""
    rows = db.execute(
        "SELECT heading, content FROM document_chunks WHERE document_id = ? ORDER BY row", (document_id,)
    )
    return [(row["heading"], row["content"]) for row in rows]


def remove(db: Connection, document_id: str) -> None:
    db.execute("DELETE FROM document_chunks WHERE document_id = ?", (document_id,))  # so that triggers see it
    db.execute("DELETE FROM documents WHERE id = ?", (document_id,))


def at(db: Connection, rows: Sequence[int]) -> dict[int, Chunk]:
    from backstory.model import Chunk

    found = db.execute(
        "SELECT c.row, c.heading, c.content, d.* FROM document_chunks c JOIN"
        f" ({_SELECT}) d ON d.id = c.document_id WHERE c.row IN ({marks(rows)})",
        list(rows),
    )
    return {
        row["row"]: Chunk(document=_document(row), heading=row["heading"], text=row["content"])
        for row in found
    }


# What search holds in RAM, as in store/memories.py.


def lines(db: Connection, first: int, last: int) -> str:
    return str(
        db.execute(
            "SELECT coalesce(group_concat(row || ',' || thread || ',-1,0,' || words || ',0,0'), '') FROM"
            " (SELECT row, thread, words FROM document_chunks WHERE row BETWEEN ? AND ? ORDER BY row)",
            (first, last),
        ).fetchone()[0]
    )


def authors(db: Connection, first: int, last: int) -> list[tuple[int, str]]:
    """A chunk has none."""
    return []


def texts(db: Connection, rows: Iterable[int]) -> list[tuple[int, str]]:
    found = db.execute(
        "SELECT row, heading, content FROM document_chunks WHERE row IN (SELECT value FROM json_each(?))",
        (json.dumps(list(rows)),),
    )
    return [(row["row"], f"{row['heading']}\n{row['content']}") for row in found]


TABLE = "document_chunks"
LINES = TABLE

_SELECT = (
    "SELECT d.*, (SELECT count(*) FROM document_chunks c WHERE c.document_id = d.id) AS chunks"
    " FROM documents d"
)


def _document(row: Row) -> Document:
    from backstory.model import Document

    return value(Document, row)
