"""What a new user sees who installs the plugin from a marketplace, from the first command to the first memory
that is told: the real Claude Code in a terminal (tmux) in a home of its own, and a scripted model.

    make walk                                    prints every screen, with the seconds it took
    .venv/bin/python bench/marketplace_walk.py --json FILE

Fails if a step takes too long, or if the second session is not told what the first one did. Packages come
from where pip is set up to find them.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from tests.helpers.claude import binary, environment  # noqa: E402
from tests.helpers.claude_terminal import KEY  # noqa: E402
from tests.helpers.scripted_model import ScriptedModel, say, use  # noqa: E402

SECONDS = 60.0
SET_UP_SECONDS = 600.0
ASKED = "Why does the door squeak?"
AGAIN = "You told me already."
ANSWERED = "The hinge was dry. I oiled it, and it is silent now."
WIDE, HIGH = 110, 34
PIP = ("PIP_", "UV_", "SSL_")  # how packages are found on this machine


class Screen:
    """A shell in tmux, as a person has it before them."""

    def __init__(self, folder: Path, cwd: Path, env: dict[str, str]) -> None:
        self._calls = 0
        self._tmux = ["tmux", "-S", str(folder / "tmux")]
        self._env = {**env, "TERM": "xterm-256color", "PS1": "$ "}
        size = ("-x", str(WIDE), "-y", str(HIGH))
        self._run("-f", "/dev/null", "new-session", "-d", "-s", "walk", *size, "-c", str(cwd), "sh")

    def _run(self, *args: str) -> str:
        done = subprocess.run(
            [*self._tmux, *args], env=self._env, capture_output=True, text=True, check=True, timeout=SECONDS
        )
        return done.stdout

    @property
    def text(self) -> str:
        return self._run("capture-pane", "-p", "-t", "walk")

    def type(self, text: str) -> None:
        self._run("send-keys", "-t", "walk", "-l", text)
        time.sleep(0.4)
        self._run("send-keys", "-t", "walk", "Enter")

    def call(self, command: str) -> float:
        self._calls += 1
        self.type(f"clear; {command}; echo done {self._calls}: $?")
        return self.wait(lambda text: f"done {self._calls}: 0" in text)

    def wait(self, is_there: Callable[[str], object], seconds: float = SECONDS) -> float:
        began = time.monotonic()
        while not is_there(self.text):
            if time.monotonic() - began > seconds:
                raise SystemExit(f"waited {seconds:g} s in vain; the screen:\n{self.text}")
            time.sleep(0.1)
        return time.monotonic() - began

    def end(self) -> None:
        self._run("kill-server")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--json", metavar="FILE", help="write what was seen there as well")
    given = options.parse_args()
    steps: list[dict[str, Any]] = []

    def seen(step: str, seconds: float, text: str) -> None:
        text = "\n".join(line.rstrip() for line in text.strip("\n").splitlines() if line.strip())
        steps.append({"step": step, "seconds": round(seconds, 1), "screen": text})
        print(f"== {step} ({seconds:.1f} s)\n{text}\n", flush=True)

    folder = Path(tempfile.mkdtemp(prefix="walk-", dir="/tmp"))  # a short path, for sockets
    try:
        _walk(folder, seen)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if given.json:
            Path(given.json).write_text(json.dumps(steps, indent=2))


def _walk(folder: Path, seen: Callable[[str, float, str], None]) -> None:
    home, project = folder / "home", folder / "doors"
    env = _world(folder, home, project)
    own = home / ".claude" / "plugins" / "data" / "backstory-backstory"
    with ScriptedModel(use("Bash", command="cat hinge.py"), say(ANSWERED), say(AGAIN)) as model:
        screen = Screen(folder, project, {**env, "ANTHROPIC_BASE_URL": model.url})
        try:
            took = screen.call("claude plugin marketplace add acme/backstory")
            seen("add the marketplace", took, screen.text)
            took = screen.call("claude plugin install backstory@backstory")
            seen("install the plugin", took, screen.text)
            seen("the first session starts", _start(screen), screen.text)
            began = time.monotonic()
            screen.type(ASKED)
            took = screen.wait(lambda text: ANSWERED[:30] in text)
            seen("the first answer", took, screen.text)
            _leave(screen)
            screen.wait(lambda _: "has been set up" in (own / "setup.status").read_text(), SET_UP_SECONDS)
            size = sum(at.lstat().st_size for at in own.rglob("*") if at.is_file()) / 1e6
            status = (own / "setup.status").read_text()
            seen(f"set up, {size:.0f} MB", time.monotonic() - began, f"setup.status: {status}")
            took = screen.call("command -v backstory; backstory status")
            seen("backstory status", took, screen.text)
            seen("the second session starts", _start(screen), screen.text)
            requests = len(model.requests)
            screen.type("What about the door?")
            took = screen.wait(lambda text: AGAIN in text)
            seen("the second answer", took, screen.text)
            whole = json.dumps(model.requests[requests:], ensure_ascii=False)
            if ANSWERED not in whole:
                raise SystemExit("the second session was not told what the first one did")
            at = whole.index(ANSWERED)
            seen("what the model was told", 0, whole[max(0, at - 400) : at + 100])
            _leave(screen)
        finally:
            screen.end()


def _world(folder: Path, home: Path, project: Path) -> dict[str, str]:
    """A user with a project, a Claude Code, and no backstory."""
    (home / ".local" / "bin").mkdir(parents=True)
    project.mkdir()
    (project / "hinge.py").write_text("oil = 0\n")
    _git(project, "init", "--quiet", "-b", "main")
    _git(project, "add", ".")
    _git(project, "commit", "--quiet", "-m", "a door")
    env = environment(home, "")
    env |= {name: value for name, value in os.environ.items() if name.startswith(PIP)}
    programs = folder / "bin"
    programs.mkdir()
    (programs / "claude").symlink_to(binary())
    others = [at for at in env["PATH"].split(os.pathsep) if not os.path.exists(os.path.join(at, "backstory"))]
    env["PATH"] = os.pathsep.join((str(home / ".local" / "bin"), str(programs), *others))
    _publish(folder / "published", home)
    _settle_in(home, project)
    return env


def _start(screen: Screen) -> float:
    screen.type("clear; claude --dangerously-skip-permissions")
    took = screen.wait(lambda text: "bypass permissions on" in " ".join(text.split()))
    time.sleep(3)  # what comes late is seen as well
    return took


def _leave(screen: Screen) -> None:
    screen.type("/exit")
    screen.wait(lambda text: text.rstrip().endswith(("$", "#")))


def _publish(place: Path, home: Path) -> None:
    """This checkout as a repository that Claude Code takes for one on GitHub."""
    listed = _git(REPOSITORY, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in filter(None, listed.split("\0")):
        if (REPOSITORY / name).exists():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, place / name)
    _git(place, "init", "--quiet", "-b", "main")
    _git(place, "add", "--all")
    _git(place, "commit", "--quiet", "-m", "all")
    address = "https://github.com/acme/backstory.git"
    (home / ".gitconfig").write_text(f'[url "{place.as_uri()}"]\n\tinsteadOf = {address}\n')


def _settle_in(home: Path, project: Path) -> None:
    """What Claude Code asks a person on the first day was answered."""
    (home / ".claude").mkdir(exist_ok=True)
    (home / ".claude" / "settings.json").write_text(json.dumps({"skipDangerousModePermissionPrompt": True}))
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    state = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "bypassPermissionsModeAccepted": True,
        "customApiKeyResponses": {"approved": [KEY], "rejected": []},
        "projects": {str(project): trusted},
    }
    (home / ".claude.json").write_text(json.dumps(state))


def _git(folder: Path, *args: str) -> str:
    author = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    command = ["git", *author, *args]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS)
    if done.returncode:
        raise SystemExit(f"{shlex.join(command)}: {done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
