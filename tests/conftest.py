"""Every test has a home of its own, and the suite fails if anything touches the real one."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings

from backstory.store.file import connection
from backstory.store.file.connection import connect
from backstory.surfaces import asking

REPOSITORY = Path(__file__).resolve().parent.parent
HOOK = REPOSITORY / "src" / "backstory" / "plugin" / "hooks" / "hook.sh"
REAL_HOME = os.path.realpath(os.path.expanduser("~"))
DAY = 24 * 3600  # seconds
OURS_IN_HOME = tuple(
    os.path.join(REAL_HOME, *place) for place in ((".local", "share", "backstory"), (".claude", "plugins"))
)
LEAKING = ("BACKSTORY_", "CLAUDE_", "ANTHROPIC_", "OPENAI_", "HF_", "XDG_")


def _guard(event: str, args: tuple[object, ...]) -> None:
    if event in ("open", "os.mkdir", "os.rename", "sqlite3.connect") and args:
        path = os.fsdecode(args[0]) if isinstance(args[0], str | bytes) else ""
        if path.startswith(OURS_IN_HOME):
            raise AssertionError(f"a test touched the real home: {event} {path}")


sys.addaudithook(_guard)


# What `make test-fast` leaves out is marked slow. Of what is not, none may start a server or a client: what
# the running test started is noted here.

_started: list[str] = []
HOOK_MODES = {"start", "prompt", "stop", "end", "drain"}  # in the background, where it may start a worker


def server_or_client(event: str, args: tuple[Any, ...]) -> str | None:
    """What of the kind an audit event says is being started."""
    if event == "socket.bind" and isinstance(args[1], tuple):
        return f"a server at {args[1]}"
    if event not in ("subprocess.Popen", "os.posix_spawn", "os.exec"):
        return None
    command = [os.fsdecode(part) for part in ([args[1]] if isinstance(args[1], str | bytes) else args[1])]
    names = [os.path.basename(part) for part in command]
    is_one = (
        names[0] == "claude"
        or ("mcp" in names and names[names.index("mcp") - 1] in ("backstory", "backstory.sh"))
        or ("hook.sh" in names and HOOK_MODES.intersection(names))
        or any("surfaces import worker" in part or "/bench/" in part for part in command)
    )
    return " ".join(command)[:200] if is_one else None


def _watch(event: str, args: tuple[Any, ...]) -> None:
    if found := server_or_client(event, args):
        _started.append(found)


sys.addaudithook(_watch)


MEMORY = Path("/dev/shm")
ROOM = 4 << 30  # bytes; a whole run takes less than half of it at any time


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """The files of tests lie in memory where there is room: a store waits for the disk at each commit."""
    if config.option.basetemp or not os.access(MEMORY, os.W_OK):
        return
    for left in MEMORY.glob("tests.*"):  # by a run that was killed
        if left.stat().st_mtime < time.time() - DAY:
            shutil.rmtree(left, ignore_errors=True)
    unused = re.search(r"MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text())
    if shutil.disk_usage(MEMORY).free > ROOM and unused and int(unused[1]) * 1024 > ROOM:
        folder = tempfile.mkdtemp(prefix="tests.", dir=MEMORY)
        config.option.basetemp = os.path.join(folder, "t")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("client") or "end_to_end" in item.path.parts:
            item.add_marker("slow")
    items.sort(key=lambda item: item.path.name != "test_install.py")  # takes longest, so nobody waits for it


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    _started.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    yield
    if _started and not item.get_closest_marker("slow"):
        pytest.fail(f"this starts a server or a client, so mark it with @pytest.mark.slow: {_started[0]}")


# Hypothesis measures examples by the clock, and a busy machine makes any of them slow. What a fixture makes
# serves all examples of a property.
UNMINDED = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile("any machine", deadline=None, suppress_health_check=UNMINDED)
settings.load_profile("any machine")

# Compiled files stay where the environment says otherwise: tests start Python hundreds of times.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


@pytest.fixture(scope="session", autouse=True)
def real_home_is_left_alone() -> Iterator[None]:
    """Child processes are not seen by the audit hook; what they leave behind is. (Where backstory or Claude
    Code is in use, as on a developer's machine, these places are there already and tell nothing.)"""
    absent = [place for place in OURS_IN_HOME if not os.path.exists(place)]
    yield
    made = [place for place in absent if os.path.exists(place)]
    assert not made, "a child process of a test wrote into the real home"


@pytest.fixture(scope="session", autouse=True)
def real_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The hooks' `python3` is the tests' own interpreter: a version manager's shim is ten times as slow."""
    folder = tmp_path_factory.mktemp("python")
    (folder / "python3").symlink_to(os.path.realpath(sys.executable))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        yield


@pytest.fixture(scope="session", autouse=True)
def temporary_folders_lie_in_memory_too(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Those that examples of a property, benchmarks and the demo make for themselves: a store there is quick,
    and one of this process can be a copy."""
    folder = tmp_path_factory.mktemp("temporary")
    with pytest.MonkeyPatch.context() as patch:
        if folder.is_relative_to(MEMORY):
            patch.setattr(tempfile, "tempdir", str(folder))
            patch.setenv("TMPDIR", str(folder))
        yield


_open_anew = connection._open


@pytest.fixture(scope="session", autouse=True)
def new_stores_are_copies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A new store is a copy of one that was migrated: running all migrations takes ten times as long, and
    most tests begin with one. Child processes run them, and tests that use `store_made_anew`."""
    template = tmp_path_factory.mktemp("store") / "backstory.db"
    connect(str(template)).close()

    def opened(path: str, busy: float) -> sqlite3.Connection:
        if not any(map(os.path.exists, (path, f"{path}-wal", f"{path}-journal"))):
            handle, copy = tempfile.mkstemp(dir=template.parent)
            os.close(handle)
            shutil.copyfile(template, copy)
            with suppress(OSError):  # somebody was first, or there can be no such folder: as without a copy
                os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
                os.link(copy, path)
            os.unlink(copy)
        return _open_anew(path, busy)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "_open", opened)
        yield


@pytest.fixture
def store_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new store is made by its migrations."""
    monkeypatch.setattr(connection, "_open", _open_anew)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A fresh HOME for this process and its children; the data folder is the default one below it."""
    place = tmp_path / "home"
    place.mkdir()
    for name in [name for name in os.environ if name.startswith(LEAKING)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.setenv("BACKSTORY_SYNTHESIZER", "local")  # no model, unless a test brings one
    monkeypatch.setenv(
        "BACKSTORY_WORKER_IDLE_SECONDS", "0"
    )  # a worker that a hook starts does not outlive it
    yield place
    for thread in threading.enumerate():
        if thread.name == "vectors":  # recall/index.py; it would write into the next test's home
            thread.join(10)
    # Where tools were called in this process.
    if context := sys.modules.get("backstory.surfaces.mcp.tool_context"):
        for _, kept in context._kept_open.values():
            with suppress(sqlite3.ProgrammingError):  # a thread opened it, and is gone
                kept.close()
        context._kept_open.clear()
        context._indexes.clear()  # with another store it would look for vectors without end
    # The sockets of servers that a test killed: paths in a test's folder are too long for them.
    left = asking.short_folder(str(place / ".local" / "share" / "backstory"))
    shutil.rmtree(left, ignore_errors=True)


@pytest.fixture
def data(home: Path) -> Path:
    """The data folder that belongs to `home`."""
    return home / ".local" / "share" / "backstory"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A real store in a temp folder."""
    store = connect(str(tmp_path / "backstory.db"))
    yield store
    store.close()


@pytest.fixture
def project(tmp_path: Path) -> str:
    (tmp_path / "api").mkdir()
    return str(tmp_path / "api")


# One command after the other, in this process: starting one takes longer than what it does.


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def id(self) -> str:
        """The id in what was printed."""
        found = re.search(r"\b(?:mem|doc)_[0-9a-z]{12}\b", self.out)
        assert found
        return found[0]


Run = Callable[..., Ran]


@pytest.fixture
def run(project: str | Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """`run("search", "walrus")` in the project's folder."""
    from backstory.surfaces.cli.main import main

    monkeypatch.chdir(project)

    def ran(*args: str, stdin: str | None = None) -> Ran:
        monkeypatch.setattr(sys, "argv", ["backstory", *args])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin or ""))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return Ran(int(ended.value.code or 0), said.out, said.err)

    return ran
