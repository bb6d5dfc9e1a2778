"""Projects: whose memories these are.

A project is known by the root commits of its repository and by where that is pushed to; outside git, and as
long as there is no commit, by its path. `checkouts` notes where projects lie, so that mostly a look at one
row is enough. Where a path is new, or its repository is another than before (`Place.mark`), `id_at` asks what
a repository can prove at once: that it has the root commits of a project that is pushed to the same place, or
that was moved, or cloned from a folder that is known. Everything else waits until a drain has walked the
history (intake/checkouts.py), and `settle` knows the root commits themselves.

    same root commits, and the same remote or one of them without   the same project
    same root commits, both without a remote                        the same, if the first one is gone
    same root commits, another remote                               another: a fork, or made from a template
    a shallow clone, which has no root commit                       by its remote, if it has a commit we know
    more than one project fits                                      none of them, until somebody says which
"""

from __future__ import annotations

import os

from backstory import paths
from backstory.ids import new_id
from backstory.store import counts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from sqlite3 import Connection, Row

    from backstory.model import Project, ProjectOverview
    from backstory.paths import Place


GLOBAL = "global"
GONE = "gone"  # the mark of a checkout whose folder is not there
KNOWN_COMMITS = 500  # by which a shallow clone may be known


def ensure(db: Connection, place: Place, now: int) -> str:
    """The id of the project at this place, new or known. Expects to run inside a transaction."""
    project_id = id_at(db, place)
    if project_id is None:
        project_id = create(db, place.name, place.root, now)
    row = _checkout(db, place)
    if row is None:
        attach(db, place, project_id, now)
    elif (row["project_id"], row["root"]) != (project_id, place.root) or _is_another(row, place):
        # It is looked at again; a person's word stands.
        db.execute(
            "UPDATE checkouts SET project_id = ?2, root = ?3, seen_at = max(seen_at, ?4),"
            " mark = iif(said_by = 'user', ?5, NULL) WHERE path = ?1",
            (place.location, project_id, place.root, now, place.mark),
        )
    if row is not None and row["project_id"] == project_id:  # a new one has only proved what it could at once
        db.execute("UPDATE projects SET root = ?2 WHERE id = ?1 AND root <> ?2", (project_id, place.root))
    return project_id


def create(db: Connection, name: str, root: str, now: int) -> str:
    project_id = new_id("prj_")
    db.execute(
        "INSERT INTO projects (id, identity, name, root, created_at) VALUES (?1, ?1, ?2, ?3, ?4)",
        (project_id, name, root, now),
    )
    return project_id


def attach(db: Connection, place: Place, project_id: str, now: int, *, said_by: str = "rule") -> None:
    """From now on this place is the project's."""
    mark = place.mark if said_by == "user" else None
    db.execute(
        "INSERT INTO checkouts (path, project_id, root, mark, said_by, seen_at) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET project_id = excluded.project_id, root = excluded.root,"
        " mark = excluded.mark, said_by = excluded.said_by, seen_at = excluded.seen_at",
        (place.location, project_id, place.root, mark, said_by, now),
    )


def pause(db: Connection, project_id: str | None, now: int) -> None:
    """From now on nothing that happens there is stored; None: in no project."""
    if db.execute("SELECT 1 FROM pauses WHERE project_id IS ? AND last_at IS NULL", (project_id,)).fetchone():
        return
    db.execute("INSERT INTO pauses (project_id, first_at) VALUES (?, ?)", (project_id, now))
    db.execute("UPDATE projects SET paused_at = ? WHERE id = ?", (now, project_id))


def resume(db: Connection, project_id: str | None, now: int) -> None:
    """It is stored again; None: whatever was paused."""
    of = "(?1 IS NULL OR project_id = ?1)"
    db.execute(f"UPDATE pauses SET last_at = ?2 WHERE last_at IS NULL AND {of}", (project_id, now))
    db.execute("UPDATE projects SET paused_at = NULL WHERE ?1 IS NULL OR id = ?1", (project_id,))


def is_paused(db: Connection, project_id: str, at: int) -> bool:
    """Whether nothing was to be kept at that time. Of an imported project only its own column says so."""
    row = db.execute(
        "SELECT 1 FROM projects WHERE id = ?1 AND paused_at <= ?2 UNION ALL SELECT 1 FROM pauses"
        " WHERE (project_id IS NULL OR project_id = ?1) AND first_at <= ?2 AND coalesce(last_at, ?2) >= ?2",
        (project_id, at),
    ).fetchone()
    return row is not None


