"""What sections say, and the two templates."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from backstory.claude_md.read import outline
from backstory.claude_md.read.commands import gather
from backstory.claude_md.read.files import walk
from backstory.claude_md.write import compose, sections
from backstory.claude_md.write.compose import Known
from backstory.claude_md.write.settings import Settings
from backstory.model import Command, Fact, Insights, Pattern, Survey

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
    files(tmp_path, **{"src/walrus/__init__.py": '"""Feeds them."""\n'})
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


def test_languages_are_named_where_nothing_else_is_known(tmp_path: Path) -> None:
    files(tmp_path, a="")
    assert compose.texts(known(tmp_path))["project-description"] == "Keeps walruses."
    assert "project-description" not in compose.texts(known(tmp_path, survey=survey(description="")))
    bare = survey(description="", commands=())
    assert compose.texts(known(tmp_path, survey=bare)) == {
        "project-description": "Written in Python and Shell."
    }


def test_commands_are_listed_by_what_they_are_for(tmp_path: Path) -> None:
    files(tmp_path, a="")
    said = compose.texts(known(tmp_path))["build-commands"]
    assert said.splitlines()[1:] == [
        "- Build: `python -m build` (from `pyproject.toml`)",
        "- Test: `pytest` (from `pyproject.toml`), `make test` (from `Makefile`)",
    ]


def test_how_to_run_one_test_stands_with_the_tests_and_a_folder_has_its_own_line(tmp_path: Path) -> None:
    files(tmp_path, a="")
    commands = (
        Command("install", "uv sync", "uv.lock"),
        Command("test", "uv run pytest", "ci.yml"),
        Command("one", "uv run pytest tests/test_a.py", "ci.yml"),
        Command("install", "cd ui && yarn", "ui/package.json", "ui"),
        Command("test", "cd ui && yarn test", "ui/package.json", "ui"),
        Command("one", "cd ui && yarn vitest run a.test.ts", "ui/package.json", "ui"),
    )
    said = compose.texts(known(tmp_path, survey=survey(commands=commands)))["build-commands"]
    assert said.splitlines()[1:] == [
        "- Install: `uv sync` (from `uv.lock`)",
        "- Test: `uv run pytest` (from `ci.yml`); one: `uv run pytest tests/test_a.py`",
        "- In `ui/`: install `cd ui && yarn`; test `cd ui && yarn test`;"
        " one test `cd ui && yarn vitest run a.test.ts` (from `ui/package.json`)",
    ]


def test_all_commands_that_a_person_gave_are_named(tmp_path: Path) -> None:
    files(tmp_path, a="")
    given = {role: tuple(f"make {role}{number}" for number in range(5)) for role in ("test", "one")}
    commands = Settings(commands=given).corrected(())
    said = compose.texts(known(tmp_path, survey=survey(commands=commands)))["build-commands"]
    assert said.splitlines()[1:] == [
        "- Test: `make test0`, `make test1`, `make test2`, `make test3`, `make test4`;"
        " one: `make one0`, `make one1`, `make one2`, `make one3`, `make one4`"
    ]


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
        "- `src/walrus/`: Feeds walruses",
        "  - `src/walrus/tusks/`: long ones",
        "- `web/`: What people see",
    ]


def test_a_long_way_down_to_the_source_is_one_step(tmp_path: Path) -> None:
    files(
        tmp_path,
        **{
            "src/main/java/org/walrus/package-info.java": "/** Feeds walruses. */",
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
        "- src/main/java/org/walrus/: Feeds walruses",
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
            **{f"shells/in/{name}.sh": "" for name in "abcd"},
            "cmake/README.md": "CMake scripts.\n",
            "doc/README.md": "Documentation.\n",
            "ui/types/__init__.py": '"""Types used by the UI."""',
            "ui/a.py": "",
            **{f"walrus/{name}/a.js": "" for name in "abcdef"},
        },
    )
    assert list(outline.lines(walk(str(tmp_path)), (), str, str)) == ["- k8s/: deployment"]


def test_of_many_folders_that_say_something_the_first_ones_are_told(tmp_path: Path) -> None:
    words = "eats sleeps swims dives hunts barks rests plays hides waits".split()
    inner = {f"src/part_{number}/__init__.py": f'"""It {word} a lot."""' for number, word in enumerate(words)}
    files(tmp_path, **inner)
    said = list(outline.lines(walk(str(tmp_path)), (), str, str))
    told = words[: outline.MOST_INNER]
    assert said == [f"- src/part_{number}/: It {word} a lot" for number, word in enumerate(told)]


def test_what_one_of_many_folders_says_tells_nothing_of_the_whole(tmp_path: Path) -> None:
    said = '"""Feeds walruses at night."""'
    files(tmp_path, **{f"src/zoo/{name}/a.py": "" for name in "abcde"}, **{"src/zoo/a/__init__.py": said})
    assert list(outline.lines(walk(str(tmp_path)), (), str, str)) == ["- src/zoo/a/: Feeds walruses at night"]
    files(tmp_path, **{"src/zoo/f/a.py": ""})
    assert list(outline.lines(walk(str(tmp_path)), (), str, str)) == []


def test_folders_that_say_the_same_but_for_their_names_are_not_told(tmp_path: Path) -> None:
    for name in ("bold", "code", "link", "list"):
        manifest = f'{{"description": "{name} extension for walruses"}}'
        files(tmp_path, **{f"packages/{name}/package.json": manifest, f"packages/{name}/a.ts": ""})
    assert list(outline.lines(walk(str(tmp_path)), (), str, str)) == []


def test_files_at_the_top_are_named_where_they_say_what_they_are(tmp_path: Path) -> None:
    files(tmp_path, **{"a.py": "", "b.py": '"""Feeds walruses."""', "setup.py": '"""Sets it up."""'})
    assert list(outline.lines(walk(str(tmp_path)), (), str, str)) == ["- b.py: Feeds walruses"]
    files(tmp_path, **{f"more{number}.py": f'"""Part {number}."""' for number in range(9)})
    said = list(outline.lines(walk(str(tmp_path)), (), str, str))
    assert len(said) == outline.MOST_FILES


def test_documents_say_what_folders_are_for_before_the_folders_themselves_do(tmp_path: Path) -> None:
    files(tmp_path, **{"sea/__init__.py": '"""Holds water."""', "sea/a.py": "", "b.py": '"""Begins."""'})
    purposes = {"sea": "where walruses swim", "b.py": "begins it all"}
    assert list(outline.lines(walk(str(tmp_path)), (), str, str, purposes)) == [
        "- sea/: where walruses swim",
        "- b.py: begins it all",
    ]


def test_a_folder_that_says_what_the_one_around_it_says_is_not_told_twice(tmp_path: Path) -> None:
    said = '"""Feeds the walruses of the sea."""'
    files(tmp_path, **{"sea/__init__.py": said, "sea/a.py": "", "sea/in/__init__.py": said})
    assert list(outline.lines(walk(str(tmp_path)), (), str, str)) == ["- sea/: Feeds the walruses of the sea"]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("zoo/schema.prisma", "zoo/migrations/1/a.sql"), "Prisma schema and migrations"),
        (("zoo/a.proto",), "Protocol Buffers definitions"),
    ],
)
def test_a_framework_says_what_a_folder_is(tmp_path: Path, names: tuple[str, ...], said: str) -> None:
    files(tmp_path, **dict.fromkeys(names, ""))
    assert list(outline.lines(walk(str(tmp_path)), (), str, str)) == [f"- zoo/: {said}"]


def test_folders_of_migrations_are_named(tmp_path: Path) -> None:
    made = ("db/migrate/20200101_a.rb", "app/migrations/0001_initial.py", "tests/migrations/0001_a.py")
    files(tmp_path, **dict.fromkeys((*made, "lib/versions/a.py"), ""))
    said = compose.texts(known(tmp_path))["architecture"].splitlines()
    assert [line for line in said if "igrat" in line] == [
        "- `app/migrations/`: database migrations",
        "- Migrations: `db/migrate/`",
    ]


def test_migrations_of_many_parts_are_told_by_their_pattern(tmp_path: Path) -> None:
    parts = ("fish", "keepers", "seas", "tusks")
    files(tmp_path, **{f"zoo/{part}/migrations/0001_initial.py": "" for part in parts})
    assert compose.texts(known(tmp_path))["architecture"].splitlines()[1:] == [
        "- Migrations: `zoo/*/migrations/`"
    ]
    files(tmp_path, **{"db/migrate/20200101_a.rb": ""})
    assert "architecture" not in compose.texts(known(tmp_path)), "a list of them helps nobody"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("README.md", "# Title\n\n[![badge](x)](y)\n\nIt does *many* things. No.\n", "It does many things"),
        ("README.rst", "Title\n=====\n\nIt does many things.\n", "It does many things"),
        ("__init__.py", '#!/usr/bin/python\n# -*- coding -*-\n\nr"""It does things"""', "It does things"),
        ("__init__.py", '"""\nwalrus.sea\n~~~~~~~~~~\n\nIt does things.\n"""\n', "It does things"),
        ("__init__.py", '"""\nwalrus.sea\n~~~~~~~~~~\n"""\n', ""),
        ("__init__.py", '"""bring the walruses into the namespace"""\n', ""),
        (
            "doc.go",
            "// Copyright\n\n// Package sea does things.\n// More.\npackage sea\n",
            "does things",
        ),
        ("doc.go", "/*\nPackage sea does things.\n*/\npackage sea\n", "does things"),
        ("lib.rs", "//! It does things.\n//!\n//! More.\nuse x;\n", "It does things"),
        ("lib.rs", "//! It does what [`Fish`] does.\nuse x;\n", "It does what `Fish` does"),
        ("lib.rs", "//! It does [what fish][`Fish`] do.\nuse x;\n", "It does what fish do"),
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
    assert outline.about(walk(str(tmp_path / "sea")), "", [name]) == said


def test_the_readme_of_a_folder_says_what_it_is_in_its_own_file_only(tmp_path: Path) -> None:
    files(tmp_path, **{"sea/README.md": "Note that it is not required.\n", "sea/package.json": "{}"})
    assert outline.about(walk(str(tmp_path)), "sea", ["README.md", "package.json"]) == ""
    made = "This project was generated with Walrus CLI version 1.\n"
    files(tmp_path, **{"sea/README.md": made})
    assert outline.about(walk(str(tmp_path / "sea")), "", ["README.md"]) == ""


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


def test_conventions_are_rules_to_go_by_and_patterns_say_where_tests_are(tmp_path: Path) -> None:
    files(tmp_path, a="")
    layered = pattern("architecture", "", "layered", "api", "services", "models", confidence=0.75)
    unusual = (
        pattern("naming", "python classes", "snake_case", "walrus"),
        pattern("style", "python quotes", "single"),
    )
    said = compose.texts(known(tmp_path, patterns=(*PATTERNS, *unusual, layered)))
    assert said["conventions"].splitlines()[1:] == [
        "- Names: classes `snake_case`",
        "- Style: single quotes",
        "- Imports: relative",
    ]
    assert said["patterns"].splitlines()[1:] == [
        "- Tests: in `tests/`, named `test_*.py`, as `tests/test_a.py`",
    ]


def test_what_a_twentieth_does_otherwise_is_no_convention(tmp_path: Path) -> None:
    files(tmp_path, a="")
    for share, is_told in ((0.95, True), (0.94, False)):
        nearly = pattern("naming", "python functions", "camelCase", confidence=share)
        assert ("conventions" in compose.texts(known(tmp_path, patterns=(nearly,)))) is is_told


def test_the_style_that_a_formatter_sees_to_is_not_told(tmp_path: Path) -> None:
    files(tmp_path, **{"api/a.py": "x = 1\n"})
    style = (pattern("style", "python quotes", "single"),)
    part = walk(str(tmp_path / "api"))
    with_one = survey(commands=(Command("format", "black .", "pyproject.toml"),))
    assert "conventions" in compose.texts(known(tmp_path, patterns=style))
    assert "conventions" not in compose.texts(known(tmp_path, patterns=style, survey=with_one))
    assert "conventions" in compose.module_texts(known(tmp_path), "api", part, style)
    assert "conventions" not in compose.module_texts(known(tmp_path, survey=with_one), "api", part, style)


USUAL = [
    *PATTERNS[:2],
    *PATTERNS[3:6],
    pattern("import", "imports python", "absolute"),
    pattern("naming", "rust functions", "snake_case"),
    pattern("naming", "go functions", "MixedCaps"),
    pattern("naming", "java files", "PascalCase"),
    pattern("style", "indentation go", "tabs"),
    pattern("import", "imports typescript", "ES modules"),
    pattern("import", "import order javascript", "stdlib, external, internal"),
]


@pytest.mark.parametrize("one", USUAL, ids=lambda one: one.subject)
def test_what_is_usual_in_a_language_is_no_convention(tmp_path: Path, one: Pattern) -> None:
    files(tmp_path, a="")
    assert "conventions" not in compose.texts(known(tmp_path, patterns=(one,)))


def test_names_of_one_style_are_told_at_once(tmp_path: Path) -> None:
    files(tmp_path, a="")
    go = [pattern("naming", f"go {kind}", "camelCase") for kind in ("functions", "classes", "constants")]
    said = compose.texts(known(tmp_path, patterns=(*go, pattern("naming", "go files", "kebab-case"))))
    assert said["conventions"].splitlines()[1:] == [
        "- Names: functions, methods and types `camelCase`, files `kebab-case`"
    ]
    assert "patterns" not in said


def test_with_two_languages_each_rule_says_whose_it_is(tmp_path: Path) -> None:
    files(tmp_path, **{"a.py": "x = 1\n", "a.js": "x\n", "a.ts": "x\n"})
    both = (
        pattern("naming", "python functions", "camelCase"),
        pattern("style", "javascript semicolons", "never"),
        pattern("style", "typescript semicolons", "never"),
        pattern("import", "typescript imports", "CommonJS"),
        pattern("test", "javascript", "test/ folder, *.test.js", "test/a.test.js"),
        pattern("test", "typescript", "test/ folder, any name", "test/a.ts"),
    )
    said = compose.texts(known(tmp_path, patterns=both))
    assert said["conventions"].splitlines()[1:] == [
        "- Python names: functions and methods `camelCase`",
        "- JavaScript and TypeScript style: no semicolons",
        "- TypeScript imports: CommonJS",
    ]
    assert said["patterns"].splitlines()[1:] == [
        "- JavaScript tests: in `test/`, named `*.test.js`, as `test/a.test.js`",
        "- TypeScript tests: in `test/`, as `test/a.ts`",
    ]


def test_a_rule_says_whose_it_is_also_where_only_one_of_two_languages_has_one(tmp_path: Path) -> None:
    files(tmp_path, **{"a.py": "x = 1\n", "a.js": "x\n"})
    one = pattern("style", "javascript semicolons", "never")
    said = compose.texts(known(tmp_path, patterns=(one,)))["conventions"]
    assert said.splitlines()[1:] == ["- JavaScript style: no semicolons"]


def test_where_tests_are_is_not_told_where_the_language_has_one_place_for_them(tmp_path: Path) -> None:
    files(tmp_path, a="")
    placed = (
        pattern("test", "rust", "inline #[cfg(test)]", "src/a.rs"),
        pattern("test", "go", "beside the source, *_test.go", "a_test.go"),
    )
    assert "patterns" not in compose.texts(known(tmp_path, patterns=placed))


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


FOUND = Insights(
    hot=(("z.py", 30), ("a.py", 20)),
    together=(("db/a.py", "web/z.py", 9),),
    decisions=(("2026-01-02", "abc1234", "Use herring instead of squid: squid is rare"),),
    habits=("Commits are signed off (`git commit -s`).",),
)


def many_rules(number: int) -> tuple[Fact, ...]:
    return tuple(Fact(f"Rule number {each} is to do things.", "RULES.md", "ai") for each in range(number))


def with_room(root: Path, found: Insights) -> list[str]:
    """What git insights say in a file that is long."""
    files(root, **{"src/walrus/app.py": "x = 1\n"})
    texts = compose.texts(known(root, insights=found, survey=survey(rules=many_rules(150))))
    return texts.get("git-insights", "").splitlines()[1:]


def test_git_insights_say_what_changes_what_somebody_does(tmp_path: Path) -> None:
    assert with_room(tmp_path, FOUND) == [
        "- Commits: Commits are signed off (`git commit -s`).",
        "- `db/a.py` and `web/z.py` change together",
        "- Decided: Use herring instead of squid: squid is rare (2026-01-02, abc1234)",
    ]


def test_git_insights_are_at_most_a_tenth_of_the_file(tmp_path: Path) -> None:
    files(tmp_path, **{"src/walrus/app.py": "x = 1\n"})
    for number in (0, 3, 10, 30, 100):
        texts = compose.texts(known(tmp_path, insights=FOUND, survey=survey(rules=many_rules(number))))
        said = texts.pop("git-insights", "").partition("\n")[2]
        assert len(said) <= 0.1 * sum(map(len, texts.values())) + 4, number  # the ends of lines
    assert said.count("\n") == 2
    assert "git-insights" not in compose.texts(known(tmp_path, insights=FOUND))  # there is no room at all


def test_best_practices_which_few_syncs_ask_for_change_nothing_in_other_sections(tmp_path: Path) -> None:
    files(tmp_path, **{"src/walrus/app.py": "x = 1\n"})
    rules = tuple(Fact(f"Never call `walrus_{each}`.", "CONTRIBUTING.md", "generated") for each in range(70))
    practices = "- Something to do, and something else. " * 100
    with_them = compose.texts(
        known(tmp_path, survey=survey(rules=rules), insights=FOUND, practices=practices)
    )
    assert with_them.pop("best-practices")
    assert with_them == compose.texts(known(tmp_path, survey=survey(rules=rules), insights=FOUND))


def test_of_files_that_change_together_two_pairs_of_other_folders_are_told_and_no_test_of_a_file(
    tmp_path: Path,
) -> None:
    together = [("src/a.py", "tests/test_a.py", 9), ("src/a.py", "src/b.py", 8)]
    together += [("a/migrations/0001.py", "b/migrations/0001.py", 9)]
    together += [
        (f"{one}/x.py", f"{other}/{name}.py", 5) for one, other in ("dc", "ba", "fe") for name in "yz"
    ]
    assert with_room(tmp_path, Insights((), tuple(together), (), ())) == [
        "- `b/x.py` and `a/y.py` change together",
        "- `d/x.py` and `c/y.py` change together",
    ]


def test_best_practices_are_what_was_found_of_them(tmp_path: Path) -> None:
    files(tmp_path, a="")
    assert (
        compose.texts(known(tmp_path, practices="- Be nice\n"))["best-practices"]
        == "## Best Practices\n- Be nice"
    )
    assert "best-practices" not in compose.texts(known(tmp_path, practices=None))


def test_a_whole_file_stays_within_a_thousand_tokens(tmp_path: Path) -> None:
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
            description="Something. " * 100,
            commands=tuple(
                Command(role, f"npm run {role}:{number}", "package.json")
                for role in ("build", "test", "lint", "run")
                for number in range(gather.MOST)
            ),
            workspaces=tuple(f"packages/number_{number}" for number in range(50)),
            rules=tuple(Fact(f"Use `x{number}` {'here ' * 30}.", "C.md", "generated") for number in range(9)),
        ),
        patterns=tuple(
            pattern("naming", f"{language} {kind}", "kebab-case", "load_order", "get_things")
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
    assert 700 < len(whole) / 4 < 1_000
    assert whole.count("\n") < 70


def test_what_must_be_there_stands_before_the_commands(tmp_path: Path) -> None:
    files(tmp_path, a="")
    needs = (
        Fact("Python >=3.11", "pyproject.toml"),
        Fact("Go 1.22", "go.mod"),
        Fact("Node 20", ".nvmrc", "pinned"),
        Fact("PostgreSQL 16, Redis", "compose.yml", "service"),
        Fact("web/.env", "web/.env.example", "settings"),
        Fact("`deps/squid`", ".gitmodules", "submodules"),
    )
    said = compose.texts(known(tmp_path, survey=survey(prerequisites=needs)))["build-commands"]
    assert said.splitlines()[1:7] == [
        "- Needs Python >=3.11 (from `pyproject.toml`) and Go 1.22 (from `go.mod`)",
        "- Pinned: Node 20 (from `.nvmrc`)",
        "- `compose.yml` starts PostgreSQL 16, Redis",
        "- Settings: copy `web/.env.example` to `web/.env`",
        "- Submodules: `git submodule update --init` for `deps/squid`",
        "- Build: `python -m build` (from `pyproject.toml`)",
    ]


def test_what_binds_is_what_is_not_edited_what_tools_ask_for_and_what_documents_say(tmp_path: Path) -> None:
    files(tmp_path, a="")
    found = survey(
        hands_off=(
            Fact("src/gen/", "src/gen/", "generated"),
            Fact("vendor/", "vendor", "vendored"),
            Fact("*.pb.go", ".gitattributes", "generated"),
        ),
        settings=(
            Fact("Lines have at most 100 characters", "rustfmt.toml"),
            Fact("Changes are noted in `CHANGES.md` under `Next`", "CHANGES.md"),
            Fact("Needs a changeset (a file in `.changeset/`)", ".changeset/config.json"),
        ),
        rules=(Fact("Never push to the `main` branch.", "docs/CONTRIBUTING.md", "branch"),),
    )
    assert compose.texts(known(tmp_path, survey=found))["conventions"].splitlines()[1:] == [
        "- Generated, not edited by hand: `src/gen/`, `*.pb.go`",
        "- Other people's code, not edited here: `vendor/`",
        "- Lines have at most 100 characters (from `rustfmt.toml`)",
        "- Changes are noted in `CHANGES.md` under `Next`",
        "- Needs a changeset (a file in `.changeset/`)",
        "- `docs/CONTRIBUTING.md` says:",
        "  - “Never push to the `main` branch.”",
    ]


def test_a_project_of_notebooks_says_so(tmp_path: Path) -> None:
    files(tmp_path, **{f"{number}.ipynb": "{}" for number in range(3)}, **{"a.py": "x = 1\n"})
    found = survey(description="", commands=(), languages=(("Python", 1.0),))
    said = compose.texts(known(tmp_path, survey=found))["project-description"]
    assert said == "Written in Jupyter notebooks and Python."


def test_the_version_of_cmake_is_told_where_somebody_types_it(tmp_path: Path) -> None:
    files(tmp_path, a="")
    needed = (Fact("CMake 3.16 or newer", "CMakeLists.txt"),)
    built = (Command("build", "cmake -B build", "CMakeLists.txt"),)
    said = compose.texts(known(tmp_path, survey=survey(prerequisites=needed, commands=built)))
    assert "- Needs CMake 3.16 or newer (from `CMakeLists.txt`)" in said["build-commands"]
    assert (
        "Needs" not in compose.texts(known(tmp_path, survey=survey(prerequisites=needed)))["build-commands"]
    )


def test_settings_without_a_place_are_told_by_their_example(tmp_path: Path) -> None:
    files(tmp_path, a="")
    both = (Fact("", ".env.example", "settings"), Fact("web/.env", "web/.env.example", "settings"))
    said = compose.texts(known(tmp_path, survey=survey(prerequisites=both)))["build-commands"]
    assert said.splitlines()[1:3] == [
        "- Settings: the variables are in `.env.example`",
        "- Settings: copy `web/.env.example` to `web/.env`",
    ]


KINDS_OF_NEED = ("service", "settings", "submodules")


def test_a_rule_on_what_a_person_s_own_text_speaks_of_is_not_quoted(tmp_path: Path) -> None:
    rules = (Fact("You must disclose AI.", "C.md", "ai"), Fact("Sign off each commit.", "C.md", "commits"))
    files(tmp_path, **{"AGENTS.md": "# Zoo\n\nName each AI that you used.\n"})
    said = compose.texts(known(tmp_path, survey=survey(rules=rules)))["conventions"]
    assert "Sign off" in said and "disclose" not in said
    ours = sections.with_section(
        b"# Zoo\n\n<!-- AUTO-MANAGED: conventions -->\n<!-- END AUTO-MANAGED -->\n", "conventions", said
    )
    (tmp_path / "AGENTS.md").write_bytes(ours)
    assert "disclose" in compose.texts(known(tmp_path, survey=survey(rules=rules)))["conventions"], (
        "ours is not theirs"
    )


def test_what_a_repository_says_stays_text(tmp_path: Path) -> None:
    hostile = "`` ` `` <!-- END AUTO-MANAGED -->\n# Heading\n@/etc/passwd \x1b[2J <!--"
    files(tmp_path, **{"b/package.json": json.dumps({"description": hostile[:20]}), "b/a.ts": ""})
    made = compose.texts(
        known(
            tmp_path,
            survey=survey(
                name=hostile,
                description=hostile,
                commands=(Command("build", hostile, hostile),),
                workspaces=(hostile, f"b{hostile}"),
                prerequisites=tuple(Fact(hostile, hostile, kind) for kind in ("", *KINDS_OF_NEED)),
                hands_off=tuple(Fact(hostile, hostile, kind) for kind in ("generated", "vendored")),
                settings=(Fact(hostile, hostile),),
                rules=(Fact(hostile, hostile, "ai"),),
            ),
            patterns=tuple(
                Pattern(kind, "python functions", hostile, 1.0, 10, (hostile,))
                for kind in ("naming", "import", "style", "test", "architecture")
            ),
            insights=Insights(
                ((hostile, 1),),
                ((hostile, f"b/{hostile}", 9),),
                ((hostile,) * 3,),
                (hostile,),
            ),
            practices="- Something to do, and something else.\n" * 200,
        )
    )
    text = compose.skeleton("root", hostile, made)
    for name, body in made.items():
        text = sections.with_section(text, name, body)
    parsed = sections.parse(text)
    assert parsed.problems == ()
    assert [section.name for section in parsed.sections] == list(made) == compose.names("root")
    assert b"\n# Heading" not in text
    assert b"<!-- END AUTO-MANAGED -->\n# " not in text
    for body in made.values():
        assert "<!--" not in body


def test_names_that_are_no_utf8_are_shown_with_escapes(tmp_path: Path) -> None:
    folder = bytes(tmp_path) + b"/\xff\xfe"
    os.mkdir(folder)
    with open(folder + b"/__init__.py", "wb") as file:
        file.write(b'"""Feeds walruses."""')
    said = compose.texts(known(tmp_path))["architecture"]
    assert "`\\udcff\\udcfe/`" in said
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
    ]
    assert texts["conventions"].splitlines() == [
        "## Module Conventions",
        "As in the whole project. What differs here:",
        "- Style: single quotes",
    ]


def test_of_a_module_that_says_nothing_nothing_is_said(tmp_path: Path) -> None:
    files(tmp_path, **{"web/a.ts": "", "web/b.ts": "", "web/c.py": ""})
    assert compose.module_texts(known(tmp_path), "web", walk(str(tmp_path / "web")), ()) == {}


def test_a_module_that_is_as_all_the_rest_says_nothing_about_conventions(tmp_path: Path) -> None:
    files(tmp_path, **{"api/app.py": '"""Where it begins."""\n', "api/routes/a.py": ""})
    texts = compose.module_texts(
        known(tmp_path, patterns=PATTERNS), "api", walk(str(tmp_path / "api")), PATTERNS
    )
    assert list(texts) == ["architecture"]
    assert compose.nothing("subtree", "conventions").endswith("\nAs in the whole project.")


def test_a_module_says_how_it_is_built_where_its_own_manifest_does(tmp_path: Path) -> None:
    files(
        tmp_path,
        **{"big api/app.py": '"""Where it begins."""', "big api/README.md": "Answers all of them quickly.\n"},
    )
    commands = (Command("test", "npm test", "package.json"), Command("build", "npm run x", "package.json"))
    part = walk(str(tmp_path / "big api"))
    texts = compose.module_texts(known(tmp_path), "big api", part, (), commands)
    assert texts["module-description"] == (
        "Answers all of them quickly.\n\nAfter `cd 'big api'`:\n- Build: `npm run x` (from `package.json`)"
        "\n- Test: `npm test` (from `package.json`)"
    )


def test_the_root_leaves_the_commands_of_a_folder_to_its_own_file(tmp_path: Path) -> None:
    files(tmp_path, **{"ui/a.ts": ""})
    found = survey(commands=(Command("test", "cd ui && yarn test", "ui/package.json", "ui"),))
    assert "yarn test" in compose.texts(known(tmp_path, survey=found))["build-commands"]
    assert "build-commands" not in compose.texts(known(tmp_path, survey=found), ["ui"])
    files(tmp_path, **{f"ui/{name}/package.json": '{"description": "What they see"}' for name in "ab"})
    files(tmp_path, **{f"ui/{name}/index.ts": "" for name in "ab"})
    whole = compose.texts(known(tmp_path, survey=found))["architecture"]
    assert "ui/a/" in whole
    assert "ui/a/" not in compose.texts(known(tmp_path, survey=found), ["ui"]).get("architecture", "")


def test_one_more_file_in_a_folder_changes_nothing(tmp_path: Path) -> None:
    files(tmp_path, **{"src/walrus/a.py": "", "src/walrus/b.py": "", "tests/test_a.py": ""})
    before = compose.texts(known(tmp_path))
    files(
        tmp_path, **{"src/walrus/c.py": "x = 1\n" * 100, "tests/test_b.py": "", "src/walrus/a.py": "y = 2\n"}
    )
    assert compose.texts(known(tmp_path)) == before


def test_files_that_only_have_a_name_are_not_listed(tmp_path: Path) -> None:
    names = (*(f"src/walrus/{name}.py" for name in "abcd"), *(f"c{number:02}.c" for number in range(20)))
    files(tmp_path, **dict.fromkeys(names, "x = 1\n" * 99), **{f"{name}.ipynb": "{}" for name in "abc"})
    assert list(outline.lines(walk(str(tmp_path)), (), str, str)) == []


def test_a_folder_of_documents_names_what_they_are_built_with(tmp_path: Path) -> None:
    files(tmp_path, **{"docs/conf.py": "x = 1\n", "docs/index.rst": "", "src/a.py": "x = 1\n"})
    assert "- docs/: documentation (Sphinx)" in list(outline.lines(walk(str(tmp_path)), (), str, str))
