"""A transcript of Claude Code (~/.claude/projects/**/*.jsonl) as the payloads that its hooks were given.

A transcript does not say which hooks ran; these are the rules by which it is told. A prompt is what the user
typed, without what the client puts beside it. A turn has ended where the assistant's last words are followed
by a prompt, a compaction, a Stop hook or the end of the file, and neither a tool use nor an interruption came
between. A tool that the user refused never ran. The uses of a subagent are hooks of its session too; they lie
in entries of its progress, in entries of a side chain, or in a file that has nothing else.

A fork (`--fork-session`, `/branch`) begins with its parent's entries, under their old uuids but with its own
session id, and with the prompt id of its first own prompt in all of them. Only `/branch` names the parent.

Pure: lines in, payloads out. Beside what hooks are given, each has the time of its event (`at`, in
milliseconds) and of the prompt before it (`asked_at`), the `uuid` of its entry and git's `branch`. A prompt
says whether a person was there (`attended`; None: nobody can tell), whether its id is the one that its hook
was given (`is_hooks_id`), and whether it shares that with the one before (`is_joined`).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from backstory.blob import digest
from backstory.clients.claude_code import NOTIFICATION, config_folder

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
WORKTREES = "/.claude/worktrees/"  # below a project: copies of it for single sessions, mostly removed later
SENT_ON = "Stop hook feedback"
NEVER_RAN = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action",
    "Permission to use",
    "Tool permission request failed",
    "<tool_use_error>Sibling tool call errored",
    INTERRUPTED,
)
# What stands around the summary of a compaction in the message that the session goes on with.
BEFORE_SUMMARY = re.compile(r"\AThis session is being continued from a previous conversation[^\n]*\n+")
AFTER_SUMMARY = re.compile(
    r"\n+(?:If you need specific details from before compaction|(?:Please c|C)ontinue the conversation from)"
)
NO_MODEL = "<synthetic>"  # who says that a limit was reached, or that the service is away
ENDED = ("stop_hook_summary", "turn_duration")  # what the client notes after a turn
KINDS = ("user", "assistant", "system", "attachment")
WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")
NAMING_FILES = ("file_path", "notebook_path", "path", "filePath")


def folder(env: Mapping[str, str]) -> str | None:
    """Where the client keeps its transcripts: <slug>/<session>.jsonl, and those of subagents in
    <slug>/<session>/subagents/agent-<id>.jsonl."""
    config = config_folder(env)
    return os.path.join(config, "projects") if config else None


def is_of_subagent(path: str) -> bool:
    return os.path.basename(path).startswith("agent-")


def of_session(path: str, session_id: str) -> str:
    """The transcript of a session that a subagent's file belongs to; older clients put both in one folder."""
    inside = os.path.dirname(path)
    if os.path.basename(inside) == "subagents":
        inside = os.path.dirname(os.path.dirname(inside))
    return os.path.join(inside, f"{session_id}.jsonl")


def about_subagent(path: str) -> str:
    """The file in which newer clients say of what type the subagent is."""
    return path.removesuffix(".jsonl") + ".meta.json"


def subagent_type(about: object) -> str:
    kind = about.get("agentType") if isinstance(about, dict) else None
    return kind if isinstance(kind, str) else ""


def key_of(payload: Payload) -> str:
    """What tells an event apart that has no id of the client's."""
    return f"{payload['session_id']}:{payload['uuid']}:{payload['hook_event_name']}"


def number_of(uuid: str) -> int:
    """An entry's uuid as 60 bits, which a column of integers holds."""
    return int(digest(uuid.encode("utf-8", "replace"))[:15], 16)


