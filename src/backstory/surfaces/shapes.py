"""One way out: what a command, a tool or a page has to say, as values.

A command returns a `Reply`: a value for programs, and the same for people, as sentences, rows, facts and
tables. What prints it knows its own medium: `cli/output.py` a pipe and `--json`, `cli/terminal.py` colours
and a width. Nothing here imports either. A text here may be hostile: it is made visible where it is printed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from typing import Any

from backstory.gist import of_summary
from backstory.model import DocumentHit, Hit, Memory, Node, NodeHit, Part, Session
from backstory.safety.fence import UNRULY

SHOWN = 200  # characters of a text in one line
ROOM_AS_JSON = (2_000, 2_000)  # characters of a turn: of the best hit, of the others

CUT, WRAP, WHOLE, LINES = "cut", "wrap", "whole", "lines"
Piece = str | tuple[str, str]  # a text; or a text and its style


@dataclass(frozen=True, slots=True)
class Line:
    """A line in pieces. Where it is too long for a terminal it is cut, goes on below, indented, or stays
    whole, because people copy it from there. A pipe gets it whole. LINES goes on below, too, and like WHOLE
    it may be several lines."""

    pieces: tuple[Piece, ...]
    long: str = CUT
    indent: int = 0  # of its further rows
    most: int = 0  # rows; 0: as many as there are
    end: Piece = ""  # what stands at the end of a line also where that is cut


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values, a line each; without the empty ones."""

    pairs: Sequence[tuple[str, str]]
    room: int = 12  # for the names

    def lines(self) -> Iterator[Line]:
        for name, value in self.pairs:
            if words := " ".join(value.split()):
                yield Line(((f"{name:>{self.room}}  ", "dim"), words), WRAP, self.room + 2)


@dataclass(frozen=True, slots=True)
class Raw:
    """A document: a pipe gets it letter by letter, a terminal in visible signs."""

    text: str


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    show: Callable[[Any], object] | None = None  # what stands in a row's cell; None: the field of that name
    right: bool = False  # aligned
    gives_way: int = 0  # where a terminal is too narrow, 1 goes first, then 2; 0 stays
    least: int = 0  # so many signs of the last column are enough
    empty: str = "-"  # what stands where there is nothing
    style: Callable[[Any], str] | None = None  # of a row's cell; the first column is cyan


@dataclass(frozen=True, slots=True)
class Table:
    """Columns under their names."""

    rows: Sequence[Any]
    columns: Sequence[Column]
    style: Callable[[Any], str] | None = None  # of a row

    def lines(self, width: int | None = None, size: Callable[[str], int] = len) -> Iterator[Line]:
        """The rows as lines. `width` is that of a terminal, `size` says how wide a text is there."""
        cells = [{column.name: _cell(column, row) for column in self.columns} for row in self.rows]
        wide = {
            column.name: column.least or max(map(size, (column.name, *(row[column.name] for row in cells))))
            for column in self.columns
        }
        for column in sorted(filter(lambda one: one.gives_way, self.columns), key=lambda one: one.gives_way):
            if width is not None and sum(wide.values()) + 2 * (len(wide) - 1) > width:
                del wide[column.name]
        right = {column.name for column in self.columns if column.right}

        def filled(row: Mapping[str, str]) -> Iterator[str]:
            for name, room in wide.items():
                space = " " * (room - size(row[name]))
                yield space + row[name] if name in right else row[name] + space

        yield Line((("  ".join(filled({name: name for name in wide})).rstrip(), "bold"),))
        shown = [column for column in self.columns if column.name in wide]
        for row, texts in zip(self.rows, cells, strict=True):
            whole = self.style(row) if self.style else ""
            pieces: list[Piece] = []
            for number, (column, text) in enumerate(zip(shown, filled(texts), strict=True)):
                style = column.style(row) if column.style else "" if number else "cyan"
                pieces += [("  " if number else "", whole), (text, f"{whole} {style}".strip())]
            yield Line(tuple(pieces))


def _cell(column: Column, row: Any) -> str:
    if column.show:
        value = column.show(row)
    else:
        value = row[column.name] if isinstance(row, Mapping) else getattr(row, column.name)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value or "")
    return one_line(text) or column.empty


Shown = str | Line | Facts | Table | Raw  # a str is a sentence


@dataclass(frozen=True, slots=True)
class Reply:
    """What there is to say."""

    value: object  # for programs
    shown: Iterable[Shown] = ()  # for people; computed only where it is printed
    notes: Sequence[str] = ()  # about it, for both
    no: str = ""  # the answer is no, or nothing was found: why, and what to do; exit code 1


def done(sentence: str, **value: object) -> Reply:
    """Something was done: a sentence, and its facts."""
    return Reply(value, [sentence])


def listing(
    rows: Sequence[Any], columns: Sequence[Column], *below: Shown, none: str, notes: Sequence[str] = ()
) -> Reply:
    """A list, and what stands below it; or why there is none."""
    return Reply(rows, [Table(rows, columns), *below] if rows else [], notes, "" if rows else none)


# --- for programs -------------------------------------------------------------------------------------------


