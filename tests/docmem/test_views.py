"""Live views: what servers show in CLAUDE.md, whoever edits, starts, ends or dies."""

from __future__ import annotations

import os
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from backstory import paths
from backstory.claude_md.write import writer
from backstory.docmem import expand, tree
from backstory.docmem.views import Shown, Views
from backstory.errors import BackstoryError, BadInput, Conflict, NotFound
from backstory.store import nodes, projects
from backstory.store.file.connection import transaction
from backstory.surfaces.view_files import Removed
from tests.helpers.live_views import Desk

NOTE = ("note", "", "")


# --- the list of a server -----------------------------------------------------------------------------------


def test_views_stand_in_the_order_in_which_they_were_added(desk: Desk) -> None:
    desk.trees("one", "two", "three")
    server = desk.server()
    for number, name in enumerate(("two", "one", "three"), 1):
        assert desk.add(server, name).views == number

    assert list(desk.shown()) == ["two", "one", "three"]
    assert desk.text().startswith("# Mine\n\n# DOCMEM Dynamic\n\n## two\n\ntwo root:two: ")


def test_a_view_that_is_added_again_moves_to_the_end(desk: Desk) -> None:
    desk.trees("one", "two", "three")
    server = desk.server("one", "two", "three")

    assert desk.add(server, "one").views == 3

    assert list(desk.shown()) == ["two", "three", "one"]


def test_nothing_is_written_before_the_first_view(desk: Desk) -> None:
    before = desk.stat()
    server = desk.server()

    assert desk.stat() == before
    assert not server.is_used
    assert not (desk.data / "servers").exists()


def test_removing_a_view_leaves_the_others_in_their_order(desk: Desk) -> None:
    desk.trees("one", "two", "three")
    server = desk.server("one", "two", "three")

    removed = desk.remove(server, "two")

    assert (removed.was_shown, removed.views, removed.has_file) == (True, 2, True)
    assert desk.mirror() == list(desk.shown()) == ["one", "three"]


def test_removing_what_is_not_shown_changes_nothing(desk: Desk) -> None:
    desk.trees("one", "two")
    server = desk.server("one")
    before = desk.stat()

    for node_id in ("two", "nowhere", ""):
        removed = desk.remove(server, node_id)
        assert (removed.was_shown, removed.views) == (False, 1)
    assert not desk.remove(desk.server(), "one").was_shown, "another server's view is not its own"
    assert desk.stat() == before
    assert desk.mirror() == ["one"]


def test_with_the_last_view_the_section_goes_and_the_file_is_what_it_was(desk: Desk) -> None:
    desk.trees("one", "two")
    person = b"# Mine\r\n\r\nno line break at the end"
    desk.file.write_bytes(person)
    server = desk.server("one", "two")
    assert desk.file.read_bytes() != person

    desk.remove(server, "one")
    desk.remove(server, "two")

    assert desk.file.read_bytes() == person
    assert desk.mirror() == []


def test_a_node_that_does_not_exist_is_refused_with_where_to_look(desk: Desk) -> None:
    desk.trees("one")
    server = desk.server("one")
    before = desk.stat()

    for node_id in ("nowhere1", "", "../one", "x" * 1000, "one\n"):
        with pytest.raises(NotFound, match="docmem_list lists trees, docmem_structure their nodes"):
            desk.add(server, node_id)

    assert desk.mirror() == ["one"]
    assert desk.stat() == before


def test_any_node_may_be_shown_and_all_below_it_is(desk: Desk) -> None:
    desk.trees("book")
    chapter = desk.put("book", "a chapter")
    page = desk.put(chapter, "a page")
    aside = desk.put("book", "something else")

    viewed = desk.add(desk.server(), chapter)

    assert viewed.expansion == expand.expand(desk.db, desk.project.number, desk.node(chapter), 10_000)
    assert desk.shown() == {chapter: viewed.expansion}
    assert page in viewed.expansion and aside not in viewed.expansion


def test_a_view_is_cut_at_ten_thousand_tokens_and_says_so(desk: Desk) -> None:
    desk.trees("book")
    for number in range(30):
        desk.put("book", f"{number:02} ".ljust(4_000, "x"))  # a thousand tokens each

    viewed = desk.add(desk.server(), "book")

    assert viewed.expansion.startswith("[partial: 11 of 31 nodes shown; ")
    assert viewed.expansion == expand.expand(desk.db, desk.project.number, viewed.node, 10_000)
    assert desk.shown() == {"book": viewed.expansion}


