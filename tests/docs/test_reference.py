"""docs/reference/ is what docs/generate.py makes of the code, and that is all of it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import click
import pytest

from backstory import config
from backstory.surfaces.cli.main import cli
from docs import generate

PAGES = generate.pages()


@pytest.mark.parametrize("name", PAGES)
def test_the_committed_reference_is_current(name: str) -> None:
    assert (generate.REFERENCE / name).read_text() == PAGES[name], "run: .venv/bin/python docs/generate.py"


def test_there_is_no_other_page() -> None:
    assert {path.name for path in generate.REFERENCE.iterdir()} == set(PAGES)


def test_the_committed_man_page_is_current() -> None:
    assert generate.MAN_PAGE.read_text() == generate.man_page(), "run: .venv/bin/python docs/generate.py"


@pytest.mark.skipif(shutil.which("man") is None, reason="there is no man here")
def test_man_shows_the_page_without_a_warning() -> None:
    command = ["man", "--warnings", "-E", "UTF-8", "-l", str(generate.MAN_PAGE)]
    shown = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "MANWIDTH": "100"}
    )
    assert shown.stderr == ""
    text = re.sub(".\b", "", shown.stdout)
    for name in COMMANDS:
        assert f"   {name.removeprefix('backstory ')}" in text
    assert "backstory - a memory for Claude Code" in text and "--dry-run" in text
    assert "backstory config unset spend.daily_usd  back to the default" in text


def below(group: click.Group, path: str) -> dict[str, click.Command]:
    found = {f"{path} {name}": command for name, command in group.commands.items()}
    groups = [(inner, command) for inner, command in found.items() if isinstance(command, click.Group)]
    return found | {name: one for inner, command in groups for name, one in below(command, inner).items()}


COMMANDS = below(cli, "backstory")


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_has_its_help_and_options_there(path: str) -> None:
    command = COMMANDS[path]
    part = re.search(rf"^##+ {path}\n(.*?)(?=^##|\Z)", PAGES["commands.md"], re.M | re.S)
    assert part
    assert command.get_short_help_str(300).rstrip(".") in part[1]
    for option in command.params:
        if isinstance(option, click.Option):
            assert re.search(rf"`{option.opts[0]}[ `]", part[1]), option.opts


@pytest.mark.parametrize("name", [*config.DEFAULTS, *config.NUMBERS])
def test_every_setting_has_its_variable_and_default_there(name: str) -> None:
    default = {**config.DEFAULTS, **config.NUMBERS}[name]
    row = next(line for line in PAGES["settings.md"].splitlines() if line.startswith(f"| `{name}` |"))
    assert f"`BACKSTORY_{name.upper().replace('.', '_')}`" in row
    assert default == "" or f"`{default}`" in row


@pytest.mark.parametrize("tool", ["memory_search", "docs_ingest", "docmem_create", "docmem_view"])
def test_tools_of_both_servers_are_there(tool: str) -> None:
    assert f"### {tool}\n" in PAGES["tools.md"]


def test_a_parameter_that_may_be_left_out_has_a_question_mark() -> None:
    part = PAGES["tools.md"].split("### memory_search\n")[1].split("###")[0]
    assert "- `query`: " in part
    assert "- `limit?`: " in part
    assert "One of `hybrid`, `semantic`, `keyword`." in part
