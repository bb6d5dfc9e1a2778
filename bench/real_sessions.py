"""What memory is worth after real sessions: a folder of transcripts, lived again, and questions about them.

Every transcript of Claude Code in the folder (~/.claude/projects/**/*.jsonl, yours or public ones) becomes
the payloads that its hooks were given. All go into the spool of one project, with their own times, as if the
newest session had ended two hours ago; then the drain, the local synthesizer and the embedder do their work,
and the MCP server is asked, as a model asks it, on a copy of the store for each file of questions, because
what is recalled is reinforced.

A hit answers a question where the question's pattern is found in what the reply shows of it. Beside it, in
the same run: plain FTS5 with bm25() over one text a turn (its prompts and the assistant's last message), five
hits, each shown as a window around its densest match. Nobody may see which questions of an --unopened file
were missed, so that nobody tunes on them.

--backfill      the transcripts are taken in by `backstory backfill` instead; the turns must be the same
--seen-errors   error lines that came again in a later session have to find the turn that solved them
--facts N       observations out of the store at random, for a person to judge
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import report
import seen_errors
import transcripts
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import CallToolResult, TextContent
from recall_quality import any_word
from report import Budget
from rich.console import Console
from rich.table import Table
from seen_errors import Case, Command
from transcripts import Turn

import backstory
from backstory import paths

ENDED_MS = 2 * 3_600_000  # ago, the newest session: backfill leaves alone what goes on
LIMIT = 5
WINDOW = 700  # characters that the baseline shows of a hit
WIDEST = 100_000
TOKEN = 4  # characters
LIMIT_OF_ERRORS = 30  # hits of later sessions are among them, and do not count
NOTHING_FITS = "nothing fits well"
FACTS = ("bugfix", "feature", "refactor", "decision", "preference")
SHOWN_OF_PROMPT, SHOWN_OF_ANSWER = 300, 600
PATIENCE = 1_200  # seconds for one process
OURS, BASELINE = "backstory", "plain FTS5 over turns"
EQUAL = f"{BASELINE}, as many tokens"
HIT = re.compile(r"^\[\d+\] \(", re.MULTILINE)
HIT_ID = re.compile(r"^ID: (\S+)\n", re.MULTILINE)
HIT_END = re.compile(r"\n(?:---|</backstory>)(?:\n.*)?\Z", re.DOTALL)  # what is remembered is indented
# All at once: who reads drains for two seconds, and between two drains turns that are long past are closed.
DRAIN = """
import os, time
from backstory.surfaces.opened import open_drained
with open_drained(os.environ["BACKSTORY_HOME"], now=int(time.time() * 1000)):
    pass
