"""What init finds out about small real projects, one for every manifest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers.survey import PACKAGE, Files, facts, look, many


def said(text: str) -> set[str]:
    return {line.strip() for line in text.strip().splitlines()}


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
        test: npm test
        lint: npm run lint
        run: npm start
        install: npm install""",
    ),
    "yarn": (
        {"package.json": '{"scripts": {"test": "ava", "dev": "x"}}', "yarn.lock": "", "ava.config.js": "x"},
        """language: JavaScript
        manager: yarn
        framework: AVA
        test: yarn test
        run: yarn dev
        install: yarn install""",
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
        workspace: lib
        install: pnpm install""",
    ),
    "bun": (
        {"package.json": '{"scripts": {"serve": "x", "tsc": "x"}}', "bun.lock": ""},
        """manager: bun
        run: bun run serve
        lint: bun run tsc
        install: bun install""",
    ),
    "the test that npm init writes is none": (
        {"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'},
        """manager: npm
        install: npm install""",
    ),
    "npm workspaces, some of them large": (
        {
            "package.json": '{"workspaces": {"packages": ["./packages/*/", "tools/{a,b}"]}}',
            "packages/one/package.json": (
                '{"name": "@x/one", "dependencies": {"svelte": "1"}, "scripts": {"dev": "x"}}'
            ),
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
        subtree: packages/one
        install: npm install""",
    ),
    "lerna": (
        {"package.json": "{}", "lerna.json": '{"version": "1"}', "packages/a/package.json": "{}"},
        """manager: npm
        workspace: packages/a
        install: npm install""",
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
                files = ["src"]
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
        test: pytest
        one: pytest tests/test_a.py
        lint: ruff check
        lint: mypy
        format: black .
        install: pip install -e .""",
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
        framework: Hypothesis
        install: poetry install""",
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
        workspace: libs/a
        install: uv sync""",
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
        test: pdm run pytest
        install: pdm install""",
    ),
    "hatch without environments is a build tool": (
        {"pyproject.toml": '[build-system]\nrequires = ["hatchling"]\n[tool.hatch.version]\npath = "a"'},
        """manager: pip
        install: pip install -e .""",
    ),
    "pipenv": (
        {"Pipfile": '[packages]\nDjango = "*"\n[dev-packages]\npytest = "*"'},
        """manager: pipenv
        framework: Django
        framework: pytest
        test: pipenv run pytest
        install: pipenv install --dev""",
    ),
    "setup.py and setup.cfg": (
        {
            "test_zoo.py": "",
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
strict = true
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
        test: pytest
        lint: flake8
        install: pip install -e .""",
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
        lint: pre-commit run --all-files
        install: pip install -r requirements-dev.txt""",
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
            "test_zoo.py": "",
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
        """build: make compile
        build: make bundle
        test: make test
        test: make check
        format: make fmt
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
        {
            "Dockerfile": "FROM x\n",
            "docker-compose.yml": "services: {web: {build: .}}\n",
            "sub/compose.yaml": "",
        },
        """run: docker compose up""",
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
            "src/lib.rs": "#[test]\nfn a() {}\n",
            "rustfmt.toml": "",
            ".github/workflows/ci.yml": (
                "on: push\njobs:\n  a:\n    steps:\n    - run: cargo clippy -- -D warnings\n"
            ),
        },
        """language: Rust
        manager: cargo
        framework: Tokio
        framework: Serde
        framework: Clap
        build: cargo build
        test: cargo test
        one: cargo test a
        lint: cargo clippy -- -D warnings
        run: cargo run
        format: cargo fmt""",
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
            "crates/b/src/main.rs": "#[test]\nfn a() {}\n",
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
        one: cargo test -p b a
        format: cargo fmt
        lint: cargo fmt -- --check
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
        lint: make vet
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
        workspace: sub/moved
        format: gradle spotlessApply""",
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
        workspace: lib
        format: ./gradlew spotlessApply""",
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
        format: composer lint:php
        install: composer install""",
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
        lint: bundle exec rubocop
        install: bundle install""",
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
        test: bundle exec rspec
        one: bundle exec rspec spec/models/a_spec.rb
        install: bundle install""",
    ),
}


@pytest.mark.parametrize("name", PROJECTS)
def test_a_project_is_what_its_manifests_say(tmp_path: Path, name: str) -> None:
    files, expected = PROJECTS[name]
    assert facts(look(tmp_path, files)) == said(expected)
