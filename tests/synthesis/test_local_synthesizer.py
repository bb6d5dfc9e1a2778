"""The local synthesizer as a whole: it finds things once, takes any text, and does well on recorded sessions."""

# ruff: noqa: E501  what people and programs say is not wrapped

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import local_synthesis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.capture.event import read_event
from backstory.intake.item import item_of
from backstory.model import Batch, Item, Project
from backstory.store.queue import CHECKPOINT, COMPACT, FINALIZE, PROMPT
from backstory.synthesis.local import Local
from backstory.synthesis.rules.words import sentences, shorten
from tests.helpers.scripted_session import (
    GREEN,
    PROJECT,
    RED,
    Script,
    Store,
    found,
    lived,
    session,
    summary_of,
)

# --- once only ----------------------------------------------------------------------------------------------


STEPS = [
    lambda script: script.ask("the total is wrong, please fix it"),
    lambda script: script.ask("add a --json flag and never print to stderr"),
    lambda script: script.ask("ok, let's go with Postgres"),
    lambda script: script.ask("yes"),
    lambda script: script.ask("we use npm in this repo"),
    lambda script: script.ask("use pnpm, not npm any more"),
    lambda script: script.ask("no, not like that"),
    lambda script: script.ask("why is it slow?"),
    lambda script: script.edit("src/cart.py", "a\n", "x" * 400),
    lambda script: script.edit("tests/test_cart.py"),
    lambda script: script.write("src/new.py"),
    lambda script: script.read("src/cart.py", "def total(): ..."),
    lambda script: script.fail("pytest -q", RED),
    lambda script: script.bash("pytest -q", GREEN),
    lambda script: script.bash("git commit -qam 'Count the last line'"),
    lambda script: script.bash("git commit -qam 'Add a flag'", "[main 1234567] Add a flag"),
    lambda script: script.bash("git commit -q --amend -m 'Add a better flag'"),
    lambda script: script.bash("git checkout src/cart.py"),
    lambda script: script.add(CHECKPOINT, {}, {}),
    lambda script: script.add(COMPACT, {"summary": "We fixed the total."}, {}),
    lambda script: script.say("The total was wrong because `total()` in `cart.py` skipped 1 of 3 lines; it counts all now."),
    lambda script: script.say("`--json` prints the result as JSON now."),
    lambda script: script.say("Shall I go on?"),
    lambda script: script.say(""),
]  # fmt: skip


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(steps=st.lists(st.sampled_from(range(len(STEPS))), max_size=30), data=st.data())
def test_wherever_a_session_is_cut_the_same_is_found(steps: list[int], data: st.DataObject) -> None:
    script = Script()
    for step in steps:
        STEPS[step](script)
    cuts = data.draw(st.lists(st.integers(0, len(script.items)), max_size=8))
    whole, cut = lived(script.items, []), lived(script.items, cuts)

    def told(store: Store) -> list[tuple[Any, ...]]:
        return sorted((one.kind, one.title, one.text, one.files, one.cites) for one in store.living.values())

    assert told(cut) == told(whole)


def test_nothing_is_told_before_the_turn_has_ended() -> None:
    script = (
        Script().ask("the tests are red").fail("pytest -q", RED).edit("src/cart.py").bash("pytest -q", GREEN)
    )
    store = Store()
    before = tuple(script.items)
    assert store.take(before, ()) == []
    script.say("The total left out the last line, because the loop ended early.")
    assert len(store.take(script.items[len(before) :], before)) == 1
    assert store.take(Script().say("Anything else?").items, script.items) == []


# --- hostile, strange, long ---------------------------------------------------------------------------------


def test_other_languages_are_told_as_far_as_they_are_understood() -> None:
    script = Script().ask("bitte füge einen Export als CSV hinzu").write("src/csv.py")
    script.say("Der Befehl `export` schreibt jetzt CSV. Die Spalten sind id und titel.")
    script.ask("请添加一个导出为CSV的命令。谢谢").write("src/导出.py").say(
        "已添加导出命令。现在可以导出CSV文件了。"
    )
    assert all(one.kind == "feature" for one in found(script))
    assert summary_of(script).request.startswith("bitte füge einen Export als CSV hinzu.")


STRANGE: list[Any] = [None, "", "text", 7, [], [None], {}, {"error": None}, {"file": "x"}, {"stdout": 3}]


@pytest.mark.parametrize(
    "tool", ["Bash", "Edit", "MultiEdit", "Write", "Read", "WebFetch", PROMPT, FINALIZE, COMPACT, "X"]
)
def test_items_of_any_shape_are_taken(tool: str) -> None:
    script = Script()
    for value in STRANGE:
        given = dict.fromkeys(
            ("command", "file_path", "edits", "content", "prompt", "url", "new_string"), value
        )
        script.ask("why?").add(tool, given, value).add(tool, {}, value).say("Because of `x`.")
    lived(script.items)


LONG = 15_000

