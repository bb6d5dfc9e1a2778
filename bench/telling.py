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
--judge N    write N of the file tellings with their situation, for a person to judge, to --judge-out
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
from pathlib import Path
from typing import Any

import report
import transcripts
from report import Budget
from rich.console import Console
from rich.table import Table

from backstory import paths
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
from backstory.store import projects, sessions, tellings, turns
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
    score: float
    covers: float
    bm25: float
    days: float
    is_own: bool
    on_branch: bool


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
    """A file telling, for a person to judge."""

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
        several = chosen.sample(lived.besides, min(given.judge, len(lived.besides)))
        Path(given.judge_out).write_text(json.dumps([asdict(one) for one in several], indent=1), "utf-8")
    known = {label.id: label for label in labels}
    cases = sorted(
        ((one, known[one.id]) for one in lived.moments if one.id in known), key=lambda case: case[0].at
    )
    half = len(cases) // 2
    halves = {"earlier": cases[:half], "later": cases[half:]}
    figures = lived.figures | {
        "labelled": len(cases),
        "labels_without_a_moment": len(known) - len({one.id for one, _ in cases}),
        "gate": asdict(GATE),
        **{name: _served(several, GATE) for name, several in halves.items()},
        "all": _served(cases, GATE),
        "curve": {name: _curve(several) for name, several in halves.items()},
    }
    if given.json and given.json != "-":
        Path(given.json).with_suffix(".svg").write_text(_picture(figures["curve"]), "utf-8")

    def show(console: Console) -> None:
        _show(console, figures)
        if given.misses:
            _show_misses(console, halves["earlier"])

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


def _live(
    given: argparse.Namespace, labelled: set[str], foreign: Sequence[str], console: Console
) -> Lived:
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
        lines = file.read_bytes().splitlines(keepends=True)
        user = next((found[1].decode() for line in lines if (found := USER.search(line))), "")
        payloads = transcripts.payloads(lines, project)
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
                event = past_event(payload, name=key_of(payload), at=payload["at"], for_synthesis=False)
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
            if event.kind in (canonical.TURN_END, canonical.SESSION_END):
                self._flush()
            if event.kind == canonical.SESSION_END:
                with transaction(self.db):
                    turns.close(self.db, session_id)
                    observe_past(self.db, session_id)
        self._flush()
        self.figures["moments"] = len(self.moments)
        self.figures["ms"] = {name: report.middle([one * 1000 for one in several]) for name, several in self._spent.items()}

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
        told = self._timed("prompt", lambda: telling.at_prompt(*asked, others))
        if told:
            self._note(session_id, told, event.at)
        if self.foreign and moment.id in self.labelled and not moment.asked_foreign:
            moment.asked_foreign = True
            prompt = self.foreign[len([one for one in self.moments if one.asked_foreign]) % len(self.foreign)]
            if telling.is_substantive(prompt):
                moment.foreign = self._found(
                    telling.candidates(self.index, self.db, self.project, "", prompt, event.at, others, ())
                )

    def _touch(self, session_id: str, event: Event) -> None:
        use = event.use
        assert use is not None
        others = self._others[self._user[session_id]]
        for path in use.paths:
            told = self._timed(
                "file",
                lambda path=path: telling.at_file(self.db, self.project, session_id, path, event.at, others),
            )
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
        output = printed(event.use)
        others = self._others[self._user[session_id]]
        told = self._timed(
            "failure",
            lambda: telling.at_failure(self.db, self.project, session_id, output, event.at, others),
        )
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
                one.score,
                one.covers,
                one.bm25,
                one.days,
                one.is_own,
                one.on_branch,
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


def _told(found: Sequence[Found], gate: Gate) -> list[str]:
    """What the gate lets through, as at_prompt does it."""
    several = [
        Candidate(_Named(one.id), one.score, one.covers, one.bm25, one.days, one.is_own, one.on_branch, ())  # type: ignore[arg-type]
        for one in found
    ]
    return [one.turn.id for one in telling.chosen(several, gate)]


