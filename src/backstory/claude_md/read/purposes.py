"""What a repository's documents say its folders and files are for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from backstory.claude_md.read.documents import TEMPLATE, for_developers, is_to_be_told, sentences
from backstory.claude_md.read.files import ProjectFiles

_PATH = r"(?:\./)?(?P<path>[\w@.()\[\]+-][\w@.()\[\]+/ -]{0,99}?)/?"
_SAID = re.compile(
    rf"`?{_PATH}`?\s*(?:[:–—]|\s-{{1,2}}\s|\t|(?=\s(?:is|are|contains?|holds?|has|provides?)\s))\s*(?P<said>\S.*)"
)
_TREE = re.compile(
    r"^(?P<indent>(?:[│|`├└─+\\ \t-]|\u00a0)*)(?P<name>[\w@.()\[\]+-][\w@.()\[\]+/-]*?)/?(?P<rest>\s.*)?$"
)
_COMMENT = re.compile(r"\s+(?:#|//|<-+|←|--?|—|–|:)\s+(?P<said>\S.*)$|\s{2,}(?P<plain>[A-Za-z(].*)$")
LONGEST_PURPOSE = 110
LONGEST_LINE = 300
# Below another heading `test` is a word, and not the folder of that name.
_LAYOUT = re.compile(
    r"structur|layout|director|folder|organi[sz]|overview|architecture|tree|source code", re.IGNORECASE
)


@lru_cache(2)  # the root and each subtree ask for the same project
def said_of_paths(project: ProjectFiles) -> Mapping[str, str]:
    """Folder or file -> what a document says it is for."""
    files = {file.path for file in project.files}
    there = files | {path[:at] for path in files for at, sign in enumerate(path) if sign == "/"}
    found: dict[str, str] = {}
    for document in for_developers(project):
        if TEMPLATE.search(document.path):
            continue
        for block in document.blocks:
            if block.kind in ("item", "row", "paragraph"):
                pairs = [
                    (match["path"], match["said"].split("\t")[0])
                    for match in [_SAID.match(block.text)]
                    if match
                ]
            elif block.kind == "code":
                pairs = list(_tree(block.text, there.__contains__))
            else:
                continue
            for given, said in pairs:
                path = given.strip().rstrip("/").strip("`")
                purpose = _purpose(said)
                is_path = (
                    "/" in block.text[: len(given) + 3]
                    or block.kind == "code"
                    or _LAYOUT.search(block.heading)
                )
                if is_path and path in there and purpose and path not in found:
                    found[path] = purpose
    return found


def _tree(text: str, is_there: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
    """The lines of a drawn tree that say something, with the path that their place in it gives."""
    if not re.search(r"[├└│]|^\|--|^\+--", text, re.MULTILINE):
        return
    above: list[tuple[int, str]] = []
    for line in text.splitlines()[:300]:
        found = _TREE.match(line[:LONGEST_LINE])
        if not found:
            continue
        indent = len(found["indent"])
        while above and above[-1][0] >= indent:
            above.pop()
        above.append((indent, found["name"]))
        comment = _COMMENT.search(found["rest"] or "")
        names = [name for _, name in above]
        path = next(
            ("/".join(names[at:]) for at in range(len(names)) if is_there("/".join(names[at:]))), None
        )
        if comment and path:
            yield path, comment["said"] or comment["plain"]


def _purpose(said: str) -> str:
    """One sentence that is short enough for a line of an outline."""
    said = re.sub(
        r"^(?:this (?:folder|directory|package|crate|module) )?(?:is|are|contains?|holds?|has) (?:where "
        r"|the |all )?",
        "",
        said.strip(),
    )
    first = sentences(said)[:1]
    text = first[0].rstrip(" .:") if first else ""
    if len(text) > LONGEST_PURPOSE:
        text = re.split(r"[;:(]|, which|, where| - ", text, maxsplit=1)[0].rstrip(" .:,")
    is_told = 3 <= len(text) <= LONGEST_PURPOSE and not text.endswith("…")
    return text if is_told and is_to_be_told(said) else ""
