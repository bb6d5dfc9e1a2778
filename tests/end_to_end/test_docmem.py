"""Trees and live views with the real Claude Code: what reaches the model, when, and what stays in CLAUDE.md.

The client reads CLAUDE.md once, before it starts our server and before its SessionStart hooks run; what
changes later has to come with a prompt.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.end_to_end.test_memory import BIN, repository, rows
from tests.helpers.chaos import eventually
from tests.helpers.claude import SERVERS, Json, Result, converse, environment, killed, run
from tests.helpers.mcp_client import forked_backstory, serving
from tests.helpers.scripted_model import ScriptedModel, Step, say, text_of, use

OURS = "mcp__plugin_backstory_memory__docmem_"
CREATE, ADD, UPDATE = OURS + "create", OURS + "create_node", OURS + "update_content"
VIEW, DELETE, IMPORT = OURS + "view", OURS + "delete", OURS + "import"
HEADER = b"# DOCMEM Dynamic"
FENCED = re.compile(r'<backstory source="backstory docmem".*?</backstory>', re.DOTALL)
THEIRS = b"# Harbour\n\nBoats are blue here.\n"
CRLF = b"# Harbour\r\n\r\nBoats are blue here.\r\n\r\n```\r\n# DOCMEM Dynamic\r\n```\r\nno newline at the end"


class Harbour(ScriptedModel):
    """A model whose steps may look at what came before, and that sees CLAUDE.md as it is at each request.

    An argument of a tool that is a function is called with the model when its step is taken, and so is a
    function in `between`, with the words of a reply: something that happens while the session is alive."""

    def __init__(self, project: Path, *steps: Step) -> None:
        super().__init__(*steps)
        self.file = project / "CLAUDE.md"
        self.files: list[bytes] = []  # as it was at each request of the conversation
        self.between: dict[str, Callable[[], object]] = {}

    def __enter__(self) -> Harbour:
        super().__enter__()
        return self

    def answer(self, body: Json) -> Step:
        if body.get("tools"):
            self.files.append(self.file.read_bytes())
        step = super().answer(body)
        for block in step.blocks:
            if block["type"] == "text" and block["text"] in self.between:
                self.between[block["text"]]()
        return replace(step, blocks=tuple(map(self._filled, step.blocks)))

    def _filled(self, block: Json) -> Json:
        given = {
            name: value(self) if callable(value) else value for name, value in block.get("input", {}).items()
        }
        return {**block, "input": given} if "input" in block else block

    def turns(self) -> list[Json]:
        """The requests of the conversation; side questions offer no tools."""
        return [body for body in self.requests if body.get("tools")]

    def turn(self, prompt: str) -> Json:
        """The first request that has this prompt."""
        return next(body for body in self.turns() if prompt in json.dumps(body["messages"]))


def node(number: int) -> Callable[[Harbour], str]:
    """The id of the node that was created so many-th."""

    def found(model: Harbour) -> str:
        made = re.match(r"docmem_create_node: created ([a-z0-9]{8})\b", model.results(ADD)[number])
        assert made, model.results(ADD)[number]
        return made[1]

    return found


def add(content: str) -> Step:
    return use(
        ADD,
        target_id="harbour",
        content=content,
        context_type="note",
        context_name="boat",
        context_value="",
        mode="append-child",
    )


def told(body: Json) -> list[str]:
    """What was injected about views, oldest first; a request has all that was injected before it as well."""
    return FENCED.findall("\n".join(text_of(message["content"]) for message in body["messages"]))


def instructions(body: Json) -> str:
    """The CLAUDE.md that Claude Code put into a request."""
    found = [
        text
        for message in body["messages"]
        for block in (message["content"] if isinstance(message["content"], list) else [message["content"]])
        if "CLAUDE.md (project instructions" in (text := text_of(block))
    ]
    assert len(found) == 1
    return found[0]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = repository(tmp_path / "project")
    (folder / "CLAUDE.md").write_bytes(THEIRS)
    return folder


@pytest.fixture
def env(home: Path) -> dict[str, str]:
    variables = environment(home, "")
    variables["PATH"] = os.pathsep.join((forked_backstory(), str(BIN), variables["PATH"]))
    variables["BACKSTORY_SYNTHESIZER"] = "off"
    return variables


@pytest.fixture
def cold(env: dict[str, str]) -> dict[str, str]:
    """The server that is killed, or whose client is, was started as a user's is."""
    return env | {"PATH": env["PATH"].partition(os.pathsep)[2]}


