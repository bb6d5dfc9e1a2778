"""CLAUDE.md is a person's file: what the writer does to it, what it refuses, and that nothing gets lost."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import IO

import pytest

from backstory.claude_md.write import dynamic, writer
from backstory.claude_md.write.dynamic import END, HEADER, section
from backstory.errors import BackstoryError, BadInput, Conflict, StoreError
from backstory.store.file import backup, swap
from backstory.store.file.connection import connect
from tests.conftest import REPOSITORY

NOW = 1_800_000_000_000
ONE = [("ab12cd34", "ab12cd34 root:api: 2026-01-31T12:00:00Z\nThe API speaks JSON.")]
TWO = [*ONE, ("ef56gh78", "ef56gh78 note:: 2026-01-31T12:00:01Z\nTests come first.")]
TEXT = b"# Rules\r\n\nBe kind. \xff\n\n"

SOURCE = str(REPOSITORY / "src")

Views = list[tuple[str, str]]
Show = Callable[[Views], bool]


@pytest.fixture
def file(project: str) -> Path:
    path = Path(project, "CLAUDE.md")
    path.write_bytes(TEXT)
    return path


@pytest.fixture
def show(project: str, data: Path) -> Show:
    return lambda views: writer.put_views(project, str(data), views, NOW)


def backups(data: Path) -> list[bytes]:
    """What was backed up, oldest first."""
    return [path.read_bytes() for path in sorted(data.glob("backups/claude-md/*/*.md"))]


def others(file: Path) -> set[str]:
    """What else lies beside the file."""
    return set(os.listdir(file.parent)) - {file.name}


# Views come and go.


def test_views_come_into_the_file_and_leave_it_as_it_was(show: Show, file: Path) -> None:
    for views in (ONE, TWO, ONE):
        assert show(views) is True
        assert file.read_bytes() == TEXT + b"\n" + section(views)
    assert show([]) is True
    assert file.read_bytes() == TEXT


def test_without_a_file_nothing_happens(project: str, data: Path) -> None:
    with writer.turn(project, str(data), NOW) as is_there:
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


def refused(show: Show, views: Views = ONE) -> str:
    with pytest.raises(BackstoryError) as error:
        show(views)
    message = str(error.value)
    assert "CLAUDE.md" in message
    assert "; " in message  # what is wrong; what to do
    return message


def test_a_link_out_of_the_project_is_refused(show: Show, project: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_bytes(TEXT)
    Path(project, "CLAUDE.md").symlink_to(outside)
    assert f"leads to {outside}, outside of the project" in refused(show)
    assert outside.read_bytes() == TEXT


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


def test_a_file_with_a_second_name_is_refused_because_a_change_would_part_the_two(
    show: Show, file: Path
) -> None:
    os.link(file, file.with_name("AGENTS.md"))
    assert "a second name" in refused(show)
    assert file.read_bytes() == TEXT


def test_a_file_that_is_too_large_is_refused(show: Show, file: Path) -> None:
    file.write_bytes(b"x" * (writer.LARGEST + 1))
    assert "larger than 10 MB" in refused(show)


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
    with pytest.raises(StoreError, match="not now"), writer.turn(str(file.parent), str(data), NOW):
        raise StoreError("not now; try again")
    assert file.read_bytes() == TEXT
    assert others(file) == set()
    assert show(ONE)


def test_a_writer_whose_turn_does_not_come_says_so(
    show: Show, file: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swap, "SECONDS", 0.05)

    with writer.turn(str(file.parent), str(data), NOW):
        assert "try again in a moment" in refused(show)
        assert writer.put_views(str(file.parent), str(data), ONE, NOW, in_turn=True)
    assert file.read_bytes() == TEXT + b"\n" + section(ONE)


def test_a_writer_says_how_long_it_waits_for_its_turn(show: Show, file: Path, data: Path) -> None:
    with writer.turn(str(file.parent), str(data), NOW):
        began = time.monotonic()
        with pytest.raises(StoreError, match="try again in a moment"):
            writer.put_views(str(file.parent), str(data), TWO, NOW, seconds=0.1)
        assert 0.1 <= time.monotonic() - began < 3
        assert writer.put_views(str(file.parent), str(data), ONE, NOW, in_turn=True)
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


# A file that is not there yet.


Make = Callable[..., bool]


def ours(text: bytes) -> bytes:
    return text + b"ours\n"


@pytest.fixture
def make(project: str, data: Path) -> Make:
    """Change the project's CLAUDE.md, which begins as `the first\\n`."""

    def made(change: Callable[[bytes], bytes] = ours, create: bytes = b"the first\n", name: str = "") -> bool:
        path = os.path.join(project, name or "CLAUDE.md")
        return writer.rewrite(path, project, str(data), change, now=NOW, create=create)

    return made


