"""Documents are cut where their author would cut them, and nothing of them is lost."""

from __future__ import annotations

import time
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.errors import BadInput
from backstory.recall.documents.chunk import OVERLAP, SIZE, Chunk, chunks, title_of, tokens
from tests.helpers.growth import assert_linear

KINDS = ("md", "rst", "txt", "html")
SENTENCE = "The quick brown fox jumps over the lazy dog. "


def headings(text: str, kind: str = "md") -> list[str]:
    return [chunk.heading for chunk in chunks(text, kind)]


def prose(sentences: int, start: int = 0) -> str:
    return "".join(
        f"Sentence {number} says something of its own. " for number in range(start, start + sentences)
    )


def numbered(count: int, after: str) -> str:
    return "".join(f"{number:05}{after}" for number in range(count)).strip()


# Headings.


def test_a_section_is_a_chunk_with_the_path_of_its_heading() -> None:
    text = "# Guide\n\nHello.\n\n## Install\n\n### Linux\n\napt install it\n\n## Use\n\nrun it\n"
    assert chunks(text, "md") == [
        Chunk("Guide", "Hello."),
        Chunk("Guide > Install > Linux", "apt install it"),
        Chunk("Guide > Use", "run it"),
    ]


def test_text_before_the_first_heading_has_no_heading() -> None:
    assert chunks("Hello.\n\n# Guide\nText", "md") == [Chunk("", "Hello."), Chunk("Guide", "Text")]


def test_a_skipped_level_does_not_confuse_the_path() -> None:
    assert headings("# A\na\n#### B\nb\n## C\nc\n# D\nd") == ["A", "A > B", "A > C", "D"]


def test_headings_without_anything_below_them_are_text_of_the_heading_above() -> None:
    assert chunks("# A\n\n## B\n## C\n\n## D\n\ntext\n\n## E\n", "md") == [
        Chunk("A", "## B\n## C"),
        Chunk("A > D", "text"),
        Chunk("A", "## E"),
    ]


@pytest.mark.parametrize(
    ("text", "heading"),
    [
        ("## Closed ##\nx", "Closed"),
        ("   # Indented\nx", "Indented"),
        ("# C#\nx", "C#"),
        ("Setext\n======\nx", "Setext"),
        ("Setext\n--\nx", "Setext"),
        ("Two\nlines\n===\nx", "Two lines"),
        ("#NoSpace\nx", ""),
        ("####### Seven\nx", ""),
        ("    # Code\nx", ""),
        ("#\nx", ""),
        ("## ##\nx", ""),
        ("x\n\n---\n\ny", ""),
        ("- item\n---\nx", ""),
        ("> quote\n---\nx", ""),
        ("| a |\n---\nx", ""),
        ("===\nx", ""),
        ("# " + "long " * 100 + "\nx", ""),
        ("long " * 100 + "\n===\nx", ""),
    ],
)
def test_what_is_a_heading_in_markdown(text: str, heading: str) -> None:
    assert headings(text) == [heading]


@pytest.mark.parametrize(
    "block",
    [
        "```\n# no\n```",
        "~~~sh\n# no\n~~~",
        "```sh\n# no\n~~~\n# no\n```",
        "````md\n```\n# no\n```\n# no\n````",
        "```\nno\n===\n`````",
        "- ```\n  x\n  # no\n  ```",
        "1. do\n\n    ```sh\n    # no\n    ```",
    ],
)
def test_a_sign_inside_a_fence_is_no_heading(block: str) -> None:
    found = chunks(f"# A\n{block}\n# B\nb", "md")
    assert found == [Chunk("A", block), Chunk("B", "b")]


def test_an_unclosed_fence_runs_to_the_end() -> None:
    assert chunks("# A\n```\n# no\n\n# no", "md") == [Chunk("A", "```\n# no\n\n# no")]


def test_a_fence_that_is_code_in_a_list_ends_with_the_list() -> None:
    assert headings("# A\n\n    ```\n    x\n\n# B\nb") == ["A", "B"]


def test_backticks_in_a_sentence_open_no_fence() -> None:
    assert headings("```code``` is inline\n\n# A\na") == ["", "A"]


def test_front_matter_is_text_and_gives_the_title() -> None:
    text = '---\n# a comment\ntitle: "The: guide"\ntags: [a]\n---\n# Other\n\nx'
    assert headings(text) == ["", "Other"]
    assert title_of(text, "md") == "The: guide"


