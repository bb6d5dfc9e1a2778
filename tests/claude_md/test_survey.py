"""What init finds out about a project."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backstory.claude_md.read.history import plain
from backstory.claude_md.read.manifests import frameworks
from backstory.claude_md.read.manifests.folder import braces, ini
from backstory.model import Survey
from tests.helpers.survey import PACKAGE, Files, facts, look


def test_an_empty_folder_says_its_name_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    assert look(tmp_path, {}) == Survey("project", "", (), (), (), (), (), ())


def test_a_command_names_the_file_that_says_so(tmp_path: Path) -> None:
    found = look(
        tmp_path,
        {
            "Makefile": "test:\n\tgo test -v ./...\n",
            "go.mod": "module a\n",
            ".golangci.yml": "",
            "README.md": "# Run it\n\n```sh\ngo run ./cmd/a\n```\n",
            ".github/workflows/a.yml": (
                "on: push\njobs: {a: {steps: [{run: make test}, {run: go build ./...}]}}\n"
            ),
        },
    )
    assert {command.line: command.source for command in found.commands} == {
        "make test": ".github/workflows/a.yml",
        "go build ./...": ".github/workflows/a.yml",
        "go run ./cmd/a": "README.md",
        "golangci-lint run": ".golangci.yml",
    }
    assert [command.role for command in found.commands] == ["build", "run", "test", "lint"]


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
            "===\nSea\n===\n\n.. image:: x\n   :target: y\n\nCounts `walruses <http://x>`_ at sea.\n",
            "Counts walruses at sea.",
        ),
        (
            "README",
            "Walrus\n------\n\n1. a\n\n[English](a) | [Deutsch](b)\n\n```\nx\n```\n\n`w` is for counting.\n",
            "`w` is for counting.",
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
    assert found.name == "project", "no name of anything"
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
    files = {"a.go": "x" * 900, "c.sh": "x" * 49, "d.md": "x" * 9_000, "e.rs": "x"}
    files |= {"1.py": "x" * 20, "2.py": "x" * 20, "3.py": "x" * 10}
    assert look(tmp_path, files).languages == (("Go", 0.9), ("Python", 0.05))


def test_an_installer_is_no_language_of_the_project(tmp_path: Path) -> None:
    files = {"a.go": "x" * 850, "install.ps1": "x" * 150}
    assert look(tmp_path, files).languages == (("Go", 0.85),)
    assert len(look(tmp_path, {"a.go": "x" * 700, "install.ps1": "x" * 300}).languages) == 2


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


def test_what_the_site_of_a_project_is_made_with_is_no_framework_of_the_project(tmp_path: Path) -> None:
    files = {"package.json": '{"workspaces": ["site", "core"]}', "core/package.json": "{}"}
    vue = '{"dependencies": {"vue": "3"}}'
    assert look(tmp_path, {**files, "site/package.json": vue}).frameworks == ()
    assert look(tmp_path, {**files, "core/package.json": vue}).frameworks == ("Vue",)


@pytest.mark.parametrize("package", ["pytest-cov", "flask-sqlalchemy", "djangorestframework", "clickhouse"])
def test_a_package_that_only_sounds_like_a_framework_is_none(tmp_path: Path, package: str) -> None:
    assert look(tmp_path, {"requirements.txt": package + "\n"}).frameworks == ()


# Commands


MANAGE = "import os\nos.environ.setdefault('DJANGO_SETTINGS_MODULE', 'x')\nfrom django.core import x\n"
GO_MAIN = "package main\n\nfunc main() {}\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"manage.py": MANAGE}, "run: python manage.py runserver | test: python manage.py test"),
        (
            {"manage.py": MANAGE, "pytest.ini": "[pytest]\n", "tests.py": "import zoo\n"},
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
    everywhere = {"build: go build ./...", "test: go test ./...", "install: bundle install"}
    assert found - everywhere == set(expected.split(" | ")) - {""}


def test_a_script_whose_name_would_do_more_than_it_seems_is_left_out(tmp_path: Path) -> None:
    scripts = {"test:`reboot`": "x", "build:a;b": "x", "lint:\u202egnp": "x", "start:ok": "vite"}
    found = look(tmp_path, {"package.json": json.dumps({"scripts": scripts})})
    assert [command.line for command in found.commands] == ["npm install", "npm run start:ok"]


def test_a_makefile_that_a_program_wrote_says_nothing(tmp_path: Path) -> None:
    found = look(tmp_path, {"Makefile": "# CMAKE generated file: DO NOT EDIT!\nall: x\n"})
    assert found.commands == ()


def test_an_ignored_manifest_is_none(tmp_path: Path) -> None:
    found = look(tmp_path, {".gitignore": "package.json\n", "package.json": PACKAGE, "Makefile": "test:\n"})
    assert facts(found) == {"test: make test"}


# Parsers


def test_an_ini_file_keeps_lines_that_go_on() -> None:
    text = "x = lost\n[a]\nkey = 1\n  2\n\n  # no\n  3\nother: y\n[b:c] \nflag\n"
    assert ini(text) == {"a": {"key": "1\n2\n3", "other": "y"}, "b:c": {"flag": ""}}


def test_braces_stand_for_each_of_their_parts() -> None:
    assert braces("a{b,c}{d,e}") == ["abd", "abe", "acd", "ace"]
    assert sorted(braces("a{b,c{d,e}}")) == ["ab", "ab", "acd", "ace"]
    assert braces("a{b") == ["a{b"]
    assert len(braces("{a,b}" * 100)) == 100


def test_a_lock_that_does_not_say_why_a_package_is_there_names_no_framework(tmp_path: Path) -> None:
    lock = "flask==3.0.0 \\\n    --hash=sha256:00\n"
    assert look(tmp_path, {"requirements.txt": lock}).frameworks == ()
    told = lock + "    # via -r requirements.in\n"
    assert look(tmp_path, {"requirements.txt": told}).frameworks == ("Flask",)


def test_a_workspace_that_nobody_publishes_is_called_as_its_folder(tmp_path: Path) -> None:
    name, private, workspaces = {"name": "@zoo/all-of-it"}, {"private": True}, {"workspaces": ["packages/*"]}
    for package, called in (
        ({**name, **private, **workspaces}, "project"),
        ({**name, **private}, "@zoo/all-of-it"),
        ({**name, **workspaces}, "@zoo/all-of-it"),
    ):
        assert look(tmp_path, {"package.json": json.dumps(package)}).name == called


def test_a_project_is_not_called_what_half_of_all_manifests_are_called(tmp_path: Path) -> None:
    for name in ("root", "server", "monorepo"):
        found = look(tmp_path, {"package.json": f'{{"name": "{name}"}}'})
        assert found.name == "project"  # as its folder
