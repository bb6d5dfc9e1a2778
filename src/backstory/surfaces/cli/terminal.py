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
from backstory.model import Document, DocumentHit, Hit, Memory, Part, Session, Summary
from backstory.recall.timeline import Timeline
from backstory.surfaces.cli.output import SHOWN, number_of, one_line, visible, when

SHORTEST_ABOUT = 20
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


def titled(memory: Memory, root: str) -> str:
    """The same where nothing else says what kind it is: of traces, prompts and notes their text does."""
    is_plain = memory.kind in ("tool", "prompt", "note")
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


def hits(found: Sequence[Hit], root: str, explain: bool = False) -> None:
    out = console()
    for place, hit in enumerate(found, 1):
        memory = hit.memory
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
        if not is_said(memory):
            one_row(out, Text(f"    {_title(memory)}", style="bold"))
            one_row(out, Text("    " + one_line(memory.content.replace(root + "/", ""))))
        else:
            one_row(out, Text("    " + gist(memory, root)))
        for change in hit.stale:
            one_row(out, Text(f"    {visible(change)}", style="yellow"))
        if explain:
            _explained(out, hit.parts)


def memories(found: Sequence[Memory], root: str) -> None:
    """A line each."""
    out = console()
    for memory in found:
        line = Text(memory.id, style="cyan").append(f"  {when(memory.created_at)}  ", style="dim")
        line.append(f"{memory.kind:<10}", style="magenta")
        one_row(out, line.append(f"  {gist(memory, root)}", style="default"))


def timeline(found: Timeline, root: str) -> None:
    """A line each, oldest first, with the session's name where it changes."""
    out = console()
    by_id = {session.id: session for session in found.sessions}
    session_id = None
    for memory in (*found.before, found.anchor, *found.after):
        if memory.session_id != session_id and (session := by_id.get(memory.session_id or "")):
            told = about(session) or "no summary"
            head = f"session {visible(session.id[:8])}  {when(session.started_at)}  {told}"
            one_row(out, Text(head, style="bold"))
        session_id = memory.session_id
        is_anchor = memory.id == found.anchor.id
        line = Text(">>> " if is_anchor else "    ", style="green")
        line.append(f"{when(memory.created_at)}  ", style="dim").append(memory.id, style="cyan")
        line.append("  superseded" if memory.valid_until else "", style="yellow")
        style = "bold default" if is_anchor else "default"
        one_row(out, line.append("  " + titled(memory, root), style=style))


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
    prompts: Sequence[tuple[int, str]],
    made: Sequence[Memory],
    root: str,
    summary: Summary | None = None,
    made_by: str | None = None,
) -> None:
    """One session: what it came to, and then as it went: what was asked, and what was done."""
    out = console()
    branch = f"on {found.branch}" if found.branch else ""
    counted = number_of(len(made), "memory", "memories")
    about = visible(", ".join(filter(None, [found.status, branch, counted])))
    out.print(Text(visible(found.id), style="bold cyan").append(f"  {about}", style="not bold default"))
    if summary:
        _summary(out, summary, made_by)
    lines: list[tuple[int, Text]] = []
    for at, prompt in prompts:
        line = Text(f"{when(at)}  ", style="dim")
        lines.append((at, line.append(f"> {one_line(prompt)}", style="bold not dim")))
    for memory in made:
        line = Text(f"{when(memory.created_at)}  ", style="dim").append(memory.id, style="cyan not dim")
        if not (summary and memory.kind == "summary"):  # it stands above
            line.append("  " + titled(memory, root), style="default not dim")
            lines.append((memory.created_at, line))
    for _, line in sorted(lines, key=lambda entry: entry[0]):
        one_row(out, line)


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
            out.print(Text(f"{name:>12}  ", style="dim").append(words, style="not dim default"))


def one_row(out: Console, line: Text) -> None:
    """What is too long for the terminal's width ends in an ellipsis instead of a second row."""
    out.print(line, no_wrap=True, overflow="ellipsis", soft_wrap=False)


def memory(found: Memory, stale: Sequence[str] = (), relations: Sequence[tuple[str, str, str]] = ()) -> None:
    out = console()
    state = "forgotten" if found.deleted_at else "superseded" if found.valid_until else ""
    facts: Mapping[str, Any] = {
        "kind": found.kind,
        "sector": found.sector,
        "tier": found.tier,
        "created": when(found.created_at),
        "salience": f"{found.salience:.2f}",
        "session": found.session_id or "-",
        "author": found.author or "-",
        "tags": ", ".join(found.tags) or "-",
        "files": ", ".join(found.files) or "-",
        **({"concepts": ", ".join(found.concepts)} if found.concepts else {}),
    }
    out.print(Text(found.id, style="bold cyan").append(f"  {state}" if state else "", style="yellow"))
    for name, value in facts.items():
        out.print(Text(f"{name:>9}  ", style="dim").append(visible(str(value)), style="not dim"))
    for change in stale:
        out.print(Text(" " * 11 + visible(change), style="yellow"))
    for source, relation, target in relations:
        line = Text(f"{'relation':>9}  ", style="dim")
        out.print(line.append(f"{source} {relation} {target}", style="not dim"))
    out.print()
    if not is_said(found):
        out.print(Text(_title(found), style="bold"))
    out.print(Text(visible(found.content)), soft_wrap=True)  # a command copied from here must stay whole


def archived(found: Mapping[str, object]) -> None:
    """A memory that was put away."""
    out = console()
    out.print(Text(str(found["id"]), style="bold cyan").append("  archived", style="yellow"))
    out.print(Text(f"`backstory restore {found['id']}` brings it back", style="dim"))
    out.print()
    out.print(Text(visible(str(found["content"]))), soft_wrap=True)
