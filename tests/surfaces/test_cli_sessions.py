"""The command line: sessions, their summaries, and what was observed in them."""

from __future__ import annotations

import json
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backstory.gist import of_summary
from backstory.model import Answer, Hit, Memory, Session, Summary
from backstory.recall.timeline import Timeline
from backstory.store import memories, sessions, summaries
from backstory.store.file.connection import connect, transaction
from backstory.surfaces.mcp import reply
from tests.conftest import Run
from tests.helpers.commands import hook, tool_use
from tests.helpers.embedder import loaded_embedder  # noqa: F401  for all tests here


@pytest.fixture
def project(project: str) -> Path:
    return Path(project)


@pytest.mark.slow
def test_sessions_are_listed_and_told_in_order(project: Path, run: Run) -> None:
    base: dict[str, object] = {"session_id": "s1", "cwd": str(project)}
    hook(base | {"hook_event_name": "UserPromptSubmit", "prompt": "fix the door"})
    hook(tool_use(project, "open door"))
    listed = run("sessions").out
    assert "fix the door" in listed
    assert "active" in listed
    told = run("sessions", "s1").out
    assert told.startswith("s1  active, 1 turn, 0 memories, 1 trace\n")
    assert told.index("> fix the door") < told.index("      open\n")
    assert "open door" not in told, "a turn tells of its tool uses"
    assert "Command: open door" in run("list", "--kind", "tool", "--session", "s1").out
    as_json = json.loads(run("sessions", "s1", "--json").out)
    assert [prompt["prompt"] for prompt in as_json["prompts"]] == ["fix the door"]
    assert [(turn["asked"], turn["state"]) for turn in as_json["turns"]] == [("fix the door", "open")]


SUMMARY = Summary(
    request="Close the door",
    investigated="Looked at the hinge",
    learned="It was upside down",
    completed="Turned it, tests pass",
    next_steps="Oil it",
    files_read=("README.md",),
    files_edited=("src/door.py", "tests/test_door.py"),
    notes="It squeaks\n**Completed:** nothing \x1b[2J",
)


@pytest.fixture
def understood(project: Path, data: Path, run: Run) -> str:
    """A session s1 with a summary and an observation, as a worker leaves it; the observation's id."""
    hook(tool_use(project, "pytest tests/test_door.py"))
    run("sessions")
    now = int(time.time() * 1000)
    with closing(connect(str(data / "backstory.db"))) as db, transaction(db):
        owner = sessions.project_of(db, "s1")
        assert owner
        fields: dict[str, Any] = {"project_id": owner, "session_id": "s1", "tier": "project", "now": now}
        told = memories.add(
            db,
            kind="summary",
            sector="reflective",
            importance=0.7,
            content=f"Session Summary:\n{SUMMARY}",
            **fields,
        )
        summaries.put(db, "s1", owner, SUMMARY, "claude", told, now)
        return memories.add(
            db,
            kind="bugfix",
            sector="procedural",
            importance=0.6,
            title="The door closes\nagain",
            content="The hinge was upside down.",
            concepts=("hinge", "door"),
            **fields,
        )


@pytest.mark.slow
def test_a_session_shows_its_summary_in_eight_fields_and_who_made_it(
    understood: str, project: Path, run: Run
) -> None:
    told = run("sessions", "s1").out
    assert "\x1b" not in told
    for line in (
        "     request  Close the door",
        "investigated  Looked at the hinge",
        "     learned  It was upside down",
        "   completed  Turned it, tests pass",
        "  next steps  Oil it",
        "  files read  README.md",
        "files edited  src/door.py, tests/test_door.py",
        "       notes  It squeaks **Completed:** nothing \\x1b[2J",
        "summed up by  claude",
    ):
        assert f"\n{line}\n" in told
    assert f"{understood}  bugfix: The door closes again — The hinge was upside down." in told
    assert told.count("Close the door") == 1
    as_json = json.loads(run("sessions", "s1", "--json").out)
    assert as_json["summary_by"] == "claude"
    assert as_json["summary_fields"]["next_steps"] == "Oil it"
    assert as_json["summary_fields"]["files_edited"] == ["src/door.py", "tests/test_door.py"]
    assert len(as_json["summary_fields"]) == 8
    hook(tool_use(project, "ls", "s2"))
    as_json = json.loads(run("sessions", "s2", "--json").out)
    assert (as_json["summary_fields"], as_json["summary_by"]) == (None, None)


@pytest.mark.slow
def test_the_list_of_sessions_says_what_each_was_asked_and_came_to(
    understood: str, project: Path, run: Run
) -> None:
    listed = run("sessions").out
    assert listed.splitlines()[1].endswith("  Close the door — Turned it, tests pass")
    told = run("timeline", understood).out
    assert told.splitlines()[0].endswith("  Close the door — Turned it, tests pass")
    assert "summary: Close the door — Turned it, tests pass" in told


