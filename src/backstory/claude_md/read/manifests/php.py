"""composer.json."""

from __future__ import annotations

from backstory.claude_md.read.manifests.folder import Folder, table, word
from backstory.claude_md.read.manifests.manifest import Manifest, commands


def read(folder: Folder) -> Manifest | None:
    if "composer.json" not in folder.names:
        return None
    composer = folder.json("composer.json")
    scripts = [name for name, steps in table(composer.get("scripts")).items() if steps]
    name = word(composer.get("name"))
    return Manifest(
        ecosystem="composer",
        language="PHP",
        name=name,
        description=word(composer.get("description")),
        own=frozenset([name]),
        dependencies=frozenset(
            name.lower() for kind in ("require", "require-dev") for name in table(composer.get(kind))
        ),
        managers=("composer",),
        commands=tuple(commands(scripts, "composer {}", "composer.json")),
    )
