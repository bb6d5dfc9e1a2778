"""The commands of a project: of all that its files say, at most a few for each role."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from backstory.claude_md.read import git, subtrees
from backstory.claude_md.read.commands import candidates
from backstory.claude_md.read.commands.candidates import FROM_FILES, Candidate
from backstory.claude_md.read.commands.lines import typed_in
from backstory.claude_md.read.commands.one_test import one_test
from backstory.claude_md.read.commands.project_tasks import Manifests, ProjectTasks, is_beside
from backstory.claude_md.read.commands.roles import COMMAND_ROLES, is_clear
from backstory.claude_md.read.files import ProjectFiles
from backstory.claude_md.read.languages import sources
from backstory.claude_md.read.manifests.folder import Folder, Index
from backstory.claude_md.read.manifests.manifest import NAME, Manifest
from backstory.model import Command

MOST, MOST_RUN = 3, 2  # of a role
FAR = 2.5  # a cost that makes a command too special beside another one
MOST_FOLDERS = 4
MOST_MEMBERS = 50  # of a workspace, for one that has a test
MAIN_SHARE = 0.2  # of the source, for a language whose commands come before others
LEAST_PART = 0.02  # of the source
WRAPPED = re.compile(r"mix bun [\w-]+ ")
ROOT_RUNNERS = frozenset("make just task mise".split())
LANGUAGES = {
    program: frozenset(languages.split())
    for programs, languages in {
        "cargo rustfmt": "Rust",
        "go golangci-lint gofmt": "Go",
        "npm pnpm yarn bun turbo nx eslint prettier vitest jest": "JavaScript TypeScript Vue Svelte",
        "pytest tox nox uv poetry pip mypy ruff black": "Python",
        "mix": "Elixir",
        "swift": "Swift",
        "cmake ctest meson ninja": "C C++",
        "bundle rails rspec": "Ruby",
        "dotnet": "C#",
        "composer phpunit": "PHP",
        "gradle gradlew mvn mvnw": "Java Kotlin Scala",
    }.items()
    for program in programs.split()
}
SETUP_TASKS = ("setup", "bootstrap", "dev-setup", "setup-dev")
SETUP_SCRIPTS = ("bin/setup", "script/setup", "script/bootstrap")
LITERAL = {"lint": ("npm lint",), "format": ("npm format", "npm fmt"), "test": ("npm test",)}
TOKENS = {  # what names say
    token: frozenset(languages.split())
    for tokens, languages in {
        "php": "PHP",
        "java jvm": "Java Kotlin Scala",
        "kotlin android": "Kotlin Java",
        "dotnet csharp": "C#",
        "python py": "Python",
        "js javascript node nodejs typescript ts npm": "JavaScript TypeScript Vue Svelte",
        "wasm": "JavaScript TypeScript",
        "ruby": "Ruby",
        "elixir": "Elixir",
        "swift ios": "Swift Objective-C",
        "rust cargo": "Rust",
        "go golang": "Go",
        "cpp": "C++ C",
    }.items()
    for token in tokens.split()
}
FAMILIES = {
    "JavaScript": {"JavaScript", "TypeScript", "Vue", "Svelte"},
    "Java": {"Java", "Kotlin", "Scala"},
    "C": {"C", "C++"},
    "C++": {"C", "C++"},
}
MANIFESTS = subtrees.MANIFESTS - {"CMakeLists.txt"}  # which every folder of a CMake project has


def commands(
    project: ProjectFiles,
    folders: Index,
    manifests: Manifests,
    members: Sequence[str],
    languages: Sequence[tuple[str, float]],
) -> tuple[Command, ...]:
    tasks = ProjectTasks(project, folders, manifests)
    parts = _parts(project, folders, manifests, members)
    said: dict[str, list[Candidate]] = {}
    for candidate in candidates.said(Folder(project, folders), folders, tasks):
        folder = candidate.for_folder if candidate.for_folder in parts else candidate.command.folder
        part = _part_of(folder, parts, members)
        is_apart = part == "" and folder and not folders[folder].isdisjoint(MANIFESTS)  # a project of its own
        if part is not None and not is_apart:
            said.setdefault(part, []).append(candidate)
    main = frozenset(name for name, share in languages if share >= MAIN_SHARE)
    minor = frozenset(sources(project)) - main
    found: list[Command] = []
    for part in ("", *parts):
        those = (frozenset[str](), frozenset[str]()) if part else (main, minor)
        chosen = _chosen(tasks, part, said.get(part, []), manifests(part), *those)
        if part and all(one.command.role == "install" for one in chosen):
            continue  # where nothing is done, nothing need be installed
        found += _typed(project, tasks, part, chosen, manifests(part), () if part else members, those[0])
    read = git.variables_read(project.root, {name for one in found for name in one.variables})
    project.deadline.is_missed |= read is None
    read = read or set()
    return tuple(
        replace(one, variables=tuple(name for name in one.variables if name in read)) for one in found
    )


def commands_in(
    project: ProjectFiles,
    tasks: ProjectTasks,
    everything: Sequence[Candidate],
    manifests: Manifests,
    folder: str,
) -> list[Command]:
    """Those of one folder, as one types them there, of everything that is said in the project."""
    if any(one.for_folder == folder and WRAPPED.match(one.command.line) for one in everything):
        return []  # they are typed at the root
    said = [one for one in everything if _part_of(one.command.folder, [folder], ()) == folder]
    chosen = _chosen(tasks, folder, said, manifests(folder), frozenset())
    start = typed_in(folder, "")
    found = _typed(project, tasks, folder, chosen, manifests(folder))
    return [
        replace(one, line=one.line.removeprefix(start), after=one.after.removeprefix(start), folder="")
        for one in found
    ]


def _chosen(
    tasks: ProjectTasks,
    part: str,
    said: Sequence[Candidate],
    manifests: Sequence[Manifest],
    main: frozenset[str],
    minor: frozenset[str] = frozenset(),
) -> list[Candidate]:
    """At most a few for each role, the likeliest first."""
    inside = frozenset().union(
        *(
            tasks.expanded(one.command.folder, one.key)
            for one in said
            if one.is_task and one.command.role != "check"
        )
    )
    # A task stands for the raw commands inside it, but `make all` not for `make test`.
    said = [one for one in said if one.is_task or (one.command.folder, one.key) not in inside]
    said = [one for one in said if not _is_of_other_language(one, main, minor)]
    ours = [one for one in said if not one.is_single and not _is_foreign(one.key, main)]
    of_tasks = sorted(candidates.of_tasks(part, tasks), key=lambda one: one.cost)
    of_tasks = [one for one in of_tasks if not _is_of_other_language(one, main, minor)]
    others = [one for one in manifests if main.isdisjoint(FAMILIES.get(one.language, {one.language}))]
    main_first = [*(one for one in manifests if one not in others), *others]
    found: list[Candidate] = []
    for role in COMMAND_ROLES:
        named = _best(role, ours)
        unnamed = [one for one in of_tasks if one.command.role == role]
        unnamed = [one for one in unnamed if one.key not in {other.key for other in named}]
        plain = [one for one in unnamed if one.cost < FROM_FILES + 3]
        # What is installed for another language is for its documents, or its linters.
        only_main = bool(main) and role == "install" and len(others) < len(manifests)
        asked = [one for one in main_first if not (only_main and one.language and one in others)]
        of_manifests = candidates.of_manifests(tasks, role, asked, part)
        if role == "generate" and unnamed:  # each makes something else
            those = unnamed
        elif named:
            those = named + ([] if any(one.is_task for one in named) else _of_runner(plain))
        elif role == "format" and not plain and (checked := candidates.rewriting(ours)):
            those = checked
        else:
            those = (plain or unnamed)[: 1 if role == "run" else 2]
            known = {key for one in those for _, key in tasks.expanded(part, one.key)}
            is_ours = bool(those) and not (known and all(_is_foreign(key, main) for key in known))
            if not is_ours or role in ("lint", "format"):
                those += [one for one in of_manifests if one.key not in known]
        those = _literal(role, of_tasks, those) + those
        if role == "install" and (setup := _setup(part, tasks, [*named, *unnamed])):
            those = setup + [one for one in those if one.is_task and one.key != setup[0].key]
        if role == "test" and those and those[0].key.startswith(("tox", "nox")):
            quick = [one for one in of_manifests if one.key == "pytest"]
            name = those[0].key[4:]
            if quick and name and not is_clear(name) and not name.startswith("py"):
                those = those[1:]  # one way of several to run the tests
            is_first = not those or " " in those[0].key
            at = 0 if is_first else 1
            those[at:at] = quick[:1] if all(one.key != "pytest" for one in those) else []
        those = _switched_on(those, of_manifests) if role == "test" else those
        if role == "build" and main and those and all(_is_of_part(one, tasks) for one in those):
            those = [
                replace(one, command=replace(one.command, after=those[0].command.line))
                for one in of_manifests
            ][:1] or those
        if not those and role != "install":  # which would be of tools that the project is checked with
            those = _best(role, [one for one in said if not one.is_single])
            those = those or candidates.of_all_tests(_best(role, said))
        found += those[: MOST_RUN if role == "run" else MOST]
    found += _also_installed(found, tasks, others if main else (), part)
    return _after_the_same(found, tasks)


def _also_installed(
    found: Sequence[Candidate], tasks: ProjectTasks, others: Sequence[Manifest], part: str
) -> list[Candidate]:
    """What brings the tools of another language that commands are run with: gulp."""
    programs = {one.key.split()[0] for one in found}
    programs |= {"npm"} if programs & {"gulp", "grunt"} else set()
    spoken = frozenset[str]().union(*(LANGUAGES.get(program, frozenset()) for program in programs))
    asked = [one for one in others if one.language in spoken]
    known = {one.key for one in found}
    return [one for one in candidates.of_manifests(tasks, "install", asked, part)[:1] if one.key not in known]


def _after_the_same(found: list[Candidate], tasks: ProjectTasks) -> list[Candidate]:
    """Tests that a task of all checks runs need what CI does before that task."""
    after = {
        (folder, key): one.command.after
        for one in found
        if one.command.role == "check" and one.command.after
        for folder, key in tasks.expanded(one.command.folder, one.key)
    }
    return [
        replace(one, command=replace(one.command, after=after[one.command.folder, one.key]))
        if one.command.role == "test" and (one.command.folder, one.key) in after and not one.command.after
        else one
        for one in found
    ]


def _switched_on(those: list[Candidate], of_manifests: Iterable[Candidate]) -> list[Candidate]:
    """Tests of CMake with the build that switches them on."""
    build = next((one.command.after for one in of_manifests if one.key == "ctest"), "")
    return [
        replace(one, command=replace(one.command, after=one.command.after or build))
        if one.key == "ctest" and "--test-dir build" in one.command.line
        else one
        for one in those
    ]


def _setup(part: str, tasks: ProjectTasks, known: Sequence[Candidate]) -> list[Candidate]:
    """The project's own way to set everything up, which knows more than its package manager."""
    found = [one for one in known if one.key in SETUP_SCRIPTS or one.key.partition(" ")[2] in SETUP_TASKS]
    for path in SETUP_SCRIPTS if not found and not part else ():
        if tasks.role([path], "") == ("install", path):
            found.append(Candidate(Command("install", path, path), path, FROM_FILES))
    return found[:1]


