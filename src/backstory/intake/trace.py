"""A tool use as text: what the memory of it says, and which files it was about. Pure."""

from __future__ import annotations

import json

from backstory.clients.canonical import CHANGING, EDIT, READ, SEARCH, SHELL, WRITE
from backstory.safety.redact import redact_together

TYPE_CHECKING = False
if TYPE_CHECKING:
    from backstory.clients.canonical import Use

COMMAND_LIMIT = 200
OUTPUT_LIMIT = 500
INPUT_LIMIT = 300
FILES_LIMIT = 10
PROGRAMS = frozenset({"backstory", "backstory.sh"})
PRINTING_COMMANDS = frozenset(  # a test holds it to the CLI
    "search list show timeline add reinforce deemphasize forget erase restore supersede prune sessions docs"
    " reindex doctor backup spend docmem claude-md init sync status redact projects export"
    " import backfill stats why open pause resume slash statusline".split()
)
FILE_VERBS = {READ: "Read file", WRITE: "Wrote file", EDIT: "Edited file"}


class Trace:
    """What will be remembered of a tool use."""

    __slots__ = ("content", "files", "importance")

    def __init__(self, use: Use) -> None:
        self.content = describe(use)
        self.files = files_of(use)
        self.importance = importance_of(use)


def trace(use: Use | None) -> Trace | None:
    """The trace of a tool use; None where there is nothing to remember, or too much."""
    return None if use is None or use.too_large or use.is_ours else Trace(use)


def is_echo(use: Use) -> bool:
    """Our CLI prints memories; what it prints in a shell is an echo as well."""
    return use.action == SHELL and _runs_backstory(_command(use.given.get("command", "")))


def describe(use: Use) -> str:
    given = use.given
    lines = [f"Tool: {use.tool}"]
    echoes = False
    if use.action in FILE_VERBS:
        lines.append(f"{FILE_VERBS[use.action]}: {given.get('path')}")
    elif use.action == SHELL:
        command = _command(given.get("command", ""))
        echoes = _runs_backstory(command)
        lines.append(f"Command: {command[:COMMAND_LIMIT]}")
        output = "" if echoes else use.output
        if output and len(output) < OUTPUT_LIMIT:
            lines.append(f"Output: {output}")
    elif use.action == SEARCH and "pattern" in given:
        lines.append(f"Pattern: {given.get('pattern')}")
    else:
        whole = redact_together(json.dumps(given, ensure_ascii=False, separators=(",", ":")))
        lines.append(f"Input: {whole[:INPUT_LIMIT]}")
    if use.error is not None and not echoes:
        lines.append(f"Failed: {_ends(use.error, OUTPUT_LIMIT)}")
    # Each part is clean. Once more, because only beside its name does a value show what it is.
    return redact_together("\n".join(lines))


def files_of(use: Use) -> list[str]:
    """The paths a tool use names: in its input, and in a result that lists files."""
    paths = list(use.paths)
    listed = use.result.get("found_files") if isinstance(use.result, dict) else use.result
    if isinstance(listed, list):
        found = [item for item in listed if isinstance(item, str) and ("/" in item or "\\" in item)]
        paths += found[:FILES_LIMIT]
    return list(dict.fromkeys(paths))


def importance_of(use: Use) -> float:
    """Edits, commits and failures say more about a session than looking around does."""
    if use.action in CHANGING or use.error is not None:
        return 0.4
    committed = use.action == SHELL and "git commit" in str(use.given.get("command", ""))
    return 0.4 if committed else 0.3


def _command(given: object) -> str:
    if isinstance(given, str):
        return given
    # Not what the client sends; whatever it is, its parts show only together what they are.
    return redact_together(" ".join(map(str, given)) if isinstance(given, list) else str(given))


def _ends(text: str, limit: int) -> str:
    """A long error keeps its beginning and, above all, its end: that is where the reason stands."""
    if len(text) <= limit:
        return text
    head = limit // 4
    return f"{text[:head]}\n[...]\n{text[head - limit :]}"


def _runs_backstory(command: str) -> bool:
    if "backstory" not in command:
        return False
    for sign in ";&|()`\n":
        command = command.replace(sign, " ")
    words = [word.rsplit("/", 1)[-1].strip("\"'") for word in command.split()]
    after = zip(words, words[1:])  # noqa: B905, RUF007  itertools is one more import for a hook
    return any(program in PROGRAMS and then in PRINTING_COMMANDS for program, then in after)
