"""What git would ignore: the patterns of a .gitignore as regular expressions.

Git decides entry by entry on the way down (below an ignored folder nothing is looked at), so a pattern has to
match one entry, never what lies below it. It works on bytes, as git does. Whatever a .gitignore says, the
expressions stay cheap: between two wildcards the first place that fits is as good as any other, so they are
atomic and never tried again.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator

STAR, STARS, SLASH = b"*", b"**", b"/"  # tokens; the others are expressions that match one byte
FOLDER = b"\0"  # ends the name of a folder, and is in no name
MOST = 500  # patterns with wildcards of one file
LONGEST_NAME = 1_000  # bytes; no file system has longer ones
PLAIN = re.compile(rb"[^*?\[\\]*")
CLASSES = {
    "alnum": string.ascii_letters + string.digits,
    "alpha": string.ascii_letters,
    "blank": " \t",
    "cntrl": "".join(map(chr, [*range(32), 127])),
    "digit": string.digits,
    "graph": "".join(map(chr, range(33, 127))),
    "lower": string.ascii_lowercase,
    "print": "".join(map(chr, range(32, 127))),
    "punct": string.punctuation,
    "space": string.whitespace,
    "upper": string.ascii_uppercase,
    "xdigit": string.hexdigits,
}


class Never(Exception):
    """A pattern that matches nothing: an unclosed bracket, a backslash at the end."""


class Rules:
    """The patterns of one file; the last one that matches decides."""

    __slots__ = ("_runs",)

    def __init__(self, content: bytes) -> None:
        # Neighbours that say the same are one run: its names and its paths, each plain ones and expressions.
        runs: list[tuple[bool, _Patterns, _Patterns]] = []
        left = MOST
        for ignored, anchored, body, folder in _lines(content):
            if not runs or runs[-1][0] != ignored:
                runs.append((ignored, _Patterns(), _Patterns()))
            _, names, paths = runs[-1]
            patterns = paths if anchored else names
            if PLAIN.fullmatch(body):
                patterns.plain.update((body + FOLDER,) if folder else (body, body + FOLDER))
            elif left and (expression := _compiled(body, anchored, folder)):
                left -= 1
                patterns.expressions.append(expression)
        self._runs = [(ignored, names.matcher(), paths.matcher()) for ignored, names, paths in reversed(runs)]

    def __bool__(self) -> bool:
        return bool(self._runs)

    def ignored(self, path: bytes, name: bytes, folder: bool) -> bool | None:
        """Whether an entry is ignored; None where no pattern speaks of it.

        `path` is seen from the folder of the file; `name` is its last part.
        """
        if folder:
            path, name = path + FOLDER, name + FOLDER
        for ignored, names, paths in self._runs:
            if (names and names(name)) or (paths and paths(path)):
                return ignored
        return None


class _Patterns:
    """Patterns of which any may match."""

    __slots__ = ("expressions", "plain")

    def __init__(self) -> None:
        self.plain: set[bytes] = set()
        self.expressions: list[bytes] = []

    def matcher(self) -> Callable[[bytes], object] | None:
        if not self.expressions:
            return self.plain.__contains__ if self.plain else None
        match = re.compile(b"|".join(self.expressions), re.DOTALL).fullmatch
        if not self.plain:
            return match
        plain = self.plain
        return lambda text: text in plain or match(text)


def _lines(content: bytes) -> Iterator[tuple[bool, bool, bytes, bool]]:
    """Of each pattern: whether it ignores (or includes again), whether it speaks of paths, what it says, and
    whether it means folders only."""
    for raw in content.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        line = _trimmed(raw.removesuffix(b"\r").partition(b"\0")[0])
        if line.startswith(b"#") or len(line) > 4_096:  # no path is as long
            continue
        pattern = line.removeprefix(b"!")
        folder = pattern.endswith(b"/")
        body = pattern[:-1] if folder else pattern
        if bare := body.removeprefix(b"/"):
            yield line == pattern, b"/" in body, bare, folder


def _compiled(body: bytes, anchored: bool, folder: bool) -> bytes | None:
    """The expression of a pattern; None where nothing can match it."""
    try:
        tokens = list(_tokens(body, anchored))
    except Never:
        return None
    length = 0  # of the name that it asks for at least
    for token in tokens:
        length = 0 if token == SLASH else length + (token not in (STAR, STARS))
        if length > LONGEST_NAME:
            return None
    return _expression(tokens) + FOLDER + (b"" if folder else b"?")


def _trimmed(line: bytes) -> bytes:
    """Without the blanks at the end, but for the first where a backslash stands before it."""
    bare = line.rstrip(b" ")
    escaped = (len(bare) - len(bare.rstrip(b"\\"))) % 2
    return line[: len(bare) + 1] if escaped and len(bare) < len(line) else bare


def _tokens(pattern: bytes, anchored: bool) -> Iterator[bytes]:
    at = 0
    while at < len(pattern):
        sign = pattern[at : at + 1]
        if sign == b"*":
            end = len(pattern) - len(pattern[at:].lstrip(b"*"))
            # Git cuts the plain beginning off first, so the first wildcard always stands at a beginning.
            alone = (PLAIN.fullmatch(pattern, 0, at) or pattern[at - 1 : at] == b"/") and (
                pattern[end : end + 1] in (b"", b"/")
            )
            yield STARS if anchored and end - at > 1 and alone else STAR
            at = end
        elif sign == b"?":
            yield b"[^/\0]"
            at += 1
        elif sign == b"[":
            token, at = _bracket(pattern, at + 1)
            yield token
        else:
            at += sign == b"\\"
            if at == len(pattern):
                raise Never
            yield SLASH if pattern[at : at + 1] == b"/" else re.escape(pattern[at : at + 1])
            at += 1


def _bracket(pattern: bytes, at: int) -> tuple[bytes, int]:
    """A bracket's set as an expression, and where the pattern goes on. `at` is behind the opening."""
    negated = pattern[at : at + 1] in (b"!", b"^")
    at += negated
    members: set[int] = set()
    before = -1  # what a range would start from
    first = True
    while first or pattern[at : at + 1] != b"]":
        first = False
        if pattern[at : at + 2] == b"[:" and (named := re.compile(rb"\[:([^\]]*):\]").match(pattern, at)):
            members.update(map(ord, CLASSES.get(named[1].decode("latin-1")) or _never()))
            before, at = -1, named.end()
            continue
        ranged = pattern[at : at + 1] == b"-" and before >= 0 and pattern[at + 1 : at + 2] not in (b"", b"]")
        at += ranged
        at += pattern[at : at + 1] == b"\\"
        if at >= len(pattern):
            raise Never
        members.update(range(before, pattern[at] + 1) if ranged else (pattern[at],))
        before = -1 if ranged else pattern[at]
        at += 1
    members = members | {0, ord("/")} if negated else members - {0, ord("/")}
    if len(members) == (256 if negated else 0):
        raise Never
    return (b"[^" if negated else b"[") + _ranges(members) + b"]", at + 1