def to_json(value: object) -> str:
    """JSON escapes the control characters below space itself; others drive a terminal as well."""
    text = json.dumps(plain(value), ensure_ascii=False, indent=2)
    return UNRULY.sub(lambda sign: json.dumps(sign[0])[1:-1], text)


def plain(value: object) -> Any:
    """A value as what JSON knows."""
    if encode := _ENCODERS.get(type(value)):
        return plain(encode(value))
    if is_dataclass(value):
        return plain(_fields(value))
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(part) for part in value]
    if value is None or isinstance(value, str | int | float):
        return value
    return {name: plain(getattr(value, name)) for name in type(value).__slots__}  # type: ignore[attr-defined]


def _fields(value: Any) -> dict[str, object]:
    return {one.name: getattr(value, one.name) for one in fields(value)}


def _hit(hit: Hit) -> dict[str, object]:
    is_turn = hit.memory.kind == "turn"
    return {
        **_score(hit),
        "superseded_by": hit.superseded_by,
        "related": hit.related,
        "stale": hit.stale,
        **({"project": hit.project} if hit.project else {}),
        **({"asked": hit.asked, "excerpt": str(hit.excerpt or "")} if is_turn else {}),
        **_fields(hit.memory),
    }


def _document_hit(hit: DocumentHit) -> dict[str, object]:
    document = hit.chunk.document
    return {
        **_score(hit),
        "heading": hit.chunk.heading,
        "text": hit.chunk.text,
        "document_id": document.id,
        "title": document.title,
        "source_path": document.source_path,
        "source_url": document.source_url,
        "stale": hit.stale,
    }


def _score(hit: Hit | DocumentHit) -> dict[str, object]:
    parts = {part.name: round(part.value, 4) for part in hit.parts}
    return {"score": round(hit.score, 4), "parts": parts}


def _node(node: Node) -> dict[str, object]:
    return {name: part for name, part in _fields(node).items() if name != "row"} | {"context": node.context}


def _node_hit(hit: NodeHit) -> dict[str, object]:
    return {
        "score": round(hit.score, 4),
        **_node(hit.node),
        "path": path_of(hit.path),
        "folded": [one.id for one in hit.folded],
    }


def path_of(above: Sequence[Node]) -> list[dict[str, str]]:
    return [{"id": one.id, "context": one.context} for one in above]


_ENCODERS: dict[type, Callable[[Any], object]] = {
    Hit: _hit,
    DocumentHit: _document_hit,
    Node: _node,
    NodeHit: _node_hit,
}


# --- for people ---------------------------------------------------------------------------------------------


def one_line(text: str, length: int = SHOWN) -> str:
    parts = [part.strip() for part in text.splitlines() if part.strip()]
    if len(parts) > 4:
        parts = [*parts[:2], "…", parts[-1]]  # of a long error the last line says most
    line = " · ".join(parts)
    return line if len(line) <= length else line[: length - 1] + "…"


def number_of(things: int, one: str, many: str) -> str:
    return f"{things:,} {one if things == 1 else many}"


def counted(*counts: tuple[int, str, str]) -> str:
    """How many of what, without what there is none of."""
    return ", ".join(number_of(*count) for count in counts if count[0])


def gist(memory: Memory, root: str) -> str:
    """A memory in one line: without what goes without saying, and with paths as seen from the project."""
    content = memory.content.replace(root + "/", "")
    if memory.kind == "tool" and "\nInput: " not in content:
        content = content.partition("\n")[2] or content
    if memory.kind == "summary" and (short := of_summary(content, SHOWN)):
        return short
    return one_line(content if is_title_in_text(memory) else f"{title(memory)} — {content}")


def titled(memory: Memory, root: str) -> str:
    """The same where nothing else says what kind it is: of traces and notes their text does."""
    is_plain = memory.kind in ("tool", "note")
    return gist(memory, root) if is_plain else f"{memory.kind}: {gist(memory, root)}"


def changed(what: str, memory: Memory) -> str:
    return f"Memory {what}: {memory.id} (new salience: {memory.salience:.2f})"


def is_title_in_text(memory: Memory) -> bool:
    """Does the text itself say what the title says? Then, or without a title, the text is enough."""
    return " ".join(memory.content.split()).casefold().startswith(title(memory).rstrip("….").casefold())


def title(memory: Memory) -> str:
    return " ".join((memory.title or "").split())


def score_parts(parts: Sequence[Part]) -> Line:
    """Why a hit scored."""
    return Line(("    ", ("  ".join(f"{part.name} {part.value:+.2f}" for part in parts), "dim")), WRAP, 4)


def session_gist(session: Session) -> str:
    """What a session was asked and came to, in one line."""
    return of_summary(session.summary or "", SHOWN) or one_line(session.summary or session.user_prompt or "")


def when(at: int) -> str:
    return datetime.fromtimestamp(at / 1000).strftime("%Y-%m-%d %H:%M")


def lately(at: int, now: int) -> str:
    """The same for what happened a short while ago."""
    told = when(at)
    return f"today {told[11:]}" if told[:10] == when(now)[:10] else told


def size(of_bytes: int) -> str:
    return f"{of_bytes / 1e6:.1f} MB"
