"""MCP servers that are sent anything: every line is answered, in time, and the next one too."""

from __future__ import annotations

import json
import os
import random
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from backstory.errors import BadInput
from backstory.recall.documents import file
from backstory.surfaces.mcp import wire
from tests.helpers.growth import assert_linear
from tests.helpers.mcp_client import Server, Wire, assert_a_sentence, processor_time, serving

PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS = -32700, -32600, -32602
PARAMS = '{"name": "memory_search", "arguments": {"query": "walrus"}}'
DEPTHS = (200, 1_000, 100_000)


def request(params: str = PARAMS, id: str = "7", method: str = '"tools/call"', more: str = "") -> bytes:
    return f'{{"jsonrpc": "2.0", "id": {id}, "method": {method}, "params": {params}{more}}}'.encode()


def arguments(given: str) -> str:
    return f'{{"name": "memory_search", "arguments": {given}}}'


def lists(depth: int) -> str:
    return "[" * depth + "]" * depth


def objects(depth: int) -> str:
    return '{"a": ' * depth + "1" + "}" * depth


# The line, and the id that its answer has: 7, as far as the line says so.
NO_REQUESTS: dict[str, tuple[bytes, int | None]] = {
    "nothing": (b"", None),
    "blanks": (b"  \t ", None),
    "a word": (b"walrus", None),
    "a text": (b'"walrus"', None),
    "a number": (b"5", None),
    "null": (b"null", None),
    "a NUL": (b"\0", None),
    "no UTF-8": (b"\xff\xfe" + request(), 7),
    "a byte order mark": (b"\xef\xbb\xbf" + request(), 7),
    "a NUL in a text": (request().replace(b"walrus", b"wal\0rus"), 7),
    "half a line": (request()[:-9], 7),
    "a comma too many": (request()[:-1] + b",}", 7),
    "two requests": (request() + request(), 7),
    "a batch": (b"[" + request() + b"]", None),
    "an empty batch": (b"[]", None),
    "no version": (b'{"id": 7, "method": "tools/list"}', 7),
    "another version": (request().replace(b"2.0", b"1.0"), 7),
    "a version that is a number": (request().replace(b'"2.0"', b"2.0"), 7),
    "no method": (b'{"jsonrpc": "2.0", "id": 7}', 7),
    "a method that is a number": (request(method="1"), 7),
    "a method that is a list": (request(method='["tools/call"]'), 7),
    "params that are a list": (request("[1]"), 7),
    "params that are a text": (request('"walrus"'), 7),
    "an id that is null": (request(id="null"), None),
    "an id that is a fraction": (request(id="1.5"), None),
    "an id that is true": (request(id="true"), None),
    "an id that is a list": (request(id="[7]"), None),
    "an id that is an object": (request(id="{}"), None),
    "an id of 5,000 digits": (request(id="7" * 5_000), None),
    "a number of 5,000 digits": (request(arguments(f'{{"query": "x", "limit": 1{"0" * 5_000}}}')), 7),
    "a line of 40 MB": (request(arguments(f'{{"query": "{"x" * 40_000_000}"}}')), 7),
    "40 MB of nothing": (b"x" * 40_000_000, None),
    "a million lists": (request(arguments(f'{{"query": [{"[]," * 1_000_000}1]}}')), 7),
    "a million texts": (request(arguments(f'{{"query": [{"``," * 1_000_000}1]}}'.replace("`", '"'))), 7),
}
for depth in DEPTHS:
    NO_REQUESTS |= {
        f"lists {depth:,} deep as an argument": (request(arguments(f'{{"query": {lists(depth)}}}')), 7),
        f"objects {depth:,} deep as an argument": (request(arguments(objects(depth))), 7),
        f"objects {depth:,} deep as params": (request(objects(depth)), 7),
        f"lists {depth:,} deep as params": (request(lists(depth)), 7),
        f"an id {depth:,} deep": (request(id=lists(depth)), None),
        f"{depth:,} brackets that open": (b"[" * depth, None),
        f"the id after params {depth:,} deep": (
            f'{{"method": "tools/call", "params": {objects(depth)}, "jsonrpc": "2.0", "id": 7}}'.encode(),
            7,
        ),
    }

