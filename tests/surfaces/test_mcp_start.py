"""How a server starts: what is answered before the mcp package is there, by which of the two, and which tools
a client is told of."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from backstory import paths
from backstory.docmem import tree
from backstory.store import projects
from backstory.store.file.connection import connect, transaction
from backstory.surfaces.mcp import docmem, listing, memory
from backstory.surfaces.mcp.handshake import Handshake
from docs import generate
from tests.helpers.chaos import Json
from tests.helpers.mcp_client import Wire

SERVERS = {"": listing.BOTH, "memory": listing.MEMORY, "docmem": listing.DOCMEM}
MEMORY = [tool.__name__ for tool in memory.tools()]
DOCMEM = [tool.__name__ for tool in docmem.tools()]
WITHOUT_A_TREE = ["docmem_create", "docmem_list", "docmem_import"]
VERSION = "2025-11-25"
CALL = '{"name": "memory_search", "arguments": {"query": "walrus"}}'


def hello(client: str = "claude-code", version: str = VERSION) -> str:
    who = {"name": client, "version": "1"}
    return json.dumps({"protocolVersion": version, "capabilities": {"roots": {}}, "clientInfo": who})


@contextmanager
def started(folder: Path, server: str = "", **how: Any) -> Iterator[Wire]:
    project = folder / "project"
    project.mkdir(parents=True, exist_ok=True)
    with Wire(folder / "data", project, server=server, cwd=project, **how) as wire:
        yield wire


def listed(wire: Wire) -> list[str]:
    answer = wire.request("tools/list", "{}")
    assert answer
    return [tool["name"] for tool in answer["result"]["tools"]]


def shake(wire: Wire, client: str = "claude-code") -> None:
    assert wire.request("initialize", hello(client))
    wire.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}')


def make_a_tree(folder: Path) -> None:
    """As another process does."""
    with closing(connect(str(folder / "data" / "backstory.db"))) as db:
        with transaction(db):
            place = paths.place(str(folder / "project"))
            here = projects.by_id(db, projects.ensure(db, place, 1))
        tree.create(db, here, root_id="plan", now=1)


# --- before the package -------------------------------------------------------------------------------------


def test_what_is_told_without_the_package_is_what_the_package_says() -> None:
    committed = json.loads(Path(listing.FILE).read_text())
    assert committed == generate.told_by_servers(), "run: .venv/bin/python docs/generate.py"


def test_the_first_answers_need_nothing_that_is_slow_to_import() -> None:
    code = "import sys, backstory.__main__, backstory.surfaces.mcp.start; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    slow = "mcp pydantic anyio asyncio numpy click rich dataclasses typing logging importlib.metadata"
    assert not set(slow.split()) & set(ran.stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize(("command", "server"), SERVERS.items())
def test_both_give_the_same_answers(tmp_path: Path, command: str, server: str) -> None:
    """A call before the handshake is for the package, and so is all that comes after it. (Which client it is
    is not asked any more then: it is told of all tools.)"""
    asked = [("ping", "{}"), ("initialize", hello("another")), ("ping", "{}"), ("tools/list", "{}")]
    with started(tmp_path / "a", command) as wire:
        without = [wire.request(*one) for one in asked]
    with started(tmp_path / "b", command) as wire:
        refused = wire.request("tools/call", CALL)
        assert refused and "error" in refused
        package = [wire.request(*one) for one in asked]
    for ours, theirs in zip(without, package, strict=True):
        assert ours and theirs and "result" in ours
        assert ours["result"] == theirs["result"]
    assert without[1] and without[1]["result"]["serverInfo"]["name"] == listing.NAMES[server]


@pytest.mark.slow
@pytest.mark.parametrize("wanted", ["2024-11-05", "2025-06-18", "1999-01-01", "2026-07-28"])
def test_the_version_is_agreed_upon_as_the_package_does_it(tmp_path: Path, wanted: str) -> None:
    with started(tmp_path / "a") as wire:
        ours = wire.request("initialize", hello(version=wanted))
    with started(tmp_path / "b") as wire:
        wire.request("tools/call", CALL)
        theirs = wire.request("initialize", hello(version=wanted))
    assert ours and theirs
    assert ours["result"] == theirs["result"]


@pytest.mark.parametrize("method", ["server/discover", "resources/list", "what/ever", "logging/setLevel"])
def test_an_unknown_method_before_the_handshake_is_refused_at_once(method: str) -> None:
    params = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
    line = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params if "server" in method else {}}
    answer = Handshake(listing.BOTH)._answer(json.dumps(line).encode())
    assert answer == {"id": 1, "error": {"code": -32601, "message": "Method not found", "data": method}}


NOT_OURS: dict[str, object] = {
    "a call": {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "memory_search"}},
    "a list before the handshake": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    "no id": {"jsonrpc": "2.0", "method": "ping"},
    "an id that is null": {"jsonrpc": "2.0", "id": None, "method": "ping"},
    "an id that is true": {"jsonrpc": "2.0", "id": True, "method": "ping"},
    "params that are a list": {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []},
    "no method": {"jsonrpc": "2.0", "id": 1},
    "another version": {"jsonrpc": "1.0", "id": 1, "method": "ping"},
    "a list": [],
    "a hello without a name": {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}},
    "a client that needs no handshake": {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "resources/list",
        "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}},
    },
}


@pytest.mark.parametrize("message", NOT_OURS.values(), ids=NOT_OURS.keys())
def test_what_is_not_plain_is_left_to_the_package(message: object) -> None:
    assert Handshake(listing.BOTH)._answer(json.dumps(message).encode()) is None


@pytest.mark.parametrize("line", [b"{", b"\xff", b"[" * 60_000, b'"\\ud83e"'])
def test_what_cannot_be_read_is_left_to_the_package(line: bytes) -> None:
    assert Handshake(listing.BOTH)._answer(line) is None


@pytest.mark.slow
def test_a_first_line_that_is_long_or_cut_reaches_the_package_whole(tmp_path: Path) -> None:
    with started(tmp_path, "memory") as wire:
        shake(wire)
        long = wire.call("memory_add", json.dumps({"content": "walrus " * 20_000}))
        assert long and "140,000 characters" in long.text
    with started(tmp_path, "memory") as wire:
        assert wire.process.stdin
        shake(wire)
        for part in (b'{"jsonrpc": "2.0", "id": "x", "met', b'hod": "tools/list"}\n'):
            wire.process.stdin.write(part)
            wire.process.stdin.flush()
        answer = wire.heard()
        assert answer and answer["id"] == "x" and len(answer["result"]["tools"]) == 9


@pytest.mark.slow
def test_a_client_that_hangs_up_during_the_handshake_leaves_no_server(tmp_path: Path) -> None:
    with started(tmp_path, cold=True) as wire:
        assert wire.request("initialize", hello())
        assert wire.hang_up() < 5
        assert wire.process.returncode == 0


@pytest.mark.parametrize(("seconds", "more"), [(60, []), (3, [("tools/call", CALL)])])
def test_a_client_that_hangs_up_while_the_package_is_imported_is_not_waited_for(
    tmp_path: Path, seconds: int, more: list[tuple[str, str]]
) -> None:
    script = f"""
