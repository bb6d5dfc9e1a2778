"""What adding, updating, deleting, copying, moving and summarising do to a tree."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from backstory.docmem import tree
from backstory.docmem.tree import Made
from backstory.errors import BadInput, Conflict, NotFound
from backstory.model import Project
from backstory.store import lines, nodes, vectors
from backstory.store.file.connection import connect, transaction
from tests.helpers.trees import NOTE, NOW, append, calls, every, nothing_changes, orders, outline, words

LATER = NOW + 60_000


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
