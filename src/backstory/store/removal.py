"""Erasing for good: what was forgotten at a moment is removed, with all that is of it, here and in backups.

To erase is to hide first (store/forgetting.py). Removing goes in chunks, so that others may write in between;
a kill leaves the rest hidden and marked as `erasing`, for the next run. Around the store, in files and
backups: surfaces/erasing.py.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from sqlite3 import DatabaseError

from backstory.errors import BadInput, Damaged
from backstory.store import families, forgetting, projects, tellings
from backstory.store.file import backup
from backstory.store.file.connection import Connection, own_tables, transaction, tuples, unhurried
from backstory.store.forgetting import Conditions, Forgetting, Preview

CHUNK = 500  # memories that are erased at a time


def begin_erasing(
    db: Connection, wanted: Conditions, now: int, *, everywhere: bool = False
) -> tuple[Forgetting, Preview]:
    """Hide all that fits, also what was hidden before, and note that it is to be erased: from now on there
    is no way back. `sweep` removes it. What has no hidden state is removed at once."""
    with transaction(db):
        seen = forgetting.preview(db, wanted, hard=True, shown=0)
        at = forgetting.moment(db, now)
        _hide_for_good(db, wanted, at)
        counts = seen.sessions, seen.turns, seen.memories
        return forgetting.note(db, wanted, at, counts, erasing="everywhere" if everywhere else "store"), seen


def _hide_for_good(db: Connection, wanted: Conditions, at: int) -> None:
    """What is chosen; and what cannot be hidden is removed."""
    forgetting.hide(db, at, hard=True)
    clause, values = forgetting.archived(wanted)
    ids = tuples(db).execute(f"SELECT a.id FROM archived_memories a WHERE {clause}", values).fetchall()
    tellings.blank(db, [row[0] for row in ids])
    db.execute(f"DELETE FROM archived_memories AS a WHERE {clause}", values)
    if wanted.match:
        told = forgetting.holding(db, families.of("tellings"))
        db.execute(f"UPDATE tellings AS q SET text = '', about = '' WHERE {told}", wanted.place)
    for family in families.FAMILIES if wanted.is_whole_project else ():
        if family.with_project:
            project = families.project_of(db, family.table, family.table)
            db.execute(f"DELETE FROM {family.table} WHERE {project} = ?", (wanted.project_id,))


def sweep(db: Connection, one: Forgetting) -> int:
    """Remove what was hidden at that moment, some memories at a time. How many they were."""
    unhurried(db)
    if one.conditions.is_retention:  # what was brought back by its id since, or forgotten apart, stays
        with transaction(db):
            db.execute(
                "UPDATE memories SET turn = NULL WHERE deleted_at IS NOT ?1"
                " AND turn IN (SELECT id FROM memories WHERE deleted_at = ?1)",
                (one.at,),
            )
    done = 0
    while True:
        with transaction(db):
            removed = _remove_memories(db, one.at)
        if not removed:
            break
        done += removed
    with transaction(db):
        _remove_others(db, one.at)
        if one.conditions.is_retention:  # told to sessions of which nothing else was ever stored
            db.execute(
                "DELETE FROM tellings WHERE at < ? AND session_id NOT IN (SELECT id FROM sessions)",
                (one.conditions.before,),
            )
    return done


def _remove_memories(db: Connection, at: int, most: int = CHUNK) -> int:
    """Memories that were hidden at that moment. What is of them goes by the references of the schema, their
    words and vectors by its triggers. Of turns the times are kept, so that nothing brings them back."""
    forgetting.empty_tables(db)
    db.execute(
        "INSERT INTO temp.chosen_memories SELECT row FROM memories WHERE deleted_at = ? LIMIT ?", (at, most)
    )
    db.execute(  # they go with their turn
        "INSERT OR IGNORE INTO temp.chosen_memories SELECT m.row FROM temp.chosen_memories c"
        " JOIN memories t ON t.row = c.key JOIN memories m ON m.turn = t.id"
    )
    db.execute(
        "INSERT INTO erased_spans (session_id, first_at, last_at, at) SELECT t.session_id, t.started_at,"
        # Until the next prompt, where it was going on.
        " iif((t.state = 'open' OR t.left_open_at IS NOT NULL) AND NOT EXISTS (SELECT 1 FROM turns later"
        " WHERE later.session_id = t.session_id AND later.started_at > t.started_at), NULL, t.ended_at), ?1"
        " FROM temp.chosen_memories c JOIN turns t ON t.row = c.key WHERE t.session_id IS NOT NULL"
        " ON CONFLICT DO UPDATE SET at = max(at, ?1), last_at ="
        " iif(last_at IS NULL OR excluded.last_at IS NULL, NULL, max(last_at, excluded.last_at))",
        (at,),
    )
    tellings.erase_chosen(db)
    return db.execute("DELETE FROM memories WHERE row IN temp.chosen_memories").rowcount


def _remove_others(db: Connection, at: int) -> None:
    """What else was hidden at that moment, and whole sessions: only that there were such is kept, by their
    ids. One that went on, or of which something was forgotten apart and may come back, stays."""
    for family in families.hiding():
        db.execute(f"DELETE FROM {family.table} WHERE {family.hidden} = ?", (at,))
    forgetting.empty_tables(db)
    db.execute(
        "INSERT INTO temp.chosen_sessions SELECT f.session_id FROM forgotten_sessions f WHERE f.at = ?"
        " AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.session_id = f.session_id)"
        " AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.session_id = f.session_id"
        " AND m.kind <> 'note' AND m.tier <> 'global')",
        (at,),
    )
    db.execute("DELETE FROM erased_spans WHERE session_id IN temp.chosen_sessions")
    db.execute(
        "INSERT INTO erased_spans (session_id, first_at, last_at, at)"
        " SELECT id, 0, NULL, ? FROM temp.chosen_sessions",
        (at,),
    )
    for family in families.FAMILIES:  # those that no reference takes along
        for column in family.owners:
            if family.owners[column] == "sessions":
                db.execute(f"DELETE FROM {family.table} WHERE {column} IN temp.chosen_sessions")
    db.execute("DELETE FROM sessions WHERE id IN temp.chosen_sessions")
    db.execute("DELETE FROM forgotten_sessions WHERE at = ?", (at,))


def erase_memory(db: Connection, memory_id: str, now: int) -> None:
    """One memory; what its text left elsewhere is for who goes on with it (surfaces/erasing.py)."""
    one, _ = begin_erasing(db, Conditions(ids=(memory_id,)), now)
    sweep(db, one)


def done_erasing(db: Connection, one: Forgetting) -> None:
    """Nothing is left of it, so nothing tells of it: neither its own words nor an earlier forgetting that
    has lost all it hid, or was looking for the same text."""
    hidden = [(family.table, family.hidden) for family in families.hiding()]
    with transaction(db):
        db.execute("DELETE FROM forgettings WHERE id = ?", (one.id,))
        nothing = (
            f"NOT EXISTS (SELECT 1 FROM {table} q WHERE q.{column} = forgettings.at)"
            for table, column in (*hidden, ("forgotten_sessions", "at"))
        )
        db.execute(f"DELETE FROM forgettings WHERE {' AND '.join(nothing)}")
        if one.conditions.match:
            forgetting.look_for(db, one.conditions.match)
            db.execute(
                "UPDATE forgettings SET conditions = json_set(conditions, '$.match', '[erased]')"
                " WHERE has_text(conditions ->> 'match')"
            )


def erase_in_copy(db: Connection, one: Forgetting, ids: Sequence[str], session_ids: Sequence[str]) -> bool:
    """Remove the same from a backup, at this version's schema and used by nobody else: what fits the
    conditions there, and what had these ids. Whether there was anything."""
    with transaction(db):
        before = db.total_changes
        forgetting.choose(db, one.conditions, hard=True)
        for into, table, given in ("memories", "memories m", ids), ("sessions", "sessions m", session_ids):
            key = "m.row" if into == "memories" else "m.id"
            db.execute(
                f"INSERT OR IGNORE INTO temp.chosen_{into} SELECT {key} FROM {table}"
                " WHERE m.id IN (SELECT value FROM json_each(?))",
                (json.dumps(list(given)),),
            )
        _hide_for_good(db, one.conditions, one.at)
        found = db.total_changes > before
        if found:
            _remove_all(db, one.at)
    return found


def _remove_all(db: Connection, at: int) -> None:
    _remove_memories(db, at, most=-1)
    _remove_others(db, at)


def hidden_ids(db: Connection, at: int) -> tuple[list[str], list[str]]:
    """The ids of memories and of sessions that were hidden at a moment: by them a backup is known."""
    ids = tuples(db).execute("SELECT id FROM memories WHERE deleted_at = ?", (at,)).fetchall()
    whole = tuples(db).execute("SELECT session_id FROM forgotten_sessions WHERE at = ?", (at,)).fetchall()
    return [row[0] for row in ids], [row[0] for row in whole]


def is_held(path: str, wanted: Conditions, ids: Sequence[str], session_ids: Sequence[str]) -> bool:
    """Does a backup, at whatever schema, hold any of these, or the text that was looked for?"""
    try:
        with backup.read_only(path) as db:
            forgetting.look_for(db, wanted.match or "")
            there = set(own_tables(db))
            given = [("memories", json.dumps(list(ids))), ("sessions", json.dumps(list(session_ids)))]
            queries: list[tuple[str, Sequence[object]]] = [
                (f"{table} WHERE id IN (SELECT value FROM json_each(?))", (among,)) for table, among in given
            ]
            for family in families.FAMILIES if wanted.match else ():
                if family.at and family.looked and family.table in there:  # it may be older than the table
                    place = wanted.project_id, None, None
                    queries.append((f"{family.table} q WHERE {forgetting.holding(db, family)}", place))
            return any(db.execute(f"SELECT 1 FROM {of} LIMIT 1", values).fetchone() for of, values in queries)
    except DatabaseError as error:
        raise Damaged(f"{path} cannot be read ({error})") from error


def erase_project(db: Connection, project_id: str, now: int) -> None:
    """A whole project with all that is its own, documents, trees and its name among it; what is global
    stays. In a transaction of the caller; the caller compacts the store (surfaces/erasing.py)."""
    if project_id == projects.GLOBAL:
        raise BadInput("what is global belongs to no project; forget single memories by their ids")
    wanted, at = Conditions(project_id=project_id), forgetting.moment(db, now)
    forgetting.choose(db, wanted, hard=True)
    _hide_for_good(db, wanted, at)
    _remove_all(db, at)
    db.execute("DELETE FROM projects WHERE id = ?", (project_id,))
