"""What the docmem tools answer, as text.

Here nothing is fenced: the model edits what it reads, so the text of a node comes as it is, and last. Only
what would be more than text is made harmless (`fence.defuse`), on the way out of every tool. Where several
nodes are listed only the beginnings of their texts are shown, indented, so that no node can pose as another.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from backstory.model import Node, NodeAnswer, NodeHit, iso
from backstory.safety.fence import defuse
from backstory.surfaces.shapes import number_of

SHOWN = 500  # characters of a hit's text; docmem_find shows the whole
FOLDED = 5  # nodes that a hit stands for


def changed(what: str, node: Node, *remarks: str | None) -> str:
    """What was done to a node, with the hash that the next update of it may name."""
    return told(f"{what} {node.metadata}", f"hash: {node.hash}", *remarks)


def told(what: str, *remarks: str | None) -> str:
    return defuse("\n".join([what, *(remark for remark in remarks if remark)]))


def answer(tool: str, text: str) -> str:
    return f"{tool}:\n{defuse(text)}"


def count(number: int) -> str:
    return number_of(number, "node", "nodes")


def whole(node: Node) -> str:
    fields = {
        "id": node.id,
        "parent_id": node.parent_id or "",
        "root_id": node.root_id,
        "order_value": repr(node.order_value),
        "token_count": node.token_count,
        "created_at": iso(node.created_at),
        "updated_at": iso(node.updated_at),
        "context_type": node.context_type,
        "context_name": node.context_name,
        "context_value": node.context_value,
        "readonly": int(node.readonly),
        "hash": node.hash,
        "nodes": node.size,
    }
    lines = [node.metadata, *(f"{name}: {value}" for name, value in fields.items())]
    return "\n".join([*lines, "text:", node.text])


def roots(found: Sequence[Node]) -> str:
    if not found:
        return "There are no trees yet; docmem_create starts one, docmem_import makes one of a document."
    return "\n".join(f"{root.metadata} ({count(root.size)})" for root in found)


def rows(columns: Sequence[str], found: Iterable[Sequence[object]], more: bool) -> str:
    """As JSON, a line each: a text may hold any sign that could stand between columns."""
    every = (columns, *found)
    lines = [json.dumps(list(row), ensure_ascii=False, default=repr) for row in every]
    if more:
        rest = "narrow the SELECT, or page with LIMIT and OFFSET"
        lines.append(f"There are more than these {len(lines) - 1} rows; {rest}.")
    return "\n".join(lines)


def hits(answer: NodeAnswer) -> str:
    shown = [_hit(place, hit) for place, hit in enumerate(answer.hits, 1)]
    text = "\n\n".join(shown) or "No nodes found; try other words, or docmem_list and docmem_structure."
    return f"{text}\n\n{answer.notice}" if answer.notice else text


def _hit(place: int, hit: NodeHit) -> str:
    lines = [f"[{place}] {hit.node.metadata} (score: {hit.score:.2f})"]
    if hit.path:
        lines.append("in: " + " > ".join(f"{above.id} {above.context}" for above in hit.path))
    if hit.node.text:
        lines.append(_beginning(hit.node.text, "  "))
    for below in hit.folded[:FOLDED]:
        lines.append(f"- {below.metadata}")
        if below.text:
            lines.append(_beginning(below.text, "    "))
    if len(hit.folded) > FOLDED:
        lines.append(f"- and {count(len(hit.folded) - FOLDED)} more below it")
    return "\n".join(lines)


def _beginning(text: str, by: str) -> str:
    shown = text if len(text) <= SHOWN else text[:SHOWN] + "..."
    return by + f"\n{by}".join(shown.splitlines())
