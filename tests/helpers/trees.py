"""What is true of every tree, found out from the table alone."""

from __future__ import annotations

import base64
import hashlib
import sqlite3


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
