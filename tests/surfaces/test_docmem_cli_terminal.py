"""`backstory docmem`: what terminals and pipes get."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len

from backstory.docmem.tree import Made
from backstory.model import Node
from tests.conftest import Run
from tests.helpers.commands import BACKSTORY
from tests.helpers.embedder import loaded_embedder  # noqa: F401  for all tests here
from tests.helpers.handbook import note, opened
from tests.helpers.terminal import plain_lines, seen_at_terminal

pytestmark = pytest.mark.slow

EVIL = "evil \x1b[2J\x1b]0;title\x07 [red]markup[/red] \x9b31m \u202e \r"


def test_nothing_in_a_node_can_drive_the_terminal(
    run: Run, build: Callable[..., Node], data: Path, project: str
) -> None:
    build(
        [
            Made("evil", None, EVIL, ("root", "", "")),
            note("evil", EVIL, 0, "evilnode"),
            note("", "evil too", 1, "belowit1"),
        ]
    )
    with opened(data, project) as (db, _):  # no surface lets such a context in; a restored store may have one
        db.execute("UPDATE docmem_nodes SET context_name = ? WHERE id <> 'evil'", (EVIL[:24],))
    commands = [
        ["list"],
        ["tree", "evil"],
        ["show", "evilnode"],
        ["show", "belowit1"],
        ["expand", "evil"],
        ["search", "evil"],
        ["show", EVIL],
        ["search", "evil", "--tree", EVIL],
        ["import", f"gone {EVIL}.md"],
        ["import", f"gone{EVIL}"],
        ["import", "-", "--format", "md", "--root-id", EVIL],
        ["export", "evil", "--output", f"{EVIL}/x"],
        ["export", "evil", "--output", f"x{EVIL}.md"],
        ["export", "evil", "--json"],
        ["delete", "evilnode"],
    ]
    for command in [*commands, *([*command, "--json"] for command in commands)]:
        ran = run("docmem", *command, stdin="hello")
        for sign in "\x1b\x9b\x07\r" if "--json" in command else "\x1b\x9b\x07\r\u202e":
            assert sign not in ran.out + ran.err, (command, sign)
    assert "[red]markup[/red]" in run("docmem", "show", "evilnode").out


def test_an_export_is_exact_in_a_pipe_and_harmless_at_a_terminal(
    build: Callable[..., Node], project: str
) -> None:
    build([Made("evil", None, "", ("root", "", "")), note("", EVIL)])
    command = [BACKSTORY, "docmem", "export", "evil", "--format", "md"]
    for env in ({}, {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}):
        piped = subprocess.run(command, cwd=project, env=os.environ | env, capture_output=True, check=True)
        assert EVIL.encode() in piped.stdout
    seen = seen_at_terminal("docmem export evil --format md", project)
    assert "\x1b[2J" not in seen
    assert "\\x1b[2J" in seen


def test_a_pipe_gets_plain_text_and_a_terminal_gets_colours(run: Run, handbook: Node, project: str) -> None:
    for command in ("list", "tree", "show handbook", "expand handbook", "search walrus"):
        assert "\x1b" not in run("docmem", *command.split()).out
        assert "\x1b[" in seen_at_terminal(f"docmem {command}", project)
    drawn = seen_at_terminal("docmem tree", project)
    assert "\x1b[36mfeeding1" in drawn
    assert "\x1b[35m  summary:feeding:2" in drawn


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_a_narrow_terminal_never_cuts_an_id_or_a_score(
    columns: int, build: Callable[..., Node], project: str
) -> None:
    long = "the walrus likes fish " * 20
    name = "n" * 24
    build(
        [
            Made("r" * 24, None, long, (name, name, name)),
            Made("aaaaaaaa", 0, long, (name, name, name), readonly=True),
            Made("bbbbbbbb", 1, f"海象 {'海' * 200}", (name, name, name)),
        ]
    )
    seen = {
        command: plain_lines(f"docmem {command}", project, columns)
        for command in ("list", "tree", "search walrus")
    }
    for lines in seen.values():
        assert [line for line in lines if cell_len(line) > columns] == []
    assert seen["list"][1].startswith("r" * 24)
    assert seen["tree"][0].startswith("r" * 24)
    assert seen["tree"][1].startswith("└── aaaaaaaa  nnn")
    assert seen["tree"][2].startswith("    └── bbbbbbbb  nnn")
    heads = [line for line in seen["search walrus"] if re.match(r" ?\d+\. ", line)]
    assert heads
    assert all(re.search(r"  score \d\.\d\d$", line) for line in heads)


def test_a_locale_without_guides_gets_plain_ones(handbook: Node, project: str) -> None:
    env = os.environ | {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ran = subprocess.run([BACKSTORY, "docmem", "tree"], cwd=project, env=env, capture_output=True, check=True)
    assert ran.stdout.splitlines()[1:3] == [
        b"|-- feeding1  summary:feeding:2  Three meals a day",
        b"|   |-- morning1  note:morning:  Herring at six.",
    ]
    assert ran.stdout.splitlines()[-1].startswith(b"`-- sleeping")
