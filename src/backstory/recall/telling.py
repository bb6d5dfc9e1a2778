"""What a model is told unasked: at the first prompt, at a file, at a failing test, at a subagent's start.

Most of the time that is nothing: a memory that does not help costs attention every time it is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backstory.recall.index import Index
    from backstory.store.file.connection import Connection


@dataclass(frozen=True, slots=True)
class Telling:
    """A text for the model, fenced, and where it comes from."""

    moment: str  # as store/tellings.py names them
    text: str
    ids: tuple[str, ...]
    about: str = ""
    reason: Mapping[str, object] = field(default_factory=dict)


def at_prompt(
    index: Index, db: Connection, cwd: str, session_id: str, prompt: str, now: int
) -> Telling | None:
    """What earlier sessions know about the session's first substantive prompt, if it passes the gate."""
    return None


def at_file(db: Connection, cwd: str, session_id: str, path: str, now: int) -> Telling | None:
    """What the last turn that edited a rarely edited file came to."""
    return None


def at_failure(db: Connection, cwd: str, session_id: str, output: str, now: int) -> Telling | None:
    """How a named test that fails now was mended before."""
    return None


def at_subagent(
    index: Index, db: Connection, cwd: str, session_id: str, task: str, now: int
) -> Telling | None:
    """What concerns the task of a subagent."""
    return None


def known_files(db: Connection, now: int) -> list[str]:
    """Whole paths of the files that `at_file` may have something to say about, in all projects."""
    return []


def known_tests(db: Connection, now: int) -> list[str]:
    """Names of the tests that `at_failure` may have something to say about, in all projects."""
    return []
