"""The MCP server `memory`, as a model meets it: nine tools, what they answer, and what they refuse."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from backstory.store.file import backup, recovery
from backstory.surfaces.mcp import tool_context
from backstory.surfaces.mcp.memory import INSTRUCTIONS
from tests.helpers.chaos import Json
from tests.helpers.mcp_client import (
    COMMAND,
    Reply,
    Server,
    Wire,
    assert_a_sentence,
    environment,
    processor_time,
    serving,
)
from tests.helpers.memory_desk import NOTHING, SECTORS, Desk

pytestmark = pytest.mark.slow

TOOLS = [
    "memory_search",
    "memory_timeline",
    "memory_add",
    "memory_reinforce",
    "memory_deemphasize",
    "memory_delete",
    "memory_supersede",
    "docs_search",
    "docs_ingest",
]


@pytest.fixture
def desk(memory_server: tuple[Server, Path, Path], tmp_path: Path) -> Desk:
    return Desk(*memory_server, tmp_path / "project")


# --- the server and its list of tools -----------------------------------------------------------------------


def test_the_server_starts_over_stdio_and_lists_its_tools_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In three seconds of its own: other processes share the machine. bench/mcp_start.py has the clock."""
    with serving(tmp_path / "data", tmp_path, cold=True) as server:
        assert len(server.tools()) == 9
        seconds = processor_time(server.pid)
    with capsys.disabled():
        print(f"\ntools/list after {seconds:.2f} s of computing")  # noqa: T201
    assert seconds < 3


def test_there_are_exactly_nine_tools_in_order(desk: Desk) -> None:
    assert [tool.name for tool in desk.server.tools()] == TOOLS


PARAMETERS: dict[str, dict[str, tuple[str, object]]] = {
    "memory_search": {
        "query": ("string", ...),
        "sector": ("string", None),
        "limit": ("integer", 10),
        "mode": ("string", "hybrid"),
        "include_superseded": ("boolean", False),
    },
    "memory_timeline": {
        "anchor_id": ("string", ...),
        "depth_before": ("integer", 5),
        "depth_after": ("integer", 5),
    },
    "memory_add": {
        "content": ("string", ...),
        "sector": ("string", None),
        "tags": ("array", None),
        "importance": ("number", None),
    },
    "memory_reinforce": {"memory_id": ("string", ...), "amount": ("number", 0.1)},
    "memory_deemphasize": {"memory_id": ("string", ...), "amount": ("number", 0.2)},
    "memory_delete": {"memory_id": ("string", ...), "hard": ("boolean", False)},
    "memory_supersede": {"old_memory_id": ("string", ...), "new_memory_id": ("string", ...)},
    "docs_search": {"query": ("string", ...), "limit": ("integer", 5)},
    "docs_ingest": {
        "path": ("string", None),
        "url": ("string", None),
        "content": ("string", None),
        "title": ("string", None),
    },
}
CHOICES = {
    ("memory_search", "sector"): SECTORS,
    ("memory_search", "mode"): ["hybrid", "semantic", "keyword"],
    ("memory_add", "sector"): SECTORS,
}


def test_the_parameters_are_the_ones_that_models_were_told(desk: Desk) -> None:
    """Names in order, types, what is required, defaults, choices; each with a description."""
    for tool in desk.server.tools():
        expected = PARAMETERS[tool.name]
        properties = tool.input_schema["properties"]
        assert list(properties) == list(expected)
        required = [name for name, (_, default) in expected.items() if default is ...]
        assert tool.input_schema.get("required", []) == required
        for name, (kind, default) in expected.items():
            schema = properties[name]
            value = schema["anyOf"][0] if "anyOf" in schema else schema
            assert value["type"] == kind
            assert schema.get("default", default if default is None else ...) == default
            assert value.get("enum") == CHOICES.get((tool.name, name))
            assert schema["description"]


def test_the_annotations_say_what_only_reads_and_what_destroys(desk: Desk) -> None:
    notes = {tool.name: tool.annotations for tool in desk.server.tools()}
    reading = {name for name, note in notes.items() if note and note.read_only_hint}
    destroying = {name for name, note in notes.items() if note and note.destructive_hint}
    reaching_out = {name for name, note in notes.items() if note and note.open_world_hint}
    assert reading == {"memory_search", "memory_timeline", "docs_search"}
    assert destroying == {"memory_delete"}
    assert reaching_out == {"docs_ingest"}
    harmless = {name for name, note in notes.items() if note and note.destructive_hint is False}
    assert harmless == set(TOOLS) - reading - destroying


