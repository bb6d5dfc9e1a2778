"""The pure part of a brief: how a line is written, which comes first, and what fits."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backstory.memory.salience import DAY_MS
from backstory.recall import brief
from backstory.recall.brief import Line, Section, cut, day, open_steps, plain, ranked, render, room_for
from backstory.safety import fence
from backstory.store.standing import Outcome, Standing
from tests.helpers.brief import NOW, under

ANY = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


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


def came_to(**fields: Any) -> Outcome:
    """A session, as the store tells of it."""
    empty = dict.fromkeys("request completed learned next_steps files_edited prompt prompt_id branch".split())
    return Outcome(**{**empty, "started_at": NOW, "summary_id": "mem_s", **fields})


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


def test_a_step_that_a_later_session_took_is_no_longer_open() -> None:
    rows = [
        came_to(request="Cover the retry queue with tests", next_steps="Document the retry queue"),
        came_to(next_steps="- Write tests that cover the retry queue\n- Remove the deprecated endpoint"),
    ]
    assert [line.text for line in open_steps(rows, "", 200)] == [
        "2026-09-21 [mem_s] Document the retry queue",
        "2026-09-21 [mem_s] Remove the deprecated endpoint",
    ]
    done = "The deprecated endpoint was removed"
    assert [line.text for line in open_steps(rows, done, 200)] == [
        "2026-09-21 [mem_s] Document the retry queue"
    ]


def test_a_step_that_is_still_open_stands_there_once() -> None:
    rows = [
        came_to(summary_id="mem_new", next_steps="Migrate the billing tables"),
        came_to(next_steps="Migrate billing tables; ask finance about rounding"),
        came_to(next_steps="Migrate the billing tables"),
    ]
    shown = [line.text for line in open_steps(rows, "", 200)]
    assert shown[0] == "2026-09-21 [mem_new] Migrate the billing tables"
    assert not any("mem_s] Migrate the" in line for line in shown)


def test_bullets_go_and_numbers_that_say_something_stay() -> None:
    (line,) = open_steps([came_to(next_steps="1. ship it\n2) rest\n* look\n\n3 tests still fail")], "", 200)
    assert line.text == "2026-09-21 [mem_s] ship it; rest; look; 3 tests still fail"


def test_the_steps_of_three_sessions_are_told() -> None:
    rows = [came_to(next_steps=f"step{letter * 5}") for letter in "abcdef"]
    assert [line.text[-9:] for line in open_steps(rows, "", 200)] == ["stepaaaaa", "stepbbbbb", "stepccccc"]


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
