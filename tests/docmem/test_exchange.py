"""Trees as documents and documents as trees: what is kept, what is refused."""

from __future__ import annotations

import sqlite3
import time
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from backstory import paths
from backstory.docmem import tree
from backstory.docmem.exchange import (
    MOST_NODES,
    export_markdown,
    export_toml,
    import_document,
    parse_markdown,
    parse_text,
    parse_toml,
    save,
)
from backstory.docmem.tree import LONGEST_TEXT, Made
from backstory.errors import BadInput
from backstory.model import Node, Project
from backstory.recall.documents import chunk
from backstory.store import nodes, projects
from backstory.store.file.connection import connect, transaction
from tests.helpers.trees import assert_trees_sound

NOW = 1_769_860_800_000
REPOSITORY = Path(__file__).resolve().parents[2]
NOTE = ("note", "", "")


def project_at(db: sqlite3.Connection, folder: str) -> Project:
    with transaction(db):
        return projects.by_id(db, projects.ensure(db, paths.place(folder), NOW))


@pytest.fixture
def api(db: sqlite3.Connection, project: str) -> Project:
    return project_at(db, project)


@pytest.fixture
def elsewhere(db: sqlite3.Connection, tmp_path: Path) -> Project:
    """Another project, where all ids are free."""
    (tmp_path / "elsewhere").mkdir()
    return project_at(db, str(tmp_path / "elsewhere"))


Take = Callable[..., Node]


@pytest.fixture
def take_in(db: sqlite3.Connection, api: Project) -> Take:
    """`take_in("# A", "md")` imports a document."""

    def take(
        text: str, format: str, root_id: str | None = None, name: str = "doc", into: Project = api
    ) -> Node:
        root = import_document(db, into, text, format, root_id, name, NOW).root
        assert_trees_sound(db)
        return root

    return take


def read(db: sqlite3.Connection, project: Project, root_id: str = "doc") -> list[Node]:
    return nodes.subtree(db, project.number, root_id)


def as_nodes(made: list[Made]) -> list[Node]:
    """What the store would make of them, without one."""
    ids = [one.id if one.id and one.parent is None else f"{number:08d}" for number, one in enumerate(made)]
    sizes = [1] * len(made)
    for number in reversed(range(len(made))):
        parent = made[number].parent
        if parent is not None:
            sizes[parent] += sizes[number]
    return [
        Node(
            id=ids[number],
            row=number,
            parent_id=None if one.parent is None else ids[one.parent],
            root_id=ids[0],
            text=one.text,
            order_value=float(number),
            token_count=0,
            context_type=one.context[0],
            context_name=one.context[1],
            context_value=one.context[2],
            readonly=one.readonly,
            hash="",
            size=sizes[number],
            created_at=NOW,
            updated_at=NOW,
        )
        for number, one in enumerate(made)
    ]


def outline(made: list[Made]) -> list[tuple[int, str, str]]:
    """(level, type, text) of all but the root."""
    levels = [0]
    for one in made[1:]:
        levels.append(levels[one.parent or 0] + 1)
    return [(level, one.context[0], one.text) for level, one in zip(levels, made, strict=True)][1:]


# TOML, out and in.

EXPORTED = """\
[kb]
context = "root:kb:"
content = ""

[aaaaaaaa]
parent-node-id = "kb"
context = "note:a\\\\:b:c:d"
content = \"""
one
"two" \\\\ three
\"""

[bbbbbbbb]
parent-node-id = "aaaaaaaa"
context = "note::"
content = "four\\tfive"
"""
NODES = [
    Made("kb", None, "", ("root", "kb", "")),
    Made("aaaaaaaa", 0, 'one\n"two" \\ three\n', ("note", "a:b", "c:d")),
    Made("bbbbbbbb", 1, "four\tfive", NOTE),
]


def test_toml_has_a_table_a_node_with_parent_context_and_content() -> None:
    assert export_toml(as_nodes_with_ids(NODES)) == EXPORTED
    assert tomllib.loads(EXPORTED)["aaaaaaaa"]["content"] == NODES[1].text


def as_nodes_with_ids(made: list[Made]) -> list[Node]:
    found = as_nodes(made)
    named = {node.id: one.id or "" for node, one in zip(found, made, strict=True)}
    return [
        replace(node, id=named[node.id], parent_id=named[node.parent_id] if node.parent_id else None)
        for node in found
    ]


def test_toml_comes_in_as_it_went_out() -> None:
    assert parse_toml(EXPORTED) == NODES


