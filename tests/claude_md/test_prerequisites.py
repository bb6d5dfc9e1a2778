"""What must be there before the first command works."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.survey import Files, look


def needs(root: Path, files: Files) -> list[tuple[str, str, str]]:
    return [(fact.text, fact.source, fact.kind) for fact in look(root, files).prerequisites]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("go.mod", "module a\n\ngo 1.22\n", "Go 1.22"),
        (".nvmrc", "v20.1\n", "Node 20.1"),
        (".node-version", "20\n", "Node 20"),
        ("package.json", '{"engines": {"node": ">=18 <21"}}', "Node >=18 <21"),
        ("package.json", '{"packageManager": "pnpm@9.1.0+sha512.abc"}', "pnpm 9.1.0"),
        (".python-version", "3.12\n", "Python 3.12"),
        ("pyproject.toml", '[project]\nrequires-python = ">=3.11"\n', "Python >=3.11"),
        ("pyproject.toml", '[tool.poetry.dependencies]\npython = "^3.11"\n', "Python ^3.11"),
        ("setup.cfg", "[options]\npython_requires = >=3.8\n", "Python >=3.8"),
        ("Cargo.toml", '[package]\nname = "a"\nrust-version = "1.70"\n', "Rust 1.70 or newer"),
        ("rust-toolchain.toml", '[toolchain]\nchannel = "nightly"\n', "Rust nightly"),
        ("rust-toolchain", "1.70\n", "Rust 1.70"),
        ("global.json", '{"sdk": {"version": "8.0.100"}}', ".NET SDK 8.0.100"),
        ("composer.json", '{"require": {"php": "^8.2"}}', "PHP ^8.2"),
        (".ruby-version", "ruby-3.2.1\n", "Ruby 3.2.1"),
        (".java-version", "21\n", "Java 21"),
        ("mix.exs", '      elixir: "~> 1.15",\n', "Elixir ~> 1.15"),
        ("Package.swift", "// swift-tools-version:5.9\n", "Swift 5.9"),
        ("build.zig.zon", '.minimum_zig_version = "0.11.0"', "Zig 0.11.0"),
        ("CMakeLists.txt", "cmake_minimum_required(VERSION 3.16...3.28)\n", "CMake 3.16 or newer"),
        ("CMakeLists.txt", "cmake_minimum_required(VERSION 3.15..4.3)\n", "CMake 3.15 or newer"),
        ("CMakeLists.txt", "set(CMAKE_CXX_STANDARD 17)\n", "C++17"),
        ("CMakeLists.txt", "set(CMAKE_C_STANDARD 11)\n", "C11"),
        ("meson.build", "project('a', meson_version: '>=0.60')\n", "Meson >=0.60"),
        ("pubspec.yaml", "environment:\n  sdk: '>=3.0.0 <4.0.0'\n", "Dart >=3.0.0 <4.0.0"),
        ("stack.yaml", "resolver: lts-21.0\n", "Stackage lts-21.0"),
        (".bazelversion", "7.0.0\n", "Bazel 7.0.0"),
        (".tool-versions", "# ours, for now\nerlang 26.0 25.3\n", "Erlang/OTP 26.0"),
        ("mise.toml", '[tools]\nnode = "20"\n', "Node 20"),
        (".mise.toml", '[tools]\nerlang = "26"\n', "Erlang/OTP 26"),
    ],
)
def test_the_version_of_a_tool_is_found_where_its_ecosystem_keeps_it(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    kind = "pinned" if name.startswith(".") or name == "mise.toml" else ""  # by a manager of versions
    assert needs(tmp_path, {name: text}) == [(said, name, kind)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".nvmrc", "lts/*\n"),
        (".nvmrc", "20`reboot`\n"),
        (".nvmrc", "20" + "0" * 500),
        ("package.json", '{"packageManager": 3, "engines": []}'),
        ("package.json", '{"packageManager": "evil@1", "engines": {"node": "x\\u001b[2J"}}'),
        ("mise.toml", "tools = 3\n"),
        ("mise.toml", '[tools]\n"a b `c`" = "1"\n'),
        ("Cargo.toml", "package = 3\nworkspace = []\n"),
        ("global.json", '{"sdk": 3}'),
        ("CMakeLists.txt", "# set(CMAKE_CXX_STANDARD 17)\n"),
        ("CMakeLists.txt", "if(WITH_FORMAT)\n    set(CMAKE_CXX_STANDARD 20)\nendif()\n"),
    ],
)
def test_what_is_no_version_is_not_told(tmp_path: Path, name: str, text: str) -> None:
    assert needs(tmp_path, {name: text}) == []


def test_a_tool_is_told_once_whatever_the_managers_of_versions_call_it(tmp_path: Path) -> None:
    files = {
        "package.json": '{"packageManager": "pnpm@9.0.0"}',
        "mise.toml": '[tools]\npnpm = "9"\ngo = "1.22"\nrust = "1.80"\nprotoc = "27"\n',
        ".tool-versions": "rust\t1.70\ngolang 1.21\n",
    }
    assert needs(tmp_path, files) == [
        ("pnpm 9.0.0", "package.json", ""),
        ("Rust 1.70", ".tool-versions", "pinned"),
        ("Go 1.21", ".tool-versions", "pinned"),
        ("protoc 27", "mise.toml", "pinned"),
    ]


def test_a_part_adds_what_the_project_does_not_need_itself(tmp_path: Path) -> None:
    files = {"go.mod": "module a\n\ngo 1.22\n", "ui/.nvmrc": "20\n", "ui/package.json": "{}"}
    files |= {"api/go.mod": "module b\n\ngo 1.18\n"}
    assert needs(tmp_path, files) == [("Go 1.22", "go.mod", ""), ("Node 20", "ui/.nvmrc", "pinned")]


def test_services_are_those_that_compose_files_and_ci_start(tmp_path: Path) -> None:
    files = {
        "compose.yml": """services:
  db:
    image: postgres:16-alpine
  cache:
    image: docker.io/library/redis
  search:
    image: "docker.elastic.co/elasticsearch/elasticsearch:8.11.0"
  ours:
    image: zoo/walrus:1
  # image: mongo:7
