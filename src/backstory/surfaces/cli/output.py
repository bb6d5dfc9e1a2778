"""How a command's reply is printed: as JSON, as plain lines into a pipe, or at a terminal (terminal.py, since
rich is slow to load).

Memory is hostile input here too: control characters in it could drive the terminal, so none gets through.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator

import click

from backstory.safety.fence import without_tags
from backstory.surfaces import shapes
from backstory.surfaces.shapes import Facts, Line, Shown, Table

SHOWN = shapes.SHOWN
# What a terminal without UTF-8 shows instead.
_PLAINER = str.maketrans("├└│─…›→✓✗█▏▎▍▌▋▊▉", "|`|-.>>+x########")


def plain_lines(shown: Shown) -> Iterator[str]:
    """For a pipe, which has no width."""
    if isinstance(shown, str):
        yield visible(shown)
    elif isinstance(shown, Line):
        text = visible("".join(text for text, _ in pieces_of(shown))).rstrip()
        yield text.replace("\n", "\n" + " " * shown.indent)
    elif isinstance(shown, Facts | Table):
        for line in shown.lines():
            yield from plain_lines(line)


def pieces_of(line: Line) -> Iterator[tuple[str, str]]:
    """(text, style) of each; only of what may be several lines they stay."""
    for piece in (*line.pieces, line.end):
        text, style = (piece, "") if isinstance(piece, str) else piece
        yield text if line.long in (shapes.WHOLE, shapes.LINES) else text.replace("\n", " "), style


def visible(text: str) -> str:
    """Printable text: a control character shows as what it is instead of doing what it does. Agents run our
    commands too, in a pipe, so there no tag in it is one of theirs; a person at a terminal sees it as it is.
    """
    shown = "".join(
        sign if sign in "\n\t\u200c\u200d" or sign.isprintable() else sign.encode("unicode_escape").decode()
        for sign in text
    )
    if not (sys.stdout.encoding or "utf-8").lower().startswith("utf"):
        shown = shown.translate(_PLAINER)
    return shown if sys.stdout.isatty() else without_tags(shown)


def columns() -> int:
    """Of the terminal; 0: it is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def say(text: str, indent: int = 2) -> None:
    click.echo(wrapped(text, indent))


def wrapped(text: str, indent: int = 2) -> str:
    """The text in rows of the terminal's width, broken between words, each further row of a line indented. A
    pipe has no width."""
    if not columns():
        return text
    wide = max(20, columns())
    rows = []
    for line in text.split("\n"):
        further = " " * (len(line) - len(line.lstrip(" ")) + indent)
        # A path or a command that is too long stays whole: it may be copied from here.
        rows += textwrap.wrap(
            line, wide, subsequent_indent=further, break_long_words=False, break_on_hyphens=False
        ) or [line]
    return "\n".join(rows)


def one_line(text: str, length: int = SHOWN) -> str:
    return shapes.one_line(visible(text), length)
