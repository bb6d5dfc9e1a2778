"""Erasing for good, as the command and the worker do it: out of the store, the files beside it, and backups.

A file in the data folder marks that it was begun: until nothing of the old bytes is left. Killed anywhere,
`finish` goes on: what is to be erased is hidden and noted in the store (store/forgetting.py), and removing it
twice does no harm.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from backstory import config, log
from backstory.errors import BackstoryError
from backstory.store import forgetting, projects, redaction, removal
from backstory.store.file import backup, older
from backstory.store.file.backup import Backup
from backstory.store.file.connection import Connection, latest, transaction
from backstory.store.forgetting import Conditions, Forgetting, Preview, Run
from backstory.surfaces.opened import open_drained

MARKER = "erasing"  # in the data folder: something is not erased yet, or old bytes may still be there
LOGS, OUTBOX, FAILED = "logs", "outbox", os.path.join("spool", "failed")
LISTS = ("known", "run")  # what hooks look into: files and tests by name


@dataclass(slots=True)
class Finished:
    at: int
    memories: int = 0
    holding: list[Backup] = field(default_factory=list)  # backups that still hold it
    changed: list[str] = field(default_factory=list)  # backups that do not any more
    left: list[tuple[str, str]] = field(default_factory=list)  # (path, why it was left)
    is_clean: bool = True  # no old bytes are in the store's file


def erase(
    home: str, db: Connection, wanted: Conditions, now: int, *, everywhere: bool = False
) -> tuple[Preview, Finished]:
    """Erase all that fits, with whatever was begun before and not finished."""
    mark(home)
    _, seen = removal.begin_erasing(db, wanted, now, everywhere=everywhere)
    return seen, finish(home, db, now)


def erase_project(home: str, db: Connection, project_id: str, now: int) -> bool:
    """All that is stored of a project, and that there was one; see `compact` for the answer."""
    mark(home)
    with transaction(db):
        removal.erase_project(db, project_id, now)
    return compact(home, db)


def erase_memory(home: str, db: Connection, memory_id: str, now: int) -> None:
    """One memory, at once. The rest is for the next worker: to write a store anew takes too long for who
    waits for an answer."""
    mark(home)
    removal.erase_memory(db, memory_id, now)


def is_unfinished(home: str) -> bool:
    return os.path.exists(os.path.join(home, MARKER))


def finish(home: str, db: Connection, now: int) -> Finished:
    """Go on with all that was begun."""
    done = Finished(now)
    of_before = older.files(home)
    for one in forgetting.erasing(db):
        mark(home)
        ids, session_ids = removal.hidden_ids(db, one.at)
        _clear_files(home, db, one.conditions, session_ids, one.at)
        # First the backups: they are known by what is still in the store.
        old = []
        if one.said_by == "user":
            with backup.alone(home):
                old = _clear_backups(home, one, ids, session_ids, done)
            done.left += [(path, f"{older.NOT_TOUCHED}; {older.THEN}") for path in of_before]
        done.memories += removal.sweep(db, one)
        _replace(home, db, old, now, done)
        removal.done_erasing(db, one)
        if one.conditions.match:
            done.left += _still_holding(home, one.conditions.match, {held.path for held in done.holding})
    if is_unfinished(home):
        done.is_clean = compact(home, db)
    return done


def compact(home: str, db: Connection) -> bool:
    """Let no old bytes stay in the store's file and log; False where another process reads an old state."""
    for path in (path for name in LISTS for path in _files(os.path.join(home, name))):
        if not path.endswith(".prompts"):  # all else is written anew, or told once more
            _remove(path)
    is_clean = redaction.compact(db)
    if is_clean and not forgetting.erasing(db):
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(home, MARKER))
    return is_clean


def mark(home: str) -> None:
    """Old bytes are about to be left in the store's file: `compact` sees to them, or the next worker."""
    path = os.path.join(home, MARKER)
    if os.path.islink(path):  # it would lead elsewhere
        os.unlink(path)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600))


# --- backups ------------------------------------------------------------------------------------------------


def _clear_backups(
    home: str, one: Forgetting, ids: Sequence[str], session_ids: Sequence[str], done: Finished
) -> list[Backup]:
    """Those of an older schema cannot be changed; they are returned, to be removed after a new one."""
    old: list[Backup] = []
    for copy in (*backup.listed(home), *backup.set_aside(home)):
        try:
            if older.wrote(copy.path):
                continue
            if one.erasing == "everywhere" and copy.schema == latest():
                if backup.rewritten(home, copy, lambda db: _erase_in_copy(db, one, ids, session_ids)):
                    done.changed.append(copy.path)
            elif removal.is_held(copy.path, one.conditions, ids, session_ids):
                (old if one.erasing == "everywhere" else done.holding).append(copy)
        except (BackstoryError, OSError) as error:
            done.left.append((copy.path, f"could not be read ({error})"))
    return old


def _erase_in_copy(db: Connection, one: Forgetting, ids: Sequence[str], session_ids: Sequence[str]) -> bool:
    found = removal.erase_in_copy(db, one, ids, session_ids)
    if found:
        redaction.compact(db)
    return found


