"""A store with something of everything that an export holds, made by what makes it in use; and stores as
text, to compare them."""

from __future__ import annotations

import io
import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from backstory import paths
from backstory.docmem import tree
from backstory.docmem.exchange import import_document
from backstory.intake.drain import drain
from backstory.intake.imports import Import, header, import_lines, read_lines, trailer
from backstory.intake.note import keep
from backstory.model import Summary
from backstory.recall.documents.ingest import ingest
from backstory.store import exchange, life, memories, projects, summaries
from backstory.store.exchange import Chosen
from backstory.store.file.connection import connect, fts_indexes, own_tables, transaction
from tests.helpers.chaos import DAY, MINUTE, NOW, bash
from tests.helpers.turn_payloads import commit, edit, happened

ODD = 'naïve – 日本語 🦭 e\u0301 \u200dz\u2028 \ttab \\ "quoted" </div> \x7f\x9b31m'
CRLF = "one\r\ntwo\r\n\r\nthree\r"
TOLD = Summary(
    "Find the cent", "invoice.py", "It is rounded twice", "Once now", "Release", ("a.py",), ("b.py",), ""
)

Json = dict[str, Any]


def rich(db: sqlite3.Connection, data: Path, api: Path, web: Path) -> None:
    """Two projects and what is about the user: sessions, turns, traces, notes of all fates, trees, texts."""
    (api / "invoice.py").write_text("cents = 1\n")
    (api / "guide.md").write_text(f"# Guide\n\nThe walrus sleeps.\n\n## More\n\n{ODD}\n")
    happened(
        data,
        api,
        "why is the sum off by a cent?",
        edit(str(api / "invoice.py")),
        bash("make", "2 failed"),
        commit("round once"),
        answer=f"Rounded twice. {ODD}\n\n## Next\n\n- release it?",
        at=NOW - 40 * DAY,
    )
    happened(data, api, (f"and {ODD}", "also this"), bash("ls", "a b"), session="session-2", at=NOW - 2 * DAY)
    happened(data, web, CRLF, bash("npm test", "ok"), session="session-3", at=NOW - 5 * MINUTE, answer=None)
    drain(db, str(data / "spool"), now=NOW)
    notes = [
        keep(
            db, str(api), text, now=NOW + number, session_id="session-2", tags=("t", "ü"), importance=0.7
        ).memory.id
        for number, text in enumerate(
            (
                f"The walrus sleeps in invoice.py. {ODD}",
                f"Windows: {CRLF} end",
                "an old decision",
                "a newer decision",
            )
        )
    ]
    keep(db, str(api), "I like short answers", now=NOW, is_global=True, source="user")
    keep(db, str(web), "The otter swims", now=NOW)
    keep(db, str(web), "The otter swims", now=NOW + 5)  # reinforced
    with transaction(db):
        life.supersede(db, notes[2], notes[3], "session-2", NOW + 10, said_by="user")
        life.forget(db, notes[1], None, NOW + 11)
        life.deemphasize(db, notes[0], 0.2, None, NOW + 12)
        traces = [row["id"] for row in db.execute("SELECT id FROM memories WHERE kind = 'tool' ORDER BY row")]
        life.archive(db, traces[:2], NOW + 13)
        _summarise(db, "session-1")
    for folder in (api, web):
        project = projects.at(db, paths.place(str(folder)))
        assert project
        root = import_document(
            db, project, f"# A\n\ntext {ODD}\n\n# B\n\nmore\n", "md", "guide", "x", NOW
        ).root
        main = tree.create(db, project, root_id="main", text="main", now=NOW)
        leaves = [
            tree.add(db, project, main.id, text, ("note", "n", "v"), "append-child", now=NOW + number)
            for number, text in enumerate(("a", "b", CRLF, ODD))
        ]
        covering = tree.summarise(
            db, project, leaves[0].id, leaves[1].id, "a and b", ("sum", "", ""), now=NOW + 9
        )
        tree.move(db, project, leaves[3].id, covering.id, "before", now=NOW + 10)
        assert root
    ingest(db, str(api), now=NOW, path="guide.md")
    ingest(db, str(web), now=NOW, content=f"# Odd\n\n{ODD}\n", title="Handed over")
    with transaction(db):
        db.execute("UPDATE projects SET roots = 'abc', remote = 'example.org/api' WHERE name = 'api'")
        db.execute("UPDATE projects SET paused_at = ? WHERE name = 'web'", (NOW,))


def _summarise(db: sqlite3.Connection, session_id: str) -> None:
    (project_id,) = db.execute("SELECT project_id FROM sessions WHERE id = ?", (session_id,)).fetchone()
    memory_id = memories.add(
        db,
        project_id=project_id,
        session_id=session_id,
        kind="summary",
        sector="reflective",
        tier="project",
        content=f"Session Summary:\n{TOLD}",
        importance=0.7,
        source="session",
        now=NOW,
    )
    summaries.put(db, session_id, project_id, TOLD, "local", memory_id, NOW)


def exported(db: sqlite3.Connection, chosen: Chosen = Chosen()) -> bytes:  # noqa: B008
    return written(exchange.export(db, chosen), chosen)


def written(lines: Any, chosen: Chosen = Chosen()) -> bytes:  # noqa: B008
    """A file of these lines, as `backstory export` would write it."""
    listed = list(lines)
    raw = b"".join(map(exchange.encode, [header(chosen, "backstory"), *listed]))
    counts = Counter(line["type"] for line in listed)
    return raw + exchange.encode(trailer(counts, sha256(raw).hexdigest()))


def lines_of(raw: bytes) -> list[Json]:
    """Without the first and the last one."""
    return [json.loads(line) for line in raw.splitlines()[1:-1]]


def taken_in(db: sqlite3.Connection, raw: bytes, **options: Any) -> Import:
    problems: list[str] = []
    return import_lines(db, read_lines(io.BytesIO(raw), problems), problems=problems, **options)


def new_store(folder: Path, name: str) -> sqlite3.Connection:
    (folder / name).mkdir(parents=True)
    return connect(str(folder / name / "backstory.db"))


def dump(db: sqlite3.Connection, without: Sequence[str] = ()) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table."""
    return {
        table: sorted((tuple(row) for row in db.execute(f"SELECT * FROM {table}")), key=repr)  # noqa: S608
        for table in own_tables(db)
        if table not in without
    }


def assert_sound(db: sqlite3.Connection) -> None:
    """References hold, and the keyword indexes say what the tables say."""
    assert db.execute("PRAGMA foreign_key_check").fetchall() == []
    assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    for name in fts_indexes(db):
        db.execute(f"INSERT INTO {name} ({name}, rank) VALUES ('integrity-check', 1)")  # noqa: S608
