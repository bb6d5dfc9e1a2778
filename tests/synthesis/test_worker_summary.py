"""When the worker wants a summary of a session, and what becomes of it."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace

from backstory.model import Findings
from backstory.store import life, queue
from backstory.store.file.connection import connect, transaction
from tests.helpers.chaos import DAY, MINUTE, NOW, bash, event, prompt, tool_use
from tests.helpers.worker_desk import FIX, ROOT, STOP, TOLD, Desk, edit


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


def test_the_files_of_a_summary_are_those_of_the_project_in_its_turns(desk: Desk) -> None:
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
    assert json.loads(kept["files_edited"]) == ["shop/invoice.py"]
    (memory,) = desk.memories("summary")
    assert json.loads(memory["files"]) == ["shop/invoice.py"]
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
