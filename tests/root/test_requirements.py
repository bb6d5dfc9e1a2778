"""The lists in requirements/ say what pyproject.toml asks for, each with a version and hashes."""

from __future__ import annotations

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.conftest import REPOSITORY

LISTS = {"run": (), "dev": ("dev",), "docs": ("docs",), "audit": ("audit",)}
BUILD = ("hatchling",)


def _pinned(name: str) -> dict[str, list[tuple[str, int]]]:
    """By package: its versions (more than one where a Python needs another), and the hashes of each."""
    text = (REPOSITORY / "requirements" / f"{name}.txt").read_text()
    pinned: dict[str, list[tuple[str, int]]] = {}
    for package, version, rest in re.findall(
        r"^([\w.-]+)(?:\[\S+\])?==(\S+)(.*(?:\n .*)*)$", text, re.MULTILINE
    ):
        pinned.setdefault(canonicalize_name(package), []).append((version, rest.count("--hash=sha256:")))
    assert sum(len(versions) for versions in pinned.values()) == len(re.findall(r"^\S", text, re.MULTILINE))
    return pinned


@pytest.mark.parametrize("name", LISTS)
def test_every_package_that_is_asked_for_is_pinned_with_hashes(name: str) -> None:
    with (REPOSITORY / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    asked = list(project["dependencies"]) + [
        line for extra in LISTS[name] for line in project["optional-dependencies"][extra]
    ]
    pinned = _pinned(name)
    for requirement in map(Requirement, [*asked, *BUILD]):
        versions = pinned[canonicalize_name(requirement.name)]
        assert all(requirement.specifier.contains(version) for version, _ in versions), requirement
    assert all(hashes for versions in pinned.values() for _, hashes in versions)


@pytest.mark.parametrize("name", LISTS)
def test_no_list_names_an_index_or_an_address(name: str) -> None:
    text = (REPOSITORY / "requirements" / f"{name}.txt").read_text()
    assert not re.search(r"://|^\s*--(?!hash=)|@ ", text, re.MULTILINE)


def test_the_lists_agree_on_every_version() -> None:
    dev = _pinned("dev")
    for name in LISTS:
        for package, versions in _pinned(name).items():
            assert dev.get(package, versions) == versions, (name, package)
