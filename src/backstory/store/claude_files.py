"""What was done to a project's CLAUDE.md files: when they were synced, what was written into their sections
last, what is only offered, what was turned down. Whose a section is, the file itself says.

A text is known by its digest. Which texts count as equal, and so have one digest, is not decided here.
"""

from __future__ import annotations

import json

from backstory.store.file.connection import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from sqlite3 import Connection

    from backstory.model import SectionRecord


class ManagedFile:
    """A CLAUDE.md or AGENTS.md with sections of ours."""

    __slots__ = ("gone", "head", "path", "place", "project", "synced_at", "template")

    def __init__(
        self,
        path: str,
        project: int,
        place: str,
        template: str,
        synced_at: int | None,
        head: str | None,
        gone: str = "[]",
    ) -> None:
        self.path = path
        self.project = project
        self.place = place  # the same as seen from the top of the work tree
        self.template = template  # root or subtree
        self.synced_at = synced_at
        self.head = head  # git's commit then
        self.gone = frozenset[str](json.loads(gone))  # files that were not there any more


# --- files --------------------------------------------------------------------------------------------------


def register(db: Connection, project: int, path: str, place: str, template: str) -> None:
    """A file is ours from now on. What was known of it stays."""
    db.execute(
        "INSERT INTO claude_files (path, project, place, template) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE"
        " SET project = excluded.project, place = excluded.place, template = excluded.template",
        (path, project, place, template),
    )


def get(db: Connection, path: str) -> ManagedFile | None:
    row = db.execute(f"{_SELECT} WHERE path = ?", (path,)).fetchone()
    return ManagedFile(*row) if row else None


def listed(db: Connection, project: int) -> list[ManagedFile]:
    """The files of a project in all its worktrees, those nearest to the top first."""
    rows = db.execute(
        f"{_SELECT} WHERE project = ? ORDER BY length(place) - length(replace(place, '/', '')), path",
        (project,),
    )
    return [ManagedFile(*row) for row in rows]


def synced(db: Connection, path: str, head: str | None, now: int, gone: Iterable[str] = ()) -> None:
    """What we compute of a file was compared with the project, at this commit and without those files."""
    db.execute(
        "UPDATE claude_files SET synced_at = ?, head = ?, gone = ? WHERE path = ?",
        (now, head, json.dumps(sorted(gone)), path),
    )


def remove(db: Connection, path: str) -> None:
    """The file is ours no longer. What was written into it stays known: it may come back with a branch."""
    db.execute("DELETE FROM claude_files WHERE path = ?", (path,))


# --- texts --------------------------------------------------------------------------------------------------


def author(db: Connection, project: int, place: str, name: str, digest: str) -> str | None:
    """Who made this text: program or model; None where it is none that an older backstory wrote. Newer ones
    say so in the file itself."""
    row = db.execute(
        "SELECT author FROM claude_texts WHERE project = ? AND place = ? AND name = ? AND digest = ?",
        (project, place, name, digest),
    ).fetchone()
    return str(row["author"]) if row else None


# --- sections -----------------------------------------------------------------------------------------------


def sections(db: Connection, path: str) -> dict[str, SectionRecord]:
    from backstory.model import SectionRecord

    rows = db.execute("SELECT * FROM claude_sections WHERE path = ? ORDER BY name", (path,))
    return {row["name"]: value(SectionRecord, row) for row in rows}


def wrote(db: Connection, path: str, name: str, text: str, author: str, now: int) -> None:
    """A section has this text now; what was offered or turned down before is settled."""
    db.execute(
        "INSERT INTO claude_sections (path, name, written, author, written_at) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET written = excluded.written, author = excluded.author,"
        " written_at = excluded.written_at, offered = NULL, offered_by = NULL, offered_at = NULL,"
        " refused = NULL, behind = NULL, facts = NULL, asked = NULL",
        (path, name, text, author, now),
    )


