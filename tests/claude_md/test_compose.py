"""What sections say, and the two templates."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from backstory.claude_md.read import outline
from backstory.claude_md.read.files import walk
from backstory.claude_md.write import compose, sections
from backstory.claude_md.write.compose import Known
from backstory.model import Command, Insights, Pattern, Survey

SEED_ROOT = """\
# Project: {{PROJECT_NAME}}

<!-- AUTO-MANAGED: project-description -->
{{DESCRIPTION}}
<!-- END AUTO-MANAGED -->

<!-- AUTO-MANAGED: build-commands -->
## Build Commands
{{BUILD_COMMANDS}}
<!-- END AUTO-MANAGED -->
"""
ALL = ["project-description", "build-commands", "architecture", "conventions", "patterns"]


def survey(**given: object) -> Survey:
    fields: dict[str, object] = {
        "name": "walrus",
        "description": "Keeps walruses.",
        "languages": (("Python", 0.9), ("Shell", 0.1)),
        "frameworks": ("Click", "Flask", "pytest"),
        "managers": ("uv",),
        "commands": (
            Command("build", "python -m build", "pyproject.toml"),
            Command("test", "pytest", "pyproject.toml"),
            Command("test", "make test", "Makefile"),
        ),
        "workspaces": (),
        "subtrees": (),
    }
    return Survey(**{**fields, **given})  # type: ignore[arg-type]


def files(root: Path, **texts: str) -> Path:
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return root


def known(root: Path, **given: object) -> Known:
    fields: dict[str, object] = {"survey": survey(), **given}
    return Known(walk(str(root)), **fields)  # type: ignore[arg-type]


def pattern(kind: str, subject: str, value: str, *examples: str, confidence: float = 0.95) -> Pattern:
    return Pattern(kind, subject, value, confidence, 100, examples)


PATTERNS = (
    pattern("naming", "python functions", "snake_case", "feed_walrus", "load_fish"),
    pattern("naming", "python classes", "PascalCase", "Walrus"),
    pattern("import", "python imports", "relative"),
    pattern("import", "python import order", "stdlib, external, internal"),
    pattern("style", "python quotes", "double"),
    pattern("style", "python indentation", "4 spaces"),
    pattern("test", "python tests", "tests/ folder, test_*.py", "tests/test_a.py"),
)


# --- templates ----------------------------------------------------------------------------------------------


def test_a_new_file_is_the_template_with_its_title_and_empty_sections() -> None:
    text = compose.skeleton("root", "walrus", compose.names("root")).decode()
    assert text.startswith("# Project: walrus\n\n<!-- AUTO-MANAGED: project-description -->\n<!-- END AUTO")
    assert text.endswith(
        "<!-- MANUAL -->\n## Custom Notes\n"
        "Add your custom notes here. This section will never be auto-modified.\n<!-- END MANUAL -->\n"
    )
    assert compose.ROOT.startswith(SEED_ROOT)
    parsed = sections.parse(text.encode())
    assert [section.name for section in parsed.sections] == list(sections.NAMES[:-1])
    assert (parsed.problems, len(parsed.manual)) == ((), 1)


def test_a_section_that_nobody_wants_is_left_out_of_a_new_file() -> None:
    text = compose.skeleton("root", "walrus", ["architecture"]).decode()
    assert text.startswith(
        "# Project: walrus\n\n<!-- AUTO-MANAGED: architecture -->\n<!-- END AUTO-MANAGED -->\n"
    )
    assert text.count("AUTO-MANAGED:") == 1


def test_a_module_has_a_template_of_its_own() -> None:
    text = compose.skeleton("subtree", "src/api", compose.names("subtree")).decode()
    assert text.startswith("# Module: src/api\n\n<!-- AUTO-MANAGED: module-description -->\n")
    assert text.endswith("<!-- MANUAL -->\n## Module Notes\n<!-- END MANUAL -->\n")
    assert compose.names("subtree") == ["module-description", "architecture", "conventions"]


@pytest.mark.parametrize(
    "notes", [b"# Mine\n", b"# Mine", b"", b"# Mine\r\n\r\nmore\r\n", b"{{PROJECT_NAME}} \\1 \xff\n"]
)
def test_notes_are_the_manual_part_byte_for_byte(notes: bytes) -> None:
    text = compose.skeleton("root", "{{PROJECT_NAME}}", ["architecture"], notes)
    ((start, stop),) = sections.parse(text).manual
    inside = text[start:stop].partition(b"\n")[2].rpartition(b"<!-- END")[0]
    assert inside in (notes, notes + b"\n")
    assert sections.parse(text).problems == ()
    assert len(sections.parse(text).sections) == 1


@pytest.mark.parametrize(
    "title", ["<!-- MANUAL -->", "@/etc/passwd", "a\n<!-- AUTO-MANAGED: x -->\n", "\x1b[2J", "", "x" * 5_000]
)
def test_a_hostile_title_stays_one_harmless_line(title: str) -> None:
    text = compose.skeleton("root", title, compose.names("root"))
    first, _, rest = text.partition(b"\n")
    assert first.startswith(b"# Project: ")
    assert len(first) < 200
    assert b" @" not in first
    assert b"\x1b" not in first
    assert rest.startswith(b"\n<!-- AUTO-MANAGED: project-description -->\n")
    assert sections.parse(text).problems == ()


# --- sections -----------------------------------------------------------------------------------------------


def test_sections_begin_with_the_headings_of_the_template(tmp_path: Path) -> None:
    files(tmp_path, **{"src/walrus/app.py": "x = 1\n"})
    texts = compose.texts(known(tmp_path, patterns=PATTERNS))
    assert list(texts) == ALL
    assert texts["project-description"].startswith("Keeps walruses.")
    headings = [texts[name].partition("\n")[0] for name in ALL[1:]]
    assert headings == [
        "## Build Commands",
        "## Architecture Overview",
        "## Code Conventions",
        "## Detected Patterns",
    ]


def test_what_has_nothing_to_say_is_left_out(tmp_path: Path) -> None:
    files(tmp_path, **{"picture.png": ""})
    empty = survey(description="", languages=(), frameworks=(), managers=(), commands=())
    assert compose.texts(known(tmp_path, survey=empty)) == {}


def test_the_description_names_languages_and_frameworks(tmp_path: Path) -> None:
    files(tmp_path, a="")
    said = compose.texts(known(tmp_path))["project-description"]
    assert said == (
        "Keeps walruses.\n\nWritten in Python and Shell, with Click and Flask; tested with pytest."
    )


def test_commands_are_listed_by_what_they_are_for(tmp_path: Path) -> None:
    files(tmp_path, a="")
    said = compose.texts(known(tmp_path))["build-commands"]
    assert said.splitlines()[1:] == [
        "- Package manager: uv",
        "- Build: `python -m build`",
        "- Test: `make test`, `pytest`",
    ]


def test_of_many_commands_some_are_named_and_where_the_others_are(tmp_path: Path) -> None:
    files(tmp_path, a="")
    many = tuple(Command("test", f"npm run test:{number}", "package.json") for number in range(30))
    said = compose.texts(known(tmp_path, survey=survey(commands=many)))["build-commands"]
    assert said.count("npm run") == compose.MOST_COMMANDS
    assert said.endswith("and more in `package.json`")


def test_the_architecture_lists_folders_with_what_they_say_about_themselves(tmp_path: Path) -> None:
    files(
        tmp_path,
        **{
            "src/walrus/__init__.py": '"""Feeds walruses.\n\nAnd more."""\n',
            "src/walrus/__main__.py": "",
            "src/walrus/tusks/__init__.py": "'''Tusks: long ones'''\n",
            "src/walrus/sea/fish.py": "x = 1\n",
            "tests/test_a.py": "",
            "web/package.json": '{"description": "What people see"}',
            "web/index.ts": "",
            ".github/workflows/ci.yml": "",
            ".hidden/a.py": "",
        },
    )
    said = compose.texts(known(tmp_path))["architecture"].splitlines()[1:]
    assert said == [
        "- `.github/workflows/`: CI",
        "- `src/walrus/`: Feeds walruses",
        "  - `src/walrus/tusks/`: long ones",
        "  - with `sea`",
        "- `web/`: What people see",
        "- `tests/`",
        "- Entry point: `src/walrus/__main__.py`",
    ]


def test_a_long_way_down_to_the_source_is_one_step(tmp_path: Path) -> None:
    files(
        tmp_path,
        **{
            "src/main/java/org/walrus/A.java": "",
            "src/main/java/org/walrus/fish/B.java": "",
            "src/main/java/org/walrus/tusk/C.java": "",
            "src/main/resources/a.properties": "",
            "src/test/java/org/walrus/ATest.java": "",
            "config/checkstyle/a.xml": "",
            "kelp/a.txt": "",
        },
    )
    assert list(outline.lines(walk(str(tmp_path)), (), str, str)) == [
        "- src/",
        "  - src/main/java/org/walrus/ with fish, tusk",
        "  - with test",
        "- config/, kelp/",
    ]


def test_a_role_is_told_where_the_name_of_a_folder_does_not_tell_it(tmp_path: Path) -> None:
    readme = "# Title\n\nWith the usual tools it runs.\n"
    files(
        tmp_path,
        **{
            "spec/a.js": "",
            "k8s/a.yml": "",
            "docs/README.md": readme,
            "bench/README.md": readme,
            "xtests/README.md": "These are the extended tests.\n",
            "xtests/a.sh": "",
            "shells/a.sh": "",
            "walrus/a.js": "",
            "walrus/b.js": "",
        },
    )
    assert list(outline.lines(walk(str(tmp_path)), (), str, str)) == [
        "- k8s/: deployment",
        "- shells/: Shell",
        "- spec/: tests",
        "- xtests/: These are the extended tests",
        "- bench/, docs/, walrus/",
    ]


def test_a_folder_for_which_there_is_no_room_is_named_beside_those_that_say_nothing(tmp_path: Path) -> None:
    inner = {f"src/part_{number:02}/__init__.py": f'"""Part {number}."""' for number in range(10)}
    deep = {f"src/part_07/{name}/__init__.py": f'"""Deep {name}."""' for name in "ab"}
    files(tmp_path, **inner, **deep)
    said = list(outline.lines(walk(str(tmp_path)), (), str, str))
    assert said[0] == "- src/"
    assert said[1:9] == [f"  - src/part_{number:02}/: Part {number}" for number in range(8)]
    assert said[9:] == ["  - with part_08, part_09"]


def test_a_long_list_of_folders_says_that_there_are_others(tmp_path: Path) -> None:
    files(tmp_path, **{f"src/part_{number:02}/a.py": "" for number in range(outline.MOST_SILENT + 1)})
    (said,) = outline.lines(walk(str(tmp_path)), (), str, str)
    assert said.startswith("- src/ with part_00, part_01, ") and said.endswith("part_23 and others")


def test_files_that_say_nothing_are_all_named_or_not_at_all(tmp_path: Path) -> None:
    files(tmp_path, **{f"a{number:02}.py": "" for number in range(outline.MOST_FILES)}, b="")
    (said,) = outline.lines(walk(str(tmp_path)), (), str, str)
    assert said.count(".py") == outline.MOST_FILES
    files(tmp_path, **{"b.py": ""})
    assert list(outline.lines(walk(str(tmp_path)), (), str, str)) == []


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("README.md", "# Title\n\n[![badge](x)](y)\n\nIt does *things*. And more.\n", "It does *things*"),
        ("README.rst", "Title\n=====\n\nIt does things.\n", "It does things"),
        ("__init__.py", '#!/usr/bin/python\n# -*- coding -*-\n\nr"""It does things"""', "It does things"),
        ("__init__.py", '"""\nwalrus.sea\n~~~~~~~~~~\n\nIt does things.\n"""\n', "It does things"),
        ("__init__.py", '"""\nwalrus.sea\n~~~~~~~~~~\n"""\n', "walrus.sea"),
        (
            "doc.go",
            "// Copyright\n\n// Package sea does things.\n// More.\npackage sea\n",
            "Package sea does things",
        ),
        ("doc.go", "/*\nPackage sea does things.\n*/\npackage sea\n", "Package sea does things"),
        ("lib.rs", "//! It does things.\n//!\n//! More.\nuse x;\n", "It does things"),
        ("package-info.java", "/**\n * It does things.\n * @since 1\n */\npackage a;\n", "It does things"),
        (
            "package-info.java",
            "/*\n * Licensed to all */\n\n/**\n * <p>It {@code does} things.</p>\n */\npackage a;\n",
            "It `does` things",
        ),
        ("package-info.java", "/* Licence */ int a; /* b */ /** Another thing */", ""),
        ("__init__.py", '"""Sea: it does things."""', "it does things"),
        ("__init__.py", '"""Usage docs: https://walrus.example/sea"""', ""),
        ("__init__.py", f'"""It does things: {"many " * 40}."""', "It does things"),
        ("__init__.py", '"""It does ..."""', ""),
        ("Cargo.toml", '[package]\ndescription = "It does things"\n', "It does things"),
        ("pyproject.toml", '[project]\ndescription = "It does things"\n', "It does things"),
        ("composer.json", '{"description": "It does things"}', "It does things"),
        ("package.json", '{"description": 3}', ""),
        ("package.json", "[" * 100_000, ""),
        ("pyproject.toml", "no toml", ""),
        ("__init__.py", '"""Licensed under the MIT License."""', ""),
        ("__init__.py", '"""never closed', ""),
        ("__init__.py", "import os\n", ""),
    ],
)
def test_a_folder_says_what_it_is(tmp_path: Path, name: str, text: str, said: str) -> None:
    files(tmp_path, **{f"sea/{name}": text})
    assert outline.about(walk(str(tmp_path)), "sea", [name]) == said


