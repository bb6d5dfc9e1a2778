"""The id of a file's content."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from tempfile import NamedTemporaryFile

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


@pytest.mark.skipif(not os.access(blob.IN_MEMORY, os.W_OK), reason="only Linux keeps files there")
def test_a_file_in_memory_is_a_file() -> None:
    with NamedTemporaryFile(dir=blob.IN_MEMORY) as file:
        assert blob.blob_id(file.name)
