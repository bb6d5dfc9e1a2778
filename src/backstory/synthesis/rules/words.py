"""Reading prose: paragraphs, sentences, what to leave out of them, and where to cut.

Whatever comes in may be long and hostile, so every pattern here and in the other rules either is anchored or
cannot begin again inside what it has read: time is linear in the length of the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

LONGEST = 12_000  # characters of one text that are looked at
TITLE_CHARS = 110
TEXT_CHARS = 420

_BULLET = re.compile(r"\s{0,12}(?:[-*•+]|\d{1,2}[.)])\s+")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|etc|vs|cf|approx|resp|no|mr|ms|dr|ca|z\.b|bzw|usw)\.$", re.I
)
_END = re.compile(r"[.!?…]{1,3}[\"')\]`*]{0,3}\s+|[。！？]")
_LINK = re.compile(r"\[([^\[\]\n]{1,200})\]\([^()\s]{1,500}\)")
_EMPHASIS = re.compile(r"\*\*|__(?=\w)|(?<=\w)__(?!\w)|(?<![\w*])\*(?=\w)|(?<=[\w.!?:])\*(?![\w*])")
_WORD = re.compile(r"[^\W_][\w'-]*")
_CODE = re.compile(r"`([^`\n]{2,60})`")
_IDENTIFIER = re.compile(
    r"\b(?:[A-Za-z_]\w{1,40}\(\)|[a-z]+_\w{2,40}|[A-Z][A-Z0-9]+_[A-Z0-9_]{2,40}|[A-Z][a-z0-9]+[A-Z]\w{1,40})"
)


def blocks(text: str) -> list[str]:
    """The paragraphs and list items of a message, each on one line; code, tables and quotes left out."""
    return [block for block, _, _ in marked_blocks(text)]


def marked_blocks(text: str) -> list[tuple[str, bool, bool]]:
    """Each with whether it is an item of a list, and whether it begins with a name in bold type."""
    found: list[tuple[list[str], bool]] = []
    inside: list[str] | None = None
    fenced = False
    for line in text[:LONGEST].splitlines():
        bare = line.strip()
        if bare.startswith(("```", "~~~")):
            fenced, inside = not fenced, None
        elif fenced or bare.startswith(("|", ">")) or not bare or _HEADING.match(line):
            inside = None
        elif bullet := _BULLET.match(line):
            inside = [line[bullet.end() :].strip()]
            found.append((inside, True))
        elif inside is None:
            inside = [bare]
            found.append((inside, False))
        else:
            inside.append(bare)
    plain = ((_plain(" ".join(lines)), is_item, lines[0].startswith("**")) for lines, is_item in found)
    return [one for one in plain if one[0]]


def is_list(text: str) -> bool:
    return sum(1 for line in text[:LONGEST].splitlines() if _BULLET.match(line)) >= 2


def prompt_lines(text: str) -> list[str]:
    """What the user wrote, a thought a line: people press return where others put a full stop. Lines that
    were wrapped are put together again; code and quotes are somebody else's words."""
    found: list[str] = []
    fenced = joins = False
    for line in text[:LONGEST].splitlines():
        bare = line.strip()
        if bare.startswith(("```", "~~~")):
            fenced, joins = not fenced, False
            continue
        if fenced or not bare or bare.startswith((">", "|", "<")):
            joins = False
            continue
        bullet = _BULLET.match(line)
        bare = line[bullet.end() :].strip() if bullet else bare
        if joins and not bullet:
            found[-1] = f"{found[-1]} {bare}"
        else:
            found.append(bare)
        joins = bare.endswith(",") or (len(line) >= 60 and not bare.endswith((".", "!", "?", ":")))
    return [_plain(line) for line in found]


def _plain(text: str) -> str:
    """Without the marks of Markdown, but with backticks: they say what is a name."""
    text = _LINK.sub(r"\1", text)
    return clean(_EMPHASIS.sub("", text))


