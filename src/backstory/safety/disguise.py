"""What a text says once nothing hides it: without colours, invisible and full-width characters and joins of
strings, and decoded. Each view of a text knows which part of it a part of the view comes from, so that one
table of secrets serves all disguises.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


class View:
    """A text after some replacements, and where everything in it comes from."""

    __slots__ = ("_ends", "_origins", "_starts", "text")

    def __init__(self, source: str, edits: Iterable[tuple[int, int, str]]) -> None:
        pieces: list[str] = []
        self._starts: list[int] = []  # of each piece in the view, and where it begins and ends in the source
        self._origins: list[int] = []
        self._ends: list[int] = []
        length = copied = 0
        for start, end, new in (*edits, (len(source), len(source), "")):
            for piece, origin, stop in ((source[copied:start], copied, start), (new, start, end)):
                if piece:
                    pieces.append(piece)
                    self._starts.append(length)
                    self._origins.append(origin)
                    self._ends.append(stop)
                    length += len(piece)
            copied = end
        self.text = "".join(pieces)

    def origin(self, start: int, end: int) -> tuple[int, int]:
        from bisect import bisect_right

        first = bisect_right(self._starts, start) - 1
        last = bisect_right(self._starts, end - 1) - 1
        begin, finish = self._origins[first], self._ends[last]
        if self._is_copy(first):
            begin += start - self._starts[first]
        if self._is_copy(last):
            finish = self._origins[last] + end - self._starts[last]
        return begin, finish

    def _is_copy(self, piece: int) -> bool:
        following = self._starts[piece + 1] if piece + 1 < len(self._starts) else len(self.text)
        return following - self._starts[piece] == self._ends[piece] - self._origins[piece]


# --- disguises that every text is seen without ------------------------------------------------------------

# Terminals' colours, also as JSON or a shell spells the escape character.
_COLOUR = r"(?:\x1b|\\{1,4}(?:u001b|x1b|033|e))\[[0-9;]{0,24}[A-Za-z]"
_ESCAPES = ("\x1b[", "\\u001b[", "\\x1b[", "\\033[", "\\e[")
_UNSEEN = "[\u00ad\u200b-\u200f\u2060-\u2064\ufeff\uff01-\uff5e]"
_SPELLED = r"\\{1,4}u(?!00[0189]|[dD][89a-fA-F])[0-9a-fA-F]{4}"
# What `cat -n`, a diff or a log puts before a line.
_LINE_START = r"(?:\d{1,6}[\u2192\t|:]|[+>]|(?:[^\t\n\"'`]{1,60}\t){0,2}\d{4}-\d\d-\d\d[T ][\d:.,+Z]{5,20})"
# "abc" + "def", also over lines; strings that stand below each other are joined in many languages.
_JOIN = (
    r"""(["'`])(?:[ \t]{0,8}(?:\\{0,4}\n[ \t+>]{0,40})?(?:\+|\.\.?|&|\|\||\\\n)\s{0,40}"""
    rf"""(?:{_LINE_START}[ \t]{{0,40}})?"""
    rf"""|[ \t]{{0,4}}\n[ \t]{{0,8}}(?:{_LINE_START})?[ \t]{{1,40}})\\{{0,4}}\1"""
)
# How a join begins: 1 is a quote, 2 a sign, 3 one that a space stands before, 4 a backslash.
_JOINT_SHAPE = bytes.maketrans(b"\"'`+.\n&|\\", b"\1\1\1\2\2\2\3\3\4")
_JOINTS = (b"\1\2", b"\1 \2", b"\1 \3", b"\1 \4\2")


def undone(text: str) -> list[View]:
    """The views that lead from a text to the plain one, each of the one before."""
    views: list[View] = []

    def see(found: Iterable[re.Match[str]], new: Callable[[str], str]) -> None:
        nonlocal text
        if edits := [(*match.span(), new(match[0])) for match in found]:
            views.append(View(text, edits))
            text = views[-1].text

    if "[" in text and ("\x1b" in text or "\\" in text) and any(escape in text for escape in _ESCAPES):
        see(re.finditer(_COLOUR, text), _nothing)
    if not text.isascii():
        see(re.finditer(_UNSEEN, text), _seen)
    if "\\u" in text:
        see(re.finditer(_SPELLED, text), _seen)
    return views


def joined(text: str) -> View | None:
    """The text with strings that are put together as one."""
    if not ('"' in text or "'" in text or "`" in text):
        return None
    edits = [(*join.span(), "") for join in _joins(text)]
    return View(text, edits) if edits else None


def _joins(text: str) -> Iterator[re.Match[str]]:
    shape = text.encode("ascii", "replace").translate(_JOINT_SHAPE)
    places: set[int] = set()
    for joint in _JOINTS:
        place = shape.find(joint)
        while place >= 0:
            places.add(place)
            place = shape.find(joint, place + 1)
    end = 0
    join = re.compile(_JOIN) if places else None
    for place in sorted(places):
        if join and place >= end and (found := join.match(text, place)):
            end = found.end()
            yield found


def _seen(character: str) -> str:
    code = int(character[-4:], 16) if character[0] == "\\" else ord(character)
    if 0xFF01 <= code <= 0xFF5E:
        code -= 0xFEE0
    elif re.match(_UNSEEN, chr(code)):
        return ""
    return character if chr(code) in "\"'\\" else chr(code)


def _nothing(_: str) -> str:
    return ""


# --- encodings --------------------------------------------------------------------------------------------

_ENTITIES = {"quot": '"', "apos": "'", "amp": "&", "lt": "<", "gt": ">", "equals": "=", "colon": ":"}
_ENCODED = (
    r"%[2-7][0-9A-Fa-f]|\\{1,4}[nrt]|&(?:quot|apos|amp|lt|gt|equals|colon|#\d{2,3}|#[xX][0-9A-Fa-f]{2});"
)
# Where one of these is, it may hide a name or what follows a name.
_HIDING = r"\\n|%(?:3[AaDd]|22|[46][1-9A-Fa-f]|[57][0-9Aa])|&(?:quot|apos|equals|colon|#\d{2,3}|#[xX]\w{2});"
# The first of four letters says the upper six bits of a byte, which are low in text.
_BASE64 = (
    r"[H-Za-f](?<![A-Za-z0-9+/_=-].)[A-Za-z0-9+/_-]{3}(?:[C-Za-f][A-Za-z0-9+/_-]{3}){3,}+"
    r"[A-Za-z0-9+/_-]{0,3}+={0,2}(?![A-Za-z0-9])"
)
_LONGEST = 100_000  # characters of base64 that are decoded


def decoded(text: str) -> View | None:
    """The lines in which URL-encoding, entities of HTML or JSON's newlines hide something, decoded."""
    if not ("\\n" in text or "%" in text or "&" in text):
        return None
    hidden, encoded = re.compile(_HIDING), re.compile(_ENCODED)
    edits: list[tuple[int, int, str]] = []
    end = 0
    while hiding := hidden.search(text, end):
        start = text.rfind("\n", 0, hiding.start()) + 1
        if start > end:
            edits.append((end, start, "\n\n"))  # what is left out joins nothing
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        edits += [(*escape.span(), _decoded(escape[0])) for escape in encoded.finditer(text, start, end)]
    return View(text, [*edits, (end, len(text), "")]) if edits else None


def _decoded(escape: str) -> str:
    if escape[0] == "%":
        return chr(int(escape[1:], 16))
    if escape[0] == "\\":
        return "\t" if escape[-1] == "t" else "\n"
    name = escape[1:-1]
    if name[0] != "#":
        return _ENTITIES[name]
    code = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
    return chr(code) if 0x20 <= code < 0x7F else " "


def base64_texts(text: str, words: list[tuple[int, int]]) -> Iterator[tuple[int, int, str]]:
    """What is text once it is decoded, in these words: where it begins and ends, and what it says."""
    from binascii import Error, a2b_base64

    if not words:
        return
    base64 = re.compile(_BASE64)
    for match in [found for start, end in words for found in base64.finditer(text, start, end + 3)]:
        encoded = match[0][:_LONGEST].replace("-", "+").replace("_", "/").rstrip("=")
        encoded = encoded[: len(encoded) // 4 * 4] if len(encoded) % 4 == 1 else encoded
        try:
            if _is_text(a2b_base64(encoded[:16])):
                said = a2b_base64(encoded + "=" * (-len(encoded) % 4))
                if _is_text(said):
                    yield (*match.span(), said.decode())
        except Error:
            continue


def _is_text(said: bytes) -> bool:
    return not said.translate(None, bytes([9, 10, 13, *range(32, 127)]))
