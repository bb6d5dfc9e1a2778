"""`open_store`: the one way to open the store for reading or writing.

It drains first: whoever reads sees what was captured before. What drains is handed in (surfaces/opened.py),
because the spool is none of the store's business. Everything else about the file's life is in store/file/.
"""

from __future__ import annotations

import os
import sqlite3

from backstory import paths
from backstory.errors import Damaged, SchemaTooNew, StoreError, Unavailable
from backstory.store.file import swap
from backstory.store.file.connection import connect, is_busy, look_into, may_be_damage, refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from backstory.store.file.connection import Connection
    from backstory.store.file.recovery import Recovery

HURRIED_SECONDS = 0.2  # how long who is hurried waits for a lock


class open_store:
    """`with open_store(folder, now=now, drain=drain) as db:` is the store with all in it that was captured
    before now; in a folder that cannot be written, the store to read, as it is.

    It is closed afterwards, and what SQLite refuses becomes a StoreError that says what to do. A damaged
    database is recovered from a backup on the way. Who is `hurried` gets it as it can be had at once: while
    others write, without the latest events; else a StoreError.
    """

    __slots__ = ("_db", "_folder", "_handle", "_hurried", "_now", "is_read_only", "recovered")

    def __init__(
        self, folder: str, *, now: int, drain: Callable[[Connection], object], hurried: bool = False
    ) -> None:
        self._folder = folder
        self._now = now
        self._hurried = hurried
        self.recovered: Recovery | None = None
        try:
            self._open(drain)
        except (Damaged, SchemaTooNew):  # a damaged header may say that
            if hurried:
                raise
            self._recover()
            self._open(drain)

    def __enter__(self) -> Connection:
        return self._db

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._close()
        if error is None:
            return
        may_look = not self._hurried and not self.is_read_only
        if may_look and may_be_damage(paths.database(self._folder), error):
            self._recover()
            if self.recovered:
                raise StoreError(f"{self.recovered.sentence()}. Ask again") from error
        self._translate(error, is_sound=True)

    def _open(self, drain: Callable[[Connection], object]) -> None:
        hurry = HURRIED_SECONDS if self._hurried else None
        self._handle: int | None = None
        self.is_read_only = False
        try:
            self._handle = swap.share(self._folder, hurry)
            paths.close_to_others(self._folder)
            self._db = connect(paths.database(self._folder), hurry)
        except BaseException as error:
            self._unlock()
            if not isinstance(error, Unavailable):
                raise
            self._db = look_into(paths.database(self._folder), error)
            self.is_read_only = True
            return
        try:
            drain(self._db)
        except BaseException as error:
            if self._hurried and is_busy(error):
                return
            self._close()
            self._translate(error)
            raise

    def _close(self) -> None:
        self._db.close()
        self._unlock()

    def _unlock(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _recover(self) -> None:
        from backstory.store.file import recovery

        self.recovered = recovery.recover(self._folder, self._now)

    def _translate(self, error: BaseException | None, *, is_sound: bool = False) -> None:
        if isinstance(error, sqlite3.DatabaseError):
            raise refusal(paths.database(self._folder), error, is_sound=is_sound) from error