def _literal(role: str, of_tasks: Sequence[Candidate], those: Sequence[Candidate]) -> list[Candidate]:
    """The script of package.json that is called as the role is: it comes first, whatever others are named."""
    said = {one.key.partition(" ")[2] for one in those if one.is_task}  # with any package manager
    found = [one for one in of_tasks if one.key in LITERAL.get(role, ()) and one.command.role == role]
    return [one for one in found if one.key.partition(" ")[2] not in said]


def _best(role: str, said: Sequence[Candidate]) -> list[Candidate]:
    """The cheapest of each key; what is said twice is worth more. None that is far from the cheapest."""
    often = Counter(one.command.line for one in said)
    best: dict[str, Candidate] = {}
    for one in said:
        cost = one.cost - (often[one.command.line] > 1)
        if one.command.role == role and (one.key not in best or cost < best[one.key].cost):
            best[one.key] = replace(one, cost=cost)
    found = sorted(best.values(), key=lambda one: one.cost)
    return [one for one in found if one.cost <= found[0].cost + FAR]


def _is_of_part(one: Candidate, tasks: ProjectTasks) -> bool:
    """Whether a task of the root works in folders below only: `make build-js`."""
    is_named_so = one.is_task and not is_clear(one.key.partition(" ")[2])
    runs = tasks.expanded(one.command.folder, one.key) if is_named_so else frozenset()
    return bool(runs) and not one.command.folder and all(folder for folder, _ in runs)


