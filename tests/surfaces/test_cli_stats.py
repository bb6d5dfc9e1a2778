"""`backstory stats` and `backstory why`, on sessions that were told something and went on."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import pytest

from backstory import paths
from backstory.model import Spent
from backstory.safety import fence
from backstory.store import projects, spend, tellings
from backstory.store.file.connection import BUSY_SECONDS, connect, transaction
from backstory.surfaces.mcp import memory
from tests.conftest import Run
from tests.helpers.chaos import bash, drain, prompt, put, tool_use
from tests.helpers.embedder import loaded_embedder  # noqa: F401  for all tests here
from tests.helpers.turn_payloads import edit, happened

NOW = int(time.time() * 1000)
HOUR = 3_600_000
FAILED = "E   ValueError: 3 is no currency\n1 failed"


@pytest.fixture
def lived(data: Path, project: str, run: Run) -> str:
    """Two sessions, and the id of the turn of the first: the second was told of it, opens its file, and meets
    the same error."""
    for name in ("invoice.py", "sum.py"):
        (Path(project) / name).write_text("x = 1\n")
    first = [bash("pytest tests", FAILED), edit(f"{project}/invoice.py"), bash("pytest tests", "3 passed")]
    grep = tool_use("Grep", {"pattern": "def frobnicate"}, {"filenames": []})
    happened(data, project, "why is it off?", *first, grep, session="session-1", at=NOW - 5 * HOUR)
    read = tool_use(
        "Read", {"file_path": f"{project}/invoice.py"}, {"type": "text", "file": {"content": "x"}}
    )
    second = [read, bash("pytest tests", FAILED.replace("3", "4")), grep]
    happened(data, project, "it is off again", *second, session="session-2", at=NOW - HOUR)
    drain(data, NOW)
    return str(run("search", "why is it off?", "--json").json[0]["id"])


def tell(
    data: Path,
    project: str,
    *ids: str,
    moment: str = "prompt",
    at: int = NOW - HOUR,
    reason: dict[str, object] | None = None,
) -> None:
    text = fence.fence("Earlier: invoice.py was off", "backstory, with your prompt")
    with closing(connect(str(data / "backstory.db"))) as db, transaction(db):
        here = projects.at(db, paths.place(project))
        assert here
        tellings.note(
            db, "session-2", here.id, moment, text, ids, tokens=120, at=at,
            about="it is off again", reason=reason or {},
        )  # fmt: skip


def test_what_was_captured_told_asked_and_spent_is_counted(
    run: Run, data: Path, project: str, lived: str
) -> None:
    tell(data, project, lived)
    tell(data, project, moment="start", at=NOW - HOUR - 100)
    tell(data, project, moment="search")
    with closing(connect(str(data / "backstory.db"))) as db, transaction(db):
        for session in ("session-1", "session-2"):
            spend.add(db, session, Spent("small", 1, 10, 0, 0, 5, 0.25), NOW - HOUR)
    counted = run("stats", "--json").json
    assert counted["captured"] == {"sessions": 2, "turns": 2, "events": 11, "facts": 0, "notes": 0}
    assert counted["told"] == {moment: {"times": 1, "tokens": 120} for moment in ("start", "prompt")}
    assert (counted["asked"], counted["spent"]) == ({"times": 1, "tokens": 120}, {"usd": 0.5})
    shown = run("stats").out
    assert "Told the model 2 texts unasked, about 240 tokens:" in shown
    assert "\n  1 brief at the start of a session, about 120 tokens\n  1 with a prompt" in shown
    assert "\nAsked: it searched 1 time, and was answered about 120 tokens.\n" in shown
    assert "\nSpent: $0.5000 on the model" in shown
    assert run("stats", "--everywhere", "--days", "1", "--json").json["told"].keys() == {"start", "prompt"}
    alone = run("stats", "--session", "session-1", "--json").json
    assert (alone["told"], alone["asked"]["times"], alone["spent"]["usd"]) == ({}, 0, 0.25)
    assert "Told: nothing yet" in run("stats", "--session", "session-1").out


@pytest.mark.parametrize(
    ("moment", "reason", "shown"),
    [
        (
            "prompt",
            {"ID": {"score": 0.401, "covers": 0.77, "bm25": 2.2, "days": 2.1, "own": True, "branch": True}},
            "because it was made on this branch, 2 days earlier; its words cover 77 % of the prompt",
        ),
        (
            "file",
            {"edits": 1, "days": 3.0, "named": True},
            "because the file was edited there, 3 days earlier",
        ),
        (
            "failure",
            {"test": "test_sum", "days": 1.2},
            "because this test failed before and passed there, 1 day earlier",
        ),
        ("search", {"tool": "memory_search", "found": 3}, "because the model asked with memory_search"),
    ],
)
def test_why_a_memory_was_told_is_said_in_words_and_json_has_the_figures(
    run: Run, data: Path, project: str, lived: str, moment: str, reason: dict[str, object], shown: str
) -> None:
    reason = {lived if key == "ID" else key: value for key, value in reason.items()}
    tell(data, project, lived, moment=moment, reason=reason)
    for asked in (lived, "session-2"):
        assert f"      {shown}\n" in run("why", asked).out
    assert run("why", "1").out.count(shown[1:]) == 1
    assert run("why", "1", "--json").json["reason"] == reason


def test_a_memory_tells_where_it_comes_from_and_to_whom_and_why_it_was_told(
    run: Run, data: Path, project: str, lived: str
) -> None:
    assert "Told: never" in run("why", lived).out
    tell(data, project, lived)
    shown = run("why", lived).out
    assert "in session session-1" in shown
    assert "Told: #1  " in shown and "with a prompt 'it is off again', 120 tokens, session session-" in shown
    (told,) = run("why", lived, "--json").json["told"]
    assert told["memory_ids"] == [lived]
    number = str(told["id"])
    assert run("why", number).out.endswith("\n\nEarlier: invoice.py was off\n"), "without the marks around it"
    assert f"#{number}" in run("why", "session-2").out
    assert run("why", number, "--json").json["session_id"] == "session-2"


def test_why_alone_is_about_the_session_it_is_run_in(
    run: Run, data: Path, project: str, lived: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "session-1")
    tell(data, project, lived)
    assert "Nothing was told in session session-1" in run("why").err
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "session-2")
    assert "told 1 text, about 120 tokens" in run("why").out
    assert run("why", "nothing-like-it").code == 1


def test_why_alone_in_a_terminal_is_about_the_last_session_of_the_project(
    run: Run, data: Path, project: str, lived: str, tmp_path: Path
) -> None:
    ran = run("why")
    assert ran.code == 1 and "Nothing was told in session session-2" in ran.err
    tell(data, project, lived)
    assert run("why").out == run("why", "session-2").out
    elsewhere = run("why", "--project", str(tmp_path))
    assert elsewhere.code == 1 and "No sessions here yet" in elsewhere.err


def test_the_number_of_a_telling_is_taken_as_it_is_printed(
    run: Run, data: Path, project: str, lived: str
) -> None:
    tell(data, project, lived)
    assert "\n#1  " in run("why", "session-2").out
    assert run("why", "#1").out == run("why", "1").out
    unknown = run("why", "#2")
    assert unknown.code == 1 and "There is no telling #2;" in unknown.err


def test_a_forgotten_memorys_text_is_not_shown_and_an_erased_ones_is_gone(
    run: Run, data: Path, project: str, lived: str
) -> None:
    tell(data, project, lived)
    run("forget", lived)
    assert "forgotten or erased" in run("why", "1").out
    run("erase", lived, "--yes")
    assert "forgotten or erased" in run("why", "1").out
    assert b"invoice.py was off" not in (data / "backstory.db").read_bytes()


def test_an_empty_store_says_so(run: Run) -> None:
    said = run("stats")
    assert said.code == 1 and "Nothing is stored of this folder" in said.err


def test_replies_of_searches_are_noted_and_a_busy_store_withholds_none(
    run: Run, data: Path, project: str, lived: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "session-2")
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", project)
    reply = memory.memory_search("why is it off?")
    memory.memory_timeline(lived)
    memory.docs_search("herons")
    with closing(connect(str(data / "backstory.db"))) as db:
        db.execute("BEGIN IMMEDIATE")
        started = time.monotonic()
        assert memory.docs_search("storks")
        assert time.monotonic() - started < BUSY_SECONDS
    happened(data, project, "go on", session="session-2", at=int(time.time() * 1000) + 1_000)
    told = run("why", "session-2", "--json").json
    assert [(one["moment"], one["reason"]["tool"]) for one in told] == [
        ("search", "memory_search"),
        ("search", "memory_timeline"),
        ("search", "docs_search"),
    ]
    assert told[0]["text"] == reply and told[0]["about"] == "why is it off?"
    assert lived in told[0]["memory_ids"]


def test_a_payload_that_waits_is_counted(run: Run, data: Path, project: str, lived: str) -> None:
    put(data, prompt("one more") | {"session_id": "session-3", "cwd": project}, at=NOW)
    assert run("stats", "--json").json["captured"]["sessions"] == 3


def test_a_secret_in_what_was_told_is_redacted_with_everything_else(
    run: Run, data: Path, project: str, lived: str
) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    with closing(connect(str(data / "backstory.db"))) as db, transaction(db):
        here = projects.at(db, paths.place(project))
        assert here
        tellings.note(
            db, "s", here.id, "search", f"token {secret}", (), tokens=9, at=NOW, about=f"is it {secret}?"
        )
    assert run("redact", "--yes").code == 0
    assert secret.encode() not in (data / "backstory.db").read_bytes()
    assert "[redacted:" in run("why", "1").out
