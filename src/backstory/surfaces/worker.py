"""`backstory worker`: the process around the worker. Hooks start it, nobody waits for it.

A lock keeps it the only one of its store. The lock's file holds its pid while it runs and is empty when it
ended well; whoever finds a pid there after the lock was free knows that it did not, and looks at the database
before trusting it.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import AbstractContextManager
from importlib.metadata import PackageNotFoundError, distribution

from backstory import config, locks, log, paths
from backstory.clients import claude_code
from backstory.errors import Damaged
from backstory.intake import checkouts
from backstory.model import now_ms
from backstory.store import queue, turns
from backstory.store.file import backup, recovery
from backstory.store.file.connection import Connection
from backstory.surfaces.opened import open_drained
from backstory.synthesis.claude import Claude, available
from backstory.synthesis.local import Local
from backstory.synthesis.runner import Settings, Worker

DRAIN_SECONDS = 2.0


def main() -> None:
    """As hooks start it. While a plugin is being set up the work waits: there is no `backstory config` yet to
    switch the model off."""
    folder = paths.data_folder(os.environ)
    if folder is not None and not _is_being_set_up(os.environ):
        os.chdir(folder)  # not to keep the project's folder busy
        run(folder)


def _is_being_set_up(env: Mapping[str, str]) -> bool:
    """A plugin from a marketplace, run by a Python that backstory is not installed in."""
    if not env.get(claude_code.PLUGIN_DATA):
        return False
    try:
        distribution("backstory")
    except PackageNotFoundError:
        return True
    return False


def run(folder: str) -> bool:
    """Work until there is nothing left to do; False where another worker is at it."""
    worked = False
    while (lock := _take(folder)) is not None:
        worked = True
        try:
            stopped = asyncio.run(_work(folder))
        finally:
            locks.clear_pid(lock)
            os.close(lock)
        # Who queued something a moment ago may have seen the lock still taken.
        if stopped or not _is_needed(folder):
            break
    return worked


def _take(folder: str) -> int | None:
    """The lock, with our pid in it. The database is checked where the last worker did not end well."""
    lock = locks.try_to_take(paths.worker_lock(folder))
    if lock is not None and locks.write_pid(lock):
        log.write("warning", "the last worker did not end well; checking the database")
        recovery.verify(folder, now_ms())
    return lock


async def _work(folder: str) -> bool:
    """Whether it was told to end, though there may be work left."""
    if not paths.close_to_others(folder):
        log.write("warning", f"{folder} is open to others; `backstory doctor` says what to do")
    env = os.environ
    settings = Settings(
        synthesizer=config.synthesizer(env),
        daily_usd=config.number("spend.daily_usd", env),
        idle_seconds=config.number("worker.idle_seconds", env),
    )
    away = available(env)
    worker = Worker(
        lambda: _store(folder),
        settings,
        local=Local(),
        claude=None if away else Claude(env, config.setting("claude.model", env)),
        missing=str(away or ""),
    )
    with _store(folder) as db:
        settle(db, now_ms())
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, worker.stop)
    await worker.run()
    if not worker.stopped:
        _retain(folder)
    if backup.due(folder, now_ms()) and not worker.stopped:  # last: the copy of a large store takes its time
        _back_up(folder)
    return worker.stopped


def settle(db: Connection, now: int) -> None:
    """What no reader waits for: sessions that fell silent are closed, new checkouts are looked at."""
    turns.close_silent(db, now)
    checkouts.learn(db, now)


def _retain(folder: str) -> None:
    """Before the backup: what is erased today is not in it."""
    from backstory.surfaces import erasing

    try:
        erasing.retain(folder, now_ms())
    except Exception:  # noqa: BLE001  the next worker tries again; the backup must be made all the same
        log.crash("retention")


def _back_up(folder: str) -> None:
    try:
        backup.make(folder, now_ms())
        backup.prune(folder)
    except Damaged:  # a copy shows what nobody had run into yet
        recovery.recover(folder, now_ms())
    except Exception:  # noqa: BLE001  a full disk must not keep anything from being observed
        log.crash("backup")


def _is_needed(folder: str) -> bool:
    with _store(folder) as db:
        return bool(queue.due(db, now_ms(), config.synthesizer(os.environ)))


def _store(folder: str) -> AbstractContextManager[Connection]:
    return open_drained(folder, now=now_ms(), seconds=DRAIN_SECONDS)
