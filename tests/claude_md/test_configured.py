"""What the settings of tools ask of those who write code."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.helpers.survey import Files, look


def asked(root: Path, files: Files) -> list[tuple[str, str]]:
    return [(fact.text, fact.source) for fact in look(root, files).settings]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", "[tool.ruff]\nline-length = 100\n[tool.black]\nline-length = 88\n"),
        ("pyproject.toml", "[tool.black]\nline-length = 100\n"),
        ("rustfmt.toml", "max_width = 100\n"),
        ("biome.json", '{"formatter": {"lineWidth": 100}}'),
        (".flake8", "[flake8]\nmax-line-length = 100\n"),
    ],
)
def test_how_long_a_line_may_be(tmp_path: Path, name: str, text: str) -> None:
    assert asked(tmp_path, {name: text}) == [("Lines have at most 100 characters", name)]


def test_what_clang_format_asks_for(tmp_path: Path) -> None:
    used = {"CONTRIBUTING.md": "Run clang-format before each commit.\n"}
    assert asked(tmp_path, {**used, ".clang-format": "BasedOnStyle: Google\nColumnLimit: 100\n"}) == [
        ("Lines have at most 100 characters", ".clang-format"),
        ("C and C++ are formatted by clang-format (Google style)", ".clang-format"),
    ]
    assert asked(tmp_path, {**used, ".clang-format": "ColumnLimit: 0\n"}) == [
        ("C and C++ are formatted by clang-format", ".clang-format")
    ]
    assert asked(tmp_path / "unused", {".clang-format": "ColumnLimit: 0\n"}) == []


def test_the_width_that_prettier_keeps_is_that_of_its_files(tmp_path: Path) -> None:
    said = "Lines of files that Prettier formats have at most 100 characters"
    for name, text in ((".prettierrc", '{"printWidth": 100}'), (".prettierrc.yaml", "printWidth: 100\n")):
        assert asked(tmp_path / name, {name: text}) == [(said, name)]


def test_hooks_of_pre_commit_are_named_without_those_that_everybody_has(tmp_path: Path) -> None:
    text = "repos:\n- repo: x\n  hooks:\n  - id: check-yaml\n  - id: ruff-check\n  - id: 'codespell'\n"
    (said,) = asked(tmp_path, {".pre-commit-config.yaml": text})
    assert said == (
        "Hooks of pre-commit check each commit: `ruff-check`, `codespell`",
        ".pre-commit-config.yaml",
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", "[tool.ruff]\nline-length = true\n"),
        ("pyproject.toml", f"[tool.ruff]\nline-length = 0x{'F' * 6_000}\n"),
        ("pyproject.toml", '[tool.ruff]\nline-length = "x"\n'),
        (".flake8", f"[flake8]\nmax-line-length = {'9' * 6_000}\n"),
        (".editorconfig", "[*.md]\nmax_line_length = 80\n"),
    ],
)
def test_a_length_that_nobody_means_is_not_told(tmp_path: Path, name: str, text: str) -> None:
    assert asked(tmp_path, {name: text}) == []


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("pyproject.toml", "[tool.mypy]\nstrict = true\n", ["mypy is strict: every function has types"]),
        ("pyproject.toml", "[tool.mypy]\nstrict = false\n", []),
        (
            "pyproject.toml",
            '[tool.mypy]\nstrict = true\n[[tool.mypy.overrides]]\nmodule = "a"\nignore_errors = true\n',
            [],
        ),
        (
            "Directory.Build.props",
            "<TreatWarningsAsErrors>true</TreatWarningsAsErrors>",
            ["Compiler warnings are errors"],
        ),
        (
            "Cargo.toml",
            '[workspace.lints.rust]\nunsafe_code = "forbid"\nmissing_docs = {level = "deny"}\n',
            ["`unsafe` code is not allowed", "Every public item needs a doc comment"],
        ),
        ("Cargo.toml", '[lints.rust]\nunsafe_code = "warn"\n', []),
        ("Cargo.toml", "lints = 3\n", []),
        (
            ".husky/commit-msg",
            "npx commitlint --edit $1\n",
            ["commitlint checks commit messages: Conventional Commits"],
        ),
        ("commitlint.config.js", "", []),  # nothing runs it
        (".github/dco.yml", "", ["Commits are signed off (`git commit -s`)"]),
    ],
)
def test_what_is_strict(tmp_path: Path, name: str, text: str, said: list[str]) -> None:
    assert [fact for fact, _ in asked(tmp_path, {name: text})] == said


def test_names_that_imports_use_for_folders(tmp_path: Path) -> None:
    text = """// with comments
{"extends": "x", "compilerOptions": {"paths": {
  "@/*": ["./src/*"], /* and */ "~lib/*": ["lib/*"], "one": ["y"], "no/*": [], "b/*": ["q`"], "c*": [3],
}}}"""
    said = 'In imports `"@/*"` is `./src/*`, `"~lib/*"` is `lib/*`'
    assert asked(tmp_path, {"tsconfig.json": text}) == [(said, "tsconfig.json")]


def test_a_sign_of_a_comment_in_a_string_begins_none(tmp_path: Path) -> None:
    text = '{"compilerOptions": {"paths": {"@//*": ["src/*"]}}, "a": "\\" /*"}'
    assert asked(tmp_path, {"tsconfig.json": text}) == [('In imports `"@//*"` is `src/*`', "tsconfig.json")]


NOTED = "Changes that users notice are noted in"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {".changeset/config.json": "{}", "CHANGELOG.md": "## Unreleased\n"},
            ["A change that users notice needs a changeset (a file in `.changeset/`)"],
        ),
        (
            {"pyproject.toml": '[tool.towncrier]\ndirectory = "news"\n', "news/1.md": ""},
            ["A change that users notice needs a news fragment in `news/`"],
        ),
        ({"pyproject.toml": '[tool.towncrier]\ndirectory = "gone"\n'}, []),
        (
            {"CHANGELOG.md": "# C\n\n## [Unreleased](x)\n\n- a fish\n\n## 1.0\n"},
            [f"{NOTED} `CHANGELOG.md` under `Unreleased`"],
        ),
        (
            {"CHANGES.rst": "Unreleased\n----------\n\n* a fish\n"},
            [f"{NOTED} `CHANGES.rst` under `Unreleased`"],
        ),
        ({"CHANGELOG.md": "# C\n\n## Unreleased\n\n## 1.0\n\n- a fish\n"}, []),  # written at a release
        ({"CHANGELOG.md": "# C\n\n## 1.0\n"}, []),
        ({"docs/CHANGELOG.md": "## Unreleased\n"}, []),
    ],
)
def test_where_changes_are_noted(tmp_path: Path, files: Files, said: list[str]) -> None:
    assert [fact for fact, _ in asked(tmp_path, files)] == said


@pytest.mark.parametrize(
    "text",
    ['"\\' * 49_000, "/* " * 33_000, "[" * 99_000, ", " * 49_000, "//" * 49_000, '{"a":' * 20_000],
    ids=lambda text: text[:4],
)
def test_hostile_settings_take_no_time(tmp_path: Path, text: str) -> None:
    start = time.process_time()
    assert asked(tmp_path, {"tsconfig.json": text}) == []
    assert time.process_time() - start < 3  # 0.1 here, more than a minute with the square


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("src/Directory.Build.props", "<TreatWarningsAsErrors>true</>", "Compiler warnings are errors"),
        (
            "meson.build",
            "project('a', 'c', default_options: ['werror=true'])",
            "Compiler warnings are errors",
        ),
        (
            ".github/workflows/ci.yml",
            "env:\n  RUSTFLAGS: -D warnings\n",
            "Compiler warnings are errors in CI",
        ),
    ],
)
def test_a_warning_that_breaks_the_build_is_told(tmp_path: Path, name: str, text: str, said: str) -> None:
    assert (said, name) in asked(tmp_path, {name: text})
    assert asked(tmp_path, {name: "a = 1\n"}) == []


def test_what_an_install_of_packages_runs_besides_is_told(tmp_path: Path) -> None:
    script = '{"scripts": {"postinstall": "prisma migrate deploy"}}'
    assert asked(tmp_path, {"package.json": script}) == [
        ("Installing packages also runs `prisma migrate deploy`", "package.json")
    ]
    assert asked(tmp_path, {"package.json": script.replace("prisma", "a`b")}) == []