def _replace(home: str, db: Connection, old: Sequence[Backup], now: int, done: Finished) -> None:
    """Remove backups of an older schema; not before there is a new one."""
    if not old:
        return
    redaction.compact(db)  # a backup has the free pages as well
    made = backup.make(home, now, "manual")
    for one in old:
        os.unlink(one.path)
        done.changed.append(f"{one.path} (removed: of an older schema; {made.name} is new)")


# --- other files --------------------------------------------------------------------------------------------


def _clear_files(home: str, db: Connection, wanted: Conditions, session_ids: Sequence[str], at: int) -> None:
    """Logs, outbox and what could not be stored, as far as they may hold any of it."""
    text = wanted.match.casefold() if wanted.match else None
    before = wanted.before if wanted.before is not None else at
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(before / 1000 + 1))
    for path in _files(os.path.join(home, LOGS)):
        if not path.endswith(".lock"):
            _keep_lines(path, lambda line: text not in line.casefold() if text else line[:20] > stamp)
    for path in _files(os.path.join(home, OUTBOX)):
        # A hook that was killed leaves <session>.<its own name>.
        session = os.path.basename(path).partition(".")[0]
        if session in session_ids or (text and text in _read(path).casefold()):
            _remove(path)
    root = next((one.root for one in projects.every(db) if one.id == wanted.project_id), None)
    if wanted.project_id and root is None:
        return  # merged or deleted since: nothing says which folder it was, and another's are not touched
    for path in _files(os.path.join(home, FAILED)):
        if not path.endswith(".reason") and _is_of(path, wanted, session_ids, root, text):
            _remove(path)
            _remove(f"{path}.reason")
        elif path.endswith(".reason") and text:
            _keep_lines(path, lambda line: text not in line.casefold())


def _is_of(
    path: str, wanted: Conditions, session_ids: Sequence[str], root: str | None, text: str | None
) -> bool:
    """Is a payload that could not be stored one of those that are erased? It may be no JSON, or lack a
    field: then the text anywhere in it will do."""
    if wanted.ids or wanted.kind not in (None, "turn"):
        return False  # it would have become part of a turn
    raw, payload = _read(path), None
    with suppress(ValueError, RecursionError):
        payload = json.loads(raw)
        raw += "\n" + json.dumps(payload, ensure_ascii=False)
    fields = payload if isinstance(payload, dict) else {}

    def is_said(name: str, value: str) -> bool:
        given = fields.get(name)
        return given == value or given.startswith(f"{value}/") if isinstance(given, str) else value in raw

    if wanted.is_retention:
        return any(is_said("session_id", one) for one in session_ids)
    return (
        (wanted.session_id is None or is_said("session_id", wanted.session_id))
        and (root is None or is_said("cwd", root))
        and (wanted.before is None or os.stat(path).st_mtime * 1000 < wanted.before)
        and (text is None or text in raw.casefold())
    )


def _files(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.path for entry in entries if entry.is_file(follow_symlinks=False))
    except OSError:
        return []


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _remove(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def _keep_lines(path: str, is_kept: Callable[[str], bool]) -> None:
    lines = _read(path).splitlines(keepends=True)
    kept = [line for line in lines if is_kept(line)]
    if len(kept) == len(lines):
        return
    beside = f"{path}.new"
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with open(fd, "w", encoding="utf-8") as file:
        file.writelines(kept)
    os.replace(beside, path)


def _still_holding(home: str, text: str, known: set[str]) -> Iterator[tuple[str, str]]:
    """Files that are the user's, or none of ours, and hold the text."""
    wanted = text.casefold()
    for place in ("backups/claude-md", "set-aside", "spool/new", "spool/tmp"):
        for folder, _, names in os.walk(os.path.join(home, place)):
            for path in (os.path.join(folder, name) for name in sorted(names)):
                if path not in known and not path.endswith(".db") and wanted in _read(path).casefold():
                    yield path, "holds the text; delete it if you do not need it"


# --- retention ----------------------------------------------------------------------------------------------


def retain(home: str, now: int, days: float | None = None) -> Run | None:
    """What the worker does once a day: forget old sessions, erase what was forgotten so a month ago, and go
    on with what was not finished. None: it was not due, or is off."""
    days = config.number("retention.days", os.environ) if days is None else days
    if not days and not is_unfinished(home):
        return None
    with open_drained(home, now=now) as db:
        if not days or not forgetting.retention_due(db, now):
            if is_unfinished(home):
                finish(home, db, now)
            return None
        done = forgetting.retain(db, days, now)
        erased = finish(home, db, now).memories
        run = Run(now, days, done.sessions if done else 0, done.turns + done.memories if done else 0, erased)
        forgetting.note_run(db, run)
    log.write(
        "info",
        f"retention of {days:g} days: {run.sessions} sessions with {run.memories} memories forgotten,"
        f" {run.erased} memories erased that were forgotten before",
    )
    return run
