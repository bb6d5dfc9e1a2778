"""Sections are written where they are ours, and offered where a person edited them: the three-way merge."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from backstory.claude_md.write import managed, sections, writer
from backstory.errors import BadInput, NotFound
from backstory.store import claude_files, projects
from backstory.store.file.connection import transaction
from tests.helpers.claude_md_project import TEMPLATE
from tests.helpers.managed_file import HOSTILE, NOW, Desk, git, owned


def backups(desk: Desk) -> list[bytes]:
    return [path.read_bytes() for path in sorted(desk.data.glob("backups/claude-md/*/*.md"))]


# --- ours, and a person's -----------------------------------------------------------------------------------


def test_an_empty_section_is_written(desk: Desk) -> None:
    assert desk.facts() == (None, False, None)
    assert desk.put("Tests first.") == "written"
    expected = TEMPLATE.replace("patterns -->\n", f"patterns -->\n{owned('Tests first.', 'model')}")
    assert desk.file.read_text() == expected
    assert desk.facts() == ("model", False, None)


def test_a_section_of_blank_lines_is_empty(desk: Desk) -> None:
    desk.write(" \n\t\n\r\n")
    assert desk.put("Tests first.") == "written"


def test_what_we_wrote_is_replaced(desk: Desk) -> None:
    desk.put("Tests first.")
    assert desk.put("Tests last.") == "written"
    assert desk.body() == "Tests last."


def test_the_same_text_again_leaves_the_file_alone(desk: Desk) -> None:
    desk.put("Tests first.\n\n- always")
    before = desk.file.stat()
    assert desk.put("\nTests first.  \r\n\r\n- always\n\n") == "unchanged"
    after = desk.file.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_what_a_person_edited_stays_and_the_new_text_is_offered(desk: Desk) -> None:
    desk.put("Tests first.")
    desk.edit("Tests first.", "Tests first, mostly.")
    before = desk.file.read_bytes()
    assert desk.put("Tests last.") == "offered"
    assert desk.file.read_bytes() == before
    assert desk.facts() == ("model", True, "Tests last.")


@pytest.mark.parametrize("edit", ["Tests  first.", "tests first.", " Tests first.", "Tests\nfirst."])
def test_any_edit_that_could_mean_something_is_one(desk: Desk, edit: str) -> None:
    desk.put("Tests first.")
    desk.edit("Tests first.", edit)
    if edit.startswith(" "):
        assert desk.body() == edit  # four of them would make it code
    assert desk.put("Tests last.") == "offered"


@pytest.mark.parametrize("edit", ["Tests first.  ", "\n\n\nTests first.\n\n", "Tests first.\t\r"])
def test_blanks_at_the_ends_of_lines_and_blank_lines_around_are_no_edit(desk: Desk, edit: str) -> None:
    desk.put("Tests first.")
    desk.edit("Tests first.", edit)
    assert desk.facts() == ("model", False, None)
    assert desk.put("Tests last.") == "written"


def test_a_blank_line_within_is_an_edit(desk: Desk) -> None:
    desk.put("one\ntwo")
    desk.edit("one\ntwo", "one\n\ntwo")
    assert desk.put("three") == "offered"


def test_a_file_turned_into_crlf_is_no_edit_and_stays_crlf(desk: Desk) -> None:
    desk.put("Tests first.\n\n- always")
    desk.file.write_bytes(desk.file.read_bytes().replace(b"\n", b"\r\n"))
    assert desk.put("Tests last.\n- never") == "written"
    text = desk.file.read_bytes()
    lines = owned("Tests last.\n- never", "model").replace("\n", "\r\n").encode()
    assert b"patterns -->\r\n" + lines + b"<!-- END" in text
    assert text.count(b"\n") == text.count(b"\r\n")


def test_a_section_that_nobody_knows_is_a_persons(desk: Desk) -> None:
    desk.write("By hand.")
    assert desk.facts() == (None, True, None)
    assert desk.put("Computed.", author="program") == "offered"
    assert desk.body() == "By hand."
    assert desk.facts() == (None, True, "Computed.")


def test_a_text_moved_to_another_section_is_a_persons_there(desk: Desk) -> None:
    desk.put("Tests first.")
    desk.write("Tests first.", "build-commands")
    assert desk.put("make", "build-commands") == "offered"


def test_a_text_that_was_turned_back_as_a_whole_is_ours_again(desk: Desk) -> None:
    desk.put("One.")
    before = desk.file.read_bytes()
    desk.put("Two.")
    desk.file.write_bytes(before)
    assert desk.put("Three.") == "written"
    desk.write("Two.")
    assert desk.state().is_edited
    assert desk.put("Four.") == "offered"


def test_a_section_that_a_person_emptied_is_written_again(desk: Desk) -> None:
    desk.put("Tests first.")
    desk.edit("Tests first.\n", "")
    assert desk.facts() == (None, False, None)
    assert desk.put("Computed.", author="program") == "written"
    assert desk.facts() == ("program", False, None)


def test_the_author_is_whose_text_is_there_now(desk: Desk) -> None:
    desk.put("Computed.", author="program")
    desk.put("Prose.", author="model")
    assert desk.facts() == ("model", False, None)
    desk.write("By hand.")
    assert desk.facts() == ("model", True, None)
    desk.write("Computed.")
    assert desk.put("Computed.", author="program") == "unchanged"
    assert desk.facts() == ("program", False, None)


def test_an_edit_that_is_no_utf8_is_seen_and_can_be_shown(desk: Desk) -> None:
    """Of a sign that cannot be shown we write a question mark, and an editor may save a byte like that."""
    desk.put("caf\x07.")
    text = desk.file.read_bytes()
    assert "caf\ufffd.".encode() in text
    desk.file.write_bytes(text.replace("\ufffd".encode(), b"\xe9"))
    assert desk.state().is_edited
    assert desk.state().body == desk.body() == "caf\ufffd."
    assert desk.put("caf\x07.") == "unchanged"  # there is nothing new to offer
    assert b"caf\xe9." in desk.file.read_bytes()
    assert desk.put("caf\x07!") == "offered"
    assert desk.state().offered == "caf\ufffd!"
    assert b"caf\xe9." in desk.file.read_bytes()
    desk.accept()
    assert "caf\ufffd!".encode() in desk.file.read_bytes()
    desk.put("what?")
    desk.file.write_bytes(desk.file.read_bytes().replace(b"what?", b"what\xff"))
    assert desk.put("New.") == "offered"


def test_what_is_computed_never_goes_over_a_models_prose(desk: Desk) -> None:
    """A sync that waits for an answer may have looked at the section before the prose was set."""
    desk.put("Computed.", author="program")
    desk.put("make", "build-commands", author="program")
    assert desk.put("Prose.", author="model") == "written"
    texts = {"patterns": "Computed anew.", "build-commands": "make it"}
    assert desk.put_many(texts) == {"patterns": "skipped", "build-commands": "written"}
    assert desk.put("Computed anew.", author="program") == "skipped"
    assert (desk.body(), desk.body("build-commands")) == ("Prose.", "make it")
    assert desk.facts() == ("model", False, None)
    assert desk.put("Prose.", author="program") == "unchanged"
    assert desk.facts() == ("model", False, None)
    assert desk.put("More prose.", author="model") == "written"


def test_what_was_computed_may_be_taken_by_a_person_in_place_of_edited_prose(desk: Desk) -> None:
    desk.put("Prose.", author="model")
    desk.write("By hand.")
    assert desk.put("Computed.", author="program") == "offered"
    desk.accept()
    assert (desk.body(), desk.facts()) == ("Computed.", ("program", False, None))
    assert desk.put("Computed anew.", author="program") == "written"


def test_a_model_that_hands_back_a_persons_text_does_not_make_it_ours(desk: Desk) -> None:
    """Else the next text would go over it."""
    desk.put("Computed.", author="program")
    desk.write("By hand.")
    assert desk.put("By hand.") == "unchanged"
    assert desk.state().is_edited
    assert desk.put("Prose.") == "offered"


def test_a_model_that_hands_back_a_computed_text_does_not_make_it_prose(desk: Desk) -> None:
    desk.put("Computed.", author="program")
    assert desk.put("Computed.") == "unchanged"
    assert desk.facts() == ("program", False, None)


def test_what_the_program_computes_and_finds_there_is_ours(desk: Desk) -> None:
    """Another store wrote it, on another machine, or before this one was lost."""
    desk.write("Computed.")
    assert desk.state().is_edited
    assert desk.put("Computed.", author="program") == "unchanged"
    assert desk.facts() == ("program", False, None)
    assert desk.put("Computed anew.", author="program") == "written"


def test_a_section_may_be_given_an_empty_text(desk: Desk) -> None:
    desk.put("Computed.", author="program")
    assert desk.put("", author="program") == "written"
    assert desk.file.read_text() == TEMPLATE
    assert desk.put("", author="program") == "unchanged"
    assert desk.put("Computed.", author="program") == "written"


# --- offers -------------------------------------------------------------------------------------------------


@pytest.fixture
def offered(desk: Desk) -> Desk:
    desk.put("Tests first.")
    desk.write("Tests first, mostly.")
    assert desk.put("Tests last.", author="program") == "offered"
    return desk


def test_an_offer_that_is_taken_is_written_and_ours(offered: Desk) -> None:
    before = offered.file.read_bytes()
    offered.accept()
    assert offered.body() == "Tests last."
    assert offered.facts() == ("program", False, None)
    assert before in backups(offered)
    assert offered.put("Tests?") == "written"


def test_an_offer_is_taken_whatever_the_person_wrote_since(offered: Desk) -> None:
    offered.write("Tests first, mostly always.")
    offered.accept()
    assert offered.body() == "Tests last."
    assert any(b"mostly always" in text for text in backups(offered))


def test_an_offer_that_is_turned_down_is_not_made_again_until_it_is_another(offered: Desk) -> None:
    offered.keep()
    assert offered.facts() == ("model", True, None)
    assert offered.put("Tests last.  \n") == "kept"
    assert offered.facts() == ("model", True, None)
    assert offered.put("Tests at last.") == "offered"
    assert offered.facts() == ("model", True, "Tests at last.")
    assert offered.body() == "Tests first, mostly."


def test_a_later_offer_takes_the_place_of_the_one_before(offered: Desk) -> None:
    assert offered.put("Tests at last.") == "offered"
    offered.accept()
    assert offered.facts() == ("model", False, None)
    assert offered.body() == "Tests at last."


def test_without_an_offer_there_is_nothing_to_take_or_turn_down(desk: Desk) -> None:
    for act in (desk.accept, desk.keep):
        with pytest.raises(NotFound, match=r"Nothing is offered for patterns in CLAUDE\.md"):
            act()
    desk.put("Tests first.")
    for act in (desk.accept, desk.keep):
        with pytest.raises(NotFound, match="section list"):
            act()


def test_an_offer_is_settled_by_whoever_writes_it_by_hand(offered: Desk) -> None:
    offered.write("Tests last.")
    assert offered.state().offered is None
    assert offered.put("Tests last.", author="program") == "unchanged"
    assert offered.facts() == ("program", False, None)
    with pytest.raises(NotFound):
        offered.accept()


def test_an_offer_that_is_in_the_file_already_is_ours_when_it_is_taken(offered: Desk) -> None:
    offered.write("Tests last.")
    offered.accept()
    assert owned("Tests last.") in offered.file.read_text()
    assert offered.facts() == ("program", False, None)


def test_an_offer_goes_with_the_edit(offered: Desk) -> None:
    offered.write("Tests first.")
    assert offered.put("Tests at last.") == "written"
    assert offered.state().offered is None


def test_an_offer_can_be_taken_by_who_made_room_for_it(offered: Desk) -> None:
    offered.write("")
    assert offered.facts() == (None, False, "Tests last.")
    offered.accept()
    assert offered.body() == "Tests last."


def test_an_offer_does_not_hold_where_the_section_is_ours(offered: Desk) -> None:
    """Another branch has our text, and nobody edited it there; the offer waits for the branch it is for."""
    edited = offered.file.read_bytes()
    offered.write("Tests first.")
    assert offered.facts() == ("model", False, None)
    before = offered.file.read_bytes()
    with pytest.raises(NotFound, match="Nothing is offered"):
        offered.accept()
    assert offered.file.read_bytes() == before
    offered.file.write_bytes(edited)
    assert offered.state().offered == "Tests last."


def test_an_offer_for_a_section_that_is_gone_cannot_be_taken(offered: Desk) -> None:
    offered.file.write_text("# api\n")
    with pytest.raises(NotFound, match="no section patterns"):
        offered.accept()
    assert offered.file.read_text() == "# api\n"
    offered.file.unlink()
    with pytest.raises(NotFound, match=r"no .*CLAUDE\.md; `backstory init` makes one"):
        offered.accept()


def test_of_a_section_every_text_that_a_person_wrote_is_backed_up(desk: Desk) -> None:
    """In a backup, our own texts take the place of older ones; theirs do not."""
    desk.put("Computed 0.")
    for number in range(1, 4):
        desk.write(f"By hand {number}.")
        assert desk.put(f"Computed {number}.") == "offered"
        desk.accept()
    kept = b"".join(backups(desk))
    assert [b"By hand %d." % number in kept for number in range(1, 4)] == [True] * 3


# --- several at once ----------------------------------------------------------------------------------------


def test_several_sections_are_written_at_once_each_with_its_outcome(desk: Desk) -> None:
    desk.put("Computed.", author="program")
    desk.write("make", "build-commands")
    texts = {"build-commands": "make all", "patterns": "Newer.", "architecture": "Layers."}
    assert desk.put_many(texts) == {
        "build-commands": "offered",
        "patterns": "written",
        "architecture": "skipped",
    }
    assert (desk.body("build-commands"), desk.body()) == ("make", "Newer.")


def test_a_section_that_is_unsound_is_skipped_and_the_others_are_written(desk: Desk) -> None:
    desk.edit("<!-- AUTO-MANAGED: build-commands -->", "<!-- AUTO-MANAGED: patterns -->")
    assert desk.put_many({"patterns": "Newer."}) == {"patterns": "skipped"}
    desk.edit("<!-- MANUAL -->", "<!-- AUTO-MANAGED: architecture -->\n<!-- END AUTO-MANAGED -->\n")
    found = desk.put_many({"patterns": "Newer.", "architecture": "Layers."})
    assert found == {"patterns": "skipped", "architecture": "written"}
    assert "Newer." not in desk.file.read_text()


def test_one_that_is_meant_alone_and_cannot_be_written_is_refused(desk: Desk) -> None:
    with pytest.raises(NotFound, match=r"there is no section architecture.*build-commands, patterns"):
        desk.put("Layers.", "architecture")
    desk.edit("<!-- AUTO-MANAGED: build-commands -->", "<!-- AUTO-MANAGED: patterns -->")
    with pytest.raises(BadInput, match="section patterns cannot be used: line"):
        desk.put("Newer.")
    assert claude_files.get(desk.db, str(desk.file)) is None


def test_where_there_is_no_file_one_is_made_only_on_demand(desk: Desk) -> None:
    desk.file.unlink()
    with pytest.raises(NotFound, match="backstory init"):
        desk.put_many({"patterns": "Newer."})
    assert not desk.file.exists()
    assert projects.every(desk.db) == []
    assert desk.put_many({"patterns": "Newer."}, create=TEMPLATE.encode()) == {"patterns": "written"}
    expected = TEMPLATE.replace("patterns -->\n", f"patterns -->\n{owned('Newer.')}")
    assert desk.file.read_text() == expected
    assert desk.facts() == ("program", False, None)


def test_a_file_that_appears_meanwhile_is_not_replaced_by_a_new_one(desk: Desk) -> None:
    assert desk.put_many({"patterns": "Newer."}, create=b"# other\n") == {"patterns": "written"}
    assert "Mine." in desk.file.read_text()


def test_what_else_is_to_be_done_to_the_file_is_done_in_the_same_write(desk: Desk) -> None:
    desk.file.write_text("# mine\n")

    def prepare(text: bytes) -> bytes:
        return sections.with_new(text, [("patterns", ""), ("architecture", "")])

    outcomes = managed.put_many(
        desk.db,
        str(desk.data),
        str(desk.file),
        {"patterns": "Tests first.", "architecture": "Layers."},
        author="program",
        now=NOW,
        prepare=prepare,
    )
    assert outcomes == {"patterns": "written", "architecture": "written"}
    assert desk.file.read_text().startswith("# mine\n")
    assert (desk.body(), desk.body("architecture")) == ("Tests first.", "Layers.")
    assert backups(desk) == [b"# mine\n"]


# --- what enters a section ----------------------------------------------------------------------------------


def test_a_secret_does_not_get_into_the_file_the_store_or_an_offer(desk: Desk) -> None:
    secret = "ghp_" + "Ab1" * 12
    desk.put(f"The token is {secret}.")
    desk.write("By hand.")
    desk.put(f"Again {secret}.")
    assert secret not in desk.file.read_text()
    assert secret not in str(claude_files.sections(desk.db, str(desk.file)))
    desk.accept()
    assert "[redacted" in desk.body()


@pytest.mark.parametrize("body", HOSTILE)
def test_whatever_is_put_in_is_ours_afterwards_and_leaves_the_rest_as_it_was(desk: Desk, body: str) -> None:
    assert desk.put("make", "build-commands") == "written"
    before = desk.file.read_bytes()
    assert desk.put(body) == "written"
    assert desk.facts() == ("model", False, None)
    assert desk.body("build-commands") == "make"
    written = desk.file.read_bytes()
    assert desk.put(body) == "unchanged"
    assert desk.put(desk.body()) == "unchanged"
    desk.file.write_bytes(written.replace(b"\n", b"\r\n"))
    assert desk.facts() == ("model", False, None)
    desk.file.write_bytes(written)
    assert desk.put("") == "written"
    assert desk.file.read_bytes() == before


# --- which file ---------------------------------------------------------------------------------------------


def test_outside_git_the_files_below_belong_to_the_project_they_were_registered_for(desk: Desk) -> None:
    below = desk.file.parent / "web"
    below.mkdir()
    (below / "CLAUDE.md").write_text(TEMPLATE)
    managed.register(desk.db, str(desk.file.parent), str(below / "CLAUDE.md"), "subtree", NOW)
    there = Desk(desk.db, desk.data, below / "CLAUDE.md")
    there.put("Ours.")
    (here,) = projects.every(desk.db)
    assert here.root == str(desk.file.parent)
    assert [file.place for file in claude_files.listed(desk.db, here.number)] == ["web/CLAUDE.md"]
    assert there.facts() == ("model", False, None)


def test_a_project_that_comes_under_git_keeps_what_is_known_of_its_file(desk: Desk) -> None:
    root = str(desk.file.parent)
    desk.put("Ours.")
    git(desk.file.parent, "init", "-q")
    assert desk.facts() == ("model", False, None)
    managed.register(desk.db, root, str(desk.file), "root", NOW)
    assert [place.root for place in projects.every(desk.db)] == [root]
    assert desk.facts() == ("model", False, None)
    assert desk.put("New.") == "written"


def test_a_link_and_the_file_it_leads_to_are_one(desk: Desk) -> None:
    agents = desk.file.with_name("AGENTS.md")
    desk.file.rename(agents)
    desk.file.symlink_to("AGENTS.md")
    desk.put("Ours.")
    assert desk.file.is_symlink()
    there = Desk(desk.db, desk.data, agents)
    assert there.facts() == ("model", False, None)
    assert there.put("New.") == "written"
    assert desk.body() == "New."


def test_a_file_outside_the_project_is_refused(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    outside = tmp_path / "elsewhere" / "CLAUDE.md"
    outside.write_text(TEMPLATE)
    desk.file.unlink()
    desk.file.symlink_to(outside)
    for act in (
        lambda: managed.put(
            desk.db,
            str(desk.data),
            str(desk.file),
            "patterns",
            "x",
            author="model",
            now=NOW,
            root=str(desk.file.parent),
        ),
        lambda: managed.state(desk.db, str(desk.file), root=str(desk.file.parent)),
        lambda: managed.register(desk.db, str(desk.file.parent), str(outside), "root", NOW),
    ):
        with pytest.raises(BadInput, match="outside of the project"):
            act()
    assert outside.read_text() == TEMPLATE


def test_a_file_whose_name_cannot_be_stored_is_refused(
    db: sqlite3.Connection, data: Path, tmp_path: Path
) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    (folder / "CLAUDE.md").write_text(TEMPLATE)
    with pytest.raises(BadInput, match=r"not UTF-8.*rename it"):
        Desk(db, data, folder / "CLAUDE.md").put("x")


def test_what_is_no_file_or_too_large_is_not_read(desk: Desk) -> None:
    desk.file.write_bytes(b"x" * (writer.LARGEST + 1))
    with pytest.raises(BadInput, match="larger than 1 MB"):
        managed.state(desk.db, str(desk.file))
    desk.file.unlink()
    with pytest.raises(NotFound, match="backstory init"):
        managed.state(desk.db, str(desk.file))
    os.mkfifo(desk.file)
    with pytest.raises(NotFound, match="backstory init"):
        managed.state(desk.db, str(desk.file))


# --- the state of a file ------------------------------------------------------------------------------------


def test_the_state_of_a_file_has_its_sizes_and_problems(desk: Desk) -> None:
    desk.put("one\ntwo")
    desk.file.write_text(desk.file.read_text() + "<!-- END AUTO-MANAGED -->\nno line end")
    found = managed.state(desk.db, str(desk.file))
    text = desk.file.read_text()
    assert (found.path, found.lines, found.tokens) == (
        str(desk.file),
        len(text.splitlines()),
        -(-len(text) // 4),
    )
    assert [(one.name, one.lines, one.tokens) for one in found.sections] == [
        ("build-commands", 0, 0),
        ("patterns", 2, 2),
    ]
    assert [problem.line for problem in found.problems] == [15]


def test_looking_at_a_file_writes_nothing_into_the_store(desk: Desk) -> None:
    before = desk.db.total_changes
    managed.state(desk.db, str(desk.file))
    assert desk.db.total_changes == before
    assert projects.every(desk.db) == []


def test_the_same_texts_again_are_not_stored_again(desk: Desk) -> None:
    desk.put_many({"patterns": "Tests.", "build-commands": "make"})
    before = desk.db.total_changes
    assert desk.put_many({"patterns": "Tests.", "build-commands": "make"}) == {
        "patterns": "unchanged",
        "build-commands": "unchanged",
    }
    assert desk.db.total_changes == before


# --- prose that is behind -----------------------------------------------------------------------------------


def fall_behind(desk: Desk) -> None:
    with transaction(desk.db):
        claude_files.fell_behind(desk.db, str(desk.file), "patterns", ["a.py"], NOW)
    assert desk.state().behind == ("a.py",)


@pytest.mark.parametrize("text", ["Tests first.", "Tests last."])
def test_prose_is_behind_until_a_model_sets_it_be_it_to_the_same(desk: Desk, text: str) -> None:
    desk.put("Tests first.")
    fall_behind(desk)
    desk.put(text)
    assert desk.state().behind == ()


def test_prose_that_a_person_edited_is_behind_until_a_model_has_offered_another(desk: Desk) -> None:
    desk.put("Tests first.")
    desk.edit("Tests first.", "Tests first, mostly.")
    fall_behind(desk)
    assert desk.put("Tests last.") == "offered"
    assert desk.state().behind == ()


def test_prose_that_is_still_true_is_kept(desk: Desk) -> None:
    desk.put("Tests first.")
    fall_behind(desk)
    desk.keep()
    assert (desk.state().behind, desk.body()) == ((), "Tests first.")
    with pytest.raises(NotFound, match="Nothing is offered"):
        desk.keep()
