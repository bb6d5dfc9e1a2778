"""How often a search finds what it should, asked through the MCP server as a model asks.

Conversations: every turn of a LoCoMo file is added with memory_add, one server for each dialogue session;
then each question is searched once in every mode, each mode on a copy of the store of its own, because what
is recalled is reinforced. Gold is the evidence that the file names for a question.

Documents: manuals out of well-known source packages are taken in with docs_ingest, and a section's heading
has to find its section: once with the headings in the text, and once with every heading replaced by a number,
so that only the body can be found.

Beside both, in the same run and on the same texts: plain FTS5 with BM25.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, TypeVar

import anyio
import report
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import CallToolResult, TextContent
from report import Budget
from rich.console import Console
from rich.table import Table

import backstory
from backstory import paths
from backstory.memory import terms
from backstory.recall.documents import chunk

LIMIT = 10
CATEGORIES = {1: "several facts", 2: "time", 3: "inference", 4: "one fact"}  # 5: there is no answer
TARGETS = {"r10": 0.80, "r1": 0.44, "mrr": 0.62}  # of the hybrid mode
MODES = ("hybrid", "keyword", "semantic")
BASELINE = "plain FTS5 BM25"
PACKAGES = ("attrs", "celery", "click", "flask", "pytest", "sphinx", "sqlalchemy", "werkzeug")
MIN_BODY = 20  # words below a heading; of less nobody could tell what it is about
KINDS = (".md", ".rst")
AT_ONCE = 2  # servers
PATIENCE = 600  # seconds for the vectors of one project
# The baseline's own: with backstory's, it would move whenever backstory does.
STOPWORDS = frozenset(
    "a about also am an and any are as at be because been being but by can could d did didn do does doesn "
    "don for from had has have he her hers him his how i if in into is isn it its just ll m me more "
    "most my no not of on or other our re s she should so some t than that the their them then there "
    "these they this to too us ve very was wasn we were what when where which who why will with would "
    "you your".split()
)
LABELS = {"r10": "R@10", "r1": "R@1", "mrr": "MRR"}
WITHOUT_VECTOR = """
SELECT count(*) FROM (SELECT row FROM memories UNION ALL SELECT row FROM document_chunks) line
JOIN projects ON projects.number = line.row >> 32 AND projects.root = ?1
WHERE NOT EXISTS (SELECT 1 FROM vectors JOIN models ON models.number = vectors.model
                  WHERE vectors.row = line.row AND models.id LIKE ?2 || '%')
