"""The status line in Claude Code's settings: in and out, and everything else as it was."""

from __future__ import annotations

import json

import pytest

from backstory.clients.claude_settings import (
    asked_about,
    enables,
    status_line,
    with_status_line,
    without_status_line,
)

COMMAND = "'/opt/my \"python\"/ü' -m backstory statusline"
SETTINGS = [
    "",
    "{}",
    "{ }\n",
    '{\n    "model": "haiku",\n    "env": {"A": "}"}\n}\n',
    '{"z": 1.0, "a": [1, {"statusLine": null}], "b": "\\u00e9"}',
    '{\r\n\t"permissions": {\r\n\t\t"deny": ["Read(./.env)"]\r\n\t}\r\n}\r\n',
]


@pytest.mark.parametrize("text", SETTINGS)
def test_ours_comes_in_and_goes_out_and_the_rest_stays(text: str) -> None:
    with_ours = with_status_line(text, COMMAND)
    before = json.loads(text or "{}")
    assert json.loads(with_ours) == {**before, "statusLine": {"type": "command", "command": COMMAND}}
    assert list(json.loads(with_ours))[:-1] == list(before), "the order is a person's"
    for part in text.rstrip().removesuffix("}").split():
        assert part in with_ours
    without = without_status_line(with_ours)
    assert json.loads(without) == before
    assert "".join(without.split()) == "".join((text or "{}").split()), "but for a line end"


def test_one_in_the_middle_and_one_that_was_formatted_anew_go_out_as_well() -> None:
    line = '"statusLine": {"type": "command", "command": "x"}'
    assert without_status_line('{"a": 1, ' + line + ', "b": 2}') == '{"a": 1, "b": 2}'
    pretty = json.dumps({"statusLine": {"command": "x", "type": "command"}, "b": 2}, indent=4)
    assert json.loads(without_status_line(pretty)) == {"b": 2}


@pytest.mark.parametrize("text", ["[]", "{", "// no JSON\n{}"])
def test_what_are_no_settings_is_refused(text: str) -> None:
    for ask in (status_line, without_status_line, lambda given: with_status_line(given, "x")):
        with pytest.raises(ValueError, match=r"."):
            ask(text)


def test_another_status_line_is_seen_whatever_its_form() -> None:
    assert status_line("{}") is None
    assert status_line('{"statusLine": {"type": "command", "command": "mine"}}') == {
        "type": "command",
        "command": "mine",
    }
    assert status_line('{"statusLine": false}') is not None


def test_a_plugin_is_enabled_by_its_name_whatever_its_marketplace() -> None:
    assert enables('{"enabledPlugins": {"backstory@theirs": true}}', "backstory")
    assert not enables('{"enabledPlugins": {"backstory@theirs": false, "backstory-x@y": true}}', "backstory")
    assert not enables('{"enabledPlugins": []}', "backstory")


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({"session_id": "s", "cwd": "/a", "workspace": {"project_dir": "/b"}}, ("s", "/b")),
        ({"session_id": 3, "cwd": "/a", "workspace": {"current_dir": "/c"}}, ("", "/c")),
        ({"cwd": "/a", "workspace": "no"}, ("", "/a")),
        ([], ("", "")),
    ],
)
def test_what_a_line_is_for(payload: object, expected: tuple[str, str]) -> None:
    assert asked_about(payload) == expected
