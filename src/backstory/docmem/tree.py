"""What can be done to a tree, each operation in one transaction, and what is refused.

A tree is read depth-first; siblings come in the order of their order values. A new node gets a value between
its neighbours', so nobody else changes. Only where no number is left between them the siblings are numbered
anew: then their hashes change, as that of every node does which is elsewhere now.
"""

from __future__ import annotations

import math
import os
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from backstory.errors import BadInput, Conflict, NotFound
from backstory.gist import tokens
from backstory.model import Node, Project
from backstory.safety.redact import redact
from backstory.store import nodes, projects
from backstory.store.file.connection import Connection, transaction

Context = tuple[str, str, str]

MODES = ("append-child", "before", "after")
LONGEST_TEXT = 100_000  # characters
LONGEST_NAME = 24  # of each part of a context, and of a root's id
SHARE = 0.2  # of the way from the target to its neighbour

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
_ID = re.compile(r"[a-z0-9]{8}")
_ROOT_ID = re.compile(rf"[A-Za-z0-9_-]{{1,{LONGEST_NAME}}}")


@dataclass(frozen=True, slots=True)
class Made:
    """A node of a document that becomes a tree. Siblings are in the order in which they are given."""

    id: str | None  # kept where it may be
    parent: int | None  # its index in the sequence, before its own; None: the root, which is the first
    text: str
    context: Context
    readonly: bool = False


class _Place(NamedTuple):
    """Where a node stands in a tree."""

    parent_id: str | None
    root_id: str
    order: float


def random_id() -> str:
    """Eight signs, each as likely as any other."""
    found = ""
    while len(found) < 8:
        found += "".join(_ALPHABET[byte % 36] for byte in os.urandom(8) if byte < 252)
    return found[:8]


def free_id(db: Connection, project: Project, new: Callable[[], str] = random_id) -> str:
    while nodes.is_taken(db, project.number, found := new()):
        pass
    return found


def node(db: Connection, project: Project, node_id: str) -> Node:
    found = nodes.get(db, project.number, node_id) if _ROOT_ID.fullmatch(node_id) else None
    if found is None:
        raise NotFound(
            f"there is no node {short(node_id)}; docmem_list lists trees, docmem_structure their nodes,"
            " docmem_search finds nodes"
        )
    return found


# --- making -------------------------------------------------------------------------------------------------


def create(
    db: Connection,
    project: Project,
    *,
    root_id: str | None = None,
    context: tuple[str | None, str | None, str | None] = (None, None, None),
    text: str = "",
    now: int,
) -> Node:
    """A new tree: its root. What is not said of its context is `root`, its id and nothing."""
    if len(context) != 3:
        raise BadInput("a context has three parts: context_type, context_name and context_value")
    kind, name, value = context
    _check(text, (kind or "", name or "", value or ""))
    with transaction(db):
        chosen = _root_id(db, project, root_id)
        whole = ("root" if kind is None else kind, chosen if name is None else name, value or "")
        return _insert(db, project, chosen, _Place(None, chosen, 1.0), text, whole, now)


def build(db: Connection, project: Project, made: Sequence[Made], *, now: int) -> Node:
    """A whole new tree, a node before what is below it; its root. The root's id is kept or refused; any other
    that is none or taken is replaced."""
    for number, one in enumerate(made, 1):
        _check(one.text, one.context, f"node {one.id or number}: ")
    sizes = [1] * len(made)
    for number, one in reversed(list(enumerate(made))):
        if one.parent is not None:
            sizes[one.parent] += sizes[number]
    known = [nodes.indexed(one.context, one.text) for one in made]  # slow, so before the write lock
    new: list[Node] = []
    children = [0] * len(made)  # so far
    with transaction(db):
        root_id = _root_id(db, project, made[0].id)
        for one, size, indexed in zip(made, sizes, known, strict=True):
            if one.parent is None:
                new_id, place = root_id, _Place(None, root_id, 1.0)
            else:
                is_free = one.id and _ID.fullmatch(one.id) and not nodes.is_taken(db, project.number, one.id)
                new_id = one.id if one.id and is_free else free_id(db, project)
                children[one.parent] += 1
                place = _Place(new[one.parent].id, root_id, float(children[one.parent]))
            new.append(
                _insert(db, project, new_id, place, one.text, one.context, now, one.readonly, size, indexed)
            )
    return new[0]


def add(
    db: Connection,
    project: Project,
    target_id: str,
    text: str,
    context: Context,
    mode: str,
    *,
    readonly: bool = False,
    now: int,
) -> Node:
    """A new node below the target, as its last child, or beside it."""
    _check(text, context)
    with transaction(db):
        target = node(db, project, target_id)
        parent_id, order = _place(db, project, target, mode)
        place = _Place(parent_id, target.root_id, order)
        new = _insert(db, project, free_id(db, project), place, text, context, now, readonly)
        nodes.grow(db, project.number, parent_id, 1)
        return new


