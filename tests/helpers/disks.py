"""Every command, tool and hook with a data folder on a disk that is full, or that is read-only.

    unshare -rm python disks.py FOLDER PROJECT

The disk is a tmpfs of its own, mounted in the FOLDER. What came of each is printed as JSON. Commands and
tools run in forks of this process: to import them takes longer than what they do.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from backstory.surfaces.cli import doctor, terminal  # noqa: F401  every fork would load them
from backstory.surfaces.cli.main import cli, main
from backstory.surfaces.mcp import listing
from backstory.surfaces.mcp.server import server as tool_server
from tests.conftest import HOOK
from tests.helpers.commands import tool_use

APART = ("mcp ", "claude-md request")  # a server; what carries out another command
CLIENT = '#!/bin/sh\ncase "$*" in --version) echo 2.1.197 ;; *list*) echo "[]" ;; esac\n'


def mount(*options: str) -> None:
    done = subprocess.run(["mount", *options], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.stdout.write(json.dumps({"refused": done.stderr}))
        raise SystemExit


def fill(disk: Path) -> None:
    with open(disk / "ballast", "wb", buffering=0) as ballast:
        try:
            while True:
                ballast.write(bytes(4096))
        except OSError:
            pass


def forked(act: Callable[[], object]) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of what is done in a fork."""
    handles = [os.memfd_create(name) for name in ("out", "err")]
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            for number, handle in enumerate((os.open(os.devnull, os.O_RDONLY), *handles)):
                os.dup2(handle, number)
            act()
        except SystemExit as ended:
            code = int(ended.code or 0)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    out, err = (os.pread(handle, 10**6, 0).decode() for handle in handles)
    for handle in handles:
        os.close(handle)
    return code, out, err


def run(*args: str) -> tuple[int, str, str]:
    def act() -> None:
        sys.argv = ["backstory", *args]
        main()

    return forked(act)


def made(*args: str) -> str:
    code, out, err = run(*args)
    assert code == 0, (args, err)
    return out


def ask(name: str, arguments: dict[str, object]) -> str:
    """What a tool answers."""

    def act() -> None:
        server = tool_server(listing.BOTH)
        try:
            answer = str(asyncio.run(server.call_tool(name, arguments)))
        except Exception as error:  # noqa: BLE001  what a client would be told
            answer = str(error)
        sys.stdout.write(answer)

    return forked(act)[1]


def hook(payload: dict[str, object], *mode: str) -> list[object]:
    ran = subprocess.run(
        ["sh", str(HOOK), *mode], input=json.dumps(payload).encode(), capture_output=True, check=False
    )
    return [ran.returncode, ran.stdout.decode(), ran.stderr.decode()]


def leaves(command: click.Command, names: tuple[str, ...] = ()) -> list[str]:
    if not isinstance(command, click.Group):
        return [" ".join(names)]
    context = click.Context(command)
    inner = [(name, command.get_command(context, name)) for name in command.list_commands(context)]
    return [leaf for name, one in inner if one for leaf in leaves(one, (*names, name))]