def paused(db: Connection) -> list[tuple[str | None, str, int]]:
    """(id, name, since) of what is paused now; where that is everything, without an id."""
    rows = db.execute(
        "SELECT NULL, 'everything', first_at FROM pauses WHERE project_id IS NULL AND last_at IS NULL"
        " UNION ALL SELECT id, name, paused_at FROM projects WHERE paused_at IS NOT NULL"
    )
    return [tuple(row) for row in rows]


def folders(db: Connection, project_id: str) -> list[tuple[str, str]]:
    """(location, root) of all places where a project lies or lay."""
    rows = db.execute("SELECT path, root FROM checkouts WHERE project_id = ? ORDER BY path", (project_id,))
    return [(row["path"], row["root"]) for row in rows]


def attach_below(db: Connection, folder: str, project_id: str) -> None:
    """What lies in a folder is the project's, because a person said so."""
    db.execute(
        "UPDATE checkouts SET project_id = ?2, said_by = 'user'"
        " WHERE substr(root || '/', 1, length(?1)) = ?1",
        (f"{folder.rstrip('/')}/", project_id),
    )


# --- which one ----------------------------------------------------------------------------------------------


def id_at(db: Connection, place: Place) -> str | None:
    """The project at this place, as far as that can be said without a walk through its history."""
    row = _checkout(db, place)
    if row is not None and not _is_another(row, place):
        return str(row["project_id"])
    if row is not None and _is_still(_row(db, row["project_id"]), row, place):
        return str(row["project_id"])
    if place.common is None:
        return _gone_from(db, place) if row is None else None
    return _proved(db, place) or (_before_git(db, place) if row is None else None)


def _checkout(db: Connection, place: Place) -> Row | None:
    row: Row | None = db.execute("SELECT * FROM checkouts WHERE path = ?", (place.location,)).fetchone()
    return row


def _is_another(checkout: Row, place: Place) -> bool:
    """Whether the repository at a known path may be another than when it was looked at."""
    is_noted = checkout["said_by"] == "user" or checkout["mark"] in (None, place.mark)
    return place.common is not None and not is_noted


def _is_still(project: Row, checkout: Row, place: Place) -> bool:
    """Whether the repository at a known path is the project's, though something about it is new: its first
    commit, its remote. One that was put there anew is a fork if it is pushed elsewhere."""
    if not project["roots"]:
        return True
    is_moved = str(checkout["mark"]).partition(" ")[0] == str(paths.inode(place.common or ""))
    remotes = {project["remote"], place.remote} - {""}
    return (is_moved or len(remotes) < 2) and _has(place, project["roots"])


def _gone_from(db: Connection, place: Place) -> str | None:
    """A folder of the past, which is not there any more: the project that lay there."""
    if os.path.isdir(place.root):
        return None
    rows = db.execute("SELECT DISTINCT project_id AS id FROM checkouts WHERE root = ?", (place.root,))
    return _only(rows)


def _before_git(db: Connection, place: Place) -> str | None:
    """A folder that is under git now, and was not when it became a project."""
    row = db.execute(
        "SELECT p.id FROM checkouts c JOIN projects p ON p.id = c.project_id"
        " WHERE c.path = ? AND p.roots = ''",
        (place.root,),
    ).fetchone()
    return str(row["id"]) if row else None


def _proved(db: Connection, place: Place) -> str | None:
    """The one project of which this repository has the root commits, if something else says so too: that it
    is pushed to the same place, that its folder is the one that was moved, or the one it was cloned from."""
    same_remote = "remote = ?1 AND remote <> ''"
    if place.is_shallow:
        rows = db.execute(f"SELECT * FROM projects WHERE {same_remote}", (place.remote,)).fetchall()
        return _only(row for row in rows if _shares_a_commit(db, place, row["id"]))
    rows = db.execute(
        f"SELECT *, {same_remote} AS is_same, EXISTS (SELECT 1 FROM checkouts c WHERE c.project_id = id"
        " AND (c.mark LIKE ?2 || ' %' OR c.root = ?1)) AS is_near FROM projects"
        f" WHERE roots <> '' AND ({same_remote} OR ?1 = '' OR remote = '')",
        (place.remote, str(paths.inode(place.common or ""))),
    ).fetchall()
    for how in ("is_same", "is_near"):
        likely = [row for row in rows if row[how]]
        if likely:
            return _only(row for row in likely if _has(place, row["roots"]))
    return None


def _only(rows: Iterable[Row]) -> str | None:
    ids = [str(row["id"]) for row in rows]
    return ids[0] if len(ids) == 1 else None


def _has(place: Place, roots: str) -> bool:
    """Whether a repository has these commits, and not only says so."""
    from backstory import git_objects  # where a checkout is known nobody asks

    objects = paths.inside(place.common, "objects") if place.common else ""
    return bool(objects) and all(git_objects.commit(objects, one) for one in roots.split(","))


