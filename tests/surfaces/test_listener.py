"""What hooks ask the memory server over its socket: the right server is found, whoever misbehaves is cut off,
and nothing stays behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from backstory.store.file.connection import connect
from backstory.surfaces import asking
from backstory.surfaces.mcp import listener
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
from tests.helpers.chaos import eventually, log_text, rows
from tests.helpers.mcp_client import serving


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
        ("subagent", AGAIN),
    ],
)
def test_a_file_a_failing_test_and_a_task_are_told_about(
    moment: str, text: str, data: Path, told: Path
) -> None:
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


@pytest.mark.parametrize(
    ("setting", "moment"), [("PROMPT", "prompt"), ("PROMPT", "subagent"), ("FILES", "file")]
)
def test_what_is_switched_off_is_not_told(
    setting: str, moment: str, data: Path, told: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"BACKSTORY_RECALL_{setting}", "off")
    assert ask(data, told, moment, f"{told}/walrus/parser.py" if moment == "file" else AGAIN) == ""


def test_while_others_write_it_is_told_and_not_noted(data: Path, told: Path) -> None:
    with closing(connect(str(data / "backstory.db"))) as other:
        other.execute("BEGIN IMMEDIATE")
        assert SPOKEN in ask(data, told, "prompt", AGAIN)
        time.sleep(0.4)
        other.execute("ROLLBACK")
    assert rows(data, "SELECT 1 FROM tellings") == []
    assert "listener" not in log_text(data)


def test_what_a_hook_did_not_wait_for_is_not_noted(
    data: Path, told: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = listener.answer

    def late(*args: object) -> object:
        time.sleep(0.3)
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(asking, "SECONDS", 0.15)
    monkeypatch.setattr(listener, "answer", late)
    started = time.monotonic()
    assert ask(data, told, "prompt", AGAIN) == "no answer"
    assert time.monotonic() - started < 0.3
    monkeypatch.setattr(listener, "answer", real)
    assert eventually(lambda: ask(data, told, "prompt", "go on") == ""), "the next one is answered"
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
    request_bytes: bytes, data: Path, told: Path
) -> None:
    assert said_to(where(data, told), request_bytes) == b""
    assert SPOKEN in ask(data, told, "prompt", AGAIN)


def test_who_sends_byte_by_byte_keeps_nobody_waiting_for_long(data: Path, told: Path) -> None:
    slow = threading.Thread(
        target=said_to, args=(where(data, told), *[b"x"] * 50), kwargs={"pause": 0.02}, daemon=True
    )
    slow.start()
    time.sleep(0.05)
    assert eventually(lambda: SPOKEN in ask(data, told, "prompt", AGAIN), 2)
    slow.join()


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
    import tempfile

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
        assert len(sockets(data)) == 2, "that one, and the one that listens"


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
        assert eventually(lambda: len(asking.servers(str(data), str(place), "1")) == 10, 30)
        os.kill(servers[0].pid, signal.SIGTERM)
        assert eventually(lambda: len(sockets(data)) == 9)
        assert SPOKEN in ask(data, place, "prompt", AGAIN)
        os.kill(servers[1].pid, signal.SIGKILL)
        time.sleep(0.2)
        assert SPOKEN in ask(data, place, "prompt", AGAIN, "s3")
        stack.enter_context(serving(data, place, "the-next")).tools()
        killed = f"-{servers[1].pid}.sock"
        assert eventually(lambda: not any(name.endswith(killed) for name in sockets(data)), 30)
    assert eventually(lambda: not sockets(data))
    assert not os.path.exists(asking.short_folder(str(data)))
