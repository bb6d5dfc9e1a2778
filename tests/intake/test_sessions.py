"""The life of a session: active, completed, interrupted, reopened, in whatever order its events arrive."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.chaos import DAY, NOW, Json, bash, drain, event, prompt, put, rows, settle, turns_of
from tests.helpers.traces import without


def the_session(data: Path) -> Json:
    (found,) = rows(data, "SELECT status, started_at, last_event_at, ended_at FROM sessions")
    return found


def test_a_session_that_is_silent_for_a_day_was_interrupted(data: Path) -> None:
    put(data, bash("make"), at=NOW)
    drain(data, now=NOW)
    settle(data, now=NOW + DAY)
    assert the_session(data)["status"] == "active"
    settle(data, now=NOW + DAY + 1)
    assert the_session(data) == {
        "status": "interrupted",
        "started_at": NOW,
        "last_event_at": NOW,
        "ended_at": NOW,
    }


@pytest.mark.parametrize(
    "sign_of_life", [prompt("go on"), bash("ls"), event("SessionStart", source="resume")]
)
def test_an_interrupted_session_that_shows_a_sign_of_life_is_active(sign_of_life: Json, data: Path) -> None:
    put(data, bash("make"), at=NOW)
    drain(data, now=NOW + 2 * DAY)
    put(data, sign_of_life, at=NOW + 2 * DAY)
    drain(data, now=NOW + 2 * DAY + 5)
    assert the_session(data) == {
        "status": "active",
        "started_at": NOW,
        "last_event_at": NOW + 2 * DAY,
        "ended_at": None,
    }


def test_a_prompt_after_the_end_reopens_the_session(data: Path) -> None:
    put(data, event("SessionEnd", reason="clear"), at=NOW)
    drain(data)
    assert the_session(data)["status"] == "completed"
    put(data, prompt("one more thing"), at=NOW + 1)
    drain(data)
    assert the_session(data) == {
        "status": "active",
        "started_at": NOW,
        "last_event_at": NOW + 1,
        "ended_at": None,
    }


def test_a_prompt_from_before_the_end_that_comes_late_does_not_reopen_it(data: Path) -> None:
    put(data, event("SessionEnd", reason="clear"), at=NOW)
    drain(data)
    put(data, prompt("late"), at=NOW - 1)
    drain(data)
    assert the_session(data) == {
        "status": "completed",
        "started_at": NOW - 1,
        "last_event_at": NOW,
        "ended_at": NOW,
    }


def test_a_session_that_ended_long_ago_stays_completed(data: Path) -> None:
    put(data, event("SessionEnd", reason="other"), at=NOW)
    drain(data, now=NOW + 10 * DAY)
    assert the_session(data)["status"] == "completed"


LIVES: dict[str, list[Json]] = {
    "is open": [
        event("SessionStart", source="startup"),
        prompt("first"),
        bash("echo 1"),
        bash("echo 2"),
        event("Stop"),
        prompt("second"),
    ],
    "ended": [
        event("SessionStart", source="startup"),
        prompt("first"),
        bash("echo 1"),
        prompt("second"),
        bash("echo 2"),
        event("Stop"),
        event("SessionEnd", reason="other"),
    ],
    "ended and was resumed": [
        prompt("first"),
        bash("echo 1"),
        event("SessionEnd", reason="other"),
        event("SessionStart", source="resume"),
        prompt("second"),
        bash("echo 2"),
    ],
    "ended with a straggler": [
        event("SessionStart", source="startup"),
        prompt("first"),
        event("SessionEnd", reason="other"),
        bash("echo 1"),
        event("SubagentStop"),
    ],
    "ended, straggled and was resumed": [
        prompt("first"),
        event("SessionEnd", reason="other"),
        bash("echo 1"),
        prompt("second"),
        event("SessionEnd", reason="other"),
        event("SubagentStop"),
    ],
    "ended twice": [
        prompt("first"),
        event("SessionEnd", reason="other"),
        event("SessionStart", source="resume"),
        bash("echo 1"),
        event("SessionEnd", reason="other"),
    ],
}


def outcome(life: Sequence[Json], batches: Sequence[Sequence[int]]) -> tuple[list[Json], ...]:
    """What the store says after the events of a life arrived in these batches. Their times never change."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        for batch in batches:
            for number in batch:
                put(data, life[number], at=NOW + number, name=f"event-{number}")
            drain(data, now=NOW + 100)
        return (
            rows(data, "SELECT * FROM sessions"),
            rows(data, "SELECT session_id, prompt, created_at FROM prompts ORDER BY created_at"),
            rows(
                data,
                "SELECT session_id, content, tier, files, importance, salience, created_at"
                " FROM memories WHERE kind = 'tool' ORDER BY created_at",
            ),
            # Where a turn ends is told by what came before: only all that is in them is the same.
            [
                {"said": sorted(text for turn in turns_of(data) for text, _ in turn.prompts)},
                {"answers": sorted(turn.answer for turn in turns_of(data) if turn.answer)},
            ],
        )


def known(found: tuple[list[Json], ...]) -> tuple[list[Json], ...]:
    """Without the project's id, which is random in every store."""
    return ([without(row, "project_id") for row in found[0]], *found[1:])


@cache
def in_order(life: tuple[str, ...]) -> tuple[list[Json], ...]:
    return known(outcome([json.loads(payload) for payload in life], [range(len(life))]))


def arrivals(count: int) -> st.SearchStrategy[list[list[int]]]:
    """Any order of arrival, drained in any batches."""
    return st.tuples(
        st.permutations(range(count)), st.lists(st.booleans(), min_size=count, max_size=count)
    ).map(lambda drawn: _cut(*drawn))


def _cut(order: Sequence[int], ends: Sequence[bool]) -> list[list[int]]:
    batches: list[list[int]] = [[]]
    for number, is_end in zip(order, ends, strict=True):
        batches[-1].append(number)
        if is_end:
            batches.append([])
    return [batch for batch in batches if batch]


@pytest.mark.slow
@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES.keys())
@settings(max_examples=25)
@given(arrival=st.data())
def test_events_that_arrive_out_of_order_leave_the_same_behind(
    life: list[Json], arrival: st.DataObject
) -> None:
    assert known(outcome(life, arrival.draw(arrivals(len(life))))) == in_order(tuple(map(json.dumps, life)))


def test_a_straggler_after_the_end_leaves_the_same_behind_in_any_order() -> None:
    life = [prompt("first"), event("SessionEnd", reason="other"), bash("echo straggler")]
    assert known(outcome(life, [[0, 2], [1]])) == known(outcome(life, [[0, 1, 2]]))
