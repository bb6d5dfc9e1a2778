"""A turn of one session in the next one: the real Claude Code at a terminal, a scripted model, our plugin."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.end_to_end.test_memory import BIN, MEMORY, SEARCH, git, repository, rows
from tests.end_to_end.test_synthesis import briefs, wait_until_no_worker
from tests.helpers.claude import Json, environment, run
from tests.helpers.claude_terminal import at_terminal
from tests.helpers.commands import backstory
from tests.helpers.mcp_client import forked_backstory
from tests.helpers.scripted_model import ScriptedModel, Step, say, use

pytestmark = pytest.mark.client

BUGGY = "def parse_date(text):\n    return text.strip()\n"
GUARDED = "def parse_date(text):\n    return text and text.strip()\n"
CHECK = f"{sys.executable} -c 'import dates; dates.parse_date(None)'"
ASKED = "parse_date crashes on a feed without dates, please fix it"
ANSWERED = (
    "Fixed: parse_date crashed on None because of a missing guard. Decision: dates stay naive."
    " Next: add a test for None input."
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = repository(tmp_path / "feed")
    (folder / "dates.py").write_text(BUGGY)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "a feed")
    return folder


def settings(home: Path, model: ScriptedModel) -> dict[str, str]:
    env = environment(home, model.url)
    env["PATH"] = os.pathsep.join((forked_backstory(), str(BIN), env["PATH"]))
    return env


def mending(project: Path) -> list[Step]:
    file = str(project / "dates.py")
    return [
        use("Bash", command=CHECK),
        use("Read", file_path=file),
        use(
            "Edit",
            file_path=file,
            old_string="return text.strip()",
            new_string="return text and text.strip()",
        ),
    ]


def first_request(model: ScriptedModel) -> Json:
    """Of the conversation; side questions come without tools."""
    return next(body for body in model.requests if body.get("tools"))


def is_complete(data: Path) -> bool:
    return (data / "backstory.db").exists() and bool(
        rows(data, "SELECT 1 FROM turns WHERE state = 'complete'")
    )


def test_the_next_session_starts_with_what_was_fixed_decided_and_left_open(
    home: Path, data: Path, project: Path
) -> None:
    with ScriptedModel(*mending(project), use("Bash", command=CHECK), say(ANSWERED)) as model:
        env = settings(home, model)
        with at_terminal(cwd=project, env=env, plugin_dir=REPOSITORY) as claude:
            claude.type(ASKED)
            claude.wait(lambda: is_complete(data))
            claude.leave()
    assert (project / "dates.py").read_text() == GUARDED

    with ScriptedModel(say("A test is missing.")) as model:
        env = settings(home, model)
        with at_terminal(cwd=project, env=env, plugin_dir=REPOSITORY) as claude:
            claude.type("what is left to do?")
            claude.wait(lambda: model.requests and first_request(model))
            claude.leave()
        told = briefs(first_request(model))
    ((turn,),) = rows(
        data, "SELECT id FROM memories WHERE kind = 'turn' AND content LIKE 'asked: parse_date%'"
    )
    assert turn in told
    assert "parse_date crashes on a feed without dates" in told
    assert "parse_date crashed on None because of a missing guard" in told
    assert "dates stay naive" in told
    assert "add a test for None input" in told
    wait_until_no_worker(data)


def test_what_a_killed_session_was_doing_is_found_and_told(home: Path, data: Path, project: Path) -> None:
    with ScriptedModel(*mending(project), say("never heard").after(30)) as model:
        env = settings(home, model)
        with at_terminal(cwd=project, env=env, plugin_dir=REPOSITORY) as claude:
            claude.type(ASKED)
            # The request after the edit: the hook has written by then what the edit did.
            claude.wait(lambda: sum(bool(body.get("tools")) for body in model.requests) > 3)
            claude.kill()
    assert (project / "dates.py").read_text() == GUARDED

    found = json.loads(backstory("search", "parse_date crashes", "--json", cwd=project).stdout)
    assert (found[0]["kind"], found[0]["asked"], found[0]["files"]) == ("turn", ASKED, ["dates.py"])
    assert "edited: dates.py" in found[0]["excerpt"]
    assert "AttributeError" in found[0]["excerpt"]

    with ScriptedModel(use(SEARCH, query="why does parse_date crash?"), say("It was mended.")) as model:
        env = settings(home, model)
        done = run("what happened?", cwd=project, env=env, plugin_dir=REPOSITORY, servers=MEMORY)
        assert done.text == "It was mended."
        told = briefs(first_request(model))
        (answer,) = model.results(SEARCH)
    assert ASKED in told
    assert "dates.py" in told
    assert f"ID: {found[0]['id']}" in answer
    assert f"Content: asked: {ASKED}\n" in answer
    assert "edited: dates.py" in answer
    wait_until_no_worker(data)
