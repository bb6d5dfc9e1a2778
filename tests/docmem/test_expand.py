"""Trees as text: what is taken into a budget, and how it is shown."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory import paths
from backstory.docmem import tree
from backstory.docmem.expand import (
    DEEPEST,
    MOST_EMPTY,
    blocks,
    expand,
    expansion,
    serialize,
    shown,
    structure,
    take,
)
from backstory.docmem.tree import Made
from backstory.model import Node, Project
from backstory.store import nodes, projects
from backstory.store.file.connection import connect, transaction

NOW = 1_769_860_800_000  # 2026-01-31T12:00:00Z
Shape = Sequence[tuple[int | None, str]]  # index of the parent, and text of each node


def make(shape: Shape) -> list[Node]:
    """Nodes n0, n1 ... as the store would have them."""
    sizes = [1] * len(shape)
    for number in reversed(range(len(shape))):
        parent = shape[number][0]
        if parent is not None:
            sizes[parent] += sizes[number]
    return [
        Node(
            id=f"n{number}",
            row=number,
            parent_id=None if parent is None else f"n{parent}",
            root_id="n0",
            text=text,
            order_value=float(number),
            token_count=-(-len(text) // 4),
            context_type="note",
            context_name="",
            context_value="",
            readonly=False,
            hash="",
            size=sizes[number],
            created_at=NOW,
            updated_at=NOW,
        )
        for number, (parent, text) in enumerate(shape)
    ]


def children_of(all_nodes: Iterable[Node]) -> Callable[[Node], list[Node]]:
    """The last first, as `take` wants them."""
    below: dict[str | None, list[Node]] = {}
    for node in all_nodes:
        below.setdefault(node.parent_id, []).insert(0, node)
    return lambda node: below.get(node.id, [])


def ids(taken: Iterable[Node]) -> str:
    return " ".join(node.id for node in taken)


def tokens(count: int) -> str:
    return "x" * 4 * count


# n0 > (n1 > (n2, n3), n4, n5 > (n6 > n7, n8))
TREE: Shape = [
    (None, tokens(1)),
    (0, tokens(1)),
    (1, tokens(1)),
    (1, tokens(1)),
    (0, tokens(1)),
    (0, tokens(1)),
    (5, tokens(1)),
    (6, tokens(1)),
    (5, tokens(1)),
]


def test_an_outline_of_a_long_chain_is_not_mostly_blanks() -> None:
    chain = make([(None, ""), *((number, "") for number in range(3_000))])
    lines = structure(chain).splitlines()
    assert lines[DEEPEST].startswith("  " * DEEPEST + "- ")
    assert lines[-1].startswith("  " * DEEPEST + "- ")


# What is taken.


def test_nodes_are_taken_level_by_level_and_in_each_the_last_first() -> None:
    made = make(TREE)
    assert ids(take(made[0], children_of(made), 100)) == "n0 n5 n4 n1 n8 n6 n3 n2 n7"


def test_the_start_node_counts_and_comes_first() -> None:
    made = make(TREE)
    assert ids(take(made[0], children_of(made), 1)) == "n0"
    assert ids(take(made[5], children_of(made), 100)) == "n5 n8 n6 n7"


@pytest.mark.parametrize("budget", range(10))
def test_nodes_are_taken_while_the_total_stays_within_the_budget(budget: int) -> None:
    made = make(TREE)
    assert len(take(made[0], children_of(made), budget)) == budget


def test_the_first_that_does_not_fit_ends_it_though_smaller_ones_would_fit() -> None:
    made = make([(None, ""), (0, tokens(1)), (0, tokens(5)), (0, tokens(2)), (3, "")])
    assert ids(take(made[0], children_of(made), 6)) == "n0 n3"


def test_nodes_without_text_are_free_but_not_without_end() -> None:
    empty = make([(None, ""), *[(0, "")] * 12_000])
    assert len(take(empty[0], children_of(empty), 10)) == MOST_EMPTY
    assert len(take(empty[0], children_of(empty), 11_000)) == 11_000


def test_a_node_that_fills_the_budget_exactly_is_taken() -> None:
    made = make([(None, tokens(2)), (0, tokens(3))])
    assert ids(take(made[0], children_of(made), 5)) == "n0 n1"
    assert ids(take(made[0], children_of(made), 4)) == "n0"


def test_a_start_node_beyond_the_budget_leaves_nothing() -> None:
    made = make([(None, tokens(2)), (0, "")])
    assert take(made[0], children_of(made), 1) == []
    assert expansion(made[0], []) == '[partial: 0 of 2 nodes shown; docmem_structure("n0") lists the rest]'


def test_empty_nodes_cost_nothing() -> None:
    made = make([(None, ""), (0, ""), (0, "")])
    assert ids(take(made[0], children_of(made), 0)) == "n0 n2 n1"


def test_no_more_children_are_read_than_are_taken_and_those_of_leaves_never() -> None:
    made = make([(None, ""), *((0, tokens(1)) for _ in range(1000))])
    every = children_of(made)
    asked: list[str] = []
    read: list[str] = []

    def children(node: Node) -> Iterator[Node]:
        asked.append(node.id)
        for child in every(node):
            read.append(child.id)
            yield child

    assert len(take(made[0], children, 20)) == 21
    assert asked == ["n0"]
    assert len(read) == 21  # the last of them did not fit
    assert len(take(made[0], children, 2000)) == 1001
    assert asked == ["n0", "n0"]


# How it is shown.


def test_a_block_is_the_metadata_line_and_then_the_text() -> None:
    made = make([(None, "first\nsecond"), (0, "")])
    assert blocks(made[0], made) == [
        (made[0], "n0 note:: 2026-01-31T12:00:00Z\nfirst\nsecond"),
        (made[1], "n1 note:: 2026-01-31T12:00:00Z"),
    ]


def test_blocks_are_in_the_order_of_the_document() -> None:
    made = make(TREE)
    taken = take(made[0], children_of(made), 100)
    assert [node for node, _ in blocks(made[0], taken)] == made


def test_a_node_that_was_not_taken_hides_its_subtree() -> None:
    made = make(TREE)
    taken = take(made[0], children_of(made), 5)
    assert ids(node for node, _ in blocks(made[0], taken)) == "n0 n1 n4 n5 n8"
    without_its_parent = [made[0], made[4], made[7]]
    assert ids(node for node, _ in blocks(made[0], without_its_parent)) == "n0 n4"


def test_blocks_are_separated_by_a_blank_line() -> None:
    made = make([(None, "one"), (0, "two")])
    line = "note:: 2026-01-31T12:00:00Z"
    assert expansion(made[0], made) == f"n0 {line}\none\n\nn1 {line}\ntwo"


def test_what_was_cut_is_said_first() -> None:
    made = make(TREE)
    taken = take(made[0], children_of(made), 4)
    first, second, *_ = expansion(made[0], taken).split("\n\n")
    assert first == '[partial: 4 of 9 nodes shown; docmem_structure("n0") lists the rest]'
    assert second.startswith("n0 note::")


def test_an_expansion_of_all_says_nothing_of_parts() -> None:
    made = make(TREE)
    assert "partial" not in expansion(made[0], made)
    assert expansion(made[5], take(made[5], children_of(made), 4)).startswith("n5 ")


# Against the rules, written down as they stand.


def priorities(all_nodes: list[Node], start: Node) -> list[Node]:
    levels = [[start]]
    while levels[-1]:
        above = {node.id for node in levels[-1]}
        levels.append([])
        in_order = depth_first(all_nodes, start)
        levels[-1] += [node for node in reversed(in_order) if node.parent_id in above]
    return [node for level in levels for node in level]


def depth_first(all_nodes: list[Node], start: Node) -> list[Node]:
    found = [start]
    for child in sorted(
        (one for one in all_nodes if one.parent_id == start.id), key=lambda one: one.order_value
    ):
        found += depth_first(all_nodes, child)
    return found


def naive(all_nodes: list[Node], start: Node, budget: int) -> list[Node]:
    taken: list[Node] = []
    for node in priorities(all_nodes, start):
        if sum(one.token_count for one in [*taken, node]) > budget:
            break
        taken.append(node)
    return taken


def naive_text(all_nodes: list[Node], start: Node, budget: int) -> str:
    taken = {node.id for node in naive(all_nodes, start, budget)}
    text = ""
    for node in depth_first(all_nodes, start):
        if node.id in taken:
            text += (
                f"{node.id} note:: 2026-01-31T12:00:00Z\n" + (f"{node.text}\n" if node.text else "") + "\n"
            )
    whole = len(depth_first(all_nodes, start))
    if len(taken) < whole:
        more = f'docmem_structure("{start.id}") lists the rest'
        text = f"[partial: {len(taken)} of {whole} nodes shown; {more}]\n\n{text}"
    return text.removesuffix("\n\n")


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    count = draw(st.integers(1, 25))
    parents = [None, *(draw(st.integers(max(0, number - 4), number - 1)) for number in range(1, count))]
    return [(parent, tokens(draw(st.integers(0, 4)))) for parent in parents]


@given(shapes(), st.integers(0, 60), st.data())
def test_an_expansion_is_what_the_rules_say(shape: Shape, budget: int, data: st.DataObject) -> None:
    made = make(shape)
    start = data.draw(st.sampled_from(made))
    taken = take(start, children_of(made), budget)
    assert taken == naive(made, start, budget)
    assert expansion(start, taken) == naive_text(made, start, budget)


# Structure and serialize.


def test_a_structure_has_a_line_a_node_indented_by_its_level() -> None:
    line = "note:: 2026-01-31T12:00:00Z"
    made = make([(None, "text"), (0, ""), (1, "more"), (0, "")])
    assert structure(made) == f"- n0 {line}\n  - n1 {line}\n    - n2 {line}\n  - n3 {line}"


def test_a_structure_starts_at_its_start_node_wherever_that_stands() -> None:
    made = make(TREE)
    lines = structure(made[5:]).splitlines()
    assert [line.partition(" n")[0] for line in lines] == ["-", "  -", "    -", "  -"]


def test_serialize_leaves_out_the_start_node_and_empty_texts() -> None:
    made = make([(None, "the start"), (0, "one\ntwo"), (1, ""), (1, " "), (0, "three")])
    assert serialize(made) == "one\ntwo\n\n \n\nthree"


def test_serialize_of_a_leaf_is_empty() -> None:
    assert serialize(make([(None, "the start")])) == ""


# On a real store.


@pytest.fixture
def api(db: sqlite3.Connection, project: str) -> Project:
    with transaction(db):
        return projects.by_id(db, projects.ensure(db, paths.place(project), NOW))


def stored(db: sqlite3.Connection, api: Project, shape: Shape) -> Node:
    made = [
        Made("main" if parent is None else None, parent, text, ("note", "", "")) for parent, text in shape
    ]
    return tree.build(db, api, made, now=NOW)


def test_a_stored_tree_is_expanded(db: sqlite3.Connection, api: Project) -> None:
    root = stored(db, api, [(None, "main"), (0, "a"), (1, "a1"), (0, "b"), (3, "b1")])
    text = expand(db, api.number, root, 4)
    assert [block.partition("\n")[2] for block in text.split("\n\n")] == ["", "main", "a", "b", "b1"]
    assert text.startswith("[partial: 4 of 5 nodes shown; ")


def test_what_is_shown_can_be_told_node_by_node(db: sqlite3.Connection, api: Project) -> None:
    root = stored(db, api, [(None, "main"), (0, "a"), (0, "b")])
    all_nodes = nodes.subtree(db, api.number, "main")
    assert shown(db, api.number, root, 2) == [
        (node, f"{node.metadata}\n{node.text}") for node in (all_nodes[0], all_nodes[2])
    ]


@pytest.mark.slow
def test_a_tree_may_be_deeper_than_python_may_recurse(db: sqlite3.Connection, api: Project) -> None:
    deep = 3000
    root = stored(db, api, [(None, "0"), *((number - 1, str(number)) for number in range(1, deep))])
    text = expand(db, api.number, root, deep)
    assert [block.partition("\n")[2] for block in text.split("\n\n")] == [str(one) for one in range(deep)]
    all_nodes = nodes.subtree(db, api.number, "main")
    assert structure(all_nodes).splitlines()[-1].startswith("  " * DEEPEST + "- ")
    assert serialize(all_nodes).endswith(f"\n\n{deep - 1}")


def test_an_expansion_is_of_one_state_though_nodes_move_meanwhile(
    db: sqlite3.Connection, api: Project, tmp_path: Path
) -> None:
    root = stored(db, api, [(None, "main"), (0, "a"), (1, "a1"), (0, "b"), (3, "b1")])
    named = {node.text: node.id for node in nodes.subtree(db, api.number, "main")}
    before = expand(db, api.number, root, 100)
    other = connect(str(tmp_path / "backstory.db"))
    moved: list[Node] = []

    def move_once(statement: str) -> None:
        if f"'{named['a']}'" in statement and not moved:  # b's children are read already, a's are not
            moved.append(tree.move(other, api, named["a1"], named["b"], "append-child", now=NOW))

    db.set_trace_callback(move_once)
    assert expand(db, api.number, root, 100) == before
    db.set_trace_callback(None)
    assert moved
    assert expand(db, api.number, root, 100) != before
    assert not db.in_transaction
    other.close()
