"""One log file for hooks, servers and commands.

Not the logging module: importing it costs a hook more than its whole work, and its rotation is not safe with
several processes. A line is one O_APPEND write, which the kernel keeps whole; rotation is a rename under a
lock, and whoever finds the file already rotated leaves it.
"""

from __future__ import annotations

import os
import sys
import time

from backstory import config, paths
from backstory.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

LEVELS = ("debug", "info", "warning", "error")
ROTATE_BYTES = 1_000_000
KEEP = 3


def write(level: str, message: str, env: Mapping[str, str] | None = None) -> None:
    """Add a line; a log that cannot be written is no reason to fail."""
    env = os.environ if env is None else env
    folder = paths.data_folder(env)
    if folder is None or LEVELS.index(level) < _threshold(env):
        return
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    text = " ".join(message.split())  # one event, one line: a payload's newline must not forge another
    line = f"{stamp} {level.upper():7} [{os.getpid()}] {text}\n"
    try:
        _append(paths.log_file(folder), line.encode("utf-8", "replace"))
    except OSError:
        pass


def crash(where: str) -> None:
    """The exception being handled, in one line: what, and the last places it passed."""
    kind, error, trace = sys.exc_info()
    steps = []
    while trace is not None:
        code = trace.tb_frame.f_code
        steps.append(f"{os.path.basename(code.co_filename)}:{trace.tb_lineno}")
        trace = trace.tb_next
    write("error", f"{where}: {kind.__name__ if kind else '?'}: {error} at {' > '.join(steps[-4:])}")


def _threshold(env: Mapping[str, str]) -> int:
    try:
        return LEVELS.index(config.setting("log.level", env).lower())
    except (BadInput, ValueError):
        return LEVELS.index(config.DEFAULTS["log.level"])  # `backstory doctor` reports a broken setting


def _append(path: str, line: bytes) -> None:
    paths.make_folder(os.path.dirname(path))
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        os.write(handle, line)
        full = os.fstat(handle).st_size > ROTATE_BYTES
    finally:
        os.close(handle)
    if full:
        _rotate(path)


def _rotate(path: str) -> None:
    from backstory import locks

    lock = os.open(path + ".lock", os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        locks.wait(lock, None)
        if os.stat(path).st_size <= ROTATE_BYTES:
            return  # another process was faster
        for age in range(KEEP, 1, -1):
            if os.path.exists(f"{path}.{age - 1}"):
                os.replace(f"{path}.{age - 1}", f"{path}.{age}")
        os.replace(path, f"{path}.1")
    finally:
        os.close(lock)
