"""Which commands a survey finds in what a project itself says: CI, documentation, task runners."""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path

import pytest

from backstory.claude_md.read.commands import ci as workflows
from backstory.claude_md.read.commands.lines import Script, typed_in, units
from backstory.claude_md.read.commands.project_tasks import _moved
from backstory.claude_md.read.commands.roles import role_of, role_of_name
from backstory.claude_md.read.files import walk
from backstory.claude_md.read.manifests.folder import Folder, index, yaml
from backstory.claude_md.read.survey import commands_in
from backstory.claude_md.write.compose import _roles
from backstory.model import Command
from tests.helpers.claude_md_project import commit, run_git
from tests.helpers.survey import Files, look, write

GO: Files = {"go.mod": "module zoo\n", "a.go": "package zoo\n"}
UV: Files = {"pyproject.toml": '[project]\nname = "zoo"\n', "uv.lock": "", "zoo.py": "x = 1\n"}
NPM: Files = {"package.json": "{}", "a.js": "x\n"}
DJANGO: Files = {
    "manage.py": 'os.environ.setdefault("DJANGO_SETTINGS_MODULE", "zoo.settings")\n',
    "zoo/settings.py": "x = 1\n",
    "zoo/tests/test_a.py": "x = 1\n",
}


def workflow(
    *steps: str | dict[str, object], job: dict[str, object] | None = None, on: object = "push"
) -> str:
    listed = [{"run": step} if isinstance(step, str) else step for step in steps]
    return json.dumps({"on": on, "jobs": {"all": {"steps": listed, **(job or {})}}})


def ci(*steps: str | dict[str, object], **more: object) -> Files:
    return {".github/workflows/ci.yml": workflow(*steps, **more)}  # type: ignore[arg-type]


def lines(root: Path, files: Files, role: str | None = None) -> list[str]:
    return [one.line for one in look(root, files).commands if role in (None, one.role)]


# What a command is for


@pytest.mark.parametrize(
    ("line", "role"),
    [
        ("go mod download", "-"),
        ("cargo fmt --all", "format"),
        ("cargo fmt -- --check", "lint"),
        ("cargo +nightly clippy --fix", "format"),
        ("cargo nextest run", "test"),
        ("ruff check --fix .", "format"),
        ("uv run --python 3.12 --group docs ruff format --check .", "lint"),
        ("uv run manage.py migrate", "migrate"),
        ("python3.11 -m pytest -q", "test"),
        ("coverage run -m pytest", "test"),
        ("pip install -r dev.txt", "install"),
        ("pip install -e '.[dev]'", "install"),
        ("pip install zoo", "-"),
        ("npm install", "install"),
        ("npm install -g zoo", "-"),
        ("npm install zoo", "-"),
        ("npx prettier@3 --write .", "format"),
        ("npx --yes prettier --check .", "lint"),
        ("yarn", "install"),
        ("yarn eslint .", "lint"),
        ("pnpm exec playwright test", "test"),
        ("turbo run lint typecheck", "lint"),
        ("nx run-many -t lint test", "test"),
        ("nx run-many -t test lint", "test"),
        ("vue-tsc --noEmit", "lint"),
        ("./gradlew clean :core:test", "test"),
        ("./gradlew publishToMavenLocal", None),
        ("mvn -B -ntp verify", "test"),
        ("bundle exec standardrb --fix", "format"),
        ("./bin/rails db:migrate", "migrate"),
        ("bundle exec rake db:migrate", "migrate"),
        ("dotnet ef database update", "migrate"),
        ("rails db:setup", "wipe"),
        ("rails test db:drop", "wipe"),
        ("bin/rails db:schema:load db:migrate", "wipe"),
        ("rake db:drop db:create db:migrate", "wipe"),
        ("mix ecto.reset", "wipe"),
        ("npx prisma migrate reset", "wipe"),
        ("php artisan migrate:fresh", "wipe"),
        ("docker compose exec web pytest", "test"),
        ("docker run zoo", None),
        ("xcodebuild -scheme Zoo -testPlan all clean test", "test"),
        ("cmake -B build", "configure"),
        ("cmake --build build", "build"),
        ("cmake --build build --target docs", "-"),
        ("make distcheck", "-"),
        ("make -j 4", "build"),
        ("env CI=1 xvfb-run -a npx vitest", "test"),
        ("cargo publish", None),
        ("cargo install zoo", None),
        ("terraform apply", None),
        ("rm -rf /", None),
        ("", None),
    ],
)
def test_a_command_has_the_role_that_its_program_and_arguments_tell(line: str, role: str | None) -> None:
    words = [word for word in shlex.split(line) if word != "env"]
    found = role_of(words, lambda *_: None)
    assert (found and found[0]) == role


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("test", "test"),
        ("test:unit", "test"),
        ("run-tests", "test"),
        ("type-check", "lint"),
        ("types:check", "lint"),
        ("lint:fix", "format"),
        ("format", "format"),
        ("format:check", "lint"),
        ("fmt-check", "lint"),
        ("dev", "run"),
        ("db:migrate", "migrate"),
        ("db:migrate:reset", None),
        ("migrate-down", None),
        ("codegen", "generate"),
        ("tester", None),
        ("", None),
        ("zoo", None),
    ],
)
def test_a_name_has_a_role_where_it_says_one(name: str, role: str | None) -> None:
    assert role_of_name(name) == role


# Scripts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cd ui && yarn\nyarn test", ["ui: yarn", "ui: yarn test"]),
        ("(cd ui && yarn)\nmake", ["ui: yarn", ": make"]),
        ("git clone https://x/zoo.git\ncd zoo\nmake", [": make"]),
        ("cd nowhere\nmake", []),
        ("cd ..\nmake", []),
        ("cd $HOME && make", []),
        ("pytest --shard=${{ matrix.n }} --python ${{ x }} -q", [": pytest -q"]),
        ("pytest ${{ matrix.folder }}", []),
        ("pytest $FILES", []),
        ("make -C $DIR test", []),
        ("uv sync --locked --group dev", [": uv sync --group dev"]),
        ("uv run --group dev mypy", [": uv run mypy"]),
        ("uv run --no-default-groups --group lint mypy", [": uv run --group lint mypy"]),
        ("make test || (cat log; exit 1)", [": make test"]),
        ("./gradlew --no-daemon test --stacktrace --info", [": ./gradlew test"]),
        ("npm ci --ignore-scripts --no-audit --offline", [": npm ci --ignore-scripts"]),
        ("! uv run vulture | grep unused", []),
        ("tox run --installpkg dist/*.whl", []),
        ("pipenv install --three --dev", [": pipenv install --dev"]),
        ("CI=true npm test", [": npm test"]),
        ("npm run start &\nnpm test", [": npm run start", ": npm test"]),
        ("cargo \\\n  test \\\n  --all", [": cargo test --all"]),
        ("mypy src | tee log", [": mypy src"]),
        ("zoo schema > schema.json", []),
        ("make 2>/dev/null", [": make"]),
        ("sudo make install", []),
        ("if [ -n x ]; then\n  make\nfi", []),
        ("make\nfor x in a b; do make $x; done", [": make"]),
        ("for x in a b; do\n  if true; then make $x; fi\ndone\nmake test", [": make test"]),
        ("if true; then make; else make all; fi; make lint", [": make lint"]),
        ("case $x in\n  a) make a;;\nesac\nmake lint", [": make lint"]),
        ("if true; then\nmake", []),
        ("pytest --cov=src --cov-report=xml --junitxml=a.xml -q", [": pytest -q"]),
        ("cargo test --no-fail-fast --locked --color=always", [": cargo test"]),
        ("eslint 'src/**/*.ts' --max-warnings 0", [": eslint 'src/**/*.ts' --max-warnings 0"]),
        ("cat <<EOF\nmake\nEOF\nmake test", [": make test"]),
        ("make \x1b[31m", []),
        ("make " + "x" * 200, []),
        ("", []),
    ],
)
def test_a_script_is_what_a_developer_could_type(text: str, expected: list[str]) -> None:
    found = units(Script(text, "ci.yml"), {"ui", ""}.__contains__)
    assert [f"{unit.folder}: {unit.line}" for unit in found] == expected


# Continuous integration


def test_ci_says_how_it_is_done_before_manifests_do(tmp_path: Path) -> None:
    files = {**GO, ".golangci.yml": "", **ci("go build ./cmd/...", "go test -race ./...", "go vet ./...")}
    assert lines(tmp_path, files) == ["go build ./cmd/...", "go test -race ./...", "go vet ./..."]


@pytest.mark.parametrize(
    "on",
    [{"release": {}}, {"schedule": []}, "workflow_dispatch", {"push": {"tags": ["v*"]}}, ["release"]],
    ids=str,
)
def test_a_workflow_that_looks_at_no_change_says_nothing(tmp_path: Path, on: object) -> None:
    assert lines(tmp_path, {**GO, **ci("go test -tags release ./...", on=on)}, "test") == ["go test ./..."]


@pytest.mark.parametrize(
    "step",
    [
        {"run": "go test -v ./...", "shell": "pwsh"},
        {"run": "go test -v ./...", "if": "startsWith(github.ref, 'refs/tags/')"},
        {"run": "go test -v ./...", "name": "Publish"},
        {"run": "go test -v ./...", "working-directory": "${{ runner.temp }}"},
        {"run": "go test -v ./...", "working-directory": "/elsewhere"},
        {"run": "go test $PACKAGES"},
        {"run": ["go test"]},
        {"run": {"go": "test"}},
        {"uses": "./.github/actions/none"},
        None,
        "go test",
    ],
    ids=str,
)
def test_a_step_that_is_for_the_machine_says_nothing(tmp_path: Path, step: object) -> None:
    text = json.dumps({"on": "push", "jobs": {"all": {"steps": [step]}}})
    assert lines(tmp_path, {**GO, ".github/workflows/ci.yml": text}, "test") == ["go test ./..."]


def test_the_value_of_a_matrix_is_filled_in_where_there_is_only_one(tmp_path: Path) -> None:
    job: dict[str, object] = {"strategy": {"matrix": {"tags": ["zoo"], "go": ["1", "2"]}}}
    files = {**GO, **ci("go test -tags ${{ matrix.tags }} -p ${{ matrix.go }} ./...", job=job)}
    assert lines(tmp_path, files, "test") == ["go test -tags zoo ./..."]


def test_actions_workflows_and_scripts_that_a_workflow_calls_are_read(tmp_path: Path) -> None:
    files = {
        **GO,
        ".github/workflows/ci.yml": json.dumps(
            {
                "on": "pull_request",
                "jobs": {
                    "a": {"steps": [{"uses": "./.github/actions/check"}, {"run": "./scripts/lint.sh"}]},
                    "b": {"uses": "./.github/workflows/tests.yml"},
                },
            }
        ),
        ".github/workflows/tests.yml": workflow("go test -short ./...", on="workflow_call"),
        ".github/actions/check/action.yml": json.dumps({"runs": {"steps": [{"run": "go build -v ./..."}]}}),
        "scripts/lint.sh": "#!/bin/sh\ngo vet ./...\n",
    }
    found = {one.line: one.source for one in look(tmp_path, files).commands}
    assert found == {
        "go build -v ./...": ".github/actions/check/action.yml",
        "go test -short ./...": ".github/workflows/tests.yml",
        "./scripts/lint.sh": ".github/workflows/ci.yml",
    }


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (
            ".gitlab-ci.yml",
            ".go: &go\n  script:\n    - go test -race ./...\ntest:\n  <<: *go\n  stage: test\n",
        ),
        (".circleci/config.yml", "jobs:\n  a:\n    steps:\n      - run: {command: 'go test -race ./...'}\n"),
        ("azure-pipelines.yml", "steps:\n  - script: go test -race ./...\n"),
        (".travis.yml", "script: go test -race ./...\n"),
    ],
)
def test_other_services_are_read_as_well(tmp_path: Path, file: str, text: str) -> None:
    found = [one for one in look(tmp_path, {**GO, file: text}).commands if one.role == "test"]
    assert [(one.line, one.source) for one in found] == [("go test -race ./...", file)]


