"""What a model is told unasked, on real sessions with labels: which prompts need an earlier turn, and which.

    .venv/bin/python bench/telling.py FOLDER --turns FILE --labels FILE... [--foreign FILE] [--json FILE]

The transcripts in FOLDER are lived again in one pass, in the order of their times, through our own capture:
each moment sees a store that holds only what came before. At each session's start there is a brief, with the
branch of that moment checked out; at each prompt, file and failed command it is asked what would be told, and
what is told is noted as the server notes it. Sessions of other developers, by the folder they worked in
(/Users/NAME), are other people's.

--turns      a JSON list of the turns that labels name: {"id", "session", "at"}
--labels     JSON lists of {"id", "need", "right": [ids]}
--foreign    a JSON list of prompts of other projects; each is asked at the moment of a labelled one
--moments    keep what was found there; if the file exists, the sessions are not lived again
--judge N    write N of the file tellings, and all of the prompts', with their situation, for a person to
             judge, to --judge-out
--misses     show what was missed, in the earlier half alone

Thresholds are chosen on the earlier half of the labelled prompts, and reported on the later one.
"""

from __future__ import annotations

import argparse
import bisect
import json
import os
import random
import re
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import report
import transcripts
from report import Budget
from rich.console import Console
from rich.table import Table

from backstory import paths
from backstory.capture import ignore
from backstory.capture.event import past_event
from backstory.clients import canonical
from backstory.clients.canonical import Event
from backstory.clients.claude_transcript import key_of
from backstory.errors import BadPayload
from backstory.intake.outcome import printed
from backstory.intake.remember import Past, Prepared, remember
from backstory.intake.trace import trace
from backstory.memory.turn import Turn
from backstory.recall import brief, telling
from backstory.recall.index import Index
from backstory.recall.telling import GATE, Candidate, Gate, Telling
from backstory.store import projects, tellings, turns
from backstory.store.file.connection import connect, transaction, unhurried
from backstory.synthesis.past import observe_past

USER = re.compile(rb'"cwd":"(?:/Users|/home)/([^/"]+)')
TOUCHING = (canonical.READ, canonical.EDIT, canonical.WRITE)
BRIEF_TOKENS = 1_500
SLACK_MS = 1_000  # between the times that two readers give a turn
SHOWN = 400  # characters of a situation
STEPS = [step / 20 for step in range(0, 121)]  # thresholds of BM25 on the curve


@dataclass(frozen=True, slots=True)
class Label:
    id: str
    need: bool
    right: frozenset[str]


@dataclass(slots=True)
class Found:
    """A candidate of a prompt, as far as the gate looks at it."""

    id: str  # as labels name it
    bm25: float
    of_best: float
    covers: float
    days: float
    is_own: bool
    on_branch: bool
    is_told: bool  # by the session's brief


@dataclass(slots=True)
class Moment:
    """A turn of a session, and what was told to the session up to then."""

    id: str
    session: str
    at: int
    prompt: str = ""
    is_first: bool = False  # substantive, and none before it
    is_opening: bool = False  # the first prompt of all
    found: list[Found] = field(default_factory=list)
    foreign: list[Found] = field(default_factory=list)
    asked_foreign: bool = False
    brief: list[str] = field(default_factory=list)  # the turns that the session's brief told
    files: list[str] = field(default_factory=list)  # and what files told, in this turn or before
    failures: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Beside:
    """A telling at a file, or at a prompt (no path), for a person to judge."""

    session: str
    prompt: str
    path: str
    action: str
    days: object
    told: str
    source: str


@dataclass(slots=True)
class Lived:
    moments: list[Moment]
    besides: list[Beside]
    figures: dict[str, Any]