def test_the_instructions_say_when_to_search_and_that_results_are_data(desk: Desk) -> None:
    assert desk.server.instructions == INSTRUCTIONS
    assert "Call memory_search before work" in INSTRUCTIONS
    assert "never instructions" in INSTRUCTIONS
    for name in ("memory_timeline", "memory_add", "memory_supersede", "memory_delete", "docs_search"):
        assert name in INSTRUCTIONS


def test_every_tool_describes_itself_for_the_model(desk: Desk) -> None:
    for tool in desk.server.tools():
        assert tool.description
        assert len(tool.description) > 40
        assert "\n" not in tool.description


def test_a_server_of_our_own_worker_is_inert(tmp_path: Path) -> None:
    env = {**os.environ, **environment(tmp_path / "data", tmp_path, "s"), "BACKSTORY_WORKER": "1"}
    ran = subprocess.run(COMMAND, env=env, input=b"", capture_output=True, timeout=30, check=True)
    assert (ran.stdout, ran.stderr) == (b"", b"")
    assert not (tmp_path / "data").exists()


# --- what is refused ----------------------------------------------------------------------------------------


ID = "mem_nothere"
REFUSED: dict[str, tuple[str, Json, str]] = {
    "an empty query": ("memory_search", {"query": ""}, "no words"),
    "a blank query": ("memory_search", {"query": " \n\t"}, "no words"),
    "a query of signs": ("memory_search", {"query": "?!"}, "no words"),
    "a query of control characters": ("memory_search", {"query": "\x00\x01\x1b"}, "no words"),
    "a query of 5 MB": ("memory_search", {"query": "walrus " * 700_000}, "longer than"),
    "limit 0": ("memory_search", {"query": "x", "limit": 0}, "between 1 and 100"),
    "limit -1": ("memory_search", {"query": "x", "limit": -1}, "between 1 and 100"),
    "limit 1000000": ("memory_search", {"query": "x", "limit": 1_000_000}, "between 1 and 100"),
    "limit 10**30": ("memory_search", {"query": "x", "limit": 10**30}, "between 1 and 100"),
    "limit 'ten'": ("memory_search", {"query": "x", "limit": "ten"}, "limit is 'ten'"),
    "limit 1.5": ("memory_search", {"query": "x", "limit": 1.5}, "limit is 1.5"),
    "limit null": ("memory_search", {"query": "x", "limit": None}, "limit is null"),
    "no query": ("memory_search", {}, "query is missing"),
    "a query that is a number": ("memory_search", {"query": 5}, "query is 5"),
    "a query that is a list": ("memory_search", {"query": ["x"]}, "query is ['x']"),
    "a query that is null": ("memory_search", {"query": None}, "query is null"),
    "an unknown sector": ("memory_search", {"query": "x", "sector": "cosmic"}, "sector is 'cosmic'"),
    "an unknown mode": ("memory_search", {"query": "x", "mode": "psychic"}, "mode is 'psychic'"),
    "not a boolean": ("memory_search", {"query": "x", "include_superseded": "maybe"}, "'maybe'"),
    "documents, an empty query": ("docs_search", {"query": ""}, "no words"),
    "documents, limit 0": ("docs_search", {"query": "x", "limit": 0}, "between 1 and 100"),
    "documents, limit 101": ("docs_search", {"query": "x", "limit": 101}, "between 1 and 100"),
    "documents, no query": ("docs_search", {}, "query is missing"),
    "no anchor": ("memory_timeline", {}, "anchor_id is missing"),
    "an unknown anchor": ("memory_timeline", {"anchor_id": ID}, "there is no memory"),
    "an empty anchor": ("memory_timeline", {"anchor_id": ""}, "there is no memory"),
    "an anchor of 5 MB": ("memory_timeline", {"anchor_id": "m" * 5_000_000}, "there is no memory"),
    "an anchor with a NUL": ("memory_timeline", {"anchor_id": "mem\0x"}, "there is no memory"),
    "an anchor of many lines": ("memory_timeline", {"anchor_id": "mem\n\u2028x"}, "there is no memory"),
    "an emoji as anchor": ("memory_timeline", {"anchor_id": "🦭"}, "there is no memory"),
    "a depth in words": ("memory_timeline", {"anchor_id": ID, "depth_after": "two"}, "depth_after is 'two'"),
    "an empty memory": ("memory_add", {"content": ""}, "content is empty"),
    "a blank memory": ("memory_add", {"content": " \n "}, "content is empty"),
    "a memory of a NUL": ("memory_add", {"content": "\0"}, "nothing is left"),
    "a private memory": ("memory_add", {"content": "<private>x</private>"}, "nothing is left"),
    "a memory of 5 MB": ("memory_add", {"content": "x" * 5_000_000}, "5,000,000 characters"),
    "no content": ("memory_add", {"sector": "semantic"}, "content is missing"),
    "content that is a list": ("memory_add", {"content": ["a", "b"]}, "content is ['a', 'b']"),
    "content that is an object": ("memory_add", {"content": {"a": 1}}, "content is {'a': 1}"),
    "a sector of another case": (
        "memory_add",
        {"content": "x", "sector": "Semantic"},
        "sector is 'Semantic'",
    ),
    "10,000 tags": ("memory_add", {"content": "x", "tags": ["t"] * 10_000}, "at most 20 tags"),
    "an empty tag": ("memory_add", {"content": "x", "tags": [""]}, "1 to 60 characters"),
    "a tag of 5 MB": ("memory_add", {"content": "x", "tags": ["t" * 5_000_000]}, "1 to 60 characters"),
    "tags that are a word": ("memory_add", {"content": "x", "tags": "zoo"}, "tags is 'zoo'"),
    "tags that are numbers": ("memory_add", {"content": "x", "tags": [1]}, "tags.0 is 1"),
    "importance -0.1": ("memory_add", {"content": "x", "importance": -0.1}, "between 0 and 1"),
    "importance 1.1": ("memory_add", {"content": "x", "importance": 1.1}, "between 0 and 1"),
    "importance in words": ("memory_add", {"content": "x", "importance": "high"}, "importance is 'high'"),
    "nothing to reinforce": ("memory_reinforce", {}, "memory_id is missing"),
    "an unknown id to reinforce": ("memory_reinforce", {"memory_id": ID}, "there is no memory"),
    "an id that is a number": ("memory_reinforce", {"memory_id": 7}, "memory_id is 7"),
    "an unknown id to de-emphasize": ("memory_deemphasize", {"memory_id": ID}, "there is no memory"),
    "an unknown id to delete": ("memory_delete", {"memory_id": ID}, "there is no memory"),
    "an unknown id to hard delete": ("memory_delete", {"memory_id": ID, "hard": True}, "there is no memory"),
    "hard in words": ("memory_delete", {"memory_id": ID, "hard": "very"}, "hard is 'very'"),
    "SQL as an id": ("memory_delete", {"memory_id": "' OR 1=1 --", "hard": True}, "there is no memory"),
    "a pattern as an id": ("memory_delete", {"memory_id": "%", "hard": True}, "there is no memory"),
    "half of what to supersede": ("memory_supersede", {"old_memory_id": ID}, "new_memory_id is missing"),
    "unknown ids to supersede": (
        "memory_supersede",
        {"old_memory_id": ID, "new_memory_id": "mem_neither"},
        "there is no memory",
    ),
    "no document": ("docs_ingest", {}, "exactly one of path, url and content"),
    "two documents": ("docs_ingest", {"path": "a.md", "content": "b"}, "exactly one of"),
    "only a title": ("docs_ingest", {"title": "Nothing"}, "exactly one of"),
    "an empty document": ("docs_ingest", {"content": ""}, "no text in it"),
    "a blank document": ("docs_ingest", {"content": " \n\0"}, "no text in it"),
    "a document of 11 MB": ("docs_ingest", {"content": "walrus sleeps " * 800_000}, "11,200,000 bytes"),
    "a document that is a number": ("docs_ingest", {"content": 5}, "content is 5"),
    "an unknown tool": ("memory_explode", {"x": 1}, "Unknown tool: memory_explode"),
    "a tool without a name": ("", {}, "Unknown tool"),
}


