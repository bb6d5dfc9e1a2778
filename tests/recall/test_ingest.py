"""Documents of a project, from files and handed-over text into the store and back out of a search."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from backstory.errors import BadInput, NotFound
from backstory.model import Chunk
from backstory.recall.answer import answer as search
from backstory.recall.documents.file import LARGEST
from backstory.recall.documents.ingest import Ingested, files_in, ingest
from backstory.recall.embedders.static import Static
from backstory.recall.index import Index
from backstory.recall.search import search_documents
from backstory.store import documents, memories, projects, vectors

NOW = 1_800_000_000_000
BACKSTORY = os.path.join(os.path.dirname(sys.executable), "backstory")
GUIDE = """# Guide

Welcome to the walrus.

## Install

Run the installer and wait.

### Linux

Use the package manager of the otter distribution.

## Usage

Call getUserById with a number.
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "api"
    folder.mkdir()
    return folder


def take(db: sqlite3.Connection, project: Path, now: int = NOW, **source: Any) -> Ingested:
    return ingest(db, str(project), now=now, **source)


def write(project: Path, name: str, text: str | bytes) -> str:
    path = project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return name


def found(db: sqlite3.Connection, project: Path, query: str, index: Index | None = None) -> list[Chunk]:
    return [
        hit.chunk for hit in search_documents(index or Index(None), db, str(project), query, limit=100).hits
    ]


def chunks(db: sqlite3.Connection, document: str) -> list[tuple[str, str]]:
    return documents.chunks(db, document)


# --- what a document becomes --------------------------------------------------------------------------------


def test_a_markdown_file_is_cut_at_its_headings_and_found_by_each(
    db: sqlite3.Connection, project: Path
) -> None:
    done = take(db, project, path=write(project, "docs/guide.md", GUIDE))
    assert (done.title, done.state, done.chunks) == ("Guide", "new", 4)
    assert str(done) == "Document ingested: Guide (4 chunks)"
    assert [heading for heading, _ in chunks(db, done.id)] == [
        "Guide",
        "Guide > Install",
        "Guide > Install > Linux",
        "Guide > Usage",
    ]
    (best, *_) = found(db, project, "otter distribution")
    assert (best.heading, best.document.title) == ("Guide > Install > Linux", "Guide")
    assert best.document.source_path == str(project / "docs" / "guide.md")
    assert found(db, project, "install")[0].heading == "Guide > Install"  # a heading finds its section
    assert found(db, project, "user by id")[0].heading == "Guide > Usage"  # names by their parts


def test_restructured_text_has_headings_too(db: sqlite3.Connection, project: Path) -> None:
    text = "Guide\n=====\n\nWelcome.\n\nInstall\n-------\n\nRun the otter.\n"
    done = take(db, project, path=write(project, "guide.rst", text))
    assert chunks(db, done.id) == [("Guide", "Welcome."), ("Guide > Install", "Run the otter.")]
    assert found(db, project, "otter")[0].document.kind == "rst"


@pytest.mark.parametrize("name", ["notes.txt", "README", "NOTES.TXT"])
def test_plain_text_is_called_by_its_name(db: sqlite3.Connection, project: Path, name: str) -> None:
    done = take(db, project, path=write(project, name, "# no heading here\n\nthe walrus sleeps\n"))
    assert (done.title, chunks(db, done.id)[0][0]) == (name, "")
    assert found(db, project, "walrus")[0].document.kind == "txt"


def test_documents_and_memories_are_searched_apart(db: sqlite3.Connection, project: Path) -> None:
    take(db, project, path=write(project, "guide.md", GUIDE))
    assert search(Index(None), db, str(project), "walrus", now=NOW).hits == ()


def test_documents_are_found_by_meaning(db: sqlite3.Connection, project: Path) -> None:
    text = (
        "# Guide\n\n## Baking\n\nKnead the dough, then heat the oven.\n\n## Passwords\n\n"
        "When the login fails, the user resets the password on the account page.\n"
    )
    take(db, project, path=write(project, "guide.md", text))
    answer = search_documents(Index(Static()), db, str(project), "sign in failed credentials")
    assert answer.hits[0].chunk.heading == "Guide > Passwords"
    assert answer.notice is None
    parts = sum(part.value for part in answer.hits[0].parts)
    assert parts == pytest.approx(answer.hits[0].score, abs=0.004)


def test_another_project_does_not_see_them(db: sqlite3.Connection, project: Path, tmp_path: Path) -> None:
    take(db, project, path=write(project, "guide.md", GUIDE))
    (tmp_path / "web").mkdir()
    assert found(db, tmp_path / "web", "walrus") == []


