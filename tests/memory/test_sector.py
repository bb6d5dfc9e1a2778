"""The classifier of sectors against labelled sentences, of which it was tuned on one half."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.memory.kinds import SECTORS
from backstory.memory.salience import DECAY_PER_DAY
from backstory.memory.sector import AFTER_A_PERSON, ANYWHERE, AT_A_START, classify

LINES = (Path(__file__).parent / "sectors.tsv").read_text(encoding="utf-8").splitlines()
SENTENCES = [tuple(line.split("\t")) for line in LINES if not line.startswith("#")]


def accuracy(half: str, sector: str | None = None) -> float:
    right = [
        classify(text) == label for label, text, part in SENTENCES if part == half and sector in (None, label)
    ]
    return sum(right) / len(right)


def test_the_sentences_are_many_and_of_every_sector() -> None:
    for half in ("dev", "test"):
        labels = [label for label, _, part in SENTENCES if part == half]
        assert all(labels.count(sector) >= 20 for sector in SECTORS)
    assert len({text for _, text, _ in SENTENCES}) == len(SENTENCES) >= 200


@pytest.mark.parametrize(("half", "floor"), [("dev", 0.94), ("test", 0.86)])
def test_most_sentences_find_their_sector(half: str, floor: float) -> None:
    assert accuracy(half) >= floor


@pytest.mark.parametrize("sector", SECTORS)
def test_no_sector_is_sacrificed_for_another(sector: str) -> None:
    assert accuracy("dev", sector) >= 0.8
    assert accuracy("test", sector) >= 0.65


@pytest.mark.parametrize(
    ("text", "sector"),
    [
        ("User prefers TypeScript", "emotional"),
        ("USER PREFERS TYPESCRIPT", "emotional"),
        ("Session Summary: the import works, the export does not", "reflective"),
        ("# Session Summary\n\nFixed the login. Ran the tests.", "reflective"),
        ("yesterday we upgraded", "episodic"),
        ("the deploy failed at 14:00", "episodic"),
        ("the API uses JWT", "semantic"),
        ("port is 8080", "semantic"),
        ("to release, run make dist then tag", "procedural"),
        ("always run migrations before tests", "procedural"),
        ("we learned that retries hide bugs", "reflective"),
    ],
)
def test_plain_examples(text: str, sector: str) -> None:
    assert classify(text) == sector


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t",
        "8080",
        "🙂",
        "\x00\ud800",
        "Der Server wurde gestern aktualisiert und das ist gut so",
        "Test der neuen Schnittstelle",
        "Ayer desplegamos la versión 2 en el servidor para los clientes",
        "De server was gisteren kapot en het werd niet gemeld",
        "Le serveur est tombé hier et nous avons dû le relancer avec les clés",
        "用户喜欢 TypeScript",
        "Пользователь предпочитает вкладки",
    ],
)
def test_what_the_tables_do_not_know_is_taken_for_a_fact(text: str) -> None:
    assert classify(text) == "semantic"


@given(st.text(max_size=300))
def test_any_text_has_one_sector_and_keeps_it(text: str) -> None:
    assert classify(text) in SECTORS
    assert classify(text) == classify(text)


def test_the_tables_name_only_sectors_that_there_are() -> None:
    rows = [line.split()[:2] for line in (ANYWHERE + AT_A_START + AFTER_A_PERSON).splitlines()]
    named = {sector for sector, _ in (row for row in rows if row and row[0] != "#")}
    assert named == set(SECTORS) == set(DECAY_PER_DAY)


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    ["a ", "a", "`", "'", "-", "--a", "1:", "1", "a.b:", "\n", "is stored ", "user ", "#1", "tl;", "&"],
)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    started = time.process_time()
    classify(piece * (100_000 // len(piece)))
    assert time.process_time() - started < 10
