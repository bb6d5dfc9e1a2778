"""Preferences and decisions come from what the user typed, answered and approved, and from nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from backstory.surfaces.opened import open_drained
from backstory.synthesis.local import Local
from backstory.synthesis.runner import Settings, Worker
from tests.helpers.chaos import NOW, Json, event, failures, put, rows, spooled
from tests.synthesis.laundering import DECISIONS, LAUNDERING, PREFERENCES, Case

Kept = dict[str, list[tuple[str, str]]]  # by case: (kind, content) of each preference and decision


def names(cases: Iterable[Case]) -> list[str]:
    return [case.name for case in cases]


def of(cases: Iterable[Case]) -> dict[str, list[Json]]:
    """The payloads of each case: a session in a project of its own, so that none replaces another's."""
    found = {}
    for number, case in enumerate(cases):
        place = {"session_id": f"session-{number}", "cwd": f"/somewhere/project-{number}"}
        steps = (*case.steps, event("SessionEnd", reason="other"))
        found[case.name] = [{**step, **place} for step in steps]
    return found


def replayed(data: Path, cases: Sequence[Case]) -> Kept:
    sessions = of(cases)
    steps = [step for payloads in sessions.values() for step in payloads]
    for number, step in enumerate(steps, 1):
        put(data, step, at=NOW - len(steps) + number)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BACKSTORY_HOME", str(data))
        patch.setattr("backstory.synthesis.runner.POLL_SECONDS", 0.02)
        asyncio.run(_observed(data))
    assert spooled(data) == []
    assert failures(data) == {}
    assert rows(data, "SELECT * FROM observation_queue WHERE processed_by IS NOT 'local'") == []
    kept = (
        "SELECT session_id, kind, content FROM memories WHERE kind IN ('preference', 'decision') ORDER BY row"
    )
    memories = rows(data, kept)
    by_session = {payloads[0]["session_id"]: name for name, payloads in sessions.items()}
    assert len(by_session) == len(rows(data, "SELECT id FROM sessions")) == len(cases)
    assert {row["session_id"] for row in memories} <= by_session.keys()
    found: Kept = {name: [] for name in sessions}
    for row in memories:
        found[by_session[row["session_id"]]].append((row["kind"], row["content"]))
    return found


async def _observed(data: Path) -> None:
    worker = Worker(
        lambda: open_drained(str(data), now=NOW),
        Settings("local", 0.0, 0.0),
        local=Local(),
        claude=None,
        clock=lambda: NOW,
    )
    async with asyncio.timeout(60):
        await worker.run()


@pytest.fixture(scope="module")
def laundered(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    return replayed(tmp_path_factory.mktemp("laundered"), LAUNDERING)


@pytest.fixture(scope="module")
def meant(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    return replayed(tmp_path_factory.mktemp("meant"), (*PREFERENCES, *DECISIONS))


def test_the_cases_are_told_apart_by_their_names() -> None:
    assert len(set(names(LAUNDERING))) == len(LAUNDERING) == 138
    assert len(set(names((*PREFERENCES, *DECISIONS)))) == 20


@pytest.mark.parametrize("name", names(LAUNDERING))
def test_what_the_user_did_not_say_becomes_no_preference_and_no_decision(laundered: Kept, name: str) -> None:
    assert laundered[name] == []


@pytest.mark.parametrize("name", names(PREFERENCES))
def test_a_standing_wish_that_was_typed_becomes_one_preference(meant: Kept, name: str) -> None:
    assert [kind for kind, _ in meant[name]] == ["preference"]


@pytest.mark.parametrize("name", names(DECISIONS))
def test_what_the_user_answered_or_approved_becomes_one_decision(meant: Kept, name: str) -> None:
    assert [kind for kind, _ in meant[name]] == ["decision"]
