"""Sessions written down step by step, and what the local synthesizer finds in them."""

# ruff: noqa: E501  what people and programs say is not wrapped

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from backstory.model import Batch, Item, Memory, Observation, Project, Session, Summary
from backstory.store.queue import FINALIZE, MARKS, PROMPT
from backstory.synthesis.local import observe
from tests.helpers.items import item

ROOT = "/home/dev/shop"

PROJECT = Project("p", 1, "shop", ROOT)

RED = "FAILED tests/test_cart.py::test_total - AssertionError: 3 != 4\n1 failed, 5 passed in 0.10s"

GREEN = "6 passed in 0.10s"


class Script:
    """A session, written down step by step."""

    def __init__(self) -> None:
        self.items: list[Item] = []

    def add(self, tool: str, given: dict[str, Any], output: Any) -> Script:
        number = len(self.items) + 1
        self.items.append(item(tool, given, output, id=number, session_id="s", at=number * 1000))
        return self

    def ask(self, prompt: str) -> Script:
        return self.add(PROMPT, {"prompt": prompt}, {})

    def say(self, text: str) -> Script:
        return self.add(FINALIZE, {}, {"last_message": text})

    def bash(self, command: str, stdout: str = "", **more: Any) -> Script:
        return self.add("Bash", {"command": command}, {"stdout": stdout, "stderr": "", **more})

    def fail(self, command: str, error: str) -> Script:
        return self.add("Bash", {"command": command}, {"error": f"Exit code 1\n{error}"})

    def edit(self, file: str, old: str = "old", new: str = "new") -> Script:
        path = f"{ROOT}/{file}"
        return self.add("Edit", {"file_path": path, "old_string": old, "new_string": new}, {"filePath": path})

    def write(self, file: str, content: str = "x = 1\n") -> Script:
        path = f"{ROOT}/{file}"
        return self.add(
            "Write", {"file_path": path, "content": content}, {"type": "create", "filePath": path}
        )

    def read(self, file: str, content: str = "") -> Script:
        path = f"{ROOT}/{file}"
        return self.add(
            "Read", {"file_path": path}, {"type": "text", "file": {"filePath": path, "content": content}}
        )


def session(**changes: Any) -> Session:
    given: dict[str, Any] = {"status": "active", "user_prompt": None, **changes}
    return Session("s", "p", given["status"], 0, 0, None, given["user_prompt"], None, None, None)


def memory(number: int, kind: str, title: str, text: str, files: Sequence[str] = (), of: str = "s") -> Memory:
    return Memory(
        f"m{number}", number, "p", of, kind, "semantic", "project", title, text, (), tuple(files), (), (), None,
        0.6, 0.6, 0, number, None, None,
    )  # fmt: skip


class Store:
    """What would be in the store after some batches: superseded observations are gone."""

    def __init__(self) -> None:
        self.living: dict[str, Observation] = {}
        self.count = 0
        self.summary: Summary | None = None

    def take(
        self, items: Sequence[Item], earlier: Sequence[Item], *, over: bool = False
    ) -> list[Observation]:
        marked = any(item.tool in MARKS for item in items)
        known = [
            memory(int(key[1:]), one.kind, one.title, one.text, one.files) for key, one in self.living.items()
        ]
        batch = Batch(
            session(status="completed" if over else "active"),
            PROJECT,
            tuple(items),
            tuple(earlier),
            self.summary,
            tuple(known),
            marked or over,
        )
        found = observe(batch)
        self.summary = found.summary or self.summary
        for observation in found.observations:
            for old in observation.supersedes:
                self.living.pop(old, None)
            self.count += 1
            self.living[f"m{self.count}"] = observation
        return list(found.observations)


def lived(items: Sequence[Item], cuts: Sequence[int] | None = None) -> Store:
    """The session in batches: cut after each Stop, as in life, or wherever it is said."""
    stops = [place + 1 for place, item in enumerate(items) if item.tool == FINALIZE]
    bounds = sorted({0, *(stops if cuts is None else cuts), len(items)})
    store = Store()
    for start, end in itertools.pairwise(bounds):
        store.take(items[start:end], items[:start])
    return store


def found(script: Script) -> list[Observation]:
    return list(lived(script.items).living.values())


def one(script: Script) -> Observation:
    (observation,) = found(script)
    return observation


def summary_of(script: Script) -> Summary:
    summary = lived(script.items).summary
    assert summary is not None
    return summary
