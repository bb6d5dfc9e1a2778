"""package.json, and the workspaces of npm, yarn, pnpm and lerna."""

from __future__ import annotations

from backstory.claude_md.read.manifests.folder import Folder, dig, table, word, words
from backstory.claude_md.read.manifests.manifest import Manifest, task
from backstory.model import Command

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
SHORT = {("npm", "test"): "npm test", ("npm", "start"): "npm start"}
MOST_SCRIPTS = 300
LISTS = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")
TABLES = {"jest": "Jest", "mocha": "Mocha", "ava": "AVA", "tap": "tap"}  # in package.json itself


def read(folder: Folder) -> Manifest | None:
    if "package.json" not in folder.names:
        return None
    package = folder.json("package.json")
    manager = folder.manager or _manager(folder, word(package.get("packageManager")))
    found = [
        each
        for name, line in table(package.get("scripts")).items()
        if isinstance(line, str) and line.strip() and "no test specified" not in line
        for each in task("npm", name, SHORT.get((manager, name)) or LINES[manager], line, "package.json")
    ]
    name = word(package.get("name"))
    workspaces = _members(folder, package.get("workspaces"))
    is_published = not (workspaces and package.get("private"))  # else nobody ever sees the name
    return Manifest(
        ecosystem="npm",
        language="JavaScript",
        name=name if is_published else "",
        description=word(package.get("description")),
        own=frozenset([name]),
        dependencies=frozenset(name for kind in LISTS for name in table(package.get(kind))),
        configured=frozenset(TABLES[key] for key in TABLES if package.get(key)),
        managers=(manager,),
        commands=(Command("install", f"{manager} install", "package.json"),),
        tasks=tuple(found[:MOST_SCRIPTS]),
        members=tuple(workspaces),
        manifests=("package.json",),
    )


def _manager(folder: Folder, stated: str) -> str:
    name = stated.partition("@")[0]
    if name in LINES:
        return name
    return next((manager for lock, manager in LOCKS.items() if lock in folder.names), "npm")


def _members(folder: Folder, workspaces: object) -> list[str]:
    found = words(workspaces) or words(dig(workspaces, "packages"))
    found += words(dig(folder.yaml("pnpm-workspace.yaml"), "packages"))
    if not found and "lerna.json" in folder.names:
        found = words(folder.json("lerna.json").get("packages")) or ["packages/*"]
    return found
