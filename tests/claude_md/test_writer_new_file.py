"""The writer makes a CLAUDE.md that is not there yet."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from backstory.claude_md.write import writer
from backstory.errors import BadInput
from tests.helpers.claude_md_writer import NOW, TEXT, backups, others

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
    with pytest.raises(BadInput, match="larger than 1 MB"):
        make(create=b"x" * writer.LARGEST)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(BadInput, match=r"cannot be made \(No space left on device\)"):
            make()
    assert os.listdir(project) == []
