"""Task runners and Docker: what belongs to no language."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from backstory.claude_md.read.languages import generated
from backstory.claude_md.read.manifests.folder import Folder, dig, table, word, words
from backstory.claude_md.read.manifests.manifest import Manifest, Task, task
from backstory.model import Command

MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
JUSTFILES = ("justfile", "Justfile", ".justfile")
TASKFILES = ("Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml", "Taskfile.dist.yml")
GULPFILES = ("gulpfile.js", "gulpfile.mjs", "gulpfile.ts", "gulpfile.babel.js")
MISE = ("mise.toml", ".mise.toml")
COMPOSE = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
RECIPE = re.compile(r"@?([A-Za-z_][\w-]*+)([^:\n]*+):(?!=)(.*)", re.ASCII)
PARAMETER = re.compile(r"[ \t][A-Za-z_][\w-]*+(?![\w=-])", re.ASCII)  # of a recipe, without a default
MOST_TASKS, MOST_LINES, LONGEST_LINE = 300, 200, 1_000  # of a file, of a task, of its script
# A task of gulp is code; only a name that can mean one thing tells what it is for.
GULP_TASK = re.compile(
    r"^(?:gulp\.task\(\s*[\"']|exports\.)(build|dev|format|lint|migrate|runserver|serve|start|test)\b(?![:-])",
    re.MULTILINE,
)
SERVING = {"dev": "run", "runserver": "run", "serve": "run", "start": "run"}

# Behind the colon: it sets one, for a target or at all.
VARIABLE = re.compile(r":*=|[\s:]*(\w+\s+)?[\w.]+\s*[:?+!]*=")
SET = re.compile(
    r"[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*(?::{0,3}|\?)=[ \t]*([^\s$#][^$#\n]*)", re.ASCII
)
LONGEST_VALUE = 200  # of a variable that stands for a program
USED = re.compile(r"\$[({]([A-Za-z_]\w*)[)}]", re.ASCII)
TEMPLATE = re.compile(r"\{\{[^{}]{0,200}\}\}")


def read(folder: Folder) -> Manifest:
    found: list[Task] = []
    if makefile := folder.first(*MAKEFILES):
        found += islice(_of_make(folder.text(makefile), makefile), MOST_TASKS)
    if justfile := folder.first(*JUSTFILES):
        found += islice(_of_just(folder.text(justfile), justfile), MOST_TASKS)
    if taskfile := folder.first(*TASKFILES):
        found += islice(_of_task(folder.yaml(taskfile), taskfile), MOST_TASKS)
    for mise in MISE:
        for name, said in table(folder.toml(mise).get("tasks")).items():
            lines = words(said) or words(table(said).get("run"))
            lines += [f"mise run {each}" for each in words(table(said).get("depends"))]
            found += task("mise", name, "mise run {}", _script(lines), mise)
    commands = []
    if gulpfile := folder.first(*GULPFILES):
        names = dict.fromkeys(GULP_TASK.findall(folder.text(gulpfile)))
        commands += [Command(SERVING.get(name, name), f"gulp {name}", gulpfile) for name in names]
    if (compose := folder.first(*COMPOSE)) and builds_a_service(folder, compose):
        commands.append(Command("run", "docker compose up", compose))
    return Manifest(commands=tuple(commands), tasks=tuple(found[:MOST_TASKS]))


def builds_a_service(folder: Folder, compose: str) -> bool:
    """Whether a file of Docker Compose starts something of the repository, not only databases beside it."""
    for service in table(dig(folder.yaml(compose), "services")).values():
        build = dig(service, "build")
        context = word(build) or word(dig(build, "context")) or ("." if isinstance(build, dict) else "")
        if context and "://" not in context and not context.startswith("git@"):
            return True
    return False


def _of_make(text: str, source: str) -> Iterator[Task]:
    if generated(text.encode()):
        return
    variables = {
        found[1]: found[2].strip()[:LONGEST_VALUE]
        for line in text.splitlines()
        if (found := SET.match(line[:LONGEST_LINE]))
    }
    for name, recipe in rules(text):
        # Only to see what it runs: a variable that is not plain is taken for the program it is named after.
        plain = USED.sub(lambda used: variables.get(used[1]) or used[1].lower(), recipe)
        yield from task("make", name, "make {}", plain, source)


def rules(makefile: str) -> list[tuple[str, str]]:
    """(target, what it runs) of a Makefile; not of what only matches a pattern or is made from variables."""
    found: dict[str, list[str]] = {}
    named: list[str] = []
    defining = False
    for line in makefile.replace("\\\n", " ").splitlines():
        if line.startswith(("define ", "endef")):
            defining = line.startswith("define ")
        if line.startswith("\t"):
            recipe = line.strip().lstrip("@-+")
            for name in named:
                found[name].append(recipe)
            continue
        if defining or line.startswith(("#", "if", "else", "endif", "$(")):
            continue
        left, colon, right = line.replace("\\:", "\0").partition(":")
        is_whole = left.count("(") == left.count(")")
        if not (colon and is_whole and "=" not in left and not VARIABLE.match(right)):
            named = named if not line.strip() else []
            continue
        needed, _, same_line = right.lstrip(":").partition("#")[0].partition(";")
        named = [target.replace("\0", ":") for target in left.split()[:50]]
        for name in named:
            lines = [f"make {each}" for each in needed.split()[:50] if not each.startswith(("$", "|"))]
            found.setdefault(name, []).extend([*lines, same_line.strip()] if same_line else lines)
    return [(name, _script(lines)) for name, lines in found.items() if not name.startswith(".")]


def _of_just(text: str, source: str) -> Iterator[Task]:
    recipe: list[str] = []
    name = ""
    for line in [*text.splitlines(), "end:"]:
        if line[:1].isspace() and name:
            recipe.append(TEMPLATE.sub("x", line.strip().lstrip("@-")))
        elif found := RECIPE.match(line):
            if name:
                yield from task("just", name, "just {}", _script(recipe), source)
            needs_more = PARAMETER.search(found[2]) is not None
            name = "" if needs_more or found[1].startswith("_") else found[1]
            recipe = [f"just {each}" for each in found[3].split()[:50] if each.isidentifier()]


def _of_task(taskfile: object, source: str) -> Iterator[Task]:
    for name, said in table(dig(taskfile, "tasks")).items():
        if dig(said, "internal") == "true":
            continue
        steps = [said] if isinstance(said, (str, list)) else []
        steps += [dig(said, key) for key in ("cmd", "cmds")]
        lines = [f"task {each}" for each in words(dig(said, "deps"))]
        for step in steps:
            for each in step if isinstance(step, list) else [step]:
                lines.append(word(each) or word(dig(each, "cmd")) or f"task {word(dig(each, 'task'))}")
        yield from task("task", name, "task {}", TEMPLATE.sub("", _script(lines)), source)


def _script(lines: Iterable[str]) -> str:
    """What a task runs: an anchor of YAML, or a variable, can make a large one of a small file."""
    return "\n".join(line[:LONGEST_LINE] for line in islice(lines, MOST_LINES))
