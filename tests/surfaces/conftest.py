"""What several files of this folder need: a server for each of them, and a tree about a walrus."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backstory.docmem import tree
from backstory.docmem.tree import Made
from backstory.model import Node
from tests.helpers.handbook import HANDBOOK, THEN, opened
from tests.helpers.mcp_client import Server, serving


@pytest.fixture(scope="session")
def memory_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path, Path]]:
    folder = tmp_path_factory.mktemp("mcp")
    link = folder / "project"
    (folder / "nowhere").mkdir()
    link.symlink_to(folder / "nowhere")
    with serving(folder / "data", link) as server:
        yield server, folder / "data", link


@pytest.fixture(scope="session")
def docmem_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path, Path]]:
    folder = tmp_path_factory.mktemp("docmem")
    link = folder / "project"
    for name in ("nowhere", "here"):
        (folder / name).mkdir()
    link.symlink_to(folder / "nowhere")
    with serving(folder / "data", link, server="docmem", cwd=folder / "here") as server:
        yield server, folder / "data", link


@pytest.fixture
def build(data: Path, project: str) -> Callable[..., Node]:
    """A tree in the project's store."""

    def built(made: list[Made], folder: str = project) -> Node:
        with opened(data, folder) as (db, here):
            return tree.build(db, here, made, now=THEN)

    return built


@pytest.fixture
def handbook(build: Callable[..., Node]) -> Node:
    return build(HANDBOOK)
