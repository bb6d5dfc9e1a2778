"""Which folders of a project are worth a CLAUDE.md of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from backstory.claude_md.read.files import ProjectFiles
from backstory.claude_md.read.languages import is_test, sources
from backstory.claude_md.read.manifests.folder import Index

LEAST = 20  # source files, tests not counted
NAMED = frozenset("src lib app api server client web frontend backend core cmd pkg internal".split())
PARENTS = frozenset(("apps", "packages", "services"))  # of such parts
NEVER = frozenset("test tests __tests__ spec specs doc docs example examples samples".split())


def subtrees(project: ProjectFiles, folders: Index, workspaces: Sequence[str]) -> tuple[str, ...]:
    sizes = _sizes(project)
    found = {path for path in workspaces if sizes[path] >= LEAST}
    around = {above for path in workspaces for above in _and_above(path)}
    for path in sizes:
        parent, _, name = path.rpartition("/")
        is_package = not parent and "__init__.py" in folders.get(path, ())
        if not is_package and parent not in PARENTS and (parent or name not in NAMED):
            continue
        if path in around:
            continue  # its members are worth one, not the folder around them
        part = _only_package(folders, sizes) if path == "src" else path
        if sizes[part] >= LEAST:
            found.add(part)
    return tuple(sorted(path for path in found if path.isprintable() and NEVER.isdisjoint(path.split("/"))))


def _sizes(project: ProjectFiles) -> Counter[str]:
    """How many source files are in each folder, of any depth."""
    direct = Counter(
        file.path.rpartition("/")[0]
        for files in sources(project).values()
        for file in files
        if not is_test(file.path)
    )
    sizes: Counter[str] = Counter()
    for folder, number in direct.items():
        for path in _and_above(folder):
            sizes[path] += number
    return sizes


def _and_above(path: str) -> Iterator[str]:
    """A folder and those that it lies in."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def _only_package(folders: Index, sizes: Counter[str]) -> str:
    """`src/flask`, where src/ holds nothing but that package; else `src`."""
    inside = [path for path in sizes if path.startswith("src/") and path.count("/") == 1]
    alone = len(inside) == 1 and sizes[inside[0]] == sizes["src"]
    return inside[0] if alone and "__init__.py" in folders[inside[0]] else "src"
