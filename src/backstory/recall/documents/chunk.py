"""Cutting a document into chunks: pieces small enough to find, large enough to understand.

A document is first an outline: headings with the text below them. Every section begins a chunk, so that a
heading finds its section. A section that is too long is cut at the largest thing that ends in reach: a
paragraph, a sentence, a line, a word. The next chunk repeats the end of the one before, so that a thought on
the seam is whole in one of them.

Everything works on offsets into the text, and each step looks at a window of bounded size: the time is
linear, and a chunk is always a piece of the document as it was written.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, zip_longest
from typing import NamedTuple

from backstory.errors import BadInput
from backstory.markdown import fences

SIZE = 768  # tokens in a chunk, at most
OVERLAP = SIZE // 10
MAX_INDENT = 100  # characters; more blanks than that say nothing
MAX_TITLE = 300  # characters; what is longer is text, whatever stands before or below it

_QUARTERS = 4  # a token is four characters, or one that fills a square

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Chunk:
    heading: str  # the path to it: Guide > Install > Linux
    text: str


class Heading(NamedTuple):
    level: int
    title: str
    start: int
    end: int  # where the text below it starts


def chunks(text: str, kind: str) -> list[Chunk]:
    """The chunks of a document in its order. HTML is expected as the Markdown that `extract` makes of it."""
    text = plain(text)
    headings, solid = _outline(text, kind)
    made = []
    for heading, start, end in _sections(text, headings):
        for begin, cut in _cuts(text, start, end, solid):
            made.append(Chunk(heading, text[begin:cut].rstrip()))
    return made


def title_of(text: str, kind: str) -> str | None:
    """What the document calls itself: the title in its front matter, or the first of its highest headings."""
    text = plain(text)
    headings, _ = _outline(text, kind)
    first = min(headings, key=lambda heading: heading.level, default=None)
    stated = _stated_title(text[: front_matter(text)]) if kind in ("md", "html") else None
    return stated or (first.title if first else None)


def tokens(text: str) -> int:
    """About how many tokens a model sees in it."""
    return -(-_weight(text, 0, len(text)) // _QUARTERS)


def plain(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _outline(text: str, kind: str) -> tuple[list[Heading], list[Span]]:
    """The headings, and the spans that are better left whole."""
    if kind in ("md", "html"):
        headings, solid = markdown(text)
        return headings, [span for span in solid if _weight(text, *span) <= SIZE * _QUARTERS]
    if kind == "rst":
        return _restructured(text), []
    if kind == "txt":
        return [], []
    raise BadInput(
        f"a document of kind {kind[:40]!r} cannot be cut into chunks; it is one of md, rst, txt, html"
    )


def _sections(text: str, headings: list[Heading]) -> Iterator[tuple[str, int, int]]:
    """Heading path, start and end of each stretch of text.

    A heading with nothing but deeper headings below it is in their paths already. One with nothing below it
    at all is a line of text to the heading above it, together with its neighbours: an outline is a list.
    """
    yield "", 0, headings[0].start if headings else len(text)
    above: list[Heading] = []
    bare: tuple[str, int, int] | None = None
    for heading, following in zip_longest(headings, headings[1:]):
        while above and above[-1].level >= heading.level:
            above.pop()
        parent = " > ".join(each.title for each in above)
        end = following.start if following else len(text)
        empty = end == heading.end or text[heading.end : end].isspace()
        childless = following is None or following.level <= heading.level
        if bare and not (empty and childless and bare[0] == parent):
            yield bare
            bare = None
        if empty and childless:
            bare = (parent, bare[1] if bare else heading.start, end)
        elif not empty:
            yield (f"{parent} > {heading.title}" if parent else heading.title), heading.end, end
        above.append(heading)
    if bare:
        yield bare


# Cutting a section.

# The largest that ends in reach wins. A match ends where the next chunk may start: before any indentation.
PARAGRAPH = re.compile(r"\n(?:[ \t]*+\n)++")
_SENTENCE = re.compile(r"""[.!?…]["'”’)\]*_`]*+(?:[ \t]++|\n)|[。！？]""")
_LINE = re.compile(r"\n")
_WORD = re.compile(r"\s++")
_BLANK = re.compile(r"\s*+")
_SQUARE = re.compile(
    "[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]+"
)


