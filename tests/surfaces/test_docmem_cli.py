"""`backstory docmem`, as a person or a script uses it."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from sqlite3 import Connection

import pytest
from rich.cells import cell_len

from backstory import paths
from backstory.docmem import tree, views
from backstory.docmem.tree import Made
from backstory.model import Node, Project
from backstory.store import projects
from backstory.store.file.connection import connect, transaction
from backstory.surfaces import view_files
from backstory.surfaces.cli import docmem, trees_output
from tests.conftest import REPOSITORY, Run

BACKSTORY = os.path.join(os.path.dirname(sys.executable), "backstory")
THEN = 1_750_000_000_000
COMMANDS = ("list", "tree", "show", "expand", "import", "export", "search", "delete")


@contextmanager
def opened(data: Path, folder: str) -> Iterator[tuple[Connection, Project]]:
    """The store that the commands use, and the project of a folder in it."""
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    with closing(connect(str(data / "backstory.db"))) as db:
        with transaction(db):
            known = projects.ensure(db, paths.place(folder), THEN)
        yield db, projects.by_id(db, known)


def note(name: str, text: str, parent: int | None = 0, node_id: str | None = None, **given: bool) -> Made:
    return Made(node_id, parent, text, ("note", name, ""), **given)


HANDBOOK = [
    Made("handbook", None, "How to keep a walrus", ("root", "handbook", "")),
    Made("feeding1", 0, "Three meals a day", ("summary", "feeding", "2")),
    note("morning", "Herring at six.\nNever later.", 1, "morning1"),
    note("evening", "Squid, if there is any", 1, "evening1"),
    note("sleep", "It sleeps on ice", 0, "sleeping", readonly=True),
]


@pytest.fixture
def build(data: Path, project: str) -> Callable[..., Node]:
    """A tree in the project's store."""

    def built(made: list[Made], folder: str = project) -> Node:
        with opened(data, folder) as (db, here):
            return tree.build(db, here, made, now=THEN)

    return built


@pytest.fixture
def handbook(build: Callable[..., Node]) -> Node:
    return build(HANDBOOK)