def entry_of(line: bytes) -> Entry | None:
    """The entry in a line, with its time as `at`; None where it is none of those that matter here. ValueError
    where the line cannot be read: the client was killed while it wrote."""
    if b'"cwd"' not in line or (
        b'"type":"progress"' in line and b'"agent_progress"' not in line and b'"message":' not in line
    ):  # most lines of some transcripts, and most of their bytes
        if line.strip() and not line.rstrip().endswith(b"}"):
            raise ValueError("no end")
        return None
    parsed = json.loads(line)
    if not isinstance(parsed, dict):
        raise ValueError("no object")
    entry: Entry = parsed
    if not all(
        isinstance(entry.get(name), str) and entry[name] for name in ("sessionId", "cwd", "timestamp")
    ):
        return None
    f"{entry['sessionId']}{entry['cwd']}".encode()  # half of a pair of surrogates is a ValueError
    if entry.get("type") == "progress":
        entry = _of_subagent(entry)
    if entry.get("type") not in KINDS:
        return None
    entry["at"] = int(datetime.fromisoformat(entry["timestamp"]).timestamp() * 1000)
    return entry


def _of_subagent(progress: Entry) -> Entry:
    """A subagent's message, as an entry of a side chain."""
    told = progress.get("data")
    inner = told.get("message") if isinstance(told, dict) else None
    if not isinstance(told, dict) or told.get("type") != "agent_progress" or not isinstance(inner, dict):
        return {}
    names = {"agentId": told.get("agentId"), "startedBy": progress.get("parentToolUseID")}
    return {**progress, **inner, **names, "isSidechain": True, "listed": progress.get("uuid")}


# They start the client by its SDK, as programs do, but a person types. Hooks are told so, transcripts not.
APPS = frozenset(("claude-desktop", "claude-vscode"))


def is_unattended(entry: Entry) -> bool | None:
    """Whether no person was there; None where an entry does not say."""
    entrypoint = entry.get("entrypoint")
    marks = (entry.get("promptSource"), entry.get("turnOrigin"), entrypoint)
    by_program = entrypoint not in APPS and any(str(mark).startswith("sdk") for mark in marks)
    if entry.get("sessionKind") == "bg" or by_program:
        return True
    return False if any(marks) else None


def posix(path: str) -> str:
    """A path of Windows as git's own shell there spells it, so that paths in its commands agree with it."""
    if not WINDOWS.match(path):
        return path
    plain = path.replace("\\", "/")
    return f"/{plain[0].lower()}{plain[2:]}" if plain[1] == ":" else f"/{plain.lstrip('/')}"


