"""Sets backstory up in the plugin's own data folder, for a plugin that came straight from a marketplace.

backstory.sh starts this in the background when a session begins. It is a file of its own, stdlib only,
because there is no backstory yet. The environment is built beside the old one and a link is switched at the
end, so an upgrade never leaves a half-installed backstory; capture needs none of it and records meanwhile.

Nobody is asked, so only wheels are installed, of versions and with hashes that the tests ran with: no build
code of a package is run.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time

TIME_OUT = 900
READY = "has been set up; start a new session"
# Of the environment pip is told where packages come from, how to get there, and where its cache is; nothing
# that would have it put them elsewhere (PIP_TARGET) or build them (PIP_NO_BINARY).
PASSED_ON = frozenset(
    "HOME LANG LC_ALL LC_CTYPE LD_LIBRARY_PATH LOGNAME NETRC PATH TMPDIR USER"
    " XDG_CACHE_HOME XDG_CONFIG_DIRS XDG_CONFIG_HOME"
    " ALL_PROXY HTTPS_PROXY HTTP_PROXY NO_PROXY all_proxy https_proxy http_proxy no_proxy"
    " CURL_CA_BUNDLE REQUESTS_CA_BUNDLE SSL_CERT_DIR SSL_CERT_FILE"
    " PIP_CACHE_DIR PIP_CERT PIP_CLIENT_CERT PIP_CONFIG_FILE PIP_DEFAULT_TIMEOUT PIP_EXTRA_INDEX_URL"
    " PIP_FIND_LINKS PIP_INDEX_URL PIP_KEYRING_PROVIDER PIP_NO_CACHE_DIR PIP_NO_COMPILE PIP_NO_INDEX"
    " PIP_PROXY PIP_RETRIES PIP_TIMEOUT PIP_TRUSTED_HOST".split()
)
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
    pip = [python, "-I", "-m", "pip", "install", "--disable-pip-version-check", "--only-binary=:all:"]
    pinned = os.path.join(root, "requirements", "run.txt")
    steps = [
        (
            "no virtual environment; on Debian: apt install python3-venv",
            [sys.executable, "-I", "-m", "venv", home],
        ),
        ("pip could not install what it needs", [*pip, "--require-hashes", "-r", pinned]),
        # Our own is built by the wheels above, and nothing is fetched for that.
        ("pip could not install it", [*pip, "--no-index", "--no-deps", "--no-build-isolation", root]),
    ]
    with open(os.path.join(data, "setup.log"), "a", encoding="utf-8", opener=_through_no_link) as log:
        for problem, command in steps:
            log.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {' '.join(command)}\n")
            log.flush()
            begun = log.tell()
            try:
                # The working folder is somebody's project; in ours no relative path leads into it.
                subprocess.run(
                    command,
                    cwd=data,
                    env=_environment(),
                    stdout=log,
                    stderr=log,
                    check=True,
                    timeout=TIME_OUT,
                )
            except (OSError, subprocess.SubprocessError) as error:
                log.write(f"{error}\n")
                log.flush()
                return _without_wheel(log.name, begun) or problem
    with open(os.path.join(home, "ready"), "w", encoding="utf-8"):
        return None


def _environment() -> dict[str, str]:
    passed_on = {name: said for name, said in os.environ.items() if name in PASSED_ON}
    if not os.path.isabs(passed_on.get("PIP_CONFIG_FILE", "/")):
        del passed_on["PIP_CONFIG_FILE"]
    return passed_on


def _without_wheel(log: str, begun: int) -> str | None:
    """What to say where pip was offered no wheel of something."""
    with open(log, "rb") as file:
        file.seek(begun)
        said = file.read().decode("utf-8", "replace")
    found = re.search(r"No matching distribution found for ([\w.=+-]{1,60})", said)
    if not found or "Retrying" in said:  # the network may be away
        return None
    here = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    return f"there is no wheel of {found[1]} for {here}, and nothing is built unasked; see docs/install.md"


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
    main(os.path.realpath(sys.argv[1]), os.path.abspath(sys.argv[2]))
