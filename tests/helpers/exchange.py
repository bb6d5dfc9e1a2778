"""Documents that come in, and trees as they would be stored."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace

from backstory import paths
from backstory.docmem.tree import Made
from backstory.model import Node, Project
from backstory.store import nodes, projects
from backstory.store.file.connection import transaction

NOW = 1_769_860_800_000


def project_at(db: sqlite3.Connection, folder: str) -> Project:
    with transaction(db):
        return projects.by_id(db, projects.ensure(db, paths.place(folder), NOW))


Take = Callable[..., Node]


def read(db: sqlite3.Connection, project: Project, root_id: str = "doc") -> list[Node]:
    return nodes.subtree(db, project.number, root_id)


def as_nodes(made: list[Made]) -> list[Node]:
    """What the store would make of them, without one."""
    ids = [one.id if one.id and one.parent is None else f"{number:08d}" for number, one in enumerate(made)]
    sizes = [1] * len(made)
    for number in reversed(range(len(made))):
        parent = made[number].parent
        if parent is not None:
            sizes[parent] += sizes[number]
    return [
        Node(
            id=ids[number],
            row=number,
            parent_id=None if one.parent is None else ids[one.parent],
            root_id=ids[0],
            text=one.text,
            order_value=float(number),
            token_count=0,
            context_type=one.context[0],
            context_name=one.context[1],
            context_value=one.context[2],
            readonly=one.readonly,
            hash="",
            size=sizes[number],
            created_at=NOW,
            updated_at=NOW,
        )
        for number, one in enumerate(made)
    ]


def outline(made: list[Made]) -> list[tuple[int, str, str]]:
    """(level, type, text) of all but the root."""
    levels = [0]
    for one in made[1:]:
        levels.append(levels[one.parent or 0] + 1)
    return [(level, one.context[0], one.text) for level, one in zip(levels, made, strict=True)][1:]


def as_nodes_with_ids(made: list[Made]) -> list[Node]:
    found = as_nodes(made)
    named = {node.id: one.id or "" for node, one in zip(found, made, strict=True)}
    return [
        replace(node, id=named[node.id], parent_id=named[node.parent_id] if node.parent_id else None)
        for node in found
    ]
