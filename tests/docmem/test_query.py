"""One SELECT over the nodes of a project, and everything else refused."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path
from secrets import token_hex

import pytest

from backstory.docmem import tree
from backstory.errors import BadInput
from backstory.model import Project
from backstory.paths import place
from backstory.store import projects
from backstory.store.file.connection import connect, transaction
from backstory.store.node_query import COLUMNS, LONGEST_ANSWER, LONGEST_SQL, SECONDS, query
from backstory.surfaces.opened import open_drained

NOW = 1_800_000_000_000
MEMORY = ("memory", "", "")
NODES, SHADOW = (
    "SELECT {} FROM nodes",
    "WITH nodes_{0} AS (SELECT * FROM docmem_nodes) SELECT * FROM nodes_{0}",
)


def project_at(db: sqlite3.Connection, folder: Path) -> Project:
    folder.mkdir(exist_ok=True)
    with transaction(db):
        return projects.by_id(db, projects.ensure(db, place(str(folder)), NOW))


@pytest.fixture
def here(db: sqlite3.Connection, tmp_path: Path) -> Project:
    """A project with a tree: a root, two sections, a leaf below the first."""
    project = project_at(db, tmp_path / "here")
    tree.create(db, project, root_id="zoo", text="All animals", now=NOW)
    for name in ("birds", "seals"):
        tree.add(db, project, "zoo", f"About {name}", ("section", name, ""), "append-child", now=NOW + 1000)
    (birds,) = [one[0] for one in rows(db, project, "SELECT id FROM nodes WHERE context_name = 'birds'")]
    tree.add(db, project, str(birds), "Owls sleep by day", MEMORY, "append-child", readonly=True, now=NOW)
    return project


@pytest.fixture
def other(db: sqlite3.Connection, tmp_path: Path) -> Project:
    """Another project, whose nodes are none of the first one's business."""
    project = project_at(db, tmp_path / "other")
    tree.create(db, project, root_id="zoo", text="the secret of the other project", now=NOW)
    return project


def rows(db: sqlite3.Connection, project: Project, sql: str) -> list[tuple[object, ...]]:
    return list(query(db, project, sql)[1])


def endless(asked: str) -> str:
    return " SELECT ".join(("WITH RECURSIVE n (x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n)", asked))


def refusal(db: sqlite3.Connection, project: Project, sql: str, seconds: float = SECONDS) -> str:
    with pytest.raises(BadInput) as refused:
        query(db, project, sql, seconds=seconds)
    return str(refused.value)


# --- what it answers ----------------------------------------------------------------------------------------


def test_rows_come_back_as_values_with_the_names_of_their_columns(
    db: sqlite3.Connection, here: Project
) -> None:
    sql = "SELECT id, parent_id, text AS said, order_value, readonly FROM nodes WHERE parent_id IS NULL"
    assert query(db, here, sql) == (
        ["id", "parent_id", "said", "order_value", "readonly"],
        [("zoo", None, "All animals", 1.0, 0)],
        False,
    )


def test_every_column_of_a_node_is_there_and_times_are_as_docmem_writes_them(
    db: sqlite3.Connection, here: Project
) -> None:
    columns, found, _ = query(db, here, "SELECT * FROM nodes WHERE text LIKE 'owls%'")
    node = dict(zip(columns, found[0], strict=True))
    assert columns == list(COLUMNS)
    assert (node["root_id"], node["token_count"], node["readonly"]) == ("zoo", 5, 1)
    assert (node["context_type"], node["context_name"], node["context_value"]) == MEMORY
    assert node["created_at"] == node["updated_at"] == "2027-01-15T08:00:00Z"
    assert node["hash"] == tree.node(db, here, str(node["id"])).hash


def test_a_recursive_query_walks_the_tree(db: sqlite3.Connection, here: Project) -> None:
    sql = (
        "WITH RECURSIVE below (id, text, depth) AS (SELECT id, text, 0 FROM nodes WHERE id = 'zoo' UNION ALL"
        " SELECT n.id, n.text, depth + 1 FROM nodes n JOIN below ON n.parent_id = below.id)"
        " SELECT depth, text FROM below ORDER BY depth, text"
    )
    expected = [(0, "All animals"), (1, "About birds"), (1, "About seals"), (2, "Owls sleep by day")]
    assert rows(db, here, sql) == expected


