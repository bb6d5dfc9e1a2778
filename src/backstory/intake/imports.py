"""Taking in an export: everything is checked before anything is stored.

One pass reads the file: each line is checked, cleaned and laid into a temporary file with what is computed
from it. What does not fit is told with the numbers of the lines. Only then is the store locked, and all lines
go in, in one transaction. The format is described in docs/export-format.md.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import IO, Any, NamedTuple

from backstory.errors import BadInput
from backstory.memory.turn import Turn, told
from backstory.safety.clean import clean_whole, storable
from backstory.store import exchange, families, forgetting
from backstory.store.exchange import VERSION, Column, Merge, Part, Scratch, Tree, Values, types
from backstory.store.file.connection import Connection

Lines = Iterable[tuple[str, Values]]  # where it stands, for people, and what it says

LONGEST_LINE = 200_000_000  # bytes
LONGEST_TEXT = 20_000_000  # characters; a document may have 10 MB
LONGEST = {"node.text": 100_000, "memory.title": 10_000, "project.name": 1_000}
LONGEST_NAME = 10_000  # of a path, a branch, a repository
LONGEST_ID = 200
LATEST = 253_402_300_799_999  # the end of the year 9999: what can be told as a date
MOST_TOLD = 20
SHORT = 64  # characters; such texts come again and again

IDS = {
    "project": re.compile(r"global|prj_[0-9a-z]{12}"),
    "memory": re.compile(r"mem_[0-9a-z]{12}"),
    "archived": re.compile(r"mem_[0-9a-z]{12}"),
    "document": re.compile(r"doc_[0-9a-z]{12}"),
    "node": re.compile(r"[A-Za-z0-9_-]{1,24}"),
}
_TIME = re.compile(r"(?:_at|_epoch|_from|_until|^last_accessed)$")
_COUNTS = frozenset(("access_count", "times"))
_BLOB = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_TEXTS = ["text"]
_PAIRS = [["text", "text"]]
_RECORD: Mapping[str, object] = {  # of a turn: see memory/turn.py
    **dict.fromkeys(("closing", "plans", "compactions", "edited", "read", "searched", "uncommitted"), _TEXTS),
    **dict.fromkeys(("prompts", "choices", "failed", "passed", "agents"), _PAIRS),
    **dict.fromkeys(("answer", "branch", "head"), "text"),
    "commits": [["text?", "text", ["text"]]],
    "failing": {"": ["text", "text"]},
}
# Hashes, and what says which project or checkout it is: stored as they come on every way in.
_AS_THEY_ARE = {"checksum", "hashes", "head", "path", "turn"}.union(*(one.names for one in families.FAMILIES))
_QUOTING = frozenset(("document", "node"))  # texts that may be about backstory, and quote it


class Damage(Exception):
    """Why a line is not taken."""


@dataclass(slots=True)
class Import:
    """What came of an import, or would come of it."""

    merge: Merge
    redacted: int = 0  # lines with something private, secret or recalled, which was left out

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        return {name: dict(self.merge.counts[name]) for name in types() if name in self.merge.counts}


class _Node(NamedTuple):
    where: str
    parent_id: str | None
    root_id: str
    order_value: float
    updated_at: int


@dataclass(slots=True)
class _Seen:
    """What the lines so far have said, to compare others with."""

    ids: dict[str, dict[Any, str]] = field(default_factory=lambda: {name: {} for name in types()})
    kinds: dict[str, str] = field(default_factory=dict)  # by memory
    awaited: list[tuple[str, str, bool]] = field(default_factory=list)  # (where, memory, must it be a turn?)
    nodes: dict[tuple[str, str], _Node] = field(default_factory=dict)  # by project and id
    superseding: dict[tuple[str, str], str] = field(default_factory=dict)  # (new, old) -> where


def import_lines(
    db: Connection,
    lines: Lines,
    *,
    attach: bool | None = None,
    dry_run: bool = False,
    problems: list[str] | None = None,
    named: str = "the file",
) -> Import:
    """Check all lines, and store them unless something is wrong or this is a `dry_run`. `problems` are those
    that the reader of the lines finds while they are read.

    `attach`: folders and repositories that a new project names are its own. Who writes a file can name any:
    unless it is said, that holds only for a store in which nothing is yet.
    """
    problems = [] if problems is None else problems
    is_new = exchange.is_empty(db) if attach is None else attach
    merge = Merge(exchange.parts(db), attach=is_new, match=attach is not False)
    done, seen, scratch, version = Import(merge), _Seen(), Scratch(db), VERSION
    with tempfile.TemporaryFile() as ready:
        try:
            for number, (where, given) in enumerate(lines):
                if number == 0 and "backstory" in given:
                    version = given["version"]
                    continue
                line = _of_version_1(given) if version == 1 else given
                try:
                    _check(db, scratch, merge, seen, where, line)
                except Damage as damage:
                    problems.append(f"{where}: {damage}")
                if len(problems) > MOST_TOLD:
                    break
                if not problems:
                    _lay(db, ready, done, where, line, dry_run)
        finally:
            scratch.close()
        problems += [] if problems else _left_open(db, merge, seen)
        _refuse(problems, named)
        for (project_id, _), node in seen.nodes.items():
            exchange.meet(db, merge, {"type": "node", "project_id": project_id, "root_id": node.root_id})
        if dry_run:
            return done
        ready.seek(0)
        with exchange.taking_in(db):
            exchange.begin(db)
            for laid in map(json.loads, ready):
                exchange.put(db, merge, **laid)
            if version == 1:
                exchange.turns_by_time(db, list(seen.ids["session"]))
            forgetting.forget_with_turns(db, list(seen.kinds))
    return done


def _of_version_1(line: Values) -> Values:
    """It did not say of which turn a trace and a prompt are: see `exchange.turns_by_time`."""
    if line.get("type") in ("memory", "archived"):
        turn = {"turn_fields": line["turn"]} if "turn" in line else {}
        return line | {"turn": None} | turn
    if line.get("type") == "session" and isinstance(prompts := line.get("prompts"), list):
        with_turn = [one | {"turn": None} if isinstance(one, dict) else one for one in prompts]
        return line | {"prompts": with_turn}
    return line


def _lay(db: Connection, ready: IO[bytes], done: Import, where: str, line: Values, dry_run: bool) -> None:
    """Lay a line that was checked ready, as it will be stored; what is known already stays as it is."""
    # What a node is to the store depends on the whole tree.
    standing = "" if line["type"] == "node" else exchange.meet(db, done.merge, line)
    if standing in (exchange.KNOWN, exchange.LEFT):
        return
    cleaned = _cleaned(line)
    done.redacted += cleaned != line
    if not dry_run:
        laid = {"line": exchange.prepare(cleaned), "where": where, "standing": standing}
        ready.write(exchange.encode(laid))


def _refuse(problems: list[str], named: str) -> None:
    if not problems:
        return
    more = "\n  and more" if len(problems) > MOST_TOLD else ""
    listed = "".join(f"\n  {problem}" for problem in problems[:MOST_TOLD])
    raise BadInput(f"{named} was not imported, nothing was changed:{listed}{more}")


# --- the lines of a file ------------------------------------------------------------------------------------


def read_lines(file: IO[bytes], problems: list[str], progress: Callable[[int], object] = int) -> Lines:
    """The lines of an export but for its last one; what is wrong with the file is added to the `problems`.
    Each line is decoded by itself, so what is not UTF-8 is told with its number."""
    said: Counter[str] = Counter()
    digest = hashlib.sha256()
    number, is_ended = 0, False
    while raw := file.readline(LONGEST_LINE + 1):
        number += 1
        where = f"line {number}"
        progress(len(raw))
        try:
            line = _decoded(raw, is_first=number == 1)
            if is_ended:
                raise Damage("stands behind the last line; two files in one?")
            if number == 1:
                _check_header(line)
                yield where, line
            elif line.get("type") == "end":
                is_ended = True
                if not problems:
                    _check_end(line, said, digest.hexdigest())
            else:
                said[str(line.get("type"))] += 1
                yield where, line
        except Damage as damage:
            problems.append(f"{where}: {damage}")
            if number == 1 or len(raw) > LONGEST_LINE or len(problems) > MOST_TOLD:
                return
        if not is_ended:
            digest.update(raw.removeprefix(BOM if number == 1 else b"").rstrip(b"\r\n") + b"\n")
    if number == 0:
        problems.append("line 1: the file is empty")
    elif not is_ended:
        problems.append(f"line {number + 1}: the last line is missing: the file was cut; export it again")


BOM = b"\xef\xbb\xbf"


def _decoded(raw: bytes, *, is_first: bool) -> Values:
    if len(raw) > LONGEST_LINE:
        raise Damage(f"has more than {LONGEST_LINE:,} bytes")
    try:
        line = json.loads(raw.removeprefix(BOM if is_first else b"").decode(), parse_constant=_no_number)
    except UnicodeDecodeError as error:
        raise Damage(f"is not UTF-8 (byte {error.start + 1:,})") from error
    except RecursionError as error:
        raise Damage("is nested too deeply") from error
    except ValueError as error:
        raise Damage(
            f"is not JSON ({error})" if is_first else f"is not JSON ({error}); was it cut?"
        ) from error
    if not isinstance(line, dict):
        raise Damage("is no JSON object")
    return line


def _no_number(name: str) -> object:
    raise ValueError(f"{name} is no number of JSON")


def header(chosen: exchange.Chosen, by: str) -> Values:
    """The first line of an export: what it is, and what was asked for. No time, so that two exports of the
    same store are the same bytes."""
    return {
        "backstory": "export",
        "version": VERSION,
        "by": by,
        "project": chosen.project_id,
        "since": chosen.since,
        "turns": chosen.with_turns,
    }


def _check_header(line: Values) -> None:
    if line.get("backstory") != "export":
        raise Damage(
            "is not the first line of an export of backstory; name a file that `backstory export` made"
        )
    version = line.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise Damage(f"its version is {_shown(version)}, which is none")
    if version > VERSION:
        raise Damage(
            f"the file has version {version}, this backstory knows {VERSION}: it was written by a newer"
            " backstory; upgrade with: pip install -U backstory"
        )


def trailer(counts: Mapping[str, int], sha256: str) -> Values:
    """The last line: how many there are of each type, and the digest of all lines before."""
    return {"type": "end", "counts": {name: counts.get(name, 0) for name in types()}, "sha256": sha256}


def _check_end(line: Values, said: Counter[str], sha256: str) -> None:
    counts = line.get("counts")
    if not isinstance(counts, dict):
        raise Damage("the last line has no counts; the file was cut or edited")
    for name in dict.fromkeys((*types(), *counts, *said)):
        if counts.get(name, 0) != said[name]:
            raise Damage(
                f"{_shown(counts.get(name, 0))} lines of the type {name[:40]} were written,"
                f" {said[name]:,} are there; lines were lost or added"
            )
    if "sha256" in line and line["sha256"] != sha256:
        raise Damage(
            "the lines are not those that were written (sha256); export again, or leave sha256 out of the"
            " last line if you changed the file on purpose"
        )


# --- checking -----------------------------------------------------------------------------------------------


def _check(db: Connection, scratch: Scratch, merge: Merge, seen: _Seen, where: str, line: Values) -> None:
    name = line.get("type")
    if not isinstance(name, str) or name not in seen.ids:
        raise Damage(
            f"there is no type {_shown(name)} in version {VERSION}; was it written by a newer backstory?"
        )
    part = merge.parts[name]
    inside = {one.line.inside: one for one in part.inside}
    if name == "memory" and line.get("kind") != "turn":
        del inside["turn_fields"]
    rows = [(part, {key: line[key] for key in line if key not in ("type", *inside)}, "")]
    for key, one in inside.items():
        if key not in line:
            raise Damage(f"{key} is missing")
        rows += [(one, row, f"{key}: ") for row in _rows(one, line[key])]
    for one, row, place in rows:
        _check_row(scratch, merge, one, row, place)
        _check_references(db, seen, where, one, row)
    _check_ids(seen, where, part, line)
    if name == "memory":
        _check_kind(db, line)


def _check_kind(db: Connection, line: Values) -> None:
    """What is kept of a turn, or says that it is of one, cannot become something else."""
    kinds = {line["kind"], exchange.kind_of(db, line["id"]) or line["kind"]}
    if len(kinds) > 1 and kinds & {"turn", "tool"}:
        raise Damage(f"{_shown(line['id'])} is no {line['kind']} in the store")


def _rows(part: Part, value: object) -> list[Values]:
    """What stands inside of a line: an object, or a list of them."""
    is_one = part.line.is_one
    may_lack = part.line.name != "memory.turn_fields"  # every turn has been made of something
    rows = [] if is_one and may_lack and value is None else [value] if is_one else value
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        wanted = "an object" if is_one else "a list of objects"
        raise Damage(f"{part.line.inside} is {_shown(value)}, not {wanted}")
    return rows


def _check_row(scratch: Scratch, merge: Merge, part: Part, row: Values, inside: str = "") -> None:
    for column in part.columns:
        if column.name not in row:
            raise Damage(f"{inside}{column.name} is missing")
        value = row[column.name]
        if value is not None or column.is_required:
            _check_value(part, column, value, inside)
    if len(row) > len(part.columns):
        unknown = next(iter(row.keys() - {column.name for column in part.columns}))
        raise Damage(f"{inside}there is no field {_shown(unknown)} in version {VERSION}")
    refusal = scratch.refusal(part, row)
    if part.line.name == "archived" and not refusal:
        refusal = scratch.refusal(
            merge.parts["memory"], {key: row[key] for key in row if key != "archived_at"}
        )
    if refusal:
        raise Damage(f"{inside}{refusal}")


def _check_value(part: Part, column: Column, value: Any, inside: str) -> None:
    name = column.name
    wanted = None
    if column.is_json:
        if not _fits(value, _RECORD if name == "record" else ["text?"] if name == "hashes" else _TEXTS):
            wanted = "a record of a turn" if name == "record" else "a list of texts"
    elif column.type == "TEXT":
        wanted = _no_text(part, name, value) if isinstance(value, str) else "a text"
    elif isinstance(value, bool) or not isinstance(value, int if column.type == "INTEGER" else (int, float)):
        wanted = "a whole number" if column.type == "INTEGER" else "a number"
    elif not math.isfinite(value):
        wanted = "a number"
    elif _TIME.search(name) and not 0 <= value <= LATEST:
        wanted = "a time: milliseconds since 1970"
    elif name in _COUNTS and not 0 <= value < 2**31:
        wanted = "a count"
    if wanted:
        raise Damage(f"{inside}{name} is {_shown(value)}, not {wanted}")


def _no_text(part: Part, name: str, value: str) -> str | None:
    """What a text should be that is too long, or cannot be stored."""
    is_id = name in ("id", "turn") or name.endswith("_id")
    is_short = is_id or name in part.family.names or name == "path"
    longest = LONGEST_ID if is_id else LONGEST_NAME if is_short else LONGEST_TEXT
    longest = LONGEST.get(f"{part.line.name}.{name}", longest)
    if len(value) > longest:
        return f"a text of at most {longest:,} characters; it has {len(value):,}"
    return None if storable(value) == value else "a text that can be stored"


def _fits(value: object, shape: object) -> bool:
    """Whether a value of JSON looks like this: `text`, `text?` (or null), a list of such, a list of so many
    different ones, an object of these fields, or with any names."""
    if isinstance(shape, str):
        is_text = isinstance(value, str) and len(value) <= LONGEST_TEXT and storable(value) == value
        return is_text or (value is None and shape.endswith("?"))
    if isinstance(shape, list) and isinstance(value, list):
        shapes = shape * len(value) if len(shape) == 1 else shape
        return len(value) == len(shapes) and all(map(_fits, value, shapes))
    if isinstance(shape, Mapping) and isinstance(value, dict):
        return all(
            _fits(name, "text") and _fits(one, shape.get(name, shape.get(""))) for name, one in value.items()
        )
    return False


def _check_references(db: Connection, seen: _Seen, where: str, part: Part, row: Values) -> None:
    """What a row refers to is there: a memory may come later in the file."""
    for column in part.columns:
        known = row[column.name]
        if known is None or not (column.refers or column.name == "project_id"):
            continue
        name = {"sessions": "session", "memories": "memory"}.get(column.refers, "project")
        if name == "memory":
            seen.awaited.append((where, known, column.name == "turn"))
        elif known not in seen.ids[name] and not exchange.is_there(db, f"{name}s", known):
            raise Damage(f"the {name} {_shown(known)} is neither in a line before nor in the store")


def _check_ids(seen: _Seen, where: str, part: Part, line: Values) -> None:
    """That ids are ids, and that none comes twice."""
    name = part.line.name
    is_node = name == "node"
    own = tuple(line[column] for column in (["project_id", "id"] if is_node else part.key))
    pattern = IDS.get(name)
    if pattern and not pattern.fullmatch(line["id"]):
        raise Damage(f"{_shown(line['id'])} is no id of a {name}")
    if name in ("session", "node") and (not line["id"].strip() or _clean(line["id"]) != line["id"]):
        raise Damage("its id is empty, or looks like a secret; leave it out, or give it another")
    key = own[0] if len(own) == 1 else own
    for known in ("memory", "archived") if name in ("memory", "archived") else (name,):
        if key in seen.ids[known]:
            raise Damage(f"{_shown(line.get('id', key))} is in {seen.ids[known][key]} already")
    if name == "memory" and not all(one is None or _BLOB.fullmatch(one) for one in line["hashes"]):
        raise Damage("hashes has what is no hash of a file")
    if name == "memory":
        seen.kinds[line["id"]] = line["kind"]
    if name == "relation" and line["source_id"] == line["target_id"]:
        raise Damage(f"{_shown(line['source_id'])} is related to itself")
    if name == "relation" and line["relationship_type"] == "SUPERSEDES":
        seen.superseding[line["source_id"], line["target_id"]] = where
    if is_node:
        seen.nodes[own] = _Node(
            where, line["parent_id"], line["root_id"], line["order_value"], line["updated_at"]
        )
    seen.ids[name][key] = where


def _shown(value: object) -> str:
    text = repr(value[:80]) if isinstance(value, str) else json.dumps(value)[:80]
    return text if len(text) <= 60 else f"{text[:60]}…"


# --- what only the whole file can tell ----------------------------------------------------------------------


def _left_open(db: Connection, merge: Merge, seen: _Seen) -> list[str]:
    problems = []
    for where, memory_id, must_be_turn in seen.awaited:
        kinds = {seen.kinds.get(memory_id), exchange.kind_of(db, memory_id)} - {None}
        if not kinds:
            problems.append(
                f"{where}: the memory {_shown(memory_id)} is neither in the file nor in the store"
            )
        elif must_be_turn and kinds != {"turn"}:
            problems.append(f"{where}: the memory {_shown(memory_id)} is no turn")
    return problems + _trees(merge, seen) + _circles(db, seen)


def _trees(merge: Merge, seen: _Seen) -> list[str]:
    """Every node hangs below its root, and no two are in one place; noted is how many are below each."""
    children, problems = _children(seen)
    reached: set[tuple[str, str]] = set()
    for (project_id, root_id), root in seen.nodes.items():
        if root.parent_id is not None:
            continue
        if root.order_value != 1:
            problems.append(f"{root.where}: order_value of a root is {root.order_value}, not 1.0")
        below = [root_id]  # grows while it is walked: each before what is below it
        for node_id in below:
            below += children.get((project_id, node_id), ())
        tree = merge.trees[project_id, root_id] = Tree(sizes=dict.fromkeys(below, 1))
        for node_id in reversed(below):
            node = seen.nodes[project_id, node_id]
            tree.updated[node_id] = node.updated_at
            if node.parent_id is not None:
                tree.sizes[node.parent_id] += tree.sizes[node_id]
            if node.root_id != root_id:
                problems.append(f"{node.where}: root_id is {_shown(node.root_id)}, its root is {root_id}")
        reached |= {(project_id, node_id) for node_id in below}
    problems += [
        f"{node.where}: the node {_shown(place[1])} hangs below no root; is it below itself?"
        for place, node in seen.nodes.items()
        if place not in reached
    ]
    return problems


def _children(seen: _Seen) -> tuple[dict[tuple[str, str], list[str]], list[str]]:
    """Which nodes are below each, and what is wrong with their places."""
    problems = []
    children: dict[tuple[str, str], list[str]] = {}
    places: dict[tuple[str, str, float], str] = {}
    for (project_id, node_id), node in seen.nodes.items():
        if node.parent_id is None:
            continue
        place = (project_id, node.parent_id, node.order_value)
        if (project_id, node.parent_id) not in seen.nodes:
            problems.append(
                f"{node.where}: the node {_shown(node.parent_id)}, its parent, is not in the file"
            )
        elif place in places:
            problems.append(f"{node.where}: has the place of {places[place]}, order_value {node.order_value}")
        places[place] = node.where
        children.setdefault((project_id, node.parent_id), []).append(node_id)
    return children, problems


def _circles(db: Connection, seen: _Seen) -> list[str]:
    """No memory supersedes what supersedes it, directly or in a chain."""
    if not seen.superseding:
        return []
    chains: TopologicalSorter[str] = TopologicalSorter()
    for new, old in {*exchange.superseding(db), *seen.superseding}:
        chains.add(new, old)
    try:
        chains.prepare()
    except CycleError as error:
        circle = set(error.args[1])
        return [
            f"{where}: {_shown(new)} supersedes {_shown(old)}, which supersedes it in turn"
            for (new, old), where in seen.superseding.items()
            if {new, old} <= circle
        ]
    return []


# --- cleaning -----------------------------------------------------------------------------------------------


def _cleaned(line: Values) -> Values:
    may_quote = line["type"] in _QUOTING
    done: Values = {}
    if "turn_fields" in line:
        done["turn_fields"] = _cleaned_value("turn_fields", line["turn_fields"], may_quote)
        if done["turn_fields"] == line["turn_fields"] and line["content"] == _told(line["turn_fields"]):
            done["content"] = line["content"]
    return {
        name: done[name] if name in done else _cleaned_value(name, value, may_quote)
        for name, value in line.items()
    }


def _told(given: Values) -> str:
    """The text of a turn as its record makes it. Where the record is clean, it is: to clean it again would
    take its time."""
    turn = Turn("", given["started_at"])
    turn.state = given["state"]
    turn.read_record(json.dumps(given["record"]))
    return told(turn)


def _cleaned_value(name: str, value: Any, may_quote: bool) -> Any:
    if isinstance(value, str):
        if name == "id" or name.endswith("_id") or name in _AS_THEY_ARE:
            return storable(value)
        cleaned = (_clean if len(value) > SHORT else _clean_short)(value, may_quote)
        return cleaned[:24] if name.startswith("context_") else cleaned
    if isinstance(value, list):
        return [_cleaned_value(name, one, may_quote) for one in value]
    if isinstance(value, dict):
        return {
            _clean_short(key, may_quote): _cleaned_value(key, one, may_quote) for key, one in value.items()
        }
    return value


def _clean(text: str, may_quote: bool = False) -> str:
    return clean_whole(text, may_quote=may_quote)[0]


_clean_short = lru_cache(10_000)(_clean)