def test_a_long_section_becomes_several_chunks_with_one_heading(
    db: sqlite3.Connection, project: Path
) -> None:
    text = "# Guide\n\n" + "\n\n".join(
        f"Paragraph {number} speaks of walruses. " * 20 for number in range(40)
    )
    done = take(db, project, path=write(project, "guide.md", text))
    assert done.chunks > 3
    assert {heading for heading, _ in chunks(db, done.id)} == {"Guide"}


# --- titles -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "given", "title"),
    [
        (GUIDE, None, "Guide"),
        (GUIDE, "  The Book  ", "The Book"),
        (GUIDE, "   ", "Guide"),
        ("---\ntitle: Front\n---\n\n# Guide\n\ntext", None, "Front"),
        ("## Lower\n\ntext\n\n# Higher\n\ntext", None, "Higher"),
        ("just text", None, "guide.md"),
        (GUIDE, "x" * 1_000, "x" * 300),
        ("# The key is AKIAIOSFODNN7EXAMPLQ\n\ntext", None, None),
    ],
)
def test_a_title_is_what_was_given_or_what_the_document_says_or_its_name(
    db: sqlite3.Connection, project: Path, text: str, given: str | None, title: str | None
) -> None:
    done = take(db, project, path=write(project, "guide.md", text), title=given)
    if title is None:
        assert done.title is not None
        assert "AKIA" not in done.title
    else:
        assert done.title == title


# --- unchanged, changed -------------------------------------------------------------------------------------


def test_what_did_not_change_is_skipped(db: sqlite3.Connection, project: Path) -> None:
    first = take(db, project, path=write(project, "guide.md", GUIDE))
    before = db.execute("SELECT * FROM document_chunks").fetchall()
    again = take(db, project, now=NOW + 5, path="guide.md")
    assert (again.id, again.state) == (first.id, "unchanged")
    assert str(again) == "Document ingested: Guide (unchanged, 4 chunks)"
    assert db.execute("SELECT * FROM document_chunks").fetchall() == before
    assert documents.listed(db, _project_id(db))[0].updated_at == NOW
    by_another_way = take(db, project, path=str(project / "." / "guide.md"))
    assert by_another_way.state == "unchanged"


def test_what_changed_replaces_what_was_there_with_all_that_belonged_to_it(
    db: sqlite3.Connection, project: Path
) -> None:
    index = Index(Static())
    first = take(db, project, path=write(project, "guide.md", GUIDE))
    assert found(db, project, "otter", index)
    made = db.execute("SELECT count(*) FROM vectors").fetchone()[0]
    assert made == 4
    write(project, "guide.md", "# Guide\n\nNow with a pelican.\n")
    again = take(db, project, now=NOW + 5, path="guide.md")
    assert (again.id, again.state, again.chunks) == (first.id, "replaced", 1)
    assert str(again) == "Document ingested: Guide (replaced, 1 chunk)"
    assert chunks(db, first.id) == [("Guide", "Now with a pelican.")]
    assert db.execute("SELECT count(*) FROM vectors").fetchone()[0] == 0
    words = "SELECT count(*) FROM document_chunks_fts WHERE document_chunks_fts MATCH 'otter'"
    assert db.execute(words).fetchone()[0] == 0
    db.execute("INSERT INTO document_chunks_fts (document_chunks_fts, rank) VALUES ('integrity-check', 1)")
    for one in (index, Index(None)):
        assert [chunk.text for chunk in found(db, project, "pelican", one)] == ["Now with a pelican."]
        assert found(db, project, "otter", one) == []
    (listed,) = documents.listed(db, _project_id(db))
    assert (listed.created_at, listed.updated_at, listed.chunks) == (NOW, NOW + 5, 1)


def _project_id(db: sqlite3.Connection) -> str:
    return projects.every(db)[0].id


def test_another_title_is_a_change(db: sqlite3.Connection, project: Path) -> None:
    first = take(db, project, path=write(project, "guide.md", GUIDE))
    again = take(db, project, path="guide.md", title="The Book")
    assert (again.id, again.title, again.state) == (first.id, "The Book", "replaced")


def test_the_same_text_in_two_files_is_two_documents(db: sqlite3.Connection, project: Path) -> None:
    first = take(db, project, path=write(project, "one.md", GUIDE))
    second = take(db, project, path=write(project, "two.md", GUIDE))
    assert first.id != second.id
    assert second.state == "new"


