"""Claude Code: its payloads as canonical events, its tools as canonical actions, its environment, and what a
hook may answer. The only place that knows them, but for its transcripts (claude_transcript.py), for what is
loaded by the client (plugin/) and for the synthesizer that runs it (synthesis/claude.py). hook.sh has a block
of its own, which a test holds to this.
"""

from __future__ import annotations

import os

from backstory.clients import canonical
from backstory.clients.canonical import Event, Use
from backstory.errors import BadPayload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# --- the environment of its hooks and servers ---------------------------------------------------------------

CLIENT = "claude-code"  # as it calls itself to MCP servers
SESSION_ID, PROJECT_DIR, PLUGIN_DATA = "CLAUDE_CODE_SESSION_ID", "CLAUDE_PROJECT_DIR", "CLAUDE_PLUGIN_DATA"
CONFIG_DIR = "CLAUDE_CONFIG_DIR"
ATTENDED = "CLAUDE_CODE_SESSION_ATTENDED"  # "0" where no person is there, as with `claude -p`


def session_id(env: Mapping[str, str]) -> str:
    """The session that we were started in; "" where the client does not say."""
    return env.get(SESSION_ID, "")


def is_attended(env: Mapping[str, str]) -> bool:
    """Older clients do not say; then a person is there."""
    return env.get(ATTENDED) != "0"


def project_folder(env: Mapping[str, str]) -> str:
    return env.get(PROJECT_DIR) or os.getcwd()


def config_folder(env: Mapping[str, str]) -> str | None:
    """Where the client keeps its own files. A relative one could lie in somebody's repository."""
    folder = env.get(CONFIG_DIR) or os.path.join(env.get("HOME", ""), ".claude")
    return folder if os.path.isabs(folder) else None


def memory_folder(config: str, folder: str) -> str:
    """Where the client keeps what it remembers of a project by itself: MEMORY.md and files about topics."""
    return os.path.join(transcripts_folder(config, folder), "memory")


def transcripts_folder(config: str, folder: str) -> str:
    """Where the client keeps the transcripts of a project. It goes by the folder that the client was started
    in."""
    named = "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in folder)
    return os.path.join(config, "projects", named)


# --- events -------------------------------------------------------------------------------------------------

EVENTS = {
    "SessionStart": canonical.SESSION_START,
    "UserPromptSubmit": canonical.PROMPT,
    "PostToolUse": canonical.TOOL_USE,
    "PostToolUseFailure": canonical.TOOL_FAILURE,
    "PreCompact": canonical.COMPACTION_START,
    "PostCompact": canonical.COMPACTION,
    "Stop": canonical.TURN_END,
    "SubagentStop": canonical.SUBAGENT_END,
    "SessionEnd": canonical.SESSION_END,
}
SAYING = {"Stop": "last_assistant_message", "PostCompact": "compact_summary"}
NOTIFICATION = "<task-notification>"  # a background task's report arrives as if it were a prompt
PATH_LIMIT = 4_096


def read(payload: Mapping[str, object]) -> Event:
    """The event in a payload, or BadPayload with the reason. Texts are as they came."""
    name = _text(payload, "hook_event_name")
    if name not in EVENTS:
        # Only a word is quoted: this is logged, and not every way there is cleaned.
        raise BadPayload(f"unknown event {name!r}" if name.isalpha() and len(name) < 40 else "unknown event")
    event = Event(EVENTS[name], name, _text(payload, "session_id"), _cwd(payload))
    event.agent = _string(payload.get("agent_type")) or _string(payload.get("agent_id"))
    event.source = _string(payload.get("source"))
    if event.kind == canonical.PROMPT:
        event.text = _text(payload, "prompt", empty=True)
        if event.text.lstrip().startswith(NOTIFICATION):
            event.kind = canonical.NOTIFICATION
        event.id = _text(payload, "prompt_id") if "prompt_id" in payload else None
    elif name in SAYING:
        event.text = _string(payload.get(SAYING[name]))
        event.is_sent_on = is_sent_on(payload)
        event.id = _string(payload.get("prompt_id")) or None  # of the prompt: there may be several for one
    elif event.kind in (canonical.TOOL_USE, canonical.TOOL_FAILURE):
        _read_use(event, payload)
    return event


