"""`backstory erase`: nothing of it is left in the data folder, nothing brings it back, and a kill is finished
by the next run. Retention, which forgets and erases by itself."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backstory import config, log
from backstory.docmem import tree
from backstory.docmem.tree import Made
from backstory.intake.note import keep
from backstory.recall.documents.ingest import ingest
from backstory.store import forgetting, life, moving, projects, removal
from backstory.store.file import backup, connection
from backstory.store.file.connection import connect, transaction
from backstory.store.keep import build_on, keep_memory, wording
from backstory.surfaces import erasing, worker
from tests.conftest import Run
from tests.helpers.backups import of_version_0_1, with_a_toy
from tests.helpers.chaos import bash, drain, event, log_text, prompt, put, rows
from tests.helpers.turn_payloads import commit, happened

WORD = "Zanzibarium"
NOW = int(time.time() * 1000)
HOUR = 3_600_000
DAY = 24 * HOUR
KILLS = int(os.environ.get("BACKSTORY_ERASE_KILLS", "3"))


@pytest.fixture
def home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BACKSTORY_EMBEDDER", "static")
    return home


def said(session: str, project: str) -> list[dict[str, Any]]:
    """A turn with the word in all its parts."""
    large = "x" * 12_000 + WORD
    payloads = [
        prompt(f"go to {WORD}, please", prompt_id=f"{session}-1"),
        bash(f"echo {WORD}", WORD, tool_use_id=f"toolu_{session}1"),
        bash("make", large, tool_use_id=f"toolu_{session}2"),
        commit(f"the {WORD} itself") | {"tool_use_id": f"toolu_{session}3"},
        event("Stop", last_assistant_message=f"{WORD} it is. " * 30),
    ]
    return [{**payload, "session_id": session, "cwd": project} for payload in payloads]


def happen(data: Path, payloads: list[dict[str, Any]], at: int = NOW - HOUR) -> None:
    for number, payload in enumerate(payloads):
        put(data, payload, at=at + number * 1_000, name=f"{payload['session_id']}-{number}")
    drain(data, NOW)


def opened(data: Path) -> Any:
    return connect(str(data / "backstory.db"))


@pytest.fixture
def planted(data: Path, project: str) -> Path:
    """A session with the word wherever a session leaves it, and one without."""
    happen(data, said("s1", project))
    happened(data, project, "feed the walrus", commit("feed it", "aaa1111"), session="s2", at=NOW - 2 * HOUR)
    drain(data, NOW)
    worker.run(str(data))  # observes, sums up, and makes a backup
    shutil.rmtree(data / "backups")
    with closing(opened(data)) as db:
        keep(db, project, f"a note on {WORD}", now=NOW, session_id="s1")
        keep(db, project, f"the user loves {WORD}", now=NOW, session_id="s1", is_global=True)
        keep(db, project, "walruses eat clams", now=NOW, session_id="s2")
        trace = db.execute("SELECT id FROM memories WHERE kind = 'tool' AND session_id = 's1'").fetchone()[
            "id"
        ]
        with transaction(db):
            life.archive(db, [trace], NOW)
        db.execute("PRAGMA secure_delete = OFF")  # it is in free pages as well
        db.execute("INSERT INTO prompts (session_id, prompt, created_at) VALUES ('s2', ?, 0)", (WORD * 900,))
        db.execute("DELETE FROM prompts WHERE created_at = 0")
    log.write("error", f"odd payload of s1: {WORD}")
    put(data, {"session_id": "s1", "cwd": project, "prompt": WORD}, into="failed", name="7.json")
    (data / "spool/failed/7.json.reason").write_text(f"no {WORD}\n")
    (data / "outbox").mkdir(exist_ok=True)
    (data / "outbox" / "s1").write_text(f"{WORD} changed")
    (data / "outbox" / "s1.of-a-killed-hook").write_text(f"{WORD} changed")
    for name in ("known/files", "known/tests", "run/s1.files", "run/s1.task.of-a-killed-session"):
        (data / name).parent.mkdir(exist_ok=True)
        (data / name).write_text(f"/src/{WORD}\n")
    return data


def holding(data: Path, word: str = WORD) -> list[str]:
    """The files of the data folder in which the word is found, in any case: the keyword index has its own."""
    files = [path for path in sorted(data.rglob("*")) if path.is_file()]
    return [
        path.relative_to(data).as_posix()
        for path in files
        if word.lower().encode() in path.read_bytes().lower()
    ]


def assert_sound(data: Path) -> None:
    with closing(opened(data)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        assert not db.execute("PRAGMA foreign_key_check").fetchall()
        db.execute("INSERT INTO memories_fts (memories_fts, rank) VALUES ('integrity-check', 1)")
        pieces = db.execute(
            "SELECT 1 FROM turn_pieces WHERE turn NOT IN (SELECT row FROM memories)"
        ).fetchall()
        lines = (
            "SELECT row FROM memories UNION SELECT row FROM turn_pieces UNION SELECT row FROM document_chunks"
        )
        lines += " UNION SELECT row FROM docmem_nodes"
        vectors = db.execute(f"SELECT 1 FROM vectors WHERE row NOT IN ({lines})").fetchall()  # noqa: S608
        assert not pieces and not vectors


@pytest.mark.parametrize(
    "given", [("--session", "s1"), ("--match", WORD.upper(), "--all-projects")], ids=["session", "match"]
)
def test_no_byte_of_it_is_left_in_the_data_folder(given: tuple[str, ...], planted: Path, run: Run) -> None:
    run("search", "anything")  # makes vectors
    assert len(holding(planted)) >= 5
    shown = run("erase", *given, "--dry-run")
    assert shown.out.startswith("To erase: ") and "1 archived trace" in shown.out
    done = run("erase", *given, "--yes", "--json")
    assert done.code == 0 and done.json["holding"] == [] and done.json["unfinished"] is False
    assert holding(planted) == []
    assert not (planted / "erasing").exists()
    assert_sound(planted)
    assert "walruses eat clams" in run("list").out and "feed the walrus" in run("sessions", "s2").out
    with closing(opened(planted)) as db:
        assert forgetting.listed(db) == [] and forgetting.erasing(db) == []


@pytest.mark.slow
def test_the_log_is_rewritten_whatever_the_locale_says(planted: Path) -> None:
    log.write("error", "the walrus said 日本")
    how = [sys.executable, "-X", "utf8=0", "-c", "from backstory.surfaces.cli.main import main; main()"]
    given = ["erase", "--match", WORD, "--all-projects", "--yes"]
    env = os.environ | {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([*how, *given], capture_output=True, check=False, timeout=60, env=env)
    assert done.returncode == 0, done.stderr
    assert "the walrus said 日本" in log_text(planted)
    assert holding(planted) == []


def test_what_was_forgotten_before_is_erased_with_its_forgetting(planted: Path, run: Run) -> None:
    run("forget", "--match", WORD, "--all-projects", "--yes")
    assert WORD in run("forget", "--list").out
    assert run("erase", "--match", WORD, "--all-projects", "--yes").code == 0
    assert holding(planted) == []
    assert run("forget", "--list").code == 1


def test_one_memory_is_erased_by_its_id(planted: Path, run: Run) -> None:
    only = run("add", "the Kilimanjaroon stands alone").id
    assert holding(planted, "kilimanjaroon")
    assert run("erase", only, "--yes").out.endswith("\nErased: 1 memory\n")
    assert holding(planted, "kilimanjaroon") == []


def test_it_always_asks_and_says_how_to_finish(planted: Path, run: Run) -> None:
    before = (planted / "backstory.db").read_bytes()
    refused = run("erase", "--session", "s1", stdin="y\n")
    assert refused.code == 1 and "Nothing was erased: nobody is there to ask; --yes" in refused.err
    assert "say what to erase" in run("erase").err
    assert "There is no session" in run("erase", "--session", "nope").err
    assert "Nothing fits; nothing was erased" in run("erase", "--match", "never said", "--yes").err
    assert (planted / "backstory.db").read_bytes() == before
    (planted / "erasing").touch()  # as a kill leaves it
    assert run("erase").code == 0
    assert not (planted / "erasing").exists()


def test_payloads_that_come_again_do_not_bring_it_back(planted: Path, project: str, run: Run) -> None:
    run("erase", "--session", "s1", "--yes")
    happen(planted, said("s1", project))  # the same events
    others = [
        payload | {"prompt_id": "p", "tool_use_id": f"t{n}"} for n, payload in enumerate(said("s1", project))
    ]
    happen(
        planted, [*others, event("SessionEnd", session_id="s1", cwd=project)]
    )  # as another reader sees them
    run("sessions")
    assert holding(planted) == []
    assert not rows(planted, "SELECT 1 FROM sessions WHERE id = 's1'")
    late = event("Stop", session_id="s1", cwd=project, last_assistant_message=f"late {WORD}")
    put(planted, late, at=NOW + HOUR)  # of the turn that was erased
    put(planted, {**prompt("a new thing"), "session_id": "s1", "cwd": project}, at=NOW + 2 * HOUR)
    put(planted, {**late, "last_assistant_message": "and done"}, at=NOW + 3 * HOUR)
    (turn,) = run("sessions", "s1", "--json").json["turns"]
    assert (turn["asked"], turn["answer"]) == ("a new thing", "and done")
    assert holding(planted) == []


def test_a_turn_that_was_erased_does_not_come_back_into_the_one_before(
    data: Path, project: str, run: Run
) -> None:
    happened(data, project, "feed the walrus", session="s", at=NOW - 2 * HOUR)
    happened(data, project, f"and {WORD}?", answer=None, session="s", at=NOW - HOUR)
    run("erase", "--match", WORD, "--yes")
    put(data, event("Stop", session_id="s", cwd=project, last_assistant_message=f"in {WORD}"), at=NOW + HOUR)
    happened(data, project, f"and {WORD}?", session="s", at=NOW - HOUR)  # again, by another name
    happened(data, project, "brush it", session="s", at=NOW + 2 * HOUR)
    turns = run("sessions", "s", "--json").json["turns"]
    assert [(turn["asked"], turn["answer"]) for turn in turns] == [
        ("feed the walrus", "done"),
        ("brush it", "done"),
    ]
    assert holding(data) == []


def test_backups_that_hold_it_are_named_with_the_day_they_go(planted: Path, run: Run) -> None:
    backup.make(str(planted), NOW - 2 * DAY)
    done = run("erase", "--session", "s1", "--yes")
    assert done.code == 0
    (name,) = [one for one in os.listdir(planted / "backups") if one.endswith(".db")]
    assert f"Still holds it: {planted}/backups/{name}" in done.out
    assert "the last daily one is removed on 20" in done.out and "--everywhere" in done.out
    assert holding(planted) == [f"backups/{name}"]


def test_backups_that_do_not_rotate_say_so(planted: Path, run: Run) -> None:
    backup.make(str(planted), NOW - 2 * DAY, "manual")
    (planted / "set-aside").mkdir()
    shutil.copyfile(planted / "backstory.db", planted / "set-aside" / "backstory-20260101T000000Z.db")
    done = run("erase", "--match", "-", "--all-projects", "--yes", stdin=f"{WORD}\n")
    assert "manual.db (until newer ones of its kind are made, or you delete it)" in done.out
    assert "000000Z.db (set aside: yours to delete)" in done.out
    assert "removed on" not in done.out
    assert len(holding(planted)) == 2
    again = run("erase", "--match", WORD, "--all-projects", "--everywhere", "--yes")
    assert again.code == 0 and "Nothing in the store fits; backups are looked at." in again.out
    assert holding(planted) == []


def test_the_day_on_which_the_last_backup_goes_is_that_of_the_rotation(planted: Path) -> None:
    made = [backup.make(str(planted), NOW - days * DAY) for days in (3, 2, 1)]
    until = backup.last_day(str(planted), made, NOW)
    assert until is not None and NOW + 6 * DAY <= until <= NOW + 5 * 7 * DAY
    with open(made[0].path, "ab") as file:
        file.truncate(50_000_000)
    largest = backup.last_day(str(planted), made, NOW)
    assert (
        largest is not None and NOW + 24 * DAY < largest < NOW + 29 * DAY
    )  # of the last four weeks it stays
    asked_for = backup.make(str(planted), NOW, "manual")
    assert backup.last_day(str(planted), [asked_for], NOW) is None


def test_everywhere_takes_it_out_of_backups_and_what_was_set_aside(planted: Path, run: Run) -> None:
    daily = backup.make(str(planted), NOW - 2 * DAY)
    (planted / "set-aside").mkdir()
    aside = planted / "set-aside" / "backstory-20260101T000000Z.db"
    shutil.copyfile(daily.path, aside)
    assert len(holding(planted)) >= 6
    done = run("erase", "--session", "s1", "--everywhere", "--yes")
    assert done.code == 0, done.err
    assert done.out.count("Backup without it: ") == 2
    assert holding(planted) == []
    for path in (daily.path, aside):
        backup.check(str(path))
        with closing(sqlite3.connect(path)) as db:
            assert [row[0] for row in db.execute("SELECT id FROM sessions")] == ["s2"]


def test_everywhere_removes_backups_of_an_older_schema_once_there_is_a_new_one(
    planted: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daily = backup.make(str(planted), NOW - 2 * DAY)
    monkeypatch.setattr(connection, "MIGRATIONS", with_a_toy(tmp_path))
    done = run("erase", "--session", "s1", "--everywhere", "--yes")
    assert done.code == 0, done.err
    # The daily one, and that from before the migration.
    assert done.out.count("(removed: of an older schema; ") == 2
    assert holding(planted) == []
    assert not Path(daily.path).exists()
    assert [(one.reason, one.schema) for one in backup.listed(str(planted))] == [
        ("manual", connection.latest())
    ]


def test_stores_of_backstory_0_1_are_named_and_left(planted: Path, run: Run) -> None:
    kept = [
        of_version_0_1(planted / "set-aside" / "backstory.db"),
        of_version_0_1(planted / "backups" / "backstory-20260102T000000Z-before-8.db", schema=7),
    ]
    content = [path.read_bytes() for path in kept]
    for everywhere in ((), ("--everywhere",)):
        done = run("erase", "--match", WORD, "--yes", *everywhere)
        assert done.code == 0, done.err
        for path in kept:
            assert f"Left: {path}: is of backstory 0.1 and was not looked into" in done.out
    done = run("redact", "--yes")
    for path in kept:
        assert f"Not changed: {path}: is of backstory 0.1 and was not looked into" in done.out
    assert [path.read_bytes() for path in kept] == content


def test_a_transcript_does_not_bring_it_back_into_a_restored_backup(
    planted: Path, project: str, run: Run
) -> None:
    daily = backup.make(str(planted), NOW - 2 * DAY)
    assert run("erase", "--session", "s1", "--everywhere", "--yes").code == 0
    assert run("backup", "restore", daily.name, "--yes").code == 0
    again = [
        payload | {"prompt_id": "p", "tool_use_id": f"t{n}"} for n, payload in enumerate(said("s1", project))
    ]
    happen(planted, again)  # as who reads a transcript sees them
    assert run("sessions", "s1").code == 1
    assert not [name for name in holding(planted) if name.startswith("backstory.db")]


def test_a_whole_project_goes_with_its_documents_and_trees(planted: Path, project: str, run: Run) -> None:
    with closing(opened(planted)) as db:
        here = projects.by_id(db, db.execute("SELECT id FROM projects WHERE id <> 'global'").fetchone()["id"])
        tree.build(db, here, [Made(None, None, f"the way to {WORD}", ("note", "way", "there"))], now=NOW)
        ingest(db, project, now=NOW, content=f"# {WORD}\n\nGo there.", title="Travels")
    shown = run("forget", "--project", ".", "--dry-run").out
    assert "Stays: 1 document" in shown and "Stays: 1 tree" in shown
    done = run("erase", "--project", ".", "--yes")
    assert done.code == 0, done.err
    with closing(opened(planted)) as db:
        for table in ("turns", "sessions", "documents", "docmem_nodes", "prompts", "observation_queue"):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] == 0, table  # noqa: S608
        left = [row["content"] for row in db.execute("SELECT content FROM memories")]
        assert left == [f"the user loves {WORD}"]  # what is global is of no project
        assert erasing.erase_project(str(planted), db, here.id, NOW)
        assert [row["id"] for row in db.execute("SELECT id FROM projects")] == ["global"]
    assert_sound(planted)


@pytest.mark.parametrize("fate", ["merged", "deleted"])
def test_an_erasing_is_finished_though_its_project_is_gone(
    fate: str, planted: Path, project: str, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "web").mkdir()
    happened(planted, tmp_path / "web", "a web of ice", session="web", at=NOW - HOUR)
    drain(planted, NOW)
    with closing(opened(planted)) as db:
        ids = {one.root: one.id for one in projects.every(db)}
        erasing.mark(str(planted))
        removal.begin_erasing(db, forgetting.Conditions(project_id=ids[project]), NOW)
        with transaction(db):
            if fate == "merged":
                moving.merge(db, ids[project], ids[str(tmp_path / "web")], said_by="user")
            else:
                removal.erase_project(db, ids[project], NOW)
    done = run("erase")
    assert done.code == 0, done.err
    assert not (planted / "erasing").exists() and not is_begun(planted)
    assert [row["id"] for row in rows(planted, "SELECT id FROM sessions")] == ["web"]
    assert (planted / "spool/failed/7.json").exists()  # whose it was cannot be told any more
    assert_sound(planted)


@pytest.mark.parametrize(
    ("given", "gone"),
    [
        (("--project", "."), {"here", "below", "torn", "nameless"}),
        (("--session", "s1"), {"here", "torn"}),
        (("--kind", "note"), set()),
        (("--kind", "turn"), {"here", "below", "torn", "nameless"}),
        (("--match", WORD), {"here"}),
    ],
)
def test_of_what_could_not_be_stored_only_what_is_meant_goes(
    given: tuple[str, ...], gone: set[str], planted: Path, project: str, run: Run
) -> None:
    shutil.rmtree(planted / "spool/failed")
    payloads: dict[str, dict[str, Any]] = {
        "here": {"session_id": "s1", "cwd": project, "prompt": WORD},
        "below": {"session_id": "s10", "cwd": f"{project}/src"},
        "beside": {"session_id": "s11", "cwd": f"{project}-v2", "prompt": f"look at {project}"},
        "nameless": {"session_id": "s12", "tool_input": {"path": f"{project}/a"}},
    }
    for name, payload in payloads.items():
        put(planted, payload, into="failed", name=name)
    (planted / "spool/failed/torn").write_text(f'{{"session_id":"s1","cwd":"{project}","pro')
    assert run("erase", *given, "--yes").code == 0
    left = {path.name for path in (planted / "spool/failed").iterdir()}
    assert {*payloads, "torn"} - left == gone


def test_what_was_begun_is_still_marked_after_a_project_was_erased_meanwhile(
    planted: Path, tmp_path: Path, run: Run
) -> None:
    (tmp_path / "web").mkdir()
    happened(planted, tmp_path / "web", "a web of ice", session="web", at=NOW - HOUR)
    drain(planted, NOW)
    with closing(opened(planted)) as db:
        (web,) = [one.id for one in projects.every(db) if one.root == str(tmp_path / "web")]
        erasing.mark(str(planted))
        removal.begin_erasing(db, forgetting.Conditions(match=WORD), NOW)
        assert erasing.erase_project(str(planted), db, web, NOW)
    worker.run(str(planted))
    assert [name for name in holding(planted) if not name.startswith("backups")] == []


# Kills itself before the nth statement, in the store or in a backup, or change of a folder; tells how many
# there were if it comes to its end.
SUICIDAL = """
import os, signal, sqlite3, sys
nth, seen = int(sys.argv[1]), 0
def step(*_):
    global seen
    seen += 1
    if seen == nth:
        os.kill(os.getpid(), signal.SIGKILL)
