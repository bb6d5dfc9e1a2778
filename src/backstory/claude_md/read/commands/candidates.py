"""What the files of a project say that one could type, with how likely a developer does.

    CI, documentation   what people and machines really type; checked against the files of the project
    task runners        targets and scripts by name, with the role that their recipe tells
    manifests           the plain commands of an ecosystem

The cost of a command says where it was found, and how special it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from backstory.claude_md.read.commands import ci, docs
from backstory.claude_md.read.commands.lines import (
    LONGEST_SCRIPT,
    LeftOut,
    Script,
    Unit,
    packages,
    steps,
    typed_in,
)
from backstory.claude_md.read.commands.project_tasks import DJANGO_SETTINGS, ProjectTasks, is_for_needs
from backstory.claude_md.read.commands.roles import (
    ASSIGNED,
    CHECK_OPTIONS,
    CHECKING_FORMATTERS,
    CHECKS,
    is_aside,
    is_clear,
    is_file,
    is_of_docs,
    is_single_test,
    role_of_name,
    without_choice,
)
from backstory.claude_md.read.manifests.folder import Folder, Index
from backstory.claude_md.read.manifests.manifest import Manifest, Task
from backstory.model import Command

FROM_CI, FROM_README, FROM_DOCS, QUOTED = 0.0, 1.3, 1.0, 0.6
FROM_FILES = 10.0  # the least cost of what nobody mentions
DOCS_FIRST = frozenset(("install", "run", "format", "generate", "migrate"))
BESIDE = frozenset(
    "bench benches benchmark benchmarks example examples sample samples demo demos docs tools".split()
)
MAKE = frozenset(("make", "gmake"))
NATIVE = frozenset("make gmake cmake ninja meson".split())
PYTHON_MODULE = re.compile(r"[A-Za-z_][\w.]{0,80}")
# Variables by which CI says what a command runs.
CHOSEN_BY = {"tox": ("TOX_ENV", "TOXENV"), "nox": ("NOXSESSION",)}
SPECIAL = {  # options that make a command one of many of its kind
    option: cost
    for cost, options in {
        3.0: "--no-run --dry-run --watch --watchAll --help --version --list",
        2.0: "--release --ignored --target --example --coverage --prod --production --update-snapshots"
        " --no-default-features --headed --ui --debug -Z --bench --doc",
        1.0: "-p --package --test --features --lib --bin --filter -w --workspace=",
    }.items()
    for option in options.split()
}
# Of a workflow, a job, a step or a heading: what they do is not what a developer does.
ASIDE = re.compile(
    r"""\b(?:releas\w*|publish\w*|deploy\w*|docs?|documentation|pages|site|website|bench\w*|fuzz\w*|codeql|coverage|msrv
    |minimal|nightly|audit|scorecard|stale|labels?|labeler|lock|cla|dependabot|renovate|translat\w*|crowdin
    |mutation|windows|android|ios|wasm\w*|cross|docker\w*|images?|packag\w*|canary|preview|changelog|backport
    |production|homebrew|upgrad\w*|uninstall\w*|migrating|cleanup|snapshot\w*|size|semver|supply|coverity|musl|arm\w*
    |freebsd|openbsd|netbsd|solaris|illumos|macports|podman|kubernetes|helm|demo|examples?|quick\s?start)\b""",
    re.VERBOSE | re.IGNORECASE,
)
MAIN = re.compile(
    r"\b(?:tests?|testing|lint\w*|checks?|build\w*|develop\w*|contribut\w*|format\w*|ci)\b", re.IGNORECASE
)
RUNNING = re.compile(r"\b(?:run|running|start\w*|serv\w*|develop\w*|launch\w*)\b", re.IGNORECASE)
USAGE = re.compile(r"\busage\b", re.IGNORECASE)
FOR_USERS = re.compile(r"\b(?:usage|how to run|running|run it|getting started)\b", re.IGNORECASE)
# A program as it is: with settings and arguments that are plain words, and by way of nothing else.
AT_THE_TOP = re.compile(
    r"(?:(?!LD_|PATH=|PYTHON|NODE_|PERL|RUBY|BASH)[A-Z]\w*=[\w.-]* )*"
    r"(?:(?:python3?|node|ruby|perl|bash|sh) )?(?:\./)?(?P<name>[\w-]+\.\w+)(?: [\w./=:,+-]+)*",
    re.ASCII,
)
COVERED = re.compile(r"^((?:uv|poetry|pdm|pipenv) run )?coverage run (?:-{1,2}\w\S* |'[^']*' )*-m ")
HOOKED = ("install", "publish", "publishOnly", "pack", "pare", "version")
WORD_SIGNS = re.compile(r"[_\-.:/]+")
MOST_UNITS = 5_000  # of all scripts; a large project has a thousand
UNIT = 200  # characters that count for one, whatever they are
MOST_BEFORE = 10  # steps that are kept in mind of a job
MOST_AFTER = 3  # of them, before its tests
LONGEST_AFTER = 150
PREPARING = frozenset(("build", "generate", "migrate"))
PREPARED = frozenset(("build", "test", "check"))
# Programs of a job that nothing after them needs, but the machine that runs it.
PREPARES_NOTHING = frozenset(
    "echo printf cd pushd popd set ls cat pwd which true exit test [ git rustup corepack".split()
)
MOST_PACKAGES = 12
JOB = re.compile(r"[\w.-]{1,40}", re.ASCII)
LONGEST = 500  # of steps in a row


@dataclass(frozen=True, slots=True)
class Candidate:
    command: Command
    key: str  # two with the same key differ only in options
    cost: float
    is_task: bool = False
    for_folder: str = ""  # which it is for, wherever one types it
    about: tuple[str, ...] = ()  # the names of the job and step
    is_single: bool = False  # it runs some of the tests only
    # Tasks, with their folders, that the same job of CI runs before; None: CI says nothing.
    before: tuple[tuple[str, str], ...] | None = None
    does_more: bool = False  # the job does more before it that it may need


@dataclass(slots=True)
class _Job:
    """What a job of CI has done up to a step."""

    group: int
    built: list[tuple[str, str]] = field(default_factory=list)  # with the project's own tasks, by folder
    packages: dict[str, None] = field(default_factory=dict)
    does_more: bool = False

    def prepared(self, command: Command, script: Script) -> Command:
        sets = () if command.role == "build" else script.sets
        return replace(
            command,
            job=script.job if JOB.fullmatch(script.job) else "",
            packages=tuple(self.packages) if len(self.packages) <= MOST_PACKAGES else (),
            variables=tuple(name for name in sets if f"{name}=" not in command.line),
        )


def said(root: Folder, folders: Index, tasks: ProjectTasks) -> Iterator[Candidate]:
    """What CI and the documentation say; tests and checks of all with what their jobs build first."""
    found = list(_said(root, folders, tasks))
    always: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {}
    for one in found:
        if one.before is not None:
            place = (one.command.folder, one.key)
            earlier = always.get(place, one.before)
            always[place] = tuple(step for step in earlier if step in one.before)
    for one in found:
        folder = one.command.folder
        earlier = always.get((folder, one.key), ()) if one.command.role in ("test", "check") else ()
        here = [line for place, line in earlier if place == folder][-MOST_AFTER:]
        after = typed_in(folder, " && ".join(here)) if here else ""
        if len(after) > LONGEST_AFTER:
            here, after = [], ""  # a shorter one would be another command
        is_told = not one.does_more and all(line in here for _, line in one.before or ())
        yield replace(one, command=replace(one.command, after=after, job="" if is_told else one.command.job))


def _said(root: Folder, folders: Index, tasks: ProjectTasks) -> Iterator[Candidate]:
    before: dict[tuple[int, str], list[str]] = {}  # steps that a build needs, of a job or block
    order = 0
    for script, aside, unit, (role, key), job in _with_roles(root, folders, tasks):
        is_ci = script.group < docs.FIRST_GROUP
        program, _, name = key.partition(" ")
        for_folder = tasks.works_in(unit.words, unit.folder)
        is_task = tasks.is_task(for_folder, program, name)
        if is_task and ((is_aside(name) and role != "check") or (program in MAKE and is_file(name))):
            continue
        if _is_for_machines(script, is_ci, role, key) or (role == "run" and _is_beside(unit)):
            continue
        order += 1
        waiting = before.setdefault((script.group, unit.folder), [])
        if role == "configure":
            waiting += [unit.line] if unit.line not in waiting[-MOST_BEFORE:] else []
            continue
        line = _without_settings(unit.line) if is_ci and program in MAKE else unit.line
        if line.startswith("gradle ") and not unit.folder and root.has("gradlew"):
            line = f"./gradlew{line.removeprefix('gradle')}"
        line = tasks.with_group(line, unit.folder)
        line = tasks.once(COVERED.sub(r"\1", line), key, for_folder) if role == "test" else line
        if key.startswith("manage.py") and DJANGO_SETTINGS not in line and "--settings" not in line:
            module = script.sets.get(DJANGO_SETTINGS, "")
            line = f"{DJANGO_SETTINGS}={module} {line}" if PYTHON_MODULE.fullmatch(module) else line
        is_docs_first = role in DOCS_FIRST
        if role == "build" and program in NATIVE:
            if not tasks.is_ready(waiting, unit.folder):
                continue
            is_docs_first = bool(waiting)  # a machine tries all options, a developer the plain ones
            line = " && ".join([*waiting, line])
            waiting.clear()
            if len(line) > LONGEST:
                continue
        cost = _trust(script, is_ci, is_docs_first) + aside + _special(unit) + len(line) / 80 + order / 10_000
        # `make all` may run the tests; `make test` is meant to.
        cost += 1 if is_task and name and role_of_name(name) is None else 0
        command = Command(role, line, script.source, unit.folder)
        yield Candidate(
            job.prepared(command, script) if is_ci and role in PREPARED else command,
            key,
            cost,
            is_task,
            for_folder,
            about=script.about if is_ci else (),
            is_single=role == "test" and is_single_test(unit.words),
            before=tuple(job.built) if is_ci else None,
            does_more=job.does_more or len(job.packages) > MOST_PACKAGES,
        )


def _with_roles(
    root: Folder, folders: Index, tasks: ProjectTasks
) -> Iterator[tuple[Script, float, Unit, tuple[str, str], _Job]]:
    """What is read that has a role, with what its job did before."""
    job = _Job(-1)
    for script, aside, step in _read(root, folders, tasks):
        is_ci = script.group < docs.FIRST_GROUP
        if script.group != job.group:
            job = _Job(script.group)
        brought = packages(step.words)
        job.packages |= dict.fromkeys(brought)
        if brought or isinstance(step, LeftOut):
            job.does_more |= not brought and _prepares(step.words)
            continue
        is_usage = not is_ci and USAGE.search(script.about[0])  # of what is made here, not work on it
        found = None if is_usage else tasks.role(step.words, step.folder)
        found = found or (None if is_ci else _of_program(script, step, tasks))
        if is_ci and (not found or found[0] in PREPARING) and tasks.is_own(step):
            place = (step.folder, step.line)
            job.built = [*(other for other in job.built if other != place), place][-MOST_BEFORE:]
        elif not found:
            job.does_more |= _prepares(step.words)
        if found:
            yield script, aside, step, found, job


def _prepares(words: Sequence[str]) -> bool:
    """Whether what comes after this command in a job may need it."""
    is_question = "--version" in words or [*words[1:]] in (["-v"], ["-V"])
    return bool(words) and not is_question and words[0] not in PREPARES_NOTHING


def _read(
    root: Folder, folders: Index, tasks: ProjectTasks
) -> Iterator[tuple[Script, float, Unit | LeftOut]]:
    """The commands in scripts, with how far from a developer's work each script is; no more than there is
    time for."""
    left = MOST_UNITS
    for script in (*ci.scripts(root), *docs.scripts(root, tasks.names())):
        aside = _aside(script.about)
        if aside is None or script.folder not in folders:
            continue
        if left <= 0 or tasks.is_late():
            return
        left -= len(script.text[:LONGEST_SCRIPT]) // UNIT
        for step in steps(script, folders.__contains__):
            left -= 1
            if tasks.is_late():
                return
            if isinstance(step, Unit) and script.group >= docs.FIRST_GROUP:
                yield script, aside, tasks.place(step)
            else:
                yield script, aside, step


def _is_for_machines(script: Script, is_ci: bool, role: str, key: str) -> bool:
    if is_ci and key == "docker compose up":  # services
        return True
    if key.removeprefix("./").startswith(".github/"):
        return True
    if any(name in script.sets for name in CHOSEN_BY.get(key, ())):
        return True  # alone, it runs all of them
    return role == "lint" and key.endswith((".sh", ".bash")) and not is_clear(_stem(key))  # of one corner


def _is_beside(unit: Unit) -> bool:
    """Whether it runs something of a folder for examples, measurements or tools."""
    paths = [word.removeprefix("./") for word in unit.words if not word.startswith("-") and "/" in word]
    return any(path.partition("/")[0] in BESIDE for path in paths)


def _without_settings(line: str) -> str:
    """`make test V=1` without what CI sets."""
    start, make, rest = line.partition("make")
    if {*rest} & {*"'\"|"}:
        return line
    return start + make + "".join(f" {word}" for word in rest.split() if not ASSIGNED.match(word))


def _of_program(script: Script, unit: Unit, tasks: ProjectTasks) -> tuple[str, str] | None:
    """How the documentation runs what was built, or a program that stands at the top as it is."""
    heading, program, typed = script.about[0], unit.words[0], AT_THE_TOP.fullmatch(unit.line)
    if unit.folder:
        return None
    if RUNNING.search(heading) and tasks.is_built(program):
        return "run", program
    is_program = typed and FOR_USERS.search(heading) and tasks.is_program(typed["name"])
    return ("run", typed["name"]) if typed and is_program else None


def of_tasks(folder: str, tasks: ProjectTasks) -> Iterator[Candidate]:
    """The tasks of a folder that nobody mentions."""
    for task in tasks.tasks(folder).values():
        role = tasks.task_role(folder, task.program, task.name)
        named = role_of_name(task.name)
        if role is None or role == "configure" or _is_hook(task, tasks.tasks(folder)):
            continue
        if task.program == "make" and is_file(task.name):
            continue
        if role == "generate":
            if (named != role and is_of_docs(task.name)) or not CHECKS.isdisjoint(
                WORD_SIGNS.split(task.name)
            ):
                continue
        elif role != "check" and (is_aside(task.name) or not (named or is_for_needs(task.name))):
            continue
        runs = tasks.expanded(folder, f"{task.program} {task.name}")
        if not runs and (role == "install" or not is_clear(task.name)):
            continue  # only its name says so, and not clearly
        parts = len(re.split(r"[:_.\-]", task.name))
        cost = FROM_FILES + 1 + 2 * (parts - 1) + (named != role) + (task.name != role) / 2
        if role == "run":
            cost += {"dev": -1, "develop": -1, "run": -0.5}.get(task.name, 0)
        key = f"{task.program} {task.name}"
        line = tasks.once(task.line, key, folder) if role == "test" else task.line
        command = Command(role, line, in_folder(folder, task.source), folder)
        yield Candidate(command, key, cost, is_task=True)


def of_manifests(tasks: ProjectTasks, role: str, manifests: Sequence[Manifest], part: str) -> list[Candidate]:
    """What the manifests of the first language have that has any; Docker's only where no other has. A script
    of the project knows better how it is checked and formatted."""
    if role in ("lint", "format") and not part and (scripts := tasks.scripts(role)):
        return [Candidate(Command(role, path, path), path, FROM_FILES + 5) for path in scripts[:1]]
    is_known = any(manifest.language and manifest.managers for manifest in manifests)
    for language in dict.fromkeys(manifest.language for manifest in manifests if manifest.language):
        those = [one for other in manifests if other.language == language for one in other.commands]
        if found := [one for one in those if one.role == role]:
            typed = [_of_manifest(tasks, one, part) for one in found]
            return [one for one in typed if role != "test" or tasks.has_tests(one.key, part)]
    those = [one for other in manifests if not other.language for one in other.commands if one.role == role]
    return [
        _of_manifest(tasks, one, part) for one in those if not (is_known and one.line == "docker build .")
    ]


def _of_manifest(tasks: ProjectTasks, command: Command, part: str) -> Candidate:
    known = tasks.role(command.line.split(), part)
    key = known[1] if known else command.line
    command = replace(command, line=tasks.with_group(command.line, part))
    return Candidate(replace(command, folder=part, source=in_folder(part, command.source)), key, 20)


def rewriting(said: Sequence[Candidate]) -> list[Candidate]:
    """How to format what a formatter checks."""
    found = [one for one in said if one.command.role == "lint" and one.key in CHECKING_FORMATTERS]
    for one in sorted(found, key=lambda one: one.cost)[:1]:
        words = [word for word in one.command.line.split() if word not in CHECK_OPTIONS]
        line = " ".join(words).removesuffix(" --")
        return [replace(one, command=replace(one.command, role="format", line=line))]
    return []


def of_all_tests(said: Sequence[Candidate]) -> list[Candidate]:
    """Of commands for some tests, the first one for all of them."""
    for one in said:
        if one.is_single and {*one.command.line}.isdisjoint("'\"|"):  # else words are more than they seem
            line = " ".join(without_choice(one.command.line.split()))
            return [replace(one, command=replace(one.command, line=line))]
    return []


def _aside(about: Sequence[str]) -> float | None:
    """How far what is done under these names is from a developer's work; None: too far."""
    cost = 0.0
    for name in about:
        plain = WORD_SIGNS.sub(" ", name)
        if ASIDE.search(plain):
            if not MAIN.search(plain):
                return None
            cost = 2.0
    return cost