class Reader:
    """What is known of a session while its transcript is read: `take` each entry in turn, and then `end`."""

    def __init__(self, session_id: str, is_copy: Callable[[int], bool] = lambda _: False) -> None:
        self.id = session_id
        self._is_copy = is_copy  # is it an entry of another session?
        self._seen: set[int] = set()  # a resumed session may repeat what went before
        self._uses: dict[str, Entry] = {}  # tool uses without a result yet
        self._cwd = ""
        self._branch: str | None = None
        self._at = 0  # of the last payload
        self._prompt_id: str | None = None
        self._prompt_ids: set[str] = set()
        self._message_id: str | None = None
        self._words: list[str] = []  # the assistant's since its last tool use
        self._said: tuple[int, str, str | None] = (0, "", None)  # when, in which entry, for which prompt
        self._is_sent_on = False
        self._asked_at = 0

    def take(self, entry: Entry, agent: str = "") -> Iterator[Payload]:
        """The payloads that an entry completes. `agent`: the type of the subagent whose file it is from."""
        uuid = str(entry.get("uuid") or "")
        if self._is_known(entry, uuid):
            return
        self._cwd = posix(entry["cwd"])
        branch = entry.get("gitBranch")
        self._branch = branch if isinstance(branch, str) and branch not in ("", "HEAD") else None
        message = entry.get("message")
        message = message if isinstance(message, dict) else {}
        kind = entry["type"]
        if kind == "system":
            if entry.get("subtype") == "compact_boundary" or (
                entry.get("subtype") in ENDED and not entry.get("isSidechain")
            ):
                yield from self._end_turn()
        elif kind == "attachment":
            yield from self._read_queued(entry, uuid)
        elif kind == "assistant":
            if message.get("model") != NO_MODEL:
                self._read_assistant(entry, message, uuid)
        elif entry.get("isCompactSummary"):
            yield from self._end_turn()
            text = BEFORE_SUMMARY.sub("", BESIDE.sub("", _text(message.get("content"))))
            summary = AFTER_SUMMARY.split(text, maxsplit=1)[0]
            given: dict[str, object] = {"trigger": "auto", "compact_summary": summary}
            yield self._payload(
                entry["at"], uuid, "PostCompact", entry.get("promptId") or self._prompt_id, given
            )
        else:
            yield from self._read_user(entry, message, uuid, agent)

    def end(self, *, is_over: bool = True) -> Iterator[Payload]:
        """After the last entry. Where the session goes on, its last words may not be the last of its turn."""
        if is_over:
            yield from self._end_turn()

    def _is_known(self, entry: Entry, uuid: str) -> bool:
        forked = entry.get("forkedFrom")
        names = [uuid, entry.get("listed"), forked.get("messageUuid") if isinstance(forked, dict) else None]
        numbers = [number_of(name) for name in names if isinstance(name, str) and name]
        if any(number in self._seen for number in numbers[:2]) or any(map(self._is_copy, numbers)):
            return True
        self._seen.update(numbers)
        return False

    def _payload(
        self, at: int, uuid: str, name: str, prompt_id: str | None, fields: dict[str, object]
    ) -> Payload:
        self._at = max(at, self._at + 1)
        payload: Payload = {"session_id": self.id, "cwd": self._cwd, "hook_event_name": name, **fields}
        if prompt_id:
            payload["prompt_id"] = prompt_id
        if name == "UserPromptSubmit":
            self._asked_at = self._at
        about = {"at": self._at, "uuid": uuid, "branch": self._branch, "asked_at": self._asked_at}
        return {**payload, **about}

    def _end_turn(self) -> Iterator[Payload]:
        if self._words:
            at, uuid, prompt_id = self._said
            words = "\n".join(self._words)
            given: dict[str, object] = {"stop_hook_active": self._is_sent_on, "last_assistant_message": words}
            yield self._payload(at, uuid, "Stop", prompt_id, given)
        self._words = []

    def _read_queued(self, entry: Entry, uuid: str) -> Iterator[Payload]:
        """A prompt that was typed while the model worked, and was given to it in the same turn."""
        queued = entry.get("attachment")
        if not isinstance(queued, dict) or entry.get("isSidechain"):
            return
        if queued.get("type") == "queued_command" and queued.get("commandMode", "prompt") == "prompt":
            yield from self._prompt(entry, _text(queued.get("prompt")), uuid)

    def _read_assistant(self, entry: Entry, message: Entry, uuid: str) -> None:
        side = bool(entry.get("isSidechain"))
        for part in _parts(message.get("content")):
            if part.get("type") == "tool_use" and isinstance(part.get("id"), str):
                self._uses[part["id"]] = part
                if not side:
                    self._words = []
            elif part.get("type") == "text" and not side and _words(part):
                if message.get("id") is None or message.get("id") != self._message_id:
                    self._words = []
                self._message_id = message.get("id")
                self._words.append(part["text"])
                self._said = (entry["at"], uuid, self._prompt_id)

    def _read_user(self, entry: Entry, message: Entry, uuid: str, agent: str) -> Iterator[Payload]:
        side = bool(entry.get("isSidechain"))
        parts = _parts(message.get("content"))
        results = [part for part in parts if part.get("type") == "tool_result"]
        for part in results:
            yield from self._result(entry, part, uuid, agent)
        if side:
            return
        text = _text(message.get("content"))
        if entry.get("isMeta"):
            if text.startswith(SENT_ON):
                yield from self._end_turn()
                self._is_sent_on = True
            return
        if text.startswith(INTERRUPTED):
            self._words = []
        prompt = "" if results else prompt_of(text)
        if prompt:
            yield from self._end_turn()
            self._is_sent_on = False
            yield from self._prompt(entry, prompt, uuid)

    def _prompt(self, entry: Entry, prompt: str, uuid: str) -> Iterator[Payload]:
        if not prompt:
            return
        known = entry.get("promptId")
        known = known if isinstance(known, str) and known else None
        is_joined = known is None and bool(self._prompt_ids)  # it was queued, and went with the one before
        if not is_joined:
            self._prompt_id = known or uuid
        # A notification may come with the id of the prompt before it; its words tell it apart.
        is_new = prompt.startswith(NOTIFICATION) or known not in self._prompt_ids
        is_hooks_id = known is not None and is_new
        if known:
            self._prompt_ids.add(known)
        unattended = is_unattended(entry)
        given: dict[str, object] = {
            "prompt": prompt,
            "attended": None if unattended is None else not unattended,
            "is_hooks_id": is_hooks_id or is_joined,
            "is_joined": is_joined,
        }
        prompt_id = known if is_hooks_id else self._prompt_id if is_joined else uuid
        yield self._payload(entry["at"], uuid, "UserPromptSubmit", prompt_id, given)

    def _result(self, entry: Entry, part: Entry, uuid: str, agent: str) -> Iterator[Payload]:
        use = self._uses.pop(str(part.get("tool_use_id")), None)
        if use is None or not isinstance(use.get("name"), str):
            return
        given, text = use.get("input"), _text(part.get("content"))
        given = _with_posix_paths(given) if isinstance(given, dict) else {}
        fields: dict[str, object] = {
            "tool_name": use["name"],
            "tool_input": given,
            "tool_use_id": use["id"],
        }
        if entry.get("isSidechain"):
            started = self._uses.get(str(entry.get("startedBy")), {}).get("input")
            kind = started.get("subagent_type") if isinstance(started, dict) else None
            fields["agent_id"] = str(entry.get("agentId") or "agent")
            fields["agent_type"] = agent or (kind if isinstance(kind, str) else "") or "general-purpose"
        if not part.get("is_error"):
            response = entry.get("toolUseResult")
            if response is None:  # of a subagent
                response = {"stdout": text, "stderr": ""} if use["name"] == "Bash" else part.get("content")
            fields["tool_response"] = _with_posix_paths(response) if isinstance(response, dict) else response
            yield self._payload(entry["at"], uuid, "PostToolUse", self._prompt_id, fields)
        elif not text.startswith(NEVER_RAN):
            fields["error"] = re.sub(r"</?tool_use_error>", "", text).removeprefix("Error: ")
            yield self._payload(entry["at"], uuid, "PostToolUseFailure", self._prompt_id, fields)


def prompt_of(text: str) -> str:
    """What the user typed; "" where it was the client."""
    text = BESIDE.sub("", text).strip()
    if NO_PROMPT.match(text):
        return ""
    if text.startswith("<command-message>") and (command := COMMAND.search(text)):
        arguments = ARGUMENTS.search(text)
        return f"/{command[1]} {arguments[1] if arguments else ''}".strip()
    return text


def _with_posix_paths(given: dict[str, Any]) -> dict[str, Any]:
    """What a tool was given or gave, where its fields name files of Windows."""
    found = dict(given)
    for name in NAMING_FILES:
        if isinstance(path := given.get(name), str):
            found[name] = posix(path)
    if isinstance(file := given.get("file"), dict):
        found["file"] = _with_posix_paths(file)
    if isinstance(files := given.get("filenames"), list):
        found["filenames"] = [posix(file) if isinstance(file, str) else file for file in files]
    return found


def _parts(content: object) -> list[Entry]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _words(part: Entry) -> str:
    text = part.get("text")
    return text.strip() if isinstance(text, str) else ""


def _text(content: object) -> str:
    texts = [part.get("text") for part in _parts(content) if part.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str))
