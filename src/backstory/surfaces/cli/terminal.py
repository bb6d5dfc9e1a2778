"""How the CLI prints: colours in a terminal, plain lines in a pipe. Under the same rules as output.py."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from backstory.gist import of_summary
from backstory.memory.turn import COMPLETE, Turn, commit_line
from backstory.memory.turn import facts as facts_of
from backstory.model import Document, DocumentHit, Hit, Memory, Part, Session, Summary
from backstory.recall.excerpt import in_a_line, of_turn, parts_of_turn
from backstory.recall.timeline import Timeline
from backstory.surfaces.cli.output import SHOWN, number_of, one_line, visible, when

SHORTEST_ABOUT = 20
SHOWN_OF_BEST_TURN, SHOWN_OF_TURN, SHOWN_AS_JSON = 700, 400, 2_000  # characters of a turn that was found
ROWS_OF_BEST_TURN, ROWS_OF_TURN = 10, 4  # of its pieces, in a terminal
NARROW, ROWS_LISTED = 100, 2  # columns; rows of a memory in a list below that
STYLES = {"active": "green", "damaged": "red"}


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # for main() to settle, like every other error


def console() -> Console:
    wide = None if sys.stdout.isatty() else 10_000  # a pipe has no width: one line stays one line
    return _Console(highlight=False, width=wide, soft_wrap=wide is not None)


def progress() -> dict[str, Any]:
    """How progress is shown: to a person at a terminal, never in the way of what is printed."""
    return {
        "console": _Console(stderr=True, highlight=False),
        "transient": True,
        "disable": not sys.stderr.isatty(),
    }


def gist(memory: Memory, root: str) -> str:
    """A memory in one line: without what goes without saying, and with paths as seen from the project."""
    content = memory.content.replace(root + "/", "")
    if memory.kind == "tool" and "\nInput: " not in content:
        content = content.partition("\n")[2] or content
    if memory.kind == "summary" and (told := of_summary(content, SHOWN)):
        return visible(told)
    return one_line(content if is_said(memory) else f"{_title(memory)} — {content}")


def _gist_of_turn(turn: Turn, root: str, room: int) -> str:
    """What was asked, and how it was answered."""
    return one_line(in_a_line(turn, max(SHORTEST_ABOUT, min(SHOWN, room))).replace(root + "/", ""))


def titled(memory: Memory, root: str) -> str:
    """The same where nothing else says what kind it is: of traces and notes their text does."""
    is_plain = memory.kind in ("tool", "note")
    return gist(memory, root) if is_plain else f"{memory.kind}: {gist(memory, root)}"


def is_said(memory: Memory) -> bool:
    """Does the text itself say what the title says? Then, or without a title, the text is enough."""
    title = " ".join((memory.title or "").split()).rstrip("….").casefold()
    return " ".join(memory.content.split()).casefold().startswith(title)


def _title(memory: Memory) -> str:
    return " ".join(visible(memory.title or "").split())


def about(session: Session) -> str:
    """What a session was asked and came to, in one line."""
    told = of_summary(session.summary or "", SHOWN)
    return visible(told) or one_line(session.summary or session.user_prompt or "")


def plain_hit(hit: Hit) -> dict[str, Any]:
    """A hit as JSON."""
    return {
        "score": round(hit.score, 4),
        "parts": {part.name: round(part.value, 4) for part in hit.parts},
        "superseded_by": hit.superseded_by,
        "related": hit.related,
        "stale": list(hit.stale),
        **({"project": asdict(hit.project)} if hit.project else {}),
        **({"asked": hit.asked, "excerpt": of_turn(hit, SHOWN_AS_JSON)} if hit.memory.kind == "turn" else {}),
        **asdict(hit.memory),
    }


def plain_document_hit(hit: DocumentHit) -> dict[str, Any]:
    document = hit.chunk.document
    return {
        "score": round(hit.score, 4),
        "parts": {part.name: round(part.value, 4) for part in hit.parts},
        "heading": hit.chunk.heading,
        "text": hit.chunk.text,
        "document_id": document.id,
        "title": document.title,
        "source_path": document.source_path,
        "source_url": document.source_url,
        "stale": hit.stale,
    }


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
        if memory.kind == "turn":
            _turn_hit(out, hit, root, is_best=place == 1)
        elif not is_said(memory):
            one_row(out, Text(f"    {_title(memory)}", style="bold"))
            one_row(out, Text("    " + one_line(memory.content.replace(root + "/", ""))))
        else:
            one_row(out, Text("    " + gist(memory, root)))
        for change in hit.stale:
            one_row(out, Text(f"    {visible(change)}", style="yellow"))
        if explain:
            _explained(out, hit.parts)


def _turn_hit(out: Console, hit: Hit, root: str, *, is_best: bool) -> None:
    """What was asked, the pieces that fit below it, and the commits. A terminal's rows are few: a long piece
    takes some of them, and the whole turn is a command away."""
    shown = parts_of_turn(hit, SHOWN_OF_BEST_TURN if is_best else SHOWN_OF_TURN)
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


def timeline(found: Timeline, turns: Mapping[str, Turn], root: str) -> None:
    """A line each, oldest first, with the session's name where it changes."""
    out = console()
    by_id = {session.id: session for session in found.sessions}
    session_id = None
    entries = [
        one for entry in found.entries for one in ((entry, found.anchor) if entry is found.turn else (entry,))
    ]
    for memory in entries:
        if memory.session_id != session_id and (session := by_id.get(memory.session_id or "")):
            told = about(session) or "no summary"
            head = f"session {visible(session.id[:8])}  {when(session.started_at)}  {told}"
            one_row(out, Text(head, style="bold"))
        session_id = memory.session_id
        is_anchor = memory.id == found.anchor.id
        line = Text("    " if is_anchor and found.turn else "")  # it stands within its turn
        line.append(">>> " if is_anchor else "    ", style="green")
        line.append(f"{when(memory.created_at)}  ", style="dim").append(memory.id, style="cyan")
        line.append("  superseded" if memory.valid_until else "", style="yellow")
        line.append("  ")
        turn = turns.get(memory.id)
        told = _gist_of_turn(turn, root, out.width - line.cell_len) if turn else titled(memory, root)
        one_row(out, line.append(told, style="bold default" if is_anchor else "default"))


