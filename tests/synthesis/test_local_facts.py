"""Commits, answered questions and approved plans become observations, and nothing else does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backstory.memory.turn import Turn
from backstory.model import Batch, Memory, Observation
from backstory.synthesis.local import observe
from backstory.synthesis.rules.facts import decisions, kind_of, plan_title, settles
from tests.helpers.chaos import tool_use
from tests.helpers.scripted_session import GREEN, PROJECT, RED, Script, Told, found, lived, one, session


@pytest.mark.parametrize(
    ("subject", "kind", "point"),
    [
        ("feat: export tasks as CSV", "feature", "export tasks as CSV"),
        ("feat(cli)!: add a --json flag to list", "feature", "cli: add a --json flag to list"),
        ("Add a --json flag to list (#12)", "feature", "Add a --json flag to list"),
        ("Added support for Windows paths", "feature", "Added support for Windows paths"),
        ("Implements retries of failed uploads", "feature", "Implements retries of failed uploads"),
        ("ABC-12: Add retries to the uploader", "feature", "Add retries to the uploader"),
        ("✨ Add retries to the uploader", "feature", "Add retries to the uploader"),
        ("net/http: fix a leak of idle connections", "bugfix", "net/http: fix a leak of idle connections"),
        ("refactor(cart): extract into its own package", "refactor", "cart: extract into its own package"),
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
        "Consolidate the logs of all carts in one file",
        "refactor: extract the totals and add rounding",
        "Add a shared helper for totals of carts",
        "feat(cart): add a discount field to the options",
        "Add the missing discount to saved carts",
        "Fix broken import path of the cart module",
        "Fix staticcheck SA5011 in the cart module",
        "fix: call t.Fatal instead of t.Error for carts",
    ],
)  # fmt: skip
def test_a_commit_that_does_not_say_so_or_changes_no_code_is_none(subject: str) -> None:
    assert kind_of(subject) is None


def test_a_commit_that_changed_only_tests_or_docs_is_none() -> None:
    assert kind_of("Add negative cases for carts", ["tests/test_cart.py", "docs/cart.md"]) is None
    assert kind_of("Add negative cases for carts", ["src/cart_test.go", "src/cart.go"]) is not None
    assert kind_of("fix: wait for the server of carts", ["src/cart_test.go"]) is None


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
        " failed, then passed: FAILED tests/test_cart.py::test_total - AssertionError: 3 != 4"
    )
    assert (fix.files, fix.source, fix.turn) == (("src/cart.py",), "repository", "turn1")


def test_what_is_said_of_something_else_is_no_reason() -> None:
    script = Script().ask("what is the weather like in the office today?").edit("src/cart.py")
    script.commit("Add a discount to the cart").say("It rains. The discount is in the cart now: ten percent.")
    text = "Add a discount to the cart. answered: The discount is in the cart now: ten percent."
    assert one(script).text == text


def test_what_failed_for_another_reason_is_not_told() -> None:
    for error in ("src/cart.py:3:1: F401 `total` of a cart is unused", "FAILED tests/test_tax.py::test_rate"):
        script = Script().ask("mend it").fail("make check", error).edit("src/cart.py").bash("make check")
        script.commit("Fix the total of a cart without its last line").say()
        assert one(script).text == "Fix the total of a cart without its last line."


def test_a_commit_that_was_taken_back_is_none() -> None:
    script = Script().ask("mend it").edit("a.py").commit("Fix rounding of the tax")
    assert found(script.bash("git reset --hard HEAD~1").say()) == []
    script = Script().ask("mend it").edit("a.py").commit("Fix rounding of the tax")
    assert found(script.commit('Revert "Fix rounding of the tax"', "2b3c4d5").say()) == []


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
    assert decision.text == "The user chose: PostgreSQL (on: set up the service)"


def test_a_decision_is_told_with_what_was_said_of_the_option_and_what_it_was_about() -> None:
    question = "Where should the warning appear?"
    options = [{"label": "Option C", "description": "In the status line, not in the log"}]
    asked = {"questions": [{"question": question, "options": options}]}
    script = Script().ask("hello, a question about the weather").say()
    script.ask("show a warning when a cart is full").say().ask("yes please do that")
    script.add(tool_use("AskUserQuestion", asked, {**asked, "answers": {question: "Option C"}})).say()
    decision = one(script)
    assert decision.title == f"{question} → In the status line, not in the log"
    assert decision.text == (
        "The user chose: In the status line, not in the log (on: show a warning when a cart is full)"
    )


def test_words_of_a_description_alone_do_not_say_what_a_question_was_about() -> None:
    script = Script().ask("the weather log of the office is full").say().ask("yes please do that")
    script.choose(
        "Which of these two databases should the service use?", "SQLite: no office, no weather"
    ).say()
    assert one(script).text == "The user chose: SQLite (offered as: no office, no weather)"
    assert one(script).title.endswith("→ SQLite")


def test_nobody_chose_in_a_session_that_nobody_attended() -> None:
    turn = Turn("s1", 0)
    turn.choices = [["Which database should the service use?", "SQLite"]]
    assert list(decisions([turn], attended=True))
    assert not list(decisions([turn], attended=False))


def test_a_numbered_option_without_a_description_settles_nothing() -> None:
    assert found(Script().ask("set up the service").choose("Which database?", "Option C").say()) == []


def test_how_to_quiet_a_linter_is_no_decision() -> None:
    script = Script().ask("mend it").choose("How to fix the lint error of the cart?", "Add a comment").say()
    assert found(script) == []


def test_a_later_answer_to_a_question_replaces_the_earlier() -> None:
    first = Script().ask("set up the service").choose("Which database?", "PostgreSQL").say()
    told = Told()
    told.take([*first.payloads, *Script().choose("Which database?", "SQLite").say().payloads], 1)
    old = one(first)
    stored, items = frozenset({("decision", old.title)}), tuple(told.items)
    batch = Batch(
        session(), PROJECT, items, (), None, (known(old, "mem_1"),), True, tuple(told.turns), stored
    )
    (new,) = observe(batch).observations
    assert (new.title, new.supersedes) == ("Which database? → SQLite", ("mem_1",))


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
    assert decision.text == (
        "Approved plan: Parse and store in two modules, so that each can be tested."
        " Why: The importer does everything."
    )


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ("### Step 1: Write failing tests\n### Step 2: Split the parser off\n### 3. Store rows in batches\n",
         "Split the parser off; Store rows in batches."),
        ("### 1. `src/importer.py`\n\n```python\nimport csv\n```\n\nMove the parser of rows out of the loop"
         " into a module:\n\n```python\nparse()\n```\n",
         "Move the parser of rows out of the loop into a module."),
    ],
)  # fmt: skip
def test_a_plan_is_told_by_what_is_done_before_why(changes: str, told: str) -> None:
    context = "## Context\n\nIt does everything."
    plan = f"# Split the importer\n\n{context}\n\n## Changes\n\n{changes}\n## Files\n- a\n"
    assert plan_title(plan) == ("Split the importer", f"{told} Why: It does everything.")


def test_a_plan_that_tells_only_its_reason_is_no_decision() -> None:
    plan = "# The importer is slow\n\n## Context\n\nIt takes an hour.\n\n## Changes\n\n### `importer.py`\n"
    assert found(Script().ask("make a plan").plan(plan).say()) == []


def test_a_later_plan_of_the_same_title_replaces_the_earlier() -> None:
    first = Script().ask("make a plan").plan(PLAN).say()
    second = Script().ask("make another").plan(PLAN.replace("two modules", "three modules")).say()
    told = Told()
    told.take([*first.payloads, *second.payloads], 1)
    old = one(first)
    stored = frozenset({("decision", old.title)})
    items, turns = tuple(told.items), tuple(told.turns)
    batch = Batch(session(), PROJECT, items, (), None, (known(old, "mem_1"),), True, turns, stored)
    (new,) = observe(batch).observations
    assert (new.title, new.supersedes) == (old.title, ("mem_1",)) and "three modules" in new.text
    assert observe(replace(batch, known=(known(new, "mem_2"),))).observations == ()


def known(observation: Observation, memory_id: str) -> Memory:
    title, text = observation.title, observation.text
    return Memory(
        memory_id, 1, "p", "s", "decision", "reflective", "project", title, text, (), (), (), (), None,
        0.5, 0.5, 0, 0, None, None,
    )  # fmt: skip


def test_a_plan_that_a_session_begins_with_was_approved_where_somebody_was_there() -> None:
    script = Script().ask(f"Implement the following plan:\n\n{PLAN}").edit("importer.py").say()
    assert one(script).title == "Split the importer"
    assert found(script, attended=False) == []
    assert found(Script().ask("Implement the following plan: never use pip again").say()) == []


def test_a_plan_without_a_title_is_called_by_its_first_line() -> None:
    assert plan_title("# Plan\n\nMove the parser into a module.\n")[0] == "Move the parser into a module."
    assert plan_title("Implementation plan: cache the pages\n- one\n")[0] == "cache the pages"
    assert plan_title("# Fix it:\n\nThe steps are:\n\n- one\n- two\n")[1] == "The steps are: one two."
