"""Replies: what a command has to say, for programs, for a pipe and for a terminal."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import click
import pytest
from click.testing import CliRunner

from backstory import errors
from backstory.model import Node
from backstory.surfaces.cli import common, output
from backstory.surfaces.shapes import (
    Column,
    Facts,
    Line,
    Raw,
    Reply,
    Shown,
    Table,
    done,
    listing,
    plain,
    to_json,
)


@dataclass(frozen=True, slots=True)
class Bird:
    name: str
    eggs: int
    nests: tuple[str, ...] = ()


class Place(NamedTuple):
    x: int
    y: int


class Pond:
    __slots__ = ("depth", "seen")

    def __init__(self) -> None:
        self.depth = 2.5
        self.seen = frozenset({Place(1, 2)})


BIRDS = (Bird("heron", 1_200, ("reed", "oak")), Bird("stork", 3))
COLUMNS = (
    Column("name", style=lambda one: "bold"),
    Column("eggs", right=True, gives_way=1),
    Column("nests", gives_way=2),
    Column("song", lambda one: one.name * 3, least=4),
)
HOSTILE = "a\x1b[2Jb\n<backstory>\u202e"


def lines(shown: Shown) -> list[str]:
    return list(output.plain_lines(shown))


@click.command()
@click.option("--how", default="")
@common.prints
def birds(how: str) -> Reply:
    common.tell("Looking.")
    if how == "away":
        return listing([], COLUMNS, none="No birds; `look` elsewhere.")
    return listing(BIRDS, COLUMNS, "below", none="", notes=[HOSTILE])


def test_a_value_of_any_class_becomes_what_json_knows() -> None:
    assert plain(BIRDS[0]) == {"name": "heron", "eggs": 1_200, "nests": ["reed", "oak"]}
    assert plain({"pond": Pond()}) == {"pond": {"depth": 2.5, "seen": [{"x": 1, "y": 2}]}}
    node = Node("n", 7, None, "n", "t", 1.0, 2, "doc", "a", "b", False, "h", 1, 3, 4)
    encoded = plain(node)
    assert "row" not in encoded and encoded["context"] == "doc:a:b"


def test_json_drives_no_terminal_and_says_the_same_when_read() -> None:
    text = to_json({"text": HOSTILE})
    assert json.loads(text) == {"text": HOSTILE}
    assert "\x1b" not in text and "\u202e" not in text


def test_a_table_is_as_wide_as_it_must_be_and_columns_give_way_in_their_order() -> None:
    assert lines(Table(BIRDS, COLUMNS)) == [
        "name    eggs  nests      song",
        "heron  1,200  reed, oak  heronheronheron",
        "stork      3  -          storkstorkstork",
    ]

    def names(width: int) -> list[str]:
        first = next(Table(BIRDS, COLUMNS).lines(width))
        return "".join(text for text, _ in output.pieces_of(first)).split()

    assert names(29) == ["name", "eggs", "nests", "song"]
    assert names(28) == ["name", "nests", "song"]
    assert names(5) == ["name", "song"]


def test_what_is_shown_is_one_line_and_harmless() -> None:
    for shown in (Line((HOSTILE, ("x", "red"))), Facts([("who", HOSTILE), ("what", "")])):
        (line,) = lines(shown)
        assert line.isprintable() and "<backstory>" not in line
    (_, cell) = lines(Table([{"name": HOSTILE}], [Column("name")]))
    assert cell.isprintable() and "<backstory>" not in cell
    assert lines(Line(("a\nb",), "whole")) == ["a\nb"]


def test_a_command_prints_a_table_or_json_and_notes_beside_either() -> None:
    runner = CliRunner()
    ran = runner.invoke(birds, [])
    assert ran.stdout.splitlines()[0] == "Looking."
    assert ran.stdout.splitlines()[-1] == "below"
    assert len(ran.stdout.splitlines()) == 5
    asked = runner.invoke(birds, ["--json"])
    assert json.loads(asked.stdout) == plain(BIRDS)
    for one in (ran, asked):
        assert one.exit_code == 0 and "\x1b" not in one.stderr and "<backstory>" not in one.stderr


@pytest.mark.parametrize(("how", "out"), [([], "Looking.\n"), (["--json"], "[]\n")])
def test_where_the_answer_is_no_it_says_why_after_what_there_is(how: list[str], out: str) -> None:
    ran = CliRunner().invoke(birds, ["--how", "away", *how])
    assert ran.stdout == out
    assert isinstance(ran.exception, errors.NotFound)
    assert str(ran.exception) == "No birds; `look` elsewhere."


def test_what_is_for_people_is_not_computed_for_a_script(monkeypatch: pytest.MonkeyPatch) -> None:
    def shown() -> Iterator[Shown]:
        raise AssertionError
        yield ""

    monkeypatch.setattr(common, "is_script", lambda: True)
    common.show(Reply({"eggs": 1}, shown()))


def test_a_document_goes_into_a_pipe_letter_by_letter(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    common.tell(Raw("<backstory>\r\n"), *done("Done.", eggs=1).shown)
    assert capsysbinary.readouterr().out == b"<backstory>\r\nDone.\n"


def test_shapes_load_nothing_of_a_terminal() -> None:
    code = "import sys, backstory.surfaces.shapes; sys.exit(bool({'click', 'rich'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
