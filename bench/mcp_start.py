"""What the MCP server costs before it is of any use: seconds until its tools are listed, memory, and tokens
of every request; and whether its tools are in a session's first request.

    start      from `sh backstory.sh mcp` to the answer to tools/list, as Claude Code asks, with 10,000
               memories; each time beside a bare `python3 -c pass`. Then ten searches, and the memory that
               the process holds
    tokens     what of a request of the real Claude Code is ours: tools or their names, instructions, the
               brief; with deferred tools and without, with a tree in the project and without
    terminal   sessions of the real Claude Code at a terminal, with ten MCP servers of others' (Python and
               Node.js) beside ours. A prompt is sent a second after the prompt box is there, and the first
               request has our tools or not

Tokens are characters / 4. `--plugin FOLDER` measures another plugin, with the `backstory` on PATH.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import report
from recall_speed import Place, _place, _resident
from report import Budget
from rich.console import Console
from rich.table import Table

from backstory import paths
from backstory.docmem import tree
from backstory.gist import tokens
from backstory.model import now_ms
from backstory.store import projects
from backstory.store.file.connection import connect, transaction
from backstory.surfaces.cli import install

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tests.helpers.brief import HOUR, Told
from tests.helpers.claude import environment, run
from tests.helpers.claude_terminal import BYPASS, READY, at_terminal
from tests.helpers.scripted_model import ScriptedModel, say, text_of

Json = dict[str, Any]
HERE = Path(__file__).resolve().parent
PARTS = ("start", "tokens", "terminal")
SIZE = 10_000
OURS = "mcp__plugin_backstory_"
SEARCH = f"{OURS}memory__memory_search"
OF_RESOURCES = ("ListMcpResourcesTool", "ReadMcpResourceTool", "ReadMcpResourceDirTool")
OTHERS = 10
AFTER_SECONDS = 1.0  # from the prompt box to the prompt
TYPING_SECONDS = 0.3  # of that; see AtTerminal.type
LEAST_BRIEF = 400  # tokens
START_LIMIT, WEIGHT_LIMIT = 0.45, 110.0  # s, MB
DEFERRED_LIMIT, WHOLE_LIMIT = 900, 2_500  # tokens
FIRST_REQUESTS = 0.95  # of the sessions


def main() -> int:
    options = _options()
    figures: Json = {}
    budgets: list[Budget] = []
    with tempfile.TemporaryDirectory(prefix="backstory-bench-") as folder:
        plugin = Path(options.plugin) if options.plugin else _plugin(folder)
        if "start" in options.parts:
            figures["start"] = _start(plugin, _place(SIZE, options), options.samples)
            budgets += _start_budgets(figures["start"])
        if "tokens" in options.parts:
            figures["tokens"] = _tokens(plugin, Path(folder))
            budgets += _token_budgets(figures["tokens"])
        if "terminal" in options.parts:
            figures["terminal"] = _terminal(plugin, Path(folder), options.sessions, report.console(options))
            share = figures["terminal"]["with_our_tools"] / options.sessions
            budgets.append(Budget("first requests with our tools", "at least", FIRST_REQUESTS, share))
    return report.tell("mcp_start", options, figures, budgets, lambda console: _show(console, figures))


def _options() -> argparse.Namespace:
    parser = report.options(__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="only these")
    parser.add_argument("--samples", type=int, default=20, help="starts [20]")
    parser.add_argument("--sessions", type=int, default=20, help="at the terminal [20]")
    parser.add_argument("--plugin", metavar="FOLDER", help="the root of another plugin")
    parser.add_argument("--fresh", action="store_true", help="fill the store anew")
    parser.add_argument("--dir", help="where the store is kept [the system's temporary folder]")
    return parser.parse_args()


def _plugin(folder: str) -> Path:
    """As `backstory install` lays it out, with an interpreter that is no shim."""
    root = os.path.join(folder, "plugin")
    install.lay_out(root)
    with open(os.path.join(root, "interpreter"), "w", encoding="utf-8") as file:
        file.write(sys.executable + "\n")
    return Path(root)


# --- the start ----------------------------------------------------------------------------------------------


class _Server:
    """A server as Claude Code starts it and asks it."""

    def __init__(self, plugin: Path, place: Place) -> None:
        with open(plugin / "src/backstory/plugin/.mcp.json", encoding="utf-8") as file:
            args = json.load(file)["mcpServers"]["memory"]["args"]
        given = [arg.replace("${CLAUDE_PLUGIN_ROOT}", str(plugin)) for arg in args]
        env = {
            "PATH": os.environ["PATH"],
            "HOME": place.home,
            "BACKSTORY_HOME": place.home,
            "CLAUDE_PROJECT_DIR": place.project,
        }
        self.process = subprocess.Popen(
            ["/bin/sh", *given],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=env,
            cwd=place.project,
        )
        self._number = 0

    def ask(self, method: str, **params: object) -> Json:
        self._number += 1
        self.tell({"id": self._number, "method": method, "params": params})
        assert self.process.stdout
        while True:
            answer: Json = json.loads(self.process.stdout.readline())
            if answer.get("id") == self._number:
                return answer

    def tell(self, message: Json) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def list_tools(self) -> list[Json]:
        who = {"name": "claude-code", "version": "2"}
        self.ask("server/discover")
        self.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=who)
        self.tell({"method": "notifications/initialized"})
        tools: list[Json] = self.ask("tools/list")["result"]["tools"]
        return tools

    def end(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


def _start(plugin: Path, place: Place, samples: int) -> Json:
    """The first round warms the caches up and does not count."""
    starts, pythons, firsts, weights = [], [], [], []
    questions = iter(place.questions)
    for sample in range(-1, samples):
        started = time.perf_counter()
        subprocess.run([os.path.realpath(sys.executable), "-c", "pass"], check=True)
        python = time.perf_counter() - started
        started = time.perf_counter()
        server = _Server(plugin, place)
        assert server.list_tools()
        start = time.perf_counter() - started
        if sample >= 0:
            pythons.append(python)
            starts.append(start)
        if sample < 3:  # each takes seconds
            started = time.perf_counter()
            _search(server, next(questions))
            firsts.append(time.perf_counter() - started)
            for _ in range(9):
                _search(server, next(questions))
            weights.append(_resident(server.process.pid))
        server.end()
    return {
        "samples": samples,
        "tools_list_p50_s": report.middle(starts, 3)[0],
        "tools_list_p95_s": report.middle(starts, 3)[1],
        "bare_python_p50_s": report.middle(pythons, 3)[0],
        "first_search_s": round(statistics.median(firsts), 3),
        **{name: statistics.median(one[name] for one in weights) for name in weights[0]},
    }


def _search(server: _Server, question: str) -> None:
    answer = server.ask("tools/call", name="memory_search", arguments={"query": question})["result"]
    assert not answer.get("isError"), answer


def _start_budgets(start: Json) -> list[Budget]:
    found = [Budget("tools/list after a start, p50", "below", START_LIMIT, start["tools_list_p50_s"], "s")]
    if "server_mb" in start:
        name = f"server after ten searches, {SIZE:,} memories"
        found.append(Budget(name, "below", WEIGHT_LIMIT, start["server_mb"], "MB"))
    return found


# --- tokens -------------------------------------------------------------------------------------------------

PAST = {
    "why does the export of the ledger take minutes?": (
        "The export reads every booking twice, once for the balance and once for the lines. I made it one"
        " pass over an index on (account, day), which takes 4 s for the year. Still open: the PDF is made in"
        " the request; it should go to the queue."
    ),
    "make the invoices' numbers gapless": (
        "Numbers come from a row per year that is locked in the transaction which stores the invoice; a"
        " sequence would leave gaps when a transaction is rolled back. The test with twenty threads passes."
    ),
    "the nightly backup fails on Sundays": (
        "On Sundays the rotation deletes the folder that the backup writes to. The rotation now leaves the"
        " newest alone and runs after the backup. Next: an alert when a backup is older than two days."
    ),
}
KEPT = {
    "note": "The staging bank account is reset every Monday; what was booked there on Sundays is gone.",
    "decision": "Money is kept in cents as integers, because floats lost a cent a day in March's totals.",
    "preference": "Answers to the bookkeepers are in German, with amounts written as 1.234,56 EUR.",
    "discovery": "The bank's sandbox refuses IBANs with spaces; strip them before the call, not in the form.",
    "bugfix": "The VAT of split bookings was rounded per line; it is rounded once, on the sum of a rate.",
}


def _tokens(plugin: Path, folder: Path) -> list[Json]:
    rows = []
    for has_tree in (False, True):
        for is_deferred in (True, False):
            above = folder / f"tokens-{has_tree}-{is_deferred}"
            project = above / "project"
            project.mkdir(parents=True)
            with ScriptedModel(say("good morning")) as model:
                env = _environment(above / "home", model.url)
                env |= {
                    "ENABLE_TOOL_SEARCH": str(is_deferred).lower(),
                    "CLAUDE_CODE_MCP_STARTUP_WAIT_MS": "20000",
                }
                _fill(Path(env["HOME"]) / ".local/share/backstory", project, has_tree=has_tree)
                done = run("what is there to do?", cwd=project, env=env, plugin_dir=plugin)
                assert done.code == 0, done.stderr
                body = next(body for body in model.requests if body.get("tools"))
            rows.append({"deferred": is_deferred, "tree": has_tree, **_ours(body)})
    return rows


def _environment(home: Path, url: str) -> dict[str, str]:
    """As a user has it: without what makes the tests' sessions sure or quick."""
    env = environment(home, url)
    for name in ("CLAUDE_CODE_MCP_STARTUP_WAIT_MS", "BUN_JSC_useDFGJIT"):
        del env[name]
    return {**env, "BACKSTORY_SYNTHESIZER": "off"}