def _of_runner(tasks: Iterable[Candidate]) -> list[Candidate]:
    """The target beside raw commands of CI."""
    return [one for one in tasks if one.key.split()[0] in ROOT_RUNNERS][:1]


def _typed(
    project: ProjectFiles,
    tasks: ProjectTasks,
    part: str,
    chosen: Sequence[Candidate],
    manifests: Sequence[Manifest],
    members: Sequence[str] = (),
    main: frozenset[str] = frozenset(),
) -> Iterator[Command]:
    """As one types them at the root of the project, and how to run a single test."""
    chosen = _wrapped(chosen) if part else chosen
    for one in chosen:
        folder = one.command.folder
        yield replace(one.command, line=typed_in(folder, one.command.line), folder=part)
    tests = [one for one in chosen if one.command.role == "test" and not WRAPPED.match(one.command.line)]
    if tests:  # a recipe may hide the runner
        tests += candidates.of_manifests(tasks, "test", manifests, part)
    known = [(one.command, one.key, tasks.expanded(one.command.folder, one.key)) for one in tests]
    for member in members[:MOST_MEMBERS] if tests else ():  # where the root only hands on to them
        if tasks.task_role(member, "npm", "test") == "test":
            task = tasks.tasks(member)["npm", "test"]
            source = candidates.in_folder(member, task.source)
            inner = Command("test", task.line, source, member)
            known.append((inner, "npm test", tasks.expanded(member, "npm test")))
    if single := one_test(project, part, known, lambda runner: not _is_foreign(runner, main)):
        yield single


