"""The summary that the local synthesizer makes of a session."""

# ruff: noqa: E501  what people and programs say is not wrapped

from __future__ import annotations

import pytest

from backstory.model import Batch, Summary
from backstory.synthesis.local import observe
from backstory.synthesis.rules.prompts import is_request
from tests.helpers.scripted_session import GREEN, PROJECT, RED, Script, lived, session, summary_of


def test_the_summary_tells_the_session() -> None:
    script = Script().ask("/clear").ask("ok").ask("the tests are red since tonight, please fix them")
    script.read("src/cart.py").add(
        "Bash", {"command": "git log", "description": "What changed last?"}, {"stdout": "x"}
    )
    script.fail("pytest -q", RED).edit("src/cart.py").bash("pytest -q", GREEN)
    script.bash("git commit -qam 'Count the last line'")
    script.say(
        "The total left out the last line, because the loop ended early. It counts all lines now. All tests pass.\n\n"
        "The README still has the old numbers; I can change it if you like."
    )
    summary = summary_of(script.ask("thanks, bye").say("Bye!"))
    assert summary == Summary(
        request="the tests are red since tonight, please fix them.",
        investigated="Read src/cart.py. Ran: What changed last?.",
        learned="The total left out the last line, because the loop ended early.",
        completed="Count the last line. It counts all lines now.",
        next_steps="The README still has the old numbers; I can change it if you like.",
        files_read=(),
        files_edited=(),
        notes="",
    )


def test_the_summary_says_what_is_asked_now_as_well() -> None:
    script = Script().ask("explain the cart module please").say("It adds up.").ask("now add a discount to it")
    script.write("src/discount.py").say("`discount()` takes ten percent off.")
    assert summary_of(script).request == "explain the cart module please. Later: now add a discount to it."


def test_what_still_fails_is_noted() -> None:
    script = (
        Script()
        .ask("add pages")
        .edit("src/api.py")
        .fail("pytest -q", RED)
        .say("Pages are in, one test fails.")
    )
    assert (
        summary_of(script).notes == "Still failing: tests/test_cart.py::test_total: AssertionError: 3 != 4."
    )
    script.ask("fix it").edit("src/api.py").bash("pytest -q", GREEN).say("The test passes now.")
    assert summary_of(script).notes == ""


def test_what_is_left_to_do_is_found_in_answers_and_promises() -> None:
    script = (
        Script().ask("anything left to do?").say("Two things:\n\n- the README has no word on it\n- no icon")
    )
    assert summary_of(script).next_steps == "The README has no word on it."
    script.ask("I'll do that tomorrow, you can stop here").say("Remember to run the migration first.")
    assert summary_of(script).next_steps == (
        "The user: I'll do that tomorrow, you can stop here. Remember to run the migration first."
    )


def test_a_long_request_is_told_by_how_it_begins_and_what_it_asks() -> None:
    story = "I have a shop with many many articles and " + "some more of them and " * 12 + "so on. "
    request = summary_of(Script().ask(f"{story}Which database would you take?").say("Postgres.")).request
    assert request.startswith("I have a shop")
    assert request.endswith("Which database would you take?")
    assert len(request) <= 330


def test_what_an_earlier_summary_knows_is_not_forgotten_when_the_items_are_gone() -> None:
    known = Summary(
        "Split the app.", "Read app.py.", "Plugins import it.", "The app is split.", "Tell the users.",
        ("app.py",), ("app.py",), "",
    )  # fmt: skip
    items = Script().ask("and now the docs please").say("Which docs do you mean?").items
    summary = observe(Batch(session(), PROJECT, tuple(items), (), known, (), True)).summary
    assert summary is not None
    assert summary.request == "Split the app. Later: and now the docs please."
    assert (summary.investigated, summary.learned, summary.completed) == (
        "Read app.py.",
        "Plugins import it.",
        "The app is split.",
    )
    assert summary.next_steps == "Tell the users."
    assert summary.files_edited == ("app.py",)


def test_no_summary_is_made_where_there_is_nothing_to_tell() -> None:
    assert lived(Script().bash("ls").say("").items).summary is None
    assert lived(Script().ask("hi").say("Hello!").items).summary is None
    assert lived(Script().edit("src/a.py").say("").items).summary is not None
    assert lived(Script().ask("explain the cart module").say("It adds up.").items).summary is not None


def test_no_summary_is_made_unless_it_is_wanted() -> None:
    items = Script().ask("add a flag please").edit("cli.py").items
    assert observe(Batch(session(), PROJECT, tuple(items), (), None, (), False)).summary is None


@pytest.mark.parametrize(
    ("prompt", "asks"),
    [
        ("fix the login", True),
        ("", False),
        ("/compact", False),
        ("/review src/a.py", False),
        ("yes", False),
        ("ok go ahead", False),
        ("thanks, that's it for today", False),
        ("haha perfect, bye", False),
        ("nice, thx! are credit notes affected too?", True),
        ("请添加一个导出为CSV的命令", True),
    ],
)
def test_commands_and_thanks_are_no_requests(prompt: str, asks: bool) -> None:
    assert is_request(prompt) is asks