def _shares_a_commit(db: Connection, place: Place, project_id: str) -> bool:
    """A shallow clone has no root commit. Its newest one is known where somebody worked on it before; without
    that, the rest may be made up."""
    if place.head is None or not _has(place, place.head):
        return False
    rows = db.execute(
        "SELECT head FROM sessions WHERE project_id = ?1 AND head IS NOT NULL UNION"
        " SELECT * FROM (SELECT t.record ->> 'head' FROM turns t JOIN memories m ON m.row = t.row"
        " WHERE m.project_id = ?1 ORDER BY t.row DESC LIMIT ?2)",
        (project_id, KNOWN_COMMITS),
    )
    return place.head in {row[0] for row in rows}


# --- what a walk through the history has found --------------------------------------------------------------


def unread(db: Connection, most: int) -> list[tuple[str, str]]:
    """(path, root) of checkouts whose history nobody has looked at, the latest first."""
    rows = db.execute(
        "SELECT path, root FROM checkouts WHERE mark IS NULL ORDER BY seen_at DESC, path LIMIT ?", (most,)
    )
    return [(row["path"], row["root"]) for row in rows]


def note_mark(db: Connection, path: str, mark: str) -> None:
    db.execute("UPDATE checkouts SET mark = ?2 WHERE path = ?1", (path, mark))


def settle(
    db: Connection, place: Place, roots: Sequence[str], now: int
) -> tuple[str, str, list[str] | None] | None:
    """The root commits of this place are known now: note whose it is. Where it turns out to be another
    project's: (the one that had it, the other, sessions that go along; None: all there is)."""
    row = _checkout(db, place)
    if row is None:
        return None
    note_mark(db, place.location, place.mark)
    was = _row(db, row["project_id"])
    found, known = set(roots), set(filter(None, was["roots"].split(",")))
    if not found or row["said_by"] == "user":
        if not known:
            _know(db, was["id"], found, place.remote)
        return None
    # A repository may grow another root. One whose history has not the roots that it proved is another.
    other = None if known and known <= found else _with(db, found, place.remote, was["id"])
    if other is None and known <= found:
        _know(db, was["id"], found, place.remote)
        db.execute("UPDATE projects SET root = ?2 WHERE id = ?1", (was["id"], place.root))
        return None
    if other is None:
        other = create(db, place.name, place.root, now)
        _know(db, other, found, place.remote)
    db.execute("UPDATE checkouts SET project_id = ?2 WHERE path = ?1", (place.location, other))
    db.execute("UPDATE projects SET root = ?2 WHERE id = ?1", (other, place.root))
    latest = db.execute(
        "SELECT root FROM checkouts WHERE project_id = ? ORDER BY seen_at DESC", (was["id"],)
    ).fetchone()
    if latest is None and not known:  # it was thought to be a project of its own
        return was["id"], other, None
    if latest is not None:
        db.execute("UPDATE projects SET root = ?2 WHERE id = ?1", (was["id"], latest["root"]))
    rows = db.execute(
        "SELECT id FROM sessions WHERE project_id = ?1 AND started_at >= ?2"
        " AND substr(cwd || '/', 1, length(?3)) = ?3",
        (was["id"], row["seen_at"], f"{place.root}/"),
    )
    return was["id"], other, [one["id"] for one in rows]


def _with(db: Connection, roots: Collection[str], remote: str, but: str) -> str | None:
    """The one project with these root commits, and this remote; else the one where either has none."""
    wanted = ",".join(sorted(roots))
    rows = db.execute("SELECT * FROM projects WHERE roots = ? AND id <> ?", (wanted, but)).fetchall()
    same = [row for row in rows if row["remote"] == remote and (remote or _is_gone(db, row["id"]))]
    return _only(same or [row for row in rows if bool(remote) != bool(row["remote"])])


def _is_gone(db: Connection, project_id: str) -> bool:
    """A copy beside the first one, neither pushed anywhere, is its own project; what was moved is not."""
    rows = db.execute("SELECT root FROM checkouts WHERE project_id = ?", (project_id,))
    return not any(os.path.isdir(row["root"]) for row in rows)


def _know(db: Connection, project_id: str, roots: Collection[str], remote: str) -> None:
    db.execute(
        # A folder that somebody cloned from is a worse name than a place on the network.
        "UPDATE projects SET roots = iif(?2 = '', roots, ?2),"
        " remote = iif(?3 = '' OR (?3 LIKE '/%' AND remote <> ''), remote, ?3) WHERE id = ?1",
        (project_id, ",".join(sorted(roots)), remote),
    )


# --- reading ------------------------------------------------------------------------------------------------


