"""Trees: what every operation does, and what is refused."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from backstory.docmem import tree
from backstory.docmem.tree import Made
from backstory.errors import BadInput, NotFound
from backstory.model import Project
from backstory.store import lines, nodes, projects, vectors
from backstory.store.file.connection import connect, transaction
from tests.helpers.trees import NOTE, NOW, append, calls, nothing_changes, orders, outline, project_at, words


def test_the_outline_of_a_tree_is_easy_to_read(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    assert outline(db, api) == "main(a(a1 a2 a3) b c(c1))"
    assert outline(db, api, grown["c1"]) == "c1"


# --- the tree -----------------------------------------------------------------------------------------------


def test_an_id_is_eight_random_characters(db: sqlite3.Connection, api: Project) -> None:
    root = tree.create(db, api, now=NOW)
    ids = {root.id, *(append(db, api, root.id).id for _ in range(50))}
    assert len(ids) == 51
    assert all(re.fullmatch("[a-z0-9]{8}", one) for one in ids)
    assert {sign for _ in range(500) for sign in tree.random_id()} == set(
        "abcdefghijklmnopqrstuvwxyz0123456789"
    )


def test_an_id_that_is_taken_is_not_given_again(db: sqlite3.Connection, api: Project) -> None:
    tree.create(db, api, root_id="aaaaaaaa", now=NOW)
    offered = iter(["aaaaaaaa", "aaaaaaaa", "bbbbbbbb"])
    assert tree.free_id(db, api, lambda: next(offered)) == "bbbbbbbb"


def test_a_roots_id_may_be_chosen(db: sqlite3.Connection, api: Project) -> None:
    root = tree.create(db, api, root_id="My_book-2", now=NOW)
    assert (root.id, root.root_id, root.parent_id, root.size) == ("My_book-2", "My_book-2", None, 1)
    assert tree.node(db, api, "My_book-2") == root


@pytest.mark.parametrize("root_id", ["", "a b", "ü", "a/b", "x" * 25, "a\n", "\ud800", "../x"])
def test_a_root_id_with_other_characters_is_refused_with_those_that_may_be(
    db: sqlite3.Connection, api: Project, root_id: str
) -> None:
    with pytest.raises(BadInput, match=r"1 to 24 letters \(a-z, A-Z\), digits, - and _"), nothing_changes(db):
        tree.create(db, api, root_id=root_id, now=NOW)


def test_a_root_id_that_is_a_secret_is_refused_and_stored_nowhere(
    db: sqlite3.Connection, api: Project
) -> None:
    key = "AKIA" + "QYLPMN5HHHFPZAM2"
    with pytest.raises(BadInput, match="may be no secret") as refused:
        tree.create(db, api, root_id=key, now=NOW)
    assert key not in str(refused.value)
    with pytest.raises(BadInput, match="may be no secret"):
        tree.build(db, api, [tree.Made(key, None, "text", ("root", "x", ""), readonly=False)], now=NOW)
    assert not db.execute("SELECT 1 FROM docmem_nodes").fetchone()


def test_a_root_id_that_is_taken_is_refused_by_name(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    for taken in ("main", grown["a1"]):
        with pytest.raises(BadInput, match=f"there is a node {taken} already"), nothing_changes(db):
            tree.create(db, api, root_id=taken, now=NOW)


def test_two_projects_may_have_trees_of_the_same_id_and_see_only_their_own(
    db: sqlite3.Connection, api: Project, tmp_path: Path
) -> None:
    (tmp_path / "web").mkdir()
    web = project_at(db, str(tmp_path / "web"))
    tree.create(db, api, root_id="main", text="of the api", now=NOW)
    tree.create(db, web, root_id="main", text="of the web", now=NOW)
    child = append(db, web, "main")
    assert (tree.node(db, api, "main").size, tree.node(db, web, "main").size) == (1, 2)
    with pytest.raises(NotFound):
        tree.node(db, api, child.id)
    with pytest.raises(NotFound):
        tree.copy(db, api, child.id, "main", "append-child", now=NOW)
    assert tree.delete(db, web, "main") == 2
    assert outline(db, api) == "of the api"


def test_without_a_context_a_root_is_named_after_its_id(db: sqlite3.Connection, api: Project) -> None:
    assert tree.create(db, api, root_id="main", now=NOW).context == "root:main:"
    random = tree.create(db, api, now=NOW)
    assert random.context == f"root:{random.id}:"
    assert tree.create(db, api, context=("book", "", "2nd"), now=NOW).context == "book::2nd"


@pytest.mark.parametrize(
    ("text", "count"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("x" * 100_000, 25_000), ("🦭" * 5, 2)]
)
def test_a_token_is_four_characters_and_the_rest_is_one_too(
    db: sqlite3.Connection, api: Project, text: str, count: int
) -> None:
    root = tree.create(db, api, text=text, now=NOW)
    assert (root.text, root.token_count) == (text, count)
    assert tree.node(db, api, root.id) == root
    changed = tree.update_content(db, api, root.id, text + "1234", now=NOW) if count < 25_000 else root
    assert changed.token_count == count + (count < 25_000)


def test_the_line_that_stands_for_a_node_has_its_time_without_blanks(
    db: sqlite3.Connection, api: Project
) -> None:
    root = tree.create(db, api, root_id="main", context=("root", "my", "book"), now=NOW)
    assert root.metadata == "main root:my:book 2027-01-15T08:00:00Z"


def test_the_hash_is_of_place_context_and_text(db: sqlite3.Connection, api: Project) -> None:
    tree.create(db, api, root_id="main", now=NOW)
    one = tree.add(db, api, "main", "größer", ("note", "n", "v"), "append-child", now=NOW)
    assert one.hash == nodes.digest("main", ("note", "n", "v"), "größer", 1.0)
    # printf '|root|main|||1.0' | openssl dgst -sha512 -binary | base64
    assert tree.node(db, api, "main").hash == (
        "PQnCXjCuiEJ2Wx52l0KTgQgZ1KidmnNyRtfkMoEngAVIWRL50wK2zTFy7+oq0Q/xnpZdRWwxACZXASUZXX13cg=="
    )
    # printf 'main|note|n|v|größer|1.2' | openssl dgst -sha512 -binary | base64
    assert nodes.digest("main", ("note", "n", "v"), "größer", 1.2) == (
        "sozNiqptsjuaWu8IRO12t2vGZKizvpHXO3GT9F5IgSR6WzAfvqqjsOrCzmV0zh1pHasHdaISTuXgomo0sU0pJg=="
    )


def test_readonly_is_not_hashed(db: sqlite3.Connection, api: Project) -> None:
    hashes = set()
    for name, readonly in (("one", True), ("two", False)):
        tree.create(db, api, root_id=name, now=NOW)
        (made,) = [tree.add(db, api, name, "t", NOTE, "append-child", readonly=readonly, now=NOW)]
        assert made.readonly is tree.node(db, api, made.id).readonly is readonly
        hashes.add(nodes.digest("p", NOTE, made.text, made.order_value))
        assert made.hash == nodes.digest(name, NOTE, "t", 1.0)
    assert len(hashes) == 1


@pytest.mark.parametrize(
    "text", ["", "a\0b", "a\r\nb\r", "\ufeff", " \n trailing \n", "x|y|1.0", "'; DROP TABLE", "\u2028\x85"]
)
def test_a_text_is_kept_byte_for_byte(db: sqlite3.Connection, api: Project, text: str) -> None:
    root = tree.create(db, api, text=text, now=NOW)
    other = tree.update_content(db, api, tree.create(db, api, now=NOW).id, text, now=NOW)
    assert tree.node(db, api, root.id).text == tree.node(db, api, other.id).text == text


# --- contexts and texts that are refused --------------------------------------------------------------------


def operations(db: sqlite3.Connection, api: Project, grown: dict[str, str]) -> list[Callable[..., object]]:
    """Those that take a text and a context."""
    return [
        lambda text, context: tree.create(db, api, text=text, context=context, now=NOW),
        lambda text, context: tree.add(db, api, "main", text, context, "append-child", now=NOW),
        lambda text, context: tree.summarise(db, api, grown["a1"], grown["a2"], text, context, now=NOW),
        lambda text, context: tree.build(db, api, [Made(None, None, text, context)], now=NOW),
    ]


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize(
    ("part", "says"),
    [
        ("x" * 25, "has 25 characters, and 24 is the most"),
        ("a\nb", "has a line break or a control character"),
        ("a\rb", "has a line break or a control character"),
        ("a\u2028b", "has a line break or a control character"),
        ("tab\t", "has a line break or a control character"),
        ("\x00", "has a line break or a control character"),
        ("\x7f", "has a line break or a control character"),
        ("\ud83e", "has a line break or a control character"),
    ],
)
def test_a_context_that_does_not_fit_is_refused_by_the_name_of_its_part(
    db: sqlite3.Connection, api: Project, grown: dict[str, str], place: int, part: str, says: str
) -> None:
    context = tuple(part if at == place else "" for at in range(3))
    name = ("context_type", "context_name", "context_value")[place]
    for operation in operations(db, api, grown):
        with pytest.raises(BadInput, match=f"{name} {says}"), nothing_changes(db):
            operation("", context)
    with pytest.raises(BadInput, match=f"{name} {says}"), nothing_changes(db):
        tree.update_context(db, api, grown["a1"], (context[0], context[1], context[2]), now=NOW)


@pytest.mark.parametrize("part", ["x" * 24, "🦭" * 24, "👩\u200d👩\u200d👧", "a:b\\c", " "])
def test_a_context_of_24_characters_fits_whatever_they_are(
    db: sqlite3.Connection, api: Project, part: str
) -> None:
    root = tree.create(db, api, context=(part, part, part), now=NOW)
    assert tree.node(db, api, root.id).context == f"{part}:{part}:{part}"


def test_a_context_has_three_parts(db: sqlite3.Connection, api: Project) -> None:
    short: tuple[str, ...] = ("note",)
    with pytest.raises(BadInput, match="three parts"):
        tree.create(db, api, context=short, now=NOW)  # type: ignore[arg-type]


def test_a_text_that_is_too_long_is_refused_with_what_to_do(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    long = "x" * 100_001
    for operation in operations(db, api, grown):
        with pytest.raises(BadInput, match=r"100,001 characters.*split it into nodes"), nothing_changes(db):
            operation(long, NOTE)
    with pytest.raises(BadInput, match="split it into nodes"), nothing_changes(db):
        tree.update_content(db, api, grown["b"], long, now=NOW)


def test_half_a_character_is_refused(db: sqlite3.Connection, api: Project, grown: dict[str, str]) -> None:
    for operation in operations(db, api, grown):
        with pytest.raises(BadInput, match="lone surrogate"), nothing_changes(db):
            operation("half: \ud83e", NOTE)
    with pytest.raises(BadInput, match="lone surrogate"), nothing_changes(db):
        tree.update_content(db, api, grown["b"], "\udc00", now=NOW)


@pytest.mark.parametrize("missing", ["nothing1", "", "x" * 999, "a b", "\ud800", "MAIN"])
def test_a_node_that_is_not_there_is_said_to_be_missing_by_every_operation(
    db: sqlite3.Connection, api: Project, grown: dict[str, str], missing: str
) -> None:
    there = grown["a1"]
    for operation in calls(
        lambda: tree.node(db, api, missing),
        lambda: append(db, api, missing),
        lambda: tree.update_content(db, api, missing, "x", now=NOW),
        lambda: tree.update_context(db, api, missing, NOTE, now=NOW),
        lambda: tree.delete(db, api, missing),
        lambda: tree.move(db, api, missing, there, "after", now=NOW),
        lambda: tree.move(db, api, there, missing, "after", now=NOW),
        lambda: tree.copy(db, api, missing, there, "after", now=NOW),
        lambda: tree.copy(db, api, there, missing, "after", now=NOW),
        lambda: tree.summarise(db, api, missing, there, "x", NOTE, now=NOW),
        lambda: tree.summarise(db, api, there, missing, "x", NOTE, now=NOW),
    ):
        with pytest.raises(NotFound, match=r"docmem_list .* docmem_structure .* docmem_search") as raised:
            operation()
        assert len(str(raised.value)) < 250
    assert outline(db, api) == "main(a(a1 a2 a3) b c(c1))"


def test_a_mode_that_there_is_not_is_refused_with_those_there_are(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    a, b = grown["a"], grown["b"]
    for operation in calls(
        lambda: tree.add(db, api, a, "x", NOTE, "prepend", now=NOW),
        lambda: tree.move(db, api, a, b, "", now=NOW),
        lambda: tree.copy(db, api, a, b, "After", now=NOW),
    ):
        with pytest.raises(BadInput, match="append-child, before, after"), nothing_changes(db):
            operation()


# --- all or nothing -----------------------------------------------------------------------------------------


def test_an_operation_that_breaks_off_leaves_nothing_behind(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    db.execute(
        "CREATE TEMP TRIGGER full BEFORE UPDATE OF parent_id ON main.docmem_nodes WHEN old.text = 'a3'"
        " BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
    )
    db.execute(
        "CREATE TEMP TRIGGER full_too BEFORE INSERT ON main.docmem_nodes WHEN new.text = 'a3'"
        " BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
    )
    db.execute(
        "CREATE TEMP TRIGGER full_as_well BEFORE DELETE ON main.docmem_nodes WHEN old.text = 'main'"
        " BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
    )
    made = [Made("new", None, "", NOTE), Made(None, 0, "a2", NOTE), Made(None, 0, "a3", NOTE)]
    for operation in calls(
        lambda: tree.summarise(db, api, grown["a1"], grown["a3"], "sum", NOTE, now=NOW),
        lambda: tree.copy(db, api, grown["a"], "main", "append-child", now=NOW),
        lambda: tree.delete(db, api, "main"),
        lambda: tree.build(db, api, made, now=NOW),
    ):
        with pytest.raises(sqlite3.DatabaseError, match="the disk is full"), nothing_changes(db):
            operation()


def test_two_who_write_at_once_both_get_their_place(
    db: sqlite3.Connection, api: Project, grown: dict[str, str], tmp_path: Path
) -> None:
    failed: list[BaseException] = []

    def write(text: str) -> None:
        own = connect(str(tmp_path / "backstory.db"))
        try:
            for _ in range(20):
                append(own, api, grown["b"], text)
                tree.add(own, api, grown["a2"], text, NOTE, "before", now=NOW)
        except BaseException as error:
            failed.append(error)
            raise
        finally:
            own.close()

    writing = [threading.Thread(target=write, args=(text,)) for text in ("one", "two")]
    for thread in writing:
        thread.start()
    for thread in writing:
        thread.join()
    assert not failed
    assert orders(db, api, grown["b"]) == [float(number) for number in range(1, 41)]
    assert tree.node(db, api, "main").size == 8 + 80


# --- a whole tree at once -----------------------------------------------------------------------------------


def test_a_tree_is_built_as_it_is_given(db: sqlite3.Connection, api: Project) -> None:
    made = [
        Made("book", None, "root", ("book", "", "")),
        Made(None, 0, "first", NOTE),
        Made("aaaaaaaa", 1, "second of first", ("x", "y", "z"), readonly=True),
        Made(None, 1, "third of first", NOTE),
        Made(None, 0, "last", NOTE),
    ]
    root = tree.build(db, api, made, now=NOW)
    assert root == tree.node(db, api, "book")
    assert outline(db, api, "book") == "root(first(second of first third of first) last)"
    assert orders(db, api, "book") == [1.0, 2.0]
    kept = tree.node(db, api, "aaaaaaaa")
    assert (kept.readonly, kept.context, kept.order_value) == (True, "x:y:z", 1.0)
    rows = [one.row for one in nodes.subtree(db, api.number, "book")]
    assert rows == sorted(rows)


def test_an_id_in_a_document_that_is_taken_or_none_is_replaced(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    made = [
        Made("book", None, "root", NOTE),
        Made(grown["a1"], 0, "taken", NOTE),
        Made("twicetwo", 0, "once", NOTE),
        Made("twicetwo", 0, "twice", NOTE),
        Made("My Chapter", 0, "no id", NOTE),
        Made("chapter", 0, "only a root may choose", NOTE),
        Made("twicetwo", 1, "thrice", NOTE),
    ]
    tree.build(db, api, made, now=NOW)
    found = {one.text: one.id for one in nodes.subtree(db, api.number, "book")}
    assert found.pop("root") == "book"
    kept = [text for text, node_id in found.items() if node_id == "twicetwo"]
    assert len(kept) == 1
    assert all(re.fullmatch("[a-z0-9]{8}", node_id) for node_id in found.values())
    assert len(set(found.values()) | set(grown.values())) == len(found) + len(grown)
    assert tree.node(db, api, grown["a1"]).text == "a1"


@pytest.mark.parametrize(
    ("made", "says"),
    [
        ([Made(None, None, "", NOTE), Made("abc", 0, "x" * 100_001, NOTE)], "node abc: the text has 100,001"),
        ([Made(None, None, "", NOTE), Made(None, 0, "", ("x" * 25, "", ""))], "node 2: context_type has 25"),
        ([Made("main", None, "", NOTE)], "there is a node main already"),
        ([Made("a b", None, "", NOTE)], "cannot be the id of a root"),
    ],
)
def test_what_is_no_tree_is_refused(
    db: sqlite3.Connection, api: Project, grown: dict[str, str], made: list[Made], says: str
) -> None:
    with pytest.raises(BadInput, match=says), nothing_changes(db):
        tree.build(db, api, made, now=NOW)


# --- reading ------------------------------------------------------------------------------------------------


def test_children_come_in_order_or_last_first_and_only_as_many_as_are_asked_for(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    found = nodes.children(db, api.number, grown["a"])
    assert [one.text for one in found] == ["a1", "a2", "a3"]
    found = nodes.children(db, api.number, grown["a"], last_first=True)
    assert [one.text for one in found] == ["a3", "a2", "a1"]
    assert list(nodes.children(db, api.number, "nothing1")) == []
    flat = [Made("flat", None, "", NOTE), *(Made(None, 0, str(n), NOTE) for n in range(2_000))]
    tree.build(db, api, flat, now=NOW)
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    db.set_progress_handler(count, 10)
    try:
        last = next(nodes.children(db, api.number, "flat", last_first=True))
    finally:
        db.set_progress_handler(None, 0)
    assert last.text == "1999"
    assert steps < 50


def test_a_path_leads_from_the_root_to_the_node(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    assert [one.text for one in nodes.path(db, api.number, grown["a2"])] == ["main", "a", "a2"]
    assert [one.text for one in nodes.path(db, api.number, "main")] == ["main"]
    assert nodes.path(db, api.number, "nothing1") == []
    assert nodes.subtree(db, api.number, "nothing1") == []


def test_roots_are_listed_oldest_first(db: sqlite3.Connection, api: Project) -> None:
    for name, at in (("late", NOW + 2), ("early", NOW), ("b", NOW + 1), ("a", NOW + 1)):
        tree.create(db, api, root_id=name, now=at)
    tree.update_content(db, api, "early", "changed", now=NOW + 9)
    assert [one.id for one in nodes.roots(db, api.number)] == ["early", "a", "b", "late"]


def test_a_node_is_found_by_the_beginning_of_its_id_and_by_its_row(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    for name in ("book", "bookmark", "Book"):
        tree.create(db, api, root_id=name, now=NOW)
    assert [one.id for one in nodes.starting_with(db, api.number, "book")] == ["book", "bookmark"]
    assert nodes.starting_with(db, api.number, "zzzzzzzzz") == []
    assert len(nodes.starting_with(db, api.number, "")) == 5
    one, other = tree.node(db, api, grown["a1"]), tree.node(db, api, "book")
    assert nodes.at(db, [one.row, other.row, 7]) == {one.row: one, other.row: other}
    assert nodes.at(db, []) == {}


def test_the_rows_of_a_tree_are_those_of_no_other(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    tree.create(db, api, root_id="other", now=NOW)
    assert nodes.rows_of_tree(db, api.number, "other") == str(tree.node(db, api, "other").row)
    found = {int(row) for row in nodes.rows_of_tree(db, api.number, "main").split(",")}
    assert found == {one.row for one in nodes.subtree(db, api.number, "main")}
    assert nodes.rows_of_tree(db, api.number, "nothing1") == ""
    assert nodes.count(db) == len(grown) + 1


def test_the_keyword_index_and_the_vectors_follow_every_change(db: sqlite3.Connection, api: Project) -> None:
    root = tree.create(db, api, root_id="main", text="the walrus", context=("root", "zoo", ""), now=NOW)
    first, last = projects.rows(api.number)
    assert words(db, "walrus") == words(db, "zoo") == 1
    assert nodes.lines(db, first, last) == f"{root.row},-1,-1,0,4,0,0"
    assert nodes.texts(db, [root.row]) == [(root.row, "zoo \nthe walrus")]
    assert nodes.authors(db, first, last) == []
    with transaction(db):
        vectors.put(db, vectors.ensure_model(db, "test", 2), nodes.TABLE, [(root.row, b"ab")])
    seen = lines.last_change(db)
    tree.update_content(db, api, "main", "the seal is no fish", now=NOW)
    assert (words(db, "walrus"), words(db, "seal"), words(db, "zoo")) == (0, 1, 1)
    assert nodes.lines(db, first, last) == f"{root.row},-1,-1,0,7,0,0"
    assert lines.changed(db, seen) == [root.row]
    assert db.execute("SELECT count(*) FROM vectors").fetchone()[0] == 0
    tree.update_context(db, api, "main", ("root", "sea", ""), now=NOW)
    assert (words(db, "zoo"), words(db, "sea"), words(db, "seal")) == (0, 1, 1)
    child = append(db, api, "main", "getUserName")
    assert words(db, "terms: user") == 1
    with transaction(db):
        vectors.put(db, vectors.ensure_model(db, "test", 2), nodes.TABLE, [(child.row, b"ab")])
    seen = lines.last_change(db)
    tree.add(db, api, child.id, "x", NOTE, "before", now=NOW)
    tree.move(db, api, child.id, "main", "append-child", now=NOW)
    assert lines.changed(db, seen) == []  # a place is nothing that search knows
    assert db.execute("SELECT count(*) FROM vectors").fetchone()[0] == 1


# --- large trees --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_ten_thousand_levels_are_nothing_special(db: sqlite3.Connection, api: Project) -> None:
    deep = 10_000
    made = [Made(None, number - 1 if number else None, str(number), NOTE) for number in range(deep)]
    root = tree.build(db, api, made, now=NOW)
    found = nodes.subtree(db, api.number, root.id)
    assert [one.size for one in found] == list(range(deep, 0, -1))
    assert nodes.path(db, api.number, found[-1].id) == found
    append(db, api, found[-1].id, "leaf")
    with pytest.raises(BadInput, match="below it"):
        tree.move(db, api, found[1].id, found[-1].id, "append-child", now=NOW)
    tree.move(db, api, found[9_000].id, found[1].id, "append-child", now=NOW)
    assert [one.text for one in nodes.children(db, api.number, found[1].id)] == ["2", "9000"]
    copied = tree.copy(db, api, found[9_000].id, found[8_999].id, "append-child", now=NOW)
    assert copied.size == 1_001
    assert tree.node(db, api, root.id).size == deep + 1 + 1_001
    assert tree.delete(db, api, found[1].id) == deep + 1_001
    assert nodes.count(db) == 1
