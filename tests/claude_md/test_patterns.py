"""Patterns of small real trees: what nearly all code does is found, what only some does is not."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from backstory import paths
from backstory.claude_md.read import grammars, imports, parse_pool, path_patterns
from backstory.claude_md.read.files import File, ProjectFiles, walk
from backstory.claude_md.read.parse_pool import Job
from backstory.claude_md.read.patterns import Evidence, chosen, judge, read, shape, styles
from backstory.model import Pattern

Lay = Callable[[Mapping[str, str]], ProjectFiles]


@pytest.fixture
def lay(tmp_path: Path) -> Lay:
    """Lays files out in a folder and walks it."""
    root = tmp_path / "project"

    def laid(files: Mapping[str, str]) -> ProjectFiles:
        for path, text in files.items():
            place = root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, "utf-8")
        return walk(str(root))

    return laid


def told(tree: ProjectFiles, *languages: str, workspaces: Sequence[str] = ()) -> dict[str, Pattern]:
    names = {"naming": "naming ", "test": "tests ", "architecture": "architecture "}
    found = judge(read(tree, languages), workspaces)
    return {f"{names.get(one.type, '')}{one.subject}": one for one in found}


def values(tree: ProjectFiles, *languages: str) -> dict[str, str]:
    return {subject: pattern.value for subject, pattern in told(tree, *languages).items()}


def log_file() -> str:
    folder = paths.data_folder(os.environ)
    assert folder
    return paths.log_file(folder)


def logged() -> str:
    return Path(log_file()).read_text()


def words(number: int) -> str:
    """Two letters, different for each number up to 676."""
    return chr(97 + number // 26) + chr(97 + number % 26)


def python_module(number: int) -> str:
    return f'''"""It's a module."""

import os

import attr

from shop.base_model import BaseModel

MOST_{words(number).upper()} = {number}
NAME_{words(number).upper()} = "name"


class Item{number}(BaseModel):
    """A 'single' quoted word in a docstring decides nothing."""

    def first_price(self):
        if self.price:
            return "price"
        return f"{{self.parts['one']}}"

    def __repr__(self):
        return "it's"


def make_item_{words(number)}(x):
    return Item{number}("a", "b", x)


def run():
    make_item_{words(number)}("c")