def test_travis_is_not_read_beside_workflows(tmp_path: Path) -> None:
    left = {".travis.yml": "script: golangci-lint run\n"}
    assert lines(tmp_path, {**GO, **left}, "lint") == ["golangci-lint run"]
    assert lines(tmp_path, {**GO, **left, **ci("go test ./...")}, "lint") == []


def test_the_plain_form_comes_before_the_special_ones(tmp_path: Path) -> None:
    steps = ("cargo test --release -- --ignored", "cargo test --locked", "cargo test --test zoo")
    files = {"Cargo.toml": '[package]\nname = "zoo"\n', "src/lib.rs": "x\n", **ci(*steps)}
    assert lines(tmp_path, files, "test") == ["cargo test"]


def test_a_formatter_that_ci_checks_with_formats_too(tmp_path: Path) -> None:
    files = {"Cargo.toml": '[package]\nname = "zoo"\n', "src/lib.rs": "x\n", **ci("cargo fmt --all --check")}
    assert lines(tmp_path, files, "lint") == ["cargo fmt --all --check"]
    assert lines(tmp_path, files, "format") == ["cargo fmt --all"]


# Documentation


def test_what_the_documentation_for_developers_says_comes_first_for_installing(tmp_path: Path) -> None:
    files = {
        **UV,
        "CONTRIBUTING.md": "# Setting up\n\n```bash\n$ uv sync --all-extras\nResolved 3 packages\n```\n",
        **ci("uv sync"),
    }
    assert [one.line for one in look(tmp_path, files).commands if one.role == "install"] == [
        "uv sync --all-extras"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "```sh\npip install zoo\n```\n",
        "```\nnpm install zoo\n```\n",
        "```sh\ndocker run -p 80:80 zoo\n```\n",
        "```sh\ncargo install zoo\n```\n",
        "```python\npytest.main()\n```\n",
        "# Deployment\n```sh\ngo run -tags production .\n```\n",
        "Never run `go test -exec sudo ./...`\n",
        "```sh\nmake test\n```\n",  # there is no Makefile
        "```sh\nnpm run dev\n```\n",
    ],
)
def test_what_users_type_and_what_cannot_work_is_left_out(tmp_path: Path, text: str) -> None:
    assert lines(tmp_path, {**GO, "README.md": text}) == ["go build ./...", "go test ./..."]


def test_a_command_on_what_is_above_the_project_is_left_out(tmp_path: Path) -> None:
    assert lines(tmp_path, {**UV, **ci("ruff check .")}, "lint") == ["ruff check ."]
    for outside in ("..", "../zoo"):
        assert lines(tmp_path, {**UV, **ci(f"ruff check {outside}")}, "lint") == []


def test_a_command_of_the_docs_belongs_to_the_folder_that_has_what_it_needs(tmp_path: Path) -> None:
    files = {
        **UV,
        "src/manage.py": 'os.environ.setdefault("DJANGO_SETTINGS_MODULE", "zoo.settings")\n',
        "docs/development.md": (
            "```bash\n# src/\nuv run manage.py migrate\n```\n\n```bash\nuv run manage.py runserver\n```\n"
        ),
    }
    assert lines(tmp_path, files) == [
        "uv sync",
        "cd src && uv run manage.py runserver",
        "cd src && uv run manage.py migrate",
    ]


def test_restructured_text_is_documentation_too(tmp_path: Path) -> None:
    text = (
        "Tests\n=====\n\nRun::\n\n    $ uv run pytest -x\n\n.. code-block:: console\n\n   $ uv run mypy .\n"
    )
    found = look(tmp_path, {**UV, "CONTRIBUTING.rst": text}).commands
    assert [(one.role, one.line) for one in found] == [
        ("install", "uv sync"),
        ("test", "uv run pytest -x"),
        ("lint", "uv run mypy ."),
    ]


def test_steps_before_a_build_are_said_with_it(tmp_path: Path) -> None:
    files = {
        "configure.ac": "AC_INIT([zoo], [1])\n",
        "Makefile.am": "TESTS = a\n",
        "autogen.sh": "",
        "a.c": "x",
        "README.md": "# Building\n\n```sh\n./autogen.sh\n./configure\nmake\nmake check\nsudo make\n```\n",
    }
    assert lines(tmp_path, files) == ["./autogen.sh && ./configure && make", "make check"]


def test_a_configure_that_is_neither_there_nor_made_is_not_started(tmp_path: Path) -> None:
    files: Files = {
        "configure.ac": "AC_INIT([zoo], [1])\n",
        "Makefile.am": "TESTS = a\n",
        "README.md": "# Building\n\n```sh\n./configure\nmake\nmake check\n```\n",
    }
    assert lines(tmp_path, files, "build") == ["autoreconf -i && ./configure && make"]
    assert lines(tmp_path, {**files, "configure": ""}, "build") == ["./configure && make"]


def test_programs_that_are_only_built_for_a_check_are_no_tests(tmp_path: Path) -> None:
    files = {"configure.ac": "AC_INIT([zoo], [1])\n", "Makefile.am": "check_PROGRAMS = a\n"}
    assert lines(tmp_path, files, "test") == []
    assert lines(tmp_path, {**files, "Makefile.am": "TESTS = a\n"}, "test") == ["make check"]


def test_a_build_whose_steps_are_not_known_is_taken_from_the_manifest(tmp_path: Path) -> None:
    files = {
        "CMakeLists.txt": "project(zoo CXX)\nenable_testing()\n",
        "a.cpp": "x",
        **ci("cmake -S . -B $BUILD", "cmake --build .", "ctest -C Debug"),
    }
    assert lines(tmp_path, files) == ["cmake -B build && cmake --build build", "ctest --test-dir build"]


# Task runners


def test_a_target_that_ci_calls_stands_for_what_it_runs(tmp_path: Path) -> None:
    files = {**GO, "Makefile": "test:\n\tgo test -v ./...\n", **ci("make test", "go test -race ./...")}
    assert lines(tmp_path, files, "test") == ["make test"]


def test_a_target_for_everything_is_not_the_one_for_the_tests(tmp_path: Path) -> None:
    makefile = "all: test lint\ntest:\n\tgo test ./...\nlint:\n\tgo vet ./...\n"
    files = {**GO, "Makefile": makefile, **ci("make all", "make test")}
    assert lines(tmp_path, files, "test") == ["make test"]
    assert lines(tmp_path, files, "check") == ["make all"]


def test_a_program_that_builds_the_program_is_not_what_is_run(tmp_path: Path) -> None:
    assert lines(tmp_path, {**GO, **ci("go run script/build.go", "go run x.org/tool@latest")}, "run") == []


def test_an_environment_of_tox_is_no_way_to_run_the_program(tmp_path: Path) -> None:
    files = {**UV, "tox.ini": "[tox]\nenvlist = py38-dev, py311\n[testenv]\ncommands = pytest\n"}
    assert lines(tmp_path, files, "run") == []


def test_a_target_that_nobody_calls_comes_behind_what_ci_runs(tmp_path: Path) -> None:
    files = {**GO, "Makefile": "test:\n\tgo test -v ./...\n", **ci("go test -race ./...")}
    assert lines(tmp_path, files, "test") == ["go test -race ./...", "make test"]


@pytest.mark.parametrize(
    ("script", "role"),
    [
        ({"test": "prettier --check ."}, "lint"),
        ({"style": "prettier --write ."}, "format"),
        ({"lint": "eslint --fix ."}, "format"),
        ({"build": "prisma migrate reset --force && next build"}, None),
        ({"format": "oxfmt --check"}, "lint"),
        ({"types:check": "tsc"}, "lint"),
        ({"build": "tsc && vite build"}, "build"),
        ({"check": "npm run unit", "unit": "vitest"}, "test"),
        ({"test": "npm run build && mocha", "build": "tsc"}, "test"),
        ({"test": "node scripts/run.js"}, "test"),
        ({"test": "npm test"}, "test"),
        ({"release": "npm run build"}, None),
        ({"release": "npm run generate", "generate": "protoc a.proto"}, None),
        ({"install": "npm run build", "build": "tsc"}, None),
        ({"prebuild": "eslint .", "build": "vite build"}, "build"),
    ],
    ids=str,
)
def test_the_recipe_of_a_task_tells_its_role(
    tmp_path: Path, script: dict[str, str], role: str | None
) -> None:
    files = {**NPM, "package.json": json.dumps({"scripts": script})}
    found = {one.line: one.role for one in look(tmp_path, files).commands if one.role != "install"}
    name = next(iter(script)) if "prebuild" not in script else "build"
    line = "npm test" if name == "test" else f"npm run {name}"
    assert found.get(line) == role


def test_a_taskfile_and_mise_are_task_runners(tmp_path: Path) -> None:
    files = {
        **GO,
        "Taskfile.yml": (
            "tasks:\n  lint:\n    cmds:\n      - task: vet\n  vet: go vet ./...\n  fmt: {cmd: gofumpt -w .}\n"
        ),
        "mise.toml": '[tasks.dev]\nrun = "go run ."\n[tasks.test]\nrun = ["go test ./..."]\n',
    }
    assert lines(tmp_path, files) == [
        "go build ./...",
        "mise run dev",
        "mise run test",
        "task lint",
        "task vet",
        "task fmt",
    ]


def test_a_command_that_starts_tasks_of_two_kinds_is_for_all_checks(tmp_path: Path) -> None:
    tasks = {**UV, "justfile": "lint:\n    ruff check\ntest:\n    pytest\n"}
    assert lines(tmp_path, {**tasks, **ci("just lint test")}, "check") == ["just lint test"]
    assert lines(tmp_path, {**tasks, **ci("just lint")}, "check") == []


def test_the_package_manager_of_a_workspace_holds_for_its_members(tmp_path: Path) -> None:
    files = {
        "package.json": '{"packageManager": "pnpm@9", "workspaces": ["packages/*"]}',
        "packages/zoo/package.json": '{"scripts": {"test": "vitest"}}',
        "packages/zoo/a.test.ts": "x\n",
    }
    look(tmp_path, files)
    found = commands_in(walk(str(tmp_path / "project")), "packages/zoo")
    assert [(one.role, one.line) for one in found] == [
        ("test", "pnpm test run"),
        ("one", "pnpm vitest run a.test.ts"),
    ]


