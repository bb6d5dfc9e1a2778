"""One folder of a project, and parsers for what is in it that no content makes fail, hang or run anything."""

from __future__ import annotations

import ast
import json
import re
import tomllib
import warnings
from collections.abc import Iterator
from itertools import islice
from typing import Any
from xml.etree import ElementTree

from backstory.claude_md.read.files import ProjectFiles

SMALL = 200_000  # what somebody writes by hand is shorter
MOST_NODES, DEEPEST_YAML, MOST_MERGED = 50_000, 40, 1_000
# Folders are named in commands that people copy, and in notes to a model.
_NAME = r"[\w.@+()\[\]#,~=][\w.@+()\[\]#,~= -]{0,99}"
PLAIN = re.compile(rf"(?:{_NAME}(?:/{_NAME})*)?")
Index = dict[str, frozenset[str]]


def index(project: ProjectFiles) -> Index:
    """The names of the files directly in each folder with a plain name; the root is the empty string."""
    folders: dict[str, set[str]] = {"": set()}
    for file in project.files:
        folder, _, name = file.path.rpartition("/")
        while folder not in folders:
            folders[folder] = set()
            folder = folder.rpartition("/")[0]
        folders[file.path.rpartition("/")[0]].add(name)
    return {folder: frozenset(names) for folder, names in folders.items() if PLAIN.fullmatch(folder)}


