"""`backstory docmem`: documents come in as trees, and trees go out as files."""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path

import pytest

from backstory.model import Node
from tests.conftest import Run
from tests.helpers.commands import BACKSTORY
from tests.helpers.handbook import HANDBOOK


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


@pytest.mark.slow
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