@pytest.mark.parametrize(
    ("text", "kind", "title"),
    [
        ("---\ntitle: Plain # comment\n---\n", "md", "Plain"),
        ("---\ntitle: >\n  folded\n---\n# A\n", "md", "A"),
        ("---\nother: x\n---\n## B\n# A\n", "md", "A"),
        ("---\n\n# A\n\n---\n", "md", "A"),
        ("---\ntitle: unclosed\n\n## A\n", "md", "A"),
        ("## First\n## Second\n", "html", "First"),
        ("\ufeff# A\r\nx", "md", "A"),
        ("no heading", "md", None),
        ("# no heading", "txt", None),
        ("A\n=\n\nB\n-\n", "rst", "A"),
        ("", "rst", None),
    ],
)
def test_the_title_of_a_document(text: str, kind: str, title: str | None) -> None:
    assert title_of(text, kind) == title


def test_restructured_text_ranks_its_titles_as_they_appear() -> None:
    text = """
.. _top:

=======
 Guide
=======

Hello.

Install
*******

Linux
=====

apt install it

.. code-block:: sh

   Not a title
   ===========

Use
***
Run it::

   Not this
   --------

====

After a transition.

:mod:`x` --- more
*****************

===== =====
a     b
===== =====
1     2
===== =====
"""
    assert headings(text, "rst") == [
        "",
        "Guide",
        "Guide > Install > Linux",
        "Guide > Use",
        "Guide > :mod:`x` --- more",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "two\nlines\n=====\nx",
        " indented\n=========\nx",
        "Long title\n==\nx",
        "- item\n======\nx",
        ":field: value\n=============\nx",
        ">>> code\n========\nx",
        "Quoted::\n\n=quoted\n=======\n=x",
        "x\n\n====\n\ny",
        "===\n===\n===",
    ],
)
def test_what_is_no_title_in_restructured_text(text: str) -> None:
    assert headings(text, "rst") == [""]


def test_plain_text_has_no_headings() -> None:
    assert chunks("# A\n\nB\n===\n", "txt") == [Chunk("", "# A\n\nB\n===")]


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(BadInput, match="md, rst, txt, html"):
        chunks("x", "pdf")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["", " \n\t\n", "\n" * 5000, " " * 5000])
def test_an_empty_document_has_no_chunks(text: str, kind: str) -> None:
    assert chunks(text, kind) == []


# Cutting.


def test_a_token_is_four_letters_or_one_square() -> None:
    assert tokens("word" * 10) == 10
    assert tokens("漢字かな한글") == 6
    assert tokens("漢字 ab") == 3
    assert tokens("") == 0


def test_a_long_section_is_cut_between_paragraphs() -> None:
    paragraphs = [prose(10, 10 * number).strip() for number in range(40)]
    found = chunks("# A\n\n" + "\n\n".join(paragraphs), "md")
    assert len(found) > 3
    assert all(chunk.heading == "A" for chunk in found)
    assert all(any(chunk.text.endswith(paragraph) for paragraph in paragraphs) for chunk in found)


def test_a_long_paragraph_is_cut_between_sentences() -> None:
    found = chunks(prose(400), "txt")
    assert all(chunk.text.startswith("Sentence") and chunk.text.endswith("own.") for chunk in found)


def test_a_long_sentence_is_cut_between_words() -> None:
    found = chunks(" ".join(f"word{number}" for number in range(5000)), "txt")
    assert all(word.startswith("word") for chunk in found for word in chunk.text.split())


def test_a_long_word_is_cut_by_force() -> None:
    found = chunks("x" * 10_000, "md")
    assert [tokens(chunk.text) for chunk in found][:-1] == [SIZE] * (len(found) - 1)


@pytest.mark.parametrize(
    "text", [prose(400), numbered(9000, ""), numbered(4000, " "), numbered(4000, "漢字。")]
)
def test_neighbours_share_about_a_tenth(text: str) -> None:
    found = [chunk.text for chunk in chunks(text, "txt")]
    assert len(found) > 2
    at = 0
    for before, after in pairwise(found):
        assert SIZE // 2 <= tokens(before) <= SIZE
        end = at + len(before)
        at = text.index(after, at + 1)
        assert OVERLAP / 3 <= tokens(text[at:end]) <= OVERLAP


def test_sections_share_nothing() -> None:
    found = chunks("# A\n\nThe end of A.\n\n# B\n\nThe start of B.", "md")
    assert [chunk.text for chunk in found] == ["The end of A.", "The start of B."]


