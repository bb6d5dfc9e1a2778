"""The queue between the drain and the worker: what goes in, what never does, who may take it, how it ends."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.capture.event import CHANGE_LIMIT, EXCERPT_LIMIT, RESULT_LIMIT
from backstory.intake.item import QUEUED_LIMIT
from backstory.model import Item
from backstory.safety import fence
from backstory.safety.clean import CUT_MARGIN, TEXT_LIMIT
from backstory.store import life, queue, removal, sessions
from backstory.store.file.connection import connect, transaction
from tests.helpers.chaos import (
    DAY,
    MINUTE,
    NOW,
    Json,
    assert_sound,
    bash,
    contents,
    drain,
    event,
    failures,
    prompt,
    put,
    rows,
    spooled,
    start,
    suicidal_at_statement,
    tool_use,
)

HOUR = 60 * MINUTE
QUEUED = "SELECT * FROM observation_queue ORDER BY created_at_epoch, id"


def queued(data: Path, *payloads: Json) -> list[Json]:
    """What waits after these were drained, oldest first."""
    for number, payload in enumerate(payloads):
        put(data, payload, at=NOW - len(payloads) + number)
    drain(data)
    assert failures(data) == {}
    return [
        {**row, "given": json.loads(row["tool_input"]), "result": json.loads(row["tool_output"])}
        for row in rows(data, QUEUED)
    ]


def failed(tool: str, tool_input: Json, error: str) -> Json:
    return event("PostToolUseFailure", tool_name=tool, tool_input=tool_input, error=error)


# --- what goes in -------------------------------------------------------------------------------------------


def test_a_tool_use_is_queued_with_what_was_in_it_beside_the_memory_that_says_it_happened(data: Path) -> None:
    (row,) = queued(data, bash("pytest -q", stdout="2 failed"))
    (memory,) = rows(data, "SELECT id FROM memories")
    assert row["tool_name"] == "Bash"
    assert row["given"] == {"command": "pytest -q", "description": "a command"}
    assert (row["action"], row["result"]["output"]) == ("shell", "2 failed")
    assert (row["session_id"], row["memory_id"], row["created_at_epoch"]) == (
        "session-1",
        memory["id"],
        NOW - 1,
    )
    assert row["size"] == len(row["tool_input"]) + len(row["tool_output"])
    assert (row["attempts"], row["leased_until"], row["processed_at_epoch"]) == (0, 0, None)


@pytest.mark.parametrize(
    "tool", ["Bash", "Read", "Edit", "WebFetch", "Agent", "mcp__github__create_issue", "ToolSearch"]
)
def test_every_other_tool_is_worth_observing(tool: str, data: Path) -> None:
    (row,) = queued(data, tool_use(tool, {"command": "x", "query": "select:y"}, {"ok": True}))
    assert row["tool_name"] == tool


NOT_QUEUED: dict[str, Json] = {
    "Glob": tool_use("Glob", {"pattern": "*"}, {"filenames": ["a"]}),
    "Grep": tool_use("Grep", {"pattern": "x"}, {"content": "a:1:x"}),
    "ListMcpResourcesTool": tool_use("ListMcpResourcesTool", {}, []),
    "a failed Grep": failed("Grep", {"pattern": "("}, "regex parse error"),
    "our own tool": tool_use("mcp__plugin_backstory_memory__memory_search", {"query": "x"}, "[1] old"),
    "our own tool, too large": tool_use("mcp__backstory__memory_search", {"query": "x"}, "o" * 20_000),
    "our own tool, failed": failed("mcp__backstory__memory_add", {"content": "x"}, "no"),
    "how our own tools are found": tool_use("ToolSearch", {"query": "select:mcp__backstory__x"}, {}),
    "the echo of our CLI": bash("backstory search login", stdout="[1] an old memory"),
    "the echo of our CLI in a pipe": bash("cd x && backstory show mem_1 | head", stdout="an old memory"),
    "the echo of our CLI, failed": failed("Bash", {"command": "backstory search x && false"}, "old memory"),
    "our agent is started": tool_use("Agent", {"subagent_type": "backstory:memory-updater"}, {}),
    "our skill is loaded": tool_use("Skill", {"skill": "backstory:memory-processor"}, {}),
    "what our agent does": bash("git log -1", stdout="a commit", agent_type="backstory:memory-updater"),
    "a report of a background agent": prompt("<task-notification>\n<task-id>7</task-id> done"),
    "the same after blanks": prompt("\n <task-notification>done</task-notification>"),
    "an empty prompt": prompt(""),
    "an empty compaction": event("PostCompact", compact_summary=""),
    "the start of a session": event("SessionStart", source="startup"),
    "the end of a subagent": event("SubagentStop", last_assistant_message="found it"),
    "the end of a session": event("SessionEnd", reason="other"),
}


@pytest.mark.parametrize("payload", NOT_QUEUED.values(), ids=NOT_QUEUED.keys())
def test_what_there_is_nothing_to_learn_from_is_not_queued(payload: Json, data: Path) -> None:
    assert queued(data, payload) == []
    assert rows(data, "SELECT id FROM sessions") == [{"id": "session-1"}]


@pytest.mark.parametrize("name", ["our agent is started", "our skill is loaded", "what our agent does"])
def test_that_claude_md_is_kept_true_is_no_memory(name: str, data: Path) -> None:
    queued(data, NOT_QUEUED[name])
    assert contents(data) == []


def test_a_report_of_a_background_agent_is_not_what_the_user_said(data: Path) -> None:
    queued(data, prompt("<task-notification>the background agent has ended well</task-notification>"))
    assert contents(data) == []
    assert rows(data, "SELECT 1 FROM prompts") == []
    assert rows(data, "SELECT user_prompt FROM sessions") == [{"user_prompt": None}]


def test_a_prompt_is_queued_and_its_memory_is_the_turn(data: Path) -> None:
    first, second = queued(data, prompt("why do invoices lose a cent?"), prompt("go on"))
    assert (first["tool_name"], first["given"]) == ("PROMPT", {"prompt": "why do invoices lose a cent?"})
    assert (second["given"], second["memory_id"]) == ({"prompt": "go on"}, None)
    assert [row["kind"] for row in rows(data, "SELECT kind FROM memories")] == ["turn"]


def test_the_marks_of_a_session(data: Path) -> None:
    found = queued(
        data,
        event("PreCompact", trigger="auto", custom_instructions=""),
        event("PostCompact", compact_summary="We moved the parser."),
        event("Stop", last_assistant_message="The parser is moved.", stop_hook_active=False),
        event("Stop"),
    )
    assert [(row["tool_name"], row["given"], row["result"]) for row in found] == [
        ("CHECKPOINT", {}, {}),
        ("COMPACT", {"summary": "We moved the parser."}, {}),
        ("FINALIZE", {}, {"last_message": "The parser is moved."}),
        ("FINALIZE", {}, {"last_message": ""}),
    ]
    assert [row["memory_id"] for row in found] == [None] * 4


def test_a_failure_is_queued_with_its_error(data: Path) -> None:
    (row,) = queued(data, failed("Bash", {"command": "make"}, "Exit code 2\nno rule"))
    assert (row["tool_name"], row["given"]) == ("Bash", {"command": "make"})
    assert row["result"] == {"error": "Exit code 2\nno rule"}
    assert row["memory_id"] is not None


def test_a_result_over_10_kb_makes_no_memory_but_is_queued_cut_in_the_middle_with_its_size(
    data: Path,
) -> None:
    output = "first line\n" + "x" * 40_000 + "\nlast line"
    (row,) = queued(data, bash("cat big.log", stdout=output, stderr="a warning"))
    assert contents(data) == []
    assert row["memory_id"] is None
    shown = row["result"]["output"]
    assert shown.startswith("first line\n") and shown.endswith("\nlast line")
    assert "characters left out ...]" in shown and f"of {len(output):,} characters" in shown
    assert len(shown) < EXCERPT_LIMIT + 100
    assert row["result"]["errors"] == "a warning"
    assert row["size"] < 10_000


def test_a_result_at_the_limit_is_a_memory_and_one_sign_more_is_not(data: Path) -> None:
    quotes = len('""')
    at, above = (tool_use("Custom", {"n": n}, "x" * (RESULT_LIMIT - quotes + n)) for n in (0, 1))
    first, second = queued(data, at, above)
    assert first["memory_id"] is not None and second["memory_id"] is None
    assert "left out" in second["result"] and "left out" not in first["result"]


def test_a_huge_tree_is_queued_as_far_as_the_room_goes(data: Path) -> None:
    (row,) = queued(data, tool_use("Custom", {"a": 1}, [{"text": "y" * 300, "n": n} for n in range(5_000)]))
    assert row["size"] < 20_000
    assert row["result"][0] == {"text": "y" * 300, "n": 0}


@pytest.mark.parametrize(
    ("tool", "given_fields", "kept"),
    [
        (
            "Edit",
            {"file_path": "/p/a.py", "old_string": "total = round(x)", "new_string": "total = x"},
            {"old": "total = round(x)", "new": "total = x"},
        ),
        ("Write", {"file_path": "/p/a.py", "content": "alpha\nbeta\n"}, {"content": "alpha\nbeta\n"}),
        (
            "MultiEdit",
            {"file_path": "/p/a.py", "edits": [{"old_string": "a", "new_string": "b"}]},
            {"edits": [{"old": "a", "new": "b"}]},
        ),
        (
            "NotebookEdit",
            {"notebook_path": "/p/a.py", "new_source": "print(2)"},
            {"content": "print(2)"},
        ),
    ],
)
def test_an_edit_keeps_what_it_wrote_for_synthesis_and_not_for_the_memory(
    tool: str, given_fields: Json, kept: Json, data: Path
) -> None:
    (row,) = queued(data, tool_use(tool, given_fields, {"filePath": "/p/a.py"}))
    assert row["given"] == {"path": "/p/a.py", **kept}
    assert contents(data)[0].splitlines()[1:] == [f"{'Wrote' if tool == 'Write' else 'Edited'} file: /p/a.py"]


def test_what_an_edit_wrote_is_cut_in_the_middle(data: Path) -> None:
    old, new = "def old():\n" + "o" * 9_000 + "\n# end of old", "n" * 9_000 + "\n# end of new"
    (row,) = queued(data, tool_use("Edit", {"file_path": "/a", "old_string": old, "new_string": new}, {}))
    assert row["given"]["old"].startswith("def old():") and row["given"]["old"].endswith("# end of old")
    assert row["given"]["new"].endswith("# end of new")
    for text in (row["given"]["old"], row["given"]["new"]):
        assert "characters left out" in text and len(text) < CHANGE_LIMIT + 100


def test_a_long_prompt_is_queued_cut_and_the_store_has_it_whole(data: Path) -> None:
    said = "please mend it " + "z" * 30_000 + " and then release"
    (row,) = queued(data, prompt(said))
    assert row["given"]["prompt"].startswith("please mend it") and row["given"]["prompt"].endswith("release")
    assert len(row["given"]["prompt"]) < QUEUED_LIMIT + 100
    assert rows(data, "SELECT prompt FROM prompts") == [{"prompt": said}]


def test_numbers_that_json_does_not_have_are_no_reason_to_lose_the_event(data: Path) -> None:
    (row,) = queued(data, tool_use("Custom", {"n": float("nan")}, {"m": float("-inf"), "k": 1}))
    assert row["result"]["k"] == 1
    assert len(contents(data)) == 1


@pytest.mark.parametrize("result", [None, "", 7, [], {}, True, "text", ["a", None]])
def test_a_result_of_any_shape_is_queued_as_it_is(result: object, data: Path) -> None:
    (row,) = queued(data, tool_use("Custom", {}, result))
    assert row["result"] == result and row["given"] == {}


# --- what never goes in -------------------------------------------------------------------------------------

TOKEN = "ghp_" + "Q7z" * 12
KEY = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQ7zQ7zQ7zQ7z\n" * 40 + "-----END PRIVATE KEY-----"
PRIVATE = "<private>" + "Q7z whispers " * 60 + "</private>"
LONG_PRIVATE = "<private>" + "Q7z whispers " * 900 + "</private>"
FENCED = fence.fence("Q7z is what memory says. " * 60, "backstory memory")
SECRETS = {
    "a token": TOKEN,
    "a key": KEY,
    "a private passage": PRIVATE,
    "a private passage longer than any cut": LONG_PRIVATE,
    "what was recalled": FENCED,
}
CUTS = (
    CHANGE_LIMIT // 2,
    CHANGE_LIMIT,
    EXCERPT_LIMIT // 2,
    EXCERPT_LIMIT,
    QUEUED_LIMIT // 2,
    TEXT_LIMIT,
    TEXT_LIMIT + CUT_MARGIN,
    24_000,
    100_000,
)


def hidden(secret: str, before: int, behind: int) -> str:
    return "word " * (before // 5) + "." * (before % 5) + " " + secret + " " + "word " * (behind // 5)


def carriers(text: str) -> list[Json]:
    """Every way in that a text has."""
    return [
        bash("cat x", stdout=text),
        bash(text, stdout="ok"),
        bash("cat x", stderr=text, stdout="x" * 12_000),
        failed("Bash", {"command": "x"}, text),
        tool_use("Edit", {"file_path": "/a", "old_string": text, "new_string": text}, {"oldString": text}),
        tool_use("Write", {"file_path": "/a", "content": text}, {}),
        tool_use("MultiEdit", {"file_path": "/a", "edits": [{"old_string": "a", "new_string": text}]}, {}),
        tool_use("Custom", {"deep": [{"er": text}], text[:150]: 1}, [{"type": "text", "text": text}]),
        prompt(text),
        event("Stop", last_assistant_message=text),
        event("PostCompact", compact_summary=text),
    ]


@pytest.mark.slow
@settings(max_examples=40)
@given(
    name=st.sampled_from(sorted(SECRETS)),
    cut=st.sampled_from(CUTS),
    offset=st.integers(-2_000, 50),
    behind=st.sampled_from([0, 700, 3_000, 30_000]),
    from_the_end=st.booleans(),
)
def test_no_secret_reaches_the_queue_wherever_the_cuts_fall(
    name: str, cut: int, offset: int, behind: int, from_the_end: bool
) -> None:
    before, after = (behind, max(0, cut + offset)) if from_the_end else (max(0, cut + offset), behind)
    text = hidden(SECRETS[name], before, after)
    folder = Path(tempfile.mkdtemp())
    try:
        for payload in carriers(text):
            put(folder, payload)
        drain(folder)
        assert failures(folder) == {}
        found = rows(folder, "SELECT tool_name, tool_input, tool_output FROM observation_queue")
        assert len(rows(folder, "SELECT 1 FROM events")) == len(carriers(text))
        leaking = [row["tool_name"] for row in found if "Q7z" in row["tool_input"] + row["tool_output"]]
        assert leaking == []
    finally:
        shutil.rmtree(folder)


def test_a_value_is_known_as_a_secret_by_the_name_beside_it(data: Path) -> None:
    given_fields = {"password": "hunter2-Q7z", "nested": {"api_key": "Q7z9f8e7d6c5b4a3"}, "user": "me"}
    (row,) = queued(data, tool_use("Custom", given_fields, {"secret": "Q7z-0987654321-abc", "ok": True}))
    assert "Q7z" not in row["tool_input"] + row["tool_output"]
    assert row["given"]["user"] == "me" and row["result"]["ok"] is True


def test_a_marker_that_breaks_the_json_leaves_text_and_no_secret(data: Path) -> None:
    """Whatever redaction does to the JSON of an item, the item stays readable."""
    odd = {"a": 'password="', "b": "Q7z-hunter2-secret", "c": "token: '", "d": "Q7z0987654321abcdef"}
    (row,) = queued(data, tool_use("Custom", odd, odd))
    assert isinstance(row["given"], dict)


# --- once, in order, with the memory ------------------------------------------------------------------------


def test_draining_an_event_twice_queues_it_once(data: Path) -> None:
    for payload in (twice := bash("make")), twice, (said := prompt("build it now please")), said:
        put(data, payload)
    drain(data)
    for payload in (twice, said):
        put(data, payload)
    drain(data)
    assert sorted(row["tool_name"] for row in rows(data, QUEUED)) == ["Bash", "PROMPT"]


def test_what_was_drained_late_takes_its_place_by_time(data: Path) -> None:
    put(data, bash("third"), at=NOW - 1)
    put(data, event("Stop"), at=NOW)
    drain(data)
    put(data, bash("first"), at=NOW - 3)
    put(data, bash("second"), at=NOW - 2)
    drain(data)
    with closing(connect(str(data / "backstory.db"))) as db:
        items = queue.claim(db, "session-1", NOW, "lease")
    assert [item.input.get("command", item.tool) for item in items] == [
        "first",
        "second",
        "third",
        "FINALIZE",
    ]


@pytest.mark.parametrize(
    "statement",
    ["INSERT INTO memories ", "INSERT INTO observation_queue", "COMMIT"],
    ids=lambda s: s.split()[-1],
)
def test_an_event_is_queued_with_its_memory_or_not_at_all(statement: str, data: Path) -> None:
    connect(str(data / "backstory.db")).close()
    put(data, bash("echo once"))
    with start(suicidal_at_statement(statement, 1), str(data)) as process:
        process.communicate(timeout=30)
    assert process.returncode == -9
    assert (
        rows(data, QUEUED) == rows(data, "SELECT * FROM memories") == rows(data, "SELECT * FROM events") == []
    )
    assert len(spooled(data)) == 1
    drain(data)
    assert len(rows(data, QUEUED)) == len(contents(data)) == 1
    assert_sound(data)


def test_an_event_that_the_queue_refuses_leaves_no_memory_behind(data: Path) -> None:
    with closing(connect(str(data / "backstory.db"))) as db:
        db.execute(
            "CREATE TRIGGER refused BEFORE INSERT ON observation_queue WHEN new.tool_name = 'Odd'"
            " BEGIN SELECT raise(ABORT, 'not this one'); END"
        )
    name = put(data, tool_use("Odd", {}, {}), at=NOW - 2)
    put(data, bash("echo behind"), at=NOW - 1)
    drain(data)
    assert failures(data) == {name: "could not be stored: IntegrityError: not this one"}
    assert len(contents(data)) == len(rows(data, QUEUED)) == 1


# --- who may take it ----------------------------------------------------------------------------------------


@pytest.fixture
def store(data: Path) -> Iterator[sqlite3.Connection]:
    with closing(connect(str(data / "backstory.db"))) as db:
        yield db


class Desk:
    """A store, and sessions of one project in it."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        db.execute(
            "INSERT INTO projects (id, identity, name, root, created_at) VALUES ('p', 'p', 'p', '/p', 0),"
            " ('q', 'q', 'q', '/q', 0)"
        )

    def session(self, session_id: str, *, project: str = "p", started: int = 0, last: int = NOW) -> None:
        self.db.execute(
            "INSERT INTO sessions (id, project_id, cwd, started_at, last_event_at, number)"
            " SELECT ?, ?, '/', ?, ?, coalesce(max(number), 0) + 1 FROM sessions",
            (session_id, project, started, last),
        )

    def put(
        self, session_id: str, *tools: str, at: int = NOW, size: int = 0, memory_id: str | None = None
    ) -> list[int]:
        before = self.db.execute("SELECT coalesce(max(id), 0) FROM observation_queue").fetchone()[0]
        given = json.dumps({"x": "x" * (size - 10)}) if size else "{}"
        for tool in tools:
            queue.put(self.db, session_id, tool, given, "{}", at, memory_id)
        return list(range(before + 1, before + 1 + len(tools)))

    def due(self, now: int = NOW) -> list[str]:
        return queue.due(self.db, now, "auto")

    def claim(self, session_id: str, now: int = NOW) -> list[int]:
        return [item.id for item in queue.claim(self.db, session_id, now, "lease")]

    def row(self, item_id: int) -> Json:
        return dict(self.db.execute("SELECT * FROM observation_queue WHERE id = ?", (item_id,)).fetchone())

    def rows(self, ids: Sequence[int], field: str) -> list[object]:
        return [self.row(item_id)[field] for item_id in ids]