def ensure_global(db: Connection, now: int) -> str:
    """The id of the project that every project's searches include: what is about the user, not the code."""
    db.execute(
        "INSERT INTO projects (id, identity, name, root, created_at) VALUES (?1, ?1, ?1, '', ?2)"
        " ON CONFLICT DO NOTHING",
        (GLOBAL, now),
    )
    return GLOBAL


def ranges(db: Connection, project: Project | None) -> list[tuple[int, int]]:
    """Where this project's lines are, and the user's global ones."""
    row = db.execute("SELECT number FROM projects WHERE id = ?", (GLOBAL,)).fetchone()
    numbers = [project.number if project else None, row["number"] if row else None]
    return [rows(number) for number in dict.fromkeys(numbers) if number is not None]


def all_ranges(db: Connection) -> list[tuple[int, int]]:
    return [rows(row["number"]) for row in db.execute("SELECT number FROM projects ORDER BY number")]


def every(db: Connection) -> list[Project]:
    return [_project(row) for row in db.execute("SELECT * FROM projects ORDER BY number")]


def at(db: Connection, place: Place) -> Project | None:
    known = id_at(db, place)
    return by_id(db, known) if known else None


def overview(db: Connection) -> list[ProjectOverview]:
    """What there is of each project, the latest used first."""
    from backstory.model import ProjectOverview

    found = []
    for row in db.execute(_OVERVIEW).fetchall():
        places = db.execute(
            "SELECT root FROM checkouts WHERE project_id = ? ORDER BY seen_at DESC, path", (row["id"],)
        )
        roots = dict.fromkeys(place["root"] for place in places)
        found.append(ProjectOverview(**dict(row), paths=tuple(roots)))
    return found


_OVERVIEW = f"""
SELECT p.id, p.name, p.root, p.roots, p.remote, p.paused_at,
    (SELECT count(*) FROM sessions s WHERE s.project_id = p.id AND {counts.SESSION}) AS sessions,
    coalesce(m.turns, 0) AS turns, coalesce(m.memories, 0) AS memories, coalesce(m.traces, 0) AS traces,
    coalesce(m.bytes, 0) AS bytes,
    (SELECT count(*) FROM documents d WHERE d.project_id = p.id) AS documents,
    (SELECT count(*) FROM docmem_nodes n WHERE n.project = p.number AND n.parent_id IS NULL) AS trees,
    max(coalesce((SELECT max(last_event_at) FROM sessions s WHERE s.project_id = p.id), 0),
        coalesce(m.latest, 0), p.created_at) AS last_used
FROM projects p LEFT JOIN (
    SELECT project_id, {counts.SUMS}, sum(length(CAST(content AS BLOB))) AS bytes, max(updated_at) AS latest
    FROM memories m WHERE {counts.LIVING} GROUP BY project_id) m ON m.project_id = p.id
WHERE p.id <> 'global' ORDER BY last_used DESC, p.number"""


def rename(db: Connection, project_id: str, name: str) -> None:
    db.execute("UPDATE projects SET name = ? WHERE id = ?", (name, project_id))


def claimed(db: Connection, place: Place) -> list[Project]:
    """The projects that a folder may be, though it has not proved that: they have its remote, or its name and
    are gone from where they lay. A person knows."""
    known = id_at(db, place)
    rows = db.execute(
        "SELECT *, remote = ?1 AND remote <> '' AS is_same FROM projects WHERE id <> ?3"
        " AND (is_same OR name = ?2) ORDER BY number",
        (place.remote, place.name, known or ""),
    ).fetchall()
    return [_project(row) for row in rows if row["is_same"] or _is_gone(db, row["id"])]


def by_id(db: Connection, project_id: str) -> Project:
    return _project(_row(db, project_id))


def root_of(db: Connection, project_id: str) -> str:
    return str(_row(db, project_id)["root"])


def rows(number: int) -> tuple[int, int]:
    """The first and last possible memories.row of a project."""
    return number << 32, (number << 32) | 0xFFFFFFFF


def next_row(db: Connection, project_id: str, count: int = 1) -> int:
    """A new row number, or the first of so many."""
    number, counter = db.execute(
        "UPDATE projects SET last_memory = last_memory + ?2 WHERE id = ?1 RETURNING number, last_memory",
        (project_id, count),
    ).fetchone()
    return rows(number)[0] | (int(counter) - count + 1)


def _row(db: Connection, project_id: str) -> Row:
    row: Row = db.execute("SELECT * FROM projects WHERE id = ?", (project_id,)).fetchone()
    return row


def _project(row: Row) -> Project:
    from backstory.model import Project

    return Project(id=row["id"], number=row["number"], name=row["name"], root=row["root"])
