"""Every table has its row in store/families.py, and all that is done to what belongs together goes by it: on
a store with every kind of row, and with a table that only these tests know."""

from __future__ import annotations

import random
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backstory import paths
from backstory.safety.redact import redact
from backstory.store import families, forgetting, moving, projects, redaction, removal, tellings
from backstory.store.exchange import Chosen
from backstory.store.families import Family, Line
from backstory.store.file.connection import own_tables, transaction
from backstory.store.forgetting import Conditions
from backstory.store.keep import build_on
from tests.helpers.chaos import DAY, NOW
from tests.helpers.rich_store import assert_sound, dump, exported, new_store, rich, taken_in

WORD = "Zanzibarium"
SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
MADE_LATER = """
CREATE TABLE moods (
    id           TEXT PRIMARY KEY,
    session_id   TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    project_id   TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    turn         TEXT REFERENCES memories (id) ON DELETE CASCADE,
    said         TEXT NOT NULL,
    at           INTEGER NOT NULL,
    forgotten_at INTEGER
) STRICT
"""
ROWS = {  # of which any would do
    "inside": Family("moods", Line("session.moods"), hidden="forgotten_at", at="at", looked=("said",)),
    "alone": Family("moods", Line("mood", newer=("at",)), hidden="forgotten_at", at="at", looked=("said",)),
}
BOOKKEEPING = ("line_changes", "vectors", "forgettings")  # what processes hold in RAM, and the list of these


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sqlite3.Connection]:
    """A store with a row of every kind, and with a table of a later day."""
    monkeypatch.setattr(families, "FAMILIES", [*families.FAMILIES, ROWS["inside"]])
    for name in ("api", "web"):
        (tmp_path / name).mkdir()
    with closing(new_store(tmp_path, "full")) as made:
        made.execute(MADE_LATER)
        rich(made, tmp_path / "data", tmp_path / "api", tmp_path / "web")
        with transaction(made):
            _fill(made, tmp_path)
        yield made


def _fill(db: sqlite3.Connection, folder: Path) -> None:
    """What a store gathers besides."""
    turns = db.execute("SELECT * FROM memories WHERE kind = 'turn' ORDER BY row").fetchall()
    for number, turn in enumerate(turns):
        of = {"project": turn["project_id"], "session": turn["session_id"], "turn": turn["id"]}
        said = f"it is {WORD if number == 0 else 'fine'}"
        db.execute(
            "INSERT INTO moods VALUES (:id, :session, :project, :turn, :said, :at, NULL)",
            {"id": f"mood{number}", "said": said, "at": turn["created_at"], **of},
        )
        tellings.note(
            db, turn["session_id"], turn["project_id"], "prompt", said, [turn["id"]],
            tokens=7, at=turn["created_at"] + 1, about="a prompt",
        )  # fmt: skip
    facts = [row["id"] for row in db.execute("SELECT id FROM memories WHERE kind = 'note' ORDER BY row")]
    for fact, turn in ((facts[0], turns[0]), (facts[0], turns[1]), (facts[2], turns[0])):
        build_on(db, fact, turn["id"], "rule", NOW)
    given = projects.by_id(db, turns[0]["project_id"]).number, str(folder / "api" / "CLAUDE.md")
    for made in (
        "INSERT INTO claude_files (path, project, place, template) VALUES (?2, ?1, 'x', 'root')",
        "INSERT INTO claude_sections (path, name, author, written_at)"
        " SELECT path, 'x', 'model', 1 FROM claude_files",
        "INSERT INTO claude_texts VALUES (?1, 'x', 'x', 'digest', 'model', 1)",
        "INSERT INTO docmem_servers VALUES ('server', ?1, '/x', 's', 1)",
        "INSERT INTO docmem_views (server_id, node_id, shown, seen) VALUES ('server', 'main', '[]', '[]')",
        "INSERT INTO pauses (project_id, first_at, last_at) SELECT id, 1, 2 FROM projects LIMIT 1",
        "INSERT INTO transcripts VALUES ('/x.jsonl', 1, 1, 'session-1', 1)",
        "INSERT INTO transcript_entries VALUES (1, 1)",
        "INSERT INTO spend (session_id, model, requests, input_tokens, cache_read_tokens, cache_write_tokens,"
        " output_tokens, usd, created_at) VALUES ('session-1', 'm', 1, 1, 1, 1, 1, 0.1, 1)",
        "INSERT INTO models VALUES (1, 'm', 2)",
        "INSERT INTO vectors (row, model, vector) SELECT row, 1, x'0102' FROM memory_lines",
        "INSERT INTO retention_runs VALUES (1, 1, 1, 1, 1)",
        "INSERT INTO erased_spans VALUES ('gone', 0, NULL, 1)",
    ):
        db.execute(made, given[: made.count("?")])


