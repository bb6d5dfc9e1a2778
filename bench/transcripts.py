"""A transcript of Claude Code (~/.claude/projects/**/*.jsonl) as the payloads that its hooks were given.

A transcript does not say which hooks ran; these are the rules by which it is told. A prompt is what the user
typed, without what the client puts beside it. A turn has ended where the assistant's last words are followed
by a prompt, a compaction or the end of the file, and neither a tool use nor an interruption came between. A
tool that the user refused never ran. The uses of a subagent are hooks of its session too; they lie in entries
of its progress, in entries of a side chain, or in a file that has nothing else.

Pure: lines in, payloads out, each with the time of its event (`at`, in milliseconds). The folder that the
session worked in becomes the one that is given, in every text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Entry = dict[str, Any]
Payload = dict[str, Any]

BESIDE = re.compile(
    r"<system-reminder>.*?</system-reminder>"
    r"|<ide_(?:opened_file|selection|diagnostics)>.*?</ide_\w+>",
    re.DOTALL,
)
# What the client says in the user's name. A command of its own has its name first, one that asks the model
# something its message.
NO_PROMPT = re.compile(
    r"<(?:local-command|bash|user-memory)-|<command-name>|\[Request interrupted|Caveat: The messages below"
    r"|Operation stopped by hook"
)
COMMAND = re.compile(r"<command-name>\s*/?(\S+?)\s*</command-name>")
ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
INTERRUPTED = "[Request interrupted"
NEVER_RAN = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action",
    "Permission to use",
    "Tool permission request failed",
    "<tool_use_error>Sibling tool call errored",
    INTERRUPTED,
)
NO_MODEL = "<synthetic>"  # who says that a limit was reached, or that the service is away
START_BEFORE_MS = 1_000  # a session starts before the first thing that is written down
END_AFTER_MS = 1_000


@dataclass(slots=True)
class _Session:
    """What is known of a session while its transcript is read."""

    id: str
    project: str
    payloads: list[Payload] = field(default_factory=list)
    uses: dict[str, Entry] = field(default_factory=dict)  # tool uses without a result yet
    prompt_id: str | None = None
    cwd: str = ""
    at: int = 0  # of the last payload
    message_id: str | None = None
    words: list[str] = field(default_factory=list)  # the assistant's since its last tool use
    said_at: int = 0

    def emit(self, at: int, name: str, **fields: object) -> None:
        self.at = max(at, self.at + 1)
        payload: Payload = {
            "session_id": self.id,
            "transcript_path": f"{self.project}/.claude/projects/{self.id}.jsonl",
            "cwd": self.cwd,
            "permission_mode": "default",
            "hook_event_name": name,
        }
        if self.prompt_id and name != "SessionStart":
            payload["prompt_id"] = self.prompt_id
        self.payloads.append({**payload, **fields, "at": self.at})

    def end_turn(self) -> None:
        if self.words:
            said = "\n".join(self.words)
            self.emit(self.said_at, "Stop", stop_hook_active=False, last_assistant_message=said)
        self.words = []


def payloads(lines: Iterable[str], project: str) -> list[Payload]:
    """Those of one transcript, in order; none where it holds no session."""
    entries = list(_entries(lines))
    if not entries:
        return []
    session = _Session(entries[0]["sessionId"], project)
    move = _Move((entry["cwd"] for entry in entries), project)
    for entry in entries:
        session.cwd = move.text(entry["cwd"])
        if not entry.get("isSidechain") and not session.payloads:
            session.emit(entry["at"] - START_BEFORE_MS, "SessionStart", source="startup")
        _read(session, entry)
    if any(payload["hook_event_name"] == "SessionStart" for payload in session.payloads):
        session.end_turn()
        session.emit(session.at + END_AFTER_MS, "SessionEnd", reason="other")
    return [move.value(payload) for payload in session.payloads]


def began(lines: Iterable[str]) -> int | None:
    """When the first thing in a transcript happened; None where it holds no session."""
    return next((int(entry["at"]) for entry in _entries(lines)), None)


def _entries(lines: Iterable[str]) -> Iterator[Entry]:
    """What happened, each once, with its time as `at`. A resumed session may repeat what went before."""
    seen: set[str] = set()
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # the client was killed while it wrote
        if not isinstance(entry, dict) or not all(map(entry.get, ("sessionId", "cwd", "timestamp"))):
            continue
        if entry.get("uuid") in seen:
            continue
        seen.add(entry.get("uuid") or "")
        entry = _of_subagent(entry) if entry.get("type") == "progress" else entry
        if entry.get("type") in ("user", "assistant", "system", "attachment"):
            entry["at"] = int(datetime.fromisoformat(entry["timestamp"]).timestamp() * 1000)
            yield entry


def _of_subagent(progress: Entry) -> Entry:
    """A subagent's message, as an entry of a side chain."""
    told = progress.get("data") or {}
    inner = told.get("message")
    if told.get("type") != "agent_progress" or not isinstance(inner, dict):
        return {}
    names = {"agentId": told.get("agentId"), "startedBy": progress.get("parentToolUseID")}
    return {**progress, **inner, **names, "isSidechain": True}


