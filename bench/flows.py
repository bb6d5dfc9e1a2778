"""How much of the code one has to know to follow a flow: modules and functions of backstory that it crosses.

Each flow runs in a process and a store of its own under `sys.setprofile`: the drain as the first one in a
new store, the brief after it, the other ones after they ran once. A module counts where it is loaded or a
function of it is called, a function once, however often it is called; until Python 3.12 that is also a
comprehension. A change of room is a call from one folder of the package to another.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import report
from rich.console import Console
from rich.table import Table

import backstory

PACKAGE = os.path.dirname(os.path.abspath(backstory.__file__)) + os.sep
QUERY = "jobs run twice in the queue"
Traced = Callable[[], object]


class Tracer:
    """What was called while it was on, in this thread."""

    def __init__(self) -> None:
        self.codes: dict[CodeType, str] = {}  # with the module
        self.changes = 0

    def __enter__(self) -> Tracer:
        sys.setprofile(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _called(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(PACKAGE):
            return
        self.codes[frame.f_code] = frame.f_code.co_filename[len(PACKAGE) :]
        caller = frame.f_back
        while caller and not caller.f_code.co_filename.startswith(PACKAGE):
            caller = caller.f_back
        if caller and _room(caller) != _room(frame):
            self.changes += 1

    def figures(self) -> dict[str, Any]:
        called = inspect.CO_NEWLOCALS  # neither a module nor the body of a class
        functions = {
            f"{module}:{code.co_qualname}" for code, module in self.codes.items() if code.co_flags & called
        }
        return {
            "modules": len(set(self.codes.values())),
            "functions": len(functions),
            "changes_of_room": self.changes,
            "crossed": sorted(functions),
        }


def _room(frame: FrameType) -> str:
    return frame.f_code.co_filename[len(PACKAGE) :].rpartition(os.sep)[0].partition(os.sep)[0]


class Desk:
    """A data folder and a small repository, in which one session has worked."""

    def __init__(self, folder: str) -> None:
        self.archive = os.path.join(folder, "export.jsonl")
        self.data, self.project = os.path.join(folder, "data"), os.path.join(folder, "project")
        self.sessions = 0
        for name in ("new", "tmp"):  # as hook.sh makes them
            os.makedirs(os.path.join(self.data, "spool", name))
        os.makedirs(os.path.join(self.project, "src"))
        for name, text in FILES.items():
            with open(os.path.join(self.project, name), "w", encoding="utf-8") as file:
                file.write(text)
        git = ["git", "-c", "user.name=Bench", "-c", "user.email=bench@example.com"]
        for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "Begin"]):
            subprocess.run([*git, *command], cwd=self.project, check=True, capture_output=True)
        os.chdir(self.project)

    def happens(self) -> None:
        """A turn, as its hooks leave it in the spool."""
        self.sessions += 1
        new = os.path.join(self.data, "spool", "new")
        path = os.path.join(self.project, "src", "queue.py")
        use = {
            "tool_name": "Edit",
            "tool_use_id": f"toolu_{self.sessions}",
            "tool_input": {"file_path": path, "old_string": "= 3", "new_string": "= 5"},
            "tool_response": {"filePath": path},
        }
        answer = "The lease is five minutes now, because retries came too early. Shall I add a test?"
        events: tuple[tuple[str, dict[str, Any]], ...] = (
            ("UserPromptSubmit", {"prompt": f"Why do jobs of the queue run twice? ({self.sessions})"}),
            ("PostToolUse", use),
            ("Stop", {"stop_hook_active": False, "last_assistant_message": answer}),
        )
        for number, (name, more) in enumerate(events):
            payload = {
                "session_id": f"session-{self.sessions}",
                "transcript_path": "",
                "cwd": self.project,
                "hook_event_name": name,
                **more,
            }
            with open(os.path.join(new, f"{self.sessions:04}-{number}"), "w", encoding="utf-8") as file:
                json.dump(payload, file)

    def works(self) -> None:
        self.happens()
        self.stop()

    def start(self) -> None:
        from backstory.surfaces import hook

        payload = {
            "session_id": f"session-{self.sessions + 1}",
            "cwd": self.project,
            "hook_event_name": "SessionStart",
            "source": "startup",
        }
        hook.begin(self.data, json.dumps(payload).encode())

    def stop(self) -> None:
        from backstory.surfaces import hook

        hook._spawn = lambda *_: None  # what it starts is no part of the flow
        hook.go_on(self.data, turn_ended=True)

    def command(self, *words: str) -> None:
        from backstory.surfaces.cli.main import cli

        cli(list(words), standalone_mode=False)


FILES = {
    "README.md": "# Queue\n\nA small job queue.\n\n    pip install -e .\n    pytest\n",
    "pyproject.toml": '[project]\nname = "queue"\n\n[tool.pytest.ini_options]\naddopts = "-q"\n',
    "Makefile": "test:\n\tpytest\n",
    "src/queue.py": "LEASE = 3\n\n\ndef claim(jobs):\n    return jobs.pop()\n",
    "src/worker.py": "from queue import claim\n\n\ndef work(jobs):\n    return claim(jobs)\n",
    "src/test_queue.py": "from queue import claim\n\n\ndef test_claim():\n    assert claim([1]) == 1\n",
}


# --- the flows: what each needs beforehand, and what is traced ----------------------------------------------


def drain(desk: Desk) -> Traced:
    desk.happens()
    return desk.stop


def brief(desk: Desk) -> Traced:
    desk.works()
    return desk.start


def search(desk: Desk) -> Traced:
    from backstory.surfaces.mcp import memory

    desk.works()
    memory.memory_search(QUERY)
    return lambda: memory.memory_search(QUERY)


def forget(desk: Desk) -> Traced:
    desk.works()
    desk.command("forget", "--match", "queue", "--dry-run")
    return lambda: desk.command("forget", "--match", "queue", "--yes")


def export(desk: Desk) -> Traced:
    desk.works()
    desk.command("export", desk.archive)
    return lambda: desk.command("export", desk.archive, "--force")


def import_(desk: Desk) -> Traced:
    desk.works()
    desk.command("export", desk.archive)
    os.environ["BACKSTORY_HOME"] += "-other"
    desk.command("status")
    return lambda: desk.command("import", desk.archive)


def view(desk: Desk) -> Traced:
    from backstory.surfaces.mcp import docmem

    desk.works()
    docmem.docmem_create("guide")
    docmem.docmem_create("other")
    docmem.docmem_view("add", "other")
    return lambda: docmem.docmem_view("add", "guide")


def init(desk: Desk) -> Traced:
    desk.works()
    desk.command("init", "--dry-run")
    return lambda: desk.command("init", "--yes")


# (flow, what an inspection counted, what it should be): modules / functions.
FLOWS = {
    "three events drained": (drain, "62 / 400", "45 / 280"),
    "the next brief": (brief, "30 / 207", "20 / 130"),
    "memory_search, warm": (search, "42 / 282", "25 / 170"),
    "forget --match": (forget, "19 / 124", "14 / 80"),
    "export of seven lines": (export, "22", "15"),
    "import of seven lines": (import_, "27", "18"),
    "docmem_view add": (view, "29 / 207", "20 / 120"),
    "init in a repository of six files": (init, "83 / 661", "40 / 300"),
}


def child(name: str, folder: str) -> None:
    """Trace one flow; its figures go to stdout, what the flow prints does not."""
    desk = Desk(folder)
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):
        flow = FLOWS[name][0](desk)
        with Tracer() as tracer:
            flow()
    json.dump(tracer.figures(), sys.stdout)


def main() -> int:
    parser = report.options(__doc__)
    parser.add_argument("--flow", action="append", choices=FLOWS, help="only this one; may be repeated")
    parser.add_argument("--crossed", action="store_true", help="name every function as well")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.flow[0], options.child)
        return 0
    rows = {name: _traced(name) for name in options.flow or FLOWS}
    if not options.crossed:
        for row in rows.values():
            row.pop("crossed", None)
    figures = {"flows": rows}
    return report.tell("flows", options, figures, [], lambda console: _show(console, rows))


def _traced(name: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="backstory-bench-", ignore_cleanup_errors=True) as folder:
        env = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.path.dirname(PACKAGE.rstrip(os.sep)),
            "HOME": folder,
            "BACKSTORY_HOME": os.path.join(folder, "work", "data"),
            "BACKSTORY_SYNTHESIZER": "off",
            "BACKSTORY_CLAUDE_MD_PRACTICES_URL": "",
            "CLAUDE_PROJECT_DIR": os.path.join(folder, "work", "project"),
            "CLAUDE_CODE_SESSION_ID": "session-0",
        }
        command = [sys.executable, __file__, "--flow", name, "--child", os.path.join(folder, "work")]
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout))


def _show(console: Console, rows: dict[str, dict[str, Any]]) -> None:
    table = Table("flow", "modules", "functions", "changes of room", "was", "should be")
    for name, row in rows.items():
        measured = [str(row[figure]) for figure in ("modules", "functions", "changes_of_room")]
        table.add_row(name, *measured, *FLOWS[name][1:])
    console.print(table)
    for name, row in rows.items():
        for function in row.get("crossed", ()):
            console.print(f"{name}: {function}", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
