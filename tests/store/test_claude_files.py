"""What the store knows of CLAUDE.md files: which are ours, what was written there, what is only offered."""

from __future__ import annotations

from sqlite3 import Connection, IntegrityError

import pytest

from backstory import paths
from backstory.store import claude_files, projects
from backstory.store.file.connection import transaction

NOW = 1_800_000_000_000
PATH = "/code/api/CLAUDE.md"


@pytest.fixture
def number(db: Connection) -> int:
    return made(db, "/code/api")


def made(db: Connection, folder: str) -> int:
    known = projects.ensure(db, paths.Place(folder, "api", folder, None, None), NOW)
    return projects.by_id(db, known).number


@pytest.fixture
def file(db: Connection, number: int) -> str:
    claude_files.register(db, number, PATH, "CLAUDE.md", "root")
    return PATH


def noted(db: Connection, number: int, place: str, texts: dict[str, str], author: str, now: int) -> None:
    """What an older backstory put down of the texts it wrote."""
    for name, digest in texts.items():
        row = (number, place, name, digest, author, now)
        db.execute("INSERT INTO claude_texts VALUES (?, ?, ?, ?, ?, ?)", row)


# --- files --------------------------------------------------------------------------------------------------


def test_a_file_is_known_once_it_is_registered(db: Connection, number: int) -> None:
    assert claude_files.get(db, PATH) is None
    claude_files.register(db, number, PATH, "CLAUDE.md", "root")
    found = claude_files.get(db, PATH)
    assert found
    assert (found.path, found.project, found.place, found.template) == (PATH, number, "CLAUDE.md", "root")
    assert (found.synced_at, found.head) == (None, None)


def test_registering_again_keeps_what_is_known(db: Connection, number: int, file: str) -> None:
    claude_files.wrote(db, file, "patterns", "Tests first.", "model", NOW)
    claude_files.synced(db, file, "abc123", NOW)
    claude_files.register(db, number, file, "CLAUDE.md", "root")
    found = claude_files.get(db, file)
    assert found
    assert (found.synced_at, found.head) == (NOW, "abc123")
    assert list(claude_files.sections(db, file)) == ["patterns"]


def test_files_are_listed_from_the_top_down_and_of_one_project_only(db: Connection, number: int) -> None:
    for place in ("web/ui/CLAUDE.md", "web/CLAUDE.md", "CLAUDE.md", "a-long-name-of-a-folder/CLAUDE.md"):
        claude_files.register(db, number, f"/code/api/{place}", place, "subtree")
    claude_files.register(db, made(db, "/code/other"), "/code/other/CLAUDE.md", "CLAUDE.md", "root")
    assert [file.place for file in claude_files.listed(db, number)] == [
        "CLAUDE.md",
        "a-long-name-of-a-folder/CLAUDE.md",
        "web/CLAUDE.md",
        "web/ui/CLAUDE.md",
    ]


def test_a_template_is_root_or_subtree(db: Connection, number: int) -> None:
    with pytest.raises(IntegrityError):
        claude_files.register(db, number, PATH, "CLAUDE.md", "other")


def test_a_file_that_is_ours_no_longer_takes_its_sections_along_but_not_its_texts(
    db: Connection, number: int, file: str
) -> None:
    noted(db, number, "CLAUDE.md", {"patterns": "d1"}, "model", NOW)
    claude_files.wrote(db, file, "patterns", "Tests first.", "model", NOW)
    claude_files.remove(db, file)
    assert claude_files.get(db, file) is None
    assert claude_files.sections(db, file) == {}
    assert claude_files.author(db, number, "CLAUDE.md", "patterns", "d1") == "model"


def test_a_project_that_goes_takes_everything_along(db: Connection, number: int, file: str) -> None:
    noted(db, number, "CLAUDE.md", {"patterns": "d1"}, "model", NOW)
    claude_files.wrote(db, file, "patterns", "Tests first.", "model", NOW)
    db.execute("DELETE FROM projects WHERE number = ?", (number,))
    assert claude_files.get(db, file) is None
    assert claude_files.sections(db, file) == {}
    assert claude_files.author(db, number, "CLAUDE.md", "patterns", "d1") is None


# --- texts --------------------------------------------------------------------------------------------------


def test_a_text_is_ours_in_the_section_of_the_place_of_the_project_it_was_written_to(
    db: Connection, number: int
) -> None:
    other = made(db, "/code/other")
    noted(db, number, "CLAUDE.md", {"patterns": "d1", "architecture": "d2"}, "program", NOW)
    assert claude_files.author(db, number, "CLAUDE.md", "patterns", "d1") == "program"
    assert claude_files.author(db, number, "CLAUDE.md", "architecture", "d2") == "program"
    for where in (
        (number, "CLAUDE.md", "patterns", "d2"),
        (number, "CLAUDE.md", "conventions", "d1"),
        (number, "web/CLAUDE.md", "patterns", "d1"),
        (other, "CLAUDE.md", "patterns", "d1"),
    ):
        assert claude_files.author(db, *where) is None