def without_messages(summary: str) -> str:
    """A summary of a compaction without the thoughts before it, and the user's messages that it repeats. For
    clean text only: what is private may begin in a part that goes."""
    import re  # of all events only this one needs it

    before, opens, rest = summary.partition("<analysis>")
    thoughts, closes, after = rest.rpartition("</analysis>")
    said = before + after if closes else before + opens + thoughts + rest
    said = said.replace("<summary>", "").replace("</summary>", "")
    found = re.search(r"^Summary:[ \t]*$", said, re.M)
    said = said[found.end() :] if found else said
    return re.sub(r"^\d+\. \**All user messages:?\**.*?(?=^\d+\. |\Z)", "", said, flags=re.S | re.M).strip()


def is_sent_on(payload: object) -> bool:
    """A turn that a Stop hook of ours, or another's, did not let end."""
    return isinstance(payload, dict) and bool(payload.get("stop_hook_active"))


def _read_use(event: Event, payload: Mapping[str, object]) -> None:
    tool, given = _text(payload, "tool_name"), payload.get("tool_input")
    if not isinstance(given, dict):
        raise BadPayload("tool_input is not an object")
    event.id = _text(payload, "tool_use_id") if "tool_use_id" in payload else None
    if event.kind == canonical.TOOL_FAILURE:
        event.use = tool_use(tool, given, error=_text(payload, "error", empty=True))
    else:
        field = next((field for field in RESULT_FIELDS if field in payload), None)
        if field is None:
            raise BadPayload(f"{RESULT_FIELDS[0]} is missing")
        event.use = tool_use(tool, given, payload[field])
    event.use.is_ours = event.use.is_ours or event.agent.startswith(OURS)
    if event.use.action == canonical.PLAN and isinstance(event.use.result, dict):
        event.text = _string(event.use.result.get("plan"))  # only an approved one is left there


# --- tools --------------------------------------------------------------------------------------------------

RESULT_FIELDS = ("tool_response", "tool_result", "tool_output")  # the client's own name first
FILE = {"file_path": "path"}
TOOLS = {  # name -> (action, what its fields are called in canonical events)
    "Read": (canonical.READ, FILE),
    "NotebookRead": (canonical.READ, {"notebook_path": "path"}),
    "Edit": (canonical.EDIT, {**FILE, "old_string": "old", "new_string": "new"}),
    "MultiEdit": (canonical.EDIT, {**FILE, "old_string": "old", "new_string": "new"}),
    "NotebookEdit": (canonical.EDIT, {"notebook_path": "path", "new_source": "content"}),
    "Write": (canonical.WRITE, FILE),
    "Bash": (canonical.SHELL, {}),
    "Grep": (canonical.SEARCH, {}),
    "Glob": (canonical.SEARCH, {}),
    "ListMcpResourcesTool": (canonical.SEARCH, {}),
    "WebFetch": (canonical.WEB, {}),
    "WebSearch": (canonical.WEB, {}),
    "AskUserQuestion": (canonical.ASK, {}),
    "EnterPlanMode": (canonical.PLAN, {}),
    "ExitPlanMode": (canonical.PLAN, {}),
    "TodoWrite": (canonical.PLAN, {}),
    "TaskCreate": (canonical.PLAN, {}),
    "TaskUpdate": (canonical.PLAN, {}),
    "Agent": (canonical.AGENT, {}),
    "Task": (canonical.AGENT, {}),  # the same in older clients
}
PATHS = ("file_path", "notebook_path")  # of tools that are not in the table
MCP = "mcp__"  # before the names of a server and its tool
WRITTEN = frozenset({"old", "new", "content", "edits"})  # of an edit: the file has it
# What the client repeats of a file's text in the result of an edit. (That of a notebook has underscores.)
ECHOED = frozenset(
    "content originalFile oldString newString structuredPatch edits"
    " new_source old_source original_file updated_file".split()
)
PRINTED = {"stdout": "output", "stderr": "errors", "bashEditDiff": "diff"}
SHOWN = {"filePath": "path", "numLines": "lines"}
RESET = "Shell cwd was reset to "  # said when a command left the project, and the shell goes back
EXIT_CODE = "Exit code "  # how the error of a command begins
LONGEST_STATUS = 10  # digits
NO_STATUS = ("backgroundTaskId", "interrupted", "returnCodeInterpretation")  # it did not simply return 0