@pytest.fixture
def desk(store: sqlite3.Connection) -> Desk:
    return Desk(store)


def test_a_few_tool_uses_of_a_turn_that_goes_on_are_not_due(desk: Desk) -> None:
    desk.session("a")
    desk.put("a", "PROMPT", "Bash", "Edit", "COMPACT")
    assert desk.due() == []


@pytest.mark.parametrize("mark", ["FINALIZE", "CHECKPOINT"])
def test_a_mark_makes_a_session_due(mark: str, desk: Desk) -> None:
    desk.session("a")
    desk.put("a", "Bash", mark)
    assert desk.due() == ["a"]


def test_so_much_makes_a_session_due_before_the_turn_has_ended(desk: Desk) -> None:
    desk.session("a")
    desk.put("a", *["Bash"] * 4, size=queue.BATCH_CHARS // 4 - 2)
    assert desk.due() == []
    desk.put("a", "Bash", size=100)
    assert desk.due() == ["a"]


def test_so_many_make_a_session_due_before_the_turn_has_ended(desk: Desk) -> None:
    desk.session("a")
    desk.put("a", *["Bash"] * (queue.BATCH_ITEMS - 1))
    assert desk.due() == []
    desk.put("a", "Bash")
    assert desk.due() == ["a"]


def test_a_session_that_fell_silent_is_due(desk: Desk) -> None:
    desk.session("a")
    desk.put("a", "Bash")
    assert desk.due(NOW + queue.SILENT_MS) == []
    assert not queue.is_over(desk.db, "a", NOW + queue.SILENT_MS)
    assert desk.due(NOW + queue.SILENT_MS + 1) == ["a"]
    assert queue.is_over(desk.db, "a", NOW + queue.SILENT_MS + 1)


@pytest.mark.parametrize("status", ["completed", "interrupted"])
def test_a_session_that_ended_is_due(status: str, desk: Desk) -> None:
    desk.session("a")
    desk.put("a", "Bash")
    desk.db.execute("UPDATE sessions SET status = ?, ended_at = ?", (status, NOW))
    assert desk.due() == ["a"] and queue.is_over(desk.db, "a", NOW)


def test_a_later_session_of_the_project_makes_the_one_before_due_and_no_other_does(desk: Desk) -> None:
    desk.session("a", last=NOW - 5)
    desk.put("a", "Bash")
    desk.session("beside", started=NOW - 6)
    desk.session("elsewhere", project="q", started=NOW)
    assert desk.due() == [] and not queue.is_over(desk.db, "a", NOW)
    desk.session("later", started=NOW - 4)
    desk.put("later", "PROMPT")
    assert desk.due() == ["a"] and queue.is_over(desk.db, "a", NOW)


def test_the_longest_waiting_session_comes_first(desk: Desk) -> None:
    for name, at in (("young", NOW - 1), ("old", NOW - 9), ("middle", NOW - 5)):
        desk.session(name)
        desk.put(name, "FINALIZE", at=at)
    assert desk.due() == ["old", "middle", "young"]


def test_a_session_of_which_nothing_waits_is_not_due(desk: Desk) -> None:
    desk.session("a", last=0)
    ids = desk.put("a", "Bash", "FINALIZE")
    queue.done(desk.db, ids[:1], "local", NOW)
    queue.skip(desk.db, ids[1:], "because", NOW)
    assert desk.due() == []
    assert queue.is_over(desk.db, "nobody", NOW) is False


def test_what_is_leased_is_not_due_until_the_lease_runs_out(desk: Desk) -> None:
    desk.session("a")
    ids = desk.put("a", "Bash", "FINALIZE")
    assert desk.claim("a") == ids
    later = desk.put("a", "FINALIZE")
    assert desk.due() == [] and desk.due(NOW + queue.LEASE_MS - 1) == []
    assert desk.claim("a", NOW + queue.LEASE_MS - 1) == later
    assert desk.due(NOW + 2 * queue.LEASE_MS) == ["a"]
    assert desk.claim("a", NOW + 2 * queue.LEASE_MS) == ids
    assert desk.claim("a", NOW + 2 * queue.LEASE_MS) == later


def test_what_backs_off_is_not_due_until_then_also_when_more_comes(desk: Desk) -> None:
    desk.session("a")
    until = queue.defer(desk.db, desk.put("a", "FINALIZE"), "rate", NOW)
    desk.put("a", "Bash", "FINALIZE", at=NOW + 1)
    assert desk.due(until - 1) == []
    assert desk.due(until) == ["a"]


# --- a claim and how it ends --------------------------------------------------------------------------------


def test_a_claim_leases_the_items_and_is_an_attempt(desk: Desk) -> None:
    desk.session("a")
    desk.session("b")
    ids = desk.put("a", "PROMPT", "FINALIZE")
    other = desk.put("b", "Bash")
    items = queue.claim(desk.db, "a", NOW, "lease")
    assert items[0] == Item(ids[0], "a", "PROMPT", {}, {}, NOW, None)
    assert desk.rows(ids, "leased_until") == [NOW + queue.LEASE_MS] * 2
    assert desk.rows(ids + other, "attempts") == [1, 1, 0]
    assert desk.claim("a") == []


def test_a_claim_takes_the_oldest_and_no_more_than_a_batch(desk: Desk) -> None:
    desk.session("a")
    ids = desk.put("a", *["Bash"] * (queue.BATCH_ITEMS + 4), "FINALIZE")
    assert desk.claim("a") == ids[: queue.BATCH_ITEMS]
    assert queue.more_waits(desk.db, "a", ids[: queue.BATCH_ITEMS])
    assert desk.claim("a") == ids[queue.BATCH_ITEMS :]
    assert not queue.more_waits(desk.db, "a", ids)


@pytest.mark.parametrize("mark", queue.MARKS)
def test_a_claim_takes_one_turn(mark: str, desk: Desk) -> None:
    desk.session("a")
    first = desk.put("a", "PROMPT", "Bash", mark)
    second = desk.put("a", "PROMPT", "FINALIZE")
    assert desk.claim("a") == first
    assert desk.claim("a") == second
    third = desk.put("a", mark, "PROMPT", "Bash")
    assert desk.claim("a") == third[:1]


def test_a_claim_takes_no_more_than_a_model_can_read_and_one_that_is_larger_alone(desk: Desk) -> None:
    desk.session("a")
    large = desk.put("a", "Bash", size=2 * queue.BATCH_CHARS)
    ids = desk.put("a", *["Bash"] * 4, "FINALIZE", size=queue.BATCH_CHARS // 4)
    assert desk.claim("a") == large
    assert desk.claim("a") == ids[:3]
    assert desk.claim("a") == ids[3:]


def test_in_the_middle_of_a_turn_the_newest_item_stays_to_ask_for_a_summary_later(desk: Desk) -> None:
    desk.session("a")
    ids = desk.put("a", "PROMPT", "Bash", "Edit", size=queue.BATCH_CHARS * 2 // 5)
    assert desk.due() == ["a"]
    assert desk.claim("a") == ids[:2]
    queue.done(desk.db, ids[:2], "local", NOW)
    assert desk.due() == []
    assert desk.due(NOW + queue.SILENT_MS + 1) == ["a"]  # the session died
    assert desk.claim("a", NOW + queue.SILENT_MS + 1) == ids[2:]


def test_one_item_that_makes_a_batch_alone_does_not_wait(desk: Desk) -> None:
    desk.session("a")
    ids = desk.put("a", "Bash", size=queue.BATCH_CHARS)
    assert desk.due() == ["a"]
    assert desk.claim("a") == ids


def test_a_lease_that_is_given_back_was_no_attempt(desk: Desk) -> None:
    desk.session("a")
    ids = desk.put("a", "FINALIZE")
    for _ in range(5):
        assert desk.claim("a") == ids
        queue.give_back(desk.db, desk.row(ids[0])["lease"])
    assert (desk.row(ids[0])["attempts"], desk.row(ids[0])["leased_until"]) == (0, 0)
    assert desk.due() == ["a"]


def test_a_model_that_is_away_is_asked_again_each_time_twice_as_late_and_that_is_no_attempt(
    desk: Desk,
) -> None:
    desk.session("a")
    ids = desk.put("a", "Bash", "FINALIZE")
    waits, now = [], NOW
    for _ in range(14):
        assert desk.claim("a", now) == ids
        until = queue.defer(desk.db, ids, "429", now)
        assert desk.claim("a", until - 1) == []
        waits.append(until - now)
        now = until
    assert waits == [5_000 * 2**n for n in range(10)] + [3_600_000] * 4
    assert desk.rows(ids, "attempts") == [0, 0]
    assert desk.rows(ids, "trouble") == ["429", "429"]


def test_a_model_that_says_when_is_not_asked_before(desk: Desk) -> None:
    desk.session("a")
    ids = desk.put("a", "FINALIZE")
    assert queue.defer(desk.db, ids, "429", NOW, at_least_ms=90_000) == NOW + 90_000
    assert desk.due(NOW + 89_999) == [] and desk.due(NOW + 90_000) == ["a"]
    assert queue.defer(desk.db, ids, "429", NOW, at_least_ms=3_000) == NOW + 10_000


def test_an_attempt_that_came_to_nothing_is_repeated_and_the_third_is_the_last(desk: Desk) -> None:
    desk.session("a")
    ids = desk.put("a", "Bash", "FINALIZE")
    for _ in range(2):
        desk.claim("a")
        assert queue.fail(desk.db, ids, "garbage") == []
        assert desk.due() == ["a"]
    desk.claim("a")
    assert queue.fail(desk.db, ids, "garbage") == ids
    assert desk.rows(ids, "leased_until") == [NOW + queue.LEASE_MS] * 2, "the caller decides about them"
    queue.skip(desk.db, ids, "garbage", NOW)
    assert desk.due() == [] and desk.claim("a", NOW + DAY) == []
    assert desk.rows(ids, "skipped") == ["garbage", "garbage"]
    assert desk.rows(ids, "processed_by") == [None, None]
    assert queue.skipped(desk.db) == [("garbage", 2)]


def test_of_a_batch_only_those_are_given_up_that_had_all_their_attempts(desk: Desk) -> None:
    desk.session("a")
    old = desk.put("a", "Bash", size=queue.BATCH_CHARS)
    for _ in range(2):
        queue.fail(desk.db, desk.claim("a"), "garbage")
    young = desk.put("a", "FINALIZE")
    assert desk.claim("a") == old
    queue.give_back(desk.db, "lease")
    desk.db.execute("UPDATE observation_queue SET size = 2 WHERE id = ?", old)
    assert desk.claim("a") == old + young
    assert queue.fail(desk.db, old + young, "garbage") == old
    queue.skip(desk.db, old, "garbage", NOW)
    assert desk.claim("a") == young


def test_a_new_worker_takes_over_what_a_dead_one_had(desk: Desk) -> None:
    desk.session("a")
    ids = desk.put("a", "FINALIZE")
    desk.claim("a")
    assert desk.due() == []
    queue.take_over(desk.db, NOW)
    assert desk.due() == ["a"] and desk.claim("a") == ids


def test_what_took_three_workers_down_is_skipped_with_the_reason(desk: Desk) -> None:
    desk.session("a")
    ids = desk.put("a", "FINALIZE")
    fresh: list[int] = []
    for _ in range(3):
        fresh = desk.put("a", "Bash")
        desk.claim("a")
        queue.take_over(desk.db, NOW)
    assert desk.rows(ids, "skipped") == ["the worker ended three times while it was at it"]
    assert desk.rows(fresh, "skipped") == [None]


def test_what_was_observed_says_by_whom_and_why_not_by_the_model(desk: Desk) -> None:
    desk.session("a")
    first, second, third = desk.put("a", "Bash", "Bash", "FINALIZE")
    desk.claim("a")
    queue.done(desk.db, [first], "claude", NOW)
    queue.done(desk.db, [second], "local", NOW, "the cap is reached")
    queue.defer(desk.db, [third], "no login", NOW)
    assert [item.id for item in queue.earlier(desk.db, "a")] == [first, second]
    troubles = {trouble[:3] for trouble in queue.troubles(desk.db)}
    assert troubles == {("waiting", "no login", 1), ("local", "the cap is reached", 1)}
    assert queue.waiting(desk.db) == (1, NOW)
    assert desk.row(first)["leased_until"] == 0


def test_what_was_skipped_is_not_what_happened_before(desk: Desk) -> None:
    desk.session("a")
    first, second = desk.put("a", "Bash", "Bash")
    queue.skip(desk.db, [first], "garbage", NOW)
    queue.done(desk.db, [second], "local", NOW)
    assert [item.id for item in queue.earlier(desk.db, "a")] == [second]


def test_what_was_observed_goes_after_a_week_and_what_waits_stays(desk: Desk) -> None:
    desk.session("a")
    old, young, waits = desk.put("a", "Bash", "Bash", "Bash")
    queue.done(desk.db, [old], "local", NOW - queue.KEPT_MS - 1)
    queue.skip(desk.db, [young], "x", NOW - queue.KEPT_MS)
    queue.tidy(desk.db, NOW)
    left = [row["id"] for row in desk.db.execute("SELECT id FROM observation_queue")]
    assert left == [young, waits]


# --- forgetting ---------------------------------------------------------------------------------------------


def waiting_memory(data: Path) -> str:
    (row,) = queued(data, bash("cat plan", stdout="the plan"))
    return str(row["memory_id"])


def test_what_is_forgotten_while_it_waits_is_not_observed(data: Path) -> None:
    memory_id = waiting_memory(data)
    with closing(connect(str(data / "backstory.db"))) as db:
        with transaction(db):
            life.forget(db, memory_id, None, NOW)
        assert queue.claim(db, "session-1", NOW, "lease") == []
        assert queue.waiting(db) == (0, None)
        assert queue.skipped(db) == [], "that was no failure"
        with transaction(db):
            life.restore(db, memory_id, None, NOW)
        assert queue.waiting(db)[0] == 1


def test_what_is_forgotten_while_a_worker_has_it_stays_skipped(data: Path) -> None:
    memory_id = waiting_memory(data)
    with closing(connect(str(data / "backstory.db"))) as db:
        ids = [item.id for item in queue.claim(db, "session-1", NOW, "lease")]
        with transaction(db):
            life.forget(db, memory_id, None, NOW)
            queue.done(db, ids, "local", NOW)
        assert queue.observed(db, 0) == {}
        assert queue.earlier(db, "session-1") == []


def test_what_is_erased_is_gone_from_the_queue_as_well(data: Path) -> None:
    memory_id = waiting_memory(data)
    with closing(connect(str(data / "backstory.db"))) as db:
        removal.erase_memory(db, memory_id, NOW)
    assert rows(data, QUEUED) == []


def test_a_session_that_is_purged_takes_its_items_along(data: Path) -> None:
    waiting_memory(data)
    with closing(connect(str(data / "backstory.db"))) as db, transaction(db):
        sessions.purge(db, "session-1")
    assert rows(data, QUEUED) == []


def test_of_a_long_last_message_the_end_is_kept_too(data: Path) -> None:
    said = "First I looked around. " + "Then this and that. " * 1_000 + "The cause was the clock."
    put(data, event("Stop", last_assistant_message=said))
    drain(data)
    kept = json.loads(rows(data, "SELECT tool_output FROM observation_queue")[0]["tool_output"])
    assert kept["last_message"].startswith("First I looked around.")
    assert kept["last_message"].endswith("The cause was the clock.")
    assert len(kept["last_message"]) < 8_100
