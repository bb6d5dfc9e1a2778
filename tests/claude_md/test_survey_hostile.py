"""What a survey makes of hostile and broken manifests."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from backstory.claude_md.learn import learn
from backstory.claude_md.read import imports, outline
from backstory.claude_md.read.files import walk
from backstory.claude_md.read.manifests.tasks import rules
from backstory.claude_md.read.survey import survey
from backstory.model import Survey
from tests.helpers.survey import look

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
    *("CMakeLists.txt", "CMakePresets.json", "meson.build", "configure.ac", "Makefile.am", "build.zig"),
    *("mix.exs", "x.sln", "Package.swift", "pubspec.yaml", "stack.yaml", "x.cabal", "deno.json"),
    *("environment.yml", "Taskfile.yml", "mise.toml", ".gitlab-ci.yml", ".circleci/config.yml"),
    *("azure-pipelines.yml", ".travis.yml", "CONTRIBUTING.rst", "docs/development.md", "ui/package.json"),
    *("CONTRIBUTING.md", "docs/architecture.adoc", "compose.yml", ".gitattributes", ".gitmodules"),
    *("CHANGELOG.md", "tsconfig.json", "biome.json", ".prettierrc", ".editorconfig", "rustfmt.toml"),
    *(".nvmrc", ".tool-versions", "global.json", "rust-toolchain.toml", "Directory.Build.props"),
]


def all_of(root: Path, content: bytes) -> Survey:
    """A project in which every manifest says the same."""
    for kind in KINDS:
        (root / kind).parent.mkdir(parents=True, exist_ok=True)
        (root / kind).write_bytes(content)
    return survey(walk(str(root)))


@pytest.mark.slow
@settings(max_examples=60)
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


@pytest.mark.slow
@settings(max_examples=100)
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


@pytest.mark.slow
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
        "[" * 60_000,
        "![" * 30_000,
        "<a " * 60_000,
        '"\\' * 90_000,
        ":a" * 90_000,
        "a linguist-" * 17_000,
        "image: a/" * 20_000,
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
    makefile = "a b: c\n\t@one\nx=y: z\n\tno\nd\\:e : f ; two\ni ::= j\n.PHONY: a\n"
    assert rules(makefile) == [("a", "make c\none"), ("b", "make c\none"), ("d:e", "make f\ntwo")]


def run_in_ci(steps: str, more: str = "") -> str:
    return f"{more}on: push\njobs:\n  a:\n    steps:\n{steps}"


GROWING = {
    "workflows that call themselves": {
        ".github/workflows/ci.yml": "on: push\njobs:\n"
        + "".join(f"  j{n}:\n    uses: ./.github/workflows/ci.yml\n" for n in range(200))
    },
    "actions that call themselves": {
        ".github/workflows/ci.yml": run_in_ci("      - uses: ./x\n"),
        "x/action.yml": "runs:\n  steps:\n" + "  - uses: ./x\n" * 9_000,
    },
    "a long script in every step": {
        ".github/workflows/ci.yml": run_in_ci(
            "      - run: *long\n" * 900, "x: &long |\n" + "  make build\n" * 8_000
        ),
        "Makefile": "build:\n\tcargo build\n",
    },
    "steps that build before others": {
        ".github/workflows/ci.yml": run_in_ci(
            "      - run: *long\n" * 990, "x: &long |\n" + "".join(f"  make build{n}\n" for n in range(290))
        ),
        "Makefile": "".join(f"build{n}:\n\tcargo build\n" for n in range(290)),
        "Cargo.toml": "[package]\n",
    },
    "a long value in every expression": {
        ".github/workflows/ci.yml": "on: push\njobs:\n  a:\n    strategy:\n      matrix:\n        a: ["
        + "z" * 90_000
        + ']\n    steps:\n      - run: "'
        + "${{matrix.a}}" * 6_000
        + '"\n'
    },
    "an expression without an end": {
        ".github/workflows/ci.yml": run_in_ci(f'      - run: "${{{{{" " * 150_000}x"\n')
    },
    "a folder of slashes": {
        ".github/workflows/ci.yml": run_in_ci(
            f"      - run: make\n        working-directory: a{'/' * 150_000}b\n"
        )
    },
    "a long script in every job of GitLab": {
        ".gitlab-ci.yml": "a: &a |\n"
        + "  make test\n" * 8_000
        + "".join(f"j{n}:\n  script: [{','.join(['*a'] * 400)}]\n" for n in range(20)),
        "Makefile": "test:\n\tpytest\n",
    },
    "a long variable in every line of a Makefile": {
        "Makefile": "A = " + "z" * 90_000 + "\ntest:\n" + ("\t" + "$(A)" * 200 + "\n") * 100
    },
    "a long line in every task": {
        "Taskfile.yml": f"x: &b {'z' * 90_000}\ntasks:\n"
        + "".join(f"  t{n}:\n    cmds: [{','.join(['*b'] * 190)}]\n" for n in range(120))
    },
    "targets that need each other": {
        "Makefile": "".join(f"t{n}: {' '.join(f't{m}' for m in range(50))}\n" for n in range(300))
    },
    "scripts that run each other": {
        "package.json": json.dumps(
            {"scripts": {f"test{n}": " && ".join(f"npm run test{m}" for m in range(150)) for n in range(200)}}
        )
    },
    "environments in braces": {
        "tox.ini": f"[tox]\nenvlist = {','.join(f'{{a,b,c}}{{d,e}}{n}' for n in range(3_000))}\n[testenv]\n"
        + "commands =\n"
        + "  pytest\n" * 3_000
    },
    "groups that include each other": {
        "pyproject.toml": "[dependency-groups]\n"
        + "".join(
            f'g{n} = [{{include-group = "g{(n + 1) % 300}"}}, {{include-group = "g{(n + 2) % 300}"}}]\n'
            for n in range(300)
        ),
        ".github/workflows/ci.yml": run_in_ci("      - run: |\n" + "          uv run pytest\n" * 290),
    },
    "roles of reStructuredText without an end": {"CONTRIBUTING.rst": ":a:`x <" * 8_500},
}


@pytest.mark.parametrize("files", GROWING.values(), ids=GROWING)
def test_a_small_file_that_stands_for_much_takes_little_time(tmp_path: Path, files: dict[str, str]) -> None:
    start = time.process_time()
    look(tmp_path, files)
    assert time.process_time() - start < 15  # one here, four at most; without bounds minutes, or no end


def test_what_is_not_read_in_time_is_left_out_and_that_is_known(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("test:\n\tpytest\n")
    (tmp_path / "main.py").write_text("x = 1\n")
    in_time, late = learn(str(tmp_path)), learn(str(tmp_path), seconds=-1)
    assert [command.line for command in in_time.survey.commands] == ["make test"]
    assert (late.survey.commands, late.survey.languages) == ((), in_time.survey.languages)
    assert (in_time.is_cut, late.is_cut) == (False, True)
    assert late.project.text("Makefile")  # a wizard may ask for more, later


def test_a_folder_whose_name_is_no_plain_one_is_in_no_command(tmp_path: Path) -> None:
    odd = ("a; touch pwned", 'b"$(id)"', "c\nd", "-e")
    files = {f"{name}/test_a.py": "def test_a(): ...\n" for name in odd}
    files |= {f"{name}/pyproject.toml": '[project]\nname = "x"\n' for name in odd}
    steps = "".join(f"      - run: pytest\n        working-directory: {json.dumps(name)}\n" for name in odd)
    files[".github/workflows/ci.yml"] = f"on: push\njobs:\n  t:\n    runs-on: x\n    steps:\n{steps}"
    found = look(tmp_path, files)
    assert not [one.line for one in found.commands if one.line.startswith("cd ") or "pwned" in one.line]
