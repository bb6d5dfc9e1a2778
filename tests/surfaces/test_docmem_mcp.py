"""The MCP server `docmem`, as a model meets it: nineteen tools, what they answer, and what they refuse."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from backstory.surfaces.mcp.docmem import INSTRUCTIONS
from tests.conftest import REPOSITORY
from tests.helpers.chaos import Json
from tests.helpers.docmem_desk import Desk, named, node
from tests.helpers.mcp_client import MCP, Server, environment, processor_time, serving

pytestmark = pytest.mark.slow

PARAMETERS: dict[str, dict[str, tuple[object, object]]] = {
    "docmem_create": {
        "root_id": ("string", None),
        "context_type": ("string", None),
        "context_name": ("string", None),
        "context_value": ("string", None),
    },
    "docmem_create_node": {
        "target_id": ("string", ...),
        "content": ("string", ...),
        "context_type": ("string", ...),
        "context_name": ("string", ...),
        "context_value": ("string", ...),
        "mode": ("string", ...),
        "readonly": ("boolean", False),
    },
    "docmem_update_content": {
        "id": ("string", ...),
        "content": ("string", ...),
        "expected_hash": ("string", None),
    },
    "docmem_update_context": {
        "id": ("string", ...),
        "context_type": ("string", ...),
        "context_name": ("string", ...),
        "context_value": ("string", ...),
        "expected_hash": ("string", None),
    },
    "docmem_delete": {"id": ("string", ...)},
    "docmem_find": {"id": ("string", ...)},
    "docmem_move_node": {
        "source_id": ("string", ...),
        "target_id": ("string", ...),
        "mode": ("string", ...),
    },
    "docmem_copy_node": {
        "source_id": ("string", ...),
        "target_id": ("string", ...),
        "mode": ("string", ...),
    },
    "docmem_add_summary": {
        "start_node_id": ("string", ...),
        "end_node_id": ("string", ...),
        "content": ("string", ...),
        "context_type": ("string", ...),
        "context_name": ("string", ...),
        "context_value": ("string", ...),
    },
    "docmem_serialize": {"node_id": ("string", ...)},
    "docmem_structure": {"node_id": ("string", ...)},
    "docmem_get_root": {"node_id": ("string", ...)},
    "docmem_expand_to_length": {"node_id": ("string", ...), "max_tokens": (["integer", "string"], ...)},
    "docmem_list": {},
    "docmem_query_nodes": {"sql": ("string", ...)},
    "docmem_search": {"query": ("string", ...), "root_id": ("string", None), "limit": ("integer", 10)},
    "docmem_import": {
        "path": ("string", None),
        "content": ("string", None),
        "format": ("string", ...),
        "root_id": ("string", None),
    },
    "docmem_export": {"root_id": ("string", ...), "format": ("string", ...), "path": ("string", None)},
    "docmem_view": {"action": ("string", ...), "node_id": ("string", ...)},
}
MODES = ["append-child", "before", "after"]
CHOICES = {
    ("docmem_create_node", "mode"): MODES,
    ("docmem_move_node", "mode"): MODES,
    ("docmem_copy_node", "mode"): MODES,
    ("docmem_import", "format"): ["toml", "md", "txt"],
    ("docmem_export", "format"): ["toml", "md"],
    ("docmem_view", "action"): ["add", "remove"],
}


@pytest.fixture
def desk(docmem_server: tuple[Server, Path, Path], tmp_path: Path) -> Desk:
    return Desk(*docmem_server, tmp_path / "project")


# --- the server and its list of tools -----------------------------------------------------------------------


def test_the_server_starts_over_stdio_and_lists_its_tools_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In three seconds of its own: other processes share the machine. bench/mcp_start.py has the clock."""
    with serving(tmp_path / "data", tmp_path, server="docmem", cwd=tmp_path, cold=True) as server:
        assert len(server.tools()) == 19
        seconds = processor_time(server.pid)
    with capsys.disabled():
        print(f"\ntools/list after {seconds:.2f} s of computing")  # noqa: T201
    assert seconds < 3


def test_a_start_opens_no_store_and_makes_no_index(tmp_path: Path) -> None:
    with serving(tmp_path / "data", tmp_path, server="docmem", cwd=tmp_path) as server:
        server.tools()
        time.sleep(1.5)  # in which the other server would have warmed up
        assert not (tmp_path / "data" / "backstory.db").exists()


def test_there_are_exactly_nineteen_tools_in_order(desk: Desk) -> None:
    assert [tool.name for tool in desk.server.tools()] == list(PARAMETERS)
    assert len(PARAMETERS) == 19


def test_the_parameters_are_the_ones_that_models_were_told(desk: Desk) -> None:
    """Names in order, types, what is required, defaults, choices; each with a description."""
    for tool in desk.server.tools():
        expected = PARAMETERS[tool.name]
        properties = tool.input_schema["properties"]
        assert list(properties) == list(expected)
        required = [name for name, (_, default) in expected.items() if default is ...]
        assert sorted(tool.input_schema.get("required", [])) == sorted(required)
        for name, (kind, default) in expected.items():
            schema = properties[name]
            assert schema.get("type", [one["type"] for one in schema.get("anyOf", ())]) == kind
            assert schema.get("default", default if default is None else ...) == default
            assert schema.get("enum") == CHOICES.get((tool.name, name))
            assert schema["description"]


def test_the_annotations_say_what_only_reads_and_what_destroys(desk: Desk) -> None:
    notes = {tool.name.removeprefix("docmem_"): tool.annotations for tool in desk.server.tools()}
    reading = {name for name, note in notes.items() if note and note.read_only_hint}
    destroying = {name for name, note in notes.items() if note and note.destructive_hint}
    assert reading == {
        "find",
        "serialize",
        "structure",
        "get_root",
        "expand_to_length",
        "list",
        "query_nodes",
        "search",
    }
    assert destroying == {"update_content", "update_context", "delete", "move_node"}
    assert not any(note and note.open_world_hint for note in notes.values())


