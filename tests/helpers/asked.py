"""A project with earlier sessions that have something to tell, and a server that listens for hooks."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from backstory.recall.index import Index
from backstory.store.file.connection import Connection
from backstory.store.open import open_store
from backstory.surfaces.mcp.listener import Listener
from tests.helpers.chaos import Json, drain, event, prompt, put, tool_use

ASKED = "How does the walrus parser resolve nested brackets in tusk expressions?"
AGAIN = "does the walrus parser resolve nested brackets in tusk expressions by now"
ANSWER = (
    "The walrus parser keeps a stack of open brackets for each tusk expression. Nested brackets are resolved"
    " when the outermost bracket closes, in resolve_tusks() of walrus/parser.py."
)
TEST = "tests/test_tusks.py::test_nested_brackets_close"
SPOKEN = "The walrus parser keeps a stack"  # of what is told


def now_ms() -> int:
    return int(time.time() * 1000)


def earlier_sessions(data: Path, project: Path, times: int = 1) -> None:
    """One that is about the walrus parser, edited a file and mended a test, and others about other things, so
    many times ten. In few sessions the words of a prompt that several ask at once are common words."""
    edited = {"file_path": f"{project}/walrus/parser.py", "old_string": "a", "new_string": "b"}
    shell = {"tool_name": "Bash", "tool_input": {"command": f"pytest {TEST}"}}
    failed = {"error": f"Exit code 1\nFAILED {TEST} - AssertionError: unclosed", "is_interrupt": False}
    sessions: dict[str, list[Json]] = {
        "walrus": [
            prompt(ASKED),
            event("PostToolUseFailure", tool_use_id="toolu_1", **shell, **failed),
            tool_use("Edit", edited, {"filePath": edited["file_path"]}),
            tool_use("Bash", shell["tool_input"], {"stdout": "1 passed", "stderr": "", "interrupted": False}),
            event("Stop", stop_hook_active=False, last_assistant_message=ANSWER),
            event("SessionEnd", reason="other"),
        ]
    }
    things = "heron stork otter badger lemur gecko ibis tapir okapi quokka".split() * times
    for number, thing in enumerate(things):
        sessions[f"other-{number}"] = [
            prompt(f"please describe the {thing} queue and its {thing} retries"),
            event("Stop", stop_hook_active=False, last_assistant_message=f"The {thing} queue retries twice."),
            event("SessionEnd", reason="other"),
        ]
    at = now_ms() - 3_600_000
    for session, payloads in sessions.items():
        for payload in payloads:
            at += 1_000
            put(data, {**payload, "session_id": session, "cwd": str(project)}, at=at)
    drain(data, now_ms())


def keep_prompt(data: Path, project: Path, session: str, text: str) -> None:
    put(data, {**prompt(text), "session_id": session, "cwd": str(project)}, at=now_ms())
    drain(data, now_ms())


@contextmanager
def listening(
    data: Path, project: Path, client: int | None = None, *, hurried: bool = True
) -> Iterator[Listener]:
    """A server of this project, without the rest of it; one that is not hurried waits for the store however
    many others write."""
    index = Index(None)

    @contextmanager
    def store() -> Iterator[Connection]:
        with open_store(str(data), now=now_ms(), drain=lambda _: None, hurried=hurried) as db:
            yield db

    listener = Listener(str(data), str(project), store, lambda: index, client)
    try:
        yield listener
    finally:
        listener.close()
        listener.thread.join(10)  # the next test has another home


def sockets(data: Path) -> list[str]:
    folder = data / "run"
    return [name for name in os.listdir(folder) if ".sock" in name] if folder.is_dir() else []
