"""How the CLI prints: colours in a terminal, plain lines in a pipe. Under the same rules as output.py."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from backstory.memory.turn import Turn, commit_line
from backstory.model import Excerpt, Hit, Memory, Part
from backstory.recall.excerpt import in_a_line
from backstory.recall.timeline import Timeline
from backstory.surfaces import shapes
from backstory.surfaces.cli import output
from backstory.surfaces.cli.output import SHOWN, one_line, visible, when
from backstory.surfaces.shapes import (
    CUT,
    WHOLE,
    Line,
    Raw,
    Shown,
    Table,
    is_title_in_text,
    session_gist,
    titled,
)

SHORTEST_ABOUT = 20
ROOM = (700, 400)  # characters of a turn: of the best hit, of the others
ROWS_OF_BEST_TURN, ROWS_OF_TURN = 10, 4  # of its pieces, in a terminal
NARROW, ROWS_LISTED = 100, 2  # columns; rows of a memory in a list below that
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
        return one_row(out, cut.append_text(end))
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


def gist(memory: Memory, root: str) -> str:
    return visible(shapes.gist(memory, root))


def _gist_of_turn(turn: Turn, root: str, room: int) -> str:
    """What was asked, and how it was answered."""
    return one_line(in_a_line(turn, max(SHORTEST_ABOUT, min(SHOWN, room))).replace(root + "/", ""))


def _title(memory: Memory) -> str:
    return " ".join(visible(memory.title or "").split())


def _explained(out: Console, parts: Sequence[Part]) -> None:
    out.print(Text("    " + "  ".join(f"{part.name} {part.value:+.2f}" for part in parts), style="dim"))


def hits(found: Sequence[Hit], here: str, explain: bool = False) -> None:
    out = console()
    for place, hit in enumerate(found, 1):
        memory, root = hit.memory, here
        score = Text(f"  score {hit.score:.2f}", style="green")
        if memory.valid_until:
            score.append(f"  superseded by {hit.superseded_by or 'something newer'}", style="yellow")
        made, kind, sector = f"  {when(memory.created_at)}", f"  {memory.kind}", f"/{memory.sector}"
        for facts in ((made, kind, sector), (made, kind), (made,), ()):  # the first that fits
            head = Text(f"{place:>2}. ").append(memory.id, style="cyan")
            head.append("".join(facts[:1]), style="dim").append("".join(facts[1:]), style="magenta")
            head.append_text(score)
            if head.cell_len <= out.width:
                break
        one_row(out, head)
        if hit.project:
            root = hit.project.root
            one_row(out, Text(f"    in {visible(hit.project.name)}  {visible(root)}", style="yellow"))
        if hit.excerpt:
            _turn_hit(out, hit.excerpt, root, is_best=place == 1)
        elif not is_title_in_text(memory):
            one_row(out, Text(f"    {_title(memory)}", style="bold"))
            one_row(out, Text("    " + one_line(memory.content.replace(root + "/", ""))))
        else:
            one_row(out, Text("    " + gist(memory, root)))
        for change in hit.stale:
            one_row(out, Text(f"    {visible(change)}", style="yellow"))
        if explain:
            _explained(out, hit.parts)


def _turn_hit(out: Console, shown: Excerpt, root: str, *, is_best: bool) -> None:
    """What was asked, the pieces that fit below it, and the commits. A terminal's rows are few: a long piece
    takes some of them, and the whole turn is a command away."""
    if shown.asked:
        one_row(out, Text("    " + one_line(shown.asked.replace(root + "/", ""), SHOWN + 20), style="bold"))
    lines = [line for piece in shown.pieces for line in visible(piece).splitlines() if line.strip()]
    wide = max(SHORTEST_ABOUT, out.width - 6)
    rows = [row for line in lines for row in Text(line.replace(root + "/", "")).wrap(out, wide)]
    most = ROWS_OF_BEST_TURN if is_best else ROWS_OF_TURN
    for row in rows[:most]:
        row.rstrip()
        one_row(out, Text("      ").append_text(row))
    if len(rows) > most:
        one_row(out, Text("      …", style="dim"))
    for commit in shown.commits:
        one_row(out, Text("      ").append(one_line(commit), style="green"))


def memories(found: Sequence[Memory], turns: Mapping[str, Turn], root: str) -> None:
    """A line each."""
    out = console()
    for memory in found:
        line = Text(memory.id, style="cyan").append(f"  {when(memory.created_at)}  ", style="dim")
        line.append(f"{memory.kind:<10}  ", style="magenta")
        turn = turns.get(memory.id)
        is_narrow = out.width < NARROW
        room = ROWS_LISTED * (out.width - 8) if is_narrow else out.width - line.cell_len
        told = Text(_gist_of_turn(turn, root, room) if turn else gist(memory, root))
        if is_narrow:  # in what is left of the row nothing can be said
            line.rstrip()
            one_row(out, line)
            few_rows(out, told, ROWS_LISTED)
        else:
            one_row(out, line.append_text(told))


def timeline(found: Timeline, turns: Mapping[str, Turn], root: str) -> Iterator[Shown]:
    """A line each, oldest first, with the session's name where it changes."""
    by_id = {session.id: session for session in found.sessions}
    session_id = None
    entries = [
        one for entry in found.entries for one in ((entry, found.anchor) if entry is found.turn else (entry,))
    ]
    for memory in entries:
        if memory.session_id != session_id and (session := by_id.get(memory.session_id or "")):
            about = session_gist(session) or "no summary"
            yield Line(((f"session {session.id[:8]}  {when(session.started_at)}  {about}", "bold"),))
        session_id = memory.session_id
        is_anchor = memory.id == found.anchor.id
        turn = turns.get(memory.id)
        gist = _gist_of_turn(turn, root, SHOWN) if turn else titled(memory, root)
        yield Line(
            (
                "    " if is_anchor and found.turn else "",  # it stands within its turn
                (">>> " if is_anchor else "    ", "green"),
                (f"{when(memory.created_at)}  ", "dim"),
                (memory.id, "cyan"),
                ("  superseded" if memory.valid_until else "", "yellow"),
                (f"  {gist}", "bold" if is_anchor else ""),
            )
        )


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