"""

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Row:
    case: str
    questions: int
    r10: float
    r1: float
    mrr: float


@dataclass(frozen=True, slots=True)
class Turn:
    key: str  # D3:7
    content: str


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    category: int
    gold: frozenset[str]


@dataclass(slots=True)
class Conversation:
    folder: str  # the project
    home: str  # its store's name; one each, so that they can be told at the same time
    sessions: list[list[Turn]]
    questions: list[Question]
    turns_of: dict[str, set[str]] = field(default_factory=dict)  # memory id: the turns it stands for


@dataclass(frozen=True, slots=True)
class Piece:
    """A chunk; its number stands in for its heading where the headings are taken out."""

    number: int
    heading: str  # the path to it
    text: str


@dataclass(frozen=True, slots=True)
class Section:
    file: str
    heading: str  # the path to it
    numbers: frozenset[int]  # of its chunks

    @property
    def title(self) -> str:
        return self.heading.rpartition(" > ")[2]


Ranked = Sequence[set[str]]  # what each hit stands for, the best first


def main() -> int:
    options = _options()
    figures: dict[str, Any] = {}
    console = report.console(options)
    with Unchanged(), tempfile.TemporaryDirectory(prefix="backstory-bench-") as folder:
        if options.locomo and os.path.isfile(options.locomo):
            figures["conversations"] = anyio.run(_conversations, folder, options, console)
        else:
            console.print("conversations: skipped, no LoCoMo file (--locomo FILE names one)")
        if options.docs:
            figures["documents"] = anyio.run(_documents, folder, options, console)
    budgets = _budgets(figures.get("conversations"))
    return report.tell("recall_quality", options, figures, budgets, lambda console: _show(console, figures))


def _options() -> argparse.Namespace:
    parser = report.options(__doc__)
    parser.add_argument("--locomo", metavar="FILE", help="conversations in LoCoMo's format; without: skipped")
    parser.add_argument(
        "--docs", metavar="N", type=int, default=500, help="headings to look up; 0: none [500]"
    )
    parser.add_argument(
        "--docs-from",
        metavar="FOLDER",
        help="documents [fetched from the package index, kept in the temporary folder]",
    )
    parser.add_argument("--onnx", metavar="FOLDER", help="a sentence model to measure hybrid with as well")
    return parser.parse_args()


# --- conversations ------------------------------------------------------------------------------------------


async def _conversations(folder: str, options: argparse.Namespace, console: Console) -> dict[str, Any]:
    started = time.perf_counter()
    with open(options.locomo, encoding="utf-8") as file:
        found = json.load(file)
    told = [_conversation(os.path.join(folder, f"project-{at}"), one) for at, one in enumerate(found)]
    conversations = [conversation for conversation, _ in told]
    counts = sum((count for _, count in told), Counter[str]())
    turns = sum(len(session) for one in conversations for session in one.sessions)
    await _each(conversations, _tell)
    stored = sum(len(one.turns_of) for one in conversations)
    console.print(
        f"conversations: {len(conversations)} with {turns:,} turns, {stored:,} memories"
        f" ({turns - stored} told again); {counts['counted']} of {counts['asked']} questions count"
        f" ({counts['without']} name no evidence, {counts['mended']} ids mended, {counts['lost']} lost),"
        f" stored in {time.perf_counter() - started:.0f} s",
        highlight=False,
    )
    rows: list[Row] = []
    per_category: list[Row] = []
    notices: Counter[str] = Counter()
    cases: list[tuple[str, str, dict[str, str]]] = [(mode, mode, {}) for mode in MODES]
    if options.onnx:
        cases.append(("hybrid, ONNX", "hybrid", _onnx(options.onnx)))
    for case, mode, extra in cases:
        results: list[tuple[Question, Ranked]] = []
        await _each(conversations, partial(_ask, mode, extra, results, notices))
        rows.append(_row(case, [(question.gold, hits) for question, hits in results]))
        if case == "hybrid":
            per_category = [
                _row(name, [(asked.gold, hits) for asked, hits in results if asked.category == number])
                for number, name in CATEGORIES.items()
            ]
    rows.append(_row(BASELINE, [pair for one in conversations for pair in _plain_answers(one)]))
    return {
        "turns": turns,
        "memories": stored,
        "questions": dict(counts),
        "notices": dict(notices),
        "rows": [asdict(row) for row in rows],
        "categories": [asdict(row) for row in per_category if row.questions],
        "seconds": round(time.perf_counter() - started),
    }


def _conversation(folder: str, found: dict[str, Any]) -> tuple[Conversation, Counter[str]]:
    os.makedirs(folder)
    spoken = found["conversation"]
    names = sorted((key for key in spoken if re.fullmatch(r"session_\d+", key)), key=lambda key: int(key[8:]))
    sessions = [
        [Turn(turn["dia_id"], _content(spoken.get(f"{name}_date_time", ""), turn)) for turn in spoken[name]]
        for name in names
    ]
    known = {turn.key for session in sessions for turn in session}
    counts: Counter[str] = Counter()
    questions = []
    for asked in found["qa"]:
        if asked["category"] not in CATEGORIES:
            continue
        counts["asked"] += 1
        gold: set[str] = set()
        for given in asked.get("evidence") or []:
            keys = {key for key in evidence(given) if key in known}
            counts["lost"] += not keys
            counts["mended"] += bool(keys) and keys != {given}
            gold |= keys
        if gold:
            counts["counted"] += 1
            questions.append(Question(asked["question"], asked["category"], frozenset(gold)))
        else:
            counts["without"] += 1
    return Conversation(folder, f"{folder}-home", sessions, questions), counts


def evidence(given: str) -> list[str]:
    """The ids in what a file calls one: 'D8:6; D9:17' is two, 'D:11:26' is D11:26, 'D30:05' is D30:5."""
    return [f"D{int(session)}:{int(turn)}" for session, turn in re.findall(r"D:?(\d+):(\d+)", given)]


def _content(date: str, turn: dict[str, str]) -> str:
    shared = f" [shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""
    return f"[{date}] {turn['speaker']}: {turn['text']}{shared}"


async def _tell(conversation: Conversation) -> None:
    for number, session in enumerate(conversation.sessions, 1):
        name = f"{os.path.basename(conversation.folder)}-session-{number}"
        async with _server(conversation.home, conversation.folder, CLAUDE_CODE_SESSION_ID=name) as client:
            for turn in session:
                reply = await _call(client, "memory_add", content=turn.content)
                kept = re.match(r"Memory (?:created|reinforced): (\S+)", reply)
                if not kept:
                    raise SystemExit(f"memory_add answered {reply[:200]!r}")
                conversation.turns_of.setdefault(kept[1], set()).add(turn.key)


async def _ask(
    mode: str,
    variables: dict[str, str],
    results: list[tuple[Question, Ranked]],
    notices: Counter[str],
    conversation: Conversation,
) -> None:
    home = f"{conversation.home}-asked"
    shutil.copytree(conversation.home, home)
    async with _server(home, conversation.folder, CLAUDE_CODE_SESSION_ID="asking", **variables) as client:
        await _wait_for_vectors(home, conversation.folder, variables)
        for question in conversation.questions:
            reply = await _call(client, "memory_search", query=question.text, limit=LIMIT, mode=mode)
            if noticed := re.search(r"^\((.*)\)$", reply.splitlines()[-1]):
                notices[f"{mode}: {noticed[1]}"] += 1
            ids = re.findall(r"^ID: (\S+)$", reply, re.MULTILINE)
            results.append((question, [conversation.turns_of[found] for found in ids]))
    shutil.rmtree(home)


def _plain_answers(conversation: Conversation) -> list[tuple[frozenset[str], Ranked]]:
    turns = [turn for session in conversation.sessions for turn in session]
    find = _plain([turn.content for turn in turns])
    return [
        (question.gold, [{turns[at].key} for at in find(question.text)])
        for question in conversation.questions
    ]


# --- documents ----------------------------------------------------------------------------------------------


async def _documents(folder: str, options: argparse.Namespace, console: Console) -> dict[str, Any] | None:
    started = time.perf_counter()
    texts = options.docs_from or _manuals(console)
    if texts is None:
        return None
    manuals, bodies = os.path.join(folder, "manuals"), os.path.join(folder, "bodies")
    chunks, left_out = _cut(texts, manuals, bodies)
    flat = [each for several in chunks.values() for each in several]
    sections = _sections(chunks)
    asked = sections
    if len(asked) > options.docs:
        asked = random.Random(0).sample(sections, options.docs)  # noqa: S311  the same in every run
    home = os.path.join(folder, "documents")
    for project in (manuals, bodies):
        await _take_in(home, project)
    console.print(
        f"documents: {len(chunks)} ({left_out} left out), {len(flat):,} chunks; {len(asked):,} of"
        f" {len(sections):,} headings; taken in within {time.perf_counter() - started:.0f} s",
        highlight=False,
    )
    cases: list[tuple[str, dict[str, str]]] = [("hybrid", {})]
    if options.onnx:
        cases.append(("hybrid, ONNX", _onnx(options.onnx)))
    rows: list[Row] = []
    for project in (manuals, bodies):
        name = os.path.basename(project)
        for case, extra in cases:
            rows.append(_row(f"{name}: {case}", await _look_up(home, project, asked, extra)))
        find = _plain([f"{one.heading}\n{one.text}" if project == manuals else one.text for one in flat])
        answers = [
            _section_found(section, [flat[at].number in section.numbers for at in find(section.title)])
            for section in asked
        ]
        rows.append(_row(f"{name}: {BASELINE}", answers))
    return {
        "documents": len(chunks),
        "left_out": left_out,
        "chunks": len(flat),
        "headings": len(asked),
        "rows": [asdict(row) for row in rows],
        "seconds": round(time.perf_counter() - started),
    }


def _manuals(console: Console) -> str | None:
    """The manuals of some packages, fetched once: pip finds and fetches, as it is set up to."""
    kept = os.path.join(tempfile.gettempdir(), f"backstory-bench-manuals-{os.getuid()}")
    if os.path.isdir(kept):
        return kept
    with tempfile.TemporaryDirectory(prefix="backstory-bench-") as folder:
        fetched = subprocess.run(
            [sys.executable, "-c", FETCH, folder, *PACKAGES], capture_output=True, text=True, check=False
        )
        if fetched.returncode:
            reason = (fetched.stderr.strip().splitlines() or ["pip said nothing"])[-1]
            console.print(f"documents: skipped, the packages could not be fetched ({reason})", markup=False)
            return None
        half = tempfile.mkdtemp(prefix="backstory-bench-", dir=tempfile.gettempdir())
        for package in sorted(os.listdir(folder)):
            with tarfile.open(os.path.join(folder, package)) as archive:
                texts = [each for each in archive if each.isfile() and each.name.endswith(KINDS)]
                archive.extractall(half, members=texts, filter="data")
        os.rename(half, kept)
    return kept


# `pip download` would build each package to learn its name and version, which we know. Its finder would not.
FETCH = """
import os, sys
from pip._internal.commands import create_command
folder, *names = sys.argv[1:]
command = create_command("download")
options, _ = command.parse_args(["--no-binary", ":all:", "--quiet", *names])
with command.main_context():
    session = command.get_default_session(options)
    finder = command._build_package_finder(options, session)
    for name in names:
        link = finder.find_best_candidate(name).best_candidate.link
        answer = session.get(link.url_without_fragment)
        answer.raise_for_status()
        with open(os.path.join(folder, link.filename), "wb") as file:
            file.write(answer.content)
