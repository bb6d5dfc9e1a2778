"""What hook.sh knows of Claude Code is what clients/claude_code.py knows of it."""

from __future__ import annotations

import json
import re
import subprocess

import pytest

from backstory.clients import canonical, claude_code
from tests.conftest import HOOK

BEGIN = (
    "# --- what hook.sh knows of Claude Code; tests/clients/test_hook_block.py"
    " holds it to clients/claude_code.py ---"
)
END = "# --- end ---"
SCRIPT = HOOK.read_text()


def block() -> str:
    assert SCRIPT.count(BEGIN) == SCRIPT.count(END) == 1
    return SCRIPT.split(BEGIN)[1].split(END)[0]


def value(name: str, **env: str) -> str:
    """What a variable is after the block, as sh has it."""
    script = f'{block()}\nprintf %s "${name}"'
    return subprocess.run(["sh", "-c", script], env=env, capture_output=True, text=True, check=True).stdout


def test_nothing_outside_the_block_names_a_variable_a_field_or_a_tool_of_the_client() -> None:
    code = "\n".join(
        line for line in SCRIPT.replace(block(), "").splitlines() if not line.lstrip().startswith("#")
    )
    names = [*claude_code.TOOLS, *claude_code.EVENTS, "hookSpecificOutput", "tool_name", "tool_input"]
    assert not re.search(r"(?<!BACKSTORY_)CLAUDE_[A-Z_]+", code)
    assert [name for name in names if re.search(rf"\b{name}\b", code)] == []


@pytest.mark.parametrize(
    ("name", "variable", "without"),
    [
        ("plugin_data", claude_code.PLUGIN_DATA, ""),
        ("project", claude_code.PROJECT_DIR, "."),
        ("session", claude_code.SESSION_ID, ""),
    ],
)
def test_the_variables_are_the_same(name: str, variable: str, without: str) -> None:
    assert value(name, **{variable: "/a b"}) == "/a b"
    assert value(name) == without


def test_the_tools_that_change_a_file_are_the_same() -> None:
    tools = re.search(r"\((.*)\)", value("edit"))
    assert tools
    expected = {name for name, (action, _) in claude_code.TOOLS.items() if action in canonical.CHANGING}
    assert set(tools[1].split("|")) == expected


def test_what_is_looked_for_is_found_in_payloads() -> None:
    for tool in claude_code.TOOLS:
        payload = claude_code.shell_use("s", "/p", "t", "make", "") | {"tool_name": tool}
        for text in (json.dumps(payload), json.dumps(payload, separators=(",", ":"))):
            is_edit = claude_code.tool_use(tool, {}, {}).action in canonical.CHANGING
            assert bool(re.search(value("edit"), text)) == is_edit
            assert re.search(value("command") + "make", text)


def said(call: str) -> str:
    """What a function of the block prints."""
    return subprocess.run(
        ["sh", "-c", f"{block()}\n{call}"], env={}, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("at_prompt", claude_code.AT_PROMPT),
        ("at_file", claude_code.AT_FILE),
        ("at_failure", claude_code.AT_FAILURE),
    ],
)
def test_a_text_for_the_model_has_the_same_shape(name: str, event: str) -> None:
    printed = said(f"""context "${name}" '"a\\\\n%s"'""")
    assert printed == claude_code.CONTEXT % (event, '"a\\\\n%s"') + "\n"
    answer = json.loads(printed)["hookSpecificOutput"]
    assert answer == {"hookEventName": event, "additionalContext": "a\\n%s"}


def test_a_text_for_the_user_has_the_same_shape() -> None:
    assert said("message 'a b'") == claude_code.MESSAGE % "a b" + "\n"
    assert json.loads(claude_code.MESSAGE % "a b") == claude_code.session_started("a b", "")


def test_the_fields_are_the_same() -> None:
    assert value("prompt_field") == claude_code.TEXT_FIELDS[claude_code.AT_PROMPT]
    assert value("error_field") == claude_code.TEXT_FIELDS[claude_code.AT_FAILURE]
    for name in claude_code.PATHS:
        assert re.search(value("file"), json.dumps({"tool_input": {name: "/a b.py"}}))
        assert re.search(value("file"), json.dumps({name: "/a"}, separators=(",", ":")))
    assert not re.search(value("file"), json.dumps({"content": '"file_path": "/a"'}))
    assert not re.search(value("file"), json.dumps({"file_path": "relative"}))
    assert re.search(value("failed"), json.dumps({"tool_name": "Bash"}))
