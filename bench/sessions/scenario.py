"""The words in which a session to record is written down: a project, and what is said and done in it.

Paths are written as they appear in the recording, below /home/dev/<project>; record.py puts the throw-away
folder in their place on the way in and takes it out again on the way back.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.helpers.scripted_model import Step, say, together, use

__all__ = [
    "Scenario",
    "Step",
    "Turn",
    "agent",
    "bash",
    "compact",
    "edit",
    "read",
    "say",
    "together",
    "turn",
    "write",
]


@dataclass(frozen=True, slots=True)
class Turn:
    prompt: str
    steps: tuple[Step, ...]
    compacted: str = ""  # what the model makes of the conversation, where the prompt is /compact


@dataclass(frozen=True, slots=True)
class Scenario:
    project: str
    began: str  # 2026-03-03T09:12:00, UTC
    files: Mapping[str, str]  # the project before the session; they are its first commit
    turns: tuple[Turn, ...]
    first_commit: str = "Import"
    git: bool = True  # False: a folder that nobody put under version control
    subagent: tuple[Step, ...] = field(default=())  # what the agent does that the model sends out

    @property
    def root(self) -> str:
        return f"/home/dev/{self.project}"


def turn(prompt: str, *steps: Step) -> Turn:
    return Turn(prompt.strip(), steps)


def compact(summary: str) -> Turn:
    return Turn("/compact", (), summary)


def read(path: str, **options: Any) -> Step:
    return use("Read", file_path=path, **options)


def edit(path: str, old: str, new: str, *, everywhere: bool = False) -> Step:
    return use("Edit", file_path=path, old_string=old, new_string=new, replace_all=everywhere)


def write(path: str, content: str) -> Step:
    return use("Write", file_path=path, content=content)


def bash(command: str, description: str = "") -> Step:
    return use("Bash", command=command, **({"description": description} if description else {}))


def agent(description: str, prompt: str) -> Step:
    return use(
        "Agent", description=description, prompt=prompt, subagent_type="Explore", run_in_background=False
    )
