"""setup.py and noxfile.py, read and never run."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Iterator


def setup(module: ast.Module | None) -> dict[str, list[str]]:
    """The strings that setup() is given by keyword, also by way of names and sums of lists."""
    if module is None:
        return {}
    names = {
        target.id: node.value
        for node in module.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and _last_name(node.func) == "setup":
            try:
                return {
                    word.arg: list(_strings(word.value, dict(names))) for word in node.keywords if word.arg
                }
            except RecursionError:
                return {}
    return {}


def sessions(module: ast.Module | None) -> tuple[list[tuple[str, str]], list[str]]:
    """The nox sessions, by name, with what they run; and what all of them install."""
    found: list[tuple[str, str]] = []
    installed: list[str] = []
    for node in ast.walk(module) if module else ():
        if isinstance(node, ast.FunctionDef):
            recipe = "\n".join(shlex.join(line) for line in _calls(node, "run"))
            names = (name for decorator in node.decorator_list if (name := _session(node.name, decorator)))
            found += [(name, recipe) for name in names]
        elif isinstance(node, ast.Call) and _last_name(node.func) in ("install", "conda_install"):
            installed += _words(node)
    return found, installed


def _calls(node: ast.AST, name: str) -> Iterator[list[str]]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and _last_name(inner.func) == name:
            yield _words(inner)


def _words(node: ast.Call) -> list[str]:
    return [
        word.value for word in node.args if isinstance(word, ast.Constant) and isinstance(word.value, str)
    ]


def _session(name: str, decorator: ast.expr) -> str | None:
    if isinstance(decorator, ast.Call):
        for word in decorator.keywords:
            if word.arg == "name" and isinstance(word.value, ast.Constant):
                name = str(word.value.value)
        decorator = decorator.func
    return name if _last_name(decorator) == "session" else None


def _strings(node: ast.expr, names: dict[str, ast.expr]) -> Iterator[str]:
    """The strings in an expression, of a dict only those in its values. Each name is looked up once."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.List(elts=nodes) | ast.Tuple(elts=nodes) | ast.Set(elts=nodes) | ast.Dict(values=nodes):
            for each in nodes:
                yield from _strings(each, names)
        case ast.BinOp(left=left, right=right):
            yield from _strings(left, names)
            yield from _strings(right, names)
        case ast.Starred(value=inner):
            yield from _strings(inner, names)
        case ast.Name(id=name) if name in names:
            yield from _strings(names.pop(name), names)


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
