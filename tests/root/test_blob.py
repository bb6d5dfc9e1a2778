"""The id of a file's content."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from backstory import blob


def test_a_file_has_the_id_that_git_gives_it(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("walrus\n")
    git = subprocess.run(["git", "hash-object", file], capture_output=True, text=True, check=True)
    assert blob.blob_id(str(file)) == git.stdout.strip()


@pytest.mark.parametrize("path", ["/dev/null", "/proc/version", "/sys/kernel/notes", "/nowhere", "a\0b", "/"])
def test_what_is_no_plain_file_has_none(path: str) -> None:
    assert blob.blob_id(path) is None


def test_no_device_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(os, "open", lambda path, *_: opened.append(path))
    blob.blob_id("/dev/tty")
    assert opened == []


def test_a_file_in_memory_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blob, "NOT_FILES", (f"{tmp_path}/",))
    monkeypatch.setattr(blob, "IN_MEMORY", f"{tmp_path}/shm/")
    (tmp_path / "shm").mkdir()
    for name in ("device", "shm/file"):
        (tmp_path / name).write_text("walrus")
    assert blob.blob_id(f"{tmp_path}/device") is None
    assert blob.blob_id(f"{tmp_path}/shm/file")
