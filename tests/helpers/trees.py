"""What is true of every tree, found out from the table alone, and a tree in a form that is easy to read."""

from __future__ import annotations

import base64
import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from backstory import paths
from backstory.docmem import tree
from backstory.model import Node, Project
from backstory.store import lines, nodes, projects
from backstory.store.file.connection import transaction

NOW = 1_800_000_000_000
NOTE = ("note", "", "")


def assert_trees_sound(db: sqlite3.Connection) -> None:
    """No orphans and no circles, no two siblings in one place, and every number and hash as it must be."""
    cursor = db.cursor()
    cursor.row_factory = sqlite3.Row
    found = {(one["project"], one["id"]): one for one in cursor.execute("SELECT * FROM docmem_nodes")}
    sizes = dict.fromkeys(found, 0)
    places = set()
    for (project, name), one in found.items():
        above, steps = name, 0
        while above is not None:
            sizes[project, above] += 1
            top, above, steps = above, found[project, above]["parent_id"], steps + 1
            assert steps <= len(found), f"{name} is in a circle"
        assert one["root_id"] == top, name
        if one["parent_id"] is None:
            assert one["order_value"] == 1.0
        else:
            places.add((project, one["parent_id"], one["order_value"]))
        assert one["token_count"] == (len(one["text"]) + 3) // 4
        parts = [one["parent_id"] or "", one["context_type"], one["context_name"], one["context_value"]]
        hashed = "|".join([*parts, one["text"], repr(float(one["order_value"]))]).encode("utf-8")
        assert one["hash"] == base64.standard_b64encode(hashlib.sha512(hashed).digest()).decode(), name
    assert {key: one["size"] for key, one in found.items()} == sizes
    assert len(places) == sum(one["parent_id"] is not None for one in found.values()), "two in one place"
    assert db.execute("PRAGMA foreign_key_check").fetchall() == []
    db.execute("INSERT INTO docmem_nodes_fts (docmem_nodes_fts, rank) VALUES ('integrity-check', 1)")


def project_at(db: sqlite3.Connection, folder: str) -> Project:
    with transaction(db):
        project_id = projects.ensure(db, paths.place(folder), NOW)
    return projects.by_id(db, project_id)


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
