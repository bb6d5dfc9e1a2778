"""What is shown of a turn: what was asked, what fits the query, the commits. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from backstory.gist import cut
from backstory.memory import turn as turns
from backstory.memory.turn import ANSWER, COMPACTION, COMPLETE, FACTS, PLAN, PROMPT, Turn, facts
from backstory.model import Excerpt

ASKED = 100  # characters
COMMITS = 3
COMMIT = 120  # characters of one, and at most an eighth of the room
APART = "[...]"
BELOW = "  "  # before the lines of a text but the first
SHORTEST = 20  # characters that still say something
LABELS = {ANSWER: "answered: ", PLAN: "plan: ", PROMPT: "asked: ", COMPACTION: "compacted: "}
AROUND = max(map(len, LABELS.values())) + len(APART) + 2  # that may stand around a piece, line ends included


class Piece(NamedTuple):
    """A part of a turn that fits a query."""

    row: int  # in the order in which the turn is told
    part: int  # see memory/turn.py
    text: str


def of_turn(
    asked: str, pieces: Sequence[Piece], commits: Sequence[str], room: int, *, is_pasted: bool = False
) -> Excerpt:
    """What was asked and done in a turn, and of its pieces, the best of which comes first, those that fit a
    query: for as long as there is room, in their order."""
    label = f"asked{' (pasted)' if is_pasted else ''}: "
    title = f"{label}{cut(asked, min(ASKED, room // 3))}" if asked else ""
    done = tuple(cut(line, min(COMMIT, room // 8)) for line in commits[-COMMITS:])
    left = room - sum(len(line) + 1 for line in (title, *done))
    chosen: list[Piece] = []
    for piece in pieces:
        if piece.part == turns.ASKED:  # it stands there already, but perhaps not the part that fits
            whole = f"{label}{cut(asked, len(title) - len(label) + max(left, 0))}"
            left -= len(whole) - len(title)
            title = whole
            continue
        text = _without(piece.text, commits[-COMMITS:]) if piece.part == FACTS else piece.text
        if not chosen:
            text = cut(text, left - AROUND) if left - AROUND >= SHORTEST else ""
        if text.strip() and len(text) + AROUND <= left:
            chosen.append(piece._replace(text=text))
            left -= len(text) + AROUND
    return Excerpt(title, tuple(_labelled(sorted(chosen))), done)


def _without(text: str, commits: Sequence[str]) -> str:
    """Facts without the commits, which stand at the end anyway."""
    return "\n\n".join(line for line in text.split("\n\n") if line not in commits)


def _labelled(chosen: list[Piece]) -> list[str]:
    lines: list[str] = []
    before = None
    for piece in chosen:
        if before is not None and piece.row != before.row + 1:
            lines.append(APART)
        begins = before is None or before.part != piece.part
        if piece.part in LABELS:  # of a text, no line can pose as one of ours
            label = LABELS[piece.part] if begins else BELOW
            lines.append(label + f"\n{BELOW}".join(piece.text.splitlines()))
        else:
            lines.append(piece.text)
        before = piece
    return lines


def in_short(content: str, room: int) -> str:
    """The paragraphs of a turn as memory/turn.py tells it, each on a line of its own, for as long as there is
    room: what was asked has a third of it."""
    lines: list[str] = []
    for paragraph in content.split("\n\n"):
        if room < SHORTEST:
            break
        lines.append(cut(" ".join(paragraph.split()), room // 3 if not lines else room))
        room -= len(lines[-1])
    return "\n".join(lines)


def in_a_line(turn: Turn, room: int) -> str:
    """What was asked, and how it was answered; without an answer, what became of it."""
    answer = next((said for line in turn.answer.splitlines() if (said := line.strip(" #*-\t"))), "")
    done = "" if turn.state == COMPLETE else turn.state
    told = answer or "; ".join(filter(None, (done, *facts(turn))))
    asked = cut(turn.asked, max(room * 3 // 5, room - len(told) - 3)) if told else cut(turn.asked, room)
    return cut(" — ".join(filter(None, (asked, told))), room)
