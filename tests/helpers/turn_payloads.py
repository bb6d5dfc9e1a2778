"""Turns as the hooks leave them in the spool."""

from __future__ import annotations

from pathlib import Path

from tests.helpers.chaos import MINUTE, NOW, Json, bash, event, prompt, put, tool_use


def edit(path: str) -> Json:
    given = {"file_path": path, "old_string": "a", "new_string": "b"}
    return tool_use("Edit", given, {"filePath": path})


def commit(subject: str, sha: str = "3f2c1ab") -> Json:
    return bash(f"git commit -m '{subject}'", f"[main {sha}] {subject}\n 1 file changed")


def happened(
    data: Path,
    cwd: str | Path,
    asked: str | tuple[str, ...],
    *uses: Json,
    answer: str | None = "done",
    session: str = "session-1",
    at: int = NOW - MINUTE,
) -> None:
    """One turn, a second an event. Without an answer it has not ended."""
    payloads = [prompt(text) for text in ([asked] if isinstance(asked, str) else asked)]
    payloads += uses
    if answer is not None:
        payloads.append(event("Stop", stop_hook_active=False, last_assistant_message=answer))
    for place, payload in enumerate(payloads):
        put(data, payload | {"session_id": session, "cwd": str(cwd)}, at=at + place * 1_000)
