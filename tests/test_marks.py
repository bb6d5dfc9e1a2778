"""What counts as a server or a client, which only a test that is marked slow may start."""

from __future__ import annotations

import pytest

from tests.conftest import HOOK, server_or_client


@pytest.mark.parametrize(
    "command",
    [
        ["/opt/bin/claude", "-p", "hello"],
        ["sh", "-c", 'exec "$@"', "sh", "python", "-P", "-m", "backstory", "mcp", "docmem"],
        ["python", "-I", "-c", "from backstory.surfaces import worker; worker.main()"],
        ["sh", HOOK, "stop"],
        ["python", "/x/bench/docmem.py"],
    ],
)
@pytest.mark.parametrize("event", ["subprocess.Popen", "os.posix_spawn", "os.exec"])
def test_a_server_a_client_and_a_worker_are_seen(event: str, command: list[str]) -> None:
    assert server_or_client(event, (command[0], command, None, None))


def test_a_server_in_this_process_is_seen() -> None:
    assert server_or_client("socket.bind", (None, ("127.0.0.1", 0)))


@pytest.mark.parametrize("command", [["git", "status"], ["sh", HOOK], ["backstory", "search", "mcp"], "sh"])
def test_a_command_that_ends_by_itself_is_none(command: list[str] | str) -> None:
    assert server_or_client("subprocess.Popen", (command[0], command, None, None)) is None
    assert server_or_client("socket.bind", (None, "/x/a socket")) is None
