"""The values that recall hands to the surfaces, and synthesis to the store.

Times are milliseconds since 1970, UTC, everywhere.

Hooks never load this file: dataclasses cost more than a hook may take. What capture hands to intake is the
plain class in clients/canonical.py.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

MODES = ("hybrid", "semantic", "keyword")


@dataclass(frozen=True, slots=True)
class Project:
    id: str
    number: int
    name: str
    root: str


@dataclass(frozen=True, slots=True)
class ProjectOverview:
    """What there is of a project."""

    id: str
    name: str
    root: str
    roots: str  # its root commits
    remote: str
    paused_at: int | None
    sessions: int
    turns: int
    memories: int  # besides turns and traces: store/counts.py
    traces: int
    bytes: int  # of text
    documents: int
    trees: int
    last_used: int
    paths: tuple[str, ...] = ()  # where it lies or lay, the latest first


@dataclass(frozen=True, slots=True)
class Session:
    id: str
    project_id: str
    status: str
    started_at: int
    last_event_at: int
    ended_at: int | None
    user_prompt: str | None
    branch: str | None
    head: str | None
    summary: str | None
    turns: int = 0  # how many, as everything is counted: store/counts.py
    memories: int = 0
    synthesizer: str | None = None  # where the session has one of its own
    attended: bool = True  # else nobody is there: a program asks


@dataclass(frozen=True, slots=True)
class Memory:
    id: str
    row: int  # the store's own number for it
    project_id: str
    session_id: str | None
    kind: str
    sector: str
    tier: str
    title: str | None
    content: str
    tags: tuple[str, ...]
    files: tuple[str, ...]
    hashes: tuple[str | None, ...]  # of each file, as it was then
    concepts: tuple[str, ...]
    author: str | None
    importance: float
    salience: float  # as it is now: decayed since it was last accessed
    access_count: int
    created_at: int
    valid_until: int | None
    deleted_at: int | None
    source: str = "assistant"  # where its text came from: one of memory.kinds.SOURCES
    times: int = 1  # so often the same came in its session


@dataclass(frozen=True, slots=True)
class Filters:
    """Which memories a search may find."""

    sector: str | None = None
    kind: str | None = None
    tier: str | None = None
    session_id: str | None = None
    since: int | None = None
    until: int | None = None
    tags: tuple[str, ...] = ()  # all of them
    files: tuple[str, ...] = ()  # any of them


@dataclass(frozen=True, slots=True)
class Part:
    """Why a hit scored: so much of its score came from this."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What is shown of a turn: what was asked, what of it fits, the commits."""

    asked: str
    pieces: tuple[str, ...]
    commits: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(filter(None, (self.asked, *self.pieces, *self.commits)))


@dataclass(frozen=True, slots=True)
class Hit:
    memory: Memory
    score: float
    parts: tuple[Part, ...]  # add up to the score
    session: Session | None
    superseded_by: str | None = None
    related: int = 0  # how many memories it has to do with
    stale: tuple[str, ...] = ()  # what happened to its files since: 'src/auth.py changed since'
    asked: str = ""  # of a turn that fits a query, in short
    excerpt: Excerpt | None = None  # of a turn
    project: Project | None = None  # where it is another than the one that was asked from


@dataclass(frozen=True, slots=True)
class Answer:
    hits: tuple[Hit, ...]
    notice: str | None = None  # what the reader should know about how it came about
    waiting: int = 0  # lines that have no vector yet
    by_id: bool = False  # the query was the id of the one hit
    relations: tuple[tuple[str, str, str], ...] = ()  # of that one: source, relation, target
    fits: bool = True  # else nothing covers enough of the query, and these are the nearest


@dataclass(frozen=True, slots=True)
class Document:
    id: str
    project_id: str
    title: str | None
    source_path: str | None
    source_url: str | None
    kind: str
    checksum: str
    chunks: int
    created_at: int
    updated_at: int


