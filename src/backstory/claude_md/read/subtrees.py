"""Which folders of a project are parts of their own, and which of those are worth a CLAUDE.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from backstory.claude_md.read.files import ProjectFiles
from backstory.claude_md.read.languages import is_test, sources
from backstory.claude_md.read.manifests.folder import Folder, Index, table

LEAST = 20  # source files, tests not counted
NEVER = frozenset(
    "test tests __tests__ spec specs doc docs documentation site website example examples samples sample"
    " demo demos template templates fixtures testdata bench benches benchmarks tools scripts"
    " e2e playground".split()
)
MANIFESTS = frozenset(
    "package.json pyproject.toml setup.py requirements.txt Cargo.toml go.mod pom.xml"
    " build.gradle build.gradle.kts composer.json Gemfile mix.exs CMakeLists.txt Package.swift"
    " deno.json pubspec.yaml".split()
)
RUNS = ("dev", "start", "serve", "develop")  # scripts that begin an application
PROGRAMS = ("manage.py", "main.go", "src/main.rs", "config/application.rb", "pubspec.yaml")


def parts(folders: Index, workspaces: Sequence[str]) -> tuple[str, ...]:
    """Folders, one or two levels down, that have a manifest of their own and are no members of a monorepo.
    One that lies among members and could be one was left out of it on purpose, and is no part either."""
    around = {above for path in workspaces for above in _and_above(path)}
    among: dict[str, set[str]] = {}  # folder of members -> their manifests
    for path in workspaces:
        among.setdefault(path.rpartition("/")[0], set()).update(MANIFESTS & folders.get(path, frozenset()))
    members = frozenset(workspaces)
    found: dict[str, None] = {}
    for path in sorted(folders):
        names = path.split("/")
        if not path or len(names) > 2 or not path.isprintable() or folders[path].isdisjoint(MANIFESTS):
            continue
        if path in around or names[0] in found or names[0] in members:
            continue
        if len(names) > 1 and not folders[path].isdisjoint(among.get(names[0], ())):
            continue
        if NEVER.isdisjoint(name.lower() for name in names) and not path.startswith(".") and "/." not in path:
            found[path] = None
    return tuple(found)


def subtrees(
    project: ProjectFiles, folders: Index, workspaces: Sequence[str], parts: Sequence[str]
) -> dict[str, str]:
    """The folders worth a CLAUDE.md of their own, and why each is: applications with commands that the root
    does not have."""
    sizes = _sizes(project)
    found: dict[str, str] = {}
    for path in sorted({*workspaces, *parts}):
        if sizes[path] < LEAST or not NEVER.isdisjoint(path.lower().split("/")) or not path.isprintable():
            continue
        manifest = next((name for name in sorted(folders.get(path, ())) if name in MANIFESTS), None)
        begins = _script(Folder(project, folders, path))
        if not begins and path in parts:  # the tool of a workspace runs the programs of its members
            begins = next(
                (program for program in PROGRAMS if Folder(project, folders, path).has(program)), ""
            )
        if manifest and begins:
            found[path] = f"an application with commands of its own (`{begins}` in {path}/{manifest})"
    return found


def _script(folder: Folder) -> str:
    """The script that starts the application in a folder; empty where it is a library."""
    package = folder.json("package.json")
    scripts = table(package.get("scripts"))
    is_library = any(package.get(key) for key in ("main", "module", "exports", "types", "bin"))
    return "" if is_library else next((name for name in RUNS if name in scripts), "")


def _sizes(project: ProjectFiles) -> Counter[str]:
    """How many source files are in each folder, of any depth."""
    inside = Counter(
        file.path.rpartition("/")[0]
        for files in sources(project).values()
        for file in files
        if not is_test(file.path)
    )
    sizes: Counter[str] = Counter()
    for folder, number in inside.items():
        for path in _and_above(folder):
            sizes[path] += number
    return sizes


def _and_above(path: str) -> Iterator[str]:
    """A folder and those that it lies in."""
    while path:
        yield path
        path = path.rpartition("/")[0]