def test_a_document_that_is_removed_is_found_no_more_and_its_rows_are_not_used_again(
    db: sqlite3.Connection, project: Path
) -> None:
    index = Index(Static())
    first = take(db, project, path=write(project, "guide.md", GUIDE))
    assert found(db, project, "walrus", index)
    last = db.execute("SELECT max(row) FROM document_chunks").fetchone()[0]
    documents.remove(db, first.id)
    assert found(db, project, "walrus", index) == []
    assert vectors.counts(db)[0][1] == 0
    again = take(db, project, path="guide.md")
    assert again.id != first.id
    assert db.execute("SELECT min(row) FROM document_chunks").fetchone()[0] == last + 1
    assert found(db, project, "walrus", index)


# --- text that is handed over -------------------------------------------------------------------------------


def test_text_that_is_handed_over_goes_by_its_title(db: sqlite3.Connection, project: Path) -> None:
    first = take(db, project, content="the walrus sleeps", title="Animals")
    assert (first.source, first.state) == ("inline", "new")
    same = take(db, project, content="the walrus sleeps", title="Animals")
    assert (same.id, same.state) == (first.id, "unchanged")
    newer = take(db, project, content="the walrus wakes", title="Animals")
    assert (newer.id, newer.state) == (first.id, "replaced")
    other = take(db, project, content="the heron stands", title="Birds")
    assert other.id != first.id
    assert [chunk.text for chunk in found(db, project, "walrus")] == ["the walrus wakes"]


def test_text_without_a_title_goes_by_what_it_says(db: sqlite3.Connection, project: Path) -> None:
    first = take(db, project, content=GUIDE)
    assert first.title == "Guide"
    assert take(db, project, content=GUIDE).state == "unchanged"
    assert take(db, project, content="# Guide\n\nanother").id != first.id, "two texts may begin alike"
    plain = take(db, project, content="no title at all")
    assert plain.title is None
    assert take(db, project, content="no title at all").id == plain.id
    assert take(db, project, content="no title either").id != plain.id


def test_a_file_and_a_text_of_the_same_title_are_two_documents(db: sqlite3.Connection, project: Path) -> None:
    file = take(db, project, path=write(project, "guide.md", GUIDE))
    text = take(db, project, content=GUIDE, title="Guide")
    assert file.id != text.id
    assert text.state == "new"


@pytest.mark.parametrize("given", [{}, {"path": "a.md", "content": "x"}, {"url": "http://x", "content": "x"}])
def test_exactly_one_source_is_wanted(db: sqlite3.Connection, project: Path, given: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="exactly one of path, url and content"):
        take(db, project, **given)


# --- secrets ------------------------------------------------------------------------------------------------


def test_secrets_and_private_parts_are_left_out(db: sqlite3.Connection, project: Path) -> None:
    text = (
        "# Setup\n\nUse postgres://app:s3cr3tpw@db/main here.\n\n## Key\n\nAKIAIOSFODNN7EXAMPLQ\n\n"
        "<private>the pin is 4711</private>\n"
    )
    take(db, project, path=write(project, "setup.md", text))
    take(db, project, content=text, title="password = hunter22secret")
    stored = "\n".join(db.iterdump())
    for secret in ("s3cr3tpw", "AKIAIOSFODNN7EXAMPLQ", "4711", "hunter22secret"):
        assert secret not in stored
    assert "postgres://app:" in stored


def test_a_long_document_is_kept_to_its_end(db: sqlite3.Connection, project: Path) -> None:
    text = "# Long\n\n" + "many words in a row.\n\n" * 20_000 + "and a walrus at the end\n"
    take(db, project, path=write(project, "long.md", text))
    assert found(db, project, "walrus")


# --- which files --------------------------------------------------------------------------------------------


