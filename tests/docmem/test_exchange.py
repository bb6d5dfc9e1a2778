"""Trees as documents and documents as trees: what is kept, what is refused."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

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
from backstory.docmem.tree import Made
from backstory.errors import BadInput
from backstory.model import Project
from tests.helpers.exchange import NOW, Take, as_nodes, as_nodes_with_ids, outline, project_at, read
from tests.helpers.growth import assert_linear

NOTE = ("note", "", "")


@pytest.fixture
def api(db: sqlite3.Connection, project: str) -> Project:
    return project_at(db, project)


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


@pytest.mark.slow
@pytest.mark.parametrize("parse", [parse_markdown, parse_text])
def test_a_document_of_too_many_nodes_is_refused(parse: Callable[[str, str], list[Made]]) -> None:
    assert len(parse("a\n\n" * (MOST_NODES - 1), "x")) == MOST_NODES
    with pytest.raises(BadInput, match="more than 30,000 nodes, and no import takes more; cut it into parts"):
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


# What is large, deep or hostile.


def test_a_tree_may_be_deeper_than_python_may_recurse_in_documents_too() -> None:
    deep = 3000
    made = [
        Made(f"{number:08d}", number - 1 if number else None, "text\nof it", NOTE) for number in range(deep)
    ]
    exported = export_toml(as_nodes_with_ids(made))
    assert parse_toml(exported) == made
    assert export_markdown(as_nodes(made)).count("text\nof it") == deep


def at_size(text: str, size: int = 80_000) -> str:
    return text * (size // len(text))


HOSTILE = [
    *("a\n", "a\n-\n", "-\n", "> a\n-\n", "# a #\n", "# ", "#", "  a\n\n", "\n", "\t\n", " ", "\n \t \t"),
    *("```\n", "````\n```\n", "    - ```\n", "    ```\nx\n", "- " * 20 + "```\n", "`"),
    *("1. ", "[a](", "<!--", "word "),
]


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_document_takes_no_longer_than_another(text: str) -> None:
    for parse in (parse_markdown, parse_text):
        for start in ("", "---\na: b\n", "# "):
            documents = (start + at_size(text, size) for size in (20_000, 80_000))
            assert_linear(partial(tried, parse), *documents)


def tried(parse: Callable[[str, str], object], document: str) -> None:
    with suppress(BadInput):
        parse(document, "x")


HOSTILE_TOML = [
    *(("", sign, "") for sign in ("a.", '"', "'", "\\", "[[a]]\n", "a=1\n")),
    *(("a=", sign, "") for sign in ("[", "{a=", "9", '"\\', '"""\\', "[1,")),
    *(('a="""', '""a', ""), ("a='''", "''a", "")),
    *(('[a]\ncontext="', ":", '"'), ("[a]\ncontext='", "\\", "'")),
]


@pytest.mark.parametrize("parts", HOSTILE_TOML, ids=range(len(HOSTILE_TOML)))
def test_hostile_toml_takes_no_longer_than_another(parts: tuple[str, str, str]) -> None:
    start, sign, end = parts
    documents = (start + at_size(sign, size) + end for size in (20_000, 80_000))
    assert_linear(partial(tried, lambda text, _: parse_toml(text)), *documents)


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
