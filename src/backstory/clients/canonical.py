"""What happens in a session, in words that fit every agent: events, and the actions of its tools.

A client (one file an agent, beside this one) reads a payload into these; nothing behind `capture` knows which
agent it came from. A tool's own name, and what it was given besides, travel along as data.

What a tool was given and what came of it are dicts, where these keys mean the same for every agent:

    given    path      the file of a read, an edit or a write
             command   of a shell
             old, new  of an edit: the text that was replaced, and the one that took its place
             edits     several of these
             content   the whole text of a file or a cell
             pattern   of a search; query, url: of the web
             description   of an agent's task
             questions   of an ask: [{question, options: [{label, description}]}]
    result   output    what a shell printed
             errors    the same, to its second stream, where the client tells them apart
             changed   the files that a shell changed, where the client says so
             content   what a read showed; lines: how many these are
             created   True where a write made a new file
             found_files   what a search found
             answers   question -> answer, of an ask
             plan      the text of a plan that was approved

Plain classes: dataclasses are too slow to load for a hook.
"""

from __future__ import annotations

EVENTS = (
    SESSION_START := "session_start",
    PROMPT := "prompt",
    NOTIFICATION := "notification",  # it came as a prompt, but no user wrote it
    TOOL_USE := "tool_use",
    TOOL_FAILURE := "tool_failure",
    TURN_END := "turn_end",
    SUBAGENT_END := "subagent_end",
    COMPACTION_START := "compaction_start",
    COMPACTION := "compaction",
    SESSION_END := "session_end",
)
ACTIONS = (
    READ := "read",
    EDIT := "edit",
    WRITE := "write",
    SHELL := "shell",
    SEARCH := "search",
    WEB := "web",
    ASK := "ask",
    PLAN := "plan",
    AGENT := "agent",
    MCP := "mcp",
    OTHER := "other",
)
CHANGING = (EDIT, WRITE)


class Event:
    """One thing that happened in a session; as a client reads it, nothing in it is clean yet."""

    __slots__ = (
        "agent at changed cwd id is_sent_on key kind name session_id source text use words_key".split()
    )

    def __init__(self, kind: str, name: str, session_id: str, cwd: str) -> None:
        self.kind = kind  # one of EVENTS
        self.name = name  # the client's own
        self.session_id = session_id
        self.cwd = cwd
        self.id: str | None = None  # the client's own, where it has one for such an event
        self.agent = ""  # the type of the subagent in which it happened
        self.source = ""  # of a start: why there is one
        self.text = ""  # the prompt, the last message, an approved plan, or the summary of a compaction
        self.is_sent_on = False  # of a turn's end: a hook had not let it end before
        self.use: Use | None = None
        # Added by capture:
        self.at = 0
        self.key = ""  # draining the same event twice stores it once
        self.words_key = ""  # the same with a digest of its words, where its id may be another's as well
        self.changed: list[str] = []  # absolute paths, as they came


class Use:
    """A tool use."""

    __slots__ = (
        "action error excerpt exit_status given is_ours more_paths printed result too_large tool was_reset"
        " written"
    ).split()

    def __init__(self, tool: str, action: str, given: dict[str, object]) -> None:
        self.tool = tool  # the client's own name for it
        self.action = action  # one of ACTIONS
        self.given = given
        self.more_paths: list[str] = []  # where it names several: all but `path`
        self.written: dict[str, object] = {}  # the part of `given` that is the text of a file
        self.result: object = None  # without that text
        self.error: str | None = None  # None: it worked
        self.exit_status: int | None = None  # of a shell, where it is known
        self.was_reset = False  # a shell that left the project was taken back
        self.is_ours = False  # a tool, an agent or a skill of backstory's
        # Added by capture:
        self.too_large = False  # the result was over the limit and is not here
        self.excerpt: object = None  # what is shown of it to synthesis
        self.printed = ""  # of a shell that printed much: as much of that as may tell what went wrong

    @property
    def path(self) -> str | None:
        return _text(self.given, "path")

    @property
    def paths(self) -> list[str]:
        return [self.path, *self.more_paths] if self.path else self.more_paths

    @property
    def command(self) -> str | None:
        return _text(self.given, "command")

    @property
    def output(self) -> str:
        """What it printed."""
        if not isinstance(self.result, dict):
            return self.result if isinstance(self.result, str) else ""
        parts = (_text(self.result, name) for name in ("output", "errors"))
        return "\n".join(part.strip("\n") for part in parts if part and part.strip())


def _text(given: dict[str, object], name: str) -> str | None:
    found = given.get(name)
    return found if isinstance(found, str) and found else None
