"""Trees as documents, and documents as trees.

TOML holds a tree as it is: one table a node, depth-first, and what was imported is exported as the same
bytes. Markdown holds it as a person would write it: what has nodes below it is a heading. A Markdown document
becomes a tree of its headings with what stands below them, a text one of its paragraphs; both are somebody
else's words, so their nodes are readonly.

Every line of a document is looked at once, and nothing recurses: what takes long is long.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from backstory.docmem import tree
from backstory.docmem.tree import LONGEST_NAME, LONGEST_TEXT, Context, Made, short
from backstory.errors import BadInput
from backstory.model import Node, Project
from backstory.recall.documents import chunk, file
from backstory.recall.documents.chunk import CLOSING_HASHES, MAX_TITLE, PARAGRAPH, plain
from backstory.safety.clean import clean_whole
from backstory.store.file.connection import Connection
from backstory.whole_file import whole_file

FORMATS = ("toml", "md", "txt")
LARGEST_TREE = 100_000_000  # bytes of TOML
MOST_NODES = 30_000  # of a document: about three seconds, in which no other process can write to the store
MAX_HEADING = 100  # characters of a node's text that may be a heading, where no document said it is one


class Imported(NamedTuple):
    root: Node
    is_whole: bool  # nothing private or secret was left out


def import_document(
    db: Connection, project: Project, text: str, format: str, root_id: str | None, name: str, now: int
) -> Imported:
    """A new tree. Its id is `root_id`, or what the TOML says, or made of the document's `name`."""
    if len(text) > most_bytes(format):
        raise BadInput(
            f"the document has {len(text):,} characters, one may have {most_bytes(format):,}; cut it up"
        )
    if format == "toml":
        cleaned = [_cleaned(one) for one in parse_toml(text)]
        made, is_less = [one for one, _ in cleaned], any(is_less for _, is_less in cleaned)
    elif format in FORMATS:
        file.check_lines(text)
        parse = parse_markdown if format == "md" else parse_text
        text, is_less = clean_whole(text, may_quote=True)  # at once: what is private may span paragraphs
        name, is_name_less = clean_whole("" if root_id else name, may_quote=True)
        made, is_less = parse(text, root_id or name), is_less or is_name_less
    else:
        raise BadInput(f"there is no format {format[:60]!r} of a document; use one of {', '.join(FORMATS)}")
    if root_id is not None:
        made[0] = replace(made[0], id=root_id)
    return Imported(tree.build(db, project, made, now=now), not is_less)


def most_bytes(format: str) -> int:
    """What was exported must come in again; any other document may be as large as one for reference."""
    return LARGEST_TREE if format == "toml" else file.LARGEST


def text_of(body: bytes, format: str, named: str) -> str:
    if b"\0" in body[:8192]:
        raise BadInput(f"{named} is not text; import Markdown, plain text or TOML, in UTF-8")
    if format != "toml":
        return file.decode(body, None)
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:  # one wrong letter, and it is another tree
        raise BadInput(f"{named} is not UTF-8 (byte {error.start:,}); save it as UTF-8") from error


def save(path: str, document: str, *, replaces: bool = False) -> None:
    with whole_file(path, replaces=replaces) as made:
        made.write(document.encode())


def _cleaned(one: Made) -> tuple[Made, bool]:
    """What replaces a secret may be longer than it. What was too long before is refused later, not cut."""
    (text, is_less), *context = [clean_whole(part, may_quote=True) for part in (one.text, *one.context)]
    parts = []
    for part, (fit, is_part_less) in zip(one.context, context, strict=True):
        parts.append(part if fit == part else fit[:LONGEST_NAME])
        is_less = is_less or is_part_less
    return replace(one, text=text, context=(parts[0], parts[1], parts[2])), is_less


def _check_number(nodes: int) -> None:
    if nodes > MOST_NODES:
        raise BadInput(
            f"the document has more than {MOST_NODES:,} nodes, and no import takes more; cut it into parts"
        )


# --- TOML ---------------------------------------------------------------------------------------------------

_KEYS = ("parent-node-id", "context", "content")
_ESCAPED = re.compile(r'["\\\x00-\x1f\x7f]')
_ESCAPED_IN_LINES = re.compile(r'"(?=""|\Z)|[\\\x00-\x08\x0b-\x1f\x7f]')  # never three quotes in a row
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}


def export_toml(nodes: Iterable[Node]) -> str:
    """A tree whose nodes come depth-first, the root first."""
    tables: list[str] = []
    for node in nodes:
        parent = f"parent-node-id = {_string(node.parent_id or '')}\n" if tables else ""
        names = [re.sub(r"[:\\]", r"\\\g<0>", part) for part in (node.context_type, node.context_name)]
        context = _string(":".join((*names, node.context_value)))
        tables.append(f"[{node.id}]\n{parent}context = {context}\ncontent = {_string(node.text)}\n")
    return "\n".join(tables)


