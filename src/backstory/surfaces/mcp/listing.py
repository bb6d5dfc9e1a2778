"""What the MCP servers tell of themselves before a tool is called: who they are, and which tools there are.

It lies in `listing.json`, which docs/generate.py makes of the tools, because the mcp package that would say
the same takes most of a second to import, and Claude Code sends a session's first request without the tools
of a server that is late. A test compares the two. The package's server lists the tools from here as well.

The server `backstory` has both sets of tools. It lists those for trees whole only where the project has a
tree; else the three that make or find one, and the rest once there is a tree. A client must be known to ask
again when it is told so; any other gets the whole list at once.
"""

from __future__ import annotations

import json
import os

from backstory import config, paths
from backstory.clients import claude_code
from backstory.errors import BackstoryError
from backstory.store import nodes, projects
from backstory.store.open import open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

FILE = os.path.join(os.path.dirname(__file__), "listing.json")
BOTH, MEMORY, DOCMEM = "backstory", "memory", "docmem"
NAMES = {BOTH: "memory", MEMORY: "memory", DOCMEM: "docmem"}  # what each calls itself
WITHOUT_A_TREE = frozenset(("docmem_create", "docmem_list", "docmem_import"))
EVERYWHERE = "memory_search everywhere"  # the one that may look into other projects, if the user allows it
ASK_AGAIN = frozenset((claude_code.CLIENT,))  # clients that honour notifications/tools/list_changed


def load() -> Json:
    with open(FILE, encoding="utf-8") as file:
        listing: Json = json.load(file)
    return listing


def tools(listing: Json, server: str, *, short: bool = False) -> list[Json]:
    names: list[str] = listing["servers"][server]["tools"]
    if short:
        names = [name for name in names if not name.startswith("docmem_") or name in WITHOUT_A_TREE]
    if config.may_recall_everywhere(os.environ):
        names = [EVERYWHERE if name == "memory_search" else name for name in names]
    return [listing["tools"][name] for name in names]


def is_short(server: str, client: str) -> bool:
    """Are tools left out of what this client is told?"""
    return server == BOTH and client in ASK_AGAIN and not has_tree()


def has_tree() -> bool:
    """Has this project a tree? Where the store cannot be read now, the next call asks again."""
    folder = paths.data_folder(os.environ)
    if folder is None or not os.path.exists(paths.database(folder)):
        return False
    try:
        place = paths.place(claude_code.project_folder(os.environ))
        with open_store(folder, now=0, drain=lambda _: None, hurried=True) as db:
            here = projects.id_at(db, place)
            return here is not None and nodes.has_tree(db, here)
    except (BackstoryError, OSError):
        return False
