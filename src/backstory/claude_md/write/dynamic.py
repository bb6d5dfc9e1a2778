"""The `# DOCMEM Dynamic` section of a CLAUDE.md: found, put in, taken out. Bytes in, bytes out.

The section is the last thing in the file. One line break is put before it and that one is taken away with it,
so that a file without views is, byte for byte, what it was. What a person writes below the section comes to
stand above it. A section has one header and one end: node text that looks like either gets a backslash, and
so does an `@` in it that Claude Code would take for an import.

Which sections are ours:

    outside of code fences           all that begin with our header, up to their end; without an end (another
                                     program's, or somebody took it away) up to the next `# ` heading or
                                     marker of `sections`
    in a MANUAL part                 those that look as we write them: header, blank line, `## `, ..., end
    in a fence that is closed        none: that is an example
    in a fence that is never closed  those that look as we write them, too

A fence in such a section is node text: it neither opens nor closes one outside. So a fence that lacks its
end, be it only while somebody types it, does not part us from our section.

One thing is left: where a person has both an example of a section without its end, in a fence that is closed
or in a MANUAL part, and an end of ours below it that ends no section, these two look like one of ours under a
fence that is never closed, or in that part.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from backstory.safety.fence import defuse

HEADER = b"# DOCMEM Dynamic"
# Found by how it begins. Short enough that what wraps lines leaves it in one.
END = b"<!-- end of DOCMEM Dynamic: backstory rewrites this; put your text outside -->"

Views = Sequence[tuple[str, str]]


def section(views: Views) -> bytes:
    """The section that shows these views, (node id, expansion) each; with LF, whatever the file uses."""
    parts = [HEADER + b"\n"]
    for node_id, expansion in views:
        shown = without_imports(without_open_html(plain(expansion)))
        parts.append(b"## %s\n\n%s\n" % (node_id.encode(), shown))
    return b"\n".join([*parts, END + b"\n"])


def with_views(text: bytes, views: Views) -> bytes:
    """The file with these views as its last section; with none, as it is without."""
    rest = without(text)
    return rest + b"\n" + section(views) if views else rest


def without(text: bytes) -> bytes:
    """The file without sections of ours."""
    return _cut(text, layout(text).sections)


def theirs(text: bytes) -> bytes:
    """What surely is not ours. A section that lacks its end may have swallowed what somebody wrote below."""
    return _cut(text, [cut for cut in layout(text).sections if cut.is_whole])


def has_section(text: bytes) -> bool:
    return bool(layout(text).sections)


def last_place(text: bytes) -> int:
    """Where what is added to the file goes: to its end, but above our section if that is the last thing."""
    cuts = layout(text).sections
    if cuts and not without(text[cuts[0].start :]).strip():
        return len(without(text[: cuts[0].stop]))  # also above the line break before it
    return len(text)


def plain(text: str) -> bytes:
    """What anybody may have written, harmless, and without what looks like our header or end; with LF."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)  # people look at this file in a terminal
    return _LIKE_OURS.sub(rb"\g<0>\\", defuse(text).encode("utf-8", "replace"))


def without_imports(text: bytes) -> bytes:
    # Claude Code puts the file that `@path` names into the model's context, in a list even where it is code.
    # So node text could fetch any file that the client may read. It takes no `\@` for one, nor `me@here`.
    return _EVEN_BACKSLASHES.sub(rb"\g<0>\\", _IMPORT.sub(rb"\\@", text))


def without_open_html(text: bytes) -> bytes:
    """Text in which nothing but a blank line is needed to end what HTML begins. Else a `<pre>` would be the
    last thing for Claude Code that is Markdown, and it would import nothing of what a person names below."""
    pieces, at = [], 0
    for start, stop in layout(text).fences:
        pieces += [_OPEN_HTML.sub(rb"\1&lt;", text[at:start]), text[start:stop]]
        at = stop
    return b"".join([*pieces, _OPEN_HTML.sub(rb"\1&lt;", text[at:])])


