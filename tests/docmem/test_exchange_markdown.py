"""Markdown as trees and trees as Markdown."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backstory.docmem import tree
from backstory.docmem.exchange import export_markdown, parse_markdown, parse_text
from backstory.docmem.tree import LONGEST_TEXT, Made
from backstory.errors import BadInput
from backstory.model import Node, Project
from backstory.recall.documents import chunk
from tests.helpers.exchange import NOW, Take, as_nodes, outline, project_at, read

REPOSITORY = Path(__file__).resolve().parents[2]
NOTE = ("note", "", "")


@pytest.fixture
def api(db: sqlite3.Connection, project: str) -> Project:
    return project_at(db, project)


# Markdown, in.

DOCUMENT = """\
---
title: Guide
tags: [a, b]
---

Some words before all.

# Guide

Hello, *you*.
Two lines.

- one
- two

  more of two

- three

## Install

```sh
# not a heading

make install
```

### Linux

Text right before code:
```
x
```
and after it.

1. first

    ~~~
    # in a list
    ~~~

## Use

> quoted
> twice

| a | b |
|---|---|
| 1 | 2 |

    indented = code

***

# Other

The end.
"""


def test_headings_become_the_hierarchy_and_all_between_them_nodes_below() -> None:
    assert outline(parse_markdown(DOCUMENT, "guide")) == [
        (1, "text", "---\ntitle: Guide\ntags: [a, b]\n---"),
        (1, "text", "Some words before all."),
        (1, "heading", "Guide"),
        (2, "text", "Hello, *you*.\nTwo lines."),
        (2, "text", "- one\n- two\n\n  more of two"),
        (2, "text", "- three"),
        (2, "heading", "Install"),
        (3, "text", "```sh\n# not a heading\n\nmake install\n```"),
        (3, "heading", "Linux"),
        (4, "text", "Text right before code:\n```\nx\n```\nand after it."),
        (4, "text", "1. first\n\n    ~~~\n    # in a list\n    ~~~"),
        (2, "heading", "Use"),
        (3, "text", "> quoted\n> twice"),
        (3, "text", "| a | b |\n|---|---|\n| 1 | 2 |\n\n    indented = code"),
        (3, "text", "***"),
        (1, "heading", "Other"),
        (2, "text", "The end."),
    ]


@pytest.mark.parametrize("format", ["md", "txt"])
def test_every_node_of_a_document_is_readonly(
    db: sqlite3.Connection, api: Project, take_in: Take, format: str
) -> None:
    take_in(DOCUMENT, format)
    assert all(node.readonly for node in read(db, api))
    with pytest.raises(BadInput, match="is readonly"):
        tree.update_content(db, api, "doc", "other", now=NOW)


def test_a_heading_is_called_by_its_beginning_and_knows_its_level() -> None:
    made = parse_markdown("## A heading\twith more to say than fits\n", "x")
    assert made[1].text == "A heading\twith more to say than fits"
    assert made[1].context == ("heading", "A heading with more to s", "2")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Title\n=====\n\ntext", [(1, "heading", "Title"), (2, "text", "text")]),
        ("Two\nlines\n---\ntext", [(1, "heading", "Two lines"), (2, "text", "text")]),
        ("intro\n\nTitle\n---", [(1, "text", "intro"), (1, "heading", "Title")]),
        ("- item\n---\ntext", [(1, "text", "- item\n---\ntext")]),
        ("text\n\n---\n\ntext", [(1, "text", "text"), (1, "text", "---"), (1, "text", "text")]),
        ("# A #\n#no\n####### seven\n#", [(1, "heading", "A"), (2, "text", "#no\n####### seven\n#")]),
        ("#\tTab\n", [(1, "heading", "Tab")]),
        ("    # code\n", [(1, "text", "    # code")]),
        ("text\n# A\ntext", [(1, "text", "text"), (1, "heading", "A"), (2, "text", "text")]),
        ("## B\n# A\n### C\n", [(1, "heading", "B"), (1, "heading", "A"), (2, "heading", "C")]),
        ("# A\n# A\n", [(1, "heading", "A"), (1, "heading", "A")]),
        (f"# {'x' * 301}", [(1, "text", f"# {'x' * 301}")]),
        ("```\n# open\n\nto the end\n\n", [(1, "text", "```\n# open\n\nto the end")]),
        ("```\n~~~\n# x\n```\n# A", [(1, "text", "```\n~~~\n# x\n```"), (1, "heading", "A")]),
        ("~~~~\n~~~\n# x\n~~~~~\n# A", [(1, "text", "~~~~\n~~~\n# x\n~~~~~"), (1, "heading", "A")]),
        ("- ```\n  # x\n  ```\n# A", [(1, "text", "- ```\n  # x\n  ```"), (1, "heading", "A")]),
        ("    ```\n\n# A", [(1, "text", "    ```"), (1, "heading", "A")]),
        ("```\na  \n\n \n\nb\n```", [(1, "text", "```\na  \n\n \n\nb\n```")]),
        ("\ufeff# A\r\n\r\none\r\ntwo\rthree", [(1, "heading", "A"), (2, "text", "one\ntwo\nthree")]),
        ("---\nno: end\n\ntext", [(1, "text", "---\nno: end"), (1, "text", "text")]),
        ("---\n# c\na: b\n...\n# A", [(1, "text", "---\n# c\na: b\n..."), (1, "heading", "A")]),
    ],
)
def test_markdown_is_read_as_it_is_meant(text: str, expected: list[tuple[int, str, str]]) -> None:
    assert outline(parse_markdown(text, "x")) == expected


LINES = st.sampled_from(
    "# A|## B ##|#### C|#|# #|text|more text|- item|  - item|1. one|> quote|| a |||---|===|-|```|```py|~~~|"
    "    ```|  ```|- ```|    code|  indented|\ttab|***|title: x|```a`b|``` ```|####### no|x #|=|a\tb".split(
        "|"
    )
)
MARKDOWN = st.lists(LINES, max_size=14).map("\n".join)


@given(MARKDOWN)
def test_headings_are_what_they_are_to_the_search_in_documents(text: str) -> None:
    """Two readers of Markdown, one opinion."""
    try:
        made = parse_markdown(text, "x")
    except BadInput:
        made = []
    found = [(int(one.context[2]), one.text) for one in made if one.context[0] == "heading"]
    headings, _ = chunk._outline(text, "md")
    assert found == [(heading.level, heading.title) for heading in headings]


@given(MARKDOWN)
def test_nothing_of_a_document_is_lost(text: str) -> None:
    made = parse_markdown(f"{text}\n\nend", "x")
    told = "".join("".join(one.text.split()) for one in made)
    for line in text.split("\n"):
        content = "".join(line.split())
        if not content.strip("#=-"):
            continue
        assert content.strip("#") in told


def test_what_is_longer_than_a_node_may_be_becomes_several(
    db: sqlite3.Connection, api: Project, take_in: Take
) -> None:
    line = "word " * 30 + "\n"
    take_in("# A\n\n" + line * 2000 + "\nend", "md")
    texts = [node.text for node in read(db, api) if node.context_type == "text"]
    assert len(texts) == 5
    assert max(len(text) for text in texts) <= LONGEST_TEXT
    assert all(text.startswith("word") for text in texts[:4])
    assert "\n".join(texts[:4]) + "\n" == line * 2000


@pytest.mark.parametrize("sign", ["x", "x ", "x\n"])
def test_a_piece_of_a_long_text_is_never_too_long(sign: str) -> None:
    made = parse_text(sign * 150_000, "x")
    assert "".join("".join(one.text.split()) for one in made) == "x" * 150_000
    assert max(len(one.text) for one in made) <= LONGEST_TEXT


# Markdown, out.


def test_a_document_that_comes_in_goes_out_as_it_was(
    db: sqlite3.Connection, api: Project, take_in: Take
) -> None:
    take_in(DOCUMENT, "md")
    assert export_markdown(read(db, api)) == DOCUMENT


@pytest.mark.parametrize(
    "path", sorted(REPOSITORY.glob("*.md")) + sorted(REPOSITORY.glob("docs/*.md")), ids=lambda path: path.name
)
def test_our_own_documents_come_back_close_to_themselves(path: Path) -> None:
    text = path.read_text()
    exported = export_markdown(as_nodes(parse_markdown(text, "x")))
    assert [line for line in exported.splitlines() if line] == [line for line in text.splitlines() if line]


def test_headings_go_out_with_hashes_at_the_level_they_had() -> None:
    text = "### Deep\n\ntext\n\nTitle\n===\n#### Far below\n## Near\n"
    exported = export_markdown(as_nodes(parse_markdown(text, "x")))
    assert exported == "### Deep\n\ntext\n\n# Title\n\n#### Far below\n\n## Near\n"


@given(MARKDOWN)
@example("# A\n\n#### B\n\n### C\n\n## D\n")
@example("a #\n=\n")
@example("\n---\ntitle: x\n# A\n---")
@example("\n---\n# #\n---\n#")
@example("\n---\ntitle: x\n...\ntext")
@example("---\ntitle: x\n---\ntext")
@example("#\n-\n  ```")
@example("text\n-\n  ```")
@example("text\n---\n-\n  ```")
def test_an_exported_document_comes_in_as_the_same_tree(text: str) -> None:
    made = parse_markdown(f"{text}\n\n# end", "x")
    again = parse_markdown(export_markdown(as_nodes(made)), "x")
    assert again == made


@pytest.mark.parametrize("text", ["---\na: b\n---", "---\na: b\n---\n", "---\na: b\n---\nrest"])
def test_front_matter_written_by_hand_goes_out_as_front_matter(text: str) -> None:
    nodes = tree_of((None, "", ("root", "kb", "")), (0, text, NOTE), (0, "end", NOTE))
    assert export_markdown(nodes).startswith("---\na: b\n---\n")


def tree_of(*given: tuple[int | None, str, tuple[str, str, str]]) -> list[Node]:
    return as_nodes([Made(None, parent, text, context) for parent, text, context in given])


def test_inner_nodes_are_headings_and_leaves_are_paragraphs() -> None:
    exported = export_markdown(
        tree_of(
            (None, "Knowledge", ("root", "kb", "")),
            (0, "Storage", ("partition", "", "")),
            (1, "We use SQLite.", NOTE),
            (1, "One file.\nAlways.", NOTE),
            (0, "Search", ("partition", "", "")),
            (4, "By words.", NOTE),
        )
    )
    assert exported == (
        "# Knowledge\n\n## Storage\n\nWe use SQLite.\n\nOne file.\nAlways.\n\n## Search\n\nBy words.\n"
    )


def test_an_inner_node_whose_text_is_no_heading_is_called_by_its_context() -> None:
    long = "A summary of what follows. " * 5
    exported = export_markdown(
        tree_of(
            (None, "", ("root", "kb", "")),
            (0, long, ("summary", "Week 3", "")),
            (1, "leaf", NOTE),
            (0, "two\nlines", ("summary", "", "")),
            (3, "leaf", NOTE),
            (0, "", ("", "", "")),
            (5, "leaf", NOTE),
        )
    )
    assert exported == (
        f"# Week 3\n\n{long}\n\nleaf\n\n# summary\n\ntwo\nlines\n\nleaf\n\n# 00000005\n\nleaf\n"
    )


def test_a_root_without_text_or_with_a_long_one_has_no_heading() -> None:
    assert export_markdown(tree_of((None, "", NOTE), (0, "leaf", NOTE))) == "leaf\n"
    assert export_markdown(tree_of((None, "a\nb", NOTE), (0, "leaf", NOTE))) == "a\nb\n\nleaf\n"
    assert export_markdown(tree_of((None, "", NOTE))) == ""


def test_no_heading_is_deeper_than_six() -> None:
    given = [(None, "level 1", NOTE), *((number, f"level {number + 2}", NOTE) for number in range(8))]
    lines = export_markdown(tree_of(*given)).split("\n\n")
    assert lines == [f"{'#' * min(number, 6)} level {number}" for number in range(1, 9)] + ["level 9\n"]


def test_a_heading_that_was_moved_stands_below_its_new_parent(
    db: sqlite3.Connection, api: Project, take_in: Take
) -> None:
    take_in("# A\n\n## B\n\n# C\n\n## D\n\n# E\n", "md")
    named = {node.text: node.id for node in read(db, api)}
    tree.move(db, api, named["C"], named["B"], "append-child", now=NOW)
    assert export_markdown(read(db, api)) == "# A\n\n## B\n\n### C\n\n#### D\n\n# E\n"
    tree.move(db, api, named["D"], named["E"], "before", now=NOW)
    assert export_markdown(read(db, api)) == "# A\n\n## B\n\n### C\n\n# D\n\n# E\n"
    tree.move(db, api, named["D"], named["A"], "before", now=NOW)
    assert export_markdown(read(db, api)) == "## D\n\n# A\n\n## B\n\n### C\n\n# E\n"
