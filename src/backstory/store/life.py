"""The life of a memory: it gains and loses salience, is replaced, forgotten, brought back, archived.

Every function but `prune` expects to run inside a transaction and takes the id of a memory that is there;
`known` and `living` are how a surface makes sure of that.
"""

from __future__ import annotations

import json

from backstory.errors import BadInput, NotFound
from backstory.memory import salience
from backstory.store import memories, projects
from backstory.store.file.connection import marks, transaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from sqlite3 import Connection, Row
    from typing import Any


def known(db: Connection, memory_id: str, project_ids: Sequence[str] | None = None) -> str:
    """The id, if there is such a memory, in these projects where they matter."""
    row = db.execute("SELECT project_id FROM memories WHERE id = ?", (memory_id,)).fetchone()
    if row is None and project_ids is None and archived(db, memory_id):
        raise NotFound(f"{memory_id} is archived; `backstory restore {memory_id}` brings it back")
    if row is None or (project_ids is not None and row["project_id"] not in project_ids):
        raise NotFound(f"there is no memory {memory_id[:60]!r}; a search shows the ids there are")
    return memory_id


def living(db: Connection, memory_id: str, project_ids: Sequence[str] | None = None) -> str:
    """The same, and it was not forgotten."""
    row = _row(db, known(db, memory_id, project_ids))
    if row is not None and row["deleted_at"] is not None:
        raise NotFound(f"{memory_id} was forgotten; `backstory restore {memory_id}` brings it back")
    return memory_id


def reinforce(
    db: Connection,
    memory_id: str,
    amount: float,
    session_id: str | None,
    now: int,
) -> None:
    """Strengthen a memory from what it is worth now."""
    _amount(amount)
    row = _row(db, known(db, memory_id))
    assert row is not None  # noqa: S101  known a line ago, in the same transaction
    _strengthen(db, row, amount, now)
    memories.link(db, session_id, memory_id, "reinforced", now)


def recall(db: Connection, ids: Sequence[str], session_id: str | None, now: int) -> None:
    """A search found these: each is strengthened a little. One that was erased meanwhile is left out."""
    rows = db.execute(f"SELECT * FROM memories WHERE id IN ({marks(ids)})", list(ids))
    known = {row["id"]: row for row in rows}
    for memory_id in filter(known.__contains__, ids):
        _strengthen(db, known[memory_id], salience.RECALLED, now)
        memories.link(db, session_id, memory_id, "recalled", now)


def _strengthen(db: Connection, row: Row, amount: float, now: int) -> None:
    stored = salience.reinforced(memories.decayed(row, now), amount)
    db.execute(
        "UPDATE memories SET salience = ?, access_count = access_count + 1, last_accessed = ? WHERE id = ?",
        (stored, now, row["id"]),
    )


def deemphasize(db: Connection, memory_id: str, amount: float, session_id: str | None, now: int) -> None:
    """Weaken a memory from what it is worth now."""
    _amount(amount)
    row = _row(db, known(db, memory_id))
    assert row is not None  # noqa: S101  known a line ago, in the same transaction
    stored = salience.deemphasized(memories.decayed(row, now), row["access_count"], amount)
    db.execute(
        "UPDATE memories SET salience = ?, last_accessed = ?, updated_at = ?2 WHERE id = ?3",
        (stored, now, memory_id),
    )
    memories.link(db, session_id, memory_id, "updated", now)


def promote(db: Connection, session_id: str, now: int) -> None:
    """At a session's end, what turned out to matter stays with the project."""
    rows = db.execute(
        "SELECT * FROM memories WHERE session_id = ? AND tier = 'session' AND deleted_at IS NULL",
        (session_id,),
    )
    worthy = [(now, row["id"]) for row in rows if memories.present(row, now) > salience.PROMOTED_ABOVE]
    db.executemany("UPDATE memories SET tier = 'project', updated_at = ? WHERE id = ?", worthy)


def forget(db: Connection, memory_id: str, session_id: str | None, now: int) -> None:
    """Out of every answer, but not gone; of a turn, what was made of it as well."""
    from backstory.store import forgetting  # a hook that drains has no need of it

    forgetting.forget_memory(db, memory_id, now)
    memories.link(db, session_id, memory_id, "updated", now)