def documents(found: Sequence[Document]) -> None:
    out = console()
    for document in found:
        row = Text(document.id, style="cyan").append(f"  {when(document.updated_at)}  ", style="dim")
        row.append(f"{number_of(document.chunks, 'chunk', 'chunks'):>11}  ", style="default")
        row.append(one_line(document.title or "untitled", 60), style="bold default")
        row.append(f"  {one_line(document.source_path or document.source_url or 'inline')}", style="dim")
        one_row(out, row)


def document_hits(found: Sequence[DocumentHit], explain: bool) -> None:
    out = console()
    for place, hit in enumerate(found, 1):
        document = hit.chunk.document
        score = f"  score {hit.score:.2f}"
        room = out.width - 4 - len(score)
        title = one_line(document.title or "untitled", max(1, min(60, room)))
        heading = one_line(hit.chunk.heading or "", max(1, room - len(title) - 2))
        head = Text(f"{place:>2}. ").append(title, style="bold")
        head.append(f"  {heading}" if len(heading) > 1 else "", style="magenta").append(score, style="green")
        one_row(out, head)
        one_row(out, Text("    " + one_line(hit.chunk.text)))
        where = hit.stale or document.source_path or document.source_url or "inline"
        one_row(out, Text("    " + one_line(where), style="yellow" if hit.stale else "dim"))
        if explain:
            _explained(out, hit.parts)


def sessions(found: Sequence[Session]) -> None:
    """A row each. Where the terminal is narrow, columns give way to what it was about; the id never does."""
    out = console()
    rows = [
        {
            "session": visible(one.id[:8]),  # its beginning is enough to name a session
            "started": when(one.started_at),
            "status": one.status,
            "branch": one_line(one.branch or "-", 20),
            "memories": f"{one.memories:,}",
            "about": about(one) or "-",
        }
        for one in found
    ]
    table(out, rows, {"memories"}, ("branch", "memories", "status", "started"), last=SHORTEST_ABOUT)


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


def session(
    found: Session,
    turns: Sequence[Turn],
    made: Sequence[Memory],
    root: str,
    summary: Summary | None = None,
    made_by: str | None = None,
) -> None:
    """One session: what it came to, and then as it went, turn by turn. What a tool use left stands only where
    no turn tells of it."""
    out = console()
    traces = [memory for memory in made if memory.kind == "tool"]
    counted = (
        number_of(len(turns), "turn", "turns"),
        number_of(len(made) - len(traces), "memory", "memories"),
        number_of(len(traces), "trace", "traces"),
    )
    branch = f"on {found.branch}" if found.branch else ""
    about = visible(", ".join(filter(None, [found.status, branch, *counted])))
    out.print(Text(visible(found.id), style="bold cyan").append(f"  {about}", style="not bold default"))
    if summary:
        _summary(out, summary, made_by)
    told: list[tuple[int, list[Text]]] = [(turn.started_at, _turn_rows(turn, root)) for turn in turns]
    for memory in made:
        if memory.kind == "tool" and any(_holds(turn, memory) for turn in turns):
            continue
        if not (summary and memory.kind == "summary"):  # it stands above
            line = Text(f"{when(memory.created_at)}  ", style="dim").append(memory.id, style="cyan not dim")
            line.append("  " + titled(memory, root), style="default not dim")
            told.append((memory.created_at, [line]))
    for _, rows in sorted(told, key=lambda entry: entry[0]):
        for row in rows:
            one_row(out, row)


def _holds(turn: Turn, memory: Memory) -> bool:
    return turn.started_at <= memory.created_at <= turn.ended_at


def _turn_rows(turn: Turn, root: str) -> list[Text]:
    head = Text(f"{when(turn.started_at)}  ", style="dim").append(turn.id, style="cyan not dim")
    ended = "" if turn.state == COMPLETE else turn.state
    said = filter(None, (f"answered: {turn.answer}" if turn.answer else ended, *facts_of(turn)))
    return [
        head.append(f"  > {one_line(turn.asked)}" if turn.asked else "", style="bold not dim default"),
        *(Text("      " + one_line(line.replace(root + "/", ""))) for line in said),
    ]


def _summary(out: Console, summary: Summary, made_by: str | None) -> None:
    rows = {
        "request": summary.request,
        "investigated": summary.investigated,
        "learned": summary.learned,
        "completed": summary.completed,
        "next steps": summary.next_steps,
        "files read": ", ".join(summary.files_read),
        "files edited": ", ".join(summary.files_edited),
        "notes": summary.notes,
        "summed up by": made_by or "",
    }
    facts(out, rows.items())
    out.print()


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
    if not is_said(found):
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
