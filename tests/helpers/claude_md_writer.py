"""A CLAUDE.md as a person wrote it, views for it, and what the writer leaves beside it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from backstory.errors import BackstoryError
from tests.conftest import REPOSITORY

NOW = 1_800_000_000_000
ONE = [("ab12cd34", "ab12cd34 root:api: 2026-01-31T12:00:00Z\nThe API speaks JSON.")]
TWO = [*ONE, ("ef56gh78", "ef56gh78 note:: 2026-01-31T12:00:01Z\nTests come first.")]
TEXT = b"# Rules\r\n\nBe kind. \xff\n\n"

SOURCE = str(REPOSITORY / "src")

Views = list[tuple[str, str]]
Show = Callable[[Views], bool]


def backups(data: Path) -> list[bytes]:
    """What was backed up, oldest first."""
    return [path.read_bytes() for path in sorted(data.glob("backups/claude-md/*/*.md"))]


def others(file: Path) -> set[str]:
    """What else lies beside the file."""
    return set(os.listdir(file.parent)) - {file.name}


def refused(show: Show, views: Views = ONE) -> str:
    with pytest.raises(BackstoryError) as error:
        show(views)
    message = str(error.value)
    assert "CLAUDE.md" in message
    assert "; " in message  # what is wrong; what to do
    return message


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who has a file open")
