"""Memories: storing and finding them. What happens to one afterwards is in store/life.py."""

from __future__ import annotations

import json

from backstory.blob import digest
from backstory.ids import new_id
from backstory.memory import salience, terms
from backstory.store import projects
from backstory.store.file.connection import marks, tuples, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from sqlite3 import Connection, Row

    from backstory.model import Filters, Memory


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
    title: str | None = None,
    concepts: Sequence[str] = (),
    author: str | None = None,
    content_hash: str | None = None,
    simhash: int | None = None,
    action: str | None = None,
    source: str = "assistant",
    turn: str | None = None,
    memory_id: str | None = None,
) -> str:
    """Store a new memory, linked to the session that made it. Its salience at birth is its importance."""
    memory_id = memory_id or new_id()
    bare = terms.bare(content)
    db.execute(
        "INSERT INTO memories (row, id, project_id, session_id, kind, sector, tier, content, tags, files,"
        " hashes, importance, salience, created_at, updated_at, last_accessed, content_hash, simhash, thread,"
        " author, words, question, terms, title, concepts, action, source, turn)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?12, ?13, ?13, ?13, ?14, ?15,"
        " iif(?5 IN ('tool', 'turn') OR ?7 = 'global', NULL, (SELECT number FROM sessions WHERE id = ?4)),"
        " ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24)",
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
            author or (terms.author_of(content) if kind not in ("tool", "turn") else None),
            terms.count_words(bare),
            terms.is_question(bare),
            terms.line_terms(content, kind, now) if kind != "turn" else "",  # its pieces have them
            title,
            _list(concepts),
            action,
            source,
            turn,
        ),
    )
    link(db, session_id, memory_id, "created", now)
    return memory_id


def unused(db: Connection, memory_id: str) -> str:
    """This id, or a new one where something has it: what was forgotten keeps its own."""
    taken = db.execute(
        "SELECT 1 FROM memories WHERE id = ?1 UNION SELECT 1 FROM archived_memories WHERE id = ?1",
        (memory_id,),
    ).fetchone()
    return new_id() if taken else memory_id


def row_of(db: Connection, memory_id: str) -> int | None:
    row = db.execute("SELECT row FROM memories WHERE id = ?", (memory_id,)).fetchone()
    return int(row["row"]) if row else None


def add_trace(
    db: Connection,
    *,
    memory_id: str,
    project_id: str,
    session_id: str,
    content: str,
    importance: float,
    action: str,
    source: str,
    files: Sequence[str],
    hashes: Sequence[str | None],
    now: int,
    turn: str | None = None,
) -> str:
    """Store what a tool use did. The same again in the same session is counted: it happened last now."""
    content_hash = digest(f"{session_id}\n{content}".encode())
    row = db.execute(
        "UPDATE memories SET times = times + 1, updated_at = max(updated_at, ?2), hashes = ?3"
        " WHERE content_hash = ?1 AND kind = 'tool' AND deleted_at IS NULL RETURNING id",
        (content_hash, now, _list(hashes)),
    ).fetchone()
    if row:
        return str(row["id"])
    if row_of(db, memory_id) is not None:  # it came with what another machine remembers
        return memory_id
    return add(
        db,
        memory_id=memory_id,
        project_id=project_id,
        session_id=session_id,
        kind="tool",
        sector="episodic",
        tier="session",
        content=content,
        importance=importance,
        action=action,
        source=source,
        files=files,
        hashes=hashes,
        content_hash=content_hash,
        turn=turn,
        now=now,
    )


def rewrite(
    db: Connection, memory_id: str, content: str, files: Sequence[str], hashes: Sequence[str | None], now: int
) -> None:
    """The same memory with newer words: a summary of a session that goes on."""
    bare = terms.bare(content)
    db.execute(
        "UPDATE memories SET content = ?, files = ?, hashes = ?, updated_at = ?, words = ?, question = ?,"
        " terms = ? WHERE id = ?",
        (
            content,
            _list(files),
            _list(hashes),
            now,
            terms.count_words(bare),
            terms.is_question(bare),
            terms.line_terms(content, "summary", now),
            memory_id,
        ),
    )


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
    """(id, title and content) of living memories that share a band of their simhash with this one, newest
    first."""
    rows = db.execute(
        # The + keeps SQLite from walking the whole project instead of the four bands.
        "SELECT id, title, content FROM memories"
        " WHERE +project_id = ?5 AND +kind = ?6 AND simhash IS NOT NULL"
        " AND deleted_at IS NULL AND valid_until IS NULL AND ((simhash & 65535) = ?1"
        " OR (simhash >> 16 & 65535) = ?2 OR (simhash >> 32 & 65535) = ?3 OR (simhash >> 48 & 65535) = ?4)"
        " ORDER BY row DESC LIMIT 200",
        (*bands, project_id, kind),
    )
    return [(row["id"], "\n".join(filter(None, (row["title"], row["content"])))) for row in rows]


