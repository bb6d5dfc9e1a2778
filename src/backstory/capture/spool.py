"""The spool: a folder of payloads, written by hook.sh and emptied by intake.

    tmp/     being written; what a killed hook left behind is taken over after a minute
    new/     complete, waiting
    failed/  could not be stored: what may be kept of it, and beside it <name>.reason

A payload leaves new/ only after the transaction that stored it is on disk, so a drain that dies anywhere is
simply done again.
"""

from __future__ import annotations

import os

from backstory import paths

SALVAGE_AFTER_MS = 60_000  # far beyond the time-out of any hook
REASON = ".reason"


class Spooled:
    """A payload in the spool. The file's time is the event's: a hook cannot afford to ask for the time."""

    __slots__ = ("name", "size", "time_ns")

    def __init__(self, name: str, time_ns: int, size: int) -> None:
        self.name = name
        self.time_ns = time_ns
        self.size = size

    @property
    def at(self) -> int:
        return self.time_ns // 1_000_000


def waiting(folder: str) -> list[Spooled]:
    """What is complete, oldest first."""
    found = _files(os.path.join(folder, "new"))
    found.sort(key=lambda payload: (payload.time_ns, payload.name))
    return found


def is_empty(folder: str) -> bool:
    """Whether nothing waits, and no hook is at it or was killed while it was."""
    try:
        return not any(os.listdir(os.path.join(folder, name)) for name in ("new", "tmp"))
    except OSError:
        return False  # the drain says what is wrong


def read(folder: str, name: str) -> bytes | None:
    """The payload, or None when another process has already stored it."""
    try:
        with open(os.path.join(folder, "new", name), "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def remove(folder: str, name: str) -> None:
    _unlink(os.path.join(folder, "new", name))


def fail(folder: str, name: str, reason: str, text: str | None) -> None:
    """Put a payload aside, with the text that may be kept of it; None: it could not be read, and stays as it
    is. The reason is written first, so no payload ever lies there without one."""
    came, aside = os.path.join(folder, "new", name), os.path.join(folder, "failed", name)
    paths.make_folder(os.path.dirname(aside))  # somebody may have tidied it away
    try:
        at = os.stat(came).st_mtime_ns
        _write(aside + REASON, reason + "\n")
        if text is None:
            os.rename(came, aside)
        else:
            _write(aside, text)
            os.utime(aside, ns=(at, at))
            os.unlink(came)
    except FileNotFoundError:
        pass  # two drains at once: the other one was faster


def _write(path: str, text: str) -> None:
    _unlink(path)  # a link would lead elsewhere
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with open(handle, "w", encoding="utf-8", errors="replace", newline="") as file:
        file.write(text)


def salvage(folder: str, now: int) -> int:
    """Take over what hooks that died left in tmp/. Half a payload will not parse and ends in failed/."""
    rescued = 0
    for left in _files(os.path.join(folder, "tmp")):
        if now - left.at >= SALVAGE_AFTER_MS:
            try:
                os.rename(os.path.join(folder, "tmp", left.name), os.path.join(folder, "new", left.name))
            except FileNotFoundError:
                continue
            rescued += 1
    return rescued


def failures(folder: str) -> list[tuple[str, str]]:
    """(name, reason) of everything put aside."""
    found = []
    for payload in _files(os.path.join(folder, "failed")):
        if payload.name.endswith(REASON):
            continue
        try:
            path = os.path.join(folder, "failed", payload.name + REASON)
            with open(path, encoding="utf-8", errors="replace") as file:
                found.append((payload.name, file.read().strip()))
        except FileNotFoundError:
            found.append((payload.name, "no reason recorded"))
    return sorted(found)


def recently_failed(folder: str, since: int) -> int:
    """How many payloads were put aside that came after then."""
    aside = _files(os.path.join(folder, "failed"))
    return sum(payload.at >= since and not payload.name.endswith(REASON) for payload in aside)


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass  # two drains at once: the other one was faster


def _files(folder: str) -> list[Spooled]:
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    if entry.is_file(follow_symlinks=False):
                        stat = entry.stat(follow_symlinks=False)
                        found.append(Spooled(entry.name, stat.st_mtime_ns, stat.st_size))
                except FileNotFoundError:
                    continue
    except FileNotFoundError:
        pass
    return found
