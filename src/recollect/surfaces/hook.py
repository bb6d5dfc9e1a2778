"""The part of a hook that runs on after Claude Code has its answer: drain the spool, in a session of its own.

hook.sh starts it with `python -I -S`: the standard library and this package, nothing else. It has no output;
what goes wrong is a line in the log, and the payloads stay in the spool for the next drain.
"""

from __future__ import annotations

import os
import sys
import time

MINIMUM = (3, 11)
SECONDS = 2.0  # a backlog beyond that is left to the next reader


def main() -> None:
    if sys.version_info < MINIMUM or os.environ.get("RECOLLECT_WORKER") == "1":
        return
    try:
        os.setsid()  # Claude Code ends the hook's process group when the session ends
    except OSError:
        pass  # already the leader of one
    from recollect import log

    try:
        drain()
    except Exception:  # noqa: BLE001  the edge of a hook: nothing may surface
        log.crash("hook")


def drain() -> None:
    from recollect import paths
    from recollect.intake.drain import open_store

    folder = paths.data_folder(os.environ)
    if folder is not None:
        with open_store(folder, now=int(time.time() * 1000), seconds=SECONDS):
            pass  # opening drains
