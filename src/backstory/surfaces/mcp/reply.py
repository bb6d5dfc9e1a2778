"""What the MCP tools answer, as text: fenced, because what is remembered is data and never instructions.

Contents are indented, so that no memory can pose as another or as a line of ours.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from backstory.gist import of_summary
from backstory.recall.excerpt import in_short
from backstory.safety import fence
from backstory.safety.clean import without_middle

if TYPE_CHECKING:
    from backstory.model import Answer, DocumentAnswer, Hit, Memory, Session
    from backstory.recall.documents.ingest import Ingested
    from backstory.recall.timeline import Timeline

SHOWN = 300  # characters of a memory in a list; its id brings the whole
SHOWN_OF_WHOLE = 20_000  # a turn may have 100,000, and a reply is paid for
NO_FIT = "Nothing fits well; nearest:"
SHOWN_IN_TIMELINE = 200
SHOWN_OF_CHUNK = 1_500  # enough to answer from; the source has the rest


def memories(answer: Answer, backlog: str | None = None) -> str:
    """A memory that was asked for by its id is shown whole, with its relations."""
    notice = "; ".join(filter(None, (answer.notice, backlog)))
    if not answer.hits:
        return _noticed("No memories found.", notice)
    shown = [_hit(place, hit, answer) for place, hit in enumerate(answer.hits, 1)]
    shown[0] = shown[0] if answer.fits else f"{NO_FIT}\n{shown[0]}"
    return _noticed(fence.fence("\n\n---\n\n".join(shown), "backstory memory_search"), notice)


def timeline(found: Timeline) -> str:
    lines = ["Timeline:", ""]
    for memory in found.entries:
        lines += [*_entry(memory, is_anchor=memory is found.anchor), ""]
        if memory is found.turn:  # it happened in this one
            lines[-1:] = [*(f"    {line}" for line in _entry(found.anchor, is_anchor=True)), ""]
    if found.sessions:
        lines.append("Sessions in timeline:")
        for session in found.sessions:
            lines.append(f"  - {_minute(session.started_at)}: {_about(session, 200) or 'No summary'}")
    return fence.fence("\n".join(lines), "backstory memory_timeline")


def _entry(memory: Memory, *, is_anchor: bool) -> list[str]:
    marker = ">>>" if is_anchor else "   "
    superseded = " [SUPERSEDED]" if memory.valid_until else ""
    told = memory.content
    if memory.title and memory.kind != "turn":
        told = f"{_line(memory.title)} - {told}"
    told = in_short(told, SHOWN_IN_TIMELINE) if memory.kind == "turn" else _cut(told, SHOWN_IN_TIMELINE)
    return [
        f"{marker} [{_minute(memory.created_at)}] ({memory.sector}){superseded} {memory.id}",
        " " * 6 + _indented(told, " " * 6),
    ]


def documents(answer: DocumentAnswer) -> str:
    if not answer.hits:
        return _noticed("No documents found.", answer.notice)
    shown = []
    for place, hit in enumerate(answer.hits, 1):
        document = hit.chunk.document
        lines = [
            f"[{place}] {_line(document.title or 'Untitled')} (score: {hit.score:.2f})",
            f"Source: {_line(document.source_path or document.source_url or 'inline')}",
        ]
        if hit.stale:
            lines.append(f"Files: {_line(hit.stale)}")
        if hit.chunk.heading:
            lines.append(f"Section: {_line(hit.chunk.heading)}")
        lines.append("Match: " + _indented(_cut(hit.chunk.text, SHOWN_OF_CHUNK), "  "))
        shown.append("\n".join(lines))
    return _noticed(fence.fence("\n\n".join(shown), "backstory docs_search"), answer.notice)


def ingested(done: Ingested, name: str | None) -> str:
    """By the name the caller gave it, never by the one it gives itself: a page may be called anything."""
    return fence.defuse(str(replace(done, title=_cut(_line(name), 80) if name else None)))


def _hit(place: int, hit: Hit, answer: Answer) -> str:
    memory = hit.memory
    lines = [
        f"[{place}] ({memory.sector}, score: {hit.score:.2f}, salience: {memory.salience:.2f})",
        f"ID: {memory.id}",
    ]
    if hit.project:
        lines.append(f"Project: {_line(hit.project.name)} (another one)")
    if memory.title and memory.kind != "turn":
        lines.append(f"Title: {_line(memory.title)} ({memory.kind})")
    if memory.valid_until:
        lines.append(f"⚠️ SUPERSEDED by: {hit.superseded_by or 'something newer'}")
    if hit.session:
        about = "" if memory.kind == "turn" else _about(hit.session, 50)  # what was asked stands below
        lines.append(f"Session: {_minute(hit.session.started_at)}" + (f" - {about}" if about else ""))
    else:
        lines.append(f"Created: {_minute(memory.created_at)}")  # of two that differ, the newer one holds
    if memory.kind != "turn":
        lines.append(f"Source: {memory.source}")
    if hit.related:
        lines.append(f"Related: {hit.related} {'memory' if hit.related == 1 else 'memories'}")
    if hit.stale:
        lines.append(f"Files: {_line('; '.join(hit.stale))}")
    if answer.by_id and memory.concepts:
        lines.append(f"Concepts: {_line(', '.join(memory.concepts))}")
    for source, relation, target in answer.relations:
        lines.append(f"Relation: {source} {relation} {target}")
    left_out = len(memory.content) - SHOWN_OF_WHOLE
    if answer.by_id and left_out > 0:
        lines.append(f"Left out: {left_out:,} characters; `backstory show {memory.id}` prints all")
    lines.append("Content: " + _indented(_content(hit, whole=answer.by_id), "  "))
    return "\n".join(lines)


def _content(hit: Hit, *, whole: bool) -> str:
    if whole:
        return without_middle(hit.memory.content, SHOWN_OF_WHOLE)
    return str(hit.excerpt) if hit.excerpt else _cut(hit.memory.content, SHOWN)


def _noticed(text: str, notice: str | None) -> str:
    """A notice may quote what a server said."""
    return f"{text}\n\n({fence.defuse(_line(notice))})" if notice else text


def _about(session: Session, length: int) -> str:
    told = of_summary(session.summary or "", length)
    return told or _cut(_line(session.summary or session.user_prompt or ""), length)


def _minute(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%dT%H:%M")


def _line(text: str) -> str:
    return " ".join(text.split())


def _indented(text: str, by: str) -> str:
    """All lines but the first; splitlines knows every sign that ends one."""
    return f"\n{by}".join(text.splitlines())


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[:length] + "..."
