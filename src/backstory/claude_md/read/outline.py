"""How a project is laid out, in a few lines: its folders, what each says about itself.

What a folder says about itself is the description in its manifest, or the first sentence of its package's
docstring or doc comment or of its README. Nothing is counted here that the next commit would change.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from backstory.claude_md.read.documents import TO_AN_AGENT
from backstory.claude_md.read.files import File, ProjectFiles
from backstory.claude_md.read.languages import BESIDE_THE_SOURCE, language_of
from backstory.claude_md.read.manifests.folder import toml
from backstory.claude_md.read.readme import introduction

MOST_LINES = 18
MOST_INNER = 6  # lines about what is in a folder
MOST_FILES = 5  # files at the top that say what they are
DEEPEST = 2  # levels of folders below the top
MOST_READ = 60  # files or folders that are asked what they are, in one folder
MOST_MIGRATIONS = 3
SENTENCE = 120  # characters; a longer one is no line in an outline
MANIFESTS = frozenset(
    ("package.json", "pyproject.toml", "Cargo.toml", "go.mod", "mix.exs", "composer.json", "pom.xml")
)
UNTOLD = frozenset(("__init__.py", "setup.py"))  # everybody knows what is in these
NEARLY_ALL = 0.9
MOST_GO = 5  # files of a package that are asked what it is
# A step of a manual, or a command, and nothing that a folder is.
STEP = re.compile(
    r"^(?:build|run|install|copy|use|add|create|follow|set|open|start|make sure)\b|\s-{1,2}[a-z]",
    re.IGNORECASE,
)
SEVERAL = 4  # folders that are alike
MOST_SINGLE = 2  # files of a folder of Rust, for the one beside it to be about itself
FEW_OF = 0.2  # of the folders beside each other: if fewer say what they are, that tells nothing of the whole
PACKAGE = re.compile(r"^Package \w+ (?:is |provides |implements |contains |defines )?")  # of Go
SAYS_NOTHING = frozenset(
    "the of for and in to an all this used by utility utilities misc miscellaneous various other script"
    " scripts file files code source sources folder directory project related helper helpers additional"
    " extra common types defining generating writing notebooks".split()
)
README_HEAD = 3_000  # characters; there may be hundreds of folders with one
READ = 100_000  # bytes of a file; one that is larger says nothing in a sentence

FOLDER_PURPOSES = {
    name: role
    for role, names in {
        "": "test tests __tests__ spec specs doc docs documentation example examples samples bench benches"
        " benchmark benchmarks script scripts tool tools template templates static public assets config"
        " configs conf settings types typings bin build locale locales i18n translations",
        "end-to-end tests": "e2e",
        "database migrations": "migration migrations",
        "deployment": "k8s helm terraform infra",
        "generated code": "gen generated",
    }.items()
    for name in names.split()
}
MIGRATIONS = re.compile(
    r"((?:[^/]+/)*(?:migrations|migrate|versions))/(?:[^/]+/)?(?:[Vv]?\d[\w.-]*|[\w-]*_\d{4,}[\w.-]*)\.(?:py|rb|sql|exs|ts|js|cs|php|go|kt)"
)


class Folder:
    __slots__ = ("files", "folders", "source")

    def __init__(self) -> None:
        self.folders: dict[str, Folder] = {}
        self.files: list[str] = []
        self.source = 0  # how many files of it, at any depth


def folders(project: ProjectFiles) -> Folder:
    top = Folder()
    for file in project.files:
        *above, name = file.path.split("/")
        is_source = bool(language_of(file.path))
        at = top
        at.source += is_source
        for part in above:
            at = at.folders.setdefault(part, Folder())
            at.source += is_source
        at.files.append(name)
    return top


def lines(
    project: ProjectFiles,
    workspaces: Sequence[str],
    code: Callable[[str], str],
    plain: Callable[[str], str],
    purposes: Mapping[str, str] | None = None,
    told: str = "",
    elsewhere: Collection[str] = (),
) -> Iterator[str]:
    """The folders at the top of a project and what is in them, and the source beside them.

    What says what it is has a line; a folder that has only a name is left out: a look at it says as much.
    `purposes` is what documents say of paths, `told` what is said of the project already; what is in folders
    of `elsewhere` is said there. `code` and `plain` make Markdown of a path, and of what somebody wrote.
    """
    top = folders(project)
    documented = purposes or {}

    def said_of(path: str, folder: Folder, depth: int) -> str:
        role = _role(path) if not depth else None
        said = documented.get(path) or _framework_role(folder) or about(project, path, folder.files, role)
        return "" if _is_its_name(said, path) else said

    def shown(path: str, folder: Folder, depth: int, said: str, above: str) -> list[str]:
        """The lines of a folder; none where they would say no more than its name."""
        if same(said, above):
            said = ""
        below: list[str] = []
        is_open = depth < DEEPEST and path not in elsewhere
        inner = _inner(path, folder) if is_open else []
        inside = [_deepest(f"{path}/{name}", one, workspaces) for name, one in inner]
        sentences = [said_of(deep, last, depth + 1) for deep, last in inside]
        is_one_of_many = 0 < sum(map(bool, sentences)) < FEW_OF * len(inside)
        if not is_one_of_many and not _are_alike(sentences, inside):
            for (deep, last), sentence in zip(inside, sentences, strict=True):
                made = shown(deep, last, depth + 1, sentence, said or above)
                below += made if len(below) + len(made) <= MOST_INNER else made[:1]
        del below[MOST_INNER:]
        if not said:
            return below
        return [f"- {code(path + '/')}: {plain(said)}", *(f"  {line}" for line in below)]

    made: list[str] = []
    for path, folder in sorted(_top(top, workspaces), key=lambda one: _beside(one[0])):
        inner = shown(path, folder, 0, said_of(path, folder, 0), told)
        made += inner if len(made) + len(inner) < MOST_LINES else inner[:1]
    del made[MOST_LINES - 1 :]
    made += islice(_files(project, top, documented, code, plain), MOST_LINES - len(made))
    yield from made


def _are_alike(sentences: Sequence[str], inside: Sequence[tuple[str, Folder]]) -> bool:
    """Do folders say the same of themselves but for their names? `bold`: bold extension, `code`: code ..."""
    kinds = Counter(
        frozenset(re.findall(r"[a-z]{3,}", said.lower())) - set(re.findall(r"[a-z]{3,}", path.lower()))
        for said, (path, _) in zip(sentences, inside, strict=True)
        if said
    )
    return bool(kinds) and max(kinds.values()) >= max(SEVERAL, kinds.total() / 2)


def _files(
    project: ProjectFiles,
    top: Folder,
    documented: Mapping[str, str],
    code: Callable[[str], str],
    plain: Callable[[str], str],
) -> Iterator[str]:
    """The source files at the top that say what they are."""
    told = 0
    for name in [name for name in sorted(top.files) if language_of(name) and name not in UNTOLD][:MOST_READ]:
        said = documented.get(name) or _sentence(_head(name, project.text(name, READ) or ""))
        if said and told < MOST_FILES:
            told += 1
            yield f"- {code(name)}: {plain(said)}"


def same(one: str, other: str) -> bool:
    """Do a folder and the one around it say the same of themselves?"""
    words, others = (set(re.findall(r"\w{3,}", text.lower())) for text in (one, other))
    return len(words) > 2 and len(words & others) >= 0.7 * min(len(words), len(others) or 1)


def migrations(project: ProjectFiles) -> list[str]:
    """The folders of database migrations, those with most of them first."""
    found = Counter(match[1] for file in project.files if (match := MIGRATIONS.fullmatch(file.path)))
    named = [path for path, _ in found.most_common() if BESIDE_THE_SOURCE.isdisjoint(path.split("/"))]
    if len(named) <= MOST_MIGRATIONS:
        return sorted(named)
    tops, inner = {path.partition("/")[0] for path in named}, {path.rpartition("/")[2] for path in named}
    is_alike = len(tops) == len(inner) == 1 and {path.count("/") for path in named} == {2}
    return [f"{tops.pop()}/*/{inner.pop()}"] if is_alike else []


def parts(project: ProjectFiles, workspaces: Sequence[str]) -> list[str]:
    """The folders at the top of a project and those of source in them, whatever they say about themselves."""
    found = []
    for path, folder in _top(folders(project), workspaces):
        inner = [_deepest(f"{path}/{name}", one, workspaces)[0] for name, one in _inner(path, folder)]
        found += [f"{one}/" for one in (path, *inner)]
    return found


def about(project: ProjectFiles, folder: str, names: Iterable[str], role: str | None = None) -> str:
    """What a folder says about itself, in a sentence; empty where it says nothing. What everybody has (docs,
    tests) is known better by its role than by a README, which may begin with anything."""
    there = set(names)
    above = f"{folder}/" if folder else ""
    for name, said in SAYERS.items():
        sentence = _sentence(said(project.text(above + name, READ) or "")) if name in there else ""
        if sentence and (name != "__init__.py" or sentence[0].isupper()):  # "bring it into the namespace"
            return _unnamed(sentence, folder or os.path.basename(project.root))
    if role is not None:
        return role
    sentence = _sentence(_beside_it(project, folder, there))
    if sentence or folder:  # a README of a part may begin with anything
        return sentence
    inside = ProjectFiles(os.path.join(project.root, folder), tuple(File(name, 0) for name in there))
    readme = _sentence(introduction(inside, README_HEAD))
    return "" if STEP.search(readme) else _unnamed(readme, folder or os.path.basename(project.root))


def _beside_it(project: ProjectFiles, folder: str, names: Collection[str]) -> str:
    """What a package of Go says in one of its files, and a module of Rust in the file beside it."""
    base = folder.rpartition("/")[2]
    go = sorted(
        (name for name in names if name.endswith(".go")), key=lambda name: (name != f"{base}.go", name)
    )
    for name in [name for name in go if not name.endswith("_test.go")][:MOST_GO]:
        said = _package_comment(project.text(f"{folder}/{name}", READ) or "")
        if said.startswith("Package "):
            return PACKAGE.sub("", said)
    if len(names) <= MOST_SINGLE:
        return ""
    return _inner_doc(project.text(f"{folder}.rs", READ) or "")


def _unnamed(said: str, folder: str) -> str:
    """`backstory: a memory` without the name, which stands before it already."""
    name, mark, rest = said.partition(": ")
    return rest if mark and name.strip("`*").lower() == os.path.basename(folder).lower() else said


def _beside(path: str) -> bool:
    return not BESIDE_THE_SOURCE.isdisjoint(path.lower().split("/"))


def _framework_role(folder: Folder) -> str:
    """What a folder is to a framework, going by the files that only that one has."""
    files = set(folder.files)
    has_migrations = "migrations" in folder.folders
    roles = {
        "documentation (Sphinx)": "conf.py" in files and not files.isdisjoint(("index.rst", "index.md")),
        "documentation (mdBook)": "book.toml" in files,
        "documentation (VitePress)": ".vitepress" in folder.folders,
        "documentation (Docusaurus)": any(one.startswith("docusaurus.config.") for one in files),
        "Prisma schema and migrations": "schema.prisma" in files and has_migrations,
        "Prisma schema": "schema.prisma" in files,
        "Protocol Buffers definitions": any(one.endswith(".proto") for one in files) and not folder.source,
    }
    return next((role for role, holds in roles.items() if holds), "")


def _top(top: Folder, workspaces: Sequence[str]) -> Iterator[tuple[str, Folder]]:
    for name in sorted(top.folders):
        folder = top.folders[name]
        if not name.startswith("."):
            yield _deepest(name, folder, workspaces)


def _deepest(path: str, folder: Folder, workspaces: Sequence[str]) -> tuple[str, Folder]:
    """In place of a folder whose source is nearly all in another one, that one: src/main/java/org/walrus."""
    while (
        path not in workspaces
        and not _says(folder)
        and path.rpartition("/")[2].lower() not in BESIDE_THE_SOURCE
    ):
        inner = max(folder.folders, key=lambda name: (folder.folders[name].source, name), default="")
        if not inner or folder.folders[inner].source < max(NEARLY_ALL * folder.source, 1):
            break
        path, folder = f"{path}/{inner}", folder.folders[inner]
    return path, folder


def _says(folder: Folder) -> bool:
    """Does a folder have a manifest, so that it is one of the project's parts?"""
    return not MANIFESTS.isdisjoint(folder.files)


