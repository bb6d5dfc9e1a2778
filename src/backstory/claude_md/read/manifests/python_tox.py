"""tox in its three places: tox.ini, tox.toml, pyproject.toml (and setup.cfg)."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from itertools import islice
from typing import Any

from backstory.claude_md.read.manifests.folder import Folder, braces, dig, ini, table, word, words


@dataclass(frozen=True, slots=True)
class Tox:
    source: str
    envs: tuple[str, ...]
    requires: tuple[str, ...]  # lines as pip understands them
    recipes: tuple[tuple[str, str], ...]  # what an environment runs; the empty name is all others


Found = tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[str, str], ...]]
MOST = 300  # environments
REPLACED = re.compile(r"\{[^{}]{0,200}\}")


def read(folder: Folder, project: dict[str, Any], setup_cfg: dict[str, dict[str, str]]) -> Tox | None:
    said = table(dig(project, "tool", "tox"))
    sections = {name.removeprefix("tox:"): keys for name, keys in setup_cfg.items()}
    places = (
        ("tox.ini", _from_ini(folder.ini("tox.ini"))),
        ("tox.toml", _from_toml(folder.toml("tox.toml"))),
        ("pyproject.toml", _from_ini(ini(word(said.get("legacy_tox_ini")))) or _from_toml(said)),
        ("setup.cfg", _from_ini(sections)),
    )
    return next((Tox(source, *found) for source, found in places if found), None)


def _from_ini(sections: dict[str, dict[str, str]]) -> Found | None:
    tests = {name: keys for name, keys in sections.items() if name.partition(":")[0] == "testenv"}
    if not tests and "tox" not in sections:
        return None
    main = sections.get("tox", {})
    listed = main.get("envlist") or main.get("env_list") or ""
    listed = re.sub(r"\{[^{}]*\}", lambda group: re.sub(r"\s", "", group[0]), listed)
    # a comma inside braces does not end an environment's name
    names = re.findall(r"(?:\{[^{}]*\}|[^\s,{])+", listed) + [name.partition(":")[2] for name in tests]
    envs = (env for name in names for env in braces(name))
    requires = [
        _without_factor(line) for keys in tests.values() for line in keys.get("deps", "").splitlines()
    ]
    recipes = (
        (env, REPLACED.sub("", keys.get("commands", "")))
        for name, keys in tests.items()
        for env in braces(name.partition(":")[2])
        if keys.get("commands")
    )
    return tuple(islice(envs, MOST)), tuple(requires), tuple(islice(recipes, MOST))


def _from_toml(said: dict[str, Any]) -> Found | None:
    if not said:
        return None
    envs = table(said.get("env"))
    places = [*envs.values(), said.get("env_run_base")]
    requires = (line for place in places for line in words(table(place).get("deps")))
    named = [("", said.get("env_run_base")), *envs.items()]
    recipes = [(name, recipe) for name, place in named if (recipe := _commands(table(place).get("commands")))]
    return (*words(said.get("env_list")), *envs)[:MOST], tuple(requires), tuple(recipes[:MOST])


def _commands(lists: object) -> str:
    lines = (shlex.join(words(line)) for line in (lists if isinstance(lists, list) else ()))
    return REPLACED.sub("", "\n".join(lines))


def _without_factor(line: str) -> str:
    """`py38,!lint: pytest` holds for some environments only."""
    return re.sub(r"^[\w!{},.\s-]*:(?=\s)", "", line).strip()
