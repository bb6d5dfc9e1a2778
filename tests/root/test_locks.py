"""Locks between processes, each seen from a second descriptor, which flock takes for a second process."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from backstory import locks
from backstory.errors import StoreError


def test_a_lock_keeps_others_out_until_its_descriptor_is_closed(tmp_path: Path) -> None:
    path = str(tmp_path / "made for it" / "lock")
    held = locks.take(path, "busy")
    assert locks.try_to_take(path) is None
    with pytest.raises(StoreError, match="it is busy"):
        locks.take(path, "it is busy", 0.05)
    os.close(held)
    again = locks.try_to_take(path)
    assert again is not None
    os.close(again)


def test_who_gets_no_lock_leaves_no_descriptor_open(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    held = locks.take(path, "busy")
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(3):
        assert locks.try_to_take(path) is None
        assert locks.is_held(path)
        with pytest.raises(StoreError):
            locks.take(path, "busy", 0)
    assert (len(os.listdir("/proc/self/fd")) if before else 0) == before
    os.close(held)


def test_those_who_share_a_lock_keep_out_who_wants_it_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    first = locks.take(path, "busy", shared=True)
    second = locks.take(path, "busy", 0, shared=True)
    os.close(first)
    assert locks.try_to_take(path) is None
    os.close(second)
    alone = locks.take(path, "busy", 0)
    with pytest.raises(StoreError):
        locks.take(path, "busy", 0, shared=True)
    os.close(alone)


def test_to_ask_whether_a_lock_is_held_takes_and_makes_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    assert not locks.is_held(path)
    assert not os.path.exists(path)
    held = locks.take(path, "busy")
    assert locks.is_held(path)
    os.close(held)
    assert not locks.is_held(path)


def test_an_open_folder_is_waited_for_as_long_as_was_said(tmp_path: Path) -> None:
    first, second = (os.open(tmp_path, os.O_RDONLY) for _ in range(2))
    assert locks.wait(first, None)
    began = time.monotonic()
    assert not locks.wait(second, 0.1, pause=0.01)
    assert 0.1 <= time.monotonic() - began < 5
    os.close(first)
    assert locks.wait(second, 0)
    os.close(second)


def test_a_pid_in_the_file_tells_whose_lock_it_is_and_whether_it_was_given_back_in_order(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "lock")
    assert locks.pid_in(path) is None
    handle = locks.take(path, "busy")
    assert locks.pid_in(path) is None
    assert locks.write_pid(handle) is False
    assert locks.pid_in(path) == os.getpid()
    assert locks.write_pid(handle) is True  # whoever was here before did not take it out
    locks.clear_pid(handle)
    assert locks.pid_in(path) is None
    assert locks.write_pid(handle) is False
    os.close(handle)
