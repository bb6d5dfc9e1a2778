"""The fenced code of a Markdown text, by the rules of CommonMark.

A fence ends with a line of its own sign, at least as long, with nothing behind: `~~~` ends no "```", and
"```" no "````". One that is never closed runs to the end of the item of a list that it stands in, else of the
text. Quotes and HTML are not looked into.
"""

from __future__ import annotations

import re

# A line that is not blank: markers of list items at its beginning, and what may open or close a fence.
_LINE = re.compile(
    r"^(?=[ \t]*+\S)(?P<indent>[ \t]*+)"
    r"(?P<items>(?:(?:[-*+]|[0-9]{1,9}[.)])(?:[ ]{1,4}(?![ \t]|$)|[ \t]|$))*+)"
    r"(?:(?P<signs>`{3,}+(?=[^`\n]*+$)|~{3,}+)(?P<info>[^\n]*+))?",
    re.MULTILINE,
)
_ITEM = re.compile(r"\S+(?:[ \t]+|$)")
# A paragraph, and below it what would be a list item without text: it underlines a heading, or is a word.
_NO_ITEM = re.compile(
    r"^(?=[ ]{0,3}[^\s>|])(?!\s*(?:=+|-+|\#{1,6}|[*+]|[0-9]{1,9}[.)])(?:[ \t]|$))[^\n]*+\n"
    r"(?P<line>[ ]{0,3}(?:[-*+]|[0-9]{1,9}[.)])[ \t]*)$",
    re.MULTILINE,
)


def fences(text: str, at: int = 0) -> list[tuple[int, int, int, int]]:
    """Where each begins, where its code begins and ends, and where it ends itself."""
    if "```" not in text and "~~~" not in text:
        return []
    blocks: list[tuple[int, int, int, int]] = []
    items: list[int] = []  # the columns in which the text of list items begins
    opened: tuple[int, int] | None = None  # where the fence begins, and its code
    signs, column = "", 0
    no_items = {found.start("line") for found in _NO_ITEM.finditer(text, at)}
    for line in _LINE.finditer(text, at):
        indent = len(line["indent"].expandtabs(4))
        if opened and indent < column:
            blocks.append((*opened, line.start(), line.start()))
            opened = None
        elif opened:
            closes = line["signs"] and line["signs"].startswith(signs) and not line["items"]
            if closes and indent - column <= 3 and not line["info"].strip():
                blocks.append((*opened, line.start(), line.end()))
                opened = None
            continue
        if not (items and indent < items[-1]) and line.start() in no_items:
            continue
        while items and indent < items[-1]:
            items.pop()
        if indent - (items[-1] if items else 0) > 3:
            continue  # indented code, or the paragraph goes on
        for marker in _ITEM.finditer(line["items"]):
            indent += len(marker[0])
            indent += -indent % 4 if marker[0].endswith("\t") else 0
            items.append(indent)
        if line["signs"]:
            opened = line.start(), min(line.end() + 1, len(text))
            signs, column = line["signs"], items[-1] if items else 0
    if opened:
        blocks.append((*opened, len(text), len(text)))
    return blocks


def without_fences(text: str, instead: str = "") -> str:
    """Text without its fenced code."""
    return _cut(text, [(start, stop) for start, _, _, stop in fences(text)], instead)


def without_fence_marks(text: str) -> str:
    """Text with its fenced code, without the lines that open and close it."""
    marks = [mark for start, first, last, stop in fences(text) for mark in ((start, first), (last, stop))]
    return _cut(text, marks)


def _cut(text: str, spans: list[tuple[int, int]], instead: str = "") -> str:
    kept: list[str] = []
    at = 0
    for start, stop in spans:
        kept += (text[at:start], instead)
        at = stop
    return "".join((*kept, text[at:]))
