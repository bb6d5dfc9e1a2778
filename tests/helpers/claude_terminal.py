"""The real Claude Code at a terminal, as a person has it before them: typed into, left, or killed.

with at_terminal(cwd=project, env=env, plugin_dir=REPOSITORY) as claude:
    claude.type("fix the door")
    claude.wait(lambda: len(model.requests) > 1)
    claude.leave()
"""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.helpers.claude import NO_SERVERS, TIMEOUT, binary, without_other_servers

BYPASS = "bypassPermissions"
READY = {  # what stands below the field in which one types, in each mode
    BYPASS: "bypass permissions on",
    "default": "? for shortcuts",
    "acceptEdits": "accept edits on",
    "plan": "plan mode on",
    "auto": "auto mode on",
}
KEY = "test-key"  # see claude.environment


class AtTerminal:
    def __init__(self, process: subprocess.Popen[bytes], terminal: int, mode: str = BYPASS) -> None:
        self.process, self._terminal, self._ready = process, terminal, READY[mode]
        self._printed = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with suppress(OSError):  # nobody has the terminal any more
            while part := os.read(self._terminal, 65_536):
                self._printed += part

    @property
    def seen(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", " ", self._printed.decode("utf-8", "replace"))

    def wait(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + TIMEOUT
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain:\n{self.seen[-2_000:]}"
            time.sleep(0.05)

    def type(self, text: str) -> None:
        self.wait(lambda: self._ready in re.sub(r"\s+", " ", self.seen))
        os.write(self._terminal, text.encode())
        time.sleep(0.3)  # what comes in one piece is taken for pasted, its last line end included
        self.enter()

    def enter(self) -> None:
        """Send what is typed, or take the first of several answers."""
        os.write(self._terminal, b"\r")

    def leave(self) -> None:
        self.type("/exit")
        self.process.wait(TIMEOUT)

    def kill(self) -> None:
        """By SIGKILL, together with all that Claude Code has started in its group."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(TIMEOUT)


@contextmanager
def at_terminal(
    *,
    cwd: Path,
    env: Mapping[str, str],
    plugin_dir: Path,
    servers: Sequence[str] = NO_SERVERS,
    mode: str = BYPASS,
    extra: Sequence[str] = (),
) -> Iterator[AtTerminal]:
    _settle_in(Path(env["HOME"]), cwd)
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (40, 120))
    permissions = ["--dangerously-skip-permissions"] if mode == BYPASS else ["--permission-mode", mode]
    options = [*permissions, "--plugin-dir", str(plugin_dir), *extra]
    process = subprocess.Popen(
        [str(binary()), *options, *without_other_servers(servers)],
        cwd=cwd,
        env={**env, "TERM": "xterm-256color"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    claude = AtTerminal(process, ours, mode)
    try:
        yield claude
    finally:
        if process.poll() is None:  # else its group is left as it is: what stays there is the product's fault
            claude.kill()
        os.close(ours)


def _settle_in(home: Path, project: Path) -> None:
    """What Claude Code asks a person on the first day was answered."""
    (home / ".claude").mkdir(exist_ok=True)
    settings, known = home / ".claude" / "settings.json", home / ".claude.json"
    settings.write_text(json.dumps({"skipDangerousModePermissionPrompt": True}))
    state = json.loads(known.read_text()) if known.exists() else {}
    state |= {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "bypassPermissionsModeAccepted": True,
        "customApiKeyResponses": {"approved": [KEY], "rejected": []},
    }
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    state.setdefault("projects", {}).setdefault(str(project), {}).update(trusted)
    known.write_text(json.dumps(state))
