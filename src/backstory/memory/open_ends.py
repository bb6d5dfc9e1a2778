"""What a turn leaves open. Pure.

A check that fails and files that are not committed are facts; `settle` drops those that time has overtaken.
What the assistant asked or offered last was read from its words where the turn ended (memory/closing.py), and
the next prompt answers it: so only a session's last turn has it.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from backstory.memory.turn import Turn

LINE = 240  # characters
MOST_FAILING, MOST_FILES = 3, 4
ABOUT = 120
ASKED = "asked: "

_CHECK = re.compile(r"test|spec\b|build|compile|check|lint|vet\b|mypy|tsc\b|ruff|tox\b|make\b|\bci\b", re.I)
_MISUSE = re.compile(r"unknown (?:flag|option)|command not found|no such file|usage:", re.I)


def open_ends(turn: Turn) -> list[str]:
    """A plain line for each thing that is open after a turn; its assistant's last question first."""
    lines = list(turn.closing)
    if lines and lines[-1].startswith(ASKED) and turn.asked:
        lines[-1] = f"{lines[-1]} (on: {_short(turn.asked, ABOUT)})"  # 'Which option?' says nothing alone
    failing = [one for check, one in turn.failing.items() if _CHECK.search(check) and _is_open(one, turn)]
    lines += [
        _short(f"failing: {command}" + (f": {error}" if error else ""))
        for command, error in failing[-MOST_FAILING:]
    ]
    if files := turn.uncommitted:
        more = f" and {len(files) - MOST_FILES} more" if len(files) > MOST_FILES else ""
        lines.append(f"uncommitted: {', '.join(files[:MOST_FILES])}{more}")
    return lines


def settle(turn: Turn, head: str | None, is_latest: bool) -> None:
    """Keep what is still so: of checks that fail, those of the latest turn, and failed in it; of files that
    are not committed, those of a turn that left git's head where it is now."""
    failed = turn.failed if is_latest else []
    turn.failing = {check: failure for check, failure in turn.failing.items() if failure in failed}
    left_at = str(turn.commits[-1][0]) if turn.commits and turn.commits[-1][0] else turn.head
    if not head or not left_at or not head.startswith(left_at):
        turn.uncommitted = []


def _is_open(failure: list[str], turn: Turn) -> bool:
    """What failed before a turn that committed did not matter; nor does a command that was mistyped."""
    return (failure in turn.failed or not turn.commits) and not _MISUSE.search(failure[1])


def _short(text: str, most: int = LINE) -> str:
    return text if len(text) <= most else text[: most - 2].rsplit(" ", 1)[0] + " …"
