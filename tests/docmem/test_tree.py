"""Trees: what every operation does, and what is refused."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from backstory import paths
from backstory.docmem import tree
from backstory.docmem.tree import Made
from backstory.errors import BadInput, Conflict, NotFound
from backstory.model import Node, Project
from backstory.store import lines, nodes, projects, vectors
from backstory.store.file.connection import connect, transaction
from tests.helpers.trees import assert_trees_sound

NOW = 1_800_000_000_000
LATER = NOW + 60_000
NOTE = ("note", "", "")


def project_at(db: sqlite3.Connection, folder: str) -> Project:
    with transaction(db):
        project_id = projects.ensure(db, paths.place(folder), NOW)
    return projects.by_id(db, project_id)


@pytest.fixture
def api(db: sqlite3.Connection, project: str) -> Iterator[Project]:
    yield project_at(db, project)
    assert_trees_sound(db)


@pytest.fixture
def grown(db: sqlite3.Connection, api: Project) -> dict[str, str]:
    """The ids of a tree's nodes by their text: main > (a > (a1, a2, a3), b, c > c1)."""
    made = [Made("main", None, "main", NOTE), Made(None, 0, "a", NOTE)]
    made += [Made(None, 1, text, NOTE) for text in ("a1", "a2", "a3")]
    made += [Made(None, 0, "b", NOTE), Made(None, 0, "c", NOTE), Made(None, 6, "c1", NOTE)]
    tree.build(db, api, made, now=NOW)
    return {one.text: one.id for one in nodes.subtree(db, api.number, "main")}


def append(db: sqlite3.Connection, api: Project, target_id: str, text: str = "x") -> Node:
    return tree.add(db, api, target_id, text, NOTE, "append-child", now=NOW)


def outline(db: sqlite3.Connection, api: Project, root_id: str = "main") -> str:
    """A tree as `main(a(a1 a2 a3) b c(c1))`."""
    found = nodes.subtree(db, api.number, root_id)
    depth = {found[0].parent_id: -1}
    told, before = "", -1
    for one in found:
        depth[one.id] = now = depth[one.parent_id] + 1
        told += ")" * (before - now) + (" " if now <= before else "(" if now else "") + one.text
        before = now
    return told + ")" * before


def orders(db: sqlite3.Connection, api: Project, node_id: str = "main") -> list[float]:
    return [one.order_value for one in nodes.children(db, api.number, node_id)]


def every(db: sqlite3.Connection) -> dict[str, tuple[object, ...]]:
    return {row["id"]: tuple(row) for row in db.execute("SELECT * FROM docmem_nodes")}


def words(db: sqlite3.Connection, match: str) -> int:
    """In how many nodes the keyword index has this word."""
    found = lines.postings(db, nodes.TABLE, match, 0, 2**62)
    return len(found.split(",")) if found else 0


def calls(*operations: Callable[[], object]) -> tuple[Callable[[], object], ...]:
    return operations


@contextmanager
def nothing_changes(db: sqlite3.Connection) -> Iterator[None]:
    before = every(db)
    yield
    assert not db.in_transaction
    assert every(db) == before


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


# --- order --------------------------------------------------------------------------------------------------


def test_the_first_child_is_at_one_and_the_next_one_more_than_the_highest(
    db: sqlite3.Connection, api: Project
) -> None:
    tree.create(db, api, root_id="main", now=NOW)
    first, second, third = (append(db, api, "main") for _ in range(3))
    assert (first.order_value, second.order_value, third.order_value) == (1.0, 2.0, 3.0)
    tree.delete(db, api, second.id)
    assert append(db, api, "main").order_value == 4.0
    tree.delete(db, api, first.id)
    assert append(db, api, "main").order_value == 5.0