def copy(db: Connection, project: Project, source_id: str, target_id: str, mode: str, *, now: int) -> Node:
    """The source and all below it, as they are now, also into another tree; the new top node."""
    with transaction(db):
        source, target = node(db, project, source_id), node(db, project, target_id)
        parent_id, order = _place(db, project, target, mode)
        whole = nodes.subtree(db, project.number, source.id)  # before there are copies, maybe below it
        new: dict[str, Node] = {}
        children: dict[str, int] = {}  # of each old node, how many were copied
        for old in whole:
            if old is not whole[0]:
                above = old.parent_id or ""
                children[above] = children.get(above, 0) + 1
                parent_id, order = new[above].id, float(children[above])
            new_id, place = free_id(db, project), _Place(parent_id, target.root_id, order)
            known = nodes.known(db, old.row)
            new[old.id] = _insert(
                db, project, new_id, place, old.text, _context(old), now, old.readonly, old.size, known
            )
        top = new[source.id]
        nodes.grow(db, project.number, top.parent_id or "", top.size)
        return top


def summarise(
    db: Connection, project: Project, start_id: str, end_id: str, text: str, context: Context, *, now: int
) -> Node:
    """A new node in the place of the leaves from one to another, which go below it; the summary."""
    _check(text, context)
    with transaction(db):
        start, end = node(db, project, start_id), node(db, project, end_id)
        if start.parent_id is None:
            raise BadInput(
                f"{start.id} is a root, and no summary stands above one; summarise what is below it"
            )
        if start.parent_id != end.parent_id:
            raise BadInput(
                f"{start.id} and {end.id} are not below the same parent; summarise a range of siblings"
                " (docmem_structure shows them)"
            )
        first, last = sorted((start.order_value, end.order_value))
        covered = nodes.between(db, project.number, start.parent_id, first, last)
        for leaf in covered:
            if leaf.size > 1:
                raise BadInput(
                    f"{leaf.id} has nodes below it, and a summary covers leaves; choose a range without it"
                    " (docmem_structure shows them)"
                )
        place = _Place(start.parent_id, start.root_id, (first + last) / 2)
        summary = _insert(db, project, free_id(db, project), place, text, context, now, size=len(covered) + 1)
        nodes.place(db, (_placed(leaf, summary.id, leaf.order_value, now) for leaf in covered))
        nodes.grow(db, project.number, start.parent_id, 1)
        return summary


# --- changing -----------------------------------------------------------------------------------------------


def update_content(
    db: Connection, project: Project, node_id: str, text: str, *, expected_hash: str | None = None, now: int
) -> Node:
    return _update(db, project, node_id, text, None, expected_hash, now)


def update_context(
    db: Connection,
    project: Project,
    node_id: str,
    context: Context,
    *,
    expected_hash: str | None = None,
    now: int,
) -> Node:
    return _update(db, project, node_id, None, context, expected_hash, now)


def move(db: Connection, project: Project, source_id: str, target_id: str, mode: str, *, now: int) -> Node:
    """The source, with all below it, to another place in its tree."""
    with transaction(db):
        source, target = node(db, project, source_id), node(db, project, target_id)
        if source.parent_id is None:
            raise BadInput(
                f"{source.id} is the root of its tree and stays where it is; docmem_copy_node copies it"
            )
        if source.root_id != target.root_id:
            raise BadInput(
                f"{source.id} and {target.id} are in different trees; docmem_copy_node copies from one to the"
                " other, and docmem_delete removes what was copied"
            )
        if any(above.id == source.id for above in nodes.path(db, project.number, target.id)):
            raise BadInput(
                f"{target.id} is {source.id} itself or below it; choose a target outside what is moved"
                " (docmem_structure shows the tree)"
            )
        parent_id, order = _place(db, project, target, mode, without=source.row)
        moved = _placed(source, parent_id, order, now)
        nodes.place(db, [moved])
        nodes.grow(db, project.number, source.parent_id, -source.size)
        nodes.grow(db, project.number, parent_id, source.size)
        return moved


def delete(db: Connection, project: Project, node_id: str) -> int:
    """The node and all below it; how many that were."""
    with transaction(db):
        gone = node(db, project, node_id)
        nodes.remove(db, [one.row for one in reversed(nodes.subtree(db, project.number, gone.id))])
        if gone.parent_id is not None:
            nodes.grow(db, project.number, gone.parent_id, -gone.size)
        return gone.size


# --- what they share ----------------------------------------------------------------------------------------


