"""Events become turns: what each adds to the turn that its session is in. Pure.

A prompt begins a turn, unless the one before has not ended: then it is joined to that. Whatever else comes
belongs to the latest turn, also after its end, as where a Stop hook sent the assistant on. A prompt that runs
a command of backstory's is left out; intake/remember.py leaves out turns that have no other prompt.
"""

from __future__ import annotations

import os
import re

from backstory.clients import canonical
from backstory.ids import derived
from backstory.memory import turn as turns
from backstory.memory.turn import LONGEST, MOST, Turn
from backstory.safety.clean import clean, without_middle
from backstory.safety.redact import redact_together

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from backstory.clients.canonical import Event, Use
    from backstory.paths import Place

BEGINNING = (canonical.PROMPT, canonical.NOTIFICATION)
LEAVING_NOTHING = (canonical.SESSION_START, canonical.COMPACTION_START, canonical.SUBAGENT_END)
AGENTS = 20  # whose results a turn keeps
CAME = 600  # characters of what came of an agent's task
LONG_QUESTION = 1_000


def turn_of(turn: Turn | None, event: Event, place: Place) -> Turn | None:
    """The turn that the event belongs to: the one that its session is in, or one that it begins, or none."""
    is_open = turn is not None and turn.state == turns.OPEN
    if event.kind in LEAVING_NOTHING or (event.kind == canonical.SESSION_END and not is_open):
        return None
    begins = event.kind in BEGINNING and not is_open
    if turn is None or (begins and event.at > turn.ended_at):
        turn = turns.following(turn, event.session_id, event.at)
        turn.id = derived("turn", event.session_id, event.key)
        turn.branch, turn.head = place.branch, place.head
    return turn


def add(turn: Turn, event: Event, place: Place) -> None:
    """What the event adds to its turn."""
    turn.started_at = min(turn.started_at, event.at)
    turn.ended_at = max(turn.ended_at, event.at)
    if event.kind == canonical.PROMPT:
        if event.text.strip() and not turns.is_own_command(event.text):
            turn.prompts.append([event.text, turns.came_from(event.text)])
    elif event.kind == canonical.NOTIFICATION:
        report = reported(event)
        turn.agents += [report] if report not in turn.agents else []
    elif event.kind == canonical.TURN_END:
        _end(turn, event)
    elif event.kind == canonical.COMPACTION:
        if event.text.strip() and event.text not in turn.compactions:
            turn.compactions.append(event.text)
    elif event.kind == canonical.SESSION_END:
        turn.state = turns.INTERRUPTED if turn.state == turns.OPEN else turn.state
    elif event.use is not None and not event.use.is_ours:
        _use(turn, event, event.use, place.tops)


def reported(notification: Event) -> list[str]:
    """What a notification tells, as a turn keeps it."""
    came = " ".join(re.sub(r"</?[\w-]+>", " ", notification.text).split())
    return ["in the background", without_middle(came, CAME)]


def _end(turn: Turn, event: Event) -> None:
    """What is said after a Stop hook sent the assistant on is about that hook, and no answer to the user."""
    from backstory.memory.closing import closing  # its expressions would make every hook slower

    if not turn.answer:
        turn.answer = event.text
    elif not event.is_sent_on and event.text not in turn.answer:
        turn.answer = without_middle(f"{turn.answer}\n\n{event.text}", LONGEST)
    turn.closing = closing(turn.answer)
    turn.state = turns.COMPLETE


def _use(turn: Turn, event: Event, use: Use, tops: Sequence[str]) -> None:
    changed = [clean(path) for path in event.changed]  # they are as they came
    _files(turn.edited, changed, tops)
    _files(turn.uncommitted, changed, tops)
    if use.action == canonical.READ and use.error is None:
        _files(turn.read, [os.path.join(event.cwd, path) for path in use.paths], tops)
    elif use.action == canonical.SEARCH:
        _add(turn.searched, [_word(use, "pattern") or _word(use, "query")])
    elif use.action == canonical.WEB:
        _add(turn.searched, [_word(use, "url") or _word(use, "query")])
    elif use.action == canonical.SHELL:
        _shell(turn, event, use, tops)
    elif use.error is not None or event.agent:
        return  # a subagent asks nobody and plans for itself
    elif use.action == canonical.ASK:
        _choices(turn, use)
    elif use.action == canonical.PLAN:
        if event.text.strip() and event.text not in turn.plans:
            turn.plans.append(event.text)
    elif use.action == canonical.AGENT:
        from backstory.intake import outcome

        came = redact_together(" ".join(outcome.printed(use).split()))
        turn.agents.append([_word(use, "description"), without_middle(came, CAME)])
        del turn.agents[:-AGENTS]


