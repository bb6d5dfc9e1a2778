"""The worker on a real store; only the model is scripted: what it is asked, what becomes of its answers, and
what happens when there are none."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from backstory.intake.drain import open_store
from backstory.model import Batch, Findings, Observation, Spent, Summary
from backstory.store import life, queue, sessions
from backstory.store.file import backup, recovery
from backstory.store.file.connection import connect, transaction
from backstory.synthesis.batch import KNOWN
from backstory.synthesis.protocol import Away, Malformed
from backstory.synthesis.runner import AT_ONCE, PATIENCE_MS, Settings, Worker
from tests.helpers.chaos import (
    DAY,
    MINUTE,
    NOW,
    Json,
    assert_sound,
    bash,
    event,
    log_text,
    prompt,
    put,
    rows,
    tool_use,
)

ROOT = "/somewhere/project"
TOLD = Summary(
    request="Find the lost cent",
    investigated="invoice.py",
    learned="Rounding happens twice",
    completed="The sum is rounded once",
    next_steps="Release",
    files_read=("made/up.py",),
    files_edited=("made/up/too.py",),
    notes="",
)
COST = Spent("haiku", 1, 1_000, 200, 300, 50, 0.25)
FIX = Observation("bugfix", "Fixed the lost cent", "The sum is rounded now, and not each line.")

Reply = Findings | BaseException | Callable[[Batch], Findings]


class Scripted:
    """A synthesizer that says what it was told to, and then nothing of note."""

    def __init__(self, name: str, *replies: Reply, seconds: float = 0.0) -> None:
        self.name = name
        self.replies = list(replies)
        self.seconds = seconds
        self.batches: list[Batch] = []
        self.closed: list[str | None] = []
        self.at_once: list[list[str]] = []  # which sessions it was at, each time one began
        self._busy: list[str] = []

    async def observe(self, batch: Batch) -> Findings:
        self.batches.append(batch)
        self._busy.append(batch.session.id)
        self.at_once.append(sorted(self._busy))
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self._busy.remove(batch.session.id)
        reply: Reply = self.replies.pop(0) if self.replies else Findings()
        if isinstance(reply, BaseException):
            raise reply
        found = reply(batch) if callable(reply) else reply
        return found if batch.wants_summary else replace(found, summary=None)

    async def close(self, session_id: str | None = None) -> None:
        self.closed.append(session_id)


@dataclass
class Desk:
    data: Path
    now: int = NOW
    tick: int = 0  # milliseconds that pass between two looks at the clock
    local: Scripted = field(default_factory=lambda: Scripted("local"))

    def happened(self, *payloads: Json, session: str = "session-1", at: int | None = None) -> None:
        """A millisecond apart, the last one now."""
        last = self.now if at is None else at
        for number, payload in enumerate(payloads):
            put(self.data, {**payload, "session_id": session}, at=last - len(payloads) + 1 + number)

    def clock(self) -> int:
        self.now += self.tick
        return self.now

    def worker(self, claude: Scripted | None, mode: str, daily_usd: float, missing: str = "") -> Worker:
        return Worker(
            lambda: open_store(str(self.data), now=self.now, seconds=2.0),
            Settings(mode, daily_usd, 0.0),
            local=self.local,
            claude=claude,
            missing=missing,
            clock=self.clock,
        )

    def work(
        self,
        claude: Scripted | None = None,
        *,
        mode: str = "claude",
        daily_usd: float = 1.0,
        missing: str = "",
    ) -> None:
        """Until nothing is due."""

        async def bounded() -> None:
            async with asyncio.timeout(20):
                await self.worker(claude, mode, daily_usd, missing).run()

        asyncio.run(bounded())

    def observed(self, *findings: Reply, mode: str = "claude") -> Scripted:
        """What happened, seen by a model that answers like this."""
        model = Scripted("claude", *findings)
        self.work(model, mode=mode)
        return model

    def rows(self, sql: str, *values: object) -> list[Json]:
        return rows(self.data, sql, *values)

    def memories(self, kind: str) -> list[Json]:
        return self.rows("SELECT * FROM memories WHERE kind = ? ORDER BY row", kind)

    def queue(self, *fields: str) -> list[tuple[Any, ...]]:
        found = self.rows("SELECT * FROM observation_queue ORDER BY created_at_epoch, id")
        return [tuple(row[field] for field in fields) for row in found]

    def trace(self, command: str) -> Json:
        (row,) = self.rows("SELECT * FROM memories WHERE content LIKE ?", f"%Command: {command}%")
        return row


@pytest.fixture
def desk(data: Path) -> Desk:
    return Desk(data)


STOP = event("Stop", last_assistant_message="The cent is back.")
END = event("SessionEnd", reason="other")


def edit(file: str = f"{ROOT}/shop/invoice.py") -> Json:
    return tool_use("Edit", {"file_path": file, "old_string": "a", "new_string": "b"}, {"filePath": file})


# --- one transaction ----------------------------------------------------------------------------------------


def test_findings_summary_cost_and_observed_are_stored_together(desk: Desk) -> None:
    desk.happened(prompt("why do invoices lose a cent?"), edit(), STOP)
    desk.observed(Findings((FIX,), TOLD, COST))
    (fix,) = desk.memories("bugfix")
    assert (fix["title"], fix["content"], fix["session_id"]) == (FIX.title, FIX.text, "session-1")
    assert fix["created_at"] == NOW
    assert len(desk.memories("summary")) == len(desk.rows("SELECT * FROM session_summaries")) == 1
    (cost,) = desk.rows("SELECT * FROM spend")
    assert (cost["session_id"], cost["model"], cost["usd"], cost["cache_write_tokens"]) == (
        "session-1",
        "haiku",
        0.25,
        300,
    )
    assert (
        desk.queue("processed_by", "processed_at_epoch", "skipped", "trouble", "leased_until")
        == [("claude", NOW, None, None, 0)] * 3
    )
    links = desk.rows("SELECT usage_type FROM session_memories WHERE memory_id = ?", fix["id"])
    assert [row["usage_type"] for row in links] == ["created"]
    assert_sound(desk.data)


@pytest.mark.parametrize(
    ("table", "when"),
    [
        ("INSERT ON session_summaries", "1"),
        ("INSERT ON spend", "1"),
        ("UPDATE ON observation_queue", "new.processed_by IS NOT NULL"),
    ],
)
def test_what_cannot_be_stored_whole_is_not_stored_at_all(table: str, when: str, desk: Desk) -> None:
    with closing(connect(str(desk.data / "backstory.db"))) as db:
        db.execute(
            f"CREATE TRIGGER refused BEFORE {table} WHEN {when} BEGIN SELECT raise(ABORT, 'no room'); END"
        )
    desk.happened(edit(), STOP)
    desk.observed(*[Findings((FIX,), TOLD, COST)] * 3)
    assert desk.memories("bugfix") == desk.memories("summary") == []
    assert len(desk.rows("SELECT * FROM spend")) == (0 if "spend" in table else 3), "the money is gone"
    assert desk.rows("SELECT * FROM session_summaries") == []
    assert all("no room" in row[0] for row in desk.queue("skipped"))
    assert_sound(desk.data)


def test_a_store_that_is_locked_or_full_is_no_fault_of_what_waits(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backstory.store.file.connection.BUSY_SECONDS", 0.05)
    desk.happened(edit(), STOP)

    def busy(batch: Batch) -> Findings:
        other.execute("BEGIN IMMEDIATE")
        return Findings((FIX,), TOLD)

    with closing(connect(str(desk.data / "backstory.db"))) as other:
        for _ in range(4):
            assert len(desk.observed(busy).batches) == 1, "no use to try again at once"
            other.execute("ROLLBACK")
            assert desk.queue("processed_at_epoch") == [(None,)] * 2
            with transaction(other):
                other.execute("UPDATE observation_queue SET attempts = attempts - 1 WHERE leased_until > 0")
    assert "was busy" in log_text(desk.data)
    desk.observed(Findings((FIX,), TOLD))
    assert len(desk.memories("bugfix")) == 1
    assert desk.queue("skipped", "processed_by") == [(None, "claude")] * 2


def test_what_was_paid_is_booked_though_the_store_was_locked_when_the_answer_came(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backstory.store.file.connection.BUSY_SECONDS", 0.05)
    desk.happened(edit(), STOP)

    async def run(other: sqlite3.Connection) -> None:
        def busy(batch: Batch) -> Findings:
            other.execute("BEGIN IMMEDIATE")
            asyncio.get_running_loop().call_later(0.3, other.execute, "ROLLBACK")
            return Findings((FIX,), TOLD, COST)

        async def closing_takes_a_moment(session_id: str | None = None) -> None:
            await asyncio.sleep(0.6)

        claude = Scripted("claude", busy)
        claude.close = closing_takes_a_moment  # type: ignore[method-assign]
        await asyncio.wait_for(desk.worker(claude, "claude", 1.0).run(), 20)

    with closing(connect(str(desk.data / "backstory.db"))) as other:
        asyncio.run(run(other))
    assert [row["usd"] for row in desk.rows("SELECT usd FROM spend")] == [COST.usd]


def test_a_worker_that_cannot_even_claim_ends_and_does_not_turn_in_circles(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backstory.store.file.connection.BUSY_SECONDS", 0.05)
    desk.happened(edit(), STOP)
    with open_store(str(desk.data), now=NOW):
        pass

    async def run(other: sqlite3.Connection) -> None:
        worker = desk.worker(Scripted("claude"), "claude", 1.0)
        running = asyncio.create_task(worker.run())
        await asyncio.sleep(0)  # it has taken over, and starts a task
        other.execute("BEGIN IMMEDIATE")
        async with asyncio.timeout(10):
            await running
        assert worker.stopped

    with closing(connect(str(desk.data / "backstory.db"))) as other:
        asyncio.run(run(other))
    assert log_text(desk.data).count("was busy") == 1
    assert desk.queue("attempts", "leased_until") == [(0, 0)] * 2


# --- observations -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "text", "importance", "sector"),
    [
        ("decision", "Totals are kept in cents.", 0.7, "semantic"),
        ("bugfix", "The sum was rounded twice.", 0.6, "procedural"),
        ("feature", "Invoices have a due date.", 0.6, "semantic"),
        ("refactor", "The parser lives in a module of its own.", 0.6, "semantic"),
        ("discovery", "The API counts pages from zero.", 0.6, "semantic"),
        ("discovery", "To release, first run make dist, then upload the wheel.", 0.6, "procedural"),
        ("preference", "Tabs, never spaces.", 0.6, "emotional"),
    ],
)
def test_a_kind_decides_what_an_observation_is_worth_and_for(
    kind: str, text: str, importance: float, sector: str, desk: Desk
) -> None:
    desk.happened(edit(), STOP)
    desk.observed(Findings((Observation(kind, "A title", text, concepts=("money",)),)))
    (found,) = desk.memories(kind)
    assert (found["importance"], found["salience"], found["sector"]) == (importance, importance, sector)
    assert (found["tier"], json.loads(found["concepts"])) == ("project", ["money"])


def test_an_observation_is_found_by_its_title_at_once(desk: Desk) -> None:
    desk.happened(edit(), STOP)
    desk.observed(Findings((FIX,)))
    assert len(desk.rows("SELECT rowid FROM memories_fts WHERE memories_fts MATCH 'lost cent rounded'")) == 1


def test_the_files_of_an_observation_are_kept_from_the_root_with_what_was_in_them(
    desk: Desk, tmp_path: Path
) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "invoice.py").write_text("x = 1\n")
    found = replace(FIX, files=(f"{root}/invoice.py", "invoice.py", "gone.py"))
    desk.happened({**edit(), "cwd": str(root)}, {**STOP, "cwd": str(root)})
    desk.observed(Findings((found,)))
    (fix,) = desk.memories("bugfix")
    assert json.loads(fix["files"]) == ["invoice.py", "gone.py"]
    first, second = json.loads(fix["hashes"])
    assert first and second is None


def test_what_is_known_already_in_nearly_these_words_is_reinforced_instead(desk: Desk) -> None:
    desk.happened(edit(), STOP)
    desk.observed(Findings((FIX,)))
    desk.happened(edit(), STOP, session="session-2")
    desk.observed(Findings((replace(FIX, text="the sum is rounded now and not each line"),)))
    (fix,) = desk.memories("bugfix")
    assert fix["content"] == FIX.text
    assert fix["salience"] == pytest.approx(0.6 + 0.1 * 0.4)
    links = desk.rows("SELECT session_id, usage_type FROM session_memories WHERE memory_id = ?", fix["id"])
    assert {(row["session_id"], row["usage_type"]) for row in links} == {
        ("session-1", "created"),
        ("session-2", "reinforced"),
    }


def test_another_number_is_another_fact(desk: Desk) -> None:
    desk.happened(edit(), STOP)
    one = Observation("discovery", "The port", "The server listens on port 8080.")
    desk.observed(Findings((one, replace(one, text="The server listens on port 8081."))))
    assert len(desk.memories("discovery")) == 2


def test_the_traces_that_an_observation_rests_on_are_reinforced(desk: Desk) -> None:
    desk.happened(bash("pytest -q"), bash("ls"), STOP)

    def citing(batch: Batch) -> Findings:
        first = batch.items[0].id
        return Findings((replace(FIX, cites=(first, first, batch.items[2].id, 9_999)),))

    desk.observed(citing)
    assert desk.trace("pytest")["salience"] == pytest.approx(0.3 + 0.2 * 0.7)
    assert desk.trace("ls")["salience"] == 0.3
    links = desk.rows(
        "SELECT usage_type FROM session_memories WHERE memory_id = ?", desk.trace("pytest")["id"]
    )
    assert {row["usage_type"] for row in links} == {"created", "reinforced"}


def test_a_trace_of_an_earlier_batch_can_be_cited_and_a_forgotten_one_is_left_alone(desk: Desk) -> None:
    desk.happened(bash("pytest -q"), bash("rm -rf build"), STOP)
    desk.observed(Findings())
    with closing(connect(str(desk.data / "backstory.db"))) as db, transaction(db):
        life.forget(db, desk.trace("rm")["id"], None, NOW)
    desk.happened(bash("make"), STOP)
    desk.observed(lambda batch: Findings((replace(FIX, cites=tuple(item.id for item in batch.earlier)),)))
    assert desk.trace("pytest")["salience"] == pytest.approx(0.44)
    assert desk.trace("rm")["salience"] == 0.3


@pytest.mark.parametrize(("mode", "said_by"), [("claude", "model"), ("local", "rule")])
def test_what_replaces_an_older_one_says_who_said_so(mode: str, said_by: str, desk: Desk) -> None:
    old = Observation("decision", "Money is a float", "Amounts in the invoice are floats for now.")
    desk.happened(edit(), STOP)
    desk.observed(Findings((old,)))
    old_id = desk.memories("decision")[0]["id"]
    new = Observation("decision", "Money is cents", "Amounts are integers.", supersedes=(old_id, "mem_gone"))
    desk.happened(edit(), STOP)
    desk.local.replies = [Findings((new,))]
    desk.work(Scripted("claude", Findings((new,))), mode=mode)
    before, after = desk.memories("decision")
    assert before["valid_until"] == NOW and after["valid_until"] is None
    assert desk.rows("SELECT source_id, target_id, relationship_type, said_by FROM memory_relationships") == [
        {
            "source_id": after["id"],
            "target_id": old_id,
            "relationship_type": "SUPERSEDES",
            "said_by": said_by,
        }
    ]


def test_what_was_forgotten_meanwhile_is_not_superseded(desk: Desk) -> None:
    old = Observation("decision", "Money is a float", "Amounts are floats.")
    desk.happened(edit(), STOP)
    desk.observed(Findings((old,)))
    old_id = desk.memories("decision")[0]["id"]
    with closing(connect(str(desk.data / "backstory.db"))) as db, transaction(db):
        life.forget(db, old_id, None, NOW)
    desk.happened(edit(), STOP)
    desk.observed(Findings((replace(FIX, supersedes=(old_id,)),)))
    assert len(desk.memories("bugfix")) == 1
    assert desk.rows("SELECT * FROM memory_relationships") == []


def test_a_preference_about_the_user_holds_in_every_project(desk: Desk) -> None:
    desk.happened(prompt("always use tabs, in every project"), STOP)
    wish = Observation("preference", "Tabs", "The user wants tabs.", files=("a.py",), is_global=True)
    desk.observed(Findings((wish,)))
    (found,) = desk.memories("preference")
    assert (found["project_id"], found["tier"], found["files"], found["session_id"]) == (
        "global",
        "global",
        "[]",
        "session-1",
    )


# --- the summary --------------------------------------------------------------------------------------------


def test_a_session_has_one_summary_structured_and_as_a_memory(desk: Desk) -> None:
    desk.happened(prompt("why do invoices lose a cent?"), edit(), STOP)
    desk.observed(Findings((), TOLD))
    desk.now += MINUTE
    desk.happened(prompt("and now release it please"), bash("make release"), STOP)
    desk.observed(Findings((), replace(TOLD, completed="Shipped 1.2", next_steps="")))
    (memory,) = desk.memories("summary")
    assert memory["content"].startswith("Session Summary:\n**Request:** Find the lost cent\n")
    assert "Shipped 1.2" in memory["content"] and "Next Steps" not in memory["content"]
    assert (memory["sector"], memory["tier"], memory["importance"]) == ("reflective", "project", 0.7)
    (kept,) = desk.rows("SELECT * FROM session_summaries")
    assert (kept["request"], kept["completed"], kept["next_steps"]) == (TOLD.request, "Shipped 1.2", "")
    assert (kept["memory_id"], kept["made_by"]) == (memory["id"], "claude")
    assert (kept["created_at_epoch"], kept["updated_at_epoch"]) == (NOW, NOW + MINUTE)
    (session,) = desk.rows("SELECT summary FROM sessions")
    assert session["summary"] == kept["summary"] == memory["content"].partition("\n")[2]
    assert len(desk.rows("SELECT rowid FROM memories_fts WHERE memories_fts MATCH 'shipped'")) == 1


def test_a_stop_after_which_nothing_is_new_asks_nobody(desk: Desk) -> None:
    desk.happened(prompt("why do invoices lose a cent?"), STOP)
    desk.observed(Findings((), TOLD))
    desk.now += MINUTE
    desk.happened(STOP, event("PreCompact", trigger="auto"))
    again = desk.observed(Findings((FIX,), replace(TOLD, completed="other")))
    assert again.batches == [] and desk.local.batches == []
    assert desk.queue("skipped", "processed_at_epoch")[-2:] == [(None, NOW + MINUTE)] * 2
    (kept,) = desk.rows("SELECT completed, updated_at_epoch FROM session_summaries")
    assert kept == {"completed": TOLD.completed, "updated_at_epoch": NOW}


def test_a_compaction_right_after_a_turn_asks_nobody_however_long_storing_took(desk: Desk) -> None:
    desk.tick = 1
    desk.happened(prompt("why do invoices lose a cent?"), STOP)
    desk.observed(Findings((FIX,), TOLD))
    desk.happened(event("PreCompact", trigger="manual"))
    again = desk.observed(Findings((FIX,), TOLD))
    assert again.batches == [] and desk.local.batches == []


def test_a_batch_in_the_middle_of_a_turn_makes_no_summary_and_the_stop_after_it_does(desk: Desk) -> None:
    desk.happened(*(bash(f"step {number}") for number in range(queue.BATCH_ITEMS)))
    first = desk.observed(Findings((FIX,), TOLD))
    assert [batch.wants_summary for batch in first.batches] == [False]
    assert desk.memories("summary") == []
    desk.now += MINUTE
    desk.happened(STOP)
    second = desk.observed(Findings((), TOLD))
    (batch,) = second.batches
    assert batch.wants_summary
    assert [item.tool for item in batch.items] == ["Bash", "FINALIZE"], "the newest waited for the end"
    assert len(batch.earlier) == queue.BATCH_ITEMS - 1
    assert len(desk.memories("summary")) == 1


def test_a_session_that_dies_right_after_a_batch_gets_its_summary(desk: Desk) -> None:
    desk.happened(*(bash(f"step {number}") for number in range(queue.BATCH_ITEMS)))
    desk.observed(Findings((FIX,)))
    desk.now += MINUTE
    desk.happened(event("SessionStart", source="startup"), session="session-2")
    (batch,) = desk.observed(Findings((), TOLD)).batches
    assert batch.wants_summary and len(batch.items) == 1
    assert [row["session_id"] for row in desk.memories("summary")] == ["session-1"]


def test_a_long_turn_is_seen_in_parts_and_summed_up_at_its_end(desk: Desk) -> None:
    desk.happened(*(bash(f"step {n}", stdout="x" * 9_000) for n in range(8)), STOP)
    model = desk.observed()
    assert [(len(batch.items), batch.wants_summary) for batch in model.batches] == [
        (3, False),
        (3, False),
        (3, True),
    ]
    seen = [item.id for batch in model.batches for item in batch.items]
    assert seen == sorted(set(seen)) and len(seen) == 9
    assert [len(batch.earlier) for batch in model.batches] == [0, 3, 6]


def test_the_next_batch_knows_the_summary_so_far(desk: Desk) -> None:
    desk.happened(edit(), STOP)
    desk.observed(Findings((), TOLD))
    desk.happened(bash("make"), STOP)
    (batch,) = desk.observed().batches
    assert batch.summary is not None and batch.summary.learned == TOLD.learned


def test_a_compaction_is_a_moment_for_a_summary(desk: Desk) -> None:
    desk.happened(edit(), event("PreCompact", trigger="manual"))
    desk.observed(Findings((), TOLD))
    assert len(desk.memories("summary")) == 1


def test_the_files_of_a_summary_come_from_the_tool_uses_and_not_from_the_model(desk: Desk) -> None:
    desk.happened(
        tool_use("Read", {"file_path": f"{ROOT}/shop/tax.py"}, {}),
        event(
            "PostToolUseFailure", tool_name="Read", tool_input={"file_path": f"{ROOT}/no.py"}, error="none"
        ),
        edit(),
        tool_use("Write", {"file_path": "/etc/hosts", "content": "x"}, {}),
        bash(f"cat {ROOT}/other.py"),
        STOP,
    )
    desk.observed(Findings((), TOLD))
    (kept,) = desk.rows("SELECT files_read, files_edited FROM session_summaries")
    assert json.loads(kept["files_read"]) == ["shop/tax.py"]
    assert json.loads(kept["files_edited"]) == ["shop/invoice.py", "/etc/hosts"]
    (memory,) = desk.memories("summary")
    assert json.loads(memory["files"]) == ["shop/invoice.py", "/etc/hosts"]
    assert "made/up" not in memory["content"]


def test_files_of_long_ago_stay_in_the_summary_when_the_queue_has_been_tidied(desk: Desk) -> None:
    desk.happened(edit(), STOP)
    desk.observed(Findings((), TOLD))
    desk.now += 10 * DAY
    desk.happened(edit(f"{ROOT}/shop/new.py"), STOP)
    desk.observed(Findings((), TOLD))
    assert len(desk.queue("id")) == 2
    (kept,) = desk.rows("SELECT files_edited FROM session_summaries")
    assert json.loads(kept["files_edited"]) == ["shop/invoice.py", "shop/new.py"]


def test_a_summary_that_the_user_forgot_is_told_anew_and_not_brought_back(desk: Desk) -> None:
    desk.happened(edit(), STOP)
    desk.observed(Findings((), TOLD))
    with closing(connect(str(desk.data / "backstory.db"))) as db, transaction(db):
        life.forget(db, desk.memories("summary")[0]["id"], None, NOW)
    desk.happened(bash("make"), STOP)
    desk.observed(Findings((), replace(TOLD, completed="built")))
    old, new = desk.memories("summary")
    assert old["deleted_at"] is not None and new["deleted_at"] is None
    assert "built" not in old["content"] and "built" in new["content"]


# --- which sessions, and when -------------------------------------------------------------------------------


def test_an_interrupted_session_is_picked_up_when_the_next_begins_and_gets_its_summary(desk: Desk) -> None:
    """Claude Code was killed in the middle of a turn: no Stop, no SessionEnd."""
    desk.happened(prompt("why do invoices lose a cent?"), edit())
    assert desk.observed().batches == []
    desk.now += MINUTE
    desk.happened(event("SessionStart", source="startup"), session="session-2")
    model = desk.observed(Findings((FIX,), TOLD))
    (batch,) = model.batches
    assert (batch.session.id, batch.wants_summary, len(batch.items)) == ("session-1", True, 2)
    assert len(desk.memories("bugfix")) == 1
    (session,) = desk.rows("SELECT summary FROM sessions WHERE id = 'session-1'")
    assert session["summary"].startswith("**Request:** Find the lost cent")


def test_a_session_that_ended_without_a_stop_gets_its_summary(desk: Desk) -> None:
    desk.happened(prompt("why do invoices lose a cent?"), edit(), END)
    (batch,) = desk.observed(Findings((), TOLD)).batches
    assert batch.wants_summary and batch.session.status == "completed"
    assert len(desk.memories("summary")) == 1


def test_three_sessions_are_seen_at_once_and_not_four(desk: Desk) -> None:
    for number in range(7):
        desk.happened(edit(), STOP, session=f"s{number}", at=NOW - 100 + 10 * number)
    model = Scripted("claude", seconds=0.05)
    desk.work(model)
    assert max(map(len, model.at_once)) == AT_ONCE == 3
    assert sorted(batch.session.id for batch in model.batches) == [f"s{number}" for number in range(7)]
    assert set(desk.queue("processed_by")) == {("claude",)}


def test_a_session_is_seen_one_batch_at_a_time(desk: Desk) -> None:
    desk.happened(*(bash(f"step {n}", stdout="x" * 9_000) for n in range(9)), STOP)
    model = Scripted("claude", seconds=0.02)
    desk.work(model)
    assert model.at_once == [["session-1"]] * len(model.batches)


def test_what_comes_in_while_the_model_thinks_is_seen_before_the_worker_leaves(desk: Desk) -> None:
    def meanwhile(batch: Batch) -> Findings:
        desk.happened(bash("one more"), STOP)
        return Findings()

    desk.happened(edit(), STOP)
    model = desk.observed(meanwhile)
    assert [len(batch.items) for batch in model.batches] == [2, 2]
    assert {row[0] for row in desk.queue("processed_by")} == {"claude"}


def test_a_batch_says_what_happened_and_what_is_known_of_the_same(desk: Desk) -> None:
    about = replace(FIX, title="Invoices round", files=("shop/invoice.py",))
    other = Observation("discovery", "Nothing to do with it", "Elephants wander.", files=("zoo.py",))
    desk.happened(edit(), STOP, session="before")
    desk.observed(Findings((about, other)))
    desk.now += MINUTE
    desk.happened(prompt("look at the invoices again"), edit(), STOP)
    (batch,) = desk.observed().batches
    assert [item.tool for item in batch.items] == ["PROMPT", "Edit", "FINALIZE"]
    assert (batch.project.root, batch.session.user_prompt) == (ROOT, "look at the invoices again")
    assert [memory.title for memory in batch.known] == ["Invoices round"]
    assert batch.earlier == () and batch.summary is None


def test_no_more_is_told_as_known_than_a_model_can_weigh(desk: Desk) -> None:
    many = [
        Observation("discovery", f"Fact {n}", f"Invoice number {n} is odd.", files=("shop/invoice.py",))
        for n in range(30)
    ]
    desk.happened(edit(), STOP)
    desk.observed(Findings(tuple(many)))
    desk.happened(edit(), STOP)
    (batch,) = desk.observed().batches
    assert len(batch.known) == KNOWN


def test_a_trace_that_was_cited_enough_stays_with_the_project_when_the_session_has_ended(desk: Desk) -> None:
    desk.happened(bash("git commit -m fix"), bash("ls"), STOP, END)
    cited = [Observation("discovery", f"T{n}", f"Parents: {n}.") for n in range(4)]
    desk.observed(lambda batch: Findings(tuple(replace(one, cites=(batch.items[0].id,)) for one in cited)))
    assert desk.trace("git commit")["salience"] > 0.7
    assert desk.trace("git commit")["tier"] == "project"
    assert desk.trace("ls")["tier"] == "session"


def test_a_session_that_ends_while_the_model_thinks_is_promoted_too(desk: Desk) -> None:
    def ends(batch: Batch) -> Findings:
        desk.happened(END)
        with open_store(str(desk.data), now=desk.now):
            pass  # a hook drains it
        cited = (batch.items[0].id,)
        found = [Observation("discovery", f"T{n}", f"Parents: {n}.", cites=cited) for n in range(4)]
        return Findings(tuple(found))

    desk.happened(bash("git commit -m fix"), STOP)
    desk.observed(ends)
    assert desk.rows("SELECT status FROM sessions") == [{"status": "completed"}]
    assert desk.trace("git commit")["tier"] == "project"


def test_a_session_that_goes_on_promotes_nothing_yet(desk: Desk) -> None:
    desk.happened(bash("git commit -m fix"), STOP)
    cited = [Observation("discovery", f"T{n}", f"Parents: {n}.") for n in range(4)]
    desk.observed(lambda batch: Findings(tuple(replace(one, cites=(batch.items[0].id,)) for one in cited)))
    assert desk.trace("git commit")["salience"] > 0.7 and desk.trace("git commit")["tier"] == "session"


def test_what_was_forgotten_while_the_model_thought_stays_skipped(desk: Desk) -> None:
    def forgets(batch: Batch) -> Findings:
        with closing(connect(str(desk.data / "backstory.db"))) as db, transaction(db):
            life.forget(db, str(batch.items[0].memory_id), None, NOW)
        return Findings((replace(FIX, cites=(batch.items[0].id,)),))

    desk.happened(bash("cat plan"), STOP)
    desk.observed(forgets)
    assert desk.queue("skipped", "processed_by") == [("it was forgotten", None), (None, "local")]
    assert desk.memories("bugfix") == [], "it rested on what is forgotten"
    assert desk.trace("cat plan")["salience"] == 0.3


# --- a model that is away -----------------------------------------------------------------------------------

RATE = Away(
    "rate", "the model takes no more requests now; it is asked again later", spent=replace(COST, usd=0.01)
)
NETWORK = Away("network", "the model cannot be reached; it is asked again later")
AUTH = Away("auth", "Claude Code may not ask the model; log in with `claude`")


@pytest.mark.parametrize("mode", ["auto", "claude"])
@pytest.mark.parametrize("away", [RATE, NETWORK], ids=["rate", "network"])
def test_a_model_that_is_away_is_waited_for_and_that_is_no_attempt(away: Away, mode: str, desk: Desk) -> None:
    desk.happened(edit(), STOP)
    for turn in range(5):
        assert desk.observed(away, mode=mode).batches
        assert desk.observed(Findings((FIX,)), mode=mode).batches == [], "not before its time"
        assert desk.queue("attempts", "processed_at_epoch", "trouble") == [(0, None, str(away))] * 2
        desk.now += 5_000 << turn
    desk.observed(Findings((FIX,), TOLD), mode=mode)
    assert len(desk.memories("bugfix")) == 1
    assert desk.queue("processed_by", "trouble") == [("claude", None)] * 2
    assert desk.local.batches == []
    spent = desk.rows("SELECT count(*) AS calls FROM spend")[0]["calls"]
    assert spent == (5 if away is RATE else 0), "a call that came to nothing costs as well"
    assert "the model is away" in log_text(desk.data)


def test_a_model_that_says_when_it_is_back_is_asked_then(desk: Desk) -> None:
    desk.happened(edit(), STOP)
    desk.observed(Away("rate", "later", retry_after=90.0), mode="auto")
    desk.now += 89_999
    assert desk.observed(mode="auto").batches == []
    desk.now += 1
    assert len(desk.observed(mode="auto").batches) == 1


def test_a_model_that_stays_away_is_not_waited_for_for_ever(desk: Desk) -> None:
    desk.happened(edit(), STOP)
    desk.local.replies = [Findings((FIX,), TOLD)]
    desk.observed(NETWORK, mode="auto")
    desk.now += PATIENCE_MS
    desk.observed(NETWORK, mode="auto")
    assert desk.local.batches == []
    desk.now += MINUTE
    desk.observed(NETWORK, mode="auto")
    assert desk.queue("processed_by", "trouble", "attempts") == [("local", str(NETWORK), 1)] * 2
    assert len(desk.memories("bugfix")) == 1
    assert "observed by rules, not by the model: the model cannot be reached" in log_text(desk.data)


def test_a_model_that_will_be_away_for_hours_is_not_waited_for_at_all(desk: Desk) -> None:
    desk.happened(edit(), STOP)
    desk.observed(Away("rate", "come back tonight", retry_after=5 * 3600.0), mode="auto")
    assert desk.queue("processed_by", "trouble") == [("local", "come back tonight")] * 2


def test_who_wants_the_model_and_nothing_else_gets_it_late(desk: Desk) -> None:
    desk.happened(edit(), STOP)
    desk.observed(NETWORK, mode="claude")
    desk.now += DAY
    desk.observed(AUTH, mode="claude")
    assert desk.local.batches == []
    desk.now += DAY
    desk.observed(Findings((FIX,)), mode="claude")
    assert desk.queue("processed_by") == [("claude",)] * 2


def test_without_a_login_the_rules_do_it_at_once_and_it_shows(desk: Desk) -> None:
    desk.happened(edit(), STOP)
    desk.local.replies = [Findings((FIX,), TOLD)]
    desk.observed(AUTH, mode="auto")
    assert desk.queue("processed_by", "trouble", "skipped") == [("local", str(AUTH), None)] * 2
    assert desk.rows("SELECT made_by FROM session_summaries") == [{"made_by": "local"}]
    with closing(connect(str(desk.data / "backstory.db"))) as db:
        assert [trouble[:3] for trouble in queue.troubles(db)] == [("local", str(AUTH), 2)]
    assert f"observed by rules, not by the model: {AUTH}" in log_text(desk.data)


@pytest.mark.parametrize(("mode", "by"), [("auto", "local"), ("claude", None)])
def test_without_claude_code_the_rules_do_it_unless_the_model_is_asked_for(
    mode: str, by: str | None, desk: Desk
) -> None:
    desk.happened(edit(), STOP)
    desk.work(None, mode=mode, missing="there is no claude on PATH; install it")
    assert (
        desk.queue("processed_by", "trouble", "attempts")
        == [(by, "there is no claude on PATH; install it", 1 if by else 0)] * 2
    )


# --- a model that fails -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [Malformed("the reply was chatter", spent=COST), RuntimeError("the SDK stumbled")]
)
def test_what_fails_three_times_is_skipped_with_the_reason(error: Exception, desk: Desk) -> None:
    desk.happened(edit(), STOP)
    model = desk.observed(error, error, error, Findings((FIX,)))
    assert len(model.batches) == 3
    assert desk.queue("skipped", "attempts", "processed_by") == [(str(error), 3, None)] * 2
    assert desk.memories("bugfix") == [] and desk.local.batches == []
    assert len(desk.rows("SELECT * FROM spend")) == (3 if isinstance(error, Malformed) else 0)
    assert str(error) in log_text(desk.data)


def test_in_auto_the_rules_do_what_the_model_failed_at_three_times(desk: Desk) -> None:
    desk.happened(edit(), STOP)
    desk.local.replies = [Findings((FIX,), TOLD)]
    bad = Malformed("the reply was chatter")
    model = desk.observed(bad, bad, bad, mode="auto")
    assert len(model.batches) == 3
    assert len(desk.memories("bugfix")) == len(desk.memories("summary")) == 1
    assert (
        desk.queue("processed_by", "skipped", "trouble")
        == [("local", None, "the model failed three times: the reply was chatter")] * 2
    )


def test_a_reply_that_is_malformed_once_costs_nothing_but_an_attempt(desk: Desk) -> None:
    desk.happened(edit(), STOP)
    desk.observed(Malformed("chatter"), Findings((FIX,), TOLD))
    assert len(desk.memories("bugfix")) == 1
    assert desk.queue("processed_by", "attempts", "trouble") == [("claude", 2, None)] * 2


@pytest.mark.parametrize("mode", ["local", "auto"])
def test_a_fault_of_the_rules_is_tried_three_times_and_then_skipped(mode: str, desk: Desk) -> None:
    desk.happened(edit(), STOP)
    desk.local.replies = [ZeroDivisionError("nobody thought of this")] * 9
    desk.work(Scripted("claude", *[AUTH] * 9), mode=mode)
    assert len(desk.local.batches) == 3
    assert desk.queue("skipped") == [("ZeroDivisionError: nobody thought of this",)] * 2
    assert "ZeroDivisionError" in log_text(desk.data)


def test_one_session_that_fails_does_not_keep_the_others_from_being_seen(desk: Desk) -> None:
    for name in ("a", "b", "c", "d"):
        desk.happened(bash(f"echo {name}"), STOP, session=name)

    def only_b_fails(batch: Batch) -> Findings:
        if batch.session.id == "b":
            raise ValueError("odd session")
        return Findings((Observation("discovery", batch.session.id, f"Session {batch.session.id} ran."),))

    desk.observed(*[only_b_fails] * 9)
    assert sorted(row["title"] for row in desk.memories("discovery")) == ["a", "c", "d"]
    assert len([row for row in desk.queue("skipped") if row == ("odd session",)]) == 2


def test_a_summary_is_made_of_what_is_left_when_a_part_was_skipped(desk: Desk) -> None:
    desk.happened(*(bash(f"step {n}", stdout="x" * 9_000) for n in range(4)), STOP)
    bad = Malformed("chatter")
    desk.observed(bad, bad, bad, Findings((), TOLD))
    assert [row[0] for row in desk.queue("skipped")] == ["chatter"] * 3 + [None] * 2
    assert len(desk.memories("summary")) == 1


# --- the cap, and what was chosen ---------------------------------------------------------------------------


def test_at_the_daily_cap_the_rules_go_on_and_it_shows(desk: Desk) -> None:
    desk.local.replies = [Findings((FIX,), TOLD)]
    dear = replace(COST, usd=0.6)
    for number in range(3):
        desk.now += MINUTE
        desk.happened(bash(f"echo {number}"), STOP, session=f"s{number}")
        desk.work(Scripted("claude", Findings((), TOLD, dear)), mode="claude", daily_usd=1.0)
    trouble = "the daily cap of $1.00 is reached ($1.20 spent today)"
    assert [row[0] for row in desk.queue("processed_by")] == ["claude"] * 4 + ["local"] * 2
    assert desk.queue("trouble")[-2:] == [(trouble,)] * 2
    assert trouble in log_text(desk.data)
    desk.now += DAY
    desk.happened(bash("echo tomorrow"), STOP, session="s3")
    desk.work(Scripted("claude", Findings((), TOLD, dear)), mode="claude", daily_usd=1.0)
    assert desk.queue("processed_by")[-1] == ("claude",), "a new day, a new budget"


@pytest.mark.parametrize("mode", ["auto", "claude"])
def test_a_cap_of_nothing_never_asks_the_model(mode: str, desk: Desk) -> None:
    desk.happened(edit(), STOP)
    model = Scripted("claude")
    desk.work(model, mode=mode, daily_usd=0.0)
    assert model.batches == [] and desk.queue("processed_by") == [("local",)] * 2


def test_local_never_asks_the_model(desk: Desk) -> None:
    desk.happened(edit(), STOP)
    model = Scripted("claude")
    desk.work(model, mode="local")
    assert model.batches == [] and desk.queue("processed_by", "trouble") == [("local", None)] * 2


def test_off_leaves_everything_as_it_is(desk: Desk) -> None:
    desk.happened(edit(), STOP)
    model = Scripted("claude")
    desk.work(model, mode="off")
    assert model.batches == desk.local.batches == []
    assert desk.queue("processed_at_epoch", "attempts", "leased_until") == [(None, 0, 0)] * 2


# --- the end of a worker ------------------------------------------------------------------------------------


def interrupted(desk: Desk, model: Scripted) -> float:
    """A worker that is told to end while the model thinks; how long that takes."""

    async def run() -> float:
        worker = desk.worker(model, "auto", 1.0)
        running = asyncio.create_task(worker.run())
        async with asyncio.timeout(10):
            while not model.batches:
                await asyncio.sleep(0.01)
            told = time.monotonic()
            worker.stop()
            await running
        return time.monotonic() - told

    return asyncio.run(run())


def test_a_worker_that_is_told_to_end_gives_the_lease_back_at_once(desk: Desk) -> None:
    desk.happened(edit(), STOP)
    model = Scripted("claude", seconds=30)
    assert interrupted(desk, model) < 5
    assert desk.queue("attempts", "leased_until", "processed_at_epoch", "trouble") == [(0, 0, None, None)] * 2
    assert model.closed == [None] and desk.local.closed == [None]
    desk.observed(Findings((FIX,)))
    assert len(desk.memories("bugfix")) == 1


def test_a_worker_that_leaves_ends_what_the_synthesizers_keep_running(desk: Desk) -> None:
    model = desk.observed()
    assert model.closed == [None] and desk.local.closed == [None]


def test_a_worker_takes_over_from_one_that_died_and_gives_up_what_killed_three(desk: Desk) -> None:
    desk.happened(edit(), STOP)
    with open_store(str(desk.data), now=NOW) as db:
        queue.claim(db, "session-1", NOW, "lease")
    model = desk.observed()
    assert len(model.batches) == 1 and desk.queue("attempts", "processed_by") == [(2, "claude")] * 2
    desk.happened(bash("poison"), STOP, session="odd")
    with open_store(str(desk.data), now=NOW) as db:
        for _ in range(3):
            queue.claim(db, "odd", NOW, "lease")
            db.execute("UPDATE observation_queue SET leased_until = 0")
    assert desk.observed().batches == []
    reason = "the worker ended three times while it was at it"
    assert desk.rows("SELECT DISTINCT skipped FROM observation_queue WHERE session_id = 'odd'") == [
        {"skipped": reason}
    ]


def test_a_worker_stays_for_its_idle_time_after_the_last_work(desk: Desk) -> None:
    async def run() -> float:
        settings = Settings("auto", 1.0, 0.6)
        store: Callable[[], Any] = lambda: open_store(str(desk.data), now=desk.now)  # noqa: E731
        worker = Worker(store, settings, local=desk.local, claude=None, clock=lambda: desk.now)
        running = asyncio.create_task(worker.run())
        await asyncio.sleep(0.3)
        desk.happened(edit(), STOP)
        started = time.monotonic()
        async with asyncio.timeout(10):
            await running
        return time.monotonic() - started

    assert asyncio.run(run()) >= 0.6
    assert desk.queue("processed_by") == [("local",)] * 2


def test_a_worker_stays_while_the_model_may_be_back_soon(desk: Desk) -> None:
    desk.happened(edit(), STOP)
    claude = Scripted("claude", NETWORK, Findings((FIX,), TOLD))

    async def run() -> None:
        settings = Settings("auto", 1.0, 0.3)  # a retry in 5 s is worth 6
        store: Callable[[], Any] = lambda: open_store(str(desk.data), now=desk.now)  # noqa: E731
        worker = Worker(store, settings, local=desk.local, claude=claude, clock=lambda: desk.now)
        running = asyncio.create_task(worker.run())
        await asyncio.sleep(1.2)
        assert not running.done(), "far beyond the idle time"
        desk.now += 5_000
        await asyncio.wait_for(running, 10)

    asyncio.run(run())
    assert desk.queue("processed_by") == [("claude",)] * 2


def test_with_the_synthesizer_off_nothing_waits_for_longer_than_a_week(desk: Desk) -> None:
    desk.happened(edit(), STOP)
    desk.observed(mode="off")
    assert desk.queue("skipped") == [(None,)] * 2
    desk.now += 8 * DAY
    desk.observed(mode="off")
    assert desk.queue("skipped") == [("the synthesizer was off",)] * 2
    desk.now += 8 * DAY
    desk.observed(mode="off")
    assert desk.queue("skipped") == []


# --- what happens meanwhile ---------------------------------------------------------------------------------


def test_after_a_restore_the_same_numbers_are_not_taken_for_the_same_items(desk: Desk) -> None:
    desk.happened(edit(), STOP)
    desk.observed(Findings((FIX,), TOLD))
    made = backup.make(str(desk.data), desk.now)
    desk.happened(bash("make one"), STOP)

    def restored(batch: Batch) -> Findings:
        recovery.restore(str(desk.data), made.path, desk.now)
        desk.happened(bash("make two"), STOP)
        with open_store(str(desk.data), now=desk.now):
            pass
        return Findings((replace(FIX, title="Of the lost turn", text="Nobody has seen it."),), TOLD)

    claude = desk.observed(restored, Findings((), TOLD))
    assert [item.input.get("command") for item in claude.batches[1].items] == ["make two", None]
    assert [row["title"] for row in desk.memories("bugfix")] == [FIX.title]
    assert desk.queue("processed_by", "attempts") == [("claude", 1)] * 4


def test_what_was_forgotten_does_not_come_back_with_the_next_summary(desk: Desk) -> None:
    desk.happened(prompt("draft the secret letter"), bash("cat letter"), STOP)
    desk.observed(Findings((), replace(TOLD, request="Draft the secret letter")))
    with closing(connect(str(desk.data / "backstory.db"))) as db, transaction(db):
        for kind in ("prompt", "tool", "summary"):
            for row in desk.memories(kind):
                life.forget(db, row["id"], None, desk.now)
    assert desk.rows("SELECT summary FROM sessions") == [{"summary": None}]
    desk.happened(bash("make"), STOP)
    claude = desk.observed(Findings((), TOLD))
    (batch,) = claude.batches
    assert batch.summary is None
    assert "letter" not in str((batch.earlier, batch.items))


def test_a_session_that_is_seen_late_does_not_replace_what_came_after_it(desk: Desk) -> None:
    desk.happened(prompt("pnpm or npm in the parser"), STOP, session="old")
    desk.observed(Away("rate", "the day after tomorrow", retry_after=2 * DAY / 1000), mode="claude")
    desk.now += DAY
    desk.happened(prompt("pnpm or npm in the parser now"), STOP, session="new")
    newer = replace(FIX, kind="decision", title="pnpm in the parser", text="We use pnpm, not npm.")
    assert len(desk.observed(Findings((newer,))).batches) == 1
    desk.now += DAY
    (batch,) = desk.observed().batches
    assert (batch.session.id, batch.known) == ("old", ())


def test_a_preference_about_the_user_can_be_replaced(desk: Desk) -> None:
    wish = replace(
        FIX, kind="preference", title="Answers in German", text="Answer in German.", is_global=True
    )
    desk.happened(prompt("please always answer in German"), STOP)
    desk.observed(Findings((wish,)))
    desk.happened(prompt("from now on answer in English, not German"), STOP)

    def other(batch: Batch) -> Findings:
        (known,) = batch.known
        return Findings((replace(wish, title="English", text="Answer in English.", supersedes=(known.id,)),))

    desk.observed(other)
    assert [row["title"] for row in desk.memories("preference") if row["valid_until"] is None] == ["English"]


def test_one_refusal_does_not_hand_an_old_session_to_the_rules(desk: Desk) -> None:
    desk.happened(edit(), STOP)
    desk.now += 3 * DAY
    desk.observed(Away("rate", "in a moment", retry_after=5.0), mode="auto")
    assert desk.local.batches == []
    desk.now += 5_000
    desk.observed(Findings((FIX,), TOLD), mode="auto")
    assert desk.queue("processed_by") == [("claude",)] * 2


def test_two_facts_in_the_same_words_under_two_titles_are_two(desk: Desk) -> None:
    for title in ("Staging port", "Production port"):
        desk.happened(bash(f"echo {title}"), STOP)
        fact = replace(
            FIX, kind="discovery", title=title, text="The service listens on port 8080 behind nginx."
        )
        desk.observed(Findings((fact,)))
    assert len(desk.memories("discovery")) == 2


def test_what_is_known_already_still_replaces_what_it_contradicts(desk: Desk) -> None:
    pnpm = replace(FIX, kind="decision", title="pnpm", text="The shop is built with pnpm.")
    yarn = replace(FIX, kind="decision", title="yarn", text="The shop is built with yarn.")
    desk.happened(prompt("the shop is built with pnpm"), STOP)
    desk.observed(Findings((pnpm,)))
    desk.happened(prompt("the shop is built with yarn"), STOP)
    desk.observed(Findings((yarn,)))
    old = next(row["id"] for row in desk.memories("decision") if row["title"] == "yarn")
    desk.happened(prompt("pnpm again, not yarn"), STOP)
    desk.observed(Findings((replace(pnpm, supersedes=(old,)),)))
    living = [row["title"] for row in desk.memories("decision") if row["valid_until"] is None]
    assert living == ["pnpm"]


def test_no_secret_in_what_went_wrong_is_stored_or_logged(desk: Desk) -> None:
    desk.happened(edit(), STOP)
    secret = "Authorization: Bearer sk-ant-api03-" + "x1Y2" * 12
    desk.observed(*[Malformed(f"the proxy said {secret}")] * 3)
    told = str(desk.queue("trouble", "skipped")) + log_text(desk.data)
    assert "the proxy said" in told
    assert "x1Y2x1Y2" not in told


@pytest.mark.parametrize("mode", ["claude", "auto", "local", "off"])
@pytest.mark.parametrize("own", ["local", "off", "claude"])
def test_what_a_session_was_told_holds_whoever_started_the_worker(own: str, mode: str, desk: Desk) -> None:
    desk.happened(edit(), STOP)
    with open_store(str(desk.data), now=desk.now) as db:
        sessions.choose(db, "session-1", own)
    asked = desk.observed(mode=mode).batches
    assert (len(asked), len(desk.local.batches)) == {"local": (0, 1), "off": (0, 0), "claude": (1, 0)}[own]