def _read(session: _Session, entry: Entry) -> None:
    kind, message = entry["type"], entry.get("message") or {}
    if kind == "system":
        if entry.get("subtype") == "compact_boundary":
            session.end_turn()
            trigger = (entry.get("compactMetadata") or {}).get("trigger", "auto")
            session.emit(entry["at"], "PreCompact", trigger=trigger, custom_instructions="")
    elif kind == "attachment":
        _read_queued(session, entry)
    elif kind == "assistant":
        if message.get("model") != NO_MODEL:
            _read_assistant(session, entry, message)
    elif entry.get("isCompactSummary"):
        said = _text(message.get("content"))
        session.emit(entry["at"], "PostCompact", trigger="auto", compact_summary=said)
        session.emit(entry["at"], "SessionStart", source="compact")
    else:
        _read_user(session, entry, message)


def _read_queued(session: _Session, entry: Entry) -> None:
    """A prompt that was typed while the model worked, and was given to it in the same turn."""
    queued = entry.get("attachment") or {}
    if queued.get("type") == "queued_command" and queued.get("commandMode", "prompt") == "prompt":
        _prompt(session, entry, _text(queued.get("prompt")))


def _read_assistant(session: _Session, entry: Entry, message: Entry) -> None:
    side = bool(entry.get("isSidechain"))
    for part in _parts(message.get("content")):
        if part.get("type") == "tool_use":
            session.uses[part["id"]] = part
            if not side:
                session.words = []
        elif part.get("type") == "text" and part["text"].strip() and not side:
            if message.get("id") is None or message.get("id") != session.message_id:
                session.words = []
            session.message_id = message.get("id")
            session.words.append(part["text"])
            session.said_at = entry["at"]


def _read_user(session: _Session, entry: Entry, message: Entry) -> None:
    parts = _parts(message.get("content"))
    results = [part for part in parts if part.get("type") == "tool_result"]
    for part in results:
        _result(session, entry, part)
    if entry.get("isSidechain") or entry.get("isMeta"):
        return
    text = _text(message.get("content"))
    if text.startswith(INTERRUPTED):
        session.words = []
    prompt = "" if results else prompt_of(text)
    if prompt:
        session.end_turn()
        _prompt(session, entry, prompt)


def _prompt(session: _Session, entry: Entry, prompt: str) -> None:
    if prompt:
        session.prompt_id = entry.get("uuid")
        session.emit(entry["at"], "UserPromptSubmit", prompt=prompt)


def prompt_of(text: str) -> str:
    """What the user typed; "" where it was the client."""
    text = BESIDE.sub("", text).strip()
    if NO_PROMPT.match(text):
        return ""
    if text.startswith("<command-message>") and (command := COMMAND.search(text)):
        arguments = ARGUMENTS.search(text)
        return f"/{command[1]} {arguments[1] if arguments else ''}".strip()
    return text


