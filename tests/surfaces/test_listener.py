"""What hooks ask the memory server over its socket: the right server is found, whoever misbehaves is cut off,
and nothing stays behind.

BACKSTORY_ENDED_SERVERS=200 ends so many while they start; `make chaos` does."""

from __future__ import annotations

import glob
import itertools
import json
import os
import signal
import socket
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from backstory.store.file.connection import connect
from backstory.surfaces import asking
from backstory.surfaces.mcp import ending, listener, listing, start, tool_context
from backstory.surfaces.mcp.ending import Ending
from tests.helpers.asked import (
    AGAIN,
    ANSWER,
    SPOKEN,
    TEST,
    earlier_sessions,
    keep_prompt,
    listening,
    sockets,
)
from tests.helpers.chaos import Json, eventually, log_text, rows
from tests.helpers.mcp_client import Wire, serving
from tests.helpers.processes import is_running


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "api"
    folder.mkdir()
    return folder


@pytest.fixture
def told(data: Path, place: Path) -> Iterator[Path]:
    """A project with something to tell, and a server that tells it."""
    earlier_sessions(data, place)
    with listening(data, place):
        yield place


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine may have other things to do."""
    monkeypatch.setattr(asking, "SECONDS", 5.0)
    monkeypatch.setattr(listener, "SECONDS_READING", 5.0)
    monkeypatch.setattr(listener, "SECONDS_HEARING", 5.0)


def ask(data: Path, project: Path, moment: str, text: str, session: str = "s2") -> str:
    request = {"moment": moment, "session": session, "folder": str(project), "text": text}
    answer = asking.ask(str(data), str(project), str(os.getpid()), json.dumps(request).encode() + b"\n")
    return str(json.loads(answer).get("text", "")) if answer else "no answer"


def where(data: Path, project: Path) -> str:
    (path,) = asking.servers(str(data), str(project), "1")
    return path


def said_to(path: str, *parts: bytes, pause: float = 0.0) -> bytes:
    """What the listener answers to these bytes, until it hangs up."""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(5)
        line.connect(path)
        heard = b""
        try:
            for part in parts:
                line.sendall(part)
                time.sleep(pause)
            while part := line.recv(65_536):
                heard += part
        except (BrokenPipeError, ConnectionResetError):
            pass
        return heard


# --- what is answered ---------------------------------------------------------------------------------------


def test_what_an_earlier_session_knows_is_told_and_noted_with_its_reason(data: Path, told: Path) -> None:
    assert SPOKEN in ask(data, told, "prompt", AGAIN)
    assert eventually(lambda: bool(rows(data, "SELECT 1 FROM tellings")))
    (noted,) = rows(data, "SELECT * FROM tellings")
    assert (noted["session_id"], noted["moment"], noted["about"]) == ("s2", "prompt", AGAIN)
    assert SPOKEN in noted["text"] and noted["tokens"] > 50 and json.loads(noted["reason"])
    assert len(rows(data, "SELECT 1 FROM told_memories")) == 1


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        ("file", "{}/walrus/parser.py"),
        ("failure", f"Exit code 1\nFAILED {TEST} - AssertionError: unclosed"),
    ],
)
def test_a_file_and_a_failing_test_are_told_about(moment: str, text: str, data: Path, told: Path) -> None:
    if moment == "file":
        keep_prompt(data, told, "s2", AGAIN)
    assert SPOKEN in ask(data, told, moment, text.format(told))
    assert eventually(
        lambda: [row["moment"] for row in rows(data, "SELECT moment FROM tellings")] == [moment]
    )


def test_a_prompt_with_a_secret_is_noted_without_it(data: Path, told: Path) -> None:
    assert SPOKEN in ask(data, told, "prompt", f"password = hunter22secret {AGAIN} {ANSWER}")
    assert eventually(lambda: bool(rows(data, "SELECT 1 FROM tellings")))
    assert "hunter22" not in str(rows(data, "SELECT * FROM tellings"))


@pytest.mark.parametrize(("setting", "moment"), [("PROMPT", "prompt"), ("FILES", "file")])
def test_what_is_switched_off_is_not_told(
    setting: str, moment: str, data: Path, told: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"BACKSTORY_RECALL_{setting}", "off")
    assert ask(data, told, moment, f"{told}/walrus/parser.py" if moment == "file" else AGAIN) == ""


def test_while_others_write_it_is_told_and_not_noted(data: Path, told: Path) -> None:
    with closing(connect(str(data / "backstory.db"))) as other:
        other.execute("BEGIN IMMEDIATE")
        assert SPOKEN in ask(data, told, "prompt", AGAIN)
        assert ask(data, told, "prompt", "go on") == "", "it is one after the other: the first is done with"
        other.execute("ROLLBACK")
    assert rows(data, "SELECT 1 FROM tellings") == []
    assert "listener" not in log_text(data)


def test_what_a_hook_did_not_wait_for_is_not_noted(
    data: Path, told: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, is_given_up = listener.answer, threading.Event()

    def late(*args: object) -> object:
        assert is_given_up.wait(30)
        return real(*args)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(asking, "SECONDS", 0.15)
        patch.setattr(listener, "answer", late)
        assert ask(data, told, "prompt", AGAIN) == "no answer"
        is_given_up.set()
    assert ask(data, told, "prompt", "go on") == "", "the next one is answered"
    assert rows(data, "SELECT 1 FROM tellings") == []


# --- who is cut off -----------------------------------------------------------------------------------------

GOOD = {"moment": "prompt", "session": "s2", "folder": "/somewhere", "text": AGAIN}
ODD = {
    "nothing": b"",
    "no JSON": b"hello\n",
    "a list": b"[]\n",
    "an unknown moment": json.dumps(GOOD | {"moment": "ever"}).encode() + b"\n",
    "no session": json.dumps(GOOD | {"session": ""}).encode() + b"\n",
    "a folder that is none": json.dumps(GOOD | {"folder": "here"}).encode() + b"\n",
    "a number for a text": json.dumps(GOOD | {"text": 7}).encode() + b"\n",
    "deep nesting": b"[" * 100_000 + b"\n",
    "too much": b"x" * (asking.LARGEST_REQUEST + 100_000),
    "bytes that are no text": b"\xff\xfe\0\n",
}


@pytest.mark.parametrize("request_bytes", ODD.values(), ids=ODD.keys())
def test_who_sends_something_odd_is_cut_off_and_the_next_one_is_served(
    request_bytes: bytes, data: Path, told: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(listener, "SECONDS_READING", 0.2)
        assert said_to(where(data, told), request_bytes) == b""
    assert SPOKEN in ask(data, told, "prompt", AGAIN)


def test_who_sends_byte_by_byte_keeps_nobody_waiting_for_long(
    data: Path, told: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "SECONDS_READING", 0.2)
    bytes_for_a_minute = [b"x"] * 3_000
    slow = threading.Thread(
        target=said_to, args=(where(data, told), *bytes_for_a_minute), kwargs={"pause": 0.02}
    )
    slow.start()
    assert eventually(lambda: SPOKEN in ask(data, told, "prompt", AGAIN))
    slow.join(5)
    assert not slow.is_alive(), "it is cut off"


@pytest.mark.skipif(not hasattr(socket, "SO_PEERCRED"), reason="this system does not tell who connects")
def test_another_user_is_told_nothing(data: Path, told: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, ours = where(data, told), os.geteuid()
    request = json.dumps(GOOD | {"folder": str(told)}).encode() + b"\n"
    assert said_to(path, request)
    monkeypatch.setattr(os, "geteuid", lambda: ours + 1)
    assert said_to(path, request) == b""


def test_only_its_owner_can_get_at_a_socket(data: Path, told: Path) -> None:
    path = where(data, told)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    for folder in (data / "run", Path(path).parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


# --- which server -------------------------------------------------------------------------------------------


def test_a_hook_finds_the_server_of_its_own_client_before_others_of_the_project(
    data: Path, place: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    earlier_sessions(data, place)
    with ExitStack() as stack:
        for client in (11, 22, 33):
            stack.enter_context(listening(data, place, client))
        stack.enter_context(listening(data, elsewhere, 22))
        found = [os.path.basename(path) for path in asking.servers(str(data), str(place), "22")]
        assert len(found) == 3 and found[0].startswith("22-")
        (other,) = asking.servers(str(data), str(elsewhere), "11")
        assert os.path.basename(other).startswith("22-")
    assert asking.servers(str(data), str(place), "22") == sockets(data) == []


def test_a_project_goes_by_its_real_folder(data: Path, told: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(told)
    assert asking.servers(str(data), str(link), "1") == asking.servers(str(data), str(told), "1")


def test_a_path_that_is_short_enough_lies_in_the_data_folder(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        data = Path(folder) / "d"
        with listening(data, tmp_path):
            assert where(data, tmp_path) == str(data / "run" / sockets(data)[0])
            assert stat.S_ISSOCK(os.lstat(where(data, tmp_path)).st_mode)
        assert os.listdir(data / "run") == []


def test_a_folder_of_that_name_in_tmp_that_is_not_ours_alone_is_not_used(place: Path, tmp_path: Path) -> None:
    data = tmp_path / ("long" * 30)
    short = asking.short_folder(str(data))
    os.mkdir(short)
    os.chmod(short, 0o755)  # noqa: S103  that is what is wrong with it
    try:
        with pytest.raises(Exception, match="not for us alone"), listening(data, place):
            pass
        assert os.listdir(short) == sockets(data) == []
        (data / "run" / asking.socket_name(str(place), 1, 2)).symlink_to("/nowhere")
        assert asking.servers(str(data), str(place), "1") == []
    finally:
        os.rmdir(short)


# --- what stays behind --------------------------------------------------------------------------------------


def left_socket(data: Path, project: Path) -> None:
    """As a server leaves it that was killed: nobody listens there."""
    with listening(data, project, 4711) as killed:
        pass
    path = killed._files[-1]
    paths = [str(data / "run" / os.path.basename(path)), path]
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(paths[-1])
    if paths[0] != paths[-1]:
        os.symlink(paths[-1], paths[0])


def test_a_stale_socket_is_passed_by_and_removed_by_the_next_server(data: Path, told: Path) -> None:
    left_socket(data, told)
    assert len(sockets(data)) == 2
    started = time.monotonic()
    assert SPOKEN in ask(data, told, "prompt", AGAIN)
    assert time.monotonic() - started < asking.SECONDS / 2
    with listening(data, told, 4712):
        listener.sweep(str(data))
        assert len(sockets(data)) == 2, "that one, and the one that listens"


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The short folder of another data folder, which is gone, with a socket that nobody listens at."""
    with tempfile.TemporaryDirectory(dir="/tmp") as temporary:
        monkeypatch.setattr(asking, "SHORT", f"{temporary}/ours-")
        folder = Path(asking.short_folder("/another"))
        folder.mkdir(mode=0o700)
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(folder / "1-x-2.sock"))
        yield folder


