"""Memories: storing and finding them. What happens to one afterwards is in store/life.py."""

from __future__ import annotations

import json

from recollect.ids import new_id
from recollect.store import projects, salience, terms
from recollect.store.connection import tuples

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from sqlite3 import Connection, Row

    from recollect.model import Memory


def add(
    db: Connection,
    *,
    project_id: str,
    session_id: str | None,
    kind: str,
    sector: str,
    tier: str,
    content: str,
    now: int,
    importance: float,
    files: Sequence[str] = (),
    hashes: Sequence[str | None] = (),
    tags: Sequence[str] = (),
    author: str | None = None,
    content_hash: str | None = None,
    simhash: int | None = None,
) -> str:
    """Store a new memory, linked to the session that made it. Its salience at birth is its importance."""
    memory_id = new_id()
    bare = terms.bare(content)
    db.execute(
        "INSERT INTO memories (row, id, project_id, session_id, kind, sector, tier, content, tags, files,"
        " hashes, importance, salience, created_at, updated_at, last_accessed, content_hash, simhash, thread,"
        " author, words, question, terms)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?12, ?13, ?13, ?13, ?14, ?15,"
        " iif(?5 = 'tool', NULL, (SELECT number FROM sessions WHERE id = ?4)), ?16, ?17, ?18, ?19)",
        (
            projects.next_row(db, project_id),
            memory_id,
            project_id,
            session_id,
            kind,
            sector,
            tier,
            content,
            _list(tags),
            _list(files),
            _list(hashes),
            importance,
            now,
            content_hash,
            simhash,
            author or (terms.author_of(content) if kind != "tool" else None),
            terms.count_words(bare),
            terms.is_question(bare),
            terms.line_terms(content, kind, now),
        ),
    )
    link(db, session_id, memory_id, "created", now)
    return memory_id


def link(db: Connection, session_id: str | None, memory_id: str, usage_type: str, now: int) -> None:
    """Note what a session did with a memory. A session we never heard of has nothing to link."""
    db.execute(
        "INSERT INTO session_memories (session_id, memory_id, usage_type, created_at)"
        " SELECT id, ?2, ?3, ?4 FROM sessions WHERE id = ?1"
        " ON CONFLICT DO UPDATE SET created_at = excluded.created_at",
        (session_id, memory_id, usage_type, now),
    )


def same(db: Connection, project_id: str, kind: str, content_hash: str) -> str | None:
    """The living memory with exactly this content."""
    row = db.execute(
        "SELECT id FROM memories WHERE content_hash = ? AND project_id = ? AND kind = ?"
        " AND deleted_at IS NULL AND valid_until IS NULL",
        (content_hash, project_id, kind),
    ).fetchone()
    return str(row["id"]) if row else None


def alike(
    db: Connection, project_id: str, kind: str, bands: tuple[int, int, int, int]
) -> list[tuple[str, str]]:
    """(id, content) of living memories that share a band of their simhash with this one, newest first."""
    rows = db.execute(
        "SELECT id, content FROM memories WHERE project_id = ?5 AND kind = ?6 AND simhash IS NOT NULL"
        " AND deleted_at IS NULL AND valid_until IS NULL AND ((simhash & 65535) = ?1"
        " OR (simhash >> 16 & 65535) = ?2 OR (simhash >> 32 & 65535) = ?3 OR (simhash >> 48 & 65535) = ?4)"
        " ORDER BY row DESC LIMIT 200",
        (*bands, project_id, kind),
    )
    return [(row["id"], row["content"]) for row in rows]


def get(db: Connection, memory_id: str, now: int) -> Memory | None:
    row = db.execute("SELECT * FROM memories WHERE id = ?", (memory_id,)).fetchone()
    return _memory(row, now) if row else None