def test_a_file_that_is_not_there_is_made_and_changed(make: Make, project: str, data: Path) -> None:
    path = Path(project, "CLAUDE.md")
    assert make() is True
    assert path.read_bytes() == b"the first\nours\n"
    assert others(path) == set()
    assert make() is True
    assert path.read_bytes() == b"the first\nours\nours\n"
    assert make(bytes, b"", "empty.md")
    assert Path(project, "empty.md").read_bytes() == b""
    assert backups(data) == []  # nobody else wrote anything


def test_a_file_that_is_there_is_changed_whatever_a_new_one_would_be(make: Make, file: Path) -> None:
    assert make()
    assert file.read_bytes() == TEXT + b"ours\n"


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_mode_that_the_umask_says(make: Make, project: str, umask: int) -> None:
    before = os.umask(umask)
    try:
        make()
    finally:
        os.umask(before)
    assert stat.S_IMODE(Path(project, "CLAUDE.md").stat().st_mode) == 0o666 & ~umask


@pytest.mark.parametrize("can_rename", [True, False], ids=["rename", "link"])
def test_a_file_that_appears_at_the_last_moment_is_not_replaced(
    make: Make, project: str, data: Path, monkeypatch: pytest.MonkeyPatch, can_rename: bool
) -> None:
    path, rename = Path(project, "CLAUDE.md"), writer._rename

    def meanwhile(one: str, other: str, how: int) -> bool:
        if not path.exists():
            path.write_bytes(b"theirs\n")
        return can_rename and rename(one, other, how)

    monkeypatch.setattr(writer, "_rename", meanwhile)
    assert make()
    assert path.read_bytes() == b"theirs\nours\n"
    assert backups(data) == [b"theirs\n"]
    assert others(path) == set()