# One test


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {**UV, "tests/test_a.py": "def test_it() -> None: ...\n", **ci("uv run pytest -q")},
            "uv run pytest tests/test_a.py::test_it",
        ),
        ({**GO, "api/a_test.go": "func TestIt(t *testing.T) {}\n"}, "go test ./api -run TestIt"),
        (
            {
                "Cargo.toml": '[workspace]\nmembers = ["a"]\n',
                "a/Cargo.toml": '[package]\nname = "zoo-a"\n',
                "a/src/lib.rs": "#[test]\nfn it_works() {}\n",
            },
            "cargo test -p zoo-a it_works",
        ),
        (
            {**NPM, "package.json": '{"scripts": {"test": "jest"}}', "yarn.lock": "", "a.test.js": "x\n"},
            "yarn jest a.test.js",
        ),
        ({"Gemfile": "gem 'rspec'\n", "spec/a_spec.rb": "x\n"}, "bundle exec rspec spec/a_spec.rb"),
        ({"mix.exs": "x\n", "test/a_test.exs": "x\n"}, "mix test test/a_test.exs"),
        (
            {"Package.swift": ".testTarget(", "Tests/ATests.swift": "final class ATests\n"},
            "swift test --filter ATests",
        ),
        ({**GO}, None),
        ({**UV, "tests/$(reboot)/test_a.py": "def test_it() -> None: ...\n", **ci("uv run pytest")}, None),
    ],
    ids=str,
)
def test_a_single_test_is_run_with_the_runner_of_the_project(
    tmp_path: Path, files: Files, expected: str | None
) -> None:
    assert lines(tmp_path, files, "one") == ([expected] if expected else [])


# Other ecosystems


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {
                "CMakeLists.txt": "project(zoo)\n",
                "CMakePresets.json": json.dumps(
                    {
                        "configurePresets": [{"name": "base", "hidden": True}, {"name": "dev"}],
                        "buildPresets": [{"name": "dev"}],
                        "testPresets": [{"name": "dev"}],
                    }
                ),
            },
            "cmake --preset dev && cmake --build --preset dev | ctest --preset dev",
        ),
        (
            {"meson.build": "project('zoo', 'c')\ntest('a', a)\n"},
            "meson setup build && meson compile -C build | meson test -C build",
        ),
        ({"configure.ac": "AC_INIT([zoo], [1])\n"}, "autoreconf -i && ./configure && make"),
        ({"build.zig": 'b.step("test", "x")'}, "zig build | zig build test"),
        ({"MODULE.bazel": ""}, "bazel build //... | bazel test //..."),
        (
            {"mix.exs": "{:phoenix, 1}\n", ".formatter.exs": "[inputs: []]"},
            "mix deps.get | mix phx.server | mix test | mix format",
        ),
        ({"Zoo.slnx": "", "test/Zoo.Tests/Zoo.Tests.csproj": ""}, "dotnet build | dotnet test"),
        (
            {"Package.swift": '.executableTarget(name: "zoo") .testTarget('},
            "swift build | swift run zoo | swift test",
        ),
        (
            {"pubspec.yaml": "dependencies:\n  flutter: x\n", "lib/main.dart": "", "test/a_test.dart": ""},
            "flutter pub get | flutter run | flutter test | flutter analyze | dart format .",
        ),
        ({"zoo.cabal": "name: zoo\ntest-suite a\n"}, "cabal build all | cabal test all"),
        ({"stack.yaml": "", "package.yaml": "tests: {a: 1}\n"}, "stack build | stack test"),
        ({"deno.json": '{"tasks": {"dev": "deno run a.ts"}, "lint": {}}'}, "deno task dev | deno lint"),
        ({"environment.yml": "dependencies: [python]\n"}, "conda env create -f environment.yml"),
        (
            {"package.json": '{"scripts": {"build": "turbo run build", "lint": "nx run-many -t lint"}}'},
            "npm install | npm run build | npm run lint",
        ),
        (
            {"Gemfile": "gem 'rails'\n", "bin/rails": "", "bin/setup": "", "bin/dev": "", "db/schema.rb": ""},
            "bin/setup | bin/dev | bin/rails db:prepare",
        ),
    ],
    ids=str,
)
def test_an_ecosystem_has_its_usual_commands(tmp_path: Path, files: Files, expected: str) -> None:
    assert lines(tmp_path, files) == expected.split(" | ")


@pytest.mark.parametrize(
    ("tests", "said"),
    [
        ("test/Zoo.Tests/Zoo.Tests.csproj", ["dotnet test test/Zoo.Tests"]),
        ("Zoo.Tests.csproj", ["dotnet test Zoo.Tests.csproj"]),
        ("README.md", []),
    ],
)
def test_benchmarks_of_dotnet_are_no_tests(tmp_path: Path, tests: str, said: list[str]) -> None:
    measured = {"bench/Speed.Tests/Speed.Tests.csproj": '<PackageReference Include="BenchmarkDotNet" />'}
    assert lines(tmp_path, {"Zoo.slnx": "", tests: "", **measured}, "test") == said


@pytest.mark.parametrize(
    ("state", "condition", "after"),
    [
        ("OFF", "ZOO_TESTS", True),
        ("OFF", "CMAKE_PROJECT_NAME STREQUAL PROJECT_NAME AND ZOO_TESTS", True),
        ("OFF", "NOT ZOO_TESTS", False),
        ("ON", "ZOO_TESTS", False),
    ],
)
def test_tests_of_cmake_that_are_off_are_switched_on_before_they_run(
    tmp_path: Path, state: str, condition: str, after: bool
) -> None:
    text = f"""project(zoo)
zoo_option(ZOO_TESTS "Build the tests" {state})
if({condition})
    if(${{ZOO_ON_LAND}})
    endif()
    enable_testing()
endif()
"""
    (test,) = [one for one in look(tmp_path, {"CMakeLists.txt": text}).commands if one.role == "test"]
    switched = "cmake -B build -DZOO_TESTS=ON && cmake --build build"
    assert (test.line, test.after) == ("ctest --test-dir build", switched if after else "")


# Parts of a project


def test_a_part_in_a_folder_of_its_own_has_commands_of_its_own(tmp_path: Path) -> None:
    files = {
        **GO,
        "ui/package.json": '{"scripts": {"test": "vitest", "dev": "vite"}}',
        "ui/yarn.lock": "",
        "ui/a.ts": "x" * 100,
        "examples/a/package.json": '{"scripts": {"test": "vitest"}}',
        "examples/a/a.ts": "x" * 100,
        **ci({"run": "yarn test --run", "working-directory": "ui"}),
    }
    found = [one for one in look(tmp_path, files).commands if one.folder]
    assert [(one.folder, one.role, one.line, one.source) for one in found] == [
        ("ui", "install", "cd ui && yarn install", "ui/package.json"),
        ("ui", "run", "cd ui && yarn dev", "ui/package.json"),
        ("ui", "test", "cd ui && yarn test --run", ".github/workflows/ci.yml"),
    ]


def test_the_members_of_a_workspace_and_folders_without_source_are_no_parts(tmp_path: Path) -> None:
    files = {
        "package.json": '{"workspaces": ["apps/*"]}',
        "apps/web/package.json": '{"scripts": {"test": "vitest"}}',
        "apps/web/a.ts": "x" * 1000,
        "support/build.gradle": "",
        "support/a.py": "x" * 1000,
        "templates/new/package.json": '{"scripts": {"test": "vitest"}}',
        "templates/new/a.ts": "x" * 1000,
        "tiny/package.json": '{"scripts": {"test": "vitest"}}',
        "tiny/a.ts": "x",
    }
    assert {one.folder for one in look(tmp_path, files).commands} == {""}


def test_an_edit_that_has_nothing_to_do_with_commands_changes_none(tmp_path: Path) -> None:
    files = {
        **UV,
        "tests/test_a.py": "def test_it() -> None: ...\n",
        **ci("uv run pytest", "uv run mypy src"),
    }
    before = look(tmp_path, files).commands
    assert look(tmp_path, {"zoo.py": "y = 2\n", "other_module.py": "z = 3\n"}).commands == before


# Hostile


def test_yaml_is_strings_lists_and_mappings() -> None:
    text = "on: [push]\na: &a {b: 1, c: no}\nd:\n  <<: *a\n  c: |\n    x\n    y\n"
    assert yaml(text) == {"on": ["push"], "a": {"b": "1", "c": "no"}, "d": {"b": "1", "c": "x\ny\n"}}


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "- " * 50_000,
        "{a: " * 50_000,
        "? " * 50_000,
        "a: &a [*a]\nb: *b\n",
        "a: 'b",
        "\x00",
        "%",
    ],
    ids=lambda text: text[:8],
)
def test_broken_and_endless_yaml_is_nothing(text: str) -> None:
    found = yaml(text)
    assert found is None or found == {"a": [None], "b": None}


def bomb(kind: str) -> str:
    rows = [f"a{n}: &a{n} {kind.format(n - 1)}" if n else "a0: &a0 {x: [make]}" for n in range(60)]
    return "\n".join([*rows, "script: *a59", "jobs: *a59", "steps: *a59", "on: push"])


@pytest.mark.parametrize(
    "kind", ["[*a{0}, *a{0}, *a{0}]", "{{<<: [*a{0}, *a{0}], k{0}: *a{0}, script: *a{0}}}"]
)
def test_aliases_that_explode_cost_nothing(tmp_path: Path, kind: str) -> None:
    start = time.process_time()
    files = dict.fromkeys(
        (".github/workflows/a.yml", ".gitlab-ci.yml", "Taskfile.yml", "pubspec.yaml"), bomb(kind)
    )
    look(tmp_path, files)
    assert time.process_time() - start < 2  # 0.1 here


def test_ten_thousand_steps_and_a_huge_file_are_cut(tmp_path: Path) -> None:
    steps = "".join(f"    - run: go test ./p{n}\n" for n in range(7_000))
    files = {
        **GO,
        ".github/workflows/many.yml": f"on: push\njobs:\n  a:\n    steps:\n{steps}",
        ".github/workflows/huge.yml": f"on: push\n# {'x' * 1_000_000}\n",
        "README.md": "```sh\ngo test ./x\n```\n" * 8_000,
        "Makefile": "".join(f"t{n}: t{n + 1}\n\tgo test\n" for n in range(8_000)),
    }
    start = time.process_time()
    assert len(lines(tmp_path, files, "test")) <= 3
    assert time.process_time() - start < 5  # 0.5 here


@pytest.mark.parametrize(
    "hostile",
    [
        "go test `reboot`",
        "go test $(reboot)",
        "go test \x1b[2J",
        "go test \u202egnp",
        "go test ./\x00a",
        "go test -x=$(y)z;",
    ],
)
def test_a_command_that_would_do_more_than_it_seems_is_left_out(tmp_path: Path, hostile: str) -> None:
    files = {**GO, **ci(hostile), "README.md": f"```sh\n{hostile}\n```\n"}
    assert set(lines(tmp_path, files, "test")) <= {"go test ./...", "go test"}


def test_tasks_that_call_each_other_end(tmp_path: Path) -> None:
    scripts = {"test": "npm run lint", "lint": "npm test"}
    files = {
        **NPM,
        "package.json": json.dumps({"scripts": scripts}),
        "Makefile": "test: check\ncheck: test\n",
    }
    assert lines(tmp_path, files, "test")


# What changes a database