import time
from backstory.surfaces.mcp import start
def answer(handshake, ending):
    time.sleep({seconds})
    open("answered", "w").close()
start._imported_serve = lambda: answer
start.serve("backstory")
"""
    sent = [("initialize", hello()), ("tools/list", "{}"), *more]
    lines = [
        f'{{"jsonrpc": "2.0", "id": {n}, "method": "{m}", "params": {p}}}\n' for n, (m, p) in enumerate(sent)
    ]
    env = os.environ | {"BACKSTORY_HOME": str(tmp_path)}
    given = "".join(lines).encode()
    subprocess.run([sys.executable, "-c", script], input=given, env=env, cwd=tmp_path, check=True, timeout=50)
    assert (tmp_path / "answered").exists() is bool(more), "but what it sent before is answered"


def test_the_package_is_imported_without_what_only_takes_memory() -> None:
    script = """
import sys
from backstory.surfaces.mcp import start
start._imported_serve()
loaded = {name.partition(".")[0] for name, module in sys.modules.items() if module}
assert not loaded & {"uvicorn", "rich", "cryptography"}, loaded
from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # a document reader may want it later
assert AESGCM(bytes(32)).encrypt(bytes(12), b"text", None)
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


@pytest.mark.slow
def test_a_state_that_a_client_made_up_is_refused(tmp_path: Path) -> None:
    call = json.dumps({**json.loads(CALL), "requestState": "v1.forged"})
    with started(tmp_path) as wire:
        shake(wire)
        answer = wire.request("tools/call", call)
        assert answer
        assert answer["error"]["message"] == "Invalid or expired requestState"
        assert listed(wire)


@pytest.mark.slow
def test_only_what_there_is_is_promised(tmp_path: Path) -> None:
    for command, server in SERVERS.items():
        with started(tmp_path / server, command) as wire:
            answer = wire.request("initialize", hello())
        assert answer
        assert answer["result"]["capabilities"] == {"tools": {"listChanged": server == listing.BOTH}}


# --- which tools are listed ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_each_server_lists_its_tools(tmp_path: Path) -> None:
    for command, tools in (("memory", MEMORY), ("docmem", DOCMEM), ("", [*MEMORY, *WITHOUT_A_TREE])):
        with started(tmp_path / command, command) as wire:
            shake(wire)
            assert sorted(listed(wire)) == sorted(tools)
    assert len(MEMORY) == 9


