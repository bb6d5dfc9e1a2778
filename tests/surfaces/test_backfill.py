"""`backstory backfill`: the transcripts that Claude Code keeps become sessions and turns, each thing once."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backstory import locks
from backstory.intake.drain import drain
from backstory.memory.turn import Turn
from backstory.store import removal, turns
from backstory.store.file.connection import connect
from backstory.surfaces.cli.backfill import offer
from tests.conftest import Run
from tests.helpers.chaos import settle
from tests.helpers.stored import contents, differing
from tests.helpers.transcripts import SECOND, THEN, Log, age, worked

HOUR = 3_600_000
SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
OF_HOOKS_ALONE = {"SessionStart", "SessionEnd", "PreCompact"}


@pytest.fixture
def folder(home: Path) -> Path:
    """Where the client keeps its transcripts."""
    place = home / ".claude" / "projects"
    place.mkdir(parents=True)
    return place


def rows(data: Path, query: str, *values: object) -> list[Any]:
    with closing(sqlite3.connect(data / "backstory.db")) as db:
        return db.execute(query, values).fetchall()


def told(data: Path, session: str) -> list[Turn]:
    with closing(connect(str(data / "backstory.db"))) as db:
        return turns.of_session(db, session)


def drained(data: Path) -> None:
    with closing(connect(str(data / "backstory.db"))) as db:
        drain(db, str(data / "spool"), now=int(time.time() * 1000))


# --- what becomes of a transcript ---------------------------------------------------------------------------


def test_a_transcript_becomes_a_session_with_turns_and_facts(
    run: Run, folder: Path, data: Path, project: str
) -> None:
    log = worked("s1", project)
    log.write(folder)

    ran = run("backfill")

    assert ran.out.startswith("Remembered 1 session with 2 turns and ")
    assert project in ran.out
    first, second = told(data, "s1")
    assert (first.prompts[0][0], first.state) == (
        "mend the s1 parser, it crashes on an empty file",
        "complete",
    )
    assert (first.edited, first.commits) == (
        ["parser.py"],
        [["3f2c1ab", "Guard the s1 parser", ["parser.py"]]],
    )
    assert [command for command, _ in first.passed] == ["pytest -q"]
    assert (second.choices, second.answer) == ([["Which format?", "TOML: d"]], "We keep TOML.")
    assert (first.branch, first.head) == ("main", None)
    ((status, started, ended, prompt, summary),) = rows(
        data, "SELECT status, started_at, ended_at, user_prompt, summary FROM sessions"
    )
    assert (status, started, ended) == ("completed", THEN + SECOND, log.at)
    assert prompt.startswith("mend the s1 parser") and "Guard the s1 parser" in summary
    kinds = dict(rows(data, "SELECT kind, count(*) FROM memories GROUP BY kind"))
    assert kinds == {"turn": 2, "tool": 5, "summary": 1, "decision": 1}
    times = rows(data, "SELECT min(created_at), max(created_at), max(updated_at) FROM memories")
    assert THEN < times[0][0] <= times[0][1] <= times[0][2] <= log.at
    assert rows(data, "SELECT count(*) FROM observation_queue") == [(0,)]
    hashed = "SELECT count(*) FROM memories WHERE hashes GLOB '*[0-9a-f][0-9a-f][0-9a-f]*'"
    assert rows(data, hashed) == [(0,)]
    assert "guards against empty files" in run("search", "parser", "empty", "file", "--mode", "keyword").out


def test_what_was_read_is_not_read_again(run: Run, folder: Path, data: Path, project: str) -> None:
    path = worked("s1", project).write(folder)
    run("backfill")
    before = contents(data)

    again = run("backfill")

    assert again.out == f"Nothing new in {folder}. Not read: 1 remembered already.\n"
    assert differing(before, contents(data)) == {}
    age(path, 30)  # as if it had been written to
    assert run("backfill", "--json").json["known"] == 1
    changed = differing(before, contents(data))
    assert set(changed) == {"transcripts"}


def test_a_session_that_went_on_is_read_again_and_only_its_end_is_new(
    run: Run, folder: Path, data: Path, project: str
) -> None:
    log = worked("s1", project)
    log.write(folder)
    run("backfill")
    known = {turn.id for turn in told(data, "s1")}

    log.prompt("and the docs?").say("They are written.").write(folder, age_hours=47)
    found = run("backfill", "--json").json

    assert (found["sessions"], found["events"]) == (1, 2)
    assert known < {turn.id for turn in told(data, "s1")} and len(told(data, "s1")) == 3
    assert rows(data, "SELECT ended_at FROM sessions") == [(log.at,)]
    assert rows(data, "SELECT count(*) FROM memories WHERE kind IN ('summary', 'decision')") == [(2,)]


def test_subagents_belong_to_the_turn_in_which_they_worked(
    run: Run, folder: Path, data: Path, project: str
) -> None:
    log = Log("s1", project).prompt("look around")
    log.bash("ls docs", "guide.md", agent="a1").edit(f"{project}/a.py").bash("wc -l", "9", agent="a2")
    log.say("done").prompt("go on").say("went on").write(folder)
    found = run("backfill", "--json").json

    assert (found["sessions"], found["turns"], found["events"]) == (1, 2, 7)
    contents_of_traces = rows(data, "SELECT content FROM memories WHERE kind = 'tool' ORDER BY created_at")
    assert [text.split("\n")[1] for (text,) in contents_of_traces] == [
        "Command: ls docs",
        f"Edited file: {project}/a.py",
        "Command: wc -l",
    ]
    assert "Nothing new" in run("backfill").out


@pytest.mark.parametrize("ids", [True, False])
def test_a_fork_brings_only_what_is_its_own(
    run: Run, folder: Path, data: Path, project: str, ids: bool
) -> None:
    parent = Log("z-parent", project, ids=ids).prompt("one").bash("ls", "a").say("first")
    fork = parent.fork("a-fork").prompt("two").say("in the fork")  # by its name it would be read first
    grandchild = fork.fork("b-fork").prompt("three").say("in the fork of the fork")
    parent.prompt("four").say("in the parent")
    for log in (parent, fork, grandchild):
        log.write(folder)

    run("backfill")

    said = {name: [turn.asked for turn in told(data, name)] for name in ("z-parent", "a-fork", "b-fork")}
    assert sorted(asked for several in said.values() for asked in several) == ["four", "one", "three", "two"]
    assert (said["a-fork"][-1], said["b-fork"], said["z-parent"][-1]) == ("two", ["three"], "four")
    assert rows(data, "SELECT count(*) FROM memories WHERE kind = 'tool'") == [(1,)]


def test_a_fork_is_known_for_one_in_a_later_run_too(run: Run, folder: Path, data: Path, project: str) -> None:
    parent = Log("s1", project).prompt("one").say("first")
    parent.write(folder)
    run("backfill")

    parent.fork("s2").prompt("two").say("second").write(folder)
    run("backfill")

    assert [turn.asked for turn in told(data, "s2")] == ["two"]


def test_of_copies_that_were_made_while_a_transcript_grew_the_last_is_read(
    run: Run, folder: Path, data: Path, project: str
) -> None:
    log = Log("s1", project).prompt("mend it").say("I will look")
    log.write(folder / "monday")
    log.bash("ls", "a").say("It is mended.").write(folder / "tuesday")

    found = run("backfill", "--json").json

    assert (found["sessions"], found["older_copies"]) == (1, 1)
    assert [turn.answer for turn in told(data, "s1")] == ["It is mended."]
    assert "1 older copies of the same" in run("backfill").out


def test_sessions_without_a_person_are_marked(run: Run, folder: Path, data: Path, project: str) -> None:
    Log("typed", project, entrypoint="cli").prompt("a", promptSource="typed").say("b").write(folder)
    Log("sdk", project, entrypoint="sdk-cli").prompt("a", promptSource="sdk").say("b").write(folder)
    Log("bg", project, entrypoint="cli", sessionKind="bg").prompt("a").say("b").write(folder)
    Log("old", project).prompt("a").say("b").write(folder)

    run("backfill")

    assert dict(rows(data, "SELECT id, attended FROM sessions")) == {"typed": 1, "sdk": 0, "bg": 0, "old": 1}


def test_a_session_of_windows_is_one_project_whatever_folder_it_went_to(
    run: Run, folder: Path, data: Path
) -> None:
    log = Log("s1", r"C:\Users\x\proj").prompt("mend it")
    log.edit(r"C:\Users\x\proj\src\a.py")
    log.cwd = r"C:\Users\x\proj\src"
    log.bash("git commit -am x", "[main 3f2c1ab] Mend it\n 1 file changed").say("done").write(folder)

    run("backfill")

    assert rows(data, "SELECT name, root FROM projects") == [("proj", "/c/Users/x/proj")]
    (turn,) = told(data, "s1")
    assert (turn.edited, turn.commits) == (["src/a.py"], [["3f2c1ab", "Mend it", ["src/a.py"]]])
    found = run("backfill", "--project", r"C:\Users\x\proj", "--dry-run", "--json").json
    assert (found["sessions"], found["read_before"]) == (0, 1)


def test_a_session_whose_folder_is_here_is_of_the_project_in_it(
    run: Run, folder: Path, data: Path, tmp_path: Path
) -> None:
    repository = tmp_path / "repository"
    (repository / "src").mkdir(parents=True)
    (repository / ".git").mkdir()
    (repository / ".git" / "HEAD").write_text("ref: refs/heads/now\n")
    Log("s1", repository / "src").prompt("a").say("b").write(folder)
    Log("s2", repository / ".claude" / "worktrees" / "gone").prompt("a").say("b").write(folder)

    run("backfill")

    assert rows(data, "SELECT root FROM projects") == [(str(repository),)]
    assert rows(data, "SELECT branch, head FROM sessions WHERE id = 's1'") == [("main", None)]


def test_secrets_are_redacted_on_the_way_in(run: Run, folder: Path, data: Path, project: str) -> None:
    log = Log("s1", project).prompt(f"deploy with {SECRET}").bash(f"curl -u me:{SECRET} x", f"used {SECRET}")
    log.compact(f"we use {SECRET}").say(f"deployed with {SECRET}").write(folder)

    run("backfill")

    assert len(told(data, "s1")) == 1
    for file in data.rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes()


def test_bad_lines_are_counted_and_stop_nothing(run: Run, folder: Path, data: Path, project: str) -> None:
    path = worked("s1", project).write(folder)
    lines = path.read_bytes().splitlines(keepends=True)
    odd = [
        b"\xff\xfe\n",
        b"[1]\n",
        b'{"cwd": "/x", "type": ',
        b"\n",
        b'{"cwd":' + b"[" * 100_000 + b"\n",
        lines[0][:40],
    ]
    path.write_bytes(b"".join([*lines[:3], odd[0], odd[1], *lines[3:], *odd[2:]]))
    age(path, 48)
    (folder / "notes.jsonl").write_text('{"type":"summary","summary":"x"}\n')
    (folder / "empty.jsonl").touch()

    found = run("backfill", "--json").json

    assert (found["sessions"], found["turns"], found["without_session"]) == (1, 2, 2)
    assert found["unreadable"][str(path)] >= 3
    path.write_bytes(path.read_bytes() + b"{half\n")
    age(path, 40)
    assert f"could not be read in {path}" in run("backfill").out


# --- beside live capture ------------------------------------------------------------------------------------


def lived(project: str, *, ids: bool = True) -> Log:
    log = worked("s1", project, ids=ids)
    log.compact(
        "<analysis>hm</analysis>\n<summary>1. Primary Request: x\n\n"
        "6. All user messages:\n - a\n\n7. So</summary>"
    )
    log.prompt("go on").say("went on").prompt("go on").bash("ls", "a").queued("faster").say("went on again")
    log.prompt("<task-notification>\n<task-id>x</task-id>\n<result>found it</result>\n</task-notification>")
    log.say("noted").command("/backstory:recall", "the walrus").bash("ls", "b").say("It sleeps.")
    return log.end()


@pytest.mark.parametrize("ids", [True, False])
def test_what_was_captured_live_is_not_stored_again(
    run: Run, folder: Path, data: Path, project: str, ids: bool
) -> None:
    log = lived(project, ids=ids)
    log.write(folder)
    log.spool(data)
    drained(data)
    settle(data)
    before = contents(data)

    found = run("backfill", "--json").json

    changed = differing(before, contents(data))
    if ids:
        assert (found["known"], found["events"]) == (1, 0)
        assert set(changed) == {"transcripts", "transcript_entries"}
    else:  # what has no id is known by what it says
        assert [turn.asked for turn in told(data, "s1")][2:] == ["go on", "go on / faster", ""]
        for table in ("turns", "prompts", "turn_pieces", "observation_queue"):
            assert changed.get(table, ([], [])) == ([], []), table


def test_what_was_backfilled_is_not_captured_again(run: Run, folder: Path, data: Path, project: str) -> None:
    log = lived(project)
    log.write(folder)
    run("backfill")
    before = contents(data)

    log.spool(data)
    drained(data)

    changed = differing(before, contents(data))
    assert {row[1] for row in changed.pop("events")[1]} <= OF_HOOKS_ALONE
    queued = changed.pop("observation_queue")[1]
    assert len(queued) == 1 and "CHECKPOINT" in queued[0]  # a compaction began; that alone leads to nothing
    gone, new = changed.pop("sessions")  # it began a second earlier than its first prompt
    assert (len(gone), len(new)) == (1, 1)
    assert changed == {}


def test_live_and_backfilled_memories_have_the_same_ids(
    run: Run, folder: Path, data: Path, project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = lived(project)
    log.write(folder)
    run("backfill")
    there = dict(rows(data, "SELECT id, content FROM memories WHERE kind IN ('tool', 'turn')"))

    other = tmp_path / "other"
    monkeypatch.setenv("BACKSTORY_HOME", str(other))
    log.spool(other)
    drained(other)

    assert dict(rows(other, "SELECT id, content FROM memories WHERE kind IN ('tool', 'turn')")) == there


def test_an_answer_whose_turn_was_erased_does_not_come_back(
    run: Run, folder: Path, data: Path, project: str
) -> None:
    log = Log("s1", project, ids=False).prompt("first").say("one")
    log.at += 60 * SECOND
    log.prompt("second").say("two")
    log.write(folder)
    log.spool(data)
    drained(data)
    erased = told(data, "s1")[1].id
    with closing(connect(str(data / "backstory.db"))) as db:
        removal.erase_memory(db, erased, int(time.time() * 1000))

    run("backfill")

    assert [(turn.asked, turn.answer) for turn in told(data, "s1")] == [("first", "one")]


def test_what_no_hook_brought_of_a_forgotten_turn_is_forgotten_with_it(
    run: Run, folder: Path, data: Path, project: str
) -> None:
    log = Log("s1", project).prompt("first").bash("ls a", "1").bash("ls walrus", "2").say("one")
    log.write(folder)
    log.spool(data)
    (lost,) = [path for path in (data / "spool" / "new").iterdir() if "ls walrus" in path.read_text()]
    lost.unlink()
    drained(data)
    turn = told(data, "s1")[0].id
    run("forget", turn)
    run("backfill")
    shown = "SELECT count(*), count(deleted_at) FROM memories WHERE kind = 'tool'"
    assert rows(data, shown) == [(2, 2)]
    waiting = "SELECT tool_input FROM observation_queue WHERE processed_at_epoch IS NULL AND action = 'shell'"
    assert rows(data, waiting) == []
    assert run("restore", turn).code == 0
    assert rows(data, shown) == [(2, 0)]


def test_what_lost_its_turn_in_a_recovery_is_of_it_again(
    run: Run, folder: Path, data: Path, project: str
) -> None:
    log = Log("s1", project).prompt("first").bash("ls a", "1").bash("ls b", "2").say("one")
    log.write(folder)
    log.spool(data)
    drained(data)
    turned = (
        "SELECT id, turn FROM memories WHERE kind = 'tool' UNION ALL SELECT id, turn FROM prompts"
        " UNION ALL SELECT id, turn FROM observation_queue WHERE action IS NOT NULL"
    )
    before = rows(data, turned)
    with closing(connect(str(data / "backstory.db"))) as db:
        for table in ("memories", "prompts", "observation_queue"):
            db.execute(f"UPDATE {table} SET turn = NULL")  # noqa: S608
        for lost in ("memories WHERE kind = 'turn'", "events", "transcripts"):
            db.execute(f"DELETE FROM {lost}")  # noqa: S608
    run("backfill")
    assert rows(data, turned) == before
    assert all(turn for _, turn in before)


def test_a_session_that_goes_on_is_not_ended(run: Run, folder: Path, data: Path, project: str) -> None:
    now = int(time.time() * 1000)
    log = Log("s1", project, now - 60 * SECOND).prompt("go").edit(f"{project}/a.py").say("half way")
    log.write(folder, age_hours=0)
    live = Log("s2", project, now - 3 * HOUR).prompt("go").say("waiting for you")
    live.spool(data)
    live.write(folder, age_hours=2)

    ran = run("backfill")

    assert "2 sessions go on, and will be read again." in ran.out
    assert dict(rows(data, "SELECT id, status FROM sessions")) == {"s1": "active", "s2": "active"}
    assert told(data, "s1")[0].state == "open"
    assert rows(data, "SELECT count(*) FROM memories WHERE kind = 'summary'") == [(0,)]
    log.write(folder, age_hours=2)
    found = run("backfill", "--json").json
    assert (found["sessions"], found["running"]) == (0, 2)  # in the store it goes on for a day


# --- the command --------------------------------------------------------------------------------------------


def test_only_what_was_asked_for_is_read(
    run: Run, folder: Path, data: Path, project: str, tmp_path: Path
) -> None:
    worked("old", project, THEN).write(folder)
    worked("new", project, THEN + 48 * HOUR).write(folder)
    worked("other", tmp_path / "elsewhere", THEN + 48 * HOUR).write(folder)

    plan = run("backfill", "--since", "2026-05-29", "--project", project, "--dry-run", "--json").json

    assert (plan["sessions"], plan["left_out"]) == (1, 2)
    assert plan["folders"] == [{"folder": project, "sessions": 1}]
    assert rows(data, "SELECT count(*) FROM sessions") == [(0,)]
    shown = run("backfill", "--dry-run").out
    assert shown.startswith("3 sessions since 2026-05-28,") and str(tmp_path / "elsewhere") in shown
    assert run("backfill", "--since", "2026-05-29", "--project", project, "--json").json["sessions"] == 1
    assert rows(data, "SELECT id FROM sessions") == [("new",)]


def test_the_folder_of_the_client_is_the_one_that_it_is_told(
    run: Run, tmp_path: Path, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = run("backfill")
    assert (refused.code, "--from FOLDER" in refused.err) == (1, True)
    worked("s1", project).write(tmp_path / "config" / "projects")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    assert run("backfill", "--dry-run", "--json").json["sessions"] == 1
    monkeypatch.delenv("CLAUDE_CONFIG_DIR")
    assert run("backfill", "--from", str(tmp_path / "config"), "--dry-run", "--json").json["sessions"] == 1


def test_a_model_is_asked_only_after_a_yes(
    run: Run, folder: Path, data: Path, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    worked("s1", project).write(folder)
    refused = run("backfill", "--with-model")
    assert (refused.code, "synthesizer is local" in refused.err) == (2, True)
    monkeypatch.setenv("BACKSTORY_SYNTHESIZER", "auto")
    asked = run("backfill", "--with-model", stdin="n\n")
    assert (asked.code, rows(data, "SELECT count(*) FROM sessions")) == (1, [(0,)])
    assert "The model would be shown 1 session, for about $0.00. Go on?" in asked.err

    monkeypatch.setenv("BACKSTORY_SPEND_DAILY_USD", "0")
    planned = run("backfill", "--with-model", "--dry-run").out
    assert "The cap is $0.00 a day, and what goes beyond it is left to rules" in planned

    ran = run("backfill", "--with-model", "--yes")

    assert "within the daily cap" in ran.out
    queued = [name for (name,) in rows(data, "SELECT tool_name FROM observation_queue ORDER BY id")]
    assert queued.count("FINALIZE") == 3 and "Edit" in queued
    assert rows(data, "SELECT count(*) FROM memories WHERE kind = 'summary'") == [(0,)]


def test_there_is_one_backfill_at_a_time(run: Run, folder: Path, data: Path, project: str) -> None:
    worked("s1", project).write(folder)
    lock = locks.try_to_take(str(data / "backfill.lock"))
    assert lock is not None
    refused = run("backfill")
    os.close(lock)
    assert (refused.code, "another backfill is at work" in refused.err) == (1, True)


@pytest.mark.slow
def test_whoever_is_interrupted_is_told_that_it_goes_on(folder: Path, data: Path, project: str) -> None:
    for number in range(20):
        worked(f"s{number}", project, THEN + number).write(folder)
    slow = "import backstory.intake.backfill as b, time, signal; b.BATCH_EVENTS = 1; was = b._store"
    slow += "\nb._store = lambda *a: (time.sleep(0.05), was(*a))"
    slow += "\nsignal.signal(signal.SIGINT, signal.default_int_handler)"
    slow += "\nfrom backstory.surfaces.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", slow, "backfill"], cwd=project, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if (data / "backstory.db").exists() and rows_or_none(data, "SELECT 1 FROM transcripts"):
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "What is stored stays; `backstory backfill` goes on with the rest." in said


def rows_or_none(data: Path, query: str) -> list[Any] | None:
    try:
        return rows(data, query)
    except sqlite3.OperationalError:
        return None


@pytest.mark.slow
def test_a_run_that_was_killed_leaves_the_same_as_one_that_was_not(
    folder: Path, data: Path, project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = int(time.time() * 1000)
    for number in range(6):
        log = worked(f"s{number}", project, now - (8 - number) * HOUR, ids=bool(number % 2))
        for turn in range(12):
            log.prompt("go on").bash(f"make {turn}", "ok").edit(f"{project}/{turn}.py").say(f"done {turn}")
        log.bash("ls", "a", agent="a1")
        log.write(folder, age_hours=2)
        log.fork(f"t{number}").prompt("fork").say("forked").write(folder, age_hours=2)
    whole = tmp_path / "whole"
    monkeypatch.setenv("BACKSTORY_HOME", str(whole))
    assert _small_batches(project).wait(60) == 0

    monkeypatch.delenv("BACKSTORY_HOME")
    for stored in (4, 13, 22):
        assert _small_batches(project, killed_after=stored).wait(60) == -signal.SIGKILL
    assert _small_batches(project).wait(60) == 0

    assert differing(contents(whole), contents(data)) == {}
    assert rows(data, "SELECT count(*) FROM transcripts WHERE size < 0") == [(0,)]
    assert _exported(whole, project) == _exported(data, project)


def _exported(home: Path, project: str) -> list[str]:
    """The lines of an export, but for the last one, which has their digest. Ids of projects are random."""
    ran = subprocess.run(
        [sys.executable, "-m", "backstory", "export"],
        cwd=project,
        env={**os.environ, "BACKSTORY_HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
    )
    ids: dict[str, str] = {}
    text = re.sub(r"prj_[0-9a-z]{12}", lambda found: ids.setdefault(found[0], f"prj {len(ids)}"), ran.stdout)
    return text.splitlines()[:-1]


def _small_batches(project: str, killed_after: int | None = None) -> subprocess.Popen[str]:
    """Killed once it has stored so many, amid the next: before its transaction ends."""
    code = "import backstory.intake.backfill as b; b.BATCH_EVENTS = 5"
    if killed_after is not None:
        code += f"""