def at_terminal(command: str, cwd: str, columns: int = 80, **env: str) -> str:
    """What a terminal of that width is sent."""
    script = ["script", "-qec", f"stty cols {columns}; {BACKSTORY} {command}", "/dev/null"]
    without = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    ran = subprocess.run(
        script,
        cwd=cwd,
        env=without | {"TERM": "xterm-256color"} | env,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return ran.stdout.decode()


def lines_at_terminal(command: str, cwd: str, columns: int) -> list[str]:
    return re.sub(r"\x1b\[[0-9;]*m", "", at_terminal(command, cwd, columns)).splitlines()


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
    for line in lines_at_terminal("docmem tree", project, 60)[1:61]:
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


# --- import and export --------------------------------------------------------------------------------------


def test_a_tree_goes_out_as_toml_and_comes_back_the_same(run: Run, handbook: Node, project: str) -> None:
    ran = run("docmem", "export", "handbook", "--output", "handbook.toml")
    assert (ran.code, ran.out) == (0, "Exported: handbook (5 nodes) to handbook.toml\n")
    written = Path(project, "handbook.toml").read_text()
    assert run("docmem", "export", "handbook").out == written
    assert list(tomllib.loads(written)) == [one.id for one in HANDBOOK]
    assert run("docmem", "delete", "handbook", "--yes").code == 0
    back = run("docmem", "import", "handbook.toml")
    assert back.out.startswith("Tree imported: handbook (5 nodes)")
    assert run("docmem", "export", "handbook").out == written
    assert run("docmem", "import", "-", "--format", "toml", "--root-id", "copy", stdin=written).code == 0
    assert [one["id"] for one in run("docmem", "list", "--json").json] == ["handbook", "copy"]


def test_markdown_comes_in_readonly_and_goes_out_as_it_came(run: Run, project: str) -> None:
    guide = "# Feeding\n\nThree meals a day.\n\n## Morning\n\nHerring at six.\n"
    Path(project, "guide to walruses.md").write_text(guide)
    told = run("docmem", "import", "guide to walruses.md", "--json").json
    assert (told["id"], told["size"]) == ("guide-to-walruses", 5)
    listed = run("docmem", "tree", "--json").json["tree"]
    assert all(one["readonly"] for one in listed)
    assert [one["depth"] for one in listed] == [0, 1, 2, 2, 3]
    assert run("docmem", "export", "guide-to", "--format", "md").out == guide
    assert run("docmem", "export", "guide-to", "--output", "again.md").code == 0  # by its extension
    assert Path(project, "again.md").read_text() == guide


def test_a_text_comes_in_by_its_paragraphs(run: Run) -> None:
    ran = run(
        "docmem", "import", "-", "--format", "txt", "--root-id", "notes", stdin="one\n\ntwo\ntwo\n\n\nthree\n"
    )
    assert ran.code == 0
    assert [one["text"] for one in run("docmem", "tree", "notes", "--json").json["tree"]] == [
        "",
        "one",
        "two\ntwo",
        "three",
    ]


def test_a_document_may_quote_what_was_recalled(run: Run, project: str) -> None:
    from backstory.safety.fence import fence

    quoted = fence("the walrus", "backstory memory")
    Path(project, "quote.txt").write_text(f"See this: {quoted}\n")
    ran = run("docmem", "import", "quote.txt")
    assert (ran.code, ran.err) == (0, "")
    assert run("docmem", "tree", "quote", "--json").json["tree"][1]["text"] == f"See this: {quoted}"


def test_what_comes_in_is_redacted(run: Run, project: str) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
    Path(project, "secret.md").write_text(f"# Keys\n\nthe token is {secret}\n")
    ran = run("docmem", "import", "secret.md")
    assert (ran.code, ran.err) == (0, "Something private or secret in it was left out.\n")
    assert secret not in run("docmem", "export", "secret").out
    assert "[redacted:" in run("docmem", "export", "secret").out


@pytest.mark.parametrize(
    ("name", "body", "says"),
    [
        ("bad.toml", b"[x\n", "TOML cannot be read"),
        ("bad.toml", b'[a]\ncontext = "x"\ncontent = ""\n', "three parts"),
        ("bad.toml", b'[a]\ncontext = "a:b:c"\nparent-node-id = "b"\n', "no root"),
        ("latin.toml", b'[a]\ncontext = "a:b:c"\ncontent = "caf\xe9"\n', "not UTF-8"),
        ("empty.toml", b"", "no root"),
        ("empty.md", b" \n", "nothing in the document"),
        ("empty.txt", b"", "nothing in the document"),
        ("image.md", b"\x89PNG\0\0", "not text"),
        ("walrus.pdf", b"%PDF", "--format"),
    ],
)
def test_a_file_that_cannot_be_a_tree_is_refused_with_the_reason(
    run: Run, project: str, name: str, body: bytes, says: str
) -> None:
    Path(project, name).write_bytes(body)
    ran = run("docmem", "import", name)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err
    assert run("docmem", "list").code == 1


def test_a_file_that_is_not_there_or_no_file_is_said_so(run: Run, project: str) -> None:
    os.mkfifo(os.path.join(project, "pipe.md"))
    assert run("docmem", "import", "gone.md").code == 1
    assert run("docmem", "import", ".", "--format", "md").code == 2
    assert run("docmem", "import", "pipe.md").code == 2  # and nobody waits for it
    assert "--format" in run("docmem", "import", "-").err


def test_a_root_id_that_is_taken_or_wrong_is_refused(run: Run, handbook: Node, project: str) -> None:
    Path(project, "handbook.md").write_text("hello")
    ran = run("docmem", "import", "handbook.md")
    assert (ran.code, "there is a node handbook already" in ran.err) == (2, True)
    for wrong in ("two words", "", "x" * 25):
        ran = run("docmem", "import", "handbook.md", "--root-id", wrong)
        assert (ran.code, "letters" in ran.err) == (2, True), wrong
    assert run("docmem", "import", "handbook.md", "--root-id", "other").code == 0
    assert len(run("docmem", "list", "--json").json) == 2


def test_a_document_that_is_too_large_is_refused_and_an_exported_tree_is_not(run: Run, project: str) -> None:
    large = f"# {'x' * 10_000_000}\n"
    Path(project, "large.md").write_text(large)
    ran = run("docmem", "import", "large.md")
    assert (ran.code, "a document may have 10,000,000" in ran.err) == (2, True)
    Path(project, "large.toml").write_text(f'{large}[large]\ncontext = "a:b:c"\ncontent = "walrus"\n')
    assert run("docmem", "import", "large.toml").code == 0


@pytest.mark.parametrize("command", ["import - --format md", "import - --format toml"])
def test_a_standard_input_that_is_closed_or_not_utf8_is_no_fault_of_ours(command: str, project: str) -> None:
    closed = ["sh", "-c", f"{BACKSTORY} docmem {command} <&-"]
    ran = subprocess.run(closed, cwd=project, capture_output=True, text=True, check=False)
    assert (ran.returncode, "fault of backstory" in ran.stderr) == (2, False)
    odd = [BACKSTORY, "docmem", *command.split()]
    env = os.environ | {"LC_ALL": "C.UTF-8"}
    other = subprocess.run(odd, cwd=project, input=b"caf\xe9", env=env, capture_output=True, check=False)
    assert b"fault of backstory" not in other.stderr


def test_an_export_never_replaces_a_file_unless_told(run: Run, handbook: Node, project: str) -> None:
    target = Path(project, "handbook.md")
    target.write_text("mine")
    target.chmod(0o640)
    ran = run("docmem", "export", "handbook", "--output", "handbook.md")
    assert (ran.code, ran.out, target.read_text()) == (2, "", "mine")
    assert "--force" in ran.err
    link = Path(project, "link.md")
    link.symlink_to("handbook.md")
    assert run("docmem", "export", "handbook", "--output", "link.md").code == 2
    assert run("docmem", "export", "handbook", "--output", "link.md", "--force").code == 0
    assert link.is_symlink()
    assert target.read_text().startswith("# How to keep a walrus\n")
    assert target.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(project)) == ["handbook.md", "link.md"]