def _fill(data: Path, project: Path, *, has_tree: bool) -> None:
    paths.make_folder(str(data))
    with closing(connect(paths.database(str(data)))) as db:
        told, now = Told(db, str(project)), now_ms()
        with transaction(db):
            for number, (asked, answer) in enumerate(PAST.items(), -len(PAST)):
                told.turn(f"earlier{number}", asked, answer, at=now + number * HOUR)
            for kind, text in KEPT.items():
                told.memory(kind, text, title=text.partition(",")[0], session="earlier-1", at=now - HOUR)
        if has_tree:
            here = projects.at(db, paths.place(str(project)))
            assert here
            tree.create(db, here, root_id="plan", now=now)


def _ours(body: Json) -> Json:
    """Tokens of a request that are ours, by what they are for."""
    texts = [block["text"] for block in body["system"]]
    for message in body["messages"]:
        blocks = message["content"] if isinstance(message["content"], list) else [message["content"]]
        texts += [text_of(block) for block in blocks]
    whole = "\n".join(texts)
    tools = [tool for tool in body["tools"] if tool["name"].startswith(OURS)]
    names = re.findall(rf"^{OURS}\w+$", whole, re.MULTILINE)
    resources = [tool for tool in body["tools"] if tool["name"] in OF_RESOURCES]
    resources += re.findall(rf"^(?:{'|'.join(OF_RESOURCES)})$", whole, re.MULTILINE)
    instructions = re.findall(r"^## plugin:backstory:\w+\n.*?(?=\n\n|\Z)", whole, re.MULTILINE | re.DOTALL)
    briefs = re.findall(r'<backstory source="[^"]*" note=.*?</backstory>', whole, re.DOTALL)
    found = {
        "tools": sum(tokens(json.dumps(tool, ensure_ascii=False, separators=(",", ":"))) for tool in tools),
        "names": sum(tokens(name + "\n") for name in names),
        "instructions": sum(map(tokens, instructions)),
        "brief": sum(map(tokens, briefs)),
    }
    assert found["brief"] >= LEAST_BRIEF, found
    listed = len(tools) + len(names)
    total = sum(found.values())
    return {**found, "total": total, "tools_listed": listed, "client_tools_for_resources": len(resources)}