def _string(text: str) -> str:
    if "\n" in text:
        return f'"""\n{_ESCAPED_IN_LINES.sub(_escape, text)}"""'
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    return _ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04X}"


def parse_toml(text: str) -> list[Made]:
    """The nodes depth-first, the root first. Siblings are in the order in which the document has them."""
    tables = _tables(text) if "[" in text else {}  # however many: what was exported comes back
    below: dict[str | None, list[str]] = {}
    for name, table in tables.items():
        below.setdefault(table.get("parent-node-id") or None, []).append(name)
    roots = below.pop(None, [])
    if len(roots) != 1:
        _refuse_roots(roots)
    for parent, children in below.items():
        if parent not in tables:
            raise BadInput(
                f"node {short(children[0])} has the parent-node-id {short(parent or '')}, and there is no"
                " such node; add it, or name another parent"
            )
    made: list[Made] = []
    at: dict[str, int] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        at[name] = len(made)
        table = tables[name]
        parent = table.get("parent-node-id")
        content, context = table.get("content", ""), _context(name, table)
        made.append(Made(name[:60], at[parent] if parent else None, content, context))
        waiting += reversed(below.get(name, []))
    if len(made) < len(tables):
        lost = next(name for name in tables if name not in at)
        raise BadInput(
            f"node {short(lost)} is not below the root {short(roots[0])}: its parents lead in a circle;"
            " correct its parent-node-id, or that of one above it"
        )
    return made


# All that may stand outside of strings and comments is names, = and brackets. Dots would join keys, and
# tomllib takes time by the square of how many.
_STRAY = re.compile(
    r'''"""(?:[^"\\]++|\\.|""?(?!"))*+"{0,5} | \'\'\'(?:[^']++|''?(?!'))*+'{0,5}
    | "(?:[^"\\\n]++|\\.)*+"? | '[^'\n]*+'? | \#[^\n]*+ | (?P<sign>[.,{}])''',
    re.VERBOSE | re.DOTALL,
)


def _tables(text: str) -> dict[str, dict[str, str]]:
    text = text.removeprefix("\ufeff")
    for found in _STRAY.finditer(text):
        if found["sign"]:
            line = text.count("\n", 0, found.start()) + 1
            raise BadInput(
                f"line {line} of the TOML has a {found['sign']} outside of quotes; write the id of a node in"
                " brackets, and its values as text in quotes"
            )
    try:
        found_tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(
            f"the TOML cannot be read: {str(error)[:200]}; correct that, or import the document as md or txt"
        ) from error
    for name, table in found_tables.items():
        if not isinstance(table, dict):
            raise BadInput(
                f"{short(name)} is no node; a node is a table: [<id>], and below it {', '.join(_KEYS)}"
            )
        for key, value in table.items():
            if key not in _KEYS:
                raise BadInput(
                    f"node {short(name)} has a key {short(key)}; the keys of a node are {', '.join(_KEYS)}"
                )
            if not isinstance(value, str):
                raise BadInput(f"node {short(name)}: {key} is no text; write it in quotes")
    return found_tables


def _refuse_roots(roots: list[str]) -> None:
    if not roots:
        raise BadInput(
            "the TOML has no root; a node is a table, [<id>] with context and content, and one of them has no"
            " parent-node-id"
        )
    raise BadInput(
        f"nodes {short(roots[0])} and {short(roots[1])} have no parent-node-id, and a tree has one root;"
        " give one of them a parent"
    )


_CONTEXT = re.compile(r"((?:[^:\\]|\\.)*+):((?:[^:\\]|\\.)*+):(.*)", re.DOTALL)


def _context(name: str, table: dict[str, str]) -> Context:
    found = _CONTEXT.fullmatch(table.get("context", ""))
    if not found:
        raise BadInput(
            f'node {short(name)} needs a context of three parts; write it as context = "type:name:value"'
        )
    kind, label = (re.sub(r"\\([:\\])", r"\1", part) for part in (found[1], found[2]))
    return kind, label, found[3]


# --- Markdown -----------------------------------------------------------------------------------------------