def test_a_node_goes_a_fifth_of_the_way_from_its_target_to_the_neighbour(
    db: sqlite3.Connection, api: Project
) -> None:
    tree.create(db, api, root_id="main", now=NOW)
    left, right = append(db, api, "main", "left"), append(db, api, "main", "right")
    after = tree.add(db, api, left.id, "after", NOTE, "after", now=NOW)
    assert after.order_value == 1.0 + 0.2 * (2.0 - 1.0)
    before = tree.add(db, api, right.id, "before", NOTE, "before", now=NOW)
    assert before.order_value == 2.0 + 0.2 * (after.order_value - 2.0)
    assert outline(db, api) == "(left after before right)"
    assert (after.parent_id, after.root_id, after.size) == ("main", "main", 1)
    for same in (left, right):
        assert tree.node(db, api, same.id) == same


def test_without_a_neighbour_on_that_side_a_node_goes_one_away(db: sqlite3.Connection, api: Project) -> None:
    tree.create(db, api, root_id="main", now=NOW)
    only = append(db, api, "main", "only")
    assert tree.add(db, api, only.id, "before", NOTE, "before", now=NOW).order_value == 0.0
    assert tree.add(db, api, only.id, "after", NOTE, "after", now=NOW).order_value == 2.0
    first = next(nodes.children(db, api.number, "main"))
    assert tree.add(db, api, first.id, "first", NOTE, "before", now=NOW).order_value == -1.0
    assert outline(db, api) == "(first before only after)"


@pytest.mark.parametrize("mode", ["before", "after"])
def test_where_the_decimals_run_out_the_siblings_are_numbered_anew(
    db: sqlite3.Connection, api: Project, mode: str
) -> None:
    tree.create(db, api, root_id="main", now=NOW)
    left, right = append(db, api, "main", "left"), append(db, api, "main", "right")
    below = append(db, api, right.id, "below")
    target = left if mode == "after" else right
    added: list[str] = []
    for number in range(60):
        one = tree.add(db, api, target.id, str(number), NOTE, mode, now=LATER)
        assert tree.node(db, api, one.id) == one
        added.append(one.text)
    within = reversed(added) if mode == "after" else added
    assert outline(db, api) == f"(left {' '.join(within)} right(below))"
    assert len(set(orders(db, api))) == 62
    numbered = tree.node(db, api, right.id)
    assert numbered.order_value > 20  # it was numbered anew
    assert numbered.hash != right.hash
    assert numbered.updated_at == right.updated_at  # nobody changed it
    assert tree.node(db, api, below.id) == below


