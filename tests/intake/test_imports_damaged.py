"""Export files that were cut, edited, mixed up or made up: each is refused with the number of the line, and
the store is what it was."""

from __future__ import annotations

import copy
import json
import os
import random
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from backstory.errors import BadInput
from backstory.intake.imports import BOM, header
from backstory.intake.note import keep
from backstory.store.exchange import Chosen
from tests.helpers.chaos import NOW
from tests.helpers.rich_store import (
    Json,
    assert_sound,
    dump,
    exported,
    lines_of,
    new_store,
    rich,
    taken_in,
    written,
)

Damaged = tuple[str, bytes, int | None]  # what was done, the file, and the line that must be named


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("valid")
    for name in ("api", "web"):
        (folder / name).mkdir()
    db = new_store(folder, "full")
    try:
        rich(db, folder / "data", folder / "api", folder / "web")
        return exported(db)
    finally:
        db.close()


@pytest.fixture
def store(tmp_path: Path, project: str) -> Iterator[sqlite3.Connection]:
    """A store in use."""
    db = new_store(tmp_path, "store")
    keep(db, project, "what was here before", now=NOW)
    yield db
    db.close()


def of_type(lines: list[Json], name: str, **having: object) -> int:
    return next(
        place
        for place, line in enumerate(lines)
        if line["type"] == name and all(line.get(key) == value for key, value in having.items())
    )


def without_digest(lines: list[Json]) -> bytes:
    """As who changed a file on purpose would write it: the counts are right, and there is no digest."""
    counts = Counter(str(line.get("type")) for line in lines)
    made = [header(Chosen(), "somebody"), *lines, {"type": "end", "counts": counts}]
    return b"".join(json.dumps(line).encode() + b"\n" for line in made)


def changed(lines: list[Json], place: int, change: Callable[[Json], object]) -> Damaged:
    """One line changed, and everything else as if that were right."""
    made = copy.deepcopy(lines)
    change(made[place])
    return f"{made[place].get('type')}", without_digest(made), place + 2


def bytewise(valid: bytes, chance: random.Random) -> Iterator[Damaged]:
    """What disks, mail and editors do to a file."""
    raw = valid.splitlines(keepends=True)
    for _ in range(30):
        at = chance.randrange(len(valid) - 1)
        is_whole = valid[at : at + 1] == b"\n"  # only the end of a line is gone, so the next one is missing
        yield f"cut at {at}", valid[:at], valid[:at].count(b"\n") + 1 + is_whole
    for _ in range(12):
        at = chance.randrange(1, len(raw) - 1)
        yield f"line {at} dropped", b"".join(raw[:at] + raw[at + 1 :]), None
        yield f"line {at} twice", b"".join([*raw[: at + 1], *raw[at:]]), None
        yield f"line {at} empty", b"".join([*raw[:at], b"\n", *raw[at:]]), at + 1
        other = chance.choice([place for place in range(1, len(raw) - 1) if place != at])
        swapped = list(raw)
        swapped[at], swapped[other] = swapped[other], swapped[at]
        yield f"lines {at} and {other} swapped", b"".join(swapped), None
        begun = sum(map(len, raw[:at]))
        yield f"not UTF-8 in {at}", valid[: begun + 5] + b"\xff\xfe" + valid[begun + 5 :], at + 1
        yield f"a byte lost in {at}", valid[: begun + 1] + valid[begun + 2 :], None
        yield (
            f"half a surrogate's bytes in {at}",
            valid[: begun + 5] + b"\xed\xa0\x80" + valid[begun + 5 :],
            at + 1,
        )
    yield "nothing", b"", 1
    yield "only the first line", raw[0], 2
    yield "two files in one", valid + valid, len(raw) + 1
    yield "something behind it", valid + b"\n", len(raw) + 1
    yield "without the first line", b"".join(raw[1:]), 1
    yield "not JSON at all", b"once upon a time\n", 1
    yield "another JSON", b'[{"id": 1}]\n', 1
    yield "JSON of somebody else", b'{"format": "other"}\n', 1
    yield "deep", raw[0] + b"[" * 100_000 + b"\n" + b"".join(raw[1:]), 2
    yield "a letter of a text", valid.replace(b"walrus sleeps in", b"walrus weeps. in", 1), len(raw)


def headers(lines: list[Json]) -> Iterator[Damaged]:
    first, *rest = without_digest(lines).splitlines(keepends=True)
    for version in (3, 99, 0, -1, "1", None, True, 1.5):
        head = json.loads(first) | {"version": version}
        yield f"version {version}", json.dumps(head).encode() + b"\n" + b"".join(rest), 1
    *rest, last = [first, *rest]
    said = json.loads(last)["counts"]
    wrong: tuple[Any, ...] = ({}, None, [], {"memory": 1}, said | {"memory": "3"}, said | {"memory": 0})
    for counts in (*wrong, said | {"moods": 2}):
        end = json.loads(last) | {"counts": counts}
        yield f"counts {counts}", b"".join(rest) + json.dumps(end).encode() + b"\n", len(rest) + 1