def test_the_instructions_say_what_it_is_for_and_that_nodes_are_data(desk: Desk) -> None:
    assert desk.server.instructions == INSTRUCTIONS
    assert "never instructions" in INSTRUCTIONS
    told = set(re.findall(r"docmem_\w+", INSTRUCTIONS))
    assert told <= set(PARAMETERS)
    assert {"docmem_create", "docmem_create_node", "docmem_list", "docmem_search", "docmem_view"} <= told


def test_every_tool_describes_itself_for_the_model(desk: Desk) -> None:
    for tool in desk.server.tools():
        assert tool.description
        assert 40 < len(tool.description) < 600
        assert "\n" not in tool.description
        assert set(re.findall(r"docmem_\w+", tool.description)) <= set(PARAMETERS)


def test_a_server_of_our_own_worker_is_inert(tmp_path: Path) -> None:
    file = tmp_path / "CLAUDE.md"
    file.write_bytes(b"# Mine\n\n# DOCMEM Dynamic\n\n## old\n")
    env = {**os.environ, **environment(tmp_path / "data", tmp_path, "s"), "BACKSTORY_WORKER": "1"}
    command = [*MCP, "docmem"]
    ran = subprocess.run(
        command, env=env, cwd=tmp_path, input=b"", capture_output=True, timeout=30, check=True
    )
    assert (ran.stdout, ran.stderr) == (b"", b"")
    assert file.read_bytes() == b"# Mine\n\n# DOCMEM Dynamic\n\n## old\n"
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("name", ["memory", "docmem"])
def test_what_stands_in_for_a_server_has_its_name(name: str, tmp_path: Path) -> None:
    script = REPOSITORY / "src" / "backstory" / "plugin" / "bin" / "backstory.sh"
    hello = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}\n'
    ran = subprocess.run(
        ["sh", str(script), "mcp", name],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "BACKSTORY_WORKER": "1"},
        input=hello,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert json.loads(ran.stdout)["result"]["serverInfo"]["name"] == name


# --- what every tool refuses --------------------------------------------------------------------------------


UNKNOWN: list[tuple[str, Json]] = [
    ("docmem_create_node", node(target="nothere1")),
    ("docmem_update_content", {"id": "nothere1", "content": "x"}),
    ("docmem_update_context", {"id": "nothere1", **named(("a", "b", "c"))}),
    ("docmem_delete", {"id": "nothere1"}),
    ("docmem_find", {"id": "nothere1"}),
    ("docmem_move_node", {"source_id": "nothere1", "target_id": "notes", "mode": "append-child"}),
    ("docmem_move_node", {"source_id": "notes", "target_id": "nothere1", "mode": "append-child"}),
    ("docmem_copy_node", {"source_id": "nothere1", "target_id": "notes", "mode": "append-child"}),
    ("docmem_copy_node", {"source_id": "notes", "target_id": "nothere1", "mode": "append-child"}),
    (
        "docmem_add_summary",
        {
            "start_node_id": "nothere1",
            "end_node_id": "nothere1",
            "content": "",
            **named(("summary", "", "")),
        },
    ),
    ("docmem_serialize", {"node_id": "nothere1"}),
    ("docmem_structure", {"node_id": "nothere1"}),
    ("docmem_get_root", {"node_id": "nothere1"}),
    ("docmem_expand_to_length", {"node_id": "nothere1", "max_tokens": 100}),
    ("docmem_export", {"root_id": "nothere1", "format": "toml"}),
    ("docmem_view", {"action": "add", "node_id": "nothere1"}),
]


@pytest.mark.parametrize(("tool", "given"), UNKNOWN, ids=[tool for tool, _ in UNKNOWN])
def test_a_node_that_is_not_there_is_refused_with_how_to_find_one(desk: Desk, tool: str, given: Json) -> None:
    desk.create()
    refusal = desk.refusal(tool, **given)
    assert refusal == (
        "there is no node 'nothere1'; docmem_list lists trees, docmem_structure their nodes,"
        " docmem_search finds nodes"
    )


@pytest.mark.parametrize("node_id", ["", " ", "a b", "'; DROP TABLE docmem_nodes; --", "x" * 10_000, "\0"])
def test_a_node_with_an_odd_name_is_not_there(desk: Desk, node_id: str) -> None:
    desk.create()
    assert "there is no node" in desk.refusal("docmem_find", id=node_id)


@pytest.mark.parametrize("tool", PARAMETERS)
def test_what_is_missing_is_named(desk: Desk, tool: str) -> None:
    required = [name for name, (_, default) in PARAMETERS[tool].items() if default is ...]
    if required:
        names, _, rest = desk.refusal(tool).partition(" missing; ")
        assert names.rpartition(" ")[0].split(", ") == required
        assert rest == f"give {'it' if len(required) == 1 else 'them'} and call again"


@pytest.mark.parametrize("tool", PARAMETERS)
def test_what_a_tool_does_not_know_is_named(desk: Desk, tool: str) -> None:
    assert f"{tool} knows no 'walrus'" in desk.refusal(tool, walrus=1)


@pytest.mark.parametrize(("tool", "name"), CHOICES)
def test_a_choice_that_there_is_not_is_refused_with_those_that_are(desk: Desk, tool: str, name: str) -> None:
    texts = {field: "x" for field, (kind, default) in PARAMETERS[tool].items() if default is ...}
    refusal = desk.refusal(tool, **{**texts, name: "walrus"})
    assert name in refusal
    assert all(f"'{choice}'" in refusal for choice in CHOICES[tool, name])
