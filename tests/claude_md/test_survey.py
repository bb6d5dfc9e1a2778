"""What init finds out about a project: small real ones for every manifest, and hostile ones."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from backstory.claude_md.read import imports, outline, subtrees
from backstory.claude_md.read.files import File, ProjectFiles, walk
from backstory.claude_md.read.history import plain
from backstory.claude_md.read.manifests import frameworks
from backstory.claude_md.read.manifests.folder import braces, index, ini, yaml_list
from backstory.claude_md.read.manifests.manifest import role
from backstory.claude_md.read.manifests.tasks import MORE, targets
from backstory.claude_md.read.survey import survey
from backstory.model import Survey

Files = dict[str, str]


def look(root: Path, files: Files) -> Survey:
    """The survey of a project with these files."""
    place = root / "project"
    for path, text in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text, encoding="utf-8")
    return survey(walk(str(place)))


def facts(found: Survey) -> set[str]:
    lines = {f"language: {name}" for name, _ in found.languages}
    lines |= {f"framework: {name}" for name in found.frameworks}
    lines |= {f"manager: {name}" for name in found.managers}
    lines |= {f"{command.role}: {command.line}" for command in found.commands}
    lines |= {f"workspace: {path}" for path in found.workspaces}
    return lines | {f"subtree: {path}" for path in found.subtrees}


def said(text: str) -> set[str]:
    return {line.strip() for line in text.strip().splitlines()}


def many(folder: str, ending: str, number: int = 20) -> Files:
    return {f"{folder}/part{count}.{ending}": "x\n" for count in range(number)}


PACKAGE = json.dumps(
    {
        "name": "walrus",
        "description": "Counts walruses.",
        "scripts": {
            "build": "tsc",
            "build:docs": "typedoc",
            "test": "jest",
            "test:unit": "jest unit",
            "lint": "eslint .",
            "start": "node .",
            "pretest": "npm run build",
            "testing": "x",
            "release": "x",
            "format": "",
        },
        "dependencies": {"express": "^4", "react": "18"},
        "devDependencies": {"@playwright/test": "1"},
        "peerDependencies": {"vue": "3"},
        "jest": {"testEnvironment": "node"},
    }
)

PROJECTS: dict[str, tuple[Files, str]] = {
    "npm": (
        {"package.json": PACKAGE, "index.js": "x\n"},
        """language: JavaScript
        manager: npm
        framework: Express
        framework: React
        framework: Vue
        framework: Jest
        framework: Playwright
        build: npm run build
        build: npm run build:docs
        test: npm test
        test: npm run test:unit
        lint: npm run lint
        run: npm start""",
    ),
    "yarn": (
        {"package.json": '{"scripts": {"test": "ava", "dev": "x"}}', "yarn.lock": "", "ava.config.js": "x"},
        """language: JavaScript
        manager: yarn
        framework: AVA
        test: yarn test
        run: yarn dev""",
    ),
    "pnpm, by what package.json says, and its workspaces": (
        {
            "package.json": '{"packageManager": "pnpm@9.1.0", "scripts": {"build": "x"}}',
            "package-lock.json": "{}",
            "pnpm-workspace.yaml": """packages:
  # ours
  - 'apps/*'

  - "lib" # one
  - '!apps/old'
other:
  - no
