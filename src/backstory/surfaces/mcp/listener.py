"""The server's end of the socket on which hooks ask while the user waits; theirs is surfaces/asking.py.

A thread takes one connection after the other, one request each. A client that sends too much, sends nothing,
or is of another user is cut off. The socket lies in a folder that only its owner can enter. What was told is
noted after the hook has read it: a store that is busy or a disk that is full keeps no prompt waiting.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import struct
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING

from backstory import config, log, paths
from backstory.errors import BackstoryError, BadInput, Unavailable
from backstory.gist import tokens
from backstory.model import now_ms
from backstory.recall import telling
from backstory.recall.telling import Telling
from backstory.safety.clean import clean
from backstory.store import tellings
from backstory.store.file.connection import Connection, may_be_unavailable, transaction
from backstory.surfaces import asking, noting

if TYPE_CHECKING:
    from backstory.recall.index import Index

Store = Callable[[], AbstractContextManager[Connection]]

SETTINGS = {
    tellings.PROMPT: "recall.prompt",
    tellings.FILE: "recall.files",
    tellings.FAILURE: "recall.files",
}
WAITING = 8  # connections that the system keeps for us
SECONDS_READING = 0.2  # a hook sends its request at once
SECONDS_HEARING = 0.5  # until the hook hangs up
LEFT_SECONDS = 60  # a socket that is that old and not ready yet is of a server that was killed
OLD_SECONDS = 3_600  # of a socket of another data folder
SWEEP_SECONDS = 1.0


class Listener:
    """`store` opens the store as it is at once; `index` gives the one of this process."""

    def __init__(
        self, data: str, project: str, store: Store, index: Callable[[], Index], client: int | None = None
    ) -> None:
        self._store, self._index = store, index
        self._is_over = threading.Event()
        name = asking.socket_name(project, os.getppid() if client is None else client, os.getpid())
        run = asking.run_folder(data)
        paths.make_folder(run)
        os.chmod(run, 0o700)
        self._files = [os.path.join(run, name)]
        if asking.is_too_long(self._files[0] + "."):
            self._files.append(os.path.join(asking.short_folder(data), name))
        try:
            self._socket = self._bound()
        except FileNotFoundError:  # a server that ended meanwhile has removed the short folder: it was empty
            self._socket = self._bound()
        self.thread = threading.Thread(target=self._listen, name="listener", daemon=True)
        self.thread.start()

    def close(self) -> None:
        """Remove the socket. A request that is being answered may end with the process."""
        self._is_over.set()
        self._remove_files()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _bound(self) -> socket.socket:
        """A socket that listens. It gets its name when it is ready, so that no hook connects before."""
        link, path = self._files[0], self._files[-1]
        if link != path:
            short = os.path.dirname(path)
            with suppress(FileExistsError):
                os.mkdir(short, 0o700)
            if os.path.lexists(short) and not asking.is_private(short):
                raise BadInput(f"{short} is not for us alone; remove it, or move the data folder")
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            _remove(path + ".")
            made.bind(path + ".")
            os.chmod(path + ".", 0o600)
            made.listen(WAITING)
            os.rename(path + ".", path)
            if link != path:
                _remove(link)
                os.symlink(path, link)
        except OSError:
            made.close()
            self._remove_files()
            raise
        return made

    def _remove_files(self) -> None:
        link, path = self._files[0], self._files[-1]
        for file in (path + ".", path, link):
            _remove(file)
        if link != path:
            with suppress(OSError):  # others are there
                os.rmdir(os.path.dirname(path))

    def _listen(self) -> None:
        while not self._is_over.is_set():
            try:
                line, _ = self._socket.accept()
            except OSError:
                if not self._is_over.is_set():
                    log.crash("listener")
                return
            try:
                with line:
                    self._serve(line)
            except Exception:  # noqa: BLE001  the next one is served all the same
                log.crash("listener")

    def _serve(self, line: socket.socket) -> None:
        if not _is_ours(line) or (request := _read(line)) is None:
            return
        now = now_ms()
        with self._store() as db:
            told, is_done = answer(request, db, self._index, now)
            reply: dict[str, object] = {"done": is_done} if is_done else {}
            if told:
                reply["text"] = told.text
            if not _is_heard(line, reply) or told is None:
                return
            try:
                note(db, request, told, now)
            except Unavailable as error:
                log.write("debug", f"what was told is not noted: {error}")


def answer(
    request: dict[str, str], db: Connection, index: Callable[[], Index], now: int
) -> tuple[Telling | None, bool]:
    """What to tell, and whether this session need not ask at a prompt again."""
    moment, session, cwd = request["moment"], request["session"], request["folder"]
    if config.choice(SETTINGS[moment], os.environ) == "off":
        return None, True
    if moment == tellings.FILE:
        return telling.at_file(db, cwd, session, request["text"], now), False
    text = clean(request["text"])
    if moment == tellings.FAILURE:
        return telling.at_failure(db, cwd, session, text, now), False
    return telling.at_prompt(index(), db, cwd, session, text, now), telling.is_substantive(text)


def note(db: Connection, request: dict[str, str], told: Telling, now: int) -> None:
    session_id = request["session"]
    if project_id := noting.project_of(db, session_id, request["folder"]):
        with may_be_unavailable(), transaction(db):
            tellings.note(
                db,
                session_id,
                project_id,
                told.moment,
                told.text,
                told.ids,
                tokens=tokens(told.text),
                at=now,
                about=told.about,
                reason=told.reason,
            )


def sweep(data: str) -> None:
    """Remove the sockets of servers that were killed, for as long as that is quick. Of other data folders,
    which may be gone, only what is old: where machines share /tmp, a server of another one seems dead."""
    deadline = time.monotonic() + SWEEP_SECONDS
    own = asking.short_folder(data)
    for folder in (asking.run_folder(data), own):
        _sweep(folder, own, 0, deadline)
    with suppress(OSError), os.scandir(os.path.dirname(own)) as entries:
        for entry in entries:
            is_ours = entry.path.startswith(asking.SHORT) and asking.is_private(entry.path)
            if is_ours and _is_older(entry.path, OLD_SECONDS):
                _sweep(entry.path, entry.path, OLD_SECONDS, deadline)
                with suppress(OSError):  # it is not empty
                    os.rmdir(entry.path)
            if time.monotonic() > deadline:
                return


def _sweep(folder: str, linked: str, seconds: float, deadline: float) -> None:
    """In a folder, of what is older. Its links lead to sockets of the same names in `linked`, or nowhere."""
    with suppress(OSError):
        for name in os.listdir(folder) if asking.is_private(folder) else ():
            path = os.path.join(folder, name)
            if time.monotonic() > deadline:
                return
            if name.endswith(asking.SOCKET + "."):  # not ready yet, or killed on the way
                is_left = _is_older(path, max(seconds, LEFT_SECONDS))
            else:
                target = os.path.join(linked, name) if os.path.islink(path) else path
                is_left = name.endswith(asking.SOCKET) and _is_older(path, seconds) and not _is_served(target)
            if is_left:
                _remove(path)


def _is_older(path: str, seconds: float) -> bool:
    try:
        return time.time() - os.lstat(path).st_mtime >= seconds
    except OSError:
        return False


def _is_served(path: str) -> bool:
    """Does a server listen at this socket? No link is followed."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            return False
    except OSError:
        return False
    line = asking.connected(path, asking.SECONDS)
    if line is not None:
        line.close()
    return line is not None or _is_busy(path)


