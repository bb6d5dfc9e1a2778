"""Which sections a changed path bears on."""

from __future__ import annotations

import pytest

from backstory.claude_md.affected import affected, bears_on

ROOT = "/home/walrus"
SOURCE = {"architecture", "conventions", "patterns"}


def sections_for(paths: list[str], root: str) -> dict[str, list[str]]:
    return affected(paths, root, ["CLAUDE.md"]).get("CLAUDE.md", {})


def sections(*paths: str) -> set[str]:
    return set(sections_for([f"{ROOT}/{path}" for path in paths], ROOT))


@pytest.mark.parametrize(
    "path",
    """package.json Makefile vite.config.ts jest.config.js Dockerfile Dockerfile.dev pyproject.toml Cargo.toml
    go.mod pom.xml build.gradle.kts composer.json Gemfile justfile tox.ini noxfile.py compose.yaml
    docker-compose.yml .github/workflows/test.yml .gitlab-ci.yml requirements-dev.txt uv.lock tsconfig.json
    packages/api/package.json""".split(),
)
def test_what_says_how_to_build_bears_on_the_build_commands(path: str) -> None:
    assert "build-commands" in sections(path)


@pytest.mark.parametrize("path", ["src/a.py", "src/deep/er/a.ts", "lib/a.go", "walrus/tusk.py", "app/a.rb"])
def test_source_in_a_folder_bears_on_architecture_and_conventions(path: str) -> None:
    assert sections(path) == SOURCE


def test_all_of_lib_is_architecture_also_what_is_no_source() -> None:
    assert sections("lib/schema.graphql") == {"architecture"}
    assert sections("src/schema.graphql") == set()


@pytest.mark.parametrize("path", ["tests/test_a.py", "setup_walrus.py", "docs/conf.py", "examples/a.js"])
def test_source_beside_the_source_bears_on_conventions_only(path: str) -> None:
    assert sections(path) == SOURCE - {"architecture"}


@pytest.mark.parametrize("path", ["LICENSE", "CHANGELOG.md", "docs/guide.md", "logo.png", ".editorconfig"])
def test_everything_else_bears_on_nothing(path: str) -> None:
    assert sections(path) == set()


@pytest.mark.parametrize("path", ["README.md", "readme.rst", "package.json", "pyproject.toml"])
def test_what_describes_the_project_bears_on_its_description(path: str) -> None:
    assert "project-description" in sections(path)
    assert "project-description" not in sections(f"docs/{path}")


@pytest.mark.parametrize("path", ["src/README.md", "pnpm-workspace.yaml", "go.work"])
def test_what_says_what_a_folder_is_bears_on_the_architecture(path: str) -> None:
    assert "architecture" in sections(path)


def test_a_folder_that_went_counts_as_the_source_that_was_in_it() -> None:
    assert sections("src/feeding") == SOURCE
    assert sections("feeding") == SOURCE


def test_a_folder_bears_on_all_files_in_it_and_the_root_on_everything() -> None:
    places = ["CLAUDE.md", "packages/api/CLAUDE.md", "packages/web/CLAUDE.md", "tools/CLAUDE.md"]
    module = {"module-description", "architecture", "conventions"}
    found = affected([f"{ROOT}/packages"], ROOT, places)
    assert {place: set(names) for place, names in found.items()} == {
        "CLAUDE.md": SOURCE,
        "packages/api/CLAUDE.md": module,
        "packages/web/CLAUDE.md": module,
    }
    found = affected([ROOT, f"{ROOT}/"], ROOT, places)
    assert set(found) == set(places)
    assert found["CLAUDE.md"] == {name: ["."] for name in {"project-description", "build-commands"} | SOURCE}
    assert bears_on(f"{ROOT}/tools/a.txt", ROOT, places) == ["CLAUDE.md", "tools/CLAUDE.md"]
    assert bears_on("/elsewhere", ROOT, places) == []


def test_a_section_knows_each_path_that_bears_on_it_once_and_in_order() -> None:
    paths = [f"{ROOT}/src/b.py", f"{ROOT}/Makefile", f"{ROOT}/src/a.py", f"{ROOT}/src/b.py"]
    found = sections_for(paths, ROOT)
    assert found["architecture"] == ["src/b.py", "src/a.py"]
    assert found["build-commands"] == ["Makefile"]


def test_what_lies_outside_of_the_project_bears_on_nothing() -> None:
    assert sections_for(["/home/walrus-2/src/a.py", "/home", "src/a.py"], ROOT) == {}
    assert sections_for(["/src/a.py"], "/") == {name: ["src/a.py"] for name in SOURCE}


def test_names_with_spaces_quotes_and_other_scripts_are_names() -> None:
    assert sections('src/it\'s "a" morse/Шланг 海象.py') == SOURCE


def test_a_path_bears_on_the_root_and_on_the_nearest_file_above_it() -> None:
    places = [
        "CLAUDE.md",
        "packages/api/CLAUDE.md",
        "packages/api/core/AGENTS.md",
        "packages/apiary/CLAUDE.md",
    ]
    found = affected([f"{ROOT}/packages/api/core/a.py"], ROOT, places)
    assert set(found) == {"CLAUDE.md", "packages/api/core/AGENTS.md"}
    assert set(found["CLAUDE.md"]) == SOURCE
    assert found["packages/api/core/AGENTS.md"] == {
        "architecture": ["packages/api/core/a.py"],
        "conventions": ["packages/api/core/a.py"],
    }
    assert set(affected([f"{ROOT}/packages/api/b.py"], ROOT, places)) == {
        "CLAUDE.md",
        "packages/api/CLAUDE.md",
    }


@pytest.mark.parametrize("path", ["README.md", "package.json", "__init__.py", "Makefile"])
def test_what_describes_a_module_bears_on_its_description(path: str) -> None:
    found = affected([f"{ROOT}/api/{path}"], ROOT, ["CLAUDE.md", "api/CLAUDE.md"])
    assert "module-description" in found["api/CLAUDE.md"]
    assert "project-description" not in found["CLAUDE.md"]
    deeper = affected([f"{ROOT}/api/deep/{path}"], ROOT, ["api/CLAUDE.md"])
    assert "module-description" not in deeper.get("api/CLAUDE.md", {})
