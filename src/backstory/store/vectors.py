"""The vectors of lines; a line is a memory or a chunk of a document."""

from __future__ import annotations

from backstory.store.file.connection import tuples

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from sqlite3 import Connection

PAGE = 4_096  # vectors read at a time: loading a million takes little more room than keeping them


def model(db: Connection, model_id: str, dimension: int) -> int | None:
    """The number under which this model's vectors are stored, if any are."""
    row = db.execute(
        "SELECT number FROM models WHERE id = ? AND dimension = ?", (model_id, dimension)
    ).fetchone()
    return int(row["number"]) if row else None


def ensure_model(db: Connection, model_id: str, dimension: int) -> int:
    """The same, made where it is new. A model whose dimension changed is another model."""
    db.execute(
        "INSERT INTO models (id, dimension) VALUES (?, ?) ON CONFLICT DO NOTHING", (model_id, dimension)
    )
    return model(db, model_id, dimension) or 0


def put(db: Connection, number: int, lines: str, found: Iterable[tuple[int, bytes]]) -> None:
    """Store vectors of lines that are still there. A new seq each, for processes that hold the old one."""
    db.executemany(
        f"INSERT OR REPLACE INTO vectors (row, model, vector) SELECT row, ?2, ?3 FROM {lines} WHERE row = ?1",
        ((row, number, vector) for row, vector in found),
    )


def last_seq(db: Connection) -> int:
    return int(db.execute("SELECT coalesce(max(seq), 0) FROM vectors").fetchone()[0])


def page(db: Connection, number: int, first: int, last: int) -> tuple[list[int], bytes]:
    """The next vectors of a range in the order of rows: the rows, and the vectors end to end."""
    found = tuples(db).execute(
        "SELECT row, vector FROM vectors WHERE row BETWEEN ? AND ? AND model = ? ORDER BY row LIMIT ?",
        (first, last, number, PAGE),
    )
    return _apart(found.fetchall())


def after(db: Connection, seq: int, number: int, first: int, last: int) -> tuple[list[int], bytes]:
    """The vectors of a range that are newer than seq."""
    found = tuples(db).execute(
        "SELECT row, vector FROM vectors WHERE seq > ? AND model = ? AND +row BETWEEN ? AND ?",
        (seq, number, first, last),
    )
    return _apart(found.fetchall())


def counts(db: Connection) -> list[tuple[str, int]]:
    """(model, how many vectors) of each model."""
    rows = db.execute(
        "SELECT m.id, count(v.row) FROM models m LEFT JOIN vectors v ON v.model = m.number GROUP BY m.number"
    )
    return [(row[0], row[1]) for row in rows]


def _apart(found: list[tuple[int, bytes]]) -> tuple[list[int], bytes]:
    return [row for row, _ in found], b"".join(vector for _, vector in found)