def starting_with(db: Connection, prefix: str, limit: int = 5) -> list[str]:
    """Ids that begin like this, of memories and of archived ones: nobody types 16 characters."""
    rows = db.execute(
        "SELECT id FROM memories WHERE id >= ?1 AND id < ?1 || char(1114111) UNION"
        " SELECT id FROM archived_memories WHERE id >= ?1 AND id < ?1 || char(1114111) ORDER BY id LIMIT ?2",
        (prefix, limit),
    )
    return [row["id"] for row in rows]


def at(db: Connection, rows: Sequence[int], now: int) -> dict[int, Memory]:
    """Memories by their row."""
    marks = ", ".join("?" * len(rows))
    found = db.execute(f"SELECT * FROM memories WHERE row IN ({marks})", list(rows))
    return {row["row"]: _memory(row, now) for row in found}


def worth(db: Connection, rows: Sequence[int], now: int) -> dict[int, tuple[float, str, int]]:
    """(salience, sector, created at) of memories by their row."""
    marks = ", ".join("?" * len(rows))
    found = db.execute(
        "SELECT row, salience, sector, importance, last_accessed, access_count, created_at FROM memories"
        f" WHERE row IN ({marks})",
        list(rows),
    )
    return {row["row"]: (present(row, now), row["sector"], row["created_at"]) for row in found}


def count(db: Connection) -> int:
    return int(db.execute("SELECT count(*) FROM memories").fetchone()[0])


def of_session(db: Connection, session_id: str, now: int) -> list[Memory]:
    rows = db.execute(
        "SELECT * FROM memories WHERE session_id = ? AND deleted_at IS NULL ORDER BY created_at, row",
        (session_id,),
    )
    return [_memory(row, now) for row in rows]


def around(
    db: Connection, anchor: Memory, before: int, after: int, now: int
) -> tuple[list[Memory], list[Memory]]:
    """What happened in the project just before a memory and just after it; deleted ones are left out."""
    at, row = anchor.created_at, anchor.row
    where = "SELECT * FROM memories WHERE project_id = ? AND deleted_at IS NULL"
    earlier = db.execute(
        f"{where} AND (created_at, row) < (?, ?) ORDER BY created_at DESC, row DESC LIMIT ?",
        (anchor.project_id, at, row, before),
    ).fetchall()
    later = db.execute(
        f"{where} AND (created_at, row) > (?, ?) ORDER BY created_at, row LIMIT ?",
        (anchor.project_id, at, row, after),
    ).fetchall()
    return [_memory(one, now) for one in reversed(earlier)], [_memory(one, now) for one in later]


def matching(
    db: Connection,
    first: int,
    last: int,
    *,
    sector: str | None = None,
    kind: str | None = None,
    tier: str | None = None,
    session_id: str | None = None,
    since: int | None = None,
    until: int | None = None,
    tags: Sequence[str] = (),
    files: Sequence[str] = (),
) -> str:
    """Which rows of a range pass these filters, as '1,2,3': every tag must be there, and any of the files."""
    clauses = ["row BETWEEN ? AND ?"]
    values: list[object] = [first, last]
    exact = {"sector": sector, "kind": kind, "tier": tier, "session_id": session_id}
    for column, value in exact.items():
        if value is not None:
            clauses.append(f"{column} = ?")
            values.append(value)
    for bound, moment in (("created_at >= ?", since), ("created_at <= ?", until)):
        if moment is not None:
            clauses.append(bound)
            values.append(moment)
    for tag in tags:
        clauses.append("EXISTS (SELECT 1 FROM json_each(tags) WHERE lower(value) = lower(?))")
        values.append(tag)
    if files:
        # One may be the end of the other: src/auth.py finds /home/me/app/src/auth.py and is found by it.
        ends = (
            "substr('/' || value, -length(?) - 1) = '/' || ? OR substr(?, -length(value) - 1) = '/' || value"
        )
        clauses.append(f"EXISTS (SELECT 1 FROM json_each(files) WHERE {' OR '.join([ends] * len(files))})")
        values += [file for file in files for _ in range(3)]
    found = db.execute(
        f"SELECT group_concat(row) FROM memories WHERE {' AND '.join(clauses)}", values
    ).fetchone()[0]
    return found or ""


