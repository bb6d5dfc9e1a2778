"""Both ways to get backstory into Claude Code, as a user goes them: pip and `backstory install`, or the
plugin straight from its marketplace.

Nothing is fetched twice: one folder of wheels serves every pip that the plugin starts, and those of others
are kept for the runs of a day. `pip install backstory` finds what it needs installed already, as links to the
packages that run these tests: to unpack and compile them takes longer than all the rest, and the plugin from
the marketplace does it.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.helpers.chaos import eventually
from tests.helpers.claude import NO_SERVERS, SERVERS, Result, binary, cli, environment, run
from tests.helpers.scripted_model import ScriptedModel, Step, say, together, use

pytestmark = pytest.mark.slow

SEARCH = "mcp__plugin_backstory_memory__memory_search"
OFFERED = {
    "agents": ["memory-updater"],
    "skills": (
        "codebase-analyzer forget memory-init memory-processor memory-status memory-sync open pause recall"
        " remember resume why"
    ).split(),
}
DAY = 24 * 3600  # in seconds
NOBODY = "http://127.0.0.1:9"  # no model is needed to install something
PLUGIN = "backstory@backstory"
BUILDS = ("hatchling==", "packaging==", "pathspec==", "pluggy==", "tomlkit==", "trove-classifiers==")


Env = Mapping[str, str]


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working tree as git would give it to a user, what is not committed yet included."""

    def build(place: Path) -> None:
        listed = _call("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=REPOSITORY)
        for name in listed.split("\0"):
            if name and (REPOSITORY / name).exists():
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(REPOSITORY / name, place / name)

    return _once(tmp_path_factory, "checkout", build)


@pytest.fixture(scope="session")
def own_wheel(tmp_path_factory: pytest.TempPathFactory, checkout: Path) -> Path:
    """A folder with our wheel."""

    def build(place: Path) -> None:
        quiet = ("--quiet", "--disable-pip-version-check")
        how = ("wheel", *quiet, "--no-deps", "--no-build-isolation", "-w", str(place), str(checkout))
        _call(sys.executable, "-m", "pip", *how)

    return _once(tmp_path_factory, "wheel", build)


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory, checkout: Path, pytestconfig: pytest.Config) -> Path:
    """The wheels that ours needs, and what builds it."""
    assert pytestconfig.cache
    kept = pytestconfig.cache.mkdir("wheels")

    def build(place: Path) -> None:
        for wheel in kept.iterdir():
            with suppress(FileNotFoundError):  # another run clears up as well
                if wheel.stat().st_mtime < time.time() - DAY:
                    wheel.unlink()
        pip = (sys.executable, "-m", "pip")
        quiet = ("--quiet", "--disable-pip-version-check")
        pinned = str(checkout / "requirements" / "run.txt")
        command = (*pip, "download", *quiet, "--require-hashes", "-r", pinned, "-d", str(place))
        # To ask an index takes longer than all the rest, so it is asked only where a wheel is missing.
        offline = subprocess.run(
            (*command, "--no-index", "--find-links", kept.as_uri()), capture_output=True, check=False
        )
        if offline.returncode == 0:
            return
        _call(*command)
        for wheel in place.glob("*.whl"):
            new = shutil.copyfile(wheel, kept / f"{wheel.name}.{os.getpid()}")
            os.replace(new, kept / wheel.name)  # another run may look for it now

    return _once(tmp_path_factory, "wheels", build)


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory, checkout: Path, own_wheel: Path) -> Path:
    """The `backstory` of a virtual environment into which our wheel was installed. What it says that it needs
    must be there, for pip has nowhere to take it from."""

    def build(place: Path) -> None:
        _call(_python(), "-m", "venv", "--without-pip", str(place))
        (packages,) = place.glob("lib/python3*/site-packages")
        _link_pinned(checkout / "requirements" / "run.txt", packages)
        pip = (sys.executable, "-m", "pip", "--python", str(place / "bin" / "python"), "install", "--quiet")
        quick = ("--no-compile", "--disable-pip-version-check", "--no-index")
        _call(*pip, *quick, "--find-links", own_wheel.as_uri(), "backstory")

    return _once(tmp_path_factory, "installed", build) / "bin" / "backstory"


