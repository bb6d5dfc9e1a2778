"""composer.json."""

from __future__ import annotations

from backstory.claude_md.read.manifests.folder import Folder, table, word, words
from backstory.claude_md.read.manifests.manifest import Manifest, task
from backstory.model import Command


def read(folder: Folder) -> Manifest | None:
    if "composer.json" not in folder.names:
        return None
    composer = folder.json("composer.json")
    scripts = [
        each
        for name, steps in table(composer.get("scripts")).items()
        if words(steps)
        for each in task("composer", name, "composer {}", _recipe(words(steps)), "composer.json")
    ]
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
        commands=(Command("install", "composer install", "composer.json"),),
        tasks=tuple(scripts[:300]),
    )


def _recipe(steps: list[str]) -> str:
    return "\n".join(f"composer {step[1:]}" if step.startswith("@") else step for step in steps[:100])