""",
            "apps/web/package.json": '{"dependencies": {"next": "14"}}',
            "apps/old/package.json": '{"dependencies": {"koa": "1"}}',
            "apps/empty/README.md": "",
            "lib/package.json": "{}",
            "no/package.json": "{}",
        },
        """manager: pnpm
        build: pnpm build
        framework: Next.js
        workspace: apps/web
        workspace: lib""",
    ),
    "bun": (
        {"package.json": '{"scripts": {"serve": "x", "tsc": "x"}}', "bun.lock": ""},
        """manager: bun
        run: bun run serve
        lint: bun run tsc""",
    ),
    "the test that npm init writes is none": (
        {"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'},
        "manager: npm",
    ),
    "npm workspaces, some of them large": (
        {
            "package.json": '{"workspaces": {"packages": ["./packages/*/", "tools/{a,b}"]}}',
            "packages/one/package.json": '{"name": "@x/one", "dependencies": {"svelte": "1"}}',
            "packages/two/package.json": '{"name": "express", "dependencies": {"@x/one": "1"}}',
            "packages/three/package.json": '{"dependencies": {"express": "1"}}',
            "tools/a/package.json": "{}",
            "tools/c/package.json": "{}",
            **many("packages/one/src", "ts"),
        },
        """language: TypeScript
        manager: npm
        framework: Svelte
        workspace: packages/one
        workspace: packages/two
        workspace: packages/three
        workspace: tools/a
        subtree: packages/one""",
    ),
    "lerna": (
        {"package.json": "{}", "lerna.json": '{"version": "1"}', "packages/a/package.json": "{}"},
        """manager: npm
        workspace: packages/a""",
    ),
    "pyproject": (
        {
            "pyproject.toml": """
                [build-system]
                requires = ["setuptools"]
                [project]
                name = "Flask"
                description = "A simple framework"
                dependencies = ["Click>=8", "werkzeug", "Jinja2 ; python_version < '4'"]
                [project.optional-dependencies]
                async = ["SQLAlchemy[asyncio]>=2"]
                [dependency-groups]
                tests = ["pytest", {include-group = "x"}, "flask"]
                [tool.ruff]
                [tool.mypy]
                strict = true
                [tool.black]
                """,
            "tests/test_a.py": "x\n",
            **many("src/flask", "py"),
            "src/flask/__init__.py": "",
        },
        """language: Python
        manager: pip
        framework: Click
        framework: SQLAlchemy
        framework: pytest
        build: python -m build
        test: pytest
        lint: ruff check
        lint: mypy
        lint: black .
        subtree: src/flask""",
    ),
    "poetry": (
        {
            "pyproject.toml": """
                [tool.poetry]
                name = "walrus"
                [tool.poetry.dependencies]
                python = "^3.11"
                fastapi = "*"
                [tool.poetry.group.dev.dependencies]
                hypothesis = {version = "6"}
                """
        },
        """manager: poetry
        framework: FastAPI
        framework: Hypothesis""",
    ),
    "uv with a workspace": (
        {
            "pyproject.toml": """
                [project]
                name = "all"
                [tool.uv]
                dev-dependencies = ["tornado"]
                [tool.uv.workspace]
                members = ["libs/*"]
                exclude = ["libs/old"]
                """,
            "libs/a/pyproject.toml": '[project]\ndependencies = ["starlette"]',
            "libs/old/pyproject.toml": '[project]\ndependencies = ["aiohttp"]',
        },
        """manager: uv
        framework: Tornado
        framework: Starlette
        workspace: libs/a""",
    ),
    "pdm and hatch": (
        {
            "pyproject.toml": """
                [tool.pdm.dev-dependencies]
                a = ["pydantic"]
                [tool.hatch.envs.test]
                extra-dependencies = ["pytest"]
                """
        },
        """manager: pdm
        manager: hatch
        framework: Pydantic
        framework: pytest
        test: pytest""",
    ),
    "hatch without environments is a build tool": (
        {"pyproject.toml": '[build-system]\nrequires = ["hatchling"]\n[tool.hatch.version]\npath = "a"'},
        """manager: pip
        build: python -m build""",
    ),
    "pipenv": (
        {"Pipfile": '[packages]\nDjango = "*"\n[dev-packages]\npytest = "*"'},
        """manager: pipenv
        framework: Django
        framework: pytest
        test: pytest""",
    ),
    "setup.py and setup.cfg": (
        {
            "setup.py": """
from setuptools import setup
NAME = "wal" + "rus"
tests = ["pytest>=7"]
EXTRAS = {"django": ["aiohttp"], "test": tests}
setup(name=NAME, install_requires=["tornado"] + ["click"], extras_require=EXTRAS)
""",
            "setup.cfg": """
[options]
install_requires =
    flask
    # no