def _inner(path: str, folder: Folder) -> list[tuple[str, Folder]]:
    """The folders in one of source."""
    if not folder.source or _beside(path):
        return []
    inner = [name for name in sorted(folder.folders) if folder.folders[name].source]
    if "src" in inner and _says(folder):  # of a part, what is in there is what it is made of
        rest = [(name, folder.folders[name]) for name in inner if name != "src"]
        source = folder.folders["src"].folders
        below = [(f"src/{name}", source[name]) for name in sorted(source) if source[name].source]
        return [*below, *rest][:MOST_READ]
    return [(name, folder.folders[name]) for name in inner[:MOST_READ]]


def _role(path: str) -> str | None:
    """What a folder of this name is for; empty where the name says so, None where it may be anything."""
    return FOLDER_PURPOSES.get(path.rpartition("/")[2].lower())


def _is_its_name(said: str, path: str) -> bool:
    """Does it say no more than the path? `doc/`: Documentation, `ui/types/`: Types used by the UI."""
    names = re.findall(r"[a-z]{2,}", path.lower())
    words = [word for word in re.findall(r"[a-z]{2,}", said.lower()) if word not in SAYS_NOTHING]
    return all(any(word[:3] == name[:3] for name in names) for word in words)


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
    said = re.sub(r"^//! ?", "", found[1], flags=re.MULTILINE) if found else ""
    return re.sub(r"^(?:#[^\n]*\n|\s*\n)+", "", said)  # a heading says no more than the name


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


