"""The summary of a session from the records of its turns. They stay when the queue has been tidied; what an
earlier summary knew is taken where they say nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from backstory.memory.open_ends import open_ends
from backstory.memory.turn import MACHINE, PLAN_PROMPT, Turn
from backstory.model import Batch, Summary
from backstory.synthesis.rules.facts import approved_plans, plan_title
from backstory.synthesis.rules.words import line, shorten, telling

FIELD, STEPS = 320, 600  # characters
FIRST_REQUEST = 230
LATER = "Later: "
COMPACTED = 200
ERROR = 150
GOAL = 4  # telling words; a prompt with fewer that nothing was done for is no new goal

_REQUEST_OF_A_COMPACTION = re.compile(r"^[\W\d]{0,40}Primary Request and Intent\W{0,20}\s", re.I)


def summarise(batch: Batch) -> Summary | None:
    """None where there is nothing to tell: that a command ran helps nobody."""
    turns = batch.turns
    old = batch.summary or Summary("", "", "", "", "", (), (), "")
    summary = Summary(
        request=_request(turns) or old.request or _compacted(turns),
        investigated=_together(_investigated(turns)) or old.investigated,
        learned=_together(_learned(batch)) or old.learned,
        completed=_together(_completed(turns)) or old.completed,
        next_steps=_together(open_ends(turns[-1]) if turns else (), STEPS),
        files_read=_files(turn.read for turn in turns),
        files_edited=_files(turn.edited for turn in turns),
        notes=_together(_notes(turns)) or ("" if _request(turns) else _compacted(turns)),
    )
    tells = (summary.request, summary.learned, summary.completed, summary.notes)
    return summary if any(tells) or summary.files_edited else None


def _request(turns: Sequence[Turn]) -> str:
    asked = [(turn, said) for turn in turns for said in requests(turn)]
    if not asked:
        return ""
    first = shorten(asked[0][1], FIRST_REQUEST)
    worked = [said for turn, said in asked if turn.edited or turn.commits]
    goals = worked or [said for _, said in asked if len(telling(said)) > GOAL]
    if not goals or goals[-1] == asked[0][1]:
        return first
    return f"{first} {LATER}{shorten(goals[-1], FIELD - len(first) - len(LATER))}"


def requests(turn: Turn) -> list[str]:
    """What the prompts of a turn ask for, where they say more than 'yes, go on'."""
    asked = [line(text) for text, source in turn.prompts if source != MACHINE]
    plans = [text for text, _ in turn.prompts if text.startswith(PLAN_PROMPT)]
    asked += [f"Implement the plan: {plan_title(_plan(text))[0]}" for text in plans if _plan(text)]
    return [said for said in asked if len(telling(said)) > 1]


def _plan(prompt: str) -> str:
    return prompt.removeprefix(PLAN_PROMPT).strip(": \n")


def _compacted(turns: Sequence[Turn]) -> str:
    texts = [text for turn in turns for text in turn.compactions]
    return shorten(line(_REQUEST_OF_A_COMPACTION.sub("", texts[-1])), COMPACTED) if texts else ""


def _investigated(turns: Sequence[Turn]) -> list[str]:
    listed = (
        ("Read {}.", _few((file for turn in turns for file in turn.read), 8)),
        (
            "Searched for {}.",
            _few((" ".join(word.split())[:60] for turn in turns for word in turn.searched), 5),
        ),
        ("Agents: {}.", _few((line(task) for turn in turns for task, _ in turn.agents), 3)),
    )
    return [form.format(names) for form, names in listed if names]


def _learned(batch: Batch) -> list[str]:
    """What a model found before the rules had to go on, and what failed at first."""
    found = [
        f"{memory.title}."
        for memory in batch.known
        if memory.kind == "discovery" and memory.source == "model" and memory.session_id == batch.session.id
    ]
    passed = [one for turn in batch.turns for one in turn.passed]
    return [*found, *(f"Failed, then passed: {shorten(line(': '.join(one)), ERROR)}" for one in passed[-3:])]


def _completed(turns: Sequence[Turn]) -> list[str]:
    subjects = [line(str(subject)).rstrip(".") for turn in turns for _, subject, _ in turn.commits]
    done = [f"{subject}." for subject in dict.fromkeys(subjects)]
    edited = _few((file for turn in turns for file in turn.edited), 6)
    return [*done, f"Edited {edited}."] if edited else done


def _notes(turns: Sequence[Turn]) -> list[str]:
    notes = [f"{line(question)} {line(answer)}." for turn in turns for question, answer in turn.choices]
    plans = [plan for turn in turns for plan in approved_plans(turn, attended=True)]
    return [*notes, *(f"Approved plan: {plan_title(plan)[0]}." for plan in plans)]


def _files(lists: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(file for files in lists for file in files))


def _few(names: Iterable[str], most: int) -> str:
    found = [name for name in dict.fromkeys(names) if name]
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more


def _together(parts: Iterable[str], most: int = FIELD) -> str:
    """As many as there is room for, the first ones first."""
    text = ""
    for part in parts:
        if text and len(text) + len(part) + 1 > most:
            break
        text = f"{text} {part}".strip()
    return shorten(text, most)
