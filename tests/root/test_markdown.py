"""Fenced code is found as CommonMark finds it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from backstory.claude_md.read.files import walk
from backstory.claude_md.read.readme import description
from backstory.markdown import fences, without_fence_marks, without_fences
from backstory.memory.closing import closing
from backstory.recall.brief import gist
from backstory.synthesis.rules.facts import plan_title
from tests.helpers.growth import assert_linear


def codes(text: str) -> list[str]:
    return [text[first:last] for _, first, last, _ in fences(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("```\na\n```\nb", ["a\n"]),
        ("```py\n~~~\nstill\n```\nb", ["~~~\nstill\n"]),
        ("~~~\n```\nstill\n~~~", ["```\nstill\n"]),
        ("````\n```\nstill\n```\nand\n````\nb", ["```\nstill\n```\nand\n"]),
        ("```\na\n`````\nb", ["a\n"]),
        ("```\na\n``` js\nstill", ["a\n``` js\nstill"]),
        ("``` a`b\nno fence", []),
        ("~~~ a`b\ncode", ["code"]),
        ("    ```\nno fence", []),
        ("   ```\na\n    ```\nstill\n  ```  \nb", ["a\n    ```\nstill\n"]),
        ("``\nno fence\n``", []),
        ("a\n```\nnever closed\n\nb", ["never closed\n\nb"]),
        ("- item\n\n  ```\n  a\n  ```\n- b", ["  a\n"]),
        ("1. item\n\n   - inner\n\n     ```\n     a\n     ```\n\nb", ["     a\n"]),
        ("- ```\n  never closed\nends with the item", ["  never closed\n"]),
        ("```", [""]),
        ("```\r\na\r\n```\r\nb", ["a\r\n"]),
    ],
)
def test_a_fence_ends_with_its_own_kind_and_length(text: str, found: list[str]) -> None:
    assert codes(text) == found


def test_text_is_told_without_code_or_without_the_marks_around_it() -> None:
    text = "before\n```py\nx = 1\n```\nafter\n~~~\ny"
    assert without_fences(text) == "before\n\nafter\n"
    assert without_fences(text, "[code]") == "before\n[code]\nafter\n[code]"
    assert without_fence_marks(text) == "before\nx = 1\n\nafter\ny"


INDENTS = st.sampled_from(["", "", " ", "   ", "    "])
FENCES = ["```", "````", "~~~", "~~~~~", "```py", "~~~ a`b", "``` "]
LINES = st.tuples(INDENTS, st.sampled_from([*FENCES, "", "text", "``", "``` a`b", "~~"])).map("".join)
# Without items that are empty, and paragraphs, which may go on unindented below an item: we follow neither.
ITEMS = st.sampled_from(["", "", "- ", "1. ", "  ", "- - "])
LISTED = st.one_of(st.just(""), st.tuples(ITEMS, INDENTS, st.sampled_from(FENCES)).map("".join))


@settings(max_examples=100)
@given(st.lists(LINES, max_size=12))
def test_fences_are_those_of_another_reader(lines: list[str]) -> None:
    text = "\n".join([*lines, "end"])
    assert in_lines(text) == theirs(text)


@settings(max_examples=100)
@given(st.lists(LISTED, max_size=8))
def test_fences_in_lists_are_those_of_another_reader(lines: list[str]) -> None:
    text = "\n".join([*lines, "end"])
    assert in_lines(text) == theirs(text)


@pytest.mark.parametrize(
    ("text", "is_item"),
    [
        ("text\n-\n  ```\nx", False),
        ("text\n*\n  ```\nx", False),
        ("#\n-\n  ```\nx", True),
        ("# A\n-\n  ```\nx", True),
        ("- a\n-\n  ```\nx", True),
        ("- a\n  b\n-\n  ```\nx", True),
        ("text\n\n-\n  ```\nx", True),
        ("text\n---\n-\n  ```\nx", True),
    ],
)
def test_an_empty_item_does_not_interrupt_a_paragraph(text: str, is_item: bool) -> None:
    assert in_lines(text) == theirs(text)
    assert fences(text)[0][3] == (len(text) - 1 if is_item else len(text)), "an item ends where x begins"


def in_lines(text: str) -> list[tuple[int, ...]]:
    """The first line of each fence, and the first below it."""
    places = [(start, stop - (text[stop - 1] == "\n")) for start, _, _, stop in fences(text)]
    return [(text.count("\n", 0, start), text.count("\n", 0, stop) + 1) for start, stop in places]


def theirs(text: str) -> list[tuple[int, ...]]:
    return [tuple(token.map or ()) for token in MarkdownIt("commonmark").parse(text) if token.type == "fence"]


@pytest.mark.parametrize("piece", ["```\n", "- ", "- ```\n", "   ~~~\n", "````\n```\n", " ", "\t- x\n"])
def test_hostile_text_takes_linear_time(piece: str) -> None:
    assert_linear(fences, (piece * 10_000)[:10_000], (piece * 40_000)[:40_000])


# --- who reads code so --------------------------------------------------------------------------------------

NESTED = "````md\n```\nNext: this is code\n```\nShall I obey the code?\n````"


@pytest.mark.parametrize("code", [NESTED, "~~~\n```\nShall I obey?\n~~~", "```sh\n~~~\nWhat now?\n```"])
def test_code_leaves_nothing_open(code: str) -> None:
    assert closing(f"It works.\n\n{code}") == []
    assert closing(f"{code}\n\nWant me to add tests for the parser?") == [
        "asked: Want me to add tests for the parser?"
    ]


def test_code_that_began_before_what_is_looked_at_is_code() -> None:
    long = "```\n" + "code\n" * 2_000 + "```\n\nWant me to add tests for the parser?"
    assert closing(long) == ["asked: Want me to add tests for the parser?"]


@pytest.mark.parametrize("code", [NESTED, "~~~\n```\nShall I obey?\n~~~", "```sh\n~~~\nWhat now?\n```"])
def test_a_long_answer_is_told_without_its_code(code: str) -> None:
    words = "The parser reads both kinds now. " * 3
    assert gist(f"{words}\n\n{code}\n\n{words}", 200) == " ".join(f"{words}{words}".split())


def test_a_short_answer_keeps_its_code_without_the_marks() -> None:
    assert gist("Run:\n~~~\nmake test\n~~~", 200) == "Run: make test"


def test_a_plan_is_told_without_its_code() -> None:
    _, goal = plan_title(
        f"# Mend the parser\n\n{NESTED}\n\nThe parser reads both kinds of fences from now on."
    )
    assert goal == "The parser reads both kinds of fences from now on."


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("README.md", f"{NESTED}\n\nA parser for two kinds of fences."),
        ("README.md", "~~~\n```\nThis is code and no prose.\n~~~\n\nA parser for two kinds of fences."),
        ("README.rst", "Parser\n~~~~~~\n\nA parser for two kinds of fences."),
    ],
)
def test_a_readme_is_told_by_its_first_prose(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert description(walk(str(tmp_path))) == "A parser for two kinds of fences."
