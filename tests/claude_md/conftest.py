"""What the tests of CLAUDE.md begin with."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from backstory.claude_md.write import writer
from tests.conftest import Run
from tests.helpers.claude_md_project import TEMPLATE, commit, run_git, write
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
                    {"name": name, "description": f"The {name} of it"}
                ),
                **{f"packages/{name}/src/part{number}.ts": "export {};\n" for number in range(20)},
            },
        )
    run_git(root, "init", "-q")
    commit(root, "feat: begin")
    return root


@pytest.fixture
def ready(run: Run, project: Path) -> Path:
    """An initialised project, at rest."""
    assert run("init", "--yes", "--offline", "--no-subtrees").code == 0
    commit(project, "docs: describe the project")
    assert run("sync", "--yes").code == 0
    return project