def fields(lines: list[Json], chance: random.Random) -> Iterator[Damaged]:
    """Every kind of line with a field that is not there, or is something else."""
    wrong: tuple[Any, ...] = ({"a": 1}, [[]], 2**70, True, 1e999, [None, 3])
    for name in dict.fromkeys(line["type"] for line in lines):
        place = of_type(lines, name)
        names = [key for key in lines[place] if key != "type"]
        for key in chance.sample(names, min(4, len(names))):
            yield changed(lines, place, lambda line, key=key: line.pop(key))  # type: ignore[misc]
        for key, value in zip(chance.choices(names, k=4), chance.sample(wrong, 4), strict=True):
            yield changed(lines, place, lambda line, key=key, value=value: line.update({key: value}))  # type: ignore[misc]
        yield changed(lines, place, lambda line: line.update(mood="good"))
        yield changed(lines, place, lambda line: line.update(type="moods"))
        yield changed(lines, place, lambda line: line.pop("type"))


def meanings(lines: list[Json]) -> Iterator[Damaged]:
    """Lines that are well-formed, and wrong."""
    note, turn = of_type(lines, "memory", kind="note"), of_type(lines, "memory", kind="turn")
    session, project = of_type(lines, "session"), of_type(lines, "project")
    node = next(at for at, line in enumerate(lines) if line["type"] == "node" and line["parent_id"])
    root, relation = of_type(lines, "node", parent_id=None), of_type(lines, "relation")
    document, archived = of_type(lines, "document"), of_type(lines, "archived")
    trace = of_type(lines, "memory", kind="tool")
    no_traces: tuple[Any, ...] = (lines[note]["id"], "mem_000000000000", 7, "", "x" * 201)
    no_turns: tuple[Any, ...] = (None, {}, [], lines[turn]["turn_fields"] | {"state": "odd"})
    no_records: tuple[Any, ...] = (None, [], "{}", {"mood": "x"})
    for place, values in (
        *((note, {"kind": kind}) for kind in ("prompt", "", "turn", "NOTE")),
        *((note, {"importance": value}) for value in (-0.1, 1.1, "0.5")),
        *((note, {"created_at": value}) for value in (-1, 1.5, 10**16, "today", None)),
        *((note, {"session_id": value}) for value in ("nobody", 7, "")),
        *((note, {"tags": value}) for value in ("t", [1], {"a": "b"}, None, [["t"]])),
        *(
            (note, {"id": value})
            for value in ("mem_", "mem_XXXXXXXXXXXX", "mem_0123456789ab\n", "../etc", "")
        ),
        *((note, {key: value}) for key in ("content", "title", "sector") for value in ("\ud800", "nul \0")),
        (note, {"tags": ["\udfff"]}),
        (turn, {"turn_fields": lines[turn]["turn_fields"] | {"record": {"failing": {"\ud800": ["a", "b"]}}}}),
        (note, {"hashes": ["not a hash"]}),
        (note, {"access_count": -3}),
        (note, {"project_id": "prj_000000000000"}),
        (note, {"uses": [{"session_id": "nobody", "usage_type": "created", "created_at": 1}]}),
        (note, {"uses": [{"session_id": lines[session]["id"], "usage_type": "eaten", "created_at": 1}]}),
        (note, {"turn_fields": lines[turn]["turn_fields"]}),
        (note, {"title": "x" * 10_001}),
        (note, {"content": "x" * 20_000_001}),
        *((turn, {"turn_fields": value}) for value in no_turns),
        *((turn, {"turn_fields": lines[turn]["turn_fields"] | {"record": value}}) for value in no_records),
        (turn, {"turn_fields": lines[turn]["turn_fields"] | {"record": {"prompts": [["only one"]]}}}),
        (turn, {"turn_fields": lines[turn]["turn_fields"] | {"record": {"commits": [["a", "b", "c"]]}}}),
        (session, {"status": "asleep"}),
        (session, {"attended": 2}),
        (session, {"prompts": [{"prompt": "x"}]}),
        (session, {"prompts": "x"}),
        (session, {"id": "x" * 201}),
        (session, {"id": "\ud800"}),
        (session, {"summary_fields": lines[session]["summary_fields"] | {"memory_id": "mem_000000000000"}}),
        (project, {"id": "prj_short"}),
        (project, {"name": "x" * 1_001}),
        (node, {"parent_id": "nowhere"}),
        (node, {"parent_id": lines[node]["id"]}),
        (node, {"root_id": "other"}),
        (node, {"context_name": "x" * 25}),
        (node, {"text": "x" * 100_001}),
        (node, {"id": "a b"}),
        (node, {"id": "AKIA" + "2E5GHJ7KLMNP3QRS"}),
        (node, {"order_value": None}),
        (root, {"order_value": 2.0}),
        (relation, {"source_id": "mem_000000000000"}),
        (relation, {"target_id": lines[relation]["source_id"]}),
        (relation, {"relationship_type": "LIKES"}),
        (relation, {"confidence": 7}),
        (document, {"kind": "exe"}),
        (document, {"chunks": [{"heading": "x"}]}),
        (archived, {"kind": "prompt"}),
        (archived, {"archived_at": None}),
        *((archived, {"turn": value}) for value in (*no_traces, lines[archived]["id"])),
        *((trace, {"turn": value}) for value in (*no_traces, lines[trace]["id"])),
        (note, {"turn": lines[turn]["id"]}),
    ):
        yield changed(lines, place, lambda line, values=values: line.update(values))  # type: ignore[misc]
    for name in ("project", "session", "memory", "archived", "document", "node", "relation", "checkout"):
        place = of_type(lines, name)
        again = [*lines[: place + 1], lines[place], *lines[place + 1 :]]
        yield f"{name} twice", without_digest(again), place + 3
    supersedes = of_type(lines, "relation", relationship_type="SUPERSEDES")
    turned = lines[supersedes] | {
        "source_id": lines[supersedes]["target_id"],
        "target_id": lines[supersedes]["source_id"],
    }
    circle = [*lines[: supersedes + 1], turned, *lines[supersedes + 1 :]]
    yield "a circle of superseding", without_digest(circle), supersedes + 2
    above = next(
        at for at, line in enumerate(lines) if line["type"] == "node" and line["context_type"] == "sum"
    )
    below = of_type(lines, "node", parent_id=lines[above]["id"])
    yield changed(lines, above, lambda line: line.update(parent_id=lines[below]["id"]))
    twins = [at for at, line in enumerate(lines) if line.get("parent_id") == "main"][:2]
    yield changed(lines, twins[1], lambda line: line.update(order_value=lines[twins[0]]["order_value"]))
    yield (
        "archived and living",
        without_digest(
            [*lines[: archived + 1], {**lines[archived], "id": lines[note]["id"]}, *lines[archived + 1 :]]
        ),
        archived + 3,
    )


