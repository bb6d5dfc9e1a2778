"""What puts a model's prose behind, and what does not."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from backstory.claude_md import basis
from backstory.claude_md.learn import learn, texts_of
from tests.helpers.claude_md_project import write

ALL = sorted(basis.KNOWN - {"module-description"})


@pytest.fixture
def project(fixed_project: Path) -> Path:
    return fixed_project


def facts(root: Path, name: str, folder: str = "") -> basis.Facts:
    known = learn(str(root))
    return basis.facts(name, known, folder, texts_of(known, folder))


def changed(root: Path, change: Callable[[], object]) -> dict[str, tuple[str, ...]]:
    """The sections that a change puts behind, and why."""
    before = {name: facts(root, name) for name in ALL}
    change()
    found = {name: basis.difference(before[name], facts(root, name)) for name in ALL}
    return {name: because for name, because in found.items() if because}


def add(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("walrus/feeding_3.py", "\n# a comment with `code` in it\n"),
        (
            "walrus/feeding_3.py",
            "\n\ndef feed_twice(count: int) -> str:\n    return feedWalrus(2 * count)\n",
        ),
        ("walrus/new.py", '"""Feeds `nobody`: it only counts (see `walrus/`)."""\n\nX = 1\n'),
        ("helper.py", "x = 1\n"),
        ("README.md", "\nIt has a `sea/` and a `make feed` now.\n"),
        ("docs/guide.md", ""),
        ("pyproject.toml", "\n# no comment\n"),
        ("CHANGELOG.md", "- more fish\n"),
        (".gitignore", "*.log\n"),
    ],
)
def test_nothing_is_behind_for(name: str, text: str, project: Path) -> None:
    write(project, {"docs/guide.md": "# A giude\n"})
    assert changed(project, lambda: add(project / name, text)) == {}


def test_what_a_folder_says_about_itself_is_wording(project: Path) -> None:
    write(project, {"walrus/sea/__init__.py": "", "walrus/sea/fish.py": "x = 1\n", "walrus/ice/a.py": ""})
    says = '"""The sea: with `fish`, and others."""\n'
    assert changed(project, lambda: add(project / "walrus/sea/__init__.py", says)) == {}


def test_a_typo_in_the_readme_or_docs_is_wording(project: Path) -> None:
    def mend() -> None:
        file = project / "README.md"
        file.write_text(file.read_text().replace("Keeps walruses.", "Keeps all `walruses`."))

    assert changed(project, mend) == {}


def test_a_file_that_git_ignores_puts_nothing_behind(project: Path) -> None:
    write(project, {".gitignore": "/made/\n"})
    assert changed(project, lambda: add(project / "made/by_tools.py", "x = 1\n")) == {}


def test_a_new_folder_puts_the_architecture_behind_and_so_does_one_that_went(project: Path) -> None:
    found = changed(project, lambda: add(project / "worker/main.py", "x = 1\n"))
    assert found == {"architecture": ("+ `worker/`",)}
    found = changed(project, lambda: add(project / "walrus/kitchen/fish.py", "x = 1\n"))
    assert found == {"architecture": ("+ `walrus/kitchen/`",)}
    found = changed(project, lambda: shutil.rmtree(project / "worker"))
    assert found == {"architecture": ("- `worker/`",)}


def test_a_new_command_puts_the_build_commands_behind(project: Path) -> None:
    found = changed(project, lambda: add(project / "pyproject.toml", "\n[tool.ruff]\nline-length = 100\n"))
    assert set(found) == {"build-commands"}
    assert any("ruff check" in fact for fact in found["build-commands"])


def test_another_package_manager_puts_the_build_commands_behind(project: Path) -> None:
    found = changed(project, lambda: add(project / "uv.lock", "version = 1\n"))
    assert "+ `uv`" in found["build-commands"]


def test_a_new_framework_puts_the_description_behind(project: Path) -> None:
    def use_django() -> None:
        file = project / "pyproject.toml"
        file.write_text(file.read_text().replace('"flask"', '"flask", "django"'))

    assert changed(project, use_django)["project-description"] == ("+ `Django`",)


def test_a_module_rests_on_its_own_folder(project: Path) -> None:
    before = {name: facts(project, name, "walrus") for name in ("architecture", "module-description")}
    write(project, {"worker/main.py": "x = 1\n"})
    assert {name: facts(project, name, "walrus") for name in before} == before
    write(project, {"walrus/kitchen/fish.py": "x = 1\n"})
    assert basis.difference(before["architecture"], facts(project, "architecture", "walrus")) == (
        "+ `kitchen/`",
    )
    write(project, {f"walrus/deck_{number}.ts": "export const x = 1;\n" * 100 for number in range(9)})
    assert "TypeScript" in facts(project, "module-description", "walrus") - before["module-description"]


def spans(text: str, name: str = "build-commands") -> list[str]:
    return list(basis._spans(name, text))


def test_of_a_list_the_code_counts_and_neither_evidence_nor_what_is_said_about_it() -> None:
    assert spans("## Build\n- Test: `make check`, `pytest -q (fast)` (from `ci.yml`; as `x`)") == [
        "make check",
        "pytest -q (fast)",
    ]
    assert spans("- In `front/`: test `npm test`; lint `npm run lint` (from `front/package.json`)") == [
        "front/",
        "npm test",
        "npm run lint",
    ]
    assert spans("Run `make` first.\n  - Lint: `` echo `date` ``") == ["echo `date`"]
    assert spans("- Tests: in `tests/` (98%), as `tests/test_a.py`", "patterns") == ["tests/"]
    quoted = "- `CONTRIBUTING.md` says:\n  - “Never call `feed` twice.”\n- Names: functions `camelCase`"
    assert spans(quoted, "conventions") == ["camelCase"]
    assert spans("- Test: `never closed") == []


def test_the_digest_is_the_same_in_every_order_and_another_for_other_facts() -> None:
    assert basis.digest(["b", "a"]) == basis.digest(frozenset(("a", "b"))) != basis.digest(["a"])
    assert len(basis.digest(())) == 12


def test_a_secret_in_a_folders_name_is_no_fact(project: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    write(project, {f"{secret}/a.py": "x = 1\n"})
    assert secret not in "".join(facts(project, "architecture"))