class Folder:
    """A folder as a reader of manifests sees it. What is missing or broken is empty."""

    def __init__(self, project: ProjectFiles, folders: Index, path: str = "", manager: str = "") -> None:
        self._project = project
        self._folders = folders
        self._path = path
        self.manager = manager  # of packages, where the root of a workspace says so for its members
        self.names = folders.get(path, frozenset())

    def inside(self, path: str) -> list[str]:
        """The files directly in a folder below this one, as paths from here."""
        return [
            f"{path}/{name}" if path else name
            for name in sorted(self._folders.get(self._from_root(path), ()))
        ]

    def folders(self, path: str) -> list[str]:
        """The names of the folders directly in a folder below this one."""
        start = self._from_root(path)
        start += "/" if start else ""
        inside = (folder[len(start) :] for folder in self._folders if folder.startswith(start))
        return sorted(name for name in inside if "/" not in name)

    def has(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        return name in self._folders.get(self._from_root(folder), ())

    def any_below(self, folder: str, ending: str) -> bool:
        return next(self.below(folder, ending), None) is not None

    def below(self, folder: str, ending: str) -> Iterator[str]:
        """The files in a folder, of any depth, whose names end so."""
        start, here = self._from_root(folder), self._from_root("")
        for path, names in self._folders.items():
            if not start or path == start or path.startswith(start + "/"):
                inner = path.removeprefix(here).lstrip("/")
                yield from (f"{inner}/{name}" if inner else name for name in names if name.endswith(ending))

    def first(self, *names: str) -> str | None:
        return next((name for name in names if name in self.names), None)

    def text(self, path: str, most: int = SMALL) -> str:
        return self._project.text(self._from_root(path), most) or "" if self.has(path) else ""

    def json(self, path: str) -> dict[str, Any]:
        try:
            return table(json.loads(self.text(path, 1_000_000)))
        except (ValueError, RecursionError):
            return {}

    def toml(self, path: str) -> dict[str, Any]:
        return toml(self.text(path))

    def ini(self, path: str) -> dict[str, dict[str, str]]:
        return ini(self.text(path))

    def yaml(self, path: str) -> object:
        return yaml(self.text(path))

    def xml(self, path: str) -> ElementTree.Element | None:
        text = self.text(path, 1_000_000)
        if "<!DOCTYPE" in text or "<!ENTITY" in text:  # manifests have none, and entities can grow
            return None
        try:
            return ElementTree.fromstring(text)  # noqa: S314 (no DTD, no entities: see above)
        except (ElementTree.ParseError, ValueError):
            return None

    def python(self, path: str) -> ast.Module | None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(self.text(path))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None

    def _from_root(self, path: str) -> str:
        return "/".join(part for part in (self._path, path) if part)


def table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def words(value: object) -> list[str]:
    """The strings of a list, or a single one."""
    if isinstance(value, str):
        return [value]
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else []


def word(value: object) -> str:
    return value if isinstance(value, str) else ""


def dig(value: object, *keys: str) -> Any:
    """What lies below these keys; None where one is missing."""
    for key in keys:
        value = table(value).get(key)
    return value


def toml(text: str) -> dict[str, Any]:
    """A table; empty where it is broken."""
    # The time that tomllib takes grows with the square of a dotted key. Only a line feed ends one: a quoted
    # part of it may hold whatever else Python takes for the end of a line.
    if any(line.count(".") > 200 for line in text.split("\n") if not line.startswith("#")):
        return {}
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return {}


def ini(text: str) -> dict[str, dict[str, str]]:
    """Sections of keys; lines that go on stay lines. (configparser takes its time with hostile ones.)"""
    sections: dict[str, dict[str, str]] = {}
    section: dict[str, str] = {}
    key = ""
    for line in text.splitlines():
        bare = line.strip()
        if not bare or bare[0] in "#;":
            continue
        if line[0] in " \t" and key:
            section[key] += "\n" + bare
        elif bare[0] == "[" and "]" in bare:
            section = sections.setdefault(bare[1 : bare.rindex("]")].strip(), {})
            key = ""
        else:
            at = min((bare.find(sign) for sign in "=:" if sign in bare), default=len(bare))
            key = bare[:at].strip()
            section[key] = bare[at + 1 :].strip()
    return sections


def yaml(text: str) -> object:
    """Mappings, lists and strings: nothing in it is taken for a number or a truth, so that `on` is a key as
    any other. None where it is broken, or larger than anybody writes.

    It is built from the events of the parser: a loader follows nested lists by recursion, to the end of the
    stack of C, and a mapping that merges others that merge others can grow without end.
    """
    import yaml as pyyaml  # type: ignore[import-untyped]  # only here: few projects have such files

    loader = getattr(pyyaml, "CSafeLoader", pyyaml.SafeLoader)
    anchors: dict[str, object] = {}
    top: list[object] = []
    open_: list[tuple[list[object], str | None, bool]] = [(top, None, False)]  # (items, anchor, is a mapping)
    left = MOST_NODES
    try:
        for event in pyyaml.parse(text, Loader=loader):
            left -= 1
            kind = type(event).__name__
            if left < 0 or len(open_) > DEEPEST_YAML:
                return None
            if kind in ("MappingStartEvent", "SequenceStartEvent"):
                open_.append(([], event.anchor, kind == "MappingStartEvent"))
            elif kind in ("MappingEndEvent", "SequenceEndEvent"):
                items, anchor, is_mapping = open_.pop()
                value = _mapping(items) if is_mapping else items
                left -= len(value)
                if anchor:
                    anchors[anchor] = value
                open_[-1][0].append(value)
            elif kind == "ScalarEvent":
                if event.anchor:
                    anchors[event.anchor] = event.value
                open_[-1][0].append(event.value)
            elif kind == "AliasEvent":
                open_[-1][0].append(anchors.get(event.anchor))
    except (pyyaml.YAMLError, ValueError):
        return None
    return top[0] if top else None


def _mapping(items: list[object]) -> dict[str, object]:
    """Keys and values in turn; what `<<` names comes first."""
    pairs = [
        (key, value) for key, value in zip(items[::2], items[1::2], strict=False) if isinstance(key, str)
    ]
    merged: dict[str, object] = {}
    for key, value in pairs:
        for inner in value if isinstance(value, list) else [value]:
            if key == "<<" and isinstance(inner, dict) and len(merged) + len(inner) <= MOST_MERGED:
                merged |= inner
    return merged | {key: value for key, value in pairs if key != "<<"}


def braces(pattern: str) -> list[str]:
    """`{a,b}c` as `ac`, `bc`; at most a hundred."""
    return list(islice(_braces(pattern), 100)) if len(pattern) < 1_000 else [pattern]


def _braces(pattern: str) -> Iterator[str]:
    waiting = [pattern]
    while waiting:
        now = waiting.pop()
        found = re.search(r"\{([^{}]*)\}", now)
        if not found:
            yield now
            continue
        parts = found[1].split(",")
        waiting += [now[: found.start()] + part + now[found.end() :] for part in parts[:100][::-1]]
