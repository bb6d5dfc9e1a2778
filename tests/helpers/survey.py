"""A project of a few files, and what a survey finds in it."""

from __future__ import annotations

import json
from pathlib import Path

from backstory.claude_md.read.files import ProjectFiles, walk
from backstory.claude_md.read.survey import survey
from backstory.model import Survey

Files = dict[str, str]


def write(root: Path, files: Files) -> ProjectFiles:
    """A project with these files."""
    place = root / "project"
    for path, text in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text, encoding="utf-8")
    return walk(str(place))


def look(root: Path, files: Files) -> Survey:
    """The survey of a project with these files."""
    return survey(write(root, files))


def facts(found: Survey) -> set[str]:
    lines = {f"language: {name}" for name, _ in found.languages}
    lines |= {f"framework: {name}" for name in found.frameworks}
    lines |= {f"manager: {name}" for name in found.managers}
    lines |= {f"{command.role}: {command.line}" for command in found.commands}
    lines |= {f"workspace: {path}" for path in found.workspaces}
    return lines | {f"subtree: {path}" for path in found.subtrees}


def many(folder: str, ending: str, number: int = 20) -> Files:
    return {f"{folder}/part{count}.{ending}": "x\n" for count in range(number)}


PACKAGE = json.dumps(
    {
        "name": "walrus",
        "description": "Counts walruses.",
        "scripts": {
            "build": "tsc",
            "build:docs": "typedoc",
            "test": "jest",
            "test:unit": "jest unit",
            "lint": "eslint .",
            "start": "node .",
            "pretest": "npm run build",
            "testing": "x",
            "release": "x",
            "format": "",
        },
        "dependencies": {"express": "^4", "react": "18"},
        "devDependencies": {"@playwright/test": "1"},
        "peerDependencies": {"vue": "3"},
        "jest": {"testEnvironment": "node"},
    }
)