def _choices(turn: Turn, use: Use) -> None:
    """Answers to what was asked, in words; anything else nobody answered."""
    result = use.excerpt if use.too_large else use.result
    answers = result.get("answers") if isinstance(result, dict) else None
    listed = use.given.get("questions")
    listed = listed if isinstance(listed, list) else []
    listed = [one for one in listed if isinstance(one, dict)]
    asked = [one.get("question") for one in listed]
    for name, answer in answers.items() if isinstance(answers, dict) else ():
        words = answer if isinstance(answer, list) else [answer]
        said = ", ".join(word for word in words if isinstance(word, str))
        # As the name of an answer, a long question was cut.
        question = next((one for one in asked if isinstance(one, str) and one.startswith(name)), "")
        beside = f"{question.rstrip(' :?')}: {said}"
        if name.strip() and question.strip() and said.strip() and redact_together(beside) == beside:
            described = next(
                (_described(one, said) for one in listed if one.get("question") == question), said
            )
            choice = [question.strip()[:LONG_QUESTION], described.strip()[:LONG_QUESTION]]
            if choice not in turn.choices:
                turn.choices.append(choice)


def _described(question: dict[str, Any], answer: str) -> str:
    """The answer, with what was said of it where it is one of the options."""
    options = question.get("options")
    for option in options if isinstance(options, list) else ():
        if isinstance(option, dict) and option.get("label") == answer:
            description = option.get("description")
            if isinstance(description, str) and description.strip():
                return f"{answer}: {' '.join(description.split())}"
    return answer


def _shell(turn: Turn, event: Event, use: Use, tops: Sequence[str]) -> None:
    if use.command is None:
        return
    from backstory.intake import outcome  # its expressions would make every hook slower

    done = outcome.of(use, event.cwd, tops)
    for _ in range(min(done.undone, len(turn.commits))):
        files = turn.commits.pop()[2]
        _add(turn.uncommitted, files if done.keeps_changes else [])
    for sha, subject, amends in done.commits:
        files = list(turn.uncommitted)
        turn.uncommitted.clear()
        if amends and turn.commits:
            files = [*turn.commits.pop()[2], *files]
        turn.commits.append([sha, subject, list(dict.fromkeys(files))[:MOST]])
    if done.failed:
        check = done.checks[-1]  # of several the last one stands for all
        known = turn.failing.pop(check, None)
        now = [done.command, outcome.both(known[1], done.error) if known else done.error]
        turn.failing[check] = now
        if known in turn.failed:
            turn.failed.remove(known)
        turn.failed.append(now)
    elif done.passed:
        for check in [one for one in turn.failing if any(outcome.covers(name, one) for name in done.checks)]:
            passed = turn.failing.pop(check)
            if passed in turn.failed:
                turn.failed.remove(passed)
            turn.passed.append(passed)
    del turn.failed[: -turns.MOST_ERRORS], turn.passed[: -turns.MOST_ERRORS]
    while len(turn.failing) > turns.MOST_ERRORS:
        del turn.failing[next(iter(turn.failing))]


def _files(files: list[str], paths: Iterable[str], tops: Sequence[str]) -> None:
    """From the top of the project; what lies elsewhere is none of its files."""
    for path in map(os.path.normpath, paths):
        top = next((top for top in tops if path.startswith(top + os.sep)), None)
        _add(files, [path.removeprefix(top + os.sep)] if top else [])


def _add(found: list[str], new: Iterable[str]) -> None:
    for one in new:
        if one and one not in found and len(found) < MOST:
            found.append(one)


def _word(use: Use, name: str) -> str:
    value = use.given.get(name)
    return value[:200] if isinstance(value, str) else ""
