"""How the CLI prints nodes and trees, under the same rules as output.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import click
from rich.text import Text

from backstory.model import Node, NodeHit
from backstory.surfaces.cli.output import SHOWN, number_of, one_line, visible, when
from backstory.surfaces.cli.terminal import console, one_row, table

MOST_NAMED = 10
WIDEST_GUIDES = 160  # signs; what is deeper says how deep it is


def plain(node: Node) -> dict[str, Any]:
    """A node as JSON."""
    fields = asdict(node)
    del fields["row"]
    return fields | {"context": node.context}


def plain_path(above: Iterable[Node]) -> list[dict[str, str]]:
    return [{"id": one.id, "context": one.context} for one in above]


def plain_hit(hit: NodeHit) -> dict[str, Any]:
    return {
        "score": round(hit.score, 4),
        **plain(hit.node),
        "path": plain_path(hit.path),
        "folded": [one.id for one in hit.folded],
    }


def trees(found: Sequence[Mapping[str, Any]]) -> None:
    """A row each, of what `backstory docmem list --json` says."""
    rows = [
        {
            "tree": visible(one["id"]),
            "nodes": f"{one['nodes']:,}",
            "tokens": f"{one['tokens']:,}",
            "updated": when(one["updated_at"]),
            "context": visible(one["context"]),
        }
        for one in found
    ]
    table(console(), rows, {"nodes", "tokens"}, ("tokens", "updated", "nodes"), last=20)


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


def tree(rows: Iterable[Row]) -> None:
    """One line a node; an id is never cut, however deep it stands. What is below a readonly node is mostly
    readonly too, so only where that begins and ends it is said."""
    out = console()
    readonly: dict[str | None, bool] = {}
    room = min(out.width // 2, WIDEST_GUIDES)
    signs = {} if out.encoding.startswith("utf") else str.maketrans("├└│─…", "|`|-.")
    for row in rows:
        guides = row.guides if len(row.guides) <= room else f"… level {row.depth}  "
        line = Text().append(guides.translate(signs), style="dim")
        if row.node is None:
            line.append(f"+{row.left_out:,} more", style="dim")
        else:
            node = row.node
            readonly[node.id] = node.readonly
            is_same = node.readonly == readonly.get(node.parent_id, False)
            line.append_text(_name(node, "" if is_same else "readonly" if node.readonly else "editable"))
            line.append(f"  +{row.left_out:,} below" if row.left_out else "", style="dim")
            line.append(f"  {_first_line(node.text)}", style="default")
        line.rstrip()
        one_row(out, line)


def node(found: Node, above: Sequence[Node]) -> None:
    """One node whole."""
    out = console()
    facts = {
        "context": found.context,
        "tree": found.root_id,
        "above": _way(above) or "-",
        "below": number_of(found.size - 1, "node", "nodes"),
        "order": repr(found.order_value),
        "tokens": f"{found.token_count:,}",
        "created": when(found.created_at),
        "updated": when(found.updated_at),
        "hash": found.hash,
    }
    head = Text(visible(found.id), style="bold cyan")
    out.print(head.append("  readonly" if found.readonly else "", style="yellow"))
    for name, value in facts.items():
        line = Text(f"{name:>9}  ", style="dim").append(visible(value), style="not dim")
        out.print(line, soft_wrap=True)  # a hash copied from here must stay whole, and so must the text
    if found.text:
        out.print()
        out.print(Text(visible(found.text)), soft_wrap=True)


def blocks(shown: Iterable[str]) -> None:
    """An expansion."""
    for number, block in enumerate(shown):
        line, _, text = visible(block).partition("\n")
        node_id, _, rest = line.partition(" ")
        context, _, updated = rest.rpartition(" ")
        name = (
            click.style(node_id, fg="cyan"),
            click.style(context, fg="magenta"),
            click.style(updated, dim=True),
        )
        click.echo(("\n" if number else "") + " ".join(name))
        if text:
            click.echo(text)


def hits(found: Sequence[NodeHit]) -> None:
    out = console()
    for place, hit in enumerate(found, 1):
        score = Text(f"  score {hit.score:.2f}", style="green")
        head = Text(f"{place:>2}. ").append_text(_name(hit.node, "readonly" if hit.node.readonly else ""))
        head.truncate(out.width - score.cell_len, overflow="ellipsis")
        one_row(out, head.append_text(score))
        if hit.path:
            one_row(out, Text(f"    {_way(hit.path)}", style="dim"))
        if hit.node.text:
            one_row(out, Text("    " + one_line(hit.node.text)))
        for below in hit.folded[:MOST_NAMED]:
            line = Text("    ").append_text(_name(below, ""))
            one_row(out, line.append(f"  {_first_line(below.text)}", style="default"))
        if len(hit.folded) > MOST_NAMED:
            more = number_of(len(hit.folded) - MOST_NAMED, "node", "nodes")
            one_row(out, Text(f"    and {more} more below it", style="dim"))


def _name(found: Node, remark: str) -> Text:
    """Which node it is: its id, its context, and what there is to say about it."""
    name = Text(visible(found.id), style="cyan").append(f"  {visible(found.context)}", style="magenta")
    return name.append(f"  {remark}" if remark else "", style="yellow")


def _first_line(text: str) -> str:
    return one_line(next(iter(text.lstrip()[: SHOWN + 1].splitlines()), ""))


def _way(above: Sequence[Node]) -> str:
    """The nodes above one, the root first; of many, those at both ends."""
    names = [one.id if one.context_name in ("", one.id) else f"{one.id} {one.context_name}" for one in above]
    if len(names) > MOST_NAMED:
        names[MOST_NAMED // 2 : -MOST_NAMED // 2] = ["…"]
    return visible(" › ".join(names))