def test_a_command_that_throws_a_database_away_brings_none_up_to_date(tmp_path: Path) -> None:
    files = {
        "Gemfile": "gem 'rails'\n",
        "a.rb": "x\n",
        "Makefile": "db:\n\trails db:drop db:migrate\nmigrate:\n\trails db:reset\n",
        "CONTRIBUTING.md": "```sh\nrails db:setup\nrails db:schema:load\n```\n",
        **ci("bin/rails db:schema:load db:migrate"),
    }
    assert lines(tmp_path, files, "migrate") == []


def test_a_task_that_starts_the_database_anew_and_then_tests_is_a_test(tmp_path: Path) -> None:
    files = {
        **NPM,
        "package.json": json.dumps({"scripts": {"test": "prisma migrate reset -f && vitest run"}}),
    }
    assert lines(tmp_path, files, "test") == ["npm test"]


# What CI sets around a command


@pytest.mark.parametrize("where", ["step", "job", "workflow"])
def test_a_command_whose_environments_ci_chooses_by_a_variable_is_not_said_without_it(
    tmp_path: Path, where: str
) -> None:
    env: dict[str, object] = {"env": {"TOX_ENV": "${{ matrix.tox }}"}}
    step = {"run": "uv run tox run", **(env if where == "step" else {})}
    job = {"steps": [step], **(env if where == "job" else {})}
    text = json.dumps({"on": "push", "jobs": {"all": job}, **(env if where == "workflow" else {})})
    project = '[project]\nname = "zoo"\n[dependency-groups]\ndev = ["pytest"]\n'
    files = {**UV, "pyproject.toml": project, "test_a.py": "", ".github/workflows/ci.yml": text}
    assert lines(tmp_path, files, "test") == ["uv run pytest"]


@pytest.mark.parametrize("where", ["step", "job", "workflow"])
def test_the_settings_that_ci_chooses_for_django_stand_before_the_command(tmp_path: Path, where: str) -> None:
    env: dict[str, object] = {"env": {"DJANGO_SETTINGS_MODULE": "zoo.for_tests"}}
    run: dict[str, object] = {"run": "python manage.py test"}
    step, job = (env if where == place else {} for place in ("step", "job"))
    document = json.loads(workflow({**run, **step}, job=job))
    text = json.dumps({**document, **(env if where == "workflow" else {})})
    files = {**DJANGO, ".github/workflows/ci.yml": text}
    assert lines(tmp_path, files, "test") == ["DJANGO_SETTINGS_MODULE=zoo.for_tests python manage.py test"]
    assert lines(tmp_path, files, "one") == [
        "DJANGO_SETTINGS_MODULE=zoo.for_tests python manage.py test zoo.tests.test_a"
    ]


@pytest.mark.parametrize(
    ("line", "settings", "said"),
    [
        ("python manage.py test", "a; reboot", "python manage.py test"),
        ("python manage.py test", "${{ matrix.settings }}", "python manage.py test"),
        ("python manage.py test --settings=zoo.a", "zoo.b", "python manage.py test --settings=zoo.a"),
        (
            "DJANGO_SETTINGS_MODULE=zoo.a python manage.py test",
            "zoo.b",
            "DJANGO_SETTINGS_MODULE=zoo.a python manage.py test",
        ),
    ],
)
def test_settings_that_are_no_module_or_chosen_already_are_not_set(
    tmp_path: Path, line: str, settings: str, said: str
) -> None:
    files = {**DJANGO, **ci({"run": line, "env": {"DJANGO_SETTINGS_MODULE": settings}})}
    assert lines(tmp_path, files, "test") == [said]


@pytest.mark.parametrize("where", ["step", "job"])
def test_what_may_fail_on_ci_is_no_check(tmp_path: Path, where: str) -> None:
    free: dict[str, object] = {"continue-on-error": True}
    step = {"run": "uv run mypy src", **(free if where == "step" else {})}
    assert lines(tmp_path, {**UV, **ci(step, job=free if where == "job" else None)}, "lint") == []


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ('typing = ["mypy"]', "uv run --group typing mypy src"),
        ('dev = ["mypy>=1"]', "uv run mypy src"),
        ('dev = [{include-group = "typing"}]\ntyping = ["mypy"]', "uv run mypy src"),
        ('typing = ["mypy"]\n[tool.uv]\ndefault-groups = ["typing"]', "uv run mypy src"),
        ('typing = ["mypy"]\n[tool.uv]\ndefault-groups = "all"', "uv run mypy src"),
        ('a = [{include-group = "b"}]\nb = [{include-group = "a"}]', "uv run mypy src"),
        ("typing = 3", "uv run mypy src"),
    ],
)
def test_a_program_of_a_group_that_is_not_installed_is_run_with_it(
    tmp_path: Path, groups: str, expected: str
) -> None:
    project = f'[project]\nname = "zoo"\n[dependency-groups]\n{groups}\n'
    files = {**UV, "pyproject.toml": project, **ci("uv sync --group typing", "uv run mypy src")}
    assert lines(tmp_path, files, "lint") == [expected]


def test_a_special_environment_of_tox_does_not_stand_for_the_tests(tmp_path: Path) -> None:
    project = '[project]\nname = "zoo"\n[dependency-groups]\ntests = ["pytest"]\n'
    tox = "[testenv]\ncommands = pytest\n[testenv:random]\ncommands = pytest -p random\n"
    files = {**UV, "pyproject.toml": project, "tox.ini": tox, "test_a.py": "def test_a(): ...\n"}
    files["CONTRIBUTING.md"] = "```sh\ntox r -e random\n```\n"
    assert lines(tmp_path, files, "test") == ["uv run --group tests pytest"]
    assert lines(tmp_path, files, "one") == ["uv run --group tests pytest test_a.py::test_a"]


# Commands that do not end


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("vitest", ["npm test -- run"]),
        ("vitest --config a.ts", ["npm test -- run"]),
        ("vitest run", ["npm test"]),
        ("vitest --run", ["npm test"]),
        ("ng test", ["npm test -- --watch=false"]),
        ("ng test --no-watch", ["npm test"]),
        ("react-scripts test", ["npm test -- --watchAll=false"]),
        ("jest", ["npm test"]),
        ("jest --watch", []),
        ("vitest --watch", []),
    ],
)
def test_a_runner_that_watches_on_a_terminal_is_told_not_to(
    tmp_path: Path, script: str, expected: list[str]
) -> None:
    files = {**NPM, "package.json": json.dumps({"scripts": {"test": script}}), **ci("npm test")}
    assert lines(tmp_path, files, "test") == expected


def test_a_raw_command_that_watches_is_told_not_to_as_well(tmp_path: Path) -> None:
    files = {**NPM, "pnpm-lock.yaml": "", "CONTRIBUTING.md": "```sh\npnpm vitest\n```\n"}
    assert lines(tmp_path, files, "test") == ["pnpm vitest run"]


def test_a_command_that_asks_is_no_check(tmp_path: Path) -> None:
    files = {"Gemfile": "", "a.rb": "x\n", **ci("bundle exec brakeman -I", "bundle exec standardrb")}
    assert lines(tmp_path, files, "lint") == ["bundle exec standardrb"]


def test_a_package_manager_that_ci_runs_by_way_of_mix_is_run_by_way_of_it(tmp_path: Path) -> None:
    files = {
        "mix.exs": "app: :zoo, {:bun, 1}\n",
        "lib/a.ex": "x\n" * 50,
        "assets/package.json": json.dumps({"scripts": {"test": "vitest run", "build": "vite build"}}),
        "assets/bun.lock": "",
        "assets/a.js": "x\n" * 40,
        "assets/a.test.js": "x\n",
        **ci("mix test", "mix bun assets install", "mix bun assets run test"),
    }
    found = [(one.role, one.line) for one in look(tmp_path, files).commands if one.folder == "assets"]
    assert found == [
        ("install", "mix bun assets install"),
        ("build", "mix bun assets run build"),
        ("test", "mix bun assets run test"),
    ]
    assert commands_in(walk(str(tmp_path / "project")), "assets") == ()


# Nothing is invented


@pytest.mark.parametrize(
    "files",
    [
        {"Cargo.toml": '[package]\nname = "zoo"\n', "src/main.rs": "fn main() {}\n"},
        {**UV, "pytest.ini": "[pytest]\n"},
    ],
)
def test_a_project_without_a_test_has_no_test_command(tmp_path: Path, files: Files) -> None:
    assert lines(tmp_path, files, "test") == []


@pytest.mark.parametrize("test", ["#[test]\nfn a() {}\n", "#[tokio::test]\nasync fn a() {}\n"])
def test_a_crate_with_a_test_inside_has_one(tmp_path: Path, test: str) -> None:
    files = {"Cargo.toml": '[package]\nname = "zoo"\n', "src/main.rs": "fn main() {}\n" + test}
    assert lines(tmp_path, files, "test") == ["cargo test"]


def test_a_script_of_the_project_formats_as_the_project_wants(tmp_path: Path) -> None:
    files = {"Package.swift": "", "a.swift": "x\n", ".swift-format": "{}"}
    assert lines(tmp_path, files, "format") == ["swift format -i -r ."]
    files["Scripts/format.sh"] = "git ls-files -z '*.swift' | xargs -0 swift format --in-place\n"
    assert lines(tmp_path, files, "format") == ["Scripts/format.sh"]


# Which single test


CMAKE_TESTS = "add_test(NAME ${name} COMMAND x)\nadd_zoo_test(walrus-test)\nadd_test(NAME b COMMAND b)\n"
VITEST = json.dumps({"scripts": {"test": "vitest run"}})


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {"CMakeLists.txt": "enable_testing()\n", "test/CMakeLists.txt": CMAKE_TESTS, "a.cc": "x\n"},
            "ctest --test-dir build -R walrus-test",
        ),
        (
            {**GO, "a_test.go": "func TestA(t *T)\n", "inner/b_test.go": "func TestB(t *T)\n"},
            "go test ./inner -run TestB",
        ),
        (
            {**GO, "e2e/a_test.go": "func TestA(t *T)\n", "quite/long/b_test.go": "func TestB(t *T)\n"},
            "go test ./quite/long -run TestB",
        ),
        (
            {
                "package.json": '{"scripts": {"test": "turbo run test"}, "workspaces": ["packages/*"]}',
                "packages/zoo/package.json": VITEST,
                "packages/zoo/src/oidc.test.ts": "x\n",
                "packages/zoo/src/animals.test.ts": "x\n",
            },
            "cd packages/zoo && npx vitest run src/animals.test.ts",
        ),
        (
            {
                "gradlew": "",
                "settings.gradle": "include 'core'",
                "build.gradle": "",
                "core/build.gradle": "",
                "core/src/test/java/zoo/ZooTest.java": "x\n",
            },
            "./gradlew :core:test --tests ZooTest",
        ),
        (
            {
                "pom.xml": "<project><modules><module>core</module></modules></project>",
                "core/pom.xml": "<project/>",
                "core/src/test/java/ZooTest.java": "x\n",
            },
            "mvn -pl core test -Dtest=ZooTest",
        ),
        (
            {
                "zoo.sln": "",
                "test/Zoo.Tests/Zoo.Tests.csproj": "",
                "test/Zoo.Tests/ZooTests.cs": "public class ZooTests\n",
            },
            "dotnet test test/Zoo.Tests --filter FullyQualifiedName~ZooTests",
        ),
    ],
)
def test_the_single_test_is_one_that_runs_alone_and_where_it_is(
    tmp_path: Path, files: Files, expected: str
) -> None:
    assert lines(tmp_path, files, "one") == [expected]