def few_rows(out: Console, text: Text, most: int) -> None:
    """As much as fits, indented and broken between words."""
    rows = text.wrap(out, out.width - 6)
    for row in rows[:most]:
        row.rstrip()
    if len(rows) > most:
        rows[most - 1].append(" …")
    for row in rows[:most]:
        out.print(Text("    ").append_text(row), soft_wrap=True)


def one_row(out: Console, line: Text) -> None:
    """What is too long for the terminal's width ends in an ellipsis instead of a second row."""
    out.print(line, no_wrap=True, overflow="ellipsis", soft_wrap=False)


def memory(
    found: Memory,
    turn: Turn | None = None,
    stale: Sequence[str] = (),
    relations: Sequence[tuple[str, str, str]] = (),
) -> None:
    out = console()
    state = "forgotten" if found.deleted_at else "superseded" if found.valid_until else ""
    known: Mapping[str, Any] = {
        "kind": f"{found.kind}, {turn.state}" if turn else found.kind,
        "sector": found.sector,
        "tier": found.tier,
        "source": found.source,
        "created": when(found.created_at),
        "salience": f"{found.salience:.2f}",
        "session": found.session_id or "-",
        "author": found.author or "-",
        "tags": ", ".join(found.tags) or "-",
        "files": ", ".join(found.files) or "-",
        **({"concepts": ", ".join(found.concepts)} if found.concepts else {}),
        **({"times": found.times} if found.times > 1 else {}),
    }
    of_turns = ("kind", "created", "salience", "session")
    out.print(Text(found.id, style="bold cyan").append(f"  {state}" if state else "", style="yellow"))
    for name, value in known.items():
        if not turn or name in of_turns:
            out.print(Text(f"{name:>9}  ", style="dim").append(visible(str(value)), style="not dim"))
    for change in stale:
        out.print(Text(" " * 11 + visible(change), style="yellow"))
    for source, relation, target in relations:
        line = Text(f"{'relation':>9}  ", style="dim")
        out.print(line.append(f"{source} {relation} {target}", style="not dim"))
    out.print()
    if turn:
        return _whole_turn(out, turn)
    if not is_title_in_text(found):
        out.print(Text(_title(found), style="bold"))
    out.print(Text(visible(found.content)), soft_wrap=True)  # a command copied from here must stay whole


def _whole_turn(out: Console, turn: Turn) -> None:
    parts: list[tuple[str, str]] = [("asked", text) for text, _ in turn.prompts]
    parts += [(f"the user was asked: {question}", answer) for question, answer in turn.choices]
    parts += [("approved plan", plan) for plan in turn.plans]
    parts += [("answered", turn.answer)]
    parts += [("commits", "\n".join(map(commit_line, turn.commits)))]
    parts += [("failed, then passed", "\n".join(f"{command}: {error}" for command, error in turn.passed))]
    parts += [("failed", "\n".join(f"{command}: {error}" for command, error in turn.failed))]
    parts += [("edited", "\n".join(turn.edited)), ("read", "\n".join(turn.read))]
    parts += [(f"agent: {task}", came) for task, came in turn.agents]
    parts += [("the conversation was compacted to", text) for text in turn.compactions]
    there = [(name, text.strip()) for name, text in parts if text.strip()]
    for place, (name, text) in enumerate(there):
        out.print(Text("\n" if place else "").append(one_line(name), style="bold"))
        out.print(Text(visible(text)), soft_wrap=True)


def archived(found: Mapping[str, object]) -> None:
    """A memory that was put away."""
    out = console()
    out.print(Text(str(found["id"]), style="bold cyan").append("  archived", style="yellow"))
    out.print(Text(f"`backstory restore {found['id']}` brings it back", style="dim"))
    out.print()
    out.print(Text(visible(str(found["content"]))), soft_wrap=True)