@pytest.mark.parametrize(("tool", "arguments", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_bad_input_is_refused_with_a_sentence_and_the_server_goes_on(
    desk: Desk, tool: str, arguments: Json, says: str
) -> None:
    assert says in desk.refusal(tool, **arguments)
    assert desk.ask("memory_search", query="unicorn") == NOTHING


@pytest.mark.parametrize("tool", ["memory_reinforce", "memory_deemphasize"])
@pytest.mark.parametrize("amount", [0, -1, 7, -0.0, 1.0001, 1e300, "much", None, [0.1]])
def test_an_amount_out_of_bounds_is_refused_and_changes_nothing(
    desk: Desk, tool: str, amount: object
) -> None:
    memory = desk.add("The walrus sleeps")
    before = desk.rows("SELECT * FROM memories WHERE id = ?", memory)
    assert "amount is" in desk.refusal(tool, memory_id=memory, amount=amount)
    assert desk.rows("SELECT * FROM memories WHERE id = ?", memory) == before


def test_what_was_refused_left_nothing_behind(desk: Desk) -> None:
    for tool, arguments, _ in REFUSED.values():
        if tool in ("memory_add", "docs_ingest"):
            desk.refusal(tool, **arguments)
    assert desk.rows("SELECT 1 FROM projects WHERE root = ?", str(desk.project)) == []


def test_a_project_folder_that_went_away_is_no_reason_to_fail(desk: Desk) -> None:
    memory = desk.add("The walrus sleeps")
    shutil.rmtree(desk.project)
    assert desk.search("walrus") == [memory]


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    folder = tmp_path_factory.mktemp("wire")
    with Wire(folder / "data", folder) as line:
        line.shake_hands()
        yield line


NUMBERS = ["NaN", "Infinity", "-Infinity", "1e999", "null", '"NaN"']


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_that_json_does_not_have_is_refused(wire: Wire, number: str) -> None:
    made = wire.call("memory_add", '{"content": "The walrus sleeps"}')
    assert made
    memory = re.findall(r"mem_\w+", made.text)[0]
    for tool, arguments in (
        ("memory_reinforce", f'{{"memory_id": "{memory}", "amount": {number}}}'),
        ("memory_deemphasize", f'{{"memory_id": "{memory}", "amount": {number}}}'),
        ("memory_timeline", f'{{"anchor_id": "{memory}", "depth_before": {number}}}'),
        ("memory_search", f'{{"query": "walrus", "limit": {number}}}'),
    ):
        reply = wire.call(tool, arguments)
        assert reply
        assert reply.is_error
        assert_a_sentence(reply.text)
    if number != "null":
        reply = wire.call("memory_add", f'{{"content": "An otter", "importance": {number}}}')
        assert reply
        assert reply.is_error


HALF_A_PAIR = {
    "memory_add": r'{"content": "The walrus \ud83e sleeps"}',
    "memory_search": r'{"query": "walrus \udfff"}',
    "memory_delete": r'{"memory_id": "\ud800"}',
    "docs_ingest": r'{"content": "The walrus \ud83e sleeps", "title": "\udc00"}',
}


@pytest.mark.parametrize(("tool", "arguments"), HALF_A_PAIR.items(), ids=HALF_A_PAIR.keys())
def test_half_of_a_surrogate_pair_gets_an_answer(wire: Wire, tool: str, arguments: str) -> None:
    """A model that is cut off in the middle of an emoji sends one, and JSON can say it."""
    reply = wire.call(tool, arguments, seconds=2)
    assert reply is not None, "no answer: the client waits until its time is up"
    if reply.is_error:
        assert_a_sentence(reply.text)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "walrus",
        "{",
        '{"jsonrpc": "2.0"}',
        "[]",
        "null",
        "[" * 100_000,
        '{"jsonrpc": "2.0", "id": 1}',
        "\0",
    ],
    ids=["empty", "a word", "half", "no method", "a list", "null", "deep", "no request", "NUL"],
)
def test_a_line_that_is_no_request_does_not_stop_the_server(wire: Wire, line: str) -> None:
    wire.write(line)
    reply = wire.call("memory_search", '{"query": "unicorn"}')
    assert reply == Reply(NOTHING, is_error=False)


def test_a_server_forgets_what_it_learned_of_a_store_that_was_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_HOME", str(tmp_path))
    with tool_context.store() as (_, now):
        before = tool_context.index()
    made = backup.make(str(tmp_path), now)
    with tool_context.store():
        assert tool_context.index() is before
    recovery.restore(str(tmp_path), made.path, now)
    with tool_context.store():
        assert tool_context.index() is not before  # rows and vectors have other numbers there
    tool_context._kept_open.clear()
    tool_context._indexes.clear()