@pytest.mark.parametrize(
    ("sql", "answer"),
    [
        ("SELECT COUNT(*) FROM NODES", [(4,)]),
        ("select count(*) from nodes;", [(4,)]),
        ("  -- how many\n SELECT count(*) FROM temp.nodes /* all */ ; -- of them", [(4,)]),
        ("WITH leaves AS (SELECT * FROM nodes WHERE readonly) SELECT count(*) FROM leaves", [(1,)]),
        ("WITH nodes AS (SELECT 7 AS x) SELECT x FROM nodes", [(7,)]),
        ("WITH memories AS (SELECT 7 AS x) SELECT x FROM memories", [(7,)]),
        ("SELECT a.text FROM nodes AS a JOIN nodes b ON b.parent_id = a.id GROUP BY a.id HAVING count(*) > 1",
         [("All animals",)]),
        ("SELECT context_type, count(*) OVER () FROM nodes ORDER BY parent_id LIMIT 1", [("root", 4)]),
        ("SELECT (SELECT group_concat(context_name) FROM nodes WHERE parent_id = 'zoo')", [("birds,seals",)]),
        ("SELECT upper(substr(text, 1, 3)) FROM nodes WHERE updated_at > '2027-01-15T08:00:00Z' LIMIT 1",
         [("ABO",)]),
        ("SELECT 1 UNION SELECT 2 EXCEPT SELECT 2", [(1,)]),
        ("VALUES (1, NULL, 1.5, 'é', x'00ff')", [(1, None, 1.5, "é", b"\x00\xff")]),
        ("SELECT CAST(x'ff41' AS TEXT)", [("\ufffdA",)]),
        ("SELECT 1 WHERE 0", []),
    ],
)  # fmt: skip
def test_any_one_select_is_answered(
    db: sqlite3.Connection, here: Project, other: Project, sql: str, answer: list[tuple[object, ...]]
) -> None:
    assert rows(db, here, sql) == answer


@pytest.mark.parametrize(("limit", "more"), [(20, False), (21, True)])
def test_twenty_rows_come_back_and_whether_there_are_more(
    db: sqlite3.Connection, here: Project, limit: int, more: bool
) -> None:
    columns, found, are_more = query(db, here, endless(f"x FROM n LIMIT {limit}"))
    assert (columns, found, are_more) == (["x"], [(x,) for x in range(1, 21)], more)


def test_a_project_sees_its_own_nodes_only(db: sqlite3.Connection, here: Project, other: Project) -> None:
    assert rows(db, other, "SELECT id, text FROM nodes") == [("zoo", "the secret of the other project")]
    assert rows(db, here, "SELECT count(*) FROM nodes WHERE text LIKE '%secret%'") == [(0,)]
    assert rows(db, here, "SELECT count(*) FROM nodes WHERE 1 OR root_id = 'zoo'") == [(4,)]


def test_what_was_just_written_is_seen(db: sqlite3.Connection, here: Project) -> None:
    tree.update_content(db, here, "zoo", "All plants", now=NOW)
    assert rows(db, here, "SELECT text FROM nodes WHERE id = 'zoo'") == [("All plants",)]


def test_a_long_text_comes_back_whole(db: sqlite3.Connection, here: Project) -> None:
    text = "🦉" * tree.LONGEST_TEXT
    tree.update_content(db, here, "zoo", text, now=NOW)
    assert rows(db, here, "SELECT text FROM nodes WHERE id = 'zoo'") == [(text,)]


# --- what it refuses ----------------------------------------------------------------------------------------

