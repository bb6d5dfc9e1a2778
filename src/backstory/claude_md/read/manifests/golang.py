"""go.mod and go.work."""

from __future__ import annotations

import re
from collections.abc import Iterator

from backstory.claude_md.read.manifests.folder import Folder
from backstory.claude_md.read.manifests.manifest import NAME, Manifest
from backstory.model import Command

MAIN = re.compile(r"^package[ \t]+main\b", re.MULTILINE)
LEFT_OUT = re.compile(r"^//(go:build| \+build) ignore\b", re.MULTILINE)  # a helper that is run by its name
LINTER = (".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json")


def read(folder: Folder) -> Manifest | None:
    if not folder.first("go.mod", "go.work"):
        return None
    module = folder.text("go.mod")
    path = _unquoted(next(iter(_directive(module, "module")), ""))
    found = []
    if module:
        found += [Command("build", "go build ./...", "go.mod"), Command("test", "go test ./...", "go.mod")]
        if source := next(_programs(folder), None):
            found.append(Command("run", "go run .", source))
        else:
            found += _run_command(folder)
    if source := folder.first(*LINTER):
        found.append(Command("lint", "golangci-lint run", source))
    required = (line for line in _directive(module, "require") if not re.search(r"//\s*indirect", line))
    return Manifest(
        ecosystem="go",
        language="Go",
        name=re.sub(r"/v\d+$", "", path).rpartition("/")[2],
        own=frozenset([path]),
        dependencies=frozenset(_unquoted(line) for line in required),
        managers=("go",),
        commands=tuple(found),
        members=tuple(_unquoted(line) for line in _directive(folder.text("go.work"), "use")),
        manifests=("go.mod",),
    )


def _programs(folder: Folder) -> Iterator[str]:
    for name in sorted(folder.names):
        if name.endswith(".go") and not name.endswith("_test.go"):
            text = folder.text(name, 1_000_000)
            if MAIN.search(text) and not LEFT_OUT.search(text):
                yield name


def _run_command(folder: Folder) -> list[Command]:
    """How to run the program in cmd/, where there is only one."""
    names = [name for name in folder.folders("cmd") if folder.has(f"cmd/{name}/main.go")]
    if len(names) != 1 or not NAME.fullmatch(names[0]):
        return []
    return [Command("run", f"go run ./cmd/{names[0]}", f"cmd/{names[0]}/main.go")]


def _directive(text: str, name: str) -> list[str]:
    """What follows a directive, a line each, on its own or in parentheses."""
    found = []
    inside = False
    for line in text.splitlines():
        bare = line.strip()
        if inside:
            if bare.startswith(")"):
                inside = False
            elif bare and not bare.startswith("//"):
                found.append(bare)
        elif match := re.match(rf"{name}(?:\s+|(?=\())(.+)", bare):
            inside = match[1].startswith("(")
            if not inside:
                found.append(match[1])
    return found


def _unquoted(line: str) -> str:
    return (line.split() or [""])[0].strip("\"'`")
