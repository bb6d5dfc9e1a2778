"""What a server does last, at the end of its input or when a signal tells it to go.

A thread of its own waits for signals, since the main thread may be in the middle of anything: a lock that it
holds would be held for ever while a handler runs on top of it. Tool calls that are under way are not waited
for. The client does not wait either: it sends SIGINT, a moment later SIGTERM, and then SIGKILL.
"""

from __future__ import annotations

import os
import signal
import threading

from backstory import log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_SECONDS = 1.0  # with a call that is under way when the client hangs up
LONGEST_SECONDS = 5.0  # that whoever does it may take


class Ending:
    """Done once, by whoever comes first."""

    def __init__(self) -> None:
        self._last: list[Callable[[], None]] = []
        self._came = threading.Lock()
        self._is_over = threading.Event()
        self._is_watching = False

    def watch(self) -> None:
        """Signals bring it from now on."""
        if self._is_watching:
            return
        self._is_watching = True
        told, tell = os.pipe()
        os.set_blocking(tell, False)
        signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._handle)
        threading.Thread(target=self._listen, args=(told,), daemon=True).start()

    def also(self, act: Callable[[], None]) -> bool:
        """What is to be done then, after what was told before. False: it has come; begin nothing that
        would be left."""
        if act not in self._last:
            self._last.append(act)
        return not self._came.locked()  # asked afterwards: whoever comes now finds the act

    def come(self) -> bool:
        """False: somebody else is at it, or was."""
        if not self._came.acquire(blocking=False):
            return False
        for act in list(self._last):
            try:
                act()
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

    def _listen(self, told: int) -> None:
        number = os.read(told, 1)[0]
        if self.come():
            _die_of(number)

    def _handle(self, number: int, _: object) -> None:
        """A signal that comes when all is done ends us as always."""
        if self._is_over.is_set():
            _die_of(number)


def _die_of(number: int) -> None:
    """So that whoever waits for us learns of the signal, whatever the main thread is at: Python would let
    only that one take a handler away."""
    import ctypes

    ctypes.CDLL(None).signal(number, None)  # None is SIG_DFL
    os.kill(os.getpid(), number)


def after(seconds: float, act: Callable[[], None]) -> None:
    later = threading.Timer(seconds, act)
    later.daemon = True
    later.start()