STATEMENTS = (
    "INSERT INTO nodes (id) VALUES ('x')",
    "INSERT INTO docmem_nodes DEFAULT VALUES",
    "UPDATE nodes SET text = 'x'",
    "UPDATE docmem_nodes SET text = 'x' RETURNING id",
    "DELETE FROM nodes",
    "DELETE FROM docmem_nodes",
    "REPLACE INTO docmem_nodes (id) VALUES ('x')",
    "WITH x AS (SELECT 1) DELETE FROM docmem_nodes",
    "WITH x AS (SELECT 1) INSERT INTO docmem_nodes (id) SELECT * FROM x",
    "CREATE TABLE x (y)",
    "CREATE TEMP TABLE x AS SELECT * FROM nodes",
    "CREATE TEMP VIEW x AS SELECT 1",
    "CREATE TEMP TRIGGER x INSTEAD OF INSERT ON nodes BEGIN SELECT 1; END",
    "CREATE VIRTUAL TABLE temp.x USING fts5 (y)",
    "CREATE INDEX x ON docmem_nodes (text)",
    "ALTER TABLE docmem_nodes RENAME TO x",
    "DROP TABLE docmem_nodes",
    "DROP VIEW nodes",
    "ATTACH ':memory:' AS x",
    "DETACH temp",
    "PRAGMA user_version",
    "PRAGMA query_only = OFF",
    "PRAGMA writable_schema = ON",
    "BEGIN",
    "BEGIN IMMEDIATE",
    "COMMIT",
    "SAVEPOINT x",
    "VACUUM",
    "ANALYZE",
    "REINDEX",
)


@pytest.mark.parametrize("sql", STATEMENTS)
def test_whatever_is_no_select_is_refused(db: sqlite3.Connection, here: Project, sql: str) -> None:
    before = list(db.iterdump())
    said = refusal(db, here, sql)
    assert "ask one SELECT over nodes, which has id, parent_id, root_id, text" in said
    assert list(db.iterdump()) == before


def test_no_copy_of_the_store_is_made(db: sqlite3.Connection, here: Project, tmp_path: Path) -> None:
    refusal(db, here, f"VACUUM INTO '{tmp_path}/copy.db'")
    refusal(db, here, f"ATTACH '{tmp_path}/copy.db' AS copy")
    assert not (tmp_path / "copy.db").exists()


OTHER_TABLES = (
    "memories",
    "main.memories",
    '"memories"',
    "[Memories]",
    "docmem_nodes",
    "main.docmem_nodes",
    "`DOCMEM_NODES`",
    "docmem_nodes_fts",
    "docmem_nodes_fts_data",
    "docmem_nodes_terms",
    "docmem_views",
    "projects",
    "vectors",
    "sqlite_master",
    "sqlite_schema",
    "main.sqlite_schema",
    "temp.sqlite_schema",
    "sqlite_temp_master",
    "sqlite_sequence",
    "pragma_database_list",
    "pragma_table_info('memories')",
    "pragma_table_list",
    "pragma_function_list",
    "json_each('[1]')",
)
SHAPES = (
    "SELECT * FROM {}",
    "SELECT count(*) FROM {}",
    "SELECT 1 FROM {}",
    "SELECT 1 FROM {} AS nodes",
    "WITH nodes AS (SELECT * FROM {}) SELECT * FROM nodes",
    "WITH nodes AS (SELECT count(*) FROM {}) SELECT * FROM nodes",
    "SELECT * FROM (SELECT * FROM {}) AS nodes",
    "SELECT id FROM nodes WHERE EXISTS (SELECT 1 FROM {})",
    "SELECT id FROM nodes ORDER BY (SELECT count(*) FROM {})",
    "SELECT id FROM nodes UNION ALL SELECT count(*) FROM {}",
    "SELECT 1 FROM nodes, {}",
)


@pytest.mark.parametrize("table", OTHER_TABLES)
def test_no_other_table_is_read_or_counted_however_it_is_asked_for(
    db: sqlite3.Connection, here: Project, other: Project, table: str
) -> None:
    for shape in SHAPES:
        assert "refused" in refusal(db, here, shape.format(table)), shape