def add_tags(db: Connection, memory_id: str, tags: Sequence[str], importance: float | None) -> None:
    """What was said with a note that was known already is not lost: new tags, and a higher importance."""
    row = db.execute("SELECT tags FROM memories WHERE id = ?", (memory_id,)).fetchone()
    every = list(dict.fromkeys((*json.loads(row["tags"]), *tags)))
    db.execute(
        "UPDATE memories SET tags = ?, importance = max(importance, ?) WHERE id = ?",
        (_list(every), importance or 0.0, memory_id),
    )


def get(db: Connection, memory_id: str, now: int) -> Memory | None:
    row = db.execute("SELECT * FROM memories WHERE id = ?", (memory_id,)).fetchone()
    return _memory(row, now) if row else None


def starting_with(db: Connection, prefix: str, limit: int = 20) -> list[tuple[str, str]]:
    """(id, project) of memories, also archived ones, whose id begins like this: nobody types it whole."""
    rows = db.execute(
        "SELECT id, project_id FROM memories WHERE id >= ?1 AND id < ?1 || char(1114111) UNION"
        " SELECT id, project_id FROM archived_memories WHERE id >= ?1 AND id < ?1 || char(1114111)"
        " ORDER BY id LIMIT ?2",
        (prefix, limit),
    )
    return [(row["id"], row["project_id"]) for row in rows]


def at(db: Connection, rows: Sequence[int], now: int) -> dict[int, Memory]:
    """Memories by their row."""
    found = db.execute(f"SELECT * FROM memories WHERE row IN ({marks(rows)})", list(rows))
    return {row["row"]: _memory(row, now) for row in found}


class Label:
    """What a memory is and what it is worth, without what it says."""

    __slots__ = ("created_at", "id", "kind", "salience", "sector", "session_id", "source")

    def __init__(self, row: Row, now: int) -> None:
        self.id: str = row["id"]
        self.kind: str = row["kind"]
        self.session_id: str | None = row["session_id"]
        self.source: str = row["source"]
        self.sector: str = row["sector"]
        self.created_at: int = row["created_at"]
        self.salience = present(row, now)


def labels(db: Connection, rows: Sequence[int], now: int) -> dict[int, Label]:
    found = db.execute(
        "SELECT row, id, kind, session_id, source, sector, created_at, salience, importance, last_accessed,"
        f" access_count FROM memories WHERE row IN ({marks(rows)})",
        list(rows),
    )
    return {row["row"]: Label(row, now) for row in found}


def standing(db: Connection, project_id: str, kinds: Sequence[str], limit: int, now: int) -> list[Memory]:
    """The newest living memories of these kinds; a trace is none of them."""
    rows = db.execute(
        # The first condition on kinds is the index's own.
        "SELECT * FROM memories WHERE project_id = ? AND kind <> 'tool'"
        f" AND kind IN ({marks(kinds)}) AND deleted_at IS NULL AND valid_until IS NULL"
        " ORDER BY created_at DESC, row DESC LIMIT ?",
        (project_id, *kinds, limit),
    )
    return [_memory(row, now) for row in rows]


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
    """What happened in the project just before a memory and just after it, turn by turn; what was deleted or
    belongs to a turn is left out."""
    at, row = anchor.created_at, anchor.row
    where = f"SELECT * FROM memories WHERE project_id = ? AND deleted_at IS NULL AND ({TURN}) IS NULL"
    earlier = db.execute(
        f"{where} AND (created_at, row) < (?, ?) ORDER BY created_at DESC, row DESC LIMIT ?",
        (anchor.project_id, at, row, before),
    ).fetchall()
    later = db.execute(
        f"{where} AND (created_at, row) > (?, ?) ORDER BY created_at, row LIMIT ?",
        (anchor.project_id, at, row, after),
    ).fetchall()
    return [_memory(one, now) for one in reversed(earlier)], [_memory(one, now) for one in later]


# The turn that a row of memories belongs to, if nobody forgot it: of a trace its own, of what builds on turns
# and of the summary of a session the last one.
TURN = (
    "SELECT t.id FROM memories t WHERE t.deleted_at IS NULL AND t.kind = 'turn' AND t.id IN ("
    "SELECT memories.turn UNION ALL SELECT r.target_id FROM memory_relationships r"
    " WHERE r.source_id = memories.id AND r.relationship_type = 'BUILDS_ON'"
    " UNION ALL SELECT s.id FROM session_summaries y JOIN memories s"
    " ON s.session_id = y.session_id AND s.kind = 'turn' WHERE y.memory_id = memories.id)"
    " ORDER BY t.created_at DESC LIMIT 1"
)


def matching(db: Connection, first: int, last: int, filters: Filters) -> str:
    """Which rows of a range pass the filters, as '1,2,3'."""
    clauses, values = _where(filters)
    where = " AND ".join(["memories.row BETWEEN ? AND ?", *clauses])
    found = db.execute(
        f"SELECT group_concat(row) FROM (SELECT row FROM memories WHERE {where} UNION ALL"
        f" SELECT p.row FROM memories JOIN turn_pieces p ON p.turn = memories.row WHERE {where})",
        [first, last, *values] * 2,
    ).fetchone()[0]
    return found or ""