def test_numbers_too_large_to_add_one_to_are_numbered_anew(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    for value, mode, target in ((1e300, "append-child", "main"), (-1e300, "before", "c1")):
        node_id = grown["c"] if mode == "append-child" else grown["c1"]
        one = tree.node(db, api, node_id)
        with transaction(db):
            db.execute(
                "UPDATE docmem_nodes SET order_value = ?, hash = ? WHERE row = ?",
                (value, nodes.digest(one.parent_id, NOTE, one.text, value), one.row),
            )
        tree.add(db, api, grown[target], f"new-{target}", NOTE, mode, now=NOW)
    assert outline(db, api) == "main(a(a1 a2 a3) b c(new-c1 c1) new-main)"
    assert orders(db, api) == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("mode", ["before", "after"])
def test_nothing_stands_beside_a_root(
    db: sqlite3.Connection, api: Project, grown: dict[str, str], mode: str
) -> None:
    for operation in calls(
        lambda: tree.add(db, api, "main", "x", NOTE, mode, now=NOW),
        lambda: tree.copy(db, api, grown["b"], "main", mode, now=NOW),
        lambda: tree.move(db, api, grown["c1"], "main", mode, now=NOW),
    ):
        with pytest.raises(BadInput, match=r"main is a root.*append-child"), nothing_changes(db):
            operation()


# --- updates ------------------------------------------------------------------------------------------------


def test_new_content_changes_count_hash_and_time_and_nothing_else(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    before, others = tree.node(db, api, grown["a"]), every(db)
    after = tree.update_content(db, api, grown["a"], "something else", now=LATER)
    assert after == tree.node(db, api, grown["a"])
    assert (after.text, after.token_count, after.updated_at) == ("something else", 4, LATER)
    assert (after.created_at, after.order_value, after.size) == (NOW, before.order_value, before.size)
    assert after.hash not in (before.hash, "")
    changed = {key for key, row in every(db).items() if others[key] != row}
    assert changed == {after.id}


def test_a_new_context_changes_hash_and_time(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    before = tree.node(db, api, grown["b"])
    after = tree.update_context(db, api, before.id, ("fact", "name", "value"), now=LATER)
    assert after == tree.node(db, api, before.id)
    assert (after.context, after.text, after.updated_at) == ("fact:name:value", "b", LATER)
    assert after.hash != before.hash
    emptied = tree.update_context(db, api, before.id, ("", "", ""), now=LATER)
    assert emptied.context == "::"


def test_who_expects_another_hash_is_told_that_somebody_changed_it(
    db: sqlite3.Connection, api: Project, grown: dict[str, str], tmp_path: Path
) -> None:
    read = tree.node(db, api, grown["a1"])
    other = connect(str(tmp_path / "backstory.db"))
    tree.update_content(other, api, read.id, "by another", expected_hash=read.hash, now=NOW)
    other.close()
    for operation in calls(
        lambda: tree.update_content(db, api, read.id, "mine", expected_hash=read.hash, now=LATER),
        lambda: tree.update_context(db, api, read.id, ("x", "", ""), expected_hash=read.hash, now=LATER),
        lambda: tree.update_content(db, api, read.id, "mine", expected_hash="", now=LATER),
    ):
        with pytest.raises(Conflict, match=r"was changed by someone else.*docmem_find"), nothing_changes(db):
            operation()
    new = tree.node(db, api, read.id)
    assert tree.update_content(db, api, read.id, "mine", expected_hash=new.hash, now=LATER).text == "mine"
    assert tree.update_content(db, api, read.id, "whatever it was", now=LATER).text == "whatever it was"


def test_who_was_moved_meanwhile_was_changed(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    read = tree.node(db, api, grown["a1"])
    tree.move(db, api, read.id, grown["c"], "append-child", now=NOW)
    with pytest.raises(Conflict):
        tree.update_content(db, api, read.id, "x", expected_hash=read.hash, now=LATER)


def test_a_readonly_node_refuses_updates_and_says_where_a_note_may_go(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    fixed = tree.add(db, api, grown["b"], "as it came", NOTE, "after", readonly=True, now=NOW)
    for operation in calls(
        lambda: tree.update_content(db, api, fixed.id, "x", now=LATER),
        lambda: tree.update_content(db, api, fixed.id, "x", expected_hash=fixed.hash, now=LATER),
        lambda: tree.update_context(db, api, fixed.id, ("x", "", ""), now=LATER),
    ):
        with (
            pytest.raises(BadInput, match=rf"readonly.*target_id {fixed.id} and mode after"),
            nothing_changes(db),
        ):
            operation()
    tree.add(db, api, fixed.id, "a note", NOTE, "after", now=NOW)
    assert outline(db, api) == "main(a(a1 a2 a3) b as it came a note c(c1))"
    root = tree.build(db, api, [Made("book", None, "", NOTE, readonly=True)], now=NOW)
    with pytest.raises(BadInput, match="mode append-child"):
        tree.update_content(db, api, root.id, "x", now=NOW)


def test_a_readonly_node_may_be_moved_copied_deleted_summarised_and_get_children(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    fixed = tree.add(db, api, "main", "fixed", NOTE, "append-child", readonly=True, now=NOW)
    append(db, api, fixed.id, "child")
    tree.move(db, api, fixed.id, grown["a"], "before", now=NOW)
    assert outline(db, api) == "main(fixed(child) a(a1 a2 a3) b c(c1))"
    copied = tree.copy(db, api, fixed.id, grown["c"], "append-child", now=NOW)
    assert copied.readonly
    tree.delete(db, api, fixed.id)
    tree.delete(db, api, next(nodes.children(db, api.number, copied.id)).id)
    tree.summarise(db, api, copied.id, copied.id, "sum", NOTE, now=NOW)
    assert outline(db, api) == "main(a(a1 a2 a3) b c(c1 sum(fixed)))"
    assert tree.node(db, api, copied.id).readonly


# --- delete -------------------------------------------------------------------------------------------------


def test_a_node_goes_with_all_below_it_and_nothing_else(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    tree.create(db, api, root_id="other", text="other", now=NOW)
    append(db, api, grown["a2"], "deep")
    assert tree.delete(db, api, grown["a"]) == 5
    assert outline(db, api) == "main(b c(c1))"
    assert tree.delete(db, api, grown["c1"]) == 1
    assert tree.delete(db, api, "main") == 3
    assert [root.id for root in nodes.roots(db, api.number)] == ["other"]
    with pytest.raises(NotFound):
        tree.delete(db, api, "main")


def test_children_are_deleted_before_their_parents(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    db.execute("CREATE TEMP TABLE gone (number INTEGER PRIMARY KEY, text TEXT)")
    db.execute(
        "CREATE TEMP TRIGGER noted AFTER DELETE ON main.docmem_nodes"
        " BEGIN INSERT INTO gone (text) VALUES (old.text); END"
    )
    tree.delete(db, api, "main")
    gone = [row["text"] for row in db.execute("SELECT text FROM gone ORDER BY number")]
    for child, parent in (("a1", "a"), ("a3", "a"), ("c1", "c"), ("a", "main"), ("c", "main")):
        assert gone.index(child) < gone.index(parent)
    assert len(gone) == len(grown)


def test_what_was_deleted_is_not_found_by_its_words_nor_by_its_vector(
    db: sqlite3.Connection, api: Project
) -> None:
    tree.create(db, api, root_id="main", now=NOW)
    kept, gone = append(db, api, "main", "a walrus"), append(db, api, "main", "another walrus")
    with transaction(db):
        model = vectors.ensure_model(db, "test", 2)
        vectors.put(db, model, nodes.TABLE, [(kept.row, b"ab"), (gone.row, b"cd")])
    seen = lines.last_change(db)
    assert words(db, "walrus") == 2
    tree.delete(db, api, gone.id)
    assert words(db, "walrus") == 1
    assert [row["row"] for row in db.execute("SELECT row FROM vectors")] == [kept.row]
    assert lines.changed(db, seen) == [gone.row]


# --- copy ---------------------------------------------------------------------------------------------------


def test_a_copy_is_deep_with_new_ids_and_times(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    before = every(db)
    copied = tree.copy(db, api, grown["a"], grown["c"], "append-child", now=LATER)
    assert outline(db, api) == "main(a(a1 a2 a3) b c(c1 a(a1 a2 a3)))"
    new = nodes.subtree(db, api.number, copied.id)
    assert new[0] == copied
    assert not {one.id for one in new} & set(before)
    assert {(one.created_at, one.updated_at, one.root_id) for one in new} == {(LATER, LATER, "main")}
    assert (copied.order_value, copied.parent_id, copied.size) == (2.0, grown["c"], 4)
    changed = {key for key, row in every(db).items() if key in before and before[key] != row}
    assert changed == {"main", grown["c"]}  # of those only the size
    assert tree.node(db, api, grown["c"]).updated_at == NOW


def test_a_copy_beside_a_node_stands_between_it_and_its_neighbour(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    assert tree.copy(db, api, grown["c"], grown["a1"], "after", now=NOW).order_value == 1.2
    assert tree.copy(db, api, grown["b"], grown["b"], "before", now=NOW).order_value == 1.8
    assert outline(db, api) == "main(a(a1 c(c1) a2 a3) b b c(c1))"


def test_the_children_of_a_copy_are_numbered_anew_in_their_order(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    tree.add(db, api, grown["a1"], "a0", NOTE, "before", now=NOW)
    tree.add(db, api, grown["a1"], "a1b", NOTE, "after", now=NOW)
    copied = tree.copy(db, api, grown["a"], "main", "append-child", now=NOW)
    assert orders(db, api, grown["a"]) == [0.0, 1.0, 1.2, 2.0, 3.0]
    assert orders(db, api, copied.id) == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert outline(db, api, copied.id) == "a(a0 a1 a1b a2 a3)"


def test_a_copy_keeps_contexts_and_readonly_and_may_cross_trees(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    tree.add(db, api, grown["a2"], "fixed", ("law", "n", "v"), "append-child", readonly=True, now=NOW)
    tree.create(db, api, root_id="other", text="other", now=NOW)
    copied = tree.copy(db, api, "main", "other", "append-child", now=LATER)
    assert outline(db, api, "other") == "other(main(a(a1 a2(fixed) a3) b c(c1)))"
    (fixed,) = [one for one in nodes.subtree(db, api.number, copied.id) if one.text == "fixed"]
    assert (fixed.readonly, fixed.context, fixed.root_id) == (True, "law:n:v", "other")
    assert tree.node(db, api, "other").size == 10
    assert outline(db, api) == "main(a(a1 a2(fixed) a3) b c(c1))"


def test_a_copy_into_its_own_subtree_has_what_was_there_before(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    tree.copy(db, api, grown["a"], grown["a"], "append-child", now=NOW)
    assert outline(db, api) == "main(a(a1 a2 a3 a(a1 a2 a3)) b c(c1))"
    tree.copy(db, api, grown["a"], grown["a1"], "append-child", now=NOW)
    inner = "a(a1 a2 a3 a(a1 a2 a3))"
    assert outline(db, api) == f"main(a(a1({inner}) a2 a3 a(a1 a2 a3)) b c(c1))"


def test_what_was_copied_is_found_by_its_words(db: sqlite3.Connection, api: Project) -> None:
    tree.create(db, api, root_id="main", text="getUserName of a walrus", now=NOW)
    tree.copy(db, api, "main", "main", "append-child", now=NOW)
    assert words(db, "walrus") == 2
    assert words(db, "terms: user") == 2  # the parts of a name are known as well


# --- move ---------------------------------------------------------------------------------------------------


def test_a_node_moves_with_all_below_it(db: sqlite3.Connection, api: Project, grown: dict[str, str]) -> None:
    before = every(db)
    moved = tree.move(db, api, grown["a"], grown["c"], "append-child", now=LATER)
    assert outline(db, api) == "main(b c(c1 a(a1 a2 a3)))"
    assert moved == tree.node(db, api, grown["a"])
    assert (moved.parent_id, moved.order_value, moved.updated_at) == (grown["c"], 2.0, LATER)
    assert moved.created_at == NOW
    changed = {key for key, row in every(db).items() if before[key] != row}
    assert changed == {grown["a"], grown["c"]}  # c has more below it; main has not
    assert tree.node(db, api, grown["c"]).size == 6


def test_a_node_moves_beside_another(db: sqlite3.Connection, api: Project, grown: dict[str, str]) -> None:
    assert tree.move(db, api, grown["c1"], grown["a2"], "before", now=NOW).order_value == 1.8
    assert tree.move(db, api, grown["b"], grown["a3"], "after", now=NOW).order_value == 4.0
    assert outline(db, api) == "main(a(a1 c1 a2 a3 b) c)"


def test_a_node_that_moves_among_its_siblings_is_no_neighbour_of_itself(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    moved = tree.move(db, api, grown["a2"], grown["a1"], "after", now=NOW)  # where it is already
    assert (outline(db, api, grown["a"]), moved.order_value) == ("a(a1 a2 a3)", 1.0 + 0.2 * 2.0)
    moved = tree.move(db, api, grown["a3"], grown["a"], "append-child", now=NOW)
    assert (outline(db, api, grown["a"]), moved.order_value) == ("a(a1 a2 a3)", 2.4)
    moved = tree.move(db, api, grown["a1"], grown["a"], "append-child", now=NOW)
    assert (outline(db, api, grown["a"]), moved.order_value) == ("a(a2 a3 a1)", 3.4)
    only = tree.move(db, api, grown["c1"], grown["c"], "append-child", now=NOW)
    assert only.order_value == 1.0
    assert outline(db, api) == "main(a(a2 a3 a1) b c(c1))"


def test_a_node_that_moves_to_and_fro_finds_room_for_ever(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    a1, a2, a3 = grown["a1"], grown["a2"], grown["a3"]
    for _ in range(40):
        tree.move(db, api, a3, a1, "after", now=NOW)
        assert outline(db, api, grown["a"]) == "a(a1 a3 a2)"
        tree.move(db, api, a2, a1, "after", now=NOW)
        assert outline(db, api, grown["a"]) == "a(a1 a2 a3)"


def test_a_node_never_moves_into_itself_or_what_is_below_it(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    deep = append(db, api, grown["a2"], "deep").id
    for target, mode in (
        (grown["a"], "append-child"),
        (grown["a"], "after"),
        (grown["a1"], "append-child"),
        (grown["a1"], "before"),
        (deep, "append-child"),
    ):
        with pytest.raises(BadInput, match="itself or below it"), nothing_changes(db):
            tree.move(db, api, grown["a"], target, mode, now=NOW)


def test_a_node_never_leaves_its_tree(db: sqlite3.Connection, api: Project, grown: dict[str, str]) -> None:
    tree.create(db, api, root_id="other", now=NOW)
    with pytest.raises(BadInput, match=r"different trees; docmem_copy_node"), nothing_changes(db):
        tree.move(db, api, grown["a"], "other", "append-child", now=NOW)


def test_a_root_stays_where_it_is(db: sqlite3.Connection, api: Project, grown: dict[str, str]) -> None:
    tree.create(db, api, root_id="other", now=NOW)
    for target in (grown["a"], "main", "other"):
        with pytest.raises(BadInput, match=r"main is the root .*docmem_copy_node"), nothing_changes(db):
            tree.move(db, api, "main", target, "append-child", now=NOW)


# --- summarise ----------------------------------------------------------------------------------------------


def test_a_summary_stands_in_the_middle_of_what_it_covers(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    append(db, api, grown["a"], "a4")
    before = {key: tree.node(db, api, grown[key]) for key in grown}
    summary = tree.summarise(db, api, grown["a1"], grown["a3"], "sum", ("summary", "n", "v"), now=LATER)
    assert outline(db, api) == "main(a(sum(a1 a2 a3) a4) b c(c1))"
    assert (summary.order_value, summary.context, summary.size) == (2.0, "summary:n:v", 4)
    assert summary == tree.node(db, api, summary.id)
    assert (summary.created_at, summary.readonly, summary.root_id) == (LATER, False, "main")
    for text in ("a1", "a2", "a3"):
        leaf = tree.node(db, api, grown[text])
        assert (leaf.order_value, leaf.parent_id) == (before[text].order_value, summary.id)
        assert (leaf.created_at, leaf.updated_at) == (NOW, LATER)
        assert leaf.hash != before[text].hash
        assert leaf.text == text
    assert tree.node(db, api, "main").size == 10
    assert tree.node(db, api, grown["a"]).updated_at == NOW


def test_a_summary_is_at_the_midpoint_of_the_first_and_the_last(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    new = tree.add(db, api, grown["a2"], "a2b", NOTE, "after", now=NOW)
    summary = tree.summarise(db, api, grown["a2"], new.id, "sum", NOTE, now=NOW)
    assert summary.order_value == (2.0 + 2.2) / 2
    assert orders(db, api, summary.id) == [2.0, 2.2]
    assert outline(db, api, grown["a"]) == "a(a1 sum(a2 a2b) a3)"


def test_a_single_leaf_is_a_range(db: sqlite3.Connection, api: Project, grown: dict[str, str]) -> None:
    summary = tree.summarise(db, api, grown["a2"], grown["a2"], "sum", NOTE, now=NOW)
    assert (summary.order_value, summary.size) == (2.0, 2)
    assert outline(db, api) == "main(a(a1 sum(a2) a3) b c(c1))"


def test_a_range_may_be_named_from_its_end(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    tree.summarise(db, api, grown["a3"], grown["a2"], "sum", NOTE, now=NOW)
    assert outline(db, api) == "main(a(a1 sum(a2 a3)) b c(c1))"


def test_a_summary_covers_only_leaves_below_one_parent(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    for start, end, says in (
        ("a1", "b", "not below the same parent"),
        ("a1", "c1", "not below the same parent"),
        ("a", "b", f"{grown['a']} has nodes below it"),
        ("a", "a", f"{grown['a']} has nodes below it"),
        ("b", "c", f"{grown['c']} has nodes below it"),
        ("main", "main", "main is a root"),
        ("main", "b", "main is a root"),
        ("b", "main", "not below the same parent"),
    ):
        with pytest.raises(BadInput, match=says), nothing_changes(db):
            tree.summarise(db, api, grown[start], grown[end], "sum", NOTE, now=NOW)
    tree.create(db, api, root_id="other", now=NOW)
    with pytest.raises(BadInput, match="main is a root"):
        tree.summarise(db, api, "main", "other", "sum", NOTE, now=NOW)


def test_a_node_within_the_range_that_is_no_leaf_is_refused(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    append(db, api, grown["a2"], "below")
    with pytest.raises(BadInput, match=f"{grown['a2']} has nodes below it"), nothing_changes(db):
        tree.summarise(db, api, grown["a1"], grown["a3"], "sum", NOTE, now=NOW)


def test_summaries_of_summaries_grow_from_what_they_cover(
    db: sqlite3.Connection, api: Project, grown: dict[str, str]
) -> None:
    """A summary is no leaf, but a leaf can be added beside it, and the summary moved below another."""
    inner = tree.summarise(db, api, grown["a1"], grown["a2"], "inner", NOTE, now=NOW)
    outer = tree.summarise(db, api, grown["a3"], grown["a3"], "outer", NOTE, now=NOW)
    tree.move(db, api, inner.id, grown["a3"], "before", now=NOW)
    assert outline(db, api) == "main(a(outer(inner(a1 a2) a3)) b c(c1))"
    assert tree.node(db, api, outer.id).size == 5


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
        Made("aaaaaaaa", 2, "second of first", ("x", "y", "z"), readonly=True),  # before its parent
        Made("book", None, "root", ("book", "", "")),
        Made(None, 1, "first", NOTE),
        Made(None, 1, "last", NOTE),
        Made(None, 2, "third of first", NOTE),
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
        ([], "one root, not 0"),
        ([Made(None, None, "", NOTE)] * 2, "one root, not 2"),
        ([Made(None, 0, "", NOTE)], "one root, not 0"),
        (
            [Made(None, None, "", NOTE), Made("abc", 2, "", NOTE), Made(None, 1, "", NOTE)],
            "node abc .* circle",
        ),
        ([Made(None, None, "", NOTE), Made(None, 7, "", NOTE)], "node 2 is not below the root"),
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
    assert nodes.lines(db, first, last) == f"{root.row},-1,4,0,0"
    assert nodes.texts(db, [root.row]) == [(root.row, "zoo \nthe walrus")]
    assert nodes.authors(db, first, last) == []
    with transaction(db):
        vectors.put(db, vectors.ensure_model(db, "test", 2), nodes.TABLE, [(root.row, b"ab")])
    seen = lines.last_change(db)
    tree.update_content(db, api, "main", "the seal is no fish", now=NOW)
    assert (words(db, "walrus"), words(db, "seal"), words(db, "zoo")) == (0, 1, 1)
    assert nodes.lines(db, first, last) == f"{root.row},-1,7,0,0"
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
