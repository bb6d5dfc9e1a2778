"""A turn: from what the user asked to the assistant's last words, with what was done in between. Pure.

It is begun by a prompt and grows with every event until the next one; what it holds are facts of the events,
and one reading of the answer's end (memory/closing.py). It is found by its pieces, of which each is a few
lines long: what is shown of a turn are those that fit the query.

Plain classes: a hook does not load dataclasses.
"""

from __future__ import annotations

import json
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OPEN, COMPLETE, INTERRUPTED = "open", "complete", "interrupted"
TYPED, PASTED, MACHINE = "typed", "pasted", "machine"  # where a prompt came from; in doubt it was pasted

# The parts of a turn, as its pieces name them. Below ASKED: lines that are no pieces.
MEMORY, TRACE, ASKED, PROMPT, ANSWER, CHOICE, PLAN, COMPACTION, FACTS = range(9)

TITLE = 300  # characters of what was asked that stand for it
PIECE = 200  # characters
LONGEST = 100_000  # of an answer
LONG_TEXT = 30_000  # of a prompt, a plan or a compaction that are searched
MOST = 200  # files of a turn
SHOWN_FILES = 30
MOST_ERRORS = 12
PLAN_PROMPT = "Implement the following plan"
OWN_COMMAND = "/backstory:"  # how a prompt begins that runs a command of backstory's
SPACES = " \t\r\n"

FIELDS = (
    "prompts answer closing choices plans compactions edited read searched commits failed passed agents"
    " uncommitted failing branch head"
).split()
_SAYING = "prompts answer choices plans compactions edited commits agents".split()


class Turn:
    """What is known of one turn. Every text in it is clean."""

    __slots__ = ("ended_at", "id", "row", "session_id", "started_at", "state", *FIELDS)

    def __init__(self, session_id: str, at: int) -> None:
        self.row: int | None = None  # the store's own number for it; None: not stored yet
        self.id = ""
        self.session_id = session_id
        self.started_at = self.ended_at = at
        self.state = OPEN
        self.prompts: list[list[str]] = []  # [text, where it came from]
        self.answer = ""
        self.closing: list[str] = []  # what the answer asks or names as next, as memory/closing.py reads it
        self.choices: list[list[str]] = []  # [question, what the user answered]
        self.plans: list[str] = []  # that the user approved
        self.compactions: list[str] = []
        self.edited: list[str] = []  # from the project's root
        self.read: list[str] = []
        self.searched: list[str] = []
        self.commits: list[list[Any]] = []  # [sha, subject, files edited since the commit before]
        self.failed: list[list[str]] = []  # [command, error]: checks that did not pass in this turn
        self.passed: list[list[str]] = []  # [command, error]: that failed before, here or earlier
        self.agents: list[list[str]] = []  # [task, what came of it]
        # As it is at the end of the turn, for the next one:
        self.uncommitted: list[str] = []  # files edited since the last commit
        self.failing: dict[str, list[str]] = {}  # check -> [command, error]
        self.branch: str | None = None
        self.head: str | None = None

    @property
    def asked(self) -> str:
        """What was asked, on one line."""
        return " / ".join(said for text, _ in self.prompts if (said := " ".join(text.split())))

    @property
    def says_something(self) -> bool:
        """A look around that nobody asked for is no turn yet."""
        return any(getattr(self, name) for name in _SAYING)

    def record(self) -> str:
        said = {name: getattr(self, name) for name in FIELDS}
        return json.dumps({name: value for name, value in said.items() if value}, ensure_ascii=False)

    def read_record(self, record: str) -> None:
        for name, value in json.loads(record).items():
            if name in FIELDS:
                setattr(self, name, value)


def following(turn: Turn | None, session_id: str, at: int) -> Turn:
    """The turn after this one, with what that left open."""
    new = Turn(session_id, at)
    if turn is not None:
        new.uncommitted, new.failing = list(turn.uncommitted), dict(turn.failing)
    return new


def is_own_command(prompt: str) -> bool:
    """Looking into memory, or pausing it, is nothing to remember."""
    return prompt.lstrip(SPACES).startswith(OWN_COMMAND)


def came_from(prompt: str) -> str:
    """Whether a person typed a prompt. A text with paragraphs, lists, code or quotations was pasted, or
    nobody can tell."""
    text = prompt.strip()
    if text.startswith(("<", "/", PLAN_PROMPT)):
        return MACHINE
    return PASTED if len(text) > TITLE or _PASTED.search(text) else TYPED