def test_what_was_imported_as_toml_is_exported_as_the_same_bytes(
    db: sqlite3.Connection, api: Project, take_in: Take
) -> None:
    take_in(EXPORTED, "toml")
    assert export_toml(read(db, api, "kb")) == EXPORTED


def test_nodes_from_toml_can_be_edited(db: sqlite3.Connection, api: Project, take_in: Take) -> None:
    take_in(EXPORTED, "toml")
    assert not any(node.readonly for node in read(db, api, "kb"))
    assert tree.update_content(db, api, "aaaaaaaa", "other", now=NOW).text == "other"


def test_an_export_of_a_subtree_is_a_tree_of_its_own(
    db: sqlite3.Connection, api: Project, elsewhere: Project, take_in: Take
) -> None:
    take_in(EXPORTED, "toml")
    text = export_toml(nodes.subtree(db, api.number, "aaaaaaaa"))
    root = take_in(text, "toml", into=elsewhere)
    assert (root.id, root.parent_id, root.size) == ("aaaaaaaa", None, 2)


CONTEXTS = st.text(
    st.one_of(st.sampled_from(":\\\"' "), st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp"))),
    max_size=24,
)
TEXTS = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=60),
    st.text("\"\\\n\r\t'ab \x00\x1f\x7f\u2028😀#[]=", max_size=40),
)


@st.composite
def trees(draw: st.DrawFn, texts: st.SearchStrategy[str] = TEXTS) -> list[Made]:
    """Depth-first, as `parse_toml` gives them."""
    count = draw(st.integers(1, 12))
    path = [0]
    made = []
    for number in range(count):
        parent = None
        if number:
            del path[draw(st.integers(1, len(path))) :]
            parent = path[-1]
            path.append(number)
        context = (draw(CONTEXTS), draw(CONTEXTS), draw(CONTEXTS))
        name = draw(st.from_regex(r"[A-Za-z0-9_-]{1,24}", fullmatch=True)) if not number else f"{number:08d}"
        made.append(Made(name, parent, draw(texts), context))
    return made


@given(trees())
@example([Made("r", None, '"""""""', NOTE), Made("00000001", 0, '\n""""', ("a\\", "\\:", ":\\"))])
@example([Made("r", None, "a\r\nb\rc  \n\n", NOTE), Made("00000001", 0, "\n\\\n  x\\", NOTE)])
def test_any_text_any_context_and_any_shape_survive_toml(made: list[Made]) -> None:
    text = export_toml(as_nodes_with_ids(made))
    assert parse_toml(text) == made
    assert parse_toml(text.encode().decode().replace("\n", "\r\n")) == made  # an editor that prefers it


@given(trees(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60)))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_stored_tree_survives_toml_byte_for_byte(tmp_path: Path, made: list[Made]) -> None:
    db = connect(str(tmp_path / "backstory.db"))
    try:
        mine, other = project_at(db, str(tmp_path / "mine")), project_at(db, str(tmp_path / "other"))
        text = export_toml(read(db, mine, tree.build(db, mine, made, now=NOW).id))
        root = import_document(db, other, text, "toml", None, "", NOW + 1).root
        assert export_toml(read(db, other, root.id)) == text
        tree.delete(db, mine, root.id)
        tree.delete(db, other, root.id)
    finally:
        db.close()


@pytest.mark.parametrize("text", ['\n"', '\n""', '\n""""""', '"""\n"""'])
def test_no_more_than_three_quotes_stand_in_a_row_in_toml(text: str) -> None:
    exported = export_toml(as_nodes([Made("kb", None, text, NOTE)]))
    assert '""""' not in exported.replace('\\"', "x")
    assert parse_toml(exported)[0].text == text


def test_a_text_with_line_breaks_is_readable_in_toml() -> None:
    text = 'First "quoted" line.\n\n\tcode = C:\\x\nlast  \n'
    exported = export_toml(as_nodes([Made("kb", None, text, NOTE)]))
    assert exported.splitlines()[2:] == [
        'content = """',
        'First "quoted" line.',
        "",
        "\tcode = C:\\\\x",
        "last  ",
        '"""',
    ]


# TOML, as people write it.


def test_parents_may_stand_below_their_children_and_siblings_keep_the_order_of_the_document() -> None:
    text = "".join(
        f'[{name}]\nparent-node-id = "{parent}"\ncontext = "note::"\ncontent = "{name}"\n'
        for name, parent in (("c", "a"), ("b", "r"), ("a", "r"), ("r", ""), ("d", "a"))
    )
    assert [(one.text, one.parent) for one in parse_toml(text)] == [
        ("r", None),
        ("b", 0),
        ("a", 0),
        ("c", 2),
        ("d", 2),
    ]


