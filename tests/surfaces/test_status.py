"""`backstory status` and `backstory statusline`: how it is, in a few lines and in one."""

from __future__ import annotations

import io
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from backstory.model import Spent
from backstory.recall import brief
from backstory.store import projects, queue, spend, tellings
from backstory.store.file.connection import connect, transaction
from backstory.surfaces import statusline
from tests.conftest import REPOSITORY, Run
from tests.helpers.chaos import bash
from tests.helpers.turn_payloads import edit, happened

Line = Callable[..., str]
DAY_MS = 24 * 3_600_000


@pytest.fixture
def line(project: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Line:
    """What the status line shows, for what Claude Code tells it."""
    monkeypatch.chdir(project)

    def printed(given: object = None, raw: str | None = None) -> str:
        payload = {"session_id": "now", "cwd": "/", "workspace": {"project_dir": project}}
        text = raw if raw is not None else json.dumps(payload if given is None else given)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        capsys.readouterr()
        statusline.main()
        said = capsys.readouterr()
        assert said.err == ""
        return said.out

    return printed


def register(at: Path, *, on: bool = True) -> None:
    """What Claude Code's settings say of a plugin, of the user or of a project."""
    (at / ".claude").mkdir(exist_ok=True)
    (at / ".claude" / "settings.json").write_text(json.dumps({"enabledPlugins": {"backstory@backstory": on}}))


@pytest.fixture
def worked(data: Path, project: str, run: Run, home: Path) -> None:
    """A session that ended with a question."""
    register(home)
    Path(project, ".git").mkdir()
    Path(project, ".git", "HEAD").write_text("ref: refs/heads/main\n")
    mended, at = edit(f"{project}/door.py"), int(time.time() * 1000) - 60_000
    happened(data, project, "mend the door", mended, answer="Mended. Shall I paint it?", at=at)
    assert run("sessions").code == 0


def tell(data: Path, project: str, session: str, tokens: int) -> None:
    from backstory import paths

    with closing(connect(str(data / "backstory.db"))) as db, transaction(db):
        here = projects.id_at(db, paths.place(project))
        assert here
        tellings.note(
            db, session, here, tellings.START, "a brief", [], tokens=tokens, at=int(time.time() * 1000)
        )


def test_the_line_tells_sessions_open_things_and_what_was_told(
    data: Path, project: str, worked: None, line: Line
) -> None:
    assert line() == "backstory: 1 session, 1 open\n"
    tell(data, project, "now", 455)
    tell(data, project, "another", 1_000)
    assert line() == "backstory: 1 session, 1 open, 455 tokens told\n"
    assert line(raw="no JSON").startswith("backstory: 1 session")


def test_the_session_that_asks_is_not_yet_remembered(worked: None, line: Line) -> None:
    assert line({"session_id": "session-1"}) == "backstory: nothing remembered here yet\n"


def test_everything_that_counts_what_is_open_says_the_same(
    data: Path, project: str, worked: None, line: Line, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last session on the branch counts; what an older one left open was seen by it."""
    at = int(time.time() * 1000) - 30_000
    failing = [edit(f"{project}/door.py"), bash("pytest tests", "E   ValueError: no\n1 failed")]
    happened(data, project, "paint it", *failing, answer="Shall I go on?", session="later", at=at)
    run("sessions")
    with closing(connect(str(data / "backstory.db"))) as db:
        told = brief.brief(db, project, "now", "startup", 1_500)
        short = brief.brief(db, project, "now", "startup", 100)
    assert told.open == short.open == len(told.text.partition("\nOpen:\n")[2].splitlines()) - 1 > 1
    assert short.text.count("\n- ") < told.text.count("\n- ")
    assert line() == f"backstory: 2 sessions, {told.open} open\n"
    assert run("status", "--json").json["open"] == told.open
    assert f"open  {told.open} things left" in run("status").out
    assert "things left by the last session; `backstory open` lists them\n" in run("status").out
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "now")
    assert len(run("slash", "open").out.splitlines()) == told.open + 2
    assert len(run("open").out.splitlines()) == len(run("open", "--json").json) == told.open


def test_open_lists_in_a_terminal_what_the_last_session_left(
    data: Path, project: str, worked: None, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (left,) = run("open", "--json").json
    assert "the assistant asked: Mended. Shall I paint it?" in left["text"]
    assert run("open").out == f"{left['text']}\n"
    assert run("show", left["memory_id"]).code == 0
    assert "1 thing left by the last session; `backstory open` lists it\n" in run("status").out
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "session-1")  # what it left itself is not for it
    ran = run("open")
    assert ran.code == 1 and "Nothing is known to be open" in ran.err and not ran.out
    assert run("open", "--json").json == []


def test_status_tells_that_the_model_failed(
    data: Path, worked: None, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_SYNTHESIZER", "auto")
    assert "the model failed" not in run("status").out
    with closing(connect(str(data / "backstory.db"))) as db, transaction(db):
        changed = db.execute(
            "UPDATE observation_queue SET trouble = 'not logged in', processed_by = 'local',"
            " processed_at_epoch = ?",
            (int(time.time() * 1000),),
        ).rowcount
    assert changed
    (said,) = [one for one in run("status", "--json").json["to_do"] if "the model failed" in one]
    assert "observed by local" in said and "not logged in" in said


@pytest.fixture
def queued(data: Path, worked: None) -> Iterator[sqlite3.Connection]:
    """A session with four items in the queue, two days old."""
    with closing(connect(str(data / "backstory.db"))) as db:
        with transaction(db):
            db.execute("DELETE FROM observation_queue")
            for _ in range(4):
                queue.put(db, "session-1", "Bash", "{}", "{}", now() - 2 * DAY_MS, None)
        yield db


def now() -> int:
    return int(time.time() * 1000)


def items(db: sqlite3.Connection) -> list[int]:
    return [row["id"] for row in db.execute("SELECT id FROM observation_queue ORDER BY id")]


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A Claude Code that a worker could ask."""
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("BACKSTORY_SYNTHESIZER", "claude")
    return str(program)


def test_status_says_what_to_do_about_memories_that_are_late(queued: sqlite3.Connection, run: Run) -> None:
    assert "4 items wait since" in run("status").out
    assert run("status", "--json").json["to_do"] == [], "the session goes on"
    with transaction(queued):
        queue.put(queued, "session-1", queue.FINALIZE, "{}", "{}", now(), None)
    assert run("status", "--json").json["to_do"] == ["memories are more than a day late: backstory worker"]
    with transaction(queued):
        queue.defer(queued, items(queued), "no network; it is asked again later", now())
    (line,) = run("status", "--json").json["to_do"]
    assert line.startswith("memories could not be made yet (no network")


def test_status_says_who_makes_memories_and_what_was_spent(
    queued: sqlite3.Connection, run: Run, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "claude: claude, model haiku; $0.00 of $1.00 today; no worker runs" in run("status").out
    with transaction(queued):
        spend.add(queued, "session-1", Spent("claude-haiku", 1, 1, 1, 1, 1, 1.25), now())
    assert "$1.25 of $1.00 today" in run("status").out
    (line,) = run("status", "--json").json["to_do"]
    assert line.startswith("the model's cap of the day is reached") and line.endswith("backstory spend")
    monkeypatch.setenv("BACKSTORY_SYNTHESIZER", "local")
    assert "local: by rules, at no cost; no worker" in run("status").out


def test_status_tells_no_trouble_that_is_over_for_more_than_a_day(
    queued: sqlite3.Connection, run: Run, client: str
) -> None:
    first, second, *_ = items(queued)
    with transaction(queued):
        queue.done(queued, [first], "local", now() - 25 * 3_600_000, "no login")
    assert run("status", "--json").json["to_do"] == []
    with transaction(queued):
        queue.done(queued, [second], "local", now() - 3_600_000, "no network")
    (line,) = run("status", "--json").json["to_do"]
    assert "1 item was observed by local, last " in line
    assert line.endswith(": no network: backstory worker --status")


def test_status_tells_a_missing_model_from_one_that_nobody_needs(
    worked: None, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backstory.synthesis.claude.find_cli", lambda env: None)
    monkeypatch.setenv("BACKSTORY_SYNTHESIZER", "auto")
    assert "by rules, because there is no claude on PATH" in run("status").out
    assert run("status", "--json").json["to_do"] == []
    monkeypatch.setenv("BACKSTORY_SYNTHESIZER", "claude")
    assert "install Claude Code" in run("status", "--json").json["to_do"][0]


def test_the_line_is_about_the_project_that_claude_code_names(
    tmp_path: Path, project: str, worked: None, line: Line
) -> None:
    (tmp_path / "elsewhere").mkdir()
    elsewhere = str(tmp_path / "elsewhere")
    assert line({"workspace": {"project_dir": elsewhere}}) == "backstory: nothing remembered here yet\n"
    assert line({"cwd": project}).startswith("backstory: 1 session")


def test_a_paused_project_and_events_that_failed_are_told(
    data: Path, project: str, worked: None, line: Line, run: Run
) -> None:
    (data / "spool" / "failed").mkdir(exist_ok=True)
    (data / "spool" / "failed" / "x").write_text("{")
    (data / "spool" / "failed" / "x.reason").write_text("no JSON\n")
    assert line() == "backstory: 1 event could not be stored; see backstory status\n"
    assert "to do: 1 event could not be stored (no JSON): backstory doctor" in run("status").out
    (data / "paused").write_text(f"/another\n{os.path.realpath(os.path.dirname(project))}\n")
    assert line() == "backstory: paused here; /backstory:resume or `backstory resume` goes on\n"
    (data / "paused").unlink()
    assert run("pause").code == 0
    assert "paused" in line() and "backstory resume" in run("status", "--json").json["to_do"][1]
    (data / "paused").write_text(f"{os.path.realpath(project)}-not\n")
    assert "paused" not in line()


@pytest.mark.parametrize("broken", ["missing", "no database", "older"])
def test_a_line_that_cannot_be_told_is_empty(
    data: Path, project: str, worked: None, line: Line, broken: str
) -> None:
    store = data / "backstory.db"
    if broken == "older":
        with closing(connect(str(store))) as db:
            db.execute("PRAGMA user_version = 3")
    else:
        for file in data.glob("backstory.db*"):
            file.unlink()
        if broken == "no database":
            store.write_bytes(b"no database at all" * 1_000)
    assert line() == ""


def test_the_line_drains_and_writes_nothing(data: Path, project: str, worked: None, line: Line) -> None:
    happened(data, project, "paint the door", session="later")
    files = sorted(data.rglob("*"))
    before = {file: file.read_bytes() for file in files if file.is_file()}
    assert line().startswith("backstory: 1 session")
    assert sorted(data.rglob("*")) == files
    assert {file: file.read_bytes() for file in files if file.is_file()} == before


def test_a_worker_of_ours_has_no_line(worked: None, line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKSTORY_WORKER", "1")
    assert line() == ""


@pytest.mark.slow
def test_the_line_loads_no_more_than_a_hook(project: str, worked: None) -> None:
    code = (
        "import sys; sys.argv = ['backstory', 'statusline']; import backstory.__main__ as main; main.main();"
        " print(sorted({'click', 'rich', 'numpy', 'dataclasses', 'typing', 'mcp'} & set(sys.modules)))"
    )
    source = str(REPOSITORY / "src")
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {source!r}); {code}"],
        cwd=project,
        input="{}",
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.splitlines() == ["backstory: 1 session, 1 open", "[]"]


def test_status_tells_of_every_part(data: Path, project: str, worked: None, run: Run) -> None:
    tell(data, project, "now", 455)
    out = run("status").out
    for told in ("1 session, 1 turn, 0 memories", "0 waiting, 0 failed", "1 text, 455 tokens", "no worker"):
        assert told in out
    assert "`backstory init` sets that up" in out
    found = run("status", "--json").json
    assert found["memory"]["sessions"] == 1 and found["told_today"] == {"texts": 1, "tokens": 455}
    assert found["capture"]["last_event"] > 0 and found["claude_md"] is None and found["to_do"] == []
    assert "in all projects" not in out
    elsewhere = data.parent / "elsewhere"
    elsewhere.mkdir()
    run("add", "the heron stands", "--project", str(elsewhere))
    assert "1 text, 455 tokens, in all projects" in run("status").out


def test_status_says_what_to_do_on_the_first_day(run: Run, home: Path) -> None:
    ran = run("status")
    assert ran.code == 0 and "nothing of this folder yet" in ran.out
    assert "to do: nothing is captured" in ran.out and ran.out.rstrip().endswith("backstory install")
    register(home)
    assert "plugin enabled, no event yet" in run("status").out and "to do" not in run("status").out


def test_status_says_that_nothing_is_captured_any_more_where_the_plugin_was_taken_out(
    project: str, worked: None, run: Run, home: Path
) -> None:
    assert "to do" not in run("status").out
    (home / ".claude" / "settings.json").write_text("{}")
    assert "to do: nothing is captured, the plugin is not registered" in run("status").out
    register(home, on=False)
    assert "to do: nothing is captured" in run("status").out
    register(Path(project))
    ran = run("status")
    assert "plugin enabled" in ran.out and "to do" not in ran.out


def test_status_drains_first_and_has_what_claude_md_status_tells(
    data: Path, project: str, worked: None, run: Run
) -> None:
    Path(project, "README.md").write_text("# doors\n\nA workshop for doors.\n")
    Path(project, "paint.py").write_text("def paint() -> None: ...\n")
    Path(project, "pyproject.toml").write_text('[project]\nname = "doors"\n')
    assert run("init", "--yes", "--offline", "--no-subtrees").code == 0
    happened(data, project, "paint it", edit(f"{project}/paint.py"), session="later")
    found = run("status", "--json").json
    assert found["claude_md"]["pending"] == ["paint.py"]
    # What a sync would write takes a look at the whole project, which only that command takes.
    assert {**found["claude_md"], "to_write": []} == run("claude-md", "status", "--json").json
    assert "1 file, 1 file changed since" in run("status").out
    assert found["to_do"] == ["CLAUDE.md is behind: backstory sync"]
