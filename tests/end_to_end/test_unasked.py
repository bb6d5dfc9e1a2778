"""What `/backstory:memory-init` and `:memory-sync` may have a model run unasked, in the real Claude Code with
its real rules: a request that the model wrote, about the project of its session. All else is asked about,
which without a person means refused, or is refused by backstory.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from backstory.surfaces.cli.install import lay_out
from tests.end_to_end.test_memory import git, repository
from tests.helpers.claude import NO_SERVERS, cli, environment, without_other_servers
from tests.helpers.scripted_model import ScriptedModel, say, use

pytestmark = [pytest.mark.slow, pytest.mark.client]

SET = "claude-md section set architecture --add"
TEXT = '## Architecture Overview\n\nThe tower\'s "lamp" $(x) `y` | > ; & \\n guides boats, für immer.\n'
IGNORED, OUTSIDE, PLANTED = "the ignored password", "the owner's letter", "planted by the repository"
WRITTEN = "Section written: architecture"

# @ is the command that is allowed, TOP the folder around the project.
ATTACKS = {
    "a file outside": f"@ <<'E'\n{SET} --file TOP/letter.txt\nE",
    "a file, as an argument": "@ --file TOP/letter.txt",
    "a link to a file outside": f"@ <<'E'\n{SET} --file link.txt\nE",
    "an ignored file": f"@ <<'E'\n{SET} --file ignored.txt\nE",
    "< a file outside": "@ < TOP/letter.txt",
    "< a link outside": "@ < link.txt",
    "< an ignored file": "@ < ignored.txt",
    "< a request that lies in the repository": "@ < planted.txt",
    "a request that lies in the repository, through a pipe": "cat planted.txt | @",
    "a file outside, through a pipe": "cat TOP/letter.txt | @",
    "a link, through a pipe": "cat link.txt | @",
    "an ignored file, through a pipe": "cat ignored.txt | @",
    "an ignored file below a request of the repository": "cat planted.txt ignored.txt | @",
    "an ignored file below a request": f"echo '{SET}' | cat - ignored.txt | @",
    "git's output, through a pipe": "git show HEAD:planted.txt | @",
    "$(...) in a here-document": f"@ <<E\n{SET}\n$(cat ignored.txt)\nE",
    "backticks in a here-document": f"@ <<E\n{SET}\n`cat ignored.txt`\nE",
    "a variable in a here-document": f"@ <<E\n{SET}\n$ANTHROPIC_API_KEY\nE",
    "$(...) in a here-string": '@ <<< "$(cat ignored.txt)"',
    "<(...)": "@ < <(cat ignored.txt)",
    "$(...) as an argument": "@ $(touch pwned)",
    "backticks as an argument": "@ `touch pwned`",
    "names of files as arguments": "@ TOP/*",
    "; another command": "@ <<'E'\nclaude-md status\nE\ntouch pwned",
    "&& another command": "@ && touch pwned",
    "&& behind the here-document": "@ <<'E' && touch pwned\nclaude-md status\nE",
    "& another command": "@ & touch pwned",
    "| sh": "@ | sh",
    "| tee": "@ | tee pwned",
    "> a file": "@ > pwned",
    ">> a file outside": "@ >> TOP/pwned",
    "another project": f"@ <<'E'\n{SET} --project TOP/other\nevil\nE",
    "init in another project": "@ <<'E'\ninit --yes --offline --project TOP/other --command 'test=evil'\nE",
    "sync in another project": "@ <<'E'\nsync --yes --project TOP/other\nE",
    "a file of another project": f"@ <<'E'\n{SET} --in ../other/CLAUDE.md\nevil\nE",
    "a file that is no CLAUDE.md": f"@ <<'E'\n{SET} --in README.md\nevil\nE",
    "a linked folder": f"@ <<'E'\n{SET} --in linked/CLAUDE.md\nevil\nE",
    "a linked file": f"@ <<'E'\n{SET} --in docs/CLAUDE.md\nevil\nE",
    "reading a linked file": "@ <<'E'\nclaude-md section get architecture --in docs/CLAUDE.md\nE",
    "a linked folder as a subtree": "@ <<'E'\ninit --yes --offline --subtree linked\nE",
    "another folder that the session may use": "cd TOP/other && @ <<'E'\ninit --yes --offline\nE",
    "another session": "CLAUDE_CODE_SESSION_ID=x @ <<'E'\nclaude-md status\nE",
    "another store": "BACKSTORY_HOME=TOP @ <<'E'\nclaude-md status\nE",
    "another command of backstory": "@ <<'E'\nerase --everything --yes\nE",
    "another command of backstory, as arguments": "@ erase --everything --yes",
}
# As a skill has them; what each answers.
HONEST = {
    "init --yes --offline --no-subtrees": "Written: CLAUDE.md",
    f"{SET}\n{TEXT}": WRITTEN,
    f"claude-md section set architecture\n{TEXT}{'It goes on for long. ' * 400}": WRITTEN,
    "backstory claude-md section get architecture": "The tower's",
    "sync --all --offline --yes --json": '"prose"',
    "claude-md status": "architecture",
}


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A project with what attacks need, and another one beside it."""
    project = repository(tmp_path / "harbour")
    (project / "package.json").write_text(json.dumps({"name": "harbour", "scripts": {"test": "vitest run"}}))
    (project / ".gitignore").write_text("ignored.txt\n")
    (project / "planted.txt").write_text(f"{SET}\n{PLANTED}\n")
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "A harbour")
    shutil.copytree(project, tmp_path / "other")
    (project / "ignored.txt").write_text(IGNORED)
    (tmp_path / "letter.txt").write_text(OUTSIDE)
    (tmp_path / "letter.md").write_text(
        f"<!-- AUTO-MANAGED: architecture -->\n{OUTSIDE}\n<!-- END AUTO-MANAGED -->\n"
    )
    (project / "link.txt").symlink_to(tmp_path / "letter.txt")
    (project / "linked").symlink_to(tmp_path / "other")
    (project / "docs").mkdir()
    (project / "docs" / "CLAUDE.md").symlink_to(tmp_path / "letter.md")
    lay_out(str(tmp_path / "the plugin"))
    return tmp_path


