"""Nothing of a project is run, though everything that the plugin starts begins in the project's folder: no
module of it by an entry of PYTHONPATH, no program by one of PATH."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import version
from pathlib import Path

import pytest

from backstory.surfaces.cli import doctor, install
from tests.conftest import REPOSITORY, Run
from tests.helpers.chaos import PYTHON, SOURCE, bash, event, eventually, prompt, rows, run_hook, spooled

pytestmark = pytest.mark.slow

MODULES = (
    "sitecustomize",
    "usercustomize",
    "json",
    "click",
    "venv",
    "backstory/__init__",
    "backstory/__main__",
)
PROGRAMS = ("cat", "claude", "date", "dd", "git", "grep", "mkdir", "mv", "python3", "rm", "sh")
PLACES = ["", ":", ".", "::/x", "lib:/x"]  # for PYTHONPATH; the first is the only one without harm
EVERYWHERE = {"PYTHONPATH": "::.:lib:/x"}
SHELL = ("/bin/sh",)
REGISTERED = REPOSITORY / "src" / "backstory" / "plugin" / ".mcp.json"


@pytest.fixture
def witness(tmp_path: Path) -> Path:
    """Names what was run of the project."""
    return tmp_path / "witness"


@pytest.fixture
def project(project: str, witness: Path) -> Path:
    place = Path(project)
    for folder in (place, place / "lib"):
        (folder / "backstory").mkdir(parents=True, exist_ok=True)
        for name in MODULES:
            (folder / f"{name}.py").write_text(f"open({str(witness)!r}, 'a').write({name!r} + ' ran. ')\n")
    for name in PROGRAMS:
        (place / name).write_text(f'#!/bin/sh\necho {name} ran >>"{witness}"\n')
        (place / name).chmod(0o755)
    (place / ".claude").mkdir()
    (place / ".claude" / ".dirty-files").touch()
    return place


@pytest.fixture
def env(home: Path, tmp_path: Path) -> dict[str, str]:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "backstory").symlink_to(Path(sys.executable).parent / "backstory")
    kept = ("HOME", "BACKSTORY_SYNTHESIZER", "BACKSTORY_WORKER_IDLE_SECONDS")
    return {"PATH": f"{programs}:{os.environ['PATH']}", **{name: os.environ[name] for name in kept}}


@pytest.fixture(scope="module", params=["noted", "on PATH"])
def plugin(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin as it is laid out, with the interpreter that was noted, or with `backstory` on PATH only."""
    root = tmp_path_factory.mktemp("laid") / "plugin"
    install.lay_out(str(root))
    if request.param == "on PATH":
        (root / "interpreter").unlink()
    return root / "src" / "backstory" / "plugin"


def launched(
    plugin: Path, *args: str, env: dict[str, str], project: Path, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    command = ["/bin/sh", str(plugin / "bin" / "backstory.sh"), *args]
    return subprocess.run(
        command, env=env, cwd=project, input=stdin, capture_output=True, text=True, timeout=30, check=False
    )


def test_the_project_of_these_tests_is_run_by_a_python_that_does_not_look_out(
    project: Path, env: dict[str, str], witness: Path
) -> None:
    for places in PLACES:
        witness.unlink(missing_ok=True)
        subprocess.run(
            [sys.executable, "-P", "-c", ""], env={**env, "PYTHONPATH": places}, cwd=project, check=True
        )
        assert witness.exists() is bool(places)


def test_no_hook_runs_anything_of_the_project(
    plugin: Path, project: Path, env: dict[str, str], witness: Path, data: Path
) -> None:
    env |= {**EVERYWHERE, "PATH": f"::.:lib:{env['PATH']}:", "BACKSTORY_CLAUDE_MD_ON_STOP": "auto"}
    hook = plugin / "hooks" / "hook.sh"
    edited = {**bash(f"rm {project}/gone.py"), "cwd": str(project)}
    payloads = {
        "start": event("SessionStart", source="startup"),
        "prompt": prompt("mend it"),
        "": edited,
        "stop": event("Stop", last_assistant_message="done"),  # a sync, and a worker
        "end": event("SessionEnd", reason="other"),
    }
    for mode, payload in payloads.items():
        ran = run_hook(payload, *filter(None, [mode]), env=env, shell=SHELL, script=hook, cwd=project)
        assert (mode, ran.code, ran.stderr) == (mode, 0, b"")
    assert len(rows(data, "SELECT name FROM events")) == len(payloads)
    assert not witness.exists(), witness.read_text()


def test_the_launcher_runs_nothing_of_the_project(
    plugin: Path, project: Path, env: dict[str, str], witness: Path
) -> None:
    env |= {**EVERYWHERE, "PATH": f".:{env['PATH']}:"}
    ran = launched(plugin, "--version", env=env, project=project)
    assert (ran.stdout, ran.stderr) == (f"backstory {version('backstory')}\n", "")
    assert not witness.exists(), witness.read_text()


@pytest.mark.parametrize("plugin", ["noted"], indirect=True)
def test_the_servers_as_they_are_registered_run_nothing_of_the_project(
    plugin: Path, project: Path, env: dict[str, str], witness: Path
) -> None:
    root = str(plugin.parents[2])
    env |= {**EVERYWHERE, "PATH": f".:{env['PATH']}:"}
    client = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
    }
    hello = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client})
    registered = json.loads(REGISTERED.read_text())["mcpServers"]
    running = {}
    for name, server in registered.items():
        command = " ".join(map(shlex.quote, (server["command"], *server["args"])))
        command = f"echo {shlex.quote(hello)} | {command.replace('${CLAUDE_PLUGIN_ROOT}', root)}"
        running[name] = subprocess.Popen(
            [*SHELL, "-c", command], env=env, cwd=project, stdout=subprocess.PIPE, text=True
        )
    for name, process in running.items():
        said = json.loads(process.communicate(timeout=30)[0])["result"]
        assert said["serverInfo"] == {"name": name, "version": version("backstory")}
    assert not witness.exists(), witness.read_text()


