"""How a reply looks at a terminal. Under the same rules as output.py."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from backstory.surfaces.cli import output
from backstory.surfaces.cli.output import visible
from backstory.surfaces.shapes import CUT, WHOLE, Line, Raw, Shown, Table

SHORTEST_ABOUT = 20


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # for main() to settle, like every other error


def tell(shown: Iterable[Shown]) -> None:
    """Sentences broken between words, lines in colours and as wide as the terminal."""
    out = _Console(highlight=False)
    for one in shown:
        if isinstance(one, str):
            output.say(visible(one))
        elif isinstance(one, Raw):
            out.print(Text(visible(one.text)), soft_wrap=True, end="")
        elif isinstance(one, Line):
            _line(out, one)
        else:
            for line in one.lines(out.width, cell_len) if isinstance(one, Table) else one.lines():
                _line(out, line)


def _line(out: Console, line: Line) -> None:
    head, *rest, end = [Text(visible(text), style=style) for text, style in output.pieces_of(line)]
    if line.long == CUT:
        cut = Text().join([head, *rest])
        cut.truncate(max(1, out.width - end.cell_len), overflow="ellipsis")
        cut.append_text(end).rstrip()
        return out.print(cut, no_wrap=True, overflow="ellipsis")
    if line.long == WHOLE:
        return out.print(Text().join([head, *rest]), soft_wrap=True)
    if not rest or not line.indent:
        head, rest = Text(), [head, *rest]
    more = " …"
    room = out.width - line.indent - (len(more) if line.most else 0)
    rows = Text().join(rest).wrap(out, max(SHORTEST_ABOUT, room))
    for number, row in enumerate(rows[: line.most or None]):
        row.rstrip()
        last = more if line.most and number == line.most - 1 and len(rows) > line.most else ""
        out.print(Text.assemble(" " * line.indent if number else head, row, last), soft_wrap=True)
    return None


def progress() -> dict[str, Any]:
    """How progress is shown: to a person at a terminal, never in the way of what is printed."""
    return {
        "console": _Console(stderr=True, highlight=False),
        "transient": True,
        "disable": not sys.stderr.isatty(),
    }