@pytest.mark.slow
def test_an_observation_is_shown_with_its_title_kind_and_concepts(
    understood: str, project: Path, run: Run
) -> None:
    shown = run("show", understood).out
    assert "\n\nThe door closes again\nThe hinge was upside down.\n" in shown
    assert "\n concepts  hinge, door\n" in shown
    found = run("search", "hinge").out
    at = found.index("bugfix/procedural")
    assert found[at:].splitlines()[1:3] == ["    The door closes again", "    The hinge was upside down."]
    listed = run("list", "--kind", "bugfix").out
    assert listed.endswith("  bugfix      The door closes again — The hinge was upside down.\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("title", "content"),
    [
        ("Never push on Fridays", "Never push on Fridays"),
        ("never push\n on Fridays.", "Never push on Fridays"),
        ("Never push on…", "Never push on Fridays"),
        ("Never push", "Never push on Fridays"),
    ],
)
def test_what_the_text_says_first_is_not_said_by_the_title_as_well(
    title: str, content: str, understood: str, project: Path, data: Path, run: Run
) -> None:
    with closing(connect(str(data / "backstory.db"))) as db, transaction(db):
        owner = sessions.project_of(db, "s1")
        assert owner
        made = memories.add(
            db,
            project_id=owner,
            session_id="s1",
            kind="preference",
            sector="procedural",
            tier="project",
            importance=0.6,
            title=title,
            content=content,
            now=int(time.time() * 1000),
        )
    for command in (
        ["list", "--kind", "preference"],
        ["search", "fridays"],
        ["show", made],
        ["timeline", made],
        ["sessions", "s1"],
    ):
        told = run(*command).out
        assert (command, told.lower().count("never push")) == (command, 1)
        assert "Never push on Fridays\n" in told
    assert "The door closes again — The hinge" in run("list").out


def test_a_model_is_told_the_title_of_an_observation_and_by_its_id_the_concepts() -> None:
    memory = Memory(
        id="mem_1",
        row=1,
        project_id="p",
        session_id="s1",
        kind="bugfix",
        sector="procedural",
        tier="project",
        title="The door\n[2] closes",
        content="The hinge was upside down.",
        tags=(),
        files=(),
        hashes=(),
        concepts=("hinge", "door"),
        author=None,
        importance=0.6,
        salience=0.6,
        access_count=0,
        created_at=0,
        valid_until=None,
        deleted_at=None,
    )
    session = Session("s1", "p", "completed", 0, 0, 0, "please", None, None, str(SUMMARY))
    answer = Answer((Hit(memory, 1.0, (), session),))
    assert "\nID: mem_1\nTitle: The door [2] closes (bugfix)\n" in reply.memories(answer)
    assert " - Close the door — Turned it, tests pass\n" in reply.memories(answer)
    assert "Concepts" not in reply.memories(answer)
    assert "\nConcepts: hinge, door\n" in reply.memories(replace(answer, by_id=True))
    told = reply.timeline(Timeline(memory, None, (), (), (session,)))
    assert "\n      The door [2] closes - The hinge was upside down.\n" in told


@pytest.mark.parametrize(
    ("text", "length", "gist"),
    [
        (str(SUMMARY), 200, "Close the door — Turned it, tests pass"),
        (str(SUMMARY), 30, "Close the door — Turned it…"),
        (f"Session Summary:\n{SUMMARY}", 200, "Close the door — Turned it, tests pass"),
        ("**Request:** one\ntwo\n**Learned:** much", 200, "one two"),
        ("**Completed:** all of it", 200, "all of it"),
        ("**Learned:** much\n**Notes:** none", 200, "much"),
        ("Moved the walrus", 200, ""),
        ("**Bold:** move", 200, ""),
        ("", 200, ""),
        ("**Request:** " + "x" * 40, 10, "x" * 9 + "…"),
        ("**Request:** ten signs.", 10, "ten signs."),
    ],
)
def test_a_summary_has_a_gist(text: str, length: int, gist: str) -> None:
    assert of_summary(text, length) == gist
    assert len(of_summary(text, length)) <= length


@pytest.mark.slow
def test_the_beginning_of_an_id_names_a_session_unless_it_fits_two(project: Path, run: Run) -> None:
    for session in ("abc-1", "abc-2", "xyz"):
        hook(tool_use(project, f"echo {session}", session))
    assert "Command: echo xyz" in run("sessions", "x").out
    assert "Command: echo abc-2" in run("sessions", "abc-2").out
    vague = run("sessions", "abc")
    assert vague.code == 2
    assert "abc-1, abc-2" in vague.err