def _wrapped(chosen: Sequence[Candidate]) -> list[Candidate]:
    """Where CI runs a package manager by way of another program, a developer has it in no other way."""
    start = next((found[0] for one in chosen if (found := WRAPPED.match(one.command.line))), None)
    return [
        replace(one, command=replace(one.command, line=start + one.command.line[4:], folder=""))
        if start and one.command.line.startswith("bun ")
        else one
        for one in chosen
    ]


def _parts(project: ProjectFiles, folders: Index, manifests: Manifests, members: Sequence[str]) -> list[str]:
    """First- and second-level folders with a manifest of their own that no workspace of the root covers, the
    largest first."""
    covered = {*members}
    sizes: dict[str, int] = {}
    spoken: dict[str, set[str]] = {}
    for language, files in sources(project).items():
        for file in files:
            above = file.path.split("/")[:-1]
            for depth in (1, 2):
                if len(above) >= depth:
                    path = "/".join(above[:depth])
                    sizes[path] = sizes.get(path, 0) + file.size
                    spoken.setdefault(path, set()).add(language)
    least = LEAST_PART * sum(size for path, size in sizes.items() if "/" not in path)
    found: list[str] = []
    for path in sorted(folders, key=lambda path: (path.count("/"), path)):
        names = path.split("/")
        if not path or len(names) > 2 or is_beside(path) or not path.isprintable():
            continue
        if (
            path in covered
            or sizes.get(path, 0) <= least
            or any(path.startswith(f"{one}/") for one in (*found, *covered))
        ):
            continue
        if any(NAME.fullmatch(name) is None for name in names) or folders[path].isdisjoint(MANIFESTS):
            continue
        said = [part for part in manifests(path) if part.language and (part.commands or part.tasks)]
        if any(spoken[path] & FAMILIES.get(part.language, {part.language}) for part in said):
            found.append(path)
    return sorted(found, key=lambda path: (-sizes[path], path))[:MOST_FOLDERS]


def _part_of(folder: str, parts: Sequence[str], members: Sequence[str]) -> str | None:
    """To which part what is run in a folder belongs; None: to none that is shown."""
    for part in parts:
        if folder == part or folder.startswith(f"{part}/"):
            return part
    if folder and (is_beside(folder) or folder in members):
        return None
    return ""


def _is_foreign(key: str, main: frozenset[str]) -> bool:
    languages = LANGUAGES.get(key.split(maxsplit=1)[0])
    return bool(main) and languages is not None and languages.isdisjoint(main)


def _is_of_other_language(one: Candidate, main: frozenset[str], minor: frozenset[str]) -> bool:
    """Whether the name of a task, of its job or its folder is one of a language that the project has little
    of: `test-php`."""
    if not main:
        return False
    name = one.key.partition(" ")[2] if one.is_task else ""
    for names in ((name,), (one.command.folder, one.for_folder), one.about):
        spoken = {
            language
            for token in re.findall(r"[a-z#+]+", " ".join(names).lower())
            for language in TOKENS.get(token, ())
        }
        if spoken:
            return spoken.isdisjoint(main) and not spoken.isdisjoint(minor)
    return False
