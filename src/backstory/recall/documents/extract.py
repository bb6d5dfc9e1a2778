"""The main text of a web page, as Markdown.

Readability finds where the main part is, but is a harsh editor: of a documentation page it may keep one
section, of a section half the code. So it is asked only where; what stands there is read in full. Where it
leaves out a heading or code that nothing marks as decoration, the whole page is read, without what its tags
call decoration: for a memory, too much is better than too little.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection
from typing import Any

from backstory.errors import BadInput
from backstory.recall.documents.file import MOST_LINES, decode

Element = Any  # lxml comes without types, and is imported only when there is HTML to read

# Readability reads a text once for each element around it, so larger pages than these are read whole.
READABLE_CHARACTERS = 300_000
READABLE_ELEMENTS = 50_000
MAX_NESTING = 8  # lists in lists; deeper ones are written no deeper

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")
_DECORATION_TAGS = frozenset(
    "script style noscript template nav footer svg iframe object embed canvas audio video"
    " button select input textarea datalist dialog".split()
)
_DECORATION_ROLES = frozenset("navigation banner contentinfo search complementary dialog alertdialog".split())
_DECORATION_NAMES = re.compile(
    r"(?:^|[\s_-])(?:ads?|advert\w*|banner|breadcrumbs?|comments?|cookies?|disqus|foot(?:er)?|menu|nav\w*"
    r"|newsletter|pag(?:er|ination)|popup|promo\w*|related|share|sharing|sidebar|social|sponsor\w*|subscribe"
    r"|toc|toctree|widget)(?:$|[\s_-])",
    re.IGNORECASE,
)
_CONTAINERS = frozenset("div section ul ol dl aside form header p".split())
_LINE_NUMBERS = frozenset("linenos lineno linenodiv linenumbers gutter blob-num".split())
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_BLOCKS = frozenset(
    "address article aside blockquote body caption center dd details div dl dt fieldset figcaption figure"
    " footer form h1 h2 h3 h4 h5 h6 header hr html legend li main ol p pre section summary table tbody td"
    " tfoot th thead tr ul".split()
)
_CODE = frozenset(("code", "kbd", "samp", "tt"))
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_LANGUAGE = re.compile(r"(?:^|\s)(?:language|lang|highlight(?:-source)?|brush)[-:]\s*([\w+#]+)")
_FLAT = r"h[1-6]|p|pre|br|title|meta|script|style|head|body|html"
_NESTING = re.compile(rf"</?(?!(?:{_FLAT})\b)[a-z][^<>]*>", re.IGNORECASE)
_NO_LANGUAGE = frozenset(("default", "none", "text", "plaintext", "notranslate"))
_LOOKS_LIKE_MARKUP = re.compile(r"#{1,6}(?:\s|$)|`{3}|~{3}|=+$|-+$")
_BREAK = "\0"  # a line break that is meant; the text itself holds none


def main_text(body: bytes, charset: str | None) -> tuple[str | None, str]:
    """The title of an HTML page and its main text. `charset` is what the server said, if it did."""
    tags = body.count(b"<")
    if tags > MOST_LINES:
        raise BadInput(f"the page has {tags:,} tags, one may have {MOST_LINES:,}; save its text to a file")
    source = _CONTROL.sub("", decode(body, charset, html=True))
    root = _parse(source)
    title = text = None
    if root is not None:
        title = _title(root)
        _tidy(root)
        text = _Writer().write(_main(root))
    if not text:
        raise BadInput("there is no text in this page; if a browser shows some, save that to a file")
    return title, text


def _parse(source: str, *, again: bool = True) -> Element | None:
    """The page as a tree. The parser leaves out what lies too deep; then only tags that do not nest stay."""
    from lxml import etree, html  # type: ignore[import-untyped]

    parser = html.HTMLParser(
        encoding="utf-8", no_network=True, huge_tree=False, remove_comments=True, remove_pis=True
    )
    try:
        root = html.document_fromstring(source.encode("utf-8", "replace"), parser=parser)
    except etree.ParserError:  # nothing in it
        return None
    if again and any("depth" in error.message for error in parser.error_log):
        return _parse(_NESTING.sub(" ", source), again=False)
    return root


def _title(root: Element) -> str | None:
    stated = root.findtext(".//title") or next(iter(root.xpath("//meta[@property='og:title']/@content")), "")
    return " ".join(stated.split())[:300] or None


# Finding the main part.


def _tidy(root: Element) -> None:
    """Take out what is never text. A header or an aside inside the main part may well be some."""
    for element in list(root.iter()):
        if _is_decoration(element):
            element.drop_tree()


def _is_decoration(element: Element) -> bool:
    tag, role = element.tag, element.get("role")
    if tag in ("body", "html") or role == "tabpanel":  # tabs behind the first are hidden, and worth as much
        return False
    if tag in _DECORATION_TAGS or role in _DECORATION_ROLES or _is_hidden(element):
        return True
    if tag in ("header", "aside"):
        return not any(above.tag in ("main", "article") for above in element.iterancestors())
    classes = (element.get("class") or "").split()
    return "headerlink" in classes or bool(_LINE_NUMBERS.intersection(classes)) or _is_anchor(element)


def _is_hidden(element: Element) -> bool:
    stated = element.get("hidden") is not None or element.get("aria-hidden") == "true"
    return stated or _HIDDEN.search(element.get("style", "")) is not None


def _is_anchor(element: Element) -> bool:
    """The sign beside a heading that links to it."""
    in_heading = element.tag == "a" and element.getparent().tag in _HEADINGS
    return in_heading and not any(map(str.isalnum, element.text_content()))


def _main(root: Element) -> Element:
    page = root.find("body") if root.find("body") is not None else root
    stated = page.xpath(".//main | .//*[@role='main']")
    if len(stated) == 1 and _prose(stated[0]):
        page = stated[0]
    elements = list(page.iter())
    small = len(elements) <= READABLE_ELEMENTS and len(page.text_content()) <= READABLE_CHARACTERS
    kept = _kept_by_readability(page, elements) if small else []
    if not kept:
        return page
    core = _common_ancestor(elements[kept[0]], elements[kept[-1]])
    around = {core, *core.iterancestors()}
    left_out = [
        each for each in page.iter("pre", *_HEADINGS) if around.isdisjoint((each, *each.iterancestors()))
    ]
    if any(not _in_decoration(each, around) for each in left_out) or _prose(core) * 2 < _prose(page, around):
        return page
    survivors = {elements[number] for number in kept}
    for element in [each for each in core.iterdescendants() if _named_decoration(each)]:
        doubtful = survivors.isdisjoint(element.iter()) or not _prose(element)
        if doubtful and element.find(".//pre") is None:
            element.drop_tree()
    return core


def _kept_by_readability(page: Element, elements: list[Element]) -> list[int]:
    """The numbers of the elements that readability finds worth reading, in order."""
    from lxml import html
    from readability import Document  # type: ignore[import-untyped]
    from readability.readability import Unparseable  # type: ignore[import-untyped]

    logging.getLogger("readability").setLevel(logging.CRITICAL + 1)
    for number, element in enumerate(elements):
        element.set("data-number", str(number))
    document = Document(html.tostring(page, encoding="unicode"))
    # Its own version rewrites the attributes with regular expressions; we only want to know what is left.
    document.get_clean_html = lambda: html.tostring(document.html, encoding="unicode")
    try:
        document.summary()
    except Unparseable:
        return []
    return sorted(int(number) for number in document.html.xpath("//@data-number"))


def _common_ancestor(first: Element, last: Element) -> Element:
    above = {first, *first.iterancestors()}
    return last if last in above else next(each for each in last.iterancestors() if each in above)


def _prose(element: Element, around: Collection[Element] = ()) -> int:
    """How much text it has that is neither a link nor in decoration. What is `around` the main part is none,
    whatever its name."""
    length = len((element.text or "").strip())
    skipped: Element = None
    for each in element.iterdescendants():
        if skipped is not None and skipped in each.iterancestors():
            continue
        skipped = each if each.tag == "a" or (_named_decoration(each) and each not in around) else None
        length += len((each.tail or "").strip()) + (len((each.text or "").strip()) if skipped is None else 0)
    return length


def _in_decoration(element: Element, around: Collection[Element]) -> bool:
    return any(_named_decoration(above) for above in element.iterancestors() if above not in around)


def _named_decoration(element: Element) -> bool:
    """Whether its class or id says so. The id of a section says what it is about, and that may be menus."""
    if element.tag not in _CONTAINERS:
        return False
    names = element.get("class", "")
    if element.tag != "section" and "section" not in names.split():
        names += f" {element.get('id', '')}"
    return _DECORATION_NAMES.search(names) is not None


# Writing it down.


class _Writer:
    """Walks over a part of a page and makes blocks of Markdown. Text gathers in `line` until a block ends."""

    def __init__(self) -> None:
        self.blocks: list[str] = []
        self.after_item = False  # items of a list stand together
        self.line: list[str] = []
        self.level = 0  # of the heading whose text gathers; 0 outside of headings
        self.indents: list[str] = []  # what stands before the lines of the lists and quotes around
        self.marker: str | None = None  # of a list item whose first line is still to come
        self.counts: list[int | None] = []  # of numbered lists around; None for one with bullets

    def write(self, part: Element) -> str:
        from lxml import etree

        walk = etree.iterwalk(part, events=("start", "end"))
        for event, element in walk:
            if event == "start":
                if self._start(element):
                    walk.skip_subtree()
            else:
                self._end(element)
                if element is not part:
                    self.line.append(element.tail or "")
        self._flush()
        return "".join(self.blocks).strip("\n")

    def _start(self, element: Element) -> bool:
        """Take an element in; true if its inside is dealt with already."""
        tag = element.tag
        if tag in _BLOCKS:
            self._flush()
        if tag == "pre":
            self._code(element)
            return True
        if tag == "table" and not _is_layout(element):
            self._table(element)
            return True
        if tag in ("ul", "ol"):
            self.counts.append(0 if tag == "ol" else None)
        elif tag == "li":
            self._item()
        elif tag in _HEADINGS:
            self.level = int(tag[1])
        elif tag == "blockquote":
            self.indents.append("> ")
        elif tag == "br":
            self.line.append(_BREAK)
        elif tag == "img":
            self.line.append(f" {element.get('alt', '')} ")
        elif tag in _CODE and _is_span(element):
            self.line.append("`")
        self.line.append(element.text or "")
        return False

    def _end(self, element: Element) -> None:
        tag = element.tag
        if tag in _BLOCKS:
            self._flush()
        elif tag in _CODE and _is_span(element):
            self.line.append("`")
        if tag in _HEADINGS:
            self.level = 0
        elif tag in ("ul", "ol"):
            self.counts.pop()
        elif tag in ("li", "blockquote"):
            self.indents.pop()
            self.marker = None

    def _item(self) -> None:
        number = self.counts[-1] if self.counts else None
        if number is not None:
            self.counts[-1] = number + 1
        self.marker = "- " if number is None else f"{number + 1}. "
        self.indents.append(" " * len(self.marker))

    def _gathered(self) -> list[str]:
        lines = [" ".join(line.split()) for line in "".join(self.line).split(_BREAK)]
        self.line.clear()
        return [line for line in lines if line]

    def _flush(self) -> None:
        lines = self._gathered()
        if lines and self.level:  # at the margin, even in a list: only there a heading is one
            self.blocks.append(f"\n\n{'#' * self.level} {' '.join(lines)}")
            self.level, self.after_item = 0, False
        elif lines:
            self._put([f"\\{line}" if _LOOKS_LIKE_MARKUP.match(line) else line for line in lines])

    def _put(self, lines: list[str]) -> None:
        indent = first = "".join(self.indents[:MAX_NESTING])
        item = self.marker is not None
        if self.marker is not None:
            first = "".join(self.indents[:-1][:MAX_NESTING]) + self.marker
            self.marker = None
        rest = [(indent + line).rstrip() for line in lines[1:]]
        self.blocks.append(
            ("\n" if item and self.after_item else "\n\n") + "\n".join([first + lines[0], *rest])
        )
        self.after_item = item

    def _code(self, element: Element) -> None:
        for line_break in element.iter("br"):
            line_break.text = "\n"
        code = element.text_content().rstrip().strip("\n")
        if code:
            longest = max((len(run) for run in re.findall("`+", code)), default=0)
            fence = "`" * max(3, longest + 1)
            self._put([f"{fence}{_language(element)}", *code.split("\n"), fence])

    def _table(self, table: Element) -> None:
        """One line a row: a row is what is asked for."""
        for caption in table.iter("caption"):
            self.line.append(caption.text_content())
        self._flush()
        lines: list[str] = []
        for row in table.iter("tr"):
            cells = [_cell(cell) for cell in row.iterchildren("td", "th")]
            if any(cells):
                lines.append(f"| {' | '.join(cells)} |")
                if len(lines) == 1 and row.find("th") is not None:
                    lines.append("|" + " --- |" * len(cells))
        if lines:
            self._put(lines)


def _is_layout(table: Element) -> bool:
    """Whether a table only puts things beside each other."""
    inner = table.xpath(".//pre | .//table | .//h1 | .//h2 | .//h3 | .//h4 | .//h5 | .//h6")
    return bool(inner) or table.get("role") in ("presentation", "none")


def _is_span(code: Element) -> bool:
    text = code.text_content()
    return (
        bool(text.strip()) and "`" not in text and not any(each.tag in _CODE for each in code.iterancestors())
    )


def _cell(cell: Element) -> str:
    for each in cell.iterdescendants():
        if each.tag in _BLOCKS or each.tag == "br":  # what stands on lines of its own stays apart
            each.text = f" {each.text or ''}"
            each.tail = f" {each.tail or ''}"
    return " ".join(cell.text_content().split()).replace("|", "\\|")


def _language(pre: Element) -> str:
    above = pre.getparent()
    around = [pre, *pre.iterchildren("code"), above, above.getparent() if above is not None else None]
    for element in around:
        match = _LANGUAGE.search(element.get("class", "")) if element is not None else None
        if match and match[1] not in _NO_LANGUAGE:
            return match[1]
    return ""