def test_a_node_that_is_larger_than_the_budget_is_a_view_without_nodes(desk: Desk) -> None:
    desk.trees("book")
    large = desk.put("book", "x" * 50_000)

    viewed = desk.add(desk.server(), large)

    assert viewed.expansion.startswith("[partial: 0 of 1 nodes shown; ")
    assert desk.shown() == {large: viewed.expansion}


def test_the_list_survives_calls_each_with_a_connection_of_its_own(desk: Desk) -> None:
    desk.trees("one", "two")
    server = desk.server()
    for name in ("one", "two"):
        with desk.another_connection() as db:
            desk.add(server, name, db)

    assert desk.mirror() == list(desk.shown()) == ["one", "two"]


def test_the_list_does_not_outlive_its_server(desk: Desk) -> None:
    desk.trees("one")
    desk.server("one")

    assert desk.remove(desk.server(), "one") == Removed(False, 0, True)


# --- no CLAUDE.md, or none that can be written --------------------------------------------------------------


def test_without_a_claude_md_nothing_changes_but_the_node_is_expanded(desk: Desk) -> None:
    desk.trees("one")
    desk.file.unlink()
    server = desk.server()

    viewed = desk.add(server, "one")

    assert not viewed.has_file
    assert (viewed.views, desk.mirror()) == (0, [])
    assert viewed.expansion == expand.expand(desk.db, desk.project.number, viewed.node, 10_000)
    assert not desk.file.exists()
    assert not (desk.data / "servers").exists()


def test_when_claude_md_went_away_the_list_stays_also_when_something_is_removed(desk: Desk) -> None:
    desk.trees("one", "two")
    server = desk.server("one")
    desk.file.unlink()

    assert not desk.remove(server, "one").has_file
    assert not desk.add(server, "two").has_file
    assert desk.mirror() == ["one"]

    desk.file.write_text("# Back\n")
    desk.add(server, "two")
    assert list(desk.shown()) == ["one", "two"]


@pytest.mark.parametrize("mode", [0o444, 0o200, 0o000])
def test_a_claude_md_that_cannot_be_read_or_written_is_an_error_and_changes_nothing(
    mode: int, desk: Desk
) -> None:
    desk.trees("one", "two")
    server = desk.server("one")
    desk.file.chmod(mode)

    with pytest.raises(BackstoryError, match=r"CLAUDE\.md cannot be"):
        desk.add(server, "two")
    with pytest.raises(BackstoryError, match=r"CLAUDE\.md cannot be"):
        desk.remove(server, "one")

    assert desk.mirror() == ["one"]
    assert not desk.db.in_transaction
    desk.file.chmod(0o644)
    desk.add(server, "two")
    assert desk.mirror() == list(desk.shown()) == ["one", "two"]


