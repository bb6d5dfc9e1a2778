"""The command line: documents."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.helpers.commands import BACKSTORY
from tests.helpers.embedder import loaded_embedder  # noqa: F401  for all tests here


@pytest.fixture
def project(project: str) -> Path:
    return Path(project)


def test_documents_are_taken_in_found_listed_shown_and_removed(run: Run, project: Path) -> None:
    nothing = run("docs", "list")
    assert (nothing.code, nothing.out, "backstory docs ingest PATH" in nothing.err) == (1, "", True)
    assert (run("docs", "list", "--json").json, run("docs", "search", "x", "--json").json) == ([], [])
    (project / "guide.md").write_text("# Guide\n\nfeed the walrus\n\n## Install\n\nrun the otter\n")
    assert run("docs", "ingest", "guide.md").out == "Document ingested: Guide (2 chunks)\n"
    assert run("docs", "ingest", "guide.md").out == "Document ingested: Guide (unchanged, 2 chunks)\n"
    (listed,) = run("docs", "list", "--json").json
    assert (listed["title"], listed["chunks"], listed["source_path"]) == (
        "Guide",
        2,
        str(project / "guide.md"),
    )
    assert f"{listed['id']}" in run("docs", "list").out
    (hit, *_) = run("docs", "search", "otter", "--json").json
    assert (hit["heading"], hit["text"]) == ("Guide > Install", "run the otter")
    assert sum(hit["parts"].values()) == pytest.approx(hit["score"], abs=0.005)
    explained = run("docs", "search", "otter", "--explain", "--mode", "keyword", "--limit", "1").out
    assert "Guide > Install" in explained
    assert "words +" in explained
    short = listed["id"][:9]
    shown = run("docs", "show", short).out
    assert shown.index("feed the walrus") < shown.index("Guide > Install") < shown.index("run the otter")
    assert run("docs", "show", short, "--json").json[1] == {
        "heading": "Guide > Install",
        "text": "run the otter",
    }
    assert run("docs", "search", "zebra").code == 1
    assert run("docs", "search", "x", "--limit", "0").code == 2
    assert run("docs", "remove", short, "--json").json == {"removed": listed["id"]}
    for command in ("show", "remove"):
        gone = run("docs", command, short)
        assert (gone.code, "`backstory docs list` shows ids" in gone.err) == (1, True)
    assert run("docs", "search", "otter").code == 1
    assert (project / "guide.md").exists()


def test_documents_come_from_standard_input_too(run: Run) -> None:
    told = run("docs", "ingest", "-", "--title", "Animals", "--json", stdin="the walrus sleeps").json
    assert [(one["title"], one["source"]) for one in told["documents"]] == [("Animals", "inline")]
    assert run("docs", "ingest", "-", "--title", "Animals", stdin="the walrus wakes").out.startswith(
        "Document ingested: Animals (replaced"
    )


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("gone.md", "there is no file"),
        ("/etc/hostname", "lies outside of"),
        ("picture.png", "no kind of document"),
        ("empty.md", "no text"),
        ("binary.md", "is not text"),
        ("http://localhost/x", "localhost"),
    ],
)
def test_what_cannot_be_taken_in_is_said_with_the_reason(
    run: Run, project: Path, source: str, says: str
) -> None:
    (project / "picture.png").write_text("x")
    (project / "empty.md").write_text("")
    (project / "binary.md").write_bytes(b"\0\0")
    ran = run("docs", "ingest", source)
    assert (ran.code, ran.out) == (1, "")
    assert source in ran.err
    assert says in ran.err
    assert "1 of 1 could not be ingested" in ran.err
    told = run("docs", "ingest", source, "--json")
    assert (told.code, told.json["documents"], len(told.json["problems"])) == (1, [], 1)


def test_what_can_be_taken_in_is_even_if_other_things_cannot(run: Run, project: Path) -> None:
    (project / "guide.md").write_text("# Guide\n\nfeed the walrus")
    ran = run("docs", "ingest", "gone.md", "guide.md")
    assert (ran.code, ran.out) == (1, "Document ingested: Guide (1 chunk)\n")
    assert "gone.md: there is no file" in ran.err
    assert run("docs", "ingest", "guide.md", "gone.md", "--title", "x").code == 2


def test_a_folder_without_documents_is_not_passed_over_in_silence(run: Run, project: Path) -> None:
    (project / "empty").mkdir()
    ran = run("docs", "ingest", "empty")
    assert (ran.out + ran.err).strip()


@pytest.mark.slow
@pytest.mark.parametrize("command", ["docs ingest -", "add -"])
def test_a_standard_input_that_is_closed_or_not_utf8_is_no_fault_of_ours(command: str, project: Path) -> None:
    closed = ["sh", "-c", f"{BACKSTORY} {command} <&-"]
    ran = subprocess.run(closed, cwd=project, capture_output=True, text=True, check=False)
    assert (ran.returncode in (1, 2), "fault of backstory" in ran.stderr) == (True, False)
    odd = [BACKSTORY, *command.split()]
    other = subprocess.run(odd, cwd=project, input=b"caf\xe9 walrus", capture_output=True, check=False)
    assert b"fault of backstory" not in other.stderr