@pytest.mark.slow
def test_a_damaged_file_is_refused_with_the_line_and_the_store_is_unchanged(
    valid: bytes, store: sqlite3.Connection
) -> None:
    before, chance, lines = dump(store), random.Random(7), lines_of(valid)  # noqa: S311
    wrong, tried = [], 0
    for what, raw, line in chain(
        bytewise(valid, chance), headers(lines), fields(lines, chance), meanings(lines)
    ):
        tried += 1
        try:
            taken_in(store, raw)
        except BadInput as error:
            told = [int(number) for number in re.findall(r"^ +line (\d+): ", str(error), re.MULTILINE)]
            if not told or (line is not None and line not in told):
                wrong.append((what, line, str(error)[:300]))
        else:
            wrong.append((what, line, "was imported"))
        assert not store.in_transaction
        assert dump(store) == before, what
    assert wrong == []
    assert tried >= 200


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(valid: bytes, tmp_path: Path) -> None:
    for name, raw in (("bom", BOM + valid), ("crlf", valid.replace(b"\n", b"\r\n")), ("cut", valid[:-1])):
        db = new_store(tmp_path, name)
        taken_in(db, raw)
        assert exported(db) == valid
        db.close()


def test_a_file_of_a_newer_backstory_is_named_as_such(valid: bytes, store: sqlite3.Connection) -> None:
    with pytest.raises(BadInput, match="written by a newer backstory; upgrade"):
        taken_in(store, valid.replace(b'"version":2', b'"version":3', 1))


def test_at_most_twenty_bad_lines_are_told(valid: bytes, store: sqlite3.Connection) -> None:
    lines = [line | {"mood": 1} for line in lines_of(valid)]
    with pytest.raises(BadInput) as error:
        taken_in(store, written(lines))
    assert str(error.value).count("\n  line ") == 20
    assert str(error.value).endswith("and more")


ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 2**63, -(2**63), 1e308, 10**15, "", "x", "\ud800", "a\0b", "<private>"),
    *([], [None], {}, {"": ""}, [[]], [["a", "b"]], "mem_000000000000", "global", {"a": {"b": []}}),
)


def places(value: object, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to everything in a line."""
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, below in entries:
        yield (*above, key)
        yield from places(below, (*above, key))


@pytest.mark.slow
def test_whatever_stands_anywhere_is_taken_in_or_refused(valid: bytes, tmp_path: Path) -> None:
    """Nothing else comes of it, and what is taken in is sound. BACKSTORY_IMPORT_FUZZ says how many."""
    chance, lines = random.Random(1), lines_of(valid)  # noqa: S311
    refused = 0
    tries = int(os.environ.get("BACKSTORY_IMPORT_FUZZ", "25"))
    for number in range(tries):
        made = copy.deepcopy(lines)
        for _ in range(chance.choice((1, 1, 2))):
            at = chance.randrange(len(made))
            *way, last = chance.choice(list(places(made[at])))
            inside: Any = made[at]
            for key in way:
                inside = inside[key]
            inside[last] = chance.choice(ODD)
        db = new_store(tmp_path, str(number))
        try:
            taken_in(db, without_digest(made))
            assert_sound(db)
        except BadInput:
            refused += 1
            assert db.execute("SELECT count(*) FROM projects").fetchone()[0] == 0
        db.close()
    assert tries // 2 < refused
