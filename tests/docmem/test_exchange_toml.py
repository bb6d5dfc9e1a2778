"""Trees as TOML and TOML as trees, and the ids they get."""

from __future__ import annotations

import sqlite3
import tomllib
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from backstory.docmem import tree
from backstory.docmem.exchange import export_toml, import_document, parse_toml
from backstory.docmem.tree import LONGEST_TEXT, Made
from backstory.errors import BadInput
from backstory.model import Project
from backstory.store import nodes
from backstory.store.file.connection import connect
from tests.helpers.exchange import NOW, Take, as_nodes, as_nodes_with_ids, project_at, read

NOTE = ("note", "", "")


@pytest.fixture
def api(db: sqlite3.Connection, project: str) -> Project:
    return project_at(db, project)


@pytest.fixture
def elsewhere(db: sqlite3.Connection, tmp_path: Path) -> Project:
    """Another project, where all ids are free."""
    (tmp_path / "elsewhere").mkdir()
    return project_at(db, str(tmp_path / "elsewhere"))


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


@pytest.mark.slow
@given(trees())
@example([Made("r", None, '"""""""', NOTE), Made("00000001", 0, '\n""""', ("a\\", "\\:", ":\\"))])
@example([Made("r", None, "a\r\nb\rc  \n\n", NOTE), Made("00000001", 0, "\n\\\n  x\\", NOTE)])
def test_any_text_any_context_and_any_shape_survive_toml(made: list[Made]) -> None:
    text = export_toml(as_nodes_with_ids(made))
    assert parse_toml(text) == made
    assert parse_toml(text.encode().decode().replace("\n", "\r\n")) == made  # an editor that prefers it


@given(trees(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60)))
@settings(max_examples=20)
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
        ("title = 'x'\n", "the TOML has no root; a node is a table, [<id>] with context and content"),
        (f"title = 'x'\n[a]\n{NODE}", "'title' is no node; a node is a table: [<id>], and below it parent-"),
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
