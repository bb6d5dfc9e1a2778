"""Sessions written down step by step, and what the local synthesizer finds in them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from backstory.capture.event import read_event
from backstory.intake import turn as events
from backstory.intake.item import item_of
from backstory.memory.turn import Turn
from backstory.model import Batch, Item, Observation, Project, Session, Summary
from backstory.paths import Place
from backstory.store.queue import MARKS
from backstory.synthesis.local import observe
from tests.helpers.chaos import Json, event, prompt, tool_use

ROOT = "/somewhere/project"
PROJECT = Project("p", 1, "shop", ROOT)
PLACE = Place(ROOT, "shop", ROOT, None, None)

RED = "FAILED tests/test_cart.py::test_total - AssertionError: 3 != 4\n1 failed, 5 passed in 0.10s"
GREEN = "6 passed in 0.10s"


class Script:
    """A session, written down step by step: what hooks would be given."""

    def __init__(self) -> None:
        self.payloads: list[Json] = []

    def add(self, payload: Json) -> Script:
        self.payloads.append(payload)
        return self

    def ask(self, text: str) -> Script:
        return self.add(prompt(text))

    def say(self, text: str = "Done.", **fields: object) -> Script:
        return self.add(event("Stop", last_assistant_message=text, **fields))

    def end(self) -> Script:
        return self.add(event("SessionEnd", reason="other"))

    def bash(self, command: str, stdout: str = "") -> Script:
        return self.add(tool_use("Bash", {"command": command}, {"stdout": stdout, "stderr": ""}))

    def fail(self, command: str, error: str) -> Script:
        given = {"tool_name": "Bash", "tool_input": {"command": command}}
        return self.add(event("PostToolUseFailure", **given, error=f"Exit code 1\n{error}"))

    def commit(self, subject: str, sha: str = "1a2b3c4", options: str = "-am") -> Script:
        return self.bash(f"git commit {options} '{subject}'", f"[main {sha}] {subject}\n 1 file changed\n")

    def edit(self, file: str) -> Script:
        path = f"{ROOT}/{file}"
        given = {"file_path": path, "old_string": "old", "new_string": "new"}
        return self.add(tool_use("Edit", given, {"filePath": path}))

    def read(self, file: str) -> Script:
        path = f"{ROOT}/{file}"
        return self.add(
            tool_use("Read", {"file_path": path}, {"type": "text", "file": {"filePath": path, "content": ""}})
        )

    def choose(self, question: str, answer: str) -> Script:
        asked = {"questions": [{"question": question, "options": []}]}
        return self.add(tool_use("AskUserQuestion", asked, {**asked, "answers": {question: answer}}))

    def plan(self, text: str) -> Script:
        return self.add(tool_use("ExitPlanMode", {}, {"plan": text, "isAgent": False}))

    def compact(self, summary: str) -> Script:
        return self.add(event("PostCompact", compact_summary=summary))


class Told:
    """A session as it is stored: items of the queue, and turns."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.turns: list[Turn] = []

    def take(self, payloads: Sequence[Json], first: int) -> None:
        for number, payload in enumerate(payloads, first):
            happened = read_event(json.dumps(payload).encode(), spool_name=f"{number:06}", at=number * 1_000)
            latest = self.turns[-1] if self.turns else None
            turn = events.turn_of(latest, happened, PLACE)
            if turn is not None:
                events.add(turn, happened, PLACE)
                if turn is not latest:
                    turn.id = f"turn{len(self.turns)}"
                    self.turns.append(turn)
            if queued := item_of(happened):
                tool, given, output = queued[0], json.loads(queued[1]), json.loads(queued[2])
                action = happened.use.action if happened.use else None
                self.items.append(Item(number, "s", tool, given, output, happened.at, None, action))


def session(**changes: Any) -> Session:
    return replace(Session("s", "p", "active", 0, 0, None, None, None, None, None), **changes)


class Store:
    """What would be in the store after some batches."""

    def __init__(self, **of_session: Any) -> None:
        self.told = Told()
        self.found: list[Observation] = []
        self.summary: Summary | None = None
        self.of_session = of_session
        self._seen = self._looked_at = 0

    def take(self, payloads: Sequence[Json], *, over: bool = False) -> list[Observation]:
        """More of the session happened; what is new in the queue makes a batch."""
        self.told.take(payloads, self._seen + 1)
        self._seen += len(payloads)
        items, earlier = self.told.items[self._looked_at :], self.told.items[: self._looked_at]
        if not items:
            return []
        self._looked_at = len(self.told.items)
        batch = Batch(
            session(**{"status": "completed" if over else "active", **self.of_session}),
            PROJECT,
            tuple(items),
            tuple(earlier),
            self.summary,
            (),
            over or any(item.tool in MARKS for item in items),
            tuple(turn for turn in self.told.turns if turn.says_something),
            frozenset((one.kind, one.title) for one in self.found),
        )
        findings = observe(batch)
        self.found += findings.observations
        self.summary = findings.summary or self.summary
        return list(findings.observations)


def lived(script: Script, cuts: Sequence[int] | None = None, **of_session: Any) -> Store:
    """The session in batches: cut after each Stop, as in life, or wherever it is said."""
    payloads = script.payloads
    stops = [place for place, one in enumerate(payloads, 1) if one["hook_event_name"] == "Stop"]
    bounds = sorted({0, *(stops if cuts is None else cuts), len(payloads)})
    store = Store(**of_session)
    for start, end in itertools.pairwise(bounds):
        store.take(payloads[start:end], over=end == len(payloads))
    return store


def found(script: Script, **of_session: Any) -> list[Observation]:
    return lived(script, **of_session).found


def one(script: Script) -> Observation:
    (observation,) = found(script)
    return observation


def summary_of(script: Script) -> Summary:
    summary = lived(script).summary
    assert summary is not None
    return summary
