"""'Have we seen this error before?', asked without a person who labels: cases out of sessions as they were.

A command that failed has a line that says why. The same line, apart from what changes from run to run, in a
later session is a case, if in the earlier session the same check passed in the end: what should be found is
the turn in which it passed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from transcripts import Turn

from backstory.clients.claude_transcript import Payload

LONGEST_QUERY = 300
LONGEST_OUTPUT = 200_000  # characters of an output that are looked at
SETTING_UP = frozenset("cd export source set # echo sleep pwd".split())
MIN_WORDS = 3  # in a signature; of less nobody could tell which error it is

COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
RUNNERS = re.compile(
    r"(?:go (?:test|build|vet)|golangci-lint|mise (?:run )?\S+|make|just|task|cargo|npm|pnpm|yarn|bun|npx|tsc"
    r"|eslint|jest|vitest|pytest|python3? -m (?:pytest|mypy)|uv run|tox|nox|ruff|mypy|mvn|gradle|\./gradlew"
    r"|dotnet|bundle|rake|rspec|swift|xcodebuild|ctest|cmake)\b"
)
# In the output of a check whose exit code a pipe has swallowed.
FAILURES = re.compile(
    r"^--- FAIL|^FAIL\b|^FAILED\b|^\s*panic: |^error(?:\[\w+\])?: |\b[1-9]\d* (?:failed|failures?|errors?)\b"
    r"|ERROR task failed",
    re.MULTILINE,
)
TASK = re.compile(r"^\[[\w:.-]+\] ")  # the name of a task before what it prints
# Lines of an output by how much they say, the best first.
TELLING = (
    re.compile(r"^\S*\w\.\w{1,5}:\d+:\d+:? +\S|^\w*(?:Error|Exception)\b: |^(?:fatal|panic|error)\b.*: "),
    re.compile(
        r"\b(?:cannot|can't|could not|couldn't|undefined|undeclared|not found|no such|denied|unexpected"
        r"|expected|failed to|invalid|unknown|unable|mismatch|refused|timed out|missing|not allowed|rejected"
        r"|want|got|should)\b",
        re.IGNORECASE,
    ),
    re.compile(r"--- FAIL: \w|^FAILED \S|\b(?:error|failed|fatal)[:!] ", re.IGNORECASE),
)
SAYS_NOTHING = re.compile(
    r"(?:exit code|exit status|FAIL\b|ok\b|\$ |make(?:\[\d+\])?: \*\*\*)|.*\b(?:INFO|DEBUG|WARN)\b"
    r"|.*(?:ERROR task failed|exit code \d+$|exit status \d+$|Error \d+$)",
    re.IGNORECASE,
)
SAY_LITTLE = frozenset("error errors failed fail not test".split())
MOST_LINES = 20  # of one failure


@dataclass(frozen=True, slots=True)
class Command:
    at: int
    checks: tuple[str, ...]  # what it ran: the first words of each part
    failed: bool
    lines: tuple[str, ...] = ()  # of a failure: those that say why

    def signatures(self, sign: Callable[[str], str]) -> dict[str, str]:
        """Of each line that can be told from others, and the line."""
        found = {sign(line): line for line in reversed(self.lines)}
        return {name: line for name, line in found.items() if len(_words(name)) >= MIN_WORDS}


@dataclass(frozen=True, slots=True)
class Case:
    query: str
    earlier: frozenset[str]  # the sessions before the one in which it came again
    solved: tuple[Turn, ...]  # the turns of earlier sessions in which it was


def commands(payloads: Iterable[Payload]) -> Iterator[Command]:
    """Those of a session that passed, and those that failed with a line that says why."""
    for payload in payloads:
        if payload.get("tool_name") != "Bash":
            continue
        named = checks(str(payload["tool_input"].get("command", "")))
        if not named:
            continue
        output = _output(payload)
        failed = payload["hook_event_name"] == "PostToolUseFailure"
        if failed or (any(map(RUNNERS.match, named)) and FAILURES.search(output)):
            yield Command(payload["at"], named, True, tuple(error_lines(output)))
        else:
            yield Command(payload["at"], named, False)


def cases(
    sessions: Sequence[tuple[Sequence[Turn], Sequence[Command]]], sign: Callable[[str], str]
) -> list[Case]:
    """Of (turns, commands) of each session, in the order of their beginnings. One a signature and session,
    and one a command: the first of its lines that was solved before."""
    found: list[Case] = []
    earlier: list[str] = []
    solved: dict[str, list[Turn]] = {}  # by signature
    for turns, several in sessions:
        if not turns:
            continue
        last: dict[str, Command] = {}
        for command in several:
            lines = command.signatures(sign)
            for name in (name for name in lines if name not in last):
                before = tuple(turn for turn in solved.get(name, ()) if turn.last < command.at)
                if before:
                    query = lines[name][:LONGEST_QUERY]
                    found.append(Case(query, frozenset(earlier), before))
                    break
            last |= dict.fromkeys(lines, command)
        for name, failure in last.items():
            if turn := _solving(failure, turns, several):
                solved.setdefault(name, []).append(turn)
        earlier.append(turns[0].session_id)
    return found


def _solving(failure: Command, turns: Sequence[Turn], several: Sequence[Command]) -> Turn | None:
    """The turn in which the check passed that had failed; of several parts the last one stands for all."""
    for command in several:
        if command.at > failure.at and not command.failed and failure.checks[-1] in command.checks:
            return next((turn for turn in turns if turn.first <= command.at <= turn.last), None)
    return None


def checks(command: str) -> tuple[str, ...]:
    """The first words of each part: `mise run lint`, of `cd /x && CI=1 mise run lint ./... 2>&1 | tail`."""
    found = []
    bare = re.sub(r"'[^']*'|\"[^\"]*\"", "''", command.partition("<<")[0])
    for part in re.split(r"&&|\|\||;|\n", bare):
        run = re.sub(r"^(?:\s*\w+=\S*)*\s*", "", part.partition("|")[0])
        words = re.sub(r"[0-9&]*>.*", "", run).split()
        if not words or words[0] in SETTING_UP:
            continue
        named = words[:1]
        for word in words[1:3]:
            if not re.fullmatch(r"\w[\w:-]*", word):
                break
            named.append(word)
        found.append(" ".join(named))
    return tuple(found)


def error_lines(output: str) -> list[str]:
    """The lines that say most about what went wrong; those of the best rank that there is."""
    ranks: list[dict[str, None]] = [{} for _ in TELLING]
    for line in COLOURS.sub("", output[-LONGEST_OUTPUT:]).splitlines():
        text = TASK.sub("", line.strip())
        if text and not SAYS_NOTHING.match(text):
            for rank, pattern in zip(ranks, TELLING, strict=True):
                if pattern.search(text):
                    rank[text] = None
                    break
    return list(next((rank for rank in ranks if rank), {}))[:MOST_LINES]


def signature(line: str) -> str:
    """A line without what changes from run to run: folders, numbers, hashes, times, temporary names."""
    line = re.sub(r"(?<![\w.])(?:[\w.@~-]*/)+(?=[\w.@-])", "", line)
    line = re.sub(r"""(["'`])[^"'`]*(?:tmp|temp)[^"'`]*\1""", "#", line, flags=re.IGNORECASE)
    line = re.sub(r"\b(?:0x)?(?=[0-9a-f]*\d)[0-9a-f]{6,}\b", "#", line, flags=re.IGNORECASE)
    line = re.sub(r"\d+(?:[.:,-]\d+)*", "#", line)
    return " ".join(line.lower().split())


def kind(line: str) -> str:
    """The same, whichever file and name it is about."""
    line = re.sub(r"^\S*\w\.\w{1,5}(?::\d+)+:? +", "", line)
    return signature(re.sub(r"""(["'`]).*?\1""", "#", line))


def _words(name: str) -> list[str]:
    return [word for word in re.findall(r"[^\W\d_]{3,}", name) if word not in SAY_LITTLE]


def _output(payload: Payload) -> str:
    if "error" in payload:
        return str(payload["error"])
    response = payload.get("tool_response")
    if isinstance(response, dict):
        return f"{response.get('stdout', '')}\n{response.get('stderr', '')}"
    return str(response or "")