[flake8]
max = 1
[mypy]
[tool:pytest]
""",
        },
        """language: Python
        manager: pip
        framework: Flask
        framework: Tornado
        framework: aiohttp
        framework: Click
        framework: pytest
        build: python -m build
        test: pytest
        lint: mypy
        lint: flake8""",
    ),
    "requirements": (
        {
            "requirements.txt": "-r other.txt\ngit+https://example.org/flask.git\nDjango==4.2  # LTS\n",
            "requirements-dev.txt": (
                "click==8\n    # via flask\nhypothesis==6  # via -r requirements-dev.in\n"
                "pydantic==2\n    # via\n    #   -r requirements-dev.in\n    #   fastapi\n"
            ),
            "requirements/tests.in": "tornado\n",
            ".pre-commit-config.yaml": "repos: []\n",
            "tox.ini": "[testenv]\ndeps =\n  -r{toxinidir}/tools/all.txt\n  -c tools/limits.txt\n",
            "tools/all.txt": "-r ../other/more.in\n-r all.txt\n-r ../../outside.txt\nSQLAlchemy\n",
            "other/more.in": "fastapi\n",
            "tools/limits.txt": "aiohttp\n",
        },
        """manager: pip
        framework: Django
        framework: Hypothesis
        framework: Pydantic
        framework: Tornado
        framework: SQLAlchemy
        framework: FastAPI
        test: tox
        lint: pre-commit run --all-files""",
    ),
    "tox": (
        {
            "tox.ini": """
[tox]
envlist =
    py3{8,9}-{x, y}
    style
    docs
[testenv]
deps =
    pytest
    py38,!x: aiohttp
    -rrequirements.txt
[testenv:{mypy,flake8}]
deps = hypothesis
[flake8]
max-line-length = 100
"""
        },
        """framework: pytest
        framework: aiohttp
        framework: Hypothesis
        test: tox
        test: pytest
        lint: tox -e style
        lint: tox -e mypy
        lint: tox -e flake8
        lint: flake8""",
    ),
    "tox in tables": (
        {
            "pyproject.toml": """
                [tool.tox]
                env_list = ["3.12", "lint"]
                [tool.tox.env_run_base]
                deps = ["pytest"]
                [tool.tox.env.typing]
                deps = ["click"]
                """
        },
        """framework: pytest
        framework: Click
        test: tox
        test: pytest
        lint: tox -e lint
        lint: tox -e typing""",
    ),
    "tox in a string, and a tox.ini for another tool": (
        {
            "pyproject.toml": '[tool.tox]\nlegacy_tox_ini = """\n[tox]\nenvlist = lint\n"""',
            "tox.ini": "[pytest]\naddopts = -q\n",
        },
        """framework: pytest
        test: tox
        test: pytest
        lint: tox -e lint""",
    ),
    "nox": (
        {
            "noxfile.py": """
import nox
@nox.session(python=["3.11"])
def tests(session):
    session.install("-e", ".", "pytest")
@nox.session(name="lint")
def check(session: nox.Session) -> None:
    session.install("-r", "tools/lint.txt")
@nox.session
def docs(session): ...
def test(session): ...
""",
            "tools/lint.txt": "click\n",
        },
        """language: Python
        manager: pip
        framework: pytest
        framework: Click
        test: nox -s tests
        test: pytest
        lint: nox -s lint""",
    ),
    "make": (
        {
            "Makefile": """
.PHONY: all test
VERSION := 1
build = no
all: build
test check: deps
\tpytest
test-unit lint-py:
\techo serve: no
install:
fmt:: ; true
run: PORT = 80
dev: export PORT := 80
dist/a.tar: b
%.o: %.c
compile \\
  bundle: x
$(info style: none)
define unit:
lint: in a definition
endef
ifeq ($(X),y)
  start: z
endif
"""
        },
        """build: make all
        build: make compile
        build: make bundle
        test: make test
        test: make check
        test: make test-unit
        lint: make lint-py
        lint: make fmt
        run: make start""",
    ),
    "just": (
        {
            "justfile": """
set shell := ["bash", "-c"]
build := "x:y"
alias t := test
# lint: no
@test filter='a':
    dev: no
