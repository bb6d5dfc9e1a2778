"""Where an import leads: the standard library, somebody else's package, or the project itself."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backstory.claude_md.read.files import ProjectFiles
from backstory.claude_md.read.manifests.folder import table, toml

if TYPE_CHECKING:
    from backstory.claude_md.read.grammars import Import

STDLIB, EXTERNAL, INTERNAL = range(3)
ORDER = "stdlib, external, internal"
MOST_MANIFESTS, MANIFEST_BYTES = 200, 1_000_000  # read at most

# What newer versions dropped is still no package; and `test` is nearly always the project's own.
PYTHON = (
    sys.stdlib_module_names
    | set(
        """aifc asynchat asyncore audioop binhex cgi cgitb chunk crypt distutils imghdr imp lib2to3 mailcap
        msilib nis nntplib ossaudiodev pipes smtpd sndhdr spwd sunau telnetlib uu xdrlib""".split()
    )
) - {"test"}
NODE = frozenset(
    """assert async_hooks buffer child_process cluster console constants crypto dgram diagnostics_channel dns
    domain events fs http http2 https inspector module net os path perf_hooks process punycode querystring
    readline repl stream string_decoder sys timers tls trace_events tty url util v8 vm wasi worker_threads
    zlib""".split()
)
RUST = frozenset(("std", "core", "alloc", "proc_macro", "test"))
RUST_OWN = frozenset(("crate", "self", "super"))
GO_MODULE = re.compile(r"^module[ \t]+\"?([^\s\"]+)", re.MULTILINE)
TEST_FOLDERS = frozenset(("test", "tests", "__tests__", "testing"))


@dataclass(frozen=True, slots=True)
class Own:
    """The names under which a project's own code is imported."""

    files: frozenset[str]
    packages: frozenset[str]  # of Python: folders with an __init__.py, and modules beside them
    modules: tuple[str, ...]  # of Go
    crates: frozenset[str]  # of Rust


def own(project: ProjectFiles) -> Own:
    files = frozenset(file.path for file in project.files)
    python = [path for path in files if path.endswith((".py", ".pyi"))]
    packages = {package(path, files) for path in python}
    packages |= {path.rpartition("/")[2].partition(".")[0] for path in python if _folder(path) in ("", "src")}
    go = _manifests(project, "go.mod")
    cargo = [toml(text) for text in _manifests(project, "Cargo.toml")]
    crates = {
        str(table(manifest.get(part)).get("name", "")).replace("-", "_")
        for manifest in cargo
        for part in ("package", "lib")
    }
    return Own(
        files,
        frozenset(packages - {""}),
        tuple(match[1] for text in go if (match := GO_MODULE.search(text))),
        frozenset(crates - {""}),
    )


def package(path: str, files: frozenset[str]) -> str:
    """The top-level package that a Python file belongs to; empty if to none."""
    folder, top = _folder(path), ""
    while folder and (f"{folder}/__init__.py" in files or f"{folder}/__init__.pyi" in files):
        folder, _, top = folder.rpartition("/")
    folders = folder.split("/")
    if not top and "src" in folders[:-1]:
        top = folders[folders.index("src") + 1]  # a namespace has no __init__.py
    return top


def python_style(path: str, imports: Iterable[Import], own: Own) -> list[tuple[str, str]]:
    """`absolute` or `relative` for each import of the file's own package, with the statement."""
    mine = package(path, own.files)
    if mine in TEST_FOLDERS:
        return []
    return [
        ("relative" if each["target"].startswith(".") else "absolute", each["said"])
        for each in imports
        if each["target"].startswith(".") or (mine and each["target"].partition(".")[0] == mine)
    ]


def in_order(
    language: str, path: str, imports: Sequence[Import], modules: Sequence[str], own: Own
) -> bool | None:
    """Whether the groups of a file's imports stand in the order; None where there are not two groups."""
    found = [_group(language, path, each["target"], modules, own) for each in imports if each["top"]]
    groups = [group for group in found if group is not None]
    return groups == sorted(groups) if len(set(groups)) > 1 else None


def _group(language: str, path: str, target: str, modules: Sequence[str], own: Own) -> int | None:
    """None for what says nothing."""
    if language == "python":
        return _python(path, target, own)
    if language == "go":
        return _go(target, own)
    if language == "rust":
        return _rust(target, modules, own)
    if target.startswith((".", "/", "~/", "@/", "#")):
        return INTERNAL
    return STDLIB if target.startswith("node:") or target.partition("/")[0] in NODE else EXTERNAL


def _python(path: str, target: str, own: Own) -> int:
    first = target.partition(".")[0]
    if first in PYTHON:
        return STDLIB
    beside = _folder(path) + "/" + first
    own_name = not first or first in own.packages or f"{beside}.py".lstrip("/") in own.files
    return INTERNAL if own_name else EXTERNAL


def _go(target: str, own: Own) -> int | None:
    if target == "C":
        return None  # a comment in disguise
    if any(f"{target}/".startswith(f"{module}/") for module in own.modules):
        return INTERNAL
    return EXTERNAL if "." in target.partition("/")[0] else STDLIB


def _rust(target: str, modules: Sequence[str], own: Own) -> int | None:
    first = re.split(r"\W", target.removeprefix("::"), maxsplit=1)[0]
    if not first or first[0].isupper():
        return None  # a list of anything, or what an enum of this file has
    if first in RUST_OWN or first in own.crates or first in modules:
        return INTERNAL
    return STDLIB if first in RUST else EXTERNAL


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _manifests(project: ProjectFiles, name: str) -> list[str]:
    paths = [file.path for file in project.files if file.path.rpartition("/")[2] == name][:MOST_MANIFESTS]
    texts = []
    left = MANIFEST_BYTES
    for path in paths:
        text = project.text(path, 200_000) or ""
        left -= len(text)
        if left < 0:
            break
        texts.append(text)
    return texts
