"""The MCP server `docmem`: trees and nodes are made, changed, moved, copied and deleted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from backstory.safety import fence
from tests.helpers.chaos import Json, rows
from tests.helpers.docmem_desk import HASH, ID, SECRET, STAMP, Desk, named, node
from tests.helpers.mcp_client import Server

pytestmark = pytest.mark.slow


@pytest.fixture
def desk(docmem_server: tuple[Server, Path, Path], tmp_path: Path) -> Desk:
    return Desk(*docmem_server, tmp_path / "project")


# --- docmem_create ------------------------------------------------------------------------------------------


def test_a_tree_gets_the_id_that_was_chosen(desk: Desk) -> None:
    reply = desk.ask("docmem_create", root_id="Auth-redesign_2")
    first = rf"docmem_create: created Auth-redesign_2 root:Auth-redesign_2: {STAMP}"
    assert re.fullmatch(rf"{first}\nhash: {HASH}", reply)
    root = desk.find("Auth-redesign_2")
    assert (root["parent_id"], root["text"], root["order_value"]) == ("", "", "1.0")
    assert root["root_id"] == "Auth-redesign_2"


def test_a_tree_without_a_chosen_id_gets_a_random_one(desk: Desk) -> None:
    made = [re.search(rf"created ({ID}) root:\1: ", desk.ask("docmem_create")) for _ in range(2)]
    assert made[0] and made[1] and made[0][1] != made[1][1]


@pytest.mark.parametrize(
    ("given", "context"),
    [
        ({"context_type": "book"}, "book:notes:"),
        ({"context_name": "x", "context_value": "y"}, "root:x:y"),
        ({"context_type": "", "context_name": "", "context_value": ""}, "::"),
        ({"context_name": "[1]", "context_value": "null"}, "root:[1]:null"),
        ({"context_type": None, "context_name": None}, "root:notes:"),
    ],
)
def test_what_is_not_said_of_a_roots_context_has_a_default(desk: Desk, given: Json, context: str) -> None:
    assert f" {context} 2" in desk.ask("docmem_create", root_id="notes", **given)


@pytest.mark.parametrize("root_id", ["", "a b", "ä", "a" * 25, "a/b", "a\nb", "a:b"])
def test_an_id_that_cannot_be_one_is_refused_with_what_can(desk: Desk, root_id: str) -> None:
    assert "letters (a-z, A-Z), digits, - and _" in desk.refusal("docmem_create", root_id=root_id)


def test_an_id_of_24_signs_is_one(desk: Desk) -> None:
    desk.ask("docmem_create", root_id="a" * 24)
    assert desk.find("a" * 24)["context_name"] == "a" * 24


def test_an_id_that_is_taken_is_refused(desk: Desk) -> None:
    desk.create()
    assert "there is a node notes already" in desk.refusal("docmem_create", root_id="notes")


def test_two_projects_may_have_trees_of_the_same_name_and_see_only_their_own(
    desk: Desk, tmp_path: Path
) -> None:
    desk.create()
    inside = desk.add("the walrus of one project")
    desk.sit_at(tmp_path / "another")
    assert "no trees yet" in desk.ask("docmem_list")
    assert "there is no node" in desk.refusal("docmem_find", id=inside)
    desk.create()
    assert desk.outline() == [(0, "notes")]
    assert desk.nodes() == [["notes"]]
    assert "No nodes found" in desk.ask("docmem_search", query="walrus")


def test_a_project_without_a_tree_is_read_without_being_made(desk: Desk) -> None:
    desk.ask("docmem_list")
    desk.ask("docmem_query_nodes", sql="SELECT * FROM nodes")
    desk.ask("docmem_search", query="walrus")
    desk.refusal("docmem_structure", node_id="notes")
    assert not rows(desk.data, "SELECT * FROM projects WHERE root = ?", str(desk.project))


# --- docmem_create_node and the text of nodes ---------------------------------------------------------------


def test_a_new_node_is_told_with_its_line_and_hash(desk: Desk) -> None:
    desk.create()
    reply = desk.ask("docmem_create_node", **node("a heron", context=("note", "bird", "grey")))
    made = re.fullmatch(rf"docmem_create_node: created ({ID}) note:bird:grey {STAMP}\nhash: ({HASH})", reply)
    assert made, reply
    assert desk.hash(made[1]) == made[2]


def test_a_node_goes_below_before_or_after_its_target(desk: Desk) -> None:
    desk.create()
    middle = desk.add("middle")
    below = desk.add("below", middle)
    before = desk.add("before", middle, "before")
    after = desk.add("after", middle, "after")
    assert desk.outline() == [(0, "notes"), (1, before), (1, middle), (2, below), (1, after)]


def test_nothing_stands_beside_a_root(desk: Desk) -> None:
    desk.create()
    for mode in ("before", "after"):
        refusal = desk.refusal("docmem_create_node", **node(mode=mode))
        assert "notes is a root" in refusal
        assert "use append-child" in refusal


TEXTS = [
    "",
    " ",
    "trailing blanks  \n\n",
    "\n\nfirst a blank line",
    "carriage\r\nreturns",
    "tab\tand 👨\u200d👩\u200d👧",
    "🐘 größer, 象",
    "text:\n\ntext:\nhash: none",
    "# DOCMEM Dynamic\n<!-- end of DOCMEM Dynamic -->",
    "[1, 2]",
    '{"a": 1}',
    "null",
    "12",
    '"quoted"',
]
UNRULY = [
    "carriage\rreturn",
    "\x0b \x0c \x1b signs",
    "line\u2028separator",
    "</backstory>",
    "<system-reminder>",
]


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_the_text_of_a_node_comes_back_byte_for_byte(desk: Desk, text: str) -> None:
    desk.create()
    made = desk.add(text)
    assert desk.text(made) == text
    desk.ask("docmem_update_content", id=made, content=text + text)
    assert desk.text(made) == text + text
    assert desk.nodes("SELECT text FROM nodes WHERE id != 'notes'") == [[text + text]]


@pytest.mark.parametrize("text", UNRULY, ids=ascii)
def test_a_text_that_is_more_than_text_is_stored_as_it_is_and_shown_harmless(desk: Desk, text: str) -> None:
    desk.create()
    made = desk.add(text)
    assert desk.text(made) == fence.defuse(text) != text
    assert [row["text"] for row in rows(desk.data, "SELECT text FROM docmem_nodes WHERE id = ?", made)] == [
        text
    ]


def test_what_is_private_or_secret_is_left_out_and_the_reply_says_so(desk: Desk) -> None:
    desk.create()
    said = "Something private or secret was left out."
    for text, kept in (
        (f"the token is {SECRET} for now", "for now"),
        ("a <private>walrus</private> swims", "swims"),
    ):
        reply = desk.ask("docmem_create_node", **node(text))
        assert reply.endswith(f"\n{said}")
        made = reply.split()[2]
        stored = desk.text(made)
        assert kept in stored
        assert SECRET not in stored
        assert "walrus" not in stored
    again = desk.ask("docmem_update_content", id=made, content=f"x {SECRET}")
    assert again.endswith(said)
    summary = desk.ask(
        "docmem_add_summary",
        start_node_id=made,
        end_node_id=made,
        content=SECRET,
        **named(("summary", "", "")),
    )
    assert summary.endswith(said)
    assert said not in desk.ask("docmem_create_node", **node("nothing secret"))
    assert SECRET.encode() not in b"".join(
        path.read_bytes() for path in desk.data.glob("backstory.db*") if path.is_file()
    )


def test_what_was_recalled_does_not_go_in_again(desk: Desk) -> None:
    desk.create()
    fenced = '<backstory source="backstory memory_search" note="x">\nthe walrus\n</backstory>'
    made = desk.add(f"before {fenced} after")
    assert desk.text(made) == "before [recalled memory] after"


def test_a_secret_in_a_context_is_refused(desk: Desk) -> None:
    desk.create()
    key = "AKIA" + "Z7Q4XW3N9B5K2M8R"
    refusal = desk.refusal("docmem_create_node", **node(context=("note", key, "")))
    assert "nothing private or secret" in refusal
    assert key not in refusal


def test_a_text_too_long_for_a_node_is_refused_and_not_cut(desk: Desk) -> None:
    desk.create()
    longest = desk.add("x" * 100_000)
    assert len(desk.text(longest)) == 100_000
    for tool, given in (
        ("docmem_create_node", node("x" * 100_001)),
        ("docmem_update_content", {"id": longest, "content": "x" * 200_000}),
    ):
        assert "split it into nodes" in desk.refusal(tool, **given)
    assert len(desk.nodes()) == 2


@pytest.mark.parametrize("field", ["context_type", "context_name", "context_value"])
def test_a_context_that_is_too_long_or_no_line_is_refused(desk: Desk, field: str) -> None:
    desk.create()
    made = desk.add("a heron")
    for value, why in (("x" * 25, "24 is the most"), ("a\nb", "line break"), ("a\0b", "control character")):
        given = {**named(("note", "", "")), field: value}
        assert why in desk.refusal("docmem_create_node", **{**node(), field: value})
        assert why in desk.refusal("docmem_update_context", id=made, **given)
    desk.ask("docmem_create_node", **{**node(), field: "ü" * 24})


# --- docmem_update_content, docmem_update_context -----------------------------------------------------------


def test_an_update_is_told_with_the_new_hash(desk: Desk) -> None:
    desk.create()
    made = desk.add("a heron")
    before = desk.hash(made)
    reply = desk.ask("docmem_update_content", id=made, content="two herons", expected_hash=before)
    found = re.fullmatch(rf"docmem_update_content: updated {made} note:: {STAMP}\nhash: ({HASH})", reply)
    assert found
    assert found[1] == desk.hash(made) != before
    reply = desk.ask("docmem_update_context", id=made, **named(("note", "bird", "x")), expected_hash=found[1])
    assert re.fullmatch(rf"docmem_update_context: updated {made} note:bird:x {STAMP}\nhash: {HASH}", reply)
    after = desk.find(made)
    assert (after["text"], after["context_name"]) == ("two herons", "bird")


def test_an_update_of_what_somebody_else_changed_is_refused(desk: Desk) -> None:
    desk.create()
    made = desk.add("a heron")
    stale = desk.hash(made)
    desk.ask("docmem_update_content", id=made, content="two herons")
    for tool, given in (
        ("docmem_update_content", {"content": "three"}),
        ("docmem_update_context", named(("x", "", ""))),
    ):
        refusal = desk.refusal(tool, id=made, **given, expected_hash=stale)
        assert f"node {made} was changed by someone else" in refusal
        assert "docmem_find" in refusal
    assert desk.text(made) == "two herons"
    assert desk.find(made)["context_type"] == "note"


def test_an_update_without_a_hash_takes_the_node_as_it_is(desk: Desk) -> None:
    desk.create()
    made = desk.add("a heron")
    for nothing in ({}, {"expected_hash": None}):
        desk.ask("docmem_update_content", id=made, content="two", **nothing)


def test_an_empty_hash_is_a_wrong_one(desk: Desk) -> None:
    desk.create()
    made = desk.add("a heron")
    refusal = desk.refusal("docmem_update_content", id=made, content="x", expected_hash="")
    assert "changed by someone else" in refusal


def test_a_readonly_node_refuses_updates_and_says_what_to_do_instead(desk: Desk) -> None:
    desk.create()
    fixed = desk.add("ground truth", readonly=True)
    assert desk.find(fixed)["readonly"] == "1"
    for tool, given in (
        ("docmem_update_content", {"content": "x"}),
        ("docmem_update_context", named(("x", "", ""))),
    ):
        refusal = desk.refusal(tool, id=fixed, **given)
        assert f"{fixed} is readonly" in refusal
        assert "docmem_create_node" in refusal
    note = desk.add("a note beside it", fixed, "after")
    below = desk.add("below", fixed)
    desk.ask("docmem_move_node", source_id=fixed, target_id=note, mode="after")
    desk.ask("docmem_copy_node", source_id=fixed, target_id="notes", mode="append-child")
    assert desk.outline()[1:4] == [(1, note), (1, fixed), (2, below)]
    assert desk.ask("docmem_delete", id=fixed) == f"docmem_delete: deleted {fixed} (2 nodes)"


# --- docmem_delete, docmem_move_node, docmem_copy_node, docmem_add_summary ----------------------------------


def test_deleting_takes_what_is_below_and_says_how_many(desk: Desk) -> None:
    desk.create()
    top = desk.add("top")
    below = desk.add("below", top)
    desk.add("further below", below)
    assert desk.ask("docmem_delete", id=below) == f"docmem_delete: deleted {below} (2 nodes)"
    assert desk.ask("docmem_delete", id=top) == f"docmem_delete: deleted {top} (1 nodes)"
    assert desk.ask("docmem_delete", id="notes") == "docmem_delete: deleted notes (1 nodes)"
    assert "no trees yet" in desk.ask("docmem_list")
    desk.create()


def test_moving_tells_the_node_in_its_new_place(desk: Desk) -> None:
    desk.create()
    one, other = desk.add("one"), desk.add("other")
    below = desk.add("below", one)
    reply = desk.ask("docmem_move_node", source_id=one, target_id=other, mode="append-child")
    assert re.fullmatch(rf"docmem_move_node: moved {one} note:: {STAMP}\nhash: {HASH}", reply)
    assert reply.endswith(desk.hash(one))
    assert desk.outline() == [(0, "notes"), (1, other), (2, one), (3, below)]
    for target in (one, below):
        refusal = desk.refusal("docmem_move_node", source_id=one, target_id=target, mode="append-child")
        assert "outside what is moved" in refusal
    root = desk.refusal("docmem_move_node", source_id="notes", target_id=one, mode="append-child")
    assert "docmem_copy_node" in root
    desk.create("another")
    refusal = desk.refusal("docmem_move_node", source_id=one, target_id="another", mode="append-child")
    assert "different trees; docmem_copy_node" in refusal


def test_copying_makes_new_nodes_also_in_another_tree(desk: Desk) -> None:
    desk.create()
    desk.create("another")
    top = desk.add("top", readonly=True)
    desk.add("below", top)
    reply = desk.ask("docmem_copy_node", source_id=top, target_id="another", mode="append-child")
    made = re.match(rf"docmem_copy_node: created ({ID}) note:: {STAMP}\nhash: {HASH}$", reply)
    assert made
    assert made[1] != top
    assert [level for level, _ in desk.outline("another")] == [0, 1, 2]
    assert desk.find(made[1])["readonly"] == "1"
    assert desk.ask("docmem_serialize", node_id="another") == "docmem_serialize:\ntop\n\nbelow"
    assert [level for level, _ in desk.outline()] == [0, 1, 2]


def test_a_summary_goes_above_what_it_covers(desk: Desk) -> None:
    desk.create()
    first, second, third = (desk.add(f"message {number}") for number in range(3))
    reply = desk.ask(
        "docmem_add_summary",
        start_node_id=first,
        end_node_id=second,
        content="two messages",
        **named(("summary", "day", "1")),
    )
    made = re.fullmatch(rf"docmem_add_summary: created ({ID}) summary:day:1 {STAMP}\nhash: {HASH}", reply)
    assert made
    assert desk.outline() == [(0, "notes"), (1, made[1]), (2, first), (2, second), (1, third)]
    given = {"content": "x", **named(("summary", "", ""))}
    refusal = desk.refusal("docmem_add_summary", start_node_id=first, end_node_id=third, **given)
    assert "not below the same parent" in refusal
    refusal = desk.refusal("docmem_add_summary", start_node_id=made[1], end_node_id=third, **given)
    assert "a summary covers leaves" in refusal
