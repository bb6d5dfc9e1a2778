"""What a shell command came to: the commits it made, and whether what it checked failed or passed. Pure.

A command that failed says so by its exit status. One at the beginning of a pipe hides that, so of commands
that test, build or lint the output is looked at as well.
"""

from __future__ import annotations

import os
import re

from backstory import shell
from backstory.capture import changes
from backstory.memory.failing_tests import APART
from backstory.safety.redact import redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from backstory.clients.canonical import Use
    from backstory.shell import Word

    Walked = list[tuple[list[Word], str | None]]  # simple commands, and where each runs

COMMAND = 200
WHOLE = ("./...", ".")  # all there is
ERROR_LINES, ERROR = 12, 1_500  # characters of all of them
CHECK_WORDS = 3  # of a command, at most, say what it checks

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
    r"|\b(?:fatal|error|panic|FATAL|ERROR)\b(?:\[\w+\])? ?: ?\S|\.\w{1,5}:\d+:(?:\d+:)? |undefined: "
    r"|command not found|No such file|^E {1,8}\S|^(?:FAILED|ERROR) \S"
    r"|^test \S+ \.\.\. FAILED|^\s*[●✕✗×] \S|^\s*FAIL +\S+\.\w|^rspec \S+:\d+ # "
    r"|\b(?:cannot|could not|not found|denied|unexpected|failed to|invalid|unknown|refused|timed out)\b"
    r").{0,300}$",
    re.M | re.I,
)
_COMMITTED = re.compile(r"^\[[^\]\n]{1,200} ([0-9a-f]{7,40})\] (.{1,500})$", re.M)
_NOTHING = frozenset(  # that these failed says nothing
    "ls cat grep rg find which test [ diff git gh cd head tail sed awk echo kill pgrep jq".split()
)
_ASKING = frozenset(("--version", "--help", "-h", "-V", "--collect-only", "--dry-run"))


class Outcome:
    __slots__ = ("checks", "command", "commits", "error", "failed", "keeps_changes", "passed", "undone")

    def __init__(self, command: str) -> None:
        self.command = command
        self.commits: list[tuple[str, str, bool]] = []  # (sha, subject, whether it amends the one before)
        self.undone = 0  # commits that it took back before it made any
        self.keeps_changes = True  # of those
        self.checks: list[str] = []  # what it ran; the runs of one check have the same name
        self.failed = False
        self.passed = False  # neither: it was interrupted, or goes on in the background
        self.error = ""


def of(use: Use, cwd: str, tops: Sequence[str]) -> Outcome:
    """`cwd` is the folder that it left the shell in; `tops` are the folders that the project lies in."""
    command = redact((use.command or "").replace("\\\n", " "))  # once more: now it stands on one line
    done = Outcome(" ".join(command.split())[:COMMAND])
    commands = list(changes.walked(command, cwd, use.was_reset))
    words = [[word.text for word in one] for one, _ in commands]
    text = printed(use)
    done.commits = list(_commits(commands, text, tops, use))
    if use.error is None and use.exit_status == 0:
        done.undone, done.keeps_changes = _undone(commands, tops, use)
    done.checks = [_name(one) for one in words if one and one[0] not in _NOTHING and not _ASKING & {*one}]
    checks = any(map(_CHECKS.search, done.checks))
    if use.error is None:
        done.failed = checks and bool(_FAILED.search(text))
        done.passed = not done.failed and use.exit_status == 0
    else:
        done.failed = bool(done.checks) and use.exit_status is not None
    if done.failed:
        done.error = error_lines(text)
    return done


def printed(use: Use) -> str:
    """What it printed, from both ends where that is much."""
    if use.error is not None:
        text = use.error
    else:
        text = use.output or _joined(use.excerpt if use.too_large else use.result)
    return (use.printed or text).replace("\r", "")


def _joined(value: object) -> str:
    if isinstance(value, str):
        return value
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if isinstance(value, dict) and not isinstance(value.get("text"), str):
        named = ((name, _joined(part)) for name, part in value.items())
        return "\n".join(f"{name}: {text}" for name, text in named if text)
    return "\n".join(part for part in map(_joined, parts) if part)


def error_lines(text: str) -> str:
    """The lines that say what is wrong; where none does, the last one."""
    found = dict.fromkeys(" ".join(match[0].split()) for match in _ERROR.finditer(text))
    if not found:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        found = dict.fromkeys(lines[-1:])
    return APART.join(list(found)[:ERROR_LINES])[:ERROR]


def both(error: str, other: str) -> str:
    """The lines of two failures of one check."""
    lines = dict.fromkeys([*error.split(APART), *other.split(APART)])
    return APART.join(list(lines)[-ERROR_LINES:])[-ERROR:]


