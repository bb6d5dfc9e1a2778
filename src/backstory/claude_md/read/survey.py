"""What a project's files say about it: languages, frameworks, package managers, commands, parts.

Manifests at the root say what it is; those of a monorepo's members tell frameworks. Nothing is run.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from backstory.claude_md.read import subtrees
from backstory.claude_md.read.commands import candidates, gather
from backstory.claude_md.read.commands.candidates import Candidate
from backstory.claude_md.read.commands.project_tasks import ProjectTasks
from backstory.claude_md.read.configured import configured, unreleased
from backstory.claude_md.read.files import File, ProjectFiles
from backstory.claude_md.read.hands_off import folders_of, hands_off
from backstory.claude_md.read.history import plain
from backstory.claude_md.read.ignore import Rules
from backstory.claude_md.read.languages import BESIDE_THE_SOURCE, licence_header, sources
from backstory.claude_md.read.manifests import (
    frameworks,
    golang,
    gradle,
    javascript,
    maven,
    native,
    php,
    platforms,
    python,
    ruby,
    rust,
    tasks,
)
from backstory.claude_md.read.manifests.folder import Folder, Index, braces, index
from backstory.claude_md.read.manifests.manifest import Manifest
from backstory.claude_md.read.obligations import obligations
from backstory.claude_md.read.prerequisites import prerequisites
from backstory.claude_md.read.readme import description
from backstory.model import Command, Fact, Survey

READERS = (tasks, python, javascript, rust, golang, maven, gradle, php, ruby, platforms, native)
LEAST = 0.05  # of the source's bytes, for a language to be one of the project's
FEW, MUCH = 3, 0.2  # a language of fewer files must have so much of them; an installer is no language
LONGEST = 300
# What a manifest is called that nobody thought of a name for.
UNTELLING = frozenset(
    (
        "",
        *"root monorepo workspace app my-app project web frontend website package temp server ui"
        " client core api main backend".split(),
    )
)
WILD = re.compile(r"[*?\[]")
MOST_WILD = 200
NAMED = re.compile(r"@?\w[\w./+ -]{0,59}")  # no sentence


class _Manifests:
    """The manifests of each folder, read once. The package manager of a workspace holds for its members."""

    def __init__(self, project: ProjectFiles, languages: Sequence[tuple[str, float]]) -> None:
        self.folders = index(project)
        self._project = project
        self._read = {"": _by_share(_read(Folder(project, self.folders)), languages)}
        self.members = members(self._read[""], self.folders)
        self._manager = next((part.managers[0] for part in self._read[""] if part.ecosystem == "npm"), "")

    def __call__(self, path: str) -> list[Manifest]:
        if path not in self._read:
            manager = self._manager if path in self.members else ""
            self._read[path] = _read(Folder(self._project, self.folders, path, manager))
        return self._read[path]


def survey(project: ProjectFiles) -> Survey:
    made = hands_off(project)
    _, languages = by_hand(project)
    manifests = _Manifests(project, languages)
    folders, workspaces = manifests.folders, manifests.members
    found = manifests("")
    parts = subtrees.parts(folders, workspaces)
    # The site of a project, or an example, may be made with anything.
    main = [path for path in (*workspaces, *parts) if subtrees.NEVER.isdisjoint(path.lower().split("/"))]
    inner = [part for path in main for part in manifests(path)]
    named = (part.name for part in found if part.name not in UNTELLING and NAMED.fullmatch(part.name))
    name = next(named, "") or os.path.basename(project.root)
    described = next((part.description for part in found if part.description), "")
    reasons = subtrees.subtrees(project, folders, workspaces, parts)
    return Survey(
        name=plain(name, LONGEST),
        description=plain(description(project, described), LONGEST),
        languages=languages,
        frameworks=_frameworks([*found, *inner], [folders[""], *(folders[path] for path in main)]),
        managers=tuple(dict.fromkeys(manager for part in found for manager in part.managers)),
        commands=gather.commands(project, folders, manifests, workspaces, languages),
        workspaces=workspaces,
        subtrees=tuple(reasons),
        subtree_reasons=reasons,
        prerequisites=prerequisites(project, folders, parts, name),
        hands_off=made,
        settings=(*configured(Folder(project, folders)), *_of_all_files(project, folders, workspaces)),
        rules=obligations(project),
    )


@lru_cache(2)  # before the survey, and in it
def by_hand(project: ProjectFiles) -> tuple[ProjectFiles, tuple[tuple[str, float], ...]]:
    """What people write of a project, and its languages with their shares, as far as can be told before its
    parts are known."""
    written = project.without(folders_of(hands_off(project)))
    return written, shares(written)


def commands_in(project: ProjectFiles, folder: str) -> tuple[Command, ...]:
    """What one types in a folder of the project. What a workspace needs is installed at its root."""
    manifests, tasks, everything = _of_all_folders(project)
    found = gather.commands_in(project, tasks, everything, manifests, folder)
    return tuple(one for one in found if one.role != "install" or folder not in manifests.members)


@lru_cache(2)  # each subtree asks for the same project
def _of_all_folders(project: ProjectFiles) -> tuple[_Manifests, ProjectTasks, tuple[Candidate, ...]]:
    manifests = _Manifests(project, ())
    tasks = ProjectTasks(project, manifests.folders, manifests)
    said = candidates.said(Folder(project, manifests.folders), manifests.folders, tasks)
    return manifests, tasks, tuple(said)


def shares(project: ProjectFiles) -> tuple[tuple[str, float], ...]:
    """The languages that make at least a twentieth of the source, the largest first."""
    found = sources(project)
    sizes = Counter({language: sum(file.size for file in files) for language, files in _main(found).items()})
    whole = sizes.total() or 1
    numbers = {language: len(files) for language, files in _main(found).items()}
    return tuple(
        (name, size / whole)
        for name, size in sizes.most_common()
        if size >= LEAST * whole and size and (numbers[name] >= FEW or size >= MUCH * whole)
    )


def _of_all_files(project: ProjectFiles, folders: Index, workspaces: Sequence[str]) -> Iterator[Fact]:
    """What each file or each package has, and a new one needs."""
    if header := licence_header(project):
        yield Fact("Every source file begins with the licence header", header)
    logs = [path for path in workspaces if unreleased(Folder(project, folders, path))]
    if len(logs) > 1:
        yield Fact("Each package notes its changes in a change log of its own", f"{logs[0]}/CHANGELOG.md")


def _main(found: Mapping[str, Sequence[File]]) -> Mapping[str, Sequence[File]]:
    """Without tests, examples and documents, which may be in any language; with them if that is all."""
    main = {
        language: [file for file in files if BESIDE_THE_SOURCE.isdisjoint(file.path.split("/")[:-1])]
        for language, files in found.items()
    }
    return main if any(main.values()) else found


def members(found: Iterable[Manifest], folders: Index) -> tuple[str, ...]:
    """The folders that the globs of a monorepo stand for."""
    result = set()
    for part in found:
        globs = [one for glob in part.members[:1_000] for one in braces(glob)]
        wild = [glob for glob in globs if WILD.search(glob)]
        if len(wild) > MOST_WILD or any(len(glob) > LONGEST for glob in wild):
            continue  # nobody's; each would be held against every folder
        rules = Rules("\n".join(map(_rule, globs)).encode("utf-8", "replace"))
        for path, names in folders.items() if rules else ():
            if part.manifests and names.isdisjoint(part.manifests):
                continue
            name = path.rpartition("/")[2].encode("utf-8", "replace")
            if (
                path
                and path.isprintable()
                and rules.ignored(path.encode("utf-8", "replace"), name, folder=True)
            ):
                result.add(path)
    return tuple(sorted(result))


def _rule(glob: str) -> str:
    """A glob of members as the line of a .gitignore: the same wildcards, from the root."""
    taken_out = glob.startswith("!")
    path = re.sub(r"^(\./)+|^/+|/+$", "", glob.removeprefix("!").strip())
    if path in ("", ".") or not path.isprintable():
        return ""
    inside = [f"/{path}", f"/{path.removesuffix('/**')}"]  # of pnpm, `playground/**` is playground too
    return f"!/{path}\n!/{path}/**" if taken_out else "\n".join(dict.fromkeys(inside))


def _read(folder: Folder) -> list[Manifest]:
    return [part for reader in READERS if (part := reader.read(folder))]


def _by_share(found: list[Manifest], languages: Sequence[tuple[str, float]]) -> list[Manifest]:
    """The manifest of the main language speaks first: there may be a package.json for the docs alone."""
    share = dict(languages)
    share["JavaScript"] = max(share.get(name, 0) for name in ("JavaScript", "TypeScript", "Vue", "Svelte"))
    share["Java"] = max(share.get(name, 0) for name in ("Java", "Kotlin", "Scala"))
    return sorted(found, key=lambda part: -share.get(part.language, 0))


def _frameworks(found: Sequence[Manifest], names: Iterable[Iterable[str]]) -> tuple[str, ...]:
    theirs: set[str] = set().union(*(frameworks.of_files(files) for files in names))
    own: set[str] = set()
    for part in found:
        theirs |= part.configured | frameworks.of_packages(part.ecosystem, part.dependencies)
        own |= frameworks.of_packages(part.ecosystem, part.own)
        if part.ecosystem == "maven":  # a build of Gradle need not say its group
            own |= frameworks.called(part.name)
    return tuple(name for name in frameworks.NAMES if name in theirs - own)