"""


def _cut(texts: str, manuals: str, bodies: str) -> tuple[dict[str, list[Piece]], int]:
    """Lay the documents out twice, as they are and without their headings; the chunks of each, and how many
    documents do not come back chunk for chunk without their headings and are left out."""
    kept: dict[str, list[Piece]] = {}
    left_out = number = 0
    for path in sorted(_files(texts)):
        name = os.path.relpath(path, texts)
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        kind = "rst" if name.endswith(".rst") else "md"
        cut = chunk.chunks(text, kind)
        pieces = [Piece(number + at, _line(one.heading), one.text) for at, one in enumerate(cut, 1)]
        bare = "\n\n".join(_numbered(piece, kind) for piece in pieces)
        again = [(one.heading, one.text.strip()) for one in chunk.chunks(bare, kind)]
        if not pieces or again != [(f"h{piece.number}", piece.text.strip()) for piece in pieces]:
            left_out += 1
            continue
        number += len(pieces)
        kept[name] = pieces
        for folder, said in ((manuals, text), (bodies, bare)):
            place = os.path.join(folder, name)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "w", encoding="utf-8") as file:
                file.write(said)
    return kept, left_out


def _numbered(piece: Piece, kind: str) -> str:
    heading = f"h{piece.number}"
    return (
        f"{heading}\n{'=' * len(heading)}\n\n{piece.text}"
        if kind == "rst"
        else f"# {heading}\n\n{piece.text}"
    )


def _sections(chunks: dict[str, list[Piece]]) -> list[Section]:
    """Those whose heading has two words or more, is the only one of its kind, and has a text below it."""
    numbers: dict[tuple[str, str], list[int]] = {}
    words: Counter[tuple[str, str]] = Counter()
    for file, pieces in chunks.items():
        for piece in pieces:
            numbers.setdefault((file, piece.heading), []).append(piece.number)
            words[file, piece.heading] += terms.count_words(piece.text)
    sections = [Section(*place, frozenset(several)) for place, several in numbers.items()]
    often = Counter(section.title.lower() for section in sections)
    return [
        section
        for section in sections
        if len(re.findall(r"[^\W\d_]{2,}", section.title)) >= 2
        and often[section.title.lower()] == 1
        and words[section.file, section.heading] >= MIN_BODY
    ]


async def _take_in(home: str, project: str) -> None:
    async with _server(home, project) as client:
        for path in sorted(_files(project)):
            await _call(client, "docs_ingest", path=path)


async def _look_up(
    home: str, project: str, asked: list[Section], extra: dict[str, str]
) -> list[tuple[frozenset[str], Ranked]]:
    answers = []
    async with _server(home, project, **extra) as client:
        await _wait_for_vectors(home, project, extra)
        for section in asked:
            reply = await _call(client, "docs_search", query=section.title, limit=LIMIT)
            hits = re.findall(r"^Source: (.*)\n(?:Section: (.*)\n)?Match: ", reply, re.MULTILINE)
            own = os.path.join(os.path.realpath(project), section.file)
            wanted = {section.heading, *(f"h{number}" for number in section.numbers)}
            found = [source == own and heading in wanted for source, heading in hits]
            answers.append(_section_found(section, found))
    return answers


def _section_found(section: Section, hits: Iterable[bool]) -> tuple[frozenset[str], Ranked]:
    """A section is found or not, however many chunks it has."""
    return frozenset({section.heading}), [{section.heading} if hit else set() for hit in hits]


def _files(folder: str) -> Iterator[str]:
    for place, _, names in os.walk(folder):
        yield from (os.path.join(place, name) for name in names if name.endswith(KINDS))


def _line(text: str) -> str:
    return " ".join(text.split())


def _onnx(folder: str) -> dict[str, str]:
    return {"BACKSTORY_EMBEDDER": f"onnx:{os.path.abspath(folder)}"}


# --- both ---------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _server(home: str, project: str, **variables: str) -> AsyncIterator[ClientSession]:
    env = {"HOME": home, "BACKSTORY_HOME": home, "CLAUDE_PROJECT_DIR": project, **variables}
    how = StdioServerParameters(
        command=sys.executable, args=["-P", "-m", "backstory", "mcp", "memory"], env=env, cwd=project
    )
    # The default is the stderr of mcp's import: whoever captures a run would not see what the server says.
    async with stdio_client(how, sys.stderr) as (read, write), ClientSession(read, write) as client:
        await client.initialize()
        await client.list_tools()  # as clients do; after that a server warms up
        yield client


async def _call(client: ClientSession, tool: str, **arguments: object) -> str:
    reply = await client.call_tool(tool, arguments)
    assert isinstance(reply, CallToolResult)
    (block,) = reply.content
    assert isinstance(block, TextContent)
    if reply.is_error:
        raise SystemExit(f"{tool} answered: {block.text}")
    return block.text


async def _wait_for_vectors(home: str, project: str, variables: dict[str, str]) -> None:
    """The server that runs makes the vectors of its project in the background, soon after it started."""
    deadline = time.monotonic() + PATIENCE
    model = "onnx:" if variables else "static:"
    with closing(sqlite3.connect(f"file:{paths.database(home)}?mode=ro", uri=True)) as db:
        while left := db.execute(WITHOUT_VECTOR, (os.path.realpath(project), model)).fetchone()[0]:
            if time.monotonic() > deadline:
                raise SystemExit(f"{left} vectors were not made within {PATIENCE} s")
            await anyio.sleep(0.1)


def any_word(question: str) -> str:
    """What the baseline asks FTS5 for."""
    asked = re.findall(r"\w+", question.lower())
    telling = [word for word in asked if word not in STOPWORDS] or asked
    return " OR ".join(f'"{word}"' for word in dict.fromkeys(telling))


class Unchanged:
    """`with Unchanged():` refuses the figures of a run during which backstory itself was changed: servers
    that start later would be another version than this process."""

    def __enter__(self) -> None:
        self._before = self._digest()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None and self._digest() != self._before:
            raise SystemExit("backstory was changed while it was measured: the figures mean nothing")

    def _digest(self) -> str:
        digest = hashlib.sha256()
        for folder, inner, names in os.walk(os.path.dirname(backstory.__file__)):
            inner.sort()
            for name in sorted(name for name in names if name.endswith((".py", ".sql"))):
                with open(os.path.join(folder, name), "rb") as file:
                    digest.update(name.encode() + file.read())
        return digest.hexdigest()


def _plain(texts: Sequence[str]) -> Callable[[str], list[int]]:
    """Which of the texts plain FTS5 finds for a question, the best first."""
    db = sqlite3.connect(":memory:")
    db.execute(
        "CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = 'porter unicode61 remove_diacritics 2')"
    )
    db.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", enumerate(texts))

    def find(question: str) -> list[int]:
        match = any_word(question)
        found = db.execute(
            "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?", (match, LIMIT)
        )
        return [at for (at,) in found]

    return find


async def _each(items: Iterable[Item], work: Callable[[Item], Awaitable[None]]) -> None:
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def one(item: Item) -> None:
        async with limiter:
            await work(item)

    async with anyio.create_task_group() as group:
        for item in items:
            group.start_soon(one, item)


def _row(case: str, answers: Sequence[tuple[frozenset[str], Ranked]]) -> Row:
    def share(of: int) -> float:
        return _mean([len(gold & set().union(*hits[:of])) / len(gold) for gold, hits in answers])

    firsts = [
        next((place for place, hit in enumerate(hits, 1) if gold & hit), None) for gold, hits in answers
    ]
    mrr = _mean([1 / place if place else 0.0 for place in firsts])
    return Row(case, len(answers), round(share(LIMIT), 4), round(share(1), 4), round(mrr, 4))


def _mean(values: list[float]) -> float:
    return statistics.fmean(values) if values else 0.0


def _budgets(found: dict[str, Any] | None) -> list[Budget]:
    if not found:
        return []
    hybrid = found["rows"][0]
    return [
        Budget(f"hybrid {LABELS[name]}", "at least", limit, hybrid[name]) for name, limit in TARGETS.items()
    ]


def _show(console: Console, figures: dict[str, Any]) -> None:
    for part, title in (("conversations", "conversations"), ("documents", "a heading finds its section")):
        if found := figures.get(part):
            console.print(_table(title, found["rows"]))
    if found := figures.get("conversations"):
        console.print(_table("hybrid by category", found["categories"]))
        for notice, times in found["notices"].items():
            console.print(f"{times} times {notice}", markup=False)


def _table(title: str, rows: list[dict[str, Any]]) -> Table:
    table = Table("case", "asked", "R@10 %", "R@1 %", "MRR", title=title)
    for row in rows:
        table.add_row(
            row["case"],
            f"{row['questions']:,}",
            f"{row['r10'] * 100:.1f}",
            f"{row['r1'] * 100:.1f}",
            f"{row['mrr']:.3f}",
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
