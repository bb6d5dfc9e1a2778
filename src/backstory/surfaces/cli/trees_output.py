"""How nodes and trees are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from backstory.model import Node, NodeHit
from backstory.surfaces.cli import output
from backstory.surfaces.shapes import SHOWN, WHOLE, Facts, Line, Piece, Shown, number_of, one_line, when

MOST_NAMED = 10
WIDEST_GUIDES = 160  # signs; what is deeper says how deep it is


@dataclass(frozen=True, slots=True)
class Row:
    """A line in the picture of a tree."""

    node: Node | None  # None: here more nodes would follow
    depth: int
    guides: str
    left_out: int  # nodes that are not in the picture, here or below this node


def outline(
    start: Node, children: Callable[[Node], Iterable[Node]], depth: int | None, limit: int
) -> list[Row]:
    """A tree as lines, as it is read. Nodes are chosen level by level: where there are too many, the upper
    levels are whole, and of the next one the first nodes are there. No more children are read than that."""
    below: dict[str, list[Node]] = {}
    level, left = [start], limit - 1
    while level and left and depth != 0:
        deeper: list[Node] = []
        for parent in level:
            if parent.size > 1 and left:
                below[parent.id] = list(islice(children(parent), left))
                left -= len(below[parent.id])
                deeper += below[parent.id]
        level, depth = deeper, None if depth is None else depth - 1
    return _rows(start, below)


def _rows(start: Node, below: Mapping[str, Sequence[Node]]) -> list[Row]:
    rows: list[Row] = []
    waiting: list[tuple[Node | None, int, str, str, int]] = [(start, 0, "", "", 0)]
    while waiting:
        node, depth, stem, own, more = waiting.pop()
        if node is None:
            rows.append(Row(None, depth, stem + own, more))
            continue
        inner = below.get(node.id, ())
        left_out = node.size - 1 - sum(child.size for child in inner)
        rows.append(Row(node, depth, stem + own, 0 if inner else left_out))
        if len(stem) <= WIDEST_GUIDES:
            stem += {"": "", "├── ": "│   ", "└── ": "    "}[own]
        if inner and left_out:
            waiting.append((None, depth + 1, stem, "└── ", left_out))
        for place, child in enumerate(reversed(inner)):
            is_last = place == 0 and not left_out
            waiting.append((child, depth + 1, stem, "└── " if is_last else "├── ", 0))
    return rows


def tree(rows: Iterable[Row]) -> Iterator[Shown]:
    """One line a node; an id is never cut, however deep it stands. What is below a readonly node is mostly
    readonly too, so only where that begins and ends it is said."""
    readonly: dict[str | None, bool] = {}
    room = min(output.columns() // 2 or WIDEST_GUIDES, WIDEST_GUIDES)
    for row in rows:
        guides = (row.guides if len(row.guides) <= room else f"… level {row.depth}  ", "dim")
        if row.node is None:
            yield Line((guides, (f"+{row.left_out:,} more", "dim")))
            continue
        node = row.node
        readonly[node.id] = node.readonly
        is_same = node.readonly == readonly.get(node.parent_id, False)
        name = _name(node, "" if is_same else "readonly" if node.readonly else "editable")
        below = (f"  +{row.left_out:,} below" if row.left_out else "", "dim")
        yield Line((guides, *name, below, f"  {_first_line(node.text)}"))


def node(node: Node, above: Sequence[Node]) -> Iterator[Shown]:
    """One node whole."""
    yield Line(((node.id, "bold cyan"), ("  readonly" if node.readonly else "", "yellow")))
    facts = {
        "context": node.context,
        "tree": node.root_id,
        "above": _way(above) or "-",
        "below": number_of(node.size - 1, "node", "nodes"),
        "order": repr(node.order_value),
        "tokens": f"{node.token_count:,}",
        "created": when(node.created_at),
        "updated": when(node.updated_at),
    }
    yield Facts(list(facts.items()), 9)
    yield Line(((f"{'hash':>9}  ", "dim"), node.hash), WHOLE)  # it is copied from here, and so is the text
    if node.text:
        yield ""
        yield Line((node.text,), WHOLE)


def blocks(blocks: Iterable[str]) -> Iterator[Shown]:
    """An expansion."""
    for number, block in enumerate(blocks):
        line, _, text = block.partition("\n")
        node_id, _, rest = line.partition(" ")
        context, _, updated = rest.rpartition(" ")
        if number:
            yield ""
        yield Line(((node_id, "cyan"), (f" {context} ", "magenta"), (updated, "dim")), WHOLE)
        if text:
            yield Line((text,), WHOLE)


def hits(hits: Sequence[NodeHit]) -> Iterator[Shown]:
    for place, hit in enumerate(hits, 1):
        name = _name(hit.node, "readonly" if hit.node.readonly else "")
        yield Line((f"{place:>2}. ", *name), end=(f"  score {hit.score:.2f}", "green"))
        if hit.path:
            yield Line((("    " + _way(hit.path), "dim"),))
        if hit.node.text:
            yield Line(("    " + one_line(hit.node.text),))
        for below in hit.folded[:MOST_NAMED]:
            yield Line(("    ", *_name(below, ""), f"  {_first_line(below.text)}"))
        if len(hit.folded) > MOST_NAMED:
            more = number_of(len(hit.folded) - MOST_NAMED, "node", "nodes")
            yield Line(((f"    and {more} more below it", "dim"),))


def _name(node: Node, remark: str) -> tuple[Piece, ...]:
    """Which node it is: its id, its context, and what there is to say about it."""
    return (node.id, "cyan"), (f"  {node.context}", "magenta"), (f"  {remark}" if remark else "", "yellow")


def _first_line(text: str) -> str:
    return one_line(next(iter(text.lstrip()[: SHOWN + 1].splitlines()), ""))


def _way(above: Sequence[Node]) -> str:
    """The nodes above one, the root first; of many, those at both ends."""
    names = [one.id if one.context_name in ("", one.id) else f"{one.id} {one.context_name}" for one in above]
    if len(names) > MOST_NAMED:
        names[MOST_NAMED // 2 : -MOST_NAMED // 2] = ["…"]
    return " › ".join(names)