type-check:
run *args: test
_serve:
"""
        },
        """test: just test
        lint: just type-check
        run: just run""",
    ),
    "docker": (
        {"Dockerfile": "FROM scratch\n", "docker-compose.yml": "services: {}\n", "sub/compose.yaml": ""},
        """build: docker build .
        run: docker compose up""",
    ),
    "cargo": (
        {
            "Cargo.toml": """
                [package]
                name = "walrus"
                [dependencies]
                tokio = { version = "1" }
                json = { package = "serde", version = "1" }
                [dev-dependencies]
                criterion = "0.5"
                [target.'cfg(unix)'.dependencies]
                clap = "4"
                [[bin]]
                name = "walrus"
                """,
            "src/lib.rs": "x\n",
            "rustfmt.toml": "",
            ".github/workflows/ci.yml": "jobs:\n  - run: cargo +nightly clippy -- -D warnings\n",
        },
        """language: Rust
        manager: cargo
        framework: Tokio
        framework: Serde
        framework: Clap
        framework: Criterion
        build: cargo build
        test: cargo test
        lint: cargo clippy
        lint: cargo fmt --check
        run: cargo run""",
    ),
    "cargo with a workspace": (
        {
            "Cargo.toml": """
                [workspace]
                members = ["crates/*", "tool"]
                exclude = ["crates/old"]
                [workspace.dependencies]
                axum = "1"
                """,
            "crates/a/Cargo.toml": '[package]\nname = "proptest"\n[dependencies]\nrocket = "1"',
            "crates/b/Cargo.toml": '[package]\nname = "b"\n[dev-dependencies]\nproptest = "1"',
            "crates/b/src/main.rs": "x\n",
            "crates/old/Cargo.toml": "[package]",
            "crates/notes/README.md": "",
            "tool/Cargo.toml": "[package]",
            ".travis.yml": "script:\n  # - cargo clippy\n  - cargo fmt -- --check\n",
        },
        """language: Rust
        manager: cargo
        framework: Axum
        framework: Rocket
        build: cargo build --workspace
        test: cargo test --workspace
        lint: cargo fmt --check
        workspace: crates/a
        workspace: crates/b
        workspace: tool""",
    ),
    "go": (
        {
            "go.mod": """module github.com/someone/walrus/v2

go 1.22

require github.com/spf13/cobra v1.8.0
require (
\tgithub.com/labstack/echo/v4 v4.11.0
\tgithub.com/stretchr/testify v1.8.0 // indirect
\t// github.com/gin-gonic/gin v1
)
""",
            "main.go": "// About.\n\npackage main\n",
            "Makefile": "vet:\n\tgo vet ./...\n",
            ".golangci.yml": "",
        },
        """language: Go
        manager: go
        framework: Echo
        framework: Cobra
        build: go build ./...
        test: go test ./...
        lint: go vet ./...
        lint: golangci-lint run
        run: go run .""",
    ),
    "a go library with a generator beside it": (
        {
            "go.mod": "module github.com/spf13/cobra\nrequire github.com/spf13/cobra v1\n",
            "gen.go": "//go:build ignore\n\npackage main\n",
            "main_test.go": "package main\n",
            "cobra.go": "package cobra\n",
        },
        """language: Go
        manager: go
        build: go build ./...
        test: go test ./...""",
    ),
    "go.work": (
        {
            "go.work": "go 1.22\n\nuse (\n\t.\n\t./api\n\t./tool // x\n)\nuse ./web\nuse ./gone\n",
            "api/go.mod": "module example.org/api\nrequire google.golang.org/grpc v1\n",
            "tool/go.mod": "module example.org/tool\n",
            "web/go.mod": "module example.org/web\n",
            "other/go.mod": "module example.org/other\n",
        },
        """manager: go
        framework: gRPC
        workspace: api
        workspace: tool
        workspace: web""",
    ),
    "maven": (
        {
            "pom.xml": """<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <parent>
    <groupId>org.springframework.boot</groupId><artifactId>spring-boot-starter-parent</artifactId>
  </parent>
  <groupId>org.example</groupId>
  <artifactId>walrus</artifactId>
  <modules><module>core</module><module>web/pom.xml</module><module>../out</module></modules>
  <dependencies>
    <!-- <dependency><groupId>org.testng</groupId></dependency> -->
    <dependency>
      <groupId>org.junit.jupiter</groupId><artifactId>junit-jupiter</artifactId>
      <exclusions><exclusion><groupId>io.grpc</groupId></exclusion></exclusions>
    </dependency>
  </dependencies>
  <build><plugins>
    <plugin><groupId>org.springframework.boot</groupId><artifactId>spring-boot-maven-plugin</artifactId></plugin>
    <plugin><artifactId>maven-checkstyle-plugin</artifactId></plugin>
  </plugins></build>