def _token_budgets(rows: list[Json]) -> list[Budget]:
    found = []
    for row in rows:
        tree_ = "a tree" if row["tree"] else "no tree"
        if row["deferred"]:
            name = f"a request with deferred tools, {tree_}"
            found.append(Budget(name, "at most", DEFERRED_LIMIT, row["total"], "tokens"))
        elif not row["tree"]:
            name = f"a request with all tools, {tree_}"
            found.append(Budget(name, "at most", WHOLE_LIMIT, row["total"], "tokens"))
    return found


# --- at the terminal ----------------------------------------------------------------------------------------


def _terminal(plugin: Path, folder: Path, sessions: int, console: Console) -> Json:
    firsts = []
    for number in range(sessions):
        has_ours, others, seconds = _session(plugin, folder / f"terminal-{number}")
        firsts.append({"ours": has_ours, "others": others, "prompt_box_s": round(seconds, 2)})
        console.print(f"session {number + 1}: {'with' if has_ours else 'WITHOUT'} our tools", highlight=False)
    return {
        "sessions": sessions,
        "other_servers": OTHERS,
        "with_our_tools": sum(one["ours"] for one in firsts),
        "other_servers_in_the_first_request": statistics.mean(one["others"] for one in firsts),
        "prompt_box_p50_s": statistics.median(one["prompt_box_s"] for one in firsts),
        "each": firsts,
    }


