"""The MCP server `memory`: memory_timeline."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from tests.helpers.mcp_client import Server
from tests.helpers.memory_desk import MINUTE, Desk, store

pytestmark = pytest.mark.slow


@pytest.fixture
def desk(memory_server: tuple[Server, Path, Path], tmp_path: Path) -> Desk:
    return Desk(*memory_server, tmp_path / "project")


@pytest.fixture
def history(desk: Desk) -> list[str]:
    """Seven memories, a minute apart, of two sessions, and not stored in that order."""
    start = int(time.time() * 1000) - 60 * MINUTE
    made = {
        minute: desk.note(
            f"Step {minute} of the walrus migration",
            at=start + minute * MINUTE,
            session_id=f"{desk.project.parent.name}-{'late' if minute > 3 else 'early'}",
        )
        for minute in (3, 0, 6, 1, 5, 2, 4)
    }
    return [made[minute] for minute in range(7)]


def shown(timeline: str) -> list[str]:
    return re.findall(
        r"^(?:>>>|   ) \[\d{4}-\d\d-\d\dT\d\d:\d\d\] \(\w+\).* (mem_\w+)$", timeline, re.MULTILINE
    )


def test_a_timeline_is_chronological_around_its_marked_anchor(desk: Desk, history: list[str]) -> None:
    reply = desk.ask("memory_timeline", anchor_id=history[3], depth_before=2, depth_after=2)
    assert shown(reply) == history[1:6]
    assert re.findall(r"^>>> .* (mem_\w+)$", reply, re.MULTILINE) == [history[3]]
    assert "Timeline:\n" in reply
    assert "\n      Step 3 of the walrus migration\n" in reply
    assert reply.startswith("<backstory ")


def test_a_timeline_is_five_to_each_side_unless_told(desk: Desk, history: list[str]) -> None:
    assert shown(desk.ask("memory_timeline", anchor_id=history[0])) == history[:6]
    assert shown(desk.ask("memory_timeline", anchor_id=history[6])) == history[1:]


def test_a_timeline_of_depth_zero_is_its_anchor(desk: Desk, history: list[str]) -> None:
    ask = {"anchor_id": history[3], "depth_before": 0, "depth_after": 0}
    assert shown(desk.ask("memory_timeline", **ask)) == [history[3]]
    assert shown(desk.ask("memory_timeline", **{**ask, "depth_after": 1})) == history[3:5]


def test_a_timeline_reaches_fifty_to_each_side_and_no_further(desk: Desk, history: list[str]) -> None:
    anchor = history[3]
    assert shown(desk.ask("memory_timeline", anchor_id=anchor, depth_before=50, depth_after=50)) == history
    for side in ("depth_before", "depth_after"):
        for depth in (-1, 51, 10**20):
            refusal = desk.refusal("memory_timeline", anchor_id=anchor, **{side: depth})
            assert f"{side} is {depth}; it must be between 0 and 50" in refusal


def test_a_timeline_includes_the_summaries_of_its_sessions(desk: Desk, history: list[str]) -> None:
    with store(desk.data) as db:
        db.execute(
            "UPDATE sessions SET summary = 'Test session' WHERE id = ?",
            (f"{desk.project.parent.name}-early",),
        )
    both = desk.ask("memory_timeline", anchor_id=history[3])
    listed = both.partition("Sessions in timeline:\n")[2].splitlines()
    assert re.fullmatch(r"  - \d{4}-\d\d-\d\dT\d\d:\d\d: Test session", listed[0])
    assert re.fullmatch(r"  - \d{4}-\d\d-\d\dT\d\d:\d\d: No summary", listed[1])
    assert listed[2:] == ["</backstory>"]
    late = desk.ask("memory_timeline", anchor_id=history[5], depth_before=1)
    assert "Test session" not in late


def test_a_timeline_marks_what_was_superseded_and_leaves_out_what_was_deleted(
    desk: Desk, history: list[str]
) -> None:
    desk.ask("memory_supersede", old_memory_id=history[2], new_memory_id=history[4])
    desk.ask("memory_delete", memory_id=history[1])
    reply = desk.ask("memory_timeline", anchor_id=history[3])
    assert shown(reply) == [history[0], *history[2:]]
    assert re.findall(r"\[SUPERSEDED\] (mem_\w+)", reply) == [history[2]]


def test_a_timeline_shows_the_start_of_long_memories(desk: Desk) -> None:
    content = "The walrus log. " + "It was quiet. " * 30
    memory = desk.add(content)
    assert f"\n      {content.strip()[:200]}...\n" in desk.ask("memory_timeline", anchor_id=memory)


def test_a_timeline_around_nothing_is_refused(desk: Desk) -> None:
    desk.add("The walrus sleeps")
    assert "there is no memory 'mem_nothere'" in desk.refusal("memory_timeline", anchor_id="mem_nothere")
