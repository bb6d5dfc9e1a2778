"""Which folders are parts of a project, and which of them are worth a CLAUDE.md of their own."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from backstory.claude_md.read import subtrees
from backstory.claude_md.read.files import File, ProjectFiles, walk
from backstory.claude_md.read.manifests.folder import index
from tests.helpers.survey import Files, look, many, write

APPLICATION = json.dumps({"scripts": {"build": "vite build", "dev": "vite"}})
LIBRARY = json.dumps({"main": "dist/index.js", "scripts": {"dev": "tsc --watch"}})


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {"web/package.json": APPLICATION, **many("web/src", "ts")},
            {"web": "an application with commands of its own (`dev` in web/package.json)"},
        ),
        (
            {"server/go.mod": "module zoo\n", "server/main.go": "package main\n", **many("server/zoo", "go")},
            {"server": "an application with commands of its own (`main.go` in server/go.mod)"},
        ),
        (
            {"api/requirements.txt": "django\n", "api/manage.py": "", **many("api/zoo", "py")},
            {"api": "an application with commands of its own (`manage.py` in api/requirements.txt)"},
        ),
        (
            {"apps/zoo/Cargo.toml": "[package]", "apps/zoo/src/main.rs": "", **many("apps/zoo/src", "rs")},
            {"apps/zoo": "an application with commands of its own (`src/main.rs` in apps/zoo/Cargo.toml)"},
        ),
        (  # the tool of a workspace runs the programs of its members from the root
            {
                "Cargo.toml": '[workspace]\nmembers = ["zoo"]\n',
                "zoo/Cargo.toml": "[package]",
                "zoo/src/main.rs": "",
                **many("zoo/src", "rs"),
            },
            {},
        ),
        ({"web/package.json": APPLICATION, **many("web/src", "ts", 19)}, {}),
        ({"web/package.json": APPLICATION, **many("web/tests", "ts")}, {}),
        ({"web/package.json": LIBRARY, **many("web/src", "ts")}, {}),
        ({"web/package.json": "{}", **many("web/src", "ts")}, {}),
        ({"docs/package.json": APPLICATION, **many("docs/src", "ts")}, {}),
        ({"examples/web/package.json": APPLICATION, **many("examples/web", "ts")}, {}),
        ({"a/b/c/package.json": APPLICATION, **many("a/b/c/src", "ts")}, {}),
        ({"package.json": APPLICATION, **many("src", "ts")}, {}),
        ({**many("src/walrus", "py"), "src/walrus/__init__.py": ""}, {}),
    ],
)
def test_an_application_of_some_size_with_commands_of_its_own_is_worth_a_file(
    tmp_path: Path, files: Files, expected: dict[str, str]
) -> None:
    found = look(tmp_path, files)
    assert found.subtree_reasons == expected
    assert found.subtrees == tuple(expected)


def test_of_a_monorepo_applications_are_worth_a_file_and_libraries_are_not(tmp_path: Path) -> None:
    files = {
        "package.json": '{"workspaces": ["packages/*", "examples/*"]}',
        "packages/deep/zoo/package.json": "{}",
        "packages/shop/package.json": APPLICATION,
        "packages/lib/package.json": LIBRARY,
        "examples/one/package.json": APPLICATION,
        **many("packages/shop/src", "ts"),
        **many("packages/lib/src", "ts"),
        **many("examples/one/src", "ts"),
    }
    assert look(tmp_path, files).subtrees == ("packages/shop",)


def parts(root: Path, files: Files) -> tuple[str, ...]:
    project = write(root, files)
    found = look(root, {})
    return subtrees.parts(index(project), found.workspaces)


def test_a_part_has_a_manifest_in_the_first_or_second_folder(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": "",
        "front/package.json": "{}",
        "front/inner/package.json": "{}",
        "back/server/go.mod": "module x\n",
        "back/server/deep/go.mod": "module x\n",
        "deep/er/est/Cargo.toml": "",
        "tests/e2e/package.json": "{}",
        "Docs/package.json": "{}",
        ".hidden/package.json": "{}",
        "none/a.py": "",
        "odd\x1b/package.json": "{}",
    }
    assert parts(tmp_path, files) == ("back/server", "front")


def test_a_member_of_a_workspace_is_no_part_and_neither_is_what_was_left_out_of_it(tmp_path: Path) -> None:
    files = {
        "package.json": '{"workspaces": ["packages/*", "!packages/old"]}',
        "packages/one/package.json": "{}",
        "packages/one/inner/package.json": "{}",
        "packages/old/package.json": "{}",
        "packages/native/Cargo.toml": "",
        "server/go.mod": "module x\n",
    }
    assert parts(tmp_path, files) == ("packages/native", "server")


def test_many_members_take_no_longer_than_they_must() -> None:
    members = [f"packages/member{number}" for number in range(6_000)]
    tree = ProjectFiles("/nowhere", tuple(File(f"{path}/package.json", 1) for path in members))
    folders = index(tree)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subtrees, "sources", lambda tree: {"Python": tree.files})
        start = time.process_time()
        assert subtrees.subtrees(tree, folders, members[::-1], ()) == {}
        assert subtrees.parts(folders, members[::-1]) == ()
    assert time.process_time() - start < 2  # 0.1 here


def test_many_parts_take_no_longer_than_they_must() -> None:
    tree = ProjectFiles("/nowhere", tuple(File(f"p{n}/q/package.json", 1) for n in range(6_000)))
    start = time.process_time()
    assert len(subtrees.parts(index(tree), ())) == 6_000
    assert time.process_time() - start < 2


def test_a_path_of_a_part_stays_inside_the_project(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/package.json").write_text(APPLICATION)
    (tmp_path / "project").mkdir()
    (tmp_path / "project/web").symlink_to(tmp_path / "out")
    assert subtrees.parts(index(walk(str(tmp_path / "project"))), ()) == ()
