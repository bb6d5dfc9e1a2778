"""The real Claude Code with earlier sessions to tell about: what the user sees, what the model is told and
when, and what nobody is asked."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from backstory.surfaces import asking
from backstory.surfaces.cli import install
from tests.helpers.asked import AGAIN, SPOKEN, TEST, earlier_sessions, sockets
from tests.helpers.chaos import eventually, rows
from tests.helpers.claude import environment, run
from tests.helpers.claude_terminal import AtTerminal, at_terminal
from tests.helpers.mcp_client import forked_backstory
from tests.helpers.scripted_model import ScriptedModel, Step, say, use

pytestmark = pytest.mark.client

MEMORY = ("memory",)
OURS = "mcp__plugin_backstory_memory__"
LOAD = use("ToolSearch", query=f"select:{OURS}memory_search,{OURS}memory_add")
SEARCH, ADD = use(f"{OURS}memory_search", query="tusks"), use(f"{OURS}memory_add", content="Tusks are ivory.")
WITH_PROMPT, WITH_FILE = "backstory, with your prompt", "about this file"


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin, whose hooks wait longer for an answer: this machine may have other things to do."""
    root = tmp_path_factory.mktemp("plugin")
    install.lay_out(str(root))
    (root / "interpreter").unlink()
    module = root / "src" / "backstory" / "surfaces" / "asking.py"
    module.write_text(module.read_text().replace("\nSECONDS = 0.15", "\nSECONDS = 5"))
    return root


@pytest.fixture
def project(tmp_path: Path, data: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "walrus").mkdir(parents=True)
    (folder / "walrus" / "parser.py").write_text("depth = 1\n")
    earlier_sessions(data, folder)
    (data / "config.toml").write_text('synthesizer = "off"\n')
    (data / "known").mkdir()
    (data / "known" / "files").write_text(f"{folder}/walrus/parser.py\n")
    (data / "known" / "tests").write_text(f"{TEST}\n")
    return folder


def variables(home: Path, model: ScriptedModel) -> dict[str, str]:
    env = environment(home, model.url)
    env["PATH"] = os.pathsep.join((forked_backstory(), str(Path(sys.executable).parent), env["PATH"]))
    return env


class Session:
    """A person at the terminal, whose memory server is ready."""

    def __init__(self, claude: AtTerminal, model: ScriptedModel) -> None:
        self.claude, self.model = claude, model

    @property
    def seen(self) -> str:
        return re.sub(r"\s+", " ", self.claude.seen)

    def say(self, text: str, until: str) -> None:
        self.claude.type(text)
        self.claude.wait(lambda: f"● {until}" in self.seen)

    def told(self, what: str) -> list[int]:
        """How often each request has it."""
        return [json.dumps(request).count(what) for request in self.model.requests]


def is_stored(data: Path, prompt: str) -> bool:
    return bool(rows(data, "SELECT 1 FROM prompts WHERE prompt = ?", prompt))


@contextmanager
def at_keyboard(
    home: Path, data: Path, project: Path, plugin: Path, mode: str, *steps: Step
) -> Iterator[Session]:
    with ScriptedModel(*steps) as model:
        env = variables(home, model)
        with at_terminal(cwd=project, env=env, plugin_dir=plugin, servers=MEMORY, mode=mode) as claude:
            claude.wait(lambda: asking.servers(str(data), str(project), "1"))
            yield Session(claude, model)


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "auto", "plan"])
def test_the_line_is_seen_the_prompt_is_told_once_and_nobody_is_asked(
    mode: str, home: Path, data: Path, project: Path, plugin: Path
) -> None:
    calls = (LOAD, SEARCH) if mode == "plan" else (LOAD, SEARCH, ADD)
    with at_keyboard(home, data, project, plugin, mode, say("first"), *calls, say("second")) as at:
        assert eventually(lambda: "says: backstory: 11 sessions remembered, " in at.seen)
        at.say(AGAIN, "first")
        at.say("look again", "second")
        assert at.told(WITH_PROMPT) == [1] * (3 + len(calls) - 1), "in every request, once"
        assert SPOKEN in json.dumps(at.model.requests[0])
        assert "No memories found" not in json.dumps(at.model.requests[-1])
    kept = rows(data, "SELECT content FROM memories WHERE kind = 'note'")
    assert [row["content"] for row in kept] == ([] if mode == "plan" else ["Tusks are ivory."])


