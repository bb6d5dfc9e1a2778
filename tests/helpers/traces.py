"""What the intake tests ask of a drained spool: the traces that are in the store."""

from __future__ import annotations

from pathlib import Path

from tests.helpers.chaos import Json, contents, drain, put, spooled


def commands(data: Path) -> list[str]:
    """The Bash commands remembered, oldest first."""
    lines = [text.splitlines()[1] for text in contents(data)]
    return [line.removeprefix("Command: ") for line in lines if line.startswith("Command: ")]


def remembered(data: Path, payload: Json) -> str | None:
    """What the one memory says that a payload makes; None where it makes none."""
    put(data, payload)
    drain(data)
    assert spooled(data) == []
    found = contents(data)
    assert len(found) <= 1
    return found[0] if found else None


def without(payload: Json, field: str) -> Json:
    return {name: value for name, value in payload.items() if name != field}