def _cuts(text: str, start: int, end: int, solid: list[Span]) -> Iterator[Span]:
    """Where the chunks of one section start and end. Each starts a little before the end of the last."""
    end = start + len(text[start:end].rstrip())
    begin = fresh = start  # begin: where the chunk starts; fresh: where what no chunk has yet starts
    while (fresh := _text_start(text, fresh, end)) < end:
        begin = _text_start(text, begin, fresh)
        cut = _cut(text, begin, fresh, end, solid)
        if cut <= fresh:  # a code block that fits, but not together with the overlap
            begin = fresh
            cut = _cut(text, begin, fresh, end, solid)
        yield begin, cut
        begin, fresh = _overlap(text, begin, cut, solid), cut


def _cut(text: str, begin: int, fresh: int, end: int, solid: list[Span]) -> int:
    reach = _reach(text, begin, end)
    if reach == end:
        return end
    cut = reach
    half = max((begin + reach) // 2, fresh)
    for boundary in (PARAGRAPH, _SENTENCE, _LINE, _WORD):
        ends = [match.end() for match in boundary.finditer(text, half, reach)]
        if ends:
            cut = ends[-1]
            break
    block = _around(cut, solid)
    if block is None:
        return cut
    return block[1] if block[1] <= reach else block[0]


def _overlap(text: str, begin: int, cut: int, solid: list[Span]) -> int:
    """Where to start again before a cut."""
    low = max(begin, cut - OVERLAP * _QUARTERS)
    while (excess := _weight(text, low, cut) - OVERLAP * _QUARTERS) > 0:
        low += -(-excess // _QUARTERS)
    for boundary in (_SENTENCE, _LINE, _WORD):
        match = boundary.search(text, low, (low + cut) // 2)
        if match:
            low = match.end()
            break
    block = _around(low, solid)
    return min(block[1], cut) if block else low


def _reach(text: str, start: int, end: int) -> int:
    """How far the tokens of a chunk go."""
    left = SIZE * _QUARTERS
    end = min(end, start + left)
    at = start
    for run in _SQUARE.finditer(text, start, end):
        left -= run.start() - at
        if left < _QUARTERS:
            return run.start() + min(left, 0)
        if (run.end() - run.start()) * _QUARTERS > left:
            return run.start() + left // _QUARTERS
        left -= (run.end() - run.start()) * _QUARTERS
        at = run.end()
    return min(end, at + left)


def _weight(text: str, start: int, end: int) -> int:
    squares = sum(run.end() - run.start() for run in _SQUARE.finditer(text, start, end))
    return end - start + (_QUARTERS - 1) * squares


def _around(offset: int, solid: list[Span]) -> Span | None:
    """The block that a cut here would break."""
    before = bisect_right(solid, (offset, -1)) - 1
    if before >= 0 and solid[before][0] < offset < solid[before][1]:
        return solid[before]
    return None


def _text_start(text: str, start: int, end: int) -> int:
    """Behind the blank lines that stand here. Indentation stays: in code it means something."""
    blank = _BLANK.match(text, start, end)
    first = blank.end() if blank else start
    line = text.rfind("\n", max(start - 1, 0), first) + 1
    return line if line >= start and first - line <= MAX_INDENT else first


# Markdown. One pattern finds the lines that may matter; everything else is passed over at the speed of `re`.

_MARK = re.compile(
    r"""^(?:
      [ ]{0,3}(?P<hashes>\#{1,6})[ \t]++(?P<title>[^\n]*+)
    | [ ]{0,3}(?P<underline>=++|-++)[ \t]*+$
    )""",
    re.MULTILINE | re.VERBOSE,
)
_NO_PARAGRAPH = re.compile(r"[ ]{0,3}(?:(?:[-*+]|[0-9]{1,9}[.)])(?:[ \t]|$)|[>|]|#{1,6}$)|[ ]{4}|\t")
CLOSING_HASHES = re.compile(r"(?:^|[ \t]+)#+$")


def markdown(text: str) -> tuple[list[Heading], list[Span]]:
    """The headings, and the fences."""
    headings: list[Heading] = []
    at = front_matter(text)
    solid = [(start, stop) for start, _, _, stop in fences(text, at)]
    waiting = iter([*solid, (len(text) + 1, 0)])
    fence = next(waiting)
    while mark := _MARK.search(text, at):
        if mark.start() >= fence[0]:
            at, fence = fence[1], next(waiting)
            continue
        floor, at = at, mark.end()  # floor: the paragraph above an underline does not reach back over it
        if mark["hashes"]:
            title = mark["title"].strip()
            if len(title) <= MAX_TITLE and (title := CLOSING_HASHES.sub("", title)):
                headings.append(Heading(len(mark["hashes"]), title, mark.start(), at))
        elif lines := _paragraph_before(text, floor, mark.start()):
            level = 1 if mark["underline"][0] == "=" else 2
            start = mark.start() - sum(len(line) + 1 for line in lines)
            headings.append(Heading(level, " ".join(line.strip() for line in lines), start, at))
    return headings, solid


def _paragraph_before(text: str, floor: int, underline: int) -> list[str]:
    """The lines that a row of = or - makes a heading of: a whole paragraph, if it is one and is short."""
    lines: list[str] = []
    start = underline
    while start > floor:
        end = start - 1
        low = max(floor, underline - MAX_TITLE - 1)
        start = text.rfind("\n", low, end) + 1 or low
        line = text[start:end]
        if not line.strip():
            break
        if start == low > floor or _NO_PARAGRAPH.match(line):
            return []
        lines.insert(0, line)
    return lines


_FRONT_MATTER = re.compile(r"---[ \t]*\n(?=[ \t]*(?:\#|[\w\"'-]+[ \t]*:))")
_FRONT_MATTER_END = re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.MULTILINE)
_TITLE_LINE = re.compile(r"^title[ \t]*:[ \t]*([^\n]*)$", re.MULTILINE | re.IGNORECASE)


def front_matter(text: str) -> int:
    """Where the YAML at the head of the document ends; 0 if there is none."""
    opening = _FRONT_MATTER.match(text)
    closing = _FRONT_MATTER_END.search(text, opening.end()) if opening else None
    return closing.end() if closing else 0


def _stated_title(front_matter: str) -> str | None:
    line = _TITLE_LINE.search(front_matter)
    value = line[1].strip() if line else ""
    quoted = value[:1] in ("'", '"')
    value = value[1:].partition(value[0])[0] if quoted else value.partition(" #")[0].strip()
    return value[:MAX_TITLE] if value.strip("|>-+") else None


# reStructuredText. A title is a line with a row of one sign below it, and perhaps the same row above it.

_SIGNS = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_NO_TITLE = re.compile(r"[-*+•][ \t]|\.\.(?:[ \t]|$)|>>>|\||__[ \t]|:[^:]+:(?:[ \t]|$)")


def _restructured(text: str) -> list[Heading]:
    """Levels come in the order in which the kinds of rows appear. A row or a lone title is never indented, so
    literal blocks hold none."""
    lines = text.split("\n")
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    kinds: dict[tuple[str, bool], int] = {}
    headings = []
    free = 0  # lines before this one are part of a title
    for number, line in enumerate(lines):
        if number < free or not _is_row(line):
            continue
        over = lines[number + 2 : number + 3] == [line] and _opens(lines, number, free)
        title = lines[number + 1 if over else number - 1].rstrip()
        first = number if over else number - 1
        if first < free or not _opens(lines, first, free) or (title[:1].isspace() and not over):
            continue
        quoted = title[:1] == line[0] and lines[max(first - 2, 0)].endswith("::")
        if quoted or not _may_be_title(title.strip(), line.rstrip()):
            continue
        level = kinds.setdefault((line[0], over), len(kinds) + 1)
        last = number + 2 if over else number
        headings.append(Heading(level, title.strip(), starts[first], starts[last] + len(lines[last])))
        free = last + 1
    return headings


def _is_row(line: str) -> bool:
    return line[:1] in _SIGNS and line.rstrip() == line[0] * len(line.rstrip())


def _opens(lines: list[str], number: int, free: int) -> bool:
    """Whether nothing stands above this line that it could belong to."""
    return number == free or not lines[number - 1].strip() or lines[number - 1].startswith("..")


def _may_be_title(title: str, row: str) -> bool:
    fits = len(title) <= len(row) or len(row) >= 4
    return 0 < len(title) <= MAX_TITLE and fits and not _is_row(title) and not _NO_TITLE.match(title)