def test_every_table_has_one_row_in_the_list(db: sqlite3.Connection) -> None:
    tables = [family.table for family in families.FAMILIES]
    assert sorted(tables) == sorted(own_tables(db))
    for family in families.FAMILIES:
        columns = {row["name"] for row in db.execute(f"PRAGMA table_info({family.table})")}
        assert {family.hidden, family.changed, family.at, *family.looked, *family.owners} - {""} <= columns


def test_a_table_without_a_row_is_noticed(db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE forgotten_by_all (x TEXT)")
    with pytest.raises(AssertionError):
        test_every_table_has_one_row_in_the_list(db)


def test_the_store_of_these_tests_has_a_row_of_every_kind(db: sqlite3.Connection) -> None:
    empty = [name for name, found in dump(db).items() if not found]
    assert set(empty) == {"forgettings", "forgotten_sessions"}


# --- forgetting and undoing ---------------------------------------------------------------------------------


def everything(db: sqlite3.Connection) -> dict[str, Any]:
    """All that is stored, but for what no reader sees, and but for when a memory changed last."""
    found: dict[str, Any] = dump(db, BOOKKEEPING)
    found["memories"] = [
        {name: row[name] for name in row.keys() if name != "updated_at"}  # noqa: SIM118  of a row, not a dict
        for row in db.execute("SELECT * FROM memories ORDER BY row")
    ]
    return found


def some_conditions(db: sqlite3.Connection) -> list[Conditions]:
    ids = {
        kind: db.execute("SELECT id FROM memories WHERE kind = ? ORDER BY row", (kind,)).fetchone()[0]
        for kind in ("turn", "tool", "note", "summary")
    }
    (project,) = db.execute("SELECT project_id FROM sessions WHERE id = 'session-1'").fetchone()
    return [
        *(Conditions(ids=(one,)) for one in ids.values()),
        Conditions(session_id="session-1"),
        Conditions(session_id="session-2"),
        Conditions(project_id=project),
        Conditions(before=NOW - DAY),
        Conditions(before=NOW - DAY, is_retention=True),
        Conditions(match=WORD),
        Conditions(match="walrus", kind="note"),
        Conditions(match="cent"),
        Conditions(kind="turn"),
        Conditions(),
    ]


def test_undoing_brings_back_exactly_what_was_hidden(db: sqlite3.Connection) -> None:
    before = everything(db)
    for wanted in some_conditions(db):
        assert forgetting.forget(db, wanted, NOW), wanted
        assert everything(db) != before, wanted
        assert_sound(db)
        forgetting.undo(db, NOW)
        assert everything(db) == before, wanted


@pytest.mark.parametrize("seed", range(6))
def test_forgettings_undone_in_any_order_bring_back_all(db: sqlite3.Connection, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311
    before, made = everything(db), []
    for wanted in chance.sample(some_conditions(db), 5):
        if done := forgetting.forget(db, wanted, NOW):
            made.append(done.id)
    for number in chance.sample(made, len(made)):
        forgetting.undo(db, NOW, number)
    assert everything(db) == before


def moods(db: sqlite3.Connection) -> dict[str, bool]:
    """Which there are, and whether they are hidden."""
    return {row["id"]: row["forgotten_at"] is not None for row in db.execute("SELECT * FROM moods")}


def test_the_later_table_is_hidden_with_its_turn_its_session_and_by_its_text(db: sqlite3.Connection) -> None:
    turn, session = db.execute("SELECT turn, session_id FROM moods WHERE id = 'mood0'").fetchone()
    every = moods(db)
    for wanted in (Conditions(ids=(turn,)), Conditions(match=WORD), Conditions(session_id=session)):
        forgetting.forget(db, wanted, NOW)
        assert moods(db) == every | {"mood0": True}
        forgetting.undo(db, NOW)
    assert moods(db) == every
    forgetting.forget(db, Conditions(match=WORD, kind="turn"), NOW)
    assert moods(db)["mood0"]


def test_a_table_of_projects_alone_is_hidden_and_erased_with_all_of_one(
    db: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.execute(
        "CREATE TABLE banners (number INTEGER PRIMARY KEY, forgotten_at INTEGER,"
        " project_id TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE, said TEXT NOT NULL)"
    )
    row = Family("banners", "of this machine", hidden="forgotten_at", looked=("said",))
    monkeypatch.setattr(families, "FAMILIES", [*families.FAMILIES, row])
    db.execute("INSERT INTO banners (project_id, said) SELECT id, 'hello' FROM projects")
    (project,) = db.execute("SELECT project_id FROM sessions WHERE id = 'session-1'").fetchone()
    hidden = "SELECT project_id FROM banners WHERE forgotten_at IS NOT NULL"
    before = everything(db)
    for wanted in (Conditions(project_id=project), Conditions(project_id=project, match="HELLO")):
        forgetting.forget(db, wanted, NOW)
        assert [row["project_id"] for row in db.execute(hidden)] == [project]
        forgetting.undo(db, NOW)
        assert everything(db) == before
    erase(db, Conditions(project_id=project))
    assert not db.execute("SELECT 1 FROM banners WHERE project_id = ?", (project,)).fetchone()


# --- erasing ------------------------------------------------------------------------------------------------


def erase(db: sqlite3.Connection, wanted: Conditions) -> None:
    one, _ = removal.begin_erasing(db, wanted, NOW)
    removal.sweep(db, one)
    removal.done_erasing(db, one)


def test_no_byte_is_left_of_what_was_erased(db: sqlite3.Connection, tmp_path: Path) -> None:
    file = tmp_path / "full" / "backstory.db"
    assert redaction.compact(db) and WORD.encode() in file.read_bytes()
    erase(db, Conditions(match=WORD.upper()))
    assert redaction.compact(db) and WORD.lower().encode() not in file.read_bytes().lower()
    assert "mood0" not in moods(db) and "mood1" in moods(db)
    assert_sound(db)


def test_whatever_is_erased_leaves_a_sound_store_without_it(db: sqlite3.Connection, tmp_path: Path) -> None:
    for number, wanted in enumerate(some_conditions(db)):
        with closing(new_store(tmp_path, str(number))) as copy:
            db.backup(copy)
            chosen = forgetting.preview(copy, wanted, hard=True, shown=1_000)
            erase(copy, wanted)
            assert_sound(copy)
            left = "\n".join(copy.iterdump())
            assert not [one for one, *_ in chosen.lines if one in left], wanted
            again = forgetting.preview(copy, wanted, hard=True)
            assert (again.sessions, again.turns, again.memories, again.waiting) == (0, 0, 0, 0), wanted


def test_a_project_is_deleted_with_its_rows_in_the_later_table(db: sqlite3.Connection) -> None:
    (project,) = db.execute("SELECT project_id FROM moods WHERE id = 'mood0'").fetchone()
    with transaction(db):
        removal.erase_project(db, project, NOW)
    assert_sound(db)
    assert db.execute("SELECT count(*) FROM moods WHERE project_id = ?", (project,)).fetchone()[0] == 0
    assert moods(db)
    assert project not in "\n".join(db.iterdump())


# --- moving -------------------------------------------------------------------------------------------------


def two(db: sqlite3.Connection, tmp_path: Path) -> tuple[str, str]:
    found = [projects.id_at(db, paths.place(str(tmp_path / name))) for name in ("api", "web")]
    assert found[0] and found[1]
    return found[0], found[1]


Move = Callable[[sqlite3.Connection, str, str], None]
MOVES: dict[str, Move] = {
    "merge": moving.merge,
    "move": lambda db, source, target: moving.move_sessions(
        db,
        [row["id"] for row in db.execute("SELECT id FROM sessions WHERE project_id = ?", (source,))],
        target,
    ),
}


@pytest.mark.parametrize("how", MOVES)
def test_what_moves_is_all_there_and_of_the_other_project(
    how: str, db: sqlite3.Connection, tmp_path: Path
) -> None:
    source, target = two(db, tmp_path)
    ids = {
        family.table: sorted(row["id"] for row in db.execute(f"SELECT id FROM {family.table}"))  # noqa: S608
        for family in families.FAMILIES
        if "id" in {row["name"] for row in db.execute(f"PRAGMA table_info({family.table})")}
    }
    vectors = db.execute("SELECT count(*) FROM vectors").fetchone()[0]
    with transaction(db):
        MOVES[how](db, source, target)
    assert_sound(db)
    gone = {"projects": [source]} if how == "merge" else {}
    for table, before in ids.items():
        after = {row["id"] for row in db.execute(f"SELECT id FROM {table}")}  # noqa: S608
        renamed = {"main", "guide"} if table == "docmem_nodes" else set()
        assert set(before) - after <= {*gone.get(table, ()), *renamed}, table
    assert {row["project_id"] for row in db.execute("SELECT project_id FROM moods")} == {target}
    assert {row["project_id"] for row in db.execute("SELECT project_id FROM sessions")} == {target}
    assert db.execute("SELECT count(*) FROM vectors").fetchone()[0] == vectors
    for misplaced in (
        "SELECT 1 FROM memories JOIN projects p ON p.id = project_id WHERE row >> 32 <> p.number",
        "SELECT 1 FROM turn_pieces WHERE row >> 32 <> turn >> 32",
        "SELECT 1 FROM docmem_nodes WHERE row >> 32 <> project",
        "SELECT 1 FROM vectors WHERE row NOT IN (SELECT row FROM memory_lines)",
        "SELECT 1 FROM memories t JOIN memories m ON m.turn = t.id WHERE m.project_id <> t.project_id",
    ):
        assert db.execute(misplaced).fetchall() == []


# --- export and import --------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ROWS)
def test_an_export_has_the_rows_of_the_later_table_and_an_import_takes_them_in(
    how: str, db: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(families, "FAMILIES", [*families.FAMILIES[:-1], ROWS[how]])
    forgetting.forget(db, Conditions(match=WORD), NOW)
    raw = exported(db)
    with closing(new_store(tmp_path, "other")) as other:
        other.execute(MADE_LATER)
        assert taken_in(other, raw).redacted == 0
        assert exported(other) == raw
        assert dump(other)["moods"] == dump(db)["moods"] != []
        assert_sound(other)
        before = dump(other)
        taken_in(other, raw)
        assert dump(other) == before
        forgetting.undo(db, NOW)
    api, _ = two(db, tmp_path)
    of_api = exported(db, Chosen(api)).decode()
    for row in db.execute("SELECT id, project_id FROM moods").fetchall():
        assert (f'"{row["id"]}"' in of_api) == (row["project_id"] == api)


# --- redaction ----------------------------------------------------------------------------------------------


def test_a_secret_is_redacted_wherever_it_stands_also_in_the_later_table(
    db: sqlite3.Connection, tmp_path: Path
) -> None:
    file = tmp_path / "full" / "backstory.db"
    named = {f"{family.table}.{name}" for family in families.FAMILIES for name in family.names}
    put = [
        f"{table}.{column}"
        for table, column in texts_of(db)
        if f"{table}.{column}" not in named
        and db.execute(f"UPDATE {table} SET {column} = '{SECRET}'").rowcount  # noqa: S608
    ]
    assert {"moods.said", "prompts.prompt", "tellings.text", "document_chunks.content"} <= set(put)
    findings = redaction.find(db, redact)
    assert {finding.table for finding in findings if not finding.is_name} == {
        one.partition(".")[0] for one in put
    }
    redaction.rewrite(db, findings, redact)
    assert redaction.find(db, redact) == []
    assert redaction.compact(db) and SECRET.lower().encode() not in file.read_bytes().lower()
    assert {row["said"] for row in db.execute("SELECT said FROM moods")} == {"[redacted:github-token]"}
    assert_sound(db)


def texts_of(db: sqlite3.Connection) -> list[tuple[str, str]]:
    """The columns that take any text."""
    found = []
    for family in families.FAMILIES:
        (sql,) = db.execute("SELECT sql FROM sqlite_master WHERE name = ?", (family.table,)).fetchone()
        unique = {
            row["name"]
            for index in db.execute(f"PRAGMA index_list({family.table})").fetchall()
            if index["unique"]
            for row in db.execute(f"PRAGMA index_info({index['name']})")
        }
        keys = {row["from"] for row in db.execute(f"PRAGMA foreign_key_list({family.table})")}
        for row in db.execute(f"PRAGMA table_info({family.table})").fetchall():
            is_free = row["type"] == "TEXT" and not row["name"].endswith("_id") and row["name"] != "terms"
            if is_free and row["name"] not in unique | keys and not is_checked(sql, row["name"]):
                found.append((family.table, row["name"]))
    return found


def is_checked(sql: str, column: str) -> bool:
    return bool(re.search(rf"\b(?:json_valid|length)\({column}\)|{column}\s+IN\s*\(", sql))