def restore(db: Connection, memory_id: str, session_id: str | None, now: int) -> None:
    """Bring back what was forgotten, superseded or archived."""
    if memory := _archived(db, memory_id):
        del memory["archived_at"]
        memory["row"] = projects.next_row(db, memory["project_id"])  # for those who have seen all up to now
        memory["last_accessed"] = now  # or it would be stale again tomorrow
        memory["deleted_at"] = None
        columns, values = ", ".join(memory), list(memory.values())
        db.execute(f"INSERT INTO memories ({columns}) VALUES ({marks(values)})", values)
        db.execute("DELETE FROM archived_memories WHERE id = ?", (memory_id,))
        memories.link(db, memory["session_id"], memory_id, "created", memory["created_at"])
    else:
        row = _row(db, known(db, memory_id))
        if row is None or (row["deleted_at"] is None and row["valid_until"] is None):
            raise BadInput(f"{memory_id} was neither forgotten, superseded nor archived; it is there")
        if row["deleted_at"] is not None:  # forgotten last, so that is what is undone
            from backstory.store import forgetting

            forgetting.restore_memory(db, memory_id, row["deleted_at"], now)
        else:
            db.execute(
                "DELETE FROM memory_relationships WHERE target_id = ? AND relationship_type = 'SUPERSEDES'",
                (memory_id,),
            )
            db.execute(
                "UPDATE memories SET valid_until = NULL, updated_at = ? WHERE id = ?", (now, memory_id)
            )
    memories.link(db, session_id, memory_id, "updated", now)


def supersede(
    db: Connection,
    old_id: str,
    new_id: str,
    session_id: str | None,
    now: int,
    said_by: str,
    confidence: float = 1.0,
) -> None:
    """The new memory, which must be a living one, replaces the old one from now on."""
    living(db, new_id)
    if old_id == new_id:
        raise BadInput("a memory cannot supersede itself; give the id of the new one as well")
    if old_id in _chain(db, new_id):
        raise BadInput(
            f"{old_id} supersedes {new_id} already, directly or in a chain; restore {new_id} first"
        )
    db.execute(
        "INSERT INTO memory_relationships (source_id, target_id, relationship_type, said_by, confidence,"
        " created_at) VALUES (?, ?, 'SUPERSEDES', ?, ?, ?) ON CONFLICT DO NOTHING",
        (new_id, old_id, said_by, confidence, now),
    )
    db.execute(
        "UPDATE memories SET valid_until = coalesce(valid_until, ?1), updated_at = ?1 WHERE id = ?2",
        (now, old_id),
    )
    memories.link(db, session_id, old_id, "updated", now)
    memories.link(db, session_id, new_id, "updated", now)


def successors(db: Connection, ids: Sequence[str]) -> dict[str, str]:
    """By what each of these memories was superseded, the latest word of a chain."""
    found: dict[str, str] = {}
    for memory_id in ids:
        row = db.execute(
            "WITH RECURSIVE later (id, depth) AS (SELECT ?1, 0 UNION"
            " SELECT source_id, depth + 1 FROM memory_relationships JOIN later ON target_id = later.id"
            " WHERE relationship_type = 'SUPERSEDES' AND depth < 1000)"
            " SELECT id FROM later WHERE depth > 0 ORDER BY depth DESC LIMIT 1",
            (memory_id,),
        ).fetchone()
        if row:
            found[memory_id] = row["id"]
    return found


def relations(db: Connection, memory_id: str) -> list[tuple[str, str, str]]:
    """(source, relation, target) of all that has to do with a memory."""
    rows = db.execute(
        "SELECT source_id, relationship_type, target_id FROM memory_relationships"
        " WHERE source_id = ?1 OR target_id = ?1 ORDER BY created_at, source_id, target_id",
        (memory_id,),
    )
    return [(row["source_id"], row["relationship_type"], row["target_id"]) for row in rows]


