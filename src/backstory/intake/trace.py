"""A tool use as text: what the memory of it says, and which files it was about. Pure."""

from __future__ import annotations

import json

from backstory.capture.event import ECHOING_TOOLS
from backstory.safety.redact import redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from backstory.capture.event import Event

COMMAND_LIMIT = 200
OUTPUT_LIMIT = 500
INPUT_LIMIT = 300
FILES_LIMIT = 10
OURS = "backstory:"  # before the names of our agent and skills
# Which field says which one is meant.
NAMING = {"Agent": "subagent_type", "Task": "subagent_type", "Skill": "skill"}
PROGRAMS = frozenset({"backstory", "backstory.sh"})
PRINTING_COMMANDS = frozenset(  # a test holds it to the CLI
    "search list show timeline add reinforce deemphasize forget restore supersede prune sessions docs reindex"
    " doctor backup spend docmem claude-md init sync status".split()
)
FILE_VERBS = {
    "Read": "Read",
    "Write": "Wrote",
    "Edit": "Edited",
    "MultiEdit": "Edited",
    "NotebookEdit": "Edited",
}


class Trace:
    """What will be remembered of a tool use."""

    __slots__ = ("content", "files", "importance")

    def __init__(self, event: Event) -> None:
        self.content = describe(event)
        self.files = files_of(event)
        self.importance = importance_of(event)


def trace(event: Event) -> Trace | None:
    """The trace of a tool use; None where there is nothing to remember, or too much."""
    return None if event.tool is None or event.too_large or is_ours(event) else Trace(event)


def is_ours(event: Event) -> bool:
    """Our own tools show what is remembered already; remembering that would be an echo. And that our agent
    keeps CLAUDE.md true is no news about the project."""
    tool = event.tool or ""
    if event.agent.startswith(OURS):
        return True
    if tool in NAMING:
        return str(event.tool_input.get(NAMING[tool])).startswith(OURS)
    if tool == "ToolSearch":  # how a model gets hold of them
        return "backstory" in str(event.tool_input.get("query"))
    return tool.startswith("mcp__") and "backstory" in tool


def is_echo(event: Event) -> bool:
    """Our CLI prints memories; what it prints in a shell is an echo as well."""
    return event.tool == "Bash" and _runs_backstory(_command(event.tool_input.get("command", "")))


def describe(event: Event) -> str:
    given = event.tool_input
    lines = [f"Tool: {event.tool}"]
    echoes = False
    if event.tool in FILE_VERBS:
        lines.append(f"{FILE_VERBS[event.tool]} file: {given.get('file_path') or given.get('notebook_path')}")
    elif event.tool == "Bash":
        command = _command(given.get("command", ""))
        echoes = _runs_backstory(command)
        lines.append(f"Command: {command[:COMMAND_LIMIT]}")
        output = None if echoes else _output(event.result)
        if output and len(output) < OUTPUT_LIMIT:
            lines.append(f"Output: {output}")
    elif event.tool in ("Grep", "Glob"):
        lines.append(f"Pattern: {given.get('pattern')}")
    else:
        whole = redact(json.dumps(given, ensure_ascii=False, separators=(",", ":")))
        lines.append(f"Input: {whole[:INPUT_LIMIT]}")
    if event.error is not None and not echoes:
        lines.append(f"Failed: {_ends(event.error, OUTPUT_LIMIT)}")
    # Each part is clean. Once more, because only beside its name does a value show what it is.
    return redact("\n".join(lines))


def files_of(event: Event) -> list[str]:
    """The paths a tool use names: in its input, and in a result that lists files."""
    given = [event.tool_input.get(field) for field in ("file_path", "notebook_path", "path")]
    paths = [path for path in given if isinstance(path, str) and path]
    result = event.result
    listed = result.get("filenames") if isinstance(result, dict) else result
    if isinstance(listed, list):
        found = [item for item in listed if isinstance(item, str) and ("/" in item or "\\" in item)]
        paths += found[:FILES_LIMIT]
    return list(dict.fromkeys(paths))


def importance_of(event: Event) -> float:
    """Edits, commits and failures say more about a session than looking around does."""
    if event.tool in ECHOING_TOOLS or event.error is not None:
        return 0.4
    committed = event.tool == "Bash" and "git commit" in str(event.tool_input.get("command", ""))
    return 0.4 if committed else 0.3


def _command(given: object) -> str:
    if isinstance(given, str):
        return given
    # Not what the client sends; whatever it is, its parts show only together what they are.
    return redact(" ".join(map(str, given)) if isinstance(given, list) else str(given))


def _ends(text: str, limit: int) -> str:
    """A long error keeps its beginning and, above all, its end: that is where the reason stands."""
    if len(text) <= limit:
        return text
    head = limit // 4
    return f"{text[:head]}\n[...]\n{text[head - limit :]}"


def _output(result: object) -> str | None:
    if isinstance(result, str):
        return result
    if not isinstance(result, dict):
        return None
    parts = [result.get("stdout"), result.get("stderr")]
    return "\n".join(part.strip("\n") for part in parts if isinstance(part, str) and part.strip())


def _runs_backstory(command: str) -> bool:
    if "backstory" not in command:
        return False
    for sign in ";&|()`\n":
        command = command.replace(sign, " ")
    words = [word.rsplit("/", 1)[-1].strip("\"'") for word in command.split()]
    after = zip(words, words[1:])  # noqa: B905, RUF007  itertools is one more import for a hook
    return any(program in PROGRAMS and then in PRINTING_COMMANDS for program, then in after)
