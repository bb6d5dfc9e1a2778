"""Which sections of which CLAUDE.md a changed path bears on, by its name alone. Pure.

    BUILD         manifests, Makefile, *.config.*, Dockerfile, CI       build-commands (module-description)
    ABOUT         README, and manifests with a description              project- or module-description
    ARCHITECTURE  source in a folder, all of lib/, and what says        architecture
                  what a folder or a workspace is
    CONVENTIONS   any source file                                       conventions, patterns

A path bears on the CLAUDE.md at the root, and on the nearest one above it. None bears on git-insights: what
git knows changes with every commit, and is brought up to date when somebody asks for everything.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from recollect.claude_md.source import language_of

MANIFESTS = frozenset(
    "package.json pyproject.toml setup.py setup.cfg Pipfile Cargo.toml go.mod pom.xml build.gradle"
    " build.gradle.kts composer.json Gemfile".split()
)
BUILD = MANIFESTS | frozenset(
    "Makefile makefile GNUmakefile justfile Justfile .justfile Rakefile CMakeLists.txt meson.build"
    " tox.ini tox.toml noxfile.py pytest.ini mypy.ini .mypy.ini ruff.toml .ruff.toml .flake8"
    " .pre-commit-config.yaml .rubocop.yml clippy.toml .clippy.toml rustfmt.toml .rustfmt.toml"
    " .golangci.yml .golangci.yaml .gitlab-ci.yml .travis.yml Jenkinsfile mvnw gradlew"
    " package-lock.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb uv.lock poetry.lock pdm.lock Pipfile.lock"
    " compose.yml compose.yaml docker-compose.yml docker-compose.yaml"
    " pnpm-workspace.yaml lerna.json go.work settings.gradle settings.gradle.kts".split()
)
BUILD_LIKE = (
    "*.config.*",
    "Dockerfile*",
    "*.Dockerfile",
    "requirements*.txt",
    "tsconfig*.json",
    ".eslintrc*",
)
CI = re.compile(r"(?:^|/)\.github/workflows/[^/]+\.ya?ml$")
WORKSPACES = frozenset("pnpm-workspace.yaml lerna.json go.work settings.gradle settings.gradle.kts".split())
SAYS_WHAT_A_FOLDER_IS = frozenset("__init__.py doc.go lib.rs mod.rs package-info.java".split())
BESIDE_THE_SOURCE = frozenset(
    "test tests __tests__ spec specs testdata fixtures doc docs example examples benchmark benchmarks".split()
)


def sections_for(paths: Iterable[str], root: str) -> dict[str, list[str]]:
    """Section of the root's file -> the paths, as seen from the root, that bear on it."""
    return affected(paths, root, ["CLAUDE.md"]).get("CLAUDE.md", {})


def affected(paths: Iterable[str], root: str, places: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    """The same for each managed file, which is named by its place: `CLAUDE.md`, `api/CLAUDE.md`."""
    found: dict[str, dict[str, list[str]]] = {}
    for path in dict.fromkeys(_below(paths, root)):
        for place in _places(path, places):
            folder = os.path.dirname(place)
            for name in _sections(path.removeprefix(folder + "/") if folder else path, bool(folder)):
                found.setdefault(place, {}).setdefault(name, []).append(path)
    return found


def _below(paths: Iterable[str], root: str) -> Iterator[str]:
    above = root.rstrip("/") + "/"
    for path in paths:
        if path.startswith(above) and path != above:
            yield path.removeprefix(above)


def _places(path: str, places: Sequence[str]) -> Iterator[str]:
    """The managed files at the root, and those in the nearest folder above that has one."""
    nearest = ""
    for place in places:
        folder = os.path.dirname(place)
        if path.startswith(folder + "/") and len(folder) > len(nearest):
            nearest = folder
    yield from (place for place in places if os.path.dirname(place) in ("", nearest))


def _sections(path: str, is_module: bool) -> Iterator[str]:
    folder, name = os.path.split(path)
    is_readme, is_build = name.lower().startswith("readme"), _is_build(path, name)
    # Of a folder that was removed or moved as a whole, its own path is all there is.
    maybe_a_folder = "." not in name and not is_build and not is_readme and not name.isupper()
    is_code = language_of(path) is not None or maybe_a_folder
    says = name in SAYS_WHAT_A_FOLDER_IS
    if not folder and (is_readme or name in MANIFESTS or (is_module and (says or is_build))):
        yield "module-description" if is_module else "project-description"
    if is_build and not is_module:
        yield "build-commands"
    if _is_architecture(folder, is_code, is_module) or name in WORKSPACES or (folder and (is_readme or says)):
        yield "architecture"
    if is_code:
        yield "conventions"
        if not is_module:
            yield "patterns"


def _is_build(path: str, name: str) -> bool:
    if name in BUILD or CI.search(path):
        return True
    return any(fnmatchcase(name, pattern) for pattern in BUILD_LIKE)


def _is_architecture(folder: str, is_code: bool, is_module: bool) -> bool:
    parts = folder.split("/") if folder else []
    if "lib" in parts:
        return True
    return is_code and (is_module or bool(parts)) and not BESIDE_THE_SOURCE.intersection(parts)