@dataclass(frozen=True, slots=True)
class Chunk:
    document: Document
    heading: str
    text: str


@dataclass(frozen=True, slots=True)
class DocumentHit:
    chunk: Chunk
    score: float
    parts: tuple[Part, ...]
    stale: str | None = None  # the file it came from is gone


@dataclass(frozen=True, slots=True)
class DocumentAnswer:
    hits: tuple[DocumentHit, ...]
    notice: str | None = None
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a docmem tree."""

    id: str
    row: int  # the store's own number for it
    parent_id: str | None  # None: a root
    root_id: str
    text: str
    order_value: float
    token_count: int
    context_type: str
    context_name: str
    context_value: str
    readonly: bool
    hash: str
    size: int  # nodes of its subtree, itself included
    created_at: int
    updated_at: int

    @property
    def context(self) -> str:
        return f"{self.context_type}:{self.context_name}:{self.context_value}"

    @property
    def metadata(self) -> str:
        """The line that stands for a node wherever one is shown."""
        return f"{self.id} {self.context} {iso(self.updated_at)}"


@dataclass(frozen=True, slots=True)
class NodeHit:
    node: Node
    score: float
    path: tuple[Node, ...]  # its ancestors, root first
    folded: tuple[Node, ...] = ()  # what it stands for: children that match as well


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    hits: tuple[NodeHit, ...]
    notice: str | None = None
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class Item:
    """One thing in the queue: a tool use, or a mark. What the keys of a tool's input and output mean is said
    in clients/canonical.py."""

    id: int
    session_id: str
    tool: str  # its name, or PROMPT, COMPACT, CHECKPOINT, FINALIZE
    input: dict[str, Any]
    output: Any
    at: int
    memory_id: str | None  # the trace or prompt that keeps it
    action: str | None = None  # of a tool use: read, edit, write, shell, ...

    @property
    def is_edit(self) -> bool:
        return self.action in ("edit", "write")

    @property
    def path(self) -> str:
        """The file that was read, edited or written."""
        path = self.input.get("path") if self.is_edit or self.action == "read" else None
        return path if isinstance(path, str) else ""

    @property
    def failed(self) -> bool:
        """Of a tool use that failed the error is all there is; a result may have a field of that name."""
        return isinstance(self.output, dict) and set(self.output) == {"error"}


@dataclass(frozen=True, slots=True)
class Observation:
    kind: str  # one of OBSERVATIONS
    title: str
    text: str  # a sentence or two
    files: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    cites: tuple[int, ...] = ()  # the items it rests on
    supersedes: tuple[str, ...] = ()  # memories that it replaces
    is_global: bool = False  # about the user, not about the project
    source: str = "model"  # where its words come from: one of memory.kinds.SOURCES
    turn: str | None = None  # the turn it rests on; None: that of the items


@dataclass(frozen=True, slots=True)
class Summary:
    """What a session came to."""

    request: str
    investigated: str
    learned: str
    completed: str
    next_steps: str
    files_read: tuple[str, ...]
    files_edited: tuple[str, ...]
    notes: str

    def __str__(self) -> str:
        fields = (
            ("Request", self.request),
            ("Investigated", self.investigated),
            ("Learned", self.learned),
            ("Completed", self.completed),
            ("Next Steps", self.next_steps),
            ("Files Read", ", ".join(self.files_read)),
            ("Files Edited", ", ".join(self.files_edited)),
            ("Notes", self.notes),
        )
        return "\n".join(f"**{name}:** {text}" for name, text in fields if text)


@dataclass(frozen=True, slots=True)
class Spent:
    """What a call of a model cost."""

    model: str
    requests: int
    input_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    output_tokens: int
    usd: float


@dataclass(frozen=True, slots=True)
class Batch:
    """What a synthesizer is asked to understand: always of one session."""

    session: Session
    project: Project
    items: tuple[Item, ...]  # new, oldest first
    earlier: tuple[Item, ...]  # what was looked at before
    summary: Summary | None  # the session so far
    known: tuple[Memory, ...]  # observations of the project that may be replaced
    wants_summary: bool
    turns: tuple[Any, ...] = ()  # of the session, oldest first (memory/turn.py, which the root does not know)
    stored: frozenset[tuple[str, str]] = frozenset()  # (kind, title) of what came of the session so far


@dataclass(frozen=True, slots=True)
class Findings:
    observations: tuple[Observation, ...] = ()
    summary: Summary | None = None
    spent: Spent | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """What one would type at the root of a project."""

    role: str  # install, build, run, test, one, check (several at once), lint, format, generate, migrate
    line: str
    source: str  # the file that says so
    folder: str = ""  # of another part of the project, which the commands of the root do not cover
    after: str = ""  # a command that comes before it: CI always runs it first, or it switches the tests on
    job: str = ""  # of CI, which does more before it than is told here
    packages: tuple[str, ...] = ()  # of the system, which that job installs first
    variables: tuple[str, ...] = ()  # which CI sets for it, and files of the project read


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that a file of a project says, and that helps to work on it."""

    text: str
    source: str  # the file that says so
    kind: str = ""  # what it is about, where several kinds go together


