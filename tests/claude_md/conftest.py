"""What the tests of CLAUDE.md begin with."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from backstory.claude_md.read import parse_pool
from backstory.claude_md.write import writer
from tests.conftest import Run
from tests.helpers.claude_md_project import TEMPLATE, commit, make, run_git, write
from tests.helpers.claude_md_writer import NOW, TEXT, Show
from tests.helpers.managed_file import Desk


@pytest.fixture
def file(project: str) -> Path:
    path = Path(project, "CLAUDE.md")
    path.write_bytes(TEXT)
    return path


@pytest.fixture
def show(project: str, data: Path) -> Show:
    return lambda views: writer.put_views(project, str(data), views, NOW)


@pytest.fixture
def desk(db: sqlite3.Connection, data: Path, project: str) -> Desk:
    file = Path(project, "CLAUDE.md")
    file.write_text(TEMPLATE)
    return Desk(db, data, file)


@pytest.fixture
def monorepo(tmp_path: Path) -> Path:
    root = tmp_path / "mono"
    write(root, {"package.json": json.dumps({"name": "mono", "workspaces": ["packages/*"]})})
    for name in ("api", "web"):
        write(
            root,
            {
                f"packages/{name}/package.json": json.dumps(
                    {"name": name, "description": f"The {name} of it", "scripts": {"dev": "vite"}}
                ),
                **{f"packages/{name}/src/part{number}.ts": "export {};\n" for number in range(20)},
            },
        )
    run_git(root, "init", "-q")
    commit(root, "feat: begin")
    return root


@pytest.fixture(autouse=True)
def one_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """These projects are small: to start a second child costs more than it saves."""
    monkeypatch.setattr(parse_pool, "CHILDREN", 1)


@pytest.fixture
def fixed_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that lies at the same path in every test, so that a copy of a store knows it."""
    folder = tmp_path_factory.getbasetemp() / "fixed-project"
    shutil.rmtree(folder, ignore_errors=True)
    return make(folder / "walrus")


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copies of projects in some state, and of their stores."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture
def initialised(run: Run, fixed_project: Path, data: Path, kept: Path) -> Path:
    """An initialised project; nothing of it is committed."""

    def begin() -> None:
        assert run("init", "--yes", "--offline", "--no-subtrees").code == 0

    return brought_to(begin, fixed_project, data, kept / "initialised")


@pytest.fixture
def ready(run: Run, fixed_project: Path, data: Path, kept: Path) -> Path:
    """An initialised project, at rest."""

    def begin() -> None:
        assert run("init", "--yes", "--offline", "--no-subtrees").code == 0
        commit(fixed_project, "docs: describe the project")
        assert run("sync", "--yes").code == 0

    return brought_to(begin, fixed_project, data, kept / "ready")


def brought_to(begin: Callable[[], None], project: Path, data: Path, kept: Path) -> Path:
    """The project in the state that `begin` leaves: that is done once, and then copied."""
    if not kept.exists():
        begin()
        shutil.copytree(project, kept / "project", symlinks=True)
        shutil.copytree(data, kept / "data", symlinks=True)
    for path in project.iterdir():  # the folder itself stays: somebody is in it
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.copytree(kept / "project", project, symlinks=True, dirs_exist_ok=True)
    shutil.rmtree(data, ignore_errors=True)
    shutil.copytree(kept / "data", data, symlinks=True)
    return project