def _is_busy(path: str) -> bool:
    """Whether a server listens there that has more connections waiting than it takes."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.setblocking(False)
        try:
            line.connect(path)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True


def _is_ours(line: socket.socket) -> bool:
    """Where the system tells whose process has connected."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    _, uid, _ = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return bool(uid == os.geteuid())


def _read(line: socket.socket) -> dict[str, str] | None:
    """A request, checked; None where it is none."""
    deadline = time.monotonic() + SECONDS_READING
    parts: list[bytes] = []
    size = 0
    while not parts or not parts[-1].endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0 or size > asking.LARGEST_REQUEST:
            return None
        line.settimeout(left)
        try:
            part = line.recv(65_536)
        except OSError:
            return None
        if not part:
            return None
        parts.append(part)
        size += len(part)
    try:
        request = json.loads(b"".join(parts))
    except (ValueError, RecursionError):
        return None
    names = ("moment", "session", "folder", "text")
    if not isinstance(request, dict) or not all(isinstance(request.get(name), str) for name in names):
        return None
    is_known = request["moment"] in SETTINGS and request["session"] and request["folder"].startswith("/")
    return {name: request[name] for name in names} if is_known else None


def _is_heard(line: socket.socket, reply: dict[str, object]) -> bool:
    """Whether the hook has read it: one that did not wait has hung up, or does so without reading."""
    try:
        line.settimeout(SECONDS_HEARING)
        line.sendall(json.dumps(reply).encode("ascii") + b"\n")
        line.shutdown(socket.SHUT_WR)
        return line.recv(1) == b""
    except OSError:
        return False


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)


# --- the one of this process --------------------------------------------------------------------------------

_beginning_or_ending = threading.Lock()
_listening: list[Listener] = []
_is_over = threading.Event()


def begin(data: str, project: str, store: Store, index: Callable[[], Index]) -> None:
    """Listen, unless nothing is to be told at any moment. Without it nothing is told, and that is all."""
    try:
        if not any(config.choice(name, os.environ) == "on" for name in SETTINGS.values()):
            return
        with _beginning_or_ending:  # so that the end waits for a socket that is half made, and knows of it
            if not _is_over.is_set():
                _listening.append(Listener(data, project, store, index))
        sweep(data)
    except (BackstoryError, OSError) as error:
        log.write("warning", f"nothing is told at prompts: {error}")


def end() -> None:
    with _beginning_or_ending:
        _is_over.set()
        while _listening:
            _listening.pop().close()