# What is odd and a request all the same.
REQUESTS: dict[str, bytes] = {
    "CRLF": request() + b"\r",
    "a carriage return between two members": request().replace(b', "method"', b',\r"method"'),
    "no UTF-8 in a text": request().replace(b"walrus", b"\xff walrus"),
    "half of a surrogate pair": request().replace(b"walrus", rb"\ud83e walrus"),
    "the id twice": request(id="8", more=', "id": 7'),
    "members that nobody knows": request(more=f', "x": {lists(90)}'),
    "1e999": request(arguments('{"query": "walrus", "limit": 1e999}')),
    "a number of 400 digits": request(arguments(f'{{"query": "walrus", "limit": 1{"0" * 400}}}')),
    "lists 100 deep": request(arguments(f'{{"query": {lists(100)}}}')),
    "a text of 1 MB": request(arguments(f'{{"query": "{"x" * 1_000_000}"}}')),
    "a text full of brackets": request(arguments(f'{{"query": "{"[{," * 5_000}"}}')),
    "no params": b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call"}',
    "a method that nobody knows": request(method='"no/such"'),
    "a notification with an id": request(method='"notifications/initialized"'),
    "arguments that are a list": request(arguments("[1]")),
}


@pytest.fixture(scope="module", params=["memory", "docmem"])
def line(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    folder = tmp_path_factory.mktemp(request.param)
    with Wire(folder / "data", folder, server=request.param, cwd=folder) as line:
        line.shake_hands()
        yield line


@contextmanager
def within_a_second(server: Server | Wire) -> Iterator[None]:
    """Of the server's own time: other processes share the machine."""
    before = processor_time(server.pid)
    yield
    assert processor_time(server.pid) - before < 1


@pytest.mark.slow
def test_a_line_that_is_no_request_is_answered_with_an_error_within_a_second(line: Wire) -> None:
    for name, (sent, id) in NO_REQUESTS.items():
        with within_a_second(line):
            answer = line.answer(sent)
        assert answer is not None, f"no answer to {name}"
        assert answer["id"] == id, name
        assert answer["error"]["code"] in (PARSE_ERROR, INVALID_REQUEST), name
        assert_a_sentence(answer["error"]["message"])
    assert line.answer(request("{}", method='"ping"')) == {"jsonrpc": "2.0", "id": 7, "result": {}}


@pytest.mark.slow
def test_an_odd_request_is_answered_as_any_other(line: Wire) -> None:
    for name, sent in REQUESTS.items():
        answer = line.answer(sent)
        assert answer is not None and answer["id"] == 7, f"no answer to {name}"
    assert line.answer(request("{}", method='"ping"')) == {"jsonrpc": "2.0", "id": 7, "result": {}}


@pytest.mark.slow
def test_what_is_no_request_is_answered_before_the_handshake_and_at_the_very_end(tmp_path: Path) -> None:
    with Wire(tmp_path / "data", tmp_path) as line:
        answer = line.answer(b"walrus")
        assert answer and answer["error"]["code"] == PARSE_ERROR
        answer = line.answer(request())
        assert answer and answer["id"] == 7 and "error" in answer
        line.shake_hands()
        assert line.process.stdin
        line.process.stdin.write(request()[:-9])  # and no newline
        line.process.stdin.close()
        answer = line.heard()
        assert answer and answer["id"] == 7 and answer["error"]["code"] == PARSE_ERROR


GROWING: dict[str, str] = {
    "brackets": "[",
    "objects": '{"a":',
    "quotes": '"',
    "backslashes": '"\\',
    "ids": '{"id":7,',
    "texts": '"",',
    "surrogates": '"\\ud83e',
}


@pytest.mark.parametrize("piece", GROWING.values(), ids=GROWING.keys())
def test_the_time_to_judge_a_line_grows_with_its_length(piece: str) -> None:
    def judge(line: bytes) -> Any:
        return wire.refused(wire.mended(line))

    assert_linear(judge, (piece * 100_000).encode(), (piece * 400_000).encode())


# --- documents that would take minutes ----------------------------------------------------------------------


def ten_megabytes(piece: str) -> str:
    return piece * (9_900_000 // len(piece))


HEADINGS = ten_megabytes("# x\n")
LONG_HEADINGS = ten_megabytes(f"# {'walrus ' * 5}\n")
MANY_PARTS = {
    "headings": HEADINGS,
    "headings with long titles": LONG_HEADINGS,
    "underlined headings": ten_megabytes("x\n=\n"),
    "underlines": ten_megabytes("=\n"),
    "fences": ten_megabytes("```\n"),
    "paragraphs": ten_megabytes("x\n\n"),
    "lines of an old Mac": ten_megabytes("# x\r"),
}


@pytest.mark.parametrize("text", MANY_PARTS.values(), ids=MANY_PARTS.keys())
def test_a_document_of_a_million_parts_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="take in the part that matters"):
        file.check_lines(text)


def test_a_document_of_ten_megabytes_may_have_many_lines_and_rules() -> None:
    file.check_lines(ten_megabytes("The walrus sleeps.\n\n")[: 20 * file.MOST_LINES // 2])
    file.check_lines(ten_megabytes("-" * 200 + "x\n"))


def assert_refused_at_once(server: Server, tool: str, **given: object) -> None:
    with within_a_second(server):
        refusal = server.refusal(tool, **given)
    assert re.search("more than 50,000 headings|may have 500,000; ", refusal), refusal


@pytest.mark.slow
def test_ten_megabytes_of_headings_are_refused_at_once_as_a_document(tmp_path: Path) -> None:
    files = {"a.rst": MANY_PARTS["underlined headings"], "deep.html": ten_megabytes("<div>")}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with serving(tmp_path / "data", tmp_path) as server:
        assert_refused_at_once(server, "docs_ingest", content=HEADINGS)
        for name in files:
            assert_refused_at_once(server, "docs_ingest", path=name)


@pytest.mark.slow
def test_ten_megabytes_of_headings_are_refused_at_once_as_a_tree(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(LONG_HEADINGS)
    with serving(tmp_path / "data", tmp_path, server="docmem", cwd=tmp_path) as server:
        assert_refused_at_once(server, "docmem_import", content=HEADINGS, format="md")
        assert_refused_at_once(server, "docmem_import", path="a.md", format="txt")
        with within_a_second(server):
            assert "no root" in server.refusal("docmem_import", content=HEADINGS, format="toml")
        refusal = server.refusal("docmem_import", content="x" * 10_000_001, format="md")
        assert "10,000,001 characters, one may have 10,000,000" in refusal


# --- calls that nobody would make ---------------------------------------------------------------------------

# Read here: a test has no variables of ours.
CALLS = int(os.environ.get("BACKSTORY_MCP_FUZZ", "200"))  # over both servers
SEED = int(os.environ.get("BACKSTORY_MCP_FUZZ_SEED", "15"))
INSIDES = ("Traceback", "Exception", 'File "', "pydantic", "sqlite3", "site-packages", "Error executing")
TEXTS = [
    "",
    " ",
    "\0",
    "\n\r\t\x1b[2J\x7f",
    "\ud83e",
    "\u202e\u2066\ufeff\u200b",
    "e" + "\u0301" * 500,
    "\U0001f9a6\U000e0041\U0010ffff",
    "\u7fbd\u0645\u0631\u062d\u0628\u0627",
    "'; DROP TABLE memories; --",
    "%' OR 1=1 --",
    '"walrus" OR NEAR(ice* -fish)',
    '(((((((((("',
    "walrus AND OR NOT * ^ : {} [] ()",
    "(a+)+$" + "a" * 5_000 + "!",
    "[" * 5_000,
    "{" * 5_000 + "}",
    '{"a": [1, 2]}',
    "[1, 2]",
    "null",
    "true",
    "-1",
    "1e999",
    "NaN",
    "../../../../../../etc/passwd",
    "/etc/passwd",
    "/dev/zero",
    "/proc/self/environ",
    "~root/.ssh/id_rsa",
    ".git/config",
    "CLAUDE.md",
    "notes.md",
    "a/" * 3_000,
    "x" * 300 + ".md",
    "file:///etc/passwd",
    "http://127.0.0.1:1/",
    "http://[::1]/",
    "http://0x7f.1/",
    "https://user:word@localhost/",
    "http://",
    "mem_doesnotexist",
    "mem_" + "0" * 5_000,
    "zzzzzzzz",
    "</backstory>",
    "<private>",
    "# x\n" * 2_000,
    "```\n~~~\n" * 1_000,
    "[r]\ncontext = 'a:b:c'\ncontent = 'x'",
    "SELECT * FROM nodes",
    "SELECT * FROM memories",
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c",
    "SELECT zeroblob(1000000000), randomblob(1000000000)",
    "SELECT group_concat(text) FROM nodes a, nodes b, nodes c, nodes d, nodes e",
    "ATTACH '/tmp/x' AS y",
    "PRAGMA writable_schema = ON",
    "walrus " * 20_000,
    "x" * 100_001,
]
# What a long text is made of.
PIECES = [
    "x",
    "\n",
    "\u7fbd",
    "The walrus sleeps on the ice.\n",
    "password=hunter2 ",
    "<private>",
    "[a](b) ",
    "# x\ny\n",
    "## A section about the walrus\n\nIt sleeps.\n\n",
    "```\n",
    "- x\n  - y\n",
    "[n]\ncontext = 'a:b:c'\n",
]
OTHERS: list[object] = [
    None,
    True,
    0,
    -1,
    1,
    101,
    2**31,
    2**63,
    -(2**64),
    10**400,
    0.5,
    -0.0,
    1e308,
    float("nan"),
    float("inf"),
    [],
    {},
    ["walrus"],
    [None],
    [[["walrus"]]],
    ["x"] * 3_000,
    {"walrus": {"walrus": [1]}},
]


# Now and then something is there to be found, changed and deleted.
NODE = {"target_id": "notes", "content": "the walrus sleeps", "mode": "append-child"}
CONTEXT = {"context_type": "note", "context_name": "", "context_value": ""}
SENSIBLE: dict[str, list[tuple[str, dict[str, object]]]] = {
    "memory": [
        ("memory_add", {"content": "The walrus sleeps on the ice"}),
        ("memory_add", {"content": "An otter swims"}),
    ],
    "docmem": [("docmem_create", {"root_id": "notes"}), ("docmem_create_node", {**NODE, **CONTEXT})],
}


class Caller:
    """Makes calls up, from a seed: what a tool takes, and one thing or two of it replaced."""

    def __init__(self, seed: int, tools: list[dict[str, Any]]) -> None:
        self.random = random.Random(seed)  # noqa: S311
        self.tools = {tool["name"]: tool["inputSchema"]["properties"] for tool in tools}
        self.fields = sorted({name for properties in self.tools.values() for name in properties})
        self.known: list[str] = []  # ids of what there is

    def call(self) -> tuple[str, dict[str, object]]:
        tool = self.random.choice(sorted(self.tools))
        given = {name: self.sensible(name, schema) for name, schema in self.tools[tool].items()}
        for name in [name for name in given if self.random.random() < 0.05]:
            del given[name]
        if "path" in given and "content" in given:  # one of them, and seldom an address
            del given[self.random.choice(("path", "content"))]
        for name in ("url", "expected_hash"):
            given.pop(name, None)
        number = self.random.randint(0, 99_999)
        if tool in ("docmem_create", "docmem_import"):
            given["root_id"] = f"tree{number}"
        if tool == "docmem_export" and "path" in given:
            given |= {"root_id": "notes", "path": f"new{number}.{given.get('format')}"}
        for _ in range(self.random.choice((0, 0, 1, 1, 2))):
            known = (
                self.fields if self.random.random() < 0.1 or not self.tools[tool] else list(self.tools[tool])
            )
            name = self.random.choice(known)
            given[name] = self.hostile()
        if "content" in self.tools[tool] and self.random.random() < 0.08:
            piece = self.random.choice(PIECES)
            given["content"] = piece * (self.random.choice((100_000, 1_000_000)) // len(piece))
            given.pop("path", None)
        return tool, given

    def sensible(self, name: str, schema: dict[str, Any]) -> object:
        choices = [schema, *schema.get("anyOf", [])]
        listed = next((each["enum"] for each in choices if "enum" in each), None)
        kind = next(each["type"] for each in choices if "type" in each)
        if listed:
            return self.random.choice(listed)
        if name.endswith("id"):
            return self.random.choice(("notes", *self.known[-12:]))
        if name == "path":
            return "notes.md"
        if name == "sql":
            return self.random.choice(("SELECT id, text FROM nodes", "SELECT count(*), parent_id FROM nodes"))
        return {
            "integer": self.random.randint(1, 20),
            "number": self.random.random(),
            "boolean": self.random.random() < 0.2,
            "array": ["walrus"],
        }.get(kind, f"the walrus {self.random.randint(0, 99)} sleeps")

    def hostile(self) -> object:
        return self.random.choice(TEXTS if self.random.random() < 0.6 else OTHERS)

    def learn(self, reply: str) -> None:
        self.known = [*self.known, *re.findall(r"\bmem_\w+|(?<=created )[\w-]{1,24}(?= )", reply)]


@pytest.mark.slow
@pytest.mark.parametrize("server", ["memory", "docmem"])
def test_calls_that_nobody_would_make_are_answered(server: str, tmp_path: Path) -> None:
    """BACKSTORY_MCP_FUZZ=5000 makes as many, BACKSTORY_MCP_FUZZ_SEED chooses others; -s shows the table."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "notes.md").write_text("# Walrus\n\nIt sleeps.\n")
    taken: dict[str, list[tuple[float, str]]] = {}
    refused: Counter[str] = Counter()
    with Wire(tmp_path / "data", project, server=server, cwd=project) as line:
        line.shake_hands()
        listed = line.request("tools/list", "{}")
        assert listed
        caller = Caller(SEED, listed["result"]["tools"])
        for number in range(CALLS // 2):
            tool, given = SENSIBLE[server][number // 2 % 2] if number % 40 < 4 else caller.call()
            shown = f"call {number} of seed {SEED}: {tool} {given!r:.300}"
            began = processor_time(line.pid)
            reply = line.call(tool, json.dumps(given))
            seconds = processor_time(line.pid) - began
            assert reply is not None, f"no answer to {shown}"
            assert seconds < 5, f"{seconds:.1f} s for {shown}"
            taken.setdefault(tool, []).append((seconds, shown))
            refused[tool] += reply.is_error
            for inside in INSIDES:
                assert inside not in reply.text, f"{reply.text[:300]} for {shown}"
            if "[None" not in repr(given):
                assert not re.search(r"\bNone\b", reply.text), f"{reply.text[:300]} for {shown}"
            if reply.is_error:
                assert len(reply.text) < 800, f"{reply.text[:900]} for {shown}"
            if not reply.is_error:
                caller.learn(reply.text)
        assert line.answer(request("{}", method='"ping"')) == {"jsonrpc": "2.0", "id": 7, "result": {}}
    for each in [tmp_path / "data" / "stderr", *(tmp_path / "data").glob("logs/*")]:
        assert "Traceback" not in each.read_text(), each.read_text()[-3_000:]
    print(f"\n{'tool':26}{'calls':>6}{'refused':>8}{'slowest':>9}")  # noqa: T201
    for tool, times in sorted(taken.items()):
        print(f"{tool:26}{len(times):6}{refused[tool]:8}{max(times)[0]:7.2f} s")  # noqa: T201
    print(f"slowest: {max(max(times) for times in taken.values())[1]:.250}")  # noqa: T201