def _cut(text: bytes, cuts: Iterable[Cut]) -> bytes:
    kept, at, separator = bytearray(), 0, b""
    for start, stop, is_whole in [*cuts, Cut(len(text), len(text), is_whole=False)]:
        if piece := text[at:start]:
            if kept and not kept.endswith(b"\n"):
                kept += separator  # the piece was below a section, and is a line of its own
            separator = _separator(piece, text[start:stop], is_whole)
            kept += piece[: len(piece) - len(separator)]
        at = stop
    return bytes(kept)


# Finding sections. All of it takes time in proportion to the text.

_LINE = (
    rb"(?P<header># DOCMEM Dynamic[ \t]*\r?$)"
    # To the end of the comment. What follows a comment that does not end in its line is not ours for sure.
    rb"|(?P<end><!-- end of DOCMEM Dynamic\b(?:[^\n]*?-->)?)"
    rb"|(?P<heading> {0,3}#(?:[ \t\r]|$))"
    rb"|(?P<marker>(?:\A\xef\xbb\xbf)? {0,3}<!--[ \t]*(?P<ends>END[ \t]+)?(?:AUTO-MANAGED|MANUAL)\b"
    rb"(?P<manual>(?<=MANUAL)[ \t]*-->[ \t\r]*$)?)"
    # Also as the first thing in an item of a list, if what ends it is indented by no more than three blanks.
    rb"|(?P<fence>(?:\A\xef\xbb\xbf)?(?P<item> [-+*] |[-+*] {1,2}|\d[.)] | {0,3})"
    rb"(?P<signs>`{3,}+(?=[^`\n]*$)|~{3,}+)(?P<info>.*))"
)
_AT = re.compile(_LINE, re.MULTILINE)
_NEXT = re.compile(rb"^(?:" + _LINE + rb")", re.MULTILINE)
_AFTER_END = re.compile(rb"[ \t]*\r?(?:\n|\Z)")
_AS_WE_WRITE = re.compile(rb"[ \t]*\r?\n[ \t]*\r?\n## ")

# What a terminal obeys, what turns the direction of writing around, and the mark that a file begins with.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]")
# An end that is indented would be one as soon as somebody shifts it.
_LIKE_OURS = re.compile(
    rb"^(?=# DOCMEM Dynamic[ \t]*$)|^[ \t]*(?=<!-- end of DOCMEM Dynamic\b)", re.MULTILINE
)
# What goes on over blank lines up to its own end.
_OPEN_HTML = re.compile(
    rb"^( {0,3})<(?=(?:script|pre|style|textarea)\b|\?|!\[)", re.MULTILINE | re.IGNORECASE
)
# Both look back from their first sign, because that is found quickly.
_IMPORT = re.compile(rb"@(?<![A-Za-z0-9\\]@)")
_EVEN_BACKSLASHES = re.compile(rb"\\(?<!\\\\)\\(?:\\\\)*(?=@)")  # which mean themselves, and guard no `@`


class _Line:
    """A line that matters."""

    __slots__ = ("closes", "in_manual", "kind", "looks_ours", "signs", "start", "stop")

    def __init__(self, found: re.Match[bytes]) -> None:
        self.kind = found.lastgroup  # header, end (one that ends no section), heading, marker or fence
        self.start = found.start()
        self.stop = 0  # of a header: where its section ends, if there is an end
        self.looks_ours = False
        # Of the marker of a MANUAL part: is what follows in it?
        self.in_manual = found["ends"] is None if found["manual"] is not None else None
        self.signs = found["signs"] or b""
        self.closes = not found["info"].strip() and not found["item"].strip() if self.signs else False


class Cut(NamedTuple):
    start: int
    stop: int
    is_whole: bool  # it has an end


class Layout(NamedTuple):
    """What of a file is not plain text. A fence in a section of ours is not listed."""

    sections: list[Cut]
    fences: list[tuple[int, int]]  # those that are closed: where the lines begin that open and close them
    open_fence: int | None  # where the line begins that opens a fence which is never closed