@pytest.mark.parametrize("before", [0, 1, 30, 60, 64, 66, 69])
def test_code_that_fits_is_not_split(before: int) -> None:
    code = "```python\n" + "\n\n".join(f"print({number}). # and on" for number in range(130)) + "\n```"
    assert SIZE * 0.8 < tokens(code) <= SIZE
    found = chunks(f"# A\n\n{prose(before)}\n\n{code}\n\n{prose(100, 1000)}", "md")
    assert any(code in chunk.text for chunk in found)
    assert all(tokens(chunk.text) <= SIZE for chunk in found)
    assert all(chunk.text.count("```") in (0, 2) for chunk in found)


def test_code_that_does_not_fit_is_cut_between_lines() -> None:
    found = chunks("```\n" + "    some = code(here)\n" * 1000 + "```", "md")
    assert all(line in ("```", "    some = code(here)") for chunk in found for line in chunk.text.split("\n"))


# Nothing is lost.

SHORT = """# {}|## {} ##|### {}|{}
===|{}
---|{}
~~~~~|=====
{}
=====|```{}|```|~~~|    {}|- {}|> {}|{}::|---|title: {}|{}|{} {} {}|||	|漢字{}。|.. {}|    ```{}""".split(
    "|"
)
LONG = ["{} " * 500, "{}. " * 400, "{}\n" * 300, "{}\n\n" * 200]
LINES = st.sampled_from(SHORT + LONG)


@settings(max_examples=150)
@given(st.lists(LINES, max_size=25), st.sampled_from(KINDS))
def test_every_word_of_a_document_is_in_a_chunk(lines: list[str], kind: str) -> None:
    numbers = iter(range(1_000_000))
    text = "\n".join(line.format(*(f"w{next(numbers)}x" for _ in range(line.count("{}")))) for line in lines)
    for _ in range(text.count("w0x")):
        text = text.replace("w0x", f"w{next(numbers)}x", 1)
    found = chunks(text, kind)
    kept = {word for chunk in found for word in f"{chunk.heading} {chunk.text}".split()}
    assert {word for word in text.split() if any(map(str.isalnum, word))} - kept == set()
    assert all(chunk.text.strip() and chunk.text in text for chunk in found)
    assert all(tokens(chunk.text) <= SIZE for chunk in found)


@settings(max_examples=400)
@given(st.text("#=-`~:.*> \t\nab漢\r\x0c", max_size=120), st.sampled_from(KINDS))
def test_every_line_of_a_document_is_in_a_chunk(text: str, kind: str) -> None:
    found = chunks(text, kind)
    kept = "\n".join(f"{chunk.heading}\n{chunk.text}" for chunk in found)
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        row = len(set(line.strip())) == 1  # the row below a title is how it is written, not what it says
        title = line.strip().lstrip("#").strip().rstrip("#").strip()
        assert row or line.strip() in kept or title in kept, line


def test_a_word_cut_by_force_is_whole_when_the_chunks_are_laid_over_each_other() -> None:
    text = numbered(4000, "")
    laid = ""
    for chunk in chunks(text, "txt"):
        at = text.index(chunk.text)
        assert at <= len(laid)
        laid = laid[:at] + chunk.text
    assert laid == text


# Time: of a large document, and how it grows.


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["md", "rst"])
def test_ten_megabytes_of_prose_take_seconds(kind: str) -> None:
    text = SENTENCE * (10_000_000 // len(SENTENCE))
    started = time.process_time()
    assert chunks(text, kind)
    assert time.process_time() - started < 20


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "start", "piece", "end"),
    [
        (400_000, "", SENTENCE, ""),
        (400_000, "", "x", ""),
        (400_000, "a", " ", "b"),
        (100_000, "", "# heading\n", ""),
        (100_000, "", "## heading\n\ntext\n", ""),
        (100_000, "", "text\n----\n", ""),
        (100_000, "", "-\n", ""),
        (100_000, "", "    ```\nx\n", ""),
        (100_000, "", "````\n```\n", ""),
    ],
    ids=["prose", "line", "blanks", "bare", "headings", "setext", "dashes", "fences", "nested"],
)
def test_time_grows_with_the_document_and_not_faster(size: int, start: str, piece: str, end: str) -> None:
    short, long = (start + piece * (length // len(piece)) + end for length in (size // 4, size))
    for kind in ("md", "rst"):
        assert chunks(long, kind)
        seconds = assert_linear(partial(chunks, kind=kind), short, long)
        assert seconds < 0.8  # of 400 kB: ten megabytes would take 20 s


def test_indented_fences_take_linear_time() -> None:
    started = time.process_time()
    chunks("    ```\n" * 40_000, "md")
    assert time.process_time() - started < 20
