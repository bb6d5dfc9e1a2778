"""One river: the import table of docs/architecture.md, held."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "backstory"

# room -> the rooms it may import besides itself and the root files; the same as in docs/architecture.md
MAY_IMPORT = {
    "root": set[str](),
    "safety": set[str](),
    "clients": set[str](),
    "memory": set[str](),
    "capture": {"safety", "clients"},
    "store": {"memory"},
    "intake": {"safety", "clients", "memory", "capture", "store"},
    "synthesis": {"safety", "memory", "store"},
    "recall": {"safety", "memory", "store"},
    "docmem": {"safety", "store", "recall"},
    "claude_md": {"safety", "store"},
    "surfaces": {
        *("safety", "clients", "memory", "capture", "store", "intake"),
        *("synthesis", "recall", "docmem", "claude_md"),
    },
}
FORBIDDEN_IN_CAPTURE = {"sqlite3", "subprocess", "logging", "asyncio"}


@cache
def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "plugin" not in path.relative_to(PACKAGE).parts)


def dotted(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in MAY_IMPORT else "root"


def surface(module: str) -> str:
    return module.split(".")[2] if module.count(".") >= 2 else ""


def imports(path: Path) -> Iterator[str]:
    known = {dotted(module) for module in modules()}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in known else node.module


@pytest.mark.parametrize("path", modules(), ids=dotted)
def test_a_room_imports_only_rooms_upstream_of_it(path: Path) -> None:
    here = dotted(path)
    if here == "backstory.__main__":
        return  # the door
    for target in imports(path):
        if target.split(".")[0] != "backstory":
            continue
        there = room(target)
        assert there in {"root", room(here)} | MAY_IMPORT[room(here)], f"{here} imports {target}"


def test_surfaces_never_import_each_other() -> None:
    for path in modules():
        here = dotted(path)
        if room(here) != "surfaces":
            continue
        for target in imports(path):
            started_by_the_command = here == "backstory.surfaces.cli.main" and target.endswith(
                ("mcp.memory", "mcp.docmem", "surfaces.worker")
            )
            if target.startswith("backstory.surfaces.") and not started_by_the_command:
                assert surface(target) == surface(here), f"{here} imports {target}"


def test_no_module_imports_itself_by_a_detour() -> None:
    edges = {
        dotted(path): {target for target in imports(path) if target.startswith("backstory")}
        for path in modules()
    }
    done: set[str] = set()

    def walk(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " -> ".join((*trail, module))
        if module in done:
            return
        for target in edges.get(module, set()):
            if target != module:
                walk(target, (*trail, module))
        done.add(module)

    for module in edges:
        walk(module, ())


@pytest.mark.parametrize("path", [path for path in modules() if room(dotted(path)) == "capture"], ids=dotted)
def test_capture_imports_nothing_slow(path: Path) -> None:
    assert not FORBIDDEN_IN_CAPTURE & {target.split(".")[0] for target in imports(path)}


def test_sql_stands_only_in_the_store() -> None:
    verbs = ("SELECT ", "INSERT INTO", "UPDATE ", "DELETE FROM", "CREATE TABLE")
    for path in modules():
        if room(dotted(path)) == "store":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not node.value.lstrip().startswith(verbs), f"{dotted(path)}: {node.value[:60]}"


def test_the_table_in_the_docs_is_this_table() -> None:
    text = (PACKAGE.parent.parent / "docs" / "architecture.md").read_text()
    for name, allowed in MAY_IMPORT.items():
        if name in ("root", "surfaces"):
            continue
        row = next(line for line in text.splitlines() if line.startswith(f"| `{name}/`"))
        listed = row.rsplit("|", 2)[1]
        assert {word.strip() for word in listed.split(",")} == {"root"} | allowed, row
