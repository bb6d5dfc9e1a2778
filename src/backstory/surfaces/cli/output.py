"""What every command says: a sentence, or JSON on request. What needs rich, slow to load, is in terminal.py.

Memory is hostile input here too: control characters in it could drive the terminal, so none gets through.
"""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from datetime import datetime

import click

from backstory.safety.fence import UNRULY, without_tags

SHOWN = 200


def answer(in_json: bool, value: object, sentence: str) -> None:
    if in_json:
        as_json(value)
    else:
        click.echo(sentence)


def as_json(value: object) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=2)
    # JSON escapes the control characters below space itself; others drive a terminal as well.
    click.echo(UNRULY.sub(lambda sign: json.dumps(sign[0])[1:-1], text))


def visible(text: str) -> str:
    """Printable text: a control character shows as what it is instead of doing what it does. Agents run our
    commands too, in a pipe, so there no tag in it is one of theirs; a person at a terminal sees it as it is.
    """
    shown = "".join(
        sign if sign in "\n\t\u200c\u200d" or sign.isprintable() else sign.encode("unicode_escape").decode()
        for sign in text
    )
    return shown if sys.stdout.isatty() else without_tags(shown)


def say(text: str, indent: int = 2) -> None:
    click.echo(wrapped(text, indent))


def wrapped(text: str, indent: int = 2) -> str:
    """The text in rows of the terminal's width, broken between words, each further row of a line indented. A
    pipe has no width."""
    if not sys.stdout.isatty():
        return text
    wide = max(20, shutil.get_terminal_size().columns)
    rows = []
    for line in text.split("\n"):
        further = " " * (len(line) - len(line.lstrip(" ")) + indent)
        # A path or a command that is too long stays whole: it may be copied from here.
        rows += textwrap.wrap(
            line, wide, subsequent_indent=further, break_long_words=False, break_on_hyphens=False
        ) or [line]
    return "\n".join(rows)


def one_line(text: str, length: int = SHOWN) -> str:
    parts = [part.strip() for part in visible(text).splitlines() if part.strip()]
    if len(parts) > 4:
        parts = [*parts[:2], "…", parts[-1]]  # of a long error the last line says most
    line = " · ".join(parts)
    return line if len(line) <= length else line[: length - 1] + "…"


def number_of(things: int, one: str, many: str) -> str:
    return f"{things:,} {one if things == 1 else many}"


def when(at: int) -> str:
    return datetime.fromtimestamp(at / 1000).strftime("%Y-%m-%d %H:%M")


def lately(at: int, now: int) -> str:
    """The same for what happened a short while ago."""
    told = when(at)
    return f"today {told[11:]}" if told[:10] == when(now)[:10] else told


def size(of_bytes: int) -> str:
    return f"{of_bytes / 1e6:.1f} MB"
