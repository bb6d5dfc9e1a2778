"""How long Claude Code waits for a hook, as ratios to an empty shell measured in the same run.

Every round runs each case once, in a new order, so that whatever else the machine does hits all of them
alike. A hook's time is from its start to its exit with the payload fed through a pipe, as the client does it;
the drain that a prompt leaves behind in the background is waited for outside the timed part. The end of a
turn is measured in an initialised project after a turn without tools, after one that only looked around,
after an edit that is still in the spool, and with files pending that the model was told of: all of that with
`claude_md.on_stop = agent`, where Python may be waited for; and after an edit as it is by default.

What asks the memory server is measured with a real one, that has a store of 100,000 memories: a session's
first prompt, which is told what an earlier session knows about it, and files of which something or nothing is
known. The store is that of brief_latency.py, kept in the temporary folder for the next run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass

import report
from report import Budget
from rich.console import Console
from rich.table import Table

from backstory import dirty, paths
from backstory.store import life, turns
from backstory.store.file.connection import connect
from backstory.surfaces import asking
from backstory.surfaces.cli import install

SIZES = (2_000, 1_000_000)
BASELINE, BARE_PYTHON = "empty shell", "python -I -S"
WITNESS = 9  # a descriptor that everything started by a hook inherits: it closes when the last one is gone
TURN = 20  # events in one session
LIMIT = 3.0  # every budget of a hook is three times something
LOOKS = 10  # tool uses of a turn that changed nothing: they wait in the spool, so there is work
PENDING = 20  # files that the model was told of
SAID = b'{"decision": "block"'
MEMORIES = 100_000
KNOWN = 5_000  # files of which something is known
RECALLED, TOLD_OF_A_FILE = "prompt: recalled", "file: known"
RECALL_MS, RECALL_LIMIT = 60.0, 5.0  # the second, times a bare Python
SERVER_SECONDS = 120.0  # to be ready
IDLE = 0.05  # of a second that it works
WARM = 5  # prompts before the first that counts
PROMPT = 100  # characters


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    command: list[str]
    env: dict[str, str]
    event: str = "PostToolUse"
    prepare: Callable[[], None] = _nothing
    speaks: bool | None = False  # it blocks the end of the turn; None: it may say what it likes
    payload: bytes | None = None  # instead of one of each size


@dataclass(frozen=True, slots=True)
class Row:
    case: str
    payload_bytes: int
    p50_ms: float
    p95_ms: float
    ratio: float  # of the p50 to the empty shell's with the same payload
    settled_p50_ms: float  # until everything it started is gone as well


def main() -> int:
    options = _options()
    with _own_folder() as folder, _asking(folder, options) as asked:
        cases = [*_cases(folder), *asked]
        if options.cases:
            unknown = set(options.cases) - {case.name for case in cases}
            if unknown:
                raise SystemExit(f"no such case: {', '.join(sorted(unknown))}")
            cases = [case for case in cases if case.name in (BASELINE, BARE_PYTHON, *options.cases)]
        times = {(case.name, size): _Times() for case in cases for size in _sizes(case)}
        _measure(cases, times, options.samples, _Payloads(folder))
    rows = _rows(times)
    figures = {
        "samples": options.samples,
        "memories": options.memories,
        "rows": [asdict(row) for row in rows],
    }
    return report.tell(
        "hook_latency",
        options,
        figures,
        _budgets(rows),
        lambda console: _show(console, rows, options.samples),
    )


def _own_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="backstory-bench-", ignore_cleanup_errors=True)


def _options() -> argparse.Namespace:
    parser = report.options(__doc__)
    parser.add_argument("--samples", type=int, default=120, help="of each case and payload size [120]")
    parser.add_argument("--cases", nargs="+", metavar="NAME", help="only these, and their baselines")
    parser.add_argument(
        "--memories", type=int, default=MEMORIES, help="that the server has [100000]; 0: no server"
    )
    parser.add_argument("--fresh", action="store_true", help="fill the store anew")
    parser.add_argument("--dir", help="where the store is [the system's temporary folder]")
    return parser.parse_args()


def _sizes(case: Case) -> tuple[int, ...]:
    return SIZES if case.payload is None else SIZES[:1]


def _cases(folder: str) -> list[Case]:
    """Everything runs from a plugin laid out for this run, with an interpreter that is no shim."""
    python = os.path.realpath(sys.executable)
    root = os.path.join(folder, "plugin")
    install.lay_out(root)
    with open(os.path.join(root, "interpreter"), "w", encoding="utf-8") as file:
        file.write(python + "\n")
    hook = os.path.join(root, "src", "backstory", "plugin", "hooks", "hook.sh")
    env = {
        "PATH": os.environ["PATH"],
        "HOME": folder,
        "BACKSTORY_HOME": os.path.join(folder, "data"),
        "BACKSTORY_SYNTHESIZER": "local",
        "BACKSTORY_WORKER_IDLE_SECONDS": "0",  # the worker that a hook starts is waited for as well
    }
    cases = [
        Case(BASELINE, ["sh", "-c", "cat >/dev/null"], env),
        Case("capture", ["sh", hook], env),
        Case("prompt", ["sh", hook, "prompt"], env, "UserPromptSubmit"),
        Case("stop", ["sh", hook, "stop"], env, "Stop"),
        *_stops(hook, env, folder),
        Case("inert", ["sh", hook, "drain"], {**env, "BACKSTORY_WORKER": "1"}),
        Case(BARE_PYTHON, [python, "-I", "-S", "-c", "pass"], env),
        Case("python", [python, "-c", "pass"], env),
    ]
    if node := shutil.which("node"):
        cases.append(Case("node", [node, "-e", "0"], env))
    return cases


def _stops(hook: str, env: dict[str, str], folder: str) -> list[Case]:
    """The ends of turns in a project that is initialised."""
    root = os.path.join(os.path.realpath(folder), "project")
    os.makedirs(os.path.join(root, ".git"))
    data = env["BACKSTORY_HOME"]
    by_default = {**env, "CLAUDE_PROJECT_DIR": root, "BACKSTORY_SYNTHESIZER": "off"}  # no worker to wait for
    env = {**by_default, "BACKSTORY_CLAUDE_MD_ON_STOP": "agent"}

    def put(tool: str, field: str, number: int) -> None:
        name = uuid.uuid4().hex
        payload = {
            "session_id": f"turn-{name}",
            "cwd": root,
            "hook_event_name": "PostToolUse",
            "tool_use_id": name,
            "tool_name": tool,
            "tool_input": {field: f"{root}/src/module_{number}.py", "old_string": "a", "new_string": "b"},
            "tool_response": {"filePath": f"{root}/src/module_{number}.py", "content": "a line\n" * 250},
        }
        os.makedirs(os.path.join(data, "spool", "new"), exist_ok=True)
        with open(os.path.join(data, "spool", "new", name), "w", encoding="utf-8") as file:
            json.dump(payload, file)

    def nothing() -> None:
        dirty.create(root)
        dirty.remove(root, data, dirty.read(root))

    def looked_around() -> None:
        nothing()
        for number in range(LOOKS):
            put("Read", "file_path", number)

    def edited() -> None:
        nothing()
        put("Edit", "file_path", 0)

    def pending() -> None:
        nothing()
        dirty.append(root, [f"{root}/src/module_{number}.py" for number in range(PENDING)])
        dirty.announce(root, data, [])

    stop = ["sh", hook, "stop"]
    return [
        Case("stop: no tool used", stop, env, "Stop", nothing),
        Case("stop: nothing changed", stop, env, "Stop", looked_around),
        Case("stop: a new edit", stop, env, "Stop", edited, speaks=True),
        Case("stop: files pending", stop, env, "Stop", pending),
        Case("stop: a new edit, auto", stop, by_default, "Stop", edited),
    ]


@contextmanager
def _asking(folder: str, options: argparse.Namespace) -> Iterator[list[Case]]:
    """Hooks that ask a memory server, while it runs."""
    if not options.memories:
        yield []
        return
    from brief_latency import _copy, _env, _kept, _plugin

    python = os.path.realpath(sys.executable)
    hook = _plugin(os.path.join(folder, "asking"), python)
    store = _copy(_kept(options.memories, options), folder)
    with closing(connect(paths.database(store.home))) as db:
        life.prune(db, int(time.time() * 1000))  # there is much in a store that nobody used so far
        prompt = next(turn.asked for turn in turns.of_session(db, store.last_session or ""))
    known = [f"{store.project}/src/known_{number}.py" for number in range(KNOWN)]
    os.makedirs(os.path.join(store.home, "known"))
    for name, lines in (("files", known), ("tests", [f"test_known_{number}" for number in range(500)])):
        with open(os.path.join(store.home, "known", name), "w", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in lines))
    # What is told at a prompt is found by its words: no vectors, that the server would be busy making.
    env = {**_env(store), "CLAUDE_PROJECT_DIR": store.project, "BACKSTORY_EMBEDDER": "off"}

    def a_new_session() -> None:
        env["CLAUDE_CODE_SESSION_ID"] = f"bench-{uuid.uuid4().hex}"

    def payload(event: str, **fields: object) -> bytes:
        said = {"session_id": "bench-asking", "cwd": store.project, "hook_event_name": event, **fields}
        return json.dumps(said).encode()

    def use(tool: str, **given: object) -> bytes:
        server = {"name": "plugin:backstory:memory", "source": "plugin"}
        return payload("PreToolUse", tool_name=tool, tool_input=given, mcp_server=server)

    filler = "The quick brown fox jumps over the lazy dog.\n" * (SIZES[0] // 45)
    read, error = use("Read", file_path=f"{store.project}/src/module_1.py"), f"Exit code 1\n{filler}"
    search = use("mcp__plugin_backstory_memory__memory_search", query="x")
    failed = payload("PostToolUseFailure", tool_name="Bash", tool_input={"command": "make"}, error=error)
    given = {
        RECALLED: ("prompt", payload("UserPromptSubmit", prompt_id="p", prompt=prompt[:PROMPT])),
        f"{RECALLED}, long": ("prompt", payload("UserPromptSubmit", prompt_id="p", prompt=prompt)),
        "file: unknown": ("file", read),
        TOLD_OF_A_FILE: ("file", use("Read", file_path=known[-1])),
        "failure: unknown": ("failure", failed),
        "permission": ("allow", search),
    }
    with _server(env, store.home, store.project):
        said = b""
        for _ in range(WARM):
            a_new_session()
            said += subprocess.run(
                ["sh", hook, "prompt"], input=given[RECALLED][1], env=env, capture_output=True, check=True
            ).stdout
            time.sleep(1)  # for the drain, which nobody waits for
        if options.memories == MEMORIES and b"additionalContext" not in said:
            raise SystemExit("the prompt was told nothing, so its time means nothing; fill the store --fresh")
        yield [
            Case(name, ["sh", hook, mode], env, prepare=a_new_session, speaks=None, payload=raw)
            for name, (mode, raw) in given.items()
        ]


@contextmanager
def _server(env: dict[str, str], home: str, project: str) -> Iterator[None]:
    """A memory server as a client starts it, once it listens."""
    command = [sys.executable, "-E", "-P", "-m", "backstory", "mcp"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=env, cwd=project) as server:
        assert server.stdin and server.stdout
        about = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "b", "version": "0"},
        }
        for message in (
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        ):
            server.stdin.write(json.dumps(message).encode() + b"\n")
            server.stdin.flush()
        deadline = time.monotonic() + SERVER_SECONDS
        while not asking.servers(home, project, str(os.getpid())):
            if time.monotonic() > deadline or server.poll() is not None:
                raise SystemExit("the memory server does not listen")
            time.sleep(0.1)
        before = -1.0
        while (now := _processor_seconds(server.pid)) - before > IDLE:  # vectors are made
            before = now
            time.sleep(1)
        yield
        server.stdin.close()


def _processor_seconds(pid: int) -> float:
    with open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class _Times:
    def __init__(self) -> None:
        self.exited: list[float] = []
        self.settled: list[float] = []


class _Payloads:
    """Payloads of a given size, each with ids of its own: a known one would be no work for the drain."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._number = 0

    def make(self, event: str, size: int) -> bytes:
        self._number += 1
        payload: dict[str, object] = {
            "session_id": f"bench-{self._number // TURN}",
            "cwd": self._folder,
            "hook_event_name": event,
        }
        filler = "The quick brown fox jumps over the lazy dog.\n" * (size // 45)
        if event == "PostToolUse":
            payload["tool_use_id"] = f"toolu_{self._number}"
            payload["tool_name"] = "Bash"
            payload["tool_input"] = {"command": "make test", "description": "run the tests"}
            payload["tool_response"] = {"stdout": filler, "stderr": "", "interrupted": False}
        elif event == "UserPromptSubmit":
            payload["prompt_id"] = f"prompt_{self._number}"
            payload["prompt"] = filler
        else:
            payload["last_assistant_message"] = filler
        return json.dumps(payload).encode()


def _measure(
    cases: list[Case], times: dict[tuple[str, int], _Times], samples: int, payloads: _Payloads
) -> None:
    order = [(case, size) for case in cases for size in _sizes(case)]
    shuffle = random.Random(0)  # noqa: S311 - the same order in every run
    for sample in range(-2, samples):  # two rounds to warm up: compiled files, the store, the page cache
        shuffle.shuffle(order)
        for case, size in order:
            exited, settled = _run(case, case.payload or payloads.make(case.event, size))
            if sample >= 0:
                times[case.name, size].exited.append(exited)
                times[case.name, size].settled.append(settled)


def _run(case: Case, payload: bytes) -> tuple[float, float]:
    """(milliseconds until it exited, until everything it started was gone)."""
    case.prepare()
    stdin, feed = os.pipe()
    witness, held = os.pipe()
    quiet = os.open(os.devnull, os.O_WRONLY)
    heard, said = os.pipe()
    program = shutil.which(case.command[0]) or case.command[0]
    actions = [
        (os.POSIX_SPAWN_DUP2, stdin, 0),
        (os.POSIX_SPAWN_DUP2, said, 1),
        (os.POSIX_SPAWN_DUP2, quiet, 2),
        (os.POSIX_SPAWN_DUP2, held, WITNESS),  # last: one of those above may have that number
    ]
    started = time.perf_counter()
    child = os.posix_spawn(program, case.command, case.env, file_actions=actions)
    for handle in (stdin, held, quiet, said):
        os.close(handle)
    _feed(feed, payload)
    _, status = os.waitpid(child, 0)
    exited = time.perf_counter()
    os.read(witness, 1)  # end of file
    settled = time.perf_counter()
    output = os.read(heard, len(SAID))
    for handle in (witness, heard):
        os.close(handle)
    if status:
        raise SystemExit(f"{' '.join(case.command)} ended with status {status}")
    if case.speaks is not None and output != (SAID if case.speaks else b""):
        raise SystemExit(f"{case.name}: said {output!r}, so its time means nothing")
    return (exited - started) * 1000, (settled - started) * 1000


def _feed(feed: int, payload: bytes) -> None:
    try:
        rest = memoryview(payload)
        while rest:
            rest = rest[os.write(feed, rest) :]
    except BrokenPipeError:
        pass  # an interpreter that does nothing does not read either
    finally:
        os.close(feed)


def _rows(times: dict[tuple[str, int], _Times]) -> list[Row]:
    rows = []
    for (case, size), found in times.items():
        p50, p95 = report.middle(found.exited, 3)
        baseline = statistics.median(times[BASELINE, size].exited)
        rows.append(
            Row(
                case=case,
                payload_bytes=size,
                p50_ms=p50,
                p95_ms=p95,
                ratio=round(p50 / baseline, 2),
                settled_p50_ms=round(statistics.median(found.settled), 3),
            )
        )
    return sorted(rows, key=lambda row: row.payload_bytes)


def _budgets(rows: list[Row]) -> list[Budget]:
    p50 = {(row.case, row.payload_bytes): row.p50_ms for row in rows}
    wanted = [
        ("capture / empty shell", "capture", BASELINE),
        ("inert hook / empty shell", "inert", BASELINE),
        ("UserPromptSubmit with work / python -I -S", "prompt", BARE_PYTHON),
        ("Stop with work / python -I -S", "stop", BARE_PYTHON),
        ("Stop with nothing to do / empty shell", "stop: no tool used", BASELINE),
        ("Stop with nothing changed / python -I -S", "stop: nothing changed", BARE_PYTHON),
        ("Stop with a new edit / python -I -S", "stop: a new edit", BARE_PYTHON),
        ("Stop with files pending / python -I -S", "stop: files pending", BARE_PYTHON),
        ("Stop with a new edit by default / python -I -S", "stop: a new edit, auto", BARE_PYTHON),
        ("Read of a file that nothing is known of / empty shell", "file: unknown", BASELINE),
    ]
    budgets = []
    for size in SIZES:
        for name, case, against in wanted:
            if (case, size) not in p50:
                continue
            ratio = round(p50[case, size] / p50[against, size], 2)
            budgets.append(Budget(f"{name}, {_size(size)}", "at most", LIMIT, ratio, "x"))
    size = SIZES[0]
    if recalled := p50.get((RECALLED, size)):
        ratio = round(recalled / p50[BARE_PYTHON, size], 2)
        budgets += [
            Budget("UserPromptSubmit with recall", "below", RECALL_MS, recalled, "ms"),
            Budget("UserPromptSubmit with recall / python -I -S", "below", RECALL_LIMIT, ratio, "x"),
        ]
    return budgets


def _size(size: int) -> str:
    return f"{size // 1_000_000} MB" if size >= 1_000_000 else f"{size // 1_000} KB"


def _show(console: Console, rows: list[Row], samples: int) -> None:
    table = Table("case", "payload", "p50 ms", "p95 ms", "x empty shell", "p50 ms with background")
    for row in rows:
        background = f"{row.settled_p50_ms:.2f}" if row.settled_p50_ms > row.p50_ms * 1.5 else ""
        table.add_row(
            row.case,
            _size(row.payload_bytes),
            f"{row.p50_ms:.2f}",
            f"{row.p95_ms:.2f}",
            f"{row.ratio:.2f}",
            background,
        )
    table.caption = f"{samples} samples each, interleaved"
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
