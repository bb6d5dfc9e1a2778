"""package.json, and the workspaces of npm, yarn, pnpm and lerna."""

from __future__ import annotations

from dataclasses import replace

from backstory.claude_md.read.manifests.folder import Folder, dig, table, word, words, yaml_list
from backstory.claude_md.read.manifests.manifest import Manifest, commands

LOCKS = {
    "pnpm-lock.yaml": "pnpm",
    "pnpm-workspace.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
    "package-lock.json": "npm",
    "npm-shrinkwrap.json": "npm",
}
LINES = {"npm": "npm run {}", "yarn": "yarn {}", "pnpm": "pnpm {}", "bun": "bun run {}"}
LISTS = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")
TABLES = {"jest": "Jest", "mocha": "Mocha", "ava": "AVA", "tap": "tap"}  # in package.json itself


def read(folder: Folder) -> Manifest | None:
    if "package.json" not in folder.names:
        return None
    package = folder.json("package.json")
    manager = _manager(folder, word(package.get("packageManager")))
    scripts = [
        name
        for name, line in table(package.get("scripts")).items()
        if isinstance(line, str) and line.strip() and "no test specified" not in line
    ]
    found = commands(scripts, LINES[manager], "package.json")
    if manager == "npm":
        short = {"npm run test": "npm test", "npm run start": "npm start"}
        found = [replace(command, line=short.get(command.line, command.line)) for command in found]
    name = word(package.get("name"))
    return Manifest(
        ecosystem="npm",
        language="JavaScript",
        name=name,
        description=word(package.get("description")),
        own=frozenset([name]),
        dependencies=frozenset(name for kind in LISTS for name in table(package.get(kind))),
        configured=frozenset(TABLES[key] for key in TABLES if package.get(key)),
        managers=(manager,),
        commands=tuple(found),
        members=tuple(_members(folder, package.get("workspaces"))),
        manifests=("package.json",),
    )


def _manager(folder: Folder, stated: str) -> str:
    name = stated.partition("@")[0]
    if name in LINES:
        return name
    return next((manager for lock, manager in LOCKS.items() if lock in folder.names), "npm")


def _members(folder: Folder, workspaces: object) -> list[str]:
    found = words(workspaces) or words(dig(workspaces, "packages"))
    found += yaml_list(folder.text("pnpm-workspace.yaml"), "packages")
    if not found and "lerna.json" in folder.names:
        found = words(folder.json("lerna.json").get("packages")) or ["packages/*"]
    return found
