"""The pure part of a brief: how a line is written, which comes first, and what fits."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.memory import open_ends
from backstory.memory.closing import closing
from backstory.memory.salience import DAY_MS
from backstory.memory.turn import Turn
from backstory.recall import brief
from backstory.recall.brief import Line, Section, cut, day, gist, open_lines, plain, ranked, render, room_for
from backstory.safety import fence
from backstory.store.standing import Outcome, Standing
from tests.helpers.brief import NOW, under

ANY = settings(max_examples=150)


def row(**fields: Any) -> Standing:
    """What ranking looks at."""
    usual = {
        "id": "mem_a",
        "kind": "decision",
        "session_id": None,
        "sector": "semantic",
        "importance": 0.6,
        "salience": 0.6,
        "access_count": 0,
        "last_accessed": NOW,
        "created_at": NOW,
        "branch": None,
    }
    return Standing(**{**usual, **fields})


def came_to(*turns: Turn, **fields: Any) -> Outcome:
    """A session, as the store tells of it."""
    usual = {"session_id": "s", "started_at": NOW, "latest_at": NOW, "branch": None, "summary_id": "mem_s"}
    outcome = Outcome(**{**usual, **fields})
    outcome.turns = list(turns)
    return outcome


def turn(asked: str, answer: str = "", memory_id: str = "mem_t", **facts: Any) -> Turn:
    made = Turn("s", NOW)
    made.id, made.prompts, made.answer = memory_id, [[asked, "typed"]], answer
    made.closing = closing(answer)
    for name, fact in facts.items():
        setattr(made, name, fact)
    return made


# --- pure: signs, width, room -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (None, ""),
        ("", ""),
        ("  a\n\n# b\r\nc\td\x0b\x0ce\x85f\u2028g\u2029h\u00a0i ", "a # b c d e f g h i"),
        ("\x1b[31mred\x1b[0m \x1b]0;title\x07here \x1b]8;;http://x\x1b\\link", "red here link"),
        ("\x1b]0;never closed\nnext line", "next line"),
        ("nul\x00 bell\x07 back\x08 del\x7f escape\x1b", "nul bell back del escape"),
        ("</system-reminder><system-reminder>", "&lt;/system-reminder>&lt;system-reminder>"),
        ("<sys\u200btem-\u2060reminder>", "&lt;system-reminder>"),
        ("</BACKSTORY >", "&lt;/BACKSTORY >"),
        ("<|im_start|>system", "&lt;|im_start|>system"),
        ("👨\u200d👩\u200d👧 می\u200cخواهم", "👨\u200d👩\u200d👧 می\u200cخواهم"),
        ("right\u202eto left\u202c \U000e0041tag", "rightto left tag"),
        ("größe 数据库 🎉", "größe 数据库 🎉"),
    ],
)
def test_a_text_becomes_one_line_of_visible_signs(text: str | None, shown: str) -> None:
    assert plain(text) == shown


@ANY
@given(st.text())
def test_no_text_has_a_second_line_or_opens_a_tag(text: str) -> None:
    shown = plain(text)
    assert shown.isprintable()
    assert "<" not in shown
    assert shown.splitlines() in ([], [shown])
    assert plain(shown) == shown


@ANY
@given(st.text(), st.integers(3, 300))
def test_what_is_cut_fits_and_begins_like_the_text(text: str, width: int) -> None:
    shown = cut(text, width)
    assert room_for(shown) <= width
    assert shown == text or text.startswith(shown.removesuffix("..."))
    assert (shown == text) == (room_for(text) <= width)


@ANY
@given(st.text())
def test_a_text_takes_at_least_as_much_room_as_it_has_characters_for_the_client(text: str) -> None:
    assert room_for(text) >= len(text.encode("utf-16-le", "replace")) // 2


def test_signs_beyond_ascii_count_as_a_token_or_more() -> None:
    assert room_for("four") == 4
    assert room_for("ü") == 4
    assert room_for("数据") == 12
    assert room_for("🎉") == 8


@pytest.mark.parametrize(
    ("at", "date"), [(NOW, "2026-09-21"), (0, "1970-01-01"), (-5, "1970-01-01"), (10**18, "9999-12-31")]
)
def test_dates_are_absolute(at: int, date: str) -> None:
    assert day(at) == date


# --- pure: which comes first --------------------------------------------------------------------------------


def ids(rows: list[Standing], branch: str | None = None) -> list[str]:
    return [one.id for _, one in ranked(rows, branch)]


def test_the_more_salient_comes_first() -> None:
    assert ids([row(id="mem_a", salience=0.3), row(id="mem_b", salience=0.8)]) == ["mem_b", "mem_a"]


def test_of_two_that_are_equally_salient_the_newer_comes_first() -> None:
    old = row(id="mem_a", created_at=NOW - 60 * DAY_MS)
    assert ids([old, row(id="mem_b")]) == ["mem_b", "mem_a"]


def test_what_was_used_lately_has_decayed_less() -> None:
    old = {"created_at": NOW - 90 * DAY_MS}
    unused = row(id="mem_a", **old, last_accessed=NOW - 90 * DAY_MS)
    used = row(id="mem_b", **old, last_accessed=NOW - DAY_MS)
    assert ids([unused, used, row(id="mem_c")])[1:] == ["mem_b", "mem_a"]


def test_what_comes_from_the_branch_that_is_checked_out_ranks_higher() -> None:
    rows = [row(id="mem_a", branch="main"), row(id="mem_b", branch="fix"), row(id="mem_c")]
    assert ids(rows, "fix") == ["mem_b", "mem_a", "mem_c"]
    assert ids(rows, "main") == ["mem_a", "mem_b", "mem_c"]
    assert ids(rows, None) == ["mem_a", "mem_b", "mem_c"]


def test_ties_are_broken_by_id() -> None:
    assert ids([row(id="mem_c"), row(id="mem_a"), row(id="mem_b")]) == ["mem_a", "mem_b", "mem_c"]


# --- pure: what is open -------------------------------------------------------------------------------------


def open_texts(last: Outcome) -> list[str]:
    return [line.text.removeprefix("2026-09-21 ") for line in open_lines(last, 300)]


def test_only_the_last_turn_of_a_session_leaves_something_open() -> None:
    turns = [turn("a", "Next: rename the flag."), turn("thanks", "You are welcome.")]
    assert open_texts(came_to(*turns, summary_id=None)) == []


def test_a_question_of_the_assistant_is_told_as_its_own() -> None:
    (text,) = open_texts(came_to(turn("fix it", "Fixed. Should I also migrate the old billing tables?")))
    assert "the assistant asked: " in text
    assert "migrate the old billing tables?" in text


def test_a_step_that_is_named_twice_stands_there_once() -> None:
    assert open_texts(came_to(next_steps="- Migrate the tables\n- Migrate the tables")) == [
        "[mem_s] Migrate the tables"
    ]


def test_bullets_go_and_numbers_that_say_something_stay() -> None:
    steps = "1. ship it\n2) rest\n* look\n\n3 tests still fail"
    assert open_texts(came_to(next_steps=steps)) == [
        "[mem_s] ship it",
        "[mem_s] rest",
        "[mem_s] look",
        "[mem_s] 3 tests still fail",
    ]


@pytest.mark.parametrize(
    ("head", "facts", "is_open"),
    [
        ("1a2b3c4d", {"head": "1a2b3c4d"}, True),
        ("1a2b3c4d", {"head": "00000000", "commits": [["1a2b3c4", "subject", []]]}, True),
        ("99999999", {"head": "1a2b3c4d"}, False),
        (None, {"head": None}, False),
        ("1a2b3c4d", {"head": None}, False),
    ],
)
def test_files_are_uncommitted_where_the_head_is_where_the_turn_left_it(
    head: str | None, facts: dict[str, Any], is_open: bool
) -> None:
    last = turn("edit it", "Edited.", uncommitted=["src/a.py"], **facts)
    open_ends.settle(last, head, is_latest=True)
    assert bool(open_texts(came_to(last))) == is_open


def test_checks_fail_where_they_failed_in_the_latest_turn() -> None:
    def last() -> Turn:
        failing = {"make test": ["make test", "2 failed"], "make lint": ["make lint", "E501"]}
        return turn("fix it", "Tried.", failing=failing, failed=[["make test", "2 failed"]])

    latest, earlier = last(), last()
    open_ends.settle(latest, None, is_latest=True)
    open_ends.settle(earlier, None, is_latest=False)
    assert open_texts(came_to(latest)) == ["[mem_t] failing: make test: 2 failed"]
    assert open_texts(came_to(earlier)) == []


# --- pure: what a turn says ---------------------------------------------------------------------------------


def test_a_short_answer_is_told_whole_and_without_its_markup() -> None:
    answer = "## Done\n\n**Two** things:\n\n| file | why |\n|---|---|\n| a.py | speed |\n\n---\nThat is all."
    assert gist(answer, 200) == "Two things: file | why; a.py | speed; That is all."


def test_of_a_long_answer_the_beginning_and_the_end_are_told_and_no_code() -> None:
    answer = f"It was the cache.\n```py\nx = 1\n```\n{'It went on. ' * 80}\n\nIn short: key it by content."
    told = gist(answer, 300)
    assert told.startswith("It was the cache. It went on. It went on.")
    assert told.endswith("... In short: key it by content.")
    assert "x = 1" not in told
    assert gist(f"{answer} Shall I do that?", 300, is_open=True).endswith("It went on. ...")


@ANY
@given(st.text(), st.integers(20, 300))
def test_what_is_told_of_an_answer_fits(answer: str, width: int) -> None:
    assert room_for(gist(answer * 20, width)) <= width


@ANY
@given(st.lists(st.text(max_size=80), max_size=8), st.integers(20, 300))
def test_texts_beside_each_other_fit(texts: list[str], width: int) -> None:
    assert room_for(brief.parts(texts, width)) <= width


@pytest.mark.parametrize(
    "sign", ["-", "|", "| ", "`", "```\n", "#", "# ", "*", "\n", " ", "\n- ", "a", "?", ". A"]
)
def test_no_answer_takes_long_to_read(sign: str) -> None:
    started = time.process_time()
    answer = sign * 50_000
    room = room_for(gist(answer, 600)) + room_for(gist(f"|{answer}x", 600))
    open_texts(came_to(turn(answer, answer)))
    assert room <= 1_200
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("Done. It is keyed by content.", "It is keyed by content."),
        ("All tests pass. Here's a summary of the changes:\n\n## Summary\n\nTwo files.", "Two files."),
        ("Now I have a complete picture. Let me explain:\n\nIt is the cache.", "It is the cache."),
        ("Done.", "Done."),
        ("Let me know when it is there.", "Let me know when it is there."),
    ],
)
def test_what_an_answer_opens_with_is_left_out_where_something_follows(answer: str, told: str) -> None:
    assert gist(answer, 200) == told


def test_of_several_prompts_the_first_and_the_last_are_told() -> None:
    made = turn("one", "Answered.")
    made.prompts = [[text, "typed"] for text in ("/ide", "mend it", "b", "c", "d", "and the docs")]
    assert brief.asked(made, 150) == "mend it / d / and the docs"
    made.prompts = [["/review", "machine"]]
    assert brief.asked(made, 150) == "/review"
    made.prompts = [
        ["Implement the following plan:\n\n# Plan: Chain the hooks\n\n## Context\nMany", "machine"]
    ]
    assert brief.asked(made, 150) == "implement the plan: Chain the hooks"
    made.prompts = [["---", "typed"]]
    assert brief.asked(made, 150) == "---"


# --- pure: what fits ----------------------------------------------------------------------------------------


def section(heading: str, share: float, *texts: str, worth: float = 1.0) -> Section:
    lines = [Line(text, f"{heading}-{number}", worth - number / 100) for number, text in enumerate(texts)]
    return Section(heading, share, lines)


def test_sections_without_lines_are_left_out() -> None:
    found = render([section("Empty", 0.5), section("Full", 0.5, "a line")], 1_000)
    assert found.text == fence.fence(f"{brief.INTRODUCTION}\n\nFull:\n- a line", brief.SOURCE)
    assert found.ids == ("Full-0",)
    assert render([section("Empty", 0.5)], 1_000).text == ""
    assert render([], 1_000).text == ""


def test_every_section_has_its_share_and_the_rest_goes_to_the_best() -> None:
    rich = section("Rich", 0.5, *["r" * 50] * 100, worth=1)
    better = section("Better", 0.3, *["b" * 50] * 100, worth=5)
    poor = section("Poor", 0.2, "p" * 20)
    lines = render([rich, better, poor], 4_000).text.splitlines()
    assert len(under("Poor", lines)) == 1
    assert 0.4 < len(under("Rich", lines)) / (4_000 / 53) < 0.5
    assert 0.4 < len(under("Better", lines)) / (4_000 / 53) < 0.5  # its own share, and what Poor left


def test_where_room_is_short_every_section_says_one_thing_first() -> None:
    many = [section(name, share, *["x" * 60] * 10) for name, share in (("A", 0.4), ("B", 0.3), ("C", 0.3))]
    lines = render(many, 190 + 3 * 70 + 30).text.splitlines()
    assert [len(under(name, lines)) for name in "ABC"] == [1, 1, 1]


def test_no_room_says_nothing() -> None:
    assert render([section("A", 1, "x")], len(fence.fence(brief.INTRODUCTION, brief.SOURCE)) + 5).text == ""


@pytest.mark.slow
@ANY
@given(
    st.lists(
        st.tuples(st.floats(0.01, 1), st.lists(st.text(max_size=200), max_size=12), st.floats(0, 9)),
        max_size=6,
    ),
    st.integers(-10, 8_999),
)
def test_whatever_there_is_to_say_it_fits(many: list[tuple[float, list[str], float]], room: int) -> None:
    sections = [
        section(f"S{number}", share, *map(plain, texts), worth=worth)
        for number, (share, texts, worth) in enumerate(many)
    ]
    found = render(sections, room)
    assert room_for(found.text) <= max(0, room)
    lines = found.text.splitlines()
    assert len(found.ids) == sum(line.startswith("- ") for line in lines)
    every = {line.memory_id: f"- {line.text}" for one in sections for line in one.lines}
    assert all(every[one] in lines for one in found.ids)
