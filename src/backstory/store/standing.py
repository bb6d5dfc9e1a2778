"""What the brief at a session's start reads: what stands in a project, its last sessions, a session's thread.

The user waits for this, so nothing here walks the traces: every question is asked of an index, and none
brings more than a bounded number of rows. Values are plain classes: a hook does not load dataclasses.
"""

from __future__ import annotations

import json

from backstory.store.file.connection import tuples

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from backstory.memory.turn import Turn
    from backstory.store.file.connection import Connection

    # Session, when the turn began, what was asked, branch, git's head then, [sha, subject, files] of commits.
    RecentTurn = tuple[str, int, str, str | None, str | None, list[tuple[str, str, list[str]]]]

NEWEST = 500  # memories of a kind that are looked at
SESSIONS = 50  # in which a branch is looked for
TURNS = 1_000  # of them
BEGINNING = 300  # characters of a turn
TEXT = 1_500  # characters of any text; a line of the brief has far less room

_ALIVE = "m.deleted_at IS NULL AND m.valid_until IS NULL"


class Standing:
    """What ranking needs to know of a memory."""

    __slots__ = (
        "access_count branch created_at id importance kind last_accessed salience sector session_id"
    ).split()

    def __init__(
        self,
        id: str,
        kind: str,
        session_id: str | None,
        sector: str,
        importance: float,
        salience: float,
        access_count: int,
        last_accessed: int,
        created_at: int,
        branch: str | None,
    ) -> None:
        self.id = id
        self.kind = kind
        self.session_id = session_id
        self.sector = sector
        self.importance = importance
        self.salience = salience  # as stored
        self.access_count = access_count
        self.last_accessed = last_accessed
        self.created_at = created_at
        self.branch = branch


class Content:
    """What a memory says, and about which files."""

    __slots__ = ("content", "created_at", "files", "hashes", "id", "title")

    def __init__(
        self, id: str, title: str | None, content: str, files: str, hashes: str, created_at: int
    ) -> None:
        self.id = id
        self.title = title
        self.content = content
        self.files: list[str] = json.loads(files)
        self.hashes: list[str | None] = json.loads(hashes)
        self.created_at = created_at


class Outcome:
    """A session of which something can be said: what its summary says, where it has one, and its turns."""

    __slots__ = (
        "branch completed latest_at learned made_by next_steps request session_id started_at summary_id turns"
    ).split()

    def __init__(
        self,
        session_id: str,
        started_at: int,
        latest_at: int,
        branch: str | None,
        summary_id: str | None,
        request: str | None = None,
        learned: str | None = None,
        completed: str | None = None,
        next_steps: str | None = None,
        made_by: str | None = None,
    ) -> None:
        self.session_id = session_id
        self.started_at = started_at
        self.latest_at = latest_at  # when its last turn began
        self.branch = branch
        self.summary_id = summary_id
        self.request = request
        self.learned = learned
        self.completed = completed
        self.next_steps = next_steps
        self.made_by = made_by  # the synthesizer that made the summary
        self.turns: list[Turn] = []  # oldest first, once they were read


def newest(db: Connection, project_id: str, kind: str, attended: bool) -> list[Standing]:
    """The newest living memories of a kind, with the branch they came from. Of sessions that nobody attended:
    notes, and the others where no other sessions are told of; but nobody prefers anything there."""
    rows = tuples(db).execute(
        "SELECT m.id, m.kind, m.session_id, m.sector, m.importance, m.salience, m.access_count,"
        " m.last_accessed, m.created_at, s.branch FROM memories m LEFT JOIN sessions s ON s.id = m.session_id"
        # The condition on kinds is the index's own.
        " WHERE m.project_id = ? AND m.kind = ? AND m.kind <> 'tool'"
        " AND (s.attended IS NOT 0 OR m.kind = 'note' OR NOT ? AND m.kind <> 'preference')"
        f" AND {_ALIVE} ORDER BY m.created_at DESC, m.row DESC LIMIT ?",
        (project_id, kind, attended, NEWEST),
    )
    return [Standing(*row) for row in rows]


def told(db: Connection, ids: Sequence[str]) -> dict[str, Content]:
    """What these memories say, by id."""
    rows = tuples(db).execute(
        f"SELECT id, title, substr(content, 1, {TEXT}) AS content, files, hashes, created_at FROM memories"
        " WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(ids)),),
    )
    return {row[0]: Content(*row) for row in rows}


