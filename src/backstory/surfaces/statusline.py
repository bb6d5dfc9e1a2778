"""`backstory statusline`: one short line for Claude Code's status line.

Claude Code calls it at the start and once a turn, while a person works: it loads little, reads the store once
without a drain, and writes nothing. Whatever goes wrong, the line is empty and the exit code 0.
"""

from __future__ import annotations

import json
import os
import sys

from backstory import paths, paused
from backstory.capture import spool
from backstory.clients import claude_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from backstory.store.file.connection import Connection

MOST_BYTES = 1_000_000


def main() -> None:
    try:
        if os.environ.get("BACKSTORY_WORKER") != "1" and (line := status_line(_payload())):
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
    except Exception:  # noqa: BLE001  nothing may surface in a person's terminal
        return


def status_line(payload: object) -> str:
    """The line; "" where nothing can be said."""
    folder = paths.data_folder(os.environ)
    if folder is None:
        return ""
    session_id, at = claude_settings.asked_about(payload)
    at = at if os.path.isdir(at) else os.getcwd()
    if paused.is_paused(folder, at):
        return "backstory: paused here; /backstory:resume or `backstory resume` goes on"
    if failed := len(spool.failures(paths.spool(folder))):
        return f"backstory: {_many(failed, 'event')} could not be stored; see backstory status"
    from backstory.store.file.connection import as_it_is

    db = as_it_is(paths.database(folder))
    if db is None:
        return ""
    try:
        return _figures(db, at, session_id)
    finally:
        db.close()


def _figures(db: Connection, at: str, session_id: str) -> str:
    from backstory.recall.brief import left_open
    from backstory.store import projects, sessions, tellings

    project_id = projects.id_at(db, paths.place(at))
    known = sessions.remembered(db, project_id, session_id)[0] if project_id else 0
    parts = [_many(known, "session")] if known else []
    if left := len(left_open(db, at, session_id)) if known else 0:
        parts.append(f"{left} open")
    _, tokens = tellings.total(db, session_id=session_id)
    if tokens:
        parts.append(f"{_many(tokens, 'token')} told")
    return f"backstory: {', '.join(parts) or 'nothing remembered here yet'}"


def _many(number: int, one: str) -> str:
    return f"{number:,} {one}{'s' * (number != 1)}"


def _payload() -> object:
    if sys.stdin is None or sys.stdin.isatty():  # a person tries it
        return {}
    try:
        return json.loads(sys.stdin.buffer.read(MOST_BYTES))
    except ValueError:
        return {}