# --- sections -----------------------------------------------------------------------------------------------


def test_what_was_written_last_is_known(db: Connection, file: str) -> None:
    claude_files.wrote(db, file, "patterns", "Old.", "program", NOW)
    claude_files.wrote(db, file, "patterns", "New.", "model", NOW + 1)
    record = claude_files.sections(db, file)["patterns"]
    assert (record.written, record.author, record.written_at) == ("New.", "model", NOW + 1)
    assert (record.offered, record.offered_by, record.offered_at) == (None, None, None)


def test_an_offer_waits_beside_what_was_written(db: Connection, file: str) -> None:
    claude_files.wrote(db, file, "patterns", "Old.", "program", NOW)
    assert claude_files.offer(db, file, "patterns", "New.", "d2", "model", NOW + 1) is True
    record = claude_files.sections(db, file)["patterns"]
    assert (record.written, record.author, record.written_at) == ("Old.", "program", NOW)
    assert (record.offered, record.offered_by, record.offered_at) == ("New.", "model", NOW + 1)


def test_something_can_be_offered_for_a_section_that_we_never_wrote(db: Connection, file: str) -> None:
    assert claude_files.offer(db, file, "patterns", "New.", "d2", "program", NOW) is True
    record = claude_files.sections(db, file)["patterns"]
    assert (record.written, record.offered) == ("", "New.")


def test_an_offer_that_was_turned_down_is_not_made_again_but_another_is(db: Connection, file: str) -> None:
    claude_files.offer(db, file, "patterns", "New.", "d2", "program", NOW)
    claude_files.refuse(db, file, "patterns", "d2")
    assert claude_files.sections(db, file)["patterns"].offered is None
    assert claude_files.offer(db, file, "patterns", "New.", "d2", "program", NOW) is False
    assert claude_files.sections(db, file)["patterns"].offered is None
    assert claude_files.offer(db, file, "patterns", "Newer.", "d3", "program", NOW) is True
    assert claude_files.sections(db, file)["patterns"].offered == "Newer."


def test_with_a_write_the_offer_is_settled(db: Connection, file: str) -> None:
    claude_files.offer(db, file, "patterns", "New.", "d2", "program", NOW)
    claude_files.refuse(db, file, "patterns", "d2")
    claude_files.wrote(db, file, "patterns", "New.", "program", NOW)
    assert claude_files.offer(db, file, "patterns", "New.", "d2", "program", NOW) is True


def test_sections_of_two_worktrees_are_two(db: Connection, number: int, file: str) -> None:
    claude_files.register(db, number, "/code/api-fix/CLAUDE.md", "CLAUDE.md", "root")
    claude_files.wrote(db, file, "patterns", "Here.", "program", NOW)
    claude_files.wrote(db, "/code/api-fix/CLAUDE.md", "patterns", "There.", "program", NOW)
    assert claude_files.sections(db, file)["patterns"].written == "Here."


def test_nothing_is_written_about_a_file_that_is_not_registered(db: Connection) -> None:
    with pytest.raises(IntegrityError), transaction(db):
        claude_files.wrote(db, PATH, "patterns", "Text.", "program", NOW)


def test_a_section_is_behind_until_it_is_written_or_looked_at(db: Connection, file: str) -> None:
    claude_files.wrote(db, file, "architecture", "Fish in.", "model", NOW)
    assert claude_files.behind(db, file) == {}
    claude_files.fell_behind(db, file, "architecture", ["a.py", "b\udcff.py"], NOW + 1)
    assert claude_files.behind(db, file) == {"architecture": ("a.py", "b\udcff.py")}
    assert claude_files.sections(db, file)["architecture"].written_at == NOW
    claude_files.wrote(db, file, "architecture", "Fish in, walrus out.", "model", NOW)
    assert claude_files.behind(db, file) == {}
    claude_files.fell_behind(db, file, "architecture", ["a.py"], NOW)
    assert claude_files.caught_up(db, file, "architecture")
    assert not claude_files.caught_up(db, file, "architecture")
    assert claude_files.behind(db, file) == {}


def test_the_very_text_that_was_turned_down_is_known(db: Connection, file: str) -> None:
    claude_files.offer(db, file, "patterns", "Tests last.", "1f", "program", NOW)
    assert not claude_files.is_refused(db, file, "patterns", "1f")
    claude_files.refuse(db, file, "patterns", "1f")
    assert claude_files.is_refused(db, file, "patterns", "1f")
    assert not claude_files.is_refused(db, file, "patterns", "2e")
