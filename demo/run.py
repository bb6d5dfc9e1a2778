"""Replays a recorded Claude Code session through the real hook scripts and shows what was remembered.

Everything happens in a throw-away folder: a store of its own, a project of its own. Nothing here is canned;
what is shown comes out of the store by way of the same commands that you would type.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from typing import Any

from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import TextContent

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SAMPLE = os.path.join(REPOSITORY, "demo", "session.jsonl")
HOOKS = os.path.join(REPOSITORY, "src", "backstory", "plugin", "hooks", "hooks.json")
MEANT = "do we keep addresses in lower case?"
PROJECT = "@PROJECT@"  # stands in the recording where the project's folder was
PATIENCE = 30.0  # seconds for what happens in the background


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", default=SAMPLE, help="a recording: one hook payload a line")
    parser.add_argument("--query", default="why did sign-in fail", help="what to search for")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="backstory-demo-")
    try:
        demo(folder, options.sample, options.query)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def demo(folder: str, sample: str, query: str) -> None:
    project = os.path.join(folder, "shop")
    os.mkdir(project)
    env = {
        name: value for name, value in os.environ.items() if not name.startswith(("BACKSTORY_", "CLAUDE_"))
    }
    env |= {"BACKSTORY_HOME": os.path.join(folder, "data"), "CLAUDE_PLUGIN_ROOT": REPOSITORY}
    env |= {"BACKSTORY_SYNTHESIZER": "local", "BACKSTORY_WORKER_IDLE_SECONDS": "0"}  # no model is asked
    env["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), env.get("PATH", os.defpath)])

    heading("A recorded Claude Code session, replayed through the real hooks")
    with open(sample, encoding="utf-8") as lines:
        payloads = [line.replace(PROJECT, project) for line in lines if line.strip()]
    took = [replay(payload, project, env)[0] for payload in payloads]
    print(f"{len(took)} events captured; a hook took {statistics.median(took):.1f} ms (median)")

    until_observed(project, env)
    heading("What was remembered")
    say(["backstory", "sessions"], project, env)
    for session in dict.fromkeys(str(json.loads(payload)["session_id"]) for payload in payloads):
        say(["backstory", "sessions", session[:8]], project, env)

    heading("What there is to find now, made without a model")
    say(["backstory", "list"], project, env)
    heading("Tool uses are there on request; a token in one was redacted before it was stored")
    say(["backstory", "list", "--kind", "tool", "--limit", "2"], project, env)

    heading("What Claude Code is told when the next session starts")
    for line in begin_another(payloads[0], project, env).splitlines():
        print(textwrap.fill(line, shutil.get_terminal_size().columns, subsequent_indent="    "))

    heading("Later, when somebody asks")
    say(["backstory", "search", query, "--limit", "3"], project, env)
    heading("In other words than it was said, with what the score is made of")
    say(["backstory", "search", MEANT, "--limit", "1", "--explain"], project, env)

    heading("A tree that the model keeps for itself, live in CLAUDE.md")
    asyncio.run(keep_a_tree(project, {**env, "CLAUDE_CODE_SESSION_ID": "another"}))
    say(["backstory", "docmem", "tree"], project, env)

    heading("A CLAUDE.md that stays true")
    keep_it_true(project, env)
    print(f"\nThe store of this demo is gone again. To have it for real: {shown(sys.executable)} install")


def shown(python: str) -> str:
    """The backstory that was installed beside this Python, as one would type it here."""
    return os.path.relpath(os.path.join(os.path.dirname(python), "backstory"))


def until_observed(project: str, env: dict[str, str]) -> None:
    """The worker that the hooks started needs a moment."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        asked = ["backstory", "worker", "--status", "--json"]
        told = subprocess.run(asked, cwd=project, env=env, check=True, capture_output=True).stdout
        if not json.loads(told)["waiting"]:
            return
        time.sleep(0.1)


def begin_another(first: str, project: str, env: dict[str, str]) -> str:
    payload = json.dumps({**json.loads(first), "session_id": "another"})
    return replay(payload, project, env)[1]