@dataclass(frozen=True, slots=True)
class _Named:
    id: str


def _served(cases: Sequence[Case], gate: Gate) -> dict[str, Any]:
    by_session: dict[str, list[str]] = {}
    told = {id(one): _told(one.found, gate) for one, _ in cases}
    needy = [case for case in cases if case[1].need]
    others = [case for case in cases if not case[1].need]
    first = [case for case in needy if case[0].is_first]
    opening = [case for case in needy if case[0].is_opening]
    foreign = [one for one, _ in cases if one.asked_foreign]
    telling_ = [(one, label) for one, label in cases if told[id(one)]]

    def right(case: Case, ids: Iterable[str]) -> bool:
        return not case[1].right.isdisjoint(ids)

    def share(several: Sequence[Any], of: Sequence[Any]) -> float:
        return round(len(several) / len(of), 3) if of else 0.0

    del by_session
    prompt = [case for case in needy if right(case, told[id(case[0])])]
    first_right = [case for case in first if right(case, told[id(case[0])])]
    opening_right = [case for case in opening if right(case, told[id(case[0])])]
    others_told = [case for case in others if told[id(case[0])]]
    foreign_told = [one for one in foreign if _told(one.foreign, gate)]
    right_told = [case for case in telling_ if right(case, told[id(case[0])])]
    by_brief = [case for case in needy if right(case, case[0].brief)]
    by_file = [case for case in needy if right(case, case[0].files)]
    together = [
        case
        for case in needy
        if right(case, [*case[0].brief, *told[id(case[0])], *case[0].files, *case[0].failures])
    ]
    return {
        "prompts": len(cases),
        "in_need": len(needy),
        "in_need_told_right": len(prompt),
        "in_need_share": share(prompt, needy),
        "first_in_need": len(first),
        "first_told_right": len(first_right),
        "first_share": share(first_right, first),
        "opening_in_need": len(opening),
        "opening_share": share(opening_right, opening),
        "others": len(others),
        "others_told": len(others_told),
        "others_share": share(others_told, others),
        "foreign": len(foreign),
        "foreign_told": len(foreign_told),
        "foreign_share": share(foreign_told, foreign),
        "told": len(telling_),
        "told_right": len(right_told),
        "precision": share(right_told, telling_),
        "by_brief": len(by_brief),
        "by_file": len(by_file),
        "together": len(together),
        "brief_share": share(by_brief, needy),
        "file_share": share(by_file, needy),
        "together_share": share(together, needy),
    }


def _curve(cases: Sequence[Case]) -> list[dict[str, float]]:
    """Served and told wrongly, over the threshold of BM25."""
    points = []
    for step in STEPS:
        found = _served(cases, replace(GATE, bm25=step))
        points.append(
            {"bm25": step, **{name: found[name] for name in ("in_need_share", "first_share", "others_share", "foreign_share", "precision")}}
        )
    return points


def _budgets(later: dict[str, Any]) -> list[Budget]:
    return [
        Budget("prompts in need told the right turn", "at least", 0.30, later["in_need_share"]),
        Budget("first substantive prompts in need", "at least", 0.50, later["first_share"]),
        Budget("others told anything", "at most", 0.03, later["others_share"]),
        Budget("other projects' prompts told anything", "at most", 0.01, later["foreign_share"]),
        Budget("of what is told, right", "at least", 0.60, later["precision"]),
        Budget("brief, prompt and file together", "at least", 0.55, later["together_share"]),
    ]


# --- showing ------------------------------------------------------------------------------------------------


