"""Trees as text: as much of one as fits a budget, its outline, or all it says.

An expansion takes nodes level by level, the last of a level first, until one does not fit: what is high in
the tree and what is recent wins, a parent is always taken before its children, and nothing is skipped to fit
more in. What was taken is shown in the order of the document.

Children are read one by one, and only where they may be taken, so that the costs go by the budget and not by
the tree. Nothing recurses: a tree may be as deep as it is large.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from backstory.model import Node
from backstory.store import nodes as stored
from backstory.store.file.connection import Connection, savepoint

MOST_EMPTY = 10_000  # nodes without a text take nothing from the budget, but each is a line
DEEPEST = 500  # levels that are told by indentation; without an end, a chain of nodes is mostly blanks


def take(start: Node, children: Callable[[Node], Iterable[Node]], budget: int) -> list[Node]:
    """The nodes that fit the budget, most important first. `children` gives a node's, the last one first."""
    most = max(budget, MOST_EMPTY)
    left = budget - start.token_count
    if left < 0:
        return []
    taken = [start]
    parents = deque(taken)
    while parents:
        parent = parents.popleft()
        if parent.size == 1:
            continue
        for node in children(parent):
            left -= node.token_count
            if left < 0 or len(taken) == most:
                return taken
            taken.append(node)
            parents.append(node)
    return taken


def blocks(start: Node, taken: Iterable[Node]) -> list[tuple[Node, str]]:
    """What is shown of each node, in the order of the document."""
    below: dict[str | None, list[Node]] = {}
    for node in taken:
        below.setdefault(None if node.id == start.id else node.parent_id, []).append(node)
    made = []
    waiting = below.get(None, [])
    while waiting:
        node = waiting.pop()
        made.append((node, f"{node.metadata}\n{node.text}" if node.text else node.metadata))
        waiting.extend(sorted(below.get(node.id, ()), key=lambda child: -child.order_value))
    return made


def expansion(start: Node, taken: Iterable[Node]) -> str:
    shown = blocks(start, taken)
    return "\n\n".join([*partial(start, len(shown)), *(block for _, block in shown)])


def partial(start: Node, shown: int) -> list[str]:
    """The line that says that there is more, where there is."""
    if shown == start.size:
        return []
    rest = f'docmem_structure("{start.id}") lists the rest'
    return [f"[partial: {shown} of {start.size} nodes shown; {rest}]"]


def structure(nodes: Iterable[Node]) -> str:
    """One line a node; the nodes come depth-first, the start node first."""
    levels: dict[str | None, int] = {}
    lines = []
    for node in nodes:
        level = levels[node.id] = levels.get(node.parent_id, -1) + 1
        lines.append(f"{'  ' * min(level, DEEPEST)}- {node.metadata}")
    return "\n".join(lines)


def serialize(nodes: Iterable[Node]) -> str:
    """What stands below the first of these nodes, which come depth-first."""
    below = iter(nodes)
    next(below, None)
    return "\n\n".join(node.text for node in below if node.text)


def expand(db: Connection, project: int, start: Node, budget: int) -> str:
    return expansion(start, _taken(db, project, start, budget))


def shown(db: Connection, project: int, start: Node, budget: int) -> list[tuple[Node, str]]:
    """Node and block of what an expansion shows. It was cut where there are fewer than `start.size`."""
    return blocks(start, _taken(db, project, start, budget))


def _taken(db: Connection, project: int, start: Node, budget: int) -> list[Node]:
    with savepoint(db):  # somebody may move nodes meanwhile: one state of the tree, not several
        return take(start, lambda node: stored.children(db, project, node.id, last_first=True), budget)