# What comes first


def after(root: Path, files: Files, role: str) -> list[tuple[str, str]]:
    return [(one.line, one.after) for one in look(root, files).commands if one.role == role]


SCRIPTS = {"package.json": json.dumps({"scripts": {"test": "jest", "build": "tsc"}}), "a.ts": "x\n"}


def test_what_every_job_builds_before_its_tests_is_said_with_them(tmp_path: Path) -> None:
    files = {**SCRIPTS, **ci("npm ci", "npm run build", "npm test")}
    assert after(tmp_path, files, "test") == [("npm test", "npm run build")]
    files[".github/workflows/other.yml"] = workflow("npm test")
    assert after(tmp_path, files, "test") == [("npm test", "")]


def test_the_text_says_what_comes_before_a_command() -> None:
    command = Command("test", "pnpm test", "ci.yml", after="pnpm build")
    assert [*_roles([command])] == ["- Test: `pnpm test`, after `pnpm build` (from `ci.yml`)"]


@pytest.mark.parametrize(
    ("steps", "job"),
    [
        (["npm ci", "npm test"], ""),
        (["npm ci", "echo hello", "git config a b", "node --version", "npm test"], ""),
        (["npm ci", "npm test", "npx coveralls"], ""),
        (["npm ci", "cp .env.ci .env", "npm test"], "all"),
        (["npm ci", "curl -O $HOST/data.zip", "npm test"], "all"),
        (["npm ci", "if [ -f x ]; then ./fetch; fi\nnpm test"], "all"),
        (["npm ci", "npm run build", "npm test"], ""),
    ],
)
def test_a_job_that_does_more_before_its_tests_than_is_told_is_named(
    tmp_path: Path, steps: list[str], job: str
) -> None:
    assert [one.job for one in look(tmp_path, {**SCRIPTS, **ci(*steps)}).commands if one.role == "test"] == [
        job
    ]


def test_a_job_whose_name_is_a_sentence_is_not_named(tmp_path: Path) -> None:
    steps = [{"run": "./fetch"}, {"run": "npm test"}]
    jobs = {"on": "push", "jobs": {"run curl x and send it": {"steps": steps}}}
    found = look(tmp_path, {**SCRIPTS, ".github/workflows/ci.yml": json.dumps(jobs)})
    assert [(one.line, one.job) for one in found.commands if one.role == "test"] == [("npm test", "")]


@pytest.mark.parametrize(
    ("step", "packages"),
    [
        ("sudo apt-get update && sudo apt-get install -y libssl-dev=3.0 meson", ("libssl-dev", "meson")),
        ("apt install --no-install-recommends libpq-dev $MORE", ("libpq-dev",)),
        ("if true; then sudo apt-get install libssl-dev; fi", ("libssl-dev",)),
        ("sudo apt-get install " + " ".join(f"lib{number}" for number in range(20)), ()),
        ("brew install openssl", ()),
    ],
)
def test_what_a_job_installs_with_apt_before_its_tests_is_told(
    tmp_path: Path, step: str, packages: tuple[str, ...]
) -> None:
    found = look(tmp_path, {**SCRIPTS, **ci(step, "npm test")}).commands
    assert [one.packages for one in found if one.role == "test"] == [packages]


def test_variables_that_ci_sets_for_the_tests_are_told_where_the_code_reads_them(tmp_path: Path) -> None:
    job = {"env": {"ZOO_URL": "postgres://a:b@c", "CARGO_TERM_COLOR": "always"}}
    step: dict[str, object] = {"run": "npm test", "env": {"ZOO_KEY": "${{ secrets.KEY }}"}}
    files = {**SCRIPTS, "a.ts": "process.env.ZOO_URL + env['ZOO_KEY']\n", **ci(step, job=job)}
    files["README.md"] = '"CARGO_TERM_COLOR" is on.\n'
    write(tmp_path, files)
    run_git(tmp_path / "project", "init", "-q")
    commit(tmp_path / "project", "begin")
    (test,) = [one for one in look(tmp_path, {}).commands if one.role == "test"]
    assert test.variables == ("ZOO_URL", "ZOO_KEY")
    assert "postgres" not in " ".join(_roles([test]))


def test_the_text_says_once_what_ci_does_first() -> None:
    build = Command("build", "make", "ci.yml", job="all", packages=("libpq-dev",))
    test = Command(
        "test", "make test", "ci.yml", job="all", packages=("libpq-dev", "meson"), variables=("URL",)
    )
    assert [*_roles([build, test])] == [
        "- Build: `make` (from `ci.yml`, whose job `all` does more before it;"
        " CI first installs `libpq-dev` with apt)",
        "- Test: `make test` (from `ci.yml`; CI first installs `meson` with apt; CI sets `URL`)",
    ]


def test_a_test_command_of_a_manifest_does_not_stand_beside_a_task_of_the_project(tmp_path: Path) -> None:
    files = {
        **GO,
        "Makefile": "test:\n\tgo test $(go list ./...)\n",
        "a_test.go": "func TestA(t *testing.T) {}\n",
    }
    assert lines(tmp_path, files, "test") == ["make test"]
    assert lines(tmp_path, files, "one") == ["go test . -run TestA"]


def test_the_example_of_a_test_is_one_of_many(tmp_path: Path) -> None:
    many = {f"core/tests/number_{number}.spec.ts": "x\n" for number in range(5)}
    files = {**NPM, **many, "a/b.spec.ts": "x\n", **ci("npx vitest run")}
    assert lines(tmp_path, files, "one") == ["npx vitest run core/tests/number_0.spec.ts"]


def test_what_a_job_builds_behind_its_tests_comes_not_before_them(tmp_path: Path) -> None:
    assert after(tmp_path, {**SCRIPTS, **ci("npm test", "npm run build")}, "test") == [("npm test", "")]


def test_the_build_of_a_part_is_a_step_before_that_of_the_program(tmp_path: Path) -> None:
    files = {
        **GO,
        "a.go": "package zoo\n" * 20,
        "Makefile": "build-js:\n\t(cd ui && yarn build)\n",
        "ui/package.json": json.dumps({"scripts": {"build": "vite build"}}),
        "ui/yarn.lock": "",
        "ui/a.ts": "x\n" * 40,
        **ci("make build-js", "go test ./..."),
    }
    found = [(one.role, one.line, one.after) for one in look(tmp_path, files).commands if not one.folder]
    assert ("build", "go build ./...", "make build-js") in found
    assert ("test", "go test ./...", "make build-js") in found


# Everything at once


@pytest.mark.parametrize(
    ("scripts", "expected"),
    [
        ({"check-all": "npm run lint && npm test"}, ["npm run check-all"]),
        ({"ci": "npm run lint && npm run build && npm test"}, ["npm run ci"]),
        ({"check": "npm run lint"}, []),
        (
            {"verify": "npm run check", "check": "npm run lint && npm test"},
            ["npm run check", "npm run verify"],
        ),
        ({"test-all": "npm run build && npm test"}, []),
        ({"release": "npm run build && npm test"}, []),
        ({"all": "npm run lint && prettier --write . && npm test"}, []),
        ({"all": "npm test && node start.js && vite"}, []),
    ],
)
def test_a_task_that_runs_checks_of_several_kinds_is_for_all_of_them(
    tmp_path: Path, scripts: dict[str, str], expected: list[str]
) -> None:
    usual = {"lint": "eslint .", "test": "jest", "build": "tsc"}
    files = {"package.json": json.dumps({"scripts": {**usual, **scripts}}), "a.js": "x\n"}
    found = look(tmp_path, files).commands
    assert [one.line for one in found if one.role == "check"] == expected
    assert {"npm test", "npm run build"} <= {one.line for one in found}


def test_an_alias_of_mix_before_a_commit_is_for_all_checks(tmp_path: Path) -> None:
    aliases = 'defp aliases do\n[\nprecommit: ["compile", "format --check-formatted", "test"]\n]\n'
    assert lines(tmp_path, {"mix.exs": aliases, "a.ex": "x\n"}, "check") == ["mix precommit"]


def test_what_checks_all_stands_before_the_single_checks() -> None:
    said = [*_roles([Command("lint", "make lint", "Makefile"), Command("check", "make ci", "Makefile")])]
    assert said == ["- All checks: `make ci` (from `Makefile`)", "- Lint: `make lint` (from `Makefile`)"]


# What stands deeper in CI


def test_a_matrix_of_folders_is_read_for_each(tmp_path: Path) -> None:
    job: dict[str, object] = {"strategy": {"matrix": {"part": ["ui", "api"]}}}
    step: dict[str, object] = {"run": "npm test", "working-directory": "${{ matrix.part }}"}
    package = json.dumps({"scripts": {"test": "jest"}})
    files = {f"{part}/package.json": package for part in ("ui", "api")}
    files |= {f"{part}/a.js": "x\n" * 20 for part in ("ui", "api")}
    found = look(tmp_path, {**files, **ci(step, job=job)}).commands
    tests = {(one.folder, one.source) for one in found if one.role == "test"}
    assert tests == {(part, ".github/workflows/ci.yml") for part in ("ui", "api")}


def test_an_action_with_arguments_runs_them(tmp_path: Path) -> None:
    step: dict[str, object] = {"uses": "astral-sh/ruff-action@v3", "with": {"args": "format --check"}}
    assert lines(tmp_path, {**UV, **ci(step)}, "lint") == ["ruff format --check"]


def test_the_style_script_of_one_corner_is_not_how_the_project_is_checked(tmp_path: Path) -> None:
    files = {**GO, "check-zoo-style.sh": "", "scripts/lint.sh": "", **ci("./check-zoo-style.sh")}
    assert lines(tmp_path, files, "lint") == ["scripts/lint.sh"]


def test_checks_of_words_and_licences_come_behind_those_of_code(tmp_path: Path) -> None:
    files = {
        "Cargo.toml": "[package]",
        "a.rs": "x\n",
        **ci("typos", "cargo clippy --all-targets --workspace"),
    }
    assert lines(tmp_path, files, "lint") == ["cargo clippy --all-targets --workspace", "typos"]


# What the name of a target says


@pytest.mark.parametrize("is_called", [True, False])
@pytest.mark.parametrize(
    ("target", "recipe", "role"),
    [
        ("testall", "go build ./...", "test"),
        ("test-smoke", "go build ./cmd && ./cmd/smoke", "test"),
        ("verify-generated", "go generate ./... && go build ./...", None),
        ("check-generated", "go generate ./...", None),
        ("verify", "go build ./...", None),
        ("deps", "go mod download", "install"),
        ("tools", "go install x.org/lint@v1", "install"),
        ("install-tools", "curl -o lint https://x.org/lint", "install"),
        ("install", "go install .", None),
        ("deps", "go get x.org/zoo@latest", None),
        ("bin/golangci-lint", "go build ./lint", None),
        ("zoo.pb.go", "protoc zoo.proto", None),
        ("zoo.stamp", "go build ./...", None),
        ("test.unit", "go test ./...", "test"),
        ("check", "go build ./... && go vet ./...", "lint"),
        ("check", "go build ./... && go test ./...", "test"),
        ("check", "go vet ./... && go test ./...", "check"),
        ("e2e-up", "docker compose up -d", None),
        ("e2e-up", "go test ./e2e", None),
        ("test-server", "go run ./server", None),
    ],
)
def test_a_clear_name_of_a_target_decides(
    tmp_path: Path, target: str, recipe: str, role: str | None, is_called: bool
) -> None:
    makefile = f"{target}:\n\t{recipe}\n"
    steps = [f"make {target}"] if is_called else []
    compose = {"compose.yml": "services: {web: {build: .}}"}
    found = look(tmp_path, {**GO, **compose, "Makefile": makefile, **ci(*steps)}).commands
    assert {one.line: one.role for one in found}.get(f"make {target}") == role