def _link_pinned(requirements: Path, packages: Path) -> None:
    """Those of the packages that run the tests which are pinned there, in the versions that are."""
    pinned = re.findall(r"^([\w.-]+)(?:\[.*?\])?==([\w.+-]+)(.*)", requirements.read_text(), re.M)
    for name, wanted, condition in pinned:
        try:
            found = distribution(name)
        except PackageNotFoundError:
            assert ";" in condition, f"{name} is not installed here; make test does it"
            continue
        if found.version != wanted:
            assert ";" in condition, f"{name} {found.version} is installed here, not {wanted}"
            continue
        for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            (packages / top).symlink_to(str(found.locate_file(top)))


def _once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], None]) -> Path:
    """A folder that all workers of pytest-xdist share; the first to come builds it."""
    base = factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    place, ready = base / name, base / f"{name}.ready"
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            build(place)
            ready.touch()
    return place


def _call(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def _python() -> str:
    """The interpreter itself, where we run in a virtual environment of it."""
    return os.path.realpath(sys.executable)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A home with spaces in its name, Claude Code and a Python on PATH, but no backstory."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "python3").symlink_to(_python())
    (programs / "claude").symlink_to(binary())
    found = environment(tmp_path / "a home of one's own", NOBODY)
    others = [place for place in found["PATH"].split(os.pathsep) if not (Path(place) / "backstory").exists()]
    found["PATH"] = os.pathsep.join((str(programs), *others))
    return found


def data_of(env: Env) -> Path:
    return Path(env["HOME"], ".local", "share", "backstory")


def backstory(
    program: Path, *args: str, env: Env, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    command = [str(program), *args]
    return subprocess.run(
        command, env=dict(env), cwd=cwd or env["TMPDIR"], capture_output=True, text=True, check=False
    )


def install(program: Path, env: Env) -> str:
    done = backstory(program, "install", "--claude", str(binary()), env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def session(
    prompt: str, *steps: Step, cwd: Path, env: Env, servers: Sequence[str] = SERVERS
) -> tuple[Result, ScriptedModel]:
    """A session as any other: the plugin comes from what is installed."""
    with ScriptedModel(*steps) as model:
        result = run(prompt, cwd=cwd, env={**env, "ANTHROPIC_BASE_URL": model.url}, servers=servers)
    assert result.code == 0, result.stderr
    return result, model


def server_status(result: Result) -> list[str]:
    servers = result.init["mcp_servers"]
    return [server["status"] for server in servers if server["name"] == "plugin:backstory:memory"]


def offered(result: Result) -> dict[str, list[str]]:
    """Which of our agents, skills and commands (they are skills as well) a session has."""
    ours = {
        kind: [str(name).removeprefix("backstory:") for name in result.init[kind] if "backstory:" in name]
        for kind in OFFERED
    }
    return {kind: sorted(names) for kind, names in ours.items()}


def plugins(env: Env) -> list[dict[str, Any]]:
    listed = cli("plugin", "list", "--json", env=env)
    assert listed.code == 0, listed.stderr
    return [plugin for plugin in json.loads(listed.stdout) if plugin["id"] == PLUGIN]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    place = tmp_path / "a project"
    place.mkdir()
    return place


# pip install backstory, backstory install


@pytest.mark.client
def test_a_user_who_installed_with_pip_has_a_memory_until_they_uninstall(
    installed: Path, env: dict[str, str], project: Path
) -> None:
    assert shutil.which("backstory", path=env["PATH"]) is None
    install(installed, env)
    checked = json.loads(backstory(installed, "doctor", "--json", env=env).stdout)
    assert len(checked) >= 10
    assert [check for check in checked if check["level"] != "ok"] == []

    counted = [use("Bash", command="echo seven walruses"), say("seven")]
    session("count", *counted, cwd=project, env=env, servers=NO_SERVERS)
    result, model = session("how many?", use(SEARCH, query="walruses"), say("seven"), cwd=project, env=env)
    assert server_status(result) == ["connected"]
    assert offered(result) == OFFERED
    (found,) = model.results(SEARCH)
    assert "[1] (episodic, score: " in found and "Command: echo seven walruses" in found

    for _ in range(2):
        done = backstory(installed, "uninstall", "--claude", str(binary()), env=env)
        assert done.returncode == 0, done.stderr
        assert f"your memories stay in {data_of(env)}" in done.stdout
        assert plugins(env) == []
    assert not (data_of(env) / "plugin").exists()

    session("count again", use("Bash", command="echo eight walruses"), say("eight"), cwd=project, env=env)
    left = backstory(installed, "search", "walruses", "--json", env=env, cwd=project)
    assert [memory["content"].splitlines()[1] for memory in json.loads(left.stdout)] == [
        "Command: echo seven walruses"
    ]


@pytest.mark.client
def test_where_the_sdk_is_missing_the_users_own_claude_makes_the_memories(
    installed: Path, env: dict[str, str], project: Path
) -> None:
    from backstory.synthesis import prompt

    observe, summarise = f"mcp__memory__{prompt.OBSERVATION}", f"mcp__memory__{prompt.SUMMARY}"
    sdk = [str(installed.parent / "python"), "-c", "import claude_agent_sdk"]
    assert subprocess.run(sdk, env=env, capture_output=True, check=False).returncode == 1
    install(installed, env)
    with ScriptedModel(use("Bash", command="echo seven walruses"), say("There are seven.")) as model:
        found = use(observe, kind="discovery", title="Seven walruses", text="Counted: seven.", items=[1])
        told = use(summarise, request="Count them", completed="Counted seven", next_steps="")
        model.when(together(found, told), offers=observe, repeat=True)
        asking = {**env, "ANTHROPIC_BASE_URL": model.url, "BACKSTORY_SYNTHESIZER": "claude"}
        assert run("count the walruses", cwd=project, env=asking, servers=NO_SERVERS).code == 0
        assert eventually(lambda: "Counted: seven." in _stored(data_of(env)))
    spent = json.loads(backstory(installed, "status", "--json", env=env, cwd=project).stdout)["synthesis"]
    assert spent["troubles"] == []
    worker = [body for body in model.requests if observe in json.dumps(body.get("tools", []))]
    assert worker and [tool["name"] for tool in worker[0]["tools"]] == [observe, summarise]


CLIENT = """#!/bin/sh
case "$*" in
    "plugin marketplace list --json") echo "[]" ;;
    "plugin list --json") echo '[{"id": "backstory@backstory"}]' ;;
esac
"""


def test_whoever_waits_for_claude_code_at_a_terminal_is_told_so(tmp_path: Path, home: Path) -> None:
    client = tmp_path / "claude"
    client.write_text(CLIENT)
    client.chmod(0o755)
    command = [os.path.join(os.path.dirname(sys.executable), "backstory"), "install", "--claude", str(client)]
    unseen = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert unseen.stderr == ""
    terminal, end = pty.openpty()
    try:
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=end, text=True, timeout=60, check=True)
        said = os.read(terminal, 10_000).decode().splitlines()
    finally:
        os.close(terminal)
        os.close(end)
    assert ran.stdout == unseen.stdout
    assert [line.partition("claude plugin ")[2].rstrip("`").split()[0] for line in said] == [
        "marketplace",
        "marketplace",
        "install",
        "list",
    ]
    assert said[2] == "waiting for `claude plugin install backstory@backstory`"


@pytest.fixture
def client(tmp_path: Path) -> Path:
    """A Claude Code that takes every plugin."""
    program = tmp_path / "claude"
    program.write_text(CLIENT)
    program.chmod(0o755)
    return program


BACKSTORY = os.path.join(os.path.dirname(sys.executable), "backstory")


def typed(answers: str, *args: str) -> tuple[str, str]:
    """What a person sees who answers so: what was printed, and what was asked."""
    terminal, end = pty.openpty()
    try:
        os.write(terminal, answers.encode())
        ran = subprocess.run(
            [BACKSTORY, *args],
            stdin=end,
            stdout=subprocess.PIPE,
            stderr=end,
            text=True,
            timeout=60,
            check=True,
        )
        return ran.stdout, os.read(terminal, 20_000).decode()
    finally:
        os.close(terminal)
        os.close(end)


def test_a_person_is_told_what_would_be_sent_before_anything_is_registered_and_chooses(
    client: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BACKSTORY_SYNTHESIZER")
    printed, asked = typed("local\ny\n", "install", "--claude", str(client))
    told, question, waiting = (
        asked.index(part) for part in ("It is sent", "Who makes memories?", "waiting for")
    )
    assert told < question < waiting, "first what is sent, then the choice, then the plugin"
    assert "through your own Claude Code and its account" in asked and "$1 a day" in asked
    assert printed.startswith("memories: made by rules; nothing is sent to a model")
    settings = json.loads((home / ".claude" / "settings.json").read_text())
    assert settings["statusLine"]["command"].endswith("-m backstory statusline")
    assert subprocess.run(settings["statusLine"]["command"], shell=True, check=True).returncode == 0  # noqa: S602

    printed, asked = typed("", "install", "--claude", str(client))
    assert "Who makes memories?" not in asked, "it was chosen"
    printed, asked = typed("", "uninstall", "--claude", str(client))
    assert "status line removed" in printed
    assert json.loads((home / ".claude" / "settings.json").read_text()) == {}


def test_what_is_sent_is_told_once_where_a_person_agrees(
    client: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BACKSTORY_SYNTHESIZER")
    printed, asked = typed("auto\nn\n", "install", "--claude", str(client))
    assert (printed + asked).count("excerpts of tool uses") == 1
    assert printed.startswith("memories: made as said above (synthesizer auto)\n")


def test_a_script_is_asked_nothing_and_told_the_same(
    client: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BACKSTORY_SYNTHESIZER")
    (home / ".claude").mkdir()
    settings = home / ".claude" / "settings.json"
    settings.write_text('{"statusLine": {"type": "command", "command": "mine"}}')
    for more in ([], ["--yes"], ["--statusline"]):
        command = [BACKSTORY, "install", "--claude", str(client), "--json", *more]
        told = json.loads(subprocess.run(command, capture_output=True, timeout=60, check=True).stdout)
        assert "It is sent what you ask" in told[0] and "backstory config synthesizer local" in told[0]
    assert "your status line is left as it is" in told[-1]
    assert json.loads(settings.read_text())["statusLine"]["command"] == "mine"
    settings.write_text("{ // mine\n}")
    told = json.loads(subprocess.run(command, capture_output=True, timeout=60, check=True).stdout)
    assert "mend it, then" in told[-1] and settings.read_text() == "{ // mine\n}"


def test_install_without_claude_code_says_what_to_do(
    installed: Path, env: dict[str, str], tmp_path: Path
) -> None:
    bare = {**env, "PATH": str(tmp_path / "nothing")}
    done = backstory(installed, "install", env=bare)
    assert done.returncode == 1
    assert done.stderr == "backstory: Claude Code is not on PATH; name it with: --claude PATH\n"
    wrong = backstory(installed, "install", "--claude", "/nonexistent/claude", env=bare)
    assert wrong.returncode == 1
    assert "/nonexistent/claude is not a program" in wrong.stderr


@pytest.mark.client
def test_install_takes_the_place_of_a_marketplace_that_points_elsewhere(
    installed: Path, env: dict[str, str], checkout: Path
) -> None:
    assert cli("plugin", "marketplace", "add", str(checkout), env=env).code == 0
    assert cli("plugin", "install", PLUGIN, env=env).code == 0
    assert plugins(env)[0]["readFromFolder"] == str(checkout)

    assert "replaced a marketplace" in install(installed, env)
    (plugin,) = plugins(env)
    assert plugin["enabled"] is True
    assert plugin["readFromFolder"] == str(data_of(env) / "plugin")


@pytest.mark.client
def test_installing_twice_registers_one_plugin_clears_old_files_away_and_always_has_a_hook_script(
    installed: Path, env: dict[str, str]
) -> None:
    root = data_of(env) / "plugin"

    def is_registered() -> None:
        (plugin,) = plugins(env)
        assert plugin["enabled"] is True
        assert plugin["readFromFolder"] == str(root)
        assert plugin["folderVersion"] == version("backstory")
        assert (root / "interpreter").read_text() == f"{installed.parent / 'python'}\n"

    assert "done" in install(installed, env)
    is_registered()
    hook = root / "src" / "backstory" / "plugin" / "hooks" / "hook.sh"
    current = hook.read_text()
    hook.write_text("#!/bin/sh\n# of an older version\n")
    stale = root / "src" / "backstory" / "forgotten.py"
    stale.touch()
    half = hook.with_name("hook.sh.new")  # of an upgrade that was interrupted
    half.touch()

    looks: list[bool] = []
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            looks.append(hook.exists())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        assert "done" in install(installed, env)
    finally:
        over.set()
        watcher.join()
    is_registered()
    assert len(looks) > 1000
    assert all(looks)
    assert hook.read_text() == current
    assert not stale.exists() and not half.exists()


# The plugin straight from its marketplace


@pytest.mark.client
def test_a_plugin_from_the_marketplace_sets_itself_up_and_captures_meanwhile(
    checkout: Path, wheels: Path, env: dict[str, str], project: Path, tmp_path: Path
) -> None:
    env |= _pip_from(wheels)
    _publish(checkout, tmp_path / "published", Path(env["HOME"]))
    assert cli("plugin", "marketplace", "add", "acme/backstory", env=env).code == 0
    assert cli("plugin", "install", PLUGIN, env=env).code == 0
    (plugin,) = plugins(env)
    root = Path(plugin["installPath"])
    own = Path(env["HOME"], ".claude", "plugins", "data", "backstory-backstory")
    assert not own.exists()

    counted = [use("Bash", command="echo seven walruses"), say("seven")]
    result, _ = session("count", *counted, cwd=project, env=env)
    assert result.text == "seven"
    assert SEARCH not in result.init["tools"]

    launched = _launch(root, {**env, "CLAUDE_PLUGIN_ROOT": str(root), "CLAUDE_PLUGIN_DATA": str(own)})
    assert launched.stdout == ""
    about = (root / "src" / "backstory" / "plugin" / "bin" / "setting_up.txt").read_text()
    assert launched.stderr == f"backstory: {about}"
    captured = {
        "asked: count\n\nanswered: seven",
        "Tool: Bash\nCommand: echo seven walruses\nOutput: seven walruses",
    }
    assert eventually(lambda: _stored(data_of(env)) == captured)  # a drain may outlive the session

    assert eventually((own / "venv" / "bin" / "backstory").exists, 300)
    # As our skills have the model run it, in a shell that is not told where the plugin's data lies.
    ours = use("Bash", command=f'sh "{root}/src/backstory/plugin/bin/backstory.sh" --version')
    asked = [use(SEARCH, query="walruses"), ours, say("7")]
    result, model = session("how many?", *asked, cwd=project, env=env, servers=["memory"])
    assert server_status(result) == ["connected"]
    assert offered(result) == OFFERED
    assert model.results("Bash") == [f"backstory {plugin['version']}"]
    (found,) = model.results(SEARCH)
    assert "Command: echo seven walruses" in found
    assert (own / "setup.status").read_text() == "has been set up; start a new session\n"
    assert sorted(path.name for path in own.glob("venv*")) == ["venv", f"venv-{plugin['version']}"]

    program = own / "venv" / "bin" / "backstory"
    checks = json.loads(backstory(program, "doctor", "--json", "--claude", str(binary()), env=env).stdout)
    assert [check for check in checks if check["level"] != "ok"] == []


def _publish(checkout: Path, place: Path, home: Path) -> None:
    """The checkout as a repository that Claude Code takes for one on GitHub."""
    shutil.copytree(checkout, place)
    author = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "all"]):
        _call("git", *author, *command, cwd=place)
    address = "https://github.com/acme/backstory.git"
    (home / ".gitconfig").write_text(f'[url "{place.as_uri()}"]\n\tinsteadOf = {address}\n')


def _pip_from(wheels: Path) -> dict[str, str]:
    """Compiling takes longer than all the rest; Python does it for what a test imports."""
    return {
        **{"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": wheels.as_uri()},
        **{"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_COMPILE": "1"},
    }


def _launch(root: Path, env: Env) -> subprocess.CompletedProcess[str]:
    """The MCP server as Claude Code starts it; it has a second, of processor time, to say why it cannot."""
    script = root / "src" / "backstory" / "plugin" / "bin" / "backstory.sh"
    command = ["sh", str(script), "mcp", "memory"]
    before = sum(os.times()[2:4])
    ran = subprocess.run(
        command,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert sum(os.times()[2:4]) - before < 1
    return ran


def _stored(data: Path) -> set[str]:
    with closing(sqlite3.connect(data / "backstory.db")) as db:
        return {content for (content,) in db.execute("SELECT content FROM memories")}


@pytest.mark.client
def test_the_tools_are_there_in_the_first_session_after_the_set_up(
    checkout: Path, installed: Path, env: dict[str, str], project: Path, tmp_path: Path
) -> None:
    def status(folder: Path) -> list[str]:
        path = os.pathsep.join((str(folder), env["PATH"]))
        with ScriptedModel(say("done")) as model:
            now = {**env, "PATH": path, "ANTHROPIC_BASE_URL": model.url}
            return server_status(run("hello", cwd=project, env=now, plugin_dir=checkout, servers=["memory"]))

    status(_old_pythons(tmp_path / "old"))
    assert status(installed.parent) == ["connected"]


def _old_pythons(folder: Path) -> Path:
    """Pythons that answer no when asked whether they are new enough."""
    folder.mkdir()
    for name in ("python3", "python3.11", "python3.12", "python3.13", "python3.14"):
        (folder / name).write_text("#!/bin/sh\nexit 1\n")
        (folder / name).chmod(0o755)
    return folder


def test_without_a_python_that_fits_events_wait_in_the_spool_and_the_server_says_so(
    checkout: Path, tmp_path: Path, home: Path, data: Path
) -> None:
    programs, own = _old_pythons(tmp_path / "few programs"), tmp_path / "plugin data"
    for name in ("sh", "cat", "mv", "mkdir", "date"):
        (programs / name).symlink_to(shutil.which(name) or name)
    env = {"HOME": str(home), "PATH": str(programs), "CLAUDE_PLUGIN_DATA": str(own)}
    hook = checkout / "src" / "backstory" / "plugin" / "hooks" / "hook.sh"

    def printed(*mode: str) -> bytes:
        command = [str(programs / "sh"), str(hook), *mode]
        done = subprocess.run(command, env=env, input=b"{}", capture_output=True, timeout=10, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout

    assert json.loads(printed("start"))["systemMessage"].startswith("backstory ")
    assert (printed(), printed("end")) == (b"", b"")
    assert [path.read_text() for path in (data / "spool" / "new").iterdir()] == ["{}"] * 3

    assert eventually((own / "setup.status").exists)
    assert "needs Python 3.11 or newer" in json.loads(printed("start"))["systemMessage"]
    launched = _launch(checkout, env)
    assert launched.stdout == ""
    assert launched.stderr == (
        "backstory: needs Python 3.11 or newer on PATH; install it and start a new session\n"
    )


def _launcher(tmp_path: Path, noted: str) -> Path:
    """A plugin as `backstory install` lays it out, as far as the launcher looks."""
    root = tmp_path / "plugin"
    source = Path("src", "backstory", "plugin", "bin")
    shutil.copytree(REPOSITORY / source, root / source)
    (root / "interpreter").write_text(noted + "\n")
    return root / source / "backstory.sh"


def test_a_noted_python_that_has_lost_backstory_is_passed_over(tmp_path: Path, home: Path) -> None:
    launcher, own = _launcher(tmp_path, os.path.realpath(_python())), tmp_path / "plugin data"
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin", "CLAUDE_PLUGIN_DATA": str(own)}
    subprocess.run(["sh", launcher, "--setup"], env=env, check=True, timeout=10)
    ran = subprocess.run(["sh", launcher, "--version"], env=env, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("backstory: is gone from the Python it was installed with; install it again")
    assert not list(own.glob("venv*"))  # and nothing is fetched from anywhere

    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "backstory").write_text("#!/bin/sh\necho found on PATH\n")
    (programs / "backstory").chmod(0o755)
    env["PATH"] = f"{programs}:/usr/bin:/bin"
    assert subprocess.check_output(["sh", launcher, "--version"], env=env, text=True) == "found on PATH\n"


def test_a_project_cannot_pose_as_backstory(tmp_path: Path, project: Path, home: Path) -> None:
    """The launcher runs in somebody's project; a package of our name there is none of our business."""
    (project / "backstory").mkdir()
    for name in ("__init__.py", "__main__.py"):
        (project / "backstory" / name).write_text("raise SystemExit('code of the project ran')\n")
    launcher = _launcher(tmp_path, sys.executable)
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    ran = subprocess.run(
        ["sh", launcher, "--version"], cwd=project, env=env, capture_output=True, text=True, check=False
    )
    assert (ran.stdout, ran.stderr) == (f"backstory {version('backstory')}\n", "")


def test_a_set_up_that_met_another_package_says_so_and_the_next_one_mends_it(
    checkout: Path, wheels: Path, installed: Path, tmp_path: Path
) -> None:
    """Only what builds backstory is installed, the rest is there already. The set-up installs all of it in
    test_a_plugin_from_the_marketplace_sets_itself_up_and_captures_meanwhile."""
    own, tampered = tmp_path / "plugin data", tmp_path / "somebody else's wheels"
    own.mkdir()
    pinned = (checkout / "requirements" / "run.txt").read_text()
    checkout = shutil.copytree(checkout, tmp_path / "checkout")
    (checkout / "requirements" / "run.txt").write_text(
        "".join(
            "".join(entry)
            for entry in re.findall(r"^(\S+==)(.*\n(?: .*\n)*)", pinned, re.M)
            if entry[0] in BUILDS
        )
    )
    shutil.copytree(wheels, tampered)
    (wheel,) = tampered.glob("hatchling-*.whl")
    wheel.write_bytes(wheel.read_bytes() + b"\0")
    _set_up(checkout, own, {**os.environ, **_pip_from(tampered)})
    said = (own / "setup.status").read_text()
    assert said == (
        "could not be set up (pip could not install what it needs); the next session tries again;"
        f" details: {own / 'setup.log'}\n"
    )
    assert "DO NOT MATCH THE HASHES" in (own / "setup.log").read_text()  # pip's own words
    assert not (own / "venv").exists()
    launched = _launch(checkout, {"PATH": "/usr/bin:/bin", "CLAUDE_PLUGIN_DATA": str(own)})
    assert (launched.stdout, launched.stderr) == ("", f"backstory: {said}")

    env = {**os.environ, "PYTHONPATH": str(_packages(installed, tmp_path / "packages"))}
    _set_up(checkout, own, {**env, **_pip_from(wheels)})
    program = str(own / "venv" / "bin" / "backstory")
    ran = subprocess.run([program, "--version"], env=env, capture_output=True, text=True, check=True)
    assert ran.stdout == f"backstory {version('backstory')}\n"


def _packages(installed: Path, place: Path) -> Path:
    """What backstory needs, without backstory."""
    place.mkdir()
    (packages,) = installed.parent.parent.glob("lib/python3*/site-packages")
    for package in packages.iterdir():
        if not package.name.startswith("backstory"):
            (place / package.name).symlink_to(package)
    return place


def test_a_set_up_that_was_killed_before_the_switch_is_finished_by_the_next(
    checkout: Path, tmp_path: Path
) -> None:
    own = tmp_path / "plugin data"
    complete = own / f"venv-{version('backstory')}"
    complete.mkdir(parents=True)
    (complete / "ready").touch()
    _set_up(checkout, own, os.environ)
    assert (own / "venv").is_symlink()


@pytest.mark.parametrize("is_set_up", [False, True])
def test_no_worker_starts_before_the_set_up_is_complete(tmp_path: Path, is_set_up: bool) -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(REPOSITORY / 'src')!r})\n"
        "from backstory.surfaces import worker\n"
        "worker.run = lambda folder: print('runs')\n"
        "worker.main()"
    )
    env = {"BACKSTORY_HOME": str(tmp_path), "CLAUDE_PLUGIN_DATA": str(tmp_path / "plugin data")}
    options = ["-I"] if is_set_up else ["-I", "-S"]  # -S: without what is installed
    command = [sys.executable, *options, "-c", program]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert ran.stdout == ("runs\n" if is_set_up else "")


def test_a_slash_command_during_the_set_up_is_no_failure(tmp_path: Path, home: Path) -> None:
    launcher, own = _launcher(tmp_path, "/no/python"), tmp_path / "plugin data"
    own.mkdir()
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin", "CLAUDE_PLUGIN_DATA": str(own)}
    command = ["sh", str(launcher), "slash", "open"]
    for status in ("", launcher.with_name("setting_up.txt").read_text()):
        (own / "setup.status").write_text(status)
        ran = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stderr) == (0, "")
        about = (
            status.strip() or "is not set up yet; that happens in the background once a session has started"
        )
        assert ran.stdout == f"backstory {about}.\n"


def test_what_is_said_during_the_set_up_names_size_time_and_what_will_be_sent() -> None:
    from backstory import config

    text = (REPOSITORY / "src" / "backstory" / "plugin" / "bin" / "setting_up.txt").read_text()
    assert text.count("\n") == 1 and not set(text) & set('"\\'), "sh puts it into a string of JSON"
    assert len(text) < 280, "the line at a session's start has 300 characters"
    for part in (
        "250 MB",
        "minutes",
        "your own Claude account",
        f"${config.NUMBERS['spend.daily_usd']:g} a day",
        "nothing is sent before",
    ):
        assert part in text


@pytest.fixture
def complete(tmp_path: Path) -> Path:
    """The data folder of a plugin that is set up."""
    own = tmp_path / "plugins" / "data" / "backstory-backstory"
    programs = own / f"venv-{version('backstory')}" / "bin"
    programs.mkdir(parents=True)
    (programs.parent / "ready").touch()
    (programs / "backstory").write_text("#!/bin/sh\n")
    (programs / "backstory").chmod(0o755)
    return own


def test_after_a_set_up_a_person_can_type_backstory(checkout: Path, complete: Path, home: Path) -> None:
    link = home / ".local" / "bin" / "backstory"
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    _set_up(checkout, complete, env)
    command = str(complete / "venv" / "bin" / "backstory")
    assert (complete / "setup.command").read_text() == f"{command}\n", (
        "no folder of the user's own is on PATH"
    )
    assert not link.exists()

    link.parent.mkdir(parents=True)
    link.symlink_to("/gone")
    env["PATH"] = f"{link.parent}:/usr/bin:/bin"
    for _ in range(2):
        _set_up(checkout, complete, env)
        assert os.readlink(link) == command
        assert not (complete / "setup.command").exists()
    upgraded = {**env, "CLAUDE_PLUGIN_DATA": str(complete)}
    (complete / f"venv-{version('backstory')}" / "ready").unlink()
    script = checkout / "src" / "backstory" / "plugin" / "bin" / "backstory.sh"
    shutil.copytree(checkout / ".claude-plugin", link.parent / "bare" / ".claude-plugin")
    shutil.copytree(script.parent, link.parent / "bare" / "src" / "backstory" / "plugin" / "bin")
    bare = link.parent / "bare" / "src" / "backstory" / "plugin" / "bin" / "backstory.sh"
    subprocess.run(["sh", str(bare), "--setup"], env=upgraded, check=True, timeout=60)
    assert eventually((complete / "setup.status").exists)  # our own link keeps nobody from an upgrade


def test_another_backstory_on_the_path_is_left_alone(checkout: Path, complete: Path, home: Path) -> None:
    theirs = home / ".local" / "bin" / "backstory"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("#!/bin/sh\n")
    theirs.chmod(0o755)
    _set_up(checkout, complete, {"HOME": str(home), "PATH": f"{theirs.parent}:/usr/bin:/bin"})
    assert not theirs.is_symlink() and not (complete / "setup.command").exists()


@pytest.mark.parametrize("name", ["setup.lock", "setup.log", "setup.status.new"])
def test_a_set_up_writes_through_no_link(name: str, checkout: Path, tmp_path: Path) -> None:
    own, elsewhere = tmp_path / "plugin data", tmp_path / "elsewhere"
    own.mkdir()
    elsewhere.write_text("mine")
    (own / name).symlink_to(elsewhere)
    # Without what it needs it ends at once, and says so.
    shutil.copytree(checkout / ".claude-plugin", tmp_path / "bare" / ".claude-plugin")
    script = checkout / "src" / "backstory" / "plugin" / "bin" / "setup.py"
    code = f"import runpy, sys; main = runpy.run_path({str(script)!r})['main']; sys.executable = '/nowhere'"
    code += "; main(*sys.argv[1:])"
    subprocess.run([_python(), "-I", "-c", code, str(tmp_path / "bare"), str(own)], check=True, timeout=60)
    assert elsewhere.read_text() == "mine"
    assert "could not be set up" in (own / "setup.status").read_text()
    assert "/nowhere" in (own / "setup.log").read_text()


def test_the_launcher_notes_through_no_link_why_there_is_no_server(checkout: Path, tmp_path: Path) -> None:
    own, elsewhere, plugin = tmp_path / "plugin data", tmp_path / "elsewhere", tmp_path / "plugin"
    own.mkdir()
    elsewhere.write_text("mine")
    (own / "setup.status").symlink_to(elsewhere)
    source = Path("src", "backstory", "plugin", "bin")
    shutil.copytree(checkout / source, plugin / source)
    (plugin / "interpreter").write_text("/nowhere\n")
    env = {"PATH": "/usr/bin:/bin", "CLAUDE_PLUGIN_DATA": str(own)}
    subprocess.run(["sh", str(plugin / source / "backstory.sh"), "--setup"], env=env, check=True, timeout=60)
    assert elsewhere.read_text() == "mine"
    assert "install it again" in (own / "setup.status").read_text()


def _set_up(checkout: Path, own: Path, env: Env) -> None:
    script = checkout / "src" / "backstory" / "plugin" / "bin" / "setup.py"
    command = [_python(), "-I", str(script), str(checkout), str(own)]
    subprocess.run(command, env=dict(env), check=True, timeout=300, capture_output=True)


# The package itself


@pytest.mark.client
def test_the_marketplace_accepts_the_plugin_at_its_strictest(checkout: Path, env: dict[str, str]) -> None:
    done = cli("plugin", "validate", str(checkout), "--strict", "--profile", "directory", env=env)
    assert done.code == 0, done.stdout + done.stderr


def test_the_version_is_stated_once(installed: Path, own_wheel: Path, env: dict[str, str]) -> None:
    manifests = REPOSITORY / ".claude-plugin"
    stated = json.loads((manifests / "plugin.json").read_text())["version"]
    assert version("backstory") == stated
    assert backstory(installed, "--version", env=env).stdout == f"backstory {stated}\n"
    assert [path.name.split("-")[1] for path in own_wheel.glob("*.whl")] == [stated]
    elsewhere = [
        REPOSITORY / "pyproject.toml",
        manifests / "marketplace.json",
        *(REPOSITORY / "src").rglob("*.py"),
    ]
    assert [path for path in elsewhere if f'"{stated}"' in path.read_text()] == []