def test_toml_may_have_comments_other_quotes_and_no_content() -> None:
    text = "\ufeff# a.b, {c}\n['my tree'] # [x.y]\ncontext = 'root:a\\b\\:c:'\n\n"
    text += "[x]\nparent-node-id = 'my tree'\n"
    text += "context = '''a:b:c''' # it's\ncontent = '''\nC:\\x, {y}. '' \"\"\" z'''\n"
    assert parse_toml(text) == [
        Made("my tree", None, "", ("root", "a\\b:c", "")),
        Made("x", 0, 'C:\\x, {y}. \'\' """ z', ("a", "b", "c")),
    ]


NODE = 'context = "note::"\ncontent = ""\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "the TOML has no root; a node is a table, [<id>] with context and content"),
        ("# nothing\n", "the TOML has no root"),
        (
            f"[a]\n{NODE}[b]\n{NODE}",
            "nodes 'a' and 'b' have no parent-node-id, and a tree has one root; give",
        ),
        (f'[a]\nparent-node-id = "a"\n{NODE}', "the TOML has no root"),
        (
            f'[a]\n{NODE}[b]\nparent-node-id = "x"\n{NODE}',
            "node 'b' has the parent-node-id 'x', and there is no",
        ),
        (
            f'[a]\n{NODE}[b]\nparent-node-id = "c"\n{NODE}[c]\nparent-node-id = "b"\n{NODE}',
            "node 'b' is not below the root 'a': its parents lead in a circle; correct",
        ),
        (
            '[a]\ncontext = "note:"\n',
            "node 'a' needs a context of three parts; write it as context = \"type:",
        ),
        ('[a]\ncontext = "a\\\\:b:c"\n', "node 'a' needs a context of three parts"),
        ("[a]\ncontent = 'x'\n", "node 'a' needs a context of three parts"),
        (
            f"[a]\n{NODE}text = 'x'\n",
            "node 'a' has a key 'text'; the keys of a node are parent-node-id, context,",
        ),
        ("[a]\ncontext = 'a:b:c'\ncontent = 5\n", "node 'a': content is no text; write it in quotes"),
        ("title = 'x'\n", "'title' is no node; a node is a table: [<id>], and below it parent-node-id"),
        (f"[[a]]\n{NODE}", "'a' is no node"),
        (f"[a]\n{NODE}[a]\n{NODE}", "the TOML cannot be read: Cannot declare ('a',) twice (at line 4"),
        ("[a]\ncontext = x\n", "the TOML cannot be read: Invalid value (at line 2, column 11); correct that"),
        ('[a]\ncontext = "x\n', "the TOML cannot be read: Illegal character '\\n' (at line 2"),
        (f"[a]\n{NODE}\n[a.b]\n{NODE}", "line 5 of the TOML has a . outside of quotes; write the id"),
        ("[a]\ncontext = ['x', 'y']\n", "line 2 of the TOML has a , outside of quotes"),
        (f"[{'x' * 500}]\n", f"node '{'x' * 60}' needs a context"),
    ],
)
def test_toml_that_is_no_tree_is_refused_by_node_or_line(text: str, told: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_toml(text)
    assert told in str(refused.value)


def test_a_node_of_a_document_that_is_too_much_is_named(take_in: Take) -> None:
    with pytest.raises(BadInput, match=r"node a: the text has 100,001 characters.*split it into nodes"):
        take_in(f"[a]\ncontext = 'a:b:c'\ncontent = '{'x' * (LONGEST_TEXT + 1)}'\n", "toml")
    with pytest.raises(BadInput, match="node a: context_name has 25 characters"):
        take_in(f"[a]\ncontext = 'a:{'x' * 25}:c'\n", "toml")


# Ids.


def test_ids_that_are_taken_or_are_none_are_replaced(
    db: sqlite3.Connection, api: Project, take_in: Take
) -> None:
    take_in(EXPORTED, "toml")
    text = EXPORTED.replace("bbbbbbbb", "intro").replace("[kb]", "[second]").replace('"kb"', '"second"')
    take_in(text, "toml")
    first, second = read(db, api, "kb"), read(db, api, "second")
    assert [node.text for node in second] == [node.text for node in first]
    assert not {node.id for node in first} & {node.id for node in second}
    assert all(len(node.id) == 8 for node in second[1:])


def test_a_root_id_that_is_taken_is_refused_unless_another_is_named(
    db: sqlite3.Connection, api: Project, take_in: Take
) -> None:
    take_in(EXPORTED, "toml")
    with pytest.raises(BadInput, match="there is a node kb already; choose another root_id"):
        take_in(EXPORTED, "toml")
    assert take_in(EXPORTED, "toml", root_id="copy").id == "copy"
    assert [node.text for node in read(db, api, "copy")] == [node.text for node in read(db, api, "kb")]


def test_a_root_id_that_cannot_be_one_is_refused(take_in: Take) -> None:
    with pytest.raises(BadInput, match="'my tree' cannot be the id of a root"):
        take_in("['my tree']\ncontext = 'a:b:c'\n", "toml")
    with pytest.raises(BadInput, match="'my tree' cannot be the id of a root"):
        take_in("text", "txt", root_id="my tree")


@pytest.mark.parametrize(
    ("name", "root_id"),
    [
        ("notes", "notes"),
        ("Design notes (v2).md", "Design-notes-v2-md"),
        ("a" * 30, "a" * 24),
        ("résumé", "r-sum"),
    ],
)
def test_a_document_is_called_by_its_name_as_far_as_an_id_may_be(
    take_in: Take, name: str, root_id: str
) -> None:
    root = take_in("text", "txt", name=name)
    assert (root.id, root.context) == (root_id, f"root:{root_id}:")


def test_a_document_without_a_name_gets_an_id_of_chance(take_in: Take) -> None:
    assert len(take_in("text", "md", name="").id) == 8
    assert len(take_in("text", "md", name="日本語").id) == 8


def test_a_document_may_be_given_an_id(take_in: Take) -> None:
    root = take_in("text", "md", root_id="chosen", name="notes")
    assert (root.id, root.context) == ("chosen", "root:chosen:")


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


# Plain text.


def test_the_paragraphs_of_a_text_become_nodes() -> None:
    text = "\n\n# One\ntwo\n \t\n\n  three  \r\n\r\nfour"
    assert outline(parse_text(text, "x")) == [
        (1, "text", "# One\ntwo"),
        (1, "text", "  three  "),
        (1, "text", "four"),
    ]


@pytest.mark.parametrize("text", ["", "\ufeff", " \n\t\n"])
@pytest.mark.parametrize("format", ["md", "txt"])
def test_a_document_with_nothing_in_it_is_refused(take_in: Take, text: str, format: str) -> None:
    with pytest.raises(BadInput, match="there is nothing in the document"):
        take_in(text, format)


def test_a_format_that_nobody_knows_is_refused(take_in: Take) -> None:
    with pytest.raises(BadInput, match="there is no format 'docx' of a document; use one of toml, md, txt"):
        take_in("text", "docx")


@pytest.mark.parametrize("parse", [parse_markdown, parse_text])
def test_a_document_of_too_many_nodes_is_refused(parse: Callable[[str, str], list[Made]]) -> None:
    assert len(parse("a\n\n" * (MOST_NODES - 1), "x")) == MOST_NODES
    with pytest.raises(
        BadInput, match="more than 100,000 nodes, and no import takes more; cut it into parts"
    ):
        parse("a\n\n" * MOST_NODES, "x")


# What must not be stored.


def test_a_private_part_is_left_out_though_it_spans_paragraphs(
    db: sqlite3.Connection, api: Project, take_in: Take
) -> None:
    take_in("# A\n\nbefore <private>one\n\n# B\n\ntwo</private> after", "md")
    told = "\n".join(node.text for node in read(db, api))
    assert "before" in told and "after" in told
    assert "one" not in told and "two" not in told and "B" not in told


SECRET = "ghp_" + "a1B2c3D4e5F6" * 3


def test_secrets_in_toml_are_redacted_node_by_node(
    db: sqlite3.Connection, api: Project, take_in: Take
) -> None:
    take_in(f"[kb]\ncontext = 'a:b:c'\ncontent = '''token:\n{SECRET}'''\n", "toml")
    (root,) = read(db, api, "kb")
    assert root.text.startswith("token:\n") and SECRET not in root.text


def test_a_context_with_a_secret_stays_short_enough(db: sqlite3.Connection, api: Project) -> None:
    text = f"[kb]\ncontext = 'a:{'AKIA' + 'QZ7T3LMX4VB2NW9K'}:c'\n"
    root, is_whole = import_document(db, api, text, "toml", None, "", NOW)
    assert root.context_name == "[redacted:aws-access-key-id]"[:24]
    assert not is_whole


@pytest.mark.parametrize(
    ("text", "format", "name", "is_whole"),
    [
        ("[kb]\ncontext = 'a:b:c'\ncontent = 'plain'\n", "toml", "", True),
        ('[kb]\ncontext = "a:b:c"\ncontent = "a\\u0000b"\n', "toml", "", True),  # SQLite holds none
        (f"[kb]\ncontext = 'a:b:c'\ncontent = '{SECRET}'\n", "toml", "", False),
        ("# A\n\nplain", "md", "notes", True),
        ("# A\n\n<backstory source='x'>\nquoted\n</backstory>", "md", "notes", True),
        ("# A\n\n<private>x</private>", "md", "notes", False),
        ("plain", "txt", SECRET, False),
    ],
)
def test_an_import_says_whether_something_was_left_out(
    db: sqlite3.Connection, api: Project, text: str, format: str, name: str, is_whole: bool
) -> None:
    assert import_document(db, api, text, format, None, name, NOW).is_whole == is_whole


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
def test_an_exported_document_comes_in_as_the_same_tree(text: str) -> None:
    made = parse_markdown(f"{text}\n\n# end", "x")
    again = parse_markdown(export_markdown(as_nodes(made)), "x")
    assert again == made


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


# What is large, deep or hostile.


def test_a_tree_may_be_deeper_than_python_may_recurse_in_documents_too() -> None:
    deep = 3000
    made = [
        Made(f"{number:08d}", number - 1 if number else None, "text\nof it", NOTE) for number in range(deep)
    ]
    exported = export_toml(as_nodes_with_ids(made))
    assert parse_toml(exported) == made
    assert export_markdown(as_nodes(made)).count("text\nof it") == deep


def at_size(text: str, size: int = 500_000) -> str:
    return text * (size // len(text))


HOSTILE = [
    *("a\n", "a\n-\n", "-\n", "> a\n-\n", "# a #\n", "# ", "#", "  a\n\n", "\n", "\t\n", " ", "\n \t \t"),
    *("```\n", "````\n```\n", "    - ```\n", "    ```\nx\n", "- " * 20 + "```\n", "`"),
    *("1. ", "[a](", "<!--", "word "),
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_document_takes_no_longer_than_another(text: str) -> None:
    started = time.monotonic()
    for parse in (parse_markdown, parse_text):
        for document in (at_size(text), f"---\na: b\n{at_size(text)}", f"# {at_size(text)}"):
            try:
                parse(document, "x")
            except BadInput:
                pass
    assert time.monotonic() - started < 30  # by the square it would be far more


HOSTILE_TOML = (
    [at_size("a."), at_size('"'), at_size("'"), at_size("\\"), at_size("[[a]]\n"), at_size("a=1\n")]
    + ["a=" + at_size(value) for value in ("[", "{a=", "9", '"\\', '"""\\', "[1,")]
    + ['a="""' + at_size('""a'), "a='''" + at_size("''a")]
    + [f'[a]\ncontext="{at_size(":")}"', f"[a]\ncontext='{at_size(chr(92))}'"]
)


@pytest.mark.parametrize("text", HOSTILE_TOML, ids=range(len(HOSTILE_TOML)))
def test_hostile_toml_takes_no_longer_than_another(text: str) -> None:
    started = time.monotonic()
    try:
        parse_toml(text)
    except BadInput:
        pass
    assert time.monotonic() - started < 30


@pytest.mark.parametrize("end", ["  b", "\tb", "b", ""])
def test_blank_lines_without_end_take_linear_time(end: str) -> None:
    started = time.process_time()
    parse_markdown("a" + "\n" * 300_000 + end, "x")
    assert time.process_time() - started < 2  # it takes 0.01


def test_front_matter_is_one_node_though_it_has_blank_lines() -> None:
    (_, first, _) = parse_markdown("---\ntitle: a\n\nb: c\n---\ntext", "x")
    assert first.text == "---\ntitle: a\n\nb: c\n---"


@pytest.mark.parametrize("name", ["file/x.md", "none/x.md", "x" * 300 + "/x.md"])
def test_a_document_that_cannot_be_written_says_why(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("theirs")
    with pytest.raises(BadInput, match="cannot be written"):
        save(str(tmp_path / name), "text")
