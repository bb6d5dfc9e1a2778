"""hook.sh: whatever comes in on stdin lies in the spool afterwards, and the agent never notices."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shlex
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from backstory import paths
from backstory.clients import canonical, claude_code
from backstory.surfaces.cli import doctor, install
from tests.conftest import HOOK, REPOSITORY
from tests.helpers.chaos import (
    MINUTE,
    PYTHON,
    SOURCE,
    a_worker,
    bash,
    contents,
    drain,
    event,
    eventually,
    failures,
    hook_program,
    log_text,
    prompt,
    put,
    rows,
    run_hook,
    spooled,
    tool_use,
    turns_of,
)

pytestmark = pytest.mark.slow

SHELLS = {
    "sh": ("sh",),
    "dash": ("dash",),
    "bash --posix": ("bash", "--posix"),
    "busybox sh": ("busybox", "sh"),
}
HOOKS_JSON = REPOSITORY / "src" / "backstory" / "plugin" / "hooks" / "hooks.json"


def milliseconds() -> int:
    return int(time.time() * 1000)


@pytest.fixture(params=[name for name, command in SHELLS.items() if shutil.which(command[0])])
def shell(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Every shell that this machine has; `sh` is always one."""
    return SHELLS[request.param]


def modes(data: Path) -> dict[str, int]:
    found = [data, *sorted(data.rglob("*"))]
    return {str(path.relative_to(data.parent)): stat.S_IMODE(path.stat().st_mode) for path in found}


def everything_below(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


# --- payloads -----------------------------------------------------------------------------------------------

PAYLOADS = {
    "nothing at all": b"",
    "one byte": b"x",
    "a newline": b"\n",
    "no newline at the end": b'{"a": 1}',
    "newlines and spaces around": b"\n\n  {}  \n\n\n",
    "every byte there is": bytes(range(256)) * 5,
    "only NULs": b"\0" * 5000,
    "backslashes and shell": b"\\n %s $HOME `id` $(id) \"'\\",
    "10 MB": random.Random(1).randbytes(10_000_000),  # noqa: S311 - only has to be irregular
}


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS.keys())
def test_a_payload_arrives_byte_for_byte_readable_by_its_owner_alone_and_without_a_sound(
    payload: bytes, data: Path
) -> None:
    ran = run_hook(payload)

    assert (ran.code, ran.stdout, ran.stderr) == (0, b"", b"")
    (name,) = spooled(data)
    assert (data / "spool" / "new" / name).read_bytes() == payload
    assert modes(data) == {
        "backstory": 0o700,
        "backstory/spool": 0o700,
        "backstory/spool/tmp": 0o700,
        "backstory/spool/new": 0o700,
        "backstory/spool/failed": 0o700,
        f"backstory/spool/new/{name}": 0o600,
    }


def test_200_hooks_at_once_lose_nothing_and_mix_nothing(tmp_path: Path, data: Path) -> None:
    generator = random.Random(2)  # noqa: S311 - sizes, not secrets
    hashes = []
    hooks = []
    for number in range(200):
        payload = generator.randbytes(generator.choice([0, 1, 100, 5_000, 70_000, 300_000]))
        source = tmp_path / f"payload-{number}"
        source.write_bytes(payload)
        hashes.append(hashlib.sha256(payload).hexdigest())
    for number in range(200):
        with open(tmp_path / f"payload-{number}", "rb") as stdin:
            hooks.append(
                subprocess.Popen(["sh", HOOK], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            )
    for hook in hooks:
        assert hook.communicate(timeout=60)[0] == b""
        assert hook.returncode == 0

    arrived = [(data / "spool" / "new" / name).read_bytes() for name in spooled(data)]
    assert sorted(hashlib.sha256(payload).hexdigest() for payload in arrived) == sorted(hashes)
    assert spooled(data, "tmp") == []


def test_a_payload_that_comes_in_pieces_is_seen_only_when_it_is_whole(data: Path) -> None:
    with subprocess.Popen(["sh", HOOK], stdin=subprocess.PIPE) as hook:
        assert hook.stdin is not None
        hook.stdin.write(b"first half, ")
        hook.stdin.flush()
        assert eventually(lambda: len(spooled(data, "tmp")) == 1)
        assert spooled(data) == []
        hook.stdin.write(b"second half")
    (name,) = spooled(data)
    assert (data / "spool" / "new" / name).read_bytes() == b"first half, second half"


# --- the data folder ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "odd", ["with two  spaces", 'it\'s "quoted"', "Grüße-日本語", "$HOME;`id`*?[a]", "-n"]
)
def test_a_home_with_odd_signs_is_a_home(odd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / odd
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))

    assert run_hook(b"hello").silent
    assert len(spooled(home / ".local" / "share" / "backstory")) == 1