@pytest.mark.parametrize(
    "sql",
    [
        *("SELECT * FROM node", "SELECT wings FROM nodes", "SELECT fly(id) FROM nodes", "SELEC"),
        *("SELECT * FROM json_each('[1]')", "SELECT * FROM dbstat", "SELECT * FROM generate_series(1, 2)"),
        *("SELECT * FROM nodes WHERE text MATCH 'x'", "SELECT * FROM nodes INDEXED BY x", "SELECT json('{')"),
    ],
)
def test_a_typo_in_a_query_is_no_damage(
    here: Project, data: Path, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    looks: list[str] = []
    monkeypatch.setattr("backstory.store.file.recovery.recover", lambda folder, _: looks.append(folder))
    with pytest.raises(BadInput), open_drained(str(data), now=NOW) as db:
        query(db, here, sql)
    assert looks == []


def test_a_refusal_names_what_was_refused(db: sqlite3.Connection, here: Project) -> None:
    assert refusal(db, here, "SELECT content FROM memories").startswith("reading memories is refused; ask")
    assert refusal(db, here, "SELECT zeroblob(9)").startswith("the function zeroblob is not available; there")
    assert refusal(db, here, "SELECT wings FROM nodes").startswith("no such column: wings; ask one SELECT")
    assert refusal(db, here, "PRAGMA user_version").startswith("anything but a SELECT over nodes is")


@pytest.mark.parametrize(
    "call",
    [
        "load_extension('x')",
        "randomblob(1000000000)",
        "zeroblob(1000000000)",
        "printf('%1000000000d', 1)",
        "trim('x', 'y')",
        "fts5_source_id()",
        "fts5(1)",
        "snippet(nodes, 1, '', '', '', 9)",
        "bm25(nodes)",
        "match(text, 'owl')",
        "text MATCH 'owl'",
        "json(text)",
        "text -> 1",
        "sqlite_version()",
        "sqlite_compileoption_used('x')",
        "simhash(text)",
        "line_terms(text, 'x', 1)",
    ],
)
def test_only_harmless_functions_are_there(db: sqlite3.Connection, here: Project, call: str) -> None:
    assert "function" in refusal(db, here, NODES.format(call))


@pytest.mark.parametrize("sql", ["EXPLAIN SELECT 1", "/* x */ explain query plan select * from nodes"])
def test_how_sqlite_would_do_it_is_not_told(db: sqlite3.Connection, here: Project, sql: str) -> None:
    assert "syntax error" in refusal(db, here, sql)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT 1; SELECT 2", "one statement at a time; ask"),
        ("SELECT 1; DELETE FROM docmem_nodes", "one statement at a time; ask"),
        ("", "incomplete input"),
        (" -- nothing", "incomplete input"),
        (";", "syntax error"),
        ("SELEC 1", "syntax error"),
        ("QUERY PLAN SELECT 1", "syntax error"),
        ("SELECT ?", "bindings"),
        ("SELECT :id", "bindings"),
        ("SELECT 1\x00", "null character"),
        ("SELECT '\ud800' FROM", "incomplete input"),
        ("SELECT abs(-9223372036854775808)", "integer overflow"),
        ("SELECT 1 LIMIT 'x'", "datatype mismatch"),
        ("SELECT " + "(" * 2000 + "1" + ")" * 2000, ""),
        ("SELECT 1 -- " + "x" * LONGEST_SQL, "too large"),
    ],
)  # fmt: skip
def test_what_sqlite_cannot_read_is_told_in_a_sentence(
    db: sqlite3.Connection, here: Project, sql: str, said: str
) -> None:
    assert said in refusal(db, here, sql)


