"""How the CLI prints: colours in a terminal, plain lines in a pipe, JSON on request.

Memory is hostile input here too: control characters in it could drive the terminal, so none gets through.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from recollect.model import Hit, Memory, Session

SHOWN = 200


def console() -> Console:
    wide = None if sys.stdout.isatty() else 10_000  # a pipe has no width: one line stays one line
    return Console(highlight=False, width=wide, soft_wrap=wide is not None)


def as_json(value: object) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def visible(text: str) -> str:
    """Printable text: a control character shows as what it is instead of doing what it does."""
    return "".join(
        sign
        if sign in "\n\t" or sign.isprintable() or sign == " "
        else sign.encode("unicode_escape").decode()
        for sign in text
    )


def one_line(text: str, length: int = SHOWN) -> str:
    parts = [part.strip() for part in visible(text).splitlines() if part.strip()]
    if len(parts) > 4:
        parts = [*parts[:2], "…", parts[-1]]  # of a long error the last line says most
    line = " · ".join(parts)
    return line if len(line) <= length else line[: length - 1] + "…"


def gist(memory: Memory, root: str) -> str:
    """A memory in one line: without what the list says already, and with paths as seen from the project."""
    content = memory.content
    if memory.kind == "tool":
        content = content.partition("\n")[2] or content
    return one_line(content.replace(root + "/", ""))


def when(at: int) -> str:
    return datetime.fromtimestamp(at / 1000).strftime("%Y-%m-%d %H:%M")


def hits(found: Sequence[Hit], root: str) -> None:
    out = console()
    for place, hit in enumerate(found, 1):
        memory = hit.memory
        head = Text(f"{place:>2}. ").append(memory.id, style="cyan")
        head.append(f"  {when(memory.created_at)}  ", style="dim")
        head.append(f"{memory.kind}/{memory.sector}", style="magenta")
        head.append(f"  score {hit.score:.2f}", style="green")
        out.print(head)
        _one_row(out, Text("    " + gist(memory, root)))


def sessions(found: Sequence[Session]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("session", "started", "status", "branch", "memories", "asked for"):
        table.add_column(heading, justify="right" if heading == "memories" else "left", no_wrap=True)
    for session in found:
        table.add_row(
            Text(session.id[:8], style="cyan"),  # `recollect sessions` takes the beginning of an id
            when(session.started_at),
            Text(session.status, style="green" if session.status == "active" else ""),
            Text(visible(session.branch or "-")),
            str(session.memories),
            Text(one_line(session.user_prompt or "-", 60)),
        )
    console().print(table)


def session(found: Session, prompts: Sequence[tuple[int, str]], made: Sequence[Memory], root: str) -> None:
    """One session as it went: what was asked, and what was done."""
    out = console()
    facts = [found.status, f"on {found.branch}" if found.branch else "", f"{len(made)} memories"]
    out.print(
        Text(found.id, style="bold cyan").append(
            "  " + ", ".join(filter(None, facts)), style="not bold default"
        )
    )
    lines: list[tuple[int, Text]] = []
    for at, prompt in prompts:
        lines.append(
            (at, Text(f"{when(at)}  ", style="dim").append(f"> {one_line(prompt)}", style="bold not dim"))
        )
    for memory in made:
        line = Text(f"{when(memory.created_at)}  ", style="dim").append(memory.id, style="cyan not dim")
        lines.append((memory.created_at, line.append("  " + gist(memory, root), style="default not dim")))
    for _, line in sorted(lines, key=lambda entry: entry[0]):
        _one_row(out, line)


def _one_row(out: Console, line: Text) -> None:
    """What is too long for the terminal's width ends in an ellipsis instead of a second row."""
    out.print(line, no_wrap=True, overflow="ellipsis", soft_wrap=False)


def memory(found: Memory) -> None:
    out = console()
    facts: Mapping[str, Any] = {
        "kind": found.kind,
        "sector": found.sector,
        "tier": found.tier,
        "created": when(found.created_at),
        "salience": f"{found.salience:.2f}",
        "session": found.session_id or "-",
        "tags": ", ".join(found.tags) or "-",
        "files": ", ".join(found.files) or "-",
    }
    out.print(Text(found.id, style="bold cyan"))
    for name, value in facts.items():
        out.print(Text(f"{name:>9}  ", style="dim").append(visible(str(value)), style="not dim"))
    out.print()
    out.print(Text(visible(found.content)))