# {} is the test's own folder.
ENVIRONMENTS: list[dict[str, str]] = [
    {"HOME": "{}/home"},
    {"HOME": "{}/home/"},
    {"HOME": "{}/home", "XDG_DATA_HOME": "{}/xdg"},
    {"HOME": "{}/home", "XDG_DATA_HOME": ""},
    {"HOME": "{}/home", "XDG_DATA_HOME": "{}/xdg", "BACKSTORY_HOME": "{}/ours"},
    {"HOME": "{}/home", "BACKSTORY_HOME": "{}/ours with spaces"},
    {"HOME": "{}/home", "BACKSTORY_HOME": ""},
    {"HOME": "{}/home", "BACKSTORY_HOME": "relative/to here"},
    {"HOME": "{}/home", "BACKSTORY_HOME": "~/ours"},
    {"HOME": "{}/home", "XDG_DATA_HOME": "relative"},
    {"HOME": "relative"},
    {"HOME": "{}/home", "CLAUDE_PLUGIN_DATA": "{}/plugin"},
    {"HOME": "", "CLAUDE_PLUGIN_DATA": "{}/plugin"},
    {"CLAUDE_PLUGIN_DATA": "{}/plugin"},
    {"XDG_DATA_HOME": "{}/xdg", "CLAUDE_PLUGIN_DATA": "{}/plugin"},
    {"BACKSTORY_HOME": "{}/ours"},
    {"CLAUDE_PLUGIN_DATA": ""},
    {"HOME": ""},
    {},
]


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda table: ",".join(table) or "nothing set")
def test_sh_and_python_find_the_same_data_folder(
    environment: dict[str, str], tmp_path: Path, shell: tuple[str, ...]
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    env = {name: value.format(here) for name, value in environment.items()}

    ran = run_hook(b"payload", env={"PATH": os.environ["PATH"], **env}, shell=shell, cwd=here)

    assert ran.code == 0
    assert ran.silent
    files = [path for path in everything_below(here) if path.is_file()]
    expected = paths.data_folder(env) or env.get(claude_code.PLUGIN_DATA)
    if not expected:
        assert everything_below(here) == []
    else:
        (file,) = files
        assert file.parent == here / expected / "spool" / "new"
        assert file.read_bytes() == b"payload"


def test_without_a_home_python_is_told_the_folder_that_sh_chose(tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if name not in ("HOME", "BACKSTORY_HOME")}
    env[claude_code.PLUGIN_DATA] = str(tmp_path / "plugin")

    run_hook(event("SessionEnd", reason="other"), "end", env=env, cwd=tmp_path)

    assert rows(tmp_path / "plugin", "SELECT name FROM events") == [{"name": "SessionEnd"}]


def test_a_folder_of_the_spool_that_somebody_removed_is_made_again(data: Path) -> None:
    run_hook(b"before")
    for part in ("tmp", "failed"):
        (data / "spool" / part).rmdir()

    assert run_hook(b"after").silent
    assert len(spooled(data)) == 2


# --- when the disk does not cooperate -----------------------------------------------------------------------


def spool_check(data: Path) -> doctor.Check:
    return doctor._spool(str(data))


def test_where_a_file_may_not_grow_the_hook_ends_well_and_the_half_payload_is_reported_later(
    data: Path, shell: tuple[str, ...]
) -> None:
    whole = json.dumps(bash("make", stdout="x" * 200_000)).encode()
    assert run_hook(b"warm-up: the folders exist").code == 0
    (data / "spool" / "new" / spooled(data)[0]).unlink()

    limited = ("sh", "-c", 'ulimit -f 64; exec "$@"', "limited", *shell)
    ran = run_hook(whole, shell=limited)

    assert ran.code == 0
    assert ran.silent
    assert spooled(data) == []
    (name,) = spooled(data, "tmp")
    half = (data / "spool" / "tmp" / name).read_bytes()
    assert 0 < len(half) < len(whole)

    assert spool_check(data).level == "ok"
    drain(data, now=milliseconds() + 2 * MINUTE)

    assert failures(data)[name].startswith("not JSON")
    kept = (data / "spool" / "failed" / name).read_bytes()
    assert kept == half[: half.rindex(b'"')], "without the string that is cut off"
    assert spool_check(data).level == "warn"
    assert "not JSON" in spool_check(data).finding


ON_A_FULL_DISK = """
import json, os, subprocess, sys, time
sys.path[:0] = sys.argv[1:3]
from pathlib import Path
os.umask(0o077)
disk = Path(sys.argv[3])
said = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "none", disk], capture_output=True)
if said.returncode:
    print(json.dumps({"refused": said.stderr.decode()}))
    raise SystemExit
from tests.helpers.chaos import bash, contents, drain, failures, put, run_hook, spooled
from backstory.surfaces.cli import doctor
data = disk / "data"
os.environ["BACKSTORY_HOME"] = str(data)
now = int(time.time() * 1000)
facts = {}

run_hook(bash("echo before"))
drain(data, now)
run_hook(bash("echo waiting"))
with open(disk / "ballast", "wb", buffering=0) as ballast:  # leave room for a part of the payload only
    try:
        while True:
            ballast.write(bytes(4096))
    except OSError:
        pass
    os.ftruncate(ballast.fileno(), ballast.tell() - 64 * 1024)
ran = run_hook(bash("make", stdout="x" * 200_000))
facts["hook"] = [ran.code, ran.silent]
facts["left in tmp"] = [(disk / "data/spool/tmp" / name).stat().st_size for name in spooled(data, "tmp")]
ran = run_hook(bash("echo not a byte"))
facts["hook without a byte of room"] = [ran.code, ran.silent]
ran = run_hook(bash("echo not even a name"), "end")
facts["drain"] = [ran.code, ran.silent]
facts["waiting"] = len(spooled(data))

os.unlink(disk / "ballast")
drain(data, now + 120_000)
facts["stored in the end"] = contents(data)
facts["failed"] = sorted(failures(data).values())
facts["still waiting"] = len(spooled(data))
facts["doctor"] = doctor._spool(str(data)).level
print(json.dumps(facts))
"""


def test_a_payload_that_cannot_be_written_is_read_to_its_end_all_the_same(data: Path) -> None:
    """A client that meets a closed pipe might call that an error of the hook."""
    (data / "spool" / "new").mkdir(parents=True)
    (data / "spool" / "tmp").symlink_to("/proc")  # a folder in which nobody can write
    hook = subprocess.Popen(
        ["sh", HOOK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert hook.stdin is not None
    hook.stdin.write(b"x" * 5_000_000)  # raises BrokenPipeError where nobody reads
    assert hook.communicate(timeout=30)[0] == b""
    assert hook.returncode == 0


def test_on_a_full_disk_hooks_end_well_and_what_they_could_not_write_is_reported_later(
    tmp_path: Path,
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed here, and only root mounts without it")
    ran = subprocess.run(
        [
            "unshare",
            "-rm",
            sys.executable,
            "-c",
            ON_A_FULL_DISK,
            SOURCE,
            str(REPOSITORY),
            str(disk),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if ran.stderr.startswith("unshare:"):
        pytest.skip(f"the kernel gives us no mount namespace: {ran.stderr.strip()}")
    assert ran.returncode == 0, ran.stderr
    facts = json.loads(ran.stdout)
    if "refused" in facts:
        pytest.skip(f"the kernel lets us mount no tmpfs: {facts['refused'].strip()}")

    assert facts["hook"] == [0, True]
    (size,) = facts["left in tmp"]
    assert 0 < size < 200_000
    assert facts["hook without a byte of room"] == [0, True]
    assert facts["drain"] == [0, True]
    assert facts["waiting"] >= 1, "what could not be stored stays in the spool"
    assert [text.splitlines()[1] for text in facts["stored in the end"]] == [
        "Command: echo before",
        "Command: echo waiting",
    ]
    assert any(reason.startswith("not JSON") for reason in facts["failed"])
    assert facts["still waiting"] == 0
    assert facts["doctor"] == "warn"


@pytest.mark.parametrize("args", [(), ("drain",), ("prompt",), ("start",), ("end",)])
@pytest.mark.parametrize("in_the_way", ["backstory", "backstory/spool", "backstory/spool/new"])
def test_a_file_where_a_folder_should_be_disturbs_nobody(
    in_the_way: str, args: tuple[str, ...], data: Path
) -> None:
    file = data.parent / in_the_way
    file.parent.mkdir(parents=True)
    file.write_text("in the way")

    ran = run_hook(prompt("hello"), *args)

    assert (ran.code, ran.stderr, ran.context) == (0, b"", "")
    assert ("its data folder cannot be written" in ran.line) == (args == ("start",))
    assert file.read_text() == "in the way"


def test_a_data_folder_that_may_not_be_written_disturbs_nobody(data: Path) -> None:
    data.mkdir(parents=True)
    data.chmod(0o500)
    bound: tuple[str, ...] = ("sh",)
    if os.geteuid() == 0:  # permissions do not bind root, unless it gives up the right to ignore them
        if shutil.which("setpriv") is None:
            pytest.skip("running as root, and setpriv is not installed")
        bound = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "sh")
    ran = run_hook(b"hello", shell=bound)
    data.chmod(0o700)

    assert ran.code == 0
    assert ran.silent
    assert everything_below(data) == []


# --- our own worker's session -------------------------------------------------------------------------------


@pytest.mark.parametrize("args", [(), ("drain",), ("prompt",), ("start",), ("end",)])
def test_in_the_worker_s_own_session_every_hook_is_inert(
    args: tuple[str, ...], home: Path, shell: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_WORKER", "1")
    ran = run_hook(prompt("do not remember me"), *args, shell=shell)

    assert ran.code == 0
    assert ran.silent
    assert everything_below(home) == []


def test_only_a_1_makes_hooks_inert(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKSTORY_WORKER", "0")
    run_hook(b"hello")
    assert len(spooled(data)) == 1


# --- when Python starts -------------------------------------------------------------------------------------


class Plugin:
    """The plugin as `backstory install` lays it out, with interpreters that only note they were called."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = folder / "plugin"
        install.lay_out(str(self.root))
        self.hook = self.root / "src" / "backstory" / "plugin" / "hooks" / "hook.sh"
        self.started = folder / "started"
        self.ended = folder / "ended"
        self.may_end = folder / "may-end"
        os.mkfifo(self.may_end)
        on_path = folder / "bin"
        on_path.mkdir()
        for place in (folder / "noted", on_path / "python3"):
            place.write_text(
                f"#!/bin/sh\necho {place.name} >>'{self.started}'\nread -r go <'{self.may_end}'\n"
                f"echo {place.name} >>'{self.ended}'\n"
            )
            place.chmod(0o700)
        (self.root / "interpreter").write_text(f"{folder / 'noted'}\n")
        monkeypatch.setenv("PATH", f"{on_path}:{os.environ['PATH']}")

    def run(self, *args: str) -> subprocess.Popen[bytes]:
        hook = subprocess.Popen(["sh", self.hook, *args], stdin=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert hook.stdin is not None
        hook.stdin.write(b"payload")
        hook.stdin.close()
        return hook

    def let_it_end(self) -> None:
        self.may_end.write_text("go\n")

    def release(self) -> None:
        """Nothing stays behind, however a test ended: whoever still reads the pipe may go."""
        try:
            pipe = os.open(self.may_end, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return  # nobody does
        os.write(pipe, b"go\n" * 10)
        os.close(pipe)


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plugin]:
    plugin = Plugin(tmp_path, monkeypatch)
    yield plugin
    plugin.release()


def test_a_tool_use_starts_no_python(plugin: Plugin, data: Path) -> None:
    assert run_hook(b"payload", script=plugin.hook).code == 0

    assert len(spooled(data)) == 1
    assert not plugin.started.exists()


def test_a_prompt_is_not_kept_waiting_by_the_drain(plugin: Plugin) -> None:
    hook = plugin.run("drain")

    assert hook.wait(timeout=10) == 0
    assert eventually(plugin.started.exists)
    assert not plugin.ended.exists()
    plugin.let_it_end()
    assert eventually(plugin.ended.exists)


def test_the_end_of_a_session_waits_for_the_drain(plugin: Plugin) -> None:
    hook = plugin.run("end")

    assert eventually(plugin.started.exists)
    with pytest.raises(subprocess.TimeoutExpired):
        hook.wait(timeout=0.3)
    plugin.let_it_end()
    assert hook.wait(timeout=10) == 0
    assert plugin.ended.exists()


def test_the_interpreter_that_install_noted_comes_before_the_one_on_path(plugin: Plugin) -> None:
    plugin.run("drain").wait(timeout=10)
    assert eventually(plugin.started.exists)
    plugin.let_it_end()
    assert eventually(plugin.ended.exists)
    assert plugin.started.read_text() == "noted\n"

    (plugin.root / "interpreter").unlink()
    plugin.run("drain").wait(timeout=10)
    assert eventually(lambda: plugin.started.read_text() == "noted\npython3\n")
    plugin.let_it_end()
    assert eventually(lambda: plugin.ended.read_text() == "noted\npython3\n")


def test_without_any_python_events_wait_in_the_spool(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("sh", "cat", "mv", "mkdir"):
        (tools / tool).symlink_to(str(shutil.which(tool)))
    monkeypatch.setenv("PATH", str(tools))

    for args in ((), ("drain",), ("prompt",), ("stop",), ("start",), ("end",)):
        ran = run_hook(prompt("hello"), *args)
        assert ran.code == 0
        assert ran.silent
    assert len(spooled(data)) == 6


@pytest.mark.parametrize("args", [("drain",), ("prompt",), ("stop",), ("start",), ("end",)])
def test_every_hook_that_drains_stores_what_was_captured(
    args: tuple[str, ...], data: Path, shell: tuple[str, ...]
) -> None:
    run_hook(bash("echo captured before"), shell=shell)
    assert not (data / "backstory.db").exists()

    # One of the shells is enough to see what the worker does to the store that the hook made.
    with nullcontext() if shell == SHELLS["sh"] else a_worker(data):
        ran = run_hook(prompt("what now?"), *args, shell=shell)

    assert (ran.code, ran.stderr, ran.context) == (0, b"", "")
    assert ran.line == ("backstory: nothing remembered here yet" if args == ("start",) else "")
    assert spooled(data) == []
    assert rows(data, "SELECT user_prompt FROM sessions") == [{"user_prompt": "what now?"}]
    assert contents(data) == ["Tool: Bash\nCommand: echo captured before"]
    assert [turn.asked for turn in turns_of(data)] == ["what now?"]
    assert log_text(data) == ""


# --- what the hook's Python loads ---------------------------------------------------------------------------

HEAVY = (
    "asyncio click contextlib dataclasses hashlib importlib.metadata inspect logging mcp numpy pathlib rich "
    "shutil subprocess tempfile threading tomllib traceback typing unittest urllib uuid"
).split()


def modules_after_a_drain(data: Path) -> list[str]:
    for payload in (
        event("SessionStart", source="startup"),
        prompt("please fix the login"),
        bash("pytest -q", stdout="1 failed: password = hunter22secret"),
        tool_use("Edit", {"file_path": "/a.py", "old_string": "a", "new_string": "b"}, {"filePath": "/a.py"}),
        tool_use("Glob", {"pattern": "*.py"}, {"filenames": ["src/a.py"], "numFiles": 1}),
        event("Stop", stop_hook_active=False),
    ):
        put(data, payload)
    ran = subprocess.run(
        [PYTHON, "-I", "-S", "-c", f"{hook_program()}; print('\\n'.join(sys.modules))", SOURCE, "drain"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    assert spooled(data) == []
    assert len(rows(data, "SELECT 1 FROM memories")) == 4
    return ran.stdout.split()


def test_the_python_of_a_hook_loads_the_standard_library_only_and_little_of_it(data: Path) -> None:
    loaded = modules_after_a_drain(data)

    assert "backstory.intake.drain" in loaded
    assert [name for name in HEAVY if name in loaded] == []
    foreign = {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names
    assert foreign == {"backstory", "__main__"} - sys.stdlib_module_names


# --- hooks.json ---------------------------------------------------------------------------------------------


def registered() -> dict[str, list[dict[str, Any]]]:
    hooks: dict[str, list[dict[str, Any]]] = json.loads(HOOKS_JSON.read_text())["hooks"]
    return hooks


def test_every_event_is_registered_and_tool_uses_exactly_once() -> None:
    hooks = registered()
    assert set(hooks) == {
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "PreCompact",
        "PostCompact",
        "Stop",
        "SubagentStop",
        "SessionEnd",
    }
    (entry,) = hooks["PostToolUse"]
    assert entry["matcher"] == "*"
    assert len(entry["hooks"]) == 1


def test_every_command_names_a_script_that_is_there_and_what_it_understands() -> None:
    arguments: dict[str, list[list[str]]] = {}
    for name, entries in registered().items():
        for entry in entries:
            for hook in entry["hooks"]:
                assert hook["type"] == "command"
                assert 0 < hook["timeout"] <= 10
                command = hook["command"].replace("${CLAUDE_PLUGIN_ROOT}", str(REPOSITORY))
                shell, script, *args = shlex.split(command)
                assert shell == "/bin/sh"
                assert Path(script).is_file(), script
                arguments.setdefault(name, []).append(args)
    assert arguments == {
        "SessionStart": [["start"]],
        "UserPromptSubmit": [["prompt"]],
        "PreToolUse": [["file"], ["allow"]],
        "PostToolUse": [[]],
        "PostToolUseFailure": [["failure"]],
        "PreCompact": [["drain"]],
        "PostCompact": [["drain"]],
        "Stop": [["stop"]],
        "SubagentStop": [[]],
        "SessionEnd": [["end"]],
    }


def test_before_tools_are_used_those_are_named_that_read_and_edit_files_or_are_ours() -> None:
    files, ours = (re.compile(entry["matcher"]) for entry in registered()["PreToolUse"])
    by_action: dict[str, set[str]] = {}
    for tool, (action, _) in claude_code.TOOLS.items():
        by_action.setdefault(action, set()).add(tool)
    editing = by_action[canonical.EDIT] | by_action[canonical.WRITE] | {"Read"}
    assert {tool for tool in claude_code.TOOLS if files.fullmatch(tool)} == editing
    assert all(ours.fullmatch(f"{prefix}memory_add") for prefix in claude_code.OUR_SERVERS)
    assert not any(ours.fullmatch(tool) for tool in claude_code.TOOLS)


def test_a_command_works_as_registered_from_a_plugin_root_with_spaces(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "a plugin's root"
    install.lay_out(str(root))
    monkeypatch.setenv("CLAUDE_PLUGIN_ROOT", str(root))
    for entries in registered().values():
        command = entries[0]["hooks"][0]["command"]
        ran = subprocess.run(["sh", "-c", command], input=b"{}", capture_output=True, check=False, timeout=30)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
    captured = len(registered()) - 1  # of what is about to happen nothing is kept
    assert eventually(lambda: not spooled(data) and len(failures(data)) == captured)


# --- the benchmark ------------------------------------------------------------------------------------------


def measured(*options: str) -> dict[str, Any]:
    ran = subprocess.run(
        [sys.executable, REPOSITORY / "bench" / "hook_latency.py", "--json", "-", *options],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode in (0, 1), ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_the_benchmark_measures_every_hook_and_capture_is_within_its_budget() -> None:
    for samples in ("25", "50"):  # once more where it must: other tests run beside this one
        budget = measured("--samples", samples, "--memories", "0", "--cases", "capture")["budgets"][0]
        if budget["measured"] <= budget["limit"]:
            break
    assert budget["name"].startswith("capture")
    assert budget["measured"] <= budget["limit"] == 3

    report = measured("--samples", "1", "--memories", "500")
    cases = {(row["case"], row["payload_bytes"]) for row in report["rows"]}
    for case in ("empty shell", "capture", "prompt", "inert", "python -I -S"):
        assert (case, 2_000) in cases
        assert (case, 1_000_000) in cases
    for case in ("prompt: recalled", "file: unknown", "file: known", "failure: unknown", "permission"):
        assert (case, 2_000) in cases
    for row in report["rows"]:
        assert 0 < row["p50_ms"] <= row["p95_ms"]
        assert row["ratio"] > 0