@pytest.mark.slow
def test_a_client_that_may_not_ask_again_is_told_of_all_tools(tmp_path: Path) -> None:
    with started(tmp_path) as wire:
        shake(wire, "another")
        assert listed(wire) == [*MEMORY, *DOCMEM]


@pytest.mark.slow
def test_in_a_project_with_a_tree_all_tools_are_listed(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    make_a_tree(tmp_path)
    with started(tmp_path) as wire:
        shake(wire)
        assert listed(wire) == [*MEMORY, *DOCMEM]
    (tmp_path / "project" / "other").mkdir()
    with started(tmp_path, env={"CLAUDE_PROJECT_DIR": str(tmp_path / "project" / "other")}) as wire:
        shake(wire)
        assert len(listed(wire)) == 12


def heard_until(wire: Wire, number: int | None) -> list[Json]:
    """What comes up to the answer to a request; None: to the next notification."""
    said: list[Json] = []
    while not said or said[-1].get("id") != number:  # a notification has none
        message = wire.heard()
        assert message, said
        said.append(message)
    return said


CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


@pytest.mark.slow
@pytest.mark.parametrize("here", [True, False], ids=["created here", "created by another process"])
def test_with_the_first_tree_the_other_tools_come_once(tmp_path: Path, here: bool) -> None:
    def call(number: int, tool: str, **arguments: object) -> list[Json]:
        params = {"name": tool, "arguments": arguments}
        line = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        wire.write(json.dumps(line))
        return heard_until(wire, number)

    with started(tmp_path) as wire:
        shake(wire)
        assert len(listed(wire)) == 12
        assert len(call(100, "memory_search", query="walrus")) == 1
        if not here:
            make_a_tree(tmp_path)
        tool, given = ("docmem_create", {"root_id": "plan"}) if here else ("memory_search", {"query": "x"})
        assert CHANGED in call(101, tool, **given)[:-1], "before the answer: the next request has them"
        assert listed(wire) == [*MEMORY, *DOCMEM]
        assert len(call(102, "docmem_list")) == 1


@pytest.mark.slow
def test_a_client_that_is_told_of_more_tools_has_them_before_the_answer(tmp_path: Path) -> None:
    """Else the model, on a busy machine, calls a tool that its client does not know yet."""
    call = {"name": "docmem_create", "arguments": {"root_id": "plan"}}
    with started(tmp_path) as wire:
        shake(wire)
        listed(wire)
        wire.write(json.dumps({"jsonrpc": "2.0", "id": 100, "method": "tools/call", "params": call}))
        assert heard_until(wire, None) == [CHANGED]
        wire.write(json.dumps({"jsonrpc": "2.0", "id": 101, "method": "tools/list"}))
        assert [message["id"] for message in (*heard_until(wire, 101), *heard_until(wire, 100))] == [101, 100]


@pytest.mark.slow
def test_a_tool_that_is_not_listed_can_be_called(tmp_path: Path) -> None:
    with started(tmp_path) as wire:
        shake(wire)
        assert "docmem_structure" not in listed(wire)
        reply = wire.call("docmem_structure", '{"node_id": "plan"}')
        assert reply and reply.is_error and "docmem_list" in reply.text


@pytest.mark.slow
def test_the_setting_for_other_projects_adds_its_parameter(tmp_path: Path) -> None:
    with started(tmp_path, env={"BACKSTORY_RECALL_EVERYWHERE": "on"}) as wire:
        shake(wire)
        answer = wire.request("tools/list", "{}")
    assert answer
    search = answer["result"]["tools"][0]
    assert search["name"] == "memory_search"
    assert "everywhere" in search["inputSchema"]["properties"]


# --- what a killed server left ------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_a_killed_server_left_is_gone_before_the_first_answer(tmp_path: Path) -> None:
    file = tmp_path / "project" / "CLAUDE.md"
    file.parent.mkdir()
    file.write_text("# Mine\n")
    with started(tmp_path) as wire:
        shake(wire)
        wire.call("docmem_create", '{"root_id": "plan"}')
        wire.call("docmem_view", '{"action": "add", "node_id": "plan"}')
        assert "# DOCMEM Dynamic" in file.read_text()
        wire.kill()
    with started(tmp_path, cold=True) as wire:
        assert wire.request("server/discover", "{}")
        assert file.read_text() == "# Mine\n"


@pytest.mark.slow
def test_a_view_goes_with_its_server(tmp_path: Path) -> None:
    file = tmp_path / "project" / "CLAUDE.md"
    file.parent.mkdir()
    file.write_text("# Mine\n")
    with started(tmp_path) as wire:
        shake(wire)
        wire.call("docmem_create", '{"root_id": "plan"}')
        wire.call("docmem_view", '{"action": "add", "node_id": "plan"}')
        os.kill(wire.pid, 2)
        wire.process.wait(10)
    assert file.read_text() == "# Mine\n"