"""
# The times between which a memory lies, and its session.
WHEN = "SELECT session_id, created_at, created_at FROM memories WHERE id = ?"
WHEN_OF_TURN = """
SELECT memories.session_id, started_at, ended_at FROM turns JOIN memories USING (row) WHERE memories.id = ?
"""
OBSERVATIONS = """
SELECT id, kind, title, content, files, session_id, created_at FROM memories
WHERE kind = ? AND deleted_at IS NULL AND valid_until IS NULL ORDER BY row
"""
TEXT = """
SELECT sum(length(content)) FILTER (WHERE kind <> 'tool'), sum(length(content)), session_id
FROM memories WHERE session_id IS NOT NULL AND deleted_at IS NULL GROUP BY session_id
"""
KINDS = "SELECT kind, count(*) FROM memories WHERE deleted_at IS NULL GROUP BY kind ORDER BY count(*) DESC"


@dataclass(frozen=True, slots=True)
class Session:
    id: str
    file: str  # its transcript
    turns: tuple[Turn, ...]
    commands: tuple[Command, ...]


@dataclass(frozen=True, slots=True)
class Lived:
    """A store with sessions in it."""

    home: str
    project: str
    sessions: tuple[Session, ...]
    shift: int  # milliseconds from a transcript's time to the store's

    @property
    def turns(self) -> list[Turn]:
        return [turn for session in self.sessions for turn in session.turns]

    @contextmanager
    def database(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(f"file:{paths.database(self.home)}?mode=ro", uri=True)) as db:
            yield db


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    answer: re.Pattern[str] | None  # None: nothing answers it
    type: str

    def answered_by(self, shown: str) -> bool:
        return bool(self.answer and self.answer.search(shown))


@dataclass(frozen=True, slots=True)
class Hit:
    id: str
    head: str  # up to its ID
    text: str


@dataclass(frozen=True, slots=True)
class Reply:
    text: str
    hits: list[Hit]

    @property
    def warns(self) -> bool:
        return NOTHING_FITS in self.text.lower()


@dataclass(frozen=True, slots=True)
class Row:
    case: str
    five: int  # answered within the first five
    first: int  # answered by the first
    tokens: int  # of a reply, on average


@dataclass(frozen=True, slots=True)
class Answers:
    """What became of a file of questions."""

    file: str
    opened: bool
    answerable: int
    rows: list[Row]
    warned: int  # answerable, and the reply says that nothing fits well
    unanswerable: int
    not_warned: int  # of those
    by_type: dict[str, str] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Seen:
    """How often the turn, and the session, were found in which an error had been solved."""

    case: str
    cases: int
    turn_first: int
    turn_five: int
    session_first: int
    session_five: int


def main() -> int:
    options = _options()
    console = report.console(options)
    with _folder(options.keep) as folder:
        lived, figures = _live(folder, options, console)
        answers = [
            anyio.run(_ask, lived, file, opened)
            for files, opened in ((options.questions, True), (options.unopened, False))
            for file in files
        ]
        seen = anyio.run(_look_for_errors, lived) if options.seen_errors else []
        facts = _facts(lived, options.facts, options.seed) if options.facts else []
    if options.facts_out:
        Path(options.facts_out).write_text("".join(json.dumps(fact) + "\n" for fact in facts), "utf-8")
    figures |= {
        "questions": [asdict(one) for one in answers],
        "seen_errors": [asdict(one) for one in seen],
        "facts": [fact["id"] for fact in facts],
    }

    def show(console: Console) -> None:
        _show_figures(console, figures)
        for one in answers:
            _show_answers(console, one, verbose=options.verbose)
        if seen:
            _show_seen(console, seen)
        _show_facts(console, facts)

    return report.tell("real_sessions", options, figures, _budgets(answers), show)


def _options() -> argparse.Namespace:
    parser = report.options(__doc__)
    parser.add_argument("folder", metavar="FOLDER", help="transcripts, also in folders below it")
    parser.add_argument(
        "--questions", metavar="FILE", action="append", default=[], help="questions and answers"
    )
    parser.add_argument(
        "--unopened",
        metavar="FILE",
        action="append",
        default=[],
        help="others, of which only the sums are told",
    )
    parser.add_argument("--seen-errors", action="store_true", help="look for errors that were solved before")
    parser.add_argument("--facts", metavar="N", type=int, default=0, help="show N observations of each kind")
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="which ones [0]")
    parser.add_argument("--facts-out", metavar="FILE", help="write them there as lines of JSON")
    parser.add_argument("--limit-sessions", metavar="N", type=int, help="only the N oldest sessions")
    parser.add_argument("--backfill", action="store_true", help="by `backstory backfill`, not by the hooks")
    parser.add_argument("--keep", metavar="DIR", help="leave store and project there, in a new folder")
    parser.add_argument("--verbose", action="store_true", help="show the questions that were missed")
    return parser.parse_args()


@contextmanager
def _folder(keep: str | None) -> Iterator[str]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="backstory-bench-") as folder:
            yield os.path.realpath(folder)
    elif os.path.isdir(keep) and os.listdir(keep):
        raise SystemExit(f"{keep} is not empty; name a new folder")
    else:
        os.makedirs(keep, exist_ok=True)
        yield os.path.realpath(keep)


# --- living it again ----------------------------------------------------------------------------------------


def _live(folder: str, options: argparse.Namespace, console: Console) -> tuple[Lived, dict[str, Any]]:
    started = time.perf_counter()
    home, project = os.path.join(folder, "home"), os.path.join(folder, "project")
    _repository(project)
    sessions, shift, events = _spool(home, project, options)
    lived = Lived(home, project, sessions, shift)
    if not sessions:
        raise SystemExit(f"no transcript with a session in it: {options.folder}")
    read_s = round(time.perf_counter() - started, 1)
    if options.backfill:
        drain_s = _backstory(lived, "backfill", "--from", _moved(folder, project, shift, options))
    else:
        drain_s = _python(lived, "-c", DRAIN)
    spool = Path(paths.spool(home))
    failed = [path for path in (spool / "failed").iterdir() if not path.name.endswith(".reason")]
    if left := list((spool / "new").iterdir()):
        raise SystemExit(f"{len(left)} payloads were not drained")
    worker_s = _backstory(lived, "worker")
    vectors_s = _backstory(lived, "reindex")
    with lived.database() as db:
        texts = db.execute(TEXT).fetchall()
        kinds = dict(db.execute(KINDS).fetchall())
    figures = {
        "sessions": len(sessions),
        "turns": sum(turn.stopped for turn in lived.turns),
        "events": events,
        "payloads_put_aside": len(failed),
        "memories": kinds,
        "median_text": statistics.median(row[0] or 0 for row in texts) if texts else 0,
        "median_text_with_tools": statistics.median(row[1] for row in texts) if texts else 0,
        "database_bytes": _size(home),
        "seconds": {"read": read_s, "drain": drain_s, "worker": worker_s, "vectors": vectors_s},
    }
    console.print(
        f"{len(sessions)} sessions with {events:,} events lived again in"
        f" {time.perf_counter() - started:.0f} s",
        highlight=False,
    )
    return lived, figures


def _size(home: str) -> int:
    """Bytes of the database, without the room that deleted rows left. It is not opened read-only: for that,
    SQLite 3.40 copies no table with a generated column."""
    with tempfile.TemporaryDirectory(prefix="backstory-bench-") as folder:
        copy = os.path.join(folder, "vacuumed.db")
        with closing(sqlite3.connect(paths.database(home))) as db:
            db.execute("VACUUM INTO ?", (copy,))
        return os.path.getsize(copy)


def _repository(project: str) -> None:
    os.makedirs(project)
    git = [
        "git",
        "-c",
        "user.name=bench",
        "-c",
        "user.email=bench@example.org",
        "-c",
        "init.defaultBranch=main",
    ]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "start"]):
        subprocess.run(
            [*git, *command], cwd=project, check=True, env={"PATH": os.environ["PATH"], "HOME": project}
        )


def _spool(home: str, project: str, options: argparse.Namespace) -> tuple[tuple[Session, ...], int, int]:
    """Write the payloads as hooks do; the sessions in the order of their beginnings, the shift of their
    times, and the number of events. The time of a file is its event's."""
    spool = Path(paths.spool(home))
    for name in ("tmp", "new", "failed"):
        (spool / name).mkdir(parents=True)
    sessions, times = [], []
    for file in _transcripts(Path(options.folder))[: options.limit_sessions]:
        with file.open("rb") as lines:
            payloads = transcripts.payloads(lines, project)
        for payload in payloads:
            times.append(payload["at"])
            kept = {name: value for name, value in payload.items() if name != "at"}
            (spool / "tmp" / f"{len(times):07}").write_text(json.dumps(kept), encoding="utf-8")
        turns, commands = transcripts.turns(payloads), seen_errors.commands(payloads)
        sessions.append(Session(payloads[0]["session_id"], file.name, tuple(turns), tuple(commands)))
    shift = int(time.time() * 1000) - ENDED_MS - max(times, default=0)
    if options.backfill:
        shutil.rmtree(spool / "tmp")
        return tuple(sessions), shift, len(times)
    for number, at in enumerate(times, 1):
        at_ns = (at + shift) * 1_000_000
        os.utime(spool / "tmp" / f"{number:07}", ns=(at_ns, at_ns))
        (spool / "tmp" / f"{number:07}").rename(spool / "new" / f"{number:07}")
    return tuple(sessions), shift, len(times)