def test_half_a_sentence_is_not_said(tmp_path: Path) -> None:
    files(tmp_path, **{"__init__.py": f'"""{"fish " * 400}"""'})
    assert outline.about(walk(str(tmp_path)), "", ["__init__.py"]) == ""


@pytest.mark.parametrize("name", ["doc.go", "__init__.py", "lib.rs", "package-info.java", "README.md"])
@pytest.mark.parametrize("piece", ["//\n", "/*\n", "#\n", "\n", " ", '"', "//!\n", "/** * ", "`", "- "])
def test_hostile_files_take_no_time(tmp_path: Path, name: str, piece: str) -> None:
    files(tmp_path, **{name: piece * (90_000 // len(piece))})
    began = time.process_time()
    outline.about(walk(str(tmp_path)), "", [name])
    assert time.process_time() - began < 5  # quadratic takes minutes


def test_conventions_are_rules_to_go_by_and_patterns_say_the_rest(tmp_path: Path) -> None:
    files(tmp_path, a="")
    layered = pattern("architecture", "", "layered", "api", "services", "models", confidence=0.75)
    monorepo = pattern("architecture", "", "monorepo", "packages/a", "packages/b")
    said = compose.texts(known(tmp_path, patterns=(*PATTERNS, layered, monorepo)))
    assert said["conventions"].splitlines()[1:] == [
        "- Names: functions and methods `snake_case`, classes `PascalCase`",
        "- Style: double quotes, indented with 4 spaces",
        "- Imports: relative, the standard library first, the project's own last",
    ]
    assert said["patterns"].splitlines()[1:] == [
        "- Tests: in `tests/`, named `test_*.py` (95%), as `tests/test_a.py`",
        "- Architecture: layered (75%), as `api`, `services`, `models`",
    ]


def test_names_of_one_style_are_told_at_once(tmp_path: Path) -> None:
    files(tmp_path, a="")
    kinds = ("functions", "classes", "constants", "files")
    go = [pattern("naming", f"go {kind}", "MixedCaps") for kind in kinds[:3]]
    said = compose.texts(known(tmp_path, patterns=(*go, pattern("naming", "go files", "snake_case"))))
    assert said["conventions"].splitlines()[1:] == [
        "- Names: functions, methods, types and constants `MixedCaps`, files `snake_case`"
    ]
    assert "patterns" not in said


def test_with_two_languages_each_rule_says_whose_it_is(tmp_path: Path) -> None:
    files(tmp_path, a="")
    both = (
        *PATTERNS[:1],
        pattern("style", "javascript semicolons", "never"),
        pattern("style", "typescript semicolons", "never"),
        pattern("import", "typescript imports", "ES modules"),
        pattern("test", "javascript", "test/ folder, *.test.js", "test/a.test.js"),
        pattern("test", "typescript", "test/ folder, any name", "test/a.ts"),
    )
    said = compose.texts(known(tmp_path, patterns=both))
    assert said["conventions"].splitlines()[1:] == [
        "- Python names: functions and methods `snake_case`",
        "- JavaScript and TypeScript style: no semicolons",
        "- TypeScript imports: ES modules",
    ]
    assert said["patterns"].splitlines()[1:] == [
        "- JavaScript tests: in `test/`, named `*.test.js` (95%), as `test/a.test.js`",
        "- TypeScript tests: in `test/` (95%)",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "import fs from 'node:fs'\nimport a from './a'\n",
            "Node's own modules first, the project's own last",
        ),
        ("const p = require('path')\n", "Node's own modules first, the project's own last"),
        ("import React from 'react'\nimport a from './fs'\n", "the project's own last"),
    ],
)
def test_modules_of_node_are_named_only_where_they_are_imported(tmp_path: Path, text: str, said: str) -> None:
    files(tmp_path, **{"src/b.js": text})
    order = pattern("import", "import order javascript", "stdlib, external, internal", "src/b.js")
    texts = compose.texts(known(tmp_path, patterns=(order,)))
    assert texts["conventions"] == f"## Code Conventions\n- Imports: {said}"


def test_tests_in_the_source_of_rust_are_told_as_such(tmp_path: Path) -> None:
    files(tmp_path, a="")
    inline = (pattern("test", "rust", "inline #[cfg(test)]", "src/a.rs", confidence=1.0),)
    assert compose.texts(known(tmp_path, patterns=inline))["patterns"].endswith(
        "- Tests: in the source itself, under `#[cfg(test)]` (100%), as `src/a.rs`"
    )


def test_a_description_that_was_cut_off_ends_with_a_whole_sentence(tmp_path: Path) -> None:
    files(tmp_path, a="")
    bare = {"languages": (), "frameworks": ()}

    def said(text: str) -> str | None:
        return compose.texts(known(tmp_path, survey=survey(description=text, **bare))).get(
            "project-description"
        )

    assert said("Keeps walruses. Feeds version 2.0 of …") == "Keeps walruses."
    assert said("Keeps walruses in …") is None
    assert said("Keeps walruses") == "Keeps walruses."


def test_the_plain_command_of_a_role_comes_first(tmp_path: Path) -> None:
    files(tmp_path, a="")
    lines = ("make test-mypy", "pytest", "make test", "npm run test:ci")
    those = tuple(Command("test", line, "Makefile") for line in lines)
    said = compose.texts(known(tmp_path, survey=survey(commands=those)))["build-commands"]
    assert said.endswith("- Test: `make test`, `pytest`, `make test-mypy`, `npm run test:ci`")


def test_examples_stay_as_long_as_they_are_there() -> None:
    def there(path: str) -> bool:
        return path != "gone.py"

    old = "## P\n- functions: snake_case (99 %), as `old_one`\n- files: x (99 %), as `gone.py`\n- went: y"
    new = "## P\n- functions: snake_case (99 %), as `new_one`\n- files: x (99 %), as `b.py`\n- came: z (99 %)"
    assert compose.settled(old, new, there) == (
        "## P\n- functions: snake_case (99 %), as `old_one`\n- files: x (99 %), as `b.py`\n- came: z (99 %)"
    )
    assert compose.settled("", new, there) == new
    assert compose.settled(old.replace("99", "95"), new, there) == new


def test_git_insights_name_files_habits_and_decisions(tmp_path: Path) -> None:
    files(tmp_path, a="")
    found = Insights(
        hot=(("z.py", 30), ("a.py", 20)),
        together=(("a.py", "z.py", 9),),
        decisions=(("2026-01-02", "abc1234", "Use herring instead of squid"),),
        habits=("Subjects are in the imperative.", "Messages are a single line."),
    )
    said = compose.texts(known(tmp_path, insights=found))["git-insights"]
    assert said.splitlines() == [
        "## Git Insights",
        "- Changed most often: `a.py`, `z.py`",
        "- `a.py` and `z.py` change together",
        "- Commits: Subjects are in the imperative. Messages are a single line.",
        "- Decided:",
        "  - Use herring instead of squid (2026-01-02, abc1234)",
    ]


def test_of_files_that_change_together_one_pair_of_a_folder_is_told_and_no_test_of_a_file(
    tmp_path: Path,
) -> None:
    files(tmp_path, a="")
    together = [("src/a.py", "tests/test_a.py", 9)]
    together += [(f"{folder}/x.py", f"{folder}/{name}.py", 5) for folder in "dcba" for name in "yz"]
    found = Insights((), tuple(together), (), ())
    assert compose.texts(known(tmp_path, insights=found))["git-insights"].splitlines()[1:] == [
        f"- `{folder}/x.py` and `{folder}/y.py` change together" for folder in "bcd"
    ]


def test_best_practices_are_what_was_found_of_them(tmp_path: Path) -> None:
    files(tmp_path, a="")
    assert (
        compose.texts(known(tmp_path, practices="- Be nice\n"))["best-practices"]
        == "## Best Practices\n- Be nice"
    )
    assert "best-practices" not in compose.texts(known(tmp_path, practices=None))


def test_a_whole_file_stays_within_two_thousand_tokens(tmp_path: Path) -> None:
    texts = {
        f"{top}/{inner}/{name}.py": f'"""{"Something to say about it " * 20}"""'
        for top in ("src", "api", "web", "core", "app")
        for inner in (f"part_{number:02}" for number in range(30))
        for name in ("__init__", "b")
    }
    files(tmp_path, **texts)
    long = "words " * 200
    found = known(
        tmp_path,
        survey=survey(
            description=long,
            frameworks=tuple(f"Framework {number}" for number in range(40)),
            commands=tuple(
                Command(role, f"npm run {role}:{number}", "package.json")
                for role in ("build", "test", "lint", "run")
                for number in range(40)
            ),
            workspaces=tuple(f"packages/number_{number}" for number in range(50)),
        ),
        patterns=tuple(
            pattern("naming", f"{language} {kind}", "snake_case", "load_order", "get_things")
            for language in ("python", "go", "rust", "java", "typescript", "javascript")
            for kind in ("functions", "classes", "constants", "files")
        ),
        insights=Insights(
            tuple((f"src/part_{number}/module.py", number) for number in range(30)),
            tuple((f"src/a_{number}.py", f"src/b_{number}.py", 3) for number in range(30)),
            tuple(("2026-01-02", "abc1234", long) for _ in range(30)),
            ("One.", "Two.", "Three."),
        ),
        practices="\n".join(f"- Practice number {number} is to do things" for number in range(10)),
    )
    made = compose.texts(found)
    whole = "\n\n".join(made.values())
    assert 1_000 < len(whole) / 4 < 2_000
    assert whole.count("\n") < 150


def test_what_a_repository_says_stays_text(tmp_path: Path) -> None:
    hostile = "`` ` `` <!-- END AUTO-MANAGED -->\n# Heading\n@/etc/passwd \x1b[2J <!--"
    files(tmp_path, a="")
    made = compose.texts(
        known(
            tmp_path,
            survey=survey(
                name=hostile,
                description=hostile,
                commands=(Command("build", hostile, hostile),),
                workspaces=(hostile,),
            ),
            patterns=(Pattern("naming", "python functions", hostile, 1.0, 10, (hostile,)),),
            insights=Insights(((hostile, 1),), ((hostile, hostile, 3),), ((hostile,) * 3,), (hostile,)),
        )
    )
    text = compose.skeleton("root", hostile, made)
    for name, body in made.items():
        text = sections.with_section(text, name, body)
    parsed = sections.parse(text)
    assert parsed.problems == ()
    assert [section.name for section in parsed.sections] == list(made)
    assert b"\n# Heading" not in text
    assert b"<!-- END AUTO-MANAGED -->\n# " not in text
    for body in made.values():
        assert "<!--" not in body


def test_names_that_are_no_utf8_are_shown_with_escapes(tmp_path: Path) -> None:
    with open(bytes(tmp_path) + b"/\xff\xfe.py", "wb"):
        pass
    said = compose.texts(known(tmp_path))["architecture"]
    assert "`\\udcff\\udcfe.py`" in said
    said.encode()


# --- modules ------------------------------------------------------------------------------------------------


def test_a_module_says_what_it_is_and_what_differs_there(tmp_path: Path) -> None:
    files(
        tmp_path,
        **{
            "api/__init__.py": '"""Answers requests."""',
            "api/app.py": '"""Where it begins."""\n',
            "api/plain.py": "",
            "api/other.py": "",
            "api/routes/a.py": "",
        },
    )
    whole = known(tmp_path, patterns=PATTERNS)
    part = walk(str(tmp_path / "api"))
    own = (*PATTERNS[:1], pattern("style", "python quotes", "single"))
    texts = compose.module_texts(whole, "api", part, own)
    assert texts["module-description"] == "Answers requests."
    assert texts["architecture"].splitlines() == [
        "## Module Architecture",
        "- `app.py`: Where it begins",
        "- `routes/`, `other.py`, `plain.py`",
    ]
    assert texts["conventions"].splitlines() == [
        "## Module Conventions",
        "As in the whole project. What differs here:",
        "- Style: single quotes",
    ]


def test_a_module_that_says_nothing_is_described_by_what_is_in_it(tmp_path: Path) -> None:
    files(tmp_path, **{"web/a.ts": "", "web/b.ts": "", "web/c.py": ""})
    texts = compose.module_texts(known(tmp_path), "web", walk(str(tmp_path / "web")), ())
    assert texts["module-description"] == "TypeScript and Python in `web`, a part of walrus."
    assert "conventions" not in texts


def test_a_module_that_is_as_all_the_rest_says_nothing_about_conventions(tmp_path: Path) -> None:
    files(tmp_path, **{"api/app.py": ""})
    texts = compose.module_texts(
        known(tmp_path, patterns=PATTERNS), "api", walk(str(tmp_path / "api")), PATTERNS
    )
    assert list(texts) == ["module-description", "architecture"]
    assert compose.nothing("subtree", "conventions").endswith("\nAs in the whole project.")


def test_a_module_says_how_it_is_built_where_its_own_manifest_does(tmp_path: Path) -> None:
    files(
        tmp_path, **{"big api/app.py": '"""Where it begins."""', "big api/README.md": "Answers requests.\n"}
    )
    commands = (Command("test", "npm test", "package.json"), Command("build", "npm run x", "package.json"))
    part = walk(str(tmp_path / "big api"))
    texts = compose.module_texts(known(tmp_path), "big api", part, (), commands)
    assert texts["module-description"] == (
        "Answers requests.\n\nAfter `cd 'big api'`:\n- Build: `npm run x`\n- Test: `npm test`"
    )


def test_package_managers_are_named_also_without_commands(tmp_path: Path) -> None:
    files(tmp_path, a="")
    said = compose.texts(known(tmp_path, survey=survey(commands=())))["build-commands"]
    assert said == "## Build Commands\n- Package manager: uv"


def test_one_more_file_in_a_folder_changes_nothing(tmp_path: Path) -> None:
    files(tmp_path, **{"src/walrus/a.py": "", "src/walrus/b.py": "", "tests/test_a.py": ""})
    before = compose.texts(known(tmp_path))
    files(
        tmp_path, **{"src/walrus/c.py": "x = 1\n" * 100, "tests/test_b.py": "", "src/walrus/a.py": "y = 2\n"}
    )
    assert compose.texts(known(tmp_path)) == before
