"""Standard input as the MCP servers read it.

JavaScript may send half of a surrogate pair, of an emoji cut in two, as `\\ud83e`. It is no text, so the mcp
package drops the whole line and the client waits for an answer that never comes. Here it becomes the sign for
what cannot be shown.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)


def mend_stdin(at_end: Callable[[], None] | None = None) -> None:
    """From now on sys.stdin gives whole characters only; `at_end` is called when there are no more."""
    sys.stdin = io.TextIOWrapper(io.BufferedReader(_Mended(sys.stdin.buffer, at_end)), encoding="utf-8")


def mended(line: bytes) -> bytes:
    if b"\\ud" not in line and b"\\uD" not in line:
        return line
    return _ESCAPE.sub(lambda found: rb"\ufffd" if found[1] else found[0], line)


class _Mended(io.RawIOBase):
    def __init__(self, lines: BinaryIO, at_end: Callable[[], None] | None) -> None:
        self._lines = lines
        self._at_end = at_end
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = mended(self._lines.readline())
            if not self._rest and self._at_end:
                self._at_end()
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count
