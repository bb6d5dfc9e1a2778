"""What is open after a turn, from its answer and its record."""

from __future__ import annotations

import pytest

from backstory.memory.closing import closing
from backstory.memory.open_ends import open_ends
from backstory.memory.turn import Turn


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        (
            "The cache is never cleared.\n\nWant me to clear it at start?",
            ["asked: Want me to clear it at start?"],
        ),
        (
            "Both work. Would you like the first? It is the smaller change.",
            ["asked: Both work. Would you like the first?"],
        ),
        (
            "There are two ways.\n\nShould I:\n1. widen the column\n2. cut the names",
            ["asked: Should I: 1. widen the column 2. cut the names"],
        ),
        ("Done.\n\nNext: the retries of the importer.", ["next: the retries of the importer."]),
        (
            "Done.\n\n## Next steps\n\n- write the docs\n- **drop** the old table\n",
            ["next: write the docs", "next: drop the old table"],
        ),
        ("**Remaining:**\n1. the Windows build\n", ["next: the Windows build"]),
        (
            "Let me know if you want me to add a test for it.",
            ["asked: Let me know if you want me to add a test for it."],
        ),
    ],
)
def test_the_end_of_an_answer_is_open(answer: str, lines: list[str]) -> None:
    assert closing(answer) == lines


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "All tests pass.",
        "Fixed. Anything else?",
        "Let me know if you have any questions.",
        "Done. Would you like me to commit this?",
        "Shall I push it and open a PR?",
        "What would you like to do next?",
        "## Next steps\n\n- write the docs\n\n## What changed\n\nThe docs are written.",
        "It prints:\n\n```\nContinue? [Y/n]\n```",
        "Why was it slow? The index was missing, and now there is one. It takes 3 ms. Nothing else changed."
        " The other queries are as fast as before.",
        "- Is it fast?\n- Is it right?",
    ],
)
def test_politeness_handing_in_and_what_stands_elsewhere_are_not_open(answer: str) -> None:
    assert closing(answer) == []


def turn_with(answer: str = "", asked: str = "") -> Turn:
    turn = Turn("s", 1)
    turn.answer, turn.closing = answer, closing(answer)
    if asked:
        turn.prompts = [[asked, "typed"]]
    return turn


@pytest.mark.parametrize(
    "question", ["Which one?", "Should names be cut at the first space after 40 characters?"]
)
def test_a_question_is_told_with_what_it_is_about(question: str) -> None:
    turn = turn_with(question, asked="how should names be cut?")
    assert open_ends(turn) == [f"asked: {question} (on: how should names be cut?)"]


def test_of_a_turn_from_before_its_end_was_read_nothing_was_asked() -> None:
    turn = turn_with("Which one?", asked="how should names be cut?")
    turn.closing = []
    assert open_ends(turn) == []


def test_a_check_that_fails_and_files_without_a_commit_are_open() -> None:
    turn = turn_with()
    turn.failing = {"pytest -q": ["pytest -q tests", "E assert 1 == 2"], "cat x": ["cat x", "No such file"]}
    turn.uncommitted = ["a.go", "b.go", "c.go", "d.go", "e.go", "f.go"]
    assert open_ends(turn) == [
        "failing: pytest -q tests: E assert 1 == 2",
        "uncommitted: a.go, b.go, c.go, d.go and 2 more",
    ]


def test_what_failed_before_a_turn_that_committed_did_not_matter() -> None:
    turn = turn_with()
    turn.failing = {"make test": ["make test", "FAIL"]}
    turn.commits = [["abc1234", "fix: names", []]]
    assert open_ends(turn) == []
    turn.failed = [["make test", "FAIL"]]
    assert open_ends(turn) == ["failing: make test: FAIL"]


def test_a_line_is_short() -> None:
    assert len(closing("Should I " + "rename this and " * 60 + "that?")[0]) <= 240
