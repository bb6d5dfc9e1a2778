"""CLAUDE.md that stays true, with the real Claude Code: edits that cost nothing, prose that is behind, and
the flow of `claude_md.on_stop = agent`: an edit, the Stop hook, the agent, the next session.

The plugin is laid out as `backstory install` does it, and nothing on PATH is called backstory: what the
skills have the model run must find the program by itself.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from backstory.surfaces.cli.install import lay_out
from tests.conftest import REPOSITORY, Run
from tests.end_to_end.test_docmem import Harbour, instructions
from tests.end_to_end.test_memory import git, repository
from tests.helpers.chaos import eventually, spooled
from tests.helpers.claude import (
    NO_SERVERS,
    SERVERS,
    Json,
    Result,
    cli,
    converse,
    environment,
    without_other_servers,
)
from tests.helpers.claude_terminal import at_terminal
from tests.helpers.scripted_model import UNSCRIPTED, Step, say, text_of, use
from tests.test_plugin_texts import AGENTS, read

AGENT = "backstory:memory-updater"
PROCESSOR, ANALYZER = "backstory:memory-processor", "backstory:codebase-analyzer"
BLOCK = "Files were modified this turn."
NOTE = "Sections of CLAUDE.md that a model wrote are behind"
IN_THE_AGENT = read(AGENTS[0])[1]
REQUEST = re.compile(r"^sh \"[^\"]+/backstory\.sh\" claude-md request <<'END_OF_REQUEST'$", re.MULTILINE)
NEW = "## Architecture Overview\n\nThe tower `src/tower.py` guides boats; `$(rm -rf /)` is only text.\n"
PACKAGE = {"name": "harbour", "scripts": {"build": "tsc -p .", "test": "vitest run"}}
BUILD, LINT = '"build": "tsc -p ."', '"lint": "eslint ."'

Command = Callable[..., None]


class Keeper(Harbour):
    """The model of these tests. What its memory-updater does is scripted apart from what the session does."""

    def __init__(self, project: Path, *steps: Step) -> None:
        super().__init__(project, *steps)
        self.dirty = project / ".claude" / ".dirty-files"

    def __enter__(self) -> Keeper:
        super().__enter__()
        return self

    def in_agent(self, *steps: Step) -> None:
        self.when(*steps, system=IN_THE_AGENT)

    def of_session(self) -> list[Json]:
        return [body for body in self.turns() if IN_THE_AGENT not in text_of(body["system"])]

    def of_agent(self) -> list[Json]:
        return [body for body in self.turns() if IN_THE_AGENT in text_of(body["system"])]

    def blocks(self) -> list[str]:
        """Each reason with which Stop blocked, as the model has it in its last request."""
        last = self.of_session()[-1]["messages"]
        said = [text_of(message["content"]) for message in last if message["role"] == "user"]
        return [text for text in said if BLOCK in text]

    def note(self) -> str:
        """What a prompt brought, as the model has it in its last request."""
        (found,) = re.findall(f"{NOTE}.*", text_of([m["content"] for m in self.of_session()[-1]["messages"]]))
        return str(found)

    def launcher(self) -> str:
        """How to send a request, as the skill that was read last says it."""
        said = [text_of(message["content"]) for message in self.turns()[-1]["messages"]]
        return str(REQUEST.findall("\n".join(said))[-1])


def ours(request: str) -> Step:
    """A request to backstory, sent as a skill has told."""

    def filled(model: Keeper) -> str:
        return f"{model.launcher()}\n{request}\nEND_OF_REQUEST"

    return use("Bash", command=filled)


def agent(prompt: Any = "Update CLAUDE.md for changed files", **given: bool) -> Step:
    return use("Agent", subagent_type=AGENT, description="Update CLAUDE.md", prompt=prompt, **given)


SYNC = ours("backstory sync --yes --json")
SET = ours(f"backstory claude-md section set architecture\n{NEW}")
SKILL = use("Skill", skill=PROCESSOR)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = repository(tmp_path / "harbour")
    (folder / "src").mkdir()
    (folder / "src" / "__init__.py").write_text('"""Guides boats."""\n')
    for name in ("tower", "ferry", "tug"):
        (folder / "src" / f"{name}.py").write_text(f"def {name}(to: str) -> str:\n    return to\n")
    (folder / "package.json").write_text(json.dumps(PACKAGE, indent=2) + "\n")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "A harbour with three boats")
    return folder


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    lay_out(str(tmp_path / "the plugin"))
    return tmp_path / "the plugin"


@pytest.fixture
def env(home: Path) -> dict[str, str]:
    variables = environment(home, "")
    places = variables["PATH"].split(os.pathsep)
    variables["PATH"] = os.pathsep.join(place for place in places if not Path(place, "backstory").exists())
    variables["BACKSTORY_SYNTHESIZER"] = "off"
    return variables


@pytest.fixture
def backstory(run: Run) -> Command:
    """A command that the user runs in the project."""

    def done(*args: str, stdin: str = "") -> None:
        ran = run(*args, stdin=stdin)
        assert ran.code == 0, ran.err

    return done


def talk(
    prompts: Sequence[str],
    model: Keeper,
    plugin: Path,
    env: dict[str, str],
    servers: Sequence[str] = NO_SERVERS,
) -> Result:
    at = env | {"ANTHROPIC_BASE_URL": model.url}
    result = converse(
        prompts,
        cwd=model.file.parent,
        env=at,
        plugin_dir=plugin,
        servers=servers,
        extra=["--include-hook-events"],
    )
    assert result.code == 0, result.stderr
    assert UNSCRIPTED not in result.stdout
    return result


def stops(result: Result) -> list[str]:
    """What each Stop hook of a session printed, oldest first."""
    return [
        str(message["stdout"]).strip()
        for message in result.messages
        if message.get("subtype") == "hook_response" and message["hook_name"] == "Stop"
    ]


def write(file: Path, content: str = "x = 1\n") -> Step:
    return use("Write", file_path=str(file), content=content)


def edit(file: Path, old: str, new: str) -> tuple[Step, Step]:
    """Claude Code changes no file that it has not read."""
    return (
        use("Read", file_path=str(file)),
        use("Edit", file_path=str(file), old_string=old, new_string=new),
    )


def data_of(env: dict[str, str]) -> Path:
    return Path(env["HOME"], ".local", "share", "backstory")


def prompt_in(block: str) -> str:
    """The prompt for the agent that a reason or a note proposes."""
    found = re.search(r"with prompt: '(.*)'", block)
    assert found, block
    return found[1]


@pytest.fixture
def asks_agent(env: dict[str, str]) -> None:
    env["BACKSTORY_CLAUDE_MD_ON_STOP"] = "agent"


# The whole way with `agent`


@pytest.mark.client
@pytest.mark.usefixtures("asks_agent")
def test_an_edit_is_in_the_next_sessions_claude_md_and_the_model_was_asked_once(
    project: Path, plugin: Path, env: dict[str, str], backstory: Command
) -> None:
    backstory("init", "--yes", "--offline")
    manual = (project / "CLAUDE.md").read_text().partition("<!-- MANUAL -->")[2]
    assert "Custom Notes" in manual
    steps = [
        *edit(project / "src" / "tower.py", "return to", "return to * 2"),
        *edit(project / "package.json", BUILD, LINT),
        say("edited"),
        agent(lambda model: prompt_in(model.blocks()[0])),
        say("the agent is at work"),
        say("CLAUDE.md is up to date"),
    ]
    with Keeper(project, *steps) as model:
        model.in_agent(SKILL, SYNC, SET, say("architecture rewritten"))
        result = talk(["raise the tower"], model, plugin, env, SERVERS)

    assert result.text == "CLAUDE.md is up to date"
    (block,) = model.blocks()
    assert "Agent tool" in block and "Task" in block and f"'{AGENT}'" in block
    assert "src/tower.py" in block and "package.json" in block
    said, *passed = stops(result)
    assert json.loads(said)["decision"] == "block"
    assert passed == ["", ""], "while the agent is at work, and when it is done"

    begun, read_skill, *_ = model.of_agent()
    assert prompt_in(block) in text_of(begun["messages"][0]["content"])
    assert "# Memory Processor" not in json.dumps(begun), "only who uses a skill pays for it"
    assert "# Memory Processor" in json.dumps(read_skill)
    told, was_set = model.results("Bash")
    assert json.loads(told)["files"][0]["sections"]["build-commands"] == "written"
    assert was_set.startswith("Section written: architecture in CLAUDE.md (")
    assert model.dirty.read_text() == ""
    text = (project / "CLAUDE.md").read_text()
    assert NEW in text and "npm run lint" in text and "npm run build" not in text
    assert text.partition("<!-- MANUAL -->")[2] == manual

    with Keeper(project, say("good morning")) as model:
        result = talk(["what is there?"], model, plugin, env)
    now = instructions(model.turn("what is there?"))
    assert "guides boats" in now and "npm run lint" in now and "npm run build" not in now
    assert stops(result) == [""]


@pytest.mark.client
@pytest.mark.usefixtures("asks_agent")
def test_the_model_is_told_which_prose_is_behind_and_what_a_person_wrote_stays(
    project: Path, plugin: Path, env: dict[str, str], backstory: Command
) -> None:
    backstory("init", "--yes", "--offline")
    backstory("claude-md", "section", "set", "architecture", stdin=NEW)
    file = project / "CLAUDE.md"
    file.write_text(file.read_text().replace("- Test: `npm test`", "- Test: ask Ada first"))
    before = file.read_bytes()
    edits = (write(project / "src" / "yard" / "crane.py"), *edit(project / "package.json", BUILD, LINT))
    steps = (*edits, say("edited"), agent(run_in_background=False), say("up to date"))
    with Keeper(project, *steps) as model:
        get = ours("backstory claude-md section get architecture --in CLAUDE.md")
        model.in_agent(SKILL, SYNC, get, say("the architecture is still true"))
        result = talk(["build a crane"], model, plugin, env)
    assert result.text == "up to date"
    told, text = model.results("Bash")
    found = json.loads(told)
    assert found["prose"] == [{"file": "CLAUDE.md", "section": "architecture", "because": ["+ `src/yard/`"]}]
    assert found["files"][0]["sections"]["build-commands"] == "offered"
    assert text == NEW.strip()
    assert file.read_bytes() == before
    assert model.dirty.read_text() == ""


@pytest.mark.client
@pytest.mark.usefixtures("asks_agent")
def test_in_ten_turns_no_change_is_told_twice_whatever_the_model_makes_of_it(
    project: Path, plugin: Path, env: dict[str, str], backstory: Command
) -> None:
    backstory("init", "--yes", "--offline")
    again = partial(use, "Edit", file_path=str(project / "src" / "ferry.py"))
    ferry, tug, gull = (project / "src" / f"{name}.py" for name in ("ferry", "tug", "gull"))
    turns: list[tuple[list[Step], set[str]]] = [
        ([say("hello")], set()),
        ([*edit(ferry, "return to", "return to * 2"), say("done"), say("I would rather not")], {"ferry"}),
        ([say("nothing new")], set()),
        ([*edit(tug, "return to", "return to * 2"), say("done"), say("later")], {"tug"}),
        ([again(old_string="* 2", new_string="* 3"), say("done")], set()),
        ([write(gull), say("done"), agent(run_in_background=False), say("all three")], {"gull"}),
        ([say("nothing new")], set()),
        (
            [again(old_string="* 3", new_string="* 4"), say("done"), say("no")],
            {"ferry"},
        ),
        ([use("Bash", command="cd src && mv gull.py owl.py"), say("done"), say("no")], {"gull", "owl"}),
        ([say("goodbye")], set()),
    ]
    with Keeper(project, *(step for steps, _ in turns for step in steps)) as model:
        model.in_agent(SKILL, SYNC, say("done"))
        model.between["all three"] = lambda: pending.append(model.dirty.read_text())
        pending: list[str] = []
        result = talk([f"turn {number}" for number in range(10)], model, plugin, env)

    assert pending == [""]
    assert [set(re.findall(r"\b(\w+)\.py", block)) for block in model.blocks()] == [
        names for _, names in turns if names
    ]
    assert len([said for said in stops(result) if said]) == 5
    assert len(stops(result)) == 10 + 5, "each turn ends once, and once more after a block"


# With `auto`, which nobody has to set


@pytest.mark.client
def test_ten_turns_of_edits_cost_no_request_and_show_nothing_where_no_prose_is_behind(
    project: Path, plugin: Path, env: dict[str, str], backstory: Command
) -> None:
    backstory("init", "--yes", "--offline")
    backstory("claude-md", "section", "set", "architecture", stdin=NEW)
    (project / ".gitignore").write_text("*.log\n")
    readme, ferry, tug = project / "README.md", project / "src" / "ferry.py", project / "src" / "tug.py"
    readme.write_text("# Harbour\n\nBoots in a harbour.\n")
    again = partial(use, "Edit", file_path=str(ferry))
    turns = [
        edit(ferry, "return to", "return to  # a comment"),
        edit(readme, "Boots", "Boats"),
        [write(project / "src" / "gull.py", "x = 1\ny = 2\nz = 3\n")],
        [write(project / "debug.log", "noise\n")],
        edit(project / "package.json", BUILD, LINT),
        edit(tug, "return to", "return to * 2"),
        [again(old_string="# a comment", new_string="# another comment")],
        [use("Bash", command="mv src/gull.py src/owl.py")],
        [use("Bash", command="rm src/owl.py")],
        [again(old_string="  # another comment", new_string="")],
    ]
    steps = [step for number, turn in enumerate(turns) for step in (*turn, say(f"turn {number} is done"))]
    with Keeper(project, *steps) as model:
        at = env | {"ANTHROPIC_BASE_URL": model.url}
        with at_terminal(cwd=project, env=at, plugin_dir=plugin) as claude:
            for number in range(10):
                claude.type(f"do number {number}")
                done = f"turn {number} is done"
                claude.wait(lambda done=done: done in re.sub(r"\s+", " ", claude.seen))  # type: ignore[misc]
                # The next prompt would bring what the sync has to say.
                assert eventually(lambda: model.dirty.read_text() == "" and not spooled(data_of(env)))
            claude.type("/exit")
            claude.process.wait(60)
        seen = re.sub(r"\s+", " ", claude.seen)
    assert len(model.turns()) == len(steps)
    assert "Stop hook error" not in seen and "hook feedback" not in seen and "Stop says" not in seen
    assert NOTE not in json.dumps(model.turns()[-1]["messages"])
    text = model.file.read_text()
    assert NEW in text and "npm run lint" in text and "npm run build" not in text


@pytest.mark.client
def test_one_agent_runs_over_several_turns_where_prose_is_behind(
    project: Path, plugin: Path, env: dict[str, str], backstory: Command
) -> None:
    backstory("init", "--yes", "--offline")
    backstory("claude-md", "section", "set", "architecture", stdin=NEW)
    yard, mine = project / "src" / "yard", "## Architecture Overview\n\nThe yard has a crane.\n"
    again = ours(f"backstory claude-md section set architecture\n{mine}")
    steps = [
        step
        for number in range(6)
        for step in (write(yard / f"crane_{number}.py", f"x = {number}\n"), say(f"crane {number} stands"))
    ]
    noted = data_of(env) / "notes"
    with Keeper(project, *steps) as model:
        model.in_agent(SKILL, SYNC, again, say("architecture rewritten"))
        model.when(agent(lambda model: prompt_in(model.note()), run_in_background=False), anywhere=NOTE)
        model.between["crane 1 stands"] = lambda: eventually(
            lambda: noted.is_dir() and bool(os.listdir(noted))
        )
        result = talk([f"build crane {number}" for number in range(6)], model, plugin, env)
    assert stops(result) == [""] * 6
    assert len(model.of_agent()) == 4, "the agent, once: its skill, the sync, the section, the summary"
    assert len(model.of_session()) == len(steps) + 1, "and one request for the agent"
    assert json.dumps(model.of_session()[-1]["messages"]).count(NOTE) == 1
    begun = text_of(model.of_agent()[0]["messages"][0]["content"])
    assert "Update these sections of CLAUDE.md: architecture in CLAUDE.md (+ src/yard/)" in begun
    (told, was_set) = model.results("Bash")
    assert json.loads(told)["prose"] == [
        {"file": "CLAUDE.md", "section": "architecture", "because": ["+ `src/yard/`"]}
    ]
    assert was_set.startswith("Section written: architecture in CLAUDE.md (")
    assert mine in model.file.read_text()
    assert os.listdir(noted) == []


# The agent, the skills and the commands by themselves


@pytest.mark.client
def test_claude_code_accepts_the_plugin_at_its_strictest(plugin: Path, env: dict[str, str]) -> None:
    for place in (REPOSITORY / ".claude-plugin" / "plugin.json", plugin):
        done = cli("plugin", "validate", "--strict", str(place), env=env)
        assert done.code == 0, done.stdout + done.stderr


def typed(command: str, model: Keeper, plugin: Path, env: dict[str, str]) -> Result:
    """A command as a user types it, who allows nothing beyond what it brings along."""
    stream = (
        "--output-format",
        "stream-json",
        "--verbose",
        "--plugin-dir",
        str(plugin),
        *without_other_servers(NO_SERVERS),
    )
    at = env | {"ANTHROPIC_BASE_URL": model.url}
    result = cli("-p", *stream, "--", command, env=at, cwd=model.file.parent)
    assert result.code == 0, result.stderr
    return result


@pytest.mark.client
def test_the_status_command_has_the_model_show_the_status(
    project: Path, plugin: Path, env: dict[str, str], backstory: Command
) -> None:
    backstory("init", "--yes", "--offline")
    (project / ".claude" / ".dirty-files").write_text(f"{project}/src/tower.py\n")

    def command(model: Keeper) -> str:
        said = text_of(model.turns()[-1]["messages"])
        found = re.search(r'Run `(sh "[^"]+/backstory\.sh" claude-md status)`', said)
        assert found
        return found[1]

    with Keeper(project, use("Bash", command=command), say("one is pending")) as model:
        typed("/backstory:memory-status", model, plugin, env)
    (shown,) = model.results("Bash")
    assert "src/tower.py" in shown and "CLAUDE.md" in shown


@pytest.mark.client
def test_the_init_command_has_the_model_look_first_and_ask(
    project: Path, plugin: Path, env: dict[str, str]
) -> None:
    (project / "CLAUDE.md").write_text("# Harbour\n")
    look = ours("backstory init --dry-run --json")
    with Keeper(project, use("Skill", skill=ANALYZER), look, say("may it be written?")) as model:
        typed("/backstory:memory-init", model, plugin, env)
    first, skill, _ = model.turns()
    assert "Invoke the backstory:codebase-analyzer skill" in text_of(first["messages"])
    assert "backstory init --yes --existing merge" in text_of(skill["messages"])
    (found,) = model.results("Bash")
    assert json.loads(found)["written"] is False
    assert (project / "CLAUDE.md").read_text() == "# Harbour\n"
    assert not (project / ".claude").exists()


@pytest.mark.client
def test_the_sync_command_renews_all_files(
    project: Path, plugin: Path, env: dict[str, str], backstory: Command
) -> None:
    backstory("init", "--yes", "--offline")
    file = project / "package.json"
    file.write_text(file.read_text().replace(BUILD, LINT))
    sync = ours("backstory sync --all --yes --json")
    with Keeper(project, SKILL, sync, SET, say("renewed")) as model:
        typed("/backstory:memory-sync", model, plugin, env)
    assert "`backstory sync --all`" in text_of(model.turns()[0]["messages"])
    text = model.file.read_text()
    assert "npm run lint" in text and NEW in text
