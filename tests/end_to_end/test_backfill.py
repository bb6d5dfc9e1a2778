"""A session of the real Claude Code, captured by our hooks, then read from its transcript: nothing is new."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.end_to_end.test_memory import BIN, repository, rows
from tests.end_to_end.test_synthesis import wait_until_no_worker
from tests.helpers.claude import NO_SERVERS, converse, environment, run
from tests.helpers.commands import backstory
from tests.helpers.mcp_client import forked_backstory
from tests.helpers.scripted_model import ScriptedModel, say, use
from tests.helpers.stored import contents, differing
from tests.helpers.transcripts import age

pytestmark = pytest.mark.client

SUMMARY = (
    "<analysis>what was it</analysis>\n<summary>\n1. Primary Request: a greeting\n\n"
    "6. All user messages:\n - say hello\n\n7. Pending: nothing\n</summary>"
)


def test_what_was_captured_of_a_real_session_is_all_that_its_transcript_tells(
    home: Path, data: Path, tmp_path: Path
) -> None:
    project = repository(tmp_path / "greeting")
    (project / ".claude").mkdir()
    (project / ".claude" / ".dirty-files").touch()  # initialised: an edit makes our Stop hook speak up
    steps = (
        use("Bash", command="echo one"),
        use("Bash", command="exit 3"),
        use(
            "Agent",
            subagent_type="general-purpose",
            description="look",
            prompt="LOOK",
            run_in_background=False,
        ),
        say("looked"),  # of the subagent, after its command
        use("Write", file_path=str(project / "hello.txt"), content="hello\n"),
        say("The greeting is there."),
        say("CLAUDE.md stays as it is."),
        say("One more\n\nwith two paragraphs."),
        say(SUMMARY),
        say("And after the compaction."),
    )
    with ScriptedModel(*steps) as model:
        model.when(use("Bash", command="echo inside"), last_user="LOOK")
        env = environment(home, model.url)
        env["PATH"] = os.pathsep.join((forked_backstory(), str(BIN), env["PATH"]))
        env["BACKSTORY_CLAUDE_MD_ON_STOP"] = "agent"
        talked = converse(
            ["say hello", "and more", "/compact", "go on"],
            cwd=project,
            env=env,
            plugin_dir=REPOSITORY,
            servers=NO_SERVERS,
        )
        assert talked.code == 0, talked.stderr
        session = talked.init["session_id"]
        forked = run(
            "on another way",
            cwd=project,
            env=env,
            plugin_dir=REPOSITORY,
            servers=NO_SERVERS,
            extra=["--resume", session, "--fork-session"],
        )
    assert forked.code == 0, forked.stderr
    backstory("sessions", cwd=project)  # drains
    wait_until_no_worker(data)
    before = contents(data)
    ends = rows(data, "SELECT count(*) FROM events WHERE name = 'Stop' AND session_id = ?", session)
    assert ends == [(4,)]
    transcripts = list((home / ".claude" / "projects").rglob("*.jsonl"))
    for file in transcripts:
        age(file, 2)

    read = backstory("backfill", "--json", cwd=project)

    assert read.returncode == 0, read.stderr
    changed = differing(before, contents(data))
    assert changed.get("events") is None
    assert set(changed) == {"transcripts", "transcript_entries"}
    assert len(changed["transcripts"][1]) == len(transcripts) == 3


def test_what_a_damaged_database_lost_of_a_real_session_comes_back_from_its_transcript(
    home: Path, data: Path, tmp_path: Path
) -> None:
    """Two sessions, a backup between them; nothing can be read of the damaged file."""
    project = repository(tmp_path / "greeting")
    with ScriptedModel(
        say("Hello."),
        use("Bash", command="echo one"),
        use("Write", file_path=str(project / "hello.txt"), content="hello\n"),
        say("The greeting is there."),
    ) as model:
        env = environment(home, model.url)
        env["PATH"] = os.pathsep.join((forked_backstory(), str(BIN), env["PATH"]))
        for prompt in ("say hello", "write it down"):
            ran = run(prompt, cwd=project, env=env, plugin_dir=REPOSITORY, servers=NO_SERVERS)
            assert ran.code == 0, ran.stderr
            backstory("sessions", cwd=project)  # drains
            wait_until_no_worker(data)
            if prompt == "say hello":
                backstory("backup", "now", cwd=project)
    before = remembered_of(data)
    assert {prompt for _, prompt in before["prompts"]} == {"say hello", "write it down"}
    (data / "backstory.db").write_bytes(b"garbage" * 1000)
    for file in (home / ".claude" / "projects").rglob("*.jsonl"):
        age(file, 2)

    said = backstory("sessions", cwd=project).stderr

    offered = re.search(r"`backstory (backfill --since \S+)`", said)
    assert offered is not None, said
    assert {prompt for _, prompt in remembered_of(data)["prompts"]} == {"say hello"}
    read = backstory(*offered[1].split(), cwd=project)
    assert read.returncode == 0, read.stderr
    assert remembered_of(data) == before


def remembered_of(data: Path) -> dict[str, list[Any]]:
    """Without times: a hook runs a little after what it tells of."""
    return {
        "prompts": sorted(rows(data, "SELECT session_id, prompt FROM prompts")),
        "memories": sorted(
            rows(data, "SELECT session_id, id, content, times FROM memories WHERE kind IN ('tool', 'turn')")
        ),
        "pieces": sorted(rows(data, "SELECT text FROM turn_pieces")),
    }