def _session(plugin: Path, above: Path) -> tuple[bool, int, float]:
    """Whether the first request has our tools, of how many other servers it has some, and how long it took
    until one could type."""
    project = above / "project"
    project.mkdir(parents=True)
    with ScriptedModel(say("good morning")) as model:
        env = _environment(above / "home", model.url)
        _fill(Path(env["HOME"]) / ".local/share/backstory", project, has_tree=False)
        known = {"mcpServers": {f"other{number}": _other(number) for number in range(OTHERS)}}
        (Path(env["HOME"]) / ".claude.json").write_text(json.dumps(known))
        started = time.monotonic()
        with at_terminal(cwd=project, env=env, plugin_dir=plugin, servers=("memory", "docmem")) as claude:
            claude.wait(lambda: READY[BYPASS] in re.sub(r"\s+", " ", claude.seen))
            seconds = time.monotonic() - started
            time.sleep(AFTER_SECONDS - TYPING_SECONDS)
            claude.type("what is there to do?")
            claude.wait(lambda: any(body.get("tools") for body in model.requests))
            claude.leave()
        body = next(body for body in model.requests if body.get("tools"))
    text = json.dumps(body)
    return SEARCH in text, len(set(re.findall(r"mcp__(other\d+)__tool_0", text))), seconds


def _other(number: int) -> Json:
    if number % 2 and (node := shutil.which("node")):
        return {"command": node, "args": [str(HERE / "other_mcp_server.js")]}
    return {"command": sys.executable, "args": [str(HERE / "other_mcp_server.py")]}


# --- what is told -------------------------------------------------------------------------------------------


def _show(console: Console, figures: Json) -> None:
    for part in ("start", "terminal"):
        if part in figures:
            table = Table(part, "")
            for name, value in figures[part].items():
                if name != "each":
                    table.add_row(name.replace("_", " "), f"{value:,}")
            console.print(table)
    if "tokens" in figures:
        columns = ("tools", "names", "instructions", "brief", "total", "tools_listed")
        table = Table("tokens of a request", *(name.replace("_", " ") for name in columns), "for resources")
        for row in figures["tokens"]:
            name = f"{'deferred' if row['deferred'] else 'all'} tools, {'a' if row['tree'] else 'no'} tree"
            cells = (f"{row[column]:,}" for column in columns)
            table.add_row(name, *cells, str(row["client_tools_for_resources"]))
        console.print(table)


if __name__ == "__main__":
    sys.exit(main())