OURS = "backstory:"  # before the names of our agent and skills
NAMING = {"Agent": "subagent_type", "Task": "subagent_type", "Skill": "skill"}  # which one is meant


def tool_use(tool: str, given: dict[str, object], result: object = None, error: str | None = None) -> Use:
    action, names = TOOLS.get(tool) or (canonical.MCP if tool.startswith(MCP) else canonical.OTHER, {})
    use = Use(tool, action, _renamed(given, names))
    if tool not in TOOLS:
        use.more_paths = [path for path in map(_string, map(given.get, PATHS)) if path]
    use.is_ours = _is_ours(tool, given)
    use.error = error
    if action in canonical.CHANGING:
        use.written = {name: use.given.pop(name) for name in list(use.given) if name in WRITTEN}
        if isinstance(edits := use.written.get("edits"), list):
            use.written["edits"] = [_renamed(one, names) if isinstance(one, dict) else one for one in edits]
    if error is None:
        use.result = _result(action, result) if isinstance(result, dict) else result
        if action == canonical.PLAN and isinstance(use.result, dict) and not _is_approved(tool, use.result):
            use.result = {name: part for name, part in use.result.items() if name != "plan"}
    if action == canonical.SHELL:
        use.exit_status = _exit_status(result, error)
        use.was_reset = isinstance(result, dict) and RESET in _string(result.get("stderr"))
    return use


def may_change_files(raw: bytes) -> bool:
    """Whether a payload as it came may tell of a file that was changed: most do not, and need no parsing."""
    return b'"PostToolUse"' in raw and any(name in raw for name in _CHANGING)


_CHANGING = [
    b'"%b"' % tool.encode()
    for tool, (action, _) in TOOLS.items()
    if action in (*canonical.CHANGING, canonical.SHELL)
]


def _result(action: str, result: dict[str, object]) -> dict[str, object]:
    if action in canonical.CHANGING:
        kept = {name: part for name, part in result.items() if name not in ECHOED}
        if action == canonical.WRITE and kept.get("type") == "create":
            kept["created"] = True
        return kept
    if action == canonical.SHELL:
        kept = _renamed(result, PRINTED)
        if isinstance(diff := kept.get("diff"), dict) and "changedFiles" in diff:
            kept["diff"] = {name: part for name, part in diff.items() if name != "changedFiles"}
            kept["changed"] = diff["changedFiles"]
        return kept
    if action == canonical.READ and isinstance(file := result.get("file"), dict):
        rest = {name: part for name, part in result.items() if name != "file"}
        return {**rest, **_renamed(file, SHOWN)}
    return _renamed(result, {"filenames": "found_files"})


def _renamed(given: dict[str, object], names: Mapping[str, str]) -> dict[str, object]:
    taken = {names[name] for name in given if name in names}  # the tool's own field wins
    return {names.get(name, name): part for name, part in given.items() if name in names or name not in taken}


def _is_approved(tool: str, result: dict[str, object]) -> bool:
    """Whether the plan in a result is one that the user agreed to; an agent plans for itself."""
    return tool == "ExitPlanMode" and not result.get("isAgent")


def _exit_status(result: object, error: str | None) -> int | None:
    if error is None:
        return 0 if isinstance(result, dict) and not any(map(result.get, NO_STATUS)) else None
    status = error.partition("\n")[0].removeprefix(EXIT_CODE).strip() if error.startswith(EXIT_CODE) else ""
    return int(status) if status.isdecimal() and len(status) < LONGEST_STATUS else None


