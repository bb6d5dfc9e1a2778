"""The summary that the local synthesizer makes of a session, from the records of its turns."""

from __future__ import annotations

from backstory.model import Batch, Summary
from backstory.synthesis.local import observe
from tests.helpers.scripted_session import GREEN, PROJECT, RED, Script, Told, lived, session, summary_of


def test_the_summary_tells_the_session() -> None:
    script = Script().ask("/clear").ask("ok").ask("the tests are red since tonight, please fix them")
    script.read("src/cart.py").fail("pytest -q", RED).edit("src/cart.py").bash("pytest -q", GREEN)
    script.choose("Which lines count?", "All of them").commit("Count the last line")
    script.edit("README.md").say("It counts all lines now.\n\nShould I change the numbers in the README too?")
    summary = summary_of(script)
    assert summary == Summary(
        request="the tests are red since tonight, please fix them",
        investigated="Read src/cart.py.",
        learned="Failed, then passed: pytest -q:"
        " FAILED tests/test_cart.py::test_total - AssertionError: 3 != 4",
        completed="Count the last line. Edited src/cart.py, README.md.",
        next_steps="asked: Should I change the numbers in the README too?"
        " (on: /clear / ok / the tests are red since tonight, please fix them) uncommitted: README.md",
        files_read=("src/cart.py",),
        files_edited=("src/cart.py", "README.md"),
        notes="Which lines count? All of them.",
    )


def test_the_summary_says_what_is_asked_now_as_well() -> None:
    script = Script().ask("explain the cart module please").say("It adds up.").ask("now add a discount to it")
    script.edit("src/discount.py").say("It takes ten percent off.")
    assert summary_of(script).request == "explain the cart module please Later: now add a discount to it"
    script.ask("thanks, that's it for today").say("Bye!")
    assert summary_of(script).request == "explain the cart module please Later: now add a discount to it"


def test_only_what_the_last_turn_left_is_next() -> None:
    script = Script().ask("look at the cart").say("Should I split it into two modules?")
    assert "split" in summary_of(script).next_steps
    assert summary_of(script.ask("no, leave it").say("Ok.")).next_steps == ""


def test_a_plan_is_what_was_asked_for_and_is_noted() -> None:
    plan = "# Plan: Split the cart\n\n## Goal\nTwo modules.\n\n## Files\n- cart.py\n"
    summary = summary_of(Script().ask(f"Implement the following plan:\n\n{plan}").edit("cart.py").say())
    assert summary.request == "Implement the plan: Split the cart"
    assert summary.notes == "Approved plan: Split the cart."


def test_a_compaction_says_what_was_asked_where_nothing_else_does() -> None:
    compacted = (
        "1. Primary Request and Intent:\n   The user wants a cart with discounts.\n\n2. Files:\n - a.py"
    )
    summary = summary_of(Script().ask("go on").compact(compacted).edit("a.py").say())
    assert summary.request.startswith("The user wants a cart with discounts.")
    asked = summary_of(Script().ask("add a discount to the cart").compact(compacted).say())
    assert (asked.request, asked.notes) == ("add a discount to the cart", "")


def test_what_an_earlier_summary_knows_is_not_forgotten_where_the_turns_say_nothing() -> None:
    known = Summary(
        "Split the app.", "Read app.py.", "Plugins import it.", "The app is split.", "Tell.", (), (), ""
    )
    told = Told()
    told.take(Script().ask("ok").say("Done.").payloads, 1)
    batch = Batch(session(), PROJECT, tuple(told.items), (), known, (), True, tuple(told.turns))
    summary = observe(batch).summary
    assert summary is not None
    fields = (summary.request, summary.investigated, summary.learned, summary.completed, summary.next_steps)
    assert fields == ("Split the app.", "Read app.py.", "Plugins import it.", "The app is split.", "")


def test_no_summary_is_made_where_there_is_nothing_to_tell() -> None:
    assert lived(Script().bash("ls").say("")).summary is None
    assert lived(Script().ask("hi").say("Hello!")).summary is None
    assert lived(Script().edit("src/a.py").say("")).summary is not None
    assert lived(Script().ask("explain the cart module").say("It adds up.")).summary is not None


def test_no_summary_is_made_unless_it_is_wanted() -> None:
    told = Told()
    told.take(Script().ask("add a flag please").edit("cli.py").payloads, 1)
    batch = Batch(session(), PROJECT, tuple(told.items), (), None, (), False, tuple(told.turns))
    assert observe(batch).summary is None