def main() -> int:
    given = _options()
    console = report.console(given)
    labels = [label for file in given.labels for label in _labels(file)]
    if given.moments and os.path.exists(given.moments):
        lived = _read_moments(given.moments)
    else:
        foreign = json.loads(Path(given.foreign).read_text("utf-8")) if given.foreign else []
        lived = _live(given, {label.id for label in labels}, foreign, console)
        if given.moments:
            Path(given.moments).write_text(json.dumps(asdict(lived)), "utf-8")
    if given.judge:
        chosen = random.Random(given.seed)  # noqa: S311  the same in every run
        files = [one for one in lived.besides if one.path]
        several = chosen.sample(files, min(given.judge, len(files)))
        several += [one for one in lived.besides if not one.path]
        Path(given.judge_out).write_text(json.dumps([asdict(one) for one in several], indent=1), "utf-8")
    known = {label.id: label for label in reversed(labels)}  # of two readers the first
    cases = sorted(
        ((one, known[one.id]) for one in lived.moments if one.id in known), key=lambda case: case[0].at
    )
    half = len(cases) // 2
    halves = {"earlier": cases[:half], "later": cases[half:]}
    figures = lived.figures | {
        "labelled": len(cases),
        "labels_without_a_moment": len(known) - len({one.id for one, _ in cases}),
        "gate": asdict(GATE),
        **{name: _served(lived.moments, several, GATE) for name, several in halves.items()},
        "all": _served(lived.moments, cases, GATE),
        "curve": {name: _curve(lived.moments, several) for name, several in halves.items()},
    }
    if given.json and given.json != "-":
        Path(given.json).with_suffix(".svg").write_text(_picture(figures["curve"]), "utf-8")

    def show(console: Console) -> None:
        _show(console, figures)
        if given.misses:
            _show_misses(console, lived.moments, halves["earlier"])

    return report.tell("telling", given, figures, _budgets(figures["later"]), show)


def _options() -> argparse.Namespace:
    parser = report.options(__doc__)
    parser.add_argument("folder", metavar="FOLDER", help="transcripts")
    parser.add_argument("--turns", metavar="FILE", required=True, help="the turns that labels name")
    parser.add_argument("--labels", metavar="FILE", nargs="+", required=True)
    parser.add_argument("--foreign", metavar="FILE", help="prompts of other projects")
    parser.add_argument("--moments", metavar="FILE", help="keep what was found, or use what was kept")
    parser.add_argument("--judge", metavar="N", type=int, default=0, help="file tellings for a person")
    parser.add_argument("--judge-out", metavar="FILE", default="judge_files.json")
    parser.add_argument("--seed", metavar="S", type=int, default=0)
    parser.add_argument("--misses", action="store_true", help="show those of the earlier half")
    parser.add_argument("--limit-sessions", metavar="N", type=int, help="only the N oldest sessions")
    return parser.parse_args()


def _labels(file: str) -> Iterator[Label]:
    for one in json.loads(Path(file).read_text("utf-8")):
        yield Label(one["id"], bool(one["need"]), frozenset(one["right"]) if one["need"] else frozenset())


def _read_moments(file: str) -> Lived:
    kept = json.loads(Path(file).read_text("utf-8"))
    moments = []
    for one in kept["moments"]:
        for name in ("found", "foreign"):
            one[name] = [Found(**found) for found in one[name]]
        moments.append(Moment(**one))
    return Lived(moments, [Beside(**one) for one in kept["besides"]], kept["figures"])


# --- living it again ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class Session:
    id: str
    user: str
    events: list[tuple[Event, str | None, Past]]


class Names:
    """Our turns by the names that labels have for them."""

    def __init__(self, file: str) -> None:
        self._known: dict[str, list[tuple[int, str]]] = {}
        for one in json.loads(Path(file).read_text("utf-8")):
            self._known.setdefault(one["session"], []).append((one["at"], one["id"]))
        for several in self._known.values():
            several.sort()

    def of(self, session_id: str, at: int) -> str:
        several = self._known.get(session_id, [])
        place = bisect.bisect_right(several, (at + SLACK_MS, "\uffff")) - 1
        return several[max(place, 0)][1] if several else ""