def _moved(folder: str, project: str, shift: int, options: argparse.Namespace) -> str:
    """The same transcripts as if the client had written them in the project, with the times of the spool."""
    to = Path(folder) / "transcripts"
    to.mkdir()
    for number, file in enumerate(_transcripts(Path(options.folder))[: options.limit_sessions]):
        copy = to / f"{number:05}.jsonl"
        with file.open("rb") as lines, copy.open("wb") as out:
            out.writelines(transcripts.moved(lines, project, shift))
    return str(to)


def _transcripts(folder: Path) -> list[Path]:
    """Those with a session in them, the oldest first."""
    found = []
    for file in sorted(folder.rglob("*.jsonl")):
        with file.open("rb") as lines:
            began = transcripts.began(lines)
        if began is not None:
            found.append((began, file))
    return [file for _, file in sorted(found)]


def _backstory(lived: Lived, *command: str) -> float:
    """Run a command of the backstory that is imported here; its seconds."""
    return _python(lived, "-m", "backstory", *command)


def _python(lived: Lived, *command: str) -> float:
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-P", *command],
        cwd=lived.project,
        env=_env(lived.home),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
    return round(time.perf_counter() - started, 1)


def _env(home: str) -> dict[str, str]:
    return {
        "PATH": os.defpath,  # no claude on it: nothing here may ask a model
        "HOME": home,
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.path.dirname(os.path.dirname(backstory.__file__)),
        "BACKSTORY_HOME": home,
        "BACKSTORY_SYNTHESIZER": "local",
        "BACKSTORY_WORKER_IDLE_SECONDS": "0",
    }