@dataclass(frozen=True, slots=True)
class Survey:
    """What a project's files say about it."""

    name: str
    description: str  # from the README, else from a manifest; may be empty
    languages: tuple[tuple[str, float], ...]  # with its share of the source, the largest first
    frameworks: tuple[str, ...]
    managers: tuple[str, ...]  # of packages
    commands: tuple[Command, ...]
    workspaces: tuple[str, ...]  # members of a monorepo, from the root
    subtrees: tuple[str, ...]  # folders worth a CLAUDE.md of their own
    subtree_reasons: dict[str, str] = field(default_factory=dict)  # why each of them is
    prerequisites: tuple[Fact, ...] = ()  # versions, services, settings, submodules
    hands_off: tuple[Fact, ...] = ()  # what is generated, or other people's
    settings: tuple[Fact, ...] = ()  # of formatters, compilers and tools that bind whoever writes code
    rules: tuple[Fact, ...] = ()  # sentences of documents for contributors


@dataclass(frozen=True, slots=True)
class Pattern:
    """Something that a project's code does the same way nearly everywhere."""

    type: str  # naming, import, style, test, architecture
    subject: str  # `python functions`; of an architecture empty
    value: str  # `snake_case`
    confidence: float  # 0 to 1
    cases: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Insights:
    """What git knows about a project that its files do not say."""

    hot: tuple[tuple[str, int], ...]  # files, and in how many of the commits looked at
    together: tuple[tuple[str, str, int], ...]  # pairs that change together, and how often
    decisions: tuple[tuple[str, str, str], ...]  # date, short hash, what was decided
    habits: tuple[str, ...]  # how commit messages are written, a sentence each


@dataclass(frozen=True, slots=True)
class SectionRecord:
    """What the store knows of one section of a CLAUDE.md."""

    name: str
    written: str  # the text that we wrote last
    author: str  # program or model
    written_at: int
    offered: str | None = None  # a new text that was not written, because a person had edited the section
    offered_by: str | None = None
    offered_at: int | None = None


@dataclass(frozen=True, slots=True)
class TellingRecord:
    """A text that was told to a model."""

    id: int
    session_id: str
    project_id: str
    at: int
    moment: str  # as store/tellings.py names them
    about: str  # what it came with
    reason: dict[str, Any]  # the figures that decided it
    tokens: int
    text: str  # "" where a memory in it was forgotten or erased
    memory_ids: tuple[str, ...]


def now_ms() -> int:
    return int(time.time() * 1000)


def iso(at: int) -> str:
    """A time as docmem writes it: 2026-01-31T12:00:00Z."""
    return _second(at // 1000)


@lru_cache(2_000)  # nodes are shown by the thousand, and many were made in the same second
def _second(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
