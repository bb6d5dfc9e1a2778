"""How a project is laid out, in a few lines: its folders, what each says about itself, where it begins.

What a folder says about itself is the description in its manifest, or the first sentence of its package's
docstring or doc comment or of its README. Nothing is counted here that the next commit would change.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from backstory.claude_md.read.files import File, ProjectFiles
from backstory.claude_md.read.languages import BESIDE_THE_SOURCE, language_of
from backstory.claude_md.read.manifests.folder import toml
from backstory.claude_md.read.readme import first_paragraph

MOST_LINES = 28
MOST_INNER = 8  # lines about what is in a folder
MOST_SILENT = 24  # folders that say nothing about themselves, in one line
MOST_FILES = 40  # files that say nothing; a part of so long a list would tell nothing
DEEPEST = 2  # levels of folders below the top
MOST_READ = 60  # files or folders that are asked what they are, in one folder
MOST_ENTRIES = 6
SENTENCE = 120  # characters; a longer one is no line in an outline
UNTOLD = frozenset(("__init__.py", "setup.py"))  # everybody knows what is in these
READ = 100_000  # bytes of a file; one that is larger says nothing in a sentence

FOLDER_PURPOSES = {
    name: role
    for role, names in {
        "tests": "test tests __tests__ spec specs e2e",
        "documentation": "doc docs documentation",
        "examples": "example examples samples",
        "benchmarks": "bench benches benchmark benchmarks",
        "scripts": "script scripts",
        "tools": "tool tools hack",
        "database migrations": "migration migrations",
        "templates": "template templates",
        "static files": "static public assets",
        "configuration": "config configs conf settings",
        "deployment": "deploy deployment deployments k8s helm terraform infra",
        "translations": "locale locales i18n translations",
        "type definitions": "types typings",
        "generated code": "gen generated",
    }.items()
    for name in names.split()
}
ENTRIES = re.compile(
    r"(?:[^/]+/){0,3}__main__\.py|manage\.py|(?:cmd/[^/]+/)?main\.go|src/main\.rs|src/bin/[^/]+(?:/main)?\.rs"
    r"|(?:src/)?(?:index|main|server|app)\.(?:[cm]?js|tsx?|jsx)|(?:src/)?(?:app|main|wsgi|asgi)\.py"
    r"|src/main/java/(?:[^/]+/)*[A-Z]\w*Application\.java"
)


class Folder:
    __slots__ = ("files", "folders", "languages")

    def __init__(self) -> None:
        self.folders: dict[str, Folder] = {}
        self.files: list[str] = []
        self.languages: Counter[str] = Counter()  # how many files, at any depth

    @property
    def source(self) -> int:
        return self.languages.total()


def folders(project: ProjectFiles) -> Folder:
    top = Folder()
    for file in project.files:
        *above, name = file.path.split("/")
        language = language_of(file.path)
        at = top
        for part in above:
            if language:
                at.languages[language] += 1
            at = at.folders.setdefault(part, Folder())
        at.files.append(name)
        if language:
            at.languages[language] += 1
    return top


def lines(
    project: ProjectFiles, workspaces: Sequence[str], code: Callable[[str], str], plain: Callable[[str], str]
) -> Iterator[str]:
    """The folders at the top of a project and what is in them, and the source beside them.

    Who says what it is has a line of its own; the others share one, and so do those for which there is no
    room. `code` and `plain` make Markdown of a path, and of what somebody wrote.
    """
    top = folders(project)
    main = top.languages.most_common(1)[0][0] if top.source else ""

    def shown(path: str, folder: Folder, depth: int) -> tuple[list[str], bool]:
        """The lines of a folder, and whether they say more than its name."""
        indent = "  " * depth
        role = None if depth else _role(path)
        said = about(project, path, folder.files, role) or (
            "" if depth or role is not None else _other(folder, main)
        )
        below: list[str] = []
        silent: list[str] = []
        for name, inner in _inner(path, folder) if depth < DEEPEST else []:
            deep, last = _deepest(f"{path}/{name}", inner, workspaces)
            made, speaks = shown(deep, last, depth + 1)
            is_far = deep.count("/") > path.count("/") + 1
            if len(below) + len(made) > MOST_INNER:
                made = made[:1]
            if (speaks or is_far) and len(below) < MOST_INNER:
                below += made
            else:
                silent.append(code(name))
        head = f"{indent}- {code(path + '/')}" + (f": {plain(said)}" if said else "")
        if silent and not said and not below:
            return [f"{head} with {_named(silent)}"], True
        rest = [f"{indent}  - with {_named(silent)}"] if silent else []
        return [head, *below, *rest], bool(said or below)

    made: list[str] = []
    silent: list[str] = []
    for path, folder in _top(top, workspaces):
        lines, speaks = shown(path, folder, 0)
        if len(made) + len(lines) >= MOST_LINES:
            lines = lines[:1]
        if speaks and len(made) + 1 < MOST_LINES:
            made += lines
        else:
            silent.append(code(path + "/"))
    unsaid: list[str] = []
    for name in [name for name in sorted(top.files) if language_of(name) and name not in UNTOLD][:MOST_READ]:
        said = _sentence(_head(name, project.text(name, READ) or ""))
        if said and len(made) + 1 < MOST_LINES:
            made.append(f"- {code(name)}: {plain(said)}")
        else:
            unsaid.append(code(name))
    yield from made
    if len(unsaid) > MOST_FILES:
        unsaid = []
    if silent or unsaid:
        yield "- " + ", ".join([*([_named(silent)] if silent else []), *unsaid])


def entries(project: ProjectFiles) -> list[str]:
    """Where the program begins, as far as names tell."""
    found = [file.path for file in project.files if ENTRIES.fullmatch(file.path)]
    return [path for path in found if BESIDE_THE_SOURCE.isdisjoint(path.split("/"))][:MOST_ENTRIES]


def about(project: ProjectFiles, folder: str, names: Iterable[str], role: str | None = None) -> str:
    """What a folder says about itself, in a sentence; empty where it says nothing. What everybody has (docs,
    tests) is known better by its role than by a README, which may begin with anything."""
    there = set(names)
    above = f"{folder}/" if folder else ""
    for name, said in SAYERS.items():
        if name in there and (sentence := _sentence(said(project.text(above + name, READ) or ""))):
            return _unnamed(sentence, folder or os.path.basename(project.root))
    if role is not None:
        return role
    inside = ProjectFiles(os.path.join(project.root, folder), tuple(File(name, 0) for name in there))
    return _unnamed(_sentence(first_paragraph(inside)), folder or os.path.basename(project.root))


def _unnamed(said: str, folder: str) -> str:
    """`backstory: a memory` without the name, which stands before it already."""
    name, mark, rest = said.partition(": ")
    return rest if mark and name.strip("`*").lower() == os.path.basename(folder).lower() else said


def _top(top: Folder, workspaces: Sequence[str]) -> Iterator[tuple[str, Folder]]:
    for name in sorted(top.folders):
        folder = top.folders[name]
        if name == ".github" and "workflows" in folder.folders:
            yield ".github/workflows", folder.folders["workflows"]
        if not name.startswith("."):
            yield _deepest(name, folder, workspaces)


def _deepest(path: str, folder: Folder, workspaces: Sequence[str]) -> tuple[str, Folder]:
    """In place of a folder whose source is all in another one, that one: src/main/java/org/walrus."""
    while path not in workspaces and path.rpartition("/")[2].lower() not in BESIDE_THE_SOURCE:
        inner = [name for name in folder.folders if folder.folders[name].source]
        if len(inner) != 1 or folder.folders[inner[0]].source < folder.source:
            break
        path, folder = f"{path}/{inner[0]}", folder.folders[inner[0]]
    return path, folder


def _inner(path: str, folder: Folder) -> list[tuple[str, Folder]]:
    """The folders in one of source."""
    if not folder.source or not BESIDE_THE_SOURCE.isdisjoint(path.lower().split("/")):
        return []
    inner = [name for name in sorted(folder.folders) if folder.folders[name].source]
    return [(name, folder.folders[name]) for name in inner[:MOST_READ]]


def _role(path: str) -> str | None:
    """What a folder of this name is for; empty where the name says so, None where it may be anything."""
    if path == ".github/workflows":
        return "CI"
    name = path.rpartition("/")[2].lower()
    role = FOLDER_PURPOSES.get(name)
    return "" if role and role.startswith(name.removesuffix("s")) else role  # docs: documentation


def _other(folder: Folder, main: str) -> str:
    """The language of a folder that is not the project's."""
    language = folder.languages.most_common(1)[0][0] if folder.source else main
    return "" if language == main else language