def _trust(script: Script, is_ci: bool, is_docs_first: bool) -> float:
    if is_ci:
        return FROM_CI + (1.5 if is_docs_first else 0)
    cost = FROM_README if script.source.lower().startswith(("readme", "install")) else FROM_DOCS
    cost += QUOTED if script.group >= docs.FIRST_QUOTED else 0
    return cost - (1 if is_docs_first else 0)


def _special(unit: Unit) -> float:
    cost = sum(SPECIAL.get(word.partition("=")[0], 0) for word in unit.words)
    cost += "compose" in unit.line and "up" in unit.words  # rather the program alone
    cost += 2 * any(word.startswith("+") for word in unit.words[:2])
    cost += 1 * ("=" in unit.line.split()[0])
    cost += sum(word.startswith(("-D", "--enable-", "--disable-", "--with")) for word in unit.words) / 2
    cost += 2 * ("tox" in unit.words and any(word.startswith("-e") for word in unit.words))
    cost += not {"typos", "codespell", "cargo-sort", "deny", "machete"}.isdisjoint(unit.words)
    cost += bool({"playwright", "cypress", "e2e", "test:e2e"}.intersection(unit.words))
    cost += 2 * ("/" in unit.words[0] and unit.words[0].endswith((".sh", ".py", ".bash")))
    return cost


def _stem(path: str) -> str:
    """The name of a script, without words for everything."""
    name = path.rpartition("/")[2].partition(".")[0]
    return "-".join(part for part in re.split(r"[-_]", name) if part not in ("all", "code", "run", "ci"))


def _is_hook(task: Task, others: Mapping[tuple[str, str], Task]) -> bool:
    """What npm runs by itself, before and after another script."""
    for start in ("pre", "post"):
        rest = task.name.removeprefix(start)
        if task.program == "npm" and rest != task.name and (("npm", rest) in others or rest in HOOKED):
            return True
    return False


def in_folder(folder: str, path: str) -> str:
    return f"{folder}/{path}" if folder else path