def test_where_no_file_can_be_renamed_without_replacing_another_it_is_linked(
    make: Make, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_rename", lambda *_: False)
    assert make()
    path = Path(project, "CLAUDE.md")
    assert path.read_bytes() == b"the first\nours\n"
    assert others(path) == set()
    assert path.stat().st_nlink == 1


def test_where_no_file_can_be_made_without_a_risk_none_is(
    make: Make, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(writer, "_rename", lambda *_: False)
    monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(BadInput, match=r"CLAUDE.md cannot be made .*; make an empty file of that name"):
        make()
    assert os.listdir(project) == []
    Path(project, "CLAUDE.md").touch()
    assert make()  # as the message says


def test_a_link_that_leads_nowhere_makes_no_file(make: Make, project: str, tmp_path: Path) -> None:
    Path(project, "CLAUDE.md").symlink_to(tmp_path / "outside.md")
    with pytest.raises(BadInput, match="is a link that leads nowhere; remove it"):
        make()
    assert os.listdir(project) == ["CLAUDE.md"]
    assert not (tmp_path / "outside.md").exists()


def test_no_file_is_made_outside_of_the_project(make: Make, project: str, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    Path(project, "docs").symlink_to(tmp_path / "outside")
    for name in ("docs/CLAUDE.md", "../CLAUDE.md", "../outside/CLAUDE.md"):
        with pytest.raises(BadInput, match="outside of the project"):
            make(name=name)
    assert os.listdir(tmp_path / "outside") == []


def test_no_file_is_made_in_a_folder_that_is_not_there_or_may_not_be_written(
    make: Make, project: str
) -> None:
    with pytest.raises(BadInput, match=r"gone/CLAUDE.md cannot be made \(No such file or directory\)"):
        make(name="gone/CLAUDE.md")
    Path(project).chmod(0o555)
    try:
        with pytest.raises(BadInput, match="its folder cannot be written"):
            make()
    finally:
        Path(project).chmod(0o755)
    assert os.listdir(project) == []


def test_a_version_that_a_kill_left_where_the_file_was_is_backed_up_before_a_new_one_is_made(
    make: Make, project: str, data: Path
) -> None:
    path = Path(project, "CLAUDE.md")
    Path(writer._beside(str(path), str(data))).write_bytes(b"a person's\n")
    assert make()
    assert path.read_bytes() == b"the first\nours\n"
    assert backups(data) == [b"a person's\n"]
    assert others(path) == set()


def test_no_file_is_made_that_is_too_large_or_fails_halfway(
    make: Make, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BadInput, match="larger than 10 MB"):
        make(create=b"x" * writer.LARGEST)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(BadInput, match=r"cannot be made \(No space left on device\)"):
            make()
    assert os.listdir(project) == []


# Others change the file meanwhile.


def changing(edit: Callable[[], None]) -> tuple[Callable[[bytes], bytes], list[bytes]]:
    """A change during whose first run somebody edits the file, and what it was given."""
    given: list[bytes] = []

    def change(text: bytes) -> bytes:
        given.append(text)
        if len(given) == 1:
            edit()
        return text + b"ours\n"

    return change, given


def test_an_edit_between_reading_and_replacing_is_not_lost(file: Path, data: Path) -> None:
    def append() -> None:
        with file.open("ab") as opened:
            opened.write(b"theirs\n")

    def save() -> None:
        beside = file.with_name("CLAUDE.md~")
        beside.write_bytes(TEXT + b"theirs\n")
        beside.rename(file)

    def same_size_and_time() -> None:
        before = file.stat()
        file.write_bytes(TEXT[:-7] + b"theirs\n")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert file.stat().st_size == before.st_size

    for edit in (append, save, same_size_and_time):
        file.write_bytes(TEXT)
        time.sleep(2 * writer.SETTLED)
        change, given = changing(edit)
        assert writer.rewrite(str(file), str(file.parent), str(data), change, now=NOW)
        assert given[0] == TEXT
        assert given[1].endswith(b"theirs\n")
        assert file.read_bytes() == given[1] + b"ours\n"
        assert given[1] in backups(data)
        assert others(file) == set()


def test_a_new_mode_between_reading_and_replacing_is_not_lost(file: Path, data: Path) -> None:
    change, _ = changing(lambda: file.chmod(0o600))
    assert writer.rewrite(str(file), str(file.parent), str(data), change, now=NOW)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_file_that_is_removed_meanwhile_does_not_come_back(file: Path, data: Path) -> None:
    change, given = changing(file.unlink)
    assert writer.rewrite(str(file), str(file.parent), str(data), change, now=NOW) is False
    assert given == [TEXT]
    assert os.listdir(file.parent) == []


def test_a_link_that_is_put_in_its_place_meanwhile_is_judged_anew(
    file: Path, data: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.md"
    outside.write_bytes(TEXT)

    def link() -> None:
        file.unlink()
        file.symlink_to(outside)

    change, _ = changing(link)
    with pytest.raises(BadInput, match="outside of the project"):
        writer.rewrite(str(file), str(file.parent), str(data), change, now=NOW)
    assert outside.read_bytes() == TEXT


def test_a_file_that_never_rests_stays_with_who_changes_it(file: Path, data: Path) -> None:
    given = []

    def change(text: bytes) -> bytes:
        given.append(text)
        with file.open("ab") as opened:
            opened.write(b"theirs\n")
        return text + b"ours\n"

    with pytest.raises(Conflict, match="keeps changing"):
        writer.rewrite(str(file), str(file.parent), str(data), change, now=NOW)
    assert file.read_bytes() == TEXT + b"theirs\n" * len(given)
    assert others(file) == set()


def test_a_file_that_is_half_written_is_waited_for(
    show: Show, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most editors empty a file and then fill it; who reads it in between would take it for empty."""
    monkeypatch.setattr(writer, "SETTLED", 0.5)
    file.write_bytes(b"")
    filling = threading.Timer(0.25, lambda: file.write_bytes(b"whole\n"))
    filling.start()
    show(ONE)
    filling.join()
    assert file.read_bytes() == b"whole\n\n" + section(ONE)


@contextmanager
def held(file: Path, *, keep: bool = True) -> Iterator[IO[bytes]]:
    """Another program that has the file open for writing. It writes what it is sent, when that ends."""
    open_it = ">>" if keep else ">"
    command = ["sh", "-c", f'(echo ready; exec cat >&3) 3{open_it} "$1"', "sh", str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin and other.stdout
        assert other.stdout.readline() == b"ready\n"
        yield other.stdin
        other.stdin.close()
    assert other.returncode == 0


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who has a file open")


@on_linux
@pytest.mark.parametrize("keep", [True, False], ids=["appends", "overwrites"])
def test_who_has_the_file_open_for_writing_is_waited_for(show: Show, file: Path, keep: bool) -> None:
    with held(file, keep=keep) as other:
        time.sleep(2 * writer.SETTLED)  # nothing has changed for a while

        def finish() -> None:
            other.write(b"theirs\n")
            other.close()

        finishing = threading.Timer(0.2, finish)
        finishing.start()
        assert show(ONE)
        finishing.join()
    assert file.read_bytes() == (TEXT if keep else b"") + b"theirs\n\n" + section(ONE)


@on_linux
def test_who_keeps_the_file_open_for_writing_keeps_it(show: Show, file: Path) -> None:
    show(ONE)
    before = file.read_bytes()
    with held(file) as other:
        began = time.monotonic()
        assert f"{file} is open for writing in another program; close it there" in refused(show, TWO)
        assert 0.9 < time.monotonic() - began < 3
        other.write(b"theirs\n")
    assert file.read_bytes() == before + b"theirs\n"
    assert others(file) == set()
    assert show(TWO)
    assert file.read_bytes() == TEXT + b"theirs\n\n" + section(TWO)


@on_linux
def test_who_opens_the_file_between_reading_and_replacing_keeps_it(file: Path, data: Path) -> None:
    with ExitStack() as stack:
        opened: list[IO[bytes]] = []

        def change(text: bytes) -> bytes:
            if not opened:
                opened.append(stack.enter_context(held(file)))
            return text + b"ours\n"

        time.sleep(2 * writer.SETTLED)
        with pytest.raises(Conflict, match="is open for writing"):
            writer.rewrite(str(file), str(file.parent), str(data), change, now=NOW)
        opened[0].write(b"theirs\n")
    assert file.read_bytes() == TEXT + b"theirs\n"


def test_who_only_reads_the_file_is_not_waited_for(
    show: Show, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    show(ONE)
    with file.open("rb"):
        monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("there is nothing to wait for"))
        assert show(TWO)


ASKING = """
import fcntl, sys, time
sys.path.insert(0, sys.argv[1])
from backstory.claude_md.write import writer

real = fcntl.fcntl
def slow(handle, command, argument):
    real(handle, command, argument)
    if (command, argument) == (fcntl.F_SETLEASE, fcntl.F_RDLCK):
        fcntl.fcntl = real
        print("asking", flush=True)
        time.sleep(0.5)
fcntl.fcntl = slow
assert writer.put_views(sys.argv[2], sys.argv[3], [("ab12cd34", "text")], 0)
"""


@on_linux
def test_who_opens_the_file_while_we_ask_whether_it_is_open_waits_and_ends_nobody(
    file: Path, data: Path
) -> None:
    command = [sys.executable, "-c", ASKING, SOURCE, str(file.parent), str(data)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as asking:
        assert asking.stdout
        assert asking.stdout.readline() == b"asking\n"
        with file.open("ab") as opened:
            opened.write(b"theirs\n")
        assert asking.wait(30) == 0
    assert file.read_bytes() == TEXT + b"theirs\n\n" + section([("ab12cd34", "text")])


@pytest.mark.parametrize("code", [errno.EACCES, errno.EINVAL, errno.ENOLCK])
def test_where_it_cannot_be_told_who_has_the_file_open_it_is_changed_all_the_same(
    show: Show, file: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "fcntl", refuse)
    assert show(ONE)
    assert file.read_bytes() == TEXT + b"\n" + section(ONE)


def test_our_own_last_write_is_not_waited_for(
    show: Show, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(_: float) -> None:
        raise AssertionError("there is nothing to wait for")

    show(ONE)
    monkeypatch.setattr(time, "sleep", never)
    assert show(TWO)


# Kills, and several at once. These run in processes of their own.

DYING = """
import json, os, signal, sys
sys.path.insert(0, sys.argv[1])
from backstory.claude_md.write import writer

folder, data = sys.argv[2:4]
path = os.path.join(folder, "CLAUDE.md")
HARMLESS = {"stat", "lstat", "fstat", "listdir", "access", "fspath", "getpid", "read", "readline", "readlink"}

def show(text):
    assert writer.put_views(folder, data, [("ab12cd34", text)], 0)

def die_before(step):
    # Every call into the system is one into C: of a function in posix or fcntl, or of an open file.
    seen = 0
    def watch(frame, event, call):
        nonlocal seen
        if event == "c_call" and call.__name__ not in HARMLESS:
            origin = getattr(call, "__module__", None) or type(call.__self__).__module__
            seen += origin in ("posix", "fcntl", "_io")
            if seen == step:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.setprofile(watch)

def forked(run):
    child = os.fork()
    if not child:
        run()
        os._exit(0)
    return os.waitpid(child, 0)[1]

def state():
    with open(path) as file:
        return {"text": file.read(), "files": os.listdir(folder)}

def dying():
    die_before(step)
    show("after")
    sys.setprofile(None)

step, rounds = 0, []
while not rounds or rounds[-1]["status"]:
    step += 1
    show("before")
    with open(path, "a") as file:
        file.write("a person, before step %d\\n" % step)
    before = state()
    status = forked(dying)
    after = state()
    show("mended")
    rounds.append({"status": status, "before": before, "after": after, "mended": state()})
print(json.dumps(rounds))
"""


def test_a_kill_at_any_step_leaves_the_old_file_or_the_new_one(file: Path, data: Path) -> None:
    file.write_bytes(b"")
    program = [sys.executable, "-c", DYING, SOURCE, str(file.parent), str(data)]
    ran = subprocess.run(program, capture_output=True, timeout=120, check=True)
    rounds = json.loads(ran.stdout)
    written = ""
    for step, each in enumerate(rounds, 1):
        assert each["status"] == (0 if step == len(rounds) else signal.SIGKILL)
        old = f"{written}\n{shown('before')}a person, before step {step}\n"
        written += f"a person, before step {step}\n"
        assert each["before"] == {"text": old, "files": ["CLAUDE.md"]}
        assert each["after"]["text"] in (old, f"{written}\n{shown('after')}")
        assert len(each["after"]["files"]) <= 2
        assert each["mended"] == {"text": f"{written}\n{shown('mended')}", "files": ["CLAUDE.md"]}
    # The kills were where it matters: before and after the rename, and with a file beside it.
    assert len(rounds) > 15
    assert len({shown("after") in each["after"]["text"] for each in rounds[:-1]}) == 2
    assert any(len(each["after"]["files"]) == 2 for each in rounds)


def shown(text: str) -> str:
    return section([("ab12cd34", text)]).decode()


SAVING = """
exchange, times = writer._exchange, []
def meanwhile(*files):
    if not times:
        with open(path + ".swp", "wb") as file:
            file.write(b"A person's version.\\n")
        os.rename(path + ".swp", path)
    times.append(files)
    if len(times) > int(sys.argv[4]):
        os.kill(os.getpid(), signal.SIGKILL)
    return exchange(*files)
writer._exchange = meanwhile
show("text")
"""


@pytest.mark.parametrize("lives", [1, 9])
def test_a_version_that_is_saved_at_the_last_moment_is_not_lost(
    show: Show, file: Path, data: Path, lives: int
) -> None:
    """Between the last look at the file and its replacement; with one life, the writer is killed before it
    can undo that."""
    program = [sys.executable, "-c", DYING.partition("step, rounds = ")[0] + SAVING, SOURCE]
    code = subprocess.run(
        [*program, str(file.parent), str(data), str(lives)], timeout=60, check=False
    ).returncode
    assert code == (0 if lives > 1 else -signal.SIGKILL)
    show(ONE)
    text = b"A person's version.\n"
    if lives > 1:
        assert file.read_bytes() == text + b"\n" + section(ONE)
    else:
        assert text in backups(data)
    assert others(file) == set()


def test_what_a_kill_has_left_beside_the_file_can_be_removed(show: Show, file: Path, data: Path) -> None:
    dying = DYING.partition("step, rounds = ")[0]
    dying += "writer._exchange = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\nshow('text')\n"
    program = [sys.executable, "-c", dying, SOURCE, str(file.parent), str(data)]
    assert subprocess.run(program, timeout=60, check=False).returncode == -signal.SIGKILL
    assert len(others(file)) == 1

    made = os.path.join(file.parent, others(file).pop())
    writer.remove_leftover(str(file.parent), str(data.parent / "another"), NOW)
    assert os.path.exists(made)
    writer.remove_leftover(str(file.parent), str(data), NOW)
    assert others(file) == set()
    assert file.read_bytes() == TEXT
    with writer.turn(str(file.parent), str(data), NOW):
        Path(made).write_bytes(b"somebody's")
        writer.remove_leftover(str(file.parent), str(data), NOW)
        assert Path(made).read_bytes() == b"somebody's"  # it is not a leftover while somebody writes
    assert show(ONE)
    writer.remove_leftover(str(file.parent), str(data), NOW)
    assert others(file) == set()


def test_without_a_leftover_nothing_is_made(project: str, data: Path) -> None:
    writer.remove_leftover(project, str(data), NOW)
    writer.remove_leftover(os.path.join(project, "gone"), str(data), NOW)
    assert not data.exists()


MAKING = """
def make():
    assert writer.rewrite(path, folder, data, lambda text: text + b"ours\\n", now=0, create=b"the first\\n")

def text():
    return open(path).read() if os.path.exists(path) else None

if sys.argv[4] == "link":
    writer._rename = lambda *_: False
step, rounds = 0, []
while not rounds or rounds[-1]["status"]:
    step += 1
    def dying():
        die_before(step)
        make()
        sys.setprofile(None)
    status = forked(dying)
    after = {"text": text(), "files": os.listdir(folder)}
    make()
    rounds.append({"status": status, "after": after, "mended": text(), "files": os.listdir(folder)})
    os.unlink(path)
print(json.dumps(rounds))
"""


@pytest.mark.parametrize("how", ["rename", "link"])
def test_a_kill_at_any_step_leaves_no_file_or_the_new_one(project: str, data: Path, how: str) -> None:
    program = [sys.executable, "-c", DYING.partition("step, rounds = ")[0] + MAKING, SOURCE]
    ran = subprocess.run([*program, project, str(data), how], capture_output=True, timeout=120, check=True)
    rounds = json.loads(ran.stdout)
    for step, each in enumerate(rounds, 1):
        assert each["status"] == (0 if step == len(rounds) else signal.SIGKILL)
        assert each["after"]["text"] in (None, "the first\nours\n")
        was_made = each["after"]["text"] is not None
        assert each["mended"] == "the first\n" + "ours\n" * (1 + was_made)
        assert each["files"] == ["CLAUDE.md"]
    assert len(rounds) > 5
    assert {each["after"]["text"] is None for each in rounds} == {True, False}
    assert any(len(each["after"]["files"]) == 2 for each in rounds) or how == "rename"
    assert set(backups(data)) <= {b"", b"the first\nours\n"}  # a leftover that is not noted may be anybody's


AT_ONCE = """
import sys, time
sys.path.insert(0, sys.argv[1])
from backstory.claude_md.write import writer

folder, data, name, at = sys.argv[2:]
time.sleep(max(0, float(at) - time.time()))
path, change = folder + "/CLAUDE.md", lambda text: text + name.encode() + b"\\n"
assert writer.rewrite(path, folder, data, change, now=0, create=b"the first\\n")
"""


def test_several_who_make_the_file_at_once_make_one(project: str, data: Path) -> None:
    names = ["a", "b", "c", "d"]
    at = str(time.time() + 0.5)
    makers = [
        subprocess.Popen([sys.executable, "-c", AT_ONCE, SOURCE, project, str(data), name, at])
        for name in names
    ]
    assert [one.wait(timeout=60) for one in makers] == [0] * 4
    found = Path(project, "CLAUDE.md").read_text().splitlines()
    assert found[0] == "the first"
    assert sorted(found[1:]) == names
    assert os.listdir(project) == ["CLAUDE.md"]


MANY = """
import sys, time
sys.path.insert(0, sys.argv[1])
from backstory.claude_md.write import writer

folder, data, name = sys.argv[2:]
for i in range(200):
    assert writer.put_views(folder, data, [(name, "%s %d\\n```\\n" % (name, i) * 50)], 0)
    time.sleep(0.002)
"""


def test_two_processes_with_two_hundred_writes_each_leave_the_file_intact(file: Path, data: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", MANY, SOURCE, str(file.parent), str(data), name])
        for name in ("aaaaaaaa", "bbbbbbbb")
    ]
    seen = [TEXT]
    while any(one.poll() is None for one in writers):
        time.sleep(0.002)
        text = file.read_bytes()
        if text != seen[-1]:
            seen.append(text)
            assert text.startswith(TEXT + b"\n" + HEADER + b"\n\n## ")
            assert text.endswith(b"\n" + END + b"\n")
            assert text.count(HEADER) == text.count(END) == 1
            assert len(set(re.findall(rb"[ab]{8} \d+", text))) == 1
    assert [one.wait() for one in writers] == [0, 0]
    assert others(file) == set()
    assert backups(data) == [TEXT]
    turns = [b"aaaaaaaa" in text for text in seen[1:]]
    assert sum(one != other for one, other in pairwise(turns)) > 3  # they took turns, and were seen to
    assert writer.put_views(str(file.parent), str(data), [], NOW)
    assert file.read_bytes() == TEXT


def test_no_version_of_a_person_is_lost_however_fast_they_save(
    show: Show, file: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second version comes out when ours comes in, the third when they change back."""
    versions = [b"the second\n", b"the third\n"]
    exchange = writer._exchange

    def meanwhile(one: str, other: str) -> bool:
        if versions:
            (file.parent / "saved").write_bytes(versions.pop(0))
            os.rename(file.parent / "saved", file)
        return exchange(one, other)

    monkeypatch.setattr(writer, "_exchange", meanwhile)
    show(ONE)
    assert file.read_bytes() == b"the second\n\n" + section(ONE)
    assert b"the third\n" in backups(data)
    assert others(file) == set()


def test_a_version_that_came_out_before_a_kill_is_kept_though_the_file_changed_since(
    show: Show, file: Path, data: Path
) -> None:
    show(ONE)
    Path(writer._beside(str(file), str(data))).write_bytes(b"a person's\n")
    file.write_bytes(b"newer\n")
    writer.remove_leftover(str(file.parent), str(data), NOW)
    assert backups(data)[-1] == b"a person's\n"
    assert others(file) == set()


def test_a_drive_that_gives_no_leases_is_written_all_the_same(
    show: Show, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = fcntl.fcntl

    def refuse(handle: int, what: int, how: int = 0) -> int:
        if what == getattr(fcntl, "F_SETLEASE", None):
            raise BlockingIOError
        return ask(handle, what, how)

    monkeypatch.setattr(fcntl, "fcntl", refuse)
    show(ONE)
    assert file.read_bytes() == TEXT + b"\n" + section(ONE)
    assert others(file) == set()


WRITING = """
import sys, time
sys.path.insert(0, sys.argv[1])
from backstory.claude_md.write import writer
from backstory.errors import Conflict
end = time.monotonic() + 4
number = 0
while time.monotonic() < end:
    number += 1
    try:
        writer.put_views(*sys.argv[2:], [("ab12cd34", f"text {number}")], 0)
    except Conflict:
        pass  # on a busy machine the file may not come to rest
"""


@on_linux
def test_a_person_who_saves_while_views_are_rewritten_without_a_pause_loses_nothing(
    file: Path, data: Path
) -> None:
    writing = subprocess.Popen([sys.executable, "-c", WRITING, SOURCE, str(file.parent), str(data)])
    edits = 0
    while writing.poll() is None:
        line = b"a person's edit %d\n" % edits
        if edits % 2:
            with open(file, "ab") as opened:
                opened.write(line)
        else:
            saved = file.with_suffix(".swp")
            saved.write_bytes(line + file.read_bytes())
            os.rename(saved, file)
        edits += 1
        time.sleep(0.03 + edits % 7 / 200)
    assert writing.returncode == 0
    kept = re.findall(rb"^a person's edit (\d+)$", file.read_bytes(), re.MULTILINE)
    assert sorted(map(int, kept)) == list(range(edits))
    assert edits > 20