# What search holds in RAM: see recall/corpus.py. Long lists of numbers travel as text that numpy parses at
# once, which is several times faster than fetching rows. store/documents.py has the same four functions.


def lines(db: Connection, first: int, last: int) -> str:
    """row, thread, words, asks, state of each line in a range, in the order of rows; state 1 is deleted,
    2 superseded."""
    return str(
        db.execute(
            f"SELECT coalesce(group_concat({_LINE}), '') FROM"
            " (SELECT row, thread, words, question, deleted_at, valid_until FROM memories"
            " INDEXED BY memories_as_lines WHERE row BETWEEN ? AND ? ORDER BY row)",
            (first, last),
        ).fetchone()[0]
    )


def authors(db: Connection, first: int, last: int) -> list[tuple[int, str]]:
    return (
        tuples(db)
        .execute(
            "SELECT row, author FROM memories WHERE author IS NOT NULL AND row BETWEEN ? AND ?", (first, last)
        )
        .fetchall()
    )


def postings(db: Connection, match: str, first: int, last: int) -> str:
    """The rows of a range in which an FTS5 expression matches, counted from the first."""
    return str(
        db.execute(
            "SELECT coalesce(group_concat(rowid - ?2), '') FROM"
            " (SELECT rowid FROM memories_fts WHERE memories_fts MATCH ?1 AND rowid BETWEEN ?2 AND ?3)",
            (match, first, last),
        ).fetchone()[0]
    )


def terms_from(db: Connection, beginning: str) -> list[str]:
    """The first few words of the index that begin like this, as FTS5 phrases. Asking FTS5 itself for `died*`
    would find what begins with its stem, `di`."""
    rows = db.execute(
        "SELECT term FROM memories_terms WHERE term >= ?1 AND term < ?1 || char(1114111) LIMIT 20",
        (beginning.lower(),),
    )
    return [f'"{row[0]}"' for row in rows if '"' not in row[0]]


def texts(db: Connection, rows: Iterable[int]) -> list[tuple[int, str]]:
    """What the vector of each line is made of: the bare text, without date and author."""
    found = db.execute(
        "SELECT row, title, content FROM memories WHERE row IN (SELECT value FROM json_each(?))",
        (json.dumps(list(rows)),),
    )
    return [
        (row["row"], "\n".join(filter(None, (row["title"], terms.bare(row["content"]))))) for row in found
    ]


TABLE = "memories"

_LINE = (
    "row || ',' || coalesce(thread, -1) || ',' || words || ',' || question || ',' ||"
    " ((deleted_at IS NOT NULL) + 2 * (valid_until IS NOT NULL))"
)


def _list(items: Sequence[str | None]) -> str:
    return json.dumps(list(items), ensure_ascii=False)


def decayed(row: Row | Mapping[str, object], now: int) -> float:
    return salience.decayed(row["salience"], row["sector"], row["importance"], row["last_accessed"], now)  # type: ignore[arg-type]


def present(row: Row | Mapping[str, object], now: int) -> float:
    return salience.present(decayed(row, now), row["access_count"])  # type: ignore[arg-type]


def _memory(row: Row, now: int) -> Memory:
    from recollect.model import Memory

    return Memory(
        id=row["id"],
        row=row["row"],
        project_id=row["project_id"],
        session_id=row["session_id"],
        kind=row["kind"],
        sector=row["sector"],
        tier=row["tier"],
        title=row["title"],
        content=row["content"],
        tags=tuple(json.loads(row["tags"])),
        files=tuple(json.loads(row["files"])),
        hashes=tuple(json.loads(row["hashes"])),
        author=row["author"],
        importance=row["importance"],
        salience=present(row, now),
        access_count=row["access_count"],
        created_at=row["created_at"],
        valid_until=row["valid_until"],
        deleted_at=row["deleted_at"],
    )
