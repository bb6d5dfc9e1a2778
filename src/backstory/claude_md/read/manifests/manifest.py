"""What a reader makes of the manifests of its ecosystem in one folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from backstory.model import Command

# The names of scripts, targets and recipes that say what they are for.
SCRIPT_ROLES = {
    name: role
    for role, names in {
        "build": "build compile bundle dist",
        "test": "test tests unit",
        "lint": "lint eslint format fmt prettier typecheck type-check tsc style standard",
        "run": "start dev serve",
    }.items()
    for name in names.split()
}
# These go into a file that people copy commands from, so they must not do more than they seem to.
NAME = re.compile(r"\w[\w:./@+-]{0,60}", re.ASCII)


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
    members: tuple[str, ...] = ()  # globs of a monorepo's folders; `!` takes out again
    manifests: tuple[str, ...] = ()  # one of these files makes such a folder a member; none: any file does


def role(name: str, separators: str = ":", more: Mapping[str, str] | None = None) -> str | None:
    """What a script is for: its name says so, or what stands before a separator."""
    if not NAME.fullmatch(name):
        return None
    roles = {**SCRIPT_ROLES, **(more or {})}
    starts = [name] + [name[:at] for at, sign in enumerate(name) if sign in separators]
    start = next((start for start in starts if start in roles), None)
    rest = name[len(start) + 1 :] if start else ""
    # `build:clean` undoes it, and what `run-tests` runs is not the program.
    if start is None or rest.endswith("clean") or (start == "run" and roles.get(rest) in ("test", "lint")):
        return None
    return roles[start]


def commands(
    scripts: Iterable[str],
    line: str,
    source: str,
    separators: str = ":",
    more: Mapping[str, str] | None = None,
) -> list[Command]:
    """The scripts that have a role, as what one types. `line` has `{}` for the name."""
    roles = {script: role(script, separators, more) for script in scripts}
    return [Command(named, line.format(script), source) for script, named in roles.items() if named]