real = sqlite3.connect
def connect(*args, **how):
    db = real(*args, **how)
    db.set_trace_callback(step)
    return db
sqlite3.connect = connect
sys.addaudithook(lambda event, _: step() if event in ("os.rename", "os.remove") else None)
sys.argv = ["backstory", *sys.argv[2:]]
from backstory.surfaces.cli.main import main
try:
    main()
finally:
    os.write(2, b"steps %d" % seen)
"""


@pytest.mark.slow
def test_a_kill_at_any_moment_is_finished_by_the_next_run(planted: Path, project: str, run: Run) -> None:
    for number in range(5):
        happen(planted, said(f"more-{number}", project))
    backup.make(str(planted), NOW - DAY)
    untouched = planted.parent / "untouched"
    shutil.copytree(planted, untouched)
    command = ["erase", "--match", WORD, "--all-projects", "--everywhere", "--yes"]

    def killed_at(nth: int) -> bytes:
        shutil.rmtree(planted)
        shutil.copytree(untouched, planted)
        how = [sys.executable, "-c", SUICIDAL, str(nth), *command]
        return subprocess.run(how, capture_output=True, check=False, timeout=60).stderr

    steps = int(killed_at(0).rpartition(b"steps ")[2])
    assert holding(planted) == []
    begun = 0
    for number in range(KILLS):
        assert b"steps" not in killed_at(steps * (number + 1) // (KILLS + 1)), number
        with closing(sqlite3.connect(planted / "backstory.db")) as db:
            assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        begun += is_begun(planted)
        again = run("erase") if is_begun(planted) else run(*command)
        assert again.code == 0, again.err
        assert holding(planted) == [], (number, begun, again.out, again.err)
        assert not (planted / "erasing").exists()
        assert_sound(planted)
        assert "walruses eat clams" in run("list").out
    assert begun


def is_begun(data: Path) -> bool:
    """Is there no way back?"""
    with closing(opened(data)) as db:
        return bool(forgetting.erasing(db))


# --- retention ----------------------------------------------------------------------------------------------


@pytest.fixture
def aging(data: Path, project: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A session of a year ago with a note and a global memory, and one of yesterday."""
    happened(data, project, "feed the walrus", commit("feed it"), session="old", at=NOW - 365 * DAY)
    happened(data, project, "paint the door", session="new", at=NOW - DAY)
    drain(data, NOW)
    worker.run(str(data))
    with closing(opened(data)) as db:
        keep(db, project, "walruses eat clams", now=NOW - 365 * DAY, session_id="old")
        keep(db, project, "the user likes ice", now=NOW - 365 * DAY, session_id="old", is_global=True)
    monkeypatch.setenv("BACKSTORY_RETENTION_DAYS", "90")
    return data