def test_the_view_below_has_another_name_each_time(
    db: sqlite3.Connection, here: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who knew it could read the table as if it were the view."""
    names: list[str] = []

    def noted(size: int) -> str:
        names.append(token_hex(size))
        return names[-1]

    monkeypatch.setattr("backstory.store.node_query.token_hex", noted)
    for _ in range(3):
        rows(db, here, "SELECT 1")
    assert len(set(names)) == 3
    assert "reading docmem_nodes is refused" in refusal(db, here, SHADOW.format(names[0]))


# --- what is bounded ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        endless("count(*) FROM n"),
        endless("x FROM n WHERE x < 0"),
        endless("x FROM n ORDER BY -x"),
        endless("group_concat(x / x, '') FROM n WHERE x % 1000000 = 0"),
        " CROSS JOIN ".join(("SELECT count(*) FROM nodes", *["nodes"] * 30)),
    ],
)
def test_a_query_that_takes_too_long_is_broken_off(db: sqlite3.Connection, here: Project, sql: str) -> None:
    started = time.monotonic()
    with pytest.raises(BadInput, match=r"took longer than 0\.05 s; ask for less, with WHERE or LIMIT"):
        query(db, here, sql, seconds=0.05)
    assert time.monotonic() - started < 1.5


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    [
        "WITH RECURSIVE n (x) AS (SELECT 'ab' UNION ALL SELECT x || x FROM n) SELECT count(*) FROM n",
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 999999) SELECT"
        " group_concat(i) FROM n",
        "WITH RECURSIVE n (x) AS (SELECT 'aaaaaaaa' UNION ALL SELECT replace(x, 'a', 'aaaaaaaa') FROM n)"
        " SELECT count(*) FROM n",
    ],
)
def test_no_value_grows_without_bounds(db: sqlite3.Connection, here: Project, sql: str) -> None:
    assert "too big; ask for less at a time" in refusal(db, here, sql, seconds=30)


def test_an_answer_that_is_too_long_is_refused(db: sqlite3.Connection, here: Project) -> None:
    tree.update_content(db, here, "zoo", "x" * tree.LONGEST_TEXT, now=NOW)
    wide = ", ".join(["text"] * (LONGEST_ANSWER // tree.LONGEST_TEXT))
    assert len(rows(db, here, NODES.format(wide) + " WHERE id = 'zoo'")) == 1
    assert "ask for fewer rows" in refusal(db, here, NODES.format(f"{wide}, id"))


# --- what it leaves behind ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    ["SELECT * FROM nodes", "DELETE FROM docmem_nodes", "SELECT 1 FROM", endless("count(*) FROM n")],
)
def test_the_connection_is_afterwards_as_it_was(db: sqlite3.Connection, here: Project, sql: str) -> None:
    kinds = (sqlite3.SQLITE_LIMIT_LENGTH, sqlite3.SQLITE_LIMIT_SQL_LENGTH)
    limits = [db.getlimit(kind) for kind in kinds]
    try:
        query(db, here, sql, seconds=0.02)
    except BadInput:
        pass
    assert not db.in_transaction
    assert [db.getlimit(kind) for kind in kinds] == limits
    with pytest.raises(sqlite3.OperationalError, match="no such table: nodes"):
        db.execute("SELECT 1 FROM nodes")
    assert db.execute("SELECT count(*) FROM sqlite_temp_schema").fetchone()[0] == 0
    assert db.execute("SELECT count(*) AS n FROM memories").fetchone()["n"] == 0  # rows by name, any table
    assert len(db.execute("SELECT zeroblob(1000000)").fetchone()[0]) == 1_000_000
    counting = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 300000) SELECT max(x)"
    assert db.execute(f"{counting} FROM n").fetchone()[0] == 300_000  # longer than the query might take
    tree.add(db, here, "zoo", "written afterwards", MEMORY, "append-child", now=NOW)
    assert rows(db, here, "SELECT count(*) FROM nodes WHERE text = 'written afterwards'") == [(1,)]


@pytest.mark.slow
def test_others_write_while_a_query_runs(db: sqlite3.Connection, here: Project, tmp_path: Path) -> None:
    done: list[str] = []

    def ask() -> None:
        own = connect(str(tmp_path / "backstory.db"))
        done.append(refusal(own, here, endless("count(*) FROM n, nodes"), seconds=1.5))
        own.close()

    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(0.1)
    tree.add(db, here, "zoo", "written meanwhile", MEMORY, "append-child", now=NOW)
    assert not done
    asking.join()
    assert "took longer than 1.5 s" in done[0]


@pytest.mark.parametrize(
    ("call", "most", "why"),
    [
        (f"text LIKE '%{'a' * 190}b'", 10, "more than 10 calls of glob, instr, like, replace is refused"),
        ("instr(text, 'b')", 10, "more than 10 calls of glob, instr, like, replace is refused"),
        (f"text LIKE '%{'a' * 201}b'", 0, "LIKE or GLOB pattern too complex"),
    ],
)
def test_what_takes_long_in_one_step_is_bounded(
    db: sqlite3.Connection, here: Project, call: str, most: int, why: str
) -> None:
    """Nobody looks at the clock within a step."""
    tree.create(db, here, root_id="a", text="a" * 100, now=NOW)
    with pytest.raises(BadInput, match=why):
        query(db, here, " ".join(["SELECT", ", ".join([call] * (most + 1)), "FROM nodes"]))
    if most:
        query(db, here, " ".join(["SELECT", ", ".join([call] * most), "FROM nodes"]))