def _is_ours(tool: str, given: dict[str, object]) -> bool:
    """Our own tools show what is remembered already; remembering that would be an echo. And that our agent
    keeps CLAUDE.md true is no news about the project."""
    if tool in NAMING:
        return str(given.get(NAMING[tool])).startswith(OURS)
    if tool == "ToolSearch":  # how a model gets hold of them
        return "backstory" in str(given.get("query"))
    return tool.startswith(MCP) and tool.removeprefix(MCP).removeprefix("plugin_").startswith("backstory")


# --- what a hook may answer ---------------------------------------------------------------------------------

# A text for the model that the user does not see, and one for the user; hook.sh writes the same.
CONTEXT = '{"hookSpecificOutput": {"hookEventName": "%s", "additionalContext": %s}}'
MESSAGE = '{"systemMessage": "%s"}'
AT_PROMPT, AT_FILE, AT_FAILURE = "UserPromptSubmit PreToolUse PostToolUseFailure".split()
TEXT_FIELDS = {AT_PROMPT: "prompt", AT_FAILURE: "error"}  # that it is told about


def session_started(message: str, context: str) -> dict[str, object]:
    """A line for the user, and a text for the model."""
    answer: dict[str, object] = {}
    if message:
        answer["systemMessage"] = message
    if context:
        answer["hookSpecificOutput"] = {"hookEventName": "SessionStart", "additionalContext": context}
    return answer


def allowed(reason: str) -> dict[str, object]:
    """Before a tool is used: the user need not be asked, unless a rule of theirs says otherwise."""
    decision = {"permissionDecision": "allow", "permissionDecisionReason": reason}
    return {"hookSpecificOutput": {"hookEventName": AT_FILE, **decision}}


OUR_SERVERS = {f"{MCP}plugin_backstory_{name}__": f"plugin:backstory:{name}" for name in ("memory", "docmem")}


def own_tool(payload: object) -> tuple[str, dict[str, object]] | None:
    """The tool of our own server that is about to be used, and what it is given. A project can call a server
    of its own `plugin_backstory_memory`, so the name of the tool is not enough."""
    if not isinstance(payload, dict) or payload.get("hook_event_name") != AT_FILE:
        return None
    name, given = _string(payload.get("tool_name")), payload.get("tool_input")
    server = payload.get("mcp_server")
    if not isinstance(given, dict) or not isinstance(server, dict) or server.get("source") != "plugin":
        return None
    for prefix, ours in OUR_SERVERS.items():
        if name.startswith(prefix) and server.get("name") == ours:
            return name.removeprefix(prefix), given
    return None


def block(reason: str) -> bytes:
    """At the end of a turn: the model goes on, with this to read. JSON without a module for it, so no sign
    may be in it that would need one."""
    return b'{"decision": "block", "reason": "%b"}\n' % reason.encode()


def spawn(agent: str, prompt: str) -> str:
    """How a model is told to start a subagent."""
    tool = "Agent tool (called Task in older clients)"
    return f"Use the {tool} to spawn the '{agent}' agent with prompt: '{prompt}'"


def shell_use(session_id: str, cwd: str, tool_use_id: str, command: str, output: str) -> dict[str, object]:
    """The payload of a command, to try a hook out with."""
    return {
        "hook_event_name": "PostToolUse",
        "session_id": session_id,
        "cwd": cwd,
        "tool_name": "Bash",
        "tool_use_id": tool_use_id,
        "tool_input": {"command": command},
        "tool_response": {"stdout": output, "stderr": ""},
    }


# --- fields -------------------------------------------------------------------------------------------------


def _text(payload: Mapping[str, object], field: str, *, empty: bool = False) -> str:
    if field not in payload:
        raise BadPayload(f"{field} is missing")
    value = payload[field]
    if not isinstance(value, str):
        raise BadPayload(f"{field} is not a string but {type(value).__name__}")
    if not value and not empty:
        raise BadPayload(f"{field} is empty")
    return value


def _cwd(payload: Mapping[str, object]) -> str:
    path = _text(payload, "cwd")
    if len(path) > PATH_LIMIT:
        raise BadPayload(f"cwd has {len(path):,} characters")
    if not path.startswith("/"):
        raise BadPayload("cwd is not an absolute path")
    return path


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""
