"""The part of a hook that is Python: the brief at a session's start, and what goes on after Claude Code has
its answer: drain the spool, and start the worker where there is work for it.

hook.sh starts it with `python -I -S`: the standard library and this package, nothing else. stdout carries the
brief and nothing but the brief; what goes wrong is a line in the log, and the payloads stay in the spool for
the next drain.
"""

from __future__ import annotations

import os
import sys
import time

from recollect import config, log, paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from sqlite3 import Connection

MINIMUM = (3, 11)
SECONDS = 2.0  # a backlog beyond that is left to the worker
SECONDS_AWAITED = 0.05  # the same where the user waits
START_WORKER = """
import sys
sys.path.insert(0, sys.argv[1])
from recollect import log
try:
    from recollect.surfaces import worker
    worker.main()
except Exception:
    log.crash("worker")  # nobody is there to see it
"""


def main(mode: str) -> None:
    if sys.version_info < MINIMUM or os.environ.get("RECOLLECT_WORKER") == "1":
        return
    folder = paths.data_folder(os.environ)
    if folder is None:
        return
    try:
        if mode == "start":
            begin(folder, sys.stdin.buffer.read())
        else:
            go_on(folder)
    except Exception:  # noqa: BLE001  the edge of a hook: nothing may surface
        log.crash("hook")


def begin(folder: str, payload: bytes) -> None:
    """Tell the model what happened before; it is all that the user waits for. Where the store cannot be had
    at once, nothing is told, and the worker sees to it."""
    import json
    from sqlite3 import OperationalError

    from recollect.errors import StoreError
    from recollect.intake.drain import open_store
    from recollect.recall import brief

    given = json.loads(payload)
    env = _shared(given["session_id"])
    now = int(time.time() * 1000)
    try:
        with open_store(folder, now=now, seconds=SECONDS_AWAITED, hurried=True) as db:
            tokens = int(config.number("brief.tokens", os.environ))
            told = brief.brief(db, given["cwd"], given["session_id"], given.get("source", ""), tokens)
            if told.text:
                sys.stdout.buffer.write(told.text.encode("utf-8", "replace") + b"\n")
                sys.stdout.buffer.flush()
            needed = _is_work(db, folder, now, env)
            try:
                _choose(db, given["session_id"])
                brief.note(db, given["session_id"], told.ids, now)
            except OperationalError:
                pass  # others write. The prompt's hook says again what was chosen; what was shown can wait
    except StoreError as error:
        log.write("warning", f"no brief: {error}")
        needed = True
    if needed:
        start_worker(folder, env)


def go_on(folder: str) -> None:
    """Nobody waits for this; Claude Code ends the hook's process group when the session ends, not ours."""
    try:
        os.setsid()
    except OSError:
        pass  # already the leader of one
    from recollect.intake.drain import open_store

    session_id = os.environ.get("CLAUDE_CODE_SESSION_ID", "")
    env = _shared(session_id)
    now = int(time.time() * 1000)
    with open_store(folder, now=now, seconds=SECONDS) as db:
        _choose(db, session_id)
        needed = _is_work(db, folder, now, env)
    if needed:
        start_worker(folder, env)


def _choose(db: Connection, session_id: str) -> None:
    """Who keeps one session from the model does not want it sent by a worker that another session started."""
    if "RECOLLECT_SYNTHESIZER" in os.environ:
        from recollect.store import sessions

        sessions.choose(db, session_id, config.synthesizer(os.environ))


def _shared(session_id: str) -> Mapping[str, str]:
    """The environment of a worker. It serves every session, so what was chosen for this one stays out of it,
    unless the client does not say which one this is: then it can be kept in no other way."""
    if not session_id:
        return os.environ
    return {name: value for name, value in os.environ.items() if name != "RECOLLECT_SYNTHESIZER"}


def _is_work(db: Connection, folder: str, now: int, env: Mapping[str, str]) -> bool:
    """Something to observe, to back up, or more in the spool than this hook could take."""
    from recollect.capture import spool
    from recollect.store import backup, queue

    if queue.due(db, now, config.synthesizer(env)):
        return True
    return backup.due(folder, now) or bool(spool.waiting(paths.spool(folder)))


def start_worker(folder: str, env: Mapping[str, str]) -> None:
    """A process of its own, unless one runs already."""
    import fcntl

    lock = os.open(paths.worker_lock(folder), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    finally:
        os.close(lock)
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    nothing = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    command = [sys.executable, "-I", "-X", "utf8", "-c", START_WORKER, package]
    os.posix_spawn(sys.executable, command, env, file_actions=nothing, setsid=True)
