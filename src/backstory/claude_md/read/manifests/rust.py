"""Cargo.toml."""

from __future__ import annotations

from typing import Any

from backstory.claude_md.read.manifests.folder import Folder, dig, table, word, words
from backstory.claude_md.read.manifests.manifest import Manifest
from backstory.model import Command

NEXTEST = ".config/nextest.toml"
LISTS = ("dependencies",)  # what tests and builds need is not what it is made with


def read(folder: Folder) -> Manifest | None:
    if "Cargo.toml" not in folder.names:
        return None
    cargo = folder.toml("Cargo.toml")
    package = table(cargo.get("package"))
    members = [member for member in words(dig(cargo, "workspace", "members")) if member != "."]
    everywhere = " --workspace" if members else ""
    found = [
        Command("build", "cargo build" + everywhere, "Cargo.toml"),
        Command("test", "cargo nextest run" + everywhere, NEXTEST)
        if folder.has(NEXTEST)
        else Command("test", "cargo test" + everywhere, "Cargo.toml"),
    ]
    if source := folder.first("clippy.toml", ".clippy.toml"):
        found.append(Command("lint", "cargo clippy", source))
    source = folder.first("rustfmt.toml", ".rustfmt.toml")
    if source and not folder.toml(source).get("disable_all_formatting"):
        found.append(Command("format", "cargo fmt", source))
    if package and (folder.has("src/main.rs") or cargo.get("bin") or _has_one_program(folder)):
        found.append(Command("run", "cargo run", "Cargo.toml"))
    shared = table(dig(cargo, "workspace", "package"))
    name = word(package.get("name"))
    return Manifest(
        ecosystem="cargo",
        language="Rust",
        name=name,
        description=word(package.get("description")) or word(shared.get("description")),
        own=frozenset([name]),
        dependencies=frozenset(_dependencies(cargo)),
        managers=("cargo",),
        commands=tuple(found),
        members=(*members, *("!" + path for path in words(dig(cargo, "workspace", "exclude")))),
        manifests=("Cargo.toml",),
    )


def _has_one_program(folder: Folder) -> bool:
    return len([name for name in folder.folders("src/bin") if folder.has(f"src/bin/{name}/main.rs")]) == 1


def _dependencies(cargo: dict[str, Any]) -> set[str]:
    places = [cargo, table(cargo.get("workspace")), *map(table, table(cargo.get("target")).values())]
    lists = (table(place.get(kind)) for place in places for kind in LISTS)
    return {word(dig(how, "package")) or name for listed in lists for name, how in listed.items()}
