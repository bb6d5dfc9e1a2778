"""Lines, be they memories or chunks of documents: which words they have, and which of them changed."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection


def postings(db: Connection, table: str, match: str, first: int, last: int, most: int = -1) -> str:
    """The rows of a range in which an FTS5 expression matches, counted from the first, as '1,2,3'; at most so
    many."""
    return str(
        db.execute(
            f"SELECT coalesce(group_concat(rowid - ?2), '') FROM (SELECT rowid FROM {table}_fts"
            f" WHERE {table}_fts MATCH ?1 AND rowid BETWEEN ?2 AND ?3 LIMIT ?4)",
            (match, first, last, most),
        ).fetchone()[0]
    )


def terms_from(db: Connection, table: str, beginning: str, *, whole: bool = False) -> list[str]:
    """Some words of the keyword index that begin like this, or are this (`whole`). They are stems, and of all
    projects. Asking FTS5 itself for `died*` would find what begins with its stem, `di`."""
    end = "term = ?1" if whole else "term >= ?1 AND term < ?1 || char(1114111)"
    rows = db.execute(f"SELECT term FROM {table}_terms WHERE {end} LIMIT 200", (beginning.lower(),))
    return [row[0] for row in rows if '"' not in row[0]]


def last_change(db: Connection) -> int:
    return int(db.execute("SELECT coalesce(max(seq), 0) FROM line_changes").fetchone()[0])


def changed(db: Connection, seq: int) -> list[int]:
    """Rows whose line was changed or removed after seq."""
    return [row["row"] for row in db.execute("SELECT row FROM line_changes WHERE seq > ?", (seq,))]
