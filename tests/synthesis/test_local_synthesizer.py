"""The local synthesizer as a whole: it finds things once, takes any text, and does what it did on scripted
sessions."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import local_synthesis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.model import Batch
from backstory.synthesis.local import Local
from backstory.synthesis.rules.words import line, sentences, shorten
from tests.helpers.chaos import Json, event, tool_use
from tests.helpers.growth import processor_time
from tests.helpers.scripted_session import GREEN, PROJECT, RED, Script, Store, Told, found, lived, session

# --- once only ----------------------------------------------------------------------------------------------


STEPS = [
    lambda script: script.ask("the total is wrong, please fix it"),
    lambda script: script.ask("never use pip here, we use uv"),
    lambda script: script.ask("yes"),
    lambda script: script.choose("Which database?", "Postgres"),
    lambda script: script.choose("Which database?", "SQLite"),
    lambda script: script.plan("# Split the cart\n\nInto two modules of their own.\n"),
    lambda script: script.edit("src/cart.py"),
    lambda script: script.fail("pytest -q", RED),
    lambda script: script.bash("pytest -q", GREEN),
    lambda script: script.commit("Fix the total of a cart"),
    lambda script: script.commit("Add a flag for discounts", "2b3c4d5"),
    lambda script: script.add(event("PreCompact", trigger="auto")),
    lambda script: script.compact("We fixed the total."),
    lambda script: script.say("The total is right now."),
    lambda script: script.say("The docs are up to date.", stop_hook_active=True),
    lambda script: script.end(),
]


@pytest.mark.slow
@settings(max_examples=150)
@given(steps=st.lists(st.sampled_from(range(len(STEPS))), max_size=30), data=st.data())
def test_wherever_a_session_is_cut_the_same_is_found_and_once(steps: list[int], data: st.DataObject) -> None:
    script = Script()
    for step in steps:
        STEPS[step](script)
    # In a turn that goes on the queue keeps the newest item (queue.claim), so that none of its batches ends
    # where the session does without a word.
    names = ["", *(payload["hook_event_name"] for payload in script.payloads)]
    before_an_end = {at for at, name in enumerate(names[1:]) if name == "SessionEnd"}
    silent = {at for at in before_an_end if names[at] not in ("", "Stop", "SessionEnd")}
    cuts = data.draw(st.lists(st.sampled_from(sorted({*range(len(names))} - silent)), max_size=8))
    whole, cut = lived(script, []), lived(script, cuts)

    def told(store: Store) -> list[tuple[str, str]]:
        return sorted((one.kind, one.title) for one in store.found)

    assert told(cut) == told(whole)
    assert len(set(told(cut))) == len(told(cut))


def test_nothing_is_told_before_the_turn_has_ended() -> None:
    script = Script().ask("the total is wrong").edit("src/cart.py").commit("Fix the total of a cart")
    store = Store()
    assert store.take(script.payloads) == []
    assert len(store.take(Script().say("The total is right.").payloads)) == 1
    assert store.take(Script().say("Anything else?").payloads) == []


def test_a_turn_that_nobody_ended_is_told_when_the_session_is_over_and_not_again_when_it_goes_on() -> None:
    script = Script().ask("the total is wrong").edit("src/cart.py").commit("Fix the total of a cart")
    store = Store()
    assert len(store.take(script.payloads, over=True)) == 1
    assert store.take(Script().ask("go on").say().payloads) == []


def test_what_a_session_stored_is_not_stored_again_by_what_a_hook_made_of_its_turn() -> None:
    store = Store()
    turn = Script().ask("the total is wrong").edit("src/cart.py").commit("Fix the total of a cart").say()
    assert len(store.take(turn.payloads)) == 1
    more = Script().edit("src/discount.py").commit("Add a discount to the cart", "2b3c4d5")
    assert [one.title for one in store.take(more.say(stop_hook_active=True).payloads)] == [
        "Add a discount to the cart"
    ]


def test_a_turn_of_an_earlier_batch_is_not_looked_at_again() -> None:
    store = Store()
    store.take(Script().ask("fix it").commit("Fix the total of a cart").say().payloads)
    store.found.clear()  # the user erased it
    assert store.take(Script().ask("and the docs?").say().payloads) == []


# --- hostile, strange, long ---------------------------------------------------------------------------------


STRANGE: list[Any] = [None, "", "text", 7, [], [None], {}, {"error": None}, {"file": "x"}, {"stdout": 3}]


@pytest.mark.parametrize("tool", ["Bash", "Edit", "Read", "WebFetch", "AskUserQuestion", "ExitPlanMode", "X"])
def test_events_of_any_shape_are_taken(tool: str) -> None:
    script = Script()
    names = ("command", "file_path", "edits", "content", "questions", "url", "new_string", "plan")
    for value in STRANGE:
        strange = dict.fromkeys(names, value)
        for given_value in (strange, {}):
            for result in (value, {"answers": value, "plan": value}):
                script.ask("why?").add(tool_use(tool, given_value, result))
        script.say("Because of `x`.")
    assert found(script) == []


LONG = 15_000

HOSTILE = {
    "words": "we use always never " * (LONG // 20),
    "one word": "a" * LONG,
    "backticks": "`" * LONG,
    "quotes": "\"'" * (LONG // 2),
    "brackets": "[" * (LONG // 2) + "](" * (LONG // 4),
    "stops": ". " * (LONG // 2),
    "questions": "Want me to? " * (LONG // 12),
    "lines": "\n" * LONG,
    "bullets": "- never \n" * (LONG // 9),
    "next": "Next steps: \n" * (LONG // 13),
    "headings": "# a\n\n## b\n" * (LONG // 10),
    "fences": "```\na\n" * (LONG // 6),
    "stars": "**a" * (LONG // 3),
    "spaces": " " * LONG + "x",
    "labels": "[a] " * (LONG // 4),
    "scopes": "a(b): " * (LONG // 6),
    "and tests": "fix this and add tests " * (LONG // 23),
    "remember": "remember that " * (LONG // 14),
    "colons": ":a:" * (LONG // 3),
    "signs": "\x00\u202e\ud7ff" * (LONG // 3),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_read_in_linear_time(name: str) -> None:
    """Four times the text takes about four times the time. Eight is allowed; quadratic time would be
    sixteen."""

    def cost(text: str) -> float:
        script = Script().ask(text).ask(f"Implement the following plan:\n\n# a\n{text}").plan(text)
        script.choose(text, text).choose("Which one?", text).fail("pytest", text).bash("pytest", text)
        script.commit(" ".join(text.split())).compact(text).say(text)
        told = Told()
        told.take(script.payloads, 1)
        told.turns[-1].commits.append(["1a2b3c4", text, [text]])
        turns, items = tuple(told.turns), tuple(told.items)
        batch = Batch(session(), PROJECT, items, (), None, (), True, turns)
        return processor_time(lambda _: asyncio.run(Local().observe(batch)), text)

    text = HOSTILE[name]
    cost(text[:1_000])  # warm
    spent = cost(text)
    assert spent < 0.5 or spent < 8 * cost(text[: LONG // 4])


@pytest.mark.slow
def test_a_session_of_a_thousand_items_is_looked_through_quickly() -> None:
    script = Script()
    for number in range(125):
        script.ask(f"why is the total of order {number} wrong? please fix it, we use it for invoices")
        script.read("src/cart.py").fail("pytest -q", RED * 5).edit("src/cart.py").bash(
            "pytest -q", GREEN * 20
        )
        script.commit(f"Fix the total of order {number}").say("The total left out a line. " * 10)
    store = Store()
    store.take(script.payloads[:-7])
    start = time.process_time()
    store.take(script.payloads[-7:])
    assert time.process_time() - start < 5  # a Stop has five
    assert len(store.found) == 125


def test_what_is_stored_is_short_and_on_one_line() -> None:
    long = "Add a flag\x1b[31m\u202e that " + "prints this and that " * 60
    script = Script().ask("please add it " + "x" * 900).choose("Which?", "this\x07one").plan(long).say(long)
    told = Told()
    told.take(script.payloads, 1)
    told.turns[-1].commits.append(["1a2b3c4", long, []])
    batch = Batch(session(), PROJECT, tuple(told.items), (), None, (), True, tuple(told.turns))
    findings = asyncio.run(Local().observe(batch))
    assert [one.kind for one in findings.observations] == ["decision", "decision", "feature"]
    for observation in findings.observations:
        assert len(observation.title) <= 160 and len(observation.text) <= 400
        assert observation.title.isprintable() and observation.text.isprintable()


def test_texts_are_cut_where_they_can_be_cut() -> None:
    assert sentences("One two. Three `a.b` four... five. Six!") == [
        "One two.",
        "Three `a.b` four... five.",
        "Six!",
    ]
    assert shorten("One two three. Four five six seven.", 20) == "One two three."
    assert shorten("one two three, four five six seven", 20) == "one two three…"
    assert shorten("x" * 50, 20) == "x" * 19 + "…"
    assert shorten("short", 20) == "short"
    assert line("## A **bold**\n- [link](http://x)\x07 text") == "A bold link text"


# --- the scripted sessions ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(file.stem for file in local_synthesis.HERE.glob("*.jsonl")))
def test_a_scripted_session_is_remembered_as_before(name: str) -> None:
    row = local_synthesis.row_of(local_synthesis.HERE / f"{name}.jsonl", at_once=True)
    assert (row.missing, row.superfluous, row.summary_lacks) == ([], [], [])


def test_of_what_is_wanted_each_is_found_once() -> None:
    wanted: list[Json] = [{"kind": "feature", "says": [["csv", "table"]], "files": []}]
    assert local_synthesis.compared(wanted, []) == ([str(wanted[0])], [])
    assert local_synthesis.lacking({"request": [["csv"]]}, None) == ["request: csv"]
    assert (
        json.loads((local_synthesis.HERE / "chat_small_talk.expected.json").read_text())["observations"] == []
    )


def test_it_is_a_synthesizer() -> None:
    local = Local()
    told = Told()
    told.take(Script().ask("never push to main").say("Ok.").payloads, 1)
    batch = Batch(session(), PROJECT, tuple(told.items), (), None, (), True, tuple(told.turns))

    async def use() -> int:
        findings = await local.observe(batch)
        await local.close("s")
        await local.close()
        return len(findings.observations)

    assert local.name == "local"
    assert asyncio.run(use()) == 1