def newest(
    db: Connection,
    ranges: Sequence[tuple[int, int]],
    filters: Filters,
    *,
    forgotten: bool,
    traces: bool,
    limit: int,
    now: int,
) -> list[Memory]:
    """The latest memories of these ranges that pass the filters: the current ones, or the forgotten ones."""
    clauses, values = _where(filters)
    clauses += [] if traces else ["kind <> 'tool'"]
    clauses.append("deleted_at IS NOT NULL" if forgotten else "deleted_at IS NULL AND valid_until IS NULL")
    within = " OR ".join(["row BETWEEN ? AND ?"] * len(ranges)) or "0"
    rows = db.execute(
        f"SELECT * FROM memories WHERE ({within}) AND {' AND '.join(clauses)}"
        " ORDER BY created_at DESC, row DESC LIMIT ?",
        [*(bound for pair in ranges for bound in pair), *values, limit],
    )
    return [_memory(row, now) for row in rows]


def _where(filters: Filters) -> tuple[list[str], list[object]]:
    simple = {
        "sector = ?": filters.sector,
        "kind = ?": filters.kind,
        "tier = ?": filters.tier,
        "session_id = ?": filters.session_id,
        "created_at >= ?": filters.since,
        "created_at <= ?": filters.until,
    }
    clauses = [clause for clause, value in simple.items() if value is not None]
    values: list[object] = [value for value in simple.values() if value is not None]
    for tag in filters.tags:
        clauses.append("EXISTS (SELECT 1 FROM json_each(tags) WHERE lower(value) = lower(?))")
        values.append(tag)
    if filters.files:
        # One may be the end of the other: src/auth.py finds /home/me/app/src/auth.py and is found by it.
        ends = (
            "substr('/' || value, -length(?) - 1) = '/' || ? OR substr(?, -length(value) - 1) = '/' || value"
        )
        any_of = " OR ".join([ends] * len(filters.files))
        clauses.append(f"EXISTS (SELECT 1 FROM json_each(files) WHERE {any_of})")
        values += [file for file in filters.files for _ in range(3)]
    return clauses, values


# What search holds in RAM: see recall/corpus.py. Long lists of numbers travel as text that numpy parses at
# once, which is several times faster than fetching rows. store/documents.py has the same three functions.


def lines(db: Connection, first: int, last: int) -> str:
    """row, thread, turn, part, words, asks, state of each line in a range, in the order of rows; a piece of a
    turn is one too, and has the turn's state: 1 is deleted, 2 superseded."""
    return str(
        db.execute(
            "SELECT coalesce(group_concat(row || ',' || coalesce(thread, -1) || ',' || turn || ',' || part"
            " || ',' || words || ',' || question || ',' || state), '') FROM"
            f" (SELECT row, thread, -1 AS turn, (kind = 'tool') AS part, words, question, {_STATE} AS state"
            " FROM memories INDEXED BY memories_as_lines WHERE row BETWEEN ?1 AND ?2 AND kind <> 'turn'"
            " UNION ALL SELECT p.row, p.thread, p.turn, p.part, p.words, 0,"
            f" (SELECT {_STATE} FROM memories m WHERE m.row = p.turn)"
            " FROM turn_pieces p WHERE p.row BETWEEN ?1 AND ?2 ORDER BY row)",
            (first, last),
        ).fetchone()[0]
    )


def authors(db: Connection, first: int, last: int) -> list[tuple[int, str]]:
    found = tuples(db).execute(
        "SELECT row, author FROM memories INDEXED BY memories_said"
        " WHERE author IS NOT NULL AND row BETWEEN ? AND ?",
        (first, last),
    )
    return found.fetchall()


def texts(db: Connection, rows: Iterable[int]) -> list[tuple[int, str]]:
    """What the vector of each line is made of: the bare text, without date and author."""
    found = db.execute(
        "SELECT row, title, content FROM memory_lines WHERE row IN (SELECT value FROM json_each(?))",
        (json.dumps(list(rows)),),
    )
    return [
        (row["row"], "\n".join(filter(None, (row["title"], terms.bare(row["content"]))))) for row in found
    ]


TABLE = "memories"
LINES = "memory_lines"

_STATE = "(deleted_at IS NOT NULL) + 2 * (valid_until IS NOT NULL)"


def _list(items: Sequence[str | None]) -> str:
    return json.dumps(list(items), ensure_ascii=False)


def decayed(row: Row, now: int) -> float:
    return salience.decayed(row["salience"], row["sector"], row["importance"], row["last_accessed"], now)


def present(row: Row, now: int) -> float:
    return salience.present(decayed(row, now), row["access_count"])


def _memory(row: Row, now: int) -> Memory:
    from backstory.model import Memory

    lists = {name: tuple(json.loads(row[name])) for name in ("tags", "files", "hashes", "concepts")}
    return value(Memory, row, salience=present(row, now), **lists)