def _named(names: list[str]) -> str:
    return ", ".join(names[:MOST_SILENT]) + (" and others" if len(names) > MOST_SILENT else "")


# What files say about what they are in.


def _head(path: str, text: str) -> str:
    """The comment at the head of a source file, where that tells what is in it."""
    language = language_of(path)
    if language == "Python":
        return _docstring(text)
    if language == "Rust":
        return _inner_doc(text)
    if language == "Go":
        return _package_comment(text)
    return _block_comment(text) if language in ("JavaScript", "TypeScript", "Java") else ""


def _docstring(text: str) -> str:
    found = re.match(r"(?:[ \t]*(?:#[^\n]*)?\n)*[rRuU]?(\"\"\"|'''|\"|')(.*?)\1", text[:READ], re.DOTALL)
    return found[2] if found else ""


def _package_comment(text: str) -> str:
    above: list[str] = []
    for line in text.splitlines():
        if line.startswith("package "):
            break
        above.append(line)
    else:
        return ""
    starts = "/*" if above and above[-1].rstrip().endswith("*/") else None
    comment: list[str] = []
    while above and (starts or above[-1].startswith("//")):
        comment.append(above.pop())
        if starts and comment[-1].startswith(starts):
            break
    return "\n".join(line.strip("/* \t") for line in reversed(comment))