def talk(
    prompts: Sequence[str],
    model: Harbour,
    project: Path,
    env: dict[str, str],
    servers: Sequence[str] = SERVERS,
) -> Result:
    at = env | {"ANTHROPIC_BASE_URL": model.url}
    result = converse(prompts, cwd=project, env=at, plugin_dir=REPOSITORY, servers=servers)
    assert result.code == 0, result.stderr
    return result


def backstory(project: Path, env: dict[str, str], *args: str) -> str:
    """A command in another terminal."""
    done = subprocess.run(
        [BIN / "backstory", *args],
        cwd=project,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def change(data: Path, project: Path, node_id: str, content: str) -> None:
    """An edit by another session's server."""
    with serving(data, project, "another-session", server="docmem", cwd=project) as other:
        other.ask("docmem_update_content", id=node_id, content=content)


def showing(last: Step) -> list[Step]:
    """A tree of two nodes is made and shown."""
    return [
        use(CREATE, root_id="harbour"),
        add("The ferry is blue."),
        add("The tug is red."),
        use(VIEW, action="add", node_id="harbour"),
        last,
    ]


@pytest.mark.client
@pytest.mark.parametrize("theirs", [THEIRS, CRLF], ids=["lf", "crlf"])
def test_every_change_of_a_view_reaches_the_model_once_and_nothing_stays_in_the_file(
    data: Path, project: Path, env: dict[str, str], theirs: bytes
) -> None:
    (project / "CLAUDE.md").write_bytes(theirs)
    repainted = [use(UPDATE, id=node(0), content="The ferry is green."), say("repainted")]
    rest = [*repainted, say("the ferry"), say("the tug"), say("nothing")]
    prompts = ["paint the boats", "paint the ferry", "what is new?", "and what now?", "anything else?"]
    with Harbour(project, *showing(say("shown")), *rest) as model:
        model.between["the ferry"] = lambda: change(data, project, node(1)(model), "The tug is yellow.")
        talk(prompts, model, project, env)

    assert [HEADER in file.removeprefix(theirs) for file in model.files] == [False] * 4 + [True] * 6
    assert all(file.startswith(theirs) for file in model.files)
    assert b"The ferry is blue." in model.files[4] and b"The ferry is green." in model.files[6]
    assert b"The tug is yellow." in model.files[8]
    assert (project / "CLAUDE.md").read_bytes() == theirs

    reply = model.results(VIEW)[0]
    assert "The ferry is blue." in reply and "The tug is red." in reply
    assert all("ferry" not in instructions(body) for body in model.turns()), "it was read at the start"
    assert told(model.turn("paint the ferry")) == []
    (ferry,) = told(model.turn("what is new?"))
    assert "The ferry is green." in ferry and "tug" not in ferry
    (_, tug) = told(model.turn("and what now?"))
    assert "The tug is yellow." in tug and "ferry" not in tug
    assert len(told(model.turn("anything else?"))) == 2

    assert {kind for (kind,) in rows(data, "SELECT kind FROM memories")} == {"turn"}
    with Harbour(project, say("good morning")) as model:
        talk(["what is there?"], model, project, env)
    first = model.turn("what is there?")
    assert told(first) == []
    assert "ferry" not in json.dumps(first).replace("paint the ferry", "")  # what the brief tells of before
    assert instructions(first).count("DOCMEM Dynamic") == theirs.count(b"DOCMEM Dynamic")
    assert (project / "CLAUDE.md").read_bytes() == theirs


@pytest.mark.client
def test_a_full_view_reaches_the_model_whole(project: Path, env: dict[str, str]) -> None:
    """Without a word from us Claude Code keeps a long reply in a file and shows the model its beginning."""
    last = "Boat 2999 is blue, has two masts and comes in the evening."
    boats = [last.replace("2999", str(number)) for number in range(3_000)]
    steps = (
        use(IMPORT, content="\n\n".join(boats), format="txt", root_id="harbour"),
        use(VIEW, action="add", node_id="harbour"),
        say("done"),
    )
    with Harbour(project, *steps) as model:
        talk(["keep the boats"], model, project, env)
        (reply,) = model.results(VIEW)
    assert len(reply) > 60_000
    assert reply.endswith(last)


def test_who_deletes_what_is_shown_is_heard_by_the_model(project: Path, env: dict[str, str]) -> None:
    with Harbour(project, *showing(say("shown")), say("no tug"), say("no harbour")) as model:
        delete = ("docmem", "delete", "--yes")
        model.between["shown"] = lambda: backstory(project, env, *delete, node(1)(model))
        model.between["no tug"] = lambda: backstory(project, env, *delete, "harbour")
        talk(["paint the boats", "what is left?", "and now?"], model, project, env)

    (tug,) = told(model.turn("what is left?"))
    assert f"No longer shown: {node(1)(model)}" in tug and "The ferry is blue." not in tug
    assert b"The ferry is blue." in model.files[5] and b"The tug is red." not in model.files[5]
    (_, harbour) = told(model.turn("and now?"))
    assert "## harbour\n\nThis node was deleted" in harbour
    assert model.files[6] == THEIRS, "nothing is left to show"


@pytest.mark.client
def test_a_cleared_session_is_told_of_changes_as_well(data: Path, project: Path, env: dict[str, str]) -> None:
    with Harbour(project, *showing(say("shown")), say("green"), say("yellow"), say("still")) as model:
        model.between["shown"] = lambda: change(data, project, node(0)(model), "The ferry is green.")
        model.between["green"] = lambda: change(data, project, node(0)(model), "The ferry is yellow.")
        prompts = ["paint the boats", "/clear", "which colour?", "which colour now?", "and now?"]
        talk(prompts, model, project, env, SERVERS)

    first = model.turn("which colour?")
    assert CREATE not in json.dumps(first["messages"][:-1]), "nothing of the conversation before is in it"
    assert "The ferry is green." in instructions(first), "a cleared session reads CLAUDE.md anew"
    later = told(model.turn("which colour now?"))
    assert "The ferry is yellow." in later[-1]
    assert told(model.turn("and now?")) == later
    assert (project / "CLAUDE.md").read_bytes() == THEIRS


@pytest.mark.client
def test_a_client_that_is_killed_leaves_nothing_in_the_file(project: Path, cold: dict[str, str]) -> None:
    with Harbour(project, *showing(use("Bash", command="kill -9 $PPID"))) as model:
        at = cold | {"ANTHROPIC_BASE_URL": model.url}
        result = run("paint the boats", cwd=project, env=at, plugin_dir=REPOSITORY, servers=SERVERS)
    assert result.code == -9
    assert HEADER in model.files[-1]
    assert eventually(lambda: (project / "CLAUDE.md").read_bytes() == THEIRS)


@pytest.mark.client
def test_what_a_server_left_that_was_killed_is_gone_once_the_next_one_runs(
    project: Path, env: dict[str, str], cold: dict[str, str]
) -> None:
    file = project / "CLAUDE.md"
    with Harbour(project, *showing(say("shown").after(20))) as model:
        at = cold | {"ANTHROPIC_BASE_URL": model.url}
        killed(
            "paint the boats",
            lambda: len(model.files) == 5,
            cwd=project,
            env=at,
            plugin_dir=REPOSITORY,
            servers=SERVERS,
        )
    assert HEADER in file.read_bytes()

    with Harbour(project, say("good morning"), say("clean")) as model:
        # The first request does not wait for the servers.
        model.between["good morning"] = lambda: eventually(lambda: file.read_bytes() == THEIRS)
        talk(["what is there?", "/clear", "and now?"], model, project, env)
    # The client had read the file before it started the server; what it reads from now on is clean.
    assert "The ferry is blue." in instructions(model.turn("what is there?"))
    assert model.files[-1] == file.read_bytes() == THEIRS
    assert "The ferry" not in json.dumps(model.turn("and now?"))

    with Harbour(project, say("good morning")) as model:
        talk(["what is there?"], model, project, env)
    assert "The ferry" not in json.dumps(model.turn("what is there?"))