</project>""",
            "mvnw": "#!/bin/sh\n",
            "core/pom.xml": """<project><artifactId>core</artifactId><dependencies>
                <dependency><groupId>org.mockito</groupId></dependency></dependencies></project>""",
            "web/pom.xml": "<project/>",
        },
        """manager: maven
        framework: Spring Boot
        framework: JUnit
        framework: Mockito
        build: ./mvnw package
        test: ./mvnw test
        run: ./mvnw spring-boot:run
        lint: ./mvnw checkstyle:check
        workspace: core
        workspace: web""",
    ),
    "gradle": (
        {
            "build.gradle": """
plugins {
    id 'org.springframework.boot' version '3'
    id "com.diffplug.spotless" version "6"
}
group = 'org.example'
dependencies {
    // testImplementation 'org.testng:testng:7'
    /* 'io.grpc:grpc-core:1' */
    testImplementation 'junit:junit:4.13'
    implementation group: 'org.springframework', name: 'spring-web', version: '6'
}
""",
            "settings.gradle": """
rootProject.name = "walrus"
include ':core', // the core
        ":libs:a"
include 'moved'
project(':moved').projectDir = file('elsewhere')
project('moved').projectDir = new File(settingsDir, 'sub/moved')
includeBuild 'tools'
""",
            "core/core.gradle": "dependencies { api 'org.mockito:mockito-core:5' }\n",
            "libs/a/src/main/java/A.java": "x\n",
            "sub/moved/build.gradle": "",
            "tools/build.gradle": "",
        },
        """language: Java
        manager: gradle
        framework: Spring
        framework: Spring Boot
        framework: JUnit
        framework: Mockito
        build: gradle build
        test: gradle test
        run: gradle bootRun
        lint: gradle spotlessCheck
        workspace: core
        workspace: libs/a
        workspace: sub/moved""",
    ),
    "gradle, all moved by a loop": (
        {
            "settings.gradle": """
include 'core', 'gone'
rootProject.children.each { project ->
    project.projectDir = new File(settingsDir, "subprojects/$project.name")
}
""",
            "build.gradle": "",
            "subprojects/core/core.gradle": "",
        },
        """manager: gradle
        build: gradle build
        test: gradle test
        workspace: subprojects/core""",
    ),
    "gradle in kotlin, with a catalog": (
        {
            "build.gradle.kts": "plugins {\n  alias(libs.plugins.spot.less)\n}\n",
            "settings.gradle.kts": 'include("app", ":lib")\n',
            "gradle/libs.versions.toml": """
                [libraries]
                test = { module = "org.testng:testng", version = "7" }
                q = { group = "io.quarkus", name = "quarkus-core" }
                m = "io.micronaut:micronaut-core:4"
                [plugins]
                spot-less = { id = "com.diffplug.spotless", version = "6" }
                boot = "org.springframework.boot:3"
                """,
            "gradlew": "#!/bin/sh\n",
            "app/build.gradle.kts": "x\n",
            "lib/build.gradle.kts": "x\n",
        },
        """language: Kotlin
        manager: gradle
        framework: Quarkus
        framework: Micronaut
        framework: TestNG
        build: ./gradlew build
        test: ./gradlew test
        lint: ./gradlew spotlessCheck
        workspace: app
        workspace: lib""",
    ),
    "composer": (
        {
            "composer.json": json.dumps(
                {
                    "name": "someone/walrus",
                    "require": {"php": ">=8", "laravel/framework": "^11"},
                    "require-dev": {"phpunit/phpunit": "^11"},
                    "scripts": {"test": ["phpunit"], "lint:php": "pint", "post-install-cmd": "x"},
                }
            ),
            "src/a.php": "<?php\n",
        },
        """language: PHP
        manager: composer
        framework: Laravel
        framework: PHPUnit
        test: composer test
        lint: composer lint:php""",
    ),
    "bundler": (
        {
            "Gemfile": """source 'https://rubygems.org'
gem 'rails', '~> 7'
# gem 'sinatra'
group :test do
  gem("minitest")