# --- asking -------------------------------------------------------------------------------------------------


async def _ask(lived: Lived, file: str, opened: bool) -> Answers:
    questions = _questions(file)
    async with _searching(lived) as search:
        asked = [(question, await search(question.text, LIMIT)) for question in questions]
    answerable = [(question, reply) for question, reply in asked if question.answer]
    hopeless = [reply for question, reply in asked if not question.answer]
    ours = _row(
        OURS,
        [
            (one, [f"{hit.head}{hit.text}" for hit in reply.hits], len(reply.text))
            for one, reply in answerable
        ],
    )
    cut = [(one, [f"{hit.head}{hit.text[:WINDOW]}" for hit in reply.hits]) for one, reply in answerable]
    baseline = Plain(lived.turns)
    found = [(one, baseline.find(one.text)[:LIMIT]) for one, _ in answerable]
    width = _width(ours.tokens, [matches for _, matches in found])
    answers = Answers(
        file=os.path.basename(file),
        opened=opened,
        answerable=len(answerable),
        rows=[
            ours,
            _row(f"{OURS}, hits cut to {WINDOW}", [(one, shown, _length(shown)) for one, shown in cut]),
            _plain_row(f"{BASELINE}, {WINDOW} characters", found, WINDOW),
            _plain_row(EQUAL, found, width),
        ],
        warned=sum(reply.warns for _, reply in answerable),
        unanswerable=len(hopeless),
        not_warned=sum(not reply.warns for reply in hopeless),
    )
    if opened:
        for question, reply in answerable:
            answered = any(question.answered_by(hit.head + hit.text) for hit in reply.hits)
            if not answered:
                answers.missed.append(f"{question.type}: {question.text}")
        kinds = Counter(question.type for question, _ in answerable)
        missed = Counter(line.partition(":")[0] for line in answers.missed)
        answers.by_type.update({kind: f"{many - missed[kind]}/{many}" for kind, many in kinds.items()})
    return answers