""",
        ".github/workflows/ci.yml": "jobs: \n  a:\n    services:\n      m:\n        image: mysql:8.0 # x\n"
        "      p:\n        image: postgres:12\n",
        "deep/er/compose.yml": "image: kafka\n",
        "k8s/db.yml": "image: cassandra\n",
    }
    assert needs(tmp_path, files) == [
        ("PostgreSQL 16, Redis, Elasticsearch 8.11", "compose.yml", "service"),
        ("MySQL 8.0", ".github/workflows/ci.yml", "service"),
    ]


@pytest.mark.parametrize("image", ["ghcr.io/zoo/project:1", "zoo/Walrus"])
def test_a_compose_file_that_starts_what_was_released_says_no_services(tmp_path: Path, image: str) -> None:
    started = f"services:\n  db:\n    image: postgres:16\n  app:\n    image: {image}\n"
    walrus = {"pyproject.toml": '[project]\nname = "walrus"\n'}  # in a folder `project`
    assert needs(tmp_path, {"compose.yml": started, **walrus}) == []
    other = started.replace(image, "zoo/squid")
    assert needs(tmp_path, {"compose.yml": other, **walrus}) == [("PostgreSQL 16", "compose.yml", "service")]


def test_examples_of_settings_are_named_each_once(tmp_path: Path) -> None:
    names = (
        ".env.example",
        "example.env",
        "config.toml.sample",
        "web/.env.local.dist",
        "deep/er/.env.example",
    )
    files = dict.fromkeys((*names, "zoo/app.conf.template", ".env.ts", "environment.example"), "")
    ignored = {".gitignore": ".env\nconfig.toml\nweb/.env.local\n"}
    assert needs(tmp_path, files | ignored) == [
        ("", ".env.example", "settings"),
        ("", "web/.env.local.dist", "settings"),
    ]


@pytest.mark.parametrize(
    ("said", "target"),
    [
        ("```sh\ncp .env.example .env.local\n```", ".env.local"),
        ("Copy it: `cp ./.env.example ./.env`.", ".env"),
        ("Then copy `.env.example` to `.env.test` and edit it.", ".env.test"),
        ("All variables are in .env.example and .env.local.", ""),
    ],
)
def test_where_settings_go_is_told_as_the_documents_say(tmp_path: Path, said: str, target: str) -> None:
    files = {".env.example": "", ".gitignore": ".env\n", "README.md": f"# W\n\n## Development\n\n{said}\n"}
    assert needs(tmp_path, files) == [(target, ".env.example", "settings")]


def test_an_example_of_what_git_does_not_ignore_is_not_to_be_copied(tmp_path: Path) -> None:
    assert needs(tmp_path, {"config.yaml.dist": "", ".gitignore": "*.log\n"}) == []


def test_submodules_and_large_files_are_needed_too(tmp_path: Path) -> None:
    lines = "".join(f'[submodule "{n}"]\n\tpath = deps/{n}\n\turl = https://x.example/{n}\n' for n in "abcde")
    files = {".gitmodules": lines, ".gitattributes": "*.psd filter=lfs diff=lfs\n"}
    for name in "abcde":
        (tmp_path / "project" / "deps" / name).mkdir(parents=True)
    assert needs(tmp_path, files) == [
        ("`deps/a`, `deps/b`, `deps/c`, `deps/d` and others", ".gitmodules", "submodules"),
        ("Git LFS", ".gitattributes", ""),
    ]


def test_a_swift_that_an_older_manifest_is_there_for_is_not_needed(tmp_path: Path) -> None:
    files = {"Package.swift": "// swift-tools-version: 6.0\n"}
    assert needs(tmp_path, files) == [("Swift 6.0", "Package.swift", "")]
    assert needs(tmp_path, {**files, "Package@swift-5.9.swift": "// swift-tools-version: 5.9\n"}) == []


def test_the_database_server_of_microsoft_is_a_service(tmp_path: Path) -> None:
    compose = {"compose.yaml": "services:\n  db:\n    image: mcr.microsoft.com/mssql/server:2022-latest\n"}
    assert needs(tmp_path, compose) == [("SQL Server 2022", "compose.yaml", "service")]


def test_folders_outside_of_the_project_are_no_submodules(tmp_path: Path) -> None:
    (tmp_path / "near").mkdir()
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "link").symlink_to(tmp_path / "near")
    lines = "".join(f"[submodule]\npath = {path}\n" for path in ("/etc", "../near", "link"))
    assert needs(tmp_path, {".gitmodules": lines}) == []


def test_a_submodule_that_is_no_more_in_the_tree_is_not_told(tmp_path: Path) -> None:
    assert needs(tmp_path, {".gitmodules": "[submodule]\npath = deps/squid\n"}) == []


def test_a_submodule_whose_path_would_end_the_code_is_left_out(tmp_path: Path) -> None:
    lines = "[submodule]\npath = a` <!-- b\npath = deps/squid\n"
    (tmp_path / "project" / "deps/squid").mkdir(parents=True)
    (tmp_path / "project" / "a` <!-- b").mkdir()
    assert needs(tmp_path, {".gitmodules": lines}) == [("`deps/squid`", ".gitmodules", "submodules")]
    assert needs(tmp_path, {".gitmodules": "path = a` <!-- b\n"}) == []


def test_the_standard_of_a_part_is_not_that_of_the_project(tmp_path: Path) -> None:
    files = {"CMakeLists.txt": "project(a)\n", "sub/CMakeLists.txt": "set(CMAKE_CXX_STANDARD 17)\n"}
    assert needs(tmp_path, files) == []


def test_a_library_of_cpp_needs_no_swift_for_its_users(tmp_path: Path) -> None:
    assert needs(tmp_path, {"Package.swift": "// swift-tools-version:5.9\n", "include/a.hpp": "x\n"}) == []


def test_where_a_version_of_swift_is_chosen_that_of_the_manifest_is_not_told(tmp_path: Path) -> None:
    files = {"Package.swift": "// swift-tools-version:6.2\n", ".swift-version": "6.4.x-snapshot-2026-08-01\n"}
    assert needs(tmp_path, files) == []


def test_a_version_that_one_member_of_a_workspace_asks_for_is_not_that_of_the_whole(tmp_path: Path) -> None:
    files = {
        "Cargo.toml": '[workspace]\nmembers = ["one"]\n',
        "one/Cargo.toml": '[package]\nname = "one"\nrust-version = "1.70"\n',
    }
    assert needs(tmp_path, files) == []
