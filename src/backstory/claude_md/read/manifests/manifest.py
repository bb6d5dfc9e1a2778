"""What a reader makes of the manifests of its ecosystem in one folder."""

from __future__ import annotations

import re
from dataclasses import dataclass

from backstory.model import Command

LONGEST_RECIPE = 5_000
# These go into a file that people copy commands from, so they must not do more than they seem to.
NAME = re.compile(r"\w[\w:./@+-]{0,60}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Task:
    """Something that a task runner knows by name."""

    program: str  # which runs it; npm stands for all that read package.json
    name: str
    line: str  # what one types
    recipe: str  # what it runs, as a script
    source: str


@dataclass(frozen=True, slots=True)
class Manifest:
    ecosystem: str = ""  # whose names the dependencies are
    language: str = ""
    name: str = ""
    description: str = ""
    own: frozenset[str] = frozenset()  # what it is called as a dependency
    dependencies: frozenset[str] = frozenset()
    configured: frozenset[str] = frozenset()  # frameworks that a table in a manifest sets up
    managers: tuple[str, ...] = ()
    commands: tuple[Command, ...] = ()
    tasks: tuple[Task, ...] = ()
    members: tuple[str, ...] = ()  # globs of a monorepo's folders; `!` takes out again
    manifests: tuple[str, ...] = ()  # one of these files makes such a folder a member; none: any file does


def task(program: str, name: str, line: str, recipe: str, source: str) -> list[Task]:
    """A task, if one can type its name. `line` has `{}` for that."""
    is_typed = NAME.fullmatch(name)
    return [Task(program, name, line.format(name), recipe[:LONGEST_RECIPE], source)] if is_typed else []
