"""What is not edited by hand: files that a program writes, and other people's code."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from backstory.claude_md.read.files import ProjectFiles
from backstory.claude_md.read.languages import generated_files, language_of
from backstory.model import Fact

MOST = 6
ATTRIBUTE = re.compile(r"(?P<not>[-!])?linguist-generated(?:=(?P<value>.*))?")
LONGEST_LINE = 400
# Everybody knows that these are made.
USUAL = re.compile(
    r"(?:^|/)(?:[\w.-]*lock(?:file)?(?:\.\w+)?|go\.sum|package-lock\.json)$|\.(?:min\.\w+|map|snap)$|^\*$"
)
SCHEMAS = (
    ".proto",
    ".graphql",
    ".thrift",
    ".fbs",
    ".avsc",
    ".g4",
    ".sql",
)  # what people write, and code is made of
SAID_BY_NAME = re.compile(r"(?:^|/)(?:_?_?generated(?:__)?)/")
ASIDE = re.compile(r"(?:^|/)(?:tests?|testdata|fixtures?|__snapshots__|examples?|golden|spec)/")


@lru_cache(2)
def hands_off(project: ProjectFiles) -> tuple[Fact, ...]:
    said = list(_attributes(project))
    made = {path for path in generated_files(project) if not ASIDE.search(path)}
    made |= {file.path for file in project.files if SAID_BY_NAME.search(file.path) and language_of(file.path)}
    others = [Fact(f"{path}/", path, "vendored") for path in project.vendored if path.count("/") <= 2]
    each = {fact.text: fact for fact in reversed([*said, *_grouped(project, made), *others])}
    return tuple(reversed(each.values()))[:MOST]


def folders_of(facts: Sequence[Fact]) -> list[str]:
    """Those of them that are whole folders."""
    return [fact.text for fact in facts if fact.text.endswith("/") and "*" not in fact.text]


def _attributes(project: ProjectFiles) -> Iterator[Fact]:
    lines = (project.text(".gitattributes", 100_000) or "").splitlines()
    said, excepted = list[str](), list[str]()
    for line in lines:
        path, *words = (line if len(line) <= LONGEST_LINE else "").split() or ("#",)
        for found in [ATTRIBUTE.fullmatch(word) for word in words if not path.startswith("#")]:
            if found:
                is_not = found["not"] or found["value"] == "false"
                (excepted if is_not else said).append(path)
    for given in said:
        if any(fnmatchcase(path, given) for path in excepted):
            continue
        path = given.removeprefix("/").removesuffix("/**").removesuffix("/*")
        if USUAL.search(path) or not path.isprintable() or ".." in path.split("/"):
            continue
        is_folder = os.path.isdir(os.path.join(project.root, path))
        if is_folder or "*" in path or os.path.isfile(os.path.join(project.root, path)):
            yield Fact(f"{path}/" if is_folder else path, ".gitattributes", "generated")


def _grouped(project: ProjectFiles, made: set[str]) -> Iterator[Fact]:
    """Generated files by folder, where they have one for themselves; else by ending; else by name."""
    written = {
        folder
        for file in project.files
        if made and file.path not in made and (language_of(file.path) or file.path.endswith(SCHEMAS))
        for folder in _above(file.path)
    }
    shown: Counter[str] = Counter()
    for path in sorted(made):
        alone = [folder for folder in _above(path) if folder not in written]
        shown[f"{min(alone, key=len)}/" if alone else path] += 1
    endings: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in [path for path in shown if not path.endswith("/")]:
        folder, name = os.path.split(path)
        endings[folder, name[name.find(".", 1) :]].append(path)
    for (folder, ending), paths in endings.items():
        if len(paths) > 2 and ending.count(".") > 1:
            for path in paths:
                del shown[path]
            shown[os.path.join(folder, f"*{ending}")] = len(paths)
    for text, _ in sorted(shown.most_common(MOST), key=lambda one: (-one[1], one[0])):
        if text.isprintable():
            yield Fact(text, text, "generated")


def _above(path: str) -> Iterator[str]:
    while path := os.path.dirname(path):
        yield path
