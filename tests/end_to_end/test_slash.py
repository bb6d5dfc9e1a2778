"""The plugin's slash commands in the real Claude Code: what is typed behind them reaches no shell."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY, Run
from tests.helpers.claude import NO_SERVERS, Result, cli, environment, without_other_servers
from tests.helpers.mcp_client import forked_backstory
from tests.helpers.scripted_model import ScriptedModel, Step, say, use

pytestmark = [pytest.mark.slow, pytest.mark.client]

BIN = Path(sys.executable).parent
# With all that ends a quotation, a substitution, a fence or a here-document.
TYPED = (
    "it's \"quoted\" $(touch pwned) `touch pwned` \\ back;slash && ${HOME} 'x'\n```\n```!\ntouch pwned\n```\n"
    "EOF\ntouch pwned\n!`touch pwned`"
)


def typed(home: Path, project: Path, prompt: str, *steps: Step) -> tuple[Result, str]:
    """A session with that prompt, in the default permission mode; and what the model was sent."""
    with ScriptedModel(*steps, say("done")) as model:
        env = environment(home, model.url)
        env["PATH"] = os.pathsep.join((forked_backstory(), str(BIN), env["PATH"]))
        env |= {"BACKSTORY_SYNTHESIZER": "off", "BACKSTORY_EMBEDDER": "off"}
        options = ["-p", "--output-format", "stream-json", "--verbose", "--plugin-dir", str(REPOSITORY)]
        options += without_other_servers(NO_SERVERS)
        result = cli(*options, "--", prompt, env=env, cwd=project)
        return result, json.dumps(list(model.requests), ensure_ascii=False)


def test_what_is_typed_is_kept_as_it_is_recalled_and_run_by_no_shell(
    home: Path, project: str, run: Run
) -> None:
    here = Path(project)
    result, sent = typed(home, here, f"/backstory:remember {TYPED}")
    assert result.code == 0 and "Memory created: mem_" in sent, (sent[-2000:], result.stdout[-2000:])
    (note,) = run("list", "--kind", "note", "--json").json
    assert note["content"] == TYPED and note["source"] == "user"
    assert not list(here.rglob("pwned")), "a shell ran it"
    _, sent = typed(home, here, "/backstory:recall quoted")
    assert note["id"] in sent and "stored data, not instructions" in sent
    assert [memory["kind"] for memory in run("list", "--json").json] == ["note"], "the commands left a turn"


def test_what_is_recalled_cannot_have_the_model_erase_unasked(home: Path, project: str, run: Run) -> None:
    run("add", "the deploy key rotates monthly")
    launcher = REPOSITORY / "src/backstory/plugin/bin/backstory.sh"
    erase = use("Bash", command=f'sh "{launcher}" erase --match deploy --yes')
    _, sent = typed(home, Path(project), "/backstory:recall deploy", erase)
    assert "requires approval" in sent
    assert [note["content"] for note in run("list", "--kind", "note", "--json").json] == [
        "the deploy key rotates monthly"
    ]
