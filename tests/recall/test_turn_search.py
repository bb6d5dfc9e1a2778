"""Finding turns: one hit each, by their pieces."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

from backstory.memory.turn import OPEN, PASTED, TYPED
from backstory.model import Answer, Filters, Hit
from backstory.recall import excerpt, rank
from backstory.recall.answer import answer as search
from backstory.recall.embedders.static import Static
from backstory.recall.index import Index
from backstory.store import life, memories, turns
from tests.helpers.brief import HOUR, NOW, Told

TALK = (
    ("where is the port of the mail server set?", "In config/mail.toml, as `listen`; it is 2525."),
    ("mend the flaky upload test", "The fixture did not wait for the worker; it joins the thread now."),
    ("how do we release?", "Run make dist, then push a tag; the workflow uploads the wheel."),
    ("why is the brief slow?", "It counted every memory; now it asks the index for the newest ones."),
)


@pytest.fixture
def talk(told: Told) -> list[str]:
    """Turns of three sessions, an hour apart."""
    return [
        told.turn(f"s{number // 2}", asked, answer, at=NOW - (10 - number) * HOUR)
        for number, (asked, answer) in enumerate(TALK)
    ]


def ask(told: Told, query: str, **more: Any) -> Answer:
    index = more.pop("index", None) or Index(None)
    filters = {name: more.pop(name) for name in list(more) if name in Filters.__slots__}
    return search(index, told.db, told.project, query, now=NOW, filters=Filters(**filters), **more)


def ids(answer: Answer) -> list[str]:
    return [hit.memory.id for hit in answer.hits]


def shown(hit: Hit) -> list[str]:
    assert hit.excerpt
    return list(hit.excerpt.pieces)


# --- one hit a turn -----------------------------------------------------------------------------------------


def test_a_turn_is_one_hit_however_many_of_its_pieces_fit(told: Told) -> None:
    answer = "\n\n".join(f"The walrus number {n} sleeps on the {'long ' * 40} pier." for n in range(6))
    turn_id = told.turn("s1", "where does the walrus sleep?", answer)
    (hit,) = ask(told, "walrus sleeps on the pier").hits
    assert hit.memory.id == turn_id
    assert len(shown(hit)) > 3
    assert hit.asked == "where does the walrus sleep?"


def test_a_turn_is_found_by_its_answer_and_by_what_was_asked(
    told: Told, talk: list[str], static: Static
) -> None:
    for index in (Index(None), Index(static)):
        for query, place in (("mail server port", 0), ("join thread fixture", 1), ("push a tag", 2)):
            assert ids(ask(told, query, index=index))[0] == talk[place]


def test_the_best_piece_decides_and_is_shown_however_little_room_there_is(told: Told) -> None:
    filler = "Something else that was looked at on the way, with many words. " * 5
    told.turn("s1", "look into the cache", f"{filler}\n\n{filler}\n\nThe walrus key expires.\n\n{filler}")
    told.turn("s2", "look into the walrus", filler)
    (first, *_) = ask(told, "walrus key expires", room=(450, 450)).hits
    assert first.asked == "look into the cache"
    assert any("walrus key" in text for text in shown(first))


def test_a_choice_is_shown_first_of_what_fits_and_with_room_all_of_it(told: Told) -> None:
    told.turn(
        "s1",
        "paint the walrus house",
        "The walrus house is painted.",
        choices=[["Which colour for the walrus?", "green"]],
        plans=["First sand the walrus door."],
        commits=[["abc1234", "paint the walrus house", ["paint.py"]]],
    )
    (hit,) = ask(told, "walrus colour", room=(160, 160)).hits
    assert shown(hit) == ["the user was asked: Which colour for the walrus?\nanswered: green"]
    (hit,) = ask(told, "walrus colour").hits
    assert {"answered: The walrus house is painted.", "plan: First sand the walrus door."} <= set(shown(hit))
    assert hit.excerpt and hit.excerpt.commits == ("commit abc1234: paint the walrus house (paint.py)",)


def test_a_prompt_that_fits_is_shown_whole(told: Told) -> None:
    asked = (
        "add a report of the week to the shop, with a total at the end of every page, sorted by day and hour"
    )
    asked += ", but never print the seconds, because the walrus council objects"
    told.turn("s1", asked, "Done.")
    (hit,) = ask(told, "why no seconds").hits
    assert "the walrus council objects" in str(hit.excerpt)
    assert "the walrus council objects" not in str(excerpt.of_turn(hit.asked, [], [], 700))


def test_of_several_short_prompts_none_is_lost(told: Told) -> None:
    prompts = [[f"part {number} of what I want, told in a sentence " * 3, TYPED] for number in range(4)]
    told.turn("s1", "", "Done.", prompts=[*prompts, ["and do not forget the walrus", TYPED]])
    assert len(ask(told, "walrus").hits) == 1


def test_only_a_prompt_that_was_all_pasted_is_called_so(told: Told) -> None:
    for name, prompts in (("s1", [["walrus", PASTED]]), ("s2", [["walrus", PASTED], ["yes", TYPED]])):
        told.turn(name, "walrus", prompts=prompts)
    hits = {hit.memory.session_id: hit for hit in ask(told, "walrus").hits}
    assert str(hits["s1"].excerpt).startswith("asked (pasted): walrus")
    assert str(hits["s2"].excerpt).startswith("asked: walrus / yes")


def test_the_explanation_of_a_turn_adds_up_to_its_score(told: Told, talk: list[str], static: Static) -> None:
    for mode in ("hybrid", "semantic", "keyword"):
        for hit in ask(told, "port of the mail server", index=Index(static), mode=mode).hits:
            assert sum(part.value for part in hit.parts) == pytest.approx(hit.score, abs=0.004)
            assert 0 < hit.score <= 1.15 + 1e-6


def test_the_excerpt_of_a_turn_keeps_to_its_room_and_its_order(told: Told) -> None:
    answer = "\n\n".join(f"Step {n}: the walrus {'goes ' * 50}" for n in range(8))
    told.turn("s1", "lead the walrus home", answer, commits=[["abc1234", "lead it", []]])
    (hit,) = ask(told, "walrus", room=(700, 700)).hits
    text = str(hit.excerpt)
    assert len(text) <= 700
    assert text.startswith("asked: lead the walrus home\nanswered: Step")
    assert text.endswith("commit abc1234: lead it")
    steps = [
        int(line.split()[line.split().index("Step") + 1][0]) for line in text.splitlines() if "Step" in line
    ]
    assert steps == sorted(steps)


# --- traces -------------------------------------------------------------------------------------------------


@pytest.fixture
def traced(told: Told, talk: list[str]) -> str:
    told.memory("tool", "Tool: Bash\nCommand: cat config/mail.toml of the mail server", session="s0")
    trace = told.memory("tool", "Tool: Bash\nCommand: feed the walrus", session="s0")
    told.db.execute("UPDATE memories SET sector = 'episodic' WHERE kind = 'tool'")
    return trace


def test_traces_are_out_of_the_ranking_where_something_else_fits(
    told: Told, talk: list[str], traced: str
) -> None:
    assert {hit.memory.kind for hit in ask(told, "mail server").hits} == {"turn"}


@pytest.mark.parametrize("filters", [{"kind": "tool"}, {"sector": "episodic"}])
def test_traces_are_in_it_where_they_are_asked_for(told: Told, traced: str, filters: dict[str, str]) -> None:
    assert "tool" in {hit.memory.kind for hit in ask(told, "mail server", **filters).hits}


def test_traces_are_in_it_where_nothing_else_fits(told: Told, traced: str) -> None:
    assert ids(ask(told, "walrus")) == [traced]


# --- whether anything fits ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "fits"),
    [
        ("port of the mail server", True),
        ("flaky upload test", True),
        ("release tag workflow", True),
        ("which kubernetes ingress controller terminates the port", False),
        ("terraform state bucket for the upload", False),
    ],
)
def test_an_answer_says_whether_it_covers_the_query(
    told: Told, talk: list[str], static: Static, query: str, fits: bool
) -> None:
    for index in (Index(None), Index(static)):
        answer = ask(told, query, index=index)
        assert answer.hits
        assert answer.fits == fits


def test_a_turn_covers_a_query_with_all_of_its_pieces_together(told: Told) -> None:
    filler = "and many other things were seen on the way there. " * 8
    told.turn(
        "s1", "where is the kiwi?", f"{filler}\n\nThe papaya is here.\n\n{filler}\n\nThe mango is there."
    )
    assert ask(told, "kiwi papaya mango").fits


def test_a_word_that_is_nowhere_weighs_most(told: Told, talk: list[str]) -> None:
    corpus = Index(None).corpus(told.db, memories, None)
    assert rank.weights(corpus, []) == []
    assert ask(told, "mail").fits
    assert not ask(told, "mail zeppelin airship").fits


# --- what is no answer --------------------------------------------------------------------------------------


def test_what_two_memories_say_alike_is_shown_once(told: Told) -> None:
    note = told.memory("note", "Before a release, run the tests of the walrus.")
    fact = told.memory("decision", "run tests of the walrus before release")
    other = told.memory("note", "The walrus sleeps after a release.")
    turn = told.turn("s1", "Before a release, run the tests of the walrus.")
    found = set(ids(ask(told, "walrus release")))
    assert {other, turn} < found  # a turn has more to it than these words
    assert len(found & {note, fact}) == 1


def test_what_is_being_asked_just_now_is_no_answer_to_it(told: Told) -> None:
    earlier = told.turn("s1", "where does the walrus sleep?", "On the pier.", at=NOW - HOUR)
    told.turn("s1", "ask memory where the walrus sleeps", at=NOW, state=OPEN)
    elsewhere = told.turn("s2", "feed the walrus", at=NOW - HOUR)
    assert set(ids(ask(told, "walrus", asking="s1"))) == {earlier, elsewhere}
    assert len(ids(ask(told, "walrus", asking="s3"))) == len(ids(ask(told, "walrus"))) == 3


def test_forgotten_and_superseded_turns_are_not_found(told: Told, talk: list[str]) -> None:
    index = Index(None)
    assert ids(ask(told, "mail server port", index=index))[0] == talk[0]
    life.forget(told.db, talk[0], None, NOW)
    assert talk[0] not in ids(ask(told, "mail server port", index=index))
    assert ids(ask(told, talk[0], index=index)) == []
    life.supersede(told.db, talk[1], told.memory("note", "something newer"), None, NOW, said_by="user")
    assert talk[1] not in ids(ask(told, "flaky upload test", index=index))
    assert talk[1] in ids(ask(told, "flaky upload test", index=index, include_superseded=True))


# --- filters ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"kind": "turn"}, ["first", "second"]),
        ({"kind": "note"}, ["note"]),
        ({"session_id": "s2"}, ["second"]),
        ({"since": NOW - HOUR}, ["note", "second"]),
        ({"until": NOW - HOUR}, ["first"]),
        ({"files": ("src/a.py",)}, ["first"]),
        ({"files": ("/home/me/app/src/a.py",)}, ["first"]),
        ({"files": ("b.py",)}, []),
        ({"tier": "project", "sector": "episodic"}, ["first", "second"]),
        ({"kind": "turn", "session_id": "s2", "files": ("src/a.py",)}, []),
    ],
)
def test_filters_work_on_the_pieces_of_turns(
    told: Told, filters: dict[str, Any], expected: list[str]
) -> None:
    names = {
        told.turn("s1", "feed it", "The walrus was fed.", at=NOW - 2 * HOUR, edited=["src/a.py"]): "first",
        told.turn("s2", "wash it", "The walrus was washed.", at=NOW): "second",
        told.memory("note", "The walrus likes fish.", at=NOW): "note",
    }
    assert sorted(names[one] for one in ids(ask(told, "walrus", **filters))) == expected


# --- kept in step -------------------------------------------------------------------------------------------


def grow(told: Told, answer: str, **facts: Any) -> None:
    (turn,) = turns.of_session(told.db, "s1")
    turn.answer = answer
    for name, fact in facts.items():
        setattr(turn, name, fact)
    turns.save(told.db, turn, told.session("s1"))


@pytest.mark.parametrize("by_meaning", [False, True], ids=["words", "meaning"])
def test_a_turn_that_grows_is_found_by_what_is_new(told: Told, static: Static, by_meaning: bool) -> None:
    index = Index(static if by_meaning else None)
    turn_id = told.turn("s1", "look after the animals", at=NOW, state=OPEN, edited=["zoo.py"])
    for number in range(3):
        told.turn(f"other-{number}", f"something else {number}", "The weather was fine.", at=NOW - HOUR)
    assert ids(ask(told, "animals", index=index))[0] == turn_id
    assert turn_id not in ids(ask(told, "walrus", index=index, mode="keyword"))
    grow(told, "The walrus sleeps.")
    (hit, *_) = ask(told, "walrus", index=index).hits
    assert (hit.memory.id, "answered: The walrus sleeps." in shown(hit)) == (turn_id, True)
    grow(told, "The otter sleeps.", edited=["zoo.py", "otter.py"])
    assert turn_id not in ids(ask(told, "walrus", index=index, mode="keyword"))
    (hit, *_) = ask(told, "otter sleeps", index=index).hits
    assert hit.memory.id == turn_id
    assert not any("walrus" in text for text in shown(hit))
    assert ids(ask(told, "otter.py", index=index))[0] == turn_id


def test_an_index_that_saw_a_turn_grow_ranks_like_one_that_is_new(told: Told, talk: list[str]) -> None:
    index = Index(None)
    told.turn("s1", "look after the mail server", at=NOW, state=OPEN)
    queries = ("mail server", "port thread tag", "walrus worker")
    for step in range(5):
        grow_latest(told.db, told, f"The walrus {'and the worker ' * step} sleep near port {step}.")
        for query in queries:
            held, new = (ask(told, query, index=one) for one in (index, Index(None)))
            assert ids(held) == ids(new)
            assert held.fits == new.fits
            for before, after in zip(held.hits, new.hits, strict=True):
                assert before.score == pytest.approx(after.score, rel=0.05)
                assert before.excerpt == after.excerpt


def grow_latest(db: sqlite3.Connection, told: Told, answer: str) -> None:
    turn = turns.latest(db, "s1")
    assert turn
    turn.answer = answer
    turns.save(db, turn, told.session("s1"))
