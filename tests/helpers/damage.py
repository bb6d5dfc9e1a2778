"""Databases with real content, a backup, and damage in many places, each made from the seed of its number."""

from __future__ import annotations

import os
import random
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from backstory.docmem import tree
from backstory.intake.note import keep
from backstory.recall.documents.ingest import ingest
from backstory.store import life, removal, vectors
from backstory.store.file import backup
from backstory.store.file.connection import transaction
from backstory.surfaces.opened import open_drained
from tests.helpers.backups import AFTER, BEFORE, PAGE, capture, database, store_in_the_log
from tests.helpers.chaos import DAY, NOW, event, prompt, put
from tests.helpers.trees import append, project_at

IN_THE_LOG = [f"echo log-{number} {'words ' * 20}".strip() for number in range(20)]
Table = dict[tuple[object, ...], tuple[object, ...]]  # rows by key


def fill(data: Path, folder: Path) -> None:
    """A store with everything in it and a backup, then changes of every kind, the last in the log only. The
    folder is a project's."""
    capture(data, *BEFORE)
    _turns(data, "before")
    with open_drained(str(data), now=NOW) as db:
        for number in range(60):
            keep(db, str(folder), f"the walrus number {number} likes {'clams ' * (number % 9)}", now=NOW)
        ingest(db, str(folder), now=NOW, content=_manual("before"), title="before")
        project = project_at(db, str(folder))
        tree.create(db, project, root_id="main", text="all of it", now=NOW)
        for number in range(40):
            append(db, project, "main", f"node {number} " + "leaf " * 40)
        with transaction(db):
            model = vectors.ensure_model(db, "tests", 64)
            rows = [row[0] for row in db.execute("SELECT row FROM memories LIMIT 100")]
            vectors.put(db, model, "memories", [(row, os.urandom(64)) for row in rows])
    backup.make(str(data), NOW - DAY)
    capture(data, *AFTER)
    _turns(data, "after")
    with open_drained(str(data), now=NOW) as db:
        for number in range(20):
            keep(db, str(folder), f"the heron number {number} eats {'fish ' * number}", now=NOW)
        ingest(db, str(folder), now=NOW, content=_manual("after"), title="after")
        for number in range(20):
            append(db, project, "main", f"new node {number} " + "leaf " * 300)
        tree.delete(
            db, project, db.execute("SELECT id FROM docmem_nodes WHERE text LIKE 'node 7 %'").fetchone()[0]
        )
        walrus = [
            row[0] for row in db.execute("SELECT id FROM memories WHERE content LIKE '%walrus%' ORDER BY row")
        ]
        with transaction(db):
            life.forget(db, walrus[1], None, NOW)
            life.reinforce(db, walrus[3], 0.5, None, NOW)
        removal.erase_memory(db, walrus[2], NOW)
    store_in_the_log(data, *IN_THE_LOG)


def _turns(data: Path, when: str) -> None:
    for number in range(5):
        session = f"{when}-{number}"
        put(data, prompt(f"where is the {when} tern {number}?", session_id=session))
        answer = f"In the reeds, tern {number}: {'many words ' * 200}"
        put(data, event("Stop", session_id=session, last_assistant_message=answer))


def _manual(word: str) -> str:
    return "\n\n".join(f"# Part {number} {word}\n\n{'clams and mussels ' * 60}" for number in range(30))


def contents_of(path: str) -> dict[str, Table]:
    """Every row of every table that is worth something, by its key. Not the places of vectors, which are made
    anew, nor what running processes note."""
    db = sqlite3.connect(path)
    try:
        kinds = [row[1] for row in db.execute("PRAGMA table_list") if row[2] == "table"]
        leave = (
            "sqlite_schema",
            "sqlite_temp_schema",
            "sqlite_sequence",
            "line_changes",
            "docmem_servers",
            "docmem_views",
        )
        return {table: _rows(db, table) for table in kinds if table not in leave}
    finally:
        db.close()


def _rows(db: sqlite3.Connection, table: str) -> Table:
    columns = db.execute(f"PRAGMA table_info({table})").fetchall()
    places = [at for at, column in enumerate(columns) if column[5]]
    return {tuple(row[at] for at in places): row for row in db.execute(f"SELECT * FROM {table}")}  # noqa: S608


# --- what happens to files ----------------------------------------------------------------------------------