def _live(given: argparse.Namespace, labelled: set[str], foreign: Sequence[str], console: Console) -> Lived:
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="backstory-bench-") as folder:
        home, project = os.path.join(os.path.realpath(folder), "home"), os.path.join(folder, "project")
        project = os.path.realpath(project)
        _repository(project)
        lived = list(_sessions(given, project))
        console.print(f"{len(lived)} sessions read in {time.perf_counter() - started:.0f} s", highlight=False)
        os.makedirs(home)
        with closing(connect(paths.database(home))) as db:
            unhurried(db)
            again = _Again(db, project, lived, Names(given.turns), labelled, foreign)
            again.run()
    figures = again.figures | {"sessions": len(lived), "seconds": round(time.perf_counter() - started)}
    return Lived(again.moments, again.besides, figures)


def _repository(project: str) -> None:
    os.makedirs(project)
    env = {"PATH": os.environ["PATH"], "HOME": project}
    name = ["-c", "user.name=bench", "-c", "user.email=bench@example.org", "-c", "init.defaultBranch=main"]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "start"]):
        subprocess.run(["git", *name, *command], cwd=project, check=True, env=env)


def _sessions(given: argparse.Namespace, project: str) -> Iterator[Session]:
    files = []
    for file in sorted(Path(given.folder).rglob("*.jsonl")):
        with file.open("rb") as lines:
            began = transcripts.began(lines)
        if began is not None:
            files.append((began, file))
    for _, file in sorted(files)[: given.limit_sessions]:
        entries = file.read_bytes().splitlines(keepends=True)
        user = next((found[1].decode() for entry in entries if (found := USER.search(entry))), "")
        payloads = transcripts.payloads(entries, project)
        if not payloads:
            continue
        events: list[tuple[Event, str | None, Past]] = []
        branch = next((one["branch"] for one in payloads if one.get("branch")), None)
        prompts: set[int] = set()
        for payload in payloads:
            branch = payload.get("branch", branch) or branch
            past = Past(payload.get("asked_at", 0), payload.get("attended"), False, prompts)
            payload.setdefault("uuid", f"{payload['hook_event_name']}")
            try:
                event = past_event(
                    payload,
                    name=key_of(payload),
                    at=payload["at"],
                    for_synthesis=False,
                    ignored=ignore.ALWAYS,
                )
            except BadPayload:
                continue
            events.append((event, branch, past))
        yield Session(payloads[0]["session_id"], user, events)


