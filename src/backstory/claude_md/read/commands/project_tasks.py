"""What the commands of a project are for, also those that are tasks, and whether they can work there."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from backstory.claude_md.read.commands.lines import Script, Unit, units
from backstory.claude_md.read.commands.roles import (
    CHECKS,
    NAME_PARTS,
    NONE,
    WATCH,
    WIPE,
    is_around_tests,
    is_aside,
    is_clear,
    is_file,
    is_for_all,
    role_of,
    role_of_name,
    unwrapped,
    without_watching,
)
from backstory.claude_md.read.files import ProjectFiles
from backstory.claude_md.read.languages import is_test
from backstory.claude_md.read.manifests.folder import Folder, Index
from backstory.claude_md.read.manifests.manifest import NAME, Manifest, Task
from backstory.claude_md.read.manifests.python_requires import normal, uv_groups
from backstory.claude_md.read.manifests.tasks import COMPOSE, MAKEFILES, builds_a_service

DEEPEST_TASK = 6
NO_CHECKS = {WATCH, WIPE, "run", "install", "format", "generate", "migrate"}  # they change something, or stay
SCRIPTS = ("script", "scripts", "Scripts", "dev", "hack", "tools")
RUST_TEST = re.compile(r"#\[(?:\w+::)?test\b|#\[rstest|```")  # also what the documentation shows
MOST_LOOKED_AT = 300
NPM = frozenset("npm pnpm yarn bun".split())
ALIASES = {"gmake": "make", "go-task": "task"}
DJANGO_SETTINGS = "DJANGO_SETTINGS_MODULE"

# One of these lies in the folder where the program works.
NEEDS = {
    program: tuple(files.split())
    for programs, files in {
        "cargo rustfmt": "Cargo.toml",
        "go": "go.mod go.work",
        "npm pnpm yarn bun npx turbo nx lerna": "package.json",
        "uv": "pyproject.toml requirements.txt requirements-dev.txt",
        "poetry pdm hatch": "pyproject.toml",
        "pipenv": "Pipfile",
        "mix": "mix.exs",
        "swift": "Package.swift",
        "flutter dart": "pubspec.yaml",
        "bundle rails rake": "Gemfile Rakefile",
        "composer": "composer.json",
        "gradlew": "gradlew",
        "mvn": "pom.xml",
        "mvnw": "mvnw",
        "cmake": "CMakeLists.txt",
        "meson": "meson.build",
        "make gmake": " ".join((*MAKEFILES, "Makefile.am", "configure.ac", "CMakeLists.txt")),
        "zig": "build.zig",
        "stack": "stack.yaml",
        "docker docker-compose": " ".join(COMPOSE),
        "deno": "deno.json deno.jsonc package.json",
        "manage.py": "manage.py",
        "pre-commit prek": ".pre-commit-config.yaml",
        "conda mamba micromamba": "environment.yml environment.yaml",
    }.items()
    for program in programs.split()
}
LOOKS_ABOVE = frozenset("cargo go uv poetry pdm pipenv npx hatch".split())
NOT_OURS = frozenset(  # folders whose manifests are no part of the project
    "example examples sample samples template templates doc docs test tests __tests__ e2e fixture fixtures"
    " testdata bench benches benchmark benchmarks vendor third_party third-party website site fuzz demo demos"
    " node_modules .github .devcontainer .vscode .conan contrib integration integration_test"
    " integration_tests documentation playground playgrounds".split()
)
# The role of a task with an unclear name that runs several commands.
JUDGED = ("test", "lint", "build", "format", "generate", "migrate", "run", "install")

# Targets that bring what the project needs, where their recipe does: `install-tools`.
FOR_NEEDS = frozenset("deps dependencies tools tooling requirements".split())
BRINGS = re.compile(
    r"\b(?:go (?:install|mod download)|(?:pip3?|npm|cargo|brew|gem|apt|apt-get) install|curl|wget)\b"
)
BUILT = frozenset(  # folders for what a build makes
    ("", "bin", "build", "build/bin", "build/src", "dist", "out", "target/debug", "target/release")
)
COMPOSE_UP = ("docker compose up", "docker-compose up")
OF_TOOLS = re.compile(r"(?:\./)?(?:scripts?|hack|tools?|build|ci|internal)/|\S+@")  # not the program itself
Manifests = Callable[[str], Sequence[Manifest]]
Key = tuple[str, str]  # a folder, and what a command in it comes down to


class ProjectTasks:
    def __init__(self, project: ProjectFiles, folders: Index, manifests: Manifests) -> None:
        self._project = project
        self._folders = folders
        self._manifests = manifests
        self._root = Folder(project, folders)
        self._tasks: dict[str, dict[tuple[str, str], Task]] = {}
        self._roles: dict[tuple[str, str, str], str | None] = {}
        self._keys: dict[tuple[str, str, str], frozenset[Key]] = {}
        self._groups: dict[str, tuple[dict[str, set[str]], set[str]]] = {}

    def tasks(self, folder: str) -> dict[tuple[str, str], Task]:
        if folder not in self._tasks:
            parts = self._manifests(folder)
            self._tasks[folder] = {(task.program, task.name): task for part in parts for task in part.tasks}
        return self._tasks[folder]

    def role(self, words: Sequence[str], folder: str, depth: int = 0) -> tuple[str, str] | None:
        """(role, key) of a command in a folder. None also where the folder has not what it takes."""
        inner = unwrapped(words)
        folder = self.works_in(words, folder)
        words = inner if [*words[:2]] == ["mix", "bun"] else words
        is_filtered = any(
            word.startswith(("--filter", "-F", "--workspace")) or word == "-w" for word in inner
        )

        def task_role(program: str, name: str) -> str | None:
            if program == "script":
                return self._script_role(posixpath.normpath(posixpath.join(folder, name)), depth)
            family = "npm" if program in NPM else ALIASES.get(program, program)
            if is_filtered and family == "npm":
                return role_of_name(name)
            if program in ("inv", "invoke", "mage"):
                return role_of_name(name)
            if family == "make" and self._is_configured_first(folder):
                return {"check": "test", "test": "test", "all": "build"}.get(name)
            return self.task_role(folder, family, name, depth + 1)

        found = role_of(words, task_role)
        if found == ("build", "make") and self._is_help_first(folder):
            return None
        if found is None or found[0] == NONE or not self._works(words, inner, found, folder):
            return None
        return found

    def _is_help_first(self, folder: str) -> bool:
        """Does `make` alone only tell what there is?"""
        return next((name for program, name in self.tasks(folder) if program == "make"), "") == "help"

    def _works(self, words: Sequence[str], inner: Sequence[str], found: tuple[str, str], folder: str) -> bool:
        """Whether what it needs is there. Wrong is worse than missing."""
        here = Folder(self._project, self._folders, folder)
        if not all(self._has(program, folder) for program in _programs(words, found[1])):
            return False
        for option, value in pairwise([*words, ""]):
            if option in ("-r", "--requirement", "-f", "--file") and not here.has(posixpath.normpath(value)):
                return False
        # `..` was typed in a folder that is not there yet.
        is_outside = not folder and any(word == ".." or word.startswith("../") for word in words)
        is_told = any(word.startswith(("--test-dir", "--preset")) for word in words)
        if is_outside or (found[1] == "ctest" and not is_told):
            return False
        is_source_built = found[1] == "cmake" and "." in words and "--build" in words
        if is_source_built or (found[1] in COMPOSE_UP and not _starts_own(words, here)):
            return False
        is_tool = found[1] == "go run" and any(OF_TOOLS.match(word) for word in words)
        # It would leave out the migration that a change needs.
        is_past_migrations = found[1] == "prisma db push" and bool(here.folders("prisma/migrations"))
        is_of_make = found[0] == "test" and found[1].startswith("make ")
        is_made_by_cmake = is_of_make and here.has("CMakeLists.txt") and here.first(*MAKEFILES) is None
        if is_tool or is_past_migrations or is_made_by_cmake:
            return False
        program = inner[0].removeprefix("./") if inner else ""
        is_own = "/" in program and not program.startswith(("vendor/", "node_modules/", "target/", "/", "~"))
        return not is_own or program.startswith(".") or here.has(program)

    def is_late(self) -> bool:
        return self._project.deadline.is_over()

    def names(self) -> frozenset[str]:
        """What the project is called."""
        return frozenset(manifest.name.lower() for manifest in self._manifests("") if manifest.name)

    def is_built(self, program: str) -> bool:
        """Whether a path is where a build puts the program of the project: ./bin/zoo"""
        folder, _, name = program.removeprefix("./").rpartition("/")
        if self._root.has(program.removeprefix("./")) or (not folder and not program.startswith("./")):
            return False
        names = self.names().union(path.lower() for path in self._root.folders("cmd"))
        return folder in BUILT and bool(NAME.fullmatch(name)) and name.lower() in names

    def is_program(self, path: str) -> bool:
        """Whether a path is a program at the top of the project, whose name says nothing else: ./slam.py"""
        name = path.removeprefix("./")
        stem, _, ending = name.partition(".")
        is_code = ending in ("py", "sh", "rb", "pl", "js", "mjs", "ts") and "/" not in name
        is_plain = role_of_name(stem) is None and not is_aside(stem) and _is_harmless(stem)
        return is_code and is_plain and self._root.has(name)

    def scripts(self, role: str) -> list[str]:
        """The scripts for developers whose name says nothing but this role: Scripts/format.sh"""
        found = [path for place in SCRIPTS for path in self._root.inside(place)]
        return [
            path
            for path in found
            if path.endswith((".sh", ".bash")) or "." not in posixpath.basename(path)
            if is_clear(posixpath.basename(path).partition(".")[0]) and NAME.fullmatch(path)
            if self._script_role(path, 0) == role
        ]

    def has_tests(self, runner: str, folder: str) -> bool:
        """Whether a runner that only a manifest speaks for finds any among the source that is there."""
        ending = {"pytest": ".py", "cargo test": ".rs", "cargo nextest": ".rs"}.get(runner)
        start = f"{folder}/" if folder else ""
        paths = [file.path for file in self._project.files if ending and file.path.endswith(ending)]
        paths = [path for path in paths if path.startswith(start)]
        names = (path.rpartition("/")[2] for path in paths)
        if not paths or any(map(is_test, paths)) or any(name.startswith("test") for name in names):
            return True
        return ending == ".rs" and any(
            RUST_TEST.search(self._project.text(path, 200_000) or "") for path in paths[:MOST_LOOKED_AT]
        )

    def works_in(self, words: Sequence[str], folder: str) -> str:
        """The folder that a command is for, from that in which one types it."""
        if [*words[:2]] == ["mix", "bun"] and len(words) > 3:
            return posixpath.join(folder, words[2])
        return _moved(unwrapped(words), folder)

    def once(self, line: str, key: str, folder: str) -> str:
        """A test command that ends by itself: a runner that watches on a terminal is told not to."""
        program, _, name = key.partition(" ")
        words = line.split()
        task = self.tasks(folder).get(("npm", name)) if program in NPM else None
        if task is None:
            ending = without_watching(words[words.index(program) :]) if program in words else ""
            is_first = ending == "run"  # a word that says what to do
            return line.replace(program, f"{program} run", 1) if is_first else f"{line} {ending}".strip()
        steps = units(Script(task.recipe, task.source, folder), self._folders.__contains__)
        given = words[words.index(name) + 1 :] if name in words else []
        ending = without_watching([*steps[-1].words, *given]) if steps else ""
        if not ending:
            return line
        return f"{line} -- {ending}" if words[0] == "npm" and "--" not in words else f"{line} {ending}"

    def with_group(self, line: str, folder: str) -> str:
        """With `uv run`, where a program comes from what uv installs, and with the group of dependencies that
        has it, where it is there only by name."""
        words = line.split()
        is_run = words[:2] == ["uv", "run"]
        if not words or "|" in words or any("-group" in word for word in words):
            return line
        if not (is_run or "uv.lock" in self._folders.get(folder, frozenset())):
            return line
        program = normal((unwrapped(words) or [""])[0])
        if folder not in self._groups:
            manifest = Folder(self._project, self._folders, folder).toml("pyproject.toml")
            self._groups[folder] = uv_groups(manifest)
        groups, always = self._groups[folder]
        if not is_run:
            is_installed = normal(words[0]) in always.union(*groups.values())
            return self.with_group(f"uv run {line}", folder) if is_installed else line
        having = [name for name, inside in groups.items() if program in inside and NAME.fullmatch(name)]
        return f"uv run --group {having[0]} {line[7:]}" if having and program not in always else line

    def _has(self, program: str, folder: str) -> bool:
        """Whether the file is there that a program works by."""
        needed = NEEDS.get(program)
        if program == "manage.py" and not self._is_set_up(folder):
            return False
        while needed and self._folders.get(folder, frozenset()).isdisjoint(needed):
            if not folder or program not in LOOKS_ABOVE:
                return False
            folder = folder.rpartition("/")[0]
        return True

    def _is_set_up(self, folder: str) -> bool:
        """Whether a manage.py says which settings it works with; without them it refuses."""
        return DJANGO_SETTINGS in Folder(self._project, self._folders, folder).text("manage.py")

    def place(self, unit: Unit) -> Unit:
        """A command of the documentation whose file lies in one folder only is meant for that."""
        for program in _programs(unit.words, (unwrapped(unit.words) or [""])[0]):
            if not self._has(program, unit.folder):
                places = [
                    path
                    for path, names in self._folders.items()
                    if path
                    and path.count("/") < 2
                    and not names.isdisjoint(NEEDS[program])
                    and not is_beside(path)
                ]
                return replace(unit, folder=places[0]) if len(places) == 1 and not unit.folder else unit
        return unit

    def _is_configured_first(self, folder: str) -> bool:
        names = self._folders.get(folder, frozenset())
        return names.isdisjoint(MAKEFILES) and not names.isdisjoint(("configure.ac", "Makefile.am"))

    def task_role(self, folder: str, program: str, name: str, depth: int = 0) -> str | None:
        place = (folder, program, name)
        if place not in self._roles:
            self._roles[place] = None  # where it leads back to itself
            self._roles[place], self._keys[place] = self._role_of_task(place, depth)
        return self._roles[place]

    def _role_of_task(self, place: tuple[str, str, str], depth: int) -> tuple[str | None, frozenset[Key]]:
        folder, program, name = place
        task = self.tasks(folder).get((program, name))
        if task is None or depth > DEEPEST_TASK or self.is_late():
            is_python = program == "tox" and re.fullmatch(r"py\d*", name)
            return ("test" if is_python else None), frozenset()
        roles = []
        keys: set[tuple[str, str]] = set()
        for unit in units(Script(task.recipe, task.source, folder), self._folders.__contains__):
            if found := self.role(unit.words, unit.folder, depth):
                roles.append(found[0])
                keys.add((unit.folder, found[1]))
                below = found[1].split(" ", 1)
                family = "npm" if below[0] in NPM else below[0]
                keys |= self._keys.get((unit.folder, family, below[-1]), frozenset())
        if is_for_needs(name) and (BRINGS.search(task.recipe) or _makes_files(task.recipe)):
            return "install", frozenset(keys or {(folder, "install")})
        role = _judged(name, roles, program)
        if role == "run" and keys and {key for _, key in keys} <= {"vitest", "jest"}:
            role = None  # `dev` may only watch the tests
        return role, frozenset(keys)

    def _script_role(self, path: str, depth: int) -> str | None:
        """A script of the project, by what it runs, else by its name."""
        if not self._root.has(path) or depth > DEEPEST_TASK or self.is_late():
            return None
        place = ("", "script", path)
        if place not in self._roles:
            self._roles[place] = None
            named = role_of_name(posixpath.basename(path).partition(".")[0])
            roles = []
            if path.endswith((".sh", ".bash")) or "." not in posixpath.basename(path):
                script = Script(self._root.text(path, 50_000), path)
                found = (
                    self.role(unit.words, unit.folder, depth + 1)
                    for unit in units(script, self._folders.__contains__)
                )
                roles = [role for role, _ in filter(None, found)]
            self._roles[place] = (
                _judged(posixpath.basename(path).partition(".")[0], roles, "")
                if named and not is_aside(posixpath.basename(path))
                else None
            )
        return self._roles[place]

    def expanded(self, folder: str, key: str) -> frozenset[Key]:
        """What a task runs in the end."""
        program, _, name = key.partition(" ")
        return self._keys.get((folder, "npm" if program in NPM else program, name), frozenset())

    def is_task(self, folder: str, program: str, name: str) -> bool:
        return ("npm" if program in NPM else program, name) in self.tasks(folder)

    def is_own(self, unit: Unit) -> bool:
        """Whether it runs one task of the project's and nothing else, by whatever name that neither gives
        something away nor takes something out."""
        words = unwrapped(unit.words)
        if not words or not PLAIN_LINE.fullmatch(unit.line):
            return False
        program, plain = words[0], [word for word in words[1:] if not word.startswith("-")]
        if program in NPM and plain[:1] == ["run"]:
            plain = plain[1:]
            if {"-r", "--recursive", "--workspaces"} & {*words}:
                return len(plain) == 1 and _is_harmless(plain[0])  # in each member that has it
        program = ALIASES.get(program, program)
        if len(plain) != 1 or not _is_harmless(plain[0]):
            return False
        there = unit.folder
        if self.works_in(words, there) != there or not self.is_task(there, program, plain[0]):
            return False
        return self._is_safe(there, "npm" if program in NPM else program, plain[0])

    def _is_safe(self, folder: str, program: str, name: str) -> bool:
        """Whether no recipe that a task runs destroys something, or changes what lies elsewhere."""
        tasks, runs = self.tasks(folder), [name]
        for task in runs:  # which grows
            recipe = tasks[program, task].recipe
            if DESTROYS.search(recipe):
                return False
            runs += {word for word in recipe.split() if (program, word) in tasks} - {*runs}
        return True

    def is_ready(self, steps: Sequence[str], folder: str) -> bool:
        """Whether a build works after these steps; without any, whether a Makefile is there."""
        names = self._folders.get(folder, frozenset())
        if not steps:
            return not names.isdisjoint(MAKEFILES)
        return steps[0].split()[0] != "./configure" or "configure" in names


def _starts_own(words: Sequence[str], here: Folder) -> bool:
    files = [value for option, value in pairwise(words) if option in ("-f", "--file")]
    files = [posixpath.normpath(file) for file in files] or [here.first(*COMPOSE) or ""]
    return any(builds_a_service(here, file) for file in files)


def _makes_files(recipe: str) -> bool:
    """Whether all that a task does is to have files made, as `deps: bin/linter` does."""
    lines = [line for line in recipe.splitlines() if line]
    return bool(lines) and all(line.startswith("make ") and is_file(line[5:]) for line in lines)


def is_for_needs(name: str) -> bool:
    """Whether the name of a task is for what has to be there first: `deps`, `install-tools`."""
    parts = {part.lower() for part in NAME_PARTS.findall(name)}
    return bool(parts & FOR_NEEDS) and parts <= FOR_NEEDS | {"install", "get", "dev", "download", "setup"}


RELEASES = frozenset(("release", "publish", "deploy"))
# What is in the name of no step before tests that somebody else should take.
NOT_BEFORE = frozenset(
    "push upload clean purge destroy delete remove tag bump uninstall merge prod production kill reset drop"
    " wipe rollback down revert recreate teardown nuke truncate flush erase refresh fresh seed apply"
    " provision infra stage".split()
)
DESTROYS = re.compile(
    r"\b(?:drop(?:db|user)?|truncate|destroy|delete|kubectl|terraform|helm|ansible\S*|ssh|scp|rsync|sudo|mkfs|dd"
    r"|git (?:push|reset|clean|checkout))\b|\brm +-\w*r\w* +(?:[~/$*]|\.(?:\s|$))|\bcurl\b[^\n|]{0,300}\|",
    re.IGNORECASE,
)
PLAIN_LINE = re.compile(r"[\w./:@+-]+(?: [\w./:@+-]+){0,5}", re.ASCII)


def _judged(name: str, roles: Sequence[str], program: str) -> str | None:
    """The role of a task, from its name and those of the commands that it runs."""
    is_release = not RELEASES.isdisjoint(NAME_PARTS.findall(name.lower()))
    if is_release or WIPE in roles:  # whatever else it runs
        return None if is_release else WIPE
    is_several = "check" in roles or {"test", "lint"} <= {*roles}  # a build is a step before tests
    if is_several and is_for_all(name) and not {*roles} & NO_CHECKS:
        return "check"
    role = _of_kinds(name, [role for role in roles if role != WATCH], program)
    if program == "npm" and name in ("lint", "test") and role == "build" and WATCH not in roles:
        return name  # tsc builds as well, and this is what people type for it
    if is_around_tests(name) and role in ("test", "run"):
        return None
    compares = not CHECKS.isdisjoint(NAME_PARTS.findall(name.lower()))
    if compares and role in ("build", "generate") and role_of_name(name) != "build":
        return None  # it makes something only to see whether that is there already
    return WATCH if WATCH in roles and role in (None, "test", "lint", "build") else role


def _of_kinds(name: str, roles: Sequence[str], program: str) -> str | None:
    named = role_of_name(name)
    if program in ("tox", "nox") and named not in ("lint", "format"):
        named = None if roles else "test"  # py38-dev is no way to run the program
    kinds = {role for role in roles if role != "configure"}
    if not kinds:
        return "test" if name == "check" and program == "make" else named
    if named in kinds:
        return named
    if named == "install":
        return None  # it puts the program into the system
    if named == "lint" and "test" not in kinds:  # tsc builds as well, unless it only checks
        return "format" if kinds == {"format"} else named
    if named in ("build", "run", "install", "generate", "migrate", "test") and not kinds <= {
        "lint",
        "format",
    }:
        return named
    return next(role for role in JUDGED if role in kinds)


def _is_harmless(name: str) -> bool:
    """Whether a task may be one that makes something for those after it."""
    parts = {part.lower() for part in NAME_PARTS.findall(name)}
    return parts.isdisjoint(RELEASES | NOT_BEFORE | CHECKS)


def _programs(words: Sequence[str], key: str) -> list[str]:
    return [name.removeprefix("./") for name in dict.fromkeys((words[0], *key.split()[:1]))]


def is_beside(path: str) -> bool:
    """Whether a folder is no part of the project proper: examples, templates, documentation, tests."""
    return not NOT_OURS.isdisjoint(path.lower().split("/"))


def _moved(words: Sequence[str], folder: str) -> str:
    """Where `make -C src` and `yarn --cwd ui` work."""
    for word, following in pairwise([*words, ""]):
        option, is_one_word, value = word.partition("=")
        if option in ("-C", "--prefix", "--cwd", "--dir", "--directory"):
            path = posixpath.normpath(posixpath.join(folder, value if is_one_word else following))
            return "" if path == "." else path
    return folder
