"""`backstory docmem`, as a person or a script uses it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backstory.docmem import tree
from backstory.docmem.tree import Made
from backstory.model import Node
from backstory.surfaces.cli import docmem, trees_output
from tests.conftest import REPOSITORY, Run
from tests.helpers.embedder import loaded_embedder  # noqa: F401  for all tests here
from tests.helpers.handbook import HANDBOOK, THEN, note, opened
from tests.helpers.terminal import plain_lines

COMMANDS = ("list", "tree", "show", "expand", "import", "export", "search", "delete")


# --- list ---------------------------------------------------------------------------------------------------


def test_trees_are_listed_with_their_nodes_and_tokens(
    run: Run, handbook: Node, build: Callable[..., Node]
) -> None:
    build([Made("alone", None, "", ("root", "alone", ""))])
    ran = run("docmem", "list")
    rows = [line.split("  ") for line in re.sub(r" {2,}", "  ", ran.out).splitlines()]
    assert rows[0] == ["tree", "nodes", "tokens", "updated", "context"]
    tokens = sum(-(-len(one.text) // 4) for one in HANDBOOK)
    assert [row[:3] for row in rows[1:]] == [["alone", "1", "0"], ["handbook", "5", str(tokens)]]
    assert rows[2][4] == "root:handbook:"
    listed = run("docmem", "list", "--json").json
    assert [one["id"] for one in listed] == ["alone", "handbook"]
    assert (listed[1]["nodes"], listed[1]["tokens"], listed[1]["updated_at"]) == (5, tokens, THEN)


def test_a_list_says_when_any_node_of_a_tree_last_changed(
    run: Run, handbook: Node, data: Path, project: str
) -> None:
    with opened(data, project) as (db, here):
        tree.update_content(db, here, "evening1", "Squid", now=THEN + 86_400_000)
    assert run("docmem", "list", "--json").json[0]["updated_at"] == THEN + 86_400_000


@pytest.mark.parametrize("command", [["list"], ["tree"], ["tree", "x"], ["show", "x"], ["search", "walrus"]])
def test_where_there_is_no_tree_that_is_said_and_what_to_do(run: Run, command: list[str]) -> None:
    ran = run("docmem", *command)
    assert (ran.code, ran.out) == (1, "")
    assert "backstory docmem" in ran.err


def test_an_empty_list_is_json_too(run: Run) -> None:
    ran = run("docmem", "list", "--json")
    assert (ran.code, ran.json) == (1, [])


# --- tree ---------------------------------------------------------------------------------------------------


def test_a_tree_is_drawn_with_guides_contexts_and_first_lines(run: Run, handbook: Node) -> None:
    ran = run("docmem", "tree", "handbook")
    assert ran.err == ""
    assert ran.out == (
        "handbook  root:handbook:  How to keep a walrus\n"
        "├── feeding1  summary:feeding:2  Three meals a day\n"
        "│   ├── morning1  note:morning:  Herring at six.\n"
        "│   └── evening1  note:evening:  Squid, if there is any\n"
        "└── sleeping  note:sleep:  readonly  It sleeps on ice\n"
    )


def test_without_an_id_the_only_tree_is_meant_and_of_several_none(
    run: Run, handbook: Node, build: Callable[..., Node]
) -> None:
    assert run("docmem", "tree").out == run("docmem", "tree", "handbook").out
    build([Made("alone", None, "", ("root", "alone", ""))])
    ran = run("docmem", "tree")
    assert (ran.code, ran.out) == (2, "")
    assert "alone, handbook" in ran.err


def test_a_tree_may_begin_at_any_node_and_end_at_any_depth(run: Run, handbook: Node) -> None:
    assert run("docmem", "tree", "feeding").out.splitlines() == [
        "feeding1  summary:feeding:2  Three meals a day",
        "├── morning1  note:morning:  Herring at six.",
        "└── evening1  note:evening:  Squid, if there is any",
    ]
    shallow = run("docmem", "tree", "--depth", "1")
    assert shallow.out.splitlines()[1] == "├── feeding1  summary:feeding:2  +2 below  Three meals a day"
    assert "3 of 5 nodes" in shallow.err
    assert len(run("docmem", "tree", "--depth", "0").out.splitlines()) == 1


def test_of_a_large_tree_the_upper_levels_are_whole_and_the_rest_is_counted(
    run: Run, build: Callable[..., Node]
) -> None:
    made = [Made("large", None, "", ("root", "large", ""))]
    for number in range(4):
        made.append(note(f"part{number}", f"part {number}", 0))
        part = len(made) - 1
        made += [note("leaf", f"leaf {leaf}", part) for leaf in range(3)]
    build(made)
    ran = run("docmem", "tree", "--limit", "7")
    shape = [re.sub(r"\b[a-z0-9]{8}  note:", "", line) for line in ran.out.splitlines()]
    assert shape == [
        "large  root:large:",
        "├── part0:  part 0",
        "│   ├── leaf:  leaf 0",
        "│   ├── leaf:  leaf 1",
        "│   └── +1 more",
        "├── part1:  +3 below  part 1",
        "├── part2:  +3 below  part 2",
        "└── part3:  +3 below  part 3",
    ]
    assert "7 of 17 nodes; --limit" in ran.err


def test_a_picture_of_a_tree_reads_no_more_children_than_it_shows() -> None:
    start = a_node("start", size=1_000_001)
    read = 0

    def children(above: Node) -> Iterator[Node]:
        nonlocal read
        assert above.id == "start"
        for number in range(1_000_000):
            read += 1
            yield a_node(f"{number}", above="start")

    rows = trees_output.outline(start, children, None, 300)
    assert read == 299
    assert (len(rows), rows[-1].left_out) == (301, 1_000_000 - 299)


def a_node(node_id: str, above: str | None = None, size: int = 1, text: str = "") -> Node:
    return Node(
        id=node_id,
        row=1,
        parent_id=above,
        root_id="start",
        text=text,
        order_value=1.0,
        token_count=0,
        context_type="note",
        context_name="",
        context_value="",
        readonly=False,
        hash="",
        size=size,
        created_at=0,
        updated_at=0,
    )


def test_a_tree_as_deep_as_it_is_large_is_drawn_at_once() -> None:
    """Guides for each level of each node would be 20,000 * 20,000 signs."""
    depth = 20_000
    below = {str(level): a_node(str(level + 1), size=depth - level) for level in range(depth)}
    began = time.monotonic()
    rows = trees_output.outline(a_node("0", size=depth + 1), lambda above: [below[above.id]], None, 100_000)
    assert time.monotonic() - began < 5
    assert (len(rows), rows[-1].depth) == (depth + 1, depth)
    assert max(len(row.guides) for row in rows) < 200


def test_how_deep_a_node_is_stands_in_the_place_of_guides_that_are_too_wide(
    run: Run, build: Callable[..., Node], project: str
) -> None:
    build([Made("deep", None, "", ("root", "", "")), *(note("", f"level {at + 1}", at) for at in range(60))])
    last = run("docmem", "tree").out.splitlines()[-1]
    assert re.fullmatch(r"… level 60  [a-z0-9]{8}  note::  level 60", last)
    for line in plain_lines("docmem tree", project, 60)[1:61]:
        assert re.search(r"(└── |… level \d+  )[a-z0-9]{8}  note::", line), line
        assert len(line) <= 60


def test_a_tree_in_json_has_every_node_with_its_depth(run: Run, handbook: Node) -> None:
    told = run("docmem", "tree", "--json").json
    assert (told["id"], told["nodes"], told["shown"]) == ("handbook", 5, 5)
    assert [(one["id"], one["depth"]) for one in told["tree"]] == [
        ("handbook", 0),
        ("feeding1", 1),
        ("morning1", 2),
        ("evening1", 2),
        ("sleeping", 1),
    ]
    assert told["tree"][2]["text"] == "Herring at six.\nNever later."
    cut = run("docmem", "tree", "--json", "--limit", "2").json
    assert (cut["nodes"], cut["shown"], len(cut["tree"])) == (5, 2, 2)


# --- show ---------------------------------------------------------------------------------------------------


def test_a_node_is_shown_with_every_field_the_nodes_above_it_and_its_text(run: Run, handbook: Node) -> None:
    shown = run("docmem", "show", "morning1").out
    facts = dict(line.strip().split("  ", 1) for line in shown.splitlines()[1:10])
    assert shown.splitlines()[0] == "morning1"
    assert facts["context"] == "note:morning:"
    assert (facts["tree"], facts["below"], facts["order"], facts["tokens"]) == (
        "handbook",
        "0 nodes",
        "1.0",
        "7",
    )
    assert facts["above"] == "handbook › feeding1 feeding"
    assert len(facts["hash"]) == 88
    assert shown.endswith("\n\nHerring at six.\nNever later.\n")
    assert "readonly" in run("docmem", "show", "sleeping").out.splitlines()[0]
    told = run("docmem", "show", "morning1", "--json").json
    assert told["path"] == [
        {"id": "handbook", "context": "root:handbook:"},
        {"id": "feeding1", "context": "summary:feeding:2"},
    ]
    assert told.keys() >= set(Node.__dataclass_fields__) - {"row"}


def test_the_beginning_of_an_id_is_enough_unless_it_fits_two(run: Run, build: Callable[..., Node]) -> None:
    build(
        [
            Made("book", None, "", ("root", "", "")),
            note("a", "one", 0, "abcdefg1"),
            note("b", "two", 0, "abcdefg2"),
        ]
    )
    build([Made("book-2", None, "", ("root", "", ""))])
    assert run("docmem", "show", "abcdefg1", "--json").json["text"] == "one"
    assert run("docmem", "show", "book", "--json").json["id"] == "book"  # all of an id is always enough
    assert run("docmem", "show", "book-", "--json").json["id"] == "book-2"
    vague = run("docmem", "show", "abc")
    assert (vague.code, vague.out) == (2, "")
    assert "abcdefg1, abcdefg2" in vague.err


@pytest.mark.parametrize("command", ["tree", "show", "expand", "export", "delete"])
def test_an_id_that_is_not_there_is_not_found_by_any_command(run: Run, handbook: Node, command: str) -> None:
    for unknown in ("nothere1", "", "HANDBOOK", "%", "\udcff"):
        ran = run("docmem", command, unknown)
        assert (ran.code, ran.out) == (1, ""), unknown
        assert "There is no node" in ran.err
        assert "backstory docmem tree" in ran.err


def test_a_tree_of_another_project_is_seen_only_from_there(
    run: Run, handbook: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, project: str
) -> None:
    (tmp_path / "web").mkdir()
    monkeypatch.chdir(tmp_path / "web")
    assert run("docmem", "list").code == 1
    ran = run("docmem", "delete", "handbook", "--yes")
    assert ran.code == 1
    assert f"--project {project}" in ran.err
    for command in (["list"], ["tree"], ["show", "morning1"], ["export", "handbook"]):
        assert run("docmem", *command, "--project", project).code == 0


# --- expand -------------------------------------------------------------------------------------------------


def test_an_expansion_is_printed_as_far_as_the_tokens_go(run: Run, handbook: Node) -> None:
    whole = run("docmem", "expand", "feeding1")
    assert (whole.code, whole.err) == (0, "")
    assert whole.out == (
        "feeding1 summary:feeding:2 2025-06-15T15:06:40Z\nThree meals a day\n\n"
        "morning1 note:morning: 2025-06-15T15:06:40Z\nHerring at six.\nNever later.\n\n"
        "evening1 note:evening: 2025-06-15T15:06:40Z\nSquid, if there is any\n"
    )
    cut = run("docmem", "expand", "feeding1", "--tokens", "12")
    assert "morning1" not in cut.out
    assert "evening1" in cut.out
    assert "2 of 3 nodes; --tokens" in cut.err
    told = run("docmem", "expand", "feeding1", "--tokens", "12", "--json").json
    assert (told["nodes"], told["shown"]) == (3, 2)
    assert [one["id"] for one in told["blocks"]] == ["feeding1", "evening1"]
    assert run("docmem", "expand", "feeding1", "--tokens", "0").code == 2


# --- search -------------------------------------------------------------------------------------------------


def test_nodes_are_found_with_the_way_to_them(run: Run, handbook: Node, build: Callable[..., Node]) -> None:
    build([Made("other", None, "", ("root", "other", "")), note("fish", "Herring is a fish")])
    ran = run("docmem", "search", "herring")
    assert re.match(r" 1\. [a-z0-9]{8}  note:\w+:  score \d\.\d\d\n", ran.out)
    assert "    handbook › feeding1 feeding\n    Herring at six. · Never later.\n" in ran.out
    within = run("docmem", "search", "herring", "--tree", "handb", "--json").json
    assert [one["id"] for one in within] == ["morning1"]
    assert [one["id"] for one in within[0]["path"]] == ["handbook", "feeding1"]
    assert run("docmem", "search", "herring", "--limit", "1", "--json").json[1:] == []


def test_a_search_that_finds_nothing_or_looks_nowhere_says_so(run: Run, handbook: Node) -> None:
    ran = run("docmem", "search", "quantum", "chromodynamics")
    assert (ran.code, "backstory docmem list" in ran.err) == (1, True)
    assert run("docmem", "search", "walrus", "--tree", "nowhere").code == 1
    assert run("docmem", "search", "walrus", "--limit", "0").code == 2
    assert run("docmem", "search").code == 2
    none = run("docmem", "search", "quantum", "--json")
    assert (none.code, none.json) == (1, [])


def test_a_hit_says_what_it_stands_for(run: Run, build: Callable[..., Node]) -> None:
    build(
        [
            Made("log", None, "", ("root", "log", "")),
            Made(None, 0, "The walrus ate herring all week", ("summary", "week", "")),
            *(note(f"day{day}", f"On day {day} the walrus ate herring", 1) for day in range(5)),
        ]
    )
    first = run("docmem", "search", "walrus herring", "--json").json[0]
    assert (first["context"], len(first["folded"])) == ("summary:week:", 5)
    out = run("docmem", "search", "walrus herring").out
    assert all(f"On day {day} the walrus ate herring" in out for day in range(5))


def test_of_a_long_way_to_a_node_both_ends_are_told(run: Run, build: Callable[..., Node]) -> None:
    build([Made("deep", None, "", ("root", "", "")), *(note(f"n{at}", "walrus", at) for at in range(30))])
    last = run("docmem", "tree", "--json").json["tree"][-1]["id"]
    shown = run("docmem", "show", last)
    way = next(line for line in shown.out.splitlines() if "above" in line).split(" › ")
    assert [name.split()[-1] for name in way] == "deep n0 n1 n2 n3 … n24 n25 n26 n27 n28".split()
    assert len(run("docmem", "show", last, "--json").json["path"]) == 30


# --- delete -------------------------------------------------------------------------------------------------


def test_a_node_is_deleted_with_all_below_it_only_after_asking(run: Run, handbook: Node) -> None:
    asked = run("docmem", "delete", "feeding", stdin="n\n")
    assert (asked.code, asked.out) == (1, "")
    assert "Delete the node feeding1 (3 nodes) for good?" in asked.err
    assert run("docmem", "delete", "feeding").code == 1  # nobody there to ask
    assert run("docmem", "show", "feeding1").code == 0
    assert run("docmem", "delete", "feeding", stdin="y\n").out == "Deleted: feeding1 (3 nodes)\n"
    assert [one["id"] for one in run("docmem", "tree", "--json").json["tree"]] == ["handbook", "sleeping"]
    gone = run("docmem", "delete", "handbook", "--yes", "--json")
    assert gone.json == {"deleted": "handbook", "nodes": 2}
    assert run("docmem", "list").code == 1


# --- help ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_and_its_options(run: Run, command: str) -> None:
    overview = run("docmem", "--help").out
    assert re.search(rf"^  {command} +[A-Z].*\.$", overview, re.MULTILINE)
    assert "..." not in overview.partition("Commands:")[2]
    ran = run("docmem", command, "--help")
    assert ran.code == 0
    assert "--json" in ran.out
    assert "--project DIR" in ran.out
    for line in re.findall(r"^  (--[a-z-]+.*)$", ran.out, re.MULTILINE):
        if not line.startswith("--help"):
            assert re.search(r" {2,}[A-Z]|^[^ ]+ [A-Za-z|\[\]<>=0-9 ]+$", line), line


def test_the_docs_name_every_command_and_option_of_docmem(run: Run) -> None:
    assert set(docmem.docmem.commands) == set(COMMANDS)
    parts = REPOSITORY.joinpath("docs", "reference", "commands.md").read_text().split("\n##")
    for name, command in docmem.docmem.commands.items():
        part = next(part for part in parts if part.startswith(f"# backstory docmem {name}\n"))
        for option in command.params:
            flag = option.opts[0]
            if flag.startswith("--"):
                assert f"`{flag}" in part, f"docmem {name} {flag}"
