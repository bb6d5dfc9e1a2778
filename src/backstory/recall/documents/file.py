"""Documents as files and bytes: which kind one is, whether it may be read, and what its bytes say."""

from __future__ import annotations

import codecs
import os
import re
import stat
from collections.abc import Sequence
from itertools import islice
from urllib.parse import urlsplit

from backstory.errors import BadInput, NotFound

LARGEST = 10_000_000  # bytes
MOST_LINES = 500_000  # of a text, or tags of a page: each costs time, however short it is
MOST_HEADINGS = 50_000
EXTENSIONS = {
    ".md": "md",
    ".markdown": "md",
    ".mdx": "md",
    ".rst": "rst",
    ".txt": "txt",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
}
TYPES = {
    "text/markdown": "md",
    "text/x-markdown": "md",
    "text/x-rst": "rst",
    "text/prs.fallenstein.rst": "rst",
    "text/html": "html",
    "application/xhtml+xml": "html",
}
SUPPORTED = "Markdown, reStructuredText, HTML and plain text"


def kind_of(path: str) -> str:
    """md, rst, txt or html, by a file's extension. Without one, as in README, it is txt."""
    name = os.path.basename(path)
    extension = os.path.splitext(name.lower())[1] or (name if name.startswith(".") else "")
    if extension and extension not in EXTENSIONS:
        raise BadInput(f"{extension[:40]!r} is no kind of document that can be read; {SUPPORTED} can")
    return EXTENSIONS.get(extension, "txt")


def kind_of_page(url: str, content_type: str) -> str:
    """The kind of something fetched. Servers of raw files say text/plain of all; then the name knows more."""
    kind = TYPES.get(content_type, "txt")
    extension = os.path.splitext(urlsplit(url).path.lower())[1]
    return EXTENSIONS.get(extension, kind) if content_type == "text/plain" else kind


def read_file(path: str, allowed: Sequence[str], most: int = LARGEST) -> tuple[str, bytes]:
    """The real path of a document and its bytes, `most` of them, if it lies in one of these folders.

    Links are followed before that is judged, and the file that was opened is judged again: somebody may have
    put a link in its place meanwhile. A pipe or a device is never opened for long enough to hang or to act.
    """
    folders = [os.path.realpath(folder) for folder in allowed]
    try:
        real = os.path.realpath(path)
        _check(real, os.stat(real), folders, most)
        opened = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {path[:300]}; check its name") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)[:100]
        raise BadInput(f"{path[:300]!r} cannot be read ({reason}); check its name and permissions") from error
    with open(opened, "rb") as file:
        _check(_path_of(opened, real), os.fstat(opened), folders, most)
        body = file.read(most + 1)
    if len(body) > most:
        raise BadInput(f"{real} has more than {most:,} bytes; take in the part that matters")
    if b"\0" in body[:8192]:
        raise BadInput(f"{real} is not text; {SUPPORTED} can be read, in UTF-8")
    return real, body


def _check(real: str, status: os.stat_result, folders: list[str], most: int) -> None:
    if not any(os.path.commonpath([real, folder]) == folder for folder in folders):
        raise BadInput(
            f"{real} lies outside of {', '.join(folders) or 'every allowed folder'};"
            " copy it there, or add its folder to the setting docs.folders"
        )
    if not stat.S_ISREG(status.st_mode):
        raise BadInput(f"{real} is not a file; name a document")
    if status.st_size > most:
        raise BadInput(f"{real} has {status.st_size:,} bytes, a document may have {most:,}; split it")


def _path_of(opened: int, expected: str) -> str:
    """Where the opened file really lies: the kernel knows. Where it does not tell, follow the path again."""
    try:
        return os.readlink(f"/proc/self/fd/{opened}")
    except OSError:
        real = os.path.realpath(expected)
        same = os.path.samestat(os.stat(real), os.fstat(opened))
        return real if same else os.sep


_HEADING = re.compile(r"^ {0,3}(?:#{1,6}[ \t]|(?:=++|-++)[ \t]*+$)", re.MULTILINE)


def check_lines(text: str) -> None:
    """Refuse at once what would take minutes to read."""
    lines = max(text.count("\n"), text.count("\r"))
    if lines > MOST_LINES:
        raise BadInput(
            f"the document has {lines:,} lines, one may have {MOST_LINES:,}; take in the part that matters"
        )
    if next(islice(_HEADING.finditer(text), MOST_HEADINGS, None), None):
        raise BadInput(
            f"the document has more than {MOST_HEADINGS:,} headings, and that is the most;"
            " take in the part that matters"
        )


_META = re.compile(rb"""<meta\s[^>]{0,500}?charset\s*=\s*["']?\s*([a-z0-9_.:-]{1,40})""", re.IGNORECASE)
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_NO_CHARSETS = frozenset("idna punycode unicode-escape raw-unicode-escape utf-7 undefined mbcs oem".split())


def decode(body: bytes, charset: str | None, *, html: bool = False) -> str:
    """The text of a document: by its byte order mark, by what the server says, by what HTML says of itself,
    or as UTF-8. What cannot be decoded is replaced: a wrong letter is better than no document."""
    for mark, codec in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(codec, "replace")
    stated = _codec(charset) if charset else None
    meta = _META.search(body, 0, 4096) if html and not stated else None
    if meta:
        own = _codec(meta[1].decode("ascii"))
        # In these it could not be read here.
        stated = None if own and own.startswith(("utf-16", "utf-32")) else own
    return body.decode(stated or "utf-8", "replace")


def _codec(charset: str) -> str | None:
    """Python's name for it, if texts are written in it. Latin-1 is read as Windows does, like in browsers."""
    try:
        found = codecs.lookup(charset.strip())
        b"a".decode(found.name, "replace")  # refuses zlib and its like: those are no encodings of text
    except (LookupError, ValueError, TypeError):
        return None
    name = found.name.replace("_", "-")
    if name in _NO_CHARSETS:
        return None
    return "cp1252" if name in ("iso8859-1", "ascii") else found.name