def _check(text: str, context: Context, whose: str = "") -> None:
    if len(text) > LONGEST_TEXT:
        raise BadInput(
            f"{whose}the text has {len(text):,} characters, and {LONGEST_TEXT:,} is the most; split it into"
            " nodes"
        )
    if not _is_text(text):
        raise BadInput(f"{whose}the text has half of a character (a lone surrogate); leave it out")
    if len(context) != 3:
        raise BadInput(f"{whose}a context has three parts: context_type, context_name and context_value")
    for name, part in zip(("context_type", "context_name", "context_value"), context, strict=True):
        if len(part) > LONGEST_NAME:
            raise BadInput(
                f"{whose}{name} has {len(part)} characters, and {LONGEST_NAME} is the most; shorten it, the"
                " text has room for the rest"
            )
        if not _is_text(part) or any(unicodedata.category(sign) in ("Cc", "Zl", "Zp") for sign in part):
            raise BadInput(
                f"{whose}{name} has a line break or a control character; a context is one line of text"
            )


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _root_id(db: Connection, project: Project, wanted: str | None) -> str:
    if wanted is None:
        return free_id(db, project)
    if not _ROOT_ID.fullmatch(wanted):
        raise BadInput(
            f"{short(wanted)} cannot be the id of a root; use 1 to {LONGEST_NAME} letters (a-z, A-Z),"
            " digits, - and _"
        )
    if redact(wanted) != wanted:
        raise BadInput(
            "the id of a root may be no secret; choose a readable root_id, like auth-redesign"
            " (at the terminal it is --root-id)"
        )
    if nodes.is_taken(db, project.number, wanted):
        raise BadInput(
            f"there is a node {wanted} already; choose another root_id (docmem_list lists trees;"
            " at the terminal it is --root-id)"
        )
    return wanted


def _place(
    db: Connection, project: Project, target: Node, mode: str, without: int | None = None
) -> tuple[str, float]:
    """The parent and the order value of a place. `without` is the row of a node that leaves its own."""
    if mode not in MODES:
        raise BadInput(f"there is no mode {short(mode)}; use one of {', '.join(MODES)}")
    if mode == "append-child":
        parent_id, at, later = target.id, math.inf, False
    elif target.parent_id is not None:
        parent_id, at, later = target.parent_id, target.order_value, mode == "after"
    else:
        raise BadInput(
            f"{target.id} is a root, and nothing stands beside one; use append-child, or a node below it"
            " (docmem_structure shows them)"
        )
    order = _between(db, project, parent_id, at, later, without)
    if order is None:
        nodes.renumber(db, project.number, parent_id, without)
        if mode != "append-child":
            at = node(db, project, target.id).order_value
        order = _between(db, project, parent_id, at, later, without)
    if order is None:
        raise AssertionError("whole numbers leave room between them")
    return parent_id, order


def _between(
    db: Connection, project: Project, parent_id: str, at: float, later: bool, without: int | None
) -> float | None:
    """An order value beside that of a target, or behind all (`at` infinity); None where no number is left."""
    neighbour = nodes.beside(db, project.number, parent_id, at, later=later, without=without)
    if at == math.inf:
        order = 1.0 if neighbour is None else neighbour + 1.0
    elif neighbour is None:
        order = at + 1.0 if later else at - 1.0
    else:
        order = at + SHARE * (neighbour - at)
    return None if order in (at, neighbour) else order


def _update(
    db: Connection,
    project: Project,
    node_id: str,
    text: str | None,
    context: Context | None,
    expected_hash: str | None,
    now: int,
) -> Node:
    _check(text or "", context or ("", "", ""))
    with transaction(db):
        old = node(db, project, node_id)
        if old.readonly:
            beside = "after" if old.parent_id else "append-child"
            raise BadInput(
                f"{old.id} is readonly; add a note instead: docmem_create_node with target_id {old.id} and"
                f" mode {beside}"
            )
        if expected_hash is not None and expected_hash != old.hash:
            raise Conflict(
                f"node {old.id} was changed by someone else since you read it; docmem_find shows it as it is"
                " now, with its hash"
            )
        text = old.text if text is None else text
        context = context or _context(old)
        new = replace(
            old,
            text=text,
            token_count=tokens(text),
            context_type=context[0],
            context_name=context[1],
            context_value=context[2],
            hash=nodes.digest(old.parent_id, context, text, old.order_value),
            updated_at=now,
        )
        nodes.rewrite(db, new, nodes.indexed(context, text))
        return new


def _context(one: Node) -> Context:
    return one.context_type, one.context_name, one.context_value


def _placed(one: Node, parent_id: str, order: float, now: int) -> Node:
    return replace(
        one,
        parent_id=parent_id,
        order_value=order,
        hash=nodes.digest(parent_id, _context(one), one.text, order),
        updated_at=now,
    )


def _insert(
    db: Connection,
    project: Project,
    new_id: str,
    place: _Place,
    text: str,
    context: Context,
    now: int,
    readonly: bool = False,
    size: int = 1,
    known: nodes.Indexed | None = None,
) -> Node:
    parent_id, root_id, order = place
    new = Node(
        id=new_id,
        row=projects.next_row(db, project.id),
        parent_id=parent_id,
        root_id=root_id,
        text=text,
        order_value=order,
        token_count=tokens(text),
        context_type=context[0],
        context_name=context[1],
        context_value=context[2],
        readonly=readonly,
        hash=nodes.digest(parent_id, context, text, order),
        size=size,
        created_at=now,
        updated_at=now,
    )
    nodes.insert(db, project.number, new, known or nodes.indexed(context, text))
    return new


def short(text: str) -> str:
    return repr(text[:60])
