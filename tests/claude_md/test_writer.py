"""CLAUDE.md is a person's file: what the writer does to it, what it refuses, and that nothing gets lost."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from backstory import locks
from backstory.claude_md.write import dynamic, writer
from backstory.claude_md.write.dynamic import END, section
from backstory.errors import BadInput, StoreError
from backstory.store.file import backup
from backstory.store.file.connection import connect
from tests.helpers.claude_md_writer import NOW, ONE, TEXT, TWO, Show, backups, others, refused

# Views come and go.


def test_views_come_into_the_file_and_leave_it_as_it_was(show: Show, file: Path) -> None:
    for views in (ONE, TWO, ONE):
        assert show(views) is True
        assert file.read_bytes() == TEXT + b"\n" + section(views)
    assert show([]) is True
    assert file.read_bytes() == TEXT


def test_without_a_file_nothing_happens(project: str, data: Path) -> None:
    with writer.alone(project, str(data), NOW) as is_there:
        assert not is_there
    assert writer.put_views(project, str(data), ONE, NOW) is False
    assert os.listdir(project) == []
    assert not data.exists()


def test_a_link_that_leads_nowhere_is_no_file(show: Show, project: str) -> None:
    Path(project, "CLAUDE.md").symlink_to("AGENTS.md")
    assert show(ONE) is False
    assert os.listdir(project) == ["CLAUDE.md"]


def test_without_views_a_file_without_a_section_is_not_touched(show: Show, file: Path, data: Path) -> None:
    before = file.stat()
    assert show([]) is True
    assert file.stat() == before
    assert backups(data) == []


def test_what_is_there_already_is_not_written_again(show: Show, file: Path) -> None:
    show(ONE)
    before = file.stat()
    assert show(ONE) is True
    after = file.stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_ctime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
        before.st_ctime_ns,
    )


def test_the_file_of_the_folder_itself_is_meant_and_not_the_one_above(data: Path, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "CLAUDE.md").write_bytes(TEXT)
    below = tmp_path / "packages" / "web"
    below.mkdir(parents=True)
    assert writer.put_views(str(below), str(data), ONE, NOW) is False
    (below / "CLAUDE.md").write_bytes(b"")
    assert writer.put_views(str(below), str(data), ONE, NOW) is True
    assert (below / "CLAUDE.md").read_bytes() == b"\n" + section(ONE)
    assert (tmp_path / "CLAUDE.md").read_bytes() == TEXT


def test_a_file_tells_whether_views_are_in_it(show: Show, project: str, file: Path) -> None:
    assert not writer.has_views(project)
    show(ONE)
    assert writer.has_views(project)
    file.unlink()
    assert not writer.has_views(project)
    file.mkdir()
    assert not writer.has_views(project)


# What the file is besides its bytes.


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o664, 0o755, 0o700])
def test_the_mode_is_kept(show: Show, file: Path, mode: int) -> None:
    file.chmod(mode)
    show(ONE)
    assert stat.S_IMODE(file.stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_the_owner_is_kept(show: Show, file: Path) -> None:
    os.chown(file, 4321, 8765)
    file.chmod(0o640)
    show(ONE)
    assert (file.stat().st_uid, file.stat().st_gid) == (4321, 8765)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_what_a_system_notes_about_the_file_is_kept(show: Show, file: Path) -> None:
    try:
        os.setxattr(file, "user.origin", b"a template")
    except (OSError, AttributeError):
        pytest.skip("there are no extended attributes here")
    show(ONE)
    assert os.getxattr(file, "user.origin") == b"a template"


def test_a_change_has_a_new_time(show: Show, file: Path) -> None:
    os.utime(file, (1_000_000_000, 1_000_000_000))
    show(ONE)
    assert abs(file.stat().st_mtime - time.time()) < 60


@pytest.mark.parametrize("is_absolute", [True, False])
def test_a_link_stays_one_and_its_target_is_changed(show: Show, project: str, is_absolute: bool) -> None:
    target = Path(project, "docs", "AGENTS.md")
    target.parent.mkdir()
    target.write_bytes(TEXT)
    link = Path(project, "CLAUDE.md")
    link.symlink_to(target if is_absolute else "docs/AGENTS.md")
    leads_to = os.readlink(link)
    show(ONE)
    assert os.readlink(link) == leads_to
    assert target.read_bytes() == TEXT + b"\n" + section(ONE)
    show([])
    assert target.read_bytes() == TEXT
    assert others(target) == set()


def test_a_folder_may_be_reached_by_a_link(tmp_path: Path, data: Path, file: Path) -> None:
    (tmp_path / "alias").symlink_to(file.parent)
    assert writer.put_views(str(tmp_path / "alias"), str(data), ONE, NOW)
    assert file.read_bytes() == TEXT + b"\n" + section(ONE)


# What is refused: the file stays as it is, and the message says which it is and what to do.


def test_a_link_out_of_the_project_is_refused(show: Show, project: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_bytes(TEXT)
    Path(project, "CLAUDE.md").symlink_to(outside)
    assert f"leads to {outside}, outside of the project" in refused(show)
    assert outside.read_bytes() == TEXT


def test_a_link_into_what_is_gits_own_is_refused(show: Show, project: str) -> None:
    inside = Path(project, ".git", "hooks")
    inside.mkdir(parents=True, exist_ok=True)
    (inside / "pre-commit").write_text("#!/bin/sh\n")
    Path(project, "CLAUDE.md").unlink(missing_ok=True)
    Path(project, "CLAUDE.md").symlink_to(inside / "pre-commit")
    assert "which is git's own" in refused(show)
    assert (inside / "pre-commit").read_text() == "#!/bin/sh\n"


def test_a_folder_whose_name_only_begins_like_the_project_is_outside(show: Show, project: str) -> None:
    beside = Path(project + "-old")
    beside.mkdir()
    (beside / "CLAUDE.md").write_bytes(TEXT)
    Path(project, "CLAUDE.md").symlink_to(beside / "CLAUDE.md")
    assert "outside of the project" in refused(show)


def test_a_link_within_the_work_tree_is_no_way_out_of_it(data: Path, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "CLAUDE.md").write_bytes(TEXT)
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "CLAUDE.md").symlink_to("../CLAUDE.md")
    assert writer.put_views(str(tmp_path / "web"), str(data), ONE, NOW)
    assert (tmp_path / "CLAUDE.md").read_bytes() == TEXT + b"\n" + section(ONE)


@pytest.mark.parametrize(("mode", "what"), [(0o444, "written"), (0o222, "read"), (0o000, "read")])
def test_a_file_that_may_not_be_read_or_written_is_refused(
    show: Show, file: Path, mode: int, what: str
) -> None:
    file.chmod(mode)
    assert f"{file} cannot be {what} (permission denied)" in refused(show)
    file.chmod(0o644)
    assert file.read_bytes() == TEXT


def test_a_file_in_a_folder_that_may_not_be_written_is_refused(show: Show, file: Path) -> None:
    file.parent.chmod(0o555)
    try:
        assert "its folder cannot be written" in refused(show)
    finally:
        file.parent.chmod(0o755)
    assert file.read_bytes() == TEXT


def test_a_folder_of_that_name_is_refused(show: Show, project: str) -> None:
    Path(project, "CLAUDE.md").mkdir()
    assert "is not a file" in refused(show)


def test_a_pipe_of_that_name_is_refused_and_keeps_nobody_waiting(show: Show, project: str) -> None:
    os.mkfifo(os.path.join(project, "CLAUDE.md"))
    assert "is not a file" in refused(show)


def test_a_link_to_itself_is_refused(show: Show, project: str) -> None:
    Path(project, "CLAUDE.md").symlink_to("CLAUDE.md")
    assert "cannot be read" in refused(show)


def test_a_link_to_what_is_no_markdown_is_refused(show: Show, project: str) -> None:
    Path(project, ".env").write_text("SECRET=1\n")
    Path(project, "CLAUDE.md").symlink_to(".env")
    assert "which is no Markdown" in refused(show)
    assert Path(project, ".env").read_text() == "SECRET=1\n"


def test_a_file_with_a_second_name_is_refused_because_a_change_would_part_the_two(
    show: Show, file: Path
) -> None:
    os.link(file, file.with_name("AGENTS.md"))
    assert "a second name" in refused(show)
    assert file.read_bytes() == TEXT


def test_a_file_that_is_too_large_is_refused(show: Show, file: Path) -> None:
    file.write_bytes(b"x" * (writer.LARGEST + 1))
    assert "larger than 1 MB" in refused(show)


def test_a_file_that_would_become_too_large_is_refused(show: Show, file: Path) -> None:
    assert "would become larger" in refused(show, [("ab12cd34", "x" * writer.LARGEST)])
    assert file.read_bytes() == TEXT


def test_a_name_that_is_not_utf8_can_be_said(data: Path, tmp_path: Path) -> None:
    folder = os.path.join(os.fsencode(tmp_path), b"caf\xe9")
    os.mkdir(folder)
    path = Path(os.fsdecode(folder), "CLAUDE.md")
    path.write_bytes(TEXT)
    assert writer.put_views(os.fsdecode(folder), str(data), ONE, NOW)
    path.chmod(0o444)
    with pytest.raises(BadInput) as error:
        writer.put_views(os.fsdecode(folder), str(data), TWO, NOW)
    assert str(error.value).encode()  # UTF-8 has words for it


def test_views_that_cannot_be_made_leave_the_file_and_the_lock(show: Show, file: Path, data: Path) -> None:
    with pytest.raises(StoreError, match="not now"), writer.alone(str(file.parent), str(data), NOW):
        raise StoreError("not now; try again")
    assert file.read_bytes() == TEXT
    assert others(file) == set()
    assert show(ONE)


def test_a_writer_whose_turn_does_not_come_says_so(
    show: Show, file: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "SECONDS", 0.05)

    with writer.alone(str(file.parent), str(data), NOW):
        assert "try again in a moment" in refused(show)
        assert writer.put_views(str(file.parent), str(data), ONE, NOW, is_alone=True)
    assert file.read_bytes() == TEXT + b"\n" + section(ONE)


def test_a_writer_says_how_long_it_waits_for_others(show: Show, file: Path, data: Path) -> None:
    with writer.alone(str(file.parent), str(data), NOW):
        began = time.monotonic()
        with pytest.raises(StoreError, match="try again in a moment"):
            writer.put_views(str(file.parent), str(data), TWO, NOW, seconds=0.1)
        assert 0.1 <= time.monotonic() - began < 3
        assert writer.put_views(str(file.parent), str(data), ONE, NOW, is_alone=True)
    assert file.read_bytes() == TEXT + b"\n" + section(ONE)


@pytest.mark.parametrize("call", ["fsync", "replace", "chmod"])
def test_a_disk_that_fails_leaves_the_file_and_nothing_beside_it(
    show: Show, file: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    show(ONE)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        patch.setattr(writer, "_exchange", lambda *_: False)
        assert "cannot be written (No space left on device)" in refused(show, TWO)
    assert file.read_bytes() == TEXT + b"\n" + section(ONE)
    assert others(file) == set()


# Backups.


def test_what_a_person_wrote_is_backed_up_before_it_is_changed(show: Show, file: Path, data: Path) -> None:
    show(ONE)
    assert backups(data) == [TEXT]
    (shelf,) = (data / "backups" / "claude-md").iterdir()
    assert shelf.name.startswith("api-CLAUDE.md-")
    assert stat.S_IMODE(shelf.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in shelf.iterdir()} == {0o600}
    assert (shelf / "000001-20270115T080000Z.md").read_bytes() == TEXT
    assert str(file) in (shelf / "written").read_text()


def test_our_own_changes_make_no_backups(show: Show, file: Path, data: Path) -> None:
    for views in (ONE, TWO, ONE, [], TWO, []):
        show(views)
    assert backups(data) == [TEXT]


def test_every_version_that_somebody_else_wrote_is_backed_up(show: Show, file: Path, data: Path) -> None:
    show(ONE)
    file.write_bytes(file.read_bytes().replace(b"kind", b"brief"))
    show(TWO)
    file.write_bytes(file.read_bytes().replace(b"# Rules", b"# More rules"))
    show(ONE)
    assert b"# More rules" in file.read_bytes()
    assert [dynamic.without(text) for text in backups(data)] == [
        TEXT,
        TEXT.replace(b"kind", b"brief"),
        TEXT.replace(b"kind", b"brief").replace(b"# Rules", b"# More rules"),
    ]


def test_an_edit_in_our_section_takes_the_place_of_the_backup_with_the_same_text_around_it(
    show: Show, file: Path, data: Path
) -> None:
    file.write_bytes(b"older\n")
    show(ONE)
    file.write_bytes(TEXT)
    show(ONE)
    for i in range(30):  # say, a formatter
        file.write_bytes(file.read_bytes().replace(b"speaks JSON", b"speaks  JSON, %d" % i))
        writer.put_views(str(file.parent), str(data), ONE, NOW + i * 1000)
    assert len(backups(data)) == 2
    assert backups(data)[0] == b"older\n"
    assert backups(data)[1] == TEXT + b"\n" + section(ONE).replace(b"speaks JSON", b"speaks  JSON, 29")
    names = sorted(path.name for path in data.glob("backups/claude-md/*/*"))
    assert names == ["000001-20270115T080000Z.md", "000002-20270115T080029Z.md", "written"]


def test_what_a_section_without_its_end_has_swallowed_keeps_a_backup_of_its_own(
    show: Show, file: Path, data: Path
) -> None:
    show(ONE)
    file.write_bytes(file.read_bytes().replace(END, b"") + b"A person's rule.\n")
    show(ONE)
    for blanks in (b"  ", b"   "):
        file.write_bytes(file.read_bytes().replace(b"speaks JSON", b"speaks" + blanks + b"JSON"))
        show(ONE)
    assert len(backups(data)) == 3
    assert backups(data)[1].endswith(b"A person's rule.\n")


def test_what_could_not_be_changed_is_not_backed_up_twice(
    show: Show, file: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(writer, "_exchange", lambda *_: False)
        patch.setattr(os, "replace", full)
        refused(show)
        refused(show, TWO)
    show(ONE)
    assert backups(data) == [TEXT]


def test_the_last_ten_backups_of_a_file_are_kept(show: Show, file: Path, data: Path) -> None:
    for i in range(13):
        file.write_bytes(b"version %d\n" % i)
        show(ONE)
    assert backups(data) == [b"version %d\n" % i for i in range(3, 13)]


def test_the_newest_backup_is_kept_where_a_clock_was_wrong(file: Path, data: Path) -> None:
    for i in range(13):
        file.write_bytes(b"version %d\n" % i)
        writer.put_views(str(file.parent), str(data), ONE, NOW - i * 86_400_000)
    assert backups(data) == [b"version %d\n" % i for i in range(3, 13)]


def test_files_have_backups_of_their_own(data: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        folder = tmp_path / name / "api"
        folder.mkdir(parents=True)
        (folder / "CLAUDE.md").write_text(name)
        writer.put_views(str(folder), str(data), ONE, NOW)
    assert len(list((data / "backups" / "claude-md").iterdir())) == 2
    assert sorted(backups(data)) == [b"one", b"two"]


def test_without_a_backup_there_is_no_change(show: Show, file: Path, data: Path) -> None:
    data.mkdir(parents=True)
    (data / "backups").write_text("in the way")
    assert "without a backup" in refused(show)
    assert file.read_bytes() == TEXT
    assert others(file) == set()


def test_backups_of_the_store_do_not_mind_those_of_files(show: Show, file: Path, data: Path) -> None:
    data.mkdir(parents=True)
    connect(str(data / "backstory.db")).close()
    show(ONE)
    assert backup.due(str(data), NOW)
    made = backup.make(str(data), NOW)
    assert [one.name for one in backup.listed(str(data))] == [made.name]
    assert backup.prune(str(data)) == []
    assert backups(data) == [TEXT]
