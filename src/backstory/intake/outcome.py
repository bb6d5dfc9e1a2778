"""What a shell command came to: the commits it made, and whether what it checked failed or passed. Pure.

A command that failed says so by its exit status. One at the beginning of a pipe hides that, so of commands
that test, build or lint the output is looked at as well.
"""

from __future__ import annotations

import os
import re

from backstory.capture import changes
from backstory.safety.clean import without_middle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from backstory.clients.canonical import Use
    from backstory.shell import Word

    Walked = list[tuple[list[Word], str | None]]  # simple commands, and where each runs

LOOKED_AT = 16_000  # characters of an output, half from either end
COMMAND = 200
ERROR_LINES, ERROR = 4, 500
CHECK_WORDS = 4  # of a command say what it checks

_CHECKS = re.compile(
    r"\b(?:tests?|pytest|unittest|jest|vitest|mocha|rspec|phpunit|tox|nox|build|compile|check|vet|lint|clippy"
    r"|mypy|pyright|tsc|ruff|eslint|golangci-lint|make|cargo|gradlew?|mvnw?|ci)\b"
)
_FAILED = re.compile(
    r"^(?:--- FAIL|FAIL\b|FAILED\b|ERROR\b|not ok |test result: FAILED|BUILD FAILED|FAILURES!"
    r"|exit status [1-9])"
    r"|\b[1-9]\d{0,5} (?:failed|failing|failures?|errors?)\b|^\S+\.\w{1,5}:\d+:\d+: ",
    re.M,
)
_ERROR = re.compile(
    r"^.{0,200}?(?:--- FAIL: \S|\b[\w.]{0,80}(?:Error|Exception|Panic)\b(?: \[\w+\])?: \S"
    r"|\b(?:fatal|error|panic|FATAL|ERROR)\b(?:\[\w+\])? ?: ?\S|\.\w{1,5}:\d+:\d+: |undefined: "
    r"|command not found|No such file|^E {1,8}\S|^(?:FAILED|ERROR) \S).{0,300}$",
    re.M,
)
_COMMITTED = re.compile(r"^\[[^\]\n]{1,200} ([0-9a-f]{7,40})\] (.{1,500})$", re.M)
_NOTHING = frozenset(  # that these failed says nothing
    "ls cat grep rg find which test [ diff git gh cd head tail sed awk echo kill pgrep jq".split()
)


class Outcome:
    __slots__ = ("check", "command", "commits", "error", "failed", "passed")

    def __init__(self, command: str) -> None:
        self.command = command
        self.commits: list[tuple[str, str, bool]] = []  # (sha, subject, whether it amends the one before)
        self.check = ""  # the runs of one check have the same
        self.failed = False
        self.passed = False  # neither: it was interrupted, or goes on in the background
        self.error = ""


def of(use: Use, cwd: str, tops: Sequence[str]) -> Outcome:
    """`cwd` is the folder that it left the shell in; `tops` are the folders that the project lies in."""
    command = use.command or ""
    done = Outcome(" ".join(command.split())[:COMMAND])
    commands = list(changes.walked(command, cwd, use.was_reset))
    words = [[word.text for word in one] for one, _ in commands]
    text = printed(use)
    done.commits = list(_commits(commands, text, tops, use.was_reset))
    done.check = next((" ".join(one[:CHECK_WORDS]) for one in words if one and one[0] not in _NOTHING), "")
    checks = bool(_CHECKS.search(done.check))
    if use.error is None:
        done.failed = checks and bool(_FAILED.search(text))
        done.passed = not done.failed and use.exit_status == 0
    else:
        done.failed = bool(done.check) and use.exit_status is not None
    if done.failed:
        done.error = error_lines(text)
    return done


def printed(use: Use) -> str:
    """What it printed, from both ends where that is much."""
    if use.error is not None:
        text = use.error
    else:
        text = use.output or _joined(use.excerpt if use.too_large else use.result)
    return without_middle(text, LOOKED_AT).replace("\r", "")


def _joined(value: object) -> str:
    if isinstance(value, str):
        return value
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return "\n".join(part for part in map(_joined, parts) if part)


def error_lines(text: str) -> str:
    """The lines that say what is wrong; where none does, the last one."""
    found = dict.fromkeys(" ".join(match[0].split()) for match in _ERROR.finditer(text))
    if not found:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        found = dict.fromkeys(lines[-1:])
    return " / ".join(list(found)[:ERROR_LINES])[:ERROR]


def _commits(
    commands: Walked, text: str, tops: Sequence[str], was_reset: bool
) -> Iterator[tuple[str, str, bool]]:
    """What git says it committed. The first commit of a repository is one of a scratch folder, and what is
    done elsewhere is not this project's."""
    amends = commits = False
    for words, at in commands:
        named = [word.text for word in words]
        if named[:1] == ["git"] and "commit" in named:
            folder = at
            before = named[: named.index("commit")]
            if "-C" in before[:-1]:
                to = before[before.index("-C") + 1]
                folder = os.path.normpath(os.path.join(at or "/", to)) if at or to.startswith("/") else None
            is_here = not was_reset if folder is None else _is_inside(folder, tops)
            commits = commits or is_here
            amends = amends or (is_here and "--amend" in named)
    if commits:
        for sha, subject in _COMMITTED.findall(text):
            if "(root-commit)" not in text[: text.index(sha)].rpartition("\n")[2]:
                yield sha, subject.strip(), amends


def _is_inside(folder: str, tops: Sequence[str]) -> bool:
    """What only the shell could know stands for one folder, wherever that is."""
    path = folder.replace(changes.UNKNOWN, "_")
    return any(path == top or path.startswith(top + os.sep) for top in tops)
