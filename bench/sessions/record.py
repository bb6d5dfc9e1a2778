"""Record the sessions in this folder: the real Claude Code, a scripted model, real commands, real code.

    python bench/sessions/record.py                       # all of them
    python bench/sessions/record.py bug_hunt_cents.py     # one

A session is three files. `name.py` says what happens, in the words of scenario.py; it is carried out by the
Claude Code that the tests drive, with a plugin whose hooks save what they are given. `name.jsonl` is what
they were given: a payload a line, as the client sent it, except that folders and the session's id are
replaced by others that are the same on every machine, and that `at` is added, the time of the event in ms.
`name.expected.json` is written by hand and says what a colleague would want to be remembered of it.

A recording that did not go as it was written, that is where a tool was refused or the script ran dry, is not
kept. Look at the commands that failed all the same: only you know which of them were meant to.
"""

from __future__ import annotations

import json
import os
import random
import re
import runpy
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from scenario import Scenario, Step

from tests.helpers.claude import converse, environment
from tests.helpers.scripted_model import UNSCRIPTED, ScriptedModel, say

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
EVENTS = (
    "SessionStart UserPromptSubmit PostToolUse PostToolUseFailure PreCompact PostCompact"
    " Stop SubagentStop SessionEnd".split()
)
MANIFEST = {"name": "tap", "version": "1.0.0", "description": "Saves what hooks are given."}
# Seconds from the event before to this one: people think longer than machines.
PAUSES = {
    "SessionStart": (1, 2),
    "UserPromptSubmit": (25, 240),
    "PostToolUse": (3, 22),
    "PostToolUseFailure": (3, 22),
    "Stop": (5, 18),
    "SessionEnd": (4, 90),
}
LONGEST = 8_000  # characters of one string; what is cut is noise

Payload = dict[str, Any]


def main() -> int:
    given = [HERE / name for name in sys.argv[1:]]
    for path in given or sorted(HERE.rglob("*_*.py")):
        scenario: Scenario = runpy.run_path(str(path))["SCENARIO"]
        payloads = record(scenario)
        kept = path.with_suffix(".jsonl")
        lines = [json.dumps(payload, ensure_ascii=False) for payload in tidy(path.stem, scenario, payloads)]
        kept.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        print(f"{kept.relative_to(HERE)}: {len(lines)} events")
    return 0


def record(scenario: Scenario) -> list[Payload]:
    with tempfile.TemporaryDirectory(prefix="backstory-record-") as folder:
        top = Path(folder).resolve()
        project = top / "projects" / scenario.project
        _lay_out(project, scenario)
        saved = _tap(top / "tap")

        def there(text: str) -> str:
            return text.replace(scenario.root, str(project))

        steps = [_moved(step, there) for each in scenario.turns for step in each.steps]
        with ScriptedModel(*steps) as model:
            for each in scenario.turns:
                if each.compacted:
                    reply = say(
                        f"<analysis>\nLooked back.\n</analysis>\n<summary>\n{each.compacted}\n</summary>"
                    )
                    model.when(reply, last_user="create a detailed summary of")
            model.when(*(_moved(step, there) for step in scenario.subagent), system="cc_is_subagent=true")
            env = environment(top / "home", model.url) | _git_identity(scenario)
            env["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), env["PATH"]))
            prompts = [there(each.prompt) for each in scenario.turns]
            result = converse(prompts, cwd=project, env=env, plugin_dir=top / "tap", timeout=180)
            url = model.url
        assert result.code == 0, result.stderr
        payloads = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(saved.iterdir())]
        _check(scenario, payloads)
        text = json.dumps(payloads, ensure_ascii=False)
        for real, shown in _places(top, project, scenario):
            text = text.replace(real, shown)
        for leak in (
            str(top),
            str(REPOSITORY),
            "/root/",
            socket.gethostname(),
            url,
            str(top).replace("/", "-"),
        ):
            assert leak not in text, (
                f"{leak} is in the recording: {text[max(0, text.index(leak) - 200) :][:400]}"
            )
        cleaned: list[Payload] = json.loads(text)
        return cleaned