'''


def python_project() -> dict[str, str]:
    files = {f"src/shop/item_{words(number)}.py": python_module(number) for number in range(12)}
    files |= {f"tests/test_item_{words(number)}.py": "def testOdd():\n    pass\n" for number in range(2)}
    files |= {
        f"tests/test_more_{words(number)}.py": "def test_it():\n    assert True\n" for number in range(6)
    }
    return files | {"src/shop/__init__.py": "", "tests/conftest.py": "", "tests/helpers.py": ""}


def test_the_patterns_of_a_python_project_are_found(lay: Lay) -> None:
    assert values(lay(python_project()), "Python") == {
        "naming python functions": "snake_case",
        "naming python classes": "PascalCase",
        "naming python constants": "UPPER_SNAKE_CASE",
        "naming python files": "snake_case",
        "imports python": "absolute",
        "import order python": "stdlib, external, internal",
        "quotes python": "double",
        "indentation python": "4 spaces",
        "tests python": "tests/ folder, test_*.py",
    }


def test_a_pattern_tells_how_sure_it_is_and_shows_examples(lay: Lay) -> None:
    found = told(lay(python_project()), "Python")
    functions = found["naming python functions"]
    assert (
        functions.cases == 26
    )  # 12 methods, 12 functions, testOdd twice; `run`, `__repr__`, test_it decide nothing
    assert functions.confidence == 0.9  # 24 of 26, in steps of 5 %
    assert len(functions.examples) == 3
    assert all(styles(name) == ("snake_case",) for name in functions.examples)
    assert found["naming python constants"].cases == 24
    assert set(found["tests python"].examples) <= python_project().keys()
    assert found["imports python"].examples == ("from shop.base_model import BaseModel",)
    assert set(found["quotes python"].examples) <= python_project().keys()


def test_a_language_that_was_not_asked_for_is_not_judged(lay: Lay) -> None:
    tree = lay(python_project() | {f"web/a{number}.js": "run('a');\n" * 5 for number in range(5)})
    assert all("javascript" not in subject for subject in told(tree, "Python"))
    assert all("python" not in subject for subject in told(tree, "JavaScript"))


def test_relative_imports_are_told_from_absolute_ones_only_inside_the_package(lay: Lay) -> None:
    files = {f"shop/m{number}.py": "from .base import a\nfrom . import b\nimport os\n" for number in range(4)}
    files |= {f"tests/test_{number}.py": "from shop.base import a\nimport shop\n" for number in range(9)}
    files |= {"shop/__init__.py": "", "tests/__init__.py": "from .x import y\n" * 20}
    found = told(lay(files), "Python")["imports python"]
    assert (found.value, found.cases, found.confidence) == ("relative", 8, 1.0)


def test_the_package_of_a_deep_module_is_found_quickly() -> None:
    folders = ["p/" * depth for depth in range(1, 1_200)]
    tree = ProjectFiles("/nowhere", tuple(File(f"{folder}__init__.py", 0) for folder in folders))
    start = time.process_time()
    assert imports.own(tree).packages == {"p"}
    assert time.process_time() - start < 3  # half a second here, eight otherwise


def test_a_project_that_mixes_its_styles_shows_none(lay: Lay) -> None:
    files = {}
    for number in range(10):
        odd = number % 2
        quote, indent = "'" if odd else '"', "  " if odd else "\t"
        word = words(number)
        name = f"do{word.title()}" if odd else f"do_{word}"
        constant = f"most{word.title()}" if odd else f"MOST_{word.upper()}"
        kind = f"some_{word}" if odd else f"Some{word.title()}"
        first, second = ("import os", "import attr") if odd else ("import attr", "import os")
        own = "from .x import y" if odd else "from shop.x import y"
        files[f"shop/{name}.py"] = (
            f"{first}\n{second}\n{own}\n{constant} = 1\n\nclass {kind}:\n{indent}x = {quote}a{quote}\n\n"
            f"def {name}():\n{indent}return {quote}b{quote}\n"
        )
        files[f"{'tests' if odd else 'shop'}/test_{word}.py"] = "x = 1\n"
    assert values(lay(files | {"shop/__init__.py": ""}), "Python") == {}


@pytest.mark.parametrize(
    ("agreeing", "others", "found"), [(9, 1, True), (8, 2, True), (7, 3, False), (9, 0, False)]
)
def test_ten_cases_are_needed_of_which_eight_agree(lay: Lay, agreeing: int, others: int, found: bool) -> None:
    names = [f"do_{words(number)}" for number in range(agreeing)] + [
        f"doIt{number}" for number in range(others)
    ]
    text = "".join(f"def {name}(): pass\n" for name in names)
    assert ("naming python functions" in values(lay({"shop.py": text}), "Python")) is found


@pytest.mark.parametrize(("agreeing", "sure"), [(40, 1.0), (39, 0.95), (38, 0.95), (37, 0.9), (32, 0.8)])
def test_nothing_is_said_to_be_surer_than_it_is(lay: Lay, agreeing: int, sure: float) -> None:
    names = [f"do_it_{number}" if number < agreeing else f"doIt{number}" for number in range(40)]
    tree = lay({"a.py": "".join(f"def {name}():\n    pass\n" for name in names)})
    assert told(tree, "Python")["naming python functions"].confidence == sure


def test_docs_examples_and_benchmarks_count_for_nothing(lay: Lay) -> None:
    text = "".join(f"def do_{words(number)}(): pass\n" for number in range(20))
    places = (
        "docs/conf.py",
        "examples/a.py",
        "pkg/examples/a.py",
        "bench/a.py",
        "benchmarks/a.py",
        "benches/a.py",
    )
    assert values(lay(dict.fromkeys(places, text)), "Python") == {}
    assert values(lay({"doc/a.py": text}), "Python") == {"naming python functions": "snake_case"}


def test_a_python_constant_is_a_name_that_gets_a_literal_once(lay: Lay) -> None:
    upper = "".join(f"MOST_{words(number).upper()} = -{number}\n" for number in range(10))
    not_constants = (
        "some_list = [1]\nsome_call = f()\nother_name = 1\nother_name = 2\nthe_count = 0\n"
        "def f():\n    global the_count\n    in_here = 1\nsome_none = None\n__version_x__ = '1'\n"
    )
    found = told(lay({"a.py": upper + not_constants}), "Python")["naming python constants"]
    assert (found.value, found.cases) == ("UPPER_SNAKE_CASE", 10)


JAVASCRIPT = """'use strict'

const fs = require('node:fs')
const path = require('path')
const express = require('express')
const {{ helper }} = require('./helper')

const MOST_{upper} = 3
const someList = [1, 2]

class Server{number} {{
  startIt () {{
    for (let i = 0; i < 3; i++) {{
      helper('a')
    }}
    return "it's"
  }}
}}

function makeServer{number} () {{
  return new Server{number}()
}}

const sendAll{number} = () => {{
  return makeServer{number}()
}}

module.exports = makeServer{number}
"""


def test_the_patterns_of_a_javascript_project_are_found(lay: Lay) -> None:
    files = {
        f"lib/send-{words(number)}.js": JAVASCRIPT.format(number=number, upper=words(number).upper())
        for number in range(12)
    }
    files |= {f"test/{words(number)}.js": "it('a')\n" for number in range(6)}
    assert values(lay(files), "JavaScript") == {
        "naming javascript functions": "camelCase",
        "naming javascript classes": "PascalCase",
        "naming javascript constants": "UPPER_SNAKE_CASE",
        "naming javascript files": "kebab-case",
        "imports javascript": "CommonJS",
        "import order javascript": "stdlib, external, internal",
        "quotes javascript": "single",
        "indentation javascript": "2 spaces",
        "semicolons javascript": "never",
        "tests javascript": "test/ folder, any name",
    }


TYPESCRIPT = """import fs from "node:fs";
import React from "react";
import type {{ Shop }} from "./shop";

export const MOST_{upper} = "most";

export interface ItemProps{number} {{
    readPrice(): number;
}}

type ItemKind{number} = "a" | "b";

enum Size{number} {{
    Small,
}}

export abstract class Item{number} {{
    abstract firstPrice(): number;

    lastPrice(): number {{
        return 1;
    }}
}}
"""
TSX = """
export function renderItem{number}(props: ItemProps{number}) {{
    const look = <a href='x' title='y'>text</a>;
    return look;
}}
"""


def test_the_patterns_of_a_typescript_project_are_found_in_tsx_too(lay: Lay) -> None:
    files = {}
    for number in range(12):
        given = {"number": number, "upper": words(number).upper()}
        files[f"src/Item{number}.tsx"] = (TYPESCRIPT + TSX).format(**given)
        files[f"src/Plain{number}.ts"] = TYPESCRIPT.format(**given)
        files[f"src/Item{number}.test.tsx"] = 'import { test } from "vitest";\n\ntest("a", 1);\n'
    files["src/types.d.ts"] = "declare function readAll(): void;\n"
    assert values(lay(files), "TypeScript") == {
        "naming typescript functions": "camelCase",
        "naming typescript classes": "PascalCase",
        "naming typescript constants": "UPPER_SNAKE_CASE",
        "naming typescript files": "PascalCase",
        "imports typescript": "ES modules",
        "import order typescript": "stdlib, external, internal",
        "quotes typescript": "double",
        "indentation typescript": "4 spaces",
        "semicolons typescript": "always",
        "tests typescript": "beside the source, *.test.tsx",
    }


def test_files_in_lower_case_speak_against_names_of_classes(lay: Lay) -> None:
    capital = {f"src/Item{words(number).title()}.ts": "" for number in range(12)}
    assert values(lay(capital), "TypeScript")["naming typescript files"] == "PascalCase"
    lower = {f"src/{words(number).partition('_')[0]}.ts": "" for number in range(12)}
    assert "naming typescript files" not in values(lay({**capital, **lower}), "TypeScript")


GO = """package shop

import (
\t"fmt"
\t"net/http"

\t"github.com/else/where"

\t"example.org/shop/internal/price"
)

const mostItems{number} = {number}
const GET{number} = "GET"

type shopItem{number} struct {{
\tname string
}}

func (s shopItem{number}) FirstPrice() int {{
\tif price.Free {{
\t\treturn 0
\t}}
\treturn where.Else(fmt.Sprint(http.MethodGet))
}}
"""


def test_the_patterns_of_a_go_project_are_found(lay: Lay) -> None:
    files = {f"item_{words(number)}.go": GO.format(number=number) for number in range(12)}
    test = "package shop\n\nfunc TestItem_All_{0}(t *testing.T) {{\n\tt.Fail()\n}}\n"
    files |= {f"item_{words(number)}_test.go": test.format(number) for number in range(12)}
    tree = lay(files | {"go.mod": "module example.org/shop\n\ngo 1.22\n"})
    assert values(tree, "Go") == {
        "naming go functions": "MixedCaps",
        "naming go classes": "MixedCaps",
        "naming go constants": "MixedCaps",
        "naming go files": "snake_case",
        "import order go": "stdlib, external, internal",
        "indentation go": "tabs",
        "tests go": "beside the source, *_test.go",
    }


RUST = """use std::fmt;
use serde::Serialize;
use crate::price::Price;

pub use self::other::Thing;

const MOST_ITEMS_{upper}: u8 = 1;

pub struct Item{number} {{
    name: String,
}}

impl Item{number} {{
    pub fn first_price(&self) -> Price {{
        Price::new()
    }}
}}

#[cfg(test)]
mod tests {{
    #[test]
    #[should_panic]
    fn itIsATest() {{
        panic!();
    }}
}}
"""


def test_the_patterns_of_a_rust_project_are_found(lay: Lay) -> None:
    files = {
        f"src/item_{words(number)}.rs": RUST.format(number=number, upper=words(number).upper())
        for number in range(12)
    }
    whole = "#[tokio::test]\nasync fn anyName() {\n    run();\n}\n"
    files |= {"tests/whole.rs": "use shop::run;\nuse std::fs;\n" + whole * 5}
    assert values(lay(files | {"Cargo.toml": '[package]\nname = "shop"\n'}), "Rust") == {
        "naming rust functions": "snake_case",
        "naming rust classes": "PascalCase",
        "naming rust constants": "UPPER_SNAKE_CASE",
        "naming rust files": "snake_case",
        "import order rust": "stdlib, external, internal",
        "indentation rust": "4 spaces",
        "tests rust": "tests/ folder, any name",
    }
    found = [one for one in judge(read(walk(lay({}).root), ["Rust"])) if one.type == "test"]
    assert [(one.value, one.cases) for one in found] == [
        ("inline #[cfg(test)]", 12),
        ("tests/ folder, any name", 5),
    ]


JAVA = """package org.example;

import java.util.List;

public class Item{number} {{
  private static final long serialVersionUID = 1L;
  public static final int MOST_{upper} = 1, LEAST_{upper} = 0;
  private final int someField = 1;
  static int otherField;

  public int firstPrice() {{
    return 1;
  }}
}}
"""


def test_the_patterns_of_a_java_project_are_found(lay: Lay) -> None:
    files = {}
    for number in range(12):
        given = {"number": number, "upper": words(number).upper()}
        files[f"src/main/java/org/example/test/Item{number}.java"] = JAVA.format(**given)
        files[f"src/test/java/org/example/Item{number}Test.java"] = (
            f"class Item{number}Test {{\n  @Test(timeout = 1)\n  void it_is_one() {{\n    run();\n  }}\n}}\n"
        )
        files[f"src/main/java/org/p{number}/package-info.java"] = f"package org.p{number};\n"
    assert values(lay(files), "Java") == {
        "naming java functions": "camelCase",
        "naming java classes": "PascalCase",
        "naming java constants": "UPPER_SNAKE_CASE",
        "naming java files": "PascalCase",
        "indentation java": "2 spaces",
        "tests java": "src/test/, *Test.java",
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("read_file", ("snake_case",)),
        ("_read_file_", ("snake_case",)),
        ("readFile", ("camelCase",)),
        ("Flask", ("PascalCase",)),
        ("HTTPServer", ("PascalCase",)),
        ("MOST_OF", ("UPPER_SNAKE_CASE",)),
        ("PORT", ("PascalCase", "UPPER_SNAKE_CASE")),
        ("read-file", ("kebab-case",)),
        ("0001_first", ("snake_case",)),
        ("read", ()),
        ("T", ()),
        ("X1", ()),
        ("_", ()),
        ("$", ()),
        ("größe_in_metern", ()),
        ("visit_Name", ("",)),
        ("Read-File", ("",)),
    ],
)
def test_a_name_has_the_styles_that_it_shows(name: str, expected: tuple[str, ...]) -> None:
    assert styles(name) == expected


@pytest.mark.parametrize(
    ("language", "paths", "expected"),
    [
        ("python", [f"pkg/tests/test_{n}.py" for n in range(5)], "tests/ folder, test_*.py"),
        ("python", [f"pkg/_tests/test_{n}.py" for n in range(5)], "_tests/ folder, test_*.py"),
        ("python", [f"pkg/m{n}_test.py" for n in range(5)], "beside the source, *_test.py"),
        ("python", [f"tests/check{n}.py" for n in range(5)], "tests/ folder, any name"),
        ("python", [f"tests/test_{n}.py" for n in range(4)], None),
        ("python", [f"{'tests' if n % 2 else 'pkg'}/test_{n}.py" for n in range(20)], None),
        ("javascript", [f"src/__tests__/a{n}.test.mjs" for n in range(5)], "__tests__/ folder, *.test.mjs"),
        ("javascript", [f"src/a{n}.spec.js" for n in range(5)], "beside the source, *.spec.js"),
        (
            "typescript",
            [f"test/a{n}.test.ts" for n in range(3)] + [f"test/b{n}.test.tsx" for n in range(2)],
            "test/ folder, *.test.*",
        ),
        (
            "typescript",
            [f"test/a{n}.test.ts" for n in range(5)] + [f"test/b{n}.spec.ts" for n in range(5)],
            "test/ folder, any name",
        ),
        ("go", [f"pkg/a{n}_test.go" for n in range(5)], "beside the source, *_test.go"),
        ("java", [f"src/test/java/Test{n}X.java" for n in range(5)], "src/test/, any name"),
        ("java", [f"core/src/test/java/TestX{n}.java" for n in range(5)], "src/test/, Test*.java"),
        ("java", [f"src/test/java/X{n}Tests.java" for n in range(5)], "src/test/, any name"),
        ("java", [f"src/main/java/test/X{n}.java" for n in range(5)], None),
    ],
)
def test_where_tests_lie_and_how_they_are_called(
    language: str, paths: list[str], expected: str | None
) -> None:
    found = path_patterns.tests(language, paths)
    assert (found.value if found else None) == expected


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["app/controllers/a.py", "app/services/b.py", "app/models/c.py"], ["layered"]),
        (["com/shop/service/A.java", "com/shop/model/B.java", "com/shop/repository/C.java"], ["layered"]),
        (["api/a.go", "handlers/b.go", "routes/c.go"], []),
        (["app/controllers/a.py", "app/services/b.py"], []),
        (["app/controllers/a.py", "app/services/b.py", "other/models/c.py"], []),
        (["app/controllers/a.txt", "app/services/b.txt", "app/models/c.txt"], []),
        (["tests/controllers/a.py", "tests/services/b.py", "tests/models/c.py"], []),
        (["src/features/cart/a.ts", "src/features/user/b.ts", "src/features/shop/c.ts"], ["feature folders"]),
        (["src/features/cart/a.ts", "src/features/user/b.ts", "src/features/c.ts"], []),
        (["app/models/a.rb", "app/views/b.erb", "app/controllers/c.rb"], ["MVC"]),
        (["shop/models.py", "shop/views.py", "shop/templates/shop/list.html"], ["MVC"]),
        (["shop/models.py", "shop/views.py"], []),
        (["tests/app/models.py", "tests/app/views.py", "tests/app/templates/a.html"], []),
    ],
)
def test_the_folders_show_the_architecture(paths: list[str], expected: list[str]) -> None:
    assert [found.value for found in path_patterns.architecture(paths)] == expected


def test_folders_in_folders_take_no_longer_for_being_many() -> None:
    deep = "x/" * 1_000
    paths = [f"{deep}{number}/a.py" for number in range(300)]
    paths += [f"{deep}{layer}/a.py" for layer in ("controllers", "services", "models")]
    start = time.process_time()
    assert [found.value for found in path_patterns.architecture(paths)] == ["layered"]
    assert time.process_time() - start < 2  # 0.1 here, six otherwise


def test_two_workspaces_are_a_monorepo_and_the_layers_are_named(lay: Lay) -> None:
    tree = lay({f"app/{name}/a.py": "x = 1\n" for name in ("api", "services", "models", "db")})
    found = judge(read(tree, ["Python"]), workspaces=("packages/a", "packages/b"))
    assert [(one.type, one.subject, one.value, one.confidence) for one in found] == [
        ("architecture", "", "layered", 1.0),
        ("architecture", "", "monorepo", 1.0),
    ]
    assert shape(found)["architecture"] == {
        "pattern": "layered, monorepo",
        "layers": ["api", "db", "models", "services"],
    }
    assert judge(read(lay({}), ["Python"]), workspaces=("packages/a",)) == found[:1]


def test_the_shape_is_keyed_by_language_only_where_there_are_several() -> None:
    one = Pattern("naming", "python functions", "snake_case", 1.0, 10, ())
    order = Pattern("import", "import order python", "stdlib, external, internal", 1.0, 10, ())
    both = [
        Pattern("test", "rust", value, 1.0, 10, ())
        for value in ("inline #[cfg(test)]", "tests/ folder, any name")
    ]
    assert shape([one, order]) == {
        "naming": {"functions": "snake_case"},
        "imports": {"ordering": "stdlib → external → internal"},
        "style": {},
        "tests": {},
        "architecture": {"pattern": "", "layers": []},
    }
    several = shape([one, *both])
    assert several["naming"] == {"python": {"functions": "snake_case"}}
    assert several["tests"] == {"rust": {"layout": "inline #[cfg(test)]; tests/ folder, any name"}}
    json.dumps(several)


def test_a_folder_is_judged_by_what_was_read_of_the_whole(lay: Lay) -> None:
    files = python_project()
    files |= {f"web/part{number}.py": "def doSo():\n  return 'a'\n" * 20 for number in range(3)}
    evidence = read(lay(files), ["Python"])
    found = {one.subject: one for one in judge(evidence, folder="web")}
    assert {subject: one.value for subject, one in found.items()} == {
        "python functions": "camelCase",
        "quotes python": "single",
        "indentation python": "2 spaces",
    }
    assert set(found["quotes python"].examples) == {"part0.py", "part1.py", "part2.py"}
    inside = {one.subject: one.value for one in judge(evidence, folder="src/shop")}
    assert inside["imports python"] == "absolute"  # what is the project's own is known from the whole


# What must not stop it.

CHILDREN = parse_pool.CHILDREN


@pytest.fixture
def two_parsers(one_parser: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as there are for people."""
    monkeypatch.setattr(parse_pool, "CHILDREN", CHILDREN)


NASTY = {
    "broken.py": "def broken(:\n  'x'\n" * 50,
    "junk.py": "\x00\x01\x02" * 1000,
    "long.py": "x = '" + "a" * 5_000_000 + "'\n",
    "line.py": "x = '" + "a" * 100_000 + "'\n",
    "parens.py": "(" * 100_000,
    "nested.py": "x = " + "(\n" * 50_000 + "1" + ")\n" * 50_000,
    "lists.py": "x = " + "[\n" * 50_000 + "1" + "]\n" * 50_000,
    "open.py": "(\n" * 100_000,
    "empty.py": "",
    "tags.py": "<a>\n" * 50_000,  # minutes of looking for the error
}


@pytest.mark.slow
@pytest.mark.usefixtures("two_parsers")
def test_files_that_no_person_wrote_are_passed_over(lay: Lay) -> None:
    expected = values(lay(python_project()), "Python")
    tree = lay(NASTY)
    junk = random.Random(3).randbytes(100_000)  # noqa: S311 - the same every time
    Path(tree.root, "bytes.py").write_bytes(junk)
    Path(tree.root, "latin.py").write_bytes(b"x = '" + b"\xff" * 3_000 + b"'\n")
    os.mkfifo(Path(tree.root, "pipe.py"))
    Path(tree.root, "out.py").symlink_to("/etc/passwd")
    assert values(walk(tree.root), "Python") == expected
    before = {path for path in python_project() if path.endswith(".py")}
    evidence = read(walk(tree.root), ["Python"])
    assert (
        before - {"src/shop/__init__.py", "tests/conftest.py", "tests/helpers.py"}
        <= evidence.found["python"].keys()
    )
    assert (
        not {"broken.py", "junk.py", "long.py", "line.py", "parens.py", "open.py"}
        & evidence.found["python"].keys()
    )


@pytest.mark.slow
@pytest.mark.usefixtures("two_parsers")
def test_a_file_that_keeps_the_parser_busy_costs_a_second_and_nothing_else(lay: Lay) -> None:
    files = {f"A{number}.java": JAVA.format(number=number, upper="X") for number in range(9)}
    tree = lay(files | {"Busy.java": "a=>\n" * 20_000})
    jobs = [Job("java", path) for path in ("A0.java", "Busy.java", *sorted(files)[1:])]
    began = time.perf_counter()
    found = parse_pool.read(tree, jobs)
    assert [job.path for job, _ in found] == sorted(files)
    assert time.perf_counter() - began < 30
    assert "Busy.java cannot be parsed" in logged()


@pytest.mark.slow
def test_a_child_that_needs_too_long_in_all_is_not_started_again(
    lay: Lay, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What the kernel does for it counts as well; here that is nearly all.
    slow = "import os; grammars.found = lambda *_: (os.urandom(10_000_000), {})[1]"
    slow = f"from backstory.claude_md.read import grammars; {slow}"
    hurried = f"{slow}; parse_pool.SECONDS_IN_ALL = 1; parse_pool.main()"
    monkeypatch.setattr(parse_pool, "CODE", parse_pool.CODE.replace("parse_pool.main()", hurried))
    tree = lay({f"m{number}.py": python_module(number) for number in range(200)})
    found = parse_pool.read(tree, [Job("python", file.path) for file in tree.files])
    assert 0 < len(found) < len(tree.files)
    assert not os.path.exists(log_file())  # none of them is to blame


@pytest.mark.usefixtures("two_parsers")
def test_a_parser_that_dies_again_and_again_is_given_up(lay: Lay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse_pool, "CODE", "import os; os.kill(os.getpid(), 11)")
    tree = lay(python_project())
    assert parse_pool.read(tree, [Job("python", file.path) for file in tree.files]) == []


@pytest.mark.usefixtures("two_parsers")
def test_a_grammar_that_is_missing_is_a_line_in_the_log(lay: Lay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [place for place in sys.path if "site-packages" not in place])
    tree = lay(python_project())
    assert values(tree, "Python").keys() == {"naming python files", "tests python"}  # paths alone still speak
    assert "patterns: ModuleNotFoundError" in logged()


def test_names_that_are_not_unicode_are_read_and_not_shown(lay: Lay) -> None:
    tree = lay(python_project())
    for number in range(30):
        odd = os.path.join(os.fsencode(tree.root), b"src/shop/caf\xe9_%d.py" % number)
        with open(odd, "wb") as file:
            file.write(b"def do_it_%d():\n    return 'a'\n" % number)
    found = judge(read(walk(tree.root), ["Python"]))
    json.dumps([pattern.examples for pattern in found], ensure_ascii=False).encode()
    assert {pattern.cases for pattern in found if pattern.subject == "python functions"} == {56}


def test_only_the_grammar_that_is_needed_is_loaded() -> None:
    code = (
        "import sys; from backstory.claude_md.read import grammars, patterns; "
        "assert grammars.found('go', 'a.go', 'package a\\n')['tests'] == 0; "
        "print(*sorted(name for name in sys.modules if name.startswith('tree_sitter_') and '.' not in name))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["tree_sitter_go"]


@pytest.mark.parametrize("name", sorted(grammars.GRAMMARS))
def test_a_file_with_an_error_in_it_shows_nothing(name: str) -> None:
    language = "typescript" if name == "tsx" else name
    path = f"a.{name}"
    assert grammars.found(language, path, "") is not None
    assert grammars.found(language, path, "}} ]] ((\n") is None


@pytest.mark.parametrize(
    ("language", "text", "kind", "expected"),
    [
        ("go", "package a\nconst (\n\tB, C = 1, x\n)\n", "constants", {"B", "C"}),
        ("java", "interface I { int Q = 1; static final int R = 2, S = 3; }", "constants", {"R", "S"}),
        ("java", "class A { @TestFactory void a() {} @VisibleForTesting void b() {} }", "functions", {"b"}),
        ("rust", "#[test_case(1)]\nfn a() {}\n/// doc\n#[inline]\nfn b() {}\n", "functions", {"b"}),
        ("javascript", "const A = 1, b = f();\nif (x) { const C = 2; }\nlet D = 3;\n", "constants", {"A"}),
        (
            "javascript",
            "x.aB = () => 1;\nconst cD = function () {};\nf({ eF() {} });\n",
            "functions",
            {"aB", "cD", "eF"},
        ),
        ("typescript", "export type A = 1; declare class B {}", "classes", {"A", "B"}),
        ("python", "async def a(): pass\nclass B:\n  @x\n  def c(self): pass\n", "functions", {"a", "c"}),
    ],
)
def test_what_is_counted_of_a_kind(language: str, text: str, kind: str, expected: set[str]) -> None:
    found = grammars.found(language, "a", text)
    assert found is not None
    assert {
        name for key, names in found.items() if key == kind and isinstance(names, list) for name in names
    } == expected


# What is read of a large project.


def test_one_file_more_changes_neither_what_is_read_nor_what_is_found(lay: Lay) -> None:
    files = [File(f"src/m{number}.py", 20_000) for number in range(2_000)]
    before, after = chosen(files), chosen([*files, File("src/another.py", 20_000)])
    assert len(before) == 75  # 1.5 MB
    assert len(set(before) ^ set(after)) <= 2
    assert chosen(reversed(files)) == before
    assert len(chosen([File(f"m{number}.py", 10) for number in range(2_000)], 2)) == 150
    assert chosen([File("large.py", 1_000_000), File("empty.py", 0), File("a.py", 5)]) == ["a.py"]


@pytest.mark.usefixtures("two_parsers")
def test_one_file_more_changes_no_pattern(lay: Lay) -> None:
    files = {f"shop/item_{words(number)}.py": python_module(number) for number in range(60)}
    other = "def doOther():\n\treturn 'a'\n"
    before = told(lay(files | {"shop/__init__.py": "", "shop/old_one.py": other * 2}), "Python")
    after = told(lay({"shop/new_one.py": other}), "Python")
    assert before.keys() == after.keys()
    for subject, pattern in before.items():
        assert (pattern.value, pattern.confidence) == (after[subject].value, after[subject].confidence)
        assert len(set(pattern.examples) - set(after[subject].examples)) <= 1


@pytest.mark.slow
@pytest.mark.usefixtures("two_parsers")
def test_ten_thousand_files_are_a_matter_of_a_second(lay: Lay) -> None:
    text = {
        ".py": python_module(7),
        ".js": JAVASCRIPT.format(number=7, upper="X"),
        ".go": GO.format(number=7),
    }
    endings = [*text]
    tree = lay({f"d{n % 100}/item_{n}{endings[n % 3]}": text[endings[n % 3]] for n in range(10_000)})
    began = time.process_time()
    evidence = read(tree, ["Python", "JavaScript", "Go"])
    found = judge(evidence)
    assert time.process_time() - began < 4  # half a second here
    assert isinstance(evidence, Evidence)
    assert sum(len(files) for files in evidence.found.values()) == 300
    assert {one.subject for one in found} >= {"python functions", "javascript functions", "go functions"}