def age(folder: Path) -> None:
    for path in (*folder.iterdir(), folder):
        os.utime(path, (1, 1), follow_symlinks=False)


def test_what_a_server_of_another_data_folder_left_goes_once_it_is_old(data: Path, elsewhere: Path) -> None:
    (elsewhere / "3-x-4.sock.").touch()
    (elsewhere / "5-x-6.sock").symlink_to(elsewhere / "1-x-2.sock")
    listener.sweep(str(data))
    assert len(os.listdir(elsewhere)) == 3
    age(elsewhere)
    listener.sweep(str(data))
    assert not elsewhere.exists()


def test_what_another_server_still_listens_at_stays(data: Path, elsewhere: Path) -> None:
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(elsewhere / "3-x-4.sock"))
        other.listen(0)
        age(elsewhere)
        for _ in range(3):  # more than it takes
            listener.sweep(str(data))
        assert os.listdir(elsewhere) == ["3-x-4.sock"]


@pytest.mark.parametrize("way", ["open to others", "behind a link", "no socket", "no time", "another name"])
def test_what_may_not_be_ours_or_takes_long_is_not_swept(
    way: str, data: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = {"1-x-2.sock"}
    if way == "open to others":
        elsewhere.chmod(0o755)
    elif way == "behind a link":
        elsewhere = elsewhere.rename(elsewhere.with_name("theirs"))
        Path(asking.short_folder("/another")).symlink_to(elsewhere)
    elif way == "no socket":
        (elsewhere / "notes").write_text("mine")
        left = {"notes"}
    elif way == "no time":
        monkeypatch.setattr(listener, "SWEEP_SECONDS", -1.0)
    elif way == "another name":
        elsewhere = elsewhere.rename(elsewhere.with_name("theirs"))
    age(elsewhere)
    listener.sweep(str(data))
    assert set(os.listdir(elsewhere)) == left


def test_a_short_folder_that_goes_while_a_server_begins_is_made_again(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last server in it ends at that moment."""
    data, real = tmp_path / ("long" * 30), asking.is_private
    gone: list[str] = []

    def going(folder: str) -> bool:
        if is_private := real(folder) and not gone:
            os.rmdir(folder)
            gone.append(folder)
        return is_private or real(folder)

    monkeypatch.setattr(asking, "is_private", going)
    with listening(data, place):
        assert gone == [asking.short_folder(str(data))]
        assert listener._is_served(where(data, place))


def test_a_server_that_ends_before_it_listens_does_not_begin_to(
    data: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "_is_over", threading.Event())
    listener.end()
    listener.begin(str(data), str(place), lambda: pytest.fail("nobody asks"), lambda: pytest.fail("nobody"))
    assert sockets(data) == []


def test_where_nothing_is_to_be_told_nobody_listens(
    data: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PROMPT", "FILES"):
        monkeypatch.setenv(f"BACKSTORY_RECALL_{name}", "off")
    listener.begin(str(data), str(place), lambda: pytest.fail("nobody asks"), lambda: pytest.fail("nobody"))
    assert sockets(data) == []


@pytest.mark.slow
def test_ten_servers_at_once_leave_no_socket(data: Path, place: Path) -> None:
    earlier_sessions(data, place)
    with ExitStack() as stack:
        servers = [stack.enter_context(serving(data, place, f"session-{number}")) for number in range(10)]
        for server in servers:
            server.tools()  # as clients do: the handshake is over then
        assert eventually(lambda: len(asking.servers(str(data), str(place), "1")) == 10)
        os.kill(servers[0].pid, signal.SIGTERM)
        assert eventually(lambda: len(sockets(data)) == 9)
        assert SPOKEN in ask(data, place, "prompt", AGAIN)
        os.kill(servers[1].pid, signal.SIGKILL)
        assert eventually(lambda: not is_running(servers[1].pid))
        assert SPOKEN in ask(data, place, "prompt", AGAIN, "s3")
        stack.enter_context(serving(data, place, "the-next")).tools()
        killed = f"-{servers[1].pid}.sock"
        assert eventually(lambda: not any(name.endswith(killed) for name in sockets(data)))
    assert eventually(lambda: not sockets(data))
    assert not os.path.exists(asking.short_folder(str(data)))


# --- the end comes while it begins --------------------------------------------------------------------------

SERVERS_ENDED = int(os.environ.get("BACKSTORY_ENDED_SERVERS", "9"))
AT_ONCE = 3
ENDS: list[Callable[[Wire], None]] = [
    lambda wire: wire.process.send_signal(signal.SIGINT),
    lambda wire: wire.process.send_signal(signal.SIGTERM),
    lambda wire: wire.process.stdin.close() if wire.process.stdin else None,
]
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "a test", "version": "1"},
}
START: list[Json] = [
    {"id": 1, "method": "initialize", "params": HELLO},
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list", "params": {}},
]


def test_whenever_the_end_comes_no_socket_is_left(
    data: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each line of a start in turn. When the end is done, the server is gone with all its threads."""
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(place))
    monkeypatch.setattr(tool_context, "warm_up", lambda ready: ready())
    left: dict[int, list[str]] = {}

    def end() -> None:
        last.come()
        look()

    def look() -> None:
        if found := [*sockets(data), *glob.glob(asking.short_folder(str(data)))]:
            left.setdefault(number, found)

    for number in itertools.count(1):
        monkeypatch.setattr(listener, "_is_over", threading.Event())
        last = Ending()
        if not _before_line(number, partial(start._beside, listing.MEMORY, last), end):
            break
        look()
        listener.end()
    listener.end()
    assert left == {}
    assert number > 50


def _before_line(number: int, begin: Callable[[], None], end: Callable[[], None]) -> bool:
    """Begin, in a thread; the end comes in another one before the line of that number. Is there one?"""
    lines = itertools.count(1)
    at_the_end = threading.Thread(target=end)

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_globals.get("__name__") not in (start.__name__, listener.__name__, ending.__name__):
            return None
        if event == "line" and next(lines) == number:
            at_the_end.start()
            at_the_end.join(0.05)  # unless it waits for who begins
        return trace

    def run() -> None:
        sys.settrace(trace)
        begin()

    beside = threading.Thread(target=run)
    beside.start()
    beside.join()
    if at_the_end.ident is None:
        return False
    at_the_end.join()
    return True


@pytest.mark.slow
def test_a_real_server_that_is_ended_while_it_starts_leaves_no_socket(tmp_path: Path, place: Path) -> None:
    """At moments that are spread over the start, and at the first sign of the socket."""
    folders = [tmp_path / f"{number}{'x' * 80}" for number in range(AT_ONCE)]  # too long: they lie in /tmp

    def some(number: int) -> list[str]:
        left: list[str] = []
        whole = 0.0
        for turn in range(number, SERVERS_ENDED, AT_ONCE):
            at = turn / SERVERS_ENDED * whole if whole and turn % 2 else None
            seconds = _end_early(folders[number], place, ENDS[turn // AT_ONCE % len(ENDS)], at, left)
            whole = whole or seconds
        return left

    with ThreadPoolExecutor(AT_ONCE) as pool:
        assert [name for left in pool.map(some, range(AT_ONCE)) for name in left] == []
    assert not any(os.path.exists(asking.short_folder(str(folder))) for folder in folders)


def _end_early(
    data: Path, place: Path, end: Callable[[Wire], None], seconds: float | None, left: list[str]
) -> float:
    """Start a server, and end it after so many seconds, or once there is a sign of its socket: how long that
    took."""
    places = (data / "run", Path(asking.short_folder(str(data))))
    with Wire(data, place, cold=True) as wire:
        started = time.monotonic()
        for message in START:
            wire.write(json.dumps({"jsonrpc": "2.0", **message}))

        def files() -> list[str]:
            return [
                name
                for folder in places
                if folder.is_dir()
                for name in os.listdir(folder)
                if f"-{wire.process.pid}." in name
            ]

        while (seconds is None and not files()) or (seconds and time.monotonic() - started < seconds):
            assert time.monotonic() - started < 60
            time.sleep(0.001 if seconds else 0)
        took = time.monotonic() - started
        end(wire)
        wire.process.wait(30)
        if names := files():
            left.append(f"{wire.process.returncode} after {took:.3f} s: {', '.join(names)}")
        return took
