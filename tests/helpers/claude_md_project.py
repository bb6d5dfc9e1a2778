"""A small project with a history, for the tests of CLAUDE.md, and a person at a terminal."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from backstory import dirty
from backstory.claude_md.write import sections

BACKSTORY = os.path.join(os.path.dirname(sys.executable), "backstory")
GIT = ("git", "-c", "user.name=W", "-c", "user.email=w@example.org", "-c", "init.defaultBranch=main")

FILES = {
    "pyproject.toml": """\
[build-system]
requires = ["hatchling"]

[project]
name = "walrus"
description = "Keeps walruses well fed."
dependencies = ["flask"]

[tool.pytest.ini_options]
testpaths = ["tests"]
""",
    "README.md": "# Walrus\n\nKeeps walruses.\n",
    "walrus/__init__.py": '"""Feeds walruses, and counts the fish."""\n',
    "tusks/__init__.py": (
        '"""Measures tusks, and says in time which of them have grown so long that somebody must look"""\n'
    ),
    "calls/__init__.py": (
        '"""Hears walruses call under water, and tells the voices of the young from those of the old"""\n'
    ),
    "shores/__init__.py": (
        '"""Maps where walruses lie ashore, by month, and how near a boat may pass before they flee"""\n'
    ),
    "tusks/size.py": "LONGEST = 100\n",
    "tusks/age.py": "OLDEST = 40\n",
    "tests/feeding_test.py": "def test_it_is_fed():\n    assert True\n",
}
MODULE = '''\
"""How number {number} is fed."""

import os

import flask

MOST_FISH = 3


class FishBucket:
    def takeFish(self) -> str:
        return "herring"


def feedWalrus(count: int) -> str:
    return os.sep + "fish" * count
'''
# A small file with sections that nobody has filled yet.
TEMPLATE = """# api

<!-- AUTO-MANAGED: build-commands -->
<!-- END AUTO-MANAGED -->

<!-- AUTO-MANAGED: patterns -->
<!-- END AUTO-MANAGED -->

<!-- MANUAL -->
Mine.
<!-- END MANUAL -->
"""
MINE = "# My notes\n\nDo not feed it *squid*.\n\n```sh\nmake\n```\n"
NOTICE = "Changes are tracked from now on"
NEW_COMMAND = "\n[tool.ruff]\nfix = false\n"


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def make(root: Path, *, git: bool = True) -> Path:
    """A Python project, committed."""
    if git:
        shutil.copytree(Path(_committed().name, "walrus"), root, symlinks=True, dirs_exist_ok=True)
    else:
        _lay(root)
    return root


def _lay(root: Path) -> None:
    write(root, FILES)
    write(root, {f"walrus/feeding_{number}.py": MODULE.format(number=number) for number in range(12)})
    write(root, {f"tests/feeding_{number}_test.py": FILES["tests/feeding_test.py"] for number in range(6)})


@cache
def _committed() -> TemporaryDirectory[str]:
    """The project with its history, made once: a copy takes a tenth of the time."""
    kept = TemporaryDirectory(prefix="walrus-")
    root = Path(kept.name, "walrus")
    _lay(root)
    run_git(root, "init", "-q")
    shutil.rmtree(root / ".git" / "hooks", ignore_errors=True)  # samples
    commit(root, "feat: keep walruses")
    for number in range(7):
        for name in ("walrus/feeding_1", "tusks/size"):  # they belong together
            with open(root / f"{name}.py", "a") as file:
                file.write(f"# meal {number}\n")
        commit(root, f"fix: serve meal {number} in time")
    return kept


def run_git(root: Path, *command: str) -> str:
    done = subprocess.run([*GIT, "-C", str(root), *command], capture_output=True, text=True, check=True)
    return done.stdout


def commit(root: Path, message: str) -> None:
    run_git(root, "add", "-A")
    run_git(root, "commit", "-qm", message)


def snapshot(root: Path) -> dict[str, bytes]:
    """Every file of a folder but git's own."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(root).parts
    }


def text(project: Path, name: str = "CLAUDE.md") -> str:
    return (project / name).read_text("utf-8")


def names(project: Path, name: str = "CLAUDE.md") -> list[str]:
    return [section.name for section in sections.parse((project / name).read_bytes()).sections]


def change(project: Path, name: str, added: str, *, listed: bool = True) -> None:
    """What somebody does, a moment before anything else: what was just done is looked at twice."""
    path = project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(added)
    if listed:
        dirty.append(str(project), [str(path)])
    time.sleep(0.05)


def section(project: Path, name: str, file: str = "CLAUDE.md") -> str:
    return sections.get((project / file).read_bytes(), name)
