"""A data folder as it is in daily use."""

from __future__ import annotations

import time
from pathlib import Path

from backstory.store.file import backup
from backstory.store.file.connection import connect


def settle(data: Path) -> None:
    """The store is there and has the day's backup: a hook that finds none waits for the disk, and starts a
    worker that makes the first one."""
    connect(str(data / "backstory.db")).close()
    backup.make(str(data), int(time.time() * 1000))
