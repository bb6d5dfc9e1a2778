"""Makefiles, justfiles, Docker: what belongs to no language."""

from __future__ import annotations

import re
from collections.abc import Iterator

from backstory.claude_md.read.languages import generated
from backstory.claude_md.read.manifests.folder import Folder
from backstory.claude_md.read.manifests.manifest import Manifest, commands
from backstory.model import Command

MORE = {"check": "test", "all": "build", "run": "run"}
COMPOSE = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
RECIPE = re.compile(r"@?([A-Za-z_][\w-]*+)[^:\n]*+:(?!=)", re.ASCII)

# Behind the colon: it sets one, for a target or at all.
VARIABLE = re.compile(r":*=|[\s:]*(\w+\s+)?[\w.]+\s*[:?+!]*=")


def read(folder: Folder) -> Manifest:
    found: list[Command] = []
    if makefile := folder.first("GNUmakefile", "makefile", "Makefile"):
        text = folder.text(makefile)
        if not generated(text.encode()):
            found += commands(targets(text), "make {}", makefile, separators=":-", more=MORE)
    if justfile := folder.first("justfile", "Justfile", ".justfile"):
        recipes = (RECIPE.match(line) for line in folder.text(justfile).splitlines())
        names = [recipe[1] for recipe in recipes if recipe]
        found += commands(names, "just {}", justfile, separators=":-", more=MORE)
    if "Dockerfile" in folder.names:
        found.append(Command("build", "docker build .", "Dockerfile"))
    if compose := folder.first(*COMPOSE):
        found.append(Command("run", "docker compose up", compose))
    return Manifest(commands=tuple(found))


def targets(makefile: str) -> Iterator[str]:
    """What a Makefile has rules for; not what only matches a pattern or is put together from variables."""
    defining = False
    for line in makefile.replace("\\\n", " ").splitlines():
        if line.startswith(("define ", "endef")):
            defining = line.startswith("define ")
        if defining or line.startswith(("\t", "#", "ifeq", "ifneq", "else ", "$(")):
            continue
        left, colon, right = line.replace("\\:", "\0").partition(":")
        is_whole = left.count("(") == left.count(")")
        if colon and is_whole and "=" not in left and not VARIABLE.match(right):
            yield from (target.replace("\0", ":") for target in left.split())


def recipes_run(folder: Folder, expression: re.Pattern[str]) -> str | None:
    """The Makefile, where a recipe of it runs this."""
    makefile = folder.first("GNUmakefile", "makefile", "Makefile")
    return makefile if makefile and _in_lines(folder.text(makefile), expression) else None


def ci_runs(folder: Folder, expression: re.Pattern[str]) -> str | None:
    """The first file of a continuous integration that runs this."""
    workflows = [path for path in folder.inside(".github/workflows") if path.endswith((".yml", ".yaml"))]
    for path in [*workflows, ".gitlab-ci.yml", ".travis.yml"]:
        if _in_lines(folder.text(path), expression):
            return path
    return None


def _in_lines(text: str, expression: re.Pattern[str]) -> bool:
    return any(expression.search(line) for line in text.splitlines() if not line.lstrip().startswith("#"))
