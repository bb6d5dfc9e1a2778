"""Sets backstory up in the plugin's own data folder, for a plugin that came straight from a marketplace.

backstory.sh starts this in the background when a session begins. It is a file of its own, stdlib only,
because there is no backstory yet. The environment is built beside the old one and a link is switched at the
end, so an upgrade never leaves a half-installed backstory; capture needs none of it and records meanwhile.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time

TIME_OUT = 900
READY = "has been set up; start a new session"
SETTING_UP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "setting_up.txt")


def main(root: str, data: str) -> None:
    try:
        os.setsid()  # live on when the session ends
    except OSError:
        pass
    with open(os.path.join(data, "setup.lock"), "w", opener=_through_no_link) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return  # another session is at it
        version = _version(root)
        home = os.path.join(data, "venv-" + version)
        if os.path.exists(os.path.join(home, "ready")):
            if os.path.realpath(os.path.join(data, "venv")) != os.path.realpath(home):
                _switch(data, home)  # killed before it could, or back from a newer version
                _say(data, READY)
            _put_on_path(data)
            return
        with open(SETTING_UP, encoding="utf-8") as file:
            _say(data, file.read().strip())
        problem = _build(root, data, home)
        if problem:
            log = os.path.join(data, "setup.log")
            _say(data, f"could not be set up ({problem}); the next session tries again; details: {log}")
            return
        _switch(data, home)
        _put_on_path(data)
        _say(data, READY)


def _put_on_path(data: str) -> None:
    """Let a person type `backstory`: a link in ~/.local/bin, where that is on PATH and no other backstory is.
    Else setup.command says how to call it; the line at a session's start tells that."""
    command = os.path.join(data, "venv", "bin", "backstory")
    folder = os.path.join(os.environ.get("HOME", ""), ".local", "bin")
    link = os.path.join(folder, "backstory")
    how = os.path.join(data, "setup.command")
    found = shutil.which("backstory")
    if not found and os.path.isabs(folder) and os.path.isdir(folder) and _is_on_path(folder):
        try:
            if os.path.islink(link) and not os.path.exists(link):
                os.unlink(link)  # of a folder that is gone
            os.symlink(command, link)
            found = link
        except OSError:
            pass
    if found:
        if os.path.lexists(how):
            os.unlink(how)
    else:
        _write(how, command)


def _is_on_path(folder: str) -> bool:
    listed = os.environ.get("PATH", "").split(os.pathsep)
    return os.path.realpath(folder) in [os.path.realpath(one) for one in listed if os.path.isabs(one)]


def _build(root: str, data: str, home: str) -> str | None:
    shutil.rmtree(home, ignore_errors=True)
    python = os.path.join(home, "bin", "python")
    # -I: the working folder is somebody's project. Versions and hashes are those that the tests ran with.
    pip = [python, "-I", "-m", "pip", "install", "--disable-pip-version-check"]
    pinned = os.path.join(root, "requirements", "run.txt")
    steps = [
        (
            "no virtual environment; on Debian: apt install python3-venv",
            [sys.executable, "-I", "-m", "venv", home],
        ),
        ("pip could not install what it needs", [*pip, "--require-hashes", "-r", pinned]),
        ("pip could not install it", [*pip, "--no-deps", "--no-build-isolation", root]),
    ]
    with open(os.path.join(data, "setup.log"), "a", encoding="utf-8", opener=_through_no_link) as log:
        for problem, command in steps:
            log.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {' '.join(command)}\n")
            log.flush()
            try:
                subprocess.run(command, stdout=log, stderr=log, check=True, timeout=TIME_OUT)
            except (OSError, subprocess.SubprocessError) as error:
                log.write(f"{error}\n")
                return problem
    with open(os.path.join(home, "ready"), "w", encoding="utf-8"):
        return None


def _switch(data: str, home: str) -> None:
    link = os.path.join(data, "venv")
    old = os.path.realpath(link)
    fresh = link + ".new"
    if os.path.lexists(fresh):
        os.unlink(fresh)
    os.symlink(os.path.basename(home), fresh)
    os.replace(fresh, link)
    for name in os.listdir(data):
        path = os.path.join(data, name)
        # A server of a running session may still use the environment before this one.
        if name.startswith("venv-") and os.path.realpath(path) not in (os.path.realpath(home), old):
            shutil.rmtree(path, ignore_errors=True)


def _version(root: str) -> str:
    with open(os.path.join(root, ".claude-plugin", "plugin.json"), encoding="utf-8") as file:
        return str(json.load(file)["version"])


def _say(data: str, status: str) -> None:
    _write(os.path.join(data, "setup.status"), status)


def _write(path: str, line: str) -> None:
    with open(path + ".new", "w", encoding="utf-8", opener=_through_no_link) as file:
        file.write(line + "\n")
    os.replace(path + ".new", path)


def _through_no_link(path: str, flags: int) -> int:
    if os.path.islink(path):
        os.unlink(path)
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


if __name__ == "__main__":
    main(os.path.realpath(sys.argv[1]), sys.argv[2])
