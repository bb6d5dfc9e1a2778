"""What is known of a file and of a test: the turns that edited the one, and those that mended the other.

Also of all files and tests at once, for the lists that hooks look into before they start anything: nothing
here walks a table. Hooks read this, so nothing is loaded for it that a drain has not loaded.
"""

from __future__ import annotations

import json

from backstory.memory import failing_tests
from backstory.memory.salience import DAY_MS
from backstory.store import projects
from backstory.store.file.connection import marks, tuples

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from sqlite3 import Connection

    from backstory.model import Project

DAYS = 7  # so long ago at most a file was edited, or a test mended
FEW = 6  # turns: a file that was edited in more is one that everybody knows
FILES = 5_000  # paths that are listed
EDITS = 20_000  # of them that are looked at
MENDING = 500  # turns that are looked at
TESTS = 2_000  # names that are listed
COMMON = 0.15  # of the sessions: a branch that more began on is where everything happens
RARE_AT_LEAST, RARE_AT_MOST = 3, 300  # turns: a word that so many have is rare in any store, or never

_ALIVE = "m.deleted_at IS NULL AND m.valid_until IS NULL"


def editing(db: Connection, project: Project, path: str) -> list[tuple[str, str, int]]:
    """(turn, session, when it began) of a file's editing turns, the newest first; of many only some."""
    rows = tuples(db).execute(
        "SELECT m.id, t.session_id, t.started_at FROM edited_files e JOIN turns t ON t.row = e.turn"
        f" JOIN memories m ON m.row = e.turn WHERE e.path = ? AND e.turn BETWEEN ? AND ? AND {_ALIVE}"
        " ORDER BY t.started_at DESC LIMIT ?",
        (path, *projects.rows(project.number), 10 * FEW),
    )
    return [(memory_id, session_id or "", at) for memory_id, session_id, at in rows]


def is_touched(db: Connection, session_id: str, path: str) -> bool:
    """Whether a session has read or edited a file, as far as its events are stored."""
    rows = tuples(db).execute(
        "SELECT 1 FROM turns t WHERE t.session_id = ?1 AND ?2 IN (SELECT value FROM"
        " json_each(t.record, '$.read') UNION ALL SELECT value FROM json_each(t.record, '$.edited')) LIMIT 1",
        (session_id, path),
    )
    return rows.fetchone() is not None


def is_rare(db: Connection, project: Project, word: str) -> bool:
    """Whether at most a tenth of a project's turns have a word."""
    rows = projects.rows(project.number)
    many = tuples(db).execute("SELECT count(*) FROM turns WHERE row BETWEEN ? AND ?", rows).fetchone()
    most = min(max(int(many[0]) // 10, RARE_AT_LEAST), RARE_AT_MOST)
    having = tuples(db).execute(
        "SELECT count(DISTINCT p.turn) FROM (SELECT rowid FROM memories_fts WHERE memories_fts MATCH ?"
        " AND rowid BETWEEN ? AND ? LIMIT ?) f JOIN turn_pieces p ON p.row = f.rowid",
        (f'"{word}"', *rows, 10 * most),
    )
    return int(having.fetchone()[0]) <= most


def mending(db: Connection, project: Project | None, since: int) -> Iterator[tuple[str, str, int, list[str]]]:
    """(turn, session, when it began, tests) of turns in which named tests passed that had failed, the newest
    first; of a project or of all."""
    first, last = projects.rows(project.number) if project else (0, 1 << 62)
    rows = tuples(db).execute(
        "SELECT m.id, t.session_id, t.started_at, t.record -> 'passed' FROM turns t"
        " JOIN memories m ON m.row = t.row WHERE t.record ->> 'passed' IS NOT NULL AND t.started_at >= ?"
        f" AND +t.row BETWEEN ? AND ? AND {_ALIVE} ORDER BY t.started_at DESC LIMIT ?",
        (since, first, last, MENDING),
    )
    for memory_id, session_id, at, passed in rows:
        found = [name for _, error in json.loads(passed) for name in failing_tests.names(error)]
        if found:
            yield memory_id, session_id or "", at, found


def tests(db: Connection, now: int) -> list[str]:
    """Those that were mended in the last days, in all projects, the latest first."""
    found: dict[str, None] = {}
    for *_, names in mending(db, None, now - DAYS * DAY_MS):
        found.update(dict.fromkeys(names))
        if len(found) >= TESTS:
            break
    return list(found)[:TESTS]


def files(db: Connection, now: int) -> list[str]:
    """Whole paths of rarely edited files that were edited in the last days, in all checkouts of their
    projects; the latest first."""
    roots: dict[int, list[str]] = {}
    places = tuples(db).execute(
        "SELECT DISTINCT p.number, c.root FROM checkouts c JOIN projects p ON p.id = c.project_id"
        " WHERE p.paused_at IS NULL"
    )
    for number, root in places:
        roots.setdefault(number, []).append(root)
    rows = tuples(db).execute(
        "SELECT e.path, e.turn >> 32 FROM turns t JOIN memories m ON m.row = t.row"
        " CROSS JOIN edited_files e ON e.turn = t.row"
        f" WHERE t.started_at >= ? AND {_ALIVE} ORDER BY t.started_at DESC LIMIT ?",
        (now - DAYS * DAY_MS, EDITS),
    )
    found: dict[str, None] = {}
    for path, number in dict.fromkeys(rows):
        if number in roots and _is_rare(db, number, path):
            found.update((f"{root}/{path}", None) for root in roots[number])
        if len(found) >= FILES:
            break
    return list(found)[:FILES]


def _is_rare(db: Connection, number: int, path: str) -> bool:
    rows = tuples(db).execute(
        "SELECT count(*) FROM (SELECT 1 FROM edited_files WHERE path = ? AND turn BETWEEN ? AND ? LIMIT ?)",
        (path, *projects.rows(number), FEW + 1),
    )
    return int(rows.fetchone()[0]) <= FEW


def on_branch(db: Connection, project: Project, branch: str, session_ids: Collection[str]) -> set[str]:
    """Those of these sessions that were on a branch; none where so many of the project's sessions began on it
    that to be on it says nothing, whatever it is called."""
    share = "SELECT avg(branch IS ?) FROM sessions WHERE project_id = ?"
    if (tuples(db).execute(share, (branch, project.id)).fetchone()[0] or 0) > COMMON:
        return set()
    rows = tuples(db).execute(
        "SELECT DISTINCT session_id FROM turns"
        f" WHERE session_id IN ({marks(list(session_ids))}) AND record ->> 'branch' = ?",
        [*session_ids, branch],
    )
    return {session_id for (session_id,) in rows}


def attended(db: Connection, session_ids: Collection[str]) -> set[str]:
    """Those of these sessions in which a person was there."""
    rows = tuples(db).execute(
        f"SELECT id FROM sessions WHERE id IN ({marks(list(session_ids))}) AND attended = 1",
        list(session_ids),
    )
    return {session_id for (session_id,) in rows}


def told_sessions(db: Connection, session_id: str, moments: Collection[str]) -> set[str]:
    """Of which sessions this one was told something at such moments."""
    rows = tuples(db).execute(
        "SELECT DISTINCT m.session_id FROM tellings s JOIN told_memories t ON t.telling_id = s.id"
        " JOIN memories m ON m.id = t.memory_id"
        f" WHERE s.session_id = ? AND s.moment IN ({marks(list(moments))}) AND m.session_id IS NOT NULL",
        [session_id, *moments],
    )
    return {source for (source,) in rows}
