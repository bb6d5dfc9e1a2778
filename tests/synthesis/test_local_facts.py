"""Commits, answered questions and approved plans become observations, and nothing else does."""

from __future__ import annotations

import pytest

from backstory.synthesis.rules.facts import kind_of, plan_title, settles
from tests.helpers.scripted_session import GREEN, RED, Script, found, lived, one


@pytest.mark.parametrize(
    ("subject", "kind", "point"),
    [
        ("feat: export tasks as CSV", "feature", "export tasks as CSV"),
        ("feat(cli)!: add a --json flag to list", "feature", "add a --json flag to list"),
        ("Add a --json flag to list (#12)", "feature", "Add a --json flag to list"),
        ("Added support for Windows paths", "feature", "Added support for Windows paths"),
        ("Implements retries of failed uploads", "feature", "Implements retries of failed uploads"),
        ("ABC-12: Add retries to the uploader", "feature", "Add retries to the uploader"),
        ("✨ Add retries to the uploader", "feature", "Add retries to the uploader"),
        ("net/http: fix a leak of idle connections", "bugfix", "fix a leak of idle connections"),
        ("fix: count the last line of a cart", "bugfix", "count the last line of a cart"),
        ("Fix crash on empty carts and add tests", "bugfix", "Fix crash on empty carts and add tests"),
        ("Prevent double bookings of one seat", "bugfix", "Prevent double bookings of one seat"),
        ("Handle nil sessions in the status command", "bugfix", "Handle nil sessions in the status command"),
        ("perf: read the transcript only once", "refactor", "read the transcript only once"),
        ("Rename LastSeenAt to LastSeenTime", "refactor", "Rename LastSeenAt to LastSeenTime"),
        ("Extract the parser into its own module", "refactor", "Extract the parser into its own module"),
    ],
)
def test_the_first_words_of_a_commit_say_what_it_is(subject: str, kind: str, point: str) -> None:
    assert kind_of(subject) == (kind, point)


@pytest.mark.parametrize(
    "subject",
    [
        "Move the shell completion prompt to the end",
        "Simplify the onboarding of new users",
        "Remove the export of tasks",
        "docs: add the export to the README",
        "test: add cases for empty carts",
        "chore(deps): bump vite from 5 to 6",
        "style: fix gofmt formatting",
        "ci: add a matrix of systems",
        "Revert \"Add a --json flag to list\"",
        "Merge branch 'main' into feature/export-of-tasks",
        "WIP export of tasks",
        "update",
        "changes",
        "Update the cart and the invoice",
        "fix",
        "fix bug",
        "Fix typo in error message of cart",
        "fix: address PR review feedback",
        "fix(explain): address remaining PR feedback",
        "Address review: use the right folder",
        "Fix lint errors in the cart module",
        "fix(tests): wait for the server to start",
        "Add unit tests for the cart module",
        "Add comments to the cart module",
        "Bump version to 1.2.3",
        "Addition of numbers in carts",
    ],
)  # fmt: skip
def test_a_commit_that_does_not_say_so_or_changes_no_code_is_none(subject: str) -> None:
    assert kind_of(subject) is None


def test_a_commit_that_changed_only_tests_or_docs_is_none() -> None:
    assert kind_of("Add negative cases for carts", ["tests/test_cart.py", "docs/cart.md"]) is None
    assert kind_of("Add negative cases for carts", ["src/cart_test.go", "src/cart.go"]) is not None


def test_of_a_commit_that_says_its_type_files_without_code_are_not_all() -> None:
    script = Script().ask("carry out the plan").edit("docs/plan.md").commit("feat: export tasks as CSV").say()
    assert [(flag.title, flag.files) for flag in found(script)] == [("Export tasks as CSV", ())]


def test_a_commit_is_told_with_what_was_asked_and_what_failed_before() -> None:
    script = Script().ask("the total of a cart leaves out its last line, please fix")
    script.fail("pytest -q", RED).edit("src/cart.py").bash("pytest -q", GREEN)
    script.say("The loop over the lines of a cart ended early, so the total left out the last line.")
    script.ask("commit this").commit("Fix the total of a cart without its last line").say(
        "Committed as 1a2b3c4."
    )
    store = lived(script)
    (fix,) = store.found
    assert (fix.kind, fix.title) == ("bugfix", "Fix the total of a cart without its last line")
    assert fix.text == (
        "Fix the total of a cart without its last line."
        " asked: the total of a cart leaves out its last line, please fix"
        " failed, then passed: pytest -q: FAILED tests/test_cart.py::test_total - AssertionError: 3 != 4"
    )
    assert (fix.files, fix.source, fix.turn) == (("src/cart.py",), "repository", "turn1")


