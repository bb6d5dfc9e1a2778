"""Others change CLAUDE.md while the writer is at work."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import pytest

from backstory.claude_md.write import writer
from backstory.claude_md.write.dynamic import section
from backstory.errors import BadInput, Conflict
from tests.helpers.claude_md_writer import (
    NOW,
    ONE,
    SOURCE,
    TEXT,
    TWO,
    Show,
    backups,
    on_linux,
    others,
    refused,
)


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


def test_a_file_that_never_rests_stays_with_who_changes_it(
    file: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "PATIENCE", 0.2)
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
def test_who_opens_the_file_between_reading_and_replacing_keeps_it(
    file: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "PATIENCE", 0.2)
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