def _in_mix(text: str) -> str:
    found = re.search(r"^\s*description: *\"([^\"\n]{4,200})\"", text, re.MULTILINE)
    return found[1] if found else ""


SAYERS: dict[str, Callable[[str], str]] = {
    "package.json": _in_json,
    "composer.json": _in_json,
    "pyproject.toml": _in_toml,
    "Cargo.toml": _in_toml,
    "mix.exs": _in_mix,
    "__init__.py": _docstring,
    "doc.go": lambda text: PACKAGE.sub("", _package_comment(text).lstrip()),
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
    words = re.sub(r"\[([^\[\]]*)\]\[[^\[\]]*\]|\[(`[^`\]]*`)\]", r"\1\2", words)  # links of rustdoc
    if re.search(r"licen[cs]e|copyright|\(c\)|://", words, re.IGNORECASE) or TO_AN_AGENT.search(words):
        return ""
    words = re.split(r"(?<=[\w)`'\"*])(?<!e\.g)(?<!i\.e)[.!?](?:\s|$)", words, maxsplit=1)[0].rstrip(" :")
    if len(words) > SENTENCE:  # what stands before a colon or a semicolon may be whole
        words = re.split(r"[:;] ", words, maxsplit=1)[0]
    return (
        words if len(words) <= SENTENCE and not words.endswith(("…", "...", "such as", "including")) else ""
    )