def test_a_deny_rule_wins_an_edit_works_after_a_file_was_told_about_and_clear_begins_anew(
    home: Path, data: Path, project: Path, plugin: Path
) -> None:
    (project / ".claude").mkdir()
    (project / ".claude" / "settings.json").write_text(
        json.dumps({"permissions": {"deny": [f"{OURS}memory_add"]}})
    )
    file = str(project / "walrus" / "parser.py")
    asked = "go on with tusk brackets"
    steps = (
        # What is told at a file depends on the prompt, which is stored in the background.
        use("Read", file_path=file).once(lambda: eventually(lambda: is_stored(data, asked))),
        use("Edit", file_path=file, old_string="depth = 1", new_string="depth = 2"),
        use(f"{OURS}memory_add", content="Tusks are ivory."),
        say("first"),
        say("second"),
    )
    with at_keyboard(home, data, project, plugin, "acceptEdits", *steps) as at:
        at.say(asked, "first")
        assert at.told(WITH_PROMPT) == [0, 0, 0, 0], "that prompt says too little"
        assert at.told(WITH_FILE) == [0, 1, 1, 1]
        assert Path(file).read_text() == "depth = 2\n"
        at.claude.type("/clear")
        at.claude.wait(lambda: "SessionStart:clear says: backstory: " in at.seen)
        at.say(AGAIN, "second")
        assert at.told(WITH_PROMPT)[-1] == 1
        assert at.told(WITH_FILE)[-1] == 0
    assert rows(data, "SELECT 1 FROM memories WHERE kind = 'note'") == []
    told = rows(data, "SELECT moment, session_id FROM tellings ORDER BY id")
    assert [row["moment"] for row in told] == ["start", "file", "start", "prompt"]
    assert len({row["session_id"] for row in told}) == 2


def test_after_a_compaction_the_model_is_told_what_this_session_decided_and_changed(
    home: Path, data: Path, project: Path, plugin: Path
) -> None:
    file = str(project / "walrus" / "parser.py")
    options = [{"label": label, "description": f"a {label} one"} for label in ("square", "round")]
    question = {"question": "Which bracket closes a tusk?", "header": "Bracket", "options": options}
    steps = (
        use("AskUserQuestion", questions=[{**question, "multiSelect": False}]),
        use("Read", file_path=file),
        use("Edit", file_path=file, old_string="depth = 1", new_string="depth = 2"),
        say("Tusks close now. Still open: the flippers."),
    )
    with at_keyboard(home, data, project, plugin, "acceptEdits", *steps) as at:
        at.model.when(say("It was about tusks."), anywhere="Your task is to create a detailed summary")
        at.model.when(say("second"), last_user="go on there")
        at.claude.type("close the tusks")
        at.claude.wait(lambda: "Enter to select" in at.seen)
        time.sleep(1)  # it is shown a moment before it takes a key
        at.claude.enter()
        at.claude.wait(lambda: "● Tusks close now." in at.seen)
        at.claude.type("/compact")
        at.claude.wait(lambda: "SessionStart:compact says: backstory: " in at.seen)
        at.say("go on there", "second")
        request = json.dumps(at.model.requests[-1])
    told = request[request.index("backstory, at the start") :].partition("</backstory>")[0]
    assert "Which bracket closes a tusk? square" in told
    assert "walrus/parser.py" in told
    assert "the flippers" in told


def test_a_failing_test_brings_how_it_was_mended(home: Path, data: Path, project: Path, plugin: Path) -> None:
    listening = f"until ls {data}/run/*.sock; do sleep 0.05; done"
    failing = f"echo FAILED {TEST}; exit 1"
    with ScriptedModel(use("Bash", command=listening), use("Bash", command=failing), say("done")) as model:
        env = variables(home, model)
        ran = run("go on", cwd=project, env=env, plugin_dir=plugin, servers=MEMORY)
        assert ran.text == "done"
        told = [json.dumps(request) for request in model.requests]
    assert [SPOKEN in text for text in told] == [False, False, True]
    moments = rows(data, "SELECT moment FROM tellings ORDER BY id")
    assert [row["moment"] for row in moments] == ["start", "failure"]
    assert eventually(lambda: not sockets(data))