async def keep_a_tree(project: str, env: dict[str, str]) -> None:
    """What a model does with the docmem server, done by a client of the same protocol."""
    notes = os.path.join(project, "CLAUDE.md")
    save(notes, "# Shop\n\nRun the tests with pytest.\n")
    how = StdioServerParameters(command="backstory", args=["mcp", "docmem"], env=env, cwd=project)
    async with stdio_client(how) as (read, write), ClientSession(read, write) as client:
        await client.initialize()

        async def call(tool: str, **arguments: object) -> str:
            (block,) = (await client.call_tool(tool, arguments)).content
            assert isinstance(block, TextContent)  # noqa: S101  our tools answer with one text
            reply = block.text.splitlines()[0]
            print(f"  {textwrap.shorten(reply, 100, placeholder=' ...')}", flush=True)
            return reply.split()[2]

        def node(text: str) -> dict[str, object]:
            context = {"context_type": "note", "context_name": "sign-in", "context_value": ""}
            return {"target_id": "shop", "content": text, "mode": "append-child", **context}

        print("\nThe model calls:")
        await call("docmem_create", root_id="shop")
        await call("docmem_create_node", **node("Mail addresses are compared in lower case."))
        open_question = await call("docmem_create_node", **node("Open: do sessions end at midnight?"))
        await call("docmem_view", action="add", node_id="shop")
        say(["cat", "CLAUDE.md"], project, env)
        print("\nThen it learns something:")
        await call("docmem_update_content", id=open_question, content="Sessions end after 30 idle minutes.")
        prompt = {"session_id": "another", "hook_event_name": "UserPromptSubmit", "prompt": "go on"}
        told = replay(json.dumps({**prompt, "cwd": project}), project, env)[1]
        print("\nWith the next prompt Claude Code is told what changed:\n")
        print(json.loads(told)["hookSpecificOutput"]["additionalContext"])
    print("\nThe session is over, and the file is what it was:")
    say(["cat", "CLAUDE.md"], project, env)


def keep_it_true(project: str, env: dict[str, str]) -> None:
    """init writes what a program can know; after a turn that edited a file, it is renewed by itself."""
    makefile, claude_md = (os.path.join(project, name) for name in ("Makefile", "CLAUDE.md"))
    tests = "test:\n\tpytest -q\n"
    save(makefile, tests)
    say(["backstory", "init", "--yes", "--offline"], project, env)
    before = read(claude_md)
    print("\nClaude edits the Makefile, and the turn ends. Nothing is asked of anybody, and a moment later:")
    save(makefile, f"{tests}\nlint:\n\truff check .\n")
    happened = {"session_id": "another", "cwd": project}
    edit = {"tool_name": "Write", "tool_use_id": "t1", "tool_input": {"file_path": makefile}}
    replay(
        json.dumps({**happened, **edit, "hook_event_name": "PostToolUse", "tool_response": {}}), project, env
    )
    stop = {"hook_event_name": "Stop", "stop_hook_active": False, "last_assistant_message": "Done."}
    replay(json.dumps({**happened, **stop}), project, {**env, "CLAUDE_PROJECT_DIR": project})
    until = time.monotonic() + PATIENCE
    while read(claude_md) == before and time.monotonic() < until:
        time.sleep(0.1)
    say(["cat", "CLAUDE.md"], project, env)


def read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def save(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def replay(payload: str, project: str, env: dict[str, str]) -> tuple[float, str]:
    """Run the command that hooks.json names for this event, as Claude Code does; its time in ms, and what it
    printed for the model."""
    event: dict[str, Any] = json.loads(payload)
    with open(HOOKS, encoding="utf-8") as file:
        entries = json.load(file)["hooks"][event["hook_event_name"]]
    command = entries[0]["hooks"][0]["command"]
    started = time.perf_counter()
    ran = subprocess.run(
        ["sh", "-c", command],
        input=payload.encode(),
        cwd=project,
        env=env,
        check=True,
        stdout=subprocess.PIPE,
    )
    return (time.perf_counter() - started) * 1000, ran.stdout.decode()


def say(command: list[str], project: str, env: dict[str, str]) -> None:
    typed = " ".join(f'"{word}"' if " " in word else word for word in command)
    print(f"\n$ {typed}", flush=True)
    subprocess.run(command, cwd=project, env=env, check=False)


def heading(text: str) -> None:
    bold, plain = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")
    print(f"\n{bold}{text}{plain}", flush=True)


if __name__ == "__main__":
    main()