def test_a_write_that_fails_after_the_mirror_was_changed_undoes_that(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.trees("one", "two")
    server = desk.server("one")

    def full(folder: str, data: str, shown: Shown, *_: object, **__: object) -> bool:
        assert [node_id for node_id, _ in shown] == ["one", "two"]
        assert desk.rows("SELECT count(*) FROM docmem_views")[0][0] == 2
        raise BadInput("the disk is full")

    monkeypatch.setattr(writer, "put_views", full)
    with pytest.raises(BadInput):
        desk.add(server, "two")
    assert desk.mirror() == ["one"]
    monkeypatch.setattr(writer, "put_views", lambda *_, **__: False)  # it went at the last moment
    assert not desk.add(server, "two").has_file
    assert not desk.remove(server, "one").has_file
    assert desk.mirror() == ["one"]
    monkeypatch.undo()
    assert desk.add(server, "two").views == 2


def test_a_file_that_changes_under_the_writer_shows_the_views_all_the_same(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.trees("one", "two")
    server = desk.server("one")
    put = writer.put_views

    def meanwhile(*given: Any, **how: Any) -> bool:
        desk.file.write_text("# Another\n")
        return put(*given, **how)

    monkeypatch.setattr(writer, "put_views", meanwhile)
    desk.add(server, "two")
    assert desk.text().startswith("# Another\n")
    assert desk.mirror() == list(desk.shown()) == ["one", "two"]


def test_while_the_file_is_open_in_another_program_nobody_keeps_the_store_busy(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.trees("one")
    server = desk.server()
    seen = []
    sleep = time.sleep

    def looking(seconds: float) -> None:
        seen.append(desk.is_locked())
        sleep(seconds)

    monkeypatch.setattr(writer, "PATIENCE", 0.1)
    with desk.file.open("a"), pytest.raises(Conflict, match="open for writing"):
        monkeypatch.setattr(time, "sleep", looking)
        desk.add(server, "one")

    assert seen and not any(seen)


def test_a_folder_whose_name_is_not_utf8_is_refused(desk: Desk, tmp_path: Path) -> None:
    desk.trees("one")
    folder = os.fsencode(tmp_path) + b"/\xff"
    os.mkdir(folder)
    with open(folder + b"/CLAUDE.md", "w") as file:
        file.write("# Mine\n")
    server = Views(str(desk.data), os.fsdecode(folder), "s")

    with pytest.raises(BadInput, match="is not UTF-8"):
        desk.add(server, "one")


# --- edits --------------------------------------------------------------------------------------------------


def test_an_edit_below_a_view_refreshes_it(desk: Desk) -> None:
    desk.trees("book")
    page = desk.put("book", "before")
    desk.server("book")

    desk.change(page, "after")

    assert "before" not in desk.text()
    assert desk.shown() == {"book": expand.expand(desk.db, desk.project.number, desk.node("book"), 10_000)}


def test_an_edit_of_a_tree_that_nobody_shows_does_not_touch_the_file(desk: Desk) -> None:
    desk.trees("one", "two")
    desk.server("one")
    before = desk.stat()

    desk.put("two", "something")

    assert desk.stat() == before
    assert not (desk.data / "outbox").exists()


def test_an_edit_that_no_view_shows_does_not_rewrite_the_file(desk: Desk) -> None:
    desk.trees("book")
    left, right = desk.put("book", "left"), desk.put("book", "right")
    desk.server(left)
    before = desk.stat()

    desk.change(right, "another right")

    assert desk.stat() == before
    assert desk.waiting() is None


def in_two_folders(desk: Desk) -> tuple[str, Path]:
    """A page of a book that servers in two folders show; the second folder."""
    desk.trees("book")
    page = desk.put("book", "before")
    inside = desk.folder / "inside"
    inside.mkdir()
    (inside / "CLAUDE.md").write_text("# Inside\n")
    desk.server("book")
    desk.add(Views(str(desk.data), str(inside), "s2"), "book")
    return page, inside


def test_views_in_every_folder_of_a_project_follow_an_edit(desk: Desk) -> None:
    page, inside = in_two_folders(desk)

    desk.change(page, "after")

    assert "after" in desk.text() and "after" in (inside / "CLAUDE.md").read_text()


def test_a_folder_that_cannot_be_written_does_not_keep_the_others_from_it(desk: Desk) -> None:
    page, inside = in_two_folders(desk)
    desk.file.chmod(0o444)

    with pytest.raises(BackstoryError, match=r"CLAUDE\.md cannot be written"):
        desk.change(page, "after")

    assert "after" in (inside / "CLAUDE.md").read_text()
    assert "after" in str(desk.waiting("s1")), "and the model is told all the same"
    desk.file.chmod(0o644)
    desk.change(page, "later")
    assert "later" in desk.text()


def test_without_a_claude_md_the_model_is_still_told_what_changes_in_its_views(desk: Desk) -> None:
    desk.trees("book")
    page = desk.put("book", "before")
    desk.server("book")
    desk.file.unlink()

    desk.change(page, "after")

    assert "after" in str(desk.waiting())
    assert desk.mirror() == ["book"]
    assert not desk.file.exists()


def test_another_project_with_the_same_ids_is_another_matter(desk: Desk, data: Path, tmp_path: Path) -> None:
    desk.trees("book")
    desk.server("book")
    with Desk(data, tmp_path / "other") as other:
        other.trees("book")
        other.add(Views(str(data), str(other.folder), "s2"), "book")
        before = desk.stat()

        other.put("book", "only there")

        assert desk.stat() == before
        assert "only there" in other.text()
        assert desk.waiting("s1") is None and other.waiting("s2")


def test_views_of_an_edit_that_nobody_refreshed_are_mended_by_the_next_add(desk: Desk) -> None:
    desk.trees("book", "other")
    page = desk.put("book", "before")
    server = desk.server("book")
    tree.update_content(desk.db, desk.project, page, "after", now=desk.now)  # and was killed

    desk.add(server, "other")

    assert "after" in desk.text()
    assert "after" in str(desk.waiting())


# --- nodes that are deleted ---------------------------------------------------------------------------------


def test_a_deleted_node_leaves_file_mirror_and_list(desk: Desk) -> None:
    desk.trees("book", "other")
    page = desk.put("book", "a page")
    server = desk.server("book", page, "other")

    desk.delete(page)

    assert list(desk.shown()) == desk.mirror() == ["book", "other"]
    assert page not in desk.text()
    desk.remove(server, "other")
    assert desk.mirror() == ["book"]
    assert not desk.remove(server, page).was_shown


def test_what_was_deleted_is_not_counted(desk: Desk) -> None:
    desk.trees("one", "two", "three")
    server = desk.server("one", "two")
    desk.delete("two")

    assert desk.remove(server, "two") == Removed(False, 1, True)
    assert desk.remove(server, "three") == Removed(False, 1, True)
    assert desk.add(server, "three").views == 2


def test_with_the_last_deleted_node_the_section_goes(desk: Desk) -> None:
    desk.trees("book")
    server = desk.server("book")

    desk.delete("book")

    assert desk.file.read_text() == "# Mine\n"
    assert desk.mirror() == []
    desk.remove(server, "book")
    assert desk.mirror() == []


def test_a_tree_of_the_same_name_is_not_shown_before_it_is_added(desk: Desk) -> None:
    desk.trees("book", "other")
    server = desk.server("book")
    desk.delete("book")
    desk.trees("book")
    desk.put("book", "another book")

    desk.add(server, "other")
    assert desk.mirror() == list(desk.shown()) == ["other"]
    desk.add(server, "book")
    assert desk.mirror() == list(desk.shown()) == ["other", "book"]
    assert "another book" in desk.text()


@pytest.mark.parametrize("is_made_anew", [False, True])
def test_a_node_that_is_deleted_just_before_it_is_shown(
    is_made_anew: bool, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.trees("book", "other")
    server = desk.server("other")
    alone = writer.alone

    def meanwhile(folder: str, data: str, now: int) -> AbstractContextManager[bool]:
        monkeypatch.undo()
        desk.delete("book")
        if is_made_anew:
            desk.trees("book")
        return alone(folder, data, now)

    monkeypatch.setattr(writer, "alone", meanwhile)
    if is_made_anew:
        desk.add(server, "book")
        assert list(desk.shown()) == desk.mirror() == ["other", "book"]
    else:
        with pytest.raises(NotFound):
            desk.add(server, "book")
        assert list(desk.shown()) == desk.mirror() == ["other"]


# --- another project ----------------------------------------------------------------------------------------


def test_where_a_folder_is_given_to_another_project_its_views_go_and_are_not_called_deleted(
    desk: Desk, data: Path
) -> None:
    desk.trees("plan")
    server = desk.server("plan")
    with transaction(desk.db):
        other = projects.create(desk.db, "other", str(desk.folder), 1)
        projects.attach(desk.db, paths.place(str(desk.folder)), other, 1, said_by="user")
    with Desk(data, desk.folder) as later:
        assert later.project != desk.project
        later.trees("new")

        assert later.add(server, "new").views == 1

        assert list(later.shown()) == later.mirror() == ["new"]
        said = str(later.consume())
    assert "## plan\n\nThis view is gone: the folder belongs to another project now" in said
    assert "deleted" not in said


# --- what it costs ------------------------------------------------------------------------------------------


def test_an_edit_while_nobody_shows_anything_asks_the_store_once(desk: Desk) -> None:
    desk.trees("one")
    asked: list[str] = []
    desk.db.set_trace_callback(asked.append)
    desk.refresh("one")
    desk.db.set_trace_callback(None)
    assert len(asked) == 1


@pytest.mark.slow
def test_a_view_of_a_large_flat_tree_is_refreshed_at_the_cost_of_what_it_shows(desk: Desk) -> None:
    pages = (tree.Made(None, 0, f"{number} " + "x" * 120, NOTE) for number in range(20_000))
    tree.build(desk.db, desk.project, [tree.Made("book", None, "", ("root", "", "")), *pages], now=1)
    desk.server("book")
    last = next(nodes.children(desk.db, desk.project.number, "book", last_first=True))
    started = time.process_time()
    desk.change(last.id, "changed")
    assert time.process_time() - started < 2.0, "it takes some 30 ms"
    assert desk.shown()["book"].startswith("[partial: ")
    assert "changed" in desk.text()
