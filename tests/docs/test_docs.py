"""The README, the docs and the files around them: short, true, and without a link that leads nowhere."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from backstory import config
from backstory.surfaces.cli.config import ABOUT, _valid
from tests.conftest import REPOSITORY

DOCS = REPOSITORY / "docs"
PICTURE = runpy.run_path(str(REPOSITORY / "demo" / "picture.py"))
PAGES = [*sorted(REPOSITORY.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
YAML = [
    *sorted(REPOSITORY.glob(".github/**/*.yml")),
    REPOSITORY / ".pre-commit-config.yaml",
    REPOSITORY / "mkdocs.yml",
]
WORKFLOWS = REPOSITORY / ".github" / "workflows"
BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def name_of(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


def anchors(path: Path) -> set[str]:
    """What a link into a page may name: its headings, as GitHub and mkdocs spell them."""
    headings = re.findall(
        r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.M | re.S), re.M
    )
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def words_of_the_glossary() -> list[str]:
    rows = re.findall(r"^\| (.+?) \| .+ \|$", (DOCS / "glossary.md").read_text(), re.M)
    return rows[1:]  # the first is the head of the table


def of_make(target: str) -> str:
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", (REPOSITORY / "Makefile").read_text(), re.M)
    assert found, target
    return found[1]


# --- README -------------------------------------------------------------------------------------------------


def test_the_readme_is_short() -> None:
    assert len((REPOSITORY / "README.md").read_text().splitlines()) <= 90


def test_the_readme_shows_lines_of_the_brief_in_the_picture() -> None:
    drawn = re.sub(r"<[^>]+>", "", (DOCS / "demo.svg").read_text()).replace("&#160;", " ")
    shown = (REPOSITORY / "README.md").read_text().split("```")[1].strip().splitlines()
    assert len(shown) == 5
    for line in filter(None, shown):
        assert line.split(" - ")[0] in drawn


def test_the_readme_names_what_make_has() -> None:
    named = re.findall(r"^make (\S+)", (REPOSITORY / "README.md").read_text(), re.M)
    assert named == ["demo", "test"]
    for target in named:
        of_make(target)


# --- the picture --------------------------------------------------------------------------------------------


def test_the_picture_has_at_most_25_lines() -> None:
    drawn = (DOCS / "demo.svg").read_text()
    between = set(re.findall(r"-line-(\d+)\"", drawn))  # rich clips every line but the last
    assert 10 < len(between) + 1 <= 25


def test_the_picture_loads_nothing_from_the_network() -> None:
    drawn = (DOCS / "demo.svg").read_text()
    assert not re.search(r"url\(['\"]?http|href=['\"]http|@import|@font-face", drawn)


def test_the_picture_is_made_of_parts_that_the_demo_has() -> None:
    program = (REPOSITORY / "demo" / "run.py").read_text()
    for heading in PICTURE["PARTS"]:
        assert f'heading("{heading}")' in program


def bold(text: str) -> str:
    return f"\033[1m{text}\033[0m"


def test_of_what_the_demo_prints_the_picture_has_its_parts() -> None:
    first, second = (bold(part) for part in PICTURE["PARTS"])
    printed = [
        "",
        bold("Else"),
        "no",
        "",
        first,
        "",
        "one",
        bold("    a title"),
        "",
        bold("Else"),
        "no",
        second,
        "two",
    ]
    assert PICTURE["telling"](printed) == [first, "one", bold("    a title"), "", second, "two"]


@pytest.mark.parametrize("count", [0, 25])
def test_a_picture_of_nothing_or_of_too_much_is_refused(count: int) -> None:
    printed = [bold(PICTURE["PARTS"][0]), *["line"] * count] if count else []
    with pytest.raises(SystemExit, match="lines"):
        PICTURE["telling"](printed)


# --- links and words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_relative_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", page.read_text())):
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.is_file(), f"{name_of(page)}: {target}"
        if DOCS in page.parents:
            assert DOCS in file.parents, f"{name_of(page)}: {target} is not part of the site"
        if anchor:
            assert anchor in anchors(file), f"{name_of(page)}: {target}"


@pytest.mark.parametrize("page", [page for page in PAGES if DOCS in page.parents], ids=name_of)
def test_every_page_is_in_the_navigation(page: Path) -> None:
    assert f" {page.relative_to(DOCS).as_posix()}\n" in (REPOSITORY / "mkdocs.yml").read_text()


def test_the_glossary_has_at_most_70_words_and_none_twice() -> None:
    words = words_of_the_glossary()
    assert 40 < len(words) <= 70
    assert len({word.lower() for word in words}) == len(words)
    assert words == sorted(words)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_that_a_page_names_are_there(page: Path) -> None:
    """In code, the path of a file as the docs write it: from the repository or from the package."""
    package = REPOSITORY / "src" / "backstory"
    for path in re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|sh|json|sql))`", page.read_text()):
        places = [REPOSITORY, package, package / "claude_md"]
        assert any((place / path).exists() for place in places), f"{name_of(page)}: {path}"


def test_the_old_name_is_in_the_changelog_only() -> None:
    old = "recol" + "lect"
    for page in PAGES:
        if page.name != "CHANGELOG.md":
            assert old not in page.read_text().lower(), name_of(page)


def test_agents_are_told_in_60_lines() -> None:
    assert len((REPOSITORY / "AGENTS.md").read_text().splitlines()) <= 60


# --- what runs elsewhere ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", YAML, ids=name_of)
def test_it_is_yaml(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text()), dict)


def jobs(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((WORKFLOWS / name).read_text())["jobs"]
    return found


def test_ci_runs_what_a_developer_runs() -> None:
    ran = [step["run"] for job in jobs("ci.yml").values() for step in job["steps"] if "run" in step]
    targets = {line.split()[1] for line in ran if line.startswith("make ")}
    assert targets == {"test", "lint", "docs"}
    for target in targets:
        of_make(target)
    matrix = jobs("ci.yml")["test"]["strategy"]["matrix"]
    assert matrix == {"os": ["ubuntu-latest", "macos-latest"], "python": ["3.11", "3.12", "3.13", "3.14"]}


def test_only_the_job_that_publishes_may_ask_for_an_identity() -> None:
    for name in ("ci.yml", "release.yml"):
        assert yaml.safe_load((WORKFLOWS / name).read_text())["permissions"] == {"contents": "read"}
        for job, what in jobs(name).items():
            publishes = job == "publish"
            assert what.get("permissions") == ({"id-token": "write"} if publishes else None)


def test_make_docs_is_strict_and_lets_nothing_be_loaded_from_the_network() -> None:
    assert "--strict" in of_make("docs")
    pattern = re.search(r"--include='\*\.html' '(.+)' build/site", of_make("docs"))
    assert pattern
    loads = re.compile(pattern[1].replace("$$", "$"))
    for loaded in (
        '<script src="https://x.example/a.js">',
        '<img alt="a" src="//x.example/a.png">',
        '<link rel="stylesheet" href="https://fonts.example/a.css">',
    ):
        assert loads.search(loaded)
    for harmless in ('<script src="assets/a.js">', '<a href="https://x.example">', '<link href="a.css">'):
        assert not loads.search(harmless)


# --- threats ------------------------------------------------------------------------------------------------


def test_every_test_that_the_threats_name_is_there() -> None:
    text = "".join(path.read_text() for path in (REPOSITORY / "tests").rglob("test_*.py"))
    files = {path.name for path in (REPOSITORY / "tests").rglob("test_*.py")}
    named = re.findall(r"`(test_\w+(?:\.py)?)`", (DOCS / "security.md").read_text())
    assert len(named) > 30
    assert [name for name in named if f"def {name}(" not in text and name not in files] == []


# --- settings -----------------------------------------------------------------------------------------------


def config_lines() -> list[tuple[str, str]]:
    """(page, what stands behind `backstory config`) for every such command in code; two spaces end it."""
    return [
        (name_of(path), found[1].strip())
        for path in PAGES
        if path.name != "CHANGELOG.md"
        for code in CODE.findall(path.read_text())
        for found in re.finditer(r"\bbackstory config((?: [^\s`]+)*)", code)
    ]


@pytest.mark.parametrize(("page", "given"), config_lines())
def test_a_config_command_in_the_docs_names_a_setting_and_a_value_that_it_takes(
    page: str, given: str
) -> None:
    name, *values = shlex.split(given) or [""]
    if name == "unset":
        (name,), values = values, []
    assert name in {*ABOUT, "NAME", "[NAME]", ""}, page
    assert len(values) <= 1, page
    for value in values if name in ABOUT and values != ["-"] else ():
        _valid(name, {config.variable_of(name): value})