def _lines(text: bytes) -> list[_Line]:
    lines: list[_Line] = []
    header: _Line | None = None  # waits for its end
    place, at = 0, 0
    found = _NEXT.search(text)
    while found:
        line = _Line(found)
        at = found.end()
        if line.kind == "end" and header:
            tail = _AFTER_END.match(text, at)
            at = header.stop = tail.end() if tail else at
            if header.looks_ours:
                del lines[place:]
            header = None
            # What follows on the same line will be a line of its own.
            found = (None if tail else _AT.match(text, at)) or _NEXT.search(text, at)
            continue
        lines.append(line)
        if line.kind == "header":
            header, place = line, len(lines)
            header.looks_ours = _AS_WE_WRITE.match(text, line.start + len(HEADER)) is not None
        found = _NEXT.search(text, at)
    return lines


def layout(text: bytes) -> Layout:
    cuts: list[Cut] = []
    fences: list[tuple[int, int]] = []
    lines = _lines(text)
    closed_by = _closers(lines)
    in_manual = False
    i = 0
    while i < len(lines):
        line = lines[i]
        if line.in_manual is not None:
            in_manual = line.in_manual
        if line.kind == "header" and (not in_manual or (line.stop and line.looks_ours)):
            stop = line.stop or _next_heading(text, lines, closed_by, i)
            cuts.append(Cut(line.start, stop, is_whole=bool(line.stop)))
            while i < len(lines) and lines[i].start < stop:
                i += 1
        elif line.kind != "fence":
            i += 1
        elif i in closed_by:
            closer = closed_by[i]
            fences.append((line.start, lines[closer].start))
            i = closer + 1
        else:
            cuts += [Cut(it.start, it.stop, is_whole=True) for it in lines[i:] if it.stop and it.looks_ours]
            return Layout(cuts, fences, line.start)
    return Layout(cuts, fences, None)


def closing(text: bytes) -> bytes:
    """The line that closes the fence which is open at the end of text; nothing where none is."""
    start = layout(text).open_fence
    fence = None if start is None else _AT.match(text, start)
    # As far indented as the signs that open it: else it would not be in the same item of a list.
    return b" " * len(fence["item"]) + fence["signs"] if fence else b""


def _closers(lines: list[_Line]) -> dict[int, int]:
    """Which fence each fence would be closed by: the next of its sign that is bare and as long."""
    closed_by = {}
    # Of each sign, seen from the end: those that could close a fence, the nearest last. One with a longer or
    # equal one before it never will. Lengths are negative, so that they are sorted.
    lengths: dict[int, list[int]] = {ord("`"): [], ord("~"): []}
    places: dict[int, list[int]] = {ord("`"): [], ord("~"): []}
    for i in range(len(lines) - 1, -1, -1):
        line = lines[i]
        if line.kind != "fence":
            continue
        length, place = lengths[line.signs[0]], places[line.signs[0]]
        many = bisect_right(length, -len(line.signs))
        if many:
            closed_by[i] = place[many - 1]
        if line.closes:
            shorter = bisect_left(length, -len(line.signs))
            length[shorter:] = [-len(line.signs)]
            place[shorter:] = [i]
    return closed_by


def _next_heading(text: bytes, lines: list[_Line], closed_by: dict[int, int], i: int) -> int:
    """Where the section at line i stops, which has no end. A fence that is never closed hides no heading, and
    none hides a whole section or a marker: what closes it may be in there."""
    seen = i + 1  # what is before that is in a fence
    for at in range(i + 1, len(lines)):
        line = lines[at]
        if line.kind == "marker" or line.stop or (at >= seen and line.kind in ("heading", "header")):
            return line.start
        seen = max(seen, closed_by.get(at, at) + 1) if at >= seen else seen
    return len(text)


def _separator(above: bytes, section: bytes, is_whole: bool) -> bytes:
    """The line break before a section that goes with it."""
    if not section or not above.endswith(b"\n"):
        return b""
    # Whatever has turned the header's line break into CRLF has done the same to the one before it.
    converted = section.partition(b"\n")[0].endswith(b"\r") and above.endswith(b"\r\n")
    separator = b"\r\n" if converted else b"\n"
    # What is not whole may be another program's, which put none: then the break belongs to the line above.
    rest = above[: -len(separator)]
    return separator if is_whole or not rest or rest.endswith(b"\n") else b""