def test_retention_is_off_unless_it_is_set(data: Path, project: str, run: Run) -> None:
    assert config.NUMBERS["retention.days"] == 0
    happened(data, project, "feed the walrus", session="old", at=NOW - 3650 * DAY)
    drain(data, NOW)
    worker.run(str(data))
    assert run("sessions", "old").code == 0
    assert rows(data, "SELECT * FROM retention_runs") == []
    assert "retention" not in run("status").out


def test_the_worker_forgets_old_sessions_once_a_day_and_erases_them_a_month_later(
    aging: Path, project: str, run: Run
) -> None:
    worker.run(str(aging))
    assert [session["id"] for session in run("sessions", "--json").json] == ["new"]
    kept = {one["content"] for one in run("list", "--kind", "note", "--json").json}
    assert kept == {"walruses eat clams", "the user likes ice"}
    assert "retention of 90 days: 1 sessions with" in log_text(aging)
    assert run("forget", "--list", "--json").json[0]["said_by"] == "retention"
    assert "retention  on, 90 days; last today " in run("status").out
    assert "retention is on, 90 days" in run("worker", "--status").out
    assert run("worker", "--status", "--json").json["retention"]["last"]["sessions"] == 1

    happened(aging, project, "another old one", session="older", at=NOW - 200 * DAY)
    today = erasing.retain(str(aging), int(time.time() * 1000) + HOUR)
    assert today is None
    tomorrow = erasing.retain(str(aging), NOW + 2 * DAY)
    assert tomorrow is not None and (tomorrow.sessions, tomorrow.erased) == (1, 0)
    assert holding(aging, "feed the walrus")
    later = erasing.retain(str(aging), NOW + 31 * DAY)
    assert later is not None and later.erased >= 2
    assert not [name for name in holding(aging, "feed the walrus") if not name.startswith("backups/")]
    assert {one["content"] for one in run("list", "--kind", "note", "--json").json} == kept
    assert rows(aging, "SELECT id FROM sessions WHERE id = 'old'") == []
    assert rows(aging, "SELECT id FROM sessions WHERE id = 'older'") != []
    assert_sound(aging)