def offer(db: Connection, path: str, name: str, text: str, digest: str, author: str, now: int) -> bool:
    """Keep a text that was not written, because a person had edited the section. False: that one was turned
    down."""
    db.execute(
        "INSERT INTO claude_sections (path, name, author, written_at) VALUES (?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        (path, name, author, now),
    )
    made = db.execute(
        "UPDATE claude_sections SET offered = ?, offered_by = ?, offered_at = ?, refused = NULL"
        " WHERE path = ? AND name = ? AND refused IS NOT ?",
        (text, author, now, path, name, digest),
    )
    return made.rowcount > 0


def refuse(db: Connection, path: str, name: str, digest: str) -> None:
    """Turn the offer down. It is not made again, until a different one was."""
    db.execute(
        "UPDATE claude_sections SET offered = NULL, offered_by = NULL, offered_at = NULL, refused = ?"
        " WHERE path = ? AND name = ?",
        (digest, path, name),
    )


def is_refused(db: Connection, path: str, name: str, digest: str) -> bool:
    """Was this very text turned down?"""
    found = "SELECT 1 FROM claude_sections WHERE path = ? AND name = ? AND refused = ?"
    return db.execute(found, (path, name, digest)).fetchone() is not None


def based_on(db: Connection, path: str, name: str, facts: Iterable[str], now: int) -> None:
    """A model's section was written on these facts, or found true with them: it is not behind."""
    db.execute(
        "INSERT INTO claude_sections (path, name, author, written_at, facts) VALUES (?, ?, 'model', ?, ?)"
        " ON CONFLICT DO UPDATE SET facts = excluded.facts, behind = NULL, asked = NULL",
        (path, name, now, json.dumps(sorted(facts))),
    )


def facts(db: Connection, path: str) -> dict[str, frozenset[str]]:
    """What the sections of a file are based on, as far as that is known."""
    rows = db.execute("SELECT name, facts FROM claude_sections WHERE path = ? AND facts NOTNULL", (path,))
    return {row["name"]: frozenset(json.loads(row["facts"])) for row in rows}


def ask(db: Connection, path: str, name: str, digest: str) -> bool:
    """A model is asked to see to a section, because of the facts with this digest. False: it was before."""
    made = db.execute(
        "UPDATE claude_sections SET asked = ?1 WHERE path = ?2 AND name = ?3 AND asked IS NOT ?1",
        (digest, path, name),
    )
    return made.rowcount > 0


def fell_behind(db: Connection, path: str, name: str, because: Iterable[str], now: int) -> None:
    """A model's section has yet to be looked at, since these facts changed."""
    db.execute(
        "INSERT INTO claude_sections (path, name, author, written_at, behind) VALUES (?, ?, 'model', ?, ?)"
        " ON CONFLICT DO UPDATE SET behind = excluded.behind",
        (path, name, now, json.dumps(list(because))),
    )


def behind(db: Connection, path: str) -> dict[str, tuple[str, ...]]:
    """The sections of a file that a model has yet to look at, and what changed."""
    rows = db.execute("SELECT name, behind FROM claude_sections WHERE path = ? AND behind NOTNULL", (path,))
    return {row["name"]: tuple(json.loads(row["behind"])) for row in rows}


def is_behind(db: Connection, root: str) -> bool:
    """Has a model yet to look at a section of a file in this folder?"""
    found = "SELECT 1 FROM claude_sections WHERE behind NOTNULL AND substr(path, 1, length(?1)) = ?1"
    return db.execute(found, (root.rstrip("/") + "/",)).fetchone() is not None


def caught_up(db: Connection, path: str, name: str) -> bool:
    """Somebody has looked at a section. False: it was not behind."""
    made = db.execute(
        "UPDATE claude_sections SET behind = NULL, asked = NULL"
        " WHERE path = ? AND name = ? AND behind NOTNULL",
        (path, name),
    )
    return made.rowcount > 0


_SELECT = "SELECT path, project, place, template, synced_at, head, gone FROM claude_files"