class _Again:
    def __init__(
        self,
        db: sqlite3.Connection,
        project: str,
        lived: Sequence[Session],
        names: Names,
        labelled: set[str],
        foreign: Sequence[str],
    ) -> None:
        self.db, self.project, self.lived, self.names = db, project, lived, names
        self.labelled, self.foreign = labelled, list(foreign)
        self.index = Index(None)
        self.moments: list[Moment] = []
        self.besides: list[Beside] = []
        self.figures: dict[str, Any] = {"events": 0, "told": {}}
        self._others = {
            user: frozenset(one.id for one in lived if one.user != user) for user in {s.user for s in lived}
        }
        self._user = {one.id: one.user for one in lived}
        self._waiting: list[Prepared] = []
        self._place = paths.place(project)
        self._branch: str | None = None
        self._now: dict[str, Moment] = {}  # by session
        self._brief: dict[str, list[str]] = {}
        self._files: dict[str, list[str]] = {}
        self._failures: dict[str, list[str]] = {}
        self._first: set[str] = set()
        self._spent: dict[str, list[float]] = {}

    def run(self) -> None:
        every = [
            (event.at, number, place, event, branch, past)
            for number, session in enumerate(self.lived)
            for place, (event, branch, past) in enumerate(session.events)
        ]
        every.sort(key=lambda one: one[:3])
        for _, number, _, event, branch, past in every:
            session_id = self.lived[number].id
            self.figures["events"] += 1
            if event.kind == canonical.SESSION_START:
                self._start(session_id, event, branch)
            elif event.kind == canonical.PROMPT:
                self._prompt(session_id, event, branch)
            elif event.use and not event.agent and event.use.action in TOUCHING:
                self._touch(session_id, event)
            elif event.use and event.use.action == canonical.SHELL and event.use.error is not None:
                self._fail(session_id, event)
            self._take(event, branch, past)
            if event.kind in (canonical.PROMPT, canonical.TURN_END, canonical.SESSION_END):
                self._flush()  # as the drain that these hooks leave behind
            if event.kind == canonical.SESSION_END:
                with transaction(self.db):
                    turns.close(self.db, session_id)
                    observe_past(self.db, session_id)
        self._flush()
        self.figures["moments"] = len(self.moments)
        self.figures["ms"] = {
            name: report.middle([one * 1000 for one in several]) for name, several in self._spent.items()
        }

    def _take(self, event: Event, branch: str | None, past: Past) -> None:
        place = paths.place(self.project) if self._place is None else self._place
        place = paths.Place(
            place.location, place.name, place.root, branch, None, place.tops, place.common, place.remote
        )
        self._waiting.append(Prepared(event, place, trace(event.use), None, past))

    def _flush(self) -> None:
        if self._waiting:
            with transaction(self.db):
                remember(self.db, self._waiting)
            self._waiting = []

    def _checkout(self, branch: str | None) -> None:
        if branch != self._branch:
            head = f"ref: refs/heads/{branch}\n" if branch else "0" * 40 + "\n"
            Path(self.project, ".git", "HEAD").write_text(head, "utf-8")
            self._branch = branch

    def _start(self, session_id: str, event: Event, branch: str | None) -> None:
        self._flush()
        self._checkout(branch)
        told = brief.brief(self.db, self.project, session_id, "startup", BRIEF_TOKENS)
        self._brief[session_id] = self._names(told.ids)
        if told.text:
            self._note(session_id, Telling(tellings.START, told.text, told.ids), event.at)

    def _prompt(self, session_id: str, event: Event, branch: str | None) -> None:
        self._flush()
        self._checkout(branch)
        moment = Moment(self.names.of(session_id, event.at), session_id, event.at, event.text[:SHOWN])
        earlier = self._now.get(session_id)
        if earlier and earlier.id == moment.id:
            moment = earlier
        else:
            moment.is_opening = earlier is None
            self.moments.append(moment)
        self._now[session_id] = moment
        moment.brief = self._brief.get(session_id, [])
        moment.files, moment.failures = (
            list(several.get(session_id, [])) for several in (self._files, self._failures)
        )
        asked = (self.index, self.db, self.project, session_id, event.text, event.at)
        others = self._others[self._user[session_id]]
        if telling.is_substantive(event.text) and session_id not in self._first:
            self._first.add(session_id)
            moment.is_first = True
            moment.found = self._found(telling.candidates(*asked, others))
        told = self._timed("prompt", partial(telling.at_prompt, *asked, others))
        if told:
            self._note(session_id, told, event.at)
            source = ", ".join(self._names(told.ids))
            self.besides.append(Beside(session_id, moment.prompt, "", told.moment, None, told.text, source))
        if self.foreign and moment.id in self.labelled and not moment.asked_foreign:
            moment.asked_foreign = True
            prompt = self.foreign[len([one for one in self.moments if one.asked_foreign]) % len(self.foreign)]
            if telling.is_substantive(prompt):
                # As if the session had begun with it: its own turns do not count.
                begun = (self.index, self.db, self.project, session_id, prompt, event.at)
                moment.foreign = self._found(telling.candidates(*begun, others, ()))

    def _touch(self, session_id: str, event: Event) -> None:
        use = event.use
        assert use is not None
        others = self._others[self._user[session_id]]
        for path in use.paths:
            asked = (self.db, self.project, session_id, path, event.at, others)
            told = self._timed("file", partial(telling.at_file, *asked))
            if told:
                self._note(session_id, told, event.at)
                several = self._names(told.ids)
                self._files.setdefault(session_id, []).extend(several)
                moment = self._now.get(session_id)
                if moment:
                    moment.files += several
                    self.besides.append(
                        Beside(
                            session_id,
                            moment.prompt,
                            told.about,
                            use.action,
                            told.reason["days"],
                            told.text,
                            several[0],
                        )
                    )

    def _fail(self, session_id: str, event: Event) -> None:
        assert event.use is not None
        others = self._others[self._user[session_id]]
        asked = (self.db, self.project, session_id, printed(event.use), event.at, others)
        told = self._timed("failure", partial(telling.at_failure, *asked))
        if told:
            self._note(session_id, told, event.at)
            self._failures.setdefault(session_id, []).extend(self._names(told.ids))

    def _timed(self, name: str, ask: Callable[[], Telling | None]) -> Telling | None:
        started = time.perf_counter()
        told = ask()
        self._spent.setdefault(name, []).append(time.perf_counter() - started)
        return told

    def _note(self, session_id: str, told: Telling, at: int) -> None:
        project_id = projects.id_at(self.db, paths.place(self.project))
        assert project_id
        counts = self.figures["told"]
        counts[told.moment] = counts.get(told.moment, 0) + 1
        with transaction(self.db):
            tellings.note(
                self.db,
                session_id,
                project_id,
                told.moment,
                told.text,
                told.ids,
                tokens=-(-len(told.text) // 4),
                at=at,
                about=told.about,
                reason=told.reason,
            )

    def _found(self, several: Iterable[Candidate]) -> list[Found]:
        return [
            Found(
                self._name(one.turn),
                one.bm25,
                one.of_best,
                one.covers,
                one.days,
                one.is_own,
                one.on_branch,
                one.is_told,
            )
            for one in several
        ]

    def _name(self, turn: Turn) -> str:
        return self.names.of(turn.session_id, turn.started_at)

    def _names(self, ids: Sequence[str]) -> list[str]:
        known = turns.by_ids(self.db, list(ids))
        return [self._name(known[one]) for one in ids if one in known]


# --- judging ------------------------------------------------------------------------------------------------

Case = tuple[Moment, Label]


@dataclass(frozen=True, slots=True)
class _Named:
    """All that the gate asks of a turn."""

    id: str


def _candidate(one: Found) -> Candidate:
    turn: Any = _Named(one.id)
    figures = (one.bm25, one.of_best, one.covers, one.days)
    return Candidate(turn, *figures, one.is_own, one.on_branch, one.is_told)


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the gate lets through: all of it, and without what the brief has told."""

    every: frozenset[str]
    told: tuple[str, ...]


def _chosen(found: Sequence[Found], gate: Gate) -> Chosen:
    several = [_candidate(one) for one in found]
    as_if_new = [replace(one, is_told=False) for one in several]
    every, told = telling.chosen(as_if_new, gate), telling.chosen(several, gate)
    return Chosen(frozenset(one.turn.id for one in every), tuple(one.turn.id for one in told))


@dataclass(frozen=True, slots=True)
class Judged:
    """A labelled prompt, and what the session had been told when it was sent."""

    moment: Moment
    label: Label
    now: Chosen  # at this very prompt
    so_far: frozenset[str]  # by the gate, in this session

    def is_right(self, ids: Iterable[str]) -> bool:
        return not self.label.right.isdisjoint(ids)

    def is_of_right_session(self, ids: Iterable[str]) -> bool:
        return not {one.partition("#")[0] for one in self.label.right}.isdisjoint(
            one.partition("#")[0] for one in ids
        )


def _judged(every: Sequence[Moment], cases: Sequence[Case], gate: Gate) -> list[Judged]:
    let_through: dict[str, list[tuple[int, Chosen]]] = {}
    for one in every:
        if one.is_first:
            let_through.setdefault(one.session, []).append((one.at, _chosen(one.found, gate)))
    nothing = Chosen(frozenset(), ())
    found = []
    for one, label in cases:
        known = let_through.get(one.session, [])
        so_far = frozenset(turn for at, several in known if at <= one.at for turn in several.every)
        now = next((several for at, several in known if at == one.at), nothing)
        found.append(Judged(one, label, now, so_far))
    return found


def _served(every: Sequence[Moment], cases: Sequence[Case], gate: Gate) -> dict[str, Any]:
    judged = _judged(every, cases, gate)
    needy = [one for one in judged if one.label.need]
    first = [one for one in needy if one.moment.is_first]
    others = [one for one in judged if not one.label.need]
    foreign = [one.moment for one in judged if one.moment.asked_foreign]
    told = [one for one in judged if one.now.told]
    items = [(one, item) for one in told for item in one.now.told]
    counts: dict[str, Sequence[object]] = {
        "prompts": judged,
        "in_need": needy,
        "in_need_right": [one for one in needy if one.is_right(one.so_far)],
        "in_need_newly": [one for one in needy if one.is_right(one.now.told)],
        "in_need_brief_or_prompt": [one for one in needy if one.is_right({*one.so_far, *one.moment.brief})],
        "first_in_need": first,
        "first_right": [one for one in first if one.is_right(one.so_far)],
        "first_newly": [one for one in first if one.is_right(one.now.told)],
        "first_brief_or_prompt": [one for one in first if one.is_right({*one.so_far, *one.moment.brief})],
        "others": others,
        "others_told": [one for one in others if one.now.told],
        "foreign": foreign,
        "foreign_told": [one for one in foreign if _chosen(one.foreign, gate).told],
        "told": told,
        "told_right": [one for one in told if one.is_right(one.now.told)],
        "told_right_session": [one for one in told if one.is_of_right_session(one.now.told)],
        "items": items,
        "items_right": [item for one, item in items if item in one.label.right],
        "by_brief": [one for one in needy if one.is_right(one.moment.brief)],
        "by_file": [one for one in needy if one.is_right(one.moment.files)],
        "together": [
            one
            for one in needy
            if one.is_right({*one.so_far, *one.moment.brief, *one.moment.files, *one.moment.failures})
        ],
    }
    return {name: len(several) for name, several in counts.items()}


def _share(figures: dict[str, Any], part: str, of: str) -> float:
    return round(figures[part] / figures[of], 3) if figures[of] else 0.0


def _curve(every: Sequence[Moment], cases: Sequence[Case]) -> list[dict[str, float]]:
    """Served, and told for nothing, over the threshold of BM25."""
    points = []
    for step in STEPS:
        found = _served(every, cases, replace(GATE, bm25=step))
        shares = {part: _share(found, part, of) for _, part, of in ROWS}
        points.append({"bm25": step, **shares})
    return points


ROWS = (
    ("in need: the gate lets the right turn through", "in_need_right", "in_need"),
    ("  and the brief had not told it", "in_need_newly", "in_need"),
    ("  or the brief had told it", "in_need_brief_or_prompt", "in_need"),
    ("first substantive prompts in need: likewise", "first_right", "first_in_need"),
    ("  and the brief had not told it", "first_newly", "first_in_need"),
    ("  or the brief had told it", "first_brief_or_prompt", "first_in_need"),
    ("others told anything", "others_told", "others"),
    ("other projects' prompts told anything", "foreign_told", "foreign"),
    ("right, of what is told at prompts", "told_right", "told"),
    ("  or another turn of a right session", "told_right_session", "told"),
    ("  right, of its items", "items_right", "items"),
    ("served by the brief", "by_brief", "in_need"),
    ("served by files", "by_file", "in_need"),
    ("brief, prompt, file and failure together", "together", "in_need"),
)


def _budgets(later: dict[str, Any]) -> list[Budget]:
    shares = {part: _share(later, part, of) for _, part, of in ROWS}
    return [
        Budget("prompts in need told the right turn", "at least", 0.30, shares["in_need_right"]),
        Budget("first substantive prompts in need", "at least", 0.50, shares["first_right"]),
        Budget("others told anything", "at most", 0.03, shares["others_told"]),
        Budget("other projects' prompts told anything", "at most", 0.01, shares["foreign_told"]),
        Budget("of what is told, right", "at least", 0.60, shares["told_right"]),
        Budget("brief, prompt and file together", "at least", 0.55, shares["together"]),
    ]


# --- showing ------------------------------------------------------------------------------------------------


def _show(console: Console, figures: dict[str, Any]) -> None:
    console.print(
        f"{figures['sessions']} sessions, {figures['events']:,} events,"
        f" {figures['labelled']} labelled prompts; told: {figures['told']};"
        f" ms (median, p95): {figures['ms']}",
        highlight=False,
    )
    table = Table("", "earlier half", "later half", "all")
    for name, part, of in ROWS:
        cells = []
        for half in ("earlier", "later", "all"):
            one, many = figures[half][part], figures[half][of]
            cells.append(f"{one} of {many}  {one / many:.1%}" if many else "-")
        table.add_row(name, *cells)
    console.print(table)


def _show_misses(console: Console, every: Sequence[Moment], cases: Sequence[Case]) -> None:
    def say(line: str) -> None:
        console.print(line, highlight=False, markup=False)

    for one in _judged(every, cases, GATE):
        is_missed = one.label.need and one.moment.is_first and not one.is_right(one.so_far)
        if is_missed or (not one.label.need and one.now.told):
            kind = "missed" if one.label.need else "told for nothing"
            say(f"\n{kind} {one.moment.id}: {' '.join(one.moment.prompt.split())[:200]}")
            say(f"  right: {sorted(one.label.right)}; by the brief: {one.is_right(one.moment.brief)}")
            for hit in map(_candidate, one.moment.found[:5]):
                mark = "*" if hit.turn.id in one.label.right else " "
                say(f"  {mark} {hit.turn.id:14} {hit.figures()}")


WIDTH, HEIGHT, MARGIN = 640, 420, 60
WIDEST = 0.25  # share of the others that the picture shows
COLOURS = {"earlier": "#8a8f98", "later": "#0b6bcb"}


def _picture(curves: dict[str, list[dict[str, float]]]) -> str:
    """Share of the others told anything, and of those in need told the right turn, as the threshold falls."""
    wide, high = WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN
    bottom, right = HEIGHT - MARGIN, WIDTH - MARGIN

    def at(point: dict[str, float]) -> tuple[float, float]:
        x = MARGIN + min(point["others_told"], WIDEST) / WIDEST * wide
        return round(x, 1), round(bottom - point["in_need_right"] * high, 1)

    def text(x: float, y: float, words: str, anchor: str = "middle", more: str = "") -> str:
        return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}"{more}>{words}</text>'

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<path d="M{MARGIN},{MARGIN} V{bottom} H{right}" fill="none" stroke="#333"/>',
        text(WIDTH / 2, HEIGHT - 15, "others told anything"),
        text(
            16,
            HEIGHT / 2,
            "in need, told the right turn",
            more=f' transform="rotate(-90 16 {HEIGHT // 2})"',
        ),
    ]
    for share in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        parts.append(text(MARGIN - 8, bottom - share * high + 4, f"{share:.0%}", "end"))
        parts.append(text(MARGIN + share * wide, bottom + 18, f"{share * WIDEST:.0%}"))
    for place, (name, points) in enumerate(curves.items()):
        colour = COLOURS[name]
        line = " ".join(f"{x},{y}" for x, y in map(at, points))
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{line}"/>')
        x, y = at(min(points, key=lambda point: abs(point["bm25"] - GATE.bm25)))
        parts.append(f'<circle cx="{x}" cy="{y}" r="5" fill="{colour}"/>')
        parts.append(text(right, MARGIN + 18 * place, f"{name} half", "end", f' fill="{colour}"'))
    return "\n".join([*parts, "</svg>\n"])


if __name__ == "__main__":
    raise SystemExit(main())
