"""Every test has a home of its own, and the suite fails if anything touches the real one."""

from __future__ import annotations

import io
import json
import os
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from backstory.store.file.connection import connect

REPOSITORY = Path(__file__).resolve().parent.parent
HOOK = REPOSITORY / "src" / "backstory" / "plugin" / "hooks" / "hook.sh"
REAL_HOME = os.path.realpath(os.path.expanduser("~"))
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


@pytest.fixture(scope="session", autouse=True)
def real_home_is_left_alone() -> Iterator[None]:
    """Child processes are not seen by the audit hook; what they leave behind is. (Where backstory or Claude
    Code is in use, as on a developer's machine, these places are there already and tell nothing.)"""
    absent = [place for place in OURS_IN_HOME if not os.path.exists(place)]
    yield
    made = [place for place in absent if os.path.exists(place)]
    assert not made, "a child process of a test wrote into the real home"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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
    return place


@pytest.fixture
def data(home: Path) -> Path:
    """The data folder that belongs to `home`."""
    return home / ".local" / "share" / "backstory"


@pytest.fixture
def real_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hook's `python3` is the tests' own interpreter: a version manager's shim takes its time."""
    folder = tmp_path / "python"
    folder.mkdir()
    (folder / "python3").symlink_to(os.path.realpath(sys.executable))
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


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
