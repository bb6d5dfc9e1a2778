"""What shows that a model used what it was told, and what it came upon again."""

from __future__ import annotations

import pytest

from backstory.memory.usage import FILE, ID, NONE, PERHAPS, TOO_EARLY, Done, Worked, found_again, sign_of_use
from backstory.safety.fence import fence

TOLD = "the walrus is rounded twice in invoice.py by frobnicate_total"


def done(**given: object) -> Done:
    values = {"files": frozenset(), "named": "", "touched": frozenset(), "prompt": "", "answer": "", **given}
    return Done(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("what", "sign"),
    [
        (done(named="Command: backstory show mem_1"), (ID, "mem_1")),
        (done(touched=frozenset({"mem_1"})), (ID, "mem_1")),
        (done(files=frozenset({"src/invoice.py"})), (FILE, "src/invoice.py")),
        (done(files=frozenset({"src/invoice.py"}), prompt="look at invoice.py"), (NONE, "")),
        (done(files=frozenset({"src/known.py"})), (NONE, "")),
        (done(answer="It was frobnicate_total."), (PERHAPS, "frobnicate_total")),
        (done(answer="It was frobnicate_total.", prompt="what does Frobnicate_Total do?"), (NONE, "")),
        (done(answer="rounded differently"), (NONE, "")),  # every project has that word
        (None, (TOO_EARLY, "")),
    ],
)
def test_a_sign_of_use_is_something_that_can_be_looked_up(what: Done | None, sign: tuple[str, str]) -> None:
    files = ["src/invoice.py", "src/known.py"]
    known = frozenset({"src/known.py"})
    assert sign_of_use(["mem_1"], files, TOLD, what, known, lambda word: "_" in word) == sign


def test_the_words_around_what_was_told_are_no_sign_of_use() -> None:
    text = fence(
        "From earlier sessions; memory_search with an id shows one whole.\n\nLast sessions:\n"
        "- 2026-03-01 [mem_1] asked: why?\n  answered: frobnicate_total\n  commits: 1a2b3c4",
        "backstory, with your prompt",
    )
    named = "memory_search, stored data and instructions of backstory: answered, commits, sessions"
    assert sign_of_use([], [], text, done(answer=named), frozenset(), lambda word: True) == (NONE, "")
    used = sign_of_use([], [], text, done(answer="frobnicate_total"), frozenset(), lambda word: True)
    assert used == (PERHAPS, "frobnicate_total")


def turn(session: str, at: int, **given: list[str]) -> Worked:
    parts = {"failed": [], "mended": [], "searched": [], **given}
    return Worked(f"{session}-{at}", session, at, at + 1, parts["failed"], parts["mended"], parts["searched"])


ERROR = "ValueError: 3 is no currency / make: *** [test] Error 2"


def test_an_error_that_an_earlier_session_mended_is_found_again_once_a_session() -> None:
    turns = [
        turn("a", 1, failed=[ERROR]),
        turn("b", 2, failed=[ERROR]),  # a had not mended it
        turn("b", 3, mended=[ERROR]),
        turn("c", 4, failed=["ValueError: 17 is no currency"]),
        turn("c", 5, failed=["ValueError: 18 is no currency"]),
        turn("b", 6, failed=[ERROR]),  # its own
    ]
    found = found_again(turns, 0, lambda session, until: set())
    assert [(one.what, one.session_id, one.known) for one in found] == [("error", "c", "b-3")]
    assert found_again(turns, 5, lambda session, until: set())[0].turn == "c-5"
    assert not found_again(turns, 0, lambda session, until: {"b-3"} if until >= 5 else set())
    assert not found_again(turns, 0, lambda session, until: set(), "b")


def test_a_search_counts_where_it_says_something() -> None:
    looked = ["def frobnicate", "**/*.py", "TODO"]
    found = found_again([turn("a", 1, searched=looked), turn("b", 2, searched=looked)], 0, lambda *_: set())
    assert [(one.what, one.text) for one in found] == [("search", "def frobnicate")]