import os, signal
left, remember = [{killed_after}], b.remember
def remembered(db, batch):
    answer = remember(db, batch)
    left[0] -= 1
    return answer if left[0] >= 0 else os.kill(os.getpid(), signal.SIGKILL)
b.remember = remembered"""
    code += "\nfrom backstory.surfaces.cli.main import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, "backfill"], cwd=project, stdout=subprocess.DEVNULL, text=True
    )


CLIENT = """#!/bin/sh
case "$*" in
    "plugin marketplace list --json") echo "[]" ;;
    "plugin list --json") echo '[{"id": "backstory@backstory"}]' ;;
esac
"""


@pytest.mark.slow
def test_install_offers_it_in_one_line(
    run: Run, folder: Path, data: Path, project: str, tmp_path: Path
) -> None:
    client = tmp_path / "claude"
    client.write_text(CLIENT)
    client.chmod(0o755)
    assert offer(str(data)) is None
    first = worked("s1", project)
    first.bash("ls", "a", agent="a1")
    first.write(folder)
    expected = "1 earlier session of Claude Code (since 2026-05-28) can be remembered too: backstory backfill"
    assert run("install", "--claude", str(client)).out.splitlines()[-1] == expected
    run("backfill")
    assert offer(str(data)) is None
    live = worked("s2", project)
    live.write(folder)
    live.spool(data)
    drained(data)
    assert offer(str(data)) is None
    worked("s3", project, THEN + 48 * HOUR).write(folder)
    assert offer(str(data)) == expected.replace("05-28", "05-30")


def test_a_copy_of_today_of_an_old_session_is_of_one_that_is_over(
    folder: Path, data: Path, project: str, run: Run
) -> None:
    worked("s1", project, int(time.time() * 1000) - 30 * 24 * HOUR).write(folder, age_hours=0)
    assert run("backfill", "--json").code == 0
    assert rows(data, "SELECT status FROM sessions") == [("completed",)]


def test_a_folder_that_no_session_was_in_is_said_to_be_none(folder: Path, project: str, run: Run) -> None:
    worked("s1", project, int(time.time() * 1000) - 5 * HOUR).write(folder, age_hours=2)
    said = run("backfill", "--project", "/nowhere/at/all")
    assert (said.code, "No session was in /nowhere/at/all" in said.err) == (1, True)


ODD: dict[str, dict[str, object]] = {
    "half of a pair as the session": {"sessionId": "\ud800x"},
    "half of a pair as the folder": {"cwd": "/tmp/\ud800x"},
    "of the future": {"timestamp": "9999-12-31T00:00:00Z"},
    "no time": {"timestamp": "soon"},
    "nested": {"message": {"content": json.loads("[" * 400 + "]" * 400)}},
    "numbers": {"message": 7, "uuid": 8, "promptId": 9},
}


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_transcript_does_not_hold_up_the_others(
    odd: str, folder: Path, data: Path, project: str, run: Run
) -> None:
    worked("s1", project, int(time.time() * 1000) - 5 * HOUR).write(folder, age_hours=2)
    entry: dict[str, object] = {
        "type": "user",
        "uuid": "u",
        "sessionId": "s2",
        "cwd": project,
        "promptId": "p",
    }
    entry |= {"timestamp": "2026-01-05T10:00:00Z", "message": {"role": "user", "content": "hello"}}
    (folder / "odd.jsonl").write_text(json.dumps(entry | ODD[odd]) + "\n")
    agents = folder / "odd" / "subagents"
    agents.mkdir(parents=True)
    (agents / "agent-a.jsonl").write_text(json.dumps(entry | {"isSidechain": True}) + "\n")
    (agents / "agent-a.meta.json").write_text("[" * 60_000)
    (agents / "agent-b.jsonl").write_text(json.dumps(entry | {"isSidechain": True}) + "\n")
    os.mkfifo(agents / "agent-b.meta.json")
    assert run("backfill", "--json").code == 0
    known = rows(data, "SELECT id FROM sessions ORDER BY id")
    assert ("s1",) in known
    assert rows(data, "SELECT max(started_at) < unixepoch() * 1000 FROM sessions") == [(1,)]
