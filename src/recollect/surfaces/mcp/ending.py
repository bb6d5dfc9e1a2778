"""What a server does last, at the end of its input or when a signal tells it to go.

Python handles signals in the main thread, which here mostly waits for something to do. Tool calls run in
threads of their own and may be in the middle of something; nobody waits for them, since the client does not
wait either: it sends SIGINT, soon SIGTERM, soon SIGKILL.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

from recollect import log

PATIENCE_SECONDS = 1.0  # with a call that is under way when the client hangs up
LONGEST_SECONDS = 5.0  # that whoever does it may take


class Ending:
    """Done once, by whoever comes first."""

    def __init__(self, last: Callable[[], None]) -> None:
        self._last = last
        self._came = threading.Lock()
        self._is_over = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._told)

    def come(self) -> bool:
        """False: it is here already."""
        if not self._came.acquire(blocking=False):
            return False
        try:
            self._last()
        except Exception:  # noqa: BLE001  nobody is left to be told
            log.crash("the end of a server")
        self._is_over.set()
        return True

    def wait(self) -> None:
        """Until it is over: the process would take along whoever is at it."""
        if not self.come():
            self._is_over.wait(LONGEST_SECONDS)

    def is_near(self) -> None:
        """The client hung up. A call that takes its time is not waited for."""
        after(PATIENCE_SECONDS, self._go)

    def _go(self) -> None:
        if self.come():
            os._exit(0)

    def _told(self, number: int, _: object) -> None:
        if self.come():
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)  # so that whoever waits for us learns what ended us


def after(seconds: float, act: Callable[[], None]) -> None:
    later = threading.Timer(seconds, act)
    later.daemon = True
    later.start()
