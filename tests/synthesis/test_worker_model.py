"""A model that is away, fails or has cost enough: what the worker waits for and what the rules do instead."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest

from backstory.model import Batch, Findings, Observation
from backstory.store import queue
from backstory.store.file.connection import connect
from backstory.synthesis.protocol import Away, Malformed
from backstory.synthesis.runner import PATIENCE_MS
from tests.helpers.chaos import DAY, MINUTE, bash, log_text
from tests.helpers.worker_desk import AUTH, COST, FIX, NETWORK, RATE, STOP, TOLD, Desk, Scripted, edit

# --- a model that is away -----------------------------------------------------------------------------------


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


def test_why_the_model_is_not_asked_is_logged_once_and_not_for_every_batch(desk: Desk) -> None:
    for session in ("s1", "s2", "s3"):
        desk.happened(edit(), STOP, session=session)
    desk.work(None, mode="auto", missing="there is no claude on PATH; install it")
    assert len(desk.local.batches) == 3
    assert log_text(desk.data).count("observed by rules, not by the model: there is no claude on PATH") == 1


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