def _ranges(members: set[int]) -> bytes:
    result = b""
    for first in sorted(member for member in members if member - 1 not in members):
        last = first
        while last + 1 in members:
            last += 1
        result += b"\\x%02x" % first + (b"-\\x%02x" % last if last > first else b"")
    return result


def _never() -> str:
    raise Never


def _expression(tokens: list[bytes]) -> bytes:
    """Groups of segments between `**`; all but the last are taken at the first place where they fit."""
    groups: list[list[bytes]] = [[]]
    for token in tokens:
        if token == STARS:
            groups.append([])
        else:
            groups[-1].append(token)
    result = _segments(groups[0])
    for number, group in enumerate(groups[1:], start=2):
        if not group:  # `**` at the very end: all that is inside
            result += b"[^\0]*"
        elif group == [SLASH]:
            continue  # `**/**`
        elif number < len(groups):
            result += b"(?>(?:[^/\0]*/)*?" + _segments(group[1:]) + b")"
        else:
            result += b"(?:[^/\0]*/)*" + _segments(group[1:])
    return result


def _segments(tokens: list[bytes]) -> bytes:
    result = b""
    at = 0
    while at < len(tokens):
        if tokens[at] != STAR:
            result += tokens[at]
            at += 1
            continue
        end = at + 1
        while end < len(tokens) and tokens[end] not in (STAR, SLASH):
            end += 1
        fixed = b"".join(tokens[at + 1 : end])
        again = end < len(tokens) and tokens[end] == STAR
        result += b"(?>[^/\0]*?" + fixed + b")" if again else b"[^/\0]*" + fixed
        at = end
    return result