_PASTED = re.compile(
    r"\n\s*\n|\n.*\n.*\n|```|^\s*(?:[-*+•>|#$%]|\d+[.)]) |^\s{4,}\S|^[\w.@~/-]+[$%#>] |<[/\w!]|[{}\t]"
    r"|[\"“”«»].{12,}[\"“”«»]",
    re.M,
)


# --- as text ------------------------------------------------------------------------------------------------


def told(turn: Turn) -> str:
    """The whole of it, for who asks for it by its id. The lines of a text stand below its first one, so that
    no text can pose as another part."""
    parts = [f"asked: {text}" for text, _ in turn.prompts]
    parts += [f"answered: {turn.answer}"] if turn.answer.strip() else []
    parts += ["interrupted"] if turn.state == INTERRUPTED else []
    parts += map(_choice, turn.choices)
    parts += [f"approved plan: {plan}" for plan in turn.plans]
    parts += facts(turn)
    parts += [f"read: {', '.join(turn.read[:SHOWN_FILES])}"] if turn.read else []
    parts += [f"agent: {task}: {came}" for task, came in turn.agents]
    parts += [f"the conversation was compacted to: {text}" for text in turn.compactions]
    return "\n\n".join("\n  ".join(part.strip().splitlines()) for part in parts)


def facts(turn: Turn) -> list[str]:
    """What was done, a line for each thing."""
    lines = [commit_line(commit) for commit in turn.commits]
    lines += [f"failed, then passed: {command}: {error}" for command, error in turn.passed]
    lines += [f"failed: {command}: {error}" for command, error in turn.failed]
    lines = [" ".join(line.split()) for line in lines]  # what a name or a message says stands on one line
    if turn.edited:
        more = f" and {len(turn.edited) - SHOWN_FILES} more" if len(turn.edited) > SHOWN_FILES else ""
        lines.append(" ".join(f"edited: {', '.join(turn.edited[:SHOWN_FILES])}{more}".split()))
    return lines


def commit_line(commit: list[Any]) -> str:
    sha, subject, files = commit
    names = [file.rsplit("/", 1)[-1] for file in files[:6]]
    named = f"commit {sha}: {subject}" if sha else f"commit: {subject}"
    return " ".join((named + (f" ({', '.join(names)})" if names else "")).split())


def pieces(turn: Turn, root: str = "") -> list[tuple[int, str]]:
    """(part, text): what the turn is found by, in the order in which it is told; paths from the project's
    root, because the way to it says nothing about what was done."""
    found: list[tuple[int, str]] = []

    def short(text: str) -> str:
        return text.replace(f"{root}/", "") if root else text

    def add(part: int, text: str) -> None:
        found.extend((part, piece) for piece in cut_up(short(text)))

    if turn.asked:
        found.append((ASKED, short(turn.asked)[:TITLE]))
    for text, _ in turn.prompts if len(turn.asked) > TITLE else ():
        add(PLAN if text.startswith(PLAN_PROMPT) else PROMPT, text[:LONG_TEXT])
    found += [(CHOICE, short(_choice(choice))) for choice in turn.choices]
    for plan in turn.plans:
        add(PLAN, plan[:LONG_TEXT])
    for text in turn.compactions:
        add(COMPACTION, text[:LONG_TEXT])
    add(ANSWER, turn.answer)
    add(FACTS, "\n\n".join(facts(turn)))
    return found


def _choice(choice: list[str]) -> str:
    question, answer = (" ".join(part.split()) for part in choice)
    return f"the user was asked: {question}\nanswered: {answer}"


def cut_up(text: str, most: int = PIECE) -> list[str]:
    """Pieces of a text: at headings and paragraphs, else at lines, else at spaces."""
    found: list[str] = []
    piece = ""
    for paragraph in _PARAGRAPH.split(text):
        for part in _within(paragraph.strip("\n"), most):
            begins = part.startswith("#") and len(piece) > most // 3
            if piece and (begins or len(piece) + len(part) + 2 > most):
                found.append(piece)
                piece = ""
            piece = f"{piece}\n\n{part}" if piece else part
    return [*found, piece] if piece.strip() else found


_PARAGRAPH = re.compile(r"\n(?=#{1,6} )|\n\s*\n")


def _within(text: str, most: int) -> list[str]:
    parts = []
    while len(text) > most * 3 // 2:
        places = (text.rfind(sign, 0, most) for sign in "\n ")
        at = next((place for place in places if place > most // 3), most)
        parts.append(text[:at])
        text = text[at:].lstrip("\n ")
    return [*parts, text] if text.strip() else parts
