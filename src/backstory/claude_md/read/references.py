"""The paths that a section names, as far as a text shows that it means one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from backstory.claude_md.read.languages import ENDINGS
from backstory.markdown import without_fences

# What is named in backticks or by a link, and looks like a path: with `/`, or with an ending that files have.
_NAMED = re.compile(r"(?<!`)(`+)(?!`)(?P<code>[^\n]{1,400}?)(?<!`)\1(?!`)|\]\((?P<link>[^()\s]{1,400})\)")
_NO_PATH = re.compile(r"[\s*?{}<>$|;,\"'=()\[\]\\]|^[~/@-]|^[a-z][a-z+.-]*:|\.\.\.")
_ENDING = re.compile(r"[^/]\.([A-Za-z][A-Za-z0-9]{0,9})$")
OTHER_ENDINGS = frozenset(
    "md rst txt toml json yaml yml cfg ini lock xml html css scss sql proto graphql ipynb conf mk"
    " gradle csv tsv svg png".split()
)
NO_FILE = re.compile(r"[A-Z]\w*\.(?:js|io|py|go|ts|rs)|\w+(?:\.\w+)+\.[a-z]")  # Next.js, a.b.c
PLACE = re.compile(r"#L\d+(?:-L?\d+)?$|(?<=\w):\d+(?::\d+)?$")  # a line of a file


def references(body: str, folders: Iterable[str]) -> list[str]:
    """The paths that a section names, each once. What lies in no folder that is there is none, unless its
    name ends like a file's or a folder's: `text/html` and `origin/main` are no paths."""
    return list(dict.fromkeys(_references(body, tuple(folders))))


def _references(body: str, folders: tuple[str, ...]) -> Iterator[str]:
    # What is in a code block may be anything.
    for found in _NAMED.finditer(without_fences(body)):
        link = found["link"]
        given = re.sub(r"[#?].*", "", link) if link else found["code"].strip()
        given = PLACE.sub("", given).removeprefix("./")
        if not given or _NO_PATH.search(given):
            continue
        ending = _ENDING.search(given)
        is_file = ending is not None and (ending[1] in ENDINGS or ending[1] in OTHER_ENDINGS)
        first, slash, _ = given.partition("/")
        if not slash:
            is_path = bool(is_file or link) and not NO_FILE.fullmatch(given)
        else:
            is_path = given.endswith("/") or is_file or any(_is_there(at, first) for at in folders)
        if is_path and (link or first != ".."):  # `../util` is what code imports
            yield given


def _is_there(folder: str, name: str) -> bool:
    return os.path.lexists(os.path.join(folder, name))
