"""Which sections of which CLAUDE.md a changed path bears on, by its name alone. Pure.

    BUILD         manifests, Makefile, *.config.*, Dockerfile, CI       build-commands (module-description)
    ABOUT         README, and manifests with a description              project- or module-description
    ARCHITECTURE  source in a folder, all of lib/, what says what       architecture
                  a folder or a workspace is, and folders themselves
    CONVENTIONS   any source file                                       conventions, patterns

A path bears on the CLAUDE.md at the root, and on the nearest one above it; a folder on all of those in it,
and there on everything. None bears on git-insights: what git knows changes with every commit, and is brought
up to date when somebody asks for everything.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from backstory.claude_md.read.languages import BESIDE_THE_SOURCE, language_of

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

OF_A_FOLDER = {
    "root": ("project-description", "build-commands", "architecture", "conventions", "patterns"),
    "module": ("module-description", "architecture", "conventions"),
}


def affected(paths: Iterable[str], root: str, places: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    """Managed file, by its place (`CLAUDE.md`, `api/CLAUDE.md`) -> section -> the paths that bear on it,
    as seen from the root."""
    found: dict[str, dict[str, list[str]]] = {}
    for path in dict.fromkeys(_below(path, root) for path in paths):
        for place, inner in _bearing(path, places):
            for name in _sections(inner, "/" in place):
                found.setdefault(place, {}).setdefault(name, []).append(path or ".")
    return found


def bears_on(path: str, root: str, places: Sequence[str]) -> list[str]:
    """The managed files that a path bears on: at the root, the nearest one above, and all below it."""
    return [place for place, _ in _bearing(_below(path, root), places)]


def _below(path: str, root: str) -> str | None:
    """A path from the root, which is empty itself; None where it lies outside."""
    above = root.rstrip("/") + "/"
    return (path + "/").removeprefix(above).rstrip("/") if (path + "/").startswith(above) else None


def _bearing(path: str | None, places: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Managed files, and the path as seen from the folder of each; empty: all of that folder."""
    if path is None:
        return
    nearest = max((one for one in map(os.path.dirname, places) if _is_in(path, one)), key=len, default="")
    for place in places:
        folder = os.path.dirname(place)
        if folder in ("", nearest) or _is_in(folder, path):
            yield place, path[len(folder) :].lstrip("/") if _is_in(path, folder) else ""


def _is_in(path: str, folder: str) -> bool:
    return not folder or f"{path}/".startswith(f"{folder}/")


def _sections(path: str, is_module: bool) -> Iterator[str]:
    if not path:
        yield from OF_A_FOLDER["module" if is_module else "root"]
        return
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
    tells = name in WORKSPACES or (folder and (is_readme or says))
    if _is_architecture(folder, is_code, is_module) or maybe_a_folder or tells:
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