def _name(words: list[str]) -> str:
    """`go test ./pay`: the words it begins with, and what it is confined to, without options."""
    plain = 1
    while plain < min(len(words), CHECK_WORDS) and re.fullmatch(r"\w[\w:.-]*", words[plain]):
        plain += 1
    only = [word for word in words[plain:] if not word.startswith("-") and word not in WHOLE]
    return " ".join([*words[:plain], *sorted(only)])[:COMMAND]


def covers(passed: str, failed: str) -> bool:
    """Whether a check that passed says that the one that failed would: it is the same, or the same of all
    files. `make` says nothing about `make test`."""
    if failed == passed:
        return True
    only = failed.removeprefix(f"{passed} ")
    return only != failed and bool(_CHECKS.search(passed) and re.match(r"\S*[./:]", only))


def _commits(commands: Walked, text: str, tops: Sequence[str], use: Use) -> Iterator[tuple[str, str, bool]]:
    """What git says it committed; of a quiet commit, what it was told to. The first commit of a repository is
    one of a scratch folder, and what is done elsewhere is not this project's; where both are done, or more is
    printed than was done, only what the command was told to commit is sure."""
    amends = elsewhere = False
    told: list[str | None] = []  # None: nobody knows
    for words, at in commands:
        named = [word.text for word in words]
        verb = next((name for name in ("commit", "revert") if name in named), "")
        if named[:1] != ["git"] or not verb or "--dry-run" in named:
            continue
        before = named[: named.index(verb)]
        if not _is_here(before, at, tops, use):
            elsewhere = True
            continue
        told.append(_message(words[len(before) + 1 :]) if verb == "commit" else None)
        amends = amends or "--amend" in named
    if not told:
        return
    printed = [one for one in _COMMITTED.findall(text) if f"{one[0]}] {one[1]}" not in str(use.command)]
    is_sure = not elsewhere and len(printed) <= len(told)
    for sha, subject in printed:
        is_first = "(root-commit)" in text[: text.index(sha)].rpartition("\n")[2]
        if not is_first and (is_sure or subject.strip() in told):
            yield sha, subject.strip(), amends
    if not printed and use.exit_status == 0 and _is_quiet(commands, use.command or "") and told[-1]:
        yield "", told[-1], amends


def _is_quiet(commands: Walked, command: str) -> bool:
    """Whether a commit that prints nothing was made for certain: all that the command did worked, or the
    commit was the last of it, and so the exit status is its own."""
    signs = {step for step in shell.read(command) if isinstance(step, str)}
    for place, (words, _) in enumerate(reversed(commands)):
        options = [word.text for word in words]
        if options[:1] == ["git"] and "commit" in options:
            short = "".join(option[1:] for option in options if re.fullmatch(r"-[a-zA-Z]+", option))
            is_quiet = "q" in short or "--quiet" in options
            return is_quiet and not signs - ({"&&"} if place else {"&&", ";", "\n"})
    return False


def _message(options: Sequence[Word]) -> str | None:
    """The subject that a commit is told to have; None where the command does not say."""
    for at, option in enumerate(options[:-1]):
        after = options[at + 1]
        if re.fullmatch(r"-[a-zA-Z]*m|--message", option.text):
            return after.text.strip().partition("\n")[0].strip() if after.is_known else None
    return None


def _undone(commands: Walked, tops: Sequence[str], use: Use) -> tuple[int, bool]:
    """How many commits a reset to one before the latest took back, and whether their changes stay."""
    for words, at in commands:
        named = [word.text for word in words]
        if named[:1] == ["git"] and "commit" in named:
            break
        if named[:1] == ["git"] and "reset" in named:
            before = named[: named.index("reset")]
            options = named[len(before) + 1 :]
            to = [option for option in options if not option.startswith("-") or option == "--"]
            found = _BEFORE_LATEST.fullmatch(to[0]) if len(to) == 1 else None  # more: files of the index
            if found and _is_here(before, at, tops, use):
                return int(found[1] or 1), "--hard" not in options
    return 0, True


_BEFORE_LATEST = re.compile(r"(?:HEAD|@)(?:~(\d{1,3})?|\^)")


def _is_here(before: Sequence[str], at: str | None, tops: Sequence[str], use: Use) -> bool:
    """Whether git, with these words before its command, works in the project."""
    folder = at
    named = any(word.startswith(("--git-dir", "--work-tree")) for word in before)
    if named or "GIT_DIR=" in str(use.command):
        return False
    if "-C" in before[:-1]:
        to = before[before.index("-C") + 1]
        folder = os.path.normpath(os.path.join(at or "/", to)) if at or to.startswith("/") else None
    return not use.was_reset if folder is None else _is_inside(folder, tops)


def _is_inside(folder: str, tops: Sequence[str]) -> bool:
    """What only the shell could know stands for one folder, wherever that is."""
    path = folder.replace(changes.UNKNOWN, "_")
    return any(path == top or path.startswith(top + os.sep) for top in tops)
