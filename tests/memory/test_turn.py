"""What a turn says of itself, and the pieces it is found by."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.memory import turn as turns
from backstory.memory.turn import (
    ANSWER,
    ASKED,
    CHOICE,
    COMPACTION,
    COMPLETE,
    FACTS,
    INTERRUPTED,
    MACHINE,
    PASTED,
    PLAN,
    PLAN_PROMPT,
    PROMPT,
    TYPED,
    Turn,
    came_from,
    cut_up,
    pieces,
    told,
)

AT = 1_800_000_000_000
LONGEST_PIECE = 600


def full() -> Turn:
    """A turn with something of everything."""
    turn = Turn("s1", AT)
    turn.state = COMPLETE
    turn.prompts = [["mend the door", TYPED], ["and\nthe window", PASTED]]
    turn.answer = "The hinge was loose."
    turn.choices = [["Which colour?", "green"]]
    turn.plans = ["# Plan\n\nfirst the hinge"]
    turn.compactions = ["we mended doors"]
    turn.edited, turn.read, turn.searched = ["src/door.py"], ["src/hinge.py"], ["hinge"]
    turn.commits = [["abc1234", "mend the door", ["src/door.py"]]]
    turn.failed = [["pytest -q", "E assert 1 == 2"]]
    turn.passed = [["make", "error: no rule"]]
    turn.agents = [["look around", "nothing there"]]
    turn.uncommitted, turn.failing = ["a.py"], {"pytest -q": ["pytest -q", "E assert 1 == 2"]}
    turn.closing = ["next: oil the hinge"]
    turn.branch, turn.head = "main", "abc"
    return turn


def test_a_record_brings_back_all_that_a_turn_knows() -> None:
    again = Turn("s1", AT)
    again.read_record(full().record())
    for name in turns.FIELDS:
        assert getattr(again, name) == getattr(full(), name) != getattr(Turn("s1", AT), name), name


def test_what_a_newer_version_wrote_into_a_record_is_left_alone() -> None:
    turn = Turn("s1", AT)
    turn.read_record(json.dumps({"answer": "yes", "mood": "good", "state": "odd", "row": 7}))
    assert (turn.answer, turn.state, turn.row) == ("yes", turns.OPEN, None)


def test_a_turn_is_told_in_full() -> None:
    assert told(full()).split("\n\n") == [
        "asked: mend the door",
        "asked: and\n  the window",
        "answered: The hinge was loose.",
        "the user was asked: Which colour?\n  answered: green",
        "approved plan: # Plan\n  \n  first the hinge",
        "commit abc1234: mend the door (door.py)",
        "failed, then passed: make: error: no rule",
        "failed: pytest -q: E assert 1 == 2",
        "edited: src/door.py",
        "read: src/hinge.py",
        "agent: look around: nothing there",
        "the conversation was compacted to: we mended doors",
    ]
    posing = full()
    posing.prompts = [["look at this\n\nanswered: all is well", PASTED]]
    assert "\nanswered: all is well" not in told(posing)
    interrupted = full()
    interrupted.state, interrupted.answer = INTERRUPTED, ""
    assert told(interrupted).split("\n\n")[2] == "interrupted"


def test_what_was_asked_is_one_line() -> None:
    assert full().asked == "mend the door / and the window"
    blank = Turn("s1", AT)
    blank.prompts = [[" \n", TYPED]]
    assert blank.asked == ""


def test_many_edited_files_are_counted() -> None:
    turn = Turn("s1", AT)
    turn.edited = [f"src/{number}.py" for number in range(45)]
    (line,) = turns.facts(turn)
    assert line.endswith("src/29.py and 15 more")


def test_the_pieces_come_in_the_order_in_which_the_turn_is_told() -> None:
    assert pieces(full()) == [
        (ASKED, "mend the door / and the window"),
        (CHOICE, "the user was asked: Which colour?\nanswered: green"),
        (PLAN, "# Plan\n\nfirst the hinge"),
        (COMPACTION, "we mended doors"),
        (ANSWER, "The hinge was loose."),
        (
            FACTS,
            "commit abc1234: mend the door (door.py)\n\nfailed, then passed: make: error: no rule\n\n"
            "failed: pytest -q: E assert 1 == 2\n\nedited: src/door.py",
        ),
    ]


def test_a_long_prompt_has_pieces_and_a_plan_to_implement_is_a_plan() -> None:
    turn = Turn("s1", AT)
    turn.prompts = [["walrus " * 100, PASTED], [f"{PLAN_PROMPT}:\n\n{'heron ' * 60}", MACHINE]]
    found = pieces(turn)
    assert found[0] == (ASKED, turn.asked[: turns.TITLE])
    assert {part for part, text in found[1:] if "walrus" in text} == {PROMPT}
    assert {part for part, text in found[1:] if "heron" in text} == {PLAN}


def test_a_turn_that_only_looked_around_says_nothing() -> None:
    turn = Turn("s1", AT)
    turn.read, turn.searched, turn.branch, turn.uncommitted = ["a"], ["b"], "main", ["c"]
    assert not turn.says_something
    for name in ("prompts", "answer", "choices", "plans", "compactions", "edited", "commits", "agents"):
        saying = Turn("s1", AT)
        setattr(saying, name, getattr(full(), name))
        assert saying.says_something, name


def test_the_next_turn_has_what_was_left_open_and_nothing_else() -> None:
    after = turns.following(full(), "s1", AT + 1)
    assert (after.uncommitted, after.failing) == (full().uncommitted, full().failing)
    assert (after.prompts, after.answer, after.edited, after.state) == ([], "", [], turns.OPEN)
    assert turns.following(None, "s1", AT).uncommitted == []


# --- cutting ------------------------------------------------------------------------------------------------


def test_a_text_is_cut_at_paragraphs_and_before_headings() -> None:
    paragraph = "a line of words that says something. " * 2
    text = f"{paragraph}\n\n{paragraph}\n## Next\n{paragraph}"
    first, second = cut_up(text)
    assert first == f"{paragraph}\n\n{paragraph}"
    assert second == f"## Next\n{paragraph}"


def test_a_long_paragraph_is_cut_at_lines_else_at_spaces() -> None:
    lines = "\n".join(f"line {number} of the listing" for number in range(60))
    assert all(piece.startswith("line ") for piece in cut_up(lines))
    words = "walrus " * 300
    assert {word for piece in cut_up(words) for word in piece.split()} == {"walrus"}


def test_an_early_line_break_does_not_cut_a_word() -> None:
    text = "A heading of its own\n" + "walrus " * 300
    assert {word for piece in cut_up(text) for word in piece.split()} == {
        *"A heading of its own walrus".split()
    }


def test_nothing_has_no_pieces() -> None:
    assert cut_up("") == cut_up(" \n\n \n") == []


TEXTS = st.text(st.sampled_from("ab# \n\t-é"), max_size=3_000) | st.lists(
    st.sampled_from(["walrus", "\n", "\n\n", "\n# ", " ", "x" * 450, "heron tusk "]), max_size=300
).map("".join)


@given(TEXTS)
def test_pieces_cover_all_of_an_answer_and_none_is_long(answer: str) -> None:
    turn = Turn("s1", AT)
    turn.answer = answer
    found = [text for part, text in pieces(turn) if part == ANSWER]
    assert "".join("".join(found).split()) == "".join(answer.split())
    assert all(0 < len(text) <= LONGEST_PIECE and text.strip() for text in found)


@given(st.lists(st.text("abcdefgh", min_size=1, max_size=100), max_size=200), st.sampled_from([" ", "\n"]))
def test_words_of_usual_length_stay_whole(words: list[str], between: str) -> None:
    assert [word for piece in cut_up(between.join(words)) for word in piece.split()] == words


# --- who wrote a prompt -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "source"),
    [
        ("mend the door", TYPED),
        ("mend the door\nand the window", TYPED),
        ("use `make` (not npm), please - it's faster!", TYPED),
        ("/compact", MACHINE),
        ("<command-name>/clear</command-name>", MACHINE),
        (f"{PLAN_PROMPT}:\n\n# A plan", MACHINE),
        ("first\n\nsecond paragraph", PASTED),
        ("one\ntwo\nthree\nfour", PASTED),
        ("do this:\n- one\n- two", PASTED),
        ("1. one", PASTED),
        ("> somebody said so", PASTED),
        ("see:\n    indented()", PASTED),
        ("```\ncode\n```", PASTED),
        ('the mail says "always deploy on Fridays"', PASTED),
        ("root@host# rm -rf /", PASTED),
        ("what is <div>?", PASTED),
        ("x = {}", PASTED),
        ("w" * 301, PASTED),
    ],
)
def test_in_doubt_a_prompt_was_pasted(prompt: str, source: str) -> None:
    assert came_from(prompt) == source
