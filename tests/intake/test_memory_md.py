"""What Claude Code noted by itself, taken in as notes."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

import pytest

from backstory.errors import NotFound
from backstory.intake.memory_md import entries, take_in
from tests.helpers.chaos import NOW
from tests.helpers.growth import assert_linear
from tests.helpers.rich_store import dump

INDEX = """# Memory

- [Testing](testing.md) — how the tests are run
- Use uv, never pip, in this repository
- The staging database is read-only
  and nobody restores it on weekends

## Deploy

Deploys go out on Tuesdays only.
"""
TOPIC = """---
name: testing
description: how the tests are run
type: feedback
---

Run `make test` before every commit; the linter alone is not enough.
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "memory"
    place.mkdir()
    (place / "MEMORY.md").write_text(INDEX)
    (place / "testing.md").write_text(TOPIC)
    return place


def notes(db: sqlite3.Connection) -> list[str]:
    rows = db.execute("SELECT content FROM memories WHERE kind = 'note' AND deleted_at IS NULL ORDER BY row")
    return [row["content"] for row in rows]


def test_entries_and_topics_become_notes(db: sqlite3.Connection, project: str, folder: Path) -> None:
    taken = take_in(db, str(folder), project, now=NOW)
    assert (taken.files, taken.new, taken.known) == (2, 4, 0)
    assert notes(db) == [
        "Memory\n- Use uv, never pip, in this repository",
        "Memory\n- The staging database is read-only\n  and nobody restores it on weekends",
        "Memory > Deploy\nDeploys go out on Tuesdays only.",
        "testing — how the tests are run\n"
        "Run `make test` before every commit; the linter alone is not enough.",
    ]
    told = db.execute("SELECT DISTINCT source, tags, tier FROM memories").fetchall()
    assert [tuple(row) for row in told] == [("assistant", '["claude-memory"]', "project")]


def test_a_second_time_nothing_is_new(db: sqlite3.Connection, project: str, folder: Path) -> None:
    take_in(db, str(folder), project, now=NOW)
    before = notes(db)
    (folder / "testing.md").write_text(TOPIC.replace("commit; the", "commit. The"))
    again = take_in(db, str(folder), project, now=NOW + 1)
    assert (again.new, again.known) == (0, 4)
    assert notes(db) == before


def test_all_notes_come_in_or_none(db: sqlite3.Connection, project: str, folder: Path) -> None:
    before = dump(db)
    db.execute(
        "CREATE TEMP TRIGGER late BEFORE INSERT ON memories WHEN new.content LIKE '%Tuesdays%'"
        " BEGIN SELECT raise(ABORT, 'no'); END"
    )
    with pytest.raises(sqlite3.IntegrityError):
        take_in(db, str(folder), project, now=NOW)
    assert dump(db) == before


def test_a_dry_run_counts_the_same_and_writes_nothing(
    db: sqlite3.Connection, project: str, folder: Path
) -> None:
    before = dump(db)
    assert take_in(db, str(folder), project, now=NOW, dry_run=True).new == 4
    assert dump(db) == before
    take_in(db, str(folder), project, now=NOW)
    assert take_in(db, str(folder), project, now=NOW, dry_run=True).known == 4


def test_nothing_is_read_outside_of_the_folder_and_nothing_is_written_in_it(
    db: sqlite3.Connection, project: str, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside.md").write_text("the diary of somebody else")
    (folder / "link.md").symlink_to(tmp_path / "outside.md")
    (folder / "inner.md").symlink_to(folder / "testing.md")
    (folder / "folder.md").mkdir()
    (folder / "large.md").write_text("x" * 1_000_001)
    files = {path: hashlib.sha256(path.read_bytes()).digest() for path in folder.glob("*") if path.is_file()}
    taken = take_in(db, str(folder), project, now=NOW)
    assert [reason.partition(":")[0] for reason in taken.skipped] == ["folder.md", "large.md", "link.md"]
    assert not any("diary" in text for text in notes(db))
    assert {path: hashlib.sha256(path.read_bytes()).digest() for path in files} == files


def test_a_long_topic_is_cut_at_its_headings_and_code_is_not_taken_for_one(
    db: sqlite3.Connection, project: str
) -> None:
    text = "# A\n\n" + "word " * 250 + "\n\n```sh\n# not a heading\n```\n\n## B\n\n" + "other " * 250
    found = list(entries("topic.md", text, set()))
    assert [text.partition("\n")[0] for text in found] == ["A", "A > B"]
    assert "# not a heading" in found[0]
    assert all(len(text) < 2_500 for text in found)


def test_secrets_are_redacted_and_what_is_only_a_secret_is_left_out(
    db: sqlite3.Connection, project: str, tmp_path: Path
) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    (tmp_path / "MEMORY.md").write_text(f"- {token}\n- deploy with GITHUB_TOKEN={token} on Mondays\n")
    take_in(db, str(tmp_path), project, now=NOW)
    assert [token in text for text in notes(db)] == [False] * len(notes(db))
    assert any("Mondays" in text for text in notes(db))


def test_a_folder_without_notes_is_named(db: sqlite3.Connection, project: str, tmp_path: Path) -> None:
    for place in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(NotFound, match=r"MEMORY\.md"):
            take_in(db, str(place), project, now=NOW)


def test_time_grows_with_the_fences_of_a_file_and_not_faster() -> None:
    def text(many: int) -> str:
        return "# A\n\n" + "```\nx\n```\n" * many

    assert_linear(lambda text: list(entries("topic.md", text, set())), text(2_000), text(8_000))
