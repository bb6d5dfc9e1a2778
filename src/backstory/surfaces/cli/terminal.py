"""How the CLI prints: colours in a terminal, plain lines in a pipe. Under the same rules as output.py."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from backstory.surfaces.cli import output
from backstory.surfaces.cli.output import visible
from backstory.surfaces.shapes import CUT, WHOLE, Line, Raw, Shown, Table

SHORTEST_ABOUT = 20
STYLES = {"active": "green", "damaged": "red"}


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # for main() to settle, like every other error


def console() -> Console:
    wide = None if sys.stdout.isatty() else 10_000  # a pipe has no width: one line stays one line
    return _Console(highlight=False, width=wide, soft_wrap=wide is not None)


def tell(shown: Iterable[Shown]) -> None:
    """Sentences broken between words, lines in colours and as wide as the terminal."""
    out = console()
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
        return one_row(out, cut)
    if line.long == WHOLE:
        return out.print(Text().join([head, *rest]), soft_wrap=True)
    if not rest or not line.indent:
        head, rest = Text(), [head, *rest]
    rows = Text().join(rest).wrap(out, max(SHORTEST_ABOUT, out.width - line.indent))
    for number, row in enumerate(rows[: line.most or None]):
        row.rstrip()
        more = " …" if line.most and number == line.most - 1 and len(rows) > line.most else ""
        out.print(Text.assemble(" " * line.indent if number else head, row, more), soft_wrap=True)
    return None


def progress() -> dict[str, Any]:
    """How progress is shown: to a person at a terminal, never in the way of what is printed."""
    return {
        "console": _Console(stderr=True, highlight=False),
        "transient": True,
        "disable": not sys.stderr.isatty(),
    }


def table(
    out: Console,
    rows: Sequence[Mapping[str, str]],
    right: Container[str],
    give_way: Sequence[str],
    *,
    last: int = 0,
) -> None:
    """Columns under their names. Where they are too wide for the terminal, some give way, one after the
    other, until the others fit; of the last one, so many signs are enough. The first one stays."""
    wide = {name: max(len(name), *(cell_len(row[name]) for row in rows)) for name in rows[0]}
    if last:
        wide[[*wide][-1]] = last
    for name in give_way:
        if sum(wide.values()) + 2 * (len(wide) - 1) > out.width:
            del wide[name]

    def cells(row: Mapping[str, str]) -> list[str]:
        rooms = {name: " " * (size - cell_len(row[name])) for name, size in wide.items()}
        return [room + row[name] if name in right else row[name] + room for name, room in rooms.items()]

    one_row(out, Text("  ".join(cells({name: name for name in wide})).rstrip(), style="bold"))
    for row in rows:
        line = Text()
        for number, cell in enumerate(cells(row)):
            style = "cyan" if number == 0 else STYLES.get(cell.strip(), "default")
            line.append("  " if number else "").append(cell, style=style)
        line.rstrip()
        one_row(out, line)


def facts(out: Console, rows: Iterable[tuple[str, str]]) -> None:
    """A row each, of those with something in them."""
    for name, value in rows:
        words = " ".join(visible(value).split())
        if words:
            hanging(out, Text(f"{name:>12}  ", style="dim"), Text(words), indent=14)


def hanging(out: Console, head: Text, body: Text, indent: int) -> None:
    """A head and what stands behind it, wrapped between words below itself; in a pipe one line."""
    if out.soft_wrap:
        return out.print(Text.assemble(head, body))
    for number, row in enumerate(body.wrap(out, max(SHORTEST_ABOUT, out.width - indent))):
        row.rstrip()
        out.print(Text.assemble(" " * indent if number else head, row), soft_wrap=True)
    return None


def difference(out: Console, lines: Iterable[str]) -> None:
    """A unified diff, in colours."""
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for number, line in enumerate(lines):
        style = "bold" if number < 2 else styles.get(line[:1], "default")
        out.print(Text(visible(line), style=style), soft_wrap=True)


def one_row(out: Console, line: Text) -> None:
    """What is too long for the terminal's width ends in an ellipsis instead of a second row."""
    out.print(line, no_wrap=True, overflow="ellipsis", soft_wrap=False)
