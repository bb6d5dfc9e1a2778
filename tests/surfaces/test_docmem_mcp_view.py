"""The MCP server `docmem`: what docmem_view shows in a CLAUDE.md, and what it leaves alone."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from backstory.claude_md.write.dynamic import END, HEADER
from tests.helpers.docmem_desk import STAMP, Desk, named, node, shown
from tests.helpers.mcp_client import Server

pytestmark = pytest.mark.slow


@pytest.fixture
def desk(docmem_server: tuple[Server, Path, Path], tmp_path: Path) -> Desk:
    return Desk(*docmem_server, tmp_path / "project")


class Page:
    """A desk whose server was started in a folder with a CLAUDE.md."""

    def __init__(self, desk: Desk, text: bytes = b"# Mine\n\nBoats are blue.\n") -> None:
        self.desk = desk
        self.file = desk.link.parent / "here" / "CLAUDE.md"
        self.file.write_bytes(text)
        self.before = text
        self.touched: set[str] = set()
        desk.create()

    def view(self, action: str, node_id: str) -> str:
        self.touched.add(node_id)
        return self.desk.ask("docmem_view", action=action, node_id=node_id)

    @property
    def text(self) -> bytes:
        return self.file.read_bytes()

    @property
    def shown(self) -> list[str]:
        return shown(self.text)

    def close(self) -> None:
        self.file.chmod(0o644) if self.file.exists() else self.file.write_bytes(b"")
        for node_id in self.touched:
            self.desk.ask("docmem_view", action="remove", node_id=node_id)
        assert not self.shown
        self.file.unlink()


@pytest.fixture
def page(desk: Desk) -> Iterator[Page]:
    made = Page(desk)
    yield made
    made.close()


def test_a_view_is_in_the_claude_md_of_the_working_directory(page: Page) -> None:
    (page.desk.project / "CLAUDE.md").write_text("# The project's\n")
    page.view("add", "notes")
    assert page.shown == ["notes"]
    assert (page.desk.project / "CLAUDE.md").read_text() == "# The project's\n"


def test_without_a_claude_md_a_view_changes_nothing_and_succeeds(page: Page) -> None:
    page.file.unlink()
    made = page.desk.add("a heron")
    reply = page.view("add", "notes")
    first, blank, expansion = reply.split("\n", 2)
    assert first.startswith("docmem_view: showed notes here only, since there is no CLAUDE.md in ")
    assert blank == ""
    assert expansion == expanded(page.desk, "notes")
    assert made in expansion
    assert not page.file.exists()
    assert "it was not shown" in page.view("remove", "notes")
    page.file.write_bytes(page.before)
    page.desk.add("another heron")
    assert page.text == page.before, "the list was to stay as it was"


def expanded(desk: Desk, node_id: str) -> str:
    reply = desk.ask("docmem_expand_to_length", node_id=node_id, max_tokens=10_000)
    return reply.removeprefix("docmem_expand_to_length:\n")


def test_the_section_comes_with_the_first_view_and_comes_last(page: Page) -> None:
    assert page.text == page.before
    page.desk.ask("docmem_expand_to_length", node_id="notes", max_tokens=100)
    page.view("remove", "notes")
    assert page.text == page.before, "only adding a view makes a section"
    reply = page.view("add", "notes")
    expansion = expanded(page.desk, "notes")
    assert re.match(rf"docmem_view: added notes root:notes: {STAMP} \(1 view in CLAUDE\.md\)\n\n", reply)
    assert reply.split("\n", 2)[2] == expansion
    section = b"\n%s\n\n## notes\n\n%s\n\n%s\n" % (HEADER, expansion.encode(), END)
    assert page.text == page.before + section


def test_the_section_goes_with_the_last_view(page: Page) -> None:
    made = page.desk.add("a heron")
    page.view("add", "notes")
    page.view("add", made)
    reply = page.view("remove", "notes")
    assert reply == "docmem_view: removed notes (1 view left in CLAUDE.md)"
    assert page.shown == [made]
    reply = page.view("remove", made)
    assert reply == f"docmem_view: removed {made} (0 views left in CLAUDE.md)"
    assert page.text == page.before


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"no newline at the end",
        b"# CRLF\r\n\r\nboats\r\n",
        b"\xef\xbb\xbf# BOM\n",
        b"not \xff UTF-8 and a \0\n",
        b"```\n# DOCMEM Dynamic\n```\nan example\n",
        b"\n\n\n",
    ],
)
def test_what_stands_above_the_section_is_never_changed(page: Page, text: bytes) -> None:
    page.file.write_bytes(text)
    page.view("add", "notes")
    assert page.text.startswith(text + b"\n" + HEADER + b"\n")
    page.desk.add("a heron")
    assert page.text.startswith(text + b"\n" + HEADER + b"\n")
    page.view("remove", "notes")
    assert page.text == text


def test_any_node_can_be_viewed_not_only_roots(page: Page) -> None:
    top = page.desk.add("top")
    below = page.desk.add("below", top)
    page.desk.add("beside")
    reply = page.view("add", top)
    assert page.shown == [top]
    assert below in reply
    assert b"beside" not in page.text


def test_views_come_in_the_order_in_which_they_were_added(page: Page) -> None:
    one, two, three = (page.desk.add(f"heron {number}") for number in range(3))
    for made in (two, three, one):
        page.view("add", made)
    assert page.shown == [two, three, one]
    for made in (one, two, three):
        assert b"\n## %s\n\n%s\n" % (made.encode(), expanded(page.desk, made).encode()) in page.text


def test_adding_what_is_shown_already_moves_it_to_the_end(page: Page) -> None:
    one, two = page.desk.add("one"), page.desk.add("two")
    for made in (one, two, one):
        reply = page.view("add", made)
    assert page.shown == [two, one]
    assert "(2 views in CLAUDE.md)" in reply
    page.view("remove", two)
    assert page.shown == [one]


def test_removing_what_is_not_shown_is_no_matter(page: Page) -> None:
    made = page.desk.add("a heron")
    page.view("add", "notes")
    before = page.text
    for node_id in (made, "nothere1", "", "x" * 5000):
        reply = page.desk.ask("docmem_view", action="remove", node_id=node_id)
        assert reply == f"docmem_view: removed {node_id[:60]} (it was not shown; 1 view in CLAUDE.md)"
    assert page.text == before


def test_removing_without_a_claude_md_leaves_the_view_as_it_was(page: Page) -> None:
    page.view("add", "notes")
    page.file.unlink()
    reply = page.view("remove", "notes")
    none = f"there is no CLAUDE.md in {os.path.realpath(page.file.parent)}"
    assert reply == f"docmem_view: removed nothing, notes stays as it was: {none}"


def test_a_view_whose_node_was_deleted_is_not_counted(page: Page) -> None:
    made = page.desk.add("a heron")
    page.view("add", "notes")
    page.view("add", made)
    page.desk.ask("docmem_delete", id=made)
    reply = page.view("remove", made)
    assert reply == f"docmem_view: removed {made} (it was not shown; 1 view in CLAUDE.md)"


def test_a_view_has_a_budget_of_10000_tokens(page: Page) -> None:
    texts = [page.desk.add(f"{number}" + "x" * 9_999) for number in range(5)]
    reply = page.view("add", "notes")
    assert '[partial: 5 of 6 nodes shown; docmem_structure("notes") lists the rest]' in reply
    assert reply.split("\n", 2)[2] == expanded(page.desk, "notes")
    assert texts[0] not in reply
    assert all(f"\n\n{made} ".encode() in page.text for made in texts[1:])


def test_a_claude_md_that_cannot_be_read_or_written_is_an_error_that_says_so(page: Page) -> None:
    page.view("add", "notes")
    before = page.text
    made = page.desk.add("a heron")
    before = page.text
    for mode, what in ((0o000, "cannot be read"), (0o222, "cannot be read"), (0o444, "cannot be written")):
        page.file.chmod(mode)
        for action, node_id in (("add", made), ("remove", "notes")):
            refusal = page.desk.refusal("docmem_view", action=action, node_id=node_id)
            assert f"{page.file} {what}" in refusal
    page.file.chmod(0o644)
    assert page.text == before
    page.view("add", made)
    assert page.shown == ["notes", made], "the list was to stay as it was"


def test_an_edit_stands_when_the_view_cannot_be_refreshed_and_the_reply_says_so(page: Page) -> None:
    page.view("add", "notes")
    page.file.chmod(0o444)
    reply = page.desk.ask("docmem_create_node", **node("a heron"))
    first, hashed, said = reply.split("\n")
    assert first.startswith("docmem_create_node: created ")
    assert hashed.startswith("hash: ")
    assert said.startswith(f"The views in CLAUDE.md could not be refreshed: {page.file} cannot be written (")
    gone = page.desk.ask("docmem_delete", id=first.split()[2])
    assert "could not be refreshed" in gone
    page.file.chmod(0o644)
    page.desk.add("another heron")
    assert b"another heron" in page.text


@pytest.mark.parametrize(
    "malformed",
    [
        b"# DOCMEM Dynamic\n",
        b"# DOCMEM Dynamic",
        b"# DOCMEM Dynamic\n\n## old\n\nsomething old\n",
        b"# DOCMEM Dynamic\n\n## old\n\n# DOCMEM Dynamic\n\n## older\n",
        b"<!-- end of DOCMEM Dynamic -->\n",
        b"# DOCMEM dynamic\n",
    ],
)
def test_a_malformed_section_is_followed_by_a_sound_one_and_nothing_of_theirs_is_lost(
    page: Page, malformed: bytes
) -> None:
    page.file.write_bytes(page.before + malformed)
    page.view("add", "notes")
    text = page.text
    assert text.startswith(page.before)
    assert len(re.findall(rb"^# DOCMEM Dynamic$", text, re.MULTILINE)) == 1
    assert page.shown == ["notes"]
    assert text.endswith(END + b"\n")


def test_what_a_person_writes_below_the_section_comes_above_it(page: Page) -> None:
    page.view("add", "notes")
    page.file.write_bytes(page.text + b"# New\n\nBoats are red.\n")
    page.desk.add("a heron")
    rest, _, section = page.text.partition(b"\n" + HEADER)
    assert rest == page.before + b"# New\n\nBoats are red.\n"
    assert b"a heron" in section
    page.view("remove", "notes")
    assert page.text == page.before + b"# New\n\nBoats are red.\n"


def test_every_edit_refreshes_the_views_before_its_reply(page: Page) -> None:
    desk = page.desk
    page.view("add", "notes")

    def is_shown() -> bool:
        return page.text.endswith(b"\n%s\n\n%s\n" % (expanded(desk, "notes").encode(), END))

    made = desk.add("a heron")
    assert made.encode() in page.text
    assert is_shown()
    desk.ask("docmem_update_content", id=made, content="two herons")
    assert b"two herons" in page.text
    desk.ask("docmem_update_context", id=made, **named(("bird", "", "")))
    assert b" bird:: " in page.text
    other = desk.add("a boat", made, "after")
    desk.ask("docmem_move_node", source_id=other, target_id=made, mode="before")
    assert page.text.index(b"a boat") < page.text.index(b"two herons")
    assert is_shown()
    desk.ask("docmem_copy_node", source_id=other, target_id="notes", mode="append-child")
    assert page.text.count(b"a boat") == 2
    desk.ask(
        "docmem_add_summary",
        start_node_id=other,
        end_node_id=made,
        content="all of it",
        **named(("summary", "", "")),
    )
    assert b"all of it" in page.text
    assert is_shown()
    desk.ask("docmem_delete", id=other)
    assert page.text.count(b"a boat") == 1
    assert is_shown()


def test_a_view_whose_node_is_deleted_goes(page: Page) -> None:
    made = page.desk.add("a heron")
    page.view("add", "notes")
    page.view("add", made)
    page.desk.ask("docmem_delete", id=made)
    assert page.shown == ["notes"]
    page.desk.ask("docmem_delete", id="notes")
    assert page.text == page.before


def test_an_edit_of_another_tree_leaves_the_file_alone(page: Page) -> None:
    page.view("add", "notes")
    page.desk.create("plans")
    before = page.file.stat()
    page.desk.add("a plan", "plans")
    assert page.file.stat().st_mtime_ns == before.st_mtime_ns
    assert page.file.stat().st_ino == before.st_ino


def test_calls_at_once_from_one_client_all_end_up_in_the_file(page: Page) -> None:
    page.view("add", "notes")
    threads = [threading.Thread(target=page.desk.add, args=(f"heron number {n};",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(b"heron number %d;" % number in page.text for number in range(8))
    assert len(re.findall(rb"^# DOCMEM Dynamic$", page.text, re.MULTILINE)) == 1