@pytest.mark.parametrize(
    ("target", "says"),
    [("gone/x.toml", "No such file"), (".", "no file"), ("pipe", "no file"), ("x" * 300, "too long")],
)
def test_a_place_where_no_file_can_be_is_said_so(
    run: Run, handbook: Node, project: str, target: str, says: str
) -> None:
    pipe = Path(project, "pipe")
    os.mkfifo(pipe)
    ran = run("docmem", "export", "handbook", "--force", "--output", target)
    assert (ran.code, says in ran.err) == (2, True)
    assert pipe.is_fifo()


def test_a_file_that_comes_while_an_export_is_written_is_not_replaced(
    run: Run, handbook: Node, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Path(project, "x.toml")
    monkeypatch.setattr(os, "fsync", lambda _: target.write_text("somebody else's"))
    assert run("docmem", "export", "handbook", "--output", "x.toml").code == 2
    assert target.read_text() == "somebody else's"
    assert os.listdir(project) == ["x.toml"]


def test_an_export_that_fails_leaves_nothing_behind(
    run: Run, handbook: Node, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    ran = run("docmem", "export", "handbook", "--output", "x.toml")
    assert (ran.code, "No space left" in ran.err) == (2, True)
    assert os.listdir(project) == []


def test_an_export_in_json_says_what_was_written(run: Run, handbook: Node) -> None:
    told = run("docmem", "export", "feeding1", "--format", "md", "--json").json
    assert (told["id"], told["format"], told["nodes"], told["output"]) == ("feeding1", "md", 3, None)
    assert told["text"].startswith("# Three meals a day\n")
    written = run("docmem", "export", "handbook", "--output", "x.toml", "--json").json
    assert written == {"id": "handbook", "format": "toml", "nodes": 5, "output": "x.toml"}


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


# --- terminals ----------------------------------------------------------------------------------------------

EVIL = "evil \x1b[2J\x1b]0;title\x07 [red]markup[/red] \x9b31m \u202e \r"


def test_nothing_in_a_node_can_drive_the_terminal(
    run: Run, build: Callable[..., Node], data: Path, project: str
) -> None:
    build(
        [
            Made("evil", None, EVIL, ("root", "", "")),
            note("evil", EVIL, 0, "evilnode"),
            note("", "evil too", 1, "belowit1"),
        ]
    )
    with opened(data, project) as (db, _):  # no surface lets such a context in; a restored store may have one
        db.execute("UPDATE docmem_nodes SET context_name = ? WHERE id <> 'evil'", (EVIL[:24],))
    commands = [
        ["list"],
        ["tree", "evil"],
        ["show", "evilnode"],
        ["show", "belowit1"],
        ["expand", "evil"],
        ["search", "evil"],
        ["show", EVIL],
        ["search", "evil", "--tree", EVIL],
        ["import", f"gone {EVIL}.md"],
        ["import", f"gone{EVIL}"],
        ["import", "-", "--format", "md", "--root-id", EVIL],
        ["export", "evil", "--output", f"{EVIL}/x"],
        ["export", "evil", "--output", f"x{EVIL}.md"],
        ["export", "evil", "--json"],
        ["delete", "evilnode"],
    ]
    for command in [*commands, *([*command, "--json"] for command in commands)]:
        ran = run("docmem", *command, stdin="hello")
        for sign in "\x1b\x9b\x07\r" if "--json" in command else "\x1b\x9b\x07\r\u202e":
            assert sign not in ran.out + ran.err, (command, sign)
    assert "[red]markup[/red]" in run("docmem", "show", "evilnode").out


def test_an_export_is_exact_in_a_pipe_and_harmless_at_a_terminal(
    build: Callable[..., Node], project: str
) -> None:
    build([Made("evil", None, "", ("root", "", "")), note("", EVIL)])
    command = [BACKSTORY, "docmem", "export", "evil", "--format", "md"]
    for env in ({}, {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}):
        piped = subprocess.run(command, cwd=project, env=os.environ | env, capture_output=True, check=True)
        assert EVIL.encode() in piped.stdout
    seen = at_terminal("docmem export evil --format md", project)
    assert "\x1b[2J" not in seen
    assert "\\x1b[2J" in seen


def test_a_pipe_gets_plain_text_and_a_terminal_gets_colours(run: Run, handbook: Node, project: str) -> None:
    for command in ("list", "tree", "show handbook", "expand handbook", "search walrus"):
        assert "\x1b" not in run("docmem", *command.split()).out
        assert "\x1b[" in at_terminal(f"docmem {command}", project)
    drawn = at_terminal("docmem tree", project)
    assert "\x1b[36mfeeding1" in drawn
    assert "\x1b[35m  summary:feeding:2" in drawn


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_a_narrow_terminal_never_cuts_an_id_or_a_score(
    columns: int, build: Callable[..., Node], project: str
) -> None:
    long = "the walrus likes fish " * 20
    name = "n" * 24
    build(
        [
            Made("r" * 24, None, long, (name, name, name)),
            Made("aaaaaaaa", 0, long, (name, name, name), readonly=True),
            Made("bbbbbbbb", 1, f"海象 {'海' * 200}", (name, name, name)),
        ]
    )
    seen = {
        command: lines_at_terminal(f"docmem {command}", project, columns)
        for command in ("list", "tree", "search walrus")
    }
    for lines in seen.values():
        assert [line for line in lines if cell_len(line) > columns] == []
    assert seen["list"][1].startswith("r" * 24)
    assert seen["tree"][0].startswith("r" * 24)
    assert seen["tree"][1].startswith("└── aaaaaaaa  nnn")
    assert seen["tree"][2].startswith("    └── bbbbbbbb  nnn")
    heads = [line for line in seen["search walrus"] if re.match(r" ?\d+\. ", line)]
    assert heads
    assert all(re.search(r"  score \d\.\d\d$", line) for line in heads)


def test_a_locale_without_guides_gets_plain_ones(handbook: Node, project: str) -> None:
    env = os.environ | {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ran = subprocess.run([BACKSTORY, "docmem", "tree"], cwd=project, env=env, capture_output=True, check=True)
    assert ran.stdout.splitlines()[1:3] == [
        b"|-- feeding1  summary:feeding:2  Three meals a day",
        b"|   |-- morning1  note:morning:  Herring at six.",
    ]
    assert ran.stdout.splitlines()[-1].startswith(b"`-- sleeping")


# --- views --------------------------------------------------------------------------------------------------


OWN = b"# Rules\r\nno final line end"


@pytest.fixture
def viewed(handbook: Node, data: Path, project: str) -> Iterator[Path]:
    """The CLAUDE.md in which a running server shows the handbook."""
    file = Path(project, "CLAUDE.md")
    file.write_bytes(OWN)
    server = views.Views(str(data), project, "session-1")

    with opened(data, project) as (db, here):
        view_files.add(db, server, here, "handbook", THEN, threading.Event())
        assert b"## handbook" in file.read_bytes()
        yield file
        view_files.clear(db, server, THEN)


def test_what_is_deleted_here_leaves_the_views_of_running_servers(run: Run, viewed: Path) -> None:
    assert b"Herring" in viewed.read_bytes()
    ran = run("docmem", "delete", "feeding1", "--yes")
    assert (ran.code, ran.err) == (0, "")
    text = viewed.read_bytes()
    assert b"Herring" not in text
    assert b"It sleeps on ice" in text
    assert run("docmem", "delete", "handbook", "--yes").code == 0
    assert viewed.read_bytes() == OWN


def test_the_model_is_told_at_its_next_prompt_what_was_deleted_here(
    run: Run, viewed: Path, data: Path
) -> None:
    run("docmem", "delete", "feeding1", "--yes")
    assert "feeding1" in (data / "outbox" / "session-1").read_text()


def test_an_import_leaves_views_of_other_trees_as_they_are(run: Run, viewed: Path) -> None:
    before = viewed.read_bytes()
    ran = run("docmem", "import", "-", "--format", "txt", "--root-id", "other", stdin="hello")
    assert (ran.code, ran.err) == (0, "")
    assert viewed.read_bytes() == before


def test_an_edit_stands_though_a_view_could_not_follow_it(run: Run, viewed: Path) -> None:
    viewed.chmod(0o400)
    ran = run("docmem", "delete", "feeding1", "--yes")
    assert (ran.code, ran.out) == (0, "Deleted: feeding1 (3 nodes)\n")
    assert "a view could not be refreshed" in ran.err
    assert str(viewed) in ran.err
    viewed.chmod(0o600)


def test_who_waits_for_a_busy_store_lets_others_write_claude_md(
    run: Run, viewed: Path, data: Path, project: str
) -> None:
    with opened(data, project) as (db, here):
        tree.update_content(db, here, "evening1", "Nothing but krill", now=THEN)
    is_busy, longest = threading.Event(), 0.0

    def write_for_long() -> None:
        nonlocal longest
        with closing(connect(str(data / "backstory.db"))) as db, transaction(db):
            is_busy.set()
            began = free = time.monotonic()
            while time.monotonic() < began + 1.5:
                with open(data / "claude-md.lock") as lock, suppress(BlockingIOError):
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    free = time.monotonic()
                longest = max(longest, time.monotonic() - free)
                time.sleep(0.001)

    writer = threading.Thread(target=write_for_long)
    writer.start()
    is_busy.wait()
    with opened(data, project) as (db, here):
        docmem._refresh(db, here, "handbook", THEN)
    writer.join()
    assert b"Nothing but krill" in viewed.read_bytes()
    assert longest < 0.75


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
    text = REPOSITORY.joinpath("docs", "cli.md").read_text()
    for name, command in docmem.docmem.commands.items():
        row = next(line for line in text.splitlines() if line.startswith(f"| `backstory docmem {name}"))
        for option in command.params:
            flag = option.opts[0]
            if flag.startswith("--") and flag not in ("--json", "--project"):
                assert f"{flag}" in row, f"docmem {name} {flag}"