def test_a_file_of_another_place_is_refused_unless_its_folder_is_allowed(
    db: sqlite3.Connection, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "handbook" / "rules.md"
    write(tmp_path, "handbook/rules.md", "# Rules\n\nfeed the walrus")
    for path in (str(outside), "../handbook/rules.md"):
        with pytest.raises(BadInput, match="lies outside of"):
            take(db, project, path=path)
    monkeypatch.setenv("BACKSTORY_DOCS_FOLDERS", f"/nowhere{os.pathsep}{tmp_path / 'handbook'}")
    assert take(db, project, path=str(outside)).title == "Rules"


def test_a_folder_may_be_allowed_in_the_settings_and_by_its_place_in_the_home(
    db: sqlite3.Connection, project: Path, home: Path, data: Path
) -> None:
    write(home, "handbook/rules.md", "# Rules\n\nfeed the walrus")
    data.mkdir(parents=True)
    (data / "config.toml").write_text('[docs]\nfolders = "~/handbook"\n')
    assert take(db, project, path="~/handbook/rules.md").title == "Rules"


def test_a_folder_with_a_similar_name_is_another_folder(
    db: sqlite3.Connection, project: Path, tmp_path: Path
) -> None:
    write(tmp_path, "api-secrets/rules.md", "# Rules\n\nfeed the walrus")
    with pytest.raises(BadInput, match="lies outside of"):
        take(db, project, path=str(tmp_path / "api-secrets" / "rules.md"))


def test_a_link_is_judged_by_where_it_leads(db: sqlite3.Connection, project: Path, tmp_path: Path) -> None:
    write(tmp_path, "secret.md", "# Secret\n\nfeed the walrus")
    os.symlink(tmp_path / "secret.md", project / "link.md")
    with pytest.raises(BadInput, match="lies outside of"):
        take(db, project, path="link.md")
    write(project, "real.md", GUIDE)
    os.symlink(project / "real.md", project / "inner.md")
    assert take(db, project, path="inner.md").source == str(project / "real.md")


def test_a_file_of_a_worktree_is_a_file_of_its_project(
    db: sqlite3.Connection, project: Path, tmp_path: Path
) -> None:
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for command in (
        ["init", "-q"],
        ["commit", "-q", "--allow-empty", "-m", "x"],
        ["worktree", "add", "-q", "../tree"],
    ):
        subprocess.run([*git, *command], cwd=project, check=True)
    write(tmp_path, "tree/guide.md", GUIDE)
    assert take(db, tmp_path / "tree", path="guide.md").state == "new"
    assert found(db, project, "walrus")


def test_a_path_is_as_seen_from_the_folder_one_is_in(db: sqlite3.Connection, project: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    write(project, "docs/guide.md", GUIDE)
    write(project, "top.md", GUIDE)
    assert take(db, project / "docs", path="guide.md").source == str(project / "docs" / "guide.md")
    assert take(db, project / "docs", path="../top.md").source == str(project / "top.md")


@pytest.mark.parametrize(
    ("name", "body", "says"),
    [
        ("picture.md", b"\x89PNG\x00\x00\x00", "is not text"),
        ("picture.png", b"\x89PNG", "no kind of document"),
        ("empty.md", b"", "no text"),
        ("blank.md", b" \n\n\t ", "no text"),
        (".env", b"A=1", "no kind of document"),
        ("program.py", b"x = 1", "no kind of document"),
    ],
)
def test_what_is_no_document_is_refused_with_what_to_do(
    db: sqlite3.Connection, project: Path, name: str, body: bytes, says: str
) -> None:
    with pytest.raises(BadInput, match=says):
        take(db, project, path=write(project, name, body))
    assert db.execute("SELECT count(*) FROM documents").fetchone()[0] == 0


def test_text_of_nothing_but_secrets_says_nothing(db: sqlite3.Connection, project: Path) -> None:
    with pytest.raises(BadInput, match="no text"):
        take(db, project, content="")
    with pytest.raises(BadInput, match="no text"):
        take(db, project, content="  \n ")


def test_what_is_too_large_is_refused(db: sqlite3.Connection, project: Path) -> None:
    with open(project / "large.md", "wb") as file:
        file.truncate(LARGEST + 1)
    with pytest.raises(BadInput, match="split it"):
        take(db, project, path="large.md")
    with pytest.raises(BadInput, match="the part that matters"):
        take(db, project, content="x" * (LARGEST + 1))


def test_a_missing_file_a_folder_and_a_pipe_are_refused_at_once(
    db: sqlite3.Connection, project: Path
) -> None:
    with pytest.raises(NotFound, match="there is no file"):
        take(db, project, path="gone.md")
    (project / "folder.md").mkdir()
    os.mkfifo(project / "pipe.md")
    for name in ("folder.md", "pipe.md"):
        with pytest.raises(BadInput, match="is not a file"):
            take(db, project, path=name)


def test_other_encodings_and_line_ends_are_read(db: sqlite3.Connection, project: Path) -> None:
    take(db, project, path=write(project, "bom.md", b"\xef\xbb\xbf# Bom\r\n\r\nthe walrus\r\n"))
    take(db, project, path=write(project, "latin.txt", "caf\xe9 pelican".encode("latin-1")))
    assert found(db, project, "walrus")[0].heading == "Bom"
    assert found(db, project, "pelican")


def test_a_file_with_a_name_that_is_not_utf8_is_no_crash(db: sqlite3.Connection, project: Path) -> None:
    name = os.fsdecode(b"caf\xe9.md")
    (project / name).write_text(GUIDE)
    try:
        take(db, project, path=name)
    except BadInput:
        pass
    else:
        assert found(db, project, "walrus")


def test_a_folder_is_all_documents_in_it_but_not_what_tools_put_there(project: Path) -> None:
    wanted = ["README.md", "docs/a.rst", "docs/b.html", "docs/inner/c.TXT"]
    others = ["x.py", ".hidden.md", ".git/a.md", "node_modules/a/README.md", "venv/a.md", "docs/a.png"]
    for name in (*wanted, *others):
        write(project, name, "text")
    assert [os.path.relpath(one, project) for one in files_in(str(project))] == wanted
    assert list(files_in("https://example.org/x")) == ["https://example.org/x"]
    assert list(files_in("-")) == ["-"]


# --- at the terminal ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_folder_is_taken_in_at_the_terminal(project: Path) -> None:
    write(project, "docs/one.md", GUIDE)
    write(project, "docs/two.rst", "Two\n===\n\nThe heron stands.\n")
    write(project, "docs/three.txt", "three walruses")
    write(project, "docs/broken.md", b"\x00\x00")

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [BACKSTORY, *args], cwd=project, capture_output=True, text=True, timeout=60, check=False
        )

    first = run("docs", "ingest", "docs", "--json")
    told = json.loads(first.stdout)
    assert {one["title"]: (one["state"], one["chunks"]) for one in told["documents"]} == {
        "Guide": ("new", 4),
        "Two": ("new", 1),
        "three.txt": ("new", 1),
    }
    assert len(told["problems"]) == 1
    assert "broken.md" in first.stderr
    assert first.returncode == 1, "one of them is no text"
    again = run("docs", "ingest", "docs")
    assert again.stdout.count("unchanged") == 3
    shown = run("docs", "search", "heron")
    assert "two.rst" in shown.stdout


def test_one_odd_name_in_a_folder_does_not_keep_the_rest_out(project: Path) -> None:
    write(project, "docs/guide.md", GUIDE)
    (project / "docs" / os.fsdecode(b"caf\xe9.md")).write_text(GUIDE)
    ran = subprocess.run(
        [BACKSTORY, "docs", "ingest", "docs"], cwd=project, capture_output=True, text=True, check=False
    )
    assert "fault of backstory" not in ran.stderr
    assert (ran.returncode, ran.stdout.count("Document ingested")) in ((1, 1), (0, 2))


# --- HTML ---------------------------------------------------------------------------------------------------

PAGE = """<!doctype html><html><head><title>The walrus page</title><script>var tracking = 1</script></head>
<body><nav><a href="/">Home</a> <a href="/shop">Shop</a></nav>
<main><h1>The walrus</h1><p>A walrus is a large animal of the north, and it sleeps on the ice for most of the
day, which surprises many visitors.</p><h2>Food</h2><p>It eats clams, which it finds with its whiskers on the
floor of the sea.</p><pre><code class="language-python">feed_walrus(clams=7)</code></pre></main>
<footer>All rights reserved by nobody</footer></body></html>"""


def test_an_html_file_is_read_without_what_stands_around_it(db: sqlite3.Connection, project: Path) -> None:
    done = take(db, project, path=write(project, "walrus.html", PAGE))
    assert (done.title, done.state) == ("The walrus page", "new")
    told = "\n".join(f"{heading}\n{text}" for heading, text in chunks(db, done.id))
    assert "The walrus > Food" in told
    assert "feed_walrus(clams=7)" in told
    for noise in ("tracking", "Shop", "All rights"):
        assert noise not in told
    (best, *_) = found(db, project, "whiskers")
    assert (best.heading, best.document.kind) == ("The walrus > Food", "html")
    assert take(db, project, path="walrus.html").state == "unchanged"


def test_an_html_file_without_text_is_refused(db: sqlite3.Connection, project: Path) -> None:
    with pytest.raises(BadInput, match="no text"):
        take(db, project, path=write(project, "empty.html", "<html><body><script>x</script></body></html>"))


def test_a_secret_in_html_is_left_out(db: sqlite3.Connection, project: Path) -> None:
    page = PAGE.replace("whiskers", "AKIAIOSFODNN7EXAMPLQ").replace(
        "walrus page", "AKIAIOSFODNN7EXAMPLQ page"
    )
    take(db, project, path=write(project, "walrus.html", page))
    assert "AKIAIOSFODNN7EXAMPLQ" not in "\n".join(db.iterdump())
    assert memories.count(db) == 0
