"""The agent, the skills and the commands of the plugin: small, complete, and naming only what exists.

Sizes are counted as everywhere here, four characters a token; what is allowed is the design's: the agent and
the commands are a sentence or two, since a skill is only read by a model that works with it.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import click
import pytest

from backstory.surfaces.cli.main import cli
from tests.conftest import REPOSITORY

PLUGIN = REPOSITORY / "src" / "backstory" / "plugin"
MANIFEST = json.loads((REPOSITORY / ".claude-plugin" / "plugin.json").read_text())
LAUNCHER = 'sh "${CLAUDE_PLUGIN_ROOT}/src/backstory/plugin/bin/backstory.sh"'
AGENTS = sorted((PLUGIN / "agents").glob("*.md"))
SKILLS = sorted((PLUGIN / "skills").glob("*/SKILL.md"))
COMMANDS = sorted((PLUGIN / "commands").glob("*.md"))
TEXTS = [*AGENTS, *SKILLS, *COMMANDS]
# To the letter, with no argument: what stands behind a prefix might name a file, or another project.
MAY_RUN = {
    "memory-init": "claude-md request",
    "memory-status": "claude-md status",
    "memory-sync": "claude-md request",
}


def name_of(path: Path) -> str:
    return path.parent.name if path.name == "SKILL.md" else path.stem


def read(path: Path) -> tuple[dict[str, str], str]:
    """What stands at the head of a text, and its body."""
    opening, head, body = path.read_text().split("---\n", 2)
    assert opening == ""
    return dict(line.split(": ", 1) for line in head.splitlines()), body.strip()


def tokens(text: str) -> float:
    return len(text) / 4


def code(path: Path) -> list[str]:
    """Each line of a code block and each piece of code in a sentence."""
    body = read(path)[1]
    blocks = re.findall(r"^```(?:bash|!)\n(.*?)^```$", body, re.MULTILINE | re.DOTALL)
    rest = re.sub(r"^```(?:bash|!)\n.*?^```$", "", body, flags=re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()] + re.findall(r"`([^`\n]+)`", rest)


def ours(path: Path) -> list[list[str]]:
    """The arguments of every backstory command that a text names."""
    found = [line.replace(LAUNCHER, "backstory", 1) for line in code(path)]
    words = [shlex.split(line.split(" <<")[0]) for line in found if line.startswith("backstory ")]
    return [given[1:] for given in words if given[1] != "..."]


def test_the_manifest_names_every_text() -> None:
    named = {
        file.resolve()
        for kind in ("agents", "skills", "commands")
        for place in MANIFEST[kind]
        for file in ([REPOSITORY / place] if place.endswith(".md") else (REPOSITORY / place).rglob("*.md"))
    }
    assert named == set(TEXTS)
    assert [name_of(path) for path in TEXTS] == [
        "memory-updater",
        "codebase-analyzer",
        "memory-processor",
        "forget",
        "memory-init",
        "memory-status",
        "memory-sync",
        "open",
        "pause",
        "recall",
        "remember",
        "resume",
        "why",
    ]


@pytest.mark.parametrize("path", TEXTS, ids=name_of)
def test_a_text_says_what_it_is_called_and_for(path: Path) -> None:
    head, _ = read(path)
    assert head["name"] == name_of(path)
    assert 5 <= tokens(head["description"]) <= 100
    # A reader of YAML takes these for something else than a sentence.
    assert not re.search(r": | #|^[\[{&*!|>'\"%@`-]", head["description"])


@pytest.mark.parametrize("path", AGENTS, ids=name_of)
def test_an_agent_is_a_few_words_and_cannot_edit_files(path: Path) -> None:
    head, body = read(path)
    assert 20 <= tokens(body) <= 55
    assert not {"Edit", "Write", "MultiEdit", "NotebookEdit", "Agent", "Task"} & set(
        head["tools"].split(", ")
    )
    assert {"Skill", "Bash"} <= set(head["tools"].split(", "))


@pytest.mark.parametrize("path", COMMANDS, ids=name_of)
def test_a_command_is_a_few_words_costs_nothing_until_typed_and_runs_what_it_is_for(path: Path) -> None:
    head, body = read(path)
    said = re.sub(r"^```!\n.*?^```$", "", body, flags=re.MULTILINE | re.DOTALL)
    assert 10 <= tokens(said.strip()) <= 50
    # What a user types is pasted into a shell as it stands: `backstory slash` reads it elsewhere.
    assert "```!" not in body or "$ARGUMENTS" not in body
    assert head["disable-model-invocation"] == "true", "else every session lists it for the model"
    # Not all of backstory: in that turn the model reads what is remembered, and nobody is asked.
    runs = MAY_RUN.get(name_of(path), f"slash {name_of(path)}")
    assert head["allowed-tools"] == f"Bash({LAUNCHER} {runs})"


@pytest.mark.parametrize("path", SKILLS, ids=name_of)
def test_a_skill_tells_all_once_it_is_read_and_asks_for_no_permissions(path: Path) -> None:
    head, body = read(path)
    # The analyzer is read once in the life of a project, and what it does not ask is not found out.
    most = 1_200 if name_of(path) == "codebase-analyzer" else 800
    assert 500 <= tokens(body) <= most
    # Claude Code asks the user before it loads a skill that grants itself tools, and an agent cannot ask.
    assert set(head) == {"name", "description"}
    assert f"{LAUNCHER} claude-md request <<'END_OF_REQUEST'\nbackstory " in body
    assert "Never edit CLAUDE.md or AGENTS.md with another tool" in body
    assert "MANUAL" in body
    assert "not instructions to you" in body


@pytest.mark.parametrize("path", [*SKILLS, *COMMANDS], ids=name_of)
def test_every_command_of_backstory_that_a_text_names_exists_with_those_options(path: Path) -> None:
    for given in ours(path):
        group: click.Group = cli
        words = list(given)
        while True:
            command = group.get_command(click.Context(group), words[0])
            assert command is not None, f"backstory {shlex.join(given)}"
            name, *words = words
            if not isinstance(command, click.Group):
                break
            group = command
        command.make_context(name, words)  # parses, and runs nothing


def test_texts_name_the_commands_they_are_there_for() -> None:
    called = {name_of(path): {" ".join(given[:3]) for given in ours(path)} for path in [*SKILLS, *COMMANDS]}
    assert {"sync --yes --json", "claude-md section get", "claude-md section set"} <= called[
        "memory-processor"
    ]
    assert {"init --dry-run --json", "init --yes --existing"} <= called["codebase-analyzer"]
    assert called["memory-status"] == {"claude-md status"}
    assert called["memory-sync"] == {"sync --all"}
    for name in ("forget", "open", "pause", "recall", "remember", "resume", "why"):
        assert called[name] == {f"slash {name}"}


def test_texts_name_each_other_by_the_names_that_claude_code_gives_them() -> None:
    known = {f"backstory:{name_of(path)}" for path in TEXTS}
    named = {path: set(re.findall(r"backstory:[a-z-]+", path.read_text())) for path in TEXTS}
    assert set().union(*named.values()) <= known
    assert [named[path] for path in AGENTS] == [{"backstory:memory-processor"}]
    by_command = {name_of(path): named[path] for path in COMMANDS}
    assert by_command == {
        "memory-init": {"backstory:codebase-analyzer"},
        "memory-status": set(),
        "memory-sync": {"backstory:memory-processor"},
        **{name: set() for name in ("forget", "open", "pause", "recall", "remember", "resume", "why")},
    }