def test_a_trace_that_was_brought_back_alone_outlives_its_turn(aging: Path, project: str) -> None:
    happened(aging, project, "brush it", bash("brush walrus", "ok"), session="old", at=NOW - 364 * DAY)
    assert erasing.retain(str(aging), NOW)
    (trace,) = rows(aging, "SELECT id FROM memories WHERE content LIKE '%brush walrus%'")
    with closing(opened(aging)) as db, transaction(db):
        life.restore(db, trace["id"], None, NOW + HOUR)
    later = erasing.retain(str(aging), NOW + 31 * DAY)
    assert later is not None and later.erased >= 2
    assert rows(aging, "SELECT id FROM memories WHERE kind = 'tool' AND session_id = 'old'") == [trace]
    assert_sound(aging)


def test_what_was_said_again_since_is_not_old(aging: Path, project: str, run: Run) -> None:
    with closing(opened(aging)) as db:
        turns = {
            row["session_id"]: row["id"] for row in db.execute("SELECT * FROM memories WHERE kind = 'turn'")
        }
        owner = db.execute("SELECT project_id FROM sessions LIMIT 1").fetchone()["project_id"]
        for text, rests_on, is_global in (
            ("use tabs", ["old", "new"], False),
            ("use spaces", ["old"], False),
            ("call me Ishmael", ["old"], True),
        ):
            memory_id, _ = keep_memory(
                db,
                wording(text),
                project_id=owner,
                session_id="old",
                kind="preference",
                sector="semantic",
                importance=0.6,
                now=NOW - 365 * DAY,
                is_global=is_global,
                source="user",
            )
            for session in rests_on:
                build_on(db, memory_id, turns[session], "rule", NOW)
    worker.run(str(aging))
    shown = {one["content"] for one in run("list", "--kind", "preference", "--json").json}
    assert shown == {"use tabs", "call me Ishmael"}
    assert erasing.retain(str(aging), NOW + 40 * DAY)
    assert {one["content"] for one in run("list", "--kind", "preference", "--json").json} == shown
    assert_sound(aging)


def test_what_retention_forgot_can_be_undone_and_is_forgotten_again_the_next_day(
    aging: Path, run: Run
) -> None:
    worker.run(str(aging))
    assert run("forget", "--undo").code == 0
    assert run("sessions", "old").code == 0
    worker.run(str(aging))
    assert run("sessions", "old").code == 0
    assert erasing.retain(str(aging), NOW + 2 * DAY)
    assert run("sessions", "old").code == 1


def test_the_worker_finishes_what_a_kill_left(planted: Path, run: Run) -> None:
    with closing(opened(planted)) as db:
        erasing.mark(str(planted))
        removal.begin_erasing(db, forgetting.Conditions(match=WORD), NOW)
    finding = run("doctor").out
    assert "an erasing or redaction was not finished" in finding
    worker.run(str(planted))
    assert [name for name in holding(planted) if not name.startswith("backups")] == []
    assert not (planted / "erasing").exists()
