"""What init finds out about a project."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backstory.claude_md.read import subtrees
from backstory.claude_md.read.files import File, ProjectFiles
from backstory.claude_md.read.history import plain
from backstory.claude_md.read.manifests import frameworks
from backstory.claude_md.read.manifests.folder import braces, index, ini, yaml_list
from backstory.claude_md.read.manifests.manifest import role
from backstory.claude_md.read.manifests.tasks import MORE
from backstory.model import Survey
from tests.helpers.survey import PACKAGE, Files, facts, look, many


def test_an_empty_folder_says_its_name_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    assert look(tmp_path, {}) == Survey("project", "", (), (), (), (), (), ())


def test_a_command_names_the_file_that_says_so(tmp_path: Path) -> None:
    found = look(
        tmp_path,
        {
            "Makefile": "test:\n",
            "package.json": '{"scripts": {"build": "x"}}',
            "requirements-dev.txt": "pytest\n",
            "go.mod": "module a\n",
            ".github/workflows/a.yml": "- run: go vet ./...\n",
        },
    )
    sources = {command.line: command.source for command in found.commands}
    assert sources == {
        "make test": "Makefile",
        "npm run build": "package.json",
        "pytest": "requirements-dev.txt",
        "go build ./...": "go.mod",
        "go test ./...": "go.mod",
        "go vet ./...": ".github/workflows/a.yml",
    }
    assert [command.role for command in found.commands] == ["build", "build", "test", "test", "test", "lint"]


# Names and descriptions


def test_the_manifest_of_the_main_language_gives_the_name(tmp_path: Path) -> None:
    files = {
        "package.json": '{"name": "docs-tool", "description": "Builds the docs."}',
        "pyproject.toml": '[project]\nname = "walrus"\ndescription = "Counts\\n walruses."',
        "a.py": "x\n" * 100,
        "b.js": "x\n",
    }
    found = look(tmp_path, files)
    assert (found.name, found.description) == ("walrus", "Counts walruses.")


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({"go.mod": "module github.com/a/walrus/v3\n"}, "walrus"),
        ({"pom.xml": "<project><artifactId>walrus</artifactId></project>"}, "walrus"),
        ({"settings.gradle": "rootProject.name = 'walrus'\n"}, "walrus"),
        ({"Cargo.toml": '[package]\nname = "walrus"'}, "walrus"),
        ({"setup.cfg": "[metadata]\nname = walrus\n"}, "walrus"),
        ({"setup.py": "import setuptools\nsetuptools.setup(name='walrus')\n"}, "walrus"),
        ({"x.gemspec": 's.name = "walrus"\n'}, "walrus"),
        ({"a.py": ""}, "project"),
    ],
)
def test_a_name_is_found_wherever_it_is_kept(tmp_path: Path, files: Files, name: str) -> None:
    assert look(tmp_path, files).name == name


@pytest.mark.parametrize(
    ("readme", "text", "description"),
    [
        (
            "README.md",
            "# Walrus\n\n[![ci](x)](y)\n\nCounts **walruses**\nin [the sea](http://x).\n\nMore.\n",
            "Counts walruses in the sea.",
        ),
        (
            "README.rst",
            "======\nWalrus\n======\n\n.. image:: x\n   :target: y\n\nCounts `walruses <http://x>`_.\n",
            "Counts walruses.",
        ),
        (
            "README",
            "Walrus\n------\n\n1. one\n\n[English](a) | [Deutsch](b)\n\n```\ncode\n```\n\n`walrus` counts.\n",
            "`walrus` counts.",
        ),
        ("README.md", "<p align=center>\n<img>\n</p>\n", ""),
        (
            "README.md",
            "# README\n\nThis README would normally document whatever steps are necessary.\n\nThings:\n",
            "",
        ),
        ("README.md", "# React + Vite\n\nThis template provides a minimal setup to get React working.\n", ""),
        (
            "README.md",
            "This is a [Next.js](https://x) project bootstrapped with [`create-next-app`](https://y).\n",
            "",
        ),
        ("README.md", "This template provides walruses.\n", "This template provides walruses."),
        ("README.md", "", ""),
    ],
)
def test_without_a_manifest_the_readme_says_what_it_is(
    tmp_path: Path, readme: str, text: str, description: str
) -> None:
    assert look(tmp_path, {readme: text}).description == description


def test_names_and_descriptions_are_one_line_without_control_characters(tmp_path: Path) -> None:
    package = {"name": "wal\x1b[31mrus\n# x", "description": "a\u2028b\x00c " + "long words " * 100}
    found = look(tmp_path, {"package.json": json.dumps(package)})
    assert found.name == "wal [31mrus # x"
    assert found.description.startswith("a b c long words")
    assert found.description.endswith(" long…")
    assert len(found.description) <= 300


@given(st.text(max_size=500))
@example("x" * 400)
@example("x " * 400)
def test_plain_text_is_printable_and_short(text: str) -> None:
    assert plain(text, 300).isprintable()
    assert plain(plain(text, 300), 300) == plain(text, 300)


# Languages


def test_a_language_needs_a_twentieth_of_the_source(tmp_path: Path) -> None:
    files = {"a.go": "x" * 900, "b.py": "x" * 50, "c.sh": "x" * 49, "d.md": "x" * 9_000, "e.rs": "x"}
    assert look(tmp_path, files).languages == (("Go", 0.9), ("Python", 0.05))


def test_generated_minified_and_test_data_are_no_source(tmp_path: Path) -> None:
    files = {
        "a.py": "x = 1\n",
        "made.go": "// Code generated by x. DO NOT EDIT.\n" * 100,
        "all.min.js": "x" * 1_000,
        "tests/fixtures/a.rb": "x" * 1_000,
        "testdata/a.rs": "x" * 1_000,
        "node_modules/a.js": "x" * 1_000,
        "debian/a.pl": "x" * 1_000,
    }
    assert look(tmp_path, files).languages == (("Python", 1.0),)


def test_empty_source_has_no_share(tmp_path: Path) -> None:
    assert look(tmp_path, {"a.py": ""}).languages == ()


# Frameworks


def test_every_framework_of_the_tables_has_a_place_in_the_order() -> None:
    named = {name for known in frameworks.PACKAGES.values() for name in known.values()}
    named |= {"Next.js" if name == "Next" else name for name in frameworks.FILES.groupindex}
    assert named <= set(frameworks.NAMES)
    assert len(set(frameworks.NAMES)) == len(frameworks.NAMES)


@pytest.mark.parametrize(
    ("file", "framework"),
    [
        ("angular.json", "Angular"),
        ("next.config.mjs", "Next.js"),
        ("nuxt.config.ts", "Nuxt"),
        ("svelte.config.js", "Svelte"),
        ("nest-cli.json", "NestJS"),
        ("jest.config.ts", "Jest"),
        ("vitest.config.mts", "Vitest"),
        (".mocharc.yml", "Mocha"),
        (".taprc", "tap"),
        ("karma.conf.js", "Karma"),
        ("playwright.config.ts", "Playwright"),
        ("cypress.config.js", "Cypress"),
        ("phpunit.xml.dist", "PHPUnit"),
        (".rspec", "RSpec"),
        ("pytest.ini", "pytest"),
    ],
)
def test_a_configuration_file_gives_a_framework_away(tmp_path: Path, file: str, framework: str) -> None:
    assert look(tmp_path, {file: ""}).frameworks == (framework,)


@pytest.mark.parametrize(
    "files",
    [
        {"package.json": '{"name": "express", "devDependencies": {"express": "1"}}'},
        {"package.json": '{"name": "jest"}', "jest.config.js": ""},
        {"pyproject.toml": '[project]\nname = "pytest"\n[tool.pytest.ini_options]'},
        {"Cargo.toml": '[package]\nname = "serde"\n[dev-dependencies]\nserde = "1"'},
        {
            "build.gradle": "group = 'org.mockito'\ndependencies { api 'org.mockito:mockito-core:1' }\n",
            "settings.gradle": "rootProject.name = 'all'\n",
        },
    ],
)
def test_a_package_is_not_its_own_framework(tmp_path: Path, files: Files) -> None:
    assert look(tmp_path, files).frameworks == ()


@pytest.mark.parametrize("package", ["pytest-cov", "flask-sqlalchemy", "djangorestframework", "clickhouse"])
def test_a_package_that_only_sounds_like_a_framework_is_none(tmp_path: Path, package: str) -> None:
    assert look(tmp_path, {"requirements.txt": package + "\n"}).frameworks == ()


# Commands


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("test", "test"),
        ("test:unit", "test"),
        ("test-unit", None),
        ("type-check:all", "lint"),
        ("pretest", None),
        ("build:clean", None),
        ("build:all:clean", None),
        ("test:distclean", None),
        ("build:cleaner", "build"),
        ("tester", None),
        ("check", None),
        (":test", None),
        ("test:$(reboot)", None),
        ("test:a b", None),
        ("test:\n# x", None),
        ("test:" + "x" * 100, None),
        ("", None),
    ],
)
def test_the_role_of_a_script(name: str, expected: str | None) -> None:
    assert role(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("run", "run"), ("run-dev", "run"), ("run-tests", None), ("run-lint", None), ("dist-clean", None)],
)
def test_the_role_of_a_target(name: str, expected: str | None) -> None:
    assert role(name, separators=":-", more=MORE) == expected


MANAGE = "import os\nos.environ.setdefault('DJANGO_SETTINGS_MODULE', 'x')\nfrom django.core import x\n"
GO_MAIN = "package main\n\nfunc main() {}\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"manage.py": MANAGE}, "run: python manage.py runserver | test: python manage.py test"),
        (
            {"manage.py": MANAGE, "pytest.ini": "[pytest]\n"},
            "run: python manage.py runserver | test: pytest",
        ),
        ({"manage.py": "print('of a zoo')\n"}, ""),
        ({"Gemfile": "gem 'rails'\n", "bin/rails": "#!/usr/bin/env ruby\n"}, "run: bin/rails server"),
        ({"cmd/zoo/main.go": GO_MAIN, "cmd/zoo/a/b.go": "package a\n"}, "run: go run ./cmd/zoo"),
        ({"cmd/zoo/main.go": GO_MAIN, "main.go": GO_MAIN}, "run: go run ."),
        ({"cmd/zoo/main.go": GO_MAIN, "cmd/ark/main.go": GO_MAIN}, ""),
        ({"cmd/$(reboot)/main.go": GO_MAIN}, ""),
    ],
)
def test_what_a_program_is_run_with(tmp_path: Path, files: Files, expected: str) -> None:
    if any(path.endswith(".go") for path in files):
        files = {**files, "go.mod": "module zoo\n"}
    found = {f"{command.role}: {command.line}" for command in look(tmp_path, files).commands}
    assert found - {"build: go build ./...", "test: go test ./..."} == set(expected.split(" | ")) - {""}


def test_a_script_whose_name_would_do_more_than_it_seems_is_left_out(tmp_path: Path) -> None:
    scripts = {"test:`reboot`": "x", "build:a;b": "x", "lint:\u202egnp": "x", "start:ok": "x"}
    found = look(tmp_path, {"package.json": json.dumps({"scripts": scripts})})
    assert [command.line for command in found.commands] == ["npm run start:ok"]


def test_a_makefile_that_a_program_wrote_says_nothing(tmp_path: Path) -> None:
    found = look(tmp_path, {"Makefile": "# CMAKE generated file: DO NOT EDIT!\nall: x\n"})
    assert found.commands == ()


def test_manifests_further_down_tell_no_commands(tmp_path: Path) -> None:
    found = look(tmp_path, {"web/package.json": PACKAGE, "api/Makefile": "test:\n", "x/Dockerfile": ""})
    assert facts(found) == set()


def test_an_ignored_manifest_is_none(tmp_path: Path) -> None:
    found = look(tmp_path, {".gitignore": "package.json\n", "package.json": PACKAGE, "Makefile": "test:\n"})
    assert facts(found) == {"test: make test"}


# Subtrees


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (many("src", "ts"), ["src"]),
        (many("src", "ts", 19), []),
        (many("lib/deep/er", "js"), ["lib"]),
        ({**many("src/one", "py"), "src/one/__init__.py": ""}, ["src/one"]),
        ({**many("src/one", "py"), "src/one/__init__.py": "", "src/tool.py": "x\n"}, ["src"]),
        ({**many("src/one", "py"), "src/one/__init__.py": "", **many("src/two", "py")}, ["src"]),
        ({**many("src/main/java", "java"), **many("src/test/java", "java")}, ["src"]),
        ({**many("walrus", "py"), "walrus/__init__.py": ""}, ["walrus"]),
        (many("walrus", "py"), []),
        ({**many("tests", "py"), "tests/__init__.py": ""}, []),
        (many("docs", "py") | many("examples", "js"), []),
        (many("services/a", "go") | many("services/b", "go", 3) | many("cmd/x", "go"), ["cmd", "services/a"]),
        (many("src/tests", "ts"), []),
        ({f"app/test_{number}.py": "x\n" for number in range(30)}, []),
        (many("other/src", "py"), []),
    ],
)
def test_a_large_part_is_worth_a_file_of_its_own(tmp_path: Path, files: Files, expected: list[str]) -> None:
    assert list(look(tmp_path, files).subtrees) == expected


def test_members_that_are_large_stand_for_the_folder_around_them(tmp_path: Path) -> None:
    files = {
        "Cargo.toml": '[workspace]\nmembers = ["src/*", "examples"]',
        "src/a/Cargo.toml": "[package]",
        "src/b/Cargo.toml": "[package]",
        "examples/Cargo.toml": "[package]",
        **many("src/a", "rs"),
        **many("src/b", "rs", 3),
        **many("examples", "rs"),
    }
    assert look(tmp_path, files).subtrees == ("src/a",)


# Parsers


def test_many_members_take_no_longer_than_they_must() -> None:
    members = [f"packages/member{number}" for number in range(6_000)]
    tree = ProjectFiles("/nowhere", tuple(File(f"{path}/a.py", 1) for path in members))
    folders = index(tree)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subtrees, "sources", lambda tree: {"Python": tree.files})
        start = time.process_time()
        assert subtrees.subtrees(tree, folders, members[::-1]) == ()
    assert time.process_time() - start < 1  # 0.03 here, four otherwise


def test_a_list_in_yaml_is_read_in_both_notations() -> None:
    assert yaml_list("a:\n- x\n- 'y z'\nb:\n- no\n", "a") == ["x", "y z"]
    assert yaml_list("packages: ['a/*', \"b\"] # c\n", "packages") == ["a/*", "b"]
    assert yaml_list("other: 1\n", "packages") == []


def test_an_ini_file_keeps_lines_that_go_on() -> None:
    text = "x = lost\n[a]\nkey = 1\n  2\n\n  # no\n  3\nother: y\n[b:c] \nflag\n"
    assert ini(text) == {"a": {"key": "1\n2\n3", "other": "y"}, "b:c": {"flag": ""}}


def test_braces_stand_for_each_of_their_parts() -> None:
    assert braces("a{b,c}{d,e}") == ["abd", "abe", "acd", "ace"]
    assert sorted(braces("a{b,c{d,e}}")) == ["ab", "ab", "acd", "ace"]
    assert braces("a{b") == ["a{b"]
    assert len(braces("{a,b}" * 100)) == 100