def _questions(file: str) -> list[Question]:
    found = json.loads(Path(file).read_text(encoding="utf-8"))
    questions = []
    for one in found["questions"] if isinstance(found, dict) else found:
        pattern = one.get("answer") if one.get("type") != "none" else None
        answer = re.compile(pattern, re.IGNORECASE | re.DOTALL) if pattern else None
        questions.append(Question(one["question"], answer, one.get("type", "")))
    return questions


def _row(case: str, shown: Sequence[tuple[Question, Sequence[str], int]]) -> Row:
    """Of (question, texts of the hits, characters of all that is shown)."""
    right = [[question.answered_by(text) for text in texts[:LIMIT]] for question, texts, _ in shown]
    tokens = statistics.fmean(length for _, _, length in shown) / TOKEN if shown else 0.0
    return Row(case, sum(map(any, right)), sum(any(one[:1]) for one in right), round(tokens))


def _plain_row(case: str, found: Sequence[tuple[Question, Sequence[Match]]], width: int) -> Row:
    shown = [(question, [match.window(width) for match in matches]) for question, matches in found]
    return _row(case, [(question, texts, _length(texts)) for question, texts in shown])


def _length(texts: Sequence[str]) -> int:
    return sum(map(len, texts))


def _width(tokens: int, found: Sequence[Sequence[Match]]) -> int:
    """How wide the baseline's windows must be to cost as many tokens."""
    low, high = 1, WIDEST
    while low < high:
        middle = (low + high) // 2
        length = sum(min(middle, len(match.turn.text)) for matches in found for match in matches)
        if length < tokens * TOKEN * len(found):
            low = middle + 1
        else:
            high = middle
    return low


@asynccontextmanager
async def _searching(lived: Lived) -> AsyncIterator[Search]:
    """A server on a copy of the store."""
    with tempfile.TemporaryDirectory(prefix="backstory-bench-") as folder:
        home = shutil.copytree(lived.home, os.path.join(folder, "home"))
        env = {**_env(home), "CLAUDE_PROJECT_DIR": lived.project, "CLAUDE_CODE_SESSION_ID": "asking"}
        how = StdioServerParameters(
            command=sys.executable,
            args=["-P", "-m", "backstory", "mcp", "memory"],
            env=env,
            cwd=lived.project,
        )
        # The default is the stderr of mcp's import: who captures a run would not see what the server says.
        async with stdio_client(how, sys.stderr) as (read, write), ClientSession(read, write) as client:
            await client.initialize()
            yield Search(client)


class Search:
    def __init__(self, client: ClientSession) -> None:
        self._client = client

    async def __call__(self, query: str, limit: int) -> Reply:
        reply = await self._client.call_tool("memory_search", {"query": query, "limit": limit})
        assert isinstance(reply, CallToolResult)
        (block,) = reply.content
        assert isinstance(block, TextContent)
        if reply.is_error:
            raise SystemExit(f"memory_search answered: {block.text}")
        return Reply(block.text, list(hits(block.text)))


def hits(reply: str) -> Iterator[Hit]:
    """Those of a reply; what is remembered is indented there, so none can pose as another."""
    starts = [found.start() for found in HIT.finditer(reply)]
    for start, end in pairwise([*starts, len(reply)]):
        block = HIT_END.sub("", reply[start:end])
        if named := HIT_ID.search(f"{block}\n"):
            yield Hit(named[1], block[: named.end()], block[named.end() :])