end
""",
            "Rakefile": "x\n",
            ".rubocop.yml": "",
        },
        """manager: bundler
        framework: Rails
        framework: Minitest
        test: bundle exec rake
        lint: bundle exec rubocop""",
    ),
    "bundler with specs, and a gemspec": (
        {
            "Gemfile": "gemspec\n",
            "Rakefile": "x\n",
            "walrus.gemspec": """Gem::Specification.new do |s|
  s.name = 'walrus'
  s.add_development_dependency 'rspec', '~> 3'
end
""",
            "spec/models/a_spec.rb": "x\n",
        },
        """language: Ruby
        manager: bundler
        framework: RSpec
        test: bundle exec rspec""",
    ),
}


@pytest.mark.parametrize("name", PROJECTS)
def test_a_project_is_what_its_manifests_say(tmp_path: Path, name: str) -> None:
    files, expected = PROJECTS[name]
    assert facts(look(tmp_path, files)) == said(expected)


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


# Hostile and broken manifests

KINDS = [
    *("package.json", "pnpm-workspace.yaml", "lerna.json", "pyproject.toml", "setup.cfg", "setup.py"),
    *(
        "requirements.txt",
        "Pipfile",
        "tox.ini",
        "tox.toml",
        "noxfile.py",
        "Makefile",
        "justfile",
        "Cargo.toml",
    ),
    *("go.mod", "go.work", "pom.xml", "build.gradle", "settings.gradle.kts", "gradle/libs.versions.toml"),
    *("composer.json", "Gemfile", "x.gemspec", ".github/workflows/ci.yml", "README.md", ".gitignore"),
]


def all_of(root: Path, content: bytes) -> Survey:
    """A project in which every manifest says the same."""
    for kind in KINDS:
        (root / kind).parent.mkdir(parents=True, exist_ok=True)
        (root / kind).write_bytes(content)
    return survey(walk(str(root)))


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300))
@example(b"\x00")
@example(b"\xff\xfe<\x00?\x00")
def test_any_bytes_are_a_manifest(tmp_path: Path, content: bytes) -> None:
    assert all_of(tmp_path / "project", content).name


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                "name scripts workspaces packages dependencies test require packageManager jest build".split()
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(JSON)
def test_values_of_the_wrong_kind_are_passed_over(tmp_path: Path, value: object) -> None:
    all_of(tmp_path / "project", json.dumps(value).encode())


@pytest.mark.parametrize(
    "toml",
    [
        "project = 1\ntool = 2\nworkspace = 3",
        "[project]\nname = 1\ndependencies = 1\noptional-dependencies = [1]",
        "[tool]\npoetry = 1\nuv = 2\npytest = 3\ntox = 4\nhatch = 5\npdm = 6",
        "[tool.uv]\nworkspace = 1\n[tool.poetry]\ngroup = 1\ndependencies = []\n[tool.tox]\nenv = 1",
        "[package]\nname = []\n[dependencies]\na = 1\n[target]\nx = 1",
        "[workspace]\nmembers = [1, [], '..', '/etc', '']\nexclude = 1",
        "[libraries]\na = 1\nb = {module = 1}\n[plugins]\na = 1\nb = {id = []}",
    ],
)
def test_tables_of_the_wrong_kind_are_passed_over(tmp_path: Path, toml: str) -> None:
    assert all_of(tmp_path / "project", toml.encode()).workspaces == ()


BOMB = (
    '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "lol">'
    + "".join(f'<!ENTITY {chr(98 + n)} "{("&" + chr(97 + n) + ";") * 10}">' for n in range(9))
    + "]><project><artifactId>&j;</artifactId></project>"
)


def test_entities_are_never_expanded(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hunter2")
    outside = f'<!DOCTYPE x [<!ENTITY x SYSTEM "file://{tmp_path}/secret">]><project><artifactId>&x;</artifactId></project>'
    for text in (BOMB, outside):
        found = look(tmp_path, {"pom.xml": text})
        assert (found.name, found.managers) == ("project", ("maven",))


@pytest.mark.parametrize(
    "content",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        "a = " + "[" * 50_000,
        "a = " + "{a=" * 50_000,
        "a." * 90_000 + "a = 1",
        "[" + "a." * 90_000 + "a]",
        "<a>" * 100_000,
        "x = " + "(" * 50_000,
        "x = " + "1+" * 50_000 + "1",
        "x = " + "-" * 50_000 + "1",
        "setup(install_requires=" + "[" * 80 + "]" * 80 + ")",
        "a = a + a\n" * 1_000 + "setup(install_requires=a)",
        "setup(install_requires=" + "a+" * 900 + "a)",
        "setup(install_requires=[*a, *['click']])\na = a",
        "id" + " " * 190_000 + "x",
        "include" + " " * 190_000 + "x",
        "/*" * 95_000,
        "\n" * 190_000,
        "a" + " " * 190_000 + "b",
        "packages:" + "\n  " * 60_000 + "x",
        "envlist = " + "{,}" * 60_000,
        "[tox]\nenvlist = " + "{a,b}" * 190,
        "// " * 60_000,
        "'a:a:" * 38_000,
        "gem " * 45_000,
        "`" * 19_000,
        "[](" * 6_000,
        "1" * 190_000,
        "cargo +" * 27_000,
        "project('" * 20_000,
        "tornado" * 27_000,
        "a.b-c_d" * 27_000,
    ],
    ids=lambda content: content[:12],
)
def test_no_content_takes_long(tmp_path: Path, content: str) -> None:
    start = time.process_time()
    all_of(tmp_path / "project", content.encode())
    assert time.process_time() - start < 15  # one or two here; minutes, where time grows with the square


@pytest.mark.parametrize("key", ["a." * 12_000 + "a", '"\u2028".' * 12_000 + "a"], ids=["bare", "quoted"])
def test_a_dotted_key_takes_long_nowhere(tmp_path: Path, key: str) -> None:
    for name in ("Cargo.toml", "pyproject.toml", "crates/a/Cargo.toml", "crates/b/pyproject.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{key} = 1\n", encoding="utf-8")
    tree = walk(str(tmp_path))
    start = time.process_time()
    survey(tree)
    imports.own(tree)
    assert outline.about(tree, "crates/a", ["Cargo.toml"]) == ""
    assert outline.about(tree, "crates/b", ["pyproject.toml"]) == ""
    assert time.process_time() - start < 1.5  # 0.02 here; four seconds and half a gigabyte for one of them


def test_a_huge_manifest_is_passed_over(tmp_path: Path) -> None:
    found = look(tmp_path, {"package.json": '{"name": "walrus", "x": "' + "x" * 1_000_000 + '"}'})
    assert (found.name, found.managers) == ("project", ("npm",))


def test_nothing_in_a_manifest_is_run(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    code = f"open({str(mark)!r}, 'w')\n"
    look(
        tmp_path,
        {
            "setup.py": code,
            "noxfile.py": code,
            "Makefile": f"X := $(shell touch {mark})\ntest:\n",
            "build.gradle": f"new File('{mark}').createNewFile()\n",
            "Gemfile": f"File.write('{mark}', '')\n",
        },
    )
    assert not mark.exists()


def test_warnings_of_a_setup_file_are_not_ours(tmp_path: Path) -> None:
    found = look(tmp_path, {"setup.py": "import setuptools\nx = '\\d'\nsetuptools.setup(name='walrus')\n"})
    assert found.name == "walrus"


def test_globs_of_members_take_long_nowhere(tmp_path: Path) -> None:
    globs = [f"*{'?' * 100}b*{number}" for number in range(500)]
    files = {f"{number}{'a' * 200}/package.json": "{}" for number in range(100)}
    files["package.json"] = json.dumps({"workspaces": globs})
    start = time.process_time()
    assert look(tmp_path, files).workspaces == ()
    assert time.process_time() - start < 3  # 0.1 here, ten otherwise


def test_members_outside_the_project_and_with_odd_names_are_none(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "package.json").write_text("{}")
    globs = ["../out", "/", ".", "", "a\nb", "**/../..", "pack\x1bage", "ok"]
    files = {
        "package.json": json.dumps({"workspaces": globs}),
        "pack\x1bage/package.json": "{}",
        "ok/package.json": "{}",
    }
    assert look(tmp_path, files).workspaces == ("ok",)


def test_targets_are_the_names_before_the_colon() -> None:
    assert list(targets("a b: c\nx=y: z\nd\\:e : f\n\tg: h\ni ::= j\n")) == ["a", "b", "d:e"]