_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def export_markdown(nodes: Iterable[Node]) -> str:
    """A tree whose nodes come depth-first, the root first.

    A heading has the level that its document gave it, if that says where it stands: below its parent, and not
    below the heading before it that has the same parent. Else it has the next one.
    """
    written: list[str] = []
    levels: dict[str | None, int] = {}  # of each heading, by its node
    last: dict[str | None, int] = {}  # of the last heading below each node
    is_imported = False  # the first text
    for node in nodes:
        above = levels.get(node.parent_id, 0)
        title, text = _heading(node, is_root=not levels)
        level = above
        if title:
            stated = node.context_value if node.context_type == "heading" else ""
            wanted = int(stated) if stated in ("1", "2", "3", "4", "5", "6") else above + 1
            level = min(max(wanted, above + 1), last.get(node.parent_id, 6), 6)
            last[node.parent_id] = level
            closing = " #" if CLOSING_HASHES.search(title) else ""  # or its own would be taken for one
            written.append(f"{'#' * level} {title}{closing}")
        levels[node.id] = level
        if text:
            is_imported = node.readonly if not written else is_imported
            written.append(text)
    if not written:
        return ""
    document = "\n\n".join(written) + "\n"
    # In an imported document front matter is a node of its own; elsewhere it may begin one. What only looks
    # like it gets a blank line, or it would swallow what follows.
    end = chunk.front_matter(document)
    is_front_matter = end in (0, len(written[0])) if is_imported else end <= len(written[0])
    return document if is_front_matter else f"\n{document}"


def _heading(node: Node, is_root: bool) -> tuple[str, str]:
    """The heading that a node is or has, and its text below that."""
    title = node.text.strip() if len(node.text) <= MAX_TITLE else ""
    one_line = bool(title) and not re.search(r"[\r\n]", node.text)
    if one_line and node.context_type == "heading":
        return title, ""
    if node.size == 1:
        return "", node.text
    if one_line and len(title) <= MAX_HEADING:
        return title, ""
    return "" if is_root else node.context_name or node.context_type or node.id, node.text


def parse_markdown(text: str, name: str) -> list[Made]:
    """The nodes depth-first: a root, below it the headings, below each of them what it is the heading of."""
    made = [_root(name)]
    above = [(0, 0)]  # level and index of each heading that what comes next stands below
    for part, level in _parts(plain(text)):
        while level and above[-1][0] >= level:
            above.pop()
        parent = above[-1][1]
        if level:
            above.append((level, len(made)))
            context = ("heading", _UNSEEN.sub(" ", part)[:LONGEST_NAME], str(level))
            made.append(Made(None, parent, part, context, readonly=True))
        else:
            made += _texts(part, parent)
        _check_number(len(made))
    return _something(made)


def parse_text(text: str, name: str) -> list[Made]:
    """The nodes: a root, below it the paragraphs."""
    made = [_root(name)]
    for paragraph in PARAGRAPH.split(plain(text)):
        if paragraph.strip():
            made += _texts(paragraph.strip("\n"), 0)
            _check_number(len(made))
    return _something(made)


def _root(name: str) -> Made:
    root_id = re.sub(r"[^A-Za-z0-9_-]+", "-", name)[:LONGEST_NAME].strip("-") or None
    return Made(root_id, None, "", ("root", root_id or "", ""), readonly=True)


def _texts(text: str, parent: int) -> Iterator[Made]:
    """A piece of text as one node, or as several where it is longer than a node may be."""
    start = 0
    while start < len(text):
        end = start + LONGEST_TEXT
        if end < len(text):
            half = start + LONGEST_TEXT // 2
            end = text.rfind("\n", half, end) + 1 or text.rfind(" ", half, end) + 1 or end
        if piece := text[start:end].strip("\n"):
            yield Made(None, parent, piece, ("text", "", ""), readonly=True)
        start = end


def _something(made: list[Made]) -> list[Made]:
    if len(made) == 1:
        raise BadInput("there is nothing in the document; import one that has text")
    return made


def _parts(text: str) -> Iterator[tuple[str, int]]:
    """(text, level) of headings, and with level 0 of what stands between them, cut at blank lines; a fence is
    whole, and so is what is indented with what it is part of: an item of a list, mostly."""
    headings, fences = chunk.markdown(text)
    at = chunk.front_matter(text)
    yield from _whole(text[:at])
    inside = iter([*fences, (len(text) + 1, len(text) + 1)])
    fence = next(inside)
    for heading in [*headings, chunk.Heading(0, "", len(text), len(text))]:
        own = []
        while fence[0] < heading.start:
            own.append(fence)
            fence = next(inside)
        yield from _pieces(text, at, heading.start, own)
        if heading.level:
            yield heading.title, heading.level
        at = heading.end


def _pieces(text: str, start: int, end: int, fences: Sequence[tuple[int, int]]) -> Iterator[tuple[str, int]]:
    at = start
    for first, last in [*fences, (end, end)]:
        while gap := PARAGRAPH.search(text, at, min(first, end)):
            at = gap.end()
            if not text.startswith(("  ", "\t"), at):  # what is indented belongs to what stands above it
                yield from _whole(text[start : gap.start()])
                start = at
        at = last
    yield from _whole(text[start:end])


def _whole(text: str) -> Iterator[tuple[str, int]]:
    if text.strip():
        yield text.strip("\n"), 0