def built_on(db: Connection, ids: Sequence[str]) -> dict[str, str]:
    """Of what each of these memories was made, where that is noted."""
    rows = db.execute(
        "SELECT source_id, target_id FROM memory_relationships WHERE relationship_type = 'BUILDS_ON'"
        f" AND source_id IN ({marks(ids)})",
        list(ids),
    )
    return {row["source_id"]: row["target_id"] for row in rows}


def related(db: Connection, ids: Sequence[str]) -> dict[str, int]:
    """How many memories each of these has to do with."""
    counted: dict[str, int] = {}
    for memory_id in ids:
        row = db.execute(
            "SELECT count(*) FROM memory_relationships WHERE source_id = ?1 OR target_id = ?1", (memory_id,)
        ).fetchone()
        counted[memory_id] = row[0]
    return counted


def faded(db: Connection, now: int, limit: int | None = 1_000) -> list[str]:
    """Traces of past sessions that faded and that nothing refers to, longest untouched first."""
    found: list[str] = []
    for row in db.execute(
        "SELECT * FROM memories WHERE kind = 'tool' AND tier = 'session' AND last_accessed < ?"
        " AND deleted_at IS NULL"  # or undoing what forgot it would not find it
        " AND NOT EXISTS (SELECT 1 FROM memory_relationships WHERE source_id = id OR target_id = id)"
        " ORDER BY last_accessed",
        (now - salience.FADED_DAYS * salience.DAY_MS,),
    ):
        if memories.present(row, now) < salience.FADED_BELOW:
            found.append(row["id"])
        if limit is not None and len(found) >= limit:
            break
    return found


def prune(db: Connection, now: int) -> int:
    """Archive all that faded, some at a time so that others may write in between; how many they were."""
    done = 0
    while True:
        with transaction(db):
            found = faded(db, now)
            archive(db, found, now)
        if not found:
            return done
        done += len(found)


def archive(db: Connection, ids: Sequence[str], now: int) -> None:
    """Out of search and its indexes, whole, to be restored by id."""
    columns = [row["name"] for row in db.execute("PRAGMA table_info(memories)") if row["name"] not in APART]
    for memory_id in ids:
        row = _row(db, memory_id)
        if row is None:
            continue  # another process was faster
        db.execute("DELETE FROM memories WHERE id = ?", (memory_id,))  # with what waits of it
        db.execute(
            f"INSERT INTO archived_memories ({', '.join(APART)}, archived_at, memory)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (*(row[name] for name in APART), now, json.dumps({name: row[name] for name in columns})),
        )


def archived(db: Connection, memory_id: str) -> dict[str, object] | None:
    memory = _archived(db, memory_id)
    if memory is None:
        return None
    return memory | {name: json.loads(memory[name]) for name in ("tags", "concepts", "files", "hashes")}


# The columns that an archived memory has beside the rest of it.
APART = ("id", "project_id", "session_id", "turn")


def _archived(db: Connection, memory_id: str) -> dict[str, Any] | None:
    """An archived memory as it was, and when it was archived."""
    row = db.execute("SELECT * FROM archived_memories WHERE id = ?", (memory_id,)).fetchone()
    if row is None:
        return None
    memory: dict[str, Any] = json.loads(row["memory"])
    return memory | {name: row[name] for name in (*APART, "archived_at")}


def _chain(db: Connection, memory_id: str) -> set[str]:
    """All that came after a memory: what superseded it, and what superseded that."""
    rows = db.execute(
        "WITH RECURSIVE later (id) AS (SELECT source_id FROM memory_relationships"
        " WHERE target_id = ? AND relationship_type = 'SUPERSEDES' UNION"
        " SELECT source_id FROM memory_relationships JOIN later ON target_id = later.id"
        " WHERE relationship_type = 'SUPERSEDES') SELECT id FROM later",
        (memory_id,),
    )
    return {row["id"] for row in rows}


def _amount(amount: float) -> None:
    if not 0 < amount <= 1:
        raise BadInput(f"amount is {amount:g}; it must be above 0 and at most 1")


def _row(db: Connection, memory_id: str) -> Row | None:
    row: Row | None = db.execute("SELECT * FROM memories WHERE id = ?", (memory_id,)).fetchone()
    return row