# How the program is run


@pytest.mark.parametrize(
    ("services", "expected"),
    [
        ("db: {image: postgres}", []),
        ("db: {image: postgres}, web: {build: .}", ["docker compose up"]),
        ("web: {build: {context: ./web}}", ["docker compose up"]),
        ("web: {build: 'https://x.org/other.git'}", []),
    ],
)
@pytest.mark.parametrize("readme", ["", "## Development\n```sh\ndocker compose up\n```\n"])
def test_services_without_the_program_are_not_how_it_is_run(
    tmp_path: Path, services: str, expected: list[str], readme: str
) -> None:
    files = {**GO, "compose.yml": f"services: {{{services}}}\n", "README.md": readme}
    assert lines(tmp_path, files, "run") == expected


def test_the_documentation_says_how_what_was_built_is_run(tmp_path: Path) -> None:
    block = "## Running\n```sh\n./bin/zoo serve config.dev.yaml\n./bin/other\n```\n"
    files = {
        **GO,
        "cmd/zoo/main.go": "package main\n",
        "cmd/cage/main.go": "package main\n",
        "CONTRIBUTING.md": block,
        "compose.yml": "services: {web: {build: .}}",
    }
    assert lines(tmp_path, files, "run") == ["./bin/zoo serve config.dev.yaml"]
    assert lines(tmp_path, {"CONTRIBUTING.md": block.replace("Running", "Packages")}, "run") == [
        "docker compose up"
    ]


# Of another language, and of some tests only


RUST = {"Cargo.toml": '[package]\nname = "zoo"\n', "src/lib.rs": "#[test]\nfn a() {}\n" * 50}


@pytest.mark.parametrize(
    "others",
    [
        {"Makefile": "test-php:\n\tcd php && phpunit\nbuild-php:\n\tcd php && make\n", **ci("make test-php")},
        {".github/workflows/php.yml": workflow("make test")},
        ci({"run": "./test.sh", "working-directory": "bindings/php"}),
        {"justfile": "test-php:\n\techo\nbuild-php:\n\techo\n"},
    ],
)
def test_what_is_for_a_language_of_which_there_is_little_is_not_for_the_root(
    tmp_path: Path, others: Files
) -> None:
    files = {**RUST, "bindings/php/a.php": "<?php\n", "bindings/php/test.sh": "phpunit\n"}
    files |= {"Makefile": "test:\n\tphpunit\n"} if "Makefile" not in others and len(others) == 1 else {}
    files |= others
    found = look(tmp_path, files).commands
    named = [one.line for one in found if one.role in ("build", "test") and not one.folder]
    assert named[0] == "cargo build"
    assert not [line for line in named if "php" in line]
    assert "cargo test" in named


def test_the_name_of_a_language_that_the_project_is_written_in_is_no_other(tmp_path: Path) -> None:
    files = {**RUST, "justfile": "test-rust:\n\tcargo test\n", "a.py": "x\n", **ci("just test-rust")}
    assert lines(tmp_path, files, "test") == ["just test-rust"]


@pytest.mark.parametrize(
    ("files", "step", "expected"),
    [
        ({"build.gradle": "", "gradlew": "", "A.java": "x"}, "./gradlew test --tests Zoo", "./gradlew test"),
        (GO, "go test ./... -run TestZoo", "go test ./..."),
        (GO, "go test -run=TestZoo ./...", "go test ./..."),
        (UV, "uv run pytest -k zoo", "uv run pytest"),
        (UV, "uv run pytest tests/test_zoo.py", "uv run pytest"),
        (UV, "uv run pytest tests/test_zoo.py::test_a", "uv run pytest"),
        ({"pom.xml": "<project/>", "A.java": "x"}, "mvn test -Dtest=Zoo", "mvn test"),
        ({"zoo.csproj": "<Project/>", "a.cs": "x"}, "dotnet test --filter Zoo", "dotnet test"),
        (GO, "go test -race ./...", "go test -race ./..."),
    ],
)
def test_a_command_for_some_tests_is_not_that_for_all(
    tmp_path: Path, files: Files, step: str, expected: str
) -> None:
    tests = {"tests/test_zoo.py": "def test_a(): pass\n"} if files is UV else {}
    assert lines(tmp_path, {**files, **tests, **ci(step)}, "test") == [expected]


@pytest.mark.parametrize(
    ("name", "step", "expected"),
    [
        ("lint", "npm run typecheck", ["npm run lint", "npm run typecheck"]),
        ("format", "npx prettier --write src", ["npm run format", "npx prettier --write src"]),
        ("test", "npm run test:unit", ["npm test", "npm run test:unit"]),
    ],
)
def test_the_script_that_is_called_as_the_role_comes_first(
    tmp_path: Path, name: str, step: str, expected: list[str]
) -> None:
    scripts = {
        "lint": "node lint.js",
        "typecheck": "tsc --noEmit",
        "format": "prettier --write .",
        "test": "jest",
        "test:unit": "jest unit",
    }
    files = {"package.json": json.dumps({"scripts": scripts}), "a.js": "x\n", **ci(step)}
    assert lines(tmp_path, files, name) == expected


# How everything is set up


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"mix.exs": 'defp aliases do\n[\nsetup: ["deps.get", "assets"]\n]\n', "a.ex": "x"}, "mix setup"),
        (
            {"Gemfile": "", "bin/setup": "#!/usr/bin/env ruby\n", "a.rb": "x", **ci("bundle install")},
            "bin/setup",
        ),
        ({**NPM, "Makefile": "setup:\n\tnpm install\n\tnpx husky\n", **ci("npm ci")}, "make setup"),
        (
            {"package.json": '{"scripts": {"setup": "npm install && node a.js"}}', "a.js": "x"},
            "npm run setup",
        ),
        ({"package.json": '{"scripts": {"setup": "node a.js"}}', "a.js": "x"}, "npm install"),
        ({**NPM, "justfile": "setup:\n\tnpm install\n", "README.md": "```\nnpm install\n```"}, "just setup"),
    ],
)
def test_a_task_that_sets_everything_up_stands_before_the_package_manager(
    tmp_path: Path, files: Files, expected: str
) -> None:
    assert lines(tmp_path, files, "install") == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("## In the keeper repo\n```\nnpm run zap\n```", []),
        ("## Test\n```\n# In the `keeper` repo\nnpm run zap\n```", []),
        ("## Test\n```\ncd ../keeper\nnpm run zap\n```", []),
        ("## Test\n```\n# In the keeper repo\nls\n# in the zoo repo\nnpm run zap\n```", ["npm run zap"]),
        ("## In the cloned repo\n```\nnpm run zap\n```", ["npm run zap"]),
    ],
)
def test_what_is_typed_in_another_repository_is_left_out(
    tmp_path: Path, text: str, expected: list[str]
) -> None:
    package = json.dumps({"name": "zoo", "scripts": {"zap": "jest"}})
    assert (
        lines(tmp_path, {"package.json": package, "a.js": "x\n", "CONTRIBUTING.md": text}, "test") == expected
    )


# A single test, and what is beside the program


def test_a_single_test_is_of_the_folder_that_its_runner_works_in(tmp_path: Path) -> None:
    files = {
        **GO,
        "a.go": "package zoo\n" * 50,
        "sub/go.mod": "module sub\n",
        "sub/a_test.go": "func TestA(t *testing.T) {}\n",
        "zoo/far/away_test.go": "func TestZoo(t *testing.T) {}\n",
        "Makefile": "test:\n\tphpunit\n\tgo test ./...\n",
        "php/composer.json": "{}",
        "php/tests/ZooTest.php": "<?php\n",
    }
    found = [one for one in look(tmp_path, files).commands if one.role == "one" and not one.folder]
    assert [one.line for one in found] == ["go test ./zoo/far -run TestZoo"]


def test_without_a_manifest_in_the_folder_there_is_no_single_test(tmp_path: Path) -> None:
    files = {
        "Makefile": "test:\n\tvendor/bin/phpunit\n",
        "sub/composer.json": "{}",
        "sub/AppTest.php": "<?php\n",
    }
    assert not [line for line in lines(tmp_path, files, "one") if not line.startswith("cd sub")]


@pytest.mark.parametrize("line", ["python bench/run.py", "go run ./examples/zoo", "node tools/serve.js"])
def test_what_is_beside_the_program_is_not_how_it_is_run(tmp_path: Path, line: str) -> None:
    scripts = {"bench/run.py": "", "tools/serve.js": "", "examples/zoo/main.go": "package main\n"}
    files = {**GO, **scripts, "CONTRIBUTING.md": f"## Develop\n```\n{line}\n```\n"}
    assert lines(tmp_path, files, "run") == []


def test_what_ci_sets_for_a_target_is_not_shown(tmp_path: Path) -> None:
    files = {**GO, "Makefile": "test:\n\tgo test ./...\n", **ci("make test V=1 RACE=true")}
    assert lines(tmp_path, files, "test") == ["make test"]


def test_a_workflow_that_others_call_is_read_where_it_is_called_with_its_own_variables(
    tmp_path: Path,
) -> None:
    called = json.dumps({"on": "workflow_call", "env": {"B": "1"}, "jobs": {"b": {"steps": [{"run": "b"}]}}})
    jobs = {"call": {"uses": "./.github/workflows/tests.yml"}, "own": {"steps": [{"run": "a"}]}}
    files = {
        ".github/workflows/ci.yml": json.dumps({"on": "push", "env": {"A": "1"}, "jobs": jobs}),
        ".github/workflows/tests.yml": called,
    }
    project = write(tmp_path, files)
    found = workflows.scripts(Folder(project, index(project)))
    assert [(script.text, sorted(script.sets)) for script in found] == [("b", ["B"]), ("a", ["A"])]


def test_a_task_that_is_called_as_its_runner_is_given_no_file(tmp_path: Path) -> None:
    tests = {
        f"tests/test_{name}.py": "class TestA:\n    def test_b(self): ...\n" for name in ("a", "bb", "ccc")
    }
    files = {"Makefile": "pytest:\n\tpytest\n", **UV, **tests, **ci("make pytest")}
    assert lines(tmp_path, files, "test") == ["make pytest"]
    assert lines(tmp_path, files, "one") == ["uv run pytest tests/test_a.py"]


@pytest.mark.parametrize(
    ("line", "folder"),
    [
        ("make -C .config/x", "web/.config/x"),
        ("yarn --cwd=..", ""),
        ("yarn --cwd=. test", "web"),
        ("make --directory=src", "web/src"),
        ("make test", "web"),
    ],
)
def test_an_option_says_where_a_program_works(line: str, folder: str) -> None:
    assert _moved(line.split(), "web") == folder
    assert _moved(["make", "-C", ".config"], "") == ".config"


