"""The worker on a real store; only the model is scripted: what it takes up, what it stores, when it ends."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from backstory.model import Batch, Findings, Observation
from backstory.store import life, queue, sessions
from backstory.store.file import backup, recovery
from backstory.store.file.connection import connect, transaction
from backstory.surfaces.opened import open_drained
from backstory.synthesis.batch import KNOWN
from backstory.synthesis.protocol import Away, Malformed
from backstory.synthesis.runner import AT_ONCE, Settings, Worker
from tests.helpers.chaos import DAY, MINUTE, NOW, assert_sound, bash, event, log_text, prompt
from tests.helpers.worker_desk import COST, END, FIX, NETWORK, ROOT, STOP, TOLD, Desk, Scripted, edit

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
            asyncio.get_running_loop().call_later(0.15, other.execute, "ROLLBACK")
            return Findings((FIX,), TOLD, COST)

        async def closing_takes_a_moment(session_id: str | None = None) -> None:
            await asyncio.sleep(0.3)

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
    with open_drained(str(desk.data), now=NOW):
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
        with open_drained(str(desk.data), now=desk.now):
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
    with open_drained(str(desk.data), now=NOW) as db:
        queue.claim(db, "session-1", NOW, "lease")
    model = desk.observed()
    assert len(model.batches) == 1 and desk.queue("attempts", "processed_by") == [(2, "claude")] * 2
    desk.happened(bash("poison"), STOP, session="odd")
    with open_drained(str(desk.data), now=NOW) as db:
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
        settings = Settings("auto", 1.0, 0.3)
        store: Callable[[], Any] = lambda: open_drained(str(desk.data), now=desk.now)  # noqa: E731
        worker = Worker(store, settings, local=desk.local, claude=None, clock=lambda: desk.now)
        running = asyncio.create_task(worker.run())
        await asyncio.sleep(0.15)
        desk.happened(edit(), STOP)
        started = time.monotonic()
        async with asyncio.timeout(10):
            await running
        return time.monotonic() - started

    assert asyncio.run(run()) >= 0.3
    assert desk.queue("processed_by") == [("local",)] * 2


@pytest.mark.slow
def test_a_worker_stays_while_the_model_may_be_back_soon(desk: Desk) -> None:
    desk.happened(edit(), STOP)
    claude = Scripted("claude", NETWORK, Findings((FIX,), TOLD))

    async def run() -> None:
        settings = Settings("auto", 1.0, 0.3)  # a retry in 5 s is worth 6
        store: Callable[[], Any] = lambda: open_drained(str(desk.data), now=desk.now)  # noqa: E731
        worker = Worker(store, settings, local=desk.local, claude=claude, clock=lambda: desk.now)
        running = asyncio.create_task(worker.run())
        await asyncio.sleep(0.8)
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
        with open_drained(str(desk.data), now=desk.now):
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
        for kind in ("turn", "tool", "summary"):
            for row in desk.memories(kind):
                life.forget(db, row["id"], None, desk.now)
    assert desk.rows("SELECT summary FROM sessions") == [{"summary": None}]
    desk.now += MINUTE
    desk.happened(prompt("now make it"), bash("make"), STOP)
    claude = desk.observed(Findings((), TOLD))
    (batch,) = claude.batches
    assert batch.summary is None
    assert "letter" not in str((batch.earlier, batch.items, [turn.record() for turn in batch.turns]))


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
    with open_drained(str(desk.data), now=desk.now) as db:
        sessions.choose(db, "session-1", own)
    asked = desk.observed(mode=mode).batches
    assert (len(asked), len(desk.local.batches)) == {"local": (0, 1), "off": (0, 0), "claude": (1, 0)}[own]