HOSTILE = {
    "words": "we use always never " * (LONG // 20),
    "one word": "a" * LONG,
    "backticks": "`" * LONG,
    "code": "`a " * (LONG // 3),
    "quotes": "\"'" * (LONG // 2),
    "escaped": '\\"' * (LONG // 2),
    "commits": "git commit -m \"\\" * (LONG // 16),
    "heredocs": "<<EOF\n" * (LONG // 6),
    "brackets": "[" * (LONG // 2) + "](" * (LONG // 4),
    "stops": ". " * (LONG // 2),
    "commas": "no, " * (LONG // 4),
    "lines": "\n" * LONG,
    "bullets": "- never \n" * (LONG // 9),
    "stars": "**a" * (LONG // 3),
    "spaces": " " * LONG + "x",
    "errors": "E   AError: b\nFAILED a::b - c\nnot ok 1 - x\n" * (LONG // 44),
    "because": "because so it was not only the " * (LONG // 31),
    "numbers": "1,1.1" * (LONG // 5),
    "lets": "let's go with let's use " * (LONG // 24),
    "it is": "a b c d it " * (LONG // 11),
    "underscores": "a_" * (LONG // 2),
    "signs": "\x00\u202e\ud7ff" * (LONG // 3),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_read_in_linear_time(name: str) -> None:
    """Four times the text takes about four times the time. Eight is allowed; quadratic time would be
    sixteen."""

    def cost(text: str) -> float:
        script = (
            Script()
            .ask(text)
            .bash(text, text)
            .fail(text, text)
            .fail("pytest", text)
            .bash(f"git commit -m '{text}'")
        )
        script.edit("a.py", text, text).add(
            "Read", {"file_path": text[:4_000]}, {"file": {"content": text}}
        ).say(text)
        script.ask(f"why? {text}").read("a.py", text).say(f"{text}. Because {text}")
        start = time.process_time()
        lived(script.items)
        return time.process_time() - start

    text = HOSTILE[name]
    cost(text[:1_000])  # warm
    spent = cost(text)
    assert spent < 0.5 or spent < 8 * cost(text[: LONG // 4])


@pytest.mark.slow
def test_a_thousand_items_are_looked_through_quickly() -> None:
    script = Script()
    for number in range(125):
        script.ask(f"why is the total of order {number} wrong? please fix it, we use it for invoices")
        script.read("src/cart.py", "def total():\n    return 1\n" * 100).fail("pytest -q", RED * 5)
        script.edit("src/cart.py", "a\n" * 500, "b\n" * 500).bash("pytest -q", GREEN * 20)
        script.bash(f"git commit -qam 'Count line {number}'")
        script.say("The total left out a line, because `total()` ended early. " * 10)
    assert len(script.items) > 850
    start = time.process_time()
    Store().take(script.items[-7:], script.items[:-7])
    assert time.process_time() - start < 5  # 0.3 s; a Stop has five


def test_a_prompt_full_of_wishes_gives_a_few() -> None:
    prompt = "\n".join(f"Never use library number {number}." for number in range(500))
    assert len(found(Script().ask(prompt).say("Ok."))) == 8


def test_what_is_stored_is_short_and_on_one_line() -> None:
    text = "The total\x1b[31m left out\u202e a line, because " + "of this and that " * 60
    script = (
        Script()
        .ask("why is it wrong? never use " + "x" * 300)
        .read("a.py")
        .edit("a.py")
        .edit("a.py")
        .edit("a.py")
    )
    for observation in found(script.say(text)):
        assert len(observation.title) <= 120
        assert len(observation.text) <= 600
        assert observation.title.isprintable() and observation.text.isprintable()


def test_texts_are_cut_where_they_can_be_cut() -> None:
    assert sentences("One (e.g. two). Three `a. b` four... five. Six!") == [
        "One (e.g. two).",
        "Three `a. b` four... five.",
        "Six!",
    ]
    assert shorten("One two three. Four five six seven.", 20) == "One two three."
    assert shorten("one two three, four five six seven", 20) == "one two three …"
    assert shorten("x" * 50, 20) == "x" * 19 + "…"
    assert shorten("short", 20) == "short"


# --- the sessions it is measured by -------------------------------------------------------------------------


def recorded(file: Path) -> tuple[list[Item], str]:
    items: list[Item] = []
    payload: dict[str, Any] = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines()):
        payload = json.loads(line)
        at = payload.pop("at")
        event = read_event(json.dumps(payload).encode(), spool_name=str(number), at=at)
        if queued := item_of(event):
            tool, given, output = queued[0], json.loads(queued[1]), json.loads(queued[2])
            action = event.use.action if event.use else None
            items.append(Item(len(items) + 1, "s", tool, given, output, at, None, action))
    return items, payload["cwd"]


def test_the_recorded_sessions_are_remembered_as_a_colleague_would(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = told = right = 0
    for file in sorted(local_synthesis.HERE.glob("*.jsonl")):
        items, root = recorded(file)
        monkeypatch.setattr(
            "tests.helpers.scripted_session.PROJECT", Project("p", 1, root.rsplit("/", 1)[-1], root)
        )
        wanted = json.loads(file.with_suffix(".expected.json").read_text(encoding="utf-8"))["observations"]
        expected = [local_synthesis._expected(each) for each in wanted]
        kept = [
            local_synthesis.Found(one.kind, one.title, one.text, one.files)
            for one in lived(items).living.values()
        ]
        asked, told = asked + len(expected), told + len(kept)
        right += len(local_synthesis.match(expected, kept))
    assert asked >= 15
    assert right / told >= local_synthesis.TARGETS["precision"]
    assert right / asked >= local_synthesis.TARGETS["recall"]


def test_it_is_a_synthesizer() -> None:
    local = Local()
    items = tuple(Script().ask("never push to main").say("Ok.").items)

    async def use() -> int:
        findings = await local.observe(Batch(session(), PROJECT, items, (), None, (), True))
        await local.close("s")
        await local.close()
        return len(findings.observations)

    assert local.name == "local"
    assert asyncio.run(use()) == 1
