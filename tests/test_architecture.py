"""The import table of docs/architecture.md, held."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from backstory.clients import claude_code

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
SHARED_BY_SURFACES = {
    f"backstory.surfaces.{name}"
    for name in ("asking", "erasing", "noting", "opened", "prose_note", "shapes", "view_files")
}
IMPORTS_FCNTL = {"backstory.locks"}  # and plugin/bin/setup.py, which runs without the package
FORBIDDEN_IN_CAPTURE = {"sqlite3", "subprocess", "logging", "asyncio"}


@cache
def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "plugin" not in path.relative_to(PACKAGE).parts)


@cache
def dotted(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in MAY_IMPORT else "root"


def surface(module: str) -> str:
    return module.split(".")[2] if module.count(".") >= 2 else ""


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def imports(path: Path) -> frozenset[str]:
    known = {dotted(module) for module in modules()}
    found: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            wholes = (f"{node.module}.{alias.name}" for alias in node.names)
            found.update(whole if whole in known else node.module for whole in wholes)
    return frozenset(found)


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
            started_by_the_command = here.startswith("backstory.surfaces.cli.") and target.endswith(
                ("mcp.start", "surfaces.statusline", "surfaces.worker")
            )
            if target in SHARED_BY_SURFACES or not target.startswith("backstory.surfaces."):
                continue
            if not started_by_the_command:
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
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not node.value.lstrip().startswith(verbs), f"{dotted(path)}: {node.value[:60]}"


@pytest.mark.parametrize("path", modules(), ids=dotted)
def test_only_the_store_knows_sqlite_and_only_locks_knows_flock(path: Path) -> None:
    here = dotted(path)
    found = {target.split(".")[0] for target in imports(path)}
    assert "sqlite3" not in found or room(here) == "store", f"{here}: take Connection from the store"
    assert "fcntl" not in found or here in IMPORTS_FCNTL, f"{here}: use locks.py"


# --- what only clients/ knows -------------------------------------------------------------------------------

TOOLS = {
    *(*claude_code.TOOLS, *claude_code.NAMING, "ToolSearch", "NotebookRead", "BashOutput", "KillShell"),
    *("TaskList", "TaskGet", "TaskOutput", "TaskStop", "SlashCommand", "Monitor", "LSP"),
}
FIELDS = {
    *("hook_event_name", "transcript_path", "permission_mode", "prompt_id", "tool_use_id", "agent_id"),
    *("agent_type", "agent_transcript_path", "is_interrupt", "duration_ms", "background_tasks"),
    *(
        "stop_hook_active",
        "tool_name",
        "tool_input",
        "subagent_type",
        "run_in_background",
        "changedFiles",
        "filenames",
    ),
    *("hookSpecificOutput", "hookEventName", "additionalContext", "systemMessage", "permissionDecision"),
    *(*claude_code.EVENTS, *claude_code.SAYING.values(), *claude_code.RESULT_FIELDS),
    *(field for _, names in claude_code.TOOLS.values() for field in names),
    *(*claude_code.ECHOED, *claude_code.PRINTED, *claude_code.SHOWN, *claude_code.NO_STATUS),
}
VARIABLES = {claude_code.SESSION_ID, claude_code.PROJECT_DIR, claude_code.PLUGIN_DATA}
# Words that mean something else here as well: every program has a stdout, a session may be interrupted, and
# the memory of a prompt has an id.
COMMON = {"content", "edits", "stdout", "stderr", "interrupted", "prompt_id"}
NAMES = (TOOLS | FIELDS | VARIABLES) - COMMON
COLUMNS = {"tool_name", "tool_input", "tool_output"}  # of specification 003


def literals(tree: ast.AST) -> Iterator[str]:
    """Every string of a module, without those that only say something to a reader."""
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in said:
            if isinstance(node.value, str):
                yield node.value
            elif isinstance(node.value, bytes):
                yield node.value.decode(errors="replace")


def known_of_claude_code(text: str, allowed: set[str]) -> set[str]:
    """Names of Claude Code's that a literal is or, where nothing else is spelled like that, has in it."""
    words = NAMES.intersection(re.findall(r"\w+", text))
    inside = {name for name in words if re.search("_|[a-z][A-Z]", name)}
    variables = set(re.findall(r"\bCLAUDE_[A-Z_]+|\bmcp__", text))
    return ({text, text.strip("\"'")} & NAMES | inside) - allowed | variables


@pytest.mark.parametrize("path", modules(), ids=dotted)
def test_only_clients_know_what_claude_code_calls_things(path: Path) -> None:
    here = dotted(path)
    if room(here) == "clients" or here.startswith("backstory.synthesis.claude"):
        return
    allowed = COLUMNS if room(here) == "store" else set[str]()
    found = {name for text in literals(parsed(path)) for name in known_of_claude_code(text, allowed)}
    assert found == set()


def test_a_name_of_claude_codes_is_noticed_wherever_it_stands() -> None:
    code = """
def f(x):
    'Edit a file_path in a docstring'
    return x == 'Edit', f'SELECT {x} ->> "file_path"', b'"Write"', 'CLAUDE_NEW_NAME', 'Edit this', 'mcp__a'
"""
    found = [known_of_claude_code(text, set()) for text in literals(ast.parse(code))]
    assert set().union(*found) == {"Edit", "file_path", "Write", "CLAUDE_NEW_NAME", "mcp__"}


def test_the_table_in_the_docs_is_this_table() -> None:
    text = (PACKAGE.parent.parent / "docs" / "architecture.md").read_text()
    for name, allowed in MAY_IMPORT.items():
        if name in ("root", "surfaces"):
            continue
        row = next(line for line in text.splitlines() if line.startswith(f"| `{name}/`"))
        listed = row.rsplit("|", 2)[1]
        assert {word.strip() for word in listed.split(",")} == {"root"} | allowed, row