class Wrecker:
    def __init__(self, data: Path, seed: int) -> None:
        self.rng = random.Random(seed)  # noqa: S311
        self.path = database(data)
        self.log = Path(f"{self.path}-wal")
        self.bytes = bytearray(self.path.read_bytes())

    def page(self) -> int:
        """Where a page begins; never the first, which has damage of its own."""
        return self.rng.randrange(1, max(2, len(self.bytes) // PAGE)) * PAGE

    def write(self, at: int, what: bytes) -> None:
        self.bytes[at : at + len(what)] = what[: max(0, len(self.bytes) - at)]

    def random_page(self) -> None:
        self.write(self.page(), self.rng.randbytes(PAGE))

    def random_bytes(self) -> None:
        self.write(self.page() + self.rng.randrange(PAGE - 64), self.rng.randbytes(self.rng.randint(1, 64)))

    def head_of_a_page(self) -> None:
        """Where its cells are, and how many."""
        self.write(self.page() + self.rng.randrange(100), self.rng.randbytes(self.rng.randint(1, 12)))

    def flipped_bit(self) -> None:
        self.bytes[self.page() + self.rng.randrange(PAGE)] ^= 1 << self.rng.randrange(8)

    def zeroed_page(self) -> None:
        self.write(self.page(), bytes(PAGE))

    def emptied_page(self) -> None:
        """A sound page with no rows on it."""
        at = self.page()
        self.write(at, bytes([13 if self.bytes[at] in (5, 13) else 10]) + b"\0\0\0\0\x10\0\0")

    def swapped_pages(self) -> None:
        one, other = self.page(), self.page()
        held = bytes(self.bytes[one : one + PAGE])
        self.write(one, bytes(self.bytes[other : other + PAGE]))
        self.write(other, held)

    def shifted_page(self) -> None:
        """Written again a sector too far."""
        at = self.page()
        self.write(at + 512, bytes(self.bytes[at : at + PAGE - 512]))

    def schema_text(self) -> None:
        found = [match.start() for match in re.finditer(b"CREATE TABLE", self.bytes)]
        at = self.rng.choice(found or [100]) + self.rng.randrange(200)
        self.write(at, self.rng.randbytes(self.rng.randint(1, 20)))

    def schema_name(self) -> None:
        """Still text, but another."""
        found = [match.start() for match in re.finditer(b"TABLE (mem|ses)", self.bytes)]
        self.write(self.rng.choice(found or [100]) + 6, b"xyz")

    def first_page(self) -> None:
        self.write(100, self.rng.randbytes(PAGE - 100))

    def header_bit(self) -> None:
        self.bytes[self.rng.randrange(100)] ^= 1 << self.rng.randrange(8)

    def header_gone(self) -> None:
        self.write(0, self.rng.choice([bytes(100), b"#" * 100, self.rng.randbytes(100)]))

    def version(self) -> None:
        number = self.rng.choice([0, 1, 3, 8, 15, 99, 2**31 - 1, 2**32 - 1])
        self.write(60, number.to_bytes(4, "big"))

    def freelist(self) -> None:
        self.write(32, self.rng.randbytes(8))

    def truncated(self) -> None:
        del self.bytes[self.rng.randrange(len(self.bytes) // 3, len(self.bytes)) :]

    def truncated_log(self) -> None:
        os.truncate(self.log, self.rng.randrange(self.log.stat().st_size))

    def spoiled_log(self) -> None:
        whole = bytearray(self.log.read_bytes())
        at = self.rng.randrange(len(whole))
        whole[at : at + 50] = self.rng.randbytes(len(whole[at : at + 50]))
        self.log.write_bytes(whole)

    def done(self) -> None:
        self.path.write_bytes(self.bytes)


ONCE: tuple[Callable[[Wrecker], None], ...] = (
    Wrecker.schema_text,
    Wrecker.header_bit,
    Wrecker.version,
    Wrecker.truncated,
    Wrecker.schema_name,
    Wrecker.first_page,
    Wrecker.header_gone,
    Wrecker.freelist,
    Wrecker.spoiled_log,
    Wrecker.truncated_log,
)
OFTEN: tuple[Callable[[Wrecker], None], ...] = (
    Wrecker.random_page,
    Wrecker.random_bytes,
    Wrecker.head_of_a_page,
    Wrecker.flipped_bit,
    Wrecker.zeroed_page,
    Wrecker.emptied_page,
    Wrecker.swapped_pages,
    Wrecker.shifted_page,
)


def wreck(data: Path, number: int) -> list[str]:
    """Damage the database as this variant says; what was done, to be read when a test fails.

    Every fourth has one kind of damage that a file can have once; every third one kind in many places. Half
    of them have pages in the log, which hide those of the file."""
    rng = random.Random(-number)  # noqa: S311
    if number % 4 == 0:
        kinds = [ONCE[number // 4 % len(ONCE)]]
    elif number % 3 == 0:
        kinds = [rng.choice(OFTEN)] * rng.randint(4, 200)
    else:
        kinds = rng.choices(OFTEN, k=rng.randint(4, rng.choice([8, 40, 200]))) + rng.sample(
            ONCE, rng.randint(0, 2)
        )
    has_log = any("log" in kind.__name__ for kind in kinds) or (number % 4 > 0 and rng.random() < 0.5)
    if not has_log:
        sqlite3.connect(database(data)).execute("PRAGMA wal_checkpoint(TRUNCATE)").connection.close()
    wrecker = Wrecker(data, number)
    for kind in kinds:
        kind(wrecker)
    wrecker.done()
    counted = Counter(kind.__name__ for kind in kinds)
    return [f"{count} {name}" for name, count in counted.items()]


def copied(made: Path, data: Path) -> None:
    shutil.rmtree(data, ignore_errors=True)
    shutil.copytree(made, data)