def test_a_folder_is_quoted_where_a_shell_needs_it() -> None:
    assert typed_in("it's my app", "make") == """cd 'it'"'"'s my app' && make"""
    assert typed_in("web/app", "make") == "cd web/app && make"


def test_tasks_of_gulp_whose_names_mean_one_thing_are_commands(tmp_path: Path) -> None:
    gulpfile = (
        'gulp.task("test", test);\ngulp.task("test:watch", w);\ngulp.task("serve", s);\nexports.lint = l;\n'
    )
    found = look(tmp_path, {**NPM, "gulpfile.js": gulpfile}).commands
    told = {(one.role, one.line) for one in found if one.line.startswith("gulp")}
    assert told == {("test", "gulp test"), ("run", "gulp serve"), ("lint", "gulp lint")}


def test_one_test_is_run_by_go_where_gotestsum_runs_all_and_by_playwright(tmp_path: Path) -> None:
    go = {
        **GO,
        "Makefile": "test:\n\tgotestsum -- ./...\n",
        "in/a_test.go": "package in\n\nfunc TestIt(t *testing.T) {}\n",
    }
    assert Command("one", "go test ./in -run TestIt", "Makefile") in look(tmp_path / "go", go).commands
    web = {
        **NPM,
        "package.json": '{"scripts": {"test": "playwright test"}}',
        "tests/home.spec.ts": "test('it', () => {})\n",
    }
    lines = [one.line for one in look(tmp_path / "web", web).commands if one.role == "one"]
    assert lines == ["npx playwright test tests/home.spec.ts"]


@pytest.mark.parametrize("folder", ["./longer/e2e", "longer/e2e/"])
def test_one_test_of_playwright_is_in_the_folder_that_it_looks_in(tmp_path: Path, folder: str) -> None:
    files = {"package.json": '{"scripts": {"test": "playwright test"}}'}
    files |= dict.fromkeys(("unit/a.spec.ts", "longer/e2e/home.spec.ts"), "test('a')\n")
    config = {"playwright.config.ts": f"export default defineConfig({{ testDir: '{folder}' }})\n"}
    assert lines(tmp_path, {**files, **config}, "one") == ["npx playwright test longer/e2e/home.spec.ts"]
    for everywhere in (".", "./"):
        config = {"playwright.config.ts": f"export default {{ testDir: '{everywhere}' }}\n"}
        assert lines(tmp_path, {**files, **config}, "one") == ["npx playwright test unit/a.spec.ts"]


def test_what_brings_browsers_is_no_test(tmp_path: Path) -> None:
    files = {**NPM, **ci("npx playwright install chromium", "npx playwright test")}
    assert lines(tmp_path, files, "test") == ["npx playwright test"]


def test_a_target_that_has_tools_made_installs_whatever_the_tools_are_for(tmp_path: Path) -> None:
    makefile = "deps: bin/golangci-lint bin/gotestsum\nbin/golangci-lint:\n\tgolangci-lint run\n"
    files = {**GO, "Makefile": makefile, **ci("make deps")}
    assert "make deps" not in lines(tmp_path, files, "lint")
    assert lines(tmp_path, files, "install") == ["make deps"]


def test_one_test_of_an_android_module_names_the_task_that_takes_it(tmp_path: Path) -> None:
    files = {
        "settings.gradle": "include ':app'\n",
        "gradlew": "",
        "app/build.gradle": "plugins { id 'com.android.application' }\n",
        "app/src/test/java/ATest.java": "class ATest {}\n",
        **ci("./gradlew test"),
    }
    assert lines(tmp_path, files, "one") == ["./gradlew :app:testDebugUnitTest --tests ATest"]


def test_a_project_within_the_project_has_commands_of_its_own(tmp_path: Path) -> None:
    tool = {"plugins/cmd/gen/go.mod": "module gen\n", "plugins/cmd/gen/main.go": "package main\n"}
    steps = "cd plugins/cmd/gen && go build -o gen ."
    makefile = "build:\n\tgo build ./...\n"
    assert lines(tmp_path, {**GO, **tool, "Makefile": makefile, **ci(steps)}, "build") == ["make build"]
    del tool["plugins/cmd/gen/go.mod"]
    found = lines(tmp_path / "one", {**GO, **tool, "Makefile": makefile, **ci(steps)}, "build")
    assert "cd plugins/cmd/gen && go build -o gen ." in found


def test_a_script_among_the_workflows_is_for_machines(tmp_path: Path) -> None:
    files = {**GO, ".github/scripts/test.sh": "go test ./...\n", "scripts/test.sh": "go test ./...\n"}
    assert lines(tmp_path, {**files, **ci("./.github/scripts/test.sh")}, "test") == ["go test ./..."]
    assert "./scripts/test.sh" in lines(tmp_path, {**files, **ci("./scripts/test.sh")}, "test")


def test_make_alone_is_no_build_where_it_only_tells_what_there_is(tmp_path: Path) -> None:
    files = {**GO, "README.md": "# Z\n\n## Development\n\n```\nmake\n```\n"}
    rest = "all:\n\tgo build ./...\n"
    assert lines(tmp_path, {**files, "Makefile": f"help:\n\t@echo all\n{rest}"}, "build") != ["make"]
    assert lines(tmp_path, {**files, "Makefile": rest}, "build") == ["make"]


def test_what_only_watches_tests_is_not_how_the_program_is_run(tmp_path: Path) -> None:
    package = {"scripts": {"dev": "vitest --ui", "test": "vitest run"}}
    assert lines(tmp_path, {"package.json": json.dumps(package), "a.js": "x\n"}, "run") == []


def test_what_fills_a_database_is_not_how_the_program_is_run(tmp_path: Path) -> None:
    scripts = {"dev": "vite", "db:seed": "tsx run/seed.ts"}
    files = {"package.json": json.dumps({"scripts": scripts}), "README.md": "# Z\n\n## Run\n\n```\n{}\n```\n"}
    files["README.md"] = files["README.md"].format("npm run db:seed\nnpm run dev")
    assert lines(tmp_path, files, "run") == ["npm run dev"]


def test_a_tool_that_the_environment_has_not_is_not_run_in_it(tmp_path: Path) -> None:
    project = '[tool.poetry]\nname = "zoo"\n[tool.poetry.dependencies]\npython = "^3.12"\n{}\n[tool.black]\n'
    files = {".flake8": "[flake8]\n", "poetry.lock": "", "zoo.py": "x = 1\n"}
    found = look(tmp_path, {**files, "pyproject.toml": project.format("")}).commands
    assert [one.line for one in found if "run" in one.line] == []
    tools = 'black = "*"\nflake8-bugbear = "*"'
    found = look(tmp_path, {**files, "pyproject.toml": project.format(tools)}).commands
    assert [one.line for one in found if "run" in one.line] == ["poetry run flake8", "poetry run black ."]


def test_what_brings_the_tools_that_commands_are_run_with_is_installed_too(tmp_path: Path) -> None:
    gulp = "gulp.task('test', x);\ngulp.task('lint', x);\n"
    files = {
        **DJANGO,
        "Pipfile": "[packages]\ndjango = '*'\n",
        "package.json": '{"devDependencies": {"gulp": "5"}}',
        "zoo/a.py": "x = 1\n" * 500,
        "gulpfile.js": gulp,
        "CONTRIBUTING.md": "```\npipenv install --dev\ngulp test\ngulp lint\n```\n",
    }
    assert lines(tmp_path, files, "install") == ["pipenv install --dev", "npm install"]
    files["CONTRIBUTING.md"] = "```\npipenv install --dev\npipenv run ./manage.py test\n```\n"
    del files["gulpfile.js"]
    assert lines(tmp_path / "2", files, "install") == ["pipenv install --dev"]


def test_what_uv_installs_is_run_by_way_of_uv(tmp_path: Path) -> None:
    project = '[project]\nname = "zoo"\n[dependency-groups]\ndev = ["isort"]\nlint = ["ruff"]\n'
    files = {
        **UV,
        "pyproject.toml": project,
        **ci("pip install isort ruff", "isort .", "ruff check", "mypy ."),
    }
    assert lines(tmp_path, files, "format") == ["uv run isort ."]
    assert sorted(lines(tmp_path, files, "lint")) == ["mypy .", "uv run --group lint ruff check"]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("coverage run --parallel '--omit=*x*' -m pytest -x", ["pytest -x"]),
        ("coverage report", []),
    ],
)
def test_tests_are_run_without_what_measures_them(tmp_path: Path, line: str, found: list[str]) -> None:
    assert lines(tmp_path, {"a.py": "x = 1\n", "test_a.py": "", **ci(line)}, "test") == found


def test_gradle_is_run_by_the_wrapper_that_is_there(tmp_path: Path) -> None:
    files = {"build.gradle": "", "gradlew": "", "a.java": "x\n", "CONTRIBUTING.md": "```\ngradle test\n```\n"}
    assert lines(tmp_path, files, "test") == ["./gradlew test"]


def test_make_runs_no_tests_where_cmake_has_made_nothing_yet(tmp_path: Path) -> None:
    cmake = {"CMakeLists.txt": "project(zoo)\nenable_testing()\n"}
    readme = {"README.md": "# W\n\n## Building\n\n```\n./autogen.sh\n./configure\nmake\nmake check\n```\n"}
    assert lines(tmp_path, {**cmake, **readme}, "test") == ["ctest --test-dir build"]
    assert lines(tmp_path / "2", {**cmake, **readme, "Makefile": "check:\n\t./t\n"}, "test") == ["make check"]


def test_what_takes_new_snapshots_or_one_test_is_not_the_test_command(tmp_path: Path) -> None:
    cargo = {"Cargo.toml": '[package]\nname = "zoo"\n', "src/lib.rs": "#[test]\nfn it() {}\n"}
    one = ("cargo nextest run -E 'test(name)'", "cargo nextest run -p zoo-extra")
    steps = ("cargo insta test --accept", *one, "cargo nextest run")
    assert lines(tmp_path, {**cargo, **ci(*steps)}, "test") == ["cargo nextest run"]


def test_a_folder_where_nothing_but_an_install_is_known_has_no_line(tmp_path: Path) -> None:
    files = {**GO, "assets/package.json": '{"dependencies": {"a": "1"}}', "assets/a.js": "x\n" * 99}
    assert [one.line for one in look(tmp_path, files).commands if one.folder] == []


def test_the_same_by_a_shorter_name_is_said_once(tmp_path: Path) -> None:
    files = {**NPM, "pnpm-lock.yaml": "", "CONTRIBUTING.md": "```\npnpm i\n```\n", **ci("pnpm install")}
    assert len(lines(tmp_path, files, "install")) == 1


def test_of_pnpm_a_glob_of_two_stars_means_the_folder_too(tmp_path: Path) -> None:
    files = {
        "package.json": "{}",
        "pnpm-workspace.yaml": "packages:\n  - 'play/**'\n",
        "play/package.json": "{}",
    }
    assert look(tmp_path, files).workspaces == ("play",)


