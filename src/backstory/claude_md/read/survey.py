"""What a project's files say about it: languages, frameworks, package managers, commands, parts.

Only manifests at the root tell commands; those of a monorepo's members tell frameworks. Nothing is run.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from backstory.claude_md.read import subtrees
from backstory.claude_md.read.files import ProjectFiles
from backstory.claude_md.read.history import plain
from backstory.claude_md.read.ignore import Rules
from backstory.claude_md.read.languages import sources
from backstory.claude_md.read.manifests import (
    frameworks,
    golang,
    gradle,
    javascript,
    maven,
    php,
    python,
    ruby,
    rust,
    tasks,
)
from backstory.claude_md.read.manifests.folder import Folder, Index, braces, index
from backstory.claude_md.read.manifests.manifest import Manifest
from backstory.claude_md.read.readme import first_paragraph
from backstory.model import Command, Survey

READERS = (
    tasks.read,
    python.read,
    javascript.read,
    rust.read,
    golang.read,
    maven.read,
    gradle.read,
    php.read,
    ruby.read,
)
LEAST = 0.05  # of the source's bytes, for a language to be one of the project's
COMMAND_ROLES = ("build", "test", "lint", "run")
LONGEST = 300
WILD = re.compile(r"[*?\[]")
MOST_WILD = 200


def survey(project: ProjectFiles) -> Survey:
    folders = index(project)
    found = _read(Folder(project, folders))
    workspaces = members(found, folders)
    inner = [part for path in workspaces for part in _read(Folder(project, folders, path))]
    languages = shares(project)
    main = _by_share(found, languages)
    name = next((part.name for part in main if part.name), "") or os.path.basename(project.root)
    described = next((part.description for part in main if part.description), "")
    return Survey(
        name=plain(name, LONGEST),
        description=plain(described or first_paragraph(project), LONGEST),
        languages=languages,
        frameworks=_frameworks([*found, *inner], [folders[""], *(folders[path] for path in workspaces)]),
        managers=tuple(dict.fromkeys(manager for part in main for manager in part.managers)),
        commands=_commands(found),
        workspaces=workspaces,
        subtrees=subtrees.subtrees(project, folders, workspaces),
    )


def shares(project: ProjectFiles) -> tuple[tuple[str, float], ...]:
    """The languages that make at least a twentieth of the source, the largest first."""
    found = sources(project)
    sizes = Counter({language: sum(file.size for file in files) for language, files in found.items()})
    whole = sizes.total() or 1
    return tuple((name, size / whole) for name, size in sizes.most_common() if size >= LEAST * whole and size)


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
    return f"!/{path}\n!/{path}/**" if taken_out else f"/{path}"


def _read(folder: Folder) -> list[Manifest]:
    return [part for reader in READERS if (part := reader(folder))]


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


def _commands(found: Iterable[Manifest]) -> tuple[Command, ...]:
    each = {(command.role, command.line): command for part in found for command in part.commands[:200]}
    return tuple(sorted(each.values(), key=lambda command: COMMAND_ROLES.index(command.role)))