def tidy(name: str, scenario: Scenario, payloads: list[Payload]) -> list[Payload]:
    """The payloads with ids and times that do not depend on the recording."""
    generator = random.Random(name)  # noqa: S311  the same pauses in every recording
    at = int(datetime.fromisoformat(scenario.began).replace(tzinfo=UTC).timestamp() * 1000)
    session = str(uuid.uuid5(uuid.NAMESPACE_URL, f"https://backstory.invalid/sessions/{name}"))
    text = json.dumps(payloads, ensure_ascii=False).replace(payloads[0]["session_id"], session)
    renamed: list[Payload] = json.loads(text)
    for place, payload in enumerate(renamed):
        if place:
            low, high = PAUSES.get(payload["hook_event_name"], (0, 1))
            at += round(generator.uniform(low, high) * 1000) + int(payload.get("duration_ms", 0))
        payload["at"] = at
    return [_shortened(payload) for payload in renamed]


def _lay_out(project: Path, scenario: Scenario) -> None:
    for name, content in scenario.files.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content.lstrip("\n"), encoding="utf-8")
        if content.lstrip().startswith("#!"):
            path.chmod(0o755)
    if not scenario.git:
        return
    env = {**os.environ, **_git_identity(scenario)}
    for command in (
        ["init", "-q", "-b", "main"],
        ["add", "-A"],
        ["commit", "-q", "-m", scenario.first_commit],
    ):
        subprocess.run(["git", *command], cwd=project, env=env, check=True)


def _git_identity(scenario: Scenario) -> dict[str, str]:
    who = {"NAME": "dev", "EMAIL": "dev@example.org", "DATE": f"{scenario.began}+0000"}
    roles = ("AUTHOR", "COMMITTER")
    return {f"GIT_{role}_{name}": value for role in roles for name, value in who.items()} | {
        "GIT_CONFIG_GLOBAL": os.devnull
    }


def _tap(plugin: Path) -> Path:
    """A plugin whose hooks keep what they are given, named by the time they were given it."""
    saved = plugin / "saved"
    saved.mkdir(parents=True)
    (plugin / ".claude-plugin").mkdir()
    (plugin / ".claude-plugin" / "plugin.json").write_text(json.dumps(MANIFEST))
    hook = {"type": "command", "command": f'cat >"{saved}/$(date +%s%N)-$$"', "timeout": 10}
    (plugin / "hooks").mkdir()
    (plugin / "hooks" / "hooks.json").write_text(
        json.dumps({"hooks": {event: [{"hooks": [hook]}] for event in EVENTS}})
    )
    return saved


def _moved(step: Step, there: Callable[[str], str]) -> Step:
    return Step(tuple(json.loads(there(json.dumps(step.blocks)))))


def _check(scenario: Scenario, payloads: list[Payload]) -> None:
    steps = [*scenario.subagent, *(step for each in scenario.turns for step in each.steps)]
    meant = [block["name"] for step in steps for block in step.blocks if block["type"] == "tool_use"]
    used = [payload["tool_name"] for payload in payloads if "tool_name" in payload]
    assert sorted(used) == sorted(meant), f"these were used: {used}\nand these were meant: {meant}"
    assert UNSCRIPTED not in json.dumps(payloads), "the script is too short"
    for payload in payloads:
        if payload["hook_event_name"] == "PostToolUseFailure":
            shown = " ".join(str(payload["tool_input"].get("command", payload["tool_input"])).split())
            print(f"  failed: {shown[:90]}: {' '.join(payload['error'].split())[:110]}")


def _places(top: Path, project: Path, scenario: Scenario) -> list[tuple[str, str]]:
    """What stands in the recording for the places of this machine, the deepest first."""
    return [
        (_slug(str(project)), _slug(scenario.root)),
        (str(project), scenario.root),
        (str(top / "home" / "tmp"), "/tmp"),  # noqa: S108
        (str(top / "home"), "/home/dev"),
        (sys.prefix, "/home/dev/.venv"),
        (sys.base_prefix, "/usr"),
        (os.path.realpath(sys.base_prefix), "/usr"),
    ]


def _slug(path: str) -> str:
    """As the client names the folder that it keeps for a project."""
    return re.sub(r"[^A-Za-z0-9]", "-", path)


def _shortened(part: Any) -> Any:
    if isinstance(part, str) and len(part) > LONGEST:
        return f"{part[: LONGEST // 2]}\n[... {len(part) - LONGEST} characters ...]\n{part[-LONGEST // 2 :]}"
    if isinstance(part, list):
        return [_shortened(inner) for inner in part]
    if isinstance(part, dict):
        return {name: _shortened(inner) for name, inner in part.items()}
    return part


if __name__ == "__main__":
    sys.exit(main())
