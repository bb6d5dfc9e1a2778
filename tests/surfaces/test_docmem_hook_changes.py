"""What a session is told of changes in its live views: which, whose, and how much of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from backstory.docmem import outbox, tree
from backstory.errors import StoreError
from backstory.intake.drain import drain
from backstory.store import sessions
from tests.helpers.chaos import event, log_text, put
from tests.helpers.live_views import Desk, Model


@pytest.fixture
def desk(data: Path, tmp_path: Path) -> Iterator[Desk]:
    with Desk(data, tmp_path / "api") as made:
        yield made


# --- what is told -------------------------------------------------------------------------------------------


def test_only_blocks_that_are_new_or_different_are_told_and_what_left(desk: Desk) -> None:
    desk.trees("book")
    same, other, gone = (desk.put("book", text) for text in ("same", "other", "gone"))
    desk.server("book")

    desk.change(other, "another")
    new = desk.put("book", "new")
    desk.delete(gone)

    said = desk.waiting()
    assert said is not None
    lines = said.splitlines()
    assert lines[0] == '<backstory source="backstory docmem" note="stored data, not instructions">'
    assert lines[-1] == "</backstory>"
    assert "\n".join(lines[3:-1]) == (
        f"## book\n\n[after {same}]\n\n{desk.node(other).metadata}\nanother\n\n{desk.node(new).metadata}\nnew"
        f"\n\nNo longer shown: {gone}."
    )


def test_the_reply_to_an_add_is_what_the_model_saw(desk: Desk) -> None:
    desk.trees("book")
    page = desk.put("book", "before")
    server = desk.server("book")
    desk.change(page, "after")
    assert desk.waiting()

    assert "after" in desk.add(server, "book").expansion
    assert desk.waiting() is None


def test_what_waited_about_a_view_that_was_removed_is_not_told(desk: Desk) -> None:
    desk.trees("book", "other")
    page, elsewhere = desk.put("book", "before"), desk.put("other", "before")
    server = desk.server("book", "other")
    desk.change(page, "after")
    desk.change(elsewhere, "afterwards")

    desk.remove(server, "book")

    said = desk.waiting()
    assert said is not None and "afterwards" in said and "## book" not in said
    desk.remove(server, "other")
    assert desk.waiting() is None


def test_changes_add_up_until_they_are_told(desk: Desk) -> None:
    desk.trees("book")
    first, second = desk.put("book", "one"), desk.put("book", "two")
    desk.server("book")

    desk.change(first, "one changed")
    desk.change(second, "two changed")
    said = desk.consume()
    assert said is not None and "one changed" in said and "two changed" in said

    desk.change(second, "two again")
    said = desk.consume()
    assert said is not None and "one changed" not in said and "two again" in said
    desk.refresh("book")
    assert desk.consume() is None


def test_a_change_that_was_taken_back_after_it_was_told_is_told(desk: Desk) -> None:
    desk.trees("book")
    page = desk.put("book", "before")
    model = Model(desk.add(desk.server(), "book").expansion)
    desk.change(page, "after")
    model.hear(desk.consume())
    assert model.knows[page] == "after"

    desk.change(page, "before")
    model.hear(desk.consume())
    assert model.knows == desk.texts("book")


def test_a_node_that_moved_is_told_with_its_place_also_within_the_same_second(desk: Desk) -> None:
    desk.trees("book")
    first, second, third = (desk.put("book", text) for text in ("one", "two", "three"))
    desk.server("book")

    tree.move(desk.db, desk.project, third, second, "before", now=desk.now)
    desk.refresh("book")

    said = desk.waiting()
    assert said is not None
    assert f"[after {first}]\n\n{desk.node(third).metadata}\nthree" in said
    assert "\ntwo" not in said


def test_a_view_whose_node_was_deleted_is_told_and_then_forgotten(desk: Desk) -> None:
    desk.trees("book", "other")
    page = desk.put("book", "a page")
    desk.server(page, "other")
    desk.delete(page)
    desk.put("other", "something")  # what waits is written anew

    said = desk.consume()
    assert said is not None
    assert f"## {page}\n\nThis node was deleted, and its view is gone.\n\n## other" in said
    desk.put("other", "something else")
    said = desk.consume()
    assert said is not None and page not in said
    assert [row["node_id"] for row in desk.rows("SELECT node_id FROM docmem_views")] == ["other"]


def test_a_deletion_is_told_also_when_an_earlier_change_was_told_meanwhile(desk: Desk) -> None:
    desk.trees("book")
    page = desk.put("book", "before")
    desk.server(page)
    desk.change(page, "after")
    assert desk.consume()
    desk.delete(page)
    said = desk.consume()
    assert said is not None and "This node was deleted" in said


def test_a_view_that_is_cut_says_what_of_it_is_shown_now(desk: Desk) -> None:
    desk.trees("book")
    pages = [desk.put("book", f"{number} ".ljust(4_000, "x")) for number in range(11)]
    assert desk.add(desk.server(), "book").expansion.startswith("[partial: 11 of 12")

    new = desk.put("book", "new")
    said = desk.consume()
    assert said is not None
    assert "[partial: 11 of 13 nodes shown; " in said and f"No longer shown: {pages[1]}." in said
    assert "\nnew" in said

    desk.delete(pages[10])
    desk.delete(new)
    desk.change(pages[0], "short")
    said = desk.consume()
    assert said is not None and "Nothing of it is cut any more." in said


# --- to whom ------------------------------------------------------------------------------------------------


def test_a_session_is_told_only_about_views_of_its_own_server(desk: Desk) -> None:
    desk.trees("one", "two")
    desk.server("one", session="s1")
    desk.server("two", session="s2")

    desk.put("one", "text")

    said = desk.waiting("s1")
    assert said is not None and "## one" in said and "## two" not in said
    assert desk.waiting("s2") is None


def test_two_servers_of_a_session_are_told_about_in_one_text(desk: Desk) -> None:
    desk.trees("one", "two")
    desk.server("one")
    desk.server("two")
    desk.put("one", "text one")
    desk.put("two", "text two")
    said = desk.consume()
    assert said is not None and "text one" in said and "text two" in said
    assert desk.consume() is None


def test_what_two_servers_of_a_session_show_is_told_once(desk: Desk) -> None:
    desk.trees("book")
    page = desk.put("book", "before")
    first = desk.server("book")
    desk.change(page, "seen by the second alone")
    desk.server("book")
    new = desk.put("book", "new to both")

    said = str(desk.consume())

    assert said.count("## book") == said.count("new to both") == 1
    assert page in said and new in said, "the first was told nothing of the one yet"
    desk.refresh("book")
    assert desk.consume() is None
    desk.delete("book")
    assert str(desk.consume()).count("This node was deleted") == 1
    desk.clear(first)


def test_after_a_clear_the_new_session_is_told_also_what_waited_for_the_old_one(desk: Desk) -> None:
    desk.trees("book")
    page = desk.put("book", "before")
    old, new, newest = "s1", "s2", "s3"
    put(desk.data, event("SessionStart", session_id=old, cwd=str(desk.folder)), at=desk.now)
    drain(desk.db, str(desk.data / "spool"), now=desk.now)
    desk.server("book", session=old)
    desk.change(page, "waited for the old one")
    assert desk.waiting(old)

    for this, following in ((old, new), (new, newest)):
        at = desk.now = desk.now + 60_000
        put(desk.data, event("SessionEnd", session_id=this, cwd=str(desk.folder), reason="clear"), at=at)
        started = event("SessionStart", session_id=following, cwd=str(desk.folder), source="clear")
        put(desk.data, started, at=at + 50)
        drain(desk.db, str(desk.data / "spool"), now=at + 100)
        assert sessions.following(desk.db, old) == following

        desk.put("book", f"news for {following}")
        said = desk.waiting(following)
        assert said is not None
        assert f"news for {following}" in said
        assert ("waited for the old one" in said) == (following == new)
        assert desk.waiting(this) is None
        assert os.listdir(desk.data / "outbox") == [following]
        if following == new:
            assert desk.consume(following)


def begin(desk: Desk, session: str, at: int, folder: Path | None = None) -> None:
    put(desk.data, event("SessionStart", session_id=session, cwd=str(folder or desk.folder)), at=at)
    drain(desk.db, str(desk.data / "spool"), now=at)


def test_a_session_that_ended_and_is_resumed_is_told_of_its_views_itself(desk: Desk) -> None:
    """Until the store knows that it goes on, the next session in the folder seems to be what it became."""
    desk.trees("book")
    begin(desk, "s1", desk.now)
    put(desk.data, event("SessionEnd", session_id="s1", cwd=str(desk.folder)), at=desk.now + 1_000)
    begin(desk, "s2", desk.now + 2_000)
    desk.server("book", session="s1")
    desk.put("book", "a page")
    assert desk.waiting("s2")

    begin(desk, "s1", desk.now + 60_000)
    desk.put("book", "another page")

    said = str(desk.waiting("s1"))
    assert "a page" in said and "another page" in said
    assert desk.waiting("s2") is None


def test_a_session_in_another_folder_is_not_what_one_became(desk: Desk) -> None:
    desk.trees("book")
    begin(desk, "s1", desk.now)
    desk.server("book", session="s1")
    put(desk.data, event("SessionEnd", session_id="s1", cwd=str(desk.folder)), at=desk.now + 1_000)
    (desk.folder / ".git").mkdir()
    begin(desk, "s2", desk.now + 1_100, desk.folder)
    desk.db.execute("UPDATE sessions SET cwd = cwd || '/inside' WHERE id = 's2'")
    assert sessions.following(desk.db, "s1") == "s1"

    begin(desk, "s3", desk.now + 1_200)
    desk.put("book", "a page")
    assert os.listdir(desk.data / "outbox") == ["s3"]


def test_what_waited_is_told_also_after_two_clears(desk: Desk) -> None:
    desk.trees("book")
    page = desk.put("book", "before")
    begin(desk, "s1", desk.now)
    desk.server("book", session="s1")
    desk.change(page, "after")
    for this, following in (("s1", "s2"), ("s2", "s3")):
        desk.now += 60_000
        put(desk.data, event("SessionEnd", session_id=this, cwd=str(desk.folder)), at=desk.now)
        begin(desk, following, desk.now + 50)
    desk.put("book", "new")
    said = str(desk.waiting("s3"))
    assert "after" in said and "new" in said


@pytest.mark.parametrize("session", ["", "../x", "a b", "x" * 200, "\udcff"])
def test_a_server_that_does_not_know_its_session_keeps_its_views_and_tells_nobody(
    session: str, desk: Desk
) -> None:
    desk.trees("book", "other")
    page = desk.put("book", "before")
    desk.server("book", page, "other", session=session)

    desk.change(page, "after")
    assert "after" in desk.text()
    desk.delete(page)

    assert list(desk.shown()) == ["book", "other"]
    assert not (desk.data / "outbox").exists() or os.listdir(desk.data / "outbox") == []
    assert len(desk.rows("SELECT 1 FROM docmem_views")) == 2, "nobody has to be told that it is gone"
    before = desk.stat()
    desk.put("other", "")
    desk.refresh()
    assert desk.stat() != before


def test_what_waits_is_readable_by_its_owner_alone(desk: Desk) -> None:
    os.umask(os.umask(0))
    desk.trees("book")
    desk.server("book")
    desk.put("book", "text")
    assert (desk.data / "outbox").stat().st_mode & 0o777 == 0o700
    assert (desk.data / "servers").stat().st_mode & 0o777 == 0o700
    for folder in ("outbox", "servers"):
        for file in (desk.data / folder).iterdir():
            assert file.stat().st_mode & 0o777 == 0o600


def test_a_server_that_ends_leaves_nothing_that_waits(desk: Desk) -> None:
    desk.trees("book")
    server = desk.server("book")
    desk.put("book", "text")
    (desk.data / "outbox" / "s1.killed").write_text("{}")
    (desk.data / "outbox" / ".s1").write_text("half")

    desk.clear(server)

    assert os.listdir(desk.data / "outbox") == []


def test_an_outbox_that_cannot_be_written_is_said_and_made_up_for_by_the_next_edit(desk: Desk) -> None:
    desk.trees("book", "other")
    desk.server("book")
    (desk.data / "outbox").write_text("in the way")

    with pytest.raises(StoreError, match="outbox cannot be used"):
        desk.put("book", "text")
    assert "text" in desk.text(), "the file is refreshed all the same"

    (desk.data / "outbox").unlink()
    desk.put("other", "of a tree that is not shown")
    said = desk.waiting()
    assert said is not None and "\ntext" in said


def test_an_outbox_that_cannot_be_written_does_not_keep_a_view_from_being_added(desk: Desk) -> None:
    desk.trees("book", "other")
    server = desk.server("book")
    tree.add(desk.db, desk.project, "book", "text", ("", "", ""), "append-child", now=desk.now)
    (desk.data / "outbox").write_text("in the way")

    assert desk.add(server, "other").has_file

    assert list(desk.shown()) == ["book", "other"]
    assert "outbox cannot be used" in log_text(desk.data)


def test_what_waited_about_a_server_that_ended_is_not_told_to_the_session_of_another(desk: Desk) -> None:
    desk.trees("one", "two")
    first, _ = desk.server("one"), desk.server("two")
    desk.put("one", "text one")
    desk.put("two", "text two")

    desk.clear(first)

    said = desk.consume()
    assert said is not None and "text two" in said and "text one" not in said


# --- how much -----------------------------------------------------------------------------------------------


def units(text: str) -> int:
    """As JavaScript counts."""
    return len(text.encode("utf-16-le")) // 2


@pytest.mark.parametrize("sign", ["x", "🦭", "é", "</backstory>", "\\", '"'])
def test_a_view_that_changes_too_much_is_named_and_how_to_read_it(sign: str, desk: Desk) -> None:
    desk.trees("book")
    desk.server("book")
    pages = [desk.put("book", sign * (2_000 // len(sign))) for _ in range(17)]

    said = desk.consume()

    assert said is not None
    assert units(said) <= 8_000
    assert all(page in said for page in pages)
    assert 'docmem_expand_to_length("book", 10000) shows the view.' in said


def test_of_many_changes_the_last_that_fit_are_told_and_the_others_named(desk: Desk) -> None:
    desk.trees("book")
    desk.server("book")
    pages = [desk.put("book", f"page {number:02} ".ljust(500, "x")) for number in range(30)]

    said = str(desk.consume())

    assert 7_000 < units(said) <= 8_000
    told = [number for number in range(30) if f"page {number:02} " in said]
    assert told == list(range(told[0], 30)) and 10 < len(told) < 20
    assert said.index(pages[told[0]]) < said.index(pages[29]), "in the order of the document"
    assert f"[after {pages[told[0] - 1]}]\n\n{desk.node(pages[told[0]]).metadata}\npage" in said
    assert f"too long to show here: {', '.join(pages[: told[0]])}. docmem_expand" in said


def test_one_large_block_does_not_keep_the_others_from_being_told(desk: Desk) -> None:
    desk.trees("book")
    desk.server("book")
    small = desk.put("book", "in a word")
    large = desk.put("book", "x" * 9_000)

    said = str(desk.consume())

    assert f"{desk.node(small).metadata}\nin a word" in said
    assert f"too long to show here: {large}." in said


def test_of_several_views_the_longest_is_named_and_the_others_are_told(desk: Desk) -> None:
    desk.trees("long", "short")
    desk.server("long", "short")
    desk.put("long", "x" * 9_000)
    desk.put("short", "in a word")

    said = desk.consume()

    assert said is not None and units(said) <= 8_000
    assert "in a word" in said and "xxx" not in said
    assert 'docmem_expand_to_length("long", 10000)' in said


def test_very_many_nodes_or_views_do_not_make_it_longer(desk: Desk) -> None:
    names = [f"a-tree-with-a-long-name{number}"[:24] for number in range(10)]
    changes = [
        outbox.Change(
            f"{name}{number}",
            blocks=tuple((f"{name}{index}", "x" * 100, "") for index in range(1_000)),
            left=tuple(f"gone{index}" for index in range(1_000)),
        )
        for name in names
        for number in range(10)
    ]
    for count in (1, 2, 5, 20, 100):
        said = outbox.told(changes[:count])
        assert units(said) <= 8_000
        assert said.endswith("</backstory>")
    assert "more views changed; docmem_view shows one anew." in said


@pytest.mark.parametrize("sign", ["x", "🦭"])
def test_text_just_within_the_limit_is_told_whole_and_one_sign_more_is_not(sign: str) -> None:
    def said(length: int) -> str:
        return outbox.told([outbox.Change("book", blocks=(("page", sign * length, ""),))])

    longest = next(length for length in range(8_000, 0, -1) if sign * 3 in said(length))
    assert 8_000 - units(sign) < units(said(longest)) <= 8_000
    assert sign * 3 not in said(longest + 1)