def _show(console: Console, figures: dict[str, Any]) -> None:
    console.print(
        f"{figures['sessions']} sessions, {figures['events']:,} events, {figures['labelled']} labelled prompts;"
        f" told: {figures['told']}; ms (median, p95): {figures['ms']}",
        highlight=False,
    )
    table = Table("", "earlier half", "later half", "all")
    rows = (
        ("prompts in need told the right turn", "in_need_told_right", "in_need"),
        ("first substantive prompts in need", "first_told_right", "first_in_need"),
        ("others told anything", "others_told", "others"),
        ("other projects' prompts told anything", "foreign_told", "foreign"),
        ("right, of what is told", "told_right", "told"),
        ("served by the brief", "by_brief", "in_need"),
        ("served by files", "by_file", "in_need"),
        ("brief, prompt and file together", "together", "in_need"),
    )
    for name, part, of in rows:
        cells = []
        for half in ("earlier", "later", "all"):
            one, many = figures[half][part], figures[half][of]
            cells.append(f"{one} of {many}  {one / many:.1%}" if many else "-")
        table.add_row(name, *cells)
    console.print(table)


def _show_misses(console: Console, cases: Sequence[Case]) -> None:
    for one, label in cases:
        told = _told(one.found, GATE)
        is_right = not label.right.isdisjoint(told)
        if (label.need and not is_right and one.is_first) or (not label.need and told):
            kind = "missed" if label.need else "told for nothing"
            console.print(f"\n{kind} {one.id}: {' '.join(one.prompt.split())[:200]}", highlight=False, markup=False)
            console.print(f"  right: {sorted(label.right)}; brief had it: {not label.right.isdisjoint(one.brief)}", highlight=False, markup=False)
            for found in sorted(one.found, key=lambda hit: -_worth(hit))[:5]:
                mark = "*" if found.id in label.right else " "
                console.print(
                    f"  {mark} {found.id:14} worth {_worth(found):.2f} score {found.score:.2f} covers {found.covers:.2f}"
                    f" bm25 {found.bm25:.2f} days {found.days:.1f} own {found.is_own} branch {found.on_branch}",
                    highlight=False,
                    markup=False,
                )


def _worth(one: Found) -> float:
    return Candidate(_Named(one.id), one.score, one.covers, one.bm25, one.days, one.is_own, one.on_branch, ()).worth(GATE)  # type: ignore[arg-type]


WIDTH, HEIGHT, MARGIN = 640, 420, 60
COLOURS = {"earlier": "#8a8f98", "later": "#0b6bcb"}


def _picture(curves: dict[str, list[dict[str, float]]]) -> str:
    """Share of the others told anything, and of those in need told the right turn, as the threshold falls."""
    widest = 0.25

    def at(point: dict[str, float]) -> str:
        x = MARGIN + min(point["others_share"], widest) / widest * (WIDTH - 2 * MARGIN)
        y = HEIGHT - MARGIN - point["in_need_share"] * (HEIGHT - 2 * MARGIN)
        return f"{x:.1f},{y:.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<path d="M{MARGIN},{MARGIN} V{HEIGHT - MARGIN} H{WIDTH - MARGIN}" fill="none" stroke="#333"/>',
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 15}" text-anchor="middle">others told anything</text>',
        f'<text x="16" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 16 {HEIGHT / 2})">in need, told the right turn</text>',
    ]
    for step in range(6):
        share = step / 5
        y = HEIGHT - MARGIN - share * (HEIGHT - 2 * MARGIN)
        x = MARGIN + share * (WIDTH - 2 * MARGIN)
        parts.append(f'<text x="{MARGIN - 8}" y="{y + 4:.1f}" text-anchor="end">{share:.0%}</text>')
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - MARGIN + 18}" text-anchor="middle">{share * widest:.0%}</text>')
    for place, (name, points) in enumerate(curves.items()):
        colour = COLOURS[name]
        parts.append(
            f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{" ".join(map(at, points))}"/>'
        )
        chosen = min(points, key=lambda point: abs(point["bm25"] - GATE.bm25))
        x, y = at(chosen).split(",")
        parts.append(f'<circle cx="{x}" cy="{y}" r="5" fill="{colour}"/>')
        parts.append(
            f'<text x="{WIDTH - MARGIN}" y="{MARGIN + 18 * place}" text-anchor="end" fill="{colour}">{name} half</text>'
        )
    return "\n".join([*parts, "</svg>\n"])


if __name__ == "__main__":
    raise SystemExit(main())