def clean(text: str) -> str:
    """On one line, with nothing in it that cannot be seen."""
    shown = "".join(" " if unicodedata.category(sign)[0] == "C" else sign for sign in text)
    return " ".join(shown.split())


def sentences(line: str) -> list[str]:
    found, start = [], 0
    ticks, seen = 0, 0
    for end in _END.finditer(line):
        ticks += line.count("`", seen, end.start())
        seen = end.start()
        goes_on = (
            line[end.start()] in ".…"
            and end[0].startswith("..")
            and line[end.end() : end.end() + 1].islower()
        )
        if ticks % 2 or goes_on or _ABBREVIATION.search(line[max(start, end.start() - 8) : end.start() + 1]):
            continue
        found.append(line[start : end.end()].strip())
        start = end.end()
    found.append(line[start:].strip())
    return [one for one in found if one]


def shorten(text: str, limit: int) -> str:
    """At most so many characters: whole sentences if that leaves enough, else whole clauses, else words."""
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    for mark, least in ((". ", limit // 3), ("; ", limit // 2), (": ", limit // 2), (", ", limit // 2)):
        place = cut.rfind(mark)
        if place >= least:
            return cut[: place + 1].rstrip(",;: ") + ("" if mark == ". " else " …")
    place = cut.rfind(" ")
    return (cut[:place] if place >= limit // 2 else cut).rstrip(",;:- ") + "…"


def title(text: str) -> str:
    """A line to find it by."""
    return capital(shorten(text.strip().strip("-–—:;, "), TITLE_CHARS).rstrip(" .;:,"))


def capital(text: str) -> str:
    """With a capital, unless it begins with a name that has none: `app.py`, `npm_token`."""
    first = text.split(None, 1)[0] if text else ""
    return text[:1].upper() + text[1:] if first.strip(",:;'").isalpha() else text


def sentence(text: str) -> str:
    """With a capital and a full stop."""
    text = capital(text.strip().strip("-–—;, "))
    return text if not text or text[-1] in ".!?…。！？" else text.rstrip(":,") + "."


def together(parts: Iterable[str], limit: int) -> str:
    """As many of these as fit, whole, none twice."""
    said: list[str] = []
    room = limit
    for part in parts:
        if not part or any(part in one for one in said):
            continue
        if len(part) + 1 > room:
            if not said:
                said.append(shorten(part, limit))
                break
            continue
        said.append(part)
        room -= len(part) + 1
    return " ".join(said)


def telling(text: str) -> set[str]:
    """The words by which two texts can be seen to be about the same."""
    found = set()
    for word in _WORD.findall(text[:LONGEST].lower()):
        for part in (word, *re.split(r"[_'-]", word)):
            stem = part[:-1] if part.endswith("s") and len(part) > 4 else part
            if len(stem) >= 3 and stem not in COMMON:
                found.add(stem)
    return found


def concepts(texts: Iterable[str], files: Iterable[str] = (), most: int = 6) -> tuple[str, ...]:
    """A few names: what stands in backticks, what looks like an identifier, the files' own names."""
    found: dict[str, None] = {}
    for text in texts:
        for name in _CODE.findall(text[:2_000]):
            if " " not in name.strip() and any(sign.isalpha() for sign in name):
                found[name.strip().rstrip("()").rstrip(".,:;")] = None
        for name in _IDENTIFIER.findall(text[:2_000]):
            found[name.rstrip("()")] = None
    for file in files:
        stem = file.rsplit("/", 1)[-1].split(".", 1)[0]
        if len(stem) > 2 and stem not in ("index", "main", "__init__", "mod"):
            found[stem] = None
    return tuple(name[:40] for name in found if len(name) >= 2)[:most]


COMMON = frozenset(
    "the and for with that this from have has had was were are been but not you your our its they them their"
    " will would should could can may might must into when then than there here what which who how why where"
    " also just only some any all one two now new use used using make made makes more most very much please"
    " does did done doing don isn doesn didn won let get got gets like want need needs see same too out off"
    " over about after before again still yet each every other another because since while until".split()
)