def _inner_doc(text: str) -> str:
    found = re.match(r"\s*((?://![^\n]*\n)+)", text)
    return re.sub(r"^//! ?", "", found[1], flags=re.MULTILINE) if found else ""


def _block_comment(text: str) -> str:
    """The first comment that is meant for readers of documentation; a licence may stand above it."""
    found = re.match(
        r"\s*(?:(?:'use strict'|\"use strict\");?\s*)?(?:/\*(?![*!])(?:(?!\*/).)*\*/\s*)?/\*[*!](.*?)\*/",
        text,
        re.DOTALL,
    )
    text = re.sub(r"^[ \t]*\* ?", "", found[1], flags=re.MULTILINE) if found else ""
    text = re.split(r"^[ \t]*@\w", text, maxsplit=1, flags=re.MULTILINE)[0]
    text = re.sub(r"\{@(?:code|link|linkplain|literal)\s+([^{}]*)\}", r"`\1`", text)
    return re.sub(r"</?(?:p|b|i|em|strong|code|tt)>", "", text, flags=re.IGNORECASE)


def _in_json(text: str) -> str:
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    said = found.get("description") if isinstance(found, dict) else None
    return said if isinstance(said, str) else ""


def _in_toml(text: str) -> str:
    found = toml(text)
    for table in (found.get("project"), found.get("package")):
        if isinstance(table, dict) and isinstance(table.get("description"), str):
            return str(table["description"])
    return ""


SAYERS: dict[str, Callable[[str], str]] = {
    "package.json": _in_json,
    "composer.json": _in_json,
    "pyproject.toml": _in_toml,
    "Cargo.toml": _in_toml,
    "__init__.py": _docstring,
    "doc.go": _package_comment,
    "lib.rs": _inner_doc,
    "mod.rs": _inner_doc,
    "package-info.java": _block_comment,
}


def _is_rule(line: str) -> bool:
    return re.fullmatch(r"\s*([=~\-^\"*#_+`:])\1{2,}\s*", line) is not None


def _sentence(text: str) -> str:
    """The first sentence of what may be a whole essay. Empty for a licence, for an address, and for one that
    is long: half a sentence helps nobody."""
    paragraphs = re.split(r"\n[ \t]*\n", text.strip())
    lines = [line.strip() for line in paragraphs[0].splitlines() if not _is_rule(line)]
    if len(lines) < len(paragraphs[0].splitlines()) and len(paragraphs) > 1:  # a title that is underlined
        lines = paragraphs[1].splitlines()
    words = " ".join(" ".join(lines).split())
    if re.search(r"licen[cs]e|copyright|\(c\)|://", words, re.IGNORECASE):
        return ""
    words = re.split(r"(?<=[\w)`'\"*])(?<!e\.g)(?<!i\.e)[.!?](?:\s|$)", words, maxsplit=1)[0].rstrip(" :")
    if len(words) > SENTENCE:  # what stands before a colon or a semicolon may be whole
        words = re.split(r"[:;] ", words, maxsplit=1)[0]
    return words if len(words) <= SENTENCE and not words.endswith(("…", "...")) else ""