@pytest.mark.parametrize("command", ["doctor", "install", "uninstall"])
def test_no_command_runs_a_program_of_the_project(
    command: str, run: Run, project: Path, witness: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "::.:lib:/usr/bin:/bin:")
    run(command)
    assert not witness.exists(), witness.read_text()
    assert os.environ["PATH"] == "/usr/bin:/bin"


def test_a_hook_without_a_path_captures_all_the_same_and_exits_0(
    project: Path, env: dict[str, str], data: Path, witness: Path
) -> None:
    for number, path in enumerate((None, "", ".", "lib:"), 1):
        given = {name: value for name, value in {**env, "PATH": path}.items() if value is not None}
        ran = run_hook(b"{}", env=given, shell=SHELL, cwd=project)
        assert (ran.code, ran.silent, len(spooled(data))) == (0, True, number)
    assert not witness.exists(), witness.read_text()


@pytest.mark.parametrize("variable", ["BACKSTORY_WORKER", "HOME"])
def test_a_hook_that_finds_no_cat_exits_0(variable: str, env: dict[str, str], tmp_path: Path) -> None:
    env |= {variable: "1" if variable == "BACKSTORY_WORKER" else "", "PATH": str(tmp_path)}
    ran = run_hook(b"", env=env, shell=SHELL)
    assert (ran.code, ran.silent) == (0, True)


@pytest.fixture
def user_site(home: Path) -> Path:
    """Where `pip install --user` puts packages."""
    place = home / ".local" / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    place.mkdir(parents=True)
    return place


def test_what_pip_installed_for_the_user_is_found(
    user_site: Path, project: Path, env: dict[str, str], tmp_path: Path, witness: Path
) -> None:
    (user_site / "backstory").mkdir()
    (user_site / "backstory" / "__init__.py").touch()
    (user_site / "backstory" / "__main__.py").write_text("print('of the user')\n")
    source = Path("src", "backstory", "plugin")
    shutil.copytree(REPOSITORY / source / "bin", tmp_path / source / "bin")
    (tmp_path / "interpreter").write_text(f"{PYTHON}\n")
    ran = launched(tmp_path / source, "--version", env={**env, **EVERYWHERE}, project=project)
    assert (ran.stdout, ran.stderr) == ("of the user\n", "")

    spawn = f"""
import sys
sys.path.insert(0, {SOURCE!r})
from backstory.surfaces import hook
code = "import sys, backstory_of_the_user; print(backstory_of_the_user.__file__, file=open(sys.argv[2], 'w'))"
hook._spawn(code, {{**hook.os.environ}}, {str(tmp_path / "seen")!r})
"""
    (user_site / "backstory_of_the_user.py").touch()
    subprocess.run([PYTHON, "-I", "-S", "-c", spawn], env={**env, **EVERYWHERE}, cwd=project, check=True)
    assert eventually(lambda: (tmp_path / "seen").is_file() and (tmp_path / "seen").read_text() != "")
    assert (tmp_path / "seen").read_text() == f"{user_site / 'backstory_of_the_user.py'}\n"
    assert not witness.exists(), witness.read_text()


def test_doctor_names_a_pythonpath_by_which_the_command_runs_code_of_a_project() -> None:
    check = doctor._python({"PYTHONPATH": "/x::/y"})
    assert (check.level, "'/x::/y'" in check.finding) == ("warn", True)
    assert check.advice.startswith("take the empty or relative entry out")
    assert {doctor._python({"PYTHONPATH": places}).level for places in ("", "/x:/y")} == {"ok"}
