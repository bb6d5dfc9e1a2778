"""Projects: whose memories these are."""

from __future__ import annotations

from backstory.ids import new_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection, Row

    from backstory.model import Project
    from backstory.paths import Place


GLOBAL = "global"


def ensure(db: Connection, place: Place, now: int) -> str:
    """The id of the project at this place, new or known."""
    known = id_at(db, place)
    if known:
        return known
    project_id = new_id("prj_")
    db.execute(
        "INSERT INTO projects (id, identity, name, root, created_at) VALUES (?1, ?1, ?2, ?3, ?4)",
        (project_id, place.name, place.root, now),
    )
    db.execute(
        "INSERT INTO checkouts (path, project_id, root, seen_at) VALUES (?, ?, ?, ?)",
        (place.location, project_id, place.root, now),
    )
    return project_id


def id_at(db: Connection, place: Place) -> str | None:
    row = db.execute("SELECT project_id FROM checkouts WHERE path = ?", (place.location,)).fetchone()
    return str(row["project_id"]) if row else None


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


def every(db: Connection) -> list[Project]:
    return [_project(row) for row in db.execute("SELECT * FROM projects ORDER BY number")]


def at(db: Connection, place: Place) -> Project | None:
    known = id_at(db, place)
    return by_id(db, known) if known else None


def by_id(db: Connection, project_id: str) -> Project:
    return _project(db.execute("SELECT * FROM projects WHERE id = ?", (project_id,)).fetchone())


def root_of(db: Connection, project_id: str) -> str:
    return str(db.execute("SELECT root FROM projects WHERE id = ?", (project_id,)).fetchone()["root"])


def rows(number: int) -> tuple[int, int]:
    """The first and last possible memories.row of a project."""
    return number << 32, (number << 32) | 0xFFFFFFFF


def next_row(db: Connection, project_id: str) -> int:
    return next_rows(db, project_id, 1)


def next_rows(db: Connection, project_id: str, count: int) -> int:
    """The first of so many new row numbers."""
    number, counter = db.execute(
        "UPDATE projects SET last_memory = last_memory + ?2 WHERE id = ?1 RETURNING number, last_memory",
        (project_id, count),
    ).fetchone()
    return rows(number)[0] | (int(counter) - count + 1)


def _project(row: Row) -> Project:
    from backstory.model import Project

    return Project(id=row["id"], number=row["number"], name=row["name"], root=row["root"])