def _result(session: _Session, entry: Entry, part: Entry) -> None:
    use = session.uses.pop(part.get("tool_use_id", ""), None)
    if use is None:
        return
    given, text = use.get("input") or {}, _text(part.get("content"))
    fields = {"tool_name": use["name"], "tool_input": given, "tool_use_id": use["id"]}
    if entry.get("isSidechain"):
        started = session.uses.get(entry.get("startedBy") or "", {}).get("input") or {}
        fields["agent_id"] = entry.get("agentId") or "agent"
        fields["agent_type"] = started.get("subagent_type") or "general-purpose"
    if not part.get("is_error"):
        response = entry.get("toolUseResult")
        if response is None:  # of a subagent
            response = {"stdout": text, "stderr": ""} if use["name"] == "Bash" else part.get("content")
        session.emit(entry["at"], "PostToolUse", tool_response=response, **fields)
    elif not text.startswith(NEVER_RAN):
        error = re.sub(r"</?tool_use_error>", "", text).removeprefix("Error: ")
        session.emit(entry["at"], "PostToolUseFailure", error=error, is_interrupt=False, **fields)


def _parts(content: object) -> list[Entry]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _text(content: object) -> str:
    return "\n".join(part.get("text", "") for part in _parts(content) if part.get("type") == "text")


class _Move:
    """From the folders that a session worked in to another. `/a/b` is not the beginning of `/a/b-2`."""

    def __init__(self, folders: Iterable[str], to: str) -> None:
        self._to = to
        top: list[str] = []
        for folder in sorted(set(folders), key=len):
            if not any(folder.startswith((f"{one}/", f"{one}\\")) for one in top):
                top.append(folder)
        self._windows = any("\\" in one for one in top)
        self._from = re.compile(
            rf"(?:{'|'.join(map(re.escape, sorted(top, key=len, reverse=True)))})(?![\w-])"
        )
        self._below = re.compile(re.escape(to) + r"(?:\\[\w.\- ]+)+")

    def text(self, text: str) -> str:
        text = self._from.sub(lambda _: self._to, text)
        return self._below.sub(lambda path: path[0].replace("\\", "/"), text) if self._windows else text

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(one) for one in value]
        if isinstance(value, dict):
            return {name: self.value(one) for name, one in value.items()}
        return value


# --- turns --------------------------------------------------------------------------------------------------

NOTIFICATION = "<task-notification>"  # a background task's report, which comes as a prompt


@dataclass(frozen=True, slots=True)
class Turn:
    """From the first prompt after a Stop to the next one; what is left at the end of a session is one too."""

    session_id: str
    prompts: tuple[str, ...]
    answer: str  # the assistant's last message
    first: int  # times of its first and last event
    last: int
    stopped: bool

    @property
    def text(self) -> str:
        return "\n\n".join((*self.prompts, self.answer))


def turns(session: Iterable[Payload]) -> list[Turn]:
    """Those of one session's payloads."""
    found: list[Turn] = []
    turn: list[Payload] = []
    for payload in session:
        name = payload["hook_event_name"]
        if name == "SessionEnd" or (name == "SessionStart" and not turn):
            continue
        turn.append(payload)
        if name == "Stop":
            found.append(_turn(turn))
            turn = []
    return [*found, _turn(turn)] if turn else found


def _turn(several: list[Payload]) -> Turn:
    prompts = [payload["prompt"] for payload in several if "prompt" in payload]
    last = several[-1]
    return Turn(
        session_id=last["session_id"],
        prompts=tuple(prompt for prompt in prompts if not prompt.startswith(NOTIFICATION)),
        answer=last.get("last_assistant_message", ""),
        first=several[0]["at"],
        last=last["at"],
        stopped=last["hook_event_name"] == "Stop",
    )