def measure(folder: Path, project: Path) -> dict[str, object]:
    disk = folder / "disk"
    disk.mkdir()
    mount("-t", "tmpfs", "-o", "size=6m,mode=700", "none", str(disk))
    os.environ.update(BACKSTORY_HOME=str(disk / "data"), BACKSTORY_EMBEDDER="off")
    os.chdir(project)
    client = folder / "claude"
    client.write_text(CLIENT)
    client.chmod(0o755)
    (project / "go.mod").write_text("module example.org/walrus\n\ngo 1.22\n")
    (project / "guide.md").write_text("# Guide\n\nThe walrus sleeps.\n")
    (project / "commands.md").write_text("- `make`\n")
    (project / "more.md").write_text("# More\n\n" + "The heron stands. " * 3000)

    memories = [json.loads(made("add", f"walrus {number}", "--json"))["id"] for number in range(4)]
    made("init", "--yes", "--offline")
    made("docmem", "import", "guide.md")
    made("docs", "ingest", "guide.md")
    made("forget", memories[3])
    (project / "elsewhere").mkdir()
    (project / "transcripts").mkdir()
    prompt: dict[str, object] = {
        "type": "user",
        "uuid": "u1",
        "sessionId": "s9",
        "cwd": str(project),
        "promptId": "p1",
    }
    prompt |= {"timestamp": "2026-01-05T10:00:00Z", "message": {"role": "user", "content": "a heron?"}}
    (project / "transcripts" / "s9.jsonl").write_text(json.dumps(prompt) + "\n")
    made("add", "a stork", "--project", "elsewhere")
    made("backup", "now")
    seal = json.loads(made("add", "a seal", "--json"))["id"]
    made("export", str(folder / "all.jsonl"))
    made("erase", seal, "--yes")
    hook(tool_use(project, "make"))
    made("sessions")
    document = json.loads(made("docs", "list", "--json"))[0]["id"]
    hook(tool_use(project, "make test"))  # it waits in the spool
    arguments = {
        "add": ["a heron"],
        "backfill": ["--from", "transcripts"],
        "backup restore": ["latest", "--yes"],
        "claude-md section accept": ["build-commands"],
        "claude-md section diff": ["build-commands"],
        "claude-md section get": ["build-commands"],
        "claude-md section keep": ["build-commands"],
        "claude-md section set": ["build-commands", "--file", "commands.md"],
        "config": ["log.level", "debug"],
        "deemphasize": memories[:1],
        "docmem delete": ["guide", "--yes"],
        "docmem expand": ["guide"],
        "docmem export": ["guide"],
        "docmem import": ["more.md"],
        "docmem search": ["walrus"],
        "docmem show": ["guide"],
        "docmem tree": ["guide"],
        "docs ingest": ["more.md"],
        "docs remove": [document],
        "docs search": ["walrus"],
        "docs show": [document],
        "doctor": ["--claude", str(client)],
        "erase": [*memories[2:3], "--yes"],
        "forget": memories[1:2],
        "import": [str(folder / "all.jsonl")],
        "init": ["--yes", "--offline"],
        "install": ["--claude", str(client)],
        "projects attach": ["elsewhere", "--to", "project", "--yes"],
        "projects delete": ["elsewhere", "--yes"],
        "projects merge": ["elsewhere", "project", "--yes"],
        "projects rename": ["project", "walrus"],
        "projects split": ["s1", "--to", "elsewhere", "--yes"],
        "reinforce": memories[:1],
        "restore": memories[3:],
        "search": ["walrus"],
        "sessions": ["s1"],
        "show": memories[:1],
        "slash": ["open"],
        "supersede": memories[:2],
        "sync": ["--all", "--offline"],
        "timeline": memories[:1],
        "uninstall": ["--claude", str(client)],
        "why": memories[:1],
    }
    every = {name: arguments.get(name, []) for name in leaves(cli) if not name.startswith(APART)}
    end: dict[str, object] = {
        "hook_event_name": "SessionEnd",
        "session_id": "s1",
        "cwd": str(project),
        "reason": "other",
    }
    fill(disk)
    full = results(every, end)
    (disk / "ballast").unlink()
    mount("-o", "remount,ro", "none", str(disk))
    return {"full": full, "read-only": results(every, end)}


def results(commands: dict[str, list[str]], payload: dict[str, object]) -> dict[str, object]:
    return {
        "commands": {name: run(*name.split(), *args) for name, args in commands.items()},
        "tools": {
            "memory_search": ask("memory_search", {"query": "walrus"}),
            "memory_add": ask("memory_add", {"content": "a heron"}),
            "docmem_list": ask("docmem_list", {}),
            "docmem_create": ask("docmem_create", {"root_id": "herons"}),
            "docmem_view": ask("docmem_view", {"action": "add", "node_id": "guide"}),
        },
        "hooks": {mode: hook(payload, *filter(None, [mode])) for mode in ("", "prompt", "stop", "end")},
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure(Path(sys.argv[1]), Path(sys.argv[2]))))