def test_a_test_of_another_project_of_python_is_not_run_from_above(tmp_path: Path) -> None:
    text = "def test_{}():\n    pass\n"
    files = {
        "pyproject.toml": "[tool.pytest.ini_options]\n",
        "sub/pyproject.toml": "[project]\nname = 'sub'\n",
    }
    files |= {f"sub/test_{name}.py": text.format(name) for name in "abcd"}
    assert "pytest sub/test_a.py::test_a" in lines(tmp_path / "1", files, "one"), (
        "a workspace tests all of them"
    )
    assert "pytest tests/test_x.py::test_x" in lines(
        tmp_path, {**files, "tests/test_x.py": text.format("x")}, "one"
    )


def test_a_fixture_is_no_test_that_one_can_run(tmp_path: Path) -> None:
    text = (
        "import pytest\n\n\n@pytest.fixture\ndef test_data():\n    return 1\n\n\ndef test_it():\n    pass\n"
    )
    files = {"pyproject.toml": "[tool.pytest.ini_options]\n", "tests/test_a.py": text}
    assert lines(tmp_path, files, "one") == ["pytest tests/test_a.py::test_it"]


def test_what_is_needed_for_documents_in_another_language_is_no_install(tmp_path: Path) -> None:
    files = {**GO, "a_test.go": "package zoo\n", "requirements.txt": "mkdocs\n"}
    assert lines(tmp_path, files, "install") == []
    assert lines(tmp_path / "py", {"requirements.txt": "flask\n", "a.py": "x = 1\n"}, "install") == [
        "pip install -r requirements.txt"
    ]


def test_what_the_jobs_with_the_tests_run_first_of_the_projects_own_is_said_with_them(tmp_path: Path) -> None:
    makefile = "web:\n\tcp a b\ndocs:\n\tcp c d\ncheck:\n\tgo vet ./...\n\tgo test ./...\n"
    files = {
        **GO,
        "Makefile": makefile,
        **ci("make docs", "echo hello", "make web", "make check", "make docs"),
    }
    assert after(tmp_path, files, "check") == [("make check", "make docs && make web")]


@pytest.mark.parametrize("by_ci", [True, False])
def test_tests_that_a_dependent_option_of_cmake_switches_off_are_switched_on(
    tmp_path: Path, by_ci: bool
) -> None:
    text = """project(zoo)
include(CTest)
cmake_dependent_option(ZOO_BUILD_TESTS
  "Build the tests" OFF
  "BUILD_TESTING;ZOO_IS_MAIN" OFF)
if(ZOO_BUILD_TESTS)
  add_subdirectory(test)
endif()
"""
    files = {"CMakeLists.txt": text, **(ci("ctest --test-dir build --output-on-failure") if by_ci else {})}
    ((line, before),) = after(tmp_path, files, "test")
    assert line.startswith("ctest --test-dir build")
    assert before == "cmake -B build -DZOO_BUILD_TESTS=ON && cmake --build build"


def test_a_check_before_the_tests_is_no_step_that_they_need(tmp_path: Path) -> None:
    scripts = {"scripts": {"test": "jest", "check-locale": "node check.js", "build": "tsc"}}
    files = {"package.json": json.dumps(scripts), "a.js": "x\n"}
    steps = ("npm run check-locale", "npm run build", "npm test")
    assert after(tmp_path, {**files, **ci(*steps)}, "test") == [("npm test", "npm run build")]


def test_of_many_variables_that_ci_sets_some_are_named() -> None:
    command = Command("test", "make test", "ci.yml", variables=tuple(f"V{number}" for number in range(9)))
    (said,) = _roles([command])
    assert said.endswith("CI sets `V0`, `V1`, `V2`, `V3`, `V4`, `V5` and 3 others)")


@pytest.mark.parametrize(
    ("files", "role", "found"),
    [
        ({"api/setup.py": "def setup_view(request): ...\n", "api/a.py": "x = 1\n" * 50}, "install", []),
        ({"mix.exs": "", ".formatter.exs": "[export: []]"}, "format", []),
        (
            {
                "package.json": '{"scripts": {"run-all-checks": "eslint . && jest"}}',
                "a.js": "x\n",
            },
            "run",
            [],
        ),
        ({"Taskfile.yml": "tasks:\n  docs:\n    cmds: [buf generate]\n"}, "generate", []),
        (
            {
                "Taskfile.yml": "tasks:\n  ui:check:\n    cmds: [eslint ., jest]\n"
                "  check:\n    cmds: [eslint ., jest]\n"
            },
            "check",
            ["task check"],
        ),
        (
            {**NPM, "prisma/migrations/1/a.sql": "", "CONTRIBUTING.md": "```\nnpx prisma db push\n```\n"},
            "migrate",
            [],
        ),
        (
            {
                "Cargo.toml": '[workspace]\nmembers = ["a"]\n',
                "a/src/lib.rs": "",
                **ci("cargo build --target wasm32-unknown-unknown -p a", "cargo xtask lint"),
            },
            "lint",
            ["cargo xtask lint"],
        ),
    ],
)
def test_what_only_looks_like_a_command_of_that_role_is_none(
    tmp_path: Path, files: Files, role: str, found: list[str]
) -> None:
    assert lines(tmp_path, files, role) == found


def test_tests_that_a_task_of_all_checks_runs_need_what_ci_does_before_it(tmp_path: Path) -> None:
    makefile = "web:\n\tcp a b\ntest:\n\tgo test ./...\nvet:\n\tgo vet ./...\ncheck: test vet\n"
    files = {**GO, "a_test.go": "package zoo\n", "Makefile": makefile}
    assert after(tmp_path / "1", {**files, **ci("make web", "make check")}, "test") == [
        ("make test", "make web")
    ]
    assert after(tmp_path / "2", {**files, **ci("make web", "make vet")}, "test") == [("make test", "")]


def test_a_program_at_the_top_is_run_as_the_readme_runs_it(tmp_path: Path) -> None:
    readme = (
        "# W\n\n## Usage\n\n```\npip install walrus\n./walrus.py <sea>\nDEEP=1 ./walrus.py sea.txt\n```\n"
    )
    found = lines(tmp_path, {"README.md": readme, "walrus.py": "x = 1\n"}, "run")
    assert found == ["DEEP=1 ./walrus.py sea.txt"]
    assert lines(tmp_path / "gone", {"README.md": readme, "a.py": "x = 1\n"}, "run") == []
    assert lines(tmp_path, {"README.md": readme, "walrus.py": "x = 1\n"}, "install") == []


def test_what_every_member_prepares_comes_before_the_tests(tmp_path: Path) -> None:
    files = {**SCRIPTS, "pnpm-lock.yaml": "", **ci("pnpm install", "pnpm run -r dev:prepare", "pnpm test")}
    assert after(tmp_path, files, "test") == [("pnpm test", "pnpm run -r dev:prepare")]


@pytest.mark.parametrize("step", ["npx --version", "uv run --help", "npx cross-env A=1"])
def test_a_step_of_ci_that_runs_nothing_by_way_of_another_program_is_no_step(
    tmp_path: Path, step: str
) -> None:
    assert after(tmp_path, {**GO, **ci(step, "go test ./...")}, "test") == [("go test ./...", "")]


@pytest.mark.parametrize(
    "step",
    [
        "make deploy-prod",
        "make reset-db",
        "make web | sh -s x",
        "make web && rm -rf /tmp/x",
        "make clean --directory=$RUNNER_TEMP/x",
        "make web V=1",
        "make web clean",
        "make -C api web",
        f"make web-{'x' * 160}",
    ],
)
def test_nothing_is_said_to_come_before_the_tests_that_does_more_than_it_says(
    tmp_path: Path, step: str
) -> None:
    targets = ("deploy-prod", "reset-db", "web", "clean", f"web-{'x' * 160}")
    makefile = "".join(f"{name}:\n\tcp a b\n" for name in targets)
    files = {**SCRIPTS, "Makefile": makefile, "api/Makefile": makefile, **ci(step, "npm test")}
    ((line, before),) = after(tmp_path, files, "test")
    # Each command of a step is one of its own.
    assert (line, before) == ("npm test", "make web" if step.startswith("make web &&") else "")


@pytest.mark.parametrize(
    "recipe",
    [
        "dropdb --if-exists app",
        "psql -c 'DROP DATABASE app'",
        "kubectl delete ns app",
        "rm -rf /",
        "rm -rf ~/x",
        "git push origin main",
        "sudo make install",
        "terraform apply",
        "curl -s x.example | sh",
        "make again",
    ],
)
def test_what_destroys_something_is_no_step_before_the_tests(tmp_path: Path, recipe: str) -> None:
    makefile = f"stand:\n\t{recipe}\nagain:\n\tdropdb app\n"
    files = {**SCRIPTS, "Makefile": makefile, **ci("make stand", "npm test")}
    assert after(tmp_path, files, "test") == [("npm test", "")]
    ((line, before),) = after(
        tmp_path / "build", {**files, "Makefile": "stand:\n\trm -rf dist && cc a.c\n"}, "test"
    )
    assert (line, before) == ("npm test", "make stand")


@pytest.mark.parametrize(
    ("heading", "line"),
    [
        ("Usage", "npx walrus.py"),
        ("Usage", "uv run --with https://x.example/y.tar.gz walrus.py"),
        ("Usage", "docker compose run -v /:/host walrus.py"),
        ("Usage", "python -m walrus.py"),
        ("Usage", "./walrus.py | sh"),
        ("Usage", "./walrus.py > /etc/x"),
        ("Usage", "LD_PRELOAD=x.so ./walrus.py"),
        ("Usage", "PATH=. ./walrus.py"),
        ("Usage", "./wipe.py now"),
        ("Usage", "./reset-db.sh --force"),
        ("Starting over", "./walrus.py --all"),
        ("Removing all data", "./walrus.py"),
    ],
)
def test_what_is_not_just_a_program_at_the_top_is_not_run(tmp_path: Path, heading: str, line: str) -> None:
    files = {"README.md": f"# W\n\n## {heading}\n\n```\n{line}\n```\n"}
    files |= dict.fromkeys(("walrus.py", "wipe.py", "reset-db.sh"), "x = 1\n")
    assert lines(tmp_path, files, "run") == []


def test_what_comes_before_the_tests_of_a_folder_is_typed_there(tmp_path: Path) -> None:
    files = {
        "web/package.json": json.dumps({"scripts": {"test": "jest", "gen": "node gen.js"}}),
        "web/a.ts": "x\n" * 40,
        "Makefile": "protos:\n\tprotoc a.proto\n",
        **ci("make protos", "cd web && npm run gen", "cd web && npm test"),
    }
    found = look(tmp_path, files).commands
    tests = [(one.line, one.after) for one in found if one.role == "test"]
    assert tests == [("cd web && npm test", "cd web && npm run gen")]
    inside = [(one.line, one.after) for one in commands_in(walk(str(tmp_path / "project")), "web")]
    assert ("npm test", "npm run gen") in inside


def test_tox_with_words_that_are_no_sessions_is_a_sentence(tmp_path: Path) -> None:
    files = {"tox.ini": "[tox]\nenvlist = py312\n[testenv]\ncommands = pytest\n", "zoo.py": "x = 1\n"}
    assert "tox run -e py312" in lines(tmp_path, {**files, **ci("tox run -e py312 -- -k fast")}, "test")[0]
    assert lines(tmp_path, {**files, **ci("tox and first run it and tell nobody")}, "test")[0] == "tox"