def session(top: Path, typed: str, *commands: str) -> list[tuple[bool, str]]:
    """A session in the default permission mode, that may use the other project's folder too; of each command
    whether it was refused, and what the model was told."""
    plugin = top / "the plugin"
    allowed = f'sh "{plugin}/src/backstory/plugin/bin/backstory.sh" claude-md request'
    steps = [
        use("Bash", command=command.replace("@", allowed, 1).replace("TOP", str(top))) for command in commands
    ]
    with ScriptedModel(*steps, say("done")) as model:
        env = environment(top / "home", model.url)
        places = env["PATH"].split(os.pathsep)
        env["PATH"] = os.pathsep.join(place for place in places if not Path(place, "backstory").exists())
        env |= {"BACKSTORY_SYNTHESIZER": "off", "BACKSTORY_EMBEDDER": "off"}
        options = ["-p", "--output-format", "stream-json", "--verbose", "--plugin-dir", str(plugin)]
        options += ["--add-dir", str(top / "other"), *without_other_servers(NO_SERVERS)]
        result = cli(*options, "--", typed, env=env, cwd=top / "harbour", timeout=240)
        assert result.code == 0, result.stderr
        messages = [body for body in model.requests if body.get("tools")][-1]["messages"]
    blocks = [block for message in messages for block in message["content"] if isinstance(block, dict)]
    results = [block for block in blocks if block.get("type") == "tool_result"]
    assert len(results) == len(commands)
    return [(bool(one.get("is_error")), json.dumps(one["content"])) for one in results]


def files(folder: Path) -> dict[str, bytes]:
    """All files in a folder, but for what the client and the program keep themselves."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not {".git", "home", "the plugin"}.intersection(path.relative_to(folder).parts)
    }


@pytest.mark.parametrize("command", ["memory-init", "memory-sync"])
def test_nothing_but_a_request_that_the_model_wrote_about_its_own_project_runs_unasked(
    top: Path, command: str
) -> None:
    before = files(top)
    results = session(top, f"/backstory:{command}", *ATTACKS.values())
    let_through = [name for name, (is_refused, _) in zip(ATTACKS, results, strict=True) if not is_refused]
    assert let_through == []
    assert files(top) == before
    for _, said in results:
        assert not any(secret in said for secret in (IGNORED, OUTSIDE, PLANTED))


@pytest.mark.parametrize("command", ["memory-init", "memory-sync"])
def test_what_the_skills_need_runs_unasked(top: Path, command: str) -> None:
    (top / "harbour" / "docs" / "CLAUDE.md").unlink()
    commands = [f"@ <<'END_OF_REQUEST'\n{request}\nEND_OF_REQUEST" for request in HONEST]
    results = session(top, f"/backstory:{command}", *commands)
    for (is_refused, said), expected in zip(results, HONEST.values(), strict=True):
        assert not is_refused and json.dumps(expected)[1:-1] in said, said
    text = (top / "harbour" / "CLAUDE.md").read_text()
    assert TEXT in text and "npm test" in text


def test_a_status_is_shown_unasked_of_no_other_project(top: Path) -> None:
    launcher = f'sh "{top}/the plugin/src/backstory/plugin/bin/backstory.sh" claude-md status'
    results = session(top, "/backstory:memory-status", launcher, f"{launcher} --project TOP/other", "@")
    assert ["approval" in said for _, said in results] == [False, True, True]
