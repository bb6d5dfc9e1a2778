"""Whatever is done to trees, in whatever order, they are what a plain model of them is.

The model is nested lists that know nothing of the store: it says what an operation must give, what it must
refuse, and what an expansion must show.
"""

from __future__ import annotations

import atexit
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from backstory import paths
from backstory.docmem import exchange, expand, tree
from backstory.docmem.tree import MODES, Context
from backstory.errors import BackstoryError, BadInput, Conflict, NotFound
from backstory.model import Node, Project
from backstory.store import nodes, projects
from backstory.store.file.connection import connect, transaction
from tests.helpers.trees import assert_trees_sound

pytestmark = pytest.mark.slow

LARGEST = 120  # nodes; a copy may double them


class Item:
    """A node of the model."""

    def __init__(self, text: str, context: Context, readonly: bool, now: int) -> None:
        self.id = ""
        self.text, self.context, self.readonly = text, context, readonly
        self.parent: Item | None = None
        self.children: list[Item] = []
        self.order = 1.0
        self.created = self.updated = now

    def walk(self) -> Iterator[Item]:
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def root(self) -> Item:
        return self.parent.root if self.parent else self

    def is_within(self, other: Item) -> bool:
        return self is other or (self.parent is not None and self.parent.is_within(other))

    def copied(self, now: int) -> Item:
        new = Item(self.text, self.context, self.readonly, now)
        for number, child in enumerate(self.children, 1):
            new.children.append(child.copied(now))
            new.children[-1].parent, new.children[-1].order = new, float(number)
        return new

    def put(self, target: Item, mode: str) -> None:
        """Below the target or beside it; it is in no list yet."""
        parent = target if mode == "append-child" else target.parent
        assert parent
        siblings = parent.children
        at = len(siblings)
        if mode != "append-child":
            at = siblings.index(target) + (mode == "after")
        value = Item._order(siblings, at, mode)
        if value in {sibling.order for sibling in siblings}:
            for number, sibling in enumerate(siblings, 1):
                sibling.order = float(number)
            value = Item._order(siblings, at, mode)
        self.order, self.parent = value, parent
        siblings.insert(at, self)

    @staticmethod
    def _order(siblings: list[Item], at: int, mode: str) -> float:
        left = siblings[at - 1].order if at else None
        right = siblings[at].order if at < len(siblings) else None
        if mode == "before":
            assert right is not None
            return right - 1.0 if left is None else right + 0.2 * (left - right)
        if mode == "after" and right is not None:
            assert left is not None
            return left + 0.2 * (right - left)
        return 1.0 if left is None else left + 1.0


texts = st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(
    ["", "a sentence about a walrus", '"""', "\\", "a\r\nb\n", "# x", "[main]\n", "|", "\0", "x" * 300]
)
parts = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Zl", "Zp", "Cs")), max_size=24)
contexts = st.tuples(
    st.sampled_from(["note", "summary", ""]) | parts, parts, parts | st.sampled_from([":", "\\:", "a:b"])
)
picks = st.integers(0, 10_000)
modes = st.sampled_from(MODES)

_HOME = tempfile.mkdtemp()
atexit.register(shutil.rmtree, _HOME)


def new_store() -> tuple[sqlite3.Connection, Project, str]:
    """Copied, as making one takes longer than all that is done with it."""
    made = Path(_HOME, "made.db")
    if not made.exists():
        db = connect(str(made))
        with transaction(db):
            projects.ensure(db, paths.place(_HOME), 0)
        db.close()
    folder = tempfile.mkdtemp(dir=_HOME)
    shutil.copy(made, Path(folder, "backstory.db"))
    db = connect(str(Path(folder, "backstory.db")))
    db.execute("PRAGMA synchronous = OFF")  # nobody cuts the power
    return db, projects.every(db)[0], folder