# --- the baseline -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Match:
    """A turn that plain FTS5 found, and where the words that were asked for are in it."""

    turn: Turn
    marked: str

    @cached_property
    def places(self) -> list[tuple[int, str]]:
        parts = re.split("[\x02\x03]", self.marked)
        places, at = [], 0
        for number, part in enumerate(parts):
            if number % 2:
                places.append((at, part.lower()))
            at += len(part)
        return places

    def window(self, width: int) -> str:
        """So much of its text around the place that has most of the words."""
        text = self.turn.text
        best, start, end = (0, 0), 0, 0
        for number, (at, _) in enumerate(self.places):
            inside = [place for place in self.places[number:] if place[0] + len(place[1]) <= at + width]
            score = (len({word for _, word in inside}), len(inside))
            if score > best:
                best, start, end = score, at, inside[-1][0] + len(inside[-1][1])
        begin = min(max(0, start - (width - (end - start)) // 2), max(0, len(text) - width))
        return text[begin : begin + width]


class Plain:
    """FTS5 as it is, over one text a turn."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._turns = turns
        self._db = sqlite3.connect(":memory:")
        self._db.execute("CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = 'porter unicode61')")
        rows = ((number, turn.text.translate({2: " ", 3: " "})) for number, turn in enumerate(turns))
        self._db.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", rows)

    def find(self, question: str, limit: int = LIMIT) -> list[Match]:
        found = self._db.execute(
            "SELECT rowid, highlight(texts, 0, char(2), char(3)) FROM texts WHERE texts MATCH ?"
            " ORDER BY bm25(texts) LIMIT ?",
            (any_word(question), limit),
        )
        return [Match(self._turns[number], marked) for number, marked in found]


# --- errors that were seen before ---------------------------------------------------------------------------

Place = tuple[str | None, int, int]  # a session, and the times between which a hit lies


async def _look_for_errors(lived: Lived) -> list[Seen]:
    sessions = [(session.turns, session.commands) for session in lived.sessions]
    baseline = Plain(lived.turns)
    rows = []
    for name, sign in (("the same line", seen_errors.signature), ("the same kind of line", seen_errors.kind)):
        cases = seen_errors.cases(sessions, sign)
        ours, plain = [], []
        async with _searching(lived) as search:
            for case in cases:
                reply = await search(case.query, LIMIT_OF_ERRORS)
                ours.append((case, _places(lived, reply.hits)))
                turns = [match.turn for match in baseline.find(case.query, len(lived.turns))]
                plain.append((case, [(turn.session_id, turn.first, turn.last) for turn in turns]))
        rows += [_seen(f"{name}: {OURS}", ours), _seen(f"{name}: {BASELINE}", plain)]
    return rows


def _places(lived: Lived, several: Sequence[Hit]) -> list[Place]:
    found = []
    with lived.database() as db:
        for hit in several:
            place = db.execute(WHEN_OF_TURN, (hit.id,)).fetchone() or db.execute(WHEN, (hit.id,)).fetchone()
            if place:
                found.append((place[0], place[1] - lived.shift, place[2] - lived.shift))
    return found


def _seen(name: str, results: Sequence[tuple[Case, Sequence[Place]]]) -> Seen:
    counts: Counter[str] = Counter()
    for case, places in results:
        earlier = [place for place in places if place[0] in case.earlier][:LIMIT]
        turns = [any(_covers(place, turn) for turn in case.solved) for place in earlier]
        sessions = [any(place[0] == turn.session_id for turn in case.solved) for place in earlier]
        counts["turn_first"] += any(turns[:1])
        counts["turn_five"] += any(turns)
        counts["session_first"] += any(sessions[:1])
        counts["session_five"] += any(sessions)
    names = ("turn_first", "turn_five", "session_first", "session_five")
    return Seen(name, len(results), *(counts[one] for one in names))


def _covers(place: Place, turn: Turn) -> bool:
    session_id, first, last = place
    return session_id == turn.session_id and first <= turn.last and last >= turn.first


# --- facts for a person to judge ----------------------------------------------------------------------------


def _facts(lived: Lived, many: int, seed: int) -> list[dict[str, Any]]:
    chosen = random.Random(seed)  # noqa: S311  the same in every run
    sessions = {session.id: session for session in lived.sessions}
    facts: list[dict[str, Any]] = []
    with lived.database() as db:
        for kind in FACTS:
            found = db.execute(OBSERVATIONS, (kind,)).fetchall()
            for row in chosen.sample(found, min(many, len(found))):
                session = sessions.get(row[5])
                turn = _origin(session, f"{row[2]} {row[3]}", row[6] - lived.shift) if session else None
                facts.append(
                    {
                        "number": len(facts) + 1,
                        "id": row[0],
                        "kind": kind,
                        "of": len(found),
                        "title": row[2],
                        "text": row[3],
                        "files": [path.removeprefix(f"{lived.project}/") for path in json.loads(row[4])],
                        "session": row[5],
                        "transcript": session.file if session else None,
                        "prompt": "\n\n".join(turn.prompts)[:SHOWN_OF_PROMPT] if turn else "",
                        "answer": turn.answer[:SHOWN_OF_ANSWER] if turn else "",
                    }
                )
    return facts


def _origin(session: Session, text: str, at: int) -> Turn | None:
    """The turn that a memory came from, by its time; one that was stored later, by its words."""
    for turn in session.turns:
        if turn.first <= at <= turn.last:
            return turn
    words = set(re.findall(r"\w{3,}", text.lower()))
    return max(
        session.turns,
        key=lambda turn: len(words & set(re.findall(r"\w{3,}", turn.text.lower()))),
        default=None,
    )


# --- reporting ----------------------------------------------------------------------------------------------


def _budgets(answers: Sequence[Answers]) -> list[Budget]:
    """Plain FTS5 over what was said is a morning's work; a memory that finds less is worth nothing."""
    budgets = []
    for one in answers:
        rows = {row.case: row for row in one.rows}
        for name, place in (("five", "in the first five"), ("first", "first")):
            plain, ours = (getattr(rows[case], name) for case in (EQUAL, OURS))
            budgets.append(Budget(f"{one.file}: {place}, beside {BASELINE}", "at least", plain, ours))
    return budgets


def _show_figures(console: Console, figures: dict[str, Any]) -> None:
    seconds = ", ".join(f"{name} {value}" for name, value in figures["seconds"].items())
    kinds = ", ".join(f"{many:,} {kind}" for kind, many in figures["memories"].items())
    for line in (
        f"{figures['sessions']} sessions, {figures['turns']} turns, {figures['events']:,} events,"
        f" {figures['payloads_put_aside']} put aside",
        f"memories: {kinds}",
        f"text a session, median: {figures['median_text']:,.0f} characters,"
        f" with traces {figures['median_text_with_tools']:,.0f}",
        f"database: {figures['database_bytes']:,} bytes",
        f"seconds: {seconds}",
    ):
        _say(console, line)


def _show_answers(console: Console, answers: Answers, *, verbose: bool) -> None:
    title = f"{answers.file}: {answers.answerable} questions with an answer"
    table = Table("case", f"in the first {LIMIT}", "first", "tokens", title=title)
    for row in answers.rows:
        table.add_row(row.case, str(row.five), str(row.first), f"{row.tokens:,}")
    table.caption = (
        f"'{NOTHING_FITS}' is said to {answers.warned} of {answers.answerable} with an answer,"
        f" not said to {answers.not_warned} of {answers.unanswerable} without"
    )
    console.print(table)
    if verbose and answers.opened:
        kinds = ", ".join(f"{kind} {share}" for kind, share in answers.by_type.items())
        for line in (f"in the first {LIMIT}: {kinds}", *(f"missed {one}" for one in answers.missed)):
            _say(console, f"  {line}")


def _show_seen(console: Console, seen: Sequence[Seen]) -> None:
    table = Table(
        "an error that was solved before", "cases", "its turn first", "in five", title="seen errors"
    )
    for name in ("its session first", "in five"):
        table.add_column(name)
    for one in seen:
        counts = (one.cases, one.turn_first, one.turn_five, one.session_first, one.session_five)
        table.add_row(one.case, *map(str, counts))
    console.print(table)


def _show_facts(console: Console, facts: Sequence[dict[str, Any]]) -> None:
    for fact in facts:
        _say(console, f"\n{fact['number']}. {fact['kind']} (of {fact['of']}) {fact['id']}: {fact['title']}")
        for name in ("text", "files", "transcript", "prompt", "answer"):
            value = fact[name] if isinstance(fact[name], str) else ", ".join(fact[name] or ())
            if value:
                _say(console, f"   {name}: {' '.join(value.split())}")


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