# The columns of an Outcome. Of a summary that was forgotten nothing is left.
_OUTCOME = (
    "SELECT s.id, s.started_at, coalesce((SELECT t.started_at FROM turns t WHERE t.session_id = s.id"
    " ORDER BY t.started_at DESC LIMIT 1), s.started_at), s.branch, m.id,"
    f" iif(m.id IS NULL, NULL, substr(y.request, 1, {TEXT})),"
    f" iif(m.id IS NULL, NULL, substr(y.learned, 1, {TEXT})),"
    f" iif(m.id IS NULL, NULL, substr(y.completed, 1, {TEXT})),"
    f" iif(m.id IS NULL, NULL, substr(y.next_steps, 1, {TEXT})), y.made_by"
    " FROM sessions s LEFT JOIN session_summaries y ON y.session_id = s.id"
    f" LEFT JOIN memories m ON m.id = y.memory_id AND {_ALIVE}"
)
_OF_TURN = f"FROM turns t JOIN memories m ON m.row = t.row WHERE t.session_id = s.id AND {_ALIVE}"


def last_sessions(db: Connection, project_id: str, but: str, attended: bool, limit: int) -> list[Outcome]:
    """The last sessions of a project that something can be said of, newest first: those of a person, or those
    that nobody attended. All in this store is the user's own; in a shared one, whose they are is asked here.
    """
    rows = tuples(db).execute(
        f"{_OUTCOME} WHERE s.project_id = ? AND s.attended = ? AND s.id <> ?"
        f" AND (m.id IS NOT NULL OR EXISTS (SELECT 1 {_OF_TURN}))"
        " ORDER BY s.started_at DESC, s.rowid DESC LIMIT ?",
        (project_id, attended, but, limit),
    )
    found = [Outcome(*row) for row in rows]
    return sorted(found, key=lambda one: -one.latest_at)  # an older one may have been gone on with


def last_on_branch(
    db: Connection, project_id: str, but: str, attended: bool, branch: str
) -> tuple[str, int] | None:
    """The last session with a turn on a branch, and when that turn began. Where the session started does not
    say it: branches are made and changed on the way."""
    rows = tuples(db).execute(
        f"SELECT s.id, (SELECT t.started_at {_OF_TURN} AND t.record ->> 'branch' = ?"
        " ORDER BY t.started_at DESC LIMIT 1) FROM sessions s"
        " WHERE s.project_id = ? AND s.attended = ? AND s.id <> ? ORDER BY s.started_at DESC LIMIT ?",
        (branch, project_id, attended, but, SESSIONS),
    )
    found = [(session_id, at) for session_id, at in rows if at is not None]
    return max(found, key=lambda one: one[1], default=None)  # one that was resumed may have begun earlier


def recent_turns(db: Connection, project_id: str, but: str, attended: bool) -> list[RecentTurn]:
    """Turns of the last sessions, the newest first."""
    rows = tuples(db).execute(
        f"SELECT t.session_id, t.started_at, substr(t.record ->> '$.prompts[0][0]', 1, {BEGINNING}),"
        " t.record ->> 'branch',"
        " t.record ->> 'head', t.record ->> 'commits' FROM (SELECT s.id FROM sessions s"
        " WHERE s.project_id = ? AND s.attended = ? AND s.id <> ? ORDER BY s.started_at DESC LIMIT ?) recent"
        " CROSS JOIN turns t ON t.session_id = recent.id JOIN memories m ON m.row = t.row"
        f" WHERE {_ALIVE} LIMIT ?",
        (project_id, attended, but, SESSIONS, TURNS),
    )
    found = [
        (session, at, asked or "", branch, head, json.loads(commits) if commits else [])
        for session, at, asked, branch, head, commits in rows
    ]
    return sorted(found, key=lambda turn: -turn[1])


def note(db: Connection, session_id: str, ids: Sequence[str], now: int) -> None:
    """These memories were shown to the session. One that was erased a moment ago has nothing to link."""
    db.execute(
        "INSERT INTO session_memories (session_id, memory_id, usage_type, created_at)"
        " SELECT s.id, m.id, 'recalled', ?3 FROM sessions s, json_each(?2) shown"
        " JOIN memories m ON m.id = shown.value WHERE s.id = ?1"
        " ON CONFLICT DO UPDATE SET created_at = excluded.created_at",
        (session_id, json.dumps(list(ids)), now),
    )