class Trees(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.db, self.project, self.folder = new_store()
        self.forest: list[Item] = []
        self.now = 1_000

    def teardown(self) -> None:
        self.db.close()
        shutil.rmtree(self.folder)

    # --- the model's side -----------------------------------------------------------------------------------

    def every(self) -> list[Item]:
        return [item for root in self.forest for item in root.walk()]

    def pick(self, number: int) -> Item:
        """Small numbers, which come often, are nodes that came late."""
        found = self.every()
        return found[-1 - number % len(found)]

    def near(self, item: Item, number: int) -> Item:
        """A sibling, three times of four."""
        if number % 4 and item.parent:
            return item.parent.children[number % len(item.parent.children)]
        return self.pick(number)

    def tick(self) -> int:
        self.now += 1_000
        return self.now

    def refused(self, operation: Callable[[], object], error: type[BackstoryError] = BadInput) -> None:
        """Nothing changes: the invariants see to that."""
        try:
            operation()
        except error:
            return
        raise AssertionError("it was not refused")

    def take_ids(self, item: Item, top: Node) -> None:
        """Of nodes that are new: they are no one else's."""
        known = {one.id for one in self.every() if one.id}
        found = nodes.subtree(self.db, self.project.number, top.id)
        for one, node in zip(item.walk(), found, strict=True):
            assert node.id not in known
            one.id = node.id

    # --- what may happen ------------------------------------------------------------------------------------

    @initialize(below=st.lists(picks, min_size=2, max_size=12), text=texts, context=contexts)
    def first(self, below: list[int], text: str, context: Context) -> None:
        for root_id in ("main", "other"):
            self.create(root_id, None, text)
        for number in below:
            self.added(self.pick(number), "append-child", text, context, number % 3 == 0)

    @precondition(lambda self: len(self.forest) < 4)
    @rule(root_id=st.sampled_from(["main", "other", None]), context=st.none() | contexts, text=texts)
    def create(self, root_id: str | None, context: Context | None, text: str) -> None:
        now = self.tick()
        given = context or (None, None, None)
        if root_id in {item.id for item in self.every()}:
            self.refused(
                lambda: tree.create(self.db, self.project, root_id=root_id, context=given, text=text, now=now)
            )
            return
        made = tree.create(self.db, self.project, root_id=root_id, context=given, text=text, now=now)
        item = Item(text, context or ("root", made.id, ""), False, now)
        item.id = made.id
        assert root_id in (None, made.id)
        self.forest.append(item)

    @precondition(lambda self: self.forest)
    @rule(at=picks, mode=modes, text=texts, context=contexts, readonly=st.booleans())
    def add(self, at: int, mode: str, text: str, context: Context, readonly: bool) -> None:
        target = self.pick(at)
        if mode != "append-child" and target.parent is None:
            self.refused(
                lambda: tree.add(self.db, self.project, target.id, text, context, mode, now=self.now)
            )
        else:
            self.added(target, mode, text, context, readonly)

    @precondition(lambda self: 1 < len(self.every()) < LARGEST)
    @rule(at=picks, mode=st.sampled_from(["before", "after"]), count=st.integers(2, 30))
    def crowd(self, at: int, mode: str, count: int) -> None:
        """Many at one place, until no number is left between two."""
        target = self.pick(at)
        for _ in range(count if target.parent else 0):
            self.added(target, mode, "", ("note", "", ""), False)

    def added(self, target: Item, mode: str, text: str, context: Context, readonly: bool) -> None:
        item = Item(text, context, readonly, self.tick())
        made = tree.add(
            self.db, self.project, target.id, text, context, mode, readonly=readonly, now=self.now
        )
        assert made.id not in {one.id for one in self.every()}
        item.id = made.id
        item.put(target, mode)

    @precondition(lambda self: self.forest)
    @rule(at=picks, text=texts | contexts, expects=st.sampled_from(["nothing", "right", "wrong"]))
    def update(self, at: int, text: str | Context, expects: str) -> None:
        item, now = self.pick(at), self.tick()
        found = nodes.get(self.db, self.project.number, item.id)
        assert found
        expected = {"nothing": None, "right": found.hash, "wrong": "x" + found.hash[1:]}[expects]

        def operation() -> Node:
            if isinstance(text, str):
                return tree.update_content(
                    self.db, self.project, item.id, text, expected_hash=expected, now=now
                )
            return tree.update_context(self.db, self.project, item.id, text, expected_hash=expected, now=now)

        if item.readonly:
            self.refused(operation)
        elif expected not in (None, found.hash):
            self.refused(operation, Conflict)
        else:
            operation()
            item.updated = now
            if isinstance(text, str):
                item.text = text
            else:
                item.context = text

    @precondition(lambda self: self.forest)
    @rule(at=picks)
    def delete(self, at: int) -> None:
        """Rarely a whole tree: something should be left for the other rules."""
        item = self.pick(at)
        while at % 5 and item.children:
            item = item.children[-1]
        assert tree.delete(self.db, self.project, item.id) == len(list(item.walk()))
        (item.parent.children if item.parent else self.forest).remove(item)
        self.refused(lambda: tree.delete(self.db, self.project, item.id), NotFound)

    @precondition(lambda self: self.forest)
    @rule(at=picks, to=picks, mode=modes)
    def move(self, at: int, to: int, mode: str) -> None:
        source, now = self.pick(at), self.tick()
        target = self.near(source, to)

        def operation() -> Node:
            return tree.move(self.db, self.project, source.id, target.id, mode, now=now)

        beside_root = mode != "append-child" and target.parent is None
        if source.parent is None or source.root is not target.root or target.is_within(source) or beside_root:
            self.refused(operation)
            return
        assert operation().id == source.id
        source.parent.children.remove(source)
        source.put(target, mode)
        source.updated = now

    @precondition(lambda self: self.forest and len(self.every()) < LARGEST)
    @rule(at=picks, to=picks, mode=modes)
    def copy(self, at: int, to: int, mode: str) -> None:
        source, target, now = self.pick(at), self.pick(to), self.tick()

        def operation() -> Node:
            return tree.copy(self.db, self.project, source.id, target.id, mode, now=now)

        if mode != "append-child" and target.parent is None:
            self.refused(operation)
            return
        top = operation()
        item = source.copied(now)
        self.take_ids(item, top)
        item.put(target, mode)

    @precondition(lambda self: self.forest)
    @rule(at=picks, to=picks, text=texts, context=contexts)
    def summarise(self, at: int, to: int, text: str, context: Context) -> None:
        start, now = self.pick(at), self.tick()
        end = self.near(start, to)

        def operation() -> Node:
            return tree.summarise(self.db, self.project, start.id, end.id, text, context, now=now)

        parent = start.parent
        if parent is None or parent is not end.parent:
            self.refused(operation)
            return
        first, last = sorted((parent.children.index(start), parent.children.index(end)))
        covered = parent.children[first : last + 1]
        if any(leaf.children for leaf in covered):
            self.refused(operation)
            return
        summary = Item(text, context, False, now)
        summary.id = operation().id
        assert summary.id not in {item.id for item in self.every()}
        summary.order = (covered[0].order + covered[-1].order) / 2
        summary.parent, summary.children = parent, covered
        parent.children[first : last + 1] = [summary]
        for leaf in covered:
            leaf.parent, leaf.updated = summary, now

    @precondition(lambda self: self.forest)
    @rule(at=picks)
    def export_and_import(self, at: int) -> None:
        """The same bytes, under another root's id; and the tree it gives is the one it came from."""
        root, now = self.pick(at).root, self.tick()
        before = exchange.export_toml(nodes.subtree(self.db, self.project.number, root.id))
        self.refused(lambda: self.bring(before, None, now))
        tree.delete(self.db, self.project, root.id)
        self.bring(before, None, now)
        assert exchange.export_toml(nodes.subtree(self.db, self.project.number, root.id)) == before
        self.bring(before, "again", now)
        assert tree.delete(self.db, self.project, "again") == len(list(root.walk()))
        for item in root.walk():
            item.created = item.updated = now
            item.readonly = False  # a TOML document says nothing of it
            for number, child in enumerate(item.children, 1):
                child.order = float(number)

    def bring(self, text: str, root_id: str | None, now: int) -> Node:
        """An import; where it would take NUL out of a text, without its cleaning."""
        if "\\u0000" not in text:
            return exchange.import_document(self.db, self.project, text, "toml", root_id, "", now).root
        first, *rest = exchange.parse_toml(text)
        made = [first if root_id is None else replace(first, id=root_id), *rest]
        return tree.build(self.db, self.project, made, now=now)

    # --- what must be true after each -----------------------------------------------------------------------

    @invariant()
    def the_trees_are_those_of_the_model(self) -> None:
        assert_trees_sound(self.db)
        listed = nodes.roots(self.db, self.project.number)
        assert {root.id for root in listed} == {root.id for root in self.forest}
        for root in self.forest:
            found = nodes.subtree(self.db, self.project.number, root.id)
            told = [
                (
                    node.id,
                    node.parent_id,
                    node.text,
                    (node.context_type, node.context_name, node.context_value),
                    node.readonly,
                    node.order_value,
                    node.created_at,
                    node.updated_at,
                )
                for node in found
            ]
            assert told == [
                (
                    item.id,
                    item.parent.id if item.parent else None,
                    item.text,
                    item.context,
                    item.readonly,
                    item.order,
                    item.created,
                    item.updated,
                )
                for item in root.walk()
            ]

    @precondition(lambda self: self.forest)
    @rule(at=picks, budget=st.integers(-1, 400))
    def expand(self, at: int, budget: int) -> None:
        """Level by level, of each the last first, up to the first that does not fit."""
        start = self.pick(at)
        node = tree.node(self.db, self.project, start.id)
        level, wanted = [start], []
        while level:
            wanted += level
            level = [child for item in level for child in reversed(item.children)]
        left, taken = budget, []
        for item in wanted:
            left -= (len(item.text) + 3) // 4
            if left < 0:
                break
            taken.append(item)
        shown = expand.shown(self.db, self.project.number, node, budget)
        assert [one.id for one, _ in shown] == [item.id for item in start.walk() if item in taken]
        for item in taken:
            assert item is start or item.parent in taken
        text = expand.expand(self.db, self.project.number, node, budget)
        count = len(list(start.walk()))
        rest = f'docmem_structure("{start.id}") lists the rest'
        notice = [f"[partial: {len(taken)} of {count} nodes shown; {rest}]"] if len(taken) < count else []
        assert text == "\n\n".join([*notice, *(block for _, block in shown)])
        for one, block in shown:
            (item,) = [item for item in taken if item.id == one.id]
            assert block.partition("\n")[::2] == (one.metadata, item.text)


TestTrees = Trees.TestCase
TestTrees.settings = settings(max_examples=60, stateful_step_count=30)