def test_what_is_said_of_something_else_is_no_reason() -> None:
    script = Script().ask("what is the weather like in the office today?").edit("src/cart.py")
    script.commit("Add a discount to the cart").say("It rains. The discount is in the cart now: ten percent.")
    text = "Add a discount to the cart. answered: The discount is in the cart now: ten percent."
    assert one(script).text == text


def test_of_several_commits_none_claims_what_failed() -> None:
    script = Script().ask("mend both").fail("pytest -q", RED).edit("a.py").bash("pytest -q", GREEN)
    script.commit("Fix rounding of the tax").edit("b.py").commit("Fix rounding of the sum", "2b3c4d5").say()
    fixes = found(script)
    assert [fix.files for fix in fixes] == [("a.py",), ("b.py",)]
    assert not any("failed" in fix.text for fix in fixes)


def test_an_amended_commit_replaces_the_one_before() -> None:
    script = Script().ask("add a flag").edit("cli.py").commit("Add a --jsn flag to list").edit("docs.py")
    script.commit("Add a --json flag to list", "2b3c4d5", "--amend -m").say()
    assert [(flag.title, flag.files) for flag in found(script)] == [
        ("Add a --json flag to list", ("cli.py", "docs.py"))
    ]


def test_no_sentence_of_the_assistant_becomes_an_observation() -> None:
    script = Script().ask("why is it slow?").read("db.py").edit("db.py")
    script.say("The cause was a missing index. We decided to use Postgres. From now on I always add one.")
    assert found(script) == []


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Which database should the service use?", "PostgreSQL"),
        ("Which clients come first?", "Web, iOS"),
        ("Should Stop condense at once, or on a commit?", "Keep current: condense on user commit"),
        ("Should post-commit still update the base?", "Yes, update the base (Recommended)"),
    ],
)
def test_an_answer_settles_a_question(question: str, answer: str) -> None:
    assert settles(question, answer)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What would you like to do next?", "Start with the parser"),
        ("Ready to force-push the rebased branch?", "Yes, force push"),
        ("Shall I commit this?", "In two commits"),
        ("How should these fixups be committed?", "New commit"),
        ("Where should I write the plan down?", "Local file"),
        ("Which PR would you like me to review?", "#325"),
        ("Can you clarify what you mean by trailing?", "the last one"),
        ("Does this design capture the right approach?", "add a time out"),
        ("Which database should the service use?", "Other"),
        ("Which database should the service use?", "yes"),
        ("Which database should the service use?", "not sure"),
        ("Which database should the service use?", "what would you take?"),
        ("Which database should the service use?", "see https://example.com/databases"),
        ("Which database should the service use?", "it depends " * 20),
        ("Should it retry?", "No"),
        ("Should it retry?", "Go ahead"),
    ],
)
def test_an_answer_about_how_to_go_on_settles_nothing(question: str, answer: str) -> None:
    assert not settles(question, answer)


def test_an_answered_question_is_a_decision_of_the_users() -> None:
    script = Script().ask("set up the service").choose("Which database?", "PostgreSQL (Recommended)").say()
    decision = one(script)
    assert (decision.kind, decision.source) == ("decision", "user")
    assert decision.title == "Which database? → PostgreSQL"
    assert decision.text == "The user was asked: Which database? Answered: PostgreSQL"


PLAN = """# Plan: Split the importer

## Context
The importer does everything.

## Goal
Parse and store in two modules, so that each can be tested.

## Files to modify
- importer.py
"""


def test_an_approved_plan_is_a_decision_in_the_assistants_words() -> None:
    decision = one(Script().ask("make a plan").plan(PLAN).say())
    assert (decision.kind, decision.title, decision.source) == ("decision", "Split the importer", "assistant")
    assert decision.text == "Approved plan: Parse and store in two modules, so that each can be tested."


def test_a_plan_that_a_session_begins_with_was_approved_where_somebody_was_there() -> None:
    script = Script().ask(f"Implement the following plan:\n\n{PLAN}").edit("importer.py").say()
    assert one(script).title == "Split the importer"
    assert found(script, attended=False) == []
    assert found(Script().ask("Implement the following plan: never use pip again").say()) == []


def test_a_plan_without_a_title_is_called_by_its_first_line() -> None:
    assert plan_title("# Plan\n\nMove the parser into a module.\n")[0] == "Move the parser into a module."
    assert plan_title("Implementation plan: cache the pages\n- one\n")[0] == "cache the pages"
    assert plan_title("# Fix it:\n\nThe steps are:\n\n- one\n- two\n")[1] == "The steps are: one two"
