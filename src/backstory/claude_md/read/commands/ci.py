"""The scripts of continuous integration, in the order in which they are written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from backstory.claude_md.read.commands.lines import LONGEST_SCRIPT, Script
from backstory.claude_md.read.manifests.folder import Folder, dig, table, word, words

WORKFLOWS = ".github/workflows"
MOST_OF_MATRIX = 20
MOST_FILES, MOST_STEPS, DEEPEST = 60, 1_000, 4  # a step counts for each folder that it is run in
LONGEST_VALUE = 200  # of a matrix
CHANGES = frozenset(("push", "pull_request", "pull_request_target", "merge_group"))
OTHERS = {
    ".gitlab-ci.yml": ("script",),
    ".circleci/config.yml": ("run",),
    "azure-pipelines.yml": ("script", "bash"),
    ".azure-pipelines.yml": ("script", "bash"),
    ".travis.yml": ("install", "before_script", "script"),
}
# What an action runs, where it says nothing else.
ACTIONS = {
    "golangci/golangci-lint-action": "golangci-lint run",
    "pre-commit/action": "pre-commit run --all-files",
    "j178/prek-action": "prek run --all-files",
    "astral-sh/ruff-action": "ruff check",
    "psf/black": "black --check .",
    "actions-rs/clippy-check": "cargo clippy",
    "auguwu/clippy-action": "cargo clippy",
    "denoland/deno-lint": "deno lint",
    "chartboost/ruff-action": "ruff check",
    "dominikh/staticcheck-action": "staticcheck ./...",
}
WINDOWS = re.compile(r"windows|win32|\bwin-", re.IGNORECASE)
OTHER_SHELLS = ("pwsh", "powershell", "cmd", "python")
ONLY_FOR_RELEASES = re.compile(r"refs/tags|event_name\s*==\s*'(?:release|schedule|workflow_dispatch)'")
EXPRESSION = re.compile(r"\$\{\{([^{}]{0,200})\}\}")


def scripts(root: Folder) -> Iterator[Script]:
    reader = _Reader(root)
    paths = [path for path in root.inside(WORKFLOWS) if path.endswith((".yml", ".yaml"))][:MOST_FILES]
    for path in paths:
        yield from reader.workflow(path, (), 0)
    for path, keys in OTHERS.items():
        is_left_behind = path == ".travis.yml" and paths  # by a project that has moved
        if root.has(path) and not is_left_behind:
            yield from reader.other(path, keys)


class _Reader:
    def __init__(self, root: Folder) -> None:
        self._root = root
        self._group = 0
        self._left = MOST_STEPS

    def workflow(self, path: str, about: tuple[str, ...], depth: int) -> Iterator[Script]:
        document = table(self._root.yaml(path))
        if not about and not _is_for_changes(document.get("on")):
            return
        stem = path.rpartition("/")[2].partition(".")[0]
        about = (*about, stem, word(document.get("name")))
        outer = word(dig(document, "defaults", "run", "working-directory"))
        sets = _set(document)
        for key, job in table(document.get("jobs")).items():
            self._left -= 1  # one that only calls others counts too
            if self._left > 0 and isinstance(job, dict):
                self._group += 1
                names = (*about, key, EXPRESSION.sub("", word(job.get("name"))))
                for script in self._job(path, job, names, outer, depth, sets):
                    yield replace(script, job=script.job or str(key))

    def _job(
        self,
        path: str,
        job: dict[str, Any],
        about: tuple[str, ...],
        outer: str,
        depth: int,
        sets: dict[str, str],
    ) -> Iterator[Script]:
        if _may_fail(job):
            return
        runner = job.get("runs-on")
        if WINDOWS.search(" ".join(words(runner))) or ONLY_FOR_RELEASES.search(word(job.get("if"))):
            return
        called = word(job.get("uses"))
        if called.startswith(f"./{WORKFLOWS}/") and depth < DEEPEST:
            yield from self.workflow(called.removeprefix("./"), about, depth + 1)
        folder = word(dig(job, "defaults", "run", "working-directory")) or outer
        matrix = table(dig(job, "strategy", "matrix"))
        sets = sets | _set(job)
        for script in self._steps(path, job.get("steps"), about, folder, matrix, depth):
            yield replace(script, sets={**sets, **script.sets})

    def _steps(
        self,
        path: str,
        steps: object,
        about: tuple[str, ...],
        outer: str,
        matrix: dict[str, Any],
        depth: int,
    ) -> Iterator[Script]:
        for step in steps if isinstance(steps, list) else ():
            if self._left <= 0:
                return
            uses = word(dig(step, "uses"))
            if ONLY_FOR_RELEASES.search(word(dig(step, "if"))) or _may_fail(step):
                continue
            names = (*about, EXPRESSION.sub("", word(dig(step, "name"))))
            if uses.startswith("./") and depth < DEEPEST:
                inner = self._action(uses.removeprefix("./").rstrip("/"))
                self._left -= 1
                if inner:
                    steps_of_it = dig(self._root.yaml(inner), "runs", "steps")
                    yield from self._steps(inner, steps_of_it, names, outer, {}, depth + 1)
                continue
            text = word(dig(step, "run")) or _of_action(uses, table(dig(step, "with")))
            shell = word(dig(step, "shell")).split()[:1]
            for place in _each(word(dig(step, "working-directory")) or outer, matrix):
                folder = _folder(place)
                self._left -= 1
                if text and folder is not None and not {*shell} & {*OTHER_SHELLS}:
                    yield Script(_filled(text, matrix), path, folder, names, self._group, _set(step))

    def _action(self, folder: str) -> str | None:
        return next(
            (path for name in ("action.yml", "action.yaml") if self._root.has(path := f"{folder}/{name}")),
            None,
        )

    def other(self, path: str, keys: tuple[str, ...]) -> Iterator[Script]:
        """Every script of a file of another service, wherever it stands."""
        waiting: list[tuple[tuple[str, ...], object, int]] = [((), self._root.yaml(path), 0)]
        while waiting and self._left > 0:
            about, value, depth = waiting.pop()
            self._left -= 1
            if isinstance(value, list):
                waiting += [(about, inner, depth + 1) for inner in value[:500][::-1] if depth < 12]
            elif isinstance(value, dict):
                self._group += 1
                about = (*about, word(value.get("stage")), word(value.get("name")))
                folder = _folder(word(value.get("working_directory") or value.get("workingDirectory")))
                for key in keys:
                    text = _text(value.get(key)) or _text(dig(value, key, "command"))
                    if text and folder is not None:
                        yield Script(text, path, folder, about, self._group)
                inside = [
                    ((*about, key), inner, depth + 1) for key, inner in value.items() if key not in keys
                ]
                waiting += inside[:500][::-1] if depth < 12 else []


def _is_for_changes(on: object) -> bool:
    """A workflow that looks at what developers change; not one for releases, or by the clock."""
    if isinstance(on, dict):
        pushed = table(on.get("push"))
        only_tags = "tags" in pushed and "branches" not in pushed
        return bool(CHANGES.intersection(key for key in on if key != "push" or not only_tags))
    return bool(CHANGES.intersection(words(on)))


def _set(around: object) -> dict[str, str]:
    """The variables that a workflow, a job or a step sets."""
    return {name: word(value) for name, value in table(dig(around, "env")).items()}


def _may_fail(what: object) -> bool:
    """What need not pass checks nothing."""
    return word(dig(what, "continue-on-error")) == "true"


def _of_action(uses: str, given: dict[str, Any]) -> str:
    name = uses.partition("@")[0]
    if name.lower() == "actions-rs/cargo":
        return f"cargo {word(given.get('command'))} {word(given.get('args'))}".strip()
    if name == "ruby/setup-ruby" and word(given.get("bundler-cache")) == "true":
        return "bundle install"
    if name == "astral-sh/ruff-action" and (arguments := word(given.get("args"))):
        return f"ruff {arguments}"
    return ACTIONS.get(name.lower(), "")


def _filled(text: str, matrix: dict[str, Any]) -> str:
    """With the values of the matrix that have only one."""

    def value(found: re.Match[str]) -> str:
        given = _values(found, matrix)
        return given[0] if len(given) == 1 and "$" not in given[0] else found[0]

    return EXPRESSION.sub(value, text[:LONGEST_SCRIPT]) if "${{" in text else text


def _each(path: str, matrix: dict[str, Any]) -> list[str]:
    """The folders that a matrix names."""
    found = EXPRESSION.fullmatch(path.strip().removeprefix("./"))
    given = _values(found, matrix) if found else []
    return given[:MOST_OF_MATRIX] or [_filled(path, matrix)]


def _values(found: re.Match[str], matrix: dict[str, Any]) -> list[str]:
    """What the matrix has for an expression."""
    name = found[1].strip()
    given = words(matrix.get(name.removeprefix("matrix."))) if name.startswith("matrix.") else []
    return [value for value in given if len(value) <= LONGEST_VALUE]


def _folder(path: str) -> str | None:
    path = re.sub(
        r"^\$\{\{\s*github\.workspace\s*\}\}/?|^\$(?:GITHUB_WORKSPACE|CI_PROJECT_DIR)/?|^~/project/?",
        "",
        path,
    )
    path = re.sub(r"^(\./)+", "", path.strip()).rstrip("/")
    return None if "$" in path or path.startswith(("/", "..", "~")) else "" if path == "." else path


def _text(value: object) -> str:
    """A script, or a list of lines, which may hold lists that it was given by reference."""
    if isinstance(value, str):
        return value
    lines: list[str] = []
    waiting = [value]
    for _ in range(300):  # what refers to what refers to others has no end
        if not waiting:
            break
        inner = waiting.pop()
        if isinstance(inner, str):
            lines.append(inner[:LONGEST_SCRIPT])
        elif isinstance(inner, list):
            waiting += inner[:500][::-1]
    return "\n".join(lines)
